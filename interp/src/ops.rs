//! The meaning of the instructions that neither jump nor access memory.
//!
//! Each agrees bit for bit with the operator table of `ir`, which `tests/operators.rs` checks; the rare ones call it.

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, DataType, MathFn, Scalar, ScalarError, ScalarType, UnaryOp, scalar};

use crate::code::{Instr, Op};
use crate::num::{decode, encode, f32_of, wrap};

/// The register that holds a `float32`.
fn f32_bits(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// Encodes the result of an operator on operands of the type `ty`; comparisons give a `bool`.
fn encode_result(op: BinaryOp, ty: ScalarType, value: Scalar) -> u64 {
    let compares = op.info().rule == tilewright_ir::op::TypeRule::Comparison;
    encode(if compares { ScalarType::Bool } else { ty }, value)
}

/// The value of an instruction on the given registers; 0 for one that computes nothing (a jump, a store).
///
/// # Errors
/// Division by zero, or a shift by an amount out of range.
#[inline(always)]
#[expect(clippy::inline_always, reason = "merged into the interpreter's dispatch")]
pub(crate) fn compute(instr: &Instr, registers: &[u64]) -> Result<u64, ScalarError> {
    let reg = |number: u32| registers[number as usize];
    evaluate(instr.op, instr, || reg(instr.a), || reg(instr.b), || reg(instr.c))
}

/// The value of the operator `op` on three operands.
///
/// `op` equals `instr.op`. It is a separate parameter so that a caller with a constant gets a specialised copy; the
/// operands are closures so that a copy reads only those it uses.
///
/// # Errors
/// Division by zero, or a shift by an amount out of range.
#[inline(always)]
#[expect(clippy::inline_always, reason = "merged into the loops over it, where the operator is known")]
pub(crate) fn evaluate(
    op: Op,
    instr: &Instr,
    a: impl Fn() -> u64,
    b: impl Fn() -> u64,
    c: impl Fn() -> u64,
) -> Result<u64, ScalarError> {
    let (x, y) = (|| a().cast_signed(), || b().cast_signed());
    let (fx, fy) = (|| f32_of(a()), || f32_of(b()));
    let (dx, dy) = (|| f64::from_bits(a()), || f64::from_bits(b()));
    let done = |value: i64| Ok(value.cast_unsigned());
    let narrow = |value: i64| Ok(wrap(ScalarType::Int32, value).cast_unsigned());
    let nonzero = |value: i64| if value == 0 { Err(ScalarError::DivisionByZero) } else { Ok(value) };
    match op {
        Op::Move => Ok(a()),
        Op::Add => done(x().wrapping_add(y())),
        Op::Sub => done(x().wrapping_sub(y())),
        Op::Mul => done(x().wrapping_mul(y())),
        Op::Add32 => narrow(x().wrapping_add(y())),
        Op::Sub32 => narrow(x().wrapping_sub(y())),
        Op::Mul32 => narrow(x().wrapping_mul(y())),
        Op::Wrap => done(wrap(instr.ty, x())),
        Op::FloorDiv => nonzero(y()).map(|y| floor_div(x(), y).cast_unsigned()),
        Op::FloorMod => nonzero(y()).map(|y| floor_mod(x(), y).cast_unsigned()),
        Op::TruncDiv => nonzero(y()).map(|y| x().wrapping_div(y).cast_unsigned()),
        Op::TruncMod => nonzero(y()).map(|y| x().wrapping_rem(y).cast_unsigned()),
        Op::Min if sabotage::on("minimum-commutes") => done(y().min(x())),
        Op::Min => done(x().min(y())),
        Op::Max => done(x().max(y())),
        Op::Eq => Ok(u64::from(x() == y())),
        Op::Ne => Ok(u64::from(x() != y())),
        Op::Lt => Ok(u64::from(x() < y())),
        Op::Le => Ok(u64::from(x() <= y())),
        Op::And => Ok(a() & b()),
        Op::Or => Ok(a() | b()),
        Op::Xor => Ok(a() ^ b()),
        Op::Shl => shift(instr.ty, b()).map(|by| a() << by),
        Op::Shr if sabotage::on("shift-fills-zeros") => {
            shift(instr.ty, b()).map(|by| (a() & (u64::MAX >> (64 - instr.ty.bits()))) >> by)
        }
        Op::Shr => shift(instr.ty, b()).map(|by| (x() >> by).cast_unsigned()),
        Op::AddF32 | Op::SubF32 | Op::MulF32 | Op::DivF32 | Op::MinF32 | Op::MaxF32 => {
            Ok(f32_bits(float_arithmetic(op, fx(), fy())))
        }
        Op::EqF32 | Op::LtF32 | Op::LeF32 => Ok(u64::from(float_comparison(op, fx(), fy()))),
        Op::AddF64 => Ok((dx() + dy()).to_bits()),
        Op::SubF64 => Ok((dx() - dy()).to_bits()),
        Op::MulF64 => Ok((dx() * dy()).to_bits()),
        Op::DivF64 => Ok((dx() / dy()).to_bits()),
        #[expect(clippy::cast_precision_loss, reason = "rounding once is what is asked for")]
        Op::IntToF32 => Ok(f32_bits(x() as f32)),
        Op::Select => Ok(if a() != 0 { b() } else { c() }),
        Op::Binary | Op::Unary | Op::Call | Op::Cast => evaluate_by_table(instr, a(), b()),
        // `Machine::run_code` executes these itself.
        Op::JumpIfZero | Op::Jump | Op::Load | Op::Store | Op::LoadStream | Op::StoreStream | Op::Assert => Ok(0),
    }
}

/// The value of an arithmetic operator on `float32`; `a` for any other operator.
#[inline(always)]
#[expect(clippy::inline_always, reason = "merged into the loops over it, where the operator is known")]
pub(crate) fn float_arithmetic(op: Op, a: f32, b: f32) -> f32 {
    match op {
        Op::AddF32 => a + b,
        Op::SubF32 => a - b,
        Op::MulF32 => a * b,
        Op::DivF32 => a / b,
        Op::MinF32 => min_f32(a, b),
        Op::MaxF32 => -min_f32(-a, -b),
        _ => a,
    }
}

/// The value of a comparison of `float32`: equal, less, or less or equal.
#[inline(always)]
#[expect(clippy::inline_always, reason = "merged into the loops over it, where the operator is known")]
#[expect(clippy::float_cmp, reason = "IEEE equality is the operator's meaning")]
pub(crate) fn float_comparison(op: Op, a: f32, b: f32) -> bool {
    match op {
        Op::EqF32 => a == b,
        Op::LtF32 => a < b,
        _ => a <= b,
    }
}

/// Evaluates an instruction with the operator table of `ir`.
#[inline(never)]
fn evaluate_by_table(instr: &Instr, a: u64, b: u64) -> Result<u64, ScalarError> {
    let ty = instr.ty;
    let (lhs, number) = (decode(ty, a), usize::from(instr.aux));
    match instr.op {
        Op::Binary => {
            let op = BinaryOp::ALL[number];
            op.eval(ty, lhs, decode(ty, b)).map(|value| encode_result(op, ty, value))
        }
        Op::Unary => {
            let op = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot][number];
            op.eval(ty, lhs).map(|value| encode(ty, value))
        }
        Op::Call => {
            let function = MathFn::ALL[number];
            let args = [lhs, decode(ty, b)];
            let value = function.eval(ty, &args[..function.info().1])?;
            let result = function.result_type(&[DataType::scalar(ty); 2][..function.info().1]);
            Ok(encode(result.map_or(ty, |result| result.scalar), value))
        }
        _ => Ok(encode(instr.to, scalar::cast(ty, instr.to, lhs))),
    }
}

/// The quotient rounded towards negative infinity, wrapping; `b` is not 0.
fn floor_div(a: i64, b: i64) -> i64 {
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    if r != 0 && (r < 0) != (b < 0) && !sabotage::on("division-truncates") { q - 1 } else { q }
}

/// The remainder of [`floor_div`], which has the sign of the divisor; `b` is not 0.
fn floor_mod(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) && !(sabotage::on("remainder-keeps-sign") && r < 0) { r + b } else { r }
}

/// A shift amount, checked against the width of the type.
fn shift(ty: ScalarType, amount: u64) -> Result<u32, ScalarError> {
    let by = u32::try_from(amount).ok().filter(|&by| by < ty.bits());
    by.ok_or_else(|| ScalarError::ShiftAmount(decode(ty, amount).as_int().unwrap_or_default()))
}

/// `BinaryOp::Min` of the operator table: `b` if `a` is NaN, and `a` if the operands compare equal.
#[inline]
fn min_f32(a: f32, b: f32) -> f32 {
    if (a.is_nan() && !sabotage::on("minimum-keeps-nan")) || b < a { b } else { a }
}
