//! Binding of call arguments to parameters, by position and by name.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;

use super::older::may_state_type;
use super::reader::Reader;
use crate::source::nearest;

/// The arguments of a call, with one slot for each parameter.
pub(crate) struct BoundArgs<'a>(Vec<Option<&'a ast::Expr>>);

impl<'a> BoundArgs<'a> {
    /// Returns the argument for the parameter at `position`. An explicit `None` counts as no argument.
    pub(crate) fn get(&self, position: usize) -> Option<&'a ast::Expr> {
        self.0.get(position).copied().flatten().filter(|expr| !matches!(expr, ast::Expr::NoneLiteral(_)))
    }
}

impl Reader<'_> {
    /// Binds the arguments of a call of `name` to `params`, of which the first `required` must be given.
    ///
    /// Reports an error for a starred or surplus argument, an unknown or repeated keyword, and a missing argument.
    pub(crate) fn bind_args<'a>(
        &mut self,
        call: &'a ast::ExprCall,
        name: &str,
        params: &[&str],
        required: usize,
    ) -> Option<BoundArgs<'a>> {
        let mut slots = vec![None; params.len()];
        let signature = format!("its parameters are ({})", params.join(", "));
        for (position, arg) in call.arguments.args.iter().enumerate() {
            if matches!(arg, ast::Expr::Starred(_)) || position >= params.len() {
                let message = format!("`{name}` does not take this argument");
                return self.error("argument", arg.range(), message, signature);
            }
            slots[position] = Some(arg);
        }
        for keyword in &call.arguments.keywords {
            let given = keyword.arg.as_ref().map_or("**", |arg| arg.as_str());
            let position = params.iter().position(|param| *param == given);
            if given == "dtype" && position.is_none() && may_state_type(name) {
                continue;
            }
            // A slot that is filled already makes the keyword a repeated one.
            let Some(position) = position.filter(|&position| slots[position].is_none()) else {
                let hint = nearest(given, params.iter().copied());
                let help = hint.map_or(signature.clone(), |known| format!("did you mean `{known}`? {signature}"));
                let message = format!("`{name}` does not take the argument `{given}` here");
                return self.error("argument", keyword.range(), message, help);
            };
            slots[position] = Some(&keyword.value);
        }
        if let Some(missing) = slots[..required].iter().position(Option::is_none) {
            let message = format!("`{name}` needs the argument `{}`", params[missing]);
            return self.error("argument", call.range(), message, signature);
        }
        Some(BoundArgs(slots))
    }
}
