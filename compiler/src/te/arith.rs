//! Arithmetic on values: Python's on its own numbers, that of the builder on expressions.
//!
//! A Python number takes the type of the other operand: `A[i] + 1` is a `float32` sum for a `float32` tensor.

use tilewright_ir::{self as ir, DataType, Diagnostic, Expr, ScalarType, Span, TypeClass};
use tilewright_script::te::{BinaryOp, CompareOp, UnaryOp};

use super::build;
use super::value::{Eval, Placed, Value, to_expr, wrong_kind};

/// Longest list or string that an operator or a display with `*` may make.
pub(super) const MAX_ITEMS: usize = 10_000;

/// `lhs op rhs`.
pub(super) fn binary<'a>(op: BinaryOp, lhs: &Value<'a>, rhs: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    match (lhs, rhs) {
        (a, b) if a.is_number() && b.is_number() => numbers(op, a, b, span),
        (Value::List(_) | Value::Tuple(_) | Value::Str(_), _)
        | (_, Value::List(_) | Value::Tuple(_) | Value::Str(_)) => sequences(op, lhs, rhs, span),
        _ => symbolic(op, lhs, rhs, span).map(Value::Expr),
    }
}

/// Operators of lists, tuples and strings: `+` joins, `*` repeats.
fn sequences<'a>(op: BinaryOp, lhs: &Value<'a>, rhs: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    let unsupported = || {
        let message = format!("this operator is not defined for {} and {}", lhs.describe(), rhs.describe());
        Diagnostic::error("type", Some(span), message)
    };
    match (op, lhs, rhs) {
        (BinaryOp::Add, Value::Str(a), Value::Str(b)) if a.len() + b.len() <= MAX_ITEMS => {
            Ok(Value::Str(format!("{a}{b}").into()))
        }
        (BinaryOp::Add, Value::List(_), Value::List(_)) | (BinaryOp::Add, Value::Tuple(_), Value::Tuple(_)) => {
            let mut items = lhs.items().unwrap_or_default();
            items.extend(rhs.items().unwrap_or_default());
            if items.len() > MAX_ITEMS {
                return Err(Diagnostic::error("fuel", Some(span), "the list is too long"));
            }
            Ok(if matches!(lhs, Value::List(_)) { Value::list(items) } else { Value::Tuple(items.into()) })
        }
        (BinaryOp::Mul, Value::List(_) | Value::Tuple(_), Value::Int(times)) => {
            let items = lhs.items().unwrap_or_default();
            // A negative factor gives an empty list, as in Python.
            let times = usize::try_from(*times).unwrap_or(0);
            if items.len().saturating_mul(times) > MAX_ITEMS {
                return Err(Diagnostic::error("fuel", Some(span), "the list is too long"));
            }
            let items: Vec<_> = std::iter::repeat_n(items, times).flatten().collect();
            Ok(if matches!(lhs, Value::List(_)) { Value::list(items) } else { Value::Tuple(items.into()) })
        }
        _ => Err(unsupported()),
    }
}

/// Python's arithmetic of plain numbers.
fn numbers<'a>(op: BinaryOp, lhs: &Value<'a>, rhs: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    let (Some(a), Some(b)) = (as_int(lhs), as_int(rhs)) else { return floats(op, lhs, rhs, span) };
    if op == BinaryOp::Div {
        return floats(op, lhs, rhs, span);
    }
    let by_zero = || Diagnostic::error("division-by-zero", Some(span), "division by zero");
    let divided = || ir::scalar::floor_div_mod(a.into(), b.into()).ok_or_else(by_zero);
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::FloorDiv => i64::try_from(divided()?.0).ok(),
        BinaryOp::Mod => i64::try_from(divided()?.1).ok(),
        BinaryOp::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        BinaryOp::Shl => u32::try_from(b).ok().filter(|&b| b < 63).and_then(|b| a.checked_mul(1 << b)),
        BinaryOp::Shr => u32::try_from(b).ok().map(|b| a >> b.min(63)),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::BitXor => Some(a ^ b),
        BinaryOp::Div => None,
    };
    result.map(Value::Int).ok_or_else(|| {
        Diagnostic::error("overflow", Some(span), "the result leaves 64 bits, or a shift or power is out of range")
    })
}

/// Python's arithmetic for a float operand, and for `/` of two integers, which gives a float.
fn floats<'a>(op: BinaryOp, lhs: &Value<'a>, rhs: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    let (a, b) = (as_float(lhs), as_float(rhs));
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod if b == 0.0 => {
            return Err(Diagnostic::error("division-by-zero", Some(span), "division by zero"));
        }
        BinaryOp::Div => a / b,
        BinaryOp::FloorDiv => (a / b).floor(),
        BinaryOp::Mod => a - b * (a / b).floor(),
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
            return Err(Diagnostic::error("type", Some(span), "this operator takes integers"));
        }
    };
    Ok(Value::Float(result))
}

