//! Loops of blocks: `split`, `fuse`, `reorder`, the kinds of loops, and hints.
//!
//! ```text
//! split(i, factors=[None, 8])        for i in 37:  ->  for i_0, i_1 in T.grid(5, 8):   the block has T.where(i_0 * 8 + i_1 < 37)
//! fuse(i, j)                         for i, j in T.grid(5, 7):  ->  for i_j_fused in range(35):
//! reorder(j, i)                      the loops stand in the order of the arguments
//! bind(i, "threadIdx.x")             and parallel, vectorize, unroll: how the iterations run
//! ```
//!
//! Each claims which iteration after is which iteration before; the judge checks that dependences keep their order.

use tilewright_algebra::simplify;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AttrValue, AxisKind, Block, BlockAxis, Buffer, Diagnostic, Evidence, Expr, For, ForKind, PrimFunc, ScheduleStep,
    Stmt, StmtKind, StoreOrigin, ThreadTag, VIRTUAL_AXES, VIRTUAL_THREAD, Var, sabotage,
};
use tilewright_verify::reorder::Statement;

use super::tree::{guarded, loop_over, replaced, with_block};
use super::{BlockRef, BlockSchedule, LoopRef, fault};
use crate::passes::schedule::buffers::{is_private, with_own_memory};
use crate::passes::schedule::claims::Claim;
use crate::passes::schedule::loops::{check_in_order, with_loop};
use crate::passes::schedule::nest::{Fused, around, depends, loop_of, ordered};
use crate::passes::schedule::same_iterations;

/// Most parts of one `split`.
const MOST_PARTS: usize = 16;

/// What loops before and loops after have to do with each other.
pub(super) struct Renamed {
    /// The value of each loop before that is no loop after.
    pub(super) forward: Substitution,
    /// The value of each loop after that is no loop before.
    pub(super) back: Substitution,
}

impl Renamed {
    pub(super) fn claim(self) -> Claim {
        let value = |values: &Substitution, var: &Var| values.get(var).cloned().unwrap_or_else(|| Expr::from(var));
        let origin = move |(before, (old, new)): (usize, (&Statement, &Statement))| StoreOrigin {
            when: None,
            before,
            forward: old.loops().iter().map(|var| value(&self.forward, var)).collect(),
            back: new.loops().iter().map(|var| value(&self.back, var)).collect(),
        };
        Claim::Iterations(Box::new(move |old, new| {
            (old.len() == new.len()).then(|| old.iter().zip(new).enumerate().map(&origin).collect())
        }))
    }
}

impl BlockSchedule {
    /// Splits a loop into several, outermost first. The number of iterations of one of them may be left open (`None`). Blocks inside
    /// get a predicate if the product of the factors may exceed the number of iterations.
    ///
    /// # Errors
    /// `schedule`: the loop is gone or runs its iterations at once, or the factors do not cover it.
    pub fn split(&mut self, run: &LoopRef, factors: &[Option<i64>]) -> Result<Vec<LoopRef>, Diagnostic> {
        let found = loop_over(self.func(), &run.0)?;
        check_in_order(found.run, "split")?;
        let (vars, body, claim) = split(self.func(), &found, factors)?;
        self.step("split", body, &claim)?;
        Ok(vars.into_iter().map(LoopRef).collect())
    }

    /// Fuses loops, each of which is all that the one in front of it contains.
    ///
    /// # Errors
    /// `schedule`: a loop is gone, runs its iterations at once, or is not directly inside of the one in front of it.
    pub fn fuse(&mut self, runs: &[LoopRef]) -> Result<LoopRef, Diagnostic> {
        let first = runs.first().ok_or_else(|| fault("`fuse` needs a loop", "such as `sch.fuse(i, j)`"))?;
        if runs.len() == 1 {
            return Ok(first.clone());
        }
        let found = loop_over(self.func(), &first.0)?;
        let chain = chain(found.run, &runs.iter().map(|run| run.0.clone()).collect::<Vec<_>>(), true)?;
        chain.iter().try_for_each(|run| check_in_order(run, "fuse"))?;
        let (var, stmt, renamed) = fused(&chain, &found.ranges(self.func()))?;
        let body = with_loop(&self.func().body, &first.0, &stmt);
        self.step("fuse", body, &renamed.claim())?;
        Ok(LoopRef(var))
    }

