//! The picture of a memory plan as SVG: steps from left to right, each pool from top to bottom, a box for each tensor while
//! its memory is needed.
//!
//! Boxes above each other share a pool at the same time, boxes side by side one after the other. The height of a pool
//! shows its size. Inputs, which have memory of their own from the first step to the last, share one row. A tensor
//! whose box is too small for its name has a number, and the name stands below the picture. Titles (tooltips) have the
//! rest.

use std::collections::HashSet;
use std::fmt::Write as _;

use tilewright_ir::TensorRole;

use super::draw_svg::{escaped, float, number, text_width};
use super::lines::shortened;
use super::palette::{Palette, PictureStyle};
use super::plan::{PlaceRow, PlanReport, PoolRow, TensorRow};
use super::plan_axis::{Axis, Extent};

const MARGIN: f64 = 20.0;
/// Width of the column with the names of pools.
const GUTTER: f64 = 150.0;
/// Width of all steps, if they fit.
const STEPS: f64 = 1050.0;
/// Height of the largest pool; others are in proportion, but no pool is lower than `LOWEST`.
const HIGHEST: f64 = 230.0;
const LOWEST: f64 = 24.0;
const GAP: f64 = 10.0;
/// Most pools that are drawn; a note names the number of the others. Likewise steps and tensors.
const MAX_POOLS: usize = 400;
const MAX_STEPS: usize = 1000;
const MAX_TENSORS: usize = 5000;
/// Names below the picture, their columns, and the letters of each.
const MAX_NAMES: usize = 240;
const NAME_COLUMNS: usize = 3;
const NAME_LETTERS: usize = 28;
/// Letters of the name of a step.
const STEP_LETTERS: usize = 24;
/// Height of an input in the row that inputs share, and of the row.
const INPUT: f64 = 14.0;
const MAX_INPUTS: f64 = 210.0;
/// Most constants that get a box each.
const MAX_LANES: usize = 12;
/// Greatest height of the row of constants, which says little beyond their sum.
const MAX_CONSTANTS: f64 = 64.0;
/// Most steps that have their names.
const NAMED_STEPS: usize = 60;

/// The document; ends with a newline.
pub fn draw(report: &PlanReport, style: PictureStyle) -> String {
    let steps = report.steps.len().clamp(1, MAX_STEPS);
    let step = (STEPS / float(steps)).clamp(1.0, 120.0);
    let palette = style.palette();
    let mut picture =
        Picture { out: String::new(), report, palette, steps, step, drawn: 0, keyed: Vec::new(), width: 0.0 };
    let mut y = picture.heading();
    y = picture.steps(y);
    let top = y;
    // The lines between steps are as high as the pools, so the boxes are drawn first and put behind the lines
    // afterwards.
    let mut pools = String::new();
    std::mem::swap(&mut pools, &mut picture.out);
    let rows = Rows::of(report);
    let largest = report.pools.iter().map(|pool| pool.bytes).max().unwrap_or(1).max(1);
    for (given, what) in [(&rows.inputs, "input"), (&rows.constants, "constant")] {
        if !given.is_empty() {
            y += picture.given(given, what, y) + GAP;
        }
    }
    for (pool, tensors) in rows.shared.iter().take(MAX_POOLS) {
        let share = ratio(pool.bytes, largest);
        let least = if tensors.len() > 1 { 2.0 * LOWEST } else { LOWEST };
        let height = (share * HIGHEST).max(least);
        picture.pool(pool, tensors, y, height);
        y += height + GAP;
    }
    let boxes = std::mem::replace(&mut picture.out, pools);
    picture.grid(top, y - GAP);
    picture.out.push_str(&boxes);
    if let Some(note) = picture.cut_note(&rows) {
        let small = format!("font-size=\"12\" fill=\"{}\"", palette.text);
        picture.text(MARGIN, y + 12.0, &small, &note);
        y += 22.0;
    }
    y = picture.legend(y + 8.0);
    y = picture.names(y + 10.0);
    picture.close(y + MARGIN)
}

