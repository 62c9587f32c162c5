//! Compares the judge's verdicts on passes with runs in the interpreter. A proved claim has to hold,
//! even if the program or the evidence contains a mistake; a refuted claim has to be wrong.
//!
//! | checked | a failure is |
//! |---|---|
//! | a program alone, if it is given as text | every access is proved to be in bounds, or iterations that run at once to be apart, and the program traps |
//! | a pass | *refuted* although runs agree; *proved* although they differ; an internal error of the judge |
//! | the result of a pass with one change, or with false evidence | *proved* although runs differ or trap, or although an argument has no position |
//! | the changed program alone | an access is refuted, nothing prevents its execution, and the run does not trap |
//!
//! Programs are smaller than those of other oracles, and the judge's budget is small: many small
//! programs find more than few large ones.

mod runs;

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Bindings, Evidence, Expr, For, PrimFunc, Stmt, StmtKind, validate};
use tilewright_verify::{Config as Budget, Judge, Method, Obligation, Report, Verdict};

use self::runs::{RunComparison, TrapInfo, compare_runs, run_alone};
use crate::case::Case;
use crate::chain::{is_optional, passes_for};
use crate::conditions::with_condition;
use crate::config::Config;
use crate::inputs::{control_reads_memory, thread_loops_wait};
use crate::mutate::{false_evidence, mutated_program, naively_vectorized, with_racing_loop};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::{BuiltProgram, ProgramCase};
use tilewright_compiler::passes::pass_by_name;

/// Limit on the number of elements of a tensor.
const ELEMENTS: i64 = 256;
/// Limit on the extent of an axis.
const LARGEST: i64 = 33;
/// Z3's budget per question.
const RLIMIT: u32 = 200_000;
/// Z3's time limit per question, a safety net beside the budget.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A case: a program and the changes made to the results of its passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedCase {
    /// The program.
    pub program: ProgramCase,
    /// Seeds of the changes. Each is applied by itself, to the result of one of the passes.
    pub changes: Vec<u64>,
}

impl Case for JudgedCase {
    /// Draws four changes and a small program. In one case out of four, 60 % of the tensors are
    /// textures and 60 % of the loops are not serial.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let changes = (0..4).map(|_| u.arbitrary()).collect::<arbitrary::Result<_>>()?;
        let mut small = small(config);
        if u.ratio(1, 4)? {
            small.program.texture_percent = 60;
            small.program.loop_percent = 60;
            small.program.shared_percent = 40;
        }
        Ok(Self { changes, program: ProgramCase::draw(u, &small)? })
    }

    fn simpler(&self) -> Vec<Self> {
        let fewer = crate::case::without_one(&self.changes).into_iter();
        let fewer = fewer.map(|changes| Self { changes, program: self.program.clone() });
        let smaller = self.program.simpler().into_iter();
        fewer.chain(smaller.map(|program| Self { program, changes: self.changes.clone() })).collect()
    }

    fn features(&self) -> Vec<String> {
        self.program.features()
    }

    fn text(&self) -> String {
        self.program.text()
    }

    fn pinned(&self) -> Option<Self> {
        Some(Self { program: self.program.pinned()?, changes: self.changes.clone() })
    }
}

/// The ranges with smaller limits, but more symbolic extents and more composed layouts, which only
/// the judge can decide.
fn small(config: &Config) -> Config {
    let mut config = config.clone();
    let least = |range: &std::ops::RangeInclusive<usize>, most: usize| {
        *range.start()..=most.clamp(*range.start(), *range.end())
    };
    let (extents, program) = (&mut config.extents, &mut config.program);
    extents.rank = least(&extents.rank, 4);
    extents.largest = extents.largest.min(LARGEST);
    extents.elements = extents.elements.min(ELEMENTS);
    program.inputs = least(&program.inputs, 2);
    program.stages = least(&program.stages, 2);
    program.depth = least(&program.depth, 2);
    program.symbolic_percent = program.symbolic_percent.max(15);
    config.layout.operations = least(&config.layout.operations, 4);
    config.layout.cut_percent = config.layout.cut_percent.max(50);
    config
}

