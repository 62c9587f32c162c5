//! A program after every pass, with the places where its arguments lie then: what the oracles of passes have in common.

use std::sync::Arc;

use tilewright_interp::{Argument, Arguments, Config, Observers, Report, RunError, Tensor, run};
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{Bindings, Buffer, Evidence, Expr, PrimFunc, Scalar, ScalarType, validate};

use super::inputs::{arguments, extents, listed, written};
use super::oracle::{Failure, Outcome};
use super::program::ProgramCase;
use tilewright_compiler::harness::compare::{self, Tolerance};
use tilewright_compiler::harness::layout::places;
use tilewright_compiler::passes::{DEFAULT_PIPELINE, pass_by_name};

/// Most iterations of a program: one that never ends is no case.
pub const FUEL: u64 = 1 << 22;

/// A program and what the passes make of it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The program itself, then the program after each pass that changes it.
    pub links: Vec<Link>,
    /// The pass that refuses the program, and the code of its reason.
    pub refused: Option<String>,
}

/// A program after a pass.
#[derive(Clone, Debug)]
pub struct Link {
    /// The pass; `input` for the program itself.
    pub pass: &'static str,
    /// The program.
    pub func: PrimFunc,
    /// Where the elements of each parameter are.
    pub places: Vec<Place>,
    /// Values of the symbols.
    pub symbols: Bindings,
}

/// Where the elements of a parameter of the first program are in the memory of a later one.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// One layout after the other.
    steps: Vec<Arc<Step>>,
}

#[derive(Debug)]
struct Step {
    shape: Vec<u64>,
    /// For each element before the number of the one after.
    to: Vec<usize>,
    /// Whether there are elements that nothing is taken to.
    has_padding: bool,
    pad: Option<Pad>,
}

/// The value of the padding.
#[derive(Clone, Copy, Debug)]
struct Pad {
    value: Scalar,
    by_host: bool,
}

/// What padding holds when a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blank {
    /// Nothing: reading it is a trap.
    Undefined,
    /// This byte everywhere.
    Byte(u8),
}

impl Chain {
    /// A generated program through the default passes, and its arguments.
    ///
    /// # Errors
    /// It is no program that can be run, or a pass does not say where its arguments are.
    pub fn of_case(case: &ProgramCase) -> Result<(Self, Arguments), Outcome> {
        let program = case.build().map_err(Outcome::Invalid)?;
        let inputs = arguments(&program.func, &program.symbols, program.seed).map_err(Outcome::Invalid)?;
        Ok((Self::new(Link::first(program.func, program.symbols))?, inputs))
    }

    /// Runs the default passes.
    ///
    /// # Errors
    /// A pass does not say where its arguments are.
    pub fn new(first: Link) -> Result<Self, Outcome> {
        let mut chain = Self { links: vec![first], refused: None };
        for name in DEFAULT_PIPELINE {
            let last = &chain.links[chain.links.len() - 1];
            let Ok(pass) = pass_by_name(name) else { continue };
            if !(pass.wanted)(&last.func) {
                continue;
            }
            let after = match (pass.run)(&last.func) {
                Ok(after) => after,
                Err(found) => {
                    chain.refused = Some(format!("{name} refuses: {}", found.first().map_or("", |first| first.code)));
                    break;
                }
            };
            if funcs_equal(&last.func, &after.func, false) {
                continue;
            }
            let link = last
                .then(pass.name, after.func, &after.evidence)
                .map_err(|why| Failure::outcome(format!("{name} does not say where its arguments are"), why))?;
            chain.links.push(link);
        }
        Ok(chain)
    }
}

impl Link {
    /// A program by itself.
    pub fn first(func: PrimFunc, symbols: Bindings) -> Self {
        let places = vec![Place::default(); func.params.len()];
        Self { pass: "input", func, places, symbols }
    }

    /// What a pass makes of this one, if the evidence is to be believed.
    ///
    /// # Errors
    /// The evidence takes an element to no place, or does not say where the arguments are.
    pub fn then(&self, pass: &'static str, func: PrimFunc, evidence: &Evidence) -> Result<Self, String> {
        let places = moved(self, &func, evidence)?;
        Ok(Self { pass, func, places, symbols: self.symbols.clone() })
    }
}

/// Follows the parameters through one pass.
fn moved(last: &Link, after: &PrimFunc, evidence: &Evidence) -> Result<Vec<Place>, String> {
    if last.func.params.len() != after.params.len() {
        return Err(format!("{} parameters became {}", last.func.params.len(), after.params.len()));
    }
    let mut places = Vec::new();
    for ((before, param), place) in last.func.params.iter().zip(&after.params).zip(&last.places) {
        let mut place = place.clone();
        if let (Some(before), Some(after)) = (last.func.param_buffer(before), after.param_buffer(param))
            && before != after
        {
            place.steps.push(Arc::new(step(before, after, evidence, &last.symbols)?));
        }
        places.push(place);
    }
    Ok(places)
}

