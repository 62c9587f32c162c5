//! The console blocks of README.md are what the program says; times and the device's name apart.
//!
//! `UPDATE_EXPECT=1 cargo test --test cli_readme` writes them anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{Run, tilewright};

/// The arguments of a command line; single quotes keep blanks.
fn arguments(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = |(position, part): (usize, &str)| match position % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    parts.flat_map(words).collect()
}

fn run(line: &str) -> Run {
    let arguments = arguments(line);
    let (program, rest) = arguments.split_first().unwrap();
    assert_eq!(program, "tilewright", "{line}");
    tilewright(&rest.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A line without what differs from run to run: numbers with a point are times, and columns follow their width.
fn masked(line: &str) -> String {
    if line.trim_start().starts_with("on ") {
        return "on a device".into();
    }
    let is_time = |word: &str| {
        let number = word.trim_matches(['(', ')']);
        number
            .split_once('.')
            .is_some_and(|(a, b)| !a.is_empty() && (a.to_owned() + b).chars().all(|c| c.is_ascii_digit()))
    };
    let mask = |word: &str| if is_time(word) { "#".to_owned() } else { word.to_owned() };
    line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ")
}

/// Text with every console block replaced by what `output` gives for each of its commands.
fn rewritten(page: &str, mut output: impl FnMut(&str) -> String) -> String {
    let mut result = String::new();
    let mut inside = false;
    for line in page.split_inclusive('\n') {
        if line.starts_with("```") {
            inside = line.trim_end() == "```console";
            result.push_str(line);
        } else if !inside {
            result.push_str(line);
        } else if let Some(command) = line.strip_prefix("$ ") {
            result.push_str(line);
            result.push_str(&output(command.trim_end()));
        }
    }
    result
}

#[test]
fn the_console_blocks_are_real() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let page = fs::read_to_string(&path).unwrap();
    let has_device = !tilewright(&["devices"]).stdout.contains("no OpenCL device");
    let mut commands = 0;
    let mut last = Some(0);
    let wanted = rewritten(&page, |command| {
        commands += 1;
        if command == "echo $?" {
            return format!("{}\n", last.unwrap());
        }
        let run = run(command);
        last = run.code;
        run.stdout
    });
    assert!(commands >= 3, "the page shows only {commands} commands");
    if !has_device {
        eprintln!("skipped: the page shows runs on an OpenCL device, and there is none here");
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, wanted).unwrap();
        return;
    }
    let lines = |text: &str| text.lines().map(masked).collect::<Vec<_>>();
    for (shown, real) in lines(&page).iter().zip(&lines(&wanted)) {
        assert_eq!(shown, real, "`UPDATE_EXPECT=1 cargo test --test cli_readme` writes README.md anew");
    }
    assert_eq!(page.lines().count(), wanted.lines().count());
}

#[test]
fn a_stale_block_is_noticed() {
    let page = "text\n```console\n$ tilewright devices\nold\n```\nmore\n";
    let new = rewritten(page, |_| "new\n".into());
    assert_eq!(new, "text\n```console\n$ tilewright devices\nnew\n```\nmore\n");
    assert_ne!(masked("proved 3 of 3"), masked("proved 2 of 3"));
    assert_eq!(masked("  lower   12.5  z3 (0.3 ms)"), masked("  lower  9.75 z3 (11.0 ms)"));
    assert_eq!(
        arguments("tilewright map 'lambda i: [i]' --shape 3"),
        ["tilewright", "map", "lambda i: [i]", "--shape", "3"]
    );
}
