//! Runs the loops of a strategy on slices.
//!
//! The outermost loops that cut the destination into disjoint ranges become chunks, which threads share out. Inside of a chunk the loops
//! count from the outside to the inside; a bound ends each of them where the rest of the sum would reach its limit, so that no
//! element is asked whether it exists.

use rayon::prelude::*;

use crate::strategy::{Bound, Loop, Strategy, Tile};
use crate::tile::{self, Mover, Piece, Shape};
use crate::word::Word;

/// Bytes of a chunk above which chunks are made smaller, if there is a loop to cut at.
const CHUNK: u64 = 1 << 18;
/// Chunks of a move that is worth threads.
const CHUNKS: u64 = 16;
/// Bytes of a move below which it runs on the thread of the caller.
const SERIAL: u64 = 1 << 18;

/// The loops of a strategy as they run: distances are in elements, wide ones if the strategy has them.
#[derive(Debug)]
pub(crate) struct Nest {
    levels: Vec<Level>,
    bounds: Vec<Bound>,
    tile: Tile,
    source_base: usize,
    target_base: usize,
    /// The number of outer loops that become chunks.
    chunked: usize,
    is_parallel: bool,
}

#[derive(Clone, Debug)]
struct Level {
    extent: usize,
    source: usize,
    target: usize,
    /// Bounds that the loop is in, with its factor.
    terms: Vec<(usize, u64)>,
}

/// One iteration of the loops outside: the positions in both memories.
#[derive(Clone, Copy)]
struct At {
    source: usize,
    target: usize,
}

impl Nest {
    /// The loops over words that hold one element, or one wide element.
    pub(crate) fn new(strategy: &Strategy) -> Self {
        let wide = if strategy.is_wide { strategy.loops.last().map_or(1, |one| one.extent) } else { 1 };
        let count = strategy.loops.len() - usize::from(strategy.is_wide);
        let level = |(at, one): (usize, &Loop)| Level {
            extent: size(one.extent),
            source: size(one.source / wide),
            target: size(one.target / wide),
            terms: terms(&strategy.bounds, at),
        };
        let mut levels: Vec<Level> = strategy.loops[..count].iter().enumerate().map(level).collect();
        let inner = strategy.inner_loops() - usize::from(strategy.is_wide);
        merge(&mut levels, inner);
        let total: u64 = strategy.to_shape.iter().product::<u64>() * strategy.element_bytes;
        let chunked = chunked(&levels, levels.len() - inner, total, strategy.element_bytes * wide);
        Self {
            levels,
            bounds: strategy.bounds.clone(),
            tile: strategy.tile,
            source_base: size(strategy.source_base() / wide),
            target_base: size(strategy.target_base() / wide),
            chunked,
            is_parallel: total > SERIAL,
        }
    }

    /// The same loops over bytes: each element is a run of `bytes` bytes.
    pub(crate) fn of_bytes(strategy: &Strategy, bytes: u64) -> Self {
        let (words, bytes) = (Self::new(strategy), size(bytes));
        let scaled = |level: Level| Level { source: level.source * bytes, target: level.target * bytes, ..level };
        let run = Level { extent: bytes, source: 1, target: 1, terms: Vec::new() };
        Self {
            levels: words.levels.into_iter().map(scaled).chain(std::iter::once(run)).collect(),
            tile: Tile::Run,
            source_base: words.source_base * bytes,
            target_base: words.target_base * bytes,
            ..words
        }
    }

    /// Moves all elements.
    pub(crate) fn run<T: Word>(&self, src: &[T], dst: &mut [T]) {
        let dst = &mut dst[self.target_base..];
        let shape = self.shape();
        let scratch = || vec![T::default(); tile::scratch_length::<T>()];
        let Some(last) = self.chunked.checked_sub(1).map(|last| &self.levels[last]) else {
            let first = At { source: self.source_base, target: 0 };
            let mut scratch = scratch();
            let mut mover = Mover::new(shape, self.length(), src, dst, &mut scratch);
            self.walk(0, first, &mut vec![0; self.bounds.len()], &mut mover);
            return mover.finish();
        };
        let chunks: usize = self.levels[..self.chunked].iter().map(|level| level.extent).product();
        let one = |scratch: &mut Vec<T>, (chunk, dst): (usize, &mut [T])| {
            let mut sums = vec![0; self.bounds.len()];
            if let Some(at) = self.chunk(chunk, &mut sums) {
                let mut mover = Mover::new(shape, self.length(), src, dst, scratch);
                self.walk(self.chunked, at, &mut sums, &mut mover);
                mover.finish();
            }
        };
        if self.is_parallel {
            dst.par_chunks_mut(last.target).take(chunks).enumerate().for_each_init(scratch, one);
        } else {
            let mut scratch = scratch();
            dst.chunks_mut(last.target).take(chunks).enumerate().for_each(|item| one(&mut scratch, item));
        }
    }

