//! Subspaces: a map over outer and inner variables as a map of blocks and a map inside a block.
//!
//! ```text
//! lambda i, j: [i // 4, i % 4 * 8 + j]   with j inner, j < 8
//! outer: lambda i: [i // 4, i % 4]       inner: lambda j: [0, j]   in blocks of [1, 8]
//! ```

use tilewright_ir::{Diagnostic, Expr, IndexMap, Var};

use super::bits::bits_as_arithmetic;
use super::divide::split;
use super::physical::{physical_shape, ranges_of_map};
use super::poly::Poly;
use super::rewrite::Simplifier;

/// Splits a map into an outer map over the variables that are not in `inner`, and an inner map over those that are,
/// each in the order of the map. On every axis the output of the map is `outer * extent + inner`, where `extent` is
/// the physical extent of the inner map ([`physical_shape`]): the index of a block, and the index inside the block.
/// TVM calls this `subspace_divide`.
///
/// Every output must be the sum of a part that uses only outer variables and a part that uses only inner ones. The
/// inner part must not be negative, and its extent must divide every term of the outer part.
///
/// # Errors
/// `unknown-name`: a variable of `inner` is no parameter of the map. `no-subspace`: an output is no such sum.
///
/// ```
/// use tilewright_algebra::subspace_split;
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [i, j] = ["i", "j"].map(Var::index);
/// let (outer, place) = (Expr::from(&i), Expr::from(&i).floor_mod(Expr::int(4)) * Expr::int(8) + Expr::from(&j));
/// let outputs = vec![outer.floor_div(Expr::int(4)), place];
/// let map = IndexMap::new(vec![i, j.clone()], vec![Expr::int(13), Expr::int(8)], outputs, vec![])?;
/// let (outer, inner) = subspace_split(&map, &[j])?;
/// assert_eq!(outer.to_string(), "lambda i: [i // 4, i % 4]");
/// assert_eq!(inner.to_string(), "lambda j: [0, j]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn subspace_split(map: &IndexMap, inner: &[Var]) -> Result<(IndexMap, IndexMap), Diagnostic> {
    if let Some(var) = inner.iter().find(|var| !map.vars().contains(var)) {
        let message = format!("`{var}` is no parameter of the map `{map}`");
        return Err(Diagnostic::error("unknown-name", None, message));
    }
    let ranges = ranges_of_map(map, &[]);
    let simplifier = Simplifier::new(&ranges);
    let no_split = |output: &Expr, reason: &str| {
        let message = format!("the output `{output}` does not split into outer and inner indices: {reason}");
        let help = "each output is a multiple of the inner part's extent, of outer indices only, plus an inner part";
        Diagnostic::error("no-subspace", None, message).with_help(help)
    };
    let (mut outer_parts, mut inner_parts): (Vec<Poly>, Vec<Expr>) = (Vec::new(), Vec::new());
    for output in map.outputs() {
        let poly = simplifier.poly(&bits_as_arithmetic(output, &ranges));
        let poly = poly.ok_or_else(|| no_split(output, "it may have no value, or is too large a sum"))?;
        let is_inner = |var: &Var| inner.contains(var);
        let is_outer = |var: &Var| map.vars().contains(var) && !inner.contains(var);
        let (inner_terms, outer_terms) = poly.split(|term| Poly::from(term.clone()).vars().iter().any(is_inner));
        if inner_terms.vars().iter().any(is_outer) {
            return Err(no_split(output, "an outer and an inner index meet in one of its terms"));
        }
        let emitted = simplifier.emit(&inner_terms, output.dtype().scalar);
        inner_parts.push(emitted.ok_or_else(|| no_split(output, "a number does not fit the index type"))?);
        outer_parts.push(outer_terms);
    }
    let map_over = |wanted: bool, outputs: Vec<Expr>, positions: Vec<usize>| {
        let axes = map.vars().iter().zip(map.domain()).filter(|(var, _)| inner.contains(var) == wanted);
        let (vars, domain) = axes.map(|(var, extent)| (var.clone(), extent.clone())).unzip();
        IndexMap::new(vars, domain, outputs, positions)
            .map_err(|error| Diagnostic::error("index-map", None, error.to_string()))
    };
    let inner_map = map_over(true, inner_parts, Vec::new())?;
    // The extent of the inner part is known only now, so the outer parts are divided in a second pass.
    let block = physical_shape(&inner_map, &[])?;
    let mut outer_outputs = Vec::new();
    for ((part, extent), output) in outer_parts.iter().zip(&block.extents).zip(map.outputs()) {
        let whole = simplifier.poly(extent).filter(|extent| !extent.is_zero()).and_then(|extent| split(part, &extent));
        let whole = whole
            .filter(|(_, rest)| rest.is_zero())
            .and_then(|(whole, _)| simplifier.emit(&whole, output.dtype().scalar));
        let reason = format!("the extent {extent} of the inner part does not divide the outer part");
        outer_outputs.push(whole.ok_or_else(|| no_split(output, &reason))?);
    }
    Ok((map_over(false, outer_outputs, map.axis_separators().positions().to_vec())?, inner_map))
}
