//! The rules of ARCHITECTURE.md: which crate imports which, `unsafe` only in `device`, every file listed in docs/FILES.md,
//! none too long, no unused dependency. Each rule is a function that is also tested on input that breaks it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

/// Which of our crates each of our crates may import, tests included.
const ARROWS: &[(&str, &[&str])] = &[
    ("tilewright-ir", &[]),
    ("tilewright-script", &["tilewright-ir"]),
    ("tilewright-kernel", &["tilewright-ir"]),
    ("tilewright-search", &["tilewright-ir", "tilewright-kernel"]),
    ("tilewright-verify", &["tilewright-ir", "tilewright-kernel"]),
    ("tilewright-interp", &["tilewright-ir"]),
    ("tilewright-device", &["tilewright-ir"]),
    ("tilewright-algebra", &["tilewright-ir", "tilewright-script"]),
    ("tilewright-relayout", &["tilewright-ir"]),
    (
        "tilewright-compiler",
        &[
            "tilewright-ir",
            "tilewright-script",
            "tilewright-algebra",
            "tilewright-search",
            "tilewright-verify",
            "tilewright-interp",
            "tilewright-device",
        ],
    ),
    (
        "tilewright-memory",
        &["tilewright-ir", "tilewright-verify", "tilewright-interp", "tilewright-device", "tilewright-compiler"],
    ),
    (
        "tilewright-network",
        &["tilewright-ir", "tilewright-verify", "tilewright-interp", "tilewright-compiler", "tilewright-memory"],
    ),
    (
        "tilewright",
        &[
            "tilewright-ir",
            "tilewright-script",
            "tilewright-search",
            "tilewright-verify",
            "tilewright-interp",
            "tilewright-device",
            "tilewright-algebra",
            "tilewright-relayout",
            "tilewright-compiler",
            "tilewright-memory",
            "tilewright-network",
            "tilewright-campaign",
        ],
    ),
    (
        "tilewright-campaign",
        &[
            "tilewright-ir",
            "tilewright-script",
            "tilewright-search",
            "tilewright-verify",
            "tilewright-interp",
            "tilewright-device",
            "tilewright-algebra",
            "tilewright-compiler",
            "tilewright-memory",
        ],
    ),
];

/// Imports that tests alone may have: the judge's tests write programs as text, and need a judge that finds proofs.
const TEST_ARROWS: &[(&str, &str)] =
    &[("tilewright-verify", "tilewright-script"), ("tilewright-verify", "tilewright-search")];

/// Libraries that only one crate may import, and why it matters: the solver belongs to the judge, the driver to the
/// device room, the Python parser to the reader.
const OWNED: &[(&str, &str)] =
    &[("z3", "tilewright-kernel"), ("ocl", "tilewright-device"), ("ruff_python_parser", "tilewright-script")];

/// Longest file, in lines.
const MAX_LINES: usize = 600;

const FOLDERS: &[&str] = &[
    "ir", "script", "verify", "interp", "device", "algebra", "relayout", "compiler", "memory", "network", "campaign",
    "src", "examples", "tests", "benches", "fuzz",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Import edges (importer, imported), from `cargo metadata`, whatever the kind: normal, dev or build. Those of
/// [`TEST_ARROWS`] are left out where they are dev.
fn edges() -> Vec<(String, String)> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap();
    let of_package = |package: &cargo_metadata::Package| {
        let name = package.name.to_string();
        let for_tests = |to: &cargo_metadata::Dependency| {
            to.kind == cargo_metadata::DependencyKind::Development
                && TEST_ARROWS.contains(&(package.name.as_str(), to.name.as_str()))
        };
        let imports = package.dependencies.iter().filter(|import| !for_tests(import));
        imports.map(|import| (name.clone(), import.name.clone())).collect::<Vec<_>>()
    };
    metadata.packages.iter().flat_map(of_package).collect()
}

fn broken_arrows(edges: &[(String, String)]) -> Vec<String> {
    let mut broken = Vec::new();
    for (from, to) in edges {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| name == from) else {
            broken.push(format!("{from} is in no row of ARROWS"));
            continue;
        };
        let ours = to.starts_with("tilewright");
        let owned_by_another = OWNED.iter().any(|(library, owner)| library == to && owner != from);
        if (ours && !allowed.contains(&to.as_str())) || owned_by_another {
            broken.push(format!("{from} -> {to}"));
        }
    }
    broken
}

