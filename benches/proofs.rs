//! The time to prove index maps, and the programs of the RFCs.
//!
//! A map: the digit certificate is looked for, then `check_map` with it and with the inverse and the padding that the
//! algebra found before, a fresh judge each time, so nothing is remembered but the thread's Z3 context, which stays as it
//! does in every command, and the lemmas that were proved for any judge of the process. At the end a table says for each map
//! the median, the part of it that is Z3's, and the verdicts. A tier: the obligations that it decides, over all maps that
//! have one. A batch: the maps once more, one judge for all of them, as in `tilewright map --batch`. A program: everything from the definition to the last pass, one thread, and the part that is Z3's.
//!
//! `cargo bench --bench proofs`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::print_stdout, reason = "the table is the result")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

#[path = "cases/maps.rs"]
mod maps;

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use tilewright::algebra;
use tilewright::passes::{DEFAULT_PIPELINE, Rewritten, pass_by_name};
use tilewright::te::{Lowered, evaluate};
use tilewright_ir::{DigitCertificate, PrimFunc};
use tilewright_verify::digits::check;
use tilewright_verify::{Config, Judge, MapClaim, Report};

use maps::{CONSTANT, Claimed, SYMBOLIC, claimed};

const PROGRAMS: [&str; 7] = [
    "addone.py",
    "rfc39_nhwc_to_nchwc.py",
    "rfc39_reference.py",
    "rfc39_reorder.py",
    "rfc39_separators.py",
    "nhwc_to_nchw4c_symbolic.py",
    "conv2d_resnet.py",
];

/// A program and what each pass made of it.
struct Case {
    name: String,
    lowered: Lowered,
    steps: Vec<(PrimFunc, Rewritten)>,
}

fn cases() -> Vec<Case> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut cases = Vec::new();
    for file in PROGRAMS {
        let source = std::fs::read_to_string(examples.join(file)).unwrap();
        for lowered in evaluate(&tilewright_script::te::read(&source).unwrap(), None).unwrap() {
            let mut steps: Vec<(PrimFunc, Rewritten)> = Vec::new();
            for pass in DEFAULT_PIPELINE {
                let before = steps.last().map_or(&lowered.func, |(_, rewritten)| &rewritten.func).clone();
                let rewritten = (pass_by_name(pass).unwrap().run)(&before).unwrap();
                steps.push((before, rewritten));
            }
            cases.push(Case { name: format!("{file}::{}", lowered.func.name), lowered, steps });
        }
    }
    cases
}

/// Proves everything; the time that Z3 took of it.
fn prove(case: &Case) -> Duration {
    let judge = Judge::new(Config { threads: 1, ..Config::default() }, tilewright_search::strategies()).unwrap();
    let Lowered { definition, func, evidence, .. } = &case.lowered;
    let mut reports = judge.check_definition(definition);
    reports.extend(judge.check_lowering(definition, func, evidence));
    for (before, rewritten) in &case.steps {
        reports.extend(judge.check_pass(before, &rewritten.func, &rewritten.evidence));
    }
    assert!(reports.iter().all(|report| report.verdict.is_proved()), "{}: not proved", case.name);
    judge.solver_time()
}

fn programs(criterion: &mut Criterion) {
    let cases = cases();
    for (name, of) in [("prove", false), ("prove, of it Z3", true)] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        for case in &cases {
            group.bench_function(&case.name, |bencher| {
                bencher.iter_custom(|count| {
                    let start = Instant::now();
                    let solver: Duration = (0..count).map(|_| black_box(prove(case))).sum();
                    if of { solver } else { start.elapsed() }
                });
            });
        }
        group.finish();
    }
}

fn claim(case: &Claimed) -> MapClaim<'_> {
    let claim = MapClaim::new(&case.map, &case.shape).padded(&case.padded);
    match &case.inverse {
        Some(inverse) => claim.inverse(inverse),
        None => claim,
    }
}

fn certificate(case: &Claimed) -> Option<DigitCertificate> {
    algebra::digit_certificate(&case.map, &case.shape, case.inverse.as_ref(), None, &[])
}

/// Decides everything of a map by a judge that knows nothing yet; the reports, and the time that Z3 took.
fn decide(case: &Claimed) -> (Vec<Report>, Duration) {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let reports = decide_by(&judge, case);
    (reports, judge.solver_time())
}

/// Decides everything of a map.
fn decide_by(judge: &Judge, case: &Claimed) -> Vec<Report> {
    let mut claim = claim(case);
    let digits = certificate(case);
    if let Some(digits) = &digits {
        claim = claim.digits(digits);
    }
    judge.check_map(claim)
}

/// The maps by one judge, as in a batch: what it was asked before is remembered.
fn batches(criterion: &mut Criterion) {
    for (name, cases) in
        [("constant map in a batch", CONSTANT.as_slice()), ("symbolic map in a batch", SYMBOLIC.as_slice())]
    {
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap().for_many_claims();
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat);
        group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
        for case in cases.iter().copied().map(claimed) {
            group.bench_function(case.name, |bencher| bencher.iter(|| black_box(decide_by(&judge, &case))));
        }
        group.finish();
    }
}

