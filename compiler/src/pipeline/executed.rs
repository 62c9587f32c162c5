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
//! `tilewright run` with these extents, this seed and the options printed beside it shows the values again.

use tilewright_interp::Config as InterpConfig;
use tilewright_ir::{BinaryOp, Bindings, Buffer, Definition, Diagnostic, Evidence, Expr, PrimFunc, Var};
use tilewright_verify::{Counterexample, Method, Obligation, Reason, ReasonKind, Report, Verdict};

use crate::harness::arguments::Inputs;
use crate::harness::engine::{EngineOutcome, Param, StageProgram, Status};
use crate::harness::inputs::{Sampled, premises, sample_symbols, satisfying};
use crate::harness::interpreter::Interpreter;
use crate::harness::stages::{ChainOutcome, Config, Stage, run_chain};

/// The most iterations of one run.
const MAX_ITERATIONS: u64 = 1 << 22;

/// The most bytes of memory of one run.
const MAX_BYTES: u64 = 1 << 28;

/// The most bytes of one parameter: no run has the iterations to visit more elements.
const MAX_PARAM_BYTES: u64 = 1 << 24;

/// Values for the symbolic integers, by their position. The first choice leaves them to the harness, which gives values that
/// differ from each other. Where the assertions of the program exclude a choice, the harness gives others for it.
const EXTENTS: [&[i128]; 6] = [&[], &[1], &[2, 3, 5, 4], &[5, 4, 3, 2], &[17, 1, 3, 2], &[23, 19, 37, 11]];

/// The inputs that are tried, in this order.
const INPUTS: [(u64, Inputs); 4] =
    [(0, Inputs::Positions), (0, Inputs::Random), (1, Inputs::Random), (2, Inputs::Special)];

/// Inputs for programs that factorise matrices: of others, a root or a quotient makes nearly all elements NaN.
const INPUTS_OF_MATRICES: [(u64, Inputs); 1] = [(3, Inputs::Diagonal)];

/// More inputs for programs that take integers: with these seeds, the integers are near 0.
const INPUTS_OF_SCALARS: [(u64, Inputs); 4] =
    [(4, Inputs::Random), (5, Inputs::Random), (6, Inputs::Random), (7, Inputs::Random)];

/// The seeds of small whole numbers, for programs that may combine floats in other orders; the last four if they take integers.
const SEEDS_OF_WHOLE: [u64; 6] = [0, 1, 4, 5, 6, 7];

/// The program before, in one of its forms.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// What a lowered function has to compute.
    Definition(&'a Definition),
    /// A function.
    Func(&'a PrimFunc),
}

/// The order in which floats are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Both programs have the same.
    Same,
    /// Each may have its own: inputs are small whole numbers, of which sums and products are exact. Programs that divide floats or call
    /// functions of them, or have floats of less than 32 bits, are not run.
    Any,
}

/// Runs both programs if the judge left open whether they mean the same. If the runs differ, the report that named the
/// difference, or else the first open one, becomes *refuted*. Returns whether they do.
pub fn refute(before: Before<'_>, after: &PrimFunc, evidence: Option<&Evidence>, reports: &mut [Report]) -> bool {
    refute_in(Order::Same, before, after, evidence, reports)
}

/// [`refute`] for programs that may combine floats in other orders.
pub fn refute_in(
    order: Order,
    before: Before<'_>,
    after: &PrimFunc,
    evidence: Option<&Evidence>,
    reports: &mut [Report],
) -> bool {
    let Some(open) = first_open(reports) else { return false };
    let is_sure = match before {
        Before::Func(before) => is_exact(before) && is_exact(after),
        Before::Definition(_) => is_exact(after),
    };
    if order == Order::Any && !is_sure {
        return false;
    }
    let report = &mut reports[open];
    match (difference(order, before, after, evidence), report.verdict.reason()) {
        (Ok(mut found), reason) => {
            if let Some(reason) = reason {
                found.text = format!("{}; the judge: {reason}", found.text);
            }
            (report.verdict, report.method) = (Verdict::Refuted(found), Method::Interpreter);
        }
        (Err(Some(why_not)), Some(reason)) => {
            report.verdict = Verdict::Unknown(Reason::new(reason.kind(), format!("{reason}; not run: {why_not}")));
        }
        (Err(_), _) => {}
    }
    matches!(report.verdict, Verdict::Refuted(_))
}

