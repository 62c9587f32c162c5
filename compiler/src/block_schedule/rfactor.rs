//! `rfactor`: a reduction in two blocks, one for each iteration of a reduced loop and one that combines these.
//!
//! ```text
//! for i, k_0, k_1:                             for i, k_0, k_1:
//!     block "C": init, C[v_i] += A[v_i, v_k]       block "C_rf": v_k_1, v_i spatial, v_k_0 reduced
//!         T.where(k_0 * 4 + k_1 < m)                   init: C_rf[v_k_1, v_i] = 0
//!                                                      if v_k_0 * 4 + v_k_1 < m:
//! rfactor(k_1)                                             C_rf[v_k_1, v_i] += A[v_i, v_k_0 * 4 + v_k_1]
//!                                              for i, k_1:
//!                                                  block "C": init, C[v_i] += C_rf[v_k_1, v_i]
//! ```
//!
//! The second block reads every part. So a condition on the factored loop, which a ragged split leaves behind, may not become the
//! predicate of the first block: a part without iterations would never be initialised. It guards the update alone.
//!
//! Values are combined in another order. The claim is that both programs compute equal definitions; for floats the order is a premise.

use tilewright_algebra::{conjuncts, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AxisKind, AxisSeparators, Block, BlockAxis, Buffer, Comparison, DataType, Diagnostic, Evidence, Expr, For, ForKind,
    PrimFunc, Stmt, StmtKind, Var,
};

use super::combiner::Combiner;
use super::regions::stated;
use super::tree::{Found, realized, with_neighbours};
use super::{BlockRef, BlockSchedule, LoopRef, fault};
use crate::lift;
use crate::passes::schedule::loops::{check_in_order, with_loop};

impl BlockSchedule {
    /// Computes a reduction in two blocks: for each iteration of a reduced loop by itself, in a buffer that has one more axis at
    /// `factor_axis`, and these together. A negative position counts from the end: -1 is the last axis. Returns the first of the blocks;
    /// the second one keeps the name.
    ///
    /// # Errors
    /// `schedule`: the loop is gone or is not around one block, the block is no reduction of one element, the loop counts something else
    /// than reduced axes, or there is no such axis.
    pub fn rfactor(&mut self, run: &LoopRef, factor_axis: i64) -> Result<BlockRef, Diagnostic> {
        let blocks = self.get_child_blocks_of_loop(run)?;
        let [block] = blocks[..] else {
            let message = format!("there are {} blocks in the loop `{}`", blocks.len(), run.name());
            return Err(fault(message, "name a loop that is around the reduction alone"));
        };
        let found = self.block(block)?;
        let name = found.block.name.clone();
        let combiner = Combiner::of(&found)?;
        let roles = Roles::of(&found, run)?;
        let parts = parts_buffer(&combiner.target, &roles.part, factor_axis)?;
        let rf_name = self.fresh_block_name(&format!("{name}_rf"));
        let plan = Plan { found: &found, func: self.func(), combiner: &combiner, roles: &roles, parts: &parts };
        let nests = Stmt::seq(vec![plan.first_nest(&rf_name), plan.second_nest()]);
        let top = found.loops[roles.top].var.clone();
        let body = with_neighbours(self.func(), &found, (Vec::new(), Vec::new()), Some(&parts.buffer));
        let body = with_loop(&body, &top, &nests);
        let after = PrimFunc { body, ..self.func().clone() };
        let evidence = Evidence { pass: "rfactor".to_owned(), ..Evidence::default() };
        let claim = lift::find(self.func(), &after, &evidence, true);
        let comparison = claim.map_or_else(|_| Comparison::default(), |claim| Comparison::Definitions(claim.into()));
        self.record("rfactor", after, Evidence { comparison, ..evidence })?;
        Ok(self.block_ref(&rf_name))
    }
}

/// The buffer of the parts, and the position of its axis for the factored loop.
struct Parts {
    buffer: Buffer,
    at: usize,
}

fn parts_buffer(target: &Buffer, part: &For, factor_axis: i64) -> Result<Parts, Diagnostic> {
    let rank = target.rank();
    let most = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if factor_axis < 0 { factor_axis.saturating_add(most).saturating_add(1) } else { factor_axis };
    let at = usize::try_from(at).ok().filter(|at| *at <= rank).ok_or_else(|| {
        let message = format!("there is no axis {factor_axis}: the buffer of the parts has {} axes", rank + 1);
        fault(message, format!("factor_axis is {} to {most}; negative numbers count from the end", -most - 1))
    })?;
    let name = format!("{}_rf", target.name);
    let data = Var::new(name.clone(), DataType::HANDLE);
    let buffer = target.with(|info| {
        info.name = name;
        info.data = data;
        info.shape.insert(at, part.extent.clone());
        info.strides = None;
        info.elem_offset = Expr::int(0);
        info.axis_separators = AxisSeparators::none(info.shape.len());
        info.span = None;
    });
    Ok(Parts { buffer, at })
}

