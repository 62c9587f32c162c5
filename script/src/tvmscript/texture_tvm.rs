//! TVM's own spellings of texture accesses, as its printer writes a lowered program.
//!
//! ```python
//! X: T.handle("float32", "global.texture") = T.nd_mem_alloc_with_scope("global.texture", T.int64(2), T.tvm_stack_make_shape(9, 35))
//! T.texture2d_store(X, j, i, A[i, j, 0:4])                                             # X, x, y, value
//! B[i, j, 0:4] = T.texture2d_load(X, j, i, T.Ramp(0, 1, 4))                            # X, x, y, lane
//! C[i, j] = T.call_intrin("float32", "tir.texture2d_load", X, j, i, 3)
//! ```
//!
//! By position the coordinates are (x, y), which is the column first, and the shape of the memory is its width first. Newer
//! releases add a layer and the bits of a texel before the last argument; there is one layer here.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::texture::{CHANNELS, is_whole_texel, whole_texel};
use tilewright_ir::{Buffer, Expr, Stmt, StmtKind};

use super::reader::{Reader, string};
use super::texture::channels_of;

/// A builtin that is called by name, or by `T.call_intrin`.
#[derive(Clone, Copy)]
pub(super) struct Intrinsic<'a> {
    /// The name without its namespace, such as `texture2d_load`.
    pub(super) name: &'a str,
    /// The arguments by position.
    pub(super) args: &'a [ast::Expr],
    /// The type of the result, where it is stated.
    ty: Option<&'a ast::Expr>,
    range: TextRange,
}

/// The memory of a texture.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    /// Scope, rank, shape, and in newer releases the bits of a texel.
    args: &'a [ast::Expr],
    /// The type of a channel.
    ty: &'a ast::Expr,
    range: TextRange,
}

/// The place of a texel, and the argument behind it.
struct Texel<'a> {
    buffer: Buffer,
    row: Expr,
    column: Expr,
    last: &'a ast::Expr,
}

impl<'a> Reader<'a> {
    /// The texture builtin that a call names by `T.call_intrin("float32x4", "tir.texture2d_load", ...)`, or directly with
    /// coordinates by position; `None` for other calls.
    pub(super) fn positional_texture(&self, call: &'a ast::ExprCall) -> Option<Intrinsic<'a>> {
        let (args, range) = (&call.arguments.args[..], call.range());
        let keywords = &call.arguments.keywords;
        let found = match self.callee(&call.func)? {
            "call_intrin" | "call_pure_intrin" => {
                let [ty, op, args @ ..] = args else { return None };
                let name = self.intrinsic_name(op)?;
                Intrinsic { name: name.rsplit('.').next()?, args, ty: Some(ty), range }
            }
            name => {
                // Releases before 0.9 print the type of a call as `dtype=`.
                let is_type = |keyword: &&ast::Keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == "dtype");
                let ty = keywords.iter().find(is_type).map(|keyword| &keyword.value);
                if keywords.len() > usize::from(ty.is_some()) {
                    return None;
                }
                Intrinsic { name, args, ty, range }
            }
        };
        let is_texture = matches!(found.name, "texture2d_load" | "texture2d_store");
        // A load by position has a lane: TVM always states it, and (buffer, row, column) would be another order.
        (is_texture && matches!(found.args.len(), 4 | 6)).then_some(found)
    }

