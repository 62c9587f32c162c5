//! Platforms and devices, and their properties.

use std::ffi::c_void;
use std::ptr::NonNull;

use ocl::ffi;

use super::loader as api;
use super::{Failure, check, number, read_info, text};

/// One installed OpenCL implementation. Platforms live as long as the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Platform(NonNull<c_void>);

/// One device of a platform. Root devices live as long as the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device(NonNull<c_void>);

// SAFETY: platforms and devices are immutable, live as long as the process, and may be asked from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Every platform that the loader finds, in the loader's order; none is an empty list.
pub(crate) fn platforms() -> Result<Vec<Platform>, Failure> {
    let ids = read_ids("clGetPlatformIDs", ffi::CL_PLATFORM_NOT_FOUND_KHR, |room, ids, count| {
        // SAFETY: `ids` is null with no room, or has room for `room` entries; `count` is null or valid.
        unsafe { api::clGetPlatformIDs(room, ids, count) }
    })?;
    Ok(ids.into_iter().map(Platform).collect())
}

/// Reads a list of ids in two calls; the code `none` means an empty list.
fn read_ids(
    call: &'static str,
    none: i32,
    get: impl Fn(u32, *mut *mut c_void, *mut u32) -> i32,
) -> Result<Vec<NonNull<c_void>>, Failure> {
    let mut count = 0;
    let code = get(0, std::ptr::null_mut(), &raw mut count);
    if code == none || (code == 0 && count == 0) {
        return Ok(Vec::new());
    }
    check(call, code)?;
    let mut ids = vec![std::ptr::null_mut(); count as usize];
    check(call, get(count, ids.as_mut_ptr(), std::ptr::null_mut()))?;
    Ok(ids.into_iter().filter_map(NonNull::new).collect())
}

impl Platform {
    /// A text property such as `CL_PLATFORM_NAME`.
    pub(crate) fn text(self, property: u32) -> Result<String, Failure> {
        let bytes = read_info("clGetPlatformInfo", |size, value, size_ret| {
            // SAFETY: the platform is valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetPlatformInfo(self.0.as_ptr(), property, size, value, size_ret) }
        })?;
        Ok(text(&bytes))
    }

    /// The platform's devices of every type, in the driver's order; none is an empty list.
    pub(crate) fn devices(self) -> Result<Vec<Device>, Failure> {
        let ids = read_ids("clGetDeviceIDs", ffi::CL_DEVICE_NOT_FOUND, |room, ids, count| {
            // SAFETY: the platform is valid; `ids` is null with no room, or has room for `room` entries.
            unsafe { api::clGetDeviceIDs(self.0.as_ptr(), ffi::CL_DEVICE_TYPE_ALL, room, ids, count) }
        })?;
        Ok(ids.into_iter().map(Device).collect())
    }
}

impl Device {
    pub(super) fn raw(self) -> *mut c_void {
        self.0.as_ptr()
    }

    fn property(self, property: u32) -> Result<Vec<u8>, Failure> {
        read_info("clGetDeviceInfo", |size, value, size_ret| {
            // SAFETY: the device is valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetDeviceInfo(self.raw(), property, size, value, size_ret) }
        })
    }

    /// A text property such as `CL_DEVICE_NAME`.
    pub(crate) fn text(self, property: u32) -> Result<String, Failure> {
        Ok(text(&self.property(property)?))
    }

    /// A number, a flag (`cl_bool`) or a bit field such as `CL_DEVICE_MAX_MEM_ALLOC_SIZE`.
    pub(crate) fn number(self, property: u32) -> Result<u64, Failure> {
        Ok(number(&self.property(property)?))
    }

    /// A list of `size_t` such as `CL_DEVICE_MAX_WORK_ITEM_SIZES`.
    pub(crate) fn sizes(self, property: u32) -> Result<Vec<u64>, Failure> {
        let bytes = self.property(property)?;
        Ok(bytes.chunks_exact(size_of::<usize>()).map(number).collect())
    }
}
