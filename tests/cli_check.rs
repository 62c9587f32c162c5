//! `tilewright check`: what is proved, what is refuted, what is neither, and what the exit code says of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with, tilewright_with_input};
use serde_json::{Value, json};

const NCHWC: &str = r#"
from tvm import te
A = te.placeholder((2, 7, 9, 17), name="A", dtype="float32")
B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] * 2.0, name="B")
s = te.create_schedule(B.op)
s[A].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
s[B].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
"#;

fn rows<'a>(json: &'a Value, list: &str) -> &'a [Value] {
    json[list].as_array().unwrap_or_else(|| panic!("no {list} in {json}"))
}

#[test]
fn a_right_layout_is_proved_and_every_stage_agrees() {
    let run = tilewright_with_input(&["check", "--device", "none", "--format", "json", "-"], NCHWC);
    let json = run.json();
    assert_eq!((run.code, json["verdict"].as_str()), (Some(0), Some("proved")), "{json}");
    assert_eq!((json["schema"].as_str(), json["file"].as_str()), (Some("tilewright.check/1"), Some("<stdin>")));
    let names: Vec<&str> = rows(&json, "passes").iter().map(|pass| pass["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["lower", "apply_buffer_transforms", "flatten_buffer"]);
    for pass in rows(&json, "passes") {
        for row in pass["obligations"].as_array().unwrap() {
            assert_eq!(row["verdict"], "proved", "{row}");
        }
    }
    let buffer = &rows(&json, "buffers")[0];
    assert_eq!(buffer["logical_shape"], json!([2, 7, 9, 17]));
    assert_eq!(buffer["physical_shape"], json!([2, 5, 7, 9, 4]));
    assert_eq!(buffer["flat_shape"], json!([2 * 5 * 7 * 9 * 4]));
    let agree: Vec<_> = rows(&json, "engines").iter().filter(|row| row["status"] == "agrees").collect();
    assert!(agree.len() >= 3, "{json}");
    assert!(agree.iter().all(|row| row["compared"] == 2 * 7 * 9 * 17 && row["mismatches"] == 0));
    assert!(rows(&json, "engines").iter().any(|row| row["status"] == "not requested"));
}

#[test]
fn a_layout_that_collides_is_refuted_with_both_indices_and_stops_the_pipeline() {
    let run = tilewright(&["check", "--device", "none", "--format", "json", "examples/wrong_map.py"]);
    let json = run.json();
    assert_eq!((run.code, json["verdict"].as_str()), (Some(1), Some("refuted")));
    let apply = rows(&json, "passes").iter().find(|pass| pass["name"] == "apply_buffer_transforms").unwrap();
    let refuted = apply["obligations"].as_array().unwrap().iter().find(|row| row["verdict"] == "refuted").unwrap();
    let indices = refuted["counterexample"]["indices"].as_array().unwrap();
    let land = |index: &Value| 2 * index[0].as_i64().unwrap() + index[1].as_i64().unwrap();
    assert_eq!(refuted["obligation"], "injective");
    assert_ne!(indices[0], indices[1]);
    assert_eq!(land(&indices[0]), land(&indices[1]));
    let flatten = rows(&json, "passes").iter().find(|pass| pass["name"] == "flatten_buffer").unwrap();
    assert!(flatten["skipped"].as_str().unwrap().contains("apply_buffer_transforms is refuted"));
    let text = tilewright(&["check", "--device", "none", "examples/wrong_map.py"]);
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("counterexample: (0, 2) and (1, 0) both land on 2"), "{}", text.stdout);
}

#[test]
fn allow_unknown_never_allows_what_is_refuted() {
    let run = tilewright(&["check", "--device", "none", "--allow-unknown", "examples/wrong_map.py"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("--allow-unknown was given"), "{}", run.stdout);
}

#[test]
fn a_device_that_is_not_there_is_skipped_and_not_all_is_well() {
    let args = ["check", "--format", "json", "--device", "no such device anywhere", "-"];
    // No platform: whatever is named, that it is not there is a reason to skip.
    let run = |args: &[&str]| {
        let hidden = [("OCL_ICD_VENDORS", "/nonexistent"), ("OPENCL_VENDOR_PATH", "/nonexistent")];
        tilewright_with(args, &hidden, NCHWC)
    };
    let strict = run(&args);
    let json = strict.json();
    assert_eq!((strict.code, json["verdict"].as_str()), (Some(3), Some("skipped")), "{json}");
    let opencl = rows(&json, "engines").iter().find(|row| row["engine"] == "opencl").unwrap();
    assert_eq!(opencl["status"], "skipped");
    assert!(opencl["reason"].as_str().unwrap().contains("--device none"), "{opencl}");
    let allowed = run(&[&args[..], &["--allow-unknown"]].concat());
    assert_eq!(allowed.code, Some(0));
    assert_eq!((&allowed.json()["verdict"], &allowed.json()["allow_unknown"]), (&json!("skipped"), &json!(true)));
}

#[test]
fn several_files_are_one_document_a_line_and_the_worst_counts() {
    let files = ["examples/wrong_map.py", "no/such/file.py", "examples/two_d_separators.py"];
    let run = tilewright(&[&["check", "--device", "none", "--format", "json"], &files[..]].concat());
    assert_eq!(run.code, Some(2));
    let documents: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schemas: Vec<_> = documents.iter().map(|document| document["schema"].as_str().unwrap()).collect();
    assert_eq!(schemas, ["tilewright.check/1", "tilewright.error/1", "tilewright.check/1"]);
    assert_eq!(documents[2]["verdict"], "proved");
}

#[test]
fn a_program_that_reads_out_of_bounds_is_refuted() {
    let source = r#"
from tvm.script import tir as T

@T.prim_func
def shifted(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
    for i in T.serial(7):
        B[i] = A[i + 1]
"#;
    let run = tilewright_with_input(&["check", "--device", "none", "--format", "json", "-"], source);
    assert_eq!((run.code, run.json()["verdict"].as_str()), (Some(1), Some("refuted")), "{run:?}");
    let run = tilewright_with_input(&["run", "-"], source);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.starts_with("error[trap]"), "{}", run.stderr);
    assert!(run.stderr.contains("<stdin>:7"), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[test]
fn extents_are_given_by_name() {
    let source = NCHWC.replace("(2, 7, 9, 17)", "(te.var('n'), 7, 9, 17)");
    let json = |shape: &str| tilewright_with_input(&["run", "--format", "json", "--shape", shape, "-"], &source);
    let run = json("n=5");
    assert_eq!(run.code, Some(0), "{run:?}");
    let outputs = &run.json()["functions"][0]["outputs"];
    assert_eq!(outputs[0]["shape"], json!([5, 7, 9, 17]));
    for bad in ["m=5", "n=5,n=6"] {
        let run = json(bad);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("--shape"), "{run:?}");
    }
}

#[test]
fn every_thread_count_and_stage_gives_the_same_and_a_seed_decides() {
    let checksum = |more: &[&str]| {
        let run = tilewright_with_input(&[&["run", "--format", "json"], more, &["-"]].concat(), NCHWC);
        assert_eq!(run.code, Some(0), "{run:?}");
        run.json()["functions"][0]["outputs"][0]["checksum"].clone()
    };
    let reference = checksum(&["--threads", "1"]);
    assert_eq!(checksum(&["--threads", "2"]), reference);
    assert_eq!(checksum(&["--seed", "0", "--stage", "lower"]), reference);
    assert_ne!(checksum(&["--seed", "1"]), reference);
}

/// Every example that the demo shows, at its real size; kernels run where there is a device. The convolution is
/// ResNet-50's 3x3 layer on 1x56x56x64 with 64 filters.
#[test]
fn the_real_layer_and_every_other_example_end_as_they_should() {
    let devices = tilewright(&["devices", "--format", "json"]).json();
    let present = devices["devices"].as_array().is_some_and(|devices| !devices.is_empty());
    let required = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(present || !required, "continuous integration has no OpenCL device");
    let device: &[&str] = if present { &[] } else { &["--device", "none"] };
    let mut examples: Vec<_> = std::fs::read_dir("examples").unwrap().map(|entry| entry.unwrap().path()).collect();
    examples.sort();
    let mut layers = 0;
    for path in examples.iter().filter(|path| path.extension().is_some_and(|extension| extension == "py")) {
        let file = path.to_str().unwrap();
        let arguments = [&["check", "--format", "json"], device, &[file]].concat();
        let run = tilewright(&arguments);
        let (code, verdict) = if file.ends_with("wrong_map.py") { (1, "refuted") } else { (0, "proved") };
        let json = run.json();
        assert_eq!((run.code, json["verdict"].as_str()), (Some(code), Some(verdict)), "{file}");
        if file.ends_with("conv2d_resnet.py") {
            let agree: Vec<_> = rows(&json, "engines").iter().filter(|row| row["status"] == "agrees").collect();
            assert_eq!(agree.len(), if present { 5 } else { 4 }, "{file}");
            assert!(agree.iter().all(|row| row["compared"] == 56 * 56 * 64 && row["mismatches"] == 0), "{file}");
            layers += 1;
        }
    }
    assert_eq!(layers, 1);
}
