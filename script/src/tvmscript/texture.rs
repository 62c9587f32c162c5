//! The builtins of the texture RFC: `T.texture2d_alloca`, `T.texture2d_load` and `T.texture2d_store`.
//!
//! ```python
//! Xt = T.texture2d_alloca(height=35, width=9, dtype="float32", scope="texture")
//! T.texture2d_store(Xt, row=i, column=j, value=A[i, j, 0:4])
//! B[i, j, 0:4] = T.texture2d_load(Xt, row=i, column=j)
//! C[i, j] = T.texture2d_load(Xt, row=i, column=j, lane=3)
//! ```
//!
//! `channels=` of an allocation is 4 unless it is stated as 1 or 2; the only channel of a texel is a scalar value.
//!
//! They are another notation for accesses to a texel buffer ([`tilewright_ir::texture`]). Here coordinates are named. TVM's own
//! builtins take them by position, the column first: `texture_tvm` reads those.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::texture::{CHANNELS, channel_count, is_channel_type, whole_texel};
use tilewright_ir::{AxisSeparators, Buffer, BufferInfo, DataType, Expr, Scope, Stmt, StmtKind, Var};

use super::args::BoundArgs;
use super::reader::Reader;
use crate::source::span;

/// The help for coordinates without a name.
const NAMED: &str = "name the coordinates; TVM's own builtins take (buffer, x, y, lane) and (buffer, x, y, value), where x is the column";

impl<'a> Reader<'a> {
    /// Reads `T.texture2d_load(Xt, row=i, column=j)`: the channels of a texel, or one of them with `lane=k`.
    pub(super) fn texture_load(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        if let Some(positional) = self.positional_texture(call) {
            return self.texture_load_at(positional);
        }
        let args = self.texture_args(call, "texture2d_load", &["buffer", "row", "column", "lane"], 1, 3)?;
        let (buffer, mut indices) = self.texel_indices(&args, call.range())?;
        indices.push(match args.get(3) {
            None => whole_texel(channels_of(&buffer)),
            Some(lane) => self.scalar_index(lane, "lane")?,
        });
        Some(Expr::load(&buffer, indices))
    }

    /// Reads `T.texture2d_store(Xt, row=i, column=j, value=v)`. The value has a lane for each channel.
    pub(super) fn texture_store(&mut self, call: &'a ast::ExprCall) -> Option<Stmt> {
        if let Some(positional) = self.positional_texture(call) {
            return self.texture_store_at(positional);
        }
        let args = self.texture_args(call, "texture2d_store", &["buffer", "row", "column", "value"], 1, 4)?;
        let (buffer, mut indices) = self.texel_indices(&args, call.range())?;
        indices.push(whole_texel(channels_of(&buffer)));
        let value = self.texel_value(&buffer, args.get(3)?)?;
        Some(Stmt::new(StmtKind::Store { buffer, indices, value }))
    }

    /// Reads the value of a texel, which has a lane for each channel.
    pub(super) fn texel_value(&mut self, buffer: &Buffer, given: &'a ast::Expr) -> Option<Expr> {
        let value = self.value(given)?;
        let channels = channels_of(buffer);
        if channels > 1 && value.expr.dtype().is_scalar() {
            let message = format!("`{}` is one value, but a texel has {channels} channels", value.expr);
            let help = format!("if all channels are to have it: `T.Broadcast(..., {channels})`");
            return self.error("type", given.range(), message, &help);
        }
        self.coerce(value, buffer.dtype.with_lanes(channels), given.range())
    }

    /// Reads `T.texture2d_alloca(height=35, width=9, dtype="float32", scope="texture")`, the allocation of the texel buffer
    /// `name`.
    pub(super) fn texture_alloca(&mut self, call: &'a ast::ExprCall, name: &str) -> Option<Buffer> {
        let params = ["height", "width", "dtype", "scope", "channels"];
        let args = self.texture_args(call, "texture2d_alloca", &params, 0, 3)?;
        let (height, width) = (self.scalar_index(args.get(0)?, "height"), self.scalar_index(args.get(1)?, "width"));
        let channels = match args.get(4) {
            None => CHANNELS,
            Some(given) => self.channels(given)?,
        };
        self.texels(name, [height?, width?, Expr::int(channels.into())], args.get(2)?, args.get(3), call.range())
    }