    /// Puts loops into the order of the arguments. Loops between them that are not named stay where they are.
    ///
    /// # Errors
    /// `schedule`: a loop is gone or is named twice, the loops are not nested in each other without other statements between them, or
    /// the range of one depends on one that would come inside.
    pub fn reorder(&mut self, runs: &[LoopRef]) -> Result<(), Diagnostic> {
        let vars: Vec<Var> = runs.iter().map(|run| run.0.clone()).collect();
        if let Some((_, twice)) = vars.iter().enumerate().find(|(at, var)| vars[..*at].contains(var)) {
            return Err(fault(format!("`{twice}` is named twice"), "name each loop once"));
        }
        let mut found = vars.iter().map(|var| loop_over(self.func(), var)).collect::<Result<Vec<_>, _>>()?;
        found.sort_by_key(|found| found.outer.len());
        let Some(top) = found.first() else { return Ok(()) };
        let chain = chain(top.run, &vars, false)?;
        let stmt = reordered(&chain, &vars)?;
        let body = with_loop(&self.func().body, &top.run.var, &stmt);
        let nothing = Renamed { forward: Substitution::default(), back: Substitution::default() };
        self.step("reorder", body, &nothing.claim())?;
        Ok(())
    }

    /// Makes the iterations of a loop the threads of an axis of the launch.
    ///
    /// # Errors
    /// `schedule`: the loop is gone, or a loop around it or inside of it has the axis; or it counts a reduced axis, and its number of
    /// iterations is no constant.
    ///
    /// A loop that counts a reduced axis stays as it is until blocks are lowered: the step `allreduce` binds it then.
    pub fn bind(&mut self, run: &LoopRef, tag: ThreadTag) -> Result<(), Diagnostic> {
        let found = loop_over(self.func(), &run.0)?;
        let is_bound = |other: &&For| other.kind == ForKind::ThreadBinding(tag);
        let mut inside = Vec::new();
        found.run.body.walk(&mut |stmt| {
            if let StmtKind::For(inner) = &stmt.kind {
                inside.push(&**inner);
            }
        });
        if let Some(other) = found.outer.iter().copied().chain(inside).find(is_bound) {
            let message =
                format!("`{}` is bound to {tag} already, and one of the two loops is inside of the other", other.var);
            let help = "bind one of them to another axis, or fuse the two; loops side by side may share an axis";
            return Err(fault(message, help));
        }
        if let (ThreadTag::Thread(_), Some(buffer)) = (tag, reduced_by(found.run)) {
            return self.reduced_at_once(run, &buffer, tag);
        }
        self.set_kind("bind", run, ForKind::ThreadBinding(tag))
    }

    /// Makes the iterations of a loop virtual threads, which [`crate::passes::inject_virtual_thread`] interleaves in one thread.
    ///
    /// # Errors
    /// `schedule`: the axis is none of [`VIRTUAL_AXES`], or the loop is gone.
    pub fn bind_virtual(&mut self, run: &LoopRef, axis: &str) -> Result<(), Diagnostic> {
        if !VIRTUAL_AXES.contains(&axis) {
            return Err(fault(
                format!("`{axis}` is no axis of virtual threads"),
                format!("they are {}", VIRTUAL_AXES.join(", ")),
            ));
        }
        let hint = (VIRTUAL_THREAD.to_owned(), AttrValue::Str(axis.to_owned()));
        self.set_kind_with("bind", run, ForKind::Parallel, Some(hint))
    }

    /// Asks for the step `allreduce`, which binds a loop of a reduction to threads when blocks are lowered.
    fn reduced_at_once(&mut self, run: &LoopRef, buffer: &Buffer, tag: ThreadTag) -> Result<(), Diagnostic> {
        let found = loop_over(self.func(), &run.0)?.run;
        if found.extent.as_const_int().is_none() {
            let message = format!("`{}` counts a reduced axis and has {} iterations", found.var, found.extent);
            return Err(fault(message, "the number of threads of a reduction is a constant: split the loop first"));
        }
        let mut after = self.func().clone();
        let argument = format!("{buffer}.{}:{tag}", found.var);
        after.attrs.schedule.push(ScheduleStep { primitive: "allreduce".to_owned(), argument, span: self.place });
        let evidence = Evidence { pass: "bind".to_owned(), ..Evidence::default() };
        let comparison = same_iterations(self.func(), &after, &evidence);
        self.record("bind", after, Evidence { comparison, ..evidence })?;
        Ok(())
    }

