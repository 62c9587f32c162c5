//! OpenCL in this process. Built with the feature `opencl`; without it, `absent.rs` replaces this module.

mod check;
#[allow(unsafe_code)] // the only place for it: OpenCL is a C interface
mod cl;
mod groups;
mod guard;
mod listing;
mod memory;
mod program;
mod quirks;
mod session;
mod survey;

pub(crate) use cl::loader;
pub(crate) use program::Program;
pub(crate) use session::Session;
pub(crate) use survey::survey;