/// The position of the report that a difference belongs to; `None` if the judge decided everything about the pair.
fn first_open(reports: &[Report]) -> Option<usize> {
    let is_open = |report: &Report| match (report.obligation, &report.verdict) {
        (
            Obligation::Simulation
            | Obligation::Iteration
            | Obligation::Order
            | Obligation::Alive
            | Obligation::Padding,
            Verdict::Unknown(reason),
        ) => !reason.is_internal(),
        _ => false,
    };
    let named = |report: &Report| report.verdict.reason().is_some_and(|reason| reason.kind() == ReasonKind::Differs);
    let position = |wanted: &dyn Fn(&Report) -> bool| reports.iter().position(wanted);
    position(&|report| is_open(report) && named(report)).or_else(|| position(&is_open))
}

/// Whether small whole numbers stay exact: floats have at least 32 bits, and nothing divides them or calls a function of them.
fn is_exact(func: &PrimFunc) -> bool {
    let mut is_exact = true;
    func.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let is_rounded = matches!(part, Expr::Binary(BinaryOp::Div, ..) | Expr::Call(..));
                let ty = part.dtype().scalar;
                is_exact &= !(ty.is_float() && (is_rounded || ty.bits() < 32));
            });
        }
    });
    is_exact
}

/// Extents, inputs and a difference between the two executions.
///
/// # Errors
/// None was found; with the reason if no run was made, because no inputs of a size that can be run meet the assertions.
fn difference(
    order: Order,
    before: Before<'_>,
    after: &PrimFunc,
    evidence: Option<&Evidence>,
) -> Result<Counterexample, Option<String>> {
    let program = match before {
        Before::Definition(definition) => StageProgram::Definition(definition),
        Before::Func(func) => StageProgram::Func(func),
    };
    let first = Stage { name: "before", program, evidence: None, reassociates: false };
    let reassociates = order == Order::Any;
    let second = Stage { name: "after", program: StageProgram::Func(after), evidence, reassociates };
    let stages = [first, second];
    let mut symbols: Vec<Var> = Vec::new();
    for var in stages.iter().flat_map(|stage| stage.program.symbols()) {
        if !symbols.iter().any(|known| known.name() == var.name()) {
            symbols.push(var);
        }
    }
    // Without symbols every choice of extents is the same one.
    let choices = if symbols.is_empty() { &EXTENTS[..1] } else { &EXTENTS[..] };
    let tried = inputs_of(order, before, after);
    let asserted = premises(if let Before::Func(func) = before { func } else { after });
    let (mut has_run, mut why_not) = (false, None);
    for (stream, extents) in (0..).zip(choices) {
        let Some(extents) = extents_of(extents, &symbols, &asserted, stream) else { continue };
        if stages.iter().any(|stage| is_too_large(stage.program, &extents)) {
            let is_asserted = !asserted.is_empty();
            why_not =
                why_not.or_else(|| is_asserted.then(|| "extents for which the assertions hold are too large".into()));
            continue;
        }
        for &(seed, inputs) in &tried {
            let Ok(ran) = run(&stages, &Config { seed, symbols: extents.clone(), inputs }) else { continue };
            if let Some(found) = compare(&ran, inputs) {
                return Ok(found);
            }
            match ran.engines.first() {
                Some(first) if first.status == Status::Skipped => {
                    why_not.get_or_insert_with(|| first.detail.clone());
                    break;
                }
                _ => has_run = true,
            }
        }
    }
    Err(why_not.filter(|_| !has_run))
}

