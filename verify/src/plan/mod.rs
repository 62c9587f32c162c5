//! Obligations of memory plans: what lives at once lies apart, everything fits, types agree.
//!
//! | id | means |
//! |---|---|
//! | plan-disjoint | tensors that live at once share no byte and no texel; views lie where their root lies |
//! | plan-fits | each region is exactly the room its tensor needs, and lies inside its pool, in both extents for a texture |
//! | plan-type | scopes agree; in a texture element types agree; in a buffer addresses are aligned to the element |
//! | plan-access | no step writes memory that it reads or that the caller gave, and none reads and writes one texture |
//!
//! Nothing is taken from the planner but the places. Lives are found by walking backwards over the steps (`live`), rooms
//! are computed by a statement of the conventions of its own (`room`), and what is refuted is looked at once more by the
//! bare definitions before it is reported. A tensor lives from the step that writes it first (an input from the start) to
//! the step that touches it or a view of it last (an output or an input to the end), both included.
//!
//! The limits of a device on the size of a texture are not an obligation of the plan: who allocates the pools asks for them.

mod disjoint;
mod goals;
mod graph;
mod live;
mod room;

use tilewright_ir::{Graph, MemoryPlan, Region, Room};

use self::graph::Planned;
use crate::judge::{Decision, Judge, Report};
use crate::verdict::{Counterexample, Verdict};

impl Judge {
    /// Decides plan-disjoint, plan-fits, plan-type and plan-access of a plan for a graph.
    ///
    /// ```
    /// use tilewright_ir::{Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, Region, Room};
    /// use tilewright_ir::{ScalarType, Scope, TensorRole};
    /// use tilewright_verify::{Config, Judge, Verdict};
    /// let tensor = |name: &str, role| GraphTensor {
    ///     name: name.into(), shape: vec![3, 5], dtype: ScalarType::Float32.into(), scope: Scope::Global,
    ///     axis_separators: vec![], view_of: None, role,
    /// };
    /// let graph = Graph {
    ///     tensors: vec![tensor("x", TensorRole::Input), tensor("y", TensorRole::Output)],
    ///     steps: vec![GraphStep { name: "relu".into(), reads: vec![0], writes: vec![1] }],
    /// };
    /// let pool = |bytes| Pool { scope: Scope::Global, dtype: ScalarType::Float32.into(), room: Room::Bytes(bytes) };
    /// let at = |offset| PoolPlace { pool: 0, region: Region::Bytes { offset, size: 60 } };
    /// let plan = MemoryPlan { pools: vec![pool(120)], places: vec![at(0), at(60)] };
    /// let judge = Judge::new(Config::default())?;
    /// assert!(judge.check_plan(&graph, &plan).iter().all(|report| report.verdict.is_proved()));
    /// let broken = MemoryPlan { places: vec![at(0), at(56)], ..plan };
    /// let reports = judge.check_plan(&graph, &broken);
    /// assert_eq!(
    ///     reports[0].verdict.to_string(),
    ///     "refuted: `x` (alive from the start to the end) and `y` (alive from step 0 `relu` to the end) \
    ///      share memory in step 0 `relu` at pool = 0, step = 0, byte = 56",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_plan(&self, graph: &Graph, plan: &MemoryPlan) -> Vec<Report> {
        let planned = Planned::new(graph, plan);
        let decide = |obligation, decide: fn(&Self, &Planned<'_>) -> Decision| {
            Self::report(obligation, Planned::subject(graph, plan), || match &planned {
                Ok(planned) => decide(self, planned),
                Err(verdict) => (verdict.clone(), "shape".into()),
            })
        };
        vec![
            decide("plan-disjoint", Self::plan_disjoint),
            decide("plan-fits", Self::plan_fits),
            decide("plan-type", |_, planned| plan_type(planned)),
            decide("plan-access", |_, planned| plan_access(planned)),
        ]
    }

    fn plan_disjoint(&self, planned: &Planned<'_>) -> Decision {
        if let Some(found) = moved_view(planned) {
            return (Verdict::Refuted(found), "evaluation".into());
        }
        if let Some(reason) = other_kind(planned) {
            return (Verdict::Unknown(reason), "evaluation".into());
        }
        let lives = match live::lives(planned) {
            Ok(lives) => lives,
            Err(found) => return (Verdict::Refuted(found), "backward walk".into()),
        };
        let verdict = disjoint::sweep(planned, &lives);
        let method = "backward walk, sweep".to_owned();
        if verdict.is_proved() && self.is_recording() {
            return goals::disjoint(self, planned, &lives, &method);
        }
        (verdict, method)
    }

    fn plan_fits(&self, planned: &Planned<'_>) -> Decision {
        let pools = (0..planned.plan.pools.len()).find_map(|pool| room::no_pool(planned, pool));
        let decided =
            evaluated(pools.or_else(|| (0..planned.roots.len()).find_map(|tensor| room::misfit(planned, tensor))));
        if decided.0.is_proved() && self.is_recording() {
            return goals::fits(self, planned, &decided.1);
        }
        decided
    }
}

fn plan_type(planned: &Planned<'_>) -> Decision {
    evaluated((0..planned.roots.len()).find_map(|tensor| room::mismatch(planned, tensor)))
}

fn plan_access(planned: &Planned<'_>) -> Decision {
    if planned.graph.steps.is_empty() {
        return (Verdict::Vacuous("the graph has no steps".into()), "evaluation".into());
    }
    evaluated((0..planned.graph.steps.len()).find_map(|step| graph::clash(planned, step)))
}

fn evaluated(found: Option<Counterexample>) -> Decision {
    (found.map_or(Verdict::Proved, Verdict::Refuted), "evaluation".into())
}

/// A view that does not lie where its root lies.
fn moved_view(planned: &Planned<'_>) -> Option<Counterexample> {
    let moved = |(tensor, root): &(usize, &usize)| planned.place(*tensor) != planned.place(**root);
    let (view, &root) = planned.roots.iter().enumerate().find(moved)?;
    let text = format!("`{}` is a view of `{}` and lies elsewhere", planned.name(view), planned.name(root));
    let number = |pool: usize| i128::try_from(pool).unwrap_or(i128::MAX);
    let assignments = vec![
        ("pool".to_owned(), number(planned.place(view).pool)),
        ("root's pool".to_owned(), number(planned.place(root).pool)),
    ];
    Some(Counterexample { assignments, text, ..Counterexample::default() })
}

/// A region that is no part of its pool, because one is measured in bytes and the other in texels.
fn other_kind(planned: &Planned<'_>) -> Option<String> {
    let other = |tensor: &usize| {
        let place = planned.place(*tensor);
        let is_bytes = matches!(place.region, Region::Bytes { .. });
        is_bytes != matches!(planned.plan.pools[place.pool].room, Room::Bytes(_))
    };
    let tensor = (0..planned.roots.len()).find(other)?;
    Some(format!("the region of `{}` is of another kind than its pool", planned.name(tensor)))
}
