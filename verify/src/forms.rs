//! Other forms of statements and values.
//!
//! ```text
//! if a and b: S                        if a: if b: S
//! if not c: S  else: T                 if c: T  else: S
//! C[i] = x if c else y                 if c: C[i] = x  else: C[i] = y
//! x + y, x < y, x if not c else y      y + x, y > x, y if c else x
//! x if m != n else y                   y if m == n else x
//! x - y, x / 4 (floats)                x + -y, x * 0.25
//! ```
//!
//! A statement does the same in both forms. One form may evaluate an expression where the other one does not, which
//! matters if the expression has no value there.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Buffer, Expr, PrimFunc, Stmt, StmtKind, Traps, UnaryOp};

use crate::claims::Relation;
use crate::correspondence::Value;
use crate::reorder::is_small;

/// A statement in its other form.
pub(crate) struct Unfolded {
    pub(crate) stmt: Stmt,
    /// What the first form evaluates in any case, and this one under a condition.
    pub(crate) evaluated_early: Vec<Expr>,
}

/// A statement with its condition taken apart, or with the choice in its value as a branch.
pub(crate) fn unfolded(stmt: &Stmt) -> Option<Unfolded> {
    let branch = |cond: &Expr, then_body: Stmt, else_body: Option<Stmt>| {
        let else_body = else_body.map(Into::into);
        Stmt::new(StmtKind::If { cond: cond.clone(), then_body: then_body.into(), else_body }).at(stmt.span)
    };
    let (stmt, evaluated_early) = match &stmt.kind {
        StmtKind::If { cond: Expr::Binary(BinaryOp::And, a, b), then_body, else_body: None } => {
            let inner = branch(b, Stmt::clone(then_body), None);
            (branch(a, inner, None), vec![Expr::clone(b)])
        }
        StmtKind::If { cond: Expr::Unary(UnaryOp::Not, cond), then_body, else_body: Some(else_body) } => {
            (branch(cond, Stmt::clone(else_body), Some(Stmt::clone(then_body))), Vec::new())
        }
        StmtKind::Store { buffer, indices, value } => {
            let [cond, a, b] = choice(value)?;
            let store = |value: &Expr| Stmt::store(buffer, indices.clone(), value.clone()).at(stmt.span);
            let is_lazy = matches!(value, Expr::IfThenElse(..));
            let early = if is_lazy { Vec::new() } else { vec![a.clone(), b.clone()] };
            (branch(cond, store(a), Some(store(b))), early)
        }
        _ => return None,
    };
    Some(Unfolded { stmt, evaluated_early })
}

/// The condition of a choice, the value where it holds, and the other one; none if each lane chooses by itself.
pub(crate) fn choice(expr: &Expr) -> Option<[&Expr; 3]> {
    match expr {
        Expr::IfThenElse(cond, a, b) | Expr::Select(cond, a, b) if cond.dtype().is_scalar() => Some([cond, a, b]),
        _ => None,
    }
}

/// A value with its operands exchanged: the same value, bit by bit. `min` and `max` of floats may come out as either zero.
pub(crate) fn turned(value: &Expr) -> Option<Expr> {
    match value {
        Expr::Binary(op, a, b) => {
            let is_float = a.dtype().scalar.is_float();
            Some(Expr::binary(mirrored(*op, is_float)?, Expr::clone(b), Expr::clone(a)))
        }
        Expr::IfThenElse(cond, a, b) => Some(Expr::IfThenElse(negated(cond).into(), b.clone(), a.clone())),
        Expr::Select(cond, a, b) => Some(Expr::Select(negated(cond).into(), b.clone(), a.clone())),
        _ => None,
    }
}

/// Two values in the forms in which a correspondence compares them, and how these are compared; `None` if it does not change them.
pub(crate) fn formed<'v>(along: &'v Value, old: &Expr, new: &Expr) -> Option<(&'v Value, [Expr; 2])> {
    let is_restated = restated(old).is_some() || restated(new).is_some();
    match along {
        Value::Turned(along) => Some((along, [old.clone(), turned(new)?])),
        Value::Reversed(along) => Some((along, [old.clone(), reversed(new)?])),
        Value::Restated(along) if is_restated => {
            Some((along, [old, new].map(|value| restated(value).unwrap_or_else(|| value.clone()))))
        }
        Value::Whole(_) | Value::Lanes(_) | Value::Load(_) | Value::Parts(_) => None,
        Value::Restated(_) | Value::Choice(_) | Value::Decided(..) | Value::Unknown => None,
    }
}

/// A choice with its sides exchanged, by the opposite of a comparison: the same value. Floats that are not numbers are neither less than
/// others nor not less.
pub(crate) fn reversed(value: &Expr) -> Option<Expr> {
    match value {
        Expr::IfThenElse(cond, a, b) => Some(Expr::IfThenElse(opposite_of(cond)?.into(), b.clone(), a.clone())),
        Expr::Select(cond, a, b) => Some(Expr::Select(opposite_of(cond)?.into(), b.clone(), a.clone())),
        _ => None,
    }
}

/// The comparison that holds where another one does not.
pub(crate) fn opposite_of(cond: &Expr) -> Option<Expr> {
    use BinaryOp as Op;
    let Expr::Binary(op, a, b) = cond else { return None };
    let is_ordered = !a.dtype().scalar.is_float();
    let op = match op {
        Op::Eq => Op::Ne,
        Op::Ne => Op::Eq,
        Op::Lt if is_ordered => Op::Ge,
        Op::Le if is_ordered => Op::Gt,
        Op::Gt if is_ordered => Op::Le,
        Op::Ge if is_ordered => Op::Lt,
        Op::Lt | Op::Le | Op::Gt | Op::Ge => return None,
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::FloorDiv | Op::FloorMod | Op::TruncDiv | Op::TruncMod => {
            return None;
        }
        Op::Min | Op::Max | Op::And | Op::Or | Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => return None,
    };
    Some(Expr::binary(op, Expr::clone(a), Expr::clone(b)))
}

