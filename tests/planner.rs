//! Memory plans of a thousand generated graphs: each is proved, best is never larger than compatible or than unshared, and none is smaller than the lower bound.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod graphs;

use graphs::Random;
use tilewright::fuzz::graph::network;
use tilewright::graph::{GraphBuilder, NamedGraph};
use tilewright::planner::{Figures, Strategy, figures, lifetimes, plan, plan_within};
use tilewright_ir::{MemoryPlan, PoolPlace, Region, Room, ScalarType, Scope, TextureLimits};
use tilewright_verify::{Config, Judge, Verdict};

const GRAPHS: u64 = 1000;
const STRATEGIES: [Strategy; 3] = [Strategy::Unshared, Strategy::Compatible, Strategy::Best];

fn proves(judge: &Judge, graph: &NamedGraph, plan: &MemoryPlan, what: &str) {
    let reports = judge.check_plan(&graph.graph, plan);
    assert!(reports.len() >= 3, "{what}: {reports:?}");
    for report in reports {
        assert!(report.verdict.is_proved(), "{what}: {}: {}", report.obligation, report.verdict);
    }
}

fn measured(graph: &NamedGraph, plan: &MemoryPlan) -> Figures {
    figures(&graph.graph, plan, TextureLimits::PROMISED).unwrap()
}

#[test]
fn every_plan_of_a_thousand_graphs_is_proved_and_none_is_worse_than_the_one_before() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let mut better = 0;
    for seed in 0..GRAPHS {
        let graph = graphs::random(seed);
        let plans = STRATEGIES.map(|strategy| plan(&graph.graph, strategy).unwrap());
        for (plan, strategy) in plans.iter().zip(STRATEGIES) {
            proves(&judge, &graph, plan, &format!("seed {seed}, {strategy:?}"));
        }
        let [unshared, compatible, best] = plans.each_ref().map(|plan| measured(&graph, plan));
        for (k, part) in best.parts.iter().enumerate() {
            let amounts = part.amounts;
            assert!(amounts.lower_bound <= amounts.planned, "seed {seed}: {part:?}");
            assert!(amounts.planned <= amounts.compatible, "seed {seed}: {part:?}");
            assert!(amounts.planned <= amounts.unshared, "seed {seed}: {part:?}");
            // A texture of TVM's planner may grow by more than it saves.
            let is_texture = part.texture.is_some();
            assert!(is_texture || amounts.compatible <= amounts.unshared, "seed {seed}: {part:?}");
            assert_eq!(compatible.parts[k].amounts.planned, amounts.compatible, "seed {seed}");
            assert_eq!(unshared.parts[k].amounts.planned, amounts.unshared, "seed {seed}");
        }
        better += u64::from(best.bytes.planned < best.bytes.compatible);
    }
    assert!(better > GRAPHS / 4, "best is smaller on {better} graphs only");
}

/// One thing of a plan is changed, so that two tensors that live at once share memory or a pool is too small.
fn broken(random: &mut Random, graph: &NamedGraph, plan: &MemoryPlan) -> Option<(MemoryPlan, &'static str)> {
    let mut plan = plan.clone();
    let tensors = &graph.graph.tensors;
    let pool = random.place(plan.pools.len());
    let used = |plan: &MemoryPlan| plan.places.iter().any(|place| place.pool == pool);
    match random.below(4) {
        0 => {
            let Room::Bytes(bytes) = &mut plan.pools[pool].room else { return None };
            *bytes = bytes.checked_sub(1)?;
            used(&plan).then_some((plan, "plan-fits"))
        }
        1 => {
            let Room::Texels { width, height } = &mut plan.pools[pool].room else { return None };
            *if random.percent(50) { width } else { height } -= 1;
            used(&plan).then_some((plan, "plan-fits"))
        }
        2 => {
            let at = random.place(tensors.len());
            if !tensors[at].scope.is_texture() {
                return None;
            }
            let dtype = &mut plan.pools[plan.places[at].pool].dtype;
            *dtype = if dtype.scalar == ScalarType::UInt16 { ScalarType::Int8 } else { ScalarType::UInt16 }.into();
            Some((plan, "plan-type"))
        }
        _ => {
            let lives = lifetimes(&graph.graph).unwrap();
            let (one, other) = (random.place(tensors.len()), random.place(tensors.len()));
            let kind = |at: usize| (tensors[at].scope, tensors[at].scope.is_texture().then_some(tensors[at].dtype));
            let no_view =
                |at: usize| tensors.iter().all(|tensor| tensor.view_of != Some(at)) && tensors[at].view_of.is_none();
            let at_once = lives[one].first <= lives[other].last && lives[other].first <= lives[one].last;
            let full = tensors[one].shape.iter().chain(&tensors[other].shape).all(|&extent| extent > 0);
            if !(at_once && full && no_view(one) && no_view(other) && one != other && kind(one) == kind(other)) {
                return None;
            }
            let room = tensors[one].room().unwrap();
            let region = match (room, plan.places[other].region) {
                (Room::Bytes(size), Region::Bytes { offset, .. }) => Region::Bytes { offset, size },
                (Room::Texels { width, height }, Region::Texels { x, y, .. }) => Region::Texels { x, y, width, height },
                _ => return None,
            };
            plan.places[one] = PoolPlace { pool: plan.places[other].pool, region };
            Some((plan, "plan-disjoint"))
        }
    }
}

