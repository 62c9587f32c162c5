//! Lowers a TE program, runs every pass on it, and proves each step before the next one runs.
//!
//! `cargo run --example prove_passes`

use std::error::Error;
use std::io::{self, Write};

use tilewright::passes::{DEFAULT_PIPELINE, PASSES};
use tilewright::pipeline;
use tilewright_ir::Diagnostic;
use tilewright_verify::{Config, Judge};

const PROGRAM: &str = r#"
from tvm import te

A = te.placeholder((2, 7, 9, 18), name="A", dtype="float32")
B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] * 2.0, name="B")
s = te.create_schedule(B.op)
s[B].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
"#;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Writes how many obligations of each step are proved, and the program after the last one.
pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let judge = Judge::new(Config::default(), tilewright_search::strategies())?;
    let read = pipeline::read(PROGRAM, None).map_err(first)?;
    let [program] = read.programs.as_slice() else { return Err("the text holds one function".into()) };

    // Lowering: the loops compute what the definition says.
    if let Some((definition, evidence)) = &program.definition {
        let mut reports = judge.check_definition(definition);
        reports.extend(judge.check_lowering(definition, &program.func, evidence));
        demand_proof("lower", &reports, out)?;
    }
    // Each pass gives the new program and its evidence: a claim, which the judge checks against both programs.
    let mut func = program.func.clone();
    for pass in PASSES.iter().filter(|pass| DEFAULT_PIPELINE.contains(&pass.name)) {
        if !(pass.wanted)(&func) {
            continue;
        }
        let rewritten = (pass.run)(&func).map_err(first)?;
        let reports = judge.check_pass(&func, &rewritten.func, &rewritten.evidence);
        demand_proof(pass.name, &reports, out)?;
        func = rewritten.func;
    }
    write!(out, "{}", tilewright_script::print_func(&func))?;
    Ok(())
}

/// Only *proved* lets a step through: refuted, unknown, vacuous and skipped do not.
fn demand_proof(step: &str, reports: &[tilewright_verify::Report], out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let proved = reports.iter().filter(|report| report.verdict.is_proved()).count();
    writeln!(out, "{step}: {proved} of {} obligations proved", reports.len())?;
    if proved == reports.len() { Ok(()) } else { Err(format!("{step} is not proved").into()) }
}

/// The first of the faults of a text or of a pass.
fn first(faults: Vec<Diagnostic>) -> String {
    faults.into_iter().next().map_or_else(String::new, |fault| fault.to_string())
}
