//! Every pass has programs that it changes and that are proved, and broken twins of its results that are not.
//!
//! `tests/twins/PASS.txt` has them; `tests/schedule/PASS.txt` for the primitives of schedules, and `tests/storage/PASS.txt` for passes that
//! move values to other memory. In `tests/twins` the form is
//!
//! ```text
//! == a name
//! a: (n,), b: (n,)             the parameters, as in `equivalence/pairs.rs`
//! -- before
//! for i in range(n): ...
//! -- passes
//! split=i:4                    one on each line, as `opt -p` takes them; the last one is that of the file
//! loop_partition
//! -- wrong
//! A[i] => A[i + 1]             changes of the program that the last pass makes, as it is printed
//! ```

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use pairs::{change, is_proved, is_refuted, judge, open, program, read};
use tilewright::harness::engine::Status;
use tilewright::passes::{PASSES, PRESETS, PassCall, Pipeline, Rewritten, read_passes};
use tilewright::pipeline::pair::{self, Given, GivenMap};
use tilewright::pipeline::{self, DeviceChoice, Options};
use tilewright_ir::phases::synchronized;
use tilewright_ir::{BufferChange, Comparison, Evidence, PrimFunc, validate};
use tilewright_script::print_func;
use tilewright_verify::Judge;

/// A program, the passes that run on it, and changes that break what the last of them makes.
struct Case {
    name: String,
    before: String,
    passes: Vec<PassCall>,
    wrong: Vec<(String, String)>,
}

/// The folders below `tests` with twins: of passes, of primitives of schedules (`tests/schedule.rs`), and of passes that move values to
/// other memory (`tests/storage_passes.rs`).
const FOLDERS: [&str; 3] = ["twins", "schedule", "storage"];

fn text_of(folder: &str, pass: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder).join(format!("{pass}.txt"));
    std::fs::read_to_string(path).ok()
}

fn cases(pass: &str, text: &str) -> Vec<Case> {
    let lines = |part: &str| part.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let case = |text: &str| {
        let (head, rest) = text.split_once("\n-- before\n").unwrap();
        let (name, params) = head.split_once('\n').unwrap();
        let (body, rest) = rest.split_once("\n-- passes\n").unwrap();
        let (passes, wrong) = rest.split_once("\n-- wrong\n").unwrap();
        let wrong = lines(wrong).iter().map(|line| change(line)).collect();
        let passes: Vec<PassCall> = lines(passes).iter().flat_map(|line| read_passes(line).unwrap()).collect();
        assert_eq!(passes.last().map(|call| call.pass.name), Some(pass), "{name}");
        Case { name: format!("{pass}: {name}"), before: program(params, body), passes, wrong }
    };
    text.split("\n== ").skip(1).map(case).collect()
}

impl Case {
    /// Runs the passes, proves each step, and returns the program before the last one, the one after it, and its evidence.
    fn run(&self, judge: &Judge) -> (PrimFunc, PrimFunc, Evidence) {
        let mut func = read(&self.before);
        let mut last = None;
        for call in &self.passes {
            let (step, name) = (call.pass.name, &self.name);
            let before = call.ask(&func).unwrap();
            // Before this pass, threads wait for each other after each statement on shared memory.
            let before = if step == "thread_sync" { synchronized(&before) } else { before };
            let Rewritten { func: after, evidence, .. } =
                (call.pass.run)(&before).unwrap_or_else(|found| panic!("{name}, {step}: {}", found[0]));
            validate(&after).unwrap_or_else(|found| panic!("{name}, {step}: {found:?}\n{}", print_func(&after)));
            // The program before is the same as itself.
            let same = judge.check_pass(&before, &before, &Evidence::default());
            assert!(is_proved(&same), "{name}, {step}: {:?}", open(&same));
            let reports = judge.check_pass(&before, &after, &evidence);
            assert!(is_proved(&reports), "{name}, {step}: {:#?}\n{}", open(&reports), print_func(&after));
            last = Some((before, after.clone(), evidence));
            func = after;
        }
        last.unwrap()
    }

    /// Checks that no broken twin is proved; returns how many a run refuted.
    fn twins(&self, judge: &Judge) -> usize {
        let (before, after, evidence) = self.run(judge);
        let printed = print_func(&after);
        let moved = evidence.buffers.iter().filter(|claim| claim.change == BufferChange::Layout);
        let maps: Vec<GivenMap> =
            moved.map(|claim| GivenMap { buffer: claim.before.name.clone(), text: claim.map.to_string() }).collect();
        let mut n_refuted = 0;
        for (old, new) in &self.wrong {
            assert!(printed.contains(old.as_str()), "{}: no `{old}` in\n{printed}", self.name);
            let twin = read(&printed.replacen(old.as_str(), new, 1));
            if matches!(evidence.comparison, Comparison::Packed) {
                // The twin has more parameters, so the two are compared as the pass claims.
                let reports = judge.check_pass(&before, &twin, &evidence);
                assert!(!is_proved(&reports), "{}: `{new}` for `{old}` is proved", self.name);
                n_refuted += 1;
                continue;
            }
            let given = Given { maps: &maps, assumed: &[], reassociate: may_reassociate(&evidence) };
            let judged = pair::validate_given(&before, &twin, given, judge)
                .unwrap_or_else(|faults| panic!("{}: {faults:?}", self.name));
            assert!(!is_proved(&judged.reports), "{}: `{new}` for `{old}` is proved", self.name);
            n_refuted += usize::from(is_refuted(&judged.reports));
        }
        n_refuted
    }

