//! The data from which programs are generated. Every value of these types corresponds to a valid
//! program.
//!
//! Numbers that select one of several items are taken modulo the number of items. Leaving something
//! out therefore never makes a recipe invalid; it gives a smaller program.

use serde::{Deserialize, Serialize};
use tilewright_ir::{DataType, ScalarType, Scope};

pub use super::asked::Requested;
pub use super::shared::{Exchange, Shared, Turn};
use crate::map::Op;

/// A program: input tensors, and stages that each compute one tensor from those before it. The last
/// stage computes an output; other stages compute outputs or temporary tensors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The seed of the input values.
    pub seed: u64,
    /// The input tensors.
    pub inputs: Vec<Tensor>,
    /// The types of the scalar parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "names")]
    pub scalars: Vec<DataType>,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// Extents that are symbolic wherever a parameter's shape has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<i64>,
    /// What the program asserts about the symbolic extents before anything else.
    #[serde(default, skip_serializing_if = "Premise::is_nothing")]
    pub premise: Premise,
    /// The steps of the schedule; those that do not apply are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The passes that the program asks for by its attribute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<Requested>,
}

/// A step of a schedule: the first loop or buffer that it applies to, counted from a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The primitive.
    pub primitive: Primitive,
    /// The number of the first loop or buffer that is tried.
    pub place: usize,
    /// The iterations of the inner loop of a split, less two.
    pub amount: u8,
}

/// A primitive of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primitive {
    /// One loop becomes two.
    Split,
    /// A loop is written out.
    Unroll,
    /// Two loops become one.
    Fuse,
    /// A buffer is computed in the loop that reads it.
    ComputeAt,
    /// A value stands where it was read.
    ComputeInline,
    /// A buffer has two halves.
    DoubleBuffer,
    /// The threads of a group compute a reduction of integers.
    Allreduce,
}

impl Primitive {
    /// All of them.
    ///
    /// `reorder` and `loop_kind` are not among them: they are wrong for most programs. TE programs with `compute_at` use them
    /// ([`crate::te`]).
    pub const ALL: [Self; 7] = [
        Self::Split,
        Self::Unroll,
        Self::Fuse,
        Self::ComputeAt,
        Self::ComputeInline,
        Self::DoubleBuffer,
        Self::Allreduce,
    ];

    /// The name of the pass.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Unroll => "unroll",
            Self::Fuse => "fuse",
            Self::ComputeAt => "compute_at",
            Self::ComputeInline => "compute_inline",
            Self::DoubleBuffer => "double_buffer",
            Self::Allreduce => "allreduce",
        }
    }
}

/// An assertion about symbolic extents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Premise {
    /// No assertion.
    #[default]
    Nothing,
    /// They are at most the values in the recipe.
    AtMost,
    /// They are at least the values in the recipe.
    AtLeast,
    /// They equal the values in the recipe.
    Exactly,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// The type of the elements.
    #[serde(with = "name")]
    pub dtype: DataType,
    /// The extents of the logical shape.
    pub shape: Vec<i64>,
    /// The requested layout.
    #[serde(default, skip_serializing_if = "Layout::is_row_major")]
    pub layout: Layout,
    /// The memory scope.
    #[serde(default, skip_serializing_if = "is_global", with = "name")]
    pub scope: Scope,
}

/// A layout that a program requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layout {
    /// Row-major.
    #[default]
    Plain,
    /// An entry in `layout_transform_map`, with axis separators.
    Ops {
        /// The operations; those that are not injective are ignored.
        ops: Vec<Op>,
        /// Positions of axis separators in the layout, modulo its rank.
        separators: Vec<usize>,
        /// Positions at which the operations are cut into several maps, each applied to the layout
        /// of the one before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cuts: Vec<usize>,
    },
    /// For textures: the last axis in texels of four channels, with padding in the last texel.
    Packed,
    /// An entry in `tile_layout`.
    Tiles {
        /// The rotation of the dimension order.
        turn: usize,
        /// The sizes of the tiles.
        tiles: Vec<Vec<u64>>,
        /// The value of the padding; `None` leaves it unspecified.
        pad: Option<i64>,
    },
}

