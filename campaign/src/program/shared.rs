//! How the threads of a group compute a stage of a generated program together, through memory that they share.

use serde::{Deserialize, Serialize};

/// The threads of a stage. They run over the last axis, as many as there are in each round, and the last round may be ragged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// The number of threads, from 1 to 9.
    pub threads: i64,
    /// Which thread reads what a thread wrote.
    pub turn: Turn,
    /// What the threads do with it.
    pub exchange: Exchange,
    /// Whether the first axis, or the rounds if there is one axis, runs over groups of a launch.
    pub blocks: bool,
    /// Whether the memory is allocated around the threads and not by each of them.
    pub outside: bool,
    /// Whether the barriers of elements stand under a condition on the first axis.
    pub branch: bool,
}

/// Which thread reads what a thread wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// The last one reads from the first one.
    Reversed,
    /// The one so many places before, around the end.
    Rotated(i64),
}

/// What the threads do with the memory that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exchange {
    /// They write elements and store those of each other; a sum does so in each round.
    Plain,
    /// Each keeps its own element in memory of its own across the barrier.
    Register,
    /// Each keeps a value that it read across two barriers, while the memory changes.
    Twice,
    /// They sum up their elements in a tree. Of a sum: there are two halves, and one barrier in each round.
    Tree,
}

impl Exchange {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Register, Self::Twice, Self::Tree];

    /// The name in the coverage table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Register => "register",
            Self::Twice => "twice",
            Self::Tree => "tree",
        }
    }
}

impl Shared {
    /// Simpler ones.
    pub fn simpler(&self) -> Vec<Self> {
        let mut found = vec![
            Self { blocks: false, ..self.clone() },
            Self { outside: false, ..self.clone() },
            Self { branch: false, ..self.clone() },
            Self { exchange: Exchange::Plain, ..self.clone() },
            Self { turn: Turn::Reversed, ..self.clone() },
        ];
        found.extend(crate::case::smaller(self.threads).into_iter().map(|threads| Self { threads, ..self.clone() }));
        found.retain(|changed| changed != self);
        found
    }
}
