//! Programs that are measured: relayouts of images, with and without arithmetic; and how they are run.

#![allow(dead_code, reason = "not every benchmark uses all of it")]

use std::time::Instant;

use tilewright::codegen::{self, generate};
use tilewright::passes::pass_by_name;
use tilewright_device::{BuildOptions, RunOptions, Session, devices, select};
use tilewright_interp::{Arguments, Config, Tensor, fill, run};
use tilewright_ir::{Expr, PrimFunc, validate};

/// NHWC to NCHW4c with a multiply-add, a work-item for each pixel; `{n}` is the batch.
pub(crate) const MULTIPLY_ADD: &str = "@T.prim_func
def relayout(A: T.Buffer(({n}, 56, 56, 64), \"float32\"), B: T.Buffer(({n}, 16, 56, 56, 4), \"float32\")):
    for bx in T.thread_binding({n} * 56, thread=\"blockIdx.x\"):
        for tx in T.thread_binding(56, thread=\"threadIdx.x\"):
            for co, ci in T.grid(16, 4):
                B[bx // 56, co, bx % 56, tx, ci] = A[bx // 56, bx % 56, tx, co * 4 + ci] * T.float32(2) + A[bx // 56, bx % 56, tx, co * 4 + ci]
";

/// NHWC to NCHW4c, nothing but moved; of 62 channels, so that the last block is padded with zeros.
pub(crate) const PADDED: &str = "@T.prim_func
def relayout(A: T.Buffer((4, 56, 56, 62), \"float32\"), B: T.Buffer((4, 16, 56, 56, 4), \"float32\")):
    for bx in T.thread_binding(224, thread=\"blockIdx.x\"):
        for tx in T.thread_binding(56, thread=\"threadIdx.x\"):
            for co, ci in T.grid(16, 4):
                B[bx // 56, co, bx % 56, tx, ci] = T.if_then_else(co * 4 + ci < 62, A[bx // 56, bx % 56, tx, co * 4 + ci], T.float32(0))
";

/// NHWC to NCHW.
pub(crate) const TRANSPOSE: &str = "@T.prim_func
def relayout(A: T.Buffer((4, 56, 56, 64), \"float32\"), B: T.Buffer((4, 64, 56, 56), \"float32\")):
    for bx in T.thread_binding(256, thread=\"blockIdx.x\"):
        for tx in T.thread_binding(56, thread=\"threadIdx.x\"):
            for w in range(56):
                B[bx // 64, bx % 64, tx, w] = A[bx // 64, tx, w, bx % 64]
";

/// NHWC to NCHW4c, nothing but moved.
pub(crate) const BLOCKED: &str = "@T.prim_func
def relayout(A: T.Buffer((4, 56, 56, 64), \"float32\"), B: T.Buffer((4, 16, 56, 56, 4), \"float32\")):
    for bx in T.thread_binding(224, thread=\"blockIdx.x\"):
        for tx in T.thread_binding(56, thread=\"threadIdx.x\"):
            for co, ci in T.grid(16, 4):
                B[bx // 56, co, bx % 56, tx, ci] = A[bx // 56, bx % 56, tx, co * 4 + ci]
";

/// A function as text.
pub(crate) fn read(text: &str) -> PrimFunc {
    tilewright_script::read_module(text).unwrap().funcs.remove(0)
}

fn tensors(func: &PrimFunc) -> Vec<Tensor> {
    let last = func.buffer_map.len() - 1;
    let tensor = |(seed, (_, buffer)): (usize, &(tilewright_ir::Var, tilewright_ir::Buffer))| {
        let extent = |expr: &Expr| u64::try_from(expr.as_const_int().unwrap()).unwrap();
        let mut tensor = Tensor::undefined(buffer.dtype, &buffer.shape.iter().map(extent).collect::<Vec<_>>()).unwrap();
        if seed < last {
            fill(&mut tensor, seed as u64);
        }
        tensor
    };
    func.buffer_map.iter().enumerate().map(tensor).collect()
}

/// Nanoseconds of one interpretation.
pub(crate) fn interpret(func: &PrimFunc, threads: usize) -> f64 {
    let mut args = Arguments::tensors(tensors(func));
    let config = Config { threads, ..Config::default() };
    let valid = validate(func).unwrap();
    let start = Instant::now();
    run(valid, &mut args, &config).unwrap();
    start.elapsed().as_nanos() as f64
}

/// A kernel on a device, ready to be run.
pub(crate) struct Kernel {
    session: Session,
    program: tilewright_device::Program,
    plan: tilewright_device::LaunchPlan,
}

impl Kernel {
    /// The function flattened and compiled for the device of that name.
    pub(crate) fn new(func: &PrimFunc, device: &str) -> Result<Self, String> {
        let all = devices().map_err(|error| error.to_string())?;
        let info = select(&all, Some(device)).map_err(|error| error.to_string())?;
        let session = Session::open(info).map_err(|error| error.to_string())?;
        let flat = (pass_by_name("flatten_buffer").unwrap().run)(func).map_err(|found| format!("{found:?}"))?.func;
        let generated = generate(validate(&flat).unwrap()).map_err(|found| format!("{found:?}"))?;
        let mut given = codegen::Arguments::default();
        for ((_, buffer), tensor) in flat.buffer_map.iter().zip(tensors(func)) {
            given.contents.insert(buffer.data.clone(), tensor.shared_bytes());
        }
        let plan = generated.plan(&given).map_err(|found| found.to_string())?;
        // Drivers as they come: Oclgrind is three times as fast with the optimiser that it is not trusted with elsewhere.
        let flags = generated.metadata.build_options.clone();
        let options = BuildOptions { flags, workarounds: false, ..BuildOptions::default() };
        let program = session.build(&generated.source, &options).map_err(|error| error.to_string())?;
        Ok(Self { session, program, plan })
    }

    /// What runs it.
    pub(crate) fn device(&self) -> String {
        self.session.info().label()
    }

    /// Nanoseconds on the device of one run.
    pub(crate) fn run(&self) -> f64 {
        let output = self.session.run(&self.program, &self.plan, &RunOptions::default()).unwrap();
        output.launch_nanoseconds.iter().flatten().sum::<u64>() as f64
    }

    /// Nanoseconds of copying as many bytes as are written, on the device.
    pub(crate) fn copy(&self) -> f64 {
        self.session.copy_nanoseconds(self.bytes()).unwrap() as f64
    }

    /// How many bytes are written.
    pub(crate) fn bytes(&self) -> u64 {
        self.plan.buffers.last().map_or(0, |spec| spec.bytes)
    }
}

/// Nanoseconds of copying so many bytes by `memcpy`, between memory that was touched before.
pub(crate) fn memcpy(bytes: usize) -> f64 {
    let (from, mut to) = (vec![1u8; bytes], vec![0u8; bytes]);
    let start = Instant::now();
    to.copy_from_slice(std::hint::black_box(&from));
    let taken = start.elapsed().as_nanos() as f64;
    std::hint::black_box(to);
    taken
}
