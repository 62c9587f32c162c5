//! Whole programs against the same computation written in Rust.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test may stop at what it did not expect; exact equality is meant"
)]

use std::sync::Arc;

mod common;

use common::{buffer, config, empty, execute, filled, func, run_in_all_configs};
use tilewright_interp::{Arguments, Tensor, as_function, fill, run_definition};
use tilewright_ir::{
    Axis, Buffer, DataType, Definition, Expr, ForKind, ReduceOp, ScalarType, SharedExpr, Stage, StageBody, Stmt,
    StmtKind, Var,
};

fn v(var: &Var) -> Expr {
    Expr::from(var)
}

fn nest(vars: &[&Var], extents: &[i64], body: Stmt) -> Stmt {
    vars.iter()
        .zip(extents)
        .rev()
        .fold(body, |body, (var, &extent)| Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body))
}

/// C = A * 2 + A, NHWC -> NCHW4c with a ragged channel axis, guarded.
#[test]
fn relayout_with_ragged_channels_matches_rust() {
    let (n, h, w, c) = (2usize, 7usize, 19usize, 18usize);
    let source = buffer("A", &[2, 7, 19, 18]);
    let target = buffer("B", &[2, 5, 7, 19, 4]);
    let names = ["n", "co", "h", "w", "ci"].map(Var::index);
    let [vn, vco, vh, vw, vci] = &names;
    let channel = v(vco) * Expr::int(4) + v(vci);
    let load = || Expr::load(&source, vec![v(vn), v(vh), v(vw), channel.clone()]);
    let value = load() * Expr::float_of(2.0, ScalarType::Float32) + load();
    let store = Stmt::store(&target, vec![v(vn), v(vco), v(vh), v(vw), v(vci)], value);
    let body = Stmt::guarded(channel.clone().lt(Expr::int(18)), store);
    let program = func(&[&source, &target], nest(&[vn, vco, vh, vw, vci], &[2, 5, 7, 19, 4], body));
    let input = filled(&[2, 7, 19, 18], 3);
    let args = Arguments::tensors([input.clone(), empty(&[2, 5, 7, 19, 4])]);
    let result = run_in_all_configs(&program, &args);
    let output = result.tensor(1).unwrap();
    let mut checked = 0;
    for at in 0..n * 5 * h * w * 4 {
        let (ci, rest) = (at % 4, at / 4);
        let (x, rest) = (rest % w, rest / w);
        let (y, rest) = (rest % h, rest / h);
        let (co, image) = (rest % 5, rest / 5);
        let channel = co * 4 + ci;
        let expected = (channel < c).then(|| input.get_f64(((image * h + y) * w + x) * c + channel).unwrap() * 3.0);
        assert_eq!(output.get_f64(at), expected, "lane {at}");
        checked += 1;
    }
    assert_eq!(checked, 2 * 5 * 7 * 19 * 4);
}

struct Conv {
    definition: Definition,
    shapes: [Vec<u64>; 3],
}

fn conv(h: u64, w: u64, ci: u64, co: u64) -> Conv {
    let shapes = [vec![1, h + 2, w + 2, ci], vec![3, 3, ci, co], vec![1, h, w, co]];
    let make = |name: &str, shape: &[u64]| {
        Buffer::compact(name, ScalarType::Float32, shape.iter().map(|&e| Expr::int(e.try_into().unwrap())).collect())
    };
    let [data, weight, out] = [("D", 0), ("W", 1), ("O", 2)].map(|(name, at)| make(name, &shapes[at]));
    let axis = |name: &str, extent: u64| Axis { var: Var::index(name), extent: Expr::int(extent.try_into().unwrap()) };
    let axes = vec![axis("n", 1), axis("y", h), axis("x", w), axis("o", co)];
    let reduce = vec![axis("ky", 3), axis("kx", 3), axis("c", ci)];
    let (a, r) = (|at: usize| v(&axes[at].var), |at: usize| v(&reduce[at].var));
    let source = Expr::load(&data, vec![a(0), a(1) + r(0), a(2) + r(1), r(2)])
        * Expr::load(&weight, vec![r(0), r(1), r(2), a(3)]);
    let body = StageBody::reduce(ReduceOp::Sum, reduce.clone(), source);
    let stage = Stage { buffer: out.clone(), axes: axes.clone(), body };
    Conv {
        definition: Definition { name: "conv".into(), params: vec![data, weight, out], stages: vec![stage] },
        shapes,
    }
}

