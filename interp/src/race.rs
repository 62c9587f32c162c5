//! The race check: shadow memory that records which iterations accessed each cell.
//!
//! The iterations of parallel, vectorized and thread-bound loops form a tree. Two accesses are concurrent if, below
//! their lowest common ancestor, both belong to iterations of the same execution ("entry") of a loop. Loops that follow each other
//! are two entries, also those over threads of one launch.
//!
//! A group with barriers is run phase by phase ([`tilewright_ir::phases`]), and a phase has loops of its own over the threads. A barrier
//! begins a node below the group, which these loops are below until the next barrier. There they are one entry: a thread is
//! identified by its indices, and different threads are unordered. The nodes of one group are ordered.
//!
//! ```text
//! for parallel i in 8: B[i] = 1           entry 1: no two iterations write the same element
//! for parallel j in 8: read B[7 - j]      entry 2, after entry 1: no race. As two phases of a group without a barrier between, a race
//! ```

use std::collections::HashMap;
use std::fmt::Write;

use tilewright_ir::{ForKind, ThreadTag, sabotage};

use crate::code::Loop;

/// Number of an iteration in the tree, an index into [`Race::iterations`]; 0 is the root.
type Context = u32;

/// An iteration of a loop that is not serial.
struct Iteration {
    parent: Context,
    depth: u32,
    /// Number of the loop entry it belongs to; 0 for the root.
    entry: u64,
    /// Whether it is a phase of a group, which is no iteration.
    phase: bool,
    /// Site of the loop.
    site: u32,
    /// Value of the loop variable.
    value: i128,
}

/// The accesses to a cell that a later access may race with.
#[derive(Clone, Copy, Default)]
struct Shadow {
    writer: Option<Context>,
    readers: [Option<Context>; 2],
}

/// The state of the race check.
#[derive(Default)]
pub(crate) struct Race {
    iterations: Vec<Iteration>,
    /// Threads of groups with barriers by enclosing iteration, tag and index: the same thread may be entered several times.
    threads: HashMap<(Context, ThreadTag, i128), Context>,
    /// Number of loop entries so far.
    entries: u64,
    /// Shadow of each cell, by allocation.
    shadows: HashMap<usize, HashMap<usize, Shadow>>,
    /// Number of allocations so far.
    memories: usize,
    /// The iteration that is running.
    pub(crate) current: Context,
}

impl Clone for Race {
    /// A fresh state. Frames are cloned only when loops run on several threads, which the race check excludes.
    fn clone(&self) -> Self {
        Self::new()
    }
}

/// Two concurrent iterations that access the same cell, at least one of them writing.
pub(crate) struct Clash {
    /// The iteration that accessed the cell before.
    pub(crate) earlier: Context,
    /// Whether that access was a write.
    pub(crate) earlier_writes: bool,
    /// The current iteration.
    pub(crate) now: Context,
}

impl Race {
    /// A state with no accesses, in the root iteration.
    pub(crate) fn new() -> Self {
        let root = Iteration { parent: 0, depth: 0, entry: 0, phase: false, site: 0, value: 0 };
        Self { iterations: vec![root], ..Self::default() }
    }

    /// A number for a new allocation.
    pub(crate) fn new_memory_id(&mut self) -> usize {
        self.memories += 1;
        self.memories
    }

    /// Drops the shadow of an allocation that is freed.
    pub(crate) fn forget_memory(&mut self, memory: usize) {
        self.shadows.remove(&memory);
    }

    /// Enters a loop and returns the number of the entry; loops of a phase over the threads of the group have the number of what is around
    /// them.
    pub(crate) fn enter_loop(&mut self, of_group: bool) -> u64 {
        if of_group && !sabotage::on("race-separates-phases") {
            return self.iterations[self.current as usize].entry;
        }
        if !sabotage::on("race-joins-loops") || self.entries == 0 {
            self.entries += 1;
        }
        self.entries
    }

