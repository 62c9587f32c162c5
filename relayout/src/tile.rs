//! The innermost loops of a move: copies, transposes and interleavings on slices of elements.
//!
//! A piece is moved while the lines of the next one are fetched. A piece of a transpose whose rows are far apart in the destination is put
//! together in a scratch memory, so that each line of both memories is touched once, however the rows collide in the cache.

use std::collections::VecDeque;
use std::ops::Range;

use crate::prefetch::{Lines, Rows};
use crate::word::Word;

/// Elements of the scratch memory: two times as many as a piece has at most.
pub(crate) const fn scratch_length<T>() -> usize {
    2 * most::<T>()
}

/// Most elements of a piece: 32 KiB. Its rows have 256 to 512 bytes in both memories; what does not fit into the nearest cache is in the next one.
pub(crate) const fn most<T>() -> usize {
    (1 << 15) / size_of::<T>()
}

/// Bytes between what is moved and what is fetched, and the most pieces that they are.
const AHEAD: usize = 1 << 12;
const DEPTH: usize = 8;
/// Rows that are read one after the other without being fetched ahead, if they are long.
const FEW: usize = 8;
/// Bytes of a row that is not long.
const SHORT: usize = 1 << 10;
/// Bytes of a row from which on the system's copy is faster than a loop.
const LONG: usize = 1 << 12;

/// A part of the two innermost loops. A piece of a transpose has `b` rows of `a` elements in the source, and `a` rows of `b` elements
/// in the destination; other pieces have `b` rows of `a` elements in both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The position of its first element in the source.
    pub(crate) from: usize,
    /// The position of its first element in the destination.
    pub(crate) to: usize,
    /// Elements next to each other in the source.
    pub(crate) a: usize,
    /// The other extent.
    pub(crate) b: usize,
    /// How many times this is repeated.
    pub(crate) groups: usize,
}

/// How pieces are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether the rows of the destination run across those of the source.
    pub(crate) is_transpose: bool,
    /// Elements from a row of the source to the next.
    pub(crate) source: usize,
    /// Elements from a row of the destination to the next.
    pub(crate) target: usize,
    /// Elements from a group to the next, in the source and in the destination.
    pub(crate) group: (usize, usize),
}

/// Moves pieces, each when the next one is known.
pub(crate) struct Mover<'a, T> {
    shape: Shape,
    src: &'a [T],
    dst: &'a mut [T],
    scratch: &'a mut [T],
    /// Pieces that wait for the lines of those behind them to be asked for.
    waiting: VecDeque<Piece>,
    depth: usize,
}

/// The lines of the next piece.
struct Ahead {
    source: Lines,
    target: Lines,
}

impl<'a, T: Word> Mover<'a, T> {
    /// `scratch` has `scratch_length` elements; `length` is the number of elements of most pieces.
    pub(crate) fn new(shape: Shape, length: usize, src: &'a [T], dst: &'a mut [T], scratch: &'a mut [T]) -> Self {
        let depth = (AHEAD / (length * size_of::<T>()).max(1)).clamp(1, DEPTH);
        Self { shape, src, dst, scratch, waiting: VecDeque::with_capacity(DEPTH + 1), depth }
    }

    /// How pieces are moved.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The memories.
    pub(crate) fn memory(&mut self) -> (&[T], &mut [T]) {
        (self.src, self.dst)
    }

    /// Elements before the first one at a multiple of a cache line's size, in the source and in the destination; 0 if no element is there.
    pub(crate) fn offsets(&self, from: usize, to: usize) -> (usize, usize) {
        let offset = |address: usize, at: usize| {
            let bytes = (address + at * size_of::<T>()) % crate::prefetch::LINE;
            if bytes.is_multiple_of(size_of::<T>()) { bytes / size_of::<T>() } else { 0 }
        };
        (offset(self.src.as_ptr().addr(), from), offset(self.dst.as_ptr().addr(), to))
    }

    /// Takes the next piece, and moves one of those before it.
    pub(crate) fn push(&mut self, piece: Piece) {
        self.waiting.push_back(piece);
        if self.waiting.len() > self.depth
            && let Some(first) = self.waiting.pop_front()
        {
            self.piece(first, Some(piece));
        }
    }

