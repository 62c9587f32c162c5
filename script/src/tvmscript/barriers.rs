//! Barriers, as every release of TVM prints them.
//!
//! ```python
//! T.tvm_storage_sync("shared")                 # since 0.10
//! T.evaluate(T.tvm_storage_sync("shared"))     # all releases
//! T.tvm_storage_sync("shared", T.bool(False), -1)    # 0.27, what its own parser makes of the first
//! ```
//!
//! The scope says who waits. Only the threads of one group can wait for each other: `"shared"`. The other arguments, whether the barrier is one
//! for loads and how many groups wait, are about barriers of the scope `"global"`, and have TVM's default values here.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{Stmt, StmtKind};

use super::reader::{Reader, string};

impl<'a> Reader<'a> {
    /// Reads `T.tvm_storage_sync("shared")`.
    pub(super) fn barrier(&mut self, call: &'a ast::ExprCall) -> Option<Stmt> {
        let args = self.bind_args(call, "tvm_storage_sync", &["scope", "is_load", "num_blocks"], 1)?;
        let scope = args.get(0)?;
        for (position, default) in [(1, 0), (2, -1)] {
            if let Some(given) = args.get(position)
                && self.expr(given)?.as_const_int() != Some(default)
            {
                let help =
                    "write `T.tvm_storage_sync(\"shared\")`: `is_load` is `False` and `num_blocks` is `-1` there";
                return self.error("argument", given.range(), "this is about groups that wait for each other", help);
            }
        }
        let help = "write `T.tvm_storage_sync(\"shared\")`: the threads of a group wait for each other";
        let Some(name) = string(scope) else {
            return self.error("barrier-scope", scope.range(), "the scope of a barrier is a string", help);
        };
        let message = match name {
            "shared" => return Some(Stmt::new(StmtKind::Barrier)),
            "global" => "groups of threads cannot wait for each other inside of a launch".to_owned(),
            "local" => "the memory of one thread needs no barrier".to_owned(),
            "warp" => "a warp is no group of the language; its threads wait with those of the whole group".to_owned(),
            other => format!("`{other}` is not a scope that threads can wait in"),
        };
        let help = match name {
            "global" => "end the launch there: a loop nest of its own waits for the one before",
            "local" => "leave it out",
            _ => help,
        };
        self.error("barrier-scope", scope.range(), message, help)
    }
}
