//! Restructured programs are proved equal to what they were, and broken ones are refuted by a run.
//!
//! The pairs are in `tests/equivalence`. Of each pair, the program before is proved equal to itself and to the one after; each
//! change that breaks the program after is refuted, by an execution with stated extents.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use pairs::{is_refuted, judge, open, program, read};
use tilewright::pipeline::pair;
use tilewright_compiler::reorder;
use tilewright_ir::{Evidence, Expr, Reordering};
use tilewright_verify::Report;

/// Two programs, and changes that break the second one.
struct Pair {
    name: String,
    before: String,
    after: String,
    /// Old and new text.
    wrong: Vec<(String, String)>,
}

/// The pairs of a file.
fn cases(text: &str) -> Vec<Pair> {
    let cases = text.split("\n== ").skip(1);
    cases
        .map(|case| {
            let (head, rest) = case.split_once("\n-- before\n").unwrap();
            let (name, params) = head.split_once('\n').unwrap();
            let (before, rest) = rest.split_once("-- after\n").unwrap();
            let (after, wrong) = rest.split_once("-- wrong\n").unwrap();
            let change = |line: &str| {
                let (old, new) = line.split_once(" => ").unwrap();
                (old.to_owned(), new.to_owned())
            };
            let wrong = wrong.lines().filter(|line| !line.is_empty()).map(change).collect();
            Pair { name: name.to_owned(), before: program(params, before), after: program(params, after), wrong }
        })
        .collect()
}

