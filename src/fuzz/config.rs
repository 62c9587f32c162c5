//! Every range that cases are drawn from, in one place.

use std::ops::RangeInclusive;

/// What cases look like. The defaults are those of campaigns; whoever wants larger ones changes a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Shapes.
    pub extents: Extents,
    /// Layouts.
    pub layout: Layout,
    /// Programs.
    pub program: Program,
    /// Graphs.
    pub graph: Graph,
    /// Texts.
    pub text: Text,
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

/// Ranges of programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Number of statements at the root.
    pub stages: RangeInclusive<usize>,
}

/// Ranges of graphs.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Number of steps.
    pub steps: RangeInclusive<usize>,
    /// Number of inputs.
    pub inputs: RangeInclusive<usize>,
    /// Kinds of tensors that most tensors are of.
    pub kinds: RangeInclusive<usize>,
    /// Most elements of a buffer or texels of a texture.
    pub elements: i64,
    /// Plans with one thing changed.
    pub changes: RangeInclusive<usize>,
}

/// Ranges of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Changes of a text, word by word.
    pub changes: RangeInclusive<usize>,
    /// Most bytes.
    pub bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            extents: Extents { rank: 1..=6, largest: 131, elements: 4096, distinct_percent: 60 },
            layout: Layout { operations: 0..=6, blocks: vec![2, 3, 4, 8, 16] },
            program: Program { stages: 1..=3 },
            graph: Graph { steps: 1..=24, inputs: 0..=3, kinds: 1..=6, elements: 512, changes: 0..=4 },
            text: Text { changes: 0..=4, bytes: 4096 },
        }
    }
}
