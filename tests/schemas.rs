//! docs/schemas.md describes every JSON document: each schema that the sources name has a table, and each table lists the
//! fields of real documents with their types, no fewer and no more.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "schemas/table.rs"]
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::{tilewright, tilewright_with_input};
use serde_json::Value;
use table::{Comparison, Kind};
use tilewright::report::fuzz_sabotage::{KnownRow, LookRow, SabotageReport, SabotageRow};

/// Rows that need what a machine or a good program does not have, by the beginning of heading and path.
const RARE: &[(&str, &str)] = &[
    ("tilewright.devices/1 devices[]", "an OpenCL device"),
    ("tilewright.plan/1 run.devices[].", "an OpenCL device"),
    ("shared-comparison", "an OpenCL device"),
    ("shared-times", "an OpenCL device"),
    ("shared-comparison first.", "a device that computes something else"),
    ("tilewright.fuzz/1 findings[].", "a failure"),
    ("tilewright.fuzz/1 oracles[].skipped", "a machine on which an oracle cannot run"),
    ("tilewright.fuzz/1 oracles[].invalid.*", "an invalid case"),
    ("tilewright.fuzz/1 oracles[].undecided.*", "an undecided case"),
    ("tilewright.recheck/1 damages[].", "a damaged certificate"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/schemas.md")).unwrap()
}

/// The documents in a text, one on each line or one in all.
fn documents(text: &str) -> Vec<Value> {
    let whole = serde_json::from_str(text).map(|value| vec![value]);
    whole.unwrap_or_else(|_| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// What a command prints with `--format json`.
fn printed(line: &str) -> Vec<Value> {
    let mut arguments: Vec<&str> = Vec::new();
    for (position, part) in line.split('\'').enumerate() {
        if position % 2 == 0 { arguments.extend(part.split_whitespace()) } else { arguments.push(part) }
    }
    arguments.extend(["--format", "json"]);
    let run = tilewright(&arguments);
    assert!(!run.stdout.is_empty(), "{line}: {run:?}");
    documents(&run.stdout)
}

/// Every `.json` file of a folder.
fn files(folder: &Path) -> Vec<Value> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().flat_map(|path| documents(&fs::read_to_string(path).unwrap())).collect()
}

/// Commands that together print every field.
const COMMANDS: &[&str] = &[
    "check --device none examples/wrong_map.py examples/nhwc_to_nchw4c_symbolic.py examples/addone.py",
    "check --limits 16384x16384 examples/separators_texture.py",
    "check no-such-file.py",
    "map 'lambda i: [j]' --shape 3",
    "map 'lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]' --shape 2,3,5,7 --at 1,2,3,4",
    "map 'lambda n, h, w, c: [n, c // 4, h, w, c % 4]' --shape n,3,5,c --assume 'c % 4 == 0'",
    "map 'lambda i, j: [i * 2 + j]' --shape 3,4",
    "map 'lambda i, j: [i + j]' --shape n,m",
    "map 'lambda i, j: [i // 4, i % 4 * 8 + j]' --shape 13,8 --parts --inner j --where 'i < 11 and j != 3'",
    "layout 'f32[3,5]{1,0:T(2,*)(2,1)}' --at 2,3 --table",
    "layout 's4[?,5]{1,0:T(2,2)E(4)}' --at 2,3",
    "bitcast 'f32[3,5]{1,0}' 'f32[3,5]{0,1}'",
    "bitcast 'f32[3,5]{1,0}' 'f32[5,3]{0,1}' --transpose 1,0",
    "relayout 'f32[3,5]{1,0:T(2,2)}' 'f32[3,5]{1,0}'",
    "relayout 'f32[?,5]{1,0:T(2,2)}' 'f32[?,5]{1,0}'",
    "relayout NHWC NCHW --shape 2,5,3,7",
    "draw 'f32[3,8]{1,0:T(2,4)(2,1)}'",
    "draw 'f32[1000,1000]{1,0:T(8,128)}'",
    "draw 'lambda i, j: [i * 2 + j]' --shape 3,4",
    "opt --list",
    "opt -p simplify examples/nhwc_to_nchwc.tvm.py",
    "opt --prove-each --print-after-all -p flatten_buffer examples/nhwc_to_nchwc.tvm.py",
    "opt --prove-each -p simplify examples/wrong_map.py",
    "validate examples/pairs/product.py examples/pairs/product_tiled.py",
    "validate examples/pairs/scale.py tests/schemas/added.py",
    "validate examples/nhwc_to_nchwc.tvm.py examples/nhwc_to_nchwc.tvm.py examples/nhwc_to_nchwc.tvm.py",
    "run --print --shape n=2,h=3,w=2,c=5 examples/nhwc_to_nchw4c_symbolic.py",
    "bench --rounds 2 examples/addone.py",
    "bench --rounds 2 --shape n=2,h=3,w=2,c=5 examples/nhwc_to_nchw4c_symbolic.py",
    "bench examples/wrong_map.py",
    "devices",
    "plan --device none examples/graphs/mobilenet_block.json",
    "plan examples/graphs/block.json --run examples/graphs/block.py",
    "plan examples/models/tiny.onnx --run",
    "plan examples/models/tiny.onnx --target opencl --device none",
    "fuzz --device none --oracle judge_maps --oracle passes --runs 24 --jobs 1",
    "replay tests/regressions/passes-product-of-two-uint64-wraps.json",
];

/// Requests of batches: documents with an `id`.
const BATCHES: &[(&str, &str)] = &[
    ("map", r#"{"id": 1, "map": "lambda i: [i]", "shape": [3]}"#),
    ("layout", r#"{"id": "a", "layout": "f32[3]{0}"}"#),
    ("bitcast", r#"{"id": [1], "from": "f32[3]{0}", "to": "f32[3]{0}"}"#),
    ("relayout", r#"{"id": {}, "from": "f32[3]{0}", "to": "f32[3]{0}"}"#),
];

/// What `compile` and `recheck` write and print.
fn compiled() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for (name, program) in [
        ("texture", "examples/addone.py"),
        ("symbolic", "examples/nhwc_to_nchw4c_symbolic.py"),
        ("asserts", "tests/schemas/asserts.py"),
        ("loops", "tests/schemas/loops.py"),
    ] {
        let directory = folder.path().join(name);
        let shown = directory.display();
        found.extend(printed(&format!("compile --checked -o {shown} {program}")));
        found.extend(files(&directory));
        found.extend(files(&directory.join("certificate")));
        found.extend(printed(&format!("recheck --solver z3 {shown}")));
    }
    found.extend(moved(folder.path()));
    let network = folder.path().join("network");
    found.extend(printed(&format!("compile --checked -o {} examples/models/tiny.onnx", network.display())));
    for name in ["manifest.json", "report.json"] {
        found.extend(documents(&fs::read_to_string(network.join(name)).unwrap()));
    }
    let refuted = folder.path().join("refuted");
    let shown = refuted.display();
    printed(&format!("map 'lambda i, j: [i * 2 + j]' --shape 3,4 --certificate {shown}"));
    found.extend(files(&refuted));
    found
}

/// What `relayout --run` prints.
fn moved(folder: &Path) -> Vec<Value> {
    let header = format!("{:<117}\n", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }");
    let bytes = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &[7; 12]].concat();
    let (input, output) = (folder.join("in.npy"), folder.join("out.npy"));
    fs::write(&input, bytes).unwrap();
    printed(&format!("relayout 's16[2,3]{{1,0}}' '{{0,1}}' --run {} {}", input.display(), output.display()))
}

/// A report of mutation tests: they run in a build with faults only.
fn sabotage() -> Value {
    let row = SabotageRow {
        fault: "none",
        kind: "control",
        room: "",
        summary: "nothing is broken",
        verdict: "not flagged",
        oracle: Some("passes"),
        what: Some(String::new()),
        detail: Some(String::new()),
        oracle_runs: Some(1),
        runs: 1,
        looks: vec![LookRow { oracle: "passes", cases: 1, reached: 1 }],
        seconds: 1.0,
    };
    let report = SabotageReport {
        schema: "tilewright.sabotage/1",
        is_complete: true,
        caught: 0,
        faults: 0,
        flagged: 0,
        decoys: 1,
        interrupted: false,
        seed: 0,
        jobs: 1,
        seconds: 1.0,
        known: vec![KnownRow { oracle: "passes", what: String::new() }],
        rows: vec![row],
    };
    serde_json::to_value(report).unwrap()
}

/// Every schema that a string of the sources names.
fn schemas_of_sources() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !name.starts_with('.') && name != "target" && name != "tests" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.extend(text.split("\"tilewright.").skip(1).filter_map(schema));
            }
        }
    }
    found
}

