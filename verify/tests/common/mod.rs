//! What the tests share: programs and maps as text, and a judge.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

pub(crate) mod map;
pub(crate) mod pair;
pub(crate) mod plan;

use tilewright_ir::{Buffer, Expr, PrimFunc};
use tilewright_verify::{Config, Judge};

/// A constant.
pub(crate) fn int(value: i64) -> Expr {
    Expr::int(value)
}

/// The function of a text in TVMScript, from its `def` on.
pub(crate) fn program(text: &str) -> PrimFunc {
    let text = format!("from tvm.script import tir as T\n\n@T.prim_func\n{text}");
    let module = tilewright_script::read_module(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
    module.funcs.into_iter().next().unwrap()
}

/// The buffer of a function by its name.
pub(crate) fn buffer(func: &PrimFunc, name: &str) -> Buffer {
    func.buffers().into_iter().find(|buffer| buffer.name == name).unwrap()
}

/// A judge with the usual budgets.
pub(crate) fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}
