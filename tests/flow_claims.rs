//! No claim about where values come from proves a program that computes something else.
//!
//! For each pair of `tests/equivalence` that such a claim proves, the broken twins are judged with the claim found for them, with the
//! claim of the right program, and with random changes of both: another iteration, another store, other conditions, cases left out or
//! exchanged, values looked through.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::time::Duration;

use pairs::{Case, Kind, Variant, cases, is_proved, open, read};
use rayon::prelude::*;
use tilewright::fuzz::corpus::bend::bent_flow;
use tilewright::harness::inputs::Numbers;
use tilewright::pipeline::pair;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Comparison, Evidence, Expr, Flow, Instance, PrimFunc, Var};
use tilewright_verify::flow::programs;
use tilewright_verify::reorder::Statement;
use tilewright_verify::{Config, Judge, Report};

/// Changed claims about each twin and each claim.
const BENT: u64 = 12;

/// A judge that gives up early: bent claims ask hard questions for nothing.
fn judge() -> Judge {
    let config = Config { timeout: Duration::from_millis(200), rlimit: 200_000, threads: 1, ..Config::default() };
    Judge::new(config, tilewright_search::strategies()).unwrap()
}

/// The verdicts on a program under a claim, with those about the program by itself.
fn judged(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, judge: &Judge) -> Vec<Report> {
    let mut reports = judge.check_pass(before, after, evidence);
    reports.extend(judge.check_program(after));
    reports
}

/// Both programs as they are compared, and the claim that is found.
fn claimed(before: &PrimFunc, after: &PrimFunc, judge: &Judge) -> Option<(PrimFunc, PrimFunc, Evidence)> {
    let scalar = pair::value_claim(before, after).map(|(after, evidence)| (before.clone(), after, evidence));
    scalar.or_else(|| pair::vector_claim(before, after, judge))
}

/// The claim of some evidence.
fn flow(evidence: &Evidence) -> &Flow {
    match &evidence.comparison {
        Comparison::Values(flow) => flow,
        Comparison::Scalarized(claim) => flow(&claim.evidence),
        _ => panic!("no claim about values"),
    }
}

/// The evidence with another claim.
fn with_flow(evidence: &Evidence, flow: Flow) -> Evidence {
    let comparison = match &evidence.comparison {
        Comparison::Scalarized(claim) => {
            let mut claim = claim.clone();
            claim.evidence = with_flow(&claim.evidence, flow);
            Comparison::Scalarized(claim)
        }
        _ => Comparison::Values(flow),
    };
    Evidence { comparison, ..evidence.clone() }
}

