//! Turns buffers that are accessed in vectors only into buffers of vectors (TVM's `VectorTypeRewrite`).
//!
//! ```text
//! t = T.alloc_buffer((7, 8), "float32")                        A_vector = T.decl_buffer((7, 2), "float32x4", data=A.data)
//! for i, j in T.grid(7, 2):                                    t = T.alloc_buffer((7, 2), "float32x4")
//!     t[i, T.Ramp(j * 4, 1, 4)] = A[i, T.Ramp(j * 4, 1, 4)]    for i, j in T.grid(7, 2):
//! for i in range(7):                                    ->         t[i, j] = A_vector[i, j]
//!     C[i] = t[i, T.Ramp(4, 1, 4)]                             for i in range(7):
//!                                                                  C[i] = t[i, 1]
//! ```
//!
//! Some devices cannot take memory of elements for memory of vectors. So a buffer of which every access is a ramp of as many neighbours
//! in the last axis, from a multiple of that number, becomes a buffer of vectors, with the index divided. The number of lanes divides
//! the last extent.
//!
//! A parameter keeps its type, which is the calling convention: a view of vectors is declared instead (RFC 63). Buffers with views,
//! strides, separators or a layout that is asked for, and textures, are left alone: all aliases would have to change together. Cost:
//! two walks, and the search for the evidence.

use std::collections::HashMap;

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Comparison, Diagnostic, Evidence, Expr, For, PrimFunc, Stmt, StmtKind, sabotage};

use super::Rewritten;
use super::remap::{inside, symbol_ranges};
use super::storage::claims::{same_stores, values, vectors};
use super::storage::{has_views, is_compact, is_layout_asked, without_blocks};

const NAME: &str = "vector_type_rewrite";

/// Turns buffers into buffers of vectors.
///
/// # Errors
/// `blocks`: the function has blocks.
///
/// ```
/// use tilewright_compiler::passes::vector_type_rewrite;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((7, 8), "float32"), C: T.Buffer((7, 8), "float32")):
///     t = T.alloc_buffer((7, 8), "float32")
///     for i, j in T.grid(7, 2):
///         t[i, T.Ramp(j * 4, 1, 4)] = A[i, T.Ramp(j * 4, 1, 4)]
///     for i, j in T.grid(7, 2):
///         C[i, T.Ramp(j * 4, 1, 4)] = t[i, T.Ramp(4 - j * 4, 1, 4)]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&vector_type_rewrite(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     r#"A_vector = T.decl_buffer((7, 2), "float32x4", data=A.data)"#,
///     r#"C_vector = T.decl_buffer((7, 2), "float32x4", data=C.data)"#,
///     r#"t = T.alloc_buffer((7, 2), "float32x4")"#,
///     "for i, j in T.grid(7, 2):",
///     "t[i, j] = A_vector[i, j]",
///     "for i, j in T.grid(7, 2):",
///     "C_vector[i, j] = t[i, 1 - j]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn vector_type_rewrite(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    without_blocks(func, NAME)?;
    let mut lanes = Lanes { found: HashMap::new(), known: symbol_ranges(func) };
    lanes.stmt(&func.body);
    let mut change = Change { vectors: HashMap::new(), known: symbol_ranges(func) };
    let mut views = Vec::new();
    for buffer in func.buffers() {
        let Some(Some(count)) = lanes.found.get(&buffer) else { continue };
        let Some(vector) = of_vectors(func, &buffer, *count) else { continue };
        if func.buffer_map.iter().any(|(_, param)| *param == buffer) {
            views.push(vector.clone());
        }
        change.vectors.insert(buffer, (vector, *count));
    }
    if change.vectors.is_empty() {
        let evidence = Evidence { pass: NAME.to_owned(), ..Evidence::default() };
        return Ok(Rewritten { func: func.clone(), evidence, notes: Vec::new() });
    }
    let body = change.stmt(&func.body).map_err(|fault| vec![fault])?;
    let declared = |body: Stmt, buffer: Buffer| Stmt::new(StmtKind::DeclBuffer { buffer, body: body.into() });
    let after = PrimFunc { body: views.into_iter().rev().fold(body, declared), ..func.clone() };
    let mut evidence = values(func, &after, NAME, &same_stores);
    if matches!(evidence.comparison, Comparison::Statements) {
        // Memory is seen in several ways, so that values are not followed.
        let is_param = |buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param == buffer);
        let allocated = change.vectors.iter().filter(|(buffer, _)| !is_param(buffer));
        let mut allocated: Vec<(Buffer, Buffer)> =
            allocated.map(|(buffer, (vector, _))| (buffer.clone(), vector.clone())).collect();
        allocated.sort();
        evidence = vectors(func, &after, NAME, &allocated).unwrap_or(evidence);
    }
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// The buffer of vectors for a buffer of elements. `None` if its memory has other views, or cannot be seen as vectors.
fn of_vectors(func: &PrimFunc, buffer: &Buffer, count: u16) -> Option<Buffer> {
    let is_plain = buffer.dtype.is_scalar()
        && is_compact(buffer)
        && buffer.axis_separators.is_empty()
        && !buffer.scope.is_texture()
        && !has_views(func, buffer)
        && !is_layout_asked(func, buffer);
    let last = buffer.shape.last().filter(|_| is_plain)?;
    let known = symbol_ranges(func);
    let number = divided(last, count, &known)?;
    let is_param = func.buffer_map.iter().any(|(_, param)| param == buffer);
    Some(buffer.with(|info| {
        info.dtype = info.dtype.with_lanes(count);
        if let Some(last) = info.shape.last_mut() {
            *last = number;
        }
        if is_param {
            info.name.push_str("_vector");
        }
    }))
}

