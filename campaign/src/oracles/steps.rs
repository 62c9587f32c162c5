//! Compares what the judge says of steps of a network with the accesses of tiny programs.
//!
//! | the program as a function of a step | the judge |
//! |---|---|
//! | reads and writes its result, and reads an element that nothing wrote before | may not prove *defined* |
//! | reads and writes its result, and each element that it reads was written before | may not refute *defined* |
//! | reads an operand where its result lies, and may read an element that it has overwritten | may not prove *plan-in-place* |
//! | writes each element in the statement that alone reads it | may not refute *plan-in-place* |
//! | leaves out an element of its result, which the caller takes | may not prove *defined* of the result |
//! | leaves out an element of its result that the next step reads | may not prove *defined* of the result |
//! | writes all elements of its result, or all that the next step reads | may not refute *defined* of the result |
//!
//! *defined* relies on the absence of races, so programs with races are not compared for it. For *plan-in-place* the iterations of every loop may
//! run in any order.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_compiler::flow::FINDERS;
use tilewright_ir::{
    Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, PoolRules, PrimFunc, Region, Room, ScalarType, Scope,
    TensorRole, TextureLimits,
};
use tilewright_verify::{Config as Budget, Judge, Obligation, Report, Verdict};

use crate::case::{Case, Redrawn};
use crate::config::Config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::tiny::{CELLS, Event, Kind, Part, Place, Tiny, conflict, may_come_first};

/// A program that begins with a store to all elements, or to all but the last, in half of the cases; in half of the others with a store in front
/// of a read in a loop, at the same index, and in some of these under a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Started(pub Tiny);

impl From<Tiny> for Started {
    fn from(case: Tiny) -> Self {
        Self(case)
    }
}

impl Redrawn for Started {
    type Of = Tiny;

    fn redraw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Tiny> {
        let extent = if u.arbitrary()? { u.int_in_range(3..=4)? } else { 0 };
        let condition = if u.arbitrary()? { Some(*u.choose(&[None, Some(true), Some(false)])?) } else { None };
        let mut case = Tiny::draw(u, config)?;
        if let Some(holds) = condition.filter(|_| extent == 0) {
            case.0.iter_mut().find_map(|part| started(part, holds));
        }
        if extent > 0 {
            let to = Place { factors: [1, 0], offset: 0 };
            let body = vec![Part::Store { to, from: None, add: 1 }];
            case.0.insert(0, Part::Loop { kind: Kind::Serial, extent, body });
        }
        Ok(case)
    }

    fn inner(&self) -> &Tiny {
        &self.0
    }
}

/// Puts a store to the element that a store of a body reads in front of it, under a condition that holds or not, if there is one. `None` if there
/// is no such store.
fn started(part: &mut Part, condition: Option<bool>) -> Option<()> {
    let Part::Loop { body, .. } = part else { return None };
    let read = |part: &Part| match part {
        Part::Store { from, .. } => from.clone(),
        Part::Barrier | Part::When { .. } | Part::Loop { .. } => None,
    };
    let Some((at, to)) = body.iter().enumerate().find_map(|(at, part)| Some((at, read(part)?))) else {
        return body.iter_mut().find_map(|part| started(part, condition));
    };
    let store = Part::Store { to, from: None, add: 1 };
    body.insert(at, condition.map_or(store.clone(), |holds| Part::When { holds, body: vec![store] }));
    Some(())
}

/// Asks a judge for one obligation of a step that runs the function: *defined*, where the only parameter is its result, or *plan-in-place*,
/// where it reads the first parameter and writes the second. `None` if the judge has nothing to decide.
type Say = fn(&Judge, &PrimFunc) -> Option<Verdict>;

/// Asks a judge for *defined* of the result of a function of one parameter. The second function reads it in the next step; without, the
/// caller takes it.
type SayOfResult = fn(&Judge, &PrimFunc, Option<&PrimFunc>) -> Option<Verdict>;

/// The oracle `steps`; see the module. What is asked of the judge are fields so that tests can replace them.
#[derive(Debug)]
pub struct Steps {
    judge: Judge,
    defined: Say,
    in_place: Say,
    whole: SayOfResult,
}

impl Steps {
    /// Creates the oracle.
    ///
    /// # Errors
    /// There is no judge on this machine.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, rlimit: 1_000_000, ..Budget::default() };
        let judge = Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string())?;
        let in_place = |judge: &Judge, func: &PrimFunc| Some(judge.check_in_place(func, &[0], 1).verdict);
        Ok(Self { judge, defined, in_place, whole })
    }
}