#[test]
fn a_small_convolution_matches_rust() {
    let (h, w, ci, co) = (5usize, 6usize, 3usize, 7usize);
    let conv = conv(5, 6, 3, 7);
    let (data, weight) = (filled(&conv.shapes[0], 1), filled(&conv.shapes[1], 2));
    let args = Arguments::tensors([data.clone(), weight.clone(), empty(&conv.shapes[2])]);
    let result = run_in_all_configs(&as_function(&conv.definition), &args);
    #[allow(clippy::cast_possible_truncation)]
    let at = |tensor: &Tensor, lane: usize| tensor.get_f64(lane).unwrap() as f32;
    for y in 0..h {
        for x in 0..w {
            for o in 0..co {
                let mut sum = 0f32;
                for k in 0..9 * ci {
                    let (c, kx, ky) = (k % ci, k / ci % 3, k / ci / 3);
                    sum += at(&data, ((y + ky) * (w + 2) + x + kx) * ci + c)
                        * at(&weight, ((ky * 3 + kx) * ci + c) * co + o);
                }
                let got = at(result.tensor(2).unwrap(), (y * w + x) * co + o);
                assert_eq!(got.to_bits(), sum.to_bits(), "{y} {x} {o}");
            }
        }
    }
}

#[test]
fn a_definition_equals_its_hand_written_program() {
    let conv = conv(4, 9, 5, 6);
    let args = [filled(&conv.shapes[0], 8), filled(&conv.shapes[1], 9), empty(&conv.shapes[2])];
    let mut defined = Arguments::tensors(args.clone());
    run_definition(&conv.definition, &mut defined, &config(2)).unwrap();
    let [data, weight, out] = [0, 1, 2].map(|at| conv.definition.params[at].clone());
    let names = ["y", "x", "o", "ky", "kx", "c"].map(Var::index);
    let [y, x, o, ky, kx, c] = &names;
    let at = vec![Expr::int(0), v(y), v(x), v(o)];
    let product = Expr::load(&data, vec![Expr::int(0), v(y) + v(ky), v(x) + v(kx), v(c)])
        * Expr::load(&weight, vec![v(ky), v(kx), v(c), v(o)]);
    let update = Stmt::store(&out, at.clone(), Expr::load(&out, at.clone()) + product);
    let start = Stmt::store(&out, at, Expr::float_of(0.0, ScalarType::Float32));
    let body = Stmt::seq(vec![start, nest(&[ky, kx, c], &[3, 3, 5], update)]);
    let program = func(&[&data, &weight, &out], nest(&[y, x, o], &[4, 9, 6], body));
    let result = run_in_all_configs(&program, &Arguments::tensors(args));
    assert_eq!(result.tensor(2), defined.tensor(2));
    assert!(result.tensor(2).unwrap().is_all_defined());
}

#[test]
fn aliases_with_other_lane_counts_see_the_same_memory() {
    let scalars = buffer("A", &[12]);
    let vectors = scalars.with(|info| {
        info.dtype = DataType::scalar(ScalarType::Float32).with_lanes(4);
        info.shape = vec![Expr::int(3)];
    });
    let target = buffer("B", &[12]);
    let i = Var::index("i");
    let ramp =
        Expr::Ramp { base: SharedExpr::new(v(&i) * Expr::int(4)), stride: SharedExpr::new(Expr::int(1)), lanes: 4 };
    let store = Stmt::store(&target, vec![ramp], Expr::load(&vectors, vec![v(&i)]));
    let body = Stmt::for_loop(&i, Expr::int(3), ForKind::Parallel, store);
    let body = Stmt::new(StmtKind::DeclBuffer { buffer: vectors, body: Arc::new(body) });
    let args = Arguments::tensors([filled(&[12], 5), empty(&[12])]);
    let result = run_in_all_configs(&func(&[&scalars, &target], body), &args);
    assert_eq!(result.tensor(0).unwrap().bytes(), result.tensor(1).unwrap().bytes());
}

