//! A pass and its broken twins: the right one is proved, each broken one is refuted, none is proved.
//!
//! The pass here is written for the test, from the language's own parts only, so that the judge is tested without any of
//! the passes that it judges.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::sync::Arc;

use std::collections::HashMap;
use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, BufferChange, BufferClaim, Evidence, Expr, IndexMap, PrimFunc, ScalarType, Stmt,
    StmtKind, Var,
};
use tilewright_verify::{Config, Judge, Report, Verdict};

/// Ragged and pairwise distinct: 2x7x9x17.
const SHAPE: [i64; 4] = [2, 7, 9, 17];

fn exprs(values: &[i64]) -> Vec<Expr> {
    values.iter().copied().map(Expr::int).collect()
}

fn float(value: f64) -> Expr {
    Expr::float_of(value, ScalarType::Float32)
}

/// `B[n, h, w, c] = A[n, h, w, c] * 2 - A[n, h, w, 0]` over all indices but the last column, with a temporary `T`.
struct Program {
    func: PrimFunc,
    a: Buffer,
    b: Buffer,
}

fn program() -> Program {
    let func = common::program(
        r#"def main(A: T.Buffer((2, 7, 9, 17), "float32"), B: T.Buffer((2, 7, 9, 17), "float32")):
    for n, h, w, c in T.grid(2, 7, 9, 17):
        if w < 8:
            B[n, h, w, c] = A[n, h, w, c] * T.float32(2) - A[n, h, w, 0]
"#,
    );
    let (a, b) = (common::buffer(&func, "A"), common::buffer(&func, "B"));
    Program { func, a, b }
}

fn lambda(domain: &[i64], outputs: impl FnOnce(&[Expr]) -> Vec<Expr>) -> IndexMap {
    let vars: Vec<Var> = (0..domain.len()).map(|axis| Var::index(["n", "h", "w", "c"][axis])).collect();
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    IndexMap::new(vars, exprs(domain), outputs(&index), Vec::new()).unwrap()
}

fn nchw4c() -> IndexMap {
    lambda(&SHAPE, |i| {
        let four = || Expr::int(4);
        vec![i[0].clone(), i[3].clone().floor_div(four()), i[1].clone(), i[2].clone(), i[3].clone().floor_mod(four())]
    })
}

/// What is done to the moved index of an access: the buffer, the index, the number of the access from 1.
type Twist = dyn Fn(&Buffer, Vec<Expr>, usize) -> Vec<Expr>;

/// How an index of a shape is flattened.
type Flat = dyn Fn(&[Expr], &[i64]) -> Vec<Expr>;

/// Moves the accesses of some buffers by maps; each access may be changed further.
struct Move<'a> {
    buffers: HashMap<Buffer, (Buffer, IndexMap)>,
    twist: &'a Twist,
    seen: usize,
}

impl Rewrite for Move<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let expr = self.expr_children(expr)?;
        let Expr::Load { buffer, indices } = &expr else { return Ok(expr) };
        Ok(match self.moved(buffer, indices) {
            Some((buffer, indices)) => Expr::load(&buffer, indices),
            None => expr,
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let stmt = self.stmt_children(stmt)?;
        let StmtKind::Store { buffer, indices, value } = &stmt.kind else { return Ok(stmt) };
        Ok(match self.moved(buffer, indices) {
            Some((buffer, indices)) => Stmt::store(&buffer, indices, value.clone()),
            None => stmt,
        })
    }
}

impl Move<'_> {
    fn moved(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let (after, map) = self.buffers.get(buffer)?.clone();
        self.seen += 1;
        let moved = (self.twist)(&after, map.apply(indices), self.seen);
        Some((after, moved))
    }
}

/// A program after the layout pass, and its claims.
struct Moved {
    before: PrimFunc,
    after: PrimFunc,
    evidence: Evidence,
}

fn same(_: &Buffer, indices: Vec<Expr>, _: usize) -> Vec<Expr> {
    indices
}

/// Puts `A` and `B` into NCHW4c. The physical shape and each access can be twisted.
fn relayout(shape: &[i64], twist: &Twist) -> Moved {
    relayout_by(&nchw4c(), shape, twist)
}

