//! Textures: what is lowered rightly is proved, each broken twin is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;
mod texture_programs;

use common::pair::{Pair, difference, replaced, shown, with_words};
use common::{judge, program};
use texture_programs::*;
use tilewright_ir::BufferChange;
use tilewright_verify::{Report, Verdict};

#[test]
fn a_program_against_itself_is_proved() {
    for lowering in [right(), right_c1()] {
        lowering.against_themselves().iter().for_each(Pair::is_proved);
    }
}

#[test]
fn activations_with_ragged_channels_are_proved() {
    is_proved(&right());
}

#[test]
fn weights_are_proved() {
    is_proved(&right_c1());
}

#[test]
fn explicit_separators_are_proved() {
    is_proved(&separated_c1());
    is_proved(&with_separators(&right(), "[2, 3]"));
}

#[test]
fn symbolic_extents_are_proved_under_the_premise_that_the_launch_checks_the_limits() {
    let reports = for_all_shapes(&right()).judged();
    assert!(reports.iter().all(|report| report.verdict.is_proved()));
    let is_premise = |report: &Report| {
        report.obligation.id() == "texture" && report.method.to_string().contains("premise: the launch")
    };
    assert!(reports.iter().any(is_premise));
    let slowest = reports.iter().map(|report| report.ms).fold(0.0, f64::max);
    assert!(slowest < 5000.0, "{slowest} ms");
    is_proved(&for_all_shapes(&right_c1()));
}

#[test]
fn symbolic_lowerings_that_are_broken_are_seen() {
    for_all_shapes(&lowering("texture:weight", "5, 42", "b, y * 6 + x")).differs_in("specification");
    let elsewhere = lowering("texture", "30, 7", "b, y * 7 + x").twin_claim("b, y * 7 + x", "b * 6 + y, x");
    for_all_shapes(&elsewhere).differs_in("simulation");
    let down = for_all_shapes(&right()).twin("(((c + 3) // 4 * h, w, 4)", "((c // 4 * h, w, 4)");
    down.differs_in("bounds");
    for_all_shapes(&unguarded()).differs_in("simulation");
    let found = for_all_shapes(&summed()).with_words(&[("20", "c + 2")]).differs_in("defined");
    assert!(found.contains("a lane that has no value"));
}

#[test]
fn rows_of_two_axes_are_proved_and_those_of_another_convention_are_seen() {
    // Rows are block and row, columns are column: nhwc and C0 agree on four axes.
    is_proved(&lowering("texture:nhwc", "30, 7", "b * 6 + y, x"));
    lowering("texture:nhwc", "5, 42", "b, y * 7 + x").differs_in("specification");
}

#[test]
fn separators_against_the_scope_are_no_proof() {
    let reports = with_separators(&right_c1(), "[2]").judged();
    assert!(!verdict_of(&reports, "specification").is_proved());
}

#[test]
fn a_texture_that_is_a_parameter_keeps_its_calling_convention() {
    let before = r#"def main(x: T.handle, Y: T.Buffer((2, 3, 5, 4), "float32")):
    X = T.match_buffer(x, (2, 3, 5, 4), "float32", scope="texture:weight")
    for a, b, c, d in T.grid(2, 3, 5, 4):
        Y[a, b, c, d] = X[a, b, c, d]
"#;
    let after = r#"def main(x: T.handle, Y: T.Buffer((2, 3, 5, 4), "float32")):
    X = T.match_buffer(x, (2, 3, 5, 4), "float32", scope="texture:weight")
    X_texels = T.decl_buffer((2, 15, 4), "float32", data=X.data, scope="texture:weight", axis_separators=[1, 2])
    for a, b, c, d in T.grid(2, 3, 5, 4):
        Y[a, b, c, d] = X_texels[a, b * 5 + c, d]
"#;
    let map = "lambda i, j, k, l: [i, j * 5 + k, l]";
    let right = Pair::new(before, after).claim(BufferChange::Texture, "X -> X_texels", map);
    right.is_proved();
    // Row and column exchanged.
    right.twin("b * 5 + c", "c * 3 + b").differs_in("simulation");
}

#[test]
fn the_conventions_swapped_are_seen() {
    let text = lowering("texture", "5, 42", "b, y * 7 + x").differs_in("specification");
    assert!(text.contains("`5 * 6` is 30, but `5` is 5"), "{text}");
    lowering("texture:weight", "30, 7", "b * 6 + y, x").differs_in("specification");
}

#[test]
fn rows_and_columns_exchanged_are_seen() {
    lowering("texture", "7, 30", "x, b * 6 + y").differs_in("specification");
    // In the program only, the claim being right.
    let claimed = lowering("texture", "30, 7", "x, b * 6 + y").twin_claim("x, b * 6 + y", "b * 6 + y, x");
    claimed.differs_in("simulation");
}

