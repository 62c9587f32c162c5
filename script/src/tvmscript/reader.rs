//! The state of reading: names in scope, and what was found wrong.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{Buffer, Diagnostic, Expr, IndexMap, ThreadTag, TileRequest, Var};

use crate::index_map::Symbols;
use crate::source::{nearest, span};

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// A variable or an expression.
    Value(Expr),
    /// A buffer.
    Buffer(Buffer),
    /// The memory that `T.allocate` gave.
    Pointer(Buffer),
    /// A buffer declared by `T.buffer_decl` without memory, which an `Allocate` gives it (RFC 63).
    Unallocated(Buffer),
    /// A parameter of the type `handle`.
    Handle(Var),
    /// What `T.env_thread` gave.
    Thread(ThreadTag),
    /// The indices of `lambda *indices`.
    Indices(Vec<Expr>),
}

/// A key of `layout_transform_map` and the maps that it leads to.
pub(super) struct PendingMap<'a> {
    pub(super) key: String,
    pub(super) range: TextRange,
    pub(super) maps: Vec<&'a ast::Expr>,
    pub(super) resolved: Option<(Var, Vec<IndexMap>)>,
}

/// A key of `tile_layout` and what is asked for it.
pub(super) struct PendingTile<'a> {
    pub(super) key: String,
    pub(super) value: &'a ast::Expr,
    pub(super) resolved: Option<(Var, TileRequest)>,
}

/// Reads a syntax tree. A method that gives no result has reported why.
#[derive(Default)]
pub(crate) struct Reader<'a> {
    /// All that is wrong so far.
    pub(crate) errors: Vec<Diagnostic>,
    /// Names in scope, inner ones last.
    pub(crate) names: Vec<(String, Binding)>,
    /// Names under which TVMScript's functions were imported; `T` and `tir` always are.
    pub(super) aliases: Vec<String>,
    /// Whether unknown names are symbolic extents.
    pub(crate) free_names: bool,
    /// The symbolic extents.
    pub(crate) symbols: Symbols,
    pub(super) maps: Vec<PendingMap<'a>>,
    pub(super) tiles: Vec<PendingTile<'a>>,
    /// `{"axis_separators": {A: [1]}}` of the function's attributes.
    pub(super) separators: Vec<(String, &'a ast::Expr)>,
    /// Statements around the one that is read.
    pub(super) depth: usize,
}

impl Reader<'_> {
    /// A reader of index expressions, whose free names are symbolic extents.
    pub(crate) fn for_indices(symbols: Symbols) -> Self {
        Self { free_names: true, symbols, ..Self::default() }
    }

    /// Reports an error.
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

    /// The innermost meaning of a name.
    pub(crate) fn lookup(&self, name: &str) -> Option<&Binding> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, binding)| binding)
    }

    pub(crate) fn bind(&mut self, name: impl Into<String>, binding: Binding) {
        self.names.push((name.into(), binding));
    }

    /// The meaning of a name that has to be bound, or is a symbolic extent where those may appear.
    pub(super) fn name(&mut self, name: &ast::ExprName) -> Option<Binding> {
        if name.id.as_str() == SEPARATOR {
            let help = "it stands by itself between the outputs of an index map";
            return self.error("index-map", name.range(), format!("`{SEPARATOR}` is no value"), help);
        }
        if let Some(binding) = self.lookup(&name.id) {
            return Some(binding.clone());
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

    /// The name of a call's function without the module before it, if it is one of TVMScript's.
    pub(crate) fn callee<'e>(&self, func: &'e ast::Expr) -> Option<&'e str> {
        match func {
            ast::Expr::Attribute(attribute) => self.is_tir(&attribute.value).then_some(attribute.attr.as_str()),
            // RFC 63 leaves the module out: `grid(6)`, `Allocate(A.data, ...)`.
            ast::Expr::Name(name) if self.lookup(&name.id).is_none() => Some(name.id.as_str()),
            _ => None,
        }
    }

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

/// What stands between the axes of an index map that are flattened apart.
pub(crate) const SEPARATOR: &str = "AXIS_SEPARATOR";

/// A string literal.
pub(super) fn string(expr: &ast::Expr) -> Option<&str> {
    if let ast::Expr::StringLiteral(literal) = expr { Some(literal.value.to_str()) } else { None }
}

/// The elements of a list or tuple.
pub(crate) fn sequence(expr: &ast::Expr) -> Option<&[ast::Expr]> {
    match expr {
        ast::Expr::List(list) => Some(&list.elts),
        ast::Expr::Tuple(tuple) => Some(&tuple.elts),
        _ => None,
    }
}
