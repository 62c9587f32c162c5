//! The judge against brute force on all maps of a generated family, on all shapes up to 6x6x6x6 and on ragged ones: what is
//! proved is true, what is refuted is false, and nothing is left open.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use tilewright::algebra;
use tilewright::fuzz::map::op::single;
use tilewright::fuzz::map::{Generated, MapRecipe, Op};
use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim, SharedExpr};
use tilewright_verify::{Config, Judge, MapClaim, Verdict};

/// The map that a sequence of operations makes of a shape.
fn generated(shape: &[i64], ops: &[Op]) -> Generated {
    MapRecipe { shape: shape.to_vec(), ops: ops.to_vec(), symbolic: Vec::new() }.build().unwrap()
}

/// The map with a mistake in one of its outputs, as people make them: floor for ceil in the shape, a wrong divisor, swapped
/// extents, an index left out.
fn broken(good: &Generated) -> Vec<Generated> {
    let mut found = Vec::new();
    let mut push = |outputs: Vec<Expr>, shape: Vec<Expr>| {
        let (vars, domain) = (good.map.vars().to_vec(), good.map.domain().to_vec());
        let map = IndexMap::new(vars, domain, outputs, Vec::new()).unwrap();
        found.push(Generated { map, shape, symbols: Vec::new() });
    };
    let rank = good.shape.len();
    for at in 0..rank {
        let mut less = good.shape.clone();
        less[at] = Expr::int(i64::try_from(value(&less[at])).unwrap() - 1);
        push(good.map.outputs().to_vec(), less);
        let mut outputs = good.map.outputs().to_vec();
        outputs[at] = outputs[at].clone().floor_div(Expr::int(2));
        push(outputs, good.shape.clone());
        let mut outputs = good.map.outputs().to_vec();
        outputs[at] = outputs[(at + 1) % rank].clone();
        push(outputs, good.shape.clone());
    }
    found
}

/// What brute force says about a map, and how often each verdict was given.
type Counts = BTreeMap<(&'static str, &'static str), usize>;

fn value(expr: &Expr) -> i128 {
    expr.as_const_int().unwrap()
}

fn points(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |found, &extent| {
        let longer = |point: Vec<i128>| (0..extent).map(move |at| [point.clone(), vec![at]].concat());
        found.into_iter().flat_map(longer).collect()
    })
}

/// The truth about a map, by looking at every point of both sides.
fn truths(case: &Generated) -> HashMap<&'static str, bool> {
    let domain: Vec<i128> = case.map.domain().iter().map(value).collect();
    let shape: Vec<i128> = case.shape.iter().map(value).collect();
    let mut images = HashSet::new();
    let (mut bounds, mut injective) = (true, true);
    let mut reached = vec![false; shape.len()];
    for point in points(&domain) {
        let image = case.map.eval(&point, &Bindings::new()).unwrap();
        bounds &= image.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
        // Where a map leaves its shape it may reach the end all the same.
        for (reached, (at, extent)) in reached.iter_mut().zip(image.iter().zip(&shape)) {
            *reached |= at + 1 == *extent;
        }
        injective &= images.insert(image);
    }
    let tight = reached.iter().all(|reached| *reached);
    HashMap::from([("bounds", bounds), ("injective", injective), ("tight", tight), ("overflow", true)])
}

