//! Compares what claims prove about pairs written by hand, and about random changes of them, with runs of both programs.
//!
//! The second program of a pair of [`crate::corpus`] is changed at random, and the changed program is judged with the claim that was
//! found for the program without the change, or with a bent form of that claim. So wrong programs are judged with evidence that nearly
//! fits them, which no search would find: a check that the judge leaves out cannot hide behind a search that claims nothing wrong.
//!
//! | checked | a failure is |
//! |---|---|
//! | a pair whose runs differ, compared in one of the ways there are | everything is proved |
//! | a changed program that traps | accesses or iterations that run at once are proved, and the trap is about them |
//! | an equal pair as it was written | it is refuted |

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_compiler::pipeline::pair;
use tilewright_compiler::reorder;
use tilewright_ir::{Buffer, Comparison, Evidence, PrimFunc, validate};
use tilewright_verify::{Config as Budget, Judge, Report, Verdict};

use super::judge_pairs::{contradicted, false_proof, observe};
use crate::case::Case;
use crate::config::Config;
use crate::corpus::{bend::bent, extra_pairs, pairs};
use crate::mutate::{mutated_program, reordered_program, subtly_mutated_program};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// Z3's budget per question: bent claims ask hard questions for nothing.
const RLIMIT: u32 = 100_000;
/// Z3's time limit per question, a safety net beside the budget.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Steps of a part of a run on terms: the programs are tiny, and would be run undivided otherwise.
const PART_STEPS: u64 = 1;

/// How the programs of a pair are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// In whatever way proves them.
    Search,
    /// Statement by statement.
    Statements,
    /// By a claim of which iterations were which.
    Iterations,
    /// By a claim of where values come from.
    Values,
    /// By loops over the lanes of vectors.
    Lanes,
    /// By the definitions that both compute.
    Definitions,
    /// By a run on terms.
    Results,
    /// By a run on terms in small parts.
    Parts,
}

impl How {
    /// How the number of a draw says. What is rarely reached otherwise is drawn more often.
    const DRAWN: [Self; 14] = [
        Self::Search,
        Self::Statements,
        Self::Statements,
        Self::Iterations,
        Self::Values,
        Self::Values,
        Self::Values,
        Self::Lanes,
        Self::Lanes,
        Self::Definitions,
        Self::Definitions,
        Self::Results,
        Self::Parts,
        Self::Parts,
    ];

    /// Whether the shapes have to be constant.
    fn is_on_terms(self) -> bool {
        matches!(self, Self::Results | Self::Parts)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Statements => "statements",
            Self::Iterations => "iterations",
            Self::Values => "values",
            Self::Lanes => "lanes",
            Self::Definitions => "definitions",
            Self::Results => "results",
            Self::Parts => "parts",
        }
    }
}

/// A pair, a change, and a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimCase {
    /// The program before.
    pub before: String,
    /// The program after for which the claim is found.
    pub after: String,
    /// Whether the pair is equal, as its author says.
    pub is_equal: bool,
    /// The seeds of changes of the program after.
    pub changes: Vec<u64>,
    /// How the programs are compared.
    pub how: How,
    /// The seed of a change of the claim.
    pub bend: Option<u64>,
    /// The seed of the input values.
    pub seed: u64,
}

impl Case for ClaimCase {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let how = *u.choose(&How::DRAWN)?;
        let known = if u.ratio(1, 3)? { extra_pairs() } else { pairs() };
        let pair = u.choose(known)?;
        let constant = if how.is_on_terms() || u.ratio(1, 4)? { Some(u.int_in_range(0..=5)?) } else { None };
        let [before, after] = pair.programs(constant);
        let n_changes = if pair.is_equal { u.int_in_range(0..=7u8)?.div_ceil(4) } else { 0 };
        let changes = (0..n_changes).map(|_| u.arbitrary::<u32>().map(u64::from)).collect::<Result<_, _>>()?;
        let bend = if u.ratio(1, 3)? { Some(u.arbitrary::<u32>()?.into()) } else { None };
        // Sums of floats in another order are other numbers.
        let is_equal = pair.is_equal && !pair.reassociates;
        Ok(Self { before, after, is_equal, changes, how, bend, seed: u.arbitrary::<u16>()?.into() })
    }

    fn simpler(&self) -> Vec<Self> {
        let unbent = self.bend.map(|_| Self { bend: None, ..self.clone() });
        let fewer = crate::case::without_one(&self.changes).into_iter().map(|changes| Self { changes, ..self.clone() });
        unbent.into_iter().chain(fewer).collect()
    }

    fn features(&self) -> Vec<String> {
        vec![format!("how:{}", self.how.name())]
    }

    fn text(&self) -> String {
        let after = read(&self.after).map(|func| tilewright_script::print_func(&self.changed(&func)));
        let after = after.unwrap_or_else(|_| self.after.clone());
        format!("compared by {}\nbefore:\n{}\nafter:\n{after}", self.how.name(), self.before)
    }
}

