//! A planned graph on a device: every intermediate is compared with the interpreter, and a plan that lets tensors share
//! memory they both need is caught by the comparison.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::OnceLock;

use tilewright::graph::{self, GraphBuilder, NamedGraph};
use tilewright::harness::engine::EngineFault;
use tilewright::harness::inputs::Numbers;
use tilewright::pipeline::{self, Program};
use tilewright::planner::{Strategy, plan};
use tilewright::runtime::{GraphFault, GraphRun, Network, run_graph};
use tilewright_device::{Session, devices, select};
use tilewright_interp::Tensor;
use tilewright_ir::{MemoryPlan, Module, Region, Room, ScalarType, Scope, TensorRole};
use tilewright_verify::{Config, Judge, Report};

fn text(name: &str) -> String {
    std::fs::read_to_string(format!("{}/examples/graphs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The functions of the example, lowered; every step of the lowering proved.
fn functions() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| {
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        let funcs = tilewright_script::read_module(&text("block.py")).unwrap().funcs;
        let lower = |func| {
            let program = Program { func, definition: None, written: None, assumed: Vec::new(), scheduled: Vec::new() };
            let lowering =
                pipeline::lower(&program, &judge, false, &mut |_, _| {}).unwrap_or_else(|found| panic!("{found:?}"));
            assert!(lowering.is_complete(), "{}: {:#?}", program.func.name, lowering.steps);
            lowering.last().clone()
        };
        Module { funcs: funcs.into_iter().map(lower).collect() }
    })
}

fn block() -> NamedGraph {
    graph::read(&text("block.json")).unwrap().graph
}

fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let devices = devices().unwrap();
        Session::open(select(&devices, None).expect("an OpenCL device; `make test` installs PoCL")).unwrap()
    })
}

fn inputs(graph: &NamedGraph) -> Vec<Tensor> {
    let given = graph.graph.tensors.iter().filter(|tensor| tensor.role == TensorRole::Input);
    given.zip(0..).map(|(tensor, part)| Numbers::new(7, part).tensor(tensor.dtype, &tensor.shape).unwrap()).collect()
}

fn run(graph: &NamedGraph, plan: &MemoryPlan) -> Result<GraphRun, GraphFault> {
    let network = Network::new(graph, plan, functions()).unwrap();
    run_graph(&network, &inputs(graph), session())
}

fn judged(graph: &NamedGraph, plan: &MemoryPlan) -> Vec<Report> {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_plan(&graph.graph, plan)
}

fn at(graph: &NamedGraph, name: &str) -> usize {
    graph.graph.tensors.iter().position(|tensor| tensor.name == name).unwrap()
}

#[test]
fn a_planned_graph_runs_with_every_intermediate_compared() {
    let graph = block();
    for strategy in [Strategy::Compatible, Strategy::Best] {
        let plan = plan(&graph.graph, strategy).unwrap();
        for report in judged(&graph, &plan) {
            assert!(report.verdict.is_proved(), "{}: {}", report.obligation, report.verdict);
        }
        let run = run(&graph, &plan).unwrap_or_else(|fault| panic!("{strategy:?}: {fault:#?}"));
        assert!(run.agrees(), "{strategy:?}: {:?}", run.first_mismatch());
        assert_eq!(run.steps.iter().map(|step| step.compared.len()).collect::<Vec<_>>(), [1; 8]);
        let lanes: Vec<u64> = run.compared().map(|one| one.comparison.compared).collect();
        assert_eq!(lanes, [756, 108, 240, 240, 240, 200, 10, 10, 630, 90, 10], "{strategy:?}");
        assert!(run.steps.iter().all(|step| step.kernels == 1));
        assert_eq!(run.outputs.len(), 1);
    }
}