/// What the judge says of *defined* where a function writes `y`, which the next one reads or the caller takes; where neither is so, only
/// of what the function itself reads of `y`. The report on the result is the last one.
fn reports(judge: &Judge, func: &PrimFunc, next: Option<&PrimFunc>, role: TensorRole) -> Vec<Report> {
    let tensor = |name: &str, role| GraphTensor {
        name: name.into(),
        shape: vec![4],
        dtype: ScalarType::Int32.into(),
        scope: Scope::Global,
        axis_separators: Vec::new(),
        view_of: None,
        role,
    };
    let mut tensors = vec![tensor("y", role)];
    let mut steps = vec![GraphStep { name: "step".into(), reads: Vec::new(), writes: vec![0] }];
    if next.is_some() {
        tensors.push(tensor("z", TensorRole::Intermediate));
        steps.push(GraphStep { name: "next".into(), reads: vec![0], writes: vec![1] });
    }
    let pool = |_: &GraphTensor| Pool { scope: Scope::Global, dtype: ScalarType::UInt8.into(), room: Room::Bytes(16) };
    let place = |pool| PoolPlace { pool, region: Region::Bytes { offset: 0, size: 16 } };
    let plan =
        MemoryPlan { pools: tensors.iter().map(pool).collect(), places: (0..tensors.len()).map(place).collect() };
    let (graph, rules) = (Graph { tensors, steps }, PoolRules::any_width(TextureLimits::PROMISED));
    let functions = [Some(func), next];
    let mut reports = judge.check_plan_of(&graph, &plan, rules, &functions[..graph.steps.len()], &FINDERS);
    reports.retain(|report| report.obligation == Obligation::Defined);
    reports
}

/// The verdict on what a step reads of its only tensor, which nobody else reads.
fn defined(judge: &Judge, func: &PrimFunc) -> Option<Verdict> {
    reports(judge, func, None, TensorRole::Intermediate).into_iter().next().map(|report| report.verdict)
}

/// The verdict on the result of a step.
fn whole(judge: &Judge, func: &PrimFunc, next: Option<&PrimFunc>) -> Option<Verdict> {
    let role = if next.is_some() { TensorRole::Intermediate } else { TensorRole::Output };
    reports(judge, func, next, role).pop().map(|report| report.verdict)
}

/// An element that no event writes, of all or of those that are read.
fn left_out(events: &[Event], only_read: bool) -> Option<usize> {
    let is_one = |cell: usize, is_write: bool| events.iter().any(|e| e.cell == cell && e.write.is_some() == is_write);
    (0..CELLS).find(|&cell| !is_one(cell, true) && (!only_read || is_one(cell, false)))
}

/// A read of an element that nothing wrote before.
fn undefined(events: &[Event]) -> Option<&Event> {
    let is_written =
        |at: usize| events[..at].iter().any(|event| event.write.is_some() && event.cell == events[at].cell);
    (0..events.len()).find(|&at| events[at].write.is_none() && !is_written(at)).map(|at| &events[at])
}

/// A read and a write of one element that are not of one statement: the first where the write may come before the read, and whether there is
/// any.
fn overwritten(events: &[Event]) -> (Option<(usize, usize)>, bool) {
    let of_others = |read: usize, write: usize| {
        let is_other = events[write].write.is_some_and(|(_, own)| own != Some(read));
        events[read].write.is_none() && is_other && events[read].cell == events[write].cell
    };
    let all = (0..events.len()).flat_map(|read| (0..events.len()).map(move |write| (read, write)));
    let mut pairs = all.filter(|&(read, write)| of_others(read, write)).peekable();
    let is_any = pairs.peek().is_some();
    (pairs.find(|&(read, write)| write < read || may_come_first(&events[read], &events[write])), is_any)
}

