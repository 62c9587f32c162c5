//! Schedules on blocks: each step of each program is proved, and its broken twins are not.
//!
//! `tests/block_schedule/*.txt` has Python texts with a function `main` in TVMScript and a schedule of it. Behind `-- wrong N` stand
//! changes (old text => new text) that break the program after step number N, as it is printed; each is compared with the program before
//! that step in every way that `validate` knows. Behind `-- refuted N OBLIGATION` stands what the judge says of a step that is wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::collections::BTreeMap;

use pairs::{change, is_proved, is_refuted, judge, open};
use tilewright::block_schedule::{BLOCK_PRIMITIVES, LOOP_PRIMITIVES};
use tilewright::pipeline::pair::{Given, GivenMap};
use tilewright::pipeline::{self, Program, pair};
use tilewright_ir::{BufferChange, Evidence, PrimFunc, validate};
use tilewright_script::print_func;
use tilewright_verify::{Judge, Premise, Report, Verdict};

/// A text, and what is expected of its steps.
struct Case {
    name: String,
    text: String,
    /// The number of a step from 1 on, and a change that breaks it.
    wrong: Vec<(usize, (String, String))>,
    /// The number of a step, the obligation that is refuted, and what the counterexample says.
    refuted: Vec<(usize, String, String)>,
}

