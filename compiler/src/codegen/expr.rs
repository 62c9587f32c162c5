//! Expressions in OpenCL C. The module page of [`super`] says where the languages differ.

use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, DataType, Diagnostic, Expr, MathFn, ScalarType, SharedExpr, TypeClass, UnaryOp, Var};

use super::helpers::lane;
use super::range::{Mode, constant, type_range};
use super::types::{
    NATIVE_LANES, float_literal, int_literal, scalar_name, suffix, unsigned_name, value_name, wrapping_name,
};
use super::writer::Writer;

/// A piece of C and how tightly its outermost operator binds.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) text: String,
    pub(crate) binds: u8,
}

const ATOM: u8 = 15;
const PREFIX: u8 = 14;
const PRODUCT: u8 = 13;
const SUM: u8 = 12;
const SHIFT: u8 = 11;
const ORDER: u8 = 10;
const EQUALITY: u8 = 9;
const BIT_AND: u8 = 8;
const BIT_XOR: u8 = 7;
const BIT_OR: u8 = 6;
const LOGICAL_AND: u8 = 5;
const LOGICAL_OR: u8 = 4;
const CONDITIONAL: u8 = 3;

impl Code {
    pub(crate) fn atom(text: impl Into<String>) -> Self {
        Self { text: text.into(), binds: ATOM }
    }

    /// Where at least `binds` is needed.
    pub(crate) fn within(&self, binds: u8) -> String {
        if self.binds < binds { format!("({})", self.text) } else { self.text.clone() }
    }

    /// As the operand of a cast.
    pub(crate) fn operand(&self) -> String {
        self.within(PREFIX)
    }

    pub(crate) fn call(function: &str, args: &[&Self]) -> Self {
        let args: Vec<_> = args.iter().map(|arg| arg.text.as_str()).collect();
        Self::atom(format!("{function}({})", args.join(", ")))
    }

    pub(crate) fn cast(ty: &str, value: &Self) -> Self {
        Self { text: format!("({ty}){}", value.operand()), binds: PREFIX }
    }

    fn infix(symbol: &str, binds: u8, lhs: &Self, rhs: &Self) -> Self {
        // Brackets also where C needs none but few people know the order.
        let (left, right) = match binds {
            PRODUCT | SUM => (binds, binds + 1),
            LOGICAL_AND | LOGICAL_OR => (binds, EQUALITY),
            ORDER | EQUALITY => (SUM, SUM),
            _ => (PREFIX, PREFIX),
        };
        Self { text: format!("{} {symbol} {}", lhs.within(left), rhs.within(right)), binds }
    }
}

/// Component `k` of a vector expression; none if the component has no expression of its own.
pub(crate) fn lane_of(expr: &Expr, k: u16) -> Option<Expr> {
    if expr.dtype().is_scalar() {
        return Some(expr.clone());
    }
    let boxed = |expr: &Expr| lane_of(expr, k).map(SharedExpr::new);
    Some(match expr {
        Expr::Ramp { base, stride, .. } => {
            let ty = base.dtype().scalar;
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
        Expr::Load { buffer, indices } if buffer.dtype.is_scalar() => Expr::Load {
            buffer: buffer.clone(),
            indices: indices.iter().map(|index| lane_of(index, k)).collect::<Option<_>>()?,
        },
        Expr::Load { .. } | Expr::Var(_) | Expr::Int { .. } | Expr::Float { .. } => return None,
    })
}

fn is_narrow_float(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::Float16 | ScalarType::BFloat16)
}

fn is_signed(ty: ScalarType) -> bool {
    ty.class() == TypeClass::Int
}

