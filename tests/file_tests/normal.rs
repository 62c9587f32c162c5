//! Outputs without what differs from run to run: times in milliseconds, and the version of Z3. Both become `_`.

use libtest_mimic::Trial;

use crate::session::is_time;

/// The output with `_` for each time and version.
pub(crate) fn normalised(text: &str) -> String {
    let mut has_times = false;
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        // The rows below a head with a column `ms`, until a line that is not indented.
        let is_head = line.starts_with("  ") && line.split_whitespace().any(|word| word == "ms");
        has_times = is_head || (has_times && line.starts_with("  "));
        let line = if has_times && !is_head { without_cell(line) } else { line.to_owned() };
        let without_times = without_json_times(&without_json_times(&without_marked(&line), "\"ms\":"), "_ms\":");
        let line = without_version(&without_times);
        // Whether a time has a line of its own depends on its length.
        if line.trim() == "(_ ms)" && out.ends_with('\n') {
            out.pop();
            out.push(' ');
            out.push_str(line.trim_start());
        } else {
            out.push_str(&line);
        }
    }
    out
}

/// A row of a table without its time: a number that blanks keep apart on both sides. It keeps its place, so that the
/// columns stay as they are.
fn without_cell(line: &str) -> String {
    let mut at = 0;
    for word in line.split_inclusive(' ') {
        let number = word.trim_end();
        let end = at + number.len();
        let apart = line[..at].ends_with("  ") && (line[end..].starts_with("  ") || line[end..].trim().is_empty());
        if apart && is_time(number) {
            return format!("{}{:>width$}{}", &line[..at], "_", &line[end..], width = number.len());
        }
        at += word.len();
    }
    line.to_owned()
}

/// A line without the numbers in front of ` ms`.
fn without_marked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(" ms") {
        let number = rest[..at].rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |last| last + 1);
        out.push_str(&rest[..number]);
        out.push_str(if is_time(&rest[number..at]) { "_" } else { &rest[number..at] });
        out.push_str(" ms");
        rest = &rest[at + " ms".len()..];
    }
    out + rest
}

/// A line without the numbers after a key that ends like this.
fn without_json_times(line: &str, key: &str) -> String {
    let mut parts = line.split(key);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !"0123456789.eE+-".contains(c)).unwrap_or(part.len());
        out.push_str(key);
        out.push('_');
        out.push_str(&part[end..]);
    }
    out
}

/// A line without the figures after `Z3 `.
fn without_version(line: &str) -> String {
    let mut parts = line.split("Z3 ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
        out.push_str("Z3 ");
        out.push_str(if end > 0 { "_" } else { "" });
        out.push_str(&part[end..]);
    }
    out
}

/// Tests of the normalising.
pub(crate) fn trials() -> Vec<Trial> {
    let check = |name: &str, pairs: &'static [(&'static str, &'static str)]| {
        Trial::test(name, move || {
            for (text, expected) in pairs {
                assert_eq!(normalised(text), *expected);
            }
            Ok(())
        })
    };
    vec![
        check(
            "times_and_versions_become_underscores",
            &[
                ("by z3 (12.5 ms)\n", "by z3 (_ ms)\n"),
                ("by z3\n    (12.5 ms)\n", "by z3 (_ ms)\n"),
                (
                    "  step  verdict     ms  x\n  a.b   proved    12.5  y 1\nend  1.5\n",
                    "  step  verdict     ms  x\n  a.b   proved       _  y 1\nend  1.5\n",
                ),
                ("{\"ms\":0.25,\"n\":1.5}", "{\"ms\":_,\"n\":1.5}"),
                ("{\"inputs_ms\":0.25,\"n\":1.5}", "{\"inputs_ms\":_,\"n\":1.5}"),
                ("(seed 0, Z3 5.4.0)", "(seed 0, Z3 _)"),
            ],
        ),
        check(
            "other_numbers_stay",
            &[
                ("x = T.float32(0.5)\n", "x = T.float32(0.5)\n"),
                ("  0.5  1.5\n", "  0.5  1.5\n"),
                ("Z3 said", "Z3 said"),
            ],
        ),
    ]
}
