//! The Rust examples, run in this process: `cargo run --example NAME` in a page prints what the example writes.
#![allow(dead_code, unreachable_pub, reason = "an example is a program of its own, of which a test calls one function")]

use std::error::Error;
use std::path::Path;

use libtest_mimic::Trial;

#[path = "../../examples/build_schedule.rs"]
mod build_schedule;
#[path = "../../examples/interpret.rs"]
mod interpret;
#[path = "../../examples/plan_graph.rs"]
mod plan_graph;
#[path = "../../examples/prove_map.rs"]
mod prove_map;
#[path = "../../examples/prove_passes.rs"]
mod prove_passes;
#[path = "../../examples/validate_pair.rs"]
mod validate_pair;

type Run = fn(&mut Vec<u8>) -> Result<(), Box<dyn Error>>;

const EXAMPLES: [(&str, Run); 6] = [
    ("build_schedule", build_schedule::run),
    ("interpret", interpret::run),
    ("plan_graph", plan_graph::run),
    ("prove_map", prove_map::run),
    ("prove_passes", prove_passes::run),
    ("validate_pair", validate_pair::run),
];

/// What the command prints, if it runs an example.
pub(crate) fn output(line: &str) -> Option<String> {
    let name = line.strip_prefix("cargo run --example ")?;
    let (_, run) = EXAMPLES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no example `{name}`"));
    let mut text = Vec::new();
    run(&mut text).unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Every file of `examples/` is run by a page's test.
pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("every_rust_example_is_run", || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let mut names: Vec<String> = std::fs::read_dir(folder)?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
            .collect();
        names.sort();
        assert_eq!(names, EXAMPLES.map(|(name, _)| name));
        let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/library.md"))?;
        for name in names {
            assert!(page.contains(&format!("$ cargo run --example {name}\n")), "docs/guide/library.md shows no {name}");
        }
        Ok(())
    })]
}
