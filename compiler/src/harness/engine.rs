//! Engines, which run programs, and the outcome of a run.

use tilewright_interp::Arguments;
use tilewright_ir::{Bindings, Buffer, Definition, Expr, PrimFunc, StmtKind, Var};

use super::compare::{Comparison, Mismatch};

/// A program in one of its stages.
#[derive(Clone, Copy, Debug)]
pub enum StageProgram<'a> {
    /// The definition of a TE program, before it is lowered.
    Definition(&'a Definition),
    /// A function, before or after a pass.
    Func(&'a PrimFunc),
}

/// A parameter of a program.
#[derive(Clone, Debug)]
pub enum Param {
    /// A tensor.
    Buffer(Buffer),
    /// A scalar.
    Scalar(Var),
}

impl StageProgram<'_> {
    /// The parameters, in order.
    pub fn params(&self) -> Vec<Param> {
        match self {
            Self::Definition(definition) => definition.params.iter().cloned().map(Param::Buffer).collect(),
            Self::Func(func) => func
                .params
                .iter()
                .map(|var| func.param_buffer(var).cloned().map_or_else(|| Param::Scalar(var.clone()), Param::Buffer))
                .collect(),
        }
    }

    /// The symbolic extents, each once, in order of appearance.
    pub fn symbols(&self) -> Vec<Var> {
        match self {
            Self::Func(func) => func.symbols(),
            Self::Definition(definition) => {
                let mut symbols = Vec::new();
                for var in definition.params.iter().flat_map(|buffer| buffer.shape.iter().flat_map(Expr::vars)) {
                    if !symbols.contains(&var) {
                        symbols.push(var);
                    }
                }
                symbols
            }
        }
    }

    /// Whether the program writes the memory of a parameter.
    pub fn writes(&self, buffer: &Buffer) -> bool {
        match self {
            Self::Definition(definition) => definition.stage_of(buffer).is_some(),
            Self::Func(func) => {
                let mut found = false;
                func.body.walk(&mut |stmt| {
                    found |= matches!(&stmt.kind, StmtKind::Store { buffer: stored, .. } if stored.aliases(buffer));
                });
                found
            }
        }
    }
}

/// Why an engine returned no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineFault {
    /// The program did something undefined, such as an access out of bounds.
    Trap {
        /// The fault, as a sentence.
        message: String,
        /// Whether it read an element that was never written.
        is_undefined_read: bool,
    },
    /// The engine cannot run a program of this kind, or this machine cannot run one so large.
    Skipped(String),
    /// There is no such engine on this machine: no driver, no device of that name.
    Absent(String),
    /// A driver, the arguments or the code generator failed.
    Error(String),
    /// The process of a driver ended, or does not answer.
    Lost(String),
}

/// Something that runs programs.
pub trait Engine {
    /// The name of the engine, such as `interpreter`.
    fn name(&self) -> &'static str;

    /// The device that it runs on; `None` for an engine without devices.
    fn device(&self) -> Option<String>;

    /// Runs a program. `arguments` holds one argument for each parameter, in the layout that the program declares; the
    /// outputs are left there.
    ///
    /// # Errors
    /// The program did not run to its end. The contents of `arguments` are then unspecified.
    fn run(
        &self,
        program: &StageProgram<'_>,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault>;

    /// The engine with a compiler that does not optimise: a result that only the optimiser changes points to the driver, and so does a
    /// driver whose process ends only where it optimises. `None` if it has no such compiler.
    fn unoptimised(&self) -> Option<Box<dyn Engine + '_>> {
        None
    }
}

/// Remarks on a run that succeeded.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// One sentence for the report; may be empty.
    pub detail: String,
    /// Deviations from the program that every reader of the report should see.
    pub notes: Vec<String>,
    /// The source of each program that was built, in the order of the runs; empty for an engine that builds none.
    pub sources: Vec<String>,
    /// Iterations of loops, if the engine counts them.
    pub iterations: u64,
}