/// The rows of the picture.
struct Rows<'a> {
    /// Inputs with a pool of their own, and constants, if there are several of both.
    inputs: Vec<usize>,
    constants: Vec<usize>,
    /// The other pools with their tensors.
    shared: Vec<(&'a PoolRow, Vec<usize>)>,
}

impl<'a> Rows<'a> {
    fn of(report: &'a PlanReport) -> Self {
        let mut of_pool: Vec<Vec<usize>> = vec![Vec::new(); report.pools.len()];
        for (at, tensor) in report.tensors.iter().enumerate().filter(|(_, tensor)| !tensor.is_view) {
            of_pool[tensor.storage_id].push(at);
        }
        let given = |tensors: &[usize]| match tensors {
            &[only] => report.tensors[only].role.is_given().then_some(only),
            _ => None,
        };
        let all: Vec<usize> = of_pool.iter().filter_map(|tensors| given(tensors)).collect();
        let together = all.len() > 1;
        let pools = report.pools.iter().zip(of_pool);
        let shared = pools.filter(|(_, tensors)| !together || given(tensors).is_none()).collect();
        let is_constant = |&at: &usize| report.tensors[at].role == TensorRole::Constant;
        let all = if together { all } else { Vec::new() };
        let (constants, inputs) = all.into_iter().partition(is_constant);
        Self { inputs, constants, shared }
    }
}

/// `part / whole`, which is at most 1.
fn ratio(part: u128, whole: u128) -> f64 {
    u32::try_from(part.saturating_mul(1 << 24) / whole.max(1)).map_or(1.0, |share| f64::from(share) / 16_777_216.0)
}

/// A number with a comma after each three digits.
fn grouped(value: u128) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

struct Picture<'a> {
    out: String,
    report: &'a PlanReport,
    palette: &'static Palette,
    /// How many steps are drawn.
    steps: usize,
    /// Width of a step.
    step: f64,
    /// How many tensors are drawn.
    drawn: usize,
    /// The tensors whose boxes have a number in the place of their name, from 1.
    keyed: Vec<usize>,
    /// Where the longer one of the title and the line below it ends.
    width: f64,
}

