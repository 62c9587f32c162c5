//! Wrong programs and lying claims made to slip past the judge: none is proved.
//!
//! Each was proved (or, of the last ones, refuted though right) by an earlier judge.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::map::Mapped;
use common::pair::Pair;
use common::{buffer, int, judge, program};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    Axis, BufferChange, Definition, Evidence, Expr, Holder, LoweringEvidence, PrimFunc, Stage, StageBody, Stmt,
    StmtKind, StoreClaim, StoreRole, Var,
};
use tilewright_verify::{Report, Verdict};

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

const COPY: &str = r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    for i in range(7):
        B[i] = A[i]
"#;

#[test]
fn a_renaming_does_not_move_anything() {
    let before = r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    S = T.alloc_buffer((7,), "int32")
    V = T.decl_buffer((7,), "int32", data=S.data)
    for i in range(7):
        S[i] = A[i]
    for j in range(7):
        B[j] = V[j]
"#;
    let after = before.replace("S[i]", "S1[6 - i]").replace("S = ", "S1 = ").replace("S.data", "S1.data");
    Pair::new(before, &after).claim(BufferChange::Rename, "S -> S1", "lambda i: [6 - i]").is_not_proved();
}

#[test]
fn a_parameter_that_is_moved_is_passed_in_its_new_layout() {
    let (layout, reversed) = (BufferChange::Layout, "lambda i: [6 - i]");
    Pair::new(COPY, COPY).twin("B[i]", "B[6 - i]").claim(layout, "B -> B", reversed).is_proved();
    let view = "    B1 = T.decl_buffer((7,), \"int32\", data=B.data)\n    for";
    let inside = Pair::new(COPY, COPY).twin("    for", view).twin("B[i]", "B1[6 - i]");
    inside.claim(layout, "B -> B1", reversed).is_not_proved();
}

#[test]
fn a_buffer_moves_by_one_map() {
    let before = r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    S = T.alloc_buffer((7,), "int32")
    for i in range(7):
        S[i] = A[i]
    for j in range(7):
        B[j] = S[j]
"#;
    let after = r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    S1 = T.alloc_buffer((7,), "int32")
    S2 = T.decl_buffer((7,), "int32", data=S1.data)
    for i in range(7):
        S1[i] = A[i]
    for j in range(7):
        B[j] = S2[6 - j]
"#;
    let layout = BufferChange::Layout;
    let twice = Pair::new(before, after).claim(layout, "S -> S1", "lambda i: [i]");
    twice.claim(layout, "S -> S2", "lambda i: [6 - i]").is_not_proved();
}

#[test]
fn a_map_does_not_depend_on_the_iteration() {
    let before = r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32"), C: T.Buffer((3, 7), "int32")):
    for i, x in T.grid(3, 7):
        C[i, x] = B[x]
        B[x] = A[x]
"#;
    let turned = Pair::new(before, before).twin("B[x]\n        B[x]", "B[(x + i) % 7]\n        B[(x + i) % 7]");
    let lie = turned.claim(BufferChange::Layout, "B -> B", "lambda x: [(x + i) % 7]");
    let (before, after, mut evidence) = lie.programs();
    evidence.buffers[0].padded_axes = vec![0];
    not_proved(&judge().check_pass(&before, &after, &evidence));
}

#[test]
fn two_reads_with_a_store_between_are_two_values() {
    let before = r#"def main(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    x = A[0]
    A[0] = 5
    y = A[0]
    if x == y:
        B[0] = 1
"#;
    Pair::new(before, before).twin("if x == y:\n        B", "B").is_not_proved();
}

/// The offset of the view is in terms of one variable in both programs, which two texts cannot say.
#[test]
fn a_view_that_moves_with_a_loop_variable_is_another_view() {
    let before = program(
        r#"def main(A: T.Buffer((5,), "int32")):
    for i, j in T.grid(5, 5):
        V = T.decl_buffer((1,), "int32", data=A.data, elem_offset=i)
        V[0] = j
"#,
    );
    let StmtKind::For(outer) = &before.body.kind else { panic!() };
    let StmtKind::For(inner) = &outer.body.kind else { panic!() };
    let swapped = Substitution::new([&inner.var], [Expr::from(&outer.var)]).apply_stmt(&inner.body);
    let each = |var: &Var, body| Stmt::for_loop(var, int(5), outer.kind, body);
    let after = PrimFunc { body: each(&inner.var, each(&outer.var, swapped)), ..before.clone() };
    not_proved(&judge().check_pass(&before, &after, &Evidence::default()));
}

/// A program that does something seven times, and another one.
fn seven_times(before: &str, after: &str) -> Pair {
    let func = |stmt: &str| {
        format!(
            r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    for i in range(7):
        {stmt}
"#
        )
    };
    Pair::new(&func(before), &func(after))
}

