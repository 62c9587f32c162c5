//! Chooses how to move an array: which loops, in which order, and what the innermost ones do.
//!
//! ```text
//! f32 NHWC [16,64,64,64] -> NCHW        loops  n in 16, h in 64 | c in 64, w in 64     Tile::Transpose
//! f32 {1,0} [4001,4003] -> T(8,128)     loops  i0//8 in 501, i1//128 in 32, i0%8 in 8 | i1%128 in 128 Tile::Run
//! ```
//!
//! 1. A digit that is contiguous on both sides and has few bytes makes one wide element of its elements.
//! 2. The digit that is contiguous in the source and the one that is contiguous in the destination become the tile. One digit that is
//!    both is a run, which is copied as a whole.
//! 3. A transpose with many rows is cut into blocks of rows. If the rows of the tile are short, the loop that goes on along the row comes
//!    next, so that every line is touched once.
//! 4. The other loops are ordered by their stride in the destination, the largest outside.

use crate::digits::{Digit, Digits, Relayout};
use crate::error::RelayoutError;

/// Bytes of a cache line.
pub(crate) const LINE: u64 = 64;
/// Bytes of a row of a tile: enough lines that reading them one after the other is fast.
const ROW: u64 = 4 * LINE;
/// Rows of a block of a transpose, if it has more: enough for few changes of page, and few enough for several blocks.
const ROWS: u64 = 256;
/// Most bytes of an element, wide or not.
pub const MAX_ELEMENT: u64 = 16;

/// A loop over a digit, or over a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The logical axis.
    pub axis: usize,
    /// The number of iterations.
    pub extent: u64,
    /// What one iteration adds to the index on this axis.
    pub weight: u64,
    /// What one iteration adds to each physical index of A.
    pub from: Vec<u64>,
    /// What one iteration adds to each physical index of B.
    pub to: Vec<u64>,
    /// The distance in A's memory, in elements.
    pub source: u64,
    /// The distance in B's memory, in elements.
    pub target: u64,
}

/// A condition under which an iteration moves an element: a sum over loops is below a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The number that the sum stays below.
    pub limit: u64,
    /// Positions of loops, each with the factor of its value.
    pub terms: Vec<(usize, u64)>,
}

/// What the innermost loops do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tile {
    /// The last loop is contiguous on both sides: its elements are copied as a whole.
    Run,
    /// The last loop but one is contiguous in the source, and the last one in the destination.
    Transpose,
    /// The last loop moves one element after the other.
    Strided,
}

/// How slots of the destination that hold no element get the fill value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Every slot holds an element.
    None,
    /// The whole destination is filled before elements are moved.
    Whole,
    /// The slots beyond the end of each ragged axis are filled.
    Edges(Vec<Edge>),
}

/// The slots beyond the end of a ragged axis: those at which a bound does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// All digits, by their stride in the destination, the largest first.
    pub loops: Vec<Loop>,
    /// The bound, in these loops.
    pub bound: Bound,
}

impl Edge {
    /// Returns the first value of a loop at which the bound fails for some values of the other loops.
    pub fn start(&self, at: usize) -> u64 {
        let Some(&(_, factor)) = self.bound.terms.iter().find(|(term, _)| *term == at) else { return 0 };
        let others = self.bound.terms.iter().filter(|(term, _)| *term != at);
        let most: u64 = others.map(|&(term, factor)| (self.loops[term].extent - 1) * factor).sum();
        self.bound.limit.saturating_sub(most).div_ceil(factor).min(self.loops[at].extent)
    }
}

/// The loops of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// The loops, the outermost first. Those of the tile are the last, but for a wide element.
    pub loops: Vec<Loop>,
    /// What has to hold where an element is moved.
    pub bounds: Vec<Bound>,
    /// What has to hold where there is a slot: loops that were split into parts of which the last is shorter.
    pub cuts: Vec<Bound>,
    /// What the innermost loops do.
    pub tile: Tile,
    /// Whether one more loop, the very last, is moved as one wide element.
    pub is_wide: bool,
    /// How padding is filled.
    pub fill: Fill,
    /// The physical index in A of the first element.
    pub from: Vec<u64>,
    /// The physical index in B of the first element.
    pub to: Vec<u64>,
    /// The physical shape of A.
    pub from_shape: Vec<u64>,
    /// The physical shape of B.
    pub to_shape: Vec<u64>,
    /// Bytes of an element.
    pub element_bytes: u64,
}

