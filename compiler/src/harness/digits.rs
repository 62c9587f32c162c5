//! Copies of a tensor from one layout to another by strides, on several threads.
//!
//! A position that is a sum of one table for each axis ([`AxisTables`](super::places::AxisTables)) is taken apart into digits: the
//! index of an axis is one digit or two, each of which moves through both layouts with a fixed stride.
//!
//! ```text
//! n, h, w, c  ->  [n, c // 4, h, w, c % 4]      17 channels, 7 x 9 pixels
//! digit     extent   stride, logical   stride, physical
//! n         2        1071              1260
//! h         7        153               36
//! w         9        17                4
//! c // 4    5        4                 252       the last block has 1 channel
//! c % 4     4        1                 1
//! ```
//!
//! Digits show that no two elements share a place, and which parts of the memory no two threads write.

use rayon::prelude::*;

/// A digit of a logical index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    extent: usize,
    logical: usize,
    physical: usize,
    /// The digit behind this one is the lower half of the same index, of which the last block has this many values.
    last_block: Option<usize>,
}

/// The layout of a tensor as digits, the most significant logical one first.
#[derive(Debug)]
pub(super) struct Digits {
    digits: Vec<Digit>,
    /// The physical place of the first element.
    start: usize,
}

/// The way of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From logical order to the memory.
    Pack,
    /// From the memory to logical order.
    Unpack,
}

/// A digit as a copy sees it.
#[derive(Clone, Copy, Debug)]
struct Step {
    extent: usize,
    from: usize,
    to: usize,
    last_block: Option<usize>,
}

/// Elements below which one thread copies all of them.
const SMALL: usize = 1 << 15;

impl Digits {
    /// The digits of positions that are `start` and one term for each axis. `None` if an axis is no digit and no two, or if two
    /// elements might share a place.
    pub(super) fn of(start: usize, terms: &[Vec<usize>]) -> Option<Self> {
        let mut digits = Vec::new();
        let mut start = start;
        for (axis, table) in terms.iter().enumerate() {
            let logical = terms[axis + 1..].iter().map(Vec::len).product();
            start += table.first()?;
            digits.extend(axis_digits(table, logical)?);
        }
        let digits = Self { digits, start };
        digits.is_injective().then_some(digits)
    }

    /// Whether the greatest place below each digit is less than its stride, as in a numeral.
    fn is_injective(&self) -> bool {
        let mut by_stride: Vec<&Digit> = self.digits.iter().collect();
        by_stride.sort_by_key(|digit| digit.physical);
        let mut reach = 0;
        by_stride.into_iter().all(|digit| {
            let is_apart = digit.physical > reach || digit.extent == 1;
            reach += (digit.extent - 1) * digit.physical;
            is_apart
        })
    }

    /// Copies elements of `size` bytes. All places are inside of both memories, which [`Digits::fits`] says.
    pub(super) fn copy(&self, way: Way, size: usize, from: &[u8], to: &mut [u8]) {
        match size {
            1 => self.copy_sized::<1>(way, from, to),
            2 => self.copy_sized::<2>(way, from, to),
            4 => self.copy_sized::<4>(way, from, to),
            8 => self.copy_sized::<8>(way, from, to),
            16 => self.copy_sized::<16>(way, from, to),
            _ => self.copy_parts(way, size, from, to),
        }
    }

    /// Copies elements of `size` parts each.
    pub(super) fn copy_parts<T: Copy + Send + Sync>(&self, way: Way, size: usize, from: &[T], to: &mut [T]) {
        let wide = |digit: &Digit| Digit { logical: digit.logical * size, physical: digit.physical * size, ..*digit };
        let mut digits: Vec<Digit> = self.digits.iter().map(wide).collect();
        digits.push(Digit { extent: size, logical: 1, physical: 1, last_block: None });
        Self { digits, start: self.start * size }.copy_each(way, from, to);
    }

