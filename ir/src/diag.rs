//! Diagnostics as data: code, message, source locations and help. `tilewright-script` renders them.

use std::fmt;

/// A half-open range of byte offsets in a source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the range `start..end`, in bytes. An `end` before `start` gives an empty range at `start`.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end: end.max(start) }
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The input is rejected.
    Error,
    /// The input is accepted, but is probably not what its author meant.
    Warning,
}

/// A source location and a remark about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub span: Span,
    /// The remark; empty if the location needs none.
    pub message: String,
}

/// One problem with an input, caused by its author and located in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the input is rejected.
    pub severity: Severity,
    /// A stable short name in kebab case, such as `unknown-name`.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// The locations, the main one first. Empty if the diagnostic concerns the whole input.
    pub labels: Vec<Label>,
    /// How to fix the problem.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error at `span`.
    pub fn error(code: &'static str, span: Option<Span>, message: impl Into<String>) -> Self {
        let labels = span.map(|span| Label { span, message: String::new() }).into_iter().collect();
        Self { severity: Severity::Error, code, message: message.into(), labels, help: None }
    }

    /// Creates a warning at `span`.
    pub fn warning(code: &'static str, span: Option<Span>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Sets the help text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another location with a remark, such as the bracket that was never closed.
    #[must_use]
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)?;
        if let Some(help) = &self.help { write!(f, "; help: {help}") } else { Ok(()) }
    }
}

impl std::error::Error for Diagnostic {}
