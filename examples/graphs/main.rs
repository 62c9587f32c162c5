//! Plans the graph of `block.json`, proves the plan and the kernels of `block.py`, runs them on a device and compares every
//! intermediate: `cargo run --release --example graphs`.

use std::error::Error;
use std::io::{Write, stdout};

use tilewright::harness::inputs::Numbers;
use tilewright::pipeline::{self, Program};
use tilewright::planner::{Strategy, plan};
use tilewright::runtime::{Network, run_graph};
use tilewright_device::{Session, devices, select};
use tilewright_ir::{Diagnostic, Module, TensorRole};
use tilewright_verify::{Config, Judge};

const GRAPH: &str = include_str!("block.json");
const KERNELS: &str = include_str!("block.py");

/// All that is wrong, as one error.
#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
fn all(found: Vec<Diagnostic>) -> Box<dyn Error> {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into()
}

/// The kernels after the passes, each step of which is proved.
fn functions(judge: &Judge) -> Result<Module, Box<dyn Error>> {
    let mut funcs = Vec::new();
    for func in tilewright_script::read_module(KERNELS).map_err(all)?.funcs {
        let name = func.name.clone();
        let program = Program { func, definition: None };
        let lowering = pipeline::lower(&program, judge, false, &mut |_, _| {}).map_err(all)?;
        if !lowering.complete {
            return Err(format!("`{name}` is not proved").into());
        }
        funcs.push(lowering.last().clone());
    }
    Ok(Module { funcs })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = stdout();
    let judge = Judge::new(Config::default())?;
    let module = functions(&judge)?;
    let graph = tilewright::graph::read(GRAPH).map_err(all)?.graph;
    let plan = plan(&graph.graph, Strategy::Best)?;
    for report in judge.check_plan(&graph.graph, &plan) {
        writeln!(out, "{:13} {}", report.obligation, report.verdict)?;
        if !report.verdict.is_proved() {
            return Err("the plan is not proved".into());
        }
    }
    let devices = devices()?;
    let session = Session::open(select(&devices, None)?)?;
    let given = graph.graph.tensors.iter().filter(|tensor| tensor.role == TensorRole::Input);
    let inputs: Result<Vec<_>, _> =
        given.zip(0..).map(|(tensor, part)| Numbers::new(0, part).tensor(tensor.dtype, &tensor.shape)).collect();
    let network = Network::new(&graph, &plan, &module).map_err(all)?;
    let run = run_graph(&network, &inputs?, &session).map_err(|fault| format!("{fault:?}"))?;
    writeln!(out, "on {}, {} pools of {} bytes", session.info().label(), plan.pools.len(), run.pool_bytes)?;
    for step in &run.steps {
        for one in &step.compared {
            let (tensor, comparison) = (&one.tensor, &one.comparison);
            let (compared, differ) = (comparison.compared, comparison.mismatches);
            writeln!(out, "{:13} {tensor:10} {compared:4} values compared, {differ} differ", step.name)?;
        }
    }
    if run.agrees() { Ok(()) } else { Err(format!("{:?}", run.first_mismatch()).into()) }
}
