//! Buffers of vectors as buffers of elements, and views of one memory as one buffer.
//!
//! ```text
//! A: (n, 4) float32x4                          A: (n, 4, 4) float32          A[i, j] lane l is A[i, j, l]
//! A: (n * 4,) float32, V: (n,) float32x4       A: (n * 4,) float32           V[i] lane l is A[i * 4 + l]
//! ```
//!
//! Elements lie row by row, lanes last, and a view begins where its memory does. So an element of a view is the element of the
//! buffer that owns the memory with the same position, which has an index if the shapes divide one another.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::{AxisSeparators, Buffer, Expr, PrimFunc, Stmt, StmtKind};

use crate::ring::same_polynomial;

/// What a buffer becomes.
#[derive(Clone, Debug)]
pub(super) enum Image {
    /// A buffer of its elements, with the same indices.
    Elements(Buffer),
    /// The buffer that owns its memory; with the shape of the view in elements.
    Owner(Buffer, Vec<Expr>),
}

impl Image {
    /// The buffer that is accessed.
    pub(super) fn buffer(&self) -> &Buffer {
        match self {
            Self::Elements(buffer) | Self::Owner(buffer, _) => buffer,
        }
    }

    /// Whether the buffer that is accessed is declared elsewhere.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Owner(..))
    }

    /// The access to an element.
    pub(super) fn access(&self, index: Vec<Expr>) -> Option<(Buffer, Vec<Expr>)> {
        match self {
            Self::Elements(buffer) => Some((buffer.clone(), index)),
            Self::Owner(owner, shape) => Some((owner.clone(), regroup(shape, &owner.shape, &index)?)),
        }
    }
}

/// A buffer of the elements of a buffer of vectors; the same buffer if it has no vectors.
///
/// # Errors
/// Its axes are separated.
fn elements(buffer: &Buffer) -> Result<Buffer, String> {
    if buffer.dtype.is_scalar() {
        return Ok(buffer.clone());
    }
    if !buffer.axis_separators.is_empty() {
        return Err(format!("`{buffer}` holds vectors, and its axes are separated"));
    }
    let lanes = || Expr::int(buffer.dtype.lanes.into());
    Ok(buffer.with(|info| {
        info.dtype = info.dtype.with_lanes(1);
        info.shape.push(lanes());
        if let Some(strides) = &mut info.strides {
            for stride in strides.iter_mut() {
                *stride = stride.clone() * lanes();
            }
            strides.push(Expr::int(1));
        }
        if info.elem_offset.as_const_int() != Some(0) {
            info.elem_offset = info.elem_offset.clone() * lanes();
        }
        info.axis_separators = AxisSeparators::none(info.shape.len());
    }))
}

/// What each buffer becomes that does not stay what it is.
pub(super) fn images(func: &PrimFunc) -> Result<HashMap<Buffer, Image>, String> {
    if !func.attrs.layout_transform_map.is_empty() || !func.attrs.tile_layout.is_empty() {
        return Err("another layout is asked for".into());
    }
    let buffers = func.buffers();
    if let Some(texture) = buffers.iter().find(|buffer| buffer.scope.is_texture()) {
        return Err(format!("`{texture}` is a texture, whose texels are written as a whole"));
    }
    let owners = owners(func);
    let mut whole: HashMap<Buffer, Buffer> = HashMap::new();
    for buffer in &buffers {
        whole.insert(buffer.clone(), elements(buffer)?);
    }
    let image = |buffer: &Buffer| {
        let own = &whole[buffer];
        let owner = owners.iter().find(|owner| owner.aliases(buffer) && *owner != buffer);
        match owner.and_then(|owner| whole.get(owner)).filter(|owner| is_view_of(own, owner)) {
            Some(owner) => Some(Image::Owner(owner.clone(), own.shape.clone())),
            None => (own != buffer).then(|| Image::Elements(own.clone())),
        }
    };
    Ok(buffers.iter().filter_map(|buffer| Some((buffer.clone(), image(buffer)?))).collect())
}

/// The buffers that own memory: parameters and allocations.
fn owners(func: &PrimFunc) -> Vec<Buffer> {
    let mut found: Vec<Buffer> = func.buffer_map.iter().map(|(_, buffer)| buffer.clone()).collect();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
            found.push(buffer.clone());
        }
    });
    found
}

/// Whether each element of a view is an element of the owner at an index that [`regroup`] knows. Both are compact, have elements of one
/// type and begin at the same place.
fn is_view_of(view: &Buffer, owner: &Buffer) -> bool {
    let is_plain = |buffer: &Buffer| {
        buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0) && buffer.axis_separators.is_empty()
    };
    let index = vec![Expr::int(0); view.rank()];
    view.dtype == owner.dtype
        && is_plain(view)
        && is_plain(owner)
        && regroup(&view.shape, &owner.shape, &index).is_some()
}