fn relayout_by(map: &IndexMap, shape: &[i64], twist: &Twist) -> Moved {
    let Program { func, a, b } = program();
    let moved = |buffer: &Buffer| {
        buffer.with(|info| {
            info.shape = exprs(shape);
            info.axis_separators = AxisSeparators::none(shape.len());
        })
    };
    let pairs: Vec<_> = [a, b].into_iter().map(|buffer| (moved(&buffer), buffer)).collect();
    let buffers = pairs.iter().map(|(after, before)| (before.clone(), (after.clone(), map.clone()))).collect();
    let mut rewrite = Move { buffers, twist, seen: 0 };
    let Ok(body) = rewrite.stmt(&func.body);
    let buffer_map = func.params.iter().cloned().zip(pairs.iter().map(|(after, _)| after.clone())).collect();
    let claim = |(after, before): &(Buffer, Buffer)| BufferClaim {
        before: before.clone(),
        after: after.clone(),
        map: map.clone(),
        change: BufferChange::Layout,
        padded_axes: Vec::new(),
    };
    let evidence =
        Evidence { pass: "relayout".into(), buffers: pairs.iter().map(claim).collect(), ..Evidence::default() };
    Moved { after: PrimFunc { body, buffer_map, ..func.clone() }, before: func, evidence }
}

fn judged(moved: &Moved) -> Vec<Report> {
    let reports = Judge::new(Config::default()).unwrap().check_pass(&moved.before, &moved.after, &moved.evidence);
    for report in reports.iter().filter(|report| !report.verdict.is_proved()) {
        eprintln!("{:10} {:60} {} [{}]", report.obligation, report.subject, report.verdict, report.method);
    }
    reports
}

fn all_proved(moved: &Moved) {
    let reports = judged(moved);
    assert!(reports.len() > 7);
    assert!(reports.iter().all(|report| report.verdict.is_proved()));
}

