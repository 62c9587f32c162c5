//! The box of elements of a buffer that one iteration of a loop reads.
//!
//! ```text
//! for io in range((n + 7) // 8):
//!     for ii, r in T.grid(8, 3):                      low 8 * io, extent 10
//!         C[8 * io + ii] = ... A[8 * io + ii + r]
//! ```
//!
//! Each index is bounded over the loops inside, in terms of the loops outside. If the extent of an axis would depend on these, the
//! box is that of all their iterations. The box may overhang the buffer where guards keep the reads inside.

use tilewright_algebra::{Ranges, bounds_of, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Buffer, Diagnostic, Expr, For, PrimFunc, Stmt, StmtKind, Var};

use super::super::remap::{inside, retyped, symbol_ranges};
use super::fault;
use super::loops::Found;

/// Part of an axis.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// The first index, in terms of the loops outside.
    pub(crate) low: Expr,
    /// The number of indices, in terms of the parameters of the function.
    pub(crate) extent: Expr,
}

/// Returns the part of each axis of a buffer that one iteration of a loop reads.
///
/// # Errors
/// An index depends on memory or on names inside of the loop, or the box has no extent that is the same for all iterations.
pub(crate) fn region(func: &PrimFunc, found: &Found<'_>, buffer: &Buffer) -> Result<Vec<Span>, Diagnostic> {
    let symbols = symbol_ranges(func);
    let all = inside(&found.ranges(func), found.inner);
    let mut reads = Reads::new(buffer, (symbols, all.clone()), false);
    reads.stmt(&found.inner.body);
    let outer: Vec<Var> = found.outer.iter().chain([&found.inner]).map(|run| run.var.clone()).collect();
    (0..buffer.rank()).map(|axis| span_of(&reads.spans, axis, (&outer, &all), buffer)).collect()
}

/// Returns the part of each axis of a buffer that a statement inside of some loops reads or writes; `None` for an axis of which that is
/// not known. The extents are the same in all iterations of the loops.
pub(in crate::passes) fn touched(func: &PrimFunc, outer: &[&For], body: &Stmt, buffer: &Buffer) -> Vec<Option<Span>> {
    let symbols = symbol_ranges(func);
    let all = outer.iter().fold(symbols.clone(), |known, run| inside(&known, run));
    let mut reads = Reads::new(buffer, (symbols, all.clone()), true);
    reads.stmt(body);
    let outer: Vec<Var> = outer.iter().map(|run| run.var.clone()).collect();
    (0..buffer.rank()).map(|axis| span_of(&reads.spans, axis, (&outer, &all), buffer).ok()).collect()
}

/// What one load reads of an axis, as seen from one iteration and from all.
struct Read {
    index: Expr,
    of_one: Option<(Expr, Expr)>,
    of_all: Option<(Expr, Expr)>,
}

/// The union of all loads along one axis.
fn span_of(
    loads: &[Vec<Read>],
    axis: usize,
    (outer, all): (&[Var], &Ranges),
    buffer: &Buffer,
) -> Result<Span, Diagnostic> {
    let along: Vec<&Read> = loads.iter().filter_map(|load| load.get(axis)).collect();
    let known = |span: &Span| !span.extent.vars().iter().any(|var| outer.contains(var));
    let one = || union(along.iter().map(|read| read.of_one.as_ref()), all).filter(known);
    let whole = || union(along.iter().map(|read| read.of_all.as_ref()), all).filter(known);
    one().or_else(whole).ok_or_else(|| {
        let listed: Vec<String> = along.iter().map(|read| format!("`{}`", read.index)).collect();
        let message =
            format!("the part of axis {axis} of `{buffer}` that is read has no known extent: {}", listed.join(", "));
        fault(message, "indices are bounded by the loops inside of the one that is named; name one further out")
    })
}

/// The least box around several ones, if they can be compared.
fn union<'a>(mut boxes: impl Iterator<Item = Option<&'a (Expr, Expr)>>, known: &Ranges) -> Option<Span> {
    let is_at_most = |a: &Expr, b: &Expr| {
        let difference = simplify(&(b.clone() - a.clone()), known).as_const_int();
        let holds = || simplify(&Expr::binary(BinaryOp::Le, a.clone(), b.clone()), known).as_const_int() == Some(1);
        difference.map_or_else(holds, |difference| difference >= 0)
    };
    let (mut low, mut high) = boxes.next()??.clone();
    for other in boxes {
        let (least, greatest) = other?;
        if !is_at_most(&low, least) {
            is_at_most(least, &low).then_some(())?;
            low = least.clone();
        }
        if !is_at_most(greatest, &high) {
            is_at_most(&high, greatest).then_some(())?;
            high = greatest.clone();
        }
    }
    let one = Expr::int_of(1, high.dtype().scalar)?;
    let extent = simplify(&(high - low.clone() + one), known);
    Some(Span { low: simplify(&low, known), extent })
}

/// Walks over the loads of a buffer.
struct Reads<'a> {
    buffer: &'a Buffer,
    /// What is known of the loops inside.
    inner: Ranges,
    /// What is known of all loops.
    all: Ranges,
    /// The values of names inside.
    names: Substitution,
    /// Whether stores count.
    writes: bool,
    spans: Vec<Vec<Read>>,
}

impl<'a> Reads<'a> {
    fn new(buffer: &'a Buffer, (inner, all): (Ranges, Ranges), writes: bool) -> Self {
        Self { buffer, inner, all, names: Substitution::default(), writes, spans: Vec::new() }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        for expr in stmt.exprs() {
            self.expr(&self.names.apply(expr));
        }
        match &stmt.kind {
            StmtKind::Store { buffer, indices, .. } if self.writes && buffer == self.buffer => {
                let indices: Vec<Expr> = indices.iter().map(|index| self.names.apply(index)).collect();
                self.spans.extend(self.access(&indices));
            }
            StmtKind::For(inner) => {
                let outside = (self.inner.clone(), self.all.clone());
                (self.inner, self.all) = (inside(&outside.0, inner), inside(&outside.1, inner));
                self.stmt(&inner.body);
                (self.inner, self.all) = outside;
            }
            StmtKind::Let { var, value, body } => {
                let value = self.names.apply(value);
                self.names.insert(var, value);
                self.stmt(body);
            }
            _ => stmt.children().for_each(|child| self.stmt(child)),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices } = part
                && buffer == self.buffer
            {
                found.extend(self.access(indices));
            }
        });
        self.spans.extend(found);
    }

    /// The elements of an access; one for each end of a vector.
    fn access(&self, indices: &[Expr]) -> Vec<Vec<Read>> {
        let read = |indices: &[Expr]| {
            indices.iter().zip(&self.buffer.shape).map(|(index, extent)| self.read(index, extent)).collect()
        };
        let Some((Expr::Ramp { base, stride, lanes }, outer)) = indices.split_last() else {
            return vec![read(indices)];
        };
        let last = Expr::clone(base) + Expr::clone(stride) * Expr::int(i64::from(*lanes) - 1);
        let end = |index: Expr| read(&[outer, &[index]].concat());
        vec![end(Expr::clone(base)), end(last)]
    }

    /// An index, in the type of the extent of its axis.
    fn read(&self, index: &Expr, extent: &Expr) -> Read {
        let is_plain = index.dtype().is_scalar() && !index.reads_memory();
        let index = &if is_plain { retyped(index, extent.dtype().scalar, &|_| None) } else { index.clone() };
        let bounds = |known: &Ranges| is_plain.then(|| bounds_of(index, known)).flatten();
        Read { index: index.clone(), of_one: bounds(&self.inner), of_all: bounds(&self.all) }
    }
}
