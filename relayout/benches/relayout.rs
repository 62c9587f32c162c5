//! Moves between layouts against a copy of the same bytes: 16 MiB, on one thread and on two.
//!
//! `cargo bench -p tilewright-relayout`; each group has its copy (`memcpy`), which the others are compared with.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a benchmark with small numbers"
)]

#[path = "../tests/placements/mod.rs"]
mod placements;

mod cases;

use std::hint::black_box;

use cases::cases;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::ThreadPool;
use tilewright_relayout::{Placement, Relayout, Strategy};

fn pool(threads: usize) -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn moves(criterion: &mut Criterion) {
    for (name, extents, from, to, bytes) in cases() {
        let size = |placement: &Placement| (placement.slots().unwrap() * bytes) as usize;
        let (src, mut dst) = (vec![1u8; size(&from)], vec![0u8; size(&to)]);
        let mut copy = vec![0u8; src.len()];
        let strategy = Strategy::choose(&Relayout { extents, from, to }, bytes).unwrap();
        let fill = vec![0u8; bytes as usize];
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(src.len() as u64));
        group.bench_function("memcpy", |bencher| bencher.iter(|| copy.copy_from_slice(black_box(&src))));
        for threads in [1, 2] {
            let pool = pool(threads);
            group.bench_function(format!("{threads} threads"), |bencher| {
                bencher.iter(|| pool.install(|| strategy.run_bytes(black_box(&src), &mut dst, &fill).unwrap()));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, moves);
criterion_main!(benches);
