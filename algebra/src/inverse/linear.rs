//! Sums of digits taken apart, and sums combined.

use super::super::divide::split;
use super::super::poly::{Atom, Poly, gcd};
use super::super::ranges::Ranges;
use super::super::rewrite::Simplifier;
use super::solve::Solver;

/// A digit of a sum: `place * digit`, where the digit is `start + d`, or `start - d` if it is reversed, for some `d` in
/// `0..=span`.
pub(super) struct Summand {
    pub(super) atom: Atom,
    pub(super) place: Poly,
    pub(super) span: Poly,
    pub(super) start: Poly,
    pub(super) reversed: bool,
}

type Found = (Vec<(Atom, Poly)>, Option<Vec<Poly>>);

/// The digits of `value`, the sum of `place * digit`, with a minus where it is reversed; and the radices, the innermost
/// first, if each place divides the next.
pub(super) fn take_apart(ranges: &Ranges, mut places: Vec<Summand>, mut value: Poly) -> Option<Found> {
    let simplifier = Simplifier::new(ranges);
    for Summand { place, start, reversed, .. } in &places {
        let least = if *reversed { start.scaled(-1)? } else { start.clone() };
        value = value.minus(&place.times(&least)?)?;
    }
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
                Some((at, by_remainder(&simplifier, &constants, at, place.span.as_const()?, &value)?))
            })?;
            value = value.minus(&places[at].place.times(&digit)?)?;
            (at, digit)
        };
        let Summand { atom, start, reversed, .. } = places.remove(at);
        found.push((atom, if reversed { start.minus(&digit)? } else { start.plus(&digit)? }));
    }
    Some((found, radices(ranges, &order)))
}

/// The one place that all others together stay below.
fn top_place(ranges: &Ranges, places: &[Summand]) -> Option<usize> {
    (0..places.len()).find(|&top| {
        let others = places.iter().enumerate().filter(|(position, _)| *position != top);
        let below = others
            .map(|(_, other)| other.place.times(&other.span))
            .try_fold(Poly::default(), |sum, product| sum.plus(&product?));
        below.is_some_and(|below| ranges.prove_below(&below, &places[top].place))
    })
}

/// The digit at one of the places, of a span of its own, that the remainder of the value by all other places says:
/// `2*a + 3*b` modulo 3, for `a < 3`.
pub(super) fn by_remainder(
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

/// The number whose product with `value` leaves 1 modulo `modulus`.
pub(super) fn reciprocal(value: i128, modulus: i128) -> Option<i128> {
    let (mut low, mut high) = ((value.rem_euclid(modulus), 1i128), (modulus, 0i128));
    while low.0 != 0 {
        let times = high.0 / low.0;
        let next = (high.0 - times * low.0, high.1.checked_sub(times.checked_mul(low.1)?)?);
        (high, low) = (low, next);
    }
    (high.0 == 1).then(|| high.1.rem_euclid(modulus))
}

/// Places from the outermost to the innermost as radices from the innermost, if each divides the one above.
fn radices(ranges: &Ranges, order: &[Poly]) -> Option<Vec<Poly>> {
    let mut radices = vec![order.last()?.clone()];
    for pair in order.windows(2).rev() {
        let (whole, rest) = split(&ranges.in_multiples(&pair[0], &pair[1])?, &pair[1])?;
        rest.is_zero().then_some(())?;
        radices.push(whole);
    }
    Some(radices)
}

/// Adds an equation with fewer unknown digits, as the difference of multiples of two others.
pub(super) fn eliminate(solver: &mut Solver<'_>) -> bool {
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
