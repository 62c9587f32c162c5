//! A goal as data: a proposition that follows from premises, for all values of its variables.
//!
//! ```text
//! premises    1 <= n <= 2147483647       n: an extent                    what the caller guarantees
//!             0 <= i < n                 i: a loop variable              what holds on the way
//!             i % 2 == 0                 a condition on the way
//! conclusion  0 <= i // 2 and i // 2 < n
//! ```
//!
//! A goal is closed: what is known of a variable follows from its [`Kind`], which the program alone determines, and is
//! among the premises. Each premise has an [`Origin`].

use tilewright_ir::{Expr, Var, sabotage};

use crate::term::{Prop, Term};
use crate::translate::Names;

/// What a variable is.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'e> {
    /// An extent: it stands alone in the shape of a parameter, and is at least 1 and at most the greatest value of its type.
    Extent,
    /// A parameter that is no extent, or another value that is the same everywhere: any value of its type.
    Scalar,
    /// A loop variable, or an index of a map.
    Index {
        /// Its first value.
        min: &'e Expr,
        /// The number of its values.
        extent: &'e Expr,
    },
}

impl Kind<'_> {
    /// What holds of every value of a variable of this kind, of which `term` is the term.
    pub(crate) fn range(self, var: &Var, term: &Term, names: &mut Names) -> Prop {
        let least = if sabotage::on("extents-are-two") { 2 } else { 1 };
        match (self, var.dtype().scalar.integer_range()) {
            (Self::Extent, Some((_, high))) => term.at_least(least).and(term.at_most(high)),
            (Self::Extent, None) => term.at_least(least),
            (Self::Scalar, Some((low, high))) => term.at_least(low).and(term.at_most(high)),
            (Self::Scalar, None) => Prop::bool(true),
            (Self::Index { min, extent }, _) => {
                let (min, extent) = (names.term(min), names.term(extent));
                term.at_least(&min).and(term.less(min + extent))
            }
        }
    }

    /// Who sees to it that the value is in this range.
    fn origin(self) -> Origin {
        match self {
            Self::Extent | Self::Scalar => Origin::Caller,
            Self::Index { .. } => Origin::Way,
        }
    }

    /// The reason that premises about a variable of this kind give.
    pub(crate) fn reason(self) -> (&'static str, Origin) {
        let text = match self {
            Self::Extent => "an extent is positive, and fits its type",
            Self::Scalar => "a value of this type",
            Self::Index { .. } => INDEX,
        };
        (text, self.origin())
    }
}

/// The reason that premises about an index give.
pub(crate) const INDEX: &str = "an index in its range";

/// Why a premise may be assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The caller guarantees it, or the launch checks it. Premises of this kind have to hold together.
    Caller,
    /// It holds where the goal is asked: the range of a loop, a condition on the way, the value of a type, or a hypothesis
    /// of the statement. If these contradict each other, nothing gets there.
    Way,
}

/// Something that may be assumed.
#[derive(Clone, Debug)]
pub struct Premise {
    /// The proposition, which is no conjunction.
    pub prop: Prop,
    /// Why it may be assumed.
    pub origin: Origin,
}

/// A proposition that follows from premises.
#[derive(Clone, Copy, Debug)]
pub struct Goal<'a> {
    /// The premises.
    pub premises: &'a [Premise],
    /// What follows.
    pub conclusion: &'a Prop,
}
