//! The encoding over bit-vectors.
//!
//! It says exactly what the integers say, for it is used only where nothing can wrap: the assumptions bound every variable,
//! and the interval of every term that follows fits the width. Division is by powers of two, or of what is not negative by a positive
//! constant; shifts are by constants. A query over the integers never holds a bit-vector, nor the other way round.

use super::{Encoder, NodeId, Op};
use crate::term::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind, UnaryOp};
use std::collections::{BTreeMap, HashMap};

/// The widest bit-vectors.
const MAX_WIDTH: u32 = 64;

type Range = (i128, i128);

/// The smallest width at which nothing in the query can wrap; none if some term has no bound or no such encoding.
pub fn width(assumptions: &[Prop], goal: &Prop) -> Option<u32> {
    let mut ranges = Ranges { bounds: bounds(assumptions), known: HashMap::new(), width: 1 };
    for prop in assumptions.iter().chain([goal]) {
        ranges.prop(prop)?;
    }
    Some(ranges.width).filter(|width| *width <= MAX_WIDTH)
}

/// What the assumptions say of single variables.
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
                *high = Some(high.map_or(bound - strict, |high| high.min(bound - strict)));
            }
            (TermKind::Const(bound), TermKind::Sym(symbol)) => {
                let low = &mut found.entry(symbol.clone()).or_default().0;
                *low = Some(low.map_or(bound + strict, |low| low.max(bound + strict)));
            }
            _ => {}
        }
    }
    found
}

struct Ranges {
    bounds: BTreeMap<Symbol, (Option<i128>, Option<i128>)>,
    known: HashMap<Term, Range>,
    width: u32,
}

/// Bits of two's complement that hold a value.
fn bits_of(value: i128) -> u32 {
    129 - if value < 0 { value.leading_ones() } else { value.leading_zeros() }
}

/// The least power of two above both ends, in size.
fn power_above(range: Range) -> Option<i128> {
    1i128.checked_shl(bits_of(range.0).max(bits_of(range.1)) - 1).filter(|power| *power > 0)
}

impl Ranges {
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

    fn term(&mut self, term: &Term) -> Option<Range> {
        if let Some(range) = self.known.get(term) {
            return Some(*range);
        }
        let range = match term.kind() {
            TermKind::Const(value) => (*value, *value),
            TermKind::Sym(symbol) => {
                let (low, high) = self.bounds.get(symbol)?;
                ((*low)?, (*high)?)
            }
            TermKind::Unary(op, a) => {
                let (low, high) = self.term(a)?;
                match op {
                    UnaryOp::Neg => (high.checked_neg()?, low.checked_neg()?),
                    UnaryOp::Not => (!high, !low),
                    UnaryOp::Abs => (0, low.checked_abs()?.max(high.checked_abs()?)),
                }
            }
            TermKind::Binary(op, a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                binary(*op, a, b)?
            }
            TermKind::Ite(condition, a, b) => {
                self.prop(condition)?;
                let (a, b) = (self.term(a)?, self.term(b)?);
                (a.0.min(b.0), a.1.max(b.1))
            }
            TermKind::App(..) => return None,
        };
        // One more than a value has to fit, for the negation of the least.
        self.width = self.width.max(bits_of(range.0)).max(bits_of(range.1)).max(bits_of(range.0.checked_neg()?));
        self.known.insert(term.clone(), range);
        Some(range)
    }
}

fn binary(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    let divisor = (b.0 == b.1 && b.0 > 0).then_some(b.0);
    let divisible = divisor.filter(|by| a.0 >= 0 || by.count_ones() == 1);
    let amount = || u32::try_from(b.0).ok().filter(|amount| b.0 == b.1 && *amount < MAX_WIDTH);
    Some(match op {
        BinaryOp::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        BinaryOp::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        BinaryOp::Mul => product(a, b)?,
        BinaryOp::FloorDiv => (a.0.div_euclid(divisible?), a.1.div_euclid(divisible?)),
        BinaryOp::FloorMod => (0, divisible? - 1),
        BinaryOp::TruncDiv if a.0 >= 0 => (a.0 / divisor?, a.1 / divisor?),
        BinaryOp::TruncMod if a.0 >= 0 => (0, divisor? - 1),
        BinaryOp::TruncDiv | BinaryOp::TruncMod => return None,
        BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        BinaryOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        BinaryOp::BitAnd if a.0 >= 0 && b.0 >= 0 => (0, a.1.min(b.1)),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
            let power = power_above(a)?.max(power_above(b)?);
            (if a.0 >= 0 && b.0 >= 0 { 0 } else { -power }, power - 1)
        }
        BinaryOp::Shl => {
            let power = 1i128 << amount()?;
            product(a, (power, power))?
        }
        BinaryOp::Shr => (a.0 >> amount()?, a.1 >> amount()?),
    })
}

fn product(a: Range, b: Range) -> Option<Range> {
    let all = [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
    Some((*all.iter().min()?, *all.iter().max()?))
}

impl Encoder {
    /// A division, a remainder or a bit operation of a query over bit-vectors; [`width`] made sure that it has one.
    pub(super) fn bits_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        let by = match self.query.nodes.get(b) {
            Some(super::Node::Int(by)) => *by,
            _ => 0,
        };
        let power = (by > 0 && by.count_ones() == 1).then(|| (i128::from(by.trailing_zeros()), by - 1));
        let plain = match (op, power) {
            (BinaryOp::FloorDiv | BinaryOp::TruncDiv, Some((bits, _))) => {
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
