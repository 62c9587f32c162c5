//! Trial by evaluation: a result of the algebra is tried at sample points before it is returned, with symbolic extents
//! bound to small values.

use std::collections::HashMap;

use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim, Var};

use super::extreme::each_point;

/// Points at which an inverse is tried, for each choice of the symbolic extents.
const SAMPLES: u64 = 64;
/// Logical points among which a collision is searched for.
const MAX_COLLISION_POINTS: i128 = 1 << 14;

/// Returns up to four choices of small values for all symbols of a map and of `more`, under which the assumptions
/// hold; one empty choice if there are no symbols.
pub(super) fn instances(map: &IndexMap, more: &[Expr], assumptions: &[Expr]) -> Vec<Bindings> {
    let all = map.domain().iter().chain(map.outputs()).chain(more).chain(assumptions).flat_map(Expr::vars);
    let mut symbols: Vec<Var> = Vec::new();
    for var in all.filter(|var| !map.vars().contains(var)) {
        if !symbols.contains(&var) {
            symbols.push(var);
        }
    }
    if symbols.is_empty() {
        return vec![Bindings::new()];
    }
    let holds = |symbols: &Bindings| {
        assumptions.iter().all(|assumption| assumption.eval_index(symbols).is_ok_and(|value| value != 0))
    };
    // Patterns with pairwise distinct values come first: equal extents would hide swapped axes. The factors reach
    // assumptions such as `c % 60 == 0`.
    let factors = [1, 2, 3, 4, 6, 8, 12, 16, 32, 60, 64, 128, 256];
    let patterns = [[2, 3, 5, 7], [5, 2, 3, 4], [3, 7, 4, 9], [17, 5, 9, 2], [1, 2, 1, 3], [4, 2, 8, 2], [8, 4, 2, 1]];
    let mut found: Vec<Bindings> = Vec::new();
    for factor in factors {
        for pattern in patterns {
            let value = |position: usize| pattern[position % pattern.len()] * factor;
            let bound: Bindings =
                symbols.iter().enumerate().map(|(position, var)| (var.clone(), value(position))).collect();
            if holds(&bound) {
                found.push(bound);
            }
            if found.len() == 4 {
                return found;
            }
        }
    }
    found
}

/// The values of several expressions; `None` if one has none.
fn values(exprs: &[Expr], symbols: &Bindings) -> Option<Vec<i128>> {
    exprs.iter().map(|expr| expr.eval_index(symbols).ok()).collect()
}

/// Whether an inverse is right at sample points in both directions.
pub(super) fn inverse_holds(map: &IndexMap, physical: &[Expr], inverse: &InverseClaim, symbols: &Bindings) -> bool {
    let (Some(logical), Some(physical)) = (values(map.domain(), symbols), values(physical, symbols)) else {
        return false;
    };
    // An empty domain or shape has no points to try.
    let empty = logical.iter().any(|&extent| extent < 1);
    let no_places = physical.iter().any(|&extent| extent < 1);
    (0..SAMPLES).all(|seed| {
        (empty || leads_back(map, inverse, symbols, &point(&logical, seed)) == Some(true))
            && (no_places || leads_forth(map, inverse, symbols, &point(&physical, seed)) == Some(true))
    })
}

/// Returns a point of a shape: the first for seed 0, the last for seed 1, and a pseudo-random one for any other seed.
pub(super) fn point(extents: &[i128], seed: u64) -> Vec<i128> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let step = |extent: &i128| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match seed {
            0 => 0,
            1 => extent - 1,
            _ => i128::from(state >> 33) % extent,
        }
    };
    extents.iter().map(step).collect()
}

/// Returns the logical index that an inverse gives at a physical index, and whether it claims that the index is
/// reached.
fn evaluate(inverse: &InverseClaim, symbols: &Bindings, at: &[i128]) -> Option<(Vec<i128>, bool)> {
    let mut bindings = symbols.clone();
    bindings.extend(inverse.vars.iter().cloned().zip(at.iter().copied()));
    let reached = inverse.padding.eval_index(&bindings).ok()? == 0;
    if !reached {
        return Some((Vec::new(), false));
    }
    Some((inverse.outputs.iter().map(|output| output.eval_index(&bindings).ok()).collect::<Option<_>>()?, true))
}

/// Whether the inverse takes the image of a logical index back to it.
fn leads_back(map: &IndexMap, inverse: &InverseClaim, symbols: &Bindings, logical: &[i128]) -> Option<bool> {
    let image = map.eval(logical, symbols).ok()?;
    let (back, reached) = evaluate(inverse, symbols, &image)?;
    Some(reached && back == logical)
}

/// Whether the map takes the logical index that the inverse claims for a physical one back to it; padding is not
/// checked.
fn leads_forth(map: &IndexMap, inverse: &InverseClaim, symbols: &Bindings, physical: &[i128]) -> Option<bool> {
    let (logical, reached) = evaluate(inverse, symbols, physical)?;
    Some(!reached || map.eval(&logical, symbols).ok()? == physical)
}

/// Describes two logical indices that the map takes to the same physical index, if there are any among the first
/// [`MAX_COLLISION_POINTS`] points.
pub(super) fn collision(map: &IndexMap, symbols: &Bindings) -> Option<String> {
    let mut extents = values(map.domain(), symbols)?;
    while extents
        .iter()
        .try_fold(1i128, |size, extent| size.checked_mul(*extent))
        .is_none_or(|size| size > MAX_COLLISION_POINTS)
    {
        // Halving the longest axis keeps all axes in play: a collision often needs two of them.
        let longest = extents.iter_mut().max()?;
        *longest = (*longest + 1) / 2;
    }
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let mut found = None;
    each_point(&extents, |at| {
        let Ok(image) = map.eval(at, symbols) else { return true };
        let words = |at: &[i128]| {
            let inner: Vec<_> = at.iter().map(ToString::to_string).collect();
            if let [only] = inner.as_slice() { only.clone() } else { format!("({})", inner.join(", ")) }
        };
        if let Some(other) = seen.get(&image) {
            found = Some(format!("{} and {} both land on {}", words(other), words(at), words(&image)));
            return false;
        }
        seen.insert(image, at.to_vec());
        true
    });
    let mut symbol_values: Vec<_> = symbols.iter().collect();
    symbol_values.sort();
    let symbol_values: Vec<_> = symbol_values.iter().map(|(var, value)| format!("{var} = {value}")).collect();
    found
        .map(|found| if symbol_values.is_empty() { found } else { format!("{found} for {}", symbol_values.join(", ")) })
}
