//! Methods of a stage: the primitives that rewrite its loops, and its layout.

use tilewright_ir::{self as ir, AttrValue, Diagnostic, Expr, ForKind, Severity};

use super::args::{Arg, Args};
use super::builtins::index_names;
use super::caches::to_scope;
use super::eval::Interp;
use super::schedule::{LayoutLoops, SplitBy, Stage};
use super::value::{Eval, IterRef, StageRef, Value, to_index, to_int, to_items, to_str, wrong_kind};

impl<'a> Interp<'a> {
    pub(super) fn stage(&self, stage: StageRef) -> &Stage {
        let schedule = &self.schedules[stage.schedule];
        let position = schedule.position(stage.tensor).unwrap_or_else(|| unreachable!("stages are never removed"));
        &schedule.stages[position]
    }

    fn stage_mut(&mut self, stage: StageRef) -> &mut Stage {
        let schedule = &mut self.schedules[stage.schedule];
        let position = schedule.position(stage.tensor).unwrap_or_else(|| unreachable!("stages are never removed"));
        &mut schedule.stages[position]
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

    pub(super) fn stage_method(&mut self, stage: StageRef, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
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
            "tile_layout" => self.tile_layout(stage, args),
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
                    "every tensor is computed in a nest of its own: transform_layout, tile_layout, split, tile, reorder, fuse, bind, vectorize, unroll, parallel and set_scope are known",
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
        if self.stage(stage).tiled.is_some() {
            let message = "transform_layout comes before tile_layout, whose tiles are the last word";
            return Err(Diagnostic::error("tile-layout", Some(span), message));
        }
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

impl<'a> Interp<'a> {
    /// `s[A].tile_layout("{1,0:T(8,128)(2,1)}", pad_value=0, axis_separators=[2])`: an XLA layout of what
    /// `transform_layout` made of the tensor, if anything. The loops stay as they are.
    fn tile_layout(&mut self, stage: StageRef, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (layout, layout_span) = args.need("layout")?;
        let pad_value = args.take("pad_value")?.filter(|(value, _)| !matches!(value, Value::None));
        let separators = args.take("axis_separators")?.filter(|(value, _)| !matches!(value, Value::None));
        let span = args.span;
        args.finish()?;
        let text = to_str(&layout, layout_span)?;
        let data = self.stage(stage);
        let rank = data.layouts.last().map_or(self.tensors[stage.tensor].buffer.rank(), |map| map.outputs().len());
        if data.tiled.is_some() {
            let message = format!("`{}` has a tiled layout already", self.tensors[stage.tensor].buffer);
            return Err(Diagnostic::error("tile-layout", Some(span), message)
                .with_help("write all tiles into one layout: {1,0:T(8,128)(2,1)}"));
        }
        if data.separators.as_ref().is_some_and(|separators| !separators.is_empty()) {
            let message = "separators stand between the axes of the last layout, which is the tiled one";
            return Err(Diagnostic::error("axis-separators", Some(span), message)
                .with_help("give them to tile_layout: axis_separators=[2]"));
        }
        let layout = tilewright_script::read_xla_layout(&text, rank).map_err(|found| {
            let first = found.into_iter().next();
            let message = first.as_ref().map_or("this is no layout", |fault| fault.message.as_str());
            let help = first.as_ref().and_then(|fault| fault.help.as_deref()).unwrap_or("such as {1,0:T(8,128)}");
            Diagnostic::error("tile-layout", Some(layout_span), message).with_help(help)
        })?;
        let pad_value = pad_value.map(|(value, span)| pad_value_of(&value, span)).transpose()?;
        let request = ir::TileRequest { layout, pad_value };
        let positions = match &separators {
            None => Vec::new(),
            Some((value, span)) => to_items(value).iter().map(|item| position(item, *span)).collect::<Eval<_>>()?,
        };
        let place = separators.map_or(span, |(_, span)| span);
        let separators = ir::AxisSeparators::new(positions, request.physical_rank());
        let separators =
            separators.map_err(|error| Diagnostic::error("axis-separators", Some(place), error.to_string()))?;
        let data = self.stage_mut(stage);
        (data.tiled, data.separators, data.layout_span) = (Some(request), Some(separators), Some(span));
        Ok(Value::None)
    }
}

fn position(value: &Value<'_>, span: ir::Span) -> Eval<usize> {
    usize::try_from(to_int(value, span)?).map_err(|_| wrong_kind(span, "a number of axes", value))
}

/// A number.
fn pad_value_of(value: &Value<'_>, span: ir::Span) -> Eval<ir::Scalar> {
    match value {
        Value::Bool(value) => Ok(ir::Scalar::Int((*value).into())),
        Value::Int(value) => Ok(ir::Scalar::Int((*value).into())),
        Value::Float(value) => Ok(ir::Scalar::Float(*value)),
        Value::Expr(Expr::Int { value, .. }) => Ok(ir::Scalar::Int(*value)),
        Value::Expr(Expr::Float { value, .. }) => Ok(ir::Scalar::Float(*value)),
        _ => Err(wrong_kind(span, "a number", value)),
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
