//! `tilewright bitcast` and `tilewright relayout`: two layouts of the same data, slot by slot.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};
use serde_json::{Value, json};

fn asked(command: &str, from: &str, to: &str, more: &[&str]) -> (Option<i32>, Value) {
    let run = tilewright(&[&[command, from, to, "--format", "json"], more].concat());
    (run.code, run.json())
}

fn bitcast(from: &str, to: &str, more: &[&str]) -> (Option<i32>, Value) {
    asked("bitcast", from, to, more)
}

fn reason(json: &Value) -> &str {
    json["verdicts"][0]["counterexample"]["text"].as_str().unwrap_or_else(|| panic!("{json}"))
}

#[test]
fn what_lies_the_same_is_a_bitcast() {
    for (from, to, more) in [
        ("f32[3,5]", "f32[3,5]{1,0}", &[][..]),
        ("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", "f32[112,110]{1,0:T(2,3)}", &[]),
        ("f32[3,5]{1,0}", "f32[5,3]{0,1}", &["--transpose", "1,0"]),
        ("f32[2,3,5]{2,1,0:T(2,2)}", "f32[5,2,3]{0,2,1:T(2,2)}", &["--transpose", "2,0,1"]),
        ("f32[6,35]", "f32[2,3,5,7]", &[]),
        ("f32[4,8]{1,0:T(2,4)(2,1)}", "f32[4,8]{1,0:T(2,4)(2,4)(2,1)}", &[]),
        ("f32[100003,128]{1,0:L(1024)}", "s32[100003,128]{1,0:T(8,128)}", &[]),
        ("f32[?,128]{1,0:L(1024)}", "f32[?,128]{1,0:T(8,128)}", &[]),
        ("f32[?,?]{1,0:T(8,128)}", "f32[?,?]{0,1:T(8,128)}", &["--transpose", "1,0"]),
        ("f32[?,6]{1,0}", "f32[?,2,3]{2,1,0}", &[]),
        ("f32[<=9,5]{1,0}", "f32[9,5]{1,0}", &[]),
        ("f32[1,3,1]", "f32[3]", &[]),
        ("f32[]", "f32[1]", &[]),
    ] {
        let (code, json) = bitcast(from, to, more);
        assert_eq!((code, &json["legal"]), (Some(0), &json!(true)), "{json}");
        assert_eq!(json["schema"], "tilewright.bitcast/1");
        assert_eq!(
            (&json["verdicts"][0]["obligation"], &json["verdicts"][0]["verdict"]),
            (&json!("bitcast"), &json!("proved"))
        );
    }
}

#[test]
fn what_lies_differently_is_refuted_with_the_first_slot() {
    for (from, to, more, text) in [
        ("f32[3,5]{1,0}", "f32[3,5]{0,1}", &[][..], "slot 1 holds (0, 1) in A and (1, 0) in B"),
        ("f32[4,6]{1,0:T(2,3)}", "f32[4,6]{1,0}", &[], "slot 3 holds (1, 0) in A and (0, 3) in B"),
        ("f32[3,3]{1,0:T(2,2)}", "f32[3,3]{0,1:T(2,2)}", &[], "slot 1 holds (0, 1) in A and (1, 0) in B"),
        ("f32[1,3]{1,0:T(1,4)}", "f32[1,3]{1,0:T(2,2)}", &[], "slot 2 holds (0, 2) in A and is padding in B"),
        ("f32[1,3]{1,0:T(2,2)}", "f32[1,3]{1,0:T(1,8)}", &[], "slot 2 is padding in A and holds (0, 2) in B"),
        (
            "f32[3]",
            "f32[3]{0:T(4)}",
            &[],
            "A has 3 slots, B 4; slot 3 is no part of the allocation in A and is padding in B",
        ),
        (
            "f32[6]",
            "f32[2,3]{0,1}",
            &[],
            "slot 1 holds 1, which is element 1, in A and (1, 0), which is element 3, in B",
        ),
        (
            "f32[3,5]",
            "f32[5,3]",
            &["--transpose", "1,0"],
            "slot 1 holds (0, 1) in A and (0, 1), which is (1, 0) of A, in B",
        ),
        ("f32[3]", "bf16[3]", &[], "elements take 32 bits in A and 16 in B"),
        ("f32[3]", "f32[3]{0:M(8)}", &[], "a prefix of 0 bytes"),
        ("f32[?,?]{1,0}", "f32[?,?]{0,1}", &[], "slot 1 holds"),
    ] {
        let (code, json) = bitcast(from, to, more);
        assert_eq!((code, &json["legal"]), (Some(1), &json!(false)), "{json}");
        assert!(reason(&json).contains(text), "{from} {to}: {}", reason(&json));
    }
}

