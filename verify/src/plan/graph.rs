//! A graph and its plan, checked for consistency: the roots of views, and which tensors the caller owns.
//!
//! A tensor may be a view of another one, which may be a view itself. All obligations are about roots: the tensors at
//! the end of such chains, which own memory. A root is an input or an output if any of its views is.

use std::collections::{HashMap, HashSet};

use tilewright_ir::{Expr, Graph, MemoryPlan, PoolPlace, PoolRules, PrimFunc, StmtKind, TensorRole};

use crate::reason::{Reason, ReasonKind};
use crate::verdict::{Counterexample, Verdict};

/// A consistent graph and plan: every tensor has a place in an existing pool, and no view is a view of itself.
#[derive(Debug)]
pub(super) struct Planned<'a> {
    /// The graph.
    pub(super) graph: &'a Graph,
    /// The plan.
    pub(super) plan: &'a MemoryPlan,
    /// The rules of the device for textures, if any are asked for.
    pub(super) rules: Option<PoolRules>,
    /// The function of each step, as far as it is known.
    pub(super) functions: &'a [Option<&'a PrimFunc>],
    /// For each tensor the one that owns its memory: itself, unless it is a view.
    pub(super) roots: Vec<usize>,
    /// Whether the root, or a view of it, is an input.
    pub(super) given: Vec<bool>,
    /// Whether the root, or a view of it, is an output.
    pub(super) taken: Vec<bool>,
}

impl<'a> Planned<'a> {
    /// Checks a graph and a plan.
    ///
    /// # Errors
    /// The verdict for all obligations: unknown if the graph is malformed, since nothing is claimed about it; vacuous if it
    /// is empty; refuted if the plan does not fit it.
    pub(super) fn new(
        graph: &'a Graph,
        plan: &'a MemoryPlan,
        rules: Option<PoolRules>,
        functions: &'a [Option<&'a PrimFunc>],
    ) -> Result<Self, Verdict> {
        let unknown = |reason| Verdict::Unknown(Reason::unsupported(format!("the graph is malformed: {reason}")));
        names_differ(graph).map_err(unknown)?;
        let roots = roots(graph).map_err(unknown)?;
        steps_refer_to_tensors(graph).map_err(unknown)?;
        if graph.tensors.is_empty() {
            return Err(Verdict::Vacuous(Reason::new(ReasonKind::Empty, "the graph has no tensors")));
        }
        places_exist(graph, plan)
            .map_err(|text| Verdict::Refuted(Counterexample { text, ..Counterexample::default() }))?;
        let (mut given, mut taken) = (vec![false; roots.len()], vec![false; roots.len()]);
        for (tensor, &root) in graph.tensors.iter().zip(&roots) {
            match tensor.role {
                TensorRole::Input | TensorRole::Constant => given[root] = true,
                TensorRole::Output => taken[root] = true,
                TensorRole::Intermediate => {}
            }
        }
        Ok(Self { graph, plan, rules, functions, roots, given, taken })
    }

    /// The name of a tensor.
    pub(super) fn name(&self, tensor: usize) -> &'a str {
        &self.graph.tensors[tensor].name
    }

    /// The place of a tensor.
    pub(super) fn place(&self, tensor: usize) -> PoolPlace {
        self.plan.places[tensor]
    }

    /// A step by its number and name.
    pub(super) fn step_name(&self, step: usize) -> String {
        format!("step {step} `{}`", self.graph.steps[step].name)
    }

    /// The subject of the reports.
    pub(super) fn subject(graph: &Graph, plan: &MemoryPlan) -> String {
        format!("{} tensors, {} steps, {} pools", graph.tensors.len(), graph.steps.len(), plan.pools.len())
    }
}

/// Checks that no two tensors have the same name, since messages refer to tensors by name.
fn names_differ(graph: &Graph) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(graph.tensors.len());
    match graph.tensors.iter().find(|tensor| !seen.insert(tensor.name.as_str())) {
        Some(twice) => Err(format!("two tensors are called `{}`", twice.name)),
        None => Ok(()),
    }
}

/// The root of every tensor. Each link of a chain of views is followed once.
fn roots(graph: &Graph) -> Result<Vec<usize>, String> {
    let n_tensors = graph.tensors.len();
    let mut roots: Vec<Option<usize>> = vec![None; n_tensors];
    // The start of the last chain that passed a tensor: passing a tensor twice in one chain is a cycle.
    let mut marks: Vec<Option<usize>> = vec![None; n_tensors];
    for start in 0..n_tensors {
        let mut chain = Vec::new();
        let mut at = start;
        let root = loop {
            if let Some(root) = roots[at] {
                break root;
            }
            if marks[at].replace(start) == Some(start) {
                return Err(format!("`{}` is a view of itself", graph.tensors[at].name));
            }
            chain.push(at);
            match graph.tensors[at].view_of {
                None => break at,
                Some(next) if next < n_tensors => at = next,
                Some(next) => {
                    return Err(format!("`{}` is a view of tensor {next} of {n_tensors}", graph.tensors[at].name));
                }
            }
        };
        for link in chain {
            roots[link] = Some(root);
        }
    }
    Ok(roots.into_iter().enumerate().map(|(tensor, root)| root.unwrap_or(tensor)).collect())
}

