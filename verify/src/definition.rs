//! Obligations of a definition: every read lies inside its tensor, and no index computation overflows.
//!
//! ```text
//! stage B of shape (n), B[i] = A[i + 1]      checked as the program      for i in n: B[i] = A[i + 1]
//! ```
//!
//! A definition has no order of execution, but a stage has the same reads, under the same conditions, as the loop nest
//! that computes its elements one by one. That program is checked like any other one, so nothing about definitions is
//! believed that is not also checked for programs.

use std::collections::HashSet;

use rayon::prelude::*;
use tilewright_ir::{Axis, Buffer, Definition, Expr, ForKind, FuncAttrs, PrimFunc, Stage, StageBody, Stmt, Var};

use crate::judge::{Judge, Report};

impl Judge {
    /// Decides `bounds` and `overflow` for every read of a definition, stage by stage on all threads. The reports are
    /// in the order of the stages.
    pub fn check_definition(&self, definition: &Definition) -> Vec<Report> {
        self.check_definition_assuming(definition, &[])
    }

    /// [`Judge::check_definition`] for calls of which the caller guarantees conditions. That each condition has a value is not decided
    /// here.
    pub fn check_definition_assuming(&self, definition: &Definition, assumed: &[Expr]) -> Vec<Report> {
        let tensors = Tensors::of(definition);
        let stages = definition.stages.par_iter();
        self.in_parallel(|| {
            stages.flat_map_iter(|stage| self.check_stage(stage, definition, &tensors, assumed)).collect()
        })
    }

    /// Decides the obligations of one stage, as a loop nest over its axes and reduction axes.
    fn check_stage(
        &self,
        stage: &Stage,
        definition: &Definition,
        tensors: &Tensors<'_>,
        assumed: &[Expr],
    ) -> Vec<Report> {
        let (reduced, value, start, cond) = match &stage.body {
            StageBody::Elementwise(value) => (&[][..], value, None, None),
            StageBody::Reduce { axes, source, init, condition, .. } => {
                (axes.as_slice(), source, init.as_ref(), condition.as_ref())
            }
        };
        // Reduction axes are inner loops; that their order does not matter is not needed for bounds and overflow.
        let index: Vec<Expr> = stage.axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        let store = |value: &Expr| Stmt::store(&stage.buffer, index.clone(), value.clone());
        let around = |body, axis: &Axis| Stmt::for_loop(&axis.var, axis.extent.clone(), ForKind::Serial, body);
        let combined = cond.map_or_else(|| store(value), |cond| Stmt::guarded(cond.clone(), store(value)));
        let combined = reduced.iter().rev().fold(combined, around);
        let body = start.map_or_else(|| combined.clone(), |start| Stmt::seq(vec![store(start), combined.clone()]));
        let body = stage.axes.iter().rev().fold(body, around);
        let body = assumed.iter().rev().fold(body, |body, cond| Stmt::guarded(cond.clone(), body));
        let used = used(stage, [Some(value), start, cond].into_iter().flatten());
        let tensors = tensors.all.iter().filter(|(tensor, is_first)| *is_first || used.contains(tensor));
        let params: Vec<_> = tensors.map(|(tensor, _)| (tensor.data.clone(), (*tensor).clone())).collect();
        let func = PrimFunc {
            name: definition.name.clone(),
            params: params.iter().map(|(param, _)| param.clone()).collect(),
            buffer_map: params,
            // A condition may name the extent of a tensor that the stage does not read.
            attrs: FuncAttrs { extents: extents(definition), ..FuncAttrs::default() },
            body,
        };
        self.check_program(&func)
    }
}

/// The variables that stand alone as an extent of a parameter: at least 1 in every call.
fn extents(definition: &Definition) -> Vec<Var> {
    let shapes = definition.params.iter().flat_map(|param| &param.shape);
    shapes.filter_map(|extent| if let Expr::Var(var) = extent { Some(var.clone()) } else { None }).collect()
}

/// The tensors of a definition in order: its parameters, then the computed ones. With each, whether it is the first one
/// of its shape, strides and offset.
///
/// It is a premise that every tensor can be addressed, even in stages that do not read it. Tensors of one shape share
/// one premise, so a stage needs the first tensor of each shape and those that it reads. With all tensors, a chain of n
/// stages would cost time proportional to n squared.
struct Tensors<'a> {
    /// Each tensor, and whether it is the first of its shape.
    all: Vec<(&'a Buffer, bool)>,
}

impl<'a> Tensors<'a> {
    /// The tensors of a definition.
    fn of(definition: &'a Definition) -> Self {
        let params: HashSet<&Buffer> = definition.params.iter().collect();
        let computed = definition.stages.iter().map(|stage| &stage.buffer);
        let tensors = definition.params.iter().chain(computed.filter(|tensor| !params.contains(tensor)));
        let mut firsts: Vec<&Buffer> = Vec::new();
        let all = tensors.map(|tensor| {
            let known = firsts.iter().any(|first| {
                first.shape == tensor.shape
                    && first.strides == tensor.strides
                    && first.elem_offset == tensor.elem_offset
            });
            if !known {
                firsts.push(tensor);
            }
            (tensor, !known)
        });
        Self { all: all.collect() }
    }
}

/// The tensors that a stage computes or reads.
fn used<'a>(stage: &'a Stage, values: impl Iterator<Item = &'a Expr>) -> HashSet<&'a Buffer> {
    let mut used = HashSet::from([&stage.buffer]);
    for value in values {
        value.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                used.insert(buffer);
            }
        });
    }
    used
}
