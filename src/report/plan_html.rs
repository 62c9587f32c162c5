//! The report of `tilewright plan` as one HTML page: the network, the plan over time, memory, storage, kernels with their proofs, and
//! the steps with their times and differences.
//!
//! The page is self-contained: styles and pictures are in it, and it has no script.

use std::fmt::Write as _;

use super::draw_svg::escaped;
use super::palette::PictureStyle;
use super::plan::{AmountsRow, PlaceRow, PlanReport};
use super::plan_run::{DeviceRow, RunReport};
use super::{network_svg, plan_svg};
use crate::pipeline::outcome::premises;
use tilewright_verify::Report;

const STYLE: &str = "body{font:14px/1.45 sans-serif;margin:2em;max-width:90em;color:#222}\
table{border-collapse:collapse;margin:.6em 0 1.6em}th,td{padding:.15em .7em;text-align:left;border-bottom:1px solid #ddd}\
th{background:#f2f4f6}td.n{text-align:right;font-variant-numeric:tabular-nums}\
.picture{overflow:auto;border:1px solid #ddd;max-height:48em;margin-bottom:1.6em}.bad{color:#b00;font-weight:bold}.good{color:#060}";

/// The document; ends with a newline.
pub fn page(report: &PlanReport, style: PictureStyle) -> String {
    let mut page = Page(String::new());
    let title = escaped(&report.file);
    let _ = write!(
        page.0,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n"
    );
    summary(&mut page, report);
    page.heading("Memory");
    memory(&mut page, report);
    page.heading("Network");
    page.picture(&network_svg::draw(report, style));
    page.heading("Memory over time");
    page.picture(&plan_svg::draw(report, style));
    storage(&mut page, report);
    page.heading("Obligations of the plan");
    page.obligations(&report.verdicts);
    if let Some(run) = &report.run {
        kernels(&mut page, run);
    }
    steps(&mut page, report);
    tensors(&mut page, report);
    page.0.push_str("</body>\n</html>\n");
    page.0
}

/// A cell of a table.
enum Cell {
    Text(String),
    /// Aligned at the right.
    Number(String),
    /// A verdict or a status.
    Good(String),
    Bad(String),
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn count(number: &impl ToString) -> Cell {
    Cell::Number(number.to_string())
}

fn judged(is_good: bool, text: String) -> Cell {
    if is_good { Cell::Good(text) } else { Cell::Bad(text) }
}

struct Page(String);

impl Page {
    fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, "<h2>{}</h2>", escaped(text));
    }

    fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p>{}</p>", escaped(text));
    }

    fn picture(&mut self, svg: &str) {
        let _ = writeln!(self.0, "<div class=\"picture\">\n{svg}</div>");
    }

    fn table(&mut self, head: &[&str], rows: impl Iterator<Item = Vec<Cell>>) {
        self.0.push_str("<table>\n<tr>");
        for word in head {
            let _ = write!(self.0, "<th>{}</th>", escaped(word));
        }
        self.0.push_str("</tr>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for cell in row {
                let (class, text) = match &cell {
                    Cell::Text(text) => ("", text),
                    Cell::Number(text) => (" class=\"n\"", text),
                    Cell::Good(text) => (" class=\"good\"", text),
                    Cell::Bad(text) => (" class=\"bad\"", text),
                };
                let _ = write!(self.0, "<td{class}>{}</td>", escaped(text));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</table>\n");
    }

    fn obligations(&mut self, reports: &[Report]) {
        let row = |report: &Report| {
            let verdict = judged(report.verdict.is_proved(), report.verdict.to_string());
            vec![count(&report.obligation), text(&report.subject), verdict, text(&report.method.to_string())]
        };
        self.table(&["obligation", "about", "verdict", "by"], reports.iter().map(row));
    }
}

fn summary(page: &mut Page, report: &PlanReport) {
    let proved = report.reports().filter(|one| one.verdict.is_proved()).count();
    let figures = &report.report;
    let mut said = format!(
        "{proved} of {} obligations proved. {} tensors, {} steps, {} pools; planner {}, textures up to {}.",
        report.reports().count(),
        figures.tensors,
        figures.steps,
        report.pools.len(),
        figures.planner,
        figures.limits
    );
    if let Some(model) = &report.model {
        let _ = write!(
            said,
            " Target {}: {} nodes, {} kernels, {} conversions, {} bytes of constants.",
            model.target, model.nodes, model.kernels, model.conversions, model.constant_bytes
        );
    }
    page.paragraph(&said);
    for device in report.run.iter().flat_map(|run| &run.devices) {
        let (name, status) = (device.device.as_deref().unwrap_or("opencl"), device.status.word());
        let why = device.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let time = device.total_ms().map_or(String::new(), |ms| format!(", {ms:.3} ms in all steps"));
        page.paragraph(&format!("On {name}: {status}{why}. {} bytes of pools{time}.", device.pool_bytes));
    }
    if report.run.is_none() {
        page.paragraph("Kernels were neither proved nor run: that needs --run.");
    }
}

