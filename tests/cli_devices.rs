//! Devices on the command line: which one is meant, drivers that take their process down, machines without OpenCL; and what
//! an installed program says of itself.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Run, command, tilewright};
use serde_json::Value;

/// The rows of the OpenCL engine.
fn opencl(json: &Value) -> Vec<Value> {
    let rows = json["engines"].as_array().unwrap();
    rows.iter().filter(|row| row["engine"] == "opencl").cloned().collect()
}

fn devices() -> Vec<Value> {
    tilewright(&["devices", "--format", "json"]).json()["devices"].as_array().unwrap().clone()
}

/// Checks an example with other variables in the environment.
fn check_with(environment: &[(&str, &str)], args: &[&str]) -> Run {
    let mut command = command(&[&["check", "--format", "json"], args, &["examples/addone.py"]].concat());
    command.envs(environment.iter().copied()).stdin(Stdio::null()).output().unwrap().into()
}

#[test]
fn digits_are_an_index_and_unknown_or_empty_values_are_errors() {
    for empty in ["", "  "] {
        let run = tilewright(&["check", "--device", empty, "examples/addone.py"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains("an index or a part of a name"), "{}", run.stderr);
    }
    if devices().is_empty() {
        return eprintln!("skipped: no OpenCL device");
    }
    for wanted in ["512", "4096", "no such device anywhere"] {
        let run = check_with(&[], &["--device", wanted]);
        assert_eq!(run.code, Some(2), "{run:?}");
        let error = run.json();
        assert_eq!(error["schema"], "tilewright.error/1");
        assert!(run.stderr.contains(&format!("no OpenCL device matches `{wanted}`")), "{}", run.stderr);
        assert!(run.stderr.contains("there is 0: "), "{}", run.stderr);
    }
    let first = check_with(&[], &["--device", "0"]);
    assert_eq!(first.code, Some(0), "{first:?}");
}

#[test]
fn without_a_platform_the_proofs_are_there_and_the_row_is_skipped() {
    let run = check_with(&[("OCL_ICD_VENDORS", "/nonexistent"), ("OPENCL_VENDOR_PATH", "/nonexistent")], &[]);
    let json = run.json();
    assert_eq!((run.code, json["verdict"].as_str()), (Some(3), Some("skipped")), "{json}");
    let rows = opencl(&json);
    assert_eq!((rows.len(), &rows[0]["status"]), (1, &Value::from("skipped")));
    assert!(rows[0]["reason"].as_str().unwrap().contains("no OpenCL"), "{rows:?}");
}

/// The loader is opened at run time; files that are no libraries stand in for it.
#[test]
fn without_a_loader_the_program_starts_and_says_that_there_is_no_opencl() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libOpenCL.so.1", "libOpenCL.so"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let hidden = [("LD_LIBRARY_PATH", folder.path().to_str().unwrap())];
    let run = |args: &[&str]| -> Run { command(args).envs(hidden).stdin(Stdio::null()).output().unwrap().into() };
    let devices = run(&["devices"]);
    assert_eq!(devices.code, Some(0), "{devices:?}");
    assert!(devices.stdout.contains("no OpenCL: "), "{devices:?}");
    assert_eq!(run(&["devices", "--format", "json"]).json()["loader"], Value::Null);
    assert!(run(&["--version"]).stdout.contains("opencl: no OpenCL: "));
    let check = check_with(&hidden, &[]);
    assert_eq!((check.code, check.json()["verdict"].as_str()), (Some(3), Some("skipped")), "{check:?}");
    assert!(opencl(&check.json())[0]["reason"].as_str().unwrap().starts_with("no OpenCL: "));
    assert_eq!(check_with(&hidden, &["--device", "none"]).code, Some(0));
}

/// PoCL ends the process when it finds no linker in PATH.
#[test]
fn a_driver_that_ends_its_process_does_not_take_the_proofs_with_it() {
    if !devices().iter().any(|row| row["platform"] == "Portable Computing Language") {
        return eprintln!("skipped: PoCL is not installed");
    }
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().to_str().unwrap();
    let run = check_with(&[("PATH", "/nonexistent"), ("POCL_CACHE_DIR", cache)], &["--device", "0"]);
    let json = run.json();
    assert_eq!((run.code, json["verdict"].as_str()), (Some(3), Some("unknown")), "{run:?}");
    let passes = json["passes"].as_array().unwrap();
    let obligations: Vec<_> = passes.iter().flat_map(|pass| pass["obligations"].as_array().unwrap()).collect();
    assert!(!obligations.is_empty() && obligations.iter().all(|row| row["verdict"] == "proved"), "{json}");
    let rows = opencl(&json);
    assert!(rows.iter().all(|row| row["status"] == "failed"), "{rows:?}");
    let reason = rows[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("the OpenCL driver's process ended with signal SIGABRT: "), "{reason}");
}

#[test]
fn the_version_names_commit_solver_and_loader() {
    for flag in ["--version", "-V"] {
        let run = tilewright(&[flag]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert_eq!(lines.len(), 4, "{run:?}");
        assert_eq!(lines[0], format!("tilewright {}", env!("CARGO_PKG_VERSION")));
        assert!(lines[1].strip_prefix("commit: ").is_some_and(|commit| !commit.is_empty()), "{run:?}");
        assert!(lines[2].starts_with("solver: Z3 "), "{run:?}");
        let loader = lines[3].strip_prefix("opencl: ").unwrap();
        assert!(loader.contains("OpenCL"), "a path, or that there is none: {loader}");
    }
}

#[test]
fn completions_name_the_commands_and_not_the_hidden_ones() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = tilewright(&["completions", shell]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stdout.contains("recheck") && run.stdout.contains("allow-unknown"), "{shell}");
    }
    assert_eq!(tilewright(&["completions", "cobol"]).code, Some(2));
}

#[test]
fn there_is_a_man_page_for_every_command_that_help_lists() {
    let folder = tempfile::tempdir().unwrap();
    let run = tilewright(&["man", folder.path().to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let help = tilewright(&["--help"]).stdout;
    let commands = help.split("Commands:").nth(1).unwrap().split("Options").next().unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| !name.is_empty() && *name != "help").collect();
    assert!(names.contains(&"check") && names.contains(&"completions"), "{help}");
    for name in names {
        let page = std::fs::read_to_string(folder.path().join(format!("tilewright-{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(name), "{name}");
    }
    assert!(!folder.path().join("tilewright-device-worker.1").exists(), "nobody types that one");
}
