//! Changes that may change what a program computes.

use super::build::{condition, in_order, name_and_column};
use super::nest::{Function, Node};
use super::recipe::{Base, Guard, How, Kind, Twist, Value};
use super::rewrite::{at_place, regrouped};
use super::{asserts, storage, vectors};

/// Applies a change that is made in the recipe of the program, not in its statements; says whether it is one.
pub(super) fn in_base(base: &mut Base, how: How) -> bool {
    match how {
        How::NegateDivisor => {
            if let Value::Divided(by) = &mut base.value {
                *by = -*by;
            }
            if let Some(Guard::Quotient(divisor, _)) = &mut base.guard {
                *divisor = -*divisor;
            }
        }
        How::Ask(request) => base.request = request,
        How::Review(view) => base.view = view,
        _ => return false,
    }
    true
}

/// Applies a change to the statements, or to the order of the parameters.
pub(super) fn apply(function: &mut Function, base: &Base, twist: Twist) -> bool {
    match twist.how {
        How::PermuteScalars => {
            function.params.swap(0, 1);
            true
        }
        How::CopyOutput => storage::apply(function, base, twist),
        How::VectorizeWrongly => vectors::apply(function, base, twist),
        How::AlterAssertion => asserts::alter(function, twist),
        how => at_place(&mut function.body, twist.place, &mut |list, at| one(list, at, how, twist.by, base)),
    }
}

/// Applies a change at a statement of a list, if it fits.
fn one(list: &mut Vec<Node>, at: usize, how: How, by: i64, base: &Base) -> bool {
    let step = if by == 0 { 1 } else { by };
    if how == How::Exchange {
        let is_last = at + 1 == list.len();
        if !is_last {
            list.swap(at, at + 1);
        }
        return !is_last;
    }
    match (how, &mut list[at]) {
        (How::AddGuard(guard), node @ Node::Store { .. }) if !is_second(node) => {
            let (name, column) = name_and_column(base);
            *node = Node::If { conditions: vec![condition(guard, &name, &column)], body: vec![node.clone()] };
        }
        (How::DropGuard, Node::If { body, .. }) => {
            let body = body.clone();
            list.splice(at..=at, body);
        }
        (How::WeakenGuard, Node::If { conditions, .. }) => {
            return conditions.last_mut().is_some_and(|last| grow(last, step));
        }
        (How::Extent, Node::For { var, extent, .. }) if var != SECOND => return resized(extent, step),
        (How::Resize, Node::For { var, extent, .. }) if var == SECOND => return resized(extent, step),
        (How::Start, Node::For { kind, min, .. }) if kind.thread().is_none() => *min += step,
        (How::OtherHalf, Node::Store { buffer, index, .. }) if buffer.starts_with('R') && index.ends_with(" % 2") => {
            *index = format!("({}) % 2", index.replace(" % 2", " + 1"));
        }
        (How::AtOnce, Node::For { kind, .. }) if in_order(*kind) => *kind = Kind::Parallel,
        (How::AddToValue, Node::Store { value, .. }) => {
            let step = if base.integers { step.to_string() } else { format!("T.float32({step})") };
            *value = format!("{value} + {step}");
        }
        (How::RegroupFloats, node) if !base.integers => {
            let Some(mut changed) = regrouped(node) else { return false };
            return changed.pop().is_some_and(|changed| {
                *node = changed;
                true
            });
        }
        (How::Backwards, Node::For { var, min, extent, body, .. }) => {
            let Ok(count) = extent.parse::<i64>() else { return false };
            let index = format!("{} - {var}", 2 * *min + count - 1);
            for node in body {
                node.substitute(var, &index);
            }
        }
        _ => return false,
    }
    true
}

/// The variable of the loop over the second thread index.
const SECOND: &str = "p";

/// Whether a statement is in the second loop, where the names of the first are unknown.
fn is_second(node: &Node) -> bool {
    matches!(node, Node::Store { buffer: "D", .. })
}

/// Adds to the number at the end of a condition.
fn grow(condition: &mut String, by: i64) -> bool {
    let Some((rest, number)) = condition.rsplit_once(' ') else { return false };
    let Ok(number) = number.parse::<i64>() else { return false };
    *condition = format!("{rest} {}", number + by);
    true
}

/// Adds to an extent.
fn resized(extent: &mut String, by: i64) -> bool {
    let Ok(count) = extent.parse::<i64>() else { return false };
    *extent = (count + by).max(0).to_string();
    true
}
