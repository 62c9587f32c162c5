//! Layout operations: each transforms the axes of a map.
//!
//! Every operation is total: axes are numbers modulo the number of axes, and an operation that
//! makes no sense for the axes at hand (an operation on two axes if there is one, an exclusive or
//! on an extent that is not a power of two) does nothing. Operations other than the
//! [mistakes](Op::is_mistake) preserve three properties: different indices remain different, every
//! index is within its extent, and no value exceeds `int32`.
//!
//! A mistake may or may not violate an obligation, depending on the axes: a dropped index of extent 1 changes nothing. So a
//! map with a mistake is not known to be wrong; evaluation at every point decides.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{BinaryOp, Expr, SharedExpr};

use super::axes::{Axes, Axis, int, minus, plus, quotient_and_rest, times};
use crate::config::Config;
use crate::extents;

/// An operation on the axes of a map. The first number is the axis, modulo the number of axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// `x` becomes `x // b, x % b`.
    Split(usize, i64),
    /// `x, y` become `x * extent(y) + y`.
    Fuse(usize),
    /// `x, y` become `y, x`.
    Swap(usize),
    /// Permutes all axes; the number of the permutation, modulo the number of permutations.
    Permute(u32),
    /// `x` becomes `x + before`, and the extent grows by `before + after`.
    Pad(usize, i64, i64),
    /// `x, y` become `x * (extent(y) + 1) + y`: rows with one element of padding.
    PaddedRows(usize),
    /// `x` becomes `x * b`, and the extent grows by the factor `b`.
    Stride(usize, i64),
    /// `x, y` become `x // a, y // b, x % a, y % b`.
    Tile(usize, i64, i64),
    /// Like [`Op::Tile`], with a second tiling within each tile: XLA's `T(a,b)(c,d)`.
    Nested(usize, [i64; 2], [i64; 2]),
    /// `x` becomes `(x + by) % extent`.
    Rotate(usize, i64),
    /// `x, y` become `x, (y + x) % extent(y)`.
    Skew(usize),
    /// `x` becomes `extent - 1 - x`.
    Reverse(usize),
    /// `x, y` become `x, y ^ (x % p)` where `p` is the power of two that divides the extent of `y`.
    Swizzle(usize),
    /// `x, y` become `x, y ^ ((x >> s) & (p - 1))`.
    SwizzleBits(usize, u8),
    /// `x` becomes `x ^ (x >> s)`, if its extent is a power of two.
    Gray(usize, u8),
    /// Rotates the bits of `x` by `s`, if its extent is a power of two.
    TurnBits(usize, u8),
    /// `x` becomes `x >> s, x & (2**s - 1)`.
    SplitBits(usize, u8),
    /// `x` becomes `x, x % b`.
    Again(usize, i64),
    /// `x` becomes `x + b if x < extent - b else x - (extent - b)`.
    Cases(usize, i64),
    /// `x` becomes `min(max(x, 0), extent - 1)`, which equals `x`.
    Clamp(usize),
    /// An axis separator before the axis, unless it is the first one.
    Separator(usize),
    /// A mistake: an index is dropped (the axis becomes 0).
    Drop(usize),
    /// A mistake: `x` becomes `x // b, x % (b - 1)`.
    WrongDivisor(usize, i64),
    /// A mistake: rows overlap, `x, y` become `x * (extent(y) - 1) + y`.
    WrongPitch(usize),
    /// A mistake: the wrong extent is the pitch, `x, y` become `x * extent(x) + y`.
    WrongExtent(usize),
    /// A mistake: `x, y` become `y, y`.
    Copy(usize),
    /// A mistake: `x, y` become `x, y ^ (x % 3)`, in the extent of `y`.
    WrongSwizzle(usize),
    /// A mistake: `x` becomes `x - by`.
    Before(usize, i64),
    /// A mistake of the shape: the extent is too small by one, as with rounding down instead of up.
    Less(usize),
    /// A mistake of the shape: the extent is too large by one.
    More(usize),
    /// A mistake: `x` becomes `x * b // b`, which equals `x` unless it overflows.
    Detour(usize, i64),
    /// A mistake: one bit is cleared, `x` becomes `x & ~(1 << s)`, with `s` modulo the number of
    /// bits of the extent.
    LoseBit(usize, u8),
    /// A mistake: `x` becomes `((x + e - a) % (e + b) + c) % (e + b + d)`, where `e` is its extent:
    /// for most parameters some remainders never occur.
    Remainders(usize, [i64; 4]),
}

