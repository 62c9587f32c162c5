//! Schedules: which tensors are computed, in which order, and the functions that act on more than one stage.

use tilewright_ir::{self as ir, Axis, Diagnostic, Expr, Var};

use super::inline::reads;
use super::lower::{Lowered, Param, Request};
use super::primitives::Stage;
use super::rfactor::Factored;
use super::stage::{StageData, Work};
use super::{Builder, Built, ScheduleId, Tensor, TensorKind, body_expr, names, reduced_axes};

/// The stages of the tensors that some outputs need.
#[derive(Debug)]
pub(super) struct ScheduleData {
    pub(super) outputs: Vec<usize>,
    /// The stages, in the order of the program.
    pub(super) stages: Vec<StageData>,
    /// Tensors whose definitions replace the loads of them.
    pub(super) inlined: Vec<usize>,
    /// Reductions that are computed in two stages.
    pub(super) factored: Vec<Factored>,
    /// Warnings about the schedule.
    pub(super) warnings: Vec<Diagnostic>,
}

impl ScheduleData {
    /// The stages that have loops and memory of their own, and the inputs.
    pub(super) fn live_stages(&self) -> impl DoubleEndedIterator<Item = &StageData> {
        self.stages.iter().filter(|stage| !self.inlined.contains(&stage.tensor))
    }

    /// Position of the stage of a tensor.
    pub(super) fn position(&self, tensor: usize) -> Option<usize> {
        self.stages.iter().position(|stage| stage.tensor == tensor)
    }
}

/// A view of one schedule of a [`Builder`].
#[derive(Debug)]
pub struct Schedule<'b> {
    pub(super) te: &'b mut Builder,
    pub(super) index: usize,
}

impl Builder {
    /// A schedule of the tensors that some outputs need, themselves included: one stage each, in the order of their
    /// definition. An output that is named twice counts once.
    ///
    /// # Errors
    /// `schedule-input`: there is no output, or one is not computed. `foreign-tensor`.
    pub fn create_schedule(&mut self, outputs: &[Tensor]) -> Result<Schedule<'_>, Diagnostic> {
        let mut found = Vec::new();
        for &output in outputs {
            let data = self.data(output)?;
            if !matches!(data.kind, TensorKind::Computed { .. }) {
                let message = format!("`{}` is not computed: there is nothing to schedule", data.buffer);
                return Err(Diagnostic::error("schedule-input", None, message));
            }
            if !found.contains(&output.index) {
                found.push(output.index);
            }
        }
        if found.is_empty() {
            return Err(Diagnostic::error("schedule-input", None, "there is nothing to schedule"));
        }
        let stages = self.needed(&found).into_iter().map(|tensor| self.new_stage(tensor)).collect();
        let (inlined, factored, warnings) = (Vec::new(), Vec::new(), Vec::new());
        self.schedules.push(ScheduleData { outputs: found, stages, inlined, factored, warnings });
        let index = self.schedules.len() - 1;
        Ok(Schedule { te: self, index })
    }

    /// The tensors that some outputs need, themselves included, in the order of their definition.
    fn needed(&self, outputs: &[usize]) -> Vec<usize> {
        let mut needed = vec![false; self.tensors.len()];
        for &output in outputs {
            needed[output] = true;
        }
        // A tensor reads only tensors before it, so one pass from the last to the first is enough.
        for index in (0..self.tensors.len()).rev() {
            if needed[index]
                && let TensorKind::Computed { body, .. } = &self.tensors[index].kind
            {
                for read in reads(body).iter().filter_map(|buffer| self.position_of(buffer)) {
                    needed[read] = true;
                }
            }
        }
        (0..needed.len()).filter(|&index| needed[index]).collect()
    }

    /// The stage that runs the definition of a tensor; nothing is run for an input.
    pub(super) fn new_stage(&self, tensor: usize) -> StageData {
        let data = &self.tensors[tensor];
        match &data.kind {
            TensorKind::Computed { axes, body } => {
                StageData::new(tensor, Work::Compute(tensor), axes, reduced_axes(body))
            }
            TensorKind::Input | TensorKind::Cache { .. } => {
                StageData::new(tensor, Work::Input, &fresh_axes(&data.buffer, "i"), &[])
            }
        }
    }
}

/// An axis for each extent of a buffer.
pub(super) fn fresh_axes(buffer: &ir::Buffer, prefix: &str) -> Vec<Axis> {
    let axis = |(position, extent): (usize, &Expr)| Axis {
        var: Var::new(format!("{prefix}{position}"), extent.dtype()),
        extent: extent.clone(),
    };
    buffer.shape.iter().enumerate().map(axis).collect()
}

impl<'b> Schedule<'b> {
    /// A view of the schedule at a position.
    pub(super) fn open(te: &'b mut Builder, index: usize) -> Self {
        Self { te, index }
    }

    /// The handle of the schedule: [`Builder::schedule`] opens it again.
    pub fn id(&self) -> ScheduleId {
        ScheduleId { builder: self.te.id, index: self.index }
    }

