//! The judge's verdicts on passes against runs: what it proves must be so, also of a program or of evidence with a mistake in it;
//! what it refutes must be wrong.
//!
//! | looked at | a failure is |
//! |---|---|
//! | a program by itself, if somebody wrote it | an access that is proved to lie in its buffer, or a texel proved to be defined or free of races, and a trap |
//! | a pass | a verdict of *refuted* where runs agree; of *proved* where they differ; an internal error of the judge |
//! | the program after it with one change, or a lie in the evidence | *proved*, and runs differ or trap, or an argument has no place |
//! | that program by itself | an access that is refuted, where there is nothing to run into it, and no trap |
//!
//! Programs are smaller than those of other oracles, and the judge has a small budget: many programs show more than large ones.

mod runs;

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Bindings, Evidence, PrimFunc, validate};
use tilewright_verify::{Config as Budget, Judge, Obligation, Report, Verdict};

use self::runs::{Seen, Trapped, alone, both};
use crate::case::Case;
use crate::config::Config;
use crate::inputs::asks_memory;
use crate::mutate::{changed, crowded, lied, thoughtless};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::{Program, ProgramCase};
use tilewright_compiler::passes::{DEFAULT_PIPELINE, pass_by_name};

/// Most elements of a tensor, and the largest extent.
const ELEMENTS: i64 = 256;
const LARGEST: i64 = 33;
/// What Z3 may spend on a question, and for how long it may think as a safety net.
const RLIMIT: u32 = 200_000;
const TIMEOUT: Duration = Duration::from_secs(1);

/// A program, and what is changed in it after its passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedCase {
    /// The program.
    pub program: ProgramCase,
    /// Seeds of the changes: each is made for itself, after one of the passes.
    pub changes: Vec<u64>,
}

impl Case for JudgedCase {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let changes = (0..4).map(|_| u.arbitrary()).collect::<arbitrary::Result<_>>()?;
        let mut small = small(config);
        if u.ratio(1, 4)? {
            small.program.texture_percent = 60;
            small.program.loop_percent = 60;
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

/// The same ranges, but that programs stay small.
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

/// The oracle.
#[derive(Debug)]
pub struct JudgePrograms {
    judge: Judge,
}

/// Something that a pass, or a mistake, made of a program.
struct Step<'a> {
    name: &'a str,
    before: &'a PrimFunc,
    after: &'a PrimFunc,
    evidence: &'a Evidence,
    symbols: &'a Bindings,
    seed: u64,
}

/// Nothing to say, or what ends the look at a case.
type Look = Result<(), Outcome>;

impl JudgePrograms {
    /// With a judge of its own, on one thread.
    ///
    /// # Errors
    /// There is no solver that will do.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, timeout: TIMEOUT, rlimit: RLIMIT, ..Budget::default() };
        Ok(Self { judge: Judge::new(budget).map_err(|error| error.to_string())? })
    }

