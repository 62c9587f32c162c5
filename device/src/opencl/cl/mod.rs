//! OpenCL's C interface, made safe: the only folder with `unsafe`, and no raw handle leaves it.
//!
//! Types and constants are those that `ocl` re-exports (`ocl::ffi`); the functions are looked up at run time ([`loader`]).
//! `ocl`'s own wrappers are not used, for three facts about `ocl-core` 0.11: `get_platform_ids` sleeps ten seconds on a machine without a platform before it says so; `ApiError`
//! panics on an error code it does not list, and drivers do return their own; and dropping a context or a buffer panics
//! when the release call fails, which is what happens after a kernel has crashed a GPU.

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
    /// The error for the user; `during` names the buffer, kernel or device concerned.
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

/// Reads a value whose size only the driver knows: asks for the size, then for the bytes.
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

/// A C string as drivers return it: up to the first NUL, trimmed.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// An unsigned number of 4 or 8 bytes as drivers return it (`cl_uint`, `cl_ulong`, `size_t`, `cl_bitfield`); 0 when the
/// driver returned another size.
fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}
