//! Whether two programs of constant shape leave the same values in every element of every parameter: both run on terms.
//!
//! ```text
//! before: T[i] = A[i] * 2              B[3] is A[3] * 2 + 1 in both, and so on for every element: the same terms,
//!         B[i] = T[i] + 1              whatever buffers and loops the programs use on the way
//! after:  B[i] = A[i] * 2 + 1
//! ```
//!
//! A run on terms stands for all runs: what the caller gives is a term, loops and indices are constants, and what depends on
//! values becomes a choice. Each parameter after holds what the claims say, before both run and afterwards; its padding holds nothing,
//! so that a load of it ends the run. A parameter that the program before writes may hold nothing at the call, unless that program reads
//! it first; so the program after reads what the call gave only where the program before does. Iterations that run at once are run one
//! after the other, since they do not race, which is an obligation of both programs. Terms are rewritten by rules that keep every bit
//! (`terms`).

mod machine;
mod terms;
#[cfg(test)]
mod tests;

use tilewright_ir::{Bindings, Buffer, BufferClaim, Evidence, PrimFunc, StmtKind};

use self::machine::{Machine, extents};
use self::terms::{Id, Node, Terms};
use crate::access::Base;
use crate::claims::Relation;
use crate::door::everywhere;
use crate::judge::{Decision, Judge, Report, Side, unsupported};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::{decide_goal, parameters};
use crate::reason::{Reason, ReasonKind};
use crate::verdict::Verdict;

/// The number of the inputs that are integers.
const INTEGERS: u32 = u32::MAX;

impl Judge {
    /// Decides whether two programs of constant shape mean the same, by running both on terms; with the obligations of the
    /// program before by itself. The claims about parameters are those of the evidence.
    pub(crate) fn check_execution(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        base: &Base<'_>,
    ) -> Vec<Report> {
        let relation = Relation::new(evidence);
        let params = parameters(before, after, &relation);
        let params = params
            .iter()
            .map(|goal| Self::report(Obligation::Simulation, "parameters", || decide_goal(self, evidence, base, goal)));
        let mut reports: Vec<Report> = params.collect();
        reports.push(Self::report(Obligation::Simulation, "every element of every parameter", || {
            compared(before, after, evidence).unwrap_or_else(unsupported)
        }));
        reports.extend(self.check_program_on(Side::Before, before));
        reports
    }
}

/// A parameter of both programs.
struct Param<'a> {
    before: &'a Buffer,
    after: &'a Buffer,
    claim: Option<&'a BufferClaim>,
}

impl Param<'_> {
    /// The index after of an index before.
    fn image(&self, index: &[i128]) -> Result<Vec<i128>, String> {
        match self.claim {
            Some(claim) => claim.map.eval(index, &Bindings::default()).map_err(|error| error.to_string()),
            None => Ok(index.to_vec()),
        }
    }

    /// Calls `visit` for each index before, in row-major order.
    fn each(&self, mut visit: impl FnMut(&[i128], u64) -> Result<(), String>) -> Result<(), String> {
        let extents = extents(self.before)?;
        let count = extents.iter().product::<i128>();
        let mut index = vec![0; extents.len()];
        for number in 0..u64::try_from(count).map_err(|error| error.to_string())? {
            visit(&index, number)?;
            for (at, extent) in index.iter_mut().zip(&extents).rev() {
                *at += 1;
                if *at < *extent {
                    break;
                }
                *at = 0;
            }
        }
        Ok(())
    }
}

