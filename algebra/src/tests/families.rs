//! Random maps of every family on small extents: shape, inverse and padding against enumeration of all logical and
//! physical indices.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use tilewright_ir::{Bindings, IndexMap};

use super::super::{inverse, padding_of, physical_shape};
use super::inverses::read;
use super::{bind, points};

/// Returns the outputs of an index `x` of extent `e`, given two small numbers.
type Family = fn(x: &str, e: i64, a: i64, b: i64) -> Vec<String>;

const FAMILIES: [(&str, Family); 18] = [
    ("as it is", |x, _, _, _| vec![x.into()]),
    ("split", |x, _, a, _| vec![format!("{x} // {a}"), format!("{x} % {a}")]),
    ("split twice", |x, _, a, b| vec![format!("{x} // {}", a * b), format!("{x} // {b} % {a}"), format!("{x} % {b}")]),
    ("split twice in one", |x, _, a, b| vec![format!("({x} // {} * {a} + {x} // {b} % {a}) * {b} + {x} % {b}", a * b)]),
    ("rotation", |x, e, a, _| vec![format!("({x} + {a}) % {e}")]),
    ("rotation, split", |x, e, a, b| vec![format!("({x} + {a}) % {e} // {b}"), format!("({x} + {a}) % {e} % {b}")]),
    ("reversal", |x, e, _, _| vec![format!("{} - {x}", e - 1)]),
    ("reversal, split", |x, e, a, _| vec![format!("({} - {x}) // {a}", e - 1), format!("({} - {x}) % {a}", e - 1)]),
    ("offset, split", |x, _, a, b| vec![format!("({x} + {b}) // {a}"), format!("({x} + {b}) % {a}")]),
    ("stride", |x, _, a, b| vec![format!("{x} * {a} + {b}")]),
    ("xor", |x, _, a, _| vec![format!("{x} ^ {a}")]),
    ("gray code", |x, _, _, _| vec![format!("{x} ^ ({x} >> 1)")]),
    ("shift and mask", |x, _, _, _| vec![format!("{x} >> 2"), format!("{x} & 3")]),
    ("shift and or", |x, _, _, _| vec![format!("({x} >> 2) << 3 | ({x} & 3)")]),
    ("two cases", |x, e, a, _| {
        let a = a.min(e);
        vec![format!("{x} + {} if {x} < {a} else {x} - {a}", e - a)]
    }),
    ("min and max", |x, _, a, _| vec![format!("min({x}, {a})"), format!("max({x} - {a}, 0)")]),
    ("twice", |x, _, a, _| vec![x.into(), format!("{x} % {a}")]),
    ("with a constant", |x, _, _, b| vec![x.into(), b.to_string()]),
];

/// Returns the output of a second index `y` of extent `e` that is combined with a first index `x`.
type Pair = fn(x: &str, y: &str, e: i64) -> String;

const PAIRS: [(&str, Pair); 5] = [
    ("skew", |x, y, e| format!("({x} + {y}) % {e}")),
    ("xor swizzle", |x, y, _| format!("{y} ^ ({x} & 7)")),
    ("xor", |x, y, _| format!("{y} ^ {x}")),
    ("sum", |x, y, _| format!("{y} + {x}")),
    ("back and forth", |x, y, e| format!("{y} if {x} % 2 == 0 else {} - {y}", e - 1)),
];

/// Checks that shape, inverse and padding of a map are those found by enumeration.
fn check(map: &IndexMap) -> Result<(), TestCaseError> {
    let constant = |shape: &[tilewright_ir::Expr]| -> Vec<i128> {
        shape.iter().map(|extent| extent.as_const_int().unwrap()).collect()
    };
    let none = Bindings::new();
    let shape = physical_shape(map, &[]).map_err(|fault| TestCaseError::fail(format!("{map}: {fault}")))?;
    prop_assert!(shape.padded_axes.is_empty(), "{map}: the extents are not exact");
    let logical: Vec<Vec<i128>> = points(&constant(map.domain()));
    let images: HashMap<Vec<i128>, &Vec<i128>> =
        logical.iter().map(|point| (map.eval(point, &none).unwrap(), point)).collect();
    prop_assert_eq!(images.len(), logical.len(), "{} is a bad test", map);
    for (axis, extent) in constant(&shape.extents).into_iter().enumerate() {
        let largest = logical.iter().map(|point| map.eval(point, &none).unwrap()[axis]).max().unwrap();
        prop_assert_eq!(largest + 1, extent, "axis {} of {}", axis, map);
    }
    let claim = inverse(map, &shape.extents, &[]).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
    let own = padding_of(map, &shape.extents, &claim.vars, &claim.outputs, &[]);
    for place in points(&constant(&shape.extents)) {
        let bindings = bind(&claim.vars, &place);
        let from = images.get(&place);
        for padding in [&claim.padding, &own] {
            let padding = padding.eval_index(&bindings);
            prop_assert_eq!(
                padding,
                Ok(i128::from(from.is_none())),
                "{} at {:?} of {}",
                claim.padding_lambda(),
                place,
                map
            );
        }
        if let Some(&point) = from {
            let back: Result<Vec<_>, _> = claim.outputs.iter().map(|output| output.eval_index(&bindings)).collect();
            prop_assert_eq!(back.as_ref(), Ok(point), "{} at {:?} of {}", claim.lambda(), place, map);
        }
    }
    Ok(())
}