fn cases(file: &str) -> Vec<Case> {
    let path = format!("{}/tests/block_schedule/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("\n== ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let (name, rest) = text.split_once('\n').unwrap();
    let mut parts = rest.split("\n-- ");
    let text = parts.next().unwrap().to_owned();
    let (mut wrong, mut refuted) = (Vec::new(), Vec::new());
    for part in parts {
        let (head, lines) = part.split_once('\n').unwrap_or((part, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let lines = lines.lines().filter(|line| !line.is_empty());
        match words[..] {
            ["wrong", step] => wrong.extend(lines.map(|line| (step.parse().unwrap(), change(line)))),
            ["refuted", step, obligation] => {
                refuted.extend(lines.map(|line| (step.parse().unwrap(), obligation.to_owned(), line.to_owned())));
            }
            _ => panic!("{name}: `{head}` is no part of a case"),
        }
    }
    Case { name: name.to_owned(), text, wrong, refuted }
}

impl Case {
    fn program(&self) -> Program {
        let mut read = pipeline::read(&self.text, None).unwrap_or_else(|found| panic!("{}: {found:#?}", self.name));
        assert_eq!(read.programs.len(), 1, "{} has one schedule", self.name);
        read.programs.remove(0)
    }

    /// The reports about each step.
    fn judged(&self, program: &Program, judge: &Judge) -> Vec<Vec<Report>> {
        let mut before = &program.func;
        let mut all = Vec::new();
        for step in &program.scheduled {
            validate(&step.func).unwrap_or_else(|found| panic!("{}, {}: {found:?}", self.name, step.name));
            // The program before is the same as itself.
            let same = judge.check_pass(before, before, &Evidence::default());
            assert!(is_proved(&same), "{}, {}: {:?}", self.name, step.name, open(&same));
            let mut reports = judge.check_pass(before, &step.func, &step.evidence);
            reports.extend(judge.check_blocks(&step.func, &tilewright::blocks::inverses(&step.func)));
            all.push(reports);
            before = &step.func;
        }
        all
    }

    /// Checks all of it; returns how many twins a run refuted.
    fn check(&self, judge: &Judge) -> usize {
        let program = self.program();
        let reports = self.judged(&program, judge);
        for (position, (step, reports)) in program.scheduled.iter().zip(&reports).enumerate() {
            let expected = self.refuted.iter().filter(|(number, ..)| *number == position + 1).collect::<Vec<_>>();
            if expected.is_empty() {
                let printed = print_func(&step.func);
                assert!(is_proved(reports), "{}, {}: {:#?}\n{printed}", self.name, step.name, open(reports));
            }
            for (_, obligation, text) in expected {
                let says = |report: &&Report| {
                    report.obligation.to_string() == *obligation
                        && matches!(&report.verdict, Verdict::Refuted(found) if found.to_string().contains(text.as_str()))
                };
                assert!(reports.iter().any(|one| says(&one)), "{}, {}: {:#?}", self.name, step.name, open(reports));
            }
        }
        self.wrong.iter().filter(|(step, change)| self.twin(&program, *step, change, judge)).count()
    }

    /// Checks that a broken twin is not proved; returns whether a run refuted it.
    fn twin(&self, program: &Program, step: usize, (old, new): &(String, String), judge: &Judge) -> bool {
        let funcs: Vec<&PrimFunc> =
            std::iter::once(&program.func).chain(program.scheduled.iter().map(|step| &step.func)).collect();
        let printed = print_func(funcs[step]);
        assert!(printed.contains(old.as_str()), "{}: no `{old}` in\n{printed}", self.name);
        let twin = tilewright_script::read_module(&printed.replacen(old.as_str(), new, 1));
        let twin = twin.unwrap_or_else(|found| panic!("{}: {found:?}", self.name)).funcs.remove(0);
        // Parameters that moved did so as the step claims.
        let claims = program.scheduled[step - 1].evidence.buffers.iter();
        let claims = claims.filter(|claim| claim.change == BufferChange::Layout);
        let given = claims.map(|claim| GivenMap { buffer: claim.before.name.clone(), text: claim.map.to_string() });
        let maps = given.collect::<Vec<_>>();
        // Floats may be in another order if the step needs it.
        let premises = Premise::of_pass(&program.scheduled[step - 1].evidence);
        let reassociate = premises.iter().any(|premise| matches!(premise, Premise::ReductionOrder(_)));
        let given = Given { maps: &maps, reassociate, ..Given::default() };
        let judged = pair::validate_given(funcs[step - 1], &twin, given, judge).unwrap();
        assert!(!is_proved(&judged.reports), "{}: `{new}` for `{old}` is proved", self.name);
        is_refuted(&judged.reports)
    }
}

/// Proves all steps of the programs of a file, and none of their broken twins. At least `least` of the twins are refuted by a run.
fn check(file: &str, least: usize) {
    let (judge, cases) = (judge(), cases(file));
    assert!(!cases.is_empty(), "{file} has no programs");
    assert!(cases.iter().map(|case| case.wrong.len()).sum::<usize>() >= 2, "{file} has too few twins");
    let n_refuted: usize = cases.iter().map(|case| case.check(&judge)).sum();
    assert!(n_refuted >= least, "{file}: {n_refuted} twins are refuted by a run");
}

macro_rules! files {
    ($($name:ident: $file:literal, $least:literal;)*) => {
        /// The files of programs.
        const FILES: &[&str] = &[$($file),*];
        $(
        #[test]
        fn $name() {
            check($file, $least);
        }
        )*
    };
}

files! {
    steps_on_loops_are_proved: "loops", 1;
    caches_are_proved: "caches", 1;
    blocks_are_computed_elsewhere: "compute", 1;
    blocks_are_joined: "inline", 1;
    layouts_are_proved_or_refuted: "layouts", 1;
    reductions_are_decomposed: "reductions", 1;
    domains_are_transformed: "domains", 1;
    reductions_are_factored: "rfactor", 6;
    einsums_are_padded: "pad", 5;
    hints_and_memory_change_nothing_else: "hints", 4;
}

/// The fewest broken twins of a primitive.
const LEAST: usize = 2;

#[test]
fn every_primitive_has_broken_twins() {
    let mut twins: BTreeMap<&str, usize> =
        LOOP_PRIMITIVES.into_iter().chain(BLOCK_PRIMITIVES).map(|name| (name, 0)).collect();
    for case in FILES.iter().flat_map(|file| cases(file)) {
        let program = case.program();
        for step in &program.scheduled {
            assert!(twins.contains_key(step.name), "`{}` is not in the table of primitives", step.name);
        }
        for (step, _) in &case.wrong {
            *twins.entry(program.scheduled[step - 1].name).or_default() += 1;
        }
    }
    let few: Vec<_> = twins.iter().filter(|(_, count)| **count < LEAST).collect();
    assert!(few.is_empty(), "primitives with fewer than {LEAST} broken twins: {few:?}");
}

/// A program that reduces `A` and `B` of a type by a statement, and a step on it.
fn reduced(ty: &str, update: &str, step: &str) -> String {
    format!(
        "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((9, 7), \"{ty}\"), B: T.Buffer((7, 5), \"{ty}\"), \
         C: T.Buffer((9, 5), \"{ty}\")):\n    for i, j, k in T.grid(9, 5, 7):\n        with T.block(\"C\"):\n            \
         v_i, v_j, v_k = T.axis.remap(\"SSR\", [i, j, k])\n            with T.init():\n                C[v_i, v_j] = T.{ty}(0)\n\
         \x20           {update}\n\nsch = tvm.tir.Schedule(main)\ni, j, k = sch.get_loops(\"C\")\n{step}\n"
    )
}

#[test]
fn what_cannot_be_padded_or_factored_is_an_error_at_the_call() {
    let product = "C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]";
    let one_padded = "C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[0, v_j]";
    let cases = [
        ("float32", product, "sch.pad_einsum(\"C\", [4, 4])", "has 3 axes"),
        ("float32", product, "sch.pad_einsum(\"C\", [4, 4, 0])", "has 3 axes"),
        ("float32", one_padded, "sch.pad_einsum(\"C\", [1, 1, 4])", "padding of axis `v_k` would change"),
        (
            "int32",
            "C[v_i, v_j] = T.max(C[v_i, v_j], A[v_i, v_k] * B[v_k, v_j])",
            "sch.pad_einsum(\"C\", [1, 1, 4])",
            "would change",
        ),
        (
            "int32",
            "C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] + B[v_k, v_j]",
            "sch.pad_einsum(\"C\", [4, 1, 1])",
            "no reduction",
        ),
        ("int32", "C[v_i, v_j] = C[v_i, v_j] + A[8 - v_i, v_k]", "sch.pad_einsum(\"C\", [4, 1, 1])", "neither an axis"),
        (
            "int32",
            "C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * A[v_i, 0]",
            "sch.pad_einsum(\"C\", [4, 1, 1])",
            "several indices",
        ),
        ("int32", product, "sch.split(k, [None, 2])\nsch.pad_einsum(\"C\", [4, 1, 1])", "it has a predicate"),
        ("float32", product, "sch.rfactor(i, 0)", "not a reduced loop"),
        ("float32", product, "sch.rfactor(k, 3)", "there is no axis 3"),
        ("float32", product, "sch.rfactor(sch.fuse(j, k), 0)", "a reduced axis and another one"),
        ("float32", product, "sch.decompose_reduction(\"C\", k)\nsch.rfactor(k, 0)", "no initialisation"),
        ("float32", "C[v_i, v_j] = C[v_i, v_j] - A[v_i, v_k]", "sch.rfactor(k, 0)", "no reduction of one element"),
        ("float32", product, "sch.parallel(k)\nsch.rfactor(k, 0)", "serial loop"),
    ];
    for (ty, update, step, message) in cases {
        let faults = pipeline::read(&reduced(ty, update, step), None).err().unwrap_or_default();
        let is_meant = |fault: &tilewright_ir::Diagnostic| {
            fault.code == "schedule"
                && fault.message.contains(message)
                && !fault.labels.is_empty()
                && fault.help.is_some()
        };
        assert!(faults.len() == 1 && is_meant(&faults[0]), "{step} of {update}: {faults:?}");
    }
    // What is not padded, and integers of which one factor is 0.
    for (ty, step) in [("float32", "sch.pad_einsum(\"C\", [4, 4, 1])"), ("int32", "sch.pad_einsum(\"C\", [1, 1, 4])")] {
        let read = pipeline::read(&reduced(ty, one_padded, step), None);
        assert!(read.is_ok(), "{step}: {read:?}");
    }
}

#[test]
fn a_block_that_leaves_values_of_its_axes_out_is_not_reindexed() {
    let product = "C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]";
    let reindexed = |step: &str| {
        let text = reduced("float32", product, &format!("{step}\nsch.reindex(\"C\", (\"write\", 0))"));
        pipeline::read(&text, None).map(drop)
    };
    // Five columns in tiles of four: the block has a predicate about its own axes.
    let ragged = "sch.transform_block_layout(\"C\", lambda i, j, k: [i, j // 4, j % 4, k])";
    let faults = reindexed(ragged).err().unwrap_or_default();
    let is_meant = |fault: &tilewright_ir::Diagnostic| {
        fault.message.contains("does not run for all values of its axes") && fault.help.is_some()
    };
    assert!(faults.len() == 1 && is_meant(&faults[0]), "{faults:?}");
    // A predicate about loops that were split only keeps them in range.
    for step in ["sch.split(j, [None, 2])", "sch.split(k, [None, 2])", "sch.split(sch.fuse(i, j), [None, 4])"] {
        assert!(reindexed(step).is_ok(), "{step}: {:?}", reindexed(step));
    }
}

/// Every primitive of the table is a method of a schedule in Python.
#[test]
fn every_primitive_is_a_method() {
    let text = "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((4,), \"int32\")):\n    A[0] = 1\n\n\
                sch = tvm.tir.Schedule(main)\n";
    let code_of = |name: &str| {
        let faults = pipeline::read(&format!("{text}sch.{name}(no_such_name)\nsch.{name}()\n"), None).unwrap_err();
        let faults =
            faults.into_iter().chain(pipeline::read(&format!("{text}sch.{name}()\n"), None).err().unwrap_or_default());
        faults.map(|fault| fault.code).collect::<Vec<_>>()
    };
    assert!(code_of("no_such_method").contains(&"unsupported-primitive"));
    for name in LOOP_PRIMITIVES.into_iter().chain(BLOCK_PRIMITIVES) {
        assert!(!code_of(name).contains(&"unsupported-primitive"), "{name}");
    }
}
