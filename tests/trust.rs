//! docs/TRUST.md: every file that could cause a false proof, with its length.
//!
//! `UPDATE_EXPECT=1 cargo test --test trust` writes the tables again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A part of what is trusted, or is not.
struct Part {
    title: &'static str,
    /// Whether a mistake in it could cause a false proof.
    is_trusted: bool,
    /// What a mistake would do, or why it does no harm.
    why: &'static str,
    /// Files, and folders with everything in them.
    paths: &'static [&'static str],
}

/// All parts. Each file of the folders of [`SORTED`] is in exactly one of them.
const PARTS: &[Part] = &[
    Part {
        title: "Kernel",
        is_trusted: true,
        why: "A wrong meaning of a term, a wrong encoding, a misread answer of Z3, or an unsound rule would make false facts.",
        paths: &[
            "verify/kernel/src/term.rs",
            "verify/kernel/src/term",
            "verify/kernel/src/encode.rs",
            "verify/kernel/src/encode",
            "verify/kernel/src/smtlib.rs",
            "verify/kernel/src/solver.rs",
            "verify/kernel/src/solver",
            "verify/kernel/src/facts.rs",
            "verify/kernel/src/facts",
        ],
    },
    Part {
        title: "Goals and the door",
        is_trusted: true,
        why: "Here variables get their kinds, expressions become terms, and *proved* is made.",
        paths: &[
            "verify/src/door.rs",
            "verify/src/goal.rs",
            "verify/src/question.rs",
            "verify/src/translate.rs",
            "verify/src/verdict.rs",
            "verify/src/judge.rs",
            "verify/src/path.rs",
            "verify/src/premise.rs",
        ],
    },
    Part {
        title: "Statements about maps and layouts",
        is_trusted: true,
        why: "A statement that is too weak would be proved of a wrong map.",
        paths: &[
            "verify/src/map/mod.rs",
            "verify/src/map/bounds.rs",
            "verify/src/map/case.rs",
            "verify/src/map/injective.rs",
            "verify/src/map/inverse.rs",
            "verify/src/map/overflow.rs",
            "verify/src/map/padding.rs",
            "verify/src/map/restriction.rs",
            "verify/src/map/specification.rs",
            "verify/src/map/tight.rs",
            "verify/src/map/twice.rs",
            "verify/src/map/value.rs",
            "verify/src/layout.rs",
            "verify/src/layout",
        ],
    },
    Part {
        title: "Statements about programs and plans",
        is_trusted: true,
        why: "A statement that leaves out an access, a condition or an iteration would be proved of a wrong program.",
        paths: &[
            "verify/src/access.rs",
            "verify/src/access/inside.rs",
            "verify/src/claims.rs",
            "verify/src/definition.rs",
            "verify/src/definitions",
            "verify/src/dividend.rs",
            "verify/src/fills.rs",
            "verify/src/inherited.rs",
            "verify/src/lanes.rs",
            "verify/src/lowering.rs",
            "verify/src/packed.rs",
            "verify/src/pass.rs",
            "verify/src/phases.rs",
            "verify/src/plan",
            "verify/src/race.rs",
            "verify/src/race/intervals.rs",
            "verify/src/race/owned.rs",
            "verify/src/reorder",
            "verify/src/flow",
            "verify/src/same.rs",
            "verify/src/scalarize",
            "verify/src/texture.rs",
            "verify/src/texture",
            "verify/src/blocks.rs",
            "verify/src/blocks/domain.rs",
            "verify/src/blocks/possible.rs",
            "verify/src/blocks/memory.rs",
            "verify/src/blocks/work.rs",
            "verify/src/blocks/rounds.rs",
            "verify/src/device.rs",
            "verify/src/view.rs",
        ],
    },
    Part {
        title: "The walk along a correspondence of two programs",
        is_trusted: true,
        why: "A goal that it forgets would be missed. What corresponds is found elsewhere, and is not believed.",
        paths: &["verify/src/lockstep.rs", "verify/src/lockstep"],
    },
    Part {
        title: "Forms of statements and values",
        is_trusted: true,
        why: "The walk takes a statement or a value in another form for the same one.",
        paths: &["verify/src/forms.rs"],
    },
    Part {
        title: "Checkers without a solver",
        is_trusted: true,
        why: "They evaluate all points of a finite domain, or check a certificate. A point that is left out, or a wrong rule, \
              would prove too much. Z3 confirms what digits and bits rely on.",
        paths: &[
            "verify/src/concrete.rs",
            "verify/src/digits",
            "verify/src/execution/code.rs",
            "verify/src/execution/machine.rs",
            "verify/src/execution/mod.rs",
            "verify/src/execution/parts.rs",
            "verify/src/execution/terms.rs",
            "verify/src/execution/trace.rs",
            "verify/src/iterations.rs",
            "verify/src/map/bits.rs",
            "verify/src/map/instance.rs",
            "verify/src/race/points.rs",
            "verify/src/ring.rs",
            "verify/kernel/src/poly.rs",
        ],
    },
    Part {
        title: "The language",
        is_trusted: true,
        why: "It defines what expressions and programs mean.",
        paths: &["ir/src"],
    },
    Part {
        title: "The readers and the evaluation of TE",
        is_trusted: true,
        why: "They define what the program *is*. Whoever doubts them prints the program as it was read: `tilewright opt`.",
        paths: &["script/src", "compiler/src/te"],
    },
    Part {
        title: "Not trusted: search",
        is_trusted: false,
        why: "What is found goes through the door, is evaluated, or only chooses what is tried first. Lemmas are proved by \
              the kernel.",
        paths: &[
            "verify/search/src",
            "verify/kernel/src/lemmas.rs",
            "verify/kernel/src/lemmas",
            "verify/kernel/src/strategy.rs",
            "verify/src/enumerate",
            "verify/src/execution/plan.rs",
            "verify/src/finder.rs",
            "verify/src/finder",
            "verify/src/gf2",
            "verify/src/map/fast",
            "verify/src/map/memory.rs",
            "verify/src/map/shrink.rs",
            "verify/src/map/witness.rs",
            "verify/src/path/samples.rs",
            "verify/src/sample.rs",
        ],
    },
    Part {
        title: "Not trusted: reports and certificates",
        is_trusted: false,
        why: "Words, records and lists without decisions.",
        paths: &[
            "verify/kernel/src/lib.rs",
            "verify/kernel/src/reason.rs",
            "verify/src/certificate.rs",
            "verify/src/correspondence.rs",
            "verify/src/lib.rs",
            "verify/src/map/statement.rs",
            "verify/src/method.rs",
            "verify/src/obligation.rs",
            "verify/src/record.rs",
            "verify/src/steps.rs",
            "verify/src/words.rs",
        ],
    },
];

