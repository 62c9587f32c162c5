//! Accesses and allocations of texel buffers, as the builtins of the texture RFC.

use tilewright_ir::texture::CHANNELS;
use tilewright_ir::{Buffer, Expr};

use super::Printer;
use crate::tvmscript::texture::whole_texel;

impl Printer {
    /// The call that allocates a texel buffer; none for other buffers.
    pub(super) fn texture_alloca_call(&mut self, buffer: &Buffer) -> Option<String> {
        let plain = buffer.shape.get(2) == Some(&Expr::int(CHANNELS.into())) && buffer.elem_offset == Expr::int(0);
        (buffer.is_texel_buffer() && plain && !self.transformed_data.contains(&buffer.data)).then(|| {
            let (height, width) = (self.expr(&buffer.shape[0]), self.expr(&buffer.shape[1]));
            let (dtype, scope) = (buffer.dtype, buffer.scope);
            format!("T.texture2d_alloca(height={height}, width={width}, dtype=\"{dtype}\", scope=\"{scope}\")")
        })
    }

    /// The call that reads a texel or a channel of it; none if the access is printed as any other.
    pub(super) fn texture_load_call(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<String> {
        let [row, column, lane] = indices else { return None };
        if !buffer.is_texel_buffer() {
            return None;
        }
        let lane = match lane {
            lane if *lane == whole_texel() => String::new(),
            lane if lane.dtype().is_scalar() => format!(", lane={}", self.expr(lane)),
            _ => return None,
        };
        let place = self.texel_place(buffer, row, column);
        Some(format!("T.texture2d_load({place}{lane})"))
    }

    /// The statement that stores a texel; none if the store is printed as any other.
    pub(super) fn texture_store_call(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Option<String> {
        let [row, column, lane] = indices else { return None };
        if !buffer.is_texel_buffer() || *lane != whole_texel() {
            return None;
        }
        let place = self.texel_place(buffer, row, column);
        Some(format!("T.texture2d_store({place}, value={})", self.expr(value)))
    }

    fn texel_place(&mut self, buffer: &Buffer, row: &Expr, column: &Expr) -> String {
        format!("{}, row={}, column={}", self.names.buffer(buffer), self.expr(row), self.expr(column))
    }
}
