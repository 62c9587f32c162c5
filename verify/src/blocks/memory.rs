//! When the axes of a block are enough to tell its instances apart: what that asks of the memory that the block reads and writes.
//!
//! An instance is named by the values of the axes of its block. What is claimed of instances is right only if nothing else decides what
//! they do:
//!
//! | claim | what is asked here |
//! |---|---|
//! | all | no memory that the function writes decides which instances run ([`Placed::decided`]) |
//! | all values of a sum | the instances of the sum have one memory ([`Placed::in_one_memory`]) |
//! | initialisation | the elements that are updated are those that are initialised ([`Placed::begins`]) |
//! | a tile computes instances again | they compute the same again ([`Placed::repeats`]) |
//!
//! An instance computes the same again if it depends on the loops through its axes alone, if it alone writes its elements, and if it reads
//! nothing but memory that the loops around it do not write, the element that it has initialised, and memory that another such block has
//! computed, one element for each instance. A view, or memory that is seen through one, is taken for no such memory.

use std::cell::RefCell;
use std::collections::HashMap;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{AxisKind, BlockAxis, Buffer, Expr, PrimFunc, Stmt, StmtKind, Var};

use super::domain::{allocates, loops_around};
use super::{Placed, declared, has_allreduce, same};
use crate::judge::{Decision, Judge, all_of, suspected};
use crate::lanes::renamed;
use crate::path::{Path, Step};
use crate::reorder::is_small;

/// A store or a load in the statement of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Touched {
    buffer: Buffer,
    indices: Vec<Expr>,
    /// The loops of the statement around it: variable, first value and extent.
    loops: Vec<(Var, Expr, Expr)>,
    /// Whether a condition of the statement may leave it out.
    may_not_run: bool,
    /// Whether an index, or a loop, depends on a name that the statement gives to a value.
    is_named: bool,
}

impl Touched {
    /// The indices, and the ranges of the loops around.
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.indices.iter().chain(self.loops.iter().flat_map(|(_, min, extent)| [min, extent]))
    }

    /// Whether two accesses touch the same elements, one after the other: their loops have the same ranges, and their indices are the
    /// same in the same iteration.
    fn is_same(&self, other: &Self) -> bool {
        let used = |touched: &Self| -> Vec<(Var, Expr, Expr)> {
            let vars: Vec<Var> = touched.indices.iter().flat_map(Expr::vars).collect();
            touched.loops.iter().filter(|(var, ..)| vars.contains(var)).cloned().collect()
        };
        let (ours, theirs) = (used(self), used(other));
        if self.buffer != other.buffer || ours.len() != theirs.len() {
            return false;
        }
        let mut renames = Substitution::default();
        for ((our, our_min, our_extent), (their, min, extent)) in ours.iter().zip(&theirs) {
            if our.dtype() != their.dtype() || renames.apply(min) != *our_min || renames.apply(extent) != *our_extent {
                return false;
            }
            renames.insert(their, Expr::from(our));
        }
        self.indices.len() == other.indices.len()
            && self.indices.iter().zip(&other.indices).all(|(one, two)| *one == renames.apply(two))
    }

    /// Whether the loops that the element does not depend on have an iteration.
    fn runs_at_least_once(&self) -> bool {
        let is_used = |var: &Var| self.indices.iter().any(|index| index.vars().contains(var));
        self.loops.iter().all(|(var, _, extent)| is_used(var) || extent.as_const_int().is_some_and(|extent| extent > 0))
    }

    /// Whether each of these axes is an index of the element as it is.
    fn has_each<'b>(&self, mut axes: impl Iterator<Item = &'b BlockAxis>) -> bool {
        let is_index = |var: &Var| self.indices.iter().any(|index| matches!(index, Expr::Var(own) if own == var));
        let is_fixed = |axis: &BlockAxis| axis.extent.as_const_int() == Some(1) && axis.min.as_const_int().is_some();
        !self.is_named && axes.all(|axis| is_fixed(axis) || is_index(&axis.var))
    }
}

/// The loops, names and conditions around a part of the statement of an instance.
#[derive(Clone, Default)]
struct Around {
    loops: Vec<(Var, Expr, Expr)>,
    /// The values of names, as far as they read no memory.
    names: Substitution,
    may_not_run: bool,
    /// Whether the part belongs to `T.init`.
    is_init: bool,
}