    /// The stages.
    pub(super) fn data(&self) -> &ScheduleData {
        &self.te.schedules[self.index]
    }

    /// The stages, to be changed.
    pub(super) fn data_mut(&mut self) -> &mut ScheduleData {
        &mut self.te.schedules[self.index]
    }

    /// The stage of a tensor or a cache.
    ///
    /// # Errors
    /// `no-stage`: no output needs the tensor. `foreign-tensor`.
    pub fn stage(&mut self, tensor: Tensor) -> Result<Stage<'_>, Diagnostic> {
        let position = self.position(tensor)?;
        Ok(Stage::open(Schedule::open(self.te, self.index), position))
    }

    /// [`Schedule::stage`], where the stage outlives this view.
    ///
    /// # Errors
    /// `no-stage`, `foreign-tensor`.
    pub fn into_stage(self, tensor: Tensor) -> Result<Stage<'b>, Diagnostic> {
        let position = self.position(tensor)?;
        Ok(Stage::open(self, position))
    }

    /// Position of the stage of a tensor.
    pub(super) fn position(&self, tensor: Tensor) -> Built<usize> {
        let buffer = &self.te.data(tensor)?.buffer;
        self.data().position(tensor.index).ok_or_else(|| {
            let message = format!("the schedule has no stage of `{buffer}`");
            Diagnostic::error("no-stage", None, message)
                .with_help("a schedule has the tensors that its outputs need, and the caches made in it")
        })
    }

    /// The parameters that a function has if its author names none: inputs in the order of their definition, outputs, and
    /// the symbolic extents that no shape of these binds.
    pub fn default_params(&self) -> Vec<Param> {
        let stages = self.data().stages.iter().map(|stage| stage.tensor);
        let mut tensors: Vec<usize> =
            stages.filter(|&tensor| matches!(self.te.tensors[tensor].kind, TensorKind::Input)).collect();
        tensors.sort_unstable();
        tensors.extend(&self.data().outputs);
        let mut params: Vec<Param> = tensors.iter().map(|&tensor| Param::Tensor(self.te.handle(tensor))).collect();
        params.extend(self.loose_symbols(&tensors).into_iter().map(Param::Scalar));
        params
    }

    /// Symbols that the definitions use and the shapes of the parameters do not bind.
    fn loose_symbols(&self, params: &[usize]) -> Vec<Var> {
        let tensors = &self.te.tensors;
        let mut used = Vec::new();
        for stage in &self.data().stages {
            let tensor = &tensors[stage.tensor];
            used.extend(tensor.buffer.shape.iter().flat_map(Expr::vars));
            if let TensorKind::Computed { body, .. } = &tensor.kind {
                used.extend(body_expr(body).vars());
                used.extend(reduced_axes(body).iter().flat_map(|axis| axis.extent.vars()));
            }
        }
        let bound: Vec<Var> =
            params.iter().flat_map(|&tensor| tensors[tensor].buffer.shape.iter().flat_map(Expr::vars)).collect();
        let mut loose: Vec<Var> = Vec::new();
        for var in used {
            if self.te.symbols.contains(&var) && !bound.contains(&var) && !loose.contains(&var) {
                loose.push(var);
            }
        }
        loose
    }

    /// Checks a list of parameters: every tensor and scalar belongs to the builder, and is named once.
    ///
    /// # Errors
    /// `parameters`, `foreign-tensor`.
    pub fn check_params(&self, params: &[Param]) -> Result<(), Diagnostic> {
        for (at, param) in params.iter().enumerate() {
            let name = match param {
                Param::Tensor(tensor) => self.te.data(*tensor)?.buffer.name.clone(),
                Param::Scalar(var) if !self.te.symbols.contains(var) => {
                    let message = format!("`{var}` is no symbolic extent of this builder");
                    return Err(Diagnostic::error("parameters", None, message));
                }
                Param::Scalar(var) => var.name().to_owned(),
            };
            if params[..at].contains(param) {
                return Err(Diagnostic::error("parameters", None, format!("`{name}` is given twice")));
            }
        }
        Ok(())
    }

    /// Lowers the schedule to a function of the given parameters: one loop nest for each stage.
    ///
    /// The function computes what the definition says; layouts and tiles are recorded as attributes, which passes apply.
    /// The schedule can be changed and lowered again.
    ///
    /// # Errors
    /// `name`; those of [`Schedule::check_params`]; `parameters` if an input or output is missing, or the schedule does not
    /// compute a parameter; `vectorize-inner` if a loop is inside a vectorized one; `scope` if a parameter lives in shared
    /// or local memory; `unbound-extent` if no parameter binds a symbolic extent; and those of
    /// [`validate`](tilewright_ir::validate).
    pub fn lower(&self, params: &[Param], name: &str) -> Result<Lowered, Vec<Diagnostic>> {
        let one = |error| vec![error];
        names::is_printable(name).map_err(one)?;
        self.check_params(params).map_err(one)?;
        let (tensors, schedule) = (&self.te.tensors, self.data());
        super::lower::lower(&Request { tensors, schedule, params, name: name.to_owned() })
    }
}
