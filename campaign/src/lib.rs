//! Fuzzing: generators draw cases from bytes, oracles check them against each other, and campaigns
//! run many oracles in worker processes.
//!
//! ```text
//! bytes ── Case::draw ──> case (plain data: a recipe) ── Oracle::check ──> held, invalid, undecided or failed
//!                          └── Case::simpler: a failing case is reduced until nothing can be left out ──> Finding
//! ```
//!
//! - [`inputs`] makes the arguments of a program; [`chain`] is a program after every pass, with the
//!   layouts of its arguments.
//! - [`config`] holds the ranges of all generators; [`bytes`] derives byte strings from a seed;
//!   [`extents`] draws ragged shapes.
//! - [`case`] defines cases. There are six families: [`map`] index maps as sequences of layout
//!   operations, [`layout`] XLA's tiled layouts, [`program`] programs, [`pairs`] pairs of small
//!   programs, [`graph`] graphs for memory planners, [`text`] texts for readers.
//! - [`expression`] draws integer expressions, and [`smt`] is an evaluator of SMT-LIB for them.
//! - [`blocked`] draws programs with a block of S-TIR, [`scheduled_blocks`] programs with several and schedules on them.
//! - [`te`] draws TE programs with schedules, [`tiny`] programs all of whose interleavings can be tried.
//! - [`oracle`] defines oracles and their outcomes; [`oracles`] lists all of them by name.
//! - [`mutate`] introduces one mistake in a program or in its evidence, which the judge has to
//!   refute; [`conditions`] a condition too many.
//! - [`session`] runs an oracle on bytes, catches panics, counts outcomes and reduces failures;
//!   [`finding`] is the file format of a failure.
//! - [`campaign`] distributes time among oracles in worker processes, and measures which planted
//!   [`faults`] they detect.
//!
//! [`strategy`](mod@strategy) offers the same cases to proptest.
//!
//! The same functions serve `tilewright fuzz`, `tilewright replay`, the cargo-fuzz targets in
//! `fuzz/`, and the tests.

pub mod blocked;
pub mod bytes;
pub mod campaign;
pub mod case;
pub mod chain;
pub mod conditions;
pub mod config;
pub mod corpus;
pub mod cpu;
pub mod drivers;
pub mod expression;
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
pub mod pairs;
pub mod program;
pub mod reductions;
pub mod scheduled_blocks;
pub mod session;
pub mod smt;
pub mod strategy;
pub mod target;
pub mod te;
pub mod text;
pub mod tiny;

pub use case::Case;
pub use config::Config;
pub use finding::Finding;
pub use oracle::{Environment, Failure, Oracle, Outcome, Tally};
pub use oracles::{ORACLES, by_name};
pub use session::{Runner, Session};
pub use strategy::strategy;
