//! The picture of a graph as SVG: steps from top to bottom in the order in which they run, and a line for each tensor from the step
//! that writes it to each step that reads it.
//!
//! The colour of a line is the scope of the tensor, so that one sees where a network leaves textures; steps that only change the
//! arrangement of a tensor are hatched. Branches are side by side. Constants are not drawn: the title (tooltip) of a step names
//! them.

use std::fmt::Write as _;

use tilewright_ir::TensorRole;

use super::draw_svg::{escaped, float, number, text_width};
use super::lines::shortened;
use super::palette::{Palette, PictureStyle};
use super::plan::{PlanReport, TensorRow};

const MARGIN: f64 = 20.0;
/// Height of a row and of the box in it, and width of a lane and of the box in it.
const ROW: f64 = 34.0;
const BOX: f64 = 20.0;
const LANE: f64 = 250.0;
const WIDTH: f64 = 150.0;
/// Most steps that are drawn; a note names the number of the others.
const MAX_STEPS: usize = 1000;
/// Letters of the name of a step, and of the text beside a box.
const NAME_LETTERS: usize = 22;
const SHAPE_LETTERS: usize = 30;
const HEAD: f64 = 74.0;

/// The document; ends with a newline.
pub fn draw(report: &PlanReport, style: PictureStyle) -> String {
    let boxes = Boxes::of(report);
    let mut picture = Picture { out: String::new(), report, palette: style.palette(), right: 0.0 };
    for (at, drawn) in boxes.all.iter().enumerate() {
        for &(tensor, reader) in &boxes.lines[at] {
            picture.line(tensor, drawn, &boxes.all[reader]);
        }
    }
    for drawn in &boxes.all {
        picture.drawn(drawn);
    }
    let lanes = boxes.all.iter().map(|drawn| drawn.lane + 1).max().unwrap_or(1);
    let height = HEAD + float(boxes.all.len()) * ROW;
    picture.close(MARGIN + float(lanes) * LANE, height, report.steps.len().saturating_sub(MAX_STEPS))
}

/// A step, or a tensor that the caller supplies.
struct Drawn {
    what: What,
    lane: usize,
    row: usize,
}

enum What {
    Step(usize),
    Given(usize),
}

/// Everything that is drawn: boxes, and for each the tensors that it writes with the boxes that read them.
struct Boxes {
    all: Vec<Drawn>,
    lines: Vec<Vec<(usize, usize)>>,
}

impl Boxes {
    fn of(report: &PlanReport) -> Self {
        let n_tensors = report.tensors.len();
        let mut boxes = Self { all: Vec::new(), lines: Vec::new() };
        // The box that writes each tensor, and the lane in which the next box of its branch may be.
        let mut writer: Vec<Option<usize>> = vec![None; n_tensors];
        let mut lanes = Lanes::default();
        for (at, tensor) in report.tensors.iter().enumerate() {
            if tensor.role == TensorRole::Input && !tensor.is_view {
                let lane = lanes.fresh();
                let own = boxes.push(What::Given(at), lane);
                lanes.0[lane] = Lane::Ends(own);
                writer[at] = Some(own);
            }
        }
        for (step, uses) in report.uses.iter().enumerate().take(MAX_STEPS) {
            let read: Vec<usize> = uses.reads.iter().map(|&tensor| report.roots[tensor]).collect();
            let before: Vec<(usize, usize)> =
                read.iter().filter_map(|&tensor| Some((tensor, writer[tensor]?))).collect();
            let lane = match before.first() {
                Some(&(_, from)) => lanes.behind(boxes.all[from].lane, from),
                None => lanes.fresh(),
            };
            let own = boxes.push(What::Step(step), lane);
            lanes.0[lane] = Lane::Ends(own);
            for (tensor, from) in before {
                boxes.lines[from].push((tensor, own));
                // A branch whose last tensor is read for the last time ends here.
                let is_over = report.tensors[tensor].last <= step && boxes.all[from].lane != lane;
                if is_over {
                    lanes.end(boxes.all[from].lane, from);
                }
            }
            for &tensor in &uses.writes {
                writer[report.roots[tensor]] = Some(own);
            }
        }
        boxes
    }

