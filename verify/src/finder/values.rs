//! How two values are to be compared.

use tilewright_ir::equal::same_operation;
use tilewright_ir::{Expr, Var};

use super::Finder;
use crate::access::lane_of;
use crate::correspondence::Value;
use crate::lockstep::chooses_by_lane;
use crate::path::Step;

impl Finder<'_> {
    /// How two values are compared. `new` is in terms of the program before's variables.
    pub(super) fn values(&mut self, old: &Expr, new: &Expr) -> Value {
        let ty = old.dtype();
        let is_integer = ty.scalar.integer_range().is_some();
        if ty != new.dtype() {
            return self.unknown();
        }
        if !old.reads_memory() && !new.reads_memory() && is_integer {
            return Value::Whole(Vec::new());
        }
        if ty.lanes > 1 && (chooses_by_lane(old) || chooses_by_lane(new)) {
            return self.inside(|this| {
                let lane = Var::index("lane");
                this.path.steps.push(Step::Loop(lane.clone(), Expr::int(0), Expr::int(ty.lanes.into())));
                let lane = Expr::from(lane);
                Value::Lanes(Box::new(this.values(&lane_of(old, &lane), &lane_of(new, &lane))))
            });
        }
        match (old, new) {
            (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }) => {
                Value::Load(self.access((x, i), (y, j)))
            }
            // A condition that was decided, in front of others.
            (Expr::IfThenElse(_, a, _), Expr::IfThenElse(..)) if conditions(old) > conditions(new) => {
                self.decided(old, conditions(a) >= conditions(new), new)
            }
            (Expr::IfThenElse(c, a, b), Expr::IfThenElse(d, x, y)) => {
                let cond = self.values(c, d);
                let then = self.under(c, true, |this| this.values(a, x));
                Value::Choice(Box::new([cond, then, self.under(c, false, |this| this.values(b, y))]))
            }
            _ if same_operation(old, new) => {
                let n_unknown = self.n_unknown;
                let parts = old.children().zip(new.children()).map(|(old, new)| self.values(old, new)).collect();
                if is_integer && self.n_unknown > n_unknown {
                    // Other operands may come to the same value.
                    self.n_unknown = n_unknown;
                    return self.whole(old, new);
                }
                Value::Parts(parts)
            }
            // A condition that was decided always holds, or never.
            (Expr::IfThenElse(_, a, _) | Expr::Select(_, a, _), _) => self.decided(old, same_shape(a, new), new),
            _ if is_integer => self.whole(old, new),
            _ => self.unknown(),
        }
    }

    fn unknown(&mut self) -> Value {
        self.n_unknown += 1;
        Value::Unknown
    }

    fn whole(&mut self, old: &Expr, new: &Expr) -> Value {
        Value::Whole(self.loads(std::slice::from_ref(old), std::slice::from_ref(new)))
    }

    /// The value of a conditional whose condition comes out like this.
    fn decided(&mut self, old: &Expr, holds: bool, new: &Expr) -> Value {
        let (Expr::IfThenElse(_, a, b) | Expr::Select(_, a, b)) = old else { return self.unknown() };
        Value::Decided(holds, Box::new(self.values(if holds { a } else { b }, new)))
    }
}

/// How many conditionals are in an expression.
fn conditions(expr: &Expr) -> usize {
    let mut count = 0;
    expr.walk(&mut |part| count += usize::from(matches!(part, Expr::IfThenElse(..))));
    count
}

/// Whether two expressions could be the same value: one operation, two loads, two conditionals.
fn same_shape(a: &Expr, b: &Expr) -> bool {
    let same_kind =
        matches!((a, b), (Expr::Load { .. }, Expr::Load { .. }) | (Expr::IfThenElse(..), Expr::IfThenElse(..)));
    same_operation(a, b) || same_kind
}