/// What each loop around a block is for.
struct Roles {
    /// The position of the outermost loop that contains nothing but the block.
    top: usize,
    /// The factored loop.
    part: For,
    /// The other loops that count the same reduced axes, or stand in a condition with it.
    group: Vec<For>,
    /// Whether an axis of the block is counted by the factored loop or the group.
    is_regrouped: Vec<bool>,
    /// The conditions of the predicate that the first block keeps, and those of the second one among them.
    kept: Vec<Expr>,
    kept_by_second: Vec<Expr>,
    /// The conditions on the factored loop and the group.
    moved: Vec<Expr>,
}

impl Roles {
    fn of(found: &Found<'_>, run: &LoopRef) -> Result<Self, Diagnostic> {
        let name = &found.block.name;
        let top = top_of(found);
        let reduced = |run: &For| counts(found, run, true);
        let part = found.loops[top..].iter().find(|other| other.var == run.0).ok_or_else(|| {
            fault(
                format!("`{}` contains more than block `{name}`", run.name()),
                "name a loop inside, or move the others",
            )
        })?;
        for run in &found.loops {
            if reduced(run) && counts(found, run, false) {
                let message = format!("`{}` counts a reduced axis and another one", run.var);
                return Err(fault(message, "fuse only loops of one kind, or factor the reduction first"));
            }
        }
        if !reduced(part) {
            return Err(fault(format!("`{}` is not a reduced loop", run.name()), "name a loop over a reduced axis"));
        }
        if let Some(outside) = found.loops[..top].iter().find(|run| reduced(run)) {
            let message = format!("the reduced loop `{}` contains more than block `{name}`", outside.var);
            return Err(fault(message, "move the others out of it first"));
        }
        let group = group_of(found, part);
        for run in std::iter::once(part).chain(&group) {
            check_in_order(run, "rfactor")?;
            independent(found, run)?;
        }
        let in_group = |expr: &Expr| {
            let used = expr.vars();
            std::iter::once(part).chain(&group).any(|run| used.contains(&run.var))
        };
        let is_reduced = |expr: &Expr| found.loops.iter().any(|run| reduced(run) && expr.vars().contains(&run.var));
        let all = found.parts.predicate.map(conjuncts).unwrap_or_default();
        let (moved, kept): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(in_group);
        let kept_by_second = kept.iter().filter(|cond| !is_reduced(cond)).cloned().collect();
        let others = |cond: &&Expr| found.loops.iter().any(|run| !reduced(run) && cond.vars().contains(&run.var));
        if let Some(mixed) = moved.iter().find(others) {
            let message = format!("the predicate `{mixed}` is about reduced loops and others");
            return Err(fault(message, "split the reduced loops by themselves"));
        }
        let is_regrouped = found.axes().map(|(_, value)| in_group(value)).collect();
        let (part, group) = (For::clone(part), group.into_iter().cloned().collect());
        Ok(Self { top, part, group, is_regrouped, kept, kept_by_second, moved })
    }
}

/// The position of the outermost loop that contains the block and nothing else but loops.
fn top_of(found: &Found<'_>) -> usize {
    let n_loops = found.loops.len();
    let holds_only = |at: &usize| match &found.loops[*at].body.kind {
        StmtKind::For(next) => found.loops.get(at + 1).is_some_and(|run| run.var == next.var),
        _ => at + 1 == n_loops && Block::of(&found.loops[*at].body).is_some_and(|(block, _)| block == found.block),
    };
    n_loops - (0..n_loops).rev().take_while(holds_only).count()
}

/// Whether a loop counts an axis that is reduced, or one that is not.
fn counts(found: &Found<'_>, run: &For, is_reduced: bool) -> bool {
    let is_meant = |axis: &BlockAxis| (axis.kind == AxisKind::Reduce) == is_reduced;
    found.axes().any(|(axis, value)| is_meant(axis) && value.vars().contains(&run.var))
}

