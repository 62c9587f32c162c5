//! The physical shape of an index map: largest index + 1 on each axis.

use tilewright_ir::{Bindings, Diagnostic, Expr, IndexMap, ScalarType, Var};

use super::poly::{Atom, Key, Poly, Term};
use super::ranges::Ranges;
use super::rewrite::Simplifier;

/// More points than this are not enumerated.
const MAX_POINTS: i128 = 1 << 20;

/// The shape that the indices of a map need.
#[derive(Clone, Debug)]
pub struct PhysicalShape {
    /// Largest index + 1 of each axis, or more on the padded axes.
    pub extents: Vec<Expr>,
    /// Axes whose extent may be larger than the largest index needs, increasing.
    pub padded_axes: Vec<usize>,
}

/// The number of elements as people write it: a factor an axis, in the order of the axes, neighbouring numbers as one: `n * ((c + 3) // 4) * h * 4`.
pub fn n_elements(shape: &[Expr], ranges: &Ranges, ty: ScalarType) -> Expr {
    let mut factors: Vec<Expr> = Vec::new();
    for extent in shape {
        let extent = Simplifier::new(ranges).simplify(extent);
        let known = factors.last().and_then(Expr::as_const_int).zip(extent.as_const_int());
        match known.and_then(|(a, b)| Expr::int_of(a.checked_mul(b)?, ty)) {
            Some(both) => {
                factors.pop();
                factors.push(both);
            }
            None => factors.push(extent),
        }
    }
    if factors.iter().any(|factor| factor.as_const_int() == Some(0)) {
        return Expr::Int { value: 0, ty };
    }
    factors.retain(|factor| factor.as_const_int() != Some(1));
    factors.into_iter().reduce(|product, factor| product * factor).unwrap_or(Expr::Int { value: 1, ty })
}

/// The physical shape of a map over its domain.
///
/// With constant extents it is exact wherever digits or an enumeration of up to 2^20 points decide it. With symbolic
/// extents it is the natural upper bound: `(C + 3) // 4` for `c // 4`, and 4 for `c % 4`, which is then listed as padded
/// because C may be below 4.
///
/// # Errors
/// An index may be negative; an index has no bound; an extent does not fit the index type.
///
/// ```
/// use tilewright::algebra::physical_shape;
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [h, c] = ["h", "c"].map(Var::index);
/// let outputs = vec![Expr::from(&c).floor_div(Expr::int(4)), Expr::from(&h), Expr::from(&c).floor_mod(Expr::int(4))];
/// let map = IndexMap::new(vec![h, c], vec![Expr::int(9), Expr::int(17)], outputs, vec![])?;
/// assert_eq!(physical_shape(&map, &[])?.extents, [5, 9, 4].map(Expr::int));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn physical_shape(map: &IndexMap, assumptions: &[Expr]) -> Result<PhysicalShape, Diagnostic> {
    let ranges = known_of(map, assumptions);
    let mut shape = PhysicalShape { extents: Vec::new(), padded_axes: Vec::new() };
    for (axis, output) in map.outputs().iter().enumerate() {
        let (extent, exact) = axis_extent(map, axis, &ranges)?;
        let ty = output.dtype().scalar;
        let no_fit = || {
            let message = format!("the extent of axis {axis}, `{output}`, does not fit the index type {ty}");
            Diagnostic::error("extent-overflow", None, message)
        };
        shape.extents.push(Simplifier::new(&ranges).emit(&extent, ty).ok_or_else(no_fit)?);
        if !exact {
            shape.padded_axes.push(axis);
        }
    }
    Ok(shape)
}

/// What the domain of a map and the assumptions about symbolic extents say of the variables.
pub(super) fn known_of(map: &IndexMap, assumptions: &[Expr]) -> Ranges {
    let known = assumptions.iter().fold(Ranges::new(), |known, assumption| known.assuming(assumption));
    map.vars().iter().zip(map.domain()).fold(known, |known, (var, extent)| known.with(var, extent))
}

/// The extent of an axis and whether it is the smallest one.
fn axis_extent(map: &IndexMap, axis: usize, ranges: &Ranges) -> Result<(Poly, bool), Diagnostic> {
    let output = &map.outputs()[axis];
    let used = used_vars(map, output);
    if used.iter().any(|(_, extent)| extent.as_const_int().is_some_and(|extent| extent <= 0)) {
        // No index at all; the extent says so.
        return Ok((Poly::default(), true));
    }
    let poly = Simplifier::new(ranges).poly(output);
    let nonneg = poly.as_ref().is_some_and(|poly| ranges.prove_nonneg(poly));
    let bound = poly.as_ref().and_then(|poly| ranges.greatest(poly)).and_then(|last| last.plus_const(1));
    let attained = poly.as_ref().is_some_and(|poly| attains_bounds(poly, ranges));
    if let (true, true, Some(extent)) = (nonneg, attained, &bound) {
        return Ok((extent.clone(), true));
    }
    if let Some(extent) = enumerated(output, &used)? {
        return Ok((Poly::constant(extent), true));
    }
    match bound {
        Some(extent) if nonneg => Ok((extent, false)),
        _ if !nonneg => Err(may_be_negative(output)),
        _ => {
            let message = format!("no bound was found for the index `{output}`");
            let help = "use // and % with positive divisors, sums and products of the indices";
            Err(Diagnostic::error("unbounded-index", None, message).with_help(help))
        }
    }
}

