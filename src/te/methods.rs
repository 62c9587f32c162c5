//! Attributes, items and methods of values: tensors, schedules, stages.

use tilewright_ir::{self as ir, AttrValue, Diagnostic, Expr, ForKind, Severity, Span};

use super::args::{Arg, Args};
use super::arith;
use super::builtins::{index_names, unsupported_path};
use super::eval::Interp;
use super::inline::{effective_body, reads};
use super::schedule::{LayoutLoops, Schedule, SplitBy, Stage, Work};
use super::value::{
    AxisValue, Eval, IterRef, StageRef, Tensor, TensorKind, Value, to_dtype, to_index, to_int, to_items, to_str,
    wrong_kind,
};

impl<'a> Interp<'a> {
    /// `value.name`.
    pub(super) fn attribute(&mut self, value: &Value<'a>, name: &str, span: Span) -> Eval<Value<'a>> {
        let unknown = || {
            let message = format!("{} has no attribute `{name}` that is supported", value.describe());
            Err(Diagnostic::error("attribute", Some(span), message))
        };
        match (value, name) {
            (Value::Path(path), _) if matches!(&**path, "tvm.te" | "tvm") && name == "AXIS_SEPARATOR" => {
                Ok(Value::AxisSeparator)
            }
            (Value::Path(path), _) if &**path != "tvm" && !path.starts_with("tvm.") => {
                Err(unsupported_path(&format!("{path}.{name}"), span))
            }
            (Value::Path(path), _) => Ok(Value::Path(format!("{path}.{name}").into())),
            (Value::Tensor(tensor), "shape") => {
                let shape = &self.tensors[*tensor].buffer.shape;
                Ok(Value::list(shape.iter().map(Value::of_index).collect()))
            }
            (Value::Tensor(tensor), "dtype") => Ok(Value::Str(self.tensors[*tensor].buffer.dtype.to_string().into())),
            (Value::Tensor(tensor) | Value::Op(tensor), "name") => {
                Ok(Value::Str(self.tensors[*tensor].buffer.name.as_str().into()))
            }
            (Value::Tensor(tensor), "ndim") => {
                Ok(Value::Int(i64::try_from(self.tensors[*tensor].buffer.rank()).unwrap_or(i64::MAX)))
            }
            (Value::Tensor(tensor), "op") => Ok(Value::Op(*tensor)),
            (Value::Op(tensor), "axis" | "reduce_axis") => self.definition_axes(*tensor, name == "reduce_axis", span),
            (Value::Stage(stage), "op") => Ok(Value::StageOp(*stage)),
            (Value::StageOp(stage), "axis" | "reduce_axis") => {
                let stage_data = self.stage(*stage);
                let loops = if name == "axis" { &stage_data.roots } else { &stage_data.reduced };
                let stage = *stage;
                Ok(Value::list(loops.iter().map(|&iter| Value::Iter(IterRef { stage, iter })).collect()))
            }
            (Value::StageOp(stage), "name") => Ok(Value::Str(self.tensors[stage.tensor].buffer.name.as_str().into())),
            (Value::Axis(axis), "var") => Ok(Value::Expr(axis.expr())),
            (Value::Expr(expr), "dtype") => Ok(Value::Str(expr.dtype().to_string().into())),
            (Value::Axis(axis), "dtype") => Ok(Value::Str(axis.var.dtype().to_string().into())),
            _ => unknown(),
        }
    }

    fn definition_axes(&self, tensor: usize, reduce: bool, span: Span) -> Eval<Value<'a>> {
        let TensorKind::Computed { axes, body } = &self.tensors[tensor].kind else {
            let message = format!("`{}` is not computed: it has no axes", self.tensors[tensor].buffer);
            return Err(Diagnostic::error("attribute", Some(span), message));
        };
        let reduced: &[ir::Axis] = match body {
            ir::StageBody::Reduce { axes, .. } => axes,
            ir::StageBody::Elementwise(_) => &[],
        };
        let value = |axis: &ir::Axis| {
            Value::Axis(AxisValue { var: axis.var.clone(), min: Expr::int(0), extent: axis.extent.clone(), reduce })
        };
        Ok(Value::list(if reduce { reduced } else { axes }.iter().map(value).collect()))
    }