/// Number of axes from which on operations that add axes do nothing.
const MAX_AXES: usize = 12;

/// Exclusive or.
fn xor(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::BitXor, a, b)
}

/// Shift to the right.
fn shifted(value: Expr, by: u32) -> Expr {
    Expr::binary(BinaryOp::Shr, value, int(i64::from(by)))
}

/// Bitwise and with a constant.
fn masked(value: Expr, mask: i64) -> Expr {
    Expr::binary(BinaryOp::BitAnd, value, int(mask))
}

impl Op {
    /// Draws an operation that is not a mistake, out of 24 equally likely choices: splits, fusions
    /// and paddings have several of them. The axis is a number from 0 to 7, parameters are block
    /// sizes of `config` or small numbers.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let at = u.int_in_range(0..=7usize)?;
        // Drawn even if the operation has no such parameter: which bytes a draw takes is part of the corpus's format.
        let by = extents::block(u, config)?;
        Ok(match u.int_in_range(0..=23)? {
            0..=2 => Self::Split(at, by),
            3 | 4 => Self::Fuse(at),
            5 => Self::Swap(at),
            // 720 is 6!, the number of permutations of a shape of the largest default rank.
            6 => Self::Permute(u.int_in_range(0..=719)?),
            7 | 8 => Self::Pad(at, u.int_in_range(0..=2)?, u.int_in_range(0..=3)?),
            9 => Self::PaddedRows(at),
            // The physical shape grows by the factor, and every element of it is looked at.
            10 => Self::Stride(at, by.min(4)),
            11 => Self::Tile(at, by, extents::block(u, config)?),
            12 => Self::Nested(at, [by, extents::block(u, config)?], [*u.choose(&[1, 2, 3])?, *u.choose(&[1, 2, 4])?]),
            13 => Self::Rotate(at, by),
            14 => Self::Skew(at),
            15 => Self::Reverse(at),
            16 => Self::Swizzle(at),
            17 => Self::SwizzleBits(at, u.int_in_range(0..=3)?),
            18 => Self::Gray(at, u.int_in_range(1..=3)?),
            19 => Self::TurnBits(at, u.int_in_range(1..=3)?),
            20 => Self::SplitBits(at, u.int_in_range(1..=4)?),
            21 => Self::Again(at, by),
            22 => match u.int_in_range(0..=1)? {
                0 => Self::Cases(at, by),
                _ => Self::Clamp(at),
            },
            _ => Self::Separator(at),
        })
    }

    /// Draws an operation that moves or mixes bits, for extents that are powers of two.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw_bits(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let at = u.int_in_range(0..=7usize)?;
        Ok(match u.int_in_range(0..=7)? {
            0 => Self::Swizzle(at),
            1 => Self::SwizzleBits(at, u.int_in_range(0..=3)?),
            2 => Self::Gray(at, u.int_in_range(1..=3)?),
            3 => Self::TurnBits(at, u.int_in_range(1..=3)?),
            4 => Self::SplitBits(at, u.int_in_range(1..=4)?),
            5 => Self::Split(at, 1 << u.int_in_range(1..=3)?),
            6 => Self::Fuse(at),
            _ => Self::Permute(u.int_in_range(0..=719)?),
        })
    }

    /// Draws a mistake, out of 13 equally likely choices; [`Op::Remainders`] has two of them.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw_mistake(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let at = u.int_in_range(0..=7usize)?;
        let by = extents::block(u, config)?;
        Ok(match u.int_in_range(0..=12)? {
            0 => Self::Drop(at),
            1 => Self::WrongDivisor(at, by),
            2 => Self::WrongPitch(at),
            3 => Self::WrongExtent(at),
            4 => Self::Copy(at),
            5 => Self::WrongSwizzle(at),
            6 => Self::Before(at, u.int_in_range(1..=2)?),
            7 => Self::Less(at),
            8 => Self::More(at),
            9 => Self::LoseBit(at, u.int_in_range(0..=15)?),
            10 | 11 => {
                let (start, more) = (u.int_in_range(0..=4)?, u.int_in_range(-1..=2)?);
                Self::Remainders(at, [start, more, u.int_in_range(0..=4)?, u.int_in_range(-1..=3)?])
            }
            _ => Self::Detour(at, *u.choose(&[1 << 20, 1 << 26, i64::from(i32::MAX)])?),
        })
    }

    /// A table of the names of operations, which are those of the serialized form, for the coverage table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Split(..) => "split",
            Self::Fuse(_) => "fuse",
            Self::Swap(_) => "swap",
            Self::Permute(_) => "permute",
            Self::Pad(..) => "pad",
            Self::PaddedRows(_) => "padded_rows",
            Self::Stride(..) => "stride",
            Self::Tile(..) => "tile",
            Self::Nested(..) => "nested",
            Self::Rotate(..) => "rotate",
            Self::Skew(_) => "skew",
            Self::Reverse(_) => "reverse",
            Self::Swizzle(_) => "swizzle",
            Self::SwizzleBits(..) => "swizzle_bits",
            Self::Gray(..) => "gray",
            Self::TurnBits(..) => "turn_bits",
            Self::SplitBits(..) => "split_bits",
            Self::Again(..) => "again",
            Self::Cases(..) => "cases",
            Self::Clamp(_) => "clamp",
            Self::Separator(_) => "separator",
            Self::Drop(_) => "drop",
            Self::WrongDivisor(..) => "wrong_divisor",
            Self::WrongPitch(_) => "wrong_pitch",
            Self::WrongExtent(_) => "wrong_extent",
            Self::Copy(_) => "copy",
            Self::WrongSwizzle(_) => "wrong_swizzle",
            Self::Before(..) => "before",
            Self::Less(_) => "less",
            Self::More(_) => "more",
            Self::Detour(..) => "detour",
            Self::LoseBit(..) => "lose_bit",
            Self::Remainders(..) => "remainders",
        }
    }

    /// Whether it may violate an obligation of maps: injective, within the shape, tight, within
    /// `int32`.
    pub fn is_mistake(self) -> bool {
        matches!(
            self,
            Self::Drop(_)
                | Self::WrongDivisor(..)
                | Self::WrongPitch(_)
                | Self::WrongExtent(_)
                | Self::Copy(_)
                | Self::WrongSwizzle(_)
                | Self::Before(..)
                | Self::Less(_)
                | Self::More(_)
                | Self::Detour(..)
                | Self::LoseBit(..)
                | Self::Remainders(..)
        )
    }

    /// Whether it preserves that a map is injective and within its shape.
    pub fn keeps_injective(self) -> bool {
        !self.is_mistake() || matches!(self, Self::More(_))
    }

    /// The same operation with smaller parameters, or a simpler operation in its place.
    pub fn simpler(self) -> Vec<Self> {
        let less = |by: i64| [2, 3, by / 2].into_iter().filter(move |less| *less >= 2 && *less < by);
        let first = |at: usize| at.checked_sub(1);
        match self {
            Self::Split(at, by) => less(by).map(|by| Self::Split(at, by)).collect(),
            Self::Stride(at, by) => less(by).map(|by| Self::Stride(at, by)).collect(),
            Self::Rotate(at, by) => less(by).map(|by| Self::Rotate(at, by)).collect(),
            Self::Again(at, by) => less(by).map(|by| Self::Again(at, by)).collect(),
            Self::Cases(at, by) => less(by).map(|by| Self::Cases(at, by)).collect(),
            Self::WrongDivisor(at, by) => less(by).map(|by| Self::WrongDivisor(at, by)).collect(),
            Self::Detour(at, by) => less(by).map(|by| Self::Detour(at, by)).collect(),
            Self::Tile(at, a, b) => {
                let rows = less(a).map(|a| Self::Tile(at, a, b));
                [Self::Split(at, a)].into_iter().chain(rows).chain(less(b).map(|b| Self::Tile(at, a, b))).collect()
            }
            Self::Nested(at, [a, b], _) => vec![Self::Tile(at, a, b)],
            Self::Pad(at, before, after) if before + after > 1 => {
                vec![Self::Pad(at, before.min(1), 0), Self::Pad(at, 0, 1)]
            }
            // Every candidate costs a check of the case, so only the first few of up to 720 permutations are tried.
            Self::Permute(number) => (0..number.min(6)).map(Self::Permute).collect(),
            Self::Swizzle(at) => first(at).map(Self::Swizzle).into_iter().collect(),
            Self::SwizzleBits(at, by) if by > 0 => vec![Self::SwizzleBits(at, by - 1)],
            Self::Gray(at, by) if by > 1 => vec![Self::Gray(at, by - 1)],
            Self::TurnBits(at, by) if by > 1 => vec![Self::TurnBits(at, by - 1)],
            Self::SplitBits(at, by) if by > 1 => vec![Self::SplitBits(at, by - 1)],
            Self::Before(at, by) if by > 1 => vec![Self::Before(at, by - 1)],
            Self::Pad(..)
            | Self::SwizzleBits(..)
            | Self::Gray(..)
            | Self::TurnBits(..)
            | Self::SplitBits(..)
            | Self::Before(..)
            | Self::Fuse(_)
            | Self::Swap(_)
            | Self::PaddedRows(_)
            | Self::Skew(_)
            | Self::Reverse(_)
            | Self::Clamp(_)
            | Self::Separator(_)
            | Self::Drop(_)
            | Self::WrongPitch(_)
            | Self::WrongExtent(_)
            | Self::Copy(_)
            | Self::WrongSwizzle(_)
            | Self::Less(_)
            | Self::More(_)
            | Self::LoseBit(..)
            | Self::Remainders(..) => Vec::new(),
        }
    }

    /// Applies the operation, unless an extent would exceed 2^30 or there would be too many axes.
    pub(super) fn apply(self, axes: &mut Axes) {
        let before = axes.clone();
        match self {
            Self::Permute(number) => axes.permute(number),
            Self::Split(at, _)
            | Self::Stride(at, _)
            | Self::Pad(at, ..)
            | Self::Rotate(at, _)
            | Self::Reverse(at)
            | Self::Gray(at, _)
            | Self::TurnBits(at, _)
            | Self::SplitBits(at, _)
            | Self::Again(at, _)
            | Self::Cases(at, _)
            | Self::Clamp(at)
            | Self::Drop(at)
            | Self::WrongDivisor(at, _)
            | Self::Before(at, _)
            | Self::Less(at)
            | Self::More(at)
            | Self::Detour(at, _)
            | Self::LoseBit(at, _)
            | Self::Remainders(at, _) => {
                let at = at % axes.len().max(1);
                if let Some(axis) = axes.get(at) {
                    let parts = self.of_one(axis);
                    axes.replace(at, 1, parts);
                }
            }
            Self::Separator(at) if axes.len() > 1 => axes.separate(1 + at % (axes.len() - 1)),
            Self::Fuse(at)
            | Self::Swap(at)
            | Self::PaddedRows(at)
            | Self::Tile(at, ..)
            | Self::Nested(at, ..)
            | Self::Skew(at)
            | Self::Swizzle(at)
            | Self::SwizzleBits(at, _)
            | Self::WrongPitch(at)
            | Self::WrongExtent(at)
            | Self::Copy(at)
            | Self::WrongSwizzle(at)
                if axes.len() > 1 =>
            {
                let at = at % (axes.len() - 1);
                if let (Some(x), Some(y)) = (axes.get(at), axes.get(at + 1)) {
                    let parts = self.of_two(x, y);
                    axes.replace(at, 2, parts);
                }
            }
            // Operations of two axes do nothing to one.
            Self::Separator(_)
            | Self::Fuse(_)
            | Self::Swap(_)
            | Self::PaddedRows(_)
            | Self::Tile(..)
            | Self::Nested(..)
            | Self::Skew(_)
            | Self::Swizzle(_)
            | Self::SwizzleBits(..)
            | Self::WrongPitch(_)
            | Self::WrongExtent(_)
            | Self::Copy(_)
            | Self::WrongSwizzle(_) => {}
        }
        if axes.len() > MAX_AXES.max(before.len()) || !axes.are_small() {
            *axes = before;
        }
    }

    /// The axes that replace one axis. Operations that do not apply to it return it unchanged.
    fn of_one(self, axis: &Axis) -> Vec<Axis> {
        let (x, extent) = (axis.index.clone(), axis.extent.clone());
        let with = |index: Expr| vec![Axis { index, extent: axis.extent.clone() }];
        match self {
            Self::Split(_, by) => axis.split(by).to_vec(),
            Self::Stride(_, by) => vec![Axis { index: times(x, &int(by)), extent: times(extent, &int(by)) }],
            Self::Pad(_, before, after) => {
                vec![Axis { index: plus(x, before), extent: plus(extent, before + after) }]
            }
            Self::Rotate(_, by) => with((x + int(by)).floor_mod(extent)),
            Self::Reverse(_) => with(plus(extent, -1) - x),
            Self::Gray(_, by) if axis.bits().is_some() => with(xor(x.clone(), shifted(x, u32::from(by.max(1))))),
            // Drawn rotations are by at most 3 bits, so with 20 bits the shifted value is below 2^23 and fits `int32`.
            Self::TurnBits(_, by) => match axis.bits().filter(|bits| (2..=20).contains(bits)) {
                Some(bits) => {
                    let by = u32::from(by) % bits;
                    let high = masked(Expr::binary(BinaryOp::Shl, x.clone(), int(i64::from(by))), (1 << bits) - 1);
                    with(Expr::binary(BinaryOp::BitOr, high, shifted(x, bits - by)))
                }
                None => vec![axis.clone()],
            },
            Self::SplitBits(_, by) => {
                let by = u32::from(by.clamp(1, 8));
                let [outer, inner] = axis.split(1 << by);
                vec![Axis { index: shifted(x.clone(), by), ..outer }, Axis { index: masked(x, (1 << by) - 1), ..inner }]
            }
            Self::Again(_, by) => vec![axis.clone(), Axis { index: x.floor_mod(int(by)), extent: int(by) }],
            Self::Cases(_, by) => {
                // With 0 <= by < extent, `edge` is at least 1 and both branches stay inside.
                let by = axis.constant().map_or(int(by).floor_mod(extent.clone()), |extent| int(by % extent));
                let edge = minus(extent, &by);
                let (low, high) = (x.clone() + by, x.clone() - edge.clone());
                with(Expr::IfThenElse(SharedExpr::new(x.lt(edge)), SharedExpr::new(low), SharedExpr::new(high)))
            }
            Self::Clamp(_) => {
                let low = Expr::binary(BinaryOp::Max, x, int(0));
                with(Expr::binary(BinaryOp::Min, low, plus(extent, -1)))
            }
            Self::Drop(_) => with(int(0)),
            Self::WrongDivisor(_, by) => {
                let [outer, inner] = axis.split(by);
                let index = quotient_and_rest(&x, by - 1).1;
                vec![outer, Axis { index, ..inner }]
            }
            Self::Before(_, by) => with(x - int(by)),
            Self::Less(_) if axis.constant() != Some(1) => vec![Axis { index: x, extent: plus(extent, -1) }],
            Self::More(_) => vec![Axis { index: x, extent: plus(extent, 1) }],
            Self::Detour(_, by) => with((x * int(by)).floor_div(int(by))),
            Self::LoseBit(_, bit) => {
                let bit = u32::from(bit) % axis.bits().unwrap_or(3).max(1);
                // Extents are at most 2^30, so a mask of 30 bits clears no other bit of an index within them.
                with(masked(x, !(1i64 << bit) & 0x3fff_ffff))
            }
            Self::Remainders(_, [less, more, then, last]) => {
                let divisor = |by: i64| match plus(extent.clone(), by) {
                    by if by.as_const_int().is_some_and(|by| by < 2) => int(2),
                    by => by,
                };
                let start = plus(extent.clone(), -less);
                let first = folded_sum(x, start).floor_mod(divisor(more));
                let last = divisor(more + last);
                vec![Axis { index: plus(first, then).floor_mod(last.clone()), extent: last }]
            }
            _ => vec![axis.clone()],
        }
    }

    /// The axes that replace two neighbouring axes. Operations that do not apply to them return
    /// them unchanged.
    fn of_two(self, x: &Axis, y: &Axis) -> Vec<Axis> {
        let fused = |pitch: Expr| {
            let index = times(x.index.clone(), &pitch) + y.index.clone();
            vec![Axis { index, extent: times(x.extent.clone(), &pitch) }]
        };
        let mixed = |index: Expr| vec![x.clone(), Axis { index, extent: y.extent.clone() }];
        match self {
            Self::Fuse(_) => fused(y.extent.clone()),
            Self::Swap(_) => vec![y.clone(), x.clone()],
            Self::PaddedRows(_) => fused(plus(y.extent.clone(), 1)),
            Self::Tile(_, a, b) => tiled(x, y, a, b),
            Self::Nested(_, [a, b], [c, d]) => {
                let outer = tiled(x, y, a, b);
                let [.., rows, columns] = outer.as_slice() else { return outer };
                [&outer[..2], &tiled(rows, columns, c, d)].concat()
            }
            Self::Skew(_) => mixed((y.index.clone() + x.index.clone()).floor_mod(y.extent.clone())),
            // `x % p` is below the power of two `p`, which divides the extent of `y`, so `y` stays in its block of `p`.
            Self::Swizzle(_) => mixed(xor(y.index.clone(), quotient_and_rest(&x.index, y.power()).1)),
            Self::SwizzleBits(_, by) if y.power() > 1 => {
                let moved = masked(shifted(x.index.clone(), u32::from(by)), y.power() - 1);
                mixed(xor(y.index.clone(), moved))
            }
            // With an extent of 1 the pitch and the new extent would be 0.
            Self::WrongPitch(_) if y.constant() != Some(1) => fused(plus(y.extent.clone(), -1)),
            Self::WrongExtent(_) => {
                let index = times(x.index.clone(), &x.extent) + y.index.clone();
                vec![Axis { index, extent: times(x.extent.clone(), &y.extent) }]
            }
            Self::Copy(_) => vec![Axis { index: y.index.clone(), extent: x.extent.clone() }, y.clone()],
            Self::WrongSwizzle(_) => mixed(xor(y.index.clone(), quotient_and_rest(&x.index, 3).1)),
            _ => vec![x.clone(), y.clone()],
        }
    }
}

