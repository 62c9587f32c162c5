//! Moves elements one by one, each to where the two maps say: for maps that are not made of digits, such as rotations, reversals and xor.
//!
//! The positions are evaluated by threads, some hundred nanoseconds for each element. [`crate::Strategy`] is thousands of times faster where
//! there is one.

use rayon::prelude::*;

use crate::digits::{Placement, Relayout};
use crate::error::RelayoutError;
use crate::run::{length, repeat};

/// Elements whose positions are evaluated before they are moved.
const BATCH: u64 = 1 << 18;

impl Relayout {
    /// Moves the bytes of the elements. `fill` are those of one element, which the slots get that hold none.
    ///
    /// # Errors
    /// A map does not fit the shape, has no place for an index, or a slice does not have the bytes of its layout.
    pub fn run_each(&self, src: &[u8], dst: &mut [u8], fill: &[u8]) -> Result<(), RelayoutError> {
        self.fits()?;
        let bytes = fill.len();
        let size =
            |placement: &Placement| Ok(usize::try_from(placement.slots()?).unwrap_or(usize::MAX).saturating_mul(bytes));
        length("the source", size(&self.from)?, src.len())?;
        length("the destination", size(&self.to)?, dst.len())?;
        if bytes == 0 {
            return Err(RelayoutError::ElementSize(0));
        }
        repeat(dst, fill);
        let count: u64 = self.extents.iter().product();
        let mut first = 0;
        while first < count {
            let end = count.min(first + BATCH);
            let places = (first..end).into_par_iter().map(|number| self.places(number));
            for (from, to) in places.collect::<Result<Vec<_>, _>>()? {
                dst[to * bytes..][..bytes].copy_from_slice(&src[from * bytes..][..bytes]);
            }
            first = end;
        }
        Ok(())
    }

    /// The positions in both memories of the element with a number in row-major order.
    fn places(&self, number: u64) -> Result<(usize, usize), RelayoutError> {
        let mut rest = number;
        let mut index = vec![0; self.extents.len()];
        for (at, extent) in index.iter_mut().zip(&self.extents).rev() {
            *at = rest % extent;
            rest /= extent;
        }
        let position = |placement: &Placement, side| {
            let place = placement.place(&index, side)?;
            let position = place.iter().zip(&placement.shape).fold(0, |sum, (at, extent)| sum * extent + at);
            Ok(usize::try_from(position).unwrap_or(usize::MAX))
        };
        Ok((position(&self.from, "A")?, position(&self.to, "B")?))
    }
}
