//! Integers whose bits are affine forms of input bits, and the operators on them.
//!
//! A wrong rule would lead to an index or an inverse that is not confirmed.
//!
//! ```text
//! i on 8            bits i0, i1, i2, sign 0
//! i ^ (i >> 1)      bits i0 ^ i1, i1 ^ i2, i2
//! i * 3             no word: the carry of i + 2 * i is no xor of input bits
//! ```

use std::collections::HashMap;
use std::ops::{BitXor, Not};

use tilewright_ir::{BinaryOp, Expr, UnaryOp, Var};

/// Greatest number of bits in a word, not counting the sign.
const MAX_WIDTH: usize = 110;

/// A bit: the xor of the input bits in `mask`, and of 1 if `one`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Affine {
    /// The set of input bits.
    pub(super) mask: u128,
    /// Whether 1 is added.
    pub(super) one: bool,
}

impl Affine {
    /// The constant 0.
    pub(super) const ZERO: Self = Self { mask: 0, one: false };
    /// The constant 1.
    pub(super) const ONE: Self = Self { mask: 0, one: true };

    /// A constant bit.
    fn constant(value: bool) -> Self {
        Self { mask: 0, one: value }
    }

    /// Its value under an assignment of the input bits.
    #[cfg(test)]
    pub(super) fn at(self, input: u128) -> bool {
        ((self.mask & input).count_ones() % 2 == 1) ^ self.one
    }
}

impl BitXor for Affine {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        Self { mask: self.mask ^ other.mask, one: self.one ^ other.one }
    }
}

impl Not for Affine {
    type Output = Self;

    fn not(self) -> Self {
        self ^ Self::ONE
    }
}

/// An integer in two's complement: its low bits, and the sign, which all higher bits are equal to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The low bits, bit 0 first.
    pub(super) bits: Vec<Affine>,
    /// All bits above.
    pub(super) sign: Affine,
}

impl Word {
    /// The input bits `first..first + count` as a number.
    pub(super) fn input(first: u32, count: u32) -> Self {
        let bits = (first..first + count).map(|bit| Affine { mask: 1 << bit, one: false }).collect();
        Self { bits, sign: Affine::ZERO }
    }

    /// A constant.
    fn constant(value: i128) -> Self {
        let width = 128 - if value < 0 { value.leading_ones() } else { value.leading_zeros() };
        let bits = (0..width).map(|bit| Affine::constant(value >> bit & 1 == 1)).collect();
        Self { bits, sign: Affine::constant(value < 0) }
    }

    /// The value, if it depends on no input.
    pub(super) fn as_constant(&self) -> Option<i128> {
        let fixed = |bit: &Affine| bit.mask == 0;
        if self.bits.len() > 100 || !fixed(&self.sign) || !self.bits.iter().all(fixed) {
            return None;
        }
        let low = self.bits.iter().rev().fold(0i128, |value, bit| 2 * value + i128::from(bit.one));
        Some(if self.sign.one { low - (1 << self.bits.len()) } else { low })
    }

    /// The bit at a position.
    pub(super) fn at(&self, position: usize) -> Affine {
        self.bits.get(position).copied().unwrap_or(self.sign)
    }

    /// The word without high bits that equal the sign; `None` if it is still too long.
    fn trimmed(mut self) -> Option<Self> {
        while self.bits.last() == Some(&self.sign) {
            self.bits.pop();
        }
        (self.bits.len() <= MAX_WIDTH).then_some(self)
    }

    /// A bitwise operation; `None` if some bit is not affine.
    fn bitwise(&self, other: &Self, op: impl Fn(Affine, Affine) -> Option<Affine>) -> Option<Self> {
        let width = self.bits.len().max(other.bits.len());
        let bits = (0..width).map(|at| op(self.at(at), other.at(at))).collect::<Option<_>>()?;
        Self { bits, sign: op(self.sign, other.sign)? }.trimmed()
    }

    /// `~self`
    fn negated_bits(&self) -> Self {
        Self { bits: self.bits.iter().map(|bit| !*bit).collect(), sign: !self.sign }
    }

