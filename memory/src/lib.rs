//! Memory for whole networks: [`graph`] reads and writes graphs of tensors, [`planner`] places the tensors in pools, and
//! [`runtime`] executes a planned graph on a device beside the reference interpreter.
//!
//! The planner is not trusted: the judge (`tilewright-verify`) finds the lifetimes anew and checks every plan.

pub mod graph;
pub mod planner;
pub mod runtime;
