//! `tilewright map`: what is known about an index map.

use tilewright_ir::{AxisSeparators, Bindings, Diagnostic, Expr, IndexMap, ScalarType, Span, Var};
use tilewright_script::{Symbols, read_index_map, read_shape};
use tilewright_verify::{Judge, MapClaim};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::Global;
use super::printer::Printer;
use crate::algebra;
use crate::report::{AtRow, Dim, MapReport, ObligationRow, Source, text};

/// Say everything about an index map: physical shape, separators, inverse, padding, proofs
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tilewright map 'lambda n, h, w, c: [n, c//4, h, w, c%4]' --shape 16,64,64,128 \
                        --at 11,37,23,101\n  tilewright map 'lambda i, j: [2*i + j]' --shape 3,4     # refuted: exit \
                        code 1\n  tilewright map 'lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]' --shape \
                        n,64,64,c")]
pub struct Args {
    /// The map as a Python lambda; `-` reads it from standard input
    #[arg(value_name = "MAP")]
    map: String,
    /// The logical shape: numbers, or names for symbolic extents
    #[arg(long, value_name = "16,64,64,128", required = true, allow_hyphen_values = true)]
    shape: String,
    /// A logical index to follow; may be given many times
    #[arg(long, value_name = "11,37,23,101", allow_hyphen_values = true)]
    at: Vec<String>,
}

/// Prints what is known.
///
/// # Errors
/// A map, a shape or an index that cannot be read or does not fit.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let map = read(args)?;
    let points = args.at.iter().map(|text| read_point(text, &map)).collect::<Result<Vec<_>, _>>()?;
    let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
    let judge = Judge::new(options.judge_config()).map_err(|error| Failure::Internal(error.to_string()))?;
    let physical = physical_shape(&map)?;
    size_fits(&physical.extents)
        .map_err(|fault| Failure::input(&Source { name: "<map>".into(), text: String::new() }, vec![fault]))?;
    let claim = MapClaim::new(&map, &physical.extents).padded(&physical.padded_axes);
    let verdicts: Vec<ObligationRow> = judge.check_map(claim).into_iter().map(ObligationRow::from).collect();
    let at = points.iter().map(|point| follow(point, &map, &physical.extents)).collect::<Result<Vec<_>, _>>()?;
    let (inverse, padding) = inverse(&map, &physical.extents);
    let report = MapReport {
        schema: "tilewright.map/1",
        map: map.to_string(),
        shape: Dim::shape(map.domain()),
        physical_shape: Dim::shape(&physical.extents),
        axis_separators: map.axis_separators().positions().to_vec(),
        flat_shape: Dim::shape(&flat_shape(map.axis_separators(), &physical.extents)),
        at,
        inverse,
        padding,
        verdicts,
    };
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&text::map(&report, printer.style()))?;
    }
    if report.verdicts.iter().any(ObligationRow::is_internal) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_verdict(report.verdict(), global.allow_unknown))
}

/// The map on its shape. Names that are neither indices nor extents of the shape are mistakes.
fn read(args: &Args) -> Result<IndexMap, Failure> {
    let shape_text = Source { name: "<--shape>".into(), text: args.shape.clone() };
    let map_text = if args.map == "-" {
        Input::read("-")?.source
    } else {
        Source { name: "<map>".into(), text: args.map.clone() }
    };
    let mut symbols = Symbols::default();
    let shape = read_shape(&shape_text.text, &mut symbols).map_err(|faults| Failure::input(&shape_text, faults))?;
    let n_extents = symbols.vars().len();
    let map = read_index_map(&map_text.text, Some(&shape), &mut symbols);
    let map = map.map_err(|faults| Failure::input(&map_text, faults))?;
    let unknown = symbols.vars().get(n_extents..).unwrap_or_default();
    let fault = |var: &Var| {
        Diagnostic::error(
            "unknown-name",
            None,
            format!("`{var}` is neither an index of the map nor an extent of the shape"),
        )
        .with_help("indices are the lambda's parameters; extents are named in --shape")
    };
    let fault = |var: &Var| at_all(fault(var), &map_text.text);
    if !unknown.is_empty() {
        return Err(Failure::input(&map_text, unknown.iter().map(fault).collect()));
    }
    size_fits(&shape).map_err(|fault| Failure::input(&shape_text, vec![fault]))?;
    Ok(map)
}

