//! What a generated program is made of, as plain data: whatever these fields hold, there is a valid program of it.
//!
//! Numbers that choose one of several things are taken modulo their count, so that leaving something out never makes a
//! recipe invalid: it makes a smaller program.

use serde::{Deserialize, Serialize};
use tilewright_ir::{DataType, ScalarType, Scope};

use crate::map::Op;

/// A program: tensors that are passed in, and stages, each of which computes one tensor from those before it. The last stage
/// computes the output; other stages compute outputs or tensors that are allocated for the time of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Seed of the input values.
    pub seed: u64,
    /// Tensors that are read.
    pub inputs: Vec<Tensor>,
    /// Types of the scalars that are passed in.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "names")]
    pub scalars: Vec<DataType>,
    /// What is computed, in order.
    pub stages: Vec<Stage>,
    /// Extents that the program does not know: where a tensor that is passed in has one, it is a symbol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<i64>,
    /// What the program asserts of them before anything else.
    #[serde(default, skip_serializing_if = "Premise::is_nothing")]
    pub premise: Premise,
}

/// What a program asserts of the extents that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Premise {
    /// Nothing.
    #[default]
    Nothing,
    /// They are what they are in the recipe, or less.
    AtMost,
    /// Or more.
    AtLeast,
    /// Not less and not more.
    Exactly,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// Type of the elements.
    #[serde(with = "name")]
    pub dtype: DataType,
    /// Extents.
    pub shape: Vec<i64>,
    /// The layout that the program asks for.
    #[serde(default, skip_serializing_if = "Layout::is_plain")]
    pub layout: Layout,
    /// Where it lives.
    #[serde(default, skip_serializing_if = "is_global", with = "name")]
    pub scope: Scope,
}

/// A layout that a program asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layout {
    /// Row-major.
    #[default]
    Plain,
    /// An entry in `layout_transform_map`, with axis separators.
    Ops {
        /// What is done to the axes; operations that are not one-to-one are left out.
        ops: Vec<Op>,
        /// Positions of separators in the layout, modulo its rank.
        separators: Vec<usize>,
        /// Where the operations are cut: each part is a map of its own, on the layout that the one before it made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cuts: Vec<usize>,
    },
    /// Of a texture: the last axis in texels, four channels each, the last texel padded.
    Packed,
    /// An entry in `tile_layout`.
    Tiles {
        /// How far the order of the dimensions is turned.
        turn: usize,
        /// Sizes of the tiles.
        tiles: Vec<Vec<u64>>,
        /// The value of the padding, if it is to have one.
        pad: Option<i64>,
    },
}

/// One tensor computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// What is computed.
    pub target: Tensor,
    /// Whether it is passed to the function, as every tensor of the last stage is; else it is allocated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_output: bool,
    /// The value of an element, or what is summed up.
    pub value: Value,
    /// How elements are gathered from several values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce: Option<Reduce>,
    /// How the loops run: one for each axis of the target, then one for each axis that is reduced; serial where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Loop>,
    /// Which elements are computed, where not all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// The last axis in vectors of so many lanes, the rest of it one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u16>,
    /// Whether indices are `int64`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wide: bool,
    /// Through what the target is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<View>,
}

/// A reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// Extents of the axes that are reduced.
    pub extents: Vec<i64>,
    /// How two values become one.
    pub op: ReduceOp,
    /// The first value.
    pub init: i8,
    /// Where the sum is kept.
    pub keep: Keep,
}

/// Reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReduceOp {
    /// Sum; of `bool`, or.
    Sum,
    /// Product; of `bool`, and.
    Product,
    /// Greatest; of `bool`, or.
    Max,
    /// Least; of `bool`, and.
    Min,
}

/// Where a sum is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// In the target, which is initialised in the same nest.
    Target,
    /// In the target, which is initialised in a nest before.
    Apart,
    /// In the target, which is initialised in a nest before by other work-items of the same group: one group for each index
    /// of the first axis, one work-item for each of the second.
    Group,
    /// In a buffer of one element, in local memory.
    Local,
}

/// How the loop over an axis runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// In which way its iterations run.
    pub kind: Kind,
    /// Split in two by this size, with a condition where it does not divide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<i64>,
    /// First value of the loop variable.
    #[serde(default)]
    pub min: i64,
    /// Whether the index is bound to a variable of its own.
    #[serde(default)]
    pub bind: bool,
    /// Loops are ordered by this, and by their axis where it is the same.
    #[serde(default)]
    pub order: u8,
}

/// In which way the iterations of a loop run. An axis that is reduced is serial or unrolled whatever stands here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// In order.
    #[default]
    Serial,
    /// In any order.
    Parallel,
    /// As lanes.
    Vectorized,
    /// In order, spelled out.
    Unrolled,
    /// By the work-groups of a launch, as long as there are axes.
    Block,
    /// By the work-items of a group, as long as there are axes.
    Thread,
}

/// Which elements are computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The condition.
    pub test: Test,
    /// What the other elements are. Without it they are not written, if nothing reads them.
    pub otherwise: Option<i8>,
}

