//! Innermost nests: perfectly nested loops that are compiled to run a block of iterations at a time.

use tilewright_ir::{BinaryOp, Diagnostic, Expr, For, Interval, Scalar, Stmt, StmtKind, Var};

use super::{Compiler, Level, NestContext, Numbering};
use crate::block_build::{PlanSource, plan_block};
use crate::block_plan::{AccessRef, BLOCK, BlockPlan};
use crate::code::{Code, NestLoop, Phase, Reg, VectorizedNest};
use crate::independence::fits;
use crate::num::encode;

/// Greatest number of loops in a vectorized nest and one of its phases, where a split loop counts twice.
pub(crate) const MAX_NEST: usize = 8;

/// Greatest number of phases of a nest.
const MAX_PHASES: usize = 8;

/// Greatest number of pairs of accesses of different phases that are compared.
const MAX_PAIRS: usize = 1 << 12;

/// A loop with its first value and its extent.
type KnownLoop<'a> = (&'a For, i128, u64);

/// The loops of a nest inside the outermost one, and its body in parts.
struct Shape<'a> {
    lanes: Vec<KnownLoop<'a>>,
    parts: Vec<Part<'a>>,
}

/// A part of the body of a nest: loops, and the statements in the innermost one.
struct Part<'a> {
    turns: Vec<KnownLoop<'a>>,
    stmts: Vec<&'a Stmt>,
}

