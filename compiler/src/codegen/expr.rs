//! Expressions in C. The page of each target says where its language differs.
//!
//! ```text
//! (A[i] + 1) // 4      tw_floordiv_int((int)((unsigned)A[i] + 1u), 4)     a value: the sum wraps, the quotient rounds down
//! B[i * 4 + j // 2]    B[i * 4 + j / 2]                                   an index: it does not wrap, and j is not negative
//! ```
//!
//! The ranges of the operands ([`Ranges`](super::range::Ranges)) decide between C's own operator and a helper.

use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, DataType, Diagnostic, Expr, MathFn, ScalarType, SharedExpr, TypeClass, UnaryOp, Var};

use super::code::{
    ATOM, BIT_AND, BIT_OR, BIT_XOR, CONDITIONAL, Code, EQUALITY, LOGICAL_AND, LOGICAL_OR, ORDER, PREFIX, PRODUCT,
    SHIFT, SUM,
};
use super::literals::{float_literal, int_literal};
use super::range::{Mode, constant, type_range};
use super::target::Refusal;
use super::writer::Writer;

/// Returns lane `k` of a vector expression as an expression of one lane. A scalar expression is returned as it is.
///
/// Returns `None` if the lane cannot be written as an expression of the IR: a vector variable and an element of a buffer of
/// vectors have no syntax for one lane, and the element of a ramp may leave its type.
pub(crate) fn lane_of(expr: &Expr, k: u16) -> Option<Expr> {
    if expr.dtype().is_scalar() {
        return Some(expr.clone());
    }
    let boxed = |expr: &Expr| lane_of(expr, k).map(SharedExpr::new);
    Some(match expr {
        Expr::Ramp { base, stride, .. } => {
            let ty = base.dtype().scalar;
            // A constant step is folded, so that the index of lane 0 is `base` and a unit stride reads `base + k`.
            let step = match stride.as_const_int() {
                Some(stride) if sabotage::on("kernel-lanes-are-neighbours") => {
                    Expr::int_of(stride.signum() * i128::from(k), ty)?
                }
                Some(stride) => Expr::int_of(stride * i128::from(k), ty)?,
                None => Expr::binary(BinaryOp::Mul, (**stride).clone(), Expr::int_of(k.into(), ty)?),
            };
            if step.as_const_int() == Some(0) { (**base).clone() } else { (**base).clone() + step }
        }
        Expr::Broadcast { value, .. } => (**value).clone(),
        Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(a)?, boxed(b)?),
        Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)?),
        Expr::Call(function, args) => {
            Expr::Call(*function, args.iter().map(|arg| lane_of(arg, k)).collect::<Option<_>>()?)
        }
        Expr::Select(c, a, b) => Expr::Select(boxed(c)?, boxed(a)?, boxed(b)?),
        Expr::IfThenElse(c, a, b) => Expr::IfThenElse(boxed(c)?, boxed(a)?, boxed(b)?),
        Expr::Cast(ty, value) => Expr::Cast(ty.with_lanes(1), boxed(value)?),
        // The load is a vector because its last index is one; the other indices are scalars, which `lane_of` keeps.
        Expr::Load { buffer, indices } if buffer.dtype.is_scalar() => Expr::Load {
            buffer: buffer.clone(),
            indices: indices.iter().map(|index| lane_of(index, k)).collect::<Option<_>>()?,
        },
        Expr::Load { .. } | Expr::Var(_) | Expr::Int { .. } | Expr::Float { .. } => return None,
    })
}

/// Returns whether kernels hold values of a type in `float` and round them to the type after every operation.
fn is_narrow_float(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::Float16 | ScalarType::BFloat16)
}

/// Whether a type is a signed integer type.
fn is_signed(ty: ScalarType) -> bool {
    ty.class() == TypeClass::Int
}

