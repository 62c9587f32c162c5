//! TVMScript: the text form of a program. What is read is the language of RFC 39, RFC 63 and TVM's releases, as far as
//! [`tilewright_ir`] has it; everything else is an error with a place and a hint.

mod args;
mod attrs;
mod buffer;
mod calls;
mod expr;
mod func;
mod loops;
mod print;
mod promote;
pub(crate) mod reader;
mod scopes;
mod stmt;
mod texture;

use ruff_python_ast as ast;
use tilewright_ir::{Diagnostic, Module, validate};

pub use print::{print_expr, print_func, print_module};

/// Reads every `@T.prim_func` of a file, also those inside a `@tvm.script.ir_module` class, and validates them.
///
/// # Errors
/// All that is wrong, with places in `source`.
pub fn read_module(source: &str) -> Result<Module, Vec<Diagnostic>> {
    let tree = crate::source::parse_module(source)?;
    let mut reader = reader::Reader::default();
    let mut module = Module::default();
    reader.module(&tree.body, &mut module);
    let mut found = reader.errors;
    if found.is_empty() {
        for func in &module.funcs {
            found.extend(validate(func).err().into_iter().flatten());
        }
    }
    if found.is_empty() && module.funcs.is_empty() {
        let help = "a function is marked with `@T.prim_func` on the line above its `def`";
        found.push(Diagnostic::error("no-function", None, "the file has no TVMScript function").with_help(help));
    }
    if found.is_empty() { Ok(module) } else { Err(found) }
}

/// Whether the text holds TVMScript functions, as opposed to a program in the TE dialect. Text that is no Python is
/// judged by its looks.
pub fn is_tvmscript(source: &str) -> bool {
    let Ok(tree) = crate::source::parse_module(source) else { return source.contains("prim_func") };
    has_prim_func(&tree.body)
}

fn has_prim_func(body: &[ast::Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        ast::Stmt::FunctionDef(def) => func::is_prim_func(def),
        ast::Stmt::ClassDef(class) => has_prim_func(&class.body),
        _ => false,
    })
}
