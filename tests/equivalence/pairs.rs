//! What the tests of equal programs share: programs from their parameters and bodies, and what the judge left open.

use std::fmt::Write as _;

use tilewright::pipeline;
use tilewright_ir::PrimFunc;
use tilewright_verify::{Config, Judge, Report, Verdict};

/// A function with these parameters: buffers of `float32` with a shape, and scalars with a type.
pub(crate) fn program(params: &str, body: &str) -> String {
    let params: Vec<(&str, &str)> = params
        .split(", ")
        .fold(Vec::<String>::new(), joined)
        .iter()
        .map(|param| param.split_once(": ").unwrap())
        .map(leak)
        .collect();
    let is_buffer = |ty: &str| ty.starts_with('(');
    let list = params.iter().map(|(name, ty)| format!("{name}: {}", if is_buffer(ty) { "T.handle" } else { ty }));
    let mut text = format!("@T.prim_func\ndef main({}):\n", list.collect::<Vec<_>>().join(", "));
    let words = |shape: &str| shape.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect::<Vec<_>>();
    let mut extents: Vec<String> =
        params.iter().filter(|(_, ty)| is_buffer(ty)).flat_map(|(_, shape)| words(shape)).collect();
    extents
        .retain(|word| word.starts_with(|c: char| c.is_alphabetic()) && !params.iter().any(|(name, _)| name == word));
    extents.sort();
    extents.dedup();
    for extent in extents {
        writeln!(text, "    {extent} = T.int32()").unwrap();
    }
    for (name, shape) in params.iter().filter(|(_, ty)| is_buffer(ty)) {
        writeln!(text, "    {} = T.match_buffer({name}, {shape}, \"float32\")", name.to_uppercase()).unwrap();
    }
    body.lines().filter(|line| !line.is_empty()).for_each(|line| writeln!(text, "    {line}").unwrap());
    text
}

/// Joins the parts of a shape again.
fn joined(mut found: Vec<String>, part: &str) -> Vec<String> {
    match found.last_mut() {
        Some(last) if last.matches('(').count() > last.matches(')').count() => {
            last.push_str(", ");
            last.push_str(part);
        }
        _ => found.push(part.to_owned()),
    }
    found
}

fn leak((name, ty): (&str, &str)) -> (&'static str, &'static str) {
    (name.to_owned().leak(), ty.to_owned().leak())
}

/// The only function of a text.
pub(crate) fn read(text: &str) -> PrimFunc {
    let mut found = pipeline::read(text, None).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    found.programs.remove(0).func
}

/// A judge with all strategies.
pub(crate) fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

/// What is not proved, and why.
pub(crate) fn open(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

/// Whether a program was run and came out otherwise, or cannot be run.
pub(crate) fn is_refuted(reports: &[Report]) -> bool {
    reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_)))
}
