//! Values of expressions at a concrete point, with made-up memory: the value of an element is a hash of its name.
//!
//! Two programs that read corresponding elements read the same value, and other elements most likely have other values,
//! so a wrong address or operator shows at once. Such a value can refute an equality, never prove one. Operators are
//! evaluated by the language's own table.

use tilewright_ir::scalar::cast;
use tilewright_ir::{Bindings, Buffer, DataType, Evidence, Expr, IndexMap, Scalar, TypeClass};

use crate::access::lane_of;
use crate::concrete::{extents, instances, points, tuple};
use crate::judge::free_vars;
use crate::path::Path;

/// The value of an expression of one lane; `None` if it has none (a division by zero, a type error).
///
/// `place` names the element that a load reads: elements of the same name have the same value.
pub(crate) fn value(
    expr: &Expr,
    bindings: &Bindings,
    place: &dyn Fn(&Buffer, &[i128]) -> Option<String>,
) -> Option<Scalar> {
    let of = |inner: &Expr| value(inner, bindings, place);
    let ty = expr.dtype();
    match expr {
        Expr::Int { value, .. } => Some(Scalar::Int(*value)),
        Expr::Float { value, .. } => Some(Scalar::Float(*value)),
        Expr::Var(var) => bindings.get(var).map(|&value| Scalar::Int(value)),
        Expr::Binary(op, a, b) => op.eval(a.dtype().scalar, of(a)?, of(b)?).ok(),
        Expr::Unary(op, a) => op.eval(ty.scalar, of(a)?).ok(),
        Expr::Call(function, args) => {
            let operands: Option<Vec<_>> = args.iter().map(of).collect();
            function.eval(args.first()?.dtype().scalar, &operands?).ok()
        }
        // A select without a value on the side that is not chosen is not noticed here: definedness is another
        // obligation.
        Expr::Select(c, a, b) | Expr::IfThenElse(c, a, b) => {
            if of(c)?.as_int()? != 0 {
                of(a)
            } else {
                of(b)
            }
        }
        Expr::Cast(to, inner) => Some(cast(inner.dtype().scalar, to.scalar, of(inner)?)),
        Expr::Load { buffer, indices } => {
            let index: Option<Vec<i128>> = indices.iter().map(|index| of(index)?.as_int()).collect();
            Some(made_up(&place(buffer, &index?)?, ty))
        }
        Expr::Ramp { .. } | Expr::Broadcast { .. } => None,
    }
}

/// The value of each lane of an expression.
pub(crate) fn lanes(
    expr: &Expr,
    bindings: &Bindings,
    place: &dyn Fn(&Buffer, &[i128]) -> Option<String>,
) -> Option<Vec<Scalar>> {
    let count = expr.dtype().lanes;
    (0..count).map(|lane| value(&lane_of(expr, &Expr::int(lane.into())), bindings, place)).collect()
}

/// Names the element that a load reads, at the values of the variables.
pub(crate) type Place<'p> = &'p dyn Fn(&Bindings, &Buffer, &[i128]) -> Option<String>;

/// An execution of a path at which two values differ, of a few that are tried: the first values that differ say more. `places`
/// name the elements that are read. Finding none proves nothing.
pub(crate) fn difference(path: &Path, limit: usize, values: [&Expr; 2], places: [Place<'_>; 2]) -> Option<Bindings> {
    path.samples(limit).into_iter().find(|bindings| {
        let of = |side: usize| lanes(values[side], bindings, &|buffer, index| places[side](bindings, buffer, index));
        let (Some(old), Some(new)) = (of(0), of(1)) else { return false };
        old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| !old.same(*new))
    })
}

/// The name of an element by its buffer.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a place")]
pub(crate) fn own_place(_: &Bindings, buffer: &Buffer, index: &[i128]) -> Option<String> {
    Some(format!("{buffer:?}{}", tuple(index)))
}

/// The name of an element of the program before: where the claims say that it is after the pass.
pub(crate) fn moved_place(evidence: &Evidence, symbols: &Bindings, buffer: &Buffer, index: &[i128]) -> Option<String> {
    match evidence.buffers.iter().find(|claim| claim.before == *buffer) {
        Some(claim) => Some(format!("{:?}{}", claim.after, tuple(&claim.map.eval(index, symbols).ok()?))),
        None => own_place(symbols, buffer, index),
    }
}

/// The first index of some that are tried whose row-major place changes under a map, with its image.
pub(crate) fn first_moved(map: &IndexMap, after: &Buffer) -> Option<(Vec<i128>, Vec<i128>)> {
    let symbols = free_vars(map.domain().iter().chain(&after.shape), map.vars());
    for bindings in instances(&symbols) {
        let (domain, shape) = (extents(map.domain(), &bindings)?, extents(&after.shape, &bindings)?);
        let place = |index: &[i128], shape: &[i128]| {
            let mut pairs = index.iter().zip(shape);
            pairs.try_fold(0i128, |place, (index, extent)| place.checked_mul(*extent)?.checked_add(*index))
        };
        for index in points(&domain, 4096) {
            let image = map.eval(&index, &bindings).ok()?;
            if place(&index, &domain) != place(&image, &shape) {
                return Some((index, image));
            }
        }
    }
    None
}

/// A value of the type that depends on the name only.
fn made_up(name: &str, ty: DataType) -> Scalar {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = hash ^ (hash >> 29);
    match ty.scalar.class() {
        TypeClass::Bool => Scalar::Int(i128::from(mixed % 2)),
        TypeClass::Int => Scalar::Int(i128::from(mixed % 119) - 57),
        TypeClass::UInt | TypeClass::Handle => Scalar::Int(i128::from(mixed % 127)),
        #[expect(clippy::cast_precision_loss, reason = "the number is below 2000")]
        TypeClass::Float => {
            let whole = (mixed % 1999) as f64;
            Scalar::Float(tilewright_ir::scalar::round_float(ty.scalar, (whole - 1000.0) / 64.0))
        }
    }
}
