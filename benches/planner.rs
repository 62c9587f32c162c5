//! The time to plan the memory of networks of 1 000, 10 000 and 30 000 tensors, and to prove the plan of 10 000.
//!
//! `cargo bench --bench planner`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::fuzz::graph::network;
use tilewright::graph;
use tilewright::planner::{Strategy, plan};
use tilewright_verify::{Config, Judge};

const SIZES: [usize; 3] = [1_000, 10_000, 30_000];

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    for (name, strategy) in [("compatible", Strategy::Compatible), ("best", Strategy::Best)] {
        for size in SIZES {
            let graph = network(size).unwrap().graph;
            group.bench_with_input(BenchmarkId::new(name, size), &graph, |bencher, graph| {
                bencher.iter(|| plan(black_box(graph), strategy).unwrap());
            });
        }
    }
    group.finish();
}

fn texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("graph of 10000");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let graph = network(10_000).unwrap();
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let text = graph::write(&graph, Some(&plan)).unwrap();
    group.bench_function("write", |bencher| bencher.iter(|| graph::write(black_box(&graph), Some(&plan)).unwrap()));
    group.bench_function("read", |bencher| bencher.iter(|| graph::read(black_box(&text)).unwrap()));
    group.finish();
}

fn proof(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("proof of 10000");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let graph = network(10_000).unwrap().graph;
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for (name, strategy) in [("compatible", Strategy::Compatible), ("best", Strategy::Best)] {
        let plan = plan(&graph, strategy).unwrap();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let reports = judge.check_plan(black_box(&graph), &plan);
                assert!(reports.iter().all(|report| report.verdict.is_proved()));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, plans, texts, proof);
criterion_main!(benches);
