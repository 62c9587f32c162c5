//! The judge against brute force on all maps of a generated family, on all shapes up to 6x6x6x6 and on ragged ones: what is
//! proved is true, what is refuted is false, and nothing is left open.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod family;

use std::collections::{BTreeMap, HashMap, HashSet};

use family::{Generated, Op, broken, generated, single};
use rayon::prelude::*;
use tilewright::algebra;
use tilewright_ir::{Bindings, Expr};
use tilewright_verify::{Config, Judge, MapClaim, Verdict};

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
    let mut largest = vec![-1; shape.len()];
    for point in points(&domain) {
        let image = case.map.eval(&point, &Bindings::new()).unwrap();
        bounds &= image.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
        for (largest, at) in largest.iter_mut().zip(&image) {
            *largest = (*largest).max(*at);
        }
        injective &= images.insert(image);
    }
    let tight = largest.iter().zip(&shape).all(|(largest, extent)| largest + 1 == *extent);
    HashMap::from([("bounds", bounds), ("injective", injective), ("tight", tight), ("overflow", true)])
}

/// Holds every verdict on a map against the truth.
fn judged(judge: &Judge, case: &Generated, counts: &mut Counts) {
    let truths = truths(case);
    let inverse = algebra::inverse(&case.map, &case.shape, &[]).ok();
    let claim = MapClaim::new(&case.map, &case.shape);
    let claim = inverse.as_ref().map_or(claim, |inverse| claim.inverse(inverse));
    for report in judge.check_map(claim) {
        let of = || format!("{} of {} into {:?}: {}", report.obligation, case.map, case.shape, report.verdict);
        let (word, obligation) = (report.verdict.word(), report.obligation);
        *counts.entry((obligation, word)).or_default() += 1;
        // An inverse and its padding are claims of the algebra, which have to be right.
        let truth = truths.get(obligation).copied().unwrap_or(truths["injective"] && truths["bounds"]);
        match &report.verdict {
            Verdict::Proved => assert!(truth, "{}", of()),
            Verdict::Refuted(found) => {
                assert!(!truth, "{}", of());
                assert!(!found.text.is_empty(), "{}", of());
            }
            Verdict::Unknown(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => panic!("{}", of()),
        }
    }
    if truths["injective"] && truths["bounds"] {
        assert!(inverse.is_some(), "no inverse of {} into {:?}", case.map, case.shape);
    }
}

fn all(cases: &[(Vec<i64>, Vec<Op>)], with_mistakes: bool) -> Counts {
    let judge = Judge::new(Config::default()).unwrap();
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
    let cases: Vec<_> = shapes(6)
        .into_iter()
        .flat_map(|shape| single(shape.len()).into_iter().map(move |op| (shape.clone(), vec![op])))
        .collect();
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
