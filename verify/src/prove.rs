//! Strategies: how a goal about indices is led to the kernel. Nothing here is trusted.
//!
//! A goal is tried in this order: with the facts about its own symbols, with all linear facts (Z3 decides linear
//! arithmetic with division by constants), and, where symbolic extents are multiplied, digit by digit with the lemmas of
//! [`crate::lemmas`].

use std::collections::BTreeSet;

use crate::kernel::{Context, Fact, Failure, Mode};
use crate::lemmas::{Lemma, Lemmas, poly_identity};
use crate::numeral::{Numeral, Product, numeral};
use crate::term::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind};

/// What is known, and what it was built from.
#[derive(Debug)]
pub struct Prover<'a> {
    context: Context,
    facts: Vec<Fact>,
    lemmas: &'a Lemmas,
    indices: BTreeSet<Symbol>,
}

impl<'a> Prover<'a> {
    /// Knows nothing yet.
    pub fn new(context: Context, lemmas: &'a Lemmas) -> Self {
        Self { context, facts: Vec::new(), lemmas, indices: BTreeSet::new() }
    }

    /// One with the same premises and facts, which may have more.
    #[must_use]
    pub fn fork(&self) -> Self {
        let context = self.context.fork();
        Self { context, facts: self.facts.clone(), lemmas: self.lemmas, indices: self.indices.clone() }
    }

    /// The proof so far.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Says that a symbol is an index (a loop variable or an axis), not an extent.
    pub fn index(&mut self, symbols: impl IntoIterator<Item = Symbol>) {
        self.indices.extend(symbols);
    }

    /// Assumes a premise; conjuncts are kept apart.
    pub fn assume(&mut self, prop: &Prop, reason: &str) {
        for part in prop.conjuncts() {
            if part.as_bool() != Some(true) {
                let fact = self.context.assume(part, reason);
                self.facts.push(fact);
            }
        }
    }

    /// The fact that states `prop`, if it is known.
    pub fn known(&self, prop: &Prop) -> Option<Fact> {
        self.facts.iter().find(|fact| fact.prop() == prop).cloned()
    }

    /// Keeps `goal` as a fact if it follows from a bound on `size`, a product of which `factor` is a part.
    pub fn keep_if_implied(&mut self, goal: &Prop, size: &Term, factor: &Term) {
        let PropKind::Compare(Comparison::Le, _, bound) = goal.kind() else { return };
        let bound = bound.clone();
        let rest = Product::of(factor).and_then(|factor| factor.divides(size));
        let shown = rest.and_then(|_| self.at_most(factor, &bound));
        if let Some(fact) = shown {
            self.keep(&fact);
        }
    }

    /// Adds a fact that was established, so that later goals may use it.
    pub fn keep(&mut self, fact: &Fact) {
        if let Ok(parts) = self.context.split(fact) {
            self.facts.extend(parts);
        }
    }

    /// Shows a goal, conjunct by conjunct.
    pub fn prove(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        let parts = goal.conjuncts();
        if parts.len() == 1 {
            return self.prove_one(goal);
        }
        let mut shown = Vec::new();
        for part in &parts {
            shown.push(self.prove_one(part)?);
        }
        self.context.join(&shown.iter().collect::<Vec<_>>())
    }

    fn prove_one(&mut self, goal: &Prop) -> Result<Fact, Failure> {
        if goal.as_bool() == Some(true) {
            return self.context.derive(goal.clone(), &[], Mode::Abstract);
        }
        if let PropKind::Compare(Comparison::Eq, lhs, rhs) = goal.kind()
            && let Ok(fact) = poly_identity(&mut self.context, lhs, rhs)
        {
            return Ok(fact);
        }
        let near = self.near(goal);
        let linear_goal = is_linear_prop(goal);
        if linear_goal && near.iter().all(|fact| is_linear_prop(fact.prop())) {
            let using: Vec<&Fact> = near.iter().collect();
            match self.context.derive(goal.clone(), &using, Mode::Exact) {
                Ok(fact) => return Ok(fact),
                // The kernel has tried all premises before it calls anything refuted.
                Err(failure @ (Failure::Refuted(_) | Failure::Internal(_))) => return Err(failure),
                Err(Failure::NotShown(_) | Failure::Foreign(_)) => {}
            }
        }
        self.prove_nonlinear(goal, &near)
    }

