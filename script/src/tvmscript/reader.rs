//! The state of the reader: names in scope, pending attributes, and the problems found so far.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, DataType, Diagnostic, Expr, IndexMap, TileRequest, Var};

use super::allreduce::Reducer;
use super::blocks::OpenBlock;
use super::device::Functions;
use super::hints::PendingHint;
use super::launches::LaunchAxis;
use super::windows::Window;
use crate::index_map::Symbols;
use crate::source::{nearest, span};

/// The meaning of a name.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// A variable or an expression.
    Value(Expr),
    /// A buffer.
    Buffer(Buffer),
    /// The memory that `T.allocate` returned.
    Pointer(Buffer),
    /// A buffer that `T.buffer_decl` declared without memory. A later `Allocate` provides the memory (RFC 63).
    Unallocated(Buffer),
    /// A parameter of type `handle`.
    Handle(Var),
    /// The launch axis that `T.env_thread` returned.
    Thread(LaunchAxis),
    /// A variable that `k = T.int32()` declares below the start of a function, with its type. A loop or a binding that follows gives it
    /// its meaning.
    Declared(DataType),
    /// A part of a buffer that a block names.
    Window(Window),
    /// The indices of `lambda *indices`.
    Indices(Vec<Expr>),
    /// A name whose declaration has an error, which was reported. Its uses are not reported again.
    Failed,
}

/// An entry of `layout_transform_map`. It is read when the buffer is declared.
pub(super) struct PendingMap<'a> {
    /// The name of the buffer.
    pub(super) key: String,
    /// The location of the value.
    pub(super) range: TextRange,
    /// The location of the index maps.
    pub(super) entry: TextRange,
    /// The index maps as syntax.
    pub(super) maps: Vec<&'a ast::Expr>,
    /// The data variable and the index maps, once they are read.
    pub(super) resolved: Option<(Var, Vec<IndexMap>)>,
}

/// An entry of `tile_layout`. It is read when the buffer is declared.
pub(super) struct PendingTile<'a> {
    /// The name of the buffer.
    pub(super) key: String,
    /// The request as syntax.
    pub(super) value: &'a ast::Expr,
    /// The data variable and the request, once it is read.
    pub(super) resolved: Option<(Var, TileRequest)>,
}

/// Reads a syntax tree. A method that returns `None` has reported an error, and callers go on with the siblings of
/// the node, so that one run reports all problems.
#[derive(Default)]
pub(crate) struct Reader<'a> {
    /// The problems found so far.
    pub(crate) errors: Vec<Diagnostic>,
    /// The names in scope; inner ones are last and hide outer ones.
    pub(crate) names: Vec<(String, Binding)>,
    /// The names under which the file imports TVMScript's functions, besides `T` and `tir`.
    pub(super) aliases: Vec<String>,
    /// The symbolic extents that the file declares beside its functions.
    pub(super) file_symbols: Vec<&'a str>,
    /// The values of the bindings that shapes may name, see `lets`.
    pub(super) lets: Substitution,
    /// Whether unknown names are symbolic extents.
    pub(crate) free_names: bool,
    /// The symbolic extents.
    pub(crate) symbols: Symbols,
    /// The entries of the function's `layout_transform_map`.
    pub(super) maps: Vec<PendingMap<'a>>,
    /// The entries of the function's `tile_layout`.
    pub(super) tiles: Vec<PendingTile<'a>>,
    /// The blocks around the current statement.
    pub(super) blocks: Vec<OpenBlock>,
    /// The names that the function changes, see `scalars`.
    pub(super) changed: Vec<&'a str>,
    /// The buffers of the scalars that change.
    pub(super) scalars: Vec<Buffer>,
    /// The first value and the extent of each loop so far.
    pub(super) ranges: Vec<(Var, Expr, Expr)>,
    /// The variable and the extent of each loop over threads of a group so far.
    pub(super) threads: Vec<(Var, Expr)>,
    /// The hints about variables of loops that follow.
    pub(super) hints: Vec<PendingHint<'a>>,
    /// The parameters that are pointers with a scope.
    pub(super) pointer_scopes: Vec<(&'a str, &'a ast::Expr)>,
    /// Whether the last reducer has an error, which was reported.
    pub(super) reducer_failed: bool,
    /// How the next reduction across threads combines two values.
    pub(super) reducer: Option<Reducer>,
    /// The entries of `{"axis_separators": {A: [1]}}` among the function's attributes.
    pub(super) separators: Vec<(String, &'a ast::Expr)>,
    /// The number of blocks around the current statement, each variable of a `T.grid` counted as one.
    pub(super) depth: usize,
    /// The functions of the file.
    pub(super) functions: Functions<'a>,
    /// The name of the function that is being read.
    pub(super) reading: &'a str,
    /// The number of scopes around the current statement that earlier statements of its blocks, or items of a `with`,
    /// opened.
    pub(super) scopes: usize,
}

