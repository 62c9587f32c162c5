//! Goals over bit-vectors have the answers of goals over integers, and maps that mix bits the verdicts of their images.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::map::Mapped;
use tilewright_verify::encode::{Encoding, bits};
use tilewright_verify::solver::{Outcome, Solver};
use tilewright_verify::term::{BinaryOp as TermOp, Prop, Term};
use tilewright_verify::{Config, Judge, Verdict};

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