/// The index in one row-major shape of the element that lies at the same position as that of an index in another one. `None` if
/// the shapes do not divide one another in a way that is looked for.
fn regroup(from: &[Expr], to: &[Expr], index: &[Expr]) -> Option<Vec<Expr>> {
    if index.len() != from.len() {
        return None;
    }
    let same = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let (rest, there) = (&from[same..], &to[same..]);
    let mut found = index[..same].to_vec();
    // Inside memory of one axis each position is an index.
    let fits =
        |whole: &Expr, parts: &[Expr]| (same == 0 && !parts.is_empty()) || same_polynomial(&product(parts), whole);
    match (rest, there) {
        ([], []) => {}
        (_, [whole]) if !rest.is_empty() && fits(whole, rest) => {
            found.push(crate::claims::row_major(index, from, same..from.len()));
        }
        ([whole], [_, inner @ ..]) if fits(whole, there) => found.extend(digits(&index[same], inner)?),
        _ => return None,
    }
    Some(found)
}

fn product(extents: &[Expr]) -> Expr {
    extents.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| Expr::int(1))
}

/// The digits of a number, the last ones below the constant extents `inner`.
fn digits(number: &Expr, inner: &[Expr]) -> Option<Vec<Expr>> {
    let sizes = inner.iter().map(|extent| extent.as_const_int().filter(|size| *size > 0));
    let sizes: Vec<i64> = sizes.map(|size| i64::try_from(size?).ok()).collect::<Option<_>>()?;
    let mut found = Vec::new();
    let mut rest = number.clone();
    for size in sizes.iter().rev() {
        found.push(rest.clone().floor_mod(Expr::int(*size)));
        rest = rest.floor_div(Expr::int(*size));
    }
    found.push(rest);
    found.reverse();
    Some(found)
}

/// The function with parameters of elements instead of vectors, and views of these for the vectors. A caller passes the same memory.
pub fn scalar_parameters(func: &PrimFunc) -> PrimFunc {
    let mut found = func.clone();
    let is_asked = |buffer: &Buffer| {
        let maps = func.attrs.layout_transform_map.iter().map(|(data, _)| data);
        maps.chain(func.attrs.tile_layout.iter().map(|(data, _)| data)).any(|data| *data == buffer.data)
    };
    for (_, buffer) in &mut found.buffer_map {
        if buffer.dtype.is_scalar() || is_asked(buffer) {
            continue;
        }
        if let Ok(scalar) = elements(buffer) {
            let view = std::mem::replace(buffer, scalar);
            let body = Arc::new(found.body.clone());
            found.body = Stmt::new(StmtKind::DeclBuffer { buffer: view, body });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Bindings, Var};

    use super::*;
    use crate::claims::row_major;

    fn shape(extents: &[i64]) -> Vec<Expr> {
        extents.iter().map(|extent| Expr::int(*extent)).collect()
    }

    #[test]
    fn an_index_in_another_shape_has_the_same_position() {
        let shapes: [&[i64]; 9] =
            [&[24], &[4, 6], &[2, 3, 4], &[2, 12], &[6, 4], &[3, 8], &[2, 3, 2, 2], &[1, 24], &[4, 3, 2]];
        let mut known = 0;
        for (from, to) in shapes.iter().flat_map(|from| shapes.iter().map(move |to| (shape(from), shape(to)))) {
            let vars: Vec<Var> = from.iter().map(|_| Var::index("x")).collect();
            let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
            let Some(there) = regroup(&from, &to, &index) else { continue };
            known += 1;
            let (before, after) = (row_major(&index, &from, 0..from.len()), row_major(&there, &to, 0..to.len()));
            for number in 0..24 {
                let mut rest = number;
                let mut bindings = Bindings::new();
                for (var, extent) in vars.iter().zip(&from).rev() {
                    let extent = extent.as_const_int().unwrap();
                    bindings.insert(var.clone(), rest % extent);
                    rest /= extent;
                }
                assert_eq!(before.eval_index(&bindings), after.eval_index(&bindings));
                for (at, extent) in there.iter().zip(&to) {
                    assert!((0..extent.as_const_int().unwrap()).contains(&at.eval_index(&bindings).unwrap()));
                }
            }
        }
        assert!(known > 25, "{known} pairs of shapes");
    }

    #[test]
    fn shapes_that_do_not_divide_one_another_have_no_common_index() {
        for (from, to) in [([4, 6], [6, 4]), ([3, 8], [3, 7]), ([2, 12], [3, 8])] {
            let index = shape(&[0, 0]);
            assert!(regroup(&shape(&from), &shape(&to), &index).is_none(), "{from:?} {to:?}");
        }
        let n = Expr::from(&Var::index("n"));
        let (rows, split) = (vec![n.clone(), n.clone() * Expr::int(4)], vec![n.clone(), n.clone(), Expr::int(4)]);
        let index = shape(&[0, 0, 0]);
        assert!(regroup(&split, &rows, &index).is_some());
        let ragged = vec![n.clone(), n.clone().floor_div(Expr::int(4)), Expr::int(4)];
        assert!(regroup(&ragged, &[n.clone(), n], &index).is_none());
    }
}
