//! Places textures side by side: as rectangles of a sheet, which may overlap if they are not alive at the same time.
//!
//! Tensors are placed in a given order. Each considers the sheets in which its presence would not make a step read
//! and write the same sheet. In each of them it tries the corners of the rectangles that are alive at the same time,
//! and takes the position that adds the least area to its sheet. It starts a new sheet if that adds less.

use std::collections::HashSet;

use tilewright_ir::sabotage;
use tilewright_ir::{PoolRules, Region, Room};

use super::live::Group;
use super::overlaps::Overlaps;
use super::packing::Packing;

/// Number of live rectangles beyond which a sheet takes no more: the search for a position costs the square of their
/// number.
const MAX_ALIVE: usize = 40;
/// Number of live rectangles up to which every crossing of their edges is tried, and not only their corners.
const ALL_CROSSINGS_MAX: usize = 8;
/// Limit on the comparisons per tensor, on average, beyond which an order is given up.
const WORK_PER_SLOT: usize = 4000;
/// Number of comparisons that is always allowed.
const MIN_WORK_LIMIT: usize = 1 << 20;

/// The planner of a group of textures, with the extent of each slot.
#[derive(Debug)]
pub(super) struct Sheets<'a> {
    group: &'a Group,
    extents: Vec<Extent>,
    overlaps: Overlaps,
    rules: PoolRules,
}

impl<'a> Sheets<'a> {
    /// Prepares the planner. `None` for a group of buffers, or if too many lifetimes overlap.
    pub(super) fn new(group: &'a Group, rules: PoolRules) -> Option<Self> {
        let extents = group.slots.iter().map(|slot| texels(slot.room)).collect::<Option<Vec<_>>>()?;
        Some(Self { group, extents, overlaps: Overlaps::new(&group.slots)?, rules })
    }

    /// Places the slots in the given order; `None` if that takes too many comparisons. `prefer_new` starts a new
    /// sheet if growing an old one adds the same area.
    pub(super) fn pack(&self, order: &[usize], prefer_new: bool) -> Option<Packing> {
        Packer { planner: self, prefer_new, work: 0 }.pack(order)
    }
}

/// Width and height in texels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    width: u64,
    height: u64,
}

/// An extent at a position of a sheet; `x` and `y` in texels.
#[derive(Clone, Copy, Debug)]
struct Rectangle {
    x: u64,
    y: u64,
    extent: Extent,
}

impl Rectangle {
    /// The first column to the right of it.
    fn right(&self) -> u64 {
        self.x + self.extent.width
    }

    /// The first row below it.
    fn bottom(&self) -> u64 {
        self.y + self.extent.height
    }

    /// Whether two rectangles have a texel in common.
    fn intersects(&self, other: &Self) -> bool {
        let shared = u64::from(sabotage::on("rectangles-meet-by-one"));
        let columns = self.x < other.right() && other.x < self.right();
        columns && self.y + shared < other.bottom() && other.y + shared < self.bottom()
    }
}

/// The extent of a texture; `None` for a buffer.
fn texels(room: Room) -> Option<Extent> {
    match room {
        Room::Texels { width, height } => Some(Extent { width, height }),
        Room::Bytes(_) => None,
    }
}

/// A texture that is being filled; its extent grows with its rectangles.
#[derive(Debug, Default)]
struct Sheet {
    extent: Extent,
    /// The steps that read a tensor in it.
    read: HashSet<usize>,
    /// The steps that write a tensor in it.
    written: HashSet<usize>,
    /// The placed rectangles that are alive at the same time as the slot that is being placed.
    alive: Vec<Rectangle>,
}

impl Sheet {
    fn area(&self) -> u128 {
        u128::from(self.extent.width) * u128::from(self.extent.height)
    }
}

/// One run of the planner; `work` counts comparisons.
struct Packer<'a> {
    planner: &'a Sheets<'a>,
    prefer_new: bool,
    work: usize,
}

/// A candidate position and its cost. Candidates are compared field by field, and the least is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    added: u128,
    /// Area of the sheet before the placement: a small tensor prefers the smaller of two sheets that need not grow.
    area: u128,
    bottom: u64,
    right: u64,
    sheet: usize,
}

