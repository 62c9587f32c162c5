//! `tilewright map`: reports everything that is known about an index map on a shape.
//!
//! ```text
//! lambda n, h, w, c: [n, c//4, h, w, c%4]  on [n, 64, 64, c]   ->   physical shape, inverse, padding, verdicts
//! ```
//!
//! `question` reads the texts and checks that they fit together, `inverse` and `parts` make claims, `answer` has them judged. The
//! algebra that finds inverses is not trusted: only claims that the judge proved are printed.

mod answer;
mod inverse;
mod parts;
mod question;

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tilewright_script::Source;
use tilewright_verify::{Judge, Report};

use super::batch::{self, Request};
use super::certificate::CertificateOption;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::Global;
use super::printer::Printer;
use crate::report::{MapReport, map_text};
pub(super) use answer::{judged, physical_shape};
pub(super) use question::{Question, Texts};

/// Say everything about an index map: physical shape, separators, inverse, padding, proofs
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  tilewright map 'lambda n, h, w, c: [n, c//4, h, w, c%4]' --shape 16,64,64,128 --at 11,37,23,101
  tilewright map NCHW4c --shape n,c,h,w
  tilewright map 'lambda i, j: [2*i + j]' --shape 3,4     # refuted: exit code 1
  tilewright map 'lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]' --shape n,64,64,c --assume 'c % 4 == 0'
  tilewright map 'lambda io, ii: [io*4 + ii]' --shape 5,4 --where 'io*4 + ii < 17'   # only the 17 indices below the bound
  tilewright map 'lambda i, j: [i//4, i%4*8 + j]' --shape 13,8 --parts --inner j
  tilewright map 'lambda i, j: [i*17 + j]' --shape 9,13 --physical-shape 160 --inverse 'lambda p: [p//17, p%17]' \\
      --padding 'lambda p: p%17 >= 13 or p//17 >= 9'
  echo '{\"map\":\"lambda i, j: [j, i]\",\"shape\":[3,5],\"at\":[[1,2]]}' | tilewright map --batch -")]
pub struct Args {
    /// The map as a Python lambda, or a format such as NCHW4c, nChw16c, NHWC->NCHW4c or '(8,128)(2,1)'; `-` reads it from standard input
    #[arg(value_name = "MAP", required_unless_present = "batch")]
    map: Option<String>,
    /// The logical shape: numbers, or names for symbolic extents
    #[arg(long, value_name = "16,64,64,128", required_unless_present = "batch", allow_hyphen_values = true)]
    shape: Option<String>,
    /// A logical index to follow; may be given many times
    #[arg(long, value_name = "11,37,23,101", allow_hyphen_values = true)]
    at: Vec<String>,
    /// An inverse, from physical to logical indices, to be verified; without it one is looked for
    #[arg(long, value_name = "LAMBDA")]
    inverse: Option<String>,
    /// Which physical indices no logical index reaches, to be verified; without it this is looked for
    #[arg(long, value_name = "LAMBDA")]
    padding: Option<String>,
    /// What may be taken for granted of the symbolic extents; may be given many times
    #[arg(long, value_name = "c % 4 == 0", allow_hyphen_values = true)]
    assume: Vec<String>,
    /// The physical shape, which may be larger than needed; without it the smallest one is looked for
    #[arg(long, value_name = "16,32,64,64,4", allow_hyphen_values = true)]
    physical_shape: Option<String>,
    /// What the map means, stated a second time: both are to be equal
    #[arg(long, value_name = "LAMBDA")]
    spec: Option<String>,
    /// Restrict the map to the indices for which a predicate holds: a condition in the parameters of the map, or a lambda. It
    /// is a premise of every obligation
    #[arg(long = "where", value_name = "PREDICATE", allow_hyphen_values = true)]
    predicate: Option<String>,
    /// Say which part of which index each output is made of, as TVM's `detect_iter_map` does
    #[arg(long)]
    parts: bool,
    /// Divide the map into one over these indices and one over the others, as TVM's `subspace_divide` does: each output is
    /// outer * extent + inner
    #[arg(long, value_name = "i,j")]
    inner: Option<String>,
    /// Answer many requests, one JSON object a line whose keys are the options' names, such as
    /// {"map":"lambda i, j: [j, i]","shape":[3,"n"],"at":[[1,2]],"id":7}; `-` reads them from standard input. Every line
    /// is answered by a line, an empty one by an error
    #[arg(long, value_name = "FILE", conflicts_with_all = ["map", "shape", "at", "inverse", "padding", "assume", "physical_shape", "spec", "predicate", "parts", "inner", "certificate"])]
    batch: Option<String>,
    #[command(flatten)]
    certificate: CertificateOption,
}

