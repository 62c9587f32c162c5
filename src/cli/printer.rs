//! Where output goes: the result to standard output, everything else to standard error; colours and progress.

use std::io::{self, ErrorKind, Write};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use terminal_size::terminal_size_of;
use tilewright_ir::Diagnostic;
use tilewright_script::{DiagnosticRenderer, Source};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::{Color, Format, Global};
use crate::report::diagnostic::ErrorReport;
use crate::report::text::Style;

/// Writes results to standard output and everything else to standard error.
#[derive(Debug)]
pub struct Printer {
    format: Format,
    style: Style,
    renderer: DiagnosticRenderer,
    /// Whether the reader of standard output went away, so that nothing more is written.
    closed: bool,
}

impl Printer {
    /// A printer with the format, colours and width that the options and the terminal ask for.
    pub fn new(options: &Global) -> Self {
        let colored = |auto: ColorChoice| match options.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => auto != ColorChoice::Never,
        };
        let color = colored(AutoStream::choice(&io::stdout()));
        let width = known_width(terminal_size_of(io::stdout())).unwrap_or(Style::WIDTH);
        let style = Style { color, verbose: options.verbose, width };
        let color = colored(AutoStream::choice(&io::stderr()));
        let known = width_of_messages();
        let width = known.unwrap_or(DiagnosticRenderer::PLAIN.width);
        let renderer = DiagnosticRenderer { color, width, is_wrapped: known.is_some() };
        Self { format: options.format, style, renderer, closed: false }
    }

    /// A printer without colours, for messages before the options are known.
    pub fn plain(format: Format) -> Self {
        Self { format, style: Style::default(), renderer: DiagnosticRenderer::PLAIN, closed: false }
    }

    /// Whether results are printed as JSON.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The style of text on standard output.
    pub fn style(&self) -> Style {
        self.style
    }

    /// The style of text on standard error.
    pub fn style_of_messages(&self) -> Style {
        Style { color: self.renderer.color, width: self.renderer.width, ..self.style }
    }

    /// Writes a part of the result to standard output. A reader that went away is no error: the rest is dropped.
    ///
    /// # Errors
    /// Standard output cannot be written, for example on a full disk.
    pub fn result(&mut self, text: &str) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Failure::of_stdout(&error)),
        }
    }

    /// Writes a line of JSON to standard output.
    ///
    /// # Errors
    /// As [`Printer::result`].
    pub fn json(&mut self, document: &str) -> Result<(), Failure> {
        self.result(&format!("{document}\n"))
    }

    /// Writes diagnostics with their excerpts to standard error.
    pub fn diagnostics(&self, source: &Source, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            self.message(&self.renderer.render(source, diagnostic));
        }
    }

    /// Writes a message to standard error. An error of standard error itself is ignored: there is no other stream.
    pub fn message(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Reports why there is no result: excerpts on standard error, and with `--format json` the error document on
    /// standard output as well. Returns the exit status of the failure.
    pub fn failure(&mut self, failure: &Failure) -> ExitStatus {
        let status = failure.status();
        let (source, diagnostics) = match failure {
            Failure::Input { source, diagnostics } => (source.clone(), diagnostics.clone()),
            Failure::Trap { source, diagnostic } => (source.clone(), vec![diagnostic.as_ref().clone()]),
            Failure::Output(message) => {
                let source = Source { name: "<stdout>".into(), text: String::new() };
                (source, vec![Diagnostic::error("cannot-write", None, message.clone())])
            }
            Failure::Internal(message) => {
                let source = Source { name: "tilewright".into(), text: String::new() };
                (source, vec![Diagnostic::error("internal", None, message.clone())])
            }
        };
        self.diagnostics(&source, &diagnostics);
        if self.is_json() {
            let report = ErrorReport::new(&source, &diagnostics, status.code());
            // If standard output is what failed, the message on standard error was written already.
            let _ = self.json(&report.to_json());
        }
        status
    }

    /// A bar on standard error that shows how many of `total` parts are done, and the current one. It is invisible unless standard error is a
    /// terminal.
    pub fn progress_of(&self, total: usize) -> ProgressBar {
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    }

    /// A spinner on standard error that shows the current step. It is invisible unless standard error is a terminal.
    pub fn progress(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::default_spinner());
        bar
    }
}

/// Columns of standard error: those that COLUMNS says, or those of the terminal; none if it is a file or a pipe.
pub(super) fn width_of_messages() -> Option<usize> {
    known_width(terminal_size_of(io::stderr()))
}

/// The columns that COLUMNS says, else those of the terminal, if there is one. Fewer than 40 are not used: less than that
/// is left for nothing beside the indents.
fn known_width(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let known = said.or(terminal.map(|(terminal_size::Width(columns), _)| usize::from(columns)));
    known.filter(|columns| *columns > 0).map(|columns| columns.max(40))
}
