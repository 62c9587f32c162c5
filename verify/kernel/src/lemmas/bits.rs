//! Bit operations on numbers of `k` bits: their ranges, and that `^` cancels.
//!
//! ```text
//! 0 <= x < 2^k, 0 <= y < 2^k      give      0 <= x ^ y < 2^k,  and the same for `x & y` and `x | y`
//!                                           x ^ y ^ y == x  and  x ^ y ^ x == y, in either order
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
}

impl About {
    /// What holds of two operands of so many bits.
    fn conclusion(self, [x, y]: [&Term; 2], size: &Term) -> Prop {
        let xor = |x: &Term, y: &Term| Term::binary(BinaryOp::BitXor, x.clone(), y.clone());
        match self {
            Self::Range(op) => {
                let result = Term::binary(op, x.clone(), y.clone());
                result.at_least(0).and(result.less(size))
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
        if !matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor) {
            return Err(Failure::NotShown(Reason::unsupported(format!("{op:?} is no operation on bits"))));
        }
        self.bit_lemma(context, About::Range(op), bits, operands, using)
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
        self.bit_lemma(context, About::Cancel, bits, operands, using)
    }

    /// An instance of a theorem.
    fn bit_lemma(
        &self,
        context: &mut Context,
        about: About,
        bits: u32,
        [x, y]: [&Term; 2],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        let known = self.bits.lock().unwrap_or_else(PoisonError::into_inner).get(&(about, bits)).cloned();
        let theorem = match known {
            Some(theorem) => theorem,
            None => self.bit_theorem(about, bits)?,
        };
        context.apply(&theorem, &Substitution::new([("x", x), ("y", y)]), using)
    }

    /// Proves the theorem about an operation on numbers of this many bits.
    fn bit_theorem(&self, about: About, bits: u32) -> Result<Theorem, Failure> {
        if bits > MAX_BITS {
            return Err(Failure::NotShown(Reason::unsupported(format!("operands of {bits} bits"))));
        }
        let size = Term::int(1 << bits);
        let [x, y] = ["x", "y"].map(Term::sym);
        let mut context = Context::new(&self.solver);
        let mut premises = Vec::new();
        for operand in [&x, &y] {
            for part in [operand.at_least(0), operand.less(&size)] {
                premises.push(context.assume(part, "a number of so many bits"));
            }
        }
        let goal = about.conclusion([&x, &y], &size);
        let fact = context.derive_in_bits(&goal, &premises.iter().collect::<Vec<_>>())?;
        let theorem = context.generalize(&format!("{about:?}{bits}"), &fact)?;
        self.bits.lock().unwrap_or_else(PoisonError::into_inner).insert((about, bits), theorem.clone());
        Ok(theorem)
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
}
