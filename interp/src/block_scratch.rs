//! The state of a nest that runs a block of iterations at a time: vector registers, and the cells of each stream.
//!
//! A phase with loops of its own runs a block of the outer iterations in each of their iterations in turn:
//!
//! ```text
//! for j in 900: for k in 90: C[j] = C[j] + A[k] * B[k, j]      lanes: 450 iterations of j; turns: k
//!                                                              B: cells k * 900 + j, in runs of 450 that move by 900
//! ```
//!
//! The runs of a stream are found once for a block; from turn to turn only a distance is added to their cells.

use std::ops::Range;

use crate::block_loops::{Parts, find_cells};
use crate::block_ops::Floats;
use crate::block_plan::{AccessEvent, AccessRef, BLOCK, Gather, Kind, Store, VecReg};
use crate::block_strips::{FAR, row_of};
use crate::code::{Phase, VectorizedNest};
use crate::compile::MAX_NEST;
use crate::cursor::{Cursor, Places, Run};
use crate::exec::Frame;
use crate::num::f32_of;

/// The length of blocks is a multiple of this where it can be.
pub(crate) const LANES: u64 = 16;

/// Buffers that the plans of a thread use, one nest at a time; kept to save allocations.
#[derive(Default)]
pub(crate) struct BlockScratch {
    /// The state of each phase.
    pub(crate) phases: Vec<PhaseScratch>,
    pub(crate) staging: Staging,
}

impl Clone for BlockScratch {
    /// An empty one: the contents are meaningful only while a plan runs.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Buffers that one operation uses.
#[derive(Default)]
pub(crate) struct Staging {
    /// The cells of the gather that is being executed.
    pub(crate) cells: Vec<i64>,
    /// Elements on their way to and from memory, and the running values of a reduction.
    pub(crate) wide: [Vec<u64>; 2],
    pub(crate) floats: Vec<f32>,
    /// The running values before a turn.
    pub(crate) saved: Vec<f32>,
    /// Where the mask of a reduction was not 0 in some turn.
    pub(crate) touched: Vec<u64>,
}

/// The state of a phase.
#[derive(Default)]
pub(crate) struct PhaseScratch {
    /// The vector registers of 64 bits, [`BLOCK`] values each.
    pub(crate) values: Vec<Vec<u64>>,
    /// Those of floats.
    pub(crate) floats: Vec<Vec<f32>>,
    /// Where the values of each of those are.
    pub(crate) sources: Vec<Source>,
    /// The cells of each stream.
    pub(crate) streams: Vec<Affine>,
    /// Whether all gathers are streams here, so that nobody needs their indices.
    pub(crate) skips_indices: bool,
    /// The loop variables that the plan reads, as sequences of values.
    counters: Vec<(VecReg, Affine)>,
    /// The number of iterations in which the elements are in a row, if blocks run strip by strip.
    pub(crate) row: Option<u64>,
    /// Whether all that the nest stores is marked as defined when it is done: it stores to neighbours, which nobody reads before.
    pub(crate) is_marked_later: bool,
    /// Whether the elements of the nest exceed the caches.
    pub(crate) is_far: bool,
    /// How a block is a box of iterations; `None` if it is any run of iterations in program order.
    boxes: Option<Boxes>,
    /// Extent and current iteration of each loop that runs in turn, outermost first.
    turns: Vec<(u64, u64)>,
}

/// Where the values of a register of floats are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Register,
    /// One number for all iterations.
    Scalar(f32),
    /// In memory, where a stream has them in a row.
    Memory(u32),
}

/// A number that each iteration of each loop changes by a constant: a cell, or a loop variable.
#[derive(Default)]
pub(crate) struct Affine {
    /// Its values in all iterations.
    whole: Cursor,
    /// Its values in the first turn.
    lanes: Cursor,
    /// Number of iterations of the outermost loop.
    outermost: u64,
    /// Its value in the first iteration, and what an iteration of each loop adds.
    first: i64,
    steps: [i64; MAX_NEST],
    /// For each loop that runs in turn, what is added when it goes on and the loops inside it begin again.
    moves: [i64; MAX_NEST],
    /// Whether it is the same in every turn.
    is_still: bool,
    /// False for the cells of a guarded stream that is out of bounds somewhere.
    is_known: bool,
    /// The sum of all moves so far: from the start of the nest to the block, and one for each turn since.
    pub(crate) shift: i64,
    /// Its values in the iterations of a block, in the first turn.
    pub(crate) runs: Vec<Run>,
    /// All cells of `runs` as one run of step 1; `None` if they do not lie next to each other.
    row: Option<Run>,
}

