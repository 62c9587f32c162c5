//! How two values are to be compared.

use tilewright_ir::equal::same_operation;
use tilewright_ir::{BinaryOp, Expr, UnaryOp, Var};

use super::Finder;
use crate::access::lane_of;
use crate::correspondence::Value;
use crate::forms::{choice, chooses_by_lane, opposite_of, restated, reversed, turned};
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
                self.n_unlike += usize::from(!self.seems_same_load(old, new));
                Value::Load(self.access((x, i), (y, j)))
            }
            _ if is_choice(old) && is_choice(new) && is_negated(old) != is_negated(new) => self.exchanged(old, new),
            _ if is_choice(old) && self.seems_reversed(old, new) => {
                let reversed = reversed(new).unwrap_or_else(|| new.clone());
                Value::Reversed(Box::new(self.values(old, &reversed)))
            }
            // A condition that was decided, in front of others.
            (Expr::IfThenElse(_, a, _), Expr::IfThenElse(..)) if conditions(old) > conditions(new) => {
                self.decided(old, conditions(a) >= conditions(new), new)
            }
            (Expr::IfThenElse(c, a, b) | Expr::Select(c, a, b), Expr::IfThenElse(d, x, y))
            | (Expr::IfThenElse(c, a, b), Expr::Select(d, x, y))
                if is_lazy(old) && is_lazy(new) || c.reads_memory() || d.reads_memory() =>
            {
                let cond = self.values(c, d);
                let then = self.under(c, true, |this| this.values(a, x));
                Value::Choice(Box::new([cond, then, self.under(c, false, |this| this.values(b, y))]))
            }
            _ if same_operation(old, new) => {
                let missed = (self.n_unknown, self.n_unlike);
                let parts = self.parts(old, new);
                let direct = (self.n_unknown, self.n_unlike);
                if direct > missed
                    && let Some(turned) = turned_alike(old, new)
                {
                    (self.n_unknown, self.n_unlike) = missed;
                    let exchanged = self.parts(old, &turned);
                    if (self.n_unknown, self.n_unlike) == missed {
                        return Value::Turned(Box::new(exchanged));
                    }
                    (self.n_unknown, self.n_unlike) = direct;
                }
                if is_integer && self.n_unknown > missed.0 {
                    // Other operands may come to the same value.
                    self.n_unknown = missed.0;
                    return self.whole(old, new);
                }
                parts
            }
            (Expr::Binary(..), Expr::Binary(..)) if turned_alike(old, new).is_some() => self.exchanged(old, new),
            (Expr::Binary(BinaryOp::Sub, ..), Expr::Binary(BinaryOp::Add, ..))
            | (Expr::Binary(BinaryOp::Add, ..), Expr::Binary(BinaryOp::Sub, ..))
            | (Expr::Binary(BinaryOp::Div, ..), Expr::Binary(BinaryOp::Mul, ..))
            | (Expr::Binary(BinaryOp::Mul, ..), Expr::Binary(BinaryOp::Div, ..))
                if !is_integer && [old, new].into_iter().any(|value| restated(value).is_some()) =>
            {
                let [old, new] = [old, new].map(|value| restated(value).unwrap_or_else(|| value.clone()));
                Value::Restated(Box::new(self.values(&old, &new)))
            }
            // A condition that was decided always holds, or never.
            (Expr::IfThenElse(_, a, _) | Expr::Select(_, a, _), _) => self.decided(old, same_shape(a, new), new),
            _ if is_integer => self.whole(old, new),
            _ => self.unknown(),
        }
    }

    /// One operation, operand by operand.
    fn parts(&mut self, old: &Expr, new: &Expr) -> Value {
        Value::Parts(old.children().zip(new.children()).map(|(old, new)| self.values(old, new)).collect())
    }

    /// The value after with its operands exchanged.
    fn exchanged(&mut self, old: &Expr, new: &Expr) -> Value {
        match turned(new) {
            Some(turned) => Value::Turned(Box::new(self.values(old, &turned))),
            None => self.unknown(),
        }
    }

    fn unknown(&mut self) -> Value {
        self.n_unknown += 1;
        Value::Unknown
    }

    fn whole(&mut self, old: &Expr, new: &Expr) -> Value {
        Value::Whole(self.loads(std::slice::from_ref(old), std::slice::from_ref(new)))
    }

    /// Whether a choice after seems to have the opposite condition.
    fn seems_reversed(&self, old: &Expr, new: &Expr) -> bool {
        let (Some([c, ..]), Some([d, ..])) = (choice(old), choice(new)) else { return false };
        let Some(opposite) = opposite_of(d) else { return false };
        if !is_alike(c, &opposite) || is_alike(c, d) {
            return false;
        }
        // Of conditions without memory, samples tell whether both can hold.
        let mut both = self.path.clone();
        both.steps.extend([Step::Guard(c.clone(), true), Step::Guard(d.clone(), true)]);
        c.reads_memory() || d.reads_memory() || !both.is_reached()
    }

    /// The value of a conditional whose condition comes out like this.
    fn decided(&mut self, old: &Expr, holds: bool, new: &Expr) -> Value {
        let (Expr::IfThenElse(_, a, b) | Expr::Select(_, a, b)) = old else { return self.unknown() };
        Value::Decided(holds, Box::new(self.values(if holds { a } else { b }, new)))
    }
}

/// The value after with its operands exchanged, if it is the operation before then. Integers alone are compared as a whole: equal ones may
/// have other operands.
fn turned_alike(old: &Expr, new: &Expr) -> Option<Expr> {
    let mut has_floats = false;
    old.walk(&mut |part| has_floats |= part.dtype().scalar.is_float());
    turned(new).filter(|turned| has_floats && same_operation(old, turned))
}

/// Whether two conditions are one comparison of operands of the same kind, perhaps exchanged.
fn is_alike(a: &Expr, b: &Expr) -> bool {
    let is_same = |a: &Expr, b: &Expr| {
        let mut pairs = a.children().zip(b.children());
        same_operation(a, b) && pairs.all(|(a, b)| a.reads_memory() == b.reads_memory())
    };
    is_same(a, b) || turned(b).is_some_and(|turned| is_same(a, &turned))
}

fn is_choice(expr: &Expr) -> bool {
    matches!(expr, Expr::IfThenElse(..) | Expr::Select(..))
}

/// Whether a conditional evaluates one side alone.
fn is_lazy(expr: &Expr) -> bool {
    matches!(expr, Expr::IfThenElse(..))
}

/// Whether the condition of a conditional is a negation.
fn is_negated(expr: &Expr) -> bool {
    matches!(expr, Expr::IfThenElse(cond, ..) | Expr::Select(cond, ..) if matches!(**cond, Expr::Unary(UnaryOp::Not, _)))
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
