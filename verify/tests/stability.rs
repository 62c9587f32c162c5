//! Verdicts do not depend on Z3's random seed, nor on the names of variables or the order in which they are created.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::map::Mapped;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Expr, IndexMap, Var};
use tilewright_verify::{Config, Judge, MapClaim, Verdict};

/// A map as text; its indices and extents get other names.
struct Case {
    name: &'static str,
    map: &'static str,
    domain: &'static str,
    shape: &'static str,
    padded: &'static [usize],
    /// The obligations that are refuted; all others are proved.
    refuted: &'static [&'static str],
}

const NCHW4C: &str = "lambda n, h, w, c: [n, c // 4, h, w, c % 4]";
const TILE: &str = "lambda r, c: [r // 8, c // 128, r % 8 // 2, c % 128, r % 8 % 2]";

impl Case {
    const fn padded(self, padded: &'static [usize]) -> Self {
        Self { padded, ..self }
    }

    const fn refuted(self, refuted: &'static [&'static str]) -> Self {
        Self { refuted, ..self }
    }
}

const fn case(name: &'static str, map: &'static str, domain: &'static str, shape: &'static str) -> Case {
    Case { name, map, domain, shape, padded: &[], refuted: &[] }
}

const CASES: [Case; 20] = [
    case("nchw4c", NCHW4C, "2, 7, 9, 17", "2, (17 + 3) // 4, 7, 9, 4"),
    case("nchw4c, large", NCHW4C, "32, 224, 223, 65", "32, (65 + 3) // 4, 224, 223, 4"),
    case("nchw4c, symbolic", NCHW4C, "N, H, W, C", "N, (C + 3) // 4, H, W, 4").padded(&[4]),
    case(
        "flat nchw4c",
        "lambda n, h, w, c: [(((n * ((17 + 3) // 4) + c // 4) * 7 + h) * 9 + w) * 4 + c % 4]",
        "2, 7, 9, 17",
        "2 * ((17 + 3) // 4) * 7 * 9 * 4",
    )
    .padded(&[0]),
    case(
        "flat nchw4c, symbolic",
        "lambda n, h, w, c: [(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]",
        "N, H, W, C",
        "N * ((C + 3) // 4) * H * W * 4",
    )
    .padded(&[0]),
    case("tile", TILE, "1000, 999", "(1000 + 7) // 8, (999 + 127) // 128, 4, 128, 2").padded(&[2, 3, 4]),
    case("tile, symbolic", TILE, "R, C", "(R + 7) // 8, (C + 127) // 128, 4, 128, 2").padded(&[2, 3, 4]),
    case("row-major", "lambda i, j, k: [(i * J + j) * K + k]", "I, J, K", "I * J * K"),
    case("transposed", "lambda i, j: [j, i]", "3, 5", "5, 3"),
    case("rotated", "lambda i: [(i + 3) % 8]", "8", "8"),
    case("reversed", "lambda i, j: [I - 1 - i, 6 - j]", "I, 7", "I, 7"),
    case("offset", "lambda i: [(i + 3) // 4, (i + 3) % 4]", "14", "5, 4"),
    case("padded rows", "lambda i, j: [i * 17 + j]", "11, 15", "185"),
    case("redundant", "lambda i, j: [i, i % 4, j]", "9, 5", "9, 4, 5"),
    case("narrow rows", "lambda i, j: [i * 499 + j]", "300, 500", "149701").refuted(&["injective"]),
    case("shifted", "lambda i, j: [i, j + 1]", "700, 900", "700, 900").padded(&[1]).refuted(&["bounds"]),
    case("wrong lane, symbolic", "lambda c: [c // 4, c % 3]", "C", "(C + 3) // 4, 3")
        .padded(&[1])
        .refuted(&["injective"]),
    case("swapped extents, symbolic", "lambda i, j, k: [(i * K + j) * J + k]", "I, J, K", "I * J * K")
        .padded(&[0])
        .refuted(&["bounds", "injective", "overflow"]),
    case("loose", "lambda i, j: [i, j]", "3, 5", "3, 6").refuted(&["tight"]),
    case("too large", "lambda i, j: [i * 70001 + j]", "100003, 70001", "7000310003").refuted(&["overflow"]),
];

/// The map with these names; `reversed` makes the variables the other way round.
fn build(case: &Case, index: &str, extent: &str, reversed: bool) -> (IndexMap, Vec<Expr>) {
    let text = Mapped::new(case.map, case.domain, case.shape);
    let count = text.map.vars().len();
    let mut made: Vec<(usize, Var, Var)> = Vec::new();
    let order: Vec<usize> = if reversed { (0..count).rev().collect() } else { (0..count).collect() };
    for axis in order {
        made.push((axis, Var::index(&*format!("{index}{axis}")), Var::index(&*format!("{extent}{axis}"))));
    }
    made.sort_by_key(|(axis, ..)| *axis);
    let mut names = Substitution::default();
    for (axis, var, symbol) in &made {
        names.insert(&text.map.vars()[*axis], Expr::from(var));
        if let Expr::Var(old) = &text.map.domain()[*axis] {
            names.insert(old, Expr::from(symbol));
        }
    }
    let renamed = |exprs: &[Expr]| exprs.iter().map(|expr| names.apply(expr)).collect::<Vec<_>>();
    let vars = made.iter().map(|(_, var, _)| var.clone()).collect();
    let map = IndexMap::new(vars, renamed(text.map.domain()), renamed(text.map.outputs()), Vec::new()).unwrap();
    (map, renamed(&text.shape))
}

fn verdicts(case: &Case, map: &IndexMap, shape: &[Expr], seed: u32) -> Vec<(&'static str, &'static str)> {
    let judge = Judge::new(Config { seed, ..Config::default() }, tilewright_search::strategies()).unwrap();
    let reports = judge.check_map(MapClaim::new(map, shape).padded(case.padded));
    for report in &reports {
        if let Verdict::Unknown(reason) = &report.verdict {
            eprintln!("{}, seed {seed}: {} is unknown: {reason}", case.name, report.obligation);
        }
    }
    reports.iter().map(|report| (report.obligation.id(), report.verdict.word())).collect()
}

fn expected(case: &Case) -> Vec<(&'static str, &'static str)> {
    let word = |id| if case.refuted.contains(&id) { "refuted" } else { "proved" };
    ["bounds", "injective", "tight", "overflow"].map(|id| (id, word(id))).to_vec()
}

#[test]
fn verdicts_do_not_depend_on_the_seed() {
    for case in &CASES {
        let (map, shape) = build(case, "i", "n", false);
        for seed in [0, 1, 2, 3, 7, 42, 1_000, 65_537, 2_147_483_647, 4_294_967_295] {
            assert_eq!(verdicts(case, &map, &shape, seed), expected(case), "{}, seed {seed}", case.name);
        }
    }
}

#[test]
fn verdicts_do_not_depend_on_names() {
    for case in &CASES {
        for (index, extent, reversed) in [("i", "n", true), ("zz", "a", false), ("n", "i", true), ("v0 ", "v1#", false)]
        {
            let (map, shape) = build(case, index, extent, reversed);
            assert_eq!(verdicts(case, &map, &shape, 0), expected(case), "{}, {index} {extent}", case.name);
        }
    }
}
