//! Linear algebra over GF(2): finds inverses and counterexamples of maps that move and mix bits.
//!
//! Over extents that are powers of two, a map built of xor, masks, shifts, sums of disjoint bits, and `* // %` by powers of
//! two computes each output bit as an xor of input bits: it is `M x + c` over the field of two elements. The parts:
//!
//! - `word`: integers whose bits are affine forms of the input bits, and the operators on them. An operator has no result
//!   if some bit would not be an affine form, for example an xor of digits whose radix is not a power of two.
//! - `system`: systems of affine equations: satisfiability, the largest value of a word, the kernel.
//!
//! Nothing here is believed. What is found is an index, which the map is evaluated at, or an inverse, which Z3 has to
//! confirm (`map::bits`).
//!
//! Input bits are numbered such that the number they form is the row-major position of the index.
//!
//! ```text
//! lambda i, j: [i, j ^ (i % 8)]   on (64, 8)     9 input bits, 9 output bits: j0 ^ i0, j1 ^ i1, j2 ^ i2, i0, .., i5
//! ```

mod system;
mod word;

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Expr, IndexMap, InverseClaim, Var};

use self::system::{System, kernel_pair, left_inverse, solve};
use self::word::{Affine, Word, extract};

/// Greatest number of input bits.
const MAX_BITS: u32 = 120;

/// A map whose output bits are affine forms of the input bits.
#[derive(Debug)]
pub(crate) struct Linear {
    /// The bits of the domain.
    inputs: Inputs,
    /// The outputs of the map.
    outputs: Vec<Word>,
}

impl Linear {
    /// The affine form of a map on a box of constant extents; `None` if it has none.
    pub(crate) fn new(map: &IndexMap, domain: &[i128]) -> Option<Self> {
        let inputs = Inputs::new(domain)?;
        let outputs = words(map.outputs(), &inputs.words(map.vars()))?;
        Some(Self { inputs, outputs })
    }

    /// The first index whose image lies outside of a shape.
    pub(crate) fn outside(&self, shape: &[i128]) -> Option<Vec<i128>> {
        let pairs = self.outputs.iter().zip(shape);
        let first = pairs.filter_map(|(word, &extent)| {
            let outside = |system: &System| system.possible(word.sign) || system.largest(word) >= extent;
            let any = System::default();
            outside(&any).then(|| self.inputs.index(any.smallest(self.inputs.total, outside)))
        });
        first.min()
    }

    /// Two indices with the same image: those with the smallest second one.
    pub(crate) fn collision(&self) -> Option<(Vec<i128>, Vec<i128>)> {
        let forms: Vec<Affine> = self.forms().into_iter().map(|(.., form)| form).collect();
        let (first, second) = kernel_pair(&forms, self.inputs.total)?;
        Some((self.inputs.index(first), self.inputs.index(second)))
    }

    /// A left inverse of the map; `None` if there is none.
    pub(crate) fn left_inverse(&self) -> Option<InverseClaim> {
        let rows = self.forms();
        let forms: Vec<Affine> = rows.iter().map(|(.., form)| *form).collect();
        let (chosen, inverse) = left_inverse(&forms, self.inputs.total)?;
        let vars: Vec<Var> = (0..self.outputs.len()).map(|output| Var::index(format!("p{output}"))).collect();
        // Input bit `b` is the xor of the output bits in `inverse[b]`, and of the constants in their forms.
        let bit_of = |input: u32| {
            let in_it = |at: &usize| inverse[input as usize] >> *at & 1 == 1;
            (0..chosen.len()).filter(in_it).fold(Expr::int(0), |sum, at| {
                let (output, position, form) = &rows[chosen[at]];
                let shifted = Expr::from(&vars[*output]).floor_div(power(*position));
                let bit = Expr::binary(BinaryOp::BitXor, sum, shifted.floor_mod(Expr::int(2)));
                if form.one { Expr::binary(BinaryOp::BitXor, bit, Expr::int(1)) } else { bit }
            })
        };
        let axis_of = |(axis, &width): (usize, &u32)| {
            let bits = (0..width).map(|bit| bit_of(self.inputs.first(axis) + bit) * power(bit));
            bits.fold(Expr::int(0), |sum, bit| sum + bit)
        };
        let outputs = self.inputs.widths.iter().enumerate().map(axis_of).collect();
        Some(InverseClaim { vars, outputs, padding: Expr::bool(false) })
    }