impl Writer {
    /// Writes an expression.
    ///
    /// # Errors
    /// Refuses a number of lanes that the target has no vectors of, and every subexpression that it cannot express.
    pub(crate) fn expr(&mut self, expr: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = expr.dtype();
        self.check_type(ty)?;
        match expr {
            Expr::Int { value, ty } => {
                let text = int_literal(*value, *ty);
                // A literal with a sign counts as a prefix operator, so that its negation is `-(-1)` and not `--1`.
                Ok(Code { binds: if *value < 0 { PREFIX } else { ATOM }, text })
            }
            Expr::Float { value, ty } => {
                let binds =
                    if value.is_sign_negative() || value.is_nan() || value.is_infinite() { PREFIX } else { ATOM };
                Ok(Code { text: float_literal(*value, *ty), binds })
            }
            Expr::Var(var) => self.var(var),
            Expr::Binary(op, lhs, rhs) => self.binary(*op, lhs, rhs, expr, mode),
            Expr::Unary(op, operand) => self.unary(*op, operand, expr, mode),
            Expr::Call(function, args) => self.math(*function, args, mode),
            Expr::Select(c, a, b) => self.choice(c, a, b, mode),
            Expr::IfThenElse(c, a, b) if c.dtype().is_scalar() => self.choice(c, a, b, mode),
            // A vector `select` evaluates both arms, and the arm that a lane does not choose may be out of bounds.
            Expr::IfThenElse(..) => self.choice_by_lanes(expr, mode),
            Expr::Cast(to, value) => self.cast(*to, value, mode),
            Expr::Ramp { lanes, .. } => {
                let lanes = (0..*lanes).filter_map(|k| lane_of(expr, k)).collect::<Vec<_>>();
                self.vector_of(ty, &lanes, mode)
            }
            Expr::Broadcast { value, .. } => {
                let value = self.expr(value, mode)?;
                Ok(self.dialect().vector(ty, &[value.text]))
            }
            Expr::Load { buffer, indices } => self.load(buffer, indices, mode),
        }
    }

    /// Refuses a type that the target does not have, and notes that a device needs `float64`.
    fn check_type(&mut self, ty: DataType) -> Result<(), Diagnostic> {
        if ty.scalar == ScalarType::Float64 {
            self.uses_fp64 = true;
        }
        if self.target.lanes.contains(&ty.lanes) {
            return Ok(());
        }
        let message = format!("{} has no vectors of {} lanes, which `{ty}` asks for", self.target.language, ty.lanes);
        Err(self.error(Refusal::Lanes, message).with_help(lanes_help(self.target.lanes)))
    }

    /// A vector out of its components.
    pub(crate) fn vector_of(&mut self, ty: DataType, lanes: &[Expr], mode: Mode) -> Result<Code, Diagnostic> {
        let lanes = lanes.iter().map(|lane| self.expr(lane, mode).map(|code| code.text));
        let lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        Ok(self.dialect().vector(ty, &lanes))
    }

