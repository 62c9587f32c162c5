//! What the walk collects: goals about two programs.

use tilewright_ir::{Expr, Span};

use crate::judge::Side;
use crate::lanes::{Gathered, Unread};
use crate::obligation::Obligation;
use crate::path::Path;

/// Something that has to hold, and the way to it in terms of the program before.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) obligation: Obligation,
    pub(crate) subject: String,
    /// The program that `span` belongs to.
    pub(crate) side: Side,
    /// The statement in the source text, and the one that it is compared with in the text of the other program.
    pub(crate) spans: [Option<Span>; 2],
    pub(crate) path: Path,
    /// Whether the goal need not hold: parts that differ may be the same whole, computed in another way.
    pub(crate) is_guess: bool,
    pub(crate) kind: GoalKind,
}

#[derive(Clone, Debug)]
pub(crate) enum GoalKind {
    /// The first of each pair, of the program before, equals the second. Integers of one lane.
    Equal(Vec<(Expr, Expr)>),
    /// Two integers are the same value; what they compute may wrap. One lane.
    Same(Expr, Expr),
    /// The condition always holds.
    Holds(Expr),
    /// Nothing in the expressions leaves its type, so that they are what the integers say.
    Fits(Vec<Expr>),
    /// Two stored values are the same; for evaluation only, the proof is in other goals.
    Stored(Expr, Expr),
    /// The walk cannot follow here.
    Stuck(String),
    /// The program after evaluates something where the one before does not: whether what it reads is inside of its buffer is asked of
    /// the program after alone. Nothing is to be decided here.
    Early,
    /// A statement of the program before has no counterpart; the way to it is never gone.
    Missing,
    /// A lane that has no value is never read.
    Unread(Box<Unread>),
    /// A gathered store has its texel for itself.
    Alone(Box<Gathered>),
    /// A loop over vectors runs its iterations in order now. The program before has no race.
    Ordered,
}