#[test]
fn a_plan_with_one_thing_changed_is_refuted() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let mut found = std::collections::BTreeMap::new();
    for seed in 0..GRAPHS {
        let mut random = Random::new(seed);
        let graph = graphs::random(seed);
        let plan = plan(&graph.graph, STRATEGIES[random.place(3)]).unwrap();
        for _ in 0..16 {
            let Some((broken, obligation)) = broken(&mut random, &graph, &plan) else { continue };
            let reports = judge.check_plan(&graph.graph, &broken);
            let report = reports.iter().find(|report| report.obligation.id() == obligation).unwrap();
            assert!(matches!(report.verdict, Verdict::Refuted(_)), "seed {seed}: {obligation}: {}", report.verdict);
            *found.entry(obligation).or_insert(0) += 1;
        }
    }
    assert!(found.len() == 3 && found.values().all(|&count| count > 300), "{found:?}");
}

#[test]
fn plans_do_not_depend_on_the_run() {
    for seed in 0..50 {
        let graph = graphs::random(seed).graph;
        for strategy in STRATEGIES {
            assert_eq!(plan(&graph, strategy), plan(&graph, strategy), "seed {seed}");
        }
    }
}

#[test]
fn ten_thousand_tensors_are_planned_and_proved() {
    let graph = network(10_000).unwrap();
    assert!(graph.graph.tensors.len() >= 10_000);
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    proves(&judge, &graph, &plan, "network");
    let figures = measured(&graph, &plan);
    assert!(figures.bytes.planned <= figures.bytes.compatible);
    assert!(figures.bytes.planned * 4 < figures.bytes.unshared, "{figures:?}");
}

/// Ten thousand tensors that are alive at once, one step that reads them all: no pair is looked at twice over.
#[test]
fn many_tensors_alive_at_once_are_planned() {
    for scope in [Scope::Global, Scope::Texture] {
        let mut graph = GraphBuilder::new();
        let x = graph.input("x", [7, 3, 4], ScalarType::Float32, scope);
        let mut all = Vec::new();
        for at in 0..10_000_u64 {
            let tensor = graph.tensor(format!("t{at}"), [1 + at % 97, 1 + at % 89, 4], ScalarType::Float32, scope);
            graph.step(format!("s{at}"), [x], [tensor]);
            all.push(tensor);
        }
        let y = graph.tensor("y", [7, 3, 4], ScalarType::Float32, scope);
        graph.step("sum", all, [y]);
        graph.output(y);
        let graph = graph.finish().unwrap();
        let plan = plan(&graph.graph, Strategy::Best).unwrap();
        let figures = measured(&graph, &plan);
        assert!(figures.bytes.planned <= figures.bytes.compatible);
    }
}

