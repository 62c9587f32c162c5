//! Shifts and masks as quotients, remainders and sums; the normal form of exclusive or.
//!
//! ```text
//! i >> 2  is  i // 4        i & 12  is  i // 4 % 4 * 4        i << 2 | j  is  i * 4 + j  for 0 <= j < 4
//! ```
//!
//! Polynomials and their division know nothing of bits, so bit operations are rewritten as arithmetic wherever that is
//! exact. The rest, such as `i ^ j` of two indices, stays an opaque atom.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, UnaryOp};

use super::poly::{Key, Poly};
use super::ranges::Ranges;
use super::rewrite::{Simplifier, is_index_type};

/// A mask with more runs of ones than this is not rewritten: the sum would be longer than the mask is worth.
const MAX_RUNS: usize = 4;

/// Returns an equal expression in which shifts by constants, constant masks, and combinations of disjoint bits are
/// written as arithmetic. Only signed integers of one lane are rewritten.
pub(super) fn bits_as_arithmetic(expr: &Expr, ranges: &Ranges) -> Expr {
    let Ok(result) = BitsAsArithmetic { ranges }.expr(expr);
    result
}

/// The rewrite of [`bits_as_arithmetic`], bottom up.
struct BitsAsArithmetic<'a> {
    ranges: &'a Ranges,
}

impl Rewrite for BitsAsArithmetic<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let rebuilt = self.expr_children(expr)?;
        if !is_index_type(&rebuilt) {
            return Ok(rebuilt);
        }
        let written = match &rebuilt {
            Expr::Unary(UnaryOp::BitNot, a) => Expr::int_of(-1, a.dtype().scalar).map(|ones| ones - (**a).clone()),
            Expr::Binary(BinaryOp::Shl, a, by) => power_of_two(by, a).map(|power| (**a).clone() * power),
            Expr::Binary(BinaryOp::Shr, a, by) => power_of_two(by, a).map(|power| (**a).clone().floor_div(power)),
            Expr::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), a, by) => with_positive_divisor(*op, a, by),
            Expr::Binary(BinaryOp::BitAnd, a, b) => masked(a, b).or_else(|| masked(b, a)),
            Expr::Binary(op @ (BinaryOp::BitOr | BinaryOp::BitXor), a, b) => {
                self.disjoint(*op, a, b).or_else(|| self.disjoint(*op, b, a))
            }
            _ => None,
        };
        Ok(written.unwrap_or(rebuilt))
    }
}

/// Rewrites a division by a negative constant: `a // -c` is `-a // c`, and `a % -c` is `-(-a % c)`. Returns `None` for
/// any other divisor.
fn with_positive_divisor(op: BinaryOp, a: &Expr, by: &Expr) -> Option<Expr> {
    let scalar = a.dtype().scalar;
    let by = by.as_const_int().filter(|by| *by < 0).and_then(i128::checked_neg)?;
    let (zero, by) = (Expr::int_of(0, scalar)?, Expr::int_of(by, scalar)?);
    let divided = Expr::binary(op, zero.clone() - a.clone(), by);
    Some(if op == BinaryOp::FloorMod { zero - divided } else { divided })
}

/// Returns 2 to the power of a constant from 0 to 62, in the type of `like`. Returns `None` for any other amount, or
/// if the power does not fit the type.
fn power_of_two(amount: &Expr, like: &Expr) -> Option<Expr> {
    let amount = amount.as_const_int().filter(|amount| (0..63).contains(amount))?;
    Expr::int_of(1i128.checked_shl(u32::try_from(amount).ok()?)?, like.dtype().scalar)
}

/// Writes `value & mask`, for a constant mask, as the sum of one quotient and remainder for each run of ones. A
/// negative mask has infinitely many ones; the bits that it clears are subtracted instead.
fn masked(value: &Expr, mask: &Expr) -> Option<Expr> {
    let mask = mask.as_const_int()?;
    if mask < 0 {
        // value & mask == value - (value & !mask), and !mask is not negative.
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

impl BitsAsArithmetic<'_> {
    /// Writes `a op low`, for `|` or `^`, as `high + (rest op low)`, where `a = high + rest`, `2^k` divides `high`,
    /// and `rest` and `low` are in `0..2^k`: the two operands then share no bit of `high`. Returns `None` if there is
    /// no such `high`.
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

/// Returns the least power of two above all values of a polynomial. Returns `None` if a value may be negative, or 2^62
/// or more.
pub(super) fn bits_limit(poly: &Poly, ranges: &Ranges) -> Option<i128> {
    let interval = ranges.interval(poly);
    let (least, greatest) = (interval.least()?, interval.greatest()?);
    (least >= 0 && greatest < 1 << 62).then(|| 1i128 << (128 - greatest.leading_zeros()))
}

/// Returns the operands of nested exclusive ors; the expression itself if it is none.
pub(super) fn xor_operands(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Binary(BinaryOp::BitXor, a, b) => [xor_operands(a), xor_operands(b)].concat(),
        _ => vec![expr.clone()],
    }
}

/// Returns the exclusive or of several operands in normal form: sorted, without pairs of equal operands, and with a
/// single constant at the end. Returns `None` without operands, or if the constant does not fit the type.
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
