//! cvc5 as a second opinion: a program of its own, given one goal at a time and stopped when its time is over.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tilewright_verify::solver::text::TextAnswer;

/// The variable that names the program.
pub const VARIABLE: &str = "TILEWRIGHT_CVC5";

/// How long it may take to say its version.
const START_UP: Duration = Duration::from_secs(20);

/// Longest output read.
const MAX_OUTPUT: u64 = 1 << 16;

/// A cvc5 that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cvc5 {
    program: PathBuf,
    /// As it says itself.
    pub version: String,
}

/// What a process said, and how it ended.
struct Run {
    output: String,
    timed_out: bool,
    success: bool,
}

impl Cvc5 {
    /// The one that [`VARIABLE`] names, else the one of `.deps`, else the one on the search path.
    ///
    /// # Errors
    /// Why there is none.
    pub fn find() -> Result<Self, String> {
        let program = match std::env::var_os(VARIABLE) {
            Some(given) if !given.is_empty() => PathBuf::from(given),
            _ => installed().ok_or(format!("not installed: not in .deps, not on the search path, no {VARIABLE}"))?,
        };
        Self::at(&program)
    }

    /// The one at a path.
    ///
    /// # Errors
    /// It does not run, or says that it is something else.
    pub fn at(program: &Path) -> Result<Self, String> {
        let shown = program.display();
        let run =
            execute(program, &["--version"], "", START_UP).map_err(|error| format!("{shown} does not run: {error}"))?;
        let mut words = run.output.split_whitespace().skip_while(|word| *word != "version").skip(1);
        match words.next() {
            Some(version) if run.success && run.output.contains("cvc5") => {
                Ok(Self { program: program.to_owned(), version: version.trim_end_matches(['.', ',']).to_owned() })
            }
            _ => Err(format!("{shown} does not say that it is cvc5")),
        }
    }

    /// Its answer to a text.
    ///
    /// # Errors
    /// It does not run, or reports an error.
    pub fn answer(&self, text: &str, limit: Duration) -> Result<TextAnswer, String> {
        let milliseconds = format!("--tlimit-per={}", limit.as_millis().max(1));
        let run = execute(&self.program, &["--lang=smt2", &milliseconds, "-"], text, limit + Duration::from_secs(2))
            .map_err(|error| format!("cvc5 does not run: {error}"))?;
        read(&run, limit)
    }
}

/// What an output says; nothing that is not exactly an answer is one.
fn read(run: &Run, limit: Duration) -> Result<TextAnswer, String> {
    if run.output.contains("(error") {
        return Err(format!("cvc5 says: {}", run.output.trim()));
    }
    let timeout = || TextAnswer::Unknown(format!("timeout of {} ms", limit.as_millis()));
    Ok(match run.output.trim() {
        _ if run.timed_out => timeout(),
        "unsat" if run.success => TextAnswer::Unsat,
        "sat" if run.success => TextAnswer::Sat,
        other if other.contains("TIMEOUT") || other.contains("interrupted by timeout") => timeout(),
        "unknown" => TextAnswer::Unknown("no reason given".into()),
        other => {
            TextAnswer::Unknown(format!("it ended without an answer: {}", other.chars().take(200).collect::<String>()))
        }
    })
}

fn installed() -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    let exe = std::env::current_exe().ok();
    let folders = here.iter().chain(exe.iter()).flat_map(|start| start.ancestors());
    let own = folders.map(|folder| folder.join(".deps/cvc5/bin/cvc5")).find(|path| path.is_file());
    own.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("cvc5")).find(|path| path.is_file())
    })
}

fn execute(program: &Path, arguments: &[&str], input: &str, limit: Duration) -> io::Result<Run> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    std::thread::scope(|scope| {
        // A program that ends early does not read all of it.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let reader = scope.spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.map(|stdout| stdout.take(MAX_OUTPUT).read_to_end(&mut bytes));
            read.transpose().map(|_| String::from_utf8_lossy(&bytes).into_owned())
        });
        let (timed_out, success) = wait(&mut child, limit)?;
        let output = reader.join().map_err(|_| io::Error::other("its output could not be read"))??;
        Ok(Run { output, timed_out, success })
    })
}

/// Waits, and ends the process when its time is over: whether that was so, and whether it succeeded.
fn wait(child: &mut Child, limit: Duration) -> io::Result<(bool, bool)> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((false, status.success()));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok((true, false));
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(output: &str, success: bool, timed_out: bool) -> Result<TextAnswer, String> {
        read(&Run { output: output.into(), timed_out, success }, Duration::from_secs(1))
    }

    #[test]
    fn only_an_answer_is_an_answer() {
        assert_eq!(said("unsat\n", true, false), Ok(TextAnswer::Unsat));
        assert_eq!(said("sat\n", true, false), Ok(TextAnswer::Sat));
        for (output, success, timed_out) in [
            ("", true, false),
            ("unsat\n", false, false),
            ("unsat\n", true, true),
            ("unsat\nsat\n", true, false),
            ("unknown\n", true, false),
            ("unknown (TIMEOUT)\n", true, false),
            ("unsatisfactory\n", true, false),
            ("cvc5 interrupted by timeout.\n", false, false),
            ("Segmentation fault\n", false, false),
        ] {
            assert!(matches!(said(output, success, timed_out), Ok(TextAnswer::Unknown(_))), "{output}");
        }
        assert!(said("(error \"no such symbol\")\nunsat\n", true, false).is_err());
    }

    #[test]
    fn what_is_not_cvc5_is_not_taken_for_it() {
        assert!(Cvc5::at(Path::new("/no/such/program")).is_err());
        assert!(Cvc5::at(Path::new("/bin/true")).is_err());
        assert!(Cvc5::at(Path::new("/bin/echo")).is_err());
    }
}
