//! Helper functions in OpenCL C: the places where C's operators and OpenCL's builtins do not mean what the language means.
//! Each function here defines one, if it is not defined yet, and returns its name.

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, DataType, ScalarType};

use super::types::{helper_name, scalar_name, suffix, value_name, wrapping_name};
use crate::codegen::helpers::Helpers;

/// Lane `lane` of a vector.
pub(super) fn lane(vector: &str, lane: u16) -> String {
    format!("{vector}.s{lane:x}")
}

/// A function on vectors of `ty.lanes` lanes out of one on single lanes, each argument of the type of its lane.
fn by_lanes(helpers: &mut Helpers, scalar: &str, ty: DataType, n_args: usize) -> String {
    let vector = value_name(ty);
    let args: Vec<_> = ["a", "b"][..n_args].iter().map(|arg| format!("{vector} {arg}")).collect();
    let calls: Vec<_> = (0..ty.lanes)
        .map(|k| {
            let args: Vec<_> = ["a", "b"][..n_args].iter().map(|arg| lane(arg, k)).collect();
            format!("{scalar}({})", args.join(", "))
        })
        .collect();
    let (args, calls) = (args.join(", "), calls.join(", "));
    helpers.define(format!("{scalar}_x{}", ty.lanes), |name| {
        format!("static inline {vector} {name}({args}) {{\n    return ({vector})({calls});\n}}\n")
    })
}

