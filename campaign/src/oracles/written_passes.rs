//! Runs programs written by hand, and random changes of them, before and after the passes that they are about.
//!
//! The programs of [`crate::corpus::programs`] have what passes look for and generated programs rarely have: branches without a body,
//! tiles that use a part of a buffer, shared memory without barriers, steps of schedules between guards. A random change keeps most
//! of it, so a pass is tried on what it nearly may not do. A pass that refuses a changed program is right in doing so, and so is the judge
//! for passes that do not check whether a program allows them (`reorder`, `loop_kind`): a step that the judge does not prove is left out.

mod packed;

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_compiler::passes::read_passes;
use tilewright_interp::{Argument, fill};
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::phases::synchronized;
use tilewright_ir::{Bindings, Comparison, PrimFunc, Scalar, validate};
use tilewright_verify::{Config as JudgeConfig, Judge};

use super::passes::same;
use crate::case::{Case, without_one};
use crate::chain::{Chain, ChainLink};
use crate::config::Config;
use crate::corpus::programs::programs;
use crate::inputs::{arguments, written};
use crate::mutate::mutated_program;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// Values of the symbolic extents, by their position.
const EXTENTS: [i128; 6] = [5, 3, 7, 2, 4, 1];

/// A program, changes of it, and passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenCase {
    /// The program.
    pub text: String,
    /// The passes in order, each as `opt -p` takes it.
    pub passes: Vec<String>,
    /// The seeds of changes of the program.
    pub changes: Vec<u64>,
    /// The seed of the input values; the symbolic extents depend on it, too.
    pub seed: u64,
}

impl WrittenCase {
    /// A program with the changes of the case.
    fn changed(&self, func: &PrimFunc) -> PrimFunc {
        self.changes.iter().fold(func.clone(), |func, seed| mutated_program(&func, *seed))
    }
}

impl Case for WrittenCase {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let program = u.choose(programs())?;
        let rotation = if u.ratio(1, 2)? { Some(u.int_in_range(0..=5)?) } else { None };
        let n_changes = u.int_in_range(0..=7u8)?.div_ceil(4);
        let changes = (0..n_changes).map(|_| u.arbitrary::<u32>().map(u64::from)).collect::<Result<_, _>>()?;
        let mut passes = program.passes.clone();
        // Another pass behind, in one case of four.
        if u.ratio(1, 4)? {
            passes.extend(u.choose(programs())?.passes.iter().filter(|pass| !pass.contains('=')).take(1).cloned());
        }
        Ok(Self { text: program.program(rotation), passes, changes, seed: u.arbitrary::<u16>()?.into() })
    }

    fn simpler(&self) -> Vec<Self> {
        let fewer = without_one(&self.changes).into_iter().map(|changes| Self { changes, ..self.clone() });
        let shorter = (self.passes.len() > 1)
            .then(|| Self { passes: self.passes[..self.passes.len() - 1].to_vec(), ..self.clone() });
        shorter.into_iter().chain(fewer).collect()
    }

    fn features(&self) -> Vec<String> {
        self.passes
            .last()
            .map(|pass| format!("asked:{}", pass.split('=').next().unwrap_or_default()))
            .into_iter()
            .collect()
    }

    fn text(&self) -> String {
        let program = read(&self.text).map(|func| tilewright_script::print_func(&self.changed(&func)));
        format!("{}: {}", self.passes.join(", "), program.unwrap_or_else(|_| self.text.clone()))
    }

    fn pinned(&self) -> Option<Self> {
        let text = tilewright_script::print_func(&self.changed(&read(&self.text).ok()?));
        (!self.changes.is_empty()).then(|| Self { text, changes: Vec::new(), ..self.clone() })
    }
}

/// Z3's deterministic budget per question.
const RLIMIT: u32 = 100_000;

/// Passes that change a program as they are told; that it computes the same is for the judge to prove.
const LEFT_TO_JUDGE: [&str; 2] = ["reorder", "loop_kind"];

/// The oracle `written_passes`; see the module.
#[derive(Debug)]
pub struct WrittenPasses {
    judge: Judge,
}