/// Folders of which every file has to be in a part.
const SORTED: &[&str] =
    &["verify/src", "verify/kernel/src", "verify/search/src", "ir/src", "script/src", "compiler/src/te"];

/// The greatest number of lines of code of the kernel.
const KERNEL: usize = 3500;

/// The greatest number of lines of code of the walk along a correspondence.
const WALK: usize = 600;

const BEGIN: &str = "<!-- lines: written by `UPDATE_EXPECT=1 cargo test --test trust` -->\n";
const END: &str = "<!-- end of lines -->\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The `.rs` files at or below a path that are no tests, relative to the root and sorted.
fn files(path: &str) -> Vec<String> {
    fn collect(path: &Path, found: &mut Vec<PathBuf>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                collect(&entry.unwrap().path(), found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.to_owned());
        }
    }
    let mut found = Vec::new();
    collect(&root().join(path), &mut found);
    let is_test = |path: &str| path.split('/').any(|part| part == "tests" || part.ends_with("tests.rs"));
    let relative = |path: PathBuf| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    let mut files: Vec<String> = found.into_iter().map(relative).filter(|path| !is_test(path)).collect();
    files.sort();
    files
}

/// Lines of code, and lines of any kind, without the tests at the end of a file.
fn lines(text: &str) -> (usize, usize) {
    let body: Vec<&str> = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect();
    let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    (body.iter().filter(is_code).count(), body.len())
}

/// The lines of each file of a part.
fn measured(part: &Part) -> Vec<(String, (usize, usize))> {
    let all = part.paths.iter().flat_map(|path| files(path));
    all.map(|file| (file.clone(), lines(&fs::read_to_string(root().join(file)).unwrap()))).collect()
}

fn total(files: &[(String, (usize, usize))]) -> (usize, usize) {
    files.iter().fold((0, 0), |sum, (_, lines)| (sum.0 + lines.0, sum.1 + lines.1))
}

/// The tables of all parts.
fn tables() -> String {
    let mut text = String::from("\n| part | files | lines of code | with comments |\n|---|---|---|---|\n");
    for part in PARTS {
        let files = measured(part);
        let (code, all) = total(&files);
        writeln!(text, "| {} | {} | {code} | {all} |", part.title, files.len()).unwrap();
    }
    for part in PARTS {
        writeln!(text, "\n## {}\n\n{}\n\n| file | lines of code |\n|---|---|", part.title, part.why).unwrap();
        for (file, (code, _)) in measured(part) {
            writeln!(text, "| `{file}` | {code} |").unwrap();
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_lengths_are_those_of_the_files() {
    let path = root().join("docs/TRUST.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert!(text == expected, "docs/TRUST.md is out of date: `UPDATE_EXPECT=1 cargo test --test trust` rewrites it");
}

#[test]
fn every_file_is_in_one_part() {
    let mut sorted: Vec<String> =
        PARTS.iter().flat_map(|part| measured(part).into_iter().map(|(file, _)| file)).collect();
    sorted.sort();
    let mut twice = sorted.clone();
    twice.dedup();
    assert_eq!(sorted, twice, "a file is in two parts");
    let missing: Vec<String> =
        SORTED.iter().flat_map(|path| files(path)).filter(|file| !sorted.contains(file)).collect();
    assert_eq!(missing, Vec::<String>::new(), "these files are in no part");
}

#[test]
fn the_kernel_stays_small() {
    let (code, _) = total(&measured(&PARTS[0]));
    assert!(code <= KERNEL && code > KERNEL / 2, "{code} lines of code");
    assert!(PARTS[0].is_trusted && PARTS.iter().filter(|part| part.is_trusted).count() > 4);
}

#[test]
fn the_walk_along_a_correspondence_stays_small() {
    let walk = PARTS.iter().find(|part| part.paths.contains(&"verify/src/lockstep.rs")).unwrap();
    let (code, _) = total(&measured(walk));
    assert!(walk.is_trusted && code <= WALK && code > WALK / 2, "{code} lines of code");
}

#[test]
fn comments_and_tests_are_no_code() {
    let text = "//! Page.\n\nfn f() {\n    // Why.\n    g();\n}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n";
    assert_eq!(lines(text), (3, 7));
}
