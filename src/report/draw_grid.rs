//! The placement of an array as grids of cells, which the text and the SVG picture both draw.
//!
//! The logical array has one grid for each index of its leading axes, memory has one grid. [`logical`] labels a cell
//! with the place of its element in memory; [`memory`] labels a cell with the index of its element.

use super::draw::DrawReport;

/// A rectangle of cells.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    /// The title above the grid; empty if there is only one grid.
    pub(super) title: String,
    /// The name of the axis that counts downwards.
    pub(super) row_axis: String,
    /// The name of the axis that counts to the right.
    pub(super) column_axis: String,
    /// Whether the grid shows memory, not the logical array.
    pub(super) is_memory: bool,
    /// The number of columns.
    pub(super) columns: usize,
    /// The difference of the numbers of two neighbouring rows.
    pub(super) row_step: usize,
    /// The cells, row after row; nothing is drawn at `None`.
    pub(super) cells: Vec<Option<Cell>>,
}

/// One cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The text in the cell.
    pub(super) label: String,
    /// The longer text in a tooltip.
    pub(super) title: String,
    /// The kind of content.
    pub(super) kind: Kind,
    /// The number of the tile on each level.
    pub(super) tiles: Vec<u64>,
    /// The position in the order of memory.
    pub(super) slot: u64,
}

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An element.
    Element,
    /// A slot without an element.
    Padding,
    /// An element that shares its slot with another.
    Collides,
    /// An element of the counterexample.
    Marked,
    /// An element outside memory.
    Outside,
}

impl Grid {
    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.cells.len().div_ceil(self.columns.max(1))
    }

    /// The cell, if something is drawn there.
    pub(super) fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        if column < self.columns { self.cells.get(row * self.columns + column)?.as_ref() } else { None }
    }

    /// Whether the line between two neighbours is a border of tiles of a level. A cell without a neighbour has a border
    /// there.
    pub(super) fn border(level: usize, this: Option<&Cell>, other: Option<&Cell>) -> bool {
        match (this, other) {
            (Some(this), Some(other)) => this.tiles.get(level) != other.tiles.get(level),
            (Some(cell), None) | (None, Some(cell)) => cell.tiles.len() > level,
            (None, None) => false,
        }
    }
}

