//! `tilewright relayout`: the map from the slots of one array to those of another, and the move itself.

mod moved;
mod npy;
mod sides;
mod symbolic;

use tilewright_ir::{ArrayShape, DataType, InverseClaim};
use tilewright_verify::{Judge, Obligation, RelayoutClaim, Report};

use super::batch;
use super::bitcast::{PairArgs, Request, judge, status};
use super::bitcast_slots::drop_empty_indices;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::Global;
use super::printer::Printer;
use crate::layouts;
use crate::report::{Dim, RelayoutReport};

/// Give the map from the slots of array A to the slots of array B that hold the same elements, proved
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Elements are the same if their logical indices are; if the shapes differ, if their row-major numbers \
                        are (a reshape). The map says nothing of slots that hold no element: the padding.\n\nExamples:\n  \
                        tilewright relayout 'f32[3,5]{1,0:T(2,2)}' 'f32[3,5]{1,0}'\n  tilewright relayout \
                        'bf16[?,?]{1,0:T(8,128)(2,1)}' 'bf16[?,?]{0,1}'     # for all extents d0, d1\n  tilewright \
                        relayout 'f32[3,5]{1,0}' 'f32[5,3]{1,0}' --transpose 1,0\n  tilewright \
                        relayout 'f32[4001,4003]{1,0}' '{1,0:T(8,128)}' --run in.npy out.npy\n  tilewright relayout NHWC \
                        NCHW4c --shape 2,10,7,9 --explain     # N, C, H, W\n  tilewright relayout 'lambda i, j: [i, j]' 'lambda i, \
                        j: [j, i]' --shape 37,155 --dtype int16 --run in.npy out.npy\n  tilewright relayout NHWC NCHW4c --shape n,c,h,w \
                        --explain     # a kernel for all extents\n\nWith --run, --explain or --shape the \
                        move itself is planned: its program is proved to do what both layouts say before anything is moved. \
                        Padding gets zeros."
)]
pub struct Args {
    #[command(flatten)]
    pair: PairArgs,
    /// A and B are index maps or names of formats on this logical shape, and not arrays
    #[arg(long, value_name = "16,64,64,128", conflicts_with_all = ["batch", "transpose"])]
    shape: Option<String>,
    /// The type of the elements of --shape
    #[arg(long, value_name = "TYPE", default_value = "float32", value_parser = read_dtype, requires = "shape")]
    dtype: DataType,
    /// Move the memory of A from one .npy file to another
    #[arg(long, num_args = 2, value_names = ["IN.npy", "OUT.npy"], conflicts_with = "batch")]
    run: Option<Vec<String>>,
    /// Print the program of the move and its kernel
    #[arg(long, conflicts_with = "batch")]
    explain: bool,
}

/// Prints the map from the slots of A to those of B.
///
/// # Errors
/// A text is not an array with a layout, or the arrays do not correspond.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let judge = judge(global)?;
    if let Some(file) = &args.pair.batch {
        let judge = judge.for_many_claims();
        return batch::run(file, printer, |request| answer(&Request::from_json(request)?, &judge));
    }
    let files = args.run.as_deref().and_then(|files| Some((files.first()?.as_str(), files.get(1)?.as_str())));
    let pair = sides::completed(&args.pair);
    if let Some(shape) = &args.shape {
        if let Some(sides) = symbolic::Sides::of_maps(&pair, shape, args.dtype)? {
            if files.is_some() {
                return Err(symbolic::refused_run(shape));
            }
            return symbolic::run(&sides, &judge, (global, printer), args.explain);
        }
        let sides = sides::of_maps(&pair, shape, args.dtype)?;
        return moved::run(&sides, files, &judge, (global, printer), args.explain);
    }
    let request = Request::from_args(&pair)?;
    if files.is_some() || args.explain {
        let (from, to) = request.arrays();
        refuse_other_sizes(from, to)?;
        return moved::run(&sides::of_arrays(&request)?, files, &judge, (global, printer), args.explain);
    }
    let report = answer(&request, &judge)?;
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&report.to_text(printer.style()))?;
    }
    Ok(status(&report.verdicts, report.summary(), global))
}

fn read_dtype(text: &str) -> Result<DataType, String> {
    text.parse().map_err(|_| "expected a type such as float32, int16 or uint8".to_owned())
}

/// Refuses arrays with different numbers of elements: a relayout is a bijection of elements. Symbolic shapes pass, and
/// the judge decides.
fn refuse_other_sizes(from: &ArrayShape, to: &ArrayShape) -> Result<(), Failure> {
    let extents = |array: &ArrayShape| array.dimensions().iter().map(|dim| dim.bound()).collect::<Option<Vec<u64>>>();
    let (Some(from), Some(to)) = (extents(from), extents(to)) else { return Ok(()) };
    let count = |extents: &[u64]| extents.iter().map(|&extent| u128::from(extent)).fold(1u128, u128::saturating_mul);
    if count(&from) == count(&to) {
        return Ok(());
    }
    let message = format!(
        "A has {} elements, {from:?}, and B has {}, {to:?}: a relayout needs the same elements in both",
        count(&from),
        count(&to)
    );
    Err(Failure::plain("<A and B>", "different-sizes", message)
        .with_help("give the logical shape of the same data twice; padding belongs to the layouts"))
}

/// The report. The map and the padding are printed only if they are proved.
fn answer(request: &Request, judge: &Judge) -> Result<RelayoutReport, Failure> {
    let (from, to) = request.arrays();
    refuse_other_sizes(from, to)?;
    let found = layouts::relayout(from, to, &request.pair)
        .map_err(|message| Failure::plain("<A and B>", "no-relayout", message))?;
    let judged = |map| {
        let claim = RelayoutClaim { pair: request.claim(), inverse: &found.inverse, map };
        let mut reports = judge.check_relayout(&claim);
        for report in &mut reports {
            drop_empty_indices(report, request);
        }
        reports
    };
    // The simplified map is not trusted: if it is not proved, the map that it was made from is tried.
    let proved = |reports: &[Report]| reports.iter().all(|report| report.verdict.is_proved());
    let simple = judged(&found.map);
    let (map, verdicts) =
        if proved(&simple) { (&found.map, simple) } else { (&found.unsimplified, judged(&found.unsimplified)) };
    let holds = |id: Obligation| verdicts.iter().any(|report| report.obligation == id && report.verdict.is_proved());
    Ok(RelayoutReport {
        schema: "tilewright.relayout/1",
        from: request.text_a(),
        to: request.text_b(),
        transpose: request.transpose.clone(),
        same_elements: request.pair.reindex.to_string(),
        from_slots: Dim::new(&found.from_slots),
        to_slots: Dim::new(&found.to_slots),
        map: holds(Obligation::Specification).then(|| map.to_string()),
        padding: holds(Obligation::Padding).then(|| InverseClaim::padding_lambda(&found.inverse)),
        premises: request.premises(),
        verdicts,
    })
}
