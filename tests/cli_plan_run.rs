//! `tilewright plan --run`: the kernels of a planned graph are proved, run and compared; what is wrong is no success.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Run, command, tilewright};
use serde_json::Value;

const GRAPH: &str = "examples/graphs/block.json";
const KERNELS: &str = "examples/graphs/block.py";

/// Runs the example graph with other kernels: one text of the example replaced by another.
fn changed(from: &str, to: &str, more: &[&str]) -> Run {
    let kernels = std::fs::read_to_string(format!("{}/{KERNELS}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(kernels.contains(from), "{from}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernels.py");
    std::fs::write(&file, kernels.replacen(from, to, 1)).unwrap();
    tilewright(&[&["plan", GRAPH, "--run", file.to_str().unwrap(), "--format", "json"], more].concat())
}

#[test]
fn every_step_is_compared_and_the_report_says_so() {
    let run = tilewright(&["plan", GRAPH, "--run", KERNELS, "--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let json = run.json();
    assert_eq!(json["schema"], "tilewright.plan/1");
    let functions = json["run"]["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 8);
    assert!(functions.iter().all(|row| row["verdict"] == "proved" && !row["passes"].as_array().unwrap().is_empty()));
    let device = &json["run"]["devices"][0];
    assert_eq!((&device["status"], &device["reason"]), (&"agrees".into(), &Value::Null));
    assert!(device["pool_bytes"].as_u64().unwrap() > 0);
    let rows = |list: &Value| -> Vec<(String, u64, u64)> {
        let row = |row: &Value| {
            let number = |name: &str| row[name].as_u64().unwrap();
            (row["tensor"].as_str().unwrap().to_owned(), number("compared"), number("mismatches"))
        };
        list.as_array().unwrap().iter().map(row).collect()
    };
    let steps: Vec<_> = device["steps"].as_array().unwrap().iter().flat_map(|step| rows(&step["compared"])).collect();
    let wanted = [
        ("packed", 756),
        ("weight", 108),
        ("conv", 240),
        ("rectified", 240),
        ("sum", 240),
        ("result", 200),
        ("means", 10),
        ("scores", 10),
    ];
    assert_eq!(steps, wanted.map(|(name, compared)| (name.to_owned(), compared, 0)));
    let end = [("image", 630), ("kernel", 90), ("scores", 10)];
    assert_eq!(rows(&device["end"]), end.map(|(name, compared)| (name.to_owned(), compared, 0)));
}

#[test]
fn the_text_has_a_line_for_each_tensor_and_the_device() {
    let run = tilewright(&["plan", GRAPH, "--run", KERNELS, "--seed", "3"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for wanted in ["kernels of examples/graphs/block.py", "  depthwise    conv ", "  at the end   scores ", ": agrees,"]
    {
        assert!(run.stdout.contains(wanted), "{wanted}: {}", run.stdout);
    }
    assert!(run.stdout.ends_with("1 of 1 device runs agree (seed 3)\n"), "{}", run.stdout);
}

#[test]
fn a_kernel_that_is_refuted_is_not_run_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    // One row past the end of the image.
    let run = changed("image[0, h, w, co * 4 + c]", "image[0, h + 1, w, co * 4 + c]", &["-o", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let device = &run.json()["run"]["devices"][0];
    assert_eq!((&device["status"], &device["reason"]), (&"skipped".into(), &"not run, for `pack` is refuted".into()));
    assert!(!out.exists());
}

#[test]
fn a_plan_that_is_refuted_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let out = out.to_str().unwrap();
    assert_eq!(tilewright(&["plan", GRAPH, "-o", out]).code, Some(0));
    let given = ["plan", out, "--planner", "given", "--run", KERNELS, "--format", "json"];
    let run = tilewright(&given);
    assert_eq!((run.code, &run.json()["run"]["devices"][0]["status"]), (Some(0), &"agrees".into()), "{run:?}");
    // All offsets become 0, so that buffers in one pool lie on each other.
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    for offset in json["attrs"]["storage_offset"][1].as_array_mut().unwrap().iter_mut().filter(|one| one.is_u64()) {
        *offset = 0.into();
    }
    std::fs::write(out, json.to_string()).unwrap();
    let run = tilewright(&given);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.json()["run"]["devices"][0]["reason"], "not run, for the plan is refuted");
}

#[test]
fn without_a_device_it_is_skipped_unless_none_was_asked_for() {
    let arguments = ["plan", GRAPH, "--run", KERNELS, "--format", "json"];
    let run: Run = command(&arguments).env("OCL_ICD_VENDORS", "/nowhere").output().unwrap().into();
    let device = &run.json()["run"]["devices"][0];
    assert_eq!((run.code, &device["status"]), (Some(3), &"skipped".into()), "{run:?}");
    assert!(device["reason"].as_str().unwrap().contains("--device none"), "{device}");
    let run = tilewright(&[&arguments[..], &["--device", "none"]].concat());
    assert_eq!((run.code, &run.json()["run"]["devices"][0]["status"]), (Some(0), &"not requested".into()), "{run:?}");
}

#[test]
fn functions_that_are_not_there_or_do_not_fit_are_bad_input() {
    let run = changed("def relu(", "def gelu(", &[]);
    assert_eq!((run.code, &run.json()["diagnostics"][0]["code"]), (Some(2), &"graph-function".into()), "{run:?}");
    let run = changed("means: T.Buffer((10,)", "means: T.Buffer((11,)", &["--device", "none"]);
    assert_eq!((run.code, &run.json()["diagnostics"][0]["code"]), (Some(2), &"graph-parameters".into()), "{run:?}");
    let run = tilewright(&["plan", GRAPH, "--run", "no_such_file.py"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

/// The rows of the obligation *defined* that are refuted.
fn left_out(run: &Run) -> Vec<String> {
    let json = run.json();
    let rows = json["verdicts"].as_array().unwrap().iter().filter(|row| row["obligation"] == "defined");
    let rows = rows.filter(|row| row["verdict"] == "refuted");
    rows.map(|row| format!("{}: {}", row["subject"].as_str().unwrap(), row["counterexample"]["text"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_step_that_leaves_out_what_is_read_is_refuted_and_not_run() {
    let scores = "scores[k] = means[k] - means[9 - k]";
    let run = changed(scores, &format!("if k < 9:\n            {scores}"), &["--device", "none"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let text = "step 7 `shift` writes all that is read of `scores`: `shift` writes no element 9 of `scores`, and the caller takes it";
    assert_eq!(left_out(&run), [text]);
    // The last rows of a texture, which the next step reads.
    let from = "for h in T.thread_binding(4, thread=\"blockIdx.x\"):\n            for w in T.thread_binding(5, thread=\"threadIdx.x\"):\n                for c in T.vectorized(4):\n                    rectified";
    let run = changed(from, &from.replace("binding(4", "binding(3"), &["--device", "none"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let found = left_out(&run);
    assert!(
        found.len() == 1 && found[0].starts_with("step 3 `relu` writes all that is read of `rectified`"),
        "{found:?}"
    );
    assert!(found[0].contains("and step 4 `add` reads it"), "{found:?}");
    // The folder of a deployed network is not written either.
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let kernels = std::fs::read_to_string(format!("{}/{KERNELS}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    std::fs::write(file("kernels.py"), kernels.replace(scores, &format!("if k < 9:\n            {scores}"))).unwrap();
    let run = tilewright(&["compile", GRAPH, "--kernels", &file("kernels.py"), "-o", &file("out")]);
    assert!(run.code == Some(1) && run.stderr.contains("nothing was written"), "{run:?}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn progress_is_drawn_on_a_terminal_and_nowhere_else() {
    let args = ["plan", "examples/models/tiny.onnx", "--run", "--device", "none"];
    let run = tilewright(&args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    // `script` of util-linux gives the program a terminal.
    let line = format!("{} {}", env!("CARGO_BIN_EXE_tilewright"), args.join(" "));
    let mut on_terminal = std::process::Command::new("script");
    on_terminal.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = on_terminal.stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for part in ["proving conv_1", "/8 ", "running and comparing"] {
        assert!(text.contains(part), "`{part}` is not drawn: {text}");
    }
}