    /// An index at which an output has a value; or, if there is none, the largest value of the output if it is never negative.
    pub(crate) fn reaches(&self, output: usize, value: i128) -> Result<Vec<i128>, Option<i128>> {
        let word = &self.outputs[output];
        let found = solve(word, value).map(|system| system.smallest(self.inputs.total, |_| true));
        let largest = || {
            let mut system = System::default();
            system.require(word.sign, false).then(|| system.largest(word))
        };
        found.map(|input| self.inputs.index(input)).ok_or_else(largest)
    }

    /// The first index at which the map differs from another one with the same domain. An error if that has no affine form.
    pub(crate) fn differs_from(&self, other: &IndexMap) -> Result<Option<Vec<i128>>, NotAffine> {
        let stated = words(other.outputs(), &self.inputs.words(other.vars())).ok_or(NotAffine)?;
        Ok(self.inputs.first_difference(&self.outputs, &stated))
    }

    /// The first index that an inverse does not lead back to. An error if there is no affine form.
    pub(crate) fn lost_by(&self, inverse: &InverseClaim) -> Result<Option<Vec<i128>>, NotAffine> {
        let images = inverse.vars.iter().cloned().zip(self.outputs.iter().cloned()).collect();
        let back = words(&inverse.outputs, &images).ok_or(NotAffine)?;
        Ok(self.inputs.first_difference(&back, &self.inputs.axes()))
    }

    /// The first physical index of a shape without padding that the map does not lead back to from its inverse. An error if
    /// there is no affine form.
    pub(crate) fn unreached_by(
        map: &IndexMap,
        inverse: &InverseClaim,
        shape: &[i128],
    ) -> Result<Option<Vec<i128>>, NotAffine> {
        let physical = Inputs::new(shape).ok_or(NotAffine)?;
        let back = words(&inverse.outputs, &physical.words(&inverse.vars)).ok_or(NotAffine)?;
        let again = words(map.outputs(), &map.vars().iter().cloned().zip(back).collect()).ok_or(NotAffine)?;
        Ok(physical.first_difference(&again, &physical.axes()))
    }

    /// The bits of the outputs that depend on the input: the output, the position, and the form.
    fn forms(&self) -> Vec<(usize, u32, Affine)> {
        let bits = self.outputs.iter().enumerate().flat_map(|(output, word)| {
            (0u32..).zip(word.bits.iter().chain([&word.sign])).map(move |(position, form)| (output, position, *form))
        });
        bits.filter(|(.., form)| form.mask != 0).collect()
    }
}

/// An expression has no affine form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAffine;

/// `2^exponent`
fn power(exponent: u32) -> Expr {
    Expr::Int { value: 1 << exponent, ty: tilewright_ir::ScalarType::Int32 }
}

/// Expressions as words.
fn words(exprs: &[Expr], vars: &HashMap<Var, Word>) -> Option<Vec<Word>> {
    exprs.iter().map(|expr| extract(expr, vars)).collect()
}

/// A box of power-of-two extents as input bits: bit 0 is the lowest of the last axis.
#[derive(Debug)]
struct Inputs {
    /// Number of bits of each axis.
    widths: Vec<u32>,
    /// Number of bits of all axes.
    total: u32,
}

impl Inputs {
    /// The bits of a box; `None` if an extent is not a power of two or there are more than [`MAX_BITS`] bits.
    fn new(extents: &[i128]) -> Option<Self> {
        let exponent = |extent: &i128| (*extent > 0 && extent.count_ones() == 1).then(|| extent.trailing_zeros());
        let widths: Vec<u32> = extents.iter().map(exponent).collect::<Option<_>>()?;
        let total = widths.iter().try_fold(0u32, |sum, width| sum.checked_add(*width))?;
        (total <= MAX_BITS).then_some(Self { widths, total })
    }

