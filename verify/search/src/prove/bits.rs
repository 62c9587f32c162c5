//! Bit operations in goals: what is known of their ranges, so that the rest of the goal needs no bits.
//!
//! ```text
//! 0 <= j < 64, 0 <= i % 8 < 8                    both have 6 bits, so 0 <= j ^ i % 8 < 64
//! 0 <= j < m, m % 8 == 0, 0 <= i % 8 < 8         j stays in its block of 8, so 0 <= j ^ i % 8 < m
//! ```

use super::Prover;
use super::linear::is_linear_prop;
use tilewright_kernel::facts::Fact;
use tilewright_kernel::lemmas::poly_identity;
use tilewright_kernel::poly::probably_equal;
use tilewright_kernel::strategy::Strategy as _;
use tilewright_kernel::term::{BinaryOp, Prop, PropKind, Term, TermKind};

/// The bits of an index that is an `int32`.
const INDEX: u32 = 31;

/// The bits that the lemma about blocks asks of numbers.
const WIDE: u32 = 62;

/// The number of bits of all numbers below this one.
fn bits(end: i128) -> Option<u32> {
    Some(u64::try_from(end).ok()?.checked_next_power_of_two()?.trailing_zeros())
}

impl Prover {
    /// Keeps what is known of the bit operations in a goal, inner ones first: their ranges, and what cancels. Returns whether
    /// there are any.
    pub(super) fn learn_bits(&mut self, goal: &Prop) -> bool {
        let mut found = Vec::new();
        of_prop(goal, &mut found);
        let is_any = !found.is_empty();
        for term in found {
            if self.with_bits.insert(term.clone()) {
                let facts = self.bit_facts(&term).unwrap_or_default();
                for fact in &facts {
                    self.keep(fact);
                }
            }
        }
        is_any
    }

    /// The range of a bit operation, by constant bounds of its operands; and `x ^ y ^ y == x`.
    fn bit_facts(&mut self, term: &Term) -> Option<Vec<Fact>> {
        let TermKind::Binary(op, x, y) = term.kind() else { return None };
        let (op, x, y) = (*op, x.clone(), y.clone());
        let (bits, ranges) = self.bits_of(&x, &y)?;
        let using: Vec<&Fact> = ranges.iter().collect();
        let mut found = vec![self.lemmas.bit_range(&mut self.context, op, bits, [&x, &y], &using).ok()?];
        found.extend([(&x, &y), (&y, &x)].into_iter().find_map(|(x, y)| self.bit_block(op, x, y)));
        if op == BinaryOp::BitXor {
            found.extend(self.cancelled(&x, &y).map(|(_, facts)| facts).unwrap_or_default());
        }
        Some(found)
    }

    /// What is left of `x ^ y` if one of them is `p ^ q` and the other one is `p` or `q`, and the facts that say so.
    pub(super) fn cancelled(&mut self, x: &Term, y: &Term) -> Option<(Term, Vec<Fact>)> {
        for (both, other) in [(x, y), (y, x)] {
            let TermKind::Binary(BinaryOp::BitXor, p, q) = both.kind() else { continue };
            for (same, rest) in [(q, p), (p, q)] {
                if probably_equal(same, other) {
                    let (bits, ranges) = self.bits_of(p, q)?;
                    let using: Vec<&Fact> = ranges.iter().collect();
                    let cancels = self.lemmas.xor_cancels(&mut self.context, bits, [p, q], &using).ok()?;
                    return Some((rest.clone(), vec![cancels, poly_identity(&mut self.context, same, other).ok()?]));
                }
            }
        }
        None
    }

    /// That an operation on `x` and a digit `y` of a power of two is below the bound of `x`, which is no constant, but a multiple of
    /// that power.
    fn bit_block(&mut self, op: BinaryOp, x: &Term, y: &Term) -> Option<Fact> {
        let bound = self.upper(x).filter(|bound| bound.as_const().is_none())?;
        let bits = bits(self.upper(y)?.as_const()?)?;
        let multiple = self.prove_digit(&bound.floor_mod(1i128 << bits).equals(0))?;
        let below = self.prove_digit(&x.less(&bound))?;
        let ranges = [self.range(x, WIDE)?, self.range(&bound, WIDE)?, self.range(y, bits)?];
        let using: Vec<&Fact> = ranges.iter().chain([&below, &multiple]).collect();
        self.lemmas.bit_block(&mut self.context, op, bits, [x, y, &bound], &using).ok()
    }

    /// Proves a linear goal over bit-vectors, from the number of bits that each of its variables has. Over the integers Z3 takes
    /// hundreds of milliseconds for the inverse of an exclusive or.
    pub(super) fn over_bit_vectors(&mut self, goal: &Prop) -> Option<Fact> {
        if !is_linear_prop(goal) {
            return None;
        }
        let mut ranges = Vec::new();
        for symbol in goal.free_symbols() {
            let term = Term::sym(symbol);
            let constant = self.upper(&term).and_then(|end| end.as_const());
            ranges.push(self.range(&term, constant.and_then(bits).unwrap_or(INDEX))?);
        }
        self.context.derive_in_bits(goal, &ranges.iter().collect::<Vec<_>>()).ok()
    }

    /// The number of bits of two numbers, and facts that say so. A number without a constant bound has those of an index.
    fn bits_of(&mut self, x: &Term, y: &Term) -> Option<(u32, [Fact; 2])> {
        let constant = |term: &Term| self.upper(term)?.as_const();
        let bits = match (constant(x), constant(y)) {
            (Some(x), Some(y)) => bits(x.max(y))?,
            _ => INDEX,
        };
        Some((bits, [self.range(x, bits)?, self.range(y, bits)?]))
    }

    /// That a number has so many bits.
    fn range(&mut self, term: &Term, bits: u32) -> Option<Fact> {
        self.prove_digit(&term.at_least(0).and(term.less(1i128 << bits)))
    }
}

/// Appends the bit operations of a proposition, inner ones first, each once.
fn of_prop(prop: &Prop, found: &mut Vec<Term>) {
    match prop.kind() {
        PropKind::Bool(_) | PropKind::Sym(_) => {}
        PropKind::Compare(_, a, b) => {
            of_term(a, found);
            of_term(b, found);
        }
        PropKind::Not(inner) => of_prop(inner, found),
        PropKind::And(parts) | PropKind::Or(parts) => parts.iter().for_each(|part| of_prop(part, found)),
        PropKind::Implies(a, b) | PropKind::Iff(a, b) => {
            of_prop(a, found);
            of_prop(b, found);
        }
    }
}

/// Appends the bit operations of a term, inner ones first, each once.
fn of_term(term: &Term, found: &mut Vec<Term>) {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => {}
        TermKind::Unary(_, a) => of_term(a, found),
        TermKind::Binary(op, a, b) => {
            of_term(a, found);
            of_term(b, found);
            let is_bitwise = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
            if is_bitwise && !found.contains(term) {
                found.push(term.clone());
            }
        }
        TermKind::Ite(condition, a, b) => {
            of_prop(condition, found);
            of_term(a, found);
            of_term(b, found);
        }
        TermKind::App(_, args) => args.iter().for_each(|arg| of_term(arg, found)),
    }
}

/// Whether there are bit operations in a proposition.
pub(super) fn has_bits(prop: &Prop) -> bool {
    let mut found = Vec::new();
    of_prop(prop, &mut found);
    !found.is_empty()
}