    /// The facts that share symbols with the goal, and those that share symbols with them.
    fn near(&self, goal: &Prop) -> Vec<Fact> {
        let mut reach = goal.free_symbols();
        for _ in 0..2 {
            for fact in &self.facts {
                let symbols = fact.prop().free_symbols();
                if symbols.iter().any(|symbol| reach.contains(symbol)) && is_linear_prop(fact.prop()) {
                    reach.extend(symbols);
                }
            }
        }
        let touches =
            |fact: &&Fact| fact.prop().free_symbols().is_subset(&reach) || fact.prop().as_bool() == Some(false);
        self.facts.iter().filter(touches).cloned().collect()
    }

    fn prove_nonlinear(&mut self, goal: &Prop, near: &[Fact]) -> Result<Fact, Failure> {
        if let Some(result) = self.by_digits(goal) {
            return Ok(result);
        }
        let mut facts: Vec<Fact> = near.to_vec();
        facts.extend(self.division_facts(goal));
        let using: Vec<&Fact> = facts.iter().collect();
        self.context.derive(goal.clone(), &using, Mode::Exact)
    }

    /// Bounds of a flattened index, digit by digit.
    fn by_digits(&mut self, goal: &Prop) -> Option<Fact> {
        let PropKind::Compare(comparison, lhs, rhs) = goal.kind() else { return None };
        let (index, extent) = match comparison {
            Comparison::Lt => (lhs.clone(), rhs.clone()),
            Comparison::Le if lhs.as_const() == Some(0) => (rhs.clone(), Term::int(0)),
            Comparison::Le => (lhs.clone(), rhs + 1),
            Comparison::Eq | Comparison::Ne => return None,
        };
        let bounds = self.numeral_bounds(&index, (extent.as_const() != Some(0)).then_some(&extent))?;
        let using: Vec<&Fact> = bounds.iter().collect();
        self.context.derive(goal.clone(), &using, Mode::Abstract).ok()
    }

    /// `0 <= index < extent` as a numeral, with the facts that lead there. Without an extent, the least bound found.
    pub fn numeral_bounds(&mut self, index: &Term, extent: Option<&Term>) -> Option<Vec<Fact>> {
        let indices = self.indices.clone();
        let mut found = numeral(index, &|symbol| indices.contains(symbol))?;
        let mut position = 1;
        let mut digits = Vec::new();
        // Digits that do not fit their radix are merged with the one above.
        while position < found.digits.len() {
            let (digit, radix) = (found.digits[position].clone(), found.radices[position - 1].clone());
            let in_range = digit.at_least(0).and(digit.less(&radix));
            if let Some(fact) = self.prove_digit(&in_range) {
                digits.push(fact);
                position += 1;
            } else {
                found = found.merged(position);
                position = 1;
                digits.clear();
            }
        }
        self.horner(index, extent, &found, &digits)
    }

    fn prove_digit(&mut self, goal: &Prop) -> Option<Fact> {
        let near = self.near(goal);
        if !is_linear_prop(goal) {
            let using: Vec<&Fact> = near.iter().collect();
            return self.context.derive(goal.clone(), &using, Mode::Abstract).ok();
        }
        let linear: Vec<&Fact> = near.iter().filter(|fact| is_linear_prop(fact.prop())).collect();
        self.context.derive(goal.clone(), &linear, Mode::Exact).ok()
    }

