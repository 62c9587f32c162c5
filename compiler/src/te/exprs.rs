//! Expressions of a program.
//!
//! Operators and conditions on known values are evaluated as Python does. If an operand is symbolic, the result is an
//! expression: for an axis `h`, `h >= 1` is a `bool` expression, which `te.if_then_else` takes and `if` refuses.

use std::rc::Rc;

use tilewright_ir::{self as ir, Diagnostic, Severity, Span};
use tilewright_script::te::{Expr, ExprKind, LogicOp, Target};

use super::args::Arg;
use super::arith;
use super::build;
use super::eval::{Interp, truth};
use super::value::{Eval, Placed, Value, to_expr};

impl<'a> Interp<'a> {
    /// The value of an expression.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Eval<Value<'a>> {
        self.burn(1, expr.span)?;
        self.nested(expr.span, |interp| interp.expr_kind(expr))
    }

    /// The elements of a list or a tuple, from left to right. `*items` stands for the elements of another one.
    fn elements(&mut self, exprs: &'a [Expr]) -> Eval<Vec<Value<'a>>> {
        let mut values = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let ExprKind::Starred(inner) = &expr.kind else {
                values.push(self.expr(expr)?);
                continue;
            };
            let value = self.expr(inner)?;
            let Some(items) = value.items() else {
                let message = format!("`*` takes a list or a tuple, not {}", value.describe());
                return Err(Diagnostic::error("star", Some(expr.span), message));
            };
            values.extend(items);
            if values.len() > arith::MAX_ITEMS {
                return Err(Diagnostic::error("fuel", Some(expr.span), "the list is too long"));
            }
        }
        Ok(values)
    }

    /// Returns the value, or an error if it is an expression that is too large.
    pub(super) fn sized(&mut self, value: Value<'a>, span: Span) -> Eval<Value<'a>> {
        match value {
            Value::Expr(expr) => self.symbolic(expr, span),
            value => Ok(value),
        }
    }

    /// The value of an expression, by its kind. A table.
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
            ExprKind::List(items) => Ok(Value::list(self.elements(items)?)),
            ExprKind::Tuple(items) => Ok(Value::Tuple(self.elements(items)?.into())),
            ExprKind::Starred(_) => Err(Diagnostic::error("star", Some(span), "`*` stands in a list or in a call")),
            ExprKind::Dict(items) => {
                // A list of pairs, because keys are compared with `==` and may be values that have no hash.
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

    /// The value of a variable.
    pub(super) fn name(&mut self, name: &str, span: Span) -> Eval<Value<'a>> {
        self.lookup(name).ok_or_else(|| self.unknown_name(name, span))
    }

    /// Evaluates `value.name`. If `value` is the undefined name `args` and `name` is defined, the result is `name`: programs
    /// printed in texts contain this mistake.
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

    /// `value[index]`, or a slice of a list.
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
            return super::python::slice(&value, &items, (lower, upper, step), index.span);
        }
        let index_value = self.expr(index)?;
        self.item(&value, &index_value, span)
    }

    /// `a < b < c`: the conjunction of its links, each operand evaluated once.
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

    /// Returns `a op b` for truth values; a known value is folded.
    pub(super) fn both(&mut self, op: ir::BinaryOp, a: Value<'a>, b: Value<'a>, span: Span) -> Eval<Value<'a>> {
        let neutral = op == ir::BinaryOp::And;
        match (a, b) {
            (Value::Bool(known), other) | (other, Value::Bool(known)) if known == neutral => Ok(other),
            (Value::Bool(known), _) | (_, Value::Bool(known)) => Ok(Value::Bool(known)),
            (a, b) => self.symbolic(arith::apply_values(op, &a, &b, span)?, span),
        }
    }

    /// Evaluates `and` and `or`: as Python does for known values, as the logical operator if an operand is symbolic.
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

    /// Evaluates `then if test else other`; a symbolic test gives an expression.
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
        build::check_condition(&test).at(test_span)?;
        let (then, other) = arith::pair(then, other, span)?;
        let chosen = build::if_then_else(test, then, other).at(span)?;
        self.symbolic(chosen, span)
    }

    /// `[item for target in iter if test]`, for each clause inside of the ones before.
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
}
