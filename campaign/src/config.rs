//! The ranges from which cases are drawn.

use std::ops::RangeInclusive;

/// The ranges of all generators. The defaults are those of campaigns.
///
/// Percentages are probabilities: 0 means never, 100 means always.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Shapes.
    pub extents: ExtentRanges,
    /// Layouts.
    pub layout: LayoutRanges,
    /// Index maps that are judged.
    pub maps: MapRanges,
    /// Programs.
    pub program: ProgramRanges,
    /// Graphs.
    pub graph: GraphRanges,
    /// Texts.
    pub text: TextRanges,
}

/// Ranges of shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtentRanges {
    /// Number of axes.
    pub rank: RangeInclusive<usize>,
    /// Limit on the extent of an axis.
    pub largest: i64,
    /// Limit on the number of elements of a tensor. Oracles look at every element, so this bounds
    /// the cost of a case.
    pub elements: i64,
    /// Percentage of shapes with pairwise distinct extents.
    pub distinct_percent: u8,
}

/// Ranges of tiled layouts and of the layouts of a program's buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutRanges {
    /// Number of layout operations.
    pub operations: RangeInclusive<usize>,
    /// Percentage of operation lists that are cut into several maps, each applied to the layout of
    /// the one before.
    pub cut_percent: u8,
    /// Block sizes b. Extents are drawn around them: b-1, b, b+1, 2b-1.
    pub blocks: Vec<i64>,
}

/// Probabilities of the properties of index maps.
#[derive(Clone, Debug, PartialEq)]
pub struct MapRanges {
    /// Percentage of maps with a mistake, which have to be refuted.
    pub mistake_percent: u8,
    /// Percentage of maps with symbolic extents.
    pub symbolic_percent: u8,
    /// Share of maps, in units of 1/1000, that the judge has to decide without enumerating all
    /// points.
    pub pointless_permille: u16,
}

/// Ranges of programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramRanges {
    /// Number of input tensors.
    pub inputs: RangeInclusive<usize>,
    /// Number of stages, each of which computes one tensor.
    pub stages: RangeInclusive<usize>,
    /// Depth of expressions: nested operators.
    pub depth: RangeInclusive<usize>,
    /// Extents of reduced axes.
    pub reduced: RangeInclusive<i64>,
    /// Percentage of tensors with a layout of their own.
    pub layout_percent: u8,
    /// Percentage of tensors with vector elements.
    pub vector_percent: u8,
    /// Percentage of loads and stores through a view of the buffer.
    pub view_percent: u8,
    /// Percentage of loops of a kind other than serial.
    pub loop_percent: u8,
    /// Percentage of stages with a guard.
    pub guard_percent: u8,
    /// Percentage of stages written with ramps and broadcasts.
    pub lanes_percent: u8,
    /// Percentage of reductions by a work-group in which one work-item initialises what another one
    /// reduces. Executed in statement order they are well-defined; in a launch without a barrier
    /// they are a race.
    pub group_percent: u8,
    /// Percentage of stages that the threads of groups compute together, with shared memory and barriers.
    pub shared_percent: u8,
    /// Percentage of textures among allocated tensors and inputs.
    pub texture_percent: u8,
    /// Percentage of stages with vectorized loops.
    pub vectorized_percent: u8,
    /// Percentage of programs with symbolic extents.
    pub symbolic_percent: u8,
    /// Limit on the number of elements of a tensor, except in one program out of `large_one_in`,
    /// which is limited by [`ExtentRanges::elements`].
    pub usual_elements: i64,
    /// See [`ProgramRanges::usual_elements`].
    pub large_one_in: u8,
}

/// Ranges of graphs.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphRanges {
    /// Number of steps.
    pub steps: RangeInclusive<usize>,
    /// Number of inputs.
    pub inputs: RangeInclusive<usize>,
    /// Number of kinds (scope and element type) that most tensors are drawn from.
    pub kinds: RangeInclusive<usize>,
    /// Limit on the elements of a buffer or the texels of a texture.
    pub elements: i64,
    /// Number of mutated plans.
    pub changes: RangeInclusive<usize>,
}

/// Ranges of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct TextRanges {
    /// Number of changes to a text, each of one word.
    pub changes: RangeInclusive<usize>,
    /// Limit on the length of a text in bytes.
    pub bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            extents: ExtentRanges { rank: 1..=6, largest: 131, elements: 4096, distinct_percent: 60 },
            layout: LayoutRanges { operations: 0..=6, cut_percent: 25, blocks: vec![2, 3, 4, 8, 16] },
            graph: GraphRanges { steps: 1..=24, inputs: 0..=3, kinds: 1..=6, elements: 512, changes: 0..=4 },
            text: TextRanges { changes: 0..=4, bytes: 4096 },
            program: ProgramRanges {
                inputs: 1..=3,
                stages: 1..=3,
                depth: 0..=3,
                reduced: 1..=9,
                layout_percent: 40,
                vector_percent: 8,
                view_percent: 12,
                loop_percent: 35,
                guard_percent: 20,
                lanes_percent: 10,
                // Without a barrier such a reduction is a race, so only the oracle `device` draws it.
                group_percent: 0,
                shared_percent: 10,
                texture_percent: 10,
                vectorized_percent: 15,
                symbolic_percent: 8,
                usual_elements: 256,
                large_one_in: 8,
            },
            maps: MapRanges { mistake_percent: 30, symbolic_percent: 4, pointless_permille: 10 },
        }
    }
}