impl Around {
    fn touched(&self, buffer: &Buffer, indices: &[Expr]) -> Touched {
        Touched {
            buffer: buffer.clone(),
            indices: indices.iter().map(|index| self.names.apply(index)).collect(),
            loops: self.loops.clone(),
            may_not_run: self.may_not_run,
            is_named: false,
        }
    }
}

/// What the statement of an instance does to memory that it does not declare itself.
#[derive(Default)]
pub(super) struct Work {
    /// The stores of `T.init`.
    begun: Vec<Touched>,
    /// The loads of `T.init`.
    begun_from: Vec<Touched>,
    stores: Vec<Touched>,
    loads: Vec<Touched>,
    /// Whether something is evaluated that is no store: what it reads and writes is not known.
    has_calls: bool,
}

impl Work {
    /// What a statement does; what stands below `first`, the condition of the first instance of a sum, belongs to `T.init`.
    fn of(body: &Stmt, first: Option<&Expr>) -> Self {
        let mut found = Self::default();
        let begin = first.and_then(|first| beginning(body, first));
        found.collect(body, begin, &Around::default());
        let mut names = Vec::new();
        body.walk(&mut |stmt| {
            if let StmtKind::Let { var, .. } = &stmt.kind {
                names.push(var.clone());
            }
        });
        let own = declared(body);
        for list in [&mut found.begun, &mut found.begun_from, &mut found.stores, &mut found.loads] {
            list.retain(|touched| !own.iter().any(|buffer| buffer.aliases(&touched.buffer)));
            for touched in list {
                let is_named = touched.exprs().flat_map(Expr::vars).any(|var| names.contains(&var));
                touched.is_named = is_named;
            }
        }
        found
    }

    fn collect(&mut self, stmt: &Stmt, begin: Option<&Stmt>, around: &Around) {
        let is_begin = begin.is_some_and(|begin| std::ptr::eq(begin, stmt));
        // A name in front of `T.init` is for both parts.
        let is_before = around.is_init || begin.is_some();
        // The condition of `T.init` reads nothing.
        if !is_begin {
            for expr in stmt.exprs() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, indices, .. } = part {
                        let list = if is_before { &mut self.begun_from } else { &mut self.loads };
                        list.push(around.touched(buffer, indices));
                    }
                });
            }
        }
        match &stmt.kind {
            StmtKind::Store { buffer, indices, .. } => {
                let list = if around.is_init { &mut self.begun } else { &mut self.stores };
                list.push(around.touched(buffer, indices));
            }
            StmtKind::Evaluate(expr) => self.has_calls |= expr.as_const_int().is_none(),
            StmtKind::For(inner) => {
                let mut inside = around.clone();
                let [min, extent] = [&inner.min, &inner.extent].map(|expr| around.names.apply(expr));
                inside.loops.push((inner.var.clone(), min, extent));
                self.collect(&inner.body, None, &inside);
            }
            StmtKind::If { then_body, .. } if is_begin => {
                self.collect(then_body, None, &Around { is_init: true, ..around.clone() });
            }
            StmtKind::If { then_body, else_body, .. } => {
                for arm in std::iter::once(then_body).chain(else_body) {
                    self.collect(arm, None, &Around { may_not_run: true, ..around.clone() });
                }
            }
            StmtKind::Let { var, value, body } => {
                let (mut inside, value) = (around.clone(), around.names.apply(value));
                if !value.reads_memory() && is_small(&value) {
                    inside.names.insert(var, value);
                }
                self.collect(body, begin, &inside);
            }
            _ => {
                for (at, child) in stmt.children().enumerate() {
                    self.collect(child, begin.filter(|_| at == 0), around);
                }
            }
        }
    }

    /// Whether `T.init` gives the element its first value.
    fn is_begun(&self, touched: &Touched) -> bool {
        self.begun
            .iter()
            .any(|begun| !begun.may_not_run && !begun.is_named && begun.runs_at_least_once() && begun.is_same(touched))
    }

    /// All stores and loads.
    fn touched(&self) -> impl Iterator<Item = &Touched> {
        self.written().chain(&self.begun_from).chain(&self.loads)
    }

    /// All stores.
    fn written(&self) -> impl Iterator<Item = &Touched> {
        self.begun.iter().chain(&self.stores)
    }
}

/// What stands for `T.init`: the first statement, below the condition of the first instance of a sum.
fn beginning<'s>(stmt: &'s Stmt, first: &Expr) -> Option<&'s Stmt> {
    match &stmt.kind {
        StmtKind::If { cond, else_body: None, .. } if cond == first => Some(stmt),
        StmtKind::If { .. } | StmtKind::For(_) => None,
        _ => stmt.children().next().and_then(|child| beginning(child, first)),
    }
}

