//! The judge: obligations, their encoding, Z3, counterexamples.
//!
//! The rooms, bottom up: [`term`] (what is stated, free of any solver), [`encode`] and [`smtlib`] (one query, walked by Z3
//! and by the printer alike), [`solver`] (Z3 with budgets and a memo), [`kernel`] (facts and nothing but facts),
//! [`lemmas`] (theorems proved once and instantiated), [`certificate`]
//! (the proof for other solvers), [`verdict`] (what is reported). On them stand [`translate`] (from the language to terms),
//! [`prove`] (strategies, untrusted), and the obligations: [`map`] of index maps (with [`digits`] as its first tier), [`access`] of single programs, `pass` of a
//! program before and after a pass (walked by `lockstep`, its claims looked at by `claims`), `lowering` of a program and a definition, `definition` of a definition. [`judge`] is the door.

pub mod access;
pub mod certificate;
mod claims;
pub mod concrete;
mod definition;
pub mod digits;
pub mod encode;
pub mod judge;
pub mod kernel;
pub mod lemmas;
mod lockstep;
mod lowering;
pub mod map;
pub mod numeral;
mod pass;
pub mod path;
pub mod poly;
pub mod prove;
mod sample;
pub mod smtlib;
pub mod solver;
pub mod term;
pub mod translate;
pub mod verdict;
mod view;

pub use judge::{Config, Judge, Report};
pub use map::MapClaim;
pub use verdict::{Counterexample, Verdict};
