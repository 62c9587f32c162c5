//! Interleaves the iterations of virtual threads in one thread (TVM's `InjectVirtualThread`).
//!
//! ```text
//! for v in T.thread_binding(2, thread="vthread.x"):      t = T.alloc_buffer((2, 5), "float32")
//!     t = T.alloc_buffer((5,), "float32")                for j in range(5):
//!     for j in range(5):                                     t[0, j] = A[0, j]
//!         t[j] = A[v, j]                           ->        t[1, j] = A[1, j]
//!     for j in range(5):                                 for j in range(5):
//!         B[v, j] = t[4 - j]                                 B[0, j] = t[0, 4 - j]
//!                                                            B[1, j] = t[1, 4 - j]
//! ```
//!
//! A buffer that is allocated in the loop gets an axis in front, if what is stored in it depends on the virtual thread. A statement that
//! depends on it takes place once for each virtual thread: as copies if there are fewer than 16 and the statement has no loop, in a
//! serial loop otherwise. Every other statement takes place once. A loop or a condition that depends on the virtual thread is taken as a
//! whole. Of nested virtual threads, the inner ones are interleaved first. Cost: a few walks for each virtual thread, and the search
//! for the evidence.
//!
//! Buffers that the loop allocates and that have views, strides or a layout of their own are refused: all aliases would have to get the
//! axis.

use std::collections::HashSet;

use tilewright_ir::{Diagnostic, Evidence, Expr, For, ForKind, PrimFunc, Span, StmtKind, VIRTUAL_THREAD, Var};
use tilewright_verify::reorder::Statement;

use super::Rewritten;
use super::schedule::at;
use super::storage::claims::values;
use super::storage::without_blocks;
use super::virtual_thread::{Copied, Interleaved, interleaved};

const NAME: &str = "inject_virtual_thread";

/// Interleaves virtual threads.
///
/// # Errors
/// `blocks`: the function has blocks. `virtual-thread`: the number of virtual threads is no constant, or a buffer that one of them
/// allocates cannot have another axis.
///
/// ```
/// use tilewright_compiler::passes::inject_virtual_thread;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((2, 5), "float32"), B: T.Buffer((2, 5), "float32")):
///     for v in T.thread_binding(2, thread="vthread.x"):
///         t = T.alloc_buffer((5,), "float32")
///         for j in range(5):
///             t[j] = A[v, j]
///         for j in range(5):
///             B[v, j] = t[4 - j]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&inject_virtual_thread(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     r#"t = T.alloc_buffer((2, 5), "float32")"#,
///     "for j in range(5):",
///     "t[0, j] = A[0, j]",
///     "t[1, j] = A[1, j]",
///     "for j in range(5):",
///     "B[0, j] = t[0, 4 - j]",
///     "B[1, j] = t[1, 4 - j]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn inject_virtual_thread(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    without_blocks(func, NAME)?;
    let mut after = func.clone();
    let mut steps: Vec<(Var, Vec<Copied>)> = Vec::new();
    while let Some((inner, span)) = innermost(&after) {
        let Interleaved { body, stores } = interleaved(&after, inner, span).map_err(|fault| vec![fault])?;
        steps.push((inner.var.clone(), stores));
        after = PrimFunc { body, ..after };
    }
    let evidence = if steps.is_empty() {
        Evidence { pass: NAME.to_owned(), ..Evidence::default() }
    } else {
        let claim = Claimed::new(&steps);
        values(func, &after, NAME, &|old, new| claim.origins(old, new))
    };
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Whether a loop is over virtual threads.
fn is_virtual(inner: &For) -> bool {
    inner.kind == ForKind::Parallel && inner.annotations.iter().any(|(key, _)| key == VIRTUAL_THREAD)
}

/// The first loop over virtual threads in which there is no other one.
fn innermost(func: &PrimFunc) -> Option<(&For, Option<Span>)> {
    let mut found = None;
    let mut last = 0;
    let mut count = 0;
    func.body.walk(&mut |stmt| {
        count += 1;
        if let StmtKind::For(inner) = &stmt.kind
            && is_virtual(inner)
            && (found.is_none() || count < last)
        {
            // The statements of this loop are the next ones.
            let mut inside = 0;
            stmt.walk(&mut |_| inside += 1);
            last = count + inside;
            found = Some((&**inner, stmt.span));
        }
    });
    found
}

/// Which store before each store after is a copy of.
struct Claimed {
    stores: Vec<Copied>,
    /// The stores before that take place once for all virtual threads.
    shared: HashSet<usize>,
}

impl Claimed {
    /// The stores after all steps, in terms of the program before.
    fn new(steps: &[(Var, Vec<Copied>)]) -> Self {
        let mut stores: Option<Vec<Copied>> = None;
        for (_, copies) in steps {
            let composed = |copy: &Copied| {
                let Some(before) = &stores else { return Some(copy.clone()) };
                let first = before.get(copy.before)?;
                let values = [first.values.as_slice(), &copy.values].concat();
                let added = [first.added.as_slice(), &copy.added].concat();
                Some(Copied { before: first.before, values, added, is_once: first.is_once || copy.is_once })
            };
            stores = Some(copies.iter().filter_map(composed).collect());
        }
        let stores = stores.unwrap_or_default();
        let shared = stores.iter().filter(|copy| copy.is_once).map(|copy| copy.before).collect();
        Self { stores, shared }
    }

    fn origins(&self, old: &[Statement], new: &[Statement]) -> Option<Vec<tilewright_ir::Origin>> {
        (self.stores.len() == new.len()).then_some(())?;
        let once_after = self.stores.iter().enumerate().filter(|(_, copy)| copy.is_once);
        let once_after: Vec<usize> = once_after.map(|(position, _)| position).collect();
        let mut once_before: Vec<usize> = self.shared.iter().copied().collect();
        once_before.sort_unstable();
        let origin = |(copy, store): (&Copied, &Statement)| {
            let before = old.get(copy.before)?;
            let mut others = store.loops().into_iter().filter(|var| !copy.added.contains(var));
            let value = |var: &Var| match copy.values.iter().find(|(one, _)| one == var) {
                Some((_, value)) => Some(value.clone()),
                None => others.next().map(|var| Expr::from(&var)),
            };
            let there: Vec<Expr> = before.loops().iter().map(value).collect::<Option<_>>()?;
            let mut origin = at(copy.before, there);
            // What takes place once is the same value in each virtual thread: it is looked through.
            origin.opened_before.clone_from(&once_before);
            origin.opened_after.clone_from(&once_after);
            Some(origin)
        };
        self.stores.iter().zip(new).map(origin).collect()
    }
}
