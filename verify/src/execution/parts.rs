//! Compares what two programs leave, part by part: each part runs some units of both programs on the same terms.
//!
//! A part is checked before it is run: it has the units that wrote its elements last, and with each unit all units that it depends
//! on, in their order. All parts together have every element, and every unit, because each of them may trap. Assertions are compared
//! in one part that has all of them.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tilewright_ir::{PrimFunc, sabotage};

use super::code::{Code, Layout};
use super::machine::{MOST_STEPS, Machine, PADDING};
use super::plan::{Element, Part, divided};
use super::terms::{Id, Terms};
use super::trace::{MOST_TRACED, NONE, Task, Trace};
use super::{Param, writes};
use crate::door::everywhere;
use crate::judge::{Decision, Judge, Side};
use crate::method::Method;
use crate::reason::{Reason, ReasonKind};
use crate::verdict::Verdict;

/// Parts that are run before it is asked whether one of them has a difference: not one at a time, so that threads have work, and not as
/// many as there are threads, so that the answer is the same on every machine.
const AT_ONCE: usize = 16;

/// Places of memory that are filled in the time of a step.
const PLACES_FOR_A_STEP: u64 = 64;

/// Two programs, and the units of their runs.
struct Pair<'a> {
    code: &'a [Code; 2],
    traces: [Trace<'a>; 2],
    memory: &'a [Memory; 2],
    /// The parameters that need not hold anything at the call.
    unsure: HashSet<u32>,
    elements: Vec<Element>,
}

/// Where the elements of the parameters are in the memory of one program.
struct Memory {
    /// For each parameter, the place of each lane of each element, in the order of the program before.
    places: Vec<Vec<u32>>,
    /// For each parameter, which of them each place holds.
    given: Vec<Vec<u32>>,
}

/// What the run of a part found.
struct Found {
    n_terms: usize,
    /// The first element that the programs leave different.
    different: Option<(u32, u32)>,
    /// Whether the program before reads what a parameter need not hold, in any case.
    is_read_before: bool,
    /// Whether the program after reads such a value, and the program before does not read one under the same conditions.
    is_read_after: bool,
}

/// Runs both programs and compares what they leave. Runs of more steps than the judge has for a part are divided.
pub(super) fn compared(judge: &Judge, funcs: (&PrimFunc, &PrimFunc), params: &[Param<'_>]) -> Result<Decision, String> {
    let code = [Code::of(funcs.0)?, Code::of(funcs.1)?];
    // Each part begins with memory of its own. Filling it takes less than running the part if the part has a step for some places.
    let places = code.iter().flat_map(|code| &code.rooms).fold(0u64, |sum, room| sum.saturating_add(*room as u64));
    let size = judge.part_steps.max(places / PLACES_FOR_A_STEP);
    let least = code[0].body.least.saturating_add(code[1].body.least);
    if least > MOST_TRACED {
        return Err(format!("the programs run {least} steps or more, and at most {MOST_TRACED} are run"));
    }
    let memory = [Memory::of(&code[0], params, Side::Before)?, Memory::of(&code[1], params, Side::After)?];
    let written = (0u32..).zip(params).filter(|(_, param)| writes(funcs.0, param.before));
    let unsure: HashSet<u32> = written.map(|(number, _)| number).collect();
    let about = code[0].body.about.saturating_add(code[1].body.about);
    let in_parts = if about > size && !sabotage::on("execution-undivided") {
        in_parts(&code, &memory, &unsure, size)
    } else {
        Err(String::new())
    };
    let (pair, parts) = match in_parts {
        Ok(found) => found,
        Err(why) if least > MOST_STEPS => return Err(why),
        // An index that is read from memory may be a constant all the same.
        Err(_) => whole(&code, &memory, unsure),
    };
    pair.check(&parts)?;
    let mut found: Vec<Found> = Vec::new();
    let (begin, n_parts) = (Instant::now(), parts.len());
    for parts in parts.chunks(AT_ONCE) {
        if judge.is_over() {
            return Ok(out_of_time(found.len(), n_parts, begin.elapsed()));
        }
        let more = parts.par_iter().map(|part| pair.run(part)).collect::<Vec<_>>();
        found.extend(more.into_iter().collect::<Result<Vec<Found>, String>>()?);
        if found.iter().any(|found| found.different.is_some()) {
            break;
        }
    }
    if found.iter().any(|found| found.is_read_after) && !found.iter().any(|found| found.is_read_before) {
        return Err("a parameter that the program before writes first may hold nothing, and is read".into());
    }
    let verdict = match found.iter().filter_map(|found| found.different).min() {
        Some((param, number)) => {
            let name = params[param as usize].element(number)?;
            Verdict::Unknown(Reason::new(ReasonKind::Differs, format!("{name} is computed in another way")))
        }
        None => everywhere(memory[0].places.iter().map(|places| places.len() as u64).sum()),
    };
    Ok((verdict, Method::Execution(found.iter().map(|found| found.n_terms).sum())))
}

/// What is said of runs that were not made to the end.
fn out_of_time(done: usize, all: usize, took: Duration) -> Decision {
    let mut text = format!("the time for this pair is over after {done} of {all} parts of the runs on terms");
    let count = |parts: usize| u32::try_from(parts).unwrap_or(u32::MAX);
    if let Some(one) = took.checked_div(count(done)) {
        let seconds = one.saturating_mul(count(all)).as_secs() + 1;
        let _ = write!(text, ", of which all would take about {seconds} s");
    }
    (Verdict::Unknown(Reason::new(ReasonKind::Timeout, text)), Method::Execution(0))
}

/// The runs as one part.
fn whole<'a>(code: &'a [Code; 2], memory: &'a [Memory; 2], unsure: HashSet<u32>) -> (Pair<'a>, Vec<Part>) {
    let traces = [Trace::whole(&code[0]), Trace::whole(&code[1])];
    let elements = elements(memory, |_, _, _| 0);
    let part = Part { elements: 0..elements.len(), units: [vec![0], vec![0]], asserts: true };
    (Pair { code, traces, memory, unsure, elements }, vec![part])
}

