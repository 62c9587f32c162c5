//! Linear algebra over bits: every change of a valid certificate is rejected, and goals over bit-vectors have the answers of
//! goals over integers.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::map::Mapped;
use tilewright_ir::{Bindings, IndexMap};
use tilewright_verify::encode::{Encoding, bits};
use tilewright_verify::gf2::{Gf2Certificate, certify};
use tilewright_verify::solver::{Outcome, Solver};
use tilewright_verify::term::{BinaryOp as TermOp, Prop, Term};
use tilewright_verify::{Config, Judge, Verdict};

/// Maps on 8 x 16 x 2 with every kind of operator that moves bits.
fn swizzles() -> Vec<IndexMap> {
    let outputs = [
        "[h, w ^ (h % 4), c]",
        "[(h * 16 + w) * 2 + c]",
        "[7 - h, w ^ (w // 2), c]",
        "[w % 4, c, h, w // 4 + 8]",
        "[~h + 8, w, c]",
        "[h, ((w & 12) >> 2) | ((w & 3) * 4), c]",
    ];
    outputs.map(|outputs| Mapped::new(&format!("lambda h, w, c: {outputs}"), "8, 16, 2", "[]").map).to_vec()
}

#[test]
fn every_swizzle_has_a_certificate_and_is_injective() {
    for map in swizzles() {
        certify(&map).unwrap().check(&map).unwrap();
        let mut seen = std::collections::HashSet::new();
        for at in 0..256 {
            let index = [at / 32, at / 2 % 16, at % 2];
            assert!(seen.insert(map.eval(&index, &Bindings::new()).unwrap()), "{map}");
        }
    }
}

#[test]
fn maps_that_lose_a_bit_have_no_certificate() {
    let lossy = Mapped::new("lambda i, j: [i ^ j, j ^ i]", "8, 8", "8, 8").map;
    assert!(certify(&lossy).is_none());
}

#[test]
fn every_change_of_one_entry_of_a_certificate_is_rejected() {
    let mut changes = 0;
    for map in swizzles() {
        let right = certify(&map).unwrap();
        let mut broken: Vec<Gf2Certificate> = Vec::new();
        for at in 0..8 {
            for bit in 0..8 {
                let mut wrong = right.clone();
                wrong.matrix[at] ^= 1 << bit;
                broken.push(wrong);
                let mut wrong = right.clone();
                wrong.inverse[at] ^= 1 << bit;
                broken.push(wrong);
            }
            let mut wrong = right.clone();
            wrong.rows[at].1 += 1;
            broken.push(wrong);
            let mut wrong = right.clone();
            wrong.rows[at].0 += 1;
            broken.push(wrong);
            let mut wrong = right.clone();
            wrong.inverse[at] |= 1 << 100;
            broken.push(wrong);
        }
        let mut wrong = right.clone();
        wrong.rows.pop();
        broken.push(wrong);
        for wrong in broken {
            changes += 1;
            assert!(wrong.check(&map).is_err(), "{map}: {wrong:?}");
        }
    }
    assert!(changes > 800);
}

#[test]
fn a_certificate_of_another_map_is_rejected() {
    let maps = swizzles();
    let certificate = certify(&maps[0]).unwrap();
    assert!(certificate.check(&maps[2]).is_err());
}

fn bounded(name: &str, extent: i128) -> (Term, Prop) {
    let term = Term::sym(name);
    let bounds = term.at_least(0).and(term.less(extent));
    (term, bounds)
}

#[test]
fn goals_over_bit_vectors_and_over_integers_have_the_same_answers() {
    let solver = Solver::new().unwrap();
    let (x, x_bounds) = bounded("x", 1000);
    let (y, y_bounds) = bounded("y", 64);
    let assumptions = [x_bounds, y_bounds];
    let mixed = Term::binary(TermOp::BitXor, &x, &y);
    let goals = [
        (Term::binary(TermOp::BitXor, &mixed, &y).equals(&x), true),
        (mixed.less(1024), true),
        (mixed.less(1000), false),
        ((&x * 64 + &y).floor_div(64).equals(&x), true),
        ((&x * 63 + &y).floor_div(63).equals(&x), false),
        ((&y - &x).floor_div(16).at_least(-63), true),
        ((&y - &x).floor_mod(16).less(15), false),
        (x.floor_mod(7).at_most(6), true),
        (x.floor_div(7).at_most(141), false),
        ((&x * -1).abs().equals(&x), true),
    ];
    for (goal, holds) in goals {
        let width = bits::width(&assumptions, &goal).unwrap();
        let answer = solver.check(&assumptions, &goal, Encoding::Bits(width)).unwrap();
        match answer.outcome {
            Outcome::Proved => assert!(holds, "{goal}"),
            Outcome::Refuted(model) => {
                assert!(!holds, "{goal} at {model}");
                assert_eq!(goal.eval(&model), Ok(false), "{goal} at {model}");
                assert!(assumptions.iter().all(|assumption| assumption.eval(&model) == Ok(true)));
            }
            Outcome::Unknown(reason) => panic!("{goal}: {reason}"),
        }
        assert!(solver.check(&assumptions, &goal, Encoding::Bits(width - 1)).is_err(), "{goal} may wrap there");
    }
}

#[test]
fn unbounded_variables_are_not_encoded_as_bit_vectors() {
    let (x, bounds) = bounded("x", 1000);
    let y = Term::sym("y");
    assert_eq!(bits::width(std::slice::from_ref(&bounds), &x.less(&y)), None);
    assert_eq!(bits::width(std::slice::from_ref(&bounds), &x.floor_div(&x + 1).at_least(0)), None);
    assert_eq!(bits::width(&[bounds], &(&x - 500).floor_div(7).at_least(-100)), None);
}

/// All affine maps of a small family against their images: the verdict of each tier is the truth.
#[test]
fn verdicts_over_bits_are_right_and_name_the_first_pair() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let mut counts = [0; 2];
    for mask in 0..32 {
        for (cut, high) in [(8192, 1), (4096, 1), (8192, 4096)] {
            let lambda = format!("lambda i, j: [i % {cut}, j ^ (i * {high} & {})]", mask * 256);
            let mapped = Mapped::new(&lambda, "8192, 8192", "8192, 8192");
            let map = &mapped.map;
            let reports = judge.check_map(mapped.claim().padded(&[0, 1]));
            let report = reports.iter().find(|report| report.obligation.id() == "injective").unwrap();
            assert!(report.method.to_string().starts_with("gf2"), "{map}: {} [{}]", report.verdict, report.method);
            match &report.verdict {
                Verdict::Proved(_) => counts[1] += 1,
                Verdict::Refuted(found) => {
                    counts[0] += 1;
                    // Only the highest bit of the row is ever lost, so nothing below collides.
                    assert_eq!(found.indices[1], [4096, 0], "{map}");
                    assert_eq!(found.indices[0][0], 0);
                }
                other => panic!("{map}: {other}"),
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}
