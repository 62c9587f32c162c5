//! Runs the loops of a strategy on slices.
//!
//! The outermost loops that cut the destination into disjoint ranges become chunks, which threads share out. Inside of a chunk the loops
//! count from the outside to the inside; a bound ends each of them where the rest of the sum would reach its limit, so that no
//! element is asked whether it exists.

use rayon::prelude::*;

use crate::strategy::{Bound, Loop, Strategy, Tile};
use crate::tile::{self, Block};

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
    pub(crate) fn run<T: Copy + Send + Sync>(&self, src: &[T], dst: &mut [T]) {
        let dst = &mut dst[self.target_base..];
        let Some(last) = self.chunked.checked_sub(1).map(|last| &self.levels[last]) else {
            let first = At { source: self.source_base, target: 0 };
            return self.walk(0, first, &mut vec![0; self.bounds.len()], src, dst);
        };
        let chunks: usize = self.levels[..self.chunked].iter().map(|level| level.extent).product();
        let one = |(chunk, dst): (usize, &mut [T])| {
            let mut sums = vec![0; self.bounds.len()];
            if let Some(at) = self.chunk(chunk, &mut sums) {
                self.walk(self.chunked, at, &mut sums, src, dst);
            }
        };
        if self.is_parallel {
            dst.par_chunks_mut(last.target).take(chunks).enumerate().for_each(one);
        } else {
            dst.chunks_mut(last.target).take(chunks).enumerate().for_each(one);
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

    /// Runs the loops from `depth` on. `sums` are those of the bounds over the loops outside.
    fn walk<T: Copy>(&self, depth: usize, mut at: At, sums: &mut [u64], src: &[T], dst: &mut [T]) {
        let level = &self.levels[depth];
        match (self.tile, &self.levels[depth..]) {
            (Tile::Transpose, [a, b]) => return self.transpose((a, b), at, sums, src, dst),
            (Tile::Run, [one]) => {
                let count = self.count(one, sums);
                return tile::run(&src[at.source..], &mut dst[at.target..], count);
            }
            (Tile::Strided, [one]) => {
                let count = self.count(one, sums);
                let strides = (one.source, one.target);
                return tile::strided(&src[at.source..], &mut dst[at.target..], count, strides);
            }
            (Tile::Transpose | Tile::Run | Tile::Strided, _) => {}
        }
        let count = self.count(level, sums);
        for _ in 0..count {
            self.walk(depth + 1, at, sums, src, dst);
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

    fn transpose<T: Copy>(&self, (a, b): (&Level, &Level), at: At, sums: &[u64], src: &[T], dst: &mut [T]) {
        let block = Block { a: self.count(a, sums), b: self.count(b, sums), source: b.source, target: a.target };
        if block.a > 0 && block.b > 0 {
            tile::transpose(&src[at.source..], &mut dst[at.target..], block);
        }
    }
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
