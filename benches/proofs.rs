//! The time to prove the programs of the RFCs, everything from the definition to the last pass, with nothing remembered:
//! a fresh judge each time. Nearly all of it is Z3's.
//!
//! `cargo bench --bench proofs`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::path::Path;

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

/// Proves everything; the number of obligations.
fn prove(case: &Case) -> usize {
    let judge = Judge::new(Config { threads: 1, ..Config::default() }).unwrap();
    let Lowered { definition, func, evidence, .. } = &case.lowered;
    let mut reports = judge.check_definition(definition);
    reports.extend(judge.check_lowering(definition, func, evidence));
    for (before, rewritten) in &case.steps {
        reports.extend(judge.check_pass(before, &rewritten.func, &rewritten.evidence));
    }
    assert!(reports.iter().all(|report| report.verdict.is_proved()), "{}: not proved", case.name);
    reports.len()
}

fn programs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prove");
    group.sample_size(10);
    for case in cases() {
        group.bench_function(&case.name, |bencher| bencher.iter(|| black_box(prove(&case))));
    }
    group.finish();
}

criterion_group!(benches, programs);
criterion_main!(benches);
