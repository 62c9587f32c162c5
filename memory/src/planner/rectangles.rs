//! Textures side by side: rectangles of one sheet, which may lie on top of each other if they are not alive at once.
//!
//! Tensors are placed one after the other in several orders. Each looks at every sheet that no step would both read and
//! write because of it, at the corners of the rectangles there that are alive with it, and takes the place that adds the least
//! area to its sheet; a new sheet if that would add less.

use std::collections::HashSet;

use tilewright_ir::sabotage;
use tilewright_ir::{Region, Room, TextureLimits};

use super::live::Group;
use super::overlaps::Overlaps;
use super::packing::Packing;

/// A sheet with more rectangles alive at once takes no more: looking for a place costs the square of their number.
const MAX_ALIVE: usize = 40;
/// Rectangles up to which every crossing of their edges is tried, not only their corners.
const FEW_ALIVE: usize = 8;
/// Comparisons for each tensor, on average, after which an order is given up.
const WORK_PER_SLOT: usize = 4000;
/// Comparisons that are always made.
const SOME_WORK: usize = 1 << 20;

/// The planner of a group of textures.
#[derive(Debug)]
pub(super) struct Sheets<'a> {
    group: &'a Group,
    extents: Vec<Extent>,
    overlaps: Overlaps,
    limits: TextureLimits,
}

impl<'a> Sheets<'a> {
    /// None of a group of buffers, or where too many are alive at once.
    pub(super) fn new(group: &'a Group, limits: TextureLimits) -> Option<Self> {
        let extents = group.slots.iter().map(|slot| texels(slot.room)).collect::<Option<Vec<_>>>()?;
        Some(Self { group, extents, overlaps: Overlaps::new(&group.slots)?, limits })
    }

    /// Places all in this order; none if that is too much work. `prefer_new` begins a new sheet where growing one adds as much.
    pub(super) fn pack(&self, order: &[usize], prefer_new: bool) -> Option<Packing> {
        Packer { of: self, prefer_new, work: 0 }.pack(order)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    width: u64,
    height: u64,
}

#[derive(Clone, Copy, Debug)]
struct Rectangle {
    x: u64,
    y: u64,
    extent: Extent,
}

impl Rectangle {
    fn right(&self) -> u64 {
        self.x + self.extent.width
    }

    fn bottom(&self) -> u64 {
        self.y + self.extent.height
    }

    fn meets(&self, other: &Self) -> bool {
        let shared = u64::from(sabotage::on("rectangles-meet-by-one"));
        let columns = self.x < other.right() && other.x < self.right();
        columns && self.y + shared < other.bottom() && other.y + shared < self.bottom()
    }
}

fn texels(room: Room) -> Option<Extent> {
    match room {
        Room::Texels { width, height } => Some(Extent { width, height }),
        Room::Bytes(_) => None,
    }
}

/// A texture that is being filled.
#[derive(Debug, Default)]
struct Sheet {
    extent: Extent,
    /// The steps that read something in it, and those that write something.
    read: HashSet<usize>,
    written: HashSet<usize>,
    /// Those placed that are alive with the one that is looking.
    alive: Vec<Rectangle>,
}

impl Sheet {
    fn area(&self) -> u128 {
        u128::from(self.extent.width) * u128::from(self.extent.height)
    }
}

struct Packer<'a> {
    of: &'a Sheets<'a>,
    prefer_new: bool,
    work: usize,
}

/// A place and what it costs; the least is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    added: u128,
    /// Of the sheet as it is: a tensor that needs little room leaves the large sheets alone.
    area: u128,
    bottom: u64,
    right: u64,
    sheet: usize,
}

