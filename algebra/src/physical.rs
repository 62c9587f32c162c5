//! The physical shape of an index map: the largest index + 1 on each axis.

use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Diagnostic, EvalError, Expr, IndexMap, ScalarError, ScalarType, Var};

use super::bits::{bits_as_arithmetic, bits_limit};
use super::cases::cases;
use super::extreme::{Attained, extremes};
use super::poly::{Atom, Key, Poly, Term};
use super::ranges::Ranges;
use super::rewrite::Simplifier;
use super::samples::instances;
use super::work;

/// The extents that the physical indices of a map need.
#[derive(Clone, Debug)]
pub struct PhysicalShape {
    /// Largest index + 1 on each axis; an upper bound of that on the padded axes.
    pub extents: Vec<Expr>,
    /// The axes, in increasing order, whose extent may be larger than the largest index needs.
    pub padded_axes: Vec<usize>,
}

/// Returns the number of elements of a shape: one factor for each axis, in the order of the axes, with adjacent
/// constants multiplied: `n * ((c + 3) // 4) * h * 4`.
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

/// Returns the physical shape of a map over its domain.
///
/// With constant extents it is exact wherever digits, or an enumeration of up to 2^20 points, decide it. With symbolic
/// extents it is the natural upper bound: `(C + 3) // 4` for `c // 4`, and 4 for `c % 4`, whose axis is then listed as
/// padded because C may be below 4.
///
/// # Errors
/// `negative-index`: an index may be negative. `unbounded-index`: an index has no bound. `index-undefined`: an index
/// has no value at some point. `extent-overflow`: an extent does not fit the index type.
///
/// ```
/// use tilewright_algebra::physical_shape;
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [h, c] = ["h", "c"].map(Var::index);
/// let outputs = vec![Expr::from(&c).floor_div(Expr::int(4)), Expr::from(&h), Expr::from(&c).floor_mod(Expr::int(4))];
/// let map = IndexMap::new(vec![h, c], vec![Expr::int(9), Expr::int(17)], outputs, vec![])?;
/// assert_eq!(physical_shape(&map, &[])?.extents, [5, 9, 4].map(Expr::int));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn physical_shape(map: &IndexMap, assumptions: &[Expr]) -> Result<PhysicalShape, Diagnostic> {
    shape(map, assumptions, false)
}

/// Returns the physical shape without the negative indices, for maps whose bounds are to be refuted by an example. An
/// axis that only negative indices reach has the extent 1.
///
/// # Errors
/// Those of [`physical_shape`] except `negative-index`.
pub fn physical_shape_above_zero(map: &IndexMap, assumptions: &[Expr]) -> Result<PhysicalShape, Diagnostic> {
    shape(map, assumptions, true)
}

/// The physical shape; with `clipped`, negative indices are left out.
fn shape(map: &IndexMap, assumptions: &[Expr], clipped: bool) -> Result<PhysicalShape, Diagnostic> {
    let _limit = work::limit(work::MAP);
    let ranges = ranges_of_map(map, assumptions);
    let mut shape = PhysicalShape { extents: Vec::new(), padded_axes: Vec::new() };
    for (axis, output) in map.outputs().iter().enumerate() {
        let (extent, exact) = match axis_extent(map, output, &ranges, assumptions) {
            Err(NoExtent::Negative { extent: Some((extent, exact)), .. }) if clipped => {
                at_least_one(extent, exact, output, &ranges)
            }
            found => found.map_err(NoExtent::diagnostic)?,
        };
        let ty = output.dtype().scalar;
        let no_fit = || {
            let message = format!("the extent of axis {axis}, `{output}`, does not fit the index type {ty}");
            let largest = ty.integer_range().map_or(0, |(_, largest)| largest);
            let help = format!("an extent of the type {ty} is at most {largest}: use smaller factors or extents");
            Diagnostic::error("extent-overflow", None, message).with_help(help)
        };
        shape.extents.push(Simplifier::new(&ranges).emit(&extent, ty).ok_or_else(no_fit)?);
        if !exact {
            shape.padded_axes.push(axis);
        }
    }
    Ok(shape)
}

