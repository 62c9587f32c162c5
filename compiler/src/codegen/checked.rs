//! The checked mode: every coordinate of a texture is tested in the kernel, and the first bad one is reported.
//!
//! Devices do not trap such an access: reads outside of an image give its border or an edge, writes vanish, and in a
//! pool of several textures both reach the neighbour. Here a bad read gives 0, a bad write is left out, and the site,
//! row, column and lane of the first one are left in a report buffer that each kernel with images takes last.

use tilewright_ir::{Bindings, Buffer, ScalarType};

use super::helpers::{Helpers, lane};
use super::image::texel_of;
use super::metadata::{Metadata, Size};
use super::types::{scalar_name, value_name};
use super::writer::Writer;

/// Bytes of the report: four numbers of type `int`.
pub const REPORT_BYTES: u64 = 16;

/// Longest text of a statement that is kept.
const STATEMENT_CHARS: usize = 160;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It reads a texel.
    Read,
    /// It writes one.
    Write,
}

/// A place in a kernel where a texture is accessed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Site {
    /// The kernel.
    pub kernel: String,
    /// The statement, as the program has it; the end of a long one is left out.
    pub statement: String,
    /// The texture, by its place in [`Metadata::buffers`].
    pub buffer: String,
    /// What is done.
    pub access: Access,
    /// Rows of the texture.
    pub height: Size,
    /// Columns of the texture.
    pub width: Size,
}

/// The first access of a run that was outside of its texture: of the work-items at fault, one that came first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideTexture {
    /// The kernel.
    pub kernel: String,
    /// The statement.
    pub statement: String,
    /// The texture.
    pub buffer: String,
    /// What was done.
    pub access: Access,
    /// The row, held within `int`.
    pub row: i32,
    /// The column, held within `int`.
    pub column: i32,
    /// The channel.
    pub lane: i32,
    /// Rows of the texture, as far as they are known.
    pub height: Option<u64>,
    /// Columns of the texture, as far as they are known.
    pub width: Option<u64>,
}

impl std::fmt::Display for OutsideTexture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernel, statement, buffer, row, column, lane, .. } = self;
        let verb = if self.access == Access::Read { "reads" } else { "writes" };
        let extent = |extent: Option<u64>| extent.map_or_else(|| "?".to_owned(), |extent| extent.to_string());
        let (height, width) = (extent(self.height), extent(self.width));
        write!(f, "kernel `{kernel}` {verb} texture `{buffer}` at row {row}, column {column}")?;
        if !(0..4).contains(lane) {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ", outside of its {height} rows and {width} columns of 4 lanes, in `{statement}`")
    }
}

