//! The innermost loops of a move: copies, transposes and interleavings on slices of elements.
//!
//! A transpose moves a block in square tiles whose rows are about one cache line on both sides.

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
    match size_of::<T>() {
        ..=2 => halved::<T, 32>(src, dst, block),
        3..=4 => halved::<T, 16>(src, dst, block),
        5..=8 => halved::<T, 8>(src, dst, block),
        _ => halved::<T, 4>(src, dst, block),
    }
}

/// Transposes a block: its longer side is halved until a tile of `L` by `L` is left. So neighbouring tiles are moved one soon after the
/// other, and every page and line of both memories is still at hand when it is needed again, whatever the sizes of the caches.
fn halved<T: Copy, const L: usize>(src: &[T], dst: &mut [T], block: Block) {
    let Block { a, b, source, target } = block;
    let half = |side: usize| (side / 2).next_multiple_of(L);
    if a > L && a >= b {
        let first = half(a);
        halved::<T, L>(src, dst, Block { a: first, ..block });
        halved::<T, L>(&src[first..], &mut dst[first * target..], Block { a: a - first, ..block });
    } else if b > L {
        let first = half(b);
        halved::<T, L>(src, dst, Block { b: first, ..block });
        halved::<T, L>(&src[first * source..], &mut dst[first..], Block { b: b - first, ..block });
    } else if (a, b) == (L, L) {
        tile::<T, L>(src, dst, source, target);
    } else {
        for row in 0..a {
            strided(&src[row..], &mut dst[row * target..], b, (source, 1));
        }
    }
}

/// Transposes one tile. Its rows are one line, or half of one: they are read as a whole and written as a whole, so that a line is touched
/// once however the rows collide in the cache.
#[inline]
fn tile<T: Copy, const L: usize>(src: &[T], dst: &mut [T], source: usize, target: usize) {
    let mut rows = [[src[0]; L]; L];
    for (b, row) in rows.iter_mut().enumerate() {
        if let Some(from) = src[b * source..].first_chunk::<L>() {
            *row = *from;
        }
    }
    for a in 0..L {
        if let Some(to) = dst[a * target..].first_chunk_mut::<L>() {
            for b in 0..L {
                to[b] = rows[b][a];
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
    for (row, to) in dst.chunks_mut(target).take(K).enumerate() {
        for (to, from) in to[..b].iter_mut().zip(from) {
            *to = from[row];
        }
    }
}
