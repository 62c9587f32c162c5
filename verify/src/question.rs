//! Stating goals and having them proved.
//!
//! A [`Question`] collects premises. Each goal is handed to a strategy, which is not believed: its fact goes through the
//! [door], which compares it with the goal and its premises.

use std::sync::{Arc, OnceLock};

use tilewright_ir::{Expr, Var};

use crate::door::{self, Grounds};
use crate::goal::{Goal, INDEX, Kind, Origin, Premise};
use crate::kernel::{Consistency, Context, Fact, Failure, Step};
use crate::lemmas::Lemma;
use crate::record::Record;
use crate::term::{Prop, Symbol, Term};
use crate::translate::Names;
use tilewright_kernel::strategy::Strategy;

/// Premises, and the strategy that proves goals from them.
#[derive(Debug)]
pub struct Question {
    /// All premises, in the order in which they were stated.
    premises: Vec<Premise>,
    /// Whether the caller's premises can hold together, once that was asked. Shared with forks that add none of them.
    is_possible: Arc<OnceLock<Result<Consistency, Failure>>>,
    /// Finds the proofs.
    strategy: Box<dyn Strategy>,
    /// Whether goals are proved over bit-vectors.
    in_bits: bool,
    /// Present if proofs are kept for a certificate.
    record: Option<Record>,
}

impl Question {
    /// Nothing is assumed yet.
    pub(crate) fn new(strategy: Box<dyn Strategy>, in_bits: bool, record: Option<Record>) -> Self {
        Self { premises: Vec::new(), is_possible: Arc::default(), strategy, in_bits, record }
    }

    /// The same premises, to which more can be added.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            premises: self.premises.clone(),
            is_possible: Arc::clone(&self.is_possible),
            strategy: self.strategy.fork(),
            in_bits: self.in_bits,
            record: self.record.as_ref().map(|record| record.after(self.context().steps())),
        }
    }

    /// The proof so far.
    pub fn context(&self) -> &Context {
        self.strategy.context()
    }

    /// Declares a variable: what its kind says of its values becomes premises. Returns its term.
    pub fn declare(&mut self, names: &mut Names, var: &Var, kind: Kind<'_>) -> Term {
        let term = names.var(var);
        if matches!(kind, Kind::Index { .. }) {
            self.index(term.free_symbols());
        }
        let (reason, origin) = kind.reason();
        self.suppose(&kind.range(var, &term, names), reason, origin);
        term
    }

    /// States a premise that holds where the goals are asked.
    pub fn assume(&mut self, prop: &Prop, reason: &str) {
        self.suppose(prop, reason, Origin::Way);
    }

    /// States a premise that the caller guarantees.
    pub fn guaranteed(&mut self, prop: &Prop, reason: &str) {
        self.suppose(prop, reason, Origin::Caller);
    }

    /// States a premise of some origin; each conjunct becomes one.
    fn suppose(&mut self, prop: &Prop, reason: &str, origin: Origin) {
        if origin == Origin::Caller {
            self.is_possible = Arc::default();
        }
        for prop in prop.conjuncts() {
            if prop.as_bool() != Some(true) {
                self.premises.push(Premise { prop: prop.clone(), origin });
                self.strategy.assume(prop, reason);
            }
        }
    }

    /// States that each pair is equal: what the strategy makes of it are facts.
    pub fn assume_equal(&mut self, pairs: &[(Term, Term)], reason: &str) {
        for (one, two) in pairs {
            self.assume(&one.equals(two), reason);
        }
        self.equated(pairs);
    }

    /// Tells the strategy of pairs that are equal by premises.
    pub(crate) fn equated(&mut self, pairs: &[(Term, Term)]) {
        self.strategy.equated(pairs);
    }

    /// Tells the strategy of symbols that are indices of no loop.
    pub(crate) fn index(&mut self, symbols: impl IntoIterator<Item = Symbol>) {
        self.strategy.index(symbols.into_iter().collect());
    }

    /// Tells the strategy that a premise bounds a product, and so perhaps a factor of it.
    pub(crate) fn bounds_factor(&mut self, goal: &Prop, size: &Term, factor: &Term) {
        self.strategy.bounds_factor(goal, size, factor);
    }

    /// Has a goal proved.
    ///
    /// # Errors
    /// It is refuted by a model that was evaluated, or not proved; or the strategy returned what is no proof of it.
    pub fn settle(&mut self, conclusion: &Prop) -> Result<Grounds, Failure> {
        let fact =
            if self.in_bits { self.strategy.prove_in_bits(conclusion)? } else { self.strategy.prove(conclusion)? };
        self.shown(conclusion, &fact)
    }

    /// Settles an instance of a lemma, the hypotheses of which follow from these premises.
    ///
    /// # Errors
    /// A hypothesis does not follow, or the lemma is not proved.
    pub(crate) fn lemma(&mut self, lemma: Lemma, values: &[(&str, &Term)], from: &[Prop]) -> Result<Grounds, Failure> {
        let known: Vec<Fact> = from.iter().filter_map(|prop| self.strategy.known(prop)).collect();
        let fact = self.strategy.lemma(lemma, values, &known.iter().collect::<Vec<_>>())?;
        self.shown(&fact.prop().clone(), &fact)
    }

    /// Shows that a product is at least 1, and keeps it for later goals; whether that succeeded.
    pub(crate) fn positive(&mut self, product: &Term) -> bool {
        let found = self.strategy.positive(product).or_else(|| self.strategy.prove(&product.at_least(1)).ok());
        if let Some(fact) = &found {
            self.strategy.keep(fact);
        }
        found.is_some()
    }

    /// What a fact is worth as a proof of a goal.
    fn shown(&self, conclusion: &Prop, fact: &Fact) -> Result<Grounds, Failure> {
        let goal = Goal { premises: &self.premises, conclusion };
        door::follows(&goal, self.context(), fact, self.is_possible())
    }

    /// Whether what the caller guarantees can hold: values for which it does were found.
    pub(crate) fn is_possible(&self) -> Result<Consistency, Failure> {
        let ask = || {
            let caller = self.premises.iter().filter(|premise| premise.origin == Origin::Caller);
            let caller: Vec<Prop> = caller.map(|premise| premise.prop.clone()).collect();
            self.context().can_hold(&caller)
        };
        self.is_possible.get_or_init(ask).clone()
    }

    /// Keeps the proof so far as that of a part of the obligation, if a certificate is recorded.
    pub(crate) fn keep_proof(&self, of: &'static str) {
        if let Some(record) = &self.record {
            record.keep(of, self.context().steps());
        }
    }

    /// The steps of the proof so far.
    pub(crate) fn steps(&self) -> &[Step] {
        self.context().steps()
    }
}

/// Binds `vars` to fresh symbols, states that these are an index of a box, and returns them.
pub(crate) fn index_of(
    vars: &[Var],
    shape: &[Expr],
    question: &mut Question,
    names: &mut Names,
    suffix: &str,
) -> Vec<Term> {
    let terms: Vec<Term> = vars.iter().map(|var| Term::sym(names.fresh(&format!("{}{suffix}", var.name())))).collect();
    for (var, term) in vars.iter().zip(&terms) {
        names.bind(var, term.clone());
    }
    for (term, extent) in terms.iter().zip(shape) {
        question.index(term.free_symbols());
        let extent = names.term(extent);
        question.assume(&term.at_least(0).and(term.less(extent)), INDEX);
    }
    terms
}
