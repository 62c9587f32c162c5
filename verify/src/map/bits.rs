//! The tiers for maps that move and mix bits: linear algebra over GF(2), for power-of-two extents of any size.
//!
//! Counterexamples are evaluated. Proofs are confirmed by Z3 over bit-vectors: that each output is the affine form that was
//! extracted; for inverse and specification, the statement itself.
//!
//! ```text
//! lambda i, j: [i, j ^ (i % 8)]   on (64, 8)     9 input bits, 9 output bits: j0 ^ i0, j1 ^ i1, j2 ^ i2, i0, .., i5
//! ```
//!
//! Enumeration would take 2^n points for n input bits; here every question is a system of at most n equations.
//!
//! The extraction of affine forms is believed only as far as Z3 confirms it: a proof needs a goal for each output,
//! which says that the output is its affine form. If Z3 refutes such a goal, that is an internal error.

use std::collections::HashMap;

use tilewright_ir::Var;

use super::case::Case;
use super::instance::Instance;
use super::{bounds, injective, inverse, specification, tight};
use crate::door::All;
use crate::gf2::{self, Affine, Inputs, System, Word};
use crate::judge::Decision;
use crate::kernel::Failure;
use crate::method::Method;
use crate::question::{Question, index_of};
use crate::reason::Reason;
use crate::term::{BinaryOp, Prop, Term};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// A map whose output bits are affine forms of the input bits.
struct AffineMap<'a> {
    /// The claim with its constant extents.
    instance: &'a Instance<'a>,
    /// The input bits of each axis.
    inputs: Inputs,
    /// The outputs as words.
    outputs: Vec<Word>,
}

/// The affine form of a map with constant power-of-two extents, if it has one.
fn affine_map<'a>(case: &Case<'a>) -> Option<AffineMap<'a>> {
    // Linear algebra is about all indices of the box.
    let instance = case.constant().filter(|_| case.claim.predicate.is_none())?;
    let inputs = Inputs::new(&instance.domain)?;
    let words = inputs.words(case.claim.map.vars());
    let outputs = case.claim.map.outputs().iter().map(|output| gf2::extract(output, &words)).collect::<Option<_>>()?;
    Some(AffineMap { instance, inputs, outputs })
}

/// Refuted by an evaluated counterexample; an internal error if evaluation does not confirm it.
fn refuted(found: Option<Counterexample>) -> Decision {
    let verdict = match found {
        Some(found) => Verdict::Refuted(found),
        None => Verdict::Unknown(Reason::no_replay("what linear algebra found")),
    };
    (verdict, Method::Gf2 { goals: 0 })
}

/// The decision if linear algebra has proved an obligation and Z3 is asked to confirm it by some goals.
fn confirmed(of: &'static str, question: &mut Question, goals: &[Prop]) -> Decision {
    let mut all = All::default();
    for goal in goals {
        match question.settle_in_bits(goal) {
            Ok(grounds) => all.add(grounds),
            Err(Failure::Refuted(model)) => {
                let found = format_args!("linear algebra shows {goal}, but z3 refutes it at {model}");
                return (Verdict::Unknown(Reason::internal(found)), Method::Gf2 { goals: 0 });
            }
            Err(failure) => {
                return (Verdict::Unknown(failure.reason().after("gf2 is not confirmed: ")), Method::Gf2 { goals: 0 });
            }
        }
    }
    question.keep_proof(of);
    (all.proved(), Method::Gf2 { goals: goals.len() })
}

/// Asks Z3 to confirm that each output is the affine form that was extracted.
fn extraction(case: &Case<'_>, linear: &AffineMap<'_>) -> Decision {
    let mut names = Names::default();
    let mut question = case.claim.question(case.judge, &mut names);
    let vars = case.claim.assume(&mut question, &mut names, "");
    let outputs = case.claim.outputs(&mut names);
    let goals: Vec<Prop> = outputs
        .iter()
        .zip(&linear.outputs)
        .map(|(output, word)| output.equals(stated(word, &linear.inputs, &vars)))
        .collect();
    confirmed("map over GF(2)", &mut question, &goals)
}

