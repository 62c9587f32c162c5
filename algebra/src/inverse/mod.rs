//! The inverse of an index map: logical indices from physical ones.
//!
//! ```text
//! lambda c: [c // 4, c % 4]   over c < 17   in [5, 4]
//! inverse: lambda c_outer, c_inner: [c_outer * 4 + c_inner]   padding: c_outer * 4 + c_inner >= 17
//! ```
//!
//! The stages, from the common case to the rare one:
//!
//! 1. Maps whose outputs are ordinary numerals are inverted directly: with constant extents ([`numeral`]), parts of single
//!    indices with symbolic extents ([`parts`]), or row-major numerals of such parts ([`chains`]).
//!
//! 2. In all others, shifts and masks become quotients and remainders, and conditional outputs are split into cases.
//!    Each case is solved by rules ([`solve`]). If there are several cases, the inverse selects the one whose solution
//!    the map takes back to the physical index; the padding follows from the inverse ([`super::padding`]).
//!
//! 3. A small constant map that no rule solves is inverted by [`table`].
//!
//! An inverse from stage 2 or 3 is tried on sample points ([`super::samples`]) before it is returned.

mod chains;
mod known;
mod linear;
mod matrix;
mod numeral;
mod parts;
mod solve;
mod table;

use std::collections::{HashMap, HashSet};

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Diagnostic, Expr, IndexMap, InverseClaim, Var};

use super::bits::bits_as_arithmetic;
use super::cases::{Case, cases};
use super::logic::{any_of, negate};
use super::padding::{reached, without_idle_parts};
use super::physical::ranges_of_map;
use super::ranges::Ranges;
use super::rewrite::Simplifier;
use super::samples::{collision, instances, inverse_holds};
use super::work;
use solve::Solver;

/// Returns the inverse of a map on a physical shape, and its exact padding.
///
/// Inverted are permutations, splits, fusions, offsets, reversals, rotations, skews, strides, shifts, masks, exclusive
/// ors, and cases of such maps, with constants and with symbolic extents; see the module for the method. `assumptions`
/// are conditions on the symbolic extents.
///
/// # Errors
/// `rank`: the shape and the map have different ranks. `not-injective`: the map takes two logical indices, which the
/// message names, to one physical index. `no-inverse`: none was found.
///
/// ```
/// use tilewright_algebra::{inverse, physical_shape};
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let i = Var::index("i");
/// let rotated = (Expr::from(&i) + Expr::int(3)).floor_mod(Expr::int(8));
/// let map = IndexMap::new(vec![i], vec![Expr::int(8)], vec![rotated], vec![])?;
/// let found = inverse(&map, &physical_shape(&map, &[])?.extents, &[])?;
/// assert_eq!(found.lambda(), "lambda i: [(i + 5) % 8]");
/// assert_eq!(found.padding_lambda(), "lambda i: False");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn inverse(map: &IndexMap, physical: &[Expr], assumptions: &[Expr]) -> Result<InverseClaim, Diagnostic> {
    if physical.len() != map.outputs().len() {
        let message = format!("the map has {} outputs, the shape {} axes", map.outputs().len(), physical.len());
        return Err(Diagnostic::error("rank", None, message));
    }
    let _limit = work::limit(work::MAP);
    let vars = physical_vars(map);
    // Under assumptions the padding may have a shorter form, which the rules find.
    let symbolic = || parts::solutions(map, physical, &vars).or_else(|| chains::solutions(map, physical, &vars));
    let symbolic = || assumptions.is_empty().then(symbolic).flatten();
    if let Some((outputs, reached)) = numeral::solutions(map, physical, &vars).or_else(symbolic) {
        return Ok(with_distinct_names(map, physical, InverseClaim { vars, outputs, padding: negate(&reached) }));
    }
    by_rules(map, physical, assumptions, &vars)
}

