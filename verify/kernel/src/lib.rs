//! The proof kernel: statements, their encoding, Z3, and the facts that follow. It knows nothing of programs.
//!
//! ```text
//! term       what is stated: integer terms and propositions, and their evaluation
//! encode     a query to a solver, walked by Z3 and by the printer alike
//! smtlib     the printer: SMT-LIB 2 text, for certificates and the memo
//! solver     Z3 with budgets and a memo
//! facts      the only source of facts: each follows from the premises of its context
//! lemmas     theorems that are proved once and instantiated
//! poly       polynomials over terms
//! strategy   the interface of proof search, whose results are facts like all others
//! ```
//!
//! Trusted are `term`, `encode`, `smtlib`, `solver` and `facts`, and Z3. Lemmas are proved by the kernel, and strategies
//! only return facts, so nothing rests on them.

pub mod encode;
pub mod facts;
pub mod lemmas;
pub mod poly;
pub mod reason;
pub mod smtlib;
pub mod solver;
pub mod strategy;
pub mod term;

pub use reason::{Reason, ReasonKind};
