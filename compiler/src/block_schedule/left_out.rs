//! Predicates that leave instances of a domain out, and are lost where a step gives a block new loops.
//!
//! ```text
//! for a, b in T.grid(2, 2):
//!     with T.sblock("S"):
//!         v, w = T.axis.remap("RR", [a, b])
//!         T.where(a * 2 + b < 3)                 (1, 1) is in the domain, and does not run
//! ```
//!
//! The predicate of a ragged split is none of these: what it leaves out is outside of the domain.

use std::collections::HashSet;

use tilewright_ir::{Bindings, Diagnostic, Expr, Var};

use super::fault;
use super::tree::Found;

/// Iterations of loops that are looked at. Larger nests are not checked here: the judge compares the programs before and after the step.
const MOST: i128 = 1 << 14;

/// The value that symbolic extents and scalar parameters have in this check.
const SIZE: i128 = 5;

/// Checks that the predicate of a block leaves no instance of its domain out.
///
/// # Errors
/// `schedule`: it does.
pub(super) fn none_left_out(found: &Found<'_>) -> Result<(), Diagnostic> {
    let Some(predicate) = found.parts.predicate else { return Ok(()) };
    let Some((running, left)) = instances(found, predicate) else { return Ok(()) };
    match left.difference(&running).min() {
        None => Ok(()),
        Some(instance) => {
            let at: Vec<String> =
                found.block.axes.iter().zip(instance).map(|(axis, value)| format!("{} = {value}", axis.var)).collect();
            let message = format!(
                "the condition of block `{}` leaves out {}, which is in its domain",
                found.block.name,
                at.join(", ")
            );
            Err(fault(message, "write the condition into the statement, as `T.if_then_else` or `if`"))
        }
    }
}

type Instances = HashSet<Vec<i128>>;

/// The instances of the domain that run, and those at which the predicate fails. `None` if there are too many, or an extent has no value.
fn instances(found: &Found<'_>, predicate: &Expr) -> Option<(Instances, Instances)> {
    let mut at = Bindings::new();
    let loops: Vec<&Var> = found.outer.iter().chain(&found.loops).map(|run| &run.var).collect();
    let axes = found.block.axes.iter();
    let parts = axes.flat_map(|axis| [&axis.min, &axis.extent]).chain(found.parts.bindings.iter().copied());
    let extents = found.outer.iter().chain(&found.loops).flat_map(|run| [&run.min, &run.extent]);
    for var in parts.chain(extents).chain([predicate]).flat_map(Expr::vars) {
        if !loops.contains(&&var) {
            at.insert(var, SIZE);
        }
    }
    let mut both = (Instances::new(), Instances::new());
    let mut budget = MOST;
    walk(found, predicate, 0, &mut at, &mut budget, &mut both)?;
    Some(both)
}

/// Runs the loops from a depth on.
fn walk(
    found: &Found<'_>,
    predicate: &Expr,
    depth: usize,
    at: &mut Bindings,
    budget: &mut i128,
    both: &mut (Instances, Instances),
) -> Option<()> {
    *budget = budget.checked_sub(1).filter(|left| *left > 0)?;
    let Some(run) = found.outer.iter().chain(&found.loops).nth(depth) else {
        let mut inside = at.clone();
        let mut instance = Vec::new();
        for (axis, value) in found.block.axes.iter().zip(&found.parts.bindings) {
            let value = value.eval_index(at).ok()?;
            let (min, extent) = (axis.min.eval_index(&inside).ok()?, axis.extent.eval_index(&inside).ok()?);
            if value < min || value >= min.checked_add(extent)? {
                return Some(());
            }
            inside.insert(axis.var.clone(), value);
            instance.push(value);
        }
        let runs = predicate.eval_index(at).ok()? != 0;
        if runs {
            both.0.insert(instance)
        } else {
            both.1.insert(instance)
        };
        return Some(());
    };
    let (min, extent) = (run.min.eval_index(at).ok()?, run.extent.eval_index(at).ok()?);
    for value in min..min.checked_add(extent)? {
        at.insert(run.var.clone(), value);
        walk(found, predicate, depth + 1, at, budget, both)?;
    }
    Some(())
}
