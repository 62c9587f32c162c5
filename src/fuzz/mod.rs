//! Fuzzing: cases drawn from bytes, oracles that hold them against each other, campaigns over all of that.
//!
//! ```text
//! bytes ── Case::draw ──> case (plain data: a recipe) ── Oracle::check ──> held, invalid, undecided or failed
//!                          └── Case::simpler: a failing case is made smaller until nothing can be left out ──> Finding
//! ```
//!
//! - [`config`] holds every range that cases are drawn from; [`bytes`] makes bytes from a seed; [`extents`] draws ragged shapes.
//! - [`case`] says what a case is: [`map`] index maps as sequences of layout operations, [`layout`]
//!   XLA's tiled layouts, [`mutate`] certificates with one place changed, [`program`] programs, and so on.
//! - [`oracle`] says what an oracle is and what comes of it; [`oracles`] are all of them, by name.
//! - [`session`] runs an oracle on bytes, catches panics, counts, reduces; [`finding`] is what is written of a failure.
//!
//! The same functions serve `tilewright fuzz`, the cargo-fuzz targets in `fuzz/`, the tests and `tilewright replay`.

pub mod bytes;
pub mod case;
pub mod config;
pub mod extents;
pub mod finding;
pub mod layout;
pub mod map;
pub mod mutate;
pub mod oracle;
pub mod oracles;
pub mod program;
pub mod session;

pub use case::Case;
pub use config::Config;
pub use finding::Finding;
pub use oracle::{Environment, Failure, Oracle, Outcome, Tally};
pub use oracles::{ORACLES, by_name};
pub use session::{Runner, Session};
