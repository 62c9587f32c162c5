//! Generated kernels on the first OpenCL device, against a copy of the bytes that they write: `clEnqueueCopyBuffer` on the same device,
//! and `memcpy`. Without a device it says so and measures the copy alone.
//!
//! `cargo bench --bench kernels`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::print_stdout, reason = "that there is no device has to be seen")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are small"
)]

#[path = "cases/programs.rs"]
mod programs;

use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use programs::{BLOCKED, Kernel, MULTIPLY_ADD, PADDED, TRANSPOSE};

fn kernels(criterion: &mut Criterion) {
    let multiply_add = MULTIPLY_ADD.replace("{n}", "4");
    let cases =
        [("NHWC to NCHW", TRANSPOSE), ("NHWC to NCHW4c", BLOCKED), ("padded", PADDED), ("multiply-add", &multiply_add)];
    for (name, text) in cases {
        let mut group = criterion.benchmark_group(format!("kernel, {name}"));
        group.sampling_mode(SamplingMode::Flat);
        group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(700));
        let mut measure = |label: &str, bytes: u64, run: &dyn Fn() -> f64| {
            group.throughput(Throughput::Bytes(bytes));
            group.bench_function(label, |bencher| {
                bencher.iter_custom(|count| Duration::from_nanos((0..count).map(|_| run()).sum::<f64>() as u64));
            });
        };
        match Kernel::new(&programs::read(text), "0") {
            Ok(kernel) => {
                let bytes = kernel.bytes();
                measure("kernel", bytes, &|| kernel.run());
                measure("clEnqueueCopyBuffer", bytes, &|| kernel.copy());
                measure("memcpy", bytes, &|| programs::memcpy(usize::try_from(bytes).unwrap()));
            }
            Err(reason) => println!("kernel, {name}: skipped: {reason}"),
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
