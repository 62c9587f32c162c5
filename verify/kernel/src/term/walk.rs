//! Substitution and free variables. Both visit a shared subterm once.
//!
//! Terms are graphs: without a record of what was visited, a chain of `x = x + x` would take exponential time.

use super::{Prop, PropKind, Symbol, Term, TermKind};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A simultaneous substitution of terms for integer variables.
///
/// ```
/// use tilewright_kernel::term::{Substitution, Term};
/// let (x, y) = (Term::sym("x"), Term::sym("y"));
/// let swap = Substitution::new([("x", &y), ("y", &x)]);
/// assert_eq!(swap.term(&(&x - &y)), &y - &x);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Substitution(BTreeMap<Symbol, Term>);

impl Substitution {
    /// The substitution of each term for its variable; variables not named stay.
    pub fn new<S: Into<Symbol>, T: Into<Term>>(pairs: impl IntoIterator<Item = (S, T)>) -> Self {
        Self(pairs.into_iter().map(|(symbol, term)| (symbol.into(), term.into())).collect())
    }

    /// The variables replaced and their terms, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&Symbol, &Term)> {
        self.0.iter()
    }

    /// `term` with the variables replaced.
    pub fn term(&self, term: &Term) -> Term {
        Walk { map: &self.0, done: HashMap::new() }.term(term)
    }

    /// `prop` with the variables replaced.
    pub fn prop(&self, prop: &Prop) -> Prop {
        Walk { map: &self.0, done: HashMap::new() }.prop(prop)
    }
}

/// A substitution under way, with the results for shared subterms.
struct Walk<'a> {
    /// The terms of the variables.
    map: &'a BTreeMap<Symbol, Term>,
    /// The results so far.
    done: HashMap<Term, Term>,
}

impl Walk<'_> {
    fn term(&mut self, term: &Term) -> Term {
        match term.kind() {
            // Leaves are looked up directly; recording them would cost more than the lookup saves.
            TermKind::Const(_) => return term.clone(),
            TermKind::Sym(symbol) => return self.map.get(symbol).unwrap_or(term).clone(),
            _ => {}
        }
        if let Some(done) = self.done.get(term) {
            return done.clone();
        }
        let result = match term.kind() {
            TermKind::Const(_) | TermKind::Sym(_) => term.clone(),
            TermKind::Unary(op, operand) => Term::unary(*op, self.term(operand)),
            TermKind::Binary(op, lhs, rhs) => Term::binary(*op, self.term(lhs), self.term(rhs)),
            TermKind::Ite(condition, then, otherwise) => {
                Term::ite(&self.prop(condition), self.term(then), self.term(otherwise))
            }
            TermKind::App(name, args) => {
                Term::app(name.clone(), args.iter().map(|arg| self.term(arg)).collect::<Vec<_>>())
            }
        };
        self.done.insert(term.clone(), result.clone());
        result
    }

    fn prop(&mut self, prop: &Prop) -> Prop {
        use super::Comparison::{Eq, Le, Lt, Ne};
        match prop.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) => prop.clone(),
            PropKind::Compare(op, lhs, rhs) => {
                let (lhs, rhs) = (self.term(lhs), self.term(rhs));
                match op {
                    Eq => lhs.equals(rhs),
                    Ne => lhs.differs(rhs),
                    Lt => lhs.less(rhs),
                    Le => lhs.at_most(rhs),
                }
            }
            PropKind::Not(inner) => self.prop(inner).negate(),
            PropKind::And(parts) => Prop::all(self.props(parts)),
            PropKind::Or(parts) => Prop::any(self.props(parts)),
            PropKind::Implies(premise, conclusion) => self.prop(premise).implies(self.prop(conclusion)),
            PropKind::Iff(lhs, rhs) => self.prop(lhs).iff(self.prop(rhs)),
        }
    }

    fn props(&mut self, props: &[Prop]) -> Vec<Prop> {
        props.iter().map(|prop| self.prop(prop)).collect()
    }
}

/// The variables and functions in a term or proposition.
#[derive(Default)]
struct Mentions {
    /// Integer variables.
    integers: BTreeSet<Symbol>,
    /// Boolean variables.
    booleans: BTreeSet<Symbol>,
    /// Whether an uninterpreted function occurs.
    applications: bool,
    /// Terms visited so far.
    seen: HashSet<Term>,
}

impl Mentions {
    fn term(&mut self, term: &Term) {
        // A shared subterm is visited once, so the walk is linear in the size of the graph and not of the tree.
        if !self.seen.insert(term.clone()) {
            return;
        }
        match term.kind() {
            TermKind::Const(_) => {}
            TermKind::Sym(symbol) => {
                self.integers.insert(symbol.clone());
            }
            TermKind::Unary(_, operand) => self.term(operand),
            TermKind::Binary(_, lhs, rhs) => {
                self.term(lhs);
                self.term(rhs);
            }
            TermKind::Ite(condition, then, otherwise) => {
                self.prop(condition);
                self.term(then);
                self.term(otherwise);
            }
            TermKind::App(_, args) => {
                self.applications = true;
                for arg in args {
                    self.term(arg);
                }
            }
        }
    }

    fn prop(&mut self, prop: &Prop) {
        match prop.kind() {
            PropKind::Bool(_) => {}
            PropKind::Sym(symbol) => {
                self.booleans.insert(symbol.clone());
            }
            PropKind::Compare(_, lhs, rhs) => {
                self.term(lhs);
                self.term(rhs);
            }
            PropKind::Not(inner) => self.prop(inner),
            PropKind::And(parts) | PropKind::Or(parts) => parts.iter().for_each(|part| self.prop(part)),
            PropKind::Implies(lhs, rhs) | PropKind::Iff(lhs, rhs) => {
                self.prop(lhs);
                self.prop(rhs);
            }
        }
    }
}

impl Term {
    /// Its free integer variables, in the order of their names.
    pub fn free_symbols(&self) -> BTreeSet<Symbol> {
        let mut mentions = Mentions::default();
        mentions.term(self);
        mentions.integers
    }
}

impl Prop {
    /// Its free integer variables, in the order of their names.
    pub fn free_symbols(&self) -> BTreeSet<Symbol> {
        self.mentions().integers
    }

    /// Its boolean variables, in the order of their names.
    pub fn free_booleans(&self) -> BTreeSet<Symbol> {
        self.mentions().booleans
    }

    /// Whether an uninterpreted function occurs.
    pub fn has_applications(&self) -> bool {
        self.mentions().applications
    }

    /// Everything that the proposition mentions.
    fn mentions(&self) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.prop(self);
        mentions
    }
}
