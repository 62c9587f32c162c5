//! Pairs of small programs, by the mistake that a judge could make about them: wrong ones that must never be proved, and equal
//! ones that must never be refuted. What is refuted was executed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use tilewright::pipeline::{self, pair};
use tilewright_ir::PrimFunc;
use tilewright_verify::{Config, Judge, Method, Obligation, Report, Verdict};

/// The function with this signature and body.
fn func(signature: &str, body: &str) -> PrimFunc {
    let body = body.replace('\n', "\n    ");
    let text = format!("# from tvm.script import tir as T\n@T.prim_func\ndef main({signature}):\n    {body}\n");
    let read = pipeline::read(&text, None).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
    read.programs.into_iter().next().unwrap().func
}

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

/// The reports about a pair of functions.
fn validate(before: &PrimFunc, after: &PrimFunc) -> Vec<Report> {
    pair::validate(before, after, &[], &judge()).unwrap_or_else(|faults| panic!("{faults:#?}")).reports
}

fn worst(reports: &[Report]) -> Verdict {
    Verdict::worst(reports.iter().map(|report| report.verdict.clone())).unwrap()
}

/// The verdict about two bodies of one signature.
fn verdict(signature: &str, before: &str, after: &str) -> Verdict {
    let (before, after) = (func(signature, before), func(signature, after));
    worst(&validate(&before, &after))
}

/// A pair that differs: it is refuted, by an execution.
fn is_refuted_by_running(before: &PrimFunc, after: &PrimFunc) {
    let reports = validate(before, after);
    let refuted = |report: &&Report| matches!(report.verdict, Verdict::Refuted(_));
    let found = reports.iter().find(refuted).unwrap_or_else(|| panic!("not refuted: {}", worst(&reports)));
    assert_eq!(found.method, Method::Interpreter, "{}", found.verdict);
}

const AB: &str = "A: T.Buffer((7,), \"float32\"), B: T.Buffer((7,), \"float32\")";
const PLANE: &str = "A: T.Buffer((5, 7), \"float32\"), B: T.Buffer((5, 7), \"float32\")";

#[test]
fn a_program_is_itself() {
    for (signature, body) in [
        (AB, "for i in range(7):\n    B[i] = A[i] + T.float32(1)"),
        (AB, "for i in range(0):\n    B[i] = A[i]"),
        (AB, "for i in range(7):\n    if i > 9:\n        B[i] = A[i]"),
        (PLANE, "for i, j in T.grid(5, 7):\n    if i * 7 + j < 30:\n        B[i, j] = A[i, j]"),
        (
            "k: T.int32, A: T.Buffer((7,), \"float32\"), B: T.Buffer((7,), \"float32\")",
            "for i in range(7):\n    if k > 0:\n        B[i] = A[i]",
        ),
        (
            "a: T.handle, b: T.handle",
            "n = T.int32()\nA = T.match_buffer(a, (n,), \"float32\")\nB = T.match_buffer(b, (n,), \"float32\")\nfor i in range(n):\n    B[i] = A[i]",
        ),
    ] {
        let one = func(signature, body);
        let verdict = worst(&validate(&one, &func(signature, body)));
        assert!(verdict.is_proved(), "{body}\n{verdict}");
    }
}

#[test]
fn another_name_of_an_extent_changes_nothing() {
    let of = |n: &str| {
        func(
            "a: T.handle, b: T.handle",
            &format!(
                "{n} = T.int32()\nA = T.match_buffer(a, ({n}, 4), \"float32\")\nB = T.match_buffer(b, ({n}, 4), \"float32\")\n\
                 for i, j in T.grid({n}, 4):\n    B[i, j] = A[i, j]"
            ),
        )
    };
    assert!(worst(&validate(&of("n"), &of("n"))).is_proved());
    let verdict = worst(&validate(&of("n"), &of("k")));
    assert!(verdict.is_proved(), "{verdict}");
}

/// Class b: scalars in offsets, strides and shape expressions may be zero or negative.
#[test]
fn a_scalar_of_a_view_may_be_zero() {
    for view in ["(7,), \"float32\", elem_offset=off", "(7,), \"float32\", strides=[off]", "(off + 7,), \"float32\""] {
        let of = |body: &str| {
            func(
                "off: T.int32, a: T.handle, b: T.handle",
                &format!(
                    "A = T.match_buffer(a, {view})\nB = T.match_buffer(b, (7,), \"float32\")\nfor i in range(7):\n    {body}"
                ),
            )
        };
        let (guarded, bare) = (of("if off > 0:\n        B[i] = A[i]"), of("B[i] = A[i]"));
        assert!(!worst(&validate(&guarded, &bare)).is_proved(), "{view}");
        let lowered = pipeline_of(&guarded);
        assert!(lowered.contains("if "), "{view}: {lowered}");
    }
}