/// The keys of a request of a batch, besides `id`.
const KEYS: [&str; 11] =
    ["map", "shape", "at", "inverse", "padding", "assume", "physical_shape", "spec", "where", "parts", "inner"];

/// Prints the report on a map, or answers a batch.
///
/// # Errors
/// The map, the shape, an index or another option cannot be read or does not fit.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
    let judge = args.certificate.judge(&options)?;
    if let Some(file) = &args.batch {
        return many(file, &judge.for_many_claims(), printer);
    }
    let report = answer::answer(&Question::read(texts(args)?)?, &judge)?;
    args.certificate.write_reports(&report.verdicts)?;
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&map_text::map(&report, printer.style()))?;
    }
    if is_internal(&report) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_summary(report.summary(), global.allow_unknown))
}

/// Whether an obligation met a fault of the program or the solver.
fn is_internal(report: &MapReport) -> bool {
    report.verdicts.iter().any(Report::is_internal)
}

/// Answers a batch of requests.
fn many(file: &str, judge: &Judge, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    // Every line is answered, whatever the verdicts are; a fault of the judge itself still decides the exit status.
    let internal = AtomicBool::new(false);
    let status = batch::run(file, printer, |request| {
        let report = answer::answer(&Question::read(from_json(request)?)?, judge)?;
        internal.fetch_or(is_internal(&report), Ordering::Relaxed);
        Ok(report)
    })?;
    Ok(if internal.into_inner() { ExitStatus::Internal } else { status })
}

/// The texts of the command line, each named after its option.
fn texts(args: &Args) -> Result<Texts, Failure> {
    let named = |name: &'static str| move |text: &String| Source { name: format!("<--{name}>"), text: text.clone() };
    let map = match args.map.as_deref().unwrap_or_default() {
        "-" => Input::read("-")?.source,
        text => Source { name: "<map>".into(), text: text.to_owned() },
    };
    Ok(Texts {
        map,
        shape: named("shape")(args.shape.as_ref().unwrap_or(&String::new())),
        at: args.at.iter().map(named("at")).collect(),
        inverse: args.inverse.as_ref().map(named("inverse")),
        padding: args.padding.as_ref().map(named("padding")),
        assume: args.assume.iter().map(named("assume")).collect(),
        physical_shape: args.physical_shape.as_ref().map(named("physical-shape")),
        spec: args.spec.as_ref().map(named("spec")),
        predicate: args.predicate.as_ref().map(named("where")),
        parts: args.parts,
        inner: args.inner.as_ref().map(named("inner")),
    })
}

/// The texts of a request of a batch, each named after its key.
fn from_json(request: &Request) -> Result<Texts, Failure> {
    batch::only(request, &KEYS)?;
    let named = |key: &'static str| move |text: String| Source { name: format!("<{key}>"), text };
    let needed = |found: Option<String>, key: &'static str, such: &str| {
        found.map(named(key)).ok_or_else(|| {
            Failure::plain("<batch>", "bad-request", format!("the request has no `{key}`")).with_help(such)
        })
    };
    let lambda = |key: &'static str| batch::text(request, key).map(|found| found.map(named(key)));
    let at = batch::points(request, "at")?;
    let inner = batch::texts(request, "inner")?;
    Ok(Texts {
        map: needed(batch::text(request, "map")?, "map", "such as {\"map\":\"lambda i, j: [j, i]\",\"shape\":[3,5]}")?,
        shape: needed(shape(request, "shape")?, "shape", "such as \"shape\":[3,\"n\"]")?,
        at: at.into_iter().map(named("at")).collect(),
        inverse: lambda("inverse")?,
        padding: lambda("padding")?,
        assume: batch::texts(request, "assume")?.into_iter().map(named("assume")).collect(),
        physical_shape: shape(request, "physical_shape")?.map(named("physical_shape")),
        spec: lambda("spec")?,
        predicate: lambda("where")?,
        parts: batch::flag(request, "parts")?,
        inner: (!inner.is_empty()).then(|| named("inner")(inner.join(","))),
    })
}

/// The text of a shape that a request gives as `[3, "n"]` or `"3,n"`.
fn shape(request: &Request, key: &str) -> Result<Option<String>, Failure> {
    let bad = |found: &Value| {
        let message = format!("`{key}` is a list of numbers and names, not {}", batch::short(found));
        batch::bad_value(key, message).with_help("such as [3,\"n\"]")
    };
    let extent = |value: &Value| match value {
        Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        // In a list each text is one extent, so a comma in it is a mistake.
        Value::String(text) if text.contains(',') => Err(bad(value)),
        Value::String(text) => Ok(text.clone()),
        other => Err(bad(other)),
    };
    match request.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(extents)) => {
            let extents = extents.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
            Ok(Some(format!("[{}]", extents.join(","))))
        }
        Some(other) => Err(bad(other)),
    }
}
