//! `check` runs the kernels that `compile` writes: the texts are compared byte for byte.
//!
//! The texts that a device ran are recorded by the engine where it builds them, and those of `compile` are read from its
//! output folder, in another process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::tilewright;
use tilewright::codegen::generate;
use tilewright::harness::engine::{EngineOutcome, Status};
use tilewright::pipeline::outcome::CheckOutcome;
use tilewright::pipeline::{self, CODEGEN, DeviceChoice, Options};
use tilewright_verify::Obligation;

/// Files, each with the function that it holds, and whether the kernels access textures.
const EXAMPLES: [(&str, &str, bool); 7] = [
    ("examples/nhwc_to_nchwc.tvm.py", "bias_relu", false),
    ("examples/nhwc_to_nchw4c_symbolic.py", "", false),
    ("examples/tile_layout_padded.py", "", false),
    ("examples/two_d_separators.py", "", false),
    ("examples/addone.py", "", true),
    ("examples/separators_texture.py", "", true),
    ("examples/depthwise_texture.py", "", true),
];

/// The outcome of checking a text on the first device.
fn checked(text: &str) -> CheckOutcome {
    let options = Options {
        threads: 0,
        timeout: Duration::from_secs(10),
        seed: 0,
        shapes: Vec::new(),
        device: DeviceChoice::First,
        host: tilewright_device::DeviceHost::default(),
        assume: Vec::new(),
        limits: None,
        allow_unknown: false,
        pipeline: tilewright::passes::Pipeline::default(),
        record: false,
        function: None,
    };
    pipeline::check(text, &options, &mut |_, _| ()).unwrap_or_else(|fault| panic!("{fault:?}"))
}

/// The runs on the device.
fn runs(outcome: CheckOutcome) -> Vec<EngineOutcome> {
    let runs = outcome.functions.into_iter().flat_map(|function| function.run.engines);
    runs.filter(|run| run.device.is_some()).collect()
}

/// The kernels that `compile` writes, in the order of the names of their files.
fn written(file: &str, flags: &[&str], folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let run = tilewright(&[&["compile", file, "-o", folder], flags].concat());
    assert_eq!(run.code, Some(0), "{file}: {run:?}");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut kernels: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "cl")).collect();
    kernels.sort();
    kernels.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn the_kernels_that_check_runs_are_those_that_compile_writes() {
    let root = tempfile::tempdir().unwrap();
    for (number, (file, function, has_textures)) in EXAMPLES.into_iter().enumerate() {
        let mut runs = runs(checked(&std::fs::read_to_string(file).unwrap()));
        assert_eq!(runs.len(), 1, "{file} has one function: {runs:?}");
        let run = runs.remove(0);
        assert_eq!(run.status, Status::Agrees, "{file}: {}", run.detail);
        let plain = written(file, &[], &root.path().join(format!("{number}")));
        let tested = written(file, &["--checked"], &root.path().join(format!("{number}-checked")));
        assert!(plain.len() == 1 && plain[0].contains("kernel void ") && plain[0].contains(function), "{file}");
        // With textures both forms ran, the checked one first; without, there is one form.
        let expected = if has_textures { [tested, plain].concat() } else { plain.clone() };
        assert!(run.sources == expected, "{file}: ran {:#?}, wrote {expected:#?}", run.sources);
        assert_eq!(run.sources.len(), 1 + usize::from(has_textures), "{file}");
        assert_eq!(run.detail.contains("every place in a texture checked and as compiled"), has_textures, "{file}");
    }
}

/// The divisions are by 2 of what is never negative, by 3 of what is negative for `i < j`, and by 7 of any value.
const DIVISIONS: &str = "from tvm.script import tir as T

@T.prim_func
def divisions(A: T.Buffer((16,), \"int32\"), B: T.Buffer((16,), \"int32\")):
    for i in range(4):
        for j in range(4):
            B[i * 4 + j] = A[j // 2] + (i - j) // 3 + A[i] // 7
";

#[test]
fn a_division_that_is_not_proved_rounds_down_and_the_kernel_agrees() {
    let outcome = checked(DIVISIONS);
    let function = &outcome.functions[0];
    let step = function.steps.iter().find(|step| step.name == CODEGEN).expect("a division is proved");
    let rows: Vec<_> = step.reports.iter().map(|row| (row.obligation, row.subject.as_str())).collect();
    assert_eq!(rows, [(Obligation::Dividend, "j // 2")], "only what is proved is claimed");
    assert!(step.reports[0].verdict.is_proved());
    let runs = runs(outcome);
    assert_eq!((runs[0].status, runs[0].compared), (Status::Agrees, 16), "{}", runs[0].detail);
    let source = &runs[0].sources[0];
    for part in ["A[j / 2]", "tw_floordiv_int(i - j, 3)", "tw_floordiv_int(A[i], 7)"] {
        assert!(source.contains(part), "{part}: {source}");
    }
}

#[test]
fn without_a_judge_no_division_is_that_of_c() {
    let func = tilewright_script::read_module(DIVISIONS).unwrap().funcs.remove(0);
    let generated = generate(tilewright_ir::validate(&func).unwrap()).unwrap();
    assert!(generated.divisions.truncating.is_empty() && generated.divisions.calls.len() == 3);
    assert!(generated.metadata.nonnegative_dividends.is_empty());
    assert!(generated.source.contains("A[tw_floordiv_int(j, 2)]"), "{}", generated.source);
}
