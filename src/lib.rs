//! Tilewright lowers tensor programs to physical memory layouts and proves, pass by pass, that nothing went wrong.
//!
//! A program is lowered by passes. Each pass returns a new program and its evidence; a separate checker, which trusts
//! neither, proves that both programs mean the same:
//!
//! ```text
//! TE or TVMScript  ->  te / script  ->  passes  ->  codegen  ->  OpenCL C
//!                                         |
//!                                         +->  tilewright-verify + Z3  ->  reports, certificates
//! ```
//!
//! | module | task |
//! |---|---|
//! | [`te`] | evaluates the TE dialect |
//! | [`passes`] | lower programs |
//! | [`pipeline`] | runs the passes, the checker and the engines in order |
//! | [`algebra`], [`layouts`] | find inverses, sizes and paddings of index maps and tiled layouts; not trusted |
//! | [`formats`] | reads named layouts such as `NCHW4c` |
//! | [`graph`], [`planner`], [`runtime`] | read graphs of tensors, plan their memory, run them |
//! | [`network`] | reads ONNX models, decides what is in textures, makes the kernels |
//! | [`relayout`] | moves arrays from one layout to another |
//! | [`codegen`], [`harness`] | write OpenCL C; run programs and compare the results |
//! | [`report`] | writes results as text, JSON and SVG |
//! | [`deploy`] | writes a planned network as a folder that a host in C runs |
//! | [`certificate`] | writes proofs for other solvers and checks them again |
//! | `fuzz` | tries all of it on generated programs; with the feature `campaign` |
//! | `cli` | the command line; with the feature `cli` |
//!
//! The language is in `tilewright-ir`, the checker in `tilewright-verify`, the reference interpreter in
//! `tilewright-interp`.

pub mod certificate;
#[cfg(feature = "cli")]
pub mod cli;
pub mod deploy;
mod files;
mod json;
pub mod report;

pub use tilewright_algebra as algebra;
pub use tilewright_algebra::layouts;
#[cfg(feature = "campaign")]
pub use tilewright_campaign as fuzz;
pub use tilewright_compiler::{block_schedule, blocks, codegen, flow, formats, harness, passes, pipeline, te};
pub use tilewright_memory::{graph, planner, runtime};
pub use tilewright_network as network;
pub use tilewright_relayout as relayout;
