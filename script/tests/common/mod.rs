//! Helpers of the tests of the reader: they build programs, read what was printed, and expect one error.

use tilewright_ir::Diagnostic;
use tilewright_ir::equal::modules_equal;
use tilewright_script::{print_module, read_module};

/// Returns the function `f` with these parameters and this body.
pub(crate) fn program(params: &str, body: &str) -> String {
    format!("@T.prim_func\ndef f({params}):\n{body}\n")
}

/// Reads a program, prints it, and reads that again. Returns the text.
pub(crate) fn round_trip(source: &str) -> String {
    let module = read_module(source).unwrap_or_else(|found| panic!("{found:#?}\n{source}"));
    let text = print_module(&module);
    let again = read_module(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
    assert!(modules_equal(&module, &again, true), "{text}\n{}", print_module(&again));
    text
}

/// Checks that two programs are the same, and that their text is read as the same program again.
pub(crate) fn assert_same(written: &str, plain: &str) {
    assert_eq!(round_trip(written), round_trip(plain), "{written}\n{plain}");
}

/// Checks that the only error of a program has this code and is on the line `line` of its text, counted from 1. Returns it.
pub(crate) fn only_error(source: &str, code: &str, line: usize) -> Diagnostic {
    let mut found = read_module(source).err().unwrap_or_else(|| panic!("no error\n{source}"));
    assert_eq!(found.len(), 1, "{found:#?}\n{source}");
    let error = found.remove(0);
    assert!(error.help.is_some(), "{error:?}");
    let start = error.labels.first().map_or(0, |label| label.span.start as usize);
    assert_eq!((error.code, source[..start].lines().count().max(1)), (code, line), "{error:#?}\n{source}");
    error
}

pub(crate) const PARAMS: &str = "A: T.Buffer((3, 8), \"float32\"), B: T.Buffer((24,), \"float32\")";