/// The text of a function after all passes.
fn pipeline_of(func: &PrimFunc) -> String {
    let simplified = tilewright::passes::pass_by_name("simplify").unwrap();
    let after = (simplified.run)(func).unwrap().func;
    tilewright_script::print_func(&after)
}

#[test]
fn a_program_does_not_ask_more_of_its_caller_than_the_one_before() {
    let of = |attr: &str| {
        let body = format!("{attr}for i in range(7):\n    B[i] = T.float32(1)");
        func("k: T.int32, B: T.Buffer((7,), \"float32\")", &body)
    };
    let (bare, asking) = (of(""), of("T.func_attr({\"extents\": [k]})\n"));
    assert!(worst(&validate(&asking, &asking)).is_proved());
    assert!(worst(&validate(&bare, &bare)).is_proved());
    assert!(!worst(&validate(&bare, &asking)).is_proved());
}

/// Class c: parameters are passed by position.
#[test]
fn scalar_parameters_that_change_places_are_not_proved() {
    let of = |signature: &str, body: &str| func(signature, body);
    let body = "A = T.match_buffer(a, (n,), \"float32\")\nfor i in range(n):\n    A[i] = T.float32(1)";
    let (nm, mn) = ("n: T.int32, m: T.int32, a: T.handle", "m: T.int32, n: T.int32, a: T.handle");
    assert!(worst(&validate(&of(nm, body), &of(nm, body))).is_proved());
    assert!(!worst(&validate(&of(nm, body), &of(mn, body))).is_proved());
    let by_value = "A = T.match_buffer(a, (4,), \"int32\")\nfor i in range(4):\n    A[i] = n - m";
    assert!(worst(&validate(&of(nm, by_value), &of(nm, by_value))).is_proved());
    is_refuted_by_running(&of(nm, by_value), &of(mn, by_value));
}

/// Class d: nothing follows from premises that cannot hold together.
#[test]
fn contradictory_premises_prove_nothing() {
    let huge = "a: T.handle, b: T.handle";
    let body = |value: &str| {
        format!(
            "n = T.int32()\nA = T.match_buffer(a, (n, 2147483647), \"float32\")\nB = T.match_buffer(b, (n, 4), \"float32\")\n\
             for i, j in T.grid(n, 4):\n    B[i, j] = T.float32({value})"
        )
    };
    let (one, two) = (func(huge, &body("1")), func(huge, &body("2")));
    assert!(!worst(&validate(&one, &two)).is_proved());
    let reports = judge().check_program(&func(huge, &body("1").replace("B[i, j]", "B[i + 1, j]")));
    assert!(!worst(&reports).is_proved());
    let without_value = |value: &str| {
        func(
            "n: T.int32, B: T.Buffer((7,), \"float32\")",
            &format!("assert n // 0 == 1, \"never\"\nfor i in range(7):\n    B[i] = T.float32({value})"),
        )
    };
    assert!(!worst(&validate(&without_value("1"), &without_value("2"))).is_proved());
    assert!(!worst(&judge().check_program(&without_value("1"))).is_proved());
}

/// Class f: what the second program asks for is compared.
#[test]
fn a_layout_that_only_the_second_program_asks_for_is_not_proved() {
    let body = |attr: &str| format!("{attr}for i, j in T.grid(5, 7):\n    B[i, j] = A[i, j]");
    let asking =
        |map: &str| func(PLANE, &body(&format!("T.func_attr({{\"layout_transform_map\": {{B: [{map}]}}}})\n")));
    let (bare, asked) = (func(PLANE, &body("")), asking("lambda i, j: [j, i]"));
    assert!(worst(&validate(&asked, &asking("lambda i, j: [j, i]"))).is_proved());
    assert!(!worst(&validate(&bare, &asked)).is_proved());
    assert!(!worst(&validate(&asking("lambda i, j: [j // 2, i, j % 2]"), &asked)).is_proved());
    let tiled = |layout: &str| func(PLANE, &body(&format!("T.func_attr({{\"tile_layout\": {{B: \"{layout}\"}}}})\n")));
    assert!(worst(&validate(&tiled("{1,0:T(2,4)}"), &tiled("{1,0:T(2,4)}"))).is_proved());
    assert!(!worst(&validate(&bare, &tiled("{1,0:T(2,4)}"))).is_proved());
    assert!(!worst(&validate(&tiled("{0,1:T(2,4)}"), &tiled("{1,0:T(2,4)}"))).is_proved());
}