    /// The elements of a piece, if it is not cut.
    fn length(&self) -> usize {
        self.levels.iter().rev().take(3).map(|level| level.extent).product()
    }

    /// How pieces of the two innermost loops are moved.
    fn shape(&self) -> Shape {
        let is_transpose = self.tile == Tile::Transpose;
        match self.levels.as_slice() {
            [rest @ .., a, b] if is_transpose => {
                let group = rest.last().map_or((0, 0), |group| (group.source, group.target));
                Shape { is_transpose, source: b.source, target: a.target, group }
            }
            [.., rows, _] => Shape { is_transpose, source: rows.source, target: rows.target, group: (0, 0) },
            _ => Shape { is_transpose: false, source: 0, target: 0, group: (0, 0) },
        }
    }

    /// The iteration of the outer loops that a chunk stands for; its part of each bound goes to `sums`. `None` if a bound does not hold.
    fn chunk(&self, number: usize, sums: &mut [u64]) -> Option<At> {
        let mut rest = number;
        let mut at = At { source: self.source_base, target: 0 };
        for level in self.levels[..self.chunked].iter().rev() {
            let value = rest % level.extent;
            rest /= level.extent;
            at.source += value * level.source;
            for &(bound, factor) in &level.terms {
                sums[bound] += value as u64 * factor;
            }
        }
        sums.iter().zip(&self.bounds).all(|(sum, bound)| *sum < bound.limit).then_some(at)
    }

    /// How many iterations of a loop are inside of its bounds.
    fn count(&self, level: &Level, sums: &[u64]) -> usize {
        let count = |&(bound, factor): &(usize, u64)| {
            let left = self.bounds[bound].limit.saturating_sub(sums[bound]);
            usize::try_from(left.div_ceil(factor)).unwrap_or(usize::MAX)
        };
        level.terms.iter().map(count).fold(level.extent, usize::min)
    }

    /// Whether no bound ends the loops early.
    fn is_full(&self, levels: &[Level], sums: &[u64]) -> bool {
        let holds = |(number, bound): (usize, &Bound)| {
            let terms = levels.iter().flat_map(|level| level.terms.iter().map(move |term| (level.extent, term)));
            let own = terms.filter(|(_, (bound, _))| *bound == number);
            let most: u64 = own.map(|(extent, (_, factor))| (extent as u64 - 1) * factor).sum();
            sums[number] + most < bound.limit
        };
        self.bounds.iter().enumerate().all(holds)
    }

    /// Runs the loops from `depth` on. `sums` are those of the bounds over the loops outside.
    fn walk<T: Word>(&self, depth: usize, mut at: At, sums: &mut [u64], mover: &mut Mover<'_, T>) {
        let level = &self.levels[depth];
        match (self.tile, &self.levels[depth..]) {
            (Tile::Transpose, [a, b]) => return blocks(self.count(a, sums), self.count(b, sums), at, mover),
            (Tile::Transpose, levels @ [group, a, b])
                if is_small::<T>(group.extent, a, b) && self.is_full(levels, sums) =>
            {
                return groups(group.extent, (a.extent, b.extent), at, mover);
            }
            (Tile::Run, [rows, one]) if !share_a_bound(rows, one) => {
                return strips(self.count(one, sums), self.count(rows, sums), at, mover);
            }
            (Tile::Run, [one]) => return strips(self.count(one, sums), 1, at, mover),
            (Tile::Strided, [one]) => {
                let count = self.count(one, sums);
                let (src, dst) = mover.memory();
                let strides = (one.source, one.target);
                return tile::strided(&src[at.source..], &mut dst[at.target..], count, strides);
            }
            (Tile::Transpose | Tile::Run | Tile::Strided, _) => {}
        }
        let count = self.count(level, sums);
        for _ in 0..count {
            self.walk(depth + 1, at, sums, mover);
            at.source += level.source;
            at.target += level.target;
            for &(bound, factor) in &level.terms {
                sums[bound] += factor;
            }
        }
        for &(bound, factor) in &level.terms {
            sums[bound] -= count as u64 * factor;
        }
    }
}

/// Moves `b` rows of `a` elements in pieces of some rows.
fn strips<T: Word>(a: usize, b: usize, at: At, mover: &mut Mover<'_, T>) {
    if a == 0 || b == 0 {
        return;
    }
    let rows = (tile::most::<T>() / 4).div_ceil(a);
    let Shape { source, target, .. } = mover.shape();
    for row in (0..b).step_by(rows) {
        mover.push(Piece {
            from: at.source + row * source,
            to: at.target + row * target,
            a,
            b: rows.min(b - row),
            groups: 1,
        });
    }
}

