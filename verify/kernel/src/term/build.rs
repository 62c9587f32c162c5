//! Constructors. They fold constants (with checked arithmetic: what leaves `i128` stays unfolded) and neutral elements.
//!
//! ```
//! use tilewright_kernel::term::Term;
//! let x = Term::sym("x");
//! assert_eq!((&x * 1 + 0).to_string(), "x");
//! assert_eq!((Term::int(7).floor_div(-2)).to_string(), "-4");
//! assert_eq!((&x + &x).to_string(), "x + x");
//! ```

use super::eval::{apply_binary, apply_unary, compare};
use super::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind, UnaryOp};
use std::ops;

impl Term {
    /// The constant `value`.
    pub fn int(value: i128) -> Self {
        Self::new(TermKind::Const(value))
    }

    /// The free integer variable called `name`.
    pub fn sym(name: impl Into<Symbol>) -> Self {
        Self::new(TermKind::Sym(name.into()))
    }

    /// The uninterpreted function `name` of `args`.
    pub fn app(name: impl Into<Symbol>, args: impl IntoIterator<Item = Term>) -> Self {
        Self::new(TermKind::App(name.into(), args.into_iter().collect()))
    }

    /// `op(operand)`
    pub fn unary(op: UnaryOp, operand: impl Into<Term>) -> Self {
        let operand = operand.into();
        if let Some(value) = operand.as_const().and_then(|a| apply_unary(op, a).ok()) {
            return Self::int(value);
        }
        Self::new(TermKind::Unary(op, operand))
    }

    /// `op(lhs, rhs)`
    pub fn binary(op: BinaryOp, lhs: impl Into<Term>, rhs: impl Into<Term>) -> Self {
        let (lhs, rhs) = (lhs.into(), rhs.into());
        let folded = match (lhs.as_const(), rhs.as_const()) {
            (Some(a), Some(b)) => apply_binary(op, a, b).ok().map(Self::int),
            (Some(a), None) => left_neutral(op, a, &rhs),
            (None, Some(b)) => right_neutral(op, &lhs, b),
            (None, None) => None,
        };
        folded.unwrap_or_else(|| Self::new(TermKind::Binary(op, lhs, rhs)))
    }

    /// `then if condition else otherwise`
    pub fn ite(condition: &Prop, then: impl Into<Term>, otherwise: impl Into<Term>) -> Self {
        let (then, otherwise) = (then.into(), otherwise.into());
        match condition.kind() {
            PropKind::Bool(true) => then,
            PropKind::Bool(false) => otherwise,
            _ if then == otherwise => then,
            _ => Self::new(TermKind::Ite(condition.clone(), then, otherwise)),
        }
    }

    /// Its value if it is a constant.
    pub fn as_const(&self) -> Option<i128> {
        match self.kind() {
            TermKind::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// `abs(self)`
    #[must_use]
    pub fn abs(&self) -> Self {
        Self::unary(UnaryOp::Abs, self)
    }

    /// `ceil(self / divisor)` in the form `(self + (divisor - 1)) // divisor`; for positive divisors.
    #[must_use]
    pub fn ceil_div(&self, divisor: impl Into<Term>) -> Self {
        let divisor = divisor.into();
        (self + (&divisor - 1)).floor_div(divisor)
    }

    /// A comparison, folded if both sides are constants or the same term.
    pub fn compare(&self, comparison: Comparison, rhs: Term) -> Prop {
        let decided = match (self.as_const(), rhs.as_const()) {
            (Some(a), Some(b)) => Some(compare(comparison, a, b)),
            _ if *self == rhs => Some(matches!(comparison, Comparison::Eq | Comparison::Le)),
            _ => None,
        };
        match decided {
            Some(value) => Prop::bool(value),
            None => Prop::new(PropKind::Compare(comparison, self.clone(), rhs)),
        }
    }

    /// `self == rhs`
    pub fn equals(&self, rhs: impl Into<Term>) -> Prop {
        self.compare(Comparison::Eq, rhs.into())
    }

    /// `self != rhs`
    pub fn differs(&self, rhs: impl Into<Term>) -> Prop {
        self.compare(Comparison::Ne, rhs.into())
    }

    /// `self < rhs`
    pub fn less(&self, rhs: impl Into<Term>) -> Prop {
        self.compare(Comparison::Lt, rhs.into())
    }

    /// `self <= rhs`
    pub fn at_most(&self, rhs: impl Into<Term>) -> Prop {
        self.compare(Comparison::Le, rhs.into())
    }

    /// `self > rhs`, as `rhs < self`
    pub fn more(&self, rhs: impl Into<Term>) -> Prop {
        rhs.into().compare(Comparison::Lt, self.clone())
    }

    /// `self >= rhs`, as `rhs <= self`
    pub fn at_least(&self, rhs: impl Into<Term>) -> Prop {
        rhs.into().compare(Comparison::Le, self.clone())
    }
}

/// `a op rhs` if the constant `a` makes it the other operand or a constant.
fn left_neutral(op: BinaryOp, a: i128, rhs: &Term) -> Option<Term> {
    match (op, a) {
        (BinaryOp::Add, 0) | (BinaryOp::Mul, 1) => Some(rhs.clone()),
        (BinaryOp::Mul, 0) => Some(Term::int(0)),
        _ => None,
    }
}

/// `lhs op b` if the constant `b` makes it the other operand or a constant.
fn right_neutral(op: BinaryOp, lhs: &Term, b: i128) -> Option<Term> {
    match (op, b) {
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr, 0)
        | (BinaryOp::Mul | BinaryOp::FloorDiv | BinaryOp::TruncDiv, 1) => Some(lhs.clone()),
        (BinaryOp::Mul, 0) | (BinaryOp::FloorMod | BinaryOp::TruncMod, 1) => Some(Term::int(0)),
        _ => None,
    }
}

macro_rules! named_binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Term {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(&self, rhs: impl Into<Term>) -> Self {
                Self::binary(BinaryOp::$op, self, rhs)
            })*
        }
    };
}

