//! The data of `tilewright relayout --explain` and `--run`, and its JSON: schema `tilewright.relayout-move/1`.
//!
//! ```json
//! {"schema":"tilewright.relayout-move/1","from":"f32[3,5]{1,0}","to":"f32[3,5]{1,0:T(2,2)}","shape":[3,5],
//!  "element_bytes":4,"from_shape":[3,5],"to_shape":[2,3,2,2],"tile":"run",
//!  "loops":[{"name":"i0_2","extent":2,"source":10,"target":12}],"is_wide":false,"fill":"edges","program":"...",
//!  "device_program":null,"kernel":"...","premises":[],"verdicts":[],"ran":null}
//! ```

use serde::Serialize;
use tilewright_verify::Report;

use super::check::{Dim, obligations};
use super::lines::{properties, verbatim};
use super::obligation::{obligations_of, premise_lines, proved_line};
use super::text::Style;
use crate::json::to_line;
use crate::pipeline::outcome::Summary;

/// How an array is moved from one layout to another, and what was proved of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveReport {
    /// `tilewright.relayout-move/1`.
    pub schema: &'static str,
    /// Layout A.
    pub from: String,
    /// Layout B.
    pub to: String,
    /// The logical shape.
    pub shape: Vec<Dim>,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The physical shape of A.
    pub from_shape: Vec<Dim>,
    /// The physical shape of B.
    pub to_shape: Vec<Dim>,
    /// What the innermost loops do.
    pub tile: &'static str,
    /// The loops, the outermost first.
    pub loops: Vec<LoopRow>,
    /// Whether the last loop is moved as one wide element.
    pub is_wide: bool,
    /// Which slots get the fill value.
    pub fill: &'static str,
    /// The program in TVMScript.
    pub program: String,
    /// The program in TVMScript that the kernels are made of, with vectors and registers; null if it is `program`.
    pub device_program: Option<String>,
    /// The kernels in OpenCL C; null if there are none.
    pub kernel: Option<String>,
    /// What the proofs take for granted.
    pub premises: Vec<String>,
    /// That the program does what the two maps say, and the steps to the kernel.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
    /// The move of a file; null if none was asked for, or if the program is not proved.
    pub ran: Option<RanRow>,
}

/// A loop of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoopRow {
    /// Its name in the program: the axis and the weight.
    pub name: String,
    /// The number of iterations.
    pub extent: Dim,
    /// The distance in A's memory, in elements.
    pub source: Dim,
    /// The distance in B's memory, in elements.
    pub target: Dim,
}

/// A file that was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RanRow {
    /// The file that was read.
    pub input: String,
    /// The file that was written.
    pub output: String,
    /// The shape of what was written.
    pub shape: Vec<u64>,
}

impl MoveReport {
    /// The worst of its verdicts.
    pub fn summary(&self) -> Summary {
        Summary::of_reports(&self.verdicts)
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }

    /// What people read; ends with a newline. The program and the kernel are in the long form only, and obligations
    /// that are proved are listed only if `is_verbose`.
    pub fn to_text(&self, style: Style, (is_long, is_verbose): (bool, bool)) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let loops: Vec<String> = self.loops.iter().map(|one| format!("{} in {}", one.name, one.extent)).collect();
        let wide = if self.is_wide { ", the last as one element" } else { "" };
        let mut rows = vec![
            row("from A", self.from.clone()),
            row("to B", self.to.clone()),
            row(
                "memory",
                format!("{} -> {}, {} bytes each", list(&self.from_shape), list(&self.to_shape), self.element_bytes),
            ),
            row("loops", format!("{}{wide}", loops.join(", "))),
            row("tile", self.tile.to_owned()),
            row("fill", self.fill.to_owned()),
        ];
        if let Some(ran) = &self.ran {
            rows.push(row("moved", format!("{} to {}, {:?}", ran.input, ran.output, ran.shape)));
        }
        let mut out = String::new();
        properties(&mut out, &rows, style);
        if is_long {
            let kernel = self.kernel.as_deref().unwrap_or("no kernel");
            let device = self.device_program.as_deref().map(|text| ("program of the kernel", text));
            let parts = [Some(("program", self.program.as_str())), device, Some(("kernel", kernel))];
            for (title, text) in parts.into_iter().flatten() {
                out.push('\n');
                verbatim(&mut out, title);
                out.push('\n');
                verbatim(&mut out, text);
            }
            out.push('\n');
        }
        let is_shown = |report: &&Report| is_verbose || !report.verdict.is_proved();
        let shown: Vec<Report> = self.verdicts.iter().filter(is_shown).cloned().collect();
        obligations_of(&mut out, "", &shown, style);
        premise_lines(&mut out, &self.premises, style);
        proved_line(&mut out, &self.verdicts, &self.premises, style);
        out
    }
}

/// A shape as people read it.
fn list(shape: &[Dim]) -> String {
    let parts: Vec<String> = shape.iter().map(Dim::to_string).collect();
    format!("[{}]", parts.join(", "))
}
