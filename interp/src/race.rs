//! The race check: a shadow of the memory that knows who touched each cell.
//!
//! Iterations of loops that are not serial form a tree. Two accesses race if, below the place where their paths part,
//! both go through iterations of the same entry of a loop. All threads of a launch (the outermost thread-bound loop
//! and all in it) are one iteration space: a thread is its indices, there is no order between different threads, and
//! what stands in a launch outside the inner thread loops counts as a thread of its own.

use std::collections::HashMap;
use std::fmt::Write;

use tilewright_ir::{ForKind, ThreadTag};

type Context = u32;

struct Step {
    parent: Context,
    depth: u32,
    /// Which entry of a loop or which launch; 0 for the root.
    entry: u64,
    thread: bool,
    site: u32,
    value: i128,
}

#[derive(Clone, Copy, Default)]
struct Shadow {
    writer: Option<Context>,
    readers: [Option<Context>; 2],
}

/// Who touched what.
#[derive(Default)]
pub(crate) struct Race {
    steps: Vec<Step>,
    threads: HashMap<(Context, ThreadTag, i128), Context>,
    entries: u64,
    shadows: HashMap<usize, HashMap<usize, Shadow>>,
    memories: usize,
    pub(crate) current: Context,
}

impl Clone for Race {
    /// A race check runs on one thread and is never copied; a copy starts afresh.
    fn clone(&self) -> Self {
        Self::new()
    }
}

/// Two iterations that touch the same cell.
pub(crate) struct Clash {
    pub(crate) earlier: Context,
    pub(crate) earlier_writes: bool,
    pub(crate) now: Context,
}

impl Race {
    pub(crate) fn new() -> Self {
        let root = Step { parent: 0, depth: 0, entry: 0, thread: false, site: 0, value: 0 };
        Self { steps: vec![root], ..Self::default() }
    }

    /// A number for a new allocation.
    pub(crate) fn memory(&mut self) -> usize {
        self.memories += 1;
        self.memories
    }

    /// An allocation is gone.
    pub(crate) fn forget(&mut self, memory: usize) {
        self.shadows.remove(&memory);
    }

    /// A loop is entered; gives the number of the entry, which for thread loops is the launch's.
    pub(crate) fn enter(&mut self, kind: ForKind) -> u64 {
        let around = &self.steps[self.current as usize];
        if matches!(kind, ForKind::ThreadBinding(_)) && around.thread {
            return around.entry;
        }
        self.entries += 1;
        self.entries
    }

    /// An iteration of a loop that is not serial begins.
    pub(crate) fn iteration(&mut self, outer: Context, entry: u64, kind: ForKind, site: u32, value: i128) {
        let tag = if let ForKind::ThreadBinding(tag) = kind { Some(tag) } else { None };
        let inside = self.steps[outer as usize].thread;
        if let Some(tag) = tag
            && inside
            && let Some(&known) = self.threads.get(&(outer, tag, value))
        {
            self.current = known;
            return;
        }
        let depth = self.steps[outer as usize].depth + 1;
        let number = Context::try_from(self.steps.len()).unwrap_or(Context::MAX);
        self.steps.push(Step { parent: outer, depth, entry, thread: tag.is_some(), site, value });
        if let Some(tag) = tag {
            self.threads.insert((outer, tag, value), number);
        }
        self.current = number;
    }

    /// Notes an access by the current iteration; gives the clash if it races with an earlier one.
    pub(crate) fn touch(&mut self, memory: usize, cell: usize, write: bool) -> Option<Clash> {
        let now = self.current;
        let mut shadow = self.shadows.entry(memory).or_default().get(&cell).copied().unwrap_or_default();
        let clash = |earlier, earlier_writes| Some(Clash { earlier, earlier_writes, now });
        if let Some(writer) = shadow.writer
            && self.parallel(writer, now)
        {
            return clash(writer, true);
        }
        for reader in shadow.readers.into_iter().flatten() {
            if write && self.parallel(reader, now) {
                return clash(reader, false);
            }
        }
        if write {
            shadow = Shadow { writer: Some(now), readers: [None, None] };
        } else {
            // A reader that comes before this one in order is covered by it; of readers at once two are enough.
            let covered = |reader: &Option<Context>| reader.is_none_or(|reader| !self.parallel(reader, now));
            if let Some(at) = shadow.readers.iter().position(covered) {
                shadow.readers[at] = Some(now);
            }
        }
        self.shadows.entry(memory).or_default().insert(cell, shadow);
        None
    }

    /// Whether two iterations may run at once.
    fn parallel(&self, a: Context, b: Context) -> bool {
        let step = |context: Context| &self.steps[context as usize];
        let (mut a, mut b) = (a, b);
        let (mut below_a, mut below_b) = (None, None);
        while a != b {
            if step(a).depth >= step(b).depth {
                below_a = Some(a);
                a = step(a).parent;
            } else {
                below_b = Some(b);
                b = step(b).parent;
            }
        }
        match (below_a, below_b) {
            (Some(a), Some(b)) => step(a).entry == step(b).entry,
            (Some(below), None) | (None, Some(below)) => step(below).thread && step(a).thread,
            (None, None) => false,
        }
    }

    /// The loops and values of an iteration.
    pub(crate) fn describe(&self, context: Context, name: impl Fn(u32) -> String) -> String {
        let mut path = Vec::new();
        let mut at = context;
        while at != 0 {
            path.push(at);
            at = self.steps[at as usize].parent;
        }
        let mut text = String::new();
        for (position, &at) in path.iter().rev().enumerate() {
            let step = &self.steps[at as usize];
            let comma = if position == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{} = {}", name(step.site), step.value);
        }
        text
    }
}
