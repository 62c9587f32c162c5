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
    /// How many lists of operations of a hundred are several maps, one on the layout of the other.
    pub cut_percent: u8,
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
    /// Number of tensors that are read.
    pub inputs: RangeInclusive<usize>,
    /// Number of stages, each of which computes a tensor.
    pub stages: RangeInclusive<usize>,
    /// Depth of values: operators above operators.
    pub depth: RangeInclusive<usize>,
    /// Extents of the axes that are reduced.
    pub reduced: RangeInclusive<i64>,
    /// How many tensors of a hundred have a layout of their own.
    pub layout_percent: u8,
    /// How many tensors of a hundred have elements of several lanes.
    pub vector_percent: u8,
    /// How many reads and stores of a hundred go through another view of the memory.
    pub view_percent: u8,
    /// How many loops of a hundred are not plain serial ones.
    pub loop_percent: u8,
    /// How many stages of a hundred have a condition.
    pub guard_percent: u8,
    /// How many stages of a hundred are written in vectors.
    pub lanes_percent: u8,
    /// How many reductions of a hundred are those of a group of work-items, of which one initialises what another one reduces:
    /// in the order of the statements they mean something, as a launch without a barrier they are a race.
    pub group_percent: u8,
    /// How many tensors of a hundred that are allocated, and inputs, are textures.
    pub texture_percent: u8,
    /// How many stages of a hundred have loops over lanes of the kind that become vectors.
    pub vectorized_percent: u8,
    /// How many programs of a hundred have extents that they do not know.
    pub symbolic_percent: u8,
    /// Most elements of a tensor, but for one program in `large_one_in`, which has as many as shapes may have.
    pub usual_elements: i64,
    /// See [`Program::usual_elements`].
    pub large_one_in: u8,
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
            layout: Layout { operations: 0..=6, cut_percent: 25, blocks: vec![2, 3, 4, 8, 16] },
            graph: Graph { steps: 1..=24, inputs: 0..=3, kinds: 1..=6, elements: 512, changes: 0..=4 },
            text: Text { changes: 0..=4, bytes: 4096 },
            program: Program {
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
                group_percent: 0,
                texture_percent: 10,
                vectorized_percent: 15,
                symbolic_percent: 8,
                usual_elements: 256,
                large_one_in: 8,
            },
            maps: Maps { mistake_percent: 30, symbolic_percent: 4, pointless_permille: 10 },
        }
    }
}
