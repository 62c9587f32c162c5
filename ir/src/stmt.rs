//! Statements.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::diag::Span;
use crate::expr::Expr;
use crate::shared::Parts;
use crate::var::Var;

/// A statement and the place it was read from.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it was written, if it was read from a text.
    pub span: Option<Span>,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Runs `body` for each value from `min` to `min + extent - 1`; an extent of 0 or below runs nothing.
    For(Arc<For>),
    /// Writes `value` to a buffer. Only the last index may have several lanes, see [`Expr::Load`].
    Store {
        /// Which buffer.
        buffer: Buffer,
        /// One index an axis.
        indices: Vec<Expr>,
        /// What to write; as many lanes as the element times the last index.
        value: Expr,
    },
    /// Allocates the memory of `buffer` for the time of `body` (RFC 39, "AllocateNode"). It holds no value at first.
    Allocate {
        /// Whose data variable becomes valid.
        buffer: Buffer,
        /// Where it is valid.
        body: Arc<Stmt>,
    },
    /// Declares a view of an allocation that exists already (RFC 63, "Explicit `DeclBuffer` IR construct").
    DeclBuffer {
        /// The view; its data variable is that of a parameter or an enclosing allocation.
        buffer: Buffer,
        /// Where it is known.
        body: Arc<Stmt>,
    },
    /// Runs `then_body` if `cond` (one lane) is true, else `else_body`.
    If {
        /// A `bool`.
        cond: Expr,
        /// Runs if it is true.
        then_body: Arc<Stmt>,
        /// Runs if it is false.
        else_body: Option<Arc<Stmt>>,
    },
    /// Binds a variable for the time of `body`.
    Let {
        /// The name; its type is the value's.
        var: Var,
        /// Evaluated once, before the body.
        value: Expr,
        /// Where it is known.
        body: Arc<Stmt>,
    },
    /// Runs one after the other; empty does nothing.
    Seq(Arc<[Stmt]>),
    /// Evaluates an expression and drops its value.
    Evaluate(Expr),
    /// A hint on `body` (`T.attr`); it changes no meaning.
    Attr {
        /// What the hint is about.
        node: AttrValue,
        /// Its name.
        key: String,
        /// Its value.
        value: AttrValue,
        /// What it holds for.
        body: Arc<Stmt>,
    },
    /// Traps if `cond` is false. What follows in the same sequence may rely on it.
    Assert {
        /// A `bool`.
        cond: Expr,
        /// Said when it traps.
        message: String,
    },
}

/// A loop.
#[derive(Clone, Debug)]
pub struct For {
    /// The loop variable, an integer of one lane.
    pub var: Var,
    /// First value.
    pub min: Expr,
    /// Number of iterations.
    pub extent: Expr,
    /// How the iterations are run.
    pub kind: ForKind,
    /// Hints that change no meaning, in the order given.
    pub annotations: Vec<(String, AttrValue)>,
    /// What is run.
    pub body: Stmt,
}

/// How the iterations of a loop are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ForKind {
    /// In order.
    Serial,
    /// In any order, at once; the body has no race.
    Parallel,
    /// As lanes of vectors; the body has no race.
    Vectorized,
    /// In order, one copy of the body each.
    Unrolled,
    /// By the threads of a launch; the body has no race.
    ThreadBinding(ThreadTag),
}

/// One axis of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadTag {
    /// Work-group index on axis 0, 1 or 2 (x, y, z).
    Block(u8),
    /// Work-item index within its group on axis 0, 1 or 2 (x, y, z).
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

/// Text that names no launch axis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no thread axis: expected blockIdx.x to .z or threadIdx.x to .z")]
pub struct ThreadTagError(pub String);

impl FromStr for ThreadTag {
    type Err = ThreadTagError;

    fn from_str(text: &str) -> Result<Self, ThreadTagError> {
        let all = (0..3).flat_map(|axis| [Self::Block(axis), Self::Thread(axis)]);
        all.into_iter().find(|tag| tag.to_string() == text).ok_or_else(|| ThreadTagError(text.to_owned()))
    }
}

/// A value of an attribute.
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
    /// An expression that is none of the above.
    Expr(Expr),
    /// A list.
    List(Vec<AttrValue>),
    /// A dictionary in the order given.
    Dict(Vec<(String, AttrValue)>),
}

impl Stmt {
    /// A statement that comes from no text.
    pub fn new(kind: StmtKind) -> Self {
        Self { kind, span: None }
    }

    /// The same statement at a place.
    #[must_use]
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }

    /// A store.
    pub fn store(buffer: &Buffer, indices: Vec<Expr>, value: Expr) -> Self {
        Self::new(StmtKind::Store { buffer: buffer.clone(), indices, value })
    }

    /// A loop from 0 to `extent - 1`.
    pub fn for_loop(var: &Var, extent: Expr, kind: ForKind, body: Self) -> Self {
        let min = Expr::Int { value: 0, ty: var.dtype().scalar };
        let annotations = Vec::new();
        Self::new(StmtKind::For(Arc::new(For { var: var.clone(), min, extent, kind, annotations, body })))
    }

    /// A statement run only if `cond` is true.
    pub fn guarded(cond: Expr, body: Self) -> Self {
        Self::new(StmtKind::If { cond, then_body: Arc::new(body), else_body: None })
    }

    /// A sequence; nested sequences are spliced in, and a single statement stands for itself.
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

    /// The statements directly in it, in order.
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
            StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Assert { .. } => Parts::none(),
        }
    }

    /// The expressions directly in it, in the order of evaluation: shapes of declared buffers are not among them.
    pub fn exprs(&self) -> Parts<'_, Expr> {
        match &self.kind {
            StmtKind::For(inner) => Parts::two(&inner.min, &inner.extent),
            StmtKind::Store { indices, value, .. } => Parts::list(indices).then(value),
            StmtKind::If { cond: expr, .. }
            | StmtKind::Assert { cond: expr, .. }
            | StmtKind::Let { value: expr, .. }
            | StmtKind::Evaluate(expr) => Parts::one(expr),
            StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::Seq(_) | StmtKind::Attr { .. } => {
                Parts::none()
            }
        }
    }

    /// Calls `visit` on this statement and every one in it, outer before inner, in program order.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }
}
