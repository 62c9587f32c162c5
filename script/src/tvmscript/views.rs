//! Views of a buffer, and what its declaration states.
//!
//! | notation | meaning |
//! |---|---|
//! | `X = A.view(4, 4)` | the memory of `A` with another shape, row-major, from the first element of `A` |
//! | `X = A.view(-1, 4)` | the same; one extent may follow from the others, if all are constants |
//! | `X = A.view(12)` | the first 12 elements of `A`; release 0.27, where several buffers share the memory |
//! | `X = A.view("uint8")` | the memory of `A` with another type: the last extent changes as the size of an element does |
//! | `A.shape[0]` | an extent |
//! | `A.strides[0]` | a distance in elements, if the declaration states strides |
//! | `A.elem_offset` | the position of the first element in the memory, in elements |
//!
//! A part of a buffer, [`super::windows`], has these properties, too.
//!
//! A view with another type and another shape is written as a declaration, `X = T.decl_buffer((16,), "int32", data=A.data)`.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{AxisSeparators, Buffer, DataType, Expr, ScalarType};

use super::reader::{Binding, Reader};
use super::scopes::{ScopeWrapper, declare};
use crate::source::span;

/// A property of a buffer that has one value for each axis.
#[derive(Clone, Copy)]
pub(super) enum AxisProperty {
    /// `A.shape`.
    Shape,
    /// `A.strides`.
    Strides,
}

impl AxisProperty {
    /// Returns the property with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "shape" => Some(Self::Shape),
            "strides" => Some(Self::Strides),
            _ => None,
        }
    }
}

impl<'a> Reader<'a> {
    /// Returns whether a call is `A.view(...)`, where `A` is the name of a buffer or of one whose declaration has an error.
    pub(super) fn is_view(&self, call: &ast::ExprCall) -> bool {
        let ast::Expr::Attribute(attribute) = &*call.func else { return false };
        let ast::Expr::Name(name) = &*attribute.value else { return false };
        attribute.attr.as_str() == "view" && matches!(self.lookup(&name.id), Some(Binding::Buffer(_) | Binding::Failed))
    }

    /// Reads `name = A.view(4, 4)` and binds the name.
    pub(super) fn view(&mut self, name: &str, call: &'a ast::ExprCall) -> Option<ScopeWrapper> {
        let ast::Expr::Attribute(attribute) = &*call.func else { return None };
        let source = self.buffer(&attribute.value)?;
        let help = format!("write the shape, `{source}.view(4, 4)`, or `T.decl_buffer(..., data={source}.data)`");
        let args = &call.arguments.args;
        if let Some(keyword) = call.arguments.keywords.first() {
            return self.error("argument", keyword.range(), "a view has a shape and nothing else", help);
        }
        let is_type = |arg: &ast::Expr| matches!(arg, ast::Expr::StringLiteral(_));
        if let Some(text) = args.iter().find(|arg| is_type(arg) && args.len() > 1) {
            return self.error("argument", text.range(), "a view has another shape or another type, not both", help);
        }
        if args.is_empty() {
            return self.error("argument", call.range(), "the shape of the view is missing", help);
        }
        if source.strides.is_some() {
            let message = format!("`{source}` has strides, so its elements may not follow each other");
            return self.error("unsupported", call.range(), message, help);
        }
        if source.scope.is_texture() {
            let message = format!("`{source}` is a texture, whose texels do not follow each other");
            return self.error("unsupported", call.range(), message, help);
        }
        let (dtype, shape) = match &args[..] {
            [text] if is_type(text) => self.view_type(&source, text)?,
            extents => {
                let shape = self.exprs(extents)?.iter().map(|extent| self.without_lets(extent)).collect();
                (source.dtype, self.view_shape(&source, shape, call.range())?)
            }
        };
        let rank = self.final_rank(name, &source.data, &shape)?;
        let view = source.with(|info| {
            name.clone_into(&mut info.name);
            info.dtype = dtype;
            info.shape = shape;
            info.axis_separators = AxisSeparators::none(rank);
            info.span = Some(span(call.range()));
        });
        self.bind(name, Binding::Buffer(view.clone()));
        Some(declare(view))
    }