    fn horner(&mut self, index: &Term, extent: Option<&Term>, found: &Numeral, digits: &[Fact]) -> Option<Vec<Fact>> {
        let top = found.digits.first()?.clone();
        let place = found.top.term() * found.unit.term();
        let bound = match extent {
            Some(extent) => Product::of(&place)?.divides(extent),
            None => None,
        };
        let bound = bound.or_else(|| self.upper(&top))?;
        let mut known = self.prove_digit(&top.at_least(0).and(top.less(&bound)))?;
        let (mut value, mut limit) = (top, bound);
        let units = (found.unit.term().as_const() != Some(1)).then(|| (found.unit.term(), Term::int(0)));
        let places = found.radices.iter().cloned().zip(found.digits[1..].iter().cloned()).chain(units);
        for (position, (radix, digit)) in places.enumerate() {
            let mut using = vec![known.clone()];
            match digits.get(position) {
                Some(fact) => using.push(fact.clone()),
                // The unit: a last digit of 0 in a radix of at least 1.
                None => using.push(self.positive(&radix)?),
            }
            let using: Vec<&Fact> = using.iter().collect();
            known = self.lemmas.horner_bounds(&mut self.context, [&value, &limit], [&digit, &radix], &using).ok()?;
            (value, limit) = (value * &radix + &digit, limit * &radix);
        }
        let mut facts = vec![poly_identity(&mut self.context, &value, index).ok()?, known];
        if let Some(extent) = extent {
            match poly_identity(&mut self.context, &limit, extent) {
                Ok(same) => facts.push(same),
                Err(_) => facts.push(self.at_most(&limit, extent)?),
            }
        }
        Some(facts)
    }

    /// `limit <= extent` where the limit is a factor of a known bound: what remains is at least 1.
    fn at_most(&mut self, limit: &Term, extent: &Term) -> Option<Fact> {
        let goal = limit.at_most(extent);
        let candidates: Vec<(Fact, Term)> = self.facts.iter().filter_map(|fact| capacity(fact, extent)).collect();
        for (fact, size) in candidates {
            let (Some(whole), Some(part)) = (Product::of(&size), Product::of(limit)) else { continue };
            let Some(rest) = whole.divide(&part) else { continue };
            let rest = rest.term();
            let Some(positive) = self.positive(&rest) else { continue };
            let Some(not_negative) = self.not_negative(limit) else { continue };
            let one = Term::int(1);
            let using = [&positive, &not_negative];
            let Ok(grows) = self.lemmas.monotone(&mut self.context, limit, [&one, &rest], &using) else { continue };
            let Ok(same) = poly_identity(&mut self.context, &(limit * &rest), &size) else { continue };
            if let Ok(shown) = self.context.derive(goal.clone(), &[&grows, &same, &fact], Mode::Abstract) {
                return Some(shown);
            }
        }
        let near = self.near(&goal);
        let using: Vec<&Fact> = near.iter().collect();
        self.context.derive(goal, &using, Mode::Abstract).ok()
    }

    /// `1 <= product`, factor by factor.
    pub fn positive(&mut self, product: &Term) -> Option<Fact> {
        let factors = Product::of(product)?.factors();
        let mut known: Option<(Term, Fact)> = None;
        for factor in factors {
            let fact = self.prove_digit(&factor.more(0))?;
            known = Some(match known {
                None => (factor, fact),
                Some((so_far, before)) => {
                    let values = [("a", &so_far), ("b", &factor)];
                    let both = self.lemmas.apply(&mut self.context, Lemma::ProductPositive, &values, &[&before, &fact]);
                    (&so_far * &factor, both.ok()?)
                }
            });
        }
        let goal = product.at_least(1);
        match known {
            None => self.context.derive(goal, &[], Mode::Abstract).ok(),
            Some((nested, fact)) => {
                let same = poly_identity(&mut self.context, &nested, product).ok()?;
                self.context.derive(goal, &[&fact, &same], Mode::Abstract).ok()
            }
        }
    }

    fn not_negative(&mut self, product: &Term) -> Option<Fact> {
        let positive = self.positive(product)?;
        self.context.derive(product.at_least(0), &[&positive], Mode::Abstract).ok()
    }

