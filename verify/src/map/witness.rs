//! Candidates for an index that reaches the end of a physical axis: corners of the domain and of the divisions in the
//! output.
//!
//! Candidates are expressions in the symbolic extents. They are evaluated on small shapes first, and only those that reach
//! the end there are given to Z3. If no single candidate works for all shapes, a few that cover them together are.
//!
//! ```text
//! lambda c: [c // 4, c % 4] on (n) into (ceil(n / 4), 4)
//!   axis 0    c = n - 1 for all shapes
//!   axis 1    c = min(n, 4) - 1 reaches the last index 3 only if n >= 4
//! ```

use std::fmt;

use tilewright_ir::{BinaryOp, Bindings, Expr, Var};

use super::case::Case;
use super::instance::Instance;
use super::value;
use crate::term::Prop;
use crate::translate::Names;

/// Greatest number of candidates for one index variable.
const VALUES: usize = 20;
/// Greatest number of candidates for all index variables together.
const TUPLES: usize = 600;
/// Number of small shapes on which they are tried.
const SHAPES: usize = 48;
/// Greatest number of candidates given to Z3.
const PROOFS: usize = 3;

/// Some index tuples, one of which reaches the end of the axis.
#[derive(Debug)]
pub(super) struct Cases {
    /// The index variables.
    vars: Vec<Var>,
    /// The values of the variables, as expressions in the symbolic extents.
    tuples: Vec<Vec<Expr>>,
    /// Where they are among the candidates, which follow from the text of the map.
    pub(super) places: Places,
}

/// For each tuple, the position of the value of each variable among its candidates.
pub(super) type Places = Vec<Vec<usize>>;

impl fmt::Display for Cases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tuple = |tuple: &Vec<Expr>| {
            let parts: Vec<_> = self.vars.iter().zip(tuple).map(|(var, value)| format!("{var} = {value}")).collect();
            parts.join(", ")
        };
        let all: Vec<_> = self.tuples.iter().map(tuple).collect();
        f.write_str(&all.join(" or "))
    }
}

/// The proposition that one of the tuples is an index of the domain and reaches the end of the axis.
pub(super) fn goal(case: &Case<'_>, axis: usize, cases: &Cases, names: &mut Names) -> Prop {
    let map = case.claim.map;
    let reached = cases.tuples.iter().map(|tuple| {
        let mut parts = Vec::new();
        for (var, value) in cases.vars.iter().zip(tuple) {
            let extent =
                map.vars().iter().position(|own| own == var).map(|position| names.term(&map.domain()[position]));
            let value = names.term(value);
            if let Some(extent) = extent {
                parts.push(value.at_least(0).and(value.less(extent)));
            }
            names.bind(var, value);
        }
        if let Some(predicate) = case.claim.predicate {
            parts.push(value::has_value(predicate, names));
            parts.push(names.prop(predicate));
        }
        let (index, extent) = (names.term(&map.outputs()[axis]), names.term(&case.claim.shape[axis]));
        parts.push(index.equals(&extent - 1));
        Prop::all(parts)
    });
    let reached: Vec<Prop> = reached.collect();
    match <[Prop; 1]>::try_from(reached) {
        Ok([only]) => only,
        Err(several) => Prop::any(several),
    }
}

/// The index variables that an axis depends on, and the candidates for the value of each.
struct Values {
    /// Their positions among the index variables.
    used: Vec<usize>,
    vars: Vec<Var>,
    of_each: Vec<Vec<Expr>>,
}

impl Values {
    fn of(case: &Case<'_>, axis: usize) -> Self {
        let map = case.claim.map;
        let output = &map.outputs()[axis];
        let mut read = output.vars();
        read.extend(case.claim.predicate.map(Expr::vars).unwrap_or_default());
        let used: Vec<usize> = (0..map.vars().len()).filter(|at| read.contains(&map.vars()[*at])).collect();
        let vars: Vec<Var> = used.iter().map(|at| map.vars()[*at].clone()).collect();
        let (divisors, shifts) = (divisors(output, map.vars()), shifts(output));
        let values = used.iter().map(|at| values(&map.domain()[*at], &divisors, &shifts)).collect();
        Self { used, vars, of_each: values }
    }

    /// The tuples at some places; `None` if there is no value at one of them.
    fn cases(&self, places: Places) -> Option<Cases> {
        let tuple = |places: &Vec<usize>| {
            let fits = places.len() == self.of_each.len();
            let values = self.of_each.iter().zip(places).map(|(values, &at)| values.get(at).cloned());
            fits.then(|| values.collect::<Option<Vec<Expr>>>()).flatten()
        };
        let tuples = places.iter().map(tuple).collect::<Option<Vec<_>>>()?;
        Some(Cases { vars: self.vars.clone(), tuples, places })
    }
}

/// The candidates for an axis: those that were remembered, then the simplest first. Each is computed when it is asked for: mostly the
/// first one suffices.
pub(super) fn candidates<'c>(
    case: &'c Case<'_>,
    axis: usize,
    remembered: Option<Places>,
) -> impl Iterator<Item = Cases> + 'c {
    let values = Values::of(case, axis);
    let known = remembered.and_then(|places| values.cases(places));
    known.into_iter().chain(std::iter::once_with(move || searched(case, axis, values)).flatten())
}