named_binary! {
    /// `self // rhs`, rounded towards minus infinity
    floor_div => FloorDiv;
    /// `self % rhs`, the remainder of `//`
    floor_mod => FloorMod;
    /// `truncdiv(self, rhs)`, rounded towards zero
    trunc_div => TruncDiv;
    /// `truncmod(self, rhs)`, the remainder of `truncdiv`
    trunc_mod => TruncMod;
    /// `min(self, rhs)`
    minimum => Min;
    /// `max(self, rhs)`
    maximum => Max;
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<T: Into<Term>> ops::$trait<T> for Term {
            type Output = Term;
            fn $method(self, rhs: T) -> Term {
                Term::binary(BinaryOp::$op, self, rhs)
            }
        }
        impl<T: Into<Term>> ops::$trait<T> for &Term {
            type Output = Term;
            fn $method(self, rhs: T) -> Term {
                Term::binary(BinaryOp::$op, self, rhs)
            }
        }
    )*};
}

operator! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    BitAnd bitand BitAnd;
    BitOr bitor BitOr;
    BitXor bitxor BitXor;
    Shl shl Shl;
    Shr shr Shr;
}

impl ops::Neg for Term {
    type Output = Term;
    fn neg(self) -> Term {
        Term::unary(UnaryOp::Neg, self)
    }
}

impl ops::Not for Term {
    type Output = Term;
    fn not(self) -> Term {
        Term::unary(UnaryOp::Not, self)
    }
}

impl From<&Term> for Term {
    fn from(term: &Term) -> Self {
        term.clone()
    }
}

impl From<i32> for Term {
    fn from(value: i32) -> Self {
        Term::int(i128::from(value))
    }
}

impl From<i64> for Term {
    fn from(value: i64) -> Self {
        Term::int(i128::from(value))
    }
}

impl From<i128> for Term {
    fn from(value: i128) -> Self {
        Term::int(value)
    }
}

impl From<&Prop> for Prop {
    fn from(prop: &Prop) -> Self {
        prop.clone()
    }
}

impl Prop {
    /// True or false.
    pub fn bool(value: bool) -> Self {
        Self::new(PropKind::Bool(value))
    }

    /// The boolean variable called `name`.
    pub fn sym(name: impl Into<Symbol>) -> Self {
        Self::new(PropKind::Sym(name.into()))
    }

    /// Its value if it is a constant.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind() {
            PropKind::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The conjunction; nested conjunctions are flattened.
    pub fn all(parts: impl IntoIterator<Item = Prop>) -> Self {
        Self::junction(parts, true)
    }

    /// The disjunction; nested disjunctions are flattened.
    pub fn any(parts: impl IntoIterator<Item = Prop>) -> Self {
        Self::junction(parts, false)
    }

