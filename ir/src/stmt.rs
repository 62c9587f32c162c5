//! Statements.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::block::Block;
use crate::buffer::Buffer;
use crate::diag::Span;
use crate::expr::Expr;
use crate::shared::Parts;
use crate::var::Var;

/// A statement and its source location.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The kind of statement, with its operands.
    pub kind: StmtKind,
    /// The source location. `None` if the statement was not read from text.
    pub span: Option<Span>,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Runs `body` for each value from `min` to `min + extent - 1`. An extent of 0 or below runs no iteration.
    For(Arc<For>),
    /// Writes `value` to a buffer. Only the last index may have several lanes; see [`Expr::Load`].
    Store {
        /// The buffer.
        buffer: Buffer,
        /// The indices, one per axis.
        indices: Vec<Expr>,
        /// The value, with as many lanes as the element type times those of the last index.
        value: Expr,
    },
    /// Allocates the memory of `buffer` for the duration of `body` (RFC 39, "AllocateNode"). Its elements are
    /// undefined until they are written.
    Allocate {
        /// The buffer whose data variable becomes valid.
        buffer: Buffer,
        /// The statement in which the memory is valid.
        body: Arc<Stmt>,
    },
    /// Declares a view of an existing allocation (RFC 63, "Explicit `DeclBuffer` IR construct").
    DeclBuffer {
        /// The view. Its data variable is that of a parameter or of an enclosing allocation.
        buffer: Buffer,
        /// The statement in which the view can be used.
        body: Arc<Stmt>,
    },
    /// Runs `then_body` if `cond` is true, and `else_body` otherwise.
    If {
        /// A scalar `bool`.
        cond: Expr,
        /// Runs if the condition is true.
        then_body: Arc<Stmt>,
        /// Runs if the condition is false.
        else_body: Option<Arc<Stmt>>,
    },
    /// Binds a variable for the duration of `body`.
    Let {
        /// The variable; it has the type of the value.
        var: Var,
        /// The value, evaluated once, before the body.
        value: Expr,
        /// The statement in which the variable is bound.
        body: Arc<Stmt>,
    },
    /// Runs statements one after the other. An empty sequence has no effect.
    Seq(Arc<[Stmt]>),
    /// Evaluates an expression and discards its value.
    Evaluate(Expr),
    /// A barrier: a thread waits until all threads of its group are here (`T.tvm_storage_sync("shared")`). What they
    /// wrote before, to memory of any kind, is visible to all of them after it.
    Barrier,
    /// A hint about `body` (`T.attr`). It does not change the meaning of the program.
    Attr {
        /// The object that the hint is about.
        node: AttrValue,
        /// The name of the hint.
        key: String,
        /// The value of the hint.
        value: AttrValue,
        /// The statement that the hint applies to.
        body: Arc<Stmt>,
    },
    /// Traps if `cond` is false. Later statements of the same sequence may rely on it.
    Assert {
        /// A scalar `bool`.
        cond: Expr,
        /// The message of the trap.
        message: String,
        /// Whether the caller guarantees it (`T.assume`), which makes it a premise of what is proved of the function. It is checked all
        /// the same.
        is_assumed: bool,
    },
}

/// The annotation of a parallel loop whose iterations are virtual threads, which one thread interleaves. The value is TVM's name of the
/// axis, such as `vthread.x`.
pub const VIRTUAL_THREAD: &str = "virtual_thread";

/// The axes of virtual threads.
pub const VIRTUAL_AXES: [&str; 4] = ["vthread", "vthread.x", "vthread.y", "vthread.z"];

/// The key of the attribute around the statements of a reduction across threads: each thread puts its value into shared memory, waits, combines
/// the values of all threads, and waits. The node lists the loops over the threads whose values are combined.
pub const THREAD_ALLREDUCE: &str = "thread_allreduce";

/// A loop.
#[derive(Clone, Debug)]
pub struct For {
    /// The loop variable, a scalar integer.
    pub var: Var,
    /// The value of the variable in the first iteration.
    pub min: Expr,
    /// The number of iterations.
    pub extent: Expr,
    /// The execution order of the iterations.
    pub kind: ForKind,
    /// Hints in source order. They do not change the meaning of the program.
    pub annotations: Vec<(String, AttrValue)>,
    /// The body.
    pub body: Stmt,
}

/// The execution order of the iterations of a loop. All kinds except `Serial` and `Unrolled` require that the
/// iterations do not race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ForKind {
    /// In order.
    Serial,
    /// Concurrently, in any order.
    Parallel,
    /// Concurrently, as lanes of vectors.
    Vectorized,
    /// In order, with one copy of the body per iteration.
    Unrolled,
    /// Concurrently, by the threads of a launch.
    ThreadBinding(ThreadTag),
}

impl ForKind {
    /// Returns whether iterations may run concurrently, so that the program must be free of races between them.
    pub fn is_concurrent(self) -> bool {
        match self {
            Self::Serial | Self::Unrolled => false,
            Self::Parallel | Self::Vectorized | Self::ThreadBinding(_) => true,
        }
    }
}

/// One axis of the launch grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadTag {
    /// The work-group index on axis 0, 1 or 2 (x, y, z).
    Block(u8),
    /// The work-item index within its group on axis 0, 1 or 2 (x, y, z).
    Thread(u8),
}