    /// A bound of a digit, read off the facts.
    fn upper(&self, digit: &Term) -> Option<Term> {
        match digit.kind() {
            TermKind::Const(value) => Some(Term::int(value.checked_add(1)?)),
            TermKind::Binary(BinaryOp::FloorMod, _, divisor) => Some(divisor.clone()),
            TermKind::Binary(BinaryOp::FloorDiv, a, divisor) => {
                Some(self.stated(digit).unwrap_or(self.upper(a)?.ceil_div(divisor)))
            }
            TermKind::Binary(BinaryOp::Add, a, b) => match (a.as_const(), b.as_const()) {
                (Some(k), _) => Some(self.upper(b)? + k),
                (_, Some(k)) => Some(self.upper(a)? + k),
                _ => Some(self.upper(a)? + self.upper(b)? - 1),
            },
            TermKind::Binary(BinaryOp::Mul, a, b) => match (a.as_const(), b.as_const()) {
                (Some(k), _) if k > 0 => Some((self.upper(b)? - 1) * k + 1),
                (_, Some(k)) if k > 0 => Some((self.upper(a)? - 1) * k + 1),
                _ => None,
            },
            _ => self.stated(digit),
        }
    }

    /// `n` where `digit < n` is a fact.
    fn stated(&self, digit: &Term) -> Option<Term> {
        self.facts.iter().find_map(|fact| match fact.prop().kind() {
            PropKind::Compare(Comparison::Lt, lhs, rhs) if lhs == digit => Some(rhs.clone()),
            _ => None,
        })
    }