/// Programs that do the same in another way. The judge may not see it, but it never says that they differ.
#[test]
fn restructured_programs_are_never_refuted() {
    let whole = "for i, j in T.grid(5, 7):\n    B[i, j] = A[i, j]";
    for (what, signature, before, after) in [
        ("fused", PLANE, whole, "for k in range(35):\n    B[k // 7, k % 7] = A[k // 7, k % 7]"),
        (
            "split",
            AB,
            "for i in range(7):\n    B[i] = A[i]",
            "for o, i in T.grid(2, 4):\n    if o * 4 + i < 7:\n        B[o * 4 + i] = A[o * 4 + i]",
        ),
        ("interchanged", PLANE, whole, "for j, i in T.grid(7, 5):\n    B[i, j] = A[i, j]"),
        ("shifted", AB, "for i in range(7):\n    B[i] = A[i]", "for i in T.serial(1, 8):\n    B[i - 1] = A[i - 1]"),
        (
            "tightened",
            AB,
            "for i in range(7):\n    if i < 5:\n        B[i] = A[i]",
            "for i in range(5):\n    B[i] = A[i]",
        ),
        (
            "extent one",
            AB,
            "for k in range(1):\n    for i in range(7):\n        B[i] = A[i + k]",
            "for i in range(7):\n    B[i] = A[i]",
        ),
        (
            "joined",
            AB,
            "for i in range(7):\n    if i < 5:\n        if i > 1:\n            B[i] = A[i]",
            "for i in range(7):\n    if i < 5 and i > 1:\n        B[i] = A[i]",
        ),
        (
            "reordered",
            AB,
            "for i in range(7):\n    B[i] = T.float32(1)\n    A[i] = T.float32(2)",
            "for i in range(7):\n    A[i] = T.float32(2)\n    B[i] = T.float32(1)",
        ),
        (
            "forwarded",
            AB,
            "for i in range(7):\n    A[i] = T.float32(3)\n    B[i] = A[i]",
            "for i in range(7):\n    A[i] = T.float32(3)\n    B[i] = T.float32(3)",
        ),
        (
            "dead store",
            AB,
            "for i in range(7):\n    B[i] = T.float32(1)\n    B[i] = A[i]",
            "for i in range(7):\n    B[i] = A[i]",
        ),
        (
            "two stores under a guard that always holds",
            AB,
            "for i in range(7):\n    if i < 7:\n        B[i] = A[i]\n        A[i] = T.float32(0)",
            "for i in range(7):\n    B[i] = A[i]\n    A[i] = T.float32(0)",
        ),
        (
            "alias",
            AB,
            "for i in range(7):\n    B[i] = A[i]",
            "V = T.decl_buffer((7,), \"float32\", data=A.data)\nfor i in range(7):\n    B[i] = V[i]",
        ),
        (
            "a guard that divides by zero",
            AB,
            "for i in range(7):\n    if T.truncmod(5, i + 1) == 1 or i <= i:\n        B[i] = A[i]",
            "for i in range(7):\n    B[i] = A[i]",
        ),
    ] {
        let same = verdict(signature, before, before);
        assert!(same.is_proved(), "{what}: {same}");
        let found = verdict(signature, before, after);
        assert!(!matches!(found, Verdict::Refuted(_)), "{what}: {found}");
    }
}

#[test]
fn programs_that_differ_are_refuted_by_an_execution() {
    for (signature, before, after) in [
        (AB, "for i in range(7):\n    B[i] = A[i]", "for i in range(7):\n    B[i] = A[6 - i]"),
        (AB, "for i in range(7):\n    B[i] = A[i]", "for i in range(6):\n    B[i] = A[i]"),
        (
            PLANE,
            "for i, j in T.grid(5, 7):\n    B[i, j] = A[i, j]",
            "for k in range(35):\n    B[k // 7, k % 7] = A[k // 7, k % 5]",
        ),
        (AB, "for i in range(7):\n    if i < 5:\n        B[i] = A[i]", "for i in range(7):\n    B[i] = A[i]"),
        (
            AB,
            "for i in range(7):\n    A[i] = T.float32(3)\n    B[i] = A[i]",
            "for i in range(7):\n    B[i] = A[i]\n    A[i] = T.float32(3)",
        ),
    ] {
        is_refuted_by_running(&func(signature, before), &func(signature, after));
    }
}

