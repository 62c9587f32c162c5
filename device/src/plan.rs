//! Launch plans: memory objects, and kernel launches in order. Plain data; nothing here uses a device.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::wire;

/// The byte that fills memory without initial contents. A float whose bytes are all 0xFF is a NaN, so a read of such memory
/// shows in the results.
pub const POISON: u8 = 0xFF;

/// Memory and launches, run in order by [`Session::run`](crate::Session::run).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Buffers and images; [`Arg::Memory`] refers to them by their positions.
    pub buffers: Vec<BufferSpec>,
    /// Launches, each of which starts after the end of the one before it.
    pub launches: Vec<Launch>,
}

/// One buffer or image in device memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSpec {
    /// Name for messages.
    pub name: String,
    /// Size in bytes on the host: for an image, `width * height` texels without row padding. May be 0.
    pub bytes: u64,
    /// Buffer or image.
    pub kind: MemoryKind,
    /// Contents before the first launch.
    pub initial: Initial,
    /// Whether its contents are returned after the last launch.
    pub read_back: bool,
    /// Whether it is lent by the session's pool of textures for the run. Only an image without initial contents that is not
    /// read back can be lent; the kernels may get a larger image, whose texels from (0, 0) on are meant.
    pub scratch: bool,
}

/// The kind of a memory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryKind {
    /// Linear memory, a `global` or `constant` pointer in the kernel.
    Buffer,
    /// A 2-d image (`image2d_t`). On the host its rows of `width` texels are contiguous.
    Image2d {
        /// Number of texels in a row.
        width: u64,
        /// Number of rows.
        height: u64,
        /// The channels of a texel.
        format: TexelFormat,
    },
}

/// Element type of an image's channels. Integers are not normalised: `read_imagei`/`read_imageui` return them as they
/// are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ChannelType {
    /// 32-bit float.
    F32,
    /// 16-bit float; kernels see 32-bit floats.
    F16,
    /// Signed 8 bits.
    I8,
    /// Signed 16 bits.
    I16,
    /// Signed 32 bits.
    I32,
    /// Unsigned 8 bits.
    U8,
    /// Unsigned 16 bits.
    U16,
    /// Unsigned 32 bits.
    U32,
}

impl ChannelType {
    /// The size in bytes of one channel.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }
}

/// The channels that a texel has. Every device with images has four; the others are there if the device lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Channels {
    /// One channel, red (`CL_R`).
    R,
    /// Two channels, red and green (`CL_RG`).
    Rg,
    /// Four channels, red, green, blue and alpha (`CL_RGBA`).
    Rgba,
}

impl Channels {
    /// The number of channels.
    pub fn count(self) -> u16 {
        match self {
            Self::R => 1,
            Self::Rg => 2,
            Self::Rgba => 4,
        }
    }

    /// The channels that are so many; `None` for a number of which there are no images.
    pub fn from_count(count: u16) -> Option<Self> {
        [Self::R, Self::Rg, Self::Rgba].into_iter().find(|channels| channels.count() == count)
    }

    /// The name of OpenCL's constant.
    pub fn name(self) -> &'static str {
        match self {
            Self::R => "CL_R",
            Self::Rg => "CL_RG",
            Self::Rgba => "CL_RGBA",
        }
    }
}

/// The format of an image: which channels a texel has, and their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TexelFormat {
    /// The channels of a texel.
    pub channels: Channels,
    /// The type of each of them.
    pub ty: ChannelType,
}

impl TexelFormat {
    /// The size in bytes of one texel.
    pub fn texel_bytes(self) -> u64 {
        self.ty.bytes() * u64::from(self.channels.count())
    }
}

impl From<ChannelType> for TexelFormat {
    /// Four channels of a type, which every device with images has.
    fn from(ty: ChannelType) -> Self {
        Self { channels: Channels::Rgba, ty }
    }
}

impl std::fmt::Display for TexelFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} images of {:?}", self.channels.name(), self.ty)
    }
}

