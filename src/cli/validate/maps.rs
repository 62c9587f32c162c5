//! The options `--map` of `tilewright validate`, and the faults of pairs of functions, each in the text that it is about.

use tilewright_ir::{Diagnostic, Span};
use tilewright_script::Source;

use super::super::failure::Failure;
use super::super::options::assume_failure;
use crate::pipeline::pair::{GivenMap, PairFault};

/// The faults of a condition that cannot be assumed, of the first `--map` that has any, or else of the file after.
pub(super) fn unpaired(faults: Vec<PairFault>, maps: &[String], after: &Source) -> Failure {
    let first = faults.iter().find_map(|fault| match fault {
        PairFault::Map(position, _) => Some(*position),
        PairFault::After(_) | PairFault::Assumed(..) => None,
    });
    if let [PairFault::Assumed(text, fault)] = faults.as_slice() {
        return assume_failure(text, vec![fault.clone()]);
    }
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
pub(super) fn given_map(text: &str) -> Result<GivenMap, Failure> {
    let source = map_source(text);
    let (buffer, map) = text.split_once(':').filter(|(buffer, _)| !buffer.contains("lambda")).ok_or_else(|| {
        let fault = Diagnostic::error("map-without-buffer", None, format!("`{text}` names no buffer"))
            .with_help("write it as 'A: lambda i, j: [j, i]'");
        Failure::input(&source, vec![in_option(fault, text)])
    })?;
    Ok(GivenMap { buffer: buffer.trim().to_owned(), text: map.trim().to_owned() })
}
