//! The judge against enumeration and the interpreter, on random maps and programs with and without mistakes.
//!
//! What the judge proves must be so, without exception; what it refutes must be wrong. What it leaves open is counted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod oracle;

use std::collections::HashSet;
use std::fmt::Write as _;

use oracle::{Claimed, Random, claimed, int, mutated, program};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestRng, TestRunner};
use tilewright::passes::{DEFAULT_PIPELINE, Rewritten, pass_by_name};
use tilewright::te::{Lowered, evaluate};
use tilewright_interp::{Arguments, Config as Interp, Tensor, fill, run, run_definition};
use tilewright_ir::{Bindings, Buffer, BufferChange, BufferClaim, Evidence, Expr, PrimFunc, ScalarType, Var, validate};
use tilewright_verify::{Config, Judge, MapClaim, Report, Verdict};

/// Runs a check on many seeds; the same ones every time. `ORACLE_CASES` says how many times as many.
fn on_seeds(cases: u32, check: impl Fn(u64) -> Result<(), TestCaseError>) {
    let times: u32 = std::env::var("ORACLE_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let cases = cases * times;
    let config = Cases { cases, failure_persistence: None, max_shrink_iters: 0, ..Cases::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::default()))
        .run(&any::<u64>(), check)
        .unwrap();
}

fn points(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |found, &extent| {
        let longer = |point: Vec<i128>| (0..extent).map(move |at| [point.clone(), vec![at]].concat());
        found.into_iter().flat_map(longer).collect()
    })
}

/// Whether a map is in bounds, injective and tight under some values of its symbols.
fn facts(claim: &Claimed, symbols: &Bindings) -> [(&'static str, bool); 3] {
    let values = |exprs: &[Expr]| -> Vec<i128> { exprs.iter().map(|expr| expr.eval_index(symbols).unwrap()).collect() };
    let (domain, shape) = (values(claim.map.domain()), values(&claim.shape));
    let (mut seen, mut bounds, mut injective) = (HashSet::new(), true, true);
    let mut reached = vec![false; shape.len()];
    for point in points(&domain) {
        let image = claim.map.eval(&point, symbols).unwrap();
        bounds &= image.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
        for (reached, (at, extent)) in reached.iter_mut().zip(image.iter().zip(&shape)) {
            *reached |= at + 1 == *extent;
        }
        injective &= seen.insert(image);
    }
    let tight = (0..shape.len()).all(|axis| claim.padded.contains(&axis) || reached[axis]);
    [("bounds", bounds), ("injective", injective), ("tight", tight)]
}

fn verdict<'r>(reports: &'r [Report], id: &str) -> &'r Verdict {
    &reports.iter().find(|report| report.obligation.id() == id).unwrap().verdict
}

/// Proved, refuted, left open.
#[derive(Default)]
struct Count(std::cell::RefCell<std::collections::BTreeMap<String, usize>>);

impl Count {
    fn add(&self, what: &str, verdict: &str) {
        *self.0.borrow_mut().entry(format!("{what} {verdict}")).or_default() += 1;
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        eprintln!("{:?}", self.0.borrow());
    }
}

/// Holds the judge's verdicts on a map against every instance of its symbols.
fn against_enumeration(
    judge: &Judge,
    claim: &Claimed,
    instances: &[Bindings],
    count: &Count,
) -> Result<(), TestCaseError> {
    let reports = judge.check_map(MapClaim::new(&claim.map, &claim.shape).padded(&claim.padded));
    let truths: Vec<_> = instances.iter().map(|symbols| facts(claim, symbols)).collect();
    for position in 0..3 {
        let id = truths[0][position].0;
        let verdict = verdict(&reports, id);
        count.add(id, verdict.word());
        let wrong = truths.iter().position(|truth| !truth[position].1);
        let text = format!("{id} of {} into {:?}, padded {:?}: {verdict}", claim.map, claim.shape, claim.padded);
        prop_assert!(
            !verdict.is_proved() || wrong.is_none(),
            "{text}, but not under {:?}",
            wrong.map(|at| &instances[at])
        );
        // A symbolic map may be refuted at larger extents than were enumerated.
        let refuted = matches!(verdict, Verdict::Refuted(_)) && instances.len() == 1;
        prop_assert!(!refuted || wrong.is_some(), "{text}, but it holds");
    }
    Ok(())
}

