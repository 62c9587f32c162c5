//! The picture of `tilewright draw` as SVG: the logical array with each element's place in memory, and memory with each
//! slot's index. Tiles of the first level have a colour and a dark border, those of the second red boxes; padding is
//! hatched. If there is no room for numbers, they are in the cells' titles, which browsers show as tooltips.
//!
//! All coordinates are in SVG user units, which are pixels at the size that is written; `y` grows downwards. Functions
//! that draw a part get its upper left corner, and those that stack parts return the `y` below it.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::draw::DrawReport;
use super::draw_grid::{Cell, Grid, Kind, logical, memory};
use super::palette::{Palette, PictureStyle};

/// Width of the picture, unless one grid is wider.
const PAGE: f64 = 1240.0;
const MARGIN: f64 = 20.0;
/// Least room for the numbers of rows, and the name of their axis.
const GUTTER: f64 = 40.0;
/// Room for a title and the name of the axis beside it, and for the numbers of columns.
const HEAD: f64 = 34.0;
/// Height of a line for a title that has no room beside the name of the axis.
const TITLE: f64 = 14.0;
/// Sizes of the letters of the titles of panels, and of the names of axes.
const TITLE_FONT: f64 = 11.0;
const AXIS_FONT: f64 = 9.0;
const GAP: f64 = 28.0;
const ARRAY: &str = "Array: each element with its place in memory";
const MEMORY: &str = "Memory: each slot with the index of its element";
/// Most cells with large numbers in them; up to `SMALL` cells have small numbers, and more have none.
const LARGE: usize = 640;
const SMALL: usize = 8704;
/// Width of the borders of each level's tiles.
const BORDERS: [&str; 3] = ["1.8", "1", "0.7"];

/// The document; ends with a newline.
pub fn draw(report: &DrawReport, style: PictureStyle) -> String {
    let (out, palette, levels) = (String::new(), style.palette(), report.levels.len());
    let mut picture = Picture { out, palette, colors: Colors::new(report), levels, width: 0.0 };
    let (grids, slots) = (logical(report), memory(report));
    let mut y = picture.heading(report);
    y = picture.caption(MARGIN, y, ARRAY);
    let size = Size::of(&grids);
    let (mut x, mut row) = (MARGIN, 0.0f64);
    for grid in &grids {
        let (wide, high) = size.outer(grid);
        if x > MARGIN && x + wide > PAGE - MARGIN {
            (x, y, row) = (MARGIN, y + row + GAP / 2.0, 0.0);
        }
        picture.grid(grid, &size, x, y);
        picture.reaches(x + wide);
        x += wide + GAP;
        row = row.max(high);
    }
    let own = Size::of(std::slice::from_ref(&slots));
    let (wide, high) = own.outer(&slots);
    // Memory is drawn beside the array if both fit on the page.
    let x = x.max(MARGIN + caption_width(ARRAY));
    if grids.len() == 1 && x + GAP + wide <= PAGE - MARGIN {
        picture.reaches(x + GAP + wide);
        picture.caption(x + GAP, y - 22.0, MEMORY);
        picture.grid(&slots, &own, x + GAP, y);
        y += row.max(high);
    } else {
        y = picture.caption(MARGIN, y + row + GAP, MEMORY);
        picture.grid(&slots, &own, MARGIN, y);
        picture.reaches(MARGIN + wide);
        y += high;
    }
    let y = picture.legend(report, y + GAP);
    picture.close(y + MARGIN)
}

/// The size of cells, chosen by their number: large with text, small with text, or squares without.
struct Size {
    width: f64,
    height: f64,
    /// The size of the letters in them; `None` if there are none.
    font: Option<f64>,
    /// Room on the left of the cells, and above them.
    gutter: f64,
    head: f64,
}

impl Size {
    fn of(grids: &[Grid]) -> Self {
        let cells = || grids.iter().flat_map(|grid| &grid.cells).flatten();
        // Among many cells, those with two indices do not make all others wide: they get smaller letters.
        let few = cells().count() <= LARGE;
        let counts = cells().filter(|cell| few || cell.kind != Kind::Marked && cell.kind != Kind::Collides);
        let longest = counts.map(|cell| cell.label.chars().count()).max();
        let chars = float(longest.unwrap_or(1));
        let columns = float(grids.first().map_or(1, |grid| grid.columns));
        let names = grids.iter().map(|grid| text_width(&grid.row_axis, AXIS_FONT, false) + 20.0);
        let gutter = names.fold(GUTTER, f64::max);
        let (width, height, font) = match cells().count() {
            ..=LARGE => ((chars * 7.6 + 8.0).max(26.0), 26.0, Some(12.0)),
            count if count <= SMALL => ((chars * 3.9 + 3.0).max(13.0), 13.0, Some(6.2)),
            _ => {
                let side = ((PAGE - 2.0 * MARGIN - gutter) / columns).clamp(3.0, 9.0).floor();
                (side, side, None)
            }
        };
        let above =
            |grid: &Grid| title_width(grid) > 0.0 && title_width(grid) + axis_width(grid) + 8.0 > columns * width;
        let head = if grids.iter().any(above) { HEAD + TITLE } else { HEAD };
        Self { width, height, font, gutter, head }
    }

