//! A file test as text: input files, and commands with what they print.

use std::fmt;

use libtest_mimic::Trial;

/// What begins every line that is not content of a section. No input and no output may hold such a line.
const MARK: &str = "# ---- ";

/// Stands below content whose last line has no end.
const NO_NEWLINE: &str = "# ---- no newline at the end\n";

/// A command, and what it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// The command line.
    pub(crate) command: String,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// Exit code.
    pub(crate) exit: i32,
}

/// A file test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    /// The comment in front: what the test shows.
    pub(crate) about: String,
    /// Input files, by name.
    pub(crate) inputs: Vec<(String, String)>,
    /// The commands in the order in which they run, all in one folder.
    pub(crate) steps: Vec<Step>,
}

/// The section that lines belong to.
enum Section {
    About,
    Input,
    Stdout,
    Stderr,
    Exit,
}

impl Case {
    /// Reads a file.
    ///
    /// # Errors
    /// The line that cannot be read, and why.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut case = Self::default();
        let mut section = Section::About;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let fault = |why: &str| Err(format!("line {}: {why}: {}", number + 1, line.trim_end()));
            let Some(head) = line.strip_prefix(MARK) else {
                if matches!(section, Section::About) && !line.starts_with('#') {
                    return fault("a file begins with comments that say what it shows");
                }
                match case.content(&section) {
                    Some(content) => content.push_str(line),
                    None => return fault("text below `# ---- exit`"),
                }
                continue;
            };
            if line == NO_NEWLINE {
                case.content(&section).map(String::pop);
                continue;
            }
            let (word, rest) = head.trim_end().split_once(' ').unwrap_or((head.trim_end(), ""));
            section = match (word, case.steps.last_mut()) {
                ("file", None) => {
                    case.inputs.push((rest.to_owned(), String::new()));
                    Section::Input
                }
                ("run", _) => {
                    case.steps.push(Step { command: rest.to_owned(), ..Step::default() });
                    Section::Stdout
                }
                ("stderr", Some(_)) => Section::Stderr,
                ("exit", Some(step)) => match rest.parse() {
                    Ok(code) => {
                        step.exit = code;
                        Section::Exit
                    }
                    Err(_) => return fault("an exit code is a number"),
                },
                _ => return fault("not one of `file NAME`, `run COMMAND`, `stderr` and `exit NUMBER`, in this order"),
            };
        }
        if case.about.is_empty() || case.steps.is_empty() {
            return Err("a file has a comment at its beginning and at least one command".to_owned());
        }
        Ok(case)
    }

    /// The text that the lines of a section belong to.
    fn content(&mut self, section: &Section) -> Option<&mut String> {
        match section {
            Section::About => Some(&mut self.about),
            Section::Input => self.inputs.last_mut().map(|(_, text)| text),
            Section::Stdout => self.steps.last_mut().map(|step| &mut step.stdout),
            Section::Stderr => self.steps.last_mut().map(|step| &mut step.stderr),
            Section::Exit => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = |f: &mut fmt::Formatter<'_>, text: &str| match text {
            "" => Ok(()),
            ended if ended.ends_with('\n') => f.write_str(ended),
            open => write!(f, "{open}\n{NO_NEWLINE}"),
        };
        f.write_str(&self.about)?;
        for (name, text) in &self.inputs {
            writeln!(f, "{MARK}file {name}")?;
            content(f, text)?;
        }
        for step in &self.steps {
            writeln!(f, "{MARK}run {}", step.command)?;
            content(f, &step.stdout)?;
            if !step.stderr.is_empty() {
                writeln!(f, "{MARK}stderr")?;
                content(f, &step.stderr)?;
            }
            if step.exit != 0 {
                writeln!(f, "{MARK}exit {}", step.exit)?;
            }
        }
        Ok(())
    }
}

/// The lines of two texts side by side: `-` expected, `+` real, with three equal lines around each difference.
pub(crate) fn diff(expected: &str, real: &str) -> String {
    const AROUND: usize = 3;
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), real.lines().collect());
    // The length of the longest common part of what begins at each pair of lines.
    let mut common = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for (i, left) in old.iter().enumerate().rev() {
        for (j, right) in new.iter().enumerate().rev() {
            common[i][j] =
                if left == right { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    let near = |at: usize| {
        lines[at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut out = String::new();
    for (at, (mark, line)) in lines.iter().enumerate() {
        if near(at) {
            out.extend([mark.to_string().as_str(), line, "\n"]);
        } else if at > 0 && near(at - 1) {
            out.push_str(" ...\n");
        }
    }
    out
}

/// Tests of the reading and of the comparison.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_file_is_read_and_written_again", || {
            let text = "# About.\n# ---- file a.py\nx\n\ny\n# ---- file b\nz\n# ---- no newline at the end\n\
                        # ---- run one a.py\nout\n# ---- run two\n# ---- stderr\nbad\n# ---- exit 2\n";
            let case = Case::read(text)?;
            assert_eq!(case.to_string(), text);
            assert_eq!(case.inputs, [("a.py".into(), "x\n\ny\n".into()), ("b".into(), "z".into())]);
            assert_eq!((case.steps[0].stdout.as_str(), case.steps[0].exit), ("out\n", 0));
            assert_eq!((case.steps[1].stderr.as_str(), case.steps[1].exit), ("bad\n", 2));
            Ok(())
        }),
        Trial::test("a_file_that_cannot_be_read_is_refused", || {
            for bad in [
                "",
                "# About.\n",
                "x\n",
                "# A.\n# ---- exit 1\n",
                "# A.\n# ---- run x\n# ---- exit y\n",
                "# A.\n# ---- run x\n# ---- exit 1\nz\n",
                "# A.\n# ---- run x\n# ---- file y\n",
            ] {
                assert!(Case::read(bad).is_err(), "{bad}");
            }
            Ok(())
        }),
        Trial::test("a_difference_is_shown_with_its_surroundings", || {
            assert_eq!(diff("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\nsix\n7\n"), " 3\n 4\n 5\n-6\n+six\n 7\n");
            assert_eq!(diff("same\n", "same\n"), "");
            Ok(())
        }),
    ]
}
