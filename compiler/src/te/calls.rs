//! Functions of a program: how they are made and called.
//!
//! A function remembers the frame that it was defined in, so that a `te.compute` in a function can use its variables.
//! Frames are never dropped: there are as many as there were calls, which the limit on steps bounds.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::{Diagnostic, Span};
use tilewright_script::te::{Argument, Expr, ExprKind, Function, Keyword, Parameter};

use super::args::Args;
use super::eval::{Flow, Frame, Interp};
use super::value::{Closure, Eval, Value, wrong_kind};

impl<'a> Interp<'a> {
    /// A function value: defaults are evaluated where the function is defined, as in Python.
    pub(super) fn closure(&mut self, function: &'a Function) -> Eval<Value<'a>> {
        let mut defaults = Vec::with_capacity(function.params.len());
        for Parameter { default, .. } in &function.params {
            defaults.push(match default {
                Some(default) => Some(self.expr(default)?),
                None => None,
            });
        }
        Ok(Value::Closure(Rc::new(Closure { function, frame: self.frame(), defaults })))
    }

    /// Calls `func(args, keywords)`. `func` is a method of a value, a function of a library, a function of the program, or a
    /// tensor; a call of a tensor reads an element.
    pub(super) fn call(
        &mut self,
        func: &'a Expr,
        args: &'a [Argument],
        keywords: &'a [Keyword],
        span: Span,
    ) -> Eval<Value<'a>> {
        if let ExprKind::Attribute(receiver, method) = &func.kind {
            let receiver_value = self.expr(receiver)?;
            // `te.compute` is a path as a whole, not the method `compute` of a value `te`.
            if !matches!(receiver_value, Value::Path(_)) {
                let args = self.arguments(method, args, keywords, span)?;
                return self.method(&receiver_value, receiver.span, method, args);
            }
        }
        if let ExprKind::Name(name) = &func.kind
            && self.lookup(name).is_none()
        {
            return Err(self.unknown_function(name, func.span));
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

    /// Evaluates arguments in the order in which they are written; `*list` gives one for each item.
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
        Ok(Args::new(callee.to_owned(), span, positional, named))
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
        // Before `?`, so that the stack of calls is right after an error too. The frame stays: closures may refer to it.
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
        self.invoke(closure, Args::new(callee, span, positional, Vec::new()))
    }
}