impl<'a> Compiler<'_, 'a> {
    /// The vectorized form of the nest whose outermost loop is `outer`; `None` if there is none.
    ///
    /// The body is compiled a second time, as one level for the whole nest, so that code which is invariant in all of
    /// its loops is hoisted, and affine accesses become streams.
    pub(super) fn vectorize_nest(&mut self, outer: &'a For, var: Reg) -> Result<Option<VectorizedNest>, Diagnostic> {
        if !self.setup.vectorize {
            return Ok(None);
        }
        let Some(shape) = self.nest_shape(outer) else { return Ok(None) };
        let constant = |expr| self.ranges.interval(expr).and_then(Interval::constant);
        let whole = constant(&outer.min).zip(constant(&outer.extent));
        let mut room = MAX_NEST - shape.lanes.len() - 1;
        let first = split(&outer.var, whole, &outer.body, &mut room);
        let mut splits = vec![first];
        for (each, min, extent) in &shape.lanes {
            splits.push(split(&each.var, Some((*min, i128::from(*extent))), &outer.body, &mut room));
        }
        let depth = self.depth() + 1;
        // The nest is one level, so its inner loop variables get registers of its depth. The ordinary form of the body,
        // which is compiled already, keeps the registers of its own.
        let (mut vars, mut regs) = (vec![&outer.var], vec![var]);
        let inner = self.nest_loops(&shape.lanes, depth, &mut vars, &mut regs)?;
        let mut phases = Vec::new();
        for part in shape.parts {
            let Some(phase) = self.phase(part, depth, (&vars, &regs), &splits)? else { return Ok(None) };
            phases.push(phase);
        }
        let across = pairs_across(&phases);
        let any_order = phases.iter().all(|phase| phase.plan.reduce.is_none() || !phase.turns.is_empty());
        let nest = across.map(|across| VectorizedNest { inner, splits, any_order, phases, across });
        Ok(nest.filter(|nest| !nest.is_long() || nest.is_plain()))
    }

    /// Gives the variables of loops registers of the level `depth`.
    fn nest_loops(
        &mut self,
        loops: &[KnownLoop<'a>],
        depth: u32,
        vars: &mut Vec<&'a Var>,
        regs: &mut Vec<Reg>,
    ) -> Result<Vec<NestLoop>, Diagnostic> {
        let mut made = Vec::with_capacity(loops.len());
        for &(each, min, extent) in loops {
            let var = self.registers(1, depth)?;
            self.vars.insert(each.var.clone(), var);
            self.ranges.bind_loop(each);
            let min = encode(each.var.dtype().scalar, Scalar::Int(min));
            vars.push(&each.var);
            regs.push(var);
            made.push(NestLoop { var, min, extent });
        }
        Ok(made)
    }

    /// Compiles a part of a nest's body; `None` if it cannot run a block at a time.
    fn phase(
        &mut self,
        part: Part<'a>,
        depth: u32,
        (vars, regs): (&[&'a Var], &[Reg]),
        splits: &[u64],
    ) -> Result<Option<Phase>, Diagnostic> {
        let used: usize = splits.iter().map(|&split| if split > 1 { 2 } else { 1 }).sum();
        let Some(mut room) = MAX_NEST.checked_sub(used + part.turns.len()) else { return Ok(None) };
        let (mut vars, mut regs, mut splits) = (vars.to_vec(), regs.to_vec(), splits.to_vec());
        let lanes = vars.len();
        for &(each, min, extent) in &part.turns {
            splits.push(split(&each.var, Some((min, i128::from(extent))), &each.body, &mut room));
        }
        let turns = self.nest_loops(&part.turns, depth, &mut vars, &mut regs)?;
        let turn_splits = splits.get(lanes..).unwrap_or_default().to_vec();
        let (probe, probe_numbering, streams) = (Code::default(), Numbering::new(), Vec::new());
        self.nest_context = Some(NestContext { vars, splits, depth, probe, probe_numbering, streams });
        self.levels.push(Level::default());
        let result = part.stmts.into_iter().try_for_each(|stmt| self.stmt(stmt));
        // The level and the context are removed before `?`, so that an error leaves the compiler outside of the nest.
        let level = self.levels.pop().unwrap_or_default();
        let context = self.nest_context.take();
        result?;
        // Nodes are what is not straight-line code: an allocation, a barrier.
        let Some(context) = context.filter(|_| level.nodes.is_empty()) else { return Ok(None) };
        let (pre, probe, mut streams) = (level.pre, context.probe, context.streams);
        let source = PlanSource {
            code: &level.code,
            streams: &streams,
            accesses: &self.program.accesses,
            slot_of: &self.program.slot_of,
            vars: &regs,
        };
        let plan = plan_block(&source).map(|mut plan| {
            if !turns.is_empty()
                && let Some(number) = plan.reduce_by_stream()
                && let Some(stream) = streams.get_mut(number as usize)
            {
                // The elements of the whole block are read at its start, so that all of them have to be in bounds.
                stream.is_guarded = false;
            }
            plan
        });
        let reduces = |plan: &BlockPlan| plan.reduce.as_ref().is_some_and(|reduce| reduce.access.stream().is_some());
        let plan = plan.filter(|plan| turns.is_empty() || reduces(plan));
        Ok(plan.map(|mut plan| {
            if !turns.is_empty() {
                plan.fuse_product();
            }
            Phase { pre, probe, streams, turns, turn_splits, plan }
        }))
    }

    /// The shape of a nest. `None` unless the ranges of all loops but the outermost are constant, and, in a reduction, those whose
    /// iterations make up blocks make less than a block for each iteration of the outermost loop: with more, vectorizing the
    /// inner loops alone is as good.
    fn nest_shape(&self, outer: &'a For) -> Option<Shape<'a>> {
        let mut lanes = Vec::new();
        let leaf = self.descend(&outer.body, &mut lanes)?;
        let mut parts = Vec::new();
        self.parts(leaf, &mut parts)?;
        if let ([part], false) = (parts.as_mut_slice(), lanes.is_empty()) {
            // The innermost loops that move no store are a reduction, unless that is all there is.
            let stays = |var: &Var| !leaf_stores(leaf).iter().any(|index| index.vars().contains(var));
            let turns = lanes.iter().rev().take_while(|(each, ..)| stays(&each.var)).count();
            if part.turns.is_empty() && (turns < lanes.len() || !stays(&outer.var)) {
                part.turns = lanes.split_off(lanes.len() - turns);
            }
        }
        let mut iterations: u64 = 1;
        let is_reduction = parts.iter().any(|part| !part.turns.is_empty());
        for (.., extent) in &lanes {
            iterations = iterations.checked_mul(*extent).filter(|&count| !is_reduction || count < BLOCK as u64)?;
        }
        let depth = parts.iter().map(|part| part.turns.len()).max().unwrap_or(0) + lanes.len() + 1;
        (depth <= MAX_NEST && parts.len() <= MAX_PHASES).then_some(Shape { lanes, parts })
    }

    /// Descends into perfectly nested loops and returns the body of the innermost one; `None` if a range is not constant.
    fn descend(&self, mut stmt: &'a Stmt, loops: &mut Vec<KnownLoop<'a>>) -> Option<&'a Stmt> {
        loop {
            match &stmt.kind {
                StmtKind::Attr { body, .. } => stmt = body,
                StmtKind::For(inner) => {
                    let min = self.ranges.interval(&inner.min)?.constant()?;
                    let extent = self.ranges.interval(&inner.extent)?.constant().filter(|&extent| extent > 0)?;
                    let values = Interval { low: min, high: min + extent - 1 };
                    if !fits(inner.var.dtype().scalar, values) || loops.len() == MAX_NEST {
                        return None;
                    }
                    loops.push((inner, min, u64::try_from(extent).ok()?));
                    stmt = &inner.body;
                }
                _ => return Some(stmt),
            }
        }
    }

    /// The parts of a body: runs of statements without loops, and loops around such a run. `None` if loops are elsewhere.
    fn parts(&self, stmt: &'a Stmt, parts: &mut Vec<Part<'a>>) -> Option<()> {
        let is_loop = |stmt: &Stmt| matches!(stmt.kind, StmtKind::For(_));
        match &stmt.kind {
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.parts(stmt, parts)),
            _ if has_loop(stmt) => {
                let mut turns = Vec::new();
                let body = self.descend(stmt, &mut turns)?;
                parts.push(Part { turns, stmts: vec![body] });
                (!is_loop(body) && !has_loop(body)).then_some(())
            }
            _ => {
                match parts.last_mut() {
                    Some(last) if last.turns.is_empty() => last.stmts.push(stmt),
                    _ => parts.push(Part { turns: Vec::new(), stmts: vec![stmt] }),
                }
                Some(())
            }
        }
    }
}

/// The number by which indices in a body divide the variable of a loop, such as 4 for `A[c // 4, c % 4]`; 1 where
/// there is none, it does not divide the range of the loop, or there is no room for one more loop.
fn split(var: &Var, range: Option<(i128, i128)>, body: &Stmt, room: &mut usize) -> u64 {
    let split = || {
        let (min, extent) = range.filter(|(min, _)| *min >= 0 && *room > 0)?;
        let divides = |number: &i128| min % number == 0 && extent % number == 0 && extent > *number;
        u64::try_from(divisor_of(body, var).filter(divides)?).ok()
    };
    let number = split().unwrap_or(1);
    *room -= usize::from(number > 1);
    number
}

/// Whether a statement contains a loop.
fn has_loop(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |stmt| found |= matches!(stmt.kind, StmtKind::For(_)));
    found
}

/// The indices of all stores in a statement.
fn leaf_stores(stmt: &Stmt) -> Vec<&Expr> {
    let mut found = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::Store { indices, .. } = &stmt.kind {
            found.extend(indices);
        }
    });
    found
}

/// The pairs of streams of different phases that may conflict; `None` if one is not a stream, or there are many.
fn pairs_across(phases: &[Phase]) -> Option<Vec<[(usize, u32); 2]>> {
    let mut pairs = Vec::new();
    for (second, phase) in phases.iter().enumerate() {
        for (first, earlier) in phases.iter().enumerate().take(second) {
            for (a, b) in earlier.plan.events.iter().flat_map(|a| phase.plan.events.iter().map(move |b| (a, b))) {
                if a.slot != b.slot || !(a.write || b.write) {
                    continue;
                }
                let (AccessRef::Stream(a), AccessRef::Stream(b)) = (a.access, b.access) else { return None };
                pairs.push([(first, a), (second, b)]);
                if pairs.len() > MAX_PAIRS {
                    return None;
                }
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    Some(pairs)
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
