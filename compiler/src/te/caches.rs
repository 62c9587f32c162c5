//! Schedules: how one is made, and the stages that `cache_read` and `cache_write` add.

use tilewright_ir::{self as ir, Diagnostic, Expr, Span};

use super::args::{Arg, Args};
use super::eval::Interp;
use super::inline::{effective_body, reads};
use super::schedule::{Schedule, Stage, Work};
use super::value::{Eval, Tensor, TensorKind, Value, to_items, to_str, wrong_kind};

impl<'a> Interp<'a> {
    /// `te.create_schedule(B.op)`.
    pub(super) fn create_schedule(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (ops, ops_span) = args.need("ops")?;
        let span = args.span;
        args.finish()?;
        let mut outputs = Vec::new();
        for op in to_items(&ops) {
            let (Value::Op(tensor) | Value::Tensor(tensor)) = op else {
                return Err(wrong_kind(ops_span, "a tensor's op, such as B.op", &op));
            };
            if !matches!(self.tensors[tensor].kind, TensorKind::Computed { .. }) {
                let message =
                    format!("`{}` is not computed: there is nothing to schedule", self.tensors[tensor].buffer);
                return Err(Diagnostic::error("schedule-input", Some(ops_span), message));
            }
            if !outputs.contains(&tensor) {
                outputs.push(tensor);
            }
        }
        if outputs.is_empty() {
            return Err(Diagnostic::error("schedule-input", Some(ops_span), "there is nothing to schedule"));
        }
        let needed = self.needed(&outputs);
        let stages = needed.into_iter().map(|tensor| self.new_stage(tensor)).collect();
        let (frame, function) = (self.frame(), self.function_name());
        self.schedules.push(Schedule { outputs, stages, inlined: Vec::new(), span, frame, function, lowered: false });
        Ok(Value::Schedule(self.schedules.len() - 1))
    }

    /// The tensors that some outputs need, themselves included, in the order of their definition: a tensor reads only
    /// tensors before it.
    fn needed(&self, outputs: &[usize]) -> Vec<usize> {
        let mut needed = vec![false; self.tensors.len()];
        for &output in outputs {
            needed[output] = true;
        }
        for index in (0..self.tensors.len()).rev() {
            if needed[index] {
                let TensorKind::Computed { body, .. } = &self.tensors[index].kind else { continue };
                for buffer in reads(body) {
                    if let Some(read) = self.tensors.iter().position(|tensor| tensor.buffer == buffer) {
                        needed[read] = true;
                    }
                }
            }
        }
        (0..needed.len()).filter(|&index| needed[index]).collect()
    }

    fn new_stage(&self, tensor: usize) -> Stage {
        match &self.tensors[tensor].kind {
            TensorKind::Computed { axes, body } => {
                let reduced: &[ir::Axis] = match body {
                    ir::StageBody::Reduce { axes, .. } => axes,
                    ir::StageBody::Elementwise(_) => &[],
                };
                Stage::new(tensor, Work::Compute(tensor), axes, reduced)
            }
            TensorKind::Input | TensorKind::Cache { .. } => {
                let axes = fresh_axes(&self.tensors[tensor].buffer, "i");
                Stage::new(tensor, Work::Input, &axes, &[])
            }
        }
    }

    pub(super) fn schedule_method(&mut self, schedule: usize, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        match name {
            "cache_read" => {
                let ((tensor, tensor_span), scope, (readers, readers_span)) =
                    (args.need("tensor")?, args.need("scope")?, args.need("readers")?);
                let span = args.span;
                args.finish()?;
                self.cache_read(schedule, (&tensor, tensor_span), &scope, (&readers, readers_span), span)
            }
            "cache_write" => {
                let (tensor, scope) = (args.need("tensor")?, args.need("scope")?);
                let span = args.span;
                args.finish()?;
                self.cache_write(schedule, &tensor, &scope, span)
            }
            "normalize" => {
                args.finish()?;
                Ok(Value::Schedule(schedule))
            }
            _ => {
                let message = format!("a schedule's `{name}` is not supported");
                Err(Diagnostic::error("unsupported-primitive", Some(args.span), message)
                    .with_help("cache_read and cache_write are; rfactor and create_group are not"))
            }
        }
    }

    /// Tensor of a stage of this schedule.
    fn scheduled(&self, schedule: usize, value: &Value<'a>, span: Span) -> Eval<(usize, usize)> {
        let (Value::Tensor(tensor) | Value::Op(tensor)) = value else {
            return Err(wrong_kind(span, "a tensor", value));
        };
        let position = self.schedules[schedule].position(*tensor).ok_or_else(|| {
            let message = format!("the schedule has no stage of `{}`", self.tensors[*tensor].buffer);
            Diagnostic::error("no-stage", Some(span), message)
        })?;
        Ok((*tensor, position))
    }

    /// The tensor whose values a tensor holds.
    fn base(&self, tensor: usize) -> usize {
        if let TensorKind::Cache { of } = self.tensors[tensor].kind { of } else { tensor }
    }

