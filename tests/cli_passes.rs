//! `tilewright opt`, `compile` and `validate`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::{tilewright, tilewright_with_input};

const EXAMPLE: &str = "examples/nhwc_to_nchwc.tvm.py";
const PIPELINE: &str = "apply_buffer_transforms,flatten_buffer,simplify";

#[test]
fn opt_lists_runs_and_refuses() {
    let list = tilewright(&["opt", "--list"]);
    for pass in PIPELINE.split(',') {
        assert!(list.stdout.contains(pass), "{}", list.stdout);
    }
    let after = tilewright(&["opt", "-p", PIPELINE, EXAMPLE]);
    assert_eq!(after.code, Some(0), "{after:?}");
    assert!(!after.stdout.contains("layout_transform_map"), "{}", after.stdout);
    let again = tilewright_with_input(&["opt", "-p", PIPELINE, "-"], &after.stdout);
    assert_eq!(again.stdout, after.stdout, "a second run changes nothing");
    let unknown = tilewright(&["opt", "-p", "flaten_buffer", EXAMPLE]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("flatten_buffer"), "{}", unknown.stderr);
}

#[test]
fn compile_writes_all_of_it_or_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    let out = path("out");
    let run = tilewright(&["compile", EXAMPLE, "-o", &out]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for (file, said) in [
        ("bias_relu.cl", "kernel void"),
        ("bias_relu.json", "tilewright.kernels/1"),
        ("bias_relu.0-input.py", "layout_transform_map"),
        ("bias_relu.2-flatten_buffer.py", "def bias_relu"),
        ("report.json", "tilewright.check/1"),
    ] {
        let text = fs::read_to_string(format!("{out}/{file}")).unwrap();
        assert!(text.contains(said), "{file}: {text}");
        assert!(run.stdout.contains(&format!("{out}/{file}\n")), "{}", run.stdout);
    }
    let again = tilewright(&["compile", EXAMPLE, "-o", &out]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
    let wrong = path("wrong");
    let refused = tilewright(&["compile", "examples/wrong_map.py", "-o", &wrong]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("nothing was written"), "{}", refused.stderr);
    assert!(!fs::exists(&wrong).unwrap());
    assert_eq!(tilewright(&["compile", EXAMPLE, "-o", "/proc/no/such/place"]).code, Some(2));
}

fn before_and_after(after: &str) -> (tempfile::TempDir, String, String) {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    let (before_path, after_path) = (path("before.py"), path("after.py"));
    let head = "from tvm.script import tir as T\n\n@T.prim_func\n";
    let before = r#"def f(A: T.Buffer((3, 7), "float32"), B: T.Buffer((3, 7), "float32")):
    for i, j in T.grid(3, 7):
        B[i, j] = A[i, j] * T.float32(2)
"#;
    fs::write(&before_path, format!("{head}{before}")).unwrap();
    fs::write(&after_path, format!("{head}{after}")).unwrap();
    (root, before_path, after_path)
}

#[test]
fn validate_follows_given_maps() {
    let (_root, before, after) = before_and_after(
        r#"def f(A: T.Buffer((7, 3), "float32"), B: T.Buffer((3, 7), "float32")):
    for i, j in T.grid(3, 7):
        B[i, j] = A[j, i] * T.float32(2)
"#,
    );
    let run = tilewright(&["validate", &before, &after, "--map", "A: lambda i, j: [j, i]"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let json = tilewright(&["validate", &before, &after, "--map", "A: lambda i, j: [j, i]", "--format=json"]).json();
    assert_eq!((json["schema"].as_str(), json["verdict"].as_str()), (Some("tilewright.validate/1"), Some("proved")));
    assert_eq!(tilewright(&["validate", &before, &after, "--map", "C: lambda i, j: [j, i]"]).code, Some(2));
    assert_eq!(tilewright(&["validate", &before, &after, "--map", "lambda i, j: [j, i]"]).code, Some(2));
}

#[test]
fn validate_infers_flattening_and_refutes_a_wrong_stride() {
    let flat = |stride: u32| {
        format!(
            r#"def f(A: T.Buffer((21,), "float32"), B: T.Buffer((21,), "float32")):
    for i, j in T.grid(3, 7):
        B[i * 7 + j] = A[i * {stride} + j] * T.float32(2)
"#
        )
    };
    let (_root, before, after) = before_and_after(&flat(7));
    let run = tilewright(&["validate", &before, &after]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let (_root, before, after) = before_and_after(&flat(6));
    let run = tilewright(&["validate", &before, &after]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("counterexample"), "{}", run.stdout);
}

#[test]
fn validate_infers_how_a_texture_was_lowered() {
    let root = tempfile::tempdir().unwrap();
    let program = root.path().join("program.py");
    let head = "from tvm.script import tir as T\n\n@T.prim_func\n";
    let text = r#"def f(A: T.Buffer((2, 3, 5, 4), "float32"), B: T.Buffer((2, 3, 5, 4), "float32")):
    C = T.alloc_buffer((2, 3, 5, 4), "float32", scope="texture")
    for i, j, k, l in T.grid(2, 3, 5, 4):
        C[i, j, k, l] = A[i, j, k, l]
    for i, j, k, l in T.grid(2, 3, 5, 4):
        B[i, j, k, l] = C[i, j, k, l]
"#;
    fs::write(&program, format!("{head}{text}")).unwrap();
    for passes in ["vectorize,lower_texture", "flatten_buffer"] {
        let run = tilewright(&["opt", "-p", passes, program.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let after = root.path().join("after.py");
        let validate = || tilewright(&["validate", program.to_str().unwrap(), after.to_str().unwrap()]);
        fs::write(&after, &run.stdout).unwrap();
        assert_eq!(validate().code, Some(0), "{passes}: {:?}", validate());
        for (right, wrong) in [("row=i * 3", "row=i * 2"), ("column=k", "column=4 - k"), ("i * 60", "i * 59")] {
            if run.stdout.contains(right) {
                fs::write(&after, run.stdout.replacen(right, wrong, 1)).unwrap();
                assert_eq!(validate().code, Some(1), "{passes}, {wrong}: {:?}", validate());
            }
        }
    }
}

#[test]
fn symbolic_shapes_and_indices_read_as_people_write_them() {
    let run =
        tilewright(&["opt", "-p", "apply_buffer_transforms,flatten_buffer", "examples/nhwc_to_nchw4c_symbolic.py"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.contains("T.decl_buffer((n * ((c + 3) // 4) * h * w * 4,)"), "{}", run.stdout);
    assert!(
        run.stdout.contains("[(((i * ((c + 3) // 4) + k_outer) * h + y) * w + x) * 4 + k_inner]"),
        "{}",
        run.stdout
    );
}
