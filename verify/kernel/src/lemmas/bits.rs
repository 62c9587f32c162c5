//! Bit operations on numbers of `k` bits: their ranges, and that `^` cancels.
//!
//! ```text
//! 0 <= x < 2^k, 0 <= y < 2^k                   give   0 <= x ^ y < 2^k,  and the same for `x & y` and `x | y`
//!                                                     x ^ y ^ y == x  and  x ^ y ^ x == y, in either order
//! 0 <= x < m, 0 <= y < 2^k, m % 2^k == 0       give   0 <= x ^ y < m,  and the same for `x & y` and `x | y`
//! ```
//!
//! There is a theorem for each operation and width, proved over bit-vectors when it is first needed.

use std::sync::PoisonError;

use super::Lemmas;
use crate::facts::{Context, Fact, Failure, Theorem};
use crate::reason::Reason;
use crate::term::{BinaryOp, Prop, Substitution, Term};

/// Greatest number of bits of the operands.
const MAX_BITS: u32 = 62;

/// What a theorem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About {
    /// The range of an operation.
    Range(BinaryOp),
    /// Cancellation of `^`.
    Cancel,
    /// An operation that does not leave the block of its first operand.
    Block(BinaryOp),
}

impl About {
    /// The numbers that it is about.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Range(_) | Self::Cancel => &["x", "y"],
            Self::Block(_) => &["x", "y", "m"],
        }
    }

    /// What has to hold of numbers of so many bits.
    fn hypotheses(self, bits: u32) -> Vec<Prop> {
        let [x, y, m] = ["x", "y", "m"].map(Term::sym);
        let within = |number: &Term, bits: u32| [number.at_least(0), number.less(1i128 << bits)];
        match self {
            Self::Range(_) | Self::Cancel => [within(&x, bits), within(&y, bits)].concat(),
            Self::Block(_) => {
                let mut found = [within(&x, MAX_BITS), within(&m, MAX_BITS), within(&y, bits)].concat();
                found.extend([x.less(&m), m.floor_mod(1i128 << bits).equals(0)]);
                found
            }
        }
    }

    /// What follows.
    fn conclusion(self, bits: u32) -> Prop {
        let ([x, y, m], size) = (&["x", "y", "m"].map(Term::sym), Term::int(1i128 << bits));
        let xor = |x: &Term, y: &Term| Term::binary(BinaryOp::BitXor, x.clone(), y.clone());
        match self {
            Self::Range(op) => {
                let result = Term::binary(op, x.clone(), y.clone());
                result.at_least(0).and(result.less(&size))
            }
            Self::Block(op) => {
                let orders = [Term::binary(op, x.clone(), y.clone()), Term::binary(op, y.clone(), x.clone())];
                Prop::all(orders.iter().flat_map(|result| [result.at_least(0), result.less(m)]))
            }
            Self::Cancel => {
                let both = xor(x, y);
                let (first, second) = ([xor(&both, y), xor(y, &both)], [xor(&both, x), xor(x, &both)]);
                Prop::all(first.map(|left| left.equals(x)).into_iter().chain(second.map(|left| left.equals(y))))
            }
        }
    }
}

impl Lemmas {
    /// That `op` of `x` and `y` is in `0..2^bits`, from the facts `using`, which have to say so of `x` and `y`.
    ///
    /// # Errors
    /// The operation is none of `&`, `|` and `^`, there are more than 62 bits, or a range is missing.
    pub fn bit_range(
        &self,
        context: &mut Context,
        op: BinaryOp,
        bits: u32,
        operands: [&Term; 2],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        self.bit_lemma(context, About::Range(on_bits(op)?), bits, &operands, using)
    }

    /// That `x ^ y ^ y == x` and `x ^ y ^ x == y`, and the same with exchanged operands, from the facts `using`, which have to say that both are in `0..2^bits`.
    ///
    /// # Errors
    /// There are more than 62 bits, or a range is missing.
    pub fn xor_cancels(
        &self,
        context: &mut Context,
        bits: u32,
        operands: [&Term; 2],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        self.bit_lemma(context, About::Cancel, bits, &operands, using)
    }

    /// That `op` of `x` and `y`, in either order, is in `0..m`, from the facts `using`, which have to say: `x` is in `0..m`, `x` and `m`
    /// have at most 62 bits, `y` is in `0..2^bits`, and `m` is a multiple of `2^bits`.
    ///
    /// # Errors
    /// The operation is none of `&`, `|` and `^`, there are more than 62 bits, or one of these facts is missing.
    pub fn bit_block(
        &self,
        context: &mut Context,
        op: BinaryOp,
        bits: u32,
        numbers: [&Term; 3],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        self.bit_lemma(context, About::Block(on_bits(op)?), bits, &numbers, using)
    }

