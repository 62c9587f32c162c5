//! Splits the logical axes of a relayout into digits.
//!
//! ```text
//! i1 in 155, at i1 in A and at [i1//128, i1%128] in B:
//!
//!   digit     extent  weight  steps in A  steps in B
//!   i1%128       128       1  [1]         [0, 1]
//!   i1//128        2     128  [128]       [1, 0]        128*1 + 127 >= 155: the axis is ragged
//! ```
//!
//! The maps are evaluated, not read: a digit ends where the place in A or in B stops being a multiple of one step, and the rest of
//! the axis is checked to repeat it. What is found is a claim. It is exact for axes of up to [`MAX_SAMPLES`] indices and sampled
//! beyond; the judge proves the program that is made of it.

use tilewright_ir::{Bindings, IndexMap};

use crate::error::RelayoutError;

/// Most indices of an axis at which the maps are evaluated one by one.
pub const MAX_SAMPLES: u64 = 1 << 16;
/// Indices of the whole shape at which the sum over the axes is compared with the map.
const MIXED_SAMPLES: u64 = 256;

/// Where the elements of an array are: a physical shape, in row-major order, and the physical index of each logical index.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The extents of the physical axes.
    pub shape: Vec<u64>,
    /// From a logical index to a physical one.
    pub map: IndexMap,
}

/// The same logical array in two layouts.
#[derive(Clone, Debug)]
pub struct Relayout {
    /// The logical extents.
    pub extents: Vec<u64>,
    /// The layout to move from.
    pub from: Placement,
    /// The layout to move to.
    pub to: Placement,
}

/// A digit of a logical index: `index // weight % extent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digit {
    /// The logical axis.
    pub axis: usize,
    /// The number of values.
    pub extent: u64,
    /// What one step of the digit adds to the logical index.
    pub weight: u64,
    /// What one step of the digit adds to each physical index of A.
    pub from: Vec<u64>,
    /// What one step of the digit adds to each physical index of B.
    pub to: Vec<u64>,
}

/// The digits of all axes, and where the first element is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Axis by axis, the least significant digit first. Digits with one value are left out.
    pub digits: Vec<Digit>,
    /// The physical index in A of the logical index 0.
    pub from: Vec<u64>,
    /// The physical index in B of the logical index 0.
    pub to: Vec<u64>,
}

impl Placement {
    /// Returns the number of slots of the memory.
    ///
    /// # Errors
    /// It is above 2^63 - 1.
    pub fn slots(&self) -> Result<u64, RelayoutError> {
        let extents: Vec<i128> = self.shape.iter().map(|&extent| i128::from(extent)).collect();
        tilewright_ir::checked_size(&extents).map_err(|error| RelayoutError::Shape(error.to_string()))
    }

    /// Returns the distance in memory between neighbours on each physical axis.
    pub fn strides(&self) -> Vec<u64> {
        let mut strides = vec![1; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            strides[axis - 1] = strides[axis] * self.shape[axis];
        }
        strides
    }

    /// Evaluates the map. `side` names the placement in errors.
    pub(crate) fn place(&self, index: &[u64], side: &'static str) -> Result<Vec<u64>, RelayoutError> {
        let wide: Vec<i128> = index.iter().map(|&value| i128::from(value)).collect();
        let place = self.map.eval(&wide, &Bindings::new()).ok();
        let place = place.and_then(|place| place.into_iter().map(|value| u64::try_from(value).ok()).collect());
        let place: Option<Vec<u64>> = place;
        place
            .filter(|place| place.iter().zip(&self.shape).all(|(value, extent)| value < extent))
            .ok_or_else(|| RelayoutError::NoPlace { side, at: index.to_vec() })
    }
}

impl Relayout {
    /// Splits each logical axis into digits.
    ///
    /// # Errors
    /// A place is not a sum of digits times steps, or a map does not fit the shape.
    pub fn digits(&self) -> Result<Digits, RelayoutError> {
        self.fits()?;
        let origin = vec![0; self.extents.len()];
        let (from, to) = (self.from.place(&origin, "A")?, self.to.place(&origin, "B")?);
        let mut digits = Vec::new();
        for axis in 0..self.extents.len() {
            digits.extend(Axis { relayout: self, number: axis, from: &from, to: &to }.digits()?);
        }
        let found = Digits { digits, from, to };
        self.compare(&found)?;
        Ok(found)
    }

    /// Checks that the parts have the ranks that they need, and that there are elements.
    pub(crate) fn fits(&self) -> Result<(), RelayoutError> {
        for (side, placement) in [("A", &self.from), ("B", &self.to)] {
            placement.slots()?;
            let (inputs, outputs) = (placement.map.vars().len(), placement.map.outputs().len());
            if inputs != self.extents.len() || outputs != placement.shape.len() {
                let message = format!(
                    "the map of {side} goes from {inputs} to {outputs} axes, and the shapes have {} and {}",
                    self.extents.len(),
                    placement.shape.len()
                );
                return Err(RelayoutError::Shape(message));
            }
        }
        if self.extents.contains(&0) {
            return Err(RelayoutError::Shape(format!("the shape {:?} has no elements", self.extents)));
        }
        Ok(())
    }

