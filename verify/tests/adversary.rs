//! Wrong programs and lying claims made to slip past the judge: none is proved.
//!
//! Each was proved (or, of the last ones, refuted though right) by an earlier judge.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::cloned_ref_to_slice_refs, reason = "an index is written as a list of expressions")]

use std::sync::Arc;

mod common;

use common::{int, judge};
use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, BufferChange, BufferClaim, DataType, Definition, Evidence, Expr, ForKind,
    FuncAttrs, Holder, IndexMap, LoweringEvidence, PrimFunc, ScalarType, SharedExpr, Stage, StageBody, Stmt, StmtKind,
    StoreClaim, StoreRole, Var,
};
use tilewright_verify::{MapClaim, Report, Verdict};

fn ints(values: &[i64]) -> Vec<Expr> {
    values.iter().copied().map(int).collect()
}

fn tensor(name: &str, shape: &[i64]) -> Buffer {
    Buffer::compact(name, ScalarType::Int32, ints(shape))
}

fn at(buffer: &Buffer, indices: &[Expr]) -> Expr {
    Expr::load(buffer, indices.to_vec())
}

fn put(buffer: &Buffer, indices: &[Expr], value: Expr) -> Stmt {
    Stmt::store(buffer, indices.to_vec(), value)
}

fn each(var: &Var, extent: i64, body: Stmt) -> Stmt {
    Stmt::for_loop(var, int(extent), ForKind::Serial, body)
}

fn bind(var: &Var, value: Expr, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Let { var: var.clone(), value, body: Arc::new(body) })
}

fn allocate(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) })
}

fn declare(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::DeclBuffer { buffer: buffer.clone(), body: Arc::new(body) })
}

/// Another view of the same memory.
fn view(buffer: &Buffer, name: &str, shape: &[i64]) -> Buffer {
    buffer.with(|info| {
        info.name = name.into();
        info.shape = ints(shape);
        info.axis_separators = AxisSeparators::none(shape.len());
    })
}

fn func(params: &[&Buffer], body: Stmt) -> PrimFunc {
    let handles: Vec<Var> = params.iter().map(|buffer| Var::new(buffer.name.clone(), DataType::HANDLE)).collect();
    let buffer_map = handles.iter().cloned().zip(params.iter().map(|&buffer| buffer.clone())).collect();
    PrimFunc { name: "main".into(), params: handles, buffer_map, attrs: FuncAttrs::default(), body }
}

/// The same parameters, with these buffers.
fn like(before: &PrimFunc, params: &[&Buffer], body: Stmt) -> PrimFunc {
    let mut after = func(params, body);
    after.params.clone_from(&before.params);
    after.buffer_map = before.params.iter().cloned().zip(params.iter().map(|&buffer| buffer.clone())).collect();
    after
}