/// A fault without a place, at the whole text.
fn at_all(mut fault: Diagnostic, text: &str) -> Diagnostic {
    if let (true, Ok(end)) = (fault.labels.is_empty(), u32::try_from(text.len())) {
        fault = fault.with_label(Span::new(0, end), "");
    }
    fault
}

/// A constant shape has at most 2^63 - 1 elements.
fn size_fits(shape: &[Expr]) -> Result<(), Diagnostic> {
    let extents: Option<Vec<i128>> = shape.iter().map(Expr::as_const_int).collect();
    let size = extents.map_or(Ok(0), |extents| tilewright_ir::checked_size(&extents));
    size.map(drop).map_err(|error| Diagnostic::error("shape-size", None, format!("the shape is too large: {error}")))
}

fn read_point(text: &str, map: &IndexMap) -> Result<Vec<i128>, Failure> {
    let source = Source { name: "<--at>".into(), text: text.to_owned() };
    let fault =
        |code, message: String| Failure::input(&source, vec![at_all(Diagnostic::error(code, None, message), text)]);
    let read = |part: &str| {
        part.trim().parse::<i128>().map_err(|_| fault("bad-index", format!("`{}` is no integer", part.trim())))
    };
    let inner = text.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
    let parts: Vec<&str> = if inner.trim().is_empty() { Vec::new() } else { inner.split(',').collect() };
    let point = parts.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if point.len() != map.domain().len() {
        let message = format!("`{text}` has {} indices, the shape has {} axes", point.len(), map.domain().len());
        return Err(fault("index-rank", message));
    }
    for (axis, (index, extent)) in point.iter().zip(map.domain()).enumerate() {
        let too_large = extent.as_const_int().is_some_and(|extent| *index >= extent);
        if *index < 0 || too_large {
            let message = format!("index {index} of axis {axis} is outside the shape: it has to be in 0..{extent}");
            return Err(fault("index-out-of-shape", message));
        }
    }
    Ok(point)
}

/// The algebra's physical shape. Where it has none because an index is negative, the shape of the others: the judge
/// then refutes the bounds, with the index.
fn physical_shape(map: &IndexMap) -> Result<algebra::PhysicalShape, Failure> {
    algebra::physical_shape(map, &[]).or_else(|fault| {
        let source = Source { name: "<map>".into(), text: map.to_string() };
        algebra::physical_shape_above_zero(map, &[])
            .map_err(|_| Failure::input(&source, vec![at_all(fault, &source.text)]))
    })
}

/// One extent a separator group: the product of its extents.
fn flat_shape(separators: &AxisSeparators, physical: &[Expr]) -> Vec<Expr> {
    let symbols = physical.iter().flat_map(Expr::vars);
    let ranges = symbols.fold(algebra::Ranges::new(), |ranges, symbol| ranges.with_symbol(&symbol));
    let product = |group: &[Expr]| {
        let known: Option<Vec<i128>> = group.iter().map(Expr::as_const_int).collect();
        let size = known.and_then(|known| known.into_iter().try_fold(1i128, i128::checked_mul));
        if let Some(size) = size.and_then(|size| i64::try_from(size).ok()) {
            return Expr::int(size);
        }
        algebra::n_elements(group, &ranges, ScalarType::Int32)
    };
    separators.groups().into_iter().map(|group| product(&physical[group])).collect()
}

fn follow(point: &[i128], map: &IndexMap, extents: &[Expr]) -> Result<AtRow, Failure> {
    let physical = map.eval(point, &Bindings::new()).map_err(|error| {
        Failure::plain("<--at>", "no-value", format!("the map has no value at {point:?}: {error}"))
            .with_help("give numbers instead of names in --shape to follow an index")
    })?;
    let numeral = |group: std::ops::Range<usize>| {
        group.clone().try_fold(0i128, |high, axis| {
            // The extent of a group's first axis does not matter.
            let extent = if axis == group.start { 1 } else { extents[axis].as_const_int()? };
            high.checked_mul(extent)?.checked_add(physical[axis])
        })
    };
    let flat = map.axis_separators().groups().into_iter().map(numeral).collect();
    Ok(AtRow { logical: point.to_vec(), physical, flat })
}

/// Inverse and padding as lambdas over the physical indices, if the algebra finds them.
fn inverse(map: &IndexMap, physical: &[Expr]) -> (Option<String>, Option<String>) {
    algebra::inverse(map, physical, &[])
        .map_or((None, None), |found| (Some(found.lambda()), Some(found.padding_lambda())))
}
