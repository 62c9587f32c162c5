//! `--batch FILE`: many requests, a line of JSON out for each line of JSON in.

use serde::Serialize;
use serde_json::{Map, Value};
use tilewright_ir::Diagnostic;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::printer::Printer;
use crate::report::diagnostic::FaultRow;

/// One line: the options by their names.
pub type Request = Map<String, Value>;

/// What is said to one request: a report, or what is wrong with the request.
#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    report: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FaultRow>,
}

/// Answers the lines of a file, `-` being standard input, in their order. A line that cannot be answered gives an error
/// object with the same `id`, and the rest goes on.
///
/// # Errors
/// The file cannot be read, or standard output cannot be written.
pub fn run<T: Serialize>(
    file: &str,
    printer: &mut Printer,
    answer: impl Fn(&Request) -> Result<T, Failure>,
) -> Result<ExitStatus, Failure> {
    let input = Input::read(file)?;
    let mut status = ExitStatus::Success;
    for text in input.source.text.lines() {
        let request = read(text);
        let id = request.as_ref().ok().and_then(|request| request.get("id")).cloned();
        let (report, error) = match request.and_then(|request| answer(&request)) {
            Ok(report) => (Some(report), None),
            Err(failure) => {
                status = status.max(failure.status());
                (None, Some(fault(&failure)))
            }
        };
        let line = Line { id: id.as_ref(), report, error };
        let line = serde_json::to_string(&line).map_err(|error| Failure::Internal(error.to_string()))?;
        printer.json(&line)?;
    }
    Ok(status)
}

fn read(text: &str) -> Result<Request, Failure> {
    let bad = |message: String| {
        Failure::plain("<batch>", "bad-request", message)
            .with_help("a request is one JSON object on one line, its keys the names of options")
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(request)) => Ok(request),
        Ok(_) => Err(bad("the line is no JSON object".into())),
        Err(error) => Err(bad(format!("the line is no JSON: {error}"))),
    }
}

fn fault(failure: &Failure) -> FaultRow {
    let plain = |message: &str| FaultRow::new(&Diagnostic::error("internal", None, message));
    match failure {
        Failure::Input { diagnostics, .. } => {
            diagnostics.first().map_or_else(|| plain("the request cannot be answered"), FaultRow::new)
        }
        Failure::Trap { diagnostic, .. } => FaultRow::new(diagnostic),
        Failure::Internal(message) => plain(message),
    }
}

/// Refuses keys that are no options of the command; `id` is echoed.
///
/// # Errors
/// There is one.
pub fn only(request: &Request, known: &[&str]) -> Result<(), Failure> {
    match request.keys().find(|key| *key != "id" && !known.contains(&key.as_str())) {
        Some(key) => {
            let message = format!("`{key}` is no key of a request");
            Err(Failure::plain("<batch>", "bad-request", message)
                .with_help(&format!("the keys are {} and id", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// A flag: absent means no.
///
/// # Errors
/// It is neither true nor false.
pub fn flag(request: &Request, key: &str) -> Result<bool, Failure> {
    match request.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => Err(Failure::plain("<batch>", "bad-request", format!("`{key}` is true or false, not {other}"))),
    }
}

/// A list of indices, each a list of integers; absent means none.
///
/// # Errors
/// It is something else.
pub fn points(request: &Request, key: &str) -> Result<Vec<Vec<i128>>, Failure> {
    let bad = |found: &Value| {
        let message = format!("`{key}` is a list of lists of integers, not {found}");
        Failure::plain("<batch>", "bad-request", message).with_help("such as [[2,3],[0,0]]")
    };
    let Some(found) = request.get(key).filter(|found| !found.is_null()) else { return Ok(Vec::new()) };
    let number = |value: &Value| value.as_i64().map(i128::from).ok_or_else(|| bad(found));
    let point = |point: &Value| {
        let numbers = point.as_array().ok_or_else(|| bad(found))?;
        numbers.iter().map(number).collect::<Result<Vec<_>, _>>()
    };
    found.as_array().ok_or_else(|| bad(found))?.iter().map(point).collect()
}