impl fmt::Display for ThreadTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, axis) = match self {
            Self::Block(axis) => ("blockIdx", axis),
            Self::Thread(axis) => ("threadIdx", axis),
        };
        write!(f, "{name}.{}", ["x", "y", "z"][usize::from(*axis).min(2)])
    }
}

/// The error for text that does not name a launch axis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a thread axis: expected blockIdx.x to .z or threadIdx.x to .z")]
pub struct ThreadTagError(pub String);

impl FromStr for ThreadTag {
    type Err = ThreadTagError;

    fn from_str(text: &str) -> Result<Self, ThreadTagError> {
        let all = (0..3).flat_map(|axis| [Self::Block(axis), Self::Thread(axis)]);
        all.into_iter().find(|tag| tag.to_string() == text).ok_or_else(|| ThreadTagError(text.to_owned()))
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// A variable, such as a data variable.
    Var(Var),
    /// An expression that has none of the forms above.
    Expr(Expr),
    /// A list.
    List(Vec<AttrValue>),
    /// A dictionary, in source order.
    Dict(Vec<(String, AttrValue)>),
    /// What a block says; see [`Block`].
    Block(Arc<Block>),
}

impl Stmt {
    /// Creates a statement without a source location.
    pub fn new(kind: StmtKind) -> Self {
        Self { kind, span: None }
    }

    /// Returns the statement with the source location `span`.
    #[must_use]
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }

    /// Creates a store.
    pub fn store(buffer: &Buffer, indices: Vec<Expr>, value: Expr) -> Self {
        Self::new(StmtKind::Store { buffer: buffer.clone(), indices, value })
    }

    /// Creates a loop from 0 to `extent - 1`.
    pub fn for_loop(var: &Var, extent: Expr, kind: ForKind, body: Self) -> Self {
        let min = Expr::Int { value: 0, ty: var.dtype().scalar };
        let annotations = Vec::new();
        Self::new(StmtKind::For(Arc::new(For { var: var.clone(), min, extent, kind, annotations, body })))
    }

    /// Creates a statement that runs `body` only if `cond` is true.
    pub fn guarded(cond: Expr, body: Self) -> Self {
        Self::new(StmtKind::If { cond, then_body: Arc::new(body), else_body: None })
    }

    /// Creates a sequence. Nested sequences are flattened, and a sequence of one statement is that statement.
    pub fn seq(stmts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            match stmt.kind {
                StmtKind::Seq(inner) => flat.extend(inner.iter().cloned()),
                _ => flat.push(stmt),
            }
        }
        match flat.pop() {
            Some(only) if flat.is_empty() => only,
            last => {
                flat.extend(last);
                Self::new(StmtKind::Seq(flat.into()))
            }
        }
    }

    /// Returns the statements directly inside this one, in program order.
    pub fn children(&self) -> Parts<'_, Self> {
        match &self.kind {
            StmtKind::For(inner) => Parts::one(&inner.body),
            StmtKind::Allocate { body, .. }
            | StmtKind::DeclBuffer { body, .. }
            | StmtKind::Let { body, .. }
            | StmtKind::Attr { body, .. }
            | StmtKind::If { then_body: body, else_body: None, .. } => Parts::one(body),
            StmtKind::If { then_body, else_body: Some(else_body), .. } => Parts::two(then_body, else_body),
            StmtKind::Seq(stmts) => Parts::list(stmts),
            StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => {
                Parts::none()
            }
        }
    }

    /// Returns the expressions directly inside this statement, in evaluation order. Shapes, strides and offsets of
    /// declared buffers are not included.
    pub fn exprs(&self) -> Parts<'_, Expr> {
        match &self.kind {
            StmtKind::For(inner) => Parts::two(&inner.min, &inner.extent),
            StmtKind::Store { indices, value, .. } => Parts::list(indices).then(value),
            StmtKind::If { cond: expr, .. }
            | StmtKind::Assert { cond: expr, .. }
            | StmtKind::Let { value: expr, .. }
            | StmtKind::Evaluate(expr) => Parts::one(expr),
            StmtKind::Allocate { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Seq(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. } => Parts::none(),
        }
    }

    /// Returns whether this statement or one inside it is under an attribute with this key.
    pub fn has_attribute(&self, key: &str) -> bool {
        let mut found = false;
        self.walk(&mut |part| found |= matches!(&part.kind, StmtKind::Attr { key: other, .. } if other == key));
        found
    }

    /// Calls `visit` on this statement and on every statement inside it, outer before inner, in program order.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// Returns every buffer that is declared, allocated or accessed in the statement once, in program order.
    pub fn buffers(&self) -> Vec<Buffer> {
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        let mut add = |buffer: &Buffer| {
            if known.insert(buffer.clone()) {
                found.push(buffer.clone());
            }
        };
        self.walk(&mut |stmt| {
            match &stmt.kind {
                StmtKind::Allocate { buffer, .. }
                | StmtKind::DeclBuffer { buffer, .. }
                | StmtKind::Store { buffer, .. } => add(buffer),
                StmtKind::For(_)
                | StmtKind::If { .. }
                | StmtKind::Let { .. }
                | StmtKind::Seq(_)
                | StmtKind::Evaluate(_)
                | StmtKind::Barrier
                | StmtKind::Attr { .. }
                | StmtKind::Assert { .. } => {}
            }
            for expr in stmt.exprs() {
                expr.walk(&mut |expr| {
                    if let Expr::Load { buffer, .. } = expr {
                        add(buffer);
                    }
                });
            }
        });
        found
    }
}
