//! Conditions that the caller guarantees: pairs that are equal under a condition alone, their broken twins, and runs that respect it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use pairs::{is_refuted, judge, open, read};
use tilewright::pipeline::pair::{self, Judged};
use tilewright::pipeline::{assume, findings::Way};
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{PrimFunc, Stmt, StmtKind};
use tilewright_verify::Verdict;

/// A function over integers: `A` and `B` of `n` elements, and a parameter `x`.
fn func(body: &str) -> PrimFunc {
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
    read(&format!(
        "@T.prim_func\ndef main(a: T.handle, b: T.handle, x: T.int32):\n    n = T.int32()\n    A = T.match_buffer(a, (n,), \
         \"int32\")\n    B = T.match_buffer(b, (n,), \"int32\")\n{}",
        lines.concat()
    ))
}

fn judged(before: &PrimFunc, after: &PrimFunc, conditions: &[&str]) -> Judged {
    let texts: Vec<String> = conditions.iter().map(|text| (*text).to_owned()).collect();
    let assumed = assume::read(&texts, &[before]).unwrap().remove(0);
    pair::validate_assuming(before, after, (&[], &assumed), &judge()).unwrap()
}

/// A condition, a body before, a body after that is equal under it, and changes of the latter that are not.
type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    (
        "x >= 0",
        "for i in range(x):\n    if i < n:\n        B[i] = A[i] + 7",
        "for i in range(x // 4):\n    for k in T.unroll(4):\n        if i * 4 + k < n:\n            B[i * 4 + k] = A[i * 4 + k] + \
         7\nfor i in range(x // 4 * 4, x):\n    if i < n:\n        B[i] = A[i] + 7",
        &[("(x // 4 * 4, x)", "(x // 4 * 4 + 1, x)"), ("i * 4 + k < n", "i * 4 + k + 1 < n"), ("A[i] + 7", "A[i] + 8")],
    ),
    (
        "n % 4 == 0",
        "for i in range(n):\n    B[i] = A[i] + x",
        "for i, k in T.grid(n // 4, 4):\n    B[i * 4 + k] = A[i * 4 + k] + x",
        &[("T.grid(n // 4, 4)", "T.grid(n // 4, 3)"), ("= A[i * 4 + k]", "= A[i * 4 + 3 - k]")],
    ),
    (
        "0 < x and x <= n",
        "for i in range(T.min(x, n)):\n    B[i] = A[i] * 3",
        "for i in range(x):\n    B[x - 1 - i] = A[x - 1 - i] * 3",
        &[("range(x)", "range(x - 1)"), ("range(x)", "range(x + 1)"), ("= A[x - 1 - i]", "= A[i]")],
    ),
];

#[test]
fn pairs_are_proved_under_their_conditions_alone() {
    for (condition, before, after, wrong) in CASES {
        let (one, two) = (func(before), func(after));
        for other in [&one, &two] {
            let Judged { reports, way, validity, premises, .. } = judged(&one, other, &[condition]);
            assert_eq!(open(&reports), Vec::<String>::new(), "{condition}: {other:?}");
            assert!(matches!(way, Some(Way::Lockstep | Way::Loops)), "{condition}: {way:?}");
            assert!(!validity.conditions.is_empty() && validity.to_string().starts_with("extents with "), "{validity}");
            assert!(
                premises.iter().any(|premise| premise.to_string() == format!("assumed: {condition}")),
                "{premises:?}"
            );
        }
        assert!(is_refuted(&judged(&one, &two, &[]).reports), "{condition} is not needed");
        for (old, new) in *wrong {
            assert!(after.contains(old), "no `{old}` in\n{after}");
            let Judged { reports, way, .. } = judged(&one, &func(&after.replacen(old, new, 1)), &[condition]);
            assert!(is_refuted(&reports), "{condition}: `{new}` for `{old}`: {}", open(&reports).join("; "));
            assert_eq!(way, Some(Way::Run), "{condition}: `{new}` for `{old}`");
        }
    }
}