/// The contents of memory before the first launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initial {
    /// These bytes; their number is [`BufferSpec::bytes`].
    Data(#[serde(with = "wire::shared_bytes")] Arc<Vec<u8>>),
    /// One byte, repeated, such as 0, or [`POISON`] for memory that must not be read before it is written.
    Fill(u8),
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Name of the kernel.
    pub kernel: String,
    /// Number of work-items along each dimension, 1 for an unused one. If one of them is 0, the launch is skipped.
    pub global: [u64; 3],
    /// Number of work-items of a work-group along each dimension; `None` if it does not matter: groups of 64 to 256 where dimension 0 has few
    /// work-items, and else the driver's choice.
    pub local: Option<[u64; 3]>,
    /// One argument for each parameter.
    pub args: Vec<Arg>,
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Arg {
    /// The buffer or image at this position of [`LaunchPlan::buffers`].
    Memory(usize),
    /// A value.
    Scalar(Scalar),
    /// Local memory of this many bytes.
    Local(u64),
}

/// A value passed to a kernel. There is no `bool`, because OpenCL does not allow it as a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Scalar {
    /// `char`
    I8(i8),
    /// `short`
    I16(i16),
    /// `int`
    I32(i32),
    /// `long`
    I64(i64),
    /// `uchar`
    U8(u8),
    /// `ushort`
    U16(u16),
    /// `uint`
    U32(u32),
    /// `ulong`
    U64(u64),
    /// `float`
    F32(f32),
    /// `double`
    F64(f64),
    /// `half`, as its bits.
    F16(u16),
    /// A vector or a struct, as the device stores it, including padding.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
}

impl Scalar {
    /// The value's bytes in the host's byte order, which is the device's wherever OpenCL shares memory with it.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::I8(value) => value.to_ne_bytes().to_vec(),
            Self::I16(value) => value.to_ne_bytes().to_vec(),
            Self::I32(value) => value.to_ne_bytes().to_vec(),
            Self::I64(value) => value.to_ne_bytes().to_vec(),
            Self::U8(value) => value.to_ne_bytes().to_vec(),
            Self::U16(value) | Self::F16(value) => value.to_ne_bytes().to_vec(),
            Self::U32(value) => value.to_ne_bytes().to_vec(),
            Self::U64(value) => value.to_ne_bytes().to_vec(),
            Self::F32(value) => value.to_ne_bytes().to_vec(),
            Self::F64(value) => value.to_ne_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl BufferSpec {
    /// A buffer of `bytes` bytes, poisoned and not read back.
    pub fn new(name: impl Into<String>, bytes: u64) -> Self {
        let (kind, initial) = (MemoryKind::Buffer, Initial::Fill(POISON));
        Self { name: name.into(), bytes, kind, initial, read_back: false, scratch: false }
    }

    /// An image of `width` by `height` texels, poisoned and not read back.
    ///
    /// If its size in bytes exceeds 64 bits, it is set to `u64::MAX`, which every device refuses.
    pub fn image2d(name: impl Into<String>, width: u64, height: u64, format: impl Into<TexelFormat>) -> Self {
        let format = format.into();
        let bytes = width.saturating_mul(height).saturating_mul(format.texel_bytes());
        Self { kind: MemoryKind::Image2d { width, height, format }, ..Self::new(name, bytes) }
    }

    /// Sets the initial contents; their length has to be [`BufferSpec::bytes`].
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Arc<Vec<u8>>>) -> Self {
        self.initial = Initial::Data(data.into());
        self
    }

    /// Sets the initial contents to one byte, repeated.
    #[must_use]
    pub fn filled(mut self, byte: u8) -> Self {
        self.initial = Initial::Fill(byte);
        self
    }

    /// Takes the image from the session's pool of textures.
    #[must_use]
    pub fn scratch(mut self) -> Self {
        self.scratch = true;
        self
    }

    /// Returns the contents after the last launch.
    #[must_use]
    pub fn read_back(mut self) -> Self {
        self.read_back = true;
        self
    }
}

/// Options of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Number of guard bytes after the end of each buffer, which are checked after the last launch; 0 for none. Images have
    /// no guards.
    ///
    /// A driver that checks bounds itself, such as Oclgrind, does not report stores into the guards.
    pub guard_bytes: u64,
    /// The snapshots to take during the run.
    pub snapshots: Vec<Snapshot>,
}

/// The whole contents of a buffer or image, read in the middle of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The position of the launch after which the memory is read.
    pub after: usize,
    /// The position of the buffer or image.
    pub memory: usize,
}

impl Default for RunOptions {
    /// Guards of 4096 bytes, so that a store some rows behind the end of a small buffer is found before it damages the memory
    /// of the driver. No snapshots.
    fn default() -> Self {
        Self { guard_bytes: 4096, snapshots: Vec::new() }
    }
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOutput {
    /// For each buffer of the plan, its contents if it asks for them ([`BufferSpec::read_back`]).
    #[serde(with = "wire::byte_options")]
    pub buffers: Vec<Option<Vec<u8>>>,
    /// For each launch of the plan, the time in nanoseconds from its start on the device to its end, from the driver's
    /// profiling events; `None` if it was skipped because it has no work-items.
    pub launch_nanoseconds: Vec<Option<u64>>,
    /// For each snapshot of the options, the contents of the memory.
    #[serde(with = "wire::byte_list")]
    pub snapshots: Vec<Vec<u8>>,
}
