//! The errors of devices, drivers and launch plans.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::info::Loader;

/// A guard band that a kernel wrote into: bytes after the end of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedGuard {
    /// Name of the buffer in the plan.
    pub buffer: String,
    /// Offset in bytes of the first changed byte, counted from the buffer's start (so at least its size).
    pub first_byte: u64,
    /// Number of guard bytes that changed. A store of the same value is not detected.
    pub changed: u64,
}

/// An error of a device, its driver, or a launch plan.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DeviceError {
    /// The process sees no OpenCL device at all: no platform is installed, or none of them has a device.
    #[error("no OpenCL device: no platform is installed, or none of them has a device")]
    NoOpenCl,

    /// There is no OpenCL: this program was built without it, or the machine has no loader.
    #[error("{0}")]
    NoLoader(Loader),

    /// There are devices, but none matches the selector.
    #[error("no OpenCL device matches `{wanted}`; there is {}", .available.join(", "))]
    NoDevice {
        /// The selector: an index or part of a name.
        wanted: String,
        /// The available devices, as [`DeviceInfo::label`](crate::DeviceInfo::label) writes them.
        available: Vec<String>,
    },

    /// The selector matches several devices; an index would match one.
    #[error("`{wanted}` names several OpenCL devices, say which by its index: {}", .matches.join(", "))]
    Ambiguous {
        /// The selector: a part of a name.
        wanted: String,
        /// The devices it matches, as [`DeviceInfo::label`](crate::DeviceInfo::label) writes them.
        matches: Vec<String>,
    },

    /// The driver's compiler refused the kernel source.
    #[error("the OpenCL compiler of {device} refused the source\n{}\n{source_listing}", .log.trim_end())]
    Build {
        /// The device's label.
        device: String,
        /// The driver's build log.
        log: String,
        /// The source with line numbers; a `>` marks the lines that the log names.
        source_listing: String,
    },

    /// A compiler flag that would change the results of arithmetic, or that cannot be passed on.
    #[error("compiler flag `{flag}` refused: {reason}")]
    Flag {
        /// The flag as given.
        flag: String,
        /// The reason why the flag is not passed to the compiler.
        reason: Cow<'static, str>,
    },

    /// The plan contradicts itself or the parameters of the kernels. It would be wrong on any device.
    #[error("launch plan: {0}")]
    Plan(String),

    /// The plan exceeds a limit of the device.
    #[error("{what}: {asked} asked, the device allows {limit}")]
    Limit {
        /// The limited quantity, with its unit and the name of the buffer or kernel.
        what: String,
        /// The amount in the plan.
        asked: u64,
        /// The maximum of the device.
        limit: u64,
    },

    /// The device lacks a feature.
    #[error("{device} lacks {feature}")]
    Unsupported {
        /// The device's label.
        device: String,
        /// The feature in words.
        feature: String,
    },

    /// An OpenCL call failed.
    #[error("{call} failed with {name} ({code}){}{during}", if .during.is_empty() { "" } else { ": " })]
    Driver {
        /// The OpenCL function.
        call: Cow<'static, str>,
        /// The error code it returned.
        code: i32,
        /// The code's name in the OpenCL headers.
        name: Cow<'static, str>,
        /// The buffer, kernel or device concerned; may be empty.
        during: String,
    },

    /// The process that runs the driver ended or does not answer. The driver crashed, hangs or exited, or a kernel wrote out
    /// of bounds.
    #[error("the OpenCL driver's process {how}{}{detail}", if .detail.is_empty() { "" } else { ": " })]
    Process {
        /// The end of the process in words, such as `ended with signal SIGABRT`.
        how: String,
        /// The last line that the process wrote to standard error; may be empty.
        detail: String,
    },

    /// Kernels wrote past the end of buffers.
    #[error("written past the end: {}", list_guards(.0))]
    GuardTouched(Vec<TouchedGuard>),
}

impl DeviceError {
    /// Whether the error is that there is no such device. Tests may then be skipped; the failure of a device that exists is
    /// never a reason to skip.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NoOpenCl | Self::NoLoader(_) | Self::NoDevice { .. })
    }
}

/// The touched guard bands as words of a message.
fn list_guards(touched: &[TouchedGuard]) -> String {
    let one = |guard: &TouchedGuard| {
        format!("buffer `{}` from byte {} on ({} bytes changed)", guard.buffer, guard.first_byte, guard.changed)
    };
    touched.iter().map(one).collect::<Vec<_>>().join(", ")
}