    /// A pass as it is: the judge should prove it, and must not refute it.
    fn unbroken(&self, step: &Step<'_>, open: &mut Option<String>, tally: &mut Tally) -> Look {
        let reports = self.judge.check_pass(step.before, step.after, step.evidence);
        let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone()));
        tally.count(&format!("passes {}", worst.as_ref().map_or("without obligation", Verdict::word)), 1);
        for report in &reports {
            tally.count(&format!("{} {}", report.obligation, report.verdict.word()), 1);
        }
        let seen = both(step.before, step.after, step.evidence, step.symbols, step.seed);
        if let Seen::Same(compared) = &seen {
            tally.count("values compared", *compared);
        }
        if let Some(report) = reports.iter().find(|report| is_internal(&report.verdict)) {
            return Err(fails("the judge contradicts itself", step, report));
        }
        let is_refuted = |report: &&Report| matches!(report.verdict, Verdict::Refuted(_));
        let is_open = |report: &&Report| !report.verdict.is_proved();
        match (reports.iter().find(is_refuted).or_else(|| reports.iter().find(is_open)), seen) {
            (None, Seen::Differ(how) | Seen::NoPlace(how)) => {
                let what = format!("{} is proved, and the result differs", step.name);
                Err(Failure::outcome(what, format!("{how}\n{}", shown(step))))
            }
            (Some(report), Seen::Same(_)) if is_refuted(&report) => {
                let what = format!("{} is refuted, and runs agree", step.name);
                match elsewhere(step, report, &reports, tally) {
                    Seen::Same(_) => Err(fails(&what, step, report)),
                    Seen::Differ(how) => Err(Failure::outcome(
                        format!("{} changes the result, for other extents", step.name),
                        format!("{how}\n{}\n{}", line(report), shown(step)),
                    )),
                    Seen::Nothing | Seen::NoPlace(_) => Ok(()),
                }
            }
            (Some(report), Seen::Differ(how)) => {
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

    /// A pass with a mistake: the judge must not prove it if runs differ.
    fn mistaken(&self, step: &Step<'_>, tally: &mut Tally) -> Look {
        if validate(step.after).is_err() {
            tally.count("changes that are malformed", 1);
            return Ok(());
        }
        let how = match both(step.before, step.after, step.evidence, step.symbols, step.seed) {
            Seen::Differ(how) | Seen::NoPlace(how) => how,
            Seen::Same(_) => {
                tally.count("changes that change nothing", 1);
                return Ok(());
            }
            Seen::Nothing => {
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
        // What is said of claims is not said of accesses: the program is asked about by itself.
        on_its_own(step.after, step.symbols, &self.judge.check_program(step.after), tally)
    }

    fn look(&self, case: &JudgedCase, program: Program, tally: &mut Tally) -> Outcome {
        let Program { func, seed, symbols } = program;
        // What somebody wrote may have the mistake in it: then that is all there is to say.
        if matches!(case.program, ProgramCase::Tvmscript { .. }) {
            let reports = self.judge.check_program(&func);
            if let Err(outcome) = on_its_own(&func, &symbols, &reports, tally) {
                return outcome;
            }
            if let Some(trap) = alone(&func, &symbols, true).flatten() {
                let is_seen = reports.iter().any(|report| !report.verdict.is_proved());
                let unseen = || Outcome::Undecided(format!("no obligation is about it: {}", trap.message));
                return if is_seen { Outcome::Held } else { unseen() };
            }
        }
        let (mut func, mut open, mut number) = (func, None, 0);
        // What a pass does may make another one wanted: then some changes have no place.
        let wanted = |name: &&&str| pass_by_name(name).is_ok_and(|pass| (pass.wanted)(&func));
        let n_passes = u64::try_from(DEFAULT_PIPELINE.iter().filter(wanted).count()).unwrap_or(1).max(1);
        for name in DEFAULT_PIPELINE {
            let Ok(pass) = pass_by_name(name) else { continue };
            if !(pass.wanted)(&func) {
                continue;
            }
            let (after, evidence) = match (pass.run)(&func) {
                Ok(done) => (done.func, done.evidence),
                Err(found) => {
                    let code = found.first().map_or("", |first| first.code);
                    return Outcome::Undecided(format!("{name} refuses: {code}"));
                }
            };
            let step = Step { name, before: &func, after: &after, evidence: &evidence, symbols: &symbols, seed };
            if let Err(outcome) = self.unbroken(&step, &mut open, tally) {
                return outcome;
            }
            for change in case.changes.iter().filter(|change| **change / 8 % n_passes == number) {
                if let Err(outcome) = self.one_change(&step, *change, tally) {
                    return outcome;
                }
            }
            number += 1;
            func = after;
        }
        open.map_or(Outcome::Held, Outcome::Undecided)
    }

    /// One mistake of a pass: in the program, in its loops, or in what is said of it.
    fn one_change(&self, step: &Step<'_>, change: u64, tally: &mut Tally) -> Look {
        let (mut after, mut evidence) = (step.after.clone(), step.evidence.clone());
        match change % 8 {
            0 | 1 if !evidence.buffers.is_empty() => evidence = lied(&evidence, change),
            2 if step.name == "vectorize" => after = thoughtless(step.before),
            3 => after = crowded(&after, change),
            _ => after = changed(&after, change),
        }
        self.mistaken(&Step { after: &after, evidence: &evidence, ..*step }, tally)
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
        self.look(case, program, tally)
    }
}

/// A program by itself: what is proved of its accesses, and refuted, against a run.
fn on_its_own(func: &PrimFunc, symbols: &Bindings, reports: &[Report], tally: &mut Tally) -> Look {
    let of = |id: Obligation| reports.iter().filter(move |report| report.obligation == id);
    let holds = |id| of(id).all(|report| report.verdict.is_proved());
    let Some([trap, unwatched]) =
        alone(func, symbols, true).zip(alone(func, symbols, false)).map(|(one, two)| [one, two])
    else {
        return Ok(());
    };
    tally.count("programs run by themselves", 1);
    let text = || tilewright_script::print_func(func);
    let is_outside = |trap: &Option<Trapped>| trap.as_ref().is_some_and(|trap| trap.is_outside);
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
    // Only what is in texels already is asked about: another texture has no such obligation.
    let races = |trap: &Trapped| {
        let textures = func.buffers().into_iter().filter(|buffer| buffer.scope.is_texture());
        let mut hit = textures.filter(|texture| trap.buffer.as_ref() == Some(&texture.name));
        let said = |texture: &tilewright_ir::Buffer| format!("texels of {texture} that are written");
        trap.is_race && hit.any(|texture| of(Obligation::Race).any(|report| report.subject == said(&texture)))
    };
    if let Some(trap) = trap.as_ref().filter(|trap| races(trap))
        && holds(Obligation::Race)
    {
        return Err(Failure::outcome("texels are proved free of races, and there is one", trap.message.clone()));
    }
    // A counterexample is an iteration that is reached, unless something that is read decides.
    let refuted = of(Obligation::Bounds).find(|report| matches!(report.verdict, Verdict::Refuted(_)));
    match refuted {
        Some(report) if trap.is_none() && func.symbols().is_empty() && !asks_memory(func) => {
            Err(Failure::outcome("an access is refuted, and none is outside", format!("{}\n{}", line(report), text())))
        }
        _ => Ok(()),
    }
}

/// What runs say for the extents of a counterexample, if they agree for those of the case. Nothing where it is the map that
/// is at fault there, which the program asked for, or the program means nothing there.
fn elsewhere(step: &Step<'_>, report: &Report, reports: &[Report], tally: &mut Tally) -> Seen {
    let Verdict::Refuted(found) = &report.verdict else { return Seen::Nothing };
    let value = |name: &str| found.shape.iter().find(|(shape, _)| shape == name).map(|(_, value)| *value);
    let symbols = step.symbols.iter().map(|(var, known)| (var.clone(), value(var.name()).unwrap_or(*known)));
    let symbols: Bindings = symbols.collect();
    if symbols == *step.symbols {
        return Seen::Same(0);
    }
    tally.count("passes refuted for other extents", 1);
    let of_map = |report: &Report| report.subject.starts_with("lambda") && !report.verdict.is_proved();
    if reports.iter().any(of_map) {
        return Seen::Nothing;
    }
    both(step.before, step.after, step.evidence, &symbols, step.seed)
}

fn is_internal(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(reason) if reason.is_internal())
}

/// Why something is open, without the names and numbers of the program.
fn reason(verdict: &Verdict) -> String {
    let Verdict::Unknown(reason) = verdict else { return verdict.word().to_owned() };
    let plain = reason.text().split('`').step_by(2).collect::<Vec<_>>().join("_");
    let plain: String = plain.chars().filter(|letter| !letter.is_ascii_digit()).take(90).collect();
    plain.trim().to_owned()
}

fn line(report: &Report) -> String {
    format!("{} of {}: {} ({})", report.obligation, report.subject, report.verdict, report.method)
}

fn shown(step: &Step<'_>) -> String {
    let [before, after] = [step.before, step.after].map(tilewright_script::print_func);
    format!("before:\n{before}\nafter:\n{after}")
}

fn fails(what: &str, step: &Step<'_>, report: &Report) -> Outcome {
    Failure::outcome(what, format!("{}\n{}", line(report), shown(step)))
}

#[cfg(test)]
mod tests;
