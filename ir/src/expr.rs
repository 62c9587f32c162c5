//! Expressions: constructors, types, traversal and printing.

use std::fmt;

use crate::buffer::Buffer;
use crate::dtype::{DataType, ScalarType};
use crate::op::{BinaryOp, MathFn, UnaryOp};
use crate::shared::{Parts, SharedExpr, SharedExprs};
use crate::var::Var;

/// An expression. Expressions have no side effects; operands are evaluated from left to right.
///
/// The tree is plain data and may be ill typed; [`crate::check`] finds type errors. The constructors below build a
/// well-typed expression from well-typed operands of fitting types.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An integer or `bool` constant within the range of its type.
    Int {
        /// The value; 0 or 1 for `bool`.
        value: i128,
        /// An integer type or `bool`.
        ty: ScalarType,
    },
    /// A float constant that its type represents exactly.
    Float {
        /// The value.
        value: f64,
        /// A float type.
        ty: ScalarType,
    },
    /// The value of a variable.
    Var(Var),
    /// An operator with two operands.
    Binary(BinaryOp, SharedExpr, SharedExpr),
    /// An operator with one operand.
    Unary(UnaryOp, SharedExpr),
    /// A math function.
    Call(MathFn, SharedExprs),
    /// The second operand if the first one is true, else the third. All three are evaluated. The condition has one
    /// lane, or as many as the other operands.
    Select(SharedExpr, SharedExpr, SharedExpr),
    /// The second operand if the first one is true, else the third. Only the chosen operand is evaluated. The
    /// condition has one lane, or as many as the other operands; in that case each lane is chosen and evaluated
    /// separately.
    IfThenElse(SharedExpr, SharedExpr, SharedExpr),
    /// A conversion to a type with the same number of lanes, see [`crate::scalar::cast`].
    Cast(DataType, SharedExpr),
    /// The vector `base, base + stride, base + 2 * stride, ...`.
    Ramp {
        /// The first lane, a scalar integer.
        base: SharedExpr,
        /// The difference between adjacent lanes, of the type of `base`.
        stride: SharedExpr,
        /// The number of lanes, at least 2.
        lanes: u16,
    },
    /// A vector with the same value in every lane.
    Broadcast {
        /// The value, a scalar.
        value: SharedExpr,
        /// The number of lanes, at least 2.
        lanes: u16,
    },
    /// The element of a buffer at an index into the buffer's current shape. Only the last index may have several
    /// lanes, and only if the elements of the buffer have one (RFC 63, "Generalizing buffer accesses").
    Load {
        /// The buffer.
        buffer: Buffer,
        /// The indices, one per axis.
        indices: SharedExprs,
    },
}

impl Expr {
    /// Creates an `int32` constant, or an `int64` constant if the value does not fit into `int32`.
    pub fn int(value: i64) -> Self {
        let ty = if i32::try_from(value).is_ok() { ScalarType::Int32 } else { ScalarType::Int64 };
        Self::Int { value: value.into(), ty }
    }

    /// Creates an integer or `bool` constant of type `ty`. Returns `None` if the value is out of range, or if `ty` is
    /// a float or a handle.
    pub fn int_of(value: i128, ty: ScalarType) -> Option<Self> {
        let (low, high) = ty.integer_range()?;
        (low..=high).contains(&value).then_some(Self::Int { value, ty })
    }

    /// Creates a float constant, rounded to `ty`.
    pub fn float_of(value: f64, ty: ScalarType) -> Self {
        Self::Float { value: crate::scalar::round_float(ty, value), ty }
    }

    /// Creates a `bool` constant.
    pub fn bool(value: bool) -> Self {
        Self::Int { value: value.into(), ty: ScalarType::Bool }
    }

    /// Creates `lhs op rhs`.
    pub fn binary(op: BinaryOp, lhs: Self, rhs: Self) -> Self {
        Self::Binary(op, SharedExpr::new(lhs), SharedExpr::new(rhs))
    }

