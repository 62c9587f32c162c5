//! `tilewright compile`: writes kernels, host metadata, the program after every step, and the certificate.
//!
//! Nothing is written unless every step is proved (or undecided, and that is allowed). The files are collected in
//! memory, written to a folder beside the output, and renamed into place: a compilation leaves either all of its files
//! or none.

mod network;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tilewright_ir::{Diagnostic, Module};
use tilewright_script::{Dialect, print_module_in};
use tilewright_verify::{Judge, Report};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::{DialectOption, Global, Limits};
use super::passes::PassOptions;
use super::printer::Printer;
use crate::certificate;
use crate::codegen::{Generated, Kernels};
use crate::files::write_folder;
use crate::json::to_line;
use crate::pipeline::limits::explained;
use crate::pipeline::outcome::{CheckOutcome, FunctionOutcome, Summary};
use crate::pipeline::{self, Lowering};
use crate::report::lines::folded;
use crate::report::{FileReport, text};

/// Lower, prove and write the OpenCL kernels with what a host needs to run them
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  tilewright compile examples/addone.py -o build/addone\n  tilewright compile examples/models/tiny.onnx -o build/tiny\n  tilewright compile examples/graphs/block.json --kernels examples/graphs/block.py -o build/block\n\nFor each function NAME \
                        the folder gets NAME.cl (kernels), NAME.json (host metadata: tilewright.kernels/1) and \
                        NAME.0-lower.py, NAME.1-..., the program after each step as TVMScript; report.json \
                        (tilewright.check/1); and certificate/, the proof as SMT-LIB 2 files with their \
                        manifest.json, for `tilewright recheck`. Nothing is written unless every step is proved, or undecided and \
                        allowed with --allow-unknown.\n\nOf a model (a file with the suffix .onnx) and of a graph with its kernels, the folder gets what a host without \
                        Tilewright needs to run it: NAME.cl, weights.bin, plan.txt, and host.c, which is built with `cc -std=c99 DIR/host.c \
                        -lOpenCL`; and manifest.json (tilewright.network/1), graph.json and report.json (tilewright.plan/1). Textures are planned for \
                        --target, or up to --limits."
)]
pub struct Args {
    /// A TVMScript or TE program; FILE::name picks one function, `-` is standard input. Or a model: a file with the suffix
    /// `.onnx`. Or a graph: a file with the suffix `.json`
    #[arg(value_name = "FILE[::name]|MODEL.onnx|GRAPH.json")]
    file: String,
    /// The folder to make; it may not exist yet, or has to be empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    dialect: DialectOption,
    #[command(flatten)]
    passes: PassOptions,
    #[command(flatten)]
    limits: Limits,
    /// Kernels that test every place in a texture before they access it and report the first that is outside
    #[arg(long)]
    checked: bool,
    #[command(flatten)]
    network: network::NetworkArgs,
}

/// The folder of the certificate, in the output folder.
const CERTIFICATE: &str = "certificate/";

/// The document of `--format json`: schema `tilewright.compile/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    verdict: Summary,
    directory: String,
    files: Vec<&'a str>,
}

/// A file to be written: its path in the output folder, and its content.
struct Output {
    name: String,
    contents: Vec<u8>,
}

impl Output {
    fn text(name: String, text: String) -> Self {
        Self { name, contents: text.into_bytes() }
    }
}

/// Lowers, proves and writes: the whole output folder, or nothing.
///
/// # Errors
/// Bad input, an output folder that is not empty, or a disk that cannot be written.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    refuse_used(&args.output)?;
    if network::is_network(&args.file) {
        return network::run(args, global, printer);
    }
    args.network.refuse(&args.file)?;
    let passes = args.passes.pipeline()?.unwrap_or_default();
    let input = Input::read(&args.file)?;
    let fault = |diagnostics| Failure::input(&input.source, diagnostics);
    let mut programs = pipeline::read(&input.source.text, input.function.as_deref()).map_err(fault)?;
    printer.diagnostics(&input.source, &programs.warnings);
    let options = super::pipeline_options(global, &super::options::Shapes::default(), input.function.clone());
    let internal = |error: &dyn std::fmt::Display| Failure::Internal(error.to_string());
    let judge = Judge::new(options.judge_config(), tilewright_search::strategies())
        .map_err(|error| internal(&error))?
        .recording();
    let mut outcome = CheckOutcome::new(options.setting(super::solver()?));
    let mut outputs = Vec::new();
    let mut worst = Summary::Proved;
    for program in &mut programs.programs {
        let limits = pipeline::limits::set(program, args.limits.limits, &options.device, &options.host);
        let lowering = pipeline::lower_by(program, &passes, (&judge, global.allow_unknown), &mut |_, _| ());
        let lowering =
            lowering.map_err(|fault| super::pipeline_failure(&input.source, explained(limits.as_ref(), fault)))?;
        worst = worst.max(lowering.summary());
        // Kernels are generated from the last program, which a lowering that stopped early does not have. Its summary
        // keeps everything from being written below.
        if let Some(kernels) = &lowering.kernels {
            let kernels = kernels.as_ref().map_err(|found| fault(found.clone()))?;
            let form = form(kernels, args.checked);
            outputs.extend(files(&program.func.name, &lowering, form, args.dialect.dialect).map_err(fault)?);
        }
        printer.diagnostics(&input.source, &lowering.notes);
        let mut function = FunctionOutcome::of_lowering(&program.func.name, &lowering);
        function.texture_limits = limits;
        outcome.functions.push(function);
    }
    let report = FileReport { source: &input.source, outcome: &outcome };
    let status = if outcome.reports().any(Report::is_internal) {
        ExitStatus::Internal
    } else {
        ExitStatus::of_summary(worst, global.allow_unknown)
    };
    if status != ExitStatus::Success {
        printer.message(&text::check(&report, printer.style_of_messages()));
        let said = format!("nothing was written to {}: not every step is proved", args.output.display());
        printer.message(&folded(&said, printer.style_of_messages()));
        return Ok(status);
    }
    // The report stays in `outcome`, so the certificate covers exactly the obligations that report.json lists.
    let proofs = certificate::files(&super::certificate::entries(&input.source.name, &outcome).collect::<Vec<_>>());
    let proofs = proofs.map_err(|error| internal(&error))?;
    outputs.extend(proofs.into_iter().map(|(name, text)| Output::text(format!("{CERTIFICATE}{name}"), text)));
    outputs.push(Output::text("report.json".into(), report.to_json() + "\n"));
    write(&args.output, &outputs)?;
    say(args, worst, &input.source.name, &outputs, printer)?;
    Ok(status)
}

