//! Dividends: a division is called one of C only if its dividend is never negative and its divisor always positive, wherever the
//! program evaluates it and although integers wrap.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use tilewright_ir::{BinaryOp, Expr, PrimFunc};
use tilewright_verify::{Obligation, Verdict};

/// Every division in the body of a function, each once.
fn divisions(func: &PrimFunc) -> Vec<Expr> {
    let mut found = Vec::new();
    func.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let is_division = matches!(
                    part,
                    Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod, ..)
                );
                if is_division && !found.contains(part) {
                    found.push(part.clone());
                }
            });
        }
    });
    found
}

/// The verdicts on the divisions of a function with this signature and body, of which there must be some.
fn verdicts(signature: &str, body: &str) -> Vec<Verdict> {
    let func = common::program(&format!("def main({signature}):\n    {}\n", body.replace('\n', "\n    ")));
    let divisions = divisions(&func);
    assert!(!divisions.is_empty(), "{body}");
    let reports = common::judge().check_dividends(&func, &divisions);
    assert_eq!(reports.len(), divisions.len());
    for (report, division) in reports.iter().zip(&divisions) {
        assert_eq!((report.obligation, &report.subject), (Obligation::Dividend, &division.to_string()));
    }
    reports.into_iter().map(|report| report.verdict).collect()
}

const VECTORS: &str = "A: T.Buffer((16,), \"int32\"), B: T.Buffer((16,), \"int32\")";
const BYTES: &str = "A: T.Buffer((16,), \"uint8\"), B: T.Buffer((16,), \"int32\")";
const SCALAR: &str = "k: T.int32, A: T.Buffer((16,), \"int32\"), B: T.Buffer((16,), \"int32\")";
const MATCHED: &str = "a: T.handle, b: T.handle";
const SYMBOLIC: &str =
    "n = T.int32()\nA = T.match_buffer(a, (n,), \"int32\")\nB = T.match_buffer(b, (n,), \"int32\")\n";

#[test]
fn divisions_of_ordinary_layouts_are_those_of_c() {
    for (signature, body) in [
        (VECTORS, "for i in range(16):\n    B[i // 4 * 4 + i % 4] = A[i]"),
        (
            VECTORS,
            "for i in range(4):\n    for j in range(4):\n        B[(i * 4 + j) // 8 * 8 + (i * 4 + j) % 8] = A[j]",
        ),
        // Loops that do not begin at 0, and conditions on the way.
        (VECTORS, "for i in T.serial(3, 9):\n    B[(i - 3) // 2] = A[i]"),
        (VECTORS, "for i in range(16):\n    if i >= 3:\n        B[(i - 3) // 2] = A[i]"),
        (VECTORS, "for i in range(16):\n    B[i] = T.if_then_else(i >= 3, A[(i - 3) // 2], 0)"),
        (VECTORS, "for i in range(16):\n    if i < 3:\n        B[i] = 0\n    else:\n        B[(i - 3) % 2] = A[i]"),
        (VECTORS, "for i in range(16):\n    B[i] = A[T.max(i - 3, 0) // 2]"),
        // Values: nothing wraps in these.
        (BYTES, "for i in range(16):\n    B[i] = T.Cast(\"int32\", A[i]) // 3"),
        (VECTORS, "for i in range(16):\n    B[i] = (i * 1000000 + 7) // 3"),
        // The dividend of a truncating division may have any sign.
        (VECTORS, "for i in range(16):\n    B[i] = T.truncdiv(i - 5, 3) + T.truncmod(A[i], 7)"),
        (MATCHED, &format!("{SYMBOLIC}for i in range(n):\n    B[i // 4 * 4 + i % 4] = A[i]")),
        (MATCHED, &format!("{SYMBOLIC}for i in range((n + 3) // 4):\n    if i * 4 < n:\n        B[i * 4] = A[i]")),
        (MATCHED, &format!("{SYMBOLIC}for i in range(n):\n    B[i] = A[i // n]")),
        (SCALAR, "if k >= 1:\n    for i in range(16):\n        B[i] = A[i // k]"),
    ] {
        for verdict in verdicts(signature, body) {
            assert!(verdict.is_proved(), "{body}\n{verdict}");
        }
    }
}

