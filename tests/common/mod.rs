//! Runs the program that was built and keeps what it said.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What a run said and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    /// Exit code; none if it was killed.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Run {
    /// Standard output as a JSON document.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The program, in the root of the repository, without what the caller's environment says of colours.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

/// Runs the program with nothing on standard input.
pub(crate) fn tilewright(args: &[&str]) -> Run {
    command(args).stdin(Stdio::null()).output().unwrap().into()
}

/// Runs the program with a text on standard input.
pub(crate) fn tilewright_with_input(args: &[&str], input: &str) -> Run {
    tilewright_with(args, &[], input)
}

/// The same with further variables in its environment.
pub(crate) fn tilewright_with(args: &[&str], environment: &[(&str, &str)], input: &str) -> Run {
    let piped = Stdio::piped;
    let mut command = command(args);
    command.envs(environment.iter().copied());
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that refuses early does not read all of it; that is no failure of the test.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let run = child.wait_with_output().unwrap().into();
    writer.join().unwrap();
    run
}
