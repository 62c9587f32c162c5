//! The judge: obligations, their encoding, Z3, counterexamples.
//!
//! The rooms, bottom up: [`term`] (what is stated, free of any solver), [`encode`] and [`smtlib`] (one query, walked by Z3
//! and by the printer alike), [`solver`] (Z3 with budgets and a memo), [`kernel`] (facts and nothing but facts),
//! [`lemmas`] (theorems proved once and instantiated), [`certificate`]
//! (the proof for other solvers), [`verdict`] (what is reported).

pub mod certificate;
pub mod encode;
pub mod kernel;
pub mod lemmas;
pub mod poly;
pub mod smtlib;
pub mod solver;
pub mod term;
pub mod verdict;
