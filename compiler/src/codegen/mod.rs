//! OpenCL C from a lowered function.
//!
//! [`generate`] takes a validated function whose buffers are flattened and gives a source with one kernel for each nest
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
//! # Where OpenCL C differs from the language
//!
//! - **Division.** C's `/` and `%` round towards zero, `//` and `%` of the language down. They agree where the dividend
//!   is not negative and the divisor positive, and only there C's own are written; elsewhere a helper is called. The
//!   dividends in question are listed in [`Metadata::nonnegative_dividends`]; nobody proves yet that they are not negative.
//! - **Overflow** of signed integers is undefined in C and wraps in the language. Values are computed in the unsigned
//!   type and converted back, unless the range of the operands rules overflow out. Indices, extents and guards are
//!   written plainly: that they never leave their type is the obligation *overflow*.
//! - **Narrow integers** are widened to `int` by C; each result is cast back to its type.
//! - **Floats.** `FP_CONTRACT OFF` forbids fused operations. OpenCL has no `bfloat16` and devices may lack `half`, so
//!   both are computed in `float` and rounded after every operation, which gives the same as computing in the type
//!   (24 bits are at least twice 11 and two more). `half` is read and written by `vload_half` and `vstore_half_rte`,
//!   which every device has; `bfloat16` as the upper 16 bits. `float64` needs `cl_khr_fp64`.
//! - **Minimum and maximum.** `fmin` may return either zero for `-0.0` and `0.0`; a helper returns the first.
//! - **Rounding.** `round` of C rounds ties away from zero, that of the language to even, which is `rint`.
//! - **Conversions** of floats to integers saturate, a NaN gives 0; C leaves both undefined. `float64` and long integers
//!   to `bfloat16` go through a `float` rounded to odd, lest they be rounded twice.
//! - **Truth** is 0 or 1 in one lane and 0 or -1 in vectors; here it is 0 or 1 in both.
//! - **Vectors** have 2, 3, 4, 8 or 16 lanes. A `float3` takes the room of four in memory, `float32x3` that of three, so
//!   vectors are read and written by `vload` and `vstore` on pointers to single lanes. Indices with a stride are read
//!   and written lane by lane.
//! - **Aliases** of another type are casts of the pointer; OpenCL compilers assume no strict aliasing unless asked to.
//! - **Memory.** What is allocated around the nests is a buffer that the host allocates. Scope `local` is held in global
//!   memory there, and the metadata says so. What is allocated in a nest is an array of the work-item. Rows of a buffer
//!   with several physical axes lie one after another.
//! - **Conditionals** evaluate the arm that they choose and no other, lest a guarded load leave its buffer: `c ? a : b`
//!   does so for a condition of one lane, also between vectors. Where each lane has a condition of its own, `select`
//!   would evaluate both arms; the result is put together from lanes, `(float4)(c0 ? a0 : b0, ..)`.
//! - **Order.** The language has no barrier; where work-items of a group may touch each other's elements between two
//!   statements, one is written. Groups cannot wait for each other: that is an error.
//! - **Traps.** A division by zero, an index out of bounds or a failed `assert` inside a kernel is not noticed by the
//!   device. Only a program that ran in the interpreter without a trap should be launched.
//!
//! # Textures
//!
//! A texel buffer ([`Buffer::is_texel_buffer`](tilewright_ir::Buffer::is_texel_buffer)), or a parameter or allocation
//! that has one as its alias, is an `image2d_t` of four channels. A texture that has no texels is not lowered, and an
//! error: it is never held in other memory.
//!
//! - **Access** is inferred: an image is `read_only` or `write_only` in a kernel. OpenCL 1.2 has no images that are
//!   both, so a kernel that would need one is refused (`opencl-image-access`). Nests at the root are kernels of their
//!   own, so that a texture may be written by one and read by the next.
//! - **Coordinates** are of type `int`, not normalised, and the column comes first: row `r`, column `c` of the buffer is
//!   `(int2)(c, r)`. There is one sampler, `tw_sampler`: no filter, and zeros outside of the image.
//! - **Reads** are `read_imagef`, `read_imagei`, `read_imageui`, of whole texels. A single channel is picked from one:
//!   `.s2` for a lane that is known, `tw_channel_f(texel, lane)` for one that is not.
//! - **Writes** are of whole texels. To store one channel of four is an error (`opencl-channel-store`); a value is never
//!   spread over the channels.
//! - **Types.** `float32`, and `float16` as half-float images, whose channels the builtins convert from and to `float`:
//!   no arithmetic in `half` is needed. Integers of 8, 16 and 32 bits are integer images, read and written as 32 bits
//!   and converted exactly.
//! - **Limits.** A launch whose textures are above the limits that the program is lowered for is refused
//!   ([`Generated::plan`]); the device crate refuses what is above those of the device.
//! - **Checked kernels** ([`Options::checked`]) test every row, column and lane against the texture's extents before the
//!   access. A bad read gives 0, a bad write is left out, and the first of them is reported with its site
//!   ([`Metadata::sites`]), row, column and lane in a buffer that such kernels take last: of work-items that run at
//!   once, any may be first. Devices trap nothing of the kind, and in a pool of textures the neighbour would be hit.
//! - **Placed kernels** ([`Options::placed`]) take after each buffer or image where it begins in its memory:
//!   `const int2 T_origin` (column, row) is added to the coordinates, `const long A_offset` in bytes to the pointer. So a
//!   tensor can be a part of a pool ([`Generated::launches`]). The extents that are checked stay those of the texture.

