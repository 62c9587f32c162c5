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

use tilewright_ir::{AxisKind, BlockAxis, Buffer, Expr, ForKind, PrimFunc, Stmt, StmtKind, Var};

use super::domain::{allocates, loops_around};
use super::work::{Touched, Work, beginning, is_part};
use super::{Placed, declared, has_allreduce, same};
use crate::judge::{Decision, Judge, all_of, suspected};
use crate::lanes::renamed;
use crate::path::{Path, Step};

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
        is_part(other.stmt, self.parts.body)
    }

    /// What the statement of an instance does.
    pub(super) fn work(&self) -> Work {
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
        self.around_memory(|_| true)
    }

    /// The same as if all threads and groups shared one memory, as it may stand in the text: loops over them do not count.
    pub(super) fn in_memory_of_text(&self) -> usize {
        self.around_memory(|var| !matches!(self.loops.kinds.get(var), Some(ForKind::ThreadBinding(_))))
    }

    fn around_memory(&self, counts: impl Fn(&Var) -> bool) -> usize {
        let depth = |touched: &Touched| {
            let around = loops_around(&self.func.body, &touched.buffer);
            let is_around = |step: &Step| looped(step).is_some_and(|var| around.contains(var) && counts(var));
            self.path.steps.iter().rposition(is_around).map_or(0, |at| at + 1)
        };
        self.work().written().map(depth).min().unwrap_or(0).max(self.outside)
    }

    /// Instances that differ in an axis that is not reduced initialise different elements.
    pub(super) fn elements_apart(&self, judge: &Judge) -> Decision {
        let work = self.work();
        let empty = || Path { steps: std::iter::empty().collect(), ..self.path.clone() };
        suspected(all_of(work.begun.iter().filter(|begun| begun.places(self.others()).is_none()).map(|begun| {
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
        let first = self.block.is_first();
        let begin = first.as_ref().and_then(|first| beginning(self.parts.body, first));
        let own = begin.map(|begin| {
            let temporary = declared(begin);
            let mut own = declared(self.parts.body);
            own.retain(|buffer| !temporary.iter().any(|other| other.aliases(buffer)));
            own
        });
        let is_own = |buffer: &&Buffer| own.iter().flatten().any(|own| own.aliases(buffer));
        if let Some(buffer) = begin.into_iter().flat_map(stored).find(is_own) {
            return Err(format!("each instance has memory of its own for `{}`", buffer.name));
        }
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
            && self.writes_apart(&work)
            && work.touched().all(|touched| self.is_plain(&touched.buffer))
            && work.begun_from.iter().all(is_settled)
            && work.loads.iter().all(|load| is_settled(load) || work.is_begun(load))
    }

    /// Whether instances that differ in an axis that is not reduced write different elements.
    fn writes_apart(&self, work: &Work) -> bool {
        work.written().all(|store| {
            let places = store.places(self.others());
            let mut others = work.written().filter(|other| other.buffer.aliases(&store.buffer));
            places.is_some() && others.all(|other| other.places(self.others()) == places)
        })
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
        stores.all(|store| store.is_same(first) && !store.may_not_run) && first.places(self.others()).is_some()
    }
}

/// The variable of a loop.
pub(super) fn looped(step: &Step) -> Option<&Var> {
    match step {
        Step::Loop(var, ..) => Some(var),
        Step::Let(..) | Step::Guard(..) => None,
    }
}

/// The buffer of each store in a statement.
fn stored(stmt: &Stmt) -> Vec<&Buffer> {
    let mut found = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind {
            found.push(buffer);
        }
    });
    found
}

/// The number of stores to some memory.
fn n_stores(stmt: &Stmt, memory: &Buffer) -> usize {
    stored(stmt).into_iter().filter(|buffer| buffer.aliases(memory)).count()
}