/// All blocks of a function, and which of them compute the same when they run again, as far as that was asked.
pub(super) struct Blocks<'a> {
    pub(super) all: Vec<Placed<'a>>,
    repeating: RefCell<HashMap<*const Stmt, bool>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(all: Vec<Placed<'a>>) -> Self {
        Self { all, repeating: RefCell::default() }
    }

    /// The innermost blocks that write some memory, in program order. `None` if another statement writes it.
    fn writers(&self, buffer: &Buffer, func: &PrimFunc) -> Option<Vec<&Placed<'a>>> {
        let writing: Vec<_> =
            self.all.iter().map(|block| (block, n_stores(block.parts.body, buffer))).filter(|(_, n)| *n > 0).collect();
        let is_innermost = |block: &Placed<'_>| !writing.iter().any(|(other, _)| block.contains(other));
        let (innermost, n): (Vec<_>, Vec<usize>) =
            writing.iter().copied().filter(|(block, _)| is_innermost(block)).unzip();
        (n.iter().sum::<usize>() == n_stores(&func.body, buffer)).then_some(innermost)
    }
}

impl Placed<'_> {
    /// Whether another block is a part of this one.
    fn contains(&self, other: &Placed<'_>) -> bool {
        let mut found = false;
        self.parts.body.walk(&mut |stmt| found |= std::ptr::eq(stmt, other.stmt));
        found
    }

    /// What the statement of an instance does.
    fn work(&self) -> Work {
        let first = self.block.is_first().filter(|_| self.block.has_init);
        Work::of(self.parts.body, first.as_ref())
    }

    /// Nothing that decides which instances run, in the steps from `first` on, reads memory that the function writes.
    pub(super) fn decided(&self, first: usize) -> Result<(), String> {
        let steps = self.path.steps.iter().skip(first).flat_map(Step::exprs);
        let mut all =
            self.parts.bindings.iter().copied().chain(self.parts.predicate).chain(self.domains()).chain(steps);
        match all.find(|expr| self.changes(expr)) {
            Some(expr) => Err(format!("`{expr}` is read from memory that changes")),
            None => Ok(()),
        }
    }

    /// No loop from step `round` on has memory of its own for what the block writes: the instances of a sum go on with each other.
    pub(super) fn in_one_memory(&self, round: usize) -> Result<(), String> {
        let own: Vec<&Var> = self.path.steps.iter().skip(round).filter_map(looped).collect();
        let work = self.work();
        let around = work.written().flat_map(|touched| loops_around(&self.func.body, &touched.buffer));
        match around.into_iter().find(|var| own.contains(&var)) {
            Some(var) => Err(format!("each iteration of loop {var} has memory of its own")),
            None => Ok(()),
        }
    }

    /// The number of steps outside of which nobody sees what the block writes: those up to the innermost loop that is around the allocation
    /// of all of it, or to the outer block.
    pub(super) fn in_memory(&self) -> usize {
        let depth = |touched: &Touched| {
            let around = loops_around(&self.func.body, &touched.buffer);
            let is_around = |step: &Step| looped(step).is_some_and(|var| around.contains(var));
            self.path.steps.iter().rposition(is_around).map_or(0, |at| at + 1)
        };
        self.work().written().map(depth).min().unwrap_or(0).max(self.outside)
    }

    /// Instances that differ in an axis that is not reduced initialise different elements.
    pub(super) fn elements_apart(&self, judge: &Judge) -> Decision {
        let work = self.work();
        let empty = || Path { steps: std::iter::empty().collect(), ..self.path.clone() };
        suspected(all_of(work.begun.iter().filter(|begun| !begun.has_each(self.others())).map(|begun| {
            let mut own = empty();
            let axes = self.block.axes.iter().map(|axis| (&axis.var, &axis.min, &axis.extent));
            let loops = begun.loops.iter().map(|(var, min, extent)| (var, min, extent));
            for (var, min, extent) in axes.chain(loops) {
                own.steps.push(Step::Loop(var.clone(), min.clone(), extent.clone()));
            }
            let (second, renames) = renamed(&own);
            let mut both = empty();
            both.steps.extend(self.path.steps.iter().take(self.outside).cloned());
            both.steps.extend(own.steps.iter().cloned());
            both.steps.extend(second.steps.iter().cloned());
            for index in &begun.indices {
                both.steps.push(Step::Guard(same(index, &renames.apply(index)), true));
            }
            let is_same = |axis: &BlockAxis| same(&Expr::from(&axis.var), &renames.apply(&Expr::from(&axis.var)));
            all_of(self.others().map(|axis| self.holds(judge, &both, &is_same(axis))))
        })))
    }

    /// What the instances of a sum update is what `T.init` has initialised.
    pub(super) fn begins(&self, blocks: &Blocks<'_>) -> Result<(), String> {
        let work = self.work();
        let is_outside = |outer: &&Placed<'_>| {
            let own = declared(outer.parts.body);
            let is_own = |begun: &Touched| own.iter().any(|buffer| buffer.aliases(&begun.buffer));
            outer.counted().next().is_some() && outer.contains(self) && !work.begun.iter().all(is_own)
        };
        if let Some(outer) = blocks.all.iter().find(is_outside) {
            return Err(format!("block {} counts reduced axes around what is initialised", outer.block.name));
        }
        let goes_on =
            |store: &&Touched| work.loads.iter().chain(&work.begun).any(|other| other.buffer.aliases(&store.buffer));
        if let Some(store) = work.stores.iter().filter(goes_on).find(|store| !work.is_begun(store)) {
            let text = Expr::load(&store.buffer, store.indices.clone());
            return Err(format!("`{text}` is updated, and something else is initialised"));
        }
        let moves = |index: &Expr| {
            let is_counted = |var: &Var| self.counted().any(|(axis, _)| axis.var == *var);
            self.changes(index) || index.vars().iter().any(is_counted)
        };
        let is_other =
            |one: &Touched| work.begun.iter().any(|two| two.buffer.aliases(&one.buffer) && !one.is_same(two));
        if let Some(begun) = work.begun.iter().find(|begun| !self.is_plain(&begun.buffer) || is_other(begun)) {
            return Err(format!("which elements of `{}` are initialised is not known", begun.buffer.name));
        }
        match work.begun.iter().flat_map(Touched::exprs).find(|index| moves(index)) {
            Some(index) => Err(format!("the elements that are initialised depend on the reduced axes: `{index}`")),
            None => Ok(()),
        }
    }

    /// Whether an instance that runs again, in another iteration of the loops outside of a round, computes the same again.
    pub(super) fn repeats(&self, blocks: &Blocks<'_>) -> bool {
        let key = std::ptr::from_ref(self.stmt);
        if let Some(known) = blocks.repeating.borrow().get(&key) {
            return *known;
        }
        // What two blocks compute from each other is not known to be the same again.
        blocks.repeating.borrow_mut().insert(key, false);
        let repeats = self.computes_the_same(blocks);
        blocks.repeating.borrow_mut().insert(key, repeats);
        repeats
    }

    fn computes_the_same(&self, blocks: &Blocks<'_>) -> bool {
        let work = self.work();
        if work.has_calls || has_allreduce(self.parts.body) || self.decided(self.outside).is_err() {
            return false;
        }
        if self.loop_of_statement(self.outside).is_some()
            || self.names_of_statement().iter().any(|name| self.changes(name))
        {
            return false;
        }
        if self.loop_behind(self.domains(), self.outside).is_some() {
            return false;
        }
        if !work.begun.is_empty() && self.begins(blocks).is_err() {
            return false;
        }
        let is_settled = |load: &Touched| self.is_settled(&load.buffer, blocks);
        // What another block makes of the same elements may differ from time to time.
        let is_alone = |store: &Touched| {
            let writers = blocks.writers(&store.buffer, self.func).unwrap_or_default();
            matches!(writers.as_slice(), [one] if std::ptr::eq(one.stmt, self.stmt))
        };
        work.written().all(is_alone)
            && work.written().all(|store| store.has_each(self.others()))
            && work.touched().all(|touched| self.is_plain(&touched.buffer))
            && work.begun_from.iter().all(is_settled)
            && work.loads.iter().all(|load| is_settled(load) || work.is_begun(load))
    }

    /// The axes that are not reduced.
    fn others(&self) -> impl Iterator<Item = &BlockAxis> {
        self.block.axes.iter().filter(|axis| axis.kind != AxisKind::Reduce)
    }

    /// A loop, from step `first` on, on which the statement of an instance depends, other than through its axes.
    pub(super) fn loop_of_statement(&self, first: usize) -> Option<&Var> {
        self.loop_behind(&self.names_of_statement(), first)
    }

    /// A loop, from step `first` on, on which some values depend.
    fn loop_behind<'e>(&self, values: impl IntoIterator<Item = &'e Expr>, first: usize) -> Option<&Var> {
        let behind = self.behind(values);
        self.path.steps.iter().skip(first).filter_map(looped).find(|var| behind.contains(var))
    }

    /// The first value and the extent of each axis.
    fn domains(&self) -> impl Iterator<Item = &Expr> {
        self.block.axes.iter().flat_map(|axis| [&axis.min, &axis.extent])
    }

    /// The names that the statement of an instance uses.
    fn names_of_statement(&self) -> Vec<Expr> {
        let mut vars = Vec::new();
        self.parts.body.walk(&mut |stmt| vars.extend(stmt.exprs().flat_map(Expr::vars)));
        // A view may have its place, its strides or its shape from a loop.
        for touched in self.work().touched() {
            let buffer = &touched.buffer;
            let place = buffer.shape.iter().chain(buffer.strides.iter().flatten()).chain([&buffer.elem_offset]);
            vars.extend(place.flat_map(Expr::vars));
        }
        vars.iter().map(Expr::from).collect()
    }

    /// Whether no statement in the outermost loop around this block, in the block around it, writes some memory.
    fn is_written_outside(&self, memory: &Buffer) -> bool {
        let Some(outermost) = self.path.steps.iter().skip(self.outside).find_map(looped) else { return false };
        let mut is_inside = false;
        self.func.body.walk(&mut |stmt| {
            if let StmtKind::For(inner) = &stmt.kind {
                is_inside |= inner.var == *outermost && n_stores(&inner.body, memory) > 0;
            }
        });
        !is_inside
    }

    /// Whether the elements of a buffer are its own: no view, and none of it, has the same memory.
    fn is_plain(&self, buffer: &Buffer) -> bool {
        let mut seen = self.func.buffers().into_iter().filter(|other| other.aliases(buffer));
        buffer.strides.is_none() && seen.all(|other| other == *buffer)
    }

    /// Whether memory has, wherever this block reads it, values that are the same each time: nobody writes it, or one block computes each
    /// element in one instance, which computes the same each time.
    fn is_settled(&self, buffer: &Buffer, blocks: &Blocks<'_>) -> bool {
        if self.path.constant.contains(buffer) || self.is_written_outside(buffer) {
            return true;
        }
        let writers = blocks.writers(buffer, self.func).unwrap_or_default();
        let [writer] = writers.as_slice() else { return false };
        if !allocates(&self.func.body, buffer) {
            return false;
        }
        let round = writer.path.steps.iter().skip(writer.ordering()).filter_map(looped);
        let is_inside = |var: &Var| self.path.steps.iter().filter_map(looped).any(|own| own == var);
        let outer = |block: &Placed<'_>| block.path.steps.iter().take(writer.outside).cloned().collect::<Vec<_>>();
        // A reader among the instances of a sum finds what it has come to so far.
        let sees_parts = writer.counted().next().is_some() && round.into_iter().any(is_inside);
        let has_scan = writer.block.axes.iter().any(|axis| axis.kind == AxisKind::Scan);
        let is_whole = outer(writer) == outer(self) && !sees_parts && !has_scan;
        is_whole && writer.has_one_element_each(buffer) && writer.repeats(blocks)
    }

    /// Whether an instance of the spatial axes has an element of memory for itself, which it always writes.
    fn has_one_element_each(&self, buffer: &Buffer) -> bool {
        let work = self.work();
        let mut stores = work.written().filter(|touched| touched.buffer.aliases(buffer));
        let Some(first) = work.written().find(|touched| touched.buffer.aliases(buffer)) else { return false };
        stores.all(|store| store.is_same(first) && !store.may_not_run) && first.has_each(self.others())
    }
}

/// The variable of a loop.
pub(super) fn looped(step: &Step) -> Option<&Var> {
    match step {
        Step::Loop(var, ..) => Some(var),
        Step::Let(..) | Step::Guard(..) => None,
    }
}

/// The number of stores to some memory.
fn n_stores(stmt: &Stmt, memory: &Buffer) -> usize {
    let mut found = 0;
    stmt.walk(&mut |stmt| {
        found += usize::from(matches!(&stmt.kind, StmtKind::Store { buffer, .. } if buffer.aliases(memory)));
    });
    found
}