/// The value of a Python integer or truth value; `None` for any other value.
fn as_int(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}

/// The value of a Python number as a float.
#[expect(clippy::cast_precision_loss, reason = "Python converts an integer to the nearest float, too")]
pub(super) fn as_float(value: &Value<'_>) -> f64 {
    match value {
        Value::Float(value) => *value,
        _ => as_int(value).unwrap_or(0) as f64,
    }
}

/// The operator on expressions.
pub(super) fn symbolic(op: BinaryOp, lhs: &Value<'_>, rhs: &Value<'_>, span: Span) -> Eval<Expr> {
    let (a, b) = pair(lhs, rhs, span)?;
    let class = a.dtype().scalar.class();
    let ir_op = match op {
        BinaryOp::Add => ir::BinaryOp::Add,
        BinaryOp::Sub => ir::BinaryOp::Sub,
        BinaryOp::Mul => ir::BinaryOp::Mul,
        BinaryOp::Div if class != TypeClass::Float => {
            let message = "`/` of integers is ambiguous";
            return Err(Diagnostic::error("integer-division", Some(span), message)
                .with_help("use `//` (rounds down), tvm.tir.truncdiv (rounds towards zero) or .astype(\"float32\")"));
        }
        BinaryOp::Div => ir::BinaryOp::Div,
        BinaryOp::FloorDiv => ir::BinaryOp::FloorDiv,
        BinaryOp::Mod => ir::BinaryOp::FloorMod,
        BinaryOp::Pow => return build::call(ir::MathFn::Pow, vec![a, b]).at(span),
        BinaryOp::Shl => ir::BinaryOp::Shl,
        BinaryOp::Shr => ir::BinaryOp::Shr,
        BinaryOp::BitAnd => ir::BinaryOp::BitAnd,
        BinaryOp::BitOr => ir::BinaryOp::BitOr,
        BinaryOp::BitXor => ir::BinaryOp::BitXor,
    };
    build::binary(ir_op, a, b).at(span)
}

/// `lhs op rhs` of an operator of the language, operands promoted; arithmetic on `bool` is done in `int32`.
pub(super) fn apply_values(op: ir::BinaryOp, lhs: &Value<'_>, rhs: &Value<'_>, span: Span) -> Eval<Expr> {
    let (a, b) = pair(lhs, rhs, span)?;
    build::binary(op, a, b).at(span)
}

/// Compares two values: a truth value for numbers and objects of Python, a `bool` expression if an operand is symbolic.
///
/// # Errors
/// `type`: the values cannot be compared, or `is` is used for anything but `None`.
pub(super) fn compare<'a>(op: CompareOp, lhs: &Value<'a>, rhs: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    let ir_op = match op {
        CompareOp::Eq => ir::BinaryOp::Eq,
        CompareOp::Ne => ir::BinaryOp::Ne,
        CompareOp::Lt => ir::BinaryOp::Lt,
        CompareOp::Le => ir::BinaryOp::Le,
        CompareOp::Gt => ir::BinaryOp::Gt,
        CompareOp::Ge => ir::BinaryOp::Ge,
        CompareOp::Is | CompareOp::IsNot => {
            let same = matches!((lhs, rhs), (Value::None, Value::None));
            let against_none = matches!(lhs, Value::None) || matches!(rhs, Value::None);
            if !against_none {
                return Err(Diagnostic::error("type", Some(span), "`is` compares with None only").with_help("use `==`"));
            }
            return Ok(Value::Bool(same == (op == CompareOp::Is)));
        }
        CompareOp::In | CompareOp::NotIn => {
            let Some(items) = rhs.items() else { return Err(wrong_kind(span, "a list or a tuple", rhs)) };
            let mut found = false;
            for item in &items {
                // A symbolic comparison has no value yet and counts as false.
                found |= matches!(compare(CompareOp::Eq, lhs, item, span)?, Value::Bool(true));
            }
            return Ok(Value::Bool(found == (op == CompareOp::In)));
        }
    };
    let scalar = |value: &Value<'_>| matches!(value, Value::Expr(_) | Value::Axis(_)) || value.is_number();
    // Integers are compared as integers: two of more than 53 bits may be the same float.
    if let (Some(a), Some(b)) = (as_int(lhs), as_int(rhs)) {
        return Ok(Value::Bool(holds(ir_op, a.cmp(&b))));
    }
    if lhs.is_number() && rhs.is_number() {
        // A NaN is in no order with any number: only `!=` holds.
        let order = as_float(lhs).partial_cmp(&as_float(rhs));
        return Ok(Value::Bool(order.map_or(ir_op == ir::BinaryOp::Ne, |order| holds(ir_op, order))));
    }
    if scalar(lhs) && scalar(rhs) {
        let (a, b) = pair(lhs, rhs, span)?;
        return build::binary(ir_op, a, b).at(span).map(Value::Expr);
    }
    let equal = match (lhs, rhs) {
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Tensor(a) | Value::Op(a), Value::Tensor(b) | Value::Op(b)) => a == b,
        (Value::None, Value::None) => true,
        (Value::None | Value::Str(_), _) | (_, Value::None | Value::Str(_)) => false,
        _ => return Err(wrong_kind(span, "values that can be compared", lhs)),
    };
    match ir_op {
        ir::BinaryOp::Eq => Ok(Value::Bool(equal)),
        ir::BinaryOp::Ne => Ok(Value::Bool(!equal)),
        _ => Err(wrong_kind(span, "numbers", lhs)),
    }
}

