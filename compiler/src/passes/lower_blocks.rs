//! Replaces blocks of S-TIR by the loops, conditions and stores that they stand for (TVM's `ConvertBlocksToOpaque`, `LowerInitBlock` and
//! `LowerOpaqueBlock`).
//!
//! ```text
//! for x, y in T.grid(26, 5):                         for x, y in T.grid(26, 5):
//!     with T.sblock("B"):                                if x * 5 + y < 128:
//!         i = T.axis.spatial(128, x * 5 + y)    ->           B[x * 5 + y] = A[x * 5 + y]
//!         T.where(x * 5 + y < 128)
//!         B[i] = A[i]
//! ```
//!
//! Axes are replaced by their values. They keep their names where the shape of a buffer depends on one. What the block says of itself
//! is proved of the program before this pass, and gone after it. The annotation `double_buffer_scope` becomes the attribute of the buffer that
//! the pass `inject_double_buffer` looks for. Cost: one walk.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{AttrValue, Block, Buffer, Diagnostic, Evidence, Expr, PrimFunc, Stmt, StmtKind, Var, sabotage};

use super::inject_double_buffer::DOUBLE_BUFFER;
use super::{Rewritten, schedule};

/// Lowers all blocks of a function. It never fails; the result has the type of a pass.
///
/// ```
/// use tilewright_compiler::passes::lower_blocks;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((13, 7), "float32"), B: T.Buffer((13,), "float32")):
///     for x, y in T.grid(13, 7):
///         with T.sblock("B"):
///             i, k = T.axis.remap("SR", [x, y])
///             with T.init():
///                 B[i] = T.float32(0)
///             B[i] = B[i] + A[i, k]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&lower_blocks(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     "for x, y in T.grid(13, 7):",
///     "if y == 0:",
///     "B[x] = T.float32(0.0)",
///     "B[x] = B[x] + A[x, y]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn lower_blocks(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let Ok(body) = Lower(Substitution::default()).stmt(&func.body);
    let after = PrimFunc { body, ..func.clone() };
    let evidence = Evidence { pass: "lower_blocks".to_owned(), ..Evidence::default() };
    let comparison = schedule::same_iterations(func, &after, &evidence);
    Ok(Rewritten { func: after, evidence: Evidence { comparison, ..evidence }, notes: Vec::new() })
}

/// Returns whether a function has blocks.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| found |= Block::of(stmt).is_some());
    found
}

/// The rewrite, with the values of the axes around the current statement.
struct Lower(Substitution);

impl Rewrite for Lower {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.0.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let Some((block, below)) = Block::of(stmt) else { return self.stmt_children(stmt) };
        let parts = block.parts(below).filter(|parts| !shapes_mention(parts.body, block));
        let Some(parts) = parts else { return self.stmt(below) };
        let predicate = parts.predicate.map(|cond| self.expr(cond)).transpose()?;
        for (axis, value) in block.axes.iter().zip(&parts.bindings) {
            let value = self.expr(value)?;
            self.0.insert(&axis.var, value);
        }
        let body = self.stmt(parts.body)?;
        let body = marked(block, body);
        let predicate = predicate.filter(|_| !sabotage::on("lower-blocks-drops-where"));
        Ok(predicate.map_or(body.clone(), |cond| Stmt::guarded(cond, body)).at(stmt.span))
    }
}

/// A statement with the hint that a buffer is filled for the next iteration, if the block asks for that: the value of the annotation is the
/// position of the buffer among those that the block writes.
fn marked(block: &Block, body: Stmt) -> Stmt {
    let position = block.annotations.iter().find_map(|(key, value)| match value {
        AttrValue::Int(position) if key == DOUBLE_BUFFER => usize::try_from(*position).ok(),
        _ => None,
    });
    let Some(region) = position.and_then(|position| block.writes.as_ref()?.get(position)) else { return body };
    let (node, value) = (AttrValue::Var(region.buffer.data.clone()), AttrValue::Int(1));
    Stmt::new(StmtKind::Attr { node, key: DOUBLE_BUFFER.to_owned(), value, body: body.into() })
}

/// Whether a buffer that is declared in a statement has an axis of the block in its shape, strides or offset.
fn shapes_mention(stmt: &Stmt, block: &Block) -> bool {
    let is_axis = |var: &Var| block.axes.iter().any(|axis| axis.var == *var);
    let mentions = |buffer: &Buffer| {
        let strides = buffer.strides.iter().flatten();
        let mut exprs = buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]);
        exprs.any(|expr| expr.vars().iter().any(is_axis))
    };
    let mut found = false;
    stmt.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } | StmtKind::DeclBuffer { buffer, .. } = &stmt.kind {
            found |= mentions(buffer);
        }
    });
    found
}

/// Refuses a function with blocks for a pass that takes none.
///
/// # Errors
/// `blocks`: there is one.
pub(super) fn refuse(func: &PrimFunc, pass: &str) -> Result<(), Vec<Diagnostic>> {
    let mut span = None;
    func.body.walk(&mut |stmt| {
        if Block::of(stmt).is_some() {
            span = span.or(stmt.span);
        }
    });
    if !is_wanted(func) {
        return Ok(());
    }
    let message = format!("`{pass}` takes no blocks, and `{}` has some", func.name);
    Err(vec![Diagnostic::error("blocks", span, message).with_help("run `lower_blocks` first")])
}