impl Strategy {
    /// Chooses the loops for a relayout of elements of `element_bytes` bytes.
    ///
    /// # Errors
    /// Elements have a size that cannot be moved, or the maps are not made of digits.
    pub fn choose(relayout: &Relayout, element_bytes: u64) -> Result<Self, RelayoutError> {
        if element_bytes == 0 || element_bytes > MAX_ELEMENT {
            return Err(RelayoutError::ElementSize(usize::try_from(element_bytes).unwrap_or(usize::MAX)));
        }
        let Digits { digits, from, to } = relayout.digits()?;
        let strides = (relayout.from.strides(), relayout.to.strides());
        let mut nest = Nest {
            loops: digits.into_iter().map(|digit| flat(digit, &strides)).collect(),
            bounds: Vec::new(),
            cuts: Vec::new(),
            bases: (dot(&from, &strides.0), dot(&to, &strides.1)),
        };
        nest.bound_axes(&relayout.extents);
        let elements = relayout.extents.iter().product::<u64>();
        let fill = nest.fill(elements, relayout.to.slots()?);
        let (tile, is_wide) = nest.arrange(element_bytes);
        let Nest { loops, bounds, cuts, .. } = nest;
        let (from_shape, to_shape) = (relayout.from.shape.clone(), relayout.to.shape.clone());
        Ok(Self { loops, bounds, cuts, tile, is_wide, fill, from, to, from_shape, to_shape, element_bytes })
    }

    /// Returns what the innermost loops do, in a word.
    pub fn tile_name(&self) -> &'static str {
        match self.tile {
            Tile::Run => "run",
            Tile::Transpose => "transpose",
            Tile::Strided => "strided",
        }
    }

    /// Returns which slots of the destination get the fill value, in a word.
    pub fn fill_name(&self) -> &'static str {
        match self.fill {
            Fill::None => "none",
            Fill::Whole => "whole",
            Fill::Edges(_) => "edges",
        }
    }

    /// Returns how many of the last loops belong to the tile and to a wide element.
    pub fn inner_loops(&self) -> usize {
        let tile = match self.tile {
            Tile::Run | Tile::Strided => 1,
            Tile::Transpose => 2,
        };
        tile + usize::from(self.is_wide)
    }

    /// Returns whether the slots that get the fill value are those at which a bound does not hold although there is a slot: the edges,
    /// which were found before loops were split, belong to the same axes, with the same limits and the same steps in the destination.
    pub fn fills_what_bounds_leave(&self) -> bool {
        let Fill::Edges(edges) = &self.fill else { return false };
        let own = self.bounds.iter().filter(|bound| !self.cuts.contains(bound));
        let limits: Option<Vec<_>> = own.map(|bound| limit_of(bound, &self.loops)).collect();
        let filled: Option<Vec<_>> = edges.iter().map(|edge| limit_of(&edge.bound, &edge.loops)).collect();
        let goes_along = |edge: &Edge| self.loops.iter().all(|one| edge.loops.iter().any(|whole| is_part(one, whole)));
        limits.is_some() && limits == filled && edges.iter().all(goes_along)
    }

    /// Returns the position in A's memory of the first element.
    pub fn source_base(&self) -> u64 {
        linear(&self.from, &self.from_shape)
    }

    /// Returns the position in B's memory of the first element.
    pub fn target_base(&self) -> u64 {
        linear(&self.to, &self.to_shape)
    }
}

/// The loops while they are arranged.
struct Nest {
    loops: Vec<Loop>,
    bounds: Vec<Bound>,
    cuts: Vec<Bound>,
    /// The positions of the first element.
    bases: (u64, u64),
}

impl Nest {
    /// Adds a bound for each axis whose digits count beyond its end.
    fn bound_axes(&mut self, extents: &[u64]) {
        for (axis, &limit) in extents.iter().enumerate() {
            let own = self.loops.iter().enumerate().filter(|(_, one)| one.axis == axis);
            let terms: Vec<(usize, u64)> = own.clone().map(|(at, one)| (at, one.weight)).collect();
            if own.map(|(_, one)| one.extent).product::<u64>() != limit {
                self.bounds.push(Bound { limit, terms });
            }
        }
    }

    /// How padding is filled, before any loop was split.
    fn fill(&self, elements: u64, slots: u64) -> Fill {
        if elements == slots {
            return Fill::None;
        }
        let mut sorted: Vec<usize> = (0..self.loops.len()).collect();
        sorted.sort_by_key(|&at| std::cmp::Reverse(self.loops[at].target));
        let dense = sorted.iter().rev().try_fold(1u64, |size, &at| {
            (self.loops[at].target == size).then(|| size.saturating_mul(self.loops[at].extent))
        });
        if dense != Some(slots) || self.bases.1 != 0 {
            return Fill::Whole;
        }
        let loops: Vec<Loop> = sorted.iter().map(|&at| self.loops[at].clone()).collect();
        let edge = |bound: &Bound| Edge { loops: loops.clone(), bound: moved(bound, &sorted) };
        Fill::Edges(self.bounds.iter().map(edge).collect())
    }

