//! A safe interface to OpenCL's C functions. This is the only folder with `unsafe`, and no raw handle leaves it.
//!
//! Types and constants are those that `ocl` re-exports (`ocl::ffi`); the functions are looked up at run time ([`loader`]).
//! The wrappers of `ocl` are not used, for three reasons, all in `ocl-core` 0.11:
//!
//! - `get_platform_ids` sleeps for ten seconds on a machine without a platform.
//! - `ApiError` panics on an error code that it does not list, and drivers return codes of their own.
//! - Dropping a context or a buffer panics if the release call fails, as it does after a kernel has crashed a GPU.

mod handle;
#[expect(non_snake_case, reason = "the functions have the names that OpenCL gave them")]
mod loader;
mod memory;
mod program;
mod query;
mod queue;
mod status;

pub(crate) use handle::{Context, Memory};
pub(crate) use loader::loader;
pub(crate) use memory::ImageFormat;
pub(crate) use program::{AddressSpace, Argument, BuildFailure, Kernel, Program};
pub(crate) use query::{Device, platforms};
pub(crate) use queue::{Event, Queue};

use crate::error::DeviceError;

/// An OpenCL call that returned an error code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    call: &'static str,
    pub(crate) code: i32,
}

impl Failure {
    /// Converts the failure to an error for the user; `during` names the buffer, kernel or device concerned.
    pub(crate) fn during(self, during: impl Into<String>) -> DeviceError {
        DeviceError::Driver {
            call: self.call.into(),
            code: self.code,
            name: status::name(self.code).into(),
            during: during.into(),
        }
    }
}

/// Turns an OpenCL return code into a result.
fn check(call: &'static str, code: i32) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure { call, code }) }
}

/// Reads a value of unknown size in two calls: one for the size, one for the bytes.
///
/// `get(size, value, size_ret)` is one of the `clGet...Info` functions with its leading arguments filled in. It is
/// called with a null `value`, and then with one that has room for `size` bytes.
fn read_info(
    call: &'static str,
    get: impl Fn(usize, *mut std::ffi::c_void, *mut usize) -> i32,
) -> Result<Vec<u8>, Failure> {
    let mut size = 0;
    check(call, get(0, std::ptr::null_mut(), &raw mut size))?;
    let mut value = vec![0_u8; size];
    if size > 0 {
        check(call, get(size, value.as_mut_ptr().cast(), std::ptr::null_mut()))?;
    }
    Ok(value)
}

/// Converts a C string: the bytes before the first NUL, without white space at the ends.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// Converts an unsigned number of 4 or 8 bytes (`cl_uint`, `cl_ulong`, `size_t`, `cl_bitfield`); 0 for another number of
/// bytes.
fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}