#[test]
fn aliases_of_another_type_reinterpret_the_bits() {
    let floats = buffer("A", &[5]);
    let bytes = floats.with(|info| {
        info.dtype = ScalarType::UInt8.into();
        info.shape = vec![Expr::int(20)];
    });
    let target = Buffer::compact("B", ScalarType::UInt8, vec![Expr::int(20)]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let copy = Stmt::store(&target, vec![v(&i)], Expr::load(&bytes, vec![v(&i)]));
    let doubled = Expr::load(&floats, vec![v(&j)]) + Expr::load(&floats, vec![v(&j)]);
    let double = Stmt::for_loop(&j, Expr::int(5), ForKind::Serial, Stmt::store(&floats, vec![v(&j)], doubled));
    let body = Stmt::seq(vec![double, Stmt::for_loop(&i, Expr::int(20), ForKind::Serial, copy)]);
    let body = Stmt::new(StmtKind::DeclBuffer { buffer: bytes, body: Arc::new(body) });
    let input = filled(&[5], 6);
    let target_tensor = Tensor::undefined(ScalarType::UInt8, &[20]).unwrap();
    let result =
        run_in_all_configs(&func(&[&floats, &target], body), &Arguments::tensors([input.clone(), target_tensor]));
    assert_eq!(result.tensor(0).unwrap().bytes(), result.tensor(1).unwrap().bytes());
    assert_eq!(result.tensor(0).unwrap().get_f64(2), input.get_f64(2).map(|x| 2.0 * x));
}

#[test]
fn symbolic_extents_are_bound_by_shapes_and_mismatches_are_errors() {
    let (n, m) = (Var::index("n"), Var::index("m"));
    let source = Buffer::compact("A", ScalarType::Int32, vec![v(&n), v(&m)]);
    let target = Buffer::compact("B", ScalarType::Int32, vec![v(&n) * v(&m)]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(&target, vec![v(&i) * v(&m) + v(&j)], Expr::load(&source, vec![v(&i), v(&j)]));
    let body = Stmt::for_loop(&j, v(&m), ForKind::Serial, store);
    let program = func(&[&source, &target], Stmt::for_loop(&i, v(&n), ForKind::Serial, body));
    let tensor = |shape: &[u64]| {
        let mut tensor = Tensor::undefined(ScalarType::Int32, shape).unwrap();
        fill(&mut tensor, 4);
        tensor
    };
    let result = run_in_all_configs(&program, &Arguments::tensors([tensor(&[3, 17]), tensor(&[51])]));
    assert_eq!(result.tensor(0).unwrap().bytes(), result.tensor(1).unwrap().bytes());
    for shape in [52, 50, 0] {
        let mut args = Arguments::tensors([tensor(&[3, 17]), tensor(&[shape])]);
        assert!(execute(&program, &mut args, &config(1)).is_err(), "{shape}");
    }
}

#[test]
fn a_loop_without_iterations_does_nothing() {
    let target = buffer("B", &[3, 0]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(&target, vec![v(&i), v(&j)], Expr::float_of(1.0, ScalarType::Float32));
    let inner = Stmt::for_loop(&j, Expr::int(0), ForKind::Serial, store.clone());
    let program = func(&[&target], Stmt::for_loop(&i, Expr::int(3), ForKind::Parallel, inner));
    run_in_all_configs(&program, &Arguments::tensors([empty(&[3, 0])]));
}

#[test]
fn memory_allocated_in_a_parallel_loop_is_private_and_starts_undefined() {
    let target = buffer("B", &[40]);
    let scratch = buffer("S", &[1]);
    let i = Var::index("i");
    let write =
        Stmt::store(&scratch, vec![Expr::int(0)], Expr::Cast(ScalarType::Float32.into(), SharedExpr::new(v(&i))));
    let read = Stmt::store(&target, vec![v(&i)], Expr::load(&scratch, vec![Expr::int(0)]));
    let guarded = Stmt::guarded(v(&i).lt(Expr::int(33)), write.clone());
    let program = |first: Stmt| {
        let body = Stmt::seq(vec![first, read.clone()]);
        let body = Stmt::new(StmtKind::Allocate { buffer: scratch.clone(), body: Arc::new(body) });
        func(&[&target], Stmt::for_loop(&i, Expr::int(40), ForKind::Parallel, body))
    };
    let args = Arguments::tensors([empty(&[40])]);
    let result = run_in_all_configs(&program(write), &args);
    assert_eq!(result.tensor(0).unwrap().get_f64(37), Some(37.0));
    for threads in [1, 2, 7] {
        let trap = common::trap(&program(guarded.clone()), &args, &config(threads));
        assert_eq!(trap.loops, [("i".to_owned(), 33)], "{threads} threads");
    }
}

#[test]
fn every_other_statement_kind_runs() {
    let target = buffer("B", &[6]);
    let (i, x) = (Var::index("i"), Var::index("x"));
    let float = |expr: Expr| Expr::Cast(ScalarType::Float32.into(), SharedExpr::new(expr));
    let [even, odd] = [10, 20].map(|plus| Stmt::store(&target, vec![v(&i)], float(v(&x) + Expr::int(plus))));
    let cond = Expr::binary(tilewright_ir::BinaryOp::Eq, v(&i).floor_mod(Expr::int(2)), Expr::int(0));
    let branch = StmtKind::If { cond, then_body: Arc::new(even), else_body: Some(Arc::new(odd)) };
    let body = Stmt::new(StmtKind::Let { var: x.clone(), value: v(&i) * v(&i), body: Arc::new(Stmt::new(branch)) });
    let hint = tilewright_ir::AttrValue::Bool(true);
    let attr = StmtKind::Attr { node: hint.clone(), key: "pragma".into(), value: hint, body: Arc::new(body) };
    let assert = StmtKind::Assert { cond: v(&i).lt(Expr::int(6)), message: "in range".into(), is_assumed: false };
    let body = Stmt::seq(vec![Stmt::new(assert), Stmt::new(attr), Stmt::new(StmtKind::Evaluate(v(&i)))]);
    let program = func(&[&target], Stmt::for_loop(&i, Expr::int(6), ForKind::Unrolled, body));
    let result = run_in_all_configs(&program, &Arguments::tensors([empty(&[6])]));
    let values: Vec<_> = (0..6).map(|lane| result.tensor(0).unwrap().get_f64(lane).unwrap()).collect();
    assert_eq!(values, [10.0, 21.0, 14.0, 29.0, 26.0, 45.0]);
}

#[test]
fn strides_and_offsets_address_the_allocation() {
    let target = buffer("B", &[20]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let view = target.with(|info| {
        info.shape = vec![Expr::int(3), Expr::int(2)];
        info.strides = Some(vec![Expr::int(5), Expr::int(2)]);
        info.elem_offset = Expr::int(4);
        info.axis_separators = tilewright_ir::AxisSeparators::none(2);
    });
    let store = Stmt::store(&view, vec![v(&i), v(&j)], Expr::float_of(1.0, ScalarType::Float32));
    let body = nest(&[&i, &j], &[3, 2], store);
    let body = Stmt::new(StmtKind::DeclBuffer { buffer: view, body: Arc::new(body) });
    let result = run_in_all_configs(&func(&[&target], body), &Arguments::tensors([empty(&[20])]));
    let written: Vec<_> = (0..20).filter(|&lane| result.tensor(0).unwrap().is_defined(lane)).collect();
    assert_eq!(written, [4, 6, 9, 11, 14, 16]);
}

#[test]
fn a_serial_loop_that_carries_a_value_runs_in_order_on_many_threads() {
    let target = buffer("B", &[9000]);
    let i = Var::index("i");
    let one = || Expr::float_of(1.0, ScalarType::Float32);
    let before = Expr::load(&target, vec![v(&i)]);
    let step = Stmt::store(&target, vec![v(&i) + Expr::int(1)], before + one());
    let first = Stmt::store(&target, vec![Expr::int(0)], one());
    let body = Stmt::seq(vec![first, Stmt::for_loop(&i, Expr::int(8999), ForKind::Serial, step)]);
    let result = run_in_all_configs(&func(&[&target], body), &Arguments::tensors([empty(&[9000])]));
    assert_eq!(result.tensor(0).unwrap().get_f64(8999), Some(9000.0));
}

#[test]
fn independent_serial_loops_are_spread_over_threads() {
    let (source, target) = (buffer("A", &[90, 700]), buffer("B", &[90, 700]));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = || vec![v(&i), v(&j)];
    let program =
        func(&[&source, &target], nest(&[&i, &j], &[90, 700], Stmt::store(&target, at(), Expr::load(&source, at()))));
    let mut args = Arguments::tensors([filled(&[90, 700], 1), empty(&[90, 700])]);
    let report = execute(&program, &mut args, &config(2)).unwrap();
    assert_eq!((report.parallel_loops, report.iterations), (1, 90 + 90 * 700));
}

/// Lanes 2 and 3 of the last vector are outside of `A`: they are not evaluated.
#[test]
fn a_vector_condition_chooses_and_evaluates_each_lane_by_itself() {
    let (a, b, i) = (buffer("A", &[6]), buffer("B", &[8]), Var::index("i"));
    let ramp =
        Expr::Ramp { base: SharedExpr::new(v(&i) * Expr::int(4)), stride: SharedExpr::new(Expr::int(1)), lanes: 4 };
    let four = |value: Expr| SharedExpr::new(Expr::Broadcast { value: SharedExpr::new(value), lanes: 4 });
    let inside = ramp.clone().lt(four(Expr::int(6)).into_expr());
    let otherwise = four(Expr::float_of(-1.0, ScalarType::Float32));
    let value =
        Expr::IfThenElse(SharedExpr::new(inside), SharedExpr::new(Expr::load(&a, vec![ramp.clone()])), otherwise);
    let program = func(&[&a, &b], nest(&[&i], &[2], Stmt::store(&b, vec![ramp], value)));
    let input = filled(&[6], 3);
    let result = run_in_all_configs(&program, &Arguments::tensors([input.clone(), empty(&[8])]));
    for at in 0..8 {
        let expected = if at < 6 { input.get_f64(at) } else { Some(-1.0) };
        assert_eq!(result.tensor(1).unwrap().get_f64(at), expected, "element {at}");
    }
}

/// The condition of a lane is that of its own element, also where loads walk through memory in constant steps.
#[test]
fn a_vector_condition_may_read_memory() {
    let (a, b, i) = (buffer("A", &[40]), buffer("B", &[40]), Var::index("i"));
    let ramp =
        Expr::Ramp { base: SharedExpr::new(v(&i) * Expr::int(4)), stride: SharedExpr::new(Expr::int(1)), lanes: 4 };
    let four = |value: f64| {
        let value = SharedExpr::new(Expr::float_of(value, ScalarType::Float32));
        Expr::Broadcast { value, lanes: 4 }
    };
    let small = Expr::load(&a, vec![ramp.clone()]).lt(four(3.0));
    let value = Expr::IfThenElse(SharedExpr::new(small), SharedExpr::new(four(1.0)), SharedExpr::new(four(2.0)));
    let program = func(&[&a, &b], nest(&[&i], &[10], Stmt::store(&b, vec![ramp], value)));
    let input = Tensor::from_fn(ScalarType::Float32, &[40], |k| {
        tilewright_ir::Scalar::Float(f64::from(u8::try_from(k * 3 % 7).unwrap()))
    });
    let input = input.unwrap();
    let result = run_in_all_configs(&program, &Arguments::tensors([input.clone(), empty(&[40])]));
    for at in 0..40 {
        let expected = if input.get_f64(at).unwrap() < 3.0 { 1.0 } else { 2.0 };
        assert_eq!(result.tensor(1).unwrap().get_f64(at), Some(expected), "element {at}");
    }
}
