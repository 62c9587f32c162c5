//! Looks for extents and inputs with which two programs come out otherwise.
//!
//! The fast interpreter looks, and the reference interpreter has to show the same difference before it counts.

use std::cell::Cell;

use tilewright_interp::{Arguments, Config as InterpConfig};
use tilewright_ir::{Bindings, Buffer, Evidence, Expr, PrimFunc, UnaryOp, Var};
use tilewright_verify::Counterexample;

use super::proposals::{Choice, Model, proposals};
use super::{Before, Order, Runs, is_exact};
use crate::harness::arguments::{Inputs, reads_indices};
use crate::harness::engine::{Engine, EngineFault, EngineOutcome, Param, Ran, StageProgram, Status};
use crate::harness::inputs::{Sampled, premises, sample_symbols, satisfying};
use crate::harness::interpreter::Interpreter;
use crate::harness::stages::{ChainOutcome, Config, Stage, run_chain};

/// The most iterations of one run.
const MAX_ITERATIONS: u64 = 1 << 22;

/// The most iterations of all runs that look for a difference: a fraction of a second where nests run at once, and five seconds
/// where the interpreter takes every iteration by itself.
const MAX_ITERATIONS_IN_ALL: u64 = 1 << 24;

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

/// The inputs that are tried behind all others: more special values, and values of which many are equal.
const LAST_INPUTS: [(u64, Inputs); 2] = [(8, Inputs::Special), (12, Inputs::Whole)];

/// Inputs for programs that factorise matrices: of others, a root or a quotient makes nearly all elements NaN.
const INPUTS_OF_MATRICES: [(u64, Inputs); 1] = [(3, Inputs::Diagonal)];

/// Inputs for programs with indices or loops' extents that are read from memory: others are out of bounds.
const INPUTS_OF_GATHERS: [(u64, Inputs); 3] = [(9, Inputs::Indices), (10, Inputs::Indices), (11, Inputs::Indices)];

/// More inputs for programs that take integers: with these seeds, the integers are near 0.
const INPUTS_OF_SCALARS: [(u64, Inputs); 4] =
    [(4, Inputs::Random), (5, Inputs::Random), (6, Inputs::Random), (7, Inputs::Random)];

/// The inputs that are tried for extents and integers that were proposed: the first ones.
const INPUTS_OF_PROPOSALS: usize = 2;

/// Whole numbers up to this one are exact as floats of 32 bits.
const EXACT: f64 = 16_777_216.0;

/// The seeds of small whole numbers, for programs that may combine floats in other orders; the last four if they take integers.
const SEEDS_OF_WHOLE: [u64; 6] = [0, 1, 4, 5, 6, 7];

/// Choices of extents for each condition that only one of the programs asserts.
const FOREIGN_EXTENTS: u64 = 3;

