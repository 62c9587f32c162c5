//! Methods of a stage: reads the arguments, and calls the primitive of the builder.

use tilewright_ir::{self as ir, AttrValue, Diagnostic, Expr};

use super::args::{Arg, Args};
use super::build::{LayoutLoops, Loop, SplitBy, Stage, Tensor, check_pragma};
use super::builtins::index_names;
use super::eval::Interp;
use super::schedules::to_scope;
use super::value::{Eval, Placed, StageRef, Value, to_index, to_int, to_items, to_str, wrong_kind};

/// The primitives of a stage.
const PRIMITIVES: [&str; 16] = [
    "transform_layout",
    "tile_layout",
    "split",
    "tile",
    "reorder",
    "fuse",
    "bind",
    "vectorize",
    "unroll",
    "parallel",
    "compute_at",
    "compute_inline",
    "compute_root",
    "double_buffer",
    "set_scope",
    "pragma",
];

impl<'a> Interp<'a> {
    /// Opens a stage.
    pub(super) fn stage(&mut self, stage: StageRef) -> Eval<Stage<'_>> {
        self.te.schedule(stage.schedule)?.into_stage(stage.tensor)
    }

    /// The name of a tensor, quoted.
    pub(super) fn quoted(&self, tensor: Tensor) -> String {
        format!("`{}`", self.te.own(tensor).buffer)
    }

    /// A loop of the stage: one of its own, or the axis of the definition that it runs over.
    pub(super) fn loop_of(&mut self, stage: StageRef, (value, span): &Arg<'a>) -> Eval<Loop> {
        let data = self.stage(stage).at(*span)?;
        match value {
            Value::Iter(run) => data.describe(*run).map(|_| *run).at(*span),
            Value::Axis(axis) => data.loop_over(&axis.range.axis.var).at(*span),
            _ => Err(wrong_kind(*span, "a loop of the stage", value)),
        }
    }

    /// Returns the loops named by all remaining positional arguments.
    fn loops_of(&mut self, stage: StageRef, args: &mut Args<'a>) -> Eval<Vec<(Loop, ir::Span)>> {
        args.rest().iter().map(|arg| Ok((self.loop_of(stage, arg)?, arg.1))).collect()
    }

    /// `s[B].name(args)`. A table of the primitives: each arm reads the arguments in TVM's order and calls the builder.
    pub(super) fn stage_method(&mut self, stage: StageRef, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        self.te.set_place(Some(span));
        if name != "compute_inline" {
            // Before the arguments are read: an inlined stage has no loops that they could name.
            self.stage(stage).and_then(|stage| stage.check_live()).at(span)?;
        }
        match name {
            "split" => {
                let run = args.need("parent")?;
                let by = split_by(args)?;
                let run = self.loop_of(stage, &run)?;
                let (outer, inner) = self.stage(stage)?.split(run, by).at(span)?;
                Ok(Value::Tuple([outer, inner].map(Value::Iter).into()))
            }
            "tile" => {
                let (x, y) = (args.need("x_parent")?, args.need("y_parent")?);
                let (fx, fy) = (args.need("x_factor")?, args.need("y_factor")?);
                args.finish()?;
                let (x, y) = (self.loop_of(stage, &x)?, self.loop_of(stage, &y)?);
                let (fx, fy) = (to_int(&fx.0, fx.1)?, to_int(&fy.0, fy.1)?);
                let loops = self.stage(stage)?.tile(x, y, fx, fy).at(span)?;
                Ok(Value::Tuple(loops.map(Value::Iter).into()))
            }
            "reorder" => {
                let order = self.loops_of(stage, &mut args)?;
                args.finish()?;
                let loops: Vec<Loop> = order.iter().map(|(run, _)| *run).collect();
                let mut data = self.stage(stage)?;
                data.reorder(&loops).map_err(|error| {
                    // The error points to the first argument that is no longer a loop or that is named again.
                    let blamed = order
                        .iter()
                        .enumerate()
                        .find(|(at, (run, _))| loops[..*at].contains(run) || data.position(*run).is_err());
                    error.at(blamed.map_or(span, |(_, (_, span))| *span))
                })?;
                Ok(Value::None)
            }
            "fuse" => {
                let loops: Vec<Loop> = self.loops_of(stage, &mut args)?.into_iter().map(|(run, _)| run).collect();
                args.finish()?;
                Ok(Value::Iter(self.stage(stage)?.fuse(&loops).at(span)?))
            }
            "bind" => {
                let (run, (thread, thread_span)) = (args.need("ivar")?, args.need("thread_ivar")?);
                args.finish()?;
                let run = self.loop_of(stage, &run)?;
                let Value::Thread { tag, extent } = thread else {
                    return Err(wrong_kind(thread_span, "a thread axis", &thread)
                        .with_help("make one by te.thread_axis(\"blockIdx.x\")"));
                };
                self.stage(stage)?.bind(run, tag, extent.as_ref()).at(span)?;
                Ok(Value::None)
            }
            "vectorize" | "unroll" | "parallel" => {
                let run = args.need("var")?;
                args.finish()?;
                let run = self.loop_of(stage, &run)?;
                let mut data = self.stage(stage)?;
                match name {
                    "vectorize" => data.vectorize(run),
                    "unroll" => data.unroll(run),
                    _ => data.parallel(run),
                }
                .at(span)?;
                Ok(Value::None)
            }
            "transform_layout" => self.transform_layout(stage, args),
            "tile_layout" => self.tile_layout(stage, args),
            "compute_inline" => {
                args.finish()?;
                self.stage(stage)?.compute_inline().at(span)?;
                Ok(Value::None)
            }
            "set_scope" => {
                let scope = to_scope(&args.need("scope")?)?;
                args.finish()?;
                self.stage(stage)?.set_scope(scope).at(span)?;
                Ok(Value::None)
            }
            "pragma" => self.pragma(stage, args),
            "compute_at" => {
                let (parent, run) = (args.need("parent")?, args.need("scope")?);
                args.finish()?;
                let Value::Stage(reader) = parent.0 else {
                    return Err(wrong_kind(parent.1, "a stage, such as s[C]", &parent.0));
                };
                let run = self.loop_of(reader, &run)?;
                self.te.set_place(Some(span));
                self.stage(stage)?.compute_at(run).at(span)?;
                Ok(Value::None)
            }
            "compute_root" | "double_buffer" => {
                args.finish()?;
                let mut data = self.stage(stage)?;
                if name == "compute_root" { data.compute_root() } else { data.double_buffer() }.at(span)?;
                Ok(Value::None)
            }
            _ => {
                let message = format!("a stage's `{name}` is not supported");
                let help = match tilewright_script::nearest(name, PRIMITIVES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("every tensor is computed in a nest of its own; known are {}", PRIMITIVES.join(", "))
                    }
                };
                Err(Diagnostic::error("unsupported-primitive", Some(span), message).with_help(help))
            }
        }
    }

    /// `s[B].pragma(var, pragma_type, pragma_value)`.
    fn pragma(&mut self, stage: StageRef, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (run, (key, key_span)) = (args.need("var")?, args.need("pragma_type")?);
        let value = args.take("pragma_value")?;
        args.finish()?;
        let run = self.loop_of(stage, &run)?;
        let key = to_str(&key, key_span)?;
        check_pragma(&key).at(key_span)?;
        let value = match value {
            None | Some((Value::None, _)) => AttrValue::Bool(true),
            Some((Value::Bool(value), _)) => AttrValue::Bool(value),
            Some((value, span)) => AttrValue::Int(to_int(&value, span)?),
        };
        self.stage(stage)?.pragma(run, &key, value).at(key_span)?;
        Ok(Value::None)
    }

    /// `s[B].transform_layout(lambda ...)`: RFC 39, "Guide-level explanation". Calls the function with the indices of the
    /// current layout, and makes an index map of what it returns.
    fn transform_layout(&mut self, stage: StageRef, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (function, function_span) = args.need("mapping_function")?;
        let span = args.span;
        args.finish()?;
        let domain = self.stage(stage)?.layout_shape().at(span)?;
        let Value::Closure(closure) = &function else {
            let help = "write the physical indices, such as `lambda n, h, w, c: [n, c // 4, h, w, c % 4]`";
            return Err(wrong_kind(function_span, "a function of the indices", &function).with_help(help));
        };
        let place = closure.function.span;
        let names = index_names(closure, domain.len(), function_span)?;
        let vars: Vec<_> =
            names.iter().zip(&domain).map(|(name, extent)| ir::Var::new(name.as_str(), extent.dtype())).collect();
        let values = vars.iter().map(|var| Value::Expr(Expr::from(var))).collect();
        let result = self.apply(closure, values, span)?;
        let Some(items) = result.items() else {
            return Err(wrong_kind(place, "a list of physical indices", &result));
        };
        let (mut outputs, mut separators) = (Vec::new(), Vec::new());
        for item in &items {
            match item {
                Value::AxisSeparator => separators.push(outputs.len()),
                _ => outputs.push(to_index(item, place)?),
            }
        }
        let map = ir::IndexMap::new(vars, domain, outputs, separators).map_err(|error| {
            Diagnostic::error("index-map", Some(place), error.to_string())
                .with_help("a separator stands between two axes, and every other item is an integer")
        })?;
        // The function may have called primitives of its own.
        self.te.set_place(Some(span));
        match self.stage(stage)?.transform_layout(&map).at(place)? {
            LayoutLoops::Rewritten(loops) => Ok(Value::list(loops.into_iter().map(Value::Iter).collect())),
            LayoutLoops::Kept(warning) => {
                self.warnings.push(warning.at(span));
                Ok(Value::list(Vec::new()))
            }
        }
    }

    /// `s[A].tile_layout("{1,0:T(8,128)(2,1)}", pad_value=0, axis_separators=[2])`: an XLA layout of the current layout. The
    /// loops stay as they are.
    fn tile_layout(&mut self, stage: StageRef, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (layout, layout_span) = args.need("layout")?;
        let pad_value = args.take("pad_value")?.filter(|(value, _)| !matches!(value, Value::None));
        let separators = args.take("axis_separators")?.filter(|(value, _)| !matches!(value, Value::None));
        let span = args.span;
        args.finish()?;
        let text = to_str(&layout, layout_span)?;
        // The text is read against the number of axes that it lays out.
        let rank = self.stage(stage)?.tile_rank().at(span)?;
        let layout = tilewright_script::read_xla_layout(&text, rank).map_err(|found| {
            let first = found.into_iter().next();
            let message = first.as_ref().map_or("this is no layout", |fault| fault.message.as_str());
            let help = first.as_ref().and_then(|fault| fault.help.as_deref()).unwrap_or("such as {1,0:T(8,128)}");
            Diagnostic::error("tile-layout", Some(layout_span), message).with_help(help)
        })?;
        let pad_value = pad_value.map(|(value, span)| pad_value_of(&value, span)).transpose()?;
        let (positions, place) = match &separators {
            None => (Vec::new(), span),
            Some((value, span)) => {
                (to_items(value).iter().map(|item| position(item, *span)).collect::<Eval<_>>()?, *span)
            }
        };
        let request = ir::TileRequest { layout, pad_value };
        self.te.set_place(Some(span));
        self.stage(stage)?.tile_layout(request, &positions).at(place)?;
        Ok(Value::None)
    }
}

/// `factor=` or `nparts=`, the last arguments of `split`.
fn split_by(mut args: Args<'_>) -> Eval<SplitBy> {
    let span = args.span;
    let factor = args.take("factor")?.filter(|(value, _)| !matches!(value, Value::None));
    let parts = args.take("nparts")?.filter(|(value, _)| !matches!(value, Value::None));
    args.finish()?;
    match (factor, parts) {
        (Some((value, span)), None) => to_int(&value, span).map(SplitBy::Factor),
        (None, Some((value, span))) => to_int(&value, span).map(SplitBy::Parts),
        (None, None) | (Some(_), Some(_)) => {
            Err(Diagnostic::error("split", Some(span), "split takes either a factor or nparts"))
        }
    }
}

/// Reads a number of axes, for a separator.
fn position(value: &Value<'_>, span: ir::Span) -> Eval<usize> {
    usize::try_from(to_int(value, span)?).map_err(|_| wrong_kind(span, "a number of axes", value))
}

/// Reads a pad value, a number.
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
