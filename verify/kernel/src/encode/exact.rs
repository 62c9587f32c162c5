//! The exact encodings of division and of bit operations.
//!
//! ```text
//! a % 8                 (mod a 8)
//! a & 6                 (- (mod a 8) (mod (mod a 8) 2))       bits 1 and 2, in place
//! a & -8                (- a (mod a 8))                       clears bits 0 to 2
//! a | b                 a + b - (a & b)                       in two's complement of any width
//! a // b, b a term      k0 with a = b * k0 + k1, 0 <= k1 < b  stated for b > 0; for b < 0 likewise, for b = 0 nothing
//! ```
//!
//! Equal operands share their quotient, remainder and bits, which keeps queries small and lets Z3 match them.
//!
//! Where nothing is stated about a variable that stands for a result, every integer is possible: this can lose proofs
//! and add false models, never make a false goal provable. [`super::Query::approximate`] is set then, so that a model
//! which does not replay is no internal error.

use super::{Encoder, Node, NodeId, Op, Sort};
use crate::term::{BinaryOp, Prop, PropKind, Term, TermKind};
use std::collections::{BTreeMap, HashSet};
use tilewright_ir::sabotage;

/// Variables introduced so far, so that equal operands share them.
pub(super) struct Tables {
    /// Low bits that a bit operation on two terms is stated for.
    bit_width: u32,
    /// Quotient and remainder of each floor division by a term.
    floor: BTreeMap<(NodeId, NodeId), (NodeId, NodeId)>,
    /// Quotient and remainder of each truncating division by a term.
    trunc: BTreeMap<(NodeId, NodeId), (NodeId, NodeId)>,
    /// The bits of each operand of a bit operation on two terms.
    bits: BTreeMap<NodeId, Bits>,
    /// Each conjunction of two terms.
    ands: BTreeMap<(NodeId, NodeId), NodeId>,
    /// Each shift by a term, with whether it is to the left.
    shifts: BTreeMap<(NodeId, NodeId, bool), NodeId>,
}

impl Tables {
    /// Empty tables; bit operations on two terms use `bit_width` bits.
    pub(super) fn new(bit_width: u32) -> Self {
        Self {
            bit_width,
            floor: BTreeMap::new(),
            trunc: BTreeMap::new(),
            bits: BTreeMap::new(),
            ands: BTreeMap::new(),
            shifts: BTreeMap::new(),
        }
    }
}

/// `value = 2^width * high + sum of 2^i over the low bits that are set`
#[derive(Clone)]
struct Bits {
    /// Truth values, bit 0 first.
    low: Vec<NodeId>,
    /// The number above them, of either sign.
    high: NodeId,
}

/// Shifts by a term are stated for amounts below this.
const SHIFTS: u32 = 64;

/// The number of bits that every constant of the query fits, between 4 and 32. Any width is sound, but a smaller one proves
/// less.
pub(super) fn bit_width(assumptions: &[Prop], goal: &Prop) -> u32 {
    let mut largest = Largest { value: 0, seen: HashSet::new() };
    largest.props(assumptions.iter().chain([goal]));
    (u128::BITS - largest.value.leading_zeros()).clamp(4, 32)
}

/// Finds the largest magnitude of a constant, visiting shared terms once.
struct Largest {
    value: u128,
    seen: HashSet<Term>,
}

impl Largest {
    fn terms<'t>(&mut self, terms: impl IntoIterator<Item = &'t Term>) {
        for term in terms {
            self.term(term);
        }
    }

    fn props<'p>(&mut self, props: impl IntoIterator<Item = &'p Prop>) {
        for prop in props {
            self.prop(prop);
        }
    }

    fn term(&mut self, term: &Term) {
        if let TermKind::Const(value) = term.kind() {
            self.value = self.value.max(value.unsigned_abs());
            return;
        }
        if !self.seen.insert(term.clone()) {
            return;
        }
        match term.kind() {
            TermKind::Const(_) | TermKind::Sym(_) => {}
            TermKind::Unary(_, a) => self.term(a),
            TermKind::Binary(_, a, b) => self.terms([a, b]),
            TermKind::Ite(condition, a, b) => {
                self.prop(condition);
                self.terms([a, b]);
            }
            TermKind::App(_, args) => self.terms(args),
        }
    }

    fn prop(&mut self, prop: &Prop) {
        match prop.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) => {}
            PropKind::Compare(_, a, b) => self.terms([a, b]),
            PropKind::Not(inner) => self.prop(inner),
            PropKind::And(parts) | PropKind::Or(parts) => self.props(parts),
            PropKind::Implies(a, b) | PropKind::Iff(a, b) => self.props([a, b]),
        }
    }
}

