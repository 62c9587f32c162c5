//! Ranges of integer expressions: whether a dividend can be negative and whether a sum can wrap.
//!
//! The results are not trusted: what is emitted as C's own division is listed in the metadata. It is not proved yet either;
//! a mistake shows when kernels run on a device against the interpreter.

use std::collections::BTreeMap;

use tilewright_ir::{BinaryOp, Bindings, Expr, MathFn, ScalarType, UnaryOp, Var};

/// Least and greatest value, both included.
pub(crate) type Range = (i128, i128);

/// The arithmetic that an expression is evaluated in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Indices, extents and guards: nothing leaves its type (obligation *overflow*).
    Index,
    /// Values: integers wrap.
    Value,
}

/// Ranges of variables. A variable that was not declared may have any value of its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<Var, Range>);

/// The value of an expression without variables and loads, by the evaluator of index arithmetic; none if it has some, or
/// divides by zero.
pub(crate) fn constant(expr: &Expr) -> Option<i128> {
    expr.eval_index(&Bindings::new()).ok()
}

/// The values of an integer type; for a float, which has no range here, those of `int64`.
pub(crate) fn type_range(ty: ScalarType) -> Range {
    ty.integer_range().unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)))
}

impl Ranges {
    /// Declares a variable.
    pub(crate) fn insert(&mut self, var: &Var, range: Range) {
        self.0.insert(var.clone(), range);
    }

    /// Declares the variable of a loop from `min` over `extent` values. An empty loop gets the range of its first value, which
    /// its body never sees.
    pub(crate) fn insert_loop(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        let (first, extent) = (self.range_of(min, Mode::Index), self.range_of(extent, Mode::Index));
        let (_, high) = type_range(var.dtype().scalar);
        let last = first.1.saturating_add(extent.1).saturating_sub(1).min(high);
        self.insert(var, (first.0, last.max(first.0)));
    }

    /// The range of an integer expression of any number of lanes, within its type.
    pub(crate) fn range_of(&self, expr: &Expr, mode: Mode) -> Range {
        let full = type_range(expr.dtype().scalar);
        let (low, high) = self.exact(expr, mode).unwrap_or(full);
        let inside = full.0 <= low && high <= full.1;
        match mode {
            _ if inside => (low, high),
            Mode::Index => (low.clamp(full.0, full.1), high.clamp(full.0, full.1)),
            Mode::Value => full,
        }
    }

    /// The range of an expression if its last operation is evaluated over the integers, so that the caller can see whether it
    /// leaves its type. The operands are within theirs. None if nothing is known.
    pub(crate) fn exact(&self, expr: &Expr, mode: Mode) -> Option<Range> {
        let of = |expr: &Expr| self.range_of(expr, mode);
        match expr {
            Expr::Int { value, .. } => Some((*value, *value)),
            Expr::Var(var) => self.0.get(var).copied(),
            Expr::Binary(op, lhs, rhs) => binary(*op, of(lhs), of(rhs)),
            Expr::Unary(UnaryOp::Neg, operand) => {
                let (low, high) = of(operand);
                Some((-high, -low))
            }
            Expr::Call(MathFn::Abs, args) => args.first().map(|arg| {
                let (low, high) = of(arg);
                (if low <= 0 && high >= 0 { 0 } else { low.abs().min(high.abs()) }, low.abs().max(high.abs()))
            }),
            Expr::Select(_, a, b) | Expr::IfThenElse(_, a, b) => Some(union(of(a), of(b))),
            // A cast wraps in an index too, such as one of what is read.
            Expr::Cast(to, value) if !value.dtype().scalar.is_float() => {
                let (range, full) = (of(value), type_range(to.scalar));
                (full.0 <= range.0 && range.1 <= full.1).then_some(range)
            }
            Expr::Broadcast { value, .. } => Some(of(value)),
            Expr::Ramp { base, stride, lanes } => {
                let ((b0, b1), (s0, s1)) = (of(base), of(stride));
                let last = i128::from(*lanes) - 1;
                Some((b0 + (s0 * last).min(0), b1 + (s1 * last).max(0)))
            }
            Expr::Float { .. } | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..) | Expr::Load { .. } => None,
        }
    }
}

