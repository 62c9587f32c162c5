//! Memory: allocations and the views that buffers are of them.
//!
//! Threads share allocations, so the cells are atomic and every access is relaxed: on the machines we run on that is a
//! plain load or store. A cell is as wide as the narrowest element that any buffer of the program sees there.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use tilewright_ir::ScalarType;

/// The cells of an allocation, all of one width.
pub(crate) enum Cells {
    One(Vec<AtomicU8>),
    Two(Vec<AtomicU16>),
    Four(Vec<AtomicU32>),
    Eight(Vec<AtomicU64>),
}

/// An allocation.
pub(crate) struct Memory {
    pub(crate) cells: Cells,
    /// One flag a cell; none means that everything is defined, or that nobody wants to know.
    pub(crate) defined: Option<Vec<AtomicU8>>,
    /// Reading what is not defined is a fault.
    pub(crate) check: bool,
    /// Which allocation it is, for the race check.
    pub(crate) id: usize,
}

/// There are not as many bytes.
pub(crate) struct OutOfMemory;

fn zeroed<T: Default>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
    items.resize_with(len, T::default);
    Ok(items)
}

impl Memory {
    /// `len` cells of `width` bytes. With `track` it is kept who is defined, which nothing is yet; with `check`, reading
    /// the others is a fault.
    pub(crate) fn new(width: u64, len: usize, [track, check]: [bool; 2], id: usize) -> Result<Self, OutOfMemory> {
        let cells = match width {
            1 => Cells::One(zeroed(len)?),
            2 => Cells::Two(zeroed(len)?),
            4 => Cells::Four(zeroed(len)?),
            _ => Cells::Eight(zeroed(len)?),
        };
        Ok(Self { cells, defined: if track { Some(zeroed(len)?) } else { None }, check, id })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.cells {
            Cells::One(cells) => cells.len(),
            Cells::Two(cells) => cells.len(),
            Cells::Four(cells) => cells.len(),
            Cells::Eight(cells) => cells.len(),
        }
    }

    /// The bits of a cell; none outside.
    #[inline]
    pub(crate) fn get(&self, cell: usize) -> Option<u64> {
        Some(match &self.cells {
            Cells::Four(cells) => cells.get(cell)?.load(Relaxed).into(),
            Cells::One(cells) => cells.get(cell)?.load(Relaxed).into(),
            Cells::Two(cells) => cells.get(cell)?.load(Relaxed).into(),
            Cells::Eight(cells) => cells.get(cell)?.load(Relaxed),
        })
    }

    /// Writes the low bits to a cell and marks it defined; none outside.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
    pub(crate) fn set(&self, cell: usize, bits: u64) -> Option<()> {
        match &self.cells {
            Cells::Four(cells) => cells.get(cell)?.store(bits as u32, Relaxed),
            Cells::One(cells) => cells.get(cell)?.store(bits as u8, Relaxed),
            Cells::Two(cells) => cells.get(cell)?.store(bits as u16, Relaxed),
            Cells::Eight(cells) => cells.get(cell)?.store(bits, Relaxed),
        }
        if let Some(defined) = &self.defined {
            defined.get(cell)?.store(1, Relaxed);
        }
        Some(())
    }

    /// Whether a cell may be read.
    #[inline]
    pub(crate) fn readable(&self, cell: usize) -> bool {
        !self.check || self.is_defined(cell)
    }

    /// Whether a cell is defined; true where nobody keeps track.
    #[inline]
    pub(crate) fn is_defined(&self, cell: usize) -> bool {
        match &self.defined {
            None => true,
            Some(defined) => defined.get(cell).is_some_and(|flag| flag.load(Relaxed) != 0),
        }
    }

    /// Writes all cells from little-endian bytes and marks none; more or fewer bytes than cells are left out.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) {
        match &self.cells {
            Cells::One(cells) => {
                cells.iter().zip(bytes).for_each(|(cell, &byte)| cell.store(byte, Relaxed));
            }
            Cells::Two(cells) => {
                let words = bytes.as_chunks().0.iter().map(|&word| u16::from_le_bytes(word));
                cells.iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
            }
            Cells::Four(cells) => {
                let words = bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word));
                cells.iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
            }
            Cells::Eight(cells) => {
                let words = bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
                cells.iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
            }
        }
    }

    /// The bits of an element of several cells, little endian, `width` bytes a cell.
    pub(crate) fn get_wide(&self, cell: usize, count: usize, width: u64) -> Option<u64> {
        if count == 1 {
            return self.get(cell);
        }
        let mut bits = 0;
        for part in (0..count).rev() {
            bits = bits << (8 * width) | self.get(cell.checked_add(part)?)?;
        }
        Some(bits)
    }

    /// Writes an element of several cells.
    pub(crate) fn set_wide(&self, cell: usize, count: usize, width: u64, bits: u64) -> Option<()> {
        if count == 1 {
            return self.set(cell, bits);
        }
        self.get(cell.checked_add(count)?.checked_sub(1)?)?;
        for part in 0..count {
            self.set(cell + part, bits >> (8 * width * part as u64))?;
        }
        Some(())
    }
}

