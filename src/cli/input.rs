//! Reads what a command is given: files, standard input, `FILE::name`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_script::{Source, encoding};

use super::failure::Failure;

/// Longest text read, in bytes. Programs are written by people or by compilers; the largest seen have some 100 KiB.
const MAX_BYTES: u64 = 16 << 20;

/// Whether standard input was read.
static STDIN_READ: AtomicBool = AtomicBool::new(false);

/// Refuses arguments of which several are standard input, before any of them is read.
///
/// # Errors
/// There are two.
pub(super) fn refuse_stdin_twice<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    let stdin = arguments.into_iter().filter(|argument| split(argument).0 == "-");
    if stdin.count() > 1 { Err(stdin_twice()) } else { Ok(()) }
}

fn stdin_twice() -> Failure {
    Failure::plain("<stdin>", "stdin-twice", "standard input is given twice, and can be read once")
        .with_help("save one of the two to a file")
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program in TVMScript or TE.
    Program,
    /// A graph as JSON.
    Graph,
    /// A finding of a campaign.
    Finding,
}

impl Kind {
    /// What to give instead of a file that cannot be read.
    fn help(self) -> &'static str {
        match self {
            Self::Program => "give the path of a TVMScript or TE file, or `-` for standard input",
            Self::Graph => {
                "give the path of a graph file, such as examples/graphs/block.json, or `-` for standard input"
            }
            Self::Finding => "give the path of a finding, the JSON file that `tilewright fuzz` writes",
        }
    }
}

/// A text and which of its functions is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The text.
    pub source: Source,
    /// The function named by `FILE::name`; all of them if none.
    pub function: Option<String>,
}

impl Input {
    /// Reads `FILE`, `FILE::name`, `-` or `-::name`.
    ///
    /// # Errors
    /// A file that cannot be read, is too long or is not UTF-8.
    pub fn read(argument: &str) -> Result<Self, Failure> {
        Self::read_as(argument, Kind::Program)
    }

    /// As [`Input::read`], for an input of another kind.
    ///
    /// # Errors
    /// As [`Input::read`]; the hint names the kind.
    pub fn read_as(argument: &str, kind: Kind) -> Result<Self, Failure> {
        let (path, function) = split(argument);
        if function == Some("") {
            let message = format!("`{argument}` names no function after `::`");
            return Err(Failure::plain(path, "missing-function-name", message));
        }
        Ok(Self { source: read_source(path, kind)?, function: function.map(str::to_owned) })
    }
}

/// Path and function. A file that really has `::` in its name is taken as it is.
fn split(argument: &str) -> (&str, Option<&str>) {
    match argument.rsplit_once("::") {
        Some((path, function)) if !Path::new(argument).exists() => (path, Some(function)),
        _ => (argument, None),
    }
}

fn read_source(path: &str, kind: Kind) -> Result<Source, Failure> {
    let name = if path == "-" { "<stdin>" } else { path };
    let bytes = if path == "-" {
        if STDIN_READ.swap(true, Ordering::SeqCst) {
            return Err(stdin_twice());
        }
        read_limited(io::stdin().lock())
    } else {
        File::open(path)
            .and_then(|file| if file.metadata()?.is_dir() { Err(is_a_directory()) } else { Ok(file) })
            .and_then(read_limited)
    };
    let bytes = bytes.map_err(|error| {
        Failure::plain(name, "cannot-read", format!("cannot read {name}: {error}")).with_help(kind.help())
    })?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        let message = format!("{name} is longer than {} MiB", MAX_BYTES >> 20);
        return Err(Failure::plain(name, "too-long", message));
    }
    if let Some(fault) = encoding::diagnose(&bytes) {
        return Err(Failure::input(&Source { name: name.to_owned(), text: String::new() }, vec![fault]));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|&byte| byte == b'\n').count();
        let message = format!("{name} is not UTF-8: byte {at}, in line {line}, starts no character");
        Failure::plain(name, "not-utf8", message).with_help("save the file as UTF-8 text")
    })?;
    // Python ends a line at a carriage return, too; places in the text are counted in line feeds.
    if !text.contains('\n') && text.contains('\r') {
        text = text.replace('\r', "\n");
    }
    Ok(Source { name: name.to_owned(), text })
}

/// One byte more than allowed, so that the caller sees that there is more.
fn read_limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_a_directory() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_comes_after_two_colons() {
        assert_eq!(split("a.py"), ("a.py", None));
        assert_eq!(split("a.py::conv"), ("a.py", Some("conv")));
        assert_eq!(split("-::conv"), ("-", Some("conv")));
        assert!(Input::read("a.py::").is_err());
    }

    #[test]
    fn an_endless_file_is_not_read_to_its_end() {
        assert!(Input::read("/dev/zero").is_err());
    }
}
