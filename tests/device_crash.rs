//! A kernel that writes out of its buffers is a row of the report, and the program lives on.
//!
//! Programs that are proved have no such kernels unless the code generator is wrong. So an engine is put in the place of the
//! device that runs the kernels of another function, which writes out of range. The driver runs in a worker of the program
//! that these tests belong to, as it does under `check`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tilewright::harness::engine::{Engine, EngineFault, EngineOutcome, Ran, StageProgram, Status};
use tilewright::harness::interpreter::Interpreter;
use tilewright::harness::opencl::OpenCl;
use tilewright::harness::stages::{Config, Stage, run_chain};
use tilewright::pipeline::outcome::Summary;
use tilewright_device::{DeviceHost, Isolation, PATIENCE};
use tilewright_interp::Arguments;
use tilewright_ir::{Bindings, PrimFunc};

/// A host that runs drivers in workers of `tilewright`, as the command line does.
fn host() -> DeviceHost {
    let arguments = ["device-worker", "--threads", "1"].map(str::to_owned).to_vec();
    let program = env!("CARGO_BIN_EXE_tilewright").into();
    DeviceHost::new(Isolation::Process { program, arguments, patience: PATIENCE })
}

/// A copy of 16 elements; what it stores begins at element `from`.
fn copy(from: i64) -> PrimFunc {
    let text = format!(
        "from tvm.script import tir as T\n\n@T.prim_func\n\
         def copy(A: T.Buffer((16,), \"int32\"), B: T.Buffer((16,), \"int32\")):\n    \
         for i in range(16):\n        B[i + {from}] = A[i]\n"
    );
    tilewright_script::read_module(&text).unwrap().funcs.remove(0)
}

/// A device that runs the kernels of its own function, whichever it is asked to run; without its optimiser, those that it is asked for.
struct Instead<'a> {
    device: &'a OpenCl,
    func: PrimFunc,
}

impl Engine for Instead<'_> {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn device(&self) -> Option<String> {
        self.device.device()
    }

    fn run(&self, _: &StageProgram<'_>, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, EngineFault> {
        self.device.run(&StageProgram::Func(&self.func), symbols, arguments)
    }

    fn unoptimised(&self) -> Option<Box<dyn Engine + '_>> {
        self.device.unoptimised()
    }
}

/// The rows of a comparison in which the first device stores from element `from` on, and a second one from element 0.
fn rows(from: i64) -> Vec<EngineOutcome> {
    let host = host();
    let (first, second) = (OpenCl::open_on(&host, None).unwrap(), OpenCl::open_on(&host, None).unwrap());
    let wrong = Instead { device: &first, func: copy(from) };
    let func = copy(0);
    let stages = [Stage { name: "input", program: StageProgram::Func(&func), evidence: None, reassociates: false }];
    let interpreter = Interpreter { config: tilewright_interp::Config::default(), is_reference: false };
    run_chain(&stages, &Config::default(), &interpreter, &[Ok(&wrong), Ok(&second)]).unwrap().engines
}

/// Checks the rows of the interpreter and of the second device, and returns that of the first.
fn first_device(from: i64) -> EngineOutcome {
    let mut rows = rows(from);
    assert_eq!(rows.len(), 3, "{rows:?}");
    let statuses: Vec<_> = [&rows[0], &rows[2]].map(|row| row.status).to_vec();
    assert_eq!(statuses, [Status::Reference, Status::Agrees], "{rows:?}");
    rows.remove(1)
}

#[test]
fn a_right_kernel_agrees() {
    let row = first_device(0);
    assert_eq!((row.status, row.compared), (Status::Agrees, 16), "{}", row.detail);
}

#[test]
fn a_store_close_behind_the_end_is_a_trap() {
    for (from, byte) in [(1, 64), (16, 64), (20, 80)] {
        let row = first_device(from);
        assert_eq!((row.status, row.summary()), (Status::Trap, Some(Summary::Mismatch)), "{}", row.detail);
        assert!(
            row.detail.starts_with(&format!("written past the end: buffer `B` from byte {byte} on")),
            "{}",
            row.detail
        );
    }
}

#[test]
fn a_store_that_ends_the_driver_is_a_row_and_the_other_rows_are_there() {
    for from in [1 << 29, -(1 << 29)] {
        let row = first_device(from);
        assert_eq!((row.status, row.summary()), (Status::Failed, Some(Summary::Unknown)), "{}", row.detail);
        assert!(row.detail.starts_with("the OpenCL driver's process ended with signal SIG"), "{}", row.detail);
        assert!(row.agrees_unoptimised, "the device opens once more, in another process");
    }
}
