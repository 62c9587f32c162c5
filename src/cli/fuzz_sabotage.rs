//! `tilewright fuzz --sabotage`: the mutation test, which measures which faults the oracles detect.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tilewright_campaign::faults::{Area, FAULTS, PlantedFault};
use tilewright_ir::sabotage;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::printer::Printer;
use crate::report::fuzz::this_machine;
use crate::report::fuzz_sabotage::{SabotageReport, markdown, text};
use tilewright_campaign::campaign::Plan;
use tilewright_campaign::campaign::files::write_whole;
use tilewright_campaign::campaign::sabotage as trials;

/// How long the whole test takes, unless `--minutes` is given.
const MINUTES: Duration = Duration::from_mins(10);

/// Switches the faults on, one after the other, and reports which oracle detected which.
///
/// # Errors
/// The program was built without faults, no fault has the name, or the table cannot be written.
pub(super) fn run(
    name: &str,
    table: Option<&PathBuf>,
    duration: Option<Duration>,
    campaign: &Plan,
    interrupted: &(dyn Fn() -> bool + Sync),
    printer: &mut Printer,
) -> Result<ExitStatus, Failure> {
    let plan = trials::Plan {
        oracles: campaign.oracles.clone(),
        faults: faults(name)?,
        seed: campaign.seed,
        duration: duration.unwrap_or(MINUTES),
        jobs: campaign.jobs,
        launch: campaign.launch.clone(),
    };
    let start = Instant::now();
    // One more than the faults: the control, in which nothing is broken, is tried as well.
    let bar = ProgressBar::with_draw_target(u64::try_from(plan.faults.len() + 1).ok(), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {elapsed} {msg}") {
        bar.set_style(style);
    }
    let done = trials::run(&plan, interrupted, &mut |trials| show(&bar, trials));
    bar.finish_and_clear();
    let report = SabotageReport::new(&done, plan.seed, plan.jobs, start.elapsed().as_secs_f64(), interrupted());
    if let Some(path) = table {
        let minutes = plan.duration.as_secs_f64() / 60.0;
        let command = format!("tilewright fuzz --sabotage {name} --minutes {minutes} --seed {}", plan.seed);
        let written = write_whole(path, &markdown(&report, &command, &this_machine()));
        written.map_err(|error| {
            let name = path.display().to_string();
            Failure::plain(&name, "cannot-write", format!("cannot write {name}: {error}"))
        })?;
    }
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&text(&report, printer.style()))?;
    }
    Ok(if report.interrupted {
        ExitStatus::Undecided
    } else if report.is_complete {
        ExitStatus::Success
    } else {
        ExitStatus::Refuted
    })
}

/// Shows how many faults were caught and how many decoys were flagged so far.
fn show(bar: &ProgressBar, trials: &[trials::Trial]) {
    let caught = trials.iter().filter(|trial| trial.is_fault() && trial.caught.is_some()).count();
    let faults = trials.iter().filter(|trial| trial.is_fault()).count();
    let flagged = trials.iter().filter(|trial| !trial.is_fault() && trial.caught.is_some()).count();
    let runs: u64 = trials.iter().map(|trial| trial.runs).sum();
    bar.set_position(u64::try_from(caught).unwrap_or(0));
    bar.set_message(format!("{caught} of {faults} faults caught, {flagged} decoys flagged, {runs} cases"));
}

/// The faults that a text names: `all`, or names of faults and of parts, separated by commas.
fn faults(text: &str) -> Result<Vec<&'static PlantedFault>, Failure> {
    let fault = |code, message: String, help: &str| Err(Failure::plain("--sabotage", code, message).with_help(help));
    let mut found = Vec::new();
    for name in text.split(',') {
        let is_meant = |row: &PlantedFault| name == "all" || row.name == name || row.area.name() == name;
        let before = found.len();
        found.extend(FAULTS.iter().filter(|row| is_meant(row)));
        if found.len() == before {
            let parts = Area::ALL.map(Area::name).join(", ");
            let names: Vec<_> = FAULTS.iter().map(|row| row.name).collect();
            let help = format!("`all`, a part ({parts}), or one of {}", names.join(", "));
            return fault("unknown-fault", format!("there is no fault `{name}`"), &help);
        }
    }
    if !sabotage::AVAILABLE {
        let help = "build one that has: cargo build --release --features sabotage --target-dir target/sabotage";
        return fault("no-sabotage", "this program was built without faults to switch on".into(), help);
    }
    Ok(found)
}
