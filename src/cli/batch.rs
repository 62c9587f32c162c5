//! `--batch FILE`: many requests, a line of JSON out for each line of JSON in.
//!
//! Every line is answered by one line, in the same order, an empty line by an error. Lines are read, answered on all
//! threads and printed a few at a time: a client may wait for each answer before it sends the next request, and a file may
//! have any number of lines.
//!
//! ```text
//! {"map":"lambda i, j: [j, i]","shape":[3,5],"id":7}   ->   {"id":7,"schema":"tilewright.map/1",...}
//! {"map":"lambda i: [j]","shape":[3]}                  ->   {"error":{"message":...,"start":...,"end":...,"hint":...}}
//! ```
//!
//! A key has the name of an option of the command. `id` is any value; it is copied to the answer.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};
use tilewright_ir::Diagnostic;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::printer::Printer;
use crate::report::diagnostic::FaultRow;

/// Longest line that is read, in bytes.
const MAX_LINE: usize = 16 << 20;
/// Most lines that are answered together, before any of these answers is printed.
const MAX_CHUNK: usize = 256;
/// If the answers to a chunk are longer than this together, in bytes, the next chunk is as short as the first one.
const MAX_OUTPUT: usize = 4 << 20;

/// One request: the values of options by the options' names.
pub type Request = Map<String, Value>;

/// The answer to one request: a report or an error, never both.
#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    report: T,
}

/// What takes the place of a report.
#[derive(Serialize)]
struct ErrorLine<'a> {
    id: Option<&'a Value>,
    error: Fault,
}

/// The error object of a request that could not be answered.
#[derive(Serialize)]
struct Fault {
    #[serde(flatten)]
    row: FaultRow,
    /// The key whose value is wrong, in whose text `start` and `end` count.
    key: Option<String>,
}

/// Answers the lines of a file, `-` being standard input, in their order. A line that cannot be answered gives an error
/// object with the same `id`, and the rest goes on.
///
/// # Errors
/// The file cannot be read, or standard output cannot be written.
pub fn run<T: Serialize>(
    file: &str,
    printer: &mut Printer,
    answer: impl Fn(&Request) -> Result<T, Failure> + Sync,
) -> Result<ExitStatus, Failure> {
    let cannot_read = |error: io::Error| {
        let name = if file == "-" { "<stdin>" } else { file };
        Failure::plain(name, "cannot-read", format!("cannot read {name}: {error}"))
            .with_help("give the path of a file with a JSON object on each line, or `-` for standard input")
    };
    let mut input = Lines::open(file).map_err(cannot_read)?;
    let mut status = ExitStatus::Success;
    // Chunks grow from one line a thread, so that the first answers come soon, and fall back to that where answers are
    // long, so that memory is bounded.
    let few = rayon::current_num_threads().clamp(1, MAX_CHUNK);
    let mut limit = few;
    loop {
        let chunk = input.next_chunk(limit).map_err(cannot_read)?;
        if chunk.is_empty() {
            return Ok(status);
        }
        let answers: Vec<(String, ExitStatus)> = chunk.par_iter().map(|line| said(line, &answer)).collect();
        let mut text = String::new();
        for (line, how) in answers {
            text.push_str(&line);
            text.push('\n');
            status = status.max(how);
        }
        limit = if text.len() > MAX_OUTPUT { few } else { (limit * 2).min(MAX_CHUNK) };
        printer.result(&text)?;
    }
}

/// The line that answers a line, and the exit status that it stands for. A panic in `answer` becomes an internal error.
fn said<T: Serialize>(
    line: &Result<Vec<u8>, Failure>,
    answer: &(impl Fn(&Request) -> Result<T, Failure> + Sync),
) -> (String, ExitStatus) {
    let request = match line {
        Ok(bytes) => read(bytes),
        Err(failure) => return refused(&Request::new(), failure),
    };
    let request = match request {
        Ok(request) => request,
        Err(failure) => return refused(&Request::new(), &failure),
    };
    let id = request.get("id");
    // A panic in one answer must not end the others.
    let answered = catch_unwind(AssertUnwindSafe(|| answer(&request)));
    let answered = answered.unwrap_or_else(|_| Err(Failure::Internal("this request made the program panic".into())));
    match answered {
        Ok(report) => match serde_json::to_string(&Line { id, report }) {
            Ok(text) => (text, ExitStatus::Success),
            Err(error) => refused(&request, &Failure::Internal(error.to_string())),
        },
        Err(failure) => refused(&request, &failure),
    }
}

fn refused(request: &Request, failure: &Failure) -> (String, ExitStatus) {
    let line = ErrorLine { id: request.get("id"), error: fault(request, failure) };
    // Texts and numbers are written without fail.
    (serde_json::to_string(&line).unwrap_or_else(|_| "{}".to_owned()), failure.status())
}

/// The lines of a file or of standard input.
struct Lines {
    input: BufReader<Box<dyn Read>>,
    /// No line was read yet.
    at_start: bool,
}

/// What some editors write at the beginning of a file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Lines {
    /// Opens a file; `-` is standard input.
    fn open(file: &str) -> io::Result<Self> {
        let input: Box<dyn Read> = if file == "-" { Box::new(io::stdin()) } else { Box::new(File::open(file)?) };
        Ok(Self { input: BufReader::with_capacity(1 << 18, input), at_start: true })
    }

    /// The next line and those after it that are in the buffer already, at most `limit` in all. Empty at the end of the
    /// input. Only the first line is waited for: a client may need its answer before it sends more.
    fn next_chunk(&mut self, limit: usize) -> io::Result<Vec<Result<Vec<u8>, Failure>>> {
        let mut chunk = Vec::new();
        while chunk.len() < limit && (chunk.is_empty() || self.input.buffer().contains(&b'\n')) {
            match self.next_line()? {
                Some(line) => chunk.push(line),
                None => break,
            }
        }
        Ok(chunk)
    }

    /// The next line without its newline; `None` at the end. A line above `MAX_LINE` is skipped and gives an error in
    /// its place.
    fn next_line(&mut self) -> io::Result<Option<Result<Vec<u8>, Failure>>> {
        let mut line = Vec::new();
        let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        if (&mut self.input).take(most + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if std::mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > MAX_LINE {
            self.input.skip_until(b'\n')?;
            return Ok(Some(Err(bad(format!("the line is longer than {} MiB", MAX_LINE >> 20)))));
        }
        Ok(Some(Ok(line)))
    }
}