/// The oracle `judge_programs`; see the module.
#[derive(Debug)]
pub struct JudgePrograms {
    judge: Judge,
}

/// A program before and after a pass, or before and after a pass with a mistake.
struct Transformation<'a> {
    name: &'a str,
    before: &'a PrimFunc,
    after: &'a PrimFunc,
    evidence: &'a Evidence,
    symbols: &'a Bindings,
    seed: u64,
}

/// `Err` if the case is decided, by a failure or by an open obligation.
type CheckResult = Result<(), Outcome>;

impl JudgePrograms {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, timeout: TIMEOUT, rlimit: RLIMIT, ..Budget::default() };
        Ok(Self { judge: Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }

    /// Checks a pass as it is: the judge should prove it, and must not refute it. The first open
    /// obligation is stored in `open`.
    fn check_pass_as_is(&self, step: &Transformation<'_>, open: &mut Option<String>, tally: &mut Tally) -> CheckResult {
        let reports = self.judge.check_pass(step.before, step.after, step.evidence);
        let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone()));
        tally.count(&format!("passes {}", worst.as_ref().map_or("without obligation", Verdict::word)), 1);
        for report in &reports {
            tally.count(&format!("{} {}", report.obligation, report.verdict.word()), 1);
        }
        let seen = compare_runs(step.before, step.after, step.evidence, step.symbols, step.seed);
        if let RunComparison::Same(compared) = &seen {
            tally.count("values compared", *compared);
        }
        if let Some(report) = reports.iter().find(|report| is_internal(&report.verdict)) {
            return Err(fails("the judge contradicts itself", step, report));
        }
        let is_refuted = |report: &&Report| matches!(report.verdict, Verdict::Refuted(_));
        let is_open = |report: &&Report| !report.verdict.is_proved();
        // Refutations come first: the runs can contradict a refutation, but not an open obligation.
        match (reports.iter().find(is_refuted).or_else(|| reports.iter().find(is_open)), seen) {
            (None, RunComparison::Differ(how) | RunComparison::NoPlace(how)) => {
                let what = format!("{} is proved, and the result differs", step.name);
                Err(Failure::outcome(what, format!("{how}\n{}", shown(step))))
            }
            (Some(report), RunComparison::Same(_)) if is_refuted(&report) => {
                // No run shows what a device cannot do: a kernel that reads and writes one image.
                if report.obligation == Obligation::Texture && matches!(report.method, Method::Structure) {
                    tally.count("passes refuted by what images cannot do", 1);
                    return Ok(());
                }
                // A condition that leaves its type does so in the program before, too: it is refuted there, or open because of what is
                // read on the way.
                if self.is_refuted_before(step.before, report) {
                    tally.count("passes refuted as the program before is", 1);
                    return Ok(());
                }
                let what = format!("{} is refuted, and runs agree", step.name);
                // The counterexample may have other extents than the case, for which the runs may differ.
                match compare_at_counterexample(step, report, &reports, tally) {
                    RunComparison::Same(_) => Err(fails(&what, step, report)),
                    RunComparison::Differ(how) => Err(Failure::outcome(
                        format!("{} changes the result, for other extents", step.name),
                        format!("{how}\n{}\n{}", line(report), shown(step)),
                    )),
                    RunComparison::Nothing | RunComparison::NoPlace(_) => Ok(()),
                }
            }
            (Some(report), RunComparison::Differ(how)) => {
                // The judge is right here, and the pass is wrong.
                let what = format!("{} changes the result, and is not proved", step.name);
                Err(Failure::outcome(what, format!("{how}; {}", line(report))))
            }
            (Some(report), _) => {
                tally.count(&format!("open: {} {}: {}", step.name, report.obligation, reason(&report.verdict)), 1);
                open.get_or_insert_with(|| format!("{} {} {}", step.name, report.obligation, report.verdict.word()));
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Whether the program before is refuted like the one after, as a whole or in the iteration that the counterexample shows: there may be
    /// several in which a condition leaves its type.
    fn is_refuted_before(&self, before: &PrimFunc, after: &Report) -> bool {
        let there = || at_iteration(before, after).map(|func| self.judge.check_program(&func)).unwrap_or_default();
        let is_same_there = |report: &Report| {
            matches!(report.verdict, Verdict::Refuted(_)) && report.subject == after.subject && is_same(report, after)
        };
        self.judge.check_program(before).iter().any(|report| is_same(report, after))
            || there().iter().any(is_same_there)
    }

    /// Checks a pass with a mistake: if runs differ, the judge must not prove it.
    fn check_mistake(&self, step: &Transformation<'_>, tally: &mut Tally) -> CheckResult {
        if validate(step.after).is_err() {
            tally.count("changes that are malformed", 1);
            return Ok(());
        }
        let how = match compare_runs(step.before, step.after, step.evidence, step.symbols, step.seed) {
            RunComparison::Differ(how) | RunComparison::NoPlace(how) => how,
            RunComparison::Same(_) => {
                tally.count("changes that change nothing", 1);
                return Ok(());
            }
            RunComparison::Nothing => {
                tally.count("changes that cannot be run", 1);
                return Ok(());
            }
        };
        let reports = self.judge.check_pass(step.before, step.after, step.evidence);
        let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone()));
        tally.count(&format!("changes {}", worst.as_ref().map_or("without obligation", Verdict::word)), 1);
        if let Some(report) = reports.iter().find(|report| is_internal(&report.verdict)) {
            return Err(fails("the judge contradicts itself", step, report));
        }
        if reports.iter().all(|report| report.verdict.is_proved()) {
            let what = format!("a changed {} is proved, and the result differs", step.name);
            return Err(Failure::outcome(what, format!("{how}\n{}", shown(step))));
        }
        // A claim about the pass says nothing about single accesses, so the changed program is
        // checked alone, too.
        check_alone(step.after, step.symbols, &self.judge.check_program(step.after), tally)
    }

    /// Checks a program: alone if it is given as text, then every pass of the pipeline, then every
    /// pass with each of its changes.
    fn check_program(&self, case: &JudgedCase, program: BuiltProgram, tally: &mut Tally) -> Outcome {
        let BuiltProgram { func, seed, symbols } = program;
        // A program given as text may contain the mistake itself; if it traps, passes cannot be
        // compared.
        if matches!(case.program, ProgramCase::Tvmscript { .. }) {
            let reports = self.judge.check_program(&func);
            if let Err(outcome) = check_alone(&func, &symbols, &reports, tally) {
                return outcome;
            }
            if let Some(trap) = run_alone(&func, &symbols, true).flatten() {
                let is_seen = reports.iter().any(|report| !report.verdict.is_proved());
                let unseen = || Outcome::Undecided(format!("no obligation is about it: {}", trap.message));
                return if is_seen { Outcome::Held } else { unseen() };
            }
        }
        let (mut func, mut open, mut number) = (func, None, 0);
        // A pass may make another one applicable, so this count may be too low; changes beyond it
        // are not made.
        let wanted = |name: &&&str| pass_by_name(name).is_ok_and(|pass| (pass.wanted)(&func));
        let names = match passes_for(&func, Some(seed)) {
            Ok(names) => names,
            Err(outcome) => return outcome,
        };
        let n_passes = u64::try_from(names.iter().filter(wanted).count()).unwrap_or(1).max(1);
        for name in names {
            let Ok(pass) = pass_by_name(name) else { continue };
            if !(pass.wanted)(&func) {
                continue;
            }
            let (after, evidence) = match (pass.run)(&func) {
                Ok(done) => (done.func, done.evidence),
                Err(_) if is_optional(name) => continue,
                Err(found) => {
                    let code = found.first().map_or("", |first| first.code);
                    return Outcome::Undecided(format!("{name} refuses: {code}"));
                }
            };
            let step =
                Transformation { name, before: &func, after: &after, evidence: &evidence, symbols: &symbols, seed };
            if let Err(outcome) = self.check_pass_as_is(&step, &mut open, tally) {
                return outcome;
            }
            for change in case.changes.iter().filter(|change| **change / 8 % n_passes == number) {
                if let Err(outcome) = self.check_one_change(&step, *change, tally) {
                    return outcome;
                }
            }
            number += 1;
            func = after;
        }
        open.map_or(Outcome::Held, Outcome::Undecided)
    }

    /// Checks one mistake of a pass: in its evidence, in its loops, or in its result.
    fn check_one_change(&self, step: &Transformation<'_>, change: u64, tally: &mut Tally) -> CheckResult {
        let (mut after, mut evidence) = (step.after.clone(), step.evidence.clone());
        if change % 8 == 4 {
            let guarded = with_condition(&after, change / 64);
            self.check_mistake(&Transformation { after: &guarded, ..*step }, tally)?;
        }
        match change % 8 {
            0 | 1 if !evidence.buffers.is_empty() => evidence = false_evidence(&evidence, change),
            2 if step.name == "vectorize" => after = naively_vectorized(step.before),
            3 => after = with_racing_loop(&after, change),
            _ => after = mutated_program(&after, change),
        }
        self.check_mistake(&Transformation { after: &after, evidence: &evidence, ..*step }, tally)
    }
}