#[test]
fn divisions_that_are_not_those_of_c_somewhere_are_never_proved() {
    for (signature, body) in [
        (VECTORS, "for i in range(16):\n    B[(i - 3) // 2 + 2] = A[i]"),
        (VECTORS, "for i in range(4):\n    for j in range(4):\n        B[(i * 4 + j - 1) % 8] = A[j]"),
        (VECTORS, "for i in T.serial(2, 9):\n    B[(i - 3) // 2 + 1] = A[i]"),
        (VECTORS, "for i in range(16):\n    if i >= 2:\n        B[(i - 3) // 2 + 1] = A[i]"),
        (VECTORS, "for i in range(16):\n    B[i] = T.if_then_else(i >= 3, 0, A[(i - 3) // 2 + 2])"),
        (VECTORS, "for i in range(16):\n    if i < 3:\n        B[(i - 3) % 2] = A[i]"),
        // Both arms of a select are evaluated.
        (VECTORS, "for i in range(16):\n    B[i] = T.Select(i >= 3, A[(i - 3) // 2 + 2], 0)"),
        (VECTORS, "for i in range(16):\n    B[i] = A[T.min(i - 3, 0) // 2 + 2]"),
        // What is loaded may be negative, and values wrap.
        (VECTORS, "for i in range(16):\n    B[i] = A[i] // 3"),
        (BYTES, "for i in range(16):\n    B[i] = (T.Cast(\"int32\", A[i]) - 1) // 3"),
        (BYTES, "for i in range(16):\n    B[i] = T.Cast(\"int32\", A[i]) * 16777216 // 3"),
        (VECTORS, "for i in range(16):\n    B[i] = (i * 1000000000 + 7) // 3"),
        (VECTORS, "for i in range(16):\n    B[i] = T.truncdiv(i, i - 5)"),
        (MATCHED, &format!("{SYMBOLIC}for i in range(n):\n    B[i] = A[(i - n) // 4 + n]")),
        (MATCHED, &format!("{SYMBOLIC}for i in range((n - 3) // 4):\n    B[i] = A[i]")),
        (MATCHED, &format!("{SYMBOLIC}for i in range(n):\n    B[i] = A[i // (n - 1)]")),
        (SCALAR, "for i in range(16):\n    B[i] = A[i // k]"),
        (SCALAR, "for i in range(16):\n    B[i] = A[k % 16]"),
    ] {
        let verdicts = verdicts(signature, body);
        assert!(verdicts.iter().any(|verdict| !verdict.is_proved()), "{body}");
    }
}

#[test]
fn a_division_has_to_hold_wherever_it_is_evaluated() {
    let guarded = "for i in range(16):\n    if i >= 3:\n        B[i] = A[(i - 3) // 2]";
    assert!(verdicts(VECTORS, guarded)[0].is_proved());
    // The same division once more, behind another condition.
    let twice = format!("{guarded}\n    if i >= 1:\n        B[i] = A[(i - 3) // 2 + 1]");
    let verdicts = verdicts(VECTORS, &twice);
    assert_eq!(verdicts.len(), 1, "it is one expression");
    assert!(matches!(verdicts[0], Verdict::Refuted(_)), "{}", verdicts[0]);
}

#[test]
fn a_refutation_shows_the_operand_that_is_negative() {
    let found = verdicts(VECTORS, "for i in range(16):\n    B[(i - 3) // 2 + 2] = A[i]");
    let Verdict::Refuted(found) = &found[0] else { panic!("{}", found[0]) };
    assert!(found.to_string().contains("`i - 3` is -3, and is divided in `(i - 3) // 2`"), "{found}");
}

#[test]
fn nothing_is_proved_of_an_expression_that_the_program_does_not_evaluate() {
    let func = common::program(&format!("def main({VECTORS}):\n    for i in range(16):\n        B[i // 4] = A[i]\n"));
    let known = divisions(&func).remove(0);
    let Expr::Binary(op, dividend, _) = &known else { panic!("{known}") };
    let other = Expr::binary(*op, (**dividend).clone(), Expr::int(5));
    let sum = (**dividend).clone() + Expr::int(5);
    let reports = common::judge().check_dividends(&func, &[known.clone(), other, sum, known]);
    let proved: Vec<_> = reports.iter().map(|report| report.verdict.is_proved()).collect();
    assert_eq!(proved, [true, false, false, true]);
    assert!(common::judge().check_dividends(&func, &[]).is_empty());
}