/// The iterations `start .. start + len` of the loops of a nest, numbered in program order.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) start: u64,
    pub(crate) len: usize,
}

impl BlockScratch {
    /// Prepares the buffers for a run of the nest, the outermost loop of which has the given first value and extent; `all`
    /// is the number of iterations of its loops. Returns `None` if some iteration's stream is out of bounds or accesses
    /// that must be apart may overlap.
    pub(crate) fn prepare(&mut self, nest: &VectorizedNest, outer: (u64, u64), all: u64, frame: &Frame) -> Option<()> {
        if self.phases.len() < nest.phases.len() {
            self.phases.resize_with(nest.phases.len(), PhaseScratch::default);
        }
        for (state, phase) in self.phases.iter_mut().zip(&nest.phases) {
            state.prepare(nest, phase, outer, all, frame)?;
        }
        let stream = |(phase, number): (usize, u32)| self.phases.get(phase)?.streams.get(number as usize);
        for &[a, b] in &nest.across {
            let (a, b) = (stream(a)?, stream(b)?);
            if !a.whole.is_disjoint_from(&b.whole) && !a.is_the_same_element(b) {
                return None;
            }
        }
        if nest.phases.len() > 1 && !self.may_be_repeated(nest) {
            return None;
        }
        let Staging { cells, wide, floats, saved, touched } = &mut self.staging;
        saved.resize(BLOCK, 0.0);
        touched.resize(BLOCK, 0);
        cells.resize(BLOCK, 0);
        floats.resize(BLOCK, 0.0);
        for values in wide {
            values.resize(BLOCK, 0);
        }
        Some(())
    }

    /// Whether a nest with that many iterations runs strip by strip and stores to ever greater cells.
    pub(crate) fn ascends(&self, nest: &VectorizedNest, all: u64) -> bool {
        let ([phase], Some(state)) = (nest.phases.as_slice(), self.phases.first()) else { return false };
        let cells = |store: &Store| state.streams.get(store.access.stream()? as usize)?.ascending_span(&(0..all));
        state.row.is_some() && phase.plan.stores.iter().all(|store| cells(store).is_some())
    }

    /// Marks what a nest has stored as defined, if its blocks have not.
    pub(crate) fn mark(&self, nest: &VectorizedNest, frame: &Frame) {
        for (state, phase) in self.phases.iter().zip(&nest.phases).filter(|(state, _)| state.is_marked_later) {
            for (slot, row) in state.rows(phase).flatten() {
                frame.memories.get(slot).and_then(Option::as_ref).map(|memory| memory.mark(Places::of(&row)));
            }
        }
    }

    /// Whether a block of several phases may be abandoned in the middle and repeated from its start: what is read of memory that
    /// the nest writes, an iteration has overwritten itself before.
    fn may_be_repeated(&self, nest: &VectorizedNest) -> bool {
        let all = nest.phases.iter().zip(&self.phases).flat_map(|(phase, state)| {
            let reduced = phase.plan.reduce.as_ref().map(|reduce| reduce.access);
            phase.plan.events.iter().map(move |event| {
                let cells = event.access.stream().and_then(|stream| state.streams.get(stream as usize));
                (event, cells, !event.write || reduced == Some(event.access))
            })
        });
        let all: Vec<(&AccessEvent, Option<&Affine>, bool)> = all.collect();
        let is_good = |(at, (event, cells, reads)): (usize, &(&AccessEvent, Option<&Affine>, bool))| {
            let mut written = all.iter().filter(|(other, ..)| other.write && other.slot == event.slot);
            let is_apart = |other: Option<&Affine>| match (*cells, other) {
                (Some(own), Some(other)) => own.whole.is_disjoint_from(&other.whole),
                _ => false,
            };
            let overwrites = |(other, at, _): &(&AccessEvent, Option<&Affine>, bool)| {
                other.always && at.zip(*cells).is_some_and(|(other, own)| other.is_the_same_element(own))
            };
            !reads || written.all(|(_, other, _)| is_apart(*other)) || all.iter().take(at).any(overwrites)
        };
        all.iter().enumerate().all(is_good)
    }
}