impl Reader<'_> {
    /// Creates a reader of index expressions, in which unknown names are symbolic extents.
    pub(crate) fn for_indices(symbols: Symbols) -> Self {
        Self { free_names: true, symbols, ..Self::default() }
    }

    /// Reports an error at `range` and returns `None`, whatever the caller would have returned.
    pub(crate) fn error<T>(
        &mut self,
        code: &'static str,
        range: TextRange,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Option<T> {
        self.errors.push(Diagnostic::error(code, Some(span(range)), message).with_help(help));
        None
    }

    /// Returns the innermost meaning of a name.
    pub(crate) fn lookup(&self, name: &str) -> Option<&Binding> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, binding)| binding)
    }

    /// Gives a name a meaning until the end of the current scope.
    pub(crate) fn bind(&mut self, name: impl Into<String>, binding: Binding) {
        self.names.push((name.into(), binding));
    }

    /// Returns the meaning of a name. Where symbolic extents are allowed, an unknown name is one; elsewhere it is an
    /// error.
    pub(super) fn name(&mut self, name: &ast::ExprName) -> Option<Binding> {
        if name.id.as_str() == SEPARATOR {
            let help = "write it between the outputs of an index map";
            return self.error("index-map", name.range(), format!("`{SEPARATOR}` is not a value"), help);
        }
        match self.lookup(&name.id) {
            Some(Binding::Failed) => return None,
            Some(Binding::Declared(_)) if !self.free_names => {
                let message = format!("`{}` is declared and has no value here", name.id);
                let help = "bind it first, by a loop or as `x = ...`; symbolic extents are declared at the start of a function";
                return self.error("unknown-name", name.range(), message, help);
            }
            Some(Binding::Declared(_)) | None => {}
            Some(binding) => return Some(binding.clone()),
        }
        if self.free_names {
            return Some(Binding::Value(self.symbols.get(&name.id).into()));
        }
        let help = match nearest(&name.id, self.names.iter().map(|(known, _)| known.as_str())) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "bind it first; a symbolic extent is `n = T.int32()` or a name in a parameter's shape".to_owned(),
        };
        self.error("unknown-name", name.range(), format!("`{}` is not known here", name.id), help)
    }

    /// Returns the function name of a call without the module before it. `None` if the function is not one of
    /// TVMScript's.
    pub(crate) fn callee<'e>(&self, func: &'e ast::Expr) -> Option<&'e str> {
        match func {
            ast::Expr::Attribute(attribute) => self.is_tir(&attribute.value).then_some(attribute.attr.as_str()),
            // RFC 63 leaves the module out: `grid(6)`, `Allocate(A.data, ...)`.
            ast::Expr::Name(name) if self.lookup(&name.id).is_none() => Some(name.id.as_str()),
            _ => None,
        }
    }

    /// Returns whether an expression names TVMScript's module: `T`, `tir`, an imported alias, or `tvm.tir`.
    fn is_tir(&self, expr: &ast::Expr) -> bool {
        match expr {
            ast::Expr::Name(name) => {
                let name = name.id.as_str();
                self.lookup(name).is_none()
                    && (["T", "tir", "te", "I"].contains(&name) || self.aliases.iter().any(|alias| alias == name))
            }
            ast::Expr::Attribute(attribute) => attribute.attr.as_str() == "tir",
            _ => false,
        }
    }
}

/// The name of the separator between outputs of an index map that are flattened into different axes.
pub(crate) const SEPARATOR: &str = "AXIS_SEPARATOR";

/// Returns each problem once. A function that is called twice is read twice.
pub(super) fn distinct(errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for error in errors {
        if !found.contains(&error) {
            found.push(error);
        }
    }
    found
}

/// Returns the text of a string literal.
pub(super) fn string(expr: &ast::Expr) -> Option<&str> {
    if let ast::Expr::StringLiteral(literal) = expr { Some(literal.value.to_str()) } else { None }
}

/// Returns the elements of a list or a tuple.
pub(crate) fn sequence(expr: &ast::Expr) -> Option<&[ast::Expr]> {
    match expr {
        ast::Expr::List(list) => Some(&list.elts),
        ast::Expr::Tuple(tuple) => Some(&tuple.elts),
        _ => None,
    }
}