fn map_of(domain: &[i64], outputs: impl FnOnce(&[Expr]) -> Vec<Expr>) -> IndexMap {
    let vars: Vec<Var> = (0..domain.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    IndexMap::new(vars, ints(domain), outputs(&index), Vec::new()).unwrap()
}

fn reversed(extent: i64) -> IndexMap {
    map_of(&[extent], |i| vec![int(extent - 1) - i[0].clone()])
}

fn claim(before: &Buffer, after: &Buffer, map: IndexMap, change: BufferChange) -> BufferClaim {
    BufferClaim { before: before.clone(), after: after.clone(), map, change, padded_axes: Vec::new() }
}

fn pass(before: &PrimFunc, after: &PrimFunc, buffers: Vec<BufferClaim>) -> Vec<Report> {
    judge().check_pass(before, after, &Evidence { pass: "lie".into(), buffers, ..Evidence::default() })
}

#[track_caller]
fn not_proved(reports: &[Report]) {
    let open = reports.iter().filter(|report| !report.verdict.is_proved()).count();
    assert!(open > 0, "everything is proved: {reports:#?}");
}

#[track_caller]
fn proved(reports: &[Report]) {
    let open: Vec<_> = reports.iter().filter(|report| !report.verdict.is_proved()).collect();
    assert!(open.is_empty(), "{open:#?}");
}

fn var(name: &str) -> (Var, Expr) {
    let var = Var::index(name);
    let expr = Expr::from(&var);
    (var, expr)
}

#[test]
fn a_renaming_does_not_move_anything() {
    let (a, b, t) = (tensor("A", &[7]), tensor("B", &[7]), tensor("T", &[7]));
    let (v, moved) = (view(&t, "V", &[7]), view(&t, "T1", &[7]));
    let ((i, ie), (j, je)) = (var("i"), var("j"));
    let read = || each(&j, 7, put(&b, std::slice::from_ref(&je), at(&v, std::slice::from_ref(&je))));
    let body = |t: &Buffer, index: Expr| {
        allocate(t, Stmt::seq(vec![each(&i, 7, put(t, &[index], at(&a, std::slice::from_ref(&ie)))), read()]))
    };
    let before = func(&[&a, &b], body(&t, ie.clone()));
    let after = like(&before, &[&a, &b], body(&moved, int(6) - ie.clone()));
    not_proved(&pass(&before, &after, vec![claim(&t, &moved, reversed(7), BufferChange::Rename)]));
}

#[test]
fn a_parameter_that_is_moved_is_passed_in_its_new_layout() {
    let (a, b) = (tensor("A", &[7]), tensor("B", &[7]));
    let moved = view(&b, "B1", &[7]);
    let (i, ie) = var("i");
    let before = func(&[&a, &b], each(&i, 7, put(&b, std::slice::from_ref(&ie), at(&a, std::slice::from_ref(&ie)))));
    let body = each(&i, 7, put(&moved, &[int(6) - ie.clone()], at(&a, std::slice::from_ref(&ie))));
    let claims = || vec![claim(&b, &moved, reversed(7), BufferChange::Layout)];
    proved(&pass(&before, &like(&before, &[&a, &moved], body.clone()), claims()));
    not_proved(&pass(&before, &like(&before, &[&a, &b], body), claims()));
}

#[test]
fn a_buffer_moves_by_one_map() {
    let (a, b, t) = (tensor("A", &[7]), tensor("B", &[7]), tensor("T", &[7]));
    let (one, two) = (view(&t, "T1", &[7]), view(&t, "T2", &[7]));
    let ((i, ie), (j, je)) = (var("i"), var("j"));
    let body = |t: &Buffer, read: &Buffer, index: Expr| {
        let write = each(&i, 7, put(t, std::slice::from_ref(&ie), at(&a, std::slice::from_ref(&ie))));
        allocate(t, Stmt::seq(vec![write, each(&j, 7, put(&b, std::slice::from_ref(&je), at(read, &[index])))]))
    };
    let before = func(&[&a, &b], body(&t, &t, je.clone()));
    let after = like(&before, &[&a, &b], body(&one, &two, int(6) - je.clone()));
    let identity = map_of(&[7], <[Expr]>::to_vec);
    let claims =
        vec![claim(&t, &one, identity, BufferChange::Layout), claim(&t, &two, reversed(7), BufferChange::Layout)];
    not_proved(&pass(&before, &after, claims));
}

#[test]
fn a_map_does_not_depend_on_the_iteration() {
    let (a, b, c) = (tensor("A", &[7]), tensor("B", &[7]), tensor("C", &[3, 7]));
    let moved = view(&b, "B1", &[7]);
    let ((i, ie), (x, xe)) = (var("i"), var("x"));
    let body = |b: &Buffer, index: Expr| {
        let read = put(&c, &[ie.clone(), xe.clone()], at(b, std::slice::from_ref(&index)));
        let write = put(b, &[index], at(&a, std::slice::from_ref(&xe)));
        each(&i, 3, each(&x, 7, Stmt::seq(vec![read, write])))
    };
    let before = func(&[&a, &b, &c], body(&b, xe.clone()));
    let turned = |x: &Expr| (x.clone() + ie.clone()).floor_mod(int(7));
    let after = like(&before, &[&a, &moved, &c], body(&moved, turned(&xe)));
    let mut lie = claim(&b, &moved, map_of(&[7], |x| vec![turned(&x[0])]), BufferChange::Layout);
    lie.padded_axes = vec![0];
    not_proved(&pass(&before, &after, vec![lie]));
}

#[test]
fn two_reads_with_a_store_between_are_two_values() {
    let (a, b) = (tensor("A", &[1]), tensor("B", &[1]));
    let ((x, xe), (y, ye)) = (var("x"), var("y"));
    let read = || at(&a, &[int(0)]);
    let body = |inner: Stmt| bind(&x, read(), Stmt::seq(vec![put(&a, &[int(0)], int(5)), bind(&y, read(), inner)]));
    let store = || put(&b, &[int(0)], int(1));
    let before = func(&[&a, &b], body(Stmt::guarded(Expr::binary(BinaryOp::Eq, xe, ye), store())));
    not_proved(&pass(&before, &like(&before, &[&a, &b], body(store())), Vec::new()));
}

#[test]
fn a_view_that_moves_with_a_loop_variable_is_another_view() {
    let a = tensor("A", &[5]);
    let ((i, ie), (j, je)) = (var("i"), var("j"));
    let v = view(&a, "V", &[1]).with(|info| info.elem_offset = ie.clone());
    let body = |value: &Expr| declare(&v, put(&v, &[int(0)], value.clone()));
    let before = func(&[&a], each(&i, 5, each(&j, 5, body(&je))));
    let after = like(&before, &[&a], each(&j, 5, each(&i, 5, body(&ie))));
    not_proved(&pass(&before, &after, Vec::new()));
}

/// `i * 65536 * 65536`: 0 in `int32`, else a large number.
fn wrapping(i: &Expr) -> Expr {
    i.clone() * int(65536) * int(65536)
}

#[test]
fn a_value_that_wraps_is_not_the_integer() {
    let b = tensor("B", &[7]);
    let (i, ie) = var("i");
    let body = |value: Expr| each(&i, 7, put(&b, std::slice::from_ref(&ie), value));
    let before = func(&[&b], body(wrapping(&ie).floor_div(int(65536))));
    not_proved(&pass(&before, &like(&before, &[&b], body(ie.clone() * int(65536))), Vec::new()));
}

#[test]
fn a_value_that_wraps_where_nobody_looks_is_not_the_integer() {
    let (a, b) = (tensor("A", &[2000]), tensor("B", &[2000]));
    let (i, ie) = var("i");
    let here = Expr::binary(BinaryOp::Eq, ie.clone(), int(777));
    let value = Expr::Select(SharedExpr::new(here), SharedExpr::new(int(65536)), SharedExpr::new(int(0)));
    let wraps = (value.clone() * int(65536)).floor_div(int(65536));
    let body = |value: Expr| each(&i, 2000, put(&b, &[ie.clone()], value));
    let before = func(&[&a, &b], body(wraps.clone()));
    not_proved(&pass(&before, &like(&before, &[&a, &b], body(value)), Vec::new()));
    // 0 at 777, where the integers say 65536: the other branch is taken.
    let cond = Expr::binary(BinaryOp::Lt, wraps, int(1));
    let chosen = |index: Expr| {
        Expr::IfThenElse(SharedExpr::new(cond.clone()), SharedExpr::new(at(&a, &[index])), SharedExpr::new(int(0)))
    };
    let before = func(&[&a, &b], body(chosen(ie.clone())));
    let spared = Expr::Select(
        SharedExpr::new(Expr::binary(BinaryOp::Eq, ie.clone(), int(777))),
        SharedExpr::new(int(0)),
        SharedExpr::new(ie.clone()),
    );
    not_proved(&pass(&before, &like(&before, &[&a, &b], body(chosen(spared))), Vec::new()));
}

#[test]
fn a_condition_that_wraps_says_nothing() {
    let (a, b) = (tensor("A", &[7]), tensor("B", &[7]));
    let (i, ie) = var("i");
    let cond = || wrapping(&ie).floor_div(int(65536)).lt(int(1));
    let body = |index: Expr| {
        let value =
            Expr::IfThenElse(SharedExpr::new(cond()), SharedExpr::new(at(&a, &[index])), SharedExpr::new(int(0)));
        each(&i, 7, put(&b, std::slice::from_ref(&ie), value))
    };
    let before = func(&[&a, &b], body(ie.clone()));
    not_proved(&pass(&before, &like(&before, &[&a, &b], body(int(0))), Vec::new()));
}

#[test]
fn an_index_before_that_wraps_is_not_the_integer() {
    let b = tensor("B", &[7]);
    let (i, ie) = var("i");
    let body = |index: Expr| each(&i, 7, put(&b, &[index], int(1)));
    let before = func(&[&b], body(wrapping(&ie).floor_div(int(65536)).floor_div(int(65536))));
    not_proved(&pass(&before, &like(&before, &[&b], body(ie.clone())), Vec::new()));
}

#[test]
fn a_binding_that_wraps_is_not_the_integer() {
    let b = tensor("B", &[7]);
    let ((i, ie), (x, xe)) = (var("i"), var("x"));
    let inner = put(&b, &[xe.floor_div(int(65536)).floor_div(int(65536))], int(1));
    let before = func(&[&b], each(&i, 7, put(&b, std::slice::from_ref(&ie), int(1))));
    let after = like(&before, &[&b], each(&i, 7, bind(&x, wrapping(&ie), inner)));
    not_proved(&pass(&before, &after, Vec::new()));
}

#[test]
fn an_operation_without_a_value_is_not_added() {
    let b = tensor("B", &[7]);
    let (i, ie) = var("i");
    let body = |value: Expr| each(&i, 7, put(&b, std::slice::from_ref(&ie), value));
    let before = func(&[&b], body(int(0)));
    let trapping = [
        int(0) * int(1).floor_div(ie.clone()),
        int(0) * int(1).floor_mod(int(0)),
        Expr::binary(BinaryOp::Shr, ie.clone(), int(40)),
    ];
    for value in trapping {
        not_proved(&pass(&before, &like(&before, &[&b], body(value)), Vec::new()));
    }
}

#[test]
fn a_loop_variable_keeps_to_its_type() {
    let b = tensor("B", &[300]);
    let i = Var::new("i", ScalarType::Int8);
    let wide = Expr::Cast(DataType::INT32, SharedExpr::new(Expr::from(&i)));
    not_proved(&judge().check_program(&func(&[&b], each(&i, 300, put(&b, &[wide], int(1))))));
}

#[test]
fn flattening_keeps_the_offset() {
    let a = tensor("A", &[20]);
    let separated = |info: &mut tilewright_ir::BufferInfo| {
        info.axis_separators = AxisSeparators::new(vec![1], 2).unwrap();
    };
    let flat = view(&a, "V1", &[2, 7]).with(separated);
    let v = flat.with(|info| info.elem_offset = int(3));
    let ((i, ie), (j, je)) = (var("i"), var("j"));
    let body = |v: &Buffer| declare(v, each(&i, 2, each(&j, 7, put(v, &[ie.clone(), je.clone()], int(1)))));
    let before = func(&[&a], body(&v));
    let after = like(&before, &[&a], body(&flat));
    let identity = map_of(&[2, 7], <[Expr]>::to_vec);
    not_proved(&pass(&before, &after, vec![claim(&v, &flat, identity, BufferChange::Flatten)]));
}

#[test]
fn an_alias_moves_along_whatever_else_is_claimed_of_it() {
    let (a, b, t) = (tensor("A", &[2, 7]), tensor("B", &[14]), tensor("T", &[2, 7]));
    let v = view(&t, "V", &[14]);
    let (turned, flat) = (view(&t, "T1", &[7, 2]), view(&t, "V1", &[14]));
    let ((i, ie), (j, je), (k, ke)) = (var("i"), var("j"), var("k"));
    let body = |t: &Buffer, index: [&Expr; 2], v: &Buffer| {
        let write = put(t, &index.map(Clone::clone), at(&a, &[ie.clone(), je.clone()]));
        let read = declare(v, each(&k, 14, put(&b, std::slice::from_ref(&ke), at(v, std::slice::from_ref(&ke)))));
        allocate(t, Stmt::seq(vec![each(&i, 2, each(&j, 7, write)), read]))
    };
    let before = func(&[&a, &b], body(&t, [&ie, &je], &v));
    let after = like(&before, &[&a, &b], body(&turned, [&je, &ie], &flat));
    let transposed = map_of(&[2, 7], |i| vec![i[1].clone(), i[0].clone()]);
    let identity = map_of(&[14], <[Expr]>::to_vec);
    for change in [BufferChange::Flatten, BufferChange::Rename] {
        let claims = vec![
            claim(&t, &turned, transposed.clone(), BufferChange::Layout),
            claim(&v, &flat, identity.clone(), change),
        ];
        not_proved(&pass(&before, &after, claims));
    }
}

#[test]
fn a_view_lies_within_its_memory() {
    let (t, (i, ie)) = (tensor("T", &[7]), var("i"));
    let judge = judge();
    let body =
        |v: &Buffer, extent: i64| allocate(&t, declare(v, each(&i, extent, put(v, std::slice::from_ref(&ie), int(1)))));
    proved(&judge.check_program(&func(&[], body(&view(&t, "V", &[7]), 7))));
    not_proved(&judge.check_program(&func(&[], body(&view(&t, "V", &[1000]), 1000))));
    let moved = view(&t, "V", &[7]).with(|info| info.elem_offset = int(1));
    not_proved(&judge.check_program(&func(&[], body(&moved, 7))));
    let wide = view(&t, "V", &[7]).with(|info| info.dtype = DataType::scalar(ScalarType::Int64));
    let store = put(&wide, std::slice::from_ref(&ie), Expr::Int { value: 1, ty: ScalarType::Int64 });
    not_proved(&judge.check_program(&func(&[], allocate(&t, declare(&wide, each(&i, 7, store))))));
}

#[test]
fn a_program_that_is_not_well_formed_is_not_followed() {
    let b = tensor("B", &[7]);
    let ((i, ie), (j, _)) = (var("i"), var("j"));
    let before = func(&[&b], each(&i, 7, put(&b, std::slice::from_ref(&ie), int(1))));
    not_proved(&pass(
        &before,
        &like(&before, &[&b], each(&j, 7, put(&b, std::slice::from_ref(&ie), int(1)))),
        Vec::new(),
    ));
}

#[test]
fn a_layout_that_is_asked_for_is_applied() {
    let (a, b) = (tensor("A", &[7]), tensor("B", &[7]));
    let moved = view(&b, "B1", &[7]);
    let (i, ie) = var("i");
    let mut before =
        func(&[&a, &b], each(&i, 7, put(&b, std::slice::from_ref(&ie), at(&a, std::slice::from_ref(&ie)))));
    before.attrs.layout_transform_map.push((b.data.clone(), vec![reversed(7)]));
    let kept = like(&before, &[&a, &b], before.body.clone());
    not_proved(&pass(&before, &kept, Vec::new()));
    let body = |index: Expr| each(&i, 7, put(&moved, &[index], at(&a, std::slice::from_ref(&ie))));
    let right = like(&before, &[&a, &moved], body(int(6) - ie.clone()));
    proved(&pass(&before, &right, vec![claim(&b, &moved, reversed(7), BufferChange::Layout)]));
    let turned = |i: &Expr| (i.clone() + int(1)).floor_mod(int(7));
    let other = like(&before, &[&a, &moved], body(turned(&ie)));
    let map = map_of(&[7], |i| vec![turned(&i[0])]);
    not_proved(&pass(&before, &other, vec![claim(&b, &moved, map, BufferChange::Layout)]));
}

#[test]
fn an_assertion_that_was_added_is_no_premise() {
    let b = tensor("B", &[7]);
    let (i, ie) = var("i");
    let body = |before: Vec<Stmt>, index: Expr| {
        each(&i, 7, Stmt::seq(before.into_iter().chain([put(&b, &[index], int(1))]).collect()))
    };
    let cond = Expr::binary(BinaryOp::Eq, ie.clone(), int(3));
    let assert = Stmt::new(StmtKind::Assert { cond, message: "no".into() });
    let before = func(&[&b], body(Vec::new(), ie.clone()));
    not_proved(&pass(&before, &like(&before, &[&b], body(vec![assert], int(3))), Vec::new()));
}

/// `B[i] = A[i] + 1`, and its plain lowering.
fn successor() -> (Definition, PrimFunc, LoweringEvidence) {
    let (a, b) = (tensor("A", &[7]), tensor("B", &[7]));
    let ((i, ie), (x, xe), (k, ke)) = (var("i"), var("x"), var("k"));
    let axes = vec![tilewright_ir::Axis { var: x, extent: int(7) }];
    let body = StageBody::Elementwise(at(&a, &[xe]) + int(1));
    let stages = vec![Stage { buffer: b.clone(), axes, body }];
    let definition = Definition { name: "main".into(), params: vec![a.clone(), b.clone()], stages };
    let store = put(&b, std::slice::from_ref(&ie), at(&a, std::slice::from_ref(&ie)) + int(1));
    let holders = [&a, &b].map(|tensor| Holder { tensor: tensor.clone(), buffer: tensor.clone() }).to_vec();
    let (axis_vars, axes, inverse) = (vec![k], vec![ie], vec![(i.clone(), ke)]);
    let stores = vec![StoreClaim { tensor: b.clone(), role: StoreRole::Compute, axis_vars, axes, inverse }];
    (definition, func(&[&a, &b], each(&i, 7, store)), LoweringEvidence { holders, stores })
}

#[test]
fn a_lowered_program_does_not_trap() {
    let (definition, func, evidence) = successor();
    proved(&judge().check_lowering(&definition, &func, &evidence));
    let traps = [
        StmtKind::Assert { cond: Expr::bool(false), message: "no".into() },
        StmtKind::Evaluate(int(1).floor_div(int(0))),
    ];
    for trap in traps {
        let mut broken = func.clone();
        broken.body = Stmt::seq(vec![func.body.clone(), Stmt::new(trap)]);
        not_proved(&judge().check_lowering(&definition, &broken, &evidence));
    }
}

#[test]
fn a_value_defined_with_a_wrap_is_not_the_integer() {
    let (mut definition, mut func, evidence) = successor();
    let x = Expr::from(&definition.stages[0].axes[0].var);
    let b = definition.stages[0].buffer.clone();
    definition.stages[0].body = StageBody::Elementwise(wrapping(&x).floor_div(int(65536)));
    let (i, ie) = evidence.stores[0].inverse[0].clone();
    drop(ie);
    func.body = each(&i, 7, put(&b, &[Expr::from(&i)], Expr::from(&i) * int(65536)));
    not_proved(&judge().check_lowering(&definition, &func, &evidence));
}

#[test]
fn an_extent_is_no_index() {
    let (x, xe) = var("x");
    let map = IndexMap::new(vec![x], ints(&[5]), vec![xe.clone()], Vec::new()).unwrap();
    not_proved(&judge().check_map(MapClaim::new(&map, &[xe + int(1)]).padded(&[0])));
}

#[test]
fn some_instances_enumerated_prove_nothing_of_all() {
    let ((x, xe), (_, n)) = (var("x"), var("n"));
    // Constant for n = 4 only.
    let output = (xe * (n.clone() - int(4)) * (n.clone() - int(4)) + n.clone() * n.clone()).floor_mod(n * int(1009));
    let map = IndexMap::new(vec![x], ints(&[5]), vec![output], Vec::new()).unwrap();
    let reports = judge().check_map(MapClaim::new(&map, &[int(100_000)]).padded(&[0]));
    assert!(reports.iter().any(|report| report.obligation.id() == "injective" && !report.verdict.is_proved()));
}

#[test]
fn a_tight_shape_is_not_refuted() {
    let ((x, xe), (_, n)) = (var("x"), var("n"));
    let map = IndexMap::new(vec![x], ints(&[7]), vec![xe.floor_mod(n.clone())], Vec::new()).unwrap();
    let shape = [Expr::binary(BinaryOp::Min, n, int(7))];
    let reports = judge().check_map(MapClaim::new(&map, &shape));
    let tight = reports.iter().find(|report| report.obligation.id() == "tight").unwrap();
    assert!(!matches!(tight.verdict, Verdict::Refuted(_)), "{tight:?}");
}

#[test]
fn a_truth_value_is_true_or_false() {
    let b = tensor("B", &[1]);
    let flag = Var::new("flag", ScalarType::Bool);
    let body = |value: Expr| put(&b, &[int(0)], value);
    let select = Expr::Select(SharedExpr::new(Expr::from(&flag)), SharedExpr::new(int(1)), SharedExpr::new(int(0)));
    let mut before = func(&[&b], body(select));
    before.params.insert(0, flag.clone());
    let mut after = before.clone();
    after.body = body(Expr::Cast(DataType::INT32, SharedExpr::new(Expr::from(&flag))));
    proved(&pass(&before, &after, Vec::new()));
}
