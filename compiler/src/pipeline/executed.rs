//! Refutes a pair of programs by running both of them.
//!
//! The judge proves that two programs mean the same, or says *unknown* with the place and the reason: a structure that differs
//! shows nothing, since equal programs may look different. What refutes a pair is an execution. Both programs are run by the
//! reference interpreter on the same inputs, for some extents, and either an output differs, or only one of them traps:
//!
//! ```text
//! before: B[i] = A[i] + 1        at n = 1 (seed 0): `B[0]` is 2.5 before and 0.5 after
//! after:  B[i] = A[i] - 1
//! ```
//!
//! `tilewright run` with these extents and this seed shows the values again.

use tilewright_interp::Config as InterpConfig;
use tilewright_ir::{Buffer, Definition, Diagnostic, Evidence, Expr, PrimFunc};
use tilewright_verify::{Counterexample, Method, Obligation, ReasonKind, Report, Verdict};

use crate::harness::engine::{EngineOutcome, Param, StageProgram, Status};
use crate::harness::interpreter::Interpreter;
use crate::harness::stages::{ChainOutcome, Config, Stage, run_chain};

/// The most iterations of one run.
const MAX_ITERATIONS: u64 = 1 << 22;

/// The most bytes of memory of one run.
const MAX_BYTES: u64 = 1 << 28;

/// The most bytes of one parameter: no run has the iterations to visit more elements.
const MAX_PARAM_BYTES: u64 = 1 << 24;

/// Values for the symbolic integers, by their position. The first choice leaves them to the harness, which gives values that
/// differ from each other and that the assertions of the program allow.
const EXTENTS: [&[i128]; 6] = [&[], &[1], &[2, 3, 5, 4], &[5, 4, 3, 2], &[17, 1, 3, 2], &[23, 19, 37, 11]];

/// The seeds of the inputs; with the last one, some floats are NaN, infinite or -0.0.
const SEEDS: [(u64, bool); 3] = [(0, false), (1, false), (2, true)];

/// More seeds for programs that take integers: with these, the integers are near 0.
const SEEDS_OF_SCALARS: [(u64, bool); 4] = [(4, false), (5, false), (6, false), (7, false)];

/// The program before, in one of its forms.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// What a lowered function has to compute.
    Definition(&'a Definition),
    /// A function.
    Func(&'a PrimFunc),
}

/// Runs both programs if the judge left open whether they mean the same. If the runs differ, the report that named the
/// difference, or else the first open one, becomes *refuted*.
pub fn refute(before: Before<'_>, after: &PrimFunc, evidence: Option<&Evidence>, reports: &mut [Report]) {
    let Some(open) = first_open(reports) else { return };
    if let Some(mut found) = difference(before, after, evidence) {
        if let Some(reason) = reports[open].verdict.reason() {
            found.text = format!("{}; the judge: {reason}", found.text);
        }
        (reports[open].verdict, reports[open].method) = (Verdict::Refuted(found), Method::Interpreter);
    }
}

/// The position of the report that a difference belongs to; `None` if the judge decided everything about the pair.
fn first_open(reports: &[Report]) -> Option<usize> {
    let is_open = |report: &Report| match (report.obligation, &report.verdict) {
        (
            Obligation::Simulation | Obligation::Iteration | Obligation::Order | Obligation::Padding,
            Verdict::Unknown(reason),
        ) => !reason.is_internal(),
        _ => false,
    };
    let named = |report: &Report| report.verdict.reason().is_some_and(|reason| reason.kind() == ReasonKind::Differs);
    let position = |wanted: &dyn Fn(&Report) -> bool| reports.iter().position(wanted);
    position(&|report| is_open(report) && named(report)).or_else(|| position(&is_open))
}

/// Extents, inputs and a difference between the two executions.
fn difference(before: Before<'_>, after: &PrimFunc, evidence: Option<&Evidence>) -> Option<Counterexample> {
    let program = match before {
        Before::Definition(definition) => StageProgram::Definition(definition),
        Before::Func(func) => StageProgram::Func(func),
    };
    let first = Stage { name: "before", program, evidence: None, reassociates: false };
    let second = Stage { name: "after", program: StageProgram::Func(after), evidence, reassociates: false };
    let stages = [first, second];
    if stages.iter().any(|stage| is_too_large(stage.program)) {
        return None;
    }
    let mut symbols: Vec<String> = Vec::new();
    for var in stages.iter().flat_map(|stage| stage.program.symbols()) {
        if !symbols.iter().any(|known| known == var.name()) {
            symbols.push(var.name().to_owned());
        }
    }
    // Without symbols every choice of extents is the same one.
    let choices = if symbols.is_empty() { &EXTENTS[..1] } else { &EXTENTS[..] };
    let takes_integers = program.params().iter().any(|param| matches!(param, Param::Scalar(_)));
    let more: &[(u64, bool)] = if takes_integers { &SEEDS_OF_SCALARS } else { &[] };
    let seeds = || SEEDS.iter().chain(more).copied();
    choices.iter().flat_map(|extents| seeds().map(|seed| (*extents, seed))).find_map(
        |(extents, (seed, special_floats))| {
            let of =
                |(place, name): (usize, &String)| Some((name.clone(), *extents.get(place % extents.len().max(1))?));
            let symbols = symbols.iter().enumerate().filter_map(of).collect();
            let ran = run(&stages, &Config { seed, symbols, special_floats }).ok()?;
            compare(&ran)
        },
    )
}

/// Whether a parameter has more than [`MAX_PARAM_BYTES`] bytes, even if its symbolic extents are 1. Inputs are made before the
/// interpreter can refuse them.
fn is_too_large(program: StageProgram<'_>) -> bool {
    let bytes = |buffer: &Buffer| {
        let mut constant = buffer.shape.iter().filter_map(Expr::as_const_int);
        constant.try_fold(i128::from(buffer.dtype.bytes()), i128::checked_mul)
    };
    program.params().iter().any(|param| match param {
        Param::Buffer(buffer) => bytes(buffer).is_none_or(|bytes| bytes > i128::from(MAX_PARAM_BYTES)),
        Param::Scalar(_) => false,
    })
}

fn run(stages: &[Stage<'_>], config: &Config) -> Result<ChainOutcome, Diagnostic> {
    let limits =
        InterpConfig { threads: 1, fuel: Some(MAX_ITERATIONS), max_bytes: MAX_BYTES, ..InterpConfig::default() };
    run_chain(stages, config, &Interpreter { config: limits, is_reference: true }, &[])
}

/// The difference between two runs, if there is one.
fn compare(ran: &ChainOutcome) -> Option<Counterexample> {
    let [before, after] = ran.engines.as_slice() else { return None };
    let text = match (before.status, after.status, &after.first) {
        (Status::Reference, Status::Mismatch, Some(first)) => {
            let element = format!("{}{:?}", first.tensor, first.index);
            format!("`{element}` is {} before and {} after", first.expected, first.got)
        }
        (Status::Reference, Status::Trap, _) => trapped("after", after, "before"),
        (Status::Trap, Status::Reference | Status::Agrees, _) => trapped("before", before, "after"),
        _ => return None,
    };
    let text = format!("both were run (seed {}): {text}", ran.seed);
    Some(Counterexample { shape: ran.symbols.clone(), text, ..Counterexample::default() })
}

fn trapped(which: &str, outcome: &EngineOutcome, other: &str) -> String {
    format!("the program {which} traps ({}), the one {other} does not", outcome.detail)
}
