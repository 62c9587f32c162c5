//! Calls that make no sense are errors with a code, a message and no place, and never a panic.

use tilewright_ir::{BinaryOp, DataType, Diagnostic, Expr, IndexMap, ReduceOp, ScalarType, Scope, ThreadTag, Var};

use super::{F32, float, int, ints, layout};
use crate::te::build::{
    Builder, LayoutLoops, Param, SplitBy, Tensor, axis, binary, call, check_shape, function_name, if_then_else, reduce,
    reduce_axis, tensor_name,
};

/// `B[i, j, k] = A[i, j, k] + 1`, of shape (2, 7, 9).
fn program() -> (Builder, Tensor, Tensor) {
    let mut te = Builder::new();
    let shape = ints([2, 7, 9]);
    let a = te.placeholder("A", &shape, F32).unwrap();
    let b = te.compute("B", &shape, |te, i| Ok((te.load(a, i)? + float(1.0)).into())).unwrap();
    (te, a, b)
}

/// Code and message of an error, which has no place.
fn fault<T: std::fmt::Debug>(result: Result<T, Diagnostic>) -> (&'static str, String) {
    let error = result.unwrap_err();
    assert!(error.labels.is_empty(), "the builder knows no places: {error:?}");
    (error.code, error.message)
}

#[test]
fn names_shapes_and_types_are_checked() {
    let mut te = Builder::new();
    let mut code = |name: &str, shape: &[Expr], ty: ScalarType| fault(te.placeholder(name, shape, ty)).0;
    assert_eq!(code("9A", &ints([2]), F32), "name");
    assert_eq!(code("", &ints([2]), F32), "name");
    assert_eq!(code("A", &ints([2, 0]), F32), "extent");
    assert_eq!(code("A", &ints([2, -1]), F32), "extent");
    assert_eq!(code("A", &[float(1.0)], F32), "type");
    assert_eq!(code("A", &ints([1 << 40, 1 << 40]), F32), "size");
    assert_eq!(code("A", &ints([2]), ScalarType::Handle), "dtype");
    assert_eq!(fault(te.symbol("n", F32)).0, "dtype");
    assert_eq!(tensor_name("A.local").as_deref(), Ok("A_local"));
    assert_eq!(fault(function_name("while")), ("name", "`while` is a word of Python's, and names no function".into()));
    assert!(check_shape(&[]).is_ok());
}

#[test]
fn values_are_checked() {
    let mut te = Builder::new();
    let a = te.placeholder("A", &ints([4]), F32).unwrap();
    let n = te.symbol("n", DataType::INT32).unwrap();
    let element = te.load(a, &[int(0)]).unwrap();
    assert_eq!(fault(te.load(a, &[int(0), int(0)])), ("rank", "`A` has 1 axes, but 2 indices are given".into()));
    assert_eq!(fault(te.load(a, &[float(0.0)])).0, "type");
    let stray = Var::index("j");
    assert_eq!(
        fault(te.compute("B", &ints([4]), |te, _| Ok(te.load(a, &[Expr::from(&stray)])?.into()))),
        ("stray-axis", "the axis `j` is neither an index of this tensor nor reduced over".into())
    );
    assert!(te.compute("B", &ints([4]), |te, _| Ok(te.load(a, &[Expr::from(&n)])?.into())).is_ok(), "a symbol");
    let mixed = int(1) + float(1.0);
    assert_eq!(fault(te.compute("B", &ints([4]), |_, _| Ok(mixed.into()))).0, "type");
    let mut deep = element.clone();
    for _ in 0..300 {
        deep = deep + float(1.0);
    }
    assert_eq!(fault(te.compute("B", &ints([4]), |_, _| Ok(deep.into()))).0, "expression-size");

    assert_eq!(fault(binary(BinaryOp::FloorDiv, int(1), int(0))).0, "division-by-zero");
    assert_eq!(fault(binary(BinaryOp::BitAnd, element.clone(), element.clone())).0, "type");
    assert_eq!(fault(call(tilewright_ir::MathFn::Exp, vec![int(1)])).0, "type");
    assert_eq!(fault(if_then_else(int(1), int(1), int(2))).0, "type");

    let k = axis("k", &int(4)).unwrap();
    assert_eq!(fault(reduce(ReduceOp::Sum, element.clone(), &[])).0, "reduction");
    assert_eq!(
        fault(reduce(ReduceOp::Sum, element, &[k.clone(), k])),
        ("reduction", "the axis `k` is reduced twice".into())
    );
    assert_eq!(fault(reduce_axis("k", &int(3), &int(3))).0, "extent");
    assert_eq!(fault(reduce_axis("k", &float(0.0), &int(3))).0, "type");
}