/// All `.rs` files of ours, relative to the root, sorted.
fn source_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// The text without comments and without the insides of string literals: what could be code.
fn code_only(text: &str) -> String {
    let mut code = String::new();
    let mut in_string = false;
    for line in text.lines() {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if in_string => drop(chars.next()),
                '\'' if !in_string && chars.peek() == Some(&'"') => drop(chars.next()),
                '"' => in_string = !in_string,
                '/' if !in_string && chars.peek() == Some(&'/') => break,
                _ if in_string => {}
                _ => code.push(c),
            }
        }
        code.push('\n');
    }
    code
}

/// Lines (from 1) that hold the word `unsafe` as code.
fn unsafe_lines(text: &str) -> Vec<usize> {
    let is_word = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
    let code = code_only(text);
    code.lines().enumerate().filter(|(_, line)| is_word(line)).map(|(line, _)| line + 1).collect()
}

/// The first sentence of a file's `//!` comment.
fn purpose(text: &str) -> Option<String> {
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    let lines: Vec<&str> =
        lines.map(|line| line.trim_start_matches("//!").trim()).take_while(|line| !line.is_empty()).collect();
    let paragraph = lines.join(" ");
    let end = paragraph.find(". ").unwrap_or(paragraph.len());
    let sentence = paragraph[..end].trim_end_matches([':', '.']).to_owned();
    (!sentence.is_empty()).then_some(sentence)
}

/// Files without a `//!` sentence.
fn purposeless(files: &[PathBuf]) -> Vec<String> {
    let without = files.iter().filter(|file| purpose(&read(file)).is_none());
    without.map(|file| file.display().to_string()).collect()
}

/// The list of files that docs/FILES.md holds between its two marks.
fn file_table() -> String {
    let mut table = String::new();
    let mut heading = PathBuf::new();
    for file in source_files() {
        let folder = file.parent().unwrap().to_owned();
        if folder != heading {
            let _ = write!(table, "\n### {}\n\n", folder.display());
            heading = folder;
        }
        let purpose = purpose(&read(&file)).unwrap_or_default();
        let _ = writeln!(table, "- `{}`: {purpose}.", file.display());
    }
    table.push('\n');
    table
}

const BEGIN: &str = "<!-- files: written by `UPDATE_EXPECT=1 cargo test --test architecture` -->\n";
const END: &str = "<!-- end of files -->";

/// The text before, between and after the marks.
fn at_marks(page: &str) -> (&str, &str, &str) {
    let (before, rest) = page.split_once(BEGIN).expect("docs/FILES.md has the first mark");
    let (table, after) = rest.split_once(END).expect("docs/FILES.md has the second mark");
    (before, table, after)
}

/// Files that the page does not name.
fn unnamed(files: &[PathBuf], page: &str) -> Vec<String> {
    let names = files.iter().map(|file| file.display().to_string());
    names.filter(|name| !page.contains(&format!("`{name}`"))).collect()
}

/// Dependencies of a package that none of its files names, as `package: dependency`.
fn unused_dependencies(package: &cargo_metadata::Package) -> Vec<String> {
    let folder = package.manifest_path.parent().unwrap().as_std_path();
    // The root package has the others in folders of their own.
    let parts = ["src", "tests", "benches", "examples", "build.rs"].map(|part| folder.join(part));
    let files: Vec<PathBuf> = parts.into_iter().flat_map(rust_files).collect();
    let code: String = files.iter().map(|file| code_only(&fs::read_to_string(file).unwrap())).collect();
    let names = package.dependencies.iter().map(|import| import.rename.as_ref().unwrap_or(&import.name));
    let unused = names.filter(|name| !names_crate(&code, &name.replace('-', "_")));
    unused.map(|name| format!("{}: {name}", package.name)).collect()
}

