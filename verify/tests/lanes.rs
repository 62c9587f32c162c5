//! Loops that became lanes: the right vector statement is proved, each broken twin is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::pair::Pair;

/// The body of a loop over four columns `c` before, and the statement after, in seven rows `y`.
fn pair(before: &str, after: &str) -> Pair {
    let rows = r#"def main(A: T.Buffer((7, 11), "float32"), B: T.Buffer((7, 13), "float32")):
    for y in range(7):
"#;
    let before = format!("{rows}        for c in T.vectorized(4):\n            {before}\n");
    Pair::new(&before, &format!("{rows}        {after}\n"))
}

fn doubled() -> Pair {
    pair("B[y, c] = A[y, c] * 2", "B[y, 0:4] = A[y, 0:4] * 2")
}

#[test]
fn a_program_against_itself_is_proved() {
    doubled().against_themselves().iter().for_each(Pair::is_proved);
}

#[test]
fn a_loop_that_became_lanes_is_proved_whatever_its_kind() {
    for kind in ["range(4)", "T.parallel(4)", "T.vectorized(4)", "T.unroll(4)"] {
        doubled().twin_before("T.vectorized(4)", kind).is_proved();
    }
}

#[test]
fn a_loop_of_threads_is_not_followed() {
    let threads = doubled().twin_before("T.vectorized(4)", r#"T.thread_binding(4, thread="threadIdx.x")"#);
    assert!(threads.is_unknown().contains("bound to threads"));
}

#[test]
fn a_loop_that_starts_elsewhere_is_proved_and_lanes_that_do_not_are_seen() {
    let late = doubled().twin_before("T.vectorized(4)", "T.vectorized(3, 7)");
    late.twin("B[y, 0:4] = A[y, 0:4]", "B[y, 3:7] = A[y, 3:7]").is_proved();
    late.differs_in("simulation");
}

#[test]
fn more_or_fewer_lanes_than_iterations_are_seen() {
    let three = doubled().twin("B[y, 0:4] = A[y, 0:4]", "B[y, 0:3] = A[y, 0:3]");
    assert!(three.differs_in("iteration").contains("`4` is 4, but `3` is 3"));
    doubled().twin_before("T.vectorized(4)", "T.vectorized(3)").differs_in("iteration");
}

#[test]
fn the_value_of_the_first_lane_in_all_is_seen() {
    doubled().twin("A[y, 0:4] * 2", "T.Broadcast(A[y, 0] * 2, 4)").differs_in("simulation");
}

#[test]
fn reversed_lanes_and_lanes_with_gaps_are_seen() {
    doubled().twin("B[y, 0:4]", "B[y, T.Ramp(3, -1, 4)]").differs_in("simulation");
    doubled().twin("B[y, 0:4]", "B[y, T.Ramp(0, 2, 4)]").differs_in("simulation");
    doubled().twin("A[y, 0:4]", "A[y, T.Ramp(3, -1, 4)]").differs_in("simulation");
    // Reversed on both sides is a permutation of the iterations that nobody claimed.
    let reversed = "B[y, T.Ramp(3, -1, 4)] = A[y, T.Ramp(3, -1, 4)]";
    doubled().twin("B[y, 0:4] = A[y, 0:4]", reversed).differs_in("simulation");
}

#[test]
fn lanes_of_one_element_are_seen() {
    let one = pair("B[y, 5] = A[y, c]", "B[y, T.Ramp(5, 0, 4)] = A[y, 0:4]");
    assert!(one.differs_in("simulation").contains("c = 0, c' = "));
    one.differs_in("lanes");
}

#[test]
fn an_iteration_that_reads_what_an_earlier_one_wrote_is_seen() {
    let next = pair("B[y, c + 1] = B[y, c]", "B[y, 1:5] = B[y, 0:4]");
    assert!(next.differs_in("simulation").contains("does not hold at"));
    pair("B[y, c + 3] = B[y, c]", "B[y, 3:7] = B[y, 0:4]").differs_in("simulation");
    // Far enough away, or overwritten only later.
    pair("B[y, c + 4] = B[y, c]", "B[y, 4:8] = B[y, 0:4]").is_proved();
    pair("B[y, c] = B[y, c + 1]", "B[y, 0:4] = B[y, 1:5]").is_proved();
    pair("B[y, c + 2] = B[y, c + 2]", "B[y, 2:6] = B[y, 2:6]").is_proved();
}

#[test]
fn a_guard_that_reads_what_a_lane_wrote_is_seen() {
    let pair = pair("if B[y, 2] < 1: B[y, c] = A[y, c] * 2", "if B[y, 2] < 1: B[y, 0:4] = A[y, 0:4] * 2");
    assert!(pair.differs_in("simulation").contains("does not hold at"));
}

#[test]
fn a_guard_of_all_lanes_stays_and_one_that_is_dropped_is_seen() {
    let guarded = pair("if y < 5: B[y, c] = A[y, c] * 2", "if y < 5: B[y, 0:4] = A[y, 0:4] * 2");
    guarded.is_proved();
    assert!(guarded.twin("if y < 5: ", "").differs_in("simulation").contains("`y < 5` does not hold"));
    guarded.twin_before("if y < 5: ", "").differs_in("simulation");
}

/// What is stored in the lanes where `c < 3`, and zeros in the others.
const CHOSEN: &str = "B[y, 0:4] = T.if_then_else(T.Ramp(0, 1, 4) < 3, A[y, 0:4], T.Broadcast(T.float32(0), 4))";

#[test]
fn a_guard_of_some_lanes_gathered_into_a_parameter_is_seen() {
    let pair = pair("if c < 3: B[y, c] = A[y, c]", CHOSEN);
    assert!(pair.differs_in("simulation").contains("`c < 3` does not hold"));
}

#[test]
fn a_conditional_decided_lane_by_lane_is_followed() {
    let chosen = pair("B[y, c] = T.if_then_else(c < 3, A[y, c], T.float32(0))", CHOSEN);
    chosen.is_proved();
    chosen.twin("< 3", "< 2").differs_in("simulation");
    chosen.twin("< 3", "< 4").differs_in("simulation");
}

#[test]
fn lanes_in_steps_are_proved() {
    pair("B[y, c * 3 + 1] = A[y, c]", "B[y, T.Ramp(1, 3, 4)] = A[y, 0:4]").is_proved();
}

#[test]
fn two_stores_are_no_lanes() {
    let twice = doubled().twin_before("B[y, c] = A[y, c] * 2", "B[y, c] = A[y, c] * 2; B[y, c] = A[y, c] * 2");
    assert!(twice.is_unknown().contains("is not one store"));
}
