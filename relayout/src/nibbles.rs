//! Elements of 4 bits, two in a byte: the first one in the low half.
//!
//! They are moved as bytes, one element each, by the same strategy: halves are spread over bytes before and put together after the move.

use rayon::prelude::*;

use crate::error::RelayoutError;
use crate::run::length;
use crate::strategy::Strategy;

/// Bytes of packed elements that a thread packs or unpacks at a time.
const PIECE: usize = 1 << 14;

impl Strategy {
    /// Moves elements of 4 bits. The strategy is one for elements of 1 byte; slots without an element get the low half of `fill`. If a
    /// memory has an odd number of slots, the high half of its last byte is 0 in the destination and ignored in the source.
    ///
    /// # Errors
    /// The strategy is one for larger elements, or a slice does not have the bytes of its layout, half of them in an element.
    pub fn run_nibbles(&self, src: &[u8], dst: &mut [u8], fill: u8) -> Result<(), RelayoutError> {
        if self.element_bytes != 1 {
            return Err(RelayoutError::ElementSize(usize::try_from(self.element_bytes).unwrap_or(usize::MAX)));
        }
        let slots = |shape: &[u64]| usize::try_from(shape.iter().product::<u64>()).unwrap_or(usize::MAX);
        let (from, to) = (slots(&self.from_shape), slots(&self.to_shape));
        length("the source", from.div_ceil(2), src.len())?;
        length("the destination", to.div_ceil(2), dst.len())?;
        let (mut wide, mut moved) = (vec![0; from], vec![0; to]);
        wide.par_chunks_mut(2 * PIECE).zip(src.par_chunks(PIECE)).for_each(|(wide, src)| unpack(src, wide));
        self.run_bytes(&wide, &mut moved, &[fill & 0xF])?;
        dst.par_chunks_mut(PIECE).zip(moved.par_chunks(2 * PIECE)).for_each(|(dst, moved)| pack(moved, dst));
        Ok(())
    }
}

/// Writes both halves of each byte to bytes of their own.
fn unpack(packed: &[u8], wide: &mut [u8]) {
    let (pairs, rest) = wide.as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(packed) {
        *pair = [byte & 0xF, byte >> 4];
    }
    if let ([last], Some(byte)) = (rest, packed.last()) {
        *last = byte & 0xF;
    }
}

/// Puts pairs of elements together; a last one without a partner gets a high half of 0.
fn pack(wide: &[u8], packed: &mut [u8]) {
    let (pairs, rest) = wide.as_chunks::<2>();
    for (byte, [low, high]) in packed.iter_mut().zip(pairs) {
        *byte = low | high << 4;
    }
    if let ([last], Some(byte)) = (rest, packed.last_mut()) {
        *byte = *last;
    }
}