    /// An instance of a theorem.
    fn bit_lemma(
        &self,
        context: &mut Context,
        about: About,
        bits: u32,
        numbers: &[&Term],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        let known = self.bits.lock().unwrap_or_else(PoisonError::into_inner).get(&(about, bits)).cloned();
        let theorem = match known {
            Some(theorem) => theorem,
            None => self.bit_theorem(about, bits)?,
        };
        let values = about.names().iter().copied().zip(numbers.iter().copied());
        context.apply(&theorem, &Substitution::new(values), using)
    }

    /// Proves the theorem about an operation on numbers of this many bits.
    fn bit_theorem(&self, about: About, bits: u32) -> Result<Theorem, Failure> {
        if bits > MAX_BITS {
            return Err(Failure::NotShown(Reason::unsupported(format!("operands of {bits} bits"))));
        }
        let mut context = Context::new(&self.solver);
        let hypotheses = about.hypotheses(bits).into_iter();
        let premises: Vec<Fact> = hypotheses.map(|part| context.assume(part, "a number of so many bits")).collect();
        let fact = context.derive_in_bits(&about.conclusion(bits), &premises.iter().collect::<Vec<_>>())?;
        let theorem = context.generalize(&format!("{about:?}{bits}"), &fact)?;
        self.bits.lock().unwrap_or_else(PoisonError::into_inner).insert((about, bits), theorem.clone());
        Ok(theorem)
    }
}

/// The operation, if it is one on bits.
fn on_bits(op: BinaryOp) -> Result<BinaryOp, Failure> {
    match op {
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => Ok(op),
        _ => Err(Failure::NotShown(Reason::unsupported(format!("{op:?} is no operation on bits")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::Solver;

    #[test]
    fn a_range_needs_those_of_the_operands() {
        let solver = Solver::new().unwrap();
        let (lemmas, mut context) = (Lemmas::new(&solver), Context::new(&solver));
        let [i, j] = ["i", "j"].map(Term::sym);
        let ranges = [i.at_least(0), i.less(64), j.at_least(0), j.less(64)].map(|part| context.assume(part, "range"));
        let using: Vec<&Fact> = ranges.iter().collect();
        for op in [BinaryOp::BitXor, BinaryOp::BitAnd, BinaryOp::BitOr] {
            let fact = lemmas.bit_range(&mut context, op, 6, [&i, &j], &using).unwrap();
            let term = Term::binary(op, i.clone(), j.clone());
            assert_eq!(*fact.prop(), term.at_least(0).and(term.less(64)));
            assert!(lemmas.bit_range(&mut context, op, 5, [&i, &j], &using).is_err());
            assert!(lemmas.bit_range(&mut context, op, 6, [&i, &j], &using[..3]).is_err());
        }
        assert!(lemmas.bit_range(&mut context, BinaryOp::Add, 6, [&i, &j], &using).is_err());
        assert!(lemmas.bit_range(&mut context, BinaryOp::BitXor, 63, [&i, &j], &using).is_err());
        let fact = lemmas.xor_cancels(&mut context, 6, [&i, &j], &using).unwrap();
        assert_eq!(
            fact.prop().to_string(),
            "i ^ j ^ j == i and j ^ (i ^ j) == i and i ^ j ^ i == j and i ^ (i ^ j) == j"
        );
        assert!(lemmas.xor_cancels(&mut context, 6, [&i, &j], &using[..3]).is_err());
    }

    #[test]
    fn a_block_needs_a_multiple_of_its_size() {
        let solver = Solver::new().unwrap();
        let (lemmas, mut context) = (Lemmas::new(&solver), Context::new(&solver));
        let [j, d, m] = ["j", "d", "m"].map(Term::sym);
        let most = 1i128 << MAX_BITS;
        let facts = [j.at_least(0), j.less(most), m.at_least(0), m.less(most), d.at_least(0), d.less(8), j.less(&m)];
        let facts = facts.map(|part| context.assume(part, "range"));
        let multiple = |of: i128, context: &mut Context| context.assume(m.floor_mod(of).equals(0), "a multiple");
        let (eight, four) = (multiple(8, &mut context), multiple(4, &mut context));
        let with = |more: &'_ Fact| facts.iter().chain([more]).cloned().collect::<Vec<_>>();
        for op in [BinaryOp::BitXor, BinaryOp::BitAnd, BinaryOp::BitOr] {
            let using = with(&eight);
            let fact = lemmas.bit_block(&mut context, op, 3, [&j, &d, &m], &using.iter().collect::<Vec<_>>()).unwrap();
            let results = [Term::binary(op, j.clone(), d.clone()), Term::binary(op, d.clone(), j.clone())];
            let wanted = results.iter().flat_map(|result| [result.at_least(0), result.less(&m)]);
            assert_eq!(*fact.prop(), Prop::all(wanted));
            let using = with(&four);
            assert!(lemmas.bit_block(&mut context, op, 3, [&j, &d, &m], &using.iter().collect::<Vec<_>>()).is_err());
            assert!(lemmas.bit_block(&mut context, op, 2, [&j, &d, &m], &using.iter().collect::<Vec<_>>()).is_err());
        }
    }
}
