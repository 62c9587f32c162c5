//! A texel of which a loop takes one channel after the other is read once, in front of the loop.
//!
//! ```text
//! for rl in range(4):                               const float4 texel = inside ? read_imagef(x, ..) : (float4)(0.0f);
//!     total += if_then_else(                        for (int rl = 0; rl < 4; ++rl) {
//!         inside, x[row, column, rl], 0.0)    ->        total += inside ? tw_channel_f(texel, rl) : 0.0f;
//! ```
//!
//! A kernel writes no image that it reads, so a texel has one value. The place of the texel and the conditions on the way to it may not
//! depend on the loop, nor on memory, and all reads of the texel in the loop have the same conditions: the place is computed only where
//! the loop computes it, too. Kernels that check each place read as the program does, so that reports name the statement.

use tilewright_ir::{BinaryOp, Buffer, DataType, Diagnostic, Expr, For, Stmt, StmtKind};

use super::code::{CONDITIONAL, Code};
use super::literals::{float_literal, int_literal};
use super::range::{Mode, constant};
use super::writer::Writer;

/// Most texels that are held in front of a loop.
const MOST: usize = 8;

/// A texel that was read in front of a loop.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    buffer: Buffer,
    row: Expr,
    column: Expr,
    /// The variable that holds all of its channels.
    name: String,
}

/// Conditions, and whether each holds.
type Conditions = Vec<(Expr, bool)>;

/// A read of one channel.
struct Read<'a> {
    buffer: &'a Buffer,
    indices: &'a [Expr],
    /// The conditions on the way to it; `None` if it is not known under which it is read.
    conditions: Option<Conditions>,
}

impl Read<'_> {
    fn is_at(&self, other: &Read<'_>) -> bool {
        let place = |read: &Read<'_>| read.indices.first().cloned().zip(read.indices.get(1).cloned());
        self.buffer == other.buffer && place(self) == place(other)
    }
}

impl Writer {
    /// Reads the texels in front of a loop that its iterations take channels of.
    pub(super) fn hold_texels(&mut self, inner: &For) -> Result<(), Diagnostic> {
        if self.options.checked || constant(&inner.extent).is_none_or(|extent| extent < 2) {
            return Ok(());
        }
        let mut stores = Vec::new();
        if !straight(&inner.body, &mut stores) {
            return Ok(());
        }
        let mut reads = Vec::new();
        for (indices, value) in stores {
            for index in indices {
                collect(index, None, &mut reads);
            }
            collect(value, Some(&Vec::new()), &mut reads);
        }
        reads.retain(|read| self.image(read.buffer).is_some());
        let mut chosen: Vec<&Read<'_>> = Vec::new();
        for read in &reads {
            let is_known =
                chosen.iter().any(|known| known.is_at(read)) || self.held(read.buffer, read.indices).is_some();
            let agree =
                || reads.iter().filter(|other| other.is_at(read)).all(|other| other.conditions == read.conditions);
            if !is_known && chosen.len() < MOST && is_one_texel(read, inner) && agree() {
                chosen.push(read);
            }
        }
        chosen.into_iter().try_for_each(|read| self.hold(read))
    }

    /// Declares a texel in front of a loop.
    fn hold(&mut self, read: &Read<'_>) -> Result<(), Diagnostic> {
        let [row, column, _] = read.indices else { return Ok(()) };
        let (mut code, ty) = self.whole_texel(read.buffer, read.indices)?;
        let zero = if ty.scalar.is_float() { float_literal(0.0, ty.scalar) } else { int_literal(0, ty.scalar) };
        let zero = self.dialect().vector(ty, &[zero]);
        for (condition, holds) in read.conditions.iter().flatten().rev() {
            let condition = self.expr(condition, Mode::Value)?;
            let (then, otherwise) = if *holds { (&code, &zero) } else { (&zero, &code) };
            let [condition, then, otherwise] =
                [&condition, then, otherwise].map(|part: &Code| part.within(CONDITIONAL + 1));
            code = Code { text: format!("{condition} ? {then} : {otherwise}"), binds: CONDITIONAL };
        }
        let name = self.namer.fresh("texel");
        self.define(&name, ty, &code.text);
        self.texels.push(Held { buffer: read.buffer.clone(), row: row.clone(), column: column.clone(), name });
        Ok(())
    }

