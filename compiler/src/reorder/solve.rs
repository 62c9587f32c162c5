//! Solves equations between indices for loop variables.
//!
//! ```text
//! 16 * it + ii = i, with 0 <= ii < 16         it = i // 16, then ii = i - 16 * (i // 16) = i % 16
//! c // 4 = co, c % 4 = ci                     c = 4 * co + ci
//! 8 * i + f // 4 = x                          f // 4 = x - 8 * i, if i is known
//! ```

use std::convert::Infallible;

use tilewright_algebra::{Ranges, linear_in, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{BinaryOp, Expr, Var};
use tilewright_verify::path::{Path, Step};

/// Digits of one number that are put together.
const MAX_DIGITS: usize = 12;

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) var: Var,
    pub(crate) min: Expr,
    pub(crate) extent: Expr,
}

/// The loops of a path, outermost first.
pub(crate) fn loops(path: &Path) -> Vec<Loop> {
    let of = |step: &Step| match step {
        Step::Loop(var, min, extent) => Some(Loop { var: var.clone(), min: min.clone(), extent: extent.clone() }),
        Step::Let(..) | Step::Guard(..) => None,
    };
    path.steps.iter().filter_map(of).collect()
}

/// The ranges of the loop variables and the extents of some paths.
pub(crate) fn ranges(paths: &[&Path]) -> Ranges {
    let mut ranges = Ranges::new();
    for path in paths {
        ranges = path.symbols.iter().fold(ranges, Ranges::with_symbol);
        ranges = loops(path).iter().fold(ranges, |ranges, l| ranges.with_loop(&l.var, &l.min, &l.extent));
    }
    ranges
}

/// Equations that are solved for some loops.
pub(crate) struct System<'a> {
    pub(crate) unknown: Vec<Loop>,
    /// Of each pair, the first is in terms of the unknown variables.
    pub(crate) equations: Vec<(Expr, Expr)>,
    pub(crate) ranges: &'a Ranges,
    pub(crate) solved: Substitution,
}

