//! Maps that move and mix bits, decided by linear algebra over GF(2).
//!
//! Over extents that are powers of two, a map built of xor, masks, shifts, sums of disjoint bits, and `* // %` by powers of two
//! takes each output bit from the input bits by xor: it is `M x + c` over the field of two elements. The parts:
//!
//! - `word`: an integer as bits, each an affine form of the input bits, and the operators on such words; an operator gives
//!   up where a bit would be no affine form (an xor mask on a number of chunks that is no power of two has no such form).
//! - `system`: affine equations: what is possible under them, the largest value of a word, the kernel.
//! - `certificate`: a matrix of as many output bits as there are input bits, and its inverse; checked by multiplication and by
//!   evaluating the map on the basis, by code that shares nothing with what found it.
//!
//! The input bits are numbered so that the number which they make is the place of the index in row-major order.

mod certificate;
mod system;
mod word;

pub use certificate::{CertificateError, Gf2Certificate};
pub(crate) use system::{System, kernel_pair, left_inverse, solve};
pub(crate) use word::{Affine, Word, extract};

/// The most input bits.
pub(crate) const MAX_BITS: u32 = 120;
