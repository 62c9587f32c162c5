//! Shifts and masks as quotients, remainders and sums; the normal form of exclusive or.
//!
//! ```text
//! i >> 2  is  i // 4        i & 12  is  i // 4 % 4 * 4        i << 2 | j  is  i * 4 + j  for 0 <= j < 4
//! ```

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, UnaryOp};

use super::poly::{Key, Poly};
use super::ranges::Ranges;
use super::rewrite::{Simplifier, is_index_type};

/// A mask with more runs of ones than this stays a mask.
const MAX_RUNS: usize = 4;

/// The same value with shifts by constants, masks and combinations of disjoint bits written as arithmetic.
pub(super) fn plain(expr: &Expr, ranges: &Ranges) -> Expr {
    let Ok(result) = Plain { ranges }.expr(expr);
    result
}

struct Plain<'a> {
    ranges: &'a Ranges,
}

impl Rewrite for Plain<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let rebuilt = self.expr_children(expr)?;
        if !is_index_type(&rebuilt) {
            return Ok(rebuilt);
        }
        let written = match &rebuilt {
            Expr::Unary(UnaryOp::BitNot, a) => Expr::int_of(-1, a.dtype().scalar).map(|ones| ones - (**a).clone()),
            Expr::Binary(BinaryOp::Shl, a, by) => power(by, a).map(|power| (**a).clone() * power),
            Expr::Binary(BinaryOp::Shr, a, by) => power(by, a).map(|power| (**a).clone().floor_div(power)),
            Expr::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), a, by) => positive(*op, a, by),
            Expr::Binary(BinaryOp::BitAnd, a, b) => masked(a, b).or_else(|| masked(b, a)),
            Expr::Binary(op @ (BinaryOp::BitOr | BinaryOp::BitXor), a, b) => {
                self.disjoint(*op, a, b).or_else(|| self.disjoint(*op, b, a))
            }
            _ => None,
        };
        Ok(written.unwrap_or(rebuilt))
    }
}

/// `a // -c` is `-a // c`, and `a % -c` is `-(-a % c)`.
fn positive(op: BinaryOp, a: &Expr, by: &Expr) -> Option<Expr> {
    let scalar = a.dtype().scalar;
    let by = by.as_const_int().filter(|by| *by < 0).and_then(i128::checked_neg)?;
    let (zero, by) = (Expr::int_of(0, scalar)?, Expr::int_of(by, scalar)?);
    let divided = Expr::binary(op, zero.clone() - a.clone(), by);
    Some(if op == BinaryOp::FloorMod { zero - divided } else { divided })
}

/// 2 to the power of a constant, in the type of `like`.
fn power(amount: &Expr, like: &Expr) -> Option<Expr> {
    let amount = amount.as_const_int().filter(|amount| (0..63).contains(amount))?;
    Expr::int_of(1i128.checked_shl(u32::try_from(amount).ok()?)?, like.dtype().scalar)
}

/// `value & mask` for a constant mask, run by run.
fn masked(value: &Expr, mask: &Expr) -> Option<Expr> {
    let mask = mask.as_const_int()?;
    if mask < 0 {
        // What the complement masks is taken away.
        let low = masked(value, &Expr::int_of(!mask, value.dtype().scalar)?)?;
        return Some(value.clone() - low);
    }
    let (mut left, mut sum, mut runs) = (mask, None, 0);
    while left != 0 {
        let low = left.trailing_zeros();
        let length = (left >> low).trailing_ones();
        let int = |bits: u32| Expr::int_of(1i128.checked_shl(bits)?, value.dtype().scalar);
        let mut part = value.clone();
        if low > 0 {
            part = part.floor_div(int(low)?);
        }
        part = part.floor_mod(int(length)?);
        if low > 0 {
            part = part * int(low)?;
        }
        sum = Some(match sum {
            None => part,
            Some(sum) => sum + part,
        });
        left &= !(((1i128 << length) - 1) << low);
        runs += 1;
        if runs > MAX_RUNS {
            return None;
        }
    }
    sum.or_else(|| Expr::int_of(0, value.dtype().scalar))
}

impl Plain<'_> {
    /// `(high + rest) op low = high + (rest op low)`, where `2^k` divides `high`, and `rest` and `low` are below it.
    fn disjoint(&self, op: BinaryOp, a: &Expr, low: &Expr) -> Option<Expr> {
        let simplifier = Simplifier::new(self.ranges);
        let (whole, small) = (simplifier.poly(a)?, simplifier.poly(low)?);
        let limit = bits_limit(&small, self.ranges)?;
        let (high, rest) = whole.split(|term| term.coef % limit == 0);
        if high.is_zero() || !self.ranges.prove_below(&rest, &Poly::constant(limit)) {
            return None;
        }
        let ty = a.dtype().scalar;
        let inner =
            if rest.is_zero() { low.clone() } else { Expr::binary(op, simplifier.emit(&rest, ty)?, low.clone()) };
        Some(simplifier.emit(&high, ty)? + inner)
    }
}

/// The least power of two above all values, which are not negative.
pub(super) fn bits_limit(poly: &Poly, ranges: &Ranges) -> Option<i128> {
    let interval = ranges.interval(poly);
    let (least, greatest) = (interval.least()?, interval.greatest()?);
    (least >= 0 && greatest < 1 << 62).then(|| 1i128 << (128 - greatest.leading_zeros()))
}

/// The operands of an exclusive or of any number.
pub(super) fn xor_operands(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Binary(BinaryOp::BitXor, a, b) => [xor_operands(a), xor_operands(b)].concat(),
        _ => vec![expr.clone()],
    }
}

/// Exclusive or in normal form: operands in order, those that are there twice gone, one constant at the end.
pub(super) fn xor_of(operands: &[Expr]) -> Option<Expr> {
    let ty = operands.first()?.dtype().scalar;
    let (mut constant, mut kept) = (0, Vec::new());
    for operand in operands.iter().flat_map(xor_operands) {
        match operand.as_const_int() {
            Some(value) => constant ^= value,
            None => kept.push(Key(operand)),
        }
    }
    kept.sort();
    let mut unpaired: Vec<Key> = Vec::new();
    for operand in kept {
        if unpaired.last() == Some(&operand) {
            unpaired.pop();
        } else {
            unpaired.push(operand);
        }
    }
    let mut operands: Vec<Expr> = unpaired.into_iter().map(|Key(operand)| operand).collect();
    if constant != 0 || operands.is_empty() {
        operands.push(Expr::int_of(constant, ty)?);
    }
    operands.into_iter().reduce(|a, b| Expr::binary(BinaryOp::BitXor, a, b))
}
