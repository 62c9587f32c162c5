//! Changes that never change what a program computes.

use super::build::{in_order, is_one_to_one};
use super::nest::{Function, Node, any_list, mentions};
use super::recipe::{Base, How, Kind, Twist, Value};
use super::{asserts, storage, vectors};

/// Applies a change at its place, or at the next one that it fits; says whether there is any.
pub(super) fn apply(function: &mut Function, base: &Base, twist: Twist) -> bool {
    match twist.how {
        How::Alias => alias(function, base),
        How::Register | How::Doubled | How::CopyInput | How::CopyRows => storage::apply(function, base, twist),
        How::Vectorize => vectors::apply(function, base, twist),
        How::Reword => asserts::reword(function, twist),
        how => at_place(&mut function.body, twist.place, &mut |list, at| one(list, at, how, twist.by, base)),
    }
}

/// Tries a change at every statement, from the given one on, until it fits.
pub(super) fn at_place(
    body: &mut Vec<Node>,
    place: usize,
    change: &mut impl FnMut(&mut Vec<Node>, usize) -> bool,
) -> bool {
    let mut count = 0;
    any_list(body, &mut |list| {
        count += list.len();
        false
    });
    (0..count).any(|tried| {
        let mut left = (place + tried) % count.max(1);
        any_list(body, &mut |list| {
            if left >= list.len() {
                left -= list.len();
                return false;
            }
            let done = change(list, left);
            // No other list has this number.
            left = usize::MAX;
            done
        })
    })
}

/// Applies a change at a statement of a list, if it fits.
fn one(list: &mut Vec<Node>, at: usize, how: How, by: i64, base: &Base) -> bool {
    let changed = match how {
        How::Fuse => fused(&list[at]),
        How::Split => split(&list[at], 2 + by.rem_euclid(3)),
        How::Interchange => interchanged(&list[at], base),
        How::Shift => shifted(&list[at], if by == 0 { 1 } else { by }),
        How::Widen => widened(&list[at], by),
        How::Tighten => tightened(&list[at]),
        How::Unit => Some(vec![unit(list[at].clone())]),
        How::Join => joined(&list[at]),
        How::Nest => nested(&list[at], by),
        How::TrueGuard => with_true_guard(&list[at], by),
        How::DeadStore => with_dead_store(&list[at], base),
        How::Forward => return forward(list, at),
        How::Reorder => return reorder(list, at),
        How::Peel => peeled(&list[at]),
        How::Bind => bound(&list[at]),
        How::RegroupIntegers => {
            if base.integers {
                regrouped(&list[at])
            } else {
                None
            }
        }
        _ => None,
    };
    let Some(changed) = changed else { return false };
    list.splice(at..=at, changed);
    true
}

/// A serial loop with a constant extent.
fn serial(node: &Node) -> Option<(&str, i64, i64, &[Node])> {
    match node {
        Node::For { var, kind, min, extent, body } if in_order(*kind) => Some((var, *min, extent.parse().ok()?, body)),
        _ => None,
    }
}

/// A serial loop.
fn new_loop(var: impl Into<String>, min: i64, extent: i64, body: Vec<Node>) -> Node {
    Node::For { var: var.into(), kind: Kind::Serial, min, extent: extent.to_string(), body }
}

/// Statements with a name replaced.
fn substituted(body: &[Node], name: &str, by: &str) -> Vec<Node> {
    let mut body = body.to_vec();
    for node in &mut body {
        node.substitute(name, by);
    }
    body
}

/// Two perfectly nested loops as one loop over the product of their extents, in the same order.
fn fused(node: &Node) -> Option<Vec<Node>> {
    let (outer, first, rows, [inner]) = serial(node)? else { return None };
    let (inner, start, extent, body) = serial(inner)?;
    if extent < 1 {
        return None;
    }
    let both = format!("{outer}{inner}");
    let body = substituted(body, outer, &format!("{both} // {extent} + {first}"));
    let body = substituted(&body, inner, &format!("{both} % {extent} + {start}"));
    Some(vec![new_loop(both, 0, rows.checked_mul(extent)?, body)])
}

