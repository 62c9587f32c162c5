//! Legal, unique names for OpenCL C.

use std::collections::BTreeSet;

/// Words that C99 or OpenCL C takes for itself, builtin functions that a kernel may call, and macros that compilers
/// define; prefixes and vector types are recognised by [`is_reserved`].
const RESERVED: &[&str] = &[
    "abs",
    "abs_diff",
    "acos",
    "acosh",
    "acospi",
    "add_sat",
    "all",
    "any",
    "asin",
    "asinh",
    "asinpi",
    "atan",
    "atan2",
    "atanh",
    "atanpi",
    "auto",
    "barrier",
    "bitselect",
    "bool",
    "break",
    "case",
    "cbrt",
    "ceil",
    "char",
    "clamp",
    "clz",
    "complex",
    "const",
    "constant",
    "continue",
    "copysign",
    "cos",
    "cosh",
    "cospi",
    "cross",
    "default",
    "degrees",
    "distance",
    "do",
    "dot",
    "double",
    "else",
    "enum",
    "erf",
    "erfc",
    "event_t",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "extern",
    "fabs",
    "false",
    "fdim",
    "float",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "for",
    "fract",
    "frexp",
    "generic",
    "global",
    "goto",
    "hadd",
    "half",
    "hypot",
    "i386",
    "if",
    "ilogb",
    "image1d_t",
    "image2d_t",
    "image3d_t",
    "imaginary",
    "inline",
    "int",
    "intptr_t",
    "isequal",
    "isfinite",
    "isgreater",
    "isinf",
    "isless",
    "isnan",
    "isnormal",
    "isordered",
    "kernel",
    "ldexp",
    "length",
    "lgamma",
    "linux",
    "local",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "long",
    "mad",
    "mad24",
    "mad_hi",
    "mad_sat",
    "max",
    "maxmag",
    "mem_fence",
    "min",
    "minmag",
    "mix",
    "modf",
    "mul24",
    "mul_hi",
    "nan",
    "nextafter",
    "normalize",
    "pipe",
    "popcount",
    "pow",
    "pown",
    "powr",
    "prefetch",
    "printf",
    "private",
    "ptrdiff_t",
    "quad",
    "radians",
    "read_only",
    "read_write",
    "register",
    "remainder",
    "remquo",
    "restrict",
    "return",
    "rhadd",
    "rint",
    "rootn",
    "rotate",
    "round",
    "rsqrt",
    "sampler_t",
    "select",
    "short",
    "shuffle",
    "shuffle2",
    "sign",
    "signbit",
    "signed",
    "sin",
    "sincos",
    "sinh",
    "sinpi",
    "size_t",
    "sizeof",
    "smoothstep",
    "sqrt",
    "static",
    "step",
    "struct",
    "sub_sat",
    "switch",
    "tan",
    "tanh",
    "tanpi",
    "tgamma",
    "this",
    "true",
    "trunc",
    "typedef",
    "typeof",
    "uchar",
    "uint",
    "uintptr_t",
    "uniform",
    "union",
    "unix",
    "unsigned",
    "upsample",
    "ushort",
    "ulong",
    "vec_step",
    "void",
    "volatile",
    "wait_group_events",
    "while",
    "write_only",
];

/// Beginnings of builtin functions, macros and our own helpers.
const RESERVED_PREFIXES: &[&str] = &[
    "__",
    "as_",
    "async_",
    "atom_",
    "atomic_",
    "CHAR_",
    "CL_",
    "CLK_",
    "convert_",
    "DBL_",
    "FLT_",
    "FP_",
    "get_",
    "half_",
    "HALF_",
    "INT_",
    "LONG_",
    "M_",
    "native_",
    "read_image",
    "read_mem_fence",
    "SCHAR_",
    "SHRT_",
    "tw_",
    "UCHAR_",
    "UINT_",
    "ULONG_",
    "USHRT_",
    "vload",
    "vstore",
    "work_group_",
    "write_image",
    "write_mem_fence",
];

/// Whether an identifier may not be used for something of ours.
pub(crate) fn is_reserved(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    RESERVED.contains(&name)
        || (stem != name && RESERVED.contains(&stem))
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || ["INFINITY", "NAN", "MAXFLOAT", "HUGE_VAL", "HUGE_VALF", "NULL", "ATOMIC_VAR_INIT"].contains(&name)
}

/// A name for a comment: it can neither end nor continue it.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c == '\\' || (!c.is_ascii_graphic() && c != ' ') { '?' } else { c }).collect()
}

/// Gives every name once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namer {
    used: BTreeSet<String>,
}

impl Namer {
    /// A fresh name, as near to `wanted` as C allows.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        let mut base: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).take(60).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, 'v');
        }
        if base.starts_with('_') || RESERVED_PREFIXES.iter().any(|prefix| base.starts_with(prefix)) {
            base.insert(0, 'v');
        }
        if is_reserved(&base) {
            base.push('_');
        }
        let mut name = base.clone();
        let mut count = 1;
        while self.used.contains(&name) {
            name = format!("{base}_{count}");
            count += 1;
        }
        self.used.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_unique() {
        let mut namer = Namer::default();
        let wanted = ["A", "A", "float", "float4", "i.outer", "0", "", "convert_x", "__x", "tw_f", "linux", "min", "é"];
        let names: Vec<_> = wanted.iter().map(|name| namer.fresh(name)).collect();
        let expected = [
            "A",
            "A_1",
            "float_",
            "float4_",
            "i_outer",
            "v0",
            "v",
            "vconvert_x",
            "v__x",
            "vtw_f",
            "linux_",
            "min_",
            "v_",
        ];
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| !is_reserved(name)));
    }
}
