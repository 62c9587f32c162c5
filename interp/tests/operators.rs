//! The interpreter's arithmetic against the operator table of `ir`, bit for bit.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at what it did not expect; exact equality is meant"
)]

mod common;

use common::{config, execute, func};
use proptest::prelude::*;
use tilewright_interp::{Arguments, RunError, Tensor, TrapKind};
use tilewright_ir::{
    BinaryOp, Buffer, DataType, Expr, ForKind, MathFn, Scalar, ScalarError, ScalarType, SharedExpr, Stmt, UnaryOp, Var,
    scalar,
};

fn edges(ty: ScalarType) -> Vec<Scalar> {
    if let Some((low, high)) = ty.integer_range() {
        let mut values: Vec<i128> = [low, low + 1, -7, -2, -1, 0, 1, 2, 3, 5, 7, 8, high / 2, high - 1, high].to_vec();
        values.retain(|value| (low..=high).contains(value));
        values.sort_unstable();
        values.dedup();
        return values.into_iter().map(Scalar::Int).collect();
    }
    let values = [0.0, -0.0, 1.0, -1.0, 0.1, -3.7, 1e-5, 6e-8, 1e-40, 65504.0, 3e38, 1e300, f64::INFINITY, f64::NAN];
    let negative = [f64::NEG_INFINITY, -0.5, 2.5, 1.0 + 1.0 / 256.0];
    values.into_iter().chain(negative).map(|value| Scalar::Float(scalar::round_float(ty, value))).collect()
}

/// Runs `C[i] = make(A[i], B[i])` on the pairs and returns the elements of `C`.
fn run_on(
    ty: ScalarType,
    result: ScalarType,
    pairs: &[(Scalar, Scalar)],
    make: impl Fn(Expr, Expr) -> Expr,
) -> Result<Vec<Scalar>, RunError> {
    let extent = i64::try_from(pairs.len()).unwrap();
    let [a, b] = ["A", "B"].map(|name| Buffer::compact(name, ty, vec![Expr::int(extent)]));
    let out = Buffer::compact("C", result, vec![Expr::int(extent)]);
    let i = Var::index("i");
    let at = || vec![Expr::from(&i)];
    let value = make(Expr::load(&a, at()), Expr::load(&b, at()));
    let program =
        func(&[&a, &b, &out], Stmt::for_loop(&i, Expr::int(extent), ForKind::Serial, Stmt::store(&out, at(), value)));
    let shape = [pairs.len() as u64];
    let tensor = |pick: fn(&(Scalar, Scalar)) -> Scalar| Tensor::from_fn(ty, &shape, |lane| pick(&pairs[lane]));
    let empty = Tensor::undefined(result, &shape).unwrap();
    let mut args = Arguments::tensors([tensor(|p| p.0).unwrap(), tensor(|p| p.1).unwrap(), empty]);
    execute(&program, &mut args, &config(1))?;
    Ok((0..pairs.len()).map(|lane| args.tensor(2).unwrap().get(lane).unwrap()).collect())
}

/// Asserts that an operator agrees with the table on all pairs, traps included. Returns the number of pairs compared.
fn agree(op: BinaryOp, ty: ScalarType, pairs: &[(Scalar, Scalar)]) -> usize {
    let Some(result) = op.result_type(ty.into(), ty.into()) else { return 0 };
    let make = |a, b| Expr::binary(op, a, b);
    let mut good = Vec::new();
    let mut expected = Vec::new();
    for &(a, b) in pairs {
        match op.eval(ty, a, b) {
            Ok(value) => {
                good.push((a, b));
                expected.push(value);
            }
            Err(error) => {
                let kind = match error {
                    ScalarError::DivisionByZero => TrapKind::DivisionByZero,
                    ScalarError::ShiftAmount(_) => TrapKind::ShiftRange,
                    other => panic!("{op:?} {ty}: {other}"),
                };
                let outcome = run_on(ty, result.scalar, &[(a, b)], make);
                assert!(matches!(outcome, Err(RunError::Trap(trap)) if trap.kind == kind), "{op:?} {ty} {a:?} {b:?}");
            }
        }
    }
    let results = run_on(ty, result.scalar, &good, make).unwrap();
    for ((pair, got), expected) in good.iter().zip(&results).zip(&expected) {
        assert!(got.same(*expected), "{op:?} {ty} on {pair:?}: {got:?}, not {expected:?}");
    }
    pairs.len()
}

