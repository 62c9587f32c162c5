//! Proves an index map for every shape, with its inverse and its padding, and refutes a wrong one.
//!
//! `cargo run --example prove_map`

use std::error::Error;
use std::io::{self, Write};

use tilewright::algebra;
use tilewright_ir::Diagnostic;
use tilewright_script::{Symbols, read_index_map, read_shape};
use tilewright_verify::{Config, Judge, MapClaim};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Writes the verdict on each obligation of two maps.
pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // The judge owns a Z3 context for each thread; one judge answers any number of questions.
    let judge = Judge::new(Config::default(), tilewright_search::strategies())?;
    // `n` and `c` are extents that are not known: what is proved holds for all of them.
    prove(&judge, "lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "n, 7, 9, c", out)?;
    prove(&judge, "lambda i, j: [i * 2 + j]", "3, 4", out)
}

fn prove(judge: &Judge, lambda: &str, shape: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut symbols = Symbols::default();
    let shape = read_shape(shape, &mut symbols).map_err(first)?;
    let map = read_index_map(lambda, Some(&shape), &mut symbols).map_err(first)?;
    // The algebra finds a physical shape, an inverse and a certificate. None of them is believed: they are claims.
    let physical = algebra::physical_shape(&map, &[]).map_err(|fault| fault.to_string())?;
    let inverse = algebra::inverse(&map, &physical.extents, &[]).ok();
    let digits = algebra::digit_certificate(&map, &physical.extents, inverse.as_ref(), None, &[]);
    let mut claim = MapClaim::new(&map, &physical.extents).padded(&physical.padded_axes);
    if let Some(inverse) = &inverse {
        claim = claim.inverse(inverse);
    }
    if let Some(digits) = &digits {
        claim = claim.digits(digits);
    }
    writeln!(out, "{map}")?;
    for report in judge.check_map(claim) {
        writeln!(out, "  {} {}", report.verdict.word(), report.obligation)?;
        if let tilewright_verify::Verdict::Refuted(found) = &report.verdict {
            writeln!(out, "    {}", found.text)?;
        }
    }
    Ok(())
}

/// The first of the faults of a text.
fn first(faults: Vec<Diagnostic>) -> String {
    faults.into_iter().next().map_or_else(String::new, |fault| fault.to_string())
}
