//! The command queue: transfers, launches and their times.

use ocl::ffi;

use super::handle::{CommandQueue, Context, EventHandle, Memory};
use super::loader as api;
use super::program::Kernel;
use super::query::Device;
use super::{Failure, check, number, read_info};

/// An in-order queue of one device. Transfers block, so that no host memory is borrowed beyond a call.
#[derive(Debug)]
pub(crate) struct Queue(CommandQueue);

/// The event of a launch or a copy that was enqueued.
#[derive(Debug)]
pub(crate) struct Event(EventHandle);

impl Queue {
    pub(crate) fn new(context: &Context, device: Device) -> Result<Self, Failure> {
        let mut code = 0;
        // SAFETY: context and device are valid and belong together. Deprecated since 2.0, and still in every driver,
        // which its successor is not.
        let raw = unsafe {
            api::clCreateCommandQueue(context.raw(), device.raw(), ffi::CL_QUEUE_PROFILING_ENABLE, &raw mut code)
        };
        Ok(Self(CommandQueue::adopt("clCreateCommandQueue", raw, code)?))
    }

    /// Copies `data` into a buffer from byte `offset` on. The driver refuses what does not fit.
    pub(crate) fn write(&self, buffer: &Memory, offset: usize, data: &[u8]) -> Result<(), Failure> {
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: queue and buffer are valid; the call blocks, so `data` outlives the copy.
        let code = unsafe {
            api::clEnqueueWriteBuffer(
                self.0.raw(),
                buffer.raw(),
                ffi::CL_TRUE,
                offset,
                data.len(),
                data.as_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check("clEnqueueWriteBuffer", code)
    }

    /// Fills the first `bytes` bytes of a buffer with one byte.
    pub(crate) fn fill(&self, buffer: &Memory, byte: u8, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: queue and buffer are valid; OpenCL copies the one-byte pattern before it returns.
        let code = unsafe {
            api::clEnqueueFillBuffer(
                self.0.raw(),
                buffer.raw(),
                (&raw const byte).cast(),
                1,
                0,
                bytes,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check("clEnqueueFillBuffer", code)
    }

    /// Copies the first `bytes` bytes of a buffer into another one.
    pub(crate) fn copy(&self, from: &Memory, to: &Memory, bytes: usize) -> Result<Event, Failure> {
        let mut event = std::ptr::null_mut();
        // SAFETY: queue and buffers are valid; the driver refuses what does not fit, and keeps the buffers until the copy is
        // done.
        let code = unsafe {
            api::clEnqueueCopyBuffer(
                self.0.raw(),
                from.raw(),
                to.raw(),
                0,
                0,
                bytes,
                0,
                std::ptr::null(),
                &raw mut event,
            )
        };
        Ok(Event(EventHandle::adopt("clEnqueueCopyBuffer", event, code)?))
    }

    /// Copies from a buffer, from byte `offset` on, into `data`, after all that was enqueued before.
    pub(crate) fn read(&self, buffer: &Memory, offset: usize, data: &mut [u8]) -> Result<(), Failure> {
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: queue and buffer are valid; `data` has room for its length, and the call blocks until it is filled.
        let code = unsafe {
            api::clEnqueueReadBuffer(
                self.0.raw(),
                buffer.raw(),
                ffi::CL_TRUE,
                offset,
                data.len(),
                data.as_mut_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check("clEnqueueReadBuffer", code)
    }

    /// Copies whole rows of `row_bytes` bytes each into an image of `width` by `height` texels.
    pub(crate) fn write_image(
        &self,
        image: &Memory,
        [width, height]: [usize; 2],
        row_bytes: usize,
        data: &[u8],
    ) -> Result<(), Failure> {
        covers_rows("clEnqueueWriteImage", data.len(), row_bytes, height)?;
        let (origin, region) = ([0; 3], [width, height, 1]);
        // SAFETY: queue and image are valid, `data` holds `height` rows of `row_bytes` bytes as checked above, the
        // driver checks `row_bytes` against the width, and the call blocks.
        let code = unsafe {
            api::clEnqueueWriteImage(
                self.0.raw(),
                image.raw(),
                ffi::CL_TRUE,
                origin.as_ptr(),
                region.as_ptr(),
                row_bytes,
                0,
                data.as_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check("clEnqueueWriteImage", code)
    }

    /// Copies an image of `width` by `height` texels into rows of `row_bytes` bytes each.
    pub(crate) fn read_image(
        &self,
        image: &Memory,
        [width, height]: [usize; 2],
        row_bytes: usize,
        data: &mut [u8],
    ) -> Result<(), Failure> {
        covers_rows("clEnqueueReadImage", data.len(), row_bytes, height)?;
        let (origin, region) = ([0; 3], [width, height, 1]);
        // SAFETY: queue and image are valid, `data` has room for `height` rows of `row_bytes` bytes as checked above,
        // the driver checks `row_bytes` against the width, and the call blocks.
        let code = unsafe {
            api::clEnqueueReadImage(
                self.0.raw(),
                image.raw(),
                ffi::CL_TRUE,
                origin.as_ptr(),
                region.as_ptr(),
                row_bytes,
                0,
                data.as_mut_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check("clEnqueueReadImage", code)
    }

    /// Enqueues a launch of `global` work-items in groups of `local` (the driver's choice when `None`).
    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        global: [usize; 3],
        local: Option<[usize; 3]>,
    ) -> Result<Event, Failure> {
        let local = local.as_ref().map_or(std::ptr::null(), |sizes| sizes.as_ptr());
        let mut event = std::ptr::null_mut();
        // SAFETY: queue and kernel are valid, the sizes are arrays of three that outlive the call, and arguments that
        // are not set make the driver refuse. What the kernel does on the device is beyond what Rust can promise: see
        // `Session::run`.
        let code = unsafe {
            api::clEnqueueNDRangeKernel(
                self.0.raw(),
                kernel.raw(),
                3,
                std::ptr::null(),
                global.as_ptr(),
                local,
                0,
                std::ptr::null(),
                &raw mut event,
            )
        };
        Ok(Event(EventHandle::adopt("clEnqueueNDRangeKernel", event, code)?))
    }

    /// Waits until everything enqueued is done.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        // SAFETY: the queue is valid.
        check("clFinish", unsafe { api::clFinish(self.0.raw()) })
    }
}

/// Refuses a transfer whose host memory is not exactly `height` rows of `row_bytes` bytes.
fn covers_rows(call: &'static str, len: usize, row_bytes: usize, height: usize) -> Result<(), Failure> {
    if row_bytes.checked_mul(height) == Some(len) { Ok(()) } else { Err(Failure { call, code: ffi::CL_INVALID_VALUE }) }
}

impl Event {
    /// The error with which a finished launch ended, if it did.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        let property = ffi::CL_EVENT_COMMAND_EXECUTION_STATUS;
        let bytes = read_info("clGetEventInfo", |size, value, size_ret| {
            // SAFETY: the event is valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetEventInfo(self.0.raw(), property, size, value, size_ret) }
        })?;
        let status = <[u8; 4]>::try_from(bytes.as_slice()).map_or(0, i32::from_ne_bytes);
        check("clEnqueueNDRangeKernel", status.min(0))
    }

    /// Time in nanoseconds from the launch's start on the device to its end.
    pub(crate) fn nanoseconds(&self) -> Result<u64, Failure> {
        let read = |property| {
            read_info("clGetEventProfilingInfo", |size, value, size_ret| {
                // SAFETY: the event is valid, and `read_info` passes room for `size` bytes.
                unsafe { api::clGetEventProfilingInfo(self.0.raw(), property, size, value, size_ret) }
            })
        };
        let start = number(&read(ffi::CL_PROFILING_COMMAND_START)?);
        let end = number(&read(ffi::CL_PROFILING_COMMAND_END)?);
        Ok(end.saturating_sub(start))
    }
}
