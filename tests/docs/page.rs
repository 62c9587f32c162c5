//! A page of Markdown as text, shown commands and shown files.

use std::fmt;
use std::fs;
use std::path::Path;

use libtest_mimic::Trial;

use crate::session::words_without_times;

/// A command and the output shown below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The line after `$ `.
    pub(crate) command: String,
    /// The lines below it, each with its end.
    pub(crate) output: String,
}

impl Shown {
    /// Whether the output is that of a kernel on a device.
    pub(crate) fn names_a_device(&self) -> bool {
        self.output.lines().any(is_device_line)
    }
}

/// `    on 0: NAME (PLATFORM)`, below what ran on it.
fn is_device_line(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("on ").and_then(|rest| rest.split_once(": "));
    rest.is_some_and(|(index, _)| !index.is_empty() && index.chars().all(|c| c.is_ascii_digit()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Everything that is not one of the others.
    Text(String),
    /// A command in a console block.
    Command(Shown),
    /// A line of a block of commands that are not run.
    Example(String),
    /// The content of a file, given by its path.
    File { path: String, content: String },
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    parts: Vec<Part>,
}

/// What the lines of a fence are.
#[derive(Clone, PartialEq, Eq)]
enum Fence {
    Console,
    Shell,
    File(String),
    Other,
}

impl Page {
    /// Takes a page apart; its parts in a row are the page again.
    pub(crate) fn read(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut fence: Option<Fence> = None;
        let mut named: Option<String> = None;
        for line in text.split_inclusive('\n') {
            if line.starts_with("```") {
                fence = match (&fence, line.trim_end()) {
                    (Some(_), _) => None,
                    (None, "```console") => Some(Fence::Console),
                    (None, "```sh") => Some(Fence::Shell),
                    (None, _) => Some(named.take().map_or(Fence::Other, Fence::File)),
                };
                parts.push(Part::Text(line.to_owned()));
                if let Some(Fence::File(path)) = &fence {
                    parts.push(Part::File { path: path.clone(), content: String::new() });
                }
                continue;
            }
            if fence.is_none() {
                let path = line.trim_end().strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"));
                named = path.map(str::to_owned).or(named).filter(|_| path.is_some());
            }
            match (&fence, line.strip_prefix("$ "), parts.last_mut()) {
                (Some(Fence::Console), Some(command), _) => {
                    let command = command.trim_end().to_owned();
                    parts.push(Part::Command(Shown { command, output: String::new() }));
                }
                (Some(Fence::Console), None, Some(Part::Command(shown))) => shown.output.push_str(line),
                (Some(Fence::File(_)), _, Some(Part::File { content, .. })) => content.push_str(line),
                (Some(Fence::Shell), _, _) => parts.push(Part::Example(line.to_owned())),
                _ => parts.push(Part::Text(line.to_owned())),
            }
        }
        Self { parts }
    }

    /// The commands that are run, in order.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &Shown> {
        self.parts.iter().filter_map(|part| match part {
            Part::Command(shown) => Some(shown),
            Part::Text(_) | Part::Example(_) | Part::File { .. } => None,
        })
    }

    /// The commands that are run, in order.
    pub(crate) fn commands_mut(&mut self) -> impl Iterator<Item = &mut Shown> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Command(shown) => Some(shown),
            Part::Text(_) | Part::Example(_) | Part::File { .. } => None,
        })
    }

    /// All command lines of the page: those that are run and those that are not.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Command(shown) => Some(shown.command.as_str()),
            Part::Example(line) => Some(line.trim_end()),
            Part::Text(_) | Part::File { .. } => None,
        })
    }

    /// Puts the content of the files below `root` in the place of what is shown of them.
    pub(crate) fn read_files(&mut self, root: &Path) {
        for part in &mut self.parts {
            if let Part::File { path, content } = part {
                *content = fs::read_to_string(root.join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
            }
        }
    }

    /// Where this page, which has the same parts, says something else than the real one.
    pub(crate) fn first_difference(&self, real: &Self) -> Option<String> {
        self.parts.iter().zip(&real.parts).find_map(|(shown, real)| match (shown, real) {
            (Part::Command(shown), Part::Command(real)) => {
                let at = first_different_word(&shown.output, &real.output)?;
                Some(format!("`{}` prints something else: {at}\n{}", shown.command, real.output))
            }
            (shown, real) => (shown != real).then(|| format!("shown {shown:?}, but it is {real:?}")),
        })
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) | Part::Example(text) | Part::File { content: text, .. } => f.write_str(text),
            Part::Command(Shown { command, output }) => write!(f, "$ {command}\n{output}"),
        })
    }
}

