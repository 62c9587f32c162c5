//! A pass and its broken twins: the right one is proved, each broken one is refuted, none is proved.
//!
//! What the passes make is written here by hand, so that the judge is tested without any of the passes that it judges.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::pair::{Pair, judged, with_words};
use tilewright_ir::BufferChange;
use tilewright_verify::Verdict;

/// Ragged and pairwise distinct: 2x7x9x17.
const BEFORE: &str = r#"def main(A: T.Buffer((2, 7, 9, 17), "float32"), B: T.Buffer((2, 7, 9, 17), "float32")):
    for n, h, w, c in T.grid(2, 7, 9, 17):
        if w < 8:
            B[n, h, w, c] = A[n, h, w, c] * 2 - A[n, h, w, 0]
"#;

/// Puts `A` and `B` into NCHW4c.
fn relayout() -> Pair {
    relayout_by("(2, 5, 7, 9, 4)", "n, c // 4, h, w, c % 4")
}

/// Puts `A` and `B` into another shape, where this is the index of what was at `n, h, w, c`.
fn relayout_by(shape: &str, index: &str) -> Pair {
    let first = with_words(index, &[("c", "0")]);
    let after = format!(
        r#"def main(A: T.Buffer({shape}, "float32"), B: T.Buffer({shape}, "float32")):
    for n, h, w, c in T.grid(2, 7, 9, 17):
        if w < 8:
            B[{index}] = A[{index}] * 2 - A[{first}]
"#
    );
    let (map, layout) = (format!("lambda n, h, w, c: [{index}]"), BufferChange::Layout);
    Pair::new(BEFORE, &after).claim(layout, "A -> A", &map).claim(layout, "B -> B", &map)
}

fn all_proved(pass: &Pair) {
    pass.is_proved_by(8);
}

#[test]
fn a_program_against_itself_is_proved() {
    relayout().against_themselves().iter().for_each(all_proved);
}

#[test]
fn the_right_layout_pass_is_proved() {
    all_proved(&relayout());
}

#[test]
fn blocks_rounded_down_are_seen() {
    let broken = relayout_by("(2, 4, 7, 9, 4)", "n, c // 4, h, w, c % 4");
    assert!(broken.differs_in("bounds").contains("outside the physical shape (2, 4, 7, 9, 4)"));
}

#[test]
fn an_extent_too_large_is_seen() {
    let broken = relayout_by("(2, 6, 7, 9, 4)", "n, c // 4, h, w, c % 4");
    assert!(broken.differs_in("tight").contains("axis 1 has extent 6"));
}

#[test]
fn swapped_axes_are_seen() {
    let swapped = relayout_by("(2, 5, 7, 9, 4)", "n, c // 4, w, h, c % 4");
    swapped.twin_claim("w, h", "h, w").differs_in("simulation");
}

#[test]
fn an_index_off_by_one_is_seen() {
    relayout().twin("= A[n, c // 4, h, w, c % 4]", "= A[n, c // 4, h, w + 1, c % 4]").differs_in("simulation");
}

#[test]
fn truncation_for_floor_is_seen_on_a_negative_dividend() {
    // Channels before the end: c - 17 is negative, where floor and truncation differ.
    all_proved(&relayout_by("(2, 5, 7, 9, 4)", "n, (c - 17) // 4 + 5, h, w, (c - 17) % 4"));
    let truncated = relayout_by("(2, 5, 7, 9, 4)", "n, T.truncdiv(c - 17, 4) + 5, h, w, (c - 17) % 4");
    truncated.twin_claim("T.truncdiv(c - 17, 4)", "(c - 17) // 4").differs_in("simulation");
}

#[test]
fn a_many_to_one_map_is_seen_with_the_colliding_pair() {
    let text = relayout_by("(2, 5, 7, 9, 3)", "n, c // 4, h, w, c % 3").differs_in("injective");
    assert_eq!(text, "(0, 0, 0, 0) and (0, 0, 0, 3) both land on (0, 0, 0, 0, 0)");
}

#[test]
fn a_dropped_guard_is_seen() {
    assert!(relayout().twin("if w < 8:\n            B", "B").differs_in("simulation").contains("w < 8"));
}

#[test]
fn a_guard_off_by_one_is_seen() {
    relayout().twin("if w < 8", "if w <= 8").differs_in("simulation");
}

#[test]
fn a_guard_added_is_seen() {
    relayout().twin("B[n,", "if c % 4 < 3: B[n,").differs_in("simulation");
}

#[test]
fn a_loop_one_short_is_seen() {
    relayout().twin("T.grid(2, 7, 9, 17)", "T.grid(2, 7, 9, 16)").differs_in("iteration");
}

#[test]
fn a_loop_that_starts_late_is_seen() {
    let right = relayout().twin(
        "for n, h, w, c in T.grid(2, 7, 9, 17):\n        if w < 8:\n            B",
        "for n in range(2):
        for h in range(7):
            for w, c in T.grid(9, 17):
                if w < 8: B",
    );
    all_proved(&right);
    right.twin("range(7)", "T.serial(1, extent=7)").differs_in("iteration");
}