/// Integer division or remainder of operands of any sign. A division by 0 traps in the IR; here it gives 0, because on a
/// driver that runs kernels in the host's process a trap would stop the host.
pub(super) fn division(helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String {
    let (t, u) = (scalar_name(ty.scalar), wrapping_name(ty.scalar));
    let signed = ty.scalar.integer_range().is_some_and(|(low, _)| low < 0);
    // The least value divided by -1 traps on processors; our quotient wraps and our remainder is 0.
    let quotient = if signed { format!("({t})(b == -1 ? ({t})(0 - ({u})a) : a / b)") } else { format!("({t})(a / b)") };
    let remainder = if signed { format!("({t})(b == -1 ? 0 : a % b)") } else { format!("({t})(a % b)") };
    let (name, note, body) = match op {
        BinaryOp::FloorDiv if signed => (
            "floordiv",
            "// Quotient rounded down; C rounds towards zero.\n",
            format!(
                "    const {t} q = {quotient};\n    const {t} r = {remainder};\n    \
                 return ({t})(r != 0 && (r < 0) != (b < 0) ? q - {} : q);",
                u8::from(!sabotage::on("kernel-floor-div-truncates"))
            ),
        ),
        BinaryOp::FloorMod if signed => (
            "floormod",
            "// Remainder with the sign of the divisor; C's has that of the dividend.\n",
            format!(
                "    const {t} r = {remainder};\n    \
                 return ({t})(r != 0 && (r < 0) != (b < 0) ? r + b : r);"
            ),
        ),
        BinaryOp::FloorMod | BinaryOp::TruncMod => ("mod", "", format!("    return {remainder};")),
        // For unsigned operands both quotients are the same; the other operators do not divide.
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => ("div", "", format!("    return {quotient};")),
    };
    let prefix = if sabotage::on("kernel-other-names") { "twr" } else { "tw" };
    let scalar = helpers.define(format!("{prefix}_{name}_{t}"), |name| {
        format!(
            "{note}static inline {t} {name}({t} a, {t} b) {{\n    if (b == 0) {{\n        return 0;\n    }}\n{body}\n}}\n"
        )
    });
    if ty.is_scalar() { scalar } else { by_lanes(helpers, &scalar, ty, 2) }
}

/// Minimum or maximum of floats: a NaN loses to a number, and the first operand wins a tie.
pub(super) fn min_max(helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String {
    let (t, lt, word) = (value_name(ty), if op == BinaryOp::Min { "<" } else { ">" }, op.info().call);
    let choice = if ty.is_scalar() {
        format!("{}b {lt} a ? b : a", if sabotage::on("kernel-maximum-is-nan") { "" } else { "isnan(a) || " })
    } else {
        format!("select(a, b, isnan(a) | (b {lt} a))")
    };
    helpers.define(format!("tw_{word}_{t}"), |name| {
        format!("static inline {t} {name}({t} a, {t} b) {{\n    return {choice};\n}}\n")
    })
}

/// Rounds a `float` to `float16` or `bfloat16`, to nearest even; the result is a `float` again.
pub(super) fn round(helpers: &mut Helpers, ty: DataType) -> String {
    let (t, n) = (value_name(ty), suffix(ty.lanes));
    if ty.scalar == ScalarType::Float16 {
        let size = ty.lanes;
        return helpers.define(format!("tw_round_half{n}"), |name| {
            let rounding = if sabotage::on("kernel-half-truncates") { "rtz" } else { "rte" };
            format!(
                "// Rounds to half precision.\nstatic inline {t} {name}({t} x) {{\n    ushort bits[{size}];\n    \
                 vstore_half{n}_{rounding}(x, 0, (private half *)bits);\n    \
                 return vload_half{n}(0, (private const half *)bits);\n}}\n"
            )
        });
    }
    helpers.define(format!("tw_round_bf16{}", lanes_tail(ty)), |name| {
        format!(
            "// Rounds to bfloat16, the upper half of a float.\nstatic inline {t} {name}({t} x) {{\n    \
             const uint{n} bits = as_uint{n}(x);\n    \
             const {t} rounded = as_{t}((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);\n    \
             return {};\n}}\n",
            if ty.is_scalar() { "isnan(x) ? x : rounded" } else { "select(rounded, x, isnan(x))" }
        )
    })
}

/// `bfloat16` in memory to `float`.
pub(super) fn load_bf16(helpers: &mut Helpers, lanes: u16) -> String {
    let n = suffix(lanes);
    let widened = if lanes == 1 { "(uint)bits".to_owned() } else { format!("convert_uint{n}(bits)") };
    helpers.define(format!("tw_load_bf16{}", tail(lanes)), |name| {
        format!("static inline float{n} {name}(ushort{n} bits) {{\n    return as_float{n}({widened} << 16);\n}}\n")
    })
}

/// Converts a `float` with the value of a `bfloat16` to its 16 bits; every NaN becomes one quiet NaN.
pub(super) fn store_bf16(helpers: &mut Helpers, lanes: u16) -> String {
    let n = suffix(lanes);
    let upper = format!("as_uint{n}(x) >> 16");
    let narrowed = if lanes == 1 {
        format!("(ushort)(isnan(x) ? 0x7fc0U : {upper})")
    } else {
        format!("convert_ushort{n}(select({upper}, (uint{n})(0x7fc0U), isnan(x)))")
    };
    helpers.define(format!("tw_store_bf16{}", tail(lanes)), |name| {
        format!("static inline ushort{n} {name}(float{n} x) {{\n    return {narrowed};\n}}\n")
    })
}

/// `double` to `float16`, rounded once.
pub(super) fn half_from_double(helpers: &mut Helpers, lanes: u16) -> String {
    let (n, size) = (suffix(lanes), lanes);
    helpers.define(format!("tw_half_from_double{n}"), |name| {
        format!(
            "// Rounds to half precision, once.\nstatic inline float{n} {name}(double{n} x) {{\n    \
             ushort bits[{size}];\n    vstore_half{n}_rte(x, 0, (private half *)bits);\n    \
             return vload_half{n}(0, (private const half *)bits);\n}}\n"
        )
    })
}

/// A `double` or an integer of more than 24 bits to a `float` rounded to odd: the last bit is set if bits were
/// lost, so that the rounding to `bfloat16` that follows is the only one.
pub(super) fn float_to_odd(helpers: &mut Helpers, from: DataType) -> String {
    let t = scalar_name(from.scalar);
    let finite = if from.scalar.is_float() { "!isnan(x) && !isinf(x) && " } else { "" };
    let scalar = helpers.define(format!("tw_odd_from_{t}"), |name| {
        format!(
            "// Rounds to odd: a later rounding then sees on which side of a tie the value lies.\n\
             static inline float {name}({t} x) {{\n    const float near = convert_float_rtz(x);\n    \
             return {finite}({t})near != x ? as_float(as_uint(near) | 1U) : near;\n}}\n"
        )
    });
    if from.is_scalar() {
        return scalar;
    }
    let (vector, n) = (value_name(from), from.lanes);
    let calls: Vec<_> = (0..n).map(|k| format!("{scalar}({})", lane("x", k))).collect();
    let calls = calls.join(", ");
    helpers.define(format!("{scalar}_x{n}"), |name| {
        format!("static inline float{n} {name}({vector} x) {{\n    return (float{n})({calls});\n}}\n")
    })
}

/// Float to integer: towards zero, saturating, NaN gives 0.
pub(super) fn saturate(helpers: &mut Helpers, from: DataType, to: DataType) -> String {
    let (f, t) = (scalar_name(from.scalar), scalar_name(to.scalar));
    let scalar = helpers.define(format!("tw_{t}_from_{f}"), |name| {
        format!("static inline {t} {name}({f} x) {{\n    return isnan(x) ? ({t})0 : convert_{t}_sat_rtz(x);\n}}\n")
    });
    if from.is_scalar() {
        return scalar;
    }
    let (vector, result, n) = (value_name(from), value_name(to), from.lanes);
    let calls: Vec<_> = (0..n).map(|k| format!("{scalar}({})", lane("x", k))).collect();
    let calls = calls.join(", ");
    helpers.define(format!("{scalar}_x{n}"), |name| {
        format!("static inline {result} {name}({vector} x) {{\n    return ({result})({calls});\n}}\n")
    })
}

/// The logistic function, for which OpenCL has no builtin.
pub(super) fn sigmoid(helpers: &mut Helpers, ty: DataType) -> String {
    let t = value_name(ty);
    let one = if ty.scalar == ScalarType::Float64 { "1.0" } else { "1.0f" };
    helpers.define(format!("tw_sigmoid_{}", helper_name(ty)), |name| {
        format!("static inline {t} {name}({t} x) {{\n    return {one} / ({one} + exp(-x));\n}}\n")
    })
}

/// The bits of floats as integers: those of one NaN for every NaN.
pub(super) fn bits_of_float(helpers: &mut Helpers, ty: DataType) -> String {
    let is_double = ty.scalar == ScalarType::Float64;
    let to = DataType { scalar: if is_double { ScalarType::Int64 } else { ScalarType::Int32 }, lanes: ty.lanes };
    let (t, bits) = (value_name(ty), value_name(to));
    let nan = if is_double { "0x7ff8000000000000L" } else { "0x7fc00000" };
    let value = if ty.is_scalar() {
        format!("isnan(x) ? {nan} : as_{bits}(x)")
    } else {
        format!("select(as_{bits}(x), ({bits})({nan}), isnan(x))")
    };
    helpers.define(format!("tw_bits_of_float_{}", helper_name(ty)), |name| {
        format!("static inline {bits} {name}({t} x) {{\n    return {value};\n}}\n")
    })
}

/// The floats with the bits of integers.
pub(super) fn float_of_bits(helpers: &mut Helpers, ty: DataType) -> String {
    let scalar = if ty.scalar == ScalarType::Int64 { ScalarType::Float64 } else { ScalarType::Float32 };
    let (t, float) = (value_name(ty), value_name(DataType { scalar, lanes: ty.lanes }));
    helpers.define(format!("tw_float_of_bits_{}", helper_name(ty)), |name| {
        format!("static inline {float} {name}({t} x) {{\n    return as_{float}(x);\n}}\n")
    })
}

/// The end of a helper's name: nothing for one lane.
fn tail(lanes: u16) -> String {
    if lanes == 1 { String::new() } else { format!("_x{lanes}") }
}

/// [`tail`] of a type.
fn lanes_tail(ty: DataType) -> String {
    tail(ty.lanes)
}
