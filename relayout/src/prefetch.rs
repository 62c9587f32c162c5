//! Asks for memory before it is read or written.
//!
//! The rows of a tile are far apart, so that the processor does not foresee which lines the next tile needs. If they are fetched while
//! this tile is moved, the time of a move is that of its bytes and not that of its cache misses.

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Pieces of memory of one length at one distance, in elements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rows {
    /// The position of the first element.
    pub(crate) first: usize,
    /// The number of rows.
    pub(crate) count: usize,
    /// Elements of a row.
    pub(crate) length: usize,
    /// Elements from a row to the next.
    pub(crate) stride: usize,
}

/// The cache lines of some rows, a part of which is fetched at a time.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The position of the next row, and the rows that are left.
    at: usize,
    left: usize,
    stride: usize,
    /// Lines of a row, and elements of a line.
    lines: usize,
    step: usize,
    /// How many rows are fetched at a time.
    share: usize,
}

impl Lines {
    /// Returns the lines of rows in a memory, to be fetched in `parts` parts.
    pub(crate) fn new<T>(memory: &[T], rows: Rows, parts: usize) -> Self {
        let size = size_of::<T>();
        let step = (LINE / size).max(1);
        let Rows { first, count, length, stride } = rows;
        let (count, length, stride) =
            if stride == length { ((count * length).div_ceil(step), step, step) } else { (count, length, stride) };
        // A row that does not begin with a line may be in one line more.
        let offset = if stride == step { 0 } else { (memory.as_ptr().addr() + first * size) % LINE };
        let lines = (offset + length * size).div_ceil(LINE);
        Self { at: first, left: count, stride, lines, step, share: count.div_ceil(parts.max(1)) }
    }

    /// Fetches the next part.
    pub(crate) fn fetch<T>(&mut self, memory: &[T]) {
        for _ in 0..self.share.min(self.left) {
            for line in 0..self.lines {
                if let Some(element) = memory.get(self.at + line * self.step) {
                    fetch(element);
                }
            }
            self.at += self.stride;
        }
        self.left = self.left.saturating_sub(self.share);
    }
}

/// Fetches the line of an element into the nearest cache.
#[cfg(target_arch = "x86_64")]
fn fetch<T>(element: &T) {
    safe_arch::prefetch_t1(element);
}

/// Does nothing: there is no safe function for it.
#[cfg(not(target_arch = "x86_64"))]
fn fetch<T>(_: &T) {}
