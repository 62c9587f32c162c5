//! Python syntax: one way in to the parser, spans, and its errors as diagnostics.

use ruff_python_ast::ModModule;
use ruff_text_size::TextRange;
use tilewright_ir::{Diagnostic, Span};

/// The range of a node.
pub(crate) fn span(range: TextRange) -> Span {
    Span::new(range.start().to_u32(), range.end().to_u32())
}

/// The syntax tree of a Python module.
pub(crate) fn parse_module(source: &str) -> Result<ModModule, Vec<Diagnostic>> {
    match ruff_python_parser::parse_module(source) {
        Ok(parsed) => Ok(parsed.into_syntax()),
        Err(error) => {
            let message = format!("the file is no valid Python: {}", error.error);
            Err(vec![Diagnostic::error("syntax", Some(span(error.location)), message)])
        }
    }
}