impl System<'_> {
    /// Solves what can be solved.
    pub(crate) fn solve(&mut self) {
        for (lhs, _) in &mut self.equations {
            let Ok(shorter) = Remainders.expr(lhs);
            *lhs = shorter;
        }
        while self.direct() || self.parted() || self.digits() || self.numeral() {}
    }

    /// The loops for which there is no solution.
    pub(crate) fn open(&self) -> Vec<Loop> {
        self.unknown.iter().filter(|l| self.solved.get(&l.var).is_none()).cloned().collect()
    }

    /// The value of a loop variable; its first one if nothing is known.
    pub(crate) fn value(&self, l: &Loop) -> Expr {
        self.solved.get(&l.var).cloned().unwrap_or_else(|| self.solved.apply(&l.min))
    }

    pub(crate) fn found(&mut self, var: &Var, value: &Expr) {
        self.solved.insert(var, simplify(value, self.ranges));
    }

    fn open_in(&self, expr: &Expr) -> Vec<Var> {
        let mut vars = expr.vars();
        vars.retain(|var| self.solved.get(var).is_none() && self.unknown.iter().any(|l| l.var == *var));
        vars.sort();
        vars.dedup();
        vars
    }

    /// An equation with one unknown.
    fn direct(&mut self) -> bool {
        for (lhs, rhs) in self.equations.clone() {
            let lhs = simplify(&self.solved.apply(&lhs), self.ranges);
            let [var] = self.open_in(&lhs).try_into().unwrap_or_else(|_| [Var::index("_")]);
            if lhs.vars().contains(&var)
                && let Some(value) = linear_in(&lhs, &var, self.ranges).and_then(|linear| quotient(&rhs, linear))
            {
                self.found(&var, &value);
                return true;
            }
        }
        false
    }

    /// A quotient or a remainder beside numbers that are known: `8 * i + f // 4 = x` is `f // 4 = x - 8 * i`.
    fn parted(&mut self) -> bool {
        for (lhs, rhs) in self.equations.clone() {
            let mut terms = Vec::new();
            summands(&self.solved.apply(&lhs), &mut terms);
            let (open, known): (Vec<Expr>, Vec<Expr>) =
                terms.into_iter().partition(|term| !self.open_in(term).is_empty());
            let ([Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, ..)], false) = (&open[..], known.is_empty())
            else {
                continue;
            };
            let rest = known.into_iter().fold(rhs, |rest, term| rest - term);
            let parted = open.into_iter().map(|part| (part, simplify(&rest, self.ranges)));
            let fresh: Vec<(Expr, Expr)> = parted.filter(|equation| !self.equations.contains(equation)).collect();
            if !fresh.is_empty() {
                self.equations.extend(fresh);
                return true;
            }
        }
        false
    }

    /// A quotient and a remainder of the same value by the same divisor.
    fn digits(&mut self) -> bool {
        let open: Vec<(Expr, Expr)> =
            self.equations.iter().filter(|(lhs, _)| !self.open_in(lhs).is_empty()).cloned().collect();
        for (high, quotient) in &open {
            let Expr::Binary(BinaryOp::FloorDiv, value, by) = high else { continue };
            let Some(remainder) = self.remainder(&open, (value, by), MAX_DIGITS) else { continue };
            let whole = ((**value).clone(), quotient.clone() * (**by).clone() + remainder);
            if !self.equations.contains(&whole) {
                self.equations.push(whole);
                return true;
            }
        }
        false
    }

    /// The remainder of a value by a divisor, which an equation states, or from the digits that it has.
    ///
    /// ```text
    /// f // m % n = j, f % m = k          f % (n * m) = j * m + k
    /// f % (n * m) // m = j, f % m = k    the same
    /// ```
    fn remainder(&self, open: &[(Expr, Expr)], (value, by): (&Expr, &Expr), depth: usize) -> Option<Expr> {
        let same =
            |a: &Expr, b: &Expr| a == b || simplify(&(a.clone() - b.clone()), self.ranges).as_const_int() == Some(0);
        let stated = open.iter().find_map(|(lhs, rhs)| match lhs {
            Expr::Binary(BinaryOp::FloorMod, v, d) if **v == *value && same(d, by) => Some(rhs.clone()),
            _ => None,
        });
        if stated.is_some() || depth == 0 {
            return stated;
        }
        open.iter().find_map(|(lhs, digit)| {
            let Expr::Binary(outer, inner, d) = lhs else { return None };
            let Expr::Binary(op, v, e) = &**inner else { return None };
            let radix = match (outer, op) {
                (BinaryOp::FloorMod, BinaryOp::FloorDiv) if same(&(Expr::clone(e) * Expr::clone(d)), by) => e,
                (BinaryOp::FloorDiv, BinaryOp::FloorMod) if same(e, by) => d,
                _ => return None,
            };
            let low = (**v == *value).then(|| self.remainder(open, (value, radix), depth - 1))??;
            Some(digit.clone() * Expr::clone(radix) + low)
        })
    }

    /// An equation with several unknowns, of which one is the leading digit: the others are where they count least for it, at their
    /// first values or, if their factors have the other sign, at their last ones.
    fn numeral(&mut self) -> bool {
        for (lhs, rhs) in self.equations.clone() {
            let lhs = simplify(&self.solved.apply(&lhs), self.ranges);
            let vars = self.open_in(&lhs);
            let Some(leading) = self.leading(&lhs, &vars) else { continue };
            let mut least = self.solved.clone();
            let sign = |var: &Var| {
                let factor = linear_in(&lhs, var, self.ranges).and_then(|(_, stride)| stride.as_const_int());
                factor.is_some_and(|factor| factor < 0)
            };
            for l in self.unknown.iter().filter(|l| l.var != leading && vars.contains(&l.var)) {
                let is_subtracted = sign(&l.var) != sign(&leading);
                let last = || l.min.clone() + l.extent.clone() - Expr::int(1);
                least.insert(&l.var, self.solved.apply(&if is_subtracted { last() } else { l.min.clone() }));
            }
            let at_least = least.apply(&lhs);
            if let Some(value) = linear_in(&at_least, &leading, self.ranges).and_then(|linear| quotient(&rhs, linear)) {
                self.found(&leading, &value);
                return true;
            }
        }
        false
    }

    /// The variable with the greatest factor, if there is one: an outer loop where the factors are no constants.
    fn leading(&self, lhs: &Expr, vars: &[Var]) -> Option<Var> {
        let factor = |var: &Var| linear_in(lhs, var, self.ranges).map(|(_, stride)| stride);
        let factors: Vec<(Var, Expr)> = vars.iter().filter_map(|var| Some((var.clone(), factor(var)?))).collect();
        (factors.len() == vars.len() && vars.len() > 1).then_some(())?;
        let constants: Option<Vec<i128>> = factors.iter().map(|(_, by)| by.as_const_int().map(i128::abs)).collect();
        if let Some(all) = constants {
            let most = *all.iter().max()?;
            let mut greatest = factors.iter().zip(&all).filter(|(_, by)| **by == most);
            let (first, _) = greatest.next()?;
            return greatest.next().is_none().then(|| first.0.clone());
        }
        let is_symbolic = |var: &Var| factors.iter().any(|(v, by)| v == var && by.as_const_int().is_none());
        self.unknown.iter().map(|l| &l.var).find(|var| is_symbolic(var)).cloned()
    }
}

/// Writes `x % c` for `x - x // c * c`.
struct Remainders;

impl Rewrite for Remainders {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if let Expr::Binary(BinaryOp::Sub, whole, multiple) = expr
            && let Expr::Binary(BinaryOp::Mul, quotient, factor) = &**multiple
            && let Expr::Binary(BinaryOp::FloorDiv, number, by) = &**quotient
            && (number, by) == (whole, factor)
        {
            return Ok(Expr::binary(BinaryOp::FloorMod, Expr::clone(whole), Expr::clone(by)));
        }
        self.expr_children(expr)
    }
}

/// The numbers of which an expression is the sum.
fn summands(expr: &Expr, found: &mut Vec<Expr>) {
    match expr {
        Expr::Binary(BinaryOp::Add, a, b) => [a, b].into_iter().for_each(|part| summands(part, found)),
        other => found.push(other.clone()),
    }
}

/// The value of a variable in `base + stride * var = rhs`.
fn quotient(rhs: &Expr, (base, stride): (Expr, Expr)) -> Option<Expr> {
    match stride.as_const_int() {
        Some(0) => None,
        Some(1) => Some(rhs.clone() - base),
        Some(-1) => Some(base - rhs.clone()),
        Some(by) if by < 0 => Some((base - rhs.clone()).floor_div(Expr::int(i64::try_from(-by).ok()?))),
        _ => Some((rhs.clone() - base).floor_div(stride)),
    }
}
