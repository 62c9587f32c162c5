//! The changes between the programs of a pair.

use serde::{Deserialize, Serialize};

use super::recipe::{Guard, Request, View};

/// A change at one of its places, with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Twist {
    /// What is changed.
    pub how: How,
    /// The place, modulo the number of places.
    pub place: usize,
    /// The number.
    pub by: i64,
}

/// Changes. Those of the first group never change what a program computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Two nested loops become one.
    Fuse,
    /// A loop becomes two, with a guard.
    Split,
    /// Two nested loops are exchanged.
    Interchange,
    /// A loop starts elsewhere.
    Shift,
    /// A loop gets iterations that a guard excludes.
    Widen,
    /// A guard becomes the bound of its loop.
    Tighten,
    /// A loop with one iteration is put around a statement.
    Unit,
    /// Nested guards become one.
    Join,
    /// A guard becomes two nested ones.
    Nest,
    /// A guard that always holds is put around the body of a loop.
    TrueGuard,
    /// A value that is overwritten at once is stored.
    DeadStore,
    /// A stored value is used in place of a load.
    Forward,
    /// Loads go through another name of the same memory.
    Alias,
    /// Two statements that do not depend on each other are exchanged.
    Reorder,
    /// The first iteration becomes a statement before the loop.
    Peel,
    /// The stored value is bound to a variable.
    Bind,
    /// Integers are added in another order.
    RegroupIntegers,
    /// A stored value goes through a register.
    Register,
    /// Stored values go through two registers, in turn.
    Doubled,
    /// `A` is copied, and the copy is read.
    CopyInput,
    /// Each row of `A` is copied before it is read.
    CopyRows,
    /// The iterations of a loop become lanes of vectors, and the rest a loop of its own.
    Vectorize,
    /// An assertion is reworded, repeated, or moved behind another one.
    Reword,

    /// A guard is put around a store.
    AddGuard(Guard),
    /// A guard is removed.
    DropGuard,
    /// The numbers of a guard grow.
    WeakenGuard,
    /// A loop has other iterations.
    Extent,
    /// A loop starts elsewhere, and its body stays as it is.
    Start,
    /// The iterations of a loop run at once.
    AtOnce,
    /// An integer is added to the value.
    AddToValue,
    /// The divisors of the value change their sign.
    NegateDivisor,
    /// The scalar parameters change places.
    PermuteScalars,
    /// Other layouts are asked for; `None` asks for none.
    Ask(Option<Request>),
    /// Floats are added in another order.
    RegroupFloats,
    /// A loop runs backwards.
    Backwards,
    /// The view of `B` is another one.
    Review(View),
    /// Two statements are exchanged, whatever they store.
    Exchange,
    /// The loop over the second thread index has another extent.
    Resize,
    /// A copy of `B` is changed, and copied back; `B` may hold nothing yet.
    CopyOutput,
    /// A value is written to the other one of two registers.
    OtherHalf,
    /// Iterations become lanes with a mistake, or lanes that may read what others write.
    VectorizeWrongly,
    /// Something else is asserted, or nothing.
    AlterAssertion,
}

impl How {
    /// Whether the change never changes what a program computes.
    pub fn is_equal(self) -> bool {
        match self {
            Self::Fuse
            | Self::Split
            | Self::Interchange
            | Self::Shift
            | Self::Widen
            | Self::Tighten
            | Self::Unit
            | Self::Join
            | Self::Nest
            | Self::TrueGuard
            | Self::DeadStore
            | Self::Forward
            | Self::Alias
            | Self::Reorder
            | Self::Peel
            | Self::Bind
            | Self::RegroupIntegers
            | Self::Register
            | Self::Doubled
            | Self::CopyInput
            | Self::CopyRows
            | Self::Vectorize
            | Self::Reword => true,
            Self::AddGuard(_)
            | Self::DropGuard
            | Self::WeakenGuard
            | Self::Extent
            | Self::Start
            | Self::AtOnce
            | Self::AddToValue
            | Self::NegateDivisor
            | Self::PermuteScalars
            | Self::Ask(_)
            | Self::RegroupFloats
            | Self::Backwards
            | Self::Review(_)
            | Self::Exchange
            | Self::Resize
            | Self::CopyOutput
            | Self::OtherHalf
            | Self::VectorizeWrongly
            | Self::AlterAssertion => false,
        }
    }
}
