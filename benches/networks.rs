//! The time from an ONNX model to a proved plan and proved kernels, without running them; and the time of the kernels of each node on the first
//! OpenCL device. The models are the small one of the examples, and SqueezeNet if `scripts/onnx_models.sh` has installed it.
//!
//! `cargo bench --bench networks`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may fail, and says what it skips")]

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::network::lower::Network;
use tilewright::network::model::{Model, Value};
use tilewright::network::place::Operand;
use tilewright::network::profile::PROFILES;
use tilewright::network::{lower, onnx, scopes};
use tilewright::passes::Pipeline;
use tilewright::pipeline::{self, Program};
use tilewright::planner::{Strategy, plan_for};
use tilewright::runtime::{self, Expected, StepRun, run_graph};
use tilewright_device::{Session, devices, select};
use tilewright_ir::{MemoryPlan, Module, PrimFunc};
use tilewright_verify::{Config, Judge};

/// The models, and where they are.
const MODELS: [(&str, &str); 2] =
    [("tiny", "examples/models/tiny.onnx"), ("squeezenet", ".deps/onnx/light_squeezenet.onnx")];

/// The models that are installed.
fn installed() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    MODELS.into_iter().filter_map(|(name, path)| {
        let read = fs::read(format!("{}/{path}", env!("CARGO_MANIFEST_DIR")));
        read.inspect_err(|_| println!("skipped: {path} is not installed")).ok().map(|bytes| (name, bytes))
    })
}

/// A model as a graph with kernels and a plan.
fn planned(bytes: &[u8]) -> (Model, Network, MemoryPlan) {
    let profile = &PROFILES[1];
    let model = onnx::read(bytes).unwrap();
    let storage = scopes::collect_storage_info(&model, profile);
    let network = lower::lower(&model, &storage, profile).unwrap();
    let plan = plan_for(&network.graph.graph, Strategy::Best, profile.pool_rules()).unwrap();
    (model, network, plan)
}

/// Reads, lowers, plans and proves a model; returns the number of proved obligations.
fn proved(judge: &Judge, bytes: &[u8]) -> usize {
    let (profile, mut count) = (&PROFILES[1], 0);
    let (_, network, plan) = planned(bytes);
    for report in judge.check_plan_for(&network.graph.graph, &plan, profile.pool_rules()) {
        assert!(report.verdict.is_proved(), "{}", report.verdict);
        count += 1;
    }
    for program in &network.programs {
        let mut program = program.clone();
        program.func.attrs.texture_limits = Some(profile.limits);
        let lowering = pipeline::lower(&program, judge, false, &mut |_, _| {}).unwrap();
        assert!(lowering.is_complete());
        for report in lowering.steps.iter().flat_map(|step| &step.reports) {
            assert!(report.verdict.is_proved(), "{}", report.verdict);
            count += 1;
        }
    }
    count
}

fn models(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model to proved plan and kernels");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for (name, bytes) in installed() {
        group.bench_function(name, |bencher| bencher.iter(|| assert!(proved(&judge, black_box(&bytes)) > 0)));
    }
    group.finish();
}

/// A program after the passes, without proofs.
fn passed(program: &Program) -> PrimFunc {
    let mut func = program.func.clone();
    func.attrs.texture_limits = Some(PROFILES[1].limits);
    for call in Pipeline::default().calls(&func).unwrap() {
        if call.runs_on(&func) {
            func = (call.pass.run)(&call.ask(&func).unwrap()).unwrap().func;
        }
    }
    func
}

/// The time of all kernels, which the device measures; and that of each node, as a table.
fn nodes(criterion: &mut Criterion) {
    let found = devices().unwrap_or_default();
    let Some(session) = select(&found, None).ok().and_then(|info| Session::open(info).ok()) else {
        println!("skipped: there is no OpenCL device");
        return;
    };
    let mut group = criterion.benchmark_group("kernels of all nodes");
    group.sampling_mode(SamplingMode::Flat);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    for (name, bytes) in installed() {
        let (model, network, plan) = planned(&bytes);
        let module = Module { funcs: network.programs.iter().map(passed).collect() };
        let mut bound = runtime::Network::new(&network.graph, &plan, &module).unwrap();
        bound.expected = Expected::Nothing;
        let given = |value: &Value| Operand::plain(&value.shape).packed(|_| 0.5).map_err(|error| error.to_string());
        let inputs = network.inputs(&model, &given).unwrap();
        let run = || run_graph(&bound, &inputs, &session).unwrap().steps;
        let time = |steps: &[StepRun]| Duration::from_nanos(steps.iter().map(|step| step.nanoseconds).sum());
        group.bench_function(name, |bencher| bencher.iter_custom(|count| (0..count).map(|_| time(&run())).sum()));
        println!("{name}: milliseconds of each node on {}", session.info().label());
        for step in run() {
            println!("  {:9.3}  {}", Duration::from_nanos(step.nanoseconds).as_secs_f64() * 1e3, step.name);
        }
    }
    group.finish();
}

criterion_group!(benches, models, nodes);
criterion_main!(benches);
