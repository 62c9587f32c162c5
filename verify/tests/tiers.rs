//! The tier that decides each kind of map, the size of counterexamples, and the time that huge extents take.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::time::{Duration, Instant};

use common::{int, judge, map, vars};
use tilewright_ir::{BinaryOp, Expr, InverseClaim, ScalarType, SharedExpr, UnaryOp, Var};
use tilewright_verify::{MapClaim, Report, Verdict};

fn xor(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::BitXor, a, b)
}

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

fn proved(reports: &[Report], word: &str) {
    for report in reports {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
        let quick = report.method.to_string().starts_with("intervals") || report.method.to_string().starts_with(word);
        assert!(quick, "{} by {}", report.obligation, report.method);
    }
}

fn text(report: &Report) -> String {
    match &report.verdict {
        Verdict::Refuted(found) => found.to_string(),
        other => panic!("{} of {}: {other} [{}]", report.obligation, report.subject, report.method),
    }
}

#[test]
fn outputs_without_a_common_index_are_decided_separately() {
    let [i, j, k] = vars(["i", "j", "k"]);
    let outputs =
        vec![(i.clone() + int(3)).floor_mod(int(1000)), xor(j.clone(), int(5)), xor(k.clone(), int(1)) + int(1)];
    let domain = [1000, 4096, 5000].map(int).to_vec();
    let large = map(&[i, j, k], domain, outputs);
    proved(&reports(MapClaim::new(&large, &[1000, 4096, 5001].map(int))), "enumeration");
}

#[test]
fn the_first_collision_of_separate_outputs_is_the_first_of_the_map() {
    let [i, j, k] = vars(["i", "j", "k"]);
    let outputs = vec![i.clone().floor_div(int(3)), j.clone().floor_mod(int(70)), k.clone()];
    let many = map(&[i, j, k], [9, 90, 80_000].map(int).to_vec(), outputs);
    let reports = reports(MapClaim::new(&many, &[3, 70, 80_000].map(int)));
    assert_eq!(text(report_of(&reports, "injective")), "(0, 0, 0) and (0, 70, 0) both land on (0, 0, 0)");
    let [i, j] = vars(["i", "j"]);
    let unused = map(&[i, j.clone()], [7, 100_000].map(int).to_vec(), vec![j]);
    let reports = self::reports(MapClaim::new(&unused, &[int(100_000)]));
    assert_eq!(text(report_of(&reports, "injective")), "(0, 0) and (1, 0) both land on 0");
}

