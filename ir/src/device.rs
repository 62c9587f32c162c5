//! Device functions: the parts of a function that a device runs, and what the host passes to them.
//!
//! ```text
//! def main(A, B, n):                        def main(A, B, n):
//!     x = n * 2                                 x = n * 2
//!     device function main_kernel(B, A, x):     call main_kernel(B.data, A.data, x)
//!         for i in 10 (blockIdx.x):
//!             B[i] = A[i] + x           =   def main_kernel(B_ptr, A_ptr, x):
//!                                               for i in 10 (blockIdx.x):
//!                                                   B[i] = A[i] + x
//! ```
//!
//! The language has no calls. A call of a device function is an attribute of the statements that the function consists of, with its
//! parameters replaced by the arguments. It does not change what they mean; it lists the arguments. The reader puts the statements in the
//! place of the call, and the printer writes them as a function of their own. [`faults`] states the rules: a device function uses nothing that it is not
//! passed, and a function that calls one runs threads nowhere else.

use std::collections::HashSet;

use crate::buffer::Buffer;
use crate::diag::Diagnostic;
use crate::dtype::DataType;
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::stmt::{AttrValue, ForKind, Stmt, StmtKind};
use crate::var::Var;

/// The key of the attribute around the statements of a device function. Its node lists the arguments, its value is the name.
pub const DEVICE_FUNCTION: &str = "device_function";

/// A call of a device function, which is also the function.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCall<'a> {
    /// The name of the device function.
    pub name: &'a str,
    /// The arguments: data variables and scalars.
    pub args: &'a [AttrValue],
    /// What the device function does.
    pub body: &'a Stmt,
}

impl<'a> DeviceCall<'a> {
    /// Returns the call that a statement is.
    pub fn of(stmt: &'a Stmt) -> Option<Self> {
        match &stmt.kind {
            StmtKind::Attr { node: AttrValue::List(args), key, value: AttrValue::Str(name), body }
                if key == DEVICE_FUNCTION =>
            {
                Some(Self { name, args, body })
            }
            _ => None,
        }
    }

    /// Returns the variables that are passed, in order, each once. An argument that a pass replaced by an expression passes the
    /// variables in it.
    pub fn passed(&self) -> Vec<Var> {
        let mut found = Vec::new();
        for arg in self.args {
            vars_of(arg, &mut |var| {
                if !found.contains(var) {
                    found.push(var.clone());
                }
            });
        }
        found
    }
}

impl Stmt {
    /// Creates a call of a device function with the statement `body`.
    pub fn device_call(name: &str, args: impl IntoIterator<Item = Var>, body: Self) -> Self {
        Self::new(StmtKind::Attr {
            node: AttrValue::List(args.into_iter().map(AttrValue::Var).collect()),
            key: DEVICE_FUNCTION.to_owned(),
            value: AttrValue::Str(name.to_owned()),
            body: body.into(),
        })
    }
}

/// What a statement uses of its surroundings, each once, in program order.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The buffers that are declared outside of the statement.
    pub buffers: Vec<Buffer>,
    /// The data variables whose memory is allocated outside of the statement.
    pub data: Vec<Var>,
    /// The variables that are bound outside of the statement, those in the layouts of buffers included.
    pub vars: Vec<Var>,
}

/// Returns what a statement uses of its surroundings.
pub fn uses(stmt: &Stmt) -> Uses {
    let mut own = Own::default();
    own.collect(stmt);
    let mut uses = Uses::default();
    stmt.walk(&mut |part| own.add(part, &mut uses));
    uses
}

/// What a statement declares by itself. A variable is bound only once in a function, so that no scopes are needed.
#[derive(Default)]
struct Own {
    vars: HashSet<Var>,
    buffers: HashSet<Buffer>,
    data: HashSet<Var>,
}

impl Own {
    fn collect(&mut self, stmt: &Stmt) {
        stmt.walk(&mut |part| match &part.kind {
            StmtKind::For(inner) => {
                self.vars.insert(inner.var.clone());
            }
            StmtKind::Let { var, .. } => {
                self.vars.insert(var.clone());
            }
            StmtKind::Allocate { buffer, .. } => {
                self.buffers.insert(buffer.clone());
                self.data.insert(buffer.data.clone());
            }
            StmtKind::DeclBuffer { buffer, .. } => {
                self.buffers.insert(buffer.clone());
            }
            StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => {}
        });
    }

