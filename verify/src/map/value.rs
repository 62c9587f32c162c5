//! Definedness of expressions: a division by 0, a shift by too much and a cast of a value that does not fit have no value.
//!
//! A term denotes some integer even where the operation has no value. What Z3 proves about the terms of a map therefore
//! holds for the map only if all of its operations are shown to have a value.
//!
//! ```text
//! lambda i: [i // (n - 1)]        has no value for n = 1, although `i // (n - 1)` as a term is some integer
//! lambda i: [(i * 2) // 2]        always has one: the divisor is a number
//! ```
//!
//! The check comes before the obligations proper, and a failure of it is reported as their failure.

use tilewright_ir::{BinaryOp, Expr, ScalarType, Traps};

use crate::door::{All, Grounds};
use crate::kernel::Failure;
use crate::question::Question;
use crate::reason::Reason;
use crate::term::Prop;
use crate::translate::Names;

/// Proves that expressions have a value wherever the premises hold.
pub(super) fn shown<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    names: &mut Names,
    question: &mut Question,
) -> Result<Grounds, Failure> {
    let mut all = All::default();
    for expr in exprs {
        let goal = has_value(expr, names);
        if goal.as_bool() != Some(true) {
            all.add(question.settle(&goal)?);
        }
    }
    Ok(all.grounds())
}

/// As [`shown`], for goals of which a missing value is not a counterexample: the failure is then not a refutation.
pub(super) fn shown_or_open<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    names: &mut Names,
    question: &mut Question,
) -> Result<Grounds, Failure> {
    shown(exprs, names, question).map_err(|failure| match failure {
        Failure::Refuted(model) => {
            Failure::NotShown(Reason::undecided(format!("an operation has no value at {model}")))
        }
        other => other,
    })
}

/// The proposition that an expression has a value. It is the constant true if all divisors are nonzero numbers,
/// as in most maps.
pub(super) fn has_value(expr: &Expr, names: &mut Names) -> Prop {
    let mut parts = vec![operation(expr, names)];
    if let Expr::IfThenElse(condition, then, otherwise) = expr {
        parts.push(has_value(condition, names));
        let (then, otherwise) = (has_value(then, names), has_value(otherwise, names));
        if [&then, &otherwise].iter().any(|branch| branch.as_bool() != Some(true)) {
            let condition = names.prop(condition);
            parts.push(condition.implies(then));
            parts.push(condition.negate().implies(otherwise));
        }
    } else {
        parts.extend(expr.children().map(|child| has_value(child, names)));
    }
    Prop::all(parts)
}

/// The proposition that the outermost operation has a value if its operands do.
fn operation(expr: &Expr, names: &mut Names) -> Prop {
    match expr {
        Expr::Binary(op, value, operand) => is_defined(*op, value.dtype().scalar, operand, names),
        Expr::Cast(ty, value) => match (value.dtype().scalar.integer_range(), ty.scalar.integer_range()) {
            // A value that fits its own type, which is the obligation overflow, fits a wider one.
            (Some((low, high)), Some((least, greatest))) if least <= low && high <= greatest => Prop::bool(true),
            (Some(_), Some((least, greatest))) => {
                let value = names.term(value);
                value.at_least(least).and(value.at_most(greatest))
            }
            _ => Prop::bool(true),
        },
        Expr::Int { .. }
        | Expr::Float { .. }
        | Expr::Var(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::Select(..)
        | Expr::IfThenElse(..)
        | Expr::Ramp { .. }
        | Expr::Broadcast { .. }
        | Expr::Load { .. } => Prop::bool(true),
    }
}

/// The proposition that an operator does not trap for this right operand; `ty` is the type of the left one.
pub(super) fn is_defined(op: BinaryOp, ty: ScalarType, operand: &Expr, names: &mut Names) -> Prop {
    match op.traps() {
        Traps::Never => Prop::bool(true),
        Traps::ZeroDivisor => names.term(operand).differs(0),
        Traps::ShiftAmount => {
            let amount = names.term(operand);
            amount.at_least(0).and(amount.less(i128::from(ty.bits())))
        }
    }
}
