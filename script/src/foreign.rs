//! Recognises texts in other languages, so that one error names the language instead of many that point at its syntax.
//!
//! ```
//! let fault = tilewright_script::foreign::diagnose("HloModule jit_f\n\nENTRY main { ... }").expect("HLO");
//! assert!(fault.message.contains("HLO"));
//! assert!(tilewright_script::foreign::diagnose("A = te.placeholder((3, 4))").is_none());
//! ```

use tilewright_ir::{Diagnostic, Span};

/// A language, how to recognise it, and what to write instead.
struct Language {
    /// The name in messages, with its article: `an ONNX model in text form`.
    name: &'static str,
    /// The help: what to write instead.
    help: &'static str,
    /// Prefixes of lines that occur in this language only.
    lines: &'static [&'static str],
}

/// The help for a text that should be a program.
const DIALECTS: &str = "programs are TVMScript (`@T.prim_func`) or TE (`te.create_schedule`)";

/// The languages that are recognised by the beginning of a line. The order matters: CUDA and OpenCL C include C's headers.
const LANGUAGES: &[Language] = &[
    Language {
        name: "HLO text, as XLA prints it",
        help: "HLO is not read; one of its layouts can be given to `tilewright layout`, two to `tilewright relayout`",
        lines: &["HloModule ", "ENTRY %", "%fused_computation"],
    },
    Language {
        name: "MLIR",
        help: DIALECTS,
        lines: &[
            "module {",
            "module @",
            "module attributes",
            "func.func ",
            "builtin.module",
            "\"builtin.module\"",
            "#map = ",
            "#map0 = ",
        ],
    },
    Language { name: "LLVM IR", help: DIALECTS, lines: &["; ModuleID", "target triple", "define dso_local "] },
    Language {
        name: "CUDA C++",
        help: DIALECTS,
        lines: &["__global__ ", "__device__ ", "extern \"C\" __global__ ", "#include <cuda", "#include \"cuda"],
    },
    Language {
        name: "OpenCL C",
        help: "Tilewright writes OpenCL C and does not read it; programs are TVMScript or TE",
        lines: &["__kernel ", "kernel void ", "#pragma OPENCL "],
    },
    Language { name: "C or C++", help: DIALECTS, lines: &["#include <", "#include \"", "int main(", "void "] },
    Language {
        name: "an ONNX model in text form",
        help: DIALECTS,
        lines: &["ir_version:", "producer_name:", "opset_import {"],
    },
];

/// Returns the error that names the language of a text, and `None` for a text that may be Python.
///
/// A text that parses as Python is Python, except for a JSON object, which is a Python expression.
pub fn diagnose(text: &str) -> Option<Diagnostic> {
    let first = first_line(text)?;
    if text[first.start as usize..].starts_with('{') {
        let help = "`tilewright plan` reads the JSON of graphs, `tilewright replay` that of findings";
        return Some(named("JSON", help, first));
    }
    if crate::source::parse_module(text).is_ok() {
        return None;
    }
    let lines = || text.lines().map(str::trim_start);
    let found = LANGUAGES
        .iter()
        .find(|language| lines().any(|line| language.lines.iter().any(|&beginning| line.starts_with(beginning))));
    match found {
        Some(language) => Some(named(language.name, language.help, first)),
        None => {
            is_prose(&text[first.start as usize..first.end as usize]).then(|| named("plain prose", DIALECTS, first))
        }
    }
}

/// Returns the error that names the language of a text that should be the JSON of a graph, and `None` for JSON.
pub fn diagnose_graph(text: &str) -> Option<Diagnostic> {
    let first = first_line(text)?;
    if text[first.start as usize..].starts_with(['{', '[']) {
        return None;
    }
    let is_program = crate::source::parse_module(text).is_ok() && text.contains(['=', '(']);
    let help = "a graph is JSON: `tilewright.graph/1`, or that of TVM's graph executor";
    if is_program {
        let help = "`tilewright check` reads programs; a graph is JSON, such as examples/graphs/block.json";
        return Some(named("a Python program", help, first));
    }
    diagnose(text).map(|fault| fault.with_help(help))
}

fn named(name: &str, help: &str, first: Span) -> Diagnostic {
    Diagnostic::error("foreign-format", Some(first), format!("this is {name}, which is not read here")).with_help(help)
}

/// The first line that is not blank.
fn first_line(text: &str) -> Option<Span> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let trimmed = line.trim();
    let start = trimmed.as_ptr() as usize - text.as_ptr() as usize;
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + trimmed.len()).ok()?))
}

/// Words that begin a Python statement, which may consist of words alone: `from tvm import te`.
const STATEMENTS: [&str; 17] = [
    "assert", "async", "class", "def", "del", "elif", "for", "from", "global", "if", "import", "lambda", "not",
    "raise", "return", "while", "with",
];

/// Whether a line is a sentence: at least four words, and nothing but words and punctuation.
fn is_prose(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.first().is_some_and(|first| STATEMENTS.contains(first)) {
        return false;
    }
    let is_word = |word: &&str| {
        let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '-')
    };
    words.len() >= 4 && words.iter().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        diagnose(text).map(|fault| fault.message)
    }

    #[test]
    fn a_broken_program_keeps_its_own_errors() {
        for text in [
            "from tvm import te\nA = te.placeholder((3, 4)\n",
            "for i in rows:\n x = = 1",
            "A = (",
            "def f(:\n    pass",
            "for i in T.serial(4)\n    pass",
            "# kernel void\nx = = 1",
            "import",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
        assert_eq!(name(""), None);
        assert_eq!(name("module = 1\n"), None);
    }

    #[test]
    fn every_language_is_named() {
        for (text, said) in [
            ("HloModule m\n", "HLO"),
            ("// a comment\nmodule {\n}\n", "MLIR"),
            ("#include <cuda.h>\n__global__ void f() {}\n", "CUDA"),
            ("__kernel void f() {}\n", "OpenCL C"),
            ("#include <stdio.h>\nint main(void) { return 0; }\n", "C or C++"),
            ("Add one to every element.\n", "prose"),
            ("{\"schema\": 1}\n", "JSON"),
        ] {
            assert!(name(text).is_some_and(|found| found.contains(said)), "{text}: {:?}", name(text));
        }
    }

    #[test]
    fn a_graph_is_json_and_nothing_else() {
        assert!(diagnose_graph("{").is_none());
        assert!(diagnose_graph("x = f(1)").is_some_and(|fault| fault.message.contains("Python")));
        assert!(diagnose_graph("HloModule m").is_some_and(|fault| fault.message.contains("HLO")));
    }
}
