//! How often the instances of a block run in a round, and in which order.
//!
//! ```text
//! for a, k in T.grid(10, 96):                    a and k decide the instance: (a, k) -> (i_0 * 8 + a, k) is injective
//!     with T.sblock("P"):
//!         i = T.axis.spatial(34, i_0 * 8 + a)    all values of r run for each i, and k = 0, which initialises, comes first
//!         r = T.axis.reduce(96, k)
//! ```
//!
//! Two statements are about two iterations of one round: the way of the first, then that of the second with variables of its own.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{AxisKind, BlockAxis, Expr, UnaryOp, Var, sabotage};

use super::memory::{Blocks, looped};
use super::{Placed, actions, either, same, truth};
use crate::judge::{Decision, Judge, all_of, suspected, unsupported};
use crate::lanes::{one_to_one, renamed};
use crate::path::{Path, Step};
use crate::verdict::Verdict;

/// Two iterations of a round.
struct Twice {
    /// The way to both.
    both: Path,
    /// The steps of the first one in the round.
    own: Path,
    /// The variables of the second one.
    renames: Substitution,
}

impl Placed<'_> {
    /// The number of steps before the first loop that counts a reduced or scanned axis.
    pub(super) fn counting(&self) -> usize {
        let behind = self.behind(self.counted().map(|(_, value)| value));
        self.first_loop(|var| behind.contains(var))
    }

    /// The number of steps before the first loop that counts a reduced or scanned axis, or another axis together with one: an element may
    /// move with it.
    pub(super) fn ordering(&self) -> usize {
        let mut behind = self.behind(self.counted().map(|(_, value)| value));
        let is_loop = |var: &Var| self.path.steps.iter().skip(self.outside).filter_map(looped).any(|own| own == var);
        behind.retain(is_loop);
        loop {
            let before = behind.len();
            for value in &self.parts.bindings {
                let loops: Vec<Var> = self.behind([*value]).into_iter().filter(is_loop).collect();
                if loops.iter().any(|var| behind.contains(var)) {
                    behind.extend(loops);
                }
            }
            if behind.len() == before {
                break;
            }
        }
        self.first_loop(|var| behind.contains(var))
    }

    /// The number of steps before the first loop that runs nothing but the block.
    pub(super) fn alone(&self) -> usize {
        let n_actions = actions(self.stmt);
        self.first_loop(|var| self.loops.actions.get(var) == Some(&n_actions))
    }

    /// The number of steps before the first loop like this inside the outer block; all of them if there is none.
    fn first_loop(&self, is_like: impl Fn(&Var) -> bool) -> usize {
        let is_first = |step: &Step| matches!(step, Step::Loop(var, ..) if is_like(var));
        let mut steps = self.path.steps.iter().enumerate().skip(self.outside);
        steps.find(|(_, step)| is_first(step)).map_or(self.path.steps.len(), |(at, _)| at)
    }

    /// The steps that all iterations of a round share, and the others; or why there are no rounds to speak of.
    fn split(&self, round: usize) -> Result<(Path, Path), String> {
        self.decided(round)?;
        let running = self.running();
        let (mut shared, mut own) = (Vec::new(), Vec::new());
        for (at, step) in running.steps.iter().enumerate() {
            if at < round { shared.push(step.clone()) } else { own.push(step.clone()) }
        }
        let path = |steps: Vec<Step>| Path { steps: steps.into_iter().collect(), ..running.clone() };
        Ok((path(shared), path(own)))
    }

    /// Two iterations of a round.
    fn twice(&self, round: usize) -> Result<Twice, String> {
        let (shared, own) = self.split(round)?;
        let (second, renames) = renamed(&own);
        let mut both = shared;
        both.steps.extend(own.steps.iter().cloned());
        both.steps.extend(second.steps.iter().cloned());
        Ok(Twice { both, own, renames })
    }

    /// In a round, an instance determines its iteration. Outside of the loops that count reduced axes that is unknown where it does not
    /// hold: the loop may be what was left of the tiles of a consumer. Where an axis is opaque, nothing is said about such loops.
    pub(super) fn once(&self, judge: &Judge, is_open: bool, blocks: &Blocks<'_>) -> Decision {
        let counting = self.counting();
        let alone = match (is_open, self.repeats(blocks)) {
            (true, _) => counting,
            (false, false) => self.in_memory(),
            (false, true) => self.alone().min(counting),
        };
        let wide = self.once_from(judge, alone);
        if wide.0.is_proved() || alone == counting && self.counted().next().is_some() {
            return wide;
        }
        if counting == self.path.steps.len() {
            return suspected(wide);
        }
        match self.once_from(judge, counting) {
            narrow if narrow.0.is_proved() => suspected(wide),
            narrow => narrow,
        }
    }

    fn once_from(&self, judge: &Judge, round: usize) -> Decision {
        let Twice { mut both, own, renames } = match self.twice(round) {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        let by_map = self.by_map(judge, &own, round);
        if by_map.0.is_proved() {
            return by_map;
        }
        for value in &self.parts.bindings {
            both.steps.push(Step::Guard(same(value, &renames.apply(value)), true));
        }
        let loops = own.loops();
        let is_same = |var: &Var| same(&Expr::from(var), &renames.apply(&Expr::from(var)));
        all_of(loops.iter().map(|var| self.holds(judge, &both, &is_same(var))))
    }

    /// The map from the loops of a round to the axes is injective.
    fn by_map(&self, judge: &Judge, own: &Path, round: usize) -> Decision {
        let bound = |step: &Step| match step {
            Step::Loop(var, ..) | Step::Let(var, _) => Some(var.clone()),
            Step::Guard(..) => None,
        };
        let outside: Vec<Var> = self.path.steps.iter().take(round).filter_map(bound).collect();
        let range = |step: &Step| match step {
            Step::Loop(var, min, extent) => Some((var.clone(), min.clone(), extent.clone())),
            Step::Let(..) | Step::Guard(..) => None,
        };
        let loops: Vec<_> = own.steps.iter().filter_map(range).collect();
        let values: Vec<Expr> = self.parts.bindings.iter().map(|&value| value.clone()).collect();
        let shape: Vec<Expr> = self.block.axes.iter().map(|axis| axis.extent.clone()).collect();
        one_to_one(judge, (&self.path, &outside), &loops, &values, &shape)
    }

    /// In a round, each value of the counted axes occurs together with the other axes of each iteration: the claimed values of the
    /// loops that count them are an iteration, and lead to it. What `T.where` leaves out may be an instance that would leave a buffer, if it is
    /// not the one that initialises.
    pub(super) fn all_run(&self, judge: &Judge) -> Decision {
        let claim = &self.claim.counted;
        let round = self.counting();
        let (mut path, own) = match self.in_one_memory(round).and_then(|()| self.split(round)) {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        if own.steps.iter().any(|step| matches!(step, Step::Let(..))) {
            return unsupported(format!("a binding stands between the loops of block {}", self.block.name));
        }
        let others = || self.axes().filter(|(axis, _)| !is_counted(axis)).map(|(_, value)| value);
        // A loop outside of the round has one value in it.
        if let Some((var, _)) = claim.iter().find(|(var, _)| !own.loops().contains(var)) {
            return unsupported(format!("loop {var} counts a reduced axis from outside of the block around"));
        }
        if let Some((var, _)) = claim.iter().find(|(var, _)| others().any(|value| value.vars().contains(var))) {
            return unsupported(format!("loop {var} counts a reduced axis and another one"));
        }
        path.steps.extend(own.steps.iter().cloned());
        for (axis, value) in self.axes() {
            path.steps.push(if is_counted(axis) {
                Step::Loop(axis.var.clone(), axis.min.clone(), axis.extent.clone())
            } else {
                Step::Let(axis.var.clone(), value.clone())
            });
        }
        let there = Substitution::new(claim.iter().map(|(var, _)| var), claim.iter().map(|(_, value)| value.clone()));
        let mut needed: Vec<Expr> = Vec::new();
        let n_before = own.steps.len() - usize::from(self.parts.predicate.is_some());
        for step in own.steps.iter().take(n_before) {
            needed.extend(step.conditions(&there).unwrap_or_default());
        }
        needed.extend(self.counted().map(|(axis, value)| same(&there.apply(value), &Expr::from(&axis.var))));
        let mut possible = path.clone();
        possible.steps.extend(self.possible(judge).into_iter().map(|cond| Step::Guard(cond, true)));
        let predicate = self.parts.predicate.map(|cond| there.apply(cond));
        let needed = needed.iter().map(|cond| self.holds(judge, &path, cond));
        all_of(needed.chain(predicate.iter().map(|cond| self.holds(judge, &possible, cond))))
    }

    /// What is shown of the order of an element is shown for all loops that move it. Where it does not hold for these, it may be computed
    /// again for the tiles of a consumer: a refutation is about the loops that count the reduced and scanned axes.
    fn in_order(&self, decide: impl Fn(usize) -> Decision) -> Decision {
        let (counting, wide) = (self.counting(), decide(self.ordering()));
        if !matches!(wide.0, Verdict::Refuted(_)) || counting == self.ordering() {
            return wide;
        }
        match decide(counting) {
            narrow if matches!(narrow.0, Verdict::Refuted(_)) => narrow,
            _ => suspected(wide),
        }
    }

    /// In a round, no iteration of an element comes before the one that initialises it.
    pub(super) fn init_first(&self, judge: &Judge, blocks: &Blocks<'_>) -> Decision {
        self.in_order(|round| self.init_first_from(judge, blocks, round))
    }

    fn init_first_from(&self, judge: &Judge, blocks: &Blocks<'_>, round: usize) -> Decision {
        let memory = self.begins(blocks).and_then(|()| self.in_one_memory(round));
        let Twice { mut both, own, renames } = match memory.and_then(|()| self.twice(round)) {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        // The domain of an axis may depend on the axes before it.
        let values =
            Substitution::new(self.axes().map(|(axis, _)| &axis.var), self.axes().map(|(_, value)| value.clone()));
        for (axis, value) in self.axes() {
            let second = renames.apply(value);
            let first = || renames.apply(&values.apply(&axis.min));
            let known = if axis.kind == AxisKind::Reduce { same(&second, &first()) } else { same(value, &second) };
            both.steps.push(Step::Guard(known, true));
        }
        let in_order = || self.holds(judge, &both, &Expr::unary(UnaryOp::Not, is_earlier(&own.loops(), &renames)));
        all_of(std::iter::once_with(in_order).chain(std::iter::once_with(|| self.elements_apart(judge))))
    }

    /// In a round, the instances of an element run in the order of the scanned axes, the first one first, and no two of them at once.
    pub(super) fn upwards(&self, judge: &Judge) -> Decision {
        self.in_order(|round| self.upwards_from(judge, round))
    }

    fn upwards_from(&self, judge: &Judge, round: usize) -> Decision {
        let Twice { mut both, own, renames } = match self.in_one_memory(round).and_then(|()| self.twice(round)) {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        let of_kind = |kind: AxisKind| self.axes().filter(move |(axis, _)| axis.kind == kind).map(|(_, value)| value);
        for value in of_kind(AxisKind::Spatial) {
            both.steps.push(Step::Guard(same(value, &renames.apply(value)), true));
        }
        let mut is_upwards = truth(true);
        for value in of_kind(AxisKind::Scan).collect::<Vec<_>>().into_iter().rev() {
            let (one, two) = (value.clone(), renames.apply(value));
            is_upwards = either(one.clone().lt(two.clone()), same(&one, &two).and(is_upwards));
        }
        let loops = own.loops();
        let mut ordered = both.clone();
        ordered.steps.push(Step::Guard(is_earlier(&loops, &renames), true));
        if sabotage::on("scan-in-any-order") {
            is_upwards = truth(true);
        }
        let in_order = || self.holds(judge, &ordered, &is_upwards);
        let is_at_once = |at: &usize| {
            self.loops.kinds.get(&loops[*at]).is_none_or(|kind| kind.is_concurrent()) && !sabotage::on("scan-at-once")
        };
        let at_once = (0..loops.len()).filter(is_at_once).map(|at| {
            // Iterations of a concurrent loop are compared in one iteration of the loops outside of it.
            let mut path = both.clone();
            for var in &loops[..at] {
                path.steps.push(Step::Guard(same(&Expr::from(var), &renames.apply(&Expr::from(var))), true));
            }
            let (one, two) = (Expr::from(&loops[at]), renames.apply(&Expr::from(&loops[at])));
            path.steps.push(Step::Guard(one.lt(two), true));
            all_of(of_kind(AxisKind::Scan).map(|value| self.holds(judge, &path, &same(value, &renames.apply(value)))))
        });
        all_of(std::iter::once_with(in_order).chain(at_once))
    }
}

/// Whether the values of an axis come one after the other in a round.
pub(super) fn is_counted(axis: &BlockAxis) -> bool {
    matches!(axis.kind, AxisKind::Reduce | AxisKind::Scan)
}

/// The first of two iterations comes before the second.
fn is_earlier(loops: &[Var], renames: &Substitution) -> Expr {
    let mut is_earlier = truth(false);
    for var in loops.iter().rev() {
        let (one, two) = (Expr::from(var), renames.apply(&Expr::from(var)));
        is_earlier = either(one.clone().lt(two.clone()), same(&one, &two).and(is_earlier));
    }
    is_earlier
}
