//! Measures the overhead of drivers for a kernel of 1024 work-items: building, the first plan, and each further plan.
//!
//! `cargo run --release -p tilewright-device --example overheads`; set `POCL_KERNEL_CACHE=0` to see PoCL compile.

use std::time::Instant;

use tilewright_device::{Arg, BufferSpec, BuildOptions, DeviceError, Launch, LaunchPlan, RunOptions, Session, devices};

const SOURCE: &str = "kernel void copy(global const float *a, global float *b) {
  size_t i = get_global_id(0);
  b[i] = a[i] + 1.0f;
}";

fn main() -> Result<(), DeviceError> {
    for info in devices()? {
        let session = Session::open(&info)?;
        let launch = Launch {
            kernel: "copy".into(),
            global: [1024, 1, 1],
            local: Some([64, 1, 1]),
            args: vec![Arg::Memory(0), Arg::Memory(1)],
        };
        let plan = LaunchPlan {
            buffers: vec![BufferSpec::new("a", 4096).filled(0), BufferSpec::new("b", 4096).read_back()],
            launches: vec![launch],
        };
        let start = Instant::now();
        let program = session.build(SOURCE, &BuildOptions::default())?;
        let build = start.elapsed();
        let start = Instant::now();
        // Another source, because a driver may answer for the same one from its cache.
        session.build(&SOURCE.replace("1.0f", "2.0f"), &BuildOptions::default())?;
        let second_build = start.elapsed();
        let start = Instant::now();
        // Drivers postpone work to the first launch, so it is measured by itself.
        let output = session.run(&program, &plan, &RunOptions::default())?;
        let first = start.elapsed();
        let first_kernel = output.launch_nanoseconds[0].unwrap_or(0);
        let start = Instant::now();
        let mut kernel_nanoseconds = 0;
        for _ in 0..200 {
            let output = session.run(&program, &plan, &RunOptions::default())?;
            kernel_nanoseconds += output.launch_nanoseconds[0].unwrap_or(0) / 200;
        }
        let each = start.elapsed() / 200;
        eprintln!("{}", info.label());
        eprintln!("  first build {build:.1?}, second {second_build:.1?}");
        eprintln!("  first plan {first:.1?}, of which the kernel {first_kernel} ns");
        eprintln!("  then {each:.1?} a plan, of which the kernel {kernel_nanoseconds} ns");
    }
    Ok(())
}
