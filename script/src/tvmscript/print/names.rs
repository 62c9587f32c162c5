//! Legal, unique names for variables and buffers.

use std::collections::HashMap;

use tilewright_ir::sabotage::{self, Fault};
use tilewright_ir::{Buffer, PrimFunc, Var};

/// Names that mean something else.
const RESERVED: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "match", "case", "type", "T", "tir", "te",
    "I", "tvm", "range", "float", "grid", "min", "max", "abs",
];

#[derive(Default)]
pub(super) struct Names {
    /// Buffers have one name in the whole function.
    buffers: HashMap<Buffer, String>,
    /// Variables in scope, inner ones last.
    vars: Vec<(Var, String)>,
    /// The buffer that gives memory its name.
    owners: HashMap<Var, String>,
    /// Names of buffers.
    taken: Vec<String>,
}

impl Names {
    pub(super) fn new(func: &PrimFunc) -> Self {
        let mut names = Self::default();
        for buffer in func.buffers() {
            let name = names.fresh(&buffer.name);
            names.taken.push(name.clone());
            names.buffers.insert(buffer, name);
        }
        names
    }

    /// A name that nothing has yet: the one that is wanted, with `_` for what is no ASCII letter or digit, as TVM prints it, and
    /// with a number if it is taken.
    fn fresh(&self, wanted: &str) -> String {
        let mut base: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, 'v');
        }
        let used = |name: &str| {
            RESERVED.contains(&name)
                || self.taken.iter().any(|taken| taken == name)
                || (self.vars.iter().any(|(_, taken)| taken == name) && !sabotage::on(Fault::PrinterReusesNames))
        };
        if !used(&base) {
            return base;
        }
        (1..u32::MAX).map(|at| format!("{base}_{at}")).find(|name| !used(name)).unwrap_or(base)
    }

    /// Brings a variable into scope.
    pub(super) fn bind(&mut self, var: &Var) -> String {
        self.bind_as(var, var.name())
    }

    pub(super) fn bind_as(&mut self, var: &Var, wanted: &str) -> String {
        let name = self.fresh(wanted);
        self.vars.push((var.clone(), name.clone()));
        name
    }

    /// Takes the variable bound last out of scope.
    pub(super) fn unbind(&mut self) {
        self.vars.pop();
    }

    pub(super) fn var(&self, var: &Var) -> String {
        let bound = self.vars.iter().rev().find(|(known, _)| known == var);
        bound.map_or_else(|| var.name().to_owned(), |(_, name)| name.clone())
    }

    pub(super) fn buffer(&self, buffer: &Buffer) -> String {
        self.buffers.get(buffer).cloned().unwrap_or_else(|| buffer.name.clone())
    }

    /// The buffer declares its memory, unless another did before.
    pub(super) fn claim_data(&mut self, buffer: &Buffer) {
        let name = self.buffer(buffer);
        self.owners.entry(buffer.data.clone()).or_insert(name);
    }

    /// The buffer by which memory is known.
    pub(super) fn data_owner(&self, data: &Var) -> Option<String> {
        self.owners.get(data).cloned()
    }
}
