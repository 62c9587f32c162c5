//! Checks memory plans of generated graphs: the judge proves each plan, a simulation executes it
//! without a violation, the best strategy is no worse than the others, and plans read back as written. On
//! plans with one thing changed, the judge and the simulation have to agree.

use tilewright_ir::{Graph, MemoryPlan, TextureLimits};
use tilewright_verify::{Config as Budget, Judge, Verdict};

use crate::graph::{GraphCase, simulate, strategy};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use tilewright_memory::graph::{Document, NamedGraph, check, read, write};
use tilewright_memory::planner::{Figures, Strategy, figures, plan_within};

/// A planner.
type Plan = fn(&Graph, Strategy, TextureLimits) -> Result<MemoryPlan, tilewright_ir::Diagnostic>;

/// The oracle `planner`; see the module. The planner is a field so that tests can replace it.
#[derive(Debug)]
pub struct Planner {
    judge: Judge,
    plan: Plan,
}

impl Planner {
    /// Creates the oracle with a judge on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, ..Budget::default() };
        let judge = Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string())?;
        Ok(Self { judge, plan: plan_within })
    }

    /// The judge's verdict on a plan: the worst of all obligations.
    fn verdict(&self, graph: &Graph, plan: &MemoryPlan) -> PlanVerdict {
        let reports = self.judge.check_plan(graph, plan);
        let mut verdict = PlanVerdict::Proved;
        for report in &reports {
            match &report.verdict {
                Verdict::Proved(_) => {}
                Verdict::Refuted(found) => return PlanVerdict::Refuted(report.obligation.id(), found.to_string()),
                other => verdict = PlanVerdict::Neither(report.obligation.id(), other.to_string()),
            }
        }
        if reports.len() < 4 { PlanVerdict::Neither("plan", "obligations are missing".into()) } else { verdict }
    }

    /// Makes the plan of each strategy and checks it.
    fn plans(&self, case: &GraphCase, graph: &NamedGraph, tally: &mut Tally) -> Result<Vec<MemoryPlan>, Outcome> {
        let limits = case.limits();
        let mut plans = Vec::new();
        for number in 0..3 {
            let plan = (self.plan)(&graph.graph, strategy(number), limits);
            let plan = plan.map_err(|fault| Failure::outcome("a graph is not planned", fault.to_string()))?;
            sound(self, graph, &plan, strategy(number), tally)?;
            within(&plan, limits)?;
            round_trip(graph, &plan)?;
            plans.push(plan);
        }
        tally.count("plans", 3);
        amounts(graph, &plans, limits)?;
        Ok(plans)
    }

    /// Compares the judge with the simulation on changed plans.
    fn changed(&self, case: &GraphCase, graph: &Graph, plans: &[MemoryPlan], tally: &mut Tally) -> Result<(), Outcome> {
        // The graph was planned, so its views have roots.
        let roots = check::roots_of(graph).unwrap_or_default();
        for mutation in &case.changes {
            let plan = &plans[usize::from(mutation.strategy % 3)];
            let changed = mutation.change.apply(plan, &roots);
            if changed == *plan {
                tally.count("changes that change nothing", 1);
                continue;
            }
            let Some(run) = simulate(graph, &changed) else {
                tally.count("changed plans too large to run", 1);
                continue;
            };
            let name = mutation.change.name();
            match (self.verdict(graph, &changed), run) {
                (PlanVerdict::Proved, Ok(())) => tally.count("changed plans proved", 1),
                (PlanVerdict::Refuted(..), Err(_)) => tally.count("changed plans refuted", 1),
                // The judge may leave a plan open; it must not contradict the simulation.
                (PlanVerdict::Neither(..), _) => tally.count("changed plans undecided", 1),
                (PlanVerdict::Proved, Err(violation)) => {
                    let what = format!("a plan is proved though {}", violation.what);
                    return Err(Failure::outcome(what, format!("{name}: {}: {changed:?}", violation.detail)));
                }
                (PlanVerdict::Refuted(obligation, why), Ok(())) => {
                    let what = format!("{obligation} is refuted of a plan that runs");
                    return Err(Failure::outcome(what, format!("{name}: {why}: {changed:?}")));
                }
            }
        }
        Ok(())
    }
}

