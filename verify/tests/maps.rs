//! Index maps, good and broken: the good ones are proved, every broken one is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::judge;
use common::map::Mapped;
use tilewright_verify::{Report, Verdict};

fn check(map: &Mapped, padded: &[usize]) -> Vec<Report> {
    let reports = judge().check_map(map.claim().padded(padded));
    for report in &reports {
        eprintln!(
            "{:9} {:60} {:8.2} ms  {} [{}]",
            report.obligation, report.subject, report.ms, report.verdict, report.method
        );
    }
    reports
}

fn proved(map: &Mapped, padded: &[usize]) {
    for report in check(map, padded) {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
}

fn refuted(map: &Mapped, obligation: &str) -> String {
    let reports = check(map, &[]);
    let report = reports.iter().find(|report| report.obligation.id() == obligation).unwrap();
    match &report.verdict {
        Verdict::Refuted(found) => found.text.clone(),
        other => panic!("{obligation} of {}: {other}", report.subject),
    }
}

const NCHW4C: &str = "lambda n, h, w, c: [n, c // 4, h, w, c % 4]";

#[test]
fn nhwc_to_nchw4c_is_proved_for_a_ragged_shape() {
    proved(&Mapped::new(NCHW4C, "2, 7, 9, 17", "2, 5, 7, 9, 4"), &[]);
}

#[test]
fn nhwc_to_nchw4c_is_proved_for_every_shape() {
    proved(&Mapped::new(NCHW4C, "N, H, W, C", "N, (C + 3) // 4, H, W, 4"), &[4]);
}

#[test]
fn nhwc_to_flat_nchw4c_is_proved_for_every_shape() {
    let flat = "lambda n, h, w, c: [(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]";
    proved(&Mapped::new(flat, "N, H, W, C", "N * ((C + 3) // 4) * H * W * 4"), &[0]);
}

#[test]
fn flattening_is_proved_for_every_shape_and_tight() {
    proved(&Mapped::new("lambda i, j, k: [(i * J + j) * K + k]", "I, J, K", "I * J * K"), &[]);
}

#[test]
fn broken_maps_are_refuted_with_concrete_indices() {
    let narrow = Mapped::new("lambda i, j: [i * 2 + j]", "3, 5", "9");
    assert_eq!(refuted(&narrow, "injective"), "(0, 2) and (1, 0) both land on 2");
    let shifted = Mapped::new("lambda i, j: [i, j + 1]", "3, 5", "3, 5");
    assert_eq!(refuted(&shifted, "bounds"), "(0, 4) lands on (0, 5), outside the physical shape (3, 5)");
    let loose = Mapped::new("lambda i, j: [i, j]", "3, 5", "3, 6");
    assert!(refuted(&loose, "tight").contains("largest index is 4"));
    let large = Mapped::new("lambda i, j: [i * 100000 + j]", "100000, 100000", "10000000000");
    assert!(refuted(&large, "overflow").contains("does not fit int32"));
}

#[test]
fn broken_symbolic_maps_are_refuted() {
    // The extents of two axes are swapped in the Horner chain.
    refuted(&Mapped::new("lambda i, j, k: [(i * K + j) * J + k]", "I, J, K", "I * J * K"), "injective");
    // A remainder by 3 where blocks have 4.
    let broken = NCHW4C.replace("c % 4", "c % 3");
    refuted(&Mapped::new(&broken, "N, H, W, C", "N, (C + 3) // 4, H, W, 4"), "injective");
    // The number of blocks rounded down.
    refuted(&Mapped::new(NCHW4C, "N, H, W, C", "N, C // 4, H, W, 4"), "bounds");
}

#[test]
fn an_empty_domain_is_vacuous() {
    let reports = check(&Mapped::new("lambda i, j: [i, j]", "3, 0", "3, 0"), &[]);
    assert!(matches!(reports[0].verdict, Verdict::Vacuous(_)));
    assert!(matches!(reports[1].verdict, Verdict::Vacuous(_)));
}
