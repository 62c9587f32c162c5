//! What the tests of equal programs share: the files of pairs, and what the judge said.
//!
//! A file has cases: a name, the parameters, the program before, and programs after it.
//!
//! ```text
//! == reverse
//! a: (n,), b: (n,)
//! -- before
//! for i in range(n):
//!     B[i] = A[i] + T.float32(1)
//! -- after from the end
//! for i in range(n):
//!     B[n - 1 - i] = A[n - 1 - i] + T.float32(1)
//! -- wrong
//! A[n - 1 - i] => A[i]
//! ```
//!
//! `after` is proved, `open` is equal and not decided, `illegal` is refuted by a run of both programs, `beyond` is wrong only for sizes
//! that no run has; each has a name if there are several. `wrong` has changes (old text => new text) that break the program above.
//! Buffers have elements of `float32`, or of the type behind the shape, as in `a: (n,) int32`. A line `reassociate` in a program after
//! permits floats to be combined in another order.
//! In a change, `¶` is the end of a line.
//! Lines `with x: (m,) for a: (n,)` in a program after change its parameters, lines `map A: lambda i, j: [j, i]` state how a buffer
//! moved.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) use tilewright::fuzz::corpus::written::program;
use tilewright::fuzz::corpus::written::{parameters, shape};
use tilewright::pipeline;
use tilewright::pipeline::pair::{self, Given, GivenMap, Judged};
use tilewright_ir::PrimFunc;
use tilewright_verify::{Config, Judge, Method, Obligation, Report, Verdict};

/// What is known of a program after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is proved equal.
    After,
    /// It is equal, and neither proved nor refuted.
    Open,
    /// It computes something else.
    Illegal,
    /// It leaves its buffers or the integers, but for no sizes that are run.
    Beyond,
}

/// A program after.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) kind: Kind,
    /// The name of the case, and its own.
    pub(crate) name: String,
    params: String,
    body: String,
    pub(crate) maps: Vec<GivenMap>,
    /// Whether floats may be combined in another order.
    pub(crate) reassociate: bool,
    /// Old and new text of changes that make it wrong.
    pub(crate) wrong: Vec<(String, String)>,
}

impl Variant {
    /// The program.
    pub(crate) fn after(&self) -> String {
        program(&self.params, &self.body)
    }

    /// The broken twins: what was changed, and the program.
    pub(crate) fn twins(&self) -> impl Iterator<Item = (String, String)> {
        self.wrong.iter().map(|(old, new)| {
            assert!(self.body.contains(old.as_str()), "{}: no `{old}` in\n{}", self.name, self.body);
            let body = self.body.replacen(old, new, 1);
            (format!("{}: `{new}` for `{old}`", self.name), program(&self.params, &body))
        })
    }

    /// The verdicts about a program in the place of this one.
    pub(crate) fn validate(&self, before: &PrimFunc, after: &PrimFunc, judge: &Judge) -> Judged {
        let given = Given { maps: &self.maps, assumed: &[], reassociate: self.reassociate };
        pair::validate_given(before, after, given, judge).unwrap_or_else(|faults| panic!("{}: {faults:?}", self.name))
    }
}

/// A program, and programs after it.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) params: String,
    pub(crate) before: String,
    pub(crate) variants: Vec<Variant>,
}

impl Case {
    /// Whether the size of a parameter is symbolic.
    pub(crate) fn is_symbolic(&self) -> bool {
        let has_name = |(shape, _): (&str, &str)| shape.contains(|c: char| c.is_ascii_lowercase());
        parameters(&self.params).iter().any(|(_, ty)| shape(ty).is_some_and(has_name))
    }
}

/// The cases of a file in `tests/equivalence`.
pub(crate) fn cases(file: &str) -> Vec<Case> {
    let path = format!("{}/tests/equivalence/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("\n== ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let (head, rest) = text.split_once("\n-- before\n").unwrap();
    let (name, params) = head.split_once('\n').unwrap();
    let mut parts = rest.split("\n-- ");
    let before = program(params, parts.next().unwrap());
    let mut variants: Vec<Variant> = Vec::new();
    for part in parts {
        let (head, body) = part.split_once('\n').unwrap();
        let (word, own) = head.split_once(' ').unwrap_or((head, ""));
        let kind = match word {
            "after" => Kind::After,
            "open" => Kind::Open,
            "illegal" => Kind::Illegal,
            "beyond" => Kind::Beyond,
            "wrong" => {
                let changes = body.lines().filter(|line| !line.is_empty());
                variants.last_mut().unwrap().wrong = changes.map(change).collect();
                continue;
            }
            other => panic!("`{other}` in {name}"),
        };
        let name = if own.is_empty() { name.to_owned() } else { format!("{name}, {own}") };
        variants.push(variant(kind, name, params, body));
    }
    Case { name: name.to_owned(), params: params.to_owned(), before, variants }
}

pub(crate) fn change(line: &str) -> (String, String) {
    let (old, new) = line.split_once(" => ").unwrap();
    (old.replace('¶', "\n"), new.replace('¶', "\n"))
}

fn variant(kind: Kind, name: String, params: &str, body: &str) -> Variant {
    let (mut params, mut maps, mut lines) = (params.to_owned(), Vec::new(), Vec::new());
    let reassociate = body.lines().any(|line| line == "reassociate");
    for line in body.lines().filter(|line| *line != "reassociate") {
        if let Some(with) = line.strip_prefix("with ") {
            let (new, old) = with.split_once(" for ").unwrap();
            assert!(params.contains(old), "no `{old}` in {params}");
            params = params.replacen(old, new, 1);
        } else if let Some(map) = line.strip_prefix("map ") {
            let (buffer, text) = map.split_once(": ").unwrap();
            maps.push(GivenMap { buffer: buffer.to_owned(), text: text.to_owned() });
        } else {
            lines.push(line);
        }
    }
    Variant { kind, name, params, body: lines.join("\n"), maps, reassociate, wrong: Vec::new() }
}

/// The only function of a text.
pub(crate) fn read(text: &str) -> PrimFunc {
    let mut found = pipeline::read(text, None).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    found.programs.remove(0).func
}

/// A judge with all strategies.
pub(crate) fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

/// What is not proved, and why.
pub(crate) fn open(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

/// Whether everything is proved, and there is something to prove.
pub(crate) fn is_proved(reports: &[Report]) -> bool {
    !reports.is_empty() && open(reports).is_empty()
}

/// What a run of both programs showed, if one refuted them: an element that differs, or that only one of them traps.
pub(crate) fn refutation(reports: &[Report]) -> Option<&tilewright_verify::Counterexample> {
    // An interpreter that runs one program alone finds races.
    let is_of_both = |report: &&Report| report.method == Method::Interpreter && report.obligation != Obligation::Race;
    reports.iter().filter(is_of_both).find_map(|report| match &report.verdict {
        Verdict::Refuted(found) => Some(found),
        _ => None,
    })
}

/// Whether both programs were run and came out otherwise.
pub(crate) fn is_refuted(reports: &[Report]) -> bool {
    refutation(reports).is_some()
}

/// Whether `docs/EQUIVALENCE.md` has a row of a table that starts like this.
pub(crate) fn is_documented(row: &str) -> bool {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/EQUIVALENCE.md")).unwrap();
    page.lines().any(|line| line.starts_with(row))
}
