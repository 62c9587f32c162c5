//! Equations that are linear over GF(2): each bit of the value is an exclusive or of bits of the indices.
//!
//! Each index is below a power of two. Linearity is tested by evaluation at sample points; the caller tries the whole
//! inverse afterwards. The bits of the indices follow by Gaussian elimination, and are written as exclusive ors of
//! shifted and masked values.

use tilewright_ir::{BinaryOp, Bindings, Expr, Var};

use super::super::bits::{bits_as_arithmetic, xor_of};
use super::super::poly::Poly;
use super::super::rewrite::Simplifier;
use super::super::samples::point;
use super::solve::Solver;

/// Bits of all indices together that the elimination handles; rows of the matrix are 64-bit sets.
const MAX_BITS: usize = 48;
/// Points at which linearity is tested.
const SAMPLES: u64 = 256;

/// A linear equation: for each index bit the bits of the left side that it flips, and the right side combined with the
/// left side at 0.
struct Row {
    columns: Vec<i128>,
    value: Expr,
}

/// Solves the linear equations among the open ones. Returns whether an index was found.
pub(super) fn solve(solver: &mut Solver<'_>) -> bool {
    solved_indices(solver).is_some_and(|found| {
        let any = !found.is_empty();
        solver.solved.extend(found);
        any
    })
}

/// Returns the indices that the linear equations determine.
fn solved_indices(solver: &Solver<'_>) -> Option<Vec<(Var, Poly)>> {
    let simplifier = Simplifier::new(solver.ranges);
    let ty = solver.map.vars().first()?.dtype().scalar;
    let mut equations: Vec<(Expr, Expr)> = Vec::new();
    for (expr, value) in &solver.opaque {
        equations.push((expr.clone(), simplifier.emit(value, ty)?));
    }
    for (sum, value) in &solver.open {
        let (known, unknown) = solver.known_part(sum)?;
        let sum = unknown.into_iter().try_fold(Poly::default(), |sum, term| sum.plus(&term.into()))?;
        equations.push((simplifier.emit(&sum, ty)?, simplifier.emit(&value.minus(&known)?, ty)?));
    }
    let mut vars: Vec<Var> = Vec::new();
    for (expr, _) in &equations {
        for var in solver.unknowns(expr.vars()) {
            if !vars.contains(&var) {
                vars.push(var);
            }
        }
    }
    // An index whose extent is no power of two still has this many bits; values above the extent do not occur.
    let widths: Vec<u32> = vars.iter().map(|var| width(solver, var)).collect::<Option<_>>()?;
    let bits: Vec<(usize, u32)> =
        widths.iter().enumerate().flat_map(|(at, width)| (0..*width).map(move |bit| (at, bit))).collect();
    if bits.is_empty() || bits.len() > MAX_BITS {
        return None;
    }
    let rows: Vec<Row> = equations.iter().filter_map(|(expr, value)| row(expr, value, &vars, &widths, &bits)).collect();
    let solution = eliminate(&rows, bits.len());
    let mut found = Vec::new();
    for (at, var) in vars.iter().enumerate() {
        let own: Option<Vec<&Combination>> = bits
            .iter()
            .zip(&solution)
            .filter(|((index, _), _)| *index == at)
            .map(|(_, combination)| combination.as_ref())
            .collect();
        if let Some(value) = own.and_then(|own| written(solver, &rows, &own)) {
            found.push((var.clone(), value));
        }
    }
    Some(found)
}

/// Returns the number of bits of the greatest value of an index with a constant extent.
fn width(solver: &Solver<'_>, var: &Var) -> Option<u32> {
    let axis = solver.map.vars().iter().position(|other| other == var)?;
    let last = solver.map.domain()[axis].as_const_int()? - 1;
    (0..1 << 40).contains(&last).then(|| 128 - last.leading_zeros())
}