/// A buffer with the values of its extents, strides and offset.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Which allocation, as an index into a frame's memories.
    pub(crate) slot: usize,
    /// Extents in elements.
    pub(crate) extents: Vec<u64>,
    /// Distance in cells between neighbours along each axis.
    pub(crate) strides: Vec<i64>,
    /// First cell.
    pub(crate) offset: i64,
    /// Cells that one lane takes.
    pub(crate) per_lane: usize,
    /// Bytes of a cell.
    pub(crate) width: u64,
}

/// Numbers that make no view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadView(pub(crate) String);

/// What a view is made of, in elements.
pub(crate) struct Geometry<'a> {
    pub(crate) extents: &'a [i128],
    pub(crate) strides: Option<&'a [i128]>,
    pub(crate) offset: i128,
    pub(crate) lanes: u16,
    pub(crate) scalar: ScalarType,
}

impl View {
    /// A view on the allocation `slot` of cells of `width` bytes. Every address inside the extents is shown to fit 63
    /// bits.
    pub(crate) fn new(slot: usize, width: u64, geometry: &Geometry<'_>) -> Result<Self, BadView> {
        let too_large = || BadView("its addresses leave 63 bits".to_owned());
        let per_lane = geometry.scalar.bytes() / width.max(1);
        let per_element = i128::from(per_lane) * i128::from(geometry.lanes);
        let mut strides = Vec::with_capacity(geometry.extents.len());
        let mut compact: i128 = 1;
        for (axis, &extent) in geometry.extents.iter().enumerate().rev() {
            if extent < 0 {
                return Err(BadView(format!("its extent {extent} on axis {axis} is negative")));
            }
            let stride = geometry.strides.map_or(compact, |strides| strides[axis]);
            strides.push(stride.checked_mul(per_element).ok_or_else(too_large)?);
            compact = compact.checked_mul(extent).ok_or_else(too_large)?;
        }
        strides.reverse();
        let offset = geometry.offset.checked_mul(per_element).ok_or_else(too_large)?;
        let mut reach = offset.checked_abs().ok_or_else(too_large)?.checked_add(per_element).ok_or_else(too_large)?;
        for (&extent, &stride) in geometry.extents.iter().zip(&strides) {
            let span = (extent - 1).max(0).checked_mul(stride).and_then(i128::checked_abs).ok_or_else(too_large)?;
            reach = reach.checked_add(span).ok_or_else(too_large)?;
        }
        if reach > i128::from(i64::MAX / 2) {
            return Err(too_large());
        }
        let narrow = |value: i128| i64::try_from(value).map_err(|_| too_large());
        Ok(Self {
            slot,
            extents: geometry
                .extents
                .iter()
                .map(|&extent| u64::try_from(extent).map_err(|_| too_large()))
                .collect::<Result<_, _>>()?,
            strides: strides.into_iter().map(narrow).collect::<Result<_, _>>()?,
            offset: narrow(offset)?,
            per_lane: usize::try_from(per_lane).map_err(|_| too_large())?,
            width,
        })
    }

    /// Cells from the start of the allocation to the end of the last element; 0 if it has no element. None if an
    /// element lies before the start.
    pub(crate) fn needed(&self, lanes: u16) -> Option<u64> {
        if self.extents.contains(&0) {
            return Some(0);
        }
        let (mut low, mut high) = (i128::from(self.offset), i128::from(self.offset));
        for (&extent, &stride) in self.extents.iter().zip(&self.strides) {
            let span = i128::from(extent - 1) * i128::from(stride);
            if span < 0 { low += span } else { high += span }
        }
        let end = high + i128::from(lanes) * self.per_lane as i128;
        if low < 0 { None } else { u64::try_from(end).ok() }
    }
}