    /// Width and height of a grid with its title and the numbers of its rows and columns.
    fn outer(&self, grid: &Grid) -> (f64, f64) {
        let wide = (float(grid.columns) * self.width).max(title_width(grid)).max(axis_width(grid));
        (self.gutter + wide, self.head + float(grid.rows()) * self.height)
    }
}

/// Width of the title of a grid; 0 if it has none.
fn title_width(grid: &Grid) -> f64 {
    text_width(&grid.title, TITLE_FONT, false)
}

/// Width of the name of the axis that counts to the right, with its arrow; 0 if it has none.
fn axis_width(grid: &Grid) -> f64 {
    if grid.column_axis.is_empty() { 0.0 } else { text_width(&grid.column_axis, AXIS_FONT, false) + 14.0 }
}

/// What colour an element has: one for each tile, lighter where its memory begins.
struct Colors {
    /// First and last slot of each tile.
    range: HashMap<u64, (u64, u64)>,
}

impl Colors {
    fn new(report: &DrawReport) -> Self {
        let mut range: HashMap<u64, (u64, u64)> = HashMap::new();
        for element in &report.elements {
            if let Some(slot) = element.slot {
                let tile = element.tiles.first().copied().unwrap_or(0);
                let (first, last) = range.entry(tile).or_insert((slot, slot));
                (*first, *last) = ((*first).min(slot), (*last).max(slot));
            }
        }
        Self { range }
    }

    /// The colour of a cell, or the pattern of padding.
    fn fill(&self, cell: &Cell, palette: &Palette) -> String {
        match cell.kind {
            Kind::Padding => return "url(#p)".into(),
            Kind::Marked => return palette.marked[0].into(),
            Kind::Collides => return palette.collides.into(),
            Kind::Outside => return palette.outside.into(),
            Kind::Element => {}
        }
        let tile = cell.tiles.first().copied().unwrap_or(0);
        let (first, last) = self.range.get(&tile).copied().unwrap_or((0, 1));
        let paper = 165 - 165 * (cell.slot.saturating_sub(first)) / (last.saturating_sub(first)).max(1);
        let paper = u32::try_from(paper).unwrap_or(0).min(255);
        palette.hue(usize::try_from(tile).unwrap_or(0), paper)
    }
}

struct Picture {
    out: String,
    palette: &'static Palette,
    colors: Colors,
    levels: usize,
    /// Where the rightmost thing ends.
    width: f64,
}

impl Picture {
    /// Draws title, summary and fault; returns the `y` below them.
    fn heading(&mut self, report: &DrawReport) -> f64 {
        let mut y = MARGIN + 14.0;
        let wrong = report.counterexample.as_ref().map(|mark| format!("Wrong: {}", mark.text));
        self.reaches(MARGIN + text_width(&report.subject, 16.0, true));
        self.reaches(MARGIN + text_width(&report.summary(), 12.0, false));
        self.text(MARGIN, y, "font-size=\"16\" font-weight=\"bold\"", &report.subject);
        y += 20.0;
        let small = format!("font-size=\"12\" fill=\"{}\"", self.palette.text);
        self.text(MARGIN, y, &small, &report.summary());
        for note in [report.cut_note(), report.whole_note()].into_iter().flatten() {
            y += 18.0;
            self.reaches(MARGIN + text_width(&note, 12.0, false));
            self.text(MARGIN, y, &small, &note);
        }
        if let Some(wrong) = wrong {
            y += 20.0;
            let alarm = format!("font-size=\"13\" font-weight=\"bold\" fill=\"{}\"", self.palette.alarm);
            self.reaches(MARGIN + text_width(&wrong, 13.0, true));
            self.text(MARGIN, y, &alarm, &wrong);
        }
        y + 12.0
    }

