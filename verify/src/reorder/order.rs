//! Obligation order: instances that conflict keep their order.
//!
//! For two instances `x` of one store and `y` of another one, in this order after, that touch the same element, one of them
//! writing it: their images are in this order before. "In this order" has a case for each loop that both are in (all outer
//! loops agree, and this one is less for `x`), and one for the same iteration of all of them.

use tilewright_ir::{Expr, sabotage};

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
        let conflicts: Vec<_> =
            pairs.into_iter().filter(|(a, b)| (a.writes || b.writes) && a.buffer.aliases(&b.buffer)).collect();
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
