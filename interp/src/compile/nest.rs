//! Innermost nests: perfectly nested loops that are compiled to run a block of iterations at a time.

use tilewright_ir::{BinaryOp, Diagnostic, Expr, For, Interval, Scalar, Stmt, StmtKind, Var};

use super::{Compiler, Level, NestContext, Numbering};
use crate::block_plan::{BLOCK, PlanSource, plan_block};
use crate::code::{Code, NestLoop, Node, Reg, VectorizedNest};
use crate::independence::fits;
use crate::num::encode;

/// Greatest number of loops in a vectorized nest.
pub(crate) const MAX_NEST: usize = 6;

impl<'a> Compiler<'_, 'a> {
    /// The vectorized form of the nest whose outermost loop is `outer`; `None` if there is none. `body` is the loop's
    /// body in the ordinary form, compiled before.
    ///
    /// The body is compiled a second time, as one level for the whole nest, so that code which is invariant in all of
    /// its loops is hoisted, and affine accesses become streams.
    pub(super) fn vectorize_nest(
        &mut self,
        outer: &'a For,
        var: Reg,
        body: &[Node],
    ) -> Result<Option<VectorizedNest>, Diagnostic> {
        if !self.setup.vectorize {
            return Ok(None);
        }
        let Some((loops, leaf)) = self.nest_loops(outer, body) else { return Ok(None) };
        let splits = self.splits(outer, &loops, leaf);
        let depth = self.depth() + 1;
        let (mut vars, mut regs, mut inner) = (vec![&outer.var], vec![var], Vec::new());
        // The nest is one level, so its inner loop variables get registers of its depth. The ordinary form of the body,
        // which is compiled already, keeps the registers of its own.
        for (each, min, extent) in loops {
            let var = self.registers(1, depth)?;
            self.vars.insert(each.var.clone(), var);
            let min = encode(each.var.dtype().scalar, Scalar::Int(min));
            vars.push(&each.var);
            regs.push(var);
            inner.push(NestLoop { var, min, extent });
        }
        let (probe, probe_numbering, streams) = (Code::default(), Numbering::new(), Vec::new());
        self.nest_context = Some(NestContext { vars, splits, depth, probe, probe_numbering, streams });
        self.levels.push(Level::default());
        let result = self.stmt(leaf);
        // The level and the context are removed before `?`, so that an error leaves the compiler outside of the nest.
        let level = self.levels.pop().unwrap_or_default();
        let context = self.nest_context.take();
        result?;
        let Some(context) = context.filter(|_| level.nodes.is_empty()) else { return Ok(None) };
        let source = PlanSource {
            code: &level.code,
            streams: &context.streams,
            accesses: &self.program.accesses,
            slot_of: &self.program.slot_of,
            vars: &regs,
        };
        let plan = plan_block(&source);
        Ok(plan.map(|plan| VectorizedNest {
            pre: level.pre,
            probe: context.probe,
            streams: context.streams,
            inner,
            splits: context.splits,
            plan,
        }))
    }

    /// For each loop of the nest the number by which indices in its body divide the variable, such as 4 for `A[c // 4, c % 4]`; 1 where
    /// there is none, or it does not divide the range of the loop. All of them together are at most [`MAX_NEST`] loops.
    fn splits(&self, outer: &'a For, loops: &[(&'a For, i128, u64)], leaf: &Stmt) -> Vec<u64> {
        let constant = |expr| self.ranges.interval(expr).and_then(Interval::constant);
        let whole = constant(&outer.min).zip(constant(&outer.extent));
        let ranges = std::iter::once((&outer.var, whole))
            .chain(loops.iter().map(|(each, min, extent)| (&each.var, Some((*min, i128::from(*extent))))));
        let mut room = MAX_NEST - loops.len() - 1;
        let split = |(var, range): (&Var, Option<(i128, i128)>)| {
            let (min, extent) = range.filter(|(min, _)| *min >= 0 && room > 0)?;
            let divides = |number: &i128| min % number == 0 && extent % number == 0 && extent > *number;
            let number = divisor_of(leaf, var).filter(divides)?;
            room -= 1;
            u64::try_from(number).ok()
        };
        ranges.map(split).map(|number| number.unwrap_or(1)).collect()
    }

    /// The inner loops of the nest, with their first values and extents, and the body of the innermost one.
    ///
    /// `None` unless the loops are perfectly nested, have constant ranges, and make less than a block of iterations for
    /// each iteration of the outermost loop: with more, vectorizing the inner loops alone is as good.
    #[expect(clippy::type_complexity, reason = "a private helper with one caller")]
    fn nest_loops(&self, outer: &'a For, body: &[Node]) -> Option<(Vec<(&'a For, i128, u64)>, &'a Stmt)> {
        let (mut loops, mut nodes, mut leaf) = (Vec::new(), body, &outer.body);
        let mut iterations: u64 = 1;
        loop {
            while let StmtKind::Attr { body, .. } = &leaf.kind {
                leaf = body;
            }
            match nodes {
                [Node::Code(_)] => return Some((loops, leaf)),
                [Node::Loop(next)] => {
                    let StmtKind::For(inner) = &leaf.kind else { return None };
                    let min = self.ranges.interval(&inner.min)?.constant()?;
                    let extent = self.ranges.interval(&inner.extent)?.constant().filter(|&extent| extent > 0)?;
                    let values = Interval { low: min, high: min + extent - 1 };
                    if !fits(inner.var.dtype().scalar, values) || loops.len() + 1 == MAX_NEST {
                        return None;
                    }
                    let extent = u64::try_from(extent).ok()?;
                    iterations = iterations.checked_mul(extent).filter(|&count| count < BLOCK as u64)?;
                    loops.push((&**inner, min, extent));
                    nodes = &next.body;
                    leaf = &inner.body;
                }
                // Not a perfect nest: several nodes, a conditional or an allocation.
                _ => return None,
            }
        }
    }
}

/// The first constant above 1 by which an index in a statement divides a variable.
fn divisor_of(stmt: &Stmt, var: &Var) -> Option<i128> {
    let mut found = None;
    let mut look = |expr: &Expr| {
        if let Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod, a, b) =
            expr
            && matches!(&**a, Expr::Var(other) if other == var)
            && let Expr::Int { value: number @ 2.., .. } = &**b
        {
            found.get_or_insert(*number);
        }
    };
    stmt.walk(&mut |stmt| {
        if let StmtKind::Store { indices, .. } = &stmt.kind {
            for index in indices {
                index.walk(&mut look);
            }
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                if let Expr::Load { indices, .. } = part {
                    for index in &**indices {
                        index.walk(&mut look);
                    }
                }
            });
        }
    });
    found
}
