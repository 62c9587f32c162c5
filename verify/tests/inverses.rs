//! Inverses and padding of index maps, right and wrong: the right ones are proved for every shape, the wrong ones refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::{int, judge, map, vars};
use tilewright_ir::{BinaryOp, Expr, IndexMap, InverseClaim};
use tilewright_verify::{MapClaim, Report, Verdict};

fn inverse(inputs: &[Expr], outputs: Vec<Expr>, padding: Expr) -> InverseClaim {
    InverseClaim { vars: inputs.iter().flat_map(Expr::vars).collect(), outputs, padding }
}

fn check(map: &IndexMap, shape: &[Expr], inverse: &InverseClaim) -> Vec<Report> {
    let padded: Vec<usize> = (0..shape.len()).collect();
    let claim = MapClaim::new(map, shape).padded(&padded).inverse(inverse);
    let reports = judge().check_map(claim);
    for report in &reports {
        eprintln!("{:9} {:8.2} ms  {} [{}]", report.obligation, report.ms, report.verdict, report.method);
    }
    reports
}

fn proved(map: &IndexMap, shape: &[Expr], inverse: &InverseClaim) {
    for report in check(map, shape, inverse) {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
}

fn refuted(map: &IndexMap, shape: &[Expr], inverse: &InverseClaim, obligation: &str) {
    let reports = check(map, shape, inverse);
    let report = reports.iter().find(|report| report.obligation.id() == obligation).unwrap();
    assert!(matches!(report.verdict, Verdict::Refuted(_)), "{obligation} of {}: {}", report.subject, report.verdict);
}

fn ceil(n: &Expr, b: i64) -> Expr {
    (n.clone() + int(b - 1)).floor_div(int(b))
}

fn div(a: &Expr, b: &Expr) -> Expr {
    a.clone().floor_div(b.clone())
}

fn rem(a: &Expr, b: &Expr) -> Expr {
    a.clone().floor_mod(b.clone())
}

fn at_least(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::Ge, a, b)
}

/// NHWC to flat NCHW4c, all extents symbolic; the inverse divides step by step.
#[test]
fn flat_nchw4c_has_its_inverse_for_every_shape() {
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let [en, eh, ew, ec] = vars(["N", "H", "W", "C"]);
    let blocks = ceil(&ec, 4);
    let flat = (((n.clone() * blocks.clone() + div(&c, &int(4))) * eh.clone() + h.clone()) * ew.clone() + w.clone())
        * int(4)
        + rem(&c, &int(4));
    let domain = vec![en.clone(), eh.clone(), ew.clone(), ec.clone()];
    let layout = map(&[n, h, w, c], domain, vec![flat]);
    let size = en * blocks.clone() * eh.clone() * ew.clone() * int(4);
    let [p] = vars(["p"]);
    let (lane, rest) = (rem(&p, &int(4)), div(&p, &int(4)));
    let (column, rest) = (rem(&rest, &ew), div(&rest, &ew));
    let (row, rest) = (rem(&rest, &eh), div(&rest, &eh));
    let (block, image) = (rem(&rest, &blocks), div(&rest, &blocks));
    let channel = block.clone() * int(4) + lane.clone();
    let padding = at_least(channel.clone(), ec.clone());
    let good = inverse(
        std::slice::from_ref(&p),
        vec![image.clone(), row.clone(), column.clone(), channel.clone()],
        padding.clone(),
    );
    proved(&layout, std::slice::from_ref(&size), &good);
    let swapped =
        inverse(std::slice::from_ref(&p), vec![image.clone(), column.clone(), row.clone(), channel.clone()], padding);
    refuted(&layout, std::slice::from_ref(&size), &swapped, "inverse");
    let no_padding = inverse(&[p], vec![image, row, column, channel], Expr::bool(false));
    refuted(&layout, std::slice::from_ref(&size), &no_padding, "padding");
    refuted(&layout, std::slice::from_ref(&size), &no_padding, "inverse");
}

/// T(8,128)(2,1) on symbolic rows and columns, flat.
#[test]
fn tpu_tiles_have_their_inverse_for_every_shape() {
    let [r, c] = vars(["r", "c"]);
    let [er, ec] = vars(["R", "C"]);
    let columns = ceil(&ec, 128);
    let tile = div(&r, &int(8)) * columns.clone() + div(&c, &int(128));
    let inner = (div(&rem(&r, &int(8)), &int(2)) * int(128) + rem(&c, &int(128))) * int(2) + rem(&r, &int(2));
    let layout = map(&[r, c], vec![er.clone(), ec.clone()], vec![tile * int(1024) + inner]);
    let size = ceil(&er, 8) * columns.clone() * int(1024);
    let [p] = vars(["p"]);
    let (tile, slot) = (div(&p, &int(1024)), rem(&p, &int(1024)));
    let row = div(&tile, &columns) * int(8) + div(&slot, &int(256)) * int(2) + rem(&slot, &int(2));
    let column = rem(&tile, &columns) * int(128) + rem(&div(&slot, &int(2)), &int(128));
    let outside =
        |row: Expr, column: Expr| Expr::binary(BinaryOp::Or, at_least(row, er.clone()), at_least(column, ec.clone()));
    let good =
        inverse(std::slice::from_ref(&p), vec![row.clone(), column.clone()], outside(row.clone(), column.clone()));
    proved(&layout, std::slice::from_ref(&size), &good);
    let wrong = div(&tile, &columns) * int(8) + div(&slot, &int(128)) * int(2) + rem(&slot, &int(2));
    let wrong = inverse(&[p], vec![wrong.clone(), column.clone()], outside(wrong, column));
    refuted(&layout, std::slice::from_ref(&size), &wrong, "inverse");
}