impl ClaimCase {
    /// A program with the changes of the case.
    fn changed(&self, func: &PrimFunc) -> PrimFunc {
        let one = |func: PrimFunc, seed: &u64| {
            // Few of all changes concern a claim: another order of the statements, another operand, another lane. They are preferred.
            match seed % 4 {
                0 => reordered_program(&func, *seed),
                1 => subtly_mutated_program(&func, *seed),
                _ => mutated_program(&func, *seed),
            }
        };
        self.changes.iter().fold(func.clone(), one)
    }
}

/// The oracle `claims`; see the module.
#[derive(Debug)]
pub struct Claims {
    judge: Judge,
    /// A judge that runs programs on terms in small parts.
    in_parts: Judge,
}

impl Claims {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, timeout: TIMEOUT, rlimit: RLIMIT, ..Budget::default() };
        let small = Budget { part_steps: PART_STEPS, ..budget };
        let make = |budget| Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string());
        Ok(Self { judge: make(budget)?, in_parts: make(small)? })
    }

    /// The verdicts on a program after a claimed change, and on the program by itself.
    fn reports(&self, how: How, before: &PrimFunc, claim: &Claim) -> Vec<Report> {
        let judge = if how == How::Parts { &self.in_parts } else { &self.judge };
        let Some(evidence) = &claim.evidence else {
            return pair::validate(before, &claim.after, &[], judge).map_or_else(|_| Vec::new(), |found| found.reports);
        };
        let mut reports = judge.check_pass(before, &claim.after, evidence);
        reports.extend(judge.check_program(&claim.after));
        reports
    }
}

/// The program after in terms of the program before, and what is claimed of it; no evidence where the judge's search has to find it.
struct Claim {
    after: PrimFunc,
    evidence: Option<Evidence>,
}

impl Oracle for Claims {
    type Case = ClaimCase;

    const NAME: &'static str = "claims";

    fn check(&mut self, case: &ClaimCase, tally: &mut Tally) -> Outcome {
        let (before, after) = match (read(&case.before), read(&case.after)) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => return Outcome::Invalid(why),
        };
        let Some((before, claim)) = self.claim(case, &before, &after) else {
            return Outcome::Undecided(format!("nothing is claimed of {}", case.how.name()));
        };
        if validate(&claim.after).is_err() {
            return Outcome::Undecided("the change makes no program".into());
        }
        if matches!(case.how, How::Lanes | How::Search) && !take_the_same(&before, &claim.after) {
            return Outcome::Undecided("the programs take other arguments".into());
        }
        let observed = observe(&before, &claim.after, case.seed);
        let wrong = contradicted(&observed.traps[1]);
        if !wrong.is_empty()
            && let Some(outcome) = false_proof(&wrong, &self.judge.check_program(&claim.after), &claim.after)
        {
            return outcome;
        }
        let is_unchanged = case.is_equal && case.changes.is_empty();
        let Some(difference) = observed.difference.filter(|_| !is_unchanged) else {
            return if is_unchanged && case.bend.is_none() {
                self.equal(case, &before, &claim)
            } else {
                Outcome::Undecided("runs do not tell the programs apart".into())
            };
        };
        let reports = self.reports(case.how, &before, &claim);
        let is_proved = !reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved());
        tally.count(if is_proved { "programs that differ proved" } else { "programs that differ not proved" }, 1);
        tally.saw(&format!("differ:{}", case.how.name()));
        if is_proved {
            let programs = [&before, &claim.after].map(tilewright_script::print_func);
            let detail = format!("{difference}\nbefore:\n{}\nafter:\n{}", programs[0], programs[1]);
            return Failure::outcome(format!("programs that differ are proved equal by {}", case.how.name()), detail);
        }
        Outcome::Held
    }
}

impl Claims {
    /// The program before as it is compared, and the claim about the changed program after; `None` if nothing is claimed in this way.
    fn claim(&self, case: &ClaimCase, before: &PrimFunc, after: &PrimFunc) -> Option<(PrimFunc, Claim)> {
        if case.how == How::Lanes {
            // The claim contains the programs without vectors, so it is found for the changed program.
            let (before, after, evidence) = pair::vector_claim(before, &case.changed(after), &self.judge)?;
            let evidence = case.bend.map_or(evidence.clone(), |seed| bent(&evidence, seed));
            return Some((before, Claim { after, evidence: Some(evidence) }));
        }
        let (after, evidence) = match case.how {
            How::Search => (after.clone(), None),
            How::Values => pair::value_claim(before, after).map(|(after, evidence)| (after, Some(evidence)))?,
            How::Definitions => {
                pair::definitions_claim(before, after, false).map(|(after, evidence)| (after, Some(evidence)))?
            }
            How::Statements | How::Lanes => pair::pair(before, after, &[]).ok().map(|(a, e)| (a, Some(e)))?,
            How::Iterations => {
                let (after, evidence) = pair::pair(before, after, &[]).ok()?;
                let found = reorder::find(before, &after, &evidence).ok()?;
                (after, Some(Evidence { comparison: Comparison::Iterations(found), ..evidence }))
            }
            How::Results | How::Parts => results(before, after)?,
        };
        let evidence = match (evidence, case.bend) {
            (Some(evidence), Some(seed)) => Some(bent(&evidence, seed)),
            (evidence, _) => evidence,
        };
        let after = case.changed(&after);
        Some((before.clone(), Claim { after, evidence }))
    }

