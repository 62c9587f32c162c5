//! The judge: decides whether maps, layouts, programs, passes and memory plans are right, with proofs checked by Z3.
//!
//! This crate is the trusted half of Tilewright. The other half lowers programs and makes claims ("this is the
//! inverse", "the buffer was flattened"); this one states what has to hold, its *obligations*, and proves or refutes
//! them. Nothing that the other half says is believed.
//!
//! ```text
//! claim or pair of programs
//!   -> obligations          `obligation`: bounds, injective, simulation, ...
//!   -> tiers                intervals, enumeration, digits, GF(2), Z3; the first that decides
//!   -> goals                `goal`, `question`, `translate`: premises, each with its origin, and a conclusion
//!   -> facts                the kernel, driven by strategies that nobody believes
//!   -> grounds              `door`: the fact states the goal, from the goal's premises, and those can hold together
//!   -> verdicts             proved on these grounds, refuted with an evaluated counterexample, unknown, vacuous, skipped
//! ```
//!
//! Trusted are the statements of the obligations, the meaning of expressions in `tilewright-ir`, the kernel with its
//! encoding, the checkers of the other tiers, and Z3; `docs/TRUST.md` lists the files. Strategies are a crate of their own,
//! `tilewright-search`, which this one does not import: whoever makes a [`Judge`] hands them to it.
//!
//! **The kernel** is the crate `tilewright-kernel`, whose modules appear here under the same names: [`term`], [`encode`] and
//! [`smtlib`], [`solver`], [`kernel`] (the only source of facts) and [`lemmas`]. On it stand [`translate`] (from the language
//! to terms), [`goal`], [`question`] and [`door`] (the only source of *proved*), [`certificate`] (the proof for other
//! solvers, from what [`record`] kept), and [`verdict`], [`obligation`], [`method`] and [`reason`] (the parts of a report).
//!
//! **Tiers**, the cheaper ones first: intervals, `enumerate` (all points of a box; large boxes last), [`digits`] (a
//! certificate that the untrusted side found and this one checks), bit-vectors (with `gf2`, linear algebra that finds inverses and
//! counterexamples), Z3 through a
//! [`question`]. Maps of passes and memory plans are decided twice, by a cheap tier and by Z3.
//!
//! **Obligations**: [`map`] of index maps, [`layout`] of tiled layouts, [`access`] of single programs, `dividend` of the
//! divisions that kernels write in C, `race` of iterations that run at once, `pass` of a program before and after a pass
//! (walked by `lockstep` along a [`correspondence`](mod@correspondence) that `finder` guessed, its claims checked by `claims`
//! and `fills`), `lowering` of a program and a definition,
//! `phases` of programs with barriers, `definition` of a definition, `plan` of memory plans. [`judge`] has the entry points.

pub mod access;
mod blocks;
pub mod certificate;
mod claims;
pub mod concrete;
pub mod correspondence;
mod definition;
pub mod definitions;
mod device;
pub mod digits;
mod dividend;
pub mod door;
mod enumerate;
mod execution;
mod fills;
mod finder;
pub mod flow;
mod forms;
mod gf2;
pub mod goal;
mod inherited;
mod iterations;
pub mod judge;
mod lanes;
pub mod layout;
mod lockstep;
mod lowering;
pub mod map;
pub mod method;
pub mod obligation;
mod packed;
mod pass;
pub mod path;
mod phases;
mod plan;
pub mod premise;
pub mod question;
mod race;
pub mod record;
pub mod reorder;
mod ring;
mod same;
mod sample;
pub mod scalarize;
pub mod steps;
mod texture;
pub mod translate;
pub mod verdict;
mod view;
mod words;

pub use blocks::{BlockClaim, Through};
pub use door::Grounds;
pub use judge::{Config, Judge, Place, Report, Side};
pub use layout::LayoutClaim;
pub use layout::bitcast::PairClaim;
pub use layout::relayout::RelayoutClaim;
pub use map::MapClaim;
pub use method::Method;
pub use obligation::Obligation;
pub use pass::correspondence;
pub use plan::{FindSources, FindWriters, Finders, Stores};
pub use premise::Premise;
pub use race::OWN_MEMORY;
pub use reason::{Reason, ReasonKind};
pub use record::Proof;
pub use tilewright_kernel::{encode, facts as kernel, lemmas, poly, reason, smtlib, solver, term};
pub use verdict::{Counterexample, Verdict};
