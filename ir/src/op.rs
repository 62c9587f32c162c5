//! The operator table: symbol, arity, precedence, type rule and meaning of every operator and math function.
//!
//! The reader, the printer, the interpreter, the judge and the code generator all use it. Each of them matches on the
//! enums exhaustively, so that adding an operator breaks the build wherever the operator must be handled.

use crate::dtype::{DataType, ScalarType, TypeClass};

/// The operand types that a binary operator accepts, and its result type. Both operands have the same number of
/// lanes, and so has the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// Two numbers (not `bool`) of the same type; the result has that type.
    Arithmetic,
    /// Two integers of the same type; the result has that type.
    Integer,
    /// Two floats of the same type; the result has that type.
    Float,
    /// Two integers or two `bool` of the same type; the result has that type.
    Bits,
    /// Two values of the same type that are not handles; the result is `bool`.
    Comparison,
    /// Two `bool`; the result is `bool`.
    Logic,
}

/// An operator with two operands.
///
/// Integer results wrap modulo 2^bits; that index arithmetic never wraps is a proof obligation. Float results are
/// rounded to nearest even after each operation and never contracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient of floats, correctly rounded.
    Div,
    /// The integer quotient, rounded towards minus infinity. A zero divisor traps.
    FloorDiv,
    /// `a - b * floordiv(a, b)`, which has the sign of the divisor. A zero divisor traps.
    FloorMod,
    /// The integer quotient, rounded towards zero as in C. A zero divisor traps.
    TruncDiv,
    /// `a - b * truncdiv(a, b)`, which has the sign of the dividend. A zero divisor traps.
    TruncMod,
    /// The minimum; for floats IEEE 754 minNum, where a NaN loses to a number.
    Min,
    /// The maximum; for floats IEEE 754 maxNum, where a NaN loses to a number.
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
    /// Logical and. Both operands are evaluated.
    And,
    /// Logical or. Both operands are evaluated.
    Or,
    /// Bitwise and.
    BitAnd,
    /// Bitwise or.
    BitOr,
    /// Bitwise exclusive or.
    BitXor,
    /// Left shift. An amount outside `0..bits` traps.
    Shl,
    /// Right shift, arithmetic for signed integers. An amount outside `0..bits` traps.
    Shr,
}

/// For which right operands an operator has no value, so that its evaluation traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traps {
    /// For none.
    Never,
    /// For 0: the integer divisions and remainders.
    ZeroDivisor,
    /// Outside `0..bits`, where the left operand has `bits` bits: the shifts.
    ShiftAmount,
}

/// How a binary operator is written in Python syntax, and its type rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// The infix symbol. `None` for an operator that is only written as a call.
    pub symbol: Option<&'static str>,
    /// The name of TVMScript's function, without `T.`.
    pub call: &'static str,
    /// Python's precedence; a greater number binds tighter. A call has the precedence of an atom.
    pub precedence: u8,
    /// The operand and result types.
    pub rule: TypeRule,
}

/// The precedence of atoms: names, calls and subscripts.
pub const ATOM: u8 = 20;
/// The precedence of unary minus and `~`.
pub const UNARY: u8 = 15;
/// The precedence of `not`.
pub const NOT: u8 = 5;
/// The precedence of `x if c else y`.
pub const CONDITIONAL: u8 = 2;

impl BinaryOp {
    /// All binary operators, in the order of the enum.
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

    /// Returns the operator's row of the table.
    pub fn info(self) -> OpInfo {
        use TypeRule::{Arithmetic, Bits, Comparison, Float, Integer, Logic};
        let infix = |symbol, call, precedence, rule| OpInfo { symbol: Some(symbol), call, precedence, rule };
        let called = |call, rule| OpInfo { symbol: None, call, precedence: ATOM, rule };
        // Symbols and precedences are Python's, because TVMScript is read by a Python parser.
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

    /// Returns for which right operands the operator traps.
    pub fn traps(self) -> Traps {
        match self {
            Self::FloorDiv | Self::FloorMod | Self::TruncDiv | Self::TruncMod => Traps::ZeroDivisor,
            Self::Shl | Self::Shr => Traps::ShiftAmount,
            Self::Add
            | Self::Sub
            | Self::Mul
            | Self::Div
            | Self::Min
            | Self::Max
            | Self::Eq
            | Self::Ne
            | Self::Lt
            | Self::Le
            | Self::Gt
            | Self::Ge
            | Self::And
            | Self::Or
            | Self::BitAnd
            | Self::BitOr
            | Self::BitXor => Traps::Never,
        }
    }

    /// Returns the type of the result for operands of types `lhs` and `rhs`, and `None` if the operator does not
    /// accept them.
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

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// Minus, for a number.
    Neg,
    /// Logical not, for a `bool`.
    Not,
    /// Bitwise not, for an integer.
    BitNot,
}

impl UnaryOp {
    /// Returns Python's symbol and its precedence.
    pub fn symbol(self) -> (&'static str, u8) {
        match self {
            Self::Neg => ("-", UNARY),
            Self::Not => ("not ", NOT),
            Self::BitNot => ("~", UNARY),
        }
    }

