//! Textures as `image2d_t`: read through one sampler, written a whole texel at a time.

use tilewright_device::ChannelType;
use tilewright_ir::{CHANNELS, DataType, ScalarType};

use super::helpers::lane;
use super::types::{scalar_name, value_name};
use crate::codegen::helpers::Helpers;
use crate::codegen::target::{ChannelKind, Images, Origin};

/// The images of OpenCL 1.2.
#[derive(Debug)]
pub(super) struct Image2d;

impl Images for Image2d {
    fn kind(&self, ty: ScalarType, channels: u16) -> ChannelKind {
        let (word, ty) = if ty.is_float() {
            ("f", ScalarType::Float32)
        } else if ty.integer_range().is_some_and(|(low, _)| low < 0) {
            ("i", ScalarType::Int32)
        } else {
            ("ui", ScalarType::UInt32)
        };
        ChannelKind { word, ty, channels }
    }

    fn channel_name(&self, channel: ChannelType) -> &'static str {
        match channel {
            ChannelType::F32 => "CL_FLOAT",
            ChannelType::F16 => "CL_HALF_FLOAT",
            ChannelType::I8 => "CL_SIGNED_INT8",
            ChannelType::I16 => "CL_SIGNED_INT16",
            ChannelType::I32 => "CL_SIGNED_INT32",
            ChannelType::U8 => "CL_UNSIGNED_INT8",
            ChannelType::U16 => "CL_UNSIGNED_INT16",
            ChannelType::U32 => "CL_UNSIGNED_INT32",
        }
    }

    fn param(&self, written: bool, name: &str) -> String {
        format!("{} image2d_t {name}", if written { "write_only" } else { "read_only" })
    }

    fn origin(&self) -> Origin {
        Origin { ty: "int2", column: "x", row: "y" }
    }

    fn coordinates(&self, column: &str, row: &str) -> String {
        format!("(int2)({column}, {row})")
    }

    fn read(&self, helpers: &mut Helpers, kind: ChannelKind, image: &str, place: &str) -> String {
        format!("read_image{}({image}, {}, {place})", kind.word, sampler(helpers))
    }

    fn write(&self, kind: ChannelKind, image: &str, place: &str, texel: &str) -> String {
        format!("write_image{}({image}, {place}, {texel});", kind.word)
    }

    fn first(&self, texel: &str, channels: u16) -> String {
        let lanes: String = "0123456789abcdef".chars().take(usize::from(channels)).collect();
        format!("{texel}.s{lanes}")
    }

    fn filled_up(&self, kind: ChannelKind, texel: &str) -> String {
        let zeros = ", 0".repeat(usize::from(CHANNELS.saturating_sub(kind.channels)));
        format!("({})({texel}{zeros})", value_name(texel_of(kind.ty)))
    }

    fn channel(&self, helpers: &mut Helpers, kind: ChannelKind) -> String {
        channel(helpers, kind)
    }

    fn checked_read(&self, helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String {
        sampler(helpers);
        checked_read(helpers, kind, placed)
    }

    fn checked_channel(&self, helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String {
        sampler(helpers);
        checked_channel(helpers, kind, placed)
    }

    fn checked_write(&self, helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String {
        checked_write(helpers, kind, placed)
    }
}

/// Four channels of a type.
fn texel_of(ty: ScalarType) -> DataType {
    DataType::scalar(ty).with_lanes(CHANNELS)
}

/// Returns the parameter `, const int2 origin` and the addend to `(int2)(column, row)`; empty texts for kernels that are not
/// placed.
fn origin(placed: bool) -> (&'static str, &'static str) {
    if placed { (", const int2 origin", " + origin") } else { ("", "") }
}

/// The parameters of a checked access, after the image.
const PARAMS: &str = "global int *report, int site, long row, long column, long lane, long height, long width";
/// The arguments that check the position of an access, in a function with the parameters [`PARAMS`].
const PLACE: &str = "(report, site, row, column, lane, height, width)";

/// What the names of helpers for images of fewer than four channels end in.
fn tail(channels: u16) -> String {
    if channels == CHANNELS { String::new() } else { format!("_of_{channels}") }
}

/// Defines the sampler of all reads: coordinates are not normalised, there is no filter, and the border is 0.
fn sampler(helpers: &mut Helpers) -> String {
    helpers.define("tw_sampler".into(), |name| {
        format!("constant sampler_t {name} = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n")
    })
}

/// Defines the function that selects a channel whose number is known only at run time.
fn channel(helpers: &mut Helpers, ChannelKind { word, ty, .. }: ChannelKind) -> String {
    let t = scalar_name(ty);
    let [a, b, c, d] = [0, 1, 2, 3].map(|k| lane("texel", k));
    helpers.define(format!("tw_channel_{word}"), |name| {
        format!(
            "static inline {t} {name}({t}4 texel, long lane) {{\n    \
             return lane == 0 ? {a} : lane == 1 ? {b} : lane == 2 ? {c} : {d};\n}}\n"
        )
    })
}

/// Defines the function that checks a position in a texture and reports the first one outside.
fn inside(helpers: &mut Helpers, channels: u16) -> String {
    helpers.define(format!("tw_inside{}", tail(channels)), |name| {
        format!(
            "// Whether a place lies in a texture; the first that does not is reported.\n\
             static inline int {name}({PARAMS}) {{\n    \
             if (row >= 0 && row < height && column >= 0 && column < width && lane >= 0 && lane < {channels}) {{\n        \
             return 1;\n    }}\n    \
             if (atomic_cmpxchg(report, 0, site) == 0) {{\n        \
             report[1] = convert_int_sat(row);\n        report[2] = convert_int_sat(column);\n        \
             report[3] = convert_int_sat(lane);\n    }}\n    return 0;\n}}\n"
        )
    })
}

/// A checked read of all channels.
fn checked_read(helpers: &mut Helpers, ChannelKind { word, ty, channels }: ChannelKind, placed: bool) -> String {
    let inside = inside(helpers, channels);
    let t = value_name(texel_of(ty));
    let (param, moved) = origin(placed);
    helpers.define(format!("tw_read_{word}{}", tail(channels)), |name| {
        format!(
            "static inline {t} {name}(read_only image2d_t image, {PARAMS}{param}) {{\n    \
             if (!{inside}{PLACE}) {{\n        return ({t})(0);\n    }}\n    \
             return read_image{word}(image, tw_sampler, (int2)((int)column, (int)row){moved});\n}}\n"
        )
    })
}

/// A checked read of one channel.
fn checked_channel(helpers: &mut Helpers, kind: ChannelKind, placed: bool) -> String {
    let inside = inside(helpers, kind.channels);
    let channel = channel(helpers, kind);
    let (word, t) = (kind.word, scalar_name(kind.ty));
    let (param, moved) = origin(placed);
    helpers.define(format!("tw_read_channel_{word}{}", tail(kind.channels)), |name| {
        format!(
            "static inline {t} {name}(read_only image2d_t image, {PARAMS}{param}) {{\n    \
             if (!{inside}{PLACE}) {{\n        return 0;\n    }}\n    \
             return {channel}(read_image{word}(image, tw_sampler, (int2)((int)column, (int)row){moved}), lane);\n\
             }}\n"
        )
    })
}

/// A checked write.
fn checked_write(helpers: &mut Helpers, ChannelKind { word, ty, channels }: ChannelKind, placed: bool) -> String {
    let inside = inside(helpers, channels);
    let t = value_name(texel_of(ty));
    let (param, moved) = origin(placed);
    helpers.define(format!("tw_write_{word}{}", tail(channels)), |name| {
        format!(
            "static inline void {name}(write_only image2d_t image, {PARAMS}{param}, {t} value) {{\n    \
             if ({inside}{PLACE}) {{\n        \
             write_image{word}(image, (int2)((int)column, (int)row){moved}, value);\n    }}\n}}\n"
        )
    })
}
