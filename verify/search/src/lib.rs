//! Proof search for goals about indices: numerals, digits, lemma instances.
//!
//! ```text
//! goal and premises  ->  strategies  ->  derivations of the kernel  ->  a fact, or no answer
//! ```
//!
//! Nothing here is trusted. A strategy may be as clever as it likes: the facts that it returns come from the kernel, and the
//! judge checks that they state what was asked. The judge does not import this crate; whoever makes a judge hands it
//! [`strategies`].

mod numeral;
mod prove;

use std::sync::Arc;

use tilewright_kernel::strategy::Search;

pub use prove::{Prover, Strategies};

/// The strategies of Tilewright, for a judge.
pub fn strategies() -> Arc<dyn Search> {
    Arc::new(Strategies)
}