/// Two levels of symbolic factors: `i` as `a`-blocks of `b`-blocks.
#[test]
fn a_split_by_symbols_has_its_inverse() {
    let [i] = vars(["i"]);
    let [n, a, b] = vars(["n", "a", "b"]);
    let (outer, middle, inner) = (div(&i, &(a.clone() * b.clone())), rem(&div(&i, &b), &a), rem(&i, &b));
    let size = a.clone() * b.clone();
    let outer_extent = (n.clone() + size.clone() - int(1)).floor_div(size);
    let layout = map(&[i], vec![n.clone()], vec![outer, middle, inner]);
    let [p, q, r] = vars(["p", "q", "r"]);
    let back = (p.clone() * a.clone() + q.clone()) * b.clone() + r.clone();
    let good = inverse(&[p.clone(), q.clone(), r.clone()], vec![back.clone()], at_least(back, n.clone()));
    proved(&layout, &[outer_extent.clone(), a.clone(), b.clone()], &good);
    let back = (p.clone() * b.clone() + q.clone()) * a.clone() + r.clone();
    let wrong = inverse(&[p, q, r], vec![back.clone()], at_least(back, n));
    refuted(&layout, &[outer_extent, a, b], &wrong, "inverse");
}

/// A texture: two symbolic groups.
#[test]
fn rows_and_columns_of_a_texture_have_their_inverse() {
    let [n, h, w, c] = vars(["n", "h", "w", "c"]);
    let [en, eh, ew, ec] = vars(["N", "H", "W", "C"]);
    let blocks = ceil(&ec, 4);
    let rows = (n.clone() * blocks.clone() + div(&c, &int(4))) * eh.clone() + h.clone();
    let columns = w.clone() * int(4) + rem(&c, &int(4));
    let domain = vec![en.clone(), eh.clone(), ew.clone(), ec.clone()];
    let layout = map(&[n, h, w, c], domain, vec![rows, columns]);
    let shape = [en * blocks.clone() * eh.clone(), ew * int(4)];
    let [p, q] = vars(["p", "q"]);
    let (row, rest) = (rem(&p, &eh), div(&p, &eh));
    let channel = rem(&rest, &blocks) * int(4) + rem(&q, &int(4));
    let padding = at_least(channel.clone(), ec);
    let outputs = vec![div(&rest, &blocks), row, div(&q, &int(4)), channel];
    proved(&layout, &shape, &inverse(&[p.clone(), q.clone()], outputs.clone(), padding.clone()));
    let mut wrong = outputs;
    wrong.swap(0, 1);
    refuted(&layout, &shape, &inverse(&[p, q], wrong, padding), "inverse");
}

/// Rotations, reversals and offsets by symbols.
#[test]
fn rotations_and_reversals_of_a_symbolic_axis_have_their_inverse() {
    let [i, p] = vars(["i", "p"]);
    let [n] = vars(["n"]);
    let rotated = map(std::slice::from_ref(&i), vec![n.clone()], vec![(i.clone() + int(3)).floor_mod(n.clone())]);
    let back = (p.clone() - int(3)).floor_mod(n.clone());
    proved(&rotated, std::slice::from_ref(&n), &inverse(std::slice::from_ref(&p), vec![back], Expr::bool(false)));
    let wrong = (p.clone() - int(2)).floor_mod(n.clone());
    refuted(
        &rotated,
        std::slice::from_ref(&n),
        &inverse(std::slice::from_ref(&p), vec![wrong], Expr::bool(false)),
        "inverse",
    );
    let reversed = map(std::slice::from_ref(&i), vec![n.clone()], vec![n.clone() - int(1) - i.clone()]);
    let back = n.clone() - int(1) - p.clone();
    proved(&reversed, std::slice::from_ref(&n), &inverse(std::slice::from_ref(&p), vec![back], Expr::bool(false)));
    let wrong = n.clone() - p.clone();
    refuted(&reversed, std::slice::from_ref(&n), &inverse(&[p], vec![wrong], Expr::bool(false)), "inverse");
}