impl Packer<'_> {
    /// Places all; none if that is too much work.
    fn pack(mut self, order: &[usize]) -> Option<Packing> {
        let mut sheets: Vec<Sheet> = Vec::new();
        let mut placed: Vec<Option<(usize, Rectangle)>> = vec![None; order.len()];
        for &slot in order {
            for sheet in &mut sheets {
                sheet.alive.clear();
            }
            for (sheet, rectangle) in self.of.overlaps.of(slot).iter().filter_map(|&other| placed[other]) {
                sheets[sheet].alive.push(rectangle);
            }
            let extent = self.of.extents[slot];
            let own = u128::from(extent.width) * u128::from(extent.height);
            let mut best: Option<Choice> = None;
            for (at, sheet) in sheets.iter().enumerate() {
                if self.may_lie(slot, sheet) {
                    best = best.into_iter().chain(self.choose(extent, sheet, at)).min();
                }
            }
            self.work += sheets.len() + self.of.overlaps.of(slot).len();
            if self.work > SOME_WORK + WORK_PER_SLOT * order.len() {
                return None;
            }
            let best = best.filter(|choice| choice.added < own || (choice.added == own && !self.prefer_new));
            let (at, x, y) = if let Some(Choice { sheet, right, bottom, .. }) = best {
                (sheet, right - extent.width, bottom - extent.height)
            } else {
                sheets.push(Sheet::default());
                (sheets.len() - 1, 0, 0)
            };
            let rectangle = Rectangle { x, y, extent };
            placed[slot] = Some((at, rectangle));
            self.put(slot, rectangle, &mut sheets[at]);
        }
        let texels = |extent: Extent| Room::Texels { width: extent.width, height: extent.height };
        let region = |(sheet, Rectangle { x, y, extent }): (usize, Rectangle)| {
            (sheet, Region::Texels { x, y, width: extent.width, height: extent.height })
        };
        let pools = sheets.iter().map(|sheet| texels(sheet.extent)).collect();
        Some(Packing { pools, places: placed.into_iter().flatten().map(region).collect() })
    }

    /// Whether no step would read and write the sheet if the slot lay there.
    fn may_lie(&mut self, slot: usize, sheet: &Sheet) -> bool {
        let readers = &self.of.group.readers[slot];
        self.work += readers.len();
        let allowed = sabotage::on("sheet-read-and-written");
        !sheet.read.contains(&self.of.group.slots[slot].first)
            && (allowed || !readers.iter().any(|step| sheet.written.contains(step)))
    }

    fn put(&self, slot: usize, rectangle: Rectangle, sheet: &mut Sheet) {
        sheet.extent.width = sheet.extent.width.max(rectangle.right());
        sheet.extent.height = sheet.extent.height.max(rectangle.bottom());
        sheet.written.insert(self.of.group.slots[slot].first);
        sheet.read.extend(self.of.group.readers[slot].iter().copied());
    }

    /// The best place in one sheet.
    fn choose(&mut self, extent: Extent, sheet: &Sheet, at: usize) -> Option<Choice> {
        let alive = &sheet.alive;
        if alive.len() > MAX_ALIVE {
            return None;
        }
        let mut best: Option<Choice> = None;
        let mut consider = |x: u64, y: u64| {
            let rectangle = Rectangle { x, y, extent };
            let grown = Extent {
                width: sheet.extent.width.max(rectangle.right()),
                height: sheet.extent.height.max(rectangle.bottom()),
            };
            if grown.width > self.of.limits.width || grown.height > self.of.limits.height {
                return;
            }
            let added = u128::from(grown.width) * u128::from(grown.height) - sheet.area();
            let choice =
                Choice { added, area: sheet.area(), bottom: rectangle.bottom(), right: rectangle.right(), sheet: at };
            self.work += 1;
            if best.is_some_and(|best| best < choice) {
                return;
            }
            self.work += alive.len();
            if !alive.iter().any(|other| rectangle.meets(other)) {
                best = Some(choice);
            }
        };
        consider(0, 0);
        for one in alive {
            consider(one.right(), 0);
            consider(0, one.bottom());
            if alive.len() <= FEW_ALIVE {
                for other in alive {
                    consider(one.right(), other.bottom());
                }
            } else {
                consider(one.right(), one.y);
                consider(one.x, one.bottom());
            }
        }
        best
    }
}
