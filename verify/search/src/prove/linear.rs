//! Classification of goals: those that Z3 decides without help, and the divisions for which it needs lemmas.
//!
//! `4 * n + c // 4 < m` is linear and decided by Z3 alone; `n * h + w < n * m` and `c // n` are not, and go to the digits.
//!
//! The classification only chooses a strategy. A goal that is classified wrongly costs time and is still proved soundly.

use tilewright_kernel::term::{BinaryOp, Prop, PropKind, Term, TermKind};

/// Whether a proposition is linear: it contains no product of two variables, and divisions by constants only.
pub(super) fn is_linear_prop(prop: &Prop) -> bool {
    match prop.kind() {
        PropKind::Bool(_) | PropKind::Sym(_) => true,
        PropKind::Compare(_, lhs, rhs) => is_linear(lhs) && is_linear(rhs),
        PropKind::Not(inner) => is_linear_prop(inner),
        PropKind::And(parts) | PropKind::Or(parts) => parts.iter().all(is_linear_prop),
        PropKind::Implies(a, b) | PropKind::Iff(a, b) => is_linear_prop(a) && is_linear_prop(b),
    }
}

/// Whether a term is linear: no product of two variables, and only divisions by constants.
fn is_linear(term: &Term) -> bool {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => true,
        TermKind::Unary(_, a) => is_linear(a),
        TermKind::Binary(op, a, b) => {
            let constant = match op {
                BinaryOp::Mul => a.as_const().is_some() || b.as_const().is_some(),
                BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {
                    b.as_const().is_some()
                }
                BinaryOp::Shl | BinaryOp::Shr => b.as_const().is_some(),
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor => true,
            };
            constant && is_linear(a) && is_linear(b)
        }
        TermKind::Ite(condition, a, b) => is_linear_prop(condition) && is_linear(a) && is_linear(b),
        TermKind::App(_, args) => args.iter().all(is_linear),
    }
}

/// Appends the dividends and divisors of all floor divisions in a proposition.
pub(super) fn collect_divisions_prop(prop: &Prop, found: &mut Vec<(Term, Term)>) {
    match prop.kind() {
        PropKind::Bool(_) | PropKind::Sym(_) => {}
        PropKind::Compare(_, lhs, rhs) => {
            collect_divisions(lhs, found);
            collect_divisions(rhs, found);
        }
        PropKind::Not(inner) => collect_divisions_prop(inner, found),
        PropKind::And(parts) | PropKind::Or(parts) => {
            for part in parts {
                collect_divisions_prop(part, found);
            }
        }
        PropKind::Implies(a, b) | PropKind::Iff(a, b) => {
            collect_divisions_prop(a, found);
            collect_divisions_prop(b, found);
        }
    }
}

/// Appends the dividends and divisors of all floor divisions in a term, inner ones first.
fn collect_divisions(term: &Term, found: &mut Vec<(Term, Term)>) {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => {}
        TermKind::Unary(_, a) => collect_divisions(a, found),
        TermKind::Binary(op, a, b) => {
            collect_divisions(a, found);
            collect_divisions(b, found);
            let division = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
            if division && !found.contains(&(a.clone(), b.clone())) {
                found.push((a.clone(), b.clone()));
            }
        }
        TermKind::Ite(condition, a, b) => {
            collect_divisions_prop(condition, found);
            collect_divisions(a, found);
            collect_divisions(b, found);
        }
        TermKind::App(_, args) => args.iter().for_each(|arg| collect_divisions(arg, found)),
    }
}