#[test]
fn a_million_points_are_enumerated_in_milliseconds() {
    let [i, j] = vars(["i", "j"]);
    let tile = |x: Expr, b: i64| (x.clone().floor_div(int(b)), x.floor_mod(int(b)));
    let ((rows, row), (columns, column)) = (tile(i.clone(), 8), tile(j.clone(), 128));
    let flat = ((rows * int(8) + columns) * int(8) + row) * int(128) + column;
    let tiled = map(&[i, j], [1000, 1000].map(int).to_vec(), vec![flat]);
    let start = Instant::now();
    let found = reports(MapClaim::new(&tiled, &[int(125 * 8 * 1024)]).padded(&[0]));
    proved(&found, "enumeration");
    // Thirty times what it takes on a quiet machine.
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn a_swizzle_on_a_number_of_chunks_that_is_no_power_of_two_is_refuted() {
    let [i, j] = vars(["i", "j"]);
    let outputs = vec![i.clone(), xor(j.clone(), i.clone().floor_mod(int(8)))];
    let broken = map(&[i, j], [40_000, 60].map(int).to_vec(), outputs);
    let reports = reports(MapClaim::new(&broken, &[40_000, 60].map(int)));
    assert_eq!(text(report_of(&reports, "bounds")), "(4, 56) lands on (4, 60), outside the physical shape (40000, 60)");
}

/// `[i, j ^ (i % 8)]` on 2^20 x 2^20, and its inverse, which is the same.
#[test]
fn a_swizzle_of_any_size_is_decided_over_bits() {
    let [i, j] = vars(["i", "j"]);
    let (p, q) = (Var::index("p"), Var::index("q"));
    let swizzled = |i: Expr, j: Expr| vec![i.clone(), xor(j, i.floor_mod(int(8)))];
    let extents = [1 << 20, 1 << 20].map(int);
    let large = map(&[i.clone(), j.clone()], extents.to_vec(), swizzled(i.clone(), j.clone()));
    let back = swizzled(Expr::from(&p), Expr::from(&q));
    let inverse = InverseClaim { vars: vec![p, q], outputs: back, padding: Expr::bool(false) };
    let [k, l] = vars(["k", "l"]);
    let low = xor(l.clone(), k.clone()).floor_mod(int(8));
    let meaning = map(&[k.clone(), l.clone()], extents.to_vec(), vec![k, l.floor_div(int(8)) * int(8) + low]);
    let claim = MapClaim::new(&large, &extents).inverse(&inverse).meaning(&meaning);
    let found = reports(claim);
    proved(&found, "gf2");
    assert_eq!(found.len(), 7);
    assert!(report_of(&found, "injective").method.to_string().starts_with("gf2"));
}

#[test]
fn broken_maps_over_bits_are_refuted_with_the_first_pair() {
    let [i, j] = vars(["i", "j"]);
    // Bits 3 of both rows are mixed, and then one is lost.
    let lossy = vec![i.clone().floor_mod(int(1 << 19)), xor(j.clone(), i.clone().floor_div(int(1 << 19)) * int(8))];
    let large = map(&[i.clone(), j.clone()], [1 << 20, 1 << 20].map(int).to_vec(), lossy);
    let found = reports(MapClaim::new(&large, &[1 << 19, 1 << 20].map(int)));
    assert_eq!(text(report_of(&found, "injective")), "(0, 8) and (524288, 0) both land on (0, 8)");
    assert!(report_of(&found, "injective").method.to_string().starts_with("gf2"));
    let outputs = vec![i.clone(), xor(j.clone(), i.clone().floor_mod(int(8)))];
    let small = map(&[i.clone(), j.clone()], [1 << 20, 1 << 20].map(int).to_vec(), outputs);
    let found = reports(MapClaim::new(&small, &[1 << 20, (1 << 20) - 3].map(int)));
    assert_eq!(
        text(report_of(&found, "bounds")),
        "(0, 1048573) lands on (0, 1048573), outside the physical shape (1048576, 1048573)"
    );
    let found = reports(MapClaim::new(&small, &[1 << 20, (1 << 20) + 3].map(int)));
    assert!(text(report_of(&found, "tight")).contains("largest index is 1048575"));
    let (p, q) = (Var::index("p"), Var::index("q"));
    let wrong = vec![Expr::from(&p), xor(Expr::from(&q), Expr::from(&p).floor_mod(int(16)))];
    let inverse = InverseClaim { vars: vec![p, q], outputs: wrong, padding: Expr::bool(false) };
    let extents = [1 << 20, 1 << 20].map(int);
    let found = reports(MapClaim::new(&small, &extents).inverse(&inverse));
    assert_eq!(text(report_of(&found, "inverse")), "(8, 0) lands on (8, 0), which the inverse takes to (8, 8)");
}

#[test]
fn wrong_symbolic_maps_are_refuted_at_their_smallest_shape() {
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let extents = vars(["N", "H", "W", "C"]);
    let lanes =
        |by: i64| vec![n.clone(), c.clone().floor_div(int(4)), h.clone(), w.clone(), c.clone().floor_mod(int(by))];
    let blocks = (extents[3].clone() + int(3)).floor_div(int(4));
    let physical = [extents[0].clone(), blocks, extents[1].clone(), extents[2].clone(), int(4)];
    let indices = [n.clone(), h.clone(), w.clone(), c.clone()];
    let broken = map(&indices, extents.to_vec(), lanes(3));
    let found = reports(MapClaim::new(&broken, &physical).padded(&[4]));
    let expected = "(0, 0, 0, 0) and (0, 0, 0, 3) both land on (0, 0, 0, 0, 0) at N = 1, H = 1, W = 1, C = 4";
    assert_eq!(text(report_of(&found, "injective")), expected);
    // The same where only multiples of 8 are assumed.
    let divisible = Expr::binary(BinaryOp::Eq, extents[3].clone().floor_mod(int(8)), int(0));
    let found = reports(MapClaim::new(&broken, &physical).padded(&[4]).assuming(std::slice::from_ref(&divisible)));
    assert!(text(report_of(&found, "injective")).ends_with("N = 1, H = 1, W = 1, C = 8"));
    // Blocks rounded down are enough where the extent is a multiple, and only there.
    let floor =
        [extents[0].clone(), extents[3].clone().floor_div(int(4)), extents[1].clone(), extents[2].clone(), int(4)];
    let right = map(&indices, extents.to_vec(), lanes(4));
    let found = reports(MapClaim::new(&right, &floor).padded(&[4]));
    assert!(text(report_of(&found, "bounds")).ends_with("N = 1, H = 1, W = 1, C = 1"));
    let found = reports(MapClaim::new(&right, &floor).padded(&[4]).assuming(&[divisible]));
    assert!(report_of(&found, "bounds").verdict.is_proved(), "{}", report_of(&found, "bounds").verdict);
}

#[test]
fn a_fault_at_a_large_extent_is_found_by_the_constants_of_the_map() {
    let [i, j] = vars(["i", "j"]);
    let extents = vars(["R", "C"]);
    // The second tile of a row overlaps the first.
    let flat = j.clone().floor_div(int(128)) * int(127) + j.clone().floor_mod(int(128));
    let broken = map(&[i.clone(), j], extents.to_vec(), vec![i, flat]);
    let found = reports(MapClaim::new(&broken, &[extents[0].clone(), extents[1].clone()]));
    assert_eq!(text(report_of(&found, "injective")), "(0, 127) and (0, 128) both land on (0, 127) at R = 1, C = 129");
}

#[test]
fn symbolic_shapes_are_tight_by_a_witness() {
    let [i, j] = vars(["i", "j"]);
    let extents = vars(["R", "C"]);
    let ceil = |x: &Expr, b: i64| (x.clone() + int(b - 1)).floor_div(int(b));
    let reversed = map(
        &[i.clone(), j.clone()],
        extents.to_vec(),
        vec![(extents[0].clone() - int(1) - i.clone()).floor_div(int(4)), j.clone()],
    );
    let found = reports(MapClaim::new(&reversed, &[ceil(&extents[0], 4), extents[1].clone()]));
    assert!(report_of(&found, "tight").verdict.is_proved());
    // Four lanes, but only where there are four channels.
    let lanes = map(&[i.clone(), j.clone()], extents.to_vec(), vec![i.clone(), j.clone().floor_mod(int(4))]);
    let found = reports(MapClaim::new(&lanes, &[extents[0].clone(), int(4)]));
    assert!(text(report_of(&found, "tight")).contains("R = 1, C = 1"));
    let four = Expr::binary(BinaryOp::Ge, extents[1].clone(), int(4));
    let found = reports(MapClaim::new(&lanes, &[extents[0].clone(), int(4)]).assuming(&[four]));
    assert!(report_of(&found, "tight").verdict.is_proved());
    // The last lane is that of the last index, or of the end of the first block.
    let least = Expr::binary(BinaryOp::Min, extents[1].clone(), int(4));
    let found = reports(MapClaim::new(&lanes, &[extents[0].clone(), least]));
    assert!(report_of(&found, "tight").verdict.is_proved(), "{}", report_of(&found, "tight").verdict);
}

#[test]
fn huge_extents_are_decided_quickly() {
    let start = Instant::now();
    let huge = |shift: u32| Expr::Int { value: 1i128 << shift, ty: ScalarType::Int64 };
    let big = |name: &str| Expr::from(Var::new(name, ScalarType::Int64));
    let [i, j] = ["i", "j"].map(big);
    let identity = map(&[i.clone(), j.clone()], vec![huge(62), huge(60)], vec![i.clone(), j.clone()]);
    reports(MapClaim::new(&identity, &[huge(62), huge(60)]));
    let split = map(
        std::slice::from_ref(&i),
        vec![huge(62)],
        vec![
            i.clone().floor_div(Expr::Int { value: 3, ty: ScalarType::Int64 }),
            i.clone().floor_mod(Expr::Int { value: 3, ty: ScalarType::Int64 }),
        ],
    );
    reports(MapClaim::new(&split, &[huge(61), Expr::Int { value: 3, ty: ScalarType::Int64 }]));
    let axes: Vec<Expr> = (0..200).map(|axis| Expr::from(Var::index(format!("x{axis}")))).collect();
    let wide = map(&axes, vec![int(7); 200], axes.clone());
    let found = reports(MapClaim::new(&wide, &vec![int(7); 200]));
    proved(&found, "intervals");
    let sum = axes.iter().cloned().reduce(|sum, axis| sum + axis).unwrap();
    let folded = map(&axes, vec![int(2); 200], vec![sum]);
    let found = reports(MapClaim::new(&folded, &[int(201)]));
    assert!(matches!(report_of(&found, "injective").verdict, Verdict::Refuted(_)));
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
}

#[test]
fn an_operation_without_a_value_is_reported_and_nothing_is_proved() {
    let [i, j] = vars(["i", "j"]);
    let by_zero = map(&[i.clone(), j.clone()], [3, 5].map(int).to_vec(), vec![i.clone().floor_div(j.clone()), j]);
    let found = reports(MapClaim::new(&by_zero, &[3, 5].map(int)));
    assert!(text(report_of(&found, "bounds")).starts_with("(0, 0) has no image"));
    assert!(!report_of(&found, "injective").verdict.is_proved());
    let negated = Expr::unary(UnaryOp::Neg, i.clone());
    let negative = map(std::slice::from_ref(&i), vec![int(3)], vec![negated]);
    let found = reports(MapClaim::new(&negative, &[int(3)]));
    assert_eq!(text(report_of(&found, "bounds")), "1 lands on -1, outside the physical shape 3");
}

#[test]
fn a_judge_that_records_asks_z3_too() {
    let [i, j] = vars(["i", "j"]);
    let split = vec![i.clone(), j.clone().floor_div(int(4)), j.clone().floor_mod(int(4))];
    let layout = map(&[i, j], [7, 9].map(int).to_vec(), split);
    let recording = judge().recording();
    let found = recording.check_map(MapClaim::new(&layout, &[7, 3, 4].map(int)));
    assert!(found.iter().all(|report| report.verdict.is_proved()));
    let confirmed = found.iter().filter(|report| report.proof.is_confirmed()).count();
    assert!(confirmed >= 3, "{confirmed} of {} obligations were confirmed by Z3", found.len());
}

#[test]
fn a_guarded_division_by_zero_is_not_a_fault() {
    let [i, j] = vars(["i", "j"]);
    let positive = Expr::binary(BinaryOp::Gt, j.clone(), int(0));
    let guarded = |inside: Expr| {
        Expr::IfThenElse(SharedExpr::new(positive.clone()), SharedExpr::new(inside), SharedExpr::new(int(0)))
    };
    let outputs = vec![guarded(i.clone().floor_div(j.clone())), i.clone(), j.clone()];
    let cases = map(&[i.clone(), j.clone()], [5, 7].map(int).to_vec(), outputs);
    let found = reports(MapClaim::new(&cases, &[5, 5, 7].map(int)));
    assert!(found.iter().all(|report| report.verdict.is_proved()));
    let outputs = vec![i.clone().floor_div(j.clone()), i.clone(), j.clone()];
    let cases = map(&[i, j], [5, 7].map(int).to_vec(), outputs);
    let found = reports(MapClaim::new(&cases, &[5, 5, 7].map(int)));
    assert!(text(report_of(&found, "overflow")).contains("has no value at (0, 0)"));
}
