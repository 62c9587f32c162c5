//! Goals at the end of a path with few iterations, decided by evaluating them at every iteration.
//!
//! If bits are mixed, evaluation is easier than a proof over the integers: an exclusive or of indices can cost Z3
//! seconds, or all of its budget. Paths with symbols, scalar parameters or conditions on memory have too many
//! executions and are left to the proof.
//!
//! ```text
//! for i in 64: B[i ^ (i >> 2)]     64 iterations: bounds is evaluated at each of them
//! ```

use tilewright_ir::{BinaryOp, Bindings, Expr, UnaryOp};

use crate::door::everywhere;
use crate::judge::{Decision, Judge};
use crate::method::{Method, Points};
use crate::path::Path;
use crate::verdict::{Counterexample, Verdict};

/// Most iterations that are begun, of all loops together.
const MOST: usize = 1 << 12;

/// The value of a goal at one iteration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    /// It holds.
    Holds,
    /// It fails, with the values that show it.
    Fails(Counterexample),
    /// It has no known value: it depends on memory, or it is not computed over the integers.
    Unclear,
}

impl Judge {
    /// Decides a goal at the end of a path by `prove`, or by evaluating it at every iteration with `look` if no proof
    /// is found and the iterations are few. If the goal mixes `bits`, evaluation comes first, unless proofs are
    /// recorded for a certificate.
    pub(crate) fn proved_or_tried(
        &self,
        path: &Path,
        bits: bool,
        look: impl Fn(&Bindings) -> Seen,
        prove: impl FnOnce() -> Decision,
    ) -> Decision {
        let early = bits && !self.is_recording();
        if early && let Some(decision) = tried(path, &look) {
            return decision;
        }
        let decision = prove();
        match &decision.0 {
            Verdict::Unknown(reason) if !early && !reason.is_internal() => tried(path, &look).unwrap_or(decision),
            _ => decision,
        }
    }
}

/// The decision by all iterations. `None` if there are too many or none at all, or if the goal is unclear at one of
/// them.
fn tried(path: &Path, look: &impl Fn(&Bindings) -> Seen) -> Option<Decision> {
    // Nothing is bound but the loop variables, so any use of a symbol, a scalar or memory has no value and ends the
    // attempt.
    let path = Path { scalars: Vec::new(), ..path.clone() };
    let mut count = 0u64;
    let mut visit = |bindings: &Bindings| {
        count += 1;
        match look(bindings) {
            Seen::Holds => None,
            seen => Some(seen),
        }
    };
    let method = || Method::Enumeration(Points::All);
    match path.each_iteration(&Bindings::new(), MOST, &mut visit) {
        (Some(Seen::Fails(found)), _) => Some((Verdict::Refuted(found), method())),
        (None, true) if count > 0 => Some((everywhere(count), method())),
        _ => None,
    }
}

/// Whether an expression contains a bitwise operator, or a shift by something that is not a constant.
pub(crate) fn mixes_bits<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
    let mut found = false;
    for expr in exprs {
        expr.walk(&mut |part| {
            found |= match part {
                Expr::Binary(BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor, ..)
                | Expr::Unary(UnaryOp::BitNot, _) => true,
                Expr::Binary(BinaryOp::Shl | BinaryOp::Shr, _, amount) => amount.as_const_int().is_none(),
                _ => false,
            };
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Buffer, DataType, Var};

    use super::*;
    use crate::path::Step;

    fn of_loop(extent: i64) -> (Path, Var) {
        let i = Var::index("i");
        let steps = vec![Step::Loop(i.clone(), Expr::int(0), Expr::int(extent))];
        (Path { steps: steps.into(), ..Path::default() }, i)
    }

    fn below(path: &Path, expr: &Expr, most: i128) -> Option<Verdict> {
        let look = |bindings: &Bindings| match expr.eval_index(bindings) {
            Ok(value) if value <= most => Seen::Holds,
            Ok(_) => Seen::Fails(Counterexample::default()),
            Err(_) => Seen::Unclear,
        };
        tried(path, &look).map(|(verdict, _)| verdict)
    }

    #[test]
    fn every_iteration_counts_and_none_is_left_out() {
        let (path, i) = of_loop(13);
        let mixed = Expr::binary(BinaryOp::BitXor, Expr::from(&i), Expr::int(5));
        assert!(below(&path, &mixed, 15).is_some_and(|verdict| verdict.is_proved()));
        // Only 10 ^ 5 is 15.
        assert!(matches!(below(&path, &mixed, 14), Some(Verdict::Refuted(_))));
        assert_eq!(below(&of_loop(1 + i64::try_from(MOST).unwrap()).0, &mixed, 1 << 20), None);
    }

    #[test]
    fn what_is_not_known_is_not_decided() {
        let (path, i) = of_loop(3);
        let table = Buffer::compact("t", DataType::INT32, vec![Expr::int(3)]);
        let read = Expr::load(&table, vec![Expr::from(&i)]);
        assert_eq!(below(&path, &read, 1 << 40), None);
        let with = |step: Step| Path { steps: path.steps.iter().cloned().chain([step]).collect(), ..Path::default() };
        assert_eq!(below(&with(Step::Guard(read.lt(Expr::int(2)), true)), &Expr::from(&i), 9), None);
        // Nothing gets there: that is no proof.
        assert_eq!(below(&with(Step::Guard(Expr::from(&i).lt(Expr::int(0)), true)), &Expr::from(&i), 9), None);
        let n = Var::index("n");
        for unknown in
            [Path { symbols: vec![n.clone()], ..path.clone() }, Path { scalars: vec![n.clone()], ..path.clone() }]
        {
            assert_eq!(below(&unknown, &Expr::from(&n), 1 << 40), None);
            assert!(below(&unknown, &Expr::from(&i), 2).is_some_and(|verdict| verdict.is_proved()));
        }
        let symbolic = Step::Loop(Var::index("j"), Expr::int(0), Expr::from(&n));
        let path = Path { symbols: vec![n], steps: vec![symbolic].into(), ..Path::default() };
        assert_eq!(below(&path, &Expr::int(1), 9), None);
    }
}
