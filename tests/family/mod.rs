//! A family of index maps, generated: sequences of layout operations on a shape, with and without a mistake.

use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

/// One operation on the axes that a map has so far. Axes are taken modulo their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
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
pub(crate) struct Generated {
    pub(crate) map: IndexMap,
    pub(crate) shape: Vec<Expr>,
}

fn int(value: i64) -> Expr {
    Expr::int(value)
}

fn split(axis: &Axis, by: i64) -> [Axis; 2] {
    let outer = Axis { index: axis.index.clone().floor_div(int(by)), extent: (axis.extent + by - 1) / by };
    [outer, Axis { index: axis.index.clone().floor_mod(int(by)), extent: by }]
}

impl Op {
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
                axis.index = Expr::IfThenElse(Box::new(x.clone().lt(int(edge))), Box::new(low), Box::new(x - int(edge)));
            }
            // Operations of two axes do nothing to one.
            Self::Fuse(_) | Self::PaddedRows(_) | Self::Swap(_) | Self::Tile(..) | Self::Swizzle(_) => {}
        }
    }
}

/// The map that a sequence of operations makes of a shape.
pub(crate) fn generated(shape: &[i64], ops: &[Op]) -> Generated {
    let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
    let mut axes: Vec<Axis> =
        vars.iter().zip(shape).map(|(var, &extent)| Axis { index: Expr::from(var), extent }).collect();
    for op in ops {
        op.apply(&mut axes);
    }
    let outputs = axes.iter().map(|axis| axis.index.clone()).collect();
    let map = IndexMap::new(vars, shape.iter().copied().map(int).collect(), outputs, Vec::new()).unwrap();
    Generated { map, shape: axes.iter().map(|axis| int(axis.extent)).collect() }
}

/// Every operation with small numbers, on any of the first `rank` axes.
pub(crate) fn single(rank: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    for axis in 0..rank {
        ops.extend([2, 3, 4].map(|by| Op::Split(axis, by)));
        ops.extend([Op::Pad(axis, 0, 1), Op::Pad(axis, 1, 0), Op::Pad(axis, 2, 1)]);
        ops.extend([Op::Rotate(axis, 1), Op::Rotate(axis, 3), Op::Reverse(axis), Op::Again(axis, 2), Op::Cases(axis, 2)]);
        if axis + 1 < rank {
            ops.extend([Op::Fuse(axis), Op::Swap(axis), Op::PaddedRows(axis), Op::Swizzle(axis)]);
            ops.extend([Op::Tile(axis, 2, 3), Op::Tile(axis, 3, 2)]);
        }
    }
    ops
}

/// The map with a mistake in one of its outputs, as people make them: floor for ceil in the shape, a wrong divisor, swapped
/// extents, an index left out.
pub(crate) fn broken(good: &Generated) -> Vec<Generated> {
    let mut found = Vec::new();
    let mut push = |outputs: Vec<Expr>, shape: Vec<Expr>| {
        let (vars, domain) = (good.map.vars().to_vec(), good.map.domain().to_vec());
        found.push(Generated { map: IndexMap::new(vars, domain, outputs, Vec::new()).unwrap(), shape });
    };
    let rank = good.shape.len();
    for at in 0..rank {
        let mut less = good.shape.clone();
        less[at] = int(i64::try_from(less[at].as_const_int().unwrap()).unwrap() - 1);
        push(good.map.outputs().to_vec(), less);
        let mut outputs = good.map.outputs().to_vec();
        outputs[at] = outputs[at].clone().floor_div(int(2));
        push(outputs, good.shape.clone());
        let mut outputs = good.map.outputs().to_vec();
        outputs[at] = outputs[(at + 1) % rank].clone();
        push(outputs, good.shape.clone());
    }
    found
}