/// Draws an index: its family, its extent, and the two numbers.
fn index() -> impl Strategy<Value = (usize, i64, i64, i64)> {
    (0..FAMILIES.len(), 1i64..14, 1i64..6, 1i64..5)
}

/// Returns the outputs of a map, and the names of its families.
fn outputs(indices: &[(usize, i64, i64, i64)], pair: Option<usize>) -> (Vec<String>, String) {
    let (mut parts, mut names): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for (position, &(family, extent, a, b)) in indices.iter().enumerate() {
        let name = format!("x{position}");
        if let (1, Some(pair)) = (position, pair) {
            parts.push(PAIRS[pair].1("x0", &name, extent));
            names.push(PAIRS[pair].0);
        } else {
            // The first index of a pair must be an output itself, or the pair could not be inverted.
            let family = if position == 0 && pair.is_some() { 0 } else { family };
            parts.extend(FAMILIES[family].1(&name, extent, a, b));
            names.push(FAMILIES[family].0);
        }
    }
    (parts, names.join("; "))
}

fn map_of(indices: &[(usize, i64, i64, i64)], parts: &[String]) -> IndexMap {
    let vars: Vec<_> = (0..indices.len()).map(|position| format!("x{position}")).collect();
    let shape: Vec<_> = indices.iter().map(|(_, extent, ..)| extent.to_string()).collect();
    read(&format!("lambda {}: [{}]", vars.join(", "), parts.join(", ")), &format!("[{}]", shape.join(", ")), "").0
}

#[test]
fn random_maps_of_all_families_are_inverted_with_exact_padding() {
    let cases = AtomicUsize::new(0);
    let strategy = (prop::collection::vec(index(), 1..4), prop::option::of(0..PAIRS.len()), any::<bool>(), 0usize..6);
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)).run(
        &strategy,
        |(indices, pair, fused, turn)| {
            let volume: i64 = indices.iter().map(|(_, extent, ..)| *extent).product();
            prop_assume!(volume <= 1500);
            let (mut parts, names) = outputs(&indices, pair);
            let turn = turn % parts.len();
            parts.rotate_left(turn);
            if fused && parts.len() > 1 {
                // Row-major, with the extents that the parts need.
                let shape = physical_shape(&map_of(&indices, &parts), &[]).unwrap().extents;
                let numeral = parts.iter().zip(&shape).map(|(part, extent)| (format!("({part})"), extent.to_string()));
                let numeral =
                    numeral.reduce(|(high, _), (low, extent)| (format!("({high} * {extent} + {low})"), extent));
                parts = vec![numeral.unwrap().0];
            }
            let map = map_of(&indices, &parts);
            cases.fetch_add(1, Ordering::Relaxed);
            check(&map).map_err(|error| TestCaseError::fail(format!("{names}, {:?}: {error}", map.domain())))
        },
    );
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(cases.load(Ordering::Relaxed) >= 100);
}

#[test]
fn every_family_is_inverted_on_every_small_extent() {
    for (position, _) in FAMILIES.iter().enumerate() {
        for extent in 1..=13 {
            for (a, b) in [(1, 2), (2, 3), (3, 2), (4, 4), (5, 1)] {
                let indices = [(position, extent, a, b)];
                let (parts, name) = outputs(&indices, None);
                check(&map_of(&indices, &parts)).unwrap_or_else(|error| panic!("{name}, extent {extent}: {error}"));
            }
        }
    }
    for (position, (name, _)) in PAIRS.iter().enumerate() {
        for (first, second) in [(1, 8), (5, 7), (7, 8), (9, 4), (3, 11)] {
            let indices = [(0, first, 1, 1), (0, second, 1, 1)];
            let (parts, _) = outputs(&indices, Some(position));
            check(&map_of(&indices, &parts)).unwrap_or_else(|error| panic!("{name}, {first} x {second}: {error}"));
        }
    }
}
