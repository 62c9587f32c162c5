//! Faults switched on one at a time: some oracle must see each, and none a decoy.
//!
//! `cargo test --features sabotage --test sabotage -- --ignored --nocapture` measures all of them and prints a table;
//! `SABOTAGE_SECONDS` is the time for each oracle and fault, `SABOTAGE_ONLY` names or areas, `SABOTAGE_ORACLES` oracles.

#![cfg(feature = "sabotage")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and prints a table")]

use std::time::{Duration, Instant};

use tilewright::fuzz::faults::{FAULTS, PlantedFault, by_name};
use tilewright::fuzz::oracles::{Entry, ORACLES};
use tilewright::fuzz::{Environment, Tally, bytes};
use tilewright_ir::sabotage::switch;

/// What an oracle found of a fault, and after how many runs.
struct Caught {
    oracle: &'static str,
    runs: u64,
    time: Duration,
    what: String,
}

/// Runs one oracle until it finds something.
fn hunt(entry: &Entry, limit: Duration, seed: u64) -> (Option<Caught>, u64) {
    let Ok(mut runner) = (entry.make)(&Environment::default()) else { return (None, 0) };
    let (start, mut tally, mut number) = (Instant::now(), Tally::default(), 0);
    while start.elapsed() < limit {
        let batch = u64::try_from(runner.batch()).unwrap();
        let inputs: Vec<_> = (number..number + batch).map(|number| bytes::of_case(seed, entry.name, number)).collect();
        number += batch;
        if let Some((_, finding)) = runner.run(&inputs, &mut tally).into_iter().next() {
            let (runs, time) = (tally.runs, start.elapsed());
            return (Some(Caught { oracle: entry.name, runs, time, what: finding.failure.what }), runs);
        }
    }
    (None, tally.runs)
}

fn measured(row: &PlantedFault, oracles: &[&Entry], limit: Duration) -> (Option<Caught>, u64) {
    switch(Some(row.name));
    let mut runs = 0;
    let mut caught = None;
    for entry in oracles {
        let (found, more) = hunt(entry, limit, 1);
        runs += more;
        if found.is_some() {
            caught = found;
            break;
        }
    }
    switch(None);
    (caught, runs)
}

fn wanted(variable: &str) -> Option<Vec<String>> {
    std::env::var(variable).ok().map(|names| names.split(',').map(str::to_owned).collect())
}

#[test]
fn a_handful_of_faults_is_seen_at_once_and_decoys_are_not() {
    std::panic::set_hook(Box::new(|_| {}));
    let oracles: Vec<&Entry> =
        ORACLES.iter().filter(|entry| ["passes", "judge_programs"].contains(&entry.name)).collect();
    let limit = Duration::from_secs(20);
    for name in ["flatten-swaps-strides", "shape-forgets-last", "lockstep-ignores-first-axis"] {
        let (caught, runs) = measured(by_name(name).unwrap(), &oracles, limit);
        assert!(caught.is_some(), "{name} was not seen in {runs} runs");
    }
    for name in ["flatten-commutes", "sites-backwards"] {
        let (caught, runs) = measured(by_name(name).unwrap(), &oracles, Duration::from_secs(1));
        assert!(caught.is_none() && runs > 0, "{name}: {}", caught.unwrap().what);
    }
}

#[test]
#[ignore = "takes as long as it is told to"]
fn every_fault_by_the_oracle_that_sees_it() {
    std::panic::set_hook(Box::new(|_| {}));
    let (only, named) = (wanted("SABOTAGE_ONLY"), wanted("SABOTAGE_ORACLES"));
    let seconds = wanted("SABOTAGE_SECONDS").and_then(|text| text[0].parse().ok()).unwrap_or(10);
    let has =
        |list: &Option<Vec<String>>, name: &str| list.as_ref().is_none_or(|list| list.iter().any(|one| one == name));
    let oracles: Vec<&Entry> = match &named {
        None => ORACLES.iter().collect(),
        Some(names) => names.iter().filter_map(|name| ORACLES.iter().find(|entry| entry.name == name)).collect(),
    };
    for row in
        FAULTS.iter().filter(|row| has(&only, row.name) || only.as_ref().is_some_and(|_| has(&only, row.area.name())))
    {
        let (caught, runs) = measured(row, &oracles, Duration::from_secs(seconds));
        let kind = if row.is_decoy { "decoy" } else { "fault" };
        match caught {
            Some(Caught { oracle, runs, time, what }) => {
                println!(
                    "{kind} | {} | {} | {oracle} | {runs} | {:.2} | {what}",
                    row.name,
                    row.area.name(),
                    time.as_secs_f64()
                );
            }
            None => println!("{kind} | {} | {} | - | {runs} | |", row.name, row.area.name()),
        }
    }
}
