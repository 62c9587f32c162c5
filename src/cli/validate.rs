//! `tilewright validate`: proves that one function means what another one means, with its buffers moved; or each of several
//! files what the next one means.
//!
//! Nothing is known of the compiler that made the second function from the first. Parameters correspond by position,
//! other buffers by name; how a buffer's indices moved is given with `--map` or inferred: not at all if the shape is the
//! same, flattened row-major if the rank says so.

mod files;
mod maps;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tilewright_ir::{BufferClaim, PrimFunc, Span};
use tilewright_verify::{Judge, Place, Report, Side};

use self::files::{File, ImplicitBarriers, dumps, pairs, synchronize};
use self::maps::{MapOption, unpaired};
use super::certificate::CertificateOption;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::refuse_stdin_twice;
use super::options::{Assume, Global, Shapes, assume_failure, parse_seconds};
use super::printer::Printer;
use crate::pipeline::assume::{self, AssumeFault, Assumption};
use crate::pipeline::outcome::{StepOutcome, Summary};
use crate::pipeline::pair::{self, Given, GivenMap, Judged};
use crate::report::validate::{FilePair, FunctionPair, chain_json, chain_text};

/// Prove that a function made by any compiler means what the one before means
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "tilewright validate [OPTIONS] <BEFORE[::name]> <AFTER[::name]>...\n       \
                      tilewright validate [OPTIONS] --pipeline <DIR>",
    after_help = "Examples:\n  tilewright validate before.py after.py\n  tilewright validate before.py after.py \
                  --map 'A: lambda i, j: [j, i]' --map 'B: lambda i, j: [j, i]'\n  tilewright validate before.py \
                  after.py --assume 'n >= 0'\n  tilewright validate 0_input.py 1_tiled.py 2_unrolled.py\n  tilewright \
                  validate --pipeline dumps/ --map '2:A: lambda i, j: [j, i]'\n\nFunctions of the same name correspond; so do the only functions of \
                  both files."
)]
pub struct Args {
    /// The function before, the one after it, and so on, as TVMScript or TE: each is compared with the next one
    #[arg(value_name = "FILE[::name]", num_args = 2.., required_unless_present = "pipeline")]
    files: Vec<String>,
    /// Compare all `.py` files of a folder, each with the next one, in natural order: `2.py` before `10.py`
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pipeline: Option<PathBuf>,
    /// How the indices of a buffer moved; inferred where it is not given. Of several steps, `2:BUFFER: LAMBDA` is about the second
    #[arg(long = "map", value_name = "[STEP:]BUFFER: LAMBDA")]
    maps: Vec<String>,
    /// Sums, products, minima and maxima of floats may be taken in another order: a premise of the proof
    #[arg(long)]
    reassociate: bool,
    /// Programs without barriers leave them to TVM's `ThreadSync`, as those with blocks do: threads wait for each other after each
    /// statement on shared memory, which is a premise of the proof. `first`: only those of the first file
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    implicit_barriers: Option<ImplicitBarriers>,
    /// Seconds that the proof of one pair of functions may take; what is not proved until then is unknown
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds, allow_hyphen_values = true)]
    pair_timeout: Duration,
    #[command(flatten)]
    assume: Assume,
    #[command(flatten)]
    certificate: CertificateOption,
}

/// Compares the functions of each file with those of the next one.
///
/// # Errors
/// The input is bad, or functions or buffers cannot be paired.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let names = args.pipeline.as_deref().map_or_else(|| Ok(args.files.clone()), dumps)?;
    refuse_stdin_twice(names.iter().map(String::as_str))?;
    let maps = args.maps.iter().map(|map| maps::read(map)).collect::<Result<Vec<_>, _>>()?;
    maps::check_steps(&maps, names.len().saturating_sub(1))?;
    let mut files = names.iter().map(|name| File::read(name, printer)).collect::<Result<Vec<_>, _>>()?;
    synchronize(&mut files, args.implicit_barriers);
    let judge = args.certificate.judge(&super::pipeline_options(global, &Shapes::default(), None))?;
    let (mut steps, mut assumed) = (Vec::new(), None);
    for (position, (before, after)) in files.iter().zip(&files[1..]).enumerate() {
        let command = Command { args, maps: maps::of_step(&maps, position + 1), judge: &judge };
        let known = assumed.take().map_or_else(|| command.assumed_of(before, after), Ok)?;
        let step = command.step(before, after, &known, printer)?;
        if files.len() > 2 && !printer.is_json() {
            printer.result(&step.to_text(printer.style()))?;
        }
        steps.push(step);
        if position + 2 < files.len() {
            assumed = Some(carried(before, after, &known)?);
        }
    }
    write_certificate(&args.certificate, &steps)?;
    print(&steps, printer)?;
    if steps.iter().flat_map(reports).any(Report::is_internal) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_summary(Summary::worst(steps.iter().map(FilePair::summary)), global.allow_unknown))
}

/// What is assumed of each function of a file, by its name.
type Assumed = Vec<(String, Vec<Assumption>)>;

