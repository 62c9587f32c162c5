//! The operator table: symbol, arity, precedence, type rule and meaning of every operator and function.
//!
//! The reader, the printer, the interpreter, the judge and the code generator all read it; each matches on the enums
//! exhaustively, so that a new operator breaks the build wherever it matters.

use crate::dtype::{DataType, ScalarType, TypeClass};

/// Which operands an operator takes and what it gives. Lanes of both operands agree and carry over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// Two numbers (not `bool`) of the same type give that type.
    Arithmetic,
    /// Two integers of the same type give that type.
    Integer,
    /// Two floats of the same type give that type.
    Float,
    /// Two integers or two `bool` of the same type give that type.
    Bits,
    /// Two values of the same type (no handles) give a `bool`.
    Comparison,
    /// Two `bool` give a `bool`.
    Logic,
}

/// An operator of two operands. Integers wrap modulo 2^bits (that index arithmetic never does is an obligation);
/// floats round to nearest even after each operation, with no contraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient of floats, correctly rounded.
    Div,
    /// Integer quotient rounded towards minus infinity; a zero divisor traps.
    FloorDiv,
    /// `a - b * floordiv(a, b)`: has the sign of the divisor; a zero divisor traps.
    FloorMod,
    /// Integer quotient rounded towards zero, as C divides; a zero divisor traps.
    TruncDiv,
    /// `a - b * truncdiv(a, b)`: has the sign of the dividend; a zero divisor traps.
    TruncMod,
    /// The lesser; of floats as IEEE's minNum (a NaN loses to a number).
    Min,
    /// The greater; of floats as IEEE's maxNum (a NaN loses to a number).
    Max,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Both. Both operands are evaluated.
    And,
    /// Either. Both operands are evaluated.
    Or,
    /// Bitwise and.
    BitAnd,
    /// Bitwise or.
    BitOr,
    /// Bitwise exclusive or.
    BitXor,
    /// Left shift; an amount below 0 or not below the width traps.
    Shl,
    /// Right shift, of signed integers with the sign; an amount below 0 or not below the width traps.
    Shr,
}

/// How an operator is written in Python syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// The infix symbol; none for what is only ever called.
    pub symbol: Option<&'static str>,
    /// TVMScript's function, without `T.`.
    pub call: &'static str,
    /// Python's precedence, greater binds tighter; of a call it is that of an atom.
    pub precedence: u8,
    /// Operand and result types.
    pub rule: TypeRule,
}

/// Precedence of atoms: names, calls, subscripts.
pub const ATOM: u8 = 20;
/// Precedence of unary minus and `~`.
pub const UNARY: u8 = 15;
/// Precedence of `not`.
pub const NOT: u8 = 5;
/// Precedence of `x if c else y`.
pub const CONDITIONAL: u8 = 2;