#[test]
fn runs_respect_the_condition() {
    let before = func("for i in range(n):\n    B[i] = A[i] + 1");
    let above = |bound: &str| func(&format!("for i in range(n):\n    B[i] = A[i] + T.if_then_else({bound}, 2, 1)"));
    for (bound, inside, outside) in [
        ("x >= 1000", &["x > 1234"][..], &["x < 1000"][..]),
        ("n >= 19", &["n % 5 == 2", "n > 19"], &["n % 5 == 2", "n < 19"]),
        ("x == n * 3", &["n < 100", "x == n * 3"], &["n < 100", "x != n * 3"]),
    ] {
        let after = above(bound);
        let found = judged(&before, &after, inside);
        assert!(is_refuted(&found.reports), "{bound}: {}", open(&found.reports).join("; "));
        assert!(!is_refuted(&judged(&before, &after, outside).reports), "{bound} is refuted by a run that is excluded");
        let mut both = inside.to_vec();
        both.extend(outside);
        let vacuous = judged(&before, &after, &both);
        assert!(!vacuous.reports.is_empty() && vacuous.way.is_none(), "{bound}");
        assert!(vacuous.reports.iter().all(|report| matches!(report.verdict, Verdict::Vacuous(_))), "{bound}");
    }
}

#[test]
fn a_chosen_scalar_is_part_of_the_counterexample() {
    let before = func("for i in range(n):\n    B[i] = A[i] + 1");
    let after = func("for i in range(n):\n    B[i] = A[i] + T.if_then_else(x > 4993, 2, 1)");
    let reports = judged(&before, &after, &["x > 4990"]).reports;
    let found = reports.iter().find_map(|report| report.verdict.counterexample()).unwrap();
    assert!(found.assignments.iter().any(|(name, value)| name == "x" && *value > 4993), "{found:?}");
}