    /// Compares the sum of the digits with both maps at some indices of the whole shape.
    fn compare(&self, found: &Digits) -> Result<(), RelayoutError> {
        let mut state = 1u64;
        for sample in 0..MIXED_SAMPLES {
            let mut draw = |extent: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % extent
            };
            let last = |extent: u64| extent - 1;
            let index: Vec<u64> = match sample {
                0 => self.extents.iter().map(|&extent| last(extent)).collect(),
                _ => self.extents.iter().map(|&extent| draw(extent)).collect(),
            };
            let sum = |first: &[u64], steps: fn(&Digit) -> &[u64]| {
                let mut place = first.to_vec();
                for digit in &found.digits {
                    let value = index[digit.axis] / digit.weight % digit.extent;
                    place.iter_mut().zip(steps(digit)).for_each(|(place, step)| *place += value * step);
                }
                place
            };
            for (side, placement, claimed) in [
                ("A", &self.from, sum(&found.from, |digit| &digit.from)),
                ("B", &self.to, sum(&found.to, |digit| &digit.to)),
            ] {
                if placement.place(&index, side)? != claimed {
                    return Err(RelayoutError::Mixed { side, at: index });
                }
            }
        }
        Ok(())
    }
}

/// One logical axis, all other indices being 0.
struct Axis<'a> {
    relayout: &'a Relayout,
    number: usize,
    from: &'a [u64],
    to: &'a [u64],
}

/// The steps from the first element to another: those in A and those in B.
type Steps = (Vec<u64>, Vec<u64>);

impl Axis<'_> {
    /// The steps from index 0 to `value` on this axis. `None` if one of them is negative.
    fn steps(&self, value: u64) -> Result<Option<Steps>, RelayoutError> {
        let mut index = vec![0; self.relayout.extents.len()];
        index[self.number] = value;
        let less = |place: Vec<u64>, first: &[u64]| {
            place.iter().zip(first).map(|(place, first)| place.checked_sub(*first)).collect::<Option<Vec<u64>>>()
        };
        let from = less(self.relayout.from.place(&index, "A")?, self.from);
        let to = less(self.relayout.to.place(&index, "B")?, self.to);
        Ok(from.zip(to))
    }

    fn not_digits(&self) -> RelayoutError {
        RelayoutError::NotDigits { axis: self.number, side: "A or B" }
    }

    fn digits(&self) -> Result<Vec<Digit>, RelayoutError> {
        let extent = self.relayout.extents[self.number];
        let mut digits = Vec::new();
        let mut weight = 1;
        while weight < extent {
            let left = extent.div_ceil(weight);
            let unit = self.steps(weight)?.ok_or_else(|| self.not_digits())?;
            let run = self.run(weight, left, &unit)?;
            let is_last = run == left;
            let size = if is_last { left } else { self.repeating(weight, run, &unit)? };
            digits.push(Digit { axis: self.number, extent: size, weight, from: unit.0, to: unit.1 });
            weight *= size;
        }
        Ok(digits)
    }

    /// How many multiples of `weight` in a row, of `left`, are multiples of one step.
    fn run(&self, weight: u64, left: u64, unit: &Steps) -> Result<u64, RelayoutError> {
        for value in 2..left.min(MAX_SAMPLES) {
            if self.steps(value * weight)? != Some(times(value, unit)) {
                return Ok(value);
            }
        }
        if left <= MAX_SAMPLES {
            return Ok(left);
        }
        // Beyond the samples, the ends of what a power of two or the whole axis would be are looked at.
        let is_linear = |value: u64| Ok(self.steps(value * weight)? == Some(times(value, unit)));
        let mut size = MAX_SAMPLES;
        while size < left {
            if !is_linear(size)? {
                return Ok(size);
            }
            size *= 2;
        }
        if is_linear(left - 1)? { Ok(left) } else { Ok(size / 2) }
    }

    /// The largest divisor of `run` after which the axis repeats.
    fn repeating(&self, weight: u64, run: u64, unit: &Steps) -> Result<u64, RelayoutError> {
        for size in (2..=run).rev().filter(|size| run.is_multiple_of(*size)) {
            if self.is_repeating(weight, size, unit)? {
                return Ok(size);
            }
        }
        Err(self.not_digits())
    }

    /// Whether the place of `weight * (size * q + r)` is that of `weight * size * q` and `r` steps.
    fn is_repeating(&self, weight: u64, size: u64, unit: &Steps) -> Result<bool, RelayoutError> {
        let left = self.relayout.extents[self.number].div_ceil(weight);
        let stride = (left / MAX_SAMPLES).max(1);
        let mut value = size;
        while value < left {
            let (major, minor) = (value / size * size, value % size);
            let sum = self.steps(major * weight)?.map(|major| plus(&major, &times(minor, unit)));
            if self.steps(value * weight)? != sum {
                return Ok(false);
            }
            value += stride;
        }
        Ok(true)
    }
}

fn times(factor: u64, steps: &Steps) -> Steps {
    let each = |steps: &[u64]| steps.iter().map(|step| step * factor).collect();
    (each(&steps.0), each(&steps.1))
}

fn plus(a: &Steps, b: &Steps) -> Steps {
    let each = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a + b).collect();
    (each(&a.0, &b.0), each(&a.1, &b.1))
}