// `i * 65536 * 65536` is 0 in `int32`, and a large number among the integers.

#[test]
fn a_value_that_wraps_is_not_the_integer() {
    seven_times("B[i] = i * 65536 * 65536 // 65536", "B[i] = i * 65536").is_not_proved();
}

#[test]
fn a_value_that_wraps_where_nobody_looks_is_not_the_integer() {
    let value = "T.Select(i == 777, 65536, 0)";
    let before = format!("B[i] = {value} * 65536 // 65536");
    let wide = |pair: Pair| pair.with_words(&[("7", "2000")]);
    wide(seven_times(&before, &format!("B[i] = {value}"))).is_not_proved();
    // 0 at 777, where the integers say 65536: the other branch is taken.
    let chosen = |index: &str| format!("B[i] = T.if_then_else({value} * 65536 // 65536 < 1, A[{index}], 0)");
    wide(seven_times(&chosen("i"), &chosen("T.Select(i == 777, 0, i)"))).is_not_proved();
}

#[test]
fn a_condition_that_wraps_says_nothing() {
    let chosen = |index: &str| format!("B[i] = T.if_then_else(i * 65536 * 65536 // 65536 < 1, A[{index}], 0)");
    seven_times(&chosen("i"), &chosen("0")).is_not_proved();
}

#[test]
fn an_index_before_that_wraps_is_not_the_integer() {
    seven_times("B[i * 65536 * 65536 // 65536 // 65536] = 1", "B[i] = 1").is_not_proved();
}

#[test]
fn a_binding_that_wraps_is_not_the_integer() {
    seven_times("B[i] = 1", "x = i * 65536 * 65536; B[x // 65536 // 65536] = 1").is_not_proved();
}

#[test]
fn an_operation_without_a_value_is_not_added() {
    for value in ["0 * (1 // i)", "0 * (1 % 0)", "i >> 40"] {
        seven_times("B[i] = 0", &format!("B[i] = {value}")).is_not_proved();
    }
}

#[test]
fn a_loop_variable_keeps_to_its_type() {
    let narrow = r#"def main(B: T.Buffer((300,), "int32")):
    for i in T.serial(300, dtype="int8"):
        B[T.cast(i, "int32")] = 1
"#;
    not_proved(&judge().check_program(&program(narrow)));
}

#[test]
fn flattening_keeps_the_offset() {
    let before = r#"def main(A: T.Buffer((20,), "int32")):
    V = T.decl_buffer((2, 7), "int32", data=A.data, elem_offset=3, axis_separators=[1])
    for i, j in T.grid(2, 7):
        V[i, j] = 1
"#;
    let forgotten = Pair::new(before, before).twin("elem_offset=3, ", "");
    forgotten.claim(BufferChange::Flatten, "V -> V", "lambda i, j: [i, j]").is_not_proved();
}

#[test]
fn an_alias_moves_along_whatever_else_is_claimed_of_it() {
    let before = r#"def main(A: T.Buffer((2, 7), "int32"), B: T.Buffer((14,), "int32")):
    S = T.alloc_buffer((2, 7), "int32")
    for i, j in T.grid(2, 7):
        S[i, j] = A[i, j]
    V = T.decl_buffer((14,), "int32", data=S.data)
    for k in range(14):
        B[k] = V[k]
"#;
    let turned =
        Pair::new(before, before).twin("alloc_buffer((2, 7)", "alloc_buffer((7, 2)").twin("S[i, j]", "S[j, i]");
    let turned = turned.claim(BufferChange::Layout, "S -> S", "lambda i, j: [j, i]");
    for change in [BufferChange::Flatten, BufferChange::Rename] {
        turned.clone().claim(change, "V -> V", "lambda k: [k]").is_not_proved();
    }
}

#[test]
fn a_view_lies_within_its_memory() {
    let view = |extent: usize, dtype: &str, offset: usize| {
        program(&format!(
            r#"def main():
    S = T.alloc_buffer((7,), "int32")
    V = T.decl_buffer(({extent},), "{dtype}", data=S.data, elem_offset={offset})
    for i in range({extent}):
        V[i] = 1
"#
        ))
    };
    let judge = judge();
    proved(&judge.check_program(&view(7, "int32", 0)));
    not_proved(&judge.check_program(&view(1000, "int32", 0)));
    not_proved(&judge.check_program(&view(7, "int32", 1)));
    not_proved(&judge.check_program(&view(7, "int64", 0)));
}

/// The variable of the loop after is not bound, which no text can say.
#[test]
fn a_program_that_is_not_well_formed_is_not_followed() {
    let (before, mut after, evidence) = seven_times("B[i] = 1", "B[i] = 1").programs();
    let StmtKind::For(outer) = &after.body.kind else { panic!() };
    after.body = Stmt::for_loop(&Var::index("j"), int(7), outer.kind, outer.body.clone());
    not_proved(&judge().check_pass(&before, &after, &evidence));
}

