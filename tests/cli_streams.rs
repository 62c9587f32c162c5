//! Standard output is the result and nothing else; colours and broken pipes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{command, tilewright};

const MAP: &[&str] = &["map", "lambda n, h, w, c: [n, c//4, h, w, c%4]", "--shape", "2,7,9,16"];

#[test]
fn colour_is_off_where_nobody_looks_and_on_where_it_is_asked_for() {
    assert!(!tilewright(MAP).stdout.contains('\u{1b}'));
    let always = tilewright(&[MAP, &["--color", "always"]].concat());
    assert!(always.stdout.contains('\u{1b}'), "{always:?}");
    let never = command(&[MAP, &["--color=never"]].concat()).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!never.stdout.contains(&0x1b));
    let no_color = command(MAP).env("NO_COLOR", "1").env("TERM", "xterm").output().unwrap();
    assert!(!no_color.stdout.contains(&0x1b));
}

#[test]
fn errors_are_coloured_only_on_request() {
    let missing = ["check", "no/such/file.py"];
    assert!(!tilewright(&missing).stderr.contains('\u{1b}'));
    assert!(tilewright(&[&missing[..], &["--color", "always"]].concat()).stderr.contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let mut child = command(MAP).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(stderr, "");
}

#[test]
fn a_full_disk_is_said() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: no /dev/full here");
        return;
    };
    let output = command(MAP).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot write to standard output") && !stderr.contains("internal"), "{stderr}");
}

#[test]
fn devices_lists_in_both_formats() {
    let text = tilewright(&["devices"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(text.stdout.starts_with("solver: Z3 5."), "{text:?}");
    let json = tilewright(&["devices", "--format", "json"]).json();
    assert_eq!(json["schema"], "tilewright.devices/1");
    let listed = json["devices"].as_array().unwrap().len();
    assert_eq!(listed == 0, text.stdout.contains("no OpenCL device"));
}
