//! `tilewright bitcast`: proves or refutes that the memory of one array may be read as another.
//!
//! Two arrays correspond if their logical indices do, after `--transpose` if that is given; if the shapes differ,
//! elements correspond by their row-major numbers, as in a reshape. The bitcast is legal if corresponding elements lie
//! in the same slot, and padding lies on padding.

use tilewright_ir::layout::{ArrayShape, SymbolicTiling};
use tilewright_ir::{Diagnostic, Expr, XlaShape};
use tilewright_script::{Source, print_xla_shape, read_xla_shape};
use tilewright_verify::{Judge, PairClaim, Premise, Report, Verdict};

use super::batch;
use super::bitcast_slots as slots;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::layout::{array, plain};
use super::options::Global;
use super::point::span;
use super::printer::Printer;
use crate::layouts::{self, Pair};
use crate::pipeline::outcome::Summary;
use crate::report::BitcastReport;

/// Say whether the memory of array A, taken as array B, holds the same: slot by slot, padding included
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Elements are the same if their logical indices are; if the shapes differ, if their row-major numbers \
                        are (a reshape).\n\nExamples:\n  tilewright bitcast \
                        'f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}' 'f32[112,110]{1,0:T(2,3)}'     # proved\n  tilewright \
                        bitcast 'f32[3,5]{1,0}' 'f32[5,3]{0,1}' --transpose 1,0     # proved\n  tilewright bitcast \
                        'f32[3,5]{1,0}' 'f32[3,5]{0,1}'     # refuted: exit code 1"
)]
pub struct Args {
    #[command(flatten)]
    pub(super) pair: PairArgs,
}

/// Two arrays, or a file of such requests.
#[derive(clap::Args, Clone, Debug)]
pub struct PairArgs {
    /// The array A with its layout as XLA writes it
    #[arg(value_name = "A", required_unless_present = "batch")]
    pub(super) from: Option<String>,
    /// The array B
    #[arg(value_name = "B", required_unless_present = "batch")]
    pub(super) to: Option<String>,
    /// Dimension k of B is this dimension of A
    #[arg(long, value_name = "1,0", value_delimiter = ',', value_parser = read_axis, allow_hyphen_values = true)]
    pub(super) transpose: Option<Vec<usize>>,
    /// Answer many requests, one JSON object a line, such as {"from":"f32[3,5]{1,0}","to":"f32[5,3]{0,1}","transpose":[1,0]};
    /// `-` reads them from standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "transpose"])]
    pub(super) batch: Option<String>,
}

/// Two arrays and the correspondence of their elements.
pub(super) struct Request {
    pub(super) from: Side,
    pub(super) to: Side,
    pub(super) transpose: Option<Vec<usize>>,
    /// The correspondence as a map between logical indices.
    pub(super) pair: Pair,
}

pub(super) struct Side {
    shape: XlaShape,
    pub(super) array: ArrayShape,
}

/// Prints whether the memory of A may be read as B.
///
/// # Errors
/// A text is not an array with a layout, or the arrays do not correspond.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let judge = judge(global)?;
    if let Some(file) = &args.pair.batch {
        let judge = judge.for_many_claims();
        return batch::run(file, printer, |request| Ok(answer(&Request::from_json(request)?, &judge)));
    }
    let request = Request::from_args(&args.pair)?;
    let report = answer(&request, &judge);
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&report.to_text(printer.style()))?;
    }
    Ok(status(&report.verdicts, report.summary(), global))
}

/// A checker with the options of the command line.
///
/// # Errors
/// The solver is missing or too old.
pub(super) fn judge(global: &Global) -> Result<Judge, Failure> {
    let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
    Judge::new(options.judge_config(), tilewright_search::strategies())
        .map_err(|error| Failure::Internal(error.to_string()))
}

/// The exit status of a report: internal if any obligation met a fault of the program, else that of the summary.
pub(super) fn status(reports: &[Report], summary: Summary, global: &Global) -> ExitStatus {
    if reports.iter().any(Report::is_internal) {
        return ExitStatus::Internal;
    }
    ExitStatus::of_summary(summary, global.allow_unknown)
}

