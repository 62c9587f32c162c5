//! Loops that become vectors with a remainder loop, rightly or with a mistake.
//!
//! ```text
//! for i in range(7):            for iv in range(2):
//!     B[0, i] = A[0, i]             B[0, T.Ramp(iv * 3, 1, 3)] = A[0, T.Ramp(iv * 3, 1, 3)]
//!                               for i in range(6, 7):
//!                                   B[0, i] = A[0, i]
//! ```

use super::nest::{Function, Node, mentions, replaced};
use super::recipe::{Base, How, Index, Kind, Twist, Value, View};
use super::rewrite::at_place;

/// A mistake that a loop gets while it becomes vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Nothing.
    None,
    /// The loads are shifted by one element.
    Offset,
    /// Each second element is read.
    Stride,
    /// All lanes read the same element.
    Same,
    /// There is no remainder loop.
    Remainder,
    /// The lanes are stored in reverse.
    Reversed,
    /// Lanes may read what others write.
    Together,
}

const MISTAKES: [Mistake; 6] =
    [Mistake::Offset, Mistake::Stride, Mistake::Same, Mistake::Remainder, Mistake::Reversed, Mistake::Together];

/// Applies a change at its place, or at the next one that it fits; says whether there is any.
pub(super) fn apply(function: &mut Function, base: &Base, twist: Twist) -> bool {
    let is_plain = matches!(base.view, View::Plain | View::Offset(_) | View::SymbolicOffset | View::SymbolicShape);
    let is_affine = matches!(base.index, Index::Element | Index::Column);
    // A conversion has the lanes of its type, and a texture takes no vector that is not its last index.
    let has_scalars = base.value == Value::Texture || (matches!(base.value, Value::Divided(_)) && !base.integers);
    if !is_plain || !is_affine || has_scalars {
        return false;
    }
    let number = usize::try_from(twist.by.rem_euclid(6)).unwrap_or(0);
    let mistake = if twist.how == How::Vectorize { Mistake::None } else { MISTAKES[number] };
    let lanes = 2 + i64::try_from(twist.place % 3).unwrap_or(0);
    at_place(&mut function.body, twist.place, &mut |list, at| {
        let Some(changed) = vectors(&list[at], lanes, mistake) else { return false };
        list.splice(at..=at, changed);
        true
    })
}

/// A loop around one store as a loop over vectors and one over the rest.
fn vectors(node: &Node, lanes: i64, mistake: Mistake) -> Option<Vec<Node>> {
    let Node::For { var, kind: Kind::Serial, min, extent, body } = node else { return None };
    let [Node::Store { buffer, index, value }] = body.as_slice() else { return None };
    let (extent, column) = (extent.parse::<i64>().ok()?, index.rsplit(", ").next()?);
    let outer = &index[..index.len() - column.len()];
    let is_affine = ["//", "%", "T.", "["].iter().all(|part| !index.contains(part));
    if extent < lanes || mentions(outer, var) || !mentions(column, var) || !is_affine {
        return None;
    }
    let own = format!("{buffer}[{index}]");
    if mistake != Mistake::Together && mentions(&value.replace(&own, "0"), buffer) {
        return None;
    }
    let high = format!("{var}v");
    let ramp = |offset: i64, stride: i64| format!("(T.Ramp({high} * {lanes} + {}, {stride}, {lanes}))", min + offset);
    let written = if mistake == Mistake::Reversed { ramp(lanes - 1, -1) } else { ramp(0, 1) };
    let read = match mistake {
        Mistake::Offset => ramp(1, 1),
        Mistake::Stride => ramp(0, 2),
        Mistake::Same => ramp(0, 0),
        Mistake::None | Mistake::Remainder | Mistake::Reversed | Mistake::Together => ramp(0, 1),
    };
    let vector =
        if mentions(value, var) { replaced(value, var, &read) } else { format!("T.Broadcast({value}, {lanes})") };
    let store = Node::Store { buffer, index: replaced(index, var, &written), value: vector };
    let serial = |var: &str, min: i64, extent: i64, body: Vec<Node>| Node::For {
        var: var.to_owned(),
        kind: Kind::Serial,
        min,
        extent: extent.to_string(),
        body,
    };
    let whole = extent / lanes;
    let mut found = vec![serial(&high, 0, whole, vec![store])];
    let rest = extent - whole * lanes;
    if rest > 0 && mistake != Mistake::Remainder {
        found.push(serial(var, min + whole * lanes, rest, body.clone()));
    }
    Some(found)
}
