//! Code generation targets: a target is a value that the generator reads, and a folder that provides it.
//!
//! The generator itself writes what all dialects of C share: declarations, loops, operators and their precedence, integer
//! constants. A [`Target`] provides everything in which the dialects differ:
//!
//! | part | OpenCL C | what else it could be |
//! |---|---|---|
//! | [`Words::kernel`] | `kernel void` | `extern "C" __global__ void` |
//! | [`Words::global`] | `global ` | nothing |
//! | [`Words::group_id`] | `get_group_id(0)` | `blockIdx.x` |
//! | [`Words::barrier`] | `barrier(CLK_GLOBAL_MEM_FENCE);` | `__syncthreads();` |
//! | [`Dialect::read`] | `vload4(0, A + i)` | a cast to a pointer to `float4` |
//! | [`Target::images`] | `read_imagef(..)` | none: textures are refused |
//!
//! [`super::opencl`] is the first target; a small second one, in the tests, shows that nothing else has to change.

use std::fmt;

use tilewright_device::ChannelType;
use tilewright_ir::{BinaryOp, DataType, MathFn, ScalarType};

use super::code::Code;
use super::helpers::Helpers;

/// A language that kernels are written in, and the devices that run it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Short name, for options and reports: `opencl`.
    pub name: &'static str,
    /// The interface of the host, for messages: `OpenCL`.
    pub api: &'static str,
    /// Its version, for messages: `OpenCL 1.2`.
    pub version: &'static str,
    /// The language, for messages: `OpenCL C`.
    pub language: &'static str,
    /// The suffix of source files, without a dot: `cl`.
    pub file_suffix: &'static str,
    /// Options for the compiler of the target.
    pub build_options: &'static [&'static str],
    /// The extension that a device needs for kernels that compute with `float64`; `None` if every device supports `float64`.
    pub fp64_extension: Option<&'static str>,
    /// Numbers of lanes that values may have, increasing, 1 included.
    pub lanes: &'static [u16],
    /// The least resources that every device has.
    pub limits: Limits,
    /// Words of the language.
    pub(crate) words: Words,
    /// Names that kernels must not define.
    pub(crate) reserved: Reserved,
    /// How types, values and memory are written.
    pub(crate) dialect: &'static dyn Dialect,
    /// How textures are accessed; `None` for a target without images, which refuses textures.
    pub(crate) images: Option<&'static dyn Images>,
}

/// The least resources that every device of a target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest private array of a work-item, in bytes.
    pub private_bytes: u64,
    /// The memory that the work-items of a group share, in bytes.
    pub local_bytes: u64,
    /// Images that a kernel may read.
    pub read_images: usize,
    /// Images that a kernel may write.
    pub written_images: usize,
}

/// Words of a dialect. A word that qualifies another one ends with a blank, or is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// The text before the name of a kernel: its qualifiers and return type.
    pub(crate) kernel: &'static str,
    /// Qualifier of a pointer to global memory.
    pub(crate) global: &'static str,
    /// Qualifier of a pointer to memory of a work-item.
    pub(crate) private: &'static str,
    /// Qualifier of a pointer to memory of a work-group.
    pub(crate) local: &'static str,
    /// Qualifier of an array in memory of a work-group.
    pub(crate) local_array: &'static str,
    /// Qualifier of a pointer that no other pointer aliases.
    pub(crate) restrict: &'static str,
    /// The group of a work-item along each axis.
    pub(crate) group_id: [&'static str; 3],
    /// The number of a work-item in its group along each axis.
    pub(crate) local_id: [&'static str; 3],
    /// The number of a work-item in the launch along each axis.
    pub(crate) global_id: [&'static str; 3],
    /// The statement at which the work-items of a group wait for each other. After it, each sees what the others wrote
    /// to global memory before it.
    pub(crate) barrier: &'static str,
    /// The same, for memory of the group as well.
    pub(crate) full_barrier: &'static str,
    /// The line that asks for the loop below it to be unrolled.
    pub(crate) unroll: &'static str,
}

/// Names that a language reserves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reserved {
    /// Keywords, types and builtin functions, without the digits at the end of vector types.
    pub(crate) words: &'static [&'static str],
    /// Prefixes of reserved names.
    pub(crate) prefixes: &'static [&'static str],
    /// Macros.
    pub(crate) macros: &'static [&'static str],
}

