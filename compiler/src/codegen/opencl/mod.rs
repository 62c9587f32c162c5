//! OpenCL C 1.2: the target of every device with OpenCL.
//!
//! # Where OpenCL C differs from the language
//!
//! - **Division.** C's `/` and `%` round towards zero, `//` and `%` of the IR round down. They agree if the dividend is not
//!   negative and the divisor is positive. C's operators are written only where the judge has proved this (obligation
//!   *dividend*, [`Divisions`](super::Divisions)); otherwise a helper is called. The dividends in question are listed in
//!   [`Metadata::nonnegative_dividends`](super::Metadata::nonnegative_dividends).
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
//!   to `bfloat16` go through a `float` rounded to odd, so that they are rounded only once.
//! - **Truth** is 0 or 1 in one lane and 0 or -1 in vectors; here it is 0 or 1 in both.
//! - **Vectors** have 2, 3, 4, 8 or 16 lanes. A `float3` takes the room of four in memory, `float32x3` that of three, so
//!   vectors are read and written by `vload` and `vstore` on pointers to single lanes. Indices with a stride are read
//!   and written lane by lane.
//! - **Aliases** of another type are casts of the pointer; OpenCL compilers assume no strict aliasing unless asked to.
//! - **Memory.** An allocation around the nests is a buffer that the host allocates. One in scope `local` is then held in
//!   global memory, which is noted in the metadata. An allocation inside a nest is an array of the work-item. The rows of a
//!   buffer with several physical axes are contiguous.
//! - **Conditionals** evaluate only the arm that they choose, so that a guarded load stays inside its buffer: `c ? a : b`
//!   does so for a condition of one lane, even if the arms are vectors. If each lane has a condition of its own, `select`
//!   would evaluate both arms, so the result is composed of single lanes, `(float4)(c0 ? a0 : b0, ..)`.
//! - **Order.** A barrier of the program is one for local and global memory. Another one is written between two statements if work-items of a group may touch each other's
//!   elements. Groups cannot wait for each other; a program that needs this is refused.
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
//!   ([`Generated::plan`](super::Generated::plan)); the device crate refuses what is above those of the device.
//! - **Checked kernels** ([`Options::checked`](super::Options::checked)) test every row, column and lane against the
//!   texture's extents before the
//!   access. A bad read gives 0, a bad write is left out, and the first of them is reported with its site
//!   ([`Metadata::sites`](super::Metadata::sites)), row, column and lane in a buffer that such kernels take last: of
//!   work-items that run at
//!   once, any may be first. Devices trap nothing of the kind, and in a pool of textures the neighbour would be hit.
//! - **Placed kernels** ([`Options::placed`](super::Options::placed)) take after each buffer or image where it begins in
//!   its memory:
//!   `const int2 T_origin` (column, row) is added to the coordinates, `const long A_offset` in bytes to the pointer. So a
//!   tensor can be a part of a pool ([`Generated::launches`](super::Generated::launches)). The extents that are checked
//!   stay those of the texture.

mod helpers;
mod images;
mod types;
mod words;

use tilewright_ir::{BinaryOp, DataType, MathFn, ScalarType};

use self::helpers as helper;
use self::types::{mask_name, suffix, unsigned_name};
use super::code::{Code, PREFIX};
use super::helpers::Helpers;
use super::target::{Dialect, Limits, Refusal, Target};

/// OpenCL C 1.2, for any device with OpenCL 1.2 or later.
pub static OPENCL: Target = Target {
    name: "opencl",
    api: "OpenCL",
    version: "OpenCL 1.2",
    language: "OpenCL C",
    file_suffix: "cl",
    build_options: &["-cl-std=CL1.2"],
    fp64_extension: Some("cl_khr_fp64"),
    lanes: &[1, 2, 3, 4, 8, 16],
    limits: Limits {
        // Work-items have little memory of their own; OpenCL names no size.
        private_bytes: 64 * 1024,
        local_bytes: 32 * 1024,
        // CL_DEVICE_MAX_READ_IMAGE_ARGS and CL_DEVICE_MAX_WRITE_IMAGE_ARGS (OpenCL 1.2, table 4.3).
        read_images: 128,
        written_images: 8,
    },
    words: words::LANGUAGE,
    reserved: words::RESERVED,
    dialect: &OpenClC,
    images: Some(&images::Image2d),
};