/// Compares a verdict with what the accesses say: `wrong` is why it must not be proved, `is_right` whether it must not be refuted.
fn compared(name: &str, verdict: Option<Verdict>, wrong: Option<String>, is_right: bool, tally: &mut Tally) -> Outcome {
    match (verdict, wrong) {
        (None, wrong) => Failure::outcome(format!("{name} is not asked"), wrong.unwrap_or_default()),
        (Some(Verdict::Proved(_)), Some(why)) => Failure::outcome(format!("{name} is proved of a wrong step"), why),
        (Some(Verdict::Refuted(found)), _) if is_right => {
            Failure::outcome(format!("{name} is refuted of a right step"), found.to_string())
        }
        (Some(verdict), _) => {
            let what = match verdict {
                Verdict::Proved(_) => "proved",
                Verdict::Refuted(_) => "refuted",
                Verdict::Unknown(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => "open",
            };
            tally.count(&format!("{name} {what}"), 1);
            Outcome::Held
        }
    }
}

impl Oracle for Steps {
    type Case = Started;

    const NAME: &'static str = "steps";

    fn check(&mut self, Started(case): &Started, tally: &mut Tally) -> Outcome {
        let events = case.events();
        let step = case.step();
        for (name, next) in [("an output", None), ("an operand", Some(&step))] {
            let left = left_out(&events, next.is_some()).map(|cell| format!("element {cell} is not written"));
            let (is_right, said) = (left.is_none(), (self.whole)(&self.judge, &case.func(), next));
            let outcome = compared(name, said, left, is_right, tally);
            if outcome != Outcome::Held {
                return outcome;
            }
        }
        if !events.iter().any(|event| event.write.is_none()) {
            return Outcome::Undecided("nothing is read".into());
        }
        let (found, is_any) = overwritten(&events);
        let why = found.map(|(read, write)| format!("{:?} may come before {:?}", events[write], events[read]));
        let said = (self.in_place)(&self.judge, &step);
        let outcome = compared("plan-in-place", said, why, !is_any, tally);
        if outcome != Outcome::Held || conflict(&events).is_some() {
            return outcome;
        }
        let why = undefined(&events).map(|event| format!("{event:?} reads what nothing wrote"));
        let is_right = why.is_none();
        compared("defined", (self.defined)(&self.judge, &case.func()), why, is_right, tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    /// The number of cases, out of some, on which a judge is found to be wrong.
    fn found(defined: Option<Say>, in_place: Option<Say>, whole: Option<SayOfResult>) -> usize {
        let mut steps = Steps::new(&Environment::default()).unwrap();
        steps.whole = whole.unwrap_or(steps.whole);
        steps.defined = defined.unwrap_or(steps.defined);
        steps.in_place = in_place.unwrap_or(steps.in_place);
        let cases = (0..400).map(|number| bytes::of_case(9, "steps", number));
        let cases = cases.map(|bytes| Started::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap());
        let mut tally = Tally::default();
        let found = cases.filter(|case| matches!(steps.check(case, &mut tally), Outcome::Failed(_))).count();
        if found == 0 {
            let all = ["plan-in-place", "defined", "an output", "an operand"];
            for what in all.iter().flat_map(|name| [format!("{name} proved"), format!("{name} refuted")]) {
                let what = &*what;
                assert!(tally.counts.get(what).is_some_and(|count| *count > 10), "{what}: {:?}", tally.counts);
            }
        }
        found
    }

    #[test]
    fn the_judge_holds_and_broken_ones_are_flagged() {
        assert_eq!(found(None, None, None), 0);
        // A judge that says of every step what it says of one that is right, or of one that is wrong.
        let right: Say = |judge, _| {
            let body = "for i in range(4):\n        B[i] = A[i]";
            let text = format!(
                "@T.prim_func\ndef main(A: T.Buffer((4,), \"int32\"), B: T.Buffer((4,), \"int32\")):\n    {body}\n"
            );
            let read = tilewright_script::read_module(&text).unwrap();
            Some(judge.check_in_place(&read.funcs[0], &[0], 1).verdict)
        };
        let refuted: Say = |_, _| Some(Verdict::Refuted(tilewright_verify::Counterexample::default()));
        assert!(found(Some(right), None, None) > 20);
        assert!(found(None, Some(right), None) > 20);
        assert!(found(Some(refuted), None, None) > 5);
        assert!(found(None, Some(refuted), None) > 5);
        let whole: SayOfResult = |judge, _, _| {
            let text =
                "@T.prim_func\ndef main(A: T.Buffer((4,), \"int32\")):\n    for i in range(4):\n        A[i] = 0\n";
            super::whole(judge, &tilewright_script::read_module(text).unwrap().funcs[0], None)
        };
        let never: SayOfResult = |_, _, _| Some(Verdict::Refuted(tilewright_verify::Counterexample::default()));
        assert!(found(None, None, Some(whole)) > 20);
        assert!(found(None, None, Some(never)) > 5);
        assert!(found(None, None, Some(|_, _, _| None)) > 20);
        // One that asks nothing.
        assert!(found(Some(|_, _| None), None, None) > 20);
    }
}
