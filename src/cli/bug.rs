//! The file for a bug report, written when Tilewright itself is at fault: a panic, or two methods that contradict each other.
//!
//! ```text
//! tilewright 0.1.0, Z3 5.4.0.0, linux x86_64
//! arguments: check wrong.py --device none
//!
//! wrong.py:
//! ...
//! ```
//!
//! It has what is needed to see the fault again: the versions, the arguments, and the text of every file among them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tilewright_verify::solver::z3_full_version;

/// Greatest number of bytes of a file that are copied.
const MOST_BYTES: u64 = 1 << 20;
/// Greatest number of reports in one folder.
const MOST_REPORTS: u32 = 99;
/// Commands without reports: two that other commands start, which report for them, and the one whose exit code 70 speaks of a
/// folder that cannot be read.
const SILENT: [&str; 3] = ["device-worker", "fuzz-worker", "recheck"];

/// Writes the report of a run into the current folder, and says where it is.
pub(super) fn found(arguments: &[OsString]) {
    if let Some(path) = report(arguments, Path::new(".")) {
        // Nobody reads standard error where this fails.
        let _ = writeln!(
            std::io::stderr(),
            "this is a fault of tilewright: `{}` has what is needed to see it again; please send it in",
            path.display()
        );
    }
}

/// Writes the report of a run with these arguments into a folder, and returns the path; `None` if it cannot be written, or
/// the command has no reports.
fn report(arguments: &[OsString], folder: &Path) -> Option<PathBuf> {
    if arguments.iter().any(|argument| SILENT.iter().any(|command| argument == command)) {
        return None;
    }
    let (path, mut file) = (1..=MOST_REPORTS).find_map(|number| {
        let path = folder.join(format!("tilewright-bug-{number}.txt"));
        let file = OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
        Some((path, file))
    })?;
    file.write_all(text(arguments).as_bytes()).ok()?;
    Some(path)
}

/// The text of a report.
fn text(arguments: &[OsString]) -> String {
    let solver = z3_full_version();
    let (os, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let mut text = format!("tilewright {}, Z3 {solver}, {os} {machine}\narguments:", env!("CARGO_PKG_VERSION"));
    for argument in arguments.iter().skip(1) {
        // Writing to a string does not fail.
        let _ = write!(text, " {}", argument.display());
    }
    text.push('\n');
    for argument in arguments.iter().skip(1) {
        if let Some(content) = content(Path::new(argument)) {
            let _ = write!(text, "\n{}:\n{content}\n", argument.display());
        }
    }
    if arguments.iter().any(|argument| argument == "-") {
        text.push_str("\nThe input on standard input is missing here: please add it.\n");
    }
    text
}

/// The first bytes of a file as text; `None` if it is none.
fn content(path: &Path) -> Option<String> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_arguments_and_the_files_and_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("wrong.py");
        std::fs::write(&program, "def main(): ...\n").unwrap();
        let arguments = ["tilewright", "check", program.to_str().unwrap(), "-"].map(OsString::from);
        let [one, two] = [(); 2].map(|()| report(&arguments, folder.path()).unwrap());
        assert_ne!(one, two);
        let text = std::fs::read_to_string(one).unwrap();
        assert!(text.starts_with("tilewright ") && text.contains("\narguments: check "), "{text}");
        assert!(text.contains("def main(): ...") && text.contains("standard input"), "{text}");
    }

    #[test]
    fn a_worker_writes_none() {
        let folder = tempfile::tempdir().unwrap();
        for command in SILENT {
            assert_eq!(report(&["tilewright", command].map(OsString::from), folder.path()), None);
        }
        assert_eq!(report(&["tilewright".into()], &folder.path().join("missing")), None);
    }
}
