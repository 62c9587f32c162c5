//! Scalar arguments, views whose extents depend on loop variables, let-bound vectors, and loops over wide types.
#![allow(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]

use std::sync::Arc;

mod common;

use common::{buffer, config, empty, execute, filled, func, run_in_all_configs, trap};
use tilewright_interp::{Argument, Arguments, RunError, Tensor, TrapKind};
use tilewright_ir::{Buffer, DataType, Expr, For, ForKind, Scalar, ScalarType, SharedExpr, Stmt, StmtKind, Var};

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

#[test]
fn scalar_parameters_have_the_values_passed() {
    let target = buffer("B", &[11]);
    let (count, factor) = (Var::index("count"), Var::new("factor", ScalarType::Float32));
    let i = Var::index("i");
    let value = Expr::Cast(ScalarType::Float32.into(), SharedExpr::new(v(&i))) * v(&factor);
    let body = Stmt::for_loop(&i, v(&count), ForKind::Serial, Stmt::store(&target, vec![v(&i)], value));
    let mut program = func(&[&target], body);
    program.params.extend([count, factor]);
    let pass = |count: Scalar, factor: Scalar| Arguments {
        params: vec![Argument::Tensor(empty(&[11])), Argument::Scalar(count), Argument::Scalar(factor)],
        symbols: Vec::new(),
    };
    let result = run_in_all_configs(&program, &pass(Scalar::Int(7), Scalar::Float(-1.5)));
    let tensor = result.tensor(0).unwrap();
    for lane in 0..11 {
        let expected = (lane < 7).then(|| -1.5 * f64::from(u8::try_from(lane).unwrap()));
        assert_eq!(tensor.get_f64(lane), expected, "lane {lane}");
    }
    let long = trap(&program, &pass(Scalar::Int(12), Scalar::Float(1.0)), &config(1));
    assert_eq!((long.kind, long.loops), (TrapKind::OutOfBounds, vec![("i".to_owned(), 11)]));
    // A float argument is rounded to the type of the parameter.
    let rounded = run_in_all_configs(&program, &pass(Scalar::Int(2), Scalar::Float(0.1)));
    assert_eq!(rounded.tensor(0).unwrap().get_f64(1), Some(f64::from(0.1f32)));
    for (count, factor) in [(Scalar::Float(7.0), Scalar::Float(1.0)), (Scalar::Int(7), Scalar::Int(1))] {
        let refused = execute(&program, &mut pass(count, factor), &config(1));
        assert!(matches!(refused, Err(RunError::Input(found)) if found.code == "argument"));
    }
}

/// `for i in 6: allocate S[i + 1]; for j in i + 1: S[i - j] = A[i, j]; for j in i + 1: B[i, j] = S[j]`.
#[test]
fn the_extent_of_an_allocation_may_depend_on_a_loop_variable() {
    let (source, target) = (buffer("A", &[6, 7]), buffer("B", &[6, 7]));
    let (i, j, k) = (Var::index("i"), Var::index("j"), Var::index("k"));
    let length = || v(&i) + Expr::int(1);
    let scratch = Buffer::compact("S", ScalarType::Float32, vec![length()]);
    let put = Stmt::store(&scratch, vec![v(&i) - v(&j)], Expr::load(&source, vec![v(&i), v(&j)]));
    let take = Stmt::store(&target, vec![v(&i), v(&k)], Expr::load(&scratch, vec![v(&k)]));
    let body = Stmt::seq(vec![
        Stmt::for_loop(&j, length(), ForKind::Serial, put),
        Stmt::for_loop(&k, length(), ForKind::Serial, take),
    ]);
    let body = Stmt::new(StmtKind::Allocate { buffer: scratch.clone(), body: Arc::new(body) });
    let program = func(&[&source, &target], Stmt::for_loop(&i, Expr::int(6), ForKind::Parallel, body));
    let input = filled(&[6, 7], 2);
    let result = run_in_all_configs(&program, &Arguments::tensors([input.clone(), empty(&[6, 7])]));
    for (row, column) in (0..6).flat_map(|row| (0..7).map(move |column| (row, column))) {
        let expected = (column <= row).then(|| input.get_f64(row * 7 + row - column).unwrap());
        assert_eq!(result.tensor(1).unwrap().get_f64(row * 7 + column), expected, "{row}, {column}");
    }
}

