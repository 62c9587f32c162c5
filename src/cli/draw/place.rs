//! Evaluates a map at every index of its shape, and around the shape as far as there is padding.
//!
//! ```text
//! lambda i: [i // 2, i % 2]  on shape 3  ->  0 -> (0, 0)   1 -> (0, 1)   2 -> (1, 0)   and (1, 1) is padding
//! ```
//!
//! Every axis separator group of a place is linearized, so memory has one axis or two. A slot without an element is
//! padding; if the map sends an index beyond the shape there, the picture names that index.

use std::collections::HashMap;

use tilewright_ir::{Bindings, Diagnostic, Expr, IndexMap};

use crate::report::draw::{CutRow, DrawReport, ElementRow, MarkRow, PaddingRow};

/// Most cells of a picture, logical or in memory.
pub(super) const MAX_CELLS: u64 = 1 << 16;
/// Most grids of a picture: indices of the leading axes.
const MAX_PANELS: u64 = 256;

/// Grids that are drawn of an array above the limits.
const CUT_PANELS: u64 = 4;
/// Rows that are drawn of each grid of such an array, and of a memory with two axes.
const CUT_ROWS: u64 = 32;
/// Columns that are drawn of each grid of such an array, and of a memory with two axes.
const CUT_COLUMNS: u64 = 64;
/// Slots that are drawn of a memory with one axis, and elements of an array with one axis.
const CUT_SLOTS: u64 = 2048;

/// A map with the shape of its memory: the input of [`place`].
pub(super) struct Subject {
    /// The caption.
    pub(super) text: String,
    /// The map from logical indices to places. Its domain is constant.
    pub(super) map: IndexMap,
    /// The extents of the places, one for each output of the map.
    pub(super) extents: Vec<i128>,
    /// Slots that are allocated after those of the extents.
    pub(super) tail: u64,
    /// For each level of tiles its name, and expressions over the indices: two elements are in one tile if all values
    /// agree.
    pub(super) levels: Vec<(String, Vec<Expr>)>,
}

/// Evaluates the map at every index that is drawn.
///
/// # Errors
/// The shape is empty or symbolic, memory has more than two axes, or the map has no value at an index.
pub(super) fn place(subject: &Subject) -> Result<DrawReport, Diagnostic> {
    let shape = shape(subject)?;
    let groups = subject.map.axis_separators().groups();
    let memory_shape = memory_shape(subject, &groups)?;
    let cut = cut(&shape, &memory_shape);
    let mut placing = Placing {
        subject,
        groups,
        memory_shape: &memory_shape,
        holder: HashMap::new(),
        tiles: Tiles::new(subject.levels.len()),
    };
    let mut elements = Vec::new();
    for index in row_major(cut.as_ref().map_or(&shape, |cut| &cut.shape)) {
        elements.push(placing.element(&index, elements.len())?);
    }
    let counterexample = placing.collisions(&mut elements);
    // With some elements left out, it is not known whether a slot without an element is padding.
    let padding = if cut.is_some() { Vec::new() } else { placing.padding(&shape) };
    let mut report = DrawReport {
        schema: "tilewright.draw/1",
        subject: subject.text.clone(),
        shape,
        axes: subject.map.vars().iter().map(ToString::to_string).collect(),
        columns: columns(subject, cut.as_ref().map_or(&memory_shape, |cut| &cut.memory_shape)),
        levels: subject.levels.iter().map(|(name, _)| name.clone()).collect(),
        elements,
        padding,
        cut,
        counterexample,
        memory_shape: memory_shape.clone(),
    };
    placing.tiles.in_order_of_memory(&mut report);
    Ok(report)
}

