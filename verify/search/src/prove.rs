//! Proof strategies for goals about indices. They are untrusted: every fact comes from the kernel.
//!
//! A goal is tried in this order: with the facts about its own symbols; with all linear facts, since Z3 decides linear
//! arithmetic with division by constants; and, if symbolic extents are multiplied, digit by digit with the lemmas of
//! [`tilewright_kernel::lemmas`].
//!
//! ```text
//! 0 <= (n * H + h) * W + w < N * H * W     digits n, h, w in the radices N, H, W: HornerBounds for h, then for w
//! (c // 4 * 4 + c % 4) == c                reduction: both sides are the same polynomial after Euclid
//! ```
//!
//! A fact that was proved may be kept, so that later goals use it. A fork inherits premises, facts and the results of
//! searches, and can be given further premises.
//!
//! A strategy can fail or waste time, but cannot prove a false goal: it never makes a fact by itself.

mod bits;
mod digits;
mod linear;
mod rebuilt;
mod reduce;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use self::linear::{collect_divisions_prop, is_linear_prop};
use crate::numeral::Product;
use tilewright_kernel::facts::{Context, Fact, Failure, Mode};
use tilewright_kernel::lemmas::{Lemma, Lemmas, poly_identity};
use tilewright_kernel::strategy::{Search, Strategy};
use tilewright_kernel::term::{Comparison, Prop, PropKind, Symbol, Term};

/// Makes [`Prover`]s.
#[derive(Clone, Copy, Debug)]
pub struct Strategies;

impl Search for Strategies {
    fn begin(&self, context: Context, lemmas: &Arc<Lemmas>) -> Box<dyn Strategy> {
        Box::new(Prover::new(context, lemmas))
    }
}

/// The facts known so far, with the context that they belong to and the results of searches.
#[derive(Debug)]
pub struct Prover {
    /// The proof so far.
    context: Context,
    /// Facts that goals may use.
    facts: Vec<Known>,
    /// The lemmas.
    lemmas: Arc<Lemmas>,
    /// Symbols that are indices rather than extents.
    indices: BTreeSet<Symbol>,
    /// Bounds of numerals found so far, so that a lower and an upper bound take one search.
    bounds: HashMap<(Term, Option<Term>), Option<Vec<Fact>>>,
    /// Products shown to be at least 1 so far.
    positive: HashMap<Term, Fact>,
    /// Terms reduced so far.
    reduced: HashMap<Term, reduce::Reduced>,
    /// Bit operations whose ranges were looked for.
    with_bits: HashSet<Term>,
}

/// A fact with the properties by which facts are selected, computed once.
#[derive(Clone, Debug)]
struct Known {
    /// The fact.
    fact: Fact,
    /// Its integer variables.
    symbols: BTreeSet<Symbol>,
    /// Whether Z3 decides it as linear arithmetic.
    linear: bool,
    /// Whether it contains bit operations.
    has_bits: bool,
}

impl Known {
    /// The fact with its symbols.
    fn new(fact: Fact) -> Self {
        let (symbols, linear) = (fact.prop().free_symbols(), is_linear_prop(fact.prop()));
        let has_bits = bits::has_bits(fact.prop());
        Self { fact, symbols, linear, has_bits }
    }
}

impl Strategy for Prover {
    fn context(&self) -> &Context {
        &self.context
    }

    fn fork(&self) -> Box<dyn Strategy> {
        Box::new(Self {
            context: self.context.fork(),
            facts: self.facts.clone(),
            lemmas: Arc::clone(&self.lemmas),
            indices: self.indices.clone(),
            bounds: self.bounds.clone(),
            positive: self.positive.clone(),
            reduced: self.reduced.clone(),
            with_bits: self.with_bits.clone(),
        })
    }

    fn index(&mut self, symbols: BTreeSet<Symbol>) {
        self.indices.extend(symbols);
    }

    fn assume(&mut self, premise: Prop, reason: &str) {
        // With the new premise, failed searches may succeed and terms may be reduced further.
        self.bounds.retain(|_, found| found.is_some());
        self.reduced.clear();
        self.with_bits.clear();
        let fact = self.context.assume(premise, reason);
        self.facts.push(Known::new(fact));
    }

    fn keep(&mut self, fact: &Fact) {
        if let Ok(parts) = self.context.split(fact) {
            self.facts.extend(parts.into_iter().map(Known::new));
        }
    }