    /// Writes `lhs op rhs`. `whole` is the same expression with its operator; its range decides whether C's operator can be
    /// used.
    ///
    /// Where C's operator differs from the operator of the IR, the arm calls a function that adds the difference: wrapping
    /// on overflow, rounding down, a defined result for a NaN, or 0 and 1 as truth values of lanes.
    fn binary(&mut self, op: BinaryOp, lhs: &Expr, rhs: &Expr, whole: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = lhs.dtype();
        let (a, b) = (self.expr(lhs, mode)?, self.expr(rhs, mode)?);
        Ok(match op {
            BinaryOp::Add => self.arithmetic("+", SUM, (a, b), whole, mode),
            BinaryOp::Sub => self.arithmetic("-", SUM, (a, b), whole, mode),
            BinaryOp::Mul => self.arithmetic("*", PRODUCT, (a, b), whole, mode),
            BinaryOp::Div => self.arithmetic("/", PRODUCT, (a, b), whole, mode),
            BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {
                self.division(op, whole, ty, (a, b))
            }
            BinaryOp::Min | BinaryOp::Max if ty.scalar.is_float() => {
                Code::call(&self.dialect().float_min_max(&mut self.helpers, op, ty), &[&a, &b])
            }
            BinaryOp::Min | BinaryOp::Max => {
                // Overloaded `min` is ambiguous for a `char` that C has widened to `int`.
                let (a, b) = (self.exactly(ty, a), self.exactly(ty, b));
                self.dialect().integer_min_max(op, ty, &a, &b)
            }
            BinaryOp::Eq => self.compare("==", EQUALITY, ty, &a, &b),
            BinaryOp::Ne => self.compare("!=", EQUALITY, ty, &a, &b),
            BinaryOp::Lt => self.compare("<", ORDER, ty, &a, &b),
            BinaryOp::Le => self.compare("<=", ORDER, ty, &a, &b),
            BinaryOp::Gt => self.compare(">", ORDER, ty, &a, &b),
            BinaryOp::Ge => self.compare(">=", ORDER, ty, &a, &b),
            BinaryOp::And if ty.is_scalar() => Code::infix("&&", LOGICAL_AND, &a, &b),
            BinaryOp::Or if ty.is_scalar() => Code::infix("||", LOGICAL_OR, &a, &b),
            BinaryOp::And | BinaryOp::BitAnd => Code::infix("&", BIT_AND, &a, &b),
            BinaryOp::Or | BinaryOp::BitOr => Code::infix("|", BIT_OR, &a, &b),
            BinaryOp::BitXor => Code::infix("^", BIT_XOR, &a, &b),
            BinaryOp::Shl if ty.is_scalar() => {
                // C leaves the left shift of a negative number, and one that overflows, undefined for signed types.
                let wide = Code::cast(self.dialect().wrapping_name(ty.scalar), &a);
                Code::cast(self.dialect().scalar_name(ty.scalar), &Code::infix("<<", SHIFT, &wide, &b))
            }
            BinaryOp::Shl => self.dialect().wrapping_vector(ty, "<<", SHIFT, &a, &b),
            BinaryOp::Shr => Code::infix(">>", SHIFT, &a, &b),
        })
    }

    /// `+ - * /` in the operand type: floats rounded to it, integers wrapped into it.
    ///
    /// Overflow of signed integers is undefined in C. The operation is written directly if the ranges rule overflow out, or
    /// if it is index arithmetic, for which the obligation *overflow* is proved separately. Otherwise it is computed in the
    /// unsigned type.
    fn arithmetic(&mut self, symbol: &str, binds: u8, (a, b): (Code, Code), whole: &Expr, mode: Mode) -> Code {
        let ty = whole.dtype();
        let direct = Code::infix(symbol, binds, &a, &b);
        if ty.scalar.is_float() {
            return self.rounded(ty, direct);
        }
        if !ty.is_scalar() {
            return if is_signed(ty.scalar) {
                self.dialect().wrapping_vector(ty, symbol, binds, &a, &b)
            } else {
                direct
            };
        }
        let full = type_range(ty.scalar);
        let fits = self.ranges.exact(whole, mode).is_some_and(|range| full.includes(range));
        let natural = matches!(ty.scalar, ScalarType::UInt32 | ScalarType::UInt64);
        if fits || natural || mode == Mode::Index {
            return direct;
        }
        let unsigned = self.dialect().wrapping_name(ty.scalar);
        let wide = Code::infix(symbol, binds, &Code::cast(unsigned, &a), &Code::cast(unsigned, &b));
        Code::cast(self.dialect().scalar_name(ty.scalar), &wide)
    }

    /// A float result rounded to its type, where it was computed in a wider one.
    fn rounded(&mut self, ty: DataType, code: Code) -> Code {
        if !is_narrow_float(ty.scalar) {
            return code;
        }
        Code::call(&self.dialect().round(&mut self.helpers, ty), &[&code])
    }

