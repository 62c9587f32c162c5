//! The report of a campaign: a row for each oracle, coverage, findings; schema `tilewright.fuzz/1`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::fuzz::campaign::schedule::Lane;
use crate::fuzz::campaign::{Found, Plan, Standing};
use crate::fuzz::finding::Origin;
use crate::fuzz::oracle::Tally;
use crate::fuzz::oracles::by_name;
use crate::fuzz::oracles::device::{POCL, kernels_on};
use crate::json::to_line;
use crate::passes::PASSES;

/// The schema of the document.
pub const SCHEMA: &str = "tilewright.fuzz/1";

/// The report of a campaign.
#[derive(Clone, Debug, Serialize)]
pub struct FuzzReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `failed` if anything was found; else `incomplete` if an oracle that was asked for by name, or every oracle, did not
    /// hold on a single case; else `held`.
    pub verdict: &'static str,
    /// Seed of all cases.
    pub seed: u64,
    /// How long the campaign lasted, in seconds.
    pub seconds: f64,
    /// How many worker processes there were.
    pub jobs: usize,
    /// Whether it was ended by Ctrl-C.
    pub interrupted: bool,
    /// Where it ran.
    pub machine: Machine,
    /// One for each oracle.
    pub oracles: Vec<OracleRow>,
    /// The rates of some oracles for each core, by which campaigns are compared.
    pub rates: Vec<RateRow>,
    /// One for each way to fail.
    pub findings: Vec<FindingRow>,
    /// How often each feature occurred, by its kind (`op`, `pass`, `dtype`) and name.
    pub coverage: BTreeMap<String, BTreeMap<String, u64>>,
    /// Passes that changed no program, if programs were given to any.
    pub passes_not_covered: Vec<&'static str>,
    /// What could not be done beside, the files that could not be written included.
    pub faults: Vec<String>,
    /// How many of the faults are files that could not be written.
    #[serde(skip)]
    pub n_unwritten: usize,
}

/// Where a campaign ran.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// System and processor: `linux x86_64, AMD EPYC`.
    pub system: String,
    /// Cores.
    pub cores: usize,
    /// Version of this program.
    pub tilewright: &'static str,
    /// Name and version of the solver.
    pub solver: String,
    /// Devices with the versions of their drivers.
    pub devices: Vec<String>,
}

/// The results of an oracle.
#[derive(Clone, Debug, Serialize)]
pub struct OracleRow {
    /// Its name.
    pub oracle: String,
    /// The computations that it compares.
    pub summary: &'static str,
    /// `held`, `failed`, `undecided` if no case was decided, `skipped`, or `not run`.
    pub verdict: &'static str,
    /// The reason why it does not run here, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Cases looked at.
    pub runs: u64,
    /// Those that held.
    pub held: u64,
    /// Those that failed.
    pub failed: u64,
    /// Ways to fail.
    pub findings: usize,
    /// Valid cases of a hundred.
    pub valid_percent: f64,
    /// Undecided cases of a hundred.
    pub undecided_percent: f64,
    /// Reasons why cases were none.
    pub invalid: BTreeMap<String, u64>,
    /// Reasons why cases were not decided.
    pub undecided: BTreeMap<String, u64>,
    /// Cases that were begun at the end of the campaign and count for nothing.
    pub given_up: u64,
    /// Seconds that workers spent with it, all together, reductions included.
    pub seconds: f64,
    /// Cases for each second of processor time: a second on one core, whatever else the machine does.
    pub per_second: f64,
    /// Further counters of the oracle.
    pub counts: BTreeMap<String, u64>,
}

/// What a core does in a second.
#[derive(Clone, Debug, Serialize)]
pub struct RateRow {
    /// The oracle that does it.
    pub oracle: &'static str,
    /// The unit that is counted, such as `programs through the passes`.
    pub what: &'static str,
    /// How many in all.
    pub number: u64,
    /// How many for each second of processor time.
    pub per_second: f64,
}

/// A way to fail.
#[derive(Clone, Debug, Serialize)]
pub struct FindingRow {
    /// The oracle.
    pub oracle: String,
    /// The failure in one sentence.
    pub what: String,
    /// The values that show it.
    pub detail: String,
    /// The case, as people read it.
    pub text: String,
    /// How many slices of work had such a failure.
    pub slices: u64,
    /// The case at which it came up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Its file; none if it could not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl FuzzReport {
    /// The report on the state of a campaign. `named` says whether oracles were asked for by name.
    pub fn new(plan: &Plan, standing: &Standing, named: bool) -> Self {
        let oracles: Vec<OracleRow> = standing.lanes.iter().map(|lane| row(lane, standing)).collect();
        let (coverage, passes_not_covered) = coverage(&standing.lanes);
        Self {
            schema: SCHEMA,
            verdict: verdict(&oracles, !standing.found.is_empty(), named),
            seed: plan.seed,
            seconds: round(standing.elapsed.as_secs_f64()),
            jobs: plan.jobs,
            interrupted: standing.interrupted,
            machine: machine(standing),
            oracles,
            rates: rates(&standing.lanes),
            findings: standing.found.values().map(finding).collect(),
            coverage,
            passes_not_covered,
            faults: [standing.faults.as_slice(), &standing.unwritten].concat(),
            n_unwritten: standing.unwritten.len(),
        }
    }

