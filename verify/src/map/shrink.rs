//! Shrinking of counterexamples: small numbers are easier to understand.
//!
//! Whichever tier found a counterexample, a smaller one is searched for by enumeration: on the constant shape itself, or for
//! smaller values of the symbols, one symbol after the other. Every reported counterexample was evaluated.
//!
//! ```text
//! lambda i, j: [i, j % 24]   on (n, m)
//! found      n = 4096, m = 37: (4095, 12) and (4095, 36) both land on (4095, 12)
//! shrunk to  n = 1, m = 25: (0, 0) and (0, 24) both land on (0, 0)
//! ```

use tilewright_ir::Bindings;

use super::case::{Case, assumed, contradiction};
use super::fast::Seen;
use super::instance::Instance;
use crate::enumerate::MAX_POINTS;
use crate::judge::Decision;
use crate::method::{Method, Points};
use crate::verdict::{Counterexample, Verdict};

/// Greatest number of points of each smaller shape that is tried.
const POINTS: u64 = 1 << 14;
/// Greatest number of points of each part of a constant shape, if some part is known to have a counterexample.
const PARTS: u64 = 1 << 20;
/// Number of passes over all symbols.
const ROUNDS: usize = 3;

/// A refutation with the smallest counterexample found, `found` itself if there is no smaller one.
pub(super) fn smallest(case: &Case<'_>, found: Counterexample, method: Method) -> Decision {
    if method == Method::Enumeration(Points::All) && case.symbols().is_empty() {
        return (Verdict::Refuted(found), method);
    }
    if let Some(instance) = case.constant() {
        // A counterexample that was found quickly is not worth a long search for a smaller one.
        let limit = if method == Method::Enumeration(Points::SomeParts) { PARTS } else { MAX_POINTS };
        return match case.seen(instance, limit) {
            Seen::Fails(first) => (Verdict::Refuted(first), method),
            Seen::Nothing => contradiction(Method::Enumeration(Points::All), method),
            Seen::TooMany | Seen::Unfit | Seen::Internal(_) => {
                (Verdict::Refuted(smaller_indices(case, instance, found)), method)
            }
        };
    }
    (Verdict::Refuted(smaller_shape(case, found)), method)
}

/// Lowers the values of the symbols, one after the other, as long as the claim still fails.
fn smaller_shape(case: &Case<'_>, mut found: Counterexample) -> Counterexample {
    let mut symbols = case.symbols().to_vec();
    // The order of [`super::shape_of`].
    symbols.sort();
    if found.shape.len() != symbols.len() {
        return found;
    }
    for _ in 0..ROUNDS {
        let before = found.shape.clone();
        for axis in 0..symbols.len() {
            let value = found.shape[axis].1;
            let halves = (1..120).rev().map(|half| value >> half).filter(|half| *half > 32);
            for smaller in (1..value.min(33)).chain(halves) {
                let values = found.shape.iter().map(|(_, value)| *value);
                let mut bindings: Bindings = symbols.iter().cloned().zip(values).collect();
                bindings.insert(symbols[axis].clone(), smaller);
                if let Some(fails) = fails(case, bindings) {
                    found = fails;
                    break;
                }
            }
        }
        if found.shape == before {
            break;
        }
    }
    found
}

/// Shrinks the box that contains the indices, one axis after the other, as long as the claim fails inside it.
fn smaller_indices(case: &Case<'_>, instance: &Instance<'_>, mut found: Counterexample) -> Counterexample {
    let around = |found: &Counterexample| -> Vec<i128> {
        let end = |axis: usize| found.indices.iter().map(|index| index[axis] + 1).max().unwrap_or(1);
        (0..instance.domain.len()).map(end).collect()
    };
    if found.indices.is_empty() || instance.domain.len() > 64 {
        return found;
    }
    for axis in 0..instance.domain.len() {
        let end = around(&found)[axis];
        for smaller in (0..120).map(|bits| 1i128 << bits).take_while(|smaller| *smaller < end) {
            let mut domain = around(&found);
            domain[axis] = smaller;
            match case.seen(&instance.within(domain), POINTS) {
                Seen::Fails(fails) if !fails.indices.is_empty() => {
                    found = fails;
                    break;
                }
                _ => {}
            }
        }
    }
    found
}

/// The first counterexample for these values of the symbols.
fn fails(case: &Case<'_>, symbols: Bindings) -> Option<Counterexample> {
    if !assumed(case.claim.assumptions, &symbols) {
        return None;
    }
    let instance = Instance::new(case.judge, case.claim, symbols)?;
    match case.seen(&instance, POINTS) {
        Seen::Fails(found) => Some(found),
        Seen::Nothing | Seen::TooMany | Seen::Unfit | Seen::Internal(_) => None,
    }
}