impl BinaryOp {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 23] = [
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::FloorDiv,
        Self::FloorMod,
        Self::TruncDiv,
        Self::TruncMod,
        Self::Min,
        Self::Max,
        Self::Eq,
        Self::Ne,
        Self::Lt,
        Self::Le,
        Self::Gt,
        Self::Ge,
        Self::And,
        Self::Or,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::Shl,
        Self::Shr,
    ];

    /// Its line of the table.
    pub fn info(self) -> OpInfo {
        use TypeRule::{Arithmetic, Bits, Comparison, Float, Integer, Logic};
        let infix = |symbol, call, precedence, rule| OpInfo { symbol: Some(symbol), call, precedence, rule };
        let called = |call, rule| OpInfo { symbol: None, call, precedence: ATOM, rule };
        match self {
            Self::Mul => infix("*", "Mul", 14, Arithmetic),
            Self::Div => infix("/", "Div", 14, Float),
            Self::FloorDiv => infix("//", "floordiv", 14, Integer),
            Self::FloorMod => infix("%", "floormod", 14, Integer),
            Self::Add => infix("+", "Add", 13, Arithmetic),
            Self::Sub => infix("-", "Sub", 13, Arithmetic),
            Self::Shl => infix("<<", "shift_left", 12, Integer),
            Self::Shr => infix(">>", "shift_right", 12, Integer),
            Self::BitAnd => infix("&", "bitwise_and", 11, Bits),
            Self::BitXor => infix("^", "bitwise_xor", 10, Bits),
            Self::BitOr => infix("|", "bitwise_or", 9, Bits),
            Self::Eq => infix("==", "EQ", 6, Comparison),
            Self::Ne => infix("!=", "NE", 6, Comparison),
            Self::Lt => infix("<", "LT", 6, Comparison),
            Self::Le => infix("<=", "LE", 6, Comparison),
            Self::Gt => infix(">", "GT", 6, Comparison),
            Self::Ge => infix(">=", "GE", 6, Comparison),
            Self::And => infix("and", "And", 4, Logic),
            Self::Or => infix("or", "Or", 3, Logic),
            Self::TruncDiv => called("truncdiv", Integer),
            Self::TruncMod => called("truncmod", Integer),
            Self::Min => called("min", Arithmetic),
            Self::Max => called("max", Arithmetic),
        }
    }

    /// Type of the result for operands of the types `lhs` and `rhs`; none if the operator does not take them.
    pub fn result_type(self, lhs: DataType, rhs: DataType) -> Option<DataType> {
        let class = lhs.scalar.class();
        let number = lhs.scalar.is_integer() || lhs.scalar.is_float();
        let (accepts, result) = match self.info().rule {
            TypeRule::Arithmetic => (number, lhs.scalar),
            TypeRule::Integer => (lhs.scalar.is_integer(), lhs.scalar),
            TypeRule::Float => (lhs.scalar.is_float(), lhs.scalar),
            TypeRule::Bits => (lhs.scalar.is_integer() || class == TypeClass::Bool, lhs.scalar),
            TypeRule::Comparison => (class != TypeClass::Handle, ScalarType::Bool),
            TypeRule::Logic => (class == TypeClass::Bool, ScalarType::Bool),
        };
        (accepts && lhs == rhs).then_some(DataType { scalar: result, lanes: lhs.lanes })
    }
}

/// An operator of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Minus, of a number.
    Neg,
    /// Logical not, of a `bool`.
    Not,
    /// Bitwise not, of an integer.
    BitNot,
}

impl UnaryOp {
    /// Python's symbol and its precedence.
    pub fn symbol(self) -> (&'static str, u8) {
        match self {
            Self::Neg => ("-", UNARY),
            Self::Not => ("not ", NOT),
            Self::BitNot => ("~", UNARY),
        }
    }

    /// Type of the result; none if the operator does not take `operand`.
    pub fn result_type(self, operand: DataType) -> Option<DataType> {
        let accepts = match self {
            Self::Neg => operand.scalar.is_integer() || operand.scalar.is_float(),
            Self::Not => operand.scalar == ScalarType::Bool,
            Self::BitNot => operand.scalar.is_integer(),
        };
        accepts.then_some(operand)
    }
}

/// A math function. All but [`MathFn::Abs`] take floats; arguments share one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MathFn {
    /// Absolute value, of integers too (the least one wraps to itself).
    Abs,
    /// e^x.
    Exp,
    /// 2^x.
    Exp2,
    /// 10^x.
    Exp10,
    /// Natural logarithm.
    Log,
    /// Logarithm to base 2.
    Log2,
    /// Logarithm to base 10.
    Log10,
    /// Square root, correctly rounded.
    Sqrt,
    /// Reciprocal square root.
    Rsqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Angle of the point (x, y), given y first.
    Atan2,
    /// x to the power y.
    Pow,
    /// Error function.
    Erf,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// Greatest integer not above.
    Floor,
    /// Least integer not below.
    Ceil,
    /// Nearest integer, ties to even.
    Round,
    /// Nearest integer not beyond, towards zero.
    Trunc,
    /// Whether it is a NaN; gives a `bool`.
    IsNan,
    /// Whether it is infinite; gives a `bool`.
    IsInf,
}

