//! Searches over the points of a box: the first point with a property, the largest value, the first collision.
//!
//! Every search returns the first result in row-major order, for any number of threads, so that reports are reproducible
//! and counterexamples small.
//!
//! Collisions are the costly search: all images have to be remembered. If the images are few numbers, a table with a bit for
//! each is enough and is filled by all threads; only if it finds a collision, a second pass in order finds the first one.
//!
//! ```text
//! lambda i, j: [i * 4 + j] on (3, 5)    keys 0, 1, 2, 3, 4, 4!    (0, 4) and (1, 0) are the first collision
//! ```

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use tilewright_ir::sabotage;

use super::MAX_BITS;
use super::lanes::Lanes;
use super::program::{PointProgram, Runner};
use crate::judge::Judge;

/// Least number of points for which several threads are used.
const PARALLEL: u64 = 1 << 18;
/// Number of blocks that a thread takes at a time.
const GROUP: u64 = 64;

/// Runs all blocks in order until `look` breaks, and returns what it broke with. `look` gets the row-major position of the
/// block's first point, the number of its points, and the runner.
fn in_order<T>(program: &PointProgram, mut look: impl FnMut(u64, usize, &Runner<'_>) -> ControlFlow<T>) -> Option<T> {
    let mut runner = program.runner();
    for block in 0..program.blocks() {
        let (start, length) = runner.run(block);
        if let ControlFlow::Break(found) = look(start, length, &runner) {
            return Some(found);
        }
    }
    None
}

/// Runs all blocks, on several threads if there are many points. Returns what `look` found in the first block in which it
/// found something.
fn first_of<T: Send>(
    judge: &Judge,
    program: &PointProgram,
    look: impl Fn(u64, usize, &Runner<'_>) -> Option<T> + Sync,
) -> Option<T> {
    let found = |start, length, runner: &Runner<'_>| match look(start, length, runner) {
        Some(found) => ControlFlow::Break(found),
        None => ControlFlow::Continue(()),
    };
    if program.points() < PARALLEL {
        return in_order(program, found);
    }
    let blocks = program.blocks();
    let group = |group: u64| {
        let mut runner = program.runner();
        (group * GROUP..blocks.min((group + 1) * GROUP)).find_map(|block| {
            let (start, length) = runner.run(block);
            look(start, length, &runner)
        })
    };
    judge.in_parallel(|| (0..blocks.div_ceil(GROUP)).into_par_iter().map(group).find_first(Option::is_some).flatten())
}

/// The row-major position of a point of a block.
fn place(start: u64, lane: usize) -> u64 {
    start + lane as u64
}

/// The first point of a block whose value is wanted.
fn position(values: Lanes<'_>, length: usize, wanted: impl Fn(i64) -> bool) -> Option<usize> {
    match values {
        Lanes::One(value) => (wanted(value) && length > 0).then_some(0),
        Lanes::Many(values) => values.iter().position(|&value| wanted(value)),
    }
}

/// The first position at which the first root is not 0.
pub(crate) fn first_nonzero(judge: &Judge, program: &PointProgram) -> Option<u64> {
    first_of(judge, program, |start, length, runner| {
        position(runner.root(0), length, |value| value != 0).map(|lane| place(start, lane))
    })
}

/// Two positions with equal roots: `second` is the first position whose roots occurred before, at `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collision {
    /// The row-major position of the first occurrence.
    pub(crate) first: u64,
    /// The row-major position of the second one.
    pub(crate) second: u64,
}

/// The first collision of the roots. `keys` is the number of possible values of the first root, if it is a key that
/// determines all of them.
///
/// Keys are marked in a bit table if that is small enough; otherwise fingerprints of the roots are sorted.
pub(crate) fn collision(judge: &Judge, program: &PointProgram, roots: usize, keys: Option<u64>) -> Option<Collision> {
    match keys {
        Some(keys) if keys < program.points() => first_marked(program, keys.max(1)),
        Some(keys) if keys <= MAX_BITS && keys / 64 <= program.points().max(64) => {
            let collides = program.points() < PARALLEL || any_marked(judge, program, keys);
            if collides { first_marked(program, keys) } else { None }
        }
        _ => first_sorted(judge, program, roots),
    }
}

/// The word and the bit of a table that belong to a key.
fn word(key: i64) -> (usize, u64) {
    let key = key.unsigned_abs();
    (usize::try_from(key / 64).unwrap_or(usize::MAX), 1 << (key % 64))
}

/// Number of words of a table.
fn words(bits: u64) -> usize {
    usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX)
}

