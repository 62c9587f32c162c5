//! Parts of a buffer that a block names, and accesses through them.
//!
//! ```text
//! W = T.match_buffer(A[i * 4:i * 4 + 4, j], (4, 1))      W[x, y] is A[i * 4 + x, j + y]
//! W = T.match_buffer(A[i, j * 4:j * 4 + 4], (4,))        W[x] is A[i, j * 4 + x]
//! ```
//!
//! As TVM's `LowerMatchBuffer`, the reader replaces each access by one of the buffer itself. A window has no memory that a program could ask
//! for. Its strides and its offset are those of the buffer, and have names if the declaration gives them some:
//!
//! ```text
//! s0, s1, at = T.int32(), T.int32(), T.int32()
//! W = T.match_buffer(A[i * 4:i * 4 + 4, 0:16], (4, 16), strides=(s0, s1), elem_offset=at)      s0 is 16, s1 is 1, at is i * 64
//! W = T.match_buffer(A[i * 4:i * 4 + 4, 0:16], (4, 16), strides=("s0", "s1"), offset_factor=1)   W.strides[0], W.elem_offset
//! ```

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{BinaryOp, BlockRegion, Buffer, Expr, SharedExpr, Var};

use super::buffer::{Declaration, PARAMS};
use super::reader::{Binding, Reader, sequence};

/// A part of a buffer, with as many axes as the buffer or fewer: the last ones.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The buffer.
    pub(super) buffer: Buffer,
    /// The index of the first element on each axis of the buffer.
    pub(super) starts: Vec<Expr>,
    /// The extent of each axis of the window.
    pub(super) extents: Vec<Expr>,
    /// The distance of the elements on each axis of the window, if the declaration states strides.
    pub(super) strides: Option<Vec<Expr>>,
    /// The position of the first element in the memory, if the declaration states an offset.
    pub(super) elem_offset: Option<Expr>,
}

impl<'a> Reader<'a> {
    /// Reads `W = T.match_buffer(A[0:4, 0:4], (4, 4))` inside of a function.
    pub(super) fn window(&mut self, name: &str, call: &'a ast::ExprCall) -> Option<()> {
        let names: Vec<_> = std::iter::once("region").chain(PARAMS.iter().copied()).collect();
        let args = self.bind_args(call, "match_buffer", &names, 2)?;
        let region = self.region(args.get(0)?)?;
        let declared = Declaration::new(&args, 1);
        let shape = declared.shape.map(|shape| self.shape(shape))??;
        let extents: Vec<Expr> = region.ranges.iter().map(|(_, extent)| extent.clone()).collect();
        let n_dropped = extents.len().checked_sub(shape.len());
        let is_one = |extent: &Expr| extent.as_const_int() == Some(1);
        let fits = n_dropped.is_some_and(|n| extents[..n].iter().all(is_one) && same_extents(&extents[n..], &shape));
        if !fits {
            let help = "the shape is that of the region; axes of one element in front may be left out";
            return self.error("match-buffer", call.range(), "the shape does not fit the region", help);
        }
        let (strides, elem_offset) = self.window_layout(&declared, &region, call.range())?;
        if let Some(given) = declared.scope
            && self.scope(given)? != region.buffer.scope
        {
            let message = format!("the memory of `{}` has the scope {}", region.buffer, region.buffer.scope);
            return self.error("match-buffer", given.range(), message, "a part is in the memory of its buffer");
        }
        if let Some(dtype) = declared.dtype {
            let dtype = self.dtype(dtype)?;
            if dtype != region.buffer.dtype {
                let message = format!("the elements of `{}` are {}", region.buffer, region.buffer.dtype);
                return self.error("match-buffer", call.range(), message, "a part has the type of its buffer");
            }
        }
        let starts = region.ranges.into_iter().map(|(start, _)| start).collect();
        self.bind(
            name,
            Binding::Window(Window { buffer: region.buffer, starts, extents: shape, strides, elem_offset }),
        );
        Some(())
    }