impl WrittenPasses {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// The judge cannot be created.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let config =
            JudgeConfig { threads: 1, rlimit: RLIMIT, timeout: Duration::from_secs(1), ..JudgeConfig::default() };
        Ok(Self { judge: Judge::new(config, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }
}

impl Oracle for WrittenPasses {
    type Case = WrittenCase;

    const NAME: &'static str = "written_passes";

    fn check(&mut self, case: &WrittenCase, tally: &mut Tally) -> Outcome {
        let func = match read(&case.text) {
            Ok(func) => case.changed(&func),
            Err(why) => return Outcome::Invalid(why),
        };
        if validate(&func).is_err() {
            return Outcome::Undecided("the change makes no program".into());
        }
        let rotation = usize::try_from(case.seed / 4).unwrap_or(0);
        let extents = func.extents().into_iter().zip(EXTENTS.into_iter().cycle().skip(rotation % EXTENTS.len()));
        let Steps { chain, packed } = match steps(&self.judge, func, extents.collect(), &case.passes) {
            Ok(steps) => steps,
            Err(outcome) => return outcome,
        };
        if chain.links.len() == 1 && packed.is_none() {
            return Outcome::Undecided("no pass changes the program".into());
        }
        let first = &chain.links[0];
        let Ok(mut inputs) = arguments(&first.func, &first.symbols, case.seed) else {
            return Outcome::Undecided("the change makes shapes that cannot be".into());
        };
        // In every other case parameters that are written hold something before.
        if case.seed % 2 == 1 {
            let written = written(&first.func);
            for (number, (param, argument)) in (0u64..).zip(first.func.params.iter().zip(&mut inputs.params)) {
                if let (Argument::Tensor(tensor), Some(buffer)) = (argument, first.func.param_buffer(param))
                    && written.contains(&buffer.data)
                {
                    fill(tensor, case.seed.wrapping_mul(31).wrapping_add(number));
                }
            }
        }
        if case.passes.iter().any(|pass| pass == "lower_thread_allreduce") {
            // The tree adds in another order, which sums of small whole numbers do not depend on.
            inputs.params.iter_mut().for_each(whole);
        }
        let called = packed.map_or(Ok(()), |after| match chain.links.as_slice() {
            [before] => packed::calls(before, &after, &inputs, tally),
            // The arguments of a later program lie elsewhere.
            _ => Ok(()),
        });
        match called.and_then(|()| same(&chain, &inputs, tally)) {
            Ok(()) => Outcome::Held,
            // A changed program may leave its buffers.
            Err(Outcome::Invalid(why)) => Outcome::Undecided(why),
            Err(outcome) => outcome,
        }
    }
}

/// A program after the passes.
struct Steps {
    /// The programs with the parameters of the first one.
    chain: Chain,
    /// The program after `make_packed_api`, which has more parameters.
    packed: Option<PrimFunc>,
}

/// Puts small whole numbers in place of floats.
fn whole(argument: &mut Argument) {
    let Argument::Tensor(tensor) = argument else { return };
    if !tensor.dtype().scalar.is_float() {
        return;
    }
    for lane in (0..tensor.lane_count()).filter(|lane| tensor.get(*lane).is_some()).collect::<Vec<_>>() {
        let number = i32::try_from((lane * 5 + 3) % 7).unwrap_or(0) - 3;
        tensor.set(lane, Scalar::Float(number.into()));
    }
}

/// A program after each pass; passes that do not apply are left out.
fn steps(judge: &Judge, func: PrimFunc, symbols: Bindings, passes: &[String]) -> Result<Steps, Outcome> {
    let mut chain = Chain { links: vec![ChainLink::first(func, symbols)], refused: None };
    for text in passes {
        let calls = read_passes(text).map_err(|why| Outcome::Invalid(why.message))?;
        for call in calls {
            let last = &chain.links[chain.links.len() - 1];
            let Ok(before) = call.ask(&last.func) else { continue };
            // Before this pass, threads wait for each other after each statement on shared memory.
            let before = if call.pass.name == "thread_sync" { synchronized(&before) } else { before };
            let Ok(after) = (call.pass.run)(&before) else { continue };
            if funcs_equal(&before, &after.func, true) {
                continue;
            }
            let is_open = || {
                let reports = judge.check_pass(&before, &after.func, &after.evidence);
                reports.iter().any(|report| !report.verdict.is_proved())
            };
            if LEFT_TO_JUDGE.contains(&call.pass.name) && is_open() {
                continue;
            }
            let from = ChainLink { func: before, ..last.clone() };
            if matches!(after.evidence.comparison, Comparison::Packed) {
                return Ok(Steps { chain, packed: Some(after.func) });
            }
            let link = from.then(call.pass.name, after.func, &after.evidence);
            let link = link.map_err(|why| {
                Failure::outcome(format!("{} does not say where its arguments are", call.pass.name), why)
            })?;
            if chain.links.len() == 1 {
                chain.links[0] = from;
            }
            chain.links.push(link);
        }
    }
    Ok(Steps { chain, packed: None })
}

/// Reads a function; why it is none.
fn read(text: &str) -> Result<PrimFunc, String> {
    let module = tilewright_script::read_module(text)
        .map_err(|found| found.first().map_or_else(String::new, |first| first.message.clone()))?;
    module.funcs.into_iter().next().ok_or_else(|| "no function".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_as_they_are_written_are_changed_and_hold() {
        let mut oracle = WrittenPasses::new(&Environment::default()).unwrap();
        let (mut held, mut tally) = (0, Tally::default());
        for program in programs() {
            let (text, passes) = (program.program(None), program.passes.clone());
            let outcome = oracle.check(&WrittenCase { text, passes, changes: vec![], seed: 1 }, &mut tally);
            assert!(
                !matches!(outcome, Outcome::Failed(_) | Outcome::Invalid(_)),
                "{outcome:?}\n{}",
                program.program(None)
            );
            held += usize::from(outcome == Outcome::Held);
        }
        assert!(held * 4 >= programs().len() * 3, "{held} of {}", programs().len());
    }

    #[test]
    fn a_pass_that_does_something_else_is_noticed() {
        let text = "@T.prim_func\ndef main(A: T.Buffer((7,), \"int32\"), B: T.Buffer((7,), \"int32\")):\n    \
                    for i in range(7):\n        B[i] = A[i]\n";
        let right = read(text).unwrap();
        let wrong = read(&text.replace("B[i] = A[i]", "B[i] = A[6 - i]")).unwrap();
        // The parameters of both programs have to be the same.
        let wrong = PrimFunc { body: wrong.body, ..wrong };
        let first = ChainLink::first(right, Bindings::default());
        let last = ChainLink { func: wrong, ..ChainLink { pass: "reverse", ..first.clone() } };
        let inputs = arguments(&first.func, &first.symbols, 1).unwrap();
        let chain = Chain { links: vec![first, last], refused: None };
        assert!(matches!(same(&chain, &inputs, &mut Tally::default()), Err(Outcome::Failed(_))));
    }
}