/// Whether the code has the name as a word of its own.
fn names_crate(code: &str, name: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// All `.rs` files at or below a path, in any order.
fn rust_files(path: PathBuf) -> Vec<PathBuf> {
    if path.extension().is_some_and(|extension| extension == "rs") {
        return if path.exists() { vec![path] } else { Vec::new() };
    }
    let Ok(entries) = fs::read_dir(&path) else { return Vec::new() };
    entries.flat_map(|entry| rust_files(entry.unwrap().path())).collect()
}

#[test]
fn every_dependency_is_used() {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap();
    let unused: Vec<String> = metadata.packages.iter().flat_map(unused_dependencies).collect();
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn a_dependency_is_used_where_code_names_it() {
    assert!(names_crate(&code_only("use serde_json::Value;"), "serde_json"));
    assert!(!names_crate(&code_only("use serde_json::Value; // serde\n\"serde\""), "serde"));
}

/// The licences that deny.toml allows.
fn allowed_licences() -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    list.split(',').map(|name| name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Whether each part of a licence expression that `AND` joins offers a licence of the list.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let offers = |part: &str| {
        let part = part.trim().trim_matches(['(', ')']).replace('/', " OR ");
        part.split(" OR ").any(|licence| allowed.iter().any(|name| name == licence.trim()))
    };
    expression.split(" AND ").all(offers)
}

#[test]
fn every_dependency_has_an_allowed_licence_and_comes_from_the_registry() {
    let version = std::process::Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let platform = vec!["--filter-platform".to_owned(), host.to_owned()];
    let metadata = MetadataCommand::new().current_dir(root()).other_options(platform).exec().unwrap();
    let resolved: BTreeSet<_> =
        metadata.resolve.iter().flat_map(|resolve| &resolve.nodes).map(|node| &node.id).collect();
    let packages: Vec<_> = metadata.packages.iter().filter(|package| resolved.contains(&package.id)).collect();
    assert!(packages.len() > 50, "only {} packages were found", packages.len());
    let allowed = allowed_licences();
    let refused = |package: &&&cargo_metadata::Package| {
        !package.license.as_ref().is_some_and(|licence| is_allowed(licence, &allowed))
            || !package.source.as_ref().is_none_or(cargo_metadata::Source::is_crates_io)
    };
    let found: Vec<String> = packages
        .iter()
        .filter(refused)
        .map(|package| format!("{} {:?} {:?}", package.name, package.license, package.source))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_licence_that_is_not_allowed_is_found() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
    for good in ["MIT", "GPL-3.0 OR MIT", "Unlicense/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0 WITH LLVM-exception", ""] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
    assert!(allowed_licences().iter().any(|name| name == "MIT"));
}

#[test]
fn the_arrows_between_the_crates_hold() {
    let edges = edges();
    assert_eq!(broken_arrows(&edges), Vec::<String>::new());
    let seen: BTreeSet<&str> = edges.iter().map(|(from, _)| from.as_str()).collect();
    for (name, _) in ARROWS {
        assert!(seen.contains(name), "{name} is no crate of the workspace, or imports nothing at all");
    }
}

#[test]
fn a_broken_arrow_is_found() {
    let edge = |from: &str, to: &str| vec![(from.to_owned(), to.to_owned())];
    for (from, to) in [
        ("tilewright-verify", "tilewright"),
        ("tilewright-verify", "tilewright-interp"),
        ("tilewright-verify", "tilewright-search"),
        ("tilewright-kernel", "tilewright-verify"),
        ("tilewright-verify", "z3"),
        ("tilewright-interp", "tilewright-verify"),
        ("tilewright-interp", "tilewright-script"),
        ("tilewright-ir", "tilewright-script"),
        ("tilewright-interp", "z3"),
        ("tilewright", "z3"),
        ("tilewright", "ocl"),
        ("tilewright-algebra", "tilewright-verify"),
        ("tilewright-compiler", "tilewright-memory"),
        ("tilewright-memory", "tilewright-campaign"),
        ("tilewright-newcomer", "serde"),
    ] {
        assert_eq!(broken_arrows(&edge(from, to)).len(), 1, "{from} -> {to}");
    }
    assert!(broken_arrows(&edge("tilewright-verify", "tilewright-ir")).is_empty());
    assert!(broken_arrows(&edge("tilewright-kernel", "z3")).is_empty());
}

#[test]
fn unsafe_is_only_in_device() {
    let mut seen_in_device = false;
    for file in source_files() {
        let lines = unsafe_lines(&read(&file));
        let in_device = file.starts_with("device/src");
        seen_in_device |= in_device && !lines.is_empty();
        assert!(in_device || lines.is_empty(), "unsafe in {} at lines {lines:?}", file.display());
    }
    assert!(seen_in_device, "the scan finds no unsafe block at all, so it looks at the wrong files");
}

#[test]
fn unsafe_is_found_where_it_is_code_and_only_there() {
    assert_eq!(unsafe_lines("fn a() {\n    unsafe { b() }\n}"), [2]);
    assert_eq!(unsafe_lines("unsafe impl Send for A {}"), [1]);
    assert_eq!(unsafe_lines("let quote = '\"'; unsafe { b() }"), [1]);
    assert!(unsafe_lines("// unsafe\n/// unsafe\nlet a = \"unsafe\"; // unsafe\n#![deny(unsafe_code)]").is_empty());
}

#[test]
fn every_file_is_named_with_its_purpose() {
    let path = root().join("docs/FILES.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, table, after) = at_marks(&page);
    assert_eq!(purposeless(&source_files()), Vec::<String>::new(), "these files do not say what they are for");
    let wanted = file_table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(unnamed(&source_files(), &page), Vec::<String>::new());
    assert!(
        table == wanted,
        "the list of files in docs/FILES.md differs from the first sentences of the sources; \
         `UPDATE_EXPECT=1 cargo test --test architecture` rewrites it"
    );
}

#[test]
fn a_file_that_is_not_named_is_found() {
    let files = [PathBuf::from("ir/src/lib.rs"), PathBuf::from("ir/src/secret.rs")];
    assert_eq!(unnamed(&files, "- `ir/src/lib.rs`: the language."), ["ir/src/secret.rs"]);
    assert_eq!(
        purpose("//! Buffers: what they\n//! hold. More.\n//!\n//! Even more."),
        Some("Buffers: what they hold".into())
    );
    assert_eq!(purpose("fn main() {}"), None);
}

/// Paths of files in backticks that begin with one of our folders.
fn named_paths(page: &str) -> Vec<&str> {
    let is_path = |text: &&str| {
        let first = text.split_once('/').map(|(first, _)| first);
        let is_ours = first.is_some_and(|first| FOLDERS.contains(&first) || ["docs", "scripts"].contains(&first));
        // These stand for a name that the reader chooses.
        let is_general = text.contains("NAME") || text.contains("TARGET");
        let is_file = text.rsplit('/').next().is_some_and(|last| last.contains('.'));
        is_ours && is_file && !is_general && text.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
    };
    page.split('`').skip(1).step_by(2).filter(is_path).collect()
}

#[test]
fn the_files_that_the_documents_name_exist() {
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "fuzz/README.md"] {
        let page = fs::read_to_string(root().join(name)).unwrap();
        let missing: Vec<&str> = named_paths(&page).into_iter().filter(|path| !root().join(path).exists()).collect();
        assert_eq!(missing, Vec::<&str>::new(), "{name} names these");
    }
    let page = "`ir/src/op.rs`, `ir/src/nothing.rs`, `a/b.rs`, `src/cli/*.rs`, `docs/NAME.md`, `ir/src/`, `ir`";
    assert_eq!(named_paths(page), ["ir/src/op.rs", "ir/src/nothing.rs"]);
}

/// Files of the judge that name the search for correspondences, which guesses. Only those may that ask for a correspondence and
/// have it checked.
const ASK_THE_FINDER: &[&str] = &[
    "verify/src/lib.rs",
    "verify/src/flow/values.rs",
    "verify/src/lowering.rs",
    "verify/src/pass.rs",
    "verify/src/reorder/mod.rs",
];

/// Whether a file of the judge names the finder, and may not.
fn imports_the_finder(file: &Path, text: &str) -> bool {
    let is_exempt = file.starts_with("verify/src/finder") || ASK_THE_FINDER.iter().any(|name| file == Path::new(name));
    file.starts_with("verify/src")
        && file != Path::new("verify/src/finder.rs")
        && !is_exempt
        && names_crate(&code_only(text), "finder")
}

#[test]
fn no_checker_names_the_search_for_correspondences() {
    let files = source_files();
    let found: Vec<&PathBuf> = files.iter().filter(|file| imports_the_finder(file, &read(file))).collect();
    assert_eq!(found, Vec::<&PathBuf>::new());
    // What walks along a correspondence takes no samples either.
    let walks =
        |file: &&PathBuf| file.starts_with("verify/src/lockstep") || **file == *Path::new("verify/src/lockstep.rs");
    let walks: Vec<&PathBuf> = files.iter().filter(walks).collect();
    assert!(walks.len() > 3, "{walks:?}");
    for file in walks {
        let code = code_only(&read(file));
        assert!(!["sample", "samples", "is_reached"].iter().any(|word| names_crate(&code, word)), "{}", file.display());
    }
}

#[test]
fn a_checker_that_names_the_search_is_found() {
    let text = "use crate::finder;";
    assert!(imports_the_finder(Path::new("verify/src/lockstep/values.rs"), text));
    assert!(!imports_the_finder(Path::new("verify/src/pass.rs"), text));
    assert!(!imports_the_finder(Path::new("verify/src/lockstep.rs"), "//! [`crate::finder`]"));
}

#[test]
fn no_file_is_longer_than_a_room_may_be() {
    let too_long = |file: &PathBuf| {
        let lines = read(file).lines().count();
        (lines > MAX_LINES).then(|| format!("{} has {lines} lines", file.display()))
    };
    let files = source_files();
    assert!(files.len() > 50, "only {} files were found", files.len());
    let found: Vec<String> = files.iter().filter_map(too_long).collect();
    assert_eq!(found, Vec::<String>::new(), "at most {MAX_LINES}");
}

/// What is missing for the fuzz target of an oracle: its file, its entry in `fuzz/Cargo.toml`, or its name in the script.
fn missing_target(name: &str, source: Option<&str>, manifest: &str, script: &str) -> Option<&'static str> {
    if !source.is_some_and(|text| text.contains(&format!("look(\"{name}\", data)"))) {
        return Some("no file in fuzz/fuzz_targets that calls it");
    }
    if !manifest.contains(&format!("[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n")) {
        return Some("no entry in fuzz/Cargo.toml");
    }
    let list = script.split_once("ALL=(").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(list, _)| list);
    (!list.split_whitespace().any(|word| word == name)).then_some("not listed in scripts/fuzz.sh")
}

