//! Steps that write their result where an operand lies: planned, proved, run by the executor and by the host in C, and refuted where a
//! given plan puts a result where it may not be.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "deploy/host.rs"]
#[allow(dead_code, reason = "each test file uses a part of it")]
mod host;

use std::fs;
use std::path::Path;

use common::{Run, tilewright};
use host::{Folder, Host, compiled, ramp};
use serde_json::{Value, json};
use tilewright::network::npy;

const TINY: &str = "examples/models/tiny.onnx";
/// The input of the model `TINY`.
const SHAPE: [u64; 4] = [1, 3, 13, 11];

/// The subjects of the obligations plan-in-place, each of which is proved.
fn in_place(report: &Value) -> Vec<String> {
    let rows = report["verdicts"].as_array().unwrap().iter().filter(|row| row["obligation"] == "plan-in-place");
    let subject = |row: &Value| {
        assert_eq!(row["verdict"], "proved", "{row}");
        row["subject"].as_str().unwrap().to_owned()
    };
    rows.map(subject).collect()
}

#[test]
fn activations_in_buffers_are_in_place_and_agree() {
    for more in [&[][..], &["--run"]] {
        let run = tilewright(&[&["plan", TINY, "--target", "opencl", "--format", "json"], more].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        let report = run.json();
        assert_eq!(in_place(&report), ["step 1 `n_active` writes `active` in place of `edges`"]);
        let tensor = |name: &str| report["tensors"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(tensor("active")["in_place_of"], "edges");
        assert_eq!(tensor("active")["offset"], tensor("edges")["offset"]);
        assert_eq!((&tensor("edges")["last"], &tensor("active")["first"]), (&json!(0), &json!(1)));
        let bytes = &report["report"]["bytes"];
        let number = |name: &str| bytes[name].as_u64().unwrap();
        assert!(number("planned") < number("compatible") && number("lower_bound") <= number("planned"), "{bytes}");
    }
    // In textures nothing is in place.
    let run = tilewright(&["plan", TINY, "--format", "json"]);
    assert_eq!((run.code, in_place(&run.json())), (Some(0), Vec::new()));
    // As TVM plans, nothing is either.
    let run = tilewright(&["plan", TINY, "--target", "opencl", "--planner", "compatible", "--format", "json"]);
    assert_eq!((run.code, in_place(&run.json())), (Some(0), Vec::new()));
}

/// The folder of `TINY` in buffers, with the input beside it.
fn tiny() -> (Folder, String) {
    let folder = compiled(&[TINY, "--target", "opencl", "--executor"]);
    let input = folder.file("in.npy");
    fs::write(&input, npy::write(&ramp(&SHAPE)).unwrap()).unwrap();
    (folder, input)
}

/// The bits of the elements in a file.
fn elements(file: &str) -> Vec<u32> {
    npy::read(&fs::read(file).unwrap()).unwrap().elements.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_host_and_the_executor_run_steps_in_place() {
    let (folder, input) = tiny();
    let source = |name: &str| fs::read_to_string(folder.in_folder(name)).unwrap();
    // Its pointers alias, those of the convolution do not.
    assert!(!source("relu_1.cl").contains("restrict") && source("conv_0.cl").contains("restrict"));
    let (given, host_output) = (format!("image={input}"), folder.file("host.npy"));
    let run = Host::build(&folder).run(&folder.path(), &[given.clone(), format!("probabilities={host_output}")]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let output = folder.file("executed.npy");
    let save = format!("probabilities={output}");
    let run = tilewright(&["plan", TINY, "--target", "opencl", "--run", "--input", &given, "--save", &save]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(elements(&host_output), elements(&output));
    // The plan of the folder is judged and run again.
    let [graph, kernels, weights] =
        ["graph.json", "kernels.py", "weights.npz"].map(|name| folder.in_folder(name).to_str().unwrap().to_owned());
    let given_plan = ["plan", &graph, "--planner", "given"];
    let more = ["--run", &kernels, "--input", &weights, "--input", &given, "--save", &save, "--format", "json"];
    let run = tilewright(&[&given_plan[..], &more].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(in_place(&run.json()).len(), 1);
    assert_eq!(elements(&host_output), elements(&output));
    // Without the functions nothing is known of the steps.
    let run = tilewright(&given_plan);
    assert!(run.code == Some(1) && run.stdout.contains("refuted  plan-disjoint"), "{run:?}");
}

const KERNELS: &str = "from tvm.script import tir as T

@T.prim_func
def double(a: T.Buffer((60,), \"float32\"), b: T.Buffer((60,), \"float32\")):
    for i in range(60):
        b[i] = a[i] * T.float32(2)

@T.prim_func
def reverse(a: T.Buffer((60,), \"float32\"), b: T.Buffer((60,), \"float32\")):
    for i in range(60):
        b[i] = a[59 - i]
";

/// A chain of steps, each a function of `KERNELS`, with every tensor but the first in one place of the plan.
fn chain(folder: &Path, functions: &[&str]) -> Run {
    let names: Vec<String> = (0..=functions.len()).map(|number| format!("t{number}")).collect();
    let tensors: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "shape": [60], "dtype": "float32"})).collect();
    let step = |(number, function): (usize, &&str)| json!({"name": format!("s{number}"), "function": function, "reads": [names[number]], "writes": [names[number + 1]]});
    let steps: Vec<Value> = functions.iter().enumerate().map(step).collect();
    let graph = json!({"schema": "tilewright.graph/1", "tensors": tensors, "steps": steps,
                       "inputs": [names[0]], "outputs": [names[functions.len()]]});
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(file("graph.json"), graph.to_string()).unwrap();
    fs::write(file("kernels.py"), KERNELS).unwrap();
    let run = tilewright(&["plan", &file("graph.json"), "-o", &file("planned.json")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut planned: Value = serde_json::from_str(&fs::read_to_string(file("planned.json")).unwrap()).unwrap();
    let attrs = &mut planned["attrs"];
    for list in ["storage_id", "storage_offset"] {
        let Some(values) = attrs[list].get_mut(1).and_then(Value::as_array_mut) else { continue };
        let first = values[1].clone();
        values.iter_mut().skip(1).for_each(|value| *value = first.clone());
    }
    fs::write(file("planned.json"), planned.to_string()).unwrap();
    tilewright(&["plan", &file("planned.json"), "--planner", "given", "--run", &file("kernels.py")])
}

#[test]
fn a_given_plan_is_refuted_where_a_step_cannot_be_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let run = chain(folder.path(), &["reverse", "double", "double", "double"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.matches("proved   plan-in-place").count(), 3, "{run:?}");
    assert!(run.stdout.contains(": agrees,"), "{run:?}");
    let run = chain(folder.path(), &["double", "reverse", "double", "double"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    for part in ["refuted  plan-in-place", "writes element 59 in iteration i = 59", "not run, for the plan is refuted"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

/// Sums of the first summands of 2000, which are too many to try one by one.
fn sum(start: &str, summands: u64) -> String {
    format!(
        "from tvm.script import tir as T\n\n@T.prim_func\ndef work(x: T.Buffer((2000,), \"float32\"), y: T.Buffer((60,), \"float32\")):\n    \
         {start}\n    for i in range(60):\n        for k in range({summands}):\n            y[i] = y[i] + x[k]\n"
    )
}

#[test]
fn a_step_that_reads_what_it_has_not_written_is_not_proved() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tensor = |name: &str, size: u64| json!({"name": name, "shape": [size], "dtype": "float32"});
    let graph = json!({"schema": "tilewright.graph/1", "tensors": [tensor("x", 2000), tensor("y", 60)],
                       "steps": [{"name": "work", "reads": ["x"], "writes": ["y"]}], "inputs": ["x"], "outputs": ["y"]});
    fs::write(file("graph.json"), graph.to_string()).unwrap();
    let run = |(start, summands): (&str, u64), command: &[&str]| {
        fs::write(file("kernels.py"), sum(start, summands)).unwrap();
        tilewright(command)
    };
    let (graph, kernels, out) = (file("graph.json"), file("kernels.py"), file("out"));
    let plan = ["plan", &graph, "--run", &kernels];
    let starts = "for i in range(60):\n        y[i] = T.float32(0)";
    let right = run((starts, 2000), &plan);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(right.stdout.contains("proved   defined"), "{right:?}");
    for (start, obligation, code) in [
        (("for i in range(59):\n        y[i] = T.float32(0)", 2000), "unknown  defined", 3),
        (("T.evaluate(0)", 2000), "unknown  defined", 3),
        (("for i in range(59):\n        y[i] = T.float32(0)", 20), "refuted  defined", 1),
    ] {
        let wrong = run(start, &plan);
        assert_eq!(wrong.code, Some(code), "{wrong:?}");
        assert!(wrong.stdout.contains(obligation), "{obligation}: {}", wrong.stdout);
        assert!(wrong.stdout.contains("step 0 `work` reads `y` as it writes it"), "{}", wrong.stdout);
        // Nothing is written for such a step, either.
        let wrong = run(start, &["compile", &graph, "--kernels", &kernels, "-o", &out]);
        assert_eq!((wrong.code, Path::new(&out).exists()), (Some(code), false), "{wrong:?}");
    }
}