/// The smallest range that contains both.
fn union(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

/// The range of `a op b` over the integers, both operands anywhere in their ranges.
fn binary(op: BinaryOp, (a0, a1): Range, (b0, b1): Range) -> Option<Range> {
    // Operands are within 64 bits, so only products can leave 128.
    match op {
        BinaryOp::Add => Some((a0 + b0, a1 + b1)),
        BinaryOp::Sub => Some((a0 - b1, a1 - b0)),
        BinaryOp::Mul => {
            let products = [(a0, b0), (a0, b1), (a1, b0), (a1, b1)].map(|(a, b)| a.saturating_mul(b));
            products.iter().map(|&p| (p, p)).reduce(union)
        }
        BinaryOp::FloorDiv | BinaryOp::TruncDiv if a0 >= 0 && b0 >= 1 => Some((a0 / b1, a1 / b0)),
        BinaryOp::FloorDiv if b0 >= 1 => Some((a0, a1.max(0))),
        BinaryOp::FloorMod if b0 >= 1 => Some((0, (b1 - 1).min(if a0 >= 0 { a1 } else { b1 }))),
        BinaryOp::TruncMod if a0 >= 0 && b0 >= 1 => Some((0, (b1 - 1).min(a1))),
        BinaryOp::Min => Some((a0.min(b0), a1.min(b1))),
        BinaryOp::Max => Some((a0.max(b0), a1.max(b1))),
        BinaryOp::BitAnd if a0 >= 0 && b0 >= 0 => Some((0, a1.min(b1))),
        BinaryOp::BitAnd if b0 >= 0 => Some((0, b1)),
        BinaryOp::BitAnd if a0 >= 0 => Some((0, a1)),
        BinaryOp::BitOr | BinaryOp::BitXor if a0 >= 0 && b0 >= 0 => {
            Some((0, u128::try_from(a1.max(b1)).ok()?.checked_add(1)?.next_power_of_two().cast_signed() - 1))
        }
        BinaryOp::Shr if a0 >= 0 => Some((0, a1)),
        BinaryOp::Shl if a0 >= 0 && b0 >= 0 && b1 < 60 => Some((a0 << b0, a1 << b1)),
        BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or => Some((0, 1)),
        BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => None,
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
        ranges.insert(&n, (1, i128::from(i32::MAX)));
        ranges.insert_loop(&i, &Expr::int(0), &Expr::from(&n));
        let product = Expr::from(&i) * Expr::int(4);
        assert_eq!(ranges.range_of(&product, Mode::Index), (0, i128::from(i32::MAX)));
        assert_eq!(ranges.range_of(&product, Mode::Value), (i128::from(i32::MIN), i128::from(i32::MAX)));
        let digit = Expr::from(&i).floor_mod(Expr::int(7));
        assert_eq!(ranges.range_of(&digit, Mode::Value), (0, 6));
        assert_eq!(ranges.range_of(&(Expr::from(&i) - Expr::int(3)), Mode::Index).0, -3);
        // What is read may be anything of its type, and a cast of it wraps wherever it stands.
        let read = Expr::load(&Buffer::compact("A", ScalarType::UInt32, vec![Expr::int(7)]), vec![Expr::from(&i)]);
        let cast = Expr::Cast(ScalarType::Int32.into(), read.into());
        assert_eq!(ranges.range_of(&cast, Mode::Index).0, i128::from(i32::MIN));
        let digit = Expr::Cast(ScalarType::Int64.into(), Expr::from(&i).floor_mod(Expr::int(7)).into());
        assert_eq!(ranges.range_of(&digit, Mode::Index), (0, 6));
    }
}
