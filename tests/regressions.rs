//! Every file of `tests/regressions` is a test of its own: a finding of `tilewright fuzz`, or a case that somebody wrote, that
//! has to hold from now on. A new file is a new test; nothing is to be registered.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::fuzz::{Environment, Finding, Outcome, by_name};

/// As the command line has it: cases are trees, and trees are walked by recursion.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(!files.is_empty(), "{} has no files", folder.display());
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let is_ignored = lacks_a_device(&file);
        Trial::test(name, move || on_a_large_stack(move || holds(&file))).with_ignored_flag(is_ignored)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn on_a_large_stack(look: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), Failed> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(look)?;
    let looked = thread.join().unwrap_or_else(|_| Err("it panics outside the oracle".to_owned()));
    looked.map_err(Failed::from)
}

/// Whether the file is about kernels and there is nothing to run them on.
fn lacks_a_device(file: &Path) -> bool {
    let is_kernels = file.file_stem().is_some_and(|name| name.to_string_lossy().starts_with("device-"));
    is_kernels && by_name("device").is_some_and(|entry| (entry.make)(&Environment::default()).is_err())
}

/// Unknown, undecided and absent are not held.
fn holds(file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let finding = Finding::read(&text).map_err(|diagnostic| diagnostic.to_string())?;
    let entry = by_name(&finding.oracle).ok_or("no such oracle")?;
    let mut runner = (entry.make)(&Environment::default())?;
    match runner.replay(&finding.case).map_err(|diagnostic| diagnostic.to_string())? {
        Outcome::Held => Ok(()),
        other => Err(format!("{other:#?}\n{}", finding.text)),
    }
}
