//! The evaluator: statements, names, functions. What the library's functions do is in `builtins` and `methods`.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Severity, Span};
use tilewright_script::te::{
    Argument, Expr, ExprKind, Function, Keyword, LogicOp, Parameter, Stmt, StmtKind, Target, TargetKind,
};

use super::args::{Arg, Args};
use super::arith;
use super::lower::Lowered;
use super::schedule::Schedule;
use super::value::{Closure, Eval, Tensor, Value, to_expr, wrong_kind};

/// Steps that a program may take: far above any real one, and done in a second.
const FUEL: u64 = 3_000_000;
/// Deepest nesting of evaluation: expressions, blocks and calls together.
const MAX_DEPTH: usize = 1_000;
/// Most nodes of one expression, and its greatest depth.
const MAX_NODES: u64 = 20_000;
const MAX_EXPR_DEPTH: usize = 250;

/// The state of a program that is being evaluated.
pub(super) struct Interp<'a> {
    /// Variables; the first frame is the module's, the others are those of calls, kept for closures.
    pub(super) frames: Vec<Frame<'a>>,
    /// The calls under way, innermost last: frame and name.
    pub(super) calls: Vec<(usize, String)>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) schedules: Vec<Schedule>,
    pub(super) lowered: Vec<Lowered>,
    pub(super) warnings: Vec<Diagnostic>,
    /// Variables made by `te.var`.
    pub(super) symbols: Vec<ir::Var>,
    fuel: u64,
    depth: usize,
}

/// Variables of a call.
pub(super) struct Frame<'a> {
    parent: Option<usize>,
    vars: BTreeMap<String, Value<'a>>,
}

/// How a block ended.
pub(super) enum Flow<'a> {
    Next,
    Return(Value<'a>),
    Break,
    Continue,
}

