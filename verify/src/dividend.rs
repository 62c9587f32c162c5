//! Obligation dividend: a division may be written as the division of C, which rounds towards zero.
//!
//! C's `/` and `%` are floor division and floor modulo if the dividend is at least 0 and the divisor at least 1. A
//! truncating division of the language, and a division of unsigned integers, need only the latter. Kernels compute with
//! integers of fixed width, and the goals are about integers, so no operation in the dividend or the divisor may leave
//! its type; this is shown here because the obligation *overflow* is about indices, and a division may be part of a value.
//!
//! ```text
//! for i in range(8):
//!     if i >= 3: B[i] = A[(i - 3) // 2]        proved: 0 <= i - 3 where the division is evaluated
//!     B[i] = A[(i - 3) // 2 + 2]               refuted: `i - 3` is -3 at i = 0
//! ```

use rayon::prelude::*;
use tilewright_ir::{BinaryOp, Bindings, Expr, PrimFunc, Span, Traps, TypeClass};

use crate::access::{Base, accesses, at_point, bindings_of, chosen_by_lane};
use crate::claims::not_well_formed;
use crate::door::All;
use crate::iterations::{Seen, mixes_bits};
use crate::judge::{Decision, Judge, Report, Side, decide, on_the_way, unsupported};
use crate::map::{fits, subterms};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::{Path, settled_sites};
use crate::verdict::{Counterexample, Verdict};

/// Concrete iterations tried before a proof is searched.
const TRIED: usize = 24;

/// A place in a program where a division is evaluated.
struct Occurrence {
    /// The way to it, conditions inside the expression included.
    path: Path,
    /// The place of its statement in the text.
    span: Option<Span>,
}

/// An integer division of one lane, and where the program evaluates it.
struct Division<'e> {
    /// The whole division.
    whole: &'e Expr,
    /// What is divided, if it must not be negative.
    dividend: Option<&'e Expr>,
    divisor: &'e Expr,
    occurrences: Vec<Occurrence>,
}

impl Judge {
    /// Decides `dividend` for divisions of a program. Returns a report for each, in their order; it is proved only if the
    /// statement holds wherever the program evaluates that expression. A division that the program does not have is
    /// unknown.
    pub fn check_dividends(&self, func: &PrimFunc, divisions: &[Expr]) -> Vec<Report> {
        if let Some(reason) = not_well_formed(func) {
            let reason = format!("the program is not well formed: {reason}");
            let report = |_: &Expr| Self::report(Obligation::Dividend, func.name.clone(), || unsupported(&*reason));
            return divisions.iter().map(report).collect();
        }
        let base = Base::new(self, func, &func.buffers());
        let mut asked: Vec<Option<Division<'_>>> = divisions.iter().map(Division::new).collect();
        for site in settled_sites(func) {
            let mut found = Vec::new();
            for expr in site.stmt.exprs() {
                occurrences(expr, &site.path, &mut found);
            }
            // Kernels compute the position of an element from the strides, the shape and the offset of its buffer.
            for access in accesses(&site) {
                let buffer = &access.buffer;
                let strides = buffer.strides.iter().flatten();
                for expr in buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]) {
                    occurrences(expr, &access.path, &mut found);
                }
            }
            for (whole, path) in found {
                for division in asked.iter_mut().flatten().filter(|division| *division.whole == whole) {
                    division.occurrences.push(Occurrence { path: path.clone(), span: site.stmt.span });
                }
            }
        }
        let report = |(expr, division): (&Expr, &Option<Division<'_>>)| {
            let decision = || match division {
                Some(division) => division.decided(&base),
                None => unsupported(format!("`{expr}` is no division of integers of one lane")),
            };
            let span = division.as_ref().and_then(|division| division.occurrences.first()?.span);
            Self::report(Obligation::Dividend, expr.to_string(), decision).placed(Side::Before, span)
        };
        let reports = self.in_parallel(|| divisions.par_iter().zip(&asked).map(report).collect());
        base.grounded(reports)
    }
}

/// Appends the integer divisions of one lane in an expression, each with the way to it. An arm of a conditional is evaluated
/// only if it is chosen; all other operands are evaluated always.
fn occurrences(expr: &Expr, path: &Path, found: &mut Vec<(Expr, Path)>) {
    if let Some((one, inner)) = chosen_by_lane(expr, path) {
        return occurrences(&one, &inner, found);
    }
    if let Expr::IfThenElse(cond, then, otherwise) = expr {
        occurrences(cond, path, found);
        for (arm, holds) in [(then, true), (otherwise, false)] {
            let mut inner = path.clone();
            inner.choose(cond, holds);
            occurrences(arm, &inner, found);
        }
        return;
    }
    for child in expr.children() {
        occurrences(child, path, found);
    }
    if Division::new(expr).is_some() {
        found.push((expr.clone(), path.clone()));
    }
}

