//! Systems of affine equations over GF(2) in reduced row echelon form.
//!
//! ```text
//! x0 ^ x1 = 0, x1 ^ x2 = 1      rows x0 ^ x1 and x0 ^ x2 ^ 1: x0 is free and determines x1 and x2
//! ```
//!
//! A form is an xor of input bits and a constant ([`Affine`]). Every row can be solved for its highest bit, so a form
//! that is reduced by all rows contains free bits only: it can be 0 and 1 unless it is a constant.

use super::word::{Affine, Word};
use tilewright_ir::sabotage;

/// A satisfiable system of equations `form = 0`.
#[derive(Clone, Debug, Default)]
pub(super) struct System {
    /// The highest bit of each row occurs in no other row.
    rows: Vec<Affine>,
}

/// The highest bit of a mask; 0 if it is empty.
fn highest(mask: u128) -> u128 {
    mask.checked_ilog2().map_or(0, |top| 1 << top)
}

impl System {
    /// A form without the highest bits of the rows that has the same value wherever the equations hold.
    pub(super) fn reduce(&self, mut form: Affine) -> Affine {
        for row in &self.rows {
            if form.mask & highest(row.mask) != 0 {
                form = form ^ *row;
            }
        }
        form
    }

    /// Adds the equation `form = value`. Returns false, and changes nothing, if it contradicts the system.
    pub(super) fn require(&mut self, form: Affine, value: bool) -> bool {
        let form = self.reduce(if value { !form } else { form });
        if form.mask == 0 {
            return !form.one;
        }
        let top = highest(form.mask);
        for row in &mut self.rows {
            if row.mask & top != 0 {
                *row = *row ^ form;
            }
        }
        self.rows.push(form);
        true
    }

    /// The largest value of a non-negative word under the equations.
    pub(super) fn largest(&self, word: &Word) -> i128 {
        let mut system = self.clone();
        word.bits.iter().rev().fold(0, |value, bit| 2 * value + i128::from(system.require(*bit, true)))
    }

    /// Whether a bit can be 1 under the equations.
    pub(super) fn possible(&self, bit: Affine) -> bool {
        let form = self.reduce(bit);
        form.mask != 0 || form.one
    }

    /// The smallest assignment of the `inputs` input bits that `possible` accepts. The bits are fixed from the highest one
    /// down: 0 if `possible` holds of the equations so far with that bit 0, else 1. `possible` must hold of this system.
    pub(super) fn smallest(&self, inputs: u32, possible: impl Fn(&Self) -> bool) -> u128 {
        let (mut system, mut found) = (self.clone(), 0);
        for bit in (0..inputs).rev() {
            let form = Affine { mask: 1 << bit, one: false };
            let mut without = system.clone();
            if without.require(form, false) && possible(&without) {
                system = without;
            } else {
                system.require(form, true);
                found |= 1 << bit;
            }
        }
        found
    }
}

/// The equations under which a word has a value; `None` if it never has.
pub(super) fn solve(word: &Word, value: i128) -> Option<System> {
    let mut system = System::default();
    let width = word.bits.len().max(128 - value.unsigned_abs().leading_zeros() as usize).min(127);
    let lowest = usize::from(sabotage::on("bits-skip-lowest"));
    let fits = (lowest..width).all(|at| system.require(word.at(at), value >> at & 1 == 1));
    (fits && system.require(word.sign, value < 0)).then_some(system)
}

/// Two inputs at which all forms agree: those with the smallest second input, and with the smallest first one for it.
/// `None` if the forms determine the input.
pub(super) fn kernel_pair(forms: &[Affine], inputs: u32) -> Option<(u128, u128)> {
    // Column by column: a bit whose effect equals that of some lower bits gives an element of the kernel.
    let mut seen: Vec<(Vec<bool>, u128)> = Vec::new();
    for bit in 0..inputs {
        let mut effect: Vec<bool> = forms.iter().map(|form| form.mask >> bit & 1 == 1).collect();
        let mut made_of = 1u128 << bit;
        for (pivot, of) in &seen {
            let lead = pivot.iter().position(|set| *set);
            if lead.is_some_and(|lead| effect[lead]) {
                effect.iter_mut().zip(pivot).for_each(|(a, b)| *a ^= *b);
                made_of ^= *of;
            }
        }
        if effect.iter().all(|set| !set) {
            // No element below is in the kernel, so the partner is unique.
            return Some((made_of ^ (1 << bit), 1 << bit));
        }
        seen.push((effect, made_of));
    }
    None
}

/// Chooses as many forms as there are inputs such that they determine the inputs, and inverts them: entry `i` of the
/// inverse is the set of chosen forms whose xor is input `i`, up to a constant. `None` if the forms do not determine the
/// inputs.
pub(super) fn left_inverse(forms: &[Affine], inputs: u32) -> Option<(Vec<usize>, Vec<u128>)> {
    let mut chosen: Vec<usize> = Vec::new();
    // Reduced rows, and the set of chosen forms that each one is the xor of.
    let mut rows: Vec<(u128, u128)> = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        let (mut mask, mut of) = (form.mask, 1u128 << chosen.len().min(127));
        for (row, made_of) in &rows {
            if mask & highest(*row) != 0 {
                mask ^= row;
                of ^= made_of;
            }
        }
        if mask == 0 {
            continue;
        }
        for (row, made_of) in &mut rows {
            if *row & highest(mask) != 0 {
                *row ^= mask;
                *made_of ^= of;
            }
        }
        rows.push((mask, of));
        chosen.push(at);
    }
    rows.sort_unstable();
    let full = rows.len() == inputs as usize && rows.iter().zip(0..).all(|((mask, _), bit)| *mask == 1 << bit);
    full.then(|| (chosen, rows.into_iter().map(|(_, of)| of).collect()))
}