    /// The variable that holds the texel of an access, if it was read before.
    pub(super) fn held(&self, buffer: &Buffer, indices: &[Expr]) -> Option<String> {
        let [row, column, _] = indices else { return None };
        let is_it = |held: &&Held| held.buffer == *buffer && held.row == *row && held.column == *column;
        self.texels.iter().find(is_it).map(|held| held.name.clone())
    }
}

/// Whether a read takes a channel that depends on the loop, of a texel that does not.
fn is_one_texel(read: &Read<'_>, inner: &For) -> bool {
    let ([row, column, channel], Some(conditions)) = (read.indices, &read.conditions) else { return false };
    let depends = |expr: &Expr| expr.vars().contains(&inner.var);
    let is_fixed = |expr: &Expr| !depends(expr) && !expr.reads_memory();
    let has_lanes = |expr: &Expr| expr.dtype() != DataType::scalar(expr.dtype().scalar);
    depends(channel)
        && !has_lanes(channel)
        && is_fixed(row)
        && is_fixed(column)
        && conditions.iter().all(|(condition, _)| is_fixed(condition))
}

/// Whether a statement is nothing but stores, one after the other; lists their indices and values.
fn straight<'a>(stmt: &'a Stmt, stores: &mut Vec<(&'a [Expr], &'a Expr)>) -> bool {
    match &stmt.kind {
        StmtKind::Store { indices, value, .. } => {
            stores.push((indices, value));
            true
        }
        StmtKind::Seq(stmts) => stmts.iter().all(|stmt| straight(stmt, stores)),
        StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => straight(body, stores),
        StmtKind::For(_)
        | StmtKind::If { .. }
        | StmtKind::Let { .. }
        | StmtKind::Allocate { .. }
        | StmtKind::Barrier
        | StmtKind::Assert { .. }
        | StmtKind::Evaluate(_) => false,
    }
}

/// Lists the loads in an expression that is evaluated under some conditions; `None` if they are not known.
fn collect<'a>(expr: &'a Expr, conditions: Option<&Conditions>, reads: &mut Vec<Read<'a>>) {
    match expr {
        Expr::Load { buffer, indices } => {
            indices.iter().for_each(|index| collect(index, None, reads));
            reads.push(Read { buffer, indices, conditions: conditions.cloned() });
        }
        Expr::IfThenElse(condition, then, otherwise) => {
            collect(condition, None, reads);
            // The lanes of a vector are chosen one by one.
            let known = conditions.filter(|_| condition.dtype().is_scalar());
            for (part, holds) in [(then, true), (otherwise, false)] {
                let longer = known.map(|known| {
                    let own = ((**condition).clone(), holds);
                    known.iter().cloned().chain([own]).collect::<Conditions>()
                });
                collect(part, longer.as_ref(), reads);
            }
        }
        Expr::Select(..) | Expr::Broadcast { .. } | Expr::Cast(..) | Expr::Unary(..) => {
            expr.children().for_each(|part| collect(part, conditions, reads));
        }
        Expr::Binary(op, ..) => {
            // The second operand of a logical operator may not be evaluated.
            let known = conditions.filter(|_| !matches!(op, BinaryOp::And | BinaryOp::Or));
            expr.children().for_each(|part| collect(part, known, reads));
        }
        Expr::Call(..) | Expr::Ramp { .. } => {
            expr.children().for_each(|part| collect(part, None, reads));
        }
        Expr::Var(_) | Expr::Int { .. } | Expr::Float { .. } => {}
    }
}