/// A loop as two, the inner one of the given extent; a guard excludes the iterations beyond the end.
fn split(node: &Node, by: i64) -> Option<Vec<Node>> {
    let (var, min, extent, body) = serial(node)?;
    let (high, low) = (format!("{var}h"), format!("{var}l"));
    let index = format!("{high} * {by} + {low}");
    let body = substituted(body, var, &format!("{index} + {min}"));
    let guard = Node::If { conditions: vec![format!("{index} < {extent}")], body };
    let inner = new_loop(low, 0, by, vec![guard]);
    Some(vec![new_loop(high, 0, extent / by + i64::from(extent % by != 0), vec![inner])])
}

/// Two perfectly nested loops in the other order. Only if iterations store to elements of their own and do not read those
/// of others.
fn interchanged(node: &Node, base: &Base) -> Option<Vec<Node>> {
    let reads_others = matches!(base.value, Value::Neighbour(_));
    let is_free = (is_one_to_one(base) && !reads_others)
        || (base.integers
            && base.value == Value::Accumulate
            && is_one_to_one(&Base { index: super::recipe::Index::Element, ..base.clone() }));
    let Node::For { var, kind: Kind::Serial, min, extent, body } = node else { return None };
    let [Node::For { var: inner, kind: Kind::Serial, min: start, extent: count, body }] = body.as_slice() else {
        return None;
    };
    if !is_free || mentions(count, var) {
        return None;
    }
    let inside =
        Node::For { var: var.clone(), kind: Kind::Serial, min: *min, extent: extent.clone(), body: body.clone() };
    Some(vec![Node::For {
        var: inner.clone(),
        kind: Kind::Serial,
        min: *start,
        extent: count.clone(),
        body: vec![inside],
    }])
}

/// A loop that starts `by` later; its body subtracts `by` again.
fn shifted(node: &Node, by: i64) -> Option<Vec<Node>> {
    let Node::For { var, kind, min, extent, body } = node else { return None };
    if kind.thread().is_some() {
        return None;
    }
    let body = substituted(body, var, &format!("{var} - {by}").replace("- -", "+ "));
    Some(vec![Node::For { var: var.clone(), kind: *kind, min: min + by, extent: extent.clone(), body }])
}

/// A loop with more iterations at its end or at its start, which a guard excludes.
fn widened(node: &Node, by: i64) -> Option<Vec<Node>> {
    let (var, min, extent, body) = serial(node)?;
    let more = 1 + by.rem_euclid(3);
    let (start, condition) =
        if by % 2 == 0 { (min, format!("{var} < {}", min + extent)) } else { (min - more, format!("{var} >= {min}")) };
    let body = vec![Node::If { conditions: vec![condition], body: body.to_vec() }];
    Some(vec![new_loop(var, start, extent + more, body)])
}

/// A guard of the form `var < number` becomes the bound.
fn tightened(node: &Node) -> Option<Vec<Node>> {
    let (var, min, extent, [Node::If { conditions, body }]) = serial(node)? else { return None };
    let bound: i64 = conditions.first()?.strip_prefix(&format!("{var} < "))?.parse().ok()?;
    let body = match &conditions[1..] {
        [] => body.clone(),
        rest => vec![Node::If { conditions: rest.to_vec(), body: body.clone() }],
    };
    Some(vec![new_loop(var, min, (bound - min).clamp(0, extent), body)])
}

/// A loop with one iteration around a statement.
fn unit(node: Node) -> Node {
    new_loop("u", 0, 1, vec![node])
}

/// Nested guards as one, which asks all conditions; not if an inner one may have no value where an outer one does not hold.
fn joined(node: &Node) -> Option<Vec<Node>> {
    let Node::If { conditions, body } = node else { return None };
    let [Node::If { conditions: more, body }] = body.as_slice() else { return None };
    if more.iter().any(|condition| may_trap(condition)) {
        return None;
    }
    Some(vec![Node::If { conditions: [conditions.as_slice(), more].concat(), body: body.clone() }])
}

/// A guard with several conditions as two nested guards.
fn nested(node: &Node, by: i64) -> Option<Vec<Node>> {
    let Node::If { conditions, body } = node else { return None };
    let places = i64::try_from(conditions.len()).ok()? - 1;
    let cut = 1 + usize::try_from(by.checked_rem_euclid(places)?).ok()?;
    if conditions[cut..].iter().any(|condition| may_trap(condition)) {
        return None;
    }
    let inner = Node::If { conditions: conditions[cut..].to_vec(), body: body.clone() };
    Some(vec![Node::If { conditions: conditions[..cut].to_vec(), body: vec![inner] }])
}

