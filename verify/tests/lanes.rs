//! Loops that became lanes: the right vector statement is proved, each broken twin is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright_ir::{
    BinaryOp, Buffer, DataType, Evidence, Expr, ForKind, FuncAttrs, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind,
    ThreadTag, Var,
};
use tilewright_verify::{Config, Judge, Report, Verdict};

fn int(value: i64) -> Expr {
    Expr::int(value)
}

fn ramp(base: i64, stride: i64, lanes: u16) -> Expr {
    Expr::Ramp { base: SharedExpr::new(int(base)), stride: SharedExpr::new(int(stride)), lanes }
}

fn broadcast(value: Expr) -> Expr {
    Expr::Broadcast { value: SharedExpr::new(value), lanes: 4 }
}

fn choose(cond: Expr, value: Expr, other: Expr) -> Expr {
    Expr::IfThenElse(SharedExpr::new(cond), SharedExpr::new(value), SharedExpr::new(other))
}

fn float(value: f64) -> Expr {
    Expr::float_of(value, ScalarType::Float32)
}

/// `A[7, 11]` and `B[7, 13]`.
struct Buffers {
    a: Buffer,
    b: Buffer,
}

impl Buffers {
    fn new() -> Self {
        let [a, b] = [("A", 11), ("B", 13)]
            .map(|(name, width)| Buffer::compact(name, ScalarType::Float32, vec![int(7), int(width)]));
        Self { a, b }
    }

    fn func(&self, body: impl FnOnce(&Self, Expr) -> Stmt) -> PrimFunc {
        let params = ["a", "b"].map(|name| Var::new(name, DataType::HANDLE)).to_vec();
        let buffer_map = params.iter().cloned().zip([self.a.clone(), self.b.clone()]).collect();
        let y = Var::index("y");
        let body = Stmt::for_loop(&y, int(7), ForKind::Serial, body(self, Expr::from(&y)));
        PrimFunc { name: "main".into(), params, buffer_map, attrs: FuncAttrs::default(), body }
    }
}

/// The loop before, and the statement after.
struct Pair {
    kind: ForKind,
    min: i64,
    extent: i64,
    before: fn(&Buffers, Expr, Expr) -> Stmt,
    after: fn(&Buffers, Expr) -> Stmt,
}

impl Pair {
    fn new(before: fn(&Buffers, Expr, Expr) -> Stmt, after: fn(&Buffers, Expr) -> Stmt) -> Self {
        Self { kind: ForKind::Vectorized, min: 0, extent: 4, before, after }
    }

    fn judged(&self) -> Vec<Report> {
        let buffers = Buffers::new();
        let before = buffers.func(|buffers, y| {
            let c = Var::index("c");
            let mut nest = Stmt::for_loop(&c, int(self.extent), self.kind, (self.before)(buffers, y, Expr::from(&c)));
            if let StmtKind::For(inner) = &mut nest.kind {
                std::sync::Arc::make_mut(inner).min = int(self.min);
            }
            nest
        });
        let after = buffers.func(self.after);
        tilewright_ir::validate(&before).unwrap();
        tilewright_ir::validate(&after).unwrap();
        let reports = Judge::new(Config::default()).unwrap().check_pass(&before, &after, &Evidence::default());
        for report in &reports {
            eprintln!("{:11} {:50} {} [{}]", report.obligation, report.subject, report.verdict, report.method);
        }
        reports
    }

    fn is_proved(&self) {
        let reports = self.judged();
        assert!(reports.len() > 5);
        assert!(reports.iter().all(|report| report.verdict.is_proved()));
    }

