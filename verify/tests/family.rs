//! A generated family of maps on all small shapes, good ones and broken ones, against brute force: every verdict is the
//! truth, none is unknown, and every collision is the first one.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, InverseClaim, Var};
use tilewright_verify::{Config, Judge, MapClaim, Report, Verdict};

fn int(value: i128) -> Expr {
    Expr::int(value.try_into().unwrap())
}

fn ceil(a: i128, b: i128) -> i128 {
    (a + b - 1) / b
}

fn points(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |found, &extent| {
        let longer = |point: Vec<i128>| (0..extent).map(move |at| [point.clone(), vec![at]].concat());
        found.into_iter().flat_map(longer).collect()
    })
}

struct Sample {
    map: IndexMap,
    shape: Vec<i128>,
}

/// A map of some kind over `extents`, with blocks of `b`.
fn sample(kind: usize, extents: &[i128], b: i128) -> Sample {
    let vars: Vec<Var> = ["n", "h", "w", "c"].iter().take(extents.len()).map(|name| Var::index(*name)).collect();
    let at = |axis: usize| Expr::from(&vars[axis]);
    let last = extents.len() - 1;
    let (x, e) = (at(last), extents[last]);
    let all = |exprs: Vec<Expr>, more: &[Expr]| [exprs, more.to_vec()].concat();
    let others: Vec<Expr> = (0..last).map(at).collect();
    let chain = |exprs: &[Expr], extents: &[i128]| {
        exprs.iter().zip(extents).fold(int(0), |flat, (index, extent)| flat * int(*extent) + index.clone())
    };
    let rest = extents[..last].to_vec();
    let join = |shape: Vec<i128>, more: &[i128]| [shape, more.to_vec()].concat();
    let blocks = [x.clone().floor_div(int(b)), x.clone().floor_mod(int(b))];
    let (outputs, shape) = match kind {
        // Split of the last axis.
        0 => (all(others, &blocks), join(rest, &[ceil(e, b), b.min(e)])),
        // The same, a block too few.
        1 => (all(others, &blocks), join(rest, &[ceil(e, b) - 1, b.min(e)])),
        // All fused, in reversed order.
        2 => {
            let reversed: Vec<Expr> = (0..=last).rev().map(at).collect();
            let sizes: Vec<i128> = extents.iter().rev().copied().collect();
            (vec![chain(&reversed, &sizes)], vec![extents.iter().product()])
        }
        // Fused with the sizes of the wrong order.
        3 => {
            let reversed: Vec<Expr> = (0..=last).rev().map(at).collect();
            (vec![chain(&reversed, extents)], vec![extents.iter().product()])
        }
        // Rows with padding between them, or overlapping ones.
        4 | 5 => {
            let pitch = if kind == 4 { e + b } else { (e - 1).max(1) };
            let row = at(0) * int(pitch) + x;
            (vec![row], vec![(extents[0] - 1) * pitch + e])
        }
        // Tiles of tiles.
        6 => {
            let inner = x.clone().floor_mod(int(2 * b));
            let tiles = [x.floor_div(int(2 * b)), inner.clone().floor_div(int(b)), inner.floor_mod(int(b))];
            (all(others, &tiles), join(rest, &[ceil(e, 2 * b), ceil(e.min(2 * b), b), b.min(e)]))
        }
        // An xor swizzle by the row: right where the extent is a power of two.
        7 => {
            let mixed = Expr::binary(BinaryOp::BitXor, x, at(0).floor_mod(int(b)));
            (all(others, &[mixed]), join(rest, &[e]))
        }
        // Rotation and reversal.
        8 => {
            let turned = (x + int(b)).floor_mod(int(e));
            let back = int(extents[0] - 1) - at(0);
            (vec![back, turned], vec![extents[0], e])
        }
        // Redundant outputs, and a block's index lost.
        9 => (all(others, &[x.clone(), x.floor_mod(int(b))]), join(rest, &[e, b])),
        _ => (all(others, &blocks[1..]), join(rest, &[b.min(e)])),
    };
    Sample { map: IndexMap::new(vars, extents.iter().map(|e| int(*e)).collect(), outputs, vec![]).unwrap(), shape }
}

const KINDS: usize = 11;

struct Truth {
    bounds: bool,
    collision: Option<[Vec<i128>; 2]>,
    tight: bool,
    outside: Option<Vec<i128>>,
}

fn truth(sample: &Sample, extents: &[i128]) -> Truth {
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let mut truth = Truth { bounds: true, collision: None, tight: true, outside: None };
    let mut reached = vec![false; sample.shape.len()];
    for point in points(extents) {
        let image = sample.map.eval(&point, &Bindings::new()).unwrap();
        if !image.iter().zip(&sample.shape).all(|(at, extent)| (0..*extent).contains(at)) {
            truth.bounds = false;
            truth.outside.get_or_insert_with(|| point.clone());
        }
        for (reached, (at, extent)) in reached.iter_mut().zip(image.iter().zip(&sample.shape)) {
            *reached |= at + 1 == *extent;
        }
        if let Some(first) = seen.get(&image) {
            truth.collision.get_or_insert_with(|| [first.clone(), point.clone()]);
        } else {
            seen.insert(image, point);
        }
    }
    truth.tight = reached.iter().all(|reached| *reached);
    truth
}