/// Whether a condition divides, shifts or reads memory.
fn may_trap(condition: &str) -> bool {
    ["//", "%", "<<", ">>", "["].iter().any(|part| condition.contains(part))
}

/// A loop whose body is guarded by a bound of the loop.
fn with_true_guard(node: &Node, by: i64) -> Option<Vec<Node>> {
    let Node::For { var, kind, min, extent, body } = node else { return None };
    let condition = match extent.parse::<i64>() {
        Ok(extent) if by % 2 == 0 => format!("{var} < {}", min + extent),
        _ => format!("{var} >= {min}"),
    };
    let body = vec![Node::If { conditions: vec![condition], body: body.clone() }];
    Some(vec![Node::For { var: var.clone(), kind: *kind, min: *min, extent: extent.clone(), body }])
}

/// A store of another value before a store to the same element; not if the value is read from the buffer.
fn with_dead_store(node: &Node, base: &Base) -> Option<Vec<Node>> {
    let Node::Store { buffer, index, value } = node else { return None };
    if mentions(value, buffer) {
        return None;
    }
    let other = if base.integers { "7" } else { "T.float32(7)" };
    Some(vec![Node::Store { buffer, index: index.clone(), value: other.into() }, node.clone()])
}

/// A load of the element of `C` that the statement before stores becomes the stored value.
fn forward(list: &mut [Node], at: usize) -> bool {
    let Some([Node::Store { buffer: "C", value: stored, .. }, Node::Store { value, .. }]) = list.get_mut(at..at + 2)
    else {
        return false;
    };
    if !value.starts_with("C[") {
        return false;
    }
    value.clone_from(stored);
    true
}

/// Two neighbouring stores in the other order. Only if they store to different buffers, and neither reads the other's.
fn reorder(list: &mut [Node], at: usize) -> bool {
    let Some([Node::Store { buffer: a, value: x, .. }, Node::Store { buffer: b, value: y, .. }]) = list.get(at..at + 2)
    else {
        return false;
    };
    let apart = a != b && !mentions(x, b) && !mentions(y, a);
    if apart {
        list.swap(at, at + 1);
    }
    apart
}

/// A loop without its first iteration, after the statements of that iteration.
fn peeled(node: &Node) -> Option<Vec<Node>> {
    let (var, min, extent, body) = serial(node)?;
    if extent < 2 {
        return None;
    }
    let mut peeled = substituted(body, var, &min.to_string());
    peeled.push(new_loop(var, min + 1, extent - 1, body.to_vec()));
    Some(peeled)
}

/// A store of a variable that is bound to the value.
fn bound(node: &Node) -> Option<Vec<Node>> {
    let Node::Store { buffer, index, value } = node else { return None };
    let body = vec![Node::Store { buffer, index: index.clone(), value: "y".into() }];
    Some(vec![Node::Let { var: "y".into(), value: value.clone(), body }])
}

/// `a + b + c` becomes `a + (b + c)`.
pub(super) fn regrouped(node: &Node) -> Option<Vec<Node>> {
    let Node::Store { buffer, index, value } = node else { return None };
    let terms: Vec<&str> = value.split(" + A[").collect();
    let [first, second, third] = terms.as_slice() else { return None };
    let value = format!("{first} + (A[{second} + A[{third})");
    Some(vec![Node::Store { buffer, index: index.clone(), value }])
}

/// Loads of `A` go through `W`, another name of its memory.
fn alias(function: &mut Function, base: &Base) -> bool {
    if base.huge.is_some() || function.locals.iter().any(|(name, _)| name == "W") {
        return false;
    }
    let form = function.params.iter().find_map(|param| match param {
        super::nest::Param::Buffer("A", form) => Some(form.clone()),
        _ => None,
    });
    let Some(form) = form else { return false };
    function.locals.push(("W".into(), format!("T.decl_buffer({form}, data=A.data)")));
    function.body.iter_mut().for_each(|node| node.map_text(&|text| super::nest::replaced(text, "A", "W")));
    true
}