#[test]
fn a_texture_and_a_buffer_are_used_by_more_than_one_tensor() {
    let graph = block();
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let users = |pool: usize| {
        let own = |(tensor, place): &(&tilewright_ir::GraphTensor, &tilewright_ir::PoolPlace)| {
            place.pool == pool && tensor.view_of.is_none()
        };
        graph.graph.tensors.iter().zip(&plan.places).filter(own).count()
    };
    let shared = |texture: bool| {
        (0..plan.pools.len()).any(|pool| plan.pools[pool].scope.is_texture() == texture && users(pool) > 1)
    };
    assert!(shared(true) && shared(false), "{plan:#?}");
}

#[test]
fn the_second_run_uses_the_textures_of_the_first() {
    let graph = block();
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let info = session().info();
    let own = Session::open(info).unwrap();
    let network = Network::new(&graph, &plan, functions()).unwrap();
    let first = run_graph(&network, &inputs(&graph), &own).unwrap();
    let before = own.scratch_stats();
    assert!(before.created > 0 && before.bytes_in_use == 0, "{before:?}");
    let second = run_graph(&network, &inputs(&graph), &own).unwrap();
    let after = own.scratch_stats();
    assert_eq!((after.created, after.grown), (before.created, before.grown));
    assert_eq!(after.hits - before.hits, after.requests - before.requests);
    assert_eq!(first.outputs, second.outputs);
    assert!(second.agrees());
}

#[test]
fn a_plan_written_as_graph_json_and_read_back_runs_the_same() {
    let graph = block();
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let written = graph::write(&graph, Some(&plan)).unwrap();
    for field in ["storage_id", "storage_scope", "shape"] {
        assert!(written.contains(field), "{field}");
    }
    let graph::Document { graph: again, plan: Some(read) } = graph::read(&written).unwrap() else { panic!() };
    assert!(judged(&again, &read).iter().all(|report| report.verdict.is_proved()));
    let run = run(&again, &read).unwrap_or_else(|fault| panic!("{fault:#?}"));
    assert!(run.agrees(), "{:?}", run.first_mismatch());
    assert_eq!((run.steps.len(), run.compared().count()), (8, 11));
}

/// A graph of steps over buffers that are all alike, each run by the function that is called like it, and its functions.
fn chain(module: Module, steps: &[(&str, &[u64])]) -> (NamedGraph, Module) {
    let mut graph = GraphBuilder::new();
    for (number, (function, shape)) in steps.iter().enumerate() {
        let x = graph.input(format!("x{number}"), *shape, ScalarType::Float32, Scope::Global);
        let y = graph.tensor(format!("y{number}"), *shape, ScalarType::Float32, Scope::Global);
        let step = graph.step(format!("step{number}"), [x], [y]);
        graph.function(step, *function);
        graph.output(y);
    }
    (graph.finish().unwrap(), module)
}

fn runs(graph: &NamedGraph, module: &Module, session: &Session) -> GraphRun {
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let network = Network::new(graph, &plan, module).unwrap();
    let run = run_graph(&network, &inputs(graph), session).unwrap_or_else(|fault| panic!("{fault:#?}"));
    assert!(run.agrees(), "{:?}", run.first_mismatch());
    run
}

