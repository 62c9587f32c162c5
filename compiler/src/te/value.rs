//! Values of the evaluator: Python's own, and those of the TE dialect.

use std::cell::RefCell;
use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Label, Span};
use tilewright_script::Scripted;
use tilewright_script::te::Function;

use super::blocks::{BlockValue, LoopValue};
use super::build::{Loop, ReduceAxis, ScheduleId, Tensor, check_extent, check_shape};

/// A result, or the first error.
pub(super) type Eval<T> = Result<T, Diagnostic>;

/// Adds source positions to errors of the builder, which have none.
pub(super) trait Placed {
    /// Returns the result with `span` as the primary label of the error, unless it has one.
    fn at(self, span: Span) -> Self;
}

impl Placed for Diagnostic {
    fn at(mut self, span: Span) -> Self {
        // A primary label has no text; a label with text is secondary, such as "defined here".
        if self.labels.first().is_none_or(|label| !label.message.is_empty()) {
            self.labels.insert(0, Label { span, message: String::new() });
        }
        self
    }
}

impl<T> Placed for Eval<T> {
    fn at(self, span: Span) -> Self {
        self.map_err(|error| error.at(span))
    }
}

/// A value. `'a` is the lifetime of the syntax tree.
#[derive(Clone)]
pub(super) enum Value<'a> {
    None,
    Ellipsis,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    List(Rc<RefCell<Vec<Value<'a>>>>),
    Tuple(Rc<[Value<'a>]>),
    Dict(Rc<Vec<(Value<'a>, Value<'a>)>>),
    /// A symbolic scalar.
    Expr(ir::Expr),
    /// An axis of a definition: of a computed tensor or a reduction.
    Axis(AxisValue),
    /// A reduction that is not a tensor yet.
    Reduction(Rc<ir::StageBody>),
    Tensor(Tensor),
    /// `tensor.op`.
    Op(Tensor),
    Schedule(ScheduleId),
    /// `schedule[tensor]`.
    Stage(StageRef),
    /// `schedule[tensor].op`.
    StageOp(StageRef),
    /// A loop of a stage.
    Iter(Loop),
    /// `te.thread_axis(...)`.
    Thread {
        tag: ir::ThreadTag,
        extent: Option<ir::Expr>,
    },
    AxisSeparator,
    /// A function or a module in TVMScript.
    Script(Rc<Scripted>),
    /// `tvm.tir.Schedule(...)`, by its number.
    BlockSchedule(usize),
    /// A block of such a schedule.
    Block(BlockValue),
    /// A loop of such a schedule.
    BlockLoop(LoopValue),
    /// A function of the program.
    Closure(Rc<Closure<'a>>),
    /// A dotted path into a library, such as `tvm.te.compute`; `builtins.` holds Python's own.
    Path(Rc<str>),
    /// A value that is accepted and ignored, such as a target or a lowered function.
    Opaque(&'static str),
}

/// A stage of a schedule, named by its tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StageRef {
    pub(super) schedule: ScheduleId,
    pub(super) tensor: Tensor,
}

/// An axis of a definition, and the range that it runs over.
#[derive(Clone)]
pub(super) struct AxisValue {
    pub(super) range: ReduceAxis,
    /// Whether it is a reduction axis, as opposed to an axis of a tensor.
    pub(super) reduce: bool,
}

/// A function, the frame it was made in and the values of its defaults.
pub(super) struct Closure<'a> {
    pub(super) function: &'a Function,
    pub(super) frame: usize,
    pub(super) defaults: Vec<Option<Value<'a>>>,
}

impl Value<'_> {
    /// Describes the value in messages. A table.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Ellipsis => "`...`".to_owned(),
            Self::Bool(_) => "a truth value".to_owned(),
            Self::Int(value) => format!("the integer {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Str(text) => format!("the string \"{text}\""),
            Self::List(_) => "a list".to_owned(),
            Self::Tuple(_) => "a tuple".to_owned(),
            Self::Dict(_) => "a dictionary".to_owned(),
            Self::Expr(expr) => format!("an expression of type {}", expr.dtype()),
            Self::Axis(axis) => format!("the axis `{}`", axis.range.axis.var),
            Self::Reduction(_) => "a reduction".to_owned(),
            Self::Tensor(_) => "a tensor".to_owned(),
            Self::Op(_) | Self::StageOp(_) => "an operation".to_owned(),
            Self::Schedule(_) | Self::BlockSchedule(_) => "a schedule".to_owned(),
            Self::Script(scripted) => format!("`{}`, which is TVMScript", scripted.name),
            Self::Block(_) => "a block".to_owned(),
            Self::Stage(_) => "a stage".to_owned(),
            Self::Iter(_) | Self::BlockLoop(_) => "a loop".to_owned(),
            Self::Thread { tag, .. } => format!("the thread axis {tag}"),
            Self::AxisSeparator => "te.AXIS_SEPARATOR".to_owned(),
            Self::Closure(closure) => format!("the function `{}`", closure.function.name),
            Self::Path(path) => format!("`{path}`"),
            Self::Opaque(what) => (*what).to_owned(),
        }
    }

    /// A list.
    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(RefCell::new(items)))
    }

    /// Converts an extent or another integer expression to a value: a constant becomes a Python integer, so that programs
    /// can compute with it.
    pub(super) fn of_index(expr: &ir::Expr) -> Self {
        let constant = expr.as_const_int().and_then(|value| i64::try_from(value).ok());
        constant.map_or_else(|| Self::Expr(expr.clone()), Self::Int)
    }

    /// Returns the items of a list or a tuple; `None` for other values.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.borrow().clone()),
            Self::Tuple(items) => Some(items.to_vec()),
            _ => None,
        }
    }

    /// Returns whether the value is a Python number, which takes the type of the other operand.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Float(_))
    }
}

