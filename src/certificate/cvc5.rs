//! cvc5 as a second opinion: a program of its own, given one goal at a time and stopped when its time is over.
//!
//! [`Cvc5::find`] looks for the program, [`Cvc5::answer`] runs it once for one SMT-LIB 2 text:
//!
//! ```text
//! (set-logic ...) ... (check-sat)  ->  `unsat`, `sat`, or `unknown` with a reason
//! ```
//!
//! A separate process keeps a crash or a hang of cvc5 out of this program. Output that is not exactly one of the three
//! words counts as no answer, never as `unsat`.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tilewright_verify::solver::text::TextAnswer;

/// The environment variable that holds the path of the program. If it is set, no other place is searched.
pub const VARIABLE: &str = "TILEWRIGHT_CVC5";

/// How long `cvc5 --version` may take.
const START_UP: Duration = Duration::from_secs(20);

/// Longest output that is read, in bytes. An answer is one word; only error messages are longer.
const MAX_OUTPUT: u64 = 1 << 16;

/// A cvc5 that was found and answered `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cvc5 {
    program: PathBuf,
    /// The version that the program reports, such as `1.2.0`.
    pub version: String,
}

/// The result of one run of a process.
struct Run {
    /// Standard output, at most `MAX_OUTPUT` bytes of it; bytes that are not UTF-8 are replaced.
    output: String,
    /// Whether the process was killed because its time was over.
    timed_out: bool,
    /// Whether the process ended with exit code 0.
    success: bool,
}

impl Cvc5 {
    /// Finds cvc5: the program that [`VARIABLE`] names, else `.deps/cvc5/bin/cvc5` in a folder above the current one or
    /// above this executable, else `cvc5` on the search path.
    ///
    /// # Errors
    /// Says why there is none: not found, or not usable as in [`Cvc5::at`].
    pub fn find() -> Result<Self, String> {
        let program = match std::env::var_os(VARIABLE) {
            Some(given) if !given.is_empty() => PathBuf::from(given),
            _ => installed().ok_or(format!("not installed: not in .deps, not on the search path, no {VARIABLE}"))?,
        };
        Self::at(&program)
    }

    /// Takes the program at a path, after asking for its version.
    ///
    /// # Errors
    /// The program does not run, or its output does not name cvc5 and a version.
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

    /// The answer of cvc5 to one SMT-LIB 2 text with one `check-sat`.
    ///
    /// `limit` is given to cvc5 as `--tlimit-per`, in milliseconds. The process is killed 2 seconds after that limit, in
    /// case cvc5 does not keep it. Both kinds of timeout are [`TextAnswer::Unknown`].
    ///
    /// # Errors
    /// The program does not run, or its output contains an error.
    pub fn answer(&self, text: &str, limit: Duration) -> Result<TextAnswer, String> {
        let milliseconds = format!("--tlimit-per={}", limit.as_millis().max(1));
        let run = execute(&self.program, &["--lang=smt2", &milliseconds, "-"], text, limit + Duration::from_secs(2))
            .map_err(|error| format!("cvc5 does not run: {error}"))?;
        read(&run, limit)
    }
}

/// Reads the answer from an output. Anything but exactly `unsat` or `sat`, from a process that succeeded, is unknown.
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

/// The path of an installed cvc5: in `.deps` of this checkout, else on the search path.
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

/// Runs a program with `input` on its standard input and returns its output. Standard error is dropped.
fn execute(program: &Path, arguments: &[&str], input: &str, limit: Duration) -> io::Result<Run> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    std::thread::scope(|scope| {
        // Write errors are ignored: a program that ends early does not read all of its input.
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

/// Waits for a process, and kills it after `limit`. Returns whether it was killed, and whether it succeeded.
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
