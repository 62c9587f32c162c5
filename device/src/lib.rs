//! The OpenCL host side: which devices there are, kernels built for one of them, and launch plans run on it.
//!
//! Everything that crosses this crate's border is plain data in bytes: it knows nothing of tensors, layouts or passes.
//! It is the only crate with `unsafe`, all of it in `src/opencl/cl/`.
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
//! let bytes = [1_i32, 2, 3].iter().flat_map(|value| value.to_ne_bytes()).collect();
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
//! Images that are scratch ([`BufferSpec::scratch`]) come from a pool that the session keeps, and go back to it after the
//! run, also after one that failed ([`ScratchPool`] says by which rule; [`Session::scratch_stats`] what came of it). They
//! are poisoned each time.
//!
//! # Where drivers run
//!
//! A driver that crashes, hangs or ends its process takes down the process it runs in, and on a processor device so does a
//! kernel that writes far out of bounds. [`devices`] and [`Session::open`] run drivers in this process. A [`DeviceHost`]
//! with [`Isolation::Process`] runs them in a worker process and turns its end into a [`DeviceError::Process`].
//!
//! # Without OpenCL
//!
//! The OpenCL library is opened when it is needed ([`loader`]); on a machine without one there are no devices, and that is no
//! failure. Without the feature `opencl` nothing of OpenCL is built, and the interface stays the same.
//!
//! # Which device
//!
//! The loader lists the platforms of the `.icd` files in `/etc/OpenCL/vendors` (ocl-icd takes another folder from
//! `OCL_ICD_VENDORS`). PoCL's package puts one there, Oclgrind's does not: run a program as `oclgrind PROGRAM` and it
//! sees Oclgrind's simulator alone; or name a folder with a file `oclgrind.icd` that holds the path of
//! `liboclgrind-rt-icd.so`, and it sees both (`scripts/opencl-vendors.sh` makes that folder).
//!
//! # What drivers do differently
//!
//! - PoCL compiles a kernel anew for every work-group size, at its first launch, and keeps the result in a folder
//!   (`POCL_CACHE_DIR`, else `~/.cache/pocl`). [`RunOutput::launch_nanoseconds`] is free of that,
//!   the wall clock is not. Where it may not write there, PoCL shows no device and says nothing
//!   ([`Survey::empty_platforms`] names it).
//! - An out-of-range image coordinate is an error to neither: PoCL drops the write, Oclgrind wraps it into the
//!   next row.
//! - Nothing can stop a launch that never ends: OpenCL has no call for it.

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
    Arg, BufferSpec, ChannelType, Initial, Launch, LaunchPlan, MemoryKind, POISON, RunOptions, RunOutput, Scalar,
    Snapshot,
};
pub use pool::{Scratch, ScratchError, ScratchLimits, ScratchPool, ScratchStats, TextureAllocator};
pub use program::{BuildOptions, Program};
pub use remote::serve::serve;
pub use session::Session;
