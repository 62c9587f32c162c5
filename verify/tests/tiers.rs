//! The tier that decides each kind of map, the size of counterexamples, and the time that huge extents take.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::time::{Duration, Instant};

use common::map::Mapped;
use common::{int, judge};
use tilewright_ir::{DigitCertificate, DigitPlace, DigitSource, DigitSum, DigitView, Expr, IndexMap, Var};
use tilewright_verify::{MapClaim, Report, Verdict};

fn reports(claim: MapClaim<'_>) -> Vec<Report> {
    let reports = judge().check_map(claim);
    for report in &reports {
        eprintln!("{:13} {:8.2} ms  {} [{}]", report.obligation, report.ms, report.verdict, report.method);
    }
    reports
}

fn report_of<'r>(reports: &'r [Report], id: &str) -> &'r Report {
    reports.iter().find(|report| report.obligation.id() == id).unwrap()
}

/// All reports are proved by one of some tiers.
fn proved(reports: &[Report], tiers: &[&str]) {
    for report in reports {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
        let method = report.method.to_string();
        assert!(tiers.iter().any(|tier| method.starts_with(tier)), "{} by {method}", report.obligation);
    }
}

fn text(report: &Report) -> String {
    match &report.verdict {
        Verdict::Refuted(found) => found.to_string(),
        other => panic!("{} of {}: {other} [{}]", report.obligation, report.subject, report.method),
    }
}

/// The reports on the map of a lambda over this domain, into this shape.
fn reports_on(lambda: &str, domain: &str, shape: &str) -> Vec<Report> {
    reports(Mapped::new(lambda, domain, shape).claim())
}

#[test]
fn outputs_without_a_common_index_are_decided_separately() {
    let large = "lambda i, j, k: [(i + 3) % 1000, j ^ 5, (k ^ 1) + 1]";
    proved(&reports_on(large, "1000, 4096, 5000", "1000, 4096, 5001"), &["enumeration", "gf2", "z3"]);
}

#[test]
fn the_first_collision_of_separate_outputs_is_the_first_of_the_map() {
    let found = reports_on("lambda i, j, k: [i // 3, j % 70, k]", "9, 90, 80000", "3, 70, 80000");
    assert_eq!(text(report_of(&found, "injective")), "(0, 0, 0) and (0, 70, 0) both land on (0, 0, 0)");
    let found = reports_on("lambda i, j: [j]", "7, 100000", "100000");
    assert_eq!(text(report_of(&found, "injective")), "(0, 0) and (1, 0) both land on 0");
}

