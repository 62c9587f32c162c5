//! Attributes, items and methods of values.
//!
//! Each of the functions here is a table of what the dialect supports; anything else is an error that names the value and
//! the attribute, never ignored.

use tilewright_ir::{self as ir, Diagnostic, Expr, Span};

use super::args::Args;
use super::arith;
use super::build::{ReduceAxis, Tensor, cast};
use super::builtins::unsupported_path;
use super::eval::Interp;
use super::value::{AxisValue, Eval, Placed, StageRef, Value, to_dtype, to_int, to_items, wrong_kind};

/// The attributes that [`Interp::attribute`] knows of a value.
fn attributes(value: &Value<'_>) -> &'static [&'static str] {
    match value {
        Value::Tensor(_) => &["shape", "dtype", "name", "ndim", "op"],
        Value::Op(_) | Value::StageOp(_) => &["axis", "reduce_axis", "name"],
        Value::Stage(_) => &["op"],
        Value::Axis(_) => &["var", "dtype"],
        Value::Expr(_) => &["dtype"],
        Value::BlockSchedule(_) => &["mod", "trace"],
        _ => &[],
    }
}

/// The methods that [`Interp::method`] knows of a value.
fn methods(value: &Value<'_>) -> &'static [&'static str] {
    match value {
        Value::Op(_) => &["output"],
        Value::List(_) => &["append"],
        Value::Expr(_) | Value::Axis(_) => &["astype", "equal"],
        Value::Int(_) | Value::Float(_) => &["astype"],
        _ => &[],
    }
}

/// Adds the name that is meant, or else all that there are.
fn suggesting(fault: Diagnostic, name: &str, known: &[&str]) -> Diagnostic {
    match (tilewright_script::nearest(name, known.iter().copied()), known) {
        (Some(near), _) => fault.with_help(format!("did you mean `{near}`?")),
        (None, []) => fault,
        (None, known) => fault.with_help(format!("known here: {}", known.join(", "))),
    }
}

impl<'a> Interp<'a> {
    /// `value.name`. A table: the attributes of each kind of value.
    pub(super) fn attribute(&mut self, value: &Value<'a>, name: &str, span: Span) -> Eval<Value<'a>> {
        let unknown = || {
            let message = format!("{} has no attribute `{name}` that is supported", value.describe());
            Err(suggesting(Diagnostic::error("attribute", Some(span), message), name, attributes(value)))
        };
        match (value, name) {
            (Value::Path(path), _)
                if name == "AXIS_SEPARATOR" && (matches!(&**path, "tvm.te" | "tvm") || path.ends_with(".IndexMap")) =>
            {
                Ok(Value::AxisSeparator)
            }
            (Value::Path(path), _) if &**path != "tvm" && !path.starts_with("tvm.") => {
                Err(unsupported_path(&format!("{path}.{name}"), span))
            }
            // A module's names are not looked up here: an unknown one is refused when it is called.
            (Value::Path(path), _) => Ok(Value::Path(format!("{path}.{name}").into())),
            (Value::BlockSchedule(schedule), _) => {
                self.block_schedule_attribute(*schedule, name).map_or_else(unknown, Ok)
            }
            (Value::Tensor(tensor), "shape") => {
                let shape = &self.te.own(*tensor).buffer.shape;
                Ok(Value::list(shape.iter().map(Value::of_index).collect()))
            }
            (Value::Tensor(tensor), "dtype") => Ok(Value::Str(self.te.own(*tensor).buffer.dtype.to_string().into())),
            (Value::Tensor(tensor) | Value::Op(tensor), "name") => {
                Ok(Value::Str(self.te.own(*tensor).buffer.name.as_str().into()))
            }
            (Value::Tensor(tensor), "ndim") => {
                Ok(Value::Int(i64::try_from(self.te.own(*tensor).buffer.rank()).unwrap_or(i64::MAX)))
            }
            (Value::Tensor(tensor), "op") => Ok(Value::Op(*tensor)),
            (Value::Op(tensor), "axis" | "reduce_axis") => self.definition_axes(*tensor, name == "reduce_axis", span),
            (Value::Stage(stage), "op") => Ok(Value::StageOp(*stage)),
            (Value::StageOp(stage), "axis" | "reduce_axis") => {
                let stage = self.stage(*stage).at(span)?;
                let loops = if name == "axis" { stage.axes() } else { stage.reduce_axes() };
                Ok(Value::list(loops.into_iter().map(Value::Iter).collect()))
            }
            (Value::StageOp(stage), "name") => Ok(Value::Str(self.te.own(stage.tensor).buffer.name.as_str().into())),
            (Value::Axis(axis), "var") => Ok(Value::Expr(axis.range.index())),
            (Value::Expr(expr), "dtype") => Ok(Value::Str(expr.dtype().to_string().into())),
            (Value::Axis(axis), "dtype") => Ok(Value::Str(axis.range.axis.var.dtype().to_string().into())),
            _ => unknown(),
        }
    }

    /// `tensor.op.axis` and `tensor.op.reduce_axis`.
    fn definition_axes(&self, tensor: Tensor, reduce: bool, span: Span) -> Eval<Value<'a>> {
        let Some((axes, reduced)) = self.te.definition_axes(tensor).at(span)? else {
            let message = format!("{} is not computed: it has no axes", self.quoted(tensor));
            return Err(Diagnostic::error("attribute", Some(span), message));
        };
        let value = |axis: &ir::Axis| {
            Value::Axis(AxisValue { range: ReduceAxis { axis: axis.clone(), min: Expr::int(0) }, reduce })
        };
        Ok(Value::list(if reduce { reduced } else { axes }.iter().map(value).collect()))
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
                let stage = StageRef { schedule: *schedule, tensor: *tensor };
                // Only for its error: a tensor without a stage is refused here, not at the first primitive.
                self.stage(stage).at(span)?;
                Ok(Value::Stage(stage))
            }
            Value::Script(scripted) => Self::script_item(scripted, index, span),
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
            (Value::BlockSchedule(schedule), _) => self.block_method(*schedule, name, args),
            (Value::Script(_), _) => Self::script_method(receiver, name, span),
            (Value::Opaque(_), "show") => Ok(Value::None),
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
                // `astype("float32")` of a vector converts every lane.
                let ty = ty.with_lanes(expr.dtype().lanes);
                self.symbolic(cast(expr, ty), span)
            }
            (Value::Expr(_) | Value::Axis(_), "equal") => {
                let (other, _) = args.need("other")?;
                args.finish()?;
                arith::compare(tilewright_script::te::CompareOp::Eq, receiver, &other, span)
            }
            _ => {
                let message = format!("{} has no method `{name}` that is supported", receiver.describe());
                Err(suggesting(Diagnostic::error("method", Some(span), message), name, methods(receiver)))
            }
        }
    }
}
