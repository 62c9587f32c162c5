//! Devices in a worker process: the same results as in this one, and an error instead of a crash.

mod common;

use std::time::Duration;

use common::{f32_bytes, f32s, launch, say_skipped};
use tilewright_device::{
    Arg, BufferSpec, BuildOptions, DeviceError, DeviceHost, Isolation, LaunchPlan, PATIENCE, RunOptions, Scalar,
    Session, devices,
};

/// The worker is this test program again, started to run only the test below. The last argument is a further filter, by
/// which that test recognises that it is the worker.
const WORKER: [&str; 4] = ["--exact", "--nocapture", "this_program_as_a_worker", "as-a-worker-of-isolation.rs"];

const SOURCE: &str = "
kernel void scale(global float *a, float by) { a[get_global_id(0)] *= by; }
kernel void crash(global float *a, long at) { a[at] = 1.0f; }
kernel void forever(global volatile int *a) { while (a[0] == 0) { } }";

#[test]
fn this_program_as_a_worker() {
    if std::env::args().any(|argument| argument == WORKER[3]) {
        tilewright_device::serve().expect("the answers are read");
    }
}

fn host(patience: Duration) -> DeviceHost {
    let program = std::env::current_exe().expect("the path of this program");
    DeviceHost::new(Isolation::Process { program, arguments: WORKER.map(str::to_owned).to_vec(), patience })
}

/// A worker that is a shell script.
fn script(script: &str) -> DeviceHost {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    DeviceHost::new(Isolation::Process { program: "/bin/sh".into(), arguments, patience: PATIENCE })
}

/// The first device, in a worker; `None`, with a report, if there is none.
fn open(host: &DeviceHost) -> Option<Session> {
    let survey = host.survey();
    match survey.select(None) {
        Ok(info) => Some(host.open(info).expect("the device opens")),
        Err(error) if error.is_absent() => {
            say_skipped("no OpenCL device");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn plan(kernel: &str, arg: Scalar) -> LaunchPlan {
    let data = f32_bytes(&[1.0, -2.5, f32::INFINITY]);
    LaunchPlan {
        buffers: vec![BufferSpec::new("a", 12).with_data(data).read_back()],
        launches: vec![launch(kernel, [3, 1, 1], vec![Arg::Memory(0), Arg::Scalar(arg)])],
    }
}

#[test]
fn a_worker_gives_what_this_process_gives() {
    let host = host(PATIENCE);
    assert_eq!(host.devices(), devices());
    let Some(session) = open(&host) else { return };
    let here = Session::open(session.info()).expect("the device opens");
    let (options, run) = (BuildOptions::default(), RunOptions::default());
    let plan = plan("scale", Scalar::F32(2.0));
    let (there, local) = (session.build(SOURCE, &options), here.build(SOURCE, &options));
    let (there, local) = (there.expect("it builds"), local.expect("it builds"));
    assert_eq!((there.kernels(), there.correctly_rounded()), (local.kernels(), local.correctly_rounded()));
    let output = session.run(&there, &plan, &run).expect("it runs");
    assert_eq!(output.buffers, here.run(&local, &plan, &run).expect("it runs").buffers);
    assert_eq!(output.buffers[0].as_deref().map(f32s), Some(vec![2.0, -5.0, f32::INFINITY]));
    assert!(output.launch_nanoseconds[0].is_some());
    assert_eq!(session.scratch_stats(), here.scratch_stats());
    // Errors arrive as they are.
    let refused = session.build("kernel void f(", &options).expect_err("no OpenCL C");
    assert!(matches!(&refused, DeviceError::Build { log, .. } if !log.is_empty()), "{refused}");
    assert!(matches!(session.run(&local, &plan, &run), Err(DeviceError::Plan(_))), "a program of another process");
    assert!(matches!(here.run(&there, &plan, &run), Err(DeviceError::Plan(_))), "a program of another process");
    // The worker of a closed session is reused, and a program in it is released with its handle.
    drop((session, there));
    assert!(open(&host).is_some());
}

#[test]
fn a_kernel_that_takes_its_process_down_is_an_error_and_the_next_session_is_a_new_process() {
    let host = host(PATIENCE);
    let Some(session) = open(&host) else { return };
    if session.info().platform != "Portable Computing Language" {
        return say_skipped("only on PoCL does a store far out of bounds end the process");
    }
    let program = session.build(SOURCE, &BuildOptions::default()).expect("it builds");
    let crash = plan("crash", Scalar::I64(1 << 45));
    let lost = session.run(&program, &crash, &RunOptions::default()).expect_err("the process is gone");
    assert!(matches!(&lost, DeviceError::Process { how, .. } if how == "ended with signal SIGSEGV"), "{lost}");
    let again = session.run(&program, &plan("scale", Scalar::F32(2.0)), &RunOptions::default());
    assert_eq!(again, Err(lost), "a session whose process is gone says why");
    drop((session, program));
    let next = open(&host).expect("another process");
    let program = next.build(SOURCE, &BuildOptions::default()).expect("it builds");
    assert!(next.run(&program, &plan("scale", Scalar::F32(2.0)), &RunOptions::default()).is_ok());
}

#[test]
fn a_launch_that_never_ends_is_ended() {
    let Some(session) = open(&host(Duration::from_secs(20))) else { return };
    let program = session.build(SOURCE, &BuildOptions::default()).expect("it builds");
    let plan = LaunchPlan {
        buffers: vec![BufferSpec::new("a", 4).filled(0)],
        launches: vec![launch("forever", [1, 1, 1], vec![Arg::Memory(0)])],
    };
    let lost = session.run(&program, &plan, &RunOptions::default()).expect_err("it never ends");
    assert_eq!(lost.to_string(), "the OpenCL driver's process hangs: no answer for 20 s");
}

#[test]
fn a_driver_that_fails_at_once_is_a_fault_of_the_survey() {
    let survey = script("echo ld: not found >&2; kill -ABRT $$").survey();
    assert!(survey.devices.is_empty());
    let error = survey.select(None).expect_err("no device");
    assert_eq!(error.to_string(), "the OpenCL driver's process ended with signal SIGABRT: ld: not found");
    let nothing = DeviceHost::new(Isolation::Process {
        program: "/nonexistent/program".into(),
        arguments: Vec::new(),
        patience: PATIENCE,
    });
    let error = nothing.devices().expect_err("no such program");
    assert!(error.to_string().contains("cannot be started: /nonexistent/program"), "{error}");
}
