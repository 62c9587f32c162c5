//! The end of a function, and loops that end early.
//!
//! | notation | meaning |
//! |---|---|
//! | `return 0`, `T.ret(0)`, `T.evaluate(T.ret(0))` as the last statement of a function | nothing: zero says that the call succeeded |
//! | `return x`, `T.ret(x)` otherwise | an error |
//! | `break`, `continue`, `T.break_loop()`, `T.continue_loop()` | an error |
//!
//! TVM's MakePackedAPI adds the first to a function of the host; release 0.27 prints `return 0`, and earlier ones a call of `T.ret`.

use ruff_python_ast as ast;
use ruff_text_size::TextRange;

use super::reader::Reader;

impl<'a> Reader<'a> {
    /// Returns the statements of a function without a `return 0` at the end.
    pub(super) fn without_return<'s>(&self, body: &'s [&'a ast::Stmt]) -> &'s [&'a ast::Stmt] {
        match body {
            [rest @ .., last] if self.returns_zero(last) => rest,
            all => all,
        }
    }

    fn returns_zero(&self, stmt: &'a ast::Stmt) -> bool {
        let value = match stmt {
            ast::Stmt::Return(inner) => inner.value.as_deref(),
            _ => match self.statement_call(stmt, "evaluate").map(|call| &*call.arguments.args) {
                Some([ast::Expr::Call(inner)]) => self.returned(inner),
                _ => self.statement_call(stmt, "ret").and_then(|call| self.returned(call)),
            },
        };
        value.is_some_and(|value| self.is_zero(value))
    }

    /// Returns the value of `T.ret(value)`.
    fn returned(&self, call: &'a ast::ExprCall) -> Option<&'a ast::Expr> {
        match (self.callee(&call.func), &*call.arguments.args, &*call.arguments.keywords) {
            (Some("ret"), [value], []) => Some(value),
            _ => None,
        }
    }

    /// Returns whether a value is `0` or `T.int32(0)`.
    fn is_zero(&self, value: &ast::Expr) -> bool {
        match value {
            ast::Expr::NumberLiteral(number) => {
                matches!(&number.value, ast::Number::Int(int) if int.as_i64() == Some(0))
            }
            ast::Expr::Call(call) if self.callee(&call.func) == Some("int32") => match &call.arguments.args[..] {
                [value @ ast::Expr::NumberLiteral(_)] => self.is_zero(value),
                _ => false,
            },
            _ => false,
        }
    }

    /// Reports a statement that ends a function or a loop early.
    pub(super) fn ends_early<R>(&mut self, word: &str, range: TextRange) -> Option<R> {
        let (message, help) = match word {
            "return" | "ret" => (
                "a function returns nothing",
                "it writes to its buffer parameters; only `return 0` at the end of a function is read, as nothing",
            ),
            "break" | "break_loop" => (
                "a loop cannot be left early",
                "run all iterations, and put what the later ones must not do under a condition, such as `if i <= 3:`",
            ),
            _ => (
                "the rest of an iteration cannot be skipped",
                "put it under the opposite condition, such as `if i != 3:` for `if i == 3:` and `continue`",
            ),
        };
        self.error("unsupported", range, message, help)
    }
}