    /// Runs the iterations of a loop at once.
    ///
    /// # Errors
    /// `schedule`: the loop is gone.
    pub fn parallel(&mut self, run: &LoopRef) -> Result<(), Diagnostic> {
        self.set_kind("parallel", run, ForKind::Parallel)
    }

    /// Runs the iterations of a loop as lanes of vectors.
    ///
    /// # Errors
    /// `schedule`: the loop is gone.
    pub fn vectorize(&mut self, run: &LoopRef) -> Result<(), Diagnostic> {
        self.set_kind("vectorize", run, ForKind::Vectorized)
    }

    /// Marks a loop to be written out.
    ///
    /// # Errors
    /// `schedule`: the loop is gone.
    pub fn unroll(&mut self, run: &LoopRef) -> Result<(), Diagnostic> {
        self.set_kind("unroll", run, ForKind::Unrolled)
    }

    fn set_kind(&mut self, name: &'static str, run: &LoopRef, kind: ForKind) -> Result<(), Diagnostic> {
        self.set_kind_with(name, run, kind, None)
    }

    fn set_kind_with(
        &mut self,
        name: &'static str,
        run: &LoopRef,
        kind: ForKind,
        hint: Option<(String, AttrValue)>,
    ) -> Result<(), Diagnostic> {
        let found = loop_over(self.func(), &run.0)?;
        let mut changed = For { kind, ..found.run.clone() };
        changed.annotations.retain(|(key, _)| key != VIRTUAL_THREAD);
        changed.annotations.extend(hint);
        let changed = Stmt::new(StmtKind::For(changed.into()));
        let mut body = with_loop(&self.func().body, &run.0, &changed);
        let shares = sabotage::on("block-threads-share");
        for buffer in self.func().buffers().iter().filter(|buffer| is_private(buffer, kind) && !shares) {
            body = with_own_memory(&body, &run.0, buffer);
        }
        let nothing = Renamed { forward: Substitution::default(), back: Substitution::default() };
        self.step(name, body, &nothing.claim())?;
        Ok(())
    }

    fn change_loop(
        &mut self,
        name: &'static str,
        run: &LoopRef,
        change: impl FnOnce(&mut For),
    ) -> Result<(), Diagnostic> {
        let found = loop_over(self.func(), &run.0)?;
        let mut changed = found.run.clone();
        change(&mut changed);
        let body = with_loop(&self.func().body, &run.0, &Stmt::new(StmtKind::For(changed.into())));
        self.same_step(name, body)?;
        Ok(())
    }

    /// Adds a hint to a loop, or replaces the hint of that name.
    ///
    /// # Errors
    /// `schedule`: the loop is gone.
    pub fn annotate_loop(&mut self, run: &LoopRef, key: &str, value: AttrValue) -> Result<(), Diagnostic> {
        self.change_loop("annotate", run, |run| set(&mut run.annotations, key, value))
    }

    /// Removes a hint of a loop.
    ///
    /// # Errors
    /// `schedule`: the loop is gone, or has no such hint.
    pub fn unannotate_loop(&mut self, run: &LoopRef, key: &str) -> Result<(), Diagnostic> {
        let found = loop_over(self.func(), &run.0)?;
        check_hint(&found.run.annotations, key)?;
        self.change_loop("unannotate", run, |run| run.annotations.retain(|(known, _)| known != key))
    }

    /// Adds a hint to a block, or replaces the hint of that name.
    ///
    /// # Errors
    /// `schedule`: the block is gone.
    pub fn annotate_block(&mut self, block: BlockRef, key: &str, value: &AttrValue) -> Result<(), Diagnostic> {
        self.change_block("annotate", block, |block| set(&mut block.annotations, key, value.clone()))
    }