fn check(text: &str, least: usize) {
    let judge = judge();
    let pairs = cases(text);
    assert!(pairs.len() >= least, "{} pairs", pairs.len());
    let mut wrong = Vec::new();
    for Pair { name, before, after, wrong: changes } in &pairs {
        let func = read(before);
        for (what, other) in [("itself", before), ("the program after", after)] {
            let judged = pair::validate(&func, &read(other), &[], &judge).unwrap();
            let open = open(&judged.reports);
            if judged.reports.is_empty() || !open.is_empty() {
                wrong.push(format!("{name}: not proved equal to {what}: {}", open.join("; ")));
            }
        }
        assert!(changes.len() >= 2, "{name} has fewer than two broken twins");
        for (old, new) in changes {
            assert!(after.contains(old.as_str()), "{name}: no `{old}` in\n{after}");
            let judged = pair::validate(&func, &read(&after.replacen(old, new, 1)), &[], &judge).unwrap();
            if !is_refuted(&judged.reports) {
                let open = open(&judged.reports).join("; ");
                wrong.push(format!("{name}: `{new}` for `{old}` is not refuted: {open}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn loops_in_another_order() {
    check(include_str!("equivalence/loops.txt"), 30);
}

#[test]
fn values_computed_in_another_way() {
    check(include_str!("equivalence/values.txt"), 13);
}

#[test]
fn values_kept_in_another_place() {
    check(include_str!("equivalence/storage.txt"), 13);
}

/// The claims about one pair, bent: a value that is one too large, values of other loops, another store, iterations that are
/// claimed of nothing.
fn bent(claim: &Reordering) -> Vec<Reordering> {
    let mut found = Vec::new();
    let mut add = |change: &dyn Fn(&mut Reordering)| {
        let mut other = claim.clone();
        change(&mut other);
        found.push(other);
    };
    for store in 0..claim.stores.len() {
        for origin in 0..claim.stores[store].len() {
            let now = &claim.stores[store][origin];
            for place in 0..now.forward.len() {
                add(&|other| {
                    let value = &mut other.stores[store][origin].forward[place];
                    *value = value.clone() + Expr::int(1);
                });
                add(&|other| other.stores[store][origin].forward.rotate_left(place));
            }
            for place in 0..now.back.len() {
                add(&|other| other.stores[store][origin].back[place] = Expr::int(0));
            }
            add(&|other| other.stores[store][origin].before += 1);
            add(&|other| other.stores[store][origin].when = Some(Expr::bool(false)));
            add(&|other| drop(other.stores[store].remove(origin)));
            add(&|other| drop(other.stores.remove(store)));
        }
    }
    found
}

#[test]
fn no_claim_proves_a_broken_program() {
    let judge = judge();
    let mut tried = 0;
    for Pair { name, before, after, wrong } in cases(include_str!("equivalence/loops.txt")) {
        let before = read(&before);
        let paired = |text: &str| pair::pair(&before, &read(text), &[]).unwrap();
        let (right, evidence) = paired(&after);
        let claim = reorder::find(&before, &right, &evidence).unwrap_or_default();
        for (old, new) in wrong {
            let (wrong, evidence) = paired(&after.replacen(&old, &new, 1));
            let own = reorder::find(&before, &wrong, &evidence).unwrap_or_default();
            for reordering in [vec![claim.clone()], bent(&claim), bent(&own)].concat() {
                let evidence = Evidence { reordering: Some(reordering), ..evidence.clone() };
                let reports = judge.check_pass(&before, &wrong, &evidence);
                tried += 1;
                assert!(!open(&reports).is_empty(), "{name}: `{new}` for `{old}` is proved by {evidence:?}");
            }
        }
    }
    assert!(tried > 1000, "{tried} claims");
}

/// The verdicts about two bodies over integers: `A` and `B` of `n` elements, `t` of one, and the parameter `x`.
fn integers(before: &str, after: &str) -> Vec<Report> {
    let text = |body: &str| {
        let head = "@T.prim_func\ndef main(a: T.handle, b: T.handle, x: T.int32):\n    n = T.int32()\n    \
                    A = T.match_buffer(a, (n,), \"int32\")\n    B = T.match_buffer(b, (n,), \"int32\")\n    \
                    t = T.alloc_buffer((1,), \"int32\")\n";
        let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("{head}{}", lines.concat())
    };
    pair::validate(&read(&text(before)), &read(&text(after)), &[], &judge()).unwrap().reports
}

#[test]
fn memory_that_was_never_written_is_not_read_for_nothing() {
    let copy = "for i in range(n):\n    B[i] = A[i]";
    let back = "for i in range(n):\n    B[n - 1 - i] = A[n - 1 - i]";
    let set = "if x == 5:\n    t[0] = 1\n";
    assert_eq!(open(&integers(copy, back)), Vec::<String>::new());
    let guarded = format!("{set}for i in range(n):\n    if x == 5:\n        B[i] = t[0]");
    let hoisted = format!("{set}for i in range(n):\n    v: T.int32 = t[0]\n    if x == 5:\n        B[i] = v");
    let unused = "for i in range(n):\n    v: T.int32 = t[0]\n    B[n - 1 - i] = A[n - 1 - i]";
    let (one, indexed) = (format!("{set}B[0] = A[0] + x"), format!("{set}B[t[0] * 0] = A[0] + x"));
    let chosen = format!("{set}B[T.max(0, T.min(0, t[0]))] = A[0] + x");
    for (before, after) in
        [(copy, unused), (guarded.as_str(), hoisted.as_str()), (one.as_str(), &indexed), (one.as_str(), &chosen)]
    {
        assert_ne!(open(&integers(before, after)), Vec::<String>::new(), "{after}");
    }
}

#[test]
fn loops_that_never_run_have_no_last_iteration() {
    let body = "for i in range(-1, T.min(x, n)):\n    if 0 <= i:\n        B[i] = A[i]";
    assert_eq!(open(&integers(body, body)), Vec::<String>::new());
}

#[test]
fn a_condition_that_is_a_number_is_no_internal_error() {
    let before = "for i in range(n):\n    if T.Cast(\"bool\", x):\n        B[i] = A[i]";
    let after = "for i in range(n):\n    if x == 1:\n        B[n - 1 - i] = A[n - 1 - i]";
    let right = after.replace("x == 1", "x != 0");
    assert!(integers(before, after).iter().all(|report| !report.is_internal()));
    assert!(is_refuted(&integers(before, after)));
    assert_eq!(open(&integers(before, &right)), Vec::<String>::new());
}

#[test]
fn a_long_chain_of_names_ends_in_an_answer() {
    let chain = |index: &str| {
        let names: Vec<String> = (1..18).map(|i| format!("    v{i}: T.int32 = v{0} + v{0}\n", i - 1)).collect();
        format!("for i in range(n):\n    v0: T.int32 = A[{index}]\n{}    B[{index}] = v17", names.concat())
    };
    assert!(!integers(&chain("i"), &chain("n - 1 - i")).is_empty());
}
