//! The innermost loops of a move: copies, transposes and interleavings on slices of elements.
//!
//! A transpose moves a block in tiles whose rows are one or more cache lines on both sides.

/// Two loops of a transpose: `rows` in the source are contiguous over `a`, those in the destination over `b`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Elements next to each other in the source.
    pub(crate) a: usize,
    /// Elements next to each other in the destination.
    pub(crate) b: usize,
    /// Distance in the source between neighbours on `b`.
    pub(crate) source: usize,
    /// Distance in the destination between neighbours on `a`.
    pub(crate) target: usize,
}

/// Moves `count` elements one by one. The distances are those in the source and in the destination.
pub(crate) fn strided<T: Copy>(src: &[T], dst: &mut [T], count: usize, (source, target): (usize, usize)) {
    let from = src.iter().step_by(source.max(1));
    let to = dst.iter_mut().step_by(target.max(1));
    for (to, from) in to.zip(from).take(count) {
        *to = *from;
    }
}

/// Copies `count` elements. Short runs are copied as arrays, which takes no call.
pub(crate) fn run<T: Copy>(src: &[T], dst: &mut [T], count: usize) {
    match count {
        2 => array::<T, 2>(src, dst),
        4 => array::<T, 4>(src, dst),
        8 => array::<T, 8>(src, dst),
        _ => dst[..count].copy_from_slice(&src[..count]),
    }
}

fn array<T: Copy, const N: usize>(src: &[T], dst: &mut [T]) {
    if let (Some(from), Some(to)) = (src.first_chunk::<N>(), dst.first_chunk_mut::<N>()) {
        *to = *from;
    }
}

/// Transposes a block.
pub(crate) fn transpose<T: Copy>(src: &[T], dst: &mut [T], block: Block) {
    let Block { a, b, source, target } = block;
    if target == b {
        match b {
            2 => return interleave::<T, 2>(src, dst, block),
            3 => return interleave::<T, 3>(src, dst, block),
            4 => return interleave::<T, 4>(src, dst, block),
            8 => return interleave::<T, 8>(src, dst, block),
            _ => {}
        }
    }
    if source == a {
        match a {
            2 => return deinterleave::<T, 2>(src, dst, block),
            3 => return deinterleave::<T, 3>(src, dst, block),
            4 => return deinterleave::<T, 4>(src, dst, block),
            8 => return deinterleave::<T, 8>(src, dst, block),
            _ => {}
        }
    }
    // Tiles of 64 by 64 keep most lines of the source under way at once; they have to fit into the nearest cache.
    match (size_of::<T>(), a, b) {
        (..=4, 64.., 64..) => halved::<T, 64, 64>(src, dst, block),
        (..=4, 8..16, 64..) => halved::<T, 8, 64>(src, dst, block),
        (..=8, 32.., 32..) => halved::<T, 32, 32>(src, dst, block),
        (_, 16.., 16..) => halved::<T, 16, 16>(src, dst, block),
        (_, 8.., 8..) => halved::<T, 8, 8>(src, dst, block),
        (_, _, _) => halved::<T, 4, 4>(src, dst, block),
    }
}

/// Transposes a block: its longer side is halved until a tile of `A` by `B` is left. So neighbouring tiles are moved one soon after the
/// other, and every page and line of both memories is still at hand when it is needed again, whatever the sizes of the caches. A rest that
/// is smaller than a tile is moved in tiles of 4 by 4.
fn halved<T: Copy, const A: usize, const B: usize>(src: &[T], dst: &mut [T], block: Block) {
    let Block { a, b, source, target } = block;
    if a > A && (b <= B || a / A >= b / B) {
        let first = (a / 2).next_multiple_of(A);
        halved::<T, A, B>(src, dst, Block { a: first, ..block });
        halved::<T, A, B>(&src[first..], &mut dst[first * target..], Block { a: a - first, ..block });
    } else if b > B {
        let first = (b / 2).next_multiple_of(B);
        halved::<T, A, B>(src, dst, Block { b: first, ..block });
        halved::<T, A, B>(&src[first * source..], &mut dst[first..], Block { b: b - first, ..block });
    } else if (a, b) == (A, B) {
        tile::<T, A, B>(src, dst, source, target);
    } else if (A, B) != (4, 4) && a >= 4 && b >= 4 {
        halved::<T, 4, 4>(src, dst, block);
    } else {
        for row in 0..a {
            strided(&src[row..], &mut dst[row * target..], b, (source, 1));
        }
    }
}

/// Transposes one tile. Rows are read as a whole and written as a whole, so that a line is touched once however the rows collide in the
/// cache.
#[inline(never)]
fn tile<T: Copy, const A: usize, const B: usize>(src: &[T], dst: &mut [T], source: usize, target: usize) {
    let mut rows = [[src[0]; A]; B];
    for (b, row) in rows.iter_mut().enumerate() {
        if let Some(from) = src[b * source..].first_chunk::<A>() {
            *row = *from;
        }
    }
    for a in 0..A {
        if let Some(to) = dst[a * target..].first_chunk_mut::<B>() {
            for (to, row) in to.iter_mut().zip(&rows) {
                *to = row[a];
            }
        }
    }
}

/// Moves a block whose `K` rows of the source lie element by element beside each other in the destination.
fn interleave<T: Copy, const K: usize>(src: &[T], dst: &mut [T], Block { a, source, .. }: Block) {
    let (to, _) = dst.as_chunks_mut::<K>();
    let to = &mut to[..a];
    let rows: [&[T]; K] = std::array::from_fn(|row| &src[row * source..][..a]);
    for (at, to) in to.iter_mut().enumerate() {
        *to = std::array::from_fn(|row| rows[row][at]);
    }
}

/// Moves a block whose `K` rows of the destination lie element by element beside each other in the source.
fn deinterleave<T: Copy, const K: usize>(src: &[T], dst: &mut [T], Block { b, target, .. }: Block) {
    let (from, _) = src.as_chunks::<K>();
    let from = &from[..b];
    let mut rows = dst.chunks_mut(target);
    // The number of a row is a constant in each of these loops, so that they become loops over vectors.
    one_of::<T, K, 0>(from, &mut rows);
    one_of::<T, K, 1>(from, &mut rows);
    one_of::<T, K, 2>(from, &mut rows);
    one_of::<T, K, 3>(from, &mut rows);
    for (row, to) in rows.take(K.saturating_sub(4)).enumerate() {
        for (to, from) in to[..b].iter_mut().zip(from) {
            *to = from[row + 4];
        }
    }
}

/// Writes the next row: the elements with number `N` of `K`.
fn one_of<T: Copy, const K: usize, const N: usize>(from: &[[T; K]], rows: &mut std::slice::ChunksMut<'_, T>) {
    if N >= K {
        return;
    }
    let Some(row) = rows.next() else { return };
    for (to, from) in row[..from.len()].iter_mut().zip(from) {
        *to = from[N];
    }
}
