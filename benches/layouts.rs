//! The time that tiled layouts take: every obligation of a layout with its inverse and padding, a fresh judge each time; and
//! the table of all positions, against copying as many numbers.
//!
//! `cargo bench --bench layouts`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::layouts;
use tilewright_ir::layout::{ArrayShape, XlaShape};
use tilewright_script::read_xla_shape;
use tilewright_verify::{Config, Judge, LayoutClaim};

const LAYOUTS: [&str; 7] = [
    "f32[3,5]{1,0:T(2,2)}",
    "f32[4,8]{1,0:T(2,4)(2,1)}",
    "bf16[1000,1000]{1,0:T(8,128)(2,1)}",
    "bf16[100003,70001]{1,0:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "bf16[?,?]{1,0:T(8,128)(2,1)}",
    "f32[?,7,?]{0,2,1:T(*,3)(2,1)L(7)}",
];

fn array(text: &str) -> ArrayShape {
    match read_xla_shape(text).unwrap() {
        XlaShape::Array(array) => array,
        other => panic!("{other:?} is no array"),
    }
}

/// Decides everything; all has to be proved.
fn prove(array: &ArrayShape) {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let (layout, tiling) = (array.layout_or_default(), array.symbolic_tiling().unwrap());
    let (tiled, flat) = (tiling.to_tiled_map().unwrap(), tiling.to_flat_map().unwrap());
    let inverse = layouts::inverse(&layout, &tiling).unwrap();
    let claim = LayoutClaim::new(&layout, &tiled, tiling.physical_shape(), &flat, tiling.physical_elements());
    for report in judge.check_layout(&claim.inverse(&inverse)) {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
}

fn proofs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("layout");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for text in LAYOUTS {
        let array = array(text);
        group.bench_function(text, |bencher| bencher.iter(|| prove(black_box(&array))));
    }
    group.finish();
}

fn table(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("table of 1000x1000");
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    let tiling = array("bf16[1000,1000]{1,0:T(8,128)(2,1)}").tiling().unwrap();
    let offsets = tiling.offsets().unwrap();
    group.bench_function("offsets", |bencher| bencher.iter(|| black_box(tiling.offsets().unwrap())));
    group.bench_function("copy", |bencher| bencher.iter(|| black_box(offsets.clone())));
    group.finish();
}

criterion_group!(benches, proofs, table);
criterion_main!(benches);
