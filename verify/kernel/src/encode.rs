//! Encoding of goals as queries in the language of SMT-LIB, which the printer and Z3 share.
//!
//! A query asks whether the assumptions and the *negation* of the goal can hold together; `unsat` proves the goal. Variables
//! are numbered in the order of first appearance, so goals that differ in names only give the same text.
//!
//! [`Encoding::Abstract`] replaces every division, remainder and bit operation by an uninterpreted function. This is cheap,
//! and a generalisation: `unsat` still proves the goal, while a model means nothing. [`Encoding::Opaque`] also replaces
//! products of two variables, which is cheaper still. [`Encoding::Exact`] states the meaning of all operators:
//!
//! | term | exact encoding |
//! |---|---|
//! | `a // k`, `a % k`, `k > 0` | `(div a k)`, `(mod a k)`: SMT-LIB divides Euclidean, which is floor for `k > 0` |
//! | `a // -k`, `a % -k` | `(div (- a) k)`, `(- (mod (- a) k))` |
//! | `truncdiv`, `truncmod` by a constant | the sign taken apart |
//! | division by a term `b` | fresh `q`, `r`, one pair for each `(a, b)`, defined where `b > 0` or `b < 0`; nothing is said where `b = 0` |
//! | bit operation with a constant | sums of `div` and `mod` by powers of two, exact for all integers |
//! | bit operation on two terms | bits up to a width taken from the constants of the query; above it only `x & 0 = 0` and `x & -1 = x` |
//! | shift by a term | a case for each amount below 64; nothing is said beyond |
//!
//! [`Encoding::Bits`] states the same over bit-vectors, where nothing can wrap (`bits`): for maps that move and mix bits.
//!
//! The last two over-approximate: a model that does not replay under evaluation shows nothing.
//!
//! ```text
//! i >= 0, i < 17   |-   i // 4 < 5        (assert (<= 0 v0))  (assert (< v0 17))  (assert (not (< (div v0 4) 5)))
//! ```

pub mod bits;
mod exact;

use crate::term::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind, UnaryOp};
use std::collections::{BTreeMap, HashMap};
use tilewright_ir::sabotage;

/// How much a query states about division and bit operations; see the [module documentation](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// Nothing, and nothing about products of two variables either: linear arithmetic decides what is left.
    Opaque,
    /// Nothing: they are uninterpreted functions.
    Abstract,
    /// Everything.
    Exact,
    /// Everything, over bit-vectors of this width, at which nothing can wrap: see [`bits::width`].
    Bits(u32),
}

/// Why a query cannot be stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// One name stands for an integer and for a truth value.
    #[error("`{0}` is used both as an integer and as a truth value")]
    SortClash(Symbol),
    /// Something may wrap at that width, or cannot be stated over bit-vectors.
    #[error("the goal cannot be stated over {0} bits")]
    Bits(u32),
    /// The query has too many nodes.
    #[error("the goal has more than {0} nodes")]
    TooLarge(usize),
}

/// The most nodes a query may have.
pub const MAX_NODES: usize = 200_000;

/// The position of a node in [`Query::nodes`]; operands come before what uses them.
pub type NodeId = usize;

/// Integer or truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// An integer; in a query with a width a bit-vector of that width, in two's complement.
    Int,
    /// A truth value.
    Bool,
}

/// The operators of the query language; they mean what SMT-LIB says. The last five are of bit-vectors alone; in a query with
/// a width `Div` and `Mod` are unsigned, comparisons and `Shr` signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is SMT-LIB's operator of that name")]
pub enum Op {
    Add,
    Sub,
    Mul,
    Neg,
    Div,
    Mod,
    Ite,
    Eq,
    Lt,
    Le,
    Not,
    And,
    Or,
    Implies,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

/// A node of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// An integer constant.
    Int(i128),
    /// A truth value.
    Bool(bool),
    /// The variable at this position of [`Query::variables`].
    Var(usize),
    /// The function at this position of [`Query::functions`], applied.
    Apply(usize, Vec<NodeId>),
    /// An operator, applied.
    Op(Op, Vec<NodeId>),
}