    /// Writes the integer division `whole` with operands of type `ty`. C's operators round towards zero and are undefined for
    /// a divisor of 0, so they are used only if the judge proved that neither matters. Otherwise a helper of the target is
    /// called.
    fn division(&mut self, op: BinaryOp, whole: &Expr, ty: DataType, (a, b): (Code, Code)) -> Code {
        let is_truncating = ty.is_scalar() && self.proved.contains(whole);
        if ty.is_scalar() {
            self.divisions.note(whole, is_truncating);
        }
        if !is_truncating {
            let (a, b) = (self.exactly(ty, a), self.exactly(ty, b));
            return Code::call(&self.dialect().division(&mut self.helpers, op, ty), &[&a, &b]);
        }
        let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::TruncDiv);
        Code::infix(if divides { "/" } else { "%" }, PRODUCT, &a, &b)
    }

    /// `op operand`.
    fn unary(&mut self, op: UnaryOp, operand: &Expr, whole: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = operand.dtype();
        let a = self.expr(operand, mode)?;
        let prefix = |symbol: &str| Code { text: format!("{symbol}{}", a.within(ATOM)), binds: PREFIX };
        Ok(match op {
            UnaryOp::Neg if ty.scalar.is_float() => prefix("-"),
            UnaryOp::Neg => {
                // `-x` overflows for the least value of a signed type; `0 - x` in the unsigned type wraps as the IR does.
                let zero = self.zero(ty);
                let full = type_range(ty.scalar);
                let fits = self.ranges.exact(whole, mode).is_some_and(|range| full.includes(range));
                if ty.is_scalar() && is_signed(ty.scalar) && (fits || mode == Mode::Index) {
                    prefix("-")
                } else if ty.is_scalar() {
                    let unsigned = self.dialect().wrapping_name(ty.scalar);
                    let wide = Code::infix("-", SUM, &zero, &Code::cast(unsigned, &a));
                    Code::cast(self.dialect().scalar_name(ty.scalar), &wide)
                } else {
                    self.dialect().wrapping_vector(ty, "-", SUM, &zero, &a)
                }
            }
            UnaryOp::Not if ty.is_scalar() => prefix("!"),
            // Lanes hold 0 or 1; `!` of an OpenCL vector would give -1 for true.
            UnaryOp::Not => Code::infix("^", BIT_XOR, &a, &self.dialect().vector(ty, &["1".to_owned()])),
            UnaryOp::BitNot if ty.is_scalar() => Code::cast(self.dialect().scalar_name(ty.scalar), &prefix("~")),
            UnaryOp::BitNot => prefix("~"),
        })
    }

    /// A math function, rounded to its type.
    fn math(&mut self, function: MathFn, args: &[Expr], mode: Mode) -> Result<Code, Diagnostic> {
        let ty = args.first().map_or(DataType::INT32, Expr::dtype);
        let mut codes = args.iter().map(|arg| self.expr(arg, mode)).collect::<Result<Vec<_>, _>>()?;
        if ty.scalar.is_integer() {
            // An unsigned integer is its own magnitude; of a narrow one C would take the widened value's.
            if function == MathFn::Abs && !is_signed(ty.scalar) {
                return Ok(codes.swap_remove(0));
            }
            codes = codes.into_iter().map(|code| self.exactly(ty, code)).collect();
        }
        let code = self.dialect().math(&mut self.helpers, function, ty, &codes.iter().collect::<Vec<_>>());
        Ok(if is_exact(function) { code } else { self.rounded(ty, code) })
    }

    /// Writes a conditional. If the condition has one lane, C evaluates only the chosen arm, even if the arms are vectors.
    fn choice(&mut self, c: &Expr, a: &Expr, b: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let (ty, condition) = (a.dtype(), c.dtype());
        let (c, a, b) = (self.expr(c, mode)?, self.expr(a, mode)?, self.expr(b, mode)?);
        if condition.is_scalar() {
            let (c, a, b) = (c.within(CONDITIONAL + 1), a.within(CONDITIONAL + 1), b.within(CONDITIONAL + 1));
            return Ok(Code { text: format!("{c} ? {a} : {b}"), binds: CONDITIONAL });
        }
        Ok(self.dialect().select(ty, &c, &a, &b))
    }

    /// Writes a conditional with a vector condition lane by lane: each lane evaluates only the arm that it chooses, and no
    /// vector operation does that.
    fn choice_by_lanes(&mut self, whole: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = whole.dtype();
        let mut lanes = Vec::new();
        for k in 0..ty.lanes {
            let apart = self.vector_vars_apart(whole, k);
            let Some(lane) = lane_of(&apart, k) else {
                let message = format!("the lanes of `{whole}` cannot be written one by one");
                return Err(self.error(Refusal::LaneChoice, message).with_help(
                    "each lane evaluates one arm only; load single lanes in the arms, not elements that are vectors",
                ));
            };
            lanes.push(lane);
        }
        self.vector_of(ty, &lanes, mode)
    }

    /// An expression in which every vector variable is the broadcast of its lane `k`.
    fn vector_vars_apart(&mut self, expr: &Expr, k: u16) -> Expr {
        let mut substitution = Substitution::default();
        for var in expr.vars().iter().filter(|var| !var.dtype().is_scalar() && k < var.dtype().lanes) {
            let Some(name) = self.vars.get(var).map(|name| self.dialect().lane(name, k)) else { continue };
            let single = Var::new(var.name(), var.dtype().with_lanes(1));
            self.vars.insert(single.clone(), name);
            let value = SharedExpr::new(Expr::from(&single));
            substitution.insert(var, Expr::Broadcast { value, lanes: var.dtype().lanes });
        }
        substitution.apply(expr)
    }

    /// A conversion. Floats to integers saturate, and narrow floats are rounded once, which may take a helper of the target.
    fn cast(&mut self, to: DataType, value: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let from = value.dtype();
        let code = self.expr(value, mode)?;
        if from == to {
            return Ok(code);
        }
        // A bool in memory is a byte. Without a cast to `int`, overloaded builtins would take it for another type.
        let is_byte = from == DataType::scalar(ScalarType::Bool) && matches!(value, Expr::Load { .. });
        let same_type = self.dialect().value_name(from) == self.dialect().value_name(to);
        let converted = if to.is_scalar() {
            if same_type && !is_byte { code.clone() } else { Code::cast(self.dialect().scalar_name(to.scalar), &code) }
        } else if same_type {
            code.clone()
        } else {
            self.dialect().convert(to, &code)
        };
        Ok(match (from.scalar, to.scalar) {
            (_, ScalarType::Bool) => {
                let zero = self.zero(from);
                self.compare("!=", EQUALITY, from, &code, &zero)
            }
            (f, t) if f.is_float() && !t.is_float() => {
                Code::call(&self.dialect().saturate(&mut self.helpers, from, to), &[&code])
            }
            (ScalarType::BFloat16 | ScalarType::Float16 | ScalarType::Float32, t) if t.is_float() => {
                if t == ScalarType::Float64 || t == ScalarType::Float32 { converted } else { self.rounded(to, code) }
            }
            (ScalarType::Float64, ScalarType::Float16) => {
                Code::call(&self.dialect().half_from_double(&mut self.helpers, to.lanes), &[&code])
            }
            (f, ScalarType::BFloat16) if f.bits() >= 32 => {
                let odd = Code::call(&self.dialect().float_to_odd(&mut self.helpers, from), &[&code]);
                self.rounded(to, odd)
            }
            (_, t) if is_narrow_float(t) => self.rounded(to, converted),
            _ => converted,
        })
    }

    /// An index of one lane, as an `int` or `long`.
    pub(crate) fn index(&mut self, expr: &Expr) -> Result<Code, Diagnostic> {
        match constant(expr) {
            Some(value) => Ok(Code::atom(int_literal(value, expr.dtype().scalar))),
            None => self.expr(expr, Mode::Index),
        }
    }

    /// Writes `lhs + rhs` for two index terms; a term that is `0` is left out.
    pub(crate) fn sum(lhs: &Code, rhs: &Code) -> Code {
        match (lhs.text.as_str(), rhs.text.as_str()) {
            ("0", _) => rhs.clone(),
            (_, "0") => lhs.clone(),
            _ if sabotage::on("kernel-sums-commute") => Code::infix("+", SUM, rhs, lhs),
            _ => Code::infix("+", SUM, lhs, rhs),
        }
    }

    /// Writes `lhs * rhs` for two index terms, computed in 64 bits if `wide`; factors 0 and 1 are folded.
    pub(crate) fn product(&self, lhs: &Code, rhs: &Code, wide: bool) -> Code {
        match (lhs.text.as_str(), rhs.text.as_str()) {
            ("0", _) | (_, "1") => lhs.clone(),
            ("1", _) | (_, "0") => rhs.clone(),
            _ if wide => {
                Code::infix("*", PRODUCT, &Code::cast(self.dialect().scalar_name(ScalarType::Int64), lhs), rhs)
            }
            _ => Code::infix("*", PRODUCT, lhs, rhs),
        }
    }

    /// 0 in every lane.
    fn zero(&self, ty: DataType) -> Code {
        if ty.is_scalar() { Code::atom("0") } else { self.dialect().vector(ty, &["0".to_owned()]) }
    }

    /// Casts a value to exactly its type. C widens operands of less than 32 bits, and overloaded builtins need one type.
    fn exactly(&self, ty: DataType, code: Code) -> Code {
        let is_widened = ty.is_scalar() && ty.scalar.bits() < 32;
        if is_widened { Code::cast(self.dialect().scalar_name(ty.scalar), &code) } else { code }
    }

    /// A comparison: 0 or 1 in every lane.
    fn compare(&self, symbol: &str, binds: u8, operands: DataType, a: &Code, b: &Code) -> Code {
        let result = Code::infix(symbol, binds, a, b);
        if operands.is_scalar() { result } else { self.dialect().truth(operands.lanes, &result) }
    }
}