impl Oracle for JudgePrograms {
    type Case = JudgedCase;

    const NAME: &'static str = "judge_programs";

    fn check(&mut self, case: &JudgedCase, tally: &mut Tally) -> Outcome {
        let program = match case.program.build() {
            Ok(program) => program,
            Err(why) => return Outcome::Invalid(why),
        };
        self.check_program(case, program, tally)
    }
}

/// Checks the verdicts on a program alone against a run of it.
fn check_alone(func: &PrimFunc, symbols: &Bindings, reports: &[Report], tally: &mut Tally) -> CheckResult {
    let of = |id: Obligation| reports.iter().filter(move |report| report.obligation == id);
    let holds = |id| of(id).all(|report| report.verdict.is_proved());
    let Some([trap, unwatched]) =
        run_alone(func, symbols, true).zip(run_alone(func, symbols, false)).map(|(one, two)| [one, two])
    else {
        return Ok(());
    };
    tally.count("programs run by themselves", 1);
    let text = || tilewright_script::print_func(func);
    let is_outside = |trap: &Option<TrapInfo>| trap.as_ref().is_some_and(|trap| trap.is_outside);
    if is_outside(&trap) && unwatched.is_none() {
        let what = "an access is outside only while somebody watches for races";
        return Err(Failure::outcome(what, text()));
    }
    if let Some(trap) = &trap
        && trap.is_outside
        && holds(Obligation::Bounds)
        && holds(Obligation::Overflow)
        && holds(Obligation::Lanes)
    {
        return Err(Failure::outcome(
            "every access is proved to be inside, and one is not",
            format!("{}\n{}", trap.message, text()),
        ));
    }
    if let Some(trap) = trap.as_ref().filter(|trap| trap.is_race)
        && holds(Obligation::Race)
        && !thread_loops_wait(&func.body)
    {
        let what = "iterations that run at once are proved apart, and two of them race";
        return Err(Failure::outcome(what, format!("{}\n{}", trap.message, text())));
    }
    // The iteration of a counterexample is executed unless a loaded value prevents it.
    let refuted = of(Obligation::Bounds).find(|report| matches!(report.verdict, Verdict::Refuted(_)));
    match refuted {
        Some(report) if trap.is_none() && func.symbols().is_empty() && !control_reads_memory(func) => {
            Err(Failure::outcome("an access is refuted, and none is outside", format!("{}\n{}", line(report), text())))
        }
        _ => Ok(()),
    }
}