/// The reason why the kernels of a program cannot be written. Each target has an error code of its own for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A value is read from memory outside of every kernel.
    RootLet,
    /// A buffer has several axes that are not physical ones.
    Unflattened,
    /// A vector has a number of lanes that the language has no type for.
    Lanes,
    /// The lanes of a conditional cannot be written one by one.
    LaneChoice,
    /// The lanes of an index cannot be written one by one.
    VectorIndex,
    /// A variable has no value.
    Unbound,
    /// A buffer has no memory.
    Memory,
    /// Memory that work-items share.
    Shared,
    /// A private array of unknown or large size.
    PrivateSize,
    /// The extent of a launch axis is not known at the launch.
    LaunchExtent,
    /// A launch axis is bound twice around a statement.
    BoundTwice,
    /// Work-items that would have to wait for each other.
    Order,
    /// A texture that is not lowered to texels, or that the target has no images for.
    Texture,
    /// A texture that one kernel reads and writes.
    ImageAccess,
    /// A store to some channels of a texel.
    ChannelStore,
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Memory of the device.
    Global,
    /// Memory of a work-item.
    Private,
    /// Memory of a work-group.
    Local,
    /// An image: no pointer reaches it.
    Image,
}

impl Words {
    /// The qualifier of a pointer to memory; none for an image.
    pub(crate) fn space(&self, space: Space) -> &'static str {
        match space {
            Space::Global => self.global,
            Space::Private => self.private,
            Space::Local => self.local,
            Space::Image => "",
        }
    }
}

/// How a dialect of C writes types, values and memory.
///
/// A method that returns the name of a function adds its definition to `helpers` if the language has no such function.
///
/// Methods about vectors are only called for numbers of lanes in [`Target::lanes`].
pub(crate) trait Dialect: fmt::Debug + Sync {
    /// The stable code of an error.
    fn code(&self, refusal: Refusal) -> &'static str;
    /// The lines before all definitions: the arithmetic must be IEEE's, without contraction. `fp64` says whether kernels
    /// compute with `float64`.
    fn prelude(&self, fp64: bool) -> String;

    /// The type in which one lane is computed: an integer type for `bool`; it may be wider than `float16` and `bfloat16`.
    fn scalar_name(&self, ty: ScalarType) -> &'static str;
    /// The type of a value.
    fn value_name(&self, ty: DataType) -> String;
    /// The type of one lane in memory.
    fn storage_name(&self, ty: ScalarType) -> &'static str;
    /// The unsigned type in which C computes with an integer type without undefined behaviour: 32 bits at least.
    fn wrapping_name(&self, ty: ScalarType) -> &'static str;

    /// The element of type `ty` at `position` elements from `pointer`.
    fn read(&self, helpers: &mut Helpers, ty: DataType, position: &str, pointer: &str) -> String;
    /// The statement that writes an element.
    fn write(&self, helpers: &mut Helpers, ty: DataType, position: &str, pointer: &str, value: &str) -> String;

