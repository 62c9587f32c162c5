//! Conditions: negation, and simplification of conjunctions and disjunctions under what else is known.

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Expr, UnaryOp};

use super::poly::{Atom, Poly, Term};
use super::ranges::Ranges;
use super::rewrite::Simplifier;

/// Returns the negation of a condition, with `not` moved inwards as far as possible.
///
/// ```
/// use tilewright_algebra::negate;
/// use tilewright_ir::{Expr, Var};
/// let [i, j] = ["i", "j"].map(|name| Expr::from(Var::index(name)));
/// let inside = i.lt(Expr::int(7)).and(j.lt(Expr::int(9)));
/// assert_eq!(negate(&inside).to_string(), "i >= 7 or j >= 9");
/// ```
pub fn negate(condition: &Expr) -> Expr {
    match condition {
        Expr::Int { value, .. } => Expr::bool(*value == 0),
        Expr::Unary(UnaryOp::Not, inner) => (**inner).clone(),
        Expr::Binary(BinaryOp::And, a, b) => Expr::binary(BinaryOp::Or, negate(a), negate(b)),
        Expr::Binary(BinaryOp::Or, a, b) => negate(a).and(negate(b)),
        Expr::Binary(op, a, b) => match opposite(*op) {
            Some(op) => Expr::Binary(op, a.clone(), b.clone()),
            None => Expr::unary(UnaryOp::Not, condition.clone()),
        },
        Expr::Float { .. }
        | Expr::Var(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::Select(..)
        | Expr::IfThenElse(..)
        | Expr::Cast(..)
        | Expr::Ramp { .. }
        | Expr::Broadcast { .. }
        | Expr::Load { .. } => Expr::unary(UnaryOp::Not, condition.clone()),
    }
}

/// Returns the comparison that holds exactly where `op` does not; `None` for other operators.
fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt if sabotage::on("negation-loses-equality") => BinaryOp::Gt,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Min | BinaryOp::Max => return None,
        BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => return None,
        BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => return None,
        BinaryOp::Shl | BinaryOp::Shr => return None,
    })
}

/// Returns the conjunction of the conditions, each simplified under those before it, without the ones that the others
/// imply.
pub(super) fn all_of(conditions: &[Expr], ranges: &Ranges) -> Expr {
    let mut kept: Vec<Expr> = Vec::new();
    let mut known = ranges.clone();
    for condition in conditions.iter().flat_map(conjuncts) {
        let condition = tidy(&condition, &known);
        match condition.as_const_int() {
            Some(0) => return condition,
            Some(_) => {}
            None => {
                known = known.assuming(&condition);
                kept.extend(conjuncts(&condition));
            }
        }
    }
    // An early condition may follow from later ones, so each is simplified once more under all others.
    let mut position = 0;
    while position < kept.len() && kept.len() > 1 {
        let others = kept.iter().enumerate().filter(|(other, _)| *other != position);
        let known = others.fold(ranges.clone(), |known, (_, condition)| known.assuming(condition));
        let condition = tidy(&kept[position], &known);
        match condition.as_const_int() {
            Some(0) => return condition,
            Some(_) => drop(kept.remove(position)),
            None => {
                kept[position] = condition;
                position += 1;
            }
        }
    }
    kept.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))
}

/// Returns the disjunction of the conditions. Conjuncts that all of them share are factored out; the rest are
/// simplified as the negation of a conjunction.
pub(super) fn any_of(conditions: &[Expr], ranges: &Ranges) -> Expr {
    let Some((first, others)) = conditions.split_first() else { return Expr::bool(false) };
    if others.is_empty() {
        return first.clone();
    }
    let (common, _): (Vec<Expr>, Vec<Expr>) =
        conjuncts(first).into_iter().partition(|part| others.iter().all(|other| conjuncts(other).contains(part)));
    let rest = |condition: &Expr| {
        let own = conjuncts(condition).into_iter().filter(|part| !common.contains(part));
        own.reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))
    };
    let none: Vec<Expr> = conditions.iter().map(|condition| negate(&rest(condition))).collect();
    let either = negate(&all_of(&none, ranges));
    let all: Vec<Expr> = common.into_iter().chain([either]).collect();
    all_of(&all, ranges)
}

