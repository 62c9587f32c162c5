//! The syntax tree of the TE dialect: plain data with a source location on every node.

use tilewright_ir::Span;

/// The statements of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// The statements, in order.
    pub body: Vec<Stmt>,
}

/// A statement and its source location.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The kind of statement, with its operands.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `import module as name`, `from package import item as name`: pairs of the name bound and the dotted path.
    Import(Vec<(String, String)>),
    /// `def name(...): ...`.
    Def(Function),
    /// A function or a module in TVMScript, by its name: `@T.prim_func def name(...)`, `@I.ir_module class name`.
    Script(String),
    /// `return value`.
    Return(Option<Expr>),
    /// `target = ... = value`, targets from left to right.
    Assign {
        /// The targets; at least one.
        targets: Vec<Target>,
        /// The value, evaluated before the targets.
        value: Expr,
    },
    /// `target op= value` of a name.
    AugAssign {
        /// The target, always a name.
        target: Target,
        /// The operator.
        op: BinaryOp,
        /// The right operand.
        value: Expr,
    },
    /// An expression statement, evaluated for its effect.
    Expr(Expr),
    /// `if test: ... else: ...`; `elif` is an `if` in the `else`.
    If {
        /// The condition.
        test: Expr,
        /// Runs if the condition is true.
        then_body: Vec<Stmt>,
        /// Runs if the condition is false.
        else_body: Vec<Stmt>,
    },
    /// `for target in iter: ...`.
    For {
        /// Bound to each element.
        target: Target,
        /// The value to iterate over.
        iter: Expr,
        /// The body.
        body: Vec<Stmt>,
    },
    /// `pass`.
    Pass,
    /// `break`.
    Break,
    /// `continue`.
    Continue,
}

/// The target of an assignment, and its source location.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// A name, or a tuple of targets.
    pub kind: TargetKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of assignment targets.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetKind {
    /// `x`.
    Name(String),
    /// `x, (y, z)`.
    Tuple(Vec<Target>),
}

/// A function or a lambda. The body of a lambda is a single `return`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name; `<lambda>` for a lambda.
    pub name: String,
    /// The positional parameters.
    pub params: Vec<Parameter>,
    /// The name of the `*name` parameter.
    pub var_args: Option<String>,
    /// The statements of the body.
    pub body: Vec<Stmt>,
    /// Where it stands.
    pub span: Span,
}

/// A parameter and its default value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The default value, evaluated when the function is defined.
    pub default: Option<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// An expression and its source location.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of expression, with its operands.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of expressions.
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
    /// `*items`, in a list or a tuple.
    Starred(Box<Expr>),
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
        /// The callee.
        func: Box<Expr>,
        /// The positional arguments.
        args: Vec<Argument>,
        /// The keyword arguments.
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
    /// `then if test else other`, as test, then, other.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[item for target in iter if test]`.
    ListComp {
        /// The element, evaluated once for each combination of the clauses' values.
        item: Box<Expr>,
        /// The `for` clauses, outermost first: target, iterable and conditions.
        clauses: Vec<(Target, Expr, Vec<Expr>)>,
    },
}

/// A positional argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The value.
    pub value: Expr,
    /// Whether the value is unpacked: `*value`.
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

/// Operators with two operands.
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

/// Operators with one operand.
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

/// Comparison operators.
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

/// Operators that evaluate their second operand only if needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicOp {
    /// `and`
    And,
    /// `or`
    Or,
}
