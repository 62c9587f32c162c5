//! A certificate rechecks as it was written, and every way of tampering with it is found.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Run, tilewright};
use serde_json::Value;
use tilewright::certificate::{MANIFEST, hash};

/// A folder of certificates, gone with the test.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The certificate of a map, named `name`.
    fn map(&self, name: &str, map: &str, shape: &str) -> (PathBuf, Run) {
        let folder = self.path(name);
        let run = tilewright(&["map", map, "--shape", shape, "--certificate", folder.to_str().unwrap()]);
        (folder, run)
    }

    /// A copy of a certificate, to be spoilt.
    fn copy(&self, of: &Path, name: &str) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(of).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        folder
    }
}

/// With Z3 only: what these tests are about does not depend on who else is there.
fn recheck(folder: &Path) -> (Option<i32>, Value) {
    let run = tilewright(&["recheck", folder.to_str().unwrap(), "--solver", "z3", "--format", "json"]);
    (run.code, run.json())
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(MANIFEST)).unwrap()).unwrap()
}

/// The steps of all rows and lemmas.
fn steps(manifest: &Value) -> Vec<Value> {
    let lists = ["obligations", "lemmas"].map(|list| manifest[list].as_array().unwrap().clone());
    lists.concat().iter().flat_map(|row| row["steps"].as_array().unwrap().clone()).collect()
}

/// Writes a text over a goal, and makes the manifest agree: what a forger would do.
fn forge(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    let old = hash(&fs::read_to_string(&path).unwrap());
    fs::write(&path, text).unwrap();
    seal(folder, &fs::read_to_string(folder.join(MANIFEST)).unwrap().replace(&old, &hash(text)));
}

/// Writes a manifest with the digest that its text has.
fn seal(folder: &Path, text: &str) {
    let manifest: Value = serde_json::from_str(text).unwrap();
    let empty = text.replacen(manifest["digest"].as_str().unwrap(), "", 1);
    fs::write(folder.join(MANIFEST), text.replacen(manifest["digest"].as_str().unwrap(), &hash(&empty), 1)).unwrap();
}

/// The first goal whose text has all `parts`.
fn goal_with(folder: &Path, parts: &[&str]) -> (String, String) {
    let files = steps(&manifest(folder));
    let mut files = files.iter().filter_map(|step| step["file"].as_str());
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let found = files.find(|file| parts.iter().all(|part| text(file).contains(part))).unwrap();
    (found.to_owned(), text(found))
}

const NCHW4C: &str = "lambda n, h, w, c: [n, c//4, h, w, c%4]";

#[test]
fn a_certificate_of_a_map_rechecks() {
    let place = Place::new();
    for (name, map, shape) in [
        ("constant", NCHW4C, "2,7,9,17"),
        ("symbolic", NCHW4C, "n,h,w,c"),
        ("xor", "lambda i, j: [i, j ^ (i % 8)]", "5,8"),
    ] {
        let (folder, run) = place.map(name, map, shape);
        assert_eq!(run.code, Some(0), "{run:?}");
        let (code, json) = recheck(&folder);
        assert_eq!((code, &json["verdict"]), (Some(0), &Value::from("agree")), "{name}: {json:#}");
        assert_eq!(json["schema"], "tilewright.recheck/1");
        let solver = &json["solvers"][0];
        assert_eq!((&solver["name"], &solver["unknown"], &solver["disagree"]), (&"Z3".into(), &0.into(), &0.into()));
        assert!(solver["agree"].as_u64().unwrap() >= 3, "{json:#}");
        let manifest = manifest(&folder);
        assert_eq!(manifest["schema"], "tilewright.certificate/1");
        let ids: BTreeSet<&str> =
            manifest["obligations"].as_array().unwrap().iter().map(|row| row["obligation"].as_str().unwrap()).collect();
        assert!(["bounds", "injective", "tight", "overflow"].iter().all(|id| ids.contains(id)), "{ids:?}");
        for step in steps(&manifest) {
            assert_eq!(step["file"].is_null(), step["sha256"].is_null(), "{step}");
        }
    }
}

