//! Every range that cases are drawn from, in one place.

use std::ops::RangeInclusive;

/// What cases look like. The defaults are those of campaigns; whoever wants larger ones changes a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Shapes.
    pub extents: Extents,
    /// Layouts.
    pub layout: Layout,
    /// Index maps that are judged.
    pub maps: Maps,
    /// Programs.
    pub program: Program,
}

/// Ranges of shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Extents {
    /// Number of axes.
    pub rank: RangeInclusive<usize>,
    /// Largest extent of an axis.
    pub largest: i64,
    /// Most elements of a tensor.
    pub elements: i64,
    /// How many shapes of a hundred have pairwise distinct extents.
    pub distinct_percent: u8,
}

/// Ranges of layouts.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Number of operations.
    pub operations: RangeInclusive<usize>,
    /// Block sizes; extents are drawn around them: b-1, b, b+1, 2b-1.
    pub blocks: Vec<i64>,
}

/// Shares of index maps that are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Maps {
    /// How many of a hundred have a mistake, to be refuted.
    pub mistake_percent: u8,
    /// How many of a hundred have symbolic extents.
    pub symbolic_percent: u8,
    /// How many of a thousand the judge has to decide without trying all points.
    pub pointless_permille: u16,
}

/// Ranges of programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Number of statements at the root.
    pub stages: RangeInclusive<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            extents: Extents { rank: 1..=6, largest: 131, elements: 4096, distinct_percent: 60 },
            layout: Layout { operations: 0..=6, blocks: vec![2, 3, 4, 8, 16] },
            maps: Maps { mistake_percent: 30, symbolic_percent: 4, pointless_permille: 10 },
            program: Program { stages: 1..=3 },
        }
    }
}
