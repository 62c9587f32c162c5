//! Computes indices of 64 bits in 32, where nothing overflows (TVM's `NarrowDataType`).
//!
//! ```text
//! for i in range(T.int64(7)):                          for i in range(7):
//!     for j in range(T.int64(9)):                ->        for j in range(9):
//!         B[i * T.int64(9) + j] = A[j]                         B[i * 9 + j] = A[j]
//! ```
//!
//! A loop of 64 bits gets 32 if its ends are constants that fit. An index, a condition or an end of a loop is computed in 32 bits if
//! every part of it lies in their range for all values of the loops around it; where only a part does, that part is converted back. The
//! judge compares the integers, and proves of each part that it does not overflow. Parameters, extents of the call and values in buffers
//! keep their types: their range is the caller's. Cost: one walk, with an interval for each part of an index.

use std::convert::Infallible;

use tilewright_algebra::{Ranges, bounds_of};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    BinaryOp, DataType, Diagnostic, Evidence, Expr, For, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, Var,
    sabotage,
};

use super::provenance::{Provenance, unchanged};
use super::remap::{inside, symbol_ranges};
use super::schedule::claims::selected;
use super::{Rewritten, lower_blocks};

/// The narrow type.
const NARROW: ScalarType = ScalarType::Int32;

/// Narrows the integers that decide where a function accesses its buffers.
///
/// # Errors
/// `blocks`: the function has blocks.
///
/// ```
/// use tilewright_compiler::passes::narrow_index_types;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((9,), "float32"), B: T.Buffer((63,), "float32")):
///     for i, j in T.grid(T.int64(7), T.int64(9)):
///         B[i * T.int64(9) + j] = A[j]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&narrow_index_types(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, ["for i, j in T.grid(7, 9):", "B[i * 9 + j] = A[j]"]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn narrow_index_types(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    lower_blocks::refuse(func, "narrow_index_types")?;
    let mut provenance = match Provenance::of(func, "narrow_index_types") {
        Ok(provenance) => provenance,
        Err(note) => return Ok(unchanged(func, "narrow_index_types", note)),
    };
    let mut narrow = Narrow { ranges: symbol_ranges(func), vars: Substitution::default() };
    let Ok(body) = narrow.stmt(&func.body);
    let after = PrimFunc { body, ..func.clone() };
    if !tilewright_ir::equal::funcs_equal(func, &after, false) {
        provenance.step(&after, |old, new| selected(&(0..old.len()).collect::<Vec<_>>(), old, new));
    }
    let evidence = Evidence { pass: "narrow_index_types".to_owned(), ..Evidence::default() };
    let comparison = provenance.comparison(func, &after, &evidence);
    Ok(Rewritten { func: after, evidence: Evidence { comparison, ..evidence }, notes: Vec::new() })
}

/// Returns whether a function has a loop of 64 bits.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::For(inner) if inner.var.dtype() == DataType::scalar(ScalarType::Int64));
    });
    found
}

/// The rewrite, with what is known of variables at the current statement.
struct Narrow {
    /// The ranges of the variables before.
    ranges: Ranges,
    /// Variables of 64 bits that have 32 now: the new variable.
    vars: Substitution,
}

impl Narrow {
    /// An expression in 32 bits; `None` if a part of it may not fit, or has no such form.
    fn narrowed(&self, expr: &Expr) -> Option<Expr> {
        let is_wide = expr.dtype() == DataType::scalar(ScalarType::Int64);
        if !is_wide || !self.fits(expr) {
            return None;
        }
        match expr {
            Expr::Int { value, .. } => Expr::int_of(*value, NARROW),
            Expr::Var(var) => self.vars.get(var).cloned(),
            Expr::Cast(_, inner) if inner.dtype() == DataType::scalar(NARROW) => {
                let Ok(inner) = self.clone_for_parts().expr(inner);
                Some(inner)
            }
            Expr::Binary(op, a, b) if is_narrowed(*op) => Some(Expr::binary(*op, self.narrowed(a)?, self.narrowed(b)?)),
            Expr::Binary(..)
            | Expr::Float { .. }
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => None,
        }
    }