    /// Reads a number of channels.
    fn channels(&mut self, given: &'a ast::Expr) -> Option<u16> {
        let read = self.expr(given)?;
        let Some(channels) = channel_count(&read) else {
            let message = format!("`{read}` channels: a texel has 1, 2 or 4");
            return self.error("texture-channels", given.range(), message, "write the number as a constant");
        };
        Some(channels)
    }

    /// The texel buffer `name` of this height, width and number of channels, in a scope of textures.
    pub(super) fn texels(
        &mut self,
        name: &str,
        [height, width, channels]: [Expr; 3],
        dtype: &'a ast::Expr,
        scope: Option<&'a ast::Expr>,
        range: TextRange,
    ) -> Option<Buffer> {
        let ty = self.dtype(dtype)?;
        if !ty.is_scalar() || !is_channel_type(ty.scalar) {
            let help = "float16, float32 and signed or unsigned integers of 8, 16 or 32 bits are possible";
            return self.error("texture-type", dtype.range(), format!("no channel of an image holds {ty}"), help);
        }
        let scope = match scope {
            None => Scope::Texture,
            Some(given) => match self.scope(given)? {
                scope if scope.is_texture() => scope,
                scope => {
                    let message = format!("`{scope}` is not a scope of a texture");
                    return self.error("texture-scope", given.range(), message, "such as \"texture\"");
                }
            },
        };
        let shape = vec![height, width, channels];
        let data = Var::new(name, DataType::HANDLE);
        // If an attribute transforms the layout, the separators would belong to the result and not to rows and columns.
        let rank = self.final_rank(name, &data, &shape)?;
        let Some(axis_separators) = AxisSeparators::new(vec![1, 2], rank).ok().filter(AxisSeparators::is_flat) else {
            let help = "declare it with `T.alloc_buffer(..., scope=\"texture\")`";
            return self.error("texture-separators", range, "rows and columns have a layout already", help);
        };
        let info = BufferInfo {
            name: name.to_owned(),
            dtype: ty,
            shape,
            strides: None,
            elem_offset: Expr::int(0),
            axis_separators,
            scope,
            data,
            span: Some(span(range)),
        };
        Some(Buffer::new(info))
    }

    /// Binds the arguments of a builtin, of which only the first `positional` may be given by position.
    fn texture_args(
        &mut self,
        call: &'a ast::ExprCall,
        name: &str,
        params: &[&str],
        positional: usize,
        required: usize,
    ) -> Option<BoundArgs<'a>> {
        if let Some(extra) = call.arguments.args.get(positional) {
            let names = params[positional..].iter().map(|param| format!("{param}=")).collect::<Vec<_>>().join(", ");
            return self.error("texture-order", extra.range(), format!("`{name}` takes {names} by name only"), NAMED);
        }
        self.bind_args(call, name, params, required)
    }

    /// Reads the texel buffer, the row and the column of an access.
    fn texel_indices(&mut self, args: &BoundArgs<'a>, range: TextRange) -> Option<(Buffer, Vec<Expr>)> {
        let buffer = self.texel_buffer(args.get(0)?, range);
        let (row, column) = (self.scalar_index(args.get(1)?, "row"), self.scalar_index(args.get(2)?, "column"));
        Some((buffer?, vec![row?, column?]))
    }

    /// Reads the name of a texel buffer.
    pub(super) fn texel_buffer(&mut self, expr: &'a ast::Expr, range: TextRange) -> Option<Buffer> {
        let buffer = self.buffer(expr)?;
        if !buffer.is_texel_buffer() {
            let message = format!("`{buffer}` is not a texture of rows, columns and channels");
            let help = "make it with `T.texture2d_alloca`, or as a (height, width, 4) buffer in a texture scope with \
                axis_separators=[1, 2]";
            return self.error("texture-buffer", range, message, help);
        }
        Some(buffer)
    }

    /// Reads a scalar integer; `what` names it in errors.
    pub(super) fn scalar_index(&mut self, expr: &'a ast::Expr, what: &str) -> Option<Expr> {
        let index = self.expr(expr)?;
        let ty = index.dtype();
        if ty.is_scalar() && ty.scalar.is_integer() {
            return Some(index);
        }
        self.error(
            "type",
            expr.range(),
            format!("the {what} `{index}` has the type {ty}"),
            "it must be a scalar integer",
        )
    }
}

/// The number of channels of a texel buffer.
pub(super) fn channels_of(buffer: &Buffer) -> u16 {
    buffer.channels().unwrap_or(CHANNELS)
}
