//! The models of PyPI's wheel `onnx`: read, lowered to graphs, planned, and the plans proved. `scripts/onnx_models.sh` installs
//! them; where that is not possible, the test says so and skips.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says what it skips")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use common::{adreno, lowered_without_proof, options};
use tilewright_ir::TensorRole;
use tilewright_network::{npy, onnx, reference};

/// The models; each has to be one of the nine. None if they cannot be installed.
fn models() -> &'static [PathBuf] {
    static MODELS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let installed = Command::new("sh").arg("scripts/onnx_models.sh").current_dir(root).output();
        if let Some(why) = match installed {
            Ok(run) if run.status.success() => None,
            Ok(run) => Some(String::from_utf8_lossy(&run.stderr).into_owned()),
            Err(error) => Some(error.to_string()),
        } {
            println!("skipped: scripts/onnx_models.sh cannot install the models: {why}");
            return Vec::new();
        }
        let folder = fs::read_dir(format!("{root}/.deps/onnx")).unwrap();
        let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "onnx"));
        paths.sort();
        assert_eq!(paths.len(), 9, "{paths:?}");
        paths
    })
}

#[test]
fn every_model_is_read_and_its_plan_is_proved() {
    let (profile, judge) = (adreno(), options().judge().unwrap());
    for path in models() {
        let model =
            onnx::read(&fs::read(path).unwrap()).unwrap_or_else(|faults| panic!("{}: {faults:?}", path.display()));
        let (model, network, plan) = lowered_without_proof(model, &profile);
        for report in judge.check_plan(&network.graph.graph, &plan) {
            assert!(report.verdict.is_proved(), "{}: {} {}", path.display(), report.obligation, report.verdict);
        }
        let textures = network.graph.graph.tensors.iter().filter(|tensor| tensor.scope.is_texture()).count();
        let steps = network.graph.graph.steps.len();
        println!(
            "{}: {} nodes, {steps} steps, {} kernels, {textures} textures",
            path.display(),
            model.nodes.len(),
            network.programs.len()
        );
        assert!(textures > 10 && steps > 10);
        assert!(network.graph.graph.tensors.iter().any(|tensor| tensor.role == TensorRole::Output));
    }
}

#[test]
fn the_reference_computes_the_expected_output_of_squeezenet() {
    let Some(path) = models().iter().find(|path| path.ends_with("light_squeezenet.onnx")) else { return };
    let model = onnx::read(&fs::read(path).unwrap()).unwrap();
    let expected = npy::read_message(&fs::read(path.with_file_name("light_squeezenet_output_0.pb")).unwrap()).unwrap();
    let count = 3 * 224 * 224;
    // The input that the expected output belongs to: n equidistant numbers from 0 to 1.
    #[expect(clippy::cast_possible_truncation, reason = "as NumPy rounds them")]
    let input = (0..count).map(|at| (f64::from(at) / f64::from(count)) as f32).collect();
    let values = reference::evaluate(&model, &[input]).unwrap();
    let found = values[model.outputs[0]].as_ref().unwrap();
    assert_eq!(found.len(), expected.elements.len());
    for (a, b) in expected.elements.iter().zip(found) {
        assert!((a - b).abs() <= 1e-7 + 1e-3 * a.abs(), "{a} {b}");
    }
}
