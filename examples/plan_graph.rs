//! Plans the memory of a graph and proves that no two tensors that live at once overlap.
//!
//! `cargo run --example plan_graph`

use std::error::Error;
use std::io::{self, Write};

use tilewright::planner::{self, Strategy};
use tilewright_ir::{Diagnostic, Region, TextureLimits};
use tilewright_verify::{Config, Judge};

const GRAPH: &str = r#"{"schema": "tilewright.graph/1",
 "tensors": [{"name": "x", "shape": [64], "dtype": "float32"},
             {"name": "a", "shape": [64], "dtype": "float32"},
             {"name": "b", "shape": [64], "dtype": "float32"},
             {"name": "y", "shape": [64], "dtype": "float32"}],
 "steps": [{"name": "first", "reads": ["x"], "writes": ["a"]},
           {"name": "second", "reads": ["a"], "writes": ["b"]},
           {"name": "third", "reads": ["b"], "writes": ["y"]}],
 "inputs": ["x"], "outputs": ["y"]}"#;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Writes where each tensor lies, and the verdicts on that plan and on one in which two tensors overlap.
pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let judge = Judge::new(Config::default(), tilewright_search::strategies())?;
    let graph = tilewright::graph::read(GRAPH).map_err(first)?.graph.graph;
    let limits = TextureLimits::PROMISED;
    let mut plan = planner::plan_within(&graph, Strategy::Best, limits).map_err(|fault| fault.to_string())?;
    for (tensor, place) in graph.tensors.iter().zip(&plan.places) {
        if let Region::Bytes { offset, size } = place.region {
            writeln!(out, "{}: pool {}, bytes {offset}..{}", tensor.name, place.pool, offset + size)?;
        }
    }
    for report in judge.check_plan(&graph, &plan) {
        writeln!(out, "  {} {}", report.verdict.word(), report.obligation)?;
    }
    // `a` and `b` live at once: the second step reads one and writes the other.
    plan.places[2] = plan.places[1];
    writeln!(out, "with b in the place of a:")?;
    for report in judge.check_plan(&graph, &plan) {
        writeln!(out, "  {} {}", report.verdict.word(), report.obligation)?;
    }
    Ok(())
}

/// The first of the faults of a text.
fn first(faults: Vec<Diagnostic>) -> String {
    faults.into_iter().next().map_or_else(String::new, |fault| fault.to_string())
}