fn step(before: &Buffer, after: &Buffer, evidence: &Evidence, symbols: &Bindings) -> Result<Step, String> {
    let claim = evidence.buffers.iter().find(|claim| claim.before == *before && claim.after == *after);
    let claim = claim.ok_or_else(|| format!("`{before}` was replaced"))?;
    let fill = evidence.fills.iter().find(|fill| fill.buffer == claim.after);
    let constant = |value: &Expr| match value {
        Expr::Int { value, .. } => Some(Scalar::Int(*value)),
        Expr::Float { value, .. } => Some(Scalar::Float(*value)),
        _ => None,
    };
    let pad = fill.and_then(|fill| Some(Pad { value: constant(&fill.value)?, by_host: fill.by_host }));
    let (logical, shape) = (extents(before, symbols)?, extents(after, symbols)?);
    let to = places(&claim.map, &logical, &shape, symbols)?;
    let has_padding = shape.iter().product::<u64>() > to.len() as u64;
    Ok(Step { shape, to, has_padding, pad })
}

impl Place {
    /// Whether there is padding that holds no particular value.
    pub fn has_padding(&self) -> bool {
        self.steps.iter().any(|step| step.has_padding && step.pad.is_none())
    }

    /// A tensor in its place; what is padding is `blank`, unless it is the caller who gives it a value.
    ///
    /// # Errors
    /// The tensor has another shape.
    pub fn pack(&self, tensor: &Tensor, blank: Blank) -> Result<Tensor, String> {
        let mut tensor = tensor.clone();
        for step in &self.steps {
            tensor = step.pack(&tensor, blank)?;
        }
        Ok(tensor)
    }

    /// The tensor in its place, in the shape of the first program.
    ///
    /// # Errors
    /// The padding does not have the value that the program says.
    pub fn unpack(&self, tensor: &Tensor, shape: &[u64]) -> Result<Tensor, String> {
        let mut tensor = tensor.clone();
        for (number, step) in self.steps.iter().enumerate().rev() {
            if let Some(pad) = step.pad {
                step.padding_holds(&tensor, pad.value)?;
            }
            let shape = if number == 0 { shape } else { &self.steps[number - 1].shape };
            tensor = step.unpack(&tensor, shape)?;
        }
        Ok(tensor)
    }
}

impl Step {
    fn pack(&self, tensor: &Tensor, blank: Blank) -> Result<Tensor, String> {
        let error = |error: tilewright_interp::TensorError| error.to_string();
        let dtype = tensor.dtype();
        let count = usize::try_from(self.shape.iter().product::<u64>()).map_err(|error| error.to_string())?;
        let (lanes, size) = sizes(tensor);
        let (mut bytes, mut defined) = match (self.pad.filter(|pad| pad.by_host), blank) {
            (Some(pad), _) => {
                let filled = Tensor::from_fn(dtype, &self.shape, |_| pad.value).map_err(error)?;
                (filled.bytes().to_vec(), vec![true; count * lanes])
            }
            (None, Blank::Undefined) => (vec![0; count * size], vec![false; count * lanes]),
            (None, Blank::Byte(byte)) if dtype.scalar == ScalarType::Bool => {
                (vec![byte & 1; count * size], vec![true; count * lanes])
            }
            (None, Blank::Byte(byte)) => (vec![byte; count * size], vec![true; count * lanes]),
        };
        for (from, &to) in self.to.iter().enumerate() {
            bytes[to * size..(to + 1) * size].copy_from_slice(&tensor.bytes()[from * size..(from + 1) * size]);
            defined[to * lanes..(to + 1) * lanes].copy_from_slice(&tensor.defined()[from * lanes..(from + 1) * lanes]);
        }
        Tensor::from_parts(dtype, &self.shape, bytes, defined).map_err(error)
    }

    fn unpack(&self, tensor: &Tensor, shape: &[u64]) -> Result<Tensor, String> {
        let (lanes, size) = sizes(tensor);
        let (mut bytes, mut defined) = (Vec::new(), Vec::new());
        for &from in &self.to {
            bytes.extend_from_slice(&tensor.bytes()[from * size..(from + 1) * size]);
            defined.extend_from_slice(&tensor.defined()[from * lanes..(from + 1) * lanes]);
        }
        Tensor::from_parts(tensor.dtype(), shape, bytes, defined).map_err(|error| error.to_string())
    }