/// Refuted for this obligation, with something concrete.
fn refuted(moved: &Moved, obligation: &str) -> String {
    let reports = judged(moved);
    let found = reports.iter().find_map(|report| match &report.verdict {
        Verdict::Refuted(found) if report.obligation.id() == obligation => Some(found.to_string()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{obligation} was not refuted"))
}

const PHYSICAL: [i64; 5] = [2, 5, 7, 9, 4];

#[test]
fn a_program_against_itself_is_proved() {
    let Program { func, .. } = program();
    all_proved(&Moved { before: func.clone(), after: func, evidence: Evidence::default() });
}

#[test]
fn the_right_layout_pass_is_proved() {
    all_proved(&relayout(&PHYSICAL, &same));
}

#[test]
fn blocks_rounded_down_are_refuted() {
    assert!(
        refuted(&relayout(&[2, 4, 7, 9, 4], &same), "bounds").contains("outside the physical shape (2, 4, 7, 9, 4)")
    );
}

#[test]
fn an_extent_too_large_is_refuted() {
    assert!(refuted(&relayout(&[2, 6, 7, 9, 4], &same), "tight").contains("axis 1 has extent 6"));
}

#[test]
fn swapped_axes_are_refuted() {
    let swap = |_: &Buffer, mut index: Vec<Expr>, _: usize| {
        index.swap(2, 3);
        index
    };
    refuted(&relayout(&PHYSICAL, &swap), "simulation");
}

#[test]
fn an_index_off_by_one_is_refuted() {
    let off = |_: &Buffer, mut index: Vec<Expr>, access: usize| {
        if access == 1 {
            index[3] = index[3].clone() + Expr::int(1);
        }
        index
    };
    refuted(&relayout(&PHYSICAL, &off), "simulation");
}

#[test]
fn truncation_for_floor_is_refuted_on_a_negative_dividend() {
    // Reversed channels, shifted: c - 17 is negative, where floor and truncation differ.
    let reversed = |op: BinaryOp| {
        lambda(&SHAPE, move |i| {
            let shifted = i[3].clone() - Expr::int(SHAPE[3]);
            let block = Expr::binary(op, shifted.clone(), Expr::int(4));
            vec![i[0].clone(), block + Expr::int(5), i[1].clone(), i[2].clone(), shifted.floor_mod(Expr::int(4))]
        })
    };
    all_proved(&relayout_by(&reversed(BinaryOp::FloorDiv), &PHYSICAL, &same));
    let mut broken = relayout_by(&reversed(BinaryOp::TruncDiv), &PHYSICAL, &same);
    for claim in &mut broken.evidence.buffers {
        claim.map = reversed(BinaryOp::FloorDiv);
    }
    refuted(&broken, "simulation");
}

#[test]
fn a_many_to_one_map_is_refuted_with_the_colliding_pair() {
    let many = lambda(&SHAPE, |i| {
        let four = || Expr::int(4);
        vec![
            i[0].clone(),
            i[3].clone().floor_div(four()),
            i[1].clone(),
            i[2].clone(),
            i[3].clone().floor_mod(Expr::int(3)),
        ]
    });
    let text = refuted(&relayout_by(&many, &[2, 5, 7, 9, 3], &same), "injective");
    assert_eq!(text, "(0, 0, 0, 0) and (0, 0, 0, 3) both land on (0, 0, 0, 0, 0)");
}

fn with_body(moved: Moved, change: impl FnOnce(&Stmt) -> Stmt) -> Moved {
    let body = change(&moved.after.body);
    Moved { after: PrimFunc { body, ..moved.after }, ..moved }
}

/// Changes the statements for which `pick` gives another one.
struct Edit<F>(F);

impl<F: FnMut(&Stmt) -> Option<Stmt>> Rewrite for Edit<F> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let stmt = self.stmt_children(stmt)?;
        Ok((self.0)(&stmt).unwrap_or(stmt))
    }
}

fn edited(pick: impl FnMut(&Stmt) -> Option<Stmt>) -> Moved {
    with_body(relayout(&PHYSICAL, &same), |body| {
        let Ok(body) = Edit(pick).stmt(body);
        body
    })
}

#[test]
fn a_dropped_guard_is_refuted() {
    let broken = edited(|stmt| match &stmt.kind {
        StmtKind::If { then_body, .. } => Some((**then_body).clone()),
        _ => None,
    });
    assert!(refuted(&broken, "simulation").contains("w < 8"));
}

#[test]
fn a_guard_off_by_one_is_refuted() {
    let broken = edited(|stmt| match &stmt.kind {
        StmtKind::If { cond, then_body, .. } => {
            let Expr::Binary(_, lhs, rhs) = cond else { return None };
            let cond = Expr::binary(BinaryOp::Le, (**lhs).clone(), (**rhs).clone());
            Some(Stmt::guarded(cond, (**then_body).clone()))
        }
        _ => None,
    });
    refuted(&broken, "simulation");
}

#[test]
fn a_guard_added_is_refuted() {
    let broken = edited(|stmt| match &stmt.kind {
        StmtKind::Store { indices, .. } => Some(Stmt::guarded(indices[4].clone().lt(Expr::int(3)), stmt.clone())),
        _ => None,
    });
    refuted(&broken, "simulation");
}

fn with_loop(name: &'static str, change: impl Fn(&mut tilewright_ir::For)) -> Moved {
    edited(move |stmt| match &stmt.kind {
        StmtKind::For(inner) if inner.var.name() == name => {
            let mut inner = inner.clone();
            change(Arc::make_mut(&mut inner));
            Some(Stmt::new(StmtKind::For(inner)))
        }
        _ => None,
    })
}

#[test]
fn a_loop_one_short_is_refuted() {
    refuted(&with_loop("c", |inner| inner.extent = Expr::int(16)), "iteration");
}

#[test]
fn a_loop_that_starts_late_is_refuted() {
    refuted(&with_loop("h", |inner| inner.min = Expr::int(1)), "iteration");
}

#[test]
fn a_store_left_out_is_refuted() {
    let broken = edited(|stmt| matches!(stmt.kind, StmtKind::Store { .. }).then(|| Stmt::seq(Vec::new())));
    refuted(&broken, "simulation");
}

#[test]
fn swapped_operands_are_refuted() {
    let broken = edited(|stmt| match &stmt.kind {
        StmtKind::Store { buffer, indices, value: Expr::Binary(op, lhs, rhs) } => {
            let value = Expr::Binary(*op, rhs.clone(), lhs.clone());
            Some(Stmt::store(buffer, indices.clone(), value))
        }
        _ => None,
    });
    refuted(&broken, "simulation");
}

#[test]
fn another_constant_is_refuted() {
    let broken = edited(|stmt| match &stmt.kind {
        StmtKind::Store { buffer, indices, value } => {
            struct Third;
            impl Rewrite for Third {
                type Error = Infallible;
                fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
                    if matches!(expr, Expr::Float { .. }) { Ok(float(3.0)) } else { self.expr_children(expr) }
                }
            }
            let Ok(value) = Third.expr(value);
            Some(Stmt::store(buffer, indices.clone(), value))
        }
        _ => None,
    });
    refuted(&broken, "simulation");
}

