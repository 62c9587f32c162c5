//! Values of the evaluator: Python's own, and those of the TE dialect.

use std::cell::RefCell;
use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Span};
use tilewright_script::te::Function;

/// A result, or the first thing that is wrong.
pub(super) type Eval<T> = Result<T, Diagnostic>;

/// A value. `'a` is the life of the syntax tree.
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
    Reduction(Rc<Reduction>),
    /// An index into the evaluator's tensors.
    Tensor(usize),
    /// `tensor.op`.
    Op(usize),
    /// An index into the evaluator's schedules.
    Schedule(usize),
    /// `schedule[tensor]`.
    Stage(StageRef),
    /// `schedule[tensor].op`.
    StageOp(StageRef),
    /// A loop of a stage.
    Iter(IterRef),
    /// `te.thread_axis(...)`.
    Thread {
        tag: ir::ThreadTag,
        extent: Option<ir::Expr>,
    },
    AxisSeparator,
    /// `te.reduce_axis` and friends take no part in arithmetic; a function of the program does.
    Closure(Rc<Closure<'a>>),
    /// A dotted path into a library, such as `tvm.te.compute`; `builtins.` holds Python's own.
    Path(Rc<str>),
    /// Something that is accepted and has no use, such as a target or a lowered function.
    Opaque(&'static str),
}

/// A stage of a schedule, named by its tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StageRef {
    pub(super) schedule: usize,
    pub(super) tensor: usize,
}

/// A loop of a stage, by its position among the stage's loops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct IterRef {
    pub(super) stage: StageRef,
    pub(super) iter: usize,
}

/// An axis and the range `min..min + extent` that it runs over.
#[derive(Clone)]
pub(super) struct AxisValue {
    /// Runs from 0.
    pub(super) var: ir::Var,
    pub(super) min: ir::Expr,
    pub(super) extent: ir::Expr,
    pub(super) reduce: bool,
}

impl AxisValue {
    /// Its value in an expression.
    pub(super) fn expr(&self) -> ir::Expr {
        let var = ir::Expr::from(&self.var);
        if self.min.as_const_int() == Some(0) { var } else { var + self.min.clone() }
    }
}

/// `te.sum(source, axis=axes)` and the like.
pub(super) struct Reduction {
    pub(super) op: ir::ReduceOp,
    pub(super) axes: Vec<ir::Axis>,
    pub(super) source: ir::Expr,
}

/// A function, the frame it was made in and the values of its defaults.
pub(super) struct Closure<'a> {
    pub(super) function: &'a Function,
    pub(super) frame: usize,
    pub(super) defaults: Vec<Option<Value<'a>>>,
}

/// A tensor of the program.
pub(super) struct Tensor {
    /// In its logical shape.
    pub(super) buffer: ir::Buffer,
    pub(super) kind: TensorKind,
    /// Whether the name is settled: given, taken from an assignment, or the tensor was read already.
    pub(super) named: bool,
    pub(super) span: Span,
}

/// Where a tensor comes from.
pub(super) enum TensorKind {
    Input,
    Computed {
        axes: Vec<ir::Axis>,
        body: ir::StageBody,
    },
    /// Made by `cache_read` or `cache_write`: holds the same values as the tensor `of`, which is no cache.
    Cache {
        of: usize,
    },
}

impl Value<'_> {
    /// What it is, for messages.
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
            Self::Axis(axis) => format!("the axis `{}`", axis.var),
            Self::Reduction(_) => "a reduction".to_owned(),
            Self::Tensor(_) => "a tensor".to_owned(),
            Self::Op(_) | Self::StageOp(_) => "an operation".to_owned(),
            Self::Schedule(_) => "a schedule".to_owned(),
            Self::Stage(_) => "a stage".to_owned(),
            Self::Iter(_) => "a loop".to_owned(),
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

    /// An extent or another integer expression: a plain integer if it is a constant.
    pub(super) fn of_index(expr: &ir::Expr) -> Self {
        let constant = expr.as_const_int().and_then(|value| i64::try_from(value).ok());
        constant.map_or_else(|| Self::Expr(expr.clone()), Self::Int)
    }

    /// The items of a list or a tuple.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.borrow().clone()),
            Self::Tuple(items) => Some(items.to_vec()),
            _ => None,
        }
    }

    /// A number of Python's, which takes the type of the other operand.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Float(_))
    }
}

/// An error of the wrong kind of value.
pub(super) fn wrong_kind(span: Span, expected: &str, value: &Value<'_>) -> Diagnostic {
    Diagnostic::error("type", Some(span), format!("expected {expected}, found {}", value.describe()))
}

/// The scalar that a value stands for.
pub(super) fn to_expr(value: &Value<'_>, span: Span) -> Eval<ir::Expr> {
    match value {
        Value::Int(value) => Ok(ir::Expr::int(*value)),
        Value::Float(value) => Ok(ir::Expr::float_of(*value, ir::ScalarType::Float32)),
        Value::Bool(value) => Ok(ir::Expr::bool(*value)),
        Value::Expr(expr) => Ok(expr.clone()),
        Value::Axis(axis) => Ok(axis.expr()),
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

/// A plain integer.
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

/// An element type.
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

/// A shape: extents of at least 1, whose product is a size.
pub(super) fn to_shape(value: &Value<'_>, span: Span) -> Eval<Vec<ir::Expr>> {
    let mut shape = Vec::new();
    for item in to_items(value) {
        let extent = to_index(&item, span)?;
        check_extent(&extent, span)?;
        shape.push(extent);
    }
    let constants: Vec<i128> = shape.iter().filter_map(ir::Expr::as_const_int).collect();
    ir::checked_size(&constants).map_err(|error| Diagnostic::error("size", Some(span), error.to_string()))?;
    Ok(shape)
}

/// A constant extent is at least 1 and fits its type.
pub(super) fn check_extent(extent: &ir::Expr, span: Span) -> Eval<()> {
    match extent.as_const_int() {
        Some(value) if value < 1 => {
            let what = if value < 0 { "negative" } else { "below 1" };
            let message = format!("the extent {value} is {what}");
            let help = "every axis has at least one element; a size that is not known is `te.var(\"n\")`";
            Err(Diagnostic::error("extent", Some(span), message).with_help(help))
        }
        _ => Ok(()),
    }
}