/// A word as a term in the index variables.
fn stated(word: &Word, inputs: &Inputs, vars: &[Term]) -> Term {
    let bit = |form: Affine| {
        let mut term = Term::int(i128::from(form.one));
        for (axis, var) in vars.iter().enumerate() {
            for bit in 0..inputs.widths[axis] {
                if form.mask >> (inputs.first(axis) + bit) & 1 == 1 {
                    let shifted = Term::binary(BinaryOp::Shr, var, i128::from(bit));
                    term = Term::binary(BinaryOp::BitXor, term, Term::binary(BinaryOp::BitAnd, shifted, 1));
                }
            }
        }
        term
    };
    let start = -bit(word.sign);
    let mut value = Term::binary(BinaryOp::Shl, start, i128::try_from(word.bits.len()).unwrap_or(0));
    for (position, form) in (0i128..).zip(&word.bits) {
        value = Term::binary(BinaryOp::BitOr, value, Term::binary(BinaryOp::Shl, bit(*form), position));
    }
    value
}

/// Bounds: the largest value of each output, computed bit by bit.
pub(super) fn bounds(case: &Case<'_>) -> Option<Decision> {
    let linear = affine_map(case)?;
    let instance = linear.instance;
    let mut first: Option<Vec<i128>> = None;
    for (word, &extent) in linear.outputs.iter().zip(&instance.shape) {
        let outside = |system: &System| system.possible(word.sign) || system.largest(word) >= extent;
        if outside(&System::default()) {
            let index = linear.inputs.index(System::default().smallest(linear.inputs.total, outside));
            first = Some(first.map_or_else(|| index.clone(), |first| first.min(index.clone())));
        }
    }
    Some(match first {
        Some(index) => refuted(bounds::outside(case.claim, &instance.symbols, &instance.shape, &index)),
        None => extraction(case, &linear),
    })
}

/// Injective: the matrix has full column rank, shown by an inverse that is checked; otherwise the kernel gives a collision.
pub(super) fn injective(case: &Case<'_>) -> Option<Decision> {
    let linear = affine_map(case)?;
    let bits = linear.outputs.iter().flat_map(|word| word.bits.iter().chain([&word.sign]));
    let forms: Vec<Affine> = bits.filter(|form| form.mask != 0).copied().collect();
    if let Some((first, second)) = gf2::kernel_pair(&forms, linear.inputs.total) {
        let (first, second) = (linear.inputs.index(first), linear.inputs.index(second));
        return Some(refuted(injective::collision(case.claim, &linear.instance.symbols, &first, &second)));
    }
    let certificate = gf2::certificate_of(&linear.outputs, linear.inputs.total)?;
    Some(match certificate.check(case.claim.map) {
        Ok(()) => extraction(case, &linear),
        Err(error) => (Verdict::Unknown(Reason::internal(error)), Method::Gf2 { goals: 0 }),
    })
}

/// Tight: the equations for an output to be at its last index have a solution.
pub(super) fn tight(case: &Case<'_>) -> Option<Decision> {
    let linear = affine_map(case)?;
    for (axis, word) in linear.outputs.iter().enumerate().filter(|(axis, _)| !case.claim.padded.contains(axis)) {
        if gf2::solve(word, linear.instance.shape[axis] - 1).is_none() {
            let mut natural = System::default();
            let largest = natural.require(word.sign, false).then(|| natural.largest(word))?;
            return Some(refuted(Some(tight::loose(linear.instance, axis, largest))));
        }
    }
    Some(extraction(case, &linear))
}

/// The first index at which two lists of words differ.
fn first_difference(inputs: &Inputs, these: &[Word], others: &[Word]) -> Option<Vec<i128>> {
    let bits = these.iter().zip(others).flat_map(|(this, other)| {
        let width = this.bits.len().max(other.bits.len());
        (0..=width).map(|at| this.at(at) ^ other.at(at)).collect::<Vec<_>>()
    });
    bits.filter_map(|bit| inputs.first_one(bit)).min()
}

