//! The TE dialect: evaluates the syntax tree that `script` reads, keeps the schedule, lowers to a program.
//!
//! ```
//! let source = "
//! A = te.placeholder((2, 7))
//! B = te.compute(A.shape, lambda i, j: A[i, j] + 1)
//! s = te.create_schedule(B.op)
//! ";
//! let program = tilewright_script::te::read(source)?;
//! let lowered = tilewright_compiler::te::evaluate(&program, None)?;
//! assert_eq!(lowered[0].func.buffer_map.len(), 2);
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```
//!
//! The [`build`] module makes definitions and schedules from Rust. The evaluator reads the arguments, calls it, and adds
//! source positions to its errors.
//!
//! | module | |
//! |---|---|
//! | [`build`] | tensors, schedules, primitives, lowering |
//! | `eval`, `exprs`, `calls`, `value`, `arith`, `python` | the Python part: statements, expressions, functions, values |
//! | `builtins`, `scalars`, `methods`, `schedules`, `stages`, `target` | the functions and methods of `tvm` |
//! | `blocks`, `block_steps` | schedules on blocks, `tvm.tir.Schedule` |
//! | `run` | which functions are called, which schedules are lowered |
//!
//! Evaluating a program gives one function for each lower call (`tvm.lower`, `tvm.driver.lower`, `tvm.build`), and one for
//! each schedule that no such call used; the parameters of the latter are the inputs in the order of their definition, then
//! the outputs of the schedule. If the module itself makes no schedule, its functions are called with their defaults.

mod args;
mod arith;
mod block_steps;
mod blocks;
pub mod build;
mod builtins;
mod calls;
mod eval;
mod exprs;
mod methods;
mod python;
mod run;
mod scalars;
mod schedules;
mod stages;
mod target;
mod value;

#[cfg(test)]
mod tests;

pub use build::Lowered;
pub use run::{Scheduled, evaluate, evaluate_scheduled};