    /// Whether all places are inside of memory of so many elements.
    pub(super) fn fits(&self, logical: usize, physical: usize) -> bool {
        let end = |stride: fn(&Digit) -> usize| -> usize {
            self.digits.iter().map(|digit| (digit.extent - 1) * stride(digit)).sum()
        };
        // The last block of an axis may be short, so the sum of the greatest digits is a bound, and not always a place.
        let short: usize = self
            .digits
            .windows(2)
            .filter_map(|pair| Some((pair[1].extent - pair[0].last_block?) * pair[1].logical))
            .sum();
        end(|digit| digit.logical) - short < logical && self.start + end(|digit| digit.physical) < physical
    }

    fn copy_sized<const SIZE: usize>(&self, way: Way, from: &[u8], to: &mut [u8]) {
        let (from, _) = from.as_chunks::<SIZE>();
        let (to, _) = to.as_chunks_mut::<SIZE>();
        self.copy_each(way, from, to);
    }

    fn copy_each<T: Copy + Send + Sync>(&self, way: Way, from: &[T], to: &mut [T]) {
        let step = |digit: &Digit| {
            let (from, to) = match way {
                Way::Pack => (digit.logical, digit.physical),
                Way::Unpack => (digit.physical, digit.logical),
            };
            Step { extent: digit.extent, from, to, last_block: digit.last_block }
        };
        let steps: Vec<Step> = self.digits.iter().map(step).collect();
        let (from, to) = match way {
            Way::Pack => (from, &mut to[self.start..]),
            Way::Unpack => (&from[self.start..], to),
        };
        copy_steps(&steps, from, to);
    }
}

/// The digits of an axis whose index `i` moves through the memory by `table[i]`, which begins anywhere and grows.
fn axis_digits(table: &[usize], logical: usize) -> Option<Vec<Digit>> {
    let extent = table.len();
    let at = |index: usize| table[index].checked_sub(table[0]);
    let stride = table.get(1).map_or(Some(0), |_| at(1))?;
    let block = (0..extent).take_while(|&index| at(index) == Some(index * stride)).count();
    if block == extent {
        return Some(vec![Digit { extent, logical, physical: stride, last_block: None }]);
    }
    let (blocks, rest) = (extent.div_ceil(block), extent % block);
    let outer = at(block)?;
    if (0..extent).any(|index| at(index) != Some(index / block * outer + index % block * stride)) {
        return None;
    }
    let last_block = (rest > 0).then_some(rest);
    Some(vec![
        Digit { extent: blocks, logical: logical * block, physical: outer, last_block },
        Digit { extent: block, logical, physical: stride, last_block: None },
    ])
}

/// Copies along all steps. The one with the greatest stride in `to` cuts it into parts that are written at the same time.
fn copy_steps<T: Copy + Send + Sync>(steps: &[Step], from: &[T], to: &mut [T]) {
    let elements: usize = steps.iter().map(|step| step.extent).product();
    let outer = (0..steps.len()).filter(|&place| steps[place].extent > 1).max_by_key(|&place| steps[place].to);
    // The lower half of a ragged axis depends on the upper half, which has to come first.
    let is_lower = |place: usize| place > 0 && steps[place - 1].last_block.is_some();
    match outer.filter(|&place| elements > SMALL && !is_lower(place)) {
        None => copy_nest(steps, from, to),
        Some(place) => {
            let Step { extent, from: stride, to: part, last_block } = steps[place];
            to.par_chunks_mut(part).take(extent).enumerate().for_each(|(digit, to)| {
                let mut inner = steps.to_vec();
                inner.remove(place);
                if let (Some(rest), true) = (last_block, digit + 1 == extent) {
                    inner[place].extent = rest;
                }
                copy_nest(&inner, &from[digit * stride..], to);
            });
        }
    }
}

/// Copies along all steps, the first outermost.
fn copy_nest<T: Copy>(steps: &[Step], from: &[T], to: &mut [T]) {
    let Some((step, inner)) = steps.split_first() else {
        to[0] = from[0];
        return;
    };
    if inner.is_empty() {
        return copy_row(*step, from, to);
    }
    for digit in 0..step.extent {
        let (from, to) = (&from[digit * step.from..], &mut to[digit * step.to..]);
        match (step.last_block, inner) {
            (Some(rest), [lower, inner @ ..]) if digit + 1 == step.extent => {
                let mut short = vec![Step { extent: rest, ..*lower }];
                short.extend_from_slice(inner);
                copy_nest(&short, from, to);
            }
            _ => copy_nest(inner, from, to),
        }
    }
}

