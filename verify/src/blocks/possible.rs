//! Which instances of a block that `T.where` leaves out would have to run.
//!
//! ```text
//! for t, u in T.grid(64, 2):                 t = 40, u = 1 would read A[104]: a factor with fewer values than the others
//!     with T.sblock("R"):
//!         v, r = T.axis.remap("SR", [t, u])
//!         T.where(u * 64 + t < 100)
//!         R[v] = R[v] + A[r * 64 + v]
//! ```
//!
//! What would write outside of a buffer is no instance: nobody reads what it writes. A part of a sum that would read outside of a buffer is none
//! either, if each value of the reduced axes occurs for some element, and if the instance goes on with all that it writes: what it initialises,
//! or writes for the first time, has to be written in any case. `rfactor` of TVM gives each factor as many values as the one with most has.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, Expr, Var};

use super::domain::loads_at;
use super::rounds::is_counted;
use super::{Placed, either, truth, within};
use crate::access::Access;
use crate::judge::Judge;
use crate::path::{Path, Step, sites_in};

impl Placed<'_> {
    /// What holds of each instance that has to run: one of the elements that it may store to is in its buffer; and if it reads all elements
    /// that it stores to and initialises none of them, each element that it reads in any case is in its buffer, too.
    pub(super) fn possible(&self, judge: &Judge) -> Vec<Expr> {
        let is_axis = |var: &Var| self.block.axes.iter().any(|axis| axis.var == *var);
        let is_of_call = |var: &Var| self.path.symbols.contains(var) || self.path.scalars.contains(var);
        let is_known =
            |index: &Expr| !index.reads_memory() && index.vars().iter().all(|var| is_axis(var) || is_of_call(var));
        let is_inside = |buffer: &Buffer, indices: &[Expr]| {
            let known =
                indices.iter().zip(&buffer.shape).filter(|(index, _)| index.dtype().is_scalar() && is_known(index));
            let inside = known.map(|(index, extent)| {
                let zero = Expr::int_of(0, index.dtype().scalar).unwrap_or_else(|| index.clone() - index.clone());
                within(index, &zero, extent)
            });
            inside.reduce(Expr::and).unwrap_or_else(|| truth(true))
        };
        // A store in a loop or below a condition may be one that runs, and a call may store anywhere.
        let stores = if self.work().has_calls { Vec::new() } else { self.written() };
        let loads = self.certain_loads();
        let is_read = |(buffer, indices): &(&Buffer, &[Expr])| {
            loads.iter().any(|load| load.buffer == **buffer && load.indices.iter().eq(indices.iter()))
        };
        let first = self.block.is_first().filter(|_| self.block.has_init);
        let goes_on = !stores.is_empty() && stores.iter().all(is_read);
        let unless_first = |cond: Expr| first.iter().fold(cond, |cond, first| either(cond, first.clone()));
        let reads = loads.iter().map(|load| unless_first(is_inside(&load.buffer, &load.indices)));
        let reads: Vec<Expr> = if goes_on && self.occurs(judge) { reads.collect() } else { Vec::new() };
        let stores = stores.into_iter().map(|(buffer, indices)| is_inside(buffer, indices)).reduce(either);
        reads.into_iter().chain(stores).collect()
    }

    /// Each value of the counted axes occurs: together with the first values of the others.
    fn occurs(&self, judge: &Judge) -> bool {
        let Some(predicate) = self.parts.predicate else { return false };
        let (mut path, mut first) =
            (Path { steps: std::iter::empty().collect(), ..self.path.clone() }, Substitution::default());
        for axis in &self.block.axes {
            let (min, extent) = (first.apply(&axis.min), first.apply(&axis.extent));
            if is_counted(axis) {
                path.steps.push(Step::Loop(axis.var.clone(), min, extent));
            } else {
                first.insert(&axis.var, min);
            }
        }
        let claim = &self.claim.anywhere;
        let there =
            Substitution::new(claim.iter().map(|(var, _)| var), claim.iter().map(|(_, value)| first.apply(value)));
        self.counted().next().is_some() && self.holds(judge, &path, &there.apply(predicate)).0.is_proved()
    }

    /// The elements that an instance reads, in no loop and below no condition.
    fn certain_loads(&self) -> Vec<Access> {
        let inner = self.inner();
        let n_steps = inner.steps.len();
        let mut found = Vec::new();
        for site in sites_in(self.parts.body, &inner) {
            let is_certain =
                |access: &Access| access.path.steps.iter().skip(n_steps).all(|step| matches!(step, Step::Let(..)));
            found.extend(loads_at(&site).into_iter().filter(is_certain));
        }
        found
    }
}
