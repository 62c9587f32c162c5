//! Index map algebra: simplification, bounds, physical shapes, inverses, tiled layouts.
//!
//! This is the clever, untrusted half of index maps. Nothing here is believed: the judge (`tilewright-verify`) checks every
//! result that matters. Each function is exact or documents on which side it may err.
//!
//! [`simplify`] rewrites an index, [`physical_shape`] and [`n_elements`] measure what a map reaches, [`inverse`] and
//! [`padding_of`] undo it, [`digit_certificate`] finds the mixed-radix digits that the judge checks,
//! layouts such as `NCHW4c`, and [`layouts`] inverts XLA's tilings.

mod assume;
mod bits;
mod bounds;
mod cases;
mod compose;
mod digits;
mod divide;
mod emit;
mod extreme;
mod interval;
mod inverse;
pub mod layouts;
mod logic;
mod padding;
mod physical;
mod poly;
mod ranges;
mod rewrite;
mod samples;
mod subspace;
#[cfg(test)]
mod tests;
mod work;

pub use compose::{compose, equal};
pub use digits::digit_certificate;
pub use inverse::inverse;
pub use logic::conjuncts;
pub use logic::negate;
pub use padding::padding_of;
pub use physical::{PhysicalShape, n_elements, physical_shape, physical_shape_above_zero};
pub use ranges::Ranges;
pub use rewrite::Simplifier;
pub use subspace::subspace_split;

use tilewright_ir::Expr;

/// The same index, extent or condition in fewer or plainer operations, canonical as far as the rules go.
///
/// Integers are those of mathematics with floor division ([`Expr::eval_index`]); the type stays the same, and no
/// constant or bounded value in the result leaves it. Floats and vectors keep their operations.
///
/// ```
/// use tilewright_algebra::{Ranges, simplify};
/// use tilewright_ir::{Expr, Var};
/// let c = Var::index("c");
/// let ranges = Ranges::new().with(&c, &Expr::int(17));
/// let index = Expr::from(&c).floor_div(Expr::int(4)) * Expr::int(4) + Expr::from(&c).floor_mod(Expr::int(4));
/// assert_eq!(simplify(&index, &ranges).to_string(), "c");
/// assert_eq!(simplify(&Expr::from(&c).lt(Expr::int(17)), &ranges), Expr::bool(true));
/// ```
pub fn simplify(expr: &Expr, ranges: &Ranges) -> Expr {
    Simplifier::new(ranges).simplify(expr)
}

/// Writes an index as `base + stride * var`, with neither part using `var`; none if it is not linear in it.
pub fn linear_in(expr: &Expr, var: &tilewright_ir::Var, ranges: &Ranges) -> Option<(Expr, Expr)> {
    let simplifier = Simplifier::new(ranges);
    let (stride, base) = simplifier.poly(expr)?.by_atom(&poly::Atom::var(var));
    let free = |part: &poly::Poly| !part.vars().contains(var);
    let ty = expr.dtype().scalar;
    (free(&stride) && free(&base)).then_some(())?;
    Some((simplifier.emit(&base, ty)?, simplifier.emit(&stride, ty)?))
}
