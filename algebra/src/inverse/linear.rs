//! Sums of digits: reading the digits off a value, and combining two sums into a simpler one.

use super::super::divide::split;
use super::super::poly::{Atom, Poly, gcd};
use super::super::ranges::Ranges;
use super::super::rewrite::Simplifier;
use super::solve::Solver;

/// One summand `place * digit`. The digit is `start + d`, or `start - d` if it is reversed, for some `d` in
/// `0..=span`.
pub(super) struct Summand {
    pub(super) atom: Atom,
    pub(super) place: Poly,
    pub(super) span: Poly,
    pub(super) start: Poly,
    pub(super) reversed: bool,
}

/// The values of digits, and the radices of the numeral, the innermost first, if each place divides the next.
type Digits = (Vec<(Atom, Poly)>, Option<Vec<Poly>>);

/// Returns the digits of `value`, the sum of all `places`, and the radices of the numeral, the innermost first, if
/// each place divides the next. A reversed digit counts with a negative sign. Returns `None` if the digits are not
/// determined by the value.
pub(super) fn take_apart(ranges: &Ranges, mut places: Vec<Summand>, mut value: Poly) -> Option<Digits> {
    let simplifier = Simplifier::new(ranges);
    for Summand { place, start, reversed, .. } in &places {
        let least = if *reversed { start.scaled(-1)? } else { start.clone() };
        value = value.minus(&place.times(&least)?)?;
    }
    // Now every digit is in 0..=span. The place above all others is read off by division; if there is none, some digit
    // may still be determined by its residue.
    let (mut found, mut order) = (Vec::new(), Vec::new());
    while !places.is_empty() {
        let (at, digit) = if let Some(top) = top_place(ranges, &places) {
            let (digit, rest) = simplifier.divide(&value, &places[top].place)?;
            value = rest;
            order.push(places[top].place.clone());
            (top, digit)
        } else {
            let constants: Vec<i128> = places.iter().map(|place| place.place.as_const()).collect::<Option<_>>()?;
            let (at, digit) = places.iter().enumerate().find_map(|(at, place)| {
                Some((at, digit_by_remainder(&simplifier, &constants, at, place.span.as_const()?, &value)?))
            })?;
            value = value.minus(&places[at].place.times(&digit)?)?;
            (at, digit)
        };
        let Summand { atom, start, reversed, .. } = places.remove(at);
        found.push((atom, if reversed { start.minus(&digit)? } else { start.plus(&digit)? }));
    }
    Some((found, radices(ranges, &order)))
}

/// Returns the place that exceeds the greatest value of all other places together.
fn top_place(ranges: &Ranges, places: &[Summand]) -> Option<usize> {
    (0..places.len()).find(|&top| {
        let others = places.iter().enumerate().filter(|(position, _)| *position != top);
        let below = others
            .map(|(_, other)| other.place.times(&other.span))
            .try_fold(Poly::default(), |sum, product| sum.plus(&product?));
        below.is_some_and(|below| ranges.prove_below(&below, &places[top].place))
    })
}

/// Returns the digit at the place `at` from the remainder of the value by all other places: `2*a + 3*b` modulo 3
/// determines `a` if `a < 3`. `span` is the greatest value of the digit. Returns `None` if the remainder does not
/// determine it.
pub(super) fn digit_by_remainder(
    simplifier: &Simplifier<'_>,
    places: &[i128],
    at: usize,
    span: i128,
    value: &Poly,
) -> Option<Poly> {
    let others = places.iter().enumerate().filter(|(position, _)| *position != at);
    let modulus = others.fold(0, |common, (_, &place)| gcd(common, place));
    let shared = gcd(places[at], modulus);
    let (place, modulus) = (places[at].checked_div(shared)?, modulus.checked_div(shared)?);
    if modulus < 2 || span >= modulus {
        return None;
    }
    let (reduced, _) = simplifier.divide(value, &Poly::constant(shared))?;
    let turned = reduced.scaled(reciprocal(place, modulus)?)?;
    Some(simplifier.divide(&turned, &Poly::constant(modulus))?.1)
}

/// Returns the multiplicative inverse of `value` modulo `modulus`, by the extended Euclidean algorithm; `None` if they
/// share a factor.
pub(super) fn reciprocal(value: i128, modulus: i128) -> Option<i128> {
    let (mut low, mut high) = ((value.rem_euclid(modulus), 1i128), (modulus, 0i128));
    while low.0 != 0 {
        let times = high.0 / low.0;
        let next = (high.0 - times * low.0, high.1.checked_sub(times.checked_mul(low.1)?)?);
        (high, low) = (low, next);
    }
    (high.0 == 1).then(|| high.1.rem_euclid(modulus))
}

/// Returns the radices of places given from the outermost to the innermost, the innermost radix first; `None` if a
/// place does not divide the one above.
fn radices(ranges: &Ranges, order: &[Poly]) -> Option<Vec<Poly>> {
    let mut radices = vec![order.last()?.clone()];
    for pair in order.windows(2).rev() {
        let (whole, rest) = split(&ranges.written_in_multiples(&pair[0], &pair[1])?, &pair[1])?;
        rest.is_zero().then_some(())?;
        radices.push(whole);
    }
    Some(radices)
}

/// Adds an equation with a single unknown term: the difference of multiples of two open equations. Returns whether
/// there is one.
pub(super) fn eliminate(solver: &mut Solver<'_>) -> bool {
    // Only differences that leave one unknown are added: each such equation solves an index, so the elimination ends.
    let combined = || {
        for (position, (first, v)) in solver.open.iter().enumerate() {
            for (second, w) in &solver.open[position + 1..] {
                let (_, terms) = solver.known_part(first)?;
                let Some((_, others)) = solver.known_part(second) else { continue };
                for term in terms.iter().filter(|term| !term.mono.is_empty()) {
                    let Some(other) = others.iter().find(|other| other.mono == term.mono) else { continue };
                    let common = gcd(term.coef, other.coef);
                    let (x, y) = (other.coef / common, term.coef / common);
                    let mix = |a: &Poly, b: &Poly| a.scaled(x)?.minus(&b.scaled(y)?);
                    let Some((sum, value)) = mix(first, second).zip(mix(v, w)) else { continue };
                    let Some((_, left)) = solver.known_part(&sum) else { continue };
                    if left.len() == 1 && terms.len() > 1 && others.len() > 1 {
                        return Some((sum, value));
                    }
                }
            }
        }
        None
    };
    match combined() {
        Some(equation) => {
            solver.open.push(equation);
            true
        }
        None => false,
    }
}
