//! Builds the kernels of all steps and binds them to regions of the pools.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tilewright_device::{BufferSpec, BuildOptions, Launch, Program, Session};
use tilewright_ir::{Diagnostic, PrimFunc, Region, validate};

use super::bind::Bound;
use super::shipment::StepLaunches;
use super::{GraphFault, device_fault, input_fault};
use tilewright_compiler::codegen::{Arguments, Generated, Options, Origin, Placement, REPORT_BYTES, generate_with};

/// The generated code of a function, and the program built from it.
#[derive(Debug)]
struct Built {
    generated: Generated,
    program: Program,
}

/// The kernel launches of all steps.
#[derive(Debug)]
pub(super) struct Kernels {
    built: Vec<Built>,
    /// In execution order.
    pub(super) launches: Vec<Launch>,
    steps: Vec<StepKernels>,
}

/// The kernels of one step.
#[derive(Debug)]
struct StepKernels {
    /// Index of the function's program in `built`.
    built: usize,
    /// Its launches, as a range of [`Kernels::launches`].
    launches: Range<usize>,
    /// Index of the memory object that receives its report of accesses outside of textures, if it has one.
    report: Option<usize>,
}

impl Kernels {
    /// The program of each launch.
    pub(super) fn programs(&self) -> Vec<&Program> {
        let of_step = |step: &StepKernels| vec![&self.built[step.built].program; step.launches.len()];
        self.steps.iter().flat_map(of_step).collect()
    }

    /// The range of launches of a step.
    pub(super) fn launches_of(&self, number: usize) -> Range<usize> {
        self.steps[number].launches.clone()
    }

    /// The first access outside of a texture that a step reports, as a message.
    pub(super) fn outside_access(&self, contents: &[Option<Vec<u8>>], bound: &Bound<'_>) -> Option<String> {
        self.steps.iter().enumerate().find_map(|(number, step)| {
            let report = contents.get(step.report?)?.as_ref()?;
            let metadata = &self.built[step.built].generated.metadata;
            let found = metadata.outside_texture(report, &bound.symbols[number])?;
            Some(format!("step {number} `{}`: {found}", bound.network.graph.steps[number].name))
        })
    }
}

/// Generates, builds and places the kernels of all steps. `memory` holds the pools, and receives the temporary
/// buffers and reports that the kernels need besides.
pub(super) fn prepare(
    bound: &Bound<'_>,
    memory: &mut Vec<BufferSpec>,
    session: &Session,
) -> Result<Kernels, GraphFault> {
    let (programs, placed) = place(bound, memory, true)?;
    let mut all = Kernels { built: Vec::new(), launches: Vec::new(), steps: Vec::new() };
    for generated in programs {
        all.built.push(build(generated, session)?);
    }
    for step in placed {
        let start = all.launches.len();
        all.launches.extend(step.launches);
        all.steps.push(StepKernels { built: step.program, launches: start..all.launches.len(), report: step.report });
    }
    Ok(all)
}

/// Generates and places the kernels of all steps: one program for each function, and the launches of each step. Each buffer
/// of a kernel may lie anywhere in a pool (`placed`); if `checked`, every texel access is checked. If some step of a function works in
/// place, its kernels make no promise that pointers do not alias.
pub(super) fn place(
    bound: &Bound<'_>,
    memory: &mut Vec<BufferSpec>,
    checked: bool,
) -> Result<(Vec<Generated>, Vec<StepLaunches>), GraphFault> {
    let (mut programs, mut steps) = (Vec::new(), Vec::new());
    // Steps that run the same function share one program: building is what takes time.
    let mut known: BTreeMap<*const PrimFunc, usize> = BTreeMap::new();
    let n_steps = bound.network.graph.steps.len();
    let in_place: BTreeSet<*const PrimFunc> = (0..n_steps)
        .filter(|&number| is_in_place(bound, number))
        .map(|number| std::ptr::from_ref(bound.network.functions[number]))
        .collect();
    for number in 0..n_steps {
        let func = bound.network.functions[number];
        let program = if let Some(&place) = known.get(&std::ptr::from_ref(func)) {
            place
        } else {
            known.insert(func, programs.len());
            let valid = validate(func).map_err(GraphFault::Input)?;
            let options = Options { checked, placed: true, aliased: in_place.contains(&std::ptr::from_ref(func)) };
            programs.push(generate_with(valid, &options).map_err(GraphFault::Input)?);
            programs.len() - 1
        };
        let (launches, report) = place_step(bound, number, &programs[program], memory).map_err(input_fault)?;
        if launches.is_empty() {
            let name = &bound.network.graph.steps[number].name;
            let message = format!("step {number} `{name}`: function `{}` has no kernels", func.name);
            return Err(input_fault(Diagnostic::error("graph-function", None, message)));
        }
        steps.push(StepLaunches { program, launches, report });
    }
    Ok((programs, steps))
}

/// Whether a step writes memory that it reads.
fn is_in_place(bound: &Bound<'_>, number: usize) -> bool {
    let (step, places) = (&bound.network.graph.steps[number], &bound.network.plan.places);
    let overlap = |one: usize, other: usize| {
        places[one].pool == places[other].pool && places[one].region.overlaps(places[other].region)
    };
    step.writes.iter().any(|&written| step.reads.iter().any(|&read| overlap(read, written)))
}

/// Builds the kernels of a function.
fn build(generated: Generated, session: &Session) -> Result<Built, GraphFault> {
    let options = BuildOptions { flags: generated.metadata.build_options.clone(), ..BuildOptions::default() };
    let program = session.build(&generated.source, &options).map_err(|error| device_fault(&error))?;
    Ok(Built { generated, program })
}

/// The launches of a step, and the index of its report in `memory`. Parameters lie where the plan places them; other
/// buffers get memory of their own.
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
        // The plan keeps a tensor intact for its readers on the assumption that only its writer writes it.
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
    // Each step has a report of its own, so that a wrong access is attributed to a step.
    let report = generated.report_place().map(|_| memory.len());
    if report.is_some() {
        let name = format!("the report of step {number}");
        memory.push(BufferSpec::new(name, REPORT_BYTES).filled(0).read_back());
    }
    Ok((generated.launches(&arguments, &placements, report)?, report))
}
