//! The time to prove the programs of the RFCs, everything from the definition to the last pass, with nothing remembered:
//! a fresh judge each time, one thread; and the part of it that is Z3's.
//!
//! `cargo bench --bench proofs`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright::passes::{DEFAULT_PIPELINE, Rewritten, pass_by_name};
use tilewright::te::{Lowered, evaluate};
use tilewright_ir::PrimFunc;
use tilewright_verify::{Config, Judge};

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
        group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
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

criterion_group!(benches, programs);
criterion_main!(benches);
