//! The compiler: from the text of a program to kernels that were compared with the reference interpreter.
//!
//! ```text
//! TE text ── te ──> definition and schedule ── te::lower ──> PrimFunc ── passes ──> PrimFunc ── codegen ──> OpenCL C
//!                                harness: runs each of these stages on each engine and compares the results
//! ```
//!
//! [`pipeline`] is the entry: it reads a text, lowers it, proves every step and runs every stage. [`formats`] reads
//! the names of layouts, such as `NCHW4c`.
//!
//! Nothing in this crate is trusted except [`te`], which defines what a TE program means. A pass returns the new
//! program and the evidence of what it changed; the judge (`tilewright-verify`) decides whether the two fit.

pub mod block_schedule;
pub mod blocks;
pub mod codegen;
pub mod flow;
pub mod formats;
pub mod harness;
pub mod lift;
pub mod passes;
pub mod pipeline;
pub mod reorder;
pub mod te;
