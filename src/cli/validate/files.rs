//! The files of `tilewright validate`: their names, their functions, and which functions correspond.

use std::fs;
use std::path::{Path, PathBuf};

use tilewright_ir::phases::{has_barriers, n_implicit_barriers, synchronized};
use tilewright_ir::{Diagnostic, PrimFunc};
use tilewright_script::Source;

use super::super::failure::Failure;
use super::super::input::Input;
use super::super::printer::Printer;
use crate::pipeline;

/// A text and its functions.
pub(super) struct File {
    pub(super) source: Source,
    pub(super) funcs: Vec<PrimFunc>,
}

impl File {
    /// Reads `FILE` or `FILE::name`, and prints warnings about it.
    pub(super) fn read(argument: &str, printer: &Printer) -> Result<Self, Failure> {
        let Input { source, function } = Input::read(argument)?;
        let programs =
            pipeline::read(&source.text, function.as_deref()).map_err(|faults| Failure::input(&source, faults))?;
        printer.diagnostics(&source, &programs.warnings);
        Ok(Self { source, funcs: programs.programs.iter().map(|program| program.scheduled_func().clone()).collect() })
    }
}

/// Which files leave the barriers of their programs to a pass of TVM that has not run yet.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImplicitBarriers {
    /// All files
    All,
    /// The first file alone: the second one is what the pass made of it
    First,
}

/// Takes programs without barriers for those whose threads wait for each other after each statement on shared memory: in the files that
/// are said to leave barriers out, or else where the program before does.
pub(super) fn synchronize(files: &mut [File], which: Option<ImplicitBarriers>) {
    let n_given = match which {
        Some(ImplicitBarriers::All) => files.len(),
        Some(ImplicitBarriers::First) => 1,
        None => 0,
    };
    for file in files.iter_mut().take(n_given) {
        file.funcs.iter_mut().for_each(|func| *func = synchronized(func));
    }
    for position in 1..if which.is_some() { 0 } else { files.len() } {
        let (earlier, later) = files.split_at_mut(position);
        let (Some(before), Some(after)) = (earlier.last(), later.first_mut()) else { continue };
        let is_alone = before.funcs.len() == 1 && after.funcs.len() == 1;
        let is_partner = |one: &PrimFunc, other: &PrimFunc| is_alone || one.name == other.name;
        for func in after.funcs.iter_mut().filter(|func| !has_barriers(func)) {
            let partner = before.funcs.iter().find(|other| is_partner(other, func));
            if partner.is_some_and(|before| n_implicit_barriers(&before.body) > 0) {
                *func = synchronized(func);
            }
        }
    }
}

/// The pairs of functions that correspond: the only ones of both files, or those of the same name.
pub(super) fn pairs<'a>(before: &'a File, after: &'a File) -> Result<Vec<(&'a PrimFunc, &'a PrimFunc)>, Failure> {
    if let ([only], [other]) = (before.funcs.as_slice(), after.funcs.as_slice()) {
        return Ok(vec![(only, other)]);
    }
    let of_name = |file: &'a File, name: &str| file.funcs.iter().find(|func| func.name == name);
    let alone = |file: &'a File, other: &'a File| {
        let only_here = file.funcs.iter().filter(move |func| of_name(other, &func.name).is_none());
        only_here.map(move |func| {
            let message = format!("`{}` is in {} and not in {}", func.name, file.source.name, other.source.name);
            Diagnostic::error("unpaired-function", None, message)
                .with_help("functions of the same name correspond; pick one of each file with FILE::name")
        })
    };
    let faults: Vec<Diagnostic> = alone(before, after).chain(alone(after, before)).collect();
    if !faults.is_empty() {
        return Err(Failure::input(&after.source, faults));
    }
    Ok(before.funcs.iter().filter_map(|func| Some((func, of_name(after, &func.name)?))).collect())
}

/// The `.py` files of a folder in natural order: `2.py` before `10.py`.
pub(super) fn dumps(folder: &Path) -> Result<Vec<String>, Failure> {
    let name = folder.display().to_string();
    let unreadable = |error: std::io::Error| {
        Failure::plain(&name, "cannot-read", format!("cannot read the folder {name}: {error}"))
            .with_help("give the folder with the dumps of a compiler, one `.py` file after each of its passes")
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "py") {
            paths.push(path);
        }
    }
    if paths.len() < 2 {
        let message = format!("{name} has {} `.py` files, and a step needs two", paths.len());
        return Err(Failure::plain(&name, "too-few-dumps", message));
    }
    let mut names: Vec<String> = paths.into_iter().map(|path| path.display().to_string()).collect();
    names.sort_by_cached_key(|name| (natural(name), name.clone()));
    Ok(names)
}

/// A part of a name. Numbers are in order of their values: of their digits without leading zeros, the fewer the smaller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(usize, String),
    Text(String),
}

/// The numbers of a name and the texts between them, without its ending: `a.py` comes before `a9.py`.
fn natural(name: &str) -> Vec<Part> {
    let (mut parts, mut rest) = (Vec::new(), name.strip_suffix(".py").unwrap_or(name));
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, others) = rest.split_at(end);
        let digits = part.trim_start_matches('0');
        parts.push(if is_digit { Part::Number(digits.len(), digits.to_owned()) } else { Part::Text(part.to_owned()) });
        rest = others;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order_of_their_values() {
        let mut names =
            ["a10.py", "a9.py", "a.py", "b1.py", "a09b2.py", "a9b10.py", "a123456789012345678901.py", "a010.py"];
        names.sort_by_cached_key(|name| (natural(name), (*name).to_owned()));
        let wanted =
            ["a.py", "a9.py", "a09b2.py", "a9b10.py", "a010.py", "a10.py", "a123456789012345678901.py", "b1.py"];
        assert_eq!(names, wanted);
    }
}