/// `check/1` of a text that begins with it and a quote.
fn schema(rest: &str) -> Option<String> {
    let (name, rest) = rest.split_once('/')?;
    let version: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    (is_name && !version.is_empty() && rest[version.len()..].starts_with('"'))
        .then(|| format!("tilewright.{name}/{version}"))
}

#[test]
fn every_schema_of_the_sources_has_a_table() {
    let tables = table::read(&page());
    let documented: BTreeSet<String> = tables.keys().filter(|name| !name.starts_with("shared-")).cloned().collect();
    let named = schemas_of_sources();
    assert!(named.len() > 15, "only {named:?} were found, so the search looks at the wrong files");
    assert_eq!(named, documented);
    for name in &documented {
        let anchor: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        assert!(page().contains(&format!("| [`{name}`](#{anchor}) |")), "{name} is missing in the list at the top");
    }
}

#[test]
fn every_field_of_real_documents_is_described_and_every_description_is_real() {
    let tables = table::read(&page());
    let mut comparison = Comparison::new(&tables);
    let mut all: Vec<Value> = COMMANDS.iter().flat_map(|line| printed(line)).collect();
    for (command, request) in BATCHES {
        let run = tilewright_with_input(&[command, "--batch", "-"], &format!("{request}\n"));
        all.extend(documents(&run.stdout));
    }
    all.extend(compiled());
    all.extend(files(&root().join("examples/graphs")));
    all.extend(files(&root().join("tests/schemas")));
    all.extend(files(&root().join("tests/regressions")));
    all.push(sabotage());
    let mut schemas = BTreeSet::new();
    for document in &all {
        let schema = document["schema"].as_str().unwrap_or_else(|| panic!("a document without schema: {document}"));
        schemas.insert(schema.to_owned());
        comparison.object(schema, "", document.as_object().unwrap());
    }
    assert_eq!(comparison.faults, BTreeSet::new());
    let documented: BTreeSet<String> = tables.keys().filter(|name| !name.starts_with("shared-")).cloned().collect();
    assert_eq!(schemas, documented, "there is a document of every schema");
    let is_rare = |row: &String| RARE.iter().any(|(start, _)| row.starts_with(start));
    let invented: Vec<String> = comparison.unseen().into_iter().filter(|row| !is_rare(row)).collect();
    assert_eq!(invented, Vec::<String>::new(), "no document has these");
}

