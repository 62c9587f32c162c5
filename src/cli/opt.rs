//! `tilewright opt`: runs the named passes and prints TVMScript.

use tilewright_ir::{Module, PrimFunc};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::Global;
use super::printer::Printer;
use crate::passes::{PASSES, Pass, pass_by_name};
use crate::pipeline;
use crate::report::Source;
use crate::report::check::to_line;

/// Run the named passes and print TVMScript
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright opt --list\n  tilewright opt -p apply_buffer_transforms,flatten_buffer \
                        examples/nhwc_to_nchwc.tvm.py\n  tilewright opt -p flatten_buffer - < program.py\n\nA TE \
                        program is lowered first; without -p that is all. Nothing is proved here: see check and \
                        validate."
)]
pub struct Args {
    /// Passes in the order in which they run
    #[arg(short, long = "passes", value_name = "PASS", value_delimiter = ',')]
    passes: Vec<String>,
    /// List the passes
    #[arg(long)]
    list: bool,
    /// A TVMScript or TE program; FILE::name picks one function, `-` is standard input
    #[arg(value_name = "FILE[::name]", required_unless_present = "list")]
    file: Option<String>,
}

/// Prints the program after the passes, or the list of passes.
///
/// # Errors
/// Unknown passes, bad input, a pass that refuses the program.
pub fn run(args: &Args, _: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let Some(file) = args.file.as_ref().filter(|_| !args.list) else {
        return list(printer);
    };
    let passes = args.passes.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    let input = Input::read(file)?;
    let fault = |diagnostics| Failure::input(&input.source, diagnostics);
    let programs = pipeline::read(&input.source.text, input.function.as_deref()).map_err(fault)?;
    printer.diagnostics(&input.source, &programs.warnings);
    let mut module = Module::default();
    for program in programs.programs {
        let after = passes.iter().try_fold(program.func, |func, pass| (pass.run)(&func).map(|after| after.func));
        module.funcs.push(after.map_err(fault)?);
    }
    print(&module, printer)?;
    Ok(ExitStatus::Success)
}

fn print(module: &Module, printer: &mut Printer) -> Result<(), Failure> {
    let script = tilewright_script::print_module(module);
    if printer.is_json() {
        let functions: Vec<&str> = module.funcs.iter().map(|func: &PrimFunc| func.name.as_str()).collect();
        let document = serde_json::json!({"schema": "tilewright.opt/1", "functions": functions, "script": script});
        return printer.json(&to_line(&document));
    }
    printer.result(&script)
}

fn list(printer: &mut Printer) -> Result<ExitStatus, Failure> {
    if printer.is_json() {
        let rows = PASSES.iter().map(|pass| serde_json::json!({"name": pass.name, "summary": pass.summary}));
        let rows: Vec<_> = rows.collect();
        printer.json(&to_line(&serde_json::json!({"schema": "tilewright.passes/1", "passes": rows})))?;
    } else {
        for pass in PASSES {
            printer.result(&format!("{:<26} {}\n", pass.name, pass.summary))?;
        }
    }
    Ok(ExitStatus::Success)
}

fn find(name: &str) -> Result<&'static Pass, Failure> {
    let source = Source { name: "<arguments>".into(), text: String::new() };
    pass_by_name(name).map_err(|fault| Failure::input(&source, vec![fault]))
}
