//! `tilewright map` gives the numbers of RFC 39, and shows what collides.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};
use serde_json::{Value, json};
use tilewright_ir::{Bindings, Expr};
use tilewright_script::{Symbols, read_index_map, read_predicate};

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

fn row<'a>(json: &'a Value, obligation: &str) -> &'a Value {
    json["verdicts"].as_array().unwrap().iter().find(|row| row["obligation"] == obligation).unwrap()
}

const PITCHED: &str = "lambda i, j: [i*17 + j]";

#[test]
fn a_printed_inverse_was_proved_and_leads_back() {
    for (lambda, shape) in [
        ("lambda n, h, w, c: [n, c//4, h, w, c%4]", [2, 3, 5, 7]),
        ("lambda a, b, c, d: [d, 4 - c, (b + 2) % 3, a]", [2, 3, 5, 7]),
        ("lambda a, b, c, d: [((a*3 + b)*5 + c)*9 + d]", [2, 3, 5, 7]),
    ] {
        let text = shape.map(|extent| extent.to_string()).join(",");
        let (code, json) = map(lambda, &text, &[]);
        assert_eq!(code, Some(0), "{json}");
        let extents = shape.map(Expr::int);
        let forward = read_index_map(lambda, Some(&extents), &mut Symbols::default()).unwrap();
        let physical: Vec<Expr> = json["physical_shape"]
            .as_array()
            .unwrap()
            .iter()
            .map(|extent| Expr::int(extent.as_i64().unwrap()))
            .collect();
        let mut symbols = Symbols::default();
        let back = read_index_map(json["inverse"].as_str().unwrap(), Some(&physical), &mut symbols).unwrap();
        let (vars, padding) = read_predicate(json["padding"].as_str().unwrap(), &physical, &mut symbols).unwrap();
        assert!(symbols.vars().is_empty(), "only parameters: {json}");
        let mut reached = 0;
        for point in 0..shape.iter().product::<i64>() {
            let mut rest = i128::from(point);
            let mut index = [0i128; 4];
            for (at, extent) in index.iter_mut().zip(shape).rev() {
                (*at, rest) = (rest % i128::from(extent), rest / i128::from(extent));
            }
            let image = forward.eval(&index, &Bindings::new()).unwrap();
            assert_eq!(back.eval(&image, &Bindings::new()).unwrap(), index);
            let bindings: Bindings = vars.iter().cloned().zip(image).collect();
            assert_eq!(padding.eval_index(&bindings), Ok(0));
            reached += 1;
        }
        assert_eq!(reached, shape.iter().product::<i64>());
    }
}

#[test]
fn the_users_inverse_and_padding_are_verified() {
    let right = ["--inverse", "lambda p: [p//17, p%17]", "--padding", "lambda p: p%17 >= 13 or p//17 >= 9"];
    let (code, json) = map(PITCHED, "9,13", &[&["--physical-shape", "160"], &right[..]].concat());
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["inverse"], "lambda p: [p // 17, p % 17]");
    assert_eq!(json["padding"], "lambda p: p % 17 >= 13 or p // 17 >= 9");
    assert_eq!(json["physical_shape"], json!([160]));
    // Without the user's padding it follows from the inverse.
    let (code, json) = map(PITCHED, "9,13", &["--physical-shape", "160", "--inverse", "lambda p: [p//17, p%17]"]);
    assert_eq!((code, row(&json, "padding")["verdict"].as_str()), (Some(0), Some("proved")), "{json}");
    assert!(json["padding"].is_string());
}

#[test]
fn a_wrong_inverse_is_refuted_and_not_printed() {
    for wrong in
        ["lambda p: [p//16, p%16]", "lambda p: [p//17, p%17 + 1]", "lambda p: [p%17, p//17]", "lambda p: [0, 0]"]
    {
        let (code, json) = map(PITCHED, "9,13", &["--inverse", wrong]);
        assert_eq!((code, &json["inverse"]), (Some(1), &Value::Null), "{json}");
        let refuted = row(&json, "inverse");
        assert_eq!(refuted["verdict"], "refuted", "{json}");
        let found = &refuted["counterexample"];
        assert!(found["indices"][0].is_array() && found["shape"].is_object(), "{json}");
        // The padding has nothing to do with it.
        assert_eq!(row(&json, "padding")["verdict"], "proved", "{json}");
    }
}

