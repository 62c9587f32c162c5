//! Whether two programs accept the same calls: what each of them asserts at its start follows from what the other one asserts.
//!
//! ```text
//! before: assert n >= 8; assert n % 4 == 0        n > 7 follows from n >= 8, and n >= 8 from n > 7
//! after:  assert n % 4 == 0 and n > 7
//! ```
//!
//! Each program evaluates its assertions in their order, and that none of them overflows where those in front of it hold is an
//! obligation of the program by itself. So a program accepts a call exactly if the integers of the call meet all of its assertions. A
//! condition that may have no value traps for some integers, and is not compared by its meaning: the other program has to assert it, too.

use tilewright_ir::{Expr, PrimFunc, sabotage};

use super::{Program, is_partial};
use crate::judge::{Decision, Judge, Report, Side, all_of, suspected, unsupported};
use crate::obligation::Obligation;
use crate::pass::holds;
use crate::path::{Path, Step};

impl Judge {
    /// Decides whether two programs accept the same calls. `None` if they assert the same conditions, in whatever order.
    pub(crate) fn check_accepted(
        &self,
        (before, first): (&PrimFunc, &Program),
        (after, second): (&PrimFunc, &Program),
    ) -> Option<Report> {
        let (first, second) = (&first.asserted, &second.asserted);
        let only = |some: &[Expr], all: &[Expr]| -> Vec<Expr> {
            some.iter().filter(|cond| !all.contains(cond)).cloned().collect()
        };
        let (old, new) = (only(first, second), only(second, first));
        if (old.is_empty() && new.is_empty()) || sabotage::on("assertions-need-not-follow") {
            return None;
        }
        Some(Self::report(Obligation::Simulation, "both programs accept the same calls", || {
            let forth = self.follow(&asserting(before, first), &new, Side::After);
            let back = self.follow(&asserting(after, second), &old, Side::Before);
            suspected(all_of([forth, back]))
        }))
    }

    /// Conditions that only the program of a side asserts follow from those on a path.
    fn follow(&self, path: &Path, conditions: &[Expr], side: Side) -> Decision {
        let which = if side == Side::Before { "before" } else { "after" };
        all_of(conditions.iter().map(|cond| {
            if is_partial(cond) {
                return unsupported(format!("only the program {which} asserts `{cond}`, which may have no value"));
            }
            holds(self, path, cond)
        }))
    }
}

/// The path behind the assertions of a program.
fn asserting(func: &PrimFunc, asserted: &[Expr]) -> Path {
    let mut path = Path::of(func);
    for cond in asserted {
        path.steps.push(Step::Guard(cond.clone(), true));
    }
    path
}