/// The computation of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The tensor that is computed.
    pub target: Tensor,
    /// Whether it is a parameter of the function, as the target of the last stage always is;
    /// otherwise it is allocated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_output: bool,
    /// The value of an element, or of a summand.
    pub value: Value,
    /// The reduction, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce: Option<Reduce>,
    /// How the loops run: one for each axis of the target, then one for each reduced axis; missing
    /// ones are serial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Loop>,
    /// The condition under which elements are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// The number of lanes, if the last axis is computed in vectors; a remainder is computed
    /// element by element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u16>,
    /// Whether indices are `int64` instead of `int32`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wide: bool,
    /// The view through which the target is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<View>,
    /// The threads that compute it together. The loops, the condition and the lanes are then left out, and so is where the accumulator is
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,
}

/// A reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// The extents of the reduced axes.
    pub extents: Vec<i64>,
    /// The operator.
    pub op: ReduceOp,
    /// The initial value.
    pub init: i8,
    /// Where the accumulator is kept.
    pub keep: Keep,
}

/// Operators of reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReduceOp {
    /// Sum; disjunction of `bool`.
    Sum,
    /// Product; conjunction of `bool`.
    Product,
    /// Maximum; disjunction of `bool`.
    Max,
    /// Minimum; conjunction of `bool`.
    Min,
}

/// Where the accumulator of a reduction is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// In the target, initialised in the same nest.
    Target,
    /// In the target, initialised in a nest of its own before.
    Apart,
    /// In the target, initialised in a nest before by other work-items of the same group: one group
    /// for each index of the first axis, one work-item for each index of the second.
    Group,
    /// In a buffer of one element in local memory.
    Local,
}

/// How the loop over an axis runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// The kind of the loop.
    pub kind: Kind,
    /// The inner extent of a split; a condition is added if it does not divide the extent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<i64>,
    /// The first value of the loop variable.
    #[serde(default)]
    pub min: i64,
    /// Whether the index is bound to a variable.
    #[serde(default)]
    pub bind: bool,
    /// Loops are sorted by this number; loops with equal numbers keep the order of their axes.
    #[serde(default)]
    pub order: u8,
}

/// The kind of a loop. Reduced axes are serial or unrolled, whatever the recipe says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Iterations run in order.
    #[default]
    Serial,
    /// Iterations run in any order.
    Parallel,
    /// Iterations are lanes of a vector.
    Vectorized,
    /// Iterations run in order, unrolled.
    Unrolled,
    /// Iterations are work-groups of a launch, as long as there are dimensions.
    Block,
    /// Iterations are work-items of a group, as long as there are dimensions.
    Thread,
}

/// Restricts which elements are computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The condition.
    pub test: Test,
    /// The value of the other elements. `None` leaves them unwritten if no stage reads them.
    pub otherwise: Option<i8>,
}

/// A condition on the indices of an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// The index along the axis is below a number.
    Below(usize, i64),
    /// The index along the axis has this remainder: axis, divisor, remainder.
    Remainder(usize, i64, i64),
    /// The index along the first axis does not exceed that along the second.
    Ordered(usize, usize),
    /// Both conditions hold.
    Both(Box<Test>, Box<Test>),
    /// At least one condition holds.
    Either(Box<Test>, Box<Test>),
    /// The condition does not hold.
    Not(Box<Test>),
}

/// A value, of the type that its context needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A small constant.
    Constant(i8),
    /// The index along an axis.
    Index(usize),
    /// A scalar parameter.
    Scalar(usize),
    /// An element of a tensor.
    Read(Read),
    /// An operator of one operand.
    Unary(Unary, Box<Value>),
    /// An operator of two operands.
    Binary(Binary, Box<Value>, Box<Value>),
    /// A choice between two values by the comparison of two others.
    Compare(Compare, Box<[Value; 4]>),
    /// A choice between two values by the indices; the flag says that only the chosen one is
    /// evaluated.
    Choose(Test, bool, Box<[Value; 2]>),
    /// A value computed in this type and converted.
    Convert(#[serde(with = "name")] DataType, Box<Value>),
}

/// Unary operators; those that a type does not have are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unary {
    /// Negation.
    Neg,
    /// Logical or bitwise negation.
    Not,
    /// Absolute value.
    Abs,
    /// Square root of the absolute value.
    Sqrt,
    /// Rounding down.
    Floor,
    /// Rounding up.
    Ceil,
    /// Rounding to the nearest integer.
    Round,
    /// Rounding towards zero.
    Trunc,
}