impl Writer {
    /// An expression of any number of lanes that OpenCL C has vectors of.
    pub(crate) fn expr(&mut self, expr: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = expr.dtype();
        self.check_type(ty)?;
        match expr {
            Expr::Int { value, ty } => {
                let text = int_literal(*value, *ty);
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
            Expr::IfThenElse(..) => self.choice_by_lanes(expr, mode),
            Expr::Cast(to, value) => self.cast(*to, value, mode),
            Expr::Ramp { lanes, .. } => {
                let lanes = (0..*lanes).filter_map(|k| lane_of(expr, k)).collect::<Vec<_>>();
                self.vector_of(ty, &lanes, mode)
            }
            Expr::Broadcast { value, .. } => {
                let value = self.expr(value, mode)?;
                Ok(Code { text: format!("({})({})", value_name(ty), value.text), binds: PREFIX })
            }
            Expr::Load { buffer, indices } => self.load(buffer, indices, mode),
        }
    }

    /// Refuses what OpenCL C has no type for, and notes what a device needs.
    fn check_type(&mut self, ty: DataType) -> Result<(), Diagnostic> {
        if ty.scalar == ScalarType::Float64 {
            self.uses_fp64 = true;
        }
        if NATIVE_LANES.contains(&ty.lanes) {
            return Ok(());
        }
        let message = format!("OpenCL C has no vectors of {} lanes, which `{ty}` asks for", ty.lanes);
        Err(self.error("opencl-lanes", message).with_help("use 2, 3, 4, 8 or 16 lanes"))
    }

    /// A vector out of its components.
    pub(crate) fn vector_of(&mut self, ty: DataType, lanes: &[Expr], mode: Mode) -> Result<Code, Diagnostic> {
        let lanes = lanes.iter().map(|lane| self.expr(lane, mode).map(|code| code.text));
        let lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        Ok(Code { text: format!("({})({})", value_name(ty), lanes.join(", ")), binds: PREFIX })
    }

    fn binary(&mut self, op: BinaryOp, lhs: &Expr, rhs: &Expr, whole: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = lhs.dtype();
        let (a, b) = (self.expr(lhs, mode)?, self.expr(rhs, mode)?);
        Ok(match op {
            BinaryOp::Add => self.arithmetic("+", SUM, (a, b), whole, mode),
            BinaryOp::Sub => self.arithmetic("-", SUM, (a, b), whole, mode),
            BinaryOp::Mul => self.arithmetic("*", PRODUCT, (a, b), whole, mode),
            BinaryOp::Div => self.arithmetic("/", PRODUCT, (a, b), whole, mode),
            BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {
                self.division(op, lhs, rhs, (a, b), mode)
            }
            BinaryOp::Min | BinaryOp::Max if ty.scalar.is_float() => {
                Code::call(&self.helpers.min_max(op, ty), &[&a, &b])
            }
            BinaryOp::Min => Code::call("min", &[&exactly(ty, a), &exactly(ty, b)]),
            BinaryOp::Max => Code::call("max", &[&exactly(ty, a), &exactly(ty, b)]),
            BinaryOp::Eq => compare("==", EQUALITY, ty, &a, &b),
            BinaryOp::Ne => compare("!=", EQUALITY, ty, &a, &b),
            BinaryOp::Lt => compare("<", ORDER, ty, &a, &b),
            BinaryOp::Le => compare("<=", ORDER, ty, &a, &b),
            BinaryOp::Gt => compare(">", ORDER, ty, &a, &b),
            BinaryOp::Ge => compare(">=", ORDER, ty, &a, &b),
            BinaryOp::And if ty.is_scalar() => Code::infix("&&", LOGICAL_AND, &a, &b),
            BinaryOp::Or if ty.is_scalar() => Code::infix("||", LOGICAL_OR, &a, &b),
            BinaryOp::And | BinaryOp::BitAnd => Code::infix("&", BIT_AND, &a, &b),
            BinaryOp::Or | BinaryOp::BitOr => Code::infix("|", BIT_OR, &a, &b),
            BinaryOp::BitXor => Code::infix("^", BIT_XOR, &a, &b),
            BinaryOp::Shl if ty.is_scalar() => {
                let wide = Code::cast(wrapping_name(ty.scalar), &a);
                Code::cast(scalar_name(ty.scalar), &Code::infix("<<", SHIFT, &wide, &b))
            }
            BinaryOp::Shl => wrapped(ty, "<<", SHIFT, &a, &b),
            BinaryOp::Shr => Code::infix(">>", SHIFT, &a, &b),
        })
    }

    /// `+ - * /` in the operand type: floats rounded to it, integers wrapped into it.
    fn arithmetic(&mut self, symbol: &str, binds: u8, (a, b): (Code, Code), whole: &Expr, mode: Mode) -> Code {
        let ty = whole.dtype();
        let plain = Code::infix(symbol, binds, &a, &b);
        if ty.scalar.is_float() {
            return self.rounded(ty, plain);
        }
        if !ty.is_scalar() {
            return if is_signed(ty.scalar) { wrapped(ty, symbol, binds, &a, &b) } else { plain };
        }
        let full = type_range(ty.scalar);
        let fits = self.ranges.exact(whole, mode).is_some_and(|range| full.includes(range));
        let natural = matches!(ty.scalar, ScalarType::UInt32 | ScalarType::UInt64);
        if fits || natural || mode == Mode::Index {
            return plain;
        }
        let unsigned = wrapping_name(ty.scalar);
        let wide = Code::infix(symbol, binds, &Code::cast(unsigned, &a), &Code::cast(unsigned, &b));
        Code::cast(scalar_name(ty.scalar), &wide)
    }

    /// A float result rounded to its type, where it was computed in a wider one.
    fn rounded(&mut self, ty: DataType, code: Code) -> Code {
        if is_narrow_float(ty.scalar) { Code::call(&self.helpers.round(ty), &[&code]) } else { code }
    }

    fn division(&mut self, op: BinaryOp, lhs: &Expr, rhs: &Expr, (a, b): (Code, Code), mode: Mode) -> Code {
        let ty = lhs.dtype();
        let floors = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
        let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::TruncDiv);
        let dividend = self.ranges.of(lhs, mode);
        let divisor = self.ranges.of(rhs, mode);
        let needs_sign = floors && is_signed(ty.scalar);
        if !ty.is_scalar() || divisor.low < 1 || (needs_sign && dividend.low < 0) {
            let (a, b) = (exactly(ty, a), exactly(ty, b));
            return Code::call(&self.helpers.division(op, ty), &[&a, &b]);
        }
        if needs_sign {
            self.note_dividend(lhs);
        }
        Code::infix(if divides { "/" } else { "%" }, PRODUCT, &a, &b)
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, whole: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = operand.dtype();
        let a = self.expr(operand, mode)?;
        let prefix = |symbol: &str| Code { text: format!("{symbol}{}", a.within(ATOM)), binds: PREFIX };
        Ok(match op {
            UnaryOp::Neg if ty.scalar.is_float() => prefix("-"),
            UnaryOp::Neg => {
                let zero = Code::atom(if ty.is_scalar() { "0".to_owned() } else { format!("({})(0)", value_name(ty)) });
                let full = type_range(ty.scalar);
                let fits = self.ranges.exact(whole, mode).is_some_and(|range| full.includes(range));
                if ty.is_scalar() && is_signed(ty.scalar) && (fits || mode == Mode::Index) {
                    prefix("-")
                } else if ty.is_scalar() {
                    let unsigned = wrapping_name(ty.scalar);
                    let wide = Code::infix("-", SUM, &zero, &Code::cast(unsigned, &a));
                    Code::cast(scalar_name(ty.scalar), &wide)
                } else {
                    wrapped(ty, "-", SUM, &zero, &a)
                }
            }
            UnaryOp::Not if ty.is_scalar() => prefix("!"),
            UnaryOp::Not => Code::infix("^", BIT_XOR, &a, &Code::atom(format!("({})(1)", value_name(ty)))),
            UnaryOp::BitNot if ty.is_scalar() => Code::cast(scalar_name(ty.scalar), &prefix("~")),
            UnaryOp::BitNot => prefix("~"),
        })
    }

