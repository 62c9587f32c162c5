//! Races that the judge does not decide, looked for by running the program.
//!
//! The judge states and decides races ([`Judge::check_races`](tilewright_verify::Judge::check_races)). Where it says *unknown*,
//! one run of the interpreter that compares every access of every iteration may still show one:
//!
//! ```text
//! for i in T.parallel(n):          unknown to the judge: memory decides what is written.
//!     B[I[i]] = A[i]               With I = [3, 3, ..] iterations 0 and 1 write B[3]: refuted, by an execution.
//! ```

use tilewright_interp::{Argument, Arguments, Config, Observers, RunError, TrapKind, run};
use tilewright_ir::{Bindings, PrimFunc, Scalar, Stmt, StmtKind, validate};
use tilewright_verify::{Counterexample, Method, OWN_MEMORY, Obligation, Report, Verdict};

use crate::harness::engine::{Param, StageProgram};
use crate::harness::inputs::{Numbers, premises, satisfying};
use crate::harness::layout::shape;

/// Most iterations that are run, over all loops.
pub const MAX_ITERATIONS: u64 = 1 << 20;

/// Most bytes of memory for the run.
const MAX_BYTES: u64 = 1 << 28;

/// Returns whether the function has loops whose iterations may run at once.
pub fn runs_at_once(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt: &Stmt| {
        found |= matches!(&stmt.kind, StmtKind::For(inner) if inner.kind.is_concurrent());
    });
    found
}

/// Runs the function once if the judge left a race undecided; a race that the run meets refutes the obligation.
pub(super) fn look_by_running(func: &PrimFunc, reports: &mut [Report]) {
    // A run has one memory for all threads.
    let is_of_iterations =
        |report: &Report| report.obligation == Obligation::Race && !report.subject.ends_with(OWN_MEMORY);
    let is_open = |report: &&mut Report| {
        is_of_iterations(report) && matches!(report.verdict, Verdict::Unknown(_)) && !report.is_internal()
    };
    let mut open = reports.iter_mut().filter(is_open).peekable();
    if open.peek().is_none() {
        return;
    }
    if let Some(found) = race_in_a_run(func) {
        for report in open {
            (report.verdict, report.method) = (Verdict::Refuted(found.clone()), Method::Interpreter);
        }
    }
}

/// The race that one run of the function meets, if it meets one.
fn race_in_a_run(func: &PrimFunc) -> Option<Counterexample> {
    let symbols = func.symbols();
    let bindings = satisfying(&symbols, &[], &premises(func), 0).ok()?.bindings;
    let mut arguments = arguments(func, &bindings)?;
    let valid = validate(func).ok()?;
    // One thread and no other observers: the race detector compares accesses by iteration, so the order of execution
    // does not matter.
    let observers = Observers { defined: false, race: true };
    let fuel = Some(MAX_ITERATIONS);
    let config = Config { threads: 1, fuel, max_bytes: MAX_BYTES, observers, ..Config::default() };
    match run(valid, &mut arguments, &config) {
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::Race => {
            let shape = symbols.iter().map(|symbol| (symbol.name().to_owned(), bindings[symbol])).collect();
            Some(Counterexample { shape, text: trap.to_string(), ..Counterexample::default() })
        }
        Ok(_) | Err(RunError::Trap(_) | RunError::Input(_)) => None,
    }
}

/// Draws arguments for a run; `None` if they are too large to watch every element.
fn arguments(func: &PrimFunc, bindings: &Bindings) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    for (param, part) in StageProgram::Func(func).params().iter().zip(0u64..) {
        let mut numbers = Numbers::new(0, part);
        arguments.params.push(match param {
            Param::Buffer(buffer) => {
                let extents = shape(&buffer.shape, bindings).ok()?;
                let lanes = extents.iter().try_fold(u64::from(buffer.dtype.lanes), |size, &n| size.checked_mul(n))?;
                if lanes > MAX_BYTES / 8 {
                    return None;
                }
                Argument::Tensor(numbers.tensor(buffer.dtype, &extents).ok()?)
            }
            Param::Scalar(var) => {
                let known = bindings.get(var).map(|&value| Scalar::Int(value));
                Argument::Scalar(known.unwrap_or_else(|| numbers.value(var.dtype().scalar)))
            }
        });
    }
    arguments.symbols = func.symbols().iter().map(|symbol| (symbol.clone(), bindings[symbol])).collect();
    Some(arguments)
}