/// The reduced loops that count an axis together with the factored one, or with one of these, or stand in a condition with them.
fn group_of<'f>(found: &Found<'f>, part: &For) -> Vec<&'f For> {
    let values = found.axes().map(|(_, value)| value.vars());
    let conditions = found.parts.predicate.map(conjuncts).unwrap_or_default();
    let together: Vec<Vec<Var>> = values.chain(conditions.iter().map(Expr::vars)).collect();
    let mut vars = vec![part.var.clone()];
    loop {
        let n_known = vars.len();
        for others in &together {
            if others.iter().any(|var| vars.contains(var)) {
                let fresh = others.iter().filter(|var| found.loops.iter().any(|run| run.var == **var));
                let fresh: Vec<Var> = fresh.filter(|var| !vars.contains(var)).cloned().collect();
                vars.extend(fresh);
            }
        }
        if vars.len() == n_known {
            break;
        }
    }
    let is_other = |run: &&&For| run.var != part.var && vars.contains(&run.var) && counts(found, run, true);
    found.loops.iter().filter(is_other).copied().collect()
}

/// Checks that the range of a loop is the same in each iteration of the others.
fn independent(found: &Found<'_>, run: &For) -> Result<(), Diagnostic> {
    let used = [run.min.vars(), run.extent.vars()].concat();
    let Some(other) = found.loops.iter().find(|other| used.contains(&other.var)) else { return Ok(()) };
    let message = format!("the range of `{}` depends on `{}`", run.var, other.var);
    Err(fault(message, "factor a loop that has the same range in each iteration around it"))
}

/// What the two nests are made of.
struct Plan<'a> {
    found: &'a Found<'a>,
    func: &'a PrimFunc,
    combiner: &'a Combiner,
    roles: &'a Roles,
    parts: &'a Parts,
}