    /// Returns the strides and the offset of a window, each if its declaration states it, and binds the names that it gives them.
    fn window_layout(
        &mut self,
        declared: &Declaration<'a>,
        region: &BlockRegion,
        range: TextRange,
    ) -> Option<(Option<Vec<Expr>>, Option<Expr>)> {
        let all = self.strides_of(&region.buffer, range)?;
        let mut strides = None;
        if let Some(stated) = declared.strides {
            let parts = sequence(stated).unwrap_or_else(|| std::slice::from_ref(stated));
            let Some(own) = all.len().checked_sub(parts.len()).map(|n_dropped| &all[n_dropped..]) else {
                return self.no_layout_of_its_own(stated.range());
            };
            for (part, value) in parts.iter().zip(own) {
                self.layout_part(part, value)?;
            }
            strides = Some(own.to_vec()).filter(|own| !own.is_empty());
        }
        let has_factor = match declared.offset_factor {
            Some(factor) => self.expr(factor)?.as_const_int() != Some(0),
            None => false,
        };
        let is_flat = !region.buffer.scope.is_texture() && region.buffer.axis_separators.positions().is_empty();
        if !is_flat || !has_factor && declared.elem_offset.is_none() {
            return Some((strides, None));
        }
        let mut offset = region.buffer.elem_offset.clone();
        for ((start, _), stride) in region.ranges.iter().zip(&all) {
            let distance = self.simple(BinaryOp::Mul, start.clone(), stride.clone(), range)?;
            offset = self.simple(BinaryOp::Add, distance, offset, range)?;
        }
        if let Some(stated) = declared.elem_offset {
            self.layout_part(stated, &offset)?;
        }
        Some((strides, Some(offset)))
    }

    /// Gives the names of the strides and the offset of a window that has an error a meaning that is not reported again.
    pub(super) fn layout_failed(&mut self, call: &'a ast::ExprCall) {
        for param in ["strides", "elem_offset"] {
            let Some(stated) = call.arguments.find_keyword(param).map(|keyword| &keyword.value) else { continue };
            for part in sequence(stated).unwrap_or_else(|| std::slice::from_ref(stated)) {
                if matches!(part, ast::Expr::Name(name) if self.has_no_value(name)) {
                    self.bind_failed(part);
                }
            }
        }
    }

    /// Reads a stride or an offset: a name that is bound to the value, a name in quotes, or the value itself.
    fn layout_part(&mut self, part: &'a ast::Expr, value: &Expr) -> Option<()> {
        match part {
            ast::Expr::StringLiteral(_) => Some(()),
            ast::Expr::Name(name) if self.lookup(&name.id).is_none() || self.has_no_value(name) => {
                let ty = match self.lookup(&name.id) {
                    Some(Binding::Declared(ty)) => *ty,
                    Some(Binding::Value(symbol)) => symbol.dtype(),
                    _ => value.dtype(),
                };
                let value = match value.as_const_int().and_then(|constant| Expr::int_of(constant, ty.scalar)) {
                    Some(constant) => constant,
                    None if ty == value.dtype() => value.clone(),
                    None => Expr::Cast(ty, SharedExpr::new(value.clone())),
                };
                self.bind(name.id.as_str(), Binding::Value(value));
                Some(())
            }
            part => {
                let read = self.expr(part)?;
                let is_same = match (read.as_const_int(), value.as_const_int()) {
                    (Some(read), Some(value)) => read == value,
                    _ => read == *value,
                };
                if is_same { Some(()) } else { self.no_layout_of_its_own(part.range()) }
            }
        }
    }

    fn no_layout_of_its_own<R>(&mut self, range: TextRange) -> Option<R> {
        let help = "leave out `strides` and `elem_offset`";
        self.error("match-buffer", range, "a part of a buffer has the layout of its buffer", help)
    }

    /// Returns the distances of the elements of a buffer on each axis.
    fn strides_of(&mut self, buffer: &Buffer, range: TextRange) -> Option<Vec<Expr>> {
        if let Some(strides) = &buffer.strides {
            return Some(strides.clone());
        }
        let mut next = Expr::int(1);
        let mut strides = Vec::new();
        for extent in buffer.shape.iter().rev() {
            strides.push(next.clone());
            next = self.simple(BinaryOp::Mul, next, extent.clone(), range)?;
        }
        strides.reverse();
        Some(strides)
    }

