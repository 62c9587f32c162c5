//! Logical coordinates of elements, and the indices that they have in an arrangement.
//!
//! ```text
//! logical channel 4 * b + l     in NCHW4c: block b, lane l        row-major: 4 * b + l, if that is a channel
//! logical channel c             in NCHW4c: block c / 4, lane c % 4  row-major: c
//! ```

use tilewright_compiler::te::build::{Builder, Tensor, cast, if_then_else};
use tilewright_ir::{BinaryOp, DataType, Diagnostic, Expr, ScalarType};

use super::int;
use crate::place::{Arrangement, Operand};

/// A coordinate along one logical axis.
#[derive(Clone, Debug)]
pub(super) enum Coord {
    /// A number.
    Whole(Expr),
    /// `4 * block + lane`, where the lanes of a texel are computed together.
    Split {
        /// The number of the texel.
        block: Expr,
        /// The lane, 0 to 3.
        lane: Expr,
    },
}

impl Coord {
    /// The coordinate as a number.
    pub(super) fn whole(&self) -> Expr {
        match self {
            Self::Whole(at) => at.clone(),
            Self::Split { block, lane } => block.clone() * Expr::int(4) + lane.clone(),
        }
    }

    /// The coordinate as texel and lane.
    fn split(&self) -> (Expr, Expr) {
        match self {
            Self::Whole(at) => match at.as_const_int().and_then(|at| i64::try_from(at).ok()) {
                Some(at) => (Expr::int(at / 4), Expr::int(at % 4)),
                None => (at.clone().floor_div(Expr::int(4)), at.clone().floor_mod(Expr::int(4))),
            },
            Self::Split { block, lane } => (block.clone(), lane.clone()),
        }
    }
}

/// The logical coordinates of the element with these indices in memory.
pub(super) fn of_indices(operand: &Operand, indices: &[Expr]) -> Vec<Coord> {
    let axis = operand.arrangement.packed_axis();
    let lane = indices.last().cloned().unwrap_or_else(|| Expr::int(0));
    let coord = |(at, index): (usize, &Expr)| match axis {
        Some(axis) if axis == at => Coord::Split { block: index.clone(), lane: lane.clone() },
        Some(_) | None => Coord::Whole(index.clone()),
    };
    indices.iter().take(operand.shape.len()).enumerate().map(coord).collect()
}

/// The element at logical coordinates, as float32. Coordinates that are padding of a texel give 0 where the operand has no
/// such element.
pub(super) fn load(te: &Builder, (tensor, operand): (Tensor, &Operand), at: &[Coord]) -> Result<Expr, Diagnostic> {
    let mut indices = Vec::new();
    let mut guard = None;
    let mut lane = None;
    for (axis, (coord, &extent)) in at.iter().zip(&operand.shape).enumerate() {
        if operand.arrangement.packed_axis() == Some(axis) {
            let (block, within) = coord.split();
            indices.push(block);
            lane = Some(within);
        } else {
            indices.push(coord.whole());
            let is_split = matches!(coord, Coord::Split { .. });
            guard = guard.or_else(|| (is_split && extent % 4 != 0).then(|| coord.whole().lt(int(extent))));
        }
    }
    indices.extend(lane);
    if indices.is_empty() {
        indices.push(Expr::int(0));
    }
    let value = cast(te.load(tensor, &indices)?, FLOAT);
    match guard {
        Some(guard) => if_then_else(guard, value, float(0.0)),
        None => Ok(value),
    }
}

/// The element of an operand that is broadcast to a result of more axes: an axis of extent 1 has one element.
pub(super) fn load_broadcast(
    te: &Builder,
    (tensor, operand): (Tensor, &Operand),
    at: &[Coord],
) -> Result<Expr, Diagnostic> {
    if operand.arrangement == Arrangement::Vector4 {
        // A constant for each channel, whatever its logical axes were.
        return load(te, (tensor, operand), &at[1..2]);
    }
    let own = &at[at.len().saturating_sub(operand.shape.len())..];
    let first = |(coord, &extent): (&Coord, &u64)| if extent == 1 { Coord::Whole(Expr::int(0)) } else { coord.clone() };
    let own: Vec<Coord> = own.iter().zip(&operand.shape).map(first).collect();
    load(te, (tensor, operand), &own)
}

/// The type that kernels compute in.
pub(super) const FLOAT: DataType = DataType::scalar(ScalarType::Float32);

/// A constant of that type.
pub(super) fn float(value: f32) -> Expr {
    Expr::float_of(value.into(), ScalarType::Float32)
}

/// `low <= at < high`, without the comparison that always holds.
pub(super) fn within(at: &Expr, low: u64, high: u64) -> Expr {
    let below = at.clone().lt(int(high));
    if low == 0 { below } else { Expr::binary(BinaryOp::Ge, at.clone(), int(low)).and(below) }
}