#[test]
fn what_is_assumed_is_carried_to_corresponding_integers() {
    let one = func("for i in range(n):\n    B[i] = A[i] + x");
    let other = "@T.prim_func\ndef main(a: T.handle, b: T.handle, count: T.int32):\n    m = T.int32()\n    A = \
                 T.match_buffer(a, (m,), \"int32\")\n    B = T.match_buffer(b, (m,), \"int32\")\n    B[0] = A[0] + count";
    let (two, three) = (read(other), read(&other.replace("(m,)", "(37,)").replace("    m = T.int32()\n", "")));
    let assumed = assume::read(&["x < n".to_owned(), "x > 0".to_owned()], &[&one]).unwrap().remove(0);
    let carried = |after: &PrimFunc| {
        let carried = pair::carried(&assumed, &one, after);
        carried.iter().map(|assumed| assumed.condition.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(carried(&two), ["count < m", "count > 0"]);
    assert_eq!(carried(&three), ["count > 0"]);
}

/// A body that assumes something itself, a body after that is equal under that, and changes of the latter that are not.
const OWN: &[Case] = &[
    (
        "n % 4 == 0",
        "T.assume(n % 4 == 0)\nfor i in range(n):\n    B[i] = A[i] + x",
        "for i, k in T.grid(n // 4, 4):\n    B[i * 4 + k] = A[i * 4 + k] + x",
        &[("T.grid(n // 4, 4)", "T.grid(n // 4, 3)"), ("= A[i * 4 + k]", "= A[i * 4 + 3 - k]")],
    ),
    (
        "0 < x and x <= n",
        "T.assume(0 < x and x <= n)\nfor i in range(T.min(x, n)):\n    B[i] = A[i] * 3",
        "for i in range(x):\n    B[x - 1 - i] = A[x - 1 - i] * 3",
        &[("range(x)", "range(x - 1)"), ("= A[x - 1 - i]", "= A[i]")],
    ),
];

#[test]
fn what_the_function_before_assumes_is_a_premise() {
    for (condition, before, after, wrong) in OWN {
        let (one, two) = (func(before), func(after));
        // The function after may assume the same, or less, or nothing.
        let weaker = func(&format!("T.assume({condition} or x == 77)\n{after}"));
        for other in [&one, &two, &func(&format!("T.assume({condition})\n{after}")), &weaker] {
            let Judged { reports, premises, .. } = judged(&one, other, &[]);
            assert_eq!(open(&reports), Vec::<String>::new(), "{condition}: {other:?}");
            let names = premises.iter().filter(|one| one.to_string().starts_with("assumed: ")).count();
            assert_eq!(names, 1, "{condition}: {premises:?}");
        }
        for (old, new) in *wrong {
            let twin = func(&after.replacen(old, new, 1));
            assert!(is_refuted(&judged(&one, &twin, &[]).reports), "{condition}: `{new}` for `{old}`");
        }
    }
}

#[test]
fn what_the_function_after_alone_assumes_is_to_be_shown() {
    let body = "for i in range(n):\n    B[i] = A[i] + x";
    let one = func(body);
    for condition in ["x > 3", "n % 4 == 0", "x > 3 and n > 2"] {
        let two = func(&format!("T.assume({condition})\n{body}"));
        let Judged { reports, premises, .. } = judged(&one, &two, &[]);
        assert!(is_refuted(&reports), "{condition}: {}", open(&reports).join("; "));
        assert!(!premises.iter().any(|one| one.to_string().starts_with("assumed: ")), "{condition}: {premises:?}");
        // More than the function before assumes.
        let less = func(&format!("T.assume(x > 2)\n{body}"));
        assert!(!pairs::is_proved(&judged(&less, &two, &[]).reports), "{condition}");
    }
    // What holds of every call may be assumed.
    let two = func(&format!("T.assume(n >= 1)\n{body}"));
    assert_eq!(open(&judged(&one, &two, &[]).reports), Vec::<String>::new());
}

#[test]
fn an_assumption_is_no_assertion() {
    let body = "for i in range(n):\n    B[i] = A[i] + x";
    let (asserted, assumed) =
        (func(&format!("assert x > 3, \"x\"\n{body}")), func(&format!("T.assume(x > 3)\n{body}")));
    let conditions = |func: &PrimFunc| assume::of_function(func).into_iter().map(|one| one.text).collect::<Vec<_>>();
    assert_eq!((conditions(&asserted), conditions(&assumed)), (Vec::new(), vec!["x > 3".to_owned()]));
    let StmtKind::Seq(stmts) = &assumed.body.kind else { panic!("one statement") };
    let StmtKind::Assert { cond, message, is_assumed: true } = &stmts[0].kind else { panic!("{:?}", stmts[0]) };
    let other = StmtKind::Assert { cond: cond.clone(), message: message.clone(), is_assumed: false };
    let changed = [&[Stmt::new(other)], &stmts[1..]].concat();
    let changed = PrimFunc { body: Stmt::seq(changed), ..assumed.clone() };
    assert!(funcs_equal(&assumed, &assumed, true) && !funcs_equal(&assumed, &changed, false));
    // What is assumed is no obligation of the function after; what is asserted has to follow.
    assert_eq!(open(&judged(&assumed, &func(body), &[]).reports), Vec::<String>::new());
    assert!(!pairs::is_proved(&judged(&asserted, &func(body), &[]).reports));
    assert!(!pairs::is_proved(&judged(&func(body), &asserted, &[]).reports));
}

#[test]
fn contradictory_assumptions_prove_nothing() {
    let loops = "for i in range(n):\n    B[i] = A[i] + x";
    for lines in ["T.assume(n < 1)\n", "T.assume(x > 3)\nT.assume(x < 2)\n", "T.assume(n % 4 == 1 and n % 2 == 0)\n"] {
        let (one, two) = (func(&format!("{lines}{loops}")), func("B[0] = 1"));
        for other in [&one, &two] {
            let Judged { reports, way, .. } = judged(&one, other, &[]);
            assert!(!reports.is_empty() && way.is_none(), "{lines}");
            assert!(reports.iter().all(|report| matches!(report.verdict, Verdict::Vacuous(_))), "{lines}: {reports:?}");
        }
        let alone = judge().check_program(&one);
        assert!(!alone.is_empty() && alone.iter().all(|report| !report.verdict.is_proved()), "{lines}: {alone:?}");
    }
}