#[test]
fn a_layout_that_is_asked_for_is_applied() {
    let asked = Pair::new(COPY, COPY)
        .twin_before("    for", "    T.func_attr({\"layout_transform_map\": {B: lambda i: [6 - i]}})\n    for");
    asked.is_not_proved();
    let moved = |index: &str| {
        let map = format!("lambda i: [{index}]");
        asked.twin("B[i]", &format!("B[{index}]")).claim(BufferChange::Layout, "B -> B", &map)
    };
    moved("6 - i").is_proved();
    moved("(i + 1) % 7").is_not_proved();
}

#[test]
fn an_assertion_that_was_added_is_no_premise() {
    seven_times("B[i] = 1", "assert i == 3; B[3] = 1").is_not_proved();
}

const SUCCESSOR: &str = r#"def main(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    for i in range(7):
        B[i] = A[i] + 1
"#;

/// A program, said to be the lowering of `B[x] = A[x] + 1`. Texts cannot say definitions: this one has the buffers of the
/// program.
fn lowering(text: &str) -> (Definition, PrimFunc, LoweringEvidence) {
    let func = program(text);
    let [a, b] = ["A", "B"].map(|name| buffer(&func, name));
    let (x, k) = (Var::index("x"), Var::index("k"));
    let body = StageBody::Elementwise(Expr::load(&a, vec![Expr::from(&x)]) + int(1));
    let stages = vec![Stage { buffer: b.clone(), axes: vec![Axis { var: x, extent: int(7) }], body }];
    let definition = Definition { name: "main".into(), params: vec![a.clone(), b.clone()], stages };
    let holders = [&a, &b].map(|tensor| Holder { tensor: tensor.clone(), buffer: tensor.clone() }).to_vec();
    let mut loops = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind {
            loops.push(inner.var.clone());
        }
    });
    let (axes, inverse) = (vec![Expr::from(&loops[0])], vec![(loops[0].clone(), Expr::from(&k))]);
    let stores = vec![StoreClaim { tensor: b, role: StoreRole::Compute, axis_vars: vec![k], axes, inverse }];
    (definition, func, LoweringEvidence { holders, stores })
}

#[test]
fn a_lowered_program_does_not_trap() {
    let reports = |text: &str| {
        let (definition, func, evidence) = lowering(text);
        judge().check_lowering(&definition, &func, &evidence)
    };
    proved(&reports(SUCCESSOR));
    for trap in ["assert False", "T.evaluate(1 // 0)"] {
        not_proved(&reports(&format!("{SUCCESSOR}    {trap}\n")));
    }
}

#[test]
fn a_value_defined_with_a_wrap_is_not_the_integer() {
    let (mut definition, func, evidence) = lowering(&SUCCESSOR.replace("A[i] + 1", "i * 65536"));
    let x = Expr::from(&definition.stages[0].axes[0].var);
    let wraps = Mapped::new("lambda x: [x * 65536 * 65536 // 65536]", "7", "7").map;
    definition.stages[0].body = StageBody::Elementwise(wraps.apply(&[x])[0].clone());
    not_proved(&judge().check_lowering(&definition, &func, &evidence));
}

#[test]
fn an_extent_is_no_index() {
    let mut map = Mapped::new("lambda x: [x]", "5", "6");
    map.shape = vec![Expr::from(&map.map.vars()[0]) + int(1)];
    not_proved(&judge().check_map(map.claim().padded(&[0])));
}

#[test]
fn some_instances_enumerated_prove_nothing_of_all() {
    // Constant for n = 4 only.
    let map = Mapped::new("lambda x: [(x * (n - 4) * (n - 4) + n * n) % (n * 1009)]", "5", "100000");
    let reports = judge().check_map(map.claim().padded(&[0]));
    assert!(reports.iter().any(|report| report.obligation.id() == "injective" && !report.verdict.is_proved()));
}

#[test]
fn a_tight_shape_is_not_refuted() {
    let reports = judge().check_map(Mapped::new("lambda x: [x % n]", "7", "T.min(n, 7)").claim());
    let tight = reports.iter().find(|report| report.obligation.id() == "tight").unwrap();
    assert!(!matches!(tight.verdict, Verdict::Refuted(_)), "{tight:?}");
}

#[test]
fn a_truth_value_is_true_or_false() {
    let before = r#"def main(flag: T.bool, B: T.Buffer((1,), "int32")):
    B[0] = T.Select(flag, 1, 0)
"#;
    let right = Pair::new(before, before).twin("T.Select(flag, 1, 0)", "T.cast(flag, \"int32\")");
    proved(&right.judged());
}
