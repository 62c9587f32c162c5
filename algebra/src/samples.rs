//! Trial: a result of the algebra is tried on points before it is given out, with symbolic extents bound to small numbers.

use std::collections::HashMap;

use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim, Var};

use super::extreme::each_point;

/// Points on which an inverse is tried, for each choice of the symbolic extents.
const SAMPLES: u64 = 64;
/// Logical points among which a collision is looked for.
const COLLIDING: i128 = 1 << 14;

/// Small values of all symbols of a map, and of more extents, under which the assumptions hold; a few.
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

fn values(exprs: &[Expr], symbols: &Bindings) -> Option<Vec<i128>> {
    exprs.iter().map(|expr| expr.eval_index(symbols).ok()).collect()
}

/// Tries an inverse on logical and physical points.
pub(super) fn holds(map: &IndexMap, physical: &[Expr], inverse: &InverseClaim, symbols: &Bindings) -> bool {
    let (Some(logical), Some(physical)) = (values(map.domain(), symbols), values(physical, symbols)) else {
        return false;
    };
    // Over an empty domain nothing has to be right, and no place is reached.
    let empty = logical.iter().any(|&extent| extent < 1);
    let no_places = physical.iter().any(|&extent| extent < 1);
    (0..SAMPLES).all(|seed| {
        (empty || leads_back(map, inverse, symbols, &point(&logical, seed)) == Some(true))
            && (no_places || is_reached(map, inverse, symbols, &point(&physical, seed)) == Some(true))
    })
}

/// The first, the last, and then arbitrary points of a shape.
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

fn evaluate(inverse: &InverseClaim, symbols: &Bindings, at: &[i128]) -> Option<(Vec<i128>, bool)> {
    let mut bindings = symbols.clone();
    bindings.extend(inverse.vars.iter().cloned().zip(at.iter().copied()));
    let reached = inverse.padding.eval_index(&bindings).ok()? == 0;
    if !reached {
        return Some((Vec::new(), false));
    }
    Some((inverse.outputs.iter().map(|output| output.eval_index(&bindings).ok()).collect::<Option<_>>()?, true))
}

fn leads_back(map: &IndexMap, inverse: &InverseClaim, symbols: &Bindings, logical: &[i128]) -> Option<bool> {
    let image = map.eval(logical, symbols).ok()?;
    let (back, reached) = evaluate(inverse, symbols, &image)?;
    Some(reached && back == logical)
}

fn is_reached(map: &IndexMap, inverse: &InverseClaim, symbols: &Bindings, physical: &[i128]) -> Option<bool> {
    let (logical, reached) = evaluate(inverse, symbols, physical)?;
    Some(!reached || map.eval(&logical, symbols).ok()? == physical)
}

/// Two logical points that land on the same place, in words.
pub(super) fn collision(map: &IndexMap, symbols: &Bindings) -> Option<String> {
    let mut extents = values(map.domain(), symbols)?;
    while extents.iter().try_fold(1i128, |size, extent| size.checked_mul(*extent)).is_none_or(|size| size > COLLIDING) {
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
    let mut of: Vec<_> = symbols.iter().collect();
    of.sort();
    let of: Vec<_> = of.iter().map(|(var, value)| format!("{var} = {value}")).collect();
    found.map(|found| if of.is_empty() { found } else { format!("{found} for {}", of.join(", ")) })
}
