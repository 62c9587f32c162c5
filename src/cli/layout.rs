//! `tilewright layout`: reports everything that is known about an XLA tiled layout.
//!
//! ```text
//! F32[3,5]{1,0:T(2,2)} --at 2,3  ->  physical shape, padding, bytes, index map, inverse, positions, verdicts
//! ```

use tilewright_ir::layout::{ArrayShape, LayoutError, SymbolicTiling, TileDim};
use tilewright_ir::{Bindings, Diagnostic, Expr, IndexMap, InverseClaim, XlaShape};
use tilewright_script::{Source, print_xla_shape, read_xla_shape};
use tilewright_verify::{Judge, LayoutClaim, Obligation, Premise, Report};

use super::batch;
use super::certificate::CertificateOption;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::Global;
use super::point::Point;
use super::printer::Printer;
use crate::layouts;
use crate::report::layout::{LayoutReport, PositionRow, TileSize};
use crate::report::{Dim, layout_text};

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

/// One question about a layout.
struct Request {
    /// The text of the layout.
    source: Source,
    at: Vec<Point>,
    table: bool,
}

/// Prints the report on a layout.
///
/// # Errors
/// The text is not an array with a layout, an index does not fit, or a table would be too long.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
    let judge = args.certificate.judge(&options)?;
    if let Some(file) = &args.batch {
        let judge = judge.for_many_claims();
        return batch::run(file, printer, |request| Ok(answer(&from_json(request)?, &judge)?.0));
    }
    let source = match args.layout.as_deref() {
        Some("-") => Input::read("-")?.source,
        text => Source { name: "<layout>".into(), text: text.unwrap_or_default().to_owned() },
    };
    let point = |text: &String| Point::read(Source { name: "<--at>".into(), text: text.clone() });
    let at = args.at.iter().map(point).collect::<Result<Vec<_>, _>>()?;
    let request = Request { source, at, table: args.table };
    let (report, warning) = answer(&request, &judge)?;
    if let Some(warning) = warning {
        printer.diagnostics(&request.source, &[warning]);
    }
    // Before the report, so that a certificate that cannot be written does not follow a report that looks complete.
    args.certificate.write_reports(&report.verdicts)?;
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&layout_text::layout(&report, printer.style()))?;
    }
    if report.verdicts.iter().any(Report::is_internal) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_summary(report.summary(), global.allow_unknown))
}

/// The report, and a warning if the layout is unusual.
fn answer(request: &Request, judge: &Judge) -> Result<(LayoutReport, Option<Diagnostic>), Failure> {
    let fault = |fault: Diagnostic| Failure::input(&request.source, vec![fault]);
    let refused = |error: LayoutError| fault(plain(error));
    let internal = |error: LayoutError| Failure::Internal(error.to_string());
    let shape = read_xla_shape(&request.source.text).map_err(|faults| Failure::input(&request.source, faults))?;
    let array = array(&shape).map_err(fault)?;
    let formula = array.symbolic_tiling().map_err(refused)?;
    let maps = Maps {
        layout: array.layout_or_default(),
        tiled: formula.to_tiled_map().map_err(internal)?,
        flat: formula.to_flat_map().map_err(internal)?,
        formula,
    };
    let at = request.at.iter().map(|index| follow(index, array, &maps)).collect::<Result<Vec<_>, _>>()?;
    let table = || {
        if !request.table {
            return Ok(None);
        }
        array.tiling().and_then(|tiling| tiling.offsets()).map(Some)
    };
    let (offsets, judged) = rayon::join(table, || judged(judge, &maps));
    let report = report(&shape, array, &maps, offsets.map_err(refused)?, at, judged);
    Ok((report, narrow(array)))
}

/// A layout and its index maps.
struct Maps {
    /// The layout, or the default one of an array without.
    layout: tilewright_ir::layout::Layout,
    /// Sizes as expressions in the extents.
    formula: SymbolicTiling,
    /// The map from logical indices to indices of the tiled array.
    tiled: IndexMap,
    /// The map from logical indices to the position in memory.
    flat: IndexMap,
}

/// Reads a request of a batch: `{"layout":"f32[3,5]{1,0:T(2,2)}","at":[[2,3]],"table":true}`.
fn from_json(request: &batch::Request) -> Result<Request, Failure> {
    batch::only(request, &["layout", "at", "table"])?;
    let Some(text) = request.get("layout").and_then(|text| text.as_str()) else {
        return Err(Failure::plain("<batch>", "bad-request", "the request has no text `layout`")
            .with_help("such as {\"layout\":\"f32[3,5]{1,0:T(2,2)}\"}"));
    };
    let source = Source { name: "<layout>".into(), text: text.to_owned() };
    let point = |text: String| Point::read(Source { name: "<at>".into(), text });
    let at = batch::points(request, "at")?.into_iter().map(point).collect::<Result<_, _>>()?;
    Ok(Request { source, at, table: batch::flag(request, "table")? })
}

/// An error of a layout as a diagnostic without a place.
pub(super) fn plain(error: LayoutError) -> Diagnostic {
    Diagnostic::error(error.code, None, error.message).with_help(error.help)
}

/// The array of a shape; an error for tuples, tokens and opaque values, which have no layout.
pub(super) fn array(shape: &XlaShape) -> Result<&ArrayShape, Diagnostic> {
    let what = match shape {
        XlaShape::Array(array) => return Ok(array),
        XlaShape::Tuple(_) => "a tuple",
        XlaShape::Token => "a token",
        XlaShape::Opaque => "an opaque value",
    };
    let message = format!("{what} has no layout of its own");
    Err(Diagnostic::error("no-array", None, message).with_help("give one array, such as f32[3,5]{1,0:T(2,2)}"))
}

