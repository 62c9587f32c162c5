//! Functions and modules.

use std::collections::HashSet;

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::index_map::IndexMap;
use crate::stmt::{AttrValue, Stmt, StmtKind};
use crate::texture::TextureLimits;
use crate::tile::TileRequest;
use crate::var::Var;

/// A function over buffers (TVM's `PrimFunc`).
#[derive(Clone, Debug)]
pub struct PrimFunc {
    /// Its name.
    pub name: String,
    /// The parameters in order: handles of buffers, and scalars.
    pub params: Vec<Var>,
    /// How each handle among the parameters is to be read: the calling convention, which flattening does not change
    /// (RFC 63, "Removing pre-flattened buffer"). In the order of the parameters.
    ///
    /// Variables in the shapes that are no parameters are the symbolic extents: bound by the argument's shape, each an
    /// integer of at least 1.
    pub buffer_map: Vec<(Var, Buffer)>,
    /// Attributes.
    pub attrs: FuncAttrs,
    /// What it does.
    pub body: Stmt,
}

/// Attributes of a function.
#[derive(Clone, Debug, Default)]
pub struct FuncAttrs {
    /// `layout_transform_map` of RFC 39: for a data variable, the transformations to apply to every buffer on it, one
    /// after the other. `apply_buffer_transforms` removes it.
    pub layout_transform_map: Vec<(Var, Vec<IndexMap>)>,
    /// `tile_layout`: for a data variable, the XLA layout that every buffer on it is to have, after its transformations.
    /// The pass of that name removes it.
    pub tile_layout: Vec<(Var, TileRequest)>,
    /// The largest texture of the device that the function is lowered for (attribute `texture_limits`, `"16384x16384"`);
    /// none while nobody said.
    pub texture_limits: Option<TextureLimits>,
    /// All others, in the order given.
    pub other: Vec<(String, AttrValue)>,
}

/// Functions in a file, in order.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The functions; names are unique.
    pub funcs: Vec<PrimFunc>,
}

impl FuncAttrs {
    /// Axes of the layout that buffers on `data` come to, from a shape of `rank` axes.
    pub fn final_rank(&self, data: &Var, rank: usize) -> usize {
        if let Some((_, request)) = self.tile_layout.iter().find(|(var, _)| var == data) {
            return request.physical_rank();
        }
        let transforms = self.layout_transform_map.iter().find(|(var, _)| var == data);
        transforms.and_then(|(_, maps)| maps.last()).map_or(rank, |map| map.outputs().len())
    }
}

impl PrimFunc {
    /// The buffer that a parameter stands for.
    pub fn param_buffer(&self, param: &Var) -> Option<&Buffer> {
        self.buffer_map.iter().find(|(var, _)| var == param).map(|(_, buffer)| buffer)
    }

    /// Every buffer: those of the parameters, then those declared, allocated or used in the body, each once.
    pub fn buffers(&self) -> Vec<Buffer> {
        let (mut buffers, mut known) = (Vec::new(), HashSet::new());
        let mut add = |buffer: &Buffer| {
            if known.insert(buffer.clone()) {
                buffers.push(buffer.clone());
            }
        };
        for (_, buffer) in &self.buffer_map {
            add(buffer);
        }
        self.body.walk(&mut |stmt| {
            match &stmt.kind {
                StmtKind::Allocate { buffer, .. }
                | StmtKind::DeclBuffer { buffer, .. }
                | StmtKind::Store { buffer, .. } => add(buffer),
                _ => {}
            }
            for expr in stmt.exprs() {
                expr.walk(&mut |expr| {
                    if let Expr::Load { buffer, .. } = expr {
                        add(buffer);
                    }
                });
            }
        });
        buffers
    }

    /// The symbolic extents: variables in the shapes, strides and offsets of the buffer map, each once, in order of
    /// appearance. Scalar parameters that appear there are among them.
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
    /// The function of that name.
    pub fn func(&self, name: &str) -> Option<&PrimFunc> {
        self.funcs.iter().find(|func| func.name == name)
    }
}
