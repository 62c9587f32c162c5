//! A plan's memory on the device: allocated, filled, read back.

use ocl::ffi;

use crate::check::allocated_bytes;
use crate::cl::{self, Failure};
use crate::error::{DeviceError, TouchedGuard};
use crate::guard;
use crate::info::DeviceInfo;
use crate::plan::{BufferSpec, ChannelType, Initial, MemoryKind, RunOptions};

/// Memory for `spec` with its first contents, and with a fresh guard after a buffer's end.
pub(crate) fn allocate(
    context: &cl::Context,
    queue: &cl::Queue,
    info: &DeviceInfo,
    spec: &BufferSpec,
    options: &RunOptions,
) -> Result<cl::Memory, DeviceError> {
    let fault = |failure: Failure| failure.during(format!("allocating `{}`", spec.name));
    match spec.kind {
        MemoryKind::Buffer => {
            let bytes = host_size(allocated_bytes(spec, options))?;
            let memory = context.create_buffer(bytes).map_err(fault)?;
            fill_buffer(queue, spec, &memory, options).map_err(fault)?;
            Ok(memory)
        }
        MemoryKind::Image2d { width, height, channel } => {
            let kind = channel_code(channel);
            if !context.supports_image2d(kind).map_err(fault)? {
                return Err(DeviceError::Unsupported {
                    device: info.label(),
                    feature: format!("{channel:?} images of four channels"),
                });
            }
            // OpenCL has no image without texels.
            let (width, height) = (host_size(width.max(1))?, host_size(height.max(1))?);
            let memory = context.create_image2d(width, height, kind).map_err(fault)?;
            fill_image(queue, spec, &memory).map_err(fault)?;
            Ok(memory)
        }
    }
}

/// The contents if they are to be read back, and what happened to the guard if anything did.
pub(crate) fn collect(
    queue: &cl::Queue,
    spec: &BufferSpec,
    memory: &cl::Memory,
    options: &RunOptions,
) -> Result<(Option<Vec<u8>>, Option<TouchedGuard>), Failure> {
    let bytes = fitting(spec.bytes);
    let mut contents = spec.read_back.then(|| vec![0_u8; bytes]);
    let MemoryKind::Image2d { width, height, channel } = spec.kind else {
        if let Some(contents) = &mut contents {
            queue.read(memory, 0, contents)?;
        }
        let mut band = vec![0_u8; fitting(options.guard_bytes)];
        queue.read(memory, bytes, &mut band)?;
        return Ok((contents, guard::inspect(&spec.name, spec.bytes, &band)));
    };
    if let Some(contents) = contents.as_mut().filter(|contents| !contents.is_empty()) {
        let row_bytes = fitting(width * channel.texel_bytes());
        queue.read_image(memory, [fitting(width), fitting(height)], row_bytes, contents)?;
    }
    Ok((contents, None))
}

fn fill_buffer(queue: &cl::Queue, spec: &BufferSpec, memory: &cl::Memory, options: &RunOptions) -> Result<(), Failure> {
    let bytes = fitting(spec.bytes);
    match &spec.initial {
        Initial::Data(data) => queue.write(memory, 0, data)?,
        Initial::Fill(byte) => queue.fill(memory, *byte, bytes)?,
    }
    queue.write(memory, bytes, &guard::fresh(fitting(options.guard_bytes)))
}

fn fill_image(queue: &cl::Queue, spec: &BufferSpec, memory: &cl::Memory) -> Result<(), Failure> {
    let MemoryKind::Image2d { width, height, channel } = spec.kind else {
        return Ok(());
    };
    if spec.bytes == 0 {
        return Ok(());
    }
    let extents = [fitting(width), fitting(height)];
    let row_bytes = fitting(width * channel.texel_bytes());
    match &spec.initial {
        Initial::Data(data) => queue.write_image(memory, extents, row_bytes, data),
        Initial::Fill(byte) => {
            let data = vec![*byte; fitting(spec.bytes)];
            queue.write_image(memory, extents, row_bytes, &data)
        }
    }
}

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

/// A size for the host's `size_t`, which is smaller than 64 bits on a 32-bit host.
pub(crate) fn host_size(size: u64) -> Result<usize, DeviceError> {
    usize::try_from(size).map_err(|_| DeviceError::Limit {
        what: "size on this host".into(),
        asked: size,
        limit: u64::try_from(usize::MAX).unwrap_or(u64::MAX),
    })
}

/// A size within memory that was allocated, so that it fits the host's address space.
fn fitting(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
