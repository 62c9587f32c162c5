//! Splits loops at the ends of a condition, so that the main part runs without it (TVM's `LoopPartition`).
//!
//! ```text
//! for o in range((n + 3) // 4):               for o in range(n // 4):
//!     for i in range(4):                          for i in range(4):
//!         if o * 4 + i < n:             ->            B[o * 4 + i] = A[o * 4 + i]
//!             B[o * 4 + i] = A[o * 4 + i]     for o in T.serial(n // 4, (n + 3) // 4):
//!                                                 for i in range(4):
//!                                                     if o * 4 + i < n:
//!                                                         B[o * 4 + i] = A[o * 4 + i]
//! ```
//!
//! A condition is one of an `if` or of a choice (`T.if_then_else`). The parts of it that compare linear forms of the loop variable, and
//! for which the loops inside are at their worst values, say from where to where it always holds. Loops around others come first; in
//! front of the main part and behind it the body stays as it is, or goes away where the condition never holds. Ends may be symbolic.
//! Loops that run at once are not split. Cost: some walks for each loop that is split.

use std::convert::Infallible;

use tilewright_algebra::{Ranges, conjuncts, linear_in, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    BinaryOp, Diagnostic, Evidence, Expr, For, ForKind, PrimFunc, Stmt, StmtKind, StoreOrigin, Var, sabotage,
};
use tilewright_verify::reorder::Statement;

use super::provenance::{Provenance, unchanged};
use super::remap::inside;
use super::remove_no_op::{is_empty, without_no_op};
use super::schedule::copy::copied;
use super::schedule::loops::{all_loops, with_loop};
use super::schedule::unroll::{numbered, numbers};
use super::simplify::Simplify;
use super::{Rewritten, lower_blocks};

/// Most stores of a program after the pass. The judge takes no more.
const MOST_STORES: usize = 400;

/// Splits loops at their conditions.
///
/// # Errors
/// `blocks`: the function has blocks.
///
/// ```
/// use tilewright_compiler::passes::loop_partition;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n,), "float32")
///     B = T.match_buffer(b, (n,), "float32")
///     for i in range(n):
///         B[i] = T.if_then_else(i < n - 1, A[i + 1], T.float32(0))
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&loop_partition(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     "for i in range(n - 1):",
///     "B[i] = A[i + 1]",
///     "for i in T.serial(n - 1, n - 1 + 1):",
///     "B[n - 1] = T.float32(0.0)",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn loop_partition(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    lower_blocks::refuse(func, "loop_partition")?;
    let mut provenance = match Provenance::of(func, "loop_partition") {
        Ok(provenance) => provenance,
        Err(note) => return Ok(unchanged(func, "loop_partition", note)),
    };
    let (mut after, mut done) = (func.clone(), Vec::new());
    while let Some(partition) = next(&after, &mut done) {
        let body = with_loop(&after.body, &partition.var, &partition.stmt());
        let next = PrimFunc { body, ..after.clone() };
        provenance.step(&next, |old, new| partition.origins(old, new));
        after = next;
    }
    let evidence = Evidence { pass: "loop_partition".to_owned(), ..Evidence::default() };
    let comparison = provenance.comparison(func, &after, &evidence);
    Ok(Rewritten { func: after, evidence: Evidence { comparison, ..evidence }, notes: Vec::new() })
}

/// The outermost loop that can be split and is not done. Loops that were looked at are added to those that are done, and so are those
/// in front of a main part and behind it.
fn next(func: &PrimFunc, done: &mut Vec<Var>) -> Option<Partition> {
    let stores = numbers(&numbered(&func.body)).len();
    for found in all_loops(func) {
        if done.contains(&found.inner.var) || !matches!(found.inner.kind, ForKind::Serial | ForKind::Unrolled) {
            continue;
        }
        done.push(found.inner.var.clone());
        let Some(partition) = Partition::of(found.inner, &found.ranges(func)) else { continue };
        if stores + partition.parts.iter().map(|part| part.kept.len()).sum::<usize>() > MOST_STORES {
            continue;
        }
        for part in partition.parts.iter().filter(|part| !part.is_main) {
            part.stmt.walk(&mut |stmt| {
                if let StmtKind::For(inner) = &stmt.kind {
                    done.push(inner.var.clone());
                }
            });
        }
        return Some(partition);
    }
    None
}

/// A loop that is split, and what it becomes.
struct Partition {
    var: Var,
    parts: Vec<Part>,
    /// The number of stores of the body.
    n_stores: usize,
}

/// A part of a loop, and which of the stores of its body it has.
struct Part {
    stmt: Stmt,
    kept: Vec<usize>,
    is_main: bool,
}

