//! Graphs as JSON: what is written reads back as the same graph and plan, both forms mean the same, and no damage to a text
//! makes the reader panic, hang or accept what it should not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod graphs;

use graphs::Random;
use serde_json::{Value, json};
use tilewright::fuzz::graph::native;
use tilewright::graph::{Document, GraphBuilder, NamedGraph, check, read, write};
use tilewright::planner::{Strategy, plan};
use tilewright_ir::{Graph, GraphStep, GraphTensor, MemoryPlan, ScalarType, Scope, TensorRole};

const STRATEGIES: [Strategy; 3] = [Strategy::Unshared, Strategy::Compatible, Strategy::Best];

/// The random graph of a seed, each output listed once as our form has it.
fn random(seed: u64) -> NamedGraph {
    let mut graph = graphs::random(seed);
    let mut seen = std::collections::BTreeSet::new();
    graph.outputs.retain(|&output| seen.insert(output));
    graph
}

fn codes(text: &str) -> Vec<&'static str> {
    read(text).map_or_else(|faults| faults.iter().map(|fault| fault.code).collect(), |_| Vec::new())
}

#[test]
fn a_graph_and_its_plan_read_back_as_they_were_written() {
    for seed in 0..300 {
        let graph = graphs::random(seed);
        for strategy in STRATEGIES {
            let plan = plan(&graph.graph, strategy).unwrap();
            let text = write(&graph, Some(&plan)).unwrap();
            let back = read(&text).unwrap_or_else(|faults| panic!("seed {seed}: {faults:?}\n{text}"));
            assert_eq!(back, Document { graph: graph.clone(), plan: Some(plan) }, "seed {seed}, {strategy:?}");
        }
        let text = write(&graph, None).unwrap();
        assert_eq!(read(&text), Ok(Document { graph, plan: None }), "seed {seed}");
    }
}

#[test]
fn both_forms_mean_the_same_graph() {
    for seed in 0..300 {
        let graph = random(seed);
        let document = Document { graph, plan: None };
        assert_eq!(read(&native(&document.graph).to_string()), Ok(document), "seed {seed}");
    }
}

#[test]
fn the_fields_of_the_rfc_are_those_of_the_rfc() {
    let mut graph = GraphBuilder::new();
    let x = graph.input("x", [2, 3, 5, 7, 4], ScalarType::Float16, Scope::TextureWeight);
    let y = graph.tensor("y", [11, 13], ScalarType::Int8, Scope::Global);
    graph.step("unpack", [x], [y]);
    graph.output(y);
    let graph = graph.finish().unwrap();
    let plan = plan(&graph.graph, Strategy::Compatible).unwrap();
    let json: Value = serde_json::from_str(&write(&graph, Some(&plan)).unwrap()).unwrap();
    assert_eq!(json["attrs"]["storage_id"], json!(["list_int", [0, 1]]));
    assert_eq!(json["attrs"]["storage_scope"], json!(["list_str", ["global.texture-weight", "global"]]));
    assert_eq!(json["attrs"]["shape"], json!(["list_shape", [[2, 3, 5, 7, 4], [11, 13]]]));
    assert_eq!(json["attrs"]["dltype"], json!(["list_str", ["float16", "int8"]]));
    assert_eq!(json["attrs"]["storage_offset"], json!(["list_offset", [[0, 0], 0]]));
    // Width 3 * 5 * 7, height 2; bytes.
    assert_eq!(json["storage_pool"][0]["shape"], json!([105, 2, 4]));
    assert_eq!(json["storage_pool"][1]["shape"], json!([143]));
    assert_eq!((&json["arg_nodes"], &json["heads"]), (&json!([0]), &json!([[1, 0, 0]])));
    assert_eq!(json["node_row_ptr"], json!([0, 1, 2]));
}

#[test]
fn pools_without_a_list_are_as_large_as_their_largest_tensors() {
    let graph = graphs::random(3);
    let given = plan(&graph.graph, Strategy::Compatible).unwrap();
    let mut json: Value = serde_json::from_str(&write(&graph, Some(&given)).unwrap()).unwrap();
    json.as_object_mut().unwrap().remove("storage_pool");
    json["attrs"].as_object_mut().unwrap().remove("storage_offset");
    let back: MemoryPlan = read(&json.to_string()).unwrap().plan.unwrap();
    assert_eq!(back, given);
}

