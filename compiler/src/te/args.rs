//! The arguments of a call of ours: taken one by one by the callee, which reports what is left over.

use std::collections::VecDeque;

use tilewright_ir::{Diagnostic, Span};

use super::value::{Eval, Value};

/// An argument and its place.
pub(super) type Arg<'a> = (Value<'a>, Span);

/// Arguments that were not taken yet.
pub(super) struct Args<'a> {
    /// The name of the callee, for messages.
    pub(super) callee: String,
    /// The whole call.
    pub(super) span: Span,
    pub(super) positional: VecDeque<Arg<'a>>,
    pub(super) keywords: Vec<(String, Arg<'a>)>,
    /// The parameters that the callee asked for, in its order.
    params: Vec<String>,
}

impl<'a> Args<'a> {
    /// The arguments of a call of `callee` at `span`.
    pub(super) fn new(
        callee: String,
        span: Span,
        positional: VecDeque<Arg<'a>>,
        keywords: Vec<(String, Arg<'a>)>,
    ) -> Self {
        Self { callee, span, positional, keywords, params: Vec::new() }
    }

    /// Takes the argument for the parameter `name`: the next positional argument, else the keyword.
    pub(super) fn take(&mut self, name: &str) -> Eval<Option<Arg<'a>>> {
        let positional = self.positional.pop_front();
        let keyword = self.keyword(name);
        if let (Some(_), Some((_, span))) = (&positional, &keyword) {
            let message = format!("`{}` gets its parameter `{name}` twice", self.callee);
            return Err(Diagnostic::error("argument", Some(*span), message));
        }
        Ok(positional.or(keyword))
    }

    /// The keyword argument `name`.
    pub(super) fn keyword(&mut self, name: &str) -> Option<Arg<'a>> {
        self.params.push(name.to_owned());
        let position = self.keywords.iter().position(|(keyword, _)| keyword == name)?;
        Some(self.keywords.remove(position).1)
    }

    /// Takes an argument as [`Args::take`] does, for a parameter without default.
    pub(super) fn need(&mut self, name: &str) -> Eval<Arg<'a>> {
        let (callee, span) = (self.callee.clone(), self.span);
        self.take(name)?
            .ok_or_else(|| Diagnostic::error("argument", Some(span), format!("`{callee}` needs its argument `{name}`")))
    }

    /// Takes all remaining positional arguments.
    pub(super) fn rest(&mut self) -> Vec<Arg<'a>> {
        self.positional.drain(..).collect()
    }

    /// Checks that every argument was taken.
    pub(super) fn finish(self) -> Eval<()> {
        if let Some((_, span)) = self.positional.front() {
            let message = format!("`{}` takes fewer positional arguments", self.callee);
            return Err(Diagnostic::error("argument", Some(*span), message));
        }
        if let Some((name, (_, span))) = self.keywords.first() {
            let message = format!("`{}` does not support the argument `{name}`", self.callee);
            let listed = match self.params.as_slice() {
                [] => "it takes no arguments by name".to_owned(),
                params => format!("its parameters are ({})", params.join(", ")),
            };
            let near = tilewright_script::nearest(name, self.params.iter().map(String::as_str));
            let help = near.map_or(listed.clone(), |near| format!("did you mean `{near}`? {listed}"));
            return Err(Diagnostic::error("argument", Some(*span), message).with_help(help));
        }
        Ok(())
    }
}
