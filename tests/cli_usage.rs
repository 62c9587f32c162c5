//! Bad usage and bad input of every kind: exit code 2, a message that says what and where, nothing on standard output.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Run, tilewright, tilewright_with_input};

fn assert_bad(run: &Run, said: &str) {
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains(said), "expected `{said}` in {}", run.stderr);
    assert_eq!(run.stdout, "");
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

#[test]
fn no_command_and_unknown_commands_are_bad_usage() {
    assert_bad(&tilewright(&[]), "Usage");
    assert_bad(&tilewright(&["chekc", "a.py"]), "unrecognized subcommand");
    assert_bad(&tilewright(&["check"]), "FILE");
    assert_bad(&tilewright(&["check", "--frobnicate", "a.py"]), "--frobnicate");
}

#[test]
fn option_values_are_checked() {
    for (option, value) in [
        ("--threads", "-1"),
        ("--threads", "many"),
        ("--threads", "1000000"),
        ("--timeout", "0"),
        ("--timeout", "inf"),
        ("--seed", "1.5"),
        ("--format", "xml"),
        ("--color", "mauve"),
    ] {
        assert_bad(&tilewright(&["devices", &format!("{option}={value}")]), option);
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let help = tilewright(&["--help"]);
    assert_eq!(help.code, Some(0));
    for command in ["check", "compile", "opt", "validate", "map", "layout", "draw", "run", "devices"] {
        assert!(help.stdout.contains(&format!("  {command} ")), "{command}: {}", help.stdout);
        let run = tilewright(&[command, "--help"]);
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("Example"), "{command}: {}", run.stdout);
        assert!(run.stdout.contains(&format!("tilewright {command}")), "{command}");
    }
    assert!(tilewright(&["--version"]).stdout.starts_with("tilewright "));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let missing = path("missing.py");
    let run = tilewright(&["check", &missing]);
    assert_bad(&run, &missing);
    assert!(run.stderr.contains("No such file"), "{}", run.stderr);
    assert_bad(&tilewright(&["check", folder.path().to_str().unwrap()]), "directory");
    let binary = path("binary.py");
    std::fs::write(&binary, b"x = 1\ny = \xff\xfe\n").unwrap();
    assert_bad(&tilewright(&["check", &binary]), "not UTF-8: byte 10, in line 2");
    assert_bad(&tilewright(&["check", &format!("{binary}::")]), "no function");
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for command in ["check", "run"] {
        let run = tilewright_with_input(&[command, "-"], "from tvm import te\nA = te.placeholder((3, 4)\n");
        assert_bad(&run, "<stdin>:");
        assert!(run.stderr.starts_with("error["), "{}", run.stderr);
        assert!(run.stderr.contains("te.placeholder((3, 4)"), "{}", run.stderr);
    }
}

#[test]
fn every_mistake_of_a_file_and_of_every_file_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second) = (path("first.py"), path("second.py"));
    std::fs::write(&first, "x = = 1\ny = ) 2\n").unwrap();
    std::fs::write(&second, "def f(:\n    pass\n").unwrap();
    let run = tilewright(&["check", &first, &second]);
    assert_bad(&run, "first.py:1");
    assert!(run.stderr.contains("first.py:2") && run.stderr.contains("second.py:1"), "{}", run.stderr);
}

#[test]
fn with_json_the_error_is_a_document_too() {
    let run = tilewright_with_input(&["check", "--format", "json", "-"], "x = = 1\n");
    assert_eq!(run.code, Some(2));
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(json["schema"], "tilewright.error/1");
    assert_eq!((json["file"].as_str(), json["exit_code"].as_u64()), (Some("<stdin>"), Some(2)));
    assert_eq!(json["diagnostics"][0]["labels"][0]["line"], 1);
    let run = tilewright(&["chekc", "--format=json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, json["schema"].as_str()), (Some(2), Some("tilewright.error/1")));
}

#[test]
fn hostile_nesting_is_refused_and_not_a_crash() {
    for text in
        ["(".repeat(100_000), "[".repeat(100_000), "-".repeat(300_000), format!("x = {}1", "1 + ".repeat(50_000))]
    {
        let run = tilewright_with_input(&["check", "-"], &text);
        assert_eq!(run.code, Some(2), "{:.300}", run.stderr);
        assert!(run.stderr.len() < 100_000, "{} bytes of messages", run.stderr.len());
    }
}

#[test]
fn an_empty_file_is_no_success() {
    for text in ["", "\n\n", "# nothing\n", "import tvm\n"] {
        let run = tilewright_with_input(&["check", "-"], text);
        assert!(matches!(run.code, Some(2 | 3)), "{run:?}");
    }
}
