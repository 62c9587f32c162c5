//! Linear algebra over GF(2), for maps that move and mix bits.
//!
//! Over extents that are powers of two, a map built of xor, masks, shifts, sums of disjoint bits, and `* // %` by powers of
//! two computes each output bit as an xor of input bits: it is `M x + c` over the field of two elements. The parts:
//!
//! - `word`: integers whose bits are affine forms of the input bits, and the operators on them. An operator has no result
//!   if some bit would not be an affine form, for example an xor of digits whose radix is not a power of two.
//! - `system`: systems of affine equations: satisfiability, the largest value of a word, the kernel.
//! - `certificate`: a square matrix of output bits that determine all input bits, and its inverse. The checker multiplies
//!   the two and evaluates the map on the basis; it shares no code with the search.
//!
//! Input bits are numbered such that the number they form is the row-major position of the index.

mod certificate;
mod system;
mod word;

pub use certificate::{CertificateError, Gf2Certificate};
use system::left_inverse;
pub(crate) use system::{System, kernel_pair, solve};
pub(crate) use word::{Affine, Word, extract};

use std::collections::HashMap;

use tilewright_ir::{IndexMap, Var};

/// A certificate that a map with constant extents is injective. `None` if the map is not affine over bits, or not
/// injective.
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

/// A certificate that the bits of some words determine all input bits, if they do.
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
    /// Number of bits of each axis.
    pub(crate) widths: Vec<u32>,
    /// Number of bits of all axes.
    pub(crate) total: u32,
}

impl Inputs {
    /// The bits of a box; `None` if an extent is not a power of two or there are more than [`MAX_BITS`] bits.
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

    /// The words of the variables, one for each axis.
    pub(crate) fn words(&self, vars: &[Var]) -> HashMap<Var, Word> {
        vars.iter().cloned().zip(self.axes()).collect()
    }

    /// The index at the row-major position `input`.
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

/// Greatest number of input bits.
pub(crate) const MAX_BITS: u32 = 120;
