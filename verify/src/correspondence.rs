//! How the parts of two programs correspond: statements, loops, conditions, values and loads.
//!
//! A correspondence is a claim. It is found by a search that guesses (`finder`), or given by whoever made the second
//! program. The checker (`lockstep`) walks the two programs along it and collects what has to hold. A wrong
//! correspondence leads to a goal that does not hold, or to a place where the checker cannot follow; it proves nothing.
//!
//! ```text
//! for i in 7:                          for j in 7:
//!     if i < 9:                            B[j] = A[j] + 1
//!         B[i] = A[i] + 1
//!     if i > 9: C[i] = 0
//!
//! [Pair(Loop { body: [Pair(CondBefore([Pair(Store { value: Parts([Load, Parts([])]) })])), Dropped] })]
//! ```
//!
//! Lists of statements are those that `lockstep` sees: declarations and hints are stepped over, and names of values
//! that do not read memory are inlined.

use crate::judge::Side;

/// The correspondence of two programs: of their bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Correspondence {
    /// The statements of the program before, in order.
    pub body: Vec<Row>,
}

/// What became of one statement of the program before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The next statement after, in order.
    Pair(Pair),
    /// The next statements after, so many of them, as one statement: the body of a condition that always holds.
    Joined(usize, Pair),
    /// Nothing: no execution does anything in it.
    Dropped,
}

/// How two statements correspond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Two loops with the same iterations.
    Loop {
        /// The loads in the first value of the loop variable.
        min: Vec<LoadPair>,
        /// The loads in the number of iterations.
        extent: Vec<LoadPair>,
        /// The bodies.
        body: Vec<Row>,
    },
    /// A loop whose iterations are the lanes of one statement after; the body corresponds to one lane of it.
    Lanes(Vec<Row>),
    /// Two stores.
    Store {
        /// The loads in the index.
        index: Vec<LoadPair>,
        /// The values that are stored.
        value: Value,
    },
    /// Two conditional statements.
    If {
        /// The conditions.
        cond: Value,
        /// The branches where the condition holds.
        then: Vec<Row>,
        /// The branches where it does not; empty if there are none.
        otherwise: Vec<Row>,
    },
    /// A condition that only the program before has, and that always holds: its branch and the statement after.
    CondBefore(Vec<Row>),
    /// A condition that only the program after has, and that always holds: the statement before and its branch.
    CondAfter(Vec<Row>),
    /// Inside a loop that became lanes, the conditions before are taken in another order: those that all lanes share first.
    SharedFirst(Box<Pair>),
    /// A condition around a store before that became a part of the value after.
    Gathered {
        /// The condition before, and the one in the value after.
        cond: Value,
        /// The loads in the index.
        index: Vec<LoadPair>,
        /// The stores.
        body: Vec<Row>,
    },
    /// One of the statements in its other form (`crate::forms`): its condition taken apart, or a choice as a branch.
    Unfolded(Side, Box<Pair>),
    /// Two barriers.
    Barrier,
    /// Two allocations.
    Allocate(Vec<Row>),
    /// Two names for a value that reads memory.
    Let {
        /// The values.
        value: Value,
        /// The statements that use the name.
        body: Vec<Row>,
    },
    /// Two assertions, or two evaluations of a value.
    Effect(Value),
    /// None is known.
    Unknown,
}

/// How two values are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Two integers as a whole, by these loads.
    Whole(Vec<LoadPair>),
    /// Lane by lane.
    Lanes(Box<Value>),
    /// Two loads, by the loads in their indices.
    Load(Vec<LoadPair>),
    /// One operation, operand by operand.
    Parts(Vec<Value>),
    /// Two conditionals: the conditions, and the values where they hold and where they do not.
    Choice(Box<[Value; 3]>),
    /// The value after with its operands exchanged: `y + x` for `x + y`, `y > x` for `x < y`, `y if c else x` for `x if not c else y`.
    Turned(Box<Value>),
    /// The value after with the opposite comparison, and the sides of the choice exchanged: `y if m == n else x` for
    /// `x if m != n else y`.
    Reversed(Box<Value>),
    /// A difference of floats, before or after, taken as a sum, or a quotient by a power of two as a product: `x + (-y)` for `x - y`,
    /// `x * 0.25` for `x / 4`.
    Restated(Box<Value>),
    /// A conditional before whose condition is decided, and how it comes out: the value that is taken, and all of the value
    /// after.
    Decided(bool, Box<Value>),
    /// None is known.
    Unknown,
}

/// The load before that has the value of a load after. Loads after are listed in the order of the text, without those inside
/// of their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadPair {
    /// The load with the same text; nothing in it has moved.
    Same,
    /// The load at this position among those of the expression before (its parts included, outer loads first), and the loads
    /// in the index.
    Moved(usize, Vec<LoadPair>),
    /// None is known.
    Unknown,
}