#[test]
fn a_certificate_of_a_program_rechecks_and_is_the_same_again() {
    let place = Place::new();
    let (check, compiled) = (place.path("check"), place.path("compiled"));
    let example = "examples/addone.py";
    let args = ["check", example, "--device", "none", "--allow-unknown", "--certificate", check.to_str().unwrap()];
    assert_eq!(tilewright(&args).code, Some(0));
    let run = tilewright(&["compile", example, "-o", compiled.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for folder in [&check, &compiled.join("certificate"), &compiled] {
        let (code, json) = recheck(folder);
        assert_eq!((code, &json["verdict"]), (Some(0), &Value::from("agree")), "{json:#}");
        assert!(json["obligations"]["proved"].as_u64().unwrap() > 10, "{json:#}");
    }
    let before = fs::read_to_string(check.join(MANIFEST)).unwrap();
    assert_eq!(tilewright(&args).code, Some(0), "an older certificate is replaced");
    let method =
        |text: &str| text.lines().filter(|line| !line.contains("\"method\"")).map(str::to_owned).collect::<Vec<_>>();
    let after = fs::read_to_string(check.join(MANIFEST)).unwrap();
    let without_digest =
        |text: &str| method(text).into_iter().filter(|line| !line.contains("\"digest\"")).collect::<Vec<_>>();
    assert_eq!(without_digest(&before), without_digest(&after), "whatever the order of threads");
}

#[test]
fn layouts_and_validations_have_certificates_too() {
    let place = Place::new();
    let program = "examples/nhwc_to_nchwc.tvm.py";
    for (name, args) in
        [("layout", vec!["layout", "f32[3,5]{1,0:T(2,2)}"]), ("validate", vec!["validate", program, program])]
    {
        let folder = place.path(name);
        let run = tilewright(&[args, vec!["--certificate", folder.to_str().unwrap()]].concat());
        assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
        let (code, json) = recheck(&folder);
        assert_eq!((code, &json["verdict"]), (Some(0), &Value::from("agree")), "{name}: {json:#}");
    }
}

#[test]
fn a_refuted_obligation_has_its_counterexample_and_the_solver_finds_it_again() {
    let place = Place::new();
    let (folder, run) = place.map("broken", "lambda i, j: [2*i + j]", "3,5");
    assert_eq!(run.code, Some(1));
    let manifest = manifest(&folder);
    let rows = manifest["obligations"].as_array().unwrap();
    let row = rows.iter().find(|row| row["obligation"] == "injective").unwrap();
    assert_eq!(row["verdict"], "refuted");
    assert_eq!(row["counterexample"]["indices"].as_array().unwrap().len(), 2);
    assert_eq!(row["steps"][0]["expected"], "sat");
    let (code, json) = recheck(&folder);
    assert_eq!((code, &json["obligations"]["refuted"]), (Some(0), &1.into()), "{json:#}");
}

#[test]
fn what_was_decided_without_a_solver_says_so() {
    let place = Place::new();
    let (folder, run) = place.map("swizzle", "lambda i, j: [i, j ^ (i % 8)]", "5,8");
    assert_eq!(run.code, Some(0));
    for row in manifest(&folder)["obligations"].as_array().unwrap() {
        let steps = row["steps"].as_array().unwrap();
        let asked = steps.iter().any(|step| step["rule"].as_str().unwrap().starts_with("derived"));
        assert_eq!(row["confirmed"], asked, "{row:#}");
    }
}

#[test]
fn every_tampering_is_found() {
    let place = Place::new();
    let (folder, _) = place.map("good", "lambda i, j: [i // 4, j, i % 4]", "17,9");
    let (first, text) = goal_with(&folder, &["(assert (not "]);
    let damaged = |name: &str, spoil: &dyn Fn(&Path), file: &str| {
        let spoilt = place.copy(&folder, name);
        spoil(&spoilt);
        let (code, json) = recheck(&spoilt);
        assert_eq!((code, &json["verdict"]), (Some(1), &Value::from("damaged")), "{name}: {json:#}");
        let files: Vec<&str> =
            json["damages"].as_array().unwrap().iter().map(|damage| damage["file"].as_str().unwrap()).collect();
        assert!(files.contains(&file), "{name}: {files:?}");
        assert!(json["goals"].as_array().unwrap().is_empty(), "nothing of it is asked");
    };
    let edit = |from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let text = fs::read_to_string(folder.join(MANIFEST)).unwrap();
            assert!(text.contains(from), "{from}");
            fs::write(folder.join(MANIFEST), text.replacen(from, to, 1)).unwrap();
        }
    };
    let negated = text.replace("(assert (not ", "(assert (and ");
    damaged("negated", &|spoilt| fs::write(spoilt.join(&first), &negated).unwrap(), &first);
    damaged("deleted", &|spoilt| fs::remove_file(spoilt.join(&first)).unwrap(), &first);
    damaged("extra", &|spoilt| fs::write(spoilt.join("extra.smt2"), &text).unwrap(), "extra.smt2");
    damaged("folder", &|spoilt| fs::write(spoilt.join("x"), "").unwrap(), "x");
    damaged("verdict", &edit("\"verdict\": \"proved\"", "\"verdict\": \"unknown\""), MANIFEST);
    damaged("subject", &edit("\"obligation\": \"bounds\"", "\"obligation\": \"overflow\""), MANIFEST);
    damaged("expected", &edit("\"expected\": \"unsat\"", "\"expected\": \"sat\""), MANIFEST);
    damaged("rule", &edit("\"rule\": \"", "\"rule\": \"not "), MANIFEST);
    damaged("row gone", &edit("\"steps\": [", "\"steps\": [], \"gone\": ["), MANIFEST);
    let truncate = |spoilt: &Path| {
        let text = fs::read_to_string(spoilt.join(MANIFEST)).unwrap();
        fs::write(spoilt.join(MANIFEST), &text[..text.len() / 2]).unwrap();
    };
    damaged("truncated", &truncate, MANIFEST);
    let hashes = |spoilt: &Path| {
        let manifest = fs::read_to_string(spoilt.join(MANIFEST)).unwrap();
        fs::write(spoilt.join(MANIFEST), manifest.replace(&hash(&text), &hash("another"))).unwrap();
    };
    damaged("hash", &hashes, &first);
    let outside = |spoilt: &Path| {
        let manifest = fs::read_to_string(spoilt.join(MANIFEST)).unwrap();
        seal(spoilt, &manifest.replace(&first, "../good.smt2"));
    };
    damaged("outside", &outside, "../good.smt2");
    #[cfg(unix)]
    damaged(
        "link",
        &|spoilt| {
            fs::remove_file(spoilt.join(&first)).unwrap();
            std::os::unix::fs::symlink(folder.join(&first), spoilt.join(&first)).unwrap();
        },
        &first,
    );
}

