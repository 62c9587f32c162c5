//! Running a whole program: which functions are called, which schedules are lowered with which parameters.
//!
//! Schedules that the program lowers itself come first, in the order of the calls; then those that are left, in the order in
//! which they were made.

use std::rc::Rc;

use tilewright_ir::{Diagnostic, Span};
use tilewright_script::Scripted;
use tilewright_script::te::{SourceFile, StmtKind};

use super::args::Args;
use super::build::{Lowered, Param, ScheduleId, function_name};
use super::eval::Interp;
use super::value::{Closure, Eval, Placed, Value, to_items, to_str, wrong_kind};
use crate::block_schedule::BlockSchedule;

/// Stack of the evaluator's thread, in bytes. Recursion close to the limit touches 1.1 MiB of it in a release build.
const STACK: usize = 16 << 20;

/// Evaluates a program and lowers its schedules, in order; `entry` names a function of it to be called with its
/// defaults, and then only its schedules count.
///
/// # Errors
/// All problems of the program, each with its source position. A program without a schedule is an error, too.
pub fn evaluate(program: &SourceFile, entry: Option<&str>) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    on_large_stack(|| run(program, entry))
}

/// Runs an evaluation on a stack that is large enough.
fn on_large_stack<T: Send>(
    evaluation: impl FnOnce() -> Result<T, Vec<Diagnostic>> + Send,
) -> Result<T, Vec<Diagnostic>> {
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluation).map_err(|error| {
                vec![Diagnostic::error("resources", None, format!("no thread for the evaluator: {error}"))]
            })?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// [`evaluate`] on the stack that it has.
fn run(program: &SourceFile, entry: Option<&str>) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    let mut interp = Interp::new();
    if let Err(error) = interp.block(&program.body) {
        // A warning may say why it went wrong later.
        return Err(std::iter::once(error).chain(interp.warnings).collect());
    }
    let mut errors = Vec::new();
    match entry {
        Some(name) => {
            let (schedules, results) = (interp.schedules.len(), interp.lowered.len());
            let closure = interp.function(name, program).map_err(|error| vec![error])?;
            interp.call_entry(&closure, &mut errors);
            // With an entry function, the schedules of the module itself are not part of the result.
            interp.lowered.drain(..results);
            for schedule in &mut interp.schedules[..schedules] {
                schedule.lowered = true;
            }
        }
        None if interp.schedules.is_empty() => {
            for closure in interp.entries(program) {
                interp.call_entry(&closure, &mut errors);
            }
        }
        None => {}
    }
    interp.lower_rest(&mut errors);
    if !errors.is_empty() {
        errors.extend(interp.warnings);
        return Err(errors);
    }
    if interp.lowered.is_empty() {
        let message = "the program makes no schedule: there is nothing to lower";
        return Err(vec![Diagnostic::error("no-schedule", None, message).with_help(
            "end it with `s = te.create_schedule(B.op)`; a function is called if all its parameters have defaults",
        )]);
    }
    let mut lowered = interp.lowered;
    // Warnings are about the text, not about one of its functions: each is shown once.
    for item in &mut lowered {
        item.warnings.clear();
    }
    lowered[0].warnings = interp.warnings;
    unique_names(&mut lowered);
    Ok(lowered)
}

/// The schedules on blocks that a program made, and what it warns about.
#[derive(Clone, Debug, Default)]
pub struct Scheduled {
    /// The schedules, in the order in which they were made; one for each function of a module.
    pub schedules: Vec<BlockSchedule>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Evaluates a program that schedules functions in TVMScript, which `scripted` holds. The functions of the program are called if the
/// module itself makes no schedule.
///
/// # Errors
/// All problems of the program, each with its source position.
pub fn evaluate_scheduled(program: &SourceFile, scripted: &[Scripted]) -> Result<Scheduled, Vec<Diagnostic>> {
    on_large_stack(|| {
        let mut interp = Interp::new();
        interp.scripted = scripted.iter().cloned().map(Rc::new).collect();
        let mut errors: Vec<Diagnostic> = interp.block(&program.body).err().into_iter().collect();
        if errors.is_empty() && interp.block_schedules.is_empty() {
            for closure in interp.entries(program) {
                interp.call_entry(&closure, &mut errors);
            }
        }
        if errors.is_empty() && interp.block_schedules.is_empty() {
            let message = "the program makes no schedule when it is run";
            errors.push(Diagnostic::error("no-schedule", None, message).with_help(
                "make it beside the functions: `sch = tvm.tir.Schedule(main)`; a function is called if all its parameters \
                 have defaults",
            ));
        }
        if errors.is_empty() {
            let schedules = interp.block_schedules.into_iter().flat_map(|record| record.funcs).collect();
            return Ok(Scheduled { schedules, warnings: interp.warnings });
        }
        errors.extend(interp.warnings);
        Err(errors)
    })
}

/// Renames functions so that all names differ.
fn unique_names(lowered: &mut [Lowered]) {
    let mut taken: Vec<String> = Vec::new();
    for item in lowered {
        let base = item.func.name.clone();
        let mut name = base.clone();
        let mut count = 1;
        while taken.contains(&name) {
            name = format!("{base}_{count}");
            count += 1;
        }
        if name != base {
            item.func.name.clone_from(&name);
            item.definition.name.clone_from(&name);
            if let Some(written) = &mut item.written {
                written.name.clone_from(&name);
            }
            for (key, value) in &mut item.func.attrs.other {
                if key == "global_symbol" {
                    *value = tilewright_ir::AttrValue::Str(name.clone());
                }
            }
        }
        taken.push(name);
    }
}

impl<'a> Interp<'a> {
    /// Returns the value of a module variable if it is a function.
    fn global(&self, name: &str) -> Option<Rc<Closure<'a>>> {
        match self.global_value(name) {
            Some(Value::Closure(closure)) => Some(closure.clone()),
            _ => None,
        }
    }