impl Metadata {
    /// What a report buffer says after a run; none if every access was inside.
    pub fn outside_texture(&self, report: &[u8], symbols: &Bindings) -> Option<OutsideTexture> {
        let mut numbers = report.chunks_exact(4).filter_map(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
        let [site, row, column, lane] = [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
        let place = usize::try_from(site).ok()?.checked_sub(1)?;
        let site = self.sites.get(place)?;
        Some(OutsideTexture {
            kernel: site.kernel.clone(),
            statement: site.statement.clone(),
            buffer: site.buffer.clone(),
            access: site.access,
            row,
            column,
            lane,
            height: site.height.eval(symbols).ok(),
            width: site.width.eval(symbols).ok(),
        })
    }
}

impl Writer {
    /// Remembers the statement that is written, for the sites in it.
    pub(crate) fn at_statement(&mut self, text: impl FnOnce() -> String) {
        if self.options.checked {
            let text = text();
            self.statement = text.chars().take(STATEMENT_CHARS).collect();
            if self.statement.len() < text.len() {
                self.statement.push_str(" ...");
            }
        }
    }

    /// The number of a new site, from 1.
    pub(crate) fn site(&mut self, buffer: &Buffer, access: Access) -> usize {
        let name = self.places.get(&buffer.data).map(|place| place.name.clone()).unwrap_or_default();
        self.sites.push(Site {
            kernel: String::new(),
            statement: self.statement.clone(),
            buffer: name,
            access,
            height: Size(buffer.shape[0].clone()),
            width: Size(buffer.shape[1].clone()),
        });
        self.first_site + self.sites.len()
    }
}

/// `, const int2 origin` and what it adds to `(int2)(column, row)`.
fn origin(placed: bool) -> (&'static str, &'static str) {
    if placed { (", const int2 origin", " + origin") } else { ("", "") }
}

/// The parameters of a checked access, after the image.
const PARAMS: &str = "global int *report, int site, long row, long column, long lane, long height, long width";
const INSIDE: &str = "tw_inside(report, site, row, column, lane, height, width)";

impl Helpers {
    /// The one sampler: coordinates as they are, nothing between texels, a border of zeros around.
    pub(crate) fn sampler(&mut self) -> String {
        self.define("tw_sampler".into(), |name| {
            format!(
                "constant sampler_t {name} = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"
            )
        })
    }

    /// Picks the channel of a number that is known only when the kernel runs.
    pub(crate) fn channel(&mut self, (suffix, ty): (&str, ScalarType)) -> String {
        let t = scalar_name(ty);
        let [a, b, c, d] = [0, 1, 2, 3].map(|k| lane("texel", k));
        self.define(format!("tw_channel_{suffix}"), |name| {
            format!(
                "static inline {t} {name}({t}4 texel, long lane) {{\n    \
                 return lane == 0 ? {a} : lane == 1 ? {b} : lane == 2 ? {c} : {d};\n}}\n"
            )
        })
    }

    /// Tests a place in a texture, and reports the first that is outside.
    fn inside(&mut self) {
        self.define("tw_inside".into(), |name| {
            format!(
                "// Whether a place lies in a texture; the first that does not is reported.\n\
                 static inline int {name}({PARAMS}) {{\n    \
                 if (row >= 0 && row < height && column >= 0 && column < width && lane >= 0 && lane < 4) {{\n        \
                 return 1;\n    }}\n    \
                 if (atomic_cmpxchg(report, 0, site) == 0) {{\n        \
                 report[1] = convert_int_sat(row);\n        report[2] = convert_int_sat(column);\n        \
                 report[3] = convert_int_sat(lane);\n    }}\n    return 0;\n}}\n"
            )
        });
    }

    /// A checked read of all channels.
    pub(crate) fn checked_read(&mut self, (suffix, ty): (&str, ScalarType), placed: bool) -> String {
        self.inside();
        let t = value_name(texel_of(ty));
        let (param, moved) = origin(placed);
        self.define(format!("tw_read_{suffix}"), |name| {
            format!(
                "static inline {t} {name}(read_only image2d_t image, {PARAMS}{param}) {{\n    \
                 if (!{INSIDE}) {{\n        return ({t})(0);\n    }}\n    \
                 return read_image{suffix}(image, tw_sampler, (int2)((int)column, (int)row){moved});\n}}\n"
            )
        })
    }

    /// A checked read of one channel.
    pub(crate) fn checked_channel(&mut self, kind: (&str, ScalarType), placed: bool) -> String {
        self.inside();
        let channel = self.channel(kind);
        let (suffix, t) = (kind.0, scalar_name(kind.1));
        let (param, moved) = origin(placed);
        self.define(format!("tw_read_channel_{suffix}"), |name| {
            format!(
                "static inline {t} {name}(read_only image2d_t image, {PARAMS}{param}) {{\n    \
                 if (!{INSIDE}) {{\n        return 0;\n    }}\n    \
                 return {channel}(read_image{suffix}(image, tw_sampler, (int2)((int)column, (int)row){moved}), lane);\n\
                 }}\n"
            )
        })
    }

    /// A checked write.
    pub(crate) fn checked_write(&mut self, (suffix, ty): (&str, ScalarType), placed: bool) -> String {
        self.inside();
        let t = value_name(texel_of(ty));
        let (param, moved) = origin(placed);
        self.define(format!("tw_write_{suffix}"), |name| {
            format!(
                "static inline void {name}(write_only image2d_t image, {PARAMS}{param}, {t} value) {{\n    \
                 if ({INSIDE}) {{\n        \
                 write_image{suffix}(image, (int2)((int)column, (int)row){moved}, value);\n    }}\n}}\n"
            )
        })
    }
}
