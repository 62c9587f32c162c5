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

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use placements::{map, over, paired, permuted, tiled};
use rayon::ThreadPool;
use tilewright_ir::Expr;
use tilewright_relayout::{Placement, Relayout, Strategy};

/// A name, the logical shape, both layouts, and the bytes of an element.
type Case = (&'static str, Vec<u64>, Placement, Placement, u64);

fn cases() -> Vec<Case> {
    // Channels are axis 3 here.
    let image = [16, 64, 64, 64];
    let (nhwc, nchw) = (permuted(&image, &[0, 1, 2, 3]), permuted(&image, &[0, 3, 1, 2]));
    let blocks = |index: &[Expr]| {
        let [q, r] = over(&index[3], 4);
        vec![index[0].clone(), q, index[1].clone(), index[2].clone(), r]
    };
    let nchw4c = Placement { shape: vec![16, 16, 64, 64, 4], map: map(&image, blocks) };
    let (square, half, odd, wide) = ([2048, 2048], [4096, 2048], [4001, 4003], [4096, 1024]);
    let (rows, columns) = (permuted(&square, &[0, 1]), permuted(&square, &[1, 0]));
    vec![
        ("NHWC to NCHW", image.to_vec(), nhwc.clone(), nchw.clone(), 4),
        ("NCHW to NHWC", image.to_vec(), nchw.clone(), nhwc, 4),
        ("NCHW to NCHW4c", image.to_vec(), nchw, nchw4c, 4),
        ("T(8,128)", square.to_vec(), rows.clone(), tiled(&square, (8, 128)), 4),
        ("T(2,2)", square.to_vec(), rows.clone(), tiled(&square, (2, 2)), 4),
        ("T(8,128)(2,1) of 16 bits", half.to_vec(), permuted(&half, &[0, 1]), paired(&half), 2),
        ("transpose 2048x2048", square.to_vec(), rows, columns.clone(), 4),
        ("transpose 4096x1024", wide.to_vec(), permuted(&wide, &[0, 1]), permuted(&wide, &[1, 0]), 4),
        ("columns to T(8,128)", square.to_vec(), columns, tiled(&square, (8, 128)), 4),
        ("ragged T(8,128)", odd.to_vec(), permuted(&odd, &[0, 1]), tiled(&odd, (8, 128)), 4),
    ]
}

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
