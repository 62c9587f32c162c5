//! The oracles of programs: they can fail, and they reach every pass.

use std::time::Instant;

use tilewright_interp::Arguments;
use tilewright_ir::Bindings;

use super::padding::independent;
use super::passes::same;
use super::{by_name, order, padding, passes};
use crate::bytes;
use crate::chain::{Chain, ChainLink};
use crate::inputs::arguments;
use crate::oracle::{Environment, Oracle, Outcome, Tally};
use crate::program::ProgramCase;

/// Runs the first cases of an oracle, as many as `FUZZ_CASES` says.
fn tally(name: &str, default: u64) -> Tally {
    let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default);
    let mut runner = (by_name(name).unwrap().make)(&Environment::default()).unwrap();
    let (mut tally, mut findings) = (Tally::default(), Vec::new());
    let start = Instant::now();
    for number in 0..cases {
        let found = runner.run(&[bytes::of_case(1, name, number)], &mut tally);
        findings.extend(found.into_iter().map(|(_, finding)| (number, finding)));
    }
    let millis = u64::try_from(start.elapsed().as_millis()).unwrap().max(1);
    eprintln!("{name}: {} cases a second\n{tally:#?}", tally.runs * 1000 / millis);
    let mut kinds: Vec<String> = Vec::new();
    for (number, finding) in &findings {
        if !kinds.contains(&finding.failure.what) {
            kinds.push(finding.failure.what.clone());
            let small = runner.reduce(finding.clone(), 400);
            eprintln!("FINDING {number}: {}\n{}\n{}", small.failure.what, small.failure.detail, small.text);
        }
    }
    assert!(findings.is_empty(), "{kinds:#?}");
    tally
}

#[test]
fn no_pass_changes_a_program_and_every_pass_is_looked_at() {
    let tally = tally(passes::Passes::NAME, 150);
    assert!(tally.valid_percent() >= 99.0 && tally.counts["values compared"] > 10_000);
    // Few programs are drawn with the step `allreduce`; tests/thread_sync.rs makes trees of all sizes.
    let drawn = tilewright_compiler::passes::DEFAULT_PIPELINE.iter().filter(|pass| **pass != "lower_thread_allreduce");
    for pass in drawn {
        assert!(tally.coverage.contains_key(&format!("pass:{pass}")), "{pass} changed nothing");
    }
    let undecided: u64 = tally.undecided.values().sum();
    assert!(undecided * 20 <= tally.runs, "{:?}", tally.undecided);
}

#[test]
fn the_order_of_iterations_makes_no_difference() {
    let tally = tally(order::Order::NAME, 60);
    assert!(tally.valid_percent() >= 99.0 && tally.counts["values compared"] > 10_000);
    assert!(tally.counts["loops spread over threads"] > 0, "no loop was spread");
}

#[test]
fn the_padding_makes_no_difference() {
    let tally = tally(padding::Padding::NAME, 60);
    assert!(tally.valid_percent() >= 99.0 && tally.counts["runs with poison"] > 60);
    let undecided: u64 = tally.undecided.values().sum();
    assert!(undecided * 20 <= tally.runs, "{:?}", tally.undecided);
}

fn script(body: &str) -> ProgramCase {
    let head = "A: T.Buffer((6,), \"int32\"), B: T.Buffer((6,), \"int32\")";
    let text = format!("from tvm.script import tir as T\n\n@T.prim_func\ndef main({head}):\n{body}");
    ProgramCase::tvmscript(text, 1)
}

#[test]
fn a_program_that_depends_on_the_order_is_seen() {
    // A program given as text may have a race and is then invalid; what can be detected is that the
    // order matters.
    let racing = script("    for i in T.parallel(6):\n        B[i // 2] = A[i]\n");
    let outcome = order::Order.check(&racing, &mut Tally::default());
    assert_eq!(outcome, Outcome::Invalid("a race".into()));
    let right = script("    for i in T.parallel(6):\n        B[i] = A[i]\n");
    assert_eq!(order::Order.check(&right, &mut Tally::default()), Outcome::Held);
}