#[test]
fn arrays_that_do_not_correspond_are_bad_input() {
    for (from, to, more) in [
        ("f32[3,5]", "f32[5,3]", &["--transpose", "1,1"][..]),
        ("f32[3,5]", "f32[15]", &["--transpose", "1,0"]),
        ("f32[?,5]", "f32[3,5]", &[]),
        ("f32[3,5]{1,1}", "f32[3,5]", &[]),
        ("token[]", "f32[3]", &[]),
        ("f32[3]{0:D(C)}", "f32[3]", &[]),
    ] {
        for command in ["bitcast", "relayout"] {
            let (code, json) = asked(command, from, to, more);
            assert_eq!(code, Some(2), "{json}");
            assert!(json["error"]["message"].is_string(), "{json}");
        }
    }
    let (_, json) = bitcast("f32[3,5]{1,0}", "f32[3,5]{1,1}", &[]);
    assert_eq!((&json["error"]["start"], &json["error"]["end"]), (&json!(11), &json!(12)), "{json}");
}

#[test]
fn a_relayout_is_proved_and_shown() {
    let (code, json) = asked("relayout", "f32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0}", &[]);
    assert_eq!((code, json["schema"].as_str()), (Some(0), Some("tilewright.relayout/1")), "{json}");
    assert_eq!((&json["from_slots"], &json["to_slots"]), (&json!(24), &json!(15)));
    assert_eq!(json["map"], "lambda p: [p // 12 * 10 + p // 2 % 2 * 5 + p // 4 % 3 * 2 + p % 2]");
    let obligations: Vec<_> = json["verdicts"].as_array().unwrap().iter().map(|row| &row["obligation"]).collect();
    assert_eq!(obligations, ["specification", "bounds", "injective", "padding"]);
    for (from, to, more) in [
        ("bf16[?,?]{1,0:T(8,128)(2,1)}", "bf16[?,?]{0,1}", &[][..]),
        ("bf16[?,?]{0,1}", "bf16[?,?]{1,0:T(8,128)(2,1)}", &[]),
        ("f32[3,5]{1,0}", "f32[5,3]{1,0:T(2,2)}", &["--transpose", "1,0"]),
        ("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", "f32[112,110]{0,1:T(8,128)}", &[]),
        ("f32[7]", "f32[7]{0:T(2)(3)L(5)}", &[]),
    ] {
        let (code, json) = asked("relayout", from, to, more);
        assert_eq!(code, Some(0), "{json}");
        assert!(json["map"].is_string() && json["padding"].is_string(), "{json}");
    }
}

#[test]
fn a_batch_of_pairs_has_a_line_for_every_line() {
    let requests = concat!(
        r#"{"id": 1, "from": "f32[3,5]{1,0}", "to": "f32[5,3]{0,1}", "transpose": [1, 0]}"#,
        "\n",
        r#"{"from": "f32[3,5]{1,0}", "to": "f32[3,5]{0,1}"}"#,
        "\n",
        r#"{"from": "f32[3,5]"}"#,
    );
    let run = tilewright_with_input(&["bitcast", "--batch", "-"], requests);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, lines.len()), (Some(2), 3), "{run:?}");
    assert_eq!((&lines[0]["id"], &lines[0]["legal"], &lines[1]["legal"]), (&json!(1), &json!(true), &json!(false)));
    assert!(lines[2]["error"]["message"].is_string());
    let (first, _) = requests.split_once('\n').unwrap();
    let run = tilewright_with_input(&["relayout", "--batch", "-"], first);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn people_read_what_differs() {
    let run = tilewright(&["bitcast", "f32[3,5]{1,0}", "f32[3,5]{0,1}"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("slot 1 holds (0, 1) in A and (1, 0) in B"), "{run:?}");
    // A bitcast moves nothing, so it does not lead from one memory space to another.
    let run = tilewright(&["bitcast", "f32[3,5]{1,0:S(1)}", "f32[3,5]{1,0}"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("A is in memory space 1, B in 0"), "{run:?}");
    let help = tilewright(&["relayout", "--help"]);
    assert!(help.stdout.contains("Examples:") && help.stdout.contains("--transpose"), "{help:?}");
}

#[test]
fn a_relayout_may_send_padding_anywhere() {
    for (from, to, more) in [
        ("f32[5,3]{1,0:T(3,2)}", "f32[3,5]{1,0:T(3,2)}", &["--transpose", "1,0"][..]),
        ("f32[6,3]{1,0:T(4,5)}", "f32[3,6]{0,1:T(4,4,3,3,4)}", &[]),
        ("f32[3,11,2]{2,1,0:T(2,1,3)(5,1,2)}", "f32[3,11,2]{2,1,0:T(2,1,3)(5,1,2)(1)}", &[]),
    ] {
        let (code, json) = asked("relayout", from, to, more);
        assert_eq!(code, Some(0), "{json}");
        assert!(json["map"].is_string(), "{json}");
        assert!(json["verdicts"].as_array().unwrap().iter().all(|row| row["verdict"] == "proved"), "{json}");
    }
}