/// Marks keys in row-major order until one is marked already, then searches for its first occurrence.
fn first_marked(program: &PointProgram, keys: u64) -> Option<Collision> {
    let mut marked = vec![0u64; words(keys)];
    let (second, key) = in_order(program, |start, length, runner| {
        let values = runner.root(0);
        let length = length - usize::from(sabotage::on("collision-skips-last") && length > 1);
        for lane in 0..length {
            let key = values.at(lane);
            let (word, bit) = word(key);
            if marked[word] & bit != 0 {
                return ControlFlow::Break((place(start, lane), key));
            }
            marked[word] |= bit;
        }
        ControlFlow::Continue(())
    })?;
    let first =
        in_order(program, |start, length, runner| match position(runner.root(0), length, |value| value == key) {
            Some(lane) => ControlFlow::Break(place(start, lane)),
            None => ControlFlow::Continue(()),
        })?;
    Some(Collision { first, second })
}

/// Whether two positions have the same key, on several threads.
fn any_marked(judge: &Judge, program: &PointProgram, keys: u64) -> bool {
    let marked: Vec<AtomicU64> = (0..words(keys)).map(|_| AtomicU64::new(0)).collect();
    let hit = first_of(judge, program, |_, length, runner| {
        let values = runner.root(0);
        let again = |lane: usize| {
            let (word, bit) = word(values.at(lane));
            marked[word].fetch_or(bit, Ordering::Relaxed) & bit != 0
        };
        (0..length).any(again).then_some(())
    });
    hit.is_some()
}

/// A hash of the roots at a point.
fn fingerprint(runner: &Runner<'_>, roots: usize, lane: usize) -> u64 {
    (0..roots).fold(0x9e37_79b9_7f4a_7c15, |hash: u64, root| {
        let value = u64::from_ne_bytes(runner.root(root).at(lane).to_ne_bytes());
        (hash.rotate_left(23) ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(31)
    })
}

/// Sorts the hashes of all points, then compares the roots of those that occur more than once.
fn first_sorted(judge: &Judge, program: &PointProgram, roots: usize) -> Option<Collision> {
    let mut sorted: Vec<u64> = Vec::new();
    in_order(program, |_, length, runner| {
        sorted.extend((0..length).map(|lane| fingerprint(runner, roots, lane)));
        ControlFlow::<()>::Continue(())
    });
    judge.in_parallel(|| sorted.par_sort_unstable());
    let mut twice: Vec<u64> = sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    twice.dedup();
    drop(sorted);
    // For each repeated hash its first position; and, since unequal roots may share a hash, the first position of each
    // further tuple of roots with that hash.
    let mut firsts: Vec<Option<u64>> = vec![None; twice.len()];
    let mut others: Vec<(usize, u64)> = Vec::new();
    let mut again = program.runner();
    in_order(program, |start, length, runner| {
        for lane in 0..length {
            let Ok(which) = twice.binary_search(&fingerprint(runner, roots, lane)) else { continue };
            let second = place(start, lane);
            let Some(first) = firsts[which] else {
                firsts[which] = Some(second);
                continue;
            };
            let more = others.iter().filter(|(other, _)| *other == which).map(|(_, place)| *place);
            let same = std::iter::once(first).chain(more).find(|&first| {
                let (start, _) = again.run(program.block_of(first));
                let other = usize::try_from(first - start).unwrap_or(0);
                (0..roots).all(|root| again.root(root).at(other) == runner.root(root).at(lane))
            });
            match same {
                Some(first) => return ControlFlow::Break(Collision { first, second }),
                None => others.push((which, second)),
            }
        }
        ControlFlow::Continue(())
    })
}

/// The first physical position that is both padding and reached, or neither. `padding` computes the padding predicate of
/// each physical position; `map` computes, for each logical index, whether its image is outside the physical shape, and
/// the position of the image.
pub(crate) fn first_wrong_padding(map: &PointProgram, padding: &PointProgram) -> Option<u64> {
    let mut reached = vec![0u64; words(padding.points())];
    in_order(map, |_, length, runner| {
        let (outside, places) = (runner.root(0), runner.root(1));
        for lane in (0..length).filter(|&lane| outside.at(lane) == 0) {
            let (word, bit) = word(places.at(lane));
            reached[word] |= bit;
        }
        ControlFlow::<()>::Continue(())
    });
    in_order(padding, |start, length, runner| {
        let said = runner.root(0);
        let wrong = (0..length).find(|&lane| {
            let (word, bit) = word(i64::try_from(place(start, lane)).unwrap_or(0));
            let (said, reached) = (said.at(lane) != 0, reached[word] & bit != 0);
            if sabotage::on("padding-one-way") { said && reached } else { said == reached }
        });
        wrong.map_or(ControlFlow::Continue(()), |lane| ControlFlow::Break(place(start, lane)))
    })
}
