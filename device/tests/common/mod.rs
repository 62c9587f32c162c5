//! Helpers of the tests: run a case on every device, or report that there is none.

#![allow(dead_code)] // each file of tests uses a part of it

use std::io::Write;

use tilewright_device::{
    Arg, BufferSpec, BuildOptions, DeviceError, Launch, LaunchPlan, RunOptions, RunOutput, Session, devices,
};

/// Reports a skipped case on standard error directly, because the test runner hides the output of a test that passes.
pub(crate) fn say_skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Runs `case` on each device; reports it if there is none.
pub(crate) fn on_every_device(case: impl Fn(&Session)) {
    let devices = devices().expect("the devices can be listed");
    if devices.is_empty() {
        say_skipped("no OpenCL device");
    }
    for info in &devices {
        eprintln!("on {}", info.label());
        case(&Session::open(info).expect("the device opens"));
    }
}

pub(crate) fn launch(kernel: &str, global: [u64; 3], args: Vec<Arg>) -> Launch {
    Launch { kernel: kernel.into(), global, local: None, args }
}

/// Builds `source` and runs a plan of these parts with default options.
pub(crate) fn run(
    session: &Session,
    source: &str,
    buffers: Vec<BufferSpec>,
    launches: Vec<Launch>,
) -> Result<RunOutput, DeviceError> {
    let program = session.build(source, &BuildOptions::default())?;
    session.run(&program, &LaunchPlan { buffers, launches }, &RunOptions::default())
}

pub(crate) fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

pub(crate) fn f32s(bytes: &[u8]) -> Vec<f32> {
    let value = |chunk: &[u8]| f32::from_ne_bytes(chunk.try_into().expect("four bytes"));
    bytes.chunks_exact(4).map(value).collect()
}
