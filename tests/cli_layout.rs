//! `tilewright layout` gives the numbers of XLA's page, and refuses what is wrong with its place.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};
use serde_json::{Value, json};

fn layout(text: &str, more: &[&str]) -> (Option<i32>, Value) {
    let run = tilewright(&[&["layout", text, "--format", "json"], more].concat());
    (run.code, run.json())
}

#[test]
fn the_pages_example_has_the_printed_numbers() {
    let (code, json) = layout("F32[3,5]{1,0:T(2,2)}", &["--at", "2,3", "--at", "(0, 0)", "--table"]);
    assert_eq!((code, json["schema"].as_str()), (Some(0), Some("tilewright.layout/1")), "{json}");
    assert_eq!(json["text"], "f32[3,5]{1,0:T(2,2)}");
    assert_eq!(json["element_type"], "f32");
    assert_eq!((&json["shape"], &json["minor_to_major"]), (&json!([3, 5]), &json!([1, 0])));
    assert_eq!((&json["tiles"], &json["physical_shape"]), (&json!([[2, 2]]), &json!([2, 3, 2, 2])));
    assert_eq!((&json["elements"], &json["physical_elements"]), (&json!(15), &json!(24)));
    assert_eq!((&json["padding_elements"], &json["bytes"]), (&json!(9), &json!(96)));
    assert_eq!(json["at"][0], json!({"logical": [2, 3], "physical": [1, 1, 0, 1], "flat": 17, "byte": 68, "bit": 0}));
    assert_eq!(json["at"][1]["flat"], 0);
    assert_eq!(json["offsets"], json!([0, 1, 4, 5, 8, 2, 3, 6, 7, 10, 12, 13, 16, 17, 20]));
    let obligations: Vec<_> = json["verdicts"].as_array().unwrap().iter().map(|row| &row["obligation"]).collect();
    assert_eq!(obligations, ["tiling", "bounds", "injective", "tight", "overflow", "inverse", "padding"]);
    assert_eq!(json["index_map"], "lambda i0, i1: [i0 // 2 * 12 + i1 // 2 * 4 + i0 % 2 * 2 + i1 % 2]");
    assert_eq!(json["inverse"], "lambda p: [p // 12 * 2 + p // 2 % 2, p // 4 % 3 * 2 + p % 2]");
    assert_eq!(json["padding"], "lambda p: p // 12 * 2 + p // 2 % 2 >= 3 or p // 4 % 3 * 2 + p % 2 >= 5");
    assert!(json["verdicts"].as_array().unwrap().iter().all(|row| row["verdict"] == "proved"), "{json}");
}

#[test]
fn figure_2_and_combined_dimensions_are_laid_out() {
    let (code, json) = layout("f32[4,8]{1,0:T(2,4)(2,1)}", &["--table"]);
    assert_eq!((code, &json["padding_elements"]), (Some(0), &json!(0)), "{json}");
    assert_eq!(json["offsets"].as_array().unwrap()[..9], [0, 2, 4, 6, 8, 10, 12, 14, 1].map(|at| json!(at)));
    let (code, five) = layout("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", &["--table"]);
    assert_eq!(code, Some(0), "{}", five["verdicts"]);
    assert_eq!(five["tiles"], json!([["*", "*", 2, "*", 3]]));
    let (_, two) = layout("f32[112,110]{1,0:T(2,3)}", &["--table"]);
    assert_eq!((&five["physical_shape"], &five["offsets"]), (&two["physical_shape"], &two["offsets"]));
}

#[test]
fn tpu_layouts_of_ragged_arrays_are_proved() {
    for text in [
        "bf16[1000,1000]{1,0:T(8,128)(2,1)}",
        "bf16[100003,70001]{1,0:T(8,128)(2,1)}",
        "s8[7,1025,130]{1,2,0:T(8,128)(4,1)L(1024)}",
        "f32[]{:T(256)}",
        "f32[3,5]",
    ] {
        let (code, json) = layout(text, &[]);
        assert_eq!((code, &json["offsets"]), (Some(0), &Value::Null), "{json}");
    }
}

