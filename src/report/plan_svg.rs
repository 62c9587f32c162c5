//! The picture of a memory plan as SVG: steps from left to right, each pool from top to bottom, a box for each tensor while
//! its memory is needed. Boxes above each other share a pool at once, boxes side by side one after the other. A pool is as
//! high as it is large. Titles (tooltips) have what does not fit into a box.

use std::collections::HashSet;
use std::fmt::Write as _;

use tilewright_ir::TensorRole;

use super::draw_svg::{PALETTE, escaped, float, number};
use super::plan::{PlaceRow, PlanReport, PoolRow, TensorRow};
use super::plan_axis::{Axis, Extent};

const MARGIN: f64 = 20.0;
/// Room for what pools are called.
const GUTTER: f64 = 150.0;
/// Room for all steps, if they fit.
const STEPS: f64 = 1050.0;
/// The largest pool's height; no pool is lower than the least one.
const HIGHEST: f64 = 230.0;
const LOWEST: f64 = 24.0;
const GAP: f64 = 10.0;
/// More pools are not drawn.
const MAX_POOLS: usize = 400;
/// Steps up to which each has its name.
const NAMED_STEPS: usize = 60;

/// The document; ends with a newline.
pub fn draw(report: &PlanReport) -> String {
    let steps = float(report.steps.len().max(1));
    let mut picture = Picture { out: String::new(), report, step: (STEPS / steps).clamp(1.0, 120.0) };
    let mut y = picture.heading();
    y = picture.steps(y);
    let top = y;
    let mut pools = String::new();
    std::mem::swap(&mut pools, &mut picture.out);
    let mut of_pool: Vec<Vec<usize>> = vec![Vec::new(); report.pools.len()];
    for (at, tensor) in report.tensors.iter().enumerate().filter(|(_, tensor)| !tensor.is_view) {
        of_pool[tensor.storage_id].push(at);
    }
    let largest = report.pools.iter().map(|pool| pool.bytes).max().unwrap_or(1).max(1);
    for (pool, tensors) in report.pools.iter().zip(&of_pool).take(MAX_POOLS) {
        let share = ratio(pool.bytes, largest);
        let least = if tensors.len() > 1 { 2.0 * LOWEST } else { LOWEST };
        let height = (share * HIGHEST).max(least);
        picture.pool(pool, tensors, y, height);
        y += height + GAP;
    }
    let boxes = std::mem::replace(&mut picture.out, pools);
    picture.grid(top, y - GAP);
    picture.out.push_str(&boxes);
    if report.pools.len() > MAX_POOLS {
        let more = format!("and {} more pools", report.pools.len() - MAX_POOLS);
        picture.text(MARGIN, y + 12.0, "font-size=\"12\" fill=\"#444\"", &more);
        y += 20.0;
    }
    let y = picture.legend(y + 8.0);
    picture.close(y + MARGIN)
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
    /// Width of a step.
    step: f64,
}

