//! What runs programs, and what is said about a run.

use tilewright_interp::Arguments;
use tilewright_ir::{Bindings, Buffer, Definition, Expr, PrimFunc, StmtKind, Var};

use super::compare::{Comparison, Mismatch};

/// A program in one of its stages.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// What a TE program computes.
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

impl Program<'_> {
    /// The parameters in order.
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

    /// The symbolic extents, in order of appearance.
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

    /// Whether a parameter's memory is written.
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

/// Why an engine gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The program did what has no meaning.
    Trap {
        /// What it did.
        message: String,
        /// It read something that was never written.
        is_undefined_read: bool,
    },
    /// The engine cannot run such a program.
    Skipped(String),
    /// There is no such engine on this machine: no driver, no device of that name.
    Absent(String),
    /// Something is wrong: a driver, the arguments, the generator.
    Error(String),
}

/// Something that runs programs.
pub trait Engine {
    /// Its name, such as `interpreter`.
    fn name(&self) -> &'static str;

    /// The device it runs on, if it is one of several.
    fn device(&self) -> Option<String>;

    /// Runs a program; outputs are left in `arguments`, one a parameter, in the layout that the program says.
    ///
    /// # Errors
    /// No result; the arguments are then not to be looked at.
    fn run(&self, program: &Program<'_>, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, Fault>;
}

/// What is worth knowing of a run that went well.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// One sentence for the report; may be empty.
    pub detail: String,
    /// What is not as the program says; everybody should see it.
    pub notes: Vec<String>,
}

/// How a run of one stage on one engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ran first: the other runs are compared with it.
    Reference,
    /// It ran, and its outputs are those of the reference.
    Agrees,
    /// It ran, and its outputs differ from those of the reference.
    Mismatch,
    /// The program trapped: an access out of bounds, a read of a value never written, a race.
    Trap,
    /// It could not be run though it should have been: a kernel that does not build, a driver's error.
    Failed,
    /// It was not run; the detail says why.
    Skipped,
    /// There was no engine to run it on; the detail says why.
    Absent,
    /// It was not to be run: the caller asked for no device.
    NotRequested,
}

impl Status {
    /// The word for it in reports: an engine that is absent was skipped.
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

    /// Whether the stage ran to its end and nothing speaks against its outputs.
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Reference | Self::Agrees)
    }
}

/// The outcome of running one stage on one engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineOutcome {
    /// Name of the engine.
    pub engine: String,
    /// Name of the stage: `definition`, or the pass after which the program was run; none if no stage was to be run.
    pub stage: Option<String>,
    /// The device, if it is one of several.
    pub device: Option<String>,
    /// How the run ended.
    pub status: Status,
    /// Lanes of outputs compared with the reference; 0 for the reference itself.
    pub compared: u64,
    /// Lanes that are too far apart.
    pub mismatches: u64,
    /// Greatest distance in units in the last place.
    pub max_ulp: u64,
    /// Wall clock in milliseconds, without packing and comparison.
    pub ms: f64,
    /// What else there is to say, such as why it did not run; may be empty.
    pub detail: String,
    /// The first difference.
    pub first: Option<Mismatch>,
}

impl EngineOutcome {
    /// A run of `stage` with a status and nothing compared.
    pub fn new(engine: &str, stage: Option<&str>, device: Option<String>, status: Status, detail: String) -> Self {
        let (engine, stage) = (engine.to_owned(), stage.map(str::to_owned));
        Self { engine, stage, device, status, compared: 0, mismatches: 0, max_ulp: 0, ms: 0.0, detail, first: None }
    }

    /// A run that gave no result.
    pub fn fault(engine: &str, stage: &str, device: Option<String>, fault: Fault) -> Self {
        let (status, detail) = fault.into_status();
        Self::new(engine, Some(stage), device, status, detail)
    }

    /// An engine that was not to be used.
    pub fn not_requested(engine: &str) -> Self {
        Self::new(engine, None, None, Status::NotRequested, String::new())
    }

    /// Adds the result of the comparison with the reference.
    #[must_use]
    pub fn compared(mut self, comparison: Comparison) -> Self {
        self.status = if comparison.mismatches > 0 { Status::Mismatch } else { Status::Agrees };
        if comparison.compared == 0 {
            // Nothing was looked at: that is no agreement.
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

impl Fault {
    /// How the run ended, and why.
    pub fn into_status(self) -> (Status, String) {
        match self {
            Self::Trap { message, .. } => (Status::Trap, message),
            Self::Skipped(why) => (Status::Skipped, why),
            Self::Absent(why) => (Status::Absent, why),
            Self::Error(why) => (Status::Failed, why),
        }
    }
}