/// The error for a value of the wrong kind.
pub(super) fn wrong_kind(span: Span, expected: &str, value: &Value<'_>) -> Diagnostic {
    Diagnostic::error("type", Some(span), format!("expected {expected}, found {}", value.describe()))
}

/// The scalar expression that a value stands for: `float32` for a Python float, and for an integer `int32`, or `int64` if
/// it does not fit.
///
/// # Errors
/// `type`; `reduction-inside` for a reduction, which is no value until a tensor holds it.
pub(super) fn to_expr(value: &Value<'_>, span: Span) -> Eval<ir::Expr> {
    match value {
        Value::Int(value) => Ok(ir::Expr::int(*value)),
        Value::Float(value) => Ok(ir::Expr::float_of(*value, ir::ScalarType::Float32)),
        Value::Bool(value) => Ok(ir::Expr::bool(*value)),
        Value::Expr(expr) => Ok(expr.clone()),
        Value::Axis(axis) => Ok(axis.range.index()),
        Value::Reduction(_) => {
            let message = "a reduction must be the whole value of a te.compute";
            Err(Diagnostic::error("reduction-inside", Some(span), message)
                .with_help("give the reduction a tensor of its own, and compute with that tensor"))
        }
        Value::Iter(_) => Err(wrong_kind(span, "a scalar", value)
            .with_help("loops of a schedule have no value; the axes of a definition do (te.reduce_axis, B.op.axis)")),
        Value::Tensor(_) => Err(wrong_kind(span, "a scalar", value).with_help("index the tensor: A[i, j]")),
        _ => Err(wrong_kind(span, "a scalar", value)),
    }
}

/// An integer expression of one lane.
pub(super) fn to_index(value: &Value<'_>, span: Span) -> Eval<ir::Expr> {
    let expr = to_expr(value, span)?;
    let ty = expr.dtype();
    if ty.scalar.is_integer() && ty.is_scalar() { Ok(expr) } else { Err(wrong_kind(span, "an integer", value)) }
}

/// An integer that is known while the program is evaluated.
pub(super) fn to_int(value: &Value<'_>, span: Span) -> Eval<i64> {
    match value {
        Value::Int(value) => Ok(*value),
        Value::Bool(value) => Ok(i64::from(*value)),
        Value::Expr(expr) => expr
            .as_const_int()
            .and_then(|value| i64::try_from(value).ok())
            .ok_or_else(|| wrong_kind(span, "a constant integer", value)),
        _ => Err(wrong_kind(span, "a constant integer", value)),
    }
}

/// A string.
pub(super) fn to_str(value: &Value<'_>, span: Span) -> Eval<Rc<str>> {
    if let Value::Str(text) = value { Ok(text.clone()) } else { Err(wrong_kind(span, "a string", value)) }
}

/// An element type, from its name.
pub(super) fn to_dtype(value: &Value<'_>, span: Span) -> Eval<ir::DataType> {
    let text = to_str(value, span)?;
    let ty: ir::DataType =
        text.parse().map_err(|error: ir::DataTypeError| Diagnostic::error("dtype", Some(span), error.to_string()))?;
    if ty.scalar == ir::ScalarType::Handle {
        return Err(Diagnostic::error("dtype", Some(span), "a handle is no element type"));
    }
    Ok(ty)
}

/// The items of a list or a tuple; anything else is one item.
pub(super) fn to_items<'a>(value: &Value<'a>) -> Vec<Value<'a>> {
    value.items().unwrap_or_else(|| vec![value.clone()])
}

/// A shape. An extent below 1 is reported before an item further on that is no integer.
pub(super) fn to_shape(value: &Value<'_>, span: Span) -> Eval<Vec<ir::Expr>> {
    let mut shape = Vec::new();
    for item in to_items(value) {
        let extent = to_index(&item, span)?;
        check_extent(&extent).at(span)?;
        shape.push(extent);
    }
    check_shape(&shape).at(span)?;
    Ok(shape)
}