#[test]
fn handles_of_other_builders_are_refused() {
    let (mut te, _, b) = program();
    let (mut other, foreign_a, foreign_b) = program();
    assert_eq!(fault(te.load(foreign_a, &ints([0, 0, 0]))).0, "foreign-tensor");
    assert_eq!(fault(te.create_schedule(&[foreign_b])).0, "foreign-tensor");
    let element = other.load(foreign_a, &ints([0, 0, 0])).unwrap();
    assert_eq!(
        fault(te.compute("C", &ints([2]), |_, _| Ok(element.into()))),
        ("foreign-tensor", "`A` is no tensor of this builder".into())
    );
    let mut foreign = other.create_schedule(&[foreign_b]).unwrap();
    let (id, run) = (foreign.id(), foreign.stage(foreign_b).unwrap().axes()[0]);
    assert_eq!(fault(te.schedule(id)).0, "foreign-schedule");
    let mut s = te.create_schedule(&[b]).unwrap();
    assert_eq!(fault(s.stage(foreign_b)).0, "foreign-tensor");
    assert_eq!(fault(s.stage(b).unwrap().parallel(run)), ("not-a-loop", "the loop belongs to another builder".into()));
}

#[test]
fn loops_of_other_stages_and_schedules_are_refused() {
    let (mut te, a, b) = program();
    let first = te.create_schedule(&[b]).unwrap().id();
    let run = te.schedule(first).unwrap().stage(b).unwrap().axes()[0];
    let mut s = te.create_schedule(&[b]).unwrap();
    let (of_input, of_b) = (s.stage(a).unwrap().axes()[0], s.stage(b).unwrap().axes()[0]);
    let code = |result: Result<(), Diagnostic>| fault(result);
    assert_eq!(
        code(s.stage(b).unwrap().parallel(of_input)),
        ("not-a-loop", "`i0` is a loop of `A`, not of `B`".into())
    );
    assert_eq!(
        code(s.stage(b).unwrap().parallel(run)),
        ("not-a-loop", "`i0` is a loop of another schedule, not of this stage of `B`".into())
    );
    assert_eq!(
        code(s.stage(a).unwrap().parallel(of_input)),
        ("no-loops", "`i0` belongs to an input, which has no loops".into())
    );
    let stray = Var::index("q");
    assert_eq!(fault(s.stage(b).unwrap().loop_over(&stray)).0, "not-a-loop");
    assert!(s.stage(b).unwrap().parallel(of_b).is_ok());
    let lonely = te.placeholder("L", &ints([3]), F32).unwrap();
    assert_eq!(fault(te.schedule(first).unwrap().stage(lonely)).0, "no-stage");
    assert_eq!(fault(te.create_schedule(&[lonely])).0, "schedule-input");
    assert_eq!(fault(te.create_schedule(&[])).0, "schedule-input");
}

#[test]
fn loops_from_before_a_cache_are_refused_and_do_not_panic() {
    let mut te = Builder::new();
    let a = te.placeholder("A", &ints([7, 9]), F32).unwrap();
    let k = reduce_axis("k", &int(0), &int(9)).unwrap();
    let b = te.compute("B", &ints([7]), |te, i| {
        reduce(ReduceOp::Sum, te.load(a, &[i[0].clone(), k.index()])?, std::slice::from_ref(&k.axis))
    });
    let b = b.unwrap();
    let mut s = te.create_schedule(&[b]).unwrap();
    let reduced = s.stage(b).unwrap().reduce_axes()[0];
    let cache = s.cache_write(b, Scope::Local).unwrap();
    assert_eq!(
        fault(s.stage(b).unwrap().split(reduced, SplitBy::Factor(3))),
        ("not-a-loop", "the loop was one of `B` before cache_write".into())
    );
    assert_eq!(s.stage(cache).unwrap().reduce_axes().len(), 1);
    assert_eq!(fault(s.cache_write(b, Scope::Local)).0, "cache-write");
    assert_eq!(fault(s.cache_read(a, Scope::Local, &[])).0, "cache-reader");
    assert_eq!(fault(s.cache_read(a, Scope::Local, &[b])), ("cache-reader", "`B` does not read `A`".into()));
    let lowered = s.lower(&[a.into(), b.into()], "sum").unwrap();
    assert_eq!(lowered.evidence.stores.len(), 3, "start, update and copy");
    assert_eq!(fault(te.load(cache, &ints([0]))).0, "cache-read");
}

