//! Verdicts do not depend on Z3's random seed, nor on the names of variables or the order in which they are created.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::int;
use tilewright_ir::{Expr, IndexMap, Var};
use tilewright_verify::{Config, Judge, MapClaim, Verdict};

/// A map, written for whatever names its indices and extents have.
struct Case {
    name: &'static str,
    /// Constant extents; 0 stands for a symbolic one.
    domain: &'static [i64],
    /// From indices and extents to outputs.
    outputs: fn(&[Expr], &[Expr]) -> Vec<Expr>,
    /// From extents to the physical shape.
    shape: fn(&[Expr]) -> Vec<Expr>,
    padded: &'static [usize],
    /// The obligations that are refuted; all others are proved.
    refuted: &'static [&'static str],
}

fn split(x: &Expr, by: i64) -> [Expr; 2] {
    [x.clone().floor_div(int(by)), x.clone().floor_mod(int(by))]
}

fn ceil(x: &Expr, by: i64) -> Expr {
    (x.clone() + int(by - 1)).floor_div(int(by))
}

fn nchw4c(x: &[Expr], _: &[Expr]) -> Vec<Expr> {
    let [block, lane] = split(&x[3], 4);
    vec![x[0].clone(), block, x[1].clone(), x[2].clone(), lane]
}

fn nchw4c_shape(e: &[Expr]) -> Vec<Expr> {
    vec![e[0].clone(), ceil(&e[3], 4), e[1].clone(), e[2].clone(), int(4)]
}

fn flat(indices: &[Expr], extents: &[Expr]) -> Expr {
    let rest = indices[1..].iter().zip(&extents[1..]);
    rest.fold(indices[0].clone(), |value, (index, extent)| value * extent.clone() + index.clone())
}

fn size(extents: &[Expr]) -> Expr {
    extents.iter().cloned().reduce(|size, extent| size * extent).unwrap()
}

fn tile(x: &[Expr], _: &[Expr]) -> Vec<Expr> {
    let ([rows, row], [columns, column]) = (split(&x[0], 8), split(&x[1], 128));
    let [pair, half] = split(&row, 2);
    vec![rows, columns, pair, column, half]
}

fn tile_shape(e: &[Expr]) -> Vec<Expr> {
    vec![ceil(&e[0], 8), ceil(&e[1], 128), int(4), int(128), int(2)]
}