    fn math(&mut self, function: MathFn, args: &[Expr], mode: Mode) -> Result<Code, Diagnostic> {
        let ty = args.first().map_or(DataType::INT32, Expr::dtype);
        let codes = args.iter().map(|arg| self.expr(arg, mode)).collect::<Result<Vec<_>, _>>()?;
        let codes: Vec<_> = codes.iter().collect();
        let builtin = |name: &str| Code::call(name, &codes);
        let exact = match function {
            MathFn::Abs if ty.scalar.is_float() => builtin("fabs"),
            MathFn::Abs => return Ok(integer_abs(ty, codes[0])),
            MathFn::Floor => builtin("floor"),
            MathFn::Ceil => builtin("ceil"),
            MathFn::Round => builtin("rint"),
            MathFn::Trunc => builtin("trunc"),
            MathFn::IsNan => return Ok(predicate("isnan", ty, codes[0])),
            MathFn::IsInf => return Ok(predicate("isinf", ty, codes[0])),
            MathFn::Sigmoid => {
                let helper = self.helpers.sigmoid(ty);
                let code = Code::call(&helper, &codes);
                return Ok(self.rounded(ty, code));
            }
            MathFn::Exp
            | MathFn::Exp2
            | MathFn::Exp10
            | MathFn::Log
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
            | MathFn::Atan2
            | MathFn::Pow
            | MathFn::Erf => {
                let code = builtin(function.info().0);
                return Ok(self.rounded(ty, code));
            }
        };
        Ok(exact)
    }

