//! Reads the inputs of a command: files, standard input, `FILE::name`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_script::{Source, encoding};

use super::failure::Failure;

/// Longest program read, in bytes. Programs are written by people or by compilers; the largest seen have some 100 KiB.
const MAX_PROGRAM_BYTES: u64 = 16 << 20;
/// Longest graph read, in bytes. A million tensors take about 150 MiB.
const MAX_GRAPH_BYTES: u64 = 256 << 20;

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
    /// The longest text of this kind, in bytes.
    fn max_bytes(self) -> u64 {
        match self {
            Self::Program | Self::Finding => MAX_PROGRAM_BYTES,
            Self::Graph => MAX_GRAPH_BYTES,
        }
    }

    /// The advice for a file of this kind that cannot be read.
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

/// A text, and the function in it that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The text.
    pub source: Source,
    /// The function named by `FILE::name`. `None` means all functions.
    pub function: Option<String>,
}

impl Input {
    /// Reads `FILE`, `FILE::name`, `-` or `-::name`.
    ///
    /// # Errors
    /// The file cannot be read, is longer than its kind allows or is not UTF-8, or no name follows `::`.
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

/// Splits an argument into path and function. If a file with `::` in its name exists, the whole argument is its path.
fn split(argument: &str) -> (&str, Option<&str>) {
    match argument.rsplit_once("::") {
        Some((path, function)) if !Path::new(argument).exists() => (path, Some(function)),
        _ => (argument, None),
    }
}

/// Reads a file or standard input as UTF-8.
fn read_source(path: &str, kind: Kind) -> Result<Source, Failure> {
    let name = if path == "-" { "<stdin>" } else { path };
    let bytes = if path == "-" {
        if STDIN_READ.swap(true, Ordering::SeqCst) {
            return Err(stdin_twice());
        }
        read_limited(io::stdin().lock(), kind)
    } else {
        File::open(path)
            .and_then(|file| if file.metadata()?.is_dir() { Err(is_a_directory()) } else { Ok(file) })
            .and_then(|file| read_limited(file, kind))
    };
    let bytes = bytes.map_err(|error| {
        Failure::plain(name, "cannot-read", format!("cannot read {name}: {error}")).with_help(kind.help())
    })?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > kind.max_bytes() {
        let message = format!("{name} is longer than {} MiB", kind.max_bytes() >> 20);
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

/// Reads at most one byte more than allowed, so that the caller can tell a text that is too long.
fn read_limited(reader: impl Read, kind: Kind) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(kind.max_bytes() + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The error of a folder that is given as a file; some systems would open it and fail only on reading.
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