impl<'a> Interp<'a> {
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
            tensors: Vec::new(),
            schedules: Vec::new(),
            lowered: Vec::new(),
            warnings: Vec::new(),
            symbols: Vec::new(),
            fuel: FUEL,
            depth: 0,
        }
    }

    /// Takes `cost` steps.
    pub(super) fn burn(&mut self, cost: u64, span: Span) -> Eval<()> {
        self.fuel = self.fuel.checked_sub(cost).ok_or_else(|| {
            Diagnostic::error("fuel", Some(span), "the program takes too many steps")
                .with_help("schedules are built by a few hundred calls; is there a loop that never ends?")
        })?;
        Ok(())
    }

    fn nested<T>(&mut self, span: Span, inner: impl FnOnce(&mut Self) -> Eval<T>) -> Eval<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Diagnostic::error("recursion", Some(span), "calls are nested too deeply"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// The expression as a value, if it is of a reasonable size.
    pub(super) fn symbolic(&mut self, expr: ir::Expr, span: Span) -> Eval<Value<'a>> {
        let nodes = check_size(&expr, span)?;
        self.burn(nodes, span)?;
        Ok(Value::Expr(expr))
    }

    /// Frame of the innermost call.
    pub(super) fn frame(&self) -> usize {
        self.calls.last().map_or(0, |(frame, _)| *frame)
    }

    /// Name of the innermost function that is no lambda.
    pub(super) fn function_name(&self) -> Option<String> {
        self.calls.iter().rev().map(|(_, name)| name.clone()).find(|name| name != "<lambda>")
    }

    fn lookup(&self, name: &str) -> Option<Value<'a>> {
        let mut frame = Some(self.frame());
        while let Some(index) = frame {
            if let Some(value) = self.frames[index].vars.get(name) {
                return Some(value.clone());
            }
            frame = self.frames[index].parent;
        }
        let builtin = super::builtins::PYTHON.contains(&name);
        builtin.then(|| Value::Path(format!("builtins.{name}").into()))
    }

    /// A variable of the module.
    pub(super) fn global_value(&self, name: &str) -> Option<&Value<'a>> {
        self.frames[0].vars.get(name)
    }

    fn set(&mut self, name: &str, value: Value<'a>) {
        let frame = self.frame();
        self.frames[frame].vars.insert(name.to_owned(), value);
    }

    pub(super) fn block(&mut self, body: &'a [Stmt]) -> Eval<Flow<'a>> {
        for stmt in body {
            match self.nested(stmt.span, |interp| interp.stmt(stmt))? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Eval<Flow<'a>> {
        self.burn(1, stmt.span)?;
        match &stmt.kind {
            StmtKind::Import(names) => {
                for (name, path) in names {
                    let separator = path == "tvm.te.AXIS_SEPARATOR";
                    let value = if separator { Value::AxisSeparator } else { Value::Path(path.as_str().into()) };
                    self.set(name, value);
                }
            }
            StmtKind::Def(function) => {
                let closure = self.closure(function)?;
                self.set(&function.name, closure);
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

    fn iterate(&mut self, iter: &'a Expr) -> Eval<Vec<Value<'a>>> {
        let value = self.expr(iter)?;
        value.items().ok_or_else(|| wrong_kind(iter.span, "something to iterate over, such as range(4)", &value))
    }

    fn assign(&mut self, target: &'a Target, value: &Value<'a>, span: Span) -> Eval<()> {
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

    /// A tensor that was given no name takes that of the first variable it is assigned to.
    fn name_tensor(&mut self, tensor: usize, name: &str) {
        let tensor = &mut self.tensors[tensor];
        if !tensor.named {
            tensor.buffer = renamed(&tensor.buffer, name);
            tensor.named = true;
        }
    }

    fn condition(&mut self, test: &'a Expr) -> Eval<bool> {
        let value = self.expr(test)?;
        truth(&value, test.span)
    }

    pub(super) fn expr(&mut self, expr: &'a Expr) -> Eval<Value<'a>> {
        self.burn(1, expr.span)?;
        self.nested(expr.span, |interp| interp.expr_kind(expr))
    }

    fn exprs(&mut self, exprs: &'a [Expr]) -> Eval<Vec<Value<'a>>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn sized(&mut self, value: Value<'a>, span: Span) -> Eval<Value<'a>> {
        match value {
            Value::Expr(expr) => self.symbolic(expr, span),
            value => Ok(value),
        }
    }

    fn expr_kind(&mut self, expr: &'a Expr) -> Eval<Value<'a>> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Int(value) => Ok(Value::Int(*value)),
            ExprKind::Float(value) => Ok(Value::Float(*value)),
            ExprKind::Str(text) => Ok(Value::Str(text.as_str().into())),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::None => Ok(Value::None),
            ExprKind::Ellipsis => Ok(Value::Ellipsis),
            ExprKind::List(items) => Ok(Value::list(self.exprs(items)?)),
            ExprKind::Tuple(items) => Ok(Value::Tuple(self.exprs(items)?.into())),
            ExprKind::Dict(items) => {
                let mut pairs = Vec::with_capacity(items.len());
                for (key, value) in items {
                    pairs.push((self.expr(key)?, self.expr(value)?));
                }
                Ok(Value::Dict(Rc::new(pairs)))
            }
            ExprKind::Slice(..) => Err(Diagnostic::error("slice", Some(span), "a slice is only taken of a list")),
            ExprKind::Subscript(value, index) => self.subscript(value, index, span),
            ExprKind::Attribute(value, name) => self.attribute_of(value, name, span),
            ExprKind::Call { func, args, keywords } => self.call(func, args, keywords, span),
            ExprKind::Lambda(function) => self.closure(function),
            ExprKind::Binary(op, lhs, rhs) => {
                let (lhs, rhs) = (self.expr(lhs)?, self.expr(rhs)?);
                let result = arith::binary(*op, &lhs, &rhs, span)?;
                self.sized(result, span)
            }
            ExprKind::Unary(op, operand) => {
                let value = self.expr(operand)?;
                if *op == tilewright_script::te::UnaryOp::Not && !matches!(value, Value::Expr(_)) {
                    return Ok(Value::Bool(!truth(&value, operand.span)?));
                }
                let result = arith::unary(*op, &value, span)?;
                self.sized(result, span)
            }
            ExprKind::Compare(first, rest) => self.comparison(first, rest, span),
            ExprKind::Logic(op, operands) => self.logic(*op, operands, span),
            ExprKind::Conditional(test, then, other) => self.conditional(test, then, other, span),
            ExprKind::ListComp { item, clauses } => {
                let mut items = Vec::new();
                self.comprehension(item, clauses, &mut items)?;
                Ok(Value::list(items))
            }
        }
    }

    fn name(&mut self, name: &str, span: Span) -> Eval<Value<'a>> {
        self.lookup(name).ok_or_else(|| {
            let help =
                if name.len() == 1 && name.starts_with(char::is_uppercase) || name.starts_with(char::is_lowercase) {
                    format!("a symbolic extent is defined by `{name} = te.var(\"{name}\")`")
                } else {
                    format!("define `{name}` before this line")
                };
            Diagnostic::error("unknown-name", Some(span), format!("`{name}` is not defined")).with_help(help)
        })
    }

    /// `value.name`; `args.name` where `args` is nothing but `name` is: a slip of printed programs.
    fn attribute_of(&mut self, value: &'a Expr, name: &str, span: Span) -> Eval<Value<'a>> {
        if let ExprKind::Name(object) = &value.kind
            && object == "args"
            && self.lookup(object).is_none()
            && let Some(meant) = self.lookup(name)
        {
            let message = format!("`{object}` is not defined; `{object}.{name}` is taken as `{name}`");
            let mut warning = Diagnostic::error("undefined-object", Some(span), message);
            warning.severity = Severity::Warning;
            self.warnings.push(warning.with_help(format!("write `{name}`")));
            return Ok(meant);
        }
        let value = self.expr(value)?;
        self.attribute(&value, name, span)
    }

    fn subscript(&mut self, value: &'a Expr, index: &'a Expr, span: Span) -> Eval<Value<'a>> {
        let value = self.expr(value)?;
        if let (ExprKind::Slice(lower, upper, step), Some(items)) = (&index.kind, value.items()) {
            let mut bound = |bound: &'a Option<Box<Expr>>| match bound {
                Some(bound) => {
                    let value = self.expr(bound)?;
                    super::value::to_int(&value, bound.span).map(Some)
                }
                None => Ok(None),
            };
            let (lower, upper, step) = (bound(lower)?, bound(upper)?, bound(step)?);
            return super::builtins::slice(&value, &items, (lower, upper, step), index.span);
        }
        let index_value = self.expr(index)?;
        self.item(&value, &index_value, span)
    }

    fn comparison(
        &mut self,
        first: &'a Expr,
        rest: &'a [(tilewright_script::te::CompareOp, Expr)],
        span: Span,
    ) -> Eval<Value<'a>> {
        let mut lhs = self.expr(first)?;
        let mut result = Value::Bool(true);
        for (op, rhs) in rest {
            let rhs = self.expr(rhs)?;
            let link = arith::compare(*op, &lhs, &rhs, span)?;
            result = self.both(ir::BinaryOp::And, result, link, span)?;
            lhs = rhs;
        }
        self.sized(result, span)
    }

    /// `a op b` of truth values, plain ones folded away.
    pub(super) fn both(&mut self, op: ir::BinaryOp, a: Value<'a>, b: Value<'a>, span: Span) -> Eval<Value<'a>> {
        let neutral = op == ir::BinaryOp::And;
        match (a, b) {
            (Value::Bool(known), other) | (other, Value::Bool(known)) if known == neutral => Ok(other),
            (Value::Bool(known), _) | (_, Value::Bool(known)) => Ok(Value::Bool(known)),
            (a, b) => self.symbolic(arith::apply_values(op, &a, &b, span)?, span),
        }
    }

    /// `and`, `or`: Python's on plain values, the logical operator where an operand is symbolic.
    fn logic(&mut self, op: LogicOp, operands: &'a [Expr], span: Span) -> Eval<Value<'a>> {
        let ir_op = if op == LogicOp::And { ir::BinaryOp::And } else { ir::BinaryOp::Or };
        let mut result = Value::Bool(op == LogicOp::And);
        for operand in operands {
            let value = self.expr(operand)?;
            if matches!(value, Value::Expr(_)) || matches!(result, Value::Expr(_)) {
                result = self.both(ir_op, result, value, span)?;
            } else {
                let stop = truth(&value, operand.span)? != (op == LogicOp::And);
                if stop {
                    return Ok(value);
                }
                result = Value::Bool(op == LogicOp::And);
            }
        }
        Ok(result)
    }

    /// `then if test else other`; a symbolic test makes an expression of it.
    fn conditional(&mut self, test: &'a Expr, then: &'a Expr, other: &'a Expr, span: Span) -> Eval<Value<'a>> {
        let value = self.expr(test)?;
        if !matches!(value, Value::Expr(_)) {
            let chosen = if truth(&value, test.span)? { then } else { other };
            return self.expr(chosen);
        }
        let (then, other) = (self.expr(then)?, self.expr(other)?);
        self.if_then_else((value, test.span), &then, &other, span)
    }

    /// `if_then_else(test, then, other)`.
    pub(super) fn if_then_else(
        &mut self,
        (test, test_span): Arg<'a>,
        then: &Value<'a>,
        other: &Value<'a>,
        span: Span,
    ) -> Eval<Value<'a>> {
        let test = to_expr(&test, test_span)?;
        if test.dtype() != ir::DataType::BOOL {
            let message = format!("a condition is a bool, not {}", test.dtype());
            return Err(Diagnostic::error("type", Some(test_span), message));
        }
        let (then, other) = arith::pair(then, other, span)?;
        self.symbolic(ir::Expr::IfThenElse(Box::new(test), Box::new(then), Box::new(other)), span)
    }

    fn comprehension(
        &mut self,
        item: &'a Expr,
        clauses: &'a [(Target, Expr, Vec<Expr>)],
        items: &mut Vec<Value<'a>>,
    ) -> Eval<()> {
        let Some(((target, iter, tests), inner)) = clauses.split_first() else {
            items.push(self.expr(item)?);
            return Ok(());
        };
        for value in self.iterate(iter)? {
            self.assign(target, &value, iter.span)?;
            let mut wanted = true;
            for test in tests {
                wanted = wanted && self.condition(test)?;
            }
            if wanted {
                self.comprehension(item, inner, items)?;
            }
        }
        Ok(())
    }

    fn closure(&mut self, function: &'a Function) -> Eval<Value<'a>> {
        let mut defaults = Vec::with_capacity(function.params.len());
        for Parameter { default, .. } in &function.params {
            defaults.push(match default {
                Some(default) => Some(self.expr(default)?),
                None => None,
            });
        }
        Ok(Value::Closure(Rc::new(Closure { function, frame: self.frame(), defaults })))
    }

    fn call(&mut self, func: &'a Expr, args: &'a [Argument], keywords: &'a [Keyword], span: Span) -> Eval<Value<'a>> {
        if let ExprKind::Attribute(receiver, method) = &func.kind {
            let receiver_value = self.expr(receiver)?;
            if !matches!(receiver_value, Value::Path(_)) {
                let args = self.arguments(method, args, keywords, span)?;
                return self.method(&receiver_value, receiver.span, method, args);
            }
        }
        let callee = self.expr(func)?;
        let name = match &callee {
            Value::Path(path) => path.to_string(),
            Value::Closure(closure) => closure.function.name.clone(),
            other => other.describe(),
        };
        let args = self.arguments(&name, args, keywords, span)?;
        match callee {
            Value::Path(path) => self.builtin(&path, args),
            Value::Closure(closure) => self.invoke(&closure, args),
            Value::Tensor(tensor) => {
                let mut args = args;
                let indices = args.rest();
                args.finish()?;
                self.load(tensor, &indices, span)
            }
            other => Err(wrong_kind(func.span, "a function", &other)),
        }
    }

    fn arguments(&mut self, callee: &str, args: &'a [Argument], keywords: &'a [Keyword], span: Span) -> Eval<Args<'a>> {
        let mut positional = std::collections::VecDeque::new();
        for arg in args {
            let value = self.expr(&arg.value)?;
            if arg.star {
                let Some(items) = value.items() else {
                    return Err(wrong_kind(arg.value.span, "a list after `*`", &value));
                };
                positional.extend(items.into_iter().map(|item| (item, arg.value.span)));
            } else {
                positional.push_back((value, arg.value.span));
            }
        }
        let mut named = Vec::with_capacity(keywords.len());
        for keyword in keywords {
            named.push((keyword.name.clone(), (self.expr(&keyword.value)?, keyword.span)));
        }
        Ok(Args { callee: callee.to_owned(), span, positional, keywords: named })
    }

    /// Calls a function of the program.
    pub(super) fn invoke(&mut self, closure: &Closure<'a>, mut args: Args<'a>) -> Eval<Value<'a>> {
        let function = closure.function;
        let mut vars = BTreeMap::new();
        for (param, default) in function.params.iter().zip(&closure.defaults) {
            let value = match args.take(&param.name)? {
                Some((value, _)) => value,
                None => default.clone().ok_or_else(|| {
                    let message = format!("`{}` needs its argument `{}`", function.name, param.name);
                    Diagnostic::error("argument", Some(args.span), message)
                        .with_label(param.span, "the parameter has no default")
                })?,
            };
            vars.insert(param.name.clone(), value);
        }
        if let Some(name) = &function.var_args {
            let rest: Vec<_> = args.rest().into_iter().map(|(value, _)| value).collect();
            vars.insert(name.clone(), Value::Tuple(rest.into()));
        }
        let span = args.span;
        args.finish()?;
        self.frames.push(Frame { parent: Some(closure.frame), vars });
        self.calls.push((self.frames.len() - 1, function.name.clone()));
        let result = self.nested(span, |interp| interp.block(&function.body));
        self.calls.pop();
        match result? {
            Flow::Return(value) => Ok(value),
            Flow::Next => Ok(Value::None),
            Flow::Break | Flow::Continue => {
                Err(Diagnostic::error("syntax", Some(function.span), "`break` or `continue` outside a loop"))
            }
        }
    }

    /// Calls a function value with expressions, as `te.compute` and `transform_layout` do.
    pub(super) fn apply(&mut self, closure: &Closure<'a>, values: Vec<Value<'a>>, span: Span) -> Eval<Value<'a>> {
        let positional = values.into_iter().map(|value| (value, span)).collect();
        let callee = closure.function.name.clone();
        self.invoke(closure, Args { callee, span, positional, keywords: Vec::new() })
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

/// The buffer under another name, its data variable too.
pub(super) fn renamed(buffer: &ir::Buffer, name: &str) -> ir::Buffer {
    buffer.with(|info| {
        name.clone_into(&mut info.name);
        info.data = ir::Var::new(name, ir::DataType::HANDLE);
    })
}

/// The number of nodes of an expression, if it is of a reasonable size.
pub(super) fn check_size(expr: &ir::Expr, span: Span) -> Eval<u64> {
    let mut nodes = 0;
    if depth_of(expr, &mut nodes) > MAX_EXPR_DEPTH || nodes > MAX_NODES {
        return Err(Diagnostic::error("expression-size", Some(span), "the expression grows too large")
            .with_help("give parts of it a te.compute of their own"));
    }
    Ok(nodes)
}

fn depth_of(expr: &ir::Expr, nodes: &mut u64) -> usize {
    *nodes += 1;
    1 + expr.children().into_iter().map(|child| depth_of(child, nodes)).max().unwrap_or(0)
}