/// Runs both programs and compares what they leave.
fn compared(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<Decision, String> {
    let params = params(before, after, evidence)?;
    machine::may_end(before, after)?;
    let written = params.iter().zip(0u32..).filter(|(param, _)| writes(before, param.before));
    let mut terms = Terms::default();
    terms.unsure = written.map(|(_, number)| number).collect();
    let mut first = Machine::new(&mut terms);
    give(&mut first, before, &params, Side::Before)?;
    first.run(before)?;
    let (steps, failures) = (first.steps, sorted(std::mem::take(&mut first.failures)));
    let finds = std::mem::take(&mut first.finds);
    let mut expected = Vec::new();
    taken(&mut first, &params, Side::Before, |value, _| expected.push(value))?;
    let mut second = Machine::new(&mut terms);
    second.steps = steps;
    give(&mut second, after, &params, Side::After)?;
    second.run(after)?;
    if failures != sorted(std::mem::take(&mut second.failures)) {
        return Err("the programs assert different things of what memory holds".into());
    }
    // The program before reads such a value whenever the one after does.
    let holds = |given: &[Id], conds: &Vec<Id>| conds.iter().all(|cond| given.binary_search(cond).is_ok());
    let covered = |find: &Vec<Id>| finds.contains(find) || finds.iter().any(|conds| holds(find, conds));
    if !second.finds.iter().all(covered) {
        return Err("a parameter that the program before writes first may hold nothing, and is read".into());
    }
    let (mut rest, mut different) = (expected.iter(), None);
    taken(&mut second, &params, Side::After, |value, name| {
        if rest.next() != Some(&value) {
            different.get_or_insert_with(name);
        }
    })?;
    let verdict = match different {
        Some(name) => Verdict::Unknown(Reason::new(ReasonKind::Differs, format!("{name} is computed in another way"))),
        None => everywhere(expected.len() as u64),
    };
    Ok((verdict, Method::Execution(terms.len())))
}

fn sorted(mut ids: Vec<Id>) -> Vec<Id> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The buffers of the parameters of both programs.
fn params<'a>(func: &'a PrimFunc, after: &'a PrimFunc, evidence: &'a Evidence) -> Result<Vec<Param<'a>>, String> {
    let buffers = |func: &'a PrimFunc| func.params.iter().filter_map(|param| func.param_buffer(param));
    let pairs: Vec<_> = buffers(func).zip(buffers(after)).collect();
    if pairs.len() != func.buffer_map.len() || pairs.len() != after.buffer_map.len() {
        return Err("the parameters differ in number".into());
    }
    let locals = [func.buffers(), after.buffers()].concat();
    let shared =
        |one: &Buffer, others: &[(&Buffer, &Buffer)]| others.iter().any(|(x, y)| x.aliases(one) || y.aliases(one));
    let param = |(place, (before, after)): (usize, &(&'a Buffer, &'a Buffer))| {
        let claim = evidence.buffers.iter().find(|claim| claim.before == **before && claim.after == **after);
        if (claim.is_none() && before != after) || before.dtype != after.dtype {
            return Err(format!("nothing is claimed of how `{before}` became `{after}`"));
        }
        // What a view writes before the first element, or between those of a strided buffer, is in no element.
        let is_dense = before.strides.is_none() && before.elem_offset.as_const_int() == Some(0);
        if !is_dense && locals.iter().any(|other| other.aliases(before) && other != *before) {
            return Err(format!("`{before}` has strides or an offset, and its memory is seen by another buffer"));
        }
        if shared(before, &pairs[..place]) {
            return Err(format!("`{before}` shares its memory with another parameter"));
        }
        Ok(Param { before, after, claim })
    };
    pairs.iter().enumerate().map(param).collect()
}

/// Whether a function stores to the memory of a buffer.
fn writes(func: &PrimFunc, buffer: &Buffer) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Store { buffer: other, .. } if other.aliases(buffer));
    });
    found
}

/// Gives a run its parameters: the same terms to corresponding elements of both.
fn give(machine: &mut Machine<'_>, func: &PrimFunc, params: &[Param<'_>], side: Side) -> Result<(), String> {
    for (number, param) in (0u32..).zip(params) {
        let buffer = if side == Side::Before { param.before } else { param.after };
        let lanes = buffer.dtype.lanes;
        machine.allocate(buffer)?;
        let mut given = std::collections::HashSet::new();
        param.each(|index, element| {
            let index = if side == Side::Before { index.to_vec() } else { param.image(index)? };
            if !given.insert(machine::position(buffer, &index)?) {
                return Err(format!("elements of `{buffer}` share their place"));
            }
            for lane in 0..lanes {
                let input = machine.terms.add(Node::Input(number, element * u64::from(lanes) + u64::from(lane)))?;
                *machine.cell(buffer, &index, lane)? = input;
            }
            Ok(())
        })?;
    }
    // Integers of the call correspond by their position.
    for (number, param) in (0u64..).zip(&func.params) {
        if func.param_buffer(param).is_none() {
            let input = machine.terms.add(Node::Input(INTEGERS, number))?;
            machine.bind(param, input);
        }
    }
    Ok(())
}

/// Calls `visit` for what each lane of each parameter holds, in the order of the program before, and a function that names it.
fn taken(
    machine: &mut Machine<'_>,
    params: &[Param<'_>],
    side: Side,
    mut visit: impl FnMut(Id, &dyn Fn() -> String),
) -> Result<(), String> {
    for param in params {
        let buffer = if side == Side::Before { param.before } else { param.after };
        param.each(|index, _| {
            let there = if side == Side::Before { index.to_vec() } else { param.image(index)? };
            for lane in 0..buffer.dtype.lanes {
                visit(*machine.cell(buffer, &there, lane)?, &|| format!("`{}{index:?}`", param.before));
            }
            Ok(())
        })?;
    }
    Ok(())
}