/// Inverts a map by the rules, or by table; the errors are those of [`inverse`].
fn by_rules(map: &IndexMap, physical: &[Expr], assumptions: &[Expr], vars: &[Var]) -> Result<InverseClaim, Diagnostic> {
    let known = ranges_of_map(map, assumptions);
    let mut ranges = vars.iter().zip(physical).fold(known, |ranges, (var, extent)| ranges.with(var, extent));
    // An inverse found by rules is a guess until it was tried: a wrong one must not be printed as a claim.
    let samples = instances(map, physical, assumptions);
    let tried = |(outputs, reached): (Vec<Expr>, Expr)| {
        let (vars, padding) = (vars.to_vec(), negate(&reached));
        let claim = with_distinct_names(map, physical, InverseClaim { vars, outputs, padding });
        let right = samples.iter().all(|symbols| inverse_holds(map, physical, &claim, symbols));
        right.then_some(claim).ok_or_else(|| "the one that was found is wrong on a sample".to_owned())
    };
    let solved = solutions(map, physical, vars, &mut ranges).and_then(tried);
    let found =
        solved.or_else(|reason| table::solutions(map, physical, vars, &ranges).and_then(tried).map_err(|_| reason));
    found.map_err(|reason| {
        if let Some(pair) = samples.iter().find_map(|symbols| collision(map, symbols)) {
            let message = format!("the map `{map}` is not injective: {pair}");
            return Diagnostic::error("not-injective", None, message).with_help("only an injective map has an inverse");
        }
        let message = format!("no inverse was found for the map `{map}`: {reason}");
        let help = "maps of splits, fusions, offsets, rotations, strides, xors and cases of them are inverted";
        Diagnostic::error("no-inverse", None, message).with_help(help)
    })
}

/// Returns the logical indices in terms of the physical ones, and the condition under which a physical index is
/// reached. Adds the radices of the numerals found to `ranges`, so that quotients by them are written one after the
/// other.
///
/// # Errors
/// The reason, as part of a sentence.
fn solutions(
    map: &IndexMap,
    physical: &[Expr],
    vars: &[Var],
    ranges: &mut Ranges,
) -> Result<(Vec<Expr>, Expr), String> {
    let outputs: Vec<Expr> = map.outputs().iter().map(|output| bits_as_arithmetic(output, ranges)).collect();
    let cases = cases(&outputs, ranges).ok_or("it has too many cases")?;
    let mut solved: Vec<(Expr, Vec<Expr>)> = Vec::new();
    for case in &cases {
        let mut solver = Solver::new(map, &case.ranges);
        solver.assume(&case.path, ranges);
        let values = solver.run(case, vars)?;
        ranges.radices.extend(solver.radices);
        let simplifier = Simplifier::new(ranges);
        let emitted = map.vars().iter().zip(&values).map(|(var, value)| simplifier.emit(value, var.dtype().scalar));
        let values: Vec<Expr> = emitted.collect::<Option<_>>().ok_or("a number in it does not fit its type")?;
        let condition = without_idle_parts(reached_by_case(map, case, vars, &values, ranges)?, vars, physical);
        if condition.as_const_int() != Some(0) {
            solved.push((condition, values));
        }
    }
    // The last case needs no condition, so the one with the longest goes last.
    solved.sort_by_key(|(condition, _)| condition.to_string().len());
    let conditions: Vec<Expr> = solved.iter().map(|(condition, _)| condition.clone()).collect();
    let reached = without_idle_parts(any_of(&conditions, ranges), vars, physical);
    let Some((_, last)) = solved.pop() else {
        return Ok((map.vars().iter().map(zero).collect(), Expr::bool(false)));
    };
    let outputs = solved.into_iter().rev().fold(last, |otherwise, (condition, values)| {
        let choose = |(value, other): (Expr, Expr)| {
            if value == other { value } else { Expr::IfThenElse(condition.clone().into(), value.into(), other.into()) }
        };
        values.into_iter().zip(otherwise).map(choose).collect()
    });
    Ok((outputs, reached))
}

/// Returns the condition under which a physical index comes from this case: its solution is a logical index, the case
/// applies to it, and the map takes it back to the physical index.
fn reached_by_case(
    map: &IndexMap,
    case: &Case,
    vars: &[Var],
    values: &[Expr],
    ranges: &Ranges,
) -> Result<Expr, String> {
    let of_case = IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), case.exprs.clone(), Vec::new());
    let of_case = of_case.map_err(|error| error.to_string())?;
    let back = Substitution::new(map.vars(), values.iter().cloned());
    let path = case.path.iter().map(|condition| back.apply(condition)).collect();
    Ok(reached(&of_case, vars, values, ranges, path))
}

/// The constant 0 in the type of a variable.
fn zero(var: &Var) -> Expr {
    Expr::Int { value: 0, ty: var.dtype().scalar }
}

