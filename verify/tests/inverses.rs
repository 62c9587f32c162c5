//! Inverses and padding of index maps, right and wrong: the right ones are proved for every shape, the wrong ones refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::judge;
use common::map::Mapped;
use tilewright_verify::{Report, Verdict};

fn check(map: &Mapped, inverse: &str, padding: &str) -> Vec<Report> {
    let padded: Vec<usize> = (0..map.shape.len()).collect();
    let inverse = map.inverse(inverse, padding);
    let reports = judge().check_map(map.claim().padded(&padded).inverse(&inverse));
    for report in &reports {
        eprintln!("{:9} {:8.2} ms  {} [{}]", report.obligation, report.ms, report.verdict, report.method);
    }
    reports
}

fn proved(map: &Mapped, inverse: &str, padding: &str) {
    for report in check(map, inverse, padding) {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
}

fn refuted(map: &Mapped, inverse: &str, padding: &str, obligation: &str) {
    let reports = check(map, inverse, padding);
    let report = reports.iter().find(|report| report.obligation.id() == obligation).unwrap();
    assert!(matches!(report.verdict, Verdict::Refuted(_)), "{obligation} of {}: {}", report.subject, report.verdict);
}

/// NHWC to flat NCHW4c, all extents symbolic; the inverse divides step by step.
#[test]
fn flat_nchw4c_has_its_inverse_for_every_shape() {
    let layout = Mapped::new(
        "lambda n, h, w, c: [(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]",
        "N, H, W, C",
        "N * ((C + 3) // 4) * H * W * 4",
    );
    let [image, row, column] = ["p // 4 // W // H // ((C + 3) // 4)", "p // 4 // W % H", "p // 4 % W"];
    let channel = "p // 4 // W // H % ((C + 3) // 4) * 4 + p % 4";
    let good = format!("lambda p: [{image}, {row}, {column}, {channel}]");
    let padding = format!("lambda p: {channel} >= C");
    proved(&layout, &good, &padding);
    let swapped = format!("lambda p: [{image}, {column}, {row}, {channel}]");
    refuted(&layout, &swapped, &padding, "inverse");
    refuted(&layout, &good, "lambda p: False", "padding");
    refuted(&layout, &good, "lambda p: False", "inverse");
}

/// T(8,128)(2,1) on symbolic rows and columns, flat.
#[test]
fn tpu_tiles_have_their_inverse_for_every_shape() {
    let tile = "r // 8 * ((C + 127) // 128) + c // 128";
    let inner = "(r % 8 // 2 * 128 + c % 128) * 2 + r % 2";
    let size = "(R + 7) // 8 * ((C + 127) // 128) * 1024";
    let layout = Mapped::new(&format!("lambda r, c: [({tile}) * 1024 + ({inner})]"), "R, C", size);
    let column = "p // 1024 % ((C + 127) // 128) * 128 + p % 1024 // 2 % 128";
    let row = |pairs: i64| format!("p // 1024 // ((C + 127) // 128) * 8 + p % 1024 // {pairs} * 2 + p % 1024 % 2");
    let back = |row: &str| (format!("lambda p: [{row}, {column}]"), format!("lambda p: {row} >= R or {column} >= C"));
    let (good, padding) = back(&row(256));
    proved(&layout, &good, &padding);
    let (wrong, padding) = back(&row(128));
    refuted(&layout, &wrong, &padding, "inverse");
}

/// Two levels of symbolic factors: `i` as `a`-blocks of `b`-blocks.
#[test]
fn a_split_by_symbols_has_its_inverse() {
    let lambda = "lambda i: [i // (a * b), i // b % a, i % b]";
    let layout = Mapped::new(lambda, "n", "(n + a * b - 1) // (a * b), a, b");
    proved(&layout, "lambda p, q, r: [(p * a + q) * b + r]", "lambda p, q, r: (p * a + q) * b + r >= n");
    refuted(&layout, "lambda p, q, r: [(p * b + q) * a + r]", "lambda p, q, r: (p * b + q) * a + r >= n", "inverse");
}

/// A texture: two symbolic groups.
#[test]
fn rows_and_columns_of_a_texture_have_their_inverse() {
    let layout = Mapped::new(
        "lambda n, h, w, c: [(n * ((C + 3) // 4) + c // 4) * H + h, w * 4 + c % 4]",
        "N, H, W, C",
        "N * ((C + 3) // 4) * H, W * 4",
    );
    let [image, row, column] = ["p // H // ((C + 3) // 4)", "p % H", "q // 4"];
    let channel = "p // H % ((C + 3) // 4) * 4 + q % 4";
    let padding = format!("lambda p, q: {channel} >= C");
    proved(&layout, &format!("lambda p, q: [{image}, {row}, {column}, {channel}]"), &padding);
    refuted(&layout, &format!("lambda p, q: [{row}, {image}, {column}, {channel}]"), &padding, "inverse");
}

/// Rotations, reversals and offsets by symbols.
#[test]
fn rotations_and_reversals_of_a_symbolic_axis_have_their_inverse() {
    let nowhere = "lambda p: False";
    let rotated = Mapped::new("lambda i: [(i + 3) % n]", "n", "n");
    proved(&rotated, "lambda p: [(p - 3) % n]", nowhere);
    refuted(&rotated, "lambda p: [(p - 2) % n]", nowhere, "inverse");
    let reversed = Mapped::new("lambda i: [n - 1 - i]", "n", "n");
    proved(&reversed, "lambda p: [n - 1 - p]", nowhere);
    refuted(&reversed, "lambda p: [n - p]", nowhere, "inverse");
}