    fn is_refuted(&self, obligation: &str) -> String {
        let reports = self.judged();
        let found = reports.iter().find_map(|report| match &report.verdict {
            Verdict::Refuted(found) if report.obligation.id() == obligation => Some(found.to_string()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("{obligation} was not refuted"))
    }

    /// Nobody says that it is right.
    fn is_unknown(&self) -> String {
        let reports = self.judged();
        let found = reports.iter().find_map(|report| match &report.verdict {
            Verdict::Unknown(reason) => Some(reason.to_string()),
            _ => None,
        });
        found.unwrap()
    }
}

/// `B[y, c] = A[y, c] * 2`
fn doubled(buffers: &Buffers, y: Expr, c: Expr) -> Stmt {
    let value = Expr::load(&buffers.a, vec![y.clone(), c.clone()]) * float(2.0);
    Stmt::store(&buffers.b, vec![y, c], value)
}

/// Its lanes, with some index.
fn doubled_at(buffers: &Buffers, y: &Expr, from: Expr, to: Expr) -> Stmt {
    let value = Expr::load(&buffers.a, vec![y.clone(), from]) * broadcast(float(2.0));
    Stmt::store(&buffers.b, vec![y.clone(), to], value)
}

#[test]
fn a_loop_that_became_lanes_is_proved_whatever_its_kind() {
    for kind in [ForKind::Serial, ForKind::Parallel, ForKind::Vectorized, ForKind::Unrolled] {
        Pair { kind, ..Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4))) }.is_proved();
    }
}

#[test]
fn a_loop_of_threads_is_not_followed() {
    let kind = ForKind::ThreadBinding(ThreadTag::Thread(0));
    let pair = Pair { kind, ..Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4))) };
    assert!(pair.is_unknown().contains("bound to threads"));
}

#[test]
fn a_loop_that_starts_elsewhere_is_proved_and_lanes_that_do_not_are_refuted() {
    Pair { min: 3, ..Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(3, 1, 4), ramp(3, 1, 4))) }.is_proved();
    Pair { min: 3, ..Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4))) }
        .is_refuted("simulation");
}

#[test]
fn more_or_fewer_lanes_than_iterations_are_refuted() {
    let three = Pair::new(doubled, |b, y| {
        let value = Expr::load(&b.a, vec![y.clone(), ramp(0, 1, 3)]);
        let two = Expr::Broadcast { value: SharedExpr::new(float(2.0)), lanes: 3 };
        Stmt::store(&b.b, vec![y, ramp(0, 1, 3)], value * two)
    });
    assert!(three.is_refuted("iteration").contains("`4` is 4, but `3` is 3"));
    Pair { extent: 3, ..Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4))) }
        .is_refuted("iteration");
}

#[test]
fn the_value_of_the_first_lane_in_all_is_refuted() {
    let pair = Pair::new(doubled, |b, y| {
        let value = Expr::load(&b.a, vec![y.clone(), int(0)]) * float(2.0);
        Stmt::store(&b.b, vec![y, ramp(0, 1, 4)], broadcast(value))
    });
    pair.is_refuted("simulation");
}

#[test]
fn reversed_lanes_and_lanes_with_gaps_are_refuted() {
    Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(3, -1, 4))).is_refuted("simulation");
    Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 2, 4))).is_refuted("simulation");
    Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(3, -1, 4), ramp(0, 1, 4))).is_refuted("simulation");
    // Reversed on both sides is a permutation of the iterations that nobody claimed.
    Pair::new(doubled, |b, y| doubled_at(b, &y, ramp(3, -1, 4), ramp(3, -1, 4))).is_refuted("simulation");
}

#[test]
fn lanes_of_one_element_are_refuted() {
    let pair = Pair::new(
        |b, y, c| Stmt::store(&b.b, vec![y.clone(), int(5)], Expr::load(&b.a, vec![y, c])),
        |b, y| Stmt::store(&b.b, vec![y.clone(), ramp(5, 0, 4)], Expr::load(&b.a, vec![y, ramp(0, 1, 4)])),
    );
    assert!(pair.is_refuted("simulation").contains("c = 0, c' = "));
    pair.is_refuted("lanes");
}

/// `B[y, c + to] = B[y, c + from]`
fn moved<const TO: i64, const FROM: i64>() -> Pair {
    Pair::new(
        |b, y, c| {
            let value = Expr::load(&b.b, vec![y.clone(), c.clone() + int(FROM)]);
            Stmt::store(&b.b, vec![y, c + int(TO)], value)
        },
        |b, y| {
            let value = Expr::load(&b.b, vec![y.clone(), ramp(FROM, 1, 4)]);
            Stmt::store(&b.b, vec![y, ramp(TO, 1, 4)], value)
        },
    )
}

