//! The reference interpreter against results computed by hand, one case for each rule of the language; and wrong versions
//! of the rules, each of which some case tells apart.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at what it did not expect")]

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod twins;

use cases::{Case, all_cases, allocate, empty, store, vector};
use common::{config, execute, func, refer};
use tilewright_interp::{Arguments, Config, Report, RunError};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Expr, PrimFunc, Scalar, ScalarType as S, UnaryOp};
use twins::twins;

/// A million iterations and a megabyte.
fn limits() -> Config {
    Config { fuel: Some(1_000_000), max_bytes: 1 << 20, ..config(1) }
}

type Engine = fn(&PrimFunc, &mut Arguments, &Config) -> Result<Report, RunError>;

/// Whether an engine gives the result of a case.
fn passes(engine: Engine, func: &PrimFunc, case: &Case) -> bool {
    let mut args = Arguments::tensors(case.inputs.clone());
    match (engine(func, &mut args, &limits()), &case.expected) {
        (Ok(_), Ok(expected)) => {
            let out = args.tensor(0).unwrap();
            let got: Vec<_> = (0..out.lane_count()).map(|lane| out.get_f64(lane)).collect();
            got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| *got == Some(*expected))
        }
        (Err(RunError::Trap(trap)), Err(kind)) => trap.kind == *kind,
        (Ok(_) | Err(RunError::Input(_)), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

#[test]
fn both_engines_give_the_results_computed_by_hand() {
    let cases = all_cases();
    assert!(cases.len() > 70, "{}", cases.len());
    for case in &cases {
        assert!(passes(refer, &case.func, case), "the reference: {}", case.name);
        assert!(passes(execute, &case.func, case), "the fast engine: {}", case.name);
    }
}

#[test]
fn every_wrong_version_of_a_rule_fails_a_case() {
    let (cases, twins) = (all_cases(), twins());
    assert_eq!(twins.len(), 15);
    for (name, twin) in twins {
        let fails = |case: &&Case| {
            let Ok(body) = { twin }.stmt(&case.func.body);
            !passes(refer, &PrimFunc { body, ..case.func.clone() }, case)
        };
        let failed: Vec<_> = cases.iter().filter(fails).map(|case| case.name).collect();
        assert!(!failed.is_empty(), "no case notices that {name}");
        assert!(failed.len() * 2 < cases.len(), "{name} is no program at all: {failed:?}");
    }
}

#[test]
fn an_expression_that_nests_too_deeply_is_refused() {
    let deep = |levels: usize| (0..levels).fold(Expr::int(1), |expr, _| Expr::unary(UnaryOp::Neg, expr));
    let out = vector("O", S::Int32, 1);
    let run =
        |levels| refer(&func(&[&out], store(&out, 0, deep(levels))), &mut Arguments::tensors([empty(&out)]), &limits());
    run(500).unwrap();
    assert!(matches!(run(600), Err(RunError::Input(found)) if found.code == "too-deep"));
}

#[test]
fn the_limit_on_memory_is_checked_before_arguments_are_copied() {
    let out = vector("O", S::Int32, 4);
    let program = func(&[&out], store(&out, 0, Expr::int(1)));
    for (max_bytes, fits) in [(15, false), (16, true)] {
        let mut args = Arguments::tensors([empty(&out)]);
        let result = refer(&program, &mut args, &Config { max_bytes, ..config(1) });
        assert_eq!(result.is_ok(), fits);
        assert_eq!(args.tensor(0).unwrap().get(0).is_some_and(|value| value.same(Scalar::Int(1))), fits);
    }
}

#[test]
fn an_empty_buffer_may_have_large_extents() {
    let out = vector("O", S::Int32, 1);
    let empty_shape = [0, 1 << 40, 1 << 40].map(Expr::int).to_vec();
    let nothing = Buffer::compact("N", S::Int32, empty_shape);
    let program = func(&[&out], allocate(&nothing, store(&out, 0, Expr::int(1))));
    for engine in [refer, execute] {
        engine(&program, &mut Arguments::tensors([empty(&out)]), &limits()).unwrap();
    }
}
