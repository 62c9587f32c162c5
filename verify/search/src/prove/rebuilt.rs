//! Numbers from their quotients and remainders: what is equal for two numbers makes them equal.
//!
//! ```text
//! f // (n * m) == g // (n * m)       f == (f // (n * m)) * n * m + (f % (n * m) // m) * m + f % m
//! f % (n * m) // m == ...            and so is g
//! f % m == g % m                     f == g
//! ```
//!
//! The parts are reduced to polynomials over quotients; a number is the sum of multiples of them in which all quotients cancel out.

use std::collections::BTreeMap;

use super::Prover;
use super::linear::is_linear_prop;
use tilewright_kernel::facts::{Fact, Mode};
use tilewright_kernel::poly::Poly;
use tilewright_kernel::strategy::Strategy as _;
use tilewright_kernel::term::{BinaryOp, Substitution, Symbol, Term, TermKind};

/// Sums that are tried for one number.
const MAX_TRIED: usize = 200;

/// What a number is made of: the factor of each part, and what is the same everywhere.
struct Sum {
    factors: Vec<(usize, Poly)>,
    rest: Poly,
}

impl Prover {
    /// Facts that the numbers are equal of which some parts are equal: the second of each pair is the first with other indices. Z3 decides
    /// by itself where all divisors are constants.
    pub(super) fn rebuilt(&mut self, pairs: &[(Term, Term)]) -> Vec<Fact> {
        if pairs.iter().all(|(this, other)| is_linear_prop(&this.equals(other))) {
            return Vec::new();
        }
        let mut same = Vec::new();
        let mut parts = Vec::new();
        let mut renames = BTreeMap::new();
        for (this, other) in pairs {
            let Some(fact) = self.known(&this.equals(other)) else { continue };
            let reduced = self.reduce(this);
            let opened = self.without_remainders(&reduced);
            let (Some(poly), true) = (Poly::from_term(&opened.term), renamed(this, other, &mut renames)) else {
                continue;
            };
            same.push(fact);
            parts.push((poly, this.clone(), other.clone()));
        }
        renames.retain(|from, to| from != to);
        let moves = |term: &Term| term.free_symbols().iter().any(|symbol| renames.contains_key(symbol));
        let mut numbers: Vec<Term> = parts.iter().flat_map(|(poly, ..)| poly.atoms()).filter_map(dividend).collect();
        numbers.retain(|number| moves(number));
        numbers.sort();
        numbers.dedup();
        let renames = Substitution::new(renames.iter().map(|(from, to)| (from.clone(), Term::sym(to.clone()))));
        let polys: Vec<Poly> = parts.iter().map(|(poly, ..)| poly.clone()).collect();
        let mut found = Vec::new();
        for number in numbers {
            let Some(whole) = Poly::from_term(&number) else { continue };
            let Some(sum) = sum(&whole, &polys, &moves) else { continue };
            let of = |side: fn(&(Poly, Term, Term)) -> &Term| {
                let parts = sum.factors.iter().map(|(at, factor)| factor.to_term() * side(&parts[*at]));
                parts.fold(sum.rest.to_term(), |sum, part| sum + part)
            };
            let (here, there) = (of(|part| &part.1), of(|part| &part.2));
            found.extend(
                self.same_number((&number, &renames.term(&number)), (&here, &there), &same).unwrap_or_default(),
            );
        }
        found
    }

    /// Facts from the sums that two numbers are.
    fn same_number(
        &mut self,
        (this, other): (&Term, &Term),
        (here, there): (&Term, &Term),
        same: &[Fact],
    ) -> Option<Vec<Fact>> {
        let mut using = vec![self.by_reduction(&this.equals(here))?, self.by_reduction(&other.equals(there))?];
        using.extend(same.iter().cloned());
        let using: Vec<&Fact> = using.iter().collect();
        let equal = self.context.derive(this.equals(other), &using, Mode::Abstract).ok()?;
        let mut found = self.digits_equal(this, other, &equal).unwrap_or_default();
        found.push(equal);
        Some(found)
    }
}

/// What a quotient is a quotient of.
fn dividend(term: &Term) -> Option<Term> {
    match term.kind() {
        TermKind::Binary(BinaryOp::FloorDiv, number, _) => Some(number.clone()),
        _ => None,
    }
}

/// Whether two terms have one form, with other symbols in the second; adds which became which.
fn renamed(this: &Term, other: &Term, found: &mut BTreeMap<Symbol, Symbol>) -> bool {
    match (this.kind(), other.kind()) {
        (TermKind::Sym(from), TermKind::Sym(to)) => found.entry(from.clone()).or_insert_with(|| to.clone()) == to,
        (TermKind::Const(a), TermKind::Const(b)) => a == b,
        (TermKind::Unary(op, a), TermKind::Unary(same, b)) => op == same && renamed(a, b, found),
        (TermKind::Binary(op, a, b), TermKind::Binary(same, c, d)) => {
            op == same && renamed(a, c, found) && renamed(b, d, found)
        }
        _ => false,
    }
}

/// The number as a sum of multiples of parts, by factors that do not move, and of something that does not move.
fn sum(whole: &Poly, parts: &[Poly], moves: &impl Fn(&Term) -> bool) -> Option<Sum> {
    let mut open = vec![(whole.clone(), Vec::<(usize, Poly)>::new())];
    for _ in 0..MAX_TRIED {
        let (rest, factors) = open.pop()?;
        if !rest.atoms().any(moves) {
            return Some(Sum { factors, rest });
        }
        for (at, part) in parts.iter().enumerate().filter(|(at, _)| factors.iter().all(|(used, _)| used != at)) {
            for (pivot, sign) in part.terms().filter(|(_, factor)| factor.abs() == 1) {
                let [atom] = pivot else { continue };
                let Some((quotient, _)) = rest.split(&Poly::atom(atom.clone())) else { continue };
                if !moves(atom) || quotient.is_zero() || quotient.atoms().any(moves) {
                    continue;
                }
                let Some(factor) = quotient.scaled(sign) else { continue };
                let Some(next) = factor.times(part).and_then(|taken| rest.minus(&taken)) else { continue };
                open.push((next, [factors.as_slice(), &[(at, factor)]].concat()));
            }
        }
    }
    None
}