#[test]
fn a_forger_who_mends_the_hashes_is_found_by_the_solver() {
    let place = Place::new();
    let (folder, _) = place.map("good", "lambda i, j: [i // 4, j, i % 4]", "17,9");
    let (file, text) = goal_with(&folder, &["(assert (< v0 v1))", "(assert (not (< 0 v1)))"]);
    let last = text.lines().rev().find(|line| line.starts_with("(assert (not ")).unwrap();
    let goal = last.strip_prefix("(assert (not ").unwrap().strip_suffix("))").unwrap();
    let forgeries = [
        ("negated", text.replace(last, &format!("(assert {goal})"))),
        ("premise", text.replace("(assert (< v0 v1))", "(assert (< v1 v0))")),
        ("dropped", text.replace(last, "(assert true)")),
    ];
    for (name, forged) in forgeries {
        assert_ne!(forged, text);
        let spoilt = place.copy(&folder, name);
        forge(&spoilt, &file, &forged);
        let (code, json) = recheck(&spoilt);
        assert_eq!((code, &json["verdict"]), (Some(1), &Value::from("disagree")), "{name}: {json:#}");
        let rows = json["goals"].as_array().unwrap();
        let row = rows.iter().find(|row| row["answers"][0]["outcome"] == "disagree").unwrap();
        assert_eq!(row["file"], file.as_str());
        let said = tilewright(&["recheck", spoilt.to_str().unwrap(), "--solver", "z3"]);
        assert!(said.stdout.contains(&file) && said.stdout.contains("goal: "), "{}", said.stdout);
    }
    let spoilt = place.copy(&folder, "unreadable");
    forge(&spoilt, &file, &text.replace(last, "(assert (no-such-function v0))"));
    assert_eq!(recheck(&spoilt).0, Some(70), "what a solver cannot read is an internal error");
}

