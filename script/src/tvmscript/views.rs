//! Views of a buffer, and what its declaration states.
//!
//! | notation | meaning |
//! |---|---|
//! | `X = A.view(4, 4)` | the memory of `A` with another shape, row-major, from the first element of `A` |
//! | `X = A.view(-1, 4)` | the same; one extent may follow from the others, if all are constants |
//! | `A.shape[0]` | an extent |
//! | `A.strides[0]` | a distance in elements, if the declaration states strides |
//! | `A.elem_offset` | the position of the first element in the memory, in elements |
//!
//! A view with another type is written as a declaration, `X = T.decl_buffer((16,), "int32", data=A.data)`.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{AxisSeparators, Buffer, Expr};

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
        if let Some(text) = args.iter().find(|arg| matches!(arg, ast::Expr::StringLiteral(_))) {
            return self.error("unsupported", text.range(), "a view with another type is not read", help);
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
        let shape: Vec<Expr> = self.exprs(args)?.iter().map(|extent| self.without_lets(extent)).collect();
        let shape = self.view_shape(&source, shape, call.range())?;
        let rank = self.final_rank(name, &source.data, &shape)?;
        let view = source.with(|info| {
            name.clone_into(&mut info.name);
            info.shape = shape;
            info.axis_separators = AxisSeparators::none(rank);
            info.span = Some(span(call.range()));
        });
        self.bind(name, Binding::Buffer(view.clone()));
        Some(declare(view))
    }

    /// Returns the shape of a view of `source`, with the extent that is given as -1 computed from the others. Constant
    /// shapes have as many elements as the buffer.
    fn view_shape(&mut self, source: &Buffer, mut shape: Vec<Expr>, range: TextRange) -> Option<Vec<Expr>> {
        let help = "a view has as many elements as the buffer; one extent may be -1 if all others are constants";
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
        let same = product(&shape).zip(total).is_none_or(|(view, total)| view == total);
        if same && open.len() <= 1 {
            return Some(shape);
        }
        self.error("rank", range, format!("the view has another number of elements than `{source}`"), help)
    }

    /// Reads `A.elem_offset`. Other attributes have no value.
    pub(super) fn buffer_property(&mut self, attribute: &'a ast::ExprAttribute) -> Option<Expr> {
        if let ast::Expr::Name(name) = &*attribute.value {
            match self.lookup(&name.id) {
                Some(Binding::Buffer(buffer)) if attribute.attr.as_str() == "elem_offset" => {
                    return Some(buffer.elem_offset.clone());
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
        let buffer = self.buffer(&attribute.value)?;
        let values = match (property, &buffer.strides) {
            (AxisProperty::Shape, _) => &buffer.shape,
            (AxisProperty::Strides, Some(strides)) => strides,
            (AxisProperty::Strides, None) => {
                let message = format!("`{buffer}` is declared without strides");
                let help = "it is row-major: write the product of the extents of the axes after";
                return self.error("attribute", attribute.range(), message, help);
            }
        };
        self.index_at(values, axis)
    }
}