    fn add_cache(&mut self, of: usize, source: usize, scope: ir::Scope, span: Span) -> usize {
        let source = &self.tensors[source].buffer;
        let name = format!("{}_{}", source.name, scope.name().replace(':', "_"));
        let buffer = ir::Buffer::compact(name, source.dtype, source.shape.clone()).with(|info| {
            info.scope = scope;
            info.span = Some(span);
        });
        self.tensors.push(Tensor { buffer, kind: TensorKind::Cache { of }, named: true, span });
        self.tensors.len() - 1
    }

    /// A stage that copies a tensor to another scope, from where the readers take it.
    fn cache_read(
        &mut self,
        schedule: usize,
        (tensor, tensor_span): (&Value<'a>, Span),
        scope: &Arg<'a>,
        (readers, readers_span): (&Value<'a>, Span),
        span: Span,
    ) -> Eval<Value<'a>> {
        let (source, position) = self.scheduled(schedule, tensor, tensor_span)?;
        let scope = to_scope(scope)?;
        let base = self.base(source);
        let mut reading = Vec::new();
        for reader in to_items(readers) {
            let (_, at) = self.scheduled(schedule, &reader, readers_span)?;
            let stage = &self.schedules[schedule].stages[at];
            let is_reader = match stage.work {
                Work::Input => false,
                Work::Compute(of) => {
                    let body = effective_body(&self.tensors, &self.schedules[schedule], of)?;
                    let inlined = self.schedules[schedule].inlined.contains(&stage.tensor);
                    !inlined && reads(&body).contains(&self.tensors[base].buffer) && stage.holder(base) == source
                }
                Work::Copy(from) => from == source,
            };
            if !is_reader {
                let (reader, source) = (&self.tensors[stage.tensor].buffer, &self.tensors[source].buffer);
                let message = format!("`{reader}` does not read `{source}`");
                return Err(Diagnostic::error("cache-reader", Some(readers_span), message)
                    .with_help("name the tensors that read it"));
            }
            reading.push(at);
        }
        if reading.is_empty() {
            return Err(Diagnostic::error("cache-reader", Some(readers_span), "a cache needs a reader"));
        }
        let cache = self.add_cache(base, source, scope, span);
        for at in reading {
            let stage = &mut self.schedules[schedule].stages[at];
            if matches!(stage.work, Work::Copy(_)) {
                stage.work = Work::Copy(cache);
            }
            stage.redirects.retain(|(of, _)| *of != base);
            stage.redirects.push((base, cache));
        }
        let axes = match &self.tensors[base].kind {
            TensorKind::Computed { axes, .. } => axes.clone(),
            TensorKind::Input | TensorKind::Cache { .. } => fresh_axes(&self.tensors[base].buffer, "ax"),
        };
        let mut stage = Stage::new(cache, Work::Copy(source), &axes, &[]);
        stage.scope = scope;
        self.schedules[schedule].stages.insert(position + 1, stage);
        Ok(Value::Tensor(cache))
    }

    /// A stage that computes a tensor in another scope; the tensor's own stage copies from it.
    fn cache_write(&mut self, schedule: usize, tensor: &Arg<'a>, scope: &Arg<'a>, span: Span) -> Eval<Value<'a>> {
        let (of, position) = self.scheduled(schedule, &tensor.0, tensor.1)?;
        let scope = to_scope(scope)?;
        let stage = &self.schedules[schedule].stages[position];
        if !matches!(stage.work, Work::Compute(_)) {
            let message = format!("`{}` is not computed by its stage", self.tensors[of].buffer);
            return Err(Diagnostic::error("cache-write", Some(tensor.1), message)
                .with_help("cache_write takes a tensor made by te.compute, once"));
        }
        if !stage.is_fresh() {
            let message = "cache_write must come before the other primitives of the stage";
            return Err(Diagnostic::error("cache-write", Some(span), message));
        }
        let cache = self.add_cache(of, of, scope, span);
        let mut stage = self.new_stage(of);
        stage.tensor = cache;
        stage.scope = scope;
        let TensorKind::Computed { axes, .. } = &self.tensors[of].kind else {
            unreachable!("its stage computes it");
        };
        let mut copy = Stage::new(of, Work::Copy(cache), axes, &[]);
        let original = &mut self.schedules[schedule].stages[position];
        stage.redirects = std::mem::take(&mut original.redirects);
        copy.scope = original.scope;
        *original = copy;
        self.schedules[schedule].stages.insert(position, stage);
        Ok(Value::Tensor(cache))
    }
}

/// An axis for each extent of a buffer.
fn fresh_axes(buffer: &ir::Buffer, prefix: &str) -> Vec<ir::Axis> {
    let axis = |(position, extent): (usize, &Expr)| ir::Axis {
        var: ir::Var::new(format!("{prefix}{position}"), extent.dtype()),
        extent: extent.clone(),
    };
    buffer.shape.iter().enumerate().map(axis).collect()
}

pub(super) fn to_scope((value, span): &Arg<'_>) -> Eval<ir::Scope> {
    let text = to_str(value, *span)?;
    text.parse().map_err(|error: ir::buffer::ScopeError| {
        let names = ir::Scope::ALL.map(|scope| format!("'{scope}'")).join(", ");
        Diagnostic::error("scope", Some(*span), error.to_string()).with_help(format!("scopes are {names}"))
    })
}
