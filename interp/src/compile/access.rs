//! Compilation of loads and stores, as accesses that check their indices or as streams of a vectorized nest.
//!
//! In `for y in 3: for x in 5: B[y, 2 * x + n]` the access is a stream: its indices start at `(0, n)` and change by
//! `(1, 0)` with `y` and by `(0, 2)` with `x`. In `B[y, x * x]` it is not, and every index is checked.

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Buffer, Diagnostic, Expr, Traps, UnaryOp, Var};

use super::expr::LaneRegs;
use super::{Compiler, NestContext};
use crate::code::{Access, Instr, Op, Reg, Stream, StreamDim};

/// For each lane of an access: the lane of the index, and the lane within the element.
fn lane_layout(buffer: &Buffer, index_lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    let element = usize::from(buffer.dtype.lanes);
    (0..index_lanes).flat_map(move |index| (0..element).map(move |lane| (index, lane)))
}

/// The lanes of the last index, the only one that may be a vector.
fn index_lanes(indices: &[Expr]) -> usize {
    indices.last().map_or(1, |index| usize::from(index.dtype().lanes))
}

impl<'a> Compiler<'_, 'a> {
    /// The number of a buffer.
    fn view(&self, buffer: &Buffer) -> Result<u32, Diagnostic> {
        let missing = || Diagnostic::error("no-memory", buffer.span, format!("buffer `{buffer}` has no memory here"));
        self.views.get(buffer).and_then(|&view| u32::try_from(view).ok()).ok_or_else(missing)
    }

    /// Compiles a load.
    pub(super) fn load(&mut self, buffer: &'a Buffer, indices: &'a [Expr]) -> Result<LaneRegs, Diagnostic> {
        let ty = buffer.dtype.scalar;
        let in_branch = self.is_in_branch();
        let streams = self.streams(buffer, indices, in_branch)?;
        if let (Some(streams), false) = (&streams, in_branch) {
            return streams
                .iter()
                .map(|&stream| self.emit_load(Instr::new(Op::LoadStream, ty, [stream, 0, 0])))
                .collect();
        }
        let accesses = self.accesses(buffer, indices, streams.as_deref())?;
        accesses.into_iter().map(|access| self.emit_load(Instr::new(Op::Load, ty, [access, 0, 0]))).collect()
    }

    /// Compiles a store. Indices are evaluated before the value, as `ir` defines it.
    pub(super) fn store(&mut self, buffer: &'a Buffer, indices: &'a [Expr], value: &'a Expr) -> Result<(), Diagnostic> {
        let ty = buffer.dtype.scalar;
        let in_branch = self.is_in_branch();
        let streams = self.streams(buffer, indices, in_branch)?;
        if let (Some(streams), false) = (&streams, in_branch) {
            let values = self.expr(value)?;
            for (&stream, value) in streams.iter().zip(values) {
                self.emit(Instr::new(Op::StoreStream, ty, [stream, value, 0]))?;
            }
            return Ok(());
        }
        let accesses = self.accesses(buffer, indices, streams.as_deref())?;
        let values = self.expr(value)?;
        for (access, value) in accesses.into_iter().zip(values) {
            self.emit(Instr::new(Op::Store, ty, [access, value, 0]))?;
        }
        Ok(())
    }

    /// Emits a load into a new register. Loads are never reused as common subexpressions, since memory may change.
    fn emit_load(&mut self, instr: Instr) -> Result<Reg, Diagnostic> {
        let depth = self.depth();
        let d = self.registers(1, depth)?;
        self.emit(Instr { d, ..instr })?;
        Ok(d)
    }

    /// Whether the current position is in a branch: each around it adds a scope to the one of the body.
    fn is_in_branch(&self) -> bool {
        self.levels.last().is_some_and(|level| level.numberings.len() > 1)
    }

    /// Emits the indices and returns the numbers of the accesses, one for each lane, which have the elements of the streams.
    fn accesses(
        &mut self,
        buffer: &'a Buffer,
        indices: &'a [Expr],
        streams: Option<&[Reg]>,
    ) -> Result<Vec<Reg>, Diagnostic> {
        let view = self.view(buffer)?;
        let values = indices.iter().map(|index| self.expr(index)).collect::<Result<Vec<_>, _>>()?;
        let layout: Vec<_> = lane_layout(buffer, index_lanes(indices)).collect();
        let wanted = self.lanes_of(u16::try_from(layout.len()).map_err(|_| super::too_large())?);
        wanted
            .enumerate()
            .map(|(number, place)| {
                let (at, lane) = layout[usize::from(place)];
                let stream = streams.and_then(|streams| streams.get(number)).copied();
                let indices = values.iter().map(|lanes| *lanes.get(at).unwrap_or(&lanes[0])).collect();
                self.access(Access { view, indices, lane, stream })
            })
            .collect()
    }

    /// The streams of an access, one for each lane. `None` unless code for a block plan is being compiled and all indices
    /// are affine in the loop variables.
    ///
    /// The bounds of a stream must hold in every iteration, but an access in a branch is often in bounds only where its
    /// condition holds. Its stream is guarded: used where it is in bounds anyway.
    fn streams(
        &mut self,
        buffer: &'a Buffer,
        indices: &'a [Expr],
        is_guarded: bool,
    ) -> Result<Option<Vec<Reg>>, Diagnostic> {
        let Some(context) = &self.nest_context else { return Ok(None) };
        let mut parts = Vec::with_capacity(indices.len());
        // All indices are examined before code is emitted, so that nothing is left in the probe if one is not affine.
        for index in indices {
            let Some(part) = ramp_parts(index) else { return Ok(None) };
            let steps =
                loop_parts(context).map(|of| self.constant_step(part.0, of, context)).collect::<Option<Vec<_>>>();
            let Some(steps) = steps else { return Ok(None) };
            parts.push((part.0, part.1, steps));
        }
        let mut dims = Vec::with_capacity(indices.len());
        for (base, stride, steps) in parts {
            let reg = self.emit_in_probe(base)?;
            let max = base.dtype().scalar.integer_range().map_or(0, |(_, high)| high);
            dims.push((StreamDim { reg, plus: 0, steps, max }, stride));
        }
        let view = self.view(buffer)?;
        let layout: Vec<_> = lane_layout(buffer, index_lanes(indices)).collect();
        let wanted = self.lanes_of(u16::try_from(layout.len()).map_err(|_| super::too_large())?);
        let mut numbers = Vec::new();
        for place in wanted {
            let (at, lane) = layout[usize::from(place)];
            let near = sabotage::on("lanes-are-neighbours");
            let stride_of = |stride: i64| if near { stride.signum() } else { stride };
            let plus = |stride: i64| i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(stride_of(stride));
            let dims: Vec<_> =
                dims.iter().map(|(dim, stride)| StreamDim { plus: plus(*stride), ..dim.clone() }).collect();
            numbers.push(self.stream(Stream { view, dims, lane, is_guarded })?);
        }
        Ok(Some(numbers))
    }

    /// The number of a stream; equal streams share one.
    fn stream(&mut self, stream: Stream) -> Result<Reg, Diagnostic> {
        let Some(context) = &mut self.nest_context else { return Ok(0) };
        let same = |other: &Stream| (other.view, other.lane, &other.dims) == (stream.view, stream.lane, &stream.dims);
        let number = context.streams.iter().position(same).unwrap_or(context.streams.len());
        match context.streams.get_mut(number) {
            Some(known) => known.is_guarded &= stream.is_guarded,
            None => context.streams.push(stream),
        }
        Reg::try_from(number).map_err(|_| super::too_large())
    }

    /// Compiles an index into the code that is run for the first iteration only.
    fn emit_in_probe(&mut self, index: &'a Expr) -> Result<Reg, Diagnostic> {
        let Some(mut context) = self.nest_context.take() else { return Ok(0) };
        let level = self.level();
        let code = std::mem::replace(&mut level.code, std::mem::take(&mut context.probe));
        let numbering = std::mem::take(&mut context.probe_numbering);
        let numberings = std::mem::replace(&mut level.numberings, vec![numbering]);
        let result = self.expr(index);
        let level = self.level();
        context.probe = std::mem::replace(&mut level.code, code);
        context.probe_numbering = std::mem::replace(&mut level.numberings, numberings).pop().unwrap_or_default();
        self.nest_context = Some(context);
        Ok(result?[0])
    }

    /// The constant that one iteration of a loop adds to an expression, modulo the expression's type. `None` if it is not a constant,
    /// or if the expression may trap or reads memory.
    fn constant_step(&self, expr: &Expr, of: LoopPart<'_>, nest: &NestContext<'_>) -> Option<i64> {
        match expr {
            Expr::Var(other) if nest.vars.contains(&other) => match of.half {
                _ if other != of.var => Some(0),
                Half::Both | Half::Lower => Some(1),
                Half::Upper(split) => i64::try_from(split).ok(),
            },
            Expr::Binary(BinaryOp::FloorDiv | BinaryOp::TruncDiv, a, b) if self.is_split(a, b, nest) => {
                Some(i64::from(is_var(a, of.var) && matches!(of.half, Half::Upper(_))))
            }
            Expr::Binary(BinaryOp::FloorMod | BinaryOp::TruncMod, a, b) if self.is_split(a, b, nest) => {
                Some(i64::from(is_var(a, of.var) && matches!(of.half, Half::Lower)))
            }
            Expr::Binary(BinaryOp::Add, a, b) => {
                self.constant_step(a, of, nest)?.checked_add(self.constant_step(b, of, nest)?)
            }
            Expr::Binary(BinaryOp::Sub, a, b) => {
                self.constant_step(a, of, nest)?.checked_sub(self.constant_step(b, of, nest)?)
            }
            // Wrapping arithmetic is linear too, so steps add up and scale even where a subexpression wraps.
            Expr::Binary(BinaryOp::Mul, a, b) => match (self.const_int(a), self.const_int(b)) {
                (Some(factor), _) => self.constant_step(b, of, nest)?.checked_mul(factor),
                (_, Some(factor)) => self.constant_step(a, of, nest)?.checked_mul(factor),
                (None, None) => self.is_invariant(expr, nest.depth).then_some(0),
            },
            Expr::Unary(UnaryOp::Neg, a) => self.constant_step(a, of, nest)?.checked_neg(),
            Expr::Int { .. }
            | Expr::Float { .. }
            | Expr::Var(_)
            | Expr::Binary(..)
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot, _)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => self.is_invariant(expr, nest.depth).then_some(0),
        }
    }

    /// Whether an operator divides a loop variable by the number by which its loop is split. The variable is not negative then.
    fn is_split(&self, a: &Expr, b: &Expr, nest: &NestContext<'_>) -> bool {
        let number = self.const_int(b).and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 1);
        let split = nest.vars.iter().zip(&nest.splits).find(|(var, _)| is_var(a, var)).map(|(_, split)| *split);
        number.is_some() && number == split
    }

    /// The value of a constant or of a symbol.
    pub(super) fn const_int(&self, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Int { value, .. } => i64::try_from(*value).ok(),
            Expr::Var(var) => self.setup.bindings.get(var).and_then(|&value| i64::try_from(value).ok()),
            _ => None,
        }
    }

    /// Whether an integer expression has the same value in every iteration of the loop at `depth` and cannot trap.
    fn is_invariant(&self, expr: &Expr, depth: u32) -> bool {
        let here = match expr {
            Expr::Load { .. } | Expr::Ramp { .. } | Expr::Broadcast { .. } => false,
            // A trap must come in its iteration, after the stores before it.
            Expr::Binary(op, _, b) => match op.traps() {
                Traps::Never => true,
                Traps::ZeroDivisor => self.const_int(b).is_some_and(|divisor| divisor != 0),
                Traps::ShiftAmount => {
                    let bits = i64::from(expr.dtype().scalar.bits());
                    self.const_int(b).is_some_and(|amount| (0..bits).contains(&amount))
                }
            },
            // The depth of a register is that of the innermost loop in which its value changes.
            Expr::Var(var) => self.vars.get(var).is_some_and(|&reg| self.depths[reg as usize] < depth),
            Expr::Int { .. }
            | Expr::Float { .. }
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..) => true,
        };
        here && expr.children().into_iter().all(|child| self.is_invariant(child, depth))
    }
}

