//! Obligation order: instances that conflict keep their order.
//!
//! For two instances `x` of one store and `y` of another one, in this order after, that touch the same element, one of them
//! writing it: their images are in this order before. "In this order" has a case for each loop that both are in (all outer
//! loops agree, and this one is less for `x`), and one for the same iteration of all of them.
//!
//! Two *updates* of an element in the same way may change their order: integers that are added, subtracted, multiplied, or the lesser or
//! greater of which is kept.
//!
//! ```text
//! for i in n: if M[i] > 0: H[D[i]] = H[D[i]] + X[i]          forwards, backwards, or in tiles
//! ```
//!
//! Whatever else touches the element keeps its place among them, so that the updates between two such instances are the same ones in both
//! programs; and what they leave does not depend on their order, since nothing else of an update reads the memory that it writes.

use tilewright_ir::{BinaryOp, Buffer, Expr, sabotage};

use super::statement::{Statement, Touch};
use super::{Moved, Reordered, all, any, both, equals};
use crate::judge::{Decision, all_of};
use crate::pass::holds;
use crate::path::Step;

impl Reordered<'_> {
    /// What comes after an instance and conflicts with it came after it before.
    pub(crate) fn ordered(&self, first: &Moved<'_>) -> Decision {
        if sabotage::on("reorder-ignores-order") {
            return all_of([]);
        }
        if sabotage::on("order-backwards") {
            return all_of(self.moved.iter().rev().map(|second| self.pair(first, second)));
        }
        all_of(self.moved.iter().map(|second| self.pair(first, second)))
    }

    /// The same for the instances of one other store.
    fn pair(&self, first: &Moved<'_>, second: &Moved<'_>) -> Decision {
        let (here, there) = (first.before.touches(), second.before.touches());
        let pairs: Vec<(&Touch, &Touch)> = here.iter().flat_map(|a| there.iter().map(move |b| (a, b))).collect();
        let free = commuting(first.before, second.before);
        let conflicts: Vec<_> = pairs
            .into_iter()
            .filter(|(a, b)| (a.writes || b.writes) && a.buffer.aliases(&b.buffer))
            .filter(|(a, b)| free.is_none_or(|free| a.buffer != *free || b.buffer != *free))
            .collect();
        if conflicts.is_empty() {
            return all_of([]);
        }
        let (path, renames) = both(&first.after, &second.after);
        let name = |expr: &Expr| renames.apply(expr);
        let mut image = second.forward.clone();
        for var in second.before.loops() {
            image.insert(&var, name(&second.forward.apply(&Expr::from(&var))));
        }
        let (one, two): (Vec<_>, Vec<_>) = (loops(&first.after), loops(&second.after).iter().map(name).collect());
        let cases = cases(&first.after, &second.after, &one, &two);
        let place = |moved: &Moved<'_>, at: &tilewright_ir::visit::Substitution| -> Vec<Expr> {
            loops(moved.before).iter().map(|var| at.apply(var)).collect()
        };
        let (from, to) = (place(first, &first.forward), place(second, &image));
        let before = any(self::cases(first.before, second.before, &from, &to).into_iter().map(all));
        let values = [first, second].map(|moved| self.may_be_assumed(moved));
        let goals = cases.iter().flat_map(|case| conflicts.iter().map(move |conflict| (case, *conflict)));
        let ordered = goals.map(|(case, (a, b))| {
            let mut path = path.clone();
            for cond in case.iter().cloned().chain(a.same_element(b, &first.forward, &image)) {
                path.steps.push(Step::Guard(cond, true));
            }
            holds(self.judge, &path, &before)
        });
        all_of(values.into_iter().chain(ordered))
    }
}

/// The buffer that two stores update in the same way.
fn commuting<'s>(first: &'s Statement, second: &Statement) -> Option<&'s Buffer> {
    let (one, other) = (update(first)?, update(second)?);
    let is_same = one == other || sabotage::on("updates-ignore-operators");
    (is_same && first.buffer == second.buffer).then_some(&first.buffer)
}

/// How a store combines the integer that an element holds with something else, neither of which reads memory of that buffer. What is
/// subtracted is added with the other sign.
fn update(store: &Statement) -> Option<BinaryOp> {
    let Statement { buffer, indices, value, .. } = store;
    let is_plain = buffer.dtype.is_scalar() && indices.iter().all(|index| index.dtype().is_scalar());
    let is_exact = buffer.dtype.scalar.is_integer() || sabotage::on("updates-take-floats");
    let Expr::Binary(op, ..) = value else { return None };
    let op = if *op == BinaryOp::Sub { BinaryOp::Add } else { *op };
    let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
    let mut n_reads = 0;
    for expr in indices.iter().chain([value]) {
        expr.walk(&mut |part| {
            n_reads += usize::from(matches!(part, Expr::Load { buffer: read, .. } if read.aliases(buffer)));
        });
    }
    (commutes && is_plain && is_exact && n_reads == 1 && is_operand(op, store, value)).then_some(op)
}

/// Whether a value is the element that a store writes, combined with others by an operation.
fn is_operand(op: BinaryOp, store: &Statement, value: &Expr) -> bool {
    match value {
        Expr::Load { buffer, indices } => *buffer == store.buffer && indices.iter().eq(&store.indices),
        Expr::Binary(BinaryOp::Sub, a, _) if op == BinaryOp::Add => is_operand(op, store, a),
        Expr::Binary(other, a, b) if *other == op => is_operand(op, store, a) || is_operand(op, store, b),
        _ => false,
    }
}

pub(crate) fn loops(statement: &Statement) -> Vec<Expr> {
    statement.loops().iter().map(Expr::from).collect()
}

/// When an instance of one store runs before one of another store: in each case all of the conditions hold.
pub(crate) fn cases(one: &Statement, two: &Statement, x: &[Expr], y: &[Expr]) -> Vec<Vec<Expr>> {
    let shared = one.shared_loops(two);
    let agree = |depth: usize| x.iter().zip(y).take(depth).map(|(x, y)| equals(x.clone(), y.clone()));
    let carried = (0..shared).map(|depth| {
        let mut conditions: Vec<Expr> = agree(depth).collect();
        conditions.push(x[depth].clone().lt(y[depth].clone()));
        conditions
    });
    let same = one.is_before(two).then(|| agree(shared).collect());
    carried.chain(same).collect()
}