#[test]
fn a_million_points_are_enumerated_in_milliseconds() {
    let flat = "lambda i, j: [((i // 8 * 8 + j // 128) * 8 + i % 8) * 128 + j % 128]";
    let tiled = Mapped::new(flat, "1000, 1000", "1024000");
    let start = Instant::now();
    let found = reports(tiled.claim().padded(&[0]));
    proved(&found, &["enumeration", "z3"]);
    // Thirty times what it takes on a quiet machine.
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

const SWIZZLE: &str = "lambda i, j: [i, j ^ (i % 8)]";

#[test]
fn a_swizzle_on_a_number_of_chunks_that_is_no_power_of_two_is_refuted() {
    let found = reports_on(SWIZZLE, "40000, 60", "40000, 60");
    assert_eq!(text(report_of(&found, "bounds")), "(4, 56) lands on (4, 60), outside the physical shape (40000, 60)");
}

/// The swizzle on 2^20 x 2^20, and its inverse, which is the same.
#[test]
fn a_swizzle_of_any_size_is_decided_over_bits() {
    let large = Mapped::new(SWIZZLE, "1048576, 1048576", "1048576, 1048576");
    let inverse = large.inverse("lambda p, q: [p, q ^ (p % 8)]", "lambda p, q: False");
    let meaning = "lambda k, l: [k, l // 8 * 8 + (l ^ k) % 8]";
    let meaning = Mapped::new(meaning, "1048576, 1048576", "1048576, 1048576").map;
    let found = reports(large.claim().inverse(&inverse).meaning(&meaning));
    proved(&found, &["gf2", "z3"]);
    assert_eq!(found.len(), 7);
    assert!(report_of(&found, "injective").method.to_string().starts_with("gf2"));
}

#[test]
fn broken_maps_over_bits_are_refuted_with_the_first_pair() {
    // Bits 3 of both rows are mixed, and then one is lost.
    let lossy = "lambda i, j: [i % 524288, j ^ (i // 524288 * 8)]";
    let found = reports_on(lossy, "1048576, 1048576", "524288, 1048576");
    assert_eq!(text(report_of(&found, "injective")), "(0, 8) and (524288, 0) both land on (0, 8)");
    assert!(report_of(&found, "injective").method.to_string().starts_with("gf2"));
    let found = reports_on(SWIZZLE, "1048576, 1048576", "1048576, 1048573");
    assert_eq!(
        text(report_of(&found, "bounds")),
        "(0, 1048573) lands on (0, 1048573), outside the physical shape (1048576, 1048573)"
    );
    let found = reports_on(SWIZZLE, "1048576, 1048576", "1048576, 1048579");
    assert!(text(report_of(&found, "tight")).contains("largest index is 1048575"));
    let small = Mapped::new(SWIZZLE, "1048576, 1048576", "1048576, 1048576");
    let inverse = small.inverse("lambda p, q: [p, q ^ (p % 16)]", "lambda p, q: False");
    let found = reports(small.claim().inverse(&inverse));
    assert_eq!(text(report_of(&found, "inverse")), "(8, 0) lands on (8, 0), which the inverse takes to (8, 8)");
}

#[test]
fn wrong_symbolic_maps_are_refuted_at_their_smallest_shape() {
    let three = "lambda n, h, w, c: [n, c // 4, h, w, c % 3]";
    let broken = Mapped::new(three, "N, H, W, C", "N, (C + 3) // 4, H, W, 4");
    let found = reports(broken.claim().padded(&[4]));
    let expected = "(0, 0, 0, 0) and (0, 0, 0, 3) both land on (0, 0, 0, 0, 0) at N = 1, H = 1, W = 1, C = 4";
    assert_eq!(text(report_of(&found, "injective")), expected);
    // The same where only multiples of 8 are assumed.
    let found = reports(broken.claim().padded(&[4]).assuming(&[broken.condition("C % 8 == 0")]));
    assert!(text(report_of(&found, "injective")).ends_with("N = 1, H = 1, W = 1, C = 8"));
    // Blocks rounded down are enough where the extent is a multiple, and only there.
    let floor = Mapped::new("lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "N, H, W, C", "N, C // 4, H, W, 4");
    let found = reports(floor.claim().padded(&[4]));
    assert!(text(report_of(&found, "bounds")).ends_with("N = 1, H = 1, W = 1, C = 1"));
    let found = reports(floor.claim().padded(&[4]).assuming(&[floor.condition("C % 8 == 0")]));
    assert!(report_of(&found, "bounds").verdict.is_proved(), "{}", report_of(&found, "bounds").verdict);
}

#[test]
fn a_fault_at_a_large_extent_is_found_by_the_constants_of_the_map() {
    // The second tile of a row overlaps the first.
    let found = reports_on("lambda i, j: [i, j // 128 * 127 + j % 128]", "R, C", "R, C");
    assert_eq!(text(report_of(&found, "injective")), "(0, 127) and (0, 128) both land on (0, 127) at R = 1, C = 129");
}

#[test]
fn symbolic_shapes_are_tight_by_a_witness() {
    let found = reports_on("lambda i, j: [(R - 1 - i) // 4, j]", "R, C", "(R + 3) // 4, C");
    assert!(report_of(&found, "tight").verdict.is_proved());
    // Four lanes, but only where there are four channels.
    let lanes = Mapped::new("lambda i, j: [i, j % 4]", "R, C", "R, 4");
    let found = reports(lanes.claim());
    assert!(text(report_of(&found, "tight")).contains("R = 1, C = 1"));
    let found = reports(lanes.claim().assuming(&[lanes.condition("C >= 4")]));
    assert!(report_of(&found, "tight").verdict.is_proved());
    // The last lane is that of the last index, or of the end of the first block.
    let found = reports_on("lambda i, j: [i, j % 4]", "R, C", "R, T.min(C, 4)");
    assert!(report_of(&found, "tight").verdict.is_proved(), "{}", report_of(&found, "tight").verdict);
}

#[test]
fn a_judge_of_many_claims_checks_a_certificate_before_it_tries_points() {
    let digit = |digit| DigitSum { places: vec![DigitPlace { axis: 0, digit, weight: int(1) }], offset: int(0) };
    let source = |digit, output| DigitSource { axis: 0, digit, output, place: 0 };
    let certificate = |radix| DigitCertificate {
        map: DigitView { radices: vec![vec![int(radix)]], outputs: vec![digit(1), digit(0)] },
        sources: vec![source(0, 1), source(1, 0)],
        inverse: None,
        witnesses: vec![Some(vec![int(24)]), Some(vec![int(3)])],
    };
    let split = Mapped::new("lambda i: [i // 4, i % 4]", "99", "25, 4");
    proved(&judge().check_map(split.claim().digits(&certificate(4))), &["enumeration"]);
    let many = judge().for_many_claims();
    proved(&many.check_map(split.claim().digits(&certificate(4))), &["digits"]);
    // A certificate of another map decides nothing, and that of a wrong map does not prove it.
    proved(&many.check_map(split.claim().digits(&certificate(5))), &["enumeration"]);
    for (wrong, shape, obligation) in [
        ("lambda i: [i // 4, i % 3]", "25, 4", "injective"),
        ("lambda i: [i // 4, i % 4]", "24, 4", "bounds"),
        ("lambda i: [i // 4, i % 4]", "26, 4", "tight"),
    ] {
        let broken = Mapped::new(wrong, "99", shape);
        let found = many.check_map(broken.claim().digits(&certificate(4)));
        assert!(matches!(report_of(&found, obligation).verdict, Verdict::Refuted(_)), "{obligation} of {wrong}");
    }
}

/// Chunks of 8 columns change places by the row, for any number of rows.
#[test]
fn an_exclusive_or_of_chunks_is_inverted_for_any_number_of_rows() {
    let right = "lambda p, q: [p, (q // 8 ^ (p % 8)) * 8 + q % 8]";
    let decided = |map: &str, inverse: &str| {
        let chunks = Mapped::new(map, "n, 64", "n, 64");
        let inverse = chunks.inverse(inverse, "lambda p, q: False");
        reports(chunks.claim().inverse(&inverse))
    };
    let map = "lambda i, j: [i, (j // 8 ^ (i % 8)) * 8 + j % 8]";
    proved(&decided(map, right), &["z3", "premises"]);
    for wrong in [
        "lambda p, q: [p, (q // 8 ^ (p % 4)) * 8 + q % 8]",
        "lambda p, q: [p, (q // 8 ^ (p % 16)) * 8 + q % 8]",
        "lambda p, q: [p, (q // 8 ^ (p % 8)) * 8 + q % 4]",
    ] {
        assert!(!report_of(&decided(map, wrong), "inverse").verdict.is_proved(), "{wrong}");
    }
    for wrong in [
        "lambda i, j: [i, (j // 8 & (i % 8)) * 8 + j % 8]",
        "lambda i, j: [i, (j // 8 ^ (i % 8)) * 8 + j % 4]",
        "lambda i, j: [i // 2, (j // 8 ^ (i % 8)) * 8 + j % 8]",
    ] {
        assert!(!report_of(&decided(wrong, right), "injective").verdict.is_proved(), "{wrong}");
    }
}

#[test]
fn huge_extents_are_decided_quickly() {
    let start = Instant::now();
    let [high, low] = [1_i64 << 62, 1 << 60];
    reports_on("lambda i, j: [i, j]", &format!("{high}, {low}"), &format!("{high}, {low}"));
    reports_on("lambda i: [i // 3, i % 3]", &format!("{high}"), &format!("{}, T.int64(3)", high / 2));
    let axes: Vec<Var> = (0..200).map(|axis| Var::index(format!("x{axis}"))).collect();
    let indices: Vec<Expr> = axes.iter().map(Expr::from).collect();
    let wide = IndexMap::new(axes.clone(), vec![int(7); 200], indices.clone(), Vec::new()).unwrap();
    let found = reports(MapClaim::new(&wide, &vec![int(7); 200]));
    proved(&found, &["enumeration"]);
    let sum = indices.into_iter().reduce(|sum, axis| sum + axis).unwrap();
    let folded = IndexMap::new(axes, vec![int(2); 200], vec![sum], Vec::new()).unwrap();
    let found = reports(MapClaim::new(&folded, &[int(201)]));
    assert!(matches!(report_of(&found, "injective").verdict, Verdict::Refuted(_)));
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
}

#[test]
fn an_operation_without_a_value_is_reported_and_nothing_is_proved() {
    let found = reports_on("lambda i, j: [i // j, j]", "3, 5", "3, 5");
    assert!(text(report_of(&found, "bounds")).starts_with("(0, 0) has no image"));
    assert!(!report_of(&found, "injective").verdict.is_proved());
    let found = reports_on("lambda i: [-i]", "3", "3");
    assert_eq!(text(report_of(&found, "bounds")), "1 lands on -1, outside the physical shape 3");
}

#[test]
fn a_judge_that_records_asks_z3_too() {
    let layout = Mapped::new("lambda i, j: [i, j // 4, j % 4]", "7, 9", "7, 3, 4");
    let found = judge().recording().check_map(layout.claim());
    assert!(found.iter().all(|report| report.verdict.is_proved()));
    let confirmed = found.iter().filter(|report| report.proof.is_confirmed()).count();
    assert!(confirmed >= 3, "{confirmed} of {} obligations were confirmed by Z3", found.len());
}

#[test]
fn a_guarded_division_by_zero_is_not_a_fault() {
    let found = reports_on("lambda i, j: [T.if_then_else(j > 0, i // j, 0), i, j]", "5, 7", "5, 5, 7");
    assert!(found.iter().all(|report| report.verdict.is_proved()));
    let found = reports_on("lambda i, j: [i // j, i, j]", "5, 7", "5, 5, 7");
    assert!(text(report_of(&found, "overflow")).contains("has no value at (0, 0)"));
}
