//! Parts of a buffer that a block names, and accesses through them.
//!
//! ```text
//! W = T.match_buffer(A[i * 4:i * 4 + 4, j], (4, 1))      W[x, y] is A[i * 4 + x, j + y]
//! W = T.match_buffer(A[i, j * 4:j * 4 + 4], (4,))        W[x] is A[i, j * 4 + x]
//! ```
//!
//! As TVM's `LowerMatchBuffer`, the reader replaces each access by one of the buffer itself. A window has no memory, strides or offset that a
//! program could ask for.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{BinaryOp, Buffer, Expr, Var};

use super::buffer::{Declaration, PARAMS};
use super::reader::{Binding, Reader};

/// A part of a buffer, with as many axes as the buffer or fewer: the last ones.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The buffer.
    pub(super) buffer: Buffer,
    /// The index of the first element on each axis of the buffer.
    pub(super) starts: Vec<Expr>,
    /// The extent of each axis of the window.
    pub(super) extents: Vec<Expr>,
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
        // TVM gives names to strides and offset, which are those of the buffer.
        let is_named = |part: &&ast::Expr| !self.names_only(part);
        let strides = declared.strides.filter(is_named);
        let strides =
            strides.filter(|strides| self.shape(strides).is_none_or(|all| !are_strides(&region.buffer, &all)));
        if let Some(layout) = strides.or(declared.elem_offset.filter(|part| !self.names_only(part))) {
            let help = "leave out `strides` and `elem_offset`";
            return self.error("match-buffer", layout.range(), "a part of a buffer has the layout of its buffer", help);
        }
        if let Some(dtype) = declared.dtype {
            let dtype = self.dtype(dtype)?;
            if dtype != region.buffer.dtype {
                let message = format!("the elements of `{}` are {}", region.buffer, region.buffer.dtype);
                return self.error("match-buffer", call.range(), message, "a part has the type of its buffer");
            }
        }
        let starts = region.ranges.into_iter().map(|(start, _)| start).collect();
        self.bind(name, Binding::Window(Window { buffer: region.buffer, starts, extents: shape }));
        Some(())
    }

    /// Whether an argument gives names only, which nothing else is called: `("s0", "s1")`, `"offset"`, or `(s0, s1)` after
    /// `s0, s1 = T.int32(), T.int32()`.
    fn names_only(&self, arg: &ast::Expr) -> bool {
        match arg {
            ast::Expr::StringLiteral(_) => true,
            ast::Expr::Name(name) => match self.lookup(&name.id) {
                None => true,
                Some(Binding::Value(Expr::Var(var))) => self.symbols.vars().contains(var) && !self.is_extent(var),
                Some(_) => false,
            },
            ast::Expr::Tuple(tuple) => tuple.elts.iter().all(|part| self.names_only(part)),
            ast::Expr::List(list) => list.elts.iter().all(|part| self.names_only(part)),
            _ => false,
        }
    }

    /// Whether a buffer that is known has a variable in its layout.
    fn is_extent(&self, var: &Var) -> bool {
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
        Some(Window { buffer, starts, extents })
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

/// Whether strides are those of the last axes of a buffer.
fn are_strides(buffer: &Buffer, strides: &[Expr]) -> bool {
    let row_major = || {
        let mut next = Some(1);
        let mut all: Vec<Option<i128>> = Vec::new();
        for extent in buffer.shape.iter().rev() {
            all.push(next);
            next = next.and_then(|stride: i128| stride.checked_mul(extent.as_const_int()?));
        }
        all
    };
    let own = match &buffer.strides {
        Some(strides) => strides.iter().rev().map(Expr::as_const_int).collect(),
        None => row_major(),
    };
    strides.len() <= own.len()
        && strides.iter().rev().zip(own).all(|(stated, own)| own.is_some() && stated.as_const_int() == own)
}