/// A request that cannot be read.
fn bad(message: String) -> Failure {
    Failure::plain("<batch>", "bad-request", message)
        .with_help("a request is one JSON object on one line, its keys the names of options")
}

/// Reads a line as a JSON object.
fn read(line: &[u8]) -> Result<Request, Failure> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(bad("the line is empty".into()));
    }
    if let Some(fault) = tilewright_script::encoding::diagnose(line) {
        return Err(bad(fault.message));
    }
    let text = std::str::from_utf8(line)
        .map_err(|error| bad(format!("the line is not UTF-8: byte {} starts no character", error.valid_up_to())))?;
    match serde_json::from_str(text) {
        Ok(Value::Object(request)) => Ok(request),
        Ok(_) => Err(bad("the line is no JSON object".into())),
        Err(error) => Err(bad(format!("the line is no JSON: {error}"))),
    }
}

fn fault(request: &Request, failure: &Failure) -> Fault {
    let plain = |message: &str| FaultRow::new(&Diagnostic::error("internal", None, message));
    match failure {
        Failure::Input { source, diagnostics } => {
            let row = diagnostics.first().map_or_else(|| plain("the request cannot be answered"), FaultRow::new);
            // A source is named after the key that its text comes from.
            let name = source.name.trim_matches(['<', '>']);
            let value = request.get(name);
            // The text of a value that is no text, such as a list of extents, is not in the request.
            let (start, end) = if value.is_some_and(Value::is_string) { (row.start, row.end) } else { (None, None) };
            Fault { row: FaultRow { start, end, ..row }, key: value.map(|_| name.to_owned()) }
        }
        Failure::Trap { diagnostic, .. } => Fault { row: FaultRow::new(diagnostic), key: None },
        Failure::Internal(message) | Failure::Output(message) => Fault { row: plain(message), key: None },
    }
}

/// Refuses requests with keys other than `known` and `id`.
///
/// # Errors
/// The first unknown key, with a list of the known ones.
pub fn only(request: &Request, known: &[&str]) -> Result<(), Failure> {
    match request.keys().find(|key| *key != "id" && !known.contains(&key.as_str())) {
        Some(key) => {
            let message = format!("`{}` is no key of a request", shortened(key));
            Err(Failure::plain("<batch>", "bad-request", message)
                .with_help(&format!("the keys are {} and id", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// The error of a value of the wrong kind.
pub(super) fn bad_value(key: &str, message: String) -> Failure {
    Failure::plain(format!("<{key}>"), "bad-request", message)
}

/// A flag: absent means no.
///
/// # Errors
/// The value is neither true nor false.
pub fn flag(request: &Request, key: &str) -> Result<bool, Failure> {
    match request.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => {
            let message = format!("`{key}` is true or false, not {}", short(other));
            Err(bad_value(key, message).with_help("such as true"))
        }
    }
}

/// The value of a key as text; absent or null means `None`.
///
/// # Errors
/// The value is not a text.
pub fn text(request: &Request, key: &str) -> Result<Option<String>, Failure> {
    match request.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let message = format!("`{key}` is a text, not {}", short(other));
            Err(bad_value(key, message).with_help("write it in quotes"))
        }
    }
}

/// The value of a key as a list of texts. A single text is a list of one; absent or null is the empty list.
///
/// # Errors
/// The value is neither a text nor a list of texts.
pub fn texts(request: &Request, key: &str) -> Result<Vec<String>, Failure> {
    let bad = |found: &Value| {
        let message = format!("`{key}` is a list of texts, not {}", short(found));
        bad_value(key, message).with_help("such as [\"c % 4 == 0\"]")
    };
    match request.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(all)) => {
            all.iter().map(|each| each.as_str().map(str::to_owned).ok_or_else(|| bad(each))).collect()
        }
        Some(other) => Err(bad(other)),
    }
}

/// A list of indices, each a list of integers; absent means none. Each is returned as text, such as `1,2`.
///
/// # Errors
/// It is something else.
pub fn points(request: &Request, key: &str) -> Result<Vec<String>, Failure> {
    let bad = |found: &Value| {
        let message = format!("`{key}` is a list of lists of integers, not {}", short(found));
        bad_value(key, message).with_help("such as [[2,3],[0,0]]")
    };
    let Some(found) = request.get(key).filter(|found| !found.is_null()) else { return Ok(Vec::new()) };
    let number = |value: &Value| value.as_i64().map(|number| number.to_string()).ok_or_else(|| bad(found));
    let point = |point: &Value| {
        let numbers = point.as_array().ok_or_else(|| bad(found))?;
        Ok(numbers.iter().map(number).collect::<Result<Vec<_>, _>>()?.join(","))
    };
    found.as_array().ok_or_else(|| bad(found))?.iter().map(point).collect()
}

/// A value as messages show it: its JSON, cut after 60 characters.
pub(super) fn short(value: &Value) -> String {
    shortened(&value.to_string())
}

/// A text cut after 60 characters, with `...` if something was cut.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