    /// Removes a hint of a block.
    ///
    /// # Errors
    /// `schedule`: the block is gone, or has no such hint.
    pub fn unannotate_block(&mut self, block: BlockRef, key: &str) -> Result<(), Diagnostic> {
        check_hint(&self.block(block)?.block.annotations, key)?;
        self.change_block("unannotate", block, |block| block.annotations.retain(|(known, _)| known != key))
    }

    fn change_block(
        &mut self,
        name: &'static str,
        block: BlockRef,
        change: impl Fn(&mut Block),
    ) -> Result<(), Diagnostic> {
        let found = self.block(block)?.block.name.clone();
        let body = with_block(&self.func().body, &found, &mut |block, stmt, _| {
            let mut changed = block.clone();
            change(&mut changed);
            let below = stmt.children().next().cloned().unwrap_or_else(|| Stmt::seq(Vec::new()));
            Stmt::block(changed, below)
        });
        self.same_step(name, body)?;
        Ok(())
    }
}

/// The buffer that is computed by a reduction of which a loop counts a reduced axis.
pub(super) fn reduced_by(run: &For) -> Option<Buffer> {
    let mut found = None;
    run.body.walk(&mut |stmt| {
        let Some((block, parts)) = Block::of(stmt).and_then(|(block, below)| Some((block, block.parts(below)?))) else {
            return;
        };
        let counts =
            |(axis, value): (&BlockAxis, &Expr)| axis.kind == AxisKind::Reduce && value.vars().contains(&run.var);
        if !block.axes.iter().zip(parts.bindings.iter().copied()).any(counts) {
            return;
        }
        parts.body.walk(&mut |part| {
            if let StmtKind::Store { buffer, .. } = &part.kind {
                found.get_or_insert_with(|| buffer.clone());
            }
        });
    });
    found
}

fn set(hints: &mut Vec<(String, AttrValue)>, key: &str, value: AttrValue) {
    match hints.iter_mut().find(|(known, _)| known == key) {
        Some(hint) => hint.1 = value,
        None => hints.push((key.to_owned(), value)),
    }
}

fn check_hint(hints: &[(String, AttrValue)], key: &str) -> Result<(), Diagnostic> {
    if hints.iter().any(|(known, _)| known == key) {
        return Ok(());
    }
    let known: Vec<&str> = hints.iter().map(|(known, _)| known.as_str()).collect();
    let help = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    Err(fault(format!("there is no annotation `{key}`"), help))
}

