//! The Python client in `clients/tvm`: its tests run with the program that was built.
//!
//! The tests of its logic need `python3` alone. Those with TVM need the package of release 0.27: `scripts/tvm_env.sh` installs it into
//! an environment of its own, or finds it there. A machine without Python, without a network or with another
//! processor prints why it skips them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::{Command, Output};

/// Runs a command in the root of the repository; none if there is no such program.
fn run(program: &Path, args: &[&str], environment: &[(&str, &str)]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).envs(environment.iter().copied()).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("TILEWRIGHT", env!("CARGO_BIN_EXE_tilewright")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().ok()
}

/// Runs the tests of a file with a Python, and returns the number of those that ran.
fn unittest(python: &Path, file: &str) -> usize {
    let args = ["-m", "unittest", "discover", "-s", "clients/tvm/tests", "-t", "clients/tvm", "-p", file];
    let output = run(python, &args, &[]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("skipped="), "a test of the client was skipped: {said}");
    let line = said.lines().find(|line| line.starts_with("Ran ")).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_client_works_without_tvm() {
    let python = Path::new("python3");
    if run(python, &["--version"], &[]).is_none() {
        return eprintln!("skipped: python3 is not installed");
    }
    assert!(unittest(python, "test_client.py") >= 20);
}

#[test]
fn the_client_validates_the_passes_of_tvm() {
    // An environment that cannot be made within this time is not made.
    let made =
        run(Path::new("timeout"), &["100", "scripts/tvm_env.sh"], &[("PIP_RETRIES", "1"), ("PIP_TIMEOUT", "10")]);
    let Some(made) = made else { return eprintln!("skipped: `timeout` is not installed") };
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return eprintln!(
            "skipped: TVM cannot be installed here: {}",
            said.lines().last().unwrap_or("no reason given")
        );
    }
    let python = String::from_utf8(made.stdout).unwrap();
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(python.trim());
    if let Some(tried) = run(&python, &["-c", "import tvm"], &[]).filter(|tried| !tried.status.success()) {
        let said = String::from_utf8_lossy(&tried.stderr);
        return eprintln!("skipped: TVM does not run here: {}", said.lines().last().unwrap_or("no reason given"));
    }
    assert!(unittest(&python, "test_wheel.py") >= 4);
}
