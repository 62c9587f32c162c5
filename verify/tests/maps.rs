//! Index maps, good and broken: the good ones are proved, every broken one is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::{int, judge, map, vars};
use tilewright_ir::{Expr, IndexMap};
use tilewright_verify::{MapClaim, Report, Verdict};

fn show(reports: &[Report]) {
    for report in reports {
        eprintln!(
            "{:9} {:60} {:8.2} ms  {} [{}]",
            report.obligation, report.subject, report.ms, report.verdict, report.method
        );
    }
}

fn check(map: &IndexMap, shape: &[Expr], padded: &[usize]) -> Vec<Report> {
    let reports = judge().check_map(MapClaim::new(map, shape).padded(padded));
    show(&reports);
    reports
}

fn proved(map: &IndexMap, shape: &[Expr], padded: &[usize]) {
    for report in check(map, shape, padded) {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
}

fn refuted(map: &IndexMap, shape: &[Expr], obligation: &str) -> String {
    let reports = check(map, shape, &[]);
    let report = reports.iter().find(|report| report.obligation.id() == obligation).unwrap();
    match &report.verdict {
        Verdict::Refuted(found) => found.text.clone(),
        other => panic!("{obligation} of {}: {other}", report.subject),
    }
}

fn nchwc(n: &Expr, h: &Expr, w: &Expr, c: &Expr) -> Vec<Expr> {
    vec![n.clone(), c.clone().floor_div(int(4)), h.clone(), w.clone(), c.clone().floor_mod(int(4))]
}

fn row_major(indices: Vec<Expr>, extents: &[Expr]) -> Expr {
    let mut pairs = indices.into_iter().zip(extents);
    let first = pairs.next().unwrap().0;
    pairs.fold(first, |value, (index, extent)| value * extent.clone() + index)
}

#[test]
fn nhwc_to_nchw4c_is_proved_for_a_ragged_shape() {
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let layout =
        map(&[n.clone(), h.clone(), w.clone(), c.clone()], [2, 7, 9, 17].map(int).to_vec(), nchwc(&n, &h, &w, &c));
    proved(&layout, &[2, 5, 7, 9, 4].map(int), &[]);
}

#[test]
fn nhwc_to_nchw4c_is_proved_for_every_shape() {
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let extents = vars(["N", "H", "W", "C"]);
    let blocks = (extents[3].clone() + int(3)).floor_div(int(4));
    let layout = map(&[n.clone(), h.clone(), w.clone(), c.clone()], extents.to_vec(), nchwc(&n, &h, &w, &c));
    let physical = [extents[0].clone(), blocks, extents[1].clone(), extents[2].clone(), int(4)];
    proved(&layout, &physical, &[4]);
}

#[test]
fn nhwc_to_flat_nchw4c_is_proved_for_every_shape() {
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let extents = vars(["N", "H", "W", "C"]);
    let blocks = (extents[3].clone() + int(3)).floor_div(int(4));
    let physical = [extents[0].clone(), blocks, extents[1].clone(), extents[2].clone(), int(4)];
    let flat = row_major(nchwc(&n, &h, &w, &c), &physical);
    let size = physical.iter().cloned().reduce(|size, extent| size * extent).unwrap();
    let layout = map(&[n, h, w, c], extents.to_vec(), vec![flat]);
    proved(&layout, &[size], &[0]);
}

#[test]
fn flattening_is_proved_for_every_shape_and_tight() {
    let axes = vars(["i", "j", "k"]);
    let extents = vars(["I", "J", "K"]);
    let flat = row_major(axes.to_vec(), &extents);
    let size = extents.iter().cloned().reduce(|size, extent| size * extent).unwrap();
    proved(&map(&axes, extents.to_vec(), vec![flat]), &[size], &[]);
}

#[test]
fn broken_maps_are_refuted_with_concrete_indices() {
    let [i, j] = vars(["i", "j"]);
    let pair = [i.clone(), j.clone()];
    let narrow = map(&pair, [3, 5].map(int).to_vec(), vec![i.clone() * int(2) + j.clone()]);
    assert_eq!(refuted(&narrow, &[int(9)], "injective"), "(0, 2) and (1, 0) both land on 2");
    let shifted = map(&pair, [3, 5].map(int).to_vec(), vec![i.clone(), j.clone() + int(1)]);
    assert_eq!(
        refuted(&shifted, &[int(3), int(5)], "bounds"),
        "(0, 4) lands on (0, 5), outside the physical shape (3, 5)"
    );
    let loose = map(&pair, [3, 5].map(int).to_vec(), vec![i.clone(), j.clone()]);
    assert!(refuted(&loose, &[int(3), int(6)], "tight").contains("largest index is 4"));
    let large = map(&pair, vec![int(100_000), int(100_000)], vec![i.clone() * int(100_000) + j.clone()]);
    assert!(refuted(&large, &[Expr::int(10_000_000_000)], "overflow").contains("does not fit int32"));
}

#[test]
fn broken_symbolic_maps_are_refuted() {
    let axes = vars(["i", "j", "k"]);
    let extents = vars(["I", "J", "K"]);
    let size = extents.iter().cloned().reduce(|size, extent| size * extent).unwrap();
    // The extents of two axes are swapped in the Horner chain.
    let swapped = [extents[0].clone(), extents[2].clone(), extents[1].clone()];
    let broken = map(&axes, extents.to_vec(), vec![row_major(axes.to_vec(), &swapped)]);
    refuted(&broken, std::slice::from_ref(&size), "injective");
    // A remainder by 3 where blocks have 4.
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let four = vars(["N", "H", "W", "C"]);
    let mut outputs = nchwc(&n, &h, &w, &c);
    outputs[4] = c.clone().floor_mod(int(3));
    let broken = map(&[n.clone(), h.clone(), w.clone(), c.clone()], four.to_vec(), outputs);
    let blocks = (four[3].clone() + int(3)).floor_div(int(4));
    let physical = [four[0].clone(), blocks, four[1].clone(), four[2].clone(), int(4)];
    refuted(&broken, &physical, "injective");
    // The number of blocks rounded down.
    let layout = map(&[n.clone(), h.clone(), w.clone(), c.clone()], four.to_vec(), nchwc(&n, &h, &w, &c));
    let floor = [four[0].clone(), four[3].clone().floor_div(int(4)), four[1].clone(), four[2].clone(), int(4)];
    refuted(&layout, &floor, "bounds");
}

#[test]
fn an_empty_domain_is_vacuous() {
    let [i, j] = vars(["i", "j"]);
    let empty = map(&[i.clone(), j.clone()], [3, 0].map(int).to_vec(), vec![i, j]);
    let reports = check(&empty, &[int(3), int(0)], &[]);
    assert!(matches!(reports[0].verdict, Verdict::Vacuous(_)));
    assert!(matches!(reports[1].verdict, Verdict::Vacuous(_)));
}