impl PhaseScratch {
    /// Prepares the buffers for a phase. Returns `None` as [`BlockScratch::prepare`] does.
    fn prepare(
        &mut self,
        nest: &VectorizedNest,
        phase: &Phase,
        outer: (u64, u64),
        all: u64,
        frame: &Frame,
    ) -> Option<()> {
        let loops = Parts::of(nest, phase, outer)?;
        self.streams.resize_with(phase.streams.len(), Affine::default);
        for (stream, cells) in phase.streams.iter().zip(&mut self.streams) {
            cells.is_known = find_cells(stream, &loops, frame, cells).is_some();
            if !cells.is_known {
                // It stands for a stream that is out of bounds.
                stream.is_guarded.then_some(())?;
                cells.set(0, 0, &loops, &[0; MAX_NEST])?;
            }
        }
        // With shorter runs, boxes of the inner loops, in an order of their own, are faster.
        if nest.is_long()
            && !self.streams.iter().all(|cells| cells.is_known && cells.lanes.run_length() >= BLOCK as u64)
        {
            return None;
        }
        let is_known = |gather: &Gather| gather.stream.is_some_and(|number| self.known(number).is_some());
        self.skips_indices = phase.plan.gathers.iter().all(is_known);
        self.row = if nest.phases.len() == 1 { row_of(phase, &self.streams, frame) } else { None };
        self.is_far = all >= FAR;
        self.is_marked_later = self.row.is_some() && self.rows(phase).all(|row| row.is_some());
        self.boxes = (nest.boxes() && self.row.is_none())
            .then(|| Boxes::new(&loops, outer.1, &self.streams, self.stores_apart(phase)));
        let stream = |number: u32| self.streams.get(number as usize);
        for &(a, b) in &phase.plan.apart {
            let (first, second) = (stream(a)?, stream(b)?);
            let apart = if a == b { first.whole.is_injective() } else { first.whole.is_disjoint_from(&second.whole) };
            if !apart {
                return None;
            }
        }
        if let (false, Some(reduce)) = (phase.turns.is_empty(), &phase.plan.reduce) {
            // Each iteration of a block reduces to an element of its own.
            let target = stream(reduce.access.stream()?)?;
            if !target.is_still || !target.lanes.is_injective() {
                return None;
            }
        }
        self.turns.clear();
        self.turns.extend(loops.turns().iter().map(|&extent| (extent, 0)));
        self.prepare_registers(phase, usize::try_from(all).unwrap_or(BLOCK).min(BLOCK), frame);
        self.counters.resize_with(phase.plan.counters.len(), Default::default);
        for (&(vec_reg, level), (reg, counter)) in phase.plan.counters.iter().zip(&mut self.counters) {
            *reg = vec_reg;
            loops.set_variable(level, counter)?;
        }
        Some(())
    }

    /// For each store its memory slot and its cells in all iterations, if they are neighbours.
    fn rows(&self, phase: &Phase) -> impl Iterator<Item = Option<(usize, Run)>> {
        phase.plan.stores.iter().map(|store| {
            let cells = self.streams.get(store.access.stream()? as usize)?;
            Some((cells.slot(), cells.whole.row()?))
        })
    }

    /// Whether no store writes an element in two iterations of the nest: then their order does not matter.
    fn stores_apart(&self, phase: &Phase) -> bool {
        let cells = |access: AccessRef| self.streams.get(access.stream()? as usize);
        phase.plan.stores.iter().all(|store| cells(store.access).is_some_and(|cells| cells.lanes.is_injective()))
    }

    /// Makes the vector registers and fills those that hold one value.
    fn prepare_registers(&mut self, phase: &Phase, used: usize, frame: &Frame) {
        let kinds = &phase.plan.kinds;
        if self.values.len() < kinds.len() {
            self.values.resize(kinds.len(), Vec::new());
            self.floats.resize(kinds.len(), Vec::new());
        }
        for ((kind, values), floats) in kinds.iter().zip(&mut self.values).zip(&mut self.floats) {
            match kind {
                Kind::Wide => values.resize(BLOCK, 0),
                Kind::Float => floats.resize(BLOCK, 0.0),
            }
        }
        self.sources.clear();
        self.sources.resize(kinds.len(), Source::Register);
        for &(vec_reg, reg) in &phase.plan.uniforms {
            let (at, value) = (vec_reg as usize, frame.registers[reg as usize]);
            match phase.plan.kind(vec_reg) {
                Kind::Wide => self.values[at][..used].fill(value),
                Kind::Float if phase.plan.is_operand(vec_reg) => self.sources[at] = Source::Scalar(f32_of(value)),
                Kind::Float => self.floats[at][..used].fill(f32_of(value)),
            }
        }
        if let Some(zero) = phase.plan.zero {
            self.values[zero as usize][..used].fill(0);
        }
    }

