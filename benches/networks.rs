//! The time from an ONNX model to a proved plan and proved kernels, without running them: the small model of the examples, and SqueezeNet
//! if `scripts/onnx_models.sh` has installed it.
//!
//! `cargo bench --bench networks`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may fail, and says what it skips")]

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::network::profile::PROFILES;
use tilewright::network::{lower, onnx, scopes};
use tilewright::pipeline;
use tilewright::planner::{Strategy, plan_for};
use tilewright_verify::{Config, Judge};

/// Reads, lowers, plans and proves a model; returns the number of proved obligations.
fn proved(judge: &Judge, bytes: &[u8]) -> usize {
    let (profile, mut count) = (&PROFILES[1], 0);
    let model = onnx::read(bytes).unwrap();
    let storage = scopes::collect_storage_info(&model, profile);
    let network = lower::lower(&model, &storage, profile).unwrap();
    let graph = &network.graph.graph;
    let plan = plan_for(graph, Strategy::Best, profile.pool_rules()).unwrap();
    for report in judge.check_plan_for(graph, &plan, profile.pool_rules()) {
        assert!(report.verdict.is_proved(), "{}", report.verdict);
        count += 1;
    }
    for program in &network.programs {
        let mut program = program.clone();
        program.func.attrs.texture_limits = Some(profile.limits);
        let lowering = pipeline::lower(&program, judge, false, &mut |_, _| {}).unwrap();
        assert!(lowering.is_complete());
        for report in lowering.steps.iter().flat_map(|step| &step.reports) {
            assert!(report.verdict.is_proved(), "{}", report.verdict);
            count += 1;
        }
    }
    count
}

fn models(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model to proved plan and kernels");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let root = env!("CARGO_MANIFEST_DIR");
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for (name, path) in [("tiny", "examples/models/tiny.onnx"), ("squeezenet", ".deps/onnx/light_squeezenet.onnx")] {
        let Ok(bytes) = fs::read(format!("{root}/{path}")) else {
            println!("skipped: {path} is not installed");
            continue;
        };
        group.bench_function(name, |bencher| bencher.iter(|| assert!(proved(&judge, black_box(&bytes)) > 0)));
    }
    group.finish();
}

criterion_group!(benches, models);
criterion_main!(benches);
