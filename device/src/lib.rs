//! The OpenCL host side: lists devices, builds kernels, and runs launch plans.
//!
//! The interface of this crate consists of plain data in bytes; tensors, layouts and passes are unknown here. It is the only
//! crate with `unsafe`, all of it in `src/opencl/cl/`.
//!
//! ```
//! use tilewright_device::{
//!     Arg, BufferSpec, BuildOptions, Launch, LaunchPlan, RunOptions, Scalar, Session, devices, select,
//! };
//!
//! # fn main() -> Result<(), tilewright_device::DeviceError> {
//! let devices = devices()?;
//! if devices.is_empty() {
//!     eprintln!("skipped: no OpenCL device");
//!     return Ok(());
//! }
//! let session = Session::open(select(&devices, None)?)?;
//! let source = "kernel void scale(global int *a, int by) { a[get_global_id(0)] *= by; }";
//! let program = session.build(source, &BuildOptions::default())?;
//! let bytes: Vec<u8> = [1_i32, 2, 3].iter().flat_map(|value| value.to_ne_bytes()).collect();
//! let plan = LaunchPlan {
//!     buffers: vec![BufferSpec::new("a", 12).with_data(bytes).read_back()],
//!     launches: vec![Launch {
//!         kernel: "scale".into(),
//!         global: [3, 1, 1],
//!         local: None,
//!         args: vec![Arg::Memory(0), Arg::Scalar(Scalar::I32(10))],
//!     }],
//! };
//! let output = session.run(&program, &plan, &RunOptions::default())?;
//! let expected: Vec<u8> = [10_i32, 20, 30].iter().flat_map(|value| value.to_ne_bytes()).collect();
//! assert_eq!(output.buffers[0], Some(expected));
//! # Ok(())
//! # }
//! ```
//!
//! # Textures for the time of a run
//!
//! Scratch images ([`BufferSpec::scratch`]) are lent by a pool of the session, and return to it after the run, even if the
//! run fails. [`ScratchPool`] describes the rule by which they are chosen, and [`Session::scratch_stats`] returns
//! statistics. They are poisoned before every run.
//!
//! # The process in which drivers run
//!
//! A driver that crashes or exits ends the process in which it runs; on a processor device, a kernel that writes far out of
//! bounds can do the same. [`devices`] and [`Session::open`] run drivers in the caller's process. A [`DeviceHost`] with
//! [`Isolation::Process`] runs them in a worker process, and turns its end into a [`DeviceError::Process`].
//!
//! # Without OpenCL
//!
//! The OpenCL library is opened when it is first used ([`loader`]). On a machine without one there are no devices, which is
//! no failure. Without the feature `opencl` the interface stays the same, and there are no devices.
//!
//! # Which device
//!
//! The loader lists the platforms of the `.icd` files in `/etc/OpenCL/vendors`; ocl-icd uses the folder that
//! `OCL_ICD_VENDORS` names instead. The package of PoCL installs such a file, that of Oclgrind does not. A program run as
//! `oclgrind PROGRAM` has Oclgrind's simulator as its only device. With a folder whose file `oclgrind.icd` contains the path
//! of `liboclgrind-rt-icd.so`, it can use both; `scripts/opencl-vendors.sh` creates this folder.
//!
//! # Differences between drivers
//!
//! - PoCL compiles a kernel again for every work-group size, at its first launch, and caches the result in a folder
//!   (`POCL_CACHE_DIR`, else `~/.cache/pocl`). [`RunOutput::launch_nanoseconds`] does not include the compilation, the wall
//!   clock does. If PoCL cannot write to the folder, it has no devices and reports no error
//!   ([`Survey::empty_platforms`] contains its name).
//! - Neither PoCL nor Oclgrind reports an image coordinate out of range: PoCL drops the write, Oclgrind wraps it into the
//!   next row.
//! - A launch that never ends cannot be stopped: OpenCL has no call for it.

#[cfg(not(feature = "opencl"))]
#[path = "absent.rs"]
mod opencl;
#[cfg(feature = "opencl")]
mod opencl;

mod error;
mod host;
mod info;
mod plan;
mod pool;
pub mod process;
mod program;
mod remote;
mod session;
mod wire;

pub use error::{DeviceError, TouchedGuard};
pub use host::{DeviceHost, Isolation, PATIENCE};
pub use info::{DeviceInfo, DeviceType, Loader, Survey, devices, loader, select, survey};
pub use plan::{
    Arg, BufferSpec, ChannelType, Channels, Initial, Launch, LaunchPlan, MemoryKind, POISON, RunOptions, RunOutput,
    Scalar, Snapshot, TexelFormat,
};
pub use pool::{Scratch, ScratchError, ScratchLimits, ScratchPool, ScratchStats, TextureAllocator};
pub use program::{BuildOptions, Program};
pub use remote::serve::serve;
pub use session::Session;
