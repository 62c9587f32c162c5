//! Ranges of integer expressions: whether a sum can wrap.
//!
//! The arithmetic is that of [`Interval`]; this module adds what is known of variables, and where a result wraps.

use std::collections::BTreeMap;

use tilewright_ir::{BinaryOp, Bindings, Expr, Interval, MathFn, ScalarType, UnaryOp, Var};

/// The arithmetic in which an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Indices, extents and guards: nothing leaves its type (obligation *overflow*).
    Index,
    /// Values: integers wrap.
    Value,
}

/// Ranges of variables. A variable that was not declared may have any value of its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<Var, Interval>);

/// Evaluates an expression without variables and loads as index arithmetic; `None` if it has variables or loads, or divides
/// by zero.
pub(crate) fn constant(expr: &Expr) -> Option<i128> {
    expr.eval_index(&Bindings::new()).ok()
}

/// The values of an integer type; for a float, which has no range here, those of `int64`.
pub(crate) fn type_range(ty: ScalarType) -> Interval {
    let (low, high) = ty.integer_range().unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
    Interval { low, high }
}

impl Ranges {
    /// Declares a variable.
    pub(crate) fn insert(&mut self, var: &Var, range: Interval) {
        self.0.insert(var.clone(), range);
    }

    /// Declares the variable of a loop from `min` over `extent` values.
    ///
    /// For an empty loop the range is that of `min`: it must not be empty, and its body never runs.
    pub(crate) fn insert_loop(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        let (first, extent) = (self.range_of(min, Mode::Index), self.range_of(extent, Mode::Index));
        let last = first.high.saturating_add(extent.high).saturating_sub(1).min(type_range(var.dtype().scalar).high);
        self.insert(var, Interval { low: first.low, high: last.max(first.low) });
    }

    /// The range of an integer expression of any number of lanes, within its type.
    pub(crate) fn range_of(&self, expr: &Expr, mode: Mode) -> Interval {
        let full = type_range(expr.dtype().scalar);
        let range = self.exact(expr, mode).unwrap_or(full);
        match mode {
            _ if full.includes(range) => range,
            Mode::Index => {
                Interval { low: range.low.clamp(full.low, full.high), high: range.high.clamp(full.low, full.high) }
            }
            Mode::Value => full,
        }
    }

    /// Returns the range of an expression whose outermost operation is evaluated over the integers, so that the caller can
    /// see whether the result leaves its type. The operands are within their types. `None` if nothing is known.
    pub(crate) fn exact(&self, expr: &Expr, mode: Mode) -> Option<Interval> {
        let of = |expr: &Expr| self.range_of(expr, mode);
        match expr {
            Expr::Int { value, .. } => Some(Interval::point(*value)),
            Expr::Var(var) => self.0.get(var).copied(),
            Expr::Binary(op, lhs, rhs) => binary(*op, of(lhs), of(rhs)),
            Expr::Unary(UnaryOp::Neg, operand) => of(operand).checked_neg(),
            Expr::Call(MathFn::Abs, args) => of(args.first()?).abs(),
            Expr::Select(_, a, b) | Expr::IfThenElse(_, a, b) => Some(of(a).hull(of(b))),
            // A cast wraps in an index too, such as one of a value that is loaded.
            Expr::Cast(to, value) if !value.dtype().scalar.is_float() => {
                Some(of(value)).filter(|range| type_range(to.scalar).includes(*range))
            }
            Expr::Broadcast { value, .. } => Some(of(value)),
            Expr::Ramp { base, stride, lanes } => {
                let lane = Interval { low: 0, high: i128::from(*lanes) - 1 };
                of(base).checked_add(of(stride).checked_mul(lane)?)
            }
            Expr::Float { .. } | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..) | Expr::Load { .. } => None,
        }
    }
}

/// Returns the range of `lhs op rhs` over the integers for operands anywhere in their ranges. A table; `None` if the
/// operation is undefined for some operands, or its range is not known.
fn binary(op: BinaryOp, lhs: Interval, rhs: Interval) -> Option<Interval> {
    match op {
        BinaryOp::Add => lhs.checked_add(rhs),
        BinaryOp::Sub => lhs.checked_sub(rhs),
        BinaryOp::Mul => lhs.checked_mul(rhs),
        BinaryOp::FloorDiv => lhs.floor_div(rhs),
        BinaryOp::FloorMod => lhs.floor_mod(rhs),
        BinaryOp::TruncDiv => lhs.trunc_div(rhs),
        BinaryOp::TruncMod => lhs.trunc_mod(rhs),
        BinaryOp::Min => Some(lhs.min(rhs)),
        BinaryOp::Max => Some(lhs.max(rhs)),
        BinaryOp::BitAnd => lhs.bit_and(rhs),
        BinaryOp::BitOr => lhs.bit_or(rhs),
        BinaryOp::BitXor => lhs.bit_xor(rhs),
        BinaryOp::Shl => lhs.checked_shl(rhs),
        BinaryOp::Shr => lhs.checked_shr(rhs),
        BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or => Some(Interval { low: 0, high: 1 }),
        // Only floats are divided by `/`, and they have no range.
        BinaryOp::Div => None,
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Buffer;

    use super::*;

    #[test]
    fn values_wrap_and_indices_do_not() {
        let (i, n) = (Var::index("i"), Var::index("n"));
        let mut ranges = Ranges::default();
        ranges.insert(&n, Interval { low: 1, high: i128::from(i32::MAX) });
        ranges.insert_loop(&i, &Expr::int(0), &Expr::from(&n));
        let product = Expr::from(&i) * Expr::int(4);
        assert_eq!(ranges.range_of(&product, Mode::Index), Interval { low: 0, high: i128::from(i32::MAX) });
        assert_eq!(ranges.range_of(&product, Mode::Value), type_range(ScalarType::Int32));
        let digit = Expr::from(&i).floor_mod(Expr::int(7));
        assert_eq!(ranges.range_of(&digit, Mode::Value), Interval { low: 0, high: 6 });
        assert_eq!(ranges.range_of(&(Expr::from(&i) - Expr::int(3)), Mode::Index).low, -3);
        // What is read may be anything of its type, and a cast of it wraps wherever it stands.
        let read = Expr::load(&Buffer::compact("A", ScalarType::UInt32, vec![Expr::int(7)]), vec![Expr::from(&i)]);
        let cast = Expr::Cast(ScalarType::Int32.into(), read.into());
        assert_eq!(ranges.range_of(&cast, Mode::Index).low, i128::from(i32::MIN));
        let digit = Expr::Cast(ScalarType::Int64.into(), Expr::from(&i).floor_mod(Expr::int(7)).into());
        assert_eq!(ranges.range_of(&digit, Mode::Index), Interval { low: 0, high: 6 });
    }
}