    /// Returns a sum or a product, as a constant or as one of the operands where that is clear.
    fn simple(&mut self, op: BinaryOp, lhs: Expr, rhs: Expr, range: TextRange) -> Option<Expr> {
        let neutral = i128::from(op == BinaryOp::Mul);
        let ty = lhs.dtype();
        if ty == rhs.dtype() {
            match (lhs.as_const_int(), rhs.as_const_int()) {
                (Some(a), Some(b)) => {
                    let value = if op == BinaryOp::Mul { a.checked_mul(b) } else { a.checked_add(b) };
                    if let Some(constant) = value.and_then(|value| Expr::int_of(value, ty.scalar)) {
                        return Some(constant);
                    }
                }
                (Some(a), _) if a == neutral => return Some(rhs),
                (_, Some(b)) if b == neutral => return Some(lhs),
                (Some(0), _) | (_, Some(0)) if op == BinaryOp::Mul => return Expr::int_of(0, ty.scalar),
                _ => {}
            }
        }
        self.binary(op, lhs.into(), rhs.into(), range)
    }

    /// Whether a buffer that is known has a variable in its layout.
    pub(super) fn is_extent(&self, var: &Var) -> bool {
        let has = |buffer: &Buffer| {
            let mut parts = buffer.shape.iter().chain(buffer.strides.iter().flatten()).chain([&buffer.elem_offset]);
            parts.any(|part| part.vars().contains(var))
        };
        self.names.iter().any(|(_, binding)| matches!(binding, Binding::Buffer(buffer) if has(buffer)))
    }

    /// Reads the name of a buffer or of a part of one. A buffer is a part of itself.
    pub(super) fn window_of(&mut self, name: &'a ast::Expr) -> Option<Window> {
        if let ast::Expr::Name(name) = name
            && let Some(Binding::Window(window)) = self.lookup(&name.id)
        {
            return Some(window.clone());
        }
        let buffer = self.buffer(name)?;
        let zero = |extent: &Expr| Expr::Int { value: 0, ty: extent.dtype().scalar };
        let (starts, extents) = (buffer.shape.iter().map(zero).collect(), buffer.shape.clone());
        Some(Window { buffer, starts, extents, strides: None, elem_offset: None })
    }

    /// Reads the buffer and the indices of an access `A[i, j]`, of the buffer itself or of a part of it.
    pub(super) fn access(&mut self, subscript: &'a ast::ExprSubscript) -> Option<(Buffer, Vec<Expr>)> {
        let (window, indices) = (self.window_of(&subscript.value), self.indices(&subscript.slice));
        let (window, indices) = (window?, indices?);
        if indices.len() != window.extents.len() {
            let (n_axes, n_indices) = (window.extents.len(), indices.len());
            let message = format!("`{}` has {n_axes} axes, but {n_indices} indices are given", window.buffer);
            return self.error("rank", subscript.range(), message, "give one index for each axis of the shape");
        }
        let indices = self.in_buffer(&window, indices, subscript.range())?;
        Some((window.buffer, indices))
    }

    /// The indices of a window as those of its buffer.
    pub(super) fn in_buffer(&mut self, window: &Window, indices: Vec<Expr>, range: TextRange) -> Option<Vec<Expr>> {
        let (dropped, starts) = window.starts.split_at(window.starts.len().saturating_sub(indices.len()));
        let moved = starts.iter().zip(indices).map(|(start, index)| self.moved(start, index, range));
        let moved: Vec<Option<Expr>> = moved.collect();
        dropped.iter().cloned().map(Some).chain(moved).collect()
    }

    /// The index of a window as one of its buffer.
    fn moved(&mut self, start: &Expr, index: Expr, range: TextRange) -> Option<Expr> {
        match (start.as_const_int(), index) {
            (Some(0), index) => Some(index),
            (_, index) if index.as_const_int() == Some(0) && index.dtype() == start.dtype() => Some(start.clone()),
            (_, Expr::Ramp { base, stride, lanes }) => {
                let base = self.binary(BinaryOp::Add, start.clone().into(), Expr::clone(&base).into(), range)?;
                Some(Expr::Ramp { base: base.into(), stride, lanes })
            }
            (_, index) => self.binary(BinaryOp::Add, start.clone().into(), index.into(), range),
        }
    }
}

/// Whether two shapes have the same extents: where both are constants they are equal, and otherwise they are written in the same way.
fn same_extents(a: &[Expr], b: &[Expr]) -> bool {
    let same = |(a, b): (&Expr, &Expr)| match (a.as_const_int(), b.as_const_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}