    /// Returns the type of the result, and `None` if the operator does not accept `operand`.
    pub fn result_type(self, operand: DataType) -> Option<DataType> {
        let accepts = match self {
            Self::Neg => operand.scalar.is_integer() || operand.scalar.is_float(),
            Self::Not => operand.scalar == ScalarType::Bool,
            Self::BitNot => operand.scalar.is_integer(),
        };
        accepts.then_some(operand)
    }
}

/// A math function. All but [`MathFn::Abs`] and [`MathFn::FloatOfBits`] take floats only. The arguments have one common type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MathFn {
    /// Absolute value, also of integers. The least value of a signed type wraps to itself.
    Abs,
    /// e^x.
    Exp,
    /// 2^x.
    Exp2,
    /// 10^x.
    Exp10,
    /// Natural logarithm.
    Log,
    /// Natural logarithm of 1 + x.
    Log1p,
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
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// The angle of the point (x, y); the first argument is y.
    Atan2,
    /// x to the power y.
    Pow,
    /// The square root of x * x + y * y, without overflow of the squares.
    Hypot,
    /// The remainder of x / y rounded towards zero, exactly; it has the sign of x.
    Fmod,
    /// Error function.
    Erf,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// The greatest integer that is not above x.
    Floor,
    /// The least integer that is not below x.
    Ceil,
    /// The nearest integer, ties to even.
    Round,
    /// The integer part: x rounded towards zero.
    Trunc,
    /// Whether x is a NaN; the result is `bool`.
    IsNan,
    /// Whether x is infinite; the result is `bool`.
    IsInf,
    /// Whether x is neither a NaN nor infinite; the result is `bool`.
    IsFinite,
    /// How many bits of an integer are 1, in its type.
    PopCount,
    /// How many bits of an integer above its highest 1 are 0, as `int32`: all of them for 0.
    Clz,
    /// The bits of a `float32` or `float64` as a signed integer of as many bits. All NaNs have the bits of one, which is quiet and
    /// positive: no other operator tells NaNs apart.
    BitsOfFloat,
    /// The `float32` or `float64` with the bits of a signed integer of as many bits.
    FloatOfBits,
}

impl MathFn {
    /// All math functions, in the order of the enum.
    pub const ALL: [Self; 39] = [
        Self::Abs,
        Self::Exp,
        Self::Exp2,
        Self::Exp10,
        Self::Log,
        Self::Log1p,
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
        Self::Asinh,
        Self::Acosh,
        Self::Atanh,
        Self::Atan2,
        Self::Pow,
        Self::Hypot,
        Self::Fmod,
        Self::Erf,
        Self::Sigmoid,
        Self::Floor,
        Self::Ceil,
        Self::Round,
        Self::Trunc,
        Self::IsNan,
        Self::IsInf,
        Self::IsFinite,
        Self::PopCount,
        Self::Clz,
        Self::BitsOfFloat,
        Self::FloatOfBits,
    ];

    /// Returns TVMScript's name, without `T.`, and the number of arguments. A table. The two that [`MathFn::is_reinterpretation`] names are
    /// one function in TVMScript, `T.reinterpret("int32", x)`, which states its type.
    pub fn info(self) -> (&'static str, usize) {
        match self {
            Self::Abs => ("abs", 1),
            Self::Exp => ("exp", 1),
            Self::Exp2 => ("exp2", 1),
            Self::Exp10 => ("exp10", 1),
            Self::Log => ("log", 1),
            Self::Log1p => ("log1p", 1),
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
            Self::Asinh => ("asinh", 1),
            Self::Acosh => ("acosh", 1),
            Self::Atanh => ("atanh", 1),
            Self::Atan2 => ("atan2", 2),
            Self::Pow => ("pow", 2),
            Self::Hypot => ("hypot", 2),
            Self::Fmod => ("fmod", 2),
            Self::Erf => ("erf", 1),
            Self::Sigmoid => ("sigmoid", 1),
            Self::Floor => ("floor", 1),
            Self::Ceil => ("ceil", 1),
            Self::Round => ("round", 1),
            Self::Trunc => ("trunc", 1),
            Self::IsNan => ("isnan", 1),
            Self::IsInf => ("isinf", 1),
            Self::IsFinite => ("isfinite", 1),
            Self::PopCount => ("popcount", 1),
            Self::Clz => ("clz", 1),
            Self::BitsOfFloat => ("bits_of_float", 1),
            Self::FloatOfBits => ("float_of_bits", 1),
        }
    }

