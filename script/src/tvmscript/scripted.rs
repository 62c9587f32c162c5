//! Files that define functions in TVMScript and schedule them in Python.
//!
//! ```python
//! @T.prim_func
//! def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
//!     ...
//!
//! sch = tvm.tir.Schedule(main)               # everything beside the definitions is read by `te`
//! sch.split(sch.get_loops(sch.get_block("B"))[0], factors=[None, 8])
//! ```

use ruff_python_ast as ast;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use tilewright_ir::{Diagnostic, Module, PrimFunc, validate};

use super::device::Functions;
use super::{func, has_prim_func, quoted, reader};

/// A function or a module in TVMScript.
#[derive(Clone, Debug)]
pub struct Scripted {
    /// The name that the definition binds.
    pub name: String,
    /// Whether it is a class of functions.
    pub is_module: bool,
    /// The functions: one, or those of the class.
    pub funcs: Vec<PrimFunc>,
}

/// Returns the name that a definition in TVMScript binds; `None` for any other statement.
pub(crate) fn definition(stmt: &ast::Stmt) -> Option<&str> {
    match stmt {
        ast::Stmt::FunctionDef(def) if func::is_prim_func(def) => Some(def.name.as_str()),
        ast::Stmt::ClassDef(class) if has_prim_func(&class.body) => Some(class.name.as_str()),
        _ => None,
    }
}

/// Returns whether a text defines functions in TVMScript and makes a schedule of one: it calls a function named `Schedule` beside
/// the definitions.
pub fn is_scheduled(source: &str) -> bool {
    let Ok(tree) = crate::source::parse_module(source) else { return false };
    let mut calls = Calls(false);
    tree.body.iter().filter(|stmt| definition(stmt).is_none()).for_each(|stmt| calls.visit_stmt(stmt));
    calls.0 && has_prim_func(&tree.body)
}

/// Reads the definitions in TVMScript of a file, and nothing else of it, and validates their functions.
///
/// # Errors
/// Those of [`super::read_module`].
pub fn read_scripted(source: &str) -> Result<Vec<Scripted>, Vec<Diagnostic>> {
    let mut tree = crate::source::parse_module(source)?;
    quoted::unquote_extents(&mut tree.body, source);
    let mut reader = reader::Reader { functions: Functions::of(&tree.body), ..reader::Reader::default() };
    let mut found = Vec::new();
    for stmt in &tree.body {
        let mut module = Module::default();
        match definition(stmt) {
            Some(name) => {
                reader.module(std::slice::from_ref(stmt), &mut module);
                let is_module = matches!(stmt, ast::Stmt::ClassDef(_));
                found.push(Scripted { name: name.to_owned(), is_module, funcs: module.funcs });
            }
            None if matches!(stmt, ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_)) => {
                reader.module(std::slice::from_ref(stmt), &mut module);
            }
            None => {}
        }
    }
    let mut errors = reader::distinct(reader.errors);
    if errors.is_empty() {
        let funcs = found.iter().flat_map(|one| &one.funcs);
        errors.extend(funcs.filter_map(|func| validate(func).err()).flatten());
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// Whether a call of a function named `Schedule` was met.
struct Calls(bool);

impl<'a> Visitor<'a> for Calls {
    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        if let ast::Expr::Call(call) = expr {
            self.0 |= match &*call.func {
                ast::Expr::Attribute(attribute) => attribute.attr.as_str() == "Schedule",
                ast::Expr::Name(name) => name.id.as_str() == "Schedule",
                _ => false,
            };
        }
        walk_expr(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = A[1]\n";

    #[test]
    fn a_file_is_scheduled_if_it_has_both_a_definition_and_a_schedule() {
        assert!(is_scheduled(&format!("{DEFINITION}sch = tvm.tir.Schedule(f)\n")));
        assert!(is_scheduled(&format!("{DEFINITION}def run():\n    return Schedule(f)\n")));
        assert!(!is_scheduled(DEFINITION));
        assert!(!is_scheduled("sch = tvm.tir.Schedule(f)\n"));
    }

    #[test]
    fn only_the_definitions_are_read() {
        let read = read_scripted(&format!("import tvm\n{DEFINITION}sch = nonsense(f) @ 3\n")).unwrap();
        assert_eq!((read.len(), read[0].name.as_str(), read[0].is_module), (1, "f", false));
    }
}