/// Says which files were written.
fn say(args: &Args, verdict: Summary, file: &str, outputs: &[Output], printer: &mut Printer) -> Result<(), Failure> {
    let directory = args.output.display().to_string();
    if printer.is_json() {
        let names = outputs.iter().map(|output| output.name.as_str()).collect();
        let document = Document { schema: "tilewright.compile/1", file, verdict, directory, files: names };
        return printer.json(&to_line(&document));
    }
    let certificate = outputs.iter().filter(|output| output.name.starts_with(CERTIFICATE)).count();
    if certificate > 0 {
        printer.result(&format!("{directory}/{CERTIFICATE} ({certificate} files)\n"))?;
    }
    for output in outputs.iter().filter(|output| !output.name.starts_with(CERTIFICATE)) {
        printer.result(&format!("{directory}/{}\n", output.name))?;
    }
    Ok(())
}

/// The form of the kernels to write: that without tests of places in textures, unless the other one is wanted and there is
/// one. `check` runs both.
fn form(kernels: &Kernels, is_checked: bool) -> &Generated {
    kernels.checked().filter(|_| is_checked).unwrap_or_else(|| kernels.plain())
}

/// The files of one function: kernels, host metadata, and the program after each step. Characters of the function's name
/// that are not alphanumeric are replaced by `_` in file names.
fn files(
    function: &str,
    lowering: &Lowering,
    generated: &Generated,
    dialect: Dialect,
) -> Result<Vec<Output>, Vec<Diagnostic>> {
    let stem: String = function.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let mut outputs = vec![
        Output::text(format!("{stem}.{}", generated.target.file_suffix), generated.source.clone()),
        Output::text(format!("{stem}.json"), to_line(&generated.metadata) + "\n"),
    ];
    for (position, stage) in lowering.stages.iter().enumerate() {
        let text = print_module_in(&Module { funcs: vec![stage.func.clone()] }, dialect)?;
        outputs.push(Output::text(format!("{stem}.{position}-{}.py", stage.name), text));
    }
    Ok(outputs)
}

/// Refuses an output folder that is not empty, and a path that is not a folder.
fn refuse_used(folder: &Path) -> Result<(), Failure> {
    let refused = |said: &str| {
        let name = folder.display().to_string();
        Err(Failure::plain(name.clone(), "output-exists", format!("{name} {said}"))
            .with_help("name a folder that does not exist yet, or remove it first"))
    };
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| refused("is not empty")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => refused("is no folder"),
        Err(error) => refused(&format!("cannot be looked into: {error}")),
    }
}

/// Writes all files, or none of them.
fn write(folder: &Path, outputs: &[Output]) -> Result<(), Failure> {
    let files: Vec<(String, &[u8])> =
        outputs.iter().map(|output| (output.name.clone(), output.contents.as_slice())).collect();
    write_folder(folder, &files, &[]).map_err(|error| {
        let folder = folder.display().to_string();
        Failure::plain(folder.clone(), "cannot-write", format!("cannot write {folder}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(name: &str) -> Output {
        Output::text(name.into(), "x".into())
    }

    #[test]
    fn all_files_are_there_or_none() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/er/out");
        write(&folder, &[output("a.cl"), output("a.json")]).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        assert!(refuse_used(&folder).is_err());
        let broken = root.path().join("broken");
        // A name with a folder that does not exist cannot be written, after the first file was.
        assert!(write(&broken, &[output("a.cl"), output("no/such/b.cl")]).is_err());
        assert!(!broken.exists());
        let left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["deep"]);
    }

    #[test]
    fn only_what_does_not_exist_or_is_empty_is_taken() {
        let root = tempfile::tempdir().unwrap();
        assert!(refuse_used(root.path()).is_ok());
        assert!(refuse_used(&root.path().join("new")).is_ok());
        let file = root.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(refuse_used(&file).is_err());
        assert!(refuse_used(root.path()).is_err());
        write(&root.path().join("new"), &[output("a")]).unwrap();
    }
}