impl Picture<'_> {
    fn heading(&mut self) -> f64 {
        let figures = &self.report.report;
        let title = format!("{}: {} plan", self.report.file, figures.planner);
        self.text(MARGIN, MARGIN + 14.0, "font-size=\"16\" font-weight=\"bold\"", &title);
        let bytes = &figures.bytes;
        let below = format!(
            "{} bytes in {} pools; each tensor by itself {}, compatible planner {}, largest live set {}",
            grouped(bytes.planned),
            self.report.pools.len(),
            grouped(bytes.unshared),
            grouped(bytes.compatible),
            grouped(bytes.lower_bound),
        );
        self.text(MARGIN, MARGIN + 34.0, "font-size=\"12\" fill=\"#444\"", &below);
        MARGIN + 44.0
    }

    /// Numbers and names of the steps; returns where to go on.
    fn steps(&mut self, y: f64) -> f64 {
        let report = self.report;
        let n = report.steps.len();
        let named = n <= NAMED_STEPS && self.step >= 14.0;
        let longest = report.steps.iter().map(|name| name.chars().count().min(24)).max().unwrap_or(0);
        let height = if named { 14.0 + float(longest) * 4.2 } else { 14.0 };
        let every = (1..).map(|k| 1usize << k).take(40).find(|&k| float(k) * self.step >= 30.0).unwrap_or(1);
        let every = if self.step >= 18.0 { 1 } else { every };
        for (at, name) in report.steps.iter().enumerate().step_by(every) {
            let x = self.x(at) + self.step / 2.0;
            let bottom = y + height;
            if named {
                let name: String = name.chars().take(24).collect();
                let turn = format!(
                    "font-size=\"11\" fill=\"#333\" transform=\"rotate(-40 {} {})\"",
                    number(x),
                    number(bottom - 12.0)
                );
                self.text(x, bottom - 12.0, &turn, &name);
            }
            self.text(x, bottom, "font-size=\"10\" fill=\"#888\" text-anchor=\"middle\"", &at.to_string());
        }
        y + height + 6.0
    }

    fn x(&self, step: usize) -> f64 {
        MARGIN + GUTTER + float(step) * self.step
    }

    /// A light line before each step.
    fn grid(&mut self, top: f64, bottom: f64) {
        if self.step < 6.0 {
            return;
        }
        let mut lines = String::new();
        for step in 0..=self.report.steps.len() {
            let _ = write!(lines, "M{} {}V{}", number(self.x(step)), number(top - 4.0), number(bottom + 4.0));
        }
        let _ = writeln!(self.out, "<path fill=\"none\" stroke=\"#e4e4e4\" stroke-width=\"0.7\" d=\"{lines}\"/>");
    }

    fn pool(&mut self, pool: &PoolRow, tensors: &[usize], y: f64, height: f64) {
        let width = float(self.report.steps.len().max(1)) * self.step;
        let _ = writeln!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#free)\" stroke=\"#666\" stroke-width=\"0.8\"/>",
            number(self.x(0)),
            number(y),
            number(width),
            number(height)
        );
        let rows: Vec<&TensorRow> = tensors.iter().map(|&at| &self.report.tensors[at]).collect();
        let axis = Axis::of(pool, &rows);
        self.caption(pool, &axis, y, height);
        for (at, (&tensor, row)) in tensors.iter().zip(&rows).enumerate() {
            let extent = axis.extent(at, row, pool);
            self.tensor(tensor, row, extent, y, height);
        }
    }

    fn caption(&mut self, pool: &PoolRow, axis: &Axis, y: f64, height: f64) {
        let size = match pool.shape.as_slice() {
            &[width, height, _] => format!("{width}x{height} texels"),
            _ => format!("{} bytes", grouped(pool.bytes)),
        };
        let kind = if pool.shape.len() == 1 { pool.scope.to_owned() } else { format!("{} {}", pool.scope, pool.dtype) };
        let mut lines = vec![(format!("pool {}", pool.storage_id), "#222"), (kind, "#555"), (size.clone(), "#555")];
        lines.extend(axis.name().map(|name| (format!("{name}, from the top"), "#888")));
        if height < 14.0 * float(lines.len()) {
            lines = vec![(format!("pool {}", pool.storage_id), "#222"), (size, "#555")];
        }
        if height < 14.0 * float(lines.len()) {
            lines.truncate(1);
        }
        for (at, (text, color)) in lines.iter().enumerate() {
            let weight = if at == 0 { " font-weight=\"bold\"" } else { "" };
            let attributes = format!("font-size=\"11\" fill=\"{color}\"{weight}");
            self.text(MARGIN, y + 12.0 + 14.0 * float(at), &attributes, text);
        }
    }

    fn tensor(&mut self, at: usize, row: &TensorRow, extent: Extent, y: f64, height: f64) {
        let (x, width) = (self.x(row.first), float(row.last + 1 - row.first) * self.step);
        let (top, high) = (y + extent.start * height, (extent.size * height).max(1.0));
        let inset = if self.step > 8.0 { 1.0 } else { 0.0 };
        let [red, green, blue] = PALETTE[at % PALETTE.len()].map(|part| part + (255 - part) * 3 / 10);
        let fill = match row.role {
            TensorRole::Input => "#dde3e8".to_owned(),
            TensorRole::Output | TensorRole::Intermediate => format!("#{red:02x}{green:02x}{blue:02x}"),
        };
        let border = if row.role == TensorRole::Output { ("#222", "1.8") } else { ("#777", "0.7") };
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
        let fits = |text: &str, font: f64| float(text.chars().count()) * font * 0.6 + 4.0 <= width;
        let font = (high - 3.0).min(12.0);
        if font < 6.0 {
            return;
        }
        let middle =
            format!("fill=\"#111\" text-anchor=\"middle\" pointer-events=\"none\" font-size=\"{}\"", number(font));
        let (center, mid) = (x + width / 2.0, top + high / 2.0);
        if !fits(&row.name, font) {
            self.upright(&row.name, center, mid, width, high);
        } else if high >= 30.0 && fits(&place, 9.5) {
            self.text(center, mid - 1.0, &middle, &row.name);
            let small = "fill=\"#444\" text-anchor=\"middle\" pointer-events=\"none\" font-size=\"9.5\"";
            self.text(center, mid + 11.0, small, &place);
        } else {
            self.text(center, mid + font * 0.35, &middle, &row.name);
        }
    }

    /// A name that is too wide for its box, from the bottom to the top if that fits.
    fn upright(&mut self, name: &str, x: f64, y: f64, width: f64, height: f64) {
        let font = (width - 4.0).min(11.0);
        if font >= 6.0 && float(name.chars().count()) * font * 0.6 + 4.0 <= height {
            let at = (number(x + font * 0.35), number(y));
            let turned = format!(
                "fill=\"#111\" text-anchor=\"middle\" pointer-events=\"none\" font-size=\"{}\" transform=\"rotate(-90 {} {})\"",
                number(font),
                at.0,
                at.1
            );
            self.text(x + font * 0.35, y, &turned, name);
        }
    }

    fn legend(&mut self, y: f64) -> f64 {
        let roles: HashSet<TensorRole> = self.report.tensors.iter().map(|tensor| tensor.role).collect();
        let entries = [
            (TensorRole::Input, "fill=\"#dde3e8\" stroke=\"#777\"", "input: memory of its own"),
            (
                TensorRole::Intermediate,
                "fill=\"#a2c3e8\" stroke=\"#777\"",
                "tensor: from the step that writes it to its last reader",
            ),
            (TensorRole::Output, "fill=\"#a2c3e8\" stroke=\"#222\" stroke-width=\"1.8\"", "output: lives to the end"),
        ];
        let mut x = MARGIN;
        let free = [("fill=\"url(#free)\" stroke=\"#777\"", "free")];
        let shown = entries.iter().filter(|(role, ..)| roles.contains(role)).map(|&(_, look, text)| (look, text));
        for (look, text) in shown.chain(free) {
            let _ =
                writeln!(self.out, "<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" {look}/>", number(x), number(y));
            self.text(x + 20.0, y + 11.0, "font-size=\"11\" fill=\"#444\"", text);
            x += 44.0 + float(text.chars().count()) * 5.8;
        }
        y + 14.0
    }

    fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.out, "<text x=\"{}\" y=\"{}\" {attributes}>{text}</text>", number(x), number(y));
    }

    fn close(self, height: f64) -> String {
        let steps = self.x(self.report.steps.len().max(1)) + MARGIN;
        // The last name of a step leans over the end; the summary is a line of text.
        let (width, height) = (number((steps + 90.0).max(940.0)), number(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\">\n<defs><pattern id=\"free\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fcfcfc\"/><rect width=\"1\" height=\"6\" \
             fill=\"#ececec\"/></pattern></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.out
        )
    }
}

/// A place in a few characters.
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
