//! The obligations of memory plans: tensors that are alive at once are disjoint, all of them fit, and types agree.
//!
//! | id | statement |
//! |---|---|
//! | plan-disjoint | tensors that are alive at once share no byte and no texel; a view lies where its root lies |
//! | plan-fits | each region has exactly the size its tensor needs and lies inside its pool, in both extents for a texture |
//! | plan-type | scopes agree; in a texture element types agree; in a buffer addresses are aligned to the element |
//! | plan-access | no step writes memory that it reads or that the caller passed in; none reads and writes the same texture |
//! | plan-in-place | a step with its result where an operand lies reads each element in the iteration that alone writes it (`in_place`) |
//! | defined | a step reads an element of its result only after it has written it (`defined`); every element of a result that someone reads is written (`whole`) |
//!
//! Only the placement is taken from the planner. Lifetimes are computed by a backward walk over the steps (`live`), sizes by
//! an independent statement of the conventions (`room`), and every counterexample is checked against the definitions
//! before it is reported. A tensor is alive from the step that writes it first (an input from the start) to the last step
//! that accesses it or a view of it (an output or an input to the end), both included. There is one exception: where plan-in-place is
//! asked of a step, the operand ends before it.
//!
//! With the rules of a device ([`PoolRules`]), plan-fits also states that each texture is within the limits and that its width is a
//! multiple of the pitch. Without them, limits are checked when pools are allocated.

mod defined;
mod disjoint;
mod goals;
mod graph;
mod in_place;
mod live;
mod room;
mod touch;
mod whole;

use tilewright_ir::{Graph, MemoryPlan, PoolRules, PrimFunc, Region, Room};

pub use self::defined::FindSources;
use self::graph::Planned;
use self::in_place::Shared;
pub use self::whole::{FindWriters, Stores};
use crate::door::inspected;
use crate::judge::{Decision, Judge, Report};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::reason::{Reason, ReasonKind};
use crate::verdict::{Counterexample, Verdict};

/// The searches that claim which store of the function of a step writes an element. Nothing of it is believed.
#[derive(Clone, Copy)]
pub struct Finders<'f> {
    /// Where the values come from that a function reads of its results.
    pub sources: &'f FindSources<'f>,
    /// Which stores write the elements of a result.
    pub writers: &'f FindWriters<'f>,
}

