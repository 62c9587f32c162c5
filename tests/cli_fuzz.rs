//! `tilewright fuzz` and `tilewright replay`: what campaigns find, what becomes of workers that end, what is written.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Run, command, tilewright};
use serde_json::Value;
use tempfile::TempDir;
use tilewright::fuzz::oracles::ORACLES;

/// A campaign over some cases of oracles that fail on purpose.
fn campaign(oracle: &str, runs: &str, folder: &Path, more: &[&str]) -> Run {
    let out = folder.to_str().unwrap();
    let args = ["fuzz", "--oracle", oracle, "--runs", runs, "--out", out, "--device", "none", "--format", "json"];
    tilewright(&[&args, more].concat())
}

/// The files of findings, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.ends_with("report.json"));
    files.sort();
    files
}

fn json_file(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// What a campaign found is one finding that is as small as it gets, and its file shows it again.
fn is_found_and_replayed(oracle: &str, what: &str, more: &[&str]) {
    let folder = TempDir::new().unwrap();
    let run = campaign(oracle, "300", folder.path(), &[&["--jobs", "1"], more].concat());
    assert_eq!(run.code, Some(1), "{run:?}");
    let report = run.json();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!((&report["oracles"][0]["runs"], &report["oracles"][0]["verdict"]), (&300.into(), &"failed".into()));
    let files = files(folder.path());
    assert_eq!(files.len(), 1, "{files:?}");
    let finding = json_file(&files[0]);
    assert_eq!((&finding["what"], &finding["case"]), (&what.into(), &serde_json::json!([64512])), "{finding:#}");
    let name = files[0].to_str().unwrap();
    assert_eq!(finding["replay"], format!("tilewright replay {name} --device none"));
    let again = tilewright(&[&["replay", name, "--format", "json"], more].concat());
    assert_eq!((again.code, &again.json()["what"]), (Some(1), &what.into()), "{again:?}");
}

#[test]
fn a_failure_is_found_once_made_smaller_and_replayed() {
    is_found_and_replayed("self-test-fails", "a number is too large", &[]);
}

#[test]
fn a_panic_is_a_finding_that_names_the_file() {
    is_found_and_replayed("self-test-panics", "panic in campaign/src/oracles/self_test.rs", &[]);
}

#[test]
fn a_process_that_ends_is_a_finding_and_no_end_of_the_campaign() {
    is_found_and_replayed("self-test-ends", "the worker process ends: signal SIGABRT", &[]);
}

#[test]
fn a_process_without_end_of_memory_is_a_finding() {
    is_found_and_replayed("self-test-eats-memory", "the worker process needs too much memory", &["--memory", "400"]);
}

#[test]
fn a_process_that_hangs_is_a_finding() {
    let folder = TempDir::new().unwrap();
    let run = campaign("self-test-hangs", "20", folder.path(), &["--jobs", "1", "--patience", "2"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let finding = json_file(&files(folder.path())[0]);
    assert_eq!(finding["what"], "the worker process hangs", "{finding:#}");
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_workers() {
    let found = |jobs: &str| {
        let folder = TempDir::new().unwrap();
        let report = campaign("self-test-fails", "2000", folder.path(), &["--jobs", jobs, "--seed", "7"]).json();
        let row = &report["oracles"][0];
        let files: Vec<Value> = files(folder.path()).iter().map(|file| json_file(file)["case"].clone()).collect();
        (row["runs"].clone(), row["failed"].clone(), row["held"].clone(), report["coverage"].clone(), files)
    };
    let once = found("1");
    assert!(once.1.as_u64().unwrap() > 10, "{once:?}");
    assert_eq!(once, found("3"));
}

#[test]
fn a_clean_campaign_says_so_and_leaves_a_report_only_where_it_was_asked_to() {
    let folder = TempDir::new().unwrap();
    let run = campaign("self-test-holds", "50", folder.path(), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(json_file(&folder.path().join("report.json")), run.json());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let quiet = command(&["fuzz", "--oracle", "self-test-holds", "--runs", "5"]);
    let mut quiet = Command::new(quiet.get_program());
    quiet.args(["fuzz", "--oracle", "self-test-holds", "--runs", "5"]).current_dir(folder.path().join("."));
    let run: Run = quiet.stdin(Stdio::null()).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("held: nothing found; 5 cases, 1 of 1 oracles held"), "{}", run.stdout);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_oracle_that_cannot_be_had_is_named_and_is_not_held() {
    let run = tilewright(&["fuzz", "--oracle", "self-test-is-absent", "--oracle", "self-test-holds", "--runs", "5"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stdout.contains("self-test-is-absent: skipped: it is absent on purpose"), "{}", run.stdout);
    assert!(run.stdout.contains("incomplete: nothing found, and not everything"), "{}", run.stdout);
}

#[test]
fn an_interrupted_campaign_leaves_a_whole_report() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let mut fuzz =
        command(&["fuzz", "--oracle", "self-test-holds", "--minutes", "5", "--out", out, "--format", "json"]);
    let child = fuzz.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let start = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(run.code, Some(3), "{run:?}");
    let report = json_file(&folder.path().join("report.json"));
    assert_eq!(report, run.json());
    assert_eq!(report["interrupted"], true);
    assert!(report["oracles"][0]["runs"].as_u64().unwrap() > 0, "{report:#}");
}

#[test]
fn what_cannot_be_done_is_said_before_it_is_begun() {
    let unwritable = ["fuzz", "--out", "/dev/null/here", "--runs", "1"];
    for (args, said) in [
        (&["fuzz", "--oracle", "nonsense"][..], "the oracles are passes"),
        (&["fuzz", "--minutes", "0"], "at least 0.0015"),
        (&["fuzz", "--minutes", "nan"], "at least 0.0015"),
        (&["fuzz", "--runs", "0"], "a whole number of 1 to"),
        (&["fuzz", "--sabotage", "nonsense"], "there is no fault `nonsense`"),
        (&unwritable, "cannot write to /dev/null/here"),
        (&["replay"], "FILE"),
        (&["replay", "missing.json"], "cannot read missing.json"),
        (&["replay", "Cargo.toml"], "not JSON"),
    ] {
        let run = tilewright(args);
        assert_eq!(run.code, Some(2), "{args:?}: {run:?}");
        assert!(run.stderr.contains(said), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_program_without_faults_says_how_to_build_one_that_has() {
    if tilewright_ir::sabotage::AVAILABLE {
        return;
    }
    let run = tilewright(&["fuzz", "--sabotage", "all"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("--features sabotage"), "{}", run.stderr);
}

#[test]
fn replay_looks_at_every_file_and_the_worst_counts() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, oracle: &str, case: &str| {
        let text = format!(
            r#"{{"schema": "tilewright.finding/1", "oracle": "{oracle}", "what": "a number is too large", "detail": "", "case": {case}}}"#
        );
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let held = write("held.json", "self-test-fails", "[1, 2]");
    let fails = write("fails.json", "self-test-fails", "[65000]");
    let absent = write("absent.json", "self-test-is-absent", "[1]");
    let other = write("other.json", "self-test-fails", r#"{"no": "case"}"#);
    let code = |files: &[&str]| tilewright(&[&["replay"], files].concat()).code;
    assert_eq!(code(&[&held]), Some(0));
    assert_eq!(code(&[&held, &absent]), Some(3));
    assert_eq!(code(&[&other]), Some(3));
    assert_eq!(code(&[&fails, &absent, &held]), Some(1));
    let run = tilewright(&["replay", &held, &fails]);
    assert!(run.stdout.contains("self-test-fails: it holds now; it was: a number is too large"), "{}", run.stdout);
    assert!(run.stdout.contains("self-test-fails: it still fails: a number is too large"), "{}", run.stdout);
}

#[test]
fn the_page_lists_every_oracle() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/fuzz.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows: Vec<String> = ORACLES.iter().map(|entry| format!("| `{}` | {} |\n", entry.name, entry.summary)).collect();
    let rows = rows.concat();
    let (before, rest) = page.split_once("| oracle | compares |\n|---|---|\n").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let wanted = format!("{before}| oracle | compares |\n|---|---|\n{rows}\n{after}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, wanted).unwrap();
    } else {
        assert!(
            page == wanted,
            "`UPDATE_EXPECT=1 cargo test --test cli_fuzz` rewrites the table of docs/guide/fuzz.md"
        );
    }
}