/// How a run of one stage on one engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ran first; the other runs are compared with it.
    Reference,
    /// It ran, and its outputs are those of the reference.
    Agrees,
    /// It ran, and its outputs differ from those of the reference.
    Mismatch,
    /// The program trapped: an access out of bounds, a read of a value never written, a race.
    Trap,
    /// It should have run and could not: a kernel does not build, or a driver fails.
    Failed,
    /// It was not run; the detail says why.
    Skipped,
    /// There was no engine to run it on; the detail says why.
    Absent,
    /// The caller asked for no device.
    NotRequested,
}

impl Status {
    /// The word for reports. An engine that is absent is reported as skipped.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Agrees => "agrees",
            Self::Mismatch => "mismatch",
            Self::Trap => "trap",
            Self::Failed => "failed",
            Self::Skipped | Self::Absent => "skipped",
            Self::NotRequested => "not requested",
        }
    }

    /// Whether the stage ran to its end, and its outputs agree if they were compared.
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Reference | Self::Agrees)
    }
}

/// The outcome of running one stage on one engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineOutcome {
    /// Name of the engine.
    pub engine: String,
    /// The name of the stage: `definition`, or the pass after which the program was run; `None` if no stage was to be
    /// run.
    pub stage: Option<String>,
    /// The device; `None` for an engine without devices.
    pub device: Option<String>,
    /// How the run ended.
    pub status: Status,
    /// Number of lanes of the outputs that were compared; 0 for the reference itself.
    pub compared: u64,
    /// Number of lanes that differ by more than the tolerance.
    pub mismatches: u64,
    /// The greatest distance, in units in the last place.
    pub max_ulp: u64,
    /// Wall-clock time of the run in milliseconds, without packing and comparison.
    pub ms: f64,
    /// Anything else to report, such as why it did not run; may be empty.
    pub detail: String,
    /// The first difference.
    pub first: Option<Mismatch>,
    /// Whether the same kernels agree where the compiler of the device does not optimise them, although their result is wrong or the
    /// driver's process ends where it does.
    pub agrees_unoptimised: bool,
    /// The source of each program that the device ran, in the order of the runs; empty for other engines.
    pub sources: Vec<String>,
}

impl EngineOutcome {
    /// The outcome of a run in which nothing was compared.
    pub fn new(engine: &str, stage: Option<&str>, device: Option<String>, status: Status, detail: String) -> Self {
        let (engine, stage) = (engine.to_owned(), stage.map(str::to_owned));
        Self {
            engine,
            stage,
            device,
            status,
            compared: 0,
            mismatches: 0,
            max_ulp: 0,
            ms: 0.0,
            detail,
            first: None,
            agrees_unoptimised: false,
            sources: Vec::new(),
        }
    }

    /// The outcome of a run without a result.
    pub fn fault(engine: &str, stage: &str, device: Option<String>, fault: EngineFault) -> Self {
        let (status, detail) = fault.into_status();
        Self::new(engine, Some(stage), device, status, detail)
    }

    /// The outcome of an engine that the caller did not ask for.
    pub fn not_requested(engine: &str) -> Self {
        Self::new(engine, None, None, Status::NotRequested, String::new())
    }

    /// Adds the comparison with the reference. If no lane was compared the run counts as skipped.
    #[must_use]
    pub fn compared(mut self, comparison: Comparison) -> Self {
        self.status = if comparison.mismatches > 0 { Status::Mismatch } else { Status::Agrees };
        if comparison.compared == 0 {
            // Without a compared lane there is no evidence of agreement.
            self.status = Status::Skipped;
            "nothing to compare: no output has a defined element".clone_into(&mut self.detail);
        }
        self.compared = comparison.compared;
        self.mismatches = comparison.mismatches;
        self.max_ulp = comparison.max_ulp;
        self.first = comparison.first;
        self
    }
}

impl EngineFault {
    /// The status of the run, and the reason.
    pub fn into_status(self) -> (Status, String) {
        match self {
            Self::Trap { message, .. } => (Status::Trap, message),
            Self::Skipped(why) => (Status::Skipped, why),
            Self::Absent(why) => (Status::Absent, why),
            Self::Error(why) | Self::Lost(why) => (Status::Failed, why),
        }
    }
}
