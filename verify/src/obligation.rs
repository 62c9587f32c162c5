//! The obligations: the statements that have to be proved, each with the id that reports, certificates and docs use.
//!
//! | about | obligations |
//! |---|---|
//! | maps, layouts | bounds, injective, tight, inverse, padding, overflow, specification; tiling and bitcast of layouts |
//! | programs | bounds, overflow, lanes, race, barrier, defined, texture; region, iteration and order of blocks |
//! | passes, lowering | simulation, iteration, order, alive, flatten, padding, race; those of maps and layouts for their claims |
//! | kernels | dividend |
//! | memory plans | plan-disjoint, plan-fits, plan-type, plan-access, plan-in-place |

use std::fmt;
use std::str::FromStr;

/// A statement about a map, a layout, a program, a pass or a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Obligation {
    /// Every result index lies in the physical shape; every access of a program lies in its buffer.
    Bounds,
    /// Different logical indices never share a physical one.
    Injective,
    /// The stated physical shape is the smallest one, except on axes that are declared as padded.
    Tight,
    /// A claimed inverse maps the image of every logical index back to it, and every physical index that is not padding
    /// is the image of its inverse.
    Inverse,
    /// The padding predicate holds exactly on the physical indices that no logical index reaches; a pad value is written.
    Padding,
    /// No integer operation leaves the range of its type.
    Overflow,
    /// The loops around a store visit each index of its tensor exactly once; each iteration of a statement that was moved to
    /// other loops takes place exactly once.
    Iteration,
    /// Iterations that touch the same element, one of them writing it, keep their order.
    Order,
    /// Each value that is read is the one that a certain iteration of a certain store wrote last.
    Alive,
    /// Each load and store of a program after a pass corresponds to one before it, with the same value.
    Simulation,
    /// The index of each flattened axis is the row-major linearization of its separator group.
    Flatten,
    /// The closed formula of a tiled layout equals its definition: pad, reshape, transpose.
    Tiling,
    /// Texels are in range, within the limits of the device, and no two elements share one.
    Texture,
    /// The lanes of a vector access are in range and, where written, different elements.
    Lanes,
    /// Iterations that run at once never touch the same element unless all of them read it.
    Race,
    /// Every thread of a group gets to each barrier, equally often.
    Barrier,
    /// Each access of a block is one of those that it states.
    Region,
    /// No value is read that was never written.
    Defined,
    /// The map or layout equals an independent statement of it.
    Specification,
    /// The memory of one array, read as another array, holds the same elements.
    Bitcast,
    /// A division that is written as C's, which truncates, divides what is not negative by what is at least 1.
    Dividend,
    /// Tensors that are alive at once never overlap in memory.
    PlanDisjoint,
    /// Each tensor fits its pool.
    PlanFits,
    /// Tensors and pools agree in their types.
    PlanType,
    /// No step reads and writes one image.
    PlanAccess,
    /// A step that writes its result where an operand lies reads each element in the iteration that alone writes it.
    PlanInPlace,
}

impl Obligation {
    /// All obligations, in the order of their declaration.
    pub const ALL: [Self; 26] = [
        Self::Bounds,
        Self::Injective,
        Self::Tight,
        Self::Inverse,
        Self::Padding,
        Self::Overflow,
        Self::Iteration,
        Self::Order,
        Self::Alive,
        Self::Simulation,
        Self::Flatten,
        Self::Tiling,
        Self::Texture,
        Self::Lanes,
        Self::Race,
        Self::Barrier,
        Self::Region,
        Self::Defined,
        Self::Specification,
        Self::Bitcast,
        Self::Dividend,
        Self::PlanDisjoint,
        Self::PlanFits,
        Self::PlanType,
        Self::PlanAccess,
        Self::PlanInPlace,
    ];

    /// The id, such as `injective`.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::Injective => "injective",
            Self::Tight => "tight",
            Self::Inverse => "inverse",
            Self::Padding => "padding",
            Self::Overflow => "overflow",
            Self::Iteration => "iteration",
            Self::Order => "order",
            Self::Alive => "alive",
            Self::Simulation => "simulation",
            Self::Flatten => "flatten",
            Self::Tiling => "tiling",
            Self::Texture => "texture",
            Self::Lanes => "lanes",
            Self::Race => "race",
            Self::Barrier => "barrier",
            Self::Region => "region",
            Self::Defined => "defined",
            Self::Specification => "specification",
            Self::Bitcast => "bitcast",
            Self::Dividend => "dividend",
            Self::PlanDisjoint => "plan-disjoint",
            Self::PlanFits => "plan-fits",
            Self::PlanType => "plan-type",
            Self::PlanAccess => "plan-access",
            Self::PlanInPlace => "plan-in-place",
        }
    }
}

impl fmt::Display for Obligation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// The error for a text that is not the id of an obligation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no obligation")]
pub struct NoObligation(String);

impl FromStr for Obligation {
    type Err = NoObligation;

    fn from_str(id: &str) -> Result<Self, NoObligation> {
        Self::ALL.into_iter().find(|known| known.id() == id).ok_or_else(|| NoObligation(id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_read_as_the_obligation_that_it_names() {
        for (position, obligation) in Obligation::ALL.into_iter().enumerate() {
            assert_eq!(obligation.id().parse(), Ok(obligation));
            assert_eq!(Obligation::ALL.iter().position(|other| other.id() == obligation.id()), Some(position));
        }
        assert_eq!("bound".parse::<Obligation>().unwrap_err().to_string(), "`bound` is no obligation");
    }

    #[test]
    fn ids_are_padded_like_text() {
        assert_eq!(format!("{:11}|", Obligation::Tight), "tight      |");
    }
}