    /// Creates `op operand`.
    pub fn unary(op: UnaryOp, operand: Self) -> Self {
        Self::Unary(op, SharedExpr::new(operand))
    }

    /// Creates `self // rhs`, the quotient rounded towards minus infinity.
    #[must_use]
    pub fn floor_div(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::FloorDiv, self, rhs)
    }

    /// Creates `self % rhs`, the remainder with the sign of the divisor.
    #[must_use]
    pub fn floor_mod(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::FloorMod, self, rhs)
    }

    /// Creates `self < rhs`.
    #[must_use]
    pub fn lt(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::Lt, self, rhs)
    }

    /// Creates `self and rhs`. Both operands are evaluated.
    #[must_use]
    pub fn and(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::And, self, rhs)
    }

    /// Creates a load.
    pub fn load(buffer: &Buffer, indices: impl Into<SharedExprs>) -> Self {
        Self::Load { buffer: buffer.clone(), indices: indices.into() }
    }

    /// Returns the type. A load has the lanes of the element type times those of the last index (RFC 39, "What
    /// convention should be used for buffer indexing?"). The result is unspecified if the expression is ill typed.
    pub fn dtype(&self) -> DataType {
        match self {
            Self::Int { ty, .. } | Self::Float { ty, .. } => DataType::scalar(*ty),
            Self::Var(var) => var.dtype(),
            Self::Binary(op, lhs, rhs) => {
                let ty = lhs.dtype();
                op.result_type(ty, rhs.dtype()).unwrap_or(ty)
            }
            Self::Unary(_, operand) => operand.dtype(),
            Self::Call(function, args) => {
                let types: Vec<_> = args.iter().map(Self::dtype).collect();
                let first = types.first().copied().unwrap_or(DataType::INT32);
                function.result_type(&types).unwrap_or(first)
            }
            Self::Select(_, value, _) | Self::IfThenElse(_, value, _) => value.dtype(),
            Self::Cast(ty, _) => *ty,
            Self::Ramp { base, lanes, .. } => base.dtype().with_lanes(*lanes),
            Self::Broadcast { value, lanes } => value.dtype().with_lanes(*lanes),
            Self::Load { buffer, indices } => {
                let index_lanes = indices.last().map_or(1, |index| index.dtype().lanes);
                buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(index_lanes))
            }
        }
    }

    /// Returns the value of an integer or `bool` constant, and `None` for all other expressions.
    pub fn as_const_int(&self) -> Option<i128> {
        if let Self::Int { value, .. } = self { Some(*value) } else { None }
    }

    /// Returns the direct operands, from left to right.
    pub fn children(&self) -> Parts<'_, Self> {
        match self {
            Self::Int { .. } | Self::Float { .. } | Self::Var(_) => Parts::none(),
            Self::Binary(_, a, b) | Self::Ramp { base: a, stride: b, .. } => Parts::two(a, b),
            Self::Unary(_, a) | Self::Cast(_, a) | Self::Broadcast { value: a, .. } => Parts::one(a),
            Self::Select(a, b, c) | Self::IfThenElse(a, b, c) => Parts::three(a, b, c),
            Self::Call(_, args) | Self::Load { indices: args, .. } => Parts::list(args),
        }
    }

    /// Returns whether both are one node: the same operator on operands that are the same objects in memory, or the same
    /// leaf.
    ///
    /// One node is the same expression, even if `==` is false for it because it contains a NaN. Equal expressions need not
    /// be one node. Takes constant time.
    pub fn is_same(&self, other: &Self) -> bool {
        // Operands are compared by address, not by recursion.
        match (self, other) {
            (Self::Int { value, ty }, Self::Int { value: other, ty: to }) => value == other && ty == to,
            (Self::Float { value, ty }, Self::Float { value: other, ty: to }) => {
                // With `==` a NaN would differ from itself, and 0.0 would be the same as -0.0.
                value.to_bits() == other.to_bits() && ty == to
            }
            (Self::Var(var), Self::Var(other)) => var == other,
            (Self::Binary(op, a, b), Self::Binary(other, x, y)) => op == other && a.is_same(x) && b.is_same(y),
            (Self::Unary(op, a), Self::Unary(other, x)) => op == other && a.is_same(x),
            (Self::Call(function, a), Self::Call(other, x)) => function == other && a.is_same(x),
            (Self::Select(a, b, c), Self::Select(x, y, z)) | (Self::IfThenElse(a, b, c), Self::IfThenElse(x, y, z)) => {
                a.is_same(x) && b.is_same(y) && c.is_same(z)
            }
            (Self::Cast(ty, a), Self::Cast(other, x)) => ty == other && a.is_same(x),
            (Self::Ramp { base, stride, lanes }, Self::Ramp { base: x, stride: y, lanes: other }) => {
                lanes == other && base.is_same(x) && stride.is_same(y)
            }
            (Self::Broadcast { value, lanes }, Self::Broadcast { value: x, lanes: other }) => {
                lanes == other && value.is_same(x)
            }
            (Self::Load { buffer, indices }, Self::Load { buffer: other, indices: x }) => {
                buffer == other && indices.is_same(x)
            }
            _ => false,
        }
    }

    /// Calls `visit` on this expression and on every expression inside it, outer before inner, from left to right.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// Returns whether the value depends on memory, that is, whether there is a load in the expression.
    pub fn reads_memory(&self) -> bool {
        matches!(self, Self::Load { .. }) || self.children().into_iter().any(Self::reads_memory)
    }

    /// Returns the variables in the expression, each once, in order of first appearance.
    pub fn vars(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.walk(&mut |expr| {
            if let Self::Var(var) = expr
                && !vars.contains(var)
            {
                vars.push(var.clone());
            }
        });
        vars
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self::int(value)
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Self {
        Self::Var(var.clone())
    }
}