impl Partition {
    /// The parts of a loop; `None` if no condition in it depends on its variable, or if it would hold nowhere.
    fn of(run: &For, ranges: &Ranges) -> Option<Self> {
        let found = Conditions::of(run, ranges);
        let (start, stop) = (run.min.clone(), simplify(&(run.min.clone() + run.extent.clone()), ranges));
        let binary = |op: BinaryOp| move |a: Expr, b: Expr| Expr::binary(op, a, b);
        let (larger, smaller) = (binary(BinaryOp::Max), binary(BinaryOp::Min));
        let (lower, upper) = (found.values(false), found.values(true));
        let first = lower.iter().cloned().reduce(larger);
        let first =
            first.map_or(start.clone(), |end| simplify(&smaller(larger(start.clone(), end), stop.clone()), ranges));
        let last = upper.iter().cloned().reduce(smaller);
        let last =
            last.map_or(stop.clone(), |end| simplify(&larger(smaller(stop.clone(), end), first.clone()), ranges));
        let extent = |from: &Expr, to: &Expr| simplify(&(to.clone() - from.clone()), ranges);
        if found.ends.is_empty() || is_never_run(&extent(&first, &last)) {
            return None;
        }
        let only = |is_upper: bool| found.ends.iter().filter(|end| end.is_upper == is_upper).count() == 1;
        let never = |is_upper: bool| {
            found
                .ends
                .iter()
                .filter(|end| only(is_upper) && end.is_upper == is_upper && end.is_exact)
                .map(|end| end.part.clone())
                .collect()
        };
        let always: Vec<Expr> = found.ends.iter().map(|end| end.part.clone()).collect();
        let pieces =
            [(&start, &first, never(false), false), (&first, &last, always, true), (&last, &stop, never(true), false)];
        let mut parts = Vec::new();
        for (from, to, known, is_main) in pieces {
            let extent = extent(from, to);
            if is_never_run(&extent) {
                continue;
            }
            let body = with_conditions(&run.body, &known, is_main);
            let piece = For { min: from.clone(), extent, body, ..run.clone() };
            parts.extend(Part::of(piece, is_main, ranges));
        }
        let n_stores = numbers(&numbered(&run.body)).len();
        Some(Self { var: run.var.clone(), parts, n_stores })
    }

    fn stmt(&self) -> Stmt {
        Stmt::seq(self.parts.iter().map(|part| part.stmt.clone()).collect())
    }

    /// The iterations before of each store after: the same ones.
    fn origins(&self, old: &[Statement], new: &[Statement]) -> Option<Vec<StoreOrigin>> {
        let first = old.iter().position(|store| store.loops().contains(&self.var)).unwrap_or(old.len());
        let mut kept: Vec<usize> = (0..first).collect();
        kept.extend(self.parts.iter().flat_map(|part| part.kept.iter().map(|store| first + store)));
        kept.extend(first + self.n_stores..old.len());
        super::schedule::claims::selected(&kept, old, new)
    }
}

impl Part {
    /// The loop with its body simplified; `None` if nothing is left of it.
    fn of(run: For, is_main: bool, ranges: &Ranges) -> Option<Self> {
        let within = inside(ranges, &run);
        let simple = |body: &Stmt| {
            let Ok(body) = Simplify::within(&within).stmt(body);
            without_no_op(&body, &within)
        };
        let kept = numbers(&simple(&numbered(&run.body)));
        let body = simple(&run.body);
        if is_empty(&body) {
            return None;
        }
        let stmt = Stmt::new(StmtKind::For(For { body, ..run }.into()));
        // The main part keeps its variables; the others have their own.
        let stmt = if is_main { stmt } else { copied(&stmt, &Substitution::default()) };
        Some(Self { stmt, kept, is_main })
    }
}

fn is_never_run(extent: &Expr) -> bool {
    extent.as_const_int().is_some_and(|extent| extent <= 0)
}

/// Where a part of a condition holds for all values of the loops inside.
struct End {
    part: Expr,
    /// In front of the value, or from it on.
    is_upper: bool,
    value: Expr,
    /// Whether it holds nowhere else.
    is_exact: bool,
}

/// The conditions in the body of a loop, and their ends.
struct Conditions<'a> {
    run: &'a For,
    ranges: Ranges,
    /// The loops inside, around the current statement, outermost first.
    inner: Vec<&'a For>,
    ends: Vec<End>,
}

impl<'a> Conditions<'a> {
    fn of(run: &'a For, ranges: &Ranges) -> Self {
        let mut found = Self { run, ranges: inside(ranges, run), inner: Vec::new(), ends: Vec::new() };
        found.look(&run.body, &mut Vec::new());
        found
    }

    fn values(&self, is_upper: bool) -> Vec<Expr> {
        self.ends.iter().filter(|end| end.is_upper == is_upper).map(|end| end.value.clone()).collect()
    }