    /// The document, in one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }
}

/// The verdict on the campaign; see [`FuzzReport::verdict`].
fn verdict(oracles: &[OracleRow], found: bool, named: bool) -> &'static str {
    let held = |row: &OracleRow| row.verdict == "held";
    if found {
        "failed"
    } else if (named && !oracles.iter().all(held)) || !oracles.iter().any(held) {
        "incomplete"
    } else {
        "held"
    }
}

fn row(lane: &Lane, standing: &Standing) -> OracleRow {
    let tally = &lane.tally;
    let findings = standing.found.keys().filter(|(oracle, _)| *oracle == lane.oracle).count();
    // A failure counts even if the oracle could not go on. Cases that are all invalid or undecided are no evidence.
    let verdict = match (findings, tally.held, tally.runs, &lane.skipped) {
        (1.., ..) => "failed",
        (0, _, _, Some(_)) => "skipped",
        (0, _, 0, None) => "not run",
        (0, 0, _, None) => "undecided",
        (0, ..) => "held",
    };
    OracleRow {
        oracle: lane.oracle.clone(),
        summary: by_name(&lane.oracle).map_or("", |entry| entry.summary),
        verdict,
        skipped: lane.skipped.clone(),
        runs: tally.runs,
        held: tally.held,
        failed: tally.failed,
        findings,
        valid_percent: round(tally.valid_percent()),
        undecided_percent: round(100.0 * ratio(tally.undecided.values().sum(), tally.runs)),
        invalid: tally.invalid.clone(),
        undecided: tally.undecided.clone(),
        given_up: lane.given_up,
        seconds: round(lane.spent.as_secs_f64()),
        per_second: round(1.0e6 * ratio(tally.runs, micros(tally))),
        counts: tally.counts.clone(),
    }
}

/// Processor time in microseconds, or elapsed time if the system does not measure the former.
fn micros(tally: &Tally) -> u64 {
    if tally.cpu_micros > 0 { tally.cpu_micros } else { tally.micros }
}

/// The rates of the oracles that ran, for those that have one.
fn rates(lanes: &[Lane]) -> Vec<RateRow> {
    let row = |oracle, what, number, micros: u64| {
        let per_second = round(1.0e6 * ratio(number, micros));
        (number > 0 && micros > 0).then_some(RateRow { oracle, what, number, per_second })
    };
    let of = |lane: &Lane| match lane.oracle.as_str() {
        "roundtrip" => row("roundtrip", "round trips", lane.tally.runs, micros(&lane.tally)),
        "passes" => row("passes", "programs through the passes", lane.tally.runs, micros(&lane.tally)),
        "judge_maps" => row("judge_maps", "maps against brute force", lane.tally.runs, micros(&lane.tally)),
        "device" => {
            let kernels = lane.tally.counts.get(&kernels_on(POCL)).copied().unwrap_or(0);
            let micros = lane.tally.part_micros.get(POCL).copied().unwrap_or(0);
            row("device", "kernels on PoCL, compiled and run", kernels, micros)
        }
        _ => None,
    };
    lanes.iter().filter_map(of).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Rounds to two digits after the point.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn finding(found: &Found) -> FindingRow {
    let finding = &found.finding;
    FindingRow {
        oracle: finding.oracle.clone(),
        what: finding.failure.what.clone(),
        detail: finding.failure.detail.clone(),
        text: finding.text.clone(),
        slices: found.times,
        origin: finding.origin,
        file: found.file.as_ref().map(|file| file.display().to_string()),
    }
}

fn coverage(lanes: &[Lane]) -> (BTreeMap<String, BTreeMap<String, u64>>, Vec<&'static str>) {
    let mut coverage: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (feature, number) in lanes.iter().flat_map(|lane| &lane.tally.coverage) {
        let (kind, name) = feature.split_once(':').unwrap_or(("other", feature));
        *coverage.entry(kind.to_owned()).or_default().entry(name.to_owned()).or_default() += number;
    }
    let missing = match coverage.get("pass") {
        Some(seen) => PASSES.iter().map(|pass| pass.name).filter(|&name| !seen.contains_key(name)).collect(),
        None => Vec::new(),
    };
    (coverage, missing)
}

/// System, processor and number of cores.
pub fn this_machine() -> String {
    format!("{}, {} cores", system(), cores())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn system() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or(String::new(), |(_, name)| format!(", {}", name.trim()));
    format!("{} {}{model}", std::env::consts::OS, std::env::consts::ARCH)
}

fn machine(standing: &Standing) -> Machine {
    Machine {
        system: system(),
        cores: cores(),
        tilewright: env!("CARGO_PKG_VERSION"),
        solver: standing.solver.clone(),
        devices: standing.devices.clone(),
    }
}
