//! Compares a run on one thread with runs on several threads and with runs in which the iterations
//! of non-serial loops are executed in other orders: the results have to be equal bit by bit. A
//! generated program has no races, so none may be reported.
//!
//! The program itself and the result of the passes are checked. For the program with a mistake in
//! it, an index out of bounds has to be reported in every order or in none.

use tilewright_interp::{Arguments, Config, Observers, Order as Iterations, RunError, TrapKind, run};
use tilewright_ir::validate;

use crate::chain::{
    Chain, ChainLink, Outputs, PaddingFill, differences, error_kind, interpreter_config, written_params,
};
use crate::inputs::{arguments, control_reads_memory, thread_loops_wait};
use crate::mutate::mutated_program;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::ProgramCase;

/// The oracle `order`; see the module.
#[derive(Debug, Default)]
pub struct Order;

impl Order {
    /// Creates the oracle.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

impl Oracle for Order {
    type Case = ProgramCase;

    const NAME: &'static str = "order";

    fn check(&mut self, case: &ProgramCase, tally: &mut Tally) -> Outcome {
        let (chain, inputs) = match Chain::of_case(case) {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        let Some(first) = chain.links.first() else { return Outcome::Invalid("no program".into()) };
        let last = chain.links.last().filter(|_| chain.links.len() > 1 && chain.refused.is_none());
        let versions = [Some(first), last].into_iter().flatten();
        for link in versions {
            if let Err(outcome) = in_any_order(link, first, &inputs, case, tally) {
                return outcome;
            }
        }
        match wrong_in_any_order(first, case.seed(), tally) {
            Ok(()) => Outcome::Held,
            Err(outcome) => outcome,
        }
    }
}

/// Checks the program with a mistake, if loaded values decide neither what runs nor which elements
/// are accessed: then the set of executed accesses does not depend on the order, so an index is out
/// of bounds in every order or in none.
fn wrong_in_any_order(first: &ChainLink, seed: u64, tally: &mut Tally) -> Result<(), Outcome> {
    let wrong = mutated_program(&first.func, seed);
    if control_reads_memory(&wrong) {
        return Ok(());
    }
    let Ok(valid) = validate(&wrong) else { return Ok(()) };
    let Ok(inputs) = arguments(&wrong, &first.symbols, seed) else { return Ok(()) };
    let runs = |how: &Config| run(valid, &mut inputs.clone(), how).err();
    let is_outside = |stop: &RunError| matches!(stop, RunError::Trap(trap) if trap.kind == TrapKind::OutOfBounds);
    // Which undefined read or race comes first depends on the order, and it would end a run before the access that is
    // out of bounds.
    let unwatched = Config { observers: Observers { defined: false, race: false }, ..interpreter_config() };
    let reference = runs(&unwatched);
    tally.count("programs with a mistake", 1);
    for (name, order) in [("reversed", Iterations::Reversed), ("shuffled", Iterations::Shuffled(seed))] {
        let other = runs(&Config { order, ..unwatched.clone() });
        let (one, two) = match (&reference, &other) {
            (None, Some(stop)) if is_outside(stop) => ("the program's", name),
            (Some(stop), None) if is_outside(stop) => (name, "the program's"),
            // Both runs trap, or the program traps for another reason, perhaps before the access.
            (Some(_), _) => {
                tally.count("programs with a mistake that stop", 1);
                continue;
            }
            _ => continue,
        };
        let what = format!("an index is outside in {two} order and not in {one}");
        return Err(Failure::outcome(what, tilewright_script::print_func(&wrong)));
    }
    Ok(())
}

/// The execution modes that must not change the result.
fn execution_modes(seed: u64) -> [(&'static str, Config); 4] {
    // Threads are used despite the limit on iterations, as long as the limit is far away.
    let mode = |threads, order| Config { threads, order, ..interpreter_config() };
    let race = Config { observers: Observers { defined: true, race: true }, ..interpreter_config() };
    [
        ("with the race check", race),
        ("on 2 threads", mode(2, Iterations::Program)),
        ("in reversed order", mode(1, Iterations::Reversed)),
        ("in shuffled order", mode(1, Iterations::Shuffled(seed))),
    ]
}

/// The reason why a version of a program left no results: it trapped, or its tensors could not be packed into the
/// layout of the version or unpacked from it.
struct Stopped {
    /// The kind of the trap, or what could not be packed or unpacked, for counting.
    kind: String,
    /// The reason in words.
    why: String,
    /// Whether two iterations that run at once touched one element.
    is_race: bool,
    /// Whether it was not run in this mode at all.
    is_refused: bool,
}

/// Runs one version of a program in all modes and compares what it writes with the run on one
/// thread.
fn in_any_order(
    link: &ChainLink,
    first: &ChainLink,
    inputs: &Arguments,
    case: &ProgramCase,
    tally: &mut Tally,
) -> Result<(), Outcome> {
    let is_generated = matches!(case, ProgramCase::Recipe(_));
    let is_written = written_params(&first.func);
    let left = |how: &Config| -> Result<(Outputs, u64), Stopped> {
        let failed =
            |kind: &str, why: String| Stopped { kind: kind.to_owned(), why, is_race: false, is_refused: false };
        let mut packed = link.pack(inputs, PaddingFill::Undefined).map_err(|why| failed("arguments", why))?;
        let report = link.run(&mut packed, how).map_err(|error| Stopped {
            kind: error_kind(&error),
            why: error.to_string(),
            is_race: matches!(&error, RunError::Trap(trap) if trap.kind == TrapKind::Race),
            is_refused: matches!(&error, RunError::Input(_)),
        })?;
        let outputs = link.unpack(&packed, inputs, &is_written).map_err(|why| failed("padding", why))?;
        Ok((outputs, report.parallel_loops))
    };
    let (expected, _) = left(&interpreter_config())
        .map_err(|stopped| Outcome::Invalid(format!("the program stops: {}", stopped.kind)))?;
    for (name, how) in execution_modes(case.seed()) {
        let (outputs, parallel) = match left(&how) {
            Ok(left) => left,
            // The check needs phases, which some programs with barriers do not have: the run in the program's order did without.
            Err(stopped) if stopped.is_refused && how.observers.race => {
                tally.count("programs that the race check refuses", 1);
                continue;
            }
            // A generated program has no race; a text may have one, and then its result may depend on the order.
            Err(stopped) if stopped.is_race && !is_generated => return Err(Outcome::Invalid("a race".into())),
            // `compute_at` may put code in front of thread loops of a launch. The check takes it for a thread of its own;
            // for the judge and the generated kernels, the thread loops wait for it.
            Err(stopped) if stopped.is_race && thread_loops_wait(&link.func.body) => {
                tally.count("launches whose thread loops wait for code around them", 1);
                continue;
            }
            Err(stopped) => return Err(Failure::outcome(format!("{} {name}", stopped.kind), stopped.why)),
        };
        let (lanes, difference) = differences(&first.func, &expected, &outputs);
        tally.count("values compared", lanes);
        tally.count("loops spread over threads", parallel);
        if let Some(why) = difference {
            return Err(Failure::outcome(format!("{name} the result differs"), why));
        }
    }
    Ok(())
}
