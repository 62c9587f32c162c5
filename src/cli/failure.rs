//! The reasons why a command has no result.
//!
//! A failure becomes an exit status, excerpts on standard error, and with `--format json` an error document. A verdict
//! such as *refuted* is a result and not a failure.

use tilewright_ir::Diagnostic;
use tilewright_script::Source;

use super::exit::ExitStatus;

/// Why a command has no result.
#[derive(Debug)]
pub enum Failure {
    /// The user's fault in a text: a file, standard input or a part of the command line.
    Input {
        /// The text.
        source: Source,
        /// All faults of the text.
        diagnostics: Vec<Diagnostic>,
    },
    /// The program trapped when it was run: an access out of bounds, a read of an undefined element, a division by zero.
    Trap {
        /// Its text.
        source: Source,
        /// The trap and its place.
        diagnostic: Box<Diagnostic>,
    },
    /// The result cannot be written, for example to a full disk, with a message.
    Output(String),
    /// A fault of the machine or of Tilewright itself, with a message.
    Internal(String),
}

impl Failure {
    /// One fault of the input, without a place in it.
    pub fn plain(name: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        let source = Source { name: name.into(), text: String::new() };
        Self::Input { source, diagnostics: vec![Diagnostic::error(code, None, message)] }
    }

    /// Adds a hint to every diagnostic that has none.
    #[must_use]
    pub fn with_help(mut self, help: &str) -> Self {
        if let Self::Input { diagnostics, .. } = &mut self {
            for diagnostic in diagnostics {
                diagnostic.help.get_or_insert_with(|| help.to_owned());
            }
        }
        self
    }

    /// Standard output cannot be written.
    pub(super) fn of_stdout(error: &std::io::Error) -> Self {
        Self::Output(format!("cannot write to standard output: {error}"))
    }

    /// The faults of `source`.
    pub fn input(source: &Source, diagnostics: Vec<Diagnostic>) -> Self {
        Self::Input { source: source.clone(), diagnostics }
    }

    /// The exit status of this failure.
    pub fn status(&self) -> ExitStatus {
        match self {
            Self::Input { .. } | Self::Output(_) => ExitStatus::Usage,
            Self::Trap { .. } => ExitStatus::Refuted,
            Self::Internal(_) => ExitStatus::Internal,
        }
    }
}
