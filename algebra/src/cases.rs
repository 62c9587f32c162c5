//! Expressions with conditions, case by case: `if_then_else`, `select`, `min`, `max` and `abs` are replaced by one of
//! their operands, once under the condition and once under its negation.
//!
//! ```text
//! max(i - 4, 0)  with i < 9:     case i >= 4: i - 4        case i < 4: 0
//! ```
//!
//! The number of cases grows exponentially with the number of independent conditions, hence the limits below.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, MathFn};

use super::logic::{negate, tidy};
use super::ranges::Ranges;
use super::rewrite::Simplifier;

/// Expressions with more cases than this are not split.
const MAX_CASES: usize = 16;
/// Conditions on one path; a path with more is not split.
const MAX_DEPTH: usize = 8;
/// Nodes of all expressions together; larger ones are not split.
const MAX_PARTS: usize = 300;

/// One combination of outcomes of all conditions.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The path condition: the conditions that hold in this case.
    pub(super) path: Vec<Expr>,
    /// The expressions in this case, without conditions, in the order in which they were given.
    pub(super) exprs: Vec<Expr>,
    /// The ranges of the variables in this case.
    pub(super) ranges: Ranges,
}

/// Returns the expressions in every case that can occur; a single case if they hold no conditions. Returns `None` if a
/// limit is exceeded.
pub(super) fn cases(exprs: &[Expr], ranges: &Ranges) -> Option<Vec<Case>> {
    let mut found = Vec::new();
    split(Case { path: Vec::new(), exprs: exprs.to_vec(), ranges: ranges.clone() }, &mut found)?;
    Some(found)
}

/// Appends the cases of `case` to `found`: splits at one innermost choice and continues with both outcomes. Returns
/// `None` if a limit is exceeded.
fn split(case: Case, found: &mut Vec<Case>) -> Option<()> {
    let simplifier = Simplifier::new(&case.ranges);
    let exprs: Vec<Expr> = case.exprs.iter().map(|expr| simplifier.simplify(expr)).collect();
    let Some((node, condition)) = exprs.iter().find_map(innermost_choice) else {
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
        // A condition that the path decides adds no case: the other outcome cannot occur.
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

/// Returns an innermost choice in an expression, and its condition.
fn innermost_choice(expr: &Expr) -> Option<(Expr, Expr)> {
    let mut last = None;
    expr.walk(&mut |part| {
        if let Some((condition, _, _)) = choice_parts(part) {
            last = Some((part.clone(), condition));
        }
    });
    last
}

/// Returns the condition of a choice, its value where the condition holds, and its value where it does not. Returns
/// `None` for an expression that is no choice.
fn choice_parts(expr: &Expr) -> Option<(Expr, Expr, Expr)> {
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
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Binary(..) | Expr::Unary(..) => None,
        Expr::Call(..) | Expr::Cast(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => None,
    }
}

/// Replaces every occurrence of the choice `node` by its operand for one outcome.
struct Decide<'a> {
    node: &'a Expr,
    holds: bool,
}

impl Rewrite for Decide<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match choice_parts(expr).filter(|_| expr == self.node) {
            Some((_, yes, no)) => Ok(if self.holds { yes } else { no }),
            None => self.expr_children(expr),
        }
    }
}
