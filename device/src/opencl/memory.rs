//! Allocates, fills and reads back the memory of a plan on the device.

use ocl::ffi;

use super::check::allocated_bytes;
use super::cl::{self, Failure};
use super::guard;
use super::quirks;
use crate::error::{DeviceError, TouchedGuard};
use crate::info::DeviceInfo;
use crate::plan::{BufferSpec, ChannelType, Channels, Initial, MemoryKind, RunOptions, TexelFormat};
use crate::pool::{Scratch, ScratchError, ScratchLimits, ScratchPool, TextureAllocator};

/// A memory object of a plan: allocated for the run, or lent by the pool of textures.
#[derive(Debug)]
pub(crate) enum Held<'a> {
    Own(cl::Memory),
    Lent(Scratch<'a, cl::Memory>),
}

impl Held<'_> {
    pub(crate) fn memory(&self) -> &cl::Memory {
        match self {
            Self::Own(memory) => memory,
            Self::Lent(scratch) => scratch,
        }
    }
}

/// A device as a source of textures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Images<'a> {
    pub(crate) context: &'a cl::Context,
    pub(crate) info: &'a DeviceInfo,
    /// The name of the image in messages.
    pub(crate) name: &'a str,
}

impl TextureAllocator for Images<'_> {
    type Texture = cl::Memory;
    type Error = DeviceError;

    fn create(&self, width: u64, height: u64, format: TexelFormat) -> Result<cl::Memory, DeviceError> {
        let fault = |failure: Failure| failure.during(format!("allocating `{}`", self.name));
        let kind = cl::ImageFormat { order: order_code(format.channels), channel_type: channel_code(format.ty) };
        let is_listed = self.context.supports_image2d(kind).map_err(fault)?;
        if !is_listed || quirks::has_wrong_images(self.info, format) {
            return Err(DeviceError::Unsupported {
                device: self.info.label(),
                feature: format!("{format}, which `{}` needs", self.name),
            });
        }
        self.context.create_image2d(host_size(width)?, host_size(height)?, kind).map_err(fault)
    }
}

/// The limits of a device on the size of a texture.
pub(crate) fn scratch_limits(info: &DeviceInfo) -> ScratchLimits {
    ScratchLimits { width: info.image2d_max_width, height: info.image2d_max_height, bytes: info.max_alloc_bytes }
}

/// Allocates memory for `spec` and fills it with its initial contents; a buffer gets a fresh guard after its end.
pub(crate) fn allocate<'p>(
    images: Images<'_>,
    queue: &cl::Queue,
    pool: &'p ScratchPool<cl::Memory>,
    spec: &BufferSpec,
    options: &RunOptions,
) -> Result<Held<'p>, DeviceError> {
    let fault = |failure: Failure| failure.during(format!("allocating `{}`", spec.name));
    let MemoryKind::Image2d { width, height, format } = spec.kind else {
        let bytes = host_size(allocated_bytes(spec, options))?;
        let memory = images.context.create_buffer(bytes).map_err(fault)?;
        fill_buffer(queue, spec, &memory, options).map_err(fault)?;
        return Ok(Held::Own(memory));
    };
    // OpenCL has no image without texels.
    let (width, height) = (width.max(1), height.max(1));
    if spec.scratch {
        let lent = pool.request(&images, width, height, format).map_err(|error| match error {
            ScratchError::Allocator(error) => error,
            ScratchError::Extents { .. } => DeviceError::Plan(format!("`{}`: {error}", spec.name)),
        })?;
        // The whole texture is poisoned, and not only the requested part, so that reads of the contents of earlier runs are
        // detected.
        let [width, height] = lent.extents();
        fill_image(queue, &BufferSpec::image2d(&spec.name, width, height, format), &lent).map_err(fault)?;
        return Ok(Held::Lent(lent));
    }
    let memory = images.create(width, height, format)?;
    fill_image(queue, spec, &memory).map_err(fault)?;
    Ok(Held::Own(memory))
}

