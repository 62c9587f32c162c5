//! Why a command has no result.

use tilewright_ir::Diagnostic;
use tilewright_script::Source;

use super::exit::ExitStatus;

/// Why a command has no result.
#[derive(Debug)]
pub enum Failure {
    /// The user's fault, in a text: a file, standard input or a part of the command line.
    Input {
        /// The text.
        source: Source,
        /// All that is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The program did what has no meaning when it was run.
    Trap {
        /// Its text.
        source: Source,
        /// What it did, and where.
        diagnostic: Box<Diagnostic>,
    },
    /// The machine does not take the result: a full disk, for example. In words.
    Output(String),
    /// A fault of the machine or of Tilewright itself, in words.
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

    /// The exit status that goes with it.
    pub fn status(&self) -> ExitStatus {
        match self {
            Self::Input { .. } | Self::Output(_) => ExitStatus::Usage,
            Self::Trap { .. } => ExitStatus::Refuted,
            Self::Internal(_) => ExitStatus::Internal,
        }
    }
}