/// Checks that steps refer to existing tensors.
fn steps_refer_to_tensors(graph: &Graph) -> Result<(), String> {
    let n_tensors = graph.tensors.len();
    for (number, step) in graph.steps.iter().enumerate() {
        if let Some(tensor) = step.reads.iter().chain(&step.writes).find(|tensor| **tensor >= n_tensors) {
            return Err(format!("step {number} `{}` uses tensor {tensor} of {n_tensors}", step.name));
        }
    }
    Ok(())
}

/// Checks that every tensor has a place, in an existing pool.
fn places_exist(graph: &Graph, plan: &MemoryPlan) -> Result<(), String> {
    let (n_tensors, n_places, n_pools) = (graph.tensors.len(), plan.places.len(), plan.pools.len());
    if n_tensors != n_places {
        return Err(format!("the graph has {n_tensors} tensors, the plan places for {n_places}"));
    }
    for (tensor, place) in graph.tensors.iter().zip(&plan.places) {
        if place.pool >= n_pools {
            return Err(format!("`{}` lies in pool {} of {n_pools}", tensor.name, place.pool));
        }
    }
    Ok(())
}

/// How the function of a step uses its parameters in another way than the step: it stores to what the step reads, or a symbol of its shapes
/// cannot be the extent of the tensor.
pub(super) fn other_use(planned: &Planned<'_>, number: usize) -> Option<String> {
    let func = planned.functions.get(number).copied().flatten()?;
    let (step, name) = (&planned.graph.steps[number], planned.step_name(number));
    let tensors = step.reads.iter().chain(&step.writes);
    for (position, (param, &tensor)) in func.params.iter().zip(tensors).enumerate() {
        let Some(buffer) = func.param_buffer(param) else { continue };
        let mut is_stored = false;
        func.body.walk(&mut |stmt| {
            is_stored |= matches!(&stmt.kind, StmtKind::Store { buffer: other, .. } if other.aliases(buffer));
        });
        if is_stored && position < step.reads.len() {
            return Some(format!("{name} only reads `{}`, and `{}` stores to it", planned.name(tensor), func.name));
        }
        let extents = &planned.graph.tensors[tensor].shape;
        for (extent, &value) in buffer.shape.iter().zip(extents).filter(|_| buffer.rank() == extents.len()) {
            if let Expr::Var(var) = extent
                && let Some((_, most)) = var.dtype().scalar.integer_range()
                && i128::from(value) > most
            {
                let tensor = planned.name(tensor);
                return Some(format!(
                    "an extent of `{tensor}` is {value}, which is no value of `{var}` in `{}`",
                    func.name
                ));
            }
        }
    }
    None
}

/// The counterexample of a step that writes memory which it also reads, or which it writes twice, or which the caller owns.
pub(super) fn clash(planned: &Planned<'_>, number: usize) -> Option<Counterexample> {
    let step = &planned.graph.steps[number];
    let found = |tensor: usize, text: String| {
        let at = |name: &str, value: usize| (name.to_owned(), i128::try_from(value).unwrap_or(i128::MAX));
        let assignments = vec![at("step", number), at("pool", planned.place(tensor).pool)];
        Some(Counterexample { assignments, text, ..Counterexample::default() })
    };
    let is_texture = |pool: usize| planned.plan.pools[pool].scope.is_texture();
    // Reads are collected by root, because a view is the memory of its root; and by pool, because an image cannot be
    // read and written by one kernel even in different texels.
    let mut read = HashMap::new();
    let mut read_pools = HashMap::new();
    for &tensor in &step.reads {
        read.entry(planned.roots[tensor]).or_insert(tensor);
        read_pools.entry(planned.place(tensor).pool).or_insert(tensor);
    }
    let mut written = HashMap::new();
    for &tensor in &step.writes {
        let (root, pool) = (planned.roots[tensor], planned.place(tensor).pool);
        let (step, name) = (planned.step_name(number), planned.name(tensor));
        if planned.given[root] {
            return found(tensor, format!("{step} writes `{name}`, which is the caller's"));
        }
        if let Some(&other) = read.get(&root) {
            let other = planned.name(other);
            return found(tensor, format!("{step} writes `{name}` where `{other}` lies, which it reads"));
        }
        if let Some(&other) = read_pools.get(&pool).filter(|_| is_texture(pool)) {
            let other = planned.name(other);
            let text = format!("{step} writes `{name}` and reads `{other}`, which lie in one texture");
            return found(tensor, text);
        }
        if let Some(other) = written.insert(root, tensor) {
            let other = planned.name(other);
            return found(tensor, format!("{step} writes the memory of `{name}` twice, as `{other}` as well"));
        }
    }
    None
}