/// Runs a refuted pass with the extents of the counterexample. `Nothing` if the program requested a
/// map that is wrong for them, or is undefined for them.
fn compare_at_counterexample(
    step: &Transformation<'_>,
    report: &Report,
    reports: &[Report],
    tally: &mut Tally,
) -> RunComparison {
    let Verdict::Refuted(found) = &report.verdict else { return RunComparison::Nothing };
    let value = |name: &str| found.shape.iter().find(|(shape, _)| shape == name).map(|(_, value)| *value);
    let symbols = step.symbols.iter().map(|(var, known)| (var.clone(), value(var.name()).unwrap_or(*known)));
    let symbols: Bindings = symbols.collect();
    if symbols == *step.symbols {
        return RunComparison::Same(0);
    }
    tally.count("passes refuted for other extents", 1);
    let maps: Vec<String> = step.evidence.buffers.iter().map(|claim| claim.map.to_string()).collect();
    let is_open_map = |report: &Report| !report.verdict.is_proved() && maps.contains(&report.subject);
    if reports.iter().any(is_open_map) {
        return RunComparison::Nothing;
    }
    compare_runs(step.before, step.after, step.evidence, &symbols, step.seed)
}

/// Whether a verdict is an internal error of the judge.
fn is_internal(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(reason) if reason.is_internal())
}

