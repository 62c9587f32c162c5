//! Constant arrays.
//!
//! ```python
//! c = T.allocate_const([1.0, 2.0], "float32", [2])       # also `with T.allocate_const(...) as c:`
//! c_1 = T.decl_buffer((2,), "float32", data=c)
//! B[i] = A[i] * c_1[i % 2]
//! ```
//!
//! is read as memory that is allocated there, and written before everything else:
//!
//! ```python
//! c = T.alloc_buffer((2,), "float32")
//! c[0] = T.float32(1)
//! c[1] = T.float32(2)
//! ```
//!
//! TVM lets no program write to a constant. Here it may, and the values are those that it wrote.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{Expr, Stmt, StmtKind};

use super::buffer::Declaration;
use super::reader::{Binding, Reader, sequence};
use super::scopes::ScopeWrapper;
use crate::source::span;

/// The greatest number of elements. Each is a statement.
const MAX_ELEMENTS: usize = 1024;

impl<'a> Reader<'a> {
    /// Reads `T.allocate_const(data, dtype, extents)`.
    pub(super) fn allocate_const(&mut self, name: &str, call: &'a ast::ExprCall) -> Option<ScopeWrapper> {
        let params = ["data", "dtype", "extents", "annotations"];
        let args = self.bind_args(call, "allocate_const", &params, 3)?;
        let mut elements = Vec::new();
        if flat(args.get(0)?, &mut elements).is_none() {
            let help = "such as `T.allocate_const([1.0, 2.0], \"float32\", [2])`";
            return self.error("constant", args.get(0)?.range(), "the elements of a constant array are a list", help);
        }
        let declaration = Declaration { shape: args.get(2), dtype: args.get(1), ..Declaration::default() };
        let declared = self.declare(name, &declaration, call.range(), false)?;
        let extent = declared.shape.iter().try_fold(1_i128, |count, extent| count.checked_mul(extent.as_const_int()?));
        if extent != i128::try_from(elements.len()).ok() || !declared.dtype.is_scalar() {
            let message = format!("{} elements do not fill this array of {}", elements.len(), declared.dtype);
            return self.error("constant", call.range(), message, "list all elements, row by row");
        }
        if elements.len() > MAX_ELEMENTS {
            let message = format!("a constant array has at most {MAX_ELEMENTS} elements here");
            return self.error("constant", call.range(), message, "pass larger arrays as parameters");
        }
        let count = i64::try_from(elements.len()).ok()?;
        let buffer = declared.with(|info| {
            info.shape = vec![Expr::int(count)];
            info.axis_separators = tilewright_ir::AxisSeparators::none(1);
        });
        let mut stores = Vec::new();
        for (at, element) in (0..count).zip(elements) {
            let read = self.value(element)?;
            let value = self.coerce(read, buffer.dtype, element.range())?;
            stores.push(Stmt::store(&buffer, vec![Expr::int(at)], value).at(Some(span(element.range()))));
        }
        self.bind(name, Binding::Pointer(buffer.clone()));
        Some(Box::new(move |body| {
            let body = Arc::new(Stmt::seq(stores.into_iter().chain([body]).collect()));
            Stmt::new(StmtKind::Allocate { buffer, body })
        }))
    }
}

/// Lists the elements of nested lists. `None` for anything else.
fn flat<'e>(expr: &'e ast::Expr, elements: &mut Vec<&'e ast::Expr>) -> Option<()> {
    for part in sequence(expr)? {
        if sequence(part).is_some() {
            flat(part, elements)?;
        } else {
            elements.push(part);
        }
    }
    Some(())
}