    /// Moves the pieces that wait.
    pub(crate) fn finish(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            self.piece(first, None);
        }
    }

    fn piece(&mut self, piece: Piece, next: Option<Piece>) {
        if !self.shape.is_transpose {
            return self.rows(piece, next);
        }
        let (source, target) = self.shape.group;
        if piece.groups == 1 || source == piece.a || target == piece.b && piece.b.is_multiple_of(T::LANES) {
            return self.group(piece, next);
        }
        let group = |piece: Piece, number: usize| Piece {
            from: piece.from + number * source,
            to: piece.to + number * target,
            groups: 1,
            ..piece
        };
        for number in 0..piece.groups {
            let next = next.filter(|next| number < next.groups).map(|next| group(next, number));
            self.group(group(piece, number), next);
        }
    }

    /// Moves one group, or groups that go on where the one before ends.
    fn group(&mut self, piece: Piece, next: Option<Piece>) {
        let (Piece { a, b, groups, .. }, Shape { source, target, .. }) = (piece, self.shape);
        // Long rows that are few are read one after the other, which the processor foresees.
        let is_long = |next: &Piece| next.a.min(next.b) <= FEW && next.a.max(next.b) * size_of::<T>() > SHORT;
        let next = next.filter(|next| !is_long(next));
        let is_few = |count: usize| count < T::LANES && count > 1 && (count.is_power_of_two() || count == 3);
        if target == b && is_few(b) && groups == 1 {
            let (src, dst) = (&self.src[piece.from..], &mut self.dst[piece.to..][..a * b]);
            match b {
                3 => zip3(src, source, dst),
                _ => weave(src, (source, b, a), dst, self.scratch),
            }
        } else if source == a && is_few(a) && groups == 1 {
            let (src, dst) = (&self.src[piece.from..][..a * b], &mut self.dst[piece.to..]);
            match a {
                3 => unzip3(src, dst, target),
                _ => unweave(src, (target, a, b), dst, self.scratch),
            }
        } else if groups == 1 && a <= FEW && b > 4 * a && a.is_multiple_of(T::LANES) {
            self.fetch_all(next);
            let height = b / T::LANES * T::LANES;
            for strip in (0..a).step_by(T::LANES) {
                let dst = &mut self.dst[piece.to + strip * target..];
                T::turn(&self.src[piece.from + strip..], source, height, dst, target);
            }
            for row in height..b {
                strided(&self.src[piece.from + row * source..], &mut self.dst[piece.to + row..], a, (1, target));
            }
        } else {
            self.squares(piece, next);
        }
    }

    /// The lines of the next piece, fetched in some parts.
    fn ahead(&self, next: Option<Piece>, (source, target): (usize, usize)) -> Ahead {
        let Some(next) = next else { return Ahead { source: Lines::default(), target: Lines::default() } };
        let (from, to) = self.rows_of(next);
        Ahead { source: Lines::new(self.src, from, source), target: Lines::new(self.dst, to, target) }
    }

    /// The rows of a piece in the source and in the destination. Groups that go on along a row make one longer row.
    fn rows_of(&self, piece: Piece) -> (Rows, Rows) {
        let (Piece { from, to, a, b, groups }, Shape { source, target, group, .. }) = (piece, self.shape);
        let (count, length) = if self.shape.is_transpose { (a, b) } else { (b, a) };
        let from = Rows { first: from, count: b, length: a, stride: source, groups, group: group.0 };
        let to = Rows { first: to, count, length, stride: target, groups, group: group.1 };
        match groups {
            1 => (from, to),
            _ if group.0 == a => (Rows { length: a * groups, groups: 1, ..from }, to),
            _ => (from, Rows { length: b * groups, groups: 1, ..to }),
        }
    }

    fn fetch_all(&self, next: Option<Piece>) {
        let mut ahead = self.ahead(next, (1, 1));
        ahead.source.fetch(self.src);
        ahead.target.fetch(self.dst);
    }

    /// Copies rows.
    fn rows(&mut self, Piece { from, to, a, b, .. }: Piece, next: Option<Piece>) {
        let next = next.filter(|_| a * size_of::<T>() < LONG);
        let mut ahead = self.ahead(next, (b, b));
        for row in 0..b {
            ahead.source.fetch(self.src);
            ahead.target.fetch(self.dst);
            let src = &self.src[from + row * self.shape.source..];
            copy(&src[..a], &mut self.dst[to + row * self.shape.target..][..a]);
        }
    }

    /// Transposes squares of vectors, and what is left of them element by element.
    fn squares(&mut self, piece: Piece, next: Option<Piece>) {
        let (from, to) = self.rows_of(piece);
        let (source, target) = (from.stride, to.stride);
        let (a, b) = (from.length, to.length);
        let (width, height) = (a / T::LANES * T::LANES, b / T::LANES * T::LANES);
        let strips = height / T::LANES;
        let is_far = a > FEW && target.saturating_mul(a) > most::<T>();
        let is_staged = to.groups > 1 || is_far && a * b <= most::<T>();
        let mut ahead = self.ahead(next, (strips, if is_staged { width } else { strips }));
        for (strip, from) in from.positions().step_by(T::LANES).take(strips).enumerate() {
            ahead.source.fetch(self.src);
            let (src, first) = (&self.src[from..], strip * T::LANES);
            if is_staged {
                T::transpose(src, source, width, &mut self.scratch[first..], height);
            } else {
                ahead.target.fetch(self.dst);
                T::transpose(src, source, width, &mut self.dst[to.first + first..], target);
            }
        }
        if is_staged && height > 0 {
            for (src, to) in self.scratch.chunks_exact(height).take(width).zip(to.positions()) {
                ahead.target.fetch(self.dst);
                copy(src, &mut self.dst[to..][..height]);
            }
        }
        let mut rest = |rows: Range<usize>, columns: Range<usize>| {
            for (column, from) in from.positions().enumerate().skip(columns.start) {
                for (row, to) in to.positions().enumerate().take(rows.end).skip(rows.start) {
                    self.dst[to + column] = self.src[from + row];
                }
            }
        };
        if height < b {
            rest(0..width, height..b);
        }
        if width < a {
            rest(width..a, 0..b);
        }
    }
}