/// Binary operators; a type that lacks one uses another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; for integers rounded down, with a divisor from 1 to 8 or a constant one other than 0 and -1.
    Div,
    /// Remainder with the sign of the divisor, which is restricted as for `Div`.
    Mod,
    /// Quotient rounded towards zero.
    TruncDiv,
    /// Remainder with the sign of the dividend.
    TruncMod,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left by 0 to 7.
    Shl,
    /// Shift right by 0 to 7.
    Shr,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// A load of one element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The number of the tensor: inputs first, then the stages before this one.
    pub from: usize,
    /// The indices; a missing one is the index along the target's axis with the same number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<At>,
    /// The treatment of indices outside of the tensor.
    #[serde(default)]
    pub edge: Edge,
    /// The view through which it is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<View>,
}

/// An index of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The index along an axis of the nest, times a number, plus a number.
    Axis(usize, i64, i64),
    /// The sum of the indices along two axes, plus a number: a window.
    Sum(usize, usize, i64),
    /// The last index minus the index along an axis.
    Reverse(usize),
    /// A constant position.
    Fixed(i64),
    /// An index loaded from an integer tensor at the indices of the nest.
    Gather(usize),
}

/// The treatment of an index outside of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It wraps around.
    #[default]
    Wrap,
    /// The nearest element is loaded.
    Clamp,
    /// Nothing is loaded; the value is 0.
    Guard,
}

/// A view of a tensor's memory, for tensors in row-major layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// An alias with the same shape.
    Same,
    /// One axis.
    Flat,
    /// Two axes, the last with this extent if it divides the size.
    Fold(i64),
    /// One axis, starting at this element.
    Offset(i64),
    /// One axis, with a stride of this number of elements.
    Every(i64),
    /// The axes in reverse order, by strides.
    Transposed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
/// For serde: `false` is the default and not written.
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
/// For serde: global memory is the default and not written.
fn is_global(scope: &Scope) -> bool {
    *scope == Scope::Global
}

impl Premise {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    /// For serde: no assertion is the default and not written.
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

impl Layout {
    /// For serde: the row-major layout is the default and not written.
    fn is_row_major(&self) -> bool {
        *self == Self::Plain
    }
}

impl Tensor {
    /// A row-major tensor in global memory.
    pub fn row_major(dtype: impl Into<DataType>, shape: Vec<i64>) -> Self {
        Self { dtype: dtype.into(), shape, layout: Layout::Plain, scope: Scope::Global }
    }

    /// Number of elements.
    pub fn size(&self) -> i64 {
        self.extents().iter().product()
    }

    /// Whether it is a texture. Tensors whose type images do not support are not, whatever their
    /// scope is.
    pub fn is_texture(&self) -> bool {
        self.scope.is_texture() && self.dtype.is_scalar() && tilewright_ir::texture::is_channel_type(self.dtype.scalar)
    }

    /// Whether it is a texture whose last axis is packed in texels.
    pub fn is_packed(&self) -> bool {
        self.is_texture() && self.layout == Layout::Packed
    }

    /// The shape with extents from 1 to 4096. The shape of a texture ends with 4 channels, or at
    /// least 4 if they are packed.
    pub fn extents(&self) -> Vec<i64> {
        let mut shape: Vec<i64> = self.shape.iter().map(|&extent| extent.clamp(1, 1 << 12)).collect();
        if shape.is_empty() {
            shape.push(1);
        }
        if self.is_texture() {
            let least = if self.scope == Scope::TextureNhwc { 4 } else { 3 };
            let (axes, channels) = match (self.is_packed(), shape.pop()) {
                (true, Some(last)) => (1, last.max(4)),
                _ => (0, 4),
            };
            while shape.len() + 1 + axes < least {
                shape.insert(0, 1);
            }
            shape.push(channels);
        }
        shape
    }
}

impl Stage {
    /// The loop over an axis; serial if the recipe has none.
    pub fn loop_of(&self, axis: usize) -> Loop {
        self.loops.get(axis).cloned().unwrap_or_default()
    }

    /// The extents of the reduced axes, limited to 1 to 64.
    pub fn reduced(&self) -> Vec<i64> {
        let extents = self.reduce.iter().flat_map(|reduce| &reduce.extents);
        extents.map(|&extent| extent.clamp(1, 64)).collect()
    }
}

/// The element types that are drawn.
pub(super) const ELEMENTS: [ScalarType; 13] = ScalarType::ELEMENTS;

/// Serializes types and scopes by name.
mod name {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Serializes lists of types by name.
mod names {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<T: Display, S: Serializer>(values: &[T], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}
