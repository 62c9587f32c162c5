//! The interpreter: defines what a program computes, by running it.
//!
//! Two engines do that. [`mod@reference`] is a short tree walker that follows the language reference word for word. [`run`] is
//! fast, and gives the same results and the same traps; the rest of this page is about it.
//!
//! [`run`] takes a validated function and its [`Arguments`], [`run_definition`] a tensor definition. The function is
//! compiled to register code and executed, on all cores where its loops allow it. Every operator means what
//! [`tilewright_ir::op`] says, bit for bit. The result, or the reported trap, is the same for any number of threads.
//!
//! An operation without a defined meaning is a [`Trap`]: an index out of bounds, a read of an element that was never
//! written, a race, a division by zero, a false assertion. Bounds are always checked; [`Observers`] selects the other
//! checks.
//!
//! Inside, `compile` turns statements into register code (`code`), and `exec` runs it one iteration at a time. Innermost nests
//! run a block of iterations at a time: `block_build` makes a plan (`block_plan`) of a body, `block_run` enters a nest,
//! `block_scratch` knows which cells a block has, and `block_exec` and `block_ops` run its operations; `block_strips` does where rows
//! are long. `cells` is the memory, `spread` distributes loops over threads, each of which gets its `parts` of the memory, and
//! `independence` decides which serial loops may be distributed.
//!
//! ```
//! use tilewright_interp::{Arguments, Config, Tensor, fill, run};
//! use tilewright_ir::{Buffer, DataType, Expr, ForKind, FuncAttrs, PrimFunc, ScalarType, Stmt, Var, validate};
//! let (a, b) = (Var::new("a", DataType::HANDLE), Var::new("b", DataType::HANDLE));
//! let source = Buffer::compact("A", ScalarType::Float32, vec![Expr::int(7)]);
//! let target = Buffer::compact("B", ScalarType::Float32, vec![Expr::int(7)]);
//! let i = Var::index("i");
//! let double = Expr::load(&source, vec![Expr::from(&i)]) * Expr::float_of(2.0, ScalarType::Float32);
//! let body = Stmt::for_loop(&i, Expr::int(7), ForKind::Parallel, Stmt::store(&target, vec![Expr::from(&i)], double));
//! let (params, buffer_map) = (vec![a.clone(), b.clone()], vec![(a, source), (b, target)]);
//! let func = PrimFunc { name: "double".into(), params, buffer_map, attrs: FuncAttrs::default(), body };
//! let mut input = Tensor::undefined(ScalarType::Float32, &[7])?;
//! fill(&mut input, 1);
//! let expected = input.get_f64(3).map(|x| 2.0 * x);
//! let mut args = Arguments::tensors([input, Tensor::undefined(ScalarType::Float32, &[7])?]);
//! run(validate(&func).map_err(|found| found[0].clone())?, &mut args, &Config::default())?;
//! assert_eq!(args.tensor(1).and_then(|tensor| tensor.get_f64(3)), expected);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod block_build;
mod block_exec;
mod block_loops;
mod block_ops;
mod block_plan;
mod block_reduce;
mod block_run;
mod block_scratch;
mod block_strips;
mod cell_runs;
mod cells;
mod code;
mod compile;
mod config;
mod cursor;
mod definition;
mod exec;
mod independence;
mod inputs;
mod memory;
mod num;
mod ops;
mod parts;
mod race;
pub mod reference;
mod run;
mod spread;
mod statement_head;
mod tensor;
mod traps;
mod written;

pub use config::{Argument, Arguments, Config, Observers, Order, Report, RunError, Trap, TrapKind};
pub use definition::{as_function, run_definition};
pub use inputs::fill;
pub use run::run;
pub use tensor::{Tensor, TensorError};
