//! The goals answered so far, by canonical text.

use crate::term::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An answer without names: the values of a model are in the order of the query's variables.
#[derive(Clone, Debug)]
pub(super) enum Remembered {
    Unsat,
    Sat(Vec<Option<Value>>),
    Unknown(String),
}

/// An unknown stays unknown for whoever offers no larger budget than it was given.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<HashMap<String, (Remembered, u32)>>);

impl Memo {
    // A panic while the lock is held leaves a whole map behind: insertion is its only change.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Remembered, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn recall(&self, text: &str, rlimit: u32) -> Option<Remembered> {
        let known = self.lock();
        let (remembered, spent) = known.get(text)?;
        match remembered {
            Remembered::Unknown(_) if rlimit > *spent => None,
            Remembered::Unknown(_) | Remembered::Unsat | Remembered::Sat(_) => Some(remembered.clone()),
        }
    }

    pub(super) fn store(&self, text: String, remembered: Remembered, rlimit: u32) {
        self.lock().insert(text, (remembered, rlimit));
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}
