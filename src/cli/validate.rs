//! `tilewright validate`: proves that one function means what another one means, with its buffers moved.
//!
//! Nothing is known of the compiler that made the second function from the first. Parameters correspond by position,
//! other buffers by name; how a buffer's indices moved is given with `--map` or inferred: not at all if the shape is the
//! same, flattened row-major if the rank says so.

use tilewright_ir::{BufferClaim, Diagnostic, PrimFunc, Span};
use tilewright_script::Source;
use tilewright_verify::{Place, Report, Side};

use super::certificate::CertificateOption;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::{Input, refuse_stdin_twice};
use super::options::{Global, Shapes};
use super::printer::Printer;
use crate::json::to_line;
use crate::pipeline;
use crate::pipeline::outcome::{StepOutcome, Summary};
use crate::pipeline::pair::{self, GivenMap, Judged, PairFault};
use crate::report::check::StepView;
use crate::report::obligation::Texts;
use crate::report::text;

/// Prove that a function made by any compiler means what the one before means
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright validate before.py after.py\n  tilewright validate before.py after.py \
                        --map 'A: lambda i, j: [j, i]' --map 'B: lambda i, j: [j, i]'\n\nFunctions of the same name \
                        correspond; so do the only functions of both files."
)]
pub struct Args {
    /// The function before, as TVMScript or TE
    #[arg(value_name = "BEFORE[::name]")]
    before: String,
    /// The function after, as TVMScript or TE
    #[arg(value_name = "AFTER[::name]")]
    after: String,
    /// How the indices of a buffer moved; inferred where it is not given
    #[arg(long = "map", value_name = "BUFFER: LAMBDA")]
    maps: Vec<String>,
    #[command(flatten)]
    certificate: CertificateOption,
}

/// Compares the functions of two files.
///
/// # Errors
/// The input is bad, or functions or buffers cannot be paired.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    refuse_stdin_twice([args.before.as_str(), args.after.as_str()])?;
    let (before, before_funcs) = read(&args.before, printer)?;
    let (after, after_funcs) = read(&args.after, printer)?;
    let maps = args.maps.iter().map(|map| given_map(map)).collect::<Result<Vec<_>, _>>()?;
    let options = super::pipeline_options(global, &Shapes::default(), None);
    let judge = args.certificate.judge(&options)?;
    let mut steps = Vec::new();
    for (before, after_func) in
        pairs(&before_funcs, &after_funcs).map_err(|fault| Failure::input(&after, vec![fault]))?
    {
        let start = std::time::Instant::now();
        // The pairing is only a claim. If it is wrong, the proof of the simulation fails, and nothing false is accepted.
        let Judged { mut reports, premises, claims } =
            pair::validate(before, after_func, &maps, &judge).map_err(|faults| unpaired(faults, &args.maps, &after))?;
        // The judge points to the layout that the file asks for, which is another map than the one given or inferred.
        let elsewhere: Vec<Span> = claims.iter().filter_map(|claim| layout_in_file(before, claim, &maps)).collect();
        let is_elsewhere = |place: Place| place.side == Side::Before && elsewhere.contains(&place.span);
        for report in &mut reports {
            report.place = report.place.filter(|place| !is_elsewhere(*place));
        }
        let ms = start.elapsed().as_secs_f64() * 1e3;
        steps.push(StepOutcome { name: before.name.clone(), ms, reports, premises, blocked: None });
    }
    let within = |step: &StepOutcome| format!("{}::{} {}", before.name, step.name, after.name);
    let entries = steps.iter().flat_map(|step| step.reports.iter().map(move |report| (within(step), report)));
    args.certificate.write(&entries.collect::<Vec<_>>())?;
    // A pair without obligations proves nothing, so it counts as skipped and not as proved.
    let empty = steps.iter().any(|step| step.reports.is_empty()).then_some(Summary::Skipped);
    let summary = Summary::worst(steps.iter().map(StepOutcome::summary).chain(empty));
    if printer.is_json() {
        let texts = Texts { before: Some(&before), after: Some(&after) };
        let document = serde_json::json!({
            "schema": "tilewright.validate/1", "before": before.name, "after": after.name, "verdict": summary,
            "functions": steps.iter().map(|step| StepView::new(step, texts)).collect::<Vec<_>>(),
        });
        printer.json(&to_line(&document))?;
    } else {
        printer.result(&text::validate(&before, &after, &steps, summary, printer.style()))?;
    }
    if steps.iter().flat_map(|step| &step.reports).any(Report::is_internal) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_summary(summary, global.allow_unknown))
}