impl Packer<'_> {
    /// Places the slots in the given order; `None` if that takes too many comparisons.
    fn pack(mut self, order: &[usize]) -> Option<Packing> {
        let mut sheets: Vec<Sheet> = Vec::new();
        let mut placed: Vec<Option<(usize, Rectangle)>> = vec![None; order.len()];
        for &slot in order {
            // Only rectangles whose lifetimes overlap the slot's are in its way, so they are collected for each slot anew.
            for sheet in &mut sheets {
                sheet.alive.clear();
            }
            for (sheet, rectangle) in self.planner.overlaps.overlapping(slot).iter().filter_map(|&other| placed[other])
            {
                sheets[sheet].alive.push(rectangle);
            }
            let extent = self.planner.extents[slot];
            let own_area = u128::from(extent.width) * u128::from(extent.height);
            let mut best: Option<Choice> = None;
            for (at, sheet) in sheets.iter().enumerate() {
                if self.may_lie(slot, sheet) {
                    best = best.into_iter().chain(self.choose(extent, sheet, at)).min();
                }
            }
            // Counted here and not only in `choose`, because a sheet that is passed over costs time, too.
            self.work += sheets.len() + self.planner.overlaps.overlapping(slot).len();
            if self.work > MIN_WORK_LIMIT + WORK_PER_SLOT * order.len() {
                return None;
            }
            let best = best.filter(|choice| choice.added < own_area || (choice.added == own_area && !self.prefer_new));
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
        // The order is a permutation of the slots, so each has a place and `flatten` drops none.
        let pools = sheets.iter().map(|sheet| texels(sheet.extent)).collect();
        Some(Packing { pools, places: placed.into_iter().flatten().map(region).collect() })
    }

    /// Whether no step would both read and write the sheet if the slot lay there.
    fn may_lie(&mut self, slot: usize, sheet: &Sheet) -> bool {
        let readers = &self.planner.group.readers[slot];
        self.work += readers.len();
        let allowed = sabotage::on("sheet-read-and-written");
        !sheet.read.contains(&self.planner.group.slots[slot].first)
            && (allowed || !readers.iter().any(|step| sheet.written.contains(step)))
    }

    /// Enters a rectangle, and the steps that read and write its slot, in a sheet.
    fn put(&self, slot: usize, rectangle: Rectangle, sheet: &mut Sheet) {
        sheet.extent.width = self.planner.rules.pool_width(sheet.extent.width.max(rectangle.right()));
        sheet.extent.height = sheet.extent.height.max(rectangle.bottom());
        sheet.written.insert(self.planner.group.slots[slot].first);
        sheet.read.extend(self.planner.group.readers[slot].iter().copied());
    }

    /// The best position in one sheet; `None` if the sheet is too crowded or would exceed the texture limits.
    fn choose(&mut self, extent: Extent, sheet: &Sheet, at: usize) -> Option<Choice> {
        let (alive, rules) = (&sheet.alive, self.planner.rules);
        if alive.len() > MAX_ALIVE {
            return None;
        }
        let mut best: Option<Choice> = None;
        let mut consider = |x: u64, y: u64| {
            let rectangle = Rectangle { x, y, extent };
            let grown = Extent {
                width: rules.pool_width(sheet.extent.width.max(rectangle.right())),
                height: sheet.extent.height.max(rectangle.bottom()),
            };
            if grown.width > rules.limits.width || grown.height > rules.limits.height {
                return;
            }
            let added = u128::from(grown.width) * u128::from(grown.height) - sheet.area();
            let choice =
                Choice { added, area: sheet.area(), bottom: rectangle.bottom(), right: rectangle.right(), sheet: at };
            self.work += 1;
            // Comparing costs is cheaper than testing for overlaps, so the tests are made only for better positions.
            if best.is_some_and(|best| best < choice) {
                return;
            }
            self.work += alive.len();
            if !alive.iter().any(|other| rectangle.intersects(other)) {
                best = Some(choice);
            }
        };
        consider(0, 0);
        for one in alive {
            consider(one.right(), 0);
            consider(0, one.bottom());
            if alive.len() <= ALL_CROSSINGS_MAX {
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
