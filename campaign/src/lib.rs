//! Fuzzing: cases drawn from bytes, oracles that hold them against each other, campaigns over all of that.
//!
//! ```text
//! bytes ── Case::draw ──> case (plain data: a recipe) ── Oracle::check ──> held, invalid, undecided or failed
//!                          └── Case::simpler: a failing case is made smaller until nothing can be left out ──> Finding
//! ```
//!
//! - [`inputs`] makes the arguments of a program; [`chain`] is a program after every pass, with the places of its arguments.
//! - [`config`] holds every range that cases are drawn from; [`bytes`] makes bytes from a seed; [`extents`] draws ragged shapes.
//! - [`case`] says what a case is: [`map`] index maps as sequences of layout operations, [`layout`] XLA's tiled layouts,
//!   [`program`] programs, [`graph`] graphs for planners, [`text`] texts for readers.
//! - [`oracle`] says what an oracle is and what comes of it; [`oracles`] are all of them, by name.
//! - [`mutate`] makes one mistake in a program or in evidence: what a judge must not believe.
//! - [`session`] runs an oracle on bytes, catches panics, counts, reduces; [`finding`] is what is written of a failure.
//! - [`campaign`] shares time among oracles in worker processes, and measures which faults they see.
//!
//! [`strategy`](mod@strategy) has the same cases for proptest.
//!
//! The same functions serve `tilewright fuzz`, the cargo-fuzz targets in `fuzz/`, the tests and `tilewright replay`.

pub mod bytes;
pub mod campaign;
pub mod case;
pub mod chain;
pub mod config;
pub mod cpu;
pub mod drivers;
pub mod extents;
pub mod faults;
pub mod finding;
pub mod graph;
pub mod inputs;
pub mod layout;
pub mod map;
pub mod mutate;
pub mod oracle;
pub mod oracles;
pub mod program;
pub mod session;
pub mod strategy;
pub mod target;
pub mod text;

pub use case::Case;
pub use config::Config;
pub use finding::Finding;
pub use oracle::{Environment, Failure, Oracle, Outcome, Tally};
pub use oracles::{ORACLES, by_name};
pub use session::{Runner, Session};
pub use strategy::strategy;