/// The runs in parts of about so many steps.
fn in_parts<'a>(
    code: &'a [Code; 2],
    memory: &'a [Memory; 2],
    unsure: &HashSet<u32>,
    size: u64,
) -> Result<(Pair<'a>, Vec<Part>), String> {
    let (before, after) = rayon::join(|| Trace::of(&code[0], size / 128), || Trace::of(&code[1], size / 128));
    let traces = [before?, after?];
    let total = traces.iter().flat_map(|trace| &trace.units).fold(0u64, |sum, unit| sum.saturating_add(unit.steps));
    if total > MOST_TRACED {
        return Err(format!("the programs run {total} steps, and at most {MOST_TRACED} are run"));
    }
    let mut elements = elements(memory, |side, param, place| traces[side].writers[param][place]);
    // What neither program writes holds the same input in both.
    elements.retain(|element| element.writers != [NONE; 2]);
    let parts = divided(&traces, &mut elements, size, MOST_TRACED)?;
    Ok((Pair { code, traces, memory, unsure: unsure.clone(), elements }, parts))
}

/// All lanes of all elements of all parameters, with their writers.
fn elements(memory: &[Memory; 2], writer: impl Fn(usize, usize, usize) -> u32) -> Vec<Element> {
    let mut elements = Vec::new();
    for (param, (before, after)) in memory[0].places.iter().zip(&memory[1].places).enumerate() {
        for (number, (before, after)) in (0..).zip(before.iter().zip(after)) {
            let writers = [writer(0, param, *before as usize), writer(1, param, *after as usize)];
            // There are fewer parameters than places, which have 32-bit numbers.
            elements.push(Element { param: u32::try_from(param).unwrap_or(NONE), number, writers });
        }
    }
    elements
}

