//! The encoding over bit-vectors, for queries about maps that move and mix bits.
//!
//! It is equivalent to the encoding over the integers, because it is used only where nothing can wrap: the assumptions
//! bound every variable, and the interval of every term that follows from these bounds fits the width. Divisors must be
//! positive constants, and powers of two if the dividend may be negative; shift amounts must be constants. A query uses
//! either integers or bit-vectors, never both.
//!
//! ```text
//! 0 <= i < 64, 0 <= j < 8    implies    j ^ (i % 8) < 8        7 bits for i, 4 for j, 8 for the constant 64: width 8
//! ```

use super::{Encoder, NodeId, Op};
use crate::term::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind, UnaryOp};
use std::collections::{BTreeMap, HashMap};
use tilewright_ir::{Interval, sabotage};

/// Greatest width of the bit-vectors.
const MAX_WIDTH: u32 = 64;

/// The smallest width at which no term of the query can wrap. `None` if a term is unbounded, has no encoding over
/// bit-vectors, or needs more than 64 bits.
pub fn width(assumptions: &[Prop], goal: &Prop) -> Option<u32> {
    let mut intervals = Intervals { bounds: bounds(assumptions), known: HashMap::new(), width: 1 };
    for prop in assumptions.iter().chain([goal]) {
        intervals.prop(prop)?;
    }
    let spare = u32::from(sabotage::on("bits-one-too-few"));
    Some((intervals.width - spare).max(1)).filter(|width| *width <= MAX_WIDTH)
}

/// The bounds of single variables that the assumptions state, lower and upper.
fn bounds(assumptions: &[Prop]) -> BTreeMap<Symbol, (Option<i128>, Option<i128>)> {
    let mut found: BTreeMap<Symbol, (Option<i128>, Option<i128>)> = BTreeMap::new();
    for part in assumptions.iter().flat_map(Prop::conjuncts) {
        let PropKind::Compare(comparison, a, b) = part.kind() else { continue };
        let strict = i128::from(*comparison == Comparison::Lt);
        if !matches!(comparison, Comparison::Lt | Comparison::Le) {
            continue;
        }
        match (a.kind(), b.kind()) {
            (TermKind::Sym(symbol), TermKind::Const(bound)) => {
                let high = &mut found.entry(symbol.clone()).or_default().1;
                *high = Some(high.map_or(bound.saturating_sub(strict), |high| high.min(bound.saturating_sub(strict))));
            }
            (TermKind::Const(bound), TermKind::Sym(symbol)) => {
                let low = &mut found.entry(symbol.clone()).or_default().0;
                *low = Some(low.map_or(bound.saturating_add(strict), |low| low.max(bound.saturating_add(strict))));
            }
            _ => {}
        }
    }
    found
}

/// The intervals of all terms of a query.
struct Intervals {
    /// Bounds of the variables.
    bounds: BTreeMap<Symbol, (Option<i128>, Option<i128>)>,
    /// The terms visited so far.
    known: HashMap<Term, Interval>,
    /// The width that these terms need.
    width: u32,
}

/// Number of bits of a value in two's complement.
fn bits_of(value: i128) -> u32 {
    129 - if value < 0 { value.leading_ones() } else { value.leading_zeros() }
}

impl Intervals {
    /// Visits the terms of a proposition.
    fn prop(&mut self, prop: &Prop) -> Option<()> {
        match prop.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) => Some(()),
            PropKind::Compare(_, a, b) => {
                self.term(a)?;
                self.term(b).map(drop)
            }
            PropKind::Not(inner) => self.prop(inner),
            PropKind::And(parts) | PropKind::Or(parts) => parts.iter().try_for_each(|part| self.prop(part)),
            PropKind::Implies(a, b) | PropKind::Iff(a, b) => {
                self.prop(a)?;
                self.prop(b)
            }
        }
    }

    /// The interval of a term.
    fn term(&mut self, term: &Term) -> Option<Interval> {
        if let Some(interval) = self.known.get(term) {
            return Some(*interval);
        }
        let interval = match term.kind() {
            TermKind::Const(value) => Interval::point(*value),
            TermKind::Sym(symbol) => {
                let (low, high) = *self.bounds.get(symbol)?;
                Interval { low: low?, high: high? }
            }
            TermKind::Unary(op, a) => {
                let a = self.term(a)?;
                match op {
                    UnaryOp::Neg => a.checked_neg()?,
                    UnaryOp::Not => a.bit_not(),
                    UnaryOp::Abs => a.abs()?,
                }
            }
            TermKind::Binary(op, a, b) => {
                let is_literal = matches!(b.kind(), TermKind::Const(_));
                let (a, b) = (self.term(a)?, self.term(b)?);
                binary(*op, a, (b, is_literal))?
            }
            TermKind::Ite(condition, a, b) => {
                self.prop(condition)?;
                self.term(a)?.hull(self.term(b)?)
            }
            TermKind::App(..) => return None,
        };
        // The negation has to fit as well: division and `abs` negate their operands.
        let ends = [interval.low, interval.high, interval.low.checked_neg()?];
        self.width = ends.into_iter().map(bits_of).fold(self.width, u32::max);
        self.known.insert(term.clone(), interval);
        Some(interval)
    }
}

