//! Fills the buffers that `double_buffer_scope` marks for the next iteration while this one reads them (TVM's `InjectDoubleBuffer`).
//!
//! ```text
//! t = T.alloc_buffer((8,), "float32")                t = T.alloc_buffer((2, 8), "float32")
//! for i in range(n):                                 for j in range(8):
//!     with T.attr(t.data, "double_buffer_scope", 1):     t[0, j] = A[0, j]
//!         for j in range(8):                         for i in range(n):
//!             t[j] = A[i, j]                   ->        if i + 1 < n:
//!     for j in range(8):                                     for j in range(8):
//!         C[i, j] = t[7 - j]                                     t[(i + 1) % 2, j] = A[i + 1, j]
//!                                                        for j in range(8):
//!                                                            C[i, j] = t[i % 2, 7 - j]
//! ```
//!
//! Blocks ask for it by `T.sblock_attr({"double_buffer_scope": 0})`, which `lower_blocks` turns into the attribute. Each marked buffer gets
//! an axis in front, as RFC 63 proposes, so the pass comes before `flatten_buffer`. It shares its code with the step
//! [`double_buffer`](super::double_buffer()) of a schedule, and refuses what that refuses. Cost: a few walks for each buffer, and the
//! search for the evidence.

use std::convert::Infallible;

use tilewright_ir::phases::has_groups;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{AttrValue, Buffer, Diagnostic, Evidence, Expr, Label, PrimFunc, Span, Stmt, StmtKind, Var};

use super::Rewritten;
use super::schedule::{Claim, doubled, has_own_memory};
use super::storage::claims::values;
use super::storage::without_blocks;

/// The key of the attribute that marks a buffer.
pub(super) const DOUBLE_BUFFER: &str = "double_buffer_scope";

const NAME: &str = "inject_double_buffer";

/// Gives each marked buffer two halves.
///
/// # Errors
/// `blocks`: the function has blocks. `double-buffer`: an attribute is about no buffer that the function allocates, or the buffer is
/// not filled by nests of its own in each iteration of a serial loop, in front of what reads it.
///
/// ```
/// use tilewright_compiler::passes::inject_double_buffer;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, c: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 8), "float32")
///     C = T.match_buffer(c, (n, 8), "float32")
///     t = T.alloc_buffer((8,), "float32")
///     for i in range(n):
///         with T.attr(t.data, "double_buffer_scope", 1):
///             for j in range(8):
///                 t[j] = A[i, j]
///         for j in range(8):
///             C[i, j] = t[7 - j]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&inject_double_buffer(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     r#"t = T.alloc_buffer((2, 8), "float32")"#,
///     "for j in range(8):",
///     "t[0, j] = A[0, j]",
///     "for i in range(n):",
///     "if i + 1 < n:",
///     "for j in range(8):",
///     "t[(i + 1) % 2, j] = A[i + 1, j]",
///     "for j in range(8):",
///     "C[i, j] = t[i % 2, 7 - j]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn inject_double_buffer(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    without_blocks(func, NAME)?;
    let marks = marks(func);
    let mut evidence = Evidence { pass: NAME.to_owned(), ..Evidence::default() };
    let Ok(body) = Unmarked.stmt(&func.body);
    let mut after = PrimFunc { body, ..func.clone() };
    let mut claims: Vec<Claim> = Vec::new();
    for (data, span) in marks {
        let place = |fault: Diagnostic| vec![placed(fault, span)];
        let buffer = allocated(&after, data.as_ref()).map_err(place)?;
        has_own_memory(&after, &buffer).map_err(place)?;
        let (body, claim) = doubled(&after, &buffer).map_err(place)?;
        after.body = body;
        claims.push(claim);
    }
    match claims.as_slice() {
        [] => {}
        [claim] if !has_groups(&func.body) => evidence.comparison = claim.comparison(func, &after, &evidence),
        // Each claim is about its own step and about statements without barriers; the claim about others is searched for.
        _ => evidence = values(func, &after, NAME, &|_, _| None),
    }
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// The data variables that are marked, each once, with the place of the attribute. `None` for an attribute of something else.
fn marks(func: &PrimFunc) -> Vec<(Option<Var>, Option<Span>)> {
    let mut found: Vec<(Option<Var>, Option<Span>)> = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Attr { node, key, .. } = &stmt.kind
            && key == DOUBLE_BUFFER
        {
            let data = match node {
                AttrValue::Var(var) | AttrValue::Expr(Expr::Var(var)) => Some(var.clone()),
                AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Str(_) => None,
                AttrValue::Expr(_) | AttrValue::List(_) | AttrValue::Dict(_) | AttrValue::Block(_) => None,
            };
            if !found.iter().any(|(known, _)| *known == data) {
                found.push((data, stmt.span));
            }
        }
    });
    found
}

/// The buffer that the function allocates for a data variable.
fn allocated(func: &PrimFunc, data: Option<&Var>) -> Result<Buffer, Diagnostic> {
    let mut found: Vec<Buffer> = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } = &stmt.kind
            && Some(&buffer.data) == data
        {
            found.push(buffer.clone());
        }
    });
    if let [only] = found.as_slice() {
        return Ok(only.clone());
    }
    let named = data.map_or_else(|| "what it names".to_owned(), |data| format!("`{}`", data.name()));
    let message = format!("`{DOUBLE_BUFFER}` marks a buffer that the function allocates once, and {named} is none");
    Err(Diagnostic::error("double-buffer", None, message).with_help("such as `with T.attr(t.data, ...)`"))
}

/// A fault of one buffer, at its attribute if it has no place.
fn placed(mut fault: Diagnostic, span: Option<Span>) -> Diagnostic {
    if let (true, Some(span)) = (fault.labels.is_empty(), span) {
        fault.labels.push(Label { span, message: String::new() });
    }
    Diagnostic { code: "double-buffer", ..fault }
}

/// Removes the marks.
struct Unmarked;

impl Rewrite for Unmarked {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Attr { key, body, .. } if key == DOUBLE_BUFFER => self.stmt(body),
            StmtKind::Seq(stmts) => {
                let parts = stmts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(parts).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}