#[test]
fn textures_above_the_limits_are_refused_and_no_pool_is_above_them() {
    let mut graph = GraphBuilder::new();
    let x = graph.input("x", [3, 5, 4], ScalarType::Float16, Scope::Texture);
    let mut all = Vec::new();
    for at in 0..60_u64 {
        let tensor = graph.tensor(format!("t{at}"), [1 + at % 7, 1 + at % 11, 4], ScalarType::Float16, Scope::Texture);
        graph.step(format!("s{at}"), [x], [tensor]);
        all.push(tensor);
    }
    for &tensor in &all {
        graph.output(tensor);
    }
    let graph = graph.finish().unwrap();
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let limits = TextureLimits { width: 11, height: 7 };
    for strategy in STRATEGIES {
        let plan = plan_within(&graph.graph, strategy, limits).unwrap();
        proves(&judge, &graph, &plan, "limits");
        for pool in &plan.pools {
            assert!(matches!(pool.room, Room::Texels { width: ..=11, height: ..=7 }), "{pool:?}");
        }
    }
    for limits in [TextureLimits { width: 10, height: 7 }, TextureLimits { width: 11, height: 6 }] {
        let fault = plan_within(&graph.graph, Strategy::Best, limits).unwrap_err();
        assert_eq!(fault.code, "texture-limits", "{fault}");
    }
}

#[test]
fn inputs_are_never_shared_and_outputs_live_to_the_end() {
    let mut graph = GraphBuilder::new();
    let buffer = |graph: &mut GraphBuilder, name: &str| graph.tensor(name, [3, 5], ScalarType::Float32, Scope::Global);
    let x = graph.input("x", [3, 5], ScalarType::Float32, Scope::Global);
    let (a, b, c) = (buffer(&mut graph, "a"), buffer(&mut graph, "b"), buffer(&mut graph, "c"));
    graph.step("one", [x], [a]);
    graph.step("two", [a], [b]);
    graph.step("three", [b], [c]);
    let early = graph.view("early", a, [15]);
    graph.output(early);
    graph.output(c);
    let graph = graph.finish().unwrap();
    // `a` lives on in its view, so `c` may not take its memory.
    for strategy in STRATEGIES {
        let plan = plan(&graph.graph, strategy).unwrap();
        let apart = |one: usize, other: usize| {
            let (one, other) = (plan.places[one], plan.places[other]);
            one.pool != other.pool || !one.region.overlaps(other.region)
        };
        assert!(apart(a, b) && apart(a, c) && apart(b, c), "{strategy:?}: {plan:?}");
        assert_eq!(plan.places[a], plan.places[early]);
        assert!((1..plan.places.len()).all(|other| plan.places[other].pool != plan.places[x].pool));
    }
    let lives: Vec<_> = lifetimes(&graph.graph).unwrap().iter().map(|life| (life.first, life.last)).collect();
    assert_eq!(lives, [(0, 2), (0, 2), (1, 2), (2, 2), (0, 2)]);
}

#[test]
fn two_textures_lie_side_by_side_where_one_was_and_never_where_the_step_reads() {
    let mut graph = GraphBuilder::new();
    let texture = |graph: &mut GraphBuilder, name: &str, width, height| {
        graph.tensor(name, [height, width, 4], ScalarType::Float16, Scope::Texture)
    };
    let x = graph.input("x", [9, 14, 4], ScalarType::Float16, Scope::Texture);
    let wide = texture(&mut graph, "wide", 14, 9);
    let between = texture(&mut graph, "between", 3, 2);
    let left = texture(&mut graph, "left", 8, 9);
    let right = texture(&mut graph, "right", 6, 9);
    let y = texture(&mut graph, "y", 3, 2);
    graph.step("one", [x], [wide]);
    graph.step("two", [wide], [between]);
    graph.step("three", [between], [left]);
    graph.step("four", [between], [right]);
    graph.step("five", [left, right], [y]);
    graph.output(y);
    let graph = graph.finish().unwrap();
    let at = |plan: &MemoryPlan, tensor: usize| plan.places[tensor];
    let best = plan(&graph.graph, Strategy::Best).unwrap();
    let PoolPlace { pool, .. } = at(&best, wide);
    assert_eq!((at(&best, left).pool, at(&best, right).pool), (pool, pool), "{best:?}");
    assert_ne!(at(&best, left).region, at(&best, right).region);
    assert!(at(&best, between).pool != pool && at(&best, y).pool != pool);
    assert_eq!(best.pools[pool].room, Room::Texels { width: 14, height: 9 });
    assert!(matches!(at(&best, right).region, Region::Texels { y: 0, height: 9, .. }));
    let amounts = measured(&graph, &best).parts[0].amounts;
    let input = 9 * 14;
    assert_eq!((amounts.planned, amounts.lower_bound), (input + 14 * 9 + 6, input + 14 * 9 + 6));
    // The compatible planner has one texture for each of the two.
    assert_eq!(amounts.compatible, input + 14 * 9 + 6 + 6 * 9);
}
