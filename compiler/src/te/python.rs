//! Python's own functions: `range`, `len`, `zip` and so on; and slices.
//!
//! They are enough for programs that build lists of axes and loop over them. `print` does nothing: the result of a program
//! is its schedule, not its output.

use tilewright_ir::{self as ir, Diagnostic, Span};

use super::args::{Arg, Args};
use super::arith;
use super::build;
use super::builtins::missing;
use super::builtins::unsupported_path;
use super::eval::Interp;
use super::value::{Eval, Placed, Value, to_expr, to_int, wrong_kind};

/// The functions of Python that are known.
pub(super) const PYTHON: [&str; 14] = [
    "range",
    "len",
    "min",
    "max",
    "abs",
    "int",
    "float",
    "list",
    "tuple",
    "print",
    "zip",
    "enumerate",
    "reversed",
    "sum",
];
/// Longest list that `range` makes.
const MAX_RANGE: i64 = 100_000;

impl<'a> Interp<'a> {
    /// Calls a built-in function of Python. A table.
    pub(super) fn python(&mut self, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let values = args.rest();
        // Before `finish` refuses keywords: `print` may have `sep` and `end`.
        if name == "print" {
            return Ok(Value::None);
        }
        args.finish()?;
        let items = |index: usize| {
            let (value, span) = values.get(index).ok_or_else(|| missing(name, span))?;
            value.items().ok_or_else(|| wrong_kind(*span, "a list or a tuple", value))
        };
        let only = || values.first().ok_or_else(|| missing(name, span));
        match name {
            "range" => range(&values, span),
            "len" => {
                let count = match only()? {
                    (Value::Str(text), _) => text.len(),
                    (Value::Tensor(tensor), _) => self.te.own(*tensor).buffer.rank(),
                    _ => items(0)?.len(),
                };
                Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
            }
            "list" => Ok(Value::list(if values.is_empty() { Vec::new() } else { items(0)? })),
            "tuple" => Ok(Value::Tuple(if values.is_empty() { Vec::new() } else { items(0)? }.into())),
            "reversed" => Ok(Value::list(items(0)?.into_iter().rev().collect())),
            "enumerate" => Ok(Value::list(
                (0..).zip(items(0)?).map(|(at, item)| Value::Tuple([Value::Int(at), item].into())).collect(),
            )),
            "zip" => {
                let lists = (0..values.len()).map(items).collect::<Eval<Vec<_>>>()?;
                let rows = lists.iter().map(Vec::len).min().unwrap_or(0);
                let row = |at: usize| Value::Tuple(lists.iter().map(|list| list[at].clone()).collect());
                Ok(Value::list((0..rows).map(row).collect()))
            }
            "min" | "max" => {
                let op = if name == "min" { ir::BinaryOp::Min } else { ir::BinaryOp::Max };
                let list = if values.len() == 1 { items(0)? } else { values.iter().map(|(v, _)| v.clone()).collect() };
                self.fold(&list, span, |a, b| extreme(op, a, b, span))
            }
            "sum" => {
                let list = items(0)?;
                // Python's start value, which is also the sum of an empty list.
                let list: Vec<_> = std::iter::once(Value::Int(0)).chain(list).collect();
                self.fold(&list, span, |a, b| arith::binary(tilewright_script::te::BinaryOp::Add, a, b, span))
            }
            "abs" => match only()? {
                (Value::Int(value), span) => value
                    .checked_abs()
                    .map(Value::Int)
                    .ok_or_else(|| Diagnostic::error("overflow", Some(*span), "the result leaves 64 bits")),
                (Value::Float(value), _) => Ok(Value::Float(value.abs())),
                (value, span) => {
                    let operand = to_expr(value, *span)?;
                    self.symbolic(build::call(ir::MathFn::Abs, vec![operand]).at(*span)?, *span)
                }
            },
            "int" => {
                let (value, span) = only()?;
                match value {
                    Value::Float(float) => float_to_int(*float, *span),
                    _ => to_int(value, *span).map(Value::Int),
                }
            }
            "float" => {
                let (value, span) = only()?;
                if !value.is_number() {
                    return Err(wrong_kind(*span, "a number", value));
                }
                Ok(Value::Float(arith::as_float(value)))
            }
            _ => Err(unsupported_path(name, span)),
        }
    }

