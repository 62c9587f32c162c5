//! The time of the main job without a device: read, lower, every pass, every obligation proved, every stage interpreted and
//! compared. A fresh judge each time, as in a command.
//!
//! `cargo bench --bench checks`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::pipeline::outcome::{StepOutcome, Summary};
use tilewright::pipeline::{DeviceChoice, Options, check};

const PROGRAMS: [(&str, &str); 4] = [
    ("addone", include_str!("../examples/addone.py")),
    ("NHWC to NCHW4c", include_str!("../examples/nhwc_to_nchwc.tvm.py")),
    ("conv2d", include_str!("../examples/conv2d_resnet.py")),
    ("conv2d in textures", include_str!("../examples/conv2d_texture.py")),
];

fn options() -> Options {
    Options {
        threads: 1,
        timeout: Duration::from_secs(10),
        seed: 0,
        shapes: Vec::new(),
        device: DeviceChoice::None,
        host: tilewright_device::DeviceHost::default(),
        assume: Vec::new(),
        limits: None,
        allow_unknown: false,
        pipeline: tilewright::passes::Pipeline::default(),
        record: false,
        function: None,
    }
}

fn checks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
    for (name, text) in PROGRAMS {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let outcome = check(black_box(text), &options(), &mut |_, _| {}).unwrap();
                let proved = outcome.functions.iter().flat_map(|function| &function.steps);
                let proved = proved.map(StepOutcome::summary).all(|summary| summary == Summary::Proved);
                assert!(proved, "{name} is not proved");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, checks);
criterion_main!(benches);