#[test]
fn verdicts_on_constant_maps_are_those_of_enumeration() {
    let (judge, count) = (Judge::new(Config::default(), tilewright_search::strategies()).unwrap(), Count::default());
    on_seeds(300, |seed| {
        let mut random = Random(seed);
        let mut extents = vec![2, 3, 5, 7, 9];
        let rank = 1 + random.below(3);
        let domain: Vec<Expr> = (0..rank).map(|_| int(extents.remove(random.below(extents.len())))).collect();
        let mistakes = random.chance(2);
        let claim = claimed(&mut random, &domain, mistakes);
        against_enumeration(&judge, &claim, &[Bindings::new()], &count)
    });
}

#[test]
fn what_is_proved_of_a_symbolic_map_holds_for_small_extents() {
    let budget = Config { timeout: std::time::Duration::from_millis(500), rlimit: 500_000, ..Config::default() };
    let (judge, count) = (Judge::new(budget, tilewright_search::strategies()).unwrap(), Count::default());
    on_seeds(100, |seed| {
        let mut random = Random(seed);
        let symbols: Vec<Var> = ["n", "m"].map(Var::index)[..=random.below(2)].to_vec();
        let domain: Vec<Expr> = symbols.iter().map(Expr::from).collect();
        let mistakes = random.chance(2);
        let claim = claimed(&mut random, &domain, mistakes);
        let bind = |values: Vec<i128>| symbols.iter().cloned().zip(values.into_iter().map(|value| value + 1)).collect();
        let instances: Vec<Bindings> = points(&vec![5; symbols.len()]).into_iter().map(bind).collect();
        against_enumeration(&judge, &claim, &instances, &count)
    });
}

/// A tensor rearranged by a claim, or back.
fn moved(tensor: &Tensor, claim: &BufferClaim, back: bool) -> Tensor {
    let sizes = |exprs: &[Expr]| -> Vec<u64> {
        exprs.iter().map(|expr| u64::try_from(expr.eval_index(&Bindings::new()).unwrap()).unwrap()).collect()
    };
    let (domain, shape) = (sizes(claim.map.domain()), sizes(&claim.after.shape));
    let ty = claim.before.dtype;
    let (target, from) = if back { (&domain, &shape) } else { (&shape, &domain) };
    assert_eq!(tensor.shape(), from);
    let logical = Tensor::undefined(ty, &domain).unwrap();
    let physical = Tensor::undefined(ty, &shape).unwrap();
    let mut result = Tensor::undefined(ty, target).unwrap();
    for point in points(&domain.iter().map(|&extent| extent.into()).collect::<Vec<_>>()) {
        let image = claim.map.eval(&point, &Bindings::new()).unwrap();
        let at = |index: &[i128], tensor: &Tensor| {
            let index: Option<Vec<u64>> = index.iter().map(|&at| u64::try_from(at).ok()).collect();
            tensor.lane_at(&index?)
        };
        let (Some(here), Some(there)) = (at(&point, &logical), at(&image, &physical)) else { continue };
        let (read, write) = if back { (there, here) } else { (here, there) };
        if let Some(value) = tensor.get(read) {
            result.set(write, value);
        }
    }
    result
}

fn inputs(tensors: &[Buffer], seed: u64) -> Vec<Tensor> {
    let make = |(position, buffer): (usize, &Buffer)| {
        let shape: Vec<u64> =
            buffer.shape.iter().map(|extent| u64::try_from(extent.as_const_int().unwrap()).unwrap()).collect();
        let mut tensor = Tensor::undefined(buffer.dtype, &shape).unwrap();
        fill(&mut tensor, seed * 31 + position as u64);
        tensor
    };
    tensors.iter().enumerate().map(make).collect()
}