/// Returns what the domain of a map and the assumptions about symbolic extents say of the variables.
pub(super) fn ranges_of_map(map: &IndexMap, assumptions: &[Expr]) -> Ranges {
    let free = map.outputs().iter().flat_map(Expr::vars).filter(|var| !map.vars().contains(var));
    let known = free.fold(Ranges::new(), |known, symbol| known.with_symbol(&symbol));
    let known = assumptions.iter().fold(known, Ranges::assuming);
    map.vars().iter().zip(map.domain()).fold(known, |known, (var, extent)| known.with(var, extent))
}

/// The extent of an axis that holds the index 0 at least: the greater one of `extent` and 1, and whether it is the least
/// one.
fn at_least_one(extent: Poly, exact: bool, output: &Expr, ranges: &Ranges) -> (Poly, bool) {
    let (over, under) = (extent.plus_const(-1), extent.scaled(-1).and_then(|negated| negated.plus_const(1)));
    if over.is_some_and(|over| ranges.prove_nonneg(&over)) {
        return (extent, exact);
    }
    if under.is_some_and(|under| ranges.prove_nonneg(&under)) {
        return (Poly::constant(1), false);
    }
    let (simplifier, ty) = (Simplifier::new(ranges), output.dtype().scalar);
    let greater = || {
        let max = Expr::binary(BinaryOp::Max, simplifier.emit(&extent, ty)?, Expr::int_of(1, ty)?);
        simplifier.poly(&max)
    };
    let greater = greater();
    (greater.unwrap_or(extent), false)
}

/// Why an axis has no extent.
enum NoExtent {
    /// An index may be negative. `extent` is the one of the other indices, if it is known, and whether it is exact.
    Negative {
        message: String,
        extent: Option<(Poly, bool)>,
    },
    Other(Diagnostic),
}

impl NoExtent {
    /// The error to report.
    fn diagnostic(self) -> Diagnostic {
        match self {
            Self::Negative { message, .. } => {
                let help = "add an offset, so that the least index is 0";
                Diagnostic::error("negative-index", None, message).with_help(help)
            }
            Self::Other(fault) => fault,
        }
    }
}

/// Returns the extent of an axis, and whether it is the smallest one.
fn axis_extent(map: &IndexMap, output: &Expr, ranges: &Ranges, assumptions: &[Expr]) -> Result<(Poly, bool), NoExtent> {
    let used = used_vars(map, output);
    if used.iter().any(|(_, extent)| extent.as_const_int().is_some_and(|extent| extent <= 0)) {
        // The domain is empty, so no index is computed.
        return Ok((Poly::default(), true));
    }
    let simplifier = Simplifier::new(ranges);
    // From the cheapest method to the most expensive: intervals of a sum whose terms are independent, search or
    // enumeration over constant extents, then bounds that may be too large.
    let poly = simplifier.poly(&bits_as_arithmetic(output, ranges)).or_else(|| simplifier.poly(output));
    let nonneg = poly.as_ref().is_some_and(|poly| ranges.prove_nonneg(poly));
    let bound = poly.as_ref().and_then(|poly| ranges.greatest(poly)).and_then(|last| last.plus_const(1));
    let attained = poly.as_ref().is_some_and(|poly| attains_bounds(poly, ranges));
    if let (true, true, Some(extent)) = (nonneg, attained, &bound) {
        return Ok((extent.clone(), true));
    }
    if let Some((least, greatest)) = constant_extremes(output, &used)? {
        let after = i128::from(!sabotage::on("shape-forgets-last"));
        let extent = (greatest.value.max(0) + after).max(1);
        if least.value < 0 {
            let at: Vec<_> = used.iter().zip(&least.at).map(|((var, _), value)| format!("{var} = {value}")).collect();
            let message = format!("the index `{output}` is {} at {}", least.value, at.join(", "));
            return Err(NoExtent::Negative { message, extent: Some((Poly::constant(extent), true)) });
        }
        return Ok((Poly::constant(extent), true));
    }
    if let (None, Some(extent)) = (&bound, bound_of_bits(output, ranges)) {
        return Ok((extent, false));
    }
    let nonneg = nonneg || is_nonneg_in_all_cases(output, ranges);
    match bound.or_else(|| bound_of_cases(output, ranges)) {
        Some(extent) if nonneg => Ok((extent, false)),
        bound if !nonneg => {
            let shown = negative_instance(map, output, assumptions);
            let message = shown.unwrap_or_else(|| format!("the index `{output}` may be negative"));
            Err(NoExtent::Negative { message, extent: bound.map(|extent| (extent, false)) })
        }
        _ => {
            let message = format!("no bound was found for the index `{output}`");
            let help = "use // and % with positive divisors, sums and products of the indices";
            Err(NoExtent::Other(Diagnostic::error("unbounded-index", None, message).with_help(help)))
        }
    }
}