    /// The lowest bit of an axis.
    fn first(&self, axis: usize) -> u32 {
        self.widths[axis + 1..].iter().sum()
    }

    /// The index of each axis as a word.
    fn axes(&self) -> Vec<Word> {
        self.widths.iter().enumerate().map(|(axis, &width)| Word::input(self.first(axis), width)).collect()
    }

    /// The words of the variables, one for each axis.
    fn words(&self, vars: &[Var]) -> HashMap<Var, Word> {
        vars.iter().cloned().zip(self.axes()).collect()
    }

    /// The index at the row-major position `input`.
    fn index(&self, input: u128) -> Vec<i128> {
        let part = |axis: usize| (input >> self.first(axis)) & ((1 << self.widths[axis]) - 1);
        (0..self.widths.len()).map(|axis| i128::try_from(part(axis)).unwrap_or(0)).collect()
    }

    /// The first index at which a bit is 1, if it ever is.
    fn first_one(&self, bit: Affine) -> Option<Vec<i128>> {
        let system = System::default();
        system.possible(bit).then(|| self.index(system.smallest(self.total, |system| system.possible(bit))))
    }

    /// The first index at which two lists of words differ.
    fn first_difference(&self, these: &[Word], others: &[Word]) -> Option<Vec<i128>> {
        let bits = these.iter().zip(others).flat_map(|(this, other)| {
            let width = this.bits.len().max(other.bits.len());
            (0..=width).map(|at| this.at(at) ^ other.at(at)).collect::<Vec<_>>()
        });
        bits.filter_map(|bit| self.first_one(bit)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concrete::row_major;
    use tilewright_ir::Bindings;

    /// The map `[h, w ^ f(h, w), c]` on 8 x 16 x 2.
    fn mixed(mix: impl Fn(Expr, Expr) -> Expr) -> IndexMap {
        let vars = ["h", "w", "c"].map(Var::index).to_vec();
        let [h, w, c] = [0, 1, 2].map(|axis| Expr::from(&vars[axis]));
        let outputs = vec![h.clone(), Expr::binary(BinaryOp::BitXor, w.clone(), mix(h, w)), c];
        IndexMap::new(vars, [8, 16, 2].map(Expr::int).to_vec(), outputs, vec![]).unwrap()
    }

    #[test]
    fn a_left_inverse_leads_back_from_every_image() {
        let maps = [
            mixed(|h, _| h.floor_mod(Expr::int(4))),
            mixed(|h, w| h + w.floor_div(Expr::int(8)) * Expr::int(8)),
            mixed(|_, w| w.floor_div(Expr::int(2))),
            mixed(|h, _| Expr::int(15) - h),
        ];
        let mut found = 0;
        for map in maps {
            let Some(inverse) = Linear::new(&map, &[8, 16, 2]).and_then(|linear| linear.left_inverse()) else {
                continue;
            };
            found += 1;
            for index in row_major(&[8, 16, 2]) {
                let image = map.eval(&index, &Bindings::new()).unwrap();
                let at: Bindings = inverse.vars.iter().cloned().zip(image).collect();
                let back: Vec<i128> = inverse.outputs.iter().map(|output| output.eval_index(&at).unwrap()).collect();
                assert_eq!(back, index, "{map}");
            }
        }
        assert_eq!(found, 3);
    }

    #[test]
    fn a_map_that_loses_a_bit_has_no_left_inverse_but_a_collision() {
        let map = mixed(|_, w| w.floor_div(Expr::int(2)) * Expr::int(2));
        let linear = Linear::new(&map, &[8, 16, 2]).unwrap();
        assert!(linear.left_inverse().is_none());
        assert_eq!(linear.collision(), Some((vec![0, 0, 0], vec![0, 2, 0])));
    }
}
