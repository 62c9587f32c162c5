//! The examples that the RFCs print, stage by stage, with their numbers, through `tilewright opt` and `tilewright map`.
//!
//! The numbers are written as the RFCs write them, unsimplified; the program prints what they come to. RFC 39 counts a
//! separator from the last axis of its group (`[2]`), TVM's releases and this project by the axes before it (`[3]`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};

/// A function that reads `x` at one index and writes it at another, as RFC 39's "Examples" do.
fn program(shape: &str, attrs: &str, load: &str, store: &str) -> String {
    format!(
        r#"
from tvm.script import tir as T

@T.prim_func
def main(x: T.Buffer({shape}), y: T.Buffer((1,), "float32")):
    {attrs}
    y[0] = x[{load}]
    x[{store}] = T.float32(7)
"#
    )
}

fn opt(source: &str, passes: &str) -> String {
    let run = tilewright_with_input(&["opt", "-p", passes, "-"], source);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // What is printed is a program again, and the passes have nothing left to do on it.
    let again = tilewright_with_input(&["opt", "-p", passes, "-"], &run.stdout);
    assert_eq!(again.stdout, run.stdout);
    run.stdout
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

const FLATTEN: &str = "apply_buffer_transforms,flatten_buffer,simplify";

#[test]
fn without_a_layout_a_matrix_is_flattened_row_major() {
    let source = program("(64, 128), \"float32\"", "pass", "10, 15", "20, 23");
    let text = opt(&source, FLATTEN);
    let (load, store) = (10 * 128 + 15, 20 * 128 + 23);
    contains(
        &text,
        &[&format!("x_flattened[{load}]"), &format!("x_flattened[{store}] = T.float32(7"), "T.Buffer((64, 128)"],
    );
}

#[test]
fn a_transposed_matrix_is_stored_column_by_column() {
    let attrs = r#"T.func_attr({"layout_transform_map": {x: [lambda i, j: [j, i]]}})"#;
    let source = program("(64, 128), \"float32\"", attrs, "10, 15", "20, 23");
    let applied = opt(&source, "apply_buffer_transforms");
    contains(&applied, &["x: T.Buffer((128, 64)", "x[15, 10]", "x[23, 20] = "]);
    assert!(!applied.contains("layout_transform_map"));
    let text = opt(&source, FLATTEN);
    let (load, store) = (15 * 64 + 10, 23 * 64 + 20);
    contains(&text, &[&format!("x_flattened[{load}]"), &format!("x_flattened[{store}] = ")]);
}

#[test]
fn nhwc_becomes_nchwc_and_flat_memory() {
    let attrs = r#"T.func_attr({"layout_transform_map": {x: [lambda n, h, w, c: [n, c // 4, h, w, c % 4]]}})"#;
    let source = program("(16, 64, 64, 128), \"float32\"", attrs, "11, 37, 23, 101", "11, 37, 23, 101");
    let applied = opt(&source, "apply_buffer_transforms");
    contains(&applied, &["x: T.Buffer((16, 32, 64, 64, 4)", "x[11, 25, 37, 23, 1]"]);
    let text = opt(&source, FLATTEN);
    let index = (128 / 4) * 64 * 64 * 4 * 11 + 64 * 64 * 4 * (101 / 4) + 64 * 4 * 37 + 4 * 23 + 101 % 4;
    let size = 16 * (128 / 4) * 64 * 64 * 4;
    contains(&text, &[&format!("x_flattened[{index}]"), &format!("({size},)")]);
}

#[test]
fn nhwc_becomes_nchwc_in_two_axes() {
    // RFC 39 writes axis_separators=[2], and [0] once flattened.
    let attrs = r#"T.func_attr({"layout_transform_map": {x: [lambda n, h, w, c: [n, c // 4, h, w, c % 4]]}})"#;
    let shape = "(16, 64, 64, 128), \"float32\", axis_separators=[3]";
    let source = program(shape, attrs, "11, 37, 23, 101", "11, 37, 23, 101");
    let applied = opt(&source, "apply_buffer_transforms");
    contains(&applied, &["x: T.Buffer((16, 32, 64, 64, 4)", "axis_separators=[3]", "x[11, 25, 37, 23, 1]"]);
    let text = opt(&source, FLATTEN);
    let (row, column) = ((128 / 4) * 64 * 11 + 64 * (101 / 4) + 37, 4 * 23 + 101 % 4);
    let (rows, columns) = (16 * (128 / 4) * 64, 64 * 4);
    contains(
        &text,
        &[&format!("x_flattened[{row}, {column}]"), &format!("({rows}, {columns})"), "axis_separators=[1]"],
    );
}

#[test]
fn the_map_command_says_the_same() {
    let map = "lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]";
    let run = tilewright(&["map", map, "--shape", "16,64,64,128", "--at", "11,37,23,101", "--format", "json"]);
    let json = run.json();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(json["physical_shape"], serde_json::json!([16, 32, 64, 64, 4]));
    assert_eq!(json["axis_separators"], serde_json::json!([3]));
    assert_eq!(json["flat_shape"], serde_json::json!([16 * 32 * 64, 64 * 4]));
    let at = &json["at"][0];
    assert_eq!(at["logical"], serde_json::json!([11, 37, 23, 101]));
    assert_eq!(at["physical"], serde_json::json!([11, 25, 37, 23, 1]));
    assert_eq!(at["flat"], serde_json::json!([32 * 64 * 11 + 64 * 25 + 37, 4 * 23 + 1]));
}

#[test]
fn separators_cut_a_matrix_of_four_axes_as_the_guide_says() {
    // RFC 39, "Guide-level explanation": (M*N*P*Q,), (M*N, P*Q), (M, N*P, Q).
    let (m, n, p, q) = (2, 7, 9, 17);
    let cases = [
        ("[m, n, p, q]", vec![m * n * p * q]),
        ("[m, n, AXIS_SEPARATOR, p, q]", vec![m * n, p * q]),
        ("[m, AXIS_SEPARATOR, n, p, AXIS_SEPARATOR, q]", vec![m, n * p, q]),
    ];
    for (outputs, flat) in cases {
        let map = format!("lambda m, n, p, q: {outputs}");
        let json = tilewright(&["map", &map, "--shape", "2,7,9,17", "--format", "json"]).json();
        assert_eq!(json["flat_shape"], serde_json::json!(flat), "{map}");
    }
}

#[test]
fn the_flattened_alias_of_rfc_63_is_declared_and_the_parameter_stays() {
    let source = r#"
from tvm.script import tir as T

@T.prim_func
def fn(X: T.Buffer([2, 3], "float32")):
    for i, j in T.grid(2, 3):
        X[i, j] = T.float32(1)
"#;
    let text = opt(source, FLATTEN);
    contains(
        &text,
        &["X: T.Buffer((2, 3), \"float32\")", "X_flattened = ", "(6,)", "data=X.data", "X_flattened[i * 3 + j]"],
    );
}
