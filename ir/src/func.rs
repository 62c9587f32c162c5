//! Functions, their attributes, and modules.

use std::collections::HashSet;

use crate::buffer::Buffer;
use crate::diag::Span;
use crate::expr::Expr;
use crate::index_map::IndexMap;
use crate::schedule::ScheduleStep;
use crate::stmt::{AttrValue, Stmt};
use crate::texture::TextureLimits;
use crate::tile::TileRequest;
use crate::var::Var;

/// A function over buffers and scalars (TVM's `PrimFunc`).
#[derive(Clone, Debug)]
pub struct PrimFunc {
    /// The name, unique in its module.
    pub name: String,
    /// The parameters in order: handles of buffers, and scalars.
    pub params: Vec<Var>,
    /// The buffer behind each handle among the parameters, in the order of the parameters. This is the calling
    /// convention, which flattening does not change (RFC 63, "Removing pre-flattened buffer").
    ///
    /// A variable that occurs in a shape and is not a parameter is a symbolic extent. The shape of the argument binds
    /// it, to an integer of at least 1.
    pub buffer_map: Vec<(Var, Buffer)>,
    /// The attributes.
    pub attrs: FuncAttrs,
    /// The body.
    pub body: Stmt,
}

/// The attributes of a function.
#[derive(Clone, Debug, Default)]
pub struct FuncAttrs {
    /// `layout_transform_map` of RFC 39: for a data variable, the index maps to apply to every buffer on it, one
    /// after the other. The pass `apply_buffer_transforms` removes the attribute.
    pub layout_transform_map: Vec<(Var, Vec<IndexMap>)>,
    /// `tile_layout`: for a data variable, the XLA layout to apply to every buffer on it after its index maps. The
    /// pass `tile_layout` removes the attribute.
    pub tile_layout: Vec<(Var, TileRequest)>,
    /// `schedule`: primitives to apply, in this order, before everything else: `["split=i:4", "unroll=i_inner"]`. The pass
    /// of each primitive removes its steps.
    pub schedule: Vec<ScheduleStep>,
    /// The largest texture that the target device supports (attribute `texture_limits`, such as `"16384x16384"`).
    /// `None` if the function is not tied to a device.
    pub texture_limits: Option<TextureLimits>,
    /// Integers of the call that are extents, of at least 1, although no shape says so: a pass that changes the layout of
    /// all buffers with an extent keeps it here. In a text: `T.func_attr({"extents": [n, m]})`.
    pub extents: Vec<Var>,
    /// Where the source text asks for the layout of a data variable. Diagnostics point there; nothing else reads it.
    pub layout_spans: Vec<(Var, Span)>,
    /// All other attributes, in source order.
    pub other: Vec<(String, AttrValue)>,
}

/// The functions of a file, in source order.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The functions; their names are unique.
    pub funcs: Vec<PrimFunc>,
}

impl FuncAttrs {
    /// Returns the number of axes of a buffer on `data`, with a shape of `rank` axes, after all its layout
    /// transformations.
    pub fn final_rank(&self, data: &Var, rank: usize) -> usize {
        if let Some((_, request)) = self.tile_layout.iter().find(|(var, _)| var == data) {
            return request.physical_rank();
        }
        let transforms = self.layout_transform_map.iter().find(|(var, _)| var == data);
        transforms.and_then(|(_, maps)| maps.last()).map_or(rank, |map| map.outputs().len())
    }
}

impl PrimFunc {
    /// Returns where the source text asks for the layout of a buffer, or else where it declares the buffer; `None` for a
    /// buffer that no text declares.
    pub fn layout_span(&self, buffer: &Buffer) -> Option<Span> {
        let asked = self.attrs.layout_spans.iter().find(|(data, _)| *data == buffer.data);
        asked.map(|(_, span)| *span).or(buffer.span)
    }

    /// Returns the buffer of a handle parameter, and `None` for a scalar parameter.
    pub fn param_buffer(&self, param: &Var) -> Option<&Buffer> {
        self.buffer_map.iter().find(|(var, _)| var == param).map(|(_, buffer)| buffer)
    }

    /// Returns every buffer once: the buffers of the parameters, then those declared, allocated or accessed in the
    /// body, in program order.
    pub fn buffers(&self) -> Vec<Buffer> {
        // Buffers are equal only if they are one object, so two declarations of one shape are two buffers.
        let mut known = HashSet::new();
        let all = self.buffer_map.iter().map(|(_, buffer)| buffer.clone()).chain(self.body.buffers());
        all.filter(|buffer| known.insert(buffer.clone())).collect()
    }

    /// Returns the symbolic extents: the variables that stand alone as an extent in the shape of a parameter, and those of
    /// [`FuncAttrs::extents`]; each once, in order of appearance. A call needs at least 1 of each; no other variable has
    /// that guarantee.
    ///
    /// ```text
    /// A: (n, m + 1), elem_offset=k     n is an extent; m and k are scalars, of any value of their type
    /// ```
    pub fn extents(&self) -> Vec<Var> {
        let alone = self.buffer_map.iter().flat_map(|(_, buffer)| &buffer.shape).filter_map(|extent| match extent {
            Expr::Var(var) => Some(var),
            _ => None,
        });
        let mut extents: Vec<Var> = Vec::new();
        for var in alone.chain(&self.attrs.extents) {
            if !extents.contains(var) {
                extents.push(var.clone());
            }
        }
        extents
    }

    /// Returns the integers of a call that are no extents, each once: the scalar parameters, and the variables that occur
    /// only in strides, offsets or inside the expression of an extent. Each may have any value of its type.
    pub fn scalars(&self) -> Vec<Var> {
        let extents = self.extents();
        let is_param = |var: &&Var| self.param_buffer(var).is_none();
        let mut scalars: Vec<Var> = Vec::new();
        for var in self.params.iter().filter(is_param).chain(&self.symbols()) {
            if !extents.contains(var) && !scalars.contains(var) {
                scalars.push(var.clone());
            }
        }
        scalars
    }

    /// Returns the variables in the shapes, strides and offsets of the buffer map, each once, in order of appearance.
    /// These are the symbolic extents ([`PrimFunc::extents`]), and scalars that occur there ([`PrimFunc::scalars`]).
    pub fn symbols(&self) -> Vec<Var> {
        let (mut symbols, mut known) = (Vec::new(), HashSet::new());
        for (_, buffer) in &self.buffer_map {
            let strides = buffer.strides.iter().flatten();
            for expr in buffer.shape.iter().chain(strides).chain(std::iter::once(&buffer.elem_offset)) {
                expr.walk(&mut |part| {
                    if let Expr::Var(var) = part
                        && known.insert(var.clone())
                    {
                        symbols.push(var.clone());
                    }
                });
            }
        }
        symbols
    }
}

impl Module {
    /// Returns the function with this name.
    pub fn func(&self, name: &str) -> Option<&PrimFunc> {
        self.funcs.iter().find(|func| func.name == name)
    }
}