#[test]
fn a_store_left_out_is_seen() {
    relayout().twin("B[n, c // 4, h, w, c % 4] =", "pass  #").differs_in("simulation");
}

#[test]
fn swapped_operands_are_seen() {
    let (right, swapped) = (
        "A[n, c // 4, h, w, c % 4] * 2 - A[n, 0 // 4, h, w, 0 % 4]",
        "A[n, 0 // 4, h, w, 0 % 4] - A[n, c // 4, h, w, c % 4] * 2",
    );
    relayout().twin(right, swapped).differs_in("simulation");
}

#[test]
fn another_constant_is_seen() {
    relayout().twin("* 2", "* 3").differs_in("simulation");
}

#[test]
fn an_alias_left_behind_is_seen() {
    let alias = r#"A_alias = T.decl_buffer((2, 7, 9, 17), "float32", data=A.data)
    A_alias[0, 0, 0, 1] = A_alias[1, 2, 3, 4]
    for n,"#;
    let text = relayout().twins("for n,", alias).differs_in("simulation");
    assert!(text.contains("A_alias still looks for it where it was"), "{text}");
}

#[test]
fn a_claim_that_is_missing_is_no_proof() {
    let (before, after, mut evidence) = relayout().programs();
    evidence.buffers.pop();
    let reports = judged(&before, &after, &evidence);
    assert!(reports.iter().any(|report| matches!(report.verdict, Verdict::Unknown(_))));
}

/// Flattens `A` and `B` to `A1` and `B1`.
fn flattened() -> Pair {
    flattened_by("[]", "(2142,)", "((n * 7 + h) * 9 + w) * 17 + c")
}

/// The same with the channels in an axis of their own.
fn flattened_to_two() -> Pair {
    flattened_by("[3]", "(126, 17), axis_separators=[1]", "(n * 7 + h) * 9 + w, c")
}

/// Flattens `A` and `B`, which have these axis separators, to `A1` and `B1`, where this is the index of what was at
/// `n, h, w, c`.
fn flattened_by(separators: &str, flat: &str, index: &str) -> Pair {
    let head = format!(
        r#"def main(A: T.Buffer((2, 7, 9, 17), "float32"), B: T.Buffer((2, 7, 9, 17), "float32")):
    T.func_attr({{"axis_separators": {{A: {separators}, B: {separators}}}}})
"#
    );
    let (_, body) = BEFORE.split_once('\n').unwrap();
    let first = with_words(index, &[("c", "0")]);
    let after = format!(
        "{head}    A1 = T.decl_buffer({flat}, data=A.data)
    B1 = T.decl_buffer({flat}, data=B.data)
    for n, h, w, c in T.grid(2, 7, 9, 17):
        if w < 8:
            B1[{index}] = A1[{index}] * 2 - A1[{first}]
"
    );
    let (map, flatten) = (format!("lambda n, h, w, c: [{index}]"), BufferChange::Flatten);
    Pair::new(&(head + body), &after).claim(flatten, "A -> A1", &map).claim(flatten, "B -> B1", &map)
}

#[test]
fn flattening_is_proved_to_one_and_to_two_axes() {
    all_proved(&flattened());
    all_proved(&flattened_to_two());
}

#[test]
fn separators_in_the_wrong_place_are_seen() {
    // The buffer says [3]; the pass cut at 2.
    flattened_by("[3]", "(14, 153), axis_separators=[1]", "n * 7 + h, w * 17 + c").differs_in("flatten");
}

#[test]
fn separators_ignored_are_seen() {
    flattened_by("[3]", "(2142,)", "((n * 7 + h) * 9 + w) * 17 + c").differs_in("flatten");
}

#[test]
fn separators_lost_after_flattening_are_seen() {
    flattened_by("[3]", "(126, 17)", "(n * 7 + h) * 9 + w, c").differs_in("flatten");
}

#[test]
fn column_major_flattening_is_seen() {
    flattened_by("[]", "(2142,)", "((c * 9 + w) * 7 + h) * 2 + n").differs_in("flatten");
}

#[test]
fn a_stride_of_another_axis_is_seen() {
    let broken = flattened_by("[]", "(2142,)", "((n * 9 + h) * 7 + w) * 17 + c");
    broken.differs_in("flatten");
    broken.differs_in("injective");
}

#[test]
fn a_flattened_view_of_the_wrong_memory_is_no_proof() {
    flattened().twin("data=B.data", "data=A.data").is_not_proved();
}

#[test]
fn an_offset_folded_twice_is_no_proof() {
    let (before, after, mut evidence) = flattened().programs();
    for claim in &mut evidence.buffers {
        claim.after = claim.after.with(|info| info.elem_offset = common::int(3));
    }
    assert!(judged(&before, &after, &evidence).iter().any(|report| !report.verdict.is_proved()));
}

#[test]
fn a_branch_that_is_never_taken_may_be_dropped_and_one_that_is_may_not() {
    let never = relayout().twin_before("if w < 8:", "if w > 8: B[n, h, w, c] = 1\n        if w < 8:");
    all_proved(&never);
    never.twin_before("w > 8", "w > 7").differs_in("simulation");
}