/// The inputs that are tried for a pair.
fn inputs_of(order: Order, before: Before<'_>, after: &PrimFunc) -> Vec<(u64, Inputs)> {
    let program = match before {
        Before::Definition(definition) => StageProgram::Definition(definition),
        Before::Func(func) => StageProgram::Func(func),
    };
    let params = program.params();
    let takes_integers = params.iter().any(|param| matches!(param, Param::Scalar(_)));
    if order == Order::Any {
        let count = if takes_integers { 6 } else { 2 };
        return SEEDS_OF_WHOLE[..count].iter().map(|&seed| (seed, Inputs::Whole)).collect();
    }
    let is_square = |param: &Param| match param {
        Param::Buffer(buffer) => {
            matches!(buffer.shape.as_slice(), [.., rows, columns] if rows == columns) && buffer.dtype.scalar.is_float()
        }
        Param::Scalar(_) => false,
    };
    let factorises = params.iter().any(is_square) && !is_exact(after);
    let mut tried = INPUTS.to_vec();
    tried.extend(INPUTS_OF_MATRICES.iter().filter(|_| factorises));
    tried.extend(INPUTS_OF_SCALARS.iter().filter(|_| takes_integers));
    tried
}

/// The extents of a choice by name, or others for which the assertions hold, if they do not for these.
fn extents_of(choice: &[i128], symbols: &[Var], asserted: &[Expr], stream: u64) -> Option<Vec<(String, i128)>> {
    let of = |(place, var): (usize, &Var)| Some((var.name().to_owned(), *choice.get(place % choice.len().max(1))?));
    let chosen: Vec<_> = symbols.iter().enumerate().filter_map(of).collect();
    let bindings = sample_symbols(symbols, &chosen).ok()?;
    if asserted.iter().all(|cond| cond.eval_index(&bindings) != Ok(0)) {
        return Some(chosen);
    }
    let Sampled { bindings, unmet } = satisfying(symbols, &[], asserted, stream).ok()?;
    let named = |var: &Var| (var.name().to_owned(), bindings[var]);
    Some(if unmet.is_none() { symbols.iter().map(named).collect() } else { Vec::new() })
}

/// Whether a parameter has more than [`MAX_PARAM_BYTES`] bytes; an extent that is not known counts as 1. Inputs are made before the
/// interpreter can refuse them.
fn is_too_large(program: StageProgram<'_>, extents: &[(String, i128)]) -> bool {
    let symbols = program.symbols();
    let value = |var: &Var| Some((var.clone(), extents.iter().find(|(name, _)| name == var.name())?.1));
    let bindings: Bindings = symbols.iter().filter_map(value).collect();
    let bytes = |buffer: &Buffer| {
        let mut extents = buffer.shape.iter().map(|extent| extent.eval_index(&bindings).unwrap_or(1));
        extents.try_fold(i128::from(buffer.dtype.bytes()), i128::checked_mul)
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

/// The difference between two runs, if there is one, with the options of `tilewright run` that give it the same inputs.
fn compare(ran: &ChainOutcome, inputs: Inputs) -> Option<Counterexample> {
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
    let is_trap = [before, after].iter().any(|outcome| outcome.status == Status::Trap);
    let options = [
        (ran.outputs_given, ", --outputs given"),
        // Without this option, a program that reads its outputs first is run again with values in them.
        (is_trap && !ran.outputs_given, ", --outputs undefined"),
    ];
    let options: String = options.iter().filter(|(is_needed, _)| *is_needed).map(|(_, option)| *option).collect();
    let chosen = if inputs == Inputs::Random { String::new() } else { format!(", --inputs {}", inputs.word()) };
    let text = format!("both were run (seed {}{chosen}{options}): {text}", ran.seed);
    let (shape, assignments) = (ran.symbols.clone(), ran.scalars.clone());
    Some(Counterexample { shape, assignments, text, ..Counterexample::default() })
}

fn trapped(which: &str, outcome: &EngineOutcome, other: &str) -> String {
    format!("the program {which} traps ({}), the one {other} does not", outcome.detail)
}
