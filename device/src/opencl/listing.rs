//! Lists source code with line numbers, and marks the lines that a compiler's log names.
//!
//! ```text
//!     1 | kernel void f(global float *a) {
//! >   2 |     a[0] = b;
//!     3 | }
//! ```

use std::collections::BTreeSet;

/// `source` with line numbers; a `>` stands before the lines that `log` names.
pub(crate) fn list(source: &str, log: &str) -> String {
    let named = named_lines(log);
    let line = |(number, text): (usize, &str)| {
        let mark = if named.contains(&number) { '>' } else { ' ' };
        format!("{mark}{number:>4} | {text}\n")
    };
    (1..).zip(source.lines()).map(line).collect()
}

/// The line numbers in a log.
///
/// Clang and the compilers based on it (PoCL, Oclgrind, AMD, NVIDIA, Intel) write `file:LINE:COLUMN: error: ...`, where the
/// name of the file depends on the driver: `<kernel>`, a temporary file, `1`.
fn named_lines(log: &str) -> BTreeSet<usize> {
    log.lines().filter_map(named_line).collect()
}

/// The line number in one line of a log: the first of the first two neighbouring fields that are both numbers.
fn named_line(text: &str) -> Option<usize> {
    let mut fields = text.split(':').map(|field| field.trim().parse::<usize>().ok());
    let mut before = None;
    fields.find_map(|field| {
        let pair = before.zip(field);
        before = field;
        pair.map(|(line, _)| line)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{list, named_line};

    #[test]
    fn lines_are_found_in_the_logs_of_drivers() {
        let cases = [
            ("<kernel>:3:7: error: expected ';'", Some(3)),
            ("error: /tmp/pocl/tempfile_AB.cl:12:9: use of undeclared identifier 'b'", Some(12)),
            ("input.cl:2:10: warning: unused variable", Some(2)),
            ("1 error generated.", None),
            ("error: see 12: no column", None),
        ];
        for (log, line) in cases {
            assert_eq!(named_line(log), line, "{log}");
        }
    }

    #[test]
    fn the_named_line_is_marked() {
        let listing = list("kernel void f() {\n  x = 1;\n}\n", "k.cl:2:3: error: use of x");
        assert_eq!(listing, "    1 | kernel void f() {\n>   2 |   x = 1;\n    3 | }\n");
    }

    proptest! {
        #[test]
        fn any_log_and_any_source_make_one_line_a_line(log in ".*", source in "(?s).*") {
            prop_assert_eq!(list(&source, &log).matches(" | ").count() >= source.lines().count(), true);
        }
    }
}