/// The part of a large array that is drawn. `None` if all of it fits into the picture.
fn cut(shape: &[u64], memory_shape: &[u64]) -> Option<CutRow> {
    let count = |extents: &[u64]| extents.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent));
    let fits = |extents: &[u64]| count(extents).is_some_and(|count| count <= MAX_CELLS);
    let panels = shape.iter().rev().skip(2).try_fold(1u64, |count, extent| count.checked_mul(*extent));
    if fits(shape) && fits(memory_shape) && panels.is_some_and(|panels| panels <= MAX_PANELS) {
        return None;
    }
    // The last two axes are the rows and columns of a grid; of the others a few indices show how it goes on.
    let mut left = CUT_PANELS;
    let mut part = shape.to_vec();
    for (axis, extent) in part.iter_mut().enumerate().rev() {
        match shape.len() - axis {
            1 if shape.len() == 1 => *extent = (*extent).min(CUT_SLOTS),
            1 => *extent = (*extent).min(CUT_COLUMNS),
            2 => *extent = (*extent).min(CUT_ROWS),
            _ => {
                *extent = (*extent).min(left);
                left /= *extent;
            }
        }
    }
    let memory = match memory_shape {
        [rows, columns] => vec![(*rows).min(CUT_ROWS), (*columns).min(CUT_COLUMNS)],
        _ => memory_shape.iter().map(|slots| (*slots).min(CUT_SLOTS)).collect(),
    };
    // The whole array is judged later.
    Some(CutRow { shape: part, memory_shape: memory, verdict: "unknown", reason: None })
}

/// The fault of a shape that cannot be counted.
fn too_large(message: String) -> Diagnostic {
    Diagnostic::error("picture-size", None, message).with_help("draw a smaller shape: tiles and padding repeat")
}

/// The logical shape as numbers, with at least one element and fewer than 2^64.
fn shape(subject: &Subject) -> Result<Vec<u64>, Diagnostic> {
    let extent = |extent: &Expr| extent.as_const_int().and_then(|extent| u64::try_from(extent).ok());
    let shape: Option<Vec<u64>> = subject.map.domain().iter().map(extent).collect();
    let shape = shape.ok_or_else(|| {
        Diagnostic::error("symbolic-shape", None, "a symbolic shape cannot be drawn")
            .with_help("give numbers instead of names in --shape")
    })?;
    let count = shape.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent));
    match count {
        Some(0) => {
            Err(Diagnostic::error("empty-shape", None, "the shape has no elements, so there is nothing to draw")
                .with_help("give extents of at least 1"))
        }
        Some(_) => Ok(shape),
        None => Err(too_large(format!("{shape:?} has more than 2^64 elements"))),
    }
}

/// The shape of memory: for each separator group the product of its extents. A single axis includes the tail.
fn memory_shape(subject: &Subject, groups: &[std::ops::Range<usize>]) -> Result<Vec<u64>, Diagnostic> {
    if groups.len() > 2 {
        let message = format!("memory has {} axes; one or two can be drawn", groups.len());
        return Err(Diagnostic::error("memory-rank", None, message).with_help("leave some of the separators out"));
    }
    let size = |group: &std::ops::Range<usize>| {
        let extents = subject.extents[group.clone()].iter();
        let size = extents.copied().try_fold(1i128, i128::checked_mul);
        size.and_then(|size| u64::try_from(size).ok())
    };
    let mut shape: Vec<Option<u64>> = groups.iter().map(size).collect();
    if let [Some(only)] = shape.as_mut_slice() {
        *only = only.saturating_add(subject.tail);
    }
    let shape: Option<Vec<u64>> = shape.into_iter().collect();
    let shape = shape.filter(|shape| shape.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent)).is_some());
    shape.ok_or_else(|| too_large(format!("memory has more than 2^64 slots: {:?}", subject.extents)))
}

/// Slots in a line of the picture. For memory with two axes these are its columns; for one axis the product of trailing
/// extents that comes nearest to a rectangle twice as wide as high, or else a power of two.
fn columns(subject: &Subject, memory_shape: &[u64]) -> u64 {
    let total = match memory_shape {
        [_, columns] => return (*columns).max(1),
        [total] => *total,
        _ => return 1,
    };
    let (mut width, mut best) = (1u64, None);
    // A rectangle of `total` cells that is twice as wide as high has the width sqrt(2 * total).
    let most = if total > 8704 { 256 } else { 64 };
    let target = (2 * total).isqrt().clamp(4, most);
    for extent in subject.extents.iter().rev() {
        width = width.saturating_mul(u64::try_from(*extent).unwrap_or(1));
        let badness = if width >= target { width / target } else { target / width.max(1) };
        if (2..=most).contains(&width) && badness < 3 && best.is_none_or(|(_, least)| badness < least) {
            best = Some((width, badness));
        }
    }
    best.map_or_else(|| target.next_power_of_two().min(most).min(total.max(1)), |(width, _)| width)
}

