//! Layout operations: each takes the axes that a map has so far to others.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

use crate::fuzz::config::Config;
use crate::fuzz::extents;

/// One operation on the axes that a map has so far. Axes are taken modulo their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// `x` becomes `x // b, x % b`.
    Split(usize, i64),
    /// `x, y` become `x * extent(y) + y`.
    Fuse(usize),
    /// `x, y` become `y, x`.
    Swap(usize),
    /// `x` becomes `x + before`, in an extent that is larger by `before + after`.
    Pad(usize, i64, i64),
    /// `x, y` become `x * (extent(y) + 1) + y`: rows with a gap behind each.
    PaddedRows(usize),
    /// `x, y` become `x // a, y // b, x % a, y % b`.
    Tile(usize, i64, i64),
    /// `x` becomes `(x + by) % extent`.
    Rotate(usize, i64),
    /// `x` becomes `extent - 1 - x`.
    Reverse(usize),
    /// `x, y` become `x, y ^ (x % p)` where `p` is the power of two that divides the extent of `y`.
    Swizzle(usize),
    /// `x` becomes `x, x % b`.
    Again(usize, i64),
    /// `x` becomes `x + b if x < extent - b else x - (extent - b)`.
    Cases(usize, i64),
}

/// An axis: its index and its extent.
#[derive(Clone)]
struct Axis {
    index: Expr,
    extent: i64,
}

/// A map, and the physical shape that its operations ask for.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The map.
    pub map: IndexMap,
    /// The physical shape.
    pub shape: Vec<Expr>,
}

fn int(value: i64) -> Expr {
    Expr::int(value)
}

fn split(axis: &Axis, by: i64) -> [Axis; 2] {
    let outer = Axis { index: axis.index.clone().floor_div(int(by)), extent: (axis.extent + by - 1) / by };
    [outer, Axis { index: axis.index.clone().floor_mod(int(by)), extent: by }]
}

impl Op {
    /// Draws an operation.
    ///
    /// # Errors
    /// Never for want of bytes.
    pub fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let at = u.int_in_range(0..=5usize)?;
        let by = extents::block(u, config)?;
        Ok(match u.int_in_range(0..=10)? {
            0 => Self::Split(at, by),
            1 => Self::Fuse(at),
            2 => Self::Swap(at),
            3 => Self::Pad(at, u.int_in_range(0..=2)?, u.int_in_range(0..=3)?),
            4 => Self::PaddedRows(at),
            5 => Self::Tile(at, by, extents::block(u, config)?),
            6 => Self::Rotate(at, by),
            7 => Self::Reverse(at),
            8 => Self::Swizzle(at),
            9 => Self::Again(at, by),
            _ => Self::Cases(at, by),
        })
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Split(..) => "split",
            Self::Fuse(_) => "fuse",
            Self::Swap(_) => "swap",
            Self::Pad(..) => "pad",
            Self::PaddedRows(_) => "padded_rows",
            Self::Tile(..) => "tile",
            Self::Rotate(..) => "rotate",
            Self::Reverse(_) => "reverse",
            Self::Swizzle(_) => "swizzle",
            Self::Again(..) => "again",
            Self::Cases(..) => "cases",
        }
    }

    fn apply(self, axes: &mut Vec<Axis>) {
        let rank = axes.len();
        let one = |axis: usize| axis % rank;
        match self {
            Self::Split(at, by) => {
                let parts = split(&axes[one(at)], by);
                axes.splice(one(at)..=one(at), parts);
            }
            Self::Fuse(at) | Self::PaddedRows(at) if rank > 1 => {
                let at = at % (rank - 1);
                let gap = i64::from(matches!(self, Self::PaddedRows(_)));
                let (high, low) = (axes[at].clone(), axes[at + 1].clone());
                let row = low.extent + gap;
                let fused = Axis { index: high.index * int(row) + low.index, extent: high.extent * row };
                axes.splice(at..=at + 1, [fused]);
            }
            Self::Swap(at) if rank > 1 => axes.swap(at % (rank - 1), at % (rank - 1) + 1),
            Self::Tile(at, a, b) if rank > 1 => {
                let at = at % (rank - 1);
                let ([outer, inner], [outer_next, inner_next]) = (split(&axes[at], a), split(&axes[at + 1], b));
                axes.splice(at..=at + 1, [outer, outer_next, inner, inner_next]);
            }
            Self::Swizzle(at) if rank > 1 => {
                let at = at % (rank - 1);
                let mask = 1 << axes[at + 1].extent.trailing_zeros();
                let moved = axes[at].index.clone().floor_mod(int(mask));
                axes[at + 1].index = Expr::binary(BinaryOp::BitXor, axes[at + 1].index.clone(), moved);
            }
            Self::Pad(at, before, after) => {
                let axis = &mut axes[one(at)];
                axis.index = axis.index.clone() + int(before);
                axis.extent += before + after;
            }
            Self::Rotate(at, by) => {
                let axis = &mut axes[one(at)];
                axis.index = (axis.index.clone() + int(by)).floor_mod(int(axis.extent));
            }
            Self::Reverse(at) => {
                let axis = &mut axes[one(at)];
                axis.index = int(axis.extent - 1) - axis.index.clone();
            }
            Self::Again(at, by) => {
                let again = Axis { index: axes[one(at)].index.clone().floor_mod(int(by)), extent: by };
                axes.insert(one(at) + 1, again);
            }
            Self::Cases(at, by) => {
                let axis = &mut axes[one(at)];
                let (x, edge) = (axis.index.clone(), axis.extent - by % axis.extent);
                let low = x.clone() + int(by % axis.extent);
                axis.index =
                    Expr::IfThenElse(Box::new(x.clone().lt(int(edge))), Box::new(low), Box::new(x - int(edge)));
            }
            // Operations of two axes do nothing to one.
            Self::Fuse(_) | Self::PaddedRows(_) | Self::Swap(_) | Self::Tile(..) | Self::Swizzle(_) => {}
        }
    }
}

/// The map that a sequence of operations makes of a shape.
pub fn generated(shape: &[i64], ops: &[Op]) -> Option<Generated> {
    let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
    let mut axes: Vec<Axis> =
        vars.iter().zip(shape).map(|(var, &extent)| Axis { index: Expr::from(var), extent }).collect();
    for op in ops {
        op.apply(&mut axes);
    }
    let outputs = axes.iter().map(|axis| axis.index.clone()).collect();
    let map = IndexMap::new(vars, shape.iter().copied().map(int).collect(), outputs, Vec::new()).ok()?;
    Some(Generated { map, shape: axes.iter().map(|axis| int(axis.extent)).collect() })
}
