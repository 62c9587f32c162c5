//! Memory for whole networks: [`graph`] reads and writes graphs of tensors, [`planner`] assigns the tensors to pools,
//! and [`runtime`] executes a planned graph on a device and compares it with the reference interpreter.
//!
//! The planner is not trusted: the judge (`tilewright-verify`) recomputes the lifetimes and checks every plan.

pub mod graph;
pub mod planner;
pub mod runtime;