impl Memory {
    fn of(code: &Code, params: &[Param<'_>], side: Side) -> Result<Self, String> {
        let mut memory = Self { places: Vec::new(), given: Vec::new() };
        for (param, room) in params.iter().zip(&code.rooms) {
            let buffer = if side == Side::Before { param.before } else { param.after };
            let (layout, lanes) = (Layout::of(buffer)?, i64::from(buffer.dtype.lanes));
            let (mut places, mut given) = (Vec::new(), vec![PADDING; *room]);
            param.each(|index| {
                let index = if side == Side::Before { index.to_vec() } else { param.image(index)? };
                let position =
                    layout.position(&index).ok_or_else(|| format!("an element of `{buffer}` is out of bounds"))?;
                for lane in 0..lanes {
                    let number = u32::try_from(places.len()).map_err(|error| error.to_string())?;
                    let place = u32::try_from(position * lanes + lane).map_err(|error| error.to_string())?;
                    let given = given.get_mut(place as usize).filter(|given| **given == PADDING);
                    *given.ok_or_else(|| format!("elements of `{buffer}` share their place"))? = number;
                    places.push(place);
                }
                Ok(())
            })?;
            memory.places.push(places);
            memory.given.push(given);
        }
        Ok(memory)
    }
}

impl Pair<'_> {
    /// Checks that the parts have all elements, all units and all assertions, and that each part has all that it needs.
    fn check(&self, parts: &[Part]) -> Result<(), String> {
        let mut begin = 0;
        let mut is_run = self.traces.each_ref().map(|trace| vec![false; trace.units.len()]);
        let mut asserts = self.traces.iter().all(|trace| trace.units.iter().all(|unit| !unit.asserts));
        for part in parts {
            let elements = if part.elements.start == begin { self.elements.get(part.elements.clone()) } else { None };
            let elements = elements.ok_or("the parts are not those of all elements")?;
            begin = part.elements.end;
            asserts |= part.asserts;
            for (side, trace) in self.traces.iter().enumerate() {
                let units = &part.units[side];
                let has = |unit: u32| unit == NONE || units.binary_search(&unit).is_ok();
                let is_closed = units.iter().all(|unit| trace.sources(*unit).iter().all(|source| has(*source)));
                let is_whole = elements.iter().all(|element| has(element.writers[side]));
                let asserting = |(unit, _): (u32, _)| has(unit);
                // Of one part only: looking at all units once for each part would take their product.
                let has_asserting =
                    !part.asserts || (0..).zip(&trace.units).filter(|(_, unit)| unit.asserts).all(asserting);
                if !units.is_sorted_by(|a, b| a < b) || !is_closed || !is_whole || !has_asserting {
                    return Err("a part lacks what it needs".into());
                }
                for unit in units {
                    is_run[side][*unit as usize] = true;
                }
            }
        }
        let is_all = begin == self.elements.len() && asserts && is_run.iter().flatten().all(|is_run| *is_run);
        if is_all { Ok(()) } else { Err("the parts are not all of the runs".into()) }
    }

    /// Runs a part, and compares its elements.
    fn run(&self, part: &Part) -> Result<Found, String> {
        let mut terms = Terms::default();
        terms.unsure.clone_from(&self.unsure);
        let before = self.ran(&mut terms, 0, part, 0)?;
        let after = self.ran(&mut terms, 1, part, before.steps)?;
        if part.asserts && before.failures != after.failures {
            return Err("the programs assert different things of what memory holds".into());
        }
        // The program before reads such a value whenever the one after does.
        let holds = |given: &[Id], conds: &Vec<Id>| conds.iter().all(|cond| given.binary_search(cond).is_ok());
        let is_covered =
            |find: &Vec<Id>| before.finds.contains(find) || before.finds.iter().any(|conds| holds(find, conds));
        let mut held = before.held.iter().zip(&after.held).zip(&self.elements[part.elements.clone()]);
        let is_different = |((before, after), _): &((&Id, &Id), &Element)| before != after;
        Ok(Found {
            n_terms: terms.len(),
            different: held.by_ref().filter(is_different).map(|(_, element)| (element.param, element.number)).min(),
            is_read_before: before.finds.contains(&Vec::new()),
            is_read_after: !after.finds.iter().all(is_covered),
        })
    }

    /// Runs the units of a part of one program.
    fn ran(&self, terms: &mut Terms, side: usize, part: &Part, steps: u64) -> Result<Ran, String> {
        let (trace, memory) = (&self.traces[side], &self.memory[side]);
        let mut machine = Machine::new(terms, &self.code[side], &memory.given, steps)?;
        for unit in &part.units[side] {
            for (slot, value) in trace.vars(*unit) {
                machine.bind(*slot as usize, (*value).into());
            }
            match trace.units[*unit as usize].task {
                Task::Run(action) => machine.run(action)?,
                Task::Allocate(memory) => machine.allocate(memory)?,
            }
        }
        let mut held = Vec::new();
        for element in &self.elements[part.elements.clone()] {
            let place = memory.places[element.param as usize][element.number as usize];
            held.push(machine.held(element.param as usize, place as usize)?);
        }
        let Machine { mut failures, finds, steps, .. } = machine;
        failures.sort_unstable();
        failures.dedup();
        Ok(Ran { held, failures, finds, steps })
    }
}

/// What the run of one program in a part found.
struct Ran {
    /// What the elements hold in the end.
    held: Vec<Id>,
    failures: Vec<Id>,
    finds: HashSet<Vec<Id>>,
    steps: u64,
}
