//! Values of expressions at a concrete point, with made-up memory: the value of an element is a hash of its name.
//!
//! Two programs that read corresponding elements read the same value, and other elements most likely have other values,
//! so a wrong address or operator shows at once. Such a value can refute an equality, never prove one. Operators are
//! evaluated by the language's own table.

use tilewright_ir::scalar::cast;
use tilewright_ir::{Bindings, Buffer, DataType, Expr, Scalar, TypeClass};

use crate::access::lane_of;

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
