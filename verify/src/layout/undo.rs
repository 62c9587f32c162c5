//! The inverse of a layout, stage by stage from the position back to the logical index.
//!
//! The inverse of a split is `count * size + inside`; an index that is not below the extent before the split is padding. A
//! fold, and the position itself, is a row-major numeral, whose inverse is division: `rest % extent` is the last digit and
//! `rest // extent` the number before it. Each digit takes instances of some lemmas: HornerInverse for one direction,
//! Euclid, DivNonNegative and DivBelow for the other, and DivDiv where two divisions by constants are combined.
//!
//! ```text
//! f32[3,5]{1,0:T(2,2)}    position s in 0..24
//!   numeral    (s // 12, s // 4 % 3, s // 2 % 2, s % 2)      in (2, 3, 2, 2)
//!   split      i0 = (s // 12) * 2 + s // 2 % 2               padding if i0 >= 3
//!              i1 = (s // 4 % 3) * 2 + s % 2                 padding if i1 >= 5
//! ```
//!
//! A position at or beyond the end of the padded array, in the slots of a tail alignment, is padding as well (`beyond`).

use tilewright_ir::{BinaryOp, Expr, InverseClaim, ScalarType, Var};

use super::meaning::{Kind, Stage, product};
use crate::door::{All, Grounds};
use crate::judge::{Decision, Judge, attempt_of, free_vars, unfit};
use crate::kernel::Failure;
use crate::kernel::Rule;
use crate::lemmas::Lemma;
use crate::method::Method;
use crate::obligation::Obligation;
use crate::question::Question;
use crate::reason::Reason;
use crate::term::{BinaryOp as TermOp, Term, TermKind};
use crate::translate::Names;
use crate::verdict::Verdict;

/// The indices before a stage as functions of those after it, and the conditions under which the position is padding.
#[derive(Clone, Debug)]
pub(super) struct Undone {
    /// The indices before the stage.
    pub(super) index: Vec<Expr>,
    /// Conditions of which at least one holds on padding.
    pub(super) padding: Vec<Expr>,
}

/// A constant.
fn number(value: u64, ty: ScalarType) -> Expr {
    Expr::Int { value: value.into(), ty }
}

/// Whether an extent is the constant 1.
fn is_one(extent: &Expr) -> bool {
    extent.as_const_int() == Some(1)
}

/// The digits of a number below the product of the extents, which are their radices. Divisions by constants that follow one
/// another are combined.
fn digits(value: Expr, extents: &[Expr], ty: ScalarType) -> Vec<Expr> {
    let major = extents.iter().position(|extent| !is_one(extent)).unwrap_or(0);
    let (mut rest, mut place) = (value, 1u64);
    let mut found = Vec::new();
    for (axis, extent) in extents.iter().enumerate().rev() {
        let high = rest.clone().floor_div(number(place, ty));
        found.push(if axis > major {
            high.clone().floor_mod(extent.clone())
        } else if axis == major && !is_one(extent) {
            high.clone()
        } else {
            number(0, ty)
        });
        let known = extent.as_const_int().and_then(|extent| place.checked_mul(u64::try_from(extent).ok()?));
        if let Some(product) = known {
            place = product;
        } else {
            (rest, place) = (high.floor_div(extent.clone()), 1);
        }
    }
    found.reverse();
    found
}

/// Whether an extent is a multiple of a size because it has a constant factor that is. False may mean that it is not known.
fn is_multiple(extent: &Expr, size: u64) -> bool {
    match extent {
        Expr::Int { value, .. } => value.rem_euclid(i128::from(size)) == 0,
        Expr::Binary(BinaryOp::Mul, a, b) => is_multiple(a, size) || is_multiple(b, size),
        _ => false,
    }
}