#[test]
fn an_alias_left_behind_is_refuted() {
    let moved = relayout(&PHYSICAL, &same);
    let old = moved.before.buffer_map[0].1.clone();
    let alias = old.with(|info| info.name = "A_alias".into());
    let extra = |body: &Stmt| {
        let first = Expr::load(&alias, exprs(&[1, 2, 3, 4]));
        let target = alias.clone();
        let touch = Stmt::store(&target, exprs(&[0, 0, 0, 1]), first);
        Stmt::new(StmtKind::DeclBuffer { buffer: alias.clone(), body: Arc::new(Stmt::seq(vec![body.clone(), touch])) })
    };
    let before = PrimFunc { body: extra(&moved.before.body), ..moved.before.clone() };
    let after = PrimFunc { body: extra(&moved.after.body), ..moved.after.clone() };
    let text = refuted(&Moved { before, after, evidence: moved.evidence }, "simulation");
    assert!(text.contains("A_alias still looks for it where it was"), "{text}");
}

#[test]
fn a_claim_that_is_missing_is_no_proof() {
    let mut moved = relayout(&PHYSICAL, &same);
    moved.evidence.buffers.pop();
    let reports = judged(&moved);
    assert!(reports.iter().any(|report| matches!(report.verdict, Verdict::Unknown(_))));
}

/// Flattens what a layout pass made, with or without separators.
fn flattened(positions: &[usize], flat: &Flat, shape: &[i64], after_positions: &[usize]) -> Moved {
    let Program { func, a, b } = program();
    let separators = AxisSeparators::new(positions.to_vec(), 4).unwrap();
    let separated = |buffer: &Buffer| buffer.with(|info| info.axis_separators = separators.clone());
    let before_pairs = [(a.clone(), separated(&a)), (b.clone(), separated(&b))];
    let identity = lambda(&SHAPE, <[Expr]>::to_vec);
    let rename = before_pairs.iter().map(|(old, new)| (old.clone(), (new.clone(), identity.clone()))).collect();
    let Ok(body) = Move { buffers: rename, twist: &same, seen: 0 }.stmt(&func.body);
    let buffer_map: Vec<_> = func.params.iter().cloned().zip(before_pairs.iter().map(|(_, new)| new.clone())).collect();
    let before = PrimFunc { body, buffer_map, ..func };
    let map = lambda(&SHAPE, |index| flat(index, &SHAPE));
    let flat_of = |buffer: &Buffer| {
        buffer.with(|info| {
            info.shape = exprs(shape);
            info.axis_separators = AxisSeparators::new(after_positions.to_vec(), shape.len()).unwrap();
        })
    };
    let pairs: Vec<_> = before.buffer_map.iter().map(|(_, buffer)| (buffer.clone(), flat_of(buffer))).collect();
    let buffers = pairs.iter().map(|(old, new)| (old.clone(), (new.clone(), map.clone()))).collect();
    let Ok(mut body) = Move { buffers, twist: &same, seen: 0 }.stmt(&before.body);
    for (_, new) in &pairs {
        body = Stmt::new(StmtKind::DeclBuffer { buffer: new.clone(), body: Arc::new(body) });
    }
    let claim = |(old, new): &(Buffer, Buffer)| BufferClaim {
        before: old.clone(),
        after: new.clone(),
        map: map.clone(),
        change: BufferChange::Flatten,
        padded_axes: Vec::new(),
    };
    let evidence =
        Evidence { pass: "flatten".into(), buffers: pairs.iter().map(claim).collect(), ..Evidence::default() };
    Moved { after: PrimFunc { body, ..before.clone() }, before, evidence }
}

fn numeral(index: &[Expr], shape: &[i64]) -> Expr {
    let mut value = index[0].clone();
    for (digit, extent) in index.iter().zip(shape).skip(1) {
        value = value * Expr::int(*extent) + digit.clone();
    }
    value
}

#[test]
fn flattening_is_proved_to_one_and_to_two_axes() {
    all_proved(&flattened(&[], &|i, s| vec![numeral(i, s)], &[2 * 7 * 9 * 17], &[]));
    let two = |i: &[Expr], s: &[i64]| vec![numeral(&i[..3], &s[..3]), i[3].clone()];
    all_proved(&flattened(&[3], &two, &[2 * 7 * 9, 17], &[1]));
}

