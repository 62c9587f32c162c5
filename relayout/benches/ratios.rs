//! Moves between layouts as a fraction of a single-threaded copy of the same bytes, which is measured in turns with them.
//!
//! `cargo bench -p tilewright-relayout --bench ratios [-- NAME]` prints the best of many rounds, in memory that was touched before.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a benchmark with small numbers"
)]

#[path = "../tests/placements/mod.rs"]
mod placements;

mod cases;

use std::hint::black_box;
use std::time::Instant;

use cases::cases;
use tilewright_relayout::{Placement, Relayout, Strategy};

const ROUNDS: usize = 50;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let pools = [1, 2].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    println!("| move | memcpy, ms | 1 thread | 2 threads |\n|---|---|---|---|");
    for (name, extents, from, to, bytes) in cases() {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part)) {
            continue;
        }
        let size = |placement: &Placement| (placement.slots().unwrap() * bytes) as usize;
        let (src, mut dst) = (vec![1u8; size(&from)], vec![2u8; size(&to)]);
        let mut copy = vec![3u8; src.len()];
        let strategy = Strategy::choose(&Relayout { extents, from, to }, bytes).unwrap();
        let fill = vec![0u8; bytes as usize];
        let mut best = [f64::MAX; 3];
        for round in 0..3 * ROUNDS {
            let start = Instant::now();
            match round % 3 {
                0 => copy.copy_from_slice(black_box(&src)),
                other => pools[other - 1].install(|| strategy.run_bytes(black_box(&src), &mut dst, &fill).unwrap()),
            }
            black_box((&mut copy, &mut dst));
            best[round % 3] = best[round % 3].min(start.elapsed().as_secs_f64());
        }
        let [memcpy, one, two] = best;
        println!("| {name} | {:.3} | {:.2} | {:.2} |", memcpy * 1e3, memcpy / one, memcpy / two);
    }
}
