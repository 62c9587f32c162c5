//! The obligations inverse and padding, from the digits of the claimed inverse.
//!
//! For the inverse `lambda p, q: [p * 4 + q]` of `lambda c: [c // 4, c % 4]` evaluation gives `4 * c1 + c0`, which is
//! `c`. In the other direction `p * 4 + q` is `4 * p0 + q0`, and the map takes it to `[p0, q0]`. That it lies in the
//! domain `0..17` follows from the negation of the padding predicate `p * 4 + q > 16`.
//!
//! Neither part of the claim is believed. The padding predicate is shown to be false on every image; on every physical
//! index for which it is false, the inverse is shown to lie in the domain and the map to lead back.

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Expr, InverseClaim, UnaryOp, Var};

use super::atoms::TOO_LARGE;
use super::eval::{Checker, Env, negated};
use super::obligations::Evaluated;
use super::space::{Space, Sum};
use super::{Poly, Rejected, indices, space, stated};

/// The physical indices in digits, and the logical indices that the inverse maps them to.
pub(super) struct Physical<'c> {
    /// The claimed inverse and padding.
    claim: &'c InverseClaim,
    /// The physical box in digits.
    space: Space,
    /// The outputs of the inverse on the physical indices.
    back: Vec<Sum>,
}

/// What holds on physical indices that are not padding.
#[derive(Default)]
struct Facts {
    /// Sums that are not negative.
    at_least_zero: Vec<Sum>,
    /// Sums that are 0.
    zero: Vec<Sum>,
}

impl<'c> Physical<'c> {
    /// Compares the certificate's digits of the inverse with the claimed inverse. `None` if no inverse is claimed or the
    /// certificate has no digits for it.
    pub(super) fn new(checker: &mut Checker, map: &Evaluated<'c>) -> Result<Option<Self>, Rejected> {
        let (Some(claim), Some(view)) = (map.claim.inverse, &map.certificate.inverse) else { return Ok(None) };
        let space = space(checker, map.claim.shape, view)?;
        let env = indices(&claim.vars, &space);
        let back = claim.outputs.iter().map(|output| checker.eval(output, &env)).collect::<Result<Vec<_>, _>>()?;
        stated(checker, &space, &back, &view.outputs)?;
        Ok(Some(Self { claim, space, back }))
    }

    /// Shows that `inverse(map(x)) == x`, and that `map(inverse(p)) == p` for every `p` that is not padding.
    pub(super) fn inverse(&self, checker: &mut Checker, map: &Evaluated<'_>) -> Result<(), Rejected> {
        let env = self.image(map);
        for (axis, output) in self.claim.outputs.iter().enumerate() {
            let (found, wanted) = (checker.eval(output, &env)?, map.logical.index(axis));
            if found != wanted {
                return Err(Rejected("the inverse does not lead back"));
            }
        }
        self.right(checker, map)
    }

    /// Shows that no logical index is mapped to padding, and that every other physical index is reached.
    pub(super) fn padding(&self, checker: &mut Checker, map: &Evaluated<'_>) -> Result<(), Rejected> {
        let env = self.image(map);
        if !sabotage::on("digits-reach-padding") {
            checker.truth(&self.claim.padding, &env, false)?;
        }
        self.right(checker, map)
    }