#[test]
fn separators_in_the_wrong_place_are_refuted() {
    // The buffer says [3]; the pass cut at 2.
    let wrong = |i: &[Expr], s: &[i64]| vec![numeral(&i[..2], &s[..2]), numeral(&i[2..], &s[2..])];
    refuted(&flattened(&[3], &wrong, &[2 * 7, 9 * 17], &[1]), "flatten");
}

#[test]
fn separators_ignored_are_refuted() {
    refuted(&flattened(&[3], &|i, s| vec![numeral(i, s)], &[2 * 7 * 9 * 17], &[]), "flatten");
}

#[test]
fn separators_lost_after_flattening_are_refuted() {
    let two = |i: &[Expr], s: &[i64]| vec![numeral(&i[..3], &s[..3]), i[3].clone()];
    refuted(&flattened(&[3], &two, &[2 * 7 * 9, 17], &[]), "flatten");
}

#[test]
fn column_major_flattening_is_refuted() {
    let reversed = |i: &[Expr], s: &[i64]| {
        let (index, shape): (Vec<_>, Vec<_>) = (i.iter().rev().cloned().collect(), s.iter().rev().copied().collect());
        vec![numeral(&index, &shape)]
    };
    refuted(&flattened(&[], &reversed, &[2 * 7 * 9 * 17], &[]), "flatten");
}

#[test]
fn a_stride_of_another_axis_is_refuted() {
    let wrong = |i: &[Expr], _: &[i64]| vec![numeral(i, &[2, 9, 7, 17])];
    let moved = flattened(&[], &wrong, &[2 * 7 * 9 * 17], &[]);
    refuted(&moved, "flatten");
    refuted(&moved, "injective");
}

#[test]
fn a_flattened_view_of_the_wrong_memory_is_no_proof() {
    let mut moved = flattened(&[], &|i, s| vec![numeral(i, s)], &[2 * 7 * 9 * 17], &[]);
    let other = moved.evidence.buffers[0].before.data.clone();
    let wrong = moved.evidence.buffers[1].after.with(|info| info.data = other);
    let old = moved.evidence.buffers[1].after.clone();
    let identity = IndexMap::identity(old.shape.clone());
    let buffers = HashMap::from([(old, (wrong.clone(), identity))]);
    let Ok(body) = Move { buffers, twist: &same, seen: 0 }.stmt(&moved.after.body);
    moved.after.body = Stmt::new(StmtKind::DeclBuffer { buffer: wrong.clone(), body: Arc::new(body) });
    moved.evidence.buffers[1].after = wrong;
    let reports = judged(&moved);
    assert!(reports.iter().any(|report| !report.verdict.is_proved()));
}

#[test]
fn an_offset_folded_twice_is_no_proof() {
    let mut moved = flattened(&[], &|i, s| vec![numeral(i, s)], &[2 * 7 * 9 * 17], &[]);
    for claim in &mut moved.evidence.buffers {
        claim.after = claim.after.with(|info| info.elem_offset = Expr::int(3));
    }
    let reports = judged(&moved);
    assert!(reports.iter().any(|report| !report.verdict.is_proved()));
}

/// `edited`, with a branch before it that is taken never (`w > 8`) or once (`w > 7`), dropped by the pass.
fn with_a_dropped_branch(limit: i64) -> Moved {
    let mut moved = relayout(&PHYSICAL, &same);
    let add = Edit(|stmt: &Stmt| match &stmt.kind {
        StmtKind::If { cond: Expr::Binary(_, w, _), then_body, .. } => {
            let taken = Expr::binary(BinaryOp::Gt, (**w).clone(), Expr::int(limit));
            let StmtKind::Store { buffer, indices, .. } = &then_body.kind else { return None };
            let extra = Stmt::guarded(taken, Stmt::store(buffer, indices.clone(), float(1.0)));
            Some(Stmt::seq(vec![extra, stmt.clone()]))
        }
        _ => None,
    })
    .stmt(&moved.before.body);
    let Ok(body) = add;
    moved.before.body = body;
    moved
}

#[test]
fn a_branch_that_is_never_taken_may_be_dropped_and_one_that_is_may_not() {
    all_proved(&with_a_dropped_branch(8));
    refuted(&with_a_dropped_branch(7), "simulation");
}
