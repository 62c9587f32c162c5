//! `tilewright run`: interprets a program at one of its stages.

use std::fmt::Write as _;
use std::time::Instant;

use serde::Serialize;
use tilewright_interp::{
    Argument, Arguments, Config, Observers, RunError, Tensor, TrapKind, as_function, run as interpret,
};
use tilewright_ir::{Bindings, Diagnostic, PrimFunc, Scalar, Var, validate};
use tilewright_script::Source;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::{Global, Shapes, parse_integer};
use super::printer::Printer;
use crate::harness::arguments::{Draw, Inputs};
use crate::harness::compare;
use crate::harness::engine::{Param, StageProgram};
use crate::harness::inputs::{bind_by_equations, premises, satisfying};
use crate::harness::interpreter::{MAX_ITERATIONS, n_iterations};
use crate::harness::room;
use crate::json::{as_map, to_line};
use crate::passes;
use crate::pipeline::{self, Program, races};
use crate::report::lines::line;
use crate::report::text::Style;

/// Interpret a program and summarise or print what it computes
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright run examples/addone.py\n  tilewright run --stage flatten_buffer --seed 7 \
                        --print examples/nhwc_to_nchwc.tvm.py\n  tilewright run --shape n=3,c=10 \
                        examples/nhwc_to_nchw4c_symbolic.py\n\nInputs are made from the seed, in the shapes of the stage. \
                        A program that does what has no meaning (an index out of bounds, a value never written) ends \
                        with exit code 1."
)]
pub struct Args {
    /// A TVMScript or TE program; FILE::name picks one function, `-` is standard input
    #[arg(value_name = "FILE[::name]")]
    file: String,
    /// What to run: `definition` (TE only), `input`, or the name of a pass: the program after it
    #[arg(long, value_name = "STAGE")]
    stage: Option<String>,
    /// Print the values of the outputs
    #[arg(long)]
    print: bool,
    /// What input buffers hold
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Choice::Random)]
    inputs: Choice,
    /// What buffers that the program writes hold at the start [default: nothing; values if the program reads them first]
    #[arg(long, value_enum, value_name = "WHAT")]
    outputs: Option<Outputs>,
    #[command(flatten)]
    shapes: Shapes,
    /// Values of integers among the parameters; others come from the seed
    #[arg(long = "scalar", value_name = "x=3,y=-4", value_delimiter = ',', value_parser = parse_integer)]
    scalars: Vec<(String, i64)>,
}

/// What buffers that the program writes hold at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Outputs {
    /// Values from the seed
    Given,
    /// Nothing: to read them is a trap
    Undefined,
}

/// What input buffers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Choice {
    /// Numbers from the seed
    Random,
    /// Numbers from the seed, some of them NaN, infinite, -0.0 or of extreme size
    Special,
    /// Element `i` of parameter `p` holds `i + p / 16`, integers `16 * i + p`
    Positions,
    /// Floats are whole numbers from -2 to 2
    Whole,
    /// Numbers from the seed, with large diagonals of square matrices
    Diagonal,
    /// Numbers from the seed, integers 0 or 1
    Indices,
}

impl From<Choice> for Inputs {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Random => Self::Random,
            Choice::Special => Self::Special,
            Choice::Positions => Self::Positions,
            Choice::Whole => Self::Whole,
            Choice::Diagonal => Self::Diagonal,
            Choice::Indices => Self::Indices,
        }
    }
}

/// The document of `--format json`: schema `tilewright.run/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    seed: u64,
    inputs: &'static str,
    functions: Vec<FunctionRow>,
}

#[derive(Serialize)]
struct FunctionRow {
    name: String,
    stage: String,
    #[serde(serialize_with = "as_map")]
    shapes: Vec<(String, i128)>,
    iterations: u64,
    /// Whether iterations that may run at once touch the same element.
    races: Races,
    threads: usize,
    /// Time of the execution, without what fills the inputs.
    ms: f64,
    /// Time of filling the inputs.
    inputs_ms: f64,
    outputs: Vec<OutputRow>,
}

/// The knowledge about races in a run.
#[derive(Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Races {
    /// No iterations run at once.
    Impossible,
    /// The run was repeated with an observer of races, and found none.
    None,
    /// There are too many iterations to observe.
    NotLookedFor,
}

