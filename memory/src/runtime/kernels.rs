//! The kernels of all steps, on parts of the pools.

use std::collections::BTreeMap;
use std::ops::Range;

use tilewright_device::{BufferSpec, BuildOptions, Launch, Program, Session};
use tilewright_ir::{Diagnostic, PrimFunc, Region, validate};

use super::bind::Bound;
use super::{GraphFault, device, one};
use tilewright_compiler::codegen::{Arguments, Generated, Options, Origin, Placement, REPORT_BYTES, generate_with};

/// A function's kernels, built.
#[derive(Debug)]
struct Built {
    generated: Generated,
    program: Program,
}

/// The launches of all steps.
#[derive(Debug)]
pub(super) struct Kernels {
    built: Vec<Built>,
    /// In the order in which they run.
    pub(super) launches: Vec<Launch>,
    steps: Vec<Step>,
}

/// What a step is on the device.
#[derive(Debug)]
struct Step {
    /// Its function, as a place among those built.
    built: usize,
    /// Its launches.
    launches: Range<usize>,
    /// The place of its report in the memory, if it has one.
    report: Option<usize>,
}

impl Kernels {
    /// The program of each launch.
    pub(super) fn programs(&self) -> Vec<&Program> {
        let of_step = |step: &Step| vec![&self.built[step.built].program; step.launches.len()];
        self.steps.iter().flat_map(of_step).collect()
    }

    /// The launches of a step.
    pub(super) fn of_step(&self, number: usize) -> Range<usize> {
        self.steps[number].launches.clone()
    }

    /// The first access outside of a texture that a step reports.
    pub(super) fn outside(&self, contents: &[Option<Vec<u8>>], bound: &Bound<'_>) -> Option<String> {
        self.steps.iter().enumerate().find_map(|(number, step)| {
            let report = contents.get(step.report?)?.as_ref()?;
            let metadata = &self.built[step.built].generated.metadata;
            let found = metadata.outside_texture(report, &bound.symbols[number])?;
            Some(format!("step {number} `{}`: {found}", bound.network.graph.steps[number].name))
        })
    }
}

/// Generates and builds the kernels and places them; `memory` holds the pools, and gets what kernels need besides.
pub(super) fn prepare(
    bound: &Bound<'_>,
    memory: &mut Vec<BufferSpec>,
    session: &Session,
) -> Result<Kernels, GraphFault> {
    let mut all = Kernels { built: Vec::new(), launches: Vec::new(), steps: Vec::new() };
    let mut known: BTreeMap<*const PrimFunc, usize> = BTreeMap::new();
    for number in 0..bound.network.graph.steps.len() {
        let func = bound.network.functions[number];
        let place = if let Some(&place) = known.get(&std::ptr::from_ref(func)) {
            place
        } else {
            known.insert(func, all.built.len());
            all.built.push(build(func, session)?);
            all.built.len() - 1
        };
        let (own, report) = place_step(bound, number, &all.built[place].generated, memory).map_err(one)?;
        let start = all.launches.len();
        all.launches.extend(own);
        let launches = start..all.launches.len();
        if launches.is_empty() {
            let name = &bound.network.graph.steps[number].name;
            let message = format!("step {number} `{name}`: function `{}` has no kernels", func.name);
            return Err(one(Diagnostic::error("graph-function", None, message)));
        }
        all.steps.push(Step { built: place, launches, report });
    }
    Ok(all)
}

/// The kernels of a function, each of its buffers anywhere in memory, every texel tested.
fn build(func: &PrimFunc, session: &Session) -> Result<Built, GraphFault> {
    let valid = validate(func).map_err(GraphFault::Input)?;
    let options = Options { checked: true, placed: true };
    let generated = generate_with(valid, &options).map_err(GraphFault::Input)?;
    let options = BuildOptions { flags: generated.metadata.build_options.clone(), ..BuildOptions::default() };
    let program = session.build(&generated.source, &options).map_err(|error| device(&error))?;
    Ok(Built { generated, program })
}

/// The launches of a step: its parameters where the plan puts them, everything else in memory of its own.
fn place_step(
    bound: &Bound<'_>,
    number: usize,
    generated: &Generated,
    memory: &mut Vec<BufferSpec>,
) -> Result<(Vec<Launch>, Option<usize>), Diagnostic> {
    let (tensors, step) = (bound.arguments(number), &bound.network.graph.steps[number]);
    let arguments = Arguments { symbols: bound.symbols[number].clone(), ..Arguments::default() };
    let specs = generated.specs(&arguments)?;
    let mut placements = Vec::new();
    for (info, spec) in generated.metadata.buffers.iter().zip(specs) {
        let Some(param) = info.param else {
            placements.push(Placement { memory: memory.len(), origin: Origin::Start });
            memory.push(spec);
            continue;
        };
        let tensor = tensors[param];
        if info.written && param < step.reads.len() {
            let message =
                format!("step {number} `{}` writes `{}`, which it only reads in the graph", step.name, info.name);
            return Err(Diagnostic::error("graph-parameters", None, message));
        }
        let place = bound.network.plan.places[tensor];
        let origin = match place.region {
            Region::Bytes { offset, .. } => Origin::Byte(offset),
            Region::Texels { x, y, .. } => Origin::Texel { x, y },
        };
        placements.push(Placement { memory: place.pool, origin });
    }
    let report = generated.report_place().map(|_| memory.len());
    if report.is_some() {
        let name = format!("the report of step {number}");
        memory.push(BufferSpec::new(name, REPORT_BYTES).filled(0).read_back());
    }
    Ok((generated.launches(&arguments, &placements, report)?, report))
}
