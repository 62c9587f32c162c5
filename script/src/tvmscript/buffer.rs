//! Declarations of buffers.
//!
//! All declarations take the arguments of [`PARAMS`]:
//!
//! | argument | meaning | default |
//! |---|---|---|
//! | `shape` | extents in elements: a tuple, a list or one expression | required |
//! | `dtype` | the element type, such as `"float32x4"` | `"float32"` |
//! | `data` | the memory, such as `A.data` | new memory |
//! | `strides` | distances in elements, one per axis | row-major |
//! | `elem_offset` | the position of the first element in the memory, in elements | 0 |
//! | `scope` | the storage scope, such as `"local"` | `"global"` |
//! | `axis_separators` | the number of axes before each separator, in the layout after all transformations | none |
//! | `align` | a promise that nothing relies on | |
//! | `offset_factor` | 1 without `elem_offset`, of a parameter: the caller gives the position of the first element. TVM prints this so | 0 |
//! | `buffer_type` | accepted only with the value that has no effect | |

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{AxisSeparators, Buffer, BufferInfo, DataType, Expr, IndexMap, ScalarType, Scope, Var};

use super::args::BoundArgs;
use super::promote::Value;
use super::reader::{Binding, Reader, sequence, string};
use crate::index_map::physical_shape;
use crate::source::span;

/// The parameters of every declaration, in TVM's order.
pub(super) const PARAMS: &[&str] = &[
    "shape",
    "dtype",
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
    "buffer_type",
    "axis_separators",
];

/// The arguments of a declaration, by TVM's names.
#[derive(Default)]
pub(super) struct Declaration<'a> {
    pub(super) shape: Option<&'a ast::Expr>,
    pub(super) dtype: Option<&'a ast::Expr>,
    pub(super) data: Option<&'a ast::Expr>,
    pub(super) strides: Option<&'a ast::Expr>,
    pub(super) elem_offset: Option<&'a ast::Expr>,
    pub(super) scope: Option<&'a ast::Expr>,
    pub(super) align: Option<&'a ast::Expr>,
    pub(super) offset_factor: Option<&'a ast::Expr>,
    pub(super) buffer_type: Option<&'a ast::Expr>,
    pub(super) axis_separators: Option<&'a ast::Expr>,
}