/// The JSON in the comments of a source file.
fn samples(source: &str) -> Vec<String> {
    let comment = source.lines().map_while(|line| line.strip_prefix("//!")).collect::<Vec<_>>().join("\n");
    let blocks = comment.split("```json\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_samples_in_the_documentation_are_read() {
    let samples =
        [samples(include_str!("../memory/src/graph/mod.rs")), samples(include_str!("../memory/src/graph/executor.rs"))]
            .concat();
    assert_eq!(samples.len(), 2);
    for sample in samples {
        let document = read(&sample).unwrap_or_else(|faults| panic!("{faults:?}: {sample}"));
        assert!(plan(&document.graph.graph, Strategy::Best).is_ok());
    }
}

#[test]
fn every_truncation_is_an_error_with_a_place() {
    let graph = random(7);
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    for text in [native(&graph).to_string(), write(&graph, Some(&plan)).unwrap()] {
        let text = text.trim_end();
        for end in 0..text.len() {
            let faults = read(&text[..end]).unwrap_err();
            assert_eq!(faults[0].code, "graph-json", "{end}");
            assert_eq!(faults[0].labels.len(), 1, "{end}: {:?}", faults[0]);
        }
        assert!(read(&format!("{text} x")).is_err());
    }
}

#[test]
fn damaged_texts_never_panic_and_what_is_still_read_is_sound() {
    let mut read_anyway = 0;
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let graph = self::random(seed % 40);
        let plan = plan(&graph.graph, Strategy::Best).unwrap();
        let text = if seed % 2 == 0 { native(&graph).to_string() } else { write(&graph, Some(&plan)).unwrap() };
        let mut bytes = text.into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.place(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.one_of(b"0123456789{}[],:\"-.eE x"),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, random.one_of(b"0123456789{}[],:\"-")),
                _ => {
                    let end = (at + random.place(60)).min(bytes.len());
                    let part: Vec<u8> = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(document) = read(&text) {
            read_anyway += 1;
            assert!(check::check(&document.graph.graph).is_empty());
            if let Some(plan) = &document.plan {
                assert_eq!(plan.places.len(), document.graph.graph.tensors.len());
            }
            // It can be written and read again.
            let again = write(&document.graph, document.plan.as_ref()).unwrap();
            assert_eq!(read(&again).as_ref(), Ok(&document), "seed {seed}");
        }
    }
    assert!(read_anyway > 100, "{read_anyway}");
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let deep = format!("{{\"schema\": {}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let wide = format!("{{\"schema\": \"{}\"}}", "x".repeat(1 << 20));
    let pointer = r#"{"nodes": [], "arg_nodes": [18446744073709551615], "heads": [[18446744073709551615, 0, 0]],
        "node_row_ptr": [0], "attrs": {"shape": ["list_shape", []], "dltype": ["list_str", []]}}"#;
    let rows = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "heads": [],
        "node_row_ptr": [0, 18446744073709551615], "attrs": {"shape": ["list_shape", []], "dltype": ["list_str", []]}}"#;
    let large = r#"{"schema": "tilewright.graph/1", "tensors": [{"name": "x", "shape": [4611686018427387904, 2], "dtype": "int8"}],
        "steps": [], "inputs": ["x"], "outputs": []}"#;
    for text in [&deep, &wide, pointer, rows, large, "", "[]", "{}", "null", "\u{feff}{}", "[\"tilewright.graph/1\"]"] {
        assert!(!codes(text).is_empty(), "{}", &text[..text.len().min(80)]);
    }
    // Lists where objects belong are not read as the fields in order.
    let listed = r#"{"schema": "tilewright.graph/1", "tensors": [["x", [3], "int8", null, [], null]], "steps": [],
        "inputs": ["x"], "outputs": ["x"]}"#;
    assert_eq!(codes(listed), ["graph-json"]);
}

#[test]
fn many_tensors_together_above_two_to_the_62_bytes_are_refused() {
    let tensor = |at: usize| json!({"name": format!("x{at}"), "shape": [1_u64 << 60], "dtype": "int8"});
    let graph = |n: usize| {
        let names: Vec<String> = (0..n).map(|at| format!("x{at}")).collect();
        json!({"schema": "tilewright.graph/1", "tensors": (0..n).map(tensor).collect::<Vec<_>>(), "steps": [],
            "inputs": names, "outputs": []})
        .to_string()
    };
    assert_eq!(codes(&graph(4)), Vec::<&str>::new());
    assert_eq!(codes(&graph(5)), ["graph-too-large"]);
}