#[test]
fn programs_that_have_no_meaning_are_no_cases() {
    for body in
        ["    for i in range(7):\n        B[i] = A[0]\n", "    for i in range(6):\n        B[i] = B[i] + A[i]\n"]
    {
        let outcome = passes::Passes.check(&script(body), &mut Tally::default());
        assert!(matches!(outcome, Outcome::Invalid(_)), "{outcome:?}");
    }
}

/// A chain of a program and the result of a wrong pass.
fn broken(before: &str, after: &str) -> (Chain, Arguments) {
    let func = script(before).build().unwrap().func;
    let inputs = arguments(&func, &Bindings::new(), 1).unwrap();
    let mut chain = Chain::new(ChainLink::first(func, Bindings::new())).unwrap();
    chain.links.truncate(1);
    chain.links.push(ChainLink { pass: "wrong", func: script(after).build().unwrap().func, ..chain.links[0].clone() });
    (chain, inputs)
}

#[test]
fn a_pass_that_is_wrong_is_named() {
    let before = "    for i in range(6):\n        B[i] = A[i]\n";
    let cases = [
        ("    for i in range(6):\n        B[i] = A[5 - i]\n", "wrong changes the result"),
        ("    for i in range(5):\n        B[i] = A[i]\n", "wrong changes the result"),
        ("    for i in range(6):\n        B[i] = A[i + 1]\n", "wrong makes it trap: OutOfBounds"),
    ];
    for (after, what) in cases {
        let (chain, inputs) = broken(before, after);
        match same(&chain, &inputs, &mut Tally::default()) {
            Err(Outcome::Failed(failure)) => assert_eq!(failure.what, what),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn only_the_limits_of_a_run_excuse_compute_at() {
    let before = "    for i in range(6):\n        B[i] = A[i]\n";
    let kept = |size: &str, index: &str| {
        format!(
            "    for i in range(6):\n        t = T.alloc_buffer(({size},), \"int32\")\n        t[{index}] = A[i]\n        B[i] = t[{index}]\n"
        )
    };
    let cases = [
        ("compute_at", kept("268435456", "i"), Err("after compute_at it takes more than a run may: Memory")),
        ("flatten_buffer", kept("268435456", "i"), Ok("flatten_buffer makes it trap: Memory")),
        ("compute_at", kept("i - 6", "i"), Ok("compute_at makes it trap: Size")),
        ("compute_at", kept("5", "i"), Ok("compute_at makes it trap: OutOfBounds")),
    ];
    for (pass, after, expected) in cases {
        let (mut chain, inputs) = broken(before, &after);
        chain.links[1].pass = pass;
        match (same(&chain, &inputs, &mut Tally::default()), expected) {
            (Err(Outcome::Failed(failure)), Ok(what)) => assert_eq!(failure.what, what),
            (Err(Outcome::Undecided(why)), Err(what)) => assert_eq!(why, what),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_program_that_depends_on_its_padding_is_seen() {
    let text = "from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((6,), \"int32\"), B: T.Buffer((6,), \"int32\")):
    T.func_attr({\"layout_transform_map\": {A.data: [lambda i: [i + 2]]}})
    for i in range(6):
        B[i] = A[i]
";
    let case = ProgramCase::tvmscript(text, 1);
    let func = case.build().unwrap_or_else(|why| panic!("{why}")).func;
    let inputs = arguments(&func, &Bindings::new(), 1).unwrap();
    let mut chain = Chain::new(ChainLink::first(func, Bindings::new())).unwrap();
    assert_eq!(independent(&chain, &inputs, &mut Tally::default()), Ok(2));
    // As if the pass had forgotten the two elements in front.
    let wrong = "    for i in range(6):\n        B[i] = A[i]\n".to_owned();
    let wrong = format!(
        "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((8,), \"int32\"), B: T.Buffer((6,), \"int32\")):\n{wrong}"
    );
    let wrong = ProgramCase::tvmscript(wrong, 1).build().unwrap().func;
    chain.links[1].func = wrong;
    match independent(&chain, &inputs, &mut Tally::default()) {
        Err(Outcome::Failed(failure)) => assert!(failure.what.contains("depends on the padding"), "{failure:?}"),
        other => panic!("{other:?}"),
    }
}