#[test]
fn a_wrong_padding_is_refuted_and_the_inverse_stays() {
    for wrong in ["lambda p: p%17 >= 12", "lambda p: p%17 >= 14", "lambda p: False", "lambda p: True"] {
        let (code, json) = map(PITCHED, "9,13", &["--padding", wrong]);
        assert_eq!((code, &json["padding"]), (Some(1), &Value::Null), "{json}");
        assert_eq!(row(&json, "padding")["verdict"], "refuted", "{json}");
        assert_eq!(row(&json, "inverse")["verdict"], "proved", "{json}");
        assert!(json["inverse"].is_string(), "{json}");
    }
}

#[test]
fn what_has_no_inverse_says_why() {
    let (code, json) = map("lambda i, j: [2*i + j]", "3,4", &[]);
    assert_eq!(code, Some(1));
    for obligation in ["inverse", "padding"] {
        let unknown = row(&json, obligation);
        assert_eq!((unknown["verdict"].as_str(), &json[obligation]), (Some("unknown"), &Value::Null));
        assert_eq!(unknown["reason"], "the map is not injective");
    }
    // An inverse that the user states is held against the map all the same.
    let (_, json) = map("lambda i, j: [2*i + j]", "3,4", &["--inverse", "lambda p: [p//2, p%2]"]);
    assert_eq!(row(&json, "inverse")["verdict"], "refuted", "{json}");
}

#[test]
fn assumptions_hold_of_the_shape_and_are_said() {
    let lambda = "lambda c: [c//4*4 + c%4]";
    let (_, json) = map(lambda, "c", &["--assume", "c % 4 == 0", "--assume", "c <= 1024"]);
    assert_eq!(json["assumptions"], json!(["c % 4 == 0", "c <= 1024"]));
    // What cannot be is vacuous, and never proved.
    let (code, json) = map(lambda, "c", &["--assume", "c > 7 and c < 7"]);
    assert_eq!(code, Some(3), "{json}");
    assert!(json["verdicts"].as_array().unwrap().iter().all(|row| row["verdict"] != "refuted"), "{json}");
    // A condition may begin with a minus sign; it is a value, not an option.
    let (_, json) = map(lambda, "c", &["--assume", "-c >= -1024"]);
    assert_eq!(json["assumptions"], json!(["-c >= -1024"]));
    // A pitch is no extent, but may be assumed of.
    let pitched = "lambda i, j: [i*pitch + j]";
    let shape = ["--physical-shape", "h*pitch", "--assume", "pitch >= w"];
    let (_, json) = map(pitched, "h,w", &shape);
    assert_ne!(row(&json, "injective")["verdict"], "refuted", "{json}");
    let (code, json) = map(pitched, "h,w", &["--physical-shape", "h*pitch + w", "--assume", "pitch >= 1"]);
    assert_eq!((code, row(&json, "injective")["verdict"].as_str()), (Some(1), Some("refuted")), "{json}");
}

#[test]
fn a_stated_physical_shape_is_part_of_the_claim() {
    let (code, json) = map("lambda i: [i]", "5", &["--physical-shape", "8"]);
    assert_eq!((code, &json["physical_shape"]), (Some(0), &json!([8])), "{json}");
    assert!(json["padding"].as_str().unwrap().contains('5'), "{json}");
    let (code, json) = map("lambda i: [i]", "5", &["--physical-shape", "4"]);
    assert_eq!((code, row(&json, "bounds")["verdict"].as_str()), (Some(1), Some("refuted")), "{json}");
    // A parameter of the result never takes the name of an extent that it uses.
    let (_, json) = map("lambda n: [n]", "n", &["--physical-shape", "2*n"]);
    assert_eq!(json["inverse"], "lambda n_1: [n_1]", "{json}");
}

#[test]
fn a_second_statement_of_the_meaning_is_compared() {
    let spec = ["--spec", "lambda n, h, w, c: [n, c//4, h, w, c - 4*(c//4)]"];
    let (code, json) = map("lambda n, h, w, c: [n, c//4, h, w, c%4]", "2,7,9,17", &spec);
    assert_eq!((code, row(&json, "specification")["verdict"].as_str()), (Some(0), Some("proved")), "{json}");
    let (code, json) = map("lambda n, h, w, c: [n, c//4, w, h, c%4]", "2,7,9,17", &spec);
    assert_eq!((code, row(&json, "specification")["verdict"].as_str()), (Some(1), Some("refuted")), "{json}");
}