/// Returns whether the result of a function on a narrow float, computed in `float`, is always a value of the narrow type.
fn is_exact(function: MathFn) -> bool {
    match function {
        // Dropping the sign or rounding to an integer needs no more significant bits than the operand has.
        MathFn::Abs | MathFn::Floor | MathFn::Ceil | MathFn::Round | MathFn::Trunc => true,
        MathFn::IsNan | MathFn::IsInf | MathFn::IsFinite | MathFn::PopCount | MathFn::Clz => true,
        // A remainder is a multiple of the last place of the smaller operand, and below it.
        MathFn::Fmod => true,
        // Narrow floats have none.
        MathFn::BitsOfFloat | MathFn::FloatOfBits => true,
        MathFn::Exp
        | MathFn::Exp2
        | MathFn::Exp10
        | MathFn::Log
        | MathFn::Log1p
        | MathFn::Log2
        | MathFn::Log10
        | MathFn::Sqrt
        | MathFn::Rsqrt
        | MathFn::Sin
        | MathFn::Cos
        | MathFn::Tan
        | MathFn::Sinh
        | MathFn::Cosh
        | MathFn::Tanh
        | MathFn::Asin
        | MathFn::Acos
        | MathFn::Atan
        | MathFn::Asinh
        | MathFn::Acosh
        | MathFn::Atanh
        | MathFn::Atan2
        | MathFn::Pow
        | MathFn::Hypot
        | MathFn::Erf
        | MathFn::Sigmoid => false,
    }
}

/// `use 2, 3, 4, 8 or 16 lanes`.
fn lanes_help(lanes: &[u16]) -> String {
    let vectors: Vec<_> = lanes.iter().filter(|&&lanes| lanes > 1).map(ToString::to_string).collect();
    match vectors.split_last() {
        None => "use one lane".to_owned(),
        Some((last, [])) => format!("use {last} lanes"),
        Some((last, rest)) => format!("use {} or {last} lanes", rest.join(", ")),
    }
}