impl Picture<'_> {
    /// Draws the title and the amounts of memory; returns the `y` below them.
    fn heading(&mut self) -> f64 {
        let figures = &self.report.report;
        let title = format!("{}: {} plan", self.report.file, figures.planner);
        self.text(MARGIN, MARGIN + 14.0, "font-size=\"16\" font-weight=\"bold\"", &title);
        let bytes = &figures.bytes;
        let below = format!(
            "{} bytes in {} pools; each tensor by itself {}, compatible planner {}, lower bound {}",
            grouped(bytes.planned),
            self.report.pools.len(),
            grouped(bytes.unshared),
            grouped(bytes.compatible),
            grouped(bytes.lower_bound),
        );
        let small = format!("font-size=\"12\" fill=\"{}\"", self.palette.text);
        self.text(MARGIN, MARGIN + 34.0, &small, &below);
        self.width = MARGIN + text_width(&title, 16.0, true).max(text_width(&below, 12.0, false));
        MARGIN + 44.0
    }

    /// Draws numbers and names of the steps; returns the `y` below them.
    fn steps(&mut self, y: f64) -> f64 {
        let (report, palette, n) = (self.report, self.palette, self.steps);
        let named = n <= NAMED_STEPS && self.step >= 14.0;
        let longest = report.steps.iter().map(|name| name.chars().count().min(STEP_LETTERS)).max().unwrap_or(0);
        let height = if named { 14.0 + float(longest) * 4.2 } else { 14.0 };
        let every = (1..).map(|k| 1usize << k).take(40).find(|&k| float(k) * self.step >= 30.0).unwrap_or(1);
        let every = if self.step >= 18.0 { 1 } else { every };
        for (at, name) in report.steps.iter().enumerate().take(n).step_by(every) {
            let x = self.x(at) + self.step / 2.0;
            let bottom = y + height;
            if named {
                let name = shortened(name, STEP_LETTERS);
                let turn = format!(
                    "font-size=\"11\" fill=\"{}\" transform=\"rotate(-40 {} {})\"",
                    palette.text,
                    number(x),
                    number(bottom - 12.0)
                );
                self.text(x, bottom - 12.0, &turn, &name);
            }
            let small = format!("font-size=\"10\" fill=\"{}\" text-anchor=\"middle\"", palette.faint);
            self.text(x, bottom, &small, &at.to_string());
        }
        y + height + 6.0
    }

    /// The left end of a step.
    fn x(&self, step: usize) -> f64 {
        MARGIN + GUTTER + float(step) * self.step
    }

    /// Draws a light line before each step, unless the steps are too narrow.
    fn grid(&mut self, top: f64, bottom: f64) {
        if self.step < 6.0 {
            return;
        }
        let mut lines = String::new();
        for step in 0..=self.steps {
            let _ = write!(lines, "M{} {}V{}", number(self.x(step)), number(top - 4.0), number(bottom + 4.0));
        }
        let color = self.palette.hairline;
        let _ = writeln!(self.out, "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"0.7\" d=\"{lines}\"/>");
    }

    /// Draws the hatched area of a row, which shows through where memory is free.
    fn area(&mut self, y: f64, height: f64) {
        let width = float(self.steps) * self.step;
        let _ = writeln!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#free)\" stroke=\"{}\" stroke-width=\"0.8\"/>",
            number(self.x(0)),
            number(y),
            number(width),
            number(height),
            self.palette.faint
        );
    }

    /// Draws the row of the inputs or of the constants, each of which has memory of its own; returns its height.
    fn given(&mut self, inputs: &[usize], what: &str, y: f64) -> f64 {
        let is_constant = inputs.iter().all(|&at| self.report.tensors[at].role == TensorRole::Constant);
        let most = if is_constant { MAX_CONSTANTS } else { MAX_INPUTS };
        let height = (INPUT * float(inputs.len())).clamp(2.0 * LOWEST, most);
        self.area(y, height);
        let report = self.report;
        let bytes = inputs.iter().map(|&at| report.pools[report.tensors[at].storage_id].bytes).sum();
        let strong = format!("font-size=\"11\" fill=\"{}\" font-weight=\"bold\"", self.palette.ink);
        self.text(
            MARGIN,
            y + 12.0,
            &strong,
            &format!("{} {what}{}", inputs.len(), if inputs.len() == 1 { "" } else { "s" }),
        );
        let small = format!("font-size=\"11\" fill=\"{}\"", self.palette.text);
        self.text(MARGIN, y + 26.0, &small, &format!("{} bytes", grouped(bytes)));
        self.text(MARGIN, y + 40.0, &small, "a pool for each");
        if is_constant && inputs.len() > MAX_LANES {
            self.constants(inputs.len(), y, height);
            return height;
        }
        for (lane, &at) in inputs.iter().enumerate() {
            let size = 1.0 / float(inputs.len());
            self.tensor(at, &report.tensors[at], Extent { start: float(lane) * size, size }, y, height);
        }
        height
    }

    /// Draws one box for many constants, which are alive all the time and have no names in the picture.
    fn constants(&mut self, count: usize, y: f64, height: f64) {
        let (x, width) = (self.x(0), float(self.steps) * self.step);
        let (fill, line) = (self.palette.hatch[1], self.palette.faint);
        let _ = writeln!(
            self.out,
            "<rect class=\"tensor\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{fill}\" stroke=\"{line}\" \
             stroke-width=\"0.7\"><title>{count} constants</title></rect>",
            number(x),
            number(y),
            number(width),
            number(height)
        );
        self.drawn += count;
    }

    /// Draws a pool: its area, its name, and a box for each tensor.
    fn pool(&mut self, pool: &PoolRow, tensors: &[usize], y: f64, height: f64) {
        self.area(y, height);
        let rows: Vec<&TensorRow> = tensors.iter().map(|&at| &self.report.tensors[at]).collect();
        let axis = Axis::of(pool, &rows);
        self.caption(pool, &axis, y, height);
        for (at, (&tensor, row)) in tensors.iter().zip(&rows).enumerate() {
            let extent = axis.extent(at, row, pool);
            self.tensor(tensor, row, extent, y, height);
        }
    }

    /// Writes name, kind and size of a pool at its left; less of them if the pool is low.
    fn caption(&mut self, pool: &PoolRow, axis: &Axis, y: f64, height: f64) {
        let size = match pool.shape.as_slice() {
            &[width, height, _] => format!("{width}x{height} texels"),
            _ => format!("{} bytes", grouped(pool.bytes)),
        };
        let kind = if pool.shape.len() == 1 { pool.scope.to_owned() } else { format!("{} {}", pool.scope, pool.dtype) };
        let Palette { ink, text, faint, .. } = *self.palette;
        let mut lines = vec![(format!("pool {}", pool.storage_id), ink), (kind, text), (size.clone(), text)];
        lines.extend(axis.name().map(|name| (format!("{name}, from the top"), faint)));
        if height < 14.0 * float(lines.len()) {
            lines = vec![(format!("pool {}", pool.storage_id), ink), (size.clone(), text)];
        }
        if height < 14.0 * float(lines.len()) {
            lines.truncate(1);
            let beside = MARGIN + 7.2 * float(lines[0].0.chars().count()) + 4.0;
            self.text(beside, y + 12.0, &format!("font-size=\"10\" fill=\"{text}\""), &size);
        }
        for (at, (text, color)) in lines.iter().enumerate() {
            let weight = if at == 0 { " font-weight=\"bold\"" } else { "" };
            let attributes = format!("font-size=\"11\" fill=\"{color}\"{weight}");
            self.text(MARGIN, y + 12.0 + 14.0 * float(at), &attributes, text);
        }
    }

    /// Draws the box of a tensor: its lifetime from left to right, its extent in the pool from top to bottom.
    fn tensor(&mut self, at: usize, row: &TensorRow, extent: Extent, y: f64, height: f64) {
        if row.first >= self.steps || self.drawn >= MAX_TENSORS {
            return;
        }
        self.drawn += 1;
        let palette = self.palette;
        // The last step is included in the lifetime, so the box ends where the next step begins.
        let end = (row.last + 1).min(self.steps);
        let (x, width) = (self.x(row.first), float(end - row.first) * self.step);
        let (top, high) = (y + extent.start * height, (extent.size * height).max(1.0));
        let inset = if self.step > 8.0 { 1.0 } else { 0.0 };
        let fill = self.fill(at, row);
        let border = if row.role == TensorRole::Output { (palette.ink, "1.8") } else { (palette.faint, "0.7") };
        let place = place(row);
        let _ = writeln!(
            self.out,
            "<rect class=\"tensor\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{fill}\" stroke=\"{}\" \
             stroke-width=\"{}\"><title>{}: {}, {place}, steps {} to {}</title></rect>",
            number(x + inset),
            number(top),
            number(width - 2.0 * inset),
            number(high),
            border.0,
            border.1,
            escaped(&row.name),
            escaped(&row.what),
            row.first,
            row.last,
        );
        // There may be hundreds of constants, all alive all the time: the caption of their row and their tooltips name them.
        if !self.named(row, (x, top), (width, high)) && row.role != TensorRole::Constant {
            self.keyed.push(at);
            self.key(self.keyed.len(), (x, top), (width, high));
        }
    }

    /// The colour of a tensor. Inputs share one, because their memory is never shared.
    fn fill(&self, at: usize, row: &TensorRow) -> String {
        match row.role {
            TensorRole::Input => self.palette.input.to_owned(),
            TensorRole::Constant => self.palette.hatch[1].to_owned(),
            TensorRole::Output | TensorRole::Intermediate => self.palette.hue(at, 76),
        }
    }

    /// Writes the name of a tensor into its box, and its place if there is room. Returns whether the name fits.
    fn named(&mut self, row: &TensorRow, (x, top): (f64, f64), (width, high): (f64, f64)) -> bool {
        let fits = |text: &str, font: f64| float(text.chars().count()) * font * 0.6 + 3.9 <= width;
        let font = (high - 3.0).min(12.0);
        if font < 6.0 {
            return false;
        }
        let Palette { ink, text, .. } = *self.palette;
        let place = place(row);
        // Smaller letters, if the name fits then.
        let narrow = (width - 4.0) / (0.6 * float(row.name.chars().count().max(1)));
        let font = if narrow >= 8.0 { font.min(narrow) } else { font };
        let middle =
            format!("fill=\"{ink}\" text-anchor=\"middle\" pointer-events=\"none\" font-size=\"{}\"", number(font));
        let (center, mid) = (x + width / 2.0, top + high / 2.0);
        if !fits(&row.name, font) {
            return self.upright(&row.name, center, mid, width, high);
        }
        if high >= 30.0 && fits(&place, 9.5) {
            self.text(center, mid - 1.0, &middle, &row.name);
            let small = format!("fill=\"{text}\" text-anchor=\"middle\" pointer-events=\"none\" font-size=\"9.5\"");
            self.text(center, mid + 11.0, &small, &place);
        } else {
            self.text(center, mid + font * 0.35, &middle, &row.name);
        }
        true
    }

    /// Writes the number of a tensor into a box that is too small for its name, if the number fits.
    fn key(&mut self, key: usize, (x, top): (f64, f64), (width, high): (f64, f64)) {
        let text = key.to_string();
        let font = (high - 1.0).min((width - 1.0) / (0.6 * float(text.len()))).min(10.0);
        if key <= MAX_NAMES && font >= 5.0 {
            let look = format!(
                "fill=\"{}\" text-anchor=\"middle\" pointer-events=\"none\" font-style=\"italic\" font-size=\"{}\"",
                self.palette.ink,
                number(font)
            );
            self.text(x + width / 2.0, top + high / 2.0 + font * 0.35, &look, &text);
        }
    }

    /// A note with the numbers of pools, steps and tensors that are not drawn; `None` if all are.
    fn cut_note(&self, rows: &Rows<'_>) -> Option<String> {
        let report = self.report;
        let holders = report.tensors.iter().filter(|tensor| !tensor.is_view).count();
        let left_out = [
            (rows.shared.len().saturating_sub(MAX_POOLS), "pools"),
            (report.steps.len().saturating_sub(MAX_STEPS), "steps"),
            (holders - self.drawn, "tensors"),
        ];
        let parts: Vec<String> =
            left_out.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        (!parts.is_empty()).then(|| {
            format!("too large for one picture: {} are not drawn; --format json lists all of them", parts.join(", "))
        })
    }

    /// Writes the names of the tensors that have a number; returns the `y` below them.
    fn names(&mut self, y: f64) -> f64 {
        let keyed = std::mem::take(&mut self.keyed);
        if keyed.is_empty() {
            return y - 10.0;
        }
        let report = self.report;
        let shown = &keyed[..keyed.len().min(MAX_NAMES)];
        let rows = shown.len().div_ceil(NAME_COLUMNS);
        let width = (GUTTER + STEPS) / float(NAME_COLUMNS);
        let small = format!("font-size=\"10\" fill=\"{}\"", self.palette.text);
        // Names go down the first column and then the next, so that numbers are in reading order within a column.
        for (position, &at) in shown.iter().enumerate() {
            let row = &report.tensors[at];
            let (x, y) = (MARGIN + float(position / rows) * width, y + float(position % rows) * 15.0);
            let (fill, line) = (self.fill(at, row), self.palette.faint);
            let (left, top) = (number(x), number(y));
            let _ = writeln!(
                self.out,
                "<rect x=\"{left}\" y=\"{top}\" width=\"10\" height=\"10\" fill=\"{fill}\" stroke=\"{line}\"/>"
            );
            let short = shortened(&row.name, NAME_LETTERS);
            let (pool, first, last) = (row.storage_id, row.first, row.last);
            let text = format!("{}  {short}: pool {pool}, {}, steps {first} to {last}", position + 1, place(row));
            self.text(x + 15.0, y + 9.0, &small, &text);
        }
        let mut y = y + float(rows) * 15.0;
        if keyed.len() > shown.len() {
            let more = format!("and {} more names; --format json lists all of them", keyed.len() - shown.len());
            self.text(MARGIN, y + 10.0, &small, &more);
            y += 15.0;
        }
        y
    }

    /// Writes a name from the bottom to the top of its box if it fits that way. Returns whether it does.
    fn upright(&mut self, name: &str, x: f64, y: f64, width: f64, height: f64) -> bool {
        let font = (width - 4.0).min(11.0);
        if font >= 6.0 && float(name.chars().count()) * font * 0.6 + 4.0 <= height {
            let at = (number(x + font * 0.35), number(y));
            let turned = format!(
                "fill=\"{}\" text-anchor=\"middle\" pointer-events=\"none\" font-size=\"{}\" transform=\"rotate(-90 {} {})\"",
                self.palette.ink,
                number(font),
                at.0,
                at.1
            );
            self.text(x + font * 0.35, y, &turned, name);
            return true;
        }
        false
    }

    /// Draws the meaning of the boxes that appear; returns the `y` below it.
    fn legend(&mut self, y: f64) -> f64 {
        let roles: HashSet<TensorRole> = self.report.tensors.iter().map(|tensor| tensor.role).collect();
        let Palette { input, ink, text: dim, faint, hatch: [_, constant], .. } = *self.palette;
        let tensor = self.palette.hue(0, 76);
        let entries = [
            (TensorRole::Input, format!("fill=\"{input}\" stroke=\"{faint}\""), "input: memory of its own"),
            (
                TensorRole::Constant,
                format!("fill=\"{constant}\" stroke=\"{faint}\""),
                "constant: the same in every run",
            ),
            (
                TensorRole::Intermediate,
                format!("fill=\"{tensor}\" stroke=\"{faint}\""),
                "tensor: from the step that writes it to its last reader",
            ),
            (
                TensorRole::Output,
                format!("fill=\"{tensor}\" stroke=\"{ink}\" stroke-width=\"1.8\""),
                "output: lives to the end",
            ),
        ];
        let mut x = MARGIN;
        let free = [(format!("fill=\"url(#free)\" stroke=\"{faint}\""), "free")];
        // Hatching for free memory appears in every picture; roles only if a tensor has them.
        let shown = entries.into_iter().filter(|(role, ..)| roles.contains(role)).map(|(_, look, text)| (look, text));
        for (look, text) in shown.chain(free) {
            let _ =
                writeln!(self.out, "<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" {look}/>", number(x), number(y));
            self.text(x + 20.0, y + 11.0, &format!("font-size=\"11\" fill=\"{dim}\""), text);
            x += 44.0 + float(text.chars().count()) * 5.8;
        }
        y + 14.0
    }

    fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.out, "<text x=\"{}\" y=\"{}\" {attributes}>{text}</text>", number(x), number(y));
    }

    fn close(self, height: f64) -> String {
        let steps = self.x(self.steps) + MARGIN;
        let Palette { paper, ink, hatch: [ground, stroke], .. } = self.palette;
        // The last name of a step leans over the end.
        let (width, height) = (number((steps + 90.0).max(940.0).max(self.width + MARGIN)), number(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" fill=\"{ink}\">\n<defs><pattern id=\"free\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" \
             fill=\"{ground}\"/><rect width=\"1\" height=\"6\" fill=\"{stroke}\"/></pattern></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{}</svg>\n",
            self.out
        )
    }
}

/// The place of a tensor in few characters: `0..392`, or `7x14 at (0, 28)` in texels.
fn place(row: &TensorRow) -> String {
    match row.place {
        PlaceRow::Byte { offset } => format!("{offset}..{}", offset.saturating_add(row.size)),
        PlaceRow::Texels { x: 0, y: 0, width, height } => format!("{width}x{height}"),
        PlaceRow::Texels { x, y, width, height } => format!("{width}x{height} at ({x}, {y})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn ratios_are_at_most_one() {
        assert!((ratio(1, 2) - 0.5).abs() < 1e-6);
        assert!((ratio(u128::MAX, 1) - 1.0).abs() < 1e-6);
        assert!(ratio(0, 0).abs() < 1e-6);
    }
}
