//! `tilewright bench`: what is timed, and that nothing is timed that is not proved or has no device.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Run, command, tilewright};
use serde_json::Value;

fn has_device() -> bool {
    !tilewright(&["devices", "--format", "json"]).json()["devices"].as_array().unwrap().is_empty()
}

fn bench(args: &[&str]) -> Run {
    tilewright(&[&["bench", "--format", "json", "--rounds", "5", "--warm-up", "1"], args].concat())
}

/// Checks that a row is consistent: its times are in order, and its speeds follow from them.
fn is_consistent(row: &Value) {
    let number = |name: &str| row[name].as_f64().unwrap();
    assert!(number("least_ms") <= number("median_ms") && number("median_ms") <= number("greatest_ms"), "{row}");
    assert!(number("spread") >= 0.0 && number("bytes") > 0.0, "{row}");
    if number("median_ms") > 0.0 {
        let speed = number("bytes") / number("median_ms") / 1e6;
        assert!((speed - number("gigabytes_per_second")).abs() < speed * 1e-6, "{row}");
    }
}

#[test]
fn kernels_are_timed_beside_a_copy_and_without_textures() {
    if !has_device() {
        return eprintln!("skipped: no OpenCL device");
    }
    let run = bench(&["examples/addone.py"]);
    let json = run.json();
    assert_eq!((run.code, json["schema"].as_str()), (Some(0), Some("tilewright.bench/1")), "{run:?}");
    let runs = json["functions"][0]["runs"].as_array().unwrap();
    let forms: Vec<&str> = runs.iter().map(|row| row["form"].as_str().unwrap()).collect();
    assert_eq!(forms, ["as written", "textures as buffers"], "{json}");
    let written = &runs[0];
    for row in written["kernels"].as_array().unwrap().iter().chain([&written["total"], &written["copy"]]) {
        is_consistent(row);
    }
    let held: Vec<&Value> = runs.iter().map(|run| &run["total"]["held_in"]).collect();
    assert_eq!(held[0], "textures", "{json}");
    assert!(held[1] == "buffers" || runs[1]["reason"].is_string(), "{json}");
    // 32 x 32 x 4 elements, each of which is incremented once.
    assert_eq!(written["total"]["operations"], 32 * 32 * 4, "{json}");
}

#[test]
fn the_table_names_kernels_and_the_device() {
    if !has_device() {
        return eprintln!("skipped: no OpenCL device");
    }
    let run =
        tilewright(&["bench", "--rounds", "3", "--shape", "n=2,h=3,w=5,c=7", "examples/nhwc_to_nchw4c_symbolic.py"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for said in ["as written, 3 rounds after 3", "with n = 2", "of a copy", "copy ", "proved"] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
}

#[test]
fn a_refuted_program_is_not_timed() {
    let run = bench(&["examples/wrong_map.py"]);
    let json = run.json();
    assert_eq!((run.code, json["verdict"].as_str()), (Some(1), Some("refuted")), "{run:?}");
    for row in json["functions"][0]["runs"].as_array().unwrap() {
        assert!(row["kernels"].as_array().unwrap().is_empty() && row["reason"].is_string(), "{json}");
    }
}

#[test]
fn without_a_device_there_is_a_reason_and_no_time() {
    let mut without = command(&["bench", "--format", "json", "examples/addone.py"]);
    without.envs([("OCL_ICD_VENDORS", "/nonexistent"), ("OPENCL_VENDOR_PATH", "/nonexistent")]);
    let run: Run = without.stdin(Stdio::null()).output().unwrap().into();
    let json = run.json();
    assert_eq!((run.code, json["verdict"].as_str()), (Some(3), Some("skipped")), "{run:?}");
    let row = &json["functions"][0]["runs"][0];
    assert!(row["reason"].as_str().unwrap().contains("no OpenCL") && row["device"].is_null(), "{json}");
    let none = tilewright(&["bench", "--device", "none", "examples/addone.py"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(2), ""), "{none:?}");
    assert!(none.stderr.contains("cannot be timed without a device"), "{}", none.stderr);
    assert_eq!(tilewright(&["bench", "--rounds", "0", "examples/addone.py"]).code, Some(2));
}
