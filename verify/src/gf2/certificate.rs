//! The certificate that an affine map is injective, and its checker.
//!
//! ```text
//! lambda i: [i ^ (i >> 1)] on 4     rows: output bits 0, 1    matrix: {i0, i1}, {i1}    inverse: i0 = row 0 ^ row 1, i1 = row 1
//! ```
//!
//! The check is independent of the search in `system`: a multiplication over GF(2) and `n + 1` evaluations of the map.

use tilewright_ir::{Bindings, IndexMap};

/// A certificate that an affine map over bits is injective: output bits that determine all input bits.
///
/// Input bit `b` is bit `b` of the row-major position of the index. Output bit `rows[r]` (an output, and a bit of it) is
/// the xor of the input bits in `matrix[r]` and a constant; input bit `i` is the xor of the output bits whose positions in
/// `rows` are the bits of `inverse[i]`, and a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gf2Certificate {
    /// The output bits, as the number of an output and of a bit.
    pub rows: Vec<(usize, u32)>,
    /// For each output bit the set of input bits in it.
    pub matrix: Vec<u128>,
    /// For each input bit the set of rows whose xor it is.
    pub inverse: Vec<u128>,
}

/// Why a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The extents are not powers of two, or the parts have the wrong sizes.
    #[error("the certificate does not fit the map")]
    Shape,
    /// The product of inverse and matrix differs from the identity in this row.
    #[error("row {0} of inverse times matrix is wrong")]
    Product(usize),
    /// The map and the matrix differ in the effect of this input bit.
    #[error("the map and the matrix differ in the effect of input bit {0}")]
    Basis(u32),
}

impl Gf2Certificate {
    /// Checks the certificate against a map with constant extents: the inverse by multiplication, and the matrix by
    /// evaluating the map at 0 and at each unit vector.
    ///
    /// That the map is affine is not checked here; it rests on the extraction, and is a goal for Z3.
    ///
    /// # Errors
    /// The first check that fails.
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
        // First the inverse: row `input` of inverse times matrix must be the unit vector, so the matrix is invertible.
        for (input, row) in self.inverse.iter().enumerate() {
            let made = (0..size).filter(|at| row >> at & 1 == 1).fold(0, |sum, at| sum ^ self.matrix[at]);
            if made != 1 << input || (inputs < 128 && row >> inputs != 0) {
                return Err(CertificateError::Product(input));
            }
        }
        // Then the matrix: an affine map is determined by its values at 0 and at the unit vectors.
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

/// The index at a row-major position.
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
