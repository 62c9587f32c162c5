//! What runs programs, and what is said about a run.

use serde::Serialize;
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
    /// The engine cannot run such a program, or is not there.
    Skipped(String),
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

/// What came of one engine running one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ran, and agrees with the reference (or is the reference).
    Ok,
    /// It ran, and differs.
    Mismatch,
    /// The program trapped.
    Trap,
    /// It was not run; the detail says why.
    Skipped,
    /// It could not be run though it should have been.
    Error,
}

/// One line of the report: an engine, a stage, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct EngineReport {
    /// Name of the engine.
    pub engine: String,
    /// Name of the stage: `definition`, or the pass after which the program was run.
    pub stage: String,
    /// The device, if it is one of several.
    pub device: Option<String>,
    /// What came of it.
    pub status: Status,
    /// Lanes of outputs compared with the reference; 0 for the reference itself.
    pub compared: u64,
    /// Lanes that are too far apart.
    pub mismatches: u64,
    /// Greatest distance in units in the last place.
    pub max_ulp: u64,
    /// Wall clock, packing and comparison apart.
    pub ms: f64,
    /// What else there is to say; may be empty.
    pub detail: String,
    /// The first difference.
    pub first: Option<Mismatch>,
}

impl EngineReport {
    /// A line for something that did not run.
    pub fn fault(engine: &str, stage: &str, device: Option<String>, fault: Fault) -> Self {
        let (status, detail) = match fault {
            Fault::Trap { message, .. } => (Status::Trap, message),
            Fault::Skipped(why) => (Status::Skipped, why),
            Fault::Error(why) => (Status::Error, why),
        };
        let (engine, stage) = (engine.to_owned(), stage.to_owned());
        Self { engine, stage, device, status, compared: 0, mismatches: 0, max_ulp: 0, ms: 0.0, detail, first: None }
    }

    /// Adds what came of the comparison.
    #[must_use]
    pub fn compared(mut self, comparison: Comparison) -> Self {
        self.status = if comparison.mismatches > 0 { Status::Mismatch } else { Status::Ok };
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
