//! Reference-counted OpenCL objects, released when dropped.

use std::ffi::c_void;
use std::ptr::NonNull;

use ocl::ffi;

use super::loader as api;
use super::query::Device;
use super::{Failure, check};

/// Defines an owner of one reference to an OpenCL object.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $release:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(NonNull<c_void>);

        impl $name {
            /// Takes over the reference that a `clCreate...` call returned with its error code.
            pub(super) fn adopt(
                call: &'static str,
                raw: *mut c_void,
                code: i32,
            ) -> Result<Self, Failure> {
                check(call, code)?;
                // Success with a null handle is a driver's fault; CL_INVALID_VALUE is the nearest name for it.
                NonNull::new(raw).map(Self).ok_or(Failure { call, code: ffi::CL_INVALID_VALUE })
            }

            pub(super) fn raw(&self) -> *mut c_void {
                self.0.as_ptr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: `adopt` took over one reference, which is released only here, and `self` is not used after
                // this. An error code is ignored: the object cannot be used any more in either case.
                let _ = unsafe { $release(self.raw()) };
            }
        }

        // SAFETY: OpenCL objects are not tied to a thread. Since 1.1 every call, including those that change reference
        // counts, may be made from any thread (OpenCL 1.2, appendix A.2).
        unsafe impl Send for $name {}
    };
}

handle!(
    /// A context for one device.
    Context,
    api::clReleaseContext
);
handle!(
    /// An in-order command queue that keeps profiling times.
    CommandQueue,
    api::clReleaseCommandQueue
);
handle!(
    /// A buffer or an image.
    Memory,
    api::clReleaseMemObject
);
handle!(
    /// A program.
    ProgramHandle,
    api::clReleaseProgram
);
handle!(
    /// A kernel with its arguments. Not `Sync`, because `clSetKernelArg` on one kernel is not thread-safe.
    KernelHandle,
    api::clReleaseKernel
);
handle!(
    /// An event: one enqueued launch.
    EventHandle,
    api::clReleaseEvent
);

// SAFETY: every call that takes a context is thread-safe (OpenCL 1.2, appendix A.2).
unsafe impl Sync for Context {}
// SAFETY: as above for a queue; commands of several threads are enqueued in some order.
unsafe impl Sync for CommandQueue {}
// SAFETY: as above for a program; it is built before it is shared.
unsafe impl Sync for ProgramHandle {}

impl Context {
    /// A context that holds `device` alone, on the device's own platform.
    pub(crate) fn new(device: Device) -> Result<Self, Failure> {
        let devices = [device.raw()];
        let mut code = 0;
        // SAFETY: no property list (then the platform is that of the device), a list of one valid device, no callback,
        // and `code` outlives the call.
        let raw = unsafe {
            api::clCreateContext(std::ptr::null(), 1, devices.as_ptr(), None, std::ptr::null_mut(), &raw mut code)
        };
        Self::adopt("clCreateContext", raw, code)
    }
}
