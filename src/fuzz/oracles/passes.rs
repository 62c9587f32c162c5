//! A program in the interpreter, before and after every pass: the first pass that changes the result is named.

use tilewright_ir::{Evidence, PrimFunc};

use crate::fuzz::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::fuzz::program::ProgramCase;
use crate::harness::engine::{Program, Status};
use crate::harness::interpreter::Interpreter;
use crate::harness::stages::{Config, Stage, run_chain};
use crate::passes::{DEFAULT_PIPELINE, pass_by_name};

/// The oracle.
#[derive(Debug, Default)]
pub struct Passes;

impl Passes {
    /// The interpreter on one thread.
    ///
    /// # Errors
    /// None.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

impl Oracle for Passes {
    type Case = ProgramCase;

    const NAME: &'static str = "passes";

    fn check(&mut self, case: &ProgramCase, tally: &mut Tally) -> Outcome {
        let program = match case.build() {
            Ok(program) => program,
            Err(why) => return Outcome::Invalid(why),
        };
        let mut funcs: Vec<(&str, _, Option<Evidence>)> = vec![("input", program.func, None)];
        for name in DEFAULT_PIPELINE {
            let before = &funcs[funcs.len() - 1].1;
            let Ok(pass) = pass_by_name(name) else { continue };
            if !(pass.wanted)(before) {
                continue;
            }
            match (pass.run)(before) {
                Ok(after) => {
                    tally.saw(&format!("pass:{name}"));
                    funcs.push((name, after.func, Some(after.evidence)));
                }
                Err(found) => {
                    let code = found.first().map_or("", |first| first.code);
                    return Outcome::Undecided(format!("{name} refuses: {code}"));
                }
            }
        }
        let stages: Vec<Stage<'_>> =
            funcs.iter().map(|(name, func, evidence)| stage(name, func, evidence.as_ref())).collect();
        let config = Config { seed: program.seed, symbols: Vec::new() };
        let report = match run_chain(&stages, &config, &interpreter(), &[]) {
            Ok(report) => report,
            Err(fault) => return Outcome::Invalid(fault.code.to_owned()),
        };
        let Some(first) = report.engines.first().filter(|first| first.status == Status::Ok) else {
            return Outcome::Invalid("the program traps".into());
        };
        match report.engines.iter().find(|line| line.status != Status::Ok) {
            None => Outcome::Held,
            Some(line) if line.status == Status::Skipped => Outcome::Undecided(line.detail.clone()),
            Some(line) => {
                let detail = line.first.as_ref().map_or_else(|| line.detail.clone(), ToString::to_string);
                Failure::outcome(format!("{} changes the result of {}", line.stage, first.stage), detail)
            }
        }
    }
}

fn stage<'a>(name: &'a str, func: &'a PrimFunc, evidence: Option<&'a Evidence>) -> Stage<'a> {
    Stage { name, program: Program::Func(func), evidence, reassociates: false }
}

/// One thread, and only so many iterations: a program that never ends is no case.
fn interpreter() -> Interpreter {
    let config = tilewright_interp::Config { threads: 1, fuel: Some(1 << 22), ..tilewright_interp::Config::default() };
    Interpreter { config }
}