    /// One arm or the other. Of a condition of one lane C evaluates the chosen arm only, also where it is a vector.
    fn choice(&mut self, c: &Expr, a: &Expr, b: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let (ty, condition) = (a.dtype(), c.dtype());
        let (c, a, b) = (self.expr(c, mode)?, self.expr(a, mode)?, self.expr(b, mode)?);
        if condition.is_scalar() {
            let (c, a, b) = (c.within(CONDITIONAL + 1), a.within(CONDITIONAL + 1), b.within(CONDITIONAL + 1));
            return Ok(Code { text: format!("{c} ? {a} : {b}"), binds: CONDITIONAL });
        }
        // `select` looks at the most significant bit of a mask as wide as the values.
        let mask_type = format!("{}{}", signed_name(ty.scalar), suffix(ty.lanes));
        let mask = format!("-convert_{mask_type}({})", c.text);
        Ok(Code::atom(format!("select({}, {}, {mask})", b.text, a.text)))
    }

    /// A conditional whose lanes choose by themselves: each evaluates its own arm only, so no vector operation does.
    fn choice_by_lanes(&mut self, whole: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let ty = whole.dtype();
        let mut lanes = Vec::new();
        for k in 0..ty.lanes {
            let apart = self.vector_vars_apart(whole, k);
            let Some(lane) = lane_of(&apart, k) else {
                let message = format!("the lanes of `{whole}` cannot be written one by one");
                return Err(self.error("opencl-lane-choice", message).with_help(
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
            let Some(name) = self.vars.get(var).map(|name| lane(name, k)) else { continue };
            let single = Var::new(var.name(), var.dtype().with_lanes(1));
            self.vars.insert(single.clone(), name);
            let value = SharedExpr::new(Expr::from(&single));
            substitution.insert(var, Expr::Broadcast { value, lanes: var.dtype().lanes });
        }
        substitution.apply(expr)
    }

    fn cast(&mut self, to: DataType, value: &Expr, mode: Mode) -> Result<Code, Diagnostic> {
        let from = value.dtype();
        let code = self.expr(value, mode)?;
        if from == to {
            return Ok(code);
        }
        // A bool in memory is a byte: where it is an `int` for itself, overloaded builtins take it for another type.
        let is_byte = from == DataType::scalar(ScalarType::Bool) && matches!(value, Expr::Load { .. });
        let plain = if to.is_scalar() {
            if value_name(from) == value_name(to) && !is_byte {
                code.clone()
            } else {
                Code::cast(scalar_name(to.scalar), &code)
            }
        } else if value_name(from) == value_name(to) {
            code.clone()
        } else {
            Code::call(&format!("convert_{}", value_name(to)), &[&code])
        };
        Ok(match (from.scalar, to.scalar) {
            (_, ScalarType::Bool) => {
                let zero =
                    Code::atom(if to.is_scalar() { "0".to_owned() } else { format!("({})(0)", value_name(from)) });
                compare("!=", EQUALITY, from, &code, &zero)
            }
            (f, t) if f.is_float() && !t.is_float() => Code::call(&self.helpers.saturate(from, to), &[&code]),
            (ScalarType::BFloat16 | ScalarType::Float16 | ScalarType::Float32, t) if t.is_float() => {
                if t == ScalarType::Float64 || t == ScalarType::Float32 { plain } else { self.rounded(to, code) }
            }
            (ScalarType::Float64, ScalarType::Float16) => {
                Code::call(&self.helpers.half_from_double(to.lanes), &[&code])
            }
            (f, ScalarType::BFloat16) if f.bits() >= 32 => {
                let odd = Code::call(&self.helpers.float_to_odd(from), &[&code]);
                self.rounded(to, odd)
            }
            (_, t) if is_narrow_float(t) => self.rounded(to, plain),
            _ => plain,
        })
    }

    /// An index of one lane, as an `int` or `long`.
    pub(crate) fn index(&mut self, expr: &Expr) -> Result<Code, Diagnostic> {
        match constant(expr) {
            Some(value) => Ok(Code::atom(int_literal(value, expr.dtype().scalar))),
            None => self.expr(expr, Mode::Index),
        }
    }

    /// A place in a sum of index terms.
    pub(crate) fn sum(lhs: &Code, rhs: &Code) -> Code {
        match (lhs.text.as_str(), rhs.text.as_str()) {
            ("0", _) => rhs.clone(),
            (_, "0") => lhs.clone(),
            _ if sabotage::on("kernel-sums-commute") => Code::infix("+", SUM, rhs, lhs),
            _ => Code::infix("+", SUM, lhs, rhs),
        }
    }

    /// A product of index terms, computed in `long` if `wide`.
    pub(crate) fn product(lhs: &Code, rhs: &Code, wide: bool) -> Code {
        match (lhs.text.as_str(), rhs.text.as_str()) {
            ("0", _) | (_, "1") => lhs.clone(),
            ("1", _) | (_, "0") => rhs.clone(),
            _ if wide => Code::infix("*", PRODUCT, &Code::cast("long", lhs), rhs),
            _ => Code::infix("*", PRODUCT, lhs, rhs),
        }
    }
}

/// `a op b` on unsigned vectors of the same width, which wrap.
fn wrapped(ty: DataType, symbol: &str, binds: u8, a: &Code, b: &Code) -> Code {
    let n = suffix(ty.lanes);
    let unsigned = |code: &Code| Code::call(&format!("as_{}{n}", unsigned_name(ty.scalar)), &[code]);
    let result = Code::infix(symbol, binds, &unsigned(a), &unsigned(b));
    Code::call(&format!("as_{}", value_name(ty)), &[&result])
}

/// In exactly its type: C widens operands of less than 32 bits, and overloaded builtins want one type.
fn exactly(ty: DataType, code: Code) -> Code {
    if ty.is_scalar() && ty.scalar.bits() < 32 { Code::cast(scalar_name(ty.scalar), &code) } else { code }
}

/// A comparison; OpenCL's on vectors gives -1 for true.
fn compare(symbol: &str, binds: u8, operands: DataType, a: &Code, b: &Code) -> Code {
    let result = Code::infix(symbol, binds, a, b);
    if operands.is_scalar() {
        return result;
    }
    Code::atom(format!("convert_uchar{}(-({}))", operands.lanes, result.text))
}

fn predicate(name: &str, operand: DataType, a: &Code) -> Code {
    let call = Code::call(name, &[a]);
    if operand.is_scalar() {
        return call;
    }
    Code::atom(format!("convert_uchar{}(-{})", operand.lanes, call.text))
}

/// OpenCL's `abs` gives an unsigned result, so the least value comes back as itself.
fn integer_abs(ty: DataType, a: &Code) -> Code {
    if !is_signed(ty.scalar) {
        return a.clone();
    }
    let call = Code::call("abs", &[&exactly(ty, a.clone())]);
    if ty.is_scalar() {
        Code::cast(scalar_name(ty.scalar), &call)
    } else {
        Code::call(&format!("as_{}", value_name(ty)), &[&call])
    }
}

/// The signed type as wide as a value of the type in a vector.
fn signed_name(ty: ScalarType) -> &'static str {
    match value_width(ty) {
        8 => "char",
        16 => "short",
        64 => "long",
        _ => "int",
    }
}

fn value_width(ty: ScalarType) -> u32 {
    match ty {
        ScalarType::Bool => 8,
        ScalarType::Float16 | ScalarType::BFloat16 => 32,
        _ => ty.bits(),
    }
}