/// The verdict about the accesses of a program, apart from all other obligations.
fn bounds(body: &str) -> Verdict {
    let reports = judge().check_program(&func(AB, body));
    let of_bounds = reports.into_iter().filter(|report| report.obligation == Obligation::Bounds);
    Verdict::worst(of_bounds.map(|report| report.verdict)).unwrap()
}

#[test]
fn what_is_never_reached_holds_and_what_is_reached_once_does_not() {
    let guarded =
        |guard: &str| bounds(&format!("for i in range(7):\n    if {guard}:\n        B[i + 1] = T.float32(1)"));
    assert!(guarded("i > 6").is_proved());
    assert!(guarded("i < 6").is_proved());
    assert!(!guarded("i > 5").is_proved());
    assert!(!guarded("i < 7").is_proved());
}

#[test]
fn a_divisor_is_not_zero_only_where_the_division_was_evaluated() {
    let guarded =
        |guard: &str| bounds(&format!("for i in range(7):\n    if {guard}:\n        B[i - 1] = T.float32(1)"));
    assert!(guarded("T.truncmod(5, i) < 9").is_proved());
    assert!(!guarded("T.truncmod(5, i + 1) < 9").is_proved());
    // The second operand need not be evaluated, and neither need the arms of a choice.
    assert!(!guarded("i <= i or T.truncmod(5, i) < 9").is_proved());
    assert!(!guarded("T.if_then_else(i > 0, T.truncmod(5, i), 1) < 9").is_proved());
}

#[test]
fn a_refuted_race_or_bound_stays_one() {
    let reports = judge().check_program(&func(AB, "for i in range(8):\n    B[i] = T.float32(1)"));
    assert!(reports.iter().any(|r| r.obligation == Obligation::Bounds && matches!(r.verdict, Verdict::Refuted(_))));
}

#[test]
fn a_parameter_with_more_elements_is_a_premise() {
    let of = |extent: usize| {
        func(
            &format!("A: T.Buffer((8,), \"int32\"), B: T.Buffer(({extent},), \"int32\")"),
            "for i in range(8):\n        B[i] = A[i]",
        )
    };
    for (extent, is_premise) in [(8, false), (9, true), (64, true)] {
        let judged = pair::validate(&of(8), &of(extent), &[], &judge()).unwrap();
        let premises: Vec<String> = judged.premises.iter().map(ToString::to_string).collect();
        let names_it = premises.iter().any(|premise| premise.contains("room for padding in B"));
        assert_eq!(names_it, is_premise, "{extent}: {premises:?}");
    }
    assert_ne!(worst(&validate(&of(9), &of(8))).word(), "proved");
}

#[test]
fn names_that_stand_for_names_twice_are_not_written_out() {
    // 36 names, each of the one before twice: written out, the last one has 2^36 operations.
    let chain = |ty: &str, first: &str, step: &str, last: &str| {
        let mut body = format!("for i in range(16):\n    x0: T.{ty} = {first}\n");
        for name in 1..=36 {
            let value = step.replace('#', &format!("x{}", name - 1));
            writeln!(body, "    x{name}: T.{ty} = {value}").unwrap();
        }
        body + "    " + last
    };
    let int = "A: T.Buffer((16,), \"int32\"), B: T.Buffer((16,), \"int32\")";
    let float = int.replace("int32", "float32");
    for (signature, ty, first, step, last) in [
        (float.as_str(), "float32", "A[i]", "# + #", "B[i] = x36"),
        (int, "int32", "i", "T.max(#, #)", "B[i] = x36"),
        (int, "int32", "i", "(# + #) % 16", "B[x36] = 1"),
        (int, "int32", "A[i]", "# + #", "B[i] = x36"),
        (int, "bool", "i > 3", "# and #", "if x36:\n        B[i] = 1"),
    ] {
        let func = self::func(signature, &chain(ty, first, step, last));
        let judge = judge();
        let reports = judge.check_program(&func);
        assert!(!reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{reports:#?}");
        let simple = tilewright::passes::simplify(&func).unwrap();
        let reports = judge.check_pass(&func, &simple.func, &simple.evidence);
        assert!(!reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{reports:#?}");
        validate(&func, &func);
        let more = format!("B[i] = x36 + T.{ty}(1)");
        let wrong =
            self::func(signature, &chain(ty, first, step, last).replace("] = 1", "] = 2").replace("B[i] = x36", &more));
        assert!(!worst(&validate(&func, &wrong)).is_proved());
    }
}