mod checked;
mod expr;
mod helpers;
mod image;
mod independent;
mod join;
mod kernel;
mod launch;
mod memory;
mod metadata;
mod names;
mod plan;
mod range;
mod stmt;
mod types;
mod writer;

use tilewright_ir::{Diagnostic, Validated};

pub use checked::{Access, OutsideTexture, REPORT_BYTES, Site};
pub use image::channel_type;
pub use join::join;
pub use metadata::{ArgInfo, Binding, BufferInfo, HostAssert, ImageInfo, KernelInfo, Metadata, ScalarInfo, Size};
pub use plan::{Arguments, Origin, Placement};

/// OpenCL C and what a host has to know to run it.
#[derive(Clone, Debug)]
pub struct Generated {
    /// OpenCL C 1.2.
    pub source: String,
    /// Buffers, kernels, launches.
    pub metadata: Metadata,
    /// What the source is put together from.
    parts: join::Parts,
}

/// What kernels are written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Every place in a texture is tested before it is accessed, and the first that is outside reported.
    pub checked: bool,
    /// Each buffer and texture may begin anywhere in its memory: see [`ArgInfo::Origin`].
    pub placed: bool,
}

/// Writes the kernels of a function, unchecked, each buffer in memory of its own.
///
/// # Errors
/// See [`generate_with`].
pub fn generate(func: Validated<'_>) -> Result<Generated, Vec<Diagnostic>> {
    generate_with(func, &Options::default())
}

/// Writes the kernels of a function.
///
/// # Errors
/// What OpenCL cannot do, all of it: axes that are not flattened (`opencl-unflattened`), vectors of other than 2, 3, 4, 8
/// or 16 lanes (`opencl-lanes`), shared memory (`opencl-shared`), private arrays of unknown or large size
/// (`opencl-private-size`), launch extents that depend on loops (`opencl-launch-extent`), an order between work-groups
/// (`opencl-order`), textures that are not lowered (`opencl-texture`), a texture that one kernel reads and writes
/// (`opencl-image-access`), stores to single channels (`opencl-channel-store`), lanes that choose between vectors in
/// memory (`opencl-lane-choice`).
pub fn generate_with(func: Validated<'_>, options: &Options) -> Result<Generated, Vec<Diagnostic>> {
    let func = func.func();
    let mut program = kernel::Program::new(func, *options);
    program.root(&func.body);
    program.finish()
}

#[cfg(test)]
mod tests;
