//! Programs of constant shape that are run on terms: what is proved of them, and what is left open.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::judge;
use common::pair::Pair;
use tilewright_ir::{BufferChange, Comparison, Evidence};
use tilewright_verify::Report;

/// What the judge says of a pair whose results alone are compared.
fn judged(pair: &Pair) -> Vec<Report> {
    let (before, after, evidence) = pair.programs();
    judge().check_pass(&before, &after, &Evidence { comparison: Comparison::Results, ..evidence })
}

fn is_proved(pair: &Pair) -> bool {
    let reports = judged(pair);
    reports.len() >= 6 && reports.iter().all(|report| report.verdict.is_proved())
}

/// A function over `A` and `B`, integers in so many elements.
fn function(extents: [usize; 2], body: &str) -> String {
    let [a, b] = extents;
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
    let buffers = format!(
        "    A = T.match_buffer(a, ({a},), \"int32\")\n    B = T.match_buffer(b, ({b},), \"int32\")\n    \
         t = T.alloc_buffer((97,), \"int32\")\n    f = T.alloc_buffer((97,), \"bool\")\n"
    );
    format!("def main(a: T.handle, b: T.handle):\n{buffers}{}", lines.concat())
}

/// Two bodies over `A` and `B` of 5 and 3 elements.
fn pair(before: &str, after: &str) -> Pair {
    Pair::new(&function([5, 3], before), &function([5, 3], after))
}

#[test]
fn padding_is_never_read() {
    let before = "for i in range(3):\n    B[i] = A[i] + 1";
    let after = "for i in range(3):\n    B[i] = 1 + A[i]";
    let padded = |after: &str| {
        let pair = Pair::new(&function([5, 3], before), &function([6, 3], after));
        pair.claim(BufferChange::Layout, "A -> A", "lambda i: [i + 1]")
    };
    let moved = after.replace("A[i]", "A[i + 1]");
    assert!(is_proved(&padded(&moved)));
    // No caller writes the first element.
    for unused in ["0 * A[0]", "A[0] - A[0]"] {
        assert!(!is_proved(&padded(&format!("{moved} + {unused}"))), "{unused}");
    }
    assert!(is_proved(&padded(&format!("{moved} + 0 * A[1]"))));
    assert!(!is_proved(&padded(after)));
}

#[test]
fn a_parameter_that_the_program_before_never_reads_unwritten_holds_nothing_at_the_start() {
    let before = "for i in range(3):\n    if A[i] > 0:\n        B[i] = A[i] * 2";
    let after = "for i in range(3):\n    B[i] = T.Select(A[i] > 0, A[i] * 2, B[i])";
    assert!(is_proved(&pair(before, &before.replace("A[i] * 2", "A[i] + A[i]"))));
    assert!(!is_proved(&pair(before, after)));
    assert!(!is_proved(&pair(before, &format!("{before} + 0 * B[i]"))));
    let summed = "for i in range(3):\n    B[i] = 0\n    B[i] = B[i] + A[i]";
    assert!(is_proved(&pair(summed, &summed.replace("B[i] + A[i]", "A[i]"))));
    assert!(!is_proved(&pair(summed, &summed.replace("B[i] = 0", "B[i] = 0 * B[i]"))));
    // Where the program before reads the parameter, the caller gives it; and only there.
    let sum = |body: &str| body.replace("A[i] * 2", "B[i] + A[i]");
    assert!(is_proved(&pair(&sum(after), &sum(before))));
    assert!(!is_proved(&pair(&sum(before), &sum(after))));
    assert!(!is_proved(&pair(&sum(after), &sum(before).replace("A[i] > 0", "A[i] >= 0"))));
    assert!(!is_proved(&pair(&sum(after).replace("i], B[i])", "i], A[i])"), &sum(before))));
}

#[test]
fn memory_written_under_conditions_is_read_under_them() {
    let before = "for i in range(3):\n    if A[i] > 0:\n        if A[4] < A[i]:\n            B[i] = A[i] + 1";
    let after = |inner: &str| {
        let store = "u[0] = A[i]\n            B[i] = u[0] + 1";
        let names = "u = T.alloc_buffer((1,), \"int32\")";
        format!("for i in range(3):\n    {names}\n    if A[4] < A[i]:\n        if {inner}:\n            {store}")
    };
    assert!(is_proved(&pair(before, &after("A[i] > 0"))));
    assert!(!is_proved(&pair(before, &after("A[i] >= 0"))));
    assert!(!is_proved(&pair(before, &after("A[i] > 0 or A[4] > 0"))));
}

/// A condition whose parts are shared, so that it is small as a graph and huge as a tree.
fn shared(op: &str, first: &str, second: &str) -> String {
    format!(
        "f[0] = A[0] > 0\nf[1] = A[1] > 0\nfor i in range(90):\n    f[i + 2] = f[{first}] {op} f[{second}]\n\
         if f[91]:\n    B[0] = 1"
    )
}

#[test]
fn conditions_and_powers_that_are_huge_end_in_an_answer() {
    let (one, two) = (shared("and", "i", "i + 1"), shared("and", "i + 1", "i"));
    assert!(is_proved(&pair(&one, &two)));
    assert!(!is_proved(&pair(&one, &two.replace("f[1] = A[1] > 0", "f[1] = A[2] > 0"))));
    assert!(!judged(&pair(&shared("or", "i", "i + 1"), &shared("or", "i + 1", "i"))).is_empty());
    let power = "t[0] = A[0]\nfor i in range(60):\n    t[0] = t[0] * t[0]\nB[0] = t[0]";
    assert!(is_proved(&pair(power, power)));
    assert!(!is_proved(&pair(power, &power.replace("range(60)", "range(59)"))));
    // A buffer of 2^128 lanes.
    let large = 1i64 << 62;
    let buffer =
        format!("s = T.alloc_buffer((T.int64({large}), T.int64({large}), T.int64(4)), \"int32x4\")\nB[0] = A[0]");
    assert!(!is_proved(&pair("B[0] = A[0]", &buffer)));
}
