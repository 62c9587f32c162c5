//! Memory that decides what runs: parameters that neither program writes.
//!
//! ```text
//! if mask[i] > 0:                        what `mask` holds is the same in each iteration, and in both programs
//!     A[i] = A[i] + X[i]
//! ```
//!
//! Such a condition is a premise like one on loop variables: an element of the parameter is an unknown number that never changes.
//! So is the extent of a loop, as in `for j in range(length[i])`.
//! Conditions of the program after are looked at in terms of the buffers before. A buffer that moved may have padding, which
//! holds nothing, and is not followed.

use std::sync::Arc;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Buffer, Expr};

use super::{Program, Statement, is_partial};
use crate::claims::Relation;
use crate::path::{Step, is_premise};
use crate::steps::Steps;

/// Whether a condition is known wherever it is asked: it reads these buffers alone, and does no arithmetic with what it reads, which
/// may wrap.
pub(crate) fn is_known(cond: &Expr, constant: &[Buffer]) -> bool {
    loaded(cond).iter().all(|buffer| constant.contains(buffer)) && is_premise(cond, constant) && !is_partial(cond)
}

/// Whether an extent is known wherever it is asked: it reads these buffers alone, and is an integer as it is loaded, or the lesser or
/// greater of several. Arithmetic on it may wrap.
pub(crate) fn is_known_extent(extent: &Expr, constant: &[Buffer]) -> bool {
    match extent {
        Expr::Load { buffer, indices } => {
            let is_integer = buffer.dtype.is_scalar() && buffer.dtype.scalar.is_integer();
            let is_plain = |index: &Expr| !index.reads_memory() && !is_partial(index);
            is_integer && constant.contains(buffer) && indices.iter().all(is_plain)
        }
        Expr::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
            is_known_extent(a, constant) && is_known_extent(b, constant)
        }
        _ => !extent.reads_memory(),
    }
}

/// The buffers that an expression reads.
pub(crate) fn loaded(expr: &Expr) -> Vec<Buffer> {
    let mut found = Vec::new();
    expr.walk(&mut |part| {
        if let Expr::Load { buffer, .. } = part {
            found.push(buffer.clone());
        }
    });
    found
}

/// The buffers that decide what runs in a program.
fn deciding(program: &Program) -> Vec<Buffer> {
    let steps = program.statements.iter().flat_map(|store| &store.path.steps);
    steps.flat_map(Step::exprs).flat_map(loaded).collect()
}

/// Whether a program never writes a parameter. A program without stores writes nothing.
fn keeps(program: &Program, buffer: &Buffer) -> bool {
    program.statements.first().is_none_or(|store| store.path.constant.contains(buffer))
}

/// The program after with conditions on the buffers of the program before.
///
/// # Errors
/// A buffer that decides what runs was moved, or one of the programs writes it.
pub(crate) fn as_before(first: &Program, second: Program, relation: &Relation<'_>) -> Result<Program, String> {
    for buffer in deciding(first) {
        let after = relation.claim_of(&buffer).map_or(&buffer, |claim| &claim.after);
        if !keeps(&second, after) {
            return Err(format!("`{after}` decides what runs before, and is written after"));
        }
    }
    if deciding(&second).is_empty() {
        return Ok(second);
    }
    let of = |store: Statement| -> Result<Statement, String> {
        let mut path = store.path.clone();
        path.steps = in_terms_of_before(&store.path.steps, relation)?;
        let read: Vec<Buffer> = path.steps.iter().flat_map(Step::exprs).flat_map(loaded).collect();
        if let Some(written) = read.iter().find(|buffer| !keeps(first, buffer)) {
            return Err(format!("`{written}` is written before, and decides what runs after"));
        }
        path.constant = Arc::new(path.constant.iter().cloned().chain(read).collect());
        Ok(Statement { path, ..store })
    };
    let Program { statements, asserted, allocated } = second;
    let statements = statements.into_iter().map(of).collect::<Result<_, _>>()?;
    Ok(Program { statements, asserted, allocated })
}

/// Conditions of the program after on the buffers of the program before.
///
/// # Errors
/// A buffer was moved.
pub(crate) fn in_terms_of_before<'s>(
    steps: impl IntoIterator<Item = &'s Step>,
    relation: &Relation<'_>,
) -> Result<Steps, String> {
    let mut found = Steps::default();
    for step in steps {
        found.push(match step {
            Step::Guard(cond, holds) if cond.reads_memory() => Step::Guard(Unmoved { relation }.expr(cond)?, *holds),
            Step::Loop(var, min, extent) if extent.reads_memory() => {
                Step::Loop(var.clone(), min.clone(), Unmoved { relation }.expr(extent)?)
            }
            Step::Guard(..) | Step::Loop(..) | Step::Let(..) => step.clone(),
        });
    }
    Ok(found)
}

/// Puts the buffers before in the place of those after.
struct Unmoved<'a> {
    relation: &'a Relation<'a>,
}

impl Rewrite for Unmoved<'_> {
    type Error = String;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, String> {
        let before = self.relation.unmoved(buffer).filter(|before| before.dtype == buffer.dtype);
        before.cloned().ok_or_else(|| format!("`{buffer}` decides what runs, and was moved"))
    }
}
