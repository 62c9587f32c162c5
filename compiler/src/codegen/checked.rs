//! The checked mode: every coordinate of a texture is tested in the kernel, and the first bad one is reported.
//!
//! Devices do not trap such an access: a read outside an image returns its border or an edge, a write is dropped, and in a
//! pool of several textures both reach a neighbouring texture. In checked kernels a bad read returns 0, a bad write is
//! skipped, and the site, row, column and lane of the first bad access are written to a report buffer, which is the last
//! parameter of each kernel with images.
//!
//! The target provides the functions that check. Their parameters are the image, the report, the number of the site, the
//! row, column and lane of the access, the height and width of the texture, its origin if the kernels are placed, and the
//! texel to write.

use tilewright_ir::{Bindings, Buffer};

use super::metadata::{Metadata, Size};
use super::writer::Writer;

/// Bytes of the report: four numbers of type `int`.
pub const REPORT_BYTES: u64 = 16;

/// The longest text of a statement in a report, in characters.
const STATEMENT_CHARS: usize = 160;

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads a texel.
    Read,
    /// Writes a texel.
    Write,
}

/// A place in a kernel where a texture is accessed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Site {
    /// The kernel.
    pub kernel: String,
    /// The statement of the program; a long one is cut.
    pub statement: String,
    /// The texture, by its name in [`Metadata::buffers`].
    pub buffer: String,
    /// Whether the texture is read or written.
    pub access: Access,
    /// Rows of the texture.
    pub height: Size,
    /// Columns of the texture.
    pub width: Size,
}

/// The first access of a run outside its texture. If several work-items have bad accesses, it is the one whose report was
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideTexture {
    /// The kernel.
    pub kernel: String,
    /// The statement.
    pub statement: String,
    /// The texture.
    pub buffer: String,
    /// Whether the texture was read or written.
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
    /// Decodes a report buffer after a run; `None` if every access was inside its texture.
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
    /// Sets the statement that is being written, for the sites in it.
    pub(crate) fn at_statement(&mut self, text: impl FnOnce() -> String) {
        if self.options.checked {
            let text = text();
            self.statement = text.chars().take(STATEMENT_CHARS).collect();
            if self.statement.len() < text.len() {
                self.statement.push_str(" ...");
            }
        }
    }

    /// Records a site and returns its number; the first is 1.
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
