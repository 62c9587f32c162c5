//! Buffers and images.

use ocl::ffi;

use super::handle::{Context, Memory};
use super::loader as api;
use super::{Failure, check};

/// Every kernel argument may be read and written, so that one buffer can be an output here and an input there.
const FLAGS: u64 = ffi::CL_MEM_READ_WRITE;

impl Context {
    /// A buffer of `bytes` bytes (at least one, as OpenCL demands).
    pub(crate) fn create_buffer(&self, bytes: usize) -> Result<Memory, Failure> {
        let mut code = 0;
        // SAFETY: the context is valid; without USE_HOST_PTR or COPY_HOST_PTR the host pointer must be null, and is.
        let raw = unsafe { api::clCreateBuffer(self.raw(), FLAGS, bytes, std::ptr::null_mut(), &raw mut code) };
        Memory::adopt("clCreateBuffer", raw, code)
    }

    /// A 2-d image with four channels of `channel_type` (`CL_FLOAT`, ...); extents in texels, at least one each.
    pub(crate) fn create_image2d(&self, width: usize, height: usize, channel_type: u32) -> Result<Memory, Failure> {
        let format = rgba(channel_type);
        let desc = ffi::cl_image_desc {
            image_type: ffi::CL_MEM_OBJECT_IMAGE2D,
            image_width: width,
            image_height: height,
            image_depth: 0,
            image_array_size: 0,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: std::ptr::null_mut(),
        };
        let mut code = 0;
        // SAFETY: the context is valid, format and description outlive the call, and there is no host pointer.
        let raw = unsafe {
            api::clCreateImage(
                self.raw(),
                FLAGS,
                &raw const format,
                &raw const desc,
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        Memory::adopt("clCreateImage", raw, code)
    }

    /// Whether the device has four-channel 2-d images of `channel_type` that kernels may read and write.
    pub(crate) fn supports_image2d(&self, channel_type: u32) -> Result<bool, Failure> {
        let get = |room, formats, count| {
            // SAFETY: the context is valid; `formats` is null with no room, or has room for `room` entries.
            unsafe {
                api::clGetSupportedImageFormats(self.raw(), FLAGS, ffi::CL_MEM_OBJECT_IMAGE2D, room, formats, count)
            }
        };
        let call = "clGetSupportedImageFormats";
        let mut count = 0;
        check(call, get(0, std::ptr::null_mut(), &raw mut count))?;
        if count == 0 {
            return Ok(false);
        }
        let mut formats: Vec<_> = (0..count).map(|_| rgba(0)).collect();
        check(call, get(count, formats.as_mut_ptr(), std::ptr::null_mut()))?;
        let is_wanted = |format: &ffi::cl_image_format| {
            format.image_channel_order == ffi::CL_RGBA && format.image_channel_data_type == channel_type
        };
        Ok(formats.iter().any(is_wanted))
    }
}

fn rgba(channel_type: u32) -> ffi::cl_image_format {
    ffi::cl_image_format { image_channel_order: ffi::CL_RGBA, image_channel_data_type: channel_type }
}