/// The reason why an obligation is open, without the names and numbers of the program, for
/// counting.
fn reason(verdict: &Verdict) -> String {
    let Verdict::Unknown(reason) = verdict else { return verdict.word().to_owned() };
    let text = reason.text().split('`').step_by(2).collect::<Vec<_>>().join("_");
    let text: String = text.chars().filter(|letter| !letter.is_ascii_digit()).take(90).collect();
    text.trim().to_owned()
}

/// Whether two reports, the first of the program before, are about the same obligation and show the same counterexample, of a statement that a
/// pass may have written in another way. What leaves its type may be written otherwise, too: `uint8(1 + -3)` becomes `uint8(-2)`. A pass may
/// add parameters, which have values then.
fn is_same(one: &Report, other: &Report) -> bool {
    let is_open = matches!(one.verdict, Verdict::Unknown(_)) && one.subject == other.subject;
    let is_same_value = match (&one.verdict, &other.verdict) {
        (Verdict::Refuted(one), Verdict::Refuted(other)) => {
            let is_among = |value| other.assignments.contains(value);
            one.shape == other.shape && !one.assignments.is_empty() && one.assignments.iter().all(is_among)
        }
        _ => false,
    };
    let is_overflow = one.obligation == Obligation::Overflow && (is_open || is_same_value);
    one.obligation == other.obligation && (one.verdict == other.verdict || is_overflow)
}

/// The program whose loops run in the iteration of a counterexample alone, if they run in it at all.
fn at_iteration(func: &PrimFunc, report: &Report) -> Option<PrimFunc> {
    struct At<'a>(&'a [(String, i128)]);
    impl Rewrite for At<'_> {
        type Error = ();

        fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, ()> {
            let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
            let value = self.0.iter().find(|(name, _)| name == inner.var.name()).map(|(_, value)| *value);
            let Some(value) = value else { return self.stmt_children(stmt) };
            let (min, extent) = (inner.min.as_const_int().ok_or(())?, inner.extent.as_const_int().ok_or(())?);
            if !(min..min + extent).contains(&value) {
                return Err(());
            }
            let typed = |value: i128| Expr::int_of(value, inner.var.dtype().scalar).ok_or(());
            let run = For { min: typed(value)?, extent: typed(1)?, body: self.stmt(&inner.body)?, ..(**inner).clone() };
            Ok(Stmt::new(StmtKind::For(run.into())).at(stmt.span))
        }
    }
    let Verdict::Refuted(found) = &report.verdict else { return None };
    let body = At(&found.assignments).stmt(&func.body).ok()?;
    Some(PrimFunc { body, ..func.clone() })
}

/// A report as one line.
fn line(report: &Report) -> String {
    format!("{} of {}: {} ({})", report.obligation, report.subject, report.verdict, report.method)
}

/// The program before and after the pass, as text.
fn shown(step: &Transformation<'_>) -> String {
    let [before, after] = [step.before, step.after].map(tilewright_script::print_func);
    format!("before:\n{before}\nafter:\n{after}")
}

/// A failure with the report and the programs.
fn fails(what: &str, step: &Transformation<'_>, report: &Report) -> Outcome {
    Failure::outcome(what, format!("{}\n{}", line(report), shown(step)))
}

#[cfg(test)]
mod tests;
