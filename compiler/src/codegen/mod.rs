//! Kernels in a dialect of C from a lowered function.
//!
//! [`generate`] takes a validated function whose buffers are flattened, and returns a source with one kernel for each nest
//! at the root of the body, and the [`Metadata`] that a host needs to run them. The kernels of
//!
//! ```python
//! for i in T.thread_binding(16, thread="blockIdx.x"):
//!     for j in T.thread_binding(4, thread="threadIdx.x"):
//!         B[i * 4 + j] = A[i * 4 + j] + T.float32(1)
//! ```
//!
//! read
//!
//! ```c
//! kernel void addone_0(global const float *restrict A, global float *restrict B) {
//!     const int i = (int)get_group_id(0);
//!     const int j = (int)get_local_id(0);
//!     // B[i * 4 + j] = A[i * 4 + j] + 1.0
//!     B[i * 4 + j] = A[i * 4 + j] + 1.0f;
//! }
//! ```
//!
//! A [`Target`] holds what is specific to a language and its devices; [`opencl`] describes how OpenCL C differs from the IR.
//! The modules here write C and assign the program to work-items:
//!
//! | module | |
//! |---|---|
//! | `kernel`, `launch`, `independent` | nests to kernels, loops to launch axes, barriers |
//! | `spread` | which loops the judge proves to be independent |
//! | `arrays` | memory of a work-item and of a work-group |
//! | `stmt`, `expr`, `image`, `writer` | statements, expressions, textures, memory |
//! | `texels` | texels that are read once for several channels |
//! | `range` | which sums can wrap |
//! | `divisions` | which divisions are proved to be those of C |
//! | `forms` | the kernels as `compile` writes them and `check` runs them |
//! | `memory`, `metadata`, `plan` | what a host has to allocate and to pass, and the launches for given arguments |
//! | `target`, `opencl` | what a target is, and the first one |

mod arrays;
mod checked;
mod code;
mod divisions;
mod expr;
mod forms;
mod guards;
mod helpers;
mod host_loops;
mod image;
mod independent;
mod join;
mod kernel;
mod launch;
mod literals;
mod memory;
mod metadata;
mod names;
pub mod opencl;
mod plan;
mod range;
mod spread;
mod stmt;
mod target;
mod texels;
mod writer;

use tilewright_ir::{Diagnostic, Validated};
use tilewright_verify::Judge;

pub use checked::{Access, OutsideTexture, REPORT_BYTES, Site};
pub use divisions::{Divisions, Written};
pub use forms::Kernels;
pub use image::channel_type;
pub use join::join;
pub use metadata::{ArgInfo, Binding, BufferInfo, HostAssert, ImageInfo, KernelInfo, Metadata, ScalarInfo, Size};
pub use opencl::OPENCL;
pub use plan::{Arguments, Origin, Placement};
pub use target::{Limits, Target};

/// A source with kernels, and the data that a host needs to run them.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The target of the source.
    pub target: &'static Target,
    /// The source text.
    pub source: String,
    /// Buffers, kernels, launches.
    pub metadata: Metadata,
    /// The integer divisions in the kernels, and how each is written.
    pub divisions: Written,
    /// The parts of the source, for [`join()`].
    parts: join::Parts,
}

/// Options of the code generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Every access to a texture is checked at run time, and the first one outside its texture is reported.
    pub checked: bool,
    /// Each buffer and texture may begin anywhere in its memory; see [`ArgInfo::Origin`].
    pub placed: bool,
    /// Pointers may alias: an element that is read through one may be written through another one.
    pub aliased: bool,
}

/// Writes the kernels of a function in OpenCL C, unchecked, each buffer in memory of its own. Nothing is proved of its
/// divisions, so all of them call a helper.
///
/// # Errors
/// See [`generate_with`].
pub fn generate(func: Validated<'_>) -> Result<Generated, Vec<Diagnostic>> {
    generate_with(func, &Options::default())
}

/// Writes the kernels of a function in OpenCL C.
///
/// # Errors
/// Programs that OpenCL cannot run: axes that are not flattened (`opencl-unflattened`), vectors of other than 2, 3, 4, 8
/// or 16 lanes (`opencl-lanes`), shared memory without groups (`opencl-shared`), arrays of unknown or large size
/// (`opencl-private-size`), launch extents that depend on loops (`opencl-launch-extent`), an order between work-groups
/// (`opencl-order`), textures that are not lowered (`opencl-texture`), a texture that one kernel reads and writes
/// (`opencl-image-access`), stores to single channels (`opencl-channel-store`), lanes that choose between vectors in
/// memory (`opencl-lane-choice`).
pub fn generate_with(func: Validated<'_>, options: &Options) -> Result<Generated, Vec<Diagnostic>> {
    generate_for(&OPENCL, func, options)
}

/// Writes the kernels of a function in the language of a target.
///
/// # Errors
/// Those of [`generate_with`], under the target's own codes.
pub fn generate_for(
    target: &'static Target,
    func: Validated<'_>,
    options: &Options,
) -> Result<Generated, Vec<Diagnostic>> {
    generate_proved(target, &Divisions::unproved(func), options)
}

/// Writes the kernels of a function in OpenCL C, and asks the judge about each of their divisions; see [`generate_proved`].
///
/// # Errors
/// Those of [`generate_with`].
pub fn generate_judged(judge: &Judge, func: Validated<'_>, options: &Options) -> Result<Generated, Vec<Diagnostic>> {
    divisions::judged(
        judge,
        func,
        |divisions| generate_proved(&OPENCL, divisions, options),
        |kernels| kernels.divisions.calls.clone(),
    )
}

/// Writes the kernels of a function in the language of a target. The divisions that are proved are written with the operators
/// of the language, which truncate; all others call a helper.
///
/// # Errors
/// Those of [`generate_for`].
pub fn generate_proved(
    target: &'static Target,
    divisions: &Divisions<'_>,
    options: &Options,
) -> Result<Generated, Vec<Diagnostic>> {
    let func = divisions.func().func();
    let mut source = kernel::SourceBuilder::new(target, func, divisions.proved().clone(), *options);
    source.root(&func.body);
    source.finish()
}

#[cfg(test)]
mod tests;
