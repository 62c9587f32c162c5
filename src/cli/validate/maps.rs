//! The options `--map` of `tilewright validate`, and the faults of pairs of functions, each in the text that it is about.

use tilewright_ir::{Diagnostic, Span};
use tilewright_script::Source;

use super::super::failure::Failure;
use super::super::options::assume_failure;
use crate::pipeline::pair::{GivenMap, PairFault};

/// An option `--map`.
///
/// ```text
/// A: lambda i, j: [j, i]       of the only step
/// 2:A: lambda i, j: [j, i]     of the second step: from the second file to the third one
/// ```
#[derive(Clone, Debug)]
pub(super) struct MapOption {
    /// The step that it names, from 1.
    step: Option<usize>,
    pub(super) map: GivenMap,
    /// The whole option.
    text: String,
    /// Where the lambda begins in it.
    lambda: usize,
}

/// Reads an option.
pub(super) fn read(text: &str) -> Result<MapOption, Failure> {
    let parts = |text: &str| text.split_once(':').map(|(head, rest)| (head.trim().to_owned(), rest.to_owned()));
    let is_step = |head: &String| !head.is_empty() && head.chars().all(|c| c.is_ascii_digit());
    let (step, rest) = match parts(text) {
        Some((head, rest)) if is_step(&head) => (Some(head.parse().unwrap_or(usize::MAX)), rest),
        _ => (None, text.to_owned()),
    };
    let (buffer, map) = parts(&rest).filter(|(buffer, _)| !buffer.contains("lambda")).ok_or_else(|| {
        let fault = Diagnostic::error("map-without-buffer", None, format!("`{text}` names no buffer"))
            .with_help("write it as 'A: lambda i, j: [j, i]'");
        Failure::input(&map_source(text), vec![in_option(fault, text, 0)])
    })?;
    let lambda = text.len() - map.trim_start().len();
    Ok(MapOption { step, map: GivenMap { buffer, text: map.trim().to_owned() }, text: text.to_owned(), lambda })
}

/// Checks that each option is about one of so many steps.
pub(super) fn check_steps(options: &[MapOption], n_steps: usize) -> Result<(), Failure> {
    for MapOption { step, map, text, .. } in options {
        let (code, message) = match step {
            None if n_steps > 1 => (
                "map-of-chain",
                format!("the map of `{}` does not say which of {n_steps} steps it is about", map.buffer),
            ),
            Some(step) if !(1..=n_steps).contains(step) => {
                ("map-step", format!("there is no step {step}: the last one is {n_steps}"))
            }
            None | Some(_) => continue,
        };
        let help =
            format!("write the number of the step in front of the buffer: '1:{}: ...' for the first one", map.buffer);
        let fault = Diagnostic::error(code, None, message).with_help(help);
        return Err(Failure::input(&map_source(text), vec![in_option(fault, text, 0)]));
    }
    Ok(())
}

/// The options about a step, from 1.
pub(super) fn of_step(options: &[MapOption], step: usize) -> Vec<&MapOption> {
    options.iter().filter(|option| option.step.is_none_or(|named| named == step)).collect()
}

/// The faults of a condition that cannot be assumed, of the first `--map` that has any, or else of the file after.
pub(super) fn unpaired(faults: Vec<PairFault>, maps: &[&MapOption], after: &Source) -> Failure {
    let first = faults.iter().find_map(|fault| match fault {
        PairFault::Map(position, _) => Some(*position),
        PairFault::After(_) | PairFault::Assumed(..) => None,
    });
    if let [PairFault::Assumed(text, fault)] = faults.as_slice() {
        return assume_failure(text, vec![fault.clone()]);
    }
    let Some((first, option)) = first.and_then(|first| Some((first, maps.get(first)?))) else {
        return Failure::input(after, faults.into_iter().map(PairFault::diagnostic).collect());
    };
    let of_map = faults.into_iter().filter(|fault| matches!(fault, PairFault::Map(at, _) if *at == first));
    let placed = of_map.map(|fault| in_option(fault.diagnostic(), &option.text, option.lambda));
    Failure::input(&map_source(&option.text), placed.collect())
}

/// The text of an option `--map` as a source.
fn map_source(text: &str) -> Source {
    Source { name: "<--map>".into(), text: text.to_owned() }
}

/// A fault of the lambda, with its places moved to the whole text of the option. A fault without a place gets all of the
/// text.
fn in_option(mut fault: Diagnostic, text: &str, lambda: usize) -> Diagnostic {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    for label in &mut fault.labels {
        let (start, end) =
            (label.span.start.saturating_add(offset(lambda)), label.span.end.saturating_add(offset(lambda)));
        label.span = Span::new(start, end);
    }
    if fault.labels.is_empty() { fault.with_label(Span::new(0, offset(text.len())), "") } else { fault }
}
