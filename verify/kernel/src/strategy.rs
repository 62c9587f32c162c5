//! The interface of proof search.
//!
//! The judge states goals and has them proved by a [`Strategy`], which it does not know. A strategy can only fail or waste
//! time: what it returns is a [`Fact`] of the kernel, and the judge checks that the fact states the goal and rests on the
//! premises of the goal and on no others.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use crate::facts::{Context, Fact, Failure};
use crate::lemmas::{Lemma, Lemmas};
use crate::term::{Prop, Symbol, Term};

/// Makes strategies.
pub trait Search: Debug + Send + Sync {
    /// A strategy without premises, which proves in this context.
    fn begin(&self, context: Context, lemmas: &Arc<Lemmas>) -> Box<dyn Strategy>;
}

/// Proves goals from premises, and remembers what it has shown.
pub trait Strategy: Debug + Send + Sync {
    /// The proof so far.
    fn context(&self) -> &Context;

    /// A strategy with the same premises and facts, to which more premises can be added.
    fn fork(&self) -> Box<dyn Strategy>;

    /// Declares symbols to be indices (loop variables or axes) rather than extents.
    fn index(&mut self, symbols: BTreeSet<Symbol>);

    /// Adds a premise that is no conjunction.
    fn assume(&mut self, premise: Prop, reason: &str);

    /// Adds a fact of the context, so that later goals may use it.
    fn keep(&mut self, fact: &Fact);

    /// The fact that states `prop`, if it is known.
    fn known(&self, prop: &Prop) -> Option<Fact>;

    /// Says that a premise bounds `size`, a product of which `factor` is a part: `goal` bounds `factor`, and is kept if it
    /// follows.
    fn bounds_factor(&mut self, goal: &Prop, size: &Term, factor: &Term);

    /// Says that these pairs of terms are equal by premises. What follows for the digits of flattened indices is kept.
    fn equated(&mut self, pairs: &[(Term, Term)]);

    /// Proves a goal.
    ///
    /// # Errors
    /// The goal is refuted by a model that was evaluated, or not proved.
    fn prove(&mut self, goal: &Prop) -> Result<Fact, Failure>;

    /// Proves a goal over bit-vectors, from the bounds of its variables.
    ///
    /// # Errors
    /// As [`Strategy::prove`]; also if a variable has no bounds.
    fn prove_in_bits(&mut self, goal: &Prop) -> Result<Fact, Failure>;

    /// `1 <= product`, if it can be shown.
    fn positive(&mut self, product: &Term) -> Option<Fact>;

    /// An instance of a lemma.
    ///
    /// # Errors
    /// A hypothesis does not follow from the facts `using`.
    fn lemma(&mut self, lemma: Lemma, values: &[(&str, &Term)], using: &[&Fact]) -> Result<Fact, Failure>;
}