#[test]
fn the_lane_from_another_axis_is_seen() {
    right().twin_claim("x, l]", "x, b % 4]").differs_in("specification");
}

#[test]
fn a_column_numeral_with_another_stride_is_seen() {
    let broken = lowering("texture:weight", "5, 42", "b, y * 6 + x");
    broken.differs_in("specification");
    broken.differs_in("injective");
}

#[test]
fn a_height_too_small_by_one_is_seen() {
    let broken = lowering("texture", "29, 7", "b * 6 + y, x");
    assert!(broken.differs_in("bounds").contains("lands on (29, 0, 0), outside the physical shape (29, 7, 4)"));
    broken.differs_in("texture");
    broken.differs_in("specification");
}

#[test]
fn an_extent_at_the_limit_is_proved_and_one_above_is_seen() {
    is_proved(&with_limits(&right(), "7x30"));
    let text = with_limits(&right(), "6x30").differs_in("texture");
    assert!(text.contains("has the width 7, the limit is 6 (limits 6x30)"), "{text}");
    let text = with_limits(&right(), "7x29").differs_in("texture");
    assert!(text.contains("has the height 30, the limit is 29"), "{text}");
}

#[test]
fn what_every_device_has_is_the_limit_where_none_is_stated() {
    is_proved(&right().with_words(&[("7", "8192")]));
    assert!(right().with_words(&[("7", "8193")]).differs_in("texture").contains("the limit is 8192"));
}

#[test]
fn a_symbolic_extent_above_the_limit_on_every_shape_is_seen() {
    let taller = right().with_words(&[("6", "(6 * 9)"), ("30", "5 * (6 * 9)")]);
    let text = with_limits(&for_all_shapes(&taller), "100x8").differs_in("texture");
    assert!(text.contains("has the height 9 on the smallest shape, the limit is 8"), "{text}");
}

#[test]
fn limits_that_change_are_seen() {
    let limits = "    T.func_attr({\"texture_limits\": \"16384x16384\"})\n    Xt =";
    right().twin("    Xt =", limits).differs_in("texture");
}

#[test]
fn another_element_type_scope_or_number_of_channels_is_seen() {
    right().twin("scope=\"texture\"", "scope=\"texture:weight\"").differs_in("texture");
    right().twin("scope=\"texture\"", "scope=\"global\"").differs_in("texture");
    let wide = right().twin("(30, 7, 4)", "(30, 7, 8)");
    wide.differs_in("texture");
    wide.differs_in("tight");
}

/// The consumer adds up channels up to 19 of 18.
fn summed() -> Pair {
    right().twins(
        "for k in T.thread_binding(18, thread=\"threadIdx.x\"):
                if k < 18:
                    Y[y, x, k] =",
        "for k in range(20):
                    Y[y, x, 0] = Y[y, x, 0] +",
    )
}

#[test]
fn a_lane_without_a_value_that_is_read_is_seen() {
    let text = summed().differs_in("defined");
    assert!(text.contains("reads (4, 0, 0, 2), a lane that has no value at"), "{text}");
}

#[test]
fn a_gathered_store_whose_texel_two_iterations_share_is_seen() {
    let blocks = "for b in T.thread_binding(5, thread=\"blockIdx.y\"):";
    let text = right().twins(blocks, "for again, b in T.grid(3, 5):").differs_in("race");
    assert!(text.contains("(0, 0, 0, 0) and (1, 0, 0, 0) both land on (0, 0, 0)"), "{text}");
}

/// What the right lowering stores.
const GATHERED: &str = "T.if_then_else(
                    T.Ramp(b * 4, 1, 4) < 18, X[y, x, T.Ramp(b * 4, 1, 4)], T.Broadcast(T.float32(0), 4))";

#[test]
fn a_store_of_one_channel_is_seen() {
    let broken = right().twin(&format!("0:4] = {GATHERED}"), "0] = X[y, x, 0]");
    broken.differs_in("lanes");
    let reports = broken.judged();
    assert!(reports.iter().any(|report| report.obligation.id() == "simulation" && !report.verdict.is_proved()));
}

#[test]
fn one_value_spread_over_the_lanes_is_seen() {
    let broken = right().twin("X[y, x, T.Ramp(b * 4, 1, 4)]", "T.Broadcast(X[y, x, b * 4], 4)");
    assert!(broken.differs_in("simulation").contains("became `X[y, x, b * 4]`, which is another one at"));
}

#[test]
fn a_reversed_ramp_is_seen() {
    let broken = right().twin("0:4]", "T.Ramp(3, -1, 4)]");
    broken.differs_in("simulation");
    broken.differs_in("lanes");
}

#[test]
fn a_ramp_of_stride_two_is_seen() {
    let broken = right().twin("0:4]", "T.Ramp(0, 2, 4)]");
    broken.differs_in("simulation");
    broken.differs_in("bounds");
    broken.differs_in("lanes");
}

