//! The data that a host needs to run the kernels, written as JSON (`tilewright.kernels/1`).

use std::ops::Range;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use tilewright_device::TexelFormat;
use tilewright_ir::{Bindings, DataType, Diagnostic, Expr, Scope, TextureLimits, Var};

use super::checked::Site;

/// A size or extent: a number, or an expression over symbolic extents and scalar parameters.
///
/// In JSON a number or a string.
#[derive(Clone, Debug, PartialEq)]
pub struct Size(pub Expr);

impl Size {
    /// Evaluates the size for given symbols; a negative value counts as 0.
    ///
    /// # Errors
    /// A symbol has no value, or the size leaves 64 bits.
    pub fn eval(&self, symbols: &Bindings) -> Result<u64, Diagnostic> {
        let fault = |message: String| Diagnostic::error("opencl-size", None, message);
        let value = self.0.eval_index(symbols).map_err(|error| fault(format!("size `{}`: {error}", self.0)))?;
        u64::try_from(value.max(0)).map_err(|_| fault(format!("size `{}` is {value}", self.0)))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match super::range::constant(&self.0).and_then(|value| u64::try_from(value.max(0)).ok()) {
            Some(value) => serializer.serialize_u64(value),
            None => serializer.serialize_str(&self.0.to_string()),
        }
    }
}

/// A symbolic extent or scalar parameter: a value that the host passes.
#[derive(Clone, Debug)]
pub struct ScalarInfo {
    /// The variable.
    pub var: Var,
    /// Whether it is an extent that follows from the shape of an argument.
    pub is_symbol: bool,
}

impl Serialize for ScalarInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ScalarInfo", 3)?;
        out.serialize_field("name", self.var.name())?;
        out.serialize_field("dtype", &self.var.dtype().to_string())?;
        out.serialize_field("symbolic_extent", &self.is_symbol)?;
        out.end()
    }
}

/// The image that holds a texture: rows of texels, not normalised.
#[derive(Clone, Debug)]
pub struct ImageInfo {
    /// Texels in a row.
    pub width: Size,
    /// Rows.
    pub height: Size,
    /// The channels of a texel and their type.
    pub format: TexelFormat,
    /// The host's name for the type of each channel: `CL_FLOAT`.
    pub channel_name: &'static str,
}

/// A device buffer or image.
#[derive(Clone, Debug)]
pub struct BufferInfo {
    /// Its name in the kernels.
    pub name: String,
    /// The data variable of the program.
    pub data: Var,
    /// Position among the buffer parameters; none for an intermediate buffer, which the host allocates.
    pub param: Option<usize>,
    /// Type of an element, lanes included.
    pub dtype: DataType,
    /// Physical shape in elements, as it is in memory after flattening: one axis for linear memory.
    pub physical_shape: Vec<Size>,
    /// The largest number of elements that the proofs cover, for a buffer of symbolic shape. A launch with more is refused.
    pub max_elements: Option<u64>,
    /// Size in bytes on the host; for an image the size of its texels, with no padding between rows.
    pub bytes: Size,
    /// Bytes from one row, an index of the last axis but one, to the next. `None` for a buffer of one axis and for an image,
    /// whose pitch the driver chooses.
    pub row_pitch: Option<Size>,
    /// The image that holds it; none for a buffer in global memory.
    pub image: Option<ImageInfo>,
    /// The scope that the program asks for.
    pub scope: Scope,
    /// Whether a kernel reads it.
    pub read: bool,
    /// Whether a kernel writes it.
    pub written: bool,
}

impl Serialize for BufferInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("BufferInfo", 15)?;
        // `data` is left out: it identifies a variable of this process, and a host knows a buffer by its parameter position.
        out.serialize_field("name", &self.name)?;
        out.serialize_field("role", if self.param.is_some() { "parameter" } else { "intermediate" })?;
        out.serialize_field("parameter", &self.param)?;
        out.serialize_field("dtype", &self.dtype.to_string())?;
        out.serialize_field("physical_shape", &self.physical_shape)?;
        out.serialize_field("max_elements", &self.max_elements)?;
        out.serialize_field("bytes", &self.bytes)?;
        out.serialize_field("row_pitch_bytes", &self.row_pitch)?;
        out.serialize_field("scope", self.scope.name())?;
        out.serialize_field("held_in", if self.image.is_some() { "image2d" } else { "global" })?;
        out.serialize_field("width", &self.image.as_ref().map(|image| &image.width))?;
        out.serialize_field("height", &self.image.as_ref().map(|image| &image.height))?;
        out.serialize_field("channel_order", &self.image.as_ref().map(|image| image.format.channels.name()))?;
        out.serialize_field("channel_type", &self.image.as_ref().map(|image| image.channel_name))?;
        out.serialize_field(
            "access",
            match (self.read, self.written) {
                (true, true) => "read-write",
                (false, true) => "write",
                (true, false) => "read",
                (false, false) => "none",
            },
        )?;
        out.end()
    }
}