/// All indices of a shape, the last axis fastest.
fn row_major(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let count: u64 = shape.iter().product();
    let shape = shape.to_vec();
    (0..count).map(move |flat| {
        let mut rest = flat;
        let mut index = vec![0; shape.len()];
        for (at, extent) in index.iter_mut().zip(&shape).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        index
    })
}

/// `(2, 3)`; a single number stands alone.
fn tuple<T: ToString>(index: &[T]) -> String {
    let parts: Vec<_> = index.iter().map(ToString::to_string).collect();
    if let [only] = parts.as_slice() { only.clone() } else { format!("({})", parts.join(", ")) }
}

/// The state while elements are placed one after the other.
struct Placing<'a> {
    subject: &'a Subject,
    groups: Vec<std::ops::Range<usize>>,
    memory_shape: &'a [u64],
    /// For each slot that holds an element the number of the first element in it.
    holder: HashMap<u64, usize>,
    tiles: Tiles,
}

impl Placing<'_> {
    /// The place of an index in memory, and the number of its slot if every physical index is inside its extent.
    fn at(&self, index: &[u64]) -> Result<(Vec<i128>, Option<u64>), String> {
        let index: Vec<i128> = index.iter().map(|&at| at.into()).collect();
        let physical = self.subject.map.eval(&index, &Bindings::new()).map_err(|error| error.to_string())?;
        let extents = &self.subject.extents;
        let inside = physical.iter().zip(extents).all(|(at, extent)| (0..*extent).contains(at));
        let numeral = |group: &std::ops::Range<usize>| {
            group.clone().try_fold(0i128, |high, axis| high.checked_mul(extents[axis])?.checked_add(physical[axis]))
        };
        let memory: Option<Vec<i128>> = self.groups.iter().map(numeral).collect();
        let memory = memory.ok_or("its place is no number of 128 bits")?;
        let slot = memory
            .iter()
            .zip(self.memory_shape)
            .try_fold(0u64, |high, (at, extent)| high.checked_mul(*extent)?.checked_add(u64::try_from(*at).ok()?));
        Ok((memory, slot.filter(|_| inside)))
    }

    /// Places one element, the `number`th in row-major order.
    fn element(&mut self, index: &[u64], number: usize) -> Result<ElementRow, Diagnostic> {
        let (memory, slot) = self.at(index).map_err(|error| {
            Diagnostic::error("no-value", None, format!("the map has no value at {index:?}: {error}"))
                .with_help("every index of the shape needs a place")
        })?;
        if let Some(slot) = slot {
            self.holder.entry(slot).or_insert(number);
        }
        let tiles = self.tiles.of(self.subject, index);
        Ok(ElementRow { logical: index.to_vec(), memory, slot, tiles, collides: false })
    }

    /// The first element in a slot.
    fn first(&self, slot: Option<u64>) -> Option<usize> {
        self.holder.get(&slot?).copied()
    }

    /// Marks the elements that share a slot, and returns the first fault in row-major order: a collision, or an element
    /// outside of memory.
    fn collisions(&self, elements: &mut [ElementRow]) -> Option<MarkRow> {
        let mut mark = None;
        for number in 0..elements.len() {
            // `mark` keeps the first fault; the loop goes on, because every colliding element is marked in the picture.
            match self.first(elements[number].slot) {
                Some(first) if first != number => {
                    elements[first].collides = true;
                    elements[number].collides = true;
                    let (a, b) = (&elements[first], &elements[number]);
                    mark.get_or_insert_with(|| {
                        let text = format!(
                            "{} and {} both land on {}",
                            tuple(&a.logical),
                            tuple(&b.logical),
                            tuple(&a.memory)
                        );
                        MarkRow { indices: vec![a.logical.clone(), b.logical.clone()], text }
                    });
                }
                Some(_) => {}
                None => {
                    let element = &elements[number];
                    mark.get_or_insert_with(|| {
                        let text = format!(
                            "{} lands on {}, outside of memory",
                            tuple(&element.logical),
                            tuple(&element.memory)
                        );
                        MarkRow { indices: vec![element.logical.clone()], text }
                    });
                }
            }
        }
        mark
    }

    /// The slots without an element. If the map sends an index beyond the shape to such a slot, the first such index in
    /// row-major order comes with it: the picture shows it as the continuation of a tile.
    fn padding(&mut self, shape: &[u64]) -> Vec<PaddingRow> {
        let slots: u64 = self.memory_shape.iter().product();
        let free = |holder: &HashMap<u64, usize>, slot: u64| slot < slots && !holder.contains_key(&slot);
        let mut beyond: HashMap<u64, Vec<u64>> = HashMap::new();
        let around = self.around(shape, &free);
        let grown = around.iter().zip(shape).any(|(outer, inner)| outer > inner);
        let cells = around.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent));
        // This bounds the indices that are evaluated again: `around` grows axis by axis, so the box may be far larger
        // than the memory.
        if grown && cells.is_some_and(|cells| cells <= 2 * MAX_CELLS) {
            for index in row_major(&around).filter(|index| index.iter().zip(shape).any(|(at, extent)| at >= extent)) {
                if let Ok((_, Some(slot))) = self.at(&index)
                    && free(&self.holder, slot)
                {
                    beyond.entry(slot).or_insert(index);
                }
            }
        }
        let mut padding = Vec::new();
        for slot in (0..slots).filter(|&slot| free(&self.holder, slot)) {
            let logical = beyond.remove(&slot);
            let tiles = logical.as_ref().map(|index| self.tiles.of(self.subject, index)).unwrap_or_default();
            let memory = match self.memory_shape {
                [_, columns] => vec![i128::from(slot / columns), i128::from(slot % columns)],
                _ => vec![i128::from(slot)],
            };
            padding.push(PaddingRow { memory, slot, logical, tiles });
        }
        padding
    }

    /// The shape extended along each axis, with the other indices 0, as long as the map goes to slots without an
    /// element. The shape itself if that would be too many grids.
    fn around(&self, shape: &[u64], free: &impl Fn(&HashMap<u64, usize>, u64) -> bool) -> Vec<u64> {
        let mut around = shape.to_vec();
        for axis in 0..shape.len() {
            let mut index = vec![0; shape.len()];
            while around[axis] < 2 * MAX_CELLS {
                index[axis] = around[axis];
                match self.at(&index) {
                    Ok((_, Some(slot))) if free(&self.holder, slot) => around[axis] += 1,
                    _ => break,
                }
            }
        }
        let panels: u64 = around.iter().rev().skip(2).fold(1, |count, extent| count.saturating_mul(*extent));
        if panels > MAX_PANELS { shape.to_vec() } else { around }
    }
}