fn unguarded() -> Pair {
    right().twin(GATHERED, "X[y, x, T.Ramp(b * 4, 1, 4)]")
}

#[test]
fn a_dropped_guard_is_seen() {
    assert!(unguarded().differs_in("simulation").contains("does not hold"));
    unguarded().differs_in("bounds");
}

#[test]
fn the_guard_of_another_lane_is_seen() {
    right().twin("T.Ramp(b * 4, 1, 4) < 18", "T.Ramp(b * 4, 1, 4) + 1 < 18").differs_in("simulation");
}

#[test]
fn lanes_without_a_value_hold_a_constant_or_nothing_is_proved() {
    let reports = right().twin("T.Broadcast(T.float32(0), 4)", "X[77, 0, 0:4]").judged();
    assert!(reports.iter().any(|report| report.obligation.id() == "simulation" && !report.verdict.is_proved()));
}

/// A texture that is written by tiles of 4 rows, and read.
const TILED: &str = r#"def tiled(Y: T.Buffer((29, 7, 4), "float32")):
    Xt = T.alloc_buffer((29, 7, 4), "float32", scope="texture", axis_separators=[1, 2])
    for yo in T.thread_binding(8, thread="blockIdx.x"):
        for yi in range(4):
            for x in T.thread_binding(7, thread="threadIdx.x"):
                if yo * 4 + yi < 29:
                    Xt[yo * 4 + yi, x, 0:4] = T.Broadcast(T.float32(1), 4)
    for y, x, k in T.grid(29, 7, 4):
        Y[y, x, k] = Xt[y, x, k]
"#;

/// The same for `h` rows in so many tiles.
fn tiled_for_all(tiles: &str) -> String {
    replaced(&with_words(TILED, &[("29", "h"), ("8", tiles)]), "    Xt =", "    h = T.int32()\n    Xt =")
}

/// Only the reports of one program by itself.
fn alone(text: &str) -> Vec<Report> {
    shown(judge().check_program(&program(text)))
}

fn verdict_of<'r>(reports: &'r [Report], obligation: &str) -> &'r Verdict {
    &reports.iter().find(|report| report.obligation.id() == obligation).unwrap().verdict
}

#[test]
fn a_ragged_tile_writes_the_whole_texture_for_every_height() {
    for program in [&tiled_for_all("(h + 3) // 4"), TILED] {
        assert!(alone(program).iter().all(|report| report.verdict.is_proved()));
    }
}

#[test]
fn a_texel_that_is_read_and_was_never_written_is_seen() {
    let text = difference(&alone(&replaced(TILED, "< 29", "< 28")), "defined");
    assert!(text.starts_with("`Xt[y, x, k]` reads (28, 0, 0), which nothing wrote before"), "{text}");
    // Blocks rounded down leave the last row out.
    difference(&alone(&replaced(TILED, "T.thread_binding(8", "T.thread_binding(7")), "defined");
    difference(&alone(&tiled_for_all("h // 4")), "defined");
}

#[test]
fn a_program_of_texels_is_held_to_the_limits_of_its_device() {
    let limited = |limits: &str| {
        replaced(TILED, "    Xt =", &format!("    T.func_attr({{\"texture_limits\": \"{limits}\"}})\n    Xt ="))
    };
    assert!(verdict_of(&alone(&limited("7x29")), "texture").is_proved());
    let text = difference(&alone(&limited("7x28")), "texture");
    assert!(text.contains("has the height 29, the limit is 28"), "{text}");
}

#[test]
fn a_texture_read_and_written_by_one_nest_is_seen() {
    let (head, nests) = TILED.split_once("    for yo").unwrap();
    let nests = format!("    for yo{nests}").replace("\n    ", "\n        ");
    let once = format!("{head}    for once in range(1):\n    {nests}");
    let text = difference(&alone(&once), "texture");
    assert!(text.contains("an image is read only or written only in a kernel"), "{text}");
}

#[test]
fn iterations_that_run_at_once_and_write_one_texel_are_seen() {
    // 4 rows a block, but the blocks are 3 apart.
    let apart = replaced(TILED, "if yo * 4 + yi <", "if yo * 3 + yi <");
    let text = difference(&alone(&replaced(&apart, "Xt[yo * 4 + yi,", "Xt[yo * 3 + yi,")), "race");
    assert!(text.contains("touches element (3, 0, 0) of `Xt` in iterations 0 and 1 of `yo`"), "{text}");
}

#[test]
fn what_the_program_asserts_may_be_relied_on() {
    let whole = tiled_for_all("h // 4");
    let asserted = replaced(&whole, "    for yo", "    assert h % 4 == 0, \"whole blocks\"\n    for yo");
    assert!(alone(&asserted).iter().all(|report| report.verdict.is_proved()));
    difference(&alone(&whole), "defined");
}