#[test]
fn only_a_folder_of_ours_is_written_to() {
    let place = Place::new();
    let mine = place.path("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("thesis.txt"), "years of work").unwrap();
    let (_, run) = place.map("mine", NCHW4C, "2,7,9,17");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("certificate"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(mine.join("thesis.txt")).unwrap(), "years of work");
    for (command, input) in [("layout", "f32[3,5]{1,0:T(2,2)}"), ("check", "examples/addone.py")] {
        let run = tilewright(&[command, input, "--certificate", mine.to_str().unwrap()]);
        assert_eq!(run.code, Some(2), "{command}: {run:?}");
    }
    let (folder, first) = place.map("again", NCHW4C, "2,7,9,17");
    let (_, second) = place.map("again", "lambda i: [i]", "5");
    assert_eq!((first.code, second.code), (Some(0), Some(0)));
    assert_eq!(recheck(&folder).0, Some(0), "no file of the older one is left");
}

#[test]
fn what_is_no_certificate_is_bad_input() {
    let place = Place::new();
    assert_eq!(tilewright(&["recheck", place.path("nothing").to_str().unwrap()]).code, Some(2));
    assert_eq!(tilewright(&["recheck", "examples"]).code, Some(2));
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(MANIFEST), r#"{"name": "an app", "display": "standalone"}"#).unwrap();
    assert_ne!(tilewright(&["recheck", other.to_str().unwrap()]).code, Some(0));
}

#[test]
fn a_solver_that_is_missing_is_named_and_is_no_agreement() {
    let place = Place::new();
    let (folder, _) = place.map("map", "lambda i: [i // 4, i % 4]", "17");
    let run = |solver: &str| {
        let mut command = common::command(&["recheck", folder.to_str().unwrap(), "--solver", solver]);
        Run::from(command.env("TILEWRIGHT_CVC5", "/no/such/cvc5").output().unwrap())
    };
    let all = run("all");
    assert_eq!(all.code, Some(0), "{all:?}");
    assert!(all.stdout.contains("cvc5: skipped") && all.stdout.contains("/no/such/cvc5"), "{}", all.stdout);
    assert_eq!(run("cvc5").code, Some(3));
}

/// A program that says that it is cvc5.
#[cfg(unix)]
fn pretender(place: &Place, name: &str, says: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = place.path(name);
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'This is cvc5 version 9.9.9'; exit 0; fi\ncat >/dev/null\n{says}\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[cfg(unix)]
#[test]
fn a_second_solver_that_contradicts_is_believed_to() {
    let place = Place::new();
    let (folder, _) = place.map("map", "lambda i: [i // 4, i % 4]", "17");
    for (name, says, code) in [
        ("agrees", "echo unsat", Some(0)),
        ("contradicts", "echo sat", Some(1)),
        ("shrugs", "echo unknown", Some(3)),
        ("dies", "exit 11", Some(3)),
        ("complains", "echo '(error \"what?\")'; echo unsat", Some(70)),
    ] {
        let program = pretender(&place, name, says);
        let mut command = common::command(&["recheck", folder.to_str().unwrap(), "--format", "json"]);
        let run = Run::from(command.env("TILEWRIGHT_CVC5", &program).output().unwrap());
        assert_eq!(run.code, code, "{name}: {run:?}");
        assert_eq!(run.json()["solvers"][1]["version"], "9.9.9");
    }
    let program = pretender(&place, "sleeps", "exec sleep 60");
    let mut command = common::command(&["recheck", folder.to_str().unwrap(), "--timeout", "0.1", "--solver", "cvc5"]);
    let start = std::time::Instant::now();
    let run = Run::from(command.env("TILEWRIGHT_CVC5", &program).output().unwrap());
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(start.elapsed().as_secs() < 45, "it is stopped");
}

#[test]
fn the_real_cvc5_agrees_where_it_is_installed() {
    let place = Place::new();
    let (folder, _) = place.map("map", NCHW4C, "n,h,w,c");
    let run = tilewright(&["recheck", folder.to_str().unwrap(), "--format", "json", "--allow-unknown"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let cvc5 = &run.json()["solvers"][1];
    assert_eq!(cvc5["disagree"], 0);
    assert!(cvc5["agree"].as_u64().unwrap() > 0 || cvc5["skipped"].is_string(), "{cvc5}");
}