/// A variable of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its canonical name.
    pub name: String,
    /// Its sort.
    pub sort: Sort,
    /// The symbol in the goal; `None` if the encoding introduced the variable.
    pub symbol: Option<Symbol>,
}

/// An uninterpreted function of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its canonical name.
    pub name: String,
    /// The number of its arguments.
    pub arity: usize,
    /// The operator, or the function of the program, that it stands for.
    pub meaning: String,
}

/// A query: the assertions contradict each other if and only if the goal follows (see [`Encoding`] for "only if").
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// All nodes, operands first.
    pub nodes: Vec<Node>,
    /// The sort of each node.
    pub sorts: Vec<Sort>,
    /// The variables.
    pub variables: Vec<Variable>,
    /// The functions.
    pub functions: Vec<Function>,
    /// The nodes that are asserted: assumptions, definitions, and the negated goal last.
    pub assertions: Vec<NodeId>,
    /// The width of all integers, if they are bit-vectors.
    pub width: Option<u32>,
    /// Whether a bit operation is over-approximated, so that a model need not be one of the goal.
    pub approximate: bool,
}

/// States that `goal` follows from `assumptions`.
///
/// # Errors
/// The query has more than [`MAX_NODES`] nodes, one name has two sorts, or something may wrap at the width asked for.
pub fn encode(assumptions: &[Prop], goal: &Prop, encoding: Encoding) -> Result<Query, EncodeError> {
    if let Encoding::Bits(width) = encoding
        && bits::width(assumptions, goal).is_none_or(|needed| needed > width)
    {
        return Err(EncodeError::Bits(width));
    }
    let mut encoder = Encoder::new(encoding, exact::bit_width(assumptions, goal));
    for assumption in assumptions {
        let node = encoder.prop(assumption)?;
        encoder.query.assertions.push(node);
    }
    let node = encoder.prop(goal)?;
    let negated = encoder.op(Op::Not, vec![node]);
    encoder.query.assertions.append(&mut encoder.definitions);
    encoder.query.assertions.push(negated);
    Ok(encoder.query)
}

/// Builds a query. Equal nodes, terms and propositions are encoded once.
struct Encoder {
    /// The query built so far.
    query: Query,
    /// How much is stated about divisions and bit operations.
    encoding: Encoding,
    /// The position of each node.
    interned: HashMap<Node, NodeId>,
    /// The node of each term encoded so far.
    terms: HashMap<Term, NodeId>,
    /// The node of each proposition encoded so far.
    props: HashMap<Prop, NodeId>,
    /// The variable of each symbol.
    symbols: BTreeMap<Symbol, NodeId>,
    /// By whether it stands for an operator, its name and the number of its arguments.
    functions: BTreeMap<(bool, String, usize), usize>,
    /// Definitions of the variables that the encoding introduces.
    definitions: Vec<NodeId>,
    /// Variables that exact encodings introduced.
    exact: exact::Tables,
}

impl Encoder {
    /// An empty query.
    fn new(encoding: Encoding, bit_width: u32) -> Self {
        Self {
            query: Query {
                width: if let Encoding::Bits(width) = encoding { Some(width) } else { None },
                ..Query::default()
            },
            encoding,
            interned: HashMap::new(),
            terms: HashMap::new(),
            props: HashMap::new(),
            symbols: BTreeMap::new(),
            functions: BTreeMap::new(),
            definitions: Vec::new(),
            exact: exact::Tables::new(bit_width),
        }
    }

    /// The id of a node, shared with an equal one.
    fn intern(&mut self, node: Node, sort: Sort) -> NodeId {
        if let Some(&id) = self.interned.get(&node) {
            return id;
        }
        let id = self.query.nodes.len();
        self.query.nodes.push(node.clone());
        self.query.sorts.push(sort);
        self.interned.insert(node, id);
        id
    }

    /// An integer constant.
    fn int(&mut self, value: i128) -> NodeId {
        self.intern(Node::Int(value), Sort::Int)
    }

