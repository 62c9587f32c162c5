//! The judge on programs whose indices come from memory, mix bits, or whose values wrap: what passes make of them is proved, and
//! broken twins are not.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright::passes::{DEFAULT_PIPELINE, pass_by_name};
use tilewright::pipeline::pair::validate;
use tilewright_ir::{BufferChange, BufferClaim, Evidence, Expr, IndexMap, PrimFunc, Var};
use tilewright_verify::method::{Method, Points};
use tilewright_verify::{Config, Judge, Report, Verdict};

fn read(head: &str, body: &str) -> PrimFunc {
    let text = format!("from tvm.script import tir as T\n\n@T.prim_func\ndef main({head}):\n    {body}\n");
    tilewright_script::read_module(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).funcs.remove(0)
}

fn open(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

fn of_program(head: &str, body: &str) -> Vec<String> {
    open(&Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_program(&read(head, body)))
}

/// Each buffer of the first program is the one of the second with its name.
fn of_pair(head: &str, before: &str, after: &str) -> Vec<String> {
    let (before, after) = (read(head, before), read(head, after));
    let claim = |old: tilewright_ir::Buffer| {
        let new = after.buffers().into_iter().find(|new| new.name == old.name)?;
        let vars: Vec<Var> = (0..old.rank()).map(|axis| Var::index(format!("x{axis}"))).collect();
        let outputs = vars.iter().map(Expr::from).collect();
        let map = IndexMap::new(vars, old.shape.clone(), outputs, Vec::new()).unwrap();
        Some(BufferClaim { before: old, after: new, map, change: BufferChange::Rename, padded_axes: Vec::new() })
    };
    let buffers = before.buffers().into_iter().filter_map(claim).collect();
    let evidence = Evidence { pass: "test".into(), buffers, ..Evidence::default() };
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    open(&judge.taking_over().check_pass(&before, &after, &evidence))
}

/// What is the same program is proved, and each twin is not.
#[track_caller]
fn only(head: &str, before: &str, right: &str, twins: &[&str]) {
    assert_eq!(of_pair(head, before, before), Vec::<String>::new());
    assert_eq!(of_pair(head, before, right), Vec::<String>::new());
    for twin in twins {
        assert_ne!(of_pair(head, before, twin), Vec::<String>::new(), "{twin}");
    }
}

const GATHER: &str =
    "A: T.Buffer((5, 7), \"float32\"), I: T.Buffer((5, 3), \"int32\"), B: T.Buffer((5, 3), \"float32\")";

#[test]
fn an_index_that_is_read_in_another_way_is_the_same() {
    only(
        GATHER,
        "for i, j in T.grid(5, 3):\n        B[i, j] = A[i, T.min(T.max(I[i, j], 0), 6)]",
        "for i, j in T.grid(5, 3):\n        B[i, j] = A[i, T.max(T.min(I[i, (j + 3) % 3], 6), 0)]",
        &[
            "for i, j in T.grid(5, 3):\n        B[i, j] = A[i, T.max(T.min(I[i, (j + 1) % 3], 6), 0)]",
            "for i, j in T.grid(5, 3):\n        B[i, j] = A[i, T.max(T.min(I[i, j], 5), 0)]",
            "for i, j in T.grid(5, 3):\n        B[i, j] = A[4 - i, T.max(T.min(I[i, j], 6), 0)]",
        ],
    );
}

#[test]
fn nothing_else_may_be_read_even_where_it_does_not_matter() {
    // What is read may hold nothing.
    only(
        GATHER,
        "for i in range(5):\n        B[i, 0] = A[i, I[i, 1] % 1]",
        "for i in range(5):\n        B[i, 0] = A[i, I[i, 0 + 1] % 1]",
        &[
            "for i in range(5):\n        B[i, 0] = A[i, I[i, 2] % 1]",
            "for i in range(5):\n        B[i, 0] = A[i, I[0, 1] % 1]",
        ],
    );
    let chosen =
        |index: &str| format!("for i in range(5):\n        B[i, 0] = A[i, T.if_then_else(i < 2, {index}, 0) % 7]");
    let always = "for i in range(5):\n        B[i, 0] = A[i, T.Select(i < 2, I[i, 0], 0) % 7]";
    only(GATHER, &chosen("I[i, 0]"), &chosen("I[i, i // 5]"), &[always]);
}

#[test]
fn a_gather_goes_through_every_pass_with_new_layouts() {
    let body =
        "T.func_attr({\"layout_transform_map\": {A: [lambda x, y: [y, x]], I: [lambda x, y: [y // 2, x, y % 2]], \
                B: [lambda x, y: [(x + 2) % 5, y]]}})
    for i, j in T.grid(5, 3):
        B[i, j] = A[i, T.floormod(I[i, j], 7)] * A[T.floormod(I[4 - i, j], 5), j]";
    let mut func = read(GATHER, body);
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let mut n_passes = 0;
    for name in DEFAULT_PIPELINE {
        let pass = pass_by_name(name).unwrap();
        if (pass.wanted)(&func) {
            let done = (pass.run)(&func).unwrap();
            assert_eq!(open(&judge.check_pass(&func, &done.func, &done.evidence)), Vec::<String>::new(), "{name}");
            func = done.func;
            n_passes += 1;
        }
    }
    assert!(n_passes >= 3, "{n_passes}");
}

#[test]
fn what_is_read_is_of_its_type() {
    let table = |extent: i64, ty: &str| {
        let head = format!(
            "A: T.Buffer(({extent},), \"float32\"), I: T.Buffer((9,), \"{ty}\"), B: T.Buffer((9,), \"float32\")"
        );
        of_program(&head, "for i in range(9):\n        B[i] = A[I[i]]")
    };
    assert_eq!(table(256, "uint8"), Vec::<String>::new());
    assert_ne!(table(255, "uint8"), Vec::<String>::new());
    assert_ne!(table(256, "int8"), Vec::<String>::new());
    let scaled = |ty: &str| {
        let head = "A: T.Buffer((7,), \"float32\"), I: T.Buffer((9,), \"int32\"), B: T.Buffer((9,), \"float32\")";
        of_program(
            head,
            &format!("for i in range(9):\n        B[i] = A[T.Cast(\"{ty}\", I[i]) * T.{ty}(4) % T.{ty}(7)]"),
        )
    };
    assert_eq!(scaled("int64"), Vec::<String>::new());
    assert_ne!(scaled("int32"), Vec::<String>::new());
    let head = "A: T.Buffer((7,), \"float32\"), X: T.Buffer((9,), \"float32\"), B: T.Buffer((9,), \"float32\")";
    let floored = |extent: i64| {
        of_program(head, &format!("for i in range(9):\n        B[i] = A[T.Cast(\"int32\", X[i]) % {extent}]"))
    };
    assert_eq!(floored(7), Vec::<String>::new());
    assert_ne!(floored(8), Vec::<String>::new());
}

#[test]
fn mixed_bits_are_tried_where_there_are_few_iterations() {
    let swizzled = |extent: i64| {
        let head = format!("B: T.Buffer(({extent},), \"float32\")");
        let body = "for i, j in T.grid(5, 32):\n        B[i * 32 + (j ^ (i >> 1 | i << 2))] = T.float32(1)";
        Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_program(&read(&head, body))
    };
    let right = swizzled(160);
    assert_eq!(open(&right), Vec::<String>::new());
    assert!(right.iter().any(|report| report.method == Method::Enumeration(Points::All)), "{right:#?}");
    assert!(swizzled(159).iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))));
}