/// Whether an index is not negative in any of its cases.
fn is_nonneg_in_all_cases(output: &Expr, ranges: &Ranges) -> bool {
    let Some(cases) = cases(std::slice::from_ref(&bits_as_arithmetic(output, ranges)), ranges) else { return false };
    cases.iter().all(|case| {
        let poly = case.exprs.first().and_then(|expr| Simplifier::new(&case.ranges).poly(expr));
        poly.is_some_and(|poly| case.ranges.prove_nonneg(&poly))
    })
}

/// Returns the largest bound of all cases, if it is provably the largest.
fn bound_of_cases(output: &Expr, ranges: &Ranges) -> Option<Poly> {
    let cases = cases(std::slice::from_ref(&bits_as_arithmetic(output, ranges)), ranges)?;
    let mut bounds = Vec::new();
    for case in &cases {
        let poly = Simplifier::new(&case.ranges).poly(case.exprs.first()?)?;
        bounds.push(case.ranges.greatest(&poly)?.plus_const(1)?);
    }
    let greatest = bounds
        .iter()
        .find(|bound| bounds.iter().all(|other| bound.minus(other).is_some_and(|gap| ranges.prove_nonneg(&gap))));
    if let Some(greatest) = greatest {
        return Some(greatest.clone());
    }
    // None is the greatest for all extents: the axis has room for each.
    let (simplifier, ty) = (Simplifier::new(ranges), output.dtype().scalar);
    let written = bounds.iter().map(|bound| simplifier.emit(bound, ty)).collect::<Option<Vec<_>>>()?;
    simplifier.poly(&written.into_iter().reduce(|a, b| Expr::binary(BinaryOp::Max, a, b))?)
}

/// Returns a bound of `x ^ y` or `x | y` with `0 <= y < 2^k` and `0 <= x`: the least multiple of `2^k` above `x`.
fn bound_of_bits(output: &Expr, ranges: &Ranges) -> Option<Poly> {
    let Expr::Binary(BinaryOp::BitXor | BinaryOp::BitOr, a, b) = output else { return None };
    let simplifier = Simplifier::new(ranges);
    [(a, b), (b, a)].into_iter().find_map(|(x, y)| {
        let (x, y) = (simplifier.poly(x)?, simplifier.poly(y)?);
        let block = bits_limit(&y, ranges).filter(|_| ranges.prove_nonneg(&x))?;
        let ty = output.dtype().scalar;
        let extent = simplifier.emit(&ranges.greatest(&x)?.plus_const(block)?, ty)?;
        let block = Expr::int_of(block, ty)?;
        simplifier.poly(&(extent.floor_div(block.clone()) * block))
    })
}