/// Returns the operands of nested conjunctions; the condition itself if it is none.
pub fn conjuncts(condition: &Expr) -> Vec<Expr> {
    match condition {
        Expr::Binary(BinaryOp::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        other => vec![other.clone()],
    }
}

/// Returns an equal condition in the form in which people write it: `p % 4 == 0` for `p // 4 * 4 == p`, `p >= 4` for
/// `0 <= p - 4`. A condition that is decided becomes a constant.
pub(super) fn tidy(condition: &Expr, ranges: &Ranges) -> Expr {
    match condition {
        Expr::Binary(BinaryOp::And, ..) => return all_of(&conjuncts(condition), ranges),
        Expr::Binary(BinaryOp::Or, ..) => return negate(&all_of(&conjuncts(&negate(condition)), ranges)),
        _ => {}
    }
    let simplifier = Simplifier::new(ranges);
    let simple = simplifier.simplify(condition);
    if ranges.truths.contains(&simple) {
        return Expr::bool(true);
    }
    if ranges.truths.contains(&negate(&simple)) {
        return Expr::bool(false);
    }
    comparison(&simple, &simplifier).unwrap_or(simple)
}

/// Rewrites a comparison of integers: common terms cancel, the leading index is on the left, and coefficients are
/// divided by their common factor. Returns `None` if it is no such comparison.
fn comparison(condition: &Expr, simplifier: &Simplifier<'_>) -> Option<Expr> {
    let Expr::Binary(op, a, b) = condition else { return None };
    opposite(*op)?;
    let gap = simplifier.poly(a)?.minus(&simplifier.poly(b)?)?;
    let (op, gap) = match op {
        BinaryOp::Eq | BinaryOp::Ne => (*op, remainders(&gap)?),
        // Over the integers `a > b` is `a - b - 1 >= 0`, so `>=` and `<` are enough.
        BinaryOp::Gt => (BinaryOp::Ge, gap.plus_const(-1)?),
        BinaryOp::Le => (BinaryOp::Lt, gap.plus_const(-1)?),
        other => (*other, gap),
    };
    let index = |term: &Term| Poly::from(term.clone()).vars().iter().any(|var| simplifier.ranges.is_index(var));
    let leads = gap.terms().find(index).map_or(1, |term| term.coef);
    let (op, gap) = if leads < 0 { mirrored(op, &gap)? } else { (op, gap) };
    let (gap, op) = shortened(gap, op)?;
    let (left, right) = gap.split(|term| term.coef > 0);
    let ty = a.dtype().scalar;
    let written = Expr::binary(op, simplifier.emit(&left, ty)?, simplifier.emit(&right.scaled(-1)?, ty)?);
    // After terms cancelled, the ranges may decide the comparison.
    let decided = simplifier.simplify(&written);
    Some(if decided.as_const_int().is_some() { decided } else { written })
}

/// Divides a comparison by the common factor of all coefficients except the constant: `4*i < 13` is `i < 4`.
fn shortened(gap: Poly, op: BinaryOp) -> Option<(Poly, BinaryOp)> {
    let constant = gap.coef(&Vec::new());
    let moving = gap.plus_const(constant.checked_neg()?)?;
    let by = moving.content();
    if by == 1 {
        return Some((gap, op));
    }
    let whole = moving.divided(&Term { coef: by, mono: Vec::new() })?;
    // whole * by + constant op 0
    let (floor, exact) = (constant.div_euclid(by), constant.rem_euclid(by) == 0);
    Some(match op {
        _ if exact => (whole.plus_const(floor)?, op),
        BinaryOp::Ge | BinaryOp::Gt => (whole.plus_const(floor)?, BinaryOp::Ge),
        BinaryOp::Lt | BinaryOp::Le => (whole.plus_const(floor)?, BinaryOp::Lt),
        // An equality with a constant that the factor does not divide keeps its form; other operators do not occur.
        _ => (gap, op),
    })
}

/// Returns the same comparison with the negated gap: `gap >= 0` is `-gap - 1 < 0`.
fn mirrored(op: BinaryOp, gap: &Poly) -> Option<(BinaryOp, Poly)> {
    let negated = gap.scaled(-1)?;
    Some(match op {
        BinaryOp::Ge => (BinaryOp::Lt, negated.plus_const(-1)?),
        BinaryOp::Lt => (BinaryOp::Ge, negated.plus_const(-1)?),
        other => (other, negated),
    })
}

/// Writes `k * (x // k) - x` as `-(x % k)` if the result has fewer terms.
fn remainders(gap: &Poly) -> Option<Poly> {
    let mut best = gap.clone();
    for Term { mono, .. } in gap.terms() {
        for atom in &mono {
            let Atom::Div(x, by) = atom else { continue };
            let (factor, _) = best.by_atom(atom);
            let Some(times) = by.as_term().and_then(|by| factor.divided(&by)) else { continue };
            // times * (by * (x // by)) = times * (x - x % by)
            let remainder = Poly::from(Atom::Mod(x.clone(), by.clone()));
            let written =
                best.minus(&factor.times(&atom.clone().into())?)?.plus(&times.times(&x.minus(&remainder)?)?)?;
            if written.terms().count() < best.terms().count() {
                best = written;
            }
        }
    }
    Some(best)
}