    /// `self * 2^by`
    fn raised(&self, by: usize) -> Option<Self> {
        let mut bits = vec![Affine::ZERO; by];
        bits.extend(&self.bits);
        Self { bits, sign: self.sign }.trimmed()
    }

    /// `self // 2^by`
    fn lowered(&self, by: usize) -> Self {
        Self { bits: self.bits.iter().skip(by).copied().collect(), sign: self.sign }
    }

    /// `self % 2^count`
    fn cut(&self, count: usize) -> Option<Self> {
        Self { bits: (0..count).map(|at| self.at(at)).collect(), sign: Affine::ZERO }.trimmed()
    }

    /// `self + other + carry`; `None` if some carry is not affine.
    fn plus(&self, other: &Self, mut carry: Affine) -> Option<Self> {
        let width = self.bits.len().max(other.bits.len()) + 1;
        let mut bits = Vec::new();
        for at in 0..=width {
            let (x, y) = (self.at(at), other.at(at));
            bits.push(x ^ y ^ carry);
            if at < width {
                carry = majority(x, y, carry)?;
            }
        }
        let sign = bits.pop()?;
        Self { bits, sign }.trimmed()
    }
}

/// `x and y`; `None` if that is not affine.
fn both(x: Affine, y: Affine) -> Option<Affine> {
    match (x, y) {
        (Affine::ZERO, _) | (_, Affine::ZERO) => Some(Affine::ZERO),
        (Affine::ONE, other) | (other, Affine::ONE) => Some(other),
        _ if x == y => Some(x),
        _ if x == !y => Some(Affine::ZERO),
        _ => None,
    }
}

/// The majority of three bits; `None` if that is not affine. Two equal bits decide it, two opposite ones leave it to the
/// third.
fn majority(x: Affine, y: Affine, z: Affine) -> Option<Affine> {
    if x == y || x == z {
        Some(x)
    } else if y == z || x == !y {
        Some(if y == z { y } else { z })
    } else if x == !z {
        Some(y)
    } else if y == !z {
        Some(x)
    } else {
        None
    }
}

/// The exponent of a word that is a constant power of two.
fn exponent(word: &Word) -> Option<usize> {
    let value = word.as_constant().filter(|value| *value > 0 && value.count_ones() == 1)?;
    usize::try_from(value.trailing_zeros()).ok()
}

/// An index expression as a word, given the words of its variables. `None` if a bit is not an affine form, or the
/// expression may have no value.
pub(super) fn extract(expr: &Expr, vars: &HashMap<Var, Word>) -> Option<Word> {
    match expr {
        Expr::Int { value, .. } => Word::constant(*value).trimmed(),
        Expr::Var(var) => vars.get(var).cloned(),
        Expr::Binary(op, lhs, rhs) => {
            let (a, b) = (extract(lhs, vars)?, extract(rhs, vars)?);
            binary(*op, &a, &b, lhs.dtype().scalar.bits())
        }
        Expr::Unary(UnaryOp::BitNot, a) => Some(extract(a, vars)?.negated_bits()),
        Expr::Unary(UnaryOp::Neg, a) => Word::constant(0).plus(&extract(a, vars)?.negated_bits(), Affine::ONE),
        Expr::Cast(ty, a) if ty.scalar.is_integer() && ty.is_scalar() => {
            let (_, high) = ty.scalar.integer_range()?;
            // A cast keeps the value only if the value fits the type for every input; a word that may be negative is
            // not looked into.
            let word = extract(a, vars)?;
            let fits = word.sign == Affine::ZERO && (1i128 << word.bits.len()) - 1 <= high;
            fits.then_some(word)
        }
        Expr::Unary(UnaryOp::Not, _)
        | Expr::Cast(..)
        | Expr::Call(..)
        | Expr::Select(..)
        | Expr::IfThenElse(..)
        | Expr::Float { .. }
        | Expr::Ramp { .. }
        | Expr::Broadcast { .. }
        | Expr::Load { .. } => None,
    }
}