#[test]
fn impossible_primitives_are_refused_and_change_nothing() {
    let (mut te, a, b) = program();
    let mut s = te.create_schedule(&[b]).unwrap();
    let before = tilewright_script::print_func(&s.lower(&[a.into(), b.into()], "f").unwrap().func);
    let mut stage = s.stage(b).unwrap();
    let [i, j, k] = stage.axes()[..] else { panic!("three axes") };
    assert_eq!(fault(stage.split(k, SplitBy::Factor(0))), ("split", "a loop cannot be split by 0".into()));
    assert_eq!(fault(stage.split(k, SplitBy::Parts(-4))).0, "split");
    assert_eq!(fault(stage.fuse(&[i, k])), ("fuse", "`i0` and `i2` are not neighbours, outer loop first".into()));
    assert_eq!(fault(stage.fuse(&[j, i])).0, "fuse");
    assert_eq!(fault(stage.fuse(&[])).0, "fuse");
    assert_eq!(fault(stage.reorder(&[i, j, i])), ("reorder", "`i0` is named twice".into()));
    assert_eq!(fault(stage.bind(i, ThreadTag::Thread(0), Some(&int(5)))).0, "thread-extent");
    assert_eq!(fault(stage.pragma(i, "tensorize", tilewright_ir::AttrValue::Int(1))).0, "pragma");
    assert_eq!(fault(stage.compute_inline()).0, "inline");
    let (n, unknown) = (Var::index("n"), Var::index("z"));
    let wrong = IndexMap::new(vec![n.clone()], ints([4]), vec![Expr::from(&n)], vec![]).unwrap();
    assert_eq!(
        fault(stage.transform_layout(&wrong)),
        ("layout-domain", "the map is defined on (4), the layout is (2, 7, 9)".into())
    );
    let stray = layout(&stage, ["x", "y", "z"], &[], |[x, y, _]| vec![x, y, Expr::from(&unknown)]).unwrap();
    assert_eq!(fault(stage.transform_layout(&stray)), ("stray-axis", "`z` is no index of the layout".into()));
    let matrix = tilewright_script::read_xla_layout("{1,0}", 2).unwrap();
    let request = tilewright_ir::TileRequest { layout: matrix, pad_value: None };
    assert_eq!(fault(stage.tile_layout(request, &[])).0, "tile-layout");
    let after = tilewright_script::print_func(&s.lower(&[a.into(), b.into()], "f").unwrap().func);
    assert_eq!(before, after);
}

#[test]
fn a_map_without_inverse_is_recorded_and_the_warning_reaches_the_lowered_function() {
    let (mut te, a, b) = program();
    let mut s = te.create_schedule(&[b]).unwrap();
    let mut stage = s.stage(b).unwrap();
    let map = layout(&stage, ["i", "j", "k"], &[], |[i, j, k]| vec![i, j, k.floor_div(int(2))]).unwrap();
    let LayoutLoops::Kept(warning) = stage.transform_layout(&map).unwrap() else { panic!("no inverse") };
    let lowered = s.lower(&[a.into(), b.into()], "main").unwrap();
    assert_eq!((warning.code, &lowered.warnings), ("loops-kept", &vec![warning]));
    assert_eq!(lowered.func.attrs.layout_transform_map.len(), 1);
}

#[test]
fn parameters_are_checked() {
    let (mut te, a, b) = program();
    let n = te.symbol("n", DataType::INT32).unwrap();
    let s = te.create_schedule(&[b]).unwrap();
    let code = |params: &[Param], name: &str| {
        let errors = s.lower(params, name).unwrap_err();
        (errors[0].code, errors[0].message.clone())
    };
    assert_eq!(code(&[b.into()], "f"), ("parameters", "`A` is an input, but no parameter".into()));
    assert_eq!(code(&[a.into()], "f"), ("parameters", "`B` is an output, but no parameter".into()));
    assert_eq!(code(&[a.into(), a.into(), b.into()], "f"), ("parameters", "`A` is given twice".into()));
    assert_eq!(
        code(&[a.into(), b.into(), (&Var::index("m")).into()], "f"),
        ("parameters", "`m` is no symbolic extent of this builder".into())
    );
    assert_eq!(code(&[a.into(), b.into()], "is").0, "name");
    assert!(s.lower(&[a.into(), b.into(), (&n).into()], "f").is_ok());
}
