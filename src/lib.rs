//! Tilewright lowers tensor programs to physical memory layouts and proves, pass by pass, that nothing went wrong.
//!
//! The rooms: [`te`] evaluates the TE dialect, [`passes`] lower, [`algebra`] is the untrusted half of index maps, [`formats`]
//! reads named layouts, [`layouts`] knows the ways back of tiled ones, [`graph`] reads and writes graphs of tensors, [`planner`]
//! gives them memory, [`codegen`] writes OpenCL C, [`harness`] runs and
//! compares, [`report`] says what came out, [`certificate`] writes proofs for other solvers and checks them again,
//! [`pipeline`] is the main job, [`fuzz`] tries all of it on generated programs, [`cli`] is the command line.
//!
//! The language is `tilewright-ir`, the judge `tilewright-verify`, the reference `tilewright-interp`.

pub mod certificate;
#[cfg(feature = "cli")]
pub mod cli;
mod files;
mod json;
pub mod report;

pub use tilewright_algebra as algebra;
pub use tilewright_algebra::layouts;
#[cfg(feature = "campaign")]
pub use tilewright_campaign as fuzz;
pub use tilewright_compiler::{codegen, formats, harness, passes, pipeline, te};
pub use tilewright_memory::{graph, planner, runtime};
