//! `tilewright map` gives the numbers of RFC 39, and shows what collides.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::tilewright;
use serde_json::{Value, json};

fn map(map: &str, shape: &str, more: &[&str]) -> (Option<i32>, Value) {
    let run = tilewright(&[&["map", map, "--shape", shape, "--format", "json"], more].concat());
    (run.code, run.json())
}

#[test]
fn rfc_39_nhwc_to_nchwc_has_the_printed_numbers() {
    let (code, json) =
        map("lambda n, h, w, c: [n, c//4, h, w, c%4]", "16,64,64,128", &["--at", "11,37,23,101", "--at", "0,0,0,0"]);
    assert_eq!((code, json["schema"].as_str()), (Some(0), Some("tilewright.map/1")));
    assert_eq!(json["physical_shape"], json!([16, 32, 64, 64, 4]));
    assert_eq!(json["flat_shape"], json!([16 * 32 * 64 * 64 * 4]));
    assert_eq!(json["at"][0]["logical"], json!([11, 37, 23, 101]));
    assert_eq!(json["at"][0]["physical"], json!([11, 25, 37, 23, 1]));
    let flat = 32 * 64 * 64 * 4 * 11 + 64 * 64 * 4 * 25 + 64 * 4 * 37 + 4 * 23 + 1;
    assert_eq!(json["at"][0]["flat"], json!([flat]));
    assert_eq!(json["at"][1]["flat"], json!([0]));
    for row in json["verdicts"].as_array().unwrap() {
        assert_eq!((row["verdict"].as_str(), &row["counterexample"]), (Some("proved"), &Value::Null), "{row}");
    }
    assert!(json["verdicts"].as_array().unwrap().len() >= 3);
}

#[test]
fn rfc_39_two_dimensional_packing_has_the_printed_numbers() {
    for separator in ["AXIS_SEPARATOR", "te.AXIS_SEPARATOR"] {
        let lambda = format!("lambda n, h, w, c: [n, c//4, h, {separator}, w, c%4]");
        let (code, json) = map(&lambda, "16,64,64,128", &["--at", "11,37,23,101"]);
        assert_eq!(code, Some(0));
        assert_eq!(json["axis_separators"], json!([3]));
        assert_eq!(json["flat_shape"], json!([16 * 32 * 64, 64 * 4]));
        assert_eq!(json["at"][0]["flat"], json!([32 * 64 * 11 + 64 * 25 + 37, 4 * 23 + 1]));
    }
}

#[test]
fn a_collision_is_shown_with_both_indices() {
    let (code, json) = map("lambda i, j: [2*i + j]", "3,4", &[]);
    assert_eq!(code, Some(1));
    let rows = json["verdicts"].as_array().unwrap();
    let injective = rows.iter().find(|row| row["obligation"] == "injective").unwrap();
    assert_eq!(injective["verdict"], "refuted");
    let indices = injective["counterexample"]["indices"].as_array().unwrap();
    assert_eq!(indices.len(), 2);
    let land = |index: &Value| 2 * index[0].as_i64().unwrap() + index[1].as_i64().unwrap();
    assert_ne!(indices[0], indices[1]);
    assert_eq!(land(&indices[0]), land(&indices[1]));
    let text = tilewright(&["map", "lambda i, j: [2*i + j]", "--shape", "3,4"]);
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("counterexample:"), "{}", text.stdout);
}

#[test]
fn symbolic_shapes_are_proved_and_named() {
    let (code, json) = map("lambda n, h, w, c: [n, c//4, h, w, c%4]", "n,64,64,c", &[]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["shape"], json!(["n", 64, 64, "c"]));
    assert_eq!(json["physical_shape"][2], json!(64));
    assert_eq!(json["physical_shape"][0], json!("n"));
}

#[test]
fn negative_indices_are_out_of_bounds() {
    let (code, json) = map("lambda i: [i - 2]", "5", &[]);
    assert_eq!(code, Some(1), "{json}");
    let rows = json["verdicts"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["obligation"] == "bounds" && row["verdict"] == "refuted"), "{json}");
}

#[test]
fn what_does_not_fit_is_bad_input() {
    for (lambda, shape, at) in [
        ("lambda i, j: [j, i]", "3", None),
        ("lambda i, j: [j, i", "3,4", None),
        ("lambda i, j: [k]", "3,4", None),
        ("i + j", "3,4", None),
        ("lambda i, i: [i]", "3,4", None),
        ("lambda i: [i / 2]", "4", None),
        ("lambda i: [AXIS_SEPARATOR, i]", "4", None),
        ("lambda i, j: [j, i]", "3,-4", None),
        ("lambda i, j: [j, i]", "", None),
        ("lambda i, j: [j, i]", "3,4", Some("1")),
        ("lambda i, j: [j, i]", "3,4", Some("3,0")),
        ("lambda i, j: [j, i]", "3,4", Some("0,-1")),
        ("lambda i, j: [j, i]", "3,4", Some("0,x")),
    ] {
        let shape = format!("--shape={shape}");
        let at = at.map(|at| format!("--at={at}"));
        let args = [vec!["map", lambda, &shape], at.as_deref().into_iter().collect()].concat();
        let run = tilewright(&args);
        assert_eq!(run.code, Some(2), "{lambda} {shape} {at:?}: {run:?}");
        assert!(run.stderr.contains("error"), "{run:?}");
        assert!(!run.stderr.contains("panicked"), "{run:?}");
    }
}

#[test]
fn an_empty_shape_is_never_proved() {
    let run = tilewright(&["map", "lambda i, j: [j, i]", "--shape", "3,0"]);
    assert!(matches!(run.code, Some(2 | 3)), "{run:?}");
}

#[test]
fn huge_shapes_do_not_overflow_silently() {
    let run = tilewright(&["map", "lambda i, j: [j, i]", "--shape", "4294967296,4294967296"]);
    assert!(matches!(run.code, Some(1..=3)), "{run:?}");
    assert!(!run.stdout.contains("\nproved:"), "{}", run.stdout);
}

#[test]
fn both_points_of_a_collision_have_names_of_their_own() {
    let (_, json) = map("lambda i, j: [2 * i + j]", "3,4", &[]);
    let refuted = json["verdicts"].as_array().unwrap().iter().find(|row| row["verdict"] == "refuted").unwrap();
    let values = &refuted["counterexample"]["values"];
    let point = |i: &str, j: &str| json!([values[i], values[j]]);
    assert_eq!(json!([point("i", "j"), point("i'", "j'")]), refuted["counterexample"]["indices"]);
}

#[test]
fn a_flat_shape_keeps_the_order_of_the_axes() {
    let (_, json) = map("lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "n,h,w,c", &[]);
    assert_eq!(json["flat_shape"], json!(["n * ((c + 3) // 4) * h * w * 4"]));
}

#[test]
fn a_fault_of_a_map_is_shown_in_its_text() {
    let run = tilewright(&["map", "lambda i: [i // 0]", "--shape", "4"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("division by zero") && run.stderr.contains("1 | lambda i: [i // 0]"), "{}", run.stderr);
}