impl Stage {
    /// The inverse of the stage, applied to the indices `after`.
    pub(super) fn undo(&self, after: &[Expr], ty: ScalarType) -> Option<Undone> {
        let before = self.map.domain();
        match &self.kind {
            Kind::Numeral => Some(Undone { index: digits(after.first()?.clone(), before, ty), padding: Vec::new() }),
            Kind::Fold(groups) => {
                let mut index = Vec::new();
                let mut extents = before;
                for (value, &length) in after.iter().zip(groups) {
                    let (group, rest) = extents.split_at_checked(length)?;
                    // An empty group is an extent of 1 that the tile prepended.
                    index.extend(digits(value.clone(), group, ty));
                    extents = rest;
                }
                extents.is_empty().then_some(Undone { index, padding: Vec::new() })
            }
            Kind::Split(sizes) => {
                let leading = before.len().checked_sub(sizes.len())?;
                let mut undone = Undone { index: after.get(..leading)?.to_vec(), padding: Vec::new() };
                for (position, &size) in sizes.iter().enumerate() {
                    let (count, inside) = (after.get(leading + position)?, after.get(before.len() + position)?);
                    let extent = before.get(leading + position)?;
                    let index = count.clone() * number(size, ty) + inside.clone();
                    if !is_multiple(extent, size) {
                        undone.padding.push(Expr::binary(BinaryOp::Ge, index.clone(), extent.clone()));
                    }
                    undone.index.push(index);
                }
                Some(undone)
            }
        }
    }

    /// The inverse of the stage as a claim.
    pub(super) fn inverse(&self, ty: ScalarType) -> Option<InverseClaim> {
        let vars: Vec<Var> = (0..self.extents.len()).map(|axis| Var::new(format!("q{axis}"), ty)).collect();
        let after: Vec<Expr> = vars.iter().map(Expr::from).collect();
        let undone = self.undo(&after, ty)?;
        Some(InverseClaim { vars, outputs: undone.index, padding: either(undone.padding) })
    }

    /// The numbers of digits of the numerals that the stage computes; none for a split.
    fn numerals(&self) -> Vec<usize> {
        match &self.kind {
            Kind::Numeral => vec![self.map.domain().len()],
            Kind::Fold(groups) => groups.clone(),
            Kind::Split(_) => Vec::new(),
        }
    }
}

/// The composition of all inverses: from a position to the logical index, by dimension, and the conditions under which the
/// position is padding.
pub(super) fn composed(
    stages: &[Stage],
    order: &[usize],
    slot: &Expr,
    padded: Option<Expr>,
    ty: ScalarType,
) -> Option<Undone> {
    let mut padding: Vec<Expr> =
        padded.map(|size| Expr::binary(BinaryOp::Ge, slot.clone(), size)).into_iter().collect();
    let mut index = vec![slot.clone()];
    for stage in stages.iter().rev() {
        let undone = stage.undo(&index, ty)?;
        index = undone.index;
        padding.extend(undone.padding);
    }
    let mut logical = vec![number(0, ty); index.len()];
    for (&dimension, index) in order.iter().rev().zip(index) {
        *logical.get_mut(dimension)? = index;
    }
    Some(Undone { index: logical, padding })
}

/// The disjunction of conditions.
pub(super) fn either(conditions: Vec<Expr>) -> Expr {
    let or = |a: Expr, b: Expr| Expr::binary(BinaryOp::Or, a, b);
    conditions.into_iter().reduce(or).unwrap_or_else(|| Expr::bool(false))
}

impl Judge {
    /// Proves that division inverts the numerals of a stage, for all indices and for all numbers below the product of the
    /// extents.
    pub(super) fn numerals(&self, stage: &Stage, assumptions: &[Expr]) -> Decision {
        let mut names = Names::default();
        let symbols = free_vars(stage.map.domain().iter().chain(assumptions), &[]);
        let mut question = self.question(&mut names, &symbols);
        for assumption in assumptions {
            let prop = names.prop(assumption);
            question.guaranteed(&prop, "assumed of the shape by the user");
        }
        let mut extents = stage.map.domain();
        let (mut count, mut asked) = (0, false);
        let mut all = All::default();
        for length in stage.numerals() {
            let Some((group, rest)) = extents.split_at_checked(length) else { break };
            extents = rest;
            count += group.len();
            let group: Vec<Term> = group.iter().map(|extent| names.term(extent)).collect();
            match numeral(&mut question, &mut names, &group, &mut asked) {
                Ok(grounds) => all.add(grounds),
                Err(failure) => return (Verdict::Unknown(failure.reason()), attempt_of(&question)),
            }
        }
        asked |= asks(&question);
        (all.proved(), Method::Numerals { digits: count, asked })
    }
}

/// The reason of a proof that stops because an extent is not shown to be at least 1.
fn not_positive(extent: &Term) -> Reason {
    Reason::undecided(format!("the extent {extent} is at least 1"))
}