/// How OpenCL C writes types, values and memory.
#[derive(Debug)]
struct OpenClC;

impl Dialect for OpenClC {
    fn code(&self, refusal: Refusal) -> &'static str {
        match refusal {
            Refusal::RootLet => "opencl-root-let",
            Refusal::Unflattened => "opencl-unflattened",
            Refusal::Lanes => "opencl-lanes",
            Refusal::LaneChoice => "opencl-lane-choice",
            Refusal::VectorIndex => "opencl-vector-index",
            Refusal::Unbound => "opencl-unbound",
            Refusal::Memory => "opencl-memory",
            Refusal::Shared => "opencl-shared",
            Refusal::PrivateSize => "opencl-private-size",
            Refusal::LaunchExtent => "opencl-launch-extent",
            Refusal::BoundTwice => "opencl-bound-twice",
            Refusal::Order => "opencl-order",
            Refusal::Texture => "opencl-texture",
            Refusal::ImageAccess => "opencl-image-access",
            Refusal::ChannelStore => "opencl-channel-store",
        }
    }

    fn prelude(&self, fp64: bool) -> String {
        let mut lines = "#pragma OPENCL FP_CONTRACT OFF\n".to_owned();
        if fp64 {
            lines.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
        }
        lines
    }

    fn scalar_name(&self, ty: ScalarType) -> &'static str {
        types::scalar_name(ty)
    }

    fn value_name(&self, ty: DataType) -> String {
        types::value_name(ty)
    }

    fn storage_name(&self, ty: ScalarType) -> &'static str {
        types::storage_name(ty)
    }

    fn wrapping_name(&self, ty: ScalarType) -> &'static str {
        types::wrapping_name(ty)
    }

    fn read(&self, helpers: &mut Helpers, ty: DataType, position: &str, pointer: &str) -> String {
        let n = suffix(ty.lanes);
        let raw =
            if ty.is_scalar() { format!("{pointer}[{position}]") } else { format!("vload{n}({position}, {pointer})") };
        match ty.scalar {
            // Every device has this, also one without arithmetic on `half`.
            ScalarType::Float16 => format!("vload_half{n}({position}, {pointer})"),
            ScalarType::BFloat16 => format!("{}({raw})", helper::load_bf16(helpers, ty.lanes)),
            ScalarType::Bool
            | ScalarType::Int8
            | ScalarType::Int16
            | ScalarType::Int32
            | ScalarType::Int64
            | ScalarType::UInt8
            | ScalarType::UInt16
            | ScalarType::UInt32
            | ScalarType::UInt64
            | ScalarType::Float32
            | ScalarType::Float64
            | ScalarType::Handle => raw,
        }
    }

    fn write(&self, helpers: &mut Helpers, ty: DataType, position: &str, pointer: &str, value: &str) -> String {
        let n = suffix(ty.lanes);
        let value = match ty.scalar {
            ScalarType::Float16 => return format!("vstore_half{n}_rte({value}, {position}, {pointer});"),
            ScalarType::BFloat16 => format!("{}({value})", helper::store_bf16(helpers, ty.lanes)),
            ScalarType::Bool
            | ScalarType::Int8
            | ScalarType::Int16
            | ScalarType::Int32
            | ScalarType::Int64
            | ScalarType::UInt8
            | ScalarType::UInt16
            | ScalarType::UInt32
            | ScalarType::UInt64
            | ScalarType::Float32
            | ScalarType::Float64
            | ScalarType::Handle => value.to_owned(),
        };
        if ty.is_scalar() {
            format!("{pointer}[{position}] = {value};")
        } else {
            format!("vstore{n}({value}, {position}, {pointer});")
        }
    }

    fn division(&self, helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String {
        helper::division(helpers, op, ty)
    }

    fn integer_min_max(&self, op: BinaryOp, _ty: DataType, a: &Code, b: &Code) -> Code {
        Code::call(op.info().call, &[a, b])
    }

    fn float_min_max(&self, helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String {
        helper::min_max(helpers, op, ty)
    }

    fn math(&self, helpers: &mut Helpers, function: MathFn, ty: DataType, args: &[&Code]) -> Code {
        let builtin = |name: &str| Code::call(name, args);
        let predicate = |name: &str| {
            let call = builtin(name);
            if ty.is_scalar() { call } else { Code::atom(format!("convert_uchar{}(-{})", ty.lanes, call.text)) }
        };
        match function {
            MathFn::Abs if ty.scalar.is_float() => builtin("fabs"),
            MathFn::Abs => integer_abs(ty, args),
            // C's `round` rounds ties away from zero, the language's to even.
            MathFn::Round => builtin("rint"),
            MathFn::IsNan => predicate("isnan"),
            MathFn::IsInf => predicate("isinf"),
            MathFn::IsFinite => predicate("isfinite"),
            MathFn::PopCount => builtin("popcount"),
            MathFn::Clz if ty.is_scalar() => Code::cast("int", &builtin("clz")),
            MathFn::Clz => Code::call(&format!("convert_int{}", ty.lanes), &[&builtin("clz")]),
            MathFn::Sigmoid => builtin(&helper::sigmoid(helpers, ty)),
            MathFn::BitsOfFloat => builtin(&helper::bits_of_float(helpers, ty)),
            MathFn::FloatOfBits => builtin(&helper::float_of_bits(helpers, ty)),
            MathFn::Floor
            | MathFn::Ceil
            | MathFn::Trunc
            | MathFn::Exp
            | MathFn::Exp2
            | MathFn::Exp10
            | MathFn::Log
            | MathFn::Log1p
            | MathFn::Log2
            | MathFn::Log10
            | MathFn::Sqrt
            | MathFn::Rsqrt
            | MathFn::Sin
            | MathFn::Cos
            | MathFn::Tan
            | MathFn::Sinh
            | MathFn::Cosh
            | MathFn::Tanh
            | MathFn::Asin
            | MathFn::Acos
            | MathFn::Atan
            | MathFn::Asinh
            | MathFn::Acosh
            | MathFn::Atanh
            | MathFn::Atan2
            | MathFn::Pow
            | MathFn::Hypot
            | MathFn::Fmod
            | MathFn::Erf => builtin(function.info().0),
        }
    }

    fn round(&self, helpers: &mut Helpers, ty: DataType) -> String {
        helper::round(helpers, ty)
    }

    fn saturate(&self, helpers: &mut Helpers, from: DataType, to: DataType) -> String {
        helper::saturate(helpers, from, to)
    }

    fn half_from_double(&self, helpers: &mut Helpers, lanes: u16) -> String {
        helper::half_from_double(helpers, lanes)
    }

    fn float_to_odd(&self, helpers: &mut Helpers, from: DataType) -> String {
        helper::float_to_odd(helpers, from)
    }

    fn vector(&self, ty: DataType, parts: &[String]) -> Code {
        Code { text: format!("({})({})", types::value_name(ty), parts.join(", ")), binds: PREFIX }
    }

    fn lane(&self, vector: &str, k: u16) -> String {
        helper::lane(vector, k)
    }

    fn convert(&self, to: DataType, value: &Code) -> Code {
        Code::call(&format!("convert_{}", types::value_name(to)), &[value])
    }

    fn wrapping_vector(&self, ty: DataType, symbol: &str, binds: u8, a: &Code, b: &Code) -> Code {
        let n = suffix(ty.lanes);
        let unsigned = |code: &Code| Code::call(&format!("as_{}{n}", unsigned_name(ty.scalar)), &[code]);
        let result = Code::infix(symbol, binds, &unsigned(a), &unsigned(b));
        Code::call(&format!("as_{}", types::value_name(ty)), &[&result])
    }

    fn truth(&self, lanes: u16, comparison: &Code) -> Code {
        // A comparison of vectors gives -1 for true.
        Code::atom(format!("convert_uchar{lanes}(-({}))", comparison.text))
    }

    fn select(&self, ty: DataType, condition: &Code, a: &Code, b: &Code) -> Code {
        // `select` looks at the most significant bit of a mask as wide as the values.
        let mask = format!("-convert_{}{}({})", mask_name(ty.scalar), suffix(ty.lanes), condition.text);
        Code::atom(format!("select({}, {}, {mask})", b.text, a.text))
    }
}

/// OpenCL's `abs` gives an unsigned result, so the least value comes back as itself.
fn integer_abs(ty: DataType, args: &[&Code]) -> Code {
    let call = Code::call("abs", args);
    if ty.is_scalar() {
        Code::cast(types::scalar_name(ty.scalar), &call)
    } else {
        Code::call(&format!("as_{}", types::value_name(ty)), &[&call])
    }
}