#[test]
fn dimensions_without_a_bound_are_answered_for_all_extents() {
    let (code, json) = layout("f32[?,?]{1,0:T(8,128)(2,1)}", &["--at", "11,300"]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["shape"], json!(["d0", "d1"]));
    assert_eq!(json["physical_shape"], json!(["(d0 + 7) // 8", "(d1 + 127) // 128", 4, 128, 2, 1]));
    assert_eq!(json["elements"], "d0 * d1");
    assert_eq!(json["physical_elements"], "(d0 + 7) // 8 * ((d1 + 127) // 128) * 1024");
    assert_eq!(json["bytes"], "(d0 + 7) // 8 * ((d1 + 127) // 128) * 4096");
    let rows = json["verdicts"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row["verdict"] == "proved"), "{json}");
    assert!(json["inverse"].is_string() && json["padding"].is_string(), "{json}");
    // The tile and the place in it are known; the position depends on the number of tiles in a row.
    assert_eq!(json["at"][0]["physical"], json!([1, 2, 1, 44, 1, 0]));
    assert_eq!(json["at"][0]["flat"], Value::Null);
    let (code, json) = layout("s4[?,5]{1,0:T(2,3)(2)L(7)E(4)}", &["--at", "11,4"]);
    assert_eq!((code, &json["bytes"]), (Some(0), &json!("(((d0 + 1) // 2 * 16 + 6) // 7 * 28 + 7) // 8")), "{json}");
    let (code, json) = layout("f32[?,?,?]{2,1,0:T(*,2,3)(2)L(7)}", &[]);
    assert_eq!(code, Some(0), "{json}");
    let run = tilewright(&["layout", "f32[?,5]", "--table"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("unbounded"), "{run:?}");
}

#[test]
fn packed_elements_are_found_by_bit() {
    let (code, json) = layout("s4[7]{0:E(4)}", &["--at", "5"]);
    assert_eq!((code, &json["bytes"]), (Some(0), &json!(4)));
    assert_eq!((&json["at"][0]["byte"], &json["at"][0]["bit"]), (&json!(2), &json!(4)));
    let run = tilewright(&["layout", "s8[7]{0:E(4)}"]);
    assert!(run.stderr.contains("warning[element-bits]"), "{run:?}");
}

#[test]
fn what_is_wrong_is_shown_with_its_place() {
    for (text, start, end) in [
        ("f32[3,5]{1,1}", 11, 12),
        ("f32[3,5]{1,0:T(2,-1)}", 17, 19),
        ("f32[3,5]{1,0:T(2,*)}", 17, 18),
        ("f32[3,5]{1,0:T(2,2}", 18, 19),
        ("f32[3,5]{1,0:S(1)T(2,2)}", 17, 18),
        ("f32[3,5]{1,0:T(4294967296,4294967296)}", 14, 37),
    ] {
        let run = tilewright(&["layout", text, "--format", "json"]);
        let json = run.json();
        assert_eq!((run.code, json["schema"].as_str()), (Some(2), Some("tilewright.error/1")), "{run:?}");
        assert_eq!((&json["error"]["start"], &json["error"]["end"]), (&json!(start), &json!(end)), "{json}");
        assert!(json["error"]["message"].is_string() && json["error"]["hint"].is_string(), "{json}");
        assert!(run.stderr.contains(text) && run.stderr.contains('^'), "{run:?}");
    }
}

#[test]
fn what_has_no_positions_is_bad_input() {
    for (text, at) in [
        ("token[]", None),
        ("(f32[3], f32[5])", None),
        ("f32[?]", Some("-1")),
        ("f32[3]{0:D(C)}", None),
        ("f32[3,5]", Some("3,0")),
        ("f32[3,5]", Some("0,-1")),
        ("f32[3,5]", Some("0")),
        ("f32[3,5]", Some("0,x")),
    ] {
        let at = at.map(|at| format!("--at={at}"));
        let args = [vec!["layout", text], at.as_deref().into_iter().collect()].concat();
        let run = tilewright(&args);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("error["), "{run:?}");
    }
    let run = tilewright(&["layout", "f32[1000000,1000000]", "--table"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("table-size"), "{run:?}");
}

