//! Test inputs: values that depend on their position and on a seed, so that a wrong address gives a wrong result.

use tilewright_ir::{Scalar, TypeClass};

use crate::tensor::Tensor;

/// Fills a tensor; all lanes become defined. The value of a lane depends only on its number and the seed.
///
/// Signed integers are in -64..=63 and unsigned ones in 0..=127, so that they are exact in every type. Floats are
/// multiples of 1/8 in -8..8, exact in every float type with at least 8 bits of precision. There are no NaNs, infinities
/// or negative zeros.
#[expect(clippy::cast_precision_loss, reason = "at most 7 bits")]
pub fn fill(tensor: &mut Tensor, seed: u64) {
    let class = tensor.dtype().scalar.class();
    tensor.set_all(|lane| {
        let bits = mix(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(lane as u64));
        let small = i128::from(bits & 127);
        match class {
            TypeClass::Bool => Scalar::Int(small & 1),
            TypeClass::Int => Scalar::Int(small - 64),
            TypeClass::UInt | TypeClass::Handle => Scalar::Int(small),
            TypeClass::Float => Scalar::Float((small - 64) as f64 / 8.0),
        }
    });
}

/// A bijective mix of 64 bits: the finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