/// `a + b`, folded if `b` is a small constant.
fn folded_sum(a: Expr, b: Expr) -> Expr {
    match b.as_const_int().and_then(|value| i64::try_from(value).ok()) {
        Some(value) => plus(a, value),
        None => a + b,
    }
}

/// The axes `x // a, y // b, x % a, y % b`.
fn tiled(x: &Axis, y: &Axis, a: i64, b: i64) -> Vec<Axis> {
    let ([outer, inner], [outer_next, inner_next]) = (x.split(a), y.split(b));
    vec![outer, outer_next, inner, inner_next]
}

/// Every kind of operation with small parameters, on each of the first `rank` axes.
pub fn single(rank: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    for axis in 0..rank {
        ops.extend([2, 3, 4].map(|by| Op::Split(axis, by)));
        ops.extend([Op::Pad(axis, 0, 1), Op::Pad(axis, 1, 0), Op::Pad(axis, 2, 1)]);
        ops.extend([
            Op::Rotate(axis, 1),
            Op::Rotate(axis, 3),
            Op::Reverse(axis),
            Op::Again(axis, 2),
            Op::Cases(axis, 2),
        ]);
        if axis + 1 < rank {
            ops.extend([Op::Fuse(axis), Op::Swap(axis), Op::PaddedRows(axis), Op::Swizzle(axis)]);
            ops.extend([Op::Tile(axis, 2, 3), Op::Tile(axis, 3, 2)]);
        }
    }
    ops
}