    /// Whether the values of an expression lie in the range of the narrow type.
    fn fits(&self, expr: &Expr) -> bool {
        let constant = |expr: Expr| expr.as_const_int();
        let bounds = match expr {
            Expr::Int { value, .. } => Some((*value, *value)),
            _ => bounds_of(expr, &self.ranges).and_then(|(least, most)| Some((constant(least)?, constant(most)?))),
        };
        let range = NARROW.integer_range();
        bounds.zip(range).is_some_and(|((least, most), (low, high))| low <= least && most <= high)
    }

    fn clone_for_parts(&self) -> Self {
        Self { ranges: self.ranges.clone(), vars: self.vars.clone() }
    }
}

/// A loop in 32 bits; `None` if its ends are no constants that fit.
fn narrow_loop(inner: &For) -> Option<(Var, Expr, Expr)> {
    let is_wide = inner.var.dtype() == DataType::scalar(ScalarType::Int64);
    let (min, extent) = (inner.min.as_const_int()?, inner.extent.as_const_int()?);
    let end = Expr::int_of(min.checked_add(extent)?, NARROW);
    end.filter(|_| is_wide)?;
    let fewer = i128::from(sabotage::on("narrow-drops-last") && extent > 1);
    Some((Var::new(inner.var.name(), NARROW), Expr::int_of(min, NARROW)?, Expr::int_of(extent - fewer, NARROW)?))
}

/// Operators that give the same integer in both types if operands and result fit.
fn is_narrowed(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::FloorDiv | BinaryOp::FloorMod => true,
        BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::Min | BinaryOp::Max => true,
        BinaryOp::Div | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            false
        }
        BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => false,
        BinaryOp::Shl | BinaryOp::Shr => false,
    }
}

/// Comparisons, whose operands may both be narrowed.
fn is_comparison(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge)
}

impl Rewrite for Narrow {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let wide = DataType::scalar(ScalarType::Int64);
        if let Some(narrow) = self.narrowed(expr).filter(|_| !matches!(expr, Expr::Int { .. })) {
            return Ok(Expr::Cast(wide, SharedExpr::new(narrow)));
        }
        match expr {
            Expr::Binary(op, a, b) if is_comparison(*op) => match (self.narrowed(a), self.narrowed(b)) {
                (Some(a), Some(b)) => Ok(Expr::binary(*op, a, b)),
                _ => self.expr_children(expr),
            },
            Expr::Load { buffer, indices } => {
                let indices: Vec<Expr> = indices.iter().map(|index| self.index(index)).collect();
                Ok(Expr::load(buffer, indices))
            }
            // A conversion of what was converted for nothing.
            Expr::Cast(ty, inner) => match self.narrowed(inner) {
                Some(narrow) if *ty == narrow.dtype() => Ok(narrow),
                Some(narrow) => Ok(Expr::Cast(*ty, SharedExpr::new(narrow))),
                None => self.expr_children(expr),
            },
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let kind = match &stmt.kind {
            StmtKind::For(inner) => {
                let narrow = narrow_loop(inner);
                let (var, min, extent) = match narrow {
                    Some((var, min, extent)) => {
                        self.vars.insert(&inner.var, Expr::from(&var));
                        (var, min, extent)
                    }
                    None => (inner.var.clone(), self.expr(&inner.min)?, self.expr(&inner.extent)?),
                };
                let outer = self.ranges.clone();
                self.ranges = inside(&outer, inner);
                let body = self.stmt(&inner.body)?;
                self.ranges = outer;
                let (kind, annotations) = (inner.kind, inner.annotations.clone());
                StmtKind::For(For { var, min, extent, kind, annotations, body }.into())
            }
            StmtKind::Store { buffer, indices, value } => {
                let indices = indices.iter().map(|index| self.index(index)).collect();
                StmtKind::Store { buffer: buffer.clone(), indices, value: self.expr(value)? }
            }
            _ => return self.stmt_children(stmt),
        };
        Ok(Stmt { kind, span: stmt.span })
    }
}

impl Narrow {
    /// An index of an access: its type may change.
    fn index(&mut self, index: &Expr) -> Expr {
        if let Some(narrow) = self.narrowed(index) {
            return narrow;
        }
        let Ok(index) = self.expr(index);
        index
    }
}