#[test]
fn an_empty_array_is_never_proved() {
    assert!(matches!(layout("f32[3,0]", &["--table"]).0, Some(2 | 3)));
}

#[test]
fn a_table_of_a_million_elements_is_whole() {
    let (code, json) = layout("bf16[1000,1000]{1,0:T(8,128)(2,1)}", &["--table"]);
    assert_eq!((code, json["offsets"].as_array().unwrap().len()), (Some(0), 1_000_000));
}

#[test]
fn people_read_the_layout_and_its_table() {
    let run = tilewright_with_input(&["layout", "-", "--at", "2,3", "--table"], "F32[3,5]{1,0:T(2,2)}\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("[2, 3] -> [1, 1, 0, 1] -> 17 (byte 68)"), "{}", run.stdout);
    assert!(run.stdout.contains("\n  12 13 16 17 20\n"), "{}", run.stdout);
    assert!(run.stdout.ends_with("proved: 7 of 7 obligations proved\n"), "{}", run.stdout);
}

#[test]
fn a_batch_has_a_line_for_every_line() {
    let requests = concat!(
        r#"{"id": 7, "layout": "f32[3,5]{1,0:T(2,2)}", "table": true, "at": [[2, 3]]}"#,
        "\n",
        r#"{"layout": "f32[3,5]{1,1}", "id": "b"}"#,
        "\n{\n[]\n\n",
        r#"{"layout": "f32[3]", "tabel": true}"#,
        "\n",
        r#"{"layout": "f32[3]", "at": [[3]]}"#,
        "\n",
        r#"{"layout": "f32[3]", "at": [1]}"#,
        "\n",
        r#"{"layout": "f32[7]"}"#,
    );
    let run = tilewright_with_input(&["layout", "--batch", "-"], requests);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, lines.len()), (Some(2), 9), "{run:?}");
    assert_eq!((&lines[0]["id"], &lines[0]["at"][0]["flat"]), (&json!(7), &json!(17)));
    assert_eq!((&lines[0]["schema"], lines[0].get("error")), (&json!("tilewright.layout/1"), None));
    assert_eq!((&lines[1]["id"], &lines[1]["error"]["start"]), (&json!("b"), &json!(11)));
    for line in &lines[2..8] {
        assert!(line["error"]["message"].is_string() && line.get("schema").is_none(), "{line}");
    }
    assert_eq!((&lines[8]["elements"], lines[8].get("id")), (&json!(7), None));
    let fine = tilewright_with_input(&["layout", "--batch", "-"], r#"{"layout": "f32[3,0]"}"#);
    assert_eq!(fine.code, Some(0), "answered, whatever the verdicts: {fine:?}");
}

#[test]
fn an_array_of_forty_dimensions_is_no_hang() {
    let order: Vec<_> = (0..40).rev().map(|dimension: usize| dimension.to_string()).collect();
    let text = format!("s8[{}]{{{}}}", ["2"; 40].join(","), order.join(","));
    let (code, json) = layout(&text, &[]);
    assert_eq!((code, &json["physical_elements"]), (Some(0), &json!(1u64 << 40)), "{json}");
}

#[test]
fn a_message_does_not_repeat_a_word_of_any_length() {
    for text in [format!("f32[{}]", "9".repeat(100_000)), format!("{}[3]", "f".repeat(100_000))] {
        let (code, json) = layout(&text, &[]);
        let message = json["error"]["message"].as_str().unwrap();
        assert_eq!(code, Some(2));
        assert!((1000..3000).contains(&message.len()) && message.contains(" ... "), "{}", message.len());
        assert!(tilewright(&["layout", &text]).stderr.len() < 5000);
    }
}
