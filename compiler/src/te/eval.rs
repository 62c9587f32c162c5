//! The evaluator of TE programs: its state, names and statements.
//!
//! A program is written in a small part of Python: functions, loops, conditions on known values, lists. It is run once, and
//! its effect is to call the [builder](super::build). Steps and depth are limited, because a program may be arbitrary text.
//! Expressions are in `exprs`, calls in `calls`; the functions of the library are in `builtins`, `scalars`, `python`,
//! `methods` and `stages`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Span};
use tilewright_script::Scripted;
use tilewright_script::te::{Expr, Stmt, StmtKind, Target, TargetKind};

use super::arith;
use super::blocks::BlockRecord;
use super::build::{Builder, Lowered, ScheduleId, Tensor, check_size};
use super::value::{Eval, Placed, Value, wrong_kind};

/// The largest number of steps of a program: far more than real programs take, and run in about a second.
const FUEL: u64 = 3_000_000;
/// Deepest nesting of evaluation: expressions, blocks and calls together.
const MAX_DEPTH: usize = 1_000;

/// The state of a program that is being evaluated.
pub(super) struct Interp<'a> {
    /// Variables; the first frame is the module's, the others are those of calls, kept for closures.
    pub(super) frames: Vec<Frame<'a>>,
    /// The calls under way, innermost last: frame and name.
    pub(super) calls: Vec<(usize, String)>,
    /// The builder that the program calls.
    pub(super) te: Builder,
    /// Tensors whose name cannot change: it was given, taken from an assignment, or the tensor was read.
    pub(super) named: BTreeSet<usize>,
    pub(super) schedules: Vec<ScheduleRecord>,
    /// The definitions of the file in TVMScript.
    pub(super) scripted: Vec<Rc<Scripted>>,
    /// The schedules on blocks.
    pub(super) block_schedules: Vec<BlockRecord>,
    pub(super) lowered: Vec<Lowered>,
    pub(super) warnings: Vec<Diagnostic>,
    fuel: u64,
    depth: usize,
}

/// A schedule that the program made.
pub(super) struct ScheduleRecord {
    pub(super) id: ScheduleId,
    /// The call that made it.
    pub(super) span: Span,
    /// Frame of the call that it was made in.
    pub(super) frame: usize,
    /// Function that made it.
    pub(super) function: Option<String>,
    /// Whether a lower call used it.
    pub(super) lowered: bool,
}

/// Variables of a call.
pub(super) struct Frame<'a> {
    pub(super) parent: Option<usize>,
    pub(super) vars: BTreeMap<String, Value<'a>>,
}

/// How a block ended.
pub(super) enum Flow<'a> {
    Next,
    Return(Value<'a>),
    Break,
    Continue,
}

impl<'a> Interp<'a> {
    /// The state before the first statement, with the modules that programs import.
    pub(super) fn new() -> Self {
        let mut vars = BTreeMap::new();
        // Programs printed in texts leave their imports out.
        for (name, path) in [("tvm", "tvm"), ("te", "tvm.te"), ("tir", "tvm.tir"), ("topi", "tvm.topi")] {
            vars.insert(name.to_owned(), Value::Path(path.into()));
        }
        vars.insert("__name__".to_owned(), Value::Str("__main__".into()));
        Self {
            frames: vec![Frame { parent: None, vars }],
            calls: Vec::new(),
            te: Builder::new(),
            named: BTreeSet::new(),
            schedules: Vec::new(),
            scripted: Vec::new(),
            block_schedules: Vec::new(),
            lowered: Vec::new(),
            warnings: Vec::new(),
            fuel: FUEL,
            depth: 0,
        }
    }

    /// Takes `cost` steps.
    ///
    /// # Errors
    /// `fuel`: the program took too many.
    pub(super) fn burn(&mut self, cost: u64, span: Span) -> Eval<()> {
        self.fuel = self.fuel.checked_sub(cost).ok_or_else(|| {
            Diagnostic::error("fuel", Some(span), "the program takes too many steps")
                .with_help("schedules are built by a few hundred calls; is there a loop that never ends?")
        })?;
        Ok(())
    }