fn report<'r>(reports: &'r [Report], id: &str) -> &'r Report {
    reports.iter().find(|report| report.obligation.id() == id).unwrap()
}

fn check(judge: &Judge, sample: &Sample, extents: &[i128]) -> [bool; 3] {
    let shape: Vec<Expr> = sample.shape.iter().map(|extent| int(*extent)).collect();
    let reports = judge.check_map(MapClaim::new(&sample.map, &shape));
    let truth = truth(sample, extents);
    let facts = [("bounds", truth.bounds), ("injective", truth.collision.is_none()), ("tight", truth.tight)];
    for (id, holds) in facts {
        let report = report(&reports, id);
        let expected = if holds { "proved" } else { "refuted" };
        let text = format!("{id} of {} on {extents:?} into {:?}: {}", sample.map, sample.shape, report.verdict);
        assert_eq!(report.verdict.word(), expected, "{text} [{}]", report.method);
        assert!(
            report.method.to_string().starts_with("enumeration") || report.method.to_string().starts_with("intervals"),
            "{}",
            report.method
        );
    }
    if let (Verdict::Refuted(found), Some(pair)) = (&report(&reports, "injective").verdict, truth.collision) {
        assert_eq!(found.indices, pair, "the first collision of {} on {extents:?}", sample.map);
    }
    if let (Verdict::Refuted(found), Some(point)) = (&report(&reports, "bounds").verdict, truth.outside) {
        assert_eq!(found.indices, [point], "the first index out of bounds of {} on {extents:?}", sample.map);
    }
    facts.map(|(_, holds)| holds)
}

fn run(all_shapes: &[Vec<i128>]) {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let mut counts = [[0; 2]; 3];
    for extents in all_shapes {
        for kind in 0..KINDS {
            for b in 2..5 {
                let holds = check(&judge, &sample(kind, extents, b), extents);
                for (count, holds) in counts.iter_mut().zip(holds) {
                    count[usize::from(holds)] += 1;
                }
            }
        }
    }
    eprintln!("refuted and proved of bounds, injective, tight: {counts:?}");
    assert!(counts.iter().all(|count| count[0] > 10 && count[1] > 100), "{counts:?}");
}

fn shapes(rank: usize, most: i128) -> Vec<Vec<i128>> {
    points(&vec![most; rank]).into_iter().map(|point| point.into_iter().map(|at| at + 1).collect()).collect()
}

#[test]
fn every_verdict_on_small_shapes_is_right() {
    run(&[shapes(1, 9), shapes(2, 6), shapes(3, 4), shapes(4, 3)].concat());
}

#[test]
fn every_verdict_on_ragged_shapes_is_right() {
    run(&[vec![2, 7, 9, 17], vec![3, 5, 2, 11], vec![13, 4, 6], vec![19, 23], vec![7, 16], vec![97]]);
}

#[test]
fn every_verdict_on_all_shapes_up_to_six_is_right() {
    run(&[shapes(3, 6), shapes(4, 6)].concat());
}

#[test]
fn verdicts_on_inverse_and_padding_of_small_shapes_are_right() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let (mut proved, mut refuted) = (0, 0);
    for extents in [shapes(1, 9), shapes(2, 6)].concat() {
        for (b, wrong) in [(2i128, false), (3, false), (4, false), (3, true), (2, true)] {
            let sample = sample(0, &extents, b);
            let shape: Vec<Expr> = sample.shape.iter().map(|extent| int(*extent)).collect();
            let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::index(format!("p{axis}"))).collect();
            let (outer, inner) = (Expr::from(&vars[shape.len() - 2]), Expr::from(&vars[shape.len() - 1]));
            let back = outer * int(b) + inner;
            let mut outputs: Vec<Expr> = vars[..shape.len() - 2].iter().map(Expr::from).collect();
            outputs.push(back.clone());
            let extent = extents[extents.len() - 1];
            // A wrong claim calls the last used index padding too.
            let limit = if wrong { extent - 1 } else { extent };
            let padding = Expr::binary(BinaryOp::Ge, back, int(limit));
            let inverse = InverseClaim { vars, outputs, padding };
            let reports = judge.check_map(MapClaim::new(&sample.map, &shape).inverse(&inverse));
            assert_eq!(report(&reports, "inverse").verdict.word(), "proved", "{} on {extents:?}", sample.map);
            let padding = &report(&reports, "padding").verdict;
            assert_eq!(
                padding.word(),
                if wrong { "refuted" } else { "proved" },
                "{} on {extents:?}: {padding}",
                sample.map
            );
            if let Verdict::Refuted(found) = padding {
                let first = [vec![0; extents.len() - 1], vec![extent - 1]].concat();
                assert_eq!(found.indices, [first], "{}", found.text);
                refuted += 1;
            } else {
                proved += 1;
            }
        }
    }
    assert!(proved > 80 && refuted > 40);
}
