//! What can go wrong between a launch plan and a device.

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
    /// Number of guard bytes that changed. A store of the very byte that was there goes unseen.
    pub changed: u64,
}

/// Why nothing came back from a device.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DeviceError {
    /// The process sees no OpenCL device at all: no platform is installed, or none of them has a device.
    #[error("no OpenCL device: no platform is installed, or none of them has a device")]
    NoOpenCl,

    /// There is no OpenCL: this program was built without it, or the machine has no loader.
    #[error("{0}")]
    NoLoader(Loader),

    /// There are devices, but none is the one asked for.
    #[error("no OpenCL device matches `{wanted}`; there is {}", .available.join(", "))]
    NoDevice {
        /// The index or part of a name that was asked for.
        wanted: String,
        /// The devices there are, as [`DeviceInfo::label`](crate::DeviceInfo::label) writes them.
        available: Vec<String>,
    },

    /// The selector names several devices; an index would name one.
    #[error("`{wanted}` names several OpenCL devices, say which by its index: {}", .matches.join(", "))]
    Ambiguous {
        /// The part of a name that was asked for.
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

    /// A compiler flag that would change what the arithmetic means, or that cannot be passed on.
    #[error("compiler flag `{flag}` refused: {reason}")]
    Flag {
        /// The flag as given.
        flag: String,
        /// Why it is not passed to the compiler.
        reason: Cow<'static, str>,
    },

    /// The plan does not fit the kernels or contradicts itself, on whatever device.
    #[error("launch plan: {0}")]
    Plan(String),

    /// The plan asks for more than the device has.
    #[error("{what}: {asked} asked, the device allows {limit}")]
    Limit {
        /// What is limited, with the buffer's or kernel's name and the unit.
        what: String,
        /// What the plan asks for.
        asked: u64,
        /// What the device allows.
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
        /// The buffer, kernel or device it was about; may be empty.
        during: String,
    },

    /// The process that runs the driver is gone, or does not answer: the driver crashed, hangs or ended its process, or a
    /// kernel wrote to memory that is not its own.
    #[error("the OpenCL driver's process {how}{}{detail}", if .detail.is_empty() { "" } else { ": " })]
    Process {
        /// What happened to it, such as `ended with signal SIGABRT`.
        how: String,
        /// The last line of what it wrote to standard error; may be empty.
        detail: String,
    },

    /// Kernels wrote past the end of buffers.
    #[error("written past the end: {}", list_guards(.0))]
    GuardTouched(Vec<TouchedGuard>),
}

impl DeviceError {
    /// True when there is no such device, false when a device is there and failed: the first is a reason to skip, the
    /// second never is.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NoOpenCl | Self::NoLoader(_) | Self::NoDevice { .. })
    }
}

fn list_guards(touched: &[TouchedGuard]) -> String {
    let one = |guard: &TouchedGuard| {
        format!("buffer `{}` from byte {} on ({} bytes changed)", guard.buffer, guard.first_byte, guard.changed)
    };
    touched.iter().map(one).collect::<Vec<_>>().join(", ")
}
