//! Obligation overflow: no subterm of the map leaves its type.
//!
//! ```text
//! lambda i: [i * 65536]     i of type int32 on (65536): `i * 65536` is 2147483648 at 32768, which does not fit int32
//! ```
//!
//! Every operation counts, not only the results: an intermediate value that wraps may give a right result on this machine
//! and a wrong one on the next.

use tilewright_ir::{Bindings, Expr, MAX_SYMBOLIC_ELEMENTS};

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance};
use super::value::is_defined;
use super::{MapClaim, Obligation, at, fast, from_model, symbols_from};
use crate::concrete::tuple;
use crate::door::All;
use crate::judge::{Decision, decide};
use crate::kernel::Failure;
use crate::obligation::Obligation as Id;
use crate::question::Question;
use crate::reason::Reason;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::Counterexample;

/// How all points are looked at.
const LOOPS: Loops = Loops { fast: fast::outputs::overflow, plain: everywhere };

/// No subterm of the map leaves its type. For symbolic shapes it is assumed that both sides have at most
/// [`MAX_SYMBOLIC_ELEMENTS`] elements, which is checked when the program is launched.
pub(super) const OBLIGATION: Obligation =
    (Id::Overflow, LOOPS, &[certified, empty, small, digits, medium, brief, wide, large, by_z3]);

/// Looks at each output at all points of the axes that it depends on.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    if !instance.symbols.is_empty() {
        return Answer::Open(Reason::undecided("small extents overflow nothing"));
    }
    let boxes = (0..instance.shape.len()).map(|output| instance.box_over(instance.axes_of(output)));
    instance.in_boxes(boxes.collect(), limit, |index| first_fault(instance.claim, &instance.symbols, index))
}

/// A counterexample if an operation that is evaluated at a point leaves its type or has no value.
pub(super) fn first_fault(claim: MapClaim<'_>, symbols: &Bindings, point: &[i128]) -> Option<Counterexample> {
    if !claim.admits(point, symbols) {
        return None;
    }
    let mut bindings = symbols.clone();
    bindings.extend(claim.map.vars().iter().cloned().zip(point.iter().copied()));
    let text = claim.map.outputs().iter().find_map(|output| fault(output, &bindings, point))?;
    Some(at(claim, symbols, &[point], text))
}

/// The first operation in order of evaluation that leaves its type or has no value at a point, as text. Only the chosen
/// branch of a conditional is evaluated.
fn fault(part: &Expr, bindings: &Bindings, point: &[i128]) -> Option<String> {
    let of = |child: &Expr| fault(child, bindings, point);
    let found = match part {
        Expr::IfThenElse(condition, then, otherwise) => {
            of(condition).or_else(|| match condition.eval_index(bindings) {
                Ok(0) => of(otherwise),
                Ok(_) => of(then),
                Err(_) => None,
            })
        }
        _ => part.children().find_map(of),
    };
    if found.is_some() {
        return found;
    }
    let value = match part.eval_index(bindings) {
        Ok(value) => value,
        Err(error) => return Some(format!("`{part}` has no value at {}: {error}", tuple(point))),
    };
    let (low, high) = part.dtype().scalar.integer_range()?;
    let operation = matches!(part, Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..));
    let fits = !operation || (low..=high).contains(&value);
    (!fits).then(|| format!("`{part}` is {value} at {}, which does not fit {}", tuple(point), part.dtype()))
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 whether each operation fits its type.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a tier")]
fn by_z3(case: &Case<'_>) -> Option<Decision> {
    let claim = case.claim;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = claim.assume(&mut question, &mut names, "");
    assume_addressable(&mut question, &mut names, claim.map.domain());
    assume_addressable(&mut question, &mut names, claim.shape);
    let from = question.steps().len();
    let mut all = All::default();
    let result = evaluated(claim.map.outputs()).into_iter().try_for_each(|guarded| {
        let mut shown = question.settle(&fits(guarded.part, &mut names));
        // Most operations fit everywhere. Those that do not need the conditions under which they are evaluated.
        if !guarded.conditions.is_empty() && matches!(shown, Err(Failure::Refuted(_) | Failure::NotShown(_))) {
            shown = question.settle(&guarded.fits(&mut names));
        }
        shown.map(|grounds| all.add(grounds))
    });
    let result = result.map(|()| all.grounds());
    Some(decide("map overflow", result, &question, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        first_fault(claim, &symbols_from(model, &mut names, case.symbols()), &point)
    }))
}

