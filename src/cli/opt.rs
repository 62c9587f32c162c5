//! `tilewright opt`: runs the named passes and prints TVMScript. Nothing is proved.

use tilewright_ir::{Diagnostic, Module, PrimFunc};
use tilewright_script::{Source, print_module_in};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::{DialectOption, Global, Limits};
use super::printer::Printer;
use crate::json::to_line;
use crate::passes::{PASSES, Pass, pass_by_name};
use crate::pipeline;
use crate::report::lines::hanging;

/// Below this many columns the list of passes has the summaries on lines of their own.
const NARROW: usize = 60;

/// Run the named passes and print TVMScript
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright opt --list\n  tilewright opt -p apply_buffer_transforms,flatten_buffer \
                        examples/nhwc_to_nchwc.tvm.py\n  tilewright opt -p flatten_buffer - < program.py\n  tilewright opt \
                        --dialect 0.27 program.py\n\nA TE \
                        program is lowered first; without -p that is all. Nothing is proved here: see check and \
                        validate."
)]
pub struct Args {
    /// Passes in the order in which they run, separated by commas; tile_layout=A:{1,0:T(8,128)} asks for a layout
    #[arg(short, long = "passes", value_name = "PASS")]
    passes: Vec<String>,
    /// List the passes
    #[arg(long)]
    list: bool,
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
pub fn run(args: &Args, _: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let Some(file) = args.file.as_ref().filter(|_| !args.list) else {
        return list(printer);
    };
    let passes = args.passes.iter().flat_map(|list| entries(list)).map(find).collect::<Result<Vec<_>, _>>()?;
    let input = Input::read(file)?;
    let fault = |diagnostics| Failure::input(&input.source, diagnostics);
    let programs = pipeline::read(&input.source.text, input.function.as_deref()).map_err(fault)?;
    printer.diagnostics(&input.source, &programs.warnings);
    let mut module = Module::default();
    for program in programs.programs {
        let mut func = program.scheduled_func().clone();
        // Limits matter only to functions with textures, and those in the program win over the option.
        if func.buffers().iter().any(|buffer| buffer.scope.is_texture()) {
            func.attrs.texture_limits = func.attrs.texture_limits.or(args.limits.limits);
        }
        for (pass, request) in &passes {
            if let Some(text) = request {
                ask(pass, &mut func, text)?;
            }
            let rewritten = (pass.run)(&func).map_err(fault)?;
            printer.diagnostics(&input.source, &rewritten.notes);
            func = rewritten.func;
        }
        module.funcs.push(func);
    }
    let script = print_module_in(&module, args.dialect.dialect).map_err(fault)?;
    print(&module, &script, printer)?;
    Ok(ExitStatus::Success)
}

/// Prints a module as TVMScript, or in a document of schema `tilewright.opt/1`.
fn print(module: &Module, script: &str, printer: &mut Printer) -> Result<(), Failure> {
    if printer.is_json() {
        let functions: Vec<&str> = module.funcs.iter().map(|func: &PrimFunc| func.name.as_str()).collect();
        let document = serde_json::json!({"schema": "tilewright.opt/1", "functions": functions, "script": script});
        return printer.json(&to_line(&document));
    }
    printer.result(script)
}

/// Prints the names and summaries of the passes.
fn list(printer: &mut Printer) -> Result<ExitStatus, Failure> {
    if printer.is_json() {
        let rows = PASSES.iter().map(|pass| serde_json::json!({"name": pass.name, "summary": pass.summary}));
        let rows: Vec<_> = rows.collect();
        printer.json(&to_line(&serde_json::json!({"schema": "tilewright.passes/1", "passes": rows})))?;
    } else {
        let (mut text, style) = (String::new(), printer.style());
        for pass in PASSES {
            if style.width >= NARROW {
                hanging(&mut text, &format!("{:<26} ", pass.name), pass.summary, 27, style);
            } else {
                hanging(&mut text, "", pass.name, 0, style);
                hanging(&mut text, "    ", pass.summary, 4, style);
            }
        }
        printer.result(&text)?;
    }
    Ok(ExitStatus::Success)
}

/// The entries of a list, separated by commas outside of brackets: `a,b=A:{1,0:T(8,128)}` has the entries `a` and
/// `b=A:{1,0:T(8,128)}`.
fn entries(list: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let is_comma = |c: char| {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(is_comma).collect()
}

/// The pass that an entry names, and its request: the text after `=`.
fn find(entry: &str) -> Result<(&'static Pass, Option<&str>), Failure> {
    let source = Source { name: "<arguments>".into(), text: String::new() };
    let (name, request) = entry.split_once('=').map_or((entry, None), |(name, text)| (name, Some(text)));
    let pass = pass_by_name(name).map_err(|fault| Failure::input(&source, vec![fault]))?;
    Ok((pass, request))
}

/// Adds a request to a function as an attribute for the pass; fails if the pass takes none.
fn ask(pass: &Pass, func: &mut PrimFunc, text: &str) -> Result<(), Failure> {
    let source = Source { name: "<--passes>".into(), text: text.to_owned() };
    let fault = |fault: Diagnostic| Failure::input(&source, vec![fault]);
    let Some(request) = pass.request else {
        let message = format!("`{}` takes no `=`", pass.name);
        return Err(fault(Diagnostic::error("pass-argument", None, message).with_help("name the pass alone")));
    };
    request(func, text).map_err(fault)
}