    /// Finds the tile, orders the loops, and returns what the tile is and whether the last loop is a wide element.
    fn arrange(&mut self, element_bytes: u64) -> (Tile, bool) {
        let wide = self.wide(element_bytes);
        let unit = wide.map_or(1, |at| self.loops[at].extent);
        let bytes = element_bytes * unit;
        let others = |at: &usize| Some(*at) != wide;
        let contiguous =
            |stride: fn(&Loop) -> u64| (0..self.loops.len()).filter(others).find(|&at| stride(&self.loops[at]) == unit);
        let (source, target) = (contiguous(|one| one.source), contiguous(|one| one.target));
        let mut near = None;
        let (tile, inner) = match (source, target) {
            (Some(a), Some(b)) if a == b => (Tile::Run, vec![a]),
            (Some(a), Some(b)) if !self.share_a_bound(a, b) => {
                let a = self.cut(a, b, unit, bytes);
                let is_interleaved = |one: &Loop, other: &Loop, stride: fn(&Loop) -> u64| {
                    stride(one) == other.extent * unit && other.extent * bytes < LINE
                };
                let (rows, columns) = (&self.loops[a], &self.loops[b]);
                let is_dense =
                    is_interleaved(rows, columns, |one| one.target) || is_interleaved(columns, rows, |one| one.source);
                near = self.pair_up((a, b), unit, ROW / bytes, |one| one.source);
                if near.is_none() && !is_dense {
                    near = self.pair_up((b, a), unit, ROW / bytes, |one| one.target);
                }
                (Tile::Transpose, vec![a, b])
            }
            (_, Some(one)) | (Some(one), None) => (Tile::Strided, vec![one]),
            (None, None) => (Tile::Strided, self.least(wide)),
        };
        let is_outer = |at: &usize| others(at) && !inner.contains(at) && near != Some(*at);
        let mut order: Vec<usize> = (0..self.loops.len()).filter(is_outer).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(self.loops[at].target));
        order.extend(near.into_iter().chain(inner).chain(wide));
        self.loops = order.iter().map(|&at| self.loops[at].clone()).collect();
        self.bounds = self.bounds.iter().map(|bound| moved(bound, &order)).collect();
        self.cuts = self.cuts.iter().map(|bound| moved(bound, &order)).collect();
        (tile, wide.is_some())
    }

    /// The loop that makes wide elements, if there is one.
    fn wide(&self, element_bytes: u64) -> Option<usize> {
        let is_wide = |at: &usize| {
            let one = &self.loops[*at];
            let fits = |stride: u64| stride.is_multiple_of(one.extent);
            let others = || self.loops.iter().enumerate().filter(|(other, _)| other != at);
            (one.source, one.target) == (1, 1)
                && one.extent * element_bytes <= MAX_ELEMENT
                && !self.bounds.iter().any(|bound| bound.terms.iter().any(|(term, _)| term == at))
                && fits(self.bases.0)
                && fits(self.bases.1)
                && others().all(|(_, other)| fits(other.source) && fits(other.target))
                && others().count() > 0
        };
        (0..self.loops.len()).find(is_wide)
    }

    /// The loop with the least stride in the destination; a loop with one iteration if there is none.
    fn least(&mut self, wide: Option<usize>) -> Vec<usize> {
        let least = (0..self.loops.len()).filter(|at| Some(*at) != wide).min_by_key(|&at| self.loops[at].target);
        least.map_or_else(
            || {
                let none = |shape: &Self| shape.loops.first().map_or((0, 0), |one| (one.from.len(), one.to.len()));
                let (from, to) = none(self);
                let (from, to) = (vec![0; from], vec![0; to]);
                self.loops.push(Loop { axis: 0, extent: 1, weight: 0, from, to, source: 0, target: 0 });
                vec![self.loops.len() - 1]
            },
            |at| vec![at],
        )
    }

    fn share_a_bound(&self, a: usize, b: usize) -> bool {
        let has = |bound: &Bound, at: usize| bound.terms.iter().any(|(term, _)| *term == at);
        self.bounds.iter().any(|bound| has(bound, a) && has(bound, b))
    }

    /// Cuts the loop `a` of a transpose into blocks if it is long, so that threads have blocks to share. Returns the loop of a block.
    fn cut(&mut self, a: usize, b: usize, unit: u64, bytes: u64) -> usize {
        let (rows, columns) = (&self.loops[a], &self.loops[b]);
        let is_interleaved = rows.target == columns.extent * unit && columns.extent * bytes <= LINE;
        if is_interleaved || rows.extent < 2 * ROWS {
            return a;
        }
        self.split(a, ROWS)
    }

    /// If the rows of the tile in a memory are short, returns a loop that goes on along the row, to be the next outside of the tile: what
    /// one tile leaves of a line, the next one takes. The row is along the first of the two loops.
    fn pair_up(
        &mut self,
        (row, other): (usize, usize),
        unit: u64,
        most: u64,
        stride: fn(&Loop) -> u64,
    ) -> Option<usize> {
        let extent = self.loops[row].extent;
        let count = most.checked_div(extent).filter(|count| *count >= 2)?;
        let is_next = |at: &usize| *at != row && *at != other && stride(&self.loops[*at]) == extent * unit;
        let next = (0..self.loops.len()).find(is_next)?;
        if self.loops[next].extent <= count {
            return None;
        }
        Some(self.split(next, count))
    }

    /// Splits a loop into one over blocks, which takes its place, and a new one inside of a block, which is returned.
    fn split(&mut self, at: usize, size: u64) -> usize {
        let whole = self.loops[at].clone();
        let inside = self.loops.len();
        let scaled = |steps: &[u64]| steps.iter().map(|step| step * size).collect();
        self.loops[at] = Loop {
            extent: whole.extent.div_ceil(size),
            weight: whole.weight * size,
            from: scaled(&whole.from),
            to: scaled(&whole.to),
            source: whole.source * size,
            target: whole.target * size,
            ..whole
        };
        // A bound in which the loop has the largest factor ends it, too.
        let mut is_ended = whole.extent.is_multiple_of(size);
        for bound in &mut self.bounds {
            let Some(position) = bound.terms.iter().position(|(term, _)| *term == at) else { continue };
            let factor = bound.terms[position].1;
            is_ended |= bound.terms.iter().all(|(_, other)| *other <= factor);
            bound.terms[position].1 = factor * size;
            bound.terms.push((inside, factor));
        }
        let cut = Bound { limit: whole.extent, terms: vec![(at, size), (inside, 1)] };
        if !is_ended {
            self.bounds.push(cut.clone());
        }
        if !whole.extent.is_multiple_of(size) {
            self.cuts.push(cut);
        }
        self.loops.push(Loop { extent: size.min(whole.extent), ..whole });
        inside
    }
}