#[test]
fn long_chains_of_views_are_followed() {
    let mut graph = GraphBuilder::new();
    let mut last = graph.input("x", [3, 5], ScalarType::Float32, Scope::Global);
    for at in 0..50_000 {
        last = graph.view(format!("v{at}"), last, [15]);
    }
    graph.output(last);
    let graph = graph.finish().unwrap();
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    assert_eq!(read(&write(&graph, Some(&plan)).unwrap()).unwrap().plan, Some(plan));
}

type Change<'a> = &'a dyn Fn(&mut Graph);

/// A graph without faults, each time with one thing changed.
#[test]
fn every_fault_of_a_graph_has_its_code() {
    let tensor = |name: &str, role| GraphTensor {
        name: name.into(),
        shape: vec![3, 5, 4],
        dtype: ScalarType::Float16.into(),
        scope: Scope::Texture,
        axis_separators: Vec::new(),
        view_of: None,
        role,
    };
    let step = |name: &str, reads: &[usize], writes: &[usize]| GraphStep {
        name: name.into(),
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    };
    let mut view = tensor("view", TensorRole::Output);
    view.view_of = Some(1);
    let good = Graph {
        tensors: vec![tensor("x", TensorRole::Input), tensor("y", TensorRole::Intermediate), view],
        steps: vec![step("one", &[0], &[1])],
    };
    let codes = |change: Change<'_>| {
        let mut graph = good.clone();
        change(&mut graph);
        let found: Vec<&str> = check::check(&graph).iter().map(|fault| fault.diagnostic.code).collect();
        assert_eq!(plan(&graph, Strategy::Best).err().map(|fault| fault.code), found.first().copied());
        found
    };
    assert_eq!(codes(&|_| ()), Vec::<&str>::new());
    let changes: [(&str, Change<'_>); 19] = [
        ("graph-name", &|graph| graph.tensors[0].name = "x\u{1b}[31m".into()),
        ("graph-name", &|graph| graph.steps[0].name = "one\n".into()),
        ("graph-duplicate", &|graph| graph.tensors[0].name = "y".into()),
        ("graph-duplicate", &|graph| {
            graph.tensors.push(tensor("z", TensorRole::Intermediate));
            graph.steps.push(step("one", &[], &[3]));
        }),
        ("graph-index", &|graph| graph.steps[0].reads.push(3)),
        ("graph-index", &|graph| graph.tensors[2].view_of = Some(3)),
        ("graph-tensor", &|graph| graph.tensors[0].axis_separators = vec![9]),
        ("graph-scope", &|graph| graph.tensors[0].scope = Scope::Local),
        ("graph-type", &|graph| graph.tensors[0].dtype = ScalarType::Handle.into()),
        ("graph-empty-texture", &|graph| graph.tensors[0].shape[1] = 0),
        ("texture-channels", &|graph| graph.tensors[0].shape[2] = 3),
        ("graph-view-cycle", &|graph| graph.tensors[1].view_of = Some(2)),
        ("graph-view-size", &|graph| graph.tensors[2].shape = vec![5, 3, 4]),
        ("graph-view-size", &|graph| graph.tensors[2].dtype = ScalarType::Int16.into()),
        ("graph-view-written", &|graph| graph.steps[0].writes.push(2)),
        ("graph-view-input", &|graph| graph.tensors[2].role = TensorRole::Input),
        ("graph-input-written", &|graph| graph.steps[0].writes.push(0)),
        ("graph-idle-step", &|graph| graph.steps.push(step("idle", &[1], &[]))),
        ("graph-never-written", &|graph| graph.tensors.push(tensor("z", TensorRole::Output))),
    ];
    for (code, change) in changes {
        assert!(codes(change).contains(&code), "{code}: {:?}", codes(change));
    }
    let twice = |graph: &mut Graph| graph.steps.push(step("again", &[0], &[1]));
    assert_eq!(codes(&twice), ["graph-written-twice"]);
    let in_place = |graph: &mut Graph| graph.steps[0].reads.push(1);
    assert_eq!(codes(&in_place), ["graph-read-early"]);
    let early = |graph: &mut Graph| {
        graph.tensors.push(tensor("z", TensorRole::Output));
        graph.steps.insert(0, step("before", &[2], &[3]));
    };
    assert_eq!(codes(&early), ["graph-read-early"]);
}
