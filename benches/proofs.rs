//! The time to prove index maps, and the programs of the RFCs.
//!
//! A map: the digit certificate is looked for, then `check_map` with it and with the inverse and the padding that the
//! algebra found before, a fresh judge each time, so nothing is remembered but the thread's Z3 context, which stays as it
//! does in every command. At the end a table
//! says for each map the median, the part of it that is Z3's, and the verdicts. A program: everything from the definition
//! to the last pass, one thread, and the part that is Z3's.
//!
//! `cargo bench --bench proofs`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::print_stdout, reason = "the table is the result")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::algebra;
use tilewright::passes::{DEFAULT_PIPELINE, Rewritten, pass_by_name};
use tilewright::te::{Lowered, evaluate};
use tilewright_ir::{Expr, IndexMap, InverseClaim, PrimFunc};
use tilewright_script::{Symbols, read_index_map, read_shape};
use tilewright_verify::{Config, Judge, MapClaim, Report};

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
    let judge = Judge::new(Config { threads: 1, ..Config::default() }).unwrap();
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

const FLAT_17: &str = "lambda n, h, w, c: [(((n * 5 + c // 4) * 7 + h) * 9 + w) * 4 + c % 4]";
const FLAT_64: &str = "lambda n, h, w, c: [(((n * 16 + c // 4) * 224 + h) * 224 + w) * 4 + c % 4]";
const FLAT_25: &str = "lambda n, h, w, c: [(((n * 7 + c // 4) * 1023 + h) * 1021 + w) * 4 + c % 4]";
const NCHW4C: &str = "lambda n, h, w, c: [n, c // 4, h, w, c % 4]";
const TILE: &str = "lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2]";

/// Name, map, shape.
const CONSTANT: [[&str; 3]; 28] = [
    ["nchw4c", NCHW4C, "2,7,9,17"],
    ["nchw4c flat", FLAT_17, "2,7,9,17"],
    ["nchw4c large", NCHW4C, "32,224,224,64"],
    ["nchw4c large flat", FLAT_64, "32,224,224,64"],
    ["nchw4c ragged", NCHW4C, "64,1023,1021,255"],
    ["nchw4c ragged flat", FLAT_25, "17,1023,1021,25"],
    ["tile", TILE, "1000,1000"],
    [
        "tile flat",
        "lambda i, j: [(((i // 8 * 8 + j // 128) * 4 + i % 8 // 2) * 128 + j % 128) * 2 + i % 2]",
        "1000,1000",
    ],
    ["tile large", TILE, "100003,70001"],
    [
        "tile large flat",
        "lambda i, j: [(((i // 8 * 55 + j // 128) * 4 + i % 8 // 2) * 128 + j % 128) * 2 + i % 2]",
        "10003,7001",
    ],
    ["xor", "lambda i, j: [i, j ^ (i % 8)]", "61,8"],
    ["xor flat", "lambda i, j: [i * 32 + (j ^ (i % 32))]", "129,32"],
    ["xor of chunks", "lambda i, j: [i, (j // 8 ^ (i % 8)) * 8 + j % 8]", "57,64"],
    ["rotation", "lambda i: [(i + 3) % 8]", "8"],
    ["rotation of rows", "lambda i, j: [i, (j + i) % 1021]", "1023,1021"],
    ["reversal", "lambda i: [7 - i]", "8"],
    ["reversal split", "lambda i: [(999 - i) // 4, (999 - i) % 4]", "1000"],
    ["offset", "lambda i: [(i + 3) // 4, (i + 3) % 4]", "17"],
    ["row padding", "lambda i, j: [i * 17 + j]", "11,15"],
    ["row padding large", "lambda i, j: [i * 1056 + j]", "20011,1021"],
    ["two-level split", "lambda i: [i // 64, i // 4 % 16, i % 4]", "1000"],
    ["two-level split large", "lambda i: [i // 4096, i // 64 % 64, i % 64]", "1000003"],
    ["texture", "lambda n, c, h, w: [(n * 5 + c // 4) * 7 + h, w, c % 4]", "2,17,7,9"],
    ["texture large", "lambda n, c, h, w: [(n * 64 + c // 4) * 113 + h, w, c % 4]", "3,255,113,227"],
    ["cases", "lambda i: [i if i < 5 else i + 3]", "11"],
    ["cases large", "lambda i, j: [i, j if i % 2 == 0 else 1020 - j]", "1023,1021"],
    ["redundant", "lambda i, j: [i, i % 4, j]", "17,9"],
    ["collision", "lambda i, j: [i * 1020 + j]", "1023,1021"],
];

/// The same for all shapes.
const SYMBOLIC: [[&str; 3]; 9] = [
    ["nchw4c, symbolic", NCHW4C, "n,h,w,c"],
    [
        "nchw4c flat, symbolic",
        "lambda n, h, w, c: [(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]",
        "N,H,W,C",
    ],
    ["tile, symbolic", TILE, "r,c"],
    [
        "tile flat, symbolic",
        "lambda i, j: [(((i // 8 * ((C + 127) // 128) + j // 128) * 4 + i % 8 // 2) * 128 + j % 128) * 2 + i % 2]",
        "R,C",
    ],
    ["texture, symbolic", "lambda n, c, h, w: [(n * ((C + 3) // 4) + c // 4) * H + h, w, c % 4]", "N,C,H,W"],
    ["row-major, symbolic", "lambda i, j, k: [(i * J + j) * K + k]", "I,J,K"],
    ["two-level split, symbolic", "lambda i: [i // 64, i // 4 % 16, i % 4]", "n"],
    ["split by symbols", "lambda i: [i // (b * c), i // c % b, i % c]", "a * b * c"],
    ["reversal, symbolic", "lambda i, j: [n - 1 - i, j]", "n,m"],
];

/// A map and all that is claimed of it.
struct Claimed {
    name: &'static str,
    map: IndexMap,
    shape: Vec<Expr>,
    padded: Vec<usize>,
    inverse: Option<InverseClaim>,
}

fn read_map([name, text, shape]: [&'static str; 3]) -> Claimed {
    let mut symbols = Symbols::default();
    let shape = read_shape(shape, &mut symbols).unwrap();
    let map = read_index_map(text, Some(&shape), &mut symbols).unwrap();
    let algebra::PhysicalShape { extents, padded_axes } = algebra::physical_shape(&map, &[]).unwrap();
    let inverse = algebra::inverse(&map, &extents, &[]).ok();
    Claimed { name, map, shape: extents, padded: padded_axes, inverse }
}

/// Decides everything of a map; the reports, and the time that Z3 took.
fn decide(case: &Claimed) -> (Vec<Report>, Duration) {
    let judge = Judge::new(Config::default()).unwrap();
    let mut claim = MapClaim::new(&case.map, &case.shape).padded(&case.padded);
    if let Some(inverse) = &case.inverse {
        claim = claim.inverse(inverse);
    }
    let digits = algebra::digit_certificate(&case.map, &case.shape, claim.inverse, None, &[]);
    if let Some(digits) = &digits {
        claim = claim.digits(digits);
    }
    let reports = judge.check_map(claim);
    (reports, judge.solver_time())
}

fn maps(criterion: &mut Criterion) {
    let (constant, symbolic) = (CONSTANT.map(read_map), SYMBOLIC.map(read_map));
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
            .map(|report| report.obligation)
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

criterion_group!(benches, maps, programs);
criterion_main!(benches);