/// Copies a row.
fn copy_row<T: Copy>(Step { extent, from: near, to: far, .. }: Step, from: &[T], to: &mut [T]) {
    if (near, far) == (1, 1) {
        to[..extent].copy_from_slice(&from[..extent]);
    } else {
        for digit in 0..extent {
            to[digit * far] = from[digit * near];
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    fn terms(axes: &[&dyn Fn(usize) -> usize], extents: &[usize]) -> Vec<Vec<usize>> {
        axes.iter().zip(extents).map(|(axis, &extent)| (0..extent).map(axis).collect()).collect()
    }

    /// Packs and unpacks numbers of `size` bytes, and compares with the sum of the terms for each element.
    fn round_trip(start: usize, terms: &[Vec<usize>], physical: usize, size: usize) {
        let digits = Digits::of(start, terms).unwrap();
        let logical: usize = terms.iter().map(Vec::len).product();
        assert!(digits.fits(logical, physical));
        let bytes: Vec<u8> = (0..logical * size).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        let mut packed = vec![255; physical * size];
        digits.copy(Way::Pack, size, &bytes, &mut packed);
        let mut expected = vec![255; physical * size];
        for element in 0..logical {
            let mut rest = element;
            let place: usize = terms
                .iter()
                .rev()
                .map(|table| {
                    let term = table[rest % table.len()];
                    rest /= table.len();
                    term
                })
                .sum();
            let (to, from) = ((start + place) * size, element * size);
            expected[to..to + size].copy_from_slice(&bytes[from..from + size]);
        }
        assert_eq!(packed, expected);
        let mut back = vec![0; bytes.len()];
        digits.copy(Way::Unpack, size, &packed, &mut back);
        assert_eq!(back, bytes);
    }

    #[test]
    fn ragged_blocks_are_copied_on_one_thread_and_on_several() {
        for (h, w) in [(7, 9), (67, 91)] {
            let axes = terms(
                &[&|n| n * 5 * h * w * 4, &|y| y * w * 4, &|x| x * 4, &|c| c / 4 * h * w * 4 + c % 4],
                &[2, h, w, 17],
            );
            for size in [1, 2, 4, 8, 16, 3, 12] {
                round_trip(5, &axes, 5 + 2 * 5 * h * w * 4, size);
            }
        }
    }

    #[test]
    fn transposes_and_exchanged_halves_of_an_axis_are_copied() {
        round_trip(0, &terms(&[&|i| i, &|j| j * 301], &[301, 211]), 301 * 211, 4);
        // The lower half of the ragged axis is the outermost one in memory.
        round_trip(0, &terms(&[&|i| i % 8 * 3333 + i / 8, &|j| j * 11], &[83, 303]), 8 * 3333, 4);
        round_trip(3, &terms(&[&|i| i / 5 * 7 + i % 5], &[5]), 9, 2);
        round_trip(2, &[], 3, 8);
    }

    #[test]
    fn places_that_are_shared_or_no_digits_are_refused() {
        assert!(Digits::of(0, &terms(&[&|i| i * 4, &|j| j], &[3, 5])).is_none());
        assert!(Digits::of(0, &terms(&[&|_| 0], &[3])).is_none());
        assert!(Digits::of(0, &terms(&[&|i| 6 - i], &[7])).is_none());
        assert!(Digits::of(0, &terms(&[&|i| i * i], &[4])).is_none());
    }

    #[test]
    fn memory_that_is_too_small_does_not_fit() {
        let digits = Digits::of(1, &terms(&[&|i| i * 5, &|j| j], &[3, 5])).unwrap();
        assert!(digits.fits(15, 16));
        assert!(!digits.fits(15, 15) && !digits.fits(14, 16));
    }
}