#[test]
fn an_extent_that_nobody_knows_is_not_tried() {
    // Only iteration 486 is at 1, which is outside where n is 1; no sample comes there.
    let of = |index: &str| {
        let body = "n = T.int32()\n    B = T.match_buffer(b, (n,), \"float32\")\n    for i in range(1024):\n        ";
        of_program("b: T.handle", &format!("{body}B[{index}] = T.float32(1)"))
    };
    assert_eq!(of("i // 1024"), Vec::<String>::new());
    assert_ne!(of("(i ^ 537) // 1023"), Vec::<String>::new());
}

#[test]
fn values_that_wrap_are_the_same_polynomial() {
    let head = "A: T.Buffer((7,), \"int32\"), B: T.Buffer((7,), \"int32\")";
    let of = |value: &str| format!("for i in range(7):\n        B[i] = {value}");
    only(
        head,
        &of("-20 + A[i] * 3 + A[6 - i]"),
        &of("A[6 - i] - 20 + 3 * A[i]"),
        &[&of("A[6 - i] - 21 + 3 * A[i]"), &of("A[i] - 20 + 3 * A[6 - i]"), &of("A[6 - i] - 20 + 3 * A[6 - i]")],
    );
    let head = "A: T.Buffer((7,), \"int32\"), B: T.Buffer((7,), \"bool\")";
    let cast = |at: &str| format!("T.Cast(\"bool\", A[{at}])");
    only(
        head,
        &of(&format!("{} or {}", cast("i"), cast("i"))),
        &of(&cast("i")),
        &[&of(&cast("6 - i")), &of(&format!("not {}", cast("i")))],
    );
}

