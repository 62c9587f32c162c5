//! `tilewright layout`: what is known about an XLA tiled layout.

use tilewright_ir::layout::{ArrayShape, TileDim, Tiling};
use tilewright_ir::{Diagnostic, Expr, IndexMap, XlaShape};
use tilewright_script::{print_xla_shape, read_xla_shape};
use tilewright_verify::{Judge, MapClaim};

use super::batch;
use super::certificate::CertificateOption;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::Global;
use super::printer::Printer;
use crate::report::layout::{LayoutReport, PositionRow, TileSize};
use crate::report::{ObligationRow, Source, layout_text};

/// Say everything about an XLA tiled layout: physical size, padding, positions, proofs
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright layout 'F32[3,5]{1,0:T(2,2)}' --at 2,3     # at 17\n  tilewright layout \
                        'bf16[1000,1000]{1,0:T(8,128)(2,1)}' --table --format json\n  tilewright layout \
                        'f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}'"
)]
pub struct Args {
    /// The shape with its layout as XLA writes it; `-` reads it from standard input
    #[arg(value_name = "LAYOUT", required_unless_present = "batch")]
    layout: Option<String>,
    /// A logical index to follow; may be given many times
    #[arg(long, value_name = "2,3", allow_hyphen_values = true)]
    at: Vec<String>,
    /// List the position of every element, in row-major order of the logical indices
    #[arg(long)]
    table: bool,
    #[command(flatten)]
    certificate: CertificateOption,
    /// Answer many requests, one JSON object a line, such as {"layout":"f32[3,5]{1,0:T(2,2)}","at":[[2,3]],"table":true};
    /// `-` reads them from standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layout", "at", "table", "certificate"])]
    batch: Option<String>,
}

/// What is asked of one layout.
struct Request {
    source: Source,
    at: Vec<Vec<i128>>,
    table: bool,
}

/// Prints what is known.
///
/// # Errors
/// A text that is no array's layout, an index that does not fit, a table that is too long.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
    let judge = args.certificate.judge(&options)?;
    if let Some(file) = &args.batch {
        return batch::run(file, printer, |request| Ok(answer(&from_json(request)?, &judge)?.0));
    }
    let source = match args.layout.as_deref() {
        Some("-") => Input::read("-")?.source,
        text => Source { name: "<layout>".into(), text: text.unwrap_or_default().to_owned() },
    };
    let at = args.at.iter().map(|text| read_point(text)).collect::<Result<Vec<_>, _>>()?;
    let request = Request { source, at, table: args.table };
    let (report, warning) = answer(&request, &judge)?;
    if let Some(warning) = warning {
        printer.diagnostics(&request.source, &[warning]);
    }
    args.certificate.write_rows(&report.verdicts)?;
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&layout_text::layout(&report, printer.style()))?;
    }
    if report.verdicts.iter().any(ObligationRow::is_internal) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_verdict(report.verdict(), global.allow_unknown))
}

/// The report, and what should be known besides.
fn answer(request: &Request, judge: &Judge) -> Result<(LayoutReport, Option<Diagnostic>), Failure> {
    let fault = |fault: Diagnostic| Failure::input(&request.source, vec![fault]);
    let shape = read_xla_shape(&request.source.text).map_err(|faults| Failure::input(&request.source, faults))?;
    let array = array(&shape).map_err(fault)?;
    let tiling = array.tiling().map_err(|error| fault(plain(error)))?;
    let at = request.at.iter().map(|index| follow(index, &tiling)).collect::<Result<Vec<_>, _>>()?;
    let offsets = if request.table { Some(tiling.offsets().map_err(|error| fault(plain(error)))?) } else { None };
    let map = tiling.to_flat_map().map_err(|error| Failure::Internal(error.to_string()))?;
    let report = report(&shape, array, &tiling, &map, offsets, at, judged(judge, &tiling, &map));
    Ok((report, narrow(array)))
}

fn from_json(request: &batch::Request) -> Result<Request, Failure> {
    batch::only(request, &["layout", "at", "table"])?;
    let Some(text) = request.get("layout").and_then(|text| text.as_str()) else {
        return Err(Failure::plain("<batch>", "bad-request", "the request has no text `layout`")
            .with_help("such as {\"layout\":\"f32[3,5]{1,0:T(2,2)}\"}"));
    };
    let source = Source { name: "<batch>".into(), text: text.to_owned() };
    Ok(Request { source, at: batch::points(request, "at")?, table: batch::flag(request, "table")? })
}

fn plain(error: tilewright_ir::layout::LayoutError) -> Diagnostic {
    Diagnostic::error(error.code, None, error.message).with_help(error.help)
}