    /// The name in `"tir.texture2d_load"` or `tvm.ir.Op.get("tir.texture2d_load")`.
    fn intrinsic_name(&self, op: &'a ast::Expr) -> Option<&'a str> {
        match op {
            ast::Expr::Call(call) if call.arguments.keywords.is_empty() => match &call.arguments.args[..] {
                [name] if self.callee(&call.func).is_none_or(|callee| callee == "get") => string(name),
                _ => None,
            },
            op => string(op),
        }
    }

    /// Reads a load with coordinates by position.
    pub(super) fn texture_load_at(&mut self, call: Intrinsic<'a>) -> Option<Expr> {
        let Texel { buffer, row, column, last } = self.texel(call)?;
        let lane = self.expr(last)?;
        let ty = lane.dtype();
        let channels = channels_of(&buffer);
        let is_one = ty.is_scalar() && ty.scalar.is_integer();
        if !(is_one || is_whole_texel(&lane, channels)) {
            let message = format!("`{lane}` is neither one channel of a texel nor all {channels}");
            let help = format!("one index, or `T.Ramp(0, 1, {channels})`");
            return self.error("type", last.range(), message, &help);
        }
        let load = Expr::load(&buffer, vec![row, column, lane]);
        if let Some(stated) = call.ty {
            let ty = self.dtype(stated)?;
            if ty != load.dtype() {
                let message = format!("the texture has {}, not {ty}", load.dtype());
                return self.error("type", stated.range(), message, "state the type of the texture's elements");
            }
        }
        Some(load)
    }

    /// Reads a store with coordinates by position. The value has a lane for each channel.
    pub(super) fn texture_store_at(&mut self, call: Intrinsic<'a>) -> Option<Stmt> {
        let Texel { buffer, row, column, last } = self.texel(call)?;
        let value = self.texel_value(&buffer, last)?;
        let whole = whole_texel(channels_of(&buffer));
        Some(Stmt::new(StmtKind::Store { buffer, indices: vec![row, column, whole], value }))
    }

    /// Reads the place of an access `(buffer, x, y, last)` or `(buffer, x, y, layer, bits, last)`.
    fn texel(&mut self, call: Intrinsic<'a>) -> Option<Texel<'a>> {
        let [buffer, x, y, .., last] = call.args else { return None };
        let buffer = match buffer {
            ast::Expr::Attribute(attribute) if attribute.attr.as_str() == "data" => &*attribute.value,
            other => other,
        };
        let buffer = self.texel_buffer(buffer, call.range);
        let (column, row) = (self.scalar_index(x, "x coordinate"), self.scalar_index(y, "y coordinate"));
        let buffer = buffer?;
        if let [_, _, _, layer, bits, _] = call.args {
            self.only_layer(layer)?;
            let texel = i128::from(buffer.dtype.scalar.bits()) * i128::from(channels_of(&buffer));
            let stated = self.expr(bits)?;
            if stated.as_const_int() != Some(texel) {
                let message = format!("a texel of the texture has {texel} bits, not {stated}");
                return self.error("texture-type", bits.range(), message, "all channels of the texture's type");
            }
        }
        Some(Texel { buffer, row: row?, column: column?, last })
    }

    /// Reports a layer other than the first one.
    fn only_layer(&mut self, layer: &'a ast::Expr) -> Option<()> {
        let read = self.expr(layer)?;
        if read.as_const_int() == Some(0) {
            return Some(());
        }
        let help = "give the program before TVM lowers textures, with `T.alloc_buffer(..., scope=\"global.texture\")`";
        self.error("unsupported", layer.range(), format!("layer {read}: a texture has one layer here"), help)
    }

    /// The memory of a texture that a value is, in `name: T.handle("float32", "global.texture") = T.nd_mem_alloc_with_scope(...)`.
    /// `None` if the value is another one, or the annotation states no type.
    pub(super) fn texture_memory(&self, annotation: &'a ast::Expr, value: &'a ast::Expr) -> Option<Memory<'a>> {
        let ast::Expr::Call(call) = value else { return None };
        let args = match self.callee(&call.func)? {
            "nd_mem_alloc_with_scope" => &call.arguments.args[..],
            "call_intrin" => match &call.arguments.args[..] {
                [_, op, args @ ..] if self.intrinsic_name(op)?.ends_with("nd_mem_alloc_with_scope") => args,
                _ => return None,
            },
            _ => return None,
        };
        let ast::Expr::Call(handle) = annotation else { return None };
        Some(Memory { args, ty: handle.arguments.args.first()?, range: call.range() })
    }

    /// Reads the arguments of `T.nd_mem_alloc_with_scope(scope, rank, T.tvm_stack_make_shape(width, height))`; newer releases
    /// add the number of layers and the bits of a texel.
    pub(super) fn memory_of(&mut self, name: &str, memory: Memory<'a>) -> Option<Buffer> {
        let Memory { args, ty, range } = memory;
        let shape = args.get(2).and_then(|shape| match shape {
            ast::Expr::Call(call) if self.callee(&call.func) == Some("tvm_stack_make_shape") => Some(call),
            _ => None,
        });
        let extents = shape.map(|shape| &shape.arguments.args[..]);
        let (Some(scope), Some([width, height, layers @ ..])) = (args.first(), extents) else {
            let help =
                "`T.nd_mem_alloc_with_scope(\"global.texture\", T.int64(2), T.tvm_stack_make_shape(width, height))`";
            return self.error(
                "texture-memory",
                range,
                "the memory of a texture has a scope, a rank and a shape",
                help,
            );
        };
        for layers in layers {
            let read = self.expr(layers)?;
            if read.as_const_int() != Some(1) {
                let help =
                    "give the program before TVM lowers textures, with `T.alloc_buffer(..., scope=\"global.texture\")`";
                let message = format!("{read} layers: a texture has one layer here");
                return self.error("unsupported", layers.range(), message, help);
            }
        }
        let (height, width) = (self.scalar_index(height, "height"), self.scalar_index(width, "width"));
        self.texels(name, [height?, width?, Expr::int(CHANNELS.into())], ty, Some(scope), range)
    }
}
