//! A program after every pass, with the layout of its arguments at that point. All oracles of
//! passes build on it.

use std::sync::Arc;

use tilewright_interp::{Argument, Arguments, Config, Observers, Report, RunError, Tensor, run};
use tilewright_ir::convention::{PackedField, packed_fields};
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{Bindings, Buffer, Comparison, Evidence, Expr, PrimFunc, Scalar, ScalarType, validate};

use super::inputs::{arguments, extents, listed, written};
use super::oracle::{Failure, Outcome};
use super::program::ProgramCase;
use super::program::recipe::Primitive;
use tilewright_compiler::harness::compare::{self, Tolerance};
use tilewright_compiler::harness::layout::places;
use tilewright_compiler::passes::{DEFAULT_PIPELINE, PASSES, pass_by_name, pipeline_of};

/// Limit on the iterations of a program. A case that exceeds it is invalid, so programs that never
/// end do no harm.
pub const FUEL: u64 = 1 << 22;

/// A program and its versions after the passes of the default pipeline.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The program itself, then its version after each pass that changes it.
    pub links: Vec<ChainLink>,
    /// If a pass refuses the program: the pass and the code of its diagnostic. The chain ends
    /// before it.
    pub refused: Option<String>,
}

/// A version of the program.
#[derive(Clone, Debug)]
pub struct ChainLink {
    /// The pass that produced it; `input` for the program itself.
    pub pass: &'static str,
    /// The program.
    pub func: PrimFunc,
    /// For each parameter the position of its elements in memory.
    pub layouts: Vec<ArgumentLayout>,
    /// The values of the symbolic extents.
    pub symbols: Bindings,
    /// The parameters that `make_packed_api` has added: they stand behind the arguments and describe them.
    pub fields: Vec<PackedField>,
}

/// The positions of the elements of a parameter of the first program, in the memory of a later
/// version.
///
/// It follows from the evidence of the passes alone, so a pass that moves elements elsewhere than
/// it claims gives wrong results.
#[derive(Clone, Debug, Default)]
pub struct ArgumentLayout {
    /// The layout changes, in the order of the passes.
    steps: Vec<Arc<LayoutChange>>,
}

/// One change of layout.
#[derive(Debug)]
struct LayoutChange {
    /// The shape after the change.
    shape: Vec<u64>,
    /// For each element before the change, in row-major order, its number after it.
    to: Vec<usize>,
    /// Whether the new shape has elements that correspond to no element before.
    has_padding: bool,
    pad: Option<PaddingValue>,
}

/// The value that the padding elements hold.
#[derive(Clone, Copy, Debug)]
struct PaddingValue {
    value: Scalar,
    /// Whether the caller writes it before the program starts. Otherwise the program writes it.
    by_host: bool,
}

/// The contents of padding when a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaddingFill {
    /// Undefined: reading it is a trap.
    Undefined,
    /// This value in every byte.
    Byte(u8),
}

impl Chain {
    /// Runs a generated program through the default passes and two others, and makes arguments for it.
    ///
    /// # Errors
    /// [`Outcome::Invalid`] if the program cannot be built; [`Outcome::Failed`] if the evidence of
    /// a pass does not give the layout of an argument.
    pub fn of_case(case: &ProgramCase) -> Result<(Self, Arguments), Outcome> {
        let program = case.build().map_err(Outcome::Invalid)?;
        let inputs = arguments(&program.func, &program.symbols, program.seed).map_err(Outcome::Invalid)?;
        Ok((Self::with(ChainLink::first(program.func, program.symbols), Some(program.seed))?, inputs))
    }

    /// Runs a program through the default passes. Passes that do not apply, or that change nothing,
    /// add no link.
    ///
    /// # Errors
    /// [`Outcome::Failed`] if the evidence of a pass does not give the layout of an argument.
    pub fn new(first: ChainLink) -> Result<Self, Outcome> {
        Self::with(first, None)
    }