fn all_pairs(ty: ScalarType) -> Vec<(Scalar, Scalar)> {
    let edges = edges(ty);
    edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect()
}

#[test]
fn every_binary_operator_agrees_with_the_table_on_edges() {
    let mut compared = 0;
    for ty in ScalarType::ELEMENTS {
        for op in BinaryOp::ALL {
            compared += agree(op, ty, &all_pairs(ty));
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn division_and_shift_by_constants_agree_with_the_table() {
    let ops =
        [BinaryOp::FloorDiv, BinaryOp::FloorMod, BinaryOp::TruncDiv, BinaryOp::TruncMod, BinaryOp::Shl, BinaryOp::Shr];
    for ty in ScalarType::ELEMENTS.into_iter().filter(|ty| ty.is_integer()) {
        for op in ops {
            for divisor in edges(ty) {
                let pairs: Vec<_> = edges(ty).into_iter().map(|a| (a, divisor)).collect();
                if pairs.iter().any(|&(a, b)| op.eval(ty, a, b).is_err()) {
                    continue;
                }
                let constant = Expr::int_of(divisor.as_int().unwrap(), ty).unwrap();
                let got = run_on(ty, ty, &pairs, |a, _| Expr::binary(op, a, constant.clone())).unwrap();
                for (&(a, b), got) in pairs.iter().zip(got) {
                    assert!(got.same(op.eval(ty, a, b).unwrap()), "{op:?} {ty} {a:?} {b:?}: {got:?}");
                }
            }
        }
    }
}

#[test]
fn every_cast_agrees_with_the_definition_on_edges() {
    for from in ScalarType::ELEMENTS {
        for to in ScalarType::ELEMENTS {
            let pairs: Vec<_> = edges(from).into_iter().map(|a| (a, a)).collect();
            let got = run_on(from, to, &pairs, |a, _| Expr::Cast(DataType::scalar(to), SharedExpr::new(a))).unwrap();
            for (&(a, _), got) in pairs.iter().zip(got) {
                assert!(got.same(scalar::cast(from, to, a)), "{from} to {to} of {a:?}: {got:?}");
            }
        }
    }
}

#[test]
fn every_unary_operator_and_function_agrees_with_the_table_on_edges() {
    for ty in ScalarType::ELEMENTS {
        let pairs = all_pairs(ty);
        for op in [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot] {
            let Some(result) = op.result_type(ty.into()) else { continue };
            let got = run_on(ty, result.scalar, &pairs, |a, _| Expr::unary(op, a)).unwrap();
            for (&(a, _), got) in pairs.iter().zip(got) {
                assert!(got.same(op.eval(ty, a).unwrap()), "{op:?} {ty} {a:?}: {got:?}");
            }
        }
        for function in MathFn::ALL {
            let arity = function.info().1;
            let Some(result) = function.result_type(&vec![ty.into(); arity]) else { continue };
            let make = |a, b| Expr::Call(function, [a, b].into_iter().take(arity).collect());
            let got = run_on(ty, result.scalar, &pairs, make).unwrap();
            for (&(a, b), got) in pairs.iter().zip(got) {
                assert!(got.same(function.eval(ty, &[a, b][..arity]).unwrap()), "{function:?} {ty} {a:?} {b:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn binary_operators_agree_with_the_table_on_random_bits(bits in prop::collection::vec(any::<(u64, u64)>(), 17)) {
        for ty in ScalarType::ELEMENTS {
            let value = |bits: u64| match ty {
                ScalarType::Float32 => Scalar::Float(f64::from(f32::from_bits((bits >> 32).try_into().unwrap()))),
                _ if ty.is_float() => Scalar::Float(scalar::round_float(ty, f64::from_bits(bits))),
                _ => Scalar::Int(scalar::wrap_int(ty, bits.into())),
            };
            let pairs: Vec<_> = bits.iter().map(|&(a, b)| (value(a), value(b))).collect();
            for op in BinaryOp::ALL {
                agree(op, ty, &pairs);
            }
        }
    }
}
