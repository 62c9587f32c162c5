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
use system::left_inverse;
pub(crate) use system::{System, kernel_pair, solve};
pub(crate) use word::{Affine, Word, extract};

use std::collections::HashMap;

use tilewright_ir::{IndexMap, Var};

/// The certificate that a map of constant extents is injective; none if it is no affine map over bits, or not injective.
///
/// ```
/// use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};
/// let (i, j) = (Var::index("i"), Var::index("j"));
/// let mixed = Expr::binary(BinaryOp::BitXor, Expr::from(&j), Expr::from(&i).floor_mod(Expr::int(4)));
/// let map = IndexMap::new(vec![i.clone(), j], vec![Expr::int(64), Expr::int(8)], vec![Expr::from(i), mixed], vec![])?;
/// let certificate = tilewright_verify::gf2::certify(&map).ok_or("a swizzle is affine")?;
/// assert_eq!(certificate.rows.len(), 9);
/// certificate.check(&map)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn certify(map: &IndexMap) -> Option<Gf2Certificate> {
    let extents: Vec<i128> = map.domain().iter().map(tilewright_ir::Expr::as_const_int).collect::<Option<_>>()?;
    let inputs = Inputs::new(&extents)?;
    let words = inputs.words(map.vars());
    let outputs: Vec<Word> = map.outputs().iter().map(|output| extract(output, &words)).collect::<Option<_>>()?;
    certificate_of(&outputs, inputs.total)
}

/// The certificate that words determine all inputs, if they do.
pub(crate) fn certificate_of(outputs: &[Word], inputs: u32) -> Option<Gf2Certificate> {
    let mut rows = Vec::new();
    let mut forms = Vec::new();
    for (output, word) in outputs.iter().enumerate() {
        for (bit, form) in (0u32..).zip(word.bits.iter().chain([&word.sign])).filter(|(_, form)| form.mask != 0) {
            rows.push((output, bit));
            forms.push(*form);
        }
    }
    let (chosen, inverse) = left_inverse(&forms, inputs)?;
    let rows = chosen.iter().map(|at| rows[*at]).collect();
    let matrix = chosen.iter().map(|at| forms[*at].mask).collect();
    Some(Gf2Certificate { rows, matrix, inverse })
}

/// A box of power-of-two extents as input bits: bit 0 is the lowest of the last axis.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) widths: Vec<u32>,
    pub(crate) total: u32,
}

impl Inputs {
    pub(crate) fn new(extents: &[i128]) -> Option<Self> {
        let power = |extent: &i128| (*extent > 0 && extent.count_ones() == 1).then(|| extent.trailing_zeros());
        let widths: Vec<u32> = extents.iter().map(power).collect::<Option<_>>()?;
        let total = widths.iter().try_fold(0u32, |sum, width| sum.checked_add(*width))?;
        (total <= MAX_BITS).then_some(Self { widths, total })
    }

    /// The lowest bit of an axis.
    pub(crate) fn first(&self, axis: usize) -> u32 {
        self.widths[axis + 1..].iter().sum()
    }

    /// The index of each axis as a word.
    pub(crate) fn axes(&self) -> Vec<Word> {
        self.widths.iter().enumerate().map(|(axis, &width)| Word::input(self.first(axis), width)).collect()
    }

    /// The words of variables, one an axis.
    pub(crate) fn words(&self, vars: &[Var]) -> HashMap<Var, Word> {
        vars.iter().cloned().zip(self.axes()).collect()
    }

    /// The index whose place in row-major order is `input`.
    pub(crate) fn index(&self, input: u128) -> Vec<i128> {
        let part = |axis: usize| (input >> self.first(axis)) & ((1 << self.widths[axis]) - 1);
        (0..self.widths.len()).map(|axis| i128::try_from(part(axis)).unwrap_or(0)).collect()
    }

    /// The first index at which a bit is 1, if it ever is.
    pub(crate) fn first_one(&self, bit: Affine) -> Option<Vec<i128>> {
        let system = System::default();
        system.possible(bit).then(|| self.index(system.smallest(self.total, |system| system.possible(bit))))
    }
}

/// The most input bits.
pub(crate) const MAX_BITS: u32 = 120;