    fn push(&mut self, what: What, lane: usize) -> usize {
        self.all.push(Drawn { what, lane, row: self.all.len() });
        self.lines.push(Vec::new());
        self.all.len() - 1
    }
}

/// What is at the lower end of a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Nothing that a line leaves: a new branch may begin here.
    Free,
    /// A branch that is about to begin.
    Taken,
    /// A box.
    Ends(usize),
}

#[derive(Default)]
struct Lanes(Vec<Lane>);

impl Lanes {
    /// Takes a free lane.
    fn fresh(&mut self) -> usize {
        if let Some(free) = self.0.iter().position(|&lane| lane == Lane::Free) {
            self.0[free] = Lane::Taken;
            return free;
        }
        self.0.push(Lane::Taken);
        self.0.len() - 1
    }

    /// The lane of a box, if nothing followed it there yet; otherwise a free one.
    fn behind(&mut self, lane: usize, from: usize) -> usize {
        if self.0[lane] == Lane::Ends(from) { lane } else { self.fresh() }
    }

    /// Frees a lane if a box is its last one.
    fn end(&mut self, lane: usize, at: usize) {
        if self.0[lane] == Lane::Ends(at) {
            self.0[lane] = Lane::Free;
        }
    }
}

struct Picture<'a> {
    out: String,
    report: &'a PlanReport,
    palette: &'static Palette,
    /// The right end of the texts so far.
    right: f64,
}

/// The upper left corner of a box.
fn corner(drawn: &Drawn) -> (f64, f64) {
    (MARGIN + float(drawn.lane) * LANE, HEAD + float(drawn.row) * ROW)
}