/// A number divided by a number of lanes, if nothing is left over.
fn divided(number: &Expr, count: u16, known: &Ranges) -> Option<Expr> {
    let count = Expr::int_of(i128::from(count), number.dtype().scalar)?;
    let rest = simplify(&number.clone().floor_mod(count.clone()), known);
    let is_whole = rest.as_const_int() == Some(0) || sabotage::on("vectors-ignore-alignment");
    is_whole.then(|| simplify(&number.clone().floor_div(count), known))
}

/// The number of lanes of every access of a buffer.
struct Lanes {
    /// `None` if accesses differ, or are no vectors that begin at a multiple of their lanes.
    found: HashMap<Buffer, Option<u16>>,
    known: Ranges,
}

impl Lanes {
    fn stmt(&mut self, stmt: &Stmt) {
        for expr in stmt.exprs() {
            let mut accesses = Vec::new();
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices } = part {
                    accesses.push((buffer.clone(), indices.last().cloned()));
                }
            });
            for (buffer, last) in accesses {
                self.access(buffer, last.as_ref());
            }
        }
        if let StmtKind::Store { buffer, indices, .. } = &stmt.kind {
            self.access(buffer.clone(), indices.last());
        }
        if let StmtKind::For(inner) = &stmt.kind {
            let outer = std::mem::replace(&mut self.known, Ranges::new());
            self.known = inside(&outer, inner);
            self.stmt(&inner.body);
            self.known = outer;
        } else {
            stmt.children().for_each(|child| self.stmt(child));
        }
    }

    fn access(&mut self, buffer: Buffer, last: Option<&Expr>) {
        let lanes = last.and_then(|index| aligned(index, &self.known)).map(|(lanes, _)| lanes);
        let known = self.found.entry(buffer).or_insert(lanes);
        if *known != lanes {
            *known = None;
        }
    }
}

/// The number of lanes of an index of neighbours from a multiple of that number, and the number of the vector.
fn aligned(index: &Expr, known: &Ranges) -> Option<(u16, Expr)> {
    let Expr::Ramp { base, stride, lanes } = index else { return None };
    let is_ramp = stride.as_const_int() == Some(1);
    is_ramp.then(|| Some((*lanes, divided(base, *lanes, known)?))).flatten()
}

/// The rewriting.
struct Change {
    /// The buffers of vectors, and their lanes.
    vectors: HashMap<Buffer, (Buffer, u16)>,
    known: Ranges,
}

impl Change {
    /// The indices of the vector that an access is.
    fn indices(&self, buffer: &Buffer, mut indices: Vec<Expr>) -> Result<Vec<Expr>, Diagnostic> {
        if self.vectors.contains_key(buffer) {
            let number = indices.pop().and_then(|index| aligned(&index, &self.known));
            let (_, mut number) = number.ok_or_else(|| {
                let message = format!("an access of `{buffer}` is no vector any more");
                Diagnostic::error("vector-index", buffer.span, message).with_help("run simplify first")
            })?;
            if sabotage::on("vectors-take-first") {
                number = Expr::Int { value: 0, ty: number.dtype().scalar };
            }
            indices.push(number);
        }
        Ok(indices)
    }
}

impl Rewrite for Change {
    type Error = Diagnostic;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Diagnostic> {
        Ok(self.vectors.get(buffer).map_or(buffer, |(vector, _)| vector).clone())
    }

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Diagnostic> {
        let Expr::Load { buffer, indices } = expr else { return self.expr_children(expr) };
        let indices = self.exprs(indices)?;
        let indices = self.indices(buffer, indices)?;
        Ok(Expr::load(&self.buffer(buffer)?, indices))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Diagnostic> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } => {
                let value = self.expr(value)?;
                let indices = self.exprs(indices)?;
                let indices = self.indices(buffer, indices)?;
                Ok(Stmt::store(&self.buffer(buffer)?, indices, value).at(stmt.span))
            }
            StmtKind::For(inner) => {
                let (min, extent) = (self.expr(&inner.min)?, self.expr(&inner.extent)?);
                let outer = std::mem::replace(&mut self.known, Ranges::new());
                self.known = inside(&outer, inner);
                let body = self.stmt(&inner.body)?;
                self.known = outer;
                Ok(Stmt::new(StmtKind::For(For { min, extent, body, ..For::clone(inner) }.into())).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}