#[test]
fn a_step_of_several_kernels_has_scratch_textures_of_its_own() {
    let path = format!("{}/examples/addone.py", env!("CARGO_MANIFEST_DIR"));
    let read = pipeline::read(&std::fs::read_to_string(path).unwrap(), None).unwrap();
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let lowering = pipeline::lower(&read.programs[0], &judge, false, &mut |_, _| {}).unwrap();
    let func = lowering.last().clone();
    let name = func.name.clone();
    let steps: [(&str, &[u64]); 2] = [(&name, &[32, 32, 4]), (&name, &[32, 32, 4])];
    let (graph, module) = chain(Module { funcs: vec![func] }, &steps);
    let session = Session::open(session().info()).unwrap();
    let run = runs(&graph, &module, &session);
    assert_eq!(run.steps.iter().map(|step| step.kernels).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(session.scratch_stats().requests, 2);
}

#[test]
fn a_function_with_symbolic_extents_runs_in_several_shapes() {
    let text = "from tvm.script import tir as T\n\n@T.prim_func\ndef double(x: T.handle, y: T.handle):\n    \
        n = T.int32()\n    m = T.int32()\n    X = T.match_buffer(x, (m, n), \"float32\")\n    \
        Y = T.match_buffer(y, (m, n), \"float32\")\n    for i in range(m):\n        for j in range(n):\n            \
        Y[i, j] = X[i, j] * T.float32(2)\n";
    let func = tilewright_script::read_module(text).unwrap().funcs.remove(0);
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let lowering = pipeline::lower(
        &Program { func, definition: None, written: None, assumed: Vec::new(), scheduled: Vec::new() },
        &judge,
        false,
        &mut |_, _| {},
    )
    .unwrap();
    let module = Module { funcs: vec![lowering.last().clone()] };
    let (graph, module) = chain(module, &[("double", &[3, 5]), ("double", &[7, 2])]);
    let run = runs(&graph, &module, session());
    assert_eq!(run.outputs.iter().map(|output| output.shape().to_vec()).collect::<Vec<_>>(), [[3, 5], [7, 2]]);
    // Two parameters that do not agree on an extent.
    let mut wrong = graph;
    wrong.graph.tensors[1].shape = vec![5, 3];
    let plan = plan(&wrong.graph, Strategy::Best).unwrap();
    let network = Network::new(&wrong, &plan, &module).unwrap();
    let GraphFault::Input(found) = run_graph(&network, &inputs(&wrong), session()).unwrap_err() else { panic!() };
    assert!(found[0].to_string().contains("parameter `Y` has the shape [m, n], tensor `y0` [5, 3]"), "{}", found[0]);
}

/// Textures side by side in one pool, none of it at the start: what is not at its place shows.
#[test]
fn tensors_in_the_middle_of_a_texture_are_where_the_plan_says() {
    let graph = block();
    let mut plan = plan(&graph.graph, Strategy::Compatible).unwrap();
    for pool in plan.pools.iter_mut().filter(|pool| pool.scope.is_texture()) {
        let Room::Texels { width, height } = &mut pool.room else { panic!() };
        (*width, *height) = (*width + 5, *height + 7);
    }
    for place in &mut plan.places {
        if let Region::Texels { x, y, .. } = &mut place.region {
            (*x, *y) = (*x + 3, *y + 6);
        }
    }
    assert!(judged(&graph, &plan).iter().all(|report| report.verdict.is_proved()));
    let run = run(&graph, &plan).unwrap();
    assert!(run.agrees(), "{:?}", run.first_mismatch());
}

/// Puts one tensor where another lies, refuted by the judge; the first tensor that differs then.
fn clash(one: &str, other: &str) -> String {
    let graph = block();
    let mut plan = plan(&graph.graph, Strategy::Compatible).unwrap();
    let (from, to) = (at(&graph, one), at(&graph, other));
    let place = plan.places[to];
    for tensor in 0..graph.graph.tensors.len() {
        if tensor == from || graph.graph.tensors[tensor].view_of == Some(from) {
            plan.places[tensor].pool = place.pool;
            match (&mut plan.places[tensor].region, place.region) {
                (Region::Bytes { offset, .. }, Region::Bytes { offset: start, .. }) => *offset = start,
                (Region::Texels { x, y, .. }, Region::Texels { x: column, y: row, .. }) => (*x, *y) = (column, row),
                _ => panic!("two kinds"),
            }
        }
    }
    let reports = judged(&graph, &plan);
    assert_eq!(reports[0].verdict.word(), "refuted", "{one} at {other}");
    let run = run(&graph, &plan).unwrap_or_else(|fault| panic!("{one} at {other}: {fault:#?}"));
    assert!(!run.agrees(), "{one} at {other}");
    run.first_mismatch().unwrap().tensor.clone()
}

#[test]
fn a_plan_that_shares_memory_too_early_is_caught_by_the_comparison() {
    // `conv` is read again after `rectified` is written over it.
    assert_eq!(clash("rectified", "conv"), "sum");
    // Something lies on an input: seen at the end, where both live.
    assert_eq!(clash("result", "image"), "image");
    assert_eq!(clash("scores", "kernel"), "kernel");
}

#[test]
fn what_does_not_fit_together_is_refused_with_its_reason() {
    let graph = block();
    let right = plan(&graph.graph, Strategy::Compatible).unwrap();
    let told = |fault: GraphFault| match fault {
        GraphFault::Input(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        GraphFault::Engine(fault) => panic!("{fault:?}"),
    };
    let refused = |graph: &NamedGraph, plan: &MemoryPlan| told(run(graph, plan).unwrap_err());
    let conv = at(&graph, "conv");

    let mut wrong = graph.clone();
    wrong.graph.tensors[conv].scope = Scope::TextureWeight;
    assert!(
        refused(&wrong, &right).contains("parameter `conv` is in scope `texture`, tensor `conv` in `texture:weight`")
    );
    let mut wrong = graph.clone();
    wrong.graph.tensors[conv].shape = vec![1, 4, 3, 5, 4];
    assert!(
        refused(&wrong, &right)
            .contains("parameter `conv` has the shape [1, 3, 4, 5, 4], tensor `conv` [1, 4, 3, 5, 4]")
    );
    let mut wrong = graph.clone();
    wrong.graph.tensors[conv].dtype = tilewright_ir::ScalarType::Float16.into();
    assert!(refused(&wrong, &right).contains("parameter `conv` holds float32, tensor `conv` float16"));
    let mut wrong = graph.clone();
    wrong.graph.steps[2].reads.pop();
    assert!(refused(&wrong, &right).contains("has 3 parameters, the step reads and writes 2 tensors"));
    let mut wrong = graph.clone();
    wrong.graph.steps[3].name = "gelu".into();
    let found = Network::new(&wrong, &right, functions()).unwrap_err();
    assert!(found[0].to_string().contains("step 3 `gelu` is run by `gelu`, which there is not"), "{}", found[0]);

    let mut plan = right.clone();
    let Room::Texels { width, .. } = &mut plan.pools[right.places[conv].pool].room else { panic!() };
    *width = 4;
    assert!(refused(&graph, &plan).contains("does not fit its place"));
    let mut plan = right.clone();
    plan.places[conv].pool = 99;
    assert!(refused(&graph, &plan).contains("`conv` lies in pool 99, which there is not"));
    let mut plan = right.clone();
    plan.places.pop();
    assert!(refused(&graph, &plan).contains("the plan has places for 10 tensors of 11"));

    let network = Network::new(&graph, &right, functions()).unwrap();
    let mut few = inputs(&graph);
    few.pop();
    assert!(told(run_graph(&network, &few, session()).unwrap_err()).contains("1 inputs are given, the graph has 2"));
    let mut other = inputs(&graph);
    other[1] = Numbers::new(7, 1).tensor(other[1].dtype(), &[3, 10, 3]).unwrap();
    let text = told(run_graph(&network, &other, session()).unwrap_err());
    assert!(text.contains("`kernel` is float32[3, 3, 10], and float32[3, 10, 3] is given"), "{text}");
}

#[test]
fn a_function_that_traps_says_in_which_step() {
    let graph = block();
    let plan = plan(&graph.graph, Strategy::Compatible).unwrap();
    let network = Network::new(&graph, &plan, functions()).unwrap();
    let mut given = inputs(&graph);
    given[0] = Tensor::undefined(given[0].dtype(), given[0].shape()).unwrap();
    let fault = run_graph(&network, &given, session()).unwrap_err();
    let GraphFault::Engine(EngineFault::Trap { message, is_undefined_read: true }) = fault else { panic!("{fault:?}") };
    assert!(message.starts_with("step `pack` in the interpreter"), "{message}");
}
