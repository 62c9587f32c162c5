//! Unique Python identifiers for variables and buffers.
//!
//! Variables and buffers have identities, and their names need not be unique: a pass may create a second `A`. The
//! text needs unique names, since the reader knows nothing else.

use std::collections::HashMap;

use tilewright_ir::sabotage;
use tilewright_ir::{Buffer, PrimFunc, Var};

/// Names with another meaning in the printed text: Python's keywords, modules, and functions that are called without
/// a module.
const RESERVED: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "match", "case", "type", "T", "tir", "te",
    "I", "tvm", "range", "float", "grid", "min", "max", "abs",
];

/// The names of a function. A buffer has one name in the whole function, a variable in its scope.
#[derive(Default)]
pub(super) struct Names {
    /// The name of each buffer.
    buffers: HashMap<Buffer, String>,
    /// The variables in scope with their names; inner ones are last.
    vars: Vec<(Var, String)>,
    /// For each data variable, the name of the buffer by which it is printed, as in `A.data`.
    owners: HashMap<Var, String>,
    /// The buffers of [`Names::owners`].
    owning: HashMap<Var, Buffer>,
    /// The data variables that are parameters of a device function, with their names.
    pointers: HashMap<Var, String>,
    /// The names of all buffers.
    taken: Vec<String>,
}

impl Names {
    /// Chooses names for all buffers of a function.
    pub(super) fn new(func: &PrimFunc) -> Self {
        let mut names = Self::default();
        for buffer in func.buffers() {
            let name = names.fresh(&buffer.name);
            names.taken.push(name.clone());
            names.buffers.insert(buffer, name);
        }
        names
    }

    /// Returns an unused name that is similar to `wanted`: characters other than ASCII letters and digits become `_`,
    /// as in TVM's printer, and a number is appended if the name is taken.
    fn fresh(&self, wanted: &str) -> String {
        let mut base: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, 'v');
        }
        let used = |name: &str| {
            RESERVED.contains(&name)
                || self.taken.iter().any(|taken| taken == name)
                || (self.vars.iter().any(|(_, taken)| taken == name) && !sabotage::on("printer-reuses-names"))
        };
        if !used(&base) {
            return base;
        }
        (1..u32::MAX).map(|at| format!("{base}_{at}")).find(|name| !used(name)).unwrap_or(base)
    }

    /// Brings a variable into scope and returns its name.
    pub(super) fn bind(&mut self, var: &Var) -> String {
        self.bind_as(var, var.name())
    }

    /// Brings a variable into scope with a name similar to `wanted`.
    pub(super) fn bind_as(&mut self, var: &Var, wanted: &str) -> String {
        let name = self.fresh(wanted);
        self.vars.push((var.clone(), name.clone()));
        name
    }

    /// Keeps a name from being used again.
    pub(super) fn take(&mut self, name: String) {
        self.taken.push(name);
    }

    /// Takes the variable that was bound last out of scope.
    pub(super) fn unbind(&mut self) {
        self.vars.pop();
    }

    /// Returns the name of a variable; its own name if it is not in scope.
    pub(super) fn var(&self, var: &Var) -> String {
        let bound = self.vars.iter().rev().find(|(known, _)| known == var);
        bound.map_or_else(|| var.name().to_owned(), |(_, name)| name.clone())
    }

    /// Returns the name of a buffer; its own name if it is not one of the function's.
    pub(super) fn buffer(&self, buffer: &Buffer) -> String {
        self.buffers.get(buffer).cloned().unwrap_or_else(|| buffer.name.clone())
    }

    /// Makes a buffer the one by which its data variable is printed, unless another buffer is already.
    pub(super) fn claim_data(&mut self, buffer: &Buffer) {
        let name = self.buffer(buffer);
        self.owners.entry(buffer.data.clone()).or_insert(name);
        self.owning.entry(buffer.data.clone()).or_insert_with(|| buffer.clone());
    }

    /// Makes a data variable a parameter of that name.
    pub(super) fn point(&mut self, data: &Var, name: &str) {
        self.pointers.insert(data.clone(), name.to_owned());
    }

    /// Returns the buffer by which a data variable is printed.
    pub(super) fn owner(&self, data: &Var) -> Option<Buffer> {
        self.owning.get(data).cloned()
    }

    /// Returns how a data variable is printed: `A.data`, or the name of a parameter.
    pub(super) fn data(&self, data: &Var) -> String {
        match (self.pointers.get(data), self.owners.get(data)) {
            (Some(pointer), _) => pointer.clone(),
            (None, Some(owner)) => format!("{owner}.data"),
            (None, None) => format!("{}.data", data.name()),
        }
    }

    /// Returns the name of the buffer by which a data variable is printed.
    pub(super) fn data_owner(&self, data: &Var) -> Option<String> {
        self.owners.get(data).cloned()
    }
}