impl<'e> Division<'e> {
    /// The statement about an expression; `None` if it is no integer division of one lane.
    fn new(whole: &'e Expr) -> Option<Self> {
        let Expr::Binary(op, lhs, rhs) = whole else { return None };
        let ty = lhs.dtype();
        if op.traps() != Traps::ZeroDivisor {
            return None;
        }
        if !ty.is_scalar() || !ty.scalar.is_integer() || ty.scalar.integer_range().is_none() {
            return None;
        }
        // A dividend that is unsigned is not negative, whatever wraps in it.
        let is_floor = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
        let is_signed = ty.scalar.class() == TypeClass::Int;
        let dividend = (is_floor && is_signed).then_some(&**lhs);
        Some(Self { whole, dividend, divisor: rhs, occurrences: Vec::new() })
    }

    /// The operands about which something is stated.
    fn operands(&self) -> impl Iterator<Item = &'e Expr> {
        self.dividend.into_iter().chain([self.divisor])
    }

    /// The decision over all occurrences: the first one that is not proved, or proved.
    fn decided(&self, base: &Base<'_>) -> Decision {
        if self.occurrences.is_empty() {
            return unsupported(format!("the program does not evaluate `{}`", self.whole));
        }
        let mut method = Method::SameText;
        let mut all = All::default();
        for Occurrence { path, .. } in &self.occurrences {
            if let Some(found) = path.samples(TRIED).iter().find_map(|bindings| self.fault(path, bindings)) {
                return (Verdict::Refuted(found), Method::Evaluation);
            }
            let look = |bindings: &Bindings| {
                if self.operands().any(|operand| operand.eval_index(bindings).is_err()) {
                    return Seen::Unclear;
                }
                self.fault(path, bindings).map_or(Seen::Holds, Seen::Fails)
            };
            let prove = || self.proved(path, base);
            match base.judge().proved_or_tried(path, mixes_bits(self.operands()), look, prove) {
                (Verdict::Proved(grounds), how) => {
                    all.add(grounds);
                    method = if method.has_lemmas() { method } else { method.then(how) };
                }
                other => return other,
            }
        }
        (all.proved(), method)
    }

    /// The decision at one occurrence by the facts about the way to it.
    fn proved(&self, path: &Path, base: &Base<'_>) -> Decision {
        let (mut question, mut names) = match base.at(path) {
            Ok(found) => found,
            Err(vacuous) => return vacuous,
        };
        let from = question.steps().len();
        let mut parts = Vec::new();
        for operand in self.operands() {
            subterms(operand, &mut parts);
        }
        // Inner operations come first: the integer meaning of the operands is that of the kernel only if all of them fit.
        let mut goals: Vec<_> = parts.into_iter().map(|part| fits(part, &mut names)).collect();
        goals.push(names.term(self.divisor).at_least(1));
        goals.extend(self.dividend.map(|dividend| names.term(dividend).at_least(0)));
        names.assume_types(&mut question);
        let mut all = All::default();
        let result = goals.iter().try_for_each(|goal| question.settle(goal).map(|grounds| all.add(grounds)));
        let result = result.map(|()| all.grounds());
        let decision = decide("dividend", result, &question, from, |model| {
            let bindings = bindings_of(path, &mut names, model);
            path.admits(&bindings).then(|| self.fault(path, &bindings)).flatten()
        });
        on_the_way(path, self.operands().any(Expr::reads_memory), decision)
    }

    /// What is wrong at concrete values; `None` if nothing is, or if an operand has no known value.
    fn fault(&self, path: &Path, bindings: &Bindings) -> Option<Counterexample> {
        let value = |expr: &Expr| expr.eval_index(bindings).ok();
        let shown = |expr: &Expr, what: String| at_point(path, bindings, format!("`{expr}` is {what}"));
        let mut parts = Vec::new();
        for operand in self.operands() {
            subterms(operand, &mut parts);
        }
        for part in parts {
            let (low, high) = part.dtype().scalar.integer_range()?;
            let value = value(part)?;
            if !(low..=high).contains(&value) {
                return Some(shown(part, format!("{value}, which does not fit {}", part.dtype())));
            }
        }
        let divisor = value(self.divisor)?;
        if divisor < 1 {
            return Some(shown(self.divisor, format!("{divisor}, and is divided by in `{}`", self.whole)));
        }
        let dividend = value(self.dividend?)?;
        (dividend < 0).then(|| {
            shown(self.dividend.unwrap_or(self.whole), format!("{dividend}, and is divided in `{}`", self.whole))
        })
    }
}
