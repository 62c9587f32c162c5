//! Every oracle runs for a second on its first cases, each as a test of its own, and holds. A new oracle is a new test.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::fuzz::oracles::Entry;
use tilewright::fuzz::{Environment, ORACLES, Tally, bytes};

/// How long an oracle runs, once it is made.
const BUDGET: Duration = Duration::from_secs(1);
/// Cases that have to hold, however long they take.
const LEAST: u64 = 6;
/// As the command line has it: cases are trees, and trees are walked by recursion.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let trials = ORACLES.iter().map(|entry| {
        Trial::test(entry.name, move || {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || holds(entry))?;
            let looked = thread.join().unwrap_or_else(|_| Err("it panics outside the oracle".to_owned()));
            looked.map_err(Failed::from)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn holds(entry: &Entry) -> Result<(), String> {
    let mut runner = match (entry.make)(&Environment::default()) {
        Ok(runner) => runner,
        Err(why) if entry.name == "device" => {
            eprintln!("skipped: oracle {}: {why}", entry.name);
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    let batch = u64::try_from(runner.batch()).unwrap();
    let (start, mut tally, mut next) = (Instant::now(), Tally::default(), 0);
    while start.elapsed() < BUDGET || tally.held < LEAST {
        let inputs: Vec<_> = (next..next + batch).map(|number| bytes::of_case(0, entry.name, number)).collect();
        next += batch;
        if let Some((at, finding)) = runner.run(&inputs, &mut tally).into_iter().next() {
            return Err(format!("input {at} of those before {next}: {:#?}\n{}", finding.failure, finding.text));
        }
        if next > 200 && tally.held < LEAST {
            return Err(format!("hardly a case is decided: {tally:#?}"));
        }
    }
    if tally.valid_percent() < 90.0 {
        return Err(format!("{:.1} % of the cases are valid: {:#?}", tally.valid_percent(), tally.invalid));
    }
    Ok(())
}
