//! The certificate that an affine map is injective, and its checker.

use tilewright_ir::{Bindings, IndexMap};

/// That a map over `inputs` input bits is injective: output bits that determine all of them.
///
/// Input bit `b` is bit `b` of the place of the index in row-major order. Row `r` of `matrix` holds the input bits that
/// output bit `rows[r]` (an output, and a bit of it) is the xor of, but for a constant; row `i` of `inverse` holds
/// the positions in `rows` whose xor is input bit `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gf2Certificate {
    /// Which bit of which output.
    pub rows: Vec<(usize, u32)>,
    /// The input bits in each of them.
    pub matrix: Vec<u128>,
    /// For each input bit the rows that make it.
    pub inverse: Vec<u128>,
}

/// What is wrong with a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The extents are no powers of two, or the parts have the wrong sizes.
    #[error("the certificate does not fit the map")]
    Shape,
    /// The product of inverse and matrix is not 1 in this row.
    #[error("row {0} of inverse times matrix is wrong")]
    Product(usize),
    /// The map does not do what the matrix says to this input bit.
    #[error("the map does not do what the matrix says to input bit {0}")]
    Basis(u32),
}

impl Gf2Certificate {
    /// Checks it against a map with constant extents: that the inverse is one, by multiplication; that the map is the
    /// matrix on the basis, by evaluation at 0 and at each unit vector. That the map is affine is the extraction's word
    /// (and a goal for Z3).
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, map: &IndexMap) -> Result<(), CertificateError> {
        let widths: Option<Vec<u32>> = map
            .domain()
            .iter()
            .map(|extent| {
                let extent = extent.as_const_int().filter(|extent| *extent > 0 && extent.count_ones() == 1)?;
                Some(extent.trailing_zeros())
            })
            .collect();
        let widths = widths.ok_or(CertificateError::Shape)?;
        let inputs = widths.iter().try_fold(0u32, |sum, width| sum.checked_add(*width)).unwrap_or(u32::MAX);
        let size = inputs as usize;
        let fits = inputs <= 127 && [self.rows.len(), self.matrix.len(), self.inverse.len()] == [size; 3];
        let inside = self.rows.iter().all(|(output, bit)| *output < map.outputs().len() && *bit < 127);
        if !fits || !inside {
            return Err(CertificateError::Shape);
        }
        for (input, row) in self.inverse.iter().enumerate() {
            let made = (0..size).filter(|at| row >> at & 1 == 1).fold(0, |sum, at| sum ^ self.matrix[at]);
            if made != 1 << input || (inputs < 128 && row >> inputs != 0) {
                return Err(CertificateError::Product(input));
            }
        }
        let at = |input: u128| map.eval(&index(input, &widths), &Bindings::new()).ok();
        let zero = at(0).ok_or(CertificateError::Basis(0))?;
        for bit in 0..inputs {
            let image = at(1 << bit).ok_or(CertificateError::Basis(bit))?;
            let agrees = self.rows.iter().zip(&self.matrix).all(|((output, position), row)| {
                let changed = (image[*output] ^ zero[*output]) >> position & 1 == 1;
                changed == (row >> bit & 1 == 1)
            });
            if !agrees {
                return Err(CertificateError::Basis(bit));
            }
        }
        Ok(())
    }
}

/// The index whose place in row-major order has these bits.
fn index(input: u128, widths: &[u32]) -> Vec<i128> {
    let mut rest = input;
    let mut index: Vec<i128> = widths
        .iter()
        .rev()
        .map(|width| {
            let part = i128::try_from(rest & ((1 << width) - 1)).unwrap_or(0);
            rest >>= width;
            part
        })
        .collect();
    index.reverse();
    index
}