/// Extents, inputs and a difference between the two executions. That the program before traps is none if `is_defined` says that it is a
/// premise that it does not.
///
/// # Errors
/// None was found: what the runs showed, or why there was none.
pub(super) fn difference(
    (order, is_defined): (Order, bool),
    (before, after): (Before<'_>, &PrimFunc),
    evidence: Option<&Evidence>,
    models: &[Model],
) -> Result<Counterexample, Runs> {
    let program = before.program();
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
    let asserted = premises(if let Before::Func(func) = before { func } else { after });
    let tried = inputs_of(order, before, after);
    let limits =
        InterpConfig { threads: 1, fuel: Some(MAX_ITERATIONS), max_bytes: MAX_BYTES, ..InterpConfig::default() };
    let search = Search { stages, tried, limits, is_asserted: !asserted.is_empty(), is_defined };
    let mut seen = Seen { left: MAX_ITERATIONS_IN_ALL, ..Seen::default() };
    let fixed = choices(&symbols, &asserted, &premises(after)).into_iter();
    let fixed = fixed.map(|extents| Choice { extents, scalars: Vec::new() });
    for choice in fixed {
        if let Some(found) = search.at(&choice, &search.tried, &mut seen) {
            return Ok(found);
        }
    }
    let scalars: Vec<Var> = integers(before).into_iter().filter(|var| !symbols.contains(var)).collect();
    let programs: Vec<&PrimFunc> = if let Before::Func(func) = before { vec![func, after] } else { vec![after] };
    let proposed = proposals(models, [&symbols, &scalars], &programs).into_iter();
    let accepted = proposed.filter(|choice| is_accepted(choice, &symbols, &asserted));
    let few = &search.tried[..search.tried.len().min(INPUTS_OF_PROPOSALS)];
    let found = accepted.into_iter().find_map(|choice| search.at(&choice, few, &mut seen));
    found.ok_or_else(|| seen.runs())
}

/// The integers among the scalar parameters.
fn integers(before: Before<'_>) -> Vec<Var> {
    let params = before.program().params();
    let integer = |param: &Param| match param {
        Param::Scalar(var) => var.dtype().scalar.is_integer().then(|| var.clone()),
        Param::Buffer(_) => None,
    };
    params.iter().filter_map(integer).collect()
}

/// Whether the assertions hold for a choice, as far as they are about extents.
fn is_accepted(choice: &Choice, symbols: &[Var], asserted: &[Expr]) -> bool {
    let bindings = sample_symbols(symbols, &choice.extents);
    bindings.is_ok_and(|bindings| asserted.iter().all(|cond| cond.eval_index(&bindings) != Ok(0)))
}

/// The extents that are tried.
fn choices(symbols: &[Var], asserted: &[Expr], asserted_after: &[Expr]) -> Vec<Vec<(String, i128)>> {
    // Without symbols every choice of extents is the same one.
    let choices = if symbols.is_empty() { &EXTENTS[..1] } else { &EXTENTS[..] };
    let accepted = (0..).zip(choices).filter_map(|(stream, choice)| extents_of(choice, symbols, asserted, stream));
    let mut found: Vec<_> = accepted.collect();
    // What only one of the programs accepts shows that the other one asserts more.
    for (some, others) in [(asserted, asserted_after), (asserted_after, asserted)] {
        for cond in some.iter().filter(|cond| !symbols.is_empty() && !others.contains(cond)) {
            let foreign = [others, &[Expr::unary(UnaryOp::Not, cond.clone())]].concat();
            let sampled = (0..FOREIGN_EXTENTS).filter_map(|stream| satisfying(symbols, &[], &foreign, stream).ok());
            let met = sampled.filter(|sampled| sampled.unmet.is_none());
            let named = |Sampled { bindings, .. }: Sampled| {
                symbols.iter().map(|var| (var.name().to_owned(), bindings[var])).collect()
            };
            found.extend(met.map(named));
        }
    }
    found
}

/// Two programs, and how they are run.
struct Search<'a> {
    stages: [Stage<'a>; 2],
    /// The inputs that are tried for all extents.
    tried: Vec<(u64, Inputs)>,
    limits: InterpConfig,
    /// Whether there are assertions about extents.
    is_asserted: bool,
    /// Whether it is a premise that the program before does not trap.
    is_defined: bool,
}

/// What runs without a difference showed.
#[derive(Default)]
struct Seen {
    runs: usize,
    trapped: usize,
    /// The iterations that may still be run.
    left: u64,
    /// Why something was not run.
    why_not: Option<String>,
    /// A difference that refutes nothing, and why.
    doubt: Option<String>,
}

impl Seen {
    fn runs(self) -> Runs {
        let Self { runs, trapped, left, why_not, doubt } = self;
        let all_spent = || format!("stopped after {MAX_ITERATIONS_IN_ALL} iterations");
        let spent = (left == 0).then(all_spent);
        match doubt.or(spent) {
            None if runs == 0 => Runs::Not(why_not.unwrap_or_else(|| "no inputs that can be run were found".into())),
            remark => Runs::Alike { runs, trapped, remark },
        }
    }
}

impl Search<'_> {
    /// Whether results may differ only because floats that were combined in another order were rounded otherwise: those that are no small
    /// whole numbers.
    fn may_be_rounded(&self, ran: &ChainOutcome) -> bool {
        let is_exact = |text: &str| {
            let is_whole = |value: f64| value.fract() == 0.0 && value.abs() <= EXACT;
            text.parse::<i128>().is_ok() || text.parse().is_ok_and(is_whole)
        };
        let mut found = ran.engines.iter().filter_map(|outcome| outcome.first.as_ref());
        self.stages[1].reassociates && found.any(|first| !is_exact(&first.expected) || !is_exact(&first.got))
    }

    /// Runs both programs with these extents and integers on some inputs.
    fn at(&self, choice: &Choice, tried: &[(u64, Inputs)], seen: &mut Seen) -> Option<Counterexample> {
        let Choice { extents, scalars } = choice;
        if self.stages.iter().any(|stage| is_too_large(stage.program, extents)) {
            let large = if self.is_asserted {
                "extents for which the assertions hold are too large".into()
            } else {
                format!("a parameter has more than {MAX_PARAM_BYTES} bytes")
            };
            seen.why_not.get_or_insert(large);
            return None;
        }
        for &(seed, inputs) in tried {
            if seen.left == 0 {
                return None;
            }
            let config = Config { seed, symbols: extents.clone(), scalars: scalars.clone(), inputs, exact: true };
            let engine = Metered { limits: &self.limits, left: Cell::new(seen.left) };
            let ran = run_chain(&self.stages, &config, &engine, &[]);
            seen.left = engine.left.get();
            let Ok(ran) = ran else { continue };
            let traps_before = ran.engines.first().is_some_and(|first| first.status == Status::Trap);
            if let Some(shown) = compare(&ran, scalars, inputs).filter(|_| !(self.is_defined && traps_before)) {
                let reference = Interpreter { config: self.limits.clone(), is_reference: true };
                let again = run_chain(&self.stages, &config, &reference, &[]).ok();
                let is_rounded = again.as_ref().is_some_and(|again| self.may_be_rounded(again));
                let doubt = match again.and_then(|again| compare(&again, scalars, inputs)) {
                    Some(found) if !is_rounded => return Some(found),
                    Some(found) => format!("this difference may be one of rounding: {}", found.text),
                    None => format!("the reference interpreter did not confirm this one: {}", shown.text),
                };
                seen.doubt.get_or_insert(doubt);
            }
            if let Some(skipped) = ran.engines.iter().find(|outcome| outcome.status == Status::Skipped) {
                seen.why_not.get_or_insert_with(|| skipped.detail.clone());
                return None;
            }
            seen.runs += 1;
            seen.trapped += usize::from(ran.engines.first().is_some_and(|first| first.status == Status::Trap));
        }
        None
    }
}