#[test]
fn what_is_wrong_with_an_option_is_shown_at_its_place() {
    let long = format!("[{}]", ["1"; 300].join(","));
    for (options, name, said) in [
        (vec!["--inverse", "lambda p: [q, p]"], "<--inverse>:1:12", "`q`"),
        (vec!["--inverse", "lambda p: [p]"], "<--inverse>", "gives 1 indices, the map takes 2"),
        (vec!["--inverse", "lambda p, q: [p, q]"], "<--inverse>", "2 indices"),
        (vec!["--inverse", "lambda p: [p//17, AXIS_SEPARATOR, p%17]"], "<--inverse>", "no separators"),
        (vec!["--padding", "lambda p: p % 17"], "<--padding>:1:11", "neither true nor false"),
        (vec!["--padding", "True"], "<--padding>", "expected a lambda"),
        (vec!["--assume", "n % 4"], "<--assume>", "neither true nor false"),
        (vec!["--assume", "n % 4 == 0"], "<--assume>:1:1", "`n`"),
        (vec!["--assume", "((("], "<--assume>", "syntax"),
        (vec!["--physical-shape", "9,17"], "<--physical-shape>", "2 axes"),
        (vec!["--physical-shape", "-1"], "<--physical-shape>", "extent"),
        (vec!["--physical-shape", "m"], "<--physical-shape>", "`m`"),
        (vec!["--physical-shape", long.as_str()], "<--physical-shape>", "300 axes"),
        (vec!["--spec", "lambda i, j: [i, j]"], "<--spec>", "2 outputs"),
        (vec!["--spec", "lambda i: [i]"], "<--spec>", "1 indices"),
    ] {
        let run = tilewright(&[&["map", PITCHED, "--shape", "9,13"], &options[..]].concat());
        assert_eq!(run.code, Some(2), "{options:?}: {run:?}");
        assert!(run.stderr.contains(name) && run.stderr.contains(said), "{options:?}: {}", run.stderr);
        assert!(run.stderr.contains("help:") && run.stdout.is_empty(), "{options:?}: {run:?}");
    }
    let run = tilewright(&["map", "lambda *i: [min(*i)]", "--shape", "min,3"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn a_batch_answers_every_line_in_its_order() {
    let requests = concat!(
        r#"{"map":"lambda i, j: [j, i]","shape":[3,5],"at":[[1,2]],"id":"first"}"#,
        "\n",
        r#"{"map":"lambda i, j: [2*i + j]","shape":"3,4"}"#,
        "\r\n",
        r#"{"map":"lambda n, c: [n, c//4, c%4]","shape":["n","c"],"assume":["c % 4 == 0"],"id":[3]}"#,
        "\n",
        r#"{"map":"lambda i: [i]","shape":[5],"physical_shape":[8],"inverse":"lambda p: [p]","padding":"lambda p: p >= 5"}"#,
    );
    let run = tilewright_with_input(&["map", "--batch", "-"], requests);
    assert_eq!(run.code, Some(0), "answered, whatever the verdicts: {run:?}");
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["id"], &lines[0]["at"][0]["flat"]), (4, &json!("first"), &json!([7])));
    assert_eq!((row(&lines[1], "injective")["verdict"].as_str(), lines[1].get("id")), (Some("refuted"), None));
    assert_eq!((&lines[2]["id"], &lines[2]["shape"]), (&json!([3]), &json!(["n", "c"])));
    assert_eq!((&lines[3]["physical_shape"], &lines[3]["padding"]), (&json!([8]), &json!("lambda p: p >= 5")));
}

#[test]
fn a_bad_line_is_an_error_object_and_the_rest_goes_on() {
    let mut requests: Vec<u8> = Vec::new();
    let bad: [&[u8]; 12] = [
        b"",
        b"[]",
        b"{\"map\":\"\xff\"}",
        b"{\"shape\":[3]}",
        b"{\"map\":\"lambda i: [i]\"}",
        b"{\"map\":\"lambda i: [i]\",\"shape\":[3.5]}",
        b"{\"map\":\"lambda i: [i]\",\"shape\":[3],\"att\":[]}",
        b"{\"map\":\"lambda i: [i]\",\"shape\":[3],\"at\":[[3]]}",
        b"{\"map\":\"lambda i: [i]\",\"shape\":[3],\"assume\":[7]}",
        b"{\"map\":\"lambda i: [i]\",\"shape\":[\"3,4\"]}",
        b"{\"map\":\"lambda i: [k]\",\"shape\":[3],\"id\":9}",
        b"{\"map\":7,\"shape\":[3]}",
    ];
    for line in bad {
        requests.extend(line);
        requests.push(b'\n');
    }
    requests.extend("[".repeat(200_000).bytes());
    requests.extend(b"\n{\"map\":\"");
    requests.extend("x".repeat(10_000_000).bytes());
    requests.extend(b"\",\"shape\":[3]}\n{\"map\":\"lambda i: [i]\",\"shape\":[");
    requests.extend("1,".repeat(300_000).bytes());
    requests.extend(b"1]}\n");
    requests.extend("y".repeat(17 << 20).bytes());
    requests.extend(b"\n{\"map\":\"lambda i: [i]\",\"shape\":[3],\"id\":1}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests");
    std::fs::write(&path, requests).unwrap();
    let run = tilewright(&["map", "--batch", path.to_str().unwrap()]);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, lines.len()), (Some(2), bad.len() + 5));
    for line in &lines[..bad.len() + 4] {
        let error = line["error"].as_object().unwrap();
        assert!(error["message"].is_string() && error["hint"].is_string(), "{line}");
        assert!(error.contains_key("start") && error.contains_key("end") && line.get("schema").is_none(), "{line}");
        assert!(line.to_string().len() < 2000);
    }
    assert_eq!(
        (&lines[10]["id"], &lines[10]["error"]["start"], &lines[10]["error"]["key"]),
        (&json!(9), &json!(11), &json!("map"))
    );
    assert_eq!((&lines[bad.len() + 4]["id"], &lines[bad.len() + 4]["inverse"]), (&json!(1), &json!("lambda i: [i]")));
    assert_eq!(tilewright(&["map", "--batch", "/no/such/file"]).code, Some(2));
    assert_eq!(tilewright(&["map", "lambda i: [i]", "--shape", "3", "--batch", "-"]).code, Some(2));
}