impl From<Var> for Expr {
    fn from(var: Var) -> Self {
        Self::Var(var)
    }
}

impl std::ops::Add for Expr {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::Add, self, rhs)
    }
}

impl std::ops::Sub for Expr {
    type Output = Self;

    fn sub(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::Sub, self, rhs)
    }
}

impl std::ops::Mul for Expr {
    type Output = Self;

    fn mul(self, rhs: Self) -> Self {
        Self::binary(BinaryOp::Mul, self, rhs)
    }
}

/// Prints Python notation for messages, with names as they are. `tilewright-script` prints text that can be read back.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Expr {
    /// Writes the expression, in parentheses if it binds less tightly than an operator of precedence `outer`.
    fn write(&self, f: &mut fmt::Formatter<'_>, outer: u8) -> fmt::Result {
        match self {
            Self::Int { value, ty: ScalarType::Bool } => f.write_str(if *value != 0 { "True" } else { "False" }),
            Self::Int { value, .. } => write!(f, "{value}"),
            Self::Float { value, ty } if !value.is_finite() => {
                write!(f, "{ty}(\"{}\")", value.to_string().to_lowercase())
            }
            Self::Float { value, .. } => write!(f, "{value:?}"),
            Self::Var(var) => f.write_str(var.name()),
            Self::Binary(op, lhs, rhs) => write_binary(f, *op, lhs, rhs, outer),
            Self::Unary(op, operand) => {
                let (symbol, precedence) = op.symbol();
                parenthesised(f, precedence < outer, |f| {
                    f.write_str(symbol)?;
                    match **operand {
                        // `-(3)` is an operator on a constant; `-3` would be read as the constant minus three.
                        Self::Int { value, ty } if ty.is_integer() => write!(f, "{ty}({value})"),
                        _ => operand.write(f, precedence),
                    }
                })
            }
            Self::Call(function, args) => write_call(f, function.info().0, args),
            Self::Select(c, a, b) => write!(f, "Select({c}, {a}, {b})"),
            Self::IfThenElse(c, a, b) => write!(f, "if_then_else({c}, {a}, {b})"),
            Self::Cast(ty, value) => write!(f, "{ty}({value})"),
            Self::Ramp { base, stride, lanes } => write!(f, "ramp({base}, {stride}, {lanes})"),
            Self::Broadcast { value, lanes } => write!(f, "broadcast({value}, {lanes})"),
            Self::Load { buffer, indices } => {
                f.write_str(&buffer.name)?;
                f.write_str("[")?;
                write_list(f, indices)?;
                f.write_str("]")
            }
        }
    }
}

