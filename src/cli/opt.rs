//! `tilewright opt`: runs the named passes and prints TVMScript. Nothing is proved without `--prove-each`.

mod steps;

use tilewright_ir::Module;
use tilewright_script::print_module_in;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::{DialectOption, Global, Limits};
use super::passes::{PassOptions, presets};
use super::printer::Printer;
use crate::json::to_line;
use crate::passes::{PASSES, Pipeline};
use crate::pipeline::{self, Program};
use crate::report::lines::hanging;
use crate::report::text::Style;
use steps::{Applied, applied, proved};

/// Below this many columns the list of passes has the summaries on lines of their own.
const NARROW: usize = 60;

/// Run the named passes and print TVMScript
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright opt --list\n  tilewright opt -p apply_buffer_transforms,flatten_buffer \
                        examples/nhwc_to_nchwc.tvm.py\n  tilewright opt -p flatten_buffer - < program.py\n  tilewright opt \
                        --prove-each -p UnrollLoop,Simplify program.py\n  tilewright opt --dialect 0.27 program.py\n\nA TE \
                        program is lowered first; without -p that is all. Nothing is proved here unless --prove-each is \
                        given: see check and validate. The names that TVM has for passes are taken as well."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    #[command(flatten)]
    passes: PassOptions,
    /// List the passes and the presets
    #[arg(long)]
    list: bool,
    /// Print the program after each pass, on standard error
    #[arg(long)]
    print_after_all: bool,
    /// Prove the program and each step before the next pass runs; if one is not proved, no program is printed and the exit code is
    /// that of check
    #[arg(long)]
    prove_each: bool,
    /// Print the time that each pass takes, on standard error; with --prove-each its proofs are included
    #[arg(long)]
    time: bool,
    #[command(flatten)]
    dialect: DialectOption,
    #[command(flatten)]
    limits: Limits,
    /// A TVMScript or TE program; FILE::name picks one function, `-` is standard input
    #[arg(value_name = "FILE[::name]", required_unless_present = "list")]
    file: Option<String>,
}

/// Prints the program after the passes, or the list of passes.
///
/// # Errors
/// A pass is unknown or refuses the program, or the input is bad.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let Some(file) = args.file.as_ref().filter(|_| !args.list) else {
        return list(printer);
    };
    let pipeline = args.passes.pipeline()?.unwrap_or_else(|| Pipeline::Passes(Vec::new()));
    let input = Input::read(file)?;
    let fault = |diagnostics| Failure::input(&input.source, diagnostics);
    let mut programs = pipeline::read(&input.source.text, input.function.as_deref()).map_err(fault)?;
    printer.diagnostics(&input.source, &programs.warnings);
    programs.programs.iter_mut().for_each(|program| set_limits(program, args.limits));
    let mut done: Vec<Applied> = Vec::new();
    if args.prove_each {
        let options = super::pipeline_options(global, &super::options::Shapes::default(), None);
        let judge = options.judge().map_err(|error| Failure::Internal(error.to_string()))?;
        for program in &programs.programs {
            done.push(proved(program, &pipeline, (&judge, global.allow_unknown), &input.source)?);
        }
    } else {
        for program in &programs.programs {
            done.push(applied(program, &pipeline, &input.source)?);
        }
    }
    for applied in &done {
        printer.diagnostics(&input.source, &applied.notes);
        let said = applied.messages(args, &input.source, printer.style_of_messages());
        printer.message(&said);
    }
    let status = done.iter().map(|applied| applied.status(global.allow_unknown)).max().unwrap_or(ExitStatus::Success);
    let module = Module { funcs: done.iter().map(|applied| applied.last.clone()).collect() };
    // What is not proved is not printed.
    let script = (status == ExitStatus::Success).then(|| print_module_in(&module, args.dialect.dialect));
    print(&done, args, script.transpose().map_err(fault)?, printer)?;
    Ok(status)
}

/// Limits matter only to functions with textures, and those in the program win over the option.
fn set_limits(program: &mut Program, limits: Limits) {
    for func in std::iter::once(&mut program.func).chain(program.scheduled.iter_mut().map(|step| &mut step.func)) {
        if func.buffers().iter().any(|buffer| buffer.scope.is_texture()) {
            func.attrs.texture_limits = func.attrs.texture_limits.or(limits.limits);
        }
    }
}

/// Prints the text of the functions, or a document of schema `tilewright.opt/1`.
fn print(done: &[Applied], args: &Args, script: Option<String>, printer: &mut Printer) -> Result<(), Failure> {
    if printer.is_json() {
        let functions: Vec<&str> = done.iter().map(|applied| applied.last.name.as_str()).collect();
        let mut document = serde_json::json!({"schema": "tilewright.opt/1", "functions": functions, "script": script});
        let is_wanted = args.print_after_all || args.prove_each || args.time;
        let rows = done.iter().flat_map(|applied| applied.rows(args)).collect::<Vec<_>>();
        if let (true, Some(fields)) = (is_wanted, document.as_object_mut()) {
            fields.insert("steps".into(), rows.into());
        }
        return printer.json(&to_line(&document));
    }
    script.map_or(Ok(()), |script| printer.result(&script))
}

/// Prints the names and summaries of the passes and of the presets.
fn list(printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let passes = || PASSES.iter().map(|pass| (pass.name, pass.summary));
    if printer.is_json() {
        let row = |(name, summary)| serde_json::json!({"name": name, "summary": summary});
        let (passes, presets): (Vec<_>, Vec<_>) = (passes().map(row).collect(), presets().map(row).collect());
        let document = serde_json::json!({"schema": "tilewright.passes/1", "passes": passes, "presets": presets});
        printer.json(&to_line(&document))?;
    } else {
        let (mut text, style) = (String::new(), printer.style());
        passes().for_each(|row| entry(&mut text, row, style));
        text.push_str("\nPresets of --pipeline:\n");
        presets().for_each(|row| entry(&mut text, row, style));
        printer.result(&text)?;
    }
    Ok(ExitStatus::Success)
}

/// A name with its summary.
fn entry(text: &mut String, (name, summary): (&str, &str), style: Style) {
    if style.width >= NARROW {
        hanging(text, &format!("{name:<26} "), summary, 27, style);
    } else {
        hanging(text, "", name, 0, style);
        hanging(text, "    ", summary, 4, style);
    }
}
