//! A graph and its plan, once they hang together: roots of views, who touches what.

use std::collections::{HashMap, HashSet};

use tilewright_ir::{Graph, MemoryPlan, PoolPlace, TensorRole};

use crate::verdict::{Counterexample, Verdict};

/// A graph with its plan. Every place in it exists, and no view is a view of itself.
#[derive(Debug)]
pub(super) struct Planned<'a> {
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a MemoryPlan,
    /// Of each tensor, the one whose memory it shows: itself, unless it is a view.
    pub(super) roots: Vec<usize>,
    /// Whether the tensor, or a view of it, is given by the caller.
    pub(super) given: Vec<bool>,
    /// Whether the tensor, or a view of it, is taken by the caller.
    pub(super) taken: Vec<bool>,
}

impl<'a> Planned<'a> {
    /// # Errors
    /// What does not hang together: unknown where the graph is at fault, for nothing is claimed of it; refuted where the plan is.
    pub(super) fn new(graph: &'a Graph, plan: &'a MemoryPlan) -> Result<Self, Verdict> {
        let unknown = |reason| Verdict::Unknown(format!("the graph is malformed: {reason}"));
        names_differ(graph).map_err(unknown)?;
        let roots = roots(graph).map_err(unknown)?;
        steps_refer_to_tensors(graph).map_err(unknown)?;
        if graph.tensors.is_empty() {
            return Err(Verdict::Vacuous("the graph has no tensors".into()));
        }
        places_exist(graph, plan)
            .map_err(|text| Verdict::Refuted(Counterexample { text, ..Counterexample::default() }))?;
        let (mut given, mut taken) = (vec![false; roots.len()], vec![false; roots.len()]);
        for (tensor, &root) in graph.tensors.iter().zip(&roots) {
            match tensor.role {
                TensorRole::Input => given[root] = true,
                TensorRole::Output => taken[root] = true,
                TensorRole::Intermediate => {}
            }
        }
        Ok(Self { graph, plan, roots, given, taken })
    }

    pub(super) fn name(&self, tensor: usize) -> &'a str {
        &self.graph.tensors[tensor].name
    }

    pub(super) fn place(&self, tensor: usize) -> PoolPlace {
        self.plan.places[tensor]
    }

    /// A step by its number and name.
    pub(super) fn step_name(&self, step: usize) -> String {
        format!("step {step} `{}`", self.graph.steps[step].name)
    }

    /// What all of it is called in a report.
    pub(super) fn subject(graph: &Graph, plan: &MemoryPlan) -> String {
        format!("{} tensors, {} steps, {} pools", graph.tensors.len(), graph.steps.len(), plan.pools.len())
    }
}

/// Messages name tensors, so names have to tell them apart.
fn names_differ(graph: &Graph) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(graph.tensors.len());
    match graph.tensors.iter().find(|tensor| !seen.insert(tensor.name.as_str())) {
        Some(twice) => Err(format!("two tensors are called `{}`", twice.name)),
        None => Ok(()),
    }
}

/// Follows every chain of views to its end, each link once.
fn roots(graph: &Graph) -> Result<Vec<usize>, String> {
    let n_tensors = graph.tensors.len();
    let mut roots: Vec<Option<usize>> = vec![None; n_tensors];
    // On whose behalf a tensor was passed last: meeting one's own mark is a cycle.
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

fn steps_refer_to_tensors(graph: &Graph) -> Result<(), String> {
    let n_tensors = graph.tensors.len();
    for (number, step) in graph.steps.iter().enumerate() {
        if let Some(tensor) = step.reads.iter().chain(&step.writes).find(|tensor| **tensor >= n_tensors) {
            return Err(format!("step {number} `{}` uses tensor {tensor} of {n_tensors}", step.name));
        }
    }
    Ok(())
}

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

/// What a step does to the memory of roots that it has to leave alone.
pub(super) fn clash(planned: &Planned<'_>, number: usize) -> Option<Counterexample> {
    let step = &planned.graph.steps[number];
    let found = |tensor: usize, text: String| {
        let at = |name: &str, value: usize| (name.to_owned(), i128::try_from(value).unwrap_or(i128::MAX));
        let assignments = vec![at("step", number), at("pool", planned.place(tensor).pool)];
        Some(Counterexample { assignments, text, ..Counterexample::default() })
    };
    let is_texture = |pool: usize| planned.plan.pools[pool].scope.is_texture();
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
