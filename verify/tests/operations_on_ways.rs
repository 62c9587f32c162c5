//! An operation that occurs on two ways of a statement has to fit its type on both.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::{judge, program};
use tilewright_ir::PrimFunc;
use tilewright_verify::{Obligation, Verdict};

/// A program with an integer `n`, `A: (16,)` and `B: (16,)`.
fn of(body: &str) -> PrimFunc {
    program(&format!(
        "def main(n: T.int32, a: T.handle, b: T.handle):\n\
         \x20   A = T.match_buffer(a, (16,), \"float32\")\n\
         \x20   B = T.match_buffer(b, (16,), \"float32\")\n\
         \x20   {body}"
    ))
}

/// The worst verdict about the index arithmetic of a program.
fn overflow(body: &str) -> Verdict {
    let reports = judge().check_program(&of(body));
    let verdicts = reports.into_iter().filter(|report| report.obligation == Obligation::Overflow);
    Verdict::worst(verdicts.map(|report| report.verdict)).unwrap()
}

#[test]
fn what_fits_under_one_condition_need_not_fit_under_another() {
    for (right, wrong) in [
        ("B[0] = T.if_then_else(n == 3, A[n * n], A[0])", "B[0] = T.if_then_else(n == 3, A[n * n], A[n * n])"),
        (
            "B[0] = T.if_then_else(n > 0, A[6 // n % 8], A[0])",
            "B[0] = T.if_then_else(n > 0, A[6 // n % 8], A[6 // n % 8])",
        ),
        (
            "B[0] = T.if_then_else(n > 0, A[6 // n], T.float32(0))",
            "B[6 // n % 8] = T.if_then_else(n > 0, A[6 // n % 8], T.float32(0))",
        ),
        (
            "B[0] = T.if_then_else(0 < n and n < 3, A[T.shift_left(1, n)], T.float32(0))",
            "B[T.shift_left(1, n) % 8] = T.if_then_else(0 < n and n < 3, A[T.shift_left(1, n) % 8], T.float32(0))",
        ),
    ] {
        assert!(overflow(right).is_proved(), "{right}");
        assert!(!overflow(wrong).is_proved(), "{wrong}");
    }
}

#[test]
fn a_condition_is_evaluated_before_it_holds() {
    assert!(overflow("B[0] = T.if_then_else(n > 5, A[6 // n], T.float32(0))").is_proved());
    assert!(!overflow("B[0] = T.if_then_else(6 // n >= 0, A[6 // n], T.float32(0))").is_proved());
    assert!(!overflow("B[0] = T.if_then_else(0 <= n * n and n * n < 8, A[n * n], T.float32(0))").is_proved());
}

#[test]
fn a_branch_that_is_not_taken_overflows_nothing() {
    let of = |least: i64| {
        format!("for i in range(3):\n        B[i] = A[T.if_then_else(i < {least}, T.truncmod(i * 1500000000, 2), 0)]")
    };
    assert!(overflow(&of(2)).is_proved());
    assert!(matches!(overflow(&of(3)), Verdict::Refuted(_)));
}

#[test]
fn a_choice_by_lanes_of_a_buffer_of_vectors_is_no_endless_choice() {
    let func = program(
        "def main(C: T.Buffer((1,), \"int32x4\"), B: T.Buffer((4,), \"float32\")):\n\
         \x20   B[T.ramp(0, 1, 4)] = T.if_then_else(C[0] < T.broadcast(3, 4), T.broadcast(T.float32(1), 4), \
         T.broadcast(T.float32(0), 4))",
    );
    assert!(!judge().check_program(&func).is_empty());
}