fn array(shape: &XlaShape) -> Result<&ArrayShape, Diagnostic> {
    let what = match shape {
        XlaShape::Array(array) => return Ok(array),
        XlaShape::Tuple(_) => "a tuple",
        XlaShape::Token => "a token",
        XlaShape::Opaque => "an opaque value",
    };
    let message = format!("{what} has no layout of its own");
    Err(Diagnostic::error("no-array", None, message).with_help("give one array, such as f32[3,5]{1,0:T(2,2)}"))
}

/// XLA takes element bits that the type's values do not fit in.
fn narrow(array: &ArrayShape) -> Option<Diagnostic> {
    let bits = array.layout()?.element_bits;
    let (ty, needed) = (array.element_type(), array.element_type().value_bits());
    (bits != 0 && bits < needed).then(|| {
        let message = format!("E({bits}) leaves {bits} bits for an element, but {ty} has values of {needed}");
        Diagnostic::warning("element-bits", None, message)
    })
}

/// The obligations of the map from logical indices to positions in the allocation.
fn judged(judge: &Judge, tiling: &Tiling, map: &IndexMap) -> Vec<ObligationRow> {
    let extent = i64::try_from(tiling.physical_elements()).unwrap_or(i64::MAX);
    let shape = [Expr::int(extent)];
    // What is allocated beyond the last element is the padding that the tiles and the alignment ask for.
    let padded: &[usize] = if tiling.padding_elements() > 0 { &[0] } else { &[] };
    judge.check_map(MapClaim::new(map, &shape).padded(padded)).into_iter().map(ObligationRow::from).collect()
}

fn report(
    shape: &XlaShape,
    array: &ArrayShape,
    tiling: &Tiling,
    map: &IndexMap,
    offsets: Option<Vec<u64>>,
    at: Vec<PositionRow>,
    verdicts: Vec<ObligationRow>,
) -> LayoutReport {
    let layout = array.layout_or_default();
    let size = |dim: &TileDim| match dim {
        TileDim::Size(size) => TileSize::Size(*size),
        TileDim::Combine => TileSize::Combined("*"),
    };
    LayoutReport {
        schema: "tilewright.layout/1",
        text: print_xla_shape(shape),
        element_type: array.element_type().name(),
        shape: tiling.shape().to_vec(),
        minor_to_major: layout.minor_to_major,
        tiles: layout.tiles.iter().map(|tile| tile.0.iter().map(size).collect()).collect(),
        physical_shape: tiling.physical_shape().to_vec(),
        elements: tiling.elements(),
        physical_elements: tiling.physical_elements(),
        padding_elements: tiling.padding_elements(),
        element_bits: tiling.element_bits(),
        bytes: tiling.bytes(),
        metadata_prefix_bytes: layout.metadata_prefix_bytes,
        index_map: map.to_string(),
        offsets,
        at,
        verdicts,
    }
}

/// Reads `2,3`.
fn read_point(text: &str) -> Result<Vec<i128>, Failure> {
    let source = Source { name: "<--at>".into(), text: text.to_owned() };
    let inner = text.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
    let parts: Vec<&str> = if inner.trim().is_empty() { Vec::new() } else { inner.split(',').collect() };
    let number = |part: &str| {
        let fault = || Diagnostic::error("bad-index", None, format!("`{}` is no integer", part.trim()));
        part.trim().parse::<i128>().map_err(|_| Failure::input(&source, vec![fault()]))
    };
    parts.into_iter().map(number).collect()
}

/// Where an element lies.
fn follow(index: &[i128], tiling: &Tiling) -> Result<PositionRow, Failure> {
    let fault = |code, message: String| Failure::plain("<--at>", code, message);
    let rank = tiling.shape().len();
    if index.len() != rank {
        let message = format!("{index:?} has {} indices, the array has {rank} dimensions", index.len());
        return Err(fault("index-rank", message));
    }
    let mut logical = Vec::new();
    for (axis, (at, extent)) in index.iter().zip(tiling.shape()).enumerate() {
        match u64::try_from(*at) {
            Ok(at) if at < *extent => logical.push(at),
            _ => {
                let message =
                    format!("index {at} of dimension {axis} is outside the array: it has to be in 0..{extent}");
                return Err(fault("index-out-of-shape", message));
            }
        }
    }
    let found = tiling.physical_index(&logical).zip(tiling.linear_index(&logical));
    let Some((physical, flat)) = found else {
        return Err(Failure::Internal(format!("{logical:?} has no position")));
    };
    let (byte, bit) = tiling.bit_offset(flat);
    Ok(PositionRow { logical, physical, flat, byte, bit })
}