/// A loop of a nest, or one of the two that a split loop is to streams.
#[derive(Clone, Copy)]
struct LoopPart<'a> {
    var: &'a Var,
    half: Half,
}

/// What one iteration changes of a loop variable.
#[derive(Clone, Copy)]
enum Half {
    /// The variable, of a loop that is not split.
    Both,
    /// The quotient by this number, the remainder being kept.
    Upper(u64),
    /// The remainder.
    Lower,
}

/// The loops of a nest as streams see them, outermost first.
fn loop_parts<'a>(nest: &'a NestContext<'_>) -> impl Iterator<Item = LoopPart<'a>> {
    nest.vars.iter().zip(&nest.splits).flat_map(|(&var, &split)| {
        let halves = if split > 1 { [Some(Half::Upper(split)), Some(Half::Lower)] } else { [Some(Half::Both), None] };
        halves.into_iter().flatten().map(move |half| LoopPart { var, half })
    })
}

/// Whether an expression is a variable.
fn is_var(expr: &Expr, var: &Var) -> bool {
    matches!(expr, Expr::Var(other) if other == var)
}

/// The first lane of an index and the constant distance between its lanes, 0 for a scalar or a broadcast. `None` if the
/// distance is not a constant.
fn ramp_parts(index: &Expr) -> Option<(&Expr, i64)> {
    match index {
        Expr::Ramp { base, stride, .. } => Some((base, i64::try_from(stride.as_const_int()?).ok()?)),
        Expr::Broadcast { value, .. } => Some((value, 0)),
        _ if index.dtype().is_scalar() => Some((index, 0)),
        _ => None,
    }
}
