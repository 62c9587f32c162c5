//! How a text becomes programs: TVMScript, TVMScript with schedules on blocks, or TE.

use tilewright_ir::phases::{grouped, plain_arrays, synchronized, unified};
use tilewright_ir::{BLOCK, Buffer, Diagnostic, Module, PrimFunc, validate};

use super::{Program, Programs, own_memory, scheduled};
use crate::block_schedule::reduced_in_order;
use crate::passes::thread_sync;
use crate::te;

/// Reads the functions of a text. Functions in TVMScript are taken as they are; TE programs are lowered.
///
/// # Errors
/// All problems of the text; `no-function` if it has no function, or none with the given name.
pub fn read(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    if let Some(fault) = tilewright_script::foreign::diagnose(text).or_else(|| empty(text)) {
        return Err(vec![fault]);
    }
    let mut read = if tilewright_script::is_scheduled(text) {
        scheduled::read(text, function)?
    } else if tilewright_script::is_tvmscript(text) {
        read_tvmscript(text, function)?
    } else {
        read_te(text, function)?
    };
    for program in &mut read.programs {
        if thread_sync::is_wanted(&program.func) {
            synchronize(program);
        }
    }
    let faults = read.programs.iter().filter_map(|program| validate(&program.func).err()).flatten();
    let faults: Vec<Diagnostic> = faults.collect();
    read.warnings.extend(read.programs.iter().flat_map(|program| separators_beside_layouts(&program.func)));
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

/// Takes a program for the one whose threads wait for each other after each statement on shared memory, because `thread_sync` is to find out
/// which barriers it needs. A schedule on blocks stays as it is.
pub(super) fn synchronize(program: &mut Program) {
    if program.scheduled.is_empty() {
        program.func = synchronized(&program.func);
    }
}

/// Returns the error for a text of blank lines and comments only; `None` for any other text.
fn empty(text: &str) -> Option<Diagnostic> {
    let is_empty = text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'));
    is_empty.then(|| {
        Diagnostic::error("no-function", None, "the program is empty").with_help(
            "write TVMScript, a function with `@T.prim_func`, or TE: `te.placeholder`, `te.compute` and \
             `te.create_schedule`",
        )
    })
}

/// Returns a note for each buffer that has both axis separators of its own and a layout map. RFC 39's text counts separators
/// from the last axis of a group, but every release of TVM counts the axes in front.
fn separators_beside_layouts(func: &PrimFunc) -> Vec<Diagnostic> {
    let note = |buffer: &Buffer| {
        let (_, maps) = func.attrs.layout_transform_map.iter().find(|(data, _)| *data == buffer.data)?;
        let last = maps.last()?;
        let positions = buffer.axis_separators.positions();
        if positions.is_empty() || !last.axis_separators().is_empty() {
            return None;
        }
        let message =
            format!("the axis separators {positions:?} of `{buffer}` count from the front of the new layout, `{last}`");
        let counted: Vec<usize> = positions.iter().map(|at| at - 1).collect();
        let help = format!(
            "a separator is the number of axes in front of it, as in every release of TVM; the text of RFC 39 writes \
             {counted:?} for the same place"
        );
        Some(Diagnostic::warning("axis-separators", buffer.span, message).with_help(help))
    };
    func.buffers().iter().filter_map(note).collect()
}

/// Returns the functions with the given name, or all functions if no name is given.
pub(super) fn select(programs: Vec<Program>, function: Option<&str>) -> Result<Vec<Program>, Diagnostic> {
    let names: Vec<String> = programs.iter().map(|program| program.func.name.clone()).collect();
    let named = |program: &Program| function.is_none_or(|name| program.func.name == name);
    let selected: Vec<Program> = programs.into_iter().filter(named).collect();
    if selected.is_empty() { Err(no_function(function, &names)) } else { Ok(selected) }
}

/// The error for a text without the wanted function.
fn no_function(wanted: Option<&str>, names: &[String]) -> Diagnostic {
    match wanted {
        Some(name) if !names.is_empty() => {
            Diagnostic::error("no-function", None, format!("there is no function `{name}` in the file"))
                .with_help(format!("it has {}", names.join(", ")))
        }
        _ => Diagnostic::error("no-function", None, "the file holds no function, so there is nothing to check")
            .with_help("write a function with @T.prim_func, or a TE program with te.create_schedule"),
    }
}

/// Reads the functions of a TVMScript text. Shared memory belongs to a group, wherever the text allocates it, a thread has one index on
/// each axis, and threads that count a reduced axis of a block combine their values.
fn read_tvmscript(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    let module: Module = tilewright_script::read_module(text)?;
    let programs = module
        .funcs
        .into_iter()
        .map(|func| Program {
            func: grouped(&unified(&reduced_in_order(&plain_arrays(&func)))),
            definition: None,
            written: None,
            assumed: Vec::new(),
            scheduled: Vec::new(),
        })
        .collect();
    let programs = select(programs, function).map_err(|fault| vec![fault])?;
    let without_blocks = programs.iter().filter(|program| !program.func.body.has_attribute(BLOCK));
    let faults: Vec<Diagnostic> = without_blocks.flat_map(|program| own_memory::refused(&program.func)).collect();
    if faults.is_empty() { Ok(Programs { programs, warnings: Vec::new() }) } else { Err(faults) }
}

/// Reads the functions that a TE text lowers. If `function` names a Python function of the text, that function is called;
/// otherwise it selects one of the lowered functions.
fn read_te(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    let tree = tilewright_script::te::read(text)?;
    match te::evaluate(&tree, function) {
        Ok(lowered) => Ok(from_te(lowered)),
        Err(faults) if function.is_some() => {
            let all = te::evaluate(&tree, None).map_err(|_| faults.clone())?;
            let Programs { programs, warnings } = from_te(all);
            let programs = select(programs, function).map_err(|_| faults)?;
            Ok(Programs { programs, warnings })
        }
        Err(faults) => Err(faults),
    }
}

/// Converts the functions that the TE evaluator lowered to programs.
fn from_te(lowered: Vec<te::Lowered>) -> Programs {
    let mut read = Programs { programs: Vec::new(), warnings: Vec::new() };
    for lowered in lowered {
        read.warnings.extend(lowered.warnings.into_iter().chain(lowered.notes));
        let definition = Some((lowered.definition, lowered.evidence));
        read.programs.push(Program {
            func: lowered.func,
            definition,
            written: lowered.written,
            assumed: Vec::new(),
            scheduled: Vec::new(),
        });
    }
    read
}