/// The verdict on a plan; unless it is proved, with an obligation and the reason.
enum PlanVerdict {
    Proved,
    Refuted(&'static str, String),
    Neither(&'static str, String),
}

/// Checks that the simulation finds no violation and that the judge proves the plan.
fn sound(
    planner: &Planner,
    graph: &NamedGraph,
    plan: &MemoryPlan,
    strategy: Strategy,
    tally: &mut Tally,
) -> Result<(), Outcome> {
    match simulate(&graph.graph, plan) {
        None => tally.count("plans too large to run", 1),
        Some(Ok(())) => tally.count("plans run", 1),
        Some(Err(violation)) => {
            let what = format!("{strategy:?}: {}", violation.what);
            return Err(Failure::outcome(what, format!("{}: {plan:?}", violation.detail)));
        }
    }
    match planner.verdict(&graph.graph, plan) {
        PlanVerdict::Proved => Ok(()),
        PlanVerdict::Refuted(obligation, why) | PlanVerdict::Neither(obligation, why) => {
            let what = format!("{strategy:?}: {obligation} is not proved");
            Err(Failure::outcome(what, format!("{why}: {plan:?}")))
        }
    }
}

/// Checks that no texture exceeds the limits.
fn within(plan: &MemoryPlan, limits: TextureLimits) -> Result<(), Outcome> {
    let large = plan.pools.iter().find(|pool| match pool.room {
        tilewright_ir::Room::Bytes(_) => false,
        tilewright_ir::Room::Texels { width, height } => width > limits.width || height > limits.height,
    });
    large.map_or(Ok(()), |pool| {
        Err(Failure::outcome("a texture is above the limits", format!("{pool:?}, limits {limits}")))
    })
}

/// Checks that the best plan takes no more than the others, and none less than the lower bound.
fn amounts(graph: &NamedGraph, plans: &[MemoryPlan], limits: TextureLimits) -> Result<(), Outcome> {
    for (number, plan) in (0_u8..).zip(plans) {
        let all = figures(&graph.graph, plan, limits);
        let Figures { parts, .. } = all.map_err(|fault| Failure::outcome("no figures", fault.to_string()))?;
        for part in &parts {
            let found = part.amounts;
            // The tokens of the compatible planner may grow by more than sharing saves.
            let most = match strategy(number) {
                Strategy::Unshared => found.unshared,
                Strategy::Compatible => found.compatible,
                Strategy::Best => found.compatible.min(found.unshared),
            };
            if found.lower_bound > found.planned || found.planned > most {
                let what = format!("{:?} takes more or less than it can", strategy(number));
                return Err(Failure::outcome(what, format!("{part:?}")));
            }
        }
    }
    Ok(())
}

/// Checks that a plan reads back as it was written.
fn round_trip(graph: &NamedGraph, plan: &MemoryPlan) -> Result<(), Outcome> {
    let text =
        write(graph, Some(plan)).map_err(|fault| Failure::outcome("a plan is not written", fault.to_string()))?;
    let back = read(&text).map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        Failure::outcome("a written plan is not read", format!("{first}\n{text}"))
    })?;
    if back == (Document { graph: graph.clone(), plan: Some(plan.clone()) }) {
        Ok(())
    } else {
        Err(Failure::outcome("a written plan reads back as another", text))
    }
}

impl Oracle for Planner {
    type Case = GraphCase;

    const NAME: &'static str = "planner";

    fn check(&mut self, case: &GraphCase, tally: &mut Tally) -> Outcome {
        let graph = match case.build() {
            Ok(graph) if !graph.graph.steps.is_empty() => graph,
            Ok(_) => return Outcome::Invalid("no steps".into()),
            Err(faults) => return Outcome::Invalid(faults.first().map_or("", |fault| fault.code).to_owned()),
        };
        let changed = self.plans(case, &graph, tally).and_then(|plans| self.changed(case, &graph.graph, &plans, tally));
        changed.err().unwrap_or(Outcome::Held)
    }
}

#[cfg(test)]
mod tests {
    use arbitrary::Unstructured;

    use super::*;
    use crate::{Case, Config, bytes};

    /// The number of graphs, out of a few, on which a planner is found to be wrong.
    fn found(plan: Plan) -> usize {
        let mut planner = Planner::new(&Environment::default()).unwrap();
        planner.plan = plan;
        let cases = (0..40).map(|number| bytes::of_case(9, "planner", number));
        let cases = cases.map(|bytes| GraphCase::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap());
        let mut tally = Tally::default();
        cases.filter(|case| matches!(planner.check(case, &mut tally), Outcome::Failed(_))).count()
    }

    #[test]
    fn the_planner_holds_and_broken_ones_are_flagged() {
        assert_eq!(found(plan_within), 0);
        // The last two places are one.
        let shares = |graph: &Graph, strategy, limits| {
            let mut plan = plan_within(graph, strategy, limits)?;
            if let [.., one, last] = plan.places.as_mut_slice() {
                one.pool = last.pool;
            }
            Ok(plan)
        };
        assert!(found(shares) > 5);
        // A pool is a byte or a row short.
        let short = |graph: &Graph, strategy, limits| {
            let mut plan = plan_within(graph, strategy, limits)?;
            match plan.pools.last_mut().map(|pool| &mut pool.room) {
                Some(tilewright_ir::Room::Bytes(bytes)) => *bytes = bytes.saturating_sub(1),
                Some(tilewright_ir::Room::Texels { height, .. }) => *height -= 1,
                None => {}
            }
            Ok(plan)
        };
        assert!(found(short) > 20);
        // The best plan is the compatible one with an unused pool.
        let wastes = |graph: &Graph, strategy, limits| {
            let mut plan = plan_within(graph, Strategy::Compatible, limits)?;
            if strategy == Strategy::Best {
                plan.pools.push(plan.pools[0].clone());
            }
            Ok(plan)
        };
        assert!(found(wastes) > 20);
    }
}
