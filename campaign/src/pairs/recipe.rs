//! The data from which pairs are built. Every value of these types is a pair of programs.
//!
//! A number that selects one of several places is taken modulo their number; a change that has no place is left out.

use serde::{Deserialize, Serialize};

pub use super::twist::{How, Twist};

/// A pair: the program before, and the changes that give the program after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The seed of the input values.
    pub seed: u64,
    /// The program before.
    pub base: Base,
    /// Changes that are made to both programs: other forms of the same program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub both: Vec<Twist>,
    /// Changes from the program before to the one after, in order.
    pub twists: Vec<Twist>,
}

/// A nest of two loops that stores to `B`, with what a judge may assume too much about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// The outer loop.
    pub outer: Axis,
    /// The inner loop.
    pub inner: Axis,
    /// Whether the elements are `int32` and not `float32`.
    pub integers: bool,
    /// The name that a guard, an index or a value may depend on: an integer of any sign.
    pub name: Name,
    /// The guard around the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// Where the store goes.
    pub index: Index,
    /// What is stored.
    pub value: Value,
    /// What states the number of rows.
    #[serde(default, skip_serializing_if = "Rows::is_constant")]
    pub rows: Rows,
    /// How `B` lies in memory.
    #[serde(default, skip_serializing_if = "View::is_plain")]
    pub view: View,
    /// What the program assumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub premise: Option<Premise>,
    /// The layout that the program asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The extent of a second loop over the same thread index, and of the elements of `D` that it stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<i64>,
    /// Sizes that are too large to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge: Option<Huge>,
}

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// How its iterations run.
    pub kind: Kind,
    /// The first value of its variable; loops over thread indices start at 0.
    pub min: i64,
    /// Number of iterations.
    pub extent: i64,
}

/// The kind of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Iterations run in order.
    Serial,
    /// Iterations run at once.
    Parallel,
    /// Iterations are lanes.
    Vectorized,
    /// Iterations are work-groups.
    Block,
    /// Iterations are work-items of a group.
    Thread,
}

impl Kind {
    /// The thread index that the loop is bound to, if it is.
    pub(super) fn thread(self) -> Option<&'static str> {
        match self {
            Self::Serial | Self::Parallel | Self::Vectorized => None,
            Self::Block => Some("blockIdx.x"),
            Self::Thread => Some("threadIdx.x"),
        }
    }

    /// The name of the loop in TVMScript.
    pub(super) fn callee(self) -> &'static str {
        match self {
            Self::Parallel => "T.parallel",
            Self::Vectorized => "T.vectorized",
            Self::Serial | Self::Block | Self::Thread => "T.serial",
        }
    }
}

/// An integer of any sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// The variable of the outer loop.
    Outer,
    /// The first scalar parameter.
    Scalar,
    /// The second scalar parameter.
    Second,
    /// A variable bound to an element of `K`, which is read only.
    Bound,
    /// An element of `K`.
    Loaded,
    /// A variable bound to an expression of the outer loop's variable.
    Computed,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// `<`.
    Lt,
    /// `>=`.
    Ge,
    /// `>`.
    Gt,
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// The name is compared with a number.
    Name(Compare, i64),
    /// The variable of the inner loop is below a number.
    Below(i64),
    /// The inner variable divided by the first number, which may be negative, is below the second.
    Quotient(i64, i64),
}

/// The index of the store along the inner axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// A row for each outer iteration, a column for each inner one.
    Element,
    /// A column for each inner iteration, the same row for all outer ones.
    Column,
    /// A column for each inner iteration where the name compares like this, else the first column.
    Chosen(Compare, i64),
    /// The inner variable times the name, where that is a column.
    Product,
    /// The inner variable divided by the name, where that is a column.
    Quotient,
    /// A row for each outer iteration.
    Row,
}

/// The stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// `A[row, column]`.
    Copy,
    /// The sum of `A[row, column]` and a multiple of the name.
    Plus(i64),
    /// The name and the inner variable divided by a number that may be negative: the quotient and the remainder.
    Divided(i64),
    /// The difference of the scalar parameters.
    Difference,
    /// Three elements of `A`, summed from the left.
    Sum,
    /// The element of `B` that is stored, plus one of `A`.
    Accumulate,
    /// The element of `B` so many columns further, around the end, plus one of `A`.
    Neighbour(i64),
    /// An element of `A` that was stored to `C` just before.
    Through,
    /// An element of a texture, to which elements of `A` were stored by a nest before, under the guard.
    Texture,
}

/// What states the number of rows, which is the extent of the outer loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// A constant.
    #[default]
    Constant,
    /// A symbolic extent.
    Symbol,
    /// The first scalar parameter.
    Scalar,
    /// The first scalar parameter, but the outer loop has its own extent.
    Stated,
}

impl Rows {
    /// Whether it is a constant.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_constant(&self) -> bool {
        *self == Self::Constant
    }
}

/// How `B` lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Row-major from the start.
    #[default]
    Plain,
    /// With these strides; elements overlap if they are small.
    Strides(i64, i64),
    /// With the second scalar parameter as the stride of the rows.
    SymbolicStride,
    /// At an offset.
    Offset(i64),
    /// At the second scalar parameter as an offset.
    SymbolicOffset,
    /// With as many more rows as the second scalar parameter says.
    SymbolicShape,
    /// Through a declared view of `B` with these strides.
    Declared(i64, i64),
}

impl View {
    /// Whether it is row-major.
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

/// An assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Premise {
    /// A parameter has so many elements that the limits on sizes contradict it.
    Oversized,
    /// An assertion divides by zero.
    WithoutValue,
    /// The first scalar parameter is below a number, and not below a larger one.
    Contradictory(i64),
    /// The first scalar parameter is compared with a number.
    Scalar(Compare, i64),
    /// An integer is compared with a number, and is at least another one.
    Stated(Asserted, Compare, i64, i64),
}

/// An integer that an assertion may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asserted {
    /// The first scalar parameter.
    Scalar,
    /// The second scalar parameter, in a sum with the first one.
    Sum,
    /// The symbolic number of rows, or else the first scalar parameter.
    Rows,
    /// The first element of `K`, if the program has it, or else the second scalar parameter.
    Loaded,
}

/// A layout request; each one differs from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// `B` transposed.
    Transposed,
    /// The columns of `B` in blocks of two.
    Blocked,
    /// `B` in tiles.
    Tiled,
    /// `B` in tiles, the other way round.
    TiledColumns,
}

/// A size that is too large to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Huge {
    /// The number of rows of `A` and `B`.
    pub rows: i64,
    /// Whether the outer loop runs over all rows.
    pub is_iterated: bool,
}