    /// Begins an iteration of a loop that is not serial, inside the iteration `outer`.
    pub(crate) fn begin_iteration(&mut self, outer: Context, entry: u64, inner: &Loop, value: i128) {
        let tag = if let (ForKind::ThreadBinding(tag), true) = (inner.kind, inner.of_group) { Some(tag) } else { None };
        if let Some(tag) = tag
            && let Some(&known) = self.threads.get(&(outer, tag, value))
        {
            self.current = known;
            return;
        }
        let depth = self.iterations[outer as usize].depth + 1;
        let number = Context::try_from(self.iterations.len()).unwrap_or(Context::MAX);
        self.iterations.push(Iteration { parent: outer, depth, entry, phase: false, site: inner.site, value });
        if let Some(tag) = tag {
            self.threads.insert((outer, tag, value), number);
        }
        self.current = number;
    }

    /// Begins the next phase of the group that runs.
    pub(crate) fn barrier(&mut self) {
        if sabotage::on("race-forgets-barrier") {
            return;
        }
        let around = &self.iterations[self.current as usize];
        let group = if around.phase { around.parent } else { self.current };
        let depth = self.iterations[group as usize].depth + 1;
        let number = Context::try_from(self.iterations.len()).unwrap_or(Context::MAX);
        // An entry of its own: no other phase of the group belongs to it, and all of its threads.
        self.entries += 1;
        let entry = self.entries;
        self.iterations.push(Iteration { parent: group, depth, entry, phase: true, site: 0, value: 0 });
        self.current = number;
    }

    /// Records an access by the current iteration and returns the clash if it races with an earlier access.
    pub(crate) fn record_access(&mut self, memory: usize, cell: usize, write: bool) -> Option<Clash> {
        let now = self.current;
        let mut shadow = self.shadows.entry(memory).or_default().get(&cell).copied().unwrap_or_default();
        let clash = |earlier, earlier_writes| Some(Clash { earlier, earlier_writes, now });
        if let Some(writer) = shadow.writer
            && self.may_run_concurrently(writer, now)
        {
            return clash(writer, true);
        }
        for reader in shadow.readers.into_iter().flatten() {
            if write && !sabotage::on("race-forgets-readers") && self.may_run_concurrently(reader, now) {
                return clash(reader, false);
            }
        }
        if write {
            shadow = Shadow { writer: Some(now), readers: [None, None] };
        } else {
            // A reader that is ordered before this one need not be kept: a later writer that races with it races with
            // this one too. Of mutually concurrent readers two are enough: a later writer shares an iteration with at
            // most one of them.
            let covered =
                |reader: &Option<Context>| reader.is_none_or(|reader| !self.may_run_concurrently(reader, now));
            let kept = if sabotage::on("race-keeps-one-reader") { 1 } else { 2 };
            if let Some(at) = shadow.readers.iter().take(kept).position(covered) {
                shadow.readers[at] = Some(now);
            }
        }
        self.shadows.entry(memory).or_default().insert(cell, shadow);
        None
    }

    /// Whether two iterations may run concurrently.
    fn may_run_concurrently(&self, a: Context, b: Context) -> bool {
        let iteration = |context: Context| &self.iterations[context as usize];
        let (mut a, mut b) = (a, b);
        let (mut below_a, mut below_b) = (None, None);
        while a != b {
            if iteration(a).depth >= iteration(b).depth {
                below_a = Some(a);
                a = iteration(a).parent;
            } else {
                below_b = Some(b);
                b = iteration(b).parent;
            }
        }
        match (below_a, below_b) {
            (Some(a), Some(b)) => iteration(a).entry == iteration(b).entry,
            // What an iteration does outside of a loop comes before the loop, or after it.
            (Some(_), None) | (None, Some(_) | None) => false,
        }
    }

    /// The loop variables of an iteration and their values, such as `i = 3, j = 0`; `name` gives the variable of the
    /// loop at a site.
    pub(crate) fn describe(&self, context: Context, name: impl Fn(u32) -> String) -> String {
        let mut path = Vec::new();
        let mut at = context;
        while at != 0 {
            if !self.iterations[at as usize].phase {
                path.push(at);
            }
            at = self.iterations[at as usize].parent;
        }
        let mut text = String::new();
        for (position, &at) in path.iter().rev().enumerate() {
            let iteration = &self.iterations[at as usize];
            let comma = if position == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{} = {}", name(iteration.site), iteration.value);
        }
        text
    }
}
