//! Conditions inside expressions, case by case: `if_then_else`, `min`, `max` and `abs` are decided one way and the other.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, MathFn};

use super::logic::{negate, tidy};
use super::ranges::Ranges;
use super::rewrite::Simplifier;

/// More cases than this are not told apart.
const MAX_CASES: usize = 16;
/// More conditions than this on one path neither.
const MAX_DEPTH: usize = 8;
/// Nor expressions with more parts than this.
const MAX_PARTS: usize = 300;

/// One way in which all conditions may come out.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// What holds in it.
    pub(super) path: Vec<Expr>,
    /// The expressions, without conditions.
    pub(super) exprs: Vec<Expr>,
    /// What is known of the variables in it.
    pub(super) ranges: Ranges,
}

/// The expressions in all cases that can be; none if there are too many. Without conditions there is one case.
pub(super) fn cases(exprs: &[Expr], ranges: &Ranges) -> Option<Vec<Case>> {
    let mut found = Vec::new();
    split(Case { path: Vec::new(), exprs: exprs.to_vec(), ranges: ranges.clone() }, &mut found)?;
    Some(found)
}

fn split(case: Case, found: &mut Vec<Case>) -> Option<()> {
    let simplifier = Simplifier::new(&case.ranges);
    let exprs: Vec<Expr> = case.exprs.iter().map(|expr| simplifier.simplify(expr)).collect();
    let Some((node, condition)) = exprs.iter().find_map(choice) else {
        found.push(Case { exprs, ..case });
        return (found.len() <= MAX_CASES).then_some(());
    };
    let mut n_parts = 0;
    for expr in &exprs {
        expr.walk(&mut |_| n_parts += 1);
    }
    (case.path.len() < MAX_DEPTH && n_parts < MAX_PARTS).then_some(())?;
    for holds in [true, false] {
        let condition = if holds { condition.clone() } else { negate(&condition) };
        let condition = tidy(&condition, &case.ranges);
        if condition.as_const_int() == Some(0) {
            continue;
        }
        let mut decide = Decide { node: &node, holds };
        let exprs = exprs.iter().map(|expr| {
            let Ok(decided) = decide.expr(expr);
            decided
        });
        let mut path = case.path.clone();
        let mut ranges = case.ranges.clone();
        if condition.as_const_int().is_none() {
            ranges = ranges.assuming(&condition);
            path.push(condition);
        }
        split(Case { path, exprs: exprs.collect(), ranges }, found)?;
    }
    Some(())
}

/// An innermost choice in an expression, and its condition.
fn choice(expr: &Expr) -> Option<(Expr, Expr)> {
    let mut last = None;
    expr.walk(&mut |part| {
        if let Some((condition, _, _)) = parts(part) {
            last = Some((part.clone(), condition));
        }
    });
    last
}

/// Condition, value where it holds, value where it does not.
fn parts(expr: &Expr) -> Option<(Expr, Expr, Expr)> {
    let compare = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
    match expr {
        Expr::Select(c, a, b) | Expr::IfThenElse(c, a, b) => Some(((**c).clone(), (**a).clone(), (**b).clone())),
        Expr::Binary(BinaryOp::Min, a, b) => Some((compare(BinaryOp::Le, a, b), (**a).clone(), (**b).clone())),
        Expr::Binary(BinaryOp::Max, a, b) => Some((compare(BinaryOp::Ge, a, b), (**a).clone(), (**b).clone())),
        Expr::Call(MathFn::Abs, args) => {
            let arg = args.first()?;
            let zero = Expr::int_of(0, arg.dtype().scalar)?;
            Some((compare(BinaryOp::Ge, arg, &zero), arg.clone(), zero - arg.clone()))
        }
        _ => None,
    }
}

struct Decide<'a> {
    node: &'a Expr,
    holds: bool,
}

impl Rewrite for Decide<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match parts(expr).filter(|_| expr == self.node) {
            Some((_, yes, no)) => Ok(if self.holds { yes } else { no }),
            None => self.expr_children(expr),
        }
    }
}
