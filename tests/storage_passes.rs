//! The passes that move values to other memory: what they make of each program is proved, and its broken twins are not.
//!
//! `tests/storage/PASS.txt` has the programs, in the form that `equivalence/pairs.rs` describes; the passes behind `-- first` run before.
//! `wrong` has changes of the program that the pass makes, as it is printed; each is compared with the program before in every way that
//! `validate` knows. `same` instead of `wrong` says that the pass leaves the program as it is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::time::Duration;

use pairs::{change, is_proved, is_refuted, judge, open, program, read};
use tilewright::harness::engine::Status;
use tilewright::passes::{PASSES_ATTRIBUTE, Rewritten, pass_by_name};
use tilewright::pipeline::{self, DeviceChoice, Options, pair};
use tilewright_ir::{AttrValue, Evidence, PrimFunc, validate};
use tilewright_script::print_func;
use tilewright_verify::Judge;

/// A program, and changes that break what the pass makes of it.
struct Case {
    name: String,
    before: PrimFunc,
    is_same: bool,
    wrong: Vec<(String, String)>,
}

fn cases(pass: &str) -> Vec<Case> {
    let path = format!("{}/tests/storage/{pass}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("\n== ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let (head, rest) = text.split_once("\n-- before\n").unwrap();
    let (name, params) = head.split_once('\n').unwrap();
    let (rest, is_same) = rest.split_once("\n-- same").map_or((rest, false), |(rest, _)| (rest, true));
    let (rest, wrong) = rest.split_once("\n-- wrong\n").unwrap_or((rest, ""));
    let (body, first) = rest.split_once("\n-- first\n").unwrap_or((rest, ""));
    let wrong = wrong.lines().filter(|line| !line.is_empty()).map(change).collect();
    let mut before = read(&program(params, body));
    for pass in first.lines().filter(|line| !line.is_empty()) {
        before = (pass_by_name(pass).unwrap().run)(&before).unwrap().func;
    }
    Case { name: name.to_owned(), before, is_same, wrong }
}

impl Case {
    /// The program after the pass, proved.
    fn run(&self, pass: &str, judge: &Judge) -> PrimFunc {
        let Self { name, before, .. } = self;
        let rewritten = (pass_by_name(pass).unwrap().run)(before);
        let Rewritten { func, evidence, .. } = rewritten.unwrap_or_else(|found| panic!("{name}: {found:?}"));
        validate(&func).unwrap_or_else(|found| panic!("{name}: {found:?}\n{}", print_func(&func)));
        let (old, new) = (print_func(before), print_func(&func));
        assert_eq!(old == new, self.is_same, "{name}:\n{new}");
        // The program before is the same as itself.
        let same = judge.check_pass(before, before, &Evidence::default());
        assert!(is_proved(&same), "{name}: {:?}", open(&same));
        let reports = judge.check_pass(before, &func, &evidence);
        assert!(is_proved(&reports), "{name}: {:#?}\n{new}", open(&reports));
        // The result is read back as the same program.
        assert_eq!(print_func(&read(&new)), new, "{name}");
        func
    }

    /// Checks the program that asks for the pass, with all other passes, the interpreter and a device.
    fn check(&self, pass: &str) {
        let names = AttrValue::List(vec![AttrValue::Str(pass.to_owned())]);
        let mut func = self.before.clone();
        func.attrs.other.push((PASSES_ATTRIBUTE.to_owned(), names));
        let options = Options {
            threads: 0,
            timeout: Duration::from_secs(10),
            seed: 0,
            shapes: Vec::new(),
            device: DeviceChoice::First,
            host: tilewright_device::DeviceHost::default(),
            assume: Vec::new(),
            pipeline: tilewright::passes::Pipeline::default(),
            limits: None,
            allow_unknown: false,
            record: false,
            function: None,
        };
        let name = &self.name;
        let outcome = pipeline::check(&print_func(&func), &options, &mut |_, _| ());
        let outcome = outcome.unwrap_or_else(|found| panic!("{name}: {found:?}"));
        let function = &outcome.functions[0];
        assert!(function.steps.iter().any(|step| step.name == pass), "{name}");
        for step in &function.steps {
            assert!(
                is_proved(&step.reports) || step.reports.is_empty(),
                "{name}, {}: {:?}",
                step.name,
                open(&step.reports)
            );
        }
        let mut n_agree = 0;
        for run in &function.run.engines {
            match run.status {
                Status::Agrees => n_agree += 1,
                Status::Reference => {}
                Status::Absent => println!("{name}: skipped on a device: {}", run.detail),
                Status::Mismatch | Status::Trap | Status::Failed | Status::Skipped | Status::NotRequested => {
                    panic!("{name}: {:?}: {}", run.status, run.detail);
                }
            }
        }
        assert!(n_agree > 0, "{name}");
    }

    /// Checks that the broken twins are not proved; returns how many a run refuted.
    fn twins(&self, after: &PrimFunc, judge: &Judge) -> usize {
        let printed = print_func(after);
        let mut n_refuted = 0;
        for (old, new) in &self.wrong {
            assert!(printed.contains(old.as_str()), "{}: no `{old}` in\n{printed}", self.name);
            let twin = read(&printed.replacen(old.as_str(), new, 1));
            let judged = pair::validate(&self.before, &twin, &[], judge).unwrap();
            assert!(!is_proved(&judged.reports), "{}: `{new}` for `{old}` is proved", self.name);
            n_refuted += usize::from(is_refuted(&judged.reports));
        }
        n_refuted
    }
}

/// Proves all programs of a pass, and none of their broken twins. At least `least` of the twins are refuted by a run.
fn check(pass: &str, least: usize) {
    let (judge, cases) = (judge(), cases(pass));
    assert!(cases.len() >= 3, "{pass} has {} programs", cases.len());
    assert!(cases.iter().map(|case| case.wrong.len()).sum::<usize>() >= 2);
    let n_refuted: usize = cases.iter().map(|case| case.twins(&case.run(pass, &judge), &judge)).sum();
    for case in &cases {
        case.check(pass);
    }
    assert!(n_refuted >= least, "{pass}: {n_refuted} twins are refuted by a run");
}

#[test]
fn compact_buffer_allocation_is_proved() {
    check("compact_buffer_allocation", 2);
}

#[test]
fn storage_rewrite_is_proved() {
    check("storage_rewrite", 2);
}

#[test]
fn inject_double_buffer_is_proved() {
    check("inject_double_buffer", 2);
}

#[test]
fn inject_virtual_thread_is_proved() {
    check("inject_virtual_thread", 2);
}

#[test]
fn vector_type_rewrite_is_proved() {
    check("vector_type_rewrite", 1);
}