    fn stage(&self, stage: StageRef) -> &Stage {
        let schedule = &self.schedules[stage.schedule];
        let position = schedule.position(stage.tensor).unwrap_or_else(|| unreachable!("stages are never removed"));
        &schedule.stages[position]
    }

    fn stage_mut(&mut self, stage: StageRef) -> &mut Stage {
        let schedule = &mut self.schedules[stage.schedule];
        let position = schedule.position(stage.tensor).unwrap_or_else(|| unreachable!("stages are never removed"));
        &mut schedule.stages[position]
    }

    /// `value[index]`.
    pub(super) fn item(&mut self, value: &Value<'a>, index: &Value<'a>, span: Span) -> Eval<Value<'a>> {
        match value {
            Value::Tensor(tensor) => {
                let indices: Vec<_> = to_items(index).into_iter().map(|index| (index, span)).collect();
                self.load(*tensor, &indices, span)
            }
            Value::Schedule(schedule) => {
                let (Value::Tensor(tensor) | Value::Op(tensor)) = index else {
                    return Err(wrong_kind(span, "a tensor", index));
                };
                let (schedule, tensor) = (*schedule, *tensor);
                if self.schedules[schedule].position(tensor).is_none() {
                    let message = format!("the schedule has no stage of `{}`", self.tensors[tensor].buffer);
                    return Err(Diagnostic::error("no-stage", Some(span), message)
                        .with_help("a schedule has the tensors that its outputs need, and the caches made in it"));
                }
                Ok(Value::Stage(StageRef { schedule, tensor }))
            }
            Value::List(_) | Value::Tuple(_) => {
                let items = value.items().unwrap_or_default();
                let at = to_int(index, span)?;
                let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let at = if at < 0 { at.saturating_add(count) } else { at };
                usize::try_from(at).ok().and_then(|at| items.get(at)).cloned().ok_or_else(|| {
                    let message = format!("the index is out of range: there are {count} items");
                    Diagnostic::error("index", Some(span), message)
                })
            }
            Value::Dict(pairs) => {
                for (key, item) in pairs.iter() {
                    if matches!(
                        arith::compare(tilewright_script::te::CompareOp::Eq, key, index, span)?,
                        Value::Bool(true)
                    ) {
                        return Ok(item.clone());
                    }
                }
                Err(Diagnostic::error("index", Some(span), "the dictionary has no such key"))
            }
            Value::Expr(Expr::Load { .. }) => Err(Diagnostic::error("rank", Some(span), "an element has no index")
                .with_help("write all indices in one pair of brackets: A[i, j]")),
            _ => Err(wrong_kind(span, "a tensor, a list or a schedule", value)),
        }
    }

    /// `receiver.name(args)`.
    pub(super) fn method(
        &mut self,
        receiver: &Value<'a>,
        place: Span,
        name: &str,
        mut args: Args<'a>,
    ) -> Eval<Value<'a>> {
        let span = args.span;
        match (receiver, name) {
            (Value::Schedule(schedule), _) => self.schedule_method(*schedule, name, args),
            (Value::Stage(stage), _) => self.stage_method(*stage, name, args),
            (Value::Op(tensor), "output") => {
                args.need("index")?;
                args.finish()?;
                Ok(Value::Tensor(*tensor))
            }
            (Value::List(items), "append") => {
                let (item, _) = args.need("item")?;
                args.finish()?;
                items.borrow_mut().push(item);
                Ok(Value::None)
            }
            (Value::Expr(_) | Value::Axis(_) | Value::Int(_) | Value::Float(_), "astype") => {
                let (dtype, dtype_span) = args.need("dtype")?;
                args.finish()?;
                let expr = super::value::to_expr(receiver, place)?;
                let ty = to_dtype(&dtype, dtype_span)?;
                if ty.lanes != expr.dtype().lanes && !ty.is_scalar() {
                    let message = format!("{} has {} lanes, {ty} has {}", expr, expr.dtype().lanes, ty.lanes);
                    return Err(Diagnostic::error("type", Some(span), message));
                }
                let ty = ty.with_lanes(expr.dtype().lanes);
                self.symbolic(arith::cast(expr, ty), span)
            }
            (Value::Expr(_) | Value::Axis(_), "equal") => {
                let (other, _) = args.need("other")?;
                args.finish()?;
                arith::compare(tilewright_script::te::CompareOp::Eq, receiver, &other, span)
            }
            _ => {
                let message = format!("{} has no method `{name}` that is supported", receiver.describe());
                Err(Diagnostic::error("method", Some(span), message))
            }
        }
    }

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

    fn schedule_method(&mut self, schedule: usize, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
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

    /// A loop of the stage: one of its own, or the axis of the definition that it runs over.
    fn loop_of(&self, stage: StageRef, (value, span): &Arg<'a>) -> Eval<usize> {
        match value {
            Value::Iter(iter) if iter.stage == stage => Ok(iter.iter),
            Value::Iter(iter) => {
                let other = &self.tensors[iter.stage.tensor].buffer;
                let name = &self.stage(iter.stage).loops[iter.iter].name;
                let message =
                    format!("`{name}` is a loop of `{other}`, not of `{}`", self.tensors[stage.tensor].buffer);
                Err(Diagnostic::error("not-a-loop", Some(*span), message))
            }
            Value::Axis(axis) => {
                let found = self.stage(stage).loops.iter().position(|run| run.axis.as_ref() == Some(&axis.var));
                found.ok_or_else(|| {
                    let message = format!("`{}` is no loop of `{}`", axis.var, self.tensors[stage.tensor].buffer);
                    Diagnostic::error("not-a-loop", Some(*span), message).with_help(
                        "the loops of a stage are s[B].op.axis, s[B].op.reduce_axis and what its methods return",
                    )
                })
            }
            _ => Err(wrong_kind(*span, "a loop of the stage", value)),
        }
    }

    fn stage_method(&mut self, stage: StageRef, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let iter = |iter| Value::Iter(IterRef { stage, iter });
        if self.schedules[stage.schedule].inlined.contains(&stage.tensor) && name != "compute_inline" {
            let message = format!("`{}` is inlined: it has no loops", self.tensors[stage.tensor].buffer);
            return Err(Diagnostic::error("inlined", Some(span), message));
        }
        match name {
            "split" => {
                let run = args.need("parent")?;
                let factor = args.take("factor")?.filter(|(value, _)| !matches!(value, Value::None));
                let parts = args.take("nparts")?.filter(|(value, _)| !matches!(value, Value::None));
                args.finish()?;
                let by = match (factor, parts) {
                    (Some((value, span)), None) => SplitBy::Factor(to_int(&value, span)?),
                    (None, Some((value, span))) => SplitBy::Parts(to_int(&value, span)?),
                    _ => {
                        let message = "split takes either a factor or nparts";
                        return Err(Diagnostic::error("split", Some(span), message));
                    }
                };
                let run = self.loop_of(stage, &run)?;
                let (outer, inner) = self.stage_mut(stage).split(run, by, span)?;
                Ok(Value::Tuple([iter(outer), iter(inner)].into()))
            }
            "tile" => {
                let (x, y) = (args.need("x_parent")?, args.need("y_parent")?);
                let (fx, fy) = (args.need("x_factor")?, args.need("y_factor")?);
                args.finish()?;
                let (x, y) = (self.loop_of(stage, &x)?, self.loop_of(stage, &y)?);
                let (fx, fy) = (to_int(&fx.0, fx.1)?, to_int(&fy.0, fy.1)?);
                let data = self.stage_mut(stage);
                let (xo, xi) = data.split(x, SplitBy::Factor(fx), span)?;
                let (yo, yi) = data.split(y, SplitBy::Factor(fy), span)?;
                data.reorder(&[xo, yo, xi, yi].map(|iter| (iter, span)))?;
                Ok(Value::Tuple([xo, yo, xi, yi].map(iter).into()))
            }
            "reorder" => {
                let mut order = Vec::new();
                for arg in args.rest() {
                    order.push((self.loop_of(stage, &arg)?, arg.1));
                }
                args.finish()?;
                self.stage_mut(stage).reorder(&order)?;
                Ok(Value::None)
            }
            "fuse" => {
                let mut loops = Vec::new();
                for arg in args.rest() {
                    loops.push(self.loop_of(stage, &arg)?);
                }
                args.finish()?;
                let Some((&first, rest)) = loops.split_first() else {
                    return Err(Diagnostic::error("fuse", Some(span), "fuse needs at least one loop"));
                };
                let data = self.stage_mut(stage);
                let fused = rest.iter().try_fold(first, |outer, &inner| data.fuse(outer, inner, span))?;
                Ok(iter(fused))
            }
            "bind" => {
                let (run, (thread, thread_span)) = (args.need("ivar")?, args.need("thread_ivar")?);
                args.finish()?;
                let run = self.loop_of(stage, &run)?;
                let Value::Thread { tag, extent } = thread else {
                    return Err(wrong_kind(thread_span, "a thread axis", &thread)
                        .with_help("make one by te.thread_axis(\"blockIdx.x\")"));
                };
                self.stage_mut(stage).bind(run, tag, extent.as_ref(), span)?;
                Ok(Value::None)
            }
            "vectorize" | "unroll" | "parallel" => {
                let run = args.need("var")?;
                args.finish()?;
                let run = self.loop_of(stage, &run)?;
                let kind = match name {
                    "vectorize" => ForKind::Vectorized,
                    "unroll" => ForKind::Unrolled,
                    _ => ForKind::Parallel,
                };
                self.stage_mut(stage).set_kind(run, kind, span)?;
                Ok(Value::None)
            }
            "transform_layout" => self.transform_layout(stage, args),
            "compute_inline" => {
                args.finish()?;
                self.schedules[stage.schedule].inline(&self.tensors, stage.tensor, span)?;
                Ok(Value::None)
            }
            "set_scope" => {
                let scope = to_scope(&args.need("scope")?)?;
                args.finish()?;
                self.stage_mut(stage).scope = scope;
                Ok(Value::None)
            }
            "pragma" => self.pragma(stage, args),
            "compute_root" => {
                // Every stage has a nest of its own at the root already.
                args.finish()?;
                Ok(Value::None)
            }
            _ => {
                let message = format!("a stage's `{name}` is not supported");
                Err(Diagnostic::error("unsupported-primitive", Some(span), message).with_help(
                    "every tensor is computed in a nest of its own: transform_layout, split, tile, reorder, fuse, bind, vectorize, unroll, parallel and set_scope are known",
                ))
            }
        }
    }

    fn pragma(&mut self, stage: StageRef, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (run, (key, key_span)) = (args.need("var")?, args.need("pragma_type")?);
        let value = args.take("pragma_value")?;
        args.finish()?;
        let run = self.loop_of(stage, &run)?;
        let key = to_str(&key, key_span)?;
        if !matches!(&*key, "auto_unroll_max_step" | "unroll_explicit" | "unroll") {
            let message = format!("the pragma `{key}` is not supported");
            return Err(Diagnostic::error("pragma", Some(key_span), message)
                .with_help("auto_unroll_max_step and unroll_explicit are known; they are hints"));
        }
        let value = match value {
            None | Some((Value::None, _)) => AttrValue::Bool(true),
            Some((Value::Bool(value), _)) => AttrValue::Bool(value),
            Some((value, span)) => AttrValue::Int(to_int(&value, span)?),
        };
        self.stage_mut(stage).loops[run].annotations.push((format!("pragma_{key}"), value));
        Ok(Value::None)
    }

    /// `s[B].transform_layout(lambda ...)`: RFC 39, "Guide-level explanation".
    fn transform_layout(&mut self, stage: StageRef, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (function, function_span) = args.need("mapping_function")?;
        let span = args.span;
        args.finish()?;
        let Value::Closure(closure) = &function else {
            let help = "write the physical indices, such as `lambda n, h, w, c: [n, c // 4, h, w, c % 4]`";
            return Err(wrong_kind(function_span, "a function of the indices", &function).with_help(help));
        };
        let logical = self.tensors[stage.tensor].buffer.shape.clone();
        let domain = self.stage(stage).layout_shape(&logical)?;
        let names = index_names(closure, domain.len(), function_span)?;
        let vars: Vec<_> =
            names.iter().zip(&domain).map(|(name, extent)| ir::Var::new(name.as_str(), extent.dtype())).collect();
        let values = vars.iter().map(|var| Value::Expr(Expr::from(var))).collect();
        let result = self.apply(closure, values, span)?;
        let Some(items) = result.items() else {
            return Err(wrong_kind(closure.function.span, "a list of physical indices", &result));
        };
        let (mut outputs, mut separators) = (Vec::new(), Vec::new());
        for item in &items {
            match item {
                Value::AxisSeparator => separators.push(outputs.len()),
                _ => outputs.push(to_index(item, closure.function.span)?),
            }
        }
        let stray = outputs.iter().flat_map(Expr::vars).find(|var| !vars.contains(var) && !self.symbols.contains(var));
        if let Some(stray) = stray {
            let message = format!("`{stray}` is no index of the layout");
            return Err(Diagnostic::error("stray-axis", Some(closure.function.span), message));
        }
        let map = ir::IndexMap::new(vars, domain, outputs, separators).map_err(|error| {
            Diagnostic::error("index-map", Some(closure.function.span), error.to_string())
                .with_help("a separator stands between two axes, and every other item is an integer")
        })?;
        let names = layout_names(&map);
        let place = closure.function.span;
        let loops = self.stage_mut(stage).transform_layout(&map, &names, span).map_err(|mut error| {
            if error.labels.is_empty() {
                error.labels.push(ir::Label { span: place, message: String::new() });
            }
            error
        })?;
        let loops = match loops {
            LayoutLoops::Rewritten(loops) => loops,
            LayoutLoops::Kept(why) => {
                let name = &self.tensors[stage.tensor].buffer.name;
                let message = format!("the loops over `{name}` do not follow this layout: {why}");
                let mut warning = Diagnostic::error("loops-kept", Some(span), message).with_help(
                    "the layout itself is recorded; call transform_layout before split, fuse and bind, with a map that has an inverse",
                );
                warning.severity = Severity::Warning;
                self.warnings.push(warning);
                Vec::new()
            }
        };
        Ok(Value::list(loops.into_iter().map(|iter| Value::Iter(IterRef { stage, iter })).collect()))
    }
}