impl Finders<'_> {
    /// Finders that claim nothing.
    pub const NOTHING: Finders<'static> = Finders { sources: &|_| Vec::new(), writers: &|_| Vec::new() };
}

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
    /// let judge = Judge::new(Config::default(), tilewright_search::strategies())?;
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
        self.check_planned(graph, plan, None, (&[], &Finders::NOTHING))
    }

    /// As [`check_plan`](Self::check_plan); plan-fits also asks that every texture of the plan obeys the rules of a device.
    pub fn check_plan_for(&self, graph: &Graph, plan: &MemoryPlan, rules: PoolRules) -> Vec<Report> {
        self.check_planned(graph, plan, Some(rules), (&[], &Finders::NOTHING))
    }

    /// As [`check_plan_for`](Self::check_plan_for) for a graph whose steps run these functions, one for each step, as far as they are
    /// known: the parameters are what the step reads, then what it writes. Such a step may write its result in place of an operand;
    /// plan-in-place is decided of each one that does. A step may read a result only where it has written it before, and has to write what
    /// others read of it: *defined* is decided of both, with what `find` claims about the functions.
    pub fn check_plan_of(
        &self,
        graph: &Graph,
        plan: &MemoryPlan,
        rules: PoolRules,
        functions: &[Option<&PrimFunc>],
        find: &Finders<'_>,
    ) -> Vec<Report> {
        self.check_planned(graph, plan, Some(rules), (functions, find))
    }

    fn check_planned(
        &self,
        graph: &Graph,
        plan: &MemoryPlan,
        rules: Option<PoolRules>,
        (functions, find): (&[Option<&PrimFunc>], &Finders<'_>),
    ) -> Vec<Report> {
        let planned = Planned::new(graph, plan, rules, functions);
        let decide = |obligation, decide: &dyn Fn(&Planned<'_>) -> Decision| {
            Self::report(obligation, Planned::subject(graph, plan), || match &planned {
                Ok(planned) => decide(planned),
                Err(verdict) => (verdict.clone(), Method::Shape),
            })
        };
        let lives = planned.as_ref().ok().and_then(|planned| live::lives(planned).ok());
        let known = planned.as_ref().ok().zip(lives.as_ref());
        let shared = known.map(|(planned, lives)| in_place::shared(planned, lives)).unwrap_or_default();
        let mut reports = vec![
            decide(Obligation::PlanDisjoint, &|planned| self.plan_disjoint(planned, &shared)),
            decide(Obligation::PlanFits, &|planned| self.plan_fits(planned)),
            decide(Obligation::PlanType, &plan_type),
            decide(Obligation::PlanAccess, &plan_access),
        ];
        reports.extend(planned.iter().flat_map(|planned| in_place::reports(self, planned, &shared)));
        reports.extend(planned.iter().flat_map(|planned| defined::reports(self, planned, find.sources)));
        reports.extend(planned.iter().flat_map(|planned| whole::reports(self, planned, find.writers)));
        reports
    }

    /// Decides plan-disjoint by a sweep over time, and again by Z3 for plans of up to a few thousand pairs. Where a result is in place of an
    /// operand, that one does not live in the step.
    fn plan_disjoint(&self, planned: &Planned<'_>, shared: &[Shared]) -> Decision {
        if let Some(found) = moved_view(planned) {
            return (Verdict::Refuted(found), Method::Evaluation);
        }
        if let Some(reason) = other_kind(planned) {
            return (Verdict::Unknown(Reason::unsupported(reason)), Method::Evaluation);
        }
        let mut lives = match live::lives(planned) {
            Ok(lives) => lives,
            Err(found) => return (Verdict::Refuted(found), Method::Inspection("backward walk")),
        };
        in_place::shortened(&mut lives, shared);
        let verdict = disjoint::sweep(planned, &lives);
        let method = Method::Inspection("backward walk, sweep");
        if verdict.is_proved() {
            return goals::disjoint(self, planned, &lives, method);
        }
        (verdict, method)
    }

    /// Decides plan-fits by evaluation, and again by Z3 for plans of up to a few thousand tensors.
    fn plan_fits(&self, planned: &Planned<'_>) -> Decision {
        let unfit = |pool| room::no_pool(planned, pool).or_else(|| room::against_rules(planned, pool));
        let pools = (0..planned.plan.pools.len()).find_map(unfit);
        let decided =
            evaluated(pools.or_else(|| (0..planned.roots.len()).find_map(|tensor| room::misfit(planned, tensor))));
        if decided.0.is_proved() {
            return goals::fits(self, planned, decided.1);
        }
        decided
    }
}

/// Decides plan-type by evaluation.
fn plan_type(planned: &Planned<'_>) -> Decision {
    evaluated((0..planned.roots.len()).find_map(|tensor| room::mismatch(planned, tensor)))
}

/// Decides plan-access by evaluation; vacuous without steps.
fn plan_access(planned: &Planned<'_>) -> Decision {
    if planned.graph.steps.is_empty() {
        return (Verdict::Vacuous(Reason::new(ReasonKind::Empty, "the graph has no steps")), Method::Evaluation);
    }
    let steps = 0..planned.graph.steps.len();
    let decided = evaluated(steps.clone().find_map(|step| graph::clash(planned, step)));
    match steps.filter(|_| decided.0.is_proved()).find_map(|step| graph::other_use(planned, step)) {
        Some(reason) => (Verdict::Unknown(Reason::unsupported(reason)), Method::Evaluation),
        None => decided,
    }
}

/// Refuted by a counterexample; proved if there is none.
fn evaluated(found: Option<Counterexample>) -> Decision {
    (found.map_or_else(inspected, Verdict::Refuted), Method::Evaluation)
}

/// The counterexample of a view that does not lie where its root lies.
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

/// Why a region and its pool cannot be compared: one is measured in bytes and the other in texels.
fn other_kind(planned: &Planned<'_>) -> Option<String> {
    let other = |tensor: &usize| {
        let place = planned.place(*tensor);
        let is_bytes = matches!(place.region, Region::Bytes { .. });
        is_bytes != matches!(planned.plan.pools[place.pool].room, Room::Bytes(_))
    };
    let tensor = (0..planned.roots.len()).find(other)?;
    Some(format!("the region of `{}` is of another kind than its pool", planned.name(tensor)))
}
