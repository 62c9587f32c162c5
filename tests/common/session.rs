//! Command lines as a reader of the documentation types them: run by a shell, in an empty folder with links to the examples.
//!
//! The pages of the documentation (`tests/docs.rs`) and the file tests (`tests/files.rs`) run their commands with this.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};

/// The environment variable that makes a test rewrite its expectations in place.
pub(crate) const UPDATE: &str = "UPDATE_EXPECT";

/// Whether expectations are to be rewritten.
pub(crate) fn is_update() -> bool {
    std::env::var_os(UPDATE).is_some()
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a command printed, and how it ended.
pub(crate) struct Output {
    /// Standard output.
    pub(crate) text: String,
    /// Standard error.
    pub(crate) errors: String,
    /// Exit code; none if a signal ended the command.
    pub(crate) code: Option<i32>,
}

/// Runs a line in a shell with the program that was built in front of the search path. `last` is the exit code of the
/// command before it, which `$?` gives.
pub(crate) fn run(line: &str, folder: &Path, last: i32) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_tilewright")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("(exit {last})\n{line}")).current_dir(folder).stdin(Stdio::null()).env("PATH", path);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        shell.env_remove(name);
    }
    let output = shell.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { text: text(&output.stdout), errors: text(&output.stderr), code: output.status.code() }
}

/// An empty folder with links to what the commands name.
pub(crate) fn workplace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["examples", "tests"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Whether a word is a time: digits, a point and digits, perhaps in parentheses or with a comma.
pub(crate) fn is_time(word: &str) -> bool {
    let number = word.trim_matches(['(', ')', ',']);
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    number.split_once('.').is_some_and(|(whole, rest)| is_number(whole) && is_number(rest))
}

/// The words of a line, with `#` in the place of every time: a decimal number, or a whole number before a unit of time.
pub(crate) fn words_without_times(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let is_unit = |unit: &&str| ["ms", "ms)", "s", "s)"].contains(unit);
    let before_unit = |at: usize| is_number(words[at]) && words.get(at + 1).is_some_and(is_unit);
    let is_hidden = |at: usize| is_time(words[at]) || before_unit(at);
    (0..words.len()).map(|at| if is_hidden(at) { "#".to_owned() } else { words[at].to_owned() }).collect()
}
