//! Ranges of variables, and what follows from them: bounds of polynomials, constant and symbolic.
//!
//! The proofs are sound and incomplete: [`Ranges::prove_nonneg`] may fail to prove what is true, and never proves what
//! is false.

use std::collections::HashMap;

use tilewright_ir::sabotage;
use tilewright_ir::{Expr, Var};

use super::interval::Interval;
use super::poly::{Atom, Key, Poly};
use super::rewrite::Simplifier;
use super::work;

/// Replacements of an atom by its bound before a proof is given up.
const FUEL: u32 = 48;
/// Quotients by constants that a proof replaces by their bounds.
const QUOTIENTS: usize = 6;
/// Assumed polynomials that a proof tries.
const MAX_FACTS: usize = 12;

/// The known bounds of variables: `0 <= var < extent` for loop variables and indices, `symbol >= 1` for symbolic extents,
/// and the assumptions of [`Ranges::assuming`].
///
/// Nothing is known of a variable that was never added.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// The range of each variable that was added.
    pub(super) known: HashMap<Var, Known>,
    /// Polynomials that are not negative.
    pub(super) facts: Vec<Poly>,
    /// Pairs of a value and what it is a multiple of.
    pub(super) multiples: Vec<(Poly, Poly)>,
    /// Conditions that hold, to be recognised where they appear again in the same form.
    pub(super) truths: Vec<Expr>,
    /// Radices of numerals, the innermost first. A quotient by a product of them is written as successive divisions.
    pub(super) radices: Vec<Vec<Poly>>,
}

/// The range of a variable.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// A symbolic extent, which has no upper bound in terms of other variables.
    Symbol(Interval),
    /// `min <= var <= last`.
    Index { min: Poly, last: Poly, interval: Interval },
}

impl Ranges {
    /// Ranges of no variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `0 <= var < extent`. Variables in `extent` about which nothing is known are taken to be symbolic extents,
    /// which are at least 1.
    #[must_use]
    pub fn with(mut self, var: &Var, extent: &Expr) -> Self {
        for symbol in extent.vars() {
            self = self.with_symbol(&symbol);
        }
        self.with_loop(var, &Expr::int(0), extent)
    }

    /// Adds `symbol >= 1`, unless something is known of the symbol already.
    #[must_use]
    pub fn with_symbol(mut self, symbol: &Var) -> Self {
        let least = if sabotage::on("symbol-is-four") { 4 } else { 1 };
        self.known.entry(symbol.clone()).or_insert(Known::Symbol(Interval::at_least(least)));
        self
    }

    /// Adds `min <= var < min + extent`. An extent that is a bare variable is at least 1, because otherwise `var`
    /// would have no value; nothing is assumed of other variables.
    #[must_use]
    pub fn with_loop(mut self, var: &Var, min: &Expr, extent: &Expr) -> Self {
        if let Expr::Var(symbol) = extent {
            self = self.with_symbol(symbol);
        }
        let simplifier = Simplifier::new(&self);
        let bounds = || {
            let (min, extent) = (simplifier.poly(min)?, simplifier.poly(extent)?);
            let last = min.plus(&extent)?.plus_const(-1)?;
            let interval = Interval { lo: self.interval(&min).lo, hi: self.interval(&last).hi };
            Some(Known::Index { min, last, interval })
        };
        if let Some(known) = bounds() {
            self.known.insert(var.clone(), known);
        }
        self
    }

