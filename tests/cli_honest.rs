//! `tilewright check` never says that all is well where something was not looked at: races, runs that are too long or too
//! large, assertions that nothing meets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::tilewright_with_input;
use serde_json::Value;

/// The report of a TVMScript function: exit code and JSON.
fn check(signature: &str, body: &str, more: &[&str]) -> (Option<i32>, Value) {
    let text = format!("from tvm.script import tir as T\n@T.prim_func\ndef main({signature}):\n    {body}\n");
    let args = ["check", "--device", "none", "--format", "json", "-"];
    let run = tilewright_with_input(&[&args[..], more].concat(), &text);
    (run.code, run.json())
}

fn race(json: &Value) -> Value {
    let rows = json["passes"][0]["obligations"].as_array().unwrap();
    rows.iter().find(|row| row["obligation"] == "race").cloned().unwrap_or(Value::Null)
}

const SMALL: &str = "A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")";
const SYMBOLIC: &str = "a: T.handle, b: T.handle";
const MATCHED: &str = "n = T.int32()
    A = T.match_buffer(a, (n, 4), \"float32\")
    B = T.match_buffer(b, (n, 4), \"float32\")
    ";

#[test]
fn two_parallel_iterations_that_write_one_element_are_refuted() {
    let bodies = [
        "for i in T.parallel(8):\n        B[i // 2] = A[i]",
        "for i in T.parallel(7):\n        B[i + 1] = B[i] + A[i]",
        "for i in T.thread_binding(8, thread=\"blockIdx.x\"):\n        B[0] = A[i]",
        "for i in T.vectorized(4):\n        B[i % 3] = A[i]",
    ];
    for body in bodies {
        let (code, json) = check(SMALL, body, &[]);
        assert_eq!((code, json["verdict"].as_str()), (Some(1), Some("refuted")), "{body}: {json}");
        assert_eq!(race(&json)["verdict"], "refuted", "{json}");
        let text = race(&json)["counterexample"]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("touch") && text.contains("of `B` in iterations"), "{text}");
    }
}

#[test]
fn parallel_iterations_with_elements_of_their_own_are_proved() {
    for body in [
        "for i in T.parallel(8):\n        B[i] = A[i]",
        // No map is injective here, and all iterations are run.
        "for i in T.parallel(8):\n        if i < 4:\n            B[i % 4] = A[i]",
    ] {
        let (code, json) = check(SMALL, body, &[]);
        assert_eq!((code, race(&json)["verdict"].as_str()), (Some(0), Some("proved")), "{body}: {json}");
    }
    let body =
        format!("{MATCHED}for i in T.parallel(n):\n        for j in range(4):\n            B[i, j] = A[i, 3 - j]");
    let (code, json) = check(SYMBOLIC, &body, &[]);
    assert_eq!((code, race(&json)["verdict"].as_str()), (Some(0), Some("proved")), "{json}");
}

#[test]
fn a_race_that_was_not_decided_is_unknown() {
    let big = "A: T.Buffer((3000000,), \"float32\"), B: T.Buffer((8,), \"float32\")";
    // Values in memory decide, and those of a run write nothing.
    let many = "for i in T.parallel(3000000):\n        if A[i] > T.float32(1e30):\n            B[i % 8] = A[i]";
    let symbolic = format!(
        "{MATCHED}for i in T.parallel(n):\n        if A[i, 0] > T.float32(1e30):\n            B[0, 0] = A[i, 3]"
    );
    let why = "touch the same element";
    for (signature, body) in [(big, many), (SYMBOLIC, &symbolic)] {
        let (code, json) = check(signature, body, &[]);
        assert_eq!((code, race(&json)["verdict"].as_str()), (Some(3), Some("unknown")), "{json}");
        assert!(race(&json)["reason"].as_str().unwrap().contains(why), "{json}");
    }
}

#[test]
fn a_serial_function_is_not_asked_for_races() {
    let (code, json) = check(SMALL, "for i in range(8):\n        B[i // 2] = A[i]", &[]);
    assert_eq!((code, race(&json)), (Some(0), Value::Null), "{json}");
}

#[test]
fn extents_are_chosen_as_the_program_asserts_them() {
    let body = format!("{MATCHED}assert n % 6 == 0, \"whole\"\n    for i in range(n):\n        B[i, 0] = A[i, 1]");
    let (code, json) = check(SYMBOLIC, &body, &[]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["functions"][0]["shapes"]["n"].as_i64().unwrap() % 6, 0);
    let (code, json) = check(SYMBOLIC, &body, &["--shape", "n=7"]);
    assert_eq!((code, json["verdict"].as_str()), (Some(1), Some("mismatch")), "{json}");
}

#[test]
fn assertions_that_nothing_meets_are_vacuous_and_no_mismatch() {
    let body = format!("{MATCHED}assert n < 0, \"never\"\n    for i in range(n):\n        B[i, 0] = A[i, 1]");
    let (code, json) = check(SYMBOLIC, &body, &[]);
    assert_eq!((code, json["verdict"].as_str()), (Some(3), Some("vacuous")), "{json}");
    assert!(json["engines"][0]["reason"].as_str().unwrap().contains("no extents were found"), "{json}");
    assert_eq!(json["functions"][0]["blame"], Value::Null);
}

#[test]
fn what_is_too_long_or_too_large_to_run_is_skipped_after_its_proof() {
    let level = |level: usize| format!("{:level$}for i{level} in range(7):\n    ", "");
    let nest: String = (0..40).map(level).collect();
    let long = format!("{nest}{:40}B[0] = A[1]", "");
    let large = "A: T.Buffer((2147483647, 2147483647), \"float32\")";
    for (signature, body, why) in
        [(SMALL, long.as_str(), "smaller extents can be run"), (large, "A[3, 5] = T.float32(1)", "GiB are available")]
    {
        let (code, json) = check(signature, body, &[]);
        assert_eq!((code, json["verdict"].as_str()), (Some(3), Some("skipped")), "{json}");
        assert!(json["engines"][0]["reason"].as_str().unwrap().contains(why), "{json}");
    }
}

#[test]
fn a_step_without_obligations_is_not_called_proved() {
    let text = "from tvm.script import tir as T\n@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\")):\n    pass\n";
    let run = tilewright_with_input(&["check", "--device", "none", "-"], text);
    assert_eq!(run.code, Some(3));
    let input = run.stdout.lines().find(|line| line.trim_start().starts_with("input ")).unwrap();
    assert!(input.contains(" - ") && !input.contains("proved"), "{input}");
    assert!(!run.stdout.contains("went wrong"), "{}", run.stdout);
}

#[test]
fn memory_that_is_not_what_the_program_asks_for_is_said() {
    let run = common::tilewright(&["check", "examples/depthwise_texture.py"]);
    assert_eq!(run.code, Some(0));
    let note = "note: `conv_local` is in scope `local` and is held in ordinary global memory";
    assert!(run.stdout.contains(note), "{}", run.stdout);
    // A texture is a texture.
    let run = common::tilewright(&["check", "examples/addone.py"]);
    assert_eq!(run.code, Some(0));
    assert!(!run.stdout.contains("ordinary global memory"), "{}", run.stdout);
}

#[test]
fn run_looks_for_races_obeys_assertions_and_does_not_run_for_ever() {
    let run = |signature: &str, body: &str| {
        let text = format!("from tvm.script import tir as T\n@T.prim_func\ndef main({signature}):\n    {body}\n");
        tilewright_with_input(&["run", "--format", "json", "-"], &text)
    };
    let race = run(SMALL, "for i in T.parallel(8):\n        B[i // 2] = A[i]");
    assert!(race.code == Some(1) && race.stderr.contains("race on B[0]"), "{race:?}");
    let fine = run(SMALL, "for i in T.parallel(8):\n        B[7 - i] = A[i]");
    assert_eq!((fine.code, fine.json()["functions"][0]["races"].as_str()), (Some(0), Some("none")), "{fine:?}");
    let many = "for i in T.parallel(2000000):\n        if i < 8:\n            B[i] = A[i]";
    assert_eq!(run(SMALL, many).json()["functions"][0]["races"], "not_looked_for");
    let whole = format!("{MATCHED}assert n % 6 == 0, \"whole\"\n    for i in range(n):\n        B[i, 0] = A[i, 1]");
    assert_eq!(run(SYMBOLIC, &whole).code, Some(0));
    let long = "for i, j in T.grid(3000000000, 7):\n        B[j] = A[j]";
    let long = run(SMALL, long);
    assert!(long.code == Some(2) && long.stderr.contains("too-long"), "{long:?}");
}