/// `2^exponent`, if it fits.
fn power_of_two(exponent: u32) -> Option<i128> {
    1_i128.checked_shl(exponent).filter(|power| *power > 0)
}

impl Encoder {
    /// The value of a constant node.
    fn constant(&self, node: NodeId) -> Option<i128> {
        match self.query.nodes.get(node) {
            Some(Node::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// Encodes a division or bit operation with its meaning.
    pub(super) fn exact_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        match op {
            BinaryOp::FloorDiv => self.floor(a, b).0,
            BinaryOp::FloorMod => self.floor(a, b).1,
            BinaryOp::TruncDiv => self.trunc(a, b).0,
            BinaryOp::TruncMod => self.trunc(a, b).1,
            BinaryOp::BitAnd => self.bit_and(a, b),
            BinaryOp::BitOr => self.sum_minus(a, b, 1),
            BinaryOp::BitXor => self.sum_minus(a, b, 2),
            BinaryOp::Shl => self.shift(a, b, true),
            BinaryOp::Shr => self.shift(a, b, false),
            BinaryOp::Add => self.op(Op::Add, vec![a, b]),
            BinaryOp::Sub => self.op(Op::Sub, vec![a, b]),
            BinaryOp::Mul => self.op(Op::Mul, vec![a, b]),
            BinaryOp::Min | BinaryOp::Max => self.binary(op, a, b),
        }
    }

    /// `a // b` and `a % b`.
    fn floor(&mut self, a: NodeId, b: NodeId) -> (NodeId, NodeId) {
        match self.constant(b).and_then(|b| Some((b, b.checked_abs()?))) {
            Some((b, size)) if b > 0 => self.euclid(a, size),
            Some((b, size)) if b < 0 && sabotage::on("encode-divides-euclidean") => {
                let (quotient, rest) = self.euclid(a, size);
                (self.op(Op::Neg, vec![quotient]), rest)
            }
            Some((b, size)) if b < 0 => {
                let negated = self.op(Op::Neg, vec![a]);
                let (quotient, rest) = self.euclid(negated, size);
                (quotient, self.op(Op::Neg, vec![rest]))
            }
            _ => self.divided(a, b, true),
        }
    }

    /// SMT-LIB's `div` and `mod` by a positive constant.
    fn euclid(&mut self, a: NodeId, size: i128) -> (NodeId, NodeId) {
        let size = self.int(size);
        (self.op(Op::Div, vec![a, size]), self.op(Op::Mod, vec![a, size]))
    }

    /// `truncdiv(a, b)` and `truncmod(a, b)`.
    fn trunc(&mut self, a: NodeId, b: NodeId) -> (NodeId, NodeId) {
        let Some((b, size)) = self.constant(b).and_then(|b| Some((b, b.checked_abs()?))).filter(|b| b.0 != 0) else {
            return self.divided(a, b, false);
        };
        let zero = self.int(0);
        let negative = self.op(Op::Lt, vec![a, zero]);
        let negated = self.op(Op::Neg, vec![a]);
        let (up_quotient, up_rest) = self.euclid(a, size);
        let (down_quotient, down_rest) = self.euclid(negated, size);
        let minus_down = self.op(Op::Neg, vec![down_quotient]);
        let minus_rest = self.op(Op::Neg, vec![down_rest]);
        let quotient = self.op(Op::Ite, vec![negative, minus_down, up_quotient]);
        let below = if sabotage::on("encode-remainder-keeps-positive") { down_rest } else { minus_rest };
        let rest = self.op(Op::Ite, vec![negative, below, up_rest]);
        (if b > 0 { quotient } else { self.op(Op::Neg, vec![quotient]) }, rest)
    }

    /// Fresh quotient and remainder, defined for `b > 0` and `b < 0` and left open for `b = 0`.
    fn divided(&mut self, a: NodeId, b: NodeId, floor: bool) -> (NodeId, NodeId) {
        let table = if floor { &self.exact.floor } else { &self.exact.trunc };
        if let Some(&pair) = table.get(&(a, b)) {
            return pair;
        }
        let q = self.variable("k", Sort::Int, None);
        let r = self.variable("k", Sort::Int, None);
        let zero = self.int(0);
        let product = self.op(Op::Mul, vec![b, q]);
        let sum = self.op(Op::Add, vec![product, r]);
        let whole = self.op(Op::Eq, vec![a, sum]);
        let minus_b = self.op(Op::Neg, vec![b]);
        let positive = self.op(Op::Lt, vec![zero, b]);
        let negative = self.op(Op::Lt, vec![b, zero]);
        for (case, size) in [(positive, b), (negative, minus_b)] {
            let range = if floor {
                self.range_floor(r, b, case == positive || sabotage::on("encode-no-negative-divisor"))
            } else {
                self.range_trunc(a, r, size)
            };
            let both = self.op(Op::And, vec![whole, range]);
            let definition = self.op(Op::Implies, vec![case, both]);
            self.definitions.push(definition);
        }
        let table = if floor { &mut self.exact.floor } else { &mut self.exact.trunc };
        table.insert((a, b), (q, r));
        (q, r)
    }

    /// `0 <= r < b` for a positive divisor, `b < r <= 0` for a negative one.
    fn range_floor(&mut self, r: NodeId, b: NodeId, positive: bool) -> NodeId {
        let zero = self.int(0);
        let parts = if positive {
            vec![self.op(Op::Le, vec![zero, r]), self.op(Op::Lt, vec![r, b])]
        } else {
            vec![self.op(Op::Lt, vec![b, r]), self.op(Op::Le, vec![r, zero])]
        };
        self.op(Op::And, parts)
    }

    /// `0 <= r < size` for a non-negative dividend, `-size < r <= 0` for a negative one.
    fn range_trunc(&mut self, a: NodeId, r: NodeId, size: NodeId) -> NodeId {
        let zero = self.int(0);
        let below = self.op(Op::Lt, vec![a, zero]);
        let minus_size = self.op(Op::Neg, vec![size]);
        let down = vec![self.op(Op::Lt, vec![minus_size, r]), self.op(Op::Le, vec![r, zero])];
        let down = self.op(Op::And, down);
        let up = vec![self.op(Op::Le, vec![zero, r]), self.op(Op::Lt, vec![r, size])];
        let up = self.op(Op::And, up);
        self.op(Op::Ite, vec![below, down, up])
    }

    /// `a | b = a + b - (a & b)` and `a ^ b = a + b - 2 * (a & b)`, in two's complement of any width.
    fn sum_minus(&mut self, a: NodeId, b: NodeId, times: i128) -> NodeId {
        let both = self.bit_and(a, b);
        let times = self.int(times);
        let less = self.op(Op::Mul, vec![times, both]);
        let rest = self.op(Op::Sub, vec![a, less]);
        self.op(Op::Add, vec![rest, b])
    }

    /// `a & b`
    fn bit_and(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if a == b {
            return a;
        }
        match (self.constant(a), self.constant(b)) {
            (_, Some(mask)) => self.masked(a, mask),
            (Some(mask), None) => self.masked(b, mask),
            (None, None) => self.bitwise_and(a.min(b), a.max(b)),
        }
    }

    /// `a & mask`: the runs of ones of the mask are cut out by `mod` and `div`; a negative mask clears `~mask`.
    fn masked(&mut self, a: NodeId, mask: i128) -> NodeId {
        if mask < 0 {
            let cleared = self.masked(a, !mask);
            return self.op(Op::Sub, vec![a, cleared]);
        }
        let mut parts = Vec::new();
        let mut rest = mask;
        while rest != 0 {
            let low = rest.trailing_zeros();
            let high = low + (rest >> low).trailing_ones();
            let cut = if sabotage::on("encode-mask-loses-bit") && high > low + 1 { high - 1 } else { high };
            parts.push(self.run(a, low, cut));
            rest = power_of_two(high).map_or(0, |power| rest - rest % power);
        }
        match (parts.pop(), parts.is_empty()) {
            (None, _) => self.int(0),
            (Some(only), true) => only,
            (Some(last), false) => {
                parts.push(last);
                self.op(Op::Add, parts)
            }
        }
    }

    /// The bits `low..high` of `a`, in place; at `high = 127` nothing is above but the sign, which `mod` cannot cut.
    fn run(&mut self, a: NodeId, low: u32, high: u32) -> NodeId {
        let (Some(below), Some(above)) = (power_of_two(low), power_of_two(high)) else {
            self.query.approximate = true;
            return self.variable("k", Sort::Int, None);
        };
        let cut = self.euclid(a, above).1;
        let dropped = self.euclid(cut, below).1;
        if low == 0 { cut } else { self.op(Op::Sub, vec![cut, dropped]) }
    }

    /// The low bits of a node as boolean variables, and the number above them.
    fn bits(&mut self, value: NodeId) -> Bits {
        if let Some(bits) = self.exact.bits.get(&value) {
            return bits.clone();
        }
        let width = self.exact.bit_width;
        self.query.approximate = true;
        let high = self.variable("k", Sort::Int, None);
        let low: Vec<NodeId> = (0..width).map(|_| self.variable("b", Sort::Bool, None)).collect();
        let sum = self.weighted(&low, high);
        let definition = self.op(Op::Eq, vec![value, sum]);
        self.definitions.push(definition);
        let bits = Bits { low, high };
        self.exact.bits.insert(value, bits.clone());
        bits
    }

    /// The number with these low bits and this number above them.
    fn weighted(&mut self, low: &[NodeId], high: NodeId) -> NodeId {
        let zero = self.int(0);
        let scale = self.int(1 << self.exact.bit_width);
        let mut parts = vec![self.op(Op::Mul, vec![scale, high])];
        for (position, &bit) in low.iter().enumerate() {
            let weight = self.int(1 << position);
            parts.push(self.op(Op::Ite, vec![bit, weight, zero]));
        }
        self.op(Op::Add, parts)
    }

    /// `a & b` of two terms: exact on the low bits. Of the numbers above them it is known only that 0 clears and -1 keeps.
    fn bitwise_and(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some(&known) = self.exact.ands.get(&(a, b)) {
            return known;
        }
        let (lhs, rhs) = (self.bits(a), self.bits(b));
        let high = self.variable("k", Sort::Int, None);
        for (value, same, result) in
            [(0, lhs.high, None), (0, rhs.high, None), (-1, lhs.high, Some(rhs.high)), (-1, rhs.high, Some(lhs.high))]
        {
            let value = self.int(value);
            let case = self.op(Op::Eq, vec![same, value]);
            let result = result.unwrap_or(value);
            let equal = self.op(Op::Eq, vec![high, result]);
            let definition = self.op(Op::Implies, vec![case, equal]);
            self.definitions.push(definition);
        }
        let low: Vec<NodeId> = lhs.low.iter().zip(&rhs.low).map(|(x, y)| self.op(Op::And, vec![*x, *y])).collect();
        let result = self.weighted(&low, high);
        self.exact.ands.insert((a, b), result);
        result
    }

    /// A shift. By a term, it is a case for each amount below [`SHIFTS`], and unknown beyond.
    fn shift(&mut self, a: NodeId, by: NodeId, left: bool) -> NodeId {
        if let Some(power) = self.constant(by).and_then(|by| u32::try_from(by).ok()).and_then(power_of_two) {
            return self.shifted(a, power, left);
        }
        if let Some(&known) = self.exact.shifts.get(&(a, by, left)) {
            return known;
        }
        self.query.approximate = true;
        let result = self.variable("k", Sort::Int, None);
        for amount in 0..SHIFTS {
            let shifted = self.shifted(a, 1 << amount, left);
            let amount = self.int(i128::from(amount));
            let case = self.op(Op::Eq, vec![by, amount]);
            let equal = self.op(Op::Eq, vec![result, shifted]);
            let definition = self.op(Op::Implies, vec![case, equal]);
            self.definitions.push(definition);
        }
        self.exact.shifts.insert((a, by, left), result);
        result
    }

    /// `a * power` or `a // power`
    fn shifted(&mut self, a: NodeId, power: i128, left: bool) -> NodeId {
        if left {
            let power = self.int(power);
            self.op(Op::Mul, vec![a, power])
        } else if sabotage::on("encode-shift-truncates") {
            let power = self.int(power);
            self.trunc(a, power).0
        } else {
            self.euclid(a, power).0
        }
    }
}
