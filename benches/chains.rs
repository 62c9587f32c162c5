//! Chains of stages, each with a layout change for symbolic extents, and functions of many statements: the time of the main
//! job without a device should grow with their length, not with its square.
//!
//! `cargo bench --bench chains`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use tilewright::pipeline::outcome::{StepOutcome, Summary};
use tilewright::pipeline::{DeviceChoice, Options, check};
use tilewright_device::DeviceHost;

/// `n` stages in TE, each from NHWC to NCHW4c.
fn chain(n: usize) -> String {
    let mut text = String::from("import tvm\nfrom tvm import te\n");
    for extent in ["n", "h", "w", "c"] {
        writeln!(text, "{extent} = te.var(\"{extent}\")").unwrap();
    }
    writeln!(text, "T0 = te.placeholder((n, h, w, c), name=\"T0\")").unwrap();
    for i in 1..=n {
        let before = i - 1;
        let value = format!("lambda i, y, x, k: T{before}[i, y, x, k] + 1");
        writeln!(text, "T{i} = te.compute(T0.shape, {value}, name=\"T{i}\")").unwrap();
    }
    writeln!(text, "s = te.create_schedule(T{n}.op)").unwrap();
    for i in 1..=n {
        writeln!(text, "s[T{i}].transform_layout(lambda i, y, x, k: [i, k // 4, y, x, k % 4])").unwrap();
    }
    text
}

/// `n` loops at the root of a TVMScript function.
fn root(n: usize) -> String {
    let mut text =
        String::from("# from tvm.script import tir as T\n@T.prim_func\ndef main(a: T.handle, b: T.handle):\n");
    text.push_str("    n = T.int32()\n");
    for (handle, name) in [("a", "A"), ("b", "B")] {
        writeln!(text, "    {name} = T.match_buffer({handle}, (n,), \"float32\")").unwrap();
    }
    for i in 0..n {
        writeln!(text, "    for i in range(n):\n        B[i] = A[i] + T.float32({i})").unwrap();
    }
    text
}

fn options() -> Options {
    Options {
        threads: 1,
        timeout: Duration::from_secs(10),
        seed: 0,
        shapes: Vec::new(),
        device: DeviceChoice::None,
        host: DeviceHost::default(),
        assume: Vec::new(),
        limits: None,
        allow_unknown: false,
        pipeline: tilewright::passes::Pipeline::default(),
        record: false,
        function: None,
    }
}

fn chains(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("grows");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(5));
    let programs = [20, 80, 320].map(|n| ("chain", n, chain(n))).into_iter();
    for (kind, n, text) in programs.chain([300, 3000].map(|n| ("root", n, root(n)))) {
        group.throughput(Throughput::Elements(u64::try_from(n).unwrap()));
        group.bench_function(BenchmarkId::new(kind, n), |bencher| {
            bencher.iter(|| {
                let checked = check(black_box(&text), &options(), &mut |_, _| {}).unwrap();
                let is_proved = |step: &StepOutcome| step.summary() == Summary::Proved;
                let mut steps = checked.functions.iter().flat_map(|function| &function.steps);
                assert!(steps.all(is_proved), "the {kind} of {n} is not proved");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, chains);
criterion_main!(benches);