/// Returns whether the comparison `op` holds for two numbers whose order is `order`.
fn holds(op: ir::BinaryOp, order: std::cmp::Ordering) -> bool {
    match op {
        ir::BinaryOp::Eq => order.is_eq(),
        ir::BinaryOp::Ne => order.is_ne(),
        ir::BinaryOp::Lt => order.is_lt(),
        ir::BinaryOp::Le => order.is_le(),
        ir::BinaryOp::Gt => order.is_gt(),
        ir::BinaryOp::Ge => order.is_ge(),
        // No comparison: no order satisfies it.
        ir::BinaryOp::Add
        | ir::BinaryOp::Sub
        | ir::BinaryOp::Mul
        | ir::BinaryOp::Div
        | ir::BinaryOp::FloorDiv
        | ir::BinaryOp::FloorMod
        | ir::BinaryOp::TruncDiv
        | ir::BinaryOp::TruncMod
        | ir::BinaryOp::Min
        | ir::BinaryOp::Max
        | ir::BinaryOp::And
        | ir::BinaryOp::Or
        | ir::BinaryOp::BitAnd
        | ir::BinaryOp::BitOr
        | ir::BinaryOp::BitXor
        | ir::BinaryOp::Shl
        | ir::BinaryOp::Shr => false,
    }
}

/// `op operand`.
pub(super) fn unary<'a>(op: UnaryOp, operand: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    match (op, operand) {
        (UnaryOp::Plus, value) if value.is_number() => Ok(value.clone()),
        (UnaryOp::Neg, Value::Float(value)) => Ok(Value::Float(-value)),
        (UnaryOp::Neg, value) if value.is_number() => {
            let negated = as_int(value).and_then(i64::checked_neg);
            negated
                .map(Value::Int)
                .ok_or_else(|| Diagnostic::error("overflow", Some(span), "the result leaves 64 bits"))
        }
        (UnaryOp::Invert, Value::Int(value)) => Ok(Value::Int(!value)),
        _ => {
            let expr = to_expr(operand, span)?;
            let (ir_op, expr) = match op {
                UnaryOp::Plus => return Ok(Value::Expr(expr)),
                UnaryOp::Neg => (ir::UnaryOp::Neg, expr),
                UnaryOp::Not => (ir::UnaryOp::Not, expr),
                // On a bool, TE's `~` is the logical not.
                UnaryOp::Invert if expr.dtype() == DataType::BOOL => (ir::UnaryOp::Not, expr),
                UnaryOp::Invert => (ir::UnaryOp::BitNot, expr),
            };
            build::unary(ir_op, expr).at(span).map(Value::Expr)
        }
    }
}

/// Both operands in one type.
pub(super) fn pair(lhs: &Value<'_>, rhs: &Value<'_>, span: Span) -> Eval<(Expr, Expr)> {
    let (a, b) = match (lhs.is_number(), rhs.is_number()) {
        (true, false) => {
            let b = to_expr(rhs, span)?;
            (literal(lhs, b.dtype(), span)?, b)
        }
        (false, true) => {
            let a = to_expr(lhs, span)?;
            let b = literal(rhs, a.dtype(), span)?;
            (a, b)
        }
        _ => (to_expr(lhs, span)?, to_expr(rhs, span)?),
    };
    build::match_types(a, b).at(span)
}

/// Converts a Python number to an expression of the type of the other operand, `ty`.
fn literal(value: &Value<'_>, ty: DataType, span: Span) -> Eval<Expr> {
    let scalar = ty.scalar;
    Ok(match value {
        Value::Int(_) | Value::Float(_) if scalar.is_float() => Expr::float_of(as_float(value), scalar),
        Value::Int(value) if scalar.is_integer() => match Expr::int_of((*value).into(), scalar) {
            Some(expr) => expr,
            None if scalar == ScalarType::Int32 => Expr::int(*value),
            None => {
                let message = format!("{value} is no value of the type {scalar}");
                return Err(Diagnostic::error("constant", Some(span), message)
                    .with_help("convert the other operand with .astype(...) first"));
            }
        },
        _ => to_expr(value, span)?,
    })
}
