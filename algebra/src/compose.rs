//! Composition of maps, and equality of maps.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Diagnostic, Expr, IndexMap};

use super::bits::bits_as_arithmetic;
use super::cases::cases;
use super::extreme::each_point;
use super::physical::ranges_of_map;
use super::ranges::Ranges;
use super::rewrite::Simplifier;
use super::samples::{instances, point};

/// Two maps on a constant domain of at most this many points are compared at every point.
const MAX_POINTS: i128 = 1 << 14;
/// Points at which two maps on a larger domain are compared, for each choice of the symbolic extents.
const SAMPLES: u64 = 256;

/// Returns the map that applies `inner` and then `outer`. Its domain is that of `inner`; its outputs and axis
/// separators are those of `outer`, simplified on that domain. Whether the outputs of `inner` lie in the domain of
/// `outer` is not checked.
///
/// # Errors
/// `rank`: `outer` does not take as many indices as `inner` returns.
///
/// ```
/// use tilewright_algebra::compose;
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [c, p, q] = ["c", "p", "q"].map(Var::index);
/// let split = vec![Expr::from(&c).floor_div(Expr::int(4)), Expr::from(&c).floor_mod(Expr::int(4))];
/// let fused = Expr::from(&p) * Expr::int(4) + Expr::from(&q);
/// let inner = IndexMap::new(vec![c], vec![Expr::int(17)], split, vec![])?;
/// let outer = IndexMap::new(vec![p, q], vec![Expr::int(5), Expr::int(4)], vec![fused], vec![])?;
/// assert_eq!(compose(&outer, &inner)?.to_string(), "lambda c: [c]");
/// assert_eq!(compose(&inner, &inner).unwrap_err().code, "rank");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compose(outer: &IndexMap, inner: &IndexMap) -> Result<IndexMap, Diagnostic> {
    let (given, taken) = (inner.outputs().len(), outer.vars().len());
    if given != taken {
        let message = format!("`{inner}` gives {given} indices, but `{outer}` takes {taken}");
        return Err(Diagnostic::error("rank", None, message));
    }
    let ranges = ranges_of_map(inner, &[]);
    let simplifier = Simplifier::new(&ranges);
    let outputs = outer.apply(inner.outputs());
    let outputs = outputs.iter().map(|output| simplifier.simplify(&bits_as_arithmetic(output, &ranges))).collect();
    let positions = outer.axis_separators().positions().to_vec();
    IndexMap::new(inner.vars().to_vec(), inner.domain().to_vec(), outputs, positions)
        .map_err(|error| Diagnostic::error("index-map", None, error.to_string()))
}

/// Returns whether two maps are equal: they have the same domain, the same axis separators, and the same outputs at
/// every index of the domain. The names of the indices do not matter.
///
/// Returns `None` if neither the normal forms nor the evaluated points decide it. On an empty domain only the normal
/// forms of the outputs are compared.
///
/// ```
/// use tilewright_algebra::equal;
/// use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};
/// let map = |output: fn(Expr) -> Expr| {
///     let i = Var::index("i");
///     let outputs = vec![output(Expr::from(&i))];
///     IndexMap::new(vec![i], vec![Expr::from(Var::index("n"))], outputs, vec![])
/// };
/// let shift = map(|i| Expr::binary(BinaryOp::Shr, i, Expr::int(2)))?;
/// let same_domain = |output| IndexMap::new(shift.vars().to_vec(), shift.domain().to_vec(), vec![output], vec![]);
/// let i = Expr::from(&shift.vars()[0]);
/// assert_eq!(equal(&shift, &same_domain(i.clone().floor_div(Expr::int(4)))?, &[]), Some(true));
/// assert_eq!(equal(&shift, &same_domain(i.floor_div(Expr::int(5)))?, &[]), Some(false));
/// # Ok::<(), tilewright_ir::IndexMapError>(())
/// ```
pub fn equal(a: &IndexMap, b: &IndexMap, assumptions: &[Expr]) -> Option<bool> {
    let ranks = |map: &IndexMap| (map.vars().len(), map.outputs().len());
    if ranks(a) != ranks(b) || a.axis_separators() != b.axis_separators() {
        return Some(false);
    }
    let ranges = ranges_of_map(a, assumptions);
    let renamed = Substitution::new(b.vars(), a.vars().iter().map(Expr::from));
    let others: Vec<Expr> = b.outputs().iter().map(|output| renamed.apply(output)).collect();
    let domains = a.domain().iter().zip(b.domain()).all(|(x, y)| have_same_normal_form(x, y, &ranges));
    if domains && a.outputs().iter().zip(&others).all(|(x, y)| have_same_normal_form(x, y, &ranges)) {
        return Some(true);
    }
    let b = IndexMap::new(a.vars().to_vec(), b.domain().to_vec(), others, Vec::new()).ok()?;
    let more: Vec<Expr> = b.domain().iter().chain(b.outputs()).cloned().collect();
    let free: Vec<Expr> =
        more.into_iter().filter(|expr| !expr.vars().iter().any(|var| a.vars().contains(var))).collect();
    for symbols in instances(a, &free, assumptions) {
        match compared_at_points(a, &b, &symbols) {
            Some(true) if symbols.is_empty() && domains => return Some(true),
            Some(false) => return Some(false),
            _ => {}
        }
    }
    None
}

/// Whether two expressions have the same normal form in every case of their conditions.
fn have_same_normal_form(a: &Expr, b: &Expr, ranges: &Ranges) -> bool {
    let exprs = [bits_as_arithmetic(a, ranges), bits_as_arithmetic(b, ranges)];
    cases(&exprs, ranges).is_some_and(|cases| {
        cases.iter().all(|case| {
            let simplifier = Simplifier::new(&case.ranges);
            case.exprs[0] == case.exprs[1]
                || simplifier.poly(&case.exprs[0]).is_some_and(|x| Some(x) == simplifier.poly(&case.exprs[1]))
        })
    })
}

/// Compares two maps by evaluation. Returns `Some(false)` if they differ at some point, `Some(true)` only if every
/// point of the domain was compared, otherwise `None`.
fn compared_at_points(a: &IndexMap, b: &IndexMap, symbols: &Bindings) -> Option<bool> {
    let values = |map: &IndexMap| -> Option<Vec<i128>> {
        map.domain().iter().map(|extent| extent.eval_index(symbols).ok()).collect()
    };
    let extents = values(a)?;
    if extents != values(b)? {
        return Some(false);
    }
    let agree = |at: &[i128]| a.eval(at, symbols) == b.eval(at, symbols);
    let size = extents.iter().try_fold(1i128, |size, extent| size.checked_mul(*extent));
    if size.is_some_and(|size| size <= MAX_POINTS) {
        return Some(each_point(&extents, agree));
    }
    let differ = (0..SAMPLES).any(|seed| !agree(&point(&extents, seed)));
    differ.then_some(false)
}