#[test]
fn the_extents_and_strides_of_a_view_may_depend_on_a_loop_variable() {
    let memory = buffer("A", &[40]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let view = memory.with(|info| {
        info.shape = vec![v(&i)];
        info.strides = Some(vec![v(&i)]);
        info.elem_offset = v(&i);
    });
    let program = |reach: i64| {
        let one = Expr::float_of(1.0, ScalarType::Float32);
        let store = Stmt::store(&view, vec![v(&j)], one);
        let body = Stmt::for_loop(&j, v(&i) + Expr::int(reach), ForKind::Serial, store);
        let body = Stmt::new(StmtKind::DeclBuffer { buffer: view.clone(), body: Arc::new(body) });
        func(&[&memory], Stmt::for_loop(&i, Expr::int(6), ForKind::Serial, body))
    };
    let args = Arguments::tensors([empty(&[40])]);
    let result = run_in_all_configs(&program(0), &args);
    let written: Vec<_> = (0..40).filter(|&lane| result.tensor(0).unwrap().is_defined(lane)).collect();
    let mut expected: Vec<_> = (1..6).flat_map(|i| (0..i).map(move |j| i + i * j)).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(written, expected);
    let beyond = trap(&program(1), &args, &config(1));
    assert_eq!(beyond.loops, [("i".to_owned(), 0), ("j".to_owned(), 0)]);
    assert_eq!(beyond.kind, TrapKind::OutOfBounds);
}

#[test]
fn a_let_bound_vector_keeps_its_value() {
    let (source, target) = (buffer("A", &[28]), buffer("B", &[28]));
    let i = Var::index("i");
    let vector = Var::new("x", DataType::scalar(ScalarType::Float32).with_lanes(4));
    let ramp = |stride: i64, plus: i64| Expr::Ramp {
        base: SharedExpr::new(v(&i) * Expr::int(4) + Expr::int(plus)),
        stride: SharedExpr::new(Expr::int(stride)),
        lanes: 4,
    };
    // The lanes are reversed, and the variable is read again after its source was overwritten.
    let store = |buffer: &Buffer| Stmt::store(buffer, vec![ramp(1, 0)], v(&vector) + v(&vector));
    let body = Stmt::seq(vec![store(&source), store(&target)]);
    let value = Expr::load(&source, vec![ramp(-1, 3)]);
    let body = Stmt::new(StmtKind::Let { var: vector.clone(), value, body: Arc::new(body) });
    let program = func(&[&source, &target], Stmt::for_loop(&i, Expr::int(7), ForKind::Serial, body));
    let input = filled(&[28], 8);
    let result = run_in_all_configs(&program, &Arguments::tensors([input.clone(), empty(&[28])]));
    for lane in 0..28 {
        let expected = input.get_f64(lane / 4 * 4 + 3 - lane % 4).map(|x| 2.0 * x);
        assert_eq!(result.tensor(1).unwrap().get_f64(lane), expected, "lane {lane}");
        assert_eq!(result.tensor(0).unwrap().get_f64(lane), expected, "lane {lane}");
    }
}

#[test]
fn a_uint64_loop_may_reach_the_greatest_value_of_its_type() {
    let ty = ScalarType::UInt64;
    let target = Buffer::compact("B", ty, vec![Expr::int_of(9, ty).unwrap()]);
    let i = Var::new("i", ty);
    let number = |value: i128| Expr::int_of(value, ty).unwrap();
    let first = i128::from(u64::MAX) - 8;
    let program = |extent: i128| {
        let store = Stmt::store(&target, vec![v(&i) - number(first)], v(&i));
        let inner = For { min: number(first), extent: number(extent), ..loop_parts(&i, ForKind::Parallel, store) };
        func(&[&target], Stmt::new(StmtKind::For(Arc::new(inner))))
    };
    let args = Arguments::tensors([Tensor::undefined(ty, &[9]).unwrap()]);
    let result = run_in_all_configs(&program(9), &args);
    for lane in 0..9 {
        let value = result.tensor(0).unwrap().get(lane).unwrap();
        assert_eq!(value.as_int(), Some(first + i128::try_from(lane).unwrap()));
    }
    assert_eq!(trap(&program(10), &args, &config(1)).kind, TrapKind::LoopRange);
}

fn loop_parts(var: &Var, kind: ForKind, body: Stmt) -> For {
    let StmtKind::For(made) = Stmt::for_loop(var, Expr::int(1), kind, body).kind else {
        unreachable!("a loop was made")
    };
    (*made).clone()
}