    /// Returns the type and the shape of a view of `source` with another type. As in TVM, a smaller type has so many more elements on
    /// the last axis, and a larger one so many fewer.
    fn view_type(&mut self, source: &Buffer, text: &'a ast::Expr) -> Option<(DataType, Vec<Expr>)> {
        let dtype = self.dtype(text)?;
        let help = format!("`T.decl_buffer(..., \"{dtype}\", data={source}.data)` states type, shape and offset");
        let mut shape = source.shape.clone();
        if dtype.scalar.bits() == source.dtype.scalar.bits() && dtype.lanes == source.dtype.lanes {
            return Some((dtype, shape));
        }
        let (old, new) = (i128::from(source.dtype.scalar.bits()), i128::from(dtype.scalar.bits()));
        // TVM keeps a `bool` in a byte. The reader leaves it out, as it leaves out vectors, whose lanes TVM does not count here.
        let is_number = |ty: DataType| ty.is_scalar() && ty.scalar != ScalarType::Bool;
        let is_plain = is_number(dtype) && is_number(source.dtype) && source.elem_offset.as_const_int() == Some(0);
        let scaled = |extent: &Expr| {
            let bits = extent.as_const_int()?.checked_mul(old)?;
            Expr::int_of(bits / new, extent.dtype().scalar).filter(|_| is_plain && bits % new == 0)
        };
        if let Some((extent, last)) = shape.last_mut().and_then(|last| Some((scaled(last)?, last))) {
            *last = extent;
            return Some((dtype, shape));
        }
        let message = format!("the elements of `{source}`, {}, are no whole number of {dtype}", source.dtype);
        self.error("unsupported", text.range(), message, help)
    }

    /// Returns the shape of a view of `source`, with the extent that is given as -1 computed from the others. Constant
    /// shapes have at most as many elements as the buffer.
    fn view_shape(&mut self, source: &Buffer, mut shape: Vec<Expr>, range: TextRange) -> Option<Vec<Expr>> {
        let help =
            "a view has the elements of the buffer or the first ones; one extent may be -1 if all others are constants";
        let product = |shape: &[Expr]| {
            shape.iter().try_fold(1_i128, |product, extent| product.checked_mul(extent.as_const_int()?))
        };
        let is_open = |extent: &Expr| extent.as_const_int() == Some(-1);
        let total = product(&source.shape);
        let open: Vec<usize> = (0..shape.len()).filter(|&axis| is_open(&shape[axis])).collect();
        if let [axis] = open[..] {
            shape[axis] = Expr::int(1);
            let rest = product(&shape).filter(|rest| *rest > 0);
            let extent = total.zip(rest).filter(|(total, rest)| total % rest == 0).map(|(total, rest)| total / rest);
            let Some(extent) = extent.and_then(|extent| i64::try_from(extent).ok()) else {
                return self.error("rank", range, "the extent given as -1 does not follow from the others", help);
            };
            shape[axis] = Expr::int(extent);
        }
        let fits = product(&shape).zip(total).is_none_or(|(view, total)| 0 <= view && view <= total);
        if fits && open.len() <= 1 {
            return Some(shape);
        }
        self.error("rank", range, format!("the view does not fit into the elements of `{source}`"), help)
    }

    /// Reads `A.elem_offset`. Other attributes have no value.
    pub(super) fn buffer_property(&mut self, attribute: &'a ast::ExprAttribute) -> Option<Expr> {
        if let ast::Expr::Name(name) = &*attribute.value {
            match self.lookup(&name.id).cloned() {
                Some(Binding::Buffer(buffer)) if attribute.attr.as_str() == "elem_offset" => {
                    return Some(buffer.elem_offset.clone());
                }
                Some(Binding::Window(window)) if attribute.attr.as_str() == "elem_offset" => {
                    let message = format!("`{}` is declared without an offset", name.id);
                    let help = "add `offset_factor=1` to `T.match_buffer`: the part then has the offset of its buffer";
                    return window.elem_offset.or_else(|| self.error("attribute", attribute.range(), message, help));
                }
                Some(Binding::Failed) => return None,
                _ => {}
            }
        }
        let message = format!("`.{}` has no value here", attribute.attr);
        self.error("attribute", attribute.range(), message, "values are names, `A[i]` and calls such as `T.exp(x)`")
    }

    /// Reads `A.shape[0]` or `A.strides[0]`.
    pub(super) fn axis_property(
        &mut self,
        attribute: &'a ast::ExprAttribute,
        property: AxisProperty,
        axis: &'a ast::Expr,
    ) -> Option<Expr> {
        let (shape, strides) = match &*attribute.value {
            ast::Expr::Name(name) if let Some(Binding::Window(window)) = self.lookup(&name.id) => {
                (window.extents.clone(), window.strides.clone())
            }
            name => {
                let buffer = self.buffer(name)?;
                (buffer.shape.clone(), buffer.strides.clone())
            }
        };
        let values = match (property, strides) {
            (AxisProperty::Shape, _) => shape,
            (AxisProperty::Strides, Some(strides)) => strides,
            (AxisProperty::Strides, None) => {
                let help = "it is row-major: write the product of the extents of the axes after";
                return self.error("attribute", attribute.range(), "the buffer is declared without strides", help);
            }
        };
        self.index_at(&values, axis)
    }
}
