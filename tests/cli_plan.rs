//! `tilewright plan`: pools, places, figures and proofs of a graph; what is wrong with a graph has its place.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};
use serde_json::{Value, json};

const EXAMPLES: [&str; 2] = ["examples/graphs/mobilenet_block.json", "examples/graphs/fire_modules.json"];

/// Three buffers one after the other; `a` and `c` may share memory.
const CHAIN: &str = r#"{"schema": "tilewright.graph/1",
 "tensors": [
  {"name": "x", "shape": [3, 5], "dtype": "float32"},
  {"name": "a", "shape": [3, 5], "dtype": "float32"},
  {"name": "b", "shape": [7], "dtype": "float16"},
  {"name": "c", "shape": [15], "dtype": "float32"},
  {"name": "t", "shape": [2, 3, 7, 4], "dtype": "float16", "scope": "texture"},
  {"name": "flat", "shape": [5, 3], "dtype": "float32", "view_of": "c"}],
 "steps": [
  {"name": "one", "reads": ["x"], "writes": ["a"]},
  {"name": "two", "reads": ["a"], "writes": ["b"]},
  {"name": "three", "reads": ["b"], "writes": ["c", "t"]}],
 "inputs": ["x"],
 "outputs": ["flat"]}"#;

fn plan(text: &str, more: &[&str]) -> (Option<i32>, Value) {
    let run = tilewright_with_input(&[&["plan", "-", "--format", "json"], more].concat(), text);
    (run.code, run.json())
}

#[test]
fn the_json_says_where_each_tensor_lies_and_that_it_is_proved() {
    let (code, json) = plan(CHAIN, &["--planner", "compatible"]);
    assert_eq!(code, Some(0), "{json}");
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 5, "{keys:?}");
    assert_eq!(json["schema"], "tilewright.plan/1");
    assert_eq!(
        json["tensors"],
        json!([
            {"name": "x", "storage_id": 0, "scope": "global", "offset": 0, "first": 0, "last": 2},
            {"name": "a", "storage_id": 1, "scope": "global", "offset": 0, "first": 0, "last": 1},
            {"name": "b", "storage_id": 2, "scope": "global", "offset": 0, "first": 1, "last": 2},
            {"name": "c", "storage_id": 1, "scope": "global", "offset": 0, "first": 2, "last": 2},
            {"name": "t", "storage_id": 3, "scope": "texture", "x": 0, "y": 0, "width": 7, "height": 6, "first": 2, "last": 2},
            {"name": "flat", "storage_id": 1, "scope": "global", "offset": 0, "first": 2, "last": 2},
        ])
    );
    assert_eq!(
        json["pools"][3],
        json!({"storage_id": 3, "scope": "texture", "dtype": "float16", "shape": [7, 6, 4], "bytes": 336})
    );
    let report = &json["report"];
    assert_eq!((&report["planner"], &report["limits"]), (&json!("compatible"), &json!("8192x8192")));
    let bytes = &report["bytes"];
    let amounts = ["unshared", "compatible", "planned", "lower_bound"].map(|name| bytes[name].as_u64().unwrap());
    let textures = 7 * 6 * 8;
    assert_eq!(
        amounts,
        [60 + 60 + 14 + 60 + textures, 60 + 60 + 14 + textures, 60 + 60 + 14 + textures, 60 + 74 + textures]
    );
    assert_eq!(report["parts"][1]["unit"], "texel");
    assert_eq!(report["parts"][1]["planned"], 42);
    let verdicts = json["verdicts"].as_array().unwrap();
    for wanted in ["plan-disjoint", "plan-fits", "plan-type"] {
        assert!(verdicts.iter().any(|row| row["obligation"] == wanted && row["verdict"] == "proved"), "{wanted}");
    }
}

