//! Indices of loads. They are within the tensor whatever the recipe says.

use tilewright_ir::{BinaryOp, DataType, Expr, ScalarType, SharedExpr};

use super::tensors::Made;
use crate::program::recipe::{At, Edge};

/// An axis of the loop nest around a value.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The index without the lane: that of the first lane in a vector statement, and of channel 0
    /// in the loop over the channels of a texel.
    pub(super) base: Expr,
    /// The index including the lane.
    pub(super) full: Expr,
    /// The extent of the axis.
    pub(super) extent: i64,
}

/// How a statement is vectorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// It is scalar. The lanes of vector elements do not count.
    None,
    /// It stores this number of elements along this axis.
    Vector(usize, u16),
    /// It is in a loop over the channels of this axis, which becomes the store of a texel.
    Texel(usize),
}

/// The loop nest around a value.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// The axes of the target, then the reduced axes.
    pub(super) axes: Vec<Axis>,
    /// The type of the indices.
    pub(super) ty: ScalarType,
    /// How the statement is vectorized.
    pub(super) lanes: Lanes,
    /// Whether the stored texels are parts of a longer axis.
    pub(super) is_packed: bool,
}

/// An affine index: without and with the lane, the range of its values, and its difference from
/// lane to lane.
struct Affine {
    base: Expr,
    full: Expr,
    range: (i64, i64),
    step: i64,
}

/// The indices of a load, and the condition under which they are within the tensor; `None` if they
/// always are.
pub(super) struct LoadIndices {
    pub(super) indices: Vec<Expr>,
    pub(super) inside: Option<Expr>,
}

impl Nest {
    /// A constant of the index type.
    pub(super) fn int(&self, value: i64) -> Expr {
        Expr::Int { value: value.into(), ty: self.ty }
    }

    /// The axis with this number, modulo the number of axes.
    pub(super) fn axis(&self, number: usize) -> Option<&Axis> {
        self.axes.get(number % self.axes.len().max(1))
    }

    /// The difference of an axis' index from lane to lane: 0 or 1.
    fn step(&self, number: usize) -> i64 {
        let number = number % self.axes.len().max(1);
        i64::from(matches!(self.lanes, Lanes::Vector(axis, _) | Lanes::Texel(axis) if axis == number))
    }

    /// The indices that a load denotes. `gathers` are the integer tensors from which indices may be
    /// loaded.
    pub(super) fn load_indices(&self, made: &Made, at: &[At], edge: Edge, gathers: &[Made]) -> LoadIndices {
        let mut load = LoadIndices { indices: Vec::new(), inside: None };
        for (position, &extent) in made.shape.iter().enumerate() {
            let default = At::Axis(position, 1, 0);
            let at = at.get(position).unwrap_or(&default);
            let is_last = position + 1 == made.shape.len();
            // A ramp is possible only along the last axis of a row-major tensor of scalars, where
            // lanes are neighbours.
            let free = is_last && made.is_row_major && made.buffer.dtype.is_scalar();
            let (index, inside) = self.index(at, extent, edge, gathers, free && !self.is_texel_of(made, extent, at));
            load.indices.push(index);
            load.inside = match (load.inside, inside) {
                (Some(a), Some(b)) => Some(a.and(b)),
                (a, b) => a.or(b),
            };
        }
        load
    }

    /// Whether the lanes would read channels of a texture other than as one whole texel in order,
    /// which a texture load cannot.
    fn is_texel_of(&self, made: &Made, extent: i64, at: &At) -> bool {
        let whole = match (self.lanes, at) {
            (Lanes::Texel(lane), At::Axis(axis, 1, 0)) => {
                let number = axis % self.axes.len().max(1);
                number == lane && self.axes[number].extent == extent
            }
            _ => false,
        };
        made.buffer.scope.is_texture() && !(whole && made.is_packed == self.is_packed)
    }

