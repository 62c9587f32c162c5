//! The nodes of the tree. Plain data, a span on each.

use tilewright_ir::Span;

/// A file.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Its statements, in order.
    pub body: Vec<Stmt>,
}

/// A statement and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `import module as name`, `from package import item as name`: pairs of the name bound and the dotted path.
    Import(Vec<(String, String)>),
    /// `def name(...): ...`.
    Def(Function),
    /// `return value`.
    Return(Option<Expr>),
    /// `target = ... = value`, targets from left to right.
    Assign {
        /// At least one.
        targets: Vec<Target>,
        /// Evaluated first.
        value: Expr,
    },
    /// `target op= value` of a name.
    AugAssign {
        /// The name, its place being the target's.
        target: Target,
        /// The operator.
        op: BinaryOp,
        /// The right operand.
        value: Expr,
    },
    /// An expression for its effect.
    Expr(Expr),
    /// `if test: ... else: ...`; `elif` is an `if` in the `else`.
    If {
        /// The condition.
        test: Expr,
        /// Runs if it holds.
        then_body: Vec<Stmt>,
        /// Runs if it does not.
        else_body: Vec<Stmt>,
    },
    /// `for target in iter: ...`.
    For {
        /// Bound to each element.
        target: Target,
        /// What is iterated over.
        iter: Expr,
        /// What is run.
        body: Vec<Stmt>,
    },
    /// `pass`.
    Pass,
    /// `break`.
    Break,
    /// `continue`.
    Continue,
}

/// What is assigned to, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// A name or several.
    pub kind: TargetKind,
    /// Where it stands.
    pub span: Span,
}

/// A name or several.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetKind {
    /// `x`.
    Name(String),
    /// `x, (y, z)`.
    Tuple(Vec<Target>),
}

/// A function or a lambda; the body of a lambda is one `return`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// `<lambda>` for a lambda.
    pub name: String,
    /// Positional parameters.
    pub params: Vec<Parameter>,
    /// `*name`.
    pub var_args: Option<String>,
    /// What it does.
    pub body: Vec<Stmt>,
    /// Where it stands.
    pub span: Span,
}

/// A parameter and its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Evaluated where the function is defined.
    pub default: Option<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// An expression and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(String),
    /// An integer literal.
    Int(i64),
    /// A float literal.
    Float(f64),
    /// A string literal.
    Str(String),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// `...`.
    Ellipsis,
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `(a, b)` and `a, b`.
    Tuple(Vec<Expr>),
    /// `{a: b}`.
    Dict(Vec<(Expr, Expr)>),
    /// `lower:upper:step`, in a subscript.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// `value[index]`.
    Subscript(Box<Expr>, Box<Expr>),
    /// `value.name`.
    Attribute(Box<Expr>, String),
    /// `func(args, key=value)`.
    Call {
        /// What is called.
        func: Box<Expr>,
        /// Positional arguments.
        args: Vec<Argument>,
        /// Keyword arguments.
        keywords: Vec<Keyword>,
    },
    /// `lambda ...: value`.
    Lambda(Box<Function>),
    /// `a op b`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `op a`.
    Unary(UnaryOp, Box<Expr>),
    /// `a < b <= c`.
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    /// `a and b and c`.
    Logic(LogicOp, Vec<Expr>),
    /// `then if test else other`: test, then, other.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[item for target in iter if test]`.
    ListComp {
        /// Evaluated for each element.
        item: Box<Expr>,
        /// The `for` clauses, outermost first: target, iterable, conditions.
        clauses: Vec<(Target, Expr, Vec<Expr>)>,
    },
}

/// A positional argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its value.
    pub value: Expr,
    /// Whether it is spread: `*value`.
    pub star: bool,
}

/// A keyword argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyword {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Expr,
    /// Where name and value stand.
    pub span: Span,
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `//`
    FloorDiv,
    /// `%`
    Mod,
    /// `**`
    Pow,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `+`
    Plus,
    /// `not`
    Not,
    /// `~`
    Invert,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `is`
    Is,
    /// `is not`
    IsNot,
    /// `in`
    In,
    /// `not in`
    NotIn,
}

/// `and` and `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicOp {
    /// `and`
    And,
    /// `or`
    Or,
}
