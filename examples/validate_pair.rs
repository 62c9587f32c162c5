//! Validates the output of another compiler: proves that one function means what another one means.
//!
//! `cargo run --example validate_pair`

use std::error::Error;
use std::io::{self, Write};

use tilewright::pipeline::pair::{self, GivenMap, PairFault};
use tilewright_ir::{Diagnostic, PrimFunc};
use tilewright_verify::{Config, Judge, Verdict};

const BEFORE: &str = r#"
@T.prim_func
def scale(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        B[i, j] = A[i, j] * T.float32(2.0)
"#;

/// `B` is stored in tiles of 4 columns.
const AFTER: &str = r#"
@T.prim_func
def scale(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 2, 4), "float32")):
    for i, j in T.grid(6, 8):
        B[i, j // 4, j % 4] = A[i, j] * T.float32(2.0)
"#;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Writes the verdict on the pair, and on a pair in which the second function reverses each tile.
pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let judge = Judge::new(Config::default(), tilewright_search::strategies())?;
    let wrong = AFTER.replace("j % 4]", "3 - j % 4]");
    for after in [AFTER, &wrong] {
        let (before, after) = (function(BEFORE)?, function(after)?);
        // How the indices of a buffer moved is part of the claim. Without a map it is inferred, where that is possible.
        let moved = GivenMap { buffer: "B".into(), text: "lambda i, j: [i, j // 4, j % 4]".into() };
        let (after, evidence) = pair::pair(&before, &after, &[moved])
            .map_err(|faults| first(faults.into_iter().map(PairFault::diagnostic).collect()))?;
        let reports = judge.check_pass(&before, &after, &evidence);
        let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone()));
        writeln!(out, "{}: {} obligations", worst.map_or("skipped", |worst| worst.word()), reports.len())?;
        for report in reports.iter().filter(|report| !report.verdict.is_proved()) {
            writeln!(out, "  {} {}: {}", report.verdict.word(), report.obligation, report.subject)?;
        }
    }
    Ok(())
}

fn function(text: &str) -> Result<PrimFunc, Box<dyn Error>> {
    let module = tilewright_script::read_module(text).map_err(first)?;
    module.funcs.into_iter().next().ok_or_else(|| "the text holds one function".into())
}

/// The first of the faults of a text.
fn first(faults: Vec<Diagnostic>) -> String {
    faults.into_iter().next().map_or_else(String::new, |fault| fault.to_string())
}