    /// The index along an axis of the given extent, and the condition under which it is inside.
    /// `free` allows it to depend on the lane.
    fn index(&self, at: &At, extent: i64, edge: Edge, gathers: &[Made], free: bool) -> (Expr, Option<Expr>) {
        let affine = match at {
            At::Gather(which) if !gathers.is_empty() => {
                let index = self.gathered(&gathers[which % gathers.len()]);
                return self.edged(index, extent, edge);
            }
            At::Axis(axis, times, plus) => self.affine(*axis, (*times).clamp(-64, 64), (*plus).clamp(-4096, 4096)),
            At::Sum(a, b, plus) => self.sum(*a, *b, (*plus).clamp(-4096, 4096)),
            At::Reverse(axis) => self.affine(*axis, -1, extent - 1),
            At::Fixed(value) => return (self.int(value.rem_euclid(extent)), None),
            At::Gather(axis) => self.affine(*axis, 1, 0),
        };
        // The range decides whether the index needs the treatment of edges, which costs the
        // analyses their affine form.
        let Some(affine) = affine else { return (self.int(0), None) };
        let is_inside = affine.range.0 >= 0 && affine.range.1 < extent;
        match (is_inside, self.lanes) {
            (true, Lanes::Vector(_, lanes)) if free && affine.step != 0 => {
                let (base, stride) = (SharedExpr::new(affine.base), SharedExpr::new(self.int(affine.step)));
                (Expr::Ramp { base, stride, lanes }, None)
            }
            (true, Lanes::Texel(_)) if !free => (affine.base, None),
            (true, Lanes::Vector(..)) => (affine.base, None),
            (true, _) => (affine.full, None),
            (false, Lanes::None) => self.edged(affine.full, extent, edge),
            (false, _) => self.edged(affine.base, extent, edge),
        }
    }

    /// The index `axis * times + plus`.
    fn affine(&self, number: usize, times: i64, plus: i64) -> Option<Affine> {
        let axis = self.axis(number)?;
        let ends = [plus, (axis.extent - 1) * times + plus];
        let along = |index: &Expr| self.plus(self.times(index.clone(), times), plus);
        Some(Affine {
            base: along(&axis.base),
            full: if self.step(number) != 0 && matches!(self.lanes, Lanes::Vector(..)) {
                along(&axis.base)
            } else {
                along(&axis.full)
            },
            range: (ends[0].min(ends[1]), ends[0].max(ends[1])),
            step: self.step(number) * times,
        })
    }

    /// The index `a + b + plus`, a window.
    fn sum(&self, a: usize, b: usize, plus: i64) -> Option<Affine> {
        let (one, other) = (self.affine(a, 1, 0)?, self.affine(b, 1, 0)?);
        Some(Affine {
            base: self.plus(one.base + other.base, plus),
            full: self.plus(one.full + other.full, plus),
            range: (plus, one.range.1 + other.range.1 + plus),
            step: one.step + other.step,
        })
    }

    /// The product with a constant, without a factor of 1.
    fn times(&self, index: Expr, times: i64) -> Expr {
        if times == 1 { index } else { index * self.int(times) }
    }

    /// The sum with a constant, without a summand of 0.
    fn plus(&self, index: Expr, plus: i64) -> Expr {
        match plus {
            0 => index,
            1.. => index + self.int(plus),
            _ => index - self.int(-plus),
        }
    }

    /// An index loaded from an integer tensor, at the indices of the nest.
    fn gathered(&self, from: &Made) -> Expr {
        let axis = |axis: &Axis| Axis { full: axis.base.clone(), ..axis.clone() };
        let outer = Self { axes: self.axes.iter().map(axis).collect(), lanes: Lanes::None, ..self.clone() };
        let load = Expr::load(&from.buffer, outer.load_indices(from, &[], Edge::Wrap, &[]).indices);
        if load.dtype().scalar == self.ty { load } else { Expr::Cast(DataType::scalar(self.ty), SharedExpr::new(load)) }
    }

    /// Keeps an index within the extent: by a remainder, by clamping, or by a condition.
    fn edged(&self, index: Expr, extent: i64, edge: Edge) -> (Expr, Option<Expr>) {
        let (zero, last, end) = (self.int(0), self.int(extent - 1), self.int(extent));
        match edge {
            Edge::Wrap => (index.floor_mod(end), None),
            Edge::Clamp => (Expr::binary(BinaryOp::Min, Expr::binary(BinaryOp::Max, index, zero), last), None),
            Edge::Guard => {
                let low = Expr::binary(BinaryOp::Le, zero, index.clone());
                let inside = low.and(index.clone().lt(end));
                (index, Some(inside))
            }
        }
    }
}
