//! File tests: each file below `tests/files` holds inputs, command lines and what these print, and is a test by name.
//!
//! ```text
//! # What the test shows.
//! # ---- file a.py
//! x = 1
//! # ---- run tilewright opt -p simplify a.py
//! (standard output)
//! # ---- stderr
//! (standard error, if there is any)
//! # ---- exit 2
//! ```
//!
//! The commands of a file are run by a shell, one after the other, in a folder that holds its inputs and links to
//! `examples` and `tests`. Times in milliseconds and the version of Z3 are `_`; everything else has to be equal. A command
//! `cat NAME.cl` shows a generated kernel: a real OpenCL compiler has to build it, if this machine has one.
//!
//! `UPDATE_EXPECT=1 cargo test --test files` rewrites the expectations in place.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "file_tests/case.rs"]
mod case;
#[path = "file_tests/normal.rs"]
mod normal;
#[path = "common/session.rs"]
mod session;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright_device::{BuildOptions, DeviceInfo, Session};

use case::{Case, Step, diff};
use normal::normalised;
use session::{UPDATE, is_update, root};

/// The files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The test with what its commands print now.
fn with_real_outputs(case: &Case) -> Result<Case, Failed> {
    let folder = session::workplace();
    for (name, text) in &case.inputs {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap())?;
        fs::write(path, text)?;
    }
    let mut real = case.clone();
    let mut last = 0;
    for step in &mut real.steps {
        let output = session::run(&step.command, folder.path(), last);
        let Some(code) = output.code else {
            return Err(format!("a signal ended `{}`:\n{}{}", step.command, output.text, output.errors).into());
        };
        last = code;
        let (stdout, stderr) = (normalised(&output.text), normalised(&output.errors));
        *step = Step { command: step.command.clone(), stdout, stderr, exit: code };
    }
    Ok(real)
}

/// Builds the kernels that the test shows.
fn build_kernels(name: &str, case: &Case, device: Option<&DeviceInfo>) -> Result<(), Failed> {
    for step in &case.steps {
        let Some(file) =
            step.command.strip_prefix("cat ").filter(|file| Path::new(file).extension().is_some_and(|end| end == "cl"))
        else {
            continue;
        };
        let Some(device) = device else {
            eprintln!("skipped: {name}: there is no OpenCL compiler to build {file}");
            continue;
        };
        let built = Session::open(device).and_then(|session| session.build(&step.stdout, &BuildOptions::default()));
        built.map_err(|error| format!("{} does not build {file}: {error}", device.label()))?;
    }
    Ok(())
}

fn check(name: &str, path: &Path, device: Option<&DeviceInfo>) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let case = Case::read(&text).map_err(|fault| format!("{name}: {fault}"))?;
    let real = with_real_outputs(&case)?;
    build_kernels(name, &real, device)?;
    let written = real.to_string();
    if Case::read(&written).as_ref() != Ok(&real) {
        return Err(format!("an output has a line that begins with `# ---- `:\n{written}").into());
    }
    if written == text {
        return Ok(());
    }
    if is_update() {
        return Ok(fs::write(path, written)?);
    }
    let differences = diff(&text, &written);
    Err(format!("{name} prints something else:\n{differences}`{UPDATE}=1 cargo test --test files` rewrites it").into())
}

fn main() {
    let arguments = Arguments::from_args();
    let folder = root().join("tests/files");
    let found = files(&folder);
    assert!(!found.is_empty(), "there is no file in {}", folder.display());
    let device = tilewright_device::survey().devices.into_iter().next();
    let trial = |path: PathBuf| {
        let name = path.strip_prefix(&folder).unwrap().with_extension("").display().to_string();
        let device = device.clone();
        Trial::test(name.clone(), move || check(&name, &path, device.as_ref()))
    };
    let mut trials: Vec<Trial> = found.into_iter().map(trial).collect();
    trials.extend(case::trials());
    trials.extend(normal::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
