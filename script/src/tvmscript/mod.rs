//! TVMScript: the text form of a program.
//!
//! The reader accepts the notation of RFC 39, RFC 63 and TVM's releases for everything that [`tilewright_ir`] can express.
//! All other constructs are errors with a location and a hint. The printer writes one canonical notation:
//!
//! ```
//! use tilewright_script::{print_module, read_module};
//! let source = "@T.prim_func\ndef f(A: T.Buffer[(64,), \"float32\"]):\n    for i in grid(64):\n        A[i] += 1\n";
//! let text = print_module(&read_module(source)?);
//! assert!(text.contains("def f(A: T.Buffer((64,), \"float32\")):"));
//! assert!(text.contains("A[i] = A[i] + T.float32(1.0)"));
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```
//!
//! # Accepted programs
//! A file consists of imports, functions decorated with `@T.prim_func`, and classes that contain such functions.
//!
//! ```text
//! parameter  ::= name ':' 'T.Buffer(' declaration ')' | name ':' 'T.handle' | name ':' 'T.' type
//! symbol     ::= name '= T.' type '()'                                  a symbolic extent; also several: n, m = T.int32(), T.int32()
//! match      ::= name '= T.match_buffer(' handle ',' declaration ')'    the buffer behind a handle
//! declaration::= shape ',' type [',' property '=' value]*               see the module `buffer`
//!
//! statement  ::= name '[' indices '] =' value | name '[' indices ']' op '=' value
//!              | 'for' names 'in' loop ':' block                        see `loops`
//!              | 'if' condition ':' block ['elif' condition ':' block]* ['else:' block]
//!              | 'with' scope ['as' name] ':' block | name '=' scope    see `scopes`
//!              | name '=' value | name ':' 'T.' type '=' value          a binding for the rest of the block
//!              | 'assert' condition [',' text] | 'T.assume(' condition ')' | 'T.evaluate(' value ')' | 'pass'
//!              | 'T.tvm_storage_sync("shared")'                        a barrier, see `barriers`
//!              | name '(' values ')' | 'T.call_packed(' string ',' values ')'      a call of a function of the file, see `device`
//!
//! value      ::= constant | name | name '[' indices ']' | operator applied to values | call    see `expr` and `calls`
//! ```
//!
//! Unlike Python, a name that is bound in a block is not visible after the block.
//!
//! # Organisation
//! Each module of the reader extends `reader::Reader` by one syntactic category: functions, statements, scopes, loops,
//! expressions, calls, buffers and attributes.

mod allreduce;
mod args;
mod assumptions;
mod attrs;
mod barriers;
mod blocks;
mod buffer;
mod calls;
mod constants;
mod device;
mod expr;
mod failures;
mod func;
mod handles;
mod heads;
mod hints;
mod inits;
mod launches;
mod lets;
mod loops;
mod older;
mod print;
mod promote;
mod quoted;
pub(crate) mod reader;
mod returns;
mod scalars;
mod scopes;
pub(crate) mod scripted;
mod shuffle;
mod stmt;
mod texture;
mod texture_tvm;
mod tuples;
mod values;
mod views;
mod windows;

use ruff_python_ast as ast;
use tilewright_ir::{Diagnostic, Module, validate};

pub use print::{Dialect, UnknownDialect, print_expr, print_func, print_module, print_module_in};
pub use scripted::{Scripted, is_scheduled, read_scripted};

/// Reads every `@T.prim_func` of a file, also inside a `@tvm.script.ir_module` class, and validates the functions.
///
/// # Errors
/// The text is not valid Python, a construct is not supported, a function is ill formed ([`tilewright_ir::check`]),
/// or the file contains no function. All problems of the first stage that fails are returned, with locations in
/// `source`.
pub fn read_module(source: &str) -> Result<Module, Vec<Diagnostic>> {
    let mut tree = crate::source::parse_module(source)?;
    quoted::unquote_extents(&mut tree.body, source);
    let mut reader = reader::Reader { functions: device::Functions::of(&tree.body), ..reader::Reader::default() };
    let mut module = Module::default();
    reader.module(&tree.body, &mut module);
    let mut errors = reader::distinct(reader.errors);
    if errors.is_empty() {
        for func in &module.funcs {
            errors.extend(validate(func).err().into_iter().flatten());
        }
    }
    if errors.is_empty() && module.funcs.is_empty() {
        let help = "a function is marked with `@T.prim_func` on the line above its `def`";
        errors.push(Diagnostic::error("no-function", None, "the file has no TVMScript function").with_help(help));
    }
    if errors.is_empty() { Ok(module) } else { Err(errors) }
}

/// Returns whether the text contains TVMScript functions, as opposed to a program in the TE dialect. Text that is not
/// valid Python counts as TVMScript if it contains the word `prim_func`.
pub fn is_tvmscript(source: &str) -> bool {
    let Ok(tree) = crate::source::parse_module(source) else { return source.contains("prim_func") };
    has_prim_func(&tree.body)
}

/// Returns whether a block contains a TVMScript function, possibly inside a class.
fn has_prim_func(body: &[ast::Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        ast::Stmt::FunctionDef(def) => func::is_prim_func(def),
        ast::Stmt::ClassDef(class) => {
            class.decorator_list.iter().any(func::marks_old_module) || has_prim_func(&class.body)
        }
        _ => false,
    })
}