/// The tensors after a run; none if it traps.
fn outcome(func: &PrimFunc, tensors: Vec<Tensor>) -> Option<Vec<Tensor>> {
    let mut args = Arguments::tensors(tensors);
    let count = func.params.len();
    run(validate(func).ok()?, &mut args, &Interp::default()).ok()?;
    (0..count).map(|param| args.tensor(param).cloned()).collect()
}

/// Whether two programs leave the same, the second in the layouts that the claims say.
fn agree(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Option<bool> {
    let params =
        |func: &PrimFunc| -> Vec<Buffer> { func.buffer_map.iter().map(|(_, buffer)| buffer.clone()).collect() };
    let (old, new) = (params(before), params(after));
    let claim = |param: usize| {
        let fits = |claim: &&BufferClaim| claim.before == old[param] && claim.after == new[param];
        evidence.buffers.iter().find(fits)
    };
    let mut same = true;
    for seed in 1..4 {
        let tensors = inputs(&old, seed);
        let packed = tensors.iter().enumerate().map(|(param, tensor)| match claim(param) {
            Some(claim) => moved(tensor, claim, false),
            None => tensor.clone(),
        });
        let packed = packed.collect();
        let expected = outcome(before, tensors)?;
        let Some(found) = outcome(after, packed) else { return Some(false) };
        same &= (0..old.len()).all(|param| match claim(param) {
            Some(claim) => moved(&found[param], claim, true) == expected[param],
            None => found[param] == expected[param],
        });
    }
    Some(same)
}

/// A lie in the evidence.
fn lied(random: &mut Random, evidence: &Evidence) -> Evidence {
    let mut evidence = evidence.clone();
    if evidence.buffers.is_empty() {
        return evidence;
    }
    let at = random.below(evidence.buffers.len());
    match random.below(4) {
        0 => drop(evidence.buffers.remove(at)),
        1 => evidence.buffers[at].padded_axes = vec![0, 1, 2, 3, 99],
        2 => evidence.buffers[at].change = *random.pick(&[BufferChange::Rename, BufferChange::Flatten]),
        _ => {
            let claim = &mut evidence.buffers[at];
            let found = claimed(random, claim.map.domain(), true);
            if found.map.outputs().len() == claim.after.rank() {
                claim.map = found.map;
            }
        }
    }
    evidence
}

#[test]
fn what_is_proved_of_a_pass_is_what_the_interpreter_sees() {
    let (judge, count) = (Judge::new(Config::default(), tilewright_search::strategies()).unwrap(), Count::default());
    on_seeds(100, |seed| {
        let mut random = Random(seed);
        let mut func = program(&mut random);
        for name in DEFAULT_PIPELINE {
            let Ok(Rewritten { func: right, evidence, .. }) = (pass_by_name(name).unwrap().run)(&func) else {
                count.add(name, "not run");
                return Ok(());
            };
            let reports = judge.check_pass(&func, &right, &evidence);
            let open: Vec<_> = reports.iter().filter(|report| !report.verdict.is_proved()).collect();
            prop_assert_eq!(
                agree(&func, &right, &evidence),
                Some(true),
                "seed {}: {} is wrong: {:?}",
                seed,
                name,
                open
            );
            let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone())).unwrap();
            count.add(name, worst.word());
            if !open.is_empty() {
                eprintln!("seed {seed}, {name}: {:?}", open[0]);
            }
            prop_assert!(!matches!(worst, Verdict::Refuted(_)), "seed {}: {:?}", seed, open);
            for _ in 0..3 {
                let (wrong, lie) = match random.below(4) {
                    0 => (right.clone(), lied(&mut random, &evidence)),
                    _ => (mutated(&mut random, &right), evidence.clone()),
                };
                let reports = judge.check_pass(&func, &wrong, &lie);
                let believed = reports.iter().all(|report| report.verdict.is_proved());
                count.add("mutated", if believed { "proved" } else { "not proved" });
                if believed {
                    let same = agree(&func, &wrong, &lie);
                    prop_assert_eq!(same, Some(true), "seed {}: {} {:?}", seed, name, wrong.body);
                }
            }
            func = right;
        }
        Ok(())
    });
}