/// Moves `count` elements one by one. The distances are those in the source and in the destination.
pub(crate) fn strided<T: Copy>(src: &[T], dst: &mut [T], count: usize, (source, target): (usize, usize)) {
    let from = src.iter().step_by(source.max(1));
    let to = dst.iter_mut().step_by(target.max(1));
    for (to, from) in to.zip(from).take(count) {
        *to = *from;
    }
}

/// Copies a row. A short one is copied in arrays, which takes no call.
fn copy<T: Copy>(src: &[T], dst: &mut [T]) {
    match size_of::<T>() {
        _ if size_of_val(src) >= LONG => dst.copy_from_slice(src),
        16 => arrays::<T, 4>(src, dst),
        8 => arrays::<T, 8>(src, dst),
        _ => arrays::<T, 16>(src, dst),
    }
}

fn arrays<T: Copy, const N: usize>(src: &[T], dst: &mut [T]) {
    let ((from, from_rest), (to, to_rest)) = (src.as_chunks::<N>(), dst.as_chunks_mut::<N>());
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to = *from;
    }
}

/// Interleaves `k` rows of `a` elements, a power of two, by interleaving those with even and those with odd numbers.
fn weave<T: Word>(src: &[T], (source, k, a): (usize, usize, usize), dst: &mut [T], scratch: &mut [T]) {
    if k == 2 {
        return zip(&src[..a], &src[source..][..a], dst);
    }
    let (even, rest) = scratch.split_at_mut(k / 2 * a);
    let (odd, rest) = rest.split_at_mut(k / 2 * a);
    weave(src, (2 * source, k / 2, a), even, rest);
    weave(&src[source..], (2 * source, k / 2, a), odd, rest);
    zip(even, odd, dst);
}

/// Writes `b` groups of `k` elements, a power of two, to `k` rows.
fn unweave<T: Word>(src: &[T], (target, k, b): (usize, usize, usize), dst: &mut [T], scratch: &mut [T]) {
    let pairs = src.as_chunks::<2>().0;
    if k == 2 {
        let (even, odd) = dst.split_at_mut(target);
        return T::unzip(pairs, &mut even[..b], &mut odd[..b]);
    }
    let (even, rest) = scratch.split_at_mut(k / 2 * b);
    let (odd, rest) = rest.split_at_mut(k / 2 * b);
    T::unzip(pairs, even, odd);
    unweave(even, (2 * target, k / 2, b), dst, rest);
    unweave(odd, (2 * target, k / 2, b), &mut dst[target..], rest);
}

fn zip<T: Copy>(even: &[T], odd: &[T], dst: &mut [T]) {
    let ((evens, even), (odds, odd)) = (even.as_chunks::<8>(), odd.as_chunks::<8>());
    let (pairs, rest) = dst.as_chunks_mut::<2>().0.as_chunks_mut::<8>();
    // Blocks of a known size are loaded as whole vectors.
    for ((pairs, even), odd) in pairs.iter_mut().zip(evens).zip(odds) {
        for ((to, even), odd) in pairs.iter_mut().zip(even).zip(odd) {
            *to = [*even, *odd];
        }
    }
    for ((to, even), odd) in rest.iter_mut().zip(even).zip(odd) {
        *to = [*even, *odd];
    }
}

fn zip3<T: Copy>(src: &[T], source: usize, dst: &mut [T]) {
    let rows = src.iter().zip(&src[source..]).zip(&src[2 * source..]);
    for (to, ((a, b), c)) in dst.as_chunks_mut::<3>().0.iter_mut().zip(rows) {
        *to = [*a, *b, *c];
    }
}

fn unzip3<T: Copy>(src: &[T], dst: &mut [T], target: usize) {
    for (row, to) in dst.chunks_mut(target).take(3).enumerate() {
        for (to, from) in to.iter_mut().zip(src.as_chunks::<3>().0) {
            *to = from[row];
        }
    }
}