/// The truth about a claimed inverse and its padding.
fn inverse_truths(case: &Generated, inverse: &InverseClaim) -> [(&'static str, bool); 2] {
    let [domain, shape] = [case.map.domain(), &case.shape].map(|extents| extents.iter().map(value).collect::<Vec<_>>());
    let truth = |expr: &Expr| {
        vec![Expr::IfThenElse(
            SharedExpr::new(expr.clone()),
            SharedExpr::new(Expr::int(1)),
            SharedExpr::new(Expr::int(0)),
        )]
    };
    let of = |outputs| IndexMap::new(inverse.vars.clone(), case.shape.clone(), outputs, Vec::new()).unwrap();
    let (back, padding) = (of(inverse.outputs.clone()), of(truth(&inverse.padding)));
    let at = |map: &IndexMap, index: &[i128]| map.eval(index, &Bindings::new()).unwrap();
    let (mut there, mut spared, mut images) = (true, true, HashSet::new());
    for point in points(&domain) {
        let image = at(&case.map, &point);
        there &= at(&back, &image) == point;
        spared &= at(&padding, &image) == [0];
        images.insert(image);
    }
    for place in points(&shape).into_iter().filter(|place| at(&padding, place) == [0]) {
        let from = at(&back, &place);
        let inside = from.iter().zip(&domain).all(|(at, extent)| (0..*extent).contains(at));
        there &= inside && at(&case.map, &from) == place;
        spared &= images.contains(&place);
    }
    [("inverse", there), ("padding", spared)]
}

/// Holds every verdict on a map against the truth.
fn judged(judge: &Judge, case: &Generated, counts: &mut Counts) {
    let mut truths = truths(case);
    let inverse = algebra::inverse(&case.map, &case.shape, &[]).ok();
    truths.extend(inverse.iter().flat_map(|inverse| inverse_truths(case, inverse)));
    let claim = MapClaim::new(&case.map, &case.shape);
    let claim = inverse.as_ref().map_or(claim, |inverse| claim.inverse(inverse));
    for report in judge.check_map(claim) {
        let of = || format!("{} of {} into {:?}: {}", report.obligation, case.map, case.shape, report.verdict);
        let (word, obligation) = (report.verdict.word(), report.obligation.id());
        *counts.entry((obligation, word)).or_default() += 1;
        let truth = truths[obligation];
        match &report.verdict {
            Verdict::Proved(_) => assert!(truth, "{}", of()),
            Verdict::Refuted(found) => {
                assert!(!truth, "{}", of());
                assert!(!found.text.is_empty(), "{}", of());
            }
            Verdict::Unknown(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => panic!("{}", of()),
        }
    }
    if truths["injective"] && truths["bounds"] {
        // What the algebra claims of a right map has to be right.
        assert!(
            truths.get("inverse") == Some(&true) && truths["padding"],
            "no inverse of {} into {:?}",
            case.map,
            case.shape
        );
    }
}

fn all(cases: &[(Vec<i64>, Vec<Op>)], with_mistakes: bool) -> Counts {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let one = |(shape, ops): &(Vec<i64>, Vec<Op>)| {
        let mut counts = Counts::new();
        let case = generated(shape, ops);
        judged(&judge, &case, &mut counts);
        if with_mistakes {
            for case in &broken(&case) {
                judged(&judge, case, &mut counts);
            }
        }
        counts
    };
    let add = |mut all: Counts, one: Counts| {
        for (key, count) in one {
            *all.entry(key).or_default() += count;
        }
        all
    };
    let counts = cases.par_iter().map(one).reduce(Counts::new, add);
    eprintln!("{} maps: {counts:?}", cases.len());
    counts
}

/// All shapes of up to four axes with extents up to `most`.
fn shapes(most: i64) -> Vec<Vec<i64>> {
    (1..=4u32)
        .flat_map(|rank| points(&vec![most.into(); usize::try_from(rank).unwrap()]))
        .map(|shape| shape.into_iter().map(|extent| i64::try_from(extent).unwrap() + 1).collect())
        .collect()
}

#[test]
fn every_operation_on_every_shape_up_to_6_is_decided_as_by_brute_force() {
    // All shapes, but of the four-dimensional ones each with every other operation, and its neighbour with the rest: that is
    // enough to see every operation on half of them, and takes half the time.
    let operations = |(number, shape): (usize, Vec<i64>)| {
        let rank = shape.len();
        let chosen = single(rank).into_iter().enumerate().filter(move |(at, _)| rank < 4 || (at + number) % 2 == 0);
        chosen.map(move |(_, op)| (shape.clone(), vec![op]))
    };
    let cases: Vec<_> = shapes(6).into_iter().enumerate().flat_map(operations).collect();
    let counts = all(&cases, false);
    assert!(counts[&("injective", "proved")] > 40_000, "{counts:?}");
}

#[test]
fn mistakes_are_refuted_and_only_mistakes() {
    let ragged = [vec![7], vec![3, 5], vec![2, 5, 3], vec![8, 6], vec![2, 3, 5, 4]];
    let cases: Vec<_> = ragged
        .into_iter()
        .flat_map(|shape| single(shape.len()).into_iter().map(move |op| (shape.clone(), vec![op])))
        .collect();
    let counts = all(&cases, true);
    for obligation in ["bounds", "injective", "tight"] {
        assert!(counts[&(obligation, "refuted")] > 20, "{counts:?}");
    }
}

#[test]
fn sequences_of_two_and_three_operations_on_ragged_shapes_are_decided() {
    let mut cases = Vec::new();
    for shape in [vec![7], vec![3, 5], vec![8, 6], vec![2, 7, 5]] {
        let ops = single(shape.len());
        for (first, second) in ops.iter().flat_map(|first| ops.iter().map(move |second| (*first, *second))) {
            cases.push((shape.clone(), vec![first, second]));
        }
    }
    for (position, &first) in single(3).iter().enumerate() {
        for (other, &second) in single(3).iter().enumerate() {
            let third = single(4)[(position * 7 + other * 3) % single(4).len()];
            cases.push((vec![3, 4, 5], vec![first, second, third]));
        }
    }
    let counts = all(&cases, false);
    assert!(counts[&("injective", "proved")] > 2000, "{counts:?}");
}