/// Where the file asks for a layout of a buffer, or declares it, if the map of the claim is not from there.
fn layout_in_file(before: &PrimFunc, claim: &BufferClaim, maps: &[GivenMap]) -> Option<Span> {
    let is_given = maps.iter().any(|given| given.buffer == claim.before.name);
    let is_asked = before.attrs.layout_spans.iter().any(|(data, _)| *data == claim.before.data);
    if is_given || is_asked { before.layout_span(&claim.before) } else { None }
}

fn read(argument: &str, printer: &Printer) -> Result<(Source, Vec<PrimFunc>), Failure> {
    let Input { source, function } = Input::read(argument)?;
    let programs =
        pipeline::read(&source.text, function.as_deref()).map_err(|faults| Failure::input(&source, faults))?;
    printer.diagnostics(&source, &programs.warnings);
    Ok((source, programs.programs.into_iter().map(|program| program.func).collect()))
}

/// Pairs of functions that correspond: the only ones of both files, or those of the same name.
fn pairs<'a>(before: &'a [PrimFunc], after: &'a [PrimFunc]) -> Result<Vec<(&'a PrimFunc, &'a PrimFunc)>, Diagnostic> {
    if let ([only], [other]) = (before, after) {
        return Ok(vec![(only, other)]);
    }
    let names = |funcs: &[PrimFunc]| funcs.iter().map(|func| func.name.clone()).collect::<Vec<_>>().join(", ");
    let unpaired = || {
        let message = format!("the functions do not correspond: before {}, after {}", names(before), names(after));
        Diagnostic::error("unpaired-functions", None, message).with_help("pick one of each with FILE::name")
    };
    if before.len() != after.len() {
        return Err(unpaired());
    }
    let same = |func: &'a PrimFunc| after.iter().find(|other| other.name == func.name).map(|other| (func, other));
    before.iter().map(same).collect::<Option<Vec<_>>>().ok_or_else(unpaired)
}

/// The faults of the first `--map` that has any, or else of the file after.
fn unpaired(faults: Vec<PairFault>, maps: &[String], after: &Source) -> Failure {
    let first = faults.iter().find_map(|fault| match fault {
        PairFault::Map(position, _) => Some(*position),
        PairFault::After(_) => None,
    });
    let Some((first, text)) = first.and_then(|first| Some((first, maps.get(first)?))) else {
        return Failure::input(after, faults.into_iter().map(PairFault::diagnostic).collect());
    };
    let of_map = faults.into_iter().filter(|fault| matches!(fault, PairFault::Map(at, _) if *at == first));
    Failure::input(&map_source(text), of_map.map(|fault| in_option(fault.diagnostic(), text)).collect())
}

/// The text of an option `--map` as a source.
fn map_source(text: &str) -> Source {
    Source { name: "<--map>".into(), text: text.to_owned() }
}

/// A fault of the lambda, with its places moved to the whole text of the option. A fault without a place gets all of the
/// text.
fn in_option(mut fault: Diagnostic, text: &str) -> Diagnostic {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let lambda =
        text.split_once(':').map_or(0, |(buffer, rest)| buffer.len() + 1 + rest.len() - rest.trim_start().len());
    for label in &mut fault.labels {
        let (start, end) =
            (label.span.start.saturating_add(offset(lambda)), label.span.end.saturating_add(offset(lambda)));
        label.span = Span::new(start, end);
    }
    if fault.labels.is_empty() { fault.with_label(Span::new(0, offset(text.len())), "") } else { fault }
}

/// Reads an option such as `A: lambda i, j: [j, i]`.
fn given_map(text: &str) -> Result<GivenMap, Failure> {
    let source = map_source(text);
    let (buffer, map) = text.split_once(':').filter(|(buffer, _)| !buffer.contains("lambda")).ok_or_else(|| {
        let fault = Diagnostic::error("map-without-buffer", None, format!("`{text}` names no buffer"))
            .with_help("write it as 'A: lambda i, j: [j, i]'");
        Failure::input(&source, vec![in_option(fault, text)])
    })?;
    Ok(GivenMap { buffer: buffer.trim().to_owned(), text: map.trim().to_owned() })
}