impl Plan<'_> {
    /// The axis that counts a loop of the program before.
    fn axis_of(run: &For, kind: AxisKind) -> BlockAxis {
        let var = Var::new(format!("v_{}", run.var), run.var.dtype());
        BlockAxis { var, kind, min: run.min.clone(), extent: run.extent.clone() }
    }

    /// The index of the parts: that of the element, and the number of the part.
    fn index(&self, names: &Substitution, part: &BlockAxis) -> Vec<Expr> {
        let mut index: Vec<Expr> = self.combiner.index.iter().map(|at| names.apply(at)).collect();
        let from_zero = part.min.as_const_int() == Some(0);
        let number = Expr::from(&part.var);
        index.insert(self.parts.at, if from_zero { number } else { number - part.min.clone() });
        index
    }

    /// The loops of the program before around a block for each part.
    fn first_nest(&self, name: &str) -> Stmt {
        let part = Self::axis_of(&self.roles.part, AxisKind::Spatial);
        let (mut axes, mut values) = (vec![part.clone()], vec![Expr::from(&self.roles.part.var)]);
        let (mut names, mut of_loops) = (Substitution::default(), Substitution::default());
        of_loops.insert(&self.roles.part.var, Expr::from(&part.var));
        for ((axis, value), is_regrouped) in self.found.axes().zip(&self.roles.is_regrouped) {
            if !is_regrouped {
                let var = Var::new(axis.var.name(), axis.var.dtype());
                names.insert(&axis.var, Expr::from(&var));
                axes.push(BlockAxis { var, ..axis.clone() });
                values.push(value.clone());
            }
        }
        for run in &self.roles.group {
            let axis = Self::axis_of(run, AxisKind::Reduce);
            of_loops.insert(&run.var, Expr::from(&axis.var));
            axes.push(axis);
            values.push(Expr::from(&run.var));
        }
        for ((axis, value), is_regrouped) in self.found.axes().zip(&self.roles.is_regrouped) {
            if *is_regrouped {
                names.insert(&axis.var, of_loops.apply(value));
            }
        }
        let conditions = self.roles.moved.iter().map(|cond| of_loops.apply(cond));
        let own = self.combiner.only_where.as_ref().map(|cond| names.apply(cond));
        let condition = conditions.chain(own).reduce(Expr::and);
        let index = self.index(&names, &part);
        let block = self.block(name, axes);
        let body = self.first_body(&block, index, names.apply(&self.combiner.value), condition);
        let loops: Vec<&For> = self.found.loops[self.roles.top..].to_vec();
        self.nest(&block, (&self.roles.kept, values), body, &loops)
    }

    /// What an instance of the first block does.
    fn first_body(&self, block: &Block, index: Vec<Expr>, value: Expr, condition: Option<Expr>) -> Stmt {
        let parts = &self.parts.buffer;
        let identity = self.combiner.op.identity_expr(parts.dtype.scalar);
        let Some(is_first) = block.is_first() else {
            let value = match condition {
                Some(cond) => Expr::IfThenElse(cond.into(), value.into(), identity.into()),
                None => value,
            };
            return Stmt::store(parts, index, value);
        };
        let so_far = Expr::load(parts, index.clone());
        let update = Stmt::store(parts, index.clone(), Expr::binary(self.combiner.op.combine(), so_far, value));
        let update = condition.into_iter().fold(update, |update, cond| Stmt::guarded(cond, update));
        Stmt::seq(vec![Stmt::guarded(is_first, Stmt::store(parts, index, identity)), update])
    }

    /// Loops of its own around the block that combines the parts.
    fn second_nest(&self) -> Stmt {
        let mut fresh = Substitution::default();
        let mut loops: Vec<For> = Vec::new();
        for run in &self.found.loops[self.roles.top..] {
            let is_part = run.var == self.roles.part.var;
            if !is_part && !counts(self.found, run, false) {
                continue;
            }
            let var = Var::new(run.var.name(), run.var.dtype());
            let (min, extent) = (fresh.apply(&run.min), fresh.apply(&run.extent));
            fresh.insert(&run.var, Expr::from(&var));
            let kind = if is_part { ForKind::Serial } else { run.kind };
            let annotations = if is_part { Vec::new() } else { run.annotations.clone() };
            loops.push(For { var, min, extent, kind, annotations, body: Stmt::seq(Vec::new()) });
        }
        let part = Self::axis_of(&self.roles.part, AxisKind::Reduce);
        let (mut axes, mut values) = (Vec::new(), Vec::new());
        let mut names = Substitution::default();
        for (axis, value) in self.found.axes().filter(|(axis, _)| axis.kind != AxisKind::Reduce) {
            let var = Var::new(axis.var.name(), axis.var.dtype());
            names.insert(&axis.var, Expr::from(&var));
            axes.push(BlockAxis { var, ..axis.clone() });
            values.push(fresh.apply(value));
        }
        axes.push(part.clone());
        values.push(fresh.apply(&Expr::from(&self.roles.part.var)));
        let kept: Vec<Expr> = self.roles.kept_by_second.iter().map(|cond| fresh.apply(cond)).collect();
        let block = self.block(&self.found.block.name, axes);
        let body = self.second_body(&block, &names, &part);
        self.nest(&block, (&kept, values), body, &loops.iter().collect::<Vec<_>>())
    }

    fn second_body(&self, block: &Block, names: &Substitution, part: &BlockAxis) -> Stmt {
        let Combiner { op, target, index, start, .. } = self.combiner;
        let index: Vec<Expr> = index.iter().map(|at| names.apply(at)).collect();
        let so_far = Expr::load(target, index.clone());
        let value = Expr::load(&self.parts.buffer, self.index(names, part));
        let update = Stmt::store(target, index.clone(), Expr::binary(op.combine(), so_far, value));
        let init = Stmt::store(target, index, names.apply(start));
        let init = block.is_first().into_iter().fold(init, |init, cond| Stmt::guarded(cond, init));
        Stmt::seq(vec![init, update])
    }

    fn block(&self, name: &str, axes: Vec<BlockAxis>) -> Block {
        let has_init = axes.iter().any(|axis| axis.kind == AxisKind::Reduce);
        Block { name: name.to_owned(), axes, has_init, has_predicate: false, ..self.found.block.clone() }
    }

    /// A block in loops, with what it reads and writes.
    fn nest(&self, block: &Block, (kept, values): (&[Expr], Vec<Expr>), body: Stmt, loops: &[&For]) -> Stmt {
        let outer = self.found.loops[..self.roles.top].iter().chain(&self.found.outer);
        let ranges = outer.fold(crate::passes::remap::symbol_ranges(self.func), |known, run| {
            crate::passes::remap::inside(&known, run)
        });
        let ranges = loops.iter().fold(ranges, |known, run| crate::passes::remap::inside(&known, run));
        let kept = kept.iter().map(|cond| simplify(cond, &ranges)).filter(|cond| cond.as_const_int() != Some(1));
        let predicate = kept.reduce(Expr::and);
        let block = stated(block, &body, &ranges);
        let inner = realized(block, predicate, values, body).at(self.found.stmt.span);
        loops.iter().rev().fold(inner, |body, run| Stmt::new(StmtKind::For(For { body, ..For::clone(run) }.into())))
    }
}