    fn known(&self, prop: &Prop) -> Option<Fact> {
        self.facts.iter().find(|known| known.fact.prop() == prop).map(|known| known.fact.clone())
    }

    fn bounds_factor(&mut self, goal: &Prop, size: &Term, factor: &Term) {
        let PropKind::Compare(Comparison::Le, _, bound) = goal.kind() else { return };
        let bound = bound.clone();
        let rest = Product::from_term(factor).and_then(|factor| factor.quotient_of(size));
        let shown = rest.and_then(|_| self.at_most(factor, &bound));
        if let Some(fact) = shown {
            self.keep(&fact);
        }
    }

    fn equated(&mut self, pairs: &[(Term, Term)]) {
        let mut digits = Vec::new();
        for (this, other) in pairs {
            if let Some(same) = self.known(&this.equals(other)) {
                digits.extend(self.digits_equal(this, other, &same).unwrap_or_default());
            }
        }
        let mut pairs = pairs.to_vec();
        for fact in &digits {
            if let PropKind::Compare(Comparison::Eq, this, other) = fact.prop().kind() {
                pairs.push((this.clone(), other.clone()));
            }
            self.keep(fact);
        }
        for fact in self.rebuilt(&pairs) {
            self.keep(&fact);
        }
    }

    fn prove(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        let parts = goal.conjuncts();
        let mut shown = Vec::with_capacity(parts.len());
        for part in &parts {
            shown.push(self.prove_one(part)?);
        }
        match shown.as_slice() {
            [only] if only.prop() == goal => Ok(only.clone()),
            parts => self.context.derive(goal.clone(), &parts.iter().collect::<Vec<_>>(), Mode::Abstract),
        }
    }

    fn prove_in_bits(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        let mut shown = Vec::new();
        for part in goal.conjuncts() {
            let near = self.near(&part);
            shown.push(self.context.derive_in_bits(&part, &facts(&near))?);
        }
        match shown.as_slice() {
            [only] if only.prop() == goal => Ok(only.clone()),
            parts => self.context.derive(goal.clone(), &parts.iter().collect::<Vec<_>>(), Mode::Abstract),
        }
    }

    fn positive(&mut self, product: &Term) -> Option<Fact> {
        self.shown_positive(product)
    }

    fn lemma(&mut self, lemma: Lemma, values: &[(&str, &Term)], using: &[&Fact]) -> Result<Fact, Failure> {
        self.lemmas.apply(&mut self.context, lemma, values, using)
    }
}

impl Prover {
    /// A prover without facts.
    pub fn new(context: Context, lemmas: &Arc<Lemmas>) -> Self {
        Self {
            context,
            facts: Vec::new(),
            lemmas: Arc::clone(lemmas),
            indices: BTreeSet::new(),
            bounds: HashMap::new(),
            positive: HashMap::new(),
            reduced: HashMap::new(),
            with_bits: HashSet::new(),
        }
    }

    /// Proves a goal that is not a conjunction.
    fn prove_one(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        if goal.as_bool() == Some(true) {
            return self.context.derive(goal.clone(), &[], Mode::Abstract);
        }
        if let Some(known) = self.known(goal) {
            return Ok(known);
        }
        if let Some(shown) = self.differs_from_zero(goal) {
            return Ok(shown);
        }
        if let PropKind::Compare(Comparison::Eq, lhs, rhs) = goal.kind()
            && let Ok(fact) = poly_identity(&mut self.context, lhs, rhs)
        {
            return Ok(fact);
        }
        // Z3 takes long over bits and integers at once: an equation is reduced first.
        let has_bits = self.learn_bits(goal);
        if has_bits
            && matches!(goal.kind(), PropKind::Compare(Comparison::Eq, ..))
            && let Some(shown) = self.by_reduction(goal).or_else(|| self.over_bit_vectors(goal))
        {
            return Ok(shown);
        }
        let near = self.near(goal);
        let linear_goal = is_linear_prop(goal);
        if linear_goal && near.iter().all(|known| known.linear) {
            let using = facts(&near);
            match self.context.derive(goal.clone(), &using, Mode::Exact) {
                Ok(fact) => return Ok(fact),
                // The kernel has tried all premises before it calls anything refuted.
                Err(failure @ (Failure::Refuted(_) | Failure::Internal(_))) => return Err(failure),
                Err(Failure::NotShown(_) | Failure::Foreign(_)) => {}
            }
        }
        self.prove_nonlinear(goal, &near)
    }