fn map_claims(criterion: &mut Criterion) {
    let (constant, symbolic) = (CONSTANT.map(claimed), SYMBOLIC.map(claimed));
    for (name, cases) in [("constant map", constant.as_slice()), ("symbolic map", symbolic.as_slice())] {
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat);
        group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
        for case in cases {
            group.bench_function(case.name, |bencher| bencher.iter(|| black_box(decide(case))));
        }
        group.finish();
        table(name, cases);
    }
}

/// The words that the methods of the tiers begin with.
const TIERS: [&str; 4] = ["enumeration", "digits", "gf2", "z3"];

/// The obligations that each tier decides, over all maps that have one; of digits the parts as well.
fn tiers(criterion: &mut Criterion) {
    let cases: Vec<Claimed> = CONSTANT.into_iter().chain(SYMBOLIC).map(claimed).collect();
    let mut group = criterion.benchmark_group("tier");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(1));
    for tier in TIERS {
        let of_tier =
            |reports: Vec<Report>| reports.into_iter().filter(|report| report.method.to_string().starts_with(tier));
        let counted = |case: &&Claimed| of_tier(decide(case).0).count() > 0;
        let own: Vec<&Claimed> = cases.iter().filter(counted).collect();
        let obligations: usize = own.iter().map(|case| of_tier(decide(case).0).count()).sum();
        println!("tier {tier}: {obligations} obligations of {} maps", own.len());
        group.throughput(Throughput::Elements(u64::try_from(obligations).unwrap()));
        group.bench_function(tier, |bencher| {
            bencher.iter_custom(|count| {
                let once = || own.iter().flat_map(|case| of_tier(decide(case).0)).map(|report| report.ms).sum::<f64>();
                Duration::from_secs_f64((0..count).map(|_| once()).sum::<f64>() / 1e3)
            });
        });
    }
    let certified: Vec<_> = cases.iter().filter_map(|case| Some((case, certificate(case)?))).collect();
    group.throughput(Throughput::Elements(u64::try_from(certified.len()).unwrap()));
    let checked = |(case, digits): &(&Claimed, DigitCertificate)| check(&claim(case).digits(digits), digits).ok();
    group.bench_function("digits: certificate found", |bencher| {
        bencher.iter(|| certified.iter().for_each(|(case, _)| drop(black_box(certificate(case)))));
    });
    group.bench_function("digits: certificate checked", |bencher| {
        bencher.iter(|| certified.iter().for_each(|of| drop(black_box(checked(of)))));
    });
    let shown: Vec<_> = certified.iter().filter_map(checked).collect();
    group.throughput(Throughput::Elements(u64::try_from(shown.len()).unwrap()));
    group.bench_function("digits: instances confirmed by z3", |bencher| {
        bencher.iter(|| {
            for checked in &shown {
                assert!(checked.is_confirmed(&Judge::new(Config::default(), tilewright_search::strategies()).unwrap()));
            }
        });
    });
    group.finish();
}

/// A row a map: the medians of a few runs, and the verdicts.
fn table(name: &str, cases: &[Claimed]) {
    println!("\n| {name} | median ms | of it Z3 | proved | refuted | unknown | slowest obligation |");
    println!("|---|---|---|---|---|---|---|");
    let mut medians = Vec::new();
    for case in cases {
        let mut runs: Vec<(f64, f64)> = Vec::new();
        let begin = Instant::now();
        while runs.len() < 3 || (runs.len() < 25 && begin.elapsed() < Duration::from_millis(300)) {
            let start = Instant::now();
            let (_, solver) = black_box(decide(case));
            runs.push((start.elapsed().as_secs_f64() * 1e3, solver.as_secs_f64() * 1e3));
        }
        let (reports, _) = decide(case);
        let count = |word: &str| reports.iter().filter(|report| report.verdict.word() == word).count();
        let unknown: Vec<&str> = reports
            .iter()
            .filter(|report| !["proved", "refuted"].contains(&report.verdict.word()))
            .map(|report| report.obligation.id())
            .collect();
        let slowest = reports.iter().max_by(|a, b| a.ms.total_cmp(&b.ms)).unwrap();
        let (total, solver) = (median(runs.iter().map(|run| run.0)), median(runs.iter().map(|run| run.1)));
        medians.push(total);
        let inverse = if case.inverse.is_some() { "" } else { " (no inverse)" };
        println!(
            "| {}{inverse} | {total:.3} | {solver:.3} | {} | {} | {} {} | {} {:.3} ms, {} |",
            case.name,
            count("proved"),
            count("refuted"),
            unknown.len(),
            unknown.join(", "),
            slowest.obligation,
            slowest.ms,
            slowest.method
        );
    }
    let largest = medians.iter().copied().fold(0.0, f64::max);
    println!("| all {} | median {:.3}, largest {largest:.3} | | | | | |\n", cases.len(), median(medians.into_iter()));
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

criterion_group!(benches, map_claims, batches, tiers, programs);
criterion_main!(benches);