impl<'a> Declaration<'a> {
    /// Takes the arguments from a call whose parameters are `skip` others followed by [`PARAMS`].
    pub(super) fn new(args: &BoundArgs<'a>, skip: usize) -> Self {
        Self {
            shape: args.get(skip),
            dtype: args.get(skip + 1),
            data: args.get(skip + 2),
            strides: args.get(skip + 3),
            elem_offset: args.get(skip + 4),
            scope: args.get(skip + 5),
            align: args.get(skip + 6),
            offset_factor: args.get(skip + 7),
            buffer_type: args.get(skip + 8),
            axis_separators: args.get(skip + 9),
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads the arguments of `T.decl_buffer(...)`. An example of RFC 63 passes the data variable first; that order
    /// is accepted too.
    pub(super) fn declaration(&mut self, call: &'a ast::ExprCall, name: &str) -> Option<Declaration<'a>> {
        let data_first = call.arguments.args.first().is_some_and(is_data_attribute);
        if data_first {
            let params = ["data", "shape", "dtype"];
            let rest = ["strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators"];
            let params: Vec<_> = params.into_iter().chain(rest).collect();
            let args = self.bind_args(call, name, &params, 2)?;
            let mut declaration = Declaration::new(&args, 0);
            (declaration.data, declaration.shape, declaration.dtype) = (args.get(0), args.get(1), args.get(2));
            return Some(declaration);
        }
        if ["alloc_buffer", "alloc_local", "alloc_shared"].contains(&name) {
            // Hints for later passes of TVM. They are read, for their errors, and dropped, as those of `T.allocate`.
            let params: Vec<_> = PARAMS.iter().copied().chain(["annotations"]).collect();
            let args = self.bind_args(call, name, &params, 1)?;
            self.annotations(args.get(PARAMS.len()))?;
            return Some(Declaration::new(&args, 0));
        }
        let args = self.bind_args(call, name, PARAMS, 1)?;
        Some(Declaration::new(&args, 0))
    }

    /// Creates the buffer of a declaration. Without `data` it has a new data variable. With `extents_may_be_new`, as
    /// in a parameter, unknown names in the shape are symbolic extents.
    pub(super) fn declare(
        &mut self,
        name: &str,
        declaration: &Declaration<'a>,
        range: TextRange,
        extents_may_be_new: bool,
    ) -> Option<Buffer> {
        // Only shape, strides and offset may introduce symbolic extents; an unknown name elsewhere is an error.
        let outer = std::mem::replace(&mut self.free_names, extents_may_be_new);
        let shape = declaration.shape.map(|shape| self.extents_of(shape, extents_may_be_new));
        let strides = declaration.strides.map(|strides| self.extents_of(strides, extents_may_be_new));
        let elem_offset = declaration.elem_offset.map(|offset| self.expr(offset));
        self.free_names = outer;
        let dtype = declaration.dtype.map_or(Some(DataType::scalar(ScalarType::Float32)), |dtype| self.dtype(dtype));
        let scope = declaration.scope.map_or(Some(Scope::Global), |scope| self.scope(scope));
        let data = declaration.data.map(|data| self.data(data));
        // Everything was read before the first `?`, so that one run reports the errors of all arguments.
        self.refuse_layout_hints(declaration)?;
        let (shape, dtype, scope) = (shape??, dtype?, scope?);
        let shape: Vec<_> = shape.iter().map(|extent| self.without_lets(extent)).collect();
        let strides = strides.map_or(Some(None), |strides| strides.map(Some))?.filter(|strides| !strides.is_empty());
        let elem_offset = match elem_offset {
            Some(offset) => offset?,
            None => self.implicit_offset(name, declaration, extents_may_be_new)?,
        };
        let data = data.unwrap_or_else(|| Some(Var::new(name, DataType::HANDLE)))?;
        let rank = self.final_rank(name, &data, &shape)?;
        let map_separators = self.separators.iter().find(|(key, _)| key == name).map(|(_, positions)| *positions);
        let axis_separators = match declaration.axis_separators.or(map_separators) {
            Some(positions) => self.axis_separators(positions, rank)?,
            None => AxisSeparators::none(rank),
        };
        let info = BufferInfo {
            name: name.to_owned(),
            dtype,
            shape,
            strides,
            elem_offset,
            axis_separators,
            scope,
            data,
            span: Some(span(range)),
        };
        Some(Buffer::new(info))
    }

    /// Returns the rank of a buffer's layout after all transformations that the function's attributes request.
    pub(super) fn final_rank(&mut self, name: &str, data: &Var, shape: &[Expr]) -> Option<usize> {
        let rank = self.rank_after_maps(name, data, shape)?;
        self.rank_after_tiles(name, data, rank)
    }

    /// The position of the first element of a buffer whose declaration does not state it.
    fn implicit_offset(&mut self, name: &str, declaration: &Declaration<'a>, may_be_new: bool) -> Option<Expr> {
        let factor = match declaration.offset_factor {
            Some(given) => self.expr(given)?.as_const_int(),
            None => Some(0),
        };
        match (factor, declaration.offset_factor) {
            (Some(0), _) | (_, None) => Some(Expr::int(0)),
            (_, Some(given)) if !may_be_new => {
                let message = format!(
                    "nothing says where the first element of `{name}` is: `offset_factor` without `elem_offset`"
                );
                self.error("unsupported", given.range(), message, "leave `offset_factor` out, or write `elem_offset`")
            }
            _ => {
                let mut offset = format!("{name}_elem_offset");
                while self.lookup(&offset).is_some() {
                    offset.push('_');
                }
                Some(Expr::from(&self.symbols.get(&offset)))
            }
        }
    }

    /// Accepts `offset_factor` and `buffer_type` only with values that the language has a counterpart for.
    fn refuse_layout_hints(&mut self, declaration: &Declaration<'a>) -> Option<()> {
        // Of memory that is aligned more is promised than anything here relies on.
        if let Some(given) = declaration.align
            && self.expr(given)?.as_const_int().is_none()
        {
            return self.error("unsupported", given.range(), "`align` is a constant", "leave it out");
        }
        if let Some(given) = declaration.offset_factor
            && !matches!(self.expr(given)?.as_const_int(), Some(0 | 1))
        {
            let message = "`offset_factor` is supported only with TVM's default value";
            return self.error("unsupported", given.range(), message, "leave `offset_factor` out");
        }
        if let Some(given) = declaration.buffer_type
            && !string(given).is_some_and(|ty| ty.is_empty() || ty == "default")
        {
            let help = "leave it out; broadcasting is written by indices";
            return self.error("unsupported", given.range(), "only the default `buffer_type` is supported", help);
        }
        Some(())
    }

    /// Reads extents: a tuple, a list or a single expression.
    pub(crate) fn shape(&mut self, shape: &'a ast::Expr) -> Option<Vec<Expr>> {
        let parts = sequence(shape).unwrap_or(std::slice::from_ref(shape));
        self.exprs(parts)
    }

    /// Reads the shape of a declaration. In that of a parameter a symbolic extent may be in quotes, `("n", 4)`. The module
    /// `quoted` has replaced the quoted expressions that are not names.
    fn extents_of(&mut self, shape: &'a ast::Expr, may_be_quoted: bool) -> Option<Vec<Expr>> {
        let parts = sequence(shape).unwrap_or(std::slice::from_ref(shape));
        let read: Vec<_> = parts
            .iter()
            .map(|part| match string(part) {
                Some(name) if may_be_quoted => self.quoted_extent(name, part.range()),
                _ => self.expr(part),
            })
            .collect();
        read.into_iter().collect()
    }

    /// Reads a symbolic extent in quotes.
    fn quoted_extent(&mut self, name: &str, range: TextRange) -> Option<Expr> {
        let starts_right = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if !starts_right || !name.chars().all(|part| part.is_ascii_alphanumeric() || part == '_') {
            let message = format!("\"{name}\" is not an extent");
            return self.error(
                "extent",
                range,
                message,
                "in quotes stands a name or an expression: `\"n\"`, `\"n + 2\"`",
            );
        }
        match self.lookup(name) {
            None => Some(Expr::from(&self.symbols.get(name))),
            Some(Binding::Value(value)) => Some(value.clone()),
            Some(Binding::Failed) => None,
            Some(_) => {
                let message = format!("`{name}` is not a number");
                self.error("not-a-value", range, message, "an extent is a constant, a scalar parameter or a new name")
            }
        }
    }

    /// Reads a storage scope.
    pub(super) fn scope(&mut self, expr: &'a ast::Expr) -> Option<Scope> {
        let text = string(expr).unwrap_or("?");
        if let Ok(scope) = text.parse() {
            Some(scope)
        } else {
            let names = Scope::ALL.map(Scope::name);
            let help = format!("scopes are {}", names.join(", "));
            self.error("unknown-scope", expr.range(), format!("`{text}` is not a storage scope"), help)
        }
    }

    /// Reads a data variable: `A.data`, or the result of `T.allocate`.
    pub(super) fn data(&mut self, expr: &'a ast::Expr) -> Option<Var> {
        if is_data_attribute(expr)
            && let ast::Expr::Attribute(attribute) = expr
        {
            return self.buffer(&attribute.value).map(|buffer| buffer.data.clone());
        }
        if let ast::Expr::Name(name) = expr
            && let Some(Binding::Pointer(buffer)) = self.lookup(&name.id)
        {
            return Some(buffer.data.clone());
        }
        if self.is_failed(expr) {
            return None;
        }
        if let ast::Expr::Name(name) = expr
            && let Some(Binding::Handle(_)) = self.lookup(&name.id)
        {
            let message = format!("no buffer is declared in the memory of the parameter `{}` yet", name.id);
            let help = "declare it at the start of the function, `A = T.decl_buffer((64,), data=A_ptr)`";
            return self.error("data", expr.range(), message, help);
        }
        self.error(
            "data",
            expr.range(),
            "expected the memory of a buffer",
            "such as `A.data`, or what `T.allocate` gave",
        )
    }

    /// Reads the separators of a layout of rank `rank`. They are constants.
    fn axis_separators(&mut self, expr: &'a ast::Expr, rank: usize) -> Option<AxisSeparators> {
        let parts = self.shape(expr)?;
        let positions: Option<Vec<usize>> =
            parts.iter().map(|part| part.as_const_int().and_then(|at| usize::try_from(at).ok())).collect();
        match positions.map(|positions| AxisSeparators::new(positions, rank)) {
            Some(Ok(separators)) => Some(separators),
            Some(Err(error)) => {
                let help = "a separator is the number of axes before it, in the final layout";
                self.error("axis-separators", expr.range(), error.to_string(), help)
            }
            None => self.error("axis-separators", expr.range(), "axis separators are constants", "such as `[1]`"),
        }
    }

    /// Returns the rank after the maps of `layout_transform_map`. At the first declaration on their memory the maps
    /// are read, because only now the domain of the first one is known.
    fn rank_after_maps(&mut self, name: &str, data: &Var, shape: &[Expr]) -> Option<usize> {
        let known = self.maps.iter().find_map(|map| map.resolved.as_ref().filter(|(var, _)| var == data));
        if let Some((_, maps)) = known {
            return Some(maps.last().map_or(shape.len(), |map| map.outputs().len()));
        }
        let Some(at) = self.maps.iter().position(|map| map.key == name && map.resolved.is_none()) else {
            return Some(shape.len());
        };
        let mut maps: Vec<IndexMap> = Vec::new();
        for expr in self.maps[at].maps.clone() {
            let domain = match maps.last() {
                None => Some(shape.to_vec()),
                Some(before) => physical_shape(before),
            };
            maps.push(self.index_map(expr, domain)?);
        }
        let rank = maps.last().map_or(shape.len(), |map| map.outputs().len());
        self.maps[at].resolved = Some((data.clone(), maps));
        Some(rank)
    }

    /// Returns the rank after the `tile_layout` of the memory, which is applied to a layout of `rank` axes. The
    /// request is read at the first declaration on its memory.
    fn rank_after_tiles(&mut self, name: &str, data: &Var, rank: usize) -> Option<usize> {
        let known = self.tiles.iter().find_map(|tile| tile.resolved.as_ref().filter(|(var, _)| var == data));
        if let Some((_, request)) = known {
            return Some(request.physical_rank());
        }
        let Some(at) = self.tiles.iter().position(|tile| tile.key == name && tile.resolved.is_none()) else {
            return Some(rank);
        };
        let request = self.tile_request(self.tiles[at].value, rank)?;
        let rank = request.physical_rank();
        self.tiles[at].resolved = Some((data.clone(), request));
        Some(rank)
    }

    /// Reads an expression and converts it to type `ty`.
    pub(super) fn value_in(&mut self, expr: &'a ast::Expr, ty: DataType) -> Option<Expr> {
        let value: Value = self.value(expr)?;
        self.coerce(value, ty, expr.range())
    }
}

/// Returns whether an expression has the form `A.data`.
fn is_data_attribute(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Attribute(attribute) if attribute.attr.as_str() == "data")
}