    /// Returns the function with this name, in the spelling of [`MathFn::info`].
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.info().0 == name && !function.is_reinterpretation())
    }

    /// Returns whether the function gives the same bits another type.
    pub fn is_reinterpretation(self) -> bool {
        matches!(self, Self::BitsOfFloat | Self::FloatOfBits)
    }

    /// Returns the type of the result, and `None` if the function does not accept arguments of the types `args`.
    pub fn result_type(self, args: &[DataType]) -> Option<DataType> {
        let &first = args.first()?;
        let scalar = first.scalar;
        let (accepts, result) = match self.type_rule() {
            MathTypeRule::Number => (scalar.is_float() || scalar.is_integer(), scalar),
            MathTypeRule::Float => (scalar.is_float(), scalar),
            MathTypeRule::Predicate => (scalar.is_float(), ScalarType::Bool),
            MathTypeRule::Integer => (scalar.is_integer(), scalar),
            MathTypeRule::Count => (scalar.is_integer(), ScalarType::Int32),
            MathTypeRule::Bits => return self.reinterpreted(args),
        };
        (accepts && args.len() == self.info().1 && args.iter().all(|&ty| ty == first))
            .then_some(DataType { scalar: result, lanes: first.lanes })
    }

    /// Returns the type of the same bits: floats become signed integers and the other way round.
    fn reinterpreted(self, args: &[DataType]) -> Option<DataType> {
        let &[arg] = args else { return None };
        let scalar = match (self, arg.scalar) {
            (Self::BitsOfFloat, ScalarType::Float32) => ScalarType::Int32,
            (Self::BitsOfFloat, ScalarType::Float64) => ScalarType::Int64,
            (Self::FloatOfBits, ScalarType::Int32) => ScalarType::Float32,
            (Self::FloatOfBits, ScalarType::Int64) => ScalarType::Float64,
            _ => return None,
        };
        Some(DataType { scalar, lanes: arg.lanes })
    }

    /// Returns the argument and result types. A table that lists every function, so that a new one is not taken for a
    /// function from floats to floats by default.
    const fn type_rule(self) -> MathTypeRule {
        match self {
            Self::Abs => MathTypeRule::Number,
            Self::IsNan | Self::IsInf | Self::IsFinite => MathTypeRule::Predicate,
            Self::PopCount => MathTypeRule::Integer,
            Self::Clz => MathTypeRule::Count,
            Self::BitsOfFloat | Self::FloatOfBits => MathTypeRule::Bits,
            Self::Exp
            | Self::Exp2
            | Self::Exp10
            | Self::Log
            | Self::Log1p
            | Self::Log2
            | Self::Log10
            | Self::Sqrt
            | Self::Rsqrt
            | Self::Sin
            | Self::Cos
            | Self::Tan
            | Self::Sinh
            | Self::Cosh
            | Self::Tanh
            | Self::Asin
            | Self::Acos
            | Self::Atan
            | Self::Asinh
            | Self::Acosh
            | Self::Atanh
            | Self::Atan2
            | Self::Pow
            | Self::Hypot
            | Self::Fmod
            | Self::Erf
            | Self::Sigmoid
            | Self::Floor
            | Self::Ceil
            | Self::Round
            | Self::Trunc => MathTypeRule::Float,
        }
    }
}

/// The argument types that a math function accepts, and its result type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MathTypeRule {
    /// Numbers (not `bool`) of one type; the result has that type.
    Number,
    /// Floats of one type; the result has that type.
    Float,
    /// Floats of one type; the result is `bool`.
    Predicate,
    /// Integers of one type; the result has that type.
    Integer,
    /// Integers of one type; the result is `int32`.
    Count,
    /// A float and an integer of as many bits.
    Bits,
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
    fn operators_reject_operands_outside_their_type_rule() {
        let (i, f) = (DataType::INT32, DataType::scalar(ScalarType::Float32));
        assert_eq!(BinaryOp::Add.result_type(i, i), Some(i));
        assert_eq!(BinaryOp::Add.result_type(i, f), None);
        assert_eq!(BinaryOp::Lt.result_type(f.with_lanes(4), f.with_lanes(4)), Some(DataType::BOOL.with_lanes(4)));
        assert_eq!(BinaryOp::Div.result_type(i, i), None);
        assert_eq!(BinaryOp::And.result_type(i, i), None);
        assert_eq!(MathFn::Exp.result_type(&[i]), None);
        assert_eq!(MathFn::Abs.result_type(&[i]), Some(i));
        assert_eq!(MathFn::BitsOfFloat.result_type(&[f.with_lanes(4)]), Some(i.with_lanes(4)));
        assert_eq!(MathFn::FloatOfBits.result_type(&[f]), None);
    }
}
