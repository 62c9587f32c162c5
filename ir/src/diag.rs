//! What is wrong with an input, as data: code, message, places, help. `tilewright-script` renders it.

use std::fmt;

/// A half-open range of bytes in a source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`, in bytes.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end: end.max(start) }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is accepted, and something should be known.
    Warning,
}

/// A place and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there; may be empty.
    pub message: String,
}

/// One thing that is wrong with an input: the user's fault, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable short name in kebab case, such as `unknown-name`.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// The first is the main place; empty where the whole input is meant.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: &'static str, span: Option<Span>, message: impl Into<String>) -> Self {
        let labels = span.map(|span| Label { span, message: String::new() }).into_iter().collect();
        Self { severity: Severity::Error, code, message: message.into(), labels, help: None }
    }

    /// A warning at `span`.
    pub fn warning(code: &'static str, span: Option<Span>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with another place.
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