    /// An operator on nodes.
    fn op(&mut self, op: Op, operands: Vec<NodeId>) -> NodeId {
        let sort = match op {
            Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Div | Op::Mod => Sort::Int,
            Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => Sort::Int,
            Op::Ite => operands.get(1).map_or(Sort::Int, |then| self.query.sorts[*then]),
            Op::Eq | Op::Lt | Op::Le | Op::Not | Op::And | Op::Or | Op::Implies => Sort::Bool,
        };
        self.intern(Node::Op(op, operands), sort)
    }

    /// A new variable; the name is the prefix and a number.
    fn variable(&mut self, prefix: &str, sort: Sort, symbol: Option<Symbol>) -> NodeId {
        let position = self.query.variables.len();
        self.query.variables.push(Variable { name: format!("{prefix}{position}"), sort, symbol });
        self.intern(Node::Var(position), sort)
    }

    /// The variable of a symbol. Fails if the symbol is used with both sorts.
    fn symbol(&mut self, symbol: &Symbol, sort: Sort) -> Result<NodeId, EncodeError> {
        if let Some(&id) = self.symbols.get(symbol) {
            let same = self.query.sorts[id] == sort;
            return if same { Ok(id) } else { Err(EncodeError::SortClash(symbol.clone())) };
        }
        let prefix = if sort == Sort::Int { "v" } else { "p" };
        let id = self.variable(prefix, sort, Some(symbol.clone()));
        self.symbols.insert(symbol.clone(), id);
        Ok(id)
    }

    /// The function `meaning`; operators keep their names, the program's functions are numbered.
    fn apply(&mut self, meaning: &str, operator: bool, args: Vec<NodeId>) -> NodeId {
        let key = (operator, meaning.to_owned(), args.len());
        let next = self.query.functions.len();
        let function = *self.functions.entry(key).or_insert(next);
        if function == next {
            let name = if operator { meaning.to_owned() } else { format!("f{next}") };
            let meaning = meaning.to_owned();
            self.query.functions.push(Function { name, arity: args.len(), meaning });
        }
        self.intern(Node::Apply(function, args), Sort::Int)
    }

    /// Encodes a term.
    fn term(&mut self, term: &Term) -> Result<NodeId, EncodeError> {
        if let Some(&id) = self.terms.get(term) {
            return Ok(id);
        }
        // Checked at every term, because the exact encoding of one operator may add hundreds of nodes.
        if self.query.nodes.len() > MAX_NODES {
            return Err(EncodeError::TooLarge(MAX_NODES));
        }
        let id = match term.kind() {
            TermKind::Const(value) => self.int(*value),
            TermKind::Sym(symbol) => self.symbol(symbol, Sort::Int)?,
            TermKind::Unary(op, a) => {
                let a = self.term(a)?;
                self.unary(*op, a)
            }
            TermKind::Binary(op, a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                self.binary(*op, a, b)
            }
            TermKind::Ite(condition, a, b) => {
                let operands = vec![self.prop(condition)?, self.term(a)?, self.term(b)?];
                self.op(Op::Ite, operands)
            }
            TermKind::App(name, args) => {
                let args = args.iter().map(|arg| self.term(arg)).collect::<Result<_, _>>()?;
                self.apply(name.name(), false, args)
            }
        };
        self.terms.insert(term.clone(), id);
        Ok(id)
    }

    /// Encodes an operator with one operand.
    fn unary(&mut self, op: UnaryOp, a: NodeId) -> NodeId {
        match op {
            UnaryOp::Neg => self.op(Op::Neg, vec![a]),
            UnaryOp::Not => {
                let minus_one = self.int(-1);
                self.op(Op::Sub, vec![minus_one, a])
            }
            UnaryOp::Abs => {
                let zero = self.int(0);
                let negative = self.op(Op::Lt, vec![a, zero]);
                let negated = self.op(Op::Neg, vec![a]);
                self.op(Op::Ite, vec![negative, negated, a])
            }
        }
    }

