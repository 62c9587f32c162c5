//! The body of a cargo-fuzz target: an oracle checks the input, and a failure is reduced and
//! written to a file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use super::finding::Finding;
use super::oracle::{Environment, Tally};
use super::oracles::by_name;
use super::session::Runner;

/// Limit on the number of checks for reducing a finding.
const ATTEMPTS: usize = 500;
/// Limit on the time for reducing a finding: libFuzzer ends an input that takes long, and the
/// finding would be lost.
const REDUCING: Duration = Duration::from_secs(10);

/// Why an input did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The oracle does not exist or is not available; nothing was checked.
    Skipped(String),
    /// The property does not hold: the finding as text, with the path of its file.
    Failed(String),
}

/// A runner, or the reason why there is none.
type Made = Result<Box<dyn Runner>, String>;

/// Checks an input with an oracle. The oracle is created once per thread, with the default ranges
/// and all devices.
///
/// # Errors
/// See [`Stopped`]. The finding is written to `folder`, under a name that depends on its case
/// alone.
pub fn run(oracle: &str, data: &[u8], folder: &Path) -> Result<(), Stopped> {
    thread_local! {
        static RUNNERS: RefCell<BTreeMap<String, Made>> = const { RefCell::new(BTreeMap::new()) };
    }
    RUNNERS.with_borrow_mut(|runners| {
        let made = runners.entry(oracle.to_owned()).or_insert_with(|| make(oracle));
        let runner = made.as_mut().map_err(|why| Stopped::Skipped(why.clone()))?;
        check_input(runner.as_mut(), data, folder)
    })
}

/// Creates the runner of an oracle.
fn make(oracle: &str) -> Made {
    let entry = by_name(oracle).ok_or_else(|| format!("there is no oracle `{oracle}`"))?;
    (entry.make)(&Environment::default())
}

/// Checks an input; reduces, writes and returns its finding if it fails.
fn check_input(runner: &mut dyn Runner, data: &[u8], folder: &Path) -> Result<(), Stopped> {
    let Some((_, finding)) = runner.run(&[data.to_vec()], &mut Tally::default()).pop() else { return Ok(()) };
    let finding = runner.reduce_within(finding, ATTEMPTS, Some(Instant::now() + REDUCING));
    let text = serde_json::to_string_pretty(&finding).unwrap_or_default() + "\n";
    let path = folder.join(file_name(&finding));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, &text));
    let place = written.map_or_else(|error| format!("not written: {error}"), |()| path.display().to_string());
    let (what, detail) = (&finding.failure.what, &finding.failure.detail);
    Err(Stopped::Failed(format!("{}: {what}\n{detail}\n{}\n{place}", finding.oracle, finding.text)))
}

/// The file name of a finding: the oracle and a hash of the case (FNV-1a).
fn file_name(finding: &Finding) -> String {
    let bytes = finding.case.to_string().into_bytes();
    let hash = bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    format!("{}-{hash:016x}.json", finding.oracle)
}

/// The folder in which libFuzzer leaves its findings (`-artifact_prefix`); the current folder by
/// default.
pub fn artifacts() -> PathBuf {
    let prefix = env::args().find_map(|argument| argument.strip_prefix("-artifact_prefix=").map(PathBuf::from));
    prefix.unwrap_or_else(|| ".".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_reduced_and_written_down_and_what_cannot_be_had_is_said() {
        let folder = env::temp_dir().join(format!("tilewright-target-{}", std::process::id()));
        assert_eq!(run("self-test-fails", &[0; 16], &folder), Ok(()));
        let Err(Stopped::Failed(text)) = run("self-test-fails", &[0xFF; 16], &folder) else { panic!("it fails") };
        assert!(text.contains("a number is too large"), "{text}");
        let path = text.lines().last().unwrap();
        assert_eq!(Finding::read(&fs::read_to_string(path).unwrap()).unwrap().case, serde_json::json!([64512]));
        fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(run("self-test-is-absent", &[], &folder), Err(Stopped::Skipped(_))));
        assert!(matches!(run("nothing", &[], &folder), Err(Stopped::Skipped(_))));
    }
}