/// Describes a negative index for small values of the symbolic extents, if one is found.
fn negative_instance(map: &IndexMap, output: &Expr, assumptions: &[Expr]) -> Option<String> {
    let used = used_vars(map, output);
    instances(map, &[], assumptions).into_iter().find_map(|symbols| {
        let constant = |(var, extent): &(Var, Expr)| Some((var.clone(), extent.eval_index(&symbols).ok()?));
        let used: Vec<(Var, i128)> = used.iter().map(constant).collect::<Option<_>>()?;
        if used.iter().any(|(_, extent)| *extent < 1) {
            return None;
        }
        let bound = Substitution::new(symbols_in_order(&symbols), symbol_values(&symbols)).apply(output);
        let (least, _) = extremes(&bound, &used).ok()??;
        let at = used.iter().map(|(var, _)| var).zip(&least.at).map(|(var, value)| format!("{var} = {value}"));
        let extents =
            symbols_in_order(&symbols).zip(symbol_values(&symbols)).map(|(var, value)| format!("{var} = {value}"));
        let (at, extents): (Vec<_>, Vec<_>) = (at.collect(), extents.collect());
        let message =
            format!("the index `{output}` is {} at {} for {}", least.value, at.join(", "), extents.join(", "));
        (least.value < 0).then_some(message)
    })
}

/// The symbols, sorted: the order of a hash map would change the message from run to run.
fn symbols_in_order(symbols: &Bindings) -> impl Iterator<Item = &Var> {
    let mut vars: Vec<&Var> = symbols.keys().collect();
    vars.sort();
    vars.into_iter()
}

/// The values of the symbols, in the order of [`symbols_in_order`].
fn symbol_values(symbols: &Bindings) -> impl Iterator<Item = Expr> {
    symbols_in_order(symbols).map(|var| Expr::Int { value: symbols[var], ty: var.dtype().scalar })
}

/// Returns the indices of the map that an expression uses, with their extents.
fn used_vars(map: &IndexMap, output: &Expr) -> Vec<(Var, Expr)> {
    let used = output.vars();
    let pairs = map.vars().iter().zip(map.domain()).filter(|(var, _)| used.contains(var));
    pairs.map(|(var, extent)| (var.clone(), extent.clone())).collect()
}

/// Returns the least and the greatest value of an output if all extents are constant and a search finds them.
fn constant_extremes(output: &Expr, used: &[(Var, Expr)]) -> Result<Option<(Attained, Attained)>, NoExtent> {
    let constant = |(var, extent): &(Var, Expr)| Some((var.clone(), extent.as_const_int()?));
    let constant: Option<Vec<(Var, i128)>> = used.iter().map(constant).collect();
    let Some(constant) = constant.filter(|_| output.vars().len() == used.len()) else { return Ok(None) };
    extremes(output, &constant).map_err(|error| NoExtent::Other(undefined(&error)))
}

/// The error of an index that has no value at some point.
fn undefined(error: &EvalError) -> Diagnostic {
    let fault = Diagnostic::error("index-undefined", None, error.to_string());
    let EvalError::Scalar { source, .. } = error else { return fault };
    match source {
        ScalarError::DivisionByZero => fault.with_help("a divisor is different from 0 for every index"),
        ScalarError::ShiftAmount(_) => fault.with_help("an amount is at least 0 and below the bits of the type"),
        ScalarError::Overflow => fault.with_help("use smaller factors or extents"),
        ScalarError::Type => fault,
    }
}

/// Whether a sum reaches the bounds that its atoms' bounds add up to: no variable is in two atoms, and each atom
/// reaches its own bounds.
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

/// Returns the indices in an atom, each once.
fn index_vars(atom: &Atom, ranges: &Ranges) -> Vec<Var> {
    let mut vars = Vec::new();
    atom.each_var(&mut |var| {
        if ranges.is_index(var) && !vars.contains(var) {
            vars.push(var.clone());
        }
    });
    vars
}

/// Whether an atom reaches both of its bounds.
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

/// Whether a polynomial takes every value between its least and its greatest one.
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

/// Whether a contiguous polynomial takes at least `count` values.
fn spans(poly: &Poly, count: &Poly, ranges: &Ranges) -> bool {
    let span = || ranges.greatest(poly)?.minus(&ranges.least(poly)?)?.minus(count)?.plus_const(1);
    span().is_some_and(|span| ranges.prove_nonneg(&span))
}