    /// The cells of a stream, if it is in bounds.
    pub(crate) fn known(&self, stream: u32) -> Option<&Affine> {
        self.streams.get(stream as usize).filter(|stream| stream.is_known)
    }

    /// The values of a register of floats in a block of `len` iterations.
    pub(crate) fn operand<'a>(&'a self, vec_reg: VecReg, len: usize, frame: &'a Frame) -> Floats<'a> {
        let at = vec_reg as usize;
        let in_register = || self.floats.get(at).and_then(|values| values.get(..len)).unwrap_or_default();
        match self.sources.get(at) {
            Some(&Source::Scalar(value)) => Floats::One(value),
            Some(&Source::Memory(stream)) => Floats::Each(
                self.streams.get(stream as usize).and_then(|stream| floats_of(stream, frame)).unwrap_or_default(),
            ),
            Some(Source::Register) | None => Floats::Each(in_register()),
        }
    }

    /// Goes to a block, in the first turn. `None` if its cells are not known.
    pub(crate) fn start(&mut self, block: Block) -> Option<()> {
        for (_, at) in &mut self.turns {
            *at = 0;
        }
        let affines = self.streams.iter_mut().chain(self.counters.iter_mut().map(|(_, affine)| affine));
        match &mut self.boxes {
            None => affines.for_each(|affine| {
                (affine.shift, affine.row) = (0, None);
                affine.lanes.runs(block.start, block.len, &mut affine.runs);
            }),
            Some(boxes) => {
                let start = i64::try_from(block.start / boxes.inner).ok()?;
                let count = block.len as u64 / boxes.inner;
                let same = std::mem::replace(&mut boxes.count, count) == count;
                for affine in affines {
                    affine.shift = affine.steps[0].wrapping_mul(start);
                    if !same {
                        let cursor = boxes.cursor(affine, count)?;
                        cursor.runs(0, block.len, &mut affine.runs);
                        // One run is as good.
                        affine.row = if affine.runs.len() > 1 { cursor.row() } else { None };
                    }
                }
            }
        }
        self.count(true);
        Some(())
    }

    /// Goes to the next turn; false if that was the last one.
    pub(crate) fn next_turn(&mut self) -> bool {
        for (number, (extent, at)) in self.turns.iter_mut().enumerate().rev() {
            *at += 1;
            if *at == *extent {
                *at = 0;
                continue;
            }
            for affine in self.streams.iter_mut().chain(self.counters.iter_mut().map(|(_, affine)| affine)) {
                affine.shift = affine.shift.wrapping_add(affine.moves.get(number).copied().unwrap_or(0));
            }
            self.count(false);
            return true;
        }
        false
    }

    /// Writes the loop variables to their vector registers: all of them, or those that a turn changes.
    fn count(&mut self, all: bool) {
        for (reg, counter) in &self.counters {
            if counter.is_still && !all {
                continue;
            }
            let Some(values) = self.values.get_mut(*reg as usize) else { continue };
            for run in &counter.runs {
                let mut value = run.first.wrapping_add(counter.shift);
                for to in values.iter_mut().skip(run.at).take(run.len) {
                    *to = value.cast_unsigned();
                    value = value.wrapping_add(run.step);
                }
            }
        }
    }
}

/// The elements of a stream, if they lie in a row as `float32` that nobody writes.
pub(crate) fn floats_of<'f>(stream: &Affine, frame: &'f Frame) -> Option<&'f [f32]> {
    let [run @ Run { step: 1, .. }] = stream.runs.as_slice() else { return None };
    frame.memories.get(stream.slot())?.as_deref()?.fixed_floats(run, stream.shift)
}