/// Returns the matrix of an equation, or `None` if a sample shows that it is not linear.
fn row(expr: &Expr, value: &Expr, vars: &[Var], widths: &[u32], bits: &[(usize, u32)]) -> Option<Row> {
    let at = |point: &[i128]| {
        let bindings: Bindings = vars.iter().cloned().zip(point.iter().copied()).collect();
        expr.eval_index(&bindings).ok().filter(|value| *value >= 0)
    };
    let zero = at(&vec![0; vars.len()])?;
    let mut columns = Vec::new();
    for (index, bit) in bits {
        let mut point = vec![0; vars.len()];
        point[*index] = 1i128 << bit;
        columns.push(at(&point)? ^ zero);
    }
    let extents: Vec<i128> = widths.iter().map(|width| 1i128 << width).collect();
    let linear = (0..SAMPLES).all(|seed| {
        let point = point(&extents, seed);
        let set = bits.iter().zip(&columns).filter(|((index, bit), _)| point[*index] >> bit & 1 == 1);
        at(&point) == Some(set.fold(zero, |sum, (_, column)| sum ^ column))
    });
    let ty = value.dtype().scalar;
    let value = if zero == 0 { value.clone() } else { xor_of(&[value.clone(), Expr::int_of(zero, ty)?])? };
    linear.then_some(Row { columns, value })
}

/// Bits of right sides, each an equation and a bit position, whose exclusive or is one bit of an index.
type Combination = Vec<(usize, u32)>;

/// Gaussian elimination over GF(2): returns each index bit as bits of the right sides, where they determine it.
fn eliminate(rows: &[Row], n_bits: usize) -> Vec<Option<Combination>> {
    // A line of the system: a set of index bits, and the bits of right sides whose exclusive or it equals.
    let mut lines: Vec<(u64, Combination)> = Vec::new();
    for (equation, row) in rows.iter().enumerate() {
        let used = row.columns.iter().fold(0, |used, column| used | column);
        for bit in (0..64).filter(|bit| used >> bit & 1 == 1) {
            let line = row.columns.iter().enumerate().filter(|(_, column)| **column >> bit & 1 == 1);
            lines.push((line.fold(0, |line, (index, _)| line | 1 << index), vec![(equation, bit)]));
        }
    }
    let mut solution = vec![None; n_bits];
    let mut start = 0;
    for bit in 0..n_bits {
        let Some(pivot) = (start..lines.len()).find(|&line| lines[line].0 >> bit & 1 == 1) else { continue };
        lines.swap(start, pivot);
        let (mask, from) = lines[start].clone();
        for (position, (other, sources)) in lines.iter_mut().enumerate() {
            if position != start && *other >> bit & 1 == 1 {
                *other ^= mask;
                for source in &from {
                    match sources.iter().position(|other| other == source) {
                        Some(there) => drop(sources.swap_remove(there)),
                        None => sources.push(*source),
                    }
                }
            }
        }
        start += 1;
    }
    for (mask, from) in lines {
        if mask.is_power_of_two() {
            solution[mask.trailing_zeros() as usize].get_or_insert(from);
        }
    }
    solution
}

/// Writes an index, given its bits from the least significant on.
fn written(solver: &Solver<'_>, rows: &[Row], bits: &[&Combination]) -> Option<Poly> {
    // Bits of one right side that move by the same distance share a shift and a mask: `v ^ (v >> 1)` has two groups,
    // however many bits it has.
    let mut groups: Vec<((usize, i64), i128)> = Vec::new();
    for (to, combination) in bits.iter().enumerate() {
        for (equation, from) in *combination {
            let key = (*equation, i64::from(*from) - i64::try_from(to).ok()?);
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, mask)) => *mask |= 1 << to,
                None => groups.push((key, 1 << to)),
            }
        }
    }
    groups.sort_unstable();
    let simplifier = Simplifier::new(solver.ranges);
    let mut operands = Vec::new();
    for ((equation, distance), mask) in groups {
        let value = rows[equation].value.clone();
        let ty = value.dtype().scalar;
        let by = Expr::int_of(1i128 << distance.unsigned_abs(), ty)?;
        let moved = if distance >= 0 { value.floor_div(by) } else { value * by };
        let masked = Expr::binary(BinaryOp::BitAnd, moved, Expr::int_of(mask, ty)?);
        operands.push(simplifier.simplify(&bits_as_arithmetic(&masked, solver.ranges)));
    }
    if operands.is_empty() {
        return Some(Poly::default());
    }
    simplifier.poly(&bits_as_arithmetic(&xor_of(&operands)?, solver.ranges))
}