    /// Adds what one statement uses, without those inside of it.
    fn add(&self, stmt: &Stmt, uses: &mut Uses) {
        match &stmt.kind {
            StmtKind::Store { buffer, .. }
            | StmtKind::Allocate { buffer, .. }
            | StmtKind::DeclBuffer { buffer, .. } => self.buffer(buffer, uses),
            StmtKind::Attr { node, value, .. } => {
                for part in [node, value] {
                    vars_of(part, &mut |var| self.var(var, uses));
                }
            }
            StmtKind::For(_)
            | StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => {}
        }
        for expr in stmt.exprs() {
            self.expr(expr, uses);
        }
    }

    fn expr(&self, expr: &Expr, uses: &mut Uses) {
        expr.walk(&mut |part| match part {
            Expr::Var(var) => self.var(var, uses),
            Expr::Load { buffer, .. } => self.buffer(buffer, uses),
            Expr::Int { .. }
            | Expr::Float { .. }
            | Expr::Binary(..)
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. } => {}
        });
    }

    /// A buffer that is accessed or declared, with the variables in its layout.
    fn buffer(&self, buffer: &Buffer, uses: &mut Uses) {
        if !self.buffers.contains(buffer) && !uses.buffers.contains(buffer) {
            uses.buffers.push(buffer.clone());
        }
        self.var(&buffer.data, uses);
        let strides = buffer.strides.iter().flatten();
        for part in buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]) {
            self.expr(part, uses);
        }
    }

    fn var(&self, var: &Var, uses: &mut Uses) {
        let (is_own, list) = if var.dtype() == DataType::HANDLE {
            (self.data.contains(var), &mut uses.data)
        } else {
            (self.vars.contains(var), &mut uses.vars)
        };
        if !is_own && !list.contains(var) {
            list.push(var.clone());
        }
    }
}

/// Calls `visit` on each variable of an attribute's value. What a block says of itself is left out.
fn vars_of(value: &AttrValue, visit: &mut impl FnMut(&Var)) {
    match value {
        AttrValue::Var(var) => visit(var),
        AttrValue::Expr(expr) => expr.vars().iter().for_each(visit),
        AttrValue::List(list) => list.iter().for_each(|item| vars_of(item, visit)),
        AttrValue::Dict(entries) => entries.iter().for_each(|(_, item)| vars_of(item, visit)),
        AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Str(_) | AttrValue::Block(_) => {}
    }
}

/// Returns whether a function calls device functions.
pub fn has_device_functions(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| found |= DeviceCall::of(stmt).is_some());
    found
}

/// Returns what is wrong with the device functions of a function; nothing if it has none.
///
/// A device function is passed all that it uses. It is called by the host: not inside of another one, and not in a loop whose iterations run
/// at once. If there are any, no thread runs outside of them.
pub fn faults(func: &PrimFunc) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if has_device_functions(func) {
        host(&func.body, false, &mut found);
    }
    found
}

/// The faults of a statement of the host; `at_once` says whether it is in a loop whose iterations run at once.
fn host(stmt: &Stmt, at_once: bool, found: &mut Vec<Diagnostic>) {
    let mut fault = |message: String, help: &str| {
        found.push(Diagnostic::error("device-function", stmt.span, message).with_help(help.to_owned()));
    };
    if let Some(call) = DeviceCall::of(stmt) {
        if at_once {
            let message = format!("`{}` is called in a loop whose iterations run at once", call.name);
            fault(message, "the host calls device functions one after the other; make the loop serial");
        }
        let (uses, passed) = (uses(call.body), call.passed());
        for missing in uses.data.iter().chain(&uses.vars).filter(|var| !passed.contains(var)) {
            let message = format!("`{}` uses `{missing}`, which is not passed to it", call.name);
            fault(message, "a device function knows nothing of its caller; pass the value as an argument");
        }
        let mut has_call = false;
        call.body.walk(&mut |part| has_call |= DeviceCall::of(part).is_some());
        if has_call {
            let message = format!("`{}` calls a device function", call.name);
            fault(message, "only the host calls device functions");
        }
        return;
    }
    let mut inside = at_once;
    if let StmtKind::For(inner) = &stmt.kind {
        if let ForKind::ThreadBinding(tag) = inner.kind {
            let message = format!("the loop `{}` over {tag} is in no device function, but others are", inner.var);
            fault(message, "put all loops over threads into device functions, or none");
            return;
        }
        inside |= inner.kind.is_concurrent();
    }
    for child in stmt.children() {
        host(child, inside, found);
    }
}