impl Picture<'_> {
    /// The colour of a scope.
    fn color(&self, scope: &str) -> String {
        let hue = match scope {
            "texture" => 0,
            "texture:weight" => 2,
            "texture:nhwc" => 4,
            _ => 1,
        };
        self.palette.hue(hue, 0)
    }

    /// Draws a tensor from the box that writes it to one that reads it.
    fn line(&mut self, tensor: usize, from: &Drawn, to: &Drawn) {
        let ((x, y), (end_x, end_y)) = (corner(from), corner(to));
        let row = &self.report.tensors[tensor];
        // Lines to boxes further down leave at the side, so that they do not cross the boxes in between.
        let is_next = to.row == from.row + 1 && to.lane == from.lane;
        let out = if is_next { WIDTH / 2.0 } else { WIDTH - 8.0 };
        let path = format!(
            "M{} {}C{} {} {} {} {} {}",
            number(x + out),
            number(y + BOX),
            number(x + out),
            number(y + BOX + ROW / 2.0),
            number(end_x + out),
            number(end_y - ROW / 2.0),
            number(end_x + out),
            number(end_y),
        );
        let color = self.color(row.scope);
        let _ = writeln!(
            self.out,
            "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" d=\"{path}\"><title>{}: {} in {}</title></path>",
            escaped(&row.name),
            escaped(&row.what),
            row.scope,
        );
    }

    fn drawn(&mut self, drawn: &Drawn) {
        let (x, y) = corner(drawn);
        match drawn.what {
            What::Given(tensor) => {
                let row = &self.report.tensors[tensor];
                let title = format!("input {}: {} in {}", row.name, row.what, row.scope);
                self.rectangle((x, y), &row.name, &title, self.palette.input, self.palette.faint);
                self.beside((x, y), row);
            }
            What::Step(step) => {
                let written = self.report.uses[step].writes.first().map(|&tensor| &self.report.tensors[tensor]);
                let is_output = written.is_some_and(|row| row.role == TensorRole::Output);
                let is_conversion =
                    self.report.model.as_ref().is_some_and(|model| model.converts.get(step) == Some(&true));
                let fill = if is_conversion { "url(#converts)" } else { self.palette.paper };
                let border = if is_output { self.palette.ink } else { self.palette.line };
                self.rectangle((x, y), &self.report.steps[step], &self.title(step), fill, border);
                if let Some(row) = written {
                    self.beside((x, y), row);
                }
            }
        }
    }

    /// Everything about a step.
    fn title(&self, step: usize) -> String {
        let report = self.report;
        let mut title = format!("step {step} {}", report.steps[step]);
        if let Some(function) = report.functions.get(step).and_then(Option::as_ref) {
            let _ = write!(title, ", kernel {function}");
        }
        for (word, tensors) in [("reads", &report.uses[step].reads), ("writes", &report.uses[step].writes)] {
            for &tensor in tensors {
                let row = &report.tensors[tensor];
                let word = if row.role == TensorRole::Constant { "reads the constant" } else { word };
                let _ = write!(title, "; {word} {}: {} in {}", row.name, row.what, row.scope);
            }
        }
        title
    }

    fn rectangle(&mut self, (x, y): (f64, f64), name: &str, title: &str, fill: &str, border: &str) {
        let _ = writeln!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{fill}\" stroke=\"{border}\" \
             stroke-width=\"1.4\"><title>{}</title></rect>",
            number(x),
            number(y),
            number(WIDTH),
            number(BOX),
            escaped(title),
        );
        self.text(x + 6.0, y + 14.0, "font-size=\"11\"", &shortened(name, NAME_LETTERS));
    }

    /// Writes shape and scope of the tensor that a box writes at its right.
    fn beside(&mut self, (x, y): (f64, f64), row: &TensorRow) {
        // Lines run behind the texts: each is written twice, first in the colour of the paper with a margin around its letters.
        let (paper, ink) = (self.palette.paper, self.palette.text);
        let halo =
            format!("font-size=\"9\" fill=\"{paper}\" stroke=\"{paper}\" stroke-width=\"3\" aria-hidden=\"true\"");
        let look = format!("font-size=\"9\" fill=\"{ink}\"");
        let what = shortened(&row.what, SHAPE_LETTERS);
        let left = x + WIDTH + 5.0;
        self.right = self.right.max(left + text_width(&what, 9.0, false));
        for look in [halo, look] {
            self.text(left, y + 9.0, &look, &what);
            self.text(left, y + 19.0, &look, row.scope);
        }
    }

    fn text(&mut self, x: f64, y: f64, look: &str, text: &str) {
        let _ = writeln!(self.out, "<text x=\"{}\" y=\"{}\" {look}>{}</text>", number(x), number(y), escaped(text));
    }

    /// Adds the title and the legend, and returns the document.
    fn close(mut self, width: f64, height: f64, n_left_out: usize) -> String {
        let title = format!("{}: {} steps", self.report.file, self.report.steps.len());
        let mut scopes: Vec<&str> = self.report.tensors.iter().map(|tensor| tensor.scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        self.text(MARGIN, MARGIN + 14.0, "font-size=\"16\" font-weight=\"bold\"", &title);
        let mut x = MARGIN;
        for scope in scopes {
            let color = self.color(scope);
            let _ = writeln!(self.out, "<path stroke=\"{color}\" stroke-width=\"4\" d=\"M{} 48h24\"/>", number(x));
            self.text(x + 30.0, 52.0, "font-size=\"11\"", scope);
            x += 52.0 + text_width(scope, 11.0, false);
        }
        let hatched = self.report.model.is_some();
        if hatched {
            let faint = self.palette.line;
            let _ = writeln!(
                self.out,
                "<rect x=\"{}\" y=\"41\" width=\"24\" height=\"14\" fill=\"url(#converts)\" stroke=\"{faint}\"/>",
                number(x)
            );
            self.text(x + 30.0, 52.0, "font-size=\"11\"", "conversion");
            x += 100.0;
        }
        if n_left_out > 0 {
            self.text(MARGIN, height + 12.0, "font-size=\"12\"", &format!("{n_left_out} more steps are not drawn"));
        }
        let width = width.max(self.right + MARGIN).max(x + MARGIN).max(MARGIN * 2.0 + text_width(&title, 16.0, true));
        let (width, height) = (number(width), number(height + MARGIN));
        let Palette { paper, ink, hatch: [ground, stroke], .. } = *self.palette;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" fill=\"{ink}\">\n\
             <defs><pattern id=\"converts\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"{ground}\"/>\
             <rect width=\"1.5\" height=\"6\" fill=\"{stroke}\"/></pattern></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{}</svg>\n",
            self.out
        )
    }
}
