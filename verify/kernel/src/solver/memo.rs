//! The goals answered so far, by canonical text.
//!
//! The key is the canonical text, so goals that differ only in the names of variables share an answer.
//!
//! ```text
//! i < 8 |- i < 9    and    c < 8 |- c < 9    are the same text over v0, and one question
//! ```

use crate::reason::Reason;
use crate::term::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An answer without names: the values of a model are in the order of the query's variables.
#[derive(Clone, Debug)]
pub(super) enum Remembered {
    /// The goal follows.
    Unsat,
    /// The goal does not follow, with the values of a model; empty if no model was asked for.
    Sat(Vec<Option<Value>>),
    /// No answer, for this reason.
    Unknown(Reason),
}

/// Answers by canonical text, each with the budget that it was given for. An unknown is remembered for budgets that are not
/// larger.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<HashMap<String, (Remembered, u32)>>);

impl Memo {
    // A panic while the lock is held leaves a whole map behind: insertion is its only change.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Remembered, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a query. An unknown that was given for a smaller budget does not count.
    pub(super) fn recall(&self, text: &str, rlimit: u32) -> Option<Remembered> {
        let known = self.lock();
        let (remembered, spent) = known.get(text)?;
        match remembered {
            Remembered::Unknown(_) if rlimit > *spent => None,
            Remembered::Unknown(_) | Remembered::Unsat | Remembered::Sat(_) => Some(remembered.clone()),
        }
    }

    /// Stores the answer to a query, with the budget that it was given for.
    pub(super) fn store(&self, text: String, remembered: Remembered, rlimit: u32) {
        self.lock().insert(text, (remembered, rlimit));
    }

    /// Number of queries.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}
