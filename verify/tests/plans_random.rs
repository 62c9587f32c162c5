//! Random graphs with random places: the judge against counting every byte and texel in every step.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::cell::Cell;
use std::collections::HashSet;

use common::judge;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tilewright_ir::{
    Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, Region, Room, ScalarType, Scope, TensorRole,
};
use tilewright_verify::Verdict;

/// What a tensor is made from: kind, extents, place.
type Seed = (u8, [u64; 2], [u64; 2], u8, u8);
/// What a step is made from: reads and writes, any numbers.
type StepSeed = (Vec<usize>, Vec<usize>);

/// Pools 0 and 1 are small textures, 2 and 3 small buffers.
fn pools() -> Vec<Pool> {
    let texture = |width, height| Room::Texels { width, height };
    let pool = |scope, room| Pool { scope, dtype: ScalarType::Int8.into(), room };
    vec![
        pool(Scope::Texture, texture(7, 5)),
        pool(Scope::TextureWeight, texture(5, 6)),
        pool(Scope::Global, Room::Bytes(17)),
        pool(Scope::Global, Room::Bytes(12)),
    ]
}

fn tensor(
    number: usize,
    &(kind, [a, b], [x, y], role, off): &Seed,
    before: &[(GraphTensor, PoolPlace)],
) -> (GraphTensor, PoolPlace) {
    let pool = usize::from(kind % 4);
    let scope = pools()[pool].scope;
    let shape = if scope == Scope::Global { vec![a, b] } else { vec![a, b, 4] };
    let region = match scope {
        Scope::Global => Region::Bytes { offset: x * 2 + y, size: a * b },
        _ => Region::Texels { x, y, width: b, height: a },
    };
    let role = match role {
        0 => TensorRole::Input,
        1 => TensorRole::Output,
        _ => TensorRole::Intermediate,
    };
    let own = GraphTensor {
        name: format!("t{number}"),
        shape,
        dtype: ScalarType::Int8.into(),
        scope,
        axis_separators: Vec::new(),
        view_of: None,
        role,
    };
    // Now and then a view of one before, nearly always where that one lies.
    match before.get(usize::from(kind / 4) + 1).filter(|_| number > 4) {
        Some((root, place)) => {
            let shown = GraphTensor { view_of: Some(usize::from(kind / 4) + 1), ..root.clone() };
            (GraphTensor { name: own.name, role, ..shown }, if off == 0 { PoolPlace { pool, region } } else { *place })
        }
        None => (own, PoolPlace { pool, region }),
    }
}

fn case(tensors: &[Seed], steps: &[StepSeed]) -> (Graph, MemoryPlan) {
    let mut made = Vec::new();
    for (number, seed) in tensors.iter().enumerate() {
        made.push(tensor(number, seed, &made));
    }
    let n_tensors = made.len();
    // Mostly sane: what a step reads is what was written before or is given.
    let mut known: Vec<usize> = (0..n_tensors).filter(|&t| made[t].0.role == TensorRole::Input).collect();
    let mut list = Vec::new();
    for (number, (reads, writes)) in steps.iter().enumerate() {
        let writes: Vec<usize> = writes.iter().map(|write| write % n_tensors).collect();
        let pick = |read: &usize| if known.is_empty() { read % n_tensors } else { known[read % known.len()] };
        let reads = reads.iter().map(pick).collect();
        known.extend(&writes);
        list.push(GraphStep { name: format!("s{number}"), reads, writes });
    }
    let (tensors, places) = made.into_iter().unzip();
    (Graph { tensors, steps: list }, MemoryPlan { pools: pools(), places })
}

fn root(graph: &Graph, mut tensor: usize) -> usize {
    while let Some(next) = graph.tensors[tensor].view_of {
        tensor = next;
    }
    tensor
}

/// Every point of a region.
fn points(place: PoolPlace) -> Vec<(usize, u64, u64)> {
    match place.region {
        Region::Bytes { offset, size } => (offset..offset + size).map(|byte| (place.pool, byte, 0)).collect(),
        Region::Texels { x, y, width, height } => {
            (y..y + height).flat_map(|row| (x..x + width).map(move |column| (place.pool, column, row))).collect()
        }
    }
}

