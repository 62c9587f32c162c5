//! Kernels on devices: a batch is built, run and compared, and wrong kernels are seen.

use super::*;

const TEXT: &str = r#"
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (3, 5), "float32")
    B = T.match_buffer(b, (3, 5), "float32")
    for i in range(3):
        for j in range(5):
            B[i, j] = A[i, j] + T.float32(1)
"#;

fn first() -> Option<Devices> {
    let found = Devices::new(&Environment { device: DeviceChoice::First, ..Environment::default() });
    found.map_err(|why| eprintln!("skipped: {why}")).ok()
}

fn case(seed: u64) -> Kernels {
    Kernels(ProgramCase::tvmscript(TEXT, seed))
}

/// The kind of failure of a case whose kernels are rewritten before they are built.
fn sabotaged(devices: &Devices, from: &str, to: &str) -> String {
    let ready = Ready::new(&case(1).0, 0, &devices.judge).ok().unwrap();
    let source = join(&[&ready.generated]).unwrap();
    assert!(source.contains(from), "{source}");
    let flags = devices.devices[0].flags(&ready);
    let opencl = devices.devices[0].opencl.clone();
    let program = opencl.build(&source.replace(from, to), flags).unwrap();
    match devices.compare(&ready, &[Ok(Rc::new(Loaded { program, opencl }))], &mut Tally::default()) {
        Outcome::Failed(failure) => failure.what,
        other => format!("{other:?}"),
    }
}

#[test]
fn a_batch_is_two_programs_and_every_case_is_compared() {
    let Some(mut devices) = first() else { return };
    let mut tally = Tally::default();
    let cases: Vec<_> = (0..OPTIMISED).map(case).collect();
    let outcomes = devices.check_all(&cases, &mut tally);
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Held), "{outcomes:?}");
    assert_eq!((tally.counts["kernels run"], tally.counts["values compared"]), (OPTIMISED, 15 * OPTIMISED));
    assert!(tally.counts["kernels optimised"] >= 1);
}

#[test]
fn a_wrong_kernel_is_seen_and_so_is_a_store_behind_the_end() {
    let Some(devices) = first() else { return };
    let platform = &devices.devices[0].platform;
    let seen = sabotaged(&devices, "+ 1.0f", "+ 2.0f");
    assert_eq!(seen, format!("kernels on {platform} differ from the interpreter"));
    let seen = sabotaged(&devices, "B[", "B[15] = B[");
    assert_eq!(seen, format!("kernels on {platform} leave their memory"));
}

#[test]
fn a_batch_that_does_not_build_is_taken_apart() {
    let Some(devices) = first() else { return };
    let ready: Vec<_> =
        (0..4).map(|at| Ready::new(&case(1).0, usize::from(at == 2), &devices.judge).ok().unwrap()).collect();
    // Three functions have one name, which fails only if they are built together.
    let built = devices.devices[0].build_all(&ready.iter().collect::<Vec<_>>());
    assert!(built.iter().all(Result::is_ok), "{built:?}");
}

#[test]
fn what_drivers_say_becomes_a_key_without_names_and_numbers() {
    let report = "Invalid write of size 4 at global memory address 0x2000000000028\n\tKernel: k";
    assert_eq!(kind(&reported(report)), "Oclgrind reports Invalid write");
    assert_eq!(kind(&reported("Write-write data race at global")), "Oclgrind reports Write-write data race");
    assert_eq!(kind("written past the end: buffer `B` from byte 8"), "written past the end");
    assert_eq!(kind("clEnqueue failed with CL_X (-5): kernel"), "clEnqueue failed with CL_X");
}

/// Threads that wait for each other after each iteration of a loop.
const WAITING: &str = r#"
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (3, 5), "float32")
    B = T.match_buffer(b, (3, 5), "float32")
    for k in range(2):
        for i in T.thread_binding(3, thread="threadIdx.x"):
            for l in range(3):
                if k * 3 + l < 5:
                    B[i, k * 3 + l] = A[i, k * 3 + l] + T.float32(1)
"#;

/// The outcome of a program whose only device ends its process with this message, and agrees without its optimiser.
fn lost(devices: &Devices, text: &str, message: &str) -> Outcome {
    let ready = Ready::new(&ProgramCase::tvmscript(text, 1), 0, &devices.judge).ok().unwrap();
    let fault = EngineFault::Lost(message.to_owned());
    let line = EngineOutcome { agrees_unoptimised: true, ..EngineOutcome::fault("opencl", "simplify", None, fault) };
    devices.outcome(&ready, &[line], &mut Tally::default())
}

#[test]
fn only_an_assertion_of_pocl_about_a_kernel_with_barriers_is_a_fault_of_the_driver() {
    let Some(devices) = first() else { return };
    if devices.devices[0].platform != POCL {
        eprintln!("skipped: the first device is not PoCL's");
        return;
    }
    let assertion =
        "ended with signal SIGABRT: ./lib/llvmopencl/ParallelRegion.cc:346: Assertion `exit != NULL' failed.";
    assert!(matches!(lost(&devices, WAITING, assertion), Outcome::Undecided(_)));
    assert!(matches!(lost(&devices, WAITING, "ended with signal SIGSEGV"), Outcome::Failed(_)));
    assert!(matches!(lost(&devices, TEXT, assertion), Outcome::Failed(_)));
}