    /// Looks at the conditions of a statement; `names` are bound in the body.
    fn look(&mut self, stmt: &'a Stmt, names: &mut Vec<Var>) {
        if let StmtKind::If { cond, .. } = &stmt.kind {
            self.condition(cond, names);
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                if let Expr::IfThenElse(cond, ..) = part {
                    self.condition(cond, names);
                }
            });
        }
        match &stmt.kind {
            StmtKind::For(inner) => {
                self.inner.push(inner);
                self.look(&inner.body, names);
                self.inner.pop();
            }
            StmtKind::Let { var, body, .. } => {
                names.push(var.clone());
                self.look(body, names);
                names.pop();
            }
            _ => stmt.children().for_each(|child| self.look(child, names)),
        }
    }

    fn condition(&mut self, cond: &Expr, names: &[Var]) {
        for part in conjuncts(cond) {
            let is_known = self.ends.iter().any(|end| end.part == part);
            if !is_known && !part.vars().iter().any(|var| names.contains(var)) {
                self.ends.extend(self.end(&part));
            }
        }
    }

    /// Where a comparison holds, if it is a linear form of the loop variable.
    fn end(&self, part: &Expr) -> Option<End> {
        let (mut form, mut is_exact) = (below_zero(part)?, true);
        for inner in self.inner.iter().rev().filter(|inner| inner.var != self.run.var) {
            let stride = stride(&form, &inner.var, &self.ranges)?;
            if stride == 0 {
                continue;
            }
            let last = inner.min.clone() + inner.extent.clone() - one(&inner.extent)?;
            let worst = if (stride > 0) != sabotage::on("loop-partition-best-case") { last } else { inner.min.clone() };
            form = Substitution::new([&inner.var], [worst]).apply(&form);
            is_exact = false;
        }
        let stride = stride(&form, &self.run.var, &self.ranges).filter(|stride| *stride != 0)?;
        let (base, _) = linear_in(&form, &self.run.var, &self.ranges)?;
        let ty = form.dtype().scalar;
        let by = Expr::int_of(stride.abs(), ty)?;
        let value = if stride > 0 {
            // stride * v + base < 0 in front of (stride - 1 - base) // stride.
            (Expr::int_of(stride - 1, ty)? - base).floor_div(by)
        } else {
            // base < |stride| * v from base // |stride| + 1 on.
            base.floor_div(by) + Expr::int_of(1, ty)?
        };
        let late = sabotage::on("loop-partition-one-too-many") && stride > 0;
        let value = if late { value + Expr::int_of(1, ty)? } else { value };
        let value = simplify(&value, &self.ranges);
        (!value.vars().contains(&self.run.var)).then(|| End {
            part: part.clone(),
            is_upper: stride > 0,
            value,
            is_exact,
        })
    }
}

/// The factor of a variable in a form; `None` if the form is not linear in it, or if the factor is no constant.
fn stride(form: &Expr, var: &Var, ranges: &Ranges) -> Option<i128> {
    if !form.vars().contains(var) {
        return Some(0);
    }
    linear_in(form, var, ranges)?.1.as_const_int()
}

/// The form of which a comparison says that it is below 0; `None` for anything but an order of integers.
fn below_zero(part: &Expr) -> Option<Expr> {
    let Expr::Binary(op, a, b) = part else { return None };
    let ty = a.dtype();
    if part.reads_memory() || !ty.is_scalar() || !ty.scalar.is_integer() || ty.scalar.integer_range()?.0 == 0 {
        return None;
    }
    let (a, b) = ((**a).clone(), (**b).clone());
    let one = one(&a)?;
    match op {
        BinaryOp::Lt => Some(a - b),
        BinaryOp::Le => Some(a - b - one),
        BinaryOp::Gt => Some(b - a),
        BinaryOp::Ge => Some(b - a - one),
        _ => None,
    }
}

/// The constant 1 of the type of an integer.
fn one(of: &Expr) -> Option<Expr> {
    Expr::int_of(1, of.dtype().scalar)
}

/// A statement in which these parts of conditions come out like this.
fn with_conditions(stmt: &Stmt, parts: &[Expr], holds: bool) -> Stmt {
    let Ok(stmt) = Known { parts, holds }.stmt(stmt);
    stmt
}

struct Known<'a> {
    parts: &'a [Expr],
    holds: bool,
}

impl Known<'_> {
    /// A condition with what is known of it.
    fn condition(&self, cond: &Expr) -> Expr {
        let known = |part: Expr| if self.parts.contains(&part) { Expr::bool(self.holds) } else { part };
        if !conjuncts(cond).iter().any(|part| self.parts.contains(part)) {
            return cond.clone();
        }
        conjuncts(cond).into_iter().map(known).reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))
    }
}

impl Rewrite for Known<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let Expr::IfThenElse(cond, a, b) = expr else { return self.expr_children(expr) };
        let cond = self.condition(cond);
        let (a, b) = (self.shared(a)?, self.shared(b)?);
        Ok(match cond.as_const_int() {
            Some(0) => b.into_expr(),
            Some(_) => a.into_expr(),
            None => Expr::IfThenElse(tilewright_ir::SharedExpr::new(cond), a, b),
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::If { cond, then_body, else_body } = &stmt.kind else { return self.stmt_children(stmt) };
        let cond = self.condition(cond);
        let kind = StmtKind::If { cond, then_body: then_body.clone(), else_body: else_body.clone() };
        self.stmt_children(&Stmt { kind, span: stmt.span })
    }
}