    /// Proves that a product of extents is not 0.
    fn differs_from_zero(&mut self, goal: &Prop) -> Option<Fact> {
        let PropKind::Compare(Comparison::Ne, product, zero) = goal.kind() else { return None };
        let product = product.clone();
        (zero.as_const() == Some(0)).then_some(())?;
        let positive = self.shown_positive(&product)?;
        self.context.derive(goal.clone(), &[&positive], Mode::Abstract).ok()
    }

    /// The facts about symbols that the goal reaches in two steps through linear facts.
    fn near(&self, goal: &Prop) -> Vec<Known> {
        let mut reach = goal.free_symbols();
        for _ in 0..2 {
            for known in self.facts.iter().filter(|known| known.linear) {
                if known.symbols.iter().any(|symbol| reach.contains(symbol)) {
                    reach.extend(known.symbols.iter().cloned());
                }
            }
        }
        self.facts.iter().filter(|known| known.symbols.is_subset(&reach)).cloned().collect()
    }

    /// Proves a goal with products of extents: digit by digit, by reduction, or with facts about its divisions.
    fn prove_nonlinear(&mut self, goal: &Prop, near: &[Known]) -> Result<Fact, Failure> {
        if let Some(result) = self.by_digits(goal) {
            return Ok(result);
        }
        if let Some(result) = self.by_reduction(goal) {
            return Ok(result);
        }
        let divisions = self.division_facts(goal);
        let mut using = facts(near);
        using.extend(&divisions);
        self.context.derive(goal.clone(), &using, Mode::Exact)
    }

    /// Proves a goal about a single digit, on a small budget.
    fn prove_digit(&mut self, goal: &Prop) -> Option<Fact> {
        let near = self.near(goal);
        if !is_linear_prop(goal) {
            let using = facts(&near);
            return self.context.derive(goal.clone(), &using, Mode::Abstract).ok();
        }
        // Facts about bits make Z3 slow, and say nothing of a goal without any.
        let has_bits = bits::has_bits(goal);
        let helps = |known: &&Known| known.linear && (has_bits || !known.has_bits);
        let linear: Vec<&Fact> = near.iter().filter(helps).map(|known| &known.fact).collect();
        self.context.derive(goal.clone(), &linear, Mode::Search).ok()
    }

    /// Instances of lemmas about each division in the goal whose divisor is not a constant.
    fn division_facts(&mut self, goal: &Prop) -> Vec<Fact> {
        // Z3 knows division by constants. By a term it is non-linear, and these instances say in linear terms what is
        // needed: Euclid's identity, the sign, an upper bound, and the quotient if the dividend is a visible multiple
        // plus a digit.
        let mut divisions = Vec::new();
        collect_divisions_prop(goal, &mut divisions);
        let mut found = Vec::new();
        for (a, b) in divisions {
            if b.as_const().is_some() {
                continue;
            }
            let Some(positive) = self.shown_positive(&b) else { continue };
            let values = [("a", &a), ("b", &b)];
            let near = self.near(&a.at_least(0));
            let mut using = facts(&near);
            using.push(&positive);
            for lemma in [Lemma::Euclid, Lemma::DivNonNegative] {
                found.extend(self.lemmas.apply(&mut self.context, lemma, &values, &using));
            }
            if let Some(bound) = self.upper(&a)
                && let Some(product) = Product::from_term(&b)
                && let Some(n) = product.quotient_of(&bound)
            {
                let values = [("a", &a), ("b", &b), ("n", &n)];
                found.extend(self.lemmas.apply(&mut self.context, Lemma::DivBelow, &values, &using));
            }
            if let Some((q, r)) = split_by(&a, &b) {
                let values = [("q", &q), ("r", &r), ("d", &b)];
                let in_range = self.prove_digit(&r.at_least(0).and(r.less(&b)));
                if let Some(in_range) = in_range
                    && let Ok(inverse) =
                        self.lemmas.apply(&mut self.context, Lemma::HornerInverse, &values, &[&in_range])
                {
                    found.push(inverse);
                    found.extend(poly_identity(&mut self.context, &(&q * &b + &r), &a));
                }
            }
        }
        found
    }
}