/// A warning if the layout gives an element fewer bits than values of its type need. XLA accepts such layouts.
fn narrow(array: &ArrayShape) -> Option<Diagnostic> {
    let bits = array.layout()?.element_bits;
    let (ty, needed) = (array.element_type(), array.element_type().value_bits());
    (bits != 0 && bits < needed).then(|| {
        let message = format!("E({bits}) leaves {bits} bits for an element, but {ty} has values of {needed}");
        Diagnostic::warning("element-bits", None, message)
    })
}

/// The verdicts on the layout, and its inverse if that and the padding were proved.
fn judged(judge: &Judge, maps: &Maps) -> (Vec<Report>, Option<InverseClaim>) {
    let inverse = layouts::inverse(&maps.layout, &maps.formula);
    let formula = &maps.formula;
    let claim =
        LayoutClaim::new(&maps.layout, &maps.tiled, formula.physical_shape(), &maps.flat, formula.physical_elements());
    let claim = inverse.as_ref().map_or(claim, |inverse| claim.inverse(inverse));
    let reports = judge.check_layout(&claim);
    let proved = |id: Obligation| reports.iter().any(|report| report.obligation == id && report.verdict.is_proved());
    let shown = proved(Obligation::Inverse) && proved(Obligation::Padding);
    (reports, inverse.filter(|_| shown))
}

fn report(
    shape: &XlaShape,
    array: &ArrayShape,
    maps: &Maps,
    offsets: Option<Vec<u64>>,
    at: Vec<PositionRow>,
    (verdicts, inverse): (Vec<Report>, Option<InverseClaim>),
) -> LayoutReport {
    let size = |dim: &TileDim| match dim {
        TileDim::Size(size) => TileSize::Size(*size),
        TileDim::Combine => TileSize::Combined("*"),
    };
    let formula = &maps.formula;
    let (elements, allocated) = (formula.elements(), formula.physical_elements());
    // Numbers are subtracted exactly; a symbolic difference is simplified, because the two formulas share most terms.
    let padding = match (elements.as_const_int(), allocated.as_const_int()) {
        (Some(elements), Some(allocated)) => i64::try_from(allocated - elements)
            .map_or_else(|_| Dim::Symbolic((allocated - elements).to_string()), Dim::Known),
        _ => {
            Dim::new(&crate::algebra::simplify(&(allocated.clone() - elements.clone()), &crate::algebra::Ranges::new()))
        }
    };
    let bits = element_bits(array);
    LayoutReport {
        schema: "tilewright.layout/1",
        text: print_xla_shape(shape),
        element_type: array.element_type().name(),
        shape: Dim::shape(formula.domain()),
        minor_to_major: maps.layout.minor_to_major.clone(),
        tiles: maps.layout.tiles.iter().map(|tile| tile.0.iter().map(size).collect()).collect(),
        physical_shape: Dim::shape(formula.physical_shape()),
        elements: Dim::new(elements),
        physical_elements: Dim::new(allocated),
        padding_elements: padding,
        element_bits: bits,
        bytes: Dim::new(&formula.bytes(bits)),
        metadata_prefix_bytes: maps.layout.metadata_prefix_bytes,
        index_map: maps.flat.to_string(),
        inverse: inverse.as_ref().map(InverseClaim::lambda),
        padding: inverse.as_ref().map(InverseClaim::padding_lambda),
        offsets,
        at,
        premises: premises(formula).iter().map(ToString::to_string).collect(),
        verdicts,
    }
}

/// What the verdicts on a layout take for granted of its symbolic extents.
fn premises(formula: &SymbolicTiling) -> Vec<Premise> {
    let symbols = formula.domain().iter().flat_map(Expr::vars).collect();
    let shapes = [("the array", formula.domain()), ("its memory", formula.physical_shape())];
    Premise::of_shapes(symbols, &shapes)
}

/// Bits from one element to the next: those of the layout, or of the type if the layout has none.
fn element_bits(array: &ArrayShape) -> u64 {
    match array.layout().map_or(0, |layout| layout.element_bits) {
        0 => array.element_type().storage_bits(),
        bits => bits,
    }
}

/// Where an element lies, as far as that does not depend on a symbolic extent.
fn follow(point: &Point, array: &ArrayShape, maps: &Maps) -> Result<PositionRow, Failure> {
    point.check_rank(array.dimensions().len(), "the array")?;
    let index = &point.index;
    let mut logical = Vec::new();
    for (axis, (at, dimension)) in index.iter().zip(array.dimensions()).enumerate() {
        // An unbounded dimension has no largest index, so that only negative ones are refused.
        let extent = dimension.bound();
        match u64::try_from(*at) {
            Ok(at) if extent.is_none_or(|extent| at < extent) => logical.push(at),
            _ => {
                let range = extent.map_or_else(|| "0 or more".to_owned(), |extent| format!("in 0..{extent}"));
                return Err(point.outside(axis, "the array", &range));
            }
        }
    }
    let values = |map: &IndexMap| {
        let values = map.eval(index, &Bindings::new()).ok()?;
        values.into_iter().map(|value| u64::try_from(value).ok()).collect::<Option<Vec<u64>>>()
    };
    let flat = values(&maps.flat).and_then(|flat| flat.first().copied());
    // 128 bits, because the position in bits may exceed 64 although the position in elements does not.
    let bits = flat.map(|flat| u128::from(flat) * u128::from(element_bits(array)));
    let (byte, bit) = (bits.map(|bits| bits / 8), bits.map(|bits| bits % 8));
    Ok(PositionRow { logical, physical: values(&maps.tiled), flat, byte, bit })
}
