//! Buffers and images.

use ocl::ffi;

use super::handle::{Context, Memory};
use super::loader as api;
use super::{Failure, check};

/// Every kernel argument may be read and written, so that one buffer can be an output here and an input there.
const FLAGS: u64 = ffi::CL_MEM_READ_WRITE;

/// The format of an image, in OpenCL's constants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageFormat {
    /// The channels: `CL_RGBA`, ...
    pub(crate) order: u32,
    /// The type of each channel: `CL_FLOAT`, ...
    pub(crate) channel_type: u32,
}

impl ImageFormat {
    fn to_ffi(self) -> ffi::cl_image_format {
        ffi::cl_image_format { image_channel_order: self.order, image_channel_data_type: self.channel_type }
    }
}

impl Context {
    /// A buffer of `bytes` bytes (at least one, as OpenCL demands).
    pub(crate) fn create_buffer(&self, bytes: usize) -> Result<Memory, Failure> {
        let mut code = 0;
        // SAFETY: the context is valid; without USE_HOST_PTR or COPY_HOST_PTR the host pointer must be null, and is.
        let raw = unsafe { api::clCreateBuffer(self.raw(), FLAGS, bytes, std::ptr::null_mut(), &raw mut code) };
        Memory::adopt("clCreateBuffer", raw, code)
    }

    /// A 2-d image of a format; extents in texels, at least one each.
    pub(crate) fn create_image2d(&self, width: usize, height: usize, format: ImageFormat) -> Result<Memory, Failure> {
        let format = format.to_ffi();
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

    /// Whether the device lists 2-d images of a format that kernels may read and write.
    pub(crate) fn supports_image2d(&self, wanted: ImageFormat) -> Result<bool, Failure> {
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
        let mut formats: Vec<_> = (0..count).map(|_| ImageFormat { order: 0, channel_type: 0 }.to_ffi()).collect();
        check(call, get(count, formats.as_mut_ptr(), std::ptr::null_mut()))?;
        let is_wanted = |format: &ffi::cl_image_format| {
            format.image_channel_order == wanted.order && format.image_channel_data_type == wanted.channel_type
        };
        Ok(formats.iter().any(is_wanted))
    }
}