/// The loops around each store of both programs.
fn loops(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Option<Vec<Vec<Var>>> {
    if let Comparison::Scalarized(claim) = &evidence.comparison {
        return loops(&claim.before, &claim.after, &claim.evidence);
    }
    let both = programs(before, after, evidence).ok()?;
    let stores = both.iter().flat_map(|one| &one.program.statements[..one.n_stores]);
    Some(stores.map(Statement::loops).collect())
}

/// All instances of a claim.
fn instances(flow: &mut Flow) -> Vec<&mut Instance> {
    let Flow { before, after, stores, .. } = flow;
    let sources = before.iter_mut().chain(after).flatten().flatten();
    sources.chain(stores.iter_mut().flat_map(|origin| &mut origin.instances)).collect()
}

/// A claim about one program after, said of another one with the same stores in the same loops; `None` if it has others.
fn moved(claim: &Flow, [from, to]: [&[Vec<Var>]; 2], index: &[Var]) -> Option<Flow> {
    let same = from.len() == to.len() && from.iter().zip(to).all(|(from, to)| from.len() == to.len());
    if !same || claim.index.len() != index.len() {
        return None;
    }
    let vars = from.iter().zip(to).flat_map(|(from, to)| from.iter().zip(to));
    let vars = vars.chain(claim.index.iter().zip(index)).map(|(from, to)| (from, Expr::from(to)));
    let (old, new): (Vec<&Var>, Vec<Expr>) = vars.unzip();
    let names = Substitution::new(old, new);
    let mut claim = claim.clone();
    for instance in instances(&mut claim) {
        instance.when = instance.when.as_ref().map(|when| names.apply(when));
        instance.at.iter_mut().for_each(|value| *value = names.apply(value));
    }
    claim.index = index.to_vec();
    Some(claim)
}

/// Evidence about programs without vectors with other stores whose lanes are all read first, or with the programs exchanged.
fn bent_vectors(mut evidence: Evidence, bending: u64) -> Evidence {
    if let Comparison::Scalarized(claim) = &mut evidence.comparison {
        match bending {
            3 => claim.buffered[1].push(0),
            4 => claim.buffered[1].clear(),
            5 => claim.after = claim.before.clone(),
            6 => claim.before = claim.after.clone(),
            7 => claim.buffered.reverse(),
            _ => {}
        }
    }
    evidence
}

/// How many claims were tried, and which proved something false.
#[derive(Default)]
struct Tried {
    claims: usize,
    false_proofs: Vec<String>,
}

/// Tries claims on the twins of a program.
fn attack(case: &Case, variant: &Variant, number: u64, judge: &Judge) -> Option<Tried> {
    let before = read(&case.before);
    let right = read(&variant.after());
    let (old, right, evidence) = claimed(&before, &right, judge)?;
    if !is_proved(&judged(&old, &right, &evidence, judge)) {
        return None;
    }
    let mut tried = Tried::default();
    let mut numbers = Numbers::new(7, number);
    for (name, twin) in variant.twins() {
        let Some((before, wrong, own)) = claimed(&before, &read(&twin), judge) else { continue };
        let of_right = loops(&old, &right, &evidence).zip(loops(&before, &wrong, &own));
        // A claim about other programs without vectors.
        if matches!(evidence.comparison, Comparison::Scalarized(_)) {
            tried.claims += 1;
            if is_proved(&judged(&old, &wrong, &evidence, judge)) {
                tried.false_proofs.push(format!("{name} is proved by the claim about the right program"));
            }
        }
        let taken = of_right.and_then(|(from, to)| moved(flow(&evidence), [&from, &to], &flow(&own).index));
        for claim in [Some(flow(&own).clone()), taken].into_iter().flatten() {
            for bending in 0..=BENT {
                let claim = if bending == 0 { claim.clone() } else { bent_flow(&claim, &mut numbers) };
                let evidence = bent_vectors(with_flow(&own, claim), bending);
                let reports = judged(&before, &wrong, &evidence, judge);
                tried.claims += 1;
                if open(&reports).is_empty() {
                    tried.false_proofs.push(format!("{name} is proved by {:?}", evidence.comparison));
                }
            }
        }
    }
    Some(tried)
}

#[test]
fn no_claim_proves_a_program_that_computes_something_else() {
    let cases: Vec<Case> =
        ["loops", "values", "storage", "structural", "vectors"].into_iter().flat_map(cases).collect();
    let proved = |variant: &&Variant| variant.kind == Kind::After && variant.maps.is_empty();
    let variants =
        cases.iter().flat_map(|case| case.variants.iter().filter(proved).map(move |variant| (case, variant)));
    let judge = judge();
    let tried: Vec<Tried> = variants
        .zip(0..)
        .collect::<Vec<_>>()
        .into_par_iter()
        .filter_map(|((case, variant), number)| attack(case, variant, number, &judge))
        .collect();
    let false_proofs: Vec<&str> = tried.iter().flat_map(|one| &one.false_proofs).map(String::as_str).collect();
    assert!(false_proofs.is_empty(), "{}", false_proofs.join("\n"));
    let claims: usize = tried.iter().map(|one| one.claims).sum();
    assert!(tried.len() > 40 && claims > 2000, "{} pairs, {claims} claims", tried.len());
}
