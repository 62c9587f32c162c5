//! `compute_inline`: a tensor without memory of its own, whose definition stands wherever it was read.
//!
//! ```text
//! B[i, j] = A[i, j] + 1
//! C[i, j] = B[j, i] * 2     s[B].compute_inline()     C[i, j] = (A[j, i] + 1) * 2
//! ```
//!
//! An inlined tensor is not a stage of the [`Definition`](tilewright_ir::Definition) either, which is taken after the
//! substitution.

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Diagnostic, Expr, Label, Span, StageBody};

use super::arith::{cast, check_size};
use super::schedule::ScheduleData;
use super::stage::Work;
use super::{Built, TensorData, TensorKind, body_expr};

/// Returns the definition of a computed tensor in a schedule, with loads of inlined tensors replaced by their definitions.
pub(super) fn effective_body(tensors: &[TensorData], schedule: &ScheduleData, tensor: usize) -> Built<StageBody> {
    inlined(tensors, schedule, tensor, schedule.body(tensors, tensor))
}

/// Returns the definition of a computed tensor as its author wrote it, with loads of inlined tensors replaced by their definitions.
pub(super) fn written_body(tensors: &[TensorData], schedule: &ScheduleData, tensor: usize) -> Built<StageBody> {
    let TensorKind::Computed { body, .. } = &tensors[tensor].kind else {
        unreachable!("only computed tensors have a definition")
    };
    inlined(tensors, schedule, tensor, body)
}

fn inlined(tensors: &[TensorData], schedule: &ScheduleData, tensor: usize, body: &StageBody) -> Built<StageBody> {
    if schedule.inlined.is_empty() {
        return Ok(body.clone());
    }
    let mut inliner = Inliner { tensors, schedule, place: tensors[tensor].place };
    Ok(match body {
        StageBody::Elementwise(value) => StageBody::Elementwise(inliner.expr(value)?),
        StageBody::Reduce { op, axes, init, condition, source } => StageBody::Reduce {
            op: *op,
            axes: axes.clone(),
            init: init.as_ref().map(|init| inliner.expr(init)).transpose()?,
            condition: condition.as_ref().map(|cond| inliner.expr(cond)).transpose()?,
            source: inliner.expr(source)?,
        },
    })
}

/// The tensors that a value reads.
pub(super) fn reads(body: &StageBody) -> Vec<Buffer> {
    let mut buffers: Vec<Buffer> = Vec::new();
    body_expr(body).walk(&mut |expr| {
        if let Expr::Load { buffer, .. } = expr
            && !buffers.contains(buffer)
        {
            buffers.push(buffer.clone());
        }
    });
    buffers
}

/// Replaces loads of inlined tensors by their definitions.
struct Inliner<'s> {
    tensors: &'s [TensorData],
    schedule: &'s ScheduleData,
    place: Option<Span>,
}

impl Rewrite for Inliner<'_> {
    type Error = Diagnostic;

    fn expr(&mut self, expr: &Expr) -> Built<Expr> {
        let Expr::Load { buffer, indices } = expr else { return self.expr_children(expr) };
        let indices = self.exprs(indices)?;
        let inlined = self.schedule.inlined.iter().find(|&&tensor| self.tensors[tensor].buffer == *buffer);
        let Some(&tensor) = inlined else { return Ok(Expr::load(buffer, indices)) };
        let TensorKind::Computed { axes, body: StageBody::Elementwise(value) } = &self.tensors[tensor].kind else {
            unreachable!("only elementwise tensors are inlined")
        };
        let vars = axes.iter().map(|axis| &axis.var);
        let indices = axes.iter().zip(indices).map(|(axis, index)| cast(index, axis.var.dtype()));
        // A tensor is defined after the tensors that it reads, so the recursion ends.
        let value = Substitution::new(vars, indices).apply(&self.expr(value)?);
        check_size(&value).map_err(|mut error| {
            // The error is about the definition that grows, so the label is added here, before the caller can add one for
            // the call of the primitive.
            error.labels.extend(self.place.map(|span| Label { span, message: String::new() }));
            error
        })?;
        Ok(value)
    }
}

impl ScheduleData {
    /// Marks a stage as inlined. The caller checks that the tensor has a stage.
    ///
    /// # Errors
    /// `inline`: the tensor is an output, has a reduction or no definition, or its stage or a copy of it was scheduled
    /// before.
    pub(super) fn inline(&mut self, tensors: &[TensorData], tensor: usize) -> Built<()> {
        let name = &tensors[tensor].buffer.name;
        let refuse = |why: &str, help: &str| {
            let message = format!("`{name}` cannot be inlined: {why}");
            Err(Diagnostic::error("inline", None, message).with_help(help))
        };
        if self.outputs.contains(&tensor) {
            return refuse("it is an output", "inline the tensors that it reads");
        }
        let elementwise = matches!(&tensors[tensor].kind, TensorKind::Computed { body: StageBody::Elementwise(_), .. });
        let Some(at) = self.position(tensor).filter(|_| elementwise) else {
            return refuse("it is no elementwise te.compute", "only tensors without a reduction are inlined");
        };
        // A cache of the tensor needs a stage to copy from.
        let copied = self.stages.iter().any(|stage| matches!(stage.work, Work::Copy(from) if from == tensor));
        let stage = &self.stages[at];
        if copied || !stage.is_fresh() || !stage.redirects.is_empty() || stage.work != Work::Compute(tensor) {
            return refuse("it is scheduled already", "call compute_inline before all else");
        }
        if !self.inlined.contains(&tensor) {
            self.inlined.push(tensor);
        }
        Ok(())
    }
}
