//! Steps in place: which steps of a graph may write their result where an operand lies, by the judge's answer about their functions.
//!
//! The planner offers the pairs that could share memory, the judge is asked about the function of each step, and the planner gets those
//! that are proved. The plan is judged afterwards, so that none of this is trusted.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::{Diagnostic, Graph, InPlace, MemoryPlan, Module, PoolRules, PrimFunc};
use tilewright_verify::Judge;

use crate::graph::{NamedGraph, check};
use crate::passes::Pipeline;
use crate::pipeline::Program;
use crate::planner::{self, Lifetime};

/// The function that runs a step: the one that it names, or the one with its name.
fn name_of(graph: &NamedGraph, step: usize) -> &str {
    graph.functions.get(step).and_then(Option::as_deref).unwrap_or(&graph.graph.steps[step].name)
}

/// The function of each step, as far as the module has it.
pub(in crate::cli) fn functions<'a>(graph: &NamedGraph, module: &'a Module) -> Vec<Option<&'a PrimFunc>> {
    let known: BTreeMap<&str, &PrimFunc> = module.funcs.iter().map(|func| (func.name.as_str(), func)).collect();
    (0..graph.graph.steps.len()).map(|step| known.get(name_of(graph, step)).copied()).collect()
}

/// The functions of the steps that could work in place, after the passes and without a proof of them. A function that a pass refuses is
/// left out.
///
/// # Errors
/// The first defect of the graph.
pub(in crate::cli) fn unproved(
    graph: &NamedGraph,
    rules: PoolRules,
    programs: &[Program],
) -> Result<Module, Diagnostic> {
    let pairs = planner::candidates(&graph.graph, rules)?;
    let wanted: BTreeSet<&str> = pairs.iter().map(|pair| name_of(graph, pair.step)).collect();
    let wanted = programs.iter().filter(|program| wanted.contains(program.func.name.as_str()));
    Ok(Module { funcs: wanted.filter_map(passed).collect() })
}

/// A program after the passes.
fn passed(program: &Program) -> Option<PrimFunc> {
    let mut func = program.scheduled_func().clone();
    for call in Pipeline::default().calls(&func).ok()? {
        if !call.runs_on(&func) {
            continue;
        }
        func = (call.pass.run)(&call.ask(&func).ok()?).ok()?.func;
    }
    Some(func)
}

/// The operands and results that may share memory, because the judge has proved it of the functions of their steps.
///
/// # Errors
/// The first defect of the graph.
pub(in crate::cli) fn pairs(
    judge: &Judge,
    graph: &Graph,
    rules: PoolRules,
    functions: &[Option<&PrimFunc>],
) -> Result<Vec<InPlace>, Diagnostic> {
    let roots = check::roots_of(graph).unwrap_or_default();
    let mut known: BTreeMap<(&str, Vec<usize>, usize), bool> = BTreeMap::new();
    let mut is_proved = |pair: &InPlace| {
        let Some(func) = functions.get(pair.step).copied().flatten() else { return false };
        let step = &graph.steps[pair.step];
        let reads = step.reads.iter().enumerate().filter(|(_, tensor)| roots[**tensor] == pair.operand);
        let operands: Vec<usize> = reads.map(|(position, _)| position).collect();
        let Some(result) = step.writes.iter().position(|&tensor| tensor == pair.result) else { return false };
        let result = step.reads.len() + result;
        let ask = || judge.check_in_place(func, &operands, result).verdict.is_proved();
        *known.entry((&func.name, operands.clone(), result)).or_insert_with(ask)
    };
    Ok(planner::candidates(graph, rules)?.into_iter().filter(|pair| is_proved(pair)).collect())
}

/// The pairs that share memory in a plan.
pub(in crate::cli) fn taken(pairs: &[InPlace], plan: &MemoryPlan) -> Vec<InPlace> {
    let place = |tensor: usize| plan.places.get(tensor);
    pairs.iter().filter(|pair| place(pair.operand) == place(pair.result)).copied().collect()
}

/// The lifetime of each tensor's memory; an operand hands it over before the step that works in place.
///
/// # Errors
/// The first defect of the graph.
pub(in crate::cli) fn lifetimes(graph: &Graph, taken: &[InPlace]) -> Result<Vec<Lifetime>, Diagnostic> {
    let mut lifetimes = planner::lifetimes(graph)?;
    let roots = check::roots_of(graph).unwrap_or_default();
    for (life, root) in lifetimes.iter_mut().zip(&roots) {
        if let Some(pair) = taken.iter().find(|pair| pair.operand == *root) {
            life.last = pair.step.saturating_sub(1).max(life.first);
        }
    }
    Ok(lifetimes)
}