/// A condition on the indices of an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// The index is below this.
    Below(usize, i64),
    /// The index has this remainder.
    Remainder(usize, i64, i64),
    /// One index is not above another.
    Ordered(usize, usize),
    /// Both.
    Both(Box<Test>, Box<Test>),
    /// One of them.
    Either(Box<Test>, Box<Test>),
    /// Not so.
    Not(Box<Test>),
}

/// A value of the type that is wanted where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A small number.
    Constant(i8),
    /// The index along an axis.
    Index(usize),
    /// A scalar that is passed in.
    Scalar(usize),
    /// An element of a tensor.
    Read(Read),
    /// An operator of one operand.
    Unary(Unary, Box<Value>),
    /// An operator of two operands.
    Binary(Binary, Box<Value>, Box<Value>),
    /// One of two values, by comparing two others.
    Compare(Compare, Box<[Value; 4]>),
    /// One of two values, by the indices; the flag says that only the one that is chosen is evaluated.
    Choose(Test, bool, Box<[Value; 2]>),
    /// Converted from this type.
    Convert(#[serde(with = "name")] DataType, Box<Value>),
}

/// Operators of one operand; those that a type does not have are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unary {
    /// Minus.
    Neg,
    /// Logical or bitwise not.
    Not,
    /// Absolute value.
    Abs,
    /// Square root of the absolute value.
    Sqrt,
    /// Rounded down.
    Floor,
    /// Rounded up.
    Ceil,
    /// Rounded to the nearest.
    Round,
    /// Rounded towards zero.
    Trunc,
}

/// Operators of two operands; a type that does not have one takes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; of integers rounded down, by a divisor from 1 to 8.
    Div,
    /// Remainder with the sign of the divisor, from 1 to 8.
    Mod,
    /// Quotient rounded towards zero.
    TruncDiv,
    /// Remainder with the sign of the dividend.
    TruncMod,
    /// Lesser.
    Min,
    /// Greater.
    Max,
    /// Both bits.
    And,
    /// Either bit.
    Or,
    /// One bit of two.
    Xor,
    /// Shifted left by 0 to 7.
    Shl,
    /// Shifted right by 0 to 7.
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

/// An element of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Which tensor: inputs first, then the stages before this one.
    pub from: usize,
    /// The indices; where there is none, the index of the target's axis of that number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<At>,
    /// What happens with an index outside of the tensor.
    #[serde(default)]
    pub edge: Edge,
    /// Through what it is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<View>,
}

/// An index of a read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The index along an axis of the nest, times a number, plus one.
    Axis(usize, i64, i64),
    /// The sum of two, plus a number: a window.
    Sum(usize, usize, i64),
    /// The last index minus that along an axis.
    Reverse(usize),
    /// A fixed place.
    Fixed(i64),
    /// What stands in a tensor of `int32` at the indices of the nest.
    Gather(usize),
}

/// What happens with an index outside of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It starts again.
    #[default]
    Wrap,
    /// The nearest element is taken.
    Clamp,
    /// The element is not read; its value is 0.
    Guard,
}

/// Another view of a tensor's memory, for tensors in row-major layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The same shape: an alias.
    Same,
    /// One axis.
    Flat,
    /// Two axes, the last of this extent if it divides the size.
    Fold(i64),
    /// One axis, from this element on.
    Offset(i64),
    /// One axis, of every so many-th element.
    Every(i64),
    /// The axes the other way round, by strides.
    Transposed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_global(scope: &Scope) -> bool {
    *scope == Scope::Global
}

impl Premise {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

impl Layout {
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

impl Tensor {
    /// A row-major tensor in global memory.
    pub fn plain(dtype: impl Into<DataType>, shape: Vec<i64>) -> Self {
        Self { dtype: dtype.into(), shape, layout: Layout::Plain, scope: Scope::Global }
    }

    /// Number of elements.
    pub fn size(&self) -> i64 {
        self.extents().iter().product()
    }

    /// Whether it is a texture: its type has to be one that images have.
    pub fn is_texture(&self) -> bool {
        self.scope.is_texture() && self.dtype.is_scalar() && tilewright_ir::texture::is_channel_type(self.dtype.scalar)
    }

    /// Whether it is a texture whose last axis is packed in texels.
    pub fn is_packed(&self) -> bool {
        self.is_texture() && self.layout == Layout::Packed
    }

    /// The shape; that of a texture ends with 4 channels, or with at least as many where they are packed.
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
    /// The loop of an axis.
    pub fn loop_of(&self, axis: usize) -> Loop {
        self.loops.get(axis).cloned().unwrap_or_default()
    }

    /// Extents of the axes that are reduced.
    pub fn reduced(&self) -> Vec<i64> {
        let extents = self.reduce.iter().flat_map(|reduce| &reduce.extents);
        extents.map(|&extent| extent.clamp(1, 64)).collect()
    }
}

/// Element types by name.
pub(super) const ELEMENTS: [ScalarType; 13] = ScalarType::ELEMENTS;

/// Types and scopes in files are their names.
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

/// Lists of them.
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