/// `2,3`.
fn joined<T: ToString>(index: &[T]) -> String {
    index.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// `(2,3)`; a single number stands alone.
fn tuple<T: ToString>(index: &[T]) -> String {
    if let [only] = index { only.to_string() } else { format!("({})", joined(index)) }
}

/// An extent as an index type; saturates.
fn size(extent: u64) -> usize {
    usize::try_from(extent).unwrap_or(usize::MAX)
}

/// The logical array: each element with its place in memory, and the padding around it.
pub(super) fn logical(report: &DrawReport) -> Vec<Grid> {
    // The grids grow by the padding that continues the array, so that incomplete tiles are visible.
    let mut shape: Vec<usize> = report.drawn_shape().iter().copied().map(size).collect();
    for index in report.padding.iter().filter_map(|slot| slot.logical.as_ref()) {
        for (extent, at) in shape.iter_mut().zip(index) {
            *extent = (*extent).max(size(*at) + 1);
        }
    }
    let (leading, rows, columns) = match shape.as_slice() {
        [] => (&[][..], 1, 1),
        // A long line is wrapped.
        [length] => (&[][..], length.div_ceil(WRAP), (*length).min(WRAP)),
        [leading @ .., rows, columns] => (leading, *rows, *columns),
    };
    let name = |position: usize| report.axes.get(position).cloned().unwrap_or_default();
    let n_panels: usize = leading.iter().product();
    let panel = |number: usize| {
        let mut rest = number;
        let mut index = vec![0; leading.len()];
        for (at, extent) in index.iter_mut().zip(leading).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        let named: Vec<_> = index.iter().enumerate().map(|(axis, at)| format!("{} = {at}", name(axis))).collect();
        let rank = shape.len();
        Grid {
            title: named.join(", "),
            row_axis: if rank > 1 { name(rank - 2) } else { String::new() },
            column_axis: if rank > 0 { name(rank - 1) } else { String::new() },
            columns,
            is_memory: false,
            row_step: if rank > 1 { 1 } else { columns },
            cells: vec![None; rows * columns],
        }
    };
    let mut grids: Vec<Grid> = (0..n_panels).map(panel).collect();
    let mut put = |index: &[u64], cell: Cell| {
        let flat = index.iter().zip(&shape).fold(0, |flat, (at, extent)| flat * extent + size(*at));
        let place = grids.get_mut(flat / (rows * columns)).and_then(|grid| grid.cells.get_mut(flat % (rows * columns)));
        if let Some(place) = place {
            *place = Some(cell);
        }
    };
    let marked =
        |index: &[u64]| report.counterexample.as_ref().is_some_and(|mark| mark.indices.iter().any(|i| i == index));
    for element in &report.elements {
        let kind = match (marked(&element.logical), element.slot, element.collides) {
            (_, None, _) => Kind::Outside,
            (true, ..) => Kind::Marked,
            (_, _, true) => Kind::Collides,
            _ => Kind::Element,
        };
        let title = format!("{} at {}", tuple(&element.logical), tuple(&element.memory));
        let (label, slot) = (joined(&element.memory), element.slot.unwrap_or(0));
        put(&element.logical, Cell { label, title, kind, tiles: element.tiles.clone(), slot });
    }
    for slot in &report.padding {
        if let Some(index) = &slot.logical {
            let title = format!("padding at {}", tuple(&slot.memory));
            let label = joined(&slot.memory);
            put(index, Cell { label, title, kind: Kind::Padding, tiles: slot.tiles.clone(), slot: slot.slot });
        }
    }
    grids
}

/// Elements in a line, for an array with one axis.
const WRAP: usize = 64;

/// Memory: each slot with the logical index of what it holds.
pub(super) fn memory(report: &DrawReport) -> Grid {
    let drawn = report.drawn_memory();
    let slots: usize = drawn.iter().copied().map(size).product();
    let two = drawn.len() == 2;
    let columns = if two { size(drawn[1]) } else { size(report.columns) }.max(1);
    // The position of a place in the part of memory that is drawn; `None` outside of that part.
    let position = |memory: &[i128]| {
        let step = |flat: usize, (at, extent): (&i128, &u64)| {
            (*at < i128::from(*extent)).then(|| usize::try_from(*at).ok())?.map(|at| flat * size(*extent) + at)
        };
        memory.iter().zip(drawn).try_fold(0, step)
    };
    let mut cells: Vec<Option<Cell>> = vec![None; slots];
    let mark = report.counterexample.as_ref();
    for element in &report.elements {
        let (Some(slot), Some(at)) = (element.slot, position(&element.memory)) else { continue };
        let Some(place) = cells.get_mut(at) else { continue };
        // The only element of a scalar has an index without numbers.
        let index = if element.logical.is_empty() { tuple(&element.logical) } else { joined(&element.logical) };
        let at = tuple(&element.memory);
        if let Some(cell) = place {
            // A cell names the first two elements in its slot; the counterexample is such a pair.
            let marked = mark.is_some_and(|mark| mark.indices.contains(&element.logical));
            cell.kind = if marked { Kind::Marked } else { cell.kind };
            if !cell.title.contains(" and ") {
                cell.label = format!("{} + {index}", cell.label);
                cell.title = format!("{} and {} both at {at}", cell.title, tuple(&element.logical));
            }
            continue;
        }
        let kind = if element.collides { Kind::Collides } else { Kind::Element };
        let title =
            if element.collides { tuple(&element.logical) } else { format!("{at}: {}", tuple(&element.logical)) };
        *place = Some(Cell { label: index, title, kind, tiles: element.tiles.clone(), slot });
    }
    for slot in &report.padding {
        if let Some(place) = cells.get_mut(size(slot.slot)) {
            let title = format!("{}: padding", tuple(&slot.memory));
            let (label, tiles) = (String::new(), slot.tiles.clone());
            *place = Some(Cell { label, title, kind: Kind::Padding, tiles, slot: slot.slot });
        }
    }
    Grid {
        title: String::new(),
        row_axis: if two { "row".into() } else { "slot".into() },
        column_axis: if two { "column".into() } else { String::new() },
        columns,
        is_memory: true,
        row_step: if two { 1 } else { columns },
        cells,
    }
}