/// An argument of a kernel, in the order of its parameters.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgInfo {
    /// The device buffer at this place in [`Metadata::buffers`].
    Buffer(usize),
    /// The origin of the device buffer at this place in its memory: an `int2` of column and row for an image, a `long` in
    /// bytes otherwise. Only placed kernels have it.
    Origin(usize),
    /// The report buffer, 16 bytes of zeros. Only checked kernels that access images have it.
    Report,
    /// The scalar at this place in [`Metadata::scalars`].
    Scalar(usize),
    /// The variable of the loop at this place in [`Metadata::loops`].
    Iteration(usize),
}

/// How loops were assigned to the work-items of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// The program binds loops to threads.
    Explicit,
    /// Parallel or independent loops, bound here.
    Automatic,
    /// One work-item runs everything.
    Single,
}

/// A kernel and its launch.
#[derive(Clone, Debug, serde::Serialize)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// How its loops were assigned to work-items.
    pub binding: Binding,
    /// Work-items along each dimension.
    pub global: [Size; 3],
    /// Work-items of a group along each dimension; `None` leaves the choice to the driver.
    pub local: Option<[Size; 3]>,
    /// Its arguments.
    pub args: Vec<ArgInfo>,
}

/// A loop of the host: the kernels in it are launched once for each iteration, in their order.
#[derive(Clone, Debug)]
pub struct HostLoop {
    /// The variable.
    pub var: Var,
    /// Its first value, over symbolic extents, scalar parameters and the variables of loops around it.
    pub min: Expr,
    /// The number of iterations.
    pub extent: Size,
    /// The places of its kernels in [`Metadata::kernels`].
    pub kernels: Range<usize>,
}

impl Serialize for HostLoop {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("HostLoop", 6)?;
        out.serialize_field("name", self.var.name())?;
        out.serialize_field("dtype", &self.var.dtype().to_string())?;
        out.serialize_field("first", &self.min.to_string())?;
        out.serialize_field("iterations", &self.extent)?;
        out.serialize_field("first_kernel", &self.kernels.start)?;
        out.serialize_field("kernels", &self.kernels.len())?;
        out.end()
    }
}

/// A condition that the host checks before the launch, as the program's `assert` does.
#[derive(Clone, Debug)]
pub struct HostAssert {
    /// The condition, over symbolic extents and scalar parameters.
    pub cond: Expr,
    /// The message if it does not hold.
    pub message: String,
}

impl Serialize for HostAssert {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("HostAssert", 2)?;
        out.serialize_field("condition", &self.cond.to_string())?;
        out.serialize_field("message", &self.message)?;
        out.end()
    }
}

/// The host's description of a program.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Metadata {
    /// `tilewright.kernels/1`.
    pub schema: &'static str,
    /// Name of the function.
    pub function: String,
    /// Symbolic extents and scalar parameters.
    pub scalars: Vec<ScalarInfo>,
    /// Device buffers: parameters in their order, then intermediate ones.
    pub buffers: Vec<BufferInfo>,
    /// Kernels in launch order. Each is launched after the one before has finished.
    pub kernels: Vec<KernelInfo>,
    /// Loops of the host around kernels, outer ones first. Kernels outside of all of them are launched once.
    pub loops: Vec<HostLoop>,
    /// Conditions that the host checks before the first launch.
    pub asserts: Vec<HostAssert>,
    /// Accesses to textures that checked kernels report, from number 1 on.
    pub sites: Vec<Site>,
    /// The largest texture that the program was lowered for. A launch with a larger one is refused.
    #[serde(serialize_with = "limits")]
    pub texture_limits: Option<TextureLimits>,
    /// Options for the compiler of the target.
    pub build_options: Vec<String>,
    /// Extensions that the device must have.
    pub required_extensions: Vec<String>,
    /// Dividends of floor divisions that are written as C's `/` and `%` because they are proved not to be negative
    /// (obligation *dividend*).
    pub nonnegative_dividends: Vec<String>,
    /// Deviations of the kernels from the program, each a sentence.
    pub notes: Vec<String>,
}

/// Writes the limits of textures as `WIDTHxHEIGHT`.
#[expect(clippy::ref_option, reason = "serde passes the field as it is")]
fn limits<S: Serializer>(limits: &Option<TextureLimits>, serializer: S) -> Result<S::Ok, S::Error> {
    limits.map(|limits| limits.to_string()).serialize(serializer)
}
