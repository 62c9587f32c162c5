//! Running a whole program: which functions are called, which schedules are lowered with which parameters.

use std::rc::Rc;

use tilewright_ir::{Diagnostic, Span};
use tilewright_script::te::{Program, StmtKind};

use super::args::Args;
use super::builtins::function_name;
use super::eval::Interp;
use super::lower::{self, Lowered, Param, Request};
use super::value::{Closure, Eval, TensorKind, Value, to_items, to_str, wrong_kind};

/// Stack of the evaluator's thread, in bytes. Recursion close to the limit touches 1.1 MiB of it in a release build.
const STACK: usize = 16 << 20;

/// Evaluates a program and lowers its schedules, in order; `entry` names a function of it to be called with its
/// defaults, and then only its schedules count.
///
/// # Errors
/// What is wrong with the program, each with its place; a program without any schedule among it.
pub fn evaluate(program: &Program, entry: Option<&str>) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || run(program, entry)).map_err(
                |error| vec![Diagnostic::error("resources", None, format!("no thread for the evaluator: {error}"))],
            )?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run(program: &Program, entry: Option<&str>) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
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
            // What the module itself scheduled was not asked for.
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
    lowered[0].warnings = interp.warnings;
    unique_names(&mut lowered);
    Ok(lowered)
}