/// Assumes that a symbolic shape has at most [`MAX_SYMBOLIC_ELEMENTS`] elements; does nothing for a constant shape.
pub(crate) fn assume_addressable(question: &mut Question, names: &mut Names, shape: &[Expr]) {
    if shape.iter().all(|extent| extent.as_const_int().is_some()) {
        return;
    }
    let size = shape.iter().fold(Term::int(1), |size, extent| size * names.term(extent));
    let max = Term::int(i128::from(MAX_SYMBOLIC_ELEMENTS));
    question
        .guaranteed(&size.at_most(&max), "a symbolic buffer has at most 2^31 - 2^16 - 1 elements (checked at launch)");
    for extent in shape {
        let extent = names.term(extent);
        if extent.as_const().is_none() {
            question.bounds_factor(&extent.at_most(&max), &size, &extent);
        }
    }
}

/// The proposition that a symbolic shape has at most [`MAX_SYMBOLIC_ELEMENTS`] elements; `None` for a constant shape.
pub(super) fn addressable(shape: &[Expr], names: &mut Names) -> Option<Prop> {
    let symbolic = shape.iter().any(|extent| extent.as_const_int().is_none());
    let size = shape.iter().fold(Term::int(1), |size, extent| size * names.term(extent));
    symbolic.then(|| size.at_most(i128::from(MAX_SYMBOLIC_ELEMENTS)))
}

/// The proposition that `part` has a value (if its operands do) that fits its type.
pub(crate) fn fits(part: &Expr, names: &mut Names) -> Prop {
    // A term denotes an integer even where an operation has no value, so divisors and shift amounts are checked
    // separately.
    let term = names.term(part);
    let range = match part.dtype().scalar.integer_range() {
        Some((low, high)) => term.at_least(low).and(term.at_most(high)),
        None => Prop::bool(true),
    };
    let Expr::Binary(op, _, operand) = part else { return range };
    range.and(is_defined(*op, part.dtype().scalar, operand, names))
}

/// An integer operation, with the conditions under which it is evaluated.
pub(super) struct Guarded<'e> {
    /// The operation.
    pub(super) part: &'e Expr,
    /// The conditions of the conditionals around it, outermost first, and whether they hold there.
    pub(super) conditions: Vec<(&'e Expr, bool)>,
}

impl Guarded<'_> {
    /// The proposition that the operation fits its type wherever it is evaluated.
    pub(super) fn fits(&self, names: &mut Names) -> Prop {
        let under = Prop::all(self.conditions.iter().map(|&(condition, holds)| {
            let condition = names.prop(condition);
            if holds { condition } else { condition.negate() }
        }));
        under.implies(fits(self.part, names))
    }
}

/// The scalar integer operations in expressions, innermost first. An operation that is evaluated under several conditions
/// is listed under each.
pub(super) fn evaluated<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<Guarded<'e>> {
    let mut found = Vec::new();
    for expr in exprs {
        collect(expr, &mut Vec::new(), &mut found);
    }
    found
}

/// Appends the operations of an expression that is evaluated under `conditions`.
fn collect<'e>(expr: &'e Expr, conditions: &mut Vec<(&'e Expr, bool)>, found: &mut Vec<Guarded<'e>>) {
    if let Expr::IfThenElse(condition, then, otherwise) = expr {
        collect(condition, conditions, found);
        for (branch, holds) in [(then, true), (otherwise, false)] {
            conditions.push((condition, holds));
            collect(branch, conditions, found);
            conditions.pop();
        }
        return;
    }
    for child in expr.children() {
        collect(child, conditions, found);
    }
    let is_known = |known: &Guarded<'_>| known.part == expr && conditions.starts_with(&known.conditions);
    if is_operation(expr) && !found.iter().any(is_known) {
        found.push(Guarded { part: expr, conditions: conditions.clone() });
    }
}

/// Whether an expression is an operation whose result is one integer.
pub(crate) fn is_operation(expr: &Expr) -> bool {
    let ty = expr.dtype();
    let computes = matches!(expr, Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..));
    computes && ty.is_scalar() && ty.scalar.is_integer()
}

/// Whether an expression computes anything that may leave its type.
pub(crate) fn has_operation(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= is_operation(part));
    found
}

/// Appends the scalar integer operations in an expression to `found`, innermost first, each once.
pub(crate) fn subterms<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    for child in expr.children() {
        subterms(child, found);
    }
    if is_operation(expr) && !found.contains(&expr) {
        found.push(expr);
    }
}