    /// The function that divides integers of any sign (`//`, `%`, truncating or not), by 0 too.
    fn division(&self, helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String;
    /// The least or greatest of two integers of exactly the type.
    fn integer_min_max(&self, op: BinaryOp, ty: DataType, a: &Code, b: &Code) -> Code;
    /// The function that gives the least or greatest of two floats: a NaN loses, the first of two zeros wins.
    fn float_min_max(&self, helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String;
    /// A math function of one operation of the type that it is computed in.
    fn math(&self, helpers: &mut Helpers, function: MathFn, ty: DataType, args: &[&Code]) -> Code;
    /// The function that rounds a `float` to `float16` or `bfloat16`, to nearest even, and returns a `float`.
    fn round(&self, helpers: &mut Helpers, ty: DataType) -> String;
    /// The function that converts floats to integers: towards zero, saturating, NaN gives 0.
    fn saturate(&self, helpers: &mut Helpers, from: DataType, to: DataType) -> String;
    /// The function that converts `float64` to `float16`, rounding once.
    fn half_from_double(&self, helpers: &mut Helpers, lanes: u16) -> String;
    /// The function that converts `float64` or an integer to a `float` rounded to odd.
    fn float_to_odd(&self, helpers: &mut Helpers, from: DataType) -> String;

    /// A vector of the given lanes; if only one is given, it is repeated in every lane.
    fn vector(&self, ty: DataType, parts: &[String]) -> Code;
    /// Lane `k` of the variable or call `vector`.
    fn lane(&self, vector: &str, k: u16) -> String;
    /// A vector in another type of as many lanes, each lane converted.
    fn convert(&self, to: DataType, value: &Code) -> Code;
    /// `a op b` on vectors of signed integers, wrapping: computed in the unsigned type and converted back.
    fn wrapping_vector(&self, ty: DataType, symbol: &str, binds: u8, a: &Code, b: &Code) -> Code;
    /// Converts the language's result of a comparison of vectors to 0 or 1 in each lane.
    fn truth(&self, lanes: u16, comparison: &Code) -> Code;
    /// `a` in the lanes in which `condition` is 1, `b` elsewhere. Both are evaluated.
    fn select(&self, ty: DataType, condition: &Code, a: &Code, b: &Code) -> Code;
}

/// The kind of an image's channels: the word in the names of its builtins, and the type that they read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelKind {
    /// Part of the names of functions.
    pub(crate) word: &'static str,
    /// The type in which the builtins read and write a channel.
    pub(crate) ty: ScalarType,
    /// How many channels a texel has.
    pub(crate) channels: u16,
}

/// How a dialect accesses images. Their builtins read and write texels of four values, also where an image has fewer channels.
pub(crate) trait Images: fmt::Debug + Sync {
    /// So many channels that hold elements of a type.
    fn kind(&self, ty: ScalarType, channels: u16) -> ChannelKind;
    /// The host's name for the type of channels.
    fn channel_name(&self, channel: ChannelType) -> &'static str;
    /// A parameter of a kernel that is an image.
    fn param(&self, written: bool, name: &str) -> String;
    /// How the origin of a texture in an image is passed.
    fn origin(&self) -> Origin;
    /// A place in an image.
    fn coordinates(&self, column: &str, row: &str) -> String;
    /// The texel at a place.
    fn read(&self, helpers: &mut Helpers, kind: ChannelKind, image: &str, place: &str) -> String;
    /// The statement that writes the texel at a place.
    fn write(&self, kind: ChannelKind, image: &str, place: &str, texel: &str) -> String;
    /// The first channels of the four values that a read gives.
    fn first(&self, texel: &str, channels: u16) -> String;
    /// The four values that a write takes, for a texel of fewer channels; the image ignores the others.
    fn filled_up(&self, kind: ChannelKind, texel: &str) -> String;
    /// The function that selects a channel of a texel by a number that is known only at run time.
    fn channel(&self, helpers: &mut Helpers, kind: ChannelKind) -> String;
    /// The function that reads a texel after a check that its place is inside. See [`super::checked`] for its parameters.
    fn checked_read(&self, helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String;
    /// The function that reads a channel after the same check.
    fn checked_channel(&self, helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String;
    /// The function that writes a texel after the same check.
    fn checked_write(&self, helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String;
}

/// How the origin of a texture in its image is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Type of the parameter.
    pub(crate) ty: &'static str,
    /// Member that is the column.
    pub(crate) column: &'static str,
    /// Member that is the row.
    pub(crate) row: &'static str,
}