/// The candidates for an axis that reach its end on small shapes.
fn searched<'c>(case: &'c Case<'_>, axis: usize, values: Values) -> impl Iterator<Item = Cases> + 'c {
    let tuples = tuples(&values.of_each);
    let shapes: Vec<&Instance<'_>> = case.constant().into_iter().chain(case.small()).take(SHAPES).collect();
    let (mut rest, mut n_single, mut is_covered) = (0..tuples.len(), 0, false);
    std::iter::from_fn(move || {
        let cases = |which: Vec<usize>| values.cases(which.into_iter().map(|at| tuples[at].clone()).collect());
        let hits = |at: usize, shape: &Instance<'_>| reaches(shape, axis, &values, &tuples[at]);
        // Tuples that reach the end on all small shapes are tried first, one at a time. Only if there is none, several
        // are combined to cover the shapes.
        if n_single < PROOFS
            && let Some(at) = rest.find(|&at| shapes.iter().all(|shape| hits(at, shape)))
        {
            n_single += 1;
            return cases(vec![at]);
        }
        if n_single > 0 || std::mem::replace(&mut is_covered, true) {
            return None;
        }
        let hits = (0..tuples.len()).map(|at| shapes.iter().map(|shape| hits(at, shape)).collect());
        cover(&hits.collect::<Vec<_>>(), shapes.len()).and_then(cases)
    })
}

/// Whether a tuple is in the domain and reaches the end of an axis, for one shape.
fn reaches(shape: &Instance<'_>, axis: usize, values: &Values, tuple: &[usize]) -> bool {
    let mut bindings: Bindings = shape.symbols.clone();
    for ((&at, values), &place) in values.used.iter().zip(&values.of_each).zip(tuple) {
        let Some(value) = values.get(place) else { return false };
        let value = value.eval_index(&shape.symbols).ok().filter(|value| (0..shape.domain[at]).contains(value));
        let Some(value) = value else { return false };
        bindings.insert(shape.claim.map.vars()[at].clone(), value);
    }
    if let Some(predicate) = shape.claim.predicate
        && !predicate.eval_index(&bindings).is_ok_and(|holds| holds != 0)
    {
        return false;
    }
    shape.claim.map.outputs()[axis].eval_index(&bindings).is_ok_and(|index| index + 1 == shape.shape[axis])
}

/// At most four candidates such that for every shape one of them reaches the end, chosen greedily.
fn cover(hits: &[Vec<bool>], shapes: usize) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = (0..shapes).collect();
    let mut chosen = Vec::new();
    while !open.is_empty() && chosen.len() < 4 {
        let count = |at: usize| open.iter().filter(|shape| hits[at][**shape]).count();
        let best = (0..hits.len()).rev().max_by_key(|at| count(*at)).filter(|at| count(*at) > 0)?;
        open.retain(|shape| !hits[best][*shape]);
        chosen.push(best);
    }
    open.is_empty().then_some(chosen)
}

/// The divisors in an expression that do not depend on the indices.
fn divisors(output: &Expr, indices: &[Var]) -> Vec<Expr> {
    let mut found: Vec<Expr> = Vec::new();
    output.walk(&mut |part| {
        if let Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, _, by) = part
            && !by.vars().iter().any(|var| indices.contains(var))
            && !found.contains(by)
        {
            found.push((**by).clone());
        }
    });
    found
}

/// The constants that are added or subtracted in an expression.
fn shifts(output: &Expr) -> Vec<i128> {
    let mut found = Vec::new();
    output.walk(&mut |part| {
        if let Expr::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) = part {
            let constant = a.as_const_int().or(b.as_const_int()).filter(|by| *by != 0 && !found.contains(by));
            found.extend(constant);
        }
    });
    found
}

/// Candidate values for an index of this extent: both ends of the axis, the ends of the blocks that divisions make of it,
/// and the indices that a rotation moves to the end.
fn values(extent: &Expr, divisors: &[Expr], shifts: &[i128]) -> Vec<Expr> {
    let of_type = |value| Expr::Int { value, ty: extent.dtype().scalar };
    let last = |end: Expr| end - of_type(1);
    let mut found = vec![last(extent.clone()), of_type(0)];
    for by in shifts.iter().filter(|by| by.abs() < 1 << 30).take(3) {
        let turned = extent.clone() - of_type(1 + by);
        found.push(turned.floor_mod(extent.clone()));
    }
    for by in divisors.iter().filter(|by| by.dtype() == extent.dtype()) {
        let whole = || extent.clone().floor_div(by.clone()) * by.clone();
        found.push(last(Expr::binary(BinaryOp::Min, extent.clone(), by.clone())));
        found.push(last(by.clone()));
        found.push(last(whole()));
        // The end of the first block of a reversed or rotated axis.
        let least = || Expr::binary(BinaryOp::Min, extent.clone(), by.clone());
        found.push(extent.clone() - least());
        for shift in shifts.iter().filter(|by| by.abs() < 1 << 30).take(2) {
            found.push((least() - of_type(1 + shift)).floor_mod(extent.clone()));
        }
        found.push(last(extent.clone()).floor_div(by.clone()) * by.clone());
    }
    found.truncate(VALUES);
    found
}

/// Combinations of the values by their positions, up to [`TUPLES`], those of early values first.
fn tuples(values: &[Vec<Expr>]) -> Places {
    let mut found: Vec<Vec<usize>> = vec![Vec::new()];
    // With many index variables a single tuple is long, so fewer of them are made.
    let limit = (TUPLES / (1 + values.len() / 16)).max(2);
    for values in values {
        let most = (limit / found.len()).clamp(1, values.len());
        found = found
            .into_iter()
            .flat_map(|tuple| {
                (0..most).map(move |value| {
                    let mut longer = tuple.clone();
                    longer.push(value);
                    longer
                })
            })
            .collect();
    }
    found.sort_by_key(|tuple| tuple.iter().sum::<usize>());
    found
}