/// What is given for a step.
struct Command<'a> {
    args: &'a Args,
    maps: Vec<&'a MapOption>,
    judge: &'a Judge,
}

impl Command<'_> {
    /// Reads the conditions for the functions of the first file.
    fn assumed_of(&self, before: &File, after: &File) -> Result<Assumed, Failure> {
        let funcs: Vec<&PrimFunc> = pairs(before, after)?.into_iter().map(|(before, _)| before).collect();
        let assumed = assume::read(&self.args.assume.conditions, &funcs).map_err(refused)?;
        Ok(funcs.iter().map(|func| func.name.clone()).zip(assumed).collect())
    }

    /// Compares two files.
    fn step<'f>(
        &self,
        before: &'f File,
        after: &'f File,
        assumed: &Assumed,
        printer: &Printer,
    ) -> Result<FilePair<'f>, Failure> {
        let mut functions = Vec::new();
        for (func, other) in pairs(before, after)? {
            functions.push(self.judged((func, other), after, assumed_of(assumed, func), printer)?);
        }
        Ok(FilePair { before: &before.source, after: &after.source, functions })
    }

    /// Compares two functions.
    fn judged(
        &self,
        (before, other): (&PrimFunc, &PrimFunc),
        after: &File,
        assumed: &[Assumption],
        printer: &Printer,
    ) -> Result<FunctionPair, Failure> {
        let start = Instant::now();
        // The pairing is only a claim. If it is wrong, the proof of the simulation fails, and nothing false is accepted.
        let maps: Vec<GivenMap> = self.maps.iter().map(|option| option.map.clone()).collect();
        let given = Given { maps: &maps, assumed, reassociate: self.args.reassociate };
        let judge = self.judge.until(start + self.args.pair_timeout);
        let judged = pair::validate_given(before, other, given, &judge)
            .map_err(|faults| unpaired(faults, &self.maps, &after.source))?;
        let Judged { mut reports, premises, claims, loops, way, tried, validity, unpaired } = judged;
        if reports.iter().any(|report| !report.verdict.is_proved()) {
            printer.diagnostics(&after.source, &unpaired);
        }
        // The judge points to the layout that the file asks for, which is another map than the one given or inferred.
        let elsewhere: Vec<Span> = claims.iter().filter_map(|claim| layout_in_file(before, claim, &maps)).collect();
        let is_elsewhere = |place: Place| place.side == Side::Before && elsewhere.contains(&place.span);
        for report in &mut reports {
            report.place = report.place.filter(|place| !is_elsewhere(*place));
        }
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let step = StepOutcome { name: before.name.clone(), ms, reports, premises, blocked: None };
        Ok(FunctionPair { step, claims, loops, way, tried, validity })
    }
}

fn assumed_of<'a>(assumed: &'a Assumed, func: &PrimFunc) -> &'a [Assumption] {
    assumed.iter().find(|(name, _)| *name == func.name).map_or(&[], |(_, assumed)| assumed)
}

/// What is assumed of the functions of a file, in terms of those of the next one.
fn carried(before: &File, after: &File, assumed: &Assumed) -> Result<Assumed, Failure> {
    let carry = |(func, other): (&PrimFunc, &PrimFunc)| {
        (other.name.clone(), pair::carried(assumed_of(assumed, func), func, other))
    };
    Ok(pairs(before, after)?.into_iter().map(carry).collect())
}

fn refused(fault: AssumeFault) -> Failure {
    assume_failure(&fault.text, fault.faults)
}

/// Where the file asks for a layout of a buffer, or declares it, if the map of the claim is not from there.
fn layout_in_file(before: &PrimFunc, claim: &BufferClaim, maps: &[GivenMap]) -> Option<Span> {
    let is_given = maps.iter().any(|given| given.buffer == claim.before.name);
    let is_asked = before.attrs.layout_spans.iter().any(|(data, _)| *data == claim.before.data);
    if is_given || is_asked { before.layout_span(&claim.before) } else { None }
}

fn reports<'a>(step: &'a FilePair<'_>) -> impl Iterator<Item = &'a Report> {
    step.functions.iter().flat_map(|pair| &pair.step.reports)
}

fn write_certificate(certificate: &CertificateOption, steps: &[FilePair<'_>]) -> Result<(), Failure> {
    let entries = steps.iter().flat_map(|step| {
        step.functions.iter().flat_map(move |pair| {
            let within = format!("{}::{} {}", step.before.name, pair.step.name, step.after.name);
            pair.step.reports.iter().map(move |report| (within.clone(), report))
        })
    });
    certificate.write(&entries.collect::<Vec<_>>())
}

/// Prints the only step, or what is said of all steps together; as text, each of several steps was printed when it was done.
fn print(steps: &[FilePair<'_>], printer: &mut Printer) -> Result<(), Failure> {
    match steps {
        [only] if printer.is_json() => printer.json(&only.to_json()),
        [only] => printer.result(&only.to_text(printer.style())),
        several if printer.is_json() => printer.json(&chain_json(several)),
        several => printer.result(&chain_text(several, printer.style())),
    }
}