/// For each level the number of each tile, by the values of the level's expressions.
struct Tiles(Vec<HashMap<Vec<i128>, u64>>);

impl Tiles {
    fn new(n_levels: usize) -> Self {
        // Tiles are numbered as elements come, and renumbered in the order of memory at the end.
        Self(vec![HashMap::new(); n_levels])
    }

    /// The tile of an index on each level. A new tile gets the next number of its level.
    fn of(&mut self, subject: &Subject, index: &[u64]) -> Vec<u64> {
        let bindings: Bindings =
            subject.map.vars().iter().cloned().zip(index.iter().map(|&at| i128::from(at))).collect();
        let mut tiles = Vec::new();
        for (known, (_, ids)) in self.0.iter_mut().zip(&subject.levels) {
            let key: Vec<i128> = ids.iter().map(|id| id.eval_index(&bindings).unwrap_or(-1)).collect();
            let next = known.len() as u64;
            tiles.push(*known.entry(key).or_insert(next));
        }
        tiles
    }

    /// Renumbers the tiles of each level in the order of their first slots: the tile that holds the first slot becomes
    /// 0.
    fn in_order_of_memory(&self, report: &mut DrawReport) {
        for level in 0..self.0.len() {
            let elements =
                report.elements.iter().filter_map(|element| Some((element.slot?, element.tiles.get(level)?)));
            let padding = report.padding.iter().filter_map(|slot| Some((slot.slot, slot.tiles.get(level)?)));
            let mut order: Vec<(u64, u64)> = elements.chain(padding).map(|(slot, tile)| (slot, *tile)).collect();
            order.sort_unstable();
            let mut anew: HashMap<u64, u64> = HashMap::new();
            for (_, tile) in order {
                let next = anew.len() as u64;
                anew.entry(tile).or_insert(next);
            }
            let all = report.elements.iter_mut().map(|element| &mut element.tiles);
            for tiles in all.chain(report.padding.iter_mut().map(|slot| &mut slot.tiles)) {
                if let Some(tile) = tiles.get_mut(level)
                    && let Some(number) = anew.get(tile)
                {
                    *tile = *number;
                }
            }
        }
    }
}