/// The report. `legal` stays open (null) unless the obligation is proved or refuted.
fn answer(request: &Request, judge: &Judge) -> BitcastReport {
    let report = slots::with_elements_of_a(judge.check_bitcast(&request.claim()), request);
    let legal = match report.verdict {
        Verdict::Proved(_) => Some(true),
        Verdict::Refuted(_) => Some(false),
        Verdict::Unknown(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => None,
    };
    BitcastReport {
        schema: "tilewright.bitcast/1",
        from: request.text_a(),
        to: request.text_b(),
        transpose: request.transpose.clone(),
        same_elements: request.pair.reindex.to_string(),
        legal,
        premises: request.premises(),
        verdicts: vec![report],
    }
}

impl Request {
    /// Reads the two arrays of the command line.
    pub(super) fn from_args(args: &PairArgs) -> Result<Self, Failure> {
        let side = |text: &Option<String>, name: &str| Side::read(text.as_deref().unwrap_or_default(), name);
        Self::new(side(&args.from, "<A>")?, side(&args.to, "<B>")?, args.transpose.clone(), "<--transpose>")
    }

    /// Reads a request of a batch: `{"from":"f32[3,5]{1,0}","to":"f32[5,3]{0,1}","transpose":[1,0]}`.
    pub(super) fn from_json(request: &batch::Request) -> Result<Self, Failure> {
        batch::only(request, &["from", "to", "transpose"])?;
        let bad = |key: &str, message: String| batch::bad_value(key, message);
        let side = |key: &str| match request.get(key).and_then(|text| text.as_str()) {
            Some(text) => Side::read(text, &format!("<{key}>")),
            None => Err(bad(key, format!("the request has no text `{key}`"))
                .with_help("such as {\"from\":\"f32[3,5]{1,0}\",\"to\":\"f32[5,3]{0,1}\",\"transpose\":[1,0]}")),
        };
        let axes = |value: &serde_json::Value| {
            let axis = |axis: &serde_json::Value| axis.as_u64().and_then(|axis| usize::try_from(axis).ok());
            value.as_array().and_then(|axes| axes.iter().map(axis).collect::<Option<Vec<usize>>>())
        };
        let transpose = match request.get("transpose").filter(|value| !value.is_null()) {
            None => None,
            Some(value) => {
                let found = axes(value);
                let message = || format!("`transpose` is a list of dimensions, not {}", batch::short(value));
                Some(found.ok_or_else(|| bad("transpose", message()).with_help("such as [1,0]"))?)
            }
        };
        Self::new(side("from")?, side("to")?, transpose, "<transpose>")
    }

    /// A request whose parts fit together; `name` is that of the text of `transpose`.
    fn new(from: Side, to: Side, transpose: Option<Vec<usize>>, name: &str) -> Result<Self, Failure> {
        if let Some(axes) = &transpose {
            let ranks = (from.array.dimensions().len(), to.array.dimensions().len());
            layouts::check_permutation(axes, ranks.0, ranks.1)
                .map_err(|message| not_a_transpose(axes, name, message))?;
        }
        let pair = layouts::pair(&from.array, &to.array, transpose.as_deref());
        let pair = pair.map_err(|message| Failure::plain("<A and B>", "no-correspondence", message))?;
        Ok(Self { from, to, transpose, pair })
    }

    /// The claim to be checked: the arrays, and which elements correspond.
    pub(super) fn claim(&self) -> PairClaim<'_> {
        PairClaim {
            from: &self.from.array,
            to: &self.to.array,
            to_extents: &self.pair.to_extents,
            reindex: &self.pair.reindex,
            permutation: self.transpose.as_deref(),
        }
    }

    /// What the verdicts take for granted of symbolic extents.
    pub(super) fn premises(&self) -> Vec<String> {
        let extents = self.pair.reindex.domain().iter().chain(&self.pair.to_extents);
        let symbols = extents.flat_map(Expr::vars).collect();
        Premise::of_shapes(symbols, &[]).iter().map(ToString::to_string).collect()
    }

    /// Arrays A and B.
    pub(super) fn arrays(&self) -> (&ArrayShape, &ArrayShape) {
        (&self.from.array, &self.to.array)
    }

    /// Array A in XLA's notation.
    pub(super) fn text_a(&self) -> String {
        print_xla_shape(&self.from.shape)
    }

    /// Array B in XLA's notation.
    pub(super) fn text_b(&self) -> String {
        print_xla_shape(&self.to.shape)
    }
}

/// The error of a transpose that is no permutation of the dimensions.
fn not_a_transpose(axes: &[usize], name: &str, message: String) -> Failure {
    let text = axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let place = span(0..text.len());
    let fault = Diagnostic::error("no-correspondence", Some(place), message)
        .with_help("give each dimension of A once: dimension k of B is the k-th of them, such as 1,0");
    Failure::input(&Source { name: name.into(), text }, vec![fault])
}

fn read_axis(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| "expected dimensions of A, numbered from 0, such as 1,0".to_owned())
}

impl Side {
    /// Reads an array in XLA's notation; `name` is the source in messages.
    fn read(text: &str, name: &str) -> Result<Self, Failure> {
        let source = Source { name: name.into(), text: text.to_owned() };
        let fault = |fault: Diagnostic| Failure::input(&source, vec![fault]);
        let shape = read_xla_shape(text).map_err(|faults| Failure::input(&source, faults))?;
        let array = array(&shape).map_err(fault)?.clone();
        // A sparse array has no tiling. It is refused here, where the fault can be placed in the text.
        let _: SymbolicTiling = array.symbolic_tiling().map_err(|error| fault(plain(error)))?;
        Ok(Self { shape, array })
    }
}
