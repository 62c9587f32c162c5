//! The reference interpreter: the language reference of [`tilewright_ir`] as a tree walker, to be read from top to bottom.
//!
//! Each operator and each statement has one match arm that does what the reference says; nothing is compiled, reordered
//! or remembered. The fast engine, [`crate::run`], has to agree with this one: the same bits in every output, the same
//! elements defined, the same trap at the same place. The oracle `interpreter` of `tilewright-campaign` compares them.
//!
//! - `expr` gives an expression its value: one [`Scalar`] for each lane.
//! - `stmt` executes statements in program order, the iterations of loops of every kind included.
//! - `group` executes a loop over threads with barriers: all threads together, from barrier to barrier.
//! - `memory` is an allocation as bytes, each with a value or without one, and the address of an element in it.
//!
//! [`tilewright_ir::scalar`] defines single lanes, [`tilewright_ir::Expr::eval_index`] shapes, strides and offsets.
//! Iterations run one after the other, so races are not detected: that is left to [`crate::Observers::race`].
//!
//! ```text
//! for i in T.parallel(4):          stmt    i = 0, 1, 2, 3
//!     if i % 2 == 0:               expr    floor modulo of int32 values, then a comparison
//!         B[i // 2] = -A[i]        memory  the 4 bytes at 4 * i of A's memory; a trap if one was never written
//! ```

mod expr;
mod group;
mod memory;
mod stmt;

use std::collections::HashMap;

use tilewright_ir::{Buffer, Diagnostic, Scalar, Span, Stmt, Validated, Var};

use crate::arguments::{argument_error, bind_arguments, stored_data_vars};
use crate::config::{Argument, Arguments, Config, Report, RunError, Trap, TrapKind};
use crate::statement_head::statement_head;
use crate::tensor::Tensor;

/// Greatest nesting of statements and expressions. The readers stop at 256 levels, and passes add a few.
const MAX_DEPTH: u32 = 512;

/// Runs a function on `args` and stores the results in the tensors of the buffers that it writes, as [`crate::run`] does.
/// Of the configuration, `fuel`, `max_bytes` and `observers.defined` count. The run takes one thread and program order.
///
/// # Errors
/// [`RunError::Input`] if the arguments do not fit the function or a limit, or the function nests too deeply;
/// [`RunError::Trap`] if the program traps. `args` is unchanged in both cases.
pub fn run(func: Validated<'_>, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let func = func.func();
    let mut interpreter = Interpreter {
        config,
        vars: bind_arguments(func, args)?.scalars.into_iter().map(|(var, value)| (var, vec![value])).collect(),
        memories: HashMap::new(),
        resting: HashMap::new(),
        live: 0,
        iterations: 0,
        depth: 0,
        loops: Vec::new(),
        stmt: &func.body,
        span: None,
    };
    for (param, arg) in func.params.iter().zip(&args.params) {
        if let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) {
            interpreter.pass(buffer, tensor)?;
        }
    }
    interpreter.execute(&func.body)?;
    let (stored, mut results) = (stored_data_vars(func), args.params.clone());
    for (param, arg) in func.params.iter().zip(&mut results) {
        if let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg)
            && stored.contains(&buffer.data)
        {
            *tensor = interpreter.result(buffer, tensor)?;
        }
    }
    args.params = results;
    Ok(Report { iterations: interpreter.iterations, parallel_loops: 0, threads: 1 })
}

/// The lanes of a value; a scalar has one.
type Value = Vec<Scalar>;

/// The state of a run.
struct Interpreter<'a> {
    config: &'a Config,
    /// The values of the variables that are bound. A variable is bound in one place only, so none is ever removed.
    vars: HashMap<Var, Value>,
    /// The memory of each data variable: a byte that was never written has no value.
    memories: HashMap<Var, Vec<Option<u8>>>,
    /// The memory of threads that are not running, each allocation with a number.
    resting: HashMap<usize, Vec<Option<u8>>>,
    /// Bytes of the arguments and of the allocations that are alive.
    live: u64,
    /// Loop iterations started so far.
    iterations: u64,
    /// Number of statements and expressions around the current place, and the loops around it, outermost first.
    depth: u32,
    loops: Vec<(String, i128)>,
    /// The statement that is being executed, and the source location of the closest one that has a location.
    stmt: &'a Stmt,
    span: Option<Span>,
}

impl Interpreter<'_> {
    /// The trap that an operation without a defined meaning gives in the current statement.
    fn trap(&self, kind: TrapKind, message: String) -> RunError {
        let (span, loops, statement) = (self.span, self.loops.clone(), statement_head(self.stmt));
        RunError::Trap(Box::new(Trap { kind, message, buffer: None, span, loops, statement }))
    }

    /// Enters a statement or an expression; whoever calls it subtracts 1 from the depth at its end.
    fn enter(&mut self) -> Result<(), RunError> {
        self.depth += 1;
        let too_deep = || Diagnostic::error("too-deep", self.span, format!("nesting exceeds {MAX_DEPTH} levels"));
        if self.depth > MAX_DEPTH { Err(too_deep().into()) } else { Ok(()) }
    }

    /// Copies an argument into new memory for its parameter.
    fn pass(&mut self, buffer: &Buffer, tensor: &Tensor) -> Result<(), RunError> {
        self.allocate(buffer).map_err(|(_, why)| argument_error(why))?;
        let width = tensor.bytes().len() / tensor.lane_count().max(1);
        for lane in (0..tensor.lane_count()).filter(|lane| tensor.is_defined(*lane)) {
            let (indices, lane_in_element) = element(tensor, lane);
            self.write(buffer, &indices, lane_in_element, &tensor.bytes()[lane * width..][..width])?;
        }
        Ok(())
    }

    /// The contents of a parameter after the run.
    fn result(&self, buffer: &Buffer, before: &Tensor) -> Result<Tensor, RunError> {
        let (mut bytes, mut defined) = (Vec::new(), Vec::new());
        for lane in 0..before.lane_count() {
            let (indices, lane_in_element) = element(before, lane);
            let stored = self.read(buffer, &indices, lane_in_element)?;
            defined.push(!stored.contains(&None));
            bytes.extend(stored.iter().map(|byte| byte.unwrap_or(0)));
        }
        let tensor = Tensor::from_parts(before.dtype(), before.shape(), bytes, defined);
        Ok(tensor.map_err(|error| argument_error(error.to_string()))?)
    }
}

/// The indices of the element that has the lane with this number, and the number of the lane in it.
fn element(tensor: &Tensor, lane: usize) -> (Vec<Value>, usize) {
    let (shape, lanes) = (tensor.shape(), usize::from(tensor.dtype().lanes.max(1)));
    let index = |axis| (lane / lanes) as u64 / shape[axis + 1..].iter().product::<u64>() % shape[axis];
    ((0..shape.len()).map(|axis| vec![Scalar::Int(index(axis).into())]).collect(), lane % lanes)
}