#[test]
fn what_is_read_in_one_case_is_not_read_in_the_other() {
    let program = |index: &str| format!("for i, j in T.grid(5, 3):\n        B[i, j] = A[i, T.floormod({index}, 7)]");
    let chosen = |case: &str| program(&format!("T.if_then_else({case}, I[i, j] - I[i, j], 0)"));
    let wrong = ["2 <= i", "i < 3", "True", "I[i, j] < 2", "i < 2 or j == 1"].map(chosen);
    only(GATHER, &chosen("i < 2"), &chosen("not 2 <= i"), &wrong.each_ref().map(String::as_str));
    // Two cases, one of which memory decides: in either order the same is read.
    let twice =
        |a: &str, b: &str| program(&format!("T.if_then_else({a}, T.if_then_else({b}, I[i, j] - I[i, j], 3), 3)"));
    let wrong = [twice("I[i, 0] < 3", "i >= 2"), twice("I[i, 0] < 4", "i < 2"), twice("i < 2", "I[i, 1] < 3")];
    let wrong = wrong.each_ref().map(String::as_str);
    for right in [twice("I[i, 0] < 3", "1 >= i"), twice("i < 2", "I[i, 0] < 3")] {
        only(GATHER, &twice("I[i, 0] < 3", "i < 2"), &right, &wrong);
    }
}

const WRITTEN: &str = "A: T.Buffer((7,), \"float32\"), I: T.Buffer((5,), \"int32\"), B: T.Buffer((7,), \"float32\")";

/// A program that first changes `I`, and then does `body` for each `i`.
fn after_a_change(body: &str) -> Vec<String> {
    of_program(WRITTEN, &format!("for i in range(5):\n        I[i] = I[i] ^ 3\n    for i in range(5):\n        {body}"))
}