/// Moves a transpose of `b` rows of `a` elements in pieces whose rows begin at cache lines, where the first of them can.
fn blocks<T: Word>(a: usize, b: usize, at: At, mover: &mut Mover<'_, T>) {
    let Shape { source, target, .. } = mover.shape();
    let (width, height) = sides::<T>(a, b);
    let offsets = mover.offsets(at.source, at.target);
    let line = crate::prefetch::LINE / size_of::<T>();
    let first = |extent: usize, size: usize, stride: usize, offset: usize| {
        if extent > size && stride.is_multiple_of(line.max(1)) && offset < size { size - offset } else { size }
    };
    let (first_width, first_height) = (first(a, width, source, offsets.0), first(b, height, target, offsets.1));
    let mut row = 0;
    while row < b {
        let rows = if row == 0 { first_height } else { height }.min(b - row);
        let mut column = 0;
        while column < a {
            let columns = if column == 0 { first_width } else { width }.min(a - column);
            let (from, to) = (at.source + row * source + column, at.target + column * target + row);
            mover.push(Piece { from, to, a: columns, b: rows, groups: 1 });
            column += columns;
        }
        row += rows;
    }
}

/// The extents of the pieces of a transpose of `b` rows of `a` elements: rows of at least 256 bytes, longer ones if there are few.
fn sides<T>(a: usize, b: usize) -> (usize, usize) {
    let most = tile::most::<T>();
    let side = if size_of::<T>() > 4 {
        32
    } else if size_of::<T>() > 1 {
        64
    } else {
        128
    };
    if b < side {
        let height = b.max(1);
        (a.min(most / height).max(1), height)
    } else {
        let width = a.clamp(1, 2 * side);
        (width, b.min(most / width))
    }
}

/// Whether the tiles of a group are so small that they are moved together.
fn is_small<T>(groups: usize, a: &Level, b: &Level) -> bool {
    let most = tile::most::<T>();
    let (rows, columns) = (groups * a.extent, groups * b.extent);
    a.extent * b.extent <= most && rows.min(columns) <= most / 16
}

/// Moves groups of small tiles of `b` rows of `a` elements: some rows, some columns or some groups at a time.
fn groups<T: Word>(groups: usize, (a, b): (usize, usize), at: At, mover: &mut Mover<'_, T>) {
    let Shape { source, target, group, .. } = mover.shape();
    let most = tile::most::<T>();
    let mut cut = |extent: usize, other: usize, piece: &dyn Fn(usize, usize) -> Piece| {
        let size = (most / other.max(1)).max(1);
        for first in (0..extent).step_by(size) {
            mover.push(piece(first, size.min(extent - first)));
        }
    };
    let (from, to) = (at.source, at.target);
    if group.0 == a {
        cut(b, a * groups, &|row, b| Piece { from: from + row * source, to: to + row, a, b, groups });
    } else if group.1 == b {
        cut(a, b * groups, &|column, a| Piece { from: from + column, to: to + column * target, a, b, groups });
    } else {
        let (source, target) = group;
        cut(groups, a * b, &|one, groups| Piece { from: from + one * source, to: to + one * target, a, b, groups });
    }
}

fn share_a_bound(a: &Level, b: &Level) -> bool {
    a.terms.iter().any(|(bound, _)| b.terms.iter().any(|(other, _)| other == bound))
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Makes one loop of two where the outer one goes on where the inner one ends, on both sides: the last outer loop and one of the `inner`
/// loops of the tile. Loops with bounds stay as they are, and so does the first loop, which threads share out.
fn merge(levels: &mut Vec<Level>, inner: usize) {
    while let Some(outer) = (levels.len() - inner).checked_sub(1).filter(|outer| *outer > 0) {
        let goes_on = |level: &Level| {
            let next = (level.extent * level.source, level.extent * level.target);
            (levels[outer].source, levels[outer].target) == next && level.terms.is_empty()
        };
        let Some(at) = (outer + 1..levels.len()).find(|&at| goes_on(&levels[at])) else { return };
        if !levels[outer].terms.is_empty() {
            return;
        }
        levels[at].extent *= levels[outer].extent;
        levels.remove(outer);
    }
}

/// The bounds that a loop is in.
fn terms(bounds: &[Bound], at: usize) -> Vec<(usize, u64)> {
    let factor = |(bound, one): (usize, &Bound)| {
        one.terms.iter().find(|(term, _)| *term == at).map(|(_, factor)| (bound, *factor))
    };
    bounds.iter().enumerate().filter_map(factor).collect()
}

/// How many of the outer loops become chunks: each has to cut the destination into ranges that nothing else of the nest leaves.
fn chunked(levels: &[Level], outer: usize, total: u64, element: u64) -> usize {
    let mut best = 0;
    let mut count = 1;
    for at in 0..outer {
        let reach: usize = levels[at + 1..].iter().map(|level| (level.extent - 1) * level.target).sum();
        let is_dense = at == 0 || levels[at - 1].target == levels[at].extent * levels[at].target;
        if reach >= levels[at].target || !is_dense {
            break;
        }
        best = at + 1;
        count *= levels[at].extent as u64;
        let bytes = levels[at].target as u64 * element;
        if count >= CHUNKS && (bytes <= CHUNK || total / count <= CHUNK) {
            break;
        }
    }
    best
}