const CASES: [Case; 20] = [
    Case { name: "nchw4c", domain: &[2, 7, 9, 17], outputs: nchw4c, shape: nchw4c_shape, padded: &[], refuted: &[] },
    Case {
        name: "nchw4c, large",
        domain: &[32, 224, 223, 65],
        outputs: nchw4c,
        shape: nchw4c_shape,
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "nchw4c, symbolic",
        domain: &[0, 0, 0, 0],
        outputs: nchw4c,
        shape: nchw4c_shape,
        padded: &[4],
        refuted: &[],
    },
    Case {
        name: "flat nchw4c",
        domain: &[2, 7, 9, 17],
        outputs: |x, e| vec![flat(&nchw4c(x, e), &nchw4c_shape(e))],
        shape: |e| vec![size(&nchw4c_shape(e))],
        padded: &[0],
        refuted: &[],
    },
    Case {
        name: "flat nchw4c, symbolic",
        domain: &[0, 0, 0, 0],
        outputs: |x, e| vec![flat(&nchw4c(x, e), &nchw4c_shape(e))],
        shape: |e| vec![size(&nchw4c_shape(e))],
        padded: &[0],
        refuted: &[],
    },
    Case { name: "tile", domain: &[1000, 999], outputs: tile, shape: tile_shape, padded: &[2, 3, 4], refuted: &[] },
    Case {
        name: "tile, symbolic",
        domain: &[0, 0],
        outputs: tile,
        shape: tile_shape,
        padded: &[2, 3, 4],
        refuted: &[],
    },
    Case {
        name: "row-major",
        domain: &[0, 0, 0],
        outputs: |x, e| vec![flat(x, e)],
        shape: |e| vec![size(e)],
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "transposed",
        domain: &[3, 5],
        outputs: |x, _| vec![x[1].clone(), x[0].clone()],
        shape: |e| vec![e[1].clone(), e[0].clone()],
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "rotated",
        domain: &[8],
        outputs: |x, _| vec![(x[0].clone() + int(3)).floor_mod(int(8))],
        shape: |_| vec![int(8)],
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "reversed",
        domain: &[0, 7],
        outputs: |x, e| vec![e[0].clone() - int(1) - x[0].clone(), int(6) - x[1].clone()],
        shape: |e| e.to_vec(),
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "offset",
        domain: &[14],
        outputs: |x, _| split(&(x[0].clone() + int(3)), 4).to_vec(),
        shape: |_| vec![int(5), int(4)],
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "padded rows",
        domain: &[11, 15],
        outputs: |x, _| vec![x[0].clone() * int(17) + x[1].clone()],
        shape: |_| vec![int(10 * 17 + 15)],
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "redundant",
        domain: &[9, 5],
        outputs: |x, _| vec![x[0].clone(), x[0].clone().floor_mod(int(4)), x[1].clone()],
        shape: |_| vec![int(9), int(4), int(5)],
        padded: &[],
        refuted: &[],
    },
    Case {
        name: "narrow rows",
        domain: &[300, 500],
        outputs: |x, _| vec![x[0].clone() * int(499) + x[1].clone()],
        shape: |_| vec![int(299 * 499 + 500)],
        padded: &[],
        refuted: &["injective"],
    },
    Case {
        name: "shifted",
        domain: &[700, 900],
        outputs: |x, _| vec![x[0].clone(), x[1].clone() + int(1)],
        shape: |e| e.to_vec(),
        padded: &[1],
        refuted: &["bounds"],
    },
    Case {
        name: "wrong lane, symbolic",
        domain: &[0],
        outputs: |x, _| vec![x[0].clone().floor_div(int(4)), x[0].clone().floor_mod(int(3))],
        shape: |e| vec![ceil(&e[0], 4), int(3)],
        padded: &[1],
        refuted: &["injective"],
    },
    Case {
        name: "swapped extents, symbolic",
        domain: &[0, 0, 0],
        outputs: |x, e| vec![flat(x, &[e[0].clone(), e[2].clone(), e[1].clone()])],
        shape: |e| vec![size(e)],
        padded: &[0],
        refuted: &["bounds", "injective", "overflow"],
    },
    Case {
        name: "loose",
        domain: &[3, 5],
        outputs: |x, _| x.to_vec(),
        shape: |_| vec![int(3), int(6)],
        padded: &[],
        refuted: &["tight"],
    },
    Case {
        name: "too large",
        domain: &[100_003, 70_001],
        outputs: |x, _| vec![x[0].clone() * int(70_001) + x[1].clone()],
        shape: |_| vec![int(100_003 * 70_001)],
        padded: &[],
        refuted: &["overflow"],
    },
];

/// The map with these names; `reversed` makes the variables the other way round.
fn build(case: &Case, index: &str, extent: &str, reversed: bool) -> (IndexMap, Vec<Expr>) {
    let count = case.domain.len();
    let mut made: Vec<(usize, Var, Var)> = Vec::new();
    let order: Vec<usize> = if reversed { (0..count).rev().collect() } else { (0..count).collect() };
    for axis in order {
        made.push((axis, Var::index(&*format!("{index}{axis}")), Var::index(&*format!("{extent}{axis}"))));
    }
    made.sort_by_key(|(axis, ..)| *axis);
    let vars: Vec<Var> = made.iter().map(|(_, var, _)| var.clone()).collect();
    let extents: Vec<Expr> = made
        .iter()
        .zip(case.domain)
        .map(|((.., symbol), constant)| if *constant == 0 { Expr::from(symbol) } else { int(*constant) })
        .collect();
    let indices: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let outputs = (case.outputs)(&indices, &extents);
    let shape = (case.shape)(&extents);
    (IndexMap::new(vars, extents, outputs, Vec::new()).unwrap(), shape)
}

fn verdicts(case: &Case, map: &IndexMap, shape: &[Expr], seed: u32) -> Vec<(&'static str, &'static str)> {
    let judge = Judge::new(Config { seed, ..Config::default() }).unwrap();
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