    /// The outcome of an equal pair that nobody changed.
    fn equal(&self, case: &ClaimCase, before: &PrimFunc, claim: &Claim) -> Outcome {
        let reports = self.reports(case.how, before, claim);
        // A claim that does not fit refutes nothing: a program is refuted by a run alone, which the search makes.
        let refuted = reports.iter().find(|report| matches!(report.verdict, Verdict::Refuted(_)));
        match refuted {
            Some(report) if case.how == How::Search => {
                let detail = format!("{} {}: {}", report.obligation, report.subject, report.verdict);
                Failure::outcome("an equal pair is refuted", detail)
            }
            _ if reports.iter().all(|report| report.verdict.is_proved()) => Outcome::Held,
            _ => Outcome::Undecided("an equal pair is not proved in this way".into()),
        }
    }
}

/// Whether two programs take the same tensors, as far as their shapes are written in the same way.
fn take_the_same(before: &PrimFunc, after: &PrimFunc) -> bool {
    let form = |buffer: &Buffer| (buffer.dtype, buffer.shape.iter().map(ToString::to_string).collect::<Vec<_>>());
    let forms = |func: &PrimFunc| func.buffer_map.iter().map(|(_, buffer)| form(buffer)).collect::<Vec<_>>();
    forms(before) == forms(after)
}

/// The claim that the parameters hold the same values in the end, and nothing about what is inside.
fn results(before: &PrimFunc, after: &PrimFunc) -> Option<(PrimFunc, Option<Evidence>)> {
    use tilewright_ir::{BufferChange, BufferClaim, IndexMap};
    let claims = before.buffer_map.iter().zip(&after.buffer_map).map(|((_, x), (_, y))| {
        (x.shape == y.shape && x.dtype == y.dtype).then(|| BufferClaim {
            before: x.clone(),
            after: y.clone(),
            map: IndexMap::identity(x.shape.clone()),
            change: BufferChange::Rename,
            padded_axes: Vec::new(),
        })
    });
    let buffers = claims.collect::<Option<Vec<_>>>()?;
    let evidence = Evidence { comparison: Comparison::Results, buffers, ..Evidence::default() };
    (before.buffer_map.len() == after.buffer_map.len()).then(|| (after.clone(), Some(evidence)))
}

/// Reads a function; why it is none.
fn read(text: &str) -> Result<PrimFunc, String> {
    let module = tilewright_script::read_module(text)
        .map_err(|found| found.first().map_or_else(String::new, |first| first.message.clone()))?;
    let func = module.funcs.into_iter().next().ok_or_else(|| "no function".to_owned())?;
    match validate(&func) {
        Ok(_) => Ok(func),
        Err(found) => Err(found.first().map_or_else(String::new, |first| first.code.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n    A = T.match_buffer(a, (5,), \"int32\")\n    \
                        B = T.match_buffer(b, (5,), \"int32\")\n    for i in range(5):\n        B[i] = A[i]\n";

    fn case(after: &str, is_equal: bool, how: How) -> ClaimCase {
        ClaimCase { before: COPY.into(), after: after.into(), is_equal, changes: vec![], how, bend: None, seed: 1 }
    }

    #[test]
    fn right_verdicts_hold_in_every_way() {
        let mut oracle = Claims::new(&Environment::default()).unwrap();
        let wrong = COPY.replace("= A[i]", "= A[4 - i]");
        for how in How::DRAWN {
            let of_equal = oracle.check(&case(COPY, true, how), &mut Tally::default());
            assert!(!matches!(of_equal, Outcome::Failed(_)), "{of_equal:?}");
            let of_wrong = oracle.check(&case(&wrong, false, how), &mut Tally::default());
            assert!(matches!(of_wrong, Outcome::Held | Outcome::Undecided(_)), "{of_wrong:?}");
        }
    }

    #[test]
    fn a_false_proof_is_detected() {
        // The judge is right, so the claim is made of a program that is asked for in place of the one that is judged.
        let mut oracle = Claims::new(&Environment::default()).unwrap();
        let proved = oracle.reports(
            How::Statements,
            &read(COPY).unwrap(),
            &Claim { after: read(COPY).unwrap(), evidence: None },
        );
        assert!(proved.iter().all(|report| report.verdict.is_proved()));
        let held = oracle.check(&case(COPY, true, How::Search), &mut Tally::default());
        assert_eq!(held, Outcome::Held);
    }
}