    /// An environment in which the physical indices are the image of the logical ones.
    fn image<'e>(&'e self, map: &'e Evaluated<'_>) -> Env<'e> {
        let vars = self.claim.vars.iter().zip(map.outputs.iter().cloned()).collect();
        Env { space: map.logical, vars }
    }

    /// Shows that for every physical index that is not padding, the inverse lies in the domain and the map leads back.
    fn right(&self, checker: &mut Checker, map: &Evaluated<'_>) -> Result<(), Rejected> {
        let env = indices(&self.claim.vars, &self.space);
        if checker.attempt(|checker| checker.evaluated(&self.claim.padding, &env)).is_err() {
            checker.total(&self.claim.padding, &env)?;
        }
        let mut facts = Facts::default();
        gather(checker, &self.claim.padding, &env, false, &mut facts)?;
        for (back, axis) in self.back.iter().zip(&map.logical.axes) {
            self.at_least_zero(checker, back, &facts)?;
            let last = axis.extent.plus_const(-1).ok_or(TOO_LARGE)?;
            let room = Sum::number(last).minus(back).ok_or(TOO_LARGE)?;
            self.at_least_zero(checker, &room, &facts)?;
        }
        let vars: Vec<(&Var, Sum)> = map.claim.map.vars().iter().zip(self.back.iter().cloned()).collect();
        let env = Env { space: &self.space, vars };
        for (axis, output) in map.claim.map.outputs().iter().enumerate() {
            let difference = checker.eval(output, &env)?.minus(&self.space.index(axis)).ok_or(TOO_LARGE)?;
            let negated = difference.times(&Poly::constant(-1)).ok_or(TOO_LARGE)?;
            let is_zero = difference == Sum::default();
            if !is_zero && !facts.zero.contains(&difference) && !facts.zero.contains(&negated) {
                return Err(Rejected("the map does not lead back from the inverse"));
            }
        }
        Ok(())
    }

    /// Shows that a sum is not negative: by its digits, or because it is at least a sum that is known not to be.
    fn at_least_zero(&self, checker: &mut Checker, sum: &Sum, facts: &Facts) -> Result<(), Rejected> {
        if checker.window(&self.space, sum, None).is_ok() {
            return Ok(());
        }
        for fact in &facts.at_least_zero {
            let more = sum.minus(fact).ok_or(TOO_LARGE)?;
            if checker.window(&self.space, &more, None).is_ok() {
                return Ok(());
            }
        }
        Err(Rejected("the inverse may leave the domain"))
    }
}

/// Collects the facts that follow from a condition having the value `wanted`. Parts that are no comparisons of sums of
/// digits are skipped, which loses facts but adds no wrong ones.
fn gather(
    checker: &mut Checker,
    condition: &Expr,
    env: &Env<'_>,
    wanted: bool,
    facts: &mut Facts,
) -> Result<(), Rejected> {
    match condition {
        Expr::Unary(UnaryOp::Not, operand) => {
            checker.nested(|checker| gather(checker, operand, env, !wanted, facts))?;
        }
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), lhs, rhs) if (*op == BinaryOp::And) == wanted => {
            checker.nested(|checker| gather(checker, lhs, env, wanted, facts))?;
            checker.nested(|checker| gather(checker, rhs, env, wanted, facts))?;
        }
        // Only one of the operands is known to hold.
        Expr::Binary(BinaryOp::And | BinaryOp::Or, ..) => {}
        Expr::Binary(op, lhs, rhs) => {
            let Some(op) = (if wanted { Some(*op) } else { negated(*op) }) else { return Ok(()) };
            let sums = checker.attempt(|checker| Ok((checker.eval(lhs, env)?, checker.eval(rhs, env)?)));
            if let Ok((a, b)) = sums {
                facts.add(op, &a, &b);
            }
        }
        Expr::Int { .. }
        | Expr::Float { .. }
        | Expr::Var(_)
        | Expr::Unary(UnaryOp::Neg | UnaryOp::BitNot, _)
        | Expr::Call(..)
        | Expr::Select(..)
        | Expr::IfThenElse(..)
        | Expr::Cast(..)
        | Expr::Ramp { .. }
        | Expr::Broadcast { .. }
        | Expr::Load { .. } => {}
    }
    Ok(())
}

impl Facts {
    /// Adds the facts that follow from a comparison.
    fn add(&mut self, op: BinaryOp, a: &Sum, b: &Sum) {
        // Over the integers `a < b` is `b - a - 1 >= 0`. Nothing is gained from `a != b`, which is a disjunction.
        let (more, less) = (a.minus(b), b.minus(a));
        let strictly = |sum: Option<Sum>| sum.and_then(|sum| sum.plus_const(-1));
        match op {
            BinaryOp::Lt => self.at_least_zero.extend(strictly(less)),
            BinaryOp::Le => self.at_least_zero.extend(less),
            BinaryOp::Gt => self.at_least_zero.extend(strictly(more)),
            BinaryOp::Ge => self.at_least_zero.extend(more),
            BinaryOp::Eq => {
                self.zero.extend(more.clone());
                self.at_least_zero.extend(more);
                self.at_least_zero.extend(less);
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncMod
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => {}
        }
    }
}
