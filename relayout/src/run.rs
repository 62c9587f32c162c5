//! Moves the memory of an array: checks its size, fills the padding, and runs the loops on elements of the right size.

use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::RelayoutError;
use crate::fill;
use crate::nest::Nest;
use crate::strategy::{Fill, Strategy};
use crate::word::Word;

/// Elements that a thread fills at a time.
const PIECE: usize = 1 << 16;

/// Moves `src` to `dst`. Both are the memory of a whole array; slots of `dst` without an element get the value `fill`.
///
/// ```
/// use tilewright_ir::{Expr, IndexMap, Var};
/// use tilewright_relayout::{Placement, Relayout, Strategy, relayout};
///
/// let (i, j) = (Var::index("i"), Var::index("j"));
/// let map = |outputs| {
///     IndexMap::new(vec![i.clone(), j.clone()], vec![Expr::int(2), Expr::int(3)], outputs, vec![])
/// };
/// let from = Placement { shape: vec![2, 3], map: map(vec![Expr::from(&i), Expr::from(&j)])? };
/// let to = Placement { shape: vec![3, 2], map: map(vec![Expr::from(&j), Expr::from(&i)])? };
/// let strategy = Strategy::choose(&Relayout { extents: vec![2, 3], from, to }, 4)?;
/// let mut turned = [0f32; 6];
/// relayout(&strategy, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut turned, 0.0)?;
/// assert_eq!(turned, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A slice does not have the slots of its layout, or the elements are not those that the strategy was chosen for.
pub fn relayout<T>(strategy: &Strategy, src: &[T], dst: &mut [T], fill: T) -> Result<(), RelayoutError>
where
    T: Copy + FromBytes + IntoBytes + Immutable,
{
    strategy.run_bytes(src.as_bytes(), dst.as_mut_bytes(), fill.as_bytes())
}

impl Strategy {
    /// Moves the bytes of the elements. `fill` are those of one element.
    ///
    /// # Errors
    /// A slice does not have the bytes of its layout.
    pub fn run_bytes(&self, src: &[u8], dst: &mut [u8], fill: &[u8]) -> Result<(), RelayoutError> {
        let bytes = |shape: &[u64]| {
            let size = shape.iter().product::<u64>() * self.element_bytes;
            usize::try_from(size).unwrap_or(usize::MAX)
        };
        length("the source", bytes(&self.from_shape), src.len())?;
        length("the destination", bytes(&self.to_shape), dst.len())?;
        length("the fill value", usize::try_from(self.element_bytes).unwrap_or(usize::MAX), fill.len())?;
        match &self.fill {
            Fill::None => {}
            Fill::Whole => dst.par_chunks_mut(PIECE * fill.len()).for_each(|piece| repeat(piece, fill)),
            Fill::Edges(edges) => edges.iter().for_each(|edge| fill::edge(edge, dst, fill)),
        }
        let wide = if self.is_wide { self.loops.last().map_or(1, |one| one.extent) } else { 1 };
        match self.element_bytes * wide {
            1 => self.words::<u8>(src, dst),
            2 => self.words::<u16>(src, dst),
            4 => self.words::<u32>(src, dst),
            8 => self.words::<u64>(src, dst),
            16 => self.words::<u128>(src, dst),
            other => Nest::of_bytes(self, other).run(src, dst),
        }
        Ok(())
    }

    /// Moves the elements as words, or byte by byte if the memory is not aligned for them.
    fn words<W>(&self, src: &[u8], dst: &mut [u8])
    where
        W: Word + FromBytes + IntoBytes + Immutable + KnownLayout,
    {
        if let Ok(from) = <[W]>::ref_from_bytes(src)
            && let Ok(to) = <[W]>::mut_from_bytes(dst)
        {
            return Nest::new(self).run(from, to);
        }
        Nest::of_bytes(self, size_of::<W>() as u64).run(src, dst);
    }
}

/// Writes a value to all elements of a piece of memory.
pub(crate) fn repeat(memory: &mut [u8], value: &[u8]) {
    if let [byte] = value {
        memory.fill(*byte);
    } else {
        memory.chunks_exact_mut(value.len()).for_each(|element| element.copy_from_slice(value));
    }
}

/// Compares the length of a slice with that of its layout.
pub(crate) fn length(side: &'static str, needed: usize, given: usize) -> Result<(), RelayoutError> {
    if needed == given { Ok(()) } else { Err(RelayoutError::Length { side, needed, given }) }
}