#[test]
fn every_oracle_has_a_fuzz_target_and_every_target_an_oracle() {
    let manifest = read(Path::new("fuzz/Cargo.toml"));
    let script = read(Path::new("scripts/fuzz.sh"));
    let folder = root().join("fuzz/fuzz_targets");
    for entry in tilewright::fuzz::ORACLES {
        let source = fs::read_to_string(folder.join(format!("{}.rs", entry.name))).ok();
        assert_eq!(missing_target(entry.name, source.as_deref(), &manifest, &script), None, "oracle {}", entry.name);
    }
    let n_targets = fs::read_dir(&folder).unwrap().count();
    assert_eq!(n_targets, tilewright::fuzz::ORACLES.len(), "targets without an oracle");
}

#[test]
fn a_missing_fuzz_target_is_found() {
    let source = Some("tilewright_fuzz::look(\"order\", data)");
    let manifest = "[[bin]]\nname = \"order\"\npath = \"fuzz_targets/order.rs\"\n";
    assert_eq!(missing_target("order", source, manifest, "ALL=(passes order)"), None);
    assert!(missing_target("order", None, manifest, "ALL=(order)").is_some());
    assert!(missing_target("order", Some("look(\"passes\", data)"), manifest, "ALL=(order)").is_some());
    assert!(missing_target("order", source, "[[bin]]\nname = \"order\"\n", "ALL=(order)").is_some());
    assert!(missing_target("order", source, manifest, "ALL=(passes)\norder").is_some());
}