/// Writes an infix operator with the parentheses it needs, or a call if the operator has no symbol.
fn write_binary(f: &mut fmt::Formatter<'_>, op: BinaryOp, lhs: &Expr, rhs: &Expr, outer: u8) -> fmt::Result {
    let info = op.info();
    let Some(symbol) = info.symbol else {
        write!(f, "{}(", info.call)?;
        lhs.write(f, 0)?;
        f.write_str(", ")?;
        rhs.write(f, 0)?;
        return f.write_str(")");
    };
    parenthesised(f, info.precedence < outer, |f| {
        // Python chains comparisons: `a < b == c` is `a < b and b == c`, so a comparison as an operand needs parentheses.
        let left = info.precedence + u8::from(info.rule == crate::op::TypeRule::Comparison);
        lhs.write(f, left)?;
        write!(f, " {symbol} ")?;
        rhs.write(f, info.precedence + 1)
    })
}

/// Writes `inner`, in parentheses if `needed`.
fn parenthesised(
    f: &mut fmt::Formatter<'_>,
    needed: bool,
    inner: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if needed {
        f.write_str("(")?;
        inner(f)?;
        return f.write_str(")");
    }
    inner(f)
}

/// Writes `name(args)`.
fn write_call(f: &mut fmt::Formatter<'_>, name: &str, args: &[Expr]) -> fmt::Result {
    write!(f, "{name}(")?;
    write_list(f, args)?;
    f.write_str(")")
}

/// Writes expressions separated by commas.
fn write_list(f: &mut fmt::Formatter<'_>, items: &[Expr]) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        item.write(f, 0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_parentheses_keep_the_structure() {
        let (i, j) = (Expr::from(Var::index("i")), Expr::from(Var::index("j")));
        let difference = i.clone() - (j.clone() - Expr::int(1));
        assert_eq!(difference.to_string(), "i - (j - 1)");
        assert_eq!(((i.clone() + j.clone()) * Expr::int(4)).floor_mod(Expr::int(8)).to_string(), "(i + j) * 4 % 8");
        let negative = Expr::unary(UnaryOp::Neg, i.clone() + j.clone());
        assert_eq!(negative.to_string(), "-(i + j)");
        let chained = Expr::binary(BinaryOp::Eq, i.clone().lt(j.clone()), j.lt(i));
        assert_eq!(chained.to_string(), "(i < j) == (j < i)");
    }

    #[test]
    fn a_load_has_the_lanes_of_the_element_times_those_of_the_index() {
        let scalar = Buffer::compact("A", ScalarType::Float32, vec![Expr::int(64)]);
        let ramp = Expr::Ramp { base: SharedExpr::new(Expr::int(0)), stride: SharedExpr::new(Expr::int(1)), lanes: 4 };
        assert_eq!(Expr::load(&scalar, vec![ramp]).dtype().to_string(), "float32x4");
        let vector = Buffer::compact("A", DataType::scalar(ScalarType::Float32).with_lanes(4), vec![Expr::int(16)]);
        assert_eq!(Expr::load(&vector, vec![Expr::int(0)]).dtype().to_string(), "float32x4");
    }
}