/// Whether Z3 showed something to a question.
fn asks(question: &Question) -> bool {
    question.steps().iter().any(|step| step.shown && matches!(step.rule, Rule::Solver(..)))
}

/// Proves that division inverts one numeral `prefix * extent + digit`, digit by digit.
fn numeral(question: &mut Question, names: &mut Names, extents: &[Term], asked: &mut bool) -> Result<Grounds, Failure> {
    let mut all = All::default();
    let sizes: Vec<Term> = extents
        .iter()
        .scan(Term::int(1), |size, extent| {
            *size = &*size * extent;
            Some(size.clone())
        })
        .collect();
    let mut place: Option<i128> = Some(1);
    for (axis, extent) in extents.iter().enumerate().rev() {
        let mut fresh = |name: &str| Term::sym(names.fresh(name));
        let [prefix, digit, rest] = ["prefix", "digit", "rest"].map(&mut fresh);
        if !positive(question, extent) {
            return Err(Failure::NotShown(not_positive(extent)));
        }
        question.index(digit.free_symbols().into_iter().chain(rest.free_symbols()));
        let mut fork = question.fork();
        // Division recovers prefix and digit from the number.
        fork.assume(&digit.at_least(0).and(digit.less(extent)), "a digit");
        let range = [digit.at_least(0), digit.less(extent)];
        let values = [("q", &prefix), ("r", &digit), ("d", extent)];
        all.add(fork.lemma(Lemma::HornerInverse, &values, &range)?);
        // A number below the product is the numeral of its digits, which are in range.
        let before = axis.checked_sub(1).map_or_else(|| Term::int(1), |axis| sizes[axis].clone());
        let bounded = rest.less(&before * extent);
        fork.assume(&rest.at_least(0).and(bounded.clone()), "a number");
        let using = [rest.at_least(0), bounded, extent.at_least(1)];
        let values = [("a", &rest), ("b", extent), ("n", &before)];
        for lemma in [Lemma::Euclid, Lemma::DivNonNegative, Lemma::DivBelow] {
            all.add(fork.lemma(lemma, &values, &using)?);
        }
        // `digits` combines divisions by constants that follow one another.
        let known = extent.as_const();
        if let (Some(so_far), Some(_)) = (place.filter(|&place| place > 1), known) {
            let so_far = Term::int(so_far);
            let values = [("x", &rest), ("a", &so_far), ("b", extent)];
            all.add(fork.lemma(Lemma::DivDiv, &values, &[])?);
        }
        place = known.map_or(Some(1), |extent| place?.checked_mul(extent));
        fork.keep_proof("layout numeral");
        *asked |= asks(&fork);
    }
    Ok(all.grounds())
}

/// Whether an extent is shown to be at least 1. Extents are products, or numbers of tiles that cover another extent.
fn positive(question: &mut Question, extent: &Term) -> bool {
    if let TermKind::Binary(TermOp::FloorDiv, padded, _) = extent.kind()
        && let TermKind::Binary(TermOp::Add, covered, _) = padded.kind()
    {
        positive(question, covered);
    }
    question.positive(extent)
}

/// Decides the obligation `id` (inverse or padding) of a stage and its inverse.
pub(super) fn undoes(judge: &Judge, id: Obligation, stage: &Stage, assumptions: &[Expr], ty: ScalarType) -> Decision {
    match &stage.kind {
        Kind::Numeral | Kind::Fold(_) => judge.numerals(stage, assumptions),
        Kind::Split(_) => {
            let Some(inverse) = stage.inverse(ty) else {
                return unfit("the stage cannot be undone");
            };
            let claim = crate::map::MapClaim::new(&stage.map, &stage.extents).assuming(assumptions).inverse(&inverse);
            crate::map::decide(judge, id, claim)
        }
    }
}

/// The number of elements of the padded array, if the allocation may have slots beyond them.
pub(super) fn beyond(stages: &[Stage], tail: &Expr, ty: ScalarType) -> Option<Expr> {
    let padded = product(stages.last()?.map.domain(), ty);
    let tail = u64::try_from(tail.as_const_int()?).ok()?;
    (tail > 1 && !is_multiple(&padded, tail) && padded.as_const_int().is_none_or(|size| size % i128::from(tail) != 0))
        .then_some(padded)
}