impl Affine {
    /// Makes it the number that starts at `first` and that an iteration of each of the loops changes by a step.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, first: i64, loops: &Parts, steps: &[i64; MAX_NEST]) -> Option<()> {
        let pairs = loops.all().iter().copied().zip(steps.iter().copied());
        self.outermost = loops.extents[0];
        (self.first, self.steps, self.moves, self.shift) = (first, *steps, [0; MAX_NEST], 0);
        self.whole.set(slot, first, pairs.clone())?;
        self.lanes.set(slot, first, pairs.clone().take(loops.lanes))?;
        let mut inside = 0i64;
        for (number, (extent, step)) in pairs.enumerate().skip(loops.lanes).rev() {
            *self.moves.get_mut(number - loops.lanes)? = step.checked_sub(inside)?;
            inside = inside.checked_add(step.checked_mul(i64::try_from(extent - 1).ok()?)?)?;
        }
        self.is_still = self.moves.iter().all(|&step| step == 0);
        Some(())
    }

    /// The number of iterations in which its cells are neighbours or one cell; `None` if they are neither.
    pub(crate) fn row_length(&self) -> Option<u64> {
        (self.is_known && matches!(self.lanes.run_step(), 0 | 1)).then(|| self.lanes.run_length())
    }

    /// The cells of the block.
    pub(crate) fn places(&self) -> Places<'_> {
        Places { runs: &self.runs, shift: self.shift, row: self.row.as_ref() }
    }

    /// The least and the greatest value in some iterations of the outermost loop.
    pub(crate) fn span_of(&self, iterations: Range<u64>) -> Option<(i64, i64)> {
        let step = self.steps.first()?;
        let reach = |count: u64| i64::try_from(count).ok()?.checked_mul(step.checked_abs()?);
        let (before, behind) = (reach(iterations.start)?, reach(self.outermost.checked_sub(iterations.end)?)?);
        let (low, high) = self.whole.span();
        Some(if *step >= 0 { (low + before, high - behind) } else { (low + behind, high - before) })
    }

    /// The least and the greatest value in some iterations of the nest in program order, if its values ascend.
    pub(crate) fn ascending_span(&self, iterations: &Range<u64>) -> Option<(i64, i64)> {
        self.lanes.ascending_span(iterations)
    }

    /// The memory slot of the cells.
    pub(crate) fn slot(&self) -> usize {
        self.lanes.slot
    }

    /// Writes the values in the iterations of the block to a list.
    pub(crate) fn list(&self, values: &mut [i64]) {
        for run in &self.runs {
            let mut value = run.first.wrapping_add(self.shift);
            for to in values.iter_mut().skip(run.at).take(run.len) {
                *to = value;
                value = value.wrapping_add(run.step);
            }
        }
    }

    /// Whether both are one cell in the same iteration of the nest and different cells in different ones, in all turns.
    fn is_the_same_element(&self, other: &Self) -> bool {
        self.is_still && other.is_still && self.lanes == other.lanes && self.lanes.is_injective()
    }
}

/// Blocks of some iterations of the outermost loop with all those of the loops inside it, numbered in an order of the loops in
/// which the runs of streams are long.
struct Boxes {
    /// Number of iterations for one of the outermost loop.
    inner: u64,
    /// The iterations of the outermost loop in the block that the runs are for.
    count: u64,
    /// The loops in their order, outermost first, and the extents of all but the first one.
    order: [usize; MAX_NEST],
    /// Their number.
    rank: usize,
    extents: [u64; MAX_NEST],
}

impl Boxes {
    /// Boxes for a nest, in program order or, if any order will do, with the loop of the greatest extent innermost: where there are
    /// fewer runs.
    fn new(loops: &Parts, extent: u64, streams: &[Affine], any_order: bool) -> Self {
        let (extents, rank) = (loops.extents, loops.lanes);
        let inner = extents.iter().take(rank).skip(1).product();
        let count = blocks_of(extent, inner);
        let program = Self { inner, count: 0, order: std::array::from_fn(|at| at), rank, extents };
        let longest = (0..rank).max_by_key(|&at| if at == 0 { Some(&count) } else { extents.get(at) }).unwrap_or(0);
        if longest + 1 >= rank || !any_order {
            return program;
        }
        let mut longest_last = Self { ..program };
        longest_last.order.get_mut(longest..rank).unwrap_or_default().rotate_left(1);
        let runs = |boxes: &Self| -> u64 {
            let of = |affine| boxes.cursor(affine, count).map_or(0, |cursor| inner * count / cursor.run_length());
            streams.iter().map(of).sum()
        };
        if runs(&longest_last) < runs(&program) { longest_last } else { program }
    }

    /// The values of a number in a box at the start of the nest.
    fn cursor(&self, affine: &Affine, count: u64) -> Option<Cursor> {
        let of = |&at: &usize| {
            let extent = if at == 0 { count } else { self.extents.get(at).copied().unwrap_or(1) };
            (extent, affine.steps.get(at).copied().unwrap_or(0))
        };
        Cursor::new(affine.slot(), affine.first, self.order.iter().take(self.rank).map(of))
    }
}

/// The number of iterations of an outermost loop in a box, for `inner` iterations of each: as many as fit a block, in boxes
/// of about the same size.
pub(crate) fn blocks_of(extent: u64, inner: u64) -> u64 {
    let most = (BLOCK as u64 / inner.max(1)).max(1);
    let count = extent.div_ceil(extent.div_ceil(most));
    if inner == 1 { count.next_multiple_of(LANES).min(extent) } else { count }
}