/// Whether no two tensors that live in a moment share a point, every view lies where its root lies, and everything is
/// written before it is read or taken.
fn is_disjoint(graph: &Graph, plan: &MemoryPlan) -> bool {
    let n_steps = graph.steps.len();
    let all: Vec<usize> = (0..graph.tensors.len()).collect();
    let of = |root_: usize| all.iter().filter(move |&&t| root(graph, t) == root_);
    let role = |r: usize, role: TensorRole| of(r).any(|&t| graph.tensors[t].role == role);
    let writes = |s: usize, r: usize| graph.steps[s].writes.iter().any(|&t| root(graph, t) == r);
    let reads = |s: usize, r: usize| graph.steps[s].reads.iter().any(|&t| root(graph, t) == r);
    for &r in all.iter().filter(|&&t| root(graph, t) == t) {
        let given = role(r, TensorRole::Input);
        let unwritten = |s: usize| reads(s, r) && !given && !(0..s).any(|before| writes(before, r));
        let untaken = role(r, TensorRole::Output) && !given && !(0..n_steps).any(|s| writes(s, r));
        if (0..n_steps).any(unwritten) || untaken || of(r).any(|&t| plan.places[t] != plan.places[r]) {
            return false;
        }
    }
    // Moment 0 is the start, moment n + 1 the end.
    (0..n_steps + 2).all(|moment| {
        let alive = |r: usize| {
            let given = role(r, TensorRole::Input);
            let touched = |s: usize| writes(s, r) || reads(s, r);
            let begun = given || (0..n_steps).any(|s| s < moment && touched(s));
            let needed = given || role(r, TensorRole::Output) || (0..n_steps).any(|s| s + 1 >= moment && touched(s));
            begun && needed
        };
        let mut seen = HashSet::new();
        let roots = all.iter().filter(|&&t| root(graph, t) == t && alive(t));
        roots.flat_map(|&r| points(plan.places[r])).all(|point| seen.insert(point))
    })
}

/// Whether every region has as many points as its tensor has elements or texels, in the same proportions, all in the pool.
fn fits(graph: &Graph, plan: &MemoryPlan) -> bool {
    let has_room = |(tensor, place): (&GraphTensor, &PoolPlace)| match (tensor.scope, place.region) {
        (Scope::Global, Region::Bytes { size, .. }) => size == tensor.shape[0] * tensor.shape[1],
        (Scope::Texture | Scope::TextureWeight, Region::Texels { width, height, .. }) => {
            [height, width] == tensor.shape[..2]
        }
        _ => false,
    };
    let inside = |place: &PoolPlace| {
        points(*place).iter().all(|&(pool, column, row)| match plan.pools[pool].room {
            Room::Bytes(size) => column < size,
            Room::Texels { width, height } => column < width && row < height,
        })
    };
    graph.tensors.iter().zip(&plan.places).all(has_room) && plan.places.iter().all(inside)
}

#[test]
fn the_judge_agrees_with_counting_every_byte_and_texel() {
    let seed = (0..24_u8, prop::array::uniform2(1..4_u64), prop::array::uniform2(0..5_u64), 0..9_u8, 0..12_u8);
    let steps = prop::collection::vec(
        (prop::collection::vec(0..64_usize, 0..4), prop::collection::vec(0..64_usize, 1..3)),
        0..7,
    );
    let judge = judge();
    let (proved, refuted) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner = TestRunner::new(Config { cases: 4000, failure_persistence: None, ..Config::default() });
    let cases = (prop::collection::vec(seed, 1..9), steps);
    let outcome = runner.run(&cases, |(tensors, steps)| {
        let (graph, plan) = case(&tensors, &steps);
        let reports = judge.check_plan(&graph, &plan);
        let expected = if is_disjoint(&graph, &plan) { &proved } else { &refuted };
        expected.set(expected.get() + 1);
        prop_assert_eq!(reports[0].verdict.is_proved(), is_disjoint(&graph, &plan), "{:?}", reports[0].verdict);
        prop_assert!(
            matches!(reports[0].verdict, Verdict::Proved(_) | Verdict::Refuted(_)),
            "{:?}",
            reports[0].verdict
        );
        prop_assert_eq!(reports[1].verdict.is_proved(), fits(&graph, &plan), "{:?}", reports[1].verdict);
        Ok(())
    });
    outcome.unwrap();
    eprintln!("{} proved, {} refuted", proved.get(), refuted.get());
    assert!(proved.get() > 400 && refuted.get() > 400, "{} proved, {} refuted", proved.get(), refuted.get());
}
