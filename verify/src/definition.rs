//! Obligations of a definition: what it reads exists.

use rayon::prelude::*;
use tilewright_ir::{Definition, Expr, ForKind, FuncAttrs, PrimFunc, Stage, StageBody, Stmt};

use crate::judge::{Judge, Report};

impl Judge {
    /// Decides `bounds` and `overflow` for every read of a definition.
    pub fn check_definition(&self, definition: &Definition) -> Vec<Report> {
        self.in_parallel(|| {
            definition.stages.par_iter().flat_map_iter(|stage| self.check_stage(stage, definition)).collect()
        })
    }

    fn check_stage(&self, stage: &Stage, definition: &Definition) -> Vec<Report> {
        let (reduced, value) = match &stage.body {
            StageBody::Elementwise(value) => (&[][..], value),
            StageBody::Reduce { axes, source, .. } => (axes.as_slice(), source),
        };
        // As a loop nest: what the language says of programs holds for it.
        let index = stage.axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        let mut body = Stmt::store(&stage.buffer, index, value.clone());
        for axis in stage.axes.iter().chain(reduced).rev() {
            body = Stmt::for_loop(&axis.var, axis.extent.clone(), ForKind::Serial, body);
        }
        let computed = definition.stages.iter().map(|stage| &stage.buffer);
        let temporary = computed.filter(|tensor| !definition.params.contains(tensor));
        let tensors = definition.params.iter().chain(temporary);
        let params: Vec<_> = tensors.map(|tensor| (tensor.data.clone(), tensor.clone())).collect();
        let func = PrimFunc {
            name: definition.name.clone(),
            params: params.iter().map(|(param, _)| param.clone()).collect(),
            buffer_map: params,
            attrs: FuncAttrs::default(),
            body,
        };
        self.check_program(&func)
    }
}