/// The content of a buffer that a function writes.
#[derive(Serialize)]
struct OutputRow {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    /// Number of lanes.
    elements: usize,
    /// Lanes that were written.
    defined: usize,
    /// FNV-1a, in hexadecimal, over the bytes of written lanes and over the flags that say which lanes were written.
    checksum: String,
    /// The values in row-major order, null where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Option<serde_json::Value>>>,
}

/// Interprets the functions of a program and prints what they compute.
///
/// # Errors
/// The input is bad, or the program traps.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let input = Input::read(&args.file)?;
    let source = &input.source;
    let fault = |faults| Failure::input(source, faults);
    let programs = pipeline::read(&source.text, input.function.as_deref()).map_err(fault)?;
    pipeline::known_symbols(&programs.programs, &args.shapes.shape).map_err(fault)?;
    printer.diagnostics(source, &programs.warnings);
    let stages = programs.programs.iter().map(|program| staged(program, args.stage.as_deref()));
    let stages = stages.collect::<Result<Vec<_>, _>>().map_err(fault)?;
    known_scalars(stages.iter().map(|(_, func)| func), &args.scalars).map_err(|found| fault(vec![found]))?;
    let mut functions = Vec::new();
    for (stage, func) in stages {
        functions.push(run_one(&func, stage, args, global, source)?);
    }
    let inputs = Inputs::from(args.inputs);
    if printer.is_json() {
        let schema = "tilewright.run/1";
        let document = Document { schema, file: &source.name, seed: global.seed, inputs: inputs.word(), functions };
        printer.json(&to_line(&document))?;
    } else {
        for function in &functions {
            printer.result(&text(function, (global.seed, inputs), printer.style()))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Checks that each given integer is a parameter of a function, in the range of its type.
fn known_scalars<'a>(funcs: impl Iterator<Item = &'a PrimFunc>, given: &[(String, i64)]) -> Result<(), Diagnostic> {
    let scalars: Vec<Var> = funcs.flat_map(integers).collect();
    for (name, value) in given {
        let error = |message: String| Diagnostic::error("unknown-scalar", None, message);
        let Some(var) = scalars.iter().find(|var| var.name() == name) else {
            let known: Vec<&str> = scalars.iter().map(Var::name).collect();
            let help =
                if known.is_empty() { "there are none".into() } else { format!("there is {}", known.join(", ")) };
            return Err(error(format!("`{name}` is no integer among the parameters")).with_help(help));
        };
        if !var.dtype().scalar.integer_range().is_some_and(|(low, high)| (low..=high).contains(&i128::from(*value))) {
            return Err(error(format!("`{name}` is {value}, which {} does not hold", var.dtype())));
        }
    }
    Ok(())
}

/// The integers among the parameters of a function that are no extents.
fn integers(func: &PrimFunc) -> Vec<Var> {
    let symbols = func.symbols();
    let is_integer = |var: &&Var| var.dtype().scalar.is_integer() && !symbols.contains(var);
    func.scalars().iter().filter(is_integer).cloned().collect()
}

/// The name of a stage, and the program at that stage. The passes before it are run without proofs.
fn staged(program: &Program, stage: Option<&str>) -> Result<(String, PrimFunc), Vec<Diagnostic>> {
    let default = if program.definition.is_some() { "definition" } else { "input" };
    let stage = stage.unwrap_or(default);
    match (stage, program.written()) {
        ("definition", Some(definition)) => return Ok((stage.into(), as_function(definition))),
        ("input" | "lower", _) => return Ok((stage.into(), program.func.clone())),
        _ => {}
    }
    let pipeline = passes::pipeline_of(program.scheduled_func())?;
    let Some(last) = pipeline.iter().rposition(|name| *name == stage) else {
        let message = format!("there is no stage `{stage}`");
        let names = pipeline.join(", ");
        let help = format!("the stages are definition (of a TE program), input, {names}");
        return Err(vec![Diagnostic::error("unknown-stage", None, message).with_help(help)]);
    };
    let mut func = program.scheduled_func().clone();
    for name in &pipeline[..=last] {
        let pass = passes::pass_by_name(name).map_err(|fault| vec![fault])?;
        func = (pass.run)(&func)?.func;
    }
    Ok((stage.to_owned(), func))
}

/// Runs one function on inputs from the seed.
fn run_one(
    func: &PrimFunc,
    stage: String,
    args: &Args,
    global: &Global,
    source: &Source,
) -> Result<FunctionRow, Failure> {
    let fault = |fault| Failure::input(source, vec![fault]);
    let symbols = func.symbols();
    let given = args.shapes.shape.iter().map(|(name, value)| (name.clone(), i128::from(*value)));
    let given: Vec<_> = given.filter(|(name, _)| symbols.iter().any(|symbol| symbol.name() == name)).collect();
    let mut bindings = satisfying(&symbols, &given, &premises(func), 0).map_err(fault)?.bindings;
    for var in integers(func) {
        if let Some((_, value)) = args.scalars.iter().find(|(name, _)| name == var.name()) {
            bindings.insert(var, i128::from(*value));
        }
    }
    bind_by_equations(&mut bindings, &integers(func), &premises(func));
    if n_iterations(&func.body, &bindings) > u128::from(MAX_ITERATIONS) {
        let text = format!("`{}` has loops of more than {MAX_ITERATIONS} iterations", func.name);
        return Err(fault(Diagnostic::error("too-long", None, text).with_help("give smaller extents")));
    }
    let valid = validate(func).map_err(|faults| Failure::input(source, faults))?;
    let config = Config { threads: global.threads.into(), fuel: Some(MAX_ITERATIONS), ..Config::default() };
    let draw = Draw { seed: global.seed, inputs: args.inputs.into() };
    let mut start = Instant::now();
    let mut given = arguments_of(func, &bindings, draw, args.outputs == Some(Outputs::Given)).map_err(fault)?;
    let mut inputs_ms = start.elapsed().as_secs_f64() * 1e3;
    start = Instant::now();
    let mut ran = interpret(valid, &mut given, &config);
    let reads_first = matches!(&ran, Err(RunError::Trap(trap)) if trap.kind == TrapKind::Undefined);
    if reads_first && args.outputs.is_none() {
        // Outputs that are read before they are written are inputs too.
        start = Instant::now();
        given = arguments_of(func, &bindings, draw, true).map_err(fault)?;
        inputs_ms += start.elapsed().as_secs_f64() * 1e3;
        start = Instant::now();
        ran = interpret(valid, &mut given, &config);
    }
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let trapped = |error| match error {
        RunError::Input(diagnostic) => fault(diagnostic),
        RunError::Trap(trap) => {
            let diagnostic = Box::new(Diagnostic::error("trap", trap.span, trap.to_string()));
            Failure::Trap { source: source.clone(), diagnostic }
        }
    };
    let report = ran.map_err(trapped)?;
    let races = if !races::runs_at_once(func) {
        Races::Impossible
    } else if report.iterations > races::MAX_ITERATIONS {
        Races::NotLookedFor
    } else {
        let mut again = arguments_of(func, &bindings, draw, true).map_err(fault)?;
        let observers = Observers { defined: false, race: true };
        interpret(valid, &mut again, &Config { observers, ..config }).map_err(trapped)?;
        Races::None
    };
    Ok(FunctionRow {
        name: func.name.clone(),
        stage,
        shapes: symbols.iter().map(|symbol| (symbol.name().to_owned(), bindings[symbol])).collect(),
        iterations: report.iterations,
        threads: report.threads,
        ms,
        inputs_ms,
        races,
        outputs: outputs(func, &given, args.print),
    })
}

/// The arguments of a function. Buffers that are only read hold what was chosen; buffers that are written are
/// undefined, unless `outputs_too`.
fn arguments_of(func: &PrimFunc, bindings: &Bindings, draw: Draw, outputs_too: bool) -> Result<Arguments, Diagnostic> {
    let program = StageProgram::Func(func);
    if let Some(why) = room::refusal(room::need(&program, bindings).interpreter, room::available()) {
        return Err(Diagnostic::error("memory", None, format!("`{}` cannot be run: {why}", func.name)));
    }
    let mut params = draw.arguments(&program, bindings, outputs_too)?;
    for param in &mut params {
        if let Argument::Tensor(tensor) = param {
            tensor.touch();
        }
    }
    let symbols = func.symbols().iter().map(|symbol| (symbol.clone(), bindings[symbol])).collect();
    Ok(Arguments { params, symbols })
}

/// The rows of the buffers that a function writes.
fn outputs(func: &PrimFunc, arguments: &Arguments, print: bool) -> Vec<OutputRow> {
    let program = StageProgram::Func(func);
    let params = program.params();
    let written = params.iter().enumerate().filter_map(|(position, param)| match param {
        Param::Buffer(buffer) if program.writes(buffer) => Some((buffer, arguments.tensor(position)?)),
        Param::Buffer(_) | Param::Scalar(_) => None,
    });
    let row = |(buffer, tensor): (&tilewright_ir::Buffer, &Tensor)| OutputRow {
        name: buffer.name.clone(),
        dtype: tensor.dtype().to_string(),
        shape: tensor.shape().to_vec(),
        elements: tensor.lane_count(),
        defined: tensor.defined().iter().filter(|defined| **defined).count(),
        checksum: format!("{:016x}", checksum(tensor)),
        values: print.then(|| (0..tensor.lane_count()).map(|lane| tensor.get(lane).map(value)).collect()),
    };
    written.map(row).collect()
}

/// A value as JSON: a number, or a text if JSON has no such number (infinities, NaN, more than 64 bits).
fn value(scalar: Scalar) -> serde_json::Value {
    match scalar {
        Scalar::Int(value) => i64::try_from(value).map_or_else(|_| value.to_string().into(), Into::into),
        Scalar::Float(value) if value.is_finite() => value.into(),
        Scalar::Float(value) => value.to_string().into(),
    }
}

/// FNV-1a with 64 bits (Fowler, Noll and Vo), which is the same on every machine. A lane that was not written adds only
/// its flag, because its bytes are arbitrary.
fn checksum(tensor: &Tensor) -> u64 {
    let lane_bytes = (tensor.bytes().len() / tensor.lane_count().max(1)).max(1);
    let defined = tensor.defined();
    let lanes = tensor.bytes().chunks(lane_bytes).zip(defined.iter());
    let bytes = lanes.flat_map(|(lane, &defined)| {
        let written = if defined { lane } else { &[] };
        written.iter().copied().chain(std::iter::once(u8::from(defined)))
    });
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn text(function: &FunctionRow, (seed, inputs): (u64, Inputs), style: Style) -> String {
    let mut title = format!("{} at {}", function.name, function.stage);
    for (position, (name, value)) in function.shapes.iter().enumerate() {
        title.push_str(if position == 0 { " with " } else { ", " });
        let _ = write!(title, "{name} = {value}");
    }
    let _ = write!(
        title,
        ": {} iterations on {} threads in {:.1} ms (seed {seed}",
        function.iterations, function.threads, function.ms
    );
    match inputs {
        Inputs::Random => title.push(')'),
        _ => _ = write!(title, ", inputs {})", inputs.word()),
    }
    let mut out = String::new();
    line(&mut out, &title, style);
    if function.races == Races::NotLookedFor {
        let text = format!("  races were not looked for: more than {} iterations", races::MAX_ITERATIONS);
        line(&mut out, &text, style);
    }
    for output in &function.outputs {
        let shape: Vec<String> = output.shape.iter().map(ToString::to_string).collect();
        let written = format!(
            "  {}: {}[{}], {} of {} elements written, checksum {}",
            output.name,
            output.dtype,
            shape.join(", "),
            output.defined,
            output.elements,
            output.checksum
        );
        line(&mut out, &written, style);
        if let Some(values) = &output.values {
            // One line for each row of the last axis; a scalar, which has no axis, is a row of one value.
            let row = output.shape.last().and_then(|&extent| usize::try_from(extent).ok()).unwrap_or(1).max(1);
            for values in values.chunks(row) {
                let shown: Vec<String> = values
                    .iter()
                    .map(|value| {
                        value.as_ref().map_or_else(|| compare::show(None), |value| value.to_string().replace('"', ""))
                    })
                    .collect();
                let _ = writeln!(out, "    {}", shown.join(" "));
            }
        }
    }
    out
}