#[test]
fn a_document_that_differs_from_its_table_is_found() {
    let page = "## a/1\n| field | type | meaning |\n|---|---|---|\n| `n` | number or null | |\n| `m` | object | |\n\
                | `m.*` | text | |\n| `p` | list of objects, optional | |\n| `p[].q` | list of [x](#shared-x) | |\n\
                ## Shared: x\n| `e` | extent | |\n";
    let tables = table::read(page);
    assert_eq!(tables["a/1"]["p[].q"].kinds, [Kind::List(Box::new(Kind::Shared("shared-x".into())))]);
    let faults = |text: &str| {
        let mut comparison = Comparison::new(&tables);
        comparison.object("a/1", "", serde_json::from_str::<Value>(text).unwrap().as_object().unwrap());
        comparison.faults.len()
    };
    assert_eq!(faults(r#"{"n": 1, "m": {"k": "v"}, "p": [{"q": [{"e": 3}, {"e": "n"}]}]}"#), 0);
    for (bad, number) in [
        (r#"{"n": "1", "m": {}}"#, 1),
        (r#"{"m": {}}"#, 1),
        (r#"{"n": 1, "m": {"k": 1}}"#, 1),
        (r#"{"n": 1, "m": {}, "o": 1}"#, 1),
        (r#"{"n": 1, "m": {}, "p": [{"q": [{"f": 3}]}]}"#, 2),
        (r#"{"n": 1, "m": {}, "p": {}}"#, 1),
    ] {
        assert_eq!(faults(bad), number, "{bad}");
    }
    let mut comparison = Comparison::new(&tables);
    comparison.object("a/1", "", serde_json::from_str::<Value>(r#"{"n": 1, "m": {}}"#).unwrap().as_object().unwrap());
    assert_eq!(comparison.unseen(), ["a/1 m.*", "a/1 p", "a/1 p[].q", "shared-x e"]);
}
