//! Races looked for among the iterations themselves.
//!
//! Each iteration of both accesses is evaluated by the language's own evaluation. For constant extents, and where neither
//! scalars nor memory decide what is touched, that is all of them, and finding nothing is a proof.

use std::collections::HashMap;

use tilewright_ir::{Bindings, Buffer, Expr, Var};

use super::{Pair, is_linear};
use crate::access::{Access, at_point};
use crate::concrete::{instances, tuple};
use crate::door::everywhere;
use crate::judge::Decision;
use crate::lanes::values;
use crate::method::{Method, Points};
use crate::verdict::{Counterexample, Verdict};

/// An element, or one byte of it: the iteration of the loops outside, and the place.
type Key = (Vec<i128>, Vec<i128>);

/// What all iterations say, or some that race; `None` if there are more than `limit` of them, or something has no value.
pub(super) fn tried(pair: &Pair<'_>, limit: usize) -> Option<Decision> {
    let symbols = &pair.one.path.symbols;
    let (mut is_complete, mut looked_at) = (symbols.is_empty(), 0);
    for instance in instances(symbols) {
        match race_at(pair, &instance, limit, &mut looked_at) {
            Ok(None) => {}
            Ok(Some(found)) => return Some((Verdict::Refuted(found), Method::Evaluation)),
            Err(Incomplete) => is_complete = false,
        }
    }
    is_complete.then_some((everywhere(looked_at), Method::Enumeration(Points::All)))
}

/// Some iterations were not looked at.
struct Incomplete;

/// Two iterations that touch one element, for one choice of the extents. Counts the iterations that are looked at.
fn race_at(
    pair: &Pair<'_>,
    instance: &Bindings,
    limit: usize,
    looked_at: &mut u64,
) -> Result<Option<Counterexample>, Incomplete> {
    let var = pair.var().ok_or(Incomplete)?;
    let outer: Vec<Expr> = outer_loops(pair).iter().map(Expr::from).collect();
    // An element that two iterations touch races with any third one: two are enough to know.
    let mut seen: HashMap<Key, (i128, Option<i128>)> = HashMap::new();
    let mut is_clear = true;
    let (_, is_complete) = pair.one.path.each_iteration(instance, limit, &mut |bindings| {
        let Some((outside, at)) = values(&outer, bindings).zip(bindings.get(var).copied()) else {
            is_clear = false;
            return None::<()>;
        };
        let Some(places) = places(pair, pair.one, bindings) else {
            is_clear = false;
            return None;
        };
        *looked_at += 1;
        for place in places {
            let (first, second) = seen.entry((outside.clone(), place)).or_insert((at, None));
            if *first != at {
                *second = Some(at);
            }
        }
        None
    });
    is_clear &= is_complete;
    let (found, is_complete) = pair.two.path.each_iteration(instance, limit, &mut |bindings| {
        let Some((outside, at)) = values(&outer, bindings).zip(bindings.get(var).copied()) else {
            is_clear = false;
            return None;
        };
        let Some(places) = places(pair, pair.two, bindings) else {
            is_clear = false;
            return None;
        };
        *looked_at += 1;
        places.into_iter().find_map(|place| {
            let (first, second) = seen.get(&(outside.clone(), place))?;
            let other = [Some(*first), *second].into_iter().flatten().find(|other| *other != at)?;
            Some(describe(pair, var, other, bindings))
        })
    });
    match found {
        Some(found) => Ok(Some(found)),
        None if is_clear && is_complete => Ok(None),
        None => Err(Incomplete),
    }
}

/// The variables of the loops outside, which have the same values for both iterations.
fn outer_loops(pair: &Pair<'_>) -> Vec<Var> {
    let is_outside = |var: &Var| Some(var) != pair.var();
    pair.one.path.loops().into_iter().take_while(is_outside).collect()
}

/// What an access touches: the index of its element; or its bytes, where the two accesses are of different buffers.
fn places(pair: &Pair<'_>, access: &Access, bindings: &Bindings) -> Option<Vec<Vec<i128>>> {
    let index = values(&access.indices, bindings)?;
    if pair.has_own_indices() {
        return Some(vec![index]);
    }
    let start = position(&access.buffer, &index, bindings)?;
    let size = i128::from(access.buffer.dtype.bytes());
    let start = start.checked_mul(size)?;
    (0..size).map(|byte| start.checked_add(byte).map(|byte| vec![byte])).collect()
}

/// The position of an element in its memory, in elements of its buffer.
fn position(buffer: &Buffer, index: &[i128], bindings: &Bindings) -> Option<i128> {
    if !is_linear(buffer) {
        return None;
    }
    let offset = buffer.elem_offset.eval_index(bindings).ok()?;
    if let Some(strides) = &buffer.strides {
        let strides = values(strides, bindings)?;
        let mut parts = index.iter().zip(strides);
        return parts.try_fold(offset, |sum, (index, stride)| sum.checked_add(index.checked_mul(stride)?));
    }
    let extents = values(&buffer.shape, bindings)?;
    let mut row_major = index.iter().zip(extents);
    let within = row_major.try_fold(0i128, |sum, (index, extent)| sum.checked_mul(extent)?.checked_add(*index))?;
    offset.checked_add(within)
}

/// The counterexample: both iterations, and the element.
fn describe(pair: &Pair<'_>, var: &Var, other: i128, bindings: &Bindings) -> Counterexample {
    let at = bindings.get(var).copied().unwrap_or_default();
    let (first, second) = (at.min(other), at.max(other));
    let index = values(&pair.two.indices, bindings).unwrap_or_default();
    let (one, two) = (&pair.one.text, &pair.two.text);
    let text = if one == two && pair.has_own_indices() {
        format!("race: `{two}` touches element {} of `{}`", tuple(&index), pair.two.buffer)
    } else {
        format!("race: `{one}` and `{two}` touch element {} of `{}`", tuple(&index), pair.two.buffer)
    };
    let text = format!("{text} in iterations {first} and {second} of `{var}`, which run at once");
    at_point(&pair.two.path, bindings, text)
}