    /// Draws a bold line of text; returns the `y` below it.
    fn caption(&mut self, x: f64, y: f64, text: &str) -> f64 {
        let bold = format!("font-size=\"13\" font-weight=\"bold\" fill=\"{}\"", self.palette.text);
        self.text(x, y + 16.0, &bold, text);
        self.reaches(x + caption_width(text));
        y + 22.0
    }

    fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.out, "<text x=\"{}\" y=\"{}\" {attributes}>{text}</text>", number(x), number(y));
    }

    /// Draws a grid: numbers of rows and columns, cells, labels, borders of tiles, marks.
    fn grid(&mut self, grid: &Grid, size: &Size, x: f64, y: f64) {
        if !grid.title.is_empty() {
            let small = format!("font-size=\"{TITLE_FONT}\" fill=\"{}\"", self.palette.text);
            self.text(x + size.gutter, y + 14.0, &small, &grid.title);
        }
        let (x, y) = (x + size.gutter, y + size.head);
        self.axes(grid, size, x, y);
        let line = if size.font.is_some() { ".4" } else { "0" };
        let _ = writeln!(self.out, "<g stroke=\"{}\" stroke-width=\"{line}\">", self.palette.line);
        let each = |picture: &mut Self, draw: &mut dyn FnMut(&mut Self, &Cell, f64, f64)| {
            for (position, cell) in grid.cells.iter().enumerate() {
                if let Some(cell) = cell {
                    let (row, column) = (position / grid.columns.max(1), position % grid.columns.max(1));
                    draw(picture, cell, x + float(column) * size.width, y + float(row) * size.height);
                }
            }
        };
        let large = size.font.is_some_and(|font| font > 10.0);
        // Every cell with a tooltip is a path of its own. If labels are small or missing, cells that need no tooltip
        // are merged into runs, which keeps the file small.
        let own = |cell: &Cell| large || cell.kind != Kind::Padding && (size.font.is_some() || !grid.is_memory);
        each(self, &mut |picture, cell, x, y| {
            if own(cell) {
                picture.cell(cell, size, x, y);
            }
        });
        self.together(grid, size, (x, y), |cell| !own(cell));
        self.out.push_str("</g>\n");
        if let Some(font) = size.font {
            let attributes = "text-anchor=\"middle\" pointer-events=\"none\"";
            let _ = writeln!(self.out, "<g font-size=\"{}\" {attributes}>", number(font));
            each(self, &mut |picture, cell, x, y| picture.label(cell, size, font, x, y));
            self.out.push_str("</g>\n");
        }
        // The first level is drawn last, so that its thick borders lie over the thin ones of inner tiles.
        for level in (0..self.levels.min(BORDERS.len())).rev() {
            self.borders(grid, size, level, x, y);
        }
        self.marks(grid, size, x, y);
    }

    fn cell(&mut self, cell: &Cell, size: &Size, x: f64, y: f64) {
        let class = if cell.kind == Kind::Padding { "p" } else { "e" };
        let (x, y, w, h) = (number(x), number(y), number(size.width), number(size.height));
        let _ = writeln!(
            self.out,
            "<path class=\"{class}\" fill=\"{}\" d=\"M{x} {y}h{w}v{h}h-{w}z\"><title>{}</title></path>",
            self.colors.fill(cell, self.palette),
            escaped(&cell.title)
        );
    }

    /// Draws cells without tooltips. Neighbours in a row with one colour become one rectangle.
    fn together(&mut self, grid: &Grid, size: &Size, (x, y): (f64, f64), take: impl Fn(&Cell) -> bool) {
        for row in 0..grid.rows() {
            let fill = |column: usize| {
                grid.cell(row, column).filter(|cell| take(cell)).map(|cell| self.colors.fill(cell, self.palette))
            };
            let mut runs: Vec<(usize, usize, String)> = Vec::new();
            for column in 0..grid.columns {
                let Some(fill) = fill(column) else { continue };
                match runs.last_mut() {
                    Some((_, end, same)) if *end == column && *same == fill => *end += 1,
                    _ => runs.push((column, column + 1, fill)),
                }
            }
            for (start, end, fill) in runs {
                let (x, y) = (number(x + float(start) * size.width), number(y + float(row) * size.height));
                let (w, h) = (number(float(end - start) * size.width), number(size.height));
                let _ = writeln!(self.out, "<path class=\"r\" fill=\"{fill}\" d=\"M{x} {y}h{w}v{h}h-{w}z\"/>");
            }
        }
    }

    fn label(&mut self, cell: &Cell, size: &Size, font: f64, x: f64, y: f64) {
        // Small numbers are for elements only; padding is long where tiles are large.
        if cell.label.is_empty() || font < 10.0 && cell.kind == Kind::Padding {
            return;
        }
        let mut attributes = String::new();
        if cell.kind == Kind::Padding {
            let _ = write!(attributes, " fill=\"{}\"", self.palette.faint);
        }
        // Two indices in one slot stand in smaller letters.
        let room = (size.width - 3.0) / (0.58 * float(cell.label.chars().count()));
        if room < font {
            let _ = write!(attributes, " font-size=\"{}\"", number(room));
        }
        let (x, y) = (number(x + size.width / 2.0), number(y + size.height / 2.0 + font * 0.35));
        let _ = writeln!(self.out, "<text x=\"{x}\" y=\"{y}\"{attributes}>{}</text>", escaped(&cell.label));
    }

    /// Draws the numbers of rows and columns, as many as there is room for, and the names of the axes.
    fn axes(&mut self, grid: &Grid, size: &Size, x: f64, y: f64) {
        let every =
            |room: f64, wanted: f64| [1usize, 2, 4, 8, 16, 32, 64].into_iter().find(|&n| float(n) * room >= wanted);
        let _ = writeln!(self.out, "<g font-size=\"{AXIS_FONT}\" fill=\"{}\">", self.palette.faint);
        if !grid.column_axis.is_empty() || grid.row_step == grid.columns {
            for column in (0..grid.columns).step_by(every(size.width, 20.0).unwrap_or(64)) {
                let at = x + (float(column) + 0.5) * size.width;
                self.text(at, y - 4.0, "text-anchor=\"middle\"", &column.to_string());
            }
        }
        for row in (0..grid.rows()).step_by(every(size.height, 11.0).unwrap_or(64)) {
            let at = y + (float(row) + 0.5) * size.height + 3.0;
            self.text(x - 5.0, at, "text-anchor=\"end\"", &(row * grid.row_step).to_string());
        }
        if !grid.column_axis.is_empty() {
            // Above the last column; a name that is longer than the grid begins with it.
            let end = x + (float(grid.columns) * size.width).max(axis_width(grid));
            self.text(
                end,
                y - 15.0,
                "text-anchor=\"end\" font-style=\"italic\"",
                &format!("{} \u{2192}", grid.column_axis),
            );
        }
        if !grid.row_axis.is_empty() {
            self.text(
                x - 5.0,
                y - 4.0,
                "text-anchor=\"end\" font-style=\"italic\"",
                &format!("{} \u{2193}", grid.row_axis),
            );
        }
        self.out.push_str("</g>\n");
    }

    /// Draws the borders of the tiles of a level, as lines that are as long as possible.
    fn borders(&mut self, grid: &Grid, size: &Size, level: usize, x: f64, y: f64) {
        let (rows, columns) = (grid.rows(), grid.columns);
        // Rows and columns count from 1 here, so that 0 is the empty place before the first cell and has a border, too.
        let at = |row: usize, column: usize| grid.cell(row.checked_sub(1)?, column.checked_sub(1)?);
        let mut lines = String::new();
        for column in 1..=columns + 1 {
            let is_border = |row: usize| Grid::border(level, at(row, column - 1), at(row, column));
            for (start, end) in runs(rows, is_border) {
                let from = (number(x + float(column - 1) * size.width), number(y + float(start) * size.height));
                let _ = write!(lines, "M{} {}v{}", from.0, from.1, number(float(end - start) * size.height));
            }
        }
        for row in 1..=rows + 1 {
            let is_border = |column: usize| Grid::border(level, at(row - 1, column), at(row, column));
            for (start, end) in runs(columns, is_border) {
                let from = (number(x + float(start) * size.width), number(y + float(row - 1) * size.height));
                let _ = write!(lines, "M{} {}h{}", from.0, from.1, number(float(end - start) * size.width));
            }
        }
        if let (false, Some(width), Some(color)) =
            (lines.is_empty(), BORDERS.get(level), self.palette.borders.get(level))
        {
            let thin = match size.font {
                Some(font) if font > 10.0 => width,
                Some(_) => ["1.2", "0.6", "0.4"][level],
                None => ["0.8", "0.25", "0.2"][level],
            };
            let end = "stroke-linecap=\"square\" pointer-events=\"none\"";
            let _ = writeln!(
                self.out,
                "<path class=\"t\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{thin}\" {end} d=\"{lines}\"/>"
            );
        }
    }

    /// Draws a thick frame around the elements of the counterexample.
    fn marks(&mut self, grid: &Grid, size: &Size, x: f64, y: f64) {
        for (position, cell) in grid.cells.iter().enumerate() {
            if cell.as_ref().is_some_and(|cell| cell.kind == Kind::Marked) {
                let (row, column) = (position / grid.columns.max(1), position % grid.columns.max(1));
                let (x, y) = (number(x + float(column) * size.width), number(y + float(row) * size.height));
                let (w, h) = (number(size.width), number(size.height));
                let _ = writeln!(
                    self.out,
                    "<path class=\"m\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.6\" d=\"M{x} {y}h{w}v{h}h-{w}z\"/>",
                    self.palette.marked[1]
                );
            }
        }
    }

    /// Draws the meaning of the colours that appear; returns the `y` below it.
    fn legend(&mut self, report: &DrawReport, y: f64) -> f64 {
        let mut entries: Vec<(String, String)> = Vec::new();
        let box_of = |fill: &str, stroke: &str| format!("fill=\"{fill}\" stroke=\"{stroke}\"");
        let palette = self.palette;
        for (name, color) in report.levels.iter().zip(palette.borders) {
            entries.push((box_of("none", color), format!("border of a tile {name}")));
        }
        if !report.padding.is_empty() {
            entries.push((box_of("url(#p)", palette.line), "padding".into()));
        }
        if report.counterexample.is_some() {
            entries.push((box_of(palette.marked[0], palette.marked[1]), "the counterexample".into()));
        }
        if report.elements.iter().any(|element| element.collides) {
            entries.push((box_of(palette.collides, palette.line), "shares its slot".into()));
        }
        entries.push((box_of(&palette.hue(0, 0), palette.line), palette.order.into()));
        let mut x = MARGIN;
        // Letters of 11 units are about 6.2 wide; an entry is its box, the text, and a gap of 24.
        for (attributes, text) in entries {
            let (at, top) = (number(x), number(y));
            let _ = writeln!(self.out, "<path class=\"l\" {attributes} d=\"M{at} {top}h14v14h-14z\"/>");
            self.text(x + 20.0, y + 11.0, &format!("font-size=\"11\" fill=\"{}\"", palette.text), &text);
            x += 44.0 + text_width(&text, 11.0, false);
            self.reaches(x - 24.0);
        }
        y + 14.0
    }

    /// Notes that something is drawn up to `x`, which makes the picture wide enough.
    fn reaches(&mut self, x: f64) {
        self.width = self.width.max(x);
    }

    /// The document: the parts drawn so far in a picture of this height.
    fn close(self, height: f64) -> String {
        let Palette { paper, ink, hatch: [ground, stroke], .. } = self.palette;
        let (width, height) = (number(self.width + MARGIN), number(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" fill=\"{ink}\">\n<defs><pattern id=\"p\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" \
             fill=\"{ground}\"/><rect width=\"1.2\" height=\"6\" fill=\"{stroke}\"/></pattern></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{}</svg>\n",
            self.out
        )
    }
}