/// The axis whose index a bound limits, and the limit. `None` if the bound is another sum of loops.
fn limit_of(bound: &Bound, loops: &[Loop]) -> Option<(usize, u64)> {
    let axis = loops.get(bound.terms.first()?.0)?.axis;
    let own = loops.iter().enumerate().filter(|(_, one)| one.axis == axis);
    let mut weights: Vec<(usize, u64)> = own.map(|(at, one)| (at, one.weight)).collect();
    let mut terms = bound.terms.clone();
    weights.sort_unstable();
    terms.sort_unstable();
    (weights == terms).then_some((axis, bound.limit))
}

/// Whether a loop is another one or a part of it, with the same steps in the destination.
fn is_part(one: &Loop, whole: &Loop) -> bool {
    let size = one.weight / whole.weight.max(1);
    let steps: Vec<u64> = whole.to.iter().map(|step| step * size).collect();
    one.axis == whole.axis
        && one.weight == whole.weight * size
        && size < whole.extent
        && (&one.to, one.target) == (&steps, whole.target * size)
}

/// A digit with its distances in memory.
fn flat(digit: Digit, (from, to): &(Vec<u64>, Vec<u64>)) -> Loop {
    let (source, target) = (dot(&digit.from, from), dot(&digit.to, to));
    let Digit { axis, extent, weight, from, to } = digit;
    Loop { axis, extent, weight, from, to, source, target }
}

/// The bound after loops were put into an order: position `k` holds what was at `order[k]`.
fn moved(bound: &Bound, order: &[usize]) -> Bound {
    let place = |at: usize| order.iter().position(|&old| old == at).unwrap_or(at);
    Bound { limit: bound.limit, terms: bound.terms.iter().map(|&(at, factor)| (place(at), factor)).collect() }
}

fn dot(index: &[u64], strides: &[u64]) -> u64 {
    index.iter().zip(strides).map(|(value, stride)| value * stride).sum()
}

/// The position of an index in row-major order.
fn linear(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).fold(0, |position, (value, extent)| position * extent + value)
}
