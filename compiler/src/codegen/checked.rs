//! The checked mode: every coordinate of a texture is tested in the kernel, and the first bad one is reported.
//!
//! Devices do not trap such an access: reads outside of an image give its border or an edge, writes vanish, and in a
//! pool of several textures both reach the neighbour. Here a bad read gives 0, a bad write is left out, and the site,
//! row, column and lane of the first one are left in a report buffer that each kernel with images takes last.
//!
//! The functions that check are the target's. They take the image, the report, the number of the site, the row, column and
//! lane of the access, the height and width of the texture, its origin if the kernels are placed, and the texel to write.

use tilewright_ir::{Bindings, Buffer};

use super::metadata::{Metadata, Size};
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
        let name = self.allocations.get(&buffer.data).map(|allocation| allocation.name.clone()).unwrap_or_default();
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