/// Returns variables for the physical indices, named after the logical indices they are made of: `c_outer`,
/// `n_h_fused`.
fn physical_vars(map: &IndexMap) -> Vec<Var> {
    // The outputs that a variable is in.
    let mut users: HashMap<Var, usize> = HashMap::new();
    for var in map.outputs().iter().flat_map(Expr::vars) {
        *users.entry(var).or_default() += 1;
    }
    let (mut names, mut taken) = (Vec::new(), HashSet::new());
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for output in map.outputs() {
        let base = physical_name(map, output, &users);
        let number = numbers.entry(base.clone()).or_default();
        let mut name = if *number == 0 { base.clone() } else { format!("{base}_{number}") };
        while !taken.insert(name.clone()) {
            *number += 1;
            name = format!("{base}_{number}");
        }
        names.push(name);
    }
    names.into_iter().zip(map.outputs()).map(|(name, output)| Var::new(name, output.dtype())).collect()
}

/// Returns the name, with a number appended if it is taken.
fn unused(base: &str, taken: &[String]) -> String {
    let numbered = (1..).map(|number| format!("{base}_{number}"));
    std::iter::once(base.to_owned()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Returns the name for the physical index that an output computes.
fn physical_name(map: &IndexMap, output: &Expr, users: &HashMap<Var, usize>) -> String {
    let used: Vec<_> = output.vars().into_iter().filter(|var| map.vars().contains(var)).collect();
    let names: Vec<_> = used.iter().map(Var::name).collect();
    // A part of an index is named by which part it is.
    let is_part = |var: &Var| users.get(var).is_some_and(|users| *users > 1);
    let part = match output {
        Expr::Binary(BinaryOp::FloorDiv | BinaryOp::Shr, ..) => "_outer",
        Expr::Binary(BinaryOp::FloorMod | BinaryOp::BitAnd, inner, _) => match **inner {
            Expr::Binary(BinaryOp::FloorDiv | BinaryOp::Shr, ..) => "_mid",
            _ => "_inner",
        },
        // Only divisions are parts; other operators, of whatever kind, keep the plain name.
        _ => "",
    };
    match (names.as_slice(), used.as_slice()) {
        ([], _) => "unit".to_owned(),
        ([name], [var]) => format!("{name}{}", if is_part(var) { part } else { "" }),
        ([_, _] | [_, _, _] | [_, _, _, _], _) => format!("{}_fused", names.join("_")),
        _ => "fused".to_owned(),
    }
}

/// Renames parameters of the inverse that have the name of a symbolic extent used beside them, or of a function of the
/// text form: the printed lambda would mean something else.
fn with_distinct_names(map: &IndexMap, physical: &[Expr], claim: InverseClaim) -> InverseClaim {
    let mut taken: Vec<String> = ["min", "max", "abs", "if_then_else"].map(str::to_owned).to_vec();
    for expr in claim.outputs.iter().chain([&claim.padding]) {
        let symbols = expr.vars().into_iter().filter(|var| !claim.vars.contains(var));
        taken.extend(symbols.map(|var| var.name().to_owned()));
    }
    if claim.vars.iter().all(|var| !taken.iter().any(|name| name == var.name())) {
        return claim;
    }
    // New names must avoid all extents, also those that the claim does not use, and the other parameters.
    let extents = map.domain().iter().chain(physical).flat_map(Expr::vars);
    taken.extend(extents.map(|var| var.name().to_owned()));
    taken.extend(
        claim.vars.iter().map(|var| var.name().to_owned()).filter(|name| !taken.contains(name)).collect::<Vec<_>>(),
    );
    let mut vars: Vec<Var> = Vec::new();
    let clashes = |var: &Var| {
        let free = claim.outputs.iter().chain([&claim.padding]).flat_map(Expr::vars);
        free.into_iter().any(|symbol| !claim.vars.contains(&symbol) && symbol.name() == var.name())
            || ["min", "max", "abs", "if_then_else"].contains(&var.name())
    };
    for var in &claim.vars {
        if clashes(var) {
            let name = unused(&format!("{var}_1"), &taken);
            taken.push(name.clone());
            vars.push(Var::new(name, var.dtype()));
        } else {
            vars.push(var.clone());
        }
    }
    let renamed = Substitution::new(&claim.vars, vars.iter().map(Expr::from));
    let outputs = claim.outputs.iter().map(|output| renamed.apply(output)).collect();
    InverseClaim { outputs, padding: renamed.apply(&claim.padding), vars }
}