/// Inverse: both compositions are the identity, bit by bit.
pub(super) fn inverse(case: &Case<'_>) -> Option<Decision> {
    let (linear, claim) = (affine_map(case)?, case.claim);
    let (inverse, symbols) = (claim.inverse?, &linear.instance.symbols);
    // With padding the right inverse holds on a part of the physical box, which need not be given by linear equations.
    if inverse.padding.as_const_int() != Some(0) {
        return None;
    }
    let extract = |exprs: &[tilewright_ir::Expr], words: &HashMap<Var, Word>| -> Option<Vec<Word>> {
        exprs.iter().map(|expr| gf2::extract(expr, words)).collect()
    };
    let images: HashMap<Var, Word> = inverse.vars.iter().cloned().zip(linear.outputs.iter().cloned()).collect();
    let back = extract(&inverse.outputs, &images)?;
    if let Some(index) = first_difference(&linear.inputs, &back, &linear.inputs.axes()) {
        return Some(refuted(inverse::lost(claim, inverse, symbols, &index)));
    }
    let physical = Inputs::new(&linear.instance.shape)?;
    let back = extract(&inverse.outputs, &physical.words(&inverse.vars))?;
    let inside = |(word, &width): (&Word, &u32)| {
        (width as usize..=word.bits.len().max(width as usize)).all(|at| word.at(at) == Affine::ZERO)
    };
    if !back.iter().zip(&linear.inputs.widths).all(inside) {
        return None;
    }
    let again = extract(claim.map.outputs(), &claim.map.vars().iter().cloned().zip(back).collect())?;
    if let Some(place) = first_difference(&physical, &again, &physical.axes()) {
        return Some(refuted(inverse::unreached(claim, inverse, symbols, &place)));
    }
    Some(both_ways(case, &inverse.vars, &inverse.outputs))
}

/// Asks Z3 to confirm that both compositions are the identity.
fn both_ways(case: &Case<'_>, places: &[Var], back: &[tilewright_ir::Expr]) -> Decision {
    // Two questions, because the directions have different premises: a logical index, and a physical one.
    let claim = case.claim;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = claim.assume(&mut question, &mut names, "");
    for (var, output) in places.iter().zip(claim.outputs(&mut names)) {
        names.bind(var, output);
    }
    let goals: Vec<Prop> = back.iter().zip(&vars).map(|(back, var)| names.term(back).equals(var)).collect();
    let there = confirmed("map inverse over GF(2)", &mut question, &goals);
    if !there.0.is_proved() {
        return there;
    }
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let places = index_of(places, claim.shape, &mut question, &mut names, "");
    let back: Vec<Term> = back.iter().map(|back| names.term(back)).collect();
    let mut goals = Vec::new();
    for ((var, extent), back) in claim.map.vars().iter().zip(claim.map.domain()).zip(back) {
        let extent = names.term(extent);
        goals.extend([back.at_least(0), back.less(extent)]);
        names.bind(var, back);
    }
    goals.extend(claim.outputs(&mut names).iter().zip(&places).map(|(again, place)| again.equals(place)));
    confirmed("map right inverse over GF(2)", &mut question, &goals)
}

/// Padding, for a claim without padding: there are as many physical indices as logical ones, and the map is injective.
pub(super) fn padding(case: &Case<'_>) -> Option<Decision> {
    let linear = affine_map(case)?;
    let places = Inputs::new(&linear.instance.shape)?;
    if case.claim.inverse?.padding.as_const_int() != Some(0) || places.total != linear.inputs.total {
        return None;
    }
    let inside = bounds(case)?;
    if inside.0.is_proved() { injective(case).filter(|apart| apart.0.is_proved()) } else { None }
}

/// Specification: each bit has the same affine form in both maps.
pub(super) fn specification(case: &Case<'_>) -> Option<Decision> {
    let (linear, meaning) = (affine_map(case)?, case.claim.meaning?);
    let words = linear.inputs.words(meaning.vars());
    let stated: Vec<Word> =
        meaning.outputs().iter().map(|output| gf2::extract(output, &words)).collect::<Option<_>>()?;
    if let Some(index) = first_difference(&linear.inputs, &linear.outputs, &stated) {
        return Some(refuted(specification::different(case.claim, &linear.instance.symbols, &index)));
    }
    let mut names = Names::default();
    let mut question = case.claim.question(case.judge, &mut names);
    let vars = case.claim.assume(&mut question, &mut names, "");
    let outputs = case.claim.outputs(&mut names);
    let mut inside = names.renamed(meaning.vars(), &vars);
    let stated = meaning.outputs().iter().map(|output| inside.term(output)).collect::<Vec<_>>();
    let goals: Vec<Prop> = outputs.iter().zip(&stated).map(|(output, stated)| output.equals(stated)).collect();
    Some(confirmed("map specification over GF(2)", &mut question, &goals))
}
