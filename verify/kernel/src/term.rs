//! Integer terms and propositions, free of any solver and of the language they came from.
//!
//! A [`Term`] denotes an integer of unbounded size, a [`Prop`] a truth value. Both are immutable trees behind an `Arc`
//! that store their hash, so cloning is free and comparing is cheap. Constructors fold constants and drop neutral elements,
//! and simplify nothing else: a term prints as it was built.
//!
//! ```
//! use tilewright_kernel::term::Term;
//! let (n, c) = (Term::sym("n"), Term::sym("c"));
//! let index = &n * 4 + c.floor_mod(4);
//! assert_eq!(index.to_string(), "n * 4 + c % 4");
//! assert_eq!(index.less(&n + 1).to_string(), "n * 4 + c % 4 < n + 1");
//! ```
//!
//! # Semantics
//!
//! | operator | meaning | undefined |
//! |---|---|---|
//! | `+ - *`, `min max abs` | over the integers | never |
//! | `//`, `%` | quotient rounded towards minus infinity; the remainder has the divisor's sign | divisor 0 |
//! | `truncdiv`, `truncmod` | quotient rounded towards zero (C); the remainder has the dividend's sign | divisor 0 |
//! | `& \| ^ ~` | two's complement with infinitely many sign bits | never |
//! | `a << k`, `a >> k` | `a * 2^k` and `a // 2^k` | negative `k` |
//! | `f(x, ...)` | an uninterpreted function: equal arguments give equal values, nothing else is known | never |
//!
//! An undefined term denotes an unspecified integer, so nothing can be proved about its value; evaluation reports an error.
//! An uninterpreted function stands for a load or a floating-point operation: any countable set of values (the bit
//! patterns of a float) embeds into the integers, so a proof over integers holds for it, as long as only equality is used.
//!
//! Functions here recurse: a term may be a few thousand levels deep, which a chain of that many operators would need.
//! Evaluation visits a shared subterm as often as it occurs, everything else once.

mod build;
mod display;
mod eval;
mod walk;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

pub use eval::{Assignment, EvalError, Value};
pub use walk::Substitution;

/// The name of a free variable or of an uninterpreted function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// The symbol with this name; equal names are equal symbols.
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Symbol {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// An integer operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnaryOp {
    /// `-a`
    Neg,
    /// `abs(a)`
    Abs,
    /// `~a`, which is `-a - 1`
    Not,
}

/// An integer operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a // b`, rounded towards minus infinity
    FloorDiv,
    /// `a % b = a - b * (a // b)`
    FloorMod,
    /// `truncdiv(a, b)`, rounded towards zero
    TruncDiv,
    /// `truncmod(a, b) = a - b * truncdiv(a, b)`
    TruncMod,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
    /// `a << b = a * 2^b`
    Shl,
    /// `a >> b = a // 2^b`
    Shr,
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
}

/// The parts of a term.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TermKind {
    /// A constant.
    Const(i128),
    /// A free variable.
    Sym(Symbol),
    /// An operator with one operand.
    Unary(UnaryOp, Term),
    /// An operator with two operands.
    Binary(BinaryOp, Term, Term),
    /// `then if condition else otherwise`
    Ite(Prop, Term, Term),
    /// An uninterpreted function of its arguments.
    App(Symbol, Vec<Term>),
}

/// The parts of a proposition.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PropKind {
    /// True or false.
    Bool(bool),
    /// A boolean variable.
    Sym(Symbol),
    /// A comparison.
    Compare(Comparison, Term, Term),
    /// Negation.
    Not(Prop),
    /// Conjunction of two or more.
    And(Vec<Prop>),
    /// Disjunction of two or more.
    Or(Vec<Prop>),
    /// Implication.
    Implies(Prop, Prop),
    /// Equivalence.
    Iff(Prop, Prop),
}

/// A shared node and its hash, which is computed once.
#[derive(Debug)]
struct Node<K> {
    hash: u64,
    kind: K,
}

/// A new shared node.
fn node<K: Hash>(kind: K) -> Arc<Node<K>> {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    Arc::new(Node { hash: hasher.finish(), kind })
}

/// An integer-valued term; see the [module page](self).
#[derive(Clone)]
pub struct Term(Arc<Node<TermKind>>);

/// A truth-valued term; see the [module page](self).
#[derive(Clone)]
pub struct Prop(Arc<Node<PropKind>>);

macro_rules! shared_node {
    ($name:ident, $kind:ident) => {
        impl $name {
            /// A node as it is given; nothing is folded.
            fn new(kind: $kind) -> Self {
                Self(node(kind))
            }

            /// The parts of the node.
            pub fn kind(&self) -> &$kind {
                &self.0.kind
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.kind == other.0.kind)
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u64(self.0.hash);
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                if Arc::ptr_eq(&self.0, &other.0) {
                    return Ordering::Equal;
                }
                self.0.kind.cmp(&other.0.kind)
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

shared_node!(Term, TermKind);
shared_node!(Prop, PropKind);