impl MathFn {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 28] = [
        Self::Abs,
        Self::Exp,
        Self::Exp2,
        Self::Exp10,
        Self::Log,
        Self::Log2,
        Self::Log10,
        Self::Sqrt,
        Self::Rsqrt,
        Self::Sin,
        Self::Cos,
        Self::Tan,
        Self::Sinh,
        Self::Cosh,
        Self::Tanh,
        Self::Asin,
        Self::Acos,
        Self::Atan,
        Self::Atan2,
        Self::Pow,
        Self::Erf,
        Self::Sigmoid,
        Self::Floor,
        Self::Ceil,
        Self::Round,
        Self::Trunc,
        Self::IsNan,
        Self::IsInf,
    ];

    /// TVMScript's name, without `T.`, and the number of arguments.
    pub fn info(self) -> (&'static str, usize) {
        match self {
            Self::Abs => ("abs", 1),
            Self::Exp => ("exp", 1),
            Self::Exp2 => ("exp2", 1),
            Self::Exp10 => ("exp10", 1),
            Self::Log => ("log", 1),
            Self::Log2 => ("log2", 1),
            Self::Log10 => ("log10", 1),
            Self::Sqrt => ("sqrt", 1),
            Self::Rsqrt => ("rsqrt", 1),
            Self::Sin => ("sin", 1),
            Self::Cos => ("cos", 1),
            Self::Tan => ("tan", 1),
            Self::Sinh => ("sinh", 1),
            Self::Cosh => ("cosh", 1),
            Self::Tanh => ("tanh", 1),
            Self::Asin => ("asin", 1),
            Self::Acos => ("acos", 1),
            Self::Atan => ("atan", 1),
            Self::Atan2 => ("atan2", 2),
            Self::Pow => ("pow", 2),
            Self::Erf => ("erf", 1),
            Self::Sigmoid => ("sigmoid", 1),
            Self::Floor => ("floor", 1),
            Self::Ceil => ("ceil", 1),
            Self::Round => ("round", 1),
            Self::Trunc => ("trunc", 1),
            Self::IsNan => ("isnan", 1),
            Self::IsInf => ("isinf", 1),
        }
    }

    /// The function of that name, as [`MathFn::info`] has it.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.info().0 == name)
    }

    /// Type of the result; none if the function does not take these arguments.
    pub fn result_type(self, args: &[DataType]) -> Option<DataType> {
        let &first = args.first()?;
        let scalar = first.scalar;
        let accepts = scalar.is_float() || (self == Self::Abs && scalar.is_integer());
        let predicate = matches!(self, Self::IsNan | Self::IsInf);
        let result = if predicate { ScalarType::Bool } else { scalar };
        (accepts && args.len() == self.info().1 && args.iter().all(|&ty| ty == first))
            .then_some(DataType { scalar: result, lanes: first.lanes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_table_are_unique() {
        let mut names: Vec<_> = BinaryOp::ALL.iter().map(|op| op.info().call).collect();
        names.extend(MathFn::ALL.iter().map(|function| function.info().0));
        let total = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), total);
    }

    #[test]
    fn types_must_agree() {
        let (i, f) = (DataType::INT32, DataType::scalar(ScalarType::Float32));
        assert_eq!(BinaryOp::Add.result_type(i, i), Some(i));
        assert_eq!(BinaryOp::Add.result_type(i, f), None);
        assert_eq!(BinaryOp::Lt.result_type(f.with_lanes(4), f.with_lanes(4)), Some(DataType::BOOL.with_lanes(4)));
        assert_eq!(BinaryOp::Div.result_type(i, i), None);
        assert_eq!(BinaryOp::And.result_type(i, i), None);
        assert_eq!(MathFn::Exp.result_type(&[i]), None);
        assert_eq!(MathFn::Abs.result_type(&[i]), Some(i));
    }
}