/// The interval of an operator; `None` if the operator cannot be encoded for operands in these intervals. A second operand that is
/// written as a constant is a literal; one that merely has a single value is none.
fn binary(op: BinaryOp, a: Interval, (b, is_literal): (Interval, bool)) -> Option<Interval> {
    let divisor = b.constant().filter(|divisor| *divisor > 0);
    let by_positive = divisor.filter(|_| a.low >= 0);
    // Unsigned division is floor division where nothing is negative; a literal power of two is a shift or a mask otherwise.
    let encodable = divisor.filter(|divisor| a.low >= 0 || (is_literal && divisor.count_ones() == 1));
    let amount = b.constant().filter(|amount| (0..i128::from(MAX_WIDTH)).contains(amount));
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::FloorDiv => encodable.and_then(|_| a.floor_div(b)),
        BinaryOp::FloorMod => encodable.and_then(|_| a.floor_mod(b)),
        BinaryOp::TruncDiv => by_positive.and_then(|_| a.trunc_div(b)),
        BinaryOp::TruncMod => by_positive.and_then(|_| a.trunc_mod(b)),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::BitAnd => a.bit_and(b),
        BinaryOp::BitOr => a.bit_or(b),
        BinaryOp::BitXor => a.bit_xor(b),
        BinaryOp::Shl => amount.and_then(|_| a.checked_shl(b)),
        BinaryOp::Shr => amount.and_then(|_| a.checked_shr(b)),
    }
}

impl Encoder {
    /// Encodes a division, a remainder or a bit operation over bit-vectors. [`width`] has checked that this is possible.
    ///
    /// Division and remainder by a power of two become an arithmetic shift and a mask, which are right for negative
    /// dividends too.
    pub(super) fn bits_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        // Only constant divisors get here. For one that is no power of two the unsigned operators are used, which is
        // right because `width` has checked that the dividend is not negative.
        let by = match self.query.nodes.get(b) {
            Some(super::Node::Int(by)) => *by,
            _ => 0,
        };
        let power = (by > 0 && by.count_ones() == 1).then(|| (i128::from(by.trailing_zeros()), by - 1));
        let plain = match (op, power) {
            (BinaryOp::FloorDiv | BinaryOp::TruncDiv, Some((bits, _))) => {
                if sabotage::on("bits-divide-unsigned") {
                    return self.op(Op::Div, vec![a, b]);
                }
                let bits = self.int(bits);
                return self.op(Op::Shr, vec![a, bits]);
            }
            (BinaryOp::FloorMod | BinaryOp::TruncMod, Some((_, mask))) => {
                let mask = self.int(mask);
                return self.op(Op::BitAnd, vec![a, mask]);
            }
            (BinaryOp::FloorDiv | BinaryOp::TruncDiv, None) => Op::Div,
            (BinaryOp::FloorMod | BinaryOp::TruncMod, None) => Op::Mod,
            (BinaryOp::BitAnd, _) => Op::BitAnd,
            (BinaryOp::BitOr, _) => Op::BitOr,
            (BinaryOp::BitXor, _) => Op::BitXor,
            (BinaryOp::Shl, _) => Op::Shl,
            (BinaryOp::Shr, _) => Op::Shr,
            (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max, _) => {
                return self.binary(op, a, b);
            }
        };
        self.op(plain, vec![a, b])
    }
}