/// `a` as `q * b + r`, where `q` takes the monomials that `b` divides.
fn split_by(a: &Term, b: &Term) -> Option<(Term, Term)> {
    let product = Product::from_term(b)?;
    let (mut q, mut r) = (Term::int(0), Term::int(0));
    for (powers, coefficient) in tilewright_kernel::poly::Poly::from_term(a)?.powers() {
        let term = powers
            .iter()
            .fold(Term::int(coefficient), |term, (atom, exponent)| (0..*exponent).fold(term, |term, _| term * atom));
        match product.quotient_of(&term) {
            Some(quotient) => q = q + quotient,
            None => r = r + term,
        }
    }
    Some((q, r))
}

/// The bare facts.
fn facts(known: &[Known]) -> Vec<&Fact> {
    known.iter().map(|known| &known.fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_kernel::solver::Solver;

    /// Assumes each conjunct.
    fn assume(prover: &mut Prover, prop: &Prop, reason: &str) {
        for part in prop.conjuncts() {
            prover.assume(part, reason);
        }
    }

    fn symbolic_layout(prover: &mut Prover, suffix: &str) -> Term {
        let [n, h, w, c] = ["n", "h", "w", "c"].map(|name| Term::sym(format!("{name}{suffix}").as_str()));
        let [extent_n, extent_h, extent_w, extent_c] = ["N", "H", "W", "C"].map(Term::sym);
        for (index, extent) in [(&n, &extent_n), (&h, &extent_h), (&w, &extent_w), (&c, &extent_c)] {
            prover.index(index.free_symbols());
            assume(prover, &index.at_least(0).and(index.less(extent)), "domain");
        }
        (((n * extent_c.ceil_div(4) + c.floor_div(4)) * extent_h + h) * extent_w + w) * 4 + c.floor_mod(4)
    }

    fn extents(prover: &mut Prover) {
        for name in ["N", "H", "W", "C"] {
            assume(prover, &Term::sym(name).at_least(1), "extent");
        }
    }

    #[test]
    fn a_symbolic_flat_layout_is_in_bounds_and_no_smaller_one_is() {
        let solver = Solver::new().unwrap();
        let lemmas = Arc::new(Lemmas::new(&solver));
        let mut prover = Prover::new(Context::new(&solver), &lemmas);
        extents(&mut prover);
        let index = symbolic_layout(&mut prover, "");
        let [n, h, w, c] = ["N", "H", "W", "C"].map(Term::sym);
        let size = &n * c.ceil_div(4) * &h * &w * 4;
        prover.prove(&index.at_least(0).and(index.less(&size))).unwrap();
        let too_small = &n * c.floor_div(4) * &h * &w * 4;
        assert!(prover.prove(&index.less(&too_small)).is_err());
        eprintln!("bounds: {:?}", prover.context().elapsed());
    }

    #[test]
    fn equal_flat_indices_have_equal_digits() {
        let solver = Solver::new().unwrap();
        let lemmas = Arc::new(Lemmas::new(&solver));
        let mut prover = Prover::new(Context::new(&solver), &lemmas);
        extents(&mut prover);
        let (this, other) = (symbolic_layout(&mut prover, ""), symbolic_layout(&mut prover, "'"));
        assume(&mut prover, &this.equals(&other), "collision");
        let same = prover.facts.last().cloned().unwrap().fact;
        for fact in prover.digits_equal(&this, &other, &same).unwrap() {
            prover.keep(&fact);
        }
        for name in ["n", "h", "w", "c"] {
            let goal = Term::sym(name).equals(Term::sym(format!("{name}'").as_str()));
            prover.prove(&goal).unwrap();
        }
        eprintln!("injective: {:?}", prover.context().elapsed());
    }

    #[test]
    fn a_flat_index_fits_the_index_type_if_the_buffer_does() {
        let solver = Solver::new().unwrap();
        let lemmas = Arc::new(Lemmas::new(&solver));
        let mut prover = Prover::new(Context::new(&solver), &lemmas);
        extents(&mut prover);
        let index = symbolic_layout(&mut prover, "");
        let [n, h, w, c] = ["N", "H", "W", "C"].map(Term::sym);
        let max = Term::int(i128::from(i32::MAX));
        assert!(prover.prove(&index.at_most(&max)).is_err());
        assume(&mut prover, &(&n * c.ceil_div(4) * &h * &w * 4).at_most(&max), "the buffer is addressable");
        prover.prove(&index.at_most(&max)).unwrap();
        let rows = (Term::sym("n") * c.ceil_div(4) + Term::sym("c").floor_div(4)) * &h + Term::sym("h");
        prover.prove(&rows.at_most(&max)).unwrap();
    }
}
