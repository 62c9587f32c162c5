//! Applies the readers to texts that are right, nearly right, or wrong: no reader panics, hangs or
//! needs unbounded memory; a refusal gives a position and a reason; a value that is read prints as a
//! text with the same meaning.
//!
//! The three oracles share this file and differ in the language: [`ReadScript`], [`ReadLayout`] and [`ReadGraph`].

mod graph;
mod layout;
mod script;
mod watch;

use tilewright_ir::Diagnostic;

use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::text::{GraphText, Language, LayoutText, Script, TextCase};
use tilewright_script::{DiagnosticRenderer, Source};

use watch::Watch;

/// `Err` with the outcome if a text violates a property.
type CheckResult = Result<(), Outcome>;

/// Applies all readers of a language to a text.
type TextCheck = fn(&str, &mut Tally) -> CheckResult;

macro_rules! oracle {
    ($(#[$doc:meta])* $name:ident, $called:literal, $language:ty, $check:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            check_text: TextCheck,
        }

        impl $name {
            /// Creates the oracle, which applies all readers of its language.
            ///
            /// # Errors
            /// Never.
            pub fn new(_: &Environment) -> Result<Self, String> {
                Ok(Self { check_text: $check })
            }
        }

        impl Oracle for $name {
            type Case = TextCase<$language>;

            const NAME: &'static str = $called;

            fn check(&mut self, case: &Self::Case, tally: &mut Tally) -> Outcome {
                check(self.check_text, case, tally)
            }
        }
    };
}

// Three oracles that differ in the language only.
oracle!(
    /// The oracle `read_script`: TVMScript and TE.
    ReadScript, "read_script", Script, script::check_text
);
oracle!(
    /// The oracle `read_layout`: XLA's shapes and layouts, index maps, shapes, named formats.
    ReadLayout, "read_layout", LayoutText, layout::check_text
);
oracle!(
    /// The oracle `read_graph`: graphs, plans, files of findings.
    ReadGraph, "read_graph", GraphText, graph::check_text
);

/// Checks one text, within the limits of time and memory.
fn check<L: Language>(check_text: TextCheck, case: &TextCase<L>, tally: &mut Tally) -> Outcome {
    let text = case.read();
    let watch = Watch::begin();
    if let Err(outcome) = check_text(&text, tally) {
        return outcome;
    }
    watch.end(text.len()).err().unwrap_or(Outcome::Held)
}

/// Counts the result of a reader, and checks that a refusal can be shown to a user. Returns the value
/// that was read; `None` after a refusal.
///
/// # Errors
/// The refusal has no diagnostic, or one that is not presentable.
fn read<T>(
    reader: &str,
    text: &str,
    read: Result<T, Vec<Diagnostic>>,
    tally: &mut Tally,
) -> Result<Option<T>, Outcome> {
    match read {
        Ok(read) => {
            tally.count(&format!("{reader} read"), 1);
            Ok(Some(read))
        }
        Err(found) => {
            tally.count(&format!("{reader} refused"), 1);
            if found.is_empty() {
                return Err(Failure::outcome(format!("{reader} refuses without a reason"), String::new()));
            }
            presentable(reader, text, &found)?;
            let helpless = found.iter().filter(|fault| fault.help.is_none()).count();
            tally.count("faults", u64::try_from(found.len()).unwrap_or(0));
            tally.count("faults without help", u64::try_from(helpless).unwrap_or(0));
            Ok(None)
        }
    }
}