#[test]
fn an_iteration_that_reads_what_an_earlier_one_wrote_is_refuted() {
    assert!(moved::<1, 0>().is_refuted("simulation").contains("does not hold at"));
    moved::<3, 0>().is_refuted("simulation");
    // Far enough away, or overwritten only later.
    moved::<4, 0>().is_proved();
    moved::<0, 1>().is_proved();
    moved::<2, 2>().is_proved();
}

#[test]
fn a_guard_that_reads_what_a_lane_wrote_is_refuted() {
    let pair = Pair::new(
        |b, y, c| {
            let first = Expr::load(&b.b, vec![y.clone(), int(2)]);
            Stmt::guarded(Expr::binary(BinaryOp::Lt, first, float(1.0)), doubled(b, y, c))
        },
        |b, y| {
            let first = Expr::load(&b.b, vec![y.clone(), int(2)]);
            let cond = Expr::binary(BinaryOp::Lt, first, float(1.0));
            Stmt::guarded(cond, doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4)))
        },
    );
    assert!(pair.is_refuted("simulation").contains("does not hold at"));
}

#[test]
fn a_guard_of_all_lanes_stays_and_one_that_is_dropped_is_refuted() {
    let before = |b: &Buffers, y: Expr, c: Expr| Stmt::guarded(y.clone().lt(int(5)), doubled(b, y, c));
    let guarded =
        |b: &Buffers, y: Expr| Stmt::guarded(y.clone().lt(int(5)), doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4)));
    Pair::new(before, guarded).is_proved();
    let dropped = |b: &Buffers, y: Expr| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4));
    assert!(Pair::new(before, dropped).is_refuted("simulation").contains("`y < 5` does not hold"));
    Pair::new(doubled, guarded).is_refuted("simulation");
}

#[test]
fn a_guard_of_some_lanes_gathered_into_a_parameter_is_refuted() {
    let pair = Pair::new(
        |b, y, c| Stmt::guarded(c.clone().lt(int(3)), doubled(b, y, c)),
        |b, y| {
            let cond = Expr::binary(BinaryOp::Lt, ramp(0, 1, 4), broadcast(int(3)));
            let value = Expr::load(&b.a, vec![y.clone(), ramp(0, 1, 4)]) * broadcast(float(2.0));
            Stmt::store(&b.b, vec![y, ramp(0, 1, 4)], choose(cond, value, broadcast(float(0.0))))
        },
    );
    assert!(pair.is_refuted("simulation").contains("`c < 3` does not hold"));
}

/// `B[y, c] = A[y, c] if c < limit else 0`, in lanes.
fn chosen<const LIMIT: i64>() -> Pair {
    Pair::new(
        |b, y, c| {
            let value = Expr::load(&b.a, vec![y.clone(), c.clone()]);
            Stmt::store(&b.b, vec![y, c.clone()], choose(c.lt(int(3)), value, float(0.0)))
        },
        |b, y| {
            let cond = Expr::binary(BinaryOp::Lt, ramp(0, 1, 4), broadcast(int(LIMIT)));
            let value = Expr::load(&b.a, vec![y.clone(), ramp(0, 1, 4)]);
            Stmt::store(&b.b, vec![y, ramp(0, 1, 4)], choose(cond, value, broadcast(float(0.0))))
        },
    )
}

#[test]
fn a_conditional_decided_lane_by_lane_is_followed() {
    chosen::<3>().is_proved();
    chosen::<2>().is_refuted("simulation");
    chosen::<4>().is_refuted("simulation");
}

#[test]
fn lanes_in_steps_are_proved() {
    let pair = Pair::new(
        |b, y, c| {
            let value = Expr::load(&b.a, vec![y.clone(), c.clone()]);
            Stmt::store(&b.b, vec![y, c * int(3) + int(1)], value)
        },
        |b, y| {
            let value = Expr::load(&b.a, vec![y.clone(), ramp(0, 1, 4)]);
            Stmt::store(&b.b, vec![y, ramp(1, 3, 4)], value)
        },
    );
    pair.is_proved();
}

#[test]
fn two_stores_are_no_lanes() {
    let pair = Pair::new(
        |b, y, c| Stmt::seq(vec![doubled(b, y.clone(), c.clone()), doubled(b, y, c)]),
        |b, y| doubled_at(b, &y, ramp(0, 1, 4), ramp(0, 1, 4)),
    );
    assert!(pair.is_unknown().contains("is not one store"));
}