/// The loops, the program with them in the place of one, and what is claimed.
fn split(
    func: &PrimFunc,
    found: &super::tree::FoundLoop<'_>,
    factors: &[Option<i64>],
) -> Result<(Vec<Var>, Stmt, Claim), Diagnostic> {
    let (run, ranges) = (found.run, found.ranges(func));
    let ty = run.var.dtype().scalar;
    let help = "such as `sch.split(i, factors=[None, 8])`: positive numbers, one of which may be None";
    let n_open = factors.iter().filter(|factor| factor.is_none()).count();
    if n_open > 1 || factors.is_empty() || factors.len() > MOST_PARTS || factors.iter().flatten().any(|f| *f < 1) {
        return Err(fault(format!("`{}` cannot be split by these factors", run.var), help));
    }
    let constant = |value: i128| Expr::int_of(value, ty).ok_or_else(|| fault("a factor does not fit the loop", help));
    let known: i128 = factors.iter().flatten().map(|factor| i128::from(*factor)).product();
    let extent = simplify(&run.extent, &ranges);
    let open = extent.clone() + constant(known - 1)?;
    let is_exact = simplify(&extent.clone().floor_mod(constant(known)?), &ranges).as_const_int() == Some(0);
    let open = if is_exact { extent.clone() } else { open };
    let open = simplify(&open.floor_div(constant(known)?), &ranges);
    let sizes = factors.iter().map(|factor| factor.map_or_else(|| Ok(open.clone()), |f| constant(f.into())));
    let sizes = sizes.collect::<Result<Vec<Expr>, _>>()?;
    let is_covered = n_open == 1
        || simplify(&Expr::binary(tilewright_ir::BinaryOp::Le, extent.clone(), constant(known)?), &ranges)
            .as_const_int()
            == Some(1);
    if !is_covered {
        let message = format!("`{}` has {extent} iterations, more than the factors give", run.var);
        return Err(fault(message, "leave one factor open: None"));
    }
    let is_whole = if n_open == 1 { is_exact } else { extent.as_const_int() == Some(known) };
    let vars: Vec<Var> = (0..factors.len()).map(|at| Var::new(format!("{}_{at}", run.var), run.var.dtype())).collect();
    let mut number = constant(0)?;
    for (at, (var, size)) in vars.iter().zip(&sizes).enumerate() {
        number = match at {
            0 => Expr::from(var),
            _ if sabotage::on("block-split-commutes") => Expr::from(var) + number * size.clone(),
            _ => number * size.clone() + Expr::from(var),
        };
    }
    let min = simplify(&run.min, &ranges);
    let from_zero = min.as_const_int() == Some(0);
    let value = if from_zero { number.clone() } else { min.clone() + number.clone() };
    let offset = if from_zero { Expr::from(&run.var) } else { Expr::from(&run.var) - min };
    let (mut back, mut rest) = (Substitution::default(), offset);
    for (at, (var, size)) in vars.iter().zip(&sizes).enumerate().rev() {
        let part = if at == 0 { rest.clone() } else { rest.clone().floor_mod(size.clone()) };
        back.insert(var, part);
        rest = rest.floor_div(size.clone());
    }
    let forward = Substitution::new([&run.var], [value]);
    let mut body = replaced(&run.body, &forward, &[]);
    if !is_whole && !sabotage::on("block-split-unguarded") {
        body = guarded(&body, &number.lt(extent));
    }
    let nest = vars.iter().zip(sizes).rev().fold(body, |body, (var, size)| loop_of(var, size, run, body));
    Ok((vars, with_loop(&func.body, &run.var, &nest), Renamed { forward, back }.claim()))
}

/// The loops from the outermost one on, each directly inside of the one in front of it, down to the last of `vars`. If they are all
/// of them (`exactly`), in their order.
fn chain<'f>(top: &'f For, vars: &[Var], exactly: bool) -> Result<Vec<&'f For>, Diagnostic> {
    let mut chain = vec![top];
    let is_missing = |chain: &[&For]| vars.iter().find(|var| !chain.iter().any(|run| run.var == **var)).cloned();
    while let Some(missing) = is_missing(&chain) {
        let last = chain[chain.len() - 1];
        let StmtKind::For(next) = &last.body.kind else {
            let message = format!("`{missing}` is not directly inside of `{}`", last.var);
            return Err(fault(message, "name loops that have nothing but each other between them"));
        };
        chain.push(next);
    }
    if exactly && chain.iter().map(|run| &run.var).ne(vars) {
        let names: Vec<&str> = chain.iter().map(|run| run.var.name()).collect();
        return Err(fault("the loops are not given in their order", format!("they are {}", names.join(", "))));
    }
    if let Some(run) = chain.iter().find(|run| chain.iter().any(|other| depends(run, &other.var)) && exactly) {
        return Err(fault(format!("the range of `{}` depends on another one of the loops", run.var), "fuse others"));
    }
    Ok(chain)
}

fn fused(chain: &[&For], ranges: &tilewright_algebra::Ranges) -> Result<(Var, Stmt, Renamed), Diagnostic> {
    let Fused { var, extent, forward, number } = Fused::of(chain, ranges)?;
    let (first, last) = (chain[0], chain[chain.len() - 1]);
    let stmt = loop_of(&var, extent, first, replaced(&last.body, &forward, &[]));
    Ok((var.clone(), stmt, Renamed { forward, back: Substitution::new([&var], [number]) }))
}

/// The loops of a chain, with some of them in another order.
fn reordered(chain: &[&For], vars: &[Var]) -> Result<Stmt, Diagnostic> {
    let after = ordered(chain, vars)?;
    let last = chain.last().map_or_else(|| Stmt::seq(Vec::new()), |run| run.body.clone());
    Ok(around(&after, last))
}