/// The maximal runs of the numbers 1 to `count` for which `holds` is true. A run from 1 to 3 is `(0, 3)`.
fn runs(count: usize, holds: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for place in (1..=count).filter(|&place| holds(place)) {
        match found.last_mut() {
            Some((_, end)) if *end == place - 1 => *end = place,
            _ => found.push((place - 1, place)),
        }
    }
    found
}

/// The width of a bold caption, estimated by its letters.
fn caption_width(text: &str) -> f64 {
    text_width(text, 13.0, true)
}

/// An upper estimate of the width of a text in a sans-serif font: which one the viewer has is not known, so this takes
/// the wide `DejaVu Sans`.
pub(super) fn text_width(text: &str, font: f64, is_bold: bool) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | '\'' | '|' | ' ' | '.' | ',' | ':' | ';' | '!' | '/' | '(' | ')' | '[' | ']' | 'f' | 't'
        | 'r' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '+' | '=' | '<' | '>' => 0.99,
        'A'..='Z' | '\u{80}'.. => 0.79,
        _ => 0.64,
    };
    let em: f64 = text.chars().map(width).sum();
    em * font * if is_bold { 1.12 } else { 1.0 }
}

/// A count as a coordinate.
pub(super) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// A coordinate with at most one digit after the point: `1.25` gives `1.2`, `3.0` gives `3`.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Text with XML's special characters escaped. Characters that XML cannot contain become question marks.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
