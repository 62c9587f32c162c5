//! The elements that are moved as numbers, and the loops over vectors for each of them.
//!
//! A square of `LANES` rows of `LANES` elements fits into vector registers of 16 bytes, in which it is transposed:
//!
//! ```text
//! a0 a1 a2 a3        a0 b0 c0 d0
//! b0 b1 b2 b3   ->   a1 b1 c1 d1       4 loads, 8 shuffles, 4 stores for 16 elements of 4 bytes
//! c0 c1 c2 c3        a2 b2 c2 d2
//! d0 d1 d2 d3        a3 b3 c3 d3
//! ```

use wide::{u8x16, u16x8, u32x4, u64x2};

/// An element of 1, 2, 4, 8 or 16 bytes.
pub(crate) trait Word: Copy + Default + Send + Sync {
    /// The elements of a vector of 16 bytes.
    const LANES: usize;

    /// Transposes `LANES` rows of `width` elements, a multiple of `LANES`. The rows of `src` are `source` elements apart, and those of
    /// `dst`, which get `LANES` elements each, `target` elements.
    fn transpose(src: &[Self], source: usize, width: usize, dst: &mut [Self], target: usize);

    /// Transposes `height` rows of `LANES` elements, `height` being a multiple of `LANES`. The rows of `src` are `source` elements apart,
    /// and those of `dst`, which get `height` elements each, `target` elements.
    fn turn(src: &[Self], source: usize, height: usize, dst: &mut [Self], target: usize);

    /// Writes the first elements of all pairs to `even`, and the second ones to `odd`.
    fn unzip(pairs: &[[Self; 2]], even: &mut [Self], odd: &mut [Self]) {
        for (to, pair) in even.iter_mut().zip(pairs) {
            *to = pair[0];
        }
        for (to, pair) in odd.iter_mut().zip(pairs) {
            *to = pair[1];
        }
    }
}

macro_rules! transpose {
    ($word:ty, $lanes:literal, $square:path) => {
        fn transpose(src: &[Self], source: usize, width: usize, dst: &mut [Self], target: usize) {
            let mut rows: [&[[$word; $lanes]]; $lanes] = [&[]; $lanes];
            for (row, from) in rows.iter_mut().enumerate() {
                *from = src[row * source..][..width].as_chunks().0;
            }
            let count = width / $lanes;
            for at in 0..count {
                let mut square = [[0; $lanes]; $lanes];
                for (to, from) in square.iter_mut().zip(&rows) {
                    *to = from[at];
                }
                for (row, from) in $square(square).iter().enumerate() {
                    if let Some(to) = dst[(at * $lanes + row) * target..].first_chunk_mut() {
                        *to = *from;
                    }
                }
            }
        }

        fn turn(src: &[Self], source: usize, height: usize, dst: &mut [Self], target: usize) {
            let count = height / $lanes;
            let mut rows: [&mut [[$word; $lanes]]; $lanes] = std::array::from_fn(|_| Default::default());
            for (row, to) in rows.iter_mut().zip(dst.chunks_mut(target)) {
                *row = &mut to[..height].as_chunks_mut().0[..count];
            }
            for at in 0..count {
                let mut square = [[0; $lanes]; $lanes];
                for (row, to) in square.iter_mut().enumerate() {
                    if let Some(from) = src[(at * $lanes + row) * source..].first_chunk() {
                        *to = *from;
                    }
                }
                for (to, from) in rows.iter_mut().zip(&$square(square)) {
                    if let Some(to) = to.get_mut(at) {
                        *to = *from;
                    }
                }
            }
        }
    };
}

impl Word for u8 {
    const LANES: usize = 16;
    transpose!(u8, 16, square_of_bytes);

    fn unzip(pairs: &[[Self; 2]], even: &mut [Self], odd: &mut [Self]) {
        // Shifts of words become vector instructions; the choice of every other byte does not.
        for (to, pair) in even.iter_mut().zip(pairs) {
            *to = (u16::from_le_bytes(*pair) & 0xFF) as Self;
        }
        for (to, pair) in odd.iter_mut().zip(pairs) {
            *to = (u16::from_le_bytes(*pair) >> 8) as Self;
        }
    }
}

impl Word for u16 {
    const LANES: usize = 8;
    transpose!(u16, 8, square_of_halves);
}

impl Word for u32 {
    const LANES: usize = 4;
    transpose!(u32, 4, square_of_words);
}

impl Word for u64 {
    const LANES: usize = 2;
    transpose!(u64, 2, square_of_doubles);
}

impl Word for u128 {
    const LANES: usize = 1;

    fn transpose(src: &[Self], _: usize, width: usize, dst: &mut [Self], target: usize) {
        for (from, to) in src[..width].iter().zip(dst.iter_mut().step_by(target.max(1))) {
            *to = *from;
        }
    }

    fn turn(src: &[Self], source: usize, height: usize, dst: &mut [Self], _: usize) {
        for (from, to) in src.iter().step_by(source.max(1)).zip(&mut dst[..height]) {
            *to = *from;
        }
    }
}

/// Transposes by four steps, each of which interleaves row `k` with row `k + 8`.
#[inline]
fn square_of_bytes(square: [[u8; 16]; 16]) -> [[u8; 16]; 16] {
    let mut rows = square.map(u8x16::new);
    for _ in 0..4 {
        let before = rows;
        for pair in 0..8 {
            rows[2 * pair] = u8x16::unpack_low(before[pair], before[pair + 8]);
            rows[2 * pair + 1] = u8x16::unpack_high(before[pair], before[pair + 8]);
        }
    }
    rows.map(u8x16::to_array)
}

#[inline]
fn square_of_halves(square: [[u16; 8]; 8]) -> [[u16; 8]; 8] {
    u16x8::transpose(square.map(u16x8::new)).map(u16x8::to_array)
}

#[inline]
fn square_of_words(square: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    u32x4::transpose(square.map(u32x4::new)).map(u32x4::to_array)
}

#[inline]
fn square_of_doubles(square: [[u64; 2]; 2]) -> [[u64; 2]; 2] {
    u64x2::transpose(square.map(u64x2::new)).map(u64x2::to_array)
}