#[test]
fn best_is_the_default_and_smaller_than_compatible_where_textures_lie_side_by_side() {
    for example in EXAMPLES {
        let run = tilewright(&["plan", example, "--format", "json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let json = run.json();
        let amount = |name: &str| json["report"]["bytes"][name].as_u64().unwrap();
        assert_eq!(json["report"]["planner"], "best");
        assert!(amount("planned") < amount("compatible"), "{example}: {}", json["report"]);
        assert!(amount("lower_bound") <= amount("planned"), "{example}");
    }
}

#[test]
fn the_text_has_pools_tensors_memory_and_verdicts() {
    let run = tilewright(&["plan", EXAMPLES[0]]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    for wanted in
        ["planner best", "of compatible", "b1.expand", "all in bytes", "proved   plan-disjoint", "obligations proved"]
    {
        assert!(run.stdout.contains(wanted), "{wanted}: {}", run.stdout);
    }
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 130), "{}", run.stdout);
}

#[test]
fn a_written_plan_reads_back_as_the_same_and_is_proved_again() {
    let folder = tempfile::tempdir().unwrap();
    for example in EXAMPLES {
        let out = folder.path().join("out.json");
        let out = out.to_str().unwrap();
        let first = tilewright(&["plan", example, "-o", out, "--format", "json"]);
        let second = tilewright(&["plan", out, "--planner", "given", "--format", "json"]);
        assert_eq!((first.code, second.code), (Some(0), Some(0)), "{second:?}");
        let (first, second) = (first.json(), second.json());
        assert_eq!((&first["tensors"], &first["pools"]), (&second["tensors"], &second["pools"]));
        assert_eq!(second["report"]["planner"], "given");
    }
}

#[test]
fn a_plan_that_puts_two_live_tensors_on_top_of_each_other_is_refuted_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = tilewright(&["plan", EXAMPLES[1], "-o", &path("good.json")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(path("good.json")).unwrap()).unwrap();
    // Two textures side by side: the second is moved onto the first.
    for offset in json["attrs"]["storage_offset"][1].as_array_mut().unwrap() {
        if offset.is_array() {
            *offset = json!([0, 0]);
        }
    }
    std::fs::write(path("bad.json"), json.to_string()).unwrap();
    let run = tilewright(&["plan", &path("bad.json"), "--planner", "given", "-o", &path("none.json")]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("refuted  plan-disjoint") && run.stdout.contains("share"), "{}", run.stdout);
    assert!(!folder.path().join("none.json").exists());
}

#[test]
fn the_plan_of_tvm_is_read_and_judged() {
    let tvm = r#"{"nodes": [
      {"op": "null", "name": "x", "inputs": []},
      {"op": "tvm_op", "name": "relu", "attrs": {"func_name": "relu4", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0", "hash": "1"}, "inputs": [[0, 0, 0]]},
      {"op": "tvm_op", "name": "reshape_nop", "attrs": {"func_name": "__nop", "num_outputs": "1"}, "inputs": [[1, 0, 0]]},
      {"op": "tvm_op", "name": "add", "attrs": {"func_name": "add", "num_outputs": "1"}, "inputs": [[2, 0, 0], [2, 0, 0]]}],
     "arg_nodes": [0], "heads": [[3, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4],
     "attrs": {"shape": ["list_shape", [[1, 2, 3, 7, 4], [1, 2, 3, 7, 4], [1, 6, 7, 4], [1, 6, 7, 4]]],
      "dltype": ["list_str", ["float16", "float16", "float16", "float16"]],
      "device_index": ["list_int", [4, 4, 4, 4]],
      "storage_id": ["list_int", [0, 1, 1, IDS]],
      "storage_scope": ["list_str", ["global.texture", "global.texture", "global.texture", "global.texture"]]}}"#;
    let (code, json) = plan(&tvm.replace("IDS", "2"), &["--planner", "given"]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["pools"].as_array().unwrap().len(), 3);
    assert_eq!(json["tensors"][2]["name"], "reshape_nop");
    // The sum written where its operand lies.
    let (code, json) = plan(&tvm.replace("IDS", "1"), &["--planner", "given"]);
    assert_eq!(code, Some(1), "{json}");
    // Without looking at its plan.
    let (code, json) = plan(&tvm.replace("IDS", "1"), &[]);
    assert_eq!(code, Some(0), "{json}");
}

#[test]
fn the_picture_has_a_box_for_each_tensor_with_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.svg");
    for example in EXAMPLES {
        let run = tilewright(&["plan", example, "--svg", file.to_str().unwrap(), "--format", "json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let svg = std::fs::read_to_string(&file).unwrap();
        let graph: Value = serde_json::from_str(&std::fs::read_to_string(example).unwrap()).unwrap();
        let holders = graph["tensors"].as_array().unwrap().iter().filter(|tensor| tensor["view_of"].is_null()).count();
        assert_eq!(svg.matches("class=\"tensor\"").count(), holders);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}

/// A chain of `n` steps that each read a tensor, and an input of their own.
fn chain(n: usize) -> String {
    let tensor = |name: String| format!("{{\"name\":\"{name}\",\"shape\":[{}],\"dtype\":\"float32\"}}", 1 + n % 7);
    let tensors: Vec<_> =
        (0..=n).flat_map(|k| [tensor(format!("tensor_{k}")), tensor(format!("weight_{k}"))]).collect();
    let step = |k: usize| {
        let reads = format!("[\"tensor_{}\",\"weight_{k}\"]", k - 1);
        format!("{{\"name\":\"step_{k}\",\"reads\":{reads},\"writes\":[\"tensor_{k}\"]}}")
    };
    let steps: Vec<_> = (1..=n).map(step).collect();
    let inputs: Vec<_> = (0..=n).map(|k| format!("\"weight_{k}\"")).collect();
    format!(
        "{{\"schema\":\"tilewright.graph/1\",\"tensors\":[{}],\"steps\":[{}],\"inputs\":[\"tensor_0\",{}],\"outputs\":[\"tensor_{n}\"]}}",
        tensors.join(","),
        steps.join(","),
        inputs.join(",")
    )
}

/// The picture of a graph.
fn picture(graph: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.svg");
    let run = tilewright_with_input(&[&["plan", "-", "--svg", file.to_str().unwrap()], more].concat(), graph);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    std::fs::read_to_string(&file).unwrap()
}

#[test]
fn inputs_share_a_row_and_every_name_can_be_read() {
    let svg = picture(&chain(40), &[]);
    assert!(svg.contains(">42 inputs<"), "{svg}");
    assert_eq!(svg.matches("a pool for each").count(), 1);
    for name in ["tensor_0", "weight_40", "tensor_17", "tensor_40"] {
        assert!(svg.contains(&format!(">{name}<")) || svg.contains(&format!("  {name}: pool ")), "{name}");
    }
    let dark = picture(&chain(40), &["--style", "dark"]);
    assert!(!dark.contains("#fff\"") && dark.len().abs_diff(svg.len()) < svg.len() / 10);
}

#[test]
fn the_picture_of_a_very_large_plan_is_cut_with_a_note() {
    let svg = picture(&chain(1500), &["--planner", "compatible"]);
    assert!(svg.contains("too large for one picture") && svg.contains("500 steps"), "{}", &svg[svg.len() - 2000..]);
    assert!(svg.contains("more names; --format json lists all of them"));
    assert!(svg.len() < 2 << 20, "{} bytes", svg.len());
    assert!(!picture(&chain(9), &[]).contains("too large"));
}

#[test]
fn long_names_and_many_tensors_stay_legible() {
    let long = CHAIN.replace("\"a\"", &format!("\"{}\"", "a".repeat(100_000)));
    let run = tilewright_with_input(&["plan", "-"], &long);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.len() < 10_000, "{}", run.stdout.len());
    let row = |at: usize| json!({"name": format!("t{at}"), "shape": [3, at + 1], "dtype": "int8"});
    let step =
        |at: usize| json!({"name": format!("s{at}"), "reads": [format!("t{at}")], "writes": [format!("t{}", at + 1)]});
    let graph = json!({"schema": "tilewright.graph/1", "tensors": (0..300).map(row).collect::<Vec<_>>(),
        "steps": (0..299).map(step).collect::<Vec<_>>(), "inputs": ["t0"], "outputs": ["t299"]});
    let run = tilewright_with_input(&["plan", "-"], &graph.to_string());
    assert!(run.stdout.contains("and 260 more"), "{}", run.stdout);
    let run = tilewright_with_input(&["plan", "-", "--verbose"], &graph.to_string());
    assert!(run.stdout.contains("t298 ") && !run.stdout.contains(" more, "), "{}", run.stdout);
}

#[test]
fn a_graph_of_more_than_16_mib_is_planned() {
    let name = |at: usize| format!("a_tensor_with_a_name_that_makes_the_text_longer_than_that_of_a_program_{at}");
    let row = |at: usize| json!({"name": name(at), "shape": [1, 64, 56, 56], "dtype": "float32"});
    let step = |at: usize| json!({"name": format!("s{at}"), "reads": [name(at)], "writes": [name(at + 1)]});
    let n = 70_000;
    let graph = json!({"schema": "tilewright.graph/1", "tensors": (0..n).map(row).collect::<Vec<_>>(),
        "steps": (0..n - 1).map(step).collect::<Vec<_>>(), "inputs": [name(0)], "outputs": [name(n - 1)]});
    let text = graph.to_string();
    assert!(text.len() > 16 << 20, "{} bytes", text.len());
    let run = tilewright_with_input(&["plan", "-"], &text);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn limits_are_kept() {
    let (code, json) = plan(CHAIN, &["--limits", "7x6"]);
    assert_eq!(code, Some(0), "{json}");
    let (code, json) = plan(CHAIN, &["--limits", "7x5"]);
    assert_eq!((code, &json["diagnostics"][0]["code"]), (Some(2), &json!("texture-limits")), "{json}");
    assert_eq!(json["diagnostics"][0]["labels"][0]["line"], 7);
    assert_eq!(tilewright(&["plan", EXAMPLES[0], "--limits", "0x5"]).code, Some(2));
}

#[test]
fn what_is_wrong_with_a_graph_is_told_with_its_place() {
    for (from, to, code, line) in [
        (r#""reads": ["x"]"#, r#""reads": ["y"]"#, "graph-unknown-name", 10),
        (r#""reads": ["a"]"#, r#""reads": ["c"]"#, "graph-read-early", 11),
        (r#""writes": ["b"]"#, r#""writes": ["x"]"#, "graph-input-written", 11),
        (r#""writes": ["b"]"#, r#""writes": ["a"]"#, "graph-written-twice", 11),
        (r#""name": "b", "shape""#, r#""name": "a", "shape""#, "graph-unknown-name", 11),
        ("float16\", \"scope", "float15\", \"scope", "graph-type", 7),
        (r#""scope": "texture""#, r#""scope": "textur""#, "graph-scope", 7),
        (r#""shape": [5, 3]"#, r#""shape": [5, 4]"#, "graph-view-size", 8),
        (r#""view_of": "c""#, r#""view_of": "flat""#, "graph-view-cycle", 8),
        (r#""shape": [7]"#, r#""shape": [-7]"#, "graph-json", 5),
        (r#""shape": [7]"#, r#""shape": [7], "size": 3"#, "graph-json", 5),
        (r#""outputs": ["flat"]"#, r#""outputs": ["flat", "flat"]"#, "graph-duplicate", 14),
        ("tilewright.graph/1", "tilewright.graph/2", "graph-schema", 1),
    ] {
        assert!(CHAIN.contains(from), "{from}");
        let (status, json) = plan(&CHAIN.replacen(from, to, 1), &[]);
        assert_eq!(status, Some(2), "{to}: {json}");
        let faults = json["diagnostics"].as_array().unwrap();
        let fault = faults.iter().find(|fault| fault["code"] == code);
        let fault = fault.unwrap_or_else(|| panic!("{to}: {json}"));
        assert_eq!(fault["labels"][0]["line"], line, "{to}: {fault}");
    }
    let run = tilewright_with_input(&["plan", "-"], &CHAIN.replace(r#""reads": ["x"]"#, r#""reads": ["y"]"#));
    assert!(run.stdout.is_empty() && run.stderr.contains("<stdin>:10:"), "{run:?}");
}