    /// [`Chain::new`], with two more passes that a seed chooses.
    fn with(first: ChainLink, seed: Option<u64>) -> Result<Self, Outcome> {
        let mut chain = Self { links: vec![first], refused: None };
        let names = passes_for(&chain.links[0].func, seed)?;
        for name in names {
            let last = &chain.links[chain.links.len() - 1];
            let Ok(pass) = pass_by_name(name) else { continue };
            if !(pass.wanted)(&last.func) {
                continue;
            }
            let after = match (pass.run)(&last.func) {
                Ok(after) => after,
                Err(_) if is_optional(name) => continue,
                Err(found) => {
                    chain.refused = Some(format!("{name} refuses: {}", found.first().map_or("", |first| first.code)));
                    break;
                }
            };
            if funcs_equal(&last.func, &after.func, true) {
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

/// The names of the passes for a function: those of the default pipeline, and with a seed two others, the first in front of the layouts and
/// the second behind everything else. So every pass of the table runs on some programs.
///
/// # Errors
/// [`Outcome::Invalid`] if a step of the schedule is no primitive.
pub fn passes_for(func: &PrimFunc, seed: Option<u64>) -> Result<Vec<&'static str>, Outcome> {
    let names = pipeline_of(func);
    let mut names =
        names.map_err(|found| Outcome::Invalid(found.first().map_or_else(String::new, ToString::to_string)))?;
    let others: Vec<&'static str> = PASSES.iter().map(|pass| pass.name).filter(|name| is_optional(name)).collect();
    let (Some(seed), n_others) = (seed, others.len()) else { return Ok(names) };
    let chosen = |number: u64| usize::try_from(number % u64::try_from(n_others.max(1)).unwrap_or(1)).unwrap_or(0);
    let layouts = names.iter().position(|name| DEFAULT_PIPELINE.contains(name)).unwrap_or(names.len());
    names.extend(others.get(chosen(seed / 16)));
    if let Some(early) = others.get(chosen(seed)) {
        names.insert(layouts, early);
    }
    Ok(names)
}

/// Whether a pass is in no default pipeline, and does something without being asked: no primitive of a schedule.
pub fn is_optional(name: &str) -> bool {
    let is_primitive = Primitive::ALL.iter().any(|primitive| primitive.name() == name);
    let is_on_request = ["reorder", "loop_kind"].contains(&name);
    name != "lower_blocks" && !is_primitive && !is_on_request && !DEFAULT_PIPELINE.contains(&name)
}

impl ChainLink {
    /// The first link of a chain: a program whose arguments have their own shapes.
    pub fn first(func: PrimFunc, symbols: Bindings) -> Self {
        let layouts = vec![ArgumentLayout::default(); func.params.len()];
        Self { pass: "input", func, layouts, symbols, fields: Vec::new() }
    }

    /// The link after a pass, with the layouts that the evidence of the pass claims.
    ///
    /// # Errors
    /// The evidence gives no position for an element, or no layout for an argument.
    pub fn then(&self, pass: &'static str, func: PrimFunc, evidence: &Evidence) -> Result<Self, String> {
        let is_packed = matches!(evidence.comparison, Comparison::Packed);
        let fields = if is_packed { packed_fields(&self.func) } else { self.fields.clone() };
        let n_new = if is_packed { fields.len() } else { 0 };
        if self.func.params.len() + n_new != func.params.len() {
            return Err(format!("{} parameters became {}", self.func.params.len(), func.params.len()));
        }
        let layouts = layouts_after(self, &func, evidence)?;
        Ok(Self { pass, func, layouts, symbols: self.symbols.clone(), fields })
    }
}

/// The layouts of the parameters after a pass.
fn layouts_after(last: &ChainLink, after: &PrimFunc, evidence: &Evidence) -> Result<Vec<ArgumentLayout>, String> {
    let mut layouts = Vec::new();
    for ((before, param), place) in last.func.params.iter().zip(&after.params).zip(&last.layouts) {
        let mut place = place.clone();
        if let (Some(before), Some(after)) = (last.func.param_buffer(before), after.param_buffer(param))
            && before != after
        {
            place.steps.push(Arc::new(layout_change(before, after, evidence, &last.symbols)?));
        }
        layouts.push(place);
    }
    Ok(layouts)
}

/// The change of layout that the evidence claims of one buffer.
fn layout_change(
    before: &Buffer,
    after: &Buffer,
    evidence: &Evidence,
    symbols: &Bindings,
) -> Result<LayoutChange, String> {
    let claim = evidence.buffers.iter().find(|claim| claim.before == *before && claim.after == *after);
    let claim = claim.ok_or_else(|| format!("`{before}` was replaced"))?;
    let fill = evidence.fills.iter().find(|fill| fill.buffer == claim.after);
    let constant = |value: &Expr| match value {
        Expr::Int { value, .. } => Some(Scalar::Int(*value)),
        Expr::Float { value, .. } => Some(Scalar::Float(*value)),
        Expr::Var(_)
        | Expr::Binary(..)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::Select(..)
        | Expr::IfThenElse(..)
        | Expr::Cast(..)
        | Expr::Ramp { .. }
        | Expr::Broadcast { .. }
        | Expr::Load { .. } => None,
    };
    // A fill with a value that is not constant counts as padding with unspecified contents.
    let pad = fill.and_then(|fill| Some(PaddingValue { value: constant(&fill.value)?, by_host: fill.by_host }));
    let (logical, shape) = (extents(before, symbols)?, extents(after, symbols)?);
    let to = places(&claim.map, &logical, &shape, symbols)?;
    // `to` has one entry for each element. If two elements share a position, this still counts both; such a map is
    // detected by `is_one_to_one`.
    let has_padding = shape.iter().product::<u64>() > to.len() as u64;
    Ok(LayoutChange { shape, to, has_padding, pad })
}

impl ArgumentLayout {
    /// Whether there is padding with unspecified contents.
    pub fn has_padding(&self) -> bool {
        self.steps.iter().any(|step| step.has_padding && step.pad.is_none())
    }

    /// Moves a tensor from the first program's shape to this layout. Padding gets `blank`, unless
    /// the caller has to give it a value.
    ///
    /// # Errors
    /// The tensor has another shape than the parameter.
    pub fn pack(&self, tensor: &Tensor, blank: PaddingFill) -> Result<Tensor, String> {
        let mut tensor = tensor.clone();
        for step in &self.steps {
            tensor = step.pack(&tensor, blank)?;
        }
        Ok(tensor)
    }

    /// Moves a tensor from this layout back to the first program's shape.
    ///
    /// # Errors
    /// Padding with a specified value holds another one.
    pub fn unpack(&self, tensor: &Tensor, shape: &[u64]) -> Result<Tensor, String> {
        let mut tensor = tensor.clone();
        for (number, step) in self.steps.iter().enumerate().rev() {
            // Checked before the change is undone: the padding of a layout is visible only in its own shape.
            if let Some(pad) = step.pad {
                step.padding_holds(&tensor, pad.value)?;
            }
            let shape = if number == 0 { shape } else { &self.steps[number - 1].shape };
            tensor = step.unpack(&tensor, shape)?;
        }
        Ok(tensor)
    }
}

impl LayoutChange {
    /// Moves a tensor through this change, elements together with their definedness.
    fn pack(&self, tensor: &Tensor, blank: PaddingFill) -> Result<Tensor, String> {
        let error = |error: tilewright_interp::TensorError| error.to_string();
        let dtype = tensor.dtype();
        let count = usize::try_from(self.shape.iter().product::<u64>()).map_err(|error| error.to_string())?;
        let (lanes, size) = sizes(tensor);
        let (mut bytes, mut defined) = match (self.pad.filter(|pad| pad.by_host), blank) {
            (Some(pad), _) => {
                let filled = Tensor::from_fn(dtype, &self.shape, |_| pad.value).map_err(error)?;
                (filled.bytes().to_vec(), vec![true; count * lanes])
            }
            (None, PaddingFill::Undefined) => (vec![0; count * size], vec![false; count * lanes]),
            (None, PaddingFill::Byte(byte)) if dtype.scalar == ScalarType::Bool => {
                (vec![byte & 1; count * size], vec![true; count * lanes])
            }
            (None, PaddingFill::Byte(byte)) => (vec![byte; count * size], vec![true; count * lanes]),
        };
        let given = tensor.defined();
        for (from, &to) in self.to.iter().enumerate() {
            bytes[to * size..(to + 1) * size].copy_from_slice(&tensor.bytes()[from * size..(from + 1) * size]);
            defined[to * lanes..(to + 1) * lanes].copy_from_slice(&given[from * lanes..(from + 1) * lanes]);
        }
        Tensor::from_parts(dtype, &self.shape, bytes, defined).map_err(error)
    }

    /// Undoes the change.
    fn unpack(&self, tensor: &Tensor, shape: &[u64]) -> Result<Tensor, String> {
        let (lanes, size) = sizes(tensor);
        let (mut bytes, mut defined) = (Vec::new(), Vec::new());
        let given = tensor.defined();
        for &from in &self.to {
            bytes.extend_from_slice(&tensor.bytes()[from * size..(from + 1) * size]);
            defined.extend_from_slice(&given[from * lanes..(from + 1) * lanes]);
        }
        Tensor::from_parts(tensor.dtype(), shape, bytes, defined).map_err(|error| error.to_string())
    }

    /// Checks that every padding lane holds `value`.
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

/// Number of lanes and size in bytes of an element.
fn sizes(tensor: &Tensor) -> (usize, usize) {
    let lanes = usize::from(tensor.dtype().lanes.max(1));
    (lanes, usize::try_from(tensor.dtype().bytes()).unwrap_or(lanes))
}

/// The interpreter's configuration for all oracles: one thread, reads of undefined elements trap,
/// and [`FUEL`] iterations at most.
pub fn interpreter_config() -> Config {
    Config {
        threads: 1,
        fuel: Some(FUEL),
        max_bytes: 1 << 28,
        observers: Observers { defined: true, race: false },
        ..Config::default()
    }
}

impl ChainLink {
    /// Whether no layout maps two elements of an argument to the same position.
    pub fn is_one_to_one(&self) -> bool {
        self.layouts.iter().flat_map(|place| &place.steps).all(|step| {
            let mut to = step.to.clone();
            to.sort_unstable();
            to.windows(2).all(|pair| pair[0] != pair[1])
        })
    }

    /// Moves the arguments of the first program to the layouts of this one.
    ///
    /// # Errors
    /// A tensor has another shape than its parameter.
    pub fn pack(&self, arguments: &Arguments, blank: PaddingFill) -> Result<Arguments, String> {
        let one = |(argument, place): (&Argument, &ArgumentLayout)| match argument {
            Argument::Tensor(tensor) => place.pack(tensor, blank).map(Argument::Tensor),
            Argument::Scalar(value) => Ok(Argument::Scalar(*value)),
        };
        let mut params = arguments.params.iter().zip(&self.layouts).map(one).collect::<Result<Vec<_>, _>>()?;
        let described = described(&self.func, &self.fields, arguments, &self.symbols);
        let described = described.ok_or("the description of a call has no value")?;
        params.extend(described.into_iter().map(|value| Argument::Scalar(Scalar::Int(value))));
        Ok(Arguments { params, symbols: listed(&self.symbols) })
    }

    /// The tensors that the program wrote, moved back to the first program's shapes; `None` for
    /// other parameters. `after` are the arguments after the run, `before` those of the first
    /// program.
    ///
    /// # Errors
    /// Padding with a specified value holds another one.
    pub fn unpack(&self, after: &Arguments, before: &Arguments, is_written: &[bool]) -> Result<Outputs, String> {
        let mut outputs = Vec::with_capacity(is_written.len());
        for (number, place) in self.layouts.iter().enumerate() {
            outputs.push(match (after.params.get(number), before.params.get(number), is_written.get(number)) {
                (Some(Argument::Tensor(tensor)), Some(Argument::Tensor(before)), Some(true)) => {
                    Some(place.unpack(tensor, before.shape())?)
                }
                _ => None,
            });
        }
        Ok(outputs)
    }

    /// Runs the program in the interpreter, which updates `arguments` in place.
    ///
    /// # Errors
    /// The program traps, the arguments do not fit, or the program does not validate.
    pub fn run(&self, arguments: &mut Arguments, how: &Config) -> Result<Report, RunError> {
        let valid = validate(&self.func).map_err(|mut found| RunError::Input(found.swap_remove(0)))?;
        run(valid, arguments, how)
    }
}

/// The parts of a right description of a call; `None` if one has no value.
pub fn described(func: &PrimFunc, fields: &[PackedField], inputs: &Arguments, symbols: &Bindings) -> Option<Vec<i128>> {
    let mut known = symbols.clone();
    for (param, argument) in func.params.iter().zip(&inputs.params) {
        if let Argument::Scalar(Scalar::Int(value)) = argument {
            known.insert(param.clone(), *value);
        }
    }
    let mut found = Vec::new();
    for field in fields {
        let value = field.value.as_ref().map_or(Some(3), |value| value.eval_index(&known).ok())?;
        known.insert(field.var.clone(), value);
        found.push(value);
    }
    Some(found)
}

/// The tensors that a program wrote, one element for each parameter; `None` for parameters that it
/// only reads.
pub type Outputs = Vec<Option<Tensor>>;

/// Compares outputs bit by bit; returns the number of compared lanes, and a description of the
/// first tensor that differs.
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

/// For each parameter whether the function writes it.
pub fn written_params(func: &PrimFunc) -> Vec<bool> {
    let written = written(func);
    let is_written = |param| func.param_buffer(param).is_some_and(|buffer| written.contains(&buffer.data));
    func.params.iter().map(is_written).collect()
}

/// The kind of a failed run, without details: the kind of the trap or the code of the diagnostic.
pub fn error_kind(error: &RunError) -> String {
    match error {
        RunError::Trap(trap) => format!("{:?}", trap.kind),
        RunError::Input(diagnostic) => diagnostic.code.to_owned(),
    }
}
