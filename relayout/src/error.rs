//! The reasons why data cannot be moved from one layout to another.

/// Why there is no strategy, or why it cannot run on some memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayoutError {
    /// The two placements, or the logical shape, do not belong together.
    #[error("{0}")]
    Shape(String),
    /// The places of the elements are not sums of digits of the logical indices times strides.
    #[error(
        "axis {axis} of the logical index is not split into digits: its place in {side} is not linear between multiples"
    )]
    NotDigits {
        /// The logical axis, counted from 0.
        axis: usize,
        /// `A`, `B` or both.
        side: &'static str,
    },
    /// The place of an element is not a sum of one term for each logical axis.
    #[error("the place in {side} is not a sum of one term for each logical axis: the axes are mixed at {at:?}")]
    Mixed {
        /// `A` or `B`.
        side: &'static str,
        /// A logical index at which the sum differs from the place.
        at: Vec<u64>,
    },
    /// A map has no value for an index, or a negative one.
    #[error("the map of {side} has no place for {at:?}")]
    NoPlace {
        /// `A` or `B`.
        side: &'static str,
        /// The logical index.
        at: Vec<u64>,
    },
    /// A slice has the wrong length.
    #[error("{side} needs {needed} bytes, and {given} were given")]
    Length {
        /// `the source`, `the destination` or `the fill value`.
        side: &'static str,
        /// The bytes of the layout.
        needed: usize,
        /// The bytes of the slice.
        given: usize,
    },
    /// Elements have a size that no copy loop exists for.
    #[error("elements of {0} bytes cannot be moved: 1 to 16 bytes are possible")]
    ElementSize(usize),
}
