//! A refuted pair shows inputs with which `tilewright run` shows the difference again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod common;
#[path = "equivalence/pairs.rs"]
mod pairs;

use common::{Run, tilewright};
use pairs::{cases, judge, read, refutation};
use tilewright_verify::Counterexample;

/// The difference that a counterexample prints.
#[derive(Debug)]
enum Shown {
    /// An element, and its values before and after.
    Element { buffer: String, index: Vec<usize>, before: String, after: String },
    /// Only the program after traps, or only the one before.
    Trap { is_after: bool },
}

/// The options of `tilewright run`, and what both runs show.
fn shown(found: &Counterexample) -> (Vec<String>, Shown) {
    let rest = found.text.strip_prefix("both were run (seed ").unwrap();
    let (given, rest) = rest.split_once("): ").unwrap();
    let mut options = given.split(", ");
    let mut args = vec!["--seed".to_owned(), options.next().unwrap().to_owned()];
    args.extend(options.flat_map(|option| option.split(' ')).map(str::to_owned));
    let extents: Vec<String> = found.shape.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !extents.is_empty() {
        args.extend(["--shape".to_owned(), extents.join(",")]);
    }
    // Integers that were chosen so that the assertions hold.
    let chosen: Vec<String> = found.assignments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !chosen.is_empty() && !given.contains("--scalar") {
        args.extend(["--scalar".to_owned(), chosen.join(",")]);
    }
    if let Some(which) = rest.strip_prefix("the program ") {
        return (args, Shown::Trap { is_after: which.starts_with("after") });
    }
    let (element, rest) = rest.strip_prefix('`').unwrap().split_once("` is ").unwrap();
    let (buffer, index) = element.split_once('[').unwrap();
    let index = index.trim_end_matches(']').split(", ").filter(|at| !at.is_empty()).map(|at| at.parse().unwrap());
    let (before, rest) = rest.split_once(" before and ").unwrap();
    let (after, _) = rest.split_once(" after").unwrap();
    let [before, after] = [before, after].map(str::to_owned);
    (args, Shown::Element { buffer: buffer.to_owned(), index: index.collect(), before, after })
}

/// What `tilewright run` says of a program.
fn run(text: &str, args: &[String]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.py");
    std::fs::write(&file, format!("from tvm.script import tir as T\n\n{text}")).unwrap();
    let fixed = ["run", file.to_str().unwrap(), "--print", "--format", "json"];
    let args: Vec<&str> = fixed.into_iter().chain(args.iter().map(String::as_str)).collect();
    tilewright(&args)
}

/// Whether a run printed this value of an element; an element that was never written is null.
fn has(ran: &Run, buffer: &str, index: &[usize], value: &str) -> bool {
    let document = ran.json();
    let outputs = document["functions"][0]["outputs"].as_array().unwrap();
    let Some(output) = outputs.iter().find(|output| output["name"] == buffer) else { return false };
    let shape = output["shape"].as_array().unwrap();
    let extents = shape.iter().map(|extent| usize::try_from(extent.as_u64().unwrap()).unwrap());
    let at = index.iter().zip(extents).fold(0, |at, (index, extent)| at * extent + index);
    match &output["values"][at] {
        serde_json::Value::Null => value.parse::<f64>().is_err(),
        serde_json::Value::String(text) => text == value,
        number => value.parse::<f64>().is_ok_and(|value| number.as_f64() == Some(value)),
    }
}

/// Runs one broken twin of each pair as its counterexample says, and all twins that only special floats refute.
fn check(file: &str) -> usize {
    let judge = judge();
    let (mut n_run, mut wrong) = (0, Vec::new());
    for case in cases(file) {
        let (before, mut is_first) = (read(&case.before), true);
        for (variant, (name, twin)) in
            case.variants.iter().flat_map(|variant| variant.twins().map(move |twin| (variant, twin)))
        {
            let judged = variant.validate(&before, &read(&twin), &judge);
            let found = refutation(&judged.reports).unwrap_or_else(|| panic!("{name} is not refuted"));
            if !is_first && !found.text.contains("--inputs special") {
                continue;
            }
            is_first = false;
            n_run += 1;
            let (args, shown) = shown(found);
            let [one, two] = [&case.before, &twin].map(|text| run(text, &args));
            let is_shown = match &shown {
                Shown::Trap { is_after } => {
                    [one.code, two.code] == if *is_after { [Some(0), Some(1)] } else { [Some(1), Some(0)] }
                }
                Shown::Element { buffer, index, before, after } => {
                    [one.code, two.code] == [Some(0); 2]
                        && has(&one, buffer, index, before)
                        && has(&two, buffer, index, after)
                }
            };
            if !is_shown {
                wrong.push(format!("{name}: {args:?} do not show {shown:?}:\n{one:?}\n{two:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {n_run}:\n{}", wrong.len(), wrong.join("\n"));
    n_run
}

#[test]
fn a_run_shows_the_difference_again() {
    let n_run: usize =
        ["loops", "values", "storage", "structural", "reductions", "assertions"].into_iter().map(check).sum();
    assert!(n_run >= 105, "{n_run} twins");
}

#[test]
fn a_run_with_proposed_sizes_and_integers_shows_the_difference_again() {
    let n_run: usize = ["sums", "truths", "masks", "sizes"].into_iter().map(check).sum();
    assert!(n_run >= 26, "{n_run} twins");
}

#[test]
fn a_run_of_a_kernel_shows_the_difference_again() {
    assert!(check("polybench/dynamic") + check("polybench/mining") >= 5);
}