/// Loop names of a layout: `c // 4` is `c_outer`, `c % 4` is `c_inner`, a plain index keeps its name.
fn layout_names(map: &ir::IndexMap) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (position, output) in map.outputs().iter().enumerate() {
        let name = match output {
            Expr::Var(var) => var.name().to_owned(),
            Expr::Binary(op, lhs, rhs) => match (op, &**lhs, rhs.as_const_int()) {
                (ir::BinaryOp::FloorDiv, Expr::Var(var), Some(_)) => format!("{var}_outer"),
                (ir::BinaryOp::FloorMod, Expr::Var(var), Some(_)) => format!("{var}_inner"),
                _ => format!("axis{position}"),
            },
            _ => format!("axis{position}"),
        };
        let name = if names.contains(&name) { format!("axis{position}") } else { name };
        names.push(name);
    }
    names
}

/// An axis for each extent of a buffer.
fn fresh_axes(buffer: &ir::Buffer, prefix: &str) -> Vec<ir::Axis> {
    let axis = |(position, extent): (usize, &Expr)| ir::Axis {
        var: ir::Var::new(format!("{prefix}{position}"), extent.dtype()),
        extent: extent.clone(),
    };
    buffer.shape.iter().enumerate().map(axis).collect()
}

fn to_scope((value, span): &Arg<'_>) -> Eval<ir::Scope> {
    let text = to_str(value, *span)?;
    text.parse().map_err(|error: ir::buffer::ScopeError| Diagnostic::error("scope", Some(*span), error.to_string()))
}