    /// Returns the radices of a numeral whose product is `divisor`, if there are at least two and the divisor is not
    /// constant. Adjacent constants are multiplied.
    pub(super) fn radices_of(&self, divisor: &Poly) -> Option<Vec<Poly>> {
        divisor.as_const().is_none().then_some(())?;
        let prefix = |radices: &'_ Vec<Poly>| {
            let mut product = Poly::constant(1);
            radices.iter().position(|radix| {
                product = product.times(radix).unwrap_or_default();
                product == *divisor
            })
        };
        self.radices.iter().find_map(|radices| {
            let last = prefix(radices)?;
            let mut joined: Vec<Poly> = Vec::new();
            for radix in &radices[..=last] {
                // Dividing by 4 and then by 8 is written as one division by 32.
                let both = joined.last().and_then(Poly::as_const).zip(radix.as_const());
                match both.and_then(|(a, b)| a.checked_mul(b)) {
                    Some(product) => drop(joined.pop().map(|_| joined.push(Poly::constant(product)))),
                    None => joined.push(radix.clone()),
                }
            }
            joined.retain(|radix| radix.as_const() != Some(1));
            (joined.len() > 1).then_some(joined)
        })
    }

    /// Adds `lo <= var <= hi`.
    pub(super) fn within(mut self, var: &Var, lo: i128, hi: i128) -> Self {
        let (min, last) = (Poly::constant(lo), Poly::constant(hi));
        self.known.insert(var.clone(), Known::Index { min, last, interval: Interval::new(lo, hi) });
        self
    }

    /// Whether a variable is a loop variable or an index, as opposed to a symbolic extent.
    pub(super) fn is_index(&self, var: &Var) -> bool {
        matches!(self.known.get(var), Some(Known::Index { .. }))
    }

    /// The value of an index that has only one.
    pub(super) fn fixed(&self, var: &Var) -> Option<&Poly> {
        match self.known.get(var)? {
            Known::Index { min, last, .. } => (min == last && !min.vars().contains(var)).then_some(min),
            Known::Symbol(_) => None,
        }
    }

    /// Proves `poly >= 0` from the ranges, or from one assumed polynomial and the ranges. False means that no proof
    /// was found.
    pub(super) fn prove_nonneg(&self, poly: &Poly) -> bool {
        let _limit = work::limit(work::PROOF);
        let by_ranges = |poly: &Poly| self.nonneg(poly, &mut FUEL.clone());
        by_ranges(poly)
            || self.facts.iter().take(MAX_FACTS).any(|fact| {
                let rest = multiple_of(poly, fact).and_then(|times| poly.minus(&fact.scaled(times)?));
                rest.is_some_and(|rest| by_ranges(&rest))
            })
    }

    /// Proves `0 <= poly < limit`. False means that no proof was found.
    pub(super) fn prove_below(&self, poly: &Poly, limit: &Poly) -> bool {
        let room = limit.minus(poly).and_then(|room| room.plus_const(-1));
        self.prove_nonneg(poly) && room.is_some_and(|room| self.prove_nonneg(&room))
    }

    /// Proves `poly >= 0` by replacing indices and divisions with their bounds. `fuel` counts the replacements that
    /// are left.
    fn nonneg(&self, poly: &Poly, fuel: &mut u32) -> bool {
        if self.is_nonneg_by_interval(poly) {
            return true;
        }
        if *fuel == 0 || !work::step() || self.attains_interval(poly) {
            return false;
        }
        [false, true].into_iter().any(|relaxed| {
            self.bound(poly, false, relaxed, fuel).is_some_and(|least| {
                let whole = || self.without_quotients(&least);
                self.is_nonneg_by_interval(&least) || whole().is_some_and(|least| self.is_nonneg_by_interval(&least))
            })
        })
    }

    /// Returns a lower bound of a positive multiple of a polynomial, without the quotients by constants:
    /// `k * (x // k)` is between `x - k + 1` and `x`. So `n - n // 2` is not negative if `2 * n - n` is not.
    fn without_quotients(&self, poly: &Poly) -> Option<Poly> {
        let mut bound = poly.clone();
        for _ in 0..QUOTIENTS {
            let found = bound.atoms().into_iter().rev().find_map(|atom| match &atom {
                Atom::Div(x, by) => {
                    let by = by.as_const().filter(|by| *by > 1)?;
                    Some((atom.clone(), Poly::clone(x), by))
                }
                Atom::Mod(..) | Atom::Opaque(_) => None,
            });
            let Some((atom, x, by)) = found else { return Some(bound) };
            let (factor, rest) = bound.by_atom(&atom);
            if factor.atoms().contains(&atom) {
                return None;
            }
            let end = if self.interval(&factor.scaled(-1)?).is_at_least(0) {
                x
            } else if self.interval(&factor).is_at_least(0) {
                x.plus_const(1 - by)?
            } else {
                return None;
            };
            bound = rest.scaled(by)?.plus(&factor.times(&end)?)?;
        }
        None
    }

    /// Whether a polynomial takes the ends of its interval, because it is a sum of variables with constant ranges. If
    /// its interval holds negative values, no bound can prove it non-negative.
    fn attains_interval(&self, poly: &Poly) -> bool {
        poly.pairs().all(|(mono, _)| match mono {
            [] => true,
            [Atom::Opaque(Key(Expr::Var(var)))] => match self.known.get(var) {
                Some(Known::Index { min, last, .. }) => min.as_const().is_some() && last.as_const().is_some(),
                Some(Known::Symbol(_)) | None => false,
            },
            _ => false,
        })
    }

    /// Whether intervals alone show `poly >= 0`.
    fn is_nonneg_by_interval(&self, poly: &Poly) -> bool {
        self.interval(poly).is_at_least(0) || self.is_nonneg_shifted(poly)
    }

    /// Writes each atom as its least value plus a non-negative rest. The polynomial is not negative if no coefficient
    /// is negative then.
    fn is_nonneg_shifted(&self, poly: &Poly) -> bool {
        let mut shifted = poly.clone();
        for atom in poly.atoms() {
            let Some(least) = self.atom_interval(&atom).least() else { return false };
            if least == 0 {
                continue;
            }
            let (factor, _) = shifted.by_atom(&atom);
            // A square of an atom would need the binomial theorem.
            if factor.atoms().contains(&atom) {
                return false;
            }
            let Some(sum) = factor.scaled(least).and_then(|extra| shifted.plus(&extra)) else { return false };
            shifted = sum;
        }
        shifted.pairs().all(|(_, coef)| coef >= 0)
    }

    /// Returns a lower (or upper) bound of a polynomial: indices and divisions are replaced by their bounds until only
    /// symbolic extents are left. `relaxed` bounds `k * (x // k)` by `x - k + 1` and `x`, which keeps `x` for terms
    /// that cancel.
    fn bound(&self, poly: &Poly, upper: bool, relaxed: bool, fuel: &mut u32) -> Option<Poly> {
        let mut bound = poly.clone();
        loop {
            // Divisions before variables, inner loops before outer ones: the order of atoms, from the back.
            let next = bound.atoms().into_iter().rev().find(|atom| self.has_bounds(atom));
            let Some(atom) = next else { return self.without_multiples(bound) };
            *fuel = fuel.checked_sub(1).filter(|_| work::step())?;
            let (factor, rest) = bound.by_atom(&atom);
            let positive = if self.nonneg(&factor, fuel) {
                true
            } else if self.nonneg(&factor.scaled(-1)?, fuel) {
                false
            } else {
                return None;
            };
            let product = self.product_bound(&atom, &factor, positive == upper, relaxed, fuel)?;
            bound = rest.plus(&product)?;
        }
    }

    /// Whether an atom can be replaced by a bound.
    fn has_bounds(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Opaque(Key(Expr::Var(var))) => self.is_index(var),
            Atom::Opaque(Key(expr)) => {
                let interval = self.expr_interval(expr);
                interval.least().is_some() && interval.greatest().is_some()
            }
            // A quotient of symbolic extents is a value of its own in the result.
            Atom::Div(a, _) | Atom::Mod(a, _) => {
                let mut moves = false;
                a.each_var(&mut |var| moves = moves || self.is_index(var));
                moves
            }
        }
    }

    /// Returns a bound of `factor * atom`.
    fn product_bound(&self, atom: &Atom, factor: &Poly, upper: bool, relaxed: bool, fuel: &mut u32) -> Option<Poly> {
        if let (true, Atom::Div(x, by)) = (relaxed, atom)
            && let Some(quotient) = by.as_term().and_then(|by| factor.divided(&by))
        {
            // by * (x // by) lies between x - by + 1 and x.
            let end = if upper { (**x).clone() } else { x.minus(by)?.plus_const(1)? };
            return quotient.times(&end);
        }
        factor.times(&self.atom_bound(atom, upper, fuel)?)
    }

    /// A lower or upper bound of one atom.
    fn atom_bound(&self, atom: &Atom, upper: bool, fuel: &mut u32) -> Option<Poly> {
        match atom {
            Atom::Opaque(Key(Expr::Var(var))) => match self.known.get(var)? {
                Known::Index { min, last, .. } => Some(if upper { last.clone() } else { min.clone() }),
                Known::Symbol(_) => None,
            },
            Atom::Opaque(Key(expr)) => {
                let interval = self.expr_interval(expr);
                if upper { interval.greatest() } else { interval.least() }.map(Poly::constant)
            }
            Atom::Div(x, by) => {
                let end = self.bound(x, upper, false, fuel)?;
                Simplifier::new(self).divide(&end, by).map(|(quotient, _)| quotient)
            }
            Atom::Mod(_, by) if upper => by.plus_const(-1),
            Atom::Mod(..) => Some(Poly::default()),
        }
    }

    /// Whether a polynomial still holds an index with more than one value.
    fn holds_index(&self, poly: &Poly) -> bool {
        poly.vars().iter().any(|var| self.is_index(var) && self.fixed(var).is_none())
    }

    /// Returns an upper bound as a polynomial in symbolic extents.
    pub(super) fn greatest(&self, poly: &Poly) -> Option<Poly> {
        self.extreme(poly, true)
    }

    /// Returns a lower bound as a polynomial in symbolic extents.
    pub(super) fn least(&self, poly: &Poly) -> Option<Poly> {
        self.extreme(poly, false)
    }

    /// Returns the tightest of several bounds in symbolic extents: the one that the ranges give, and those that follow
    /// with one assumed polynomial. The first bound is kept unless another one is provably tighter.
    fn extreme(&self, poly: &Poly, upper: bool) -> Option<Poly> {
        let _limit = work::limit(work::PROOF);
        let bound = |poly: &Poly| {
            let found = self.bound(poly, upper, false, &mut FUEL.clone());
            found.filter(|bound| !self.holds_index(bound))
        };
        let mut best = bound(poly);
        for fact in self.facts.iter().take(MAX_FACTS) {
            // A fact is not negative: a multiple of it may be added below an upper bound, and subtracted above a lower one.
            let sign = if upper { -1 } else { 1 };
            let shifted = poly.scaled(sign).and_then(|signed| {
                let times = multiple_of(&signed, fact)?;
                poly.plus(&fact.scaled(times.checked_mul(-sign)?)?)
            });
            let Some(other) = shifted.and_then(|shifted| bound(&shifted)) else { continue };
            let gap = best.as_ref().map(|best| if upper { best.minus(&other) } else { other.minus(best) });
            if gap.is_none_or(|gap| gap.is_some_and(|gap| self.prove_nonneg(&gap))) {
                best = Some(other);
            }
        }
        best
    }
}

/// Returns how often `fact` can be subtracted from `poly`, judged by the first product that both have; `None` if not a
/// positive number of times.
fn multiple_of(poly: &Poly, fact: &Poly) -> Option<i128> {
    let shared = fact.terms().find(|term| !term.mono.is_empty() && poly.coef(&term.mono) != 0)?;
    let times = poly.coef(&shared.mono).checked_div(shared.coef)?;
    (times > 0).then_some(times)
}
