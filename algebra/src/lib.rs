//! Index map algebra: simplification, bounds, physical shapes, inverses, tiled layouts.
//!
//! This is the untrusted half of index maps. It may search and guess, because the judge (`tilewright-verify`) checks
//! every result that matters. Each function is either exact or documents on which side it may err.
//!
//! | function | result |
//! |---|---|
//! | [`simplify`], [`Simplifier`] | an equal expression in a normal form |
//! | [`physical_shape`], [`n_elements`] | the extents that the indices of a map need |
//! | [`inverse`], [`padding_of`] | the logical index of a physical one, and the physical indices that no logical index reaches |
//! | [`compose`], [`equal`], [`subspace_split`] | maps from maps |
//! | [`digit_certificate`] | the mixed-radix digits that the judge checks |
//! | [`layouts`] | inverses of XLA's tilings, and maps from one layout to another |
//!
//! Internally an index is a polynomial over atoms (`poly`), and everything known of its variables is a [`Ranges`].

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
mod parts;
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
pub use parts::{Part, PartSum, parts_of};
pub use physical::{PhysicalShape, n_elements, physical_shape, physical_shape_above_zero};
pub use ranges::Ranges;
pub use rewrite::Simplifier;
pub use subspace::subspace_split;

use tilewright_ir::Expr;

/// Returns an equal expression with fewer or simpler operations. Two expressions that the rules recognise as equal get
/// the same result.
///
/// Arithmetic is over the integers, with floor division ([`Expr::eval_index`]). The type stays the same, and no
/// constant or bounded value in the result leaves it. Operations on floats and vectors are kept; only their operands
/// are simplified.
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

/// Writes an index as `base + stride * var` and returns `(base, stride)`, neither of which uses `var`. Returns `None`
/// if the index is not linear in `var`, or if a constant of the result does not fit the type of the index.
pub fn linear_in(expr: &Expr, var: &tilewright_ir::Var, ranges: &Ranges) -> Option<(Expr, Expr)> {
    let simplifier = Simplifier::new(ranges);
    let (stride, base) = simplifier.poly(expr)?.by_atom(&poly::Atom::var(var));
    let free = |part: &poly::Poly| !part.vars().contains(var);
    let ty = expr.dtype().scalar;
    (free(&stride) && free(&base)).then_some(())?;
    Some((simplifier.emit(&base, ty)?, simplifier.emit(&stride, ty)?))
}

/// Returns a lower and an upper bound of an index, in which no index of `ranges` occurs: only variables that are no loop
/// variables or indices there. Both are attained where the index is a sum of multiples of different indices. Returns `None` if no
/// such bounds are found, or if a constant of one does not fit the type of the index.
///
/// ```
/// use tilewright_algebra::{Ranges, bounds_of};
/// use tilewright_ir::{Expr, Var};
/// let (outer, inner, r) = (Var::index("outer"), Var::index("inner"), Var::index("r"));
/// let ranges = Ranges::new().with(&inner, &Expr::int(8)).with(&r, &Expr::int(3));
/// let index = Expr::from(&outer) * Expr::int(8) + Expr::from(&inner) + Expr::from(&r);
/// let (least, greatest) = bounds_of(&index, &ranges).expect("it is linear");
/// assert_eq!((least.to_string(), greatest.to_string()), ("outer * 8".to_owned(), "outer * 8 + 9".to_owned()));
/// ```
pub fn bounds_of(expr: &Expr, ranges: &Ranges) -> Option<(Expr, Expr)> {
    let simplifier = Simplifier::new(ranges);
    let (poly, ty) = (simplifier.poly(expr)?, expr.dtype().scalar);
    let (least, greatest) = (ranges.least(&poly)?, ranges.greatest(&poly)?);
    Some((simplifier.emit(&least, ty)?, simplifier.emit(&greatest, ty)?))
}