/// A difference of floats as a sum: IEEE 754 defines `x - y` as `x + (-y)`. The opposite of an opposite is the number itself, and NaN
/// is one value. A quotient by a power of two as a product: both are the same real number, rounded once.
pub(crate) fn restated(value: &Expr) -> Option<Expr> {
    match value {
        Expr::Binary(BinaryOp::Sub, a, b) if b.dtype().scalar.is_float() => Some(Expr::clone(a) + opposite(b)),
        Expr::Binary(BinaryOp::Div, a, b) => Some(Expr::clone(a) * reciprocal(b)?),
        _ => None,
    }
}

/// One divided by a power of two, which is a number of the same type.
fn reciprocal(by: &Expr) -> Option<Expr> {
    match by {
        Expr::Float { value, ty } => Some(Expr::Float { value: reciprocal_of_power(*value)?, ty: *ty }),
        Expr::Broadcast { value, lanes } => Some(Expr::Broadcast { value: reciprocal(value)?.into(), lanes: *lanes }),
        _ => None,
    }
}

/// One divided by a power of two, if both are normal numbers of every floating-point type.
pub(crate) fn reciprocal_of_power(by: f64) -> Option<f64> {
    let is_power = by.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - 1;
    (is_power && (2f64.powi(-14)..=2f64.powi(14)).contains(&by.abs())).then(|| 1.0 / by)
}

/// A float with the other sign.
pub(crate) fn opposite(value: &Expr) -> Expr {
    match value {
        Expr::Float { value, ty } => Expr::Float { value: -value, ty: *ty },
        Expr::Unary(UnaryOp::Neg, inner) => Expr::clone(inner),
        _ => Expr::unary(UnaryOp::Neg, value.clone()),
    }
}

/// The operator with the same value for exchanged operands.
fn mirrored(op: BinaryOp, is_float: bool) -> Option<BinaryOp> {
    use BinaryOp as Op;
    match op {
        Op::Add | Op::Mul | Op::Eq | Op::Ne | Op::And | Op::Or | Op::BitAnd | Op::BitOr | Op::BitXor => Some(op),
        Op::Min | Op::Max => (!is_float).then_some(op),
        Op::Lt => Some(Op::Gt),
        Op::Le => Some(Op::Ge),
        Op::Gt => Some(Op::Lt),
        Op::Ge => Some(Op::Le),
        Op::Sub | Op::Div | Op::FloorDiv | Op::FloorMod | Op::TruncDiv | Op::TruncMod | Op::Shl | Op::Shr => None,
    }
}

/// The condition that holds where another one does not.
fn negated(cond: &Expr) -> Expr {
    match cond {
        Expr::Unary(UnaryOp::Not, inner) => Expr::clone(inner),
        _ => Expr::unary(UnaryOp::Not, cond.clone()),
    }
}

/// Whether an expression is a conditional that is decided for each lane by itself.
pub(crate) fn chooses_by_lane(expr: &Expr) -> bool {
    matches!(expr, Expr::IfThenElse(cond, ..) if cond.dtype().lanes > 1)
}

/// Whether an expression of the program after has a value even where the program before does not evaluate it: nothing in it
/// traps, and it reads only what the caller gave and nothing overwrites. That it stays inside of its buffers is an obligation of
/// the program after.
pub(crate) fn has_value(expr: &Expr, relation: &Relation<'_>, before: Option<&PrimFunc>) -> bool {
    let mut has = true;
    expr.walk(&mut |part| match part {
        Expr::Binary(op, ..) => has &= op.traps() == Traps::Never,
        Expr::Load { buffer, .. } => {
            let old = relation.unmoved(buffer);
            has &= old.zip(before).is_some_and(|(buffer, func)| is_given(buffer, func));
        }
        _ => {}
    });
    has
}

/// Whether a buffer is a parameter that a function does not write, under no name.
fn is_given(buffer: &Buffer, func: &PrimFunc) -> bool {
    let mut is_written = false;
    func.body.walk(&mut |stmt| {
        is_written |= matches!(&stmt.kind, StmtKind::Store { buffer: to, .. } if to.aliases(buffer));
    });
    !is_written && func.buffer_map.iter().any(|(_, param)| param == buffer)
}

/// Statements as one.
pub(crate) fn joined<'a>(stmts: impl Iterator<Item = &'a Stmt>) -> Stmt {
    Stmt::seq(stmts.cloned().collect())
}

/// The statements that do something, with declarations and hints stepped over and bindings inlined, unless their values are large: names
/// that stand for names twice double what they are written out to.
pub(crate) fn plain(stmts: &[&Stmt]) -> Vec<Stmt> {
    let mut found = Vec::new();
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => found.extend(plain(&[body])),
            StmtKind::Let { var, value, body } if is_small(value) && !value.reads_memory() => {
                let inlined = Substitution::new([var], [value.clone()]).apply_stmt(body);
                found.extend(plain(&[&inlined]));
            }
            StmtKind::Seq(inner) => found.extend(plain(&inner.iter().collect::<Vec<_>>())),
            StmtKind::Evaluate(expr) if !expr.reads_memory() => {}
            _ => found.push((*stmt).clone()),
        }
    }
    found
}