/// The words of an output without what differs from run to run: times, and the name of the device.
fn words(output: &str) -> Vec<String> {
    let words = |line: &str| -> Vec<String> {
        if is_device_line(line) {
            // What follows the device's name says how the run went.
            let outcome = line.rsplit_once("): ").map_or("", |(_, outcome)| outcome);
            return std::iter::once("on a device").chain(outcome.split_whitespace()).map(str::to_owned).collect();
        }
        words_without_times(line)
    };
    output.lines().flat_map(words).collect()
}

fn first_different_word(shown: &str, real: &str) -> Option<String> {
    let (shown, real) = (words(shown), words(real));
    let end = || "the end".to_owned();
    let at = (0..shown.len().max(real.len())).find(|&at| shown.get(at) != real.get(at))?;
    let before = shown[at.saturating_sub(4)..at].join(" ");
    let [shown, real] = [&shown, &real].map(|words| words.get(at).cloned().unwrap_or_else(end));
    Some(format!("after `{before}` it is `{real}` and not `{shown}`"))
}

/// Tests of the reading and of the comparison.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_page_is_taken_apart", || {
            let text = "a\n```console\n$ tilewright devices\nold\n$ echo $?\n0\n```\n<!-- file: b.rs -->\n```rust\nx\n```\n\
                        ```sh\ntilewright check a.py\n```\n";
            let page = Page::read(text);
            assert_eq!(page.to_string(), text);
            let commands: Vec<_> = page.commands().map(|shown| (&*shown.command, &*shown.output)).collect();
            assert_eq!(commands, [("tilewright devices", "old\n"), ("echo $?", "0\n")]);
            assert_eq!(page.lines().count(), 3);
            assert!(page.parts.contains(&Part::File { path: "b.rs".into(), content: "x\n".into() }));
            Ok(())
        }),
        Trial::test("a_stale_output_is_noticed", || {
            let old = Page::read("```console\n$ tilewright devices\nproved 2 of 3\n```\n");
            let mut new = old.clone();
            assert_eq!(old.first_difference(&new), None);
            new.commands_mut().for_each(|shown| shown.output = "proved 3 of 3\n".into());
            assert!(old.first_difference(&new).unwrap().contains("it is `3` and not `2`"));
            new.commands_mut().for_each(|shown| shown.output = "proved\n".into());
            assert!(old.first_difference(&new).unwrap().contains("it is `the end` and not `2`"));
            Ok(())
        }),
        Trial::test("times_and_devices_are_not_compared", || {
            assert_eq!(words("  lower   12.5  z3 (0.3 ms)\n"), words("  lower  9.75\n z3 (11.0 ms)"));
            assert_eq!(words("80 agree, 12 ms\n"), words("80 agree, 4882 ms"));
            assert_ne!(words("80 agree, 12 ms\n"), words("81 agree, 12 ms"));
            assert_ne!(words("Z3 5.4.0.0"), words("Z3 5.4.1.0"));
            assert_ne!(words("x = T.float32(0.0)"), words("x = T.float32(1.0)"));
            assert_eq!(words("    on 0: pthread (PoCL): agrees, 9 bytes"), words(" on 1: GPU (X): agrees, 9 bytes"));
            assert_ne!(words("    on 0: pthread (PoCL): agrees, 9 bytes"), words(" on 1: GPU (X): mismatch, 9 bytes"));
            assert!(!is_device_line("  on the way: 3"));
            Ok(())
        }),
    ]
}