/// A binary operator on words; `bits` is the width of the type, which bounds shifts.
fn binary(op: BinaryOp, a: &Word, b: &Word, bits: u32) -> Option<Word> {
    // A shift by the width of the type or more has no value.
    let amount = || usize::try_from(b.as_constant()?).ok().filter(|amount| *amount < bits as usize);
    match op {
        BinaryOp::Add => a.plus(b, Affine::ZERO),
        BinaryOp::Sub => a.plus(&b.negated_bits(), Affine::ONE),
        BinaryOp::Mul => match (exponent(a), exponent(b)) {
            (_, Some(by)) => a.raised(by),
            (Some(by), None) => b.raised(by),
            (None, None) => Word::constant(a.as_constant()?.checked_mul(b.as_constant()?)?).trimmed(),
        },
        BinaryOp::FloorDiv => Some(a.lowered(exponent(b)?)),
        BinaryOp::FloorMod => a.cut(exponent(b)?),
        BinaryOp::TruncDiv if a.sign == Affine::ZERO => Some(a.lowered(exponent(b)?)),
        BinaryOp::TruncMod if a.sign == Affine::ZERO => a.cut(exponent(b)?),
        BinaryOp::BitAnd => a.bitwise(b, both),
        BinaryOp::BitOr => a.bitwise(b, |x, y| Some(!both(!x, !y)?)),
        BinaryOp::BitXor => a.bitwise(b, |x, y| Some(x ^ y)),
        BinaryOp::Shl => a.raised(amount()?),
        BinaryOp::Shr => Some(a.lowered(amount()?)),
        BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::Div
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use tilewright_ir::Bindings;

    fn expression(vars: Vec<Var>) -> impl Strategy<Value = Expr> {
        let constant = prop::sample::select(vec![0i64, 1, 2, 3, 4, 5, 7, 8, 12, 16, -1, -4]).prop_map(Expr::int);
        let leaf = prop_oneof![3 => prop::sample::select(vars).prop_map(Expr::from), 2 => constant];
        leaf.prop_recursive(4, 12, 2, |inner| {
            let ops = vec![
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::FloorDiv,
                BinaryOp::FloorMod,
                BinaryOp::TruncDiv,
                BinaryOp::TruncMod,
                BinaryOp::BitAnd,
                BinaryOp::BitOr,
                BinaryOp::BitXor,
                BinaryOp::Shl,
                BinaryOp::Shr,
            ];
            prop_oneof![
                6 => (prop::sample::select(ops), inner.clone(), inner.clone())
                    .prop_map(|(op, a, b)| Expr::binary(op, a, b)),
                1 => inner.clone().prop_map(|a| Expr::unary(UnaryOp::BitNot, a)),
                1 => inner.prop_map(|a| Expr::unary(UnaryOp::Neg, a)),
            ]
        })
    }

    #[test]
    fn an_extracted_word_has_the_value_of_the_expression() {
        let (i, j) = (Var::index("i"), Var::index("j"));
        let words: HashMap<Var, Word> =
            [(i.clone(), Word::input(2, 3)), (j.clone(), Word::input(0, 2))].into_iter().collect();
        let strategy = expression(vec![i.clone(), j.clone()]);
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut extracted = 0;
        for _ in 0..6000 {
            let expr = strategy.new_tree(&mut runner).unwrap().current();
            let Some(word) = extract(&expr, &words) else { continue };
            extracted += usize::from(!expr.vars().is_empty());
            for input in 0..32u128 {
                let at: Bindings =
                    [(i.clone(), (input >> 2).try_into().unwrap()), (j.clone(), (input & 3).try_into().unwrap())]
                        .into();
                let low: i128 = (0..).zip(&word.bits).map(|(at, bit)| i128::from(bit.at(input)) << at).sum();
                let value = low - if word.sign.at(input) { 1 << word.bits.len() } else { 0 };
                assert_eq!(expr.eval_index(&at), Ok(value), "{expr} at {input:b}");
            }
        }
        assert!(extracted > 500, "{extracted}");
    }
}