/// Checks diagnostics: spans inside the text and on character boundaries, a message, a code in
/// kebab case, and a rendering of reasonable size.
fn presentable(reader: &str, text: &str, found: &[Diagnostic]) -> CheckResult {
    // Rendering thousands of diagnostics takes too long, and users read only the first.
    const SHOWN: usize = 20;
    let source = Source { name: "text".to_owned(), text: text.to_owned() };
    for fault in found {
        let wrong = |what: &str| Err(Failure::outcome(format!("{reader}: {what}"), format!("{fault:?}")));
        for label in &fault.labels {
            let [start, end] = [label.span.start, label.span.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            if start > end || !text.is_char_boundary(start) || !text.is_char_boundary(end) {
                return wrong("a place is none of the text");
            }
        }
        let kebab = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if fault.message.trim().is_empty() || fault.code.is_empty() || !fault.code.bytes().all(kebab) {
            return wrong("a fault without a message or a code");
        }
        if fault.code == "internal" {
            return wrong("a text is called a fault of our own");
        }
    }
    for fault in found.iter().take(SHOWN) {
        let shown = DiagnosticRenderer::PLAIN.render(&source, fault);
        let n_lines = text.matches('\n').count() + 1;
        let in_text = fault.labels.iter().map(|label| source.region(label.span)).all(|region| {
            let (start, end) = ((region.line, region.column), (region.end_line, region.end_column));
            (1, 1) <= start && start <= end && region.end_line <= n_lines
        });
        if !shown.contains(fault.code) || !in_text || shown.len() > 20 * text.len() + 20_000 {
            return Err(Failure::outcome(format!("{reader}: a fault is not shown well"), shown));
        }
    }
    Ok(())
}

/// Checks that a printed text reads back as the same value. The printed text may nest deeper than
/// the original one, which may have reached the limit already: `a < b < c` is printed as `a < b and
/// b < c`.
fn same(reader: &str, printed: &str, is_same: Result<bool, Vec<Diagnostic>>) -> CheckResult {
    match is_same {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::outcome(format!("{reader}: what is printed reads back as another"), printed)),
        Err(found) if found.iter().all(|fault| fault.code == "nesting") => Ok(()),
        Err(found) => {
            let first = found.first().map(ToString::to_string).unwrap_or_default();
            Err(Failure::outcome(format!("{reader}: what is printed is not read"), format!("{first}\n{printed}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Span;

    use super::*;

    fn failed(check_text: TextCheck, text: &str) -> Option<String> {
        match check(check_text, &TextCase::<Script>::new(text), &mut Tally::default()) {
            Outcome::Failed(failure) => Some(failure.what),
            _ => None,
        }
    }

    #[test]
    fn only_what_is_printed_too_deep_need_not_be_read() {
        let refused = |codes: &[&'static str]| {
            same("text", "printed", Err(codes.iter().map(|code| Diagnostic::error(code, None, "no")).collect()))
        };
        assert!(refused(&["nesting"]).is_ok());
        assert!(refused(&["syntax"]).is_err() && refused(&["nesting", "type"]).is_err());
        assert!(same("text", "printed", Ok(false)).is_err() && same("text", "printed", Ok(true)).is_ok());
    }

    /// A reader that refuses every text with the given diagnostic.
    fn refuses(text: &str, fault: Diagnostic, tally: &mut Tally) -> CheckResult {
        read::<()>("reader", text, Err(vec![fault]), tally).map(drop)
    }

    #[test]
    fn readers_that_are_broken_are_flagged() {
        let broken: [(TextCheck, &str); 6] = [
            (|text, tally| read::<()>("reader", text, Err(Vec::new()), tally).map(drop), "without a reason"),
            (
                |text, tally| refuses(text, Diagnostic::error("x", Some(Span::new(0, 9)), "m").with_help("h"), tally),
                "place",
            ),
            (
                |text, tally| refuses(text, Diagnostic::error("x", Some(Span::new(1, 2)), "m").with_help("h"), tally),
                "place",
            ),
            (|text, tally| refuses(text, Diagnostic::error("x", None, ""), tally), "without a message"),
            (|text, tally| refuses(text, Diagnostic::error("internal", None, "m"), tally), "of our own"),
            (|_, _| same("reader", "b", Ok(false)), "another"),
        ];
        for (check_text, wanted) in broken {
            let what = failed(check_text, "éa").unwrap_or_default();
            assert!(what.contains(wanted), "{wanted}: {what}");
        }
        let fine: TextCheck =
            |text, tally| refuses(text, Diagnostic::error("x", Some(Span::new(0, 2)), "m").with_help("h"), tally);
        assert_eq!(failed(fine, "éa"), None);
    }
}