    /// Checks the program with these passes from end to end: proofs, the interpreter after each pass, and the kernels on the first
    /// device, if there is one.
    fn end_to_end(&self) {
        // Kernels are generated from flat buffers.
        let flat = read_passes("flatten_buffer").unwrap();
        let options = options(Pipeline::Passes([self.passes.clone(), flat].concat()));
        let outcome = pipeline::check(&self.before, &options, &mut |_, _| ());
        let outcome = outcome.unwrap_or_else(|fault| panic!("{}: {fault:?}", self.name));
        let function = &outcome.functions[0];
        let reports: Vec<_> = function.reports().cloned().collect();
        assert!(is_proved(&reports), "{}: {:?}", self.name, open(&reports));
        let ran: Vec<&str> = function.steps.iter().map(|step| step.name.as_str()).collect();
        assert!(self.passes.iter().all(|call| ran.contains(&call.pass.name)), "{}: {ran:?}", self.name);
        for run in &function.run.engines {
            match run.status {
                Status::Reference | Status::Agrees => {}
                Status::Absent | Status::Skipped => eprintln!("skipped: {}: {run:?}", self.name),
                Status::NotRequested | Status::Mismatch | Status::Trap | Status::Failed => {
                    panic!("{}: {run:?}", self.name)
                }
            }
        }
    }
}

/// Whether a pass claims that floats may be combined in another order.
fn may_reassociate(evidence: &Evidence) -> bool {
    match &evidence.comparison {
        Comparison::Phases(claim) => may_reassociate(&claim.evidence),
        Comparison::Definitions(_) => true,
        _ => false,
    }
}

fn options(pipeline: Pipeline) -> Options {
    Options {
        threads: 0,
        timeout: Duration::from_secs(10),
        seed: 0,
        shapes: Vec::new(),
        device: DeviceChoice::First,
        host: tilewright_device::DeviceHost::default(),
        assume: Vec::new(),
        limits: None,
        allow_unknown: false,
        pipeline,
        record: false,
        function: None,
    }
}

/// Proves the programs of a pass and none of their twins, and runs them from end to end.
fn check(pass: &str) {
    let (judge, text) = (judge(), text_of("twins", pass).unwrap());
    let cases = cases(pass, &text);
    let n_refuted: usize = cases.iter().map(|case| case.twins(&judge)).sum();
    assert!(n_refuted > 0, "{pass}: no twin is refuted by a run");
    cases.iter().for_each(Case::end_to_end);
}

#[test]
fn every_preset_proves_the_examples() {
    for preset in PRESETS {
        for file in ["guarded_copy.tvm.py", "nhwc_to_nchwc.tvm.py", "product_blocks.tvm.py", "addone.py"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file);
            let text = std::fs::read_to_string(path).unwrap();
            let outcome = pipeline::check(&text, &options(Pipeline::Preset(preset)), &mut |_, _| ());
            let outcome = outcome.unwrap_or_else(|fault| panic!("{file}, {}: {fault:?}", preset.name));
            let reports: Vec<_> = outcome.reports().cloned().collect();
            assert!(is_proved(&reports), "{file}, {}: {:?}", preset.name, open(&reports));
            for run in outcome.functions.iter().flat_map(|function| &function.run.engines) {
                let is_wrong = matches!(run.status, Status::Mismatch | Status::Trap | Status::Failed);
                assert!(!is_wrong, "{file}, {}: {run:?}", preset.name);
            }
        }
    }
}

#[test]
fn no_pass_lacks_broken_twins() {
    let names: BTreeSet<String> = PASSES.iter().map(|pass| pass.name.to_owned()).collect();
    let mut found = BTreeSet::new();
    for name in &names {
        let texts = FOLDERS.iter().filter_map(|folder| text_of(folder, name)).collect::<Vec<_>>();
        let [text] = &texts[..] else { panic!("`{name}` has {} files in {FOLDERS:?}, not one", texts.len()) };
        let n_twins = text.lines().filter(|line| line.contains(" => ")).count();
        assert!(n_twins >= 2, "`{name}` has {n_twins} broken twins");
        found.insert(name.clone());
    }
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twins")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(found.contains(name), "tests/twins/{name}.txt is of no pass");
        assert!(TESTED.contains(&name), "the twins of `{name}` are not tested");
    }
}

macro_rules! tested {
    ($($pass:ident)*) => {
        /// The passes with a test below.
        const TESTED: &[&str] = &[$(stringify!($pass)),*];
        $(
            #[test]
            fn $pass() {
                check(stringify!($pass));
            }
        )*
    };
}

tested! {
    apply_buffer_transforms
    convert_ssa
    flatten_buffer
    loop_partition
    lower_blocks
    lower_texture
    lower_thread_allreduce
    make_packed_api
    narrow_index_types
    remove_no_op
    simplify
    split_host_device
    thread_sync
    tile_layout
    unroll_loop
    vectorize
}