/// Functions of one module have different names.
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
    fn global(&self, name: &str) -> Option<Rc<Closure<'a>>> {
        match self.global_value(name) {
            Some(Value::Closure(closure)) => Some(closure.clone()),
            _ => None,
        }
    }

    /// The function of the module that `name` names.
    fn function(&self, name: &str, program: &'a Program) -> Eval<Rc<Closure<'a>>> {
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
    fn entries(&self, program: &'a Program) -> Vec<Rc<Closure<'a>>> {
        let mut names: Vec<&str> = defined(program).collect();
        // Of two functions with one name the second one is left.
        let mut seen = Vec::new();
        names.retain(|name| {
            let new = !seen.contains(name);
            seen.push(*name);
            new
        });
        let closures = names.into_iter().filter_map(|name| self.global(name));
        closures.filter(|closure| closure.defaults.iter().all(Option::is_some)).collect()
    }

    fn call_entry(&mut self, closure: &Closure<'a>, errors: &mut Vec<Diagnostic>) {
        let (callee, span) = (closure.function.name.clone(), closure.function.span);
        let args = Args { callee, span, positional: std::collections::VecDeque::new(), keywords: Vec::new() };
        errors.extend(self.invoke(closure, args).err());
    }

    /// Lowers the schedules that no lower call used.
    fn lower_rest(&mut self, errors: &mut Vec<Diagnostic>) {
        for index in 0..self.schedules.len() {
            let schedule = &self.schedules[index];
            if schedule.lowered {
                continue;
            }
            let inputs = schedule.stages.iter().map(|stage| stage.tensor);
            let inputs = inputs.filter(|&tensor| matches!(self.tensors[tensor].kind, TensorKind::Input));
            let mut tensors: Vec<usize> = inputs.collect();
            tensors.sort_unstable();
            tensors.extend(&schedule.outputs);
            let mut params: Vec<Param> = tensors.iter().map(|&tensor| Param::Tensor(tensor)).collect();
            // Symbolic extents that no shape binds are arguments of their own.
            params.extend(self.loose_symbols(&tensors, index).into_iter().map(Param::Scalar));
            let (name, span) = (schedule.function.clone().unwrap_or_else(|| "main".to_owned()), schedule.span);
            match self.lower_schedule(index, &params, name, span) {
                Ok(lowered) => self.lowered.push(lowered),
                Err(found) => errors.extend(found),
            }
        }
    }

    /// Symbols that the definitions of a schedule use and the shapes of its parameters do not bind.
    fn loose_symbols(&self, params: &[usize], schedule: usize) -> Vec<tilewright_ir::Var> {
        let mut used = Vec::new();
        for stage in &self.schedules[schedule].stages {
            let tensor = &self.tensors[stage.tensor];
            used.extend(tensor.buffer.shape.iter().flat_map(tilewright_ir::Expr::vars));
            if let TensorKind::Computed { body, .. } = &tensor.kind {
                use tilewright_ir::StageBody::{Elementwise, Reduce};
                let (Elementwise(expr) | Reduce { source: expr, .. }) = body;
                used.extend(expr.vars());
                if let Reduce { axes, .. } = body {
                    used.extend(axes.iter().flat_map(|axis| axis.extent.vars()));
                }
            }
        }
        let bound: Vec<_> = params
            .iter()
            .flat_map(|&tensor| self.tensors[tensor].buffer.shape.iter().flat_map(tilewright_ir::Expr::vars))
            .collect();
        let mut loose: Vec<tilewright_ir::Var> = Vec::new();
        for var in used {
            if self.symbols.contains(&var) && !bound.contains(&var) && !loose.contains(&var) {
                loose.push(var);
            }
        }
        loose
    }

    fn lower_schedule(
        &self,
        schedule: usize,
        params: &[Param],
        name: String,
        span: Span,
    ) -> Result<Lowered, Vec<Diagnostic>> {
        let schedule = &self.schedules[schedule];
        lower::lower(&Request { tensors: &self.tensors, schedule, params, name, span })
    }

    /// `tvm.lower(s, [A, B], name=...)`; without a schedule, as `tvm.driver.lower([A, B])`, the function's only one.
    pub(super) fn lower_call(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let first = args.need("sch")?;
        let (schedule, (list, list_span)) = match first.0 {
            Value::Schedule(schedule) => (schedule, args.need("args")?),
            Value::List(_) | Value::Tuple(_) => (self.only_schedule(first.1)?, first),
            other => return Err(wrong_kind(first.1, "a schedule", &other)),
        };
        let is_build = args.callee.ends_with("build");
        if is_build {
            for ignored in ["target", "target_host"] {
                args.take(ignored)?;
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
                function_name(&name, span)?
            }
            None => self.function_name().unwrap_or_else(|| "main".to_owned()),
        };
        let mut params = Vec::new();
        let mut tensors = Vec::new();
        for item in to_items(&list) {
            params.push(match item {
                Value::Tensor(tensor) if tensors.contains(&tensor) => {
                    let message = format!("`{}` is given twice", self.tensors[tensor].buffer);
                    return Err(Diagnostic::error("parameters", Some(list_span), message));
                }
                Value::Tensor(tensor) => {
                    tensors.push(tensor);
                    Param::Tensor(tensor)
                }
                Value::Expr(tilewright_ir::Expr::Var(var)) if self.symbols.contains(&var) => Param::Scalar(var),
                other => return Err(wrong_kind(list_span, "tensors and te.var's", &other)),
            });
        }
        self.schedules[schedule].lowered = true;
        // Every error of a lowering has its place; the first one stands for all here.
        let lowered = self.lower_schedule(schedule, &params, name, span).map_err(|mut errors| {
            if errors.is_empty() {
                Diagnostic::error("lowering", Some(span), "lowering failed")
            } else {
                errors.remove(0)
            }
        })?;
        self.lowered.push(lowered);
        Ok(Value::Opaque("a lowered function"))
    }

    fn only_schedule(&self, span: Span) -> Eval<usize> {
        let frame = self.frame();
        let mut here = (0..self.schedules.len()).filter(|&index| self.schedules[index].frame == frame);
        match (here.next(), here.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Diagnostic::error("no-schedule", Some(span), "there is no schedule to lower")
                .with_help("make one by te.create_schedule(B.op)")),
            (Some(_), Some(_)) => Err(Diagnostic::error("which-schedule", Some(span), "which schedule is meant?")
                .with_help("pass it first: tvm.lower(s, [A, B])")),
        }
    }
}

fn defined(program: &Program) -> impl Iterator<Item = &str> {
    program.body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Def(function) => Some(function.name.as_str()),
        _ => None,
    })
}