    /// Runs `inner` one level deeper; an error if the depth exceeds [`MAX_DEPTH`].
    pub(super) fn nested<T>(&mut self, span: Span, inner: impl FnOnce(&mut Self) -> Eval<T>) -> Eval<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Diagnostic::error("recursion", Some(span), "calls are nested too deeply"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Returns the expression as a value, or an error if it is too large.
    pub(super) fn symbolic(&mut self, expr: ir::Expr, span: Span) -> Eval<Value<'a>> {
        let nodes = check_size(&expr).at(span)?;
        self.burn(nodes, span)?;
        Ok(Value::Expr(expr))
    }

    /// Frame of the innermost call.
    pub(super) fn frame(&self) -> usize {
        self.calls.last().map_or(0, |(frame, _)| *frame)
    }

    /// Returns the name of the innermost function other than a lambda.
    pub(super) fn function_name(&self) -> Option<String> {
        self.calls.iter().rev().map(|(_, name)| name.clone()).find(|name| name != "<lambda>")
    }

    /// The value of a name: in the innermost call, the functions around it, the module, and Python's own.
    pub(super) fn lookup(&self, name: &str) -> Option<Value<'a>> {
        let mut frame = Some(self.frame());
        while let Some(index) = frame {
            if let Some(value) = self.frames[index].vars.get(name) {
                return Some(value.clone());
            }
            frame = self.frames[index].parent;
        }
        let builtin = super::python::PYTHON.contains(&name);
        builtin.then(|| Value::Path(format!("builtins.{name}").into()))
    }

    /// The names that [`Interp::lookup`] finds, except those of Python.
    fn variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut frame = Some(self.frame());
        while let Some(index) = frame {
            names.extend(self.frames[index].vars.keys().map(String::as_str));
            frame = self.frames[index].parent;
        }
        names
    }

    /// The error of a name that nothing defines.
    pub(super) fn unknown_name(&self, name: &str, span: Span) -> Diagnostic {
        let symbol = name.len() == 1 && name.starts_with(char::is_uppercase) || name.starts_with(char::is_lowercase);
        // Every short name is one letter away from some other one.
        let near = tilewright_script::nearest(name, self.variables()).filter(|_| name.len() > 2);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if symbol => format!("a symbolic extent is defined by `{name} = te.var(\"{name}\")`"),
            None => format!("define `{name}` before this line"),
        };
        Diagnostic::error("unknown-name", Some(span), format!("`{name}` is not defined")).with_help(help)
    }

    /// The error of a call of a name that nothing defines.
    pub(super) fn unknown_function(&self, name: &str, span: Span) -> Diagnostic {
        let python = super::python::PYTHON;
        let near = tilewright_script::nearest(name, self.variables().into_iter().chain(python));
        // A word of four letters is two letters away from many others.
        let help = match near.filter(|near| name.len() > 2 && near.chars().next() == name.chars().next()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("of Python's functions the dialect has {}", python.join(", ")),
        };
        Diagnostic::error("unknown-name", Some(span), format!("`{name}` is not a function that is known"))
            .with_help(help)
    }

    /// A variable of the module.
    pub(super) fn global_value(&self, name: &str) -> Option<&Value<'a>> {
        self.frames[0].vars.get(name)
    }

    /// Assigns a variable of the innermost call.
    pub(super) fn set(&mut self, name: &str, value: Value<'a>) {
        let frame = self.frame();
        self.frames[frame].vars.insert(name.to_owned(), value);
    }

    /// Runs statements until one leaves the block.
    pub(super) fn block(&mut self, body: &'a [Stmt]) -> Eval<Flow<'a>> {
        for stmt in body {
            match self.nested(stmt.span, |interp| interp.stmt(stmt))? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a statement.
    fn stmt(&mut self, stmt: &'a Stmt) -> Eval<Flow<'a>> {
        self.burn(1, stmt.span)?;
        match &stmt.kind {
            StmtKind::Import(names) => {
                for (name, path) in names {
                    let separator = path == "tvm.te.AXIS_SEPARATOR" || path.ends_with(".IndexMap.AXIS_SEPARATOR");
                    let value = if separator { Value::AxisSeparator } else { Value::Path(path.as_str().into()) };
                    self.set(name, value);
                }
            }
            StmtKind::Def(function) => {
                let closure = self.closure(function)?;
                self.set(&function.name, closure);
            }
            StmtKind::Script(name) => {
                let Some(value) = self.script(name) else {
                    let message = format!("`{name}` is TVMScript, which a program in TE cannot use");
                    return Err(Diagnostic::error("unsupported", Some(stmt.span), message)
                        .with_help("make a schedule of it: `sch = tvm.tir.Schedule({name})`"));
                };
                self.set(name, value);
            }
            StmtKind::Return(value) => {
                let value = value.as_ref().map_or(Ok(Value::None), |value| self.expr(value))?;
                return Ok(Flow::Return(value));
            }
            StmtKind::Assign { targets, value } => {
                let span = value.span;
                let value = self.expr(value)?;
                for target in targets {
                    self.assign(target, &value, span)?;
                }
            }
            StmtKind::AugAssign { target, op, value } => {
                let TargetKind::Name(name) = &target.kind else {
                    return Err(Diagnostic::error("type", Some(target.span), "only a name can be updated"));
                };
                let before = self.name(name, target.span)?;
                let value = self.expr(value)?;
                let result = arith::binary(*op, &before, &value, stmt.span)?;
                let result = self.sized(result, stmt.span)?;
                self.set(name, result);
            }
            StmtKind::Expr(value) => {
                // A bare `...` stands for code left out; everything else is evaluated for its effect.
                self.expr(value)?;
            }
            StmtKind::If { test, then_body, else_body } => {
                let chosen = if self.condition(test)? { then_body } else { else_body };
                return self.block(chosen);
            }
            StmtKind::For { target, iter, body } => return self.for_loop(target, iter, body),
            StmtKind::Pass => {}
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    /// Runs the body once for each item, which are evaluated before the first one.
    fn for_loop(&mut self, target: &'a Target, iter: &'a Expr, body: &'a [Stmt]) -> Eval<Flow<'a>> {
        let items = self.iterate(iter)?;
        for item in items {
            self.burn(1, iter.span)?;
            self.assign(target, &item, iter.span)?;
            match self.block(body)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                flow @ Flow::Return(_) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// The items of a list or a tuple.
    pub(super) fn iterate(&mut self, iter: &'a Expr) -> Eval<Vec<Value<'a>>> {
        let value = self.expr(iter)?;
        value.items().ok_or_else(|| wrong_kind(iter.span, "something to iterate over, such as range(4)", &value))
    }

    /// Assigns a value to a name, or its items to several names.
    pub(super) fn assign(&mut self, target: &'a Target, value: &Value<'a>, span: Span) -> Eval<()> {
        match &target.kind {
            TargetKind::Name(name) => {
                if let Value::Tensor(tensor) = value {
                    self.name_tensor(*tensor, name);
                }
                self.set(name, value.clone());
                Ok(())
            }
            TargetKind::Tuple(targets) => {
                let Some(items) = value.items() else {
                    return Err(wrong_kind(span, &format!("{} values to unpack", targets.len()), value));
                };
                if items.len() != targets.len() {
                    let message = format!("{} names, but {} values to unpack", targets.len(), items.len());
                    return Err(Diagnostic::error("unpack", Some(target.span), message).with_label(span, "the values"));
                }
                targets.iter().zip(&items).try_for_each(|(target, item)| self.assign(target, item, span))
            }
        }
    }

    /// Gives a tensor the name of the variable that it is assigned to, unless it has a name already.
    fn name_tensor(&mut self, tensor: Tensor, name: &str) {
        if self.named.insert(tensor.index) {
            self.te.rename(tensor, name);
        }
    }

    /// Evaluates a condition whose value must be known while the program runs.
    pub(super) fn condition(&mut self, test: &'a Expr) -> Eval<bool> {
        let value = self.expr(test)?;
        truth(&value, test.span)
    }
}

/// Python's truth of a plain value.
pub(super) fn truth(value: &Value<'_>, span: Span) -> Eval<bool> {
    match value {
        Value::None => Ok(false),
        Value::Bool(value) => Ok(*value),
        Value::Int(value) => Ok(*value != 0),
        Value::Float(value) => Ok(*value != 0.0),
        Value::Str(text) => Ok(!text.is_empty()),
        Value::List(_) | Value::Tuple(_) => Ok(value.items().is_some_and(|items| !items.is_empty())),
        Value::Expr(_) => Err(wrong_kind(span, "a truth value known now", value)
            .with_help("inside a te.compute use te.if_then_else(condition, a, b)")),
        _ => Err(wrong_kind(span, "a truth value", value)),
    }
}
