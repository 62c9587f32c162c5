//! Concrete executions that reach the end of a path, to try claims at, and their words in reports. Nothing here is believed: what
//! an execution shows is evaluated, and that it is one is checked ([`Path::is_reached`]).

use tilewright_ir::{Bindings, Var};

use super::{Path, Step};
use crate::concrete::instances;

/// Values by name.
type Named = Vec<(String, i128)>;

impl Path {
    /// Concrete iterations that reach the end of the path, at most `limit` for each instance of the symbols: all loops
    /// at their first iteration, all at their last one, then mixtures. A path whose guards read memory has no samples,
    /// because the contents of memory are not known.
    pub fn samples(&self, limit: usize) -> Vec<Bindings> {
        let mut found = Vec::new();
        let instances = instances(&self.symbols);
        let each = limit.div_ceil(instances.len().max(1)).max(24);
        for mut instance in instances {
            self.give_scalars(&mut instance);
            found.extend((0..each).filter_map(|attempt| self.attempt(attempt, instance.clone())));
        }
        found
    }

    /// Some executions that may get to the end of the path.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Bindings> {
        instances(&self.symbols).into_iter().flat_map(move |mut instance| {
            self.give_scalars(&mut instance);
            (0..24).filter_map(move |attempt| self.attempt(attempt, instance.clone()))
        })
    }

    /// Binds each scalar parameter to a small value of its type.
    pub(super) fn give_scalars(&self, bindings: &mut Bindings) {
        for (position, scalar) in self.scalars.iter().enumerate() {
            let (low, high) = scalar.dtype().scalar.integer_range().unwrap_or((0, 3));
            bindings.insert(scalar.clone(), [1, 3, 0, 2][position % 4].clamp(low, high));
        }
    }

    /// Walks the path once, in the iterations that the number of the attempt chooses. `None` if that execution does not
    /// get to the end.
    fn attempt(&self, attempt: usize, mut bindings: Bindings) -> Option<Bindings> {
        let mut state = (attempt as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for step in &self.steps {
            match step {
                Step::Let(var, value) => {
                    if let Ok(value) = value.eval_index(&bindings) {
                        bindings.insert(var.clone(), value);
                    }
                }
                Step::Guard(cond, holds) => {
                    if (cond.eval_index(&bindings).ok()? != 0) != *holds {
                        return None;
                    }
                }
                Step::Loop(var, min, extent) => {
                    let (min, extent) = (min.eval_index(&bindings).ok()?, extent.eval_index(&bindings).ok()?);
                    if extent <= 0 {
                        return None;
                    }
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // The first and last iterations are where accesses leave their buffers, so they are chosen more
                    // often than others.
                    let offset = match (attempt, state >> 61) {
                        (0, _) | (2.., 0) => 0,
                        (1, _) | (2.., 1) => extent - 1,
                        (2.., 2) => 1.min(extent - 1),
                        _ => i128::from(state >> 20).rem_euclid(extent),
                    };
                    bindings.insert(var.clone(), min + offset);
                }
            }
        }
        Some(bindings)
    }

    /// The values of the symbols, and those of scalars and loop variables, by name.
    pub(crate) fn describe(&self, bindings: &Bindings) -> (Named, Named) {
        let named = |vars: &[Var]| {
            let value = |var: &Var| bindings.get(var).map(|&value| (var.name().to_owned(), value));
            vars.iter().filter_map(value).collect::<Vec<_>>()
        };
        let mut others = named(&self.scalars);
        others.extend(named(&self.loops()));
        (named(&self.symbols), others)
    }
}