    /// Combines the items of a list from left to right.
    fn fold(
        &mut self,
        list: &[Value<'a>],
        span: Span,
        mut combine: impl FnMut(&Value<'a>, &Value<'a>) -> Eval<Value<'a>>,
    ) -> Eval<Value<'a>> {
        let Some((first, rest)) = list.split_first() else {
            return Err(Diagnostic::error("argument", Some(span), "the list is empty"));
        };
        let mut result = first.clone();
        for item in rest {
            result = match combine(&result, item)? {
                Value::Expr(expr) => self.symbolic(expr, span)?,
                value => value,
            };
        }
        Ok(result)
    }
}

/// The least or greatest of two values, the first one of equal numbers.
fn extreme<'a>(op: ir::BinaryOp, a: &Value<'a>, b: &Value<'a>, span: Span) -> Eval<Value<'a>> {
    if a.is_number() && b.is_number() {
        let less = arith::as_float(a) <= arith::as_float(b);
        return Ok(if less == (op == ir::BinaryOp::Min) { a.clone() } else { b.clone() });
    }
    arith::apply_values(op, a, b, span).map(Value::Expr)
}

/// `int(value)`, rounded towards zero.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn float_to_int<'a>(value: f64, span: Span) -> Eval<Value<'a>> {
    if value.abs() < 9e15 {
        return Ok(Value::Int(value as i64));
    }
    Err(Diagnostic::error("overflow", Some(span), "the number is no integer of 64 bits"))
}

/// `range(end)`, `range(start, end)` or `range(start, end, step)`, as a list.
fn range<'a>(values: &[Arg<'a>], span: Span) -> Eval<Value<'a>> {
    let numbers = values.iter().map(|(value, span)| to_int(value, *span)).collect::<Eval<Vec<_>>>()?;
    let (start, end, step) = match *numbers.as_slice() {
        [end] => (0, end, 1),
        [start, end] => (start, end, 1),
        [start, end, step] if step != 0 => (start, end, step),
        _ => return Err(Diagnostic::error("argument", Some(span), "range takes one to three numbers, no step of 0")),
    };
    let mut items = Vec::new();
    let mut next = Some(start);
    while let Some(value) = next.filter(|&value| if step > 0 { value < end } else { value > end }) {
        if items.len() >= usize::try_from(MAX_RANGE).unwrap_or(usize::MAX) {
            let message = format!("the range has more than {MAX_RANGE} numbers");
            return Err(Diagnostic::error("fuel", Some(span), message));
        }
        items.push(Value::Int(value));
        next = value.checked_add(step);
    }
    Ok(Value::list(items))
}

/// `items[lower:upper:step]`, clipped as Python clips.
pub(super) fn slice<'a>(
    value: &Value<'a>,
    items: &[Value<'a>],
    (lower, upper, step): (Option<i64>, Option<i64>, Option<i64>),
    span: Span,
) -> Eval<Value<'a>> {
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Diagnostic::error("slice", Some(span), "the step of a slice is not 0"));
    }
    let (low, high) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let clip = |bound: Option<i64>, default: i64| {
        bound.map_or(default, |bound| if bound < 0 { bound.saturating_add(count) } else { bound }.clamp(low, high))
    };
    let (start, end) =
        if step > 0 { (clip(lower, 0), clip(upper, count)) } else { (clip(lower, high), clip(upper, -1)) };
    let mut chosen = Vec::new();
    let mut at = start;
    while if step > 0 { at < end } else { at > end } {
        chosen.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at = at.saturating_add(step);
    }
    Ok(if matches!(value, Value::Tuple(_)) { Value::Tuple(chosen.into()) } else { Value::list(chosen) })
}