    /// The function of the module that `name` names.
    fn function(&self, name: &str, program: &'a SourceFile) -> Eval<Rc<Closure<'a>>> {
        self.global(name).ok_or_else(|| {
            let names: Vec<_> = defined(program).collect();
            let help = if names.is_empty() {
                "the file defines no function".to_owned()
            } else {
                format!("the file defines {}", names.join(", "))
            };
            Diagnostic::error("unknown-entry", None, format!("there is no function `{name}`")).with_help(help)
        })
    }

    /// The functions of the module that can be called without arguments, in order.
    fn entries(&self, program: &'a SourceFile) -> Vec<Rc<Closure<'a>>> {
        let mut names: Vec<&str> = defined(program).collect();
        // A second definition of a name replaces the first, as in Python.
        let mut seen = Vec::new();
        names.retain(|name| {
            let new = !seen.contains(name);
            seen.push(*name);
            new
        });
        let closures = names.into_iter().filter_map(|name| self.global(name));
        closures.filter(|closure| closure.defaults.iter().all(Option::is_some)).collect()
    }

    /// Calls a function with its defaults; an error does not stop the others.
    fn call_entry(&mut self, closure: &Closure<'a>, errors: &mut Vec<Diagnostic>) {
        let (callee, span) = (closure.function.name.clone(), closure.function.span);
        let args = Args::new(callee, span, std::collections::VecDeque::new(), Vec::new());
        errors.extend(self.invoke(closure, args).err());
    }

    /// Lowers the schedules that no lower call used, with the parameters that the builder proposes.
    fn lower_rest(&mut self, errors: &mut Vec<Diagnostic>) {
        for record in self.schedules.iter().filter(|record| !record.lowered) {
            let name = record.function.as_deref().unwrap_or("main");
            let lowered = self.te.schedule(record.id).map_err(|error| vec![error]).and_then(|schedule| {
                let params = schedule.default_params();
                schedule.lower(&params, name)
            });
            match lowered {
                Ok(lowered) => self.lowered.push(lowered),
                Err(found) => errors.extend(found.into_iter().map(|error| error.at(record.span))),
            }
        }
    }

    /// `tvm.lower(s, [A, B], name=...)`; without a schedule, as `tvm.driver.lower([A, B])`, the function's only one.
    pub(super) fn lower_call(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let first = args.need("sch")?;
        let (schedule, (list, list_span)) = match first.0 {
            Value::Schedule(schedule) => (schedule, args.need("args")?),
            Value::List(_) | Value::Tuple(_) => (self.only_schedule(first.1)?, first),
            // What was scheduled is checked in any case.
            Value::Script(_) | Value::BlockSchedule(_) => {
                args.rest();
                return Ok(Value::Opaque("a lowered function"));
            }
            other => return Err(wrong_kind(first.1, "a schedule", &other)),
        };
        let is_build = args.callee.ends_with("build");
        if is_build {
            for name in ["target", "target_host"] {
                if let Some((value, span)) = args.take(name)? {
                    self.target_options(&value, span);
                }
            }
        }
        let name = args.take("name")?;
        args.take("binds")?.map_or(Ok(()), |(value, span)| match value {
            Value::None => Ok(()),
            _ => Err(Diagnostic::error("argument", Some(span), "`binds` is not supported")),
        })?;
        args.keyword("simple_mode");
        args.finish()?;
        let name = match name {
            Some((value, span)) => {
                let name = to_str(&value, span)?;
                function_name(&name).at(span)?
            }
            None => self.function_name().unwrap_or_else(|| "main".to_owned()),
        };
        let mut params = Vec::new();
        for item in to_items(&list) {
            params.push(match item {
                Value::Tensor(tensor) => Param::Tensor(tensor),
                Value::Expr(tilewright_ir::Expr::Var(var)) if self.te.is_symbol(&var) => Param::Scalar(var),
                other => return Err(wrong_kind(list_span, "tensors and te.var's", &other)),
            });
        }
        for record in self.schedules.iter_mut().filter(|record| record.id == schedule) {
            record.lowered = true;
        }
        let schedule = self.te.schedule(schedule).at(span)?;
        schedule.check_params(&params).at(list_span)?;
        // A call ends at its first error.
        let lowered = schedule.lower(&params, &name).map_err(|errors| {
            let first = errors.into_iter().next();
            first.unwrap_or_else(|| Diagnostic::error("lowering", None, "lowering failed")).at(span)
        })?;
        self.lowered.push(lowered);
        Ok(Value::Opaque("a lowered function"))
    }

    /// The schedule that the innermost call made, if it is the only one.
    fn only_schedule(&self, span: Span) -> Eval<ScheduleId> {
        let frame = self.frame();
        let mut here = self.schedules.iter().filter(|record| record.frame == frame);
        match (here.next(), here.next()) {
            (Some(only), None) => Ok(only.id),
            (None, _) => Err(Diagnostic::error("no-schedule", Some(span), "there is no schedule to lower")
                .with_help("make one by te.create_schedule(B.op)")),
            (Some(_), Some(_)) => Err(Diagnostic::error("which-schedule", Some(span), "which schedule is meant?")
                .with_help("pass it first: tvm.lower(s, [A, B])")),
        }
    }
}

/// The names of the functions that the text defines, in order.
fn defined(program: &SourceFile) -> impl Iterator<Item = &str> {
    program.body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Def(function) => Some(function.name.as_str()),
        _ => None,
    })
}
