//! The readers of JSON: graphs in both formats, plans, and files of findings.

use tilewright_ir::Diagnostic;

use super::{CheckResult, read, same};
use crate::finding::Finding;
use crate::oracle::{Failure, Tally};
use tilewright_memory::graph;
use tilewright_memory::planner::{Strategy, plan};

/// Applies all readers of JSON to a text. A graph that is read is written and read again, and
/// planned.
pub(super) fn check_text(text: &str, tally: &mut Tally) -> CheckResult {
    if let Some(document) = read("graph", text, graph::read(text), tally)? {
        let written = graph::write(&document.graph, document.plan.as_ref());
        let written =
            written.map_err(|fault| Failure::outcome("a graph that is read is not written", fault.to_string()))?;
        same("graph", &written, graph::read(&written).map(|back| back == document))?;
        // Each look-up reads the whole text again, so only the first tensors are tried.
        for tensor in 0..document.graph.graph.tensors.len().min(4) {
            let place = graph::place_of(text, tensor);
            let inside = |span: tilewright_ir::Span| {
                let [start, end] = [span.start, span.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
                text.get(start..end).is_some()
            };
            if place.is_some_and(|span| !inside(span)) {
                return Err(Failure::outcome("the place of a tensor is none of the text", format!("{place:?}")));
            }
        }
        for strategy in [Strategy::Compatible, Strategy::Best] {
            let planned: Result<_, Vec<Diagnostic>> =
                plan(&document.graph.graph, strategy).map_err(|fault| vec![fault]);
            read("plan", text, planned, tally)?;
        }
    }
    // Findings are written by the campaign itself, so a refusal needs no presentable reason and is not counted.
    if let Ok(finding) = serde_json::from_str::<Finding>(text) {
        tally.count("finding read", 1);
        let written = serde_json::to_string(&finding).unwrap_or_default();
        same("finding", &written, Ok(serde_json::from_str::<Finding>(&written).is_ok_and(|back| back == finding)))?;
    }
    Ok(())
}