fn memory(page: &mut Page, report: &PlanReport) {
    let amounts = |name: String, row: &AmountsRow| {
        let numbers = [row.unshared, row.compatible, row.planned, row.lower_bound].map(|amount| count(&amount));
        let ratio = Cell::Number(format!("{:.1}%", row.planned_per_lower_bound * 100.0));
        [Cell::Text(name)].into_iter().chain(numbers).chain([ratio]).collect::<Vec<_>>()
    };
    let parts = report.report.parts.iter().map(|part| {
        let dtype = part.dtype.as_ref().map_or(String::new(), |dtype| format!(" {dtype}"));
        amounts(format!("{}{dtype} {}, {}s", part.scope, part.class, part.unit), &part.amounts)
    });
    let all = amounts("all in bytes".to_owned(), &report.report.bytes);
    let head = ["memory", "unshared", "compatible", "planned", "lower bound", "planned of bound"];
    page.table(&head, parts.chain([all]));
    let peak = &report.report.peak;
    if !peak.name.is_empty() {
        page.paragraph(&format!("Most is alive in step {} ({}): {} bytes.", peak.step, peak.name, peak.bytes));
    }
}

fn storage(page: &mut Page, report: &PlanReport) {
    let Some(model) = &report.model else { return };
    page.heading("Storage");
    let rows = model.values.iter().map(|row| {
        vec![
            text(&row.value),
            text(row.node.as_deref().unwrap_or_default()),
            Cell::Text(format!("{:?}", row.shape)),
            text(row.scope),
            text(&row.reason),
        ]
    });
    page.table(&["value", "node", "shape", "scope", "reason"], rows);
}

fn kernels(page: &mut Page, run: &RunReport) {
    page.heading("Kernels");
    let rows = run.functions.iter().map(|function| {
        let all = || function.steps.iter().flat_map(|step| &step.reports);
        let (proved, n) = (all().filter(|one| one.verdict.is_proved()).count(), all().count());
        let milliseconds: f64 = all().map(|one| one.ms).sum();
        let rests_on = premises(&function.steps).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        vec![
            text(&function.name),
            judged(proved == n && n > 0, format!("{proved} of {n}")),
            Cell::Number(format!("{milliseconds:.1}")),
            Cell::Text(rests_on),
        ]
    });
    page.table(&["function", "obligations proved", "ms", "premises"], rows);
    for function in &run.functions {
        let _ = writeln!(page.0, "<details><summary>{}: obligations of each pass</summary>", escaped(&function.name));
        for step in &function.steps {
            let _ = writeln!(page.0, "<h3>{}</h3>", escaped(&step.name));
            page.obligations(&step.reports);
        }
        page.0.push_str("</details>\n");
    }
}

fn steps(page: &mut Page, report: &PlanReport) {
    page.heading("Steps");
    let devices: Vec<&DeviceRow> = report.run.iter().flat_map(|run| &run.devices).collect();
    let ran = devices.iter().find(|device| !device.steps.is_empty() || !device.differences.is_empty());
    let rows = report.steps.iter().enumerate().map(|(step, name)| {
        let function = report.functions.get(step).and_then(Option::as_deref).unwrap_or("");
        let listed = |tensors: &[usize]| {
            tensors.iter().map(|&tensor| report.tensors[tensor].name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let uses = &report.uses[step];
        let time = ran.and_then(|device| device.steps.get(step)).map_or(String::new(), |row| format!("{:.3}", row.ms));
        let mut cells = vec![count(&step), text(name), text(function), Cell::Text(listed(&uses.reads))];
        cells.extend([Cell::Text(listed(&uses.writes)), Cell::Number(time)]);
        cells
    });
    page.table(&["step", "name", "kernel", "reads", "writes", "ms"], rows);
    let Some(ran) = ran.filter(|device| !device.differences.is_empty()) else { return };
    page.heading("Differences");
    let rows = ran.differences.iter().map(|row| {
        let different = judged(row.different == 0 && row.compared > 0, row.different.to_string());
        vec![
            text(&row.tensor),
            text(&row.against),
            count(&row.compared),
            different,
            Cell::Number(format!("{:.1e}", row.largest)),
        ]
    });
    page.table(&["tensor", "against", "compared", "different", "largest distance"], rows);
}

fn tensors(page: &mut Page, report: &PlanReport) {
    page.heading("Tensors");
    let rows = report.tensors.iter().map(|row| {
        let place = match row.place {
            PlaceRow::Byte { offset } => format!("bytes {offset}..{}", offset.saturating_add(row.size)),
            PlaceRow::Texels { x, y, width, height } => format!("{width}x{height} at ({x}, {y})"),
        };
        let steps = format!("{}-{}", row.first, row.last);
        let start = [text(&row.name), text(&row.what), text(row.scope), count(&row.storage_id)];
        start.into_iter().chain([Cell::Text(place), Cell::Text(steps), Cell::Text(row.role_text())]).collect()
    });
    page.table(&["tensor", "type and shape", "scope", "pool", "place", "steps", "role"], rows);
}
