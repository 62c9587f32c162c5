//! Values and accesses side by side.

use tilewright_ir::equal::same_operation;
use tilewright_ir::sabotage;
use tilewright_ir::{Buffer, Expr, Var};

use super::{GoalKind, Lockstep};
use crate::access::lane_of;
use crate::correspondence::{LoadPair, Value};
use crate::forms::{choice, chooses_by_lane, formed};
use crate::obligation::Obligation;
use crate::path::Step;

impl Lockstep<'_> {
    /// Two accesses to corresponding buffers: the new index is the old one through the map. False if they do not correspond.
    pub(super) fn access(
        &mut self,
        (x, old): (&Buffer, &[Expr]),
        (y, new): (&Buffer, &[Expr]),
        along: &[LoadPair],
    ) -> bool {
        let Some(image) = self.relation.image(x, y, old) else {
            self.stuck(format!("`{x}` is accessed before and `{y}` after, and nothing is claimed of them"));
            return false;
        };
        if x.dtype != y.dtype || image.len() != new.len() {
            self.stuck(format!("`{x}` and `{y}` differ in element type or rank"));
            return false;
        }
        let lanes = [old, new].map(|index| index.iter().map(|index| index.dtype().lanes).max().unwrap_or(1));
        if lanes[0] != lanes[1] {
            self.stuck(format!("`{x}` is accessed with {} lanes before and {} after", lanes[0], lanes[1]));
            return false;
        }
        let there = self.in_old_memory(old, new, along);
        // A map takes scalars: each lane goes through it by itself.
        self.each_lane(lanes[0], |this, lane| {
            let [from, to] = [old, &there].map(|index| index.iter().map(lane).collect::<Vec<_>>());
            let moved = this.relation.image(x, y, &from).unwrap_or_default();
            if moved.len() != to.len() {
                return this.stuck(format!("the claim of `{x}` does not take its index"));
            }
            // The same text comes to the same number, even if it wraps.
            if old != new && (moved != from || from != to) {
                this.fits(&from);
            }
            let skipped = usize::from(sabotage::on("lockstep-ignores-first-axis") && moved.len() > 1);
            this.goal(Obligation::Simulation, GoalKind::Equal(moved.into_iter().zip(to).skip(skipped).collect()));
        });
        true
    }

    /// Walks on in a loop over lanes, if there are several. `walk` gets what gives one lane of an expression.
    fn each_lane(&mut self, lanes: u16, walk: impl FnOnce(&mut Self, &dyn Fn(&Expr) -> Expr)) {
        if lanes == 1 {
            return walk(self, &Expr::clone);
        }
        let lane = Var::index("lane");
        self.inside(|this| {
            this.path.steps.push(Step::Loop(lane.clone(), Expr::int(0), Expr::int(lanes.into())));
            walk(this, &|expr| lane_of(expr, &Expr::from(&lane)));
        });
    }

    /// Two expressions have the same value. `new` is in terms of the program before's variables.
    pub(super) fn values(&mut self, old: &Expr, new: &Expr, along: &Value) {
        let ty = old.dtype();
        if ty != new.dtype() {
            return self.stuck(format!("`{old}` has the type {ty}, `{new}` the type {}", new.dtype()));
        }
        match (along, old, new) {
            (Value::Whole(loads), ..) if ty.scalar.integer_range().is_some() => self.whole(old, new, loads),
            (Value::Lanes(along), ..) if chooses_by_lane(old) || chooses_by_lane(new) => {
                self.each_lane(ty.lanes, |this, lane| this.values(&lane(old), &lane(new), along));
            }
            (Value::Load(along), Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }) => {
                self.access((x, i), (y, j), along);
            }
            _ if let Some((along, [old, new])) = formed(along, old, new) => {
                self.as_guess(|this| this.values(&old, &new, along));
            }
            (Value::Choice(along), ..) if let (Some([c, a, b]), Some([d, x, y])) = (choice(old), choice(new)) => {
                // A select evaluates both sides, and they are compared only where they are chosen.
                if matches!(new, Expr::Select(..)) {
                    self.have_values(&[x.clone(), y.clone()]);
                }
                let [cond, then, otherwise] = &**along;
                self.values(c, d, cond);
                self.under(c, true, |this| this.values(a, x, then));
                self.under(c, false, |this| this.values(b, y, otherwise));
            }
            (Value::Decided(holds, along), ..) if let Some([c, a, b]) = choice(old) => {
                self.as_guess(|this| {
                    this.comes_out(c, *holds, true);
                    this.values(if *holds { a } else { b }, new, along);
                });
            }
            (Value::Parts(parts), ..) if same_operation(old, new) && parts.len() == old.children().len() => {
                // Other operands may come to the same value.
                self.as_guess(|this| {
                    for ((old, new), along) in old.children().zip(new.children()).zip(parts) {
                        this.values(old, new, along);
                    }
                });
            }
            _ => self.stuck(format!("`{old}` became `{new}`")),
        }
    }

    /// Two integers are the same, if what is read is.
    fn whole(&mut self, old: &Expr, new: &Expr, along: &[LoadPair]) {
        let is_read = old.reads_memory() || new.reads_memory();
        if old == new && !is_read {
            return;
        }
        let outer = self.is_guess;
        self.is_guess |= is_read;
        for new in self.in_old_memory(std::slice::from_ref(old), std::slice::from_ref(new), along) {
            self.each_lane(old.dtype().lanes, |this, lane| {
                this.goal(Obligation::Simulation, GoalKind::Same(lane(old), lane(&new)));
            });
        }
        self.is_guess = outer;
    }

    /// Collects goals that need not hold for the programs to do the same.
    pub(super) fn as_guess(&mut self, walk: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_guess, true);
        walk(self);
        self.is_guess = outer;
    }
}