/// Reads the whole contents of `memory`, which belongs to `spec`, without the guard.
pub(crate) fn contents(queue: &cl::Queue, spec: &BufferSpec, memory: &cl::Memory) -> Result<Vec<u8>, Failure> {
    let mut contents = vec![0_u8; fitting(spec.bytes)];
    match spec.kind {
        _ if contents.is_empty() => {}
        MemoryKind::Buffer => queue.read(memory, 0, &mut contents)?,
        MemoryKind::Image2d { width, height, format } => {
            let row_bytes = fitting(width * format.texel_bytes());
            queue.read_image(memory, [fitting(width), fitting(height)], row_bytes, &mut contents)?;
        }
    }
    Ok(contents)
}

/// The contents if `spec` asks for them, and the damage to the guard if there is any.
pub(crate) fn collect(
    queue: &cl::Queue,
    spec: &BufferSpec,
    memory: &cl::Memory,
    options: &RunOptions,
) -> Result<(Option<Vec<u8>>, Option<TouchedGuard>), Failure> {
    let contents = spec.read_back.then(|| contents(queue, spec, memory)).transpose()?;
    let MemoryKind::Buffer = spec.kind else {
        return Ok((contents, None));
    };
    let mut band = vec![0_u8; fitting(options.guard_bytes)];
    queue.read(memory, fitting(spec.bytes), &mut band)?;
    Ok((contents, guard::inspect(&spec.name, spec.bytes, &band)))
}

/// Writes the initial contents and the guard of a buffer.
fn fill_buffer(queue: &cl::Queue, spec: &BufferSpec, memory: &cl::Memory, options: &RunOptions) -> Result<(), Failure> {
    let bytes = fitting(spec.bytes);
    match &spec.initial {
        Initial::Data(data) => queue.write(memory, 0, data)?,
        Initial::Fill(byte) => queue.fill(memory, *byte, bytes)?,
    }
    queue.write(memory, bytes, &guard::fresh(fitting(options.guard_bytes)))
}

/// Writes the initial contents of an image; does nothing if it has no texels.
fn fill_image(queue: &cl::Queue, spec: &BufferSpec, memory: &cl::Memory) -> Result<(), Failure> {
    let MemoryKind::Image2d { width, height, format } = spec.kind else {
        return Ok(());
    };
    if spec.bytes == 0 {
        return Ok(());
    }
    let extents = [fitting(width), fitting(height)];
    let row_bytes = fitting(width * format.texel_bytes());
    match &spec.initial {
        Initial::Data(data) => queue.write_image(memory, extents, row_bytes, data),
        Initial::Fill(byte) => {
            let data = vec![*byte; fitting(spec.bytes)];
            queue.write_image(memory, extents, row_bytes, &data)
        }
    }
}

/// A table of OpenCL's constants for the channels of a texel.
fn order_code(channels: Channels) -> u32 {
    match channels {
        Channels::R => ffi::CL_R,
        Channels::Rg => ffi::CL_RG,
        Channels::Rgba => ffi::CL_RGBA,
    }
}

/// A table of OpenCL's constants for the channel types.
fn channel_code(channel: ChannelType) -> u32 {
    match channel {
        ChannelType::F32 => ffi::CL_FLOAT,
        ChannelType::F16 => ffi::CL_HALF_FLOAT,
        ChannelType::I8 => ffi::CL_SIGNED_INT8,
        ChannelType::I16 => ffi::CL_SIGNED_INT16,
        ChannelType::I32 => ffi::CL_SIGNED_INT32,
        ChannelType::U8 => ffi::CL_UNSIGNED_INT8,
        ChannelType::U16 => ffi::CL_UNSIGNED_INT16,
        ChannelType::U32 => ffi::CL_UNSIGNED_INT32,
    }
}

/// Converts a size to the host's `size_t`; an error on a 32-bit host if the size does not fit.
pub(crate) fn host_size(size: u64) -> Result<usize, DeviceError> {
    usize::try_from(size).map_err(|_| DeviceError::Limit {
        what: "size on this host".into(),
        asked: size,
        limit: u64::try_from(usize::MAX).unwrap_or(u64::MAX),
    })
}

/// Converts a size of allocated memory, which therefore fits the host's address space.
fn fitting(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