    fn padding_holds(&self, tensor: &Tensor, value: Scalar) -> Result<(), String> {
        let (lanes, _) = sizes(tensor);
        let mut is_padding = vec![true; tensor.lane_count() / lanes];
        self.to.iter().for_each(|&at| is_padding[at] = false);
        let holds = |lane: usize| tensor.get(lane).is_some_and(|found| found.same(value));
        match (0..tensor.lane_count()).find(|lane| is_padding[lane / lanes] && !holds(*lane)) {
            None => Ok(()),
            Some(lane) => Err(format!("the padding at {lane} is {:?}, not {value:?}", tensor.get(lane))),
        }
    }
}

/// Lanes and bytes of an element.
fn sizes(tensor: &Tensor) -> (usize, usize) {
    let lanes = usize::from(tensor.dtype().lanes.max(1));
    (lanes, usize::try_from(tensor.dtype().bytes()).unwrap_or(lanes))
}

/// How programs are run: on one thread, with definedness watched and a limit to the iterations.
pub fn how() -> Config {
    Config {
        threads: 1,
        fuel: Some(FUEL),
        max_bytes: 1 << 28,
        observers: Observers { defined: true, race: false },
        ..Config::default()
    }
}

impl Link {
    /// Whether no two elements of an argument are in one place.
    pub fn is_one_to_one(&self) -> bool {
        self.places.iter().flat_map(|place| &place.steps).all(|step| {
            let mut to = step.to.clone();
            to.sort_unstable();
            to.windows(2).all(|pair| pair[0] != pair[1])
        })
    }

    /// The arguments of the first program in their places.
    ///
    /// # Errors
    /// They do not fit.
    pub fn pack(&self, arguments: &Arguments, blank: Blank) -> Result<Arguments, String> {
        let one = |(argument, place): (&Argument, &Place)| match argument {
            Argument::Tensor(tensor) => place.pack(tensor, blank).map(Argument::Tensor),
            Argument::Scalar(value) => Ok(Argument::Scalar(*value)),
        };
        let params = arguments.params.iter().zip(&self.places).map(one).collect::<Result<_, _>>()?;
        Ok(Arguments { params, symbols: listed(&self.symbols) })
    }

    /// The tensors that the first program writes, in its shapes; none for the other parameters.
    ///
    /// # Errors
    /// The padding does not have the value that the program says.
    pub fn unpack(&self, after: &Arguments, before: &Arguments, is_written: &[bool]) -> Result<Outputs, String> {
        let mut outputs = Vec::with_capacity(is_written.len());
        for (number, place) in self.places.iter().enumerate() {
            outputs.push(match (after.params.get(number), before.params.get(number), is_written.get(number)) {
                (Some(Argument::Tensor(tensor)), Some(Argument::Tensor(before)), Some(true)) => {
                    Some(place.unpack(tensor, before.shape())?)
                }
                _ => None,
            });
        }
        Ok(outputs)
    }

    /// Runs the program. `arguments` are replaced by what it leaves in them.
    ///
    /// # Errors
    /// It traps, or the arguments do not fit; or it is no program.
    pub fn run(&self, arguments: &mut Arguments, how: &Config) -> Result<Report, RunError> {
        let valid = validate(&self.func).map_err(|mut found| RunError::Input(found.swap_remove(0)))?;
        run(valid, arguments, how)
    }
}

/// The tensors that a program left, one a parameter; none for what it does not write.
pub type Outputs = Vec<Option<Tensor>>;

/// Holds outputs against those expected: how many lanes, and how they differ, if they do.
pub fn differences(names: &PrimFunc, expected: &Outputs, got: &Outputs) -> (u64, Option<String>) {
    let mut lanes = 0;
    for ((param, want), got) in names.params.iter().zip(expected).zip(got) {
        let (Some(want), Some(got)) = (want, got) else { continue };
        lanes += want.lane_count() as u64;
        if want == got {
            continue;
        }
        let name = names.param_buffer(param).map_or(param.name(), |buffer| &buffer.name);
        match compare::tensors(name, want, got, Tolerance::EXACT) {
            Ok(found) if found.mismatches == 0 => {}
            Ok(found) => {
                let first = found.first.map_or_else(String::new, |first| first.to_string());
                return (lanes, Some(format!("{} of {} lanes differ: {first}", found.mismatches, found.compared)));
            }
            Err(why) => return (lanes, Some(why)),
        }
    }
    (lanes, None)
}

/// Which parameters a function writes.
pub fn is_written(func: &PrimFunc) -> Vec<bool> {
    let written = written(func);
    let is_written = |param| func.param_buffer(param).is_some_and(|buffer| written.contains(&buffer.data));
    func.params.iter().map(is_written).collect()
}

/// What a failed run is called: the kind of a trap, the code of a diagnostic.
pub fn kind_of(error: &RunError) -> String {
    match error {
        RunError::Trap(trap) => format!("{:?}", trap.kind),
        RunError::Input(diagnostic) => diagnostic.code.to_owned(),
    }
}