/// The fast interpreter with a limit for all of its runs.
struct Metered<'a> {
    limits: &'a InterpConfig,
    /// Iterations that may still be run.
    left: Cell<u64>,
}

impl Engine for Metered<'_> {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn device(&self) -> Option<String> {
        None
    }

    fn run(
        &self,
        program: &StageProgram<'_>,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        let fuel = self.left.get().min(MAX_ITERATIONS);
        let config = InterpConfig { fuel: Some(fuel), ..self.limits.clone() };
        let ran = Interpreter { config, is_reference: false }.run(program, symbols, arguments);
        let spent = match &ran {
            Ok(ran) => ran.iterations,
            Err(EngineFault::Skipped(_)) => fuel,
            Err(_) => 0,
        };
        self.left.set(self.left.get() - spent.min(fuel));
        ran
    }
}

/// The inputs that are tried for a pair.
fn inputs_of(order: Order, before: Before<'_>, after: &PrimFunc) -> Vec<(u64, Inputs)> {
    let params = before.program().params();
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
    let gathers = reads_indices(after) || matches!(before, Before::Func(before) if reads_indices(before));
    tried.extend(INPUTS_OF_GATHERS.iter().filter(|_| gathers));
    tried.extend(INPUTS_OF_SCALARS.iter().filter(|_| takes_integers));
    tried.extend(LAST_INPUTS);
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

/// The difference between two runs, if there is one, with the options of `tilewright run` that give it the same inputs.
fn compare(ran: &ChainOutcome, given: &[(String, i128)], inputs: Inputs) -> Option<Counterexample> {
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
    let given: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let given = if given.is_empty() { String::new() } else { format!(", --scalar {}", given.join(",")) };
    let text = format!("both were run (seed {}{chosen}{given}{options}): {text}", ran.seed);
    let (shape, assignments) = (ran.symbols.clone(), ran.scalars.clone());
    Some(Counterexample { shape, assignments, text, ..Counterexample::default() })
}

fn trapped(which: &str, outcome: &EngineOutcome, other: &str) -> String {
    format!("the program {which} traps ({}), the one {other} does not", outcome.detail)
}