    /// Encodes an operator with two operands.
    fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        match op {
            BinaryOp::Add => self.op(Op::Add, vec![a, b]),
            BinaryOp::Sub => self.op(Op::Sub, vec![a, b]),
            BinaryOp::Mul if self.encoding == Encoding::Opaque && !self.is_const(a) && !self.is_const(b) => {
                self.apply("mul", true, vec![a, b])
            }
            BinaryOp::Mul => self.op(Op::Mul, vec![a, b]),
            BinaryOp::Min | BinaryOp::Max => {
                let smaller = self.op(Op::Le, vec![a, b]);
                let (then, otherwise) = if op == BinaryOp::Min { (a, b) } else { (b, a) };
                self.op(Op::Ite, vec![smaller, then, otherwise])
            }
            BinaryOp::FloorDiv => self.hard(op, "floordiv", a, b),
            BinaryOp::FloorMod => self.hard(op, "floormod", a, b),
            BinaryOp::TruncDiv => self.hard(op, "truncdiv", a, b),
            BinaryOp::TruncMod => self.hard(op, "truncmod", a, b),
            BinaryOp::BitAnd => self.hard(op, "bitand", a, b),
            BinaryOp::BitOr => self.hard(op, "bitor", a, b),
            BinaryOp::BitXor => self.hard(op, "bitxor", a, b),
            BinaryOp::Shl => self.hard(op, "shl", a, b),
            BinaryOp::Shr => self.hard(op, "shr", a, b),
        }
    }

    /// Whether a node is an integer constant.
    fn is_const(&self, node: NodeId) -> bool {
        matches!(self.query.nodes.get(node), Some(Node::Int(_)))
    }

    /// Encodes a division or bit operation, as a function or with its meaning.
    fn hard(&mut self, op: BinaryOp, name: &str, a: NodeId, b: NodeId) -> NodeId {
        match self.encoding {
            Encoding::Opaque | Encoding::Abstract => self.apply(name, true, vec![a, b]),
            Encoding::Exact => self.exact_binary(op, a, b),
            Encoding::Bits(_) => self.bits_binary(op, a, b),
        }
    }

    /// Encodes a proposition.
    fn prop(&mut self, prop: &Prop) -> Result<NodeId, EncodeError> {
        if let Some(&id) = self.props.get(prop) {
            return Ok(id);
        }
        // Shared parts are encoded once: a query written out as a tree would be exponentially large for nested
        // equivalences.
        let id = match prop.kind() {
            PropKind::Bool(value) => self.intern(Node::Bool(*value), Sort::Bool),
            PropKind::Sym(symbol) => self.symbol(symbol, Sort::Bool)?,
            PropKind::Compare(comparison, a, b) => {
                let mut operands = vec![self.term(a)?, self.term(b)?];
                if *comparison == Comparison::Eq && sabotage::on("encode-swaps-equality") {
                    operands.reverse();
                }
                match comparison {
                    Comparison::Eq => self.op(Op::Eq, operands),
                    Comparison::Lt => self.op(Op::Lt, operands),
                    Comparison::Le => self.op(Op::Le, operands),
                    Comparison::Ne => {
                        let equal = self.op(Op::Eq, operands);
                        if sabotage::on("encode-ne-as-eq") { equal } else { self.op(Op::Not, vec![equal]) }
                    }
                }
            }
            PropKind::Not(inner) => self.connective(Op::Not, [inner])?,
            PropKind::And(parts) => self.connective(Op::And, parts)?,
            PropKind::Or(parts) => self.connective(Op::Or, parts)?,
            PropKind::Implies(a, b) => self.connective(Op::Implies, [a, b])?,
            PropKind::Iff(a, b) => self.connective(Op::Eq, [a, b])?,
        };
        self.props.insert(prop.clone(), id);
        Ok(id)
    }

    /// Encodes a connective.
    fn connective<'p>(&mut self, op: Op, parts: impl IntoIterator<Item = &'p Prop>) -> Result<NodeId, EncodeError> {
        let parts = parts.into_iter().map(|part| self.prop(part)).collect::<Result<_, _>>()?;
        Ok(self.op(op, parts))
    }
}
