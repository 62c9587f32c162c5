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
    /// How many groups of such rows there are.
    pub(crate) groups: usize,
    /// Elements from a group to the next.
    pub(crate) group: usize,
}

impl Rows {
    /// Returns the position of each row.
    pub(crate) fn positions(self) -> impl Iterator<Item = usize> {
        let group = move |group: usize| self.first + group * self.group;
        (0..self.groups).flat_map(move |number| (0..self.count).map(move |row| group(number) + row * self.stride))
    }
}

/// The cache lines of some rows, a part of which is fetched at a time.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rows: Rows,
    /// The position of the next row, and its number in its group.
    at: usize,
    row: usize,
    /// Lines of a row, and elements of a line.
    each: usize,
    step: usize,
    /// How many rows are fetched at a time.
    share: usize,
}

impl Lines {
    /// Returns the lines of rows in a memory, to be fetched in `parts` parts.
    pub(crate) fn new<T>(memory: &[T], rows: Rows, parts: usize) -> Self {
        let size = size_of::<T>();
        let step = (LINE / size).max(1);
        let is_one = rows.stride == rows.length && rows.groups == 1;
        let length = 4 * step;
        let count = (rows.count * rows.length).div_ceil(length);
        let rows = if is_one { Rows { count, length, stride: length, ..rows } } else { rows };
        // A row that does not begin with a line may be in one line more.
        let offset = if is_one { 0 } else { (memory.as_ptr().addr() + rows.first * size) % LINE };
        let each = (offset + rows.length * size).div_ceil(LINE);
        Self { rows, at: rows.first, row: 0, each, step, share: (rows.count * rows.groups).div_ceil(parts.max(1)) }
    }

    /// Fetches the next part.
    pub(crate) fn fetch<T>(&mut self, memory: &[T]) {
        for _ in 0..self.share {
            if self.row == self.rows.count {
                if self.rows.groups <= 1 {
                    return;
                }
                self.rows.groups -= 1;
                self.rows.first += self.rows.group;
                (self.row, self.at) = (0, self.rows.first);
            }
            let end = (self.at + self.each * self.step).min(memory.len());
            let mut at = self.at;
            while at < end {
                fetch(&memory[at]);
                at += self.step;
            }
            self.row += 1;
            self.at += self.rows.stride;
        }
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
