//! Makes a device function of each launch, and calls it from the host (TVM's `SplitHostDevice`).
//!
//! ```text
//! for r in range(n):                                  for r in range(n):
//!     x: T.int32 = r * 2                                  x: T.int32 = r * 2
//!     for i in thread_binding(10, "blockIdx.x"):          T.call_packed("main_kernel", B.data, A.data, x)
//!         for j in thread_binding(24, "threadIdx.x"):
//!             B[i, j] = A[i, j] + x              ->   def main_kernel(B_ptr, A_ptr, x: T.int32):
//!                                                         B = T.decl_buffer((10, 24), "float32", data=B_ptr)
//!                                                         A = T.decl_buffer((10, 24), "float32", data=A_ptr)
//!                                                         for i in thread_binding(10, "blockIdx.x"):
//!                                                             ...
//! ```
//!
//! A launch is an outermost loop over threads, or memory of threads and the launch that uses it. Everything around it is host code: serial loops,
//! conditions, bindings, assertions and allocations of global memory. The device function is passed the memory that it accesses, and each
//! scalar that it uses: parameters, extents, variables of loops of the host, and bindings. The host itself does not access memory, which is
//! that of the device.
//!
//! The call of a device function is an attribute of what it does ([`tilewright_ir::device`]), so that the judge walks both programs along each other; it
//! also checks that the function is passed all that it uses. Cost: linear in the program, for each launch.

use tilewright_ir::block::Block;
use tilewright_ir::device::{has_device_functions, uses};
use tilewright_ir::{Diagnostic, Evidence, ForKind, PrimFunc, Scope, Span, Stmt, StmtKind, sabotage};

use super::Rewritten;

const NAME: &str = "split_host_device";

/// Makes a device function of each launch.
///
/// # Errors
/// `split-host-device`: the function has device functions or blocks; a launch is in a loop whose iterations run at once; several
/// launches share the memory of threads; or the host accesses memory.
///
/// ```
/// use tilewright_compiler::passes::split_host_device;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 8), "float32")
///     for r in range(3):
///         for i in T.thread_binding(n, thread="blockIdx.x"):
///             for j in T.thread_binding(8, thread="threadIdx.x"):
///                 A[i, j] = A[i, j] + T.Cast("float32", r)
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&split_host_device(&func)?.func);
/// let lines: Vec<&str> = printed.lines().skip(4).map(str::trim).collect();
/// assert_eq!(lines[..4], [
///     "for r in range(3):",
///     r#"T.call_packed("main_kernel", A.data, n, r)"#,
///     "",
///     "@T.prim_func",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn split_host_device(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let mut notes = Vec::new();
    if has_device_functions(func) {
        let help = "run the pass once";
        return Err(vec![fault(None, format!("`{}` calls device functions already", func.name), help)]);
    }
    let mut host = Host { name: &func.name, n_launches: 0, faults: Vec::new() };
    let body = host.stmt(&func.body, false);
    if !host.faults.is_empty() {
        return Err(host.faults);
    }
    if host.n_launches == 0 {
        let message =
            format!("`{}` has no loop that is bound to threads, so no launch to make a function of", func.name);
        notes.push(
            Diagnostic::warning(NAME, None, message).with_help("bind loops to blockIdx and threadIdx".to_owned()),
        );
    }
    let mut after = PrimFunc { body, ..func.clone() };
    super::answered(&mut after, NAME);
    let evidence = Evidence { pass: NAME.to_owned(), ..Evidence::default() };
    Ok(Rewritten { func: after, evidence, notes })
}

/// Returns whether a function asks for the pass.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    super::is_asked(func, NAME)
}

fn fault(span: Option<Span>, message: String, help: &str) -> Diagnostic {
    Diagnostic::error("split-host-device", span, message).with_help(help.to_owned())
}

/// The host code of a function.
struct Host<'a> {
    name: &'a str,
    n_launches: usize,
    faults: Vec<Diagnostic>,
}

impl Host<'_> {
    fn refuse(&mut self, stmt: &Stmt, message: String, help: &str) {
        self.faults.push(fault(stmt.span, message, help));
    }

    /// The statement with its launches called; `at_once` says whether it is in a loop whose iterations run at once.
    fn stmt(&mut self, stmt: &Stmt, at_once: bool) -> Stmt {
        if Block::of(stmt).is_some() {
            self.refuse(stmt, format!("`{NAME}` takes no blocks"), "run lower_blocks first");
            return stmt.clone();
        }
        if self.is_launch(stmt) {
            if at_once {
                let message = "a launch is in a loop whose iterations run at once".to_owned();
                self.refuse(stmt, message, "the host launches one kernel after the other; make the loop serial");
            }
            return self.call(stmt);
        }
        if let Some(message) = accessed(stmt) {
            self.refuse(stmt, message, "the memory is that of the device: do it in a loop that is bound to threads");
        }
        let inside = at_once || matches!(&stmt.kind, StmtKind::For(inner) if inner.kind.is_concurrent());
        with_children(stmt, &mut |child| self.stmt(child, inside))
    }

    /// Whether a statement is a launch: a loop over threads, or memory of threads and what uses it.
    fn is_launch(&mut self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::For(inner) => matches!(inner.kind, ForKind::ThreadBinding(_)),
            StmtKind::Allocate { buffer, body } => {
                let is_of_threads = matches!(buffer.scope, Scope::Shared | Scope::Local);
                if is_of_threads && n_launches(body) > 1 {
                    let message = format!("`{buffer}` is memory of threads, but several launches use it");
                    self.refuse(stmt, message, "allocate it inside of each launch, or in global memory");
                }
                is_of_threads && n_launches(body) > 0
            }
            StmtKind::Store { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => false,
        }
    }

    /// The call of a device function that does what a launch does.
    fn call(&mut self, launch: &Stmt) -> Stmt {
        let name = match self.n_launches {
            0 => format!("{}_kernel", self.name),
            position => format!("{}_kernel_{position}", self.name),
        };
        self.n_launches += 1;
        let mut used = uses(launch);
        if sabotage::on("split-passes-no-last-scalar") {
            used.vars.pop();
        }
        if sabotage::on("split-passes-no-last-memory") {
            used.data.pop();
        }
        if sabotage::on("split-passes-in-other-order") {
            used.vars.reverse();
        }
        Stmt::device_call(&name, used.data.into_iter().chain(used.vars), launch.clone()).at(launch.span)
    }
}

/// The number of outermost loops over threads in a statement.
fn n_launches(stmt: &Stmt) -> usize {
    match &stmt.kind {
        StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(_)) => 1,
        _ => stmt.children().map(n_launches).sum(),
    }
}

/// How a statement of the host accesses memory by itself.
fn accessed(stmt: &Stmt) -> Option<String> {
    if let StmtKind::Store { buffer, .. } = &stmt.kind {
        return Some(format!("the host writes `{buffer}`"));
    }
    stmt.exprs().find(|expr| expr.reads_memory()).map(|expr| format!("the host reads memory: `{expr}`"))
}

/// The statement with each statement directly inside of it replaced.
fn with_children(stmt: &Stmt, replace: &mut dyn FnMut(&Stmt) -> Stmt) -> Stmt {
    let mut inner = Children(replace);
    let Ok(rebuilt) = tilewright_ir::visit::Rewrite::stmt_children(&mut inner, stmt);
    rebuilt
}

struct Children<'a>(&'a mut dyn FnMut(&Stmt) -> Stmt);

impl tilewright_ir::visit::Rewrite for Children<'_> {
    type Error = std::convert::Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        Ok((self.0)(stmt))
    }
}
