//! Programs of constant shape whose runs on terms are made in parts: a convolution, and what must not get lost between the parts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod common;

use common::pair::Pair;
use tilewright_ir::{BufferChange, Comparison, Evidence};
use tilewright_verify::{Config, Judge, Report};

/// A size that no run of the tests has.
const WHOLE: u64 = 1 << 40;

/// What the judge says of the results of a pair, with runs in parts of so many steps.
fn judged(pair: &Pair, part_steps: u64) -> Vec<Report> {
    let (before, after, evidence) = pair.programs();
    let judge = Judge::new(Config { part_steps, ..Config::default() }, tilewright_search::strategies()).unwrap();
    judge.check_pass(&before, &after, &Evidence { comparison: Comparison::Results, ..evidence })
}

/// Whether the results of a pair are proved equal, which must not depend on the size of the parts.
#[track_caller]
fn is_proved_in(pair: &Pair, part_steps: u64) -> bool {
    let [whole, parts] = [WHOLE, part_steps].map(|part_steps| {
        let reports = judged(pair, part_steps);
        let results = reports.iter().find(|report| report.subject == "every element of every parameter");
        results.unwrap_or_else(|| panic!("{reports:?}")).verdict.is_proved()
    });
    assert_eq!(whole, parts, "in parts of {part_steps} steps");
    whole
}

/// The same with parts of single units.
#[track_caller]
fn is_proved(pair: &Pair) -> bool {
    is_proved_in(pair, 1)
}

/// A convolution in rows and columns, with zeros around the input.
const CONVOLUTION: &str = r#"def main(x: T.handle, f: T.handle, y: T.handle):
    X = T.match_buffer(x, (7, 9, 6), "float32")
    F = T.match_buffer(f, (3, 3, 6, 10), "float32")
    Y = T.match_buffer(y, (7, 9, 10), "float32")
    for i, j, q in T.grid(7, 9, 10):
        Y[i, j, q] = T.float32(0)
        for r, s, p in T.grid(3, 3, 6):
            Y[i, j, q] = Y[i, j, q] + T.if_then_else(1 <= i + r and i + r < 8 and 1 <= j + s and j + s < 10, X[i + r - 1, j + s - 1, p], T.float32(0)) * F[r, s, p, q]
"#;

