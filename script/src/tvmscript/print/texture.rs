//! Printing of texel buffers with the builtins of the texture RFC.

use tilewright_ir::texture::{CHANNELS, whole_texel};
use tilewright_ir::{Buffer, Expr};

use super::Printer;
use crate::tvmscript::texture::channels_of;

impl Printer {
    /// Returns the call that allocates a texel buffer, and `None` for other buffers.
    pub(super) fn texture_alloca_call(&mut self, buffer: &Buffer) -> Option<String> {
        // The builtin states neither the type of these constants nor a layout, so both must be those of the reader.
        let channels = channels_of(buffer);
        let has_default_constants =
            buffer.shape.get(2) == Some(&Expr::int(channels.into())) && buffer.elem_offset == Expr::int(0);
        let is_transformed = self.transformed_data.contains(&buffer.data);
        (!self.dialect.is_tvm() && buffer.is_texel_buffer() && has_default_constants && !is_transformed).then(|| {
            let (height, width) = (self.expr(&buffer.shape[0]), self.expr(&buffer.shape[1]));
            let (dtype, scope) = (buffer.dtype, buffer.scope);
            let channels = if channels == CHANNELS { String::new() } else { format!(", channels={channels}") };
            format!(
                "T.texture2d_alloca(height={height}, width={width}, dtype=\"{dtype}\", scope=\"{scope}\"{channels})"
            )
        })
    }

    /// Returns the call that loads a texel or one of its channels, and `None` for accesses without a builtin.
    pub(super) fn texture_load_call(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<String> {
        let [row, column, lane] = indices else { return None };
        // TVM's own builtins access pointers; for buffers it has indices.
        if !buffer.is_texel_buffer() || self.dialect.is_tvm() {
            return None;
        }
        let lane = match lane {
            lane if is_printed_whole(buffer, lane) => String::new(),
            lane if lane.dtype().is_scalar() => format!(", lane={}", self.expr(lane)),
            _ => return None,
        };
        let place = self.texel_place(buffer, row, column);
        Some(format!("T.texture2d_load({place}{lane})"))
    }

    /// Returns the statement that stores a texel, and `None` for stores without a builtin.
    pub(super) fn texture_store_call(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Option<String> {
        let [row, column, lane] = indices else { return None };
        if !buffer.is_texel_buffer() || !is_printed_whole(buffer, lane) || self.dialect.is_tvm() {
            return None;
        }
        let place = self.texel_place(buffer, row, column);
        Some(format!("T.texture2d_store({place}, value={})", self.expr(value)))
    }

    /// Returns the arguments that locate a texel.
    fn texel_place(&mut self, buffer: &Buffer, row: &Expr, column: &Expr) -> String {
        format!("{}, row={}, column={}", self.names.buffer(buffer), self.expr(row), self.expr(column))
    }
}

/// Whether an index is the one that the reader gives to a whole texel.
fn is_printed_whole(buffer: &Buffer, lane: &Expr) -> bool {
    *lane == whole_texel(channels_of(buffer))
}