#[test]
fn a_condition_on_memory_holds_until_it_is_written() {
    let inside = "I[i] >= 0 and I[i] < 7";
    let right = [
        format!("if {inside}:\n            B[i] = A[I[i]]"),
        format!("if {inside}:\n            B[I[i]] = A[i]"),
        format!("if not ({inside}):\n            B[i] = A[0]\n        else:\n            B[i] = A[I[i]]"),
        format!("B[i] = T.if_then_else({inside}, A[I[i]], T.float32(0))"),
        format!("I[i] = T.if_then_else({inside}, T.Cast(\"int32\", A[I[i]]), 0)"),
        "if I[i] >= 0:\n            if I[i] < 7:\n                B[i] = A[I[i]]".to_owned(),
        // The outer condition says nothing where it is needed, the inner one does.
        format!("if I[i] < 7:\n            I[i] = I[i] ^ 1\n            if {inside}:\n                B[i] = A[I[i]]"),
    ];
    for body in &right {
        assert_eq!(after_a_change(body), Vec::<String>::new(), "{body}");
    }
    let twins = [
        // Another element, another limit, another sign.
        format!("if {inside}:\n            B[i] = A[I[4 - i]]"),
        "if I[i] >= 0 and I[i] <= 7:\n            B[i] = A[I[i]]".to_owned(),
        format!("if {inside}:\n            B[i] = A[0]\n        else:\n            B[i] = A[I[i]]"),
        format!("B[i] = T.if_then_else({inside}, T.float32(0), A[I[i]])"),
        format!("B[i] = T.Select({inside}, A[I[i]], T.float32(0))"),
        // Written between the condition and the access.
        format!("if {inside}:\n            I[i] = I[i] + 1\n            B[i] = A[I[i]]"),
        format!("if {inside}:\n            for j in range(2):\n                B[i] = A[I[i]]\n                I[i] = I[i] + 1"),
        "if I[i] >= 0:\n            if I[i] < 7:\n                I[i] = I[i] - 1\n                B[i] = A[I[i]]".to_owned(),
        "if I[i] < 7:\n            I[i] = I[i] - 1\n            if I[i] >= 0:\n                I[i] = I[i] + 1\n                B[i] = A[I[i]]".to_owned(),
        // The outer condition is of memory as it was.
        "if I[i] >= 0 and I[i] < 7:\n            I[i] = I[i] - 1\n            if I[i] < 7:\n                B[i] = A[I[i]]".to_owned(),
        // Behind the condition.
        format!("if {inside}:\n            B[i] = A[I[i]]\n        B[i] = A[I[i]]"),
    ];
    for body in &twins {
        assert_ne!(after_a_change(body), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn an_assertion_on_memory_holds_until_it_is_written() {
    let of = |last: &str| {
        let asserted = "assert I[2] >= 0 and I[2] < 7, \"inside\"";
        of_program(WRITTEN, &format!("I[2] = I[2] ^ 3\n    {asserted}\n    {last}"))
    };
    assert_eq!(of("B[0] = A[I[2]]"), Vec::<String>::new());
    for twin in
        ["B[0] = A[I[1]]", "I[2] = I[2] + 1\n    B[0] = A[I[2]]", "B[0] = A[I[2]]\n    I[1] = 0\n    B[1] = A[I[1]]"]
    {
        assert_ne!(of(twin), Vec::<String>::new(), "{twin}");
    }
}

#[test]
fn memory_may_be_written_by_another_name() {
    let of = |written: &str| {
        let views = "K = T.decl_buffer((5,), \"int32\", data=I.data)\n    ";
        let body = format!(
            "for i in range(5):\n        if I[i] >= 0 and I[i] < 7:\n            {written}\n            B[i] = A[I[i]]"
        );
        of_program(WRITTEN, &format!("{views}{body}"))
    };
    assert_eq!(of("B[i] = A[0]"), Vec::<String>::new());
    assert_ne!(of("K[i] = I[i] + 1"), Vec::<String>::new());
}

#[test]
fn an_access_is_inside_if_its_counterpart_before_is() {
    // Nobody knows what `I` holds.
    let of = |index: &str, value: &str| format!("for i in range(5):\n        B[{index}, 0] = {value}");
    let before = of("i", "A[0, I[i, 1]]");
    let chosen = |choice: &str| of("i", &format!("T.{choice}(I[i, 1] < 7, A[0, I[i, 1]], T.float32(0))"));
    only(
        GATHER,
        &before,
        &of("i", "A[0, 0 + I[i, T.if_then_else(i < 9, 1, 2)]]"),
        &[&of("i", "A[0, I[i, 2]]"), &of("i", "A[0, I[i, 1] + 1]"), &of("i", "A[i, I[i, 1]]"), &chosen("if_then_else")],
    );
    // A select reads both sides, also the one that is not chosen.
    only(GATHER, &chosen("if_then_else"), &chosen("if_then_else"), &[&chosen("Select")]);
    // What is inside in any case stays so; what is outside is refuted.
    let outside = of("i", "A[0, 7]");
    assert_ne!(of_pair(GATHER, &outside, &outside), Vec::<String>::new());
}

#[test]
fn loops_that_are_turned_round_stay_inside_too() {
    let before = read(GATHER, "for i, j in T.grid(5, 3):\n        B[i, j] = A[i, I[i, j]]");
    let judged = |after: &str| {
        let after = read(GATHER, &format!("for j, i in T.grid(3, 5):\n        {after}"));
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        let judged = validate(&before, &after, &[], &judge).unwrap();
        let names_it =
            judged.premises.iter().any(|premise| premise.to_string().contains("true of the program before: bounds"));
        (open(&judged.reports).is_empty(), names_it)
    };
    assert_eq!(judged("B[4 - i, j] = A[4 - i, I[4 - i, j]]"), (true, true));
    for twin in ["B[i, j] = A[i, I[4 - i, j]]", "B[i, j] = A[4 - i, I[i, j]]", "B[i, j] = A[i, I[i, j] + 1]"] {
        assert!(!judged(twin).0, "{twin}");
    }
}

#[test]
fn what_is_read_where_nothing_was_read_is_not_taken_over() {
    // `and` evaluates both sides: the program after reads `A` where the one before does not.
    let head = "A: T.Buffer((7,), \"int32\"), I: T.Buffer((5,), \"int32\"), B: T.Buffer((5,), \"int32\")";
    let nested = |first: &str| {
        format!("for i in range(5):\n        if {first}:\n            if A[I[i]] > 0:\n                B[i] = 1")
    };
    let joined = |first: &str| format!("for i in range(5):\n        if {first} and A[I[i]] > 0:\n            B[i] = 1");
    for first in ["I[i] > 1000", "I[i] >= 0 and I[i] < 7", "i > 2"] {
        assert_eq!(of_pair(head, &nested(first), &nested(first)), Vec::<String>::new());
        assert_ne!(of_pair(head, &nested(first), &joined(first)), Vec::<String>::new(), "{first}");
    }
}

#[test]
fn an_access_that_leaves_both_programs_is_no_difference() {
    let head = "A: T.Buffer((7,), \"int32\"), B: T.Buffer((7,), \"int32\"), q: T.int32";
    let body = "for i in range(7):\n        if i < q:\n            B[i] = A[q - 1 - i]";
    let found = of_pair(head, body, body);
    assert!(found.iter().all(|row| row.contains("it does not hold of the program before, either")), "{found:#?}");
    assert_eq!(found.len(), 1);
    // The same accesses from other loops.
    let other = read(head, "for i in range(q):\n        if i < 7:\n            B[i] = A[q - 1 - i]");
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let judged = validate(&read(head, body), &other, &[], &judge).unwrap();
    assert!(!judged.reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{judged:#?}");
}

#[test]
fn a_view_has_to_lie_in_its_memory_whatever_the_program_before_does() {
    // Only the caller knows whether eight elements from `q` on are there.
    let head =
        "A: T.Buffer((9,), \"float32\"), B: T.Buffer((8,), \"float32\"), I: T.Buffer((8,), \"int32\"), q: T.int32";
    let body = |view: &str, read: &str| format!("{view}for i in range(8):\n        B[i] = {read}");
    let view = "V = T.decl_buffer((8,), \"float32\", data=A.data, elem_offset=q)\n    ";
    let plain = body("", "A[I[i]]");
    assert_eq!(of_pair(head, &plain, &plain), Vec::<String>::new());
    assert_ne!(of_pair(head, &plain, &body(view, "A[I[i]]")), Vec::<String>::new());
    assert_ne!(of_pair(head, &plain, &body(view, "V[I[i]]")), Vec::<String>::new());
}

#[test]
fn flat_views_take_bounds_over_only_within_their_memory() {
    let head = "A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((8,), \"float32\"), I: T.Buffer((8,), \"int32\")";
    let before = read(head, "for i in range(8):\n        B[i] = A[I[i], i]");
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let is_proved = |view: &str, index: &str| {
        let body = format!(
            "V = T.decl_buffer({view}, \"float32\", data=A.data)\n    for i in range(8):\n        B[i] = V[{index}]"
        );
        let judged = validate(&before, &read(head, &body), &[], &judge).unwrap();
        judged.reports.iter().all(|report| report.verdict.is_proved())
    };
    assert!(is_proved("(32,)", "I[i] * 8 + i"));
    // `I[i]` is below 4, or the program before traps: nothing wraps.
    assert!(is_proved("(32,)", "I[i] * 16 // 2 + i"));
    // One element too many or too few, another row length, another element.
    assert!(!is_proved("(33,)", "I[i] * 8 + i"));
    assert!(!is_proved("(31,)", "I[i] * 8 + i"));
    assert!(!is_proved("(32,)", "I[i] * 4 + i"));
    assert!(!is_proved("(32,)", "I[i] * 8 + 7 - i"));
}