/// The same in tiles of four rows and columns, and channels in groups of four.
const TILED: &str = r#"def main(x: T.handle, f: T.handle, y: T.handle):
    X = T.match_buffer(x, (2, 7, 9, 4), "float32")
    F = T.match_buffer(f, (3, 3, 6, 10), "float32")
    Y = T.match_buffer(y, (3, 7, 9, 4), "float32")
    for it, jt in T.grid(2, 3):
        halo = T.alloc_buffer((6, 6, 6), "float32")
        for p, i, j in T.grid(6, 6, 6):
            halo[i, j, p] = T.if_then_else(1 <= it * 4 + i and it * 4 + i < 8 and 1 <= jt * 4 + j and jt * 4 + j < 10, X[p // 4, it * 4 + i - 1, jt * 4 + j - 1, p % 4], T.float32(0))
        for qo in range(3):
            acc = T.alloc_buffer((4, 4, 4), "float32")
            for i, j, qi in T.grid(4, 4, 4):
                acc[i, j, qi] = T.float32(0)
            for r, s, p, i, j, qi in T.grid(3, 3, 6, 4, 4, 4):
                if qo * 4 + qi < 10:
                    acc[i, j, qi] = acc[i, j, qi] + F[r, s, p, qo * 4 + qi] * halo[i + r, j + s, p]
            for i, j, qi in T.grid(4, 4, 4):
                if it * 4 + i < 7 and jt * 4 + j < 9 and qo * 4 + qi < 10:
                    Y[qo, it * 4 + i, jt * 4 + j, qi] = acc[i, j, qi]
"#;

fn convolution() -> Pair {
    Pair::new(CONVOLUTION, TILED).claim(BufferChange::Layout, "X -> X", "lambda i, j, p: [p // 4, i, j, p % 4]").claim(
        BufferChange::Layout,
        "Y -> Y",
        "lambda i, j, q: [q // 4, i, j, q % 4]",
    )
}

#[test]
fn a_convolution_in_tiles_is_proved_in_parts() {
    assert!(is_proved_in(&convolution(), 1));
    assert!(is_proved_in(&convolution(), 100_000));
    let in_parts = judged(&convolution(), 3000);
    let methods: Vec<String> = in_parts.iter().map(|report| report.method.to_string()).collect();
    assert!(methods.iter().any(|method| method.starts_with("symbolic execution with ")), "{methods:?}");
}

#[test]
fn a_mistake_in_the_last_part_alone_is_not_proved() {
    for (right, wrong) in [
        // One tap of the last tile, one element of it, a tile that is left out, and a halo that is not filled in one place.
        (
            "halo[i + r, j + s, p]\n",
            "T.if_then_else(it == 1 and jt == 2 and r == 2, T.float32(1), halo[i + r, j + s, p])\n",
        ),
        (
            "= acc[i, j, qi]\n",
            "= T.if_then_else(it == 1 and jt == 2 and i == 2 and qi == 1 and qo == 2, T.float32(0), acc[i, j, qi])\n",
        ),
        ("if it * 4 + i < 7 and", "if it * 4 + i < 6 and"),
        ("T.grid(6, 6, 6):\n            halo", "T.grid(6, 5, 6):\n            halo"),
        ("for qo in range(3)", "for qo in range(2)"),
        ("acc[i, j, qi] = T.float32(0)", "acc[i, j, qi] = T.float32(-0.0)"),
        // The accumulator is kept from tile to tile.
        (
            "for i, j, qi in T.grid(4, 4, 4):\n                acc",
            "for i, j, qi in T.grid(4, 4, 3):\n                acc",
        ),
    ] {
        assert!(!is_proved_in(&convolution().twin(right, wrong), 3000), "{wrong}");
    }
}

/// Two bodies over integers `A` and `B` of 5 and 7 elements.
fn pair(before: &str, after: &str) -> Pair {
    let function = |body: &str| {
        let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
        let buffers = "    A = T.match_buffer(a, (5,), \"int32\")\n    B = T.match_buffer(b, (7,), \"int32\")\n    \
                       t = T.alloc_buffer((11,), \"int32\")\n";
        format!("def main(a: T.handle, b: T.handle):\n{buffers}{}", lines.concat())
    };
    Pair::new(&function(before), &function(after))
}

#[test]
fn a_store_under_a_condition_on_values_keeps_what_was_written_before_it() {
    let before = "for i in range(7):\n    t[i] = i\nfor i in range(5):\n    if A[i] > 3:\n        t[i] = A[i]\n\
                  for i in range(7):\n    B[i] = t[i]";
    let after = "for i in range(7):\n    B[i] = i\nfor i in range(5):\n    B[i] = T.Select(A[i] > 3, A[i], B[i])";
    assert!(is_proved(&pair(before, before)));
    assert!(is_proved(&pair(before, after)));
    assert!(!is_proved(&pair(before, &after.replace("B[i] = i\n", "B[i] = i + i // 4\n"))));
    assert!(!is_proved(&pair(before, &before.replace("t[i] = i\n", "t[i] = T.max(i, 1)\n"))));
    assert!(!is_proved(&pair(before, &before.replace("if A[i] > 3:", "if A[4] > 3:"))));
}

#[test]
fn statements_on_which_no_element_depends_are_run() {
    let before = "for i in range(7):\n    B[i] = i";
    let unused = |value: &str| format!("{before}\nfor i in range(5):\n    t[i] = {value}");
    assert!(is_proved(&pair(before, &unused("A[i] + 1"))));
    // It may trap, or read what was never written, or what a parameter need not hold.
    for wrong in ["1 // A[i]", "t[i + 1]", "t[A[i]]"] {
        assert!(!is_proved(&pair(before, &unused(wrong))), "{wrong}");
    }
    let first = "for i in range(5):\n    t[i] = B[i]\nfor i in range(7):\n    B[i] = i";
    assert!(!is_proved(&pair(before, first)));
    assert!(is_proved(&pair(first, first)));
    assert!(is_proved(&pair(first, before)));
}

#[test]
fn assertions_are_compared_wherever_they_stand() {
    let before = "for i in range(5):\n    B[i] = A[i]\n    assert A[i] < 9, \"large\"\nB[5] = 1\nB[6] = 2";
    let after = "for i in range(5):\n    assert A[4 - i] < 9, \"large\"\nfor i in range(7):\n    \
                 B[i] = T.if_then_else(i < 5, A[T.min(i, 4)], i - 4)";
    assert!(is_proved(&pair(before, before)));
    assert!(is_proved(&pair(before, after)));
    assert!(!is_proved(&pair(before, &after.replace("A[4 - i] < 9", "A[4 - i] < 8"))));
    assert!(!is_proved(&pair(before, &after.replace("A[4 - i] < 9", "A[i // 2] < 9"))));
}

#[test]
fn a_constant_index_that_is_read_from_memory_is_followed_without_parts() {
    let before = "for i in range(7):\n    t[i] = 6 - i\nfor i in range(7):\n    B[t[i]] = i";
    let after = "for i in range(7):\n    B[i] = 6 - i";
    assert!(is_proved(&pair(before, after)));
    assert!(!is_proved(&pair(before, &after.replace("6 - i", "5 - i"))));
    assert!(!is_proved(&pair(before, &after.replace("range(7)", "range(6)"))));
}

#[test]
fn programs_that_are_too_large_are_not_run() {
    let long = |times: &str| format!("for i, j in T.grid({times}, 65536):\n    B[i % 7] = A[j % 5]");
    let (before, after) = (long("65536"), long("65537"));
    let reports = judged(&pair(&before, &after), 1 << 19);
    let reasons: Vec<String> =
        reports.iter().filter_map(|report| report.verdict.reason()).map(ToString::to_string).collect();
    assert!(
        reasons.iter().any(|reason| reason.contains("steps or more, and at most 2147483648 are run")),
        "{reasons:?}"
    );
}
