//! `tilewright draw`: the picture of a map or a layout, as text or SVG.
//!
//! `place` evaluates the map at every index of the shape and finds padding and collisions; `tiles` finds the levels of
//! tiles; `report::draw_svg` and `report::draw_text` draw the result.

mod place;
mod tiles;
mod whole;

use std::path::PathBuf;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{ArrayShape, Bindings, Diagnostic, Expr, IndexMap, Span, XlaShape};
use tilewright_script::{Source, read_xla_shape};
use tilewright_verify::{Judge, MapClaim, Obligation, Verdict};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::map::{Question, Texts, physical_shape};
use super::options::Global;
use super::output::{self, OutputFile};
use super::printer::Printer;
use crate::report::palette::PictureStyle;
use crate::report::{draw_svg, draw_text};
use place::Subject;

/// Draw where a map or a layout puts each element: tiles, order in memory, padding, what collides
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  tilewright draw 'f32[4,8]{1,0:T(2,4)(2,1)}' -o layout.svg
  tilewright draw 'lambda n, h, w, c: [n, c//4, h, w, c%4]' --shape 1,2,3,7 -o nchw4c.svg
  tilewright draw 'F32[3,5]{1,0:T(2,2)}'          # as text
  tilewright draw 'lambda i, j: [2*i + j]' --shape 3,4   # marks what collides; exit code 1

A picture has at most 65536 elements. Of a larger array a part is drawn, and whether all of it is right is proved: \
exit code 1 if it is not, 3 if that is not decided, unless --allow-unknown is given.")]
pub struct Args {
    /// An index map as a Python lambda or a format such as NCHW4c, or a shape with its layout as XLA writes it; `-` reads it
    /// from standard input
    #[arg(value_name = "MAP-or-LAYOUT")]
    subject: String,
    /// The logical shape of a map: numbers; names if the map is wrong, for then a counterexample is drawn
    #[arg(long, value_name = "1,2,3,7", allow_hyphen_values = true)]
    shape: Option<String>,
    /// The physical shape of a map, which may be larger than needed
    #[arg(long, value_name = "1,2,2,3,4", allow_hyphen_values = true)]
    physical_shape: Option<String>,
    /// Write an SVG picture to this file; without it the picture is text, on standard output
    #[arg(long, short, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Colours of the SVG picture
    #[arg(long, value_enum, default_value_t)]
    style: PictureStyle,
}

/// Draws a map or a layout.
///
/// # Errors
/// The text cannot be read, has no places in memory, or is too large for a picture; a file cannot be written.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let output = args.output.as_deref().map(|path| OutputFile { option: "-o", path, suffix: Some("svg") });
    output::refuse_clashes(&[], output.as_slice())?;
    let source = match args.subject.as_str() {
        "-" => Input::read("-")?.source,
        text => Source { name: "<argument>".into(), text: text.to_owned() },
    };
    let subject = if is_map(&source.text, args) { map(args, &source, global)? } else { layout(args, &source)? };
    let mut report = place::place(&subject).map_err(|fault| at_whole_text(&source, fault))?;
    // Of a picture that shows everything, its own counterexample is the best: it is the first.
    if report.cut.is_some() || report.counterexample.is_none() {
        whole::judge(&subject, &judge(global)?, &mut report)?;
    }
    if let Some(path) = &args.output {
        output::write(path, &draw_svg::draw(&report, args.style))?;
    }
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else if args.output.is_none() {
        printer.result(&draw_text::draw(&report, printer.style()))?;
    }
    Ok(match &report.cut {
        _ if report.counterexample.is_some() => ExitStatus::Refuted,
        Some(cut) if cut.verdict == "unknown" && !global.allow_unknown => ExitStatus::Undecided,
        _ => ExitStatus::Success,
    })
}

fn judge(global: &Global) -> Result<Judge, Failure> {
    let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
    Judge::new(options.judge_config(), tilewright_search::strategies())
        .map_err(|error| Failure::Internal(error.to_string()))
}

/// A map is a lambda, also one in a call, `T.index_map(lambda ...)`, or the name of a format on a shape. No layout has that
/// word, and every layout has the brackets of its shape.
fn is_map(text: &str, args: &Args) -> bool {
    text.contains("lambda") || args.shape.is_some() && !text.contains('[')
}

/// A fault at its place, or else at the whole text.
fn at_whole_text(source: &Source, mut fault: Diagnostic) -> Failure {
    if let (true, Ok(end)) = (fault.labels.is_empty(), u32::try_from(source.text.len())) {
        fault = fault.with_label(Span::new(0, end), "");
    }
    Failure::input(source, vec![fault])
}