/// A client may wait for each answer before it sends the next request.
#[test]
fn a_batch_answers_before_its_input_ends() {
    use std::io::{BufRead, BufReader, Write};
    let mut child = common::command(&["map", "--batch", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut requests, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for id in 0..3 {
        writeln!(requests, "{}", json!({"map": "lambda i: [i]", "shape": [3], "id": id})).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], json!(id));
    }
    drop(requests);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_thousand_lines_keep_their_order() {
    let request =
        |id: usize| json!({"map": "lambda i, j: [j, i]", "shape": [2 + id % 3, 3 + id % 5], "id": id}).to_string();
    let requests: Vec<String> = (0..1000).map(request).collect();
    let run = tilewright_with_input(&["map", "--batch", "-"], &requests.join("\n"));
    assert_eq!(run.code, Some(0));
    let ids: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, (0..1000).map(|id| json!(id)).collect::<Vec<_>>());
}

#[test]
fn huge_ranks_are_errors_and_no_hang() {
    let shape = vec!["1"; 20_000].join(",");
    let run = tilewright(&["map", "lambda *i: [*i]", "--shape", &shape]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("20000 axes, more than 256"), "{:.300}", run.stderr);
    let outputs = format!("lambda i: [{}]", vec!["i"; 20_000].join(","));
    let run = tilewright(&["map", &outputs, "--shape", "3"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("20000 outputs, more than 256"), "{:.300}", run.stderr);
    let deep = format!("lambda i: [{}i{}]", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(tilewright(&["map", &deep, "--shape", "3"]).code, Some(2));
}

#[test]
fn indices_without_names_get_names_of_their_own() {
    let (code, json) = map("lambda i1, *i: [*i, i1]", "2,3,i2", &[]);
    assert_eq!(json["map"], "lambda i1, i_1, i_2: [i_1, i_2, i1]", "{json}");
    let inverse = json["inverse"].as_str().unwrap();
    assert!(code == Some(0) && inverse.ends_with(": [i1, i_1, i_2]"), "{json}");
}

#[test]
fn bits_are_mixed_inside_of_blocks_of_any_number() {
    let of = |map: &str, assumed: &str| tilewright(&["map", map, "--shape", "n,m", "--assume", assumed]).code;
    for (map, assumed) in [
        ("lambda i, j: [i, j ^ (i % 8)]", "m % 8 == 0"),
        ("lambda i, j: [i, (i % 4) ^ j]", "m % 4 == 0"),
        ("lambda i, j: [i, j ^ (i % 8)]", "m % 32 == 0"),
        ("lambda i, j: [j ^ (i // 2 % 4), i]", "m % 4 == 0"),
    ] {
        assert_eq!(of(map, assumed), Some(0), "{map} if {assumed}");
    }
    for (map, assumed) in [
        ("lambda i, j: [i, j ^ (i % 8)]", "m % 4 == 0"),
        ("lambda i, j: [i, j ^ (i % 8)]", "m % 8 == 4"),
        ("lambda i, j: [i, j ^ (i % 9)]", "m % 8 == 0"),
        ("lambda i, j: [i, j | (i % 8)]", "m % 8 == 0"),
        ("lambda i, j: [i, j ^ (j % 8)]", "m % 8 == 0"),
        ("lambda i, j: [i, j ^ i]", "m % 8 == 0"),
    ] {
        assert_ne!(of(map, assumed), Some(0), "{map} if {assumed}");
    }
}