    /// A conjunction or a disjunction, flattened, without neutral elements.
    fn junction(parts: impl IntoIterator<Item = Prop>, conjunction: bool) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part.kind() {
                PropKind::Bool(value) if *value == conjunction => {}
                PropKind::Bool(value) => return Self::bool(*value),
                PropKind::And(inner) if conjunction => flat.extend(inner.iter().cloned()),
                PropKind::Or(inner) if !conjunction => flat.extend(inner.iter().cloned()),
                _ => flat.push(part),
            }
        }
        match (flat.pop(), flat.is_empty()) {
            (None, _) => Self::bool(conjunction),
            (Some(only), true) => only,
            (Some(last), false) => {
                flat.push(last);
                Self::new(if conjunction { PropKind::And(flat) } else { PropKind::Or(flat) })
            }
        }
    }

    /// `self and other`
    #[must_use]
    pub fn and(&self, other: impl Into<Prop>) -> Self {
        Self::all([self.clone(), other.into()])
    }

    /// `self or other`
    #[must_use]
    pub fn or(&self, other: impl Into<Prop>) -> Self {
        Self::any([self.clone(), other.into()])
    }

    /// `not self`
    #[must_use]
    pub fn negate(&self) -> Self {
        match self.kind() {
            PropKind::Bool(value) => Self::bool(!value),
            PropKind::Not(inner) => inner.clone(),
            _ => Self::new(PropKind::Not(self.clone())),
        }
    }

    /// An equivalent proposition with negations at the leaves only: `not (a <= b or c == d)` becomes `b < a and c != d`.
    #[must_use]
    pub fn with_negations_inside(&self) -> Self {
        match self.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) | PropKind::Compare(..) => self.clone(),
            PropKind::Not(inner) => inner.negation_inside(),
            PropKind::And(parts) => Self::all(parts.iter().map(Self::with_negations_inside)),
            PropKind::Or(parts) => Self::any(parts.iter().map(Self::with_negations_inside)),
            PropKind::Implies(a, b) => a.negation_inside().or(b.with_negations_inside()),
            PropKind::Iff(a, b) => {
                let (a, b) = (a.with_negations_inside(), b.with_negations_inside());
                let (not_a, not_b) = (a.negation_inside(), b.negation_inside());
                a.and(b).or(not_a.and(not_b))
            }
        }
    }

    /// `not self`, with negations at the leaves only.
    fn negation_inside(&self) -> Self {
        match self.kind() {
            PropKind::Bool(value) => Self::bool(!value),
            PropKind::Sym(_) => self.negate(),
            PropKind::Compare(comparison, a, b) => match comparison {
                Comparison::Eq => a.differs(b),
                Comparison::Ne => a.equals(b),
                Comparison::Lt => b.at_most(a),
                Comparison::Le => b.less(a),
            },
            PropKind::Not(inner) => inner.with_negations_inside(),
            PropKind::And(parts) => Self::any(parts.iter().map(Self::negation_inside)),
            PropKind::Or(parts) => Self::all(parts.iter().map(Self::negation_inside)),
            PropKind::Implies(a, b) => a.with_negations_inside().and(b.negation_inside()),
            PropKind::Iff(a, b) => {
                let (a, b) = (a.with_negations_inside(), b.with_negations_inside());
                let (not_a, not_b) = (a.negation_inside(), b.negation_inside());
                a.and(not_b).or(not_a.and(b))
            }
        }
    }

    /// `self implies conclusion`
    #[must_use]
    pub fn implies(&self, conclusion: impl Into<Prop>) -> Self {
        let conclusion = conclusion.into();
        match (self.as_bool(), conclusion.as_bool()) {
            (Some(false), _) | (_, Some(true)) => Self::bool(true),
            (Some(true), _) => conclusion,
            (_, Some(false)) => self.negate(),
            (None, None) => Self::new(PropKind::Implies(self.clone(), conclusion)),
        }
    }

    /// `self if and only if other`
    #[must_use]
    pub fn iff(&self, other: impl Into<Prop>) -> Self {
        let other = other.into();
        match (self.as_bool(), other.as_bool()) {
            (Some(true), _) => other,
            (Some(false), _) => other.negate(),
            (_, Some(true)) => self.clone(),
            (_, Some(false)) => self.negate(),
            (None, None) => Self::new(PropKind::Iff(self.clone(), other)),
        }
    }

    /// Its conjuncts: the parts of a conjunction, nothing for `true`, else itself.
    pub fn conjuncts(&self) -> Vec<Prop> {
        match self.kind() {
            PropKind::And(parts) => parts.clone(),
            PropKind::Bool(true) => Vec::new(),
            _ => vec![self.clone()],
        }
    }
}
