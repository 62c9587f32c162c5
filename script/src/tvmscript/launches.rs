//! Launches of threads.
//!
//! | notation | loop |
//! |---|---|
//! | `with T.launch_thread("blockIdx.x", 4) as bx:` | bound to the launch axis |
//! | `bx = T.env_thread("blockIdx.x")` and `T.launch_thread(bx, 4)` | the same, as releases 0.8 to 0.12 print it |
//! | `T.env_thread("vthread.x")`, `T.launch_thread("vthread.x", 2)` | parallel, with the annotation `virtual_thread` |
//! | `threadIdx_x = T.int32()`, `T.attr(threadIdx_x, "pragma_unroll_explicit", 1)` and `T.launch_thread(threadIdx_x, 8)` | bound to `threadIdx.x` |
//!
//! Release 0.27 prints the last form, without the axis, for a loop over threads that has hints. The pass UnifyThreadBinding has named
//! the variable after its axis. A variable with another name has no axis in the text, which is an error.

use std::fmt;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{AttrValue, Expr, For, ForKind, Stmt, StmtKind, ThreadTag, VIRTUAL_AXES, VIRTUAL_THREAD, Var};

use super::reader::{Binding, Reader, string};
use super::scopes::ScopeWrapper;

/// An axis of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchAxis {
    /// Threads or groups of threads, such as `threadIdx.x`.
    Thread(ThreadTag),
    /// Virtual threads, such as `vthread.x`. One thread runs all of them, and TVM interleaves them.
    Virtual(&'static str),
}

impl LaunchAxis {
    /// Returns the axis with this name.
    fn named(name: &str) -> Option<Self> {
        let of_virtual = || VIRTUAL_AXES.into_iter().find(|axis| *axis == name).map(Self::Virtual);
        name.parse().ok().map(Self::Thread).or_else(of_virtual)
    }

    /// Returns the axis that TVM has named a variable after: `threadIdx_x`, or `threadIdx_x_1` where that name is taken.
    fn of_variable(name: &str) -> Option<Self> {
        let is_number = |(_, end): &(&str, &str)| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
        let name = name.rsplit_once('_').filter(is_number).map_or(name, |(start, _)| start);
        Self::named(&name.replacen('_', ".", 1))
    }

    /// Returns the kind of a loop over the axis. Virtual threads run in any order.
    pub(super) fn kind(self) -> ForKind {
        match self {
            Self::Thread(tag) => ForKind::ThreadBinding(tag),
            Self::Virtual(_) => ForKind::Parallel,
        }
    }

    /// Returns the annotation that a loop over the axis has. The printer expects it behind all others.
    pub(super) fn annotation(self) -> Option<(String, AttrValue)> {
        match self {
            Self::Thread(_) => None,
            Self::Virtual(name) => Some((VIRTUAL_THREAD.to_owned(), AttrValue::Str(name.to_owned()))),
        }
    }
}

impl fmt::Display for LaunchAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(tag) => tag.fmt(f),
            Self::Virtual(name) => f.write_str(name),
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads the name of a launch axis, such as `"threadIdx.x"`.
    pub(super) fn launch_axis(&mut self, expr: &'a ast::Expr) -> Option<LaunchAxis> {
        string(expr).and_then(LaunchAxis::named).or_else(|| {
            let help = "they are blockIdx.x to .z, threadIdx.x to .z, vthread and vthread.x to .z";
            self.error("thread", expr.range(), "this is not a thread axis", help)
        })
    }

    /// Reads `name = T.env_thread("blockIdx.x")` and binds the name.
    pub(super) fn env_thread(&mut self, name: &str, call: &'a ast::ExprCall) -> Option<()> {
        let args = self.bind_args(call, "env_thread", &["thread_tag"], 1)?;
        let axis = self.launch_axis(args.get(0)?)?;
        self.bind(name, Binding::Thread(axis));
        Some(())
    }

    /// Reads `with T.launch_thread("blockIdx.x", 4) as bx:`. The axis may also be a name, which is then the loop variable.
    pub(super) fn launch_thread(
        &mut self,
        target: Option<&'a ast::Expr>,
        call: &'a ast::ExprCall,
    ) -> Option<ScopeWrapper> {
        let args = self.bind_args(call, "launch_thread", &["thread", "extent"], 2)?;
        let thread = args.get(0)?;
        if self.is_failed(thread) {
            return None;
        }
        let (axis, given) = match thread {
            ast::Expr::Name(name) => (self.axis_of_name(name), Some(name.id.as_str())),
            _ => (self.launch_axis(thread), None),
        };
        let name = match target {
            Some(ast::Expr::Name(name)) => Some(name.id.as_str()),
            _ => given,
        };
        let extent = self.expr(args.get(1)?);
        let Some(name) = name else {
            let help = "`with T.launch_thread(\"blockIdx.x\", 4) as bx:`";
            return self.error("thread", call.range(), "a launch has an axis and a variable", help);
        };
        let (Some(axis), Some(extent)) = (axis, extent) else {
            // The variable has no meaning now, and its uses are no errors of their own.
            self.bind(name, Binding::Failed);
            return None;
        };
        Some(self.launched(name, axis, extent))
    }

    /// Returns the axis that a name in `T.launch_thread(bx, 4)` stands for.
    fn axis_of_name(&mut self, name: &'a ast::ExprName) -> Option<LaunchAxis> {
        if let Some(Binding::Thread(axis)) = self.lookup(&name.id) {
            return Some(*axis);
        }
        let axis = LaunchAxis::of_variable(&name.id).filter(|_| self.has_no_value(name));
        axis.or_else(|| {
            let message = format!("the text does not say which axis `{}` is", name.id);
            let help = "`with T.launch_thread(\"blockIdx.x\", 4) as bx:`, or `bx = T.env_thread(\"blockIdx.x\")` before the launch";
            self.error("thread", name.range(), message, help)
        })
    }

    /// Returns the loop over a launch axis, whose variable has a name.
    pub(super) fn launched(&mut self, name: &str, axis: LaunchAxis, extent: Expr) -> ScopeWrapper {
        let (var, kind) = (Var::new(name, extent.dtype()), axis.kind());
        let annotations: Vec<_> = self.hints_of(name).into_iter().chain(axis.annotation()).collect();
        self.bind(name, Binding::Value(Expr::from(&var)));
        self.remember_range(&var, &Expr::Int { value: 0, ty: var.dtype().scalar }, &extent);
        self.remember_threads(&var, kind, &extent);
        let min = Expr::Int { value: 0, ty: var.dtype().scalar };
        Box::new(move |body| Stmt::new(StmtKind::For(For { var, min, extent, kind, annotations, body }.into())))
    }
}