/// A TE program with a random schedule.
fn source(random: &mut Random) -> String {
    let (h, w) = *random.pick(&[(2, 7), (3, 5), (5, 2), (7, 3)]);
    let value =
        *random.pick(&["A[i, j] * 2", "A[i, W - 1 - j] + A[i, j]", "te.if_then_else(j > 0, A[i, j - 1], A[i, j])"]);
    let value = value.replace('W', &w.to_string());
    let mut text = format!(
        "A = te.placeholder(({h}, {w}), name='A', dtype='int32')\n\
         B = te.compute(({h}, {w}), lambda i, j: {value}, name='B')\n\
         k = te.reduce_axis((0, {w}), name='k')\n\
         C = te.compute(({h},), lambda i: te.sum(B[i, k], axis=k), name='C')\n\
         s = te.create_schedule(C.op)\n"
    );
    let (a, b, c) = (random.number(1, 4), random.number(1, 4), random.number(1, 4));
    let spatial = match random.below(8) {
        0..=3 => format!("jo, ji = s[B].split(B.op.axis[1], factor={a})\ns[B].reorder(ji, B.op.axis[0], jo)"),
        4 | 5 => "s[B].fuse(B.op.axis[0], B.op.axis[1])".to_owned(),
        6 => format!("s[B].transform_layout(lambda i, j: [j // {b}, i, j % {b}])"),
        _ => String::new(),
    };
    writeln!(text, "{spatial}").unwrap();
    if random.chance(2) {
        writeln!(text, "ko, ki = s[C].split(k, factor={c})\ns[C].reorder(ki, C.op.axis[0], ko)").unwrap();
    }
    text
}

/// Whether a program computes a definition.
fn computes(lowered: &Lowered, func: &PrimFunc) -> bool {
    (1..4).all(|seed| {
        let tensors = inputs(&lowered.definition.params, seed);
        let mut expected = Arguments::tensors(tensors.clone());
        run_definition(&lowered.definition, &mut expected, &Interp::default()).unwrap();
        let count = lowered.definition.params.len();
        let expected: Vec<_> = (0..count).map(|param| expected.tensor(param).cloned().unwrap()).collect();
        outcome(func, tensors) == Some(expected)
    })
}

#[test]
fn what_is_proved_of_a_lowering_is_what_the_interpreter_sees() {
    let (judge, count) = (Judge::new(Config::default(), tilewright_search::strategies()).unwrap(), Count::default());
    on_seeds(80, |seed| {
        let mut random = Random(seed);
        let text = source(&mut random);
        let lowered = evaluate(&tilewright_script::te::read(&text).unwrap(), None);
        prop_assert!(lowered.is_ok(), "{}{:?}", text, lowered.err());
        let lowered = lowered.unwrap().remove(0);
        prop_assert!(lowered.definition.params.iter().all(|tensor| tensor.dtype.scalar == ScalarType::Int32));
        prop_assert!(computes(&lowered, &lowered.func), "{}", text);
        let reports = judge.check_lowering(&lowered.definition, &lowered.func, &lowered.evidence);
        let open: Vec<_> = reports.iter().filter(|report| !report.verdict.is_proved()).collect();
        count.add("lowering", if open.is_empty() { "proved" } else { "not proved" });
        prop_assert!(open.is_empty(), "{}{:?}", text, open);
        for _ in 0..5 {
            let (mut wrong, mut evidence) = (lowered.func.clone(), lowered.evidence.clone());
            if random.chance(4) {
                let at = random.below(evidence.stores.len());
                let claim = &mut evidence.stores[at];
                match random.below(3) {
                    0 => claim.axes.reverse(),
                    1 => claim.inverse.reverse(),
                    _ => claim.role = tilewright_ir::StoreRole::Copy,
                }
            } else {
                wrong = mutated(&mut random, &lowered.func);
            }
            let reports = judge.check_lowering(&lowered.definition, &wrong, &evidence);
            let believed = reports.iter().all(|report| report.verdict.is_proved());
            count.add("mutated", if believed { "proved" } else { "not proved" });
            prop_assert!(!believed || computes(&lowered, &wrong), "seed {}: {}{:?}", seed, text, wrong.body);
        }
        Ok(())
    });
}
