//! Compilation of expressions. A vector is compiled lane by lane.
//!
//! Common operators on `float32`, `float64` and integers have instructions of their own; the others are evaluated by the
//! operator table of `ir`. Both give the same bits.

use tilewright_ir::{BinaryOp, DataType, Diagnostic, Expr, MathFn, Scalar, ScalarType, Traps, TypeClass, UnaryOp};

use super::Compiler;
use crate::code::{Instr, Op, Reg};
use crate::num::{encode, signed_in_register};

/// The registers of a value, one for each lane.
pub(super) type LaneRegs = Vec<Reg>;

/// Transposes operands into lanes: entry `i` holds lane `i` of every operand. A scalar operand is repeated.
fn zip(operands: &[LaneRegs]) -> Vec<Vec<Reg>> {
    let lanes = operands.iter().map(Vec::len).max().unwrap_or(0);
    let lane = |values: &LaneRegs, at: usize| values.get(at).or_else(|| values.last()).copied().unwrap_or(0);
    (0..lanes).map(|at| operands.iter().map(|values| lane(values, at)).collect()).collect()
}

impl<'a> Compiler<'_, 'a> {
    /// Compiles an expression and returns the registers of its value.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Result<LaneRegs, Diagnostic> {
        match expr {
            Expr::Int { value, ty } => Ok(vec![self.constant(encode(*ty, Scalar::Int(*value)))?]),
            Expr::Float { value, ty } => Ok(vec![self.constant(encode(*ty, Scalar::Float(*value)))?]),
            Expr::Var(var) => {
                let unbound = || Diagnostic::error("unbound", None, format!("variable `{var}` has no value"));
                // A vector variable has its lanes in a row.
                let first = *self.vars.get(var).ok_or_else(unbound)?;
                Ok(self.lanes_of(var.dtype().lanes).map(|lane| first + u32::from(lane)).collect())
            }
            Expr::Binary(op, lhs, rhs) => {
                let ty = lhs.dtype().scalar;
                let operands = [self.expr(lhs)?, self.expr(rhs)?];
                self.for_each_lane(&operands, |this, lane| this.binary(*op, ty, lane[0], lane[1]))
            }
            Expr::Unary(op, operand) => {
                let ty = operand.dtype().scalar;
                let operands = [self.expr(operand)?];
                self.for_each_lane(&operands, |this, lane| this.unary(*op, ty, lane[0]))
            }
            Expr::Call(function, args) => {
                let ty = args.first().map_or(ScalarType::Float32, |arg| arg.dtype().scalar);
                let operands = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>, _>>()?;
                self.for_each_lane(&operands, |this, lane| this.call(*function, ty, lane))
            }
            Expr::Select(cond, a, b) => {
                let operands = [self.expr(cond)?, self.expr(a)?, self.expr(b)?];
                let ty = a.dtype().scalar;
                self.for_each_lane(&operands, |this, lane| {
                    this.emit_hoisted(Instr::new(Op::Select, ty, [lane[0], lane[1], lane[2]]))
                })
            }
            Expr::IfThenElse(cond, a, b) => self.if_then_else(cond, a, b),
            Expr::Cast(to, value) => {
                let from = value.dtype().scalar;
                let operands = [self.expr(value)?];
                self.for_each_lane(&operands, |this, lane| this.cast(from, *to, lane[0]))
            }
            Expr::Ramp { base, stride, lanes } => {
                let ty = base.dtype().scalar;
                let (base, stride) = (self.expr(base)?[0], self.expr(stride)?[0]);
                self.lanes_of(*lanes).map(|lane| self.ramp_lane(ty, base, stride, lane)).collect()
            }
            Expr::Broadcast { value, lanes } => {
                let value = self.expr(value)?[0];
                Ok(self.lanes_of(*lanes).map(|_| value).collect())
            }
            Expr::Load { buffer, indices } => self.load(buffer, indices),
        }
    }

    /// Calls `emit` with the operands of each lane and collects the results.
    fn for_each_lane(
        &mut self,
        operands: &[LaneRegs],
        mut emit: impl FnMut(&mut Self, &[Reg]) -> Result<Reg, Diagnostic>,
    ) -> Result<LaneRegs, Diagnostic> {
        zip(operands).iter().map(|lane| emit(self, lane)).collect()
    }

    /// Lane number `lane` of a ramp: `base + stride * lane`.
    fn ramp_lane(&mut self, ty: ScalarType, base: Reg, stride: Reg, lane: u16) -> Result<Reg, Diagnostic> {
        let lane = self.int(lane.into())?;
        let distance = self.binary(BinaryOp::Mul, ty, stride, lane)?;
        self.binary(BinaryOp::Add, ty, base, distance)
    }

    /// Compiles a conditional expression to jumps: only the chosen operand is evaluated, and only it can trap.
    fn if_then_else(&mut self, cond: &'a Expr, a: &'a Expr, b: &'a Expr) -> Result<LaneRegs, Diagnostic> {
        let ty = a.dtype();
        if !cond.dtype().is_scalar() && self.lane.is_none() {
            return self.select_by_lane(cond, a, b);
        }
        let width = self.lanes_of(ty.lanes).len();
        let cond = self.expr(cond)?[0];
        let depth = self.depth();
        let first = self.registers(width, depth)?;
        let results: LaneRegs = (first..).take(width).collect();
        let arm = |this: &mut Self, expr: &'a Expr| -> Result<_, Diagnostic> {
            let ((), _, code) = this.branch(|this| {
                let values = this.expr(expr)?;
                for (&d, &value) in results.iter().zip(&values) {
                    this.emit(Instr { d, ..Instr::new(Op::Move, ty.scalar, [value, 0, 0]) })?;
                }
                Ok(())
            })?;
            Ok(code)
        };
        let (then_code, else_code) = (arm(self, a)?, arm(self, b)?);
        self.emit_branches(cond, then_code, else_code)?;
        Ok(results)
    }

    /// Compiles a conditional expression with a vector condition, which selects and evaluates each lane separately.
    fn select_by_lane(&mut self, cond: &'a Expr, a: &'a Expr, b: &'a Expr) -> Result<LaneRegs, Diagnostic> {
        let mut results = LaneRegs::new();
        for lane in 0..a.dtype().lanes {
            self.lane = Some(lane);
            let result = self.if_then_else(cond, a, b);
            self.lane = None;
            results.extend(result?);
        }
        Ok(results)
    }

    /// The lanes of a vector to compute: all, or only [`Compiler::lane`] if that is set.
    pub(super) fn lanes_of(&self, lanes: u16) -> std::ops::Range<u16> {
        match self.lane {
            Some(lane) if lanes > 1 => lane..lane + 1,
            _ => 0..lanes,
        }
    }

    /// Emits two branches of straight-line code.
    pub(super) fn emit_branches(
        &mut self,
        cond: Reg,
        mut then_code: crate::code::Code,
        else_code: crate::code::Code,
    ) -> Result<(), Diagnostic> {
        let length = |code: &crate::code::Code| Reg::try_from(code.instrs.len()).map_err(|_| super::too_large());
        if !else_code.is_empty() {
            let over = Instr::new(Op::Jump, ScalarType::Bool, [0, 0, length(&else_code)?]);
            then_code.push(over, self.site);
        }
        self.emit(Instr::new(Op::JumpIfZero, ScalarType::Bool, [cond, 0, length(&then_code)?]))?;
        let level = self.level();
        level.code.append(then_code);
        level.code.append(else_code);
        Ok(())
    }

    /// Emits a binary operator on operands of the type `ty`.
    pub(super) fn binary(&mut self, op: BinaryOp, ty: ScalarType, a: Reg, b: Reg) -> Result<Reg, Diagnostic> {
        match ty {
            ScalarType::Float32 => self.binary_f32(op, a, b),
            ScalarType::Float64 => self.binary_f64(op, a, b),
            ScalarType::Float16 | ScalarType::BFloat16 => self.binary_from_table(op, ty, a, b),
            ScalarType::Bool
            | ScalarType::Int8
            | ScalarType::Int16
            | ScalarType::Int32
            | ScalarType::Int64
            | ScalarType::UInt8
            | ScalarType::UInt16
            | ScalarType::UInt32
            | ScalarType::UInt64
            | ScalarType::Handle => self.binary_int(op, ty, a, b),
        }
    }

    /// Emits a binary operator that is evaluated by the operator table.
    fn binary_from_table(&mut self, op: BinaryOp, ty: ScalarType, a: Reg, b: Reg) -> Result<Reg, Diagnostic> {
        let number = BinaryOp::ALL.iter().position(|&other| other == op).unwrap_or_default();
        let mut instr = Instr::new(Op::Binary, ty, [a, b, 0]);
        instr.aux = u8::try_from(number).unwrap_or_default();
        if self.may_trap(op, ty, b) { self.emit_once(instr) } else { self.emit_hoisted(instr) }
    }

    /// Whether an integer operator may have no value, judging by its right operand.
    fn may_trap(&self, op: BinaryOp, ty: ScalarType, b: Reg) -> bool {
        match op.traps() {
            Traps::Never => false,
            Traps::ZeroDivisor => self.constant_value(b).is_none_or(|divisor| divisor == 0),
            Traps::ShiftAmount => self.constant_value(b).is_none_or(|amount| amount >= ty.bits().into()),
        }
    }

    /// Emits a binary operator on integers.
    ///
    /// Signed types and unsigned ones below 64 bits are computed with signed 64-bit instructions and wrapped where the
    /// result may leave the type; `uint64` uses those instructions only where they do not depend on the sign.
    fn binary_int(&mut self, op: BinaryOp, ty: ScalarType, a: Reg, b: Reg) -> Result<Reg, Diagnostic> {
        let signed = signed_in_register(ty);
        let (int32, (a, b)) = (ty == ScalarType::Int32, if swaps_operands(op) { (b, a) } else { (a, b) });
        let (code, wraps) = match op {
            BinaryOp::Add => (if int32 { Op::Add32 } else { Op::Add }, !int32),
            BinaryOp::Sub => (if int32 { Op::Sub32 } else { Op::Sub }, !int32),
            BinaryOp::Mul => (if int32 { Op::Mul32 } else { Op::Mul }, !int32),
            BinaryOp::Eq => (Op::Eq, false),
            BinaryOp::Ne => (Op::Ne, false),
            BinaryOp::And | BinaryOp::BitAnd => (Op::And, false),
            BinaryOp::Or | BinaryOp::BitOr => (Op::Or, false),
            BinaryOp::BitXor => (Op::Xor, false),
            BinaryOp::Shl => (Op::Shl, true),
            BinaryOp::Div => return self.binary_from_table(op, ty, a, b),
            _ if !signed => {
                let (a, b) = if swaps_operands(op) { (b, a) } else { (a, b) };
                return self.binary_from_table(op, ty, a, b);
            }
            BinaryOp::FloorDiv => (Op::FloorDiv, true),
            BinaryOp::TruncDiv => (Op::TruncDiv, true),
            BinaryOp::FloorMod => (Op::FloorMod, false),
            BinaryOp::TruncMod => (Op::TruncMod, false),
            BinaryOp::Min => (Op::Min, false),
            BinaryOp::Max => (Op::Max, false),
            BinaryOp::Lt | BinaryOp::Gt => (Op::Lt, false),
            BinaryOp::Le | BinaryOp::Ge => (Op::Le, false),
            BinaryOp::Shr => (Op::Shr, false),
        };
        if let Some(result) = self.simplified(op, a, b)? {
            return Ok(result);
        }
        let instr = Instr::new(code, ty, [a, b, 0]);
        let result = if self.may_trap(op, ty, b) { self.emit_once(instr)? } else { self.emit_hoisted(instr)? };
        // A quotient by a positive number needs no more bits than the dividend.
        let quotient = matches!(op, BinaryOp::FloorDiv | BinaryOp::TruncDiv);
        let positive = self.constant_value(b).is_some_and(|divisor| divisor.cast_signed() > 0);
        if !wraps || ty.bits() == 64 || (quotient && (positive || ty.class() != TypeClass::Int)) {
            return Ok(result);
        }
        self.emit_hoisted(Instr::new(Op::Wrap, ty, [result, 0, 0]))
    }

    /// The result of an operator by an identity (`a + 0`, `a * 1`, `a // 1`), or as a shift or mask for a division by a
    /// power of two; `None` if neither applies.
    fn simplified(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Result<Option<Reg>, Diagnostic> {
        let (left, right) = (self.constant_value(a), self.constant_value(b));
        Ok(match (op, left, right) {
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => Some(b),
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) | (BinaryOp::Mul | BinaryOp::FloorDiv, _, Some(1)) => Some(a),
            (BinaryOp::FloorDiv, _, Some(divisor)) if divisor.is_power_of_two() && divisor < 1 << 62 => {
                let by = self.int(divisor.trailing_zeros().into())?;
                Some(self.emit_hoisted(Instr::new(Op::Shr, ScalarType::Int64, [a, by, 0]))?)
            }
            (BinaryOp::FloorMod, _, Some(divisor)) if divisor.is_power_of_two() && divisor < 1 << 62 => {
                let mask = self.constant(divisor - 1)?;
                Some(self.emit_hoisted(Instr::new(Op::And, ScalarType::Int64, [a, mask, 0]))?)
            }
            _ => None,
        })
    }

    /// Emits a binary operator on `float64`.
    fn binary_f64(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Result<Reg, Diagnostic> {
        let ty = ScalarType::Float64;
        let op = match op {
            BinaryOp::Add => Op::AddF64,
            BinaryOp::Sub => Op::SubF64,
            BinaryOp::Mul => Op::MulF64,
            BinaryOp::Div => Op::DivF64,
            // The rest is rare on `float64` and goes through the operator table, which all types share.
            BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncMod
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => return self.binary_from_table(op, ty, a, b),
        };
        self.emit_hoisted(Instr::new(op, ty, [a, b, 0]))
    }

    /// Emits a binary operator on `float32`.
    fn binary_f32(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Result<Reg, Diagnostic> {
        let ty = ScalarType::Float32;
        let (a, b) = if swaps_operands(op) { (b, a) } else { (a, b) };
        let op = match op {
            BinaryOp::Add => Op::AddF32,
            BinaryOp::Sub => Op::SubF32,
            BinaryOp::Mul => Op::MulF32,
            BinaryOp::Div => Op::DivF32,
            BinaryOp::Min => Op::MinF32,
            BinaryOp::Max => Op::MaxF32,
            BinaryOp::Eq => Op::EqF32,
            // `a > b` is `b < a` also for a NaN, which makes both false; `!(a <= b)` would be true.
            BinaryOp::Lt | BinaryOp::Gt => Op::LtF32,
            BinaryOp::Le | BinaryOp::Ge => Op::LeF32,
            BinaryOp::Ne
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncMod
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => return self.binary_from_table(op, ty, a, b),
        };
        self.emit_hoisted(Instr::new(op, ty, [a, b, 0]))
    }

    /// Emits a unary operator.
    fn unary(&mut self, op: UnaryOp, ty: ScalarType, a: Reg) -> Result<Reg, Diagnostic> {
        let mut instr = Instr::new(Op::Unary, ty, [a, 0, 0]);
        instr.aux = match op {
            UnaryOp::Neg if signed_in_register(ty) => {
                let zero = self.int(0)?;
                return self.binary(BinaryOp::Sub, ty, zero, a);
            }
            UnaryOp::Not => {
                let one = self.int(1)?;
                return self.emit_hoisted(Instr::new(Op::Xor, ty, [a, one, 0]));
            }
            UnaryOp::Neg => 0,
            UnaryOp::BitNot => 2,
        };
        self.emit_hoisted(instr)
    }

    /// Emits a function of one or two arguments.
    fn call(&mut self, function: MathFn, ty: ScalarType, args: &[Reg]) -> Result<Reg, Diagnostic> {
        let number = MathFn::ALL.iter().position(|&other| other == function).unwrap_or_default();
        let first = args.first().copied().unwrap_or(0);
        let mut instr = Instr::new(Op::Call, ty, [first, args.get(1).copied().unwrap_or(first), 0]);
        instr.aux = u8::try_from(number).unwrap_or_default();
        self.emit_hoisted(instr)
    }

    /// Emits a conversion.
    fn cast(&mut self, from: ScalarType, to: DataType, a: Reg) -> Result<Reg, Diagnostic> {
        let to = to.scalar;
        if from == to {
            return Ok(a);
        }
        let whole = |ty: ScalarType| ty.is_integer() || ty == ScalarType::Bool;
        if whole(from) && whole(to) {
            // The register of an unsigned 64-bit integer has the same bits as that of a signed one.
            return if to.bits() == 64 { Ok(a) } else { self.emit_hoisted(Instr::new(Op::Wrap, to, [a, 0, 0])) };
        }
        if to == ScalarType::Float32 && signed_in_register(from) {
            return self.emit_hoisted(Instr::new(Op::IntToF32, from, [a, 0, 0]));
        }
        self.emit_hoisted(Instr { to, ..Instr::new(Op::Cast, from, [a, 0, 0]) })
    }
}

/// Whether a comparison is compiled as its mirror image with exchanged operands: `a > b` as `b < a`.
fn swaps_operands(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Gt | BinaryOp::Ge)
}