fn may_be_negative(output: &Expr) -> Diagnostic {
    let message = format!("the index `{output}` may be negative");
    Diagnostic::error("negative-index", None, message).with_help("add an offset, so that the least index is 0")
}

/// The variables of the map in an expression, with their extents.
fn used_vars(map: &IndexMap, output: &Expr) -> Vec<(Var, Expr)> {
    let used = output.vars();
    let pairs = map.vars().iter().zip(map.domain()).filter(|(var, _)| used.contains(var));
    pairs.map(|(var, extent)| (var.clone(), extent.clone())).collect()
}

/// Largest index + 1 by trying all points; none if there are too many or the extents are symbolic.
fn enumerated(output: &Expr, used: &[(Var, Expr)]) -> Result<Option<i128>, Diagnostic> {
    let extents: Option<Vec<i128>> = used.iter().map(|(_, extent)| extent.as_const_int()).collect();
    let Some(extents) = extents else { return Ok(None) };
    let points = extents.iter().try_fold(1i128, |product, extent| product.checked_mul(*extent));
    if output.vars().len() != used.len() || points.is_none_or(|points| points > MAX_POINTS) {
        return Ok(None);
    }
    let mut bindings: Bindings = used.iter().map(|(var, _)| (var.clone(), 0)).collect();
    let mut largest = 0;
    loop {
        let index = output.eval_index(&bindings);
        let index = index.map_err(|error| Diagnostic::error("index-undefined", None, error.to_string()))?;
        if index < 0 {
            let at: Vec<_> = used.iter().map(|(var, _)| format!("{var} = {}", bindings[var])).collect();
            let message = format!("the index `{output}` is {index} at {}", at.join(", "));
            let help = "add an offset, so that the least index is 0";
            return Err(Diagnostic::error("negative-index", None, message).with_help(help));
        }
        largest = largest.max(index);
        if !advance(&mut bindings, used, &extents) {
            return Ok(Some(largest + 1));
        }
    }
}

/// The next point in row-major order; false after the last.
fn advance(bindings: &mut Bindings, used: &[(Var, Expr)], extents: &[i128]) -> bool {
    for ((var, _), extent) in used.iter().zip(extents).rev() {
        let Some(value) = bindings.get_mut(var) else { return false };
        *value += 1;
        if *value < *extent {
            return true;
        }
        *value = 0;
    }
    false
}

/// Whether a sum reaches the bounds that its atoms' bounds add up to: no variable is in two of them, and each reaches
/// its own.
fn attains_bounds(poly: &Poly, ranges: &Ranges) -> bool {
    let mut seen: Vec<Var> = Vec::new();
    poly.terms().all(|Term { mono, .. }| {
        mono.iter().all(|atom| {
            let vars: Vec<_> = index_vars(atom, ranges);
            let disjoint = vars.iter().all(|var| !seen.contains(var));
            seen.extend(vars);
            disjoint && (attains(atom, ranges))
        })
    })
}

fn index_vars(atom: &Atom, ranges: &Ranges) -> Vec<Var> {
    let mut vars = Vec::new();
    atom.each_var(&mut |var| {
        if ranges.is_index(var) && !vars.contains(var) {
            vars.push(var.clone());
        }
    });
    vars
}

fn attains(atom: &Atom, ranges: &Ranges) -> bool {
    if index_vars(atom, ranges).is_empty() {
        return true;
    }
    let fixed = |poly: &Poly| poly.vars().iter().all(|var| !ranges.is_index(var));
    match atom {
        Atom::Opaque(Key(expr)) => matches!(expr, Expr::Var(_)),
        // A quotient grows with its dividend.
        Atom::Div(x, by) => fixed(by) && attains_bounds(x, ranges),
        // A remainder of neighbouring numbers reaches all values, if there are enough of them.
        Atom::Mod(x, by) => fixed(by) && is_contiguous(x, ranges) && spans(x, by, ranges),
    }
}

/// Whether a polynomial takes all values between its least and its greatest.
fn is_contiguous(poly: &Poly, ranges: &Ranges) -> bool {
    let mut moving = poly.terms().filter(|term| term.mono.iter().any(|atom| !index_vars(atom, ranges).is_empty()));
    let Some(term) = moving.next() else { return true };
    let (None, [atom], 1 | -1) = (moving.next(), term.mono.as_slice(), term.coef) else { return false };
    match atom {
        Atom::Opaque(_) => atom.as_var().is_some(),
        Atom::Div(x, by) => by.vars().iter().all(|var| !ranges.is_index(var)) && is_contiguous(x, ranges),
        Atom::Mod(..) => false,
    }
}

/// Whether a polynomial takes at least `count` neighbouring values, given that it takes all between its bounds.
fn spans(poly: &Poly, count: &Poly, ranges: &Ranges) -> bool {
    let span = || ranges.greatest(poly)?.minus(&ranges.least(poly)?)?.minus(count)?.plus_const(1);
    span().is_some_and(|span| ranges.prove_nonneg(&span))
}