    /// Lemmas about each division in the goal by something that is no constant.
    fn division_facts(&mut self, goal: &Prop) -> Vec<Fact> {
        let mut divisions = Vec::new();
        collect_divisions_prop(goal, &mut divisions);
        let mut found = Vec::new();
        for (a, b) in divisions {
            if b.as_const().is_some() {
                continue;
            }
            let Some(positive) = self.positive(&b) else { continue };
            let values = [("a", &a), ("b", &b)];
            let near = self.near(&a.at_least(0));
            let mut using: Vec<&Fact> = near.iter().collect();
            using.push(&positive);
            for lemma in [Lemma::Euclid, Lemma::DivNonNegative] {
                found.extend(self.lemmas.apply(&mut self.context, lemma, &values, &using));
            }
            if let Some(bound) = self.upper(&a)
                && let Some(product) = Product::of(&b)
                && let Some(n) = product.divides(&bound)
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

    /// From the equality of two numerals: that their digits are pairwise equal. `other` is `this` in other index symbols.
    pub fn digits_equal(&mut self, this: &Term, other: &Term, same: &Fact) -> Option<Vec<Fact>> {
        let indices = self.indices.clone();
        let is_index = |symbol: &Symbol| indices.contains(symbol);
        let (mut left, mut right) = (numeral(this, &is_index)?, numeral(other, &is_index)?);
        if left.radices != right.radices || left.unit != right.unit {
            return None;
        }
        let mut position = 1;
        let mut ranges = Vec::new();
        while position < left.digits.len() {
            let radix = left.radices[position - 1].clone();
            let pair = [&left.digits[position], &right.digits[position]];
            let in_range = pair.map(|digit| digit.at_least(0).and(digit.less(&radix)));
            if let (Some(first), Some(second)) = (self.prove_digit(&in_range[0]), self.prove_digit(&in_range[1])) {
                ranges.push([first, second]);
                position += 1;
            } else {
                (left, right) = (left.merged(position), right.merged(position));
                position = 1;
                ranges.clear();
            }
        }
        self.peel(this, other, same, &left, &right, &ranges)
    }

    fn peel(
        &mut self,
        this: &Term,
        other: &Term,
        same: &Fact,
        left: &Numeral,
        right: &Numeral,
        ranges: &[[Fact; 2]],
    ) -> Option<Vec<Fact>> {
        if left.unit.term().as_const() != Some(1) {
            return None;
        }
        let prefixes = |numeral: &Numeral| -> Vec<Term> {
            let mut value = numeral.digits[0].clone();
            let mut all = vec![value.clone()];
            for (radix, digit) in numeral.radices.iter().zip(&numeral.digits[1..]) {
                value = value * radix + digit;
                all.push(value.clone());
            }
            all
        };
        let (mine, theirs) = (prefixes(left), prefixes(right));
        let (whole, whole_other) = (mine.last()?, theirs.last()?);
        let here = poly_identity(&mut self.context, this, whole).ok()?;
        let there = poly_identity(&mut self.context, other, whole_other).ok()?;
        let mut equal = self.context.derive(whole.equals(whole_other), &[&here, &there, same], Mode::Abstract).ok()?;
        let mut found = Vec::new();
        for position in (1..left.digits.len()).rev() {
            let [first, second] = &ranges[position - 1];
            let (q, r) = (&mine[position - 1], &left.digits[position]);
            let (p, s) = (&theirs[position - 1], &right.digits[position]);
            let radix = &left.radices[position - 1];
            let [high, low] = self
                .lemmas
                .horner_injective(&mut self.context, [q, r], [p, s], radix, &[first, second, &equal])
                .ok()?;
            found.push(low);
            equal = high;
        }
        found.push(equal);
        Some(found)
    }
}

/// `a` as `q * b + r`, reading the monomials that `b` divides as the quotient.
fn split_by(a: &Term, b: &Term) -> Option<(Term, Term)> {
    let product = Product::of(b)?;
    let (mut q, mut r) = (Term::int(0), Term::int(0));
    for (monomial, coefficient) in crate::poly::Poly::of(a)?.monomials() {
        let term = monomial
            .iter()
            .fold(Term::int(coefficient), |term, (atom, exponent)| (0..*exponent).fold(term, |term, _| term * atom));
        match product.divides(&term) {
            Some(quotient) => q = q + quotient,
            None => r = r + term,
        }
    }
    Some((q, r))
}

/// `(fact, size)` if the fact says that `size` is at most `extent` (or below it).
fn capacity(fact: &Fact, extent: &Term) -> Option<(Fact, Term)> {
    match fact.prop().kind() {
        PropKind::Compare(Comparison::Le | Comparison::Lt, size, bound) if bound == extent => {
            Some((fact.clone(), size.clone()))
        }
        // size <= MAX, asked for size < MAX + 1.
        PropKind::Compare(Comparison::Le, size, bound) => {
            let below = bound.as_const()?.checked_add(1)?;
            (extent.as_const() == Some(below)).then(|| (fact.clone(), size.clone()))
        }
        _ => None,
    }
}

/// No product of two non-constants and no division by one.
pub fn is_linear_prop(prop: &Prop) -> bool {
    match prop.kind() {
        PropKind::Bool(_) | PropKind::Sym(_) => true,
        PropKind::Compare(_, lhs, rhs) => is_linear(lhs) && is_linear(rhs),
        PropKind::Not(inner) => is_linear_prop(inner),
        PropKind::And(parts) | PropKind::Or(parts) => parts.iter().all(is_linear_prop),
        PropKind::Implies(a, b) | PropKind::Iff(a, b) => is_linear_prop(a) && is_linear_prop(b),
    }
}

fn is_linear(term: &Term) -> bool {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => true,
        TermKind::Unary(_, a) => is_linear(a),
        TermKind::Binary(op, a, b) => {
            let constant = match op {
                BinaryOp::Mul => a.as_const().is_some() || b.as_const().is_some(),
                BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {
                    b.as_const().is_some()
                }
                BinaryOp::Shl | BinaryOp::Shr => b.as_const().is_some(),
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor => true,
            };
            constant && is_linear(a) && is_linear(b)
        }
        TermKind::Ite(condition, a, b) => is_linear_prop(condition) && is_linear(a) && is_linear(b),
        TermKind::App(_, args) => args.iter().all(is_linear),
    }
}

fn collect_divisions_prop(prop: &Prop, found: &mut Vec<(Term, Term)>) {
    match prop.kind() {
        PropKind::Bool(_) | PropKind::Sym(_) => {}
        PropKind::Compare(_, lhs, rhs) => {
            collect_divisions(lhs, found);
            collect_divisions(rhs, found);
        }
        PropKind::Not(inner) => collect_divisions_prop(inner, found),
        PropKind::And(parts) | PropKind::Or(parts) => {
            for part in parts {
                collect_divisions_prop(part, found);
            }
        }
        PropKind::Implies(a, b) | PropKind::Iff(a, b) => {
            collect_divisions_prop(a, found);
            collect_divisions_prop(b, found);
        }
    }
}

fn collect_divisions(term: &Term, found: &mut Vec<(Term, Term)>) {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => {}
        TermKind::Unary(_, a) => collect_divisions(a, found),
        TermKind::Binary(op, a, b) => {
            collect_divisions(a, found);
            collect_divisions(b, found);
            let division = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
            if division && !found.contains(&(a.clone(), b.clone())) {
                found.push((a.clone(), b.clone()));
            }
        }
        TermKind::Ite(condition, a, b) => {
            collect_divisions_prop(condition, found);
            collect_divisions(a, found);
            collect_divisions(b, found);
        }
        TermKind::App(_, args) => args.iter().for_each(|arg| collect_divisions(arg, found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::Solver;

    fn symbolic_layout(prover: &mut Prover<'_>, suffix: &str) -> Term {
        let [n, h, w, c] = ["n", "h", "w", "c"].map(|name| Term::sym(format!("{name}{suffix}").as_str()));
        let [extent_n, extent_h, extent_w, extent_c] = ["N", "H", "W", "C"].map(Term::sym);
        for (index, extent) in [(&n, &extent_n), (&h, &extent_h), (&w, &extent_w), (&c, &extent_c)] {
            prover.index(index.free_symbols());
            prover.assume(&index.at_least(0).and(index.less(extent)), "domain");
        }
        (((n * extent_c.ceil_div(4) + c.floor_div(4)) * extent_h + h) * extent_w + w) * 4 + c.floor_mod(4)
    }

    fn extents(prover: &mut Prover<'_>) {
        for name in ["N", "H", "W", "C"] {
            prover.assume(&Term::sym(name).at_least(1), "extent");
        }
    }

    #[test]
    fn a_symbolic_flat_layout_is_in_bounds_and_no_smaller_one_is() {
        let solver = Solver::new().unwrap();
        let lemmas = Lemmas::new(&solver);
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
        let lemmas = Lemmas::new(&solver);
        let mut prover = Prover::new(Context::new(&solver), &lemmas);
        extents(&mut prover);
        let (this, other) = (symbolic_layout(&mut prover, ""), symbolic_layout(&mut prover, "'"));
        prover.assume(&this.equals(&other), "collision");
        let same = prover.facts.last().cloned().unwrap();
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
        let lemmas = Lemmas::new(&solver);
        let mut prover = Prover::new(Context::new(&solver), &lemmas);
        extents(&mut prover);
        let index = symbolic_layout(&mut prover, "");
        let [n, h, w, c] = ["N", "H", "W", "C"].map(Term::sym);
        let max = Term::int(i128::from(i32::MAX));
        assert!(prover.prove(&index.at_most(&max)).is_err());
        prover.assume(&(&n * c.ceil_div(4) * &h * &w * 4).at_most(&max), "the buffer is addressable");
        prover.prove(&index.at_most(&max)).unwrap();
        let rows = (Term::sym("n") * c.ceil_div(4) + Term::sym("c").floor_div(4)) * &h + Term::sym("h");
        prover.prove(&rows.at_most(&max)).unwrap();
    }
}
