//! Divides the elements of the parameters into parts, each with the units of both runs that it needs.
//!
//! ```text
//! elements                         units before         units after
//! B[0], B[1], B[2], B[3]           0, 1                 0, 4
//! B[4], B[5]                       2                    0, 5          unit 0 after is run twice
//! ```
//!
//! Elements that the same unit writes stay together, and a part takes elements until its runs get too long. Nothing here is
//! trusted: the checker (`super::parts`) looks whether the parts have all elements, all units, and all that they need.

use std::ops::Range;

use super::trace::{NONE, Trace};

/// A lane of an element of a parameter, and the unit of each run that wrote it last.
#[derive(Clone, Copy)]
pub(super) struct Element {
    pub(super) param: u32,
    pub(super) number: u32,
    pub(super) writers: [u32; 2],
}

/// Some elements, and units of both runs in order.
pub(super) struct Part {
    pub(super) elements: Range<usize>,
    pub(super) units: [Vec<u32>; 2],
    /// Whether it has all units with assertions.
    pub(super) asserts: bool,
}

/// Puts the elements into an order, and divides them into parts of about so many steps. All parts together take at most `most` steps.
pub(super) fn divided(
    traces: &[Trace<'_>; 2],
    elements: &mut [Element],
    size: u64,
    most: u64,
) -> Result<Vec<Part>, String> {
    let by = |elements: &mut [Element], first: usize| {
        elements.sort_unstable_by_key(|element| {
            let Element { param, number, writers } = *element;
            (writers[first], writers[1 - first], param, number)
        });
    };
    // In the order of one run, an element of a tile may need many tiles of the other run.
    let mut tried = [0, 1].map(|first| {
        by(elements, first);
        Packer::pack(traces, elements, size, most)
    });
    let first = usize::from(tried[1].total < tried[0].total);
    by(elements, first);
    let Packer { total, parts, .. } = std::mem::replace(&mut tried[first], Packer::new(traces, size));
    if total > most {
        return Err(format!("the programs run more than {most} steps in parts"));
    }
    Ok(parts)
}

/// Fills one part after the other.
struct Packer<'a> {
    traces: &'a [Trace<'a>; 2],
    size: u64,
    /// The last part that took each unit, counted from 1.
    takers: [Vec<u32>; 2],
    units: [Vec<u32>; 2],
    steps: u64,
    total: u64,
    begin: usize,
    number: u32,
    parts: Vec<Part>,
}

impl<'a> Packer<'a> {
    fn new(traces: &'a [Trace<'a>; 2], size: u64) -> Self {
        let takers = [0, 1].map(|side: usize| vec![0; traces[side].units.len()]);
        let units = [Vec::new(), Vec::new()];
        Self { traces, size, takers, units, steps: 0, total: 0, begin: 0, number: 1, parts: Vec::new() }
    }

    /// Divides elements, until the parts take more than `most` steps.
    fn pack(traces: &'a [Trace<'a>; 2], elements: &[Element], size: u64, most: u64) -> Self {
        let mut packer = Self::new(traces, size);
        for (place, element) in elements.iter().enumerate() {
            packer.add(element.writers, place);
            if packer.total > most {
                return packer;
            }
        }
        packer.close(elements.len(), false);
        // What nothing depends on is run, too: it may trap, or read what holds nothing.
        let mut is_taken = [0, 1].map(|side: usize| vec![false; traces[side].units.len()]);
        for part in &packer.parts {
            for (is_taken, units) in is_taken.iter_mut().zip(&part.units) {
                for unit in units {
                    is_taken[*unit as usize] = true;
                }
            }
        }
        for (side, is_taken) in is_taken.iter().enumerate() {
            for (unit, _) in (0u32..).zip(is_taken).filter(|(_, is_taken)| !**is_taken) {
                let mut writers = [NONE; 2];
                writers[side] = unit;
                packer.add(writers, elements.len());
            }
        }
        packer.close(elements.len(), false);
        for (side, trace) in traces.iter().enumerate() {
            let asserting = (0u32..).zip(&trace.units).filter(|(_, unit)| unit.asserts);
            asserting.for_each(|(unit, _)| packer.take(side, unit));
        }
        packer.close(elements.len(), true);
        packer
    }

    /// Adds an element, or a new part for it if the part is full.
    fn add(&mut self, writers: [u32; 2], place: usize) {
        let (steps, lens) = (self.steps, [self.units[0].len(), self.units[1].len()]);
        self.take_all(writers);
        // An element that needs little more than the part has stays in it, if the part does not get far too large.
        let is_near = self.steps - steps <= self.size / 16 && self.steps <= self.size.saturating_mul(8);
        if self.steps <= self.size || steps == 0 || is_near {
            return;
        }
        for (units, len) in self.units.iter_mut().zip(lens) {
            units.truncate(len);
        }
        self.steps = steps;
        self.close(place, false);
        self.take_all(writers);
    }

    fn take_all(&mut self, writers: [u32; 2]) {
        for (side, unit) in writers.into_iter().enumerate().filter(|(_, unit)| *unit != NONE) {
            self.take(side, unit);
        }
    }

    /// Takes a unit of one run, and all that it depends on.
    fn take(&mut self, side: usize, unit: u32) {
        let trace = &self.traces[side];
        let mut rest = vec![unit];
        while let Some(unit) = rest.pop() {
            let taker = &mut self.takers[side][unit as usize];
            if *taker != self.number {
                *taker = self.number;
                self.units[side].push(unit);
                self.steps += trace.units[unit as usize].steps;
                rest.extend(trace.sources(unit));
            }
        }
    }

    /// Ends a part, unless it is empty.
    fn close(&mut self, end: usize, asserts: bool) {
        let mut units = std::mem::take(&mut self.units);
        let is_empty = end == self.begin && units.iter().all(Vec::is_empty);
        self.number += 1;
        self.total = self.total.saturating_add(std::mem::take(&mut self.steps));
        if !is_empty {
            for units in &mut units {
                units.sort_unstable();
            }
            self.parts.push(Part { elements: self.begin..end, units, asserts });
        }
        self.begin = end;
    }
}