/// Reads a map on its shape as a subject. A symbolic shape is drawn only if the map is wrong, at a counterexample.
fn map(args: &Args, source: &Source, global: &Global) -> Result<Subject, Failure> {
    let named = |name: &str, text: &String| Source { name: format!("<--{name}>"), text: text.clone() };
    let Some(shape) = &args.shape else {
        let fault = Diagnostic::error("missing-shape", None, "a map is drawn on a shape, and none is given");
        return Err(at_whole_text(source, fault.with_help("such as --shape 3,5")));
    };
    let question = Question::read(Texts {
        map: source.clone(),
        shape: named("shape", shape),
        at: Vec::new(),
        inverse: None,
        padding: None,
        assume: Vec::new(),
        physical_shape: args.physical_shape.as_ref().map(|text| named("physical-shape", text)),
        spec: None,
        predicate: None,
        parts: false,
        inner: None,
    })?;
    let (physical, _) = physical_shape(&question)?;
    // Places are enumerated, so the extents have to be numbers from here on.
    let (map, extents, text) = constant(question.map(), &physical, global)?;
    let levels = tiles::of_map(&map);
    let extents: Option<Vec<i128>> = extents.iter().map(Expr::as_const_int).collect();
    let Some(extents) = extents else {
        let fault = Diagnostic::error("symbolic-shape", None, "a symbolic shape cannot be drawn unless it is wrong");
        return Err(at_whole_text(source, fault.with_help("give numbers instead of names in --shape")));
    };
    Ok(Subject { text, map, extents, tail: 0, levels })
}

/// The map, its physical shape and a caption, with numbers for extents. A symbolic map is taken at the extents that
/// refute it; it is returned as it is if nothing refutes it.
fn constant(map: &IndexMap, physical: &[Expr], global: &Global) -> Result<(IndexMap, Vec<Expr>, String), Failure> {
    let symbolic = map.domain().iter().chain(physical).any(|extent| extent.as_const_int().is_none());
    let unchanged = (map.clone(), physical.to_vec(), map.to_string());
    if !symbolic {
        return Ok(unchanged);
    }
    let reports = judge(global)?.check_map(MapClaim::new(map, physical));
    let refuted = reports.into_iter().find_map(|report| match report.verdict {
        Verdict::Refuted(found) if report.obligation != Obligation::Tight => Some(found.shape),
        _ => None,
    });
    let Some(shape) = refuted else { return Ok(unchanged) };
    let symbols: Vec<_> = map.domain().iter().chain(physical).chain(map.outputs()).flat_map(Expr::vars).collect();
    let value =
        |symbol: &tilewright_ir::Var| shape.iter().find(|(name, _)| name == symbol.name()).map(|(_, value)| *value);
    let bound = symbols.iter().filter_map(|symbol| Some((symbol, value(symbol)?)));
    let bindings: Bindings = bound.clone().map(|(symbol, value)| (symbol.clone(), value)).collect();
    let mut numbers = Substitution::default();
    for (symbol, value) in bound {
        numbers.insert(symbol, Expr::Int { value, ty: symbol.dtype().scalar });
    }
    let evaluated = |extents: &[Expr]| -> Option<Vec<Expr>> {
        let extent = |extent: &Expr| Expr::int_of(extent.eval_index(&bindings).ok()?, extent.dtype().scalar);
        extents.iter().map(extent).collect()
    };
    let (Some(domain), Some(extents)) = (evaluated(map.domain()), evaluated(physical)) else { return Ok(unchanged) };
    let outputs = map.outputs().iter().map(|output| numbers.apply(output)).collect();
    let separators = map.axis_separators().positions().to_vec();
    let at: Vec<_> = shape.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    match IndexMap::new(map.vars().to_vec(), domain, outputs, separators) {
        Ok(constant) => Ok((constant, extents, format!("{map} at {}", at.join(", ")))),
        Err(error) => Err(Failure::Internal(error.to_string())),
    }
}

/// Reads an XLA layout as a subject.
fn layout(args: &Args, source: &Source) -> Result<Subject, Failure> {
    if args.shape.is_some() || args.physical_shape.is_some() {
        let fault = Diagnostic::error("two-shapes", None, "the layout has its shape in it, and --shape is given, too");
        return Err(at_whole_text(source, fault.with_help("leave --shape out; a map begins with `lambda`")));
    }
    if !source.text.contains(['[', '(']) {
        let fault = Diagnostic::error("neither", None, "this is neither a map nor a layout");
        return Err(at_whole_text(
            source,
            fault.with_help(
                "a map is `lambda i, j: [j, i]`, or NCHW4c with --shape; a layout is `f32[3,5]{1,0:T(2,2)}`",
            ),
        ));
    }
    let shape = read_xla_shape(&source.text).map_err(|faults| Failure::input(source, faults))?;
    let XlaShape::Array(array) = &shape else {
        let fault = Diagnostic::error("no-array", None, "only an array has places in memory");
        return Err(at_whole_text(source, fault.with_help("give one array, such as f32[3,5]{1,0:T(2,2)}")));
    };
    subject_of(array, tilewright_script::print_xla_shape(&shape)).map_err(|fault| at_whole_text(source, fault))
}

/// The subject of an array: its tiled map, and as many slots after the last tile as the layout allocates.
fn subject_of(array: &ArrayShape, text: String) -> Result<Subject, Diagnostic> {
    let plain = |error: tilewright_ir::layout::LayoutError| {
        Diagnostic::error(error.code, None, error.message).with_help(error.help)
    };
    let tiling = array.tiling().map_err(plain)?;
    let map = tiling.to_tiled_map().map_err(|error| Diagnostic::error("layout", None, error.to_string()))?;
    let levels = tiles::of_layout(array, &map).map_err(plain)?;
    let extents: Vec<i128> = tiling.physical_shape().iter().map(|&extent| extent.into()).collect();
    let slots: u64 = tiling.physical_shape().iter().product();
    Ok(Subject { text, map, extents, tail: tiling.physical_elements().saturating_sub(slots), levels })
}
