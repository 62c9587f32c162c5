//! How the elements of a logical tensor are arranged in memory: the conventions of the texture RFC.
//!
//! | arrangement | logical tensor | physical tensor | scope |
//! |---|---|---|---|
//! | [`Arrangement::Plain`] | any | the same | `global` |
//! | [`Arrangement::Channels4`] | N, C, H, W | N, ceil(C / 4), H, W, 4 (NCHW4c) | `texture` |
//! | [`Arrangement::Filter4`] | O, I, H, W | ceil(O / 4), I, H, W, 4 (OIHW4o) | `texture:weight` |
//! | [`Arrangement::Vector4`] | C | ceil(C / 4), 4 | `global` |
//!
//! If a number of channels is no multiple of 4, the last texels have lanes that no element has: padding. Packed constants have 0
//! there; kernels may leave anything, and never read it into a result.

use tilewright_interp::{Tensor, TensorError};
use tilewright_ir::{CHANNELS, Scalar, ScalarType, Scope};

/// An arrangement of a tensor in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arrangement {
    /// Row-major.
    Plain,
    /// Activations: 4 channels in a texel.
    Channels4,
    /// Weights of a convolution: 4 filters in a texel.
    Filter4,
    /// One number for each channel, in groups of 4.
    Vector4,
}

/// A tensor as a kernel sees it. Kernels for operands that differ in any of the fields are different kernels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    /// The logical extents.
    pub shape: Vec<u64>,
    /// How the elements are arranged, which decides the scope.
    pub arrangement: Arrangement,
    /// The element type in memory. Kernels compute in float32.
    pub dtype: ScalarType,
}

/// Lanes of a texel.
const LANES: u64 = CHANNELS as u64;

impl Arrangement {
    /// The scope of a buffer in this arrangement.
    pub fn scope(self) -> Scope {
        match self {
            Self::Plain | Self::Vector4 => Scope::Global,
            Self::Channels4 => Scope::Texture,
            Self::Filter4 => Scope::TextureWeight,
        }
    }

    /// The logical axis whose elements are the lanes; `None` if there is none.
    pub fn packed_axis(self) -> Option<usize> {
        match self {
            Self::Plain => None,
            Self::Channels4 => Some(1),
            Self::Filter4 | Self::Vector4 => Some(0),
        }
    }
}

impl Operand {
    /// A row-major tensor of float32.
    pub fn plain(shape: &[u64]) -> Self {
        Self { shape: shape.to_vec(), arrangement: Arrangement::Plain, dtype: ScalarType::Float32 }
    }

    /// The extents in memory. A tensor without axes has one of extent 1.
    pub fn physical(&self) -> Vec<u64> {
        let Some(axis) = self.arrangement.packed_axis() else {
            return if self.shape.is_empty() { vec![1] } else { self.shape.clone() };
        };
        let mut shape = self.shape.clone();
        if let Some(channels) = shape.get_mut(axis) {
            *channels = channels.div_ceil(LANES);
        }
        shape.push(LANES);
        shape
    }

    /// The row-major position in memory of each logical element, in row-major order of the logical elements.
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        let count: u64 = self.shape.iter().product();
        let axis = self.arrangement.packed_axis();
        // Elements behind the packed axis lie LANES apart, and the groups of lanes are the blocks of the axis.
        let inner: u64 = axis.map_or(1, |axis| self.shape.iter().skip(axis + 1).product());
        let extent = axis.and_then(|axis| self.shape.get(axis)).copied().unwrap_or(1);
        let place = move |element: u64| {
            if axis.is_none() {
                return element;
            }
            let (rest, within) = (element / inner, element % inner);
            let (outer, channel) = (rest / extent, rest % extent);
            let block = outer * extent.div_ceil(LANES) + channel / LANES;
            (block * inner + within) * LANES + channel % LANES
        };
        (0..count).map(move |element| usize::try_from(place(element)).unwrap_or(usize::MAX))
    }

    /// The tensor in memory with the given logical elements; padding is 0.
    ///
    /// # Errors
    /// The memory is not available.
    pub fn packed(&self, element: impl Fn(usize) -> f32) -> Result<Tensor, TensorError> {
        let mut packed = Tensor::from_fn(self.dtype, &self.physical(), |_| Scalar::Float(0.0))?;
        for (number, place) in self.positions().enumerate() {
            packed.set(place, Scalar::Float(f64::from(element(number))));
        }
        Ok(packed)
    }

    /// The logical elements of a tensor in memory, row-major; NaN for an element that is not defined.
    pub fn unpacked(&self, packed: &Tensor) -> Vec<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "the elements have float32 or a narrower type")]
        let value = |place| packed.get_f64(place).map_or(f32::NAN, |value| value as f32);
        self.positions().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(arrangement: Arrangement, shape: &[u64]) -> Operand {
        Operand { shape: shape.to_vec(), arrangement, dtype: ScalarType::Float32 }
    }

    #[test]
    fn the_physical_shape_has_whole_texels() {
        assert_eq!(operand(Arrangement::Channels4, &[2, 6, 3, 5]).physical(), [2, 2, 3, 5, 4]);
        assert_eq!(operand(Arrangement::Filter4, &[6, 7, 3, 5]).physical(), [2, 7, 3, 5, 4]);
        assert_eq!(operand(Arrangement::Vector4, &[9]).physical(), [3, 4]);
        assert_eq!(operand(Arrangement::Plain, &[]).physical(), [1]);
    }

    #[test]
    fn an_element_is_where_its_convention_says() {
        // The formula of each convention, written for one element.
        let activations = operand(Arrangement::Channels4, &[2, 6, 3, 5]);
        let at = |n: usize, c: usize, h: usize, w: usize| ((n * 6 + c) * 3 + h) * 5 + w;
        let positions: Vec<usize> = activations.positions().collect();
        assert_eq!(positions[at(1, 5, 2, 3)], ((((2 + 1) * 3 + 2) * 5) + 3) * 4 + 1);
        let weights = operand(Arrangement::Filter4, &[6, 7, 3, 5]);
        let positions: Vec<usize> = weights.positions().collect();
        assert_eq!(positions[at(0, 0, 0, 0)], 0);
        let at = |o: usize, i: usize, h: usize, w: usize| ((o * 7 + i) * 3 + h) * 5 + w;
        assert_eq!(positions[at(5, 4, 1, 2)], ((((7 + 4) * 3 + 1) * 5) + 2) * 4 + 1);
        assert_eq!(operand(Arrangement::Vector4, &[6]).positions().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn packing_keeps_every_element_and_pads_with_zero() -> Result<(), TensorError> {
        for arrangement in [Arrangement::Plain, Arrangement::Channels4, Arrangement::Filter4] {
            let operand = operand(arrangement, &[5, 6, 3, 7]);
            let values: Vec<f32> = (1..=5 * 6 * 3 * 7).map(|value: u16| f32::from(value)).collect();
            let packed = operand.packed(|at| values[at])?;
            assert_eq!(operand.unpacked(&packed), values);
            let n_zero = (0..packed.lane_count()).filter(|&lane| packed.get_f64(lane) == Some(0.0)).count();
            assert_eq!(n_zero, packed.lane_count() - values.len());
        }
        Ok(())
    }
}
