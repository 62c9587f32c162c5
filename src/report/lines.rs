//! Lines of text within the width of the terminal: words go to the next line, under the place where the text began.
//!
//! Every report is written with these functions, so that this is the one place where text is wrapped. Rows of pictures and
//! excerpts of a source cannot be broken: [`verbatim`] writes them as they are.

use std::fmt::Write as _;

use tilewright_script::diagnostic::{columns, wrapped};

use super::text::Style;

/// Columns by which a broken line is indented below its beginning.
const HANGING: usize = 2;

/// Appends a line that is not broken, without blanks at its end.
pub(super) fn verbatim(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Appends a line. Words that go beyond the width go to lines below, a little further to the right.
pub(crate) fn line(out: &mut String, text: &str, style: Style) {
    let text = text.trim_end();
    let indent = text.chars().take_while(|&c| c == ' ').count();
    hanging(out, &text[..indent], &text[indent..], indent + HANGING, style);
}

/// Every line of a text without tables, as [`line`] writes it.
pub(crate) fn folded(text: &str, style: Style) -> String {
    let mut out = String::new();
    for each in text.lines() {
        line(&mut out, each, style);
    }
    out
}

/// Appends `text` behind `head`. Words that go beyond the width go to lines below, `indent` columns from the left.
pub(crate) fn hanging(out: &mut String, head: &str, text: &str, indent: usize, style: Style) {
    let used = columns(head);
    let mut lines = wrapped(text, used, indent, style.width).into_iter();
    verbatim(out, &format!("{head}{}", lines.next().unwrap_or_default()));
    for more in lines {
        verbatim(out, &format!("{:indent$}{more}", ""));
    }
}

/// Appends columns as wide as their widest entry, two blanks apart, below their heads. On a terminal that is too narrow
/// for them, each row becomes a list of heads and entries.
pub(super) fn table(out: &mut String, rows: &[Vec<String>], style: Style) {
    for row in table_rows(rows, style) {
        out.push_str(&row);
    }
}

/// The rows of a table as [`table`] writes them; each may have several lines.
pub(super) fn table_rows(rows: &[Vec<String>], style: Style) -> Vec<String> {
    let widths = widths(rows);
    let written = |row: &Vec<String>| {
        let mut out = String::new();
        verbatim(&mut out, &cells(row, &widths));
        out
    };
    let lines: Vec<String> = rows.iter().map(written).collect();
    let widest = lines.iter().map(|row| columns(row.trim_end())).max().unwrap_or(0);
    // A file or a pipe has no width, and its reader can scroll.
    if widest <= style.width || style.width >= Style::WIDTH {
        return lines;
    }
    let Some((heads, rows)) = rows.split_first() else { return lines };
    let entries = |row: &Vec<String>| {
        let mut out = String::new();
        let mut cells = heads.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        if let Some((head, cell)) = cells.next() {
            line(&mut out, &format!("  {head} {cell}"), style);
        }
        let width = heads.iter().skip(1).map(|head| columns(head)).max().unwrap_or(0);
        for (head, cell) in cells {
            hanging(&mut out, &format!("    {head:<width$}  "), cell, width + 6, style);
        }
        out
    };
    // The heads stand in every row.
    std::iter::once(String::new()).chain(rows.iter().map(entries)).collect()
}

/// A name on the left and a text beside it, whose words stay within the width.
pub(super) fn properties(out: &mut String, rows: &[Vec<String>], style: Style) {
    let indent = widths(rows).first().map_or(0, |width| width + 4);
    for row in rows {
        let [name, text] = row.as_slice() else { continue };
        hanging(out, &format!("  {name:<width$}  ", width = indent - 4), text, indent, style);
    }
}

/// A text of at most `most` characters. The middle of a longer one is left out: names often differ at their ends only.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(3);
    let (start, end) = (kept / 2, kept - kept / 2);
    text.chars().take(start).chain("...".chars()).chain(text.chars().skip(length - end)).collect()
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    (0..n_columns).map(|column| width(column).unwrap_or(0)).collect()
}

fn cells(row: &[String], widths: &[usize]) -> String {
    let mut text = String::from(" ");
    for (cell, width) in row.iter().zip(widths) {
        let _ = write!(text, " {cell:<width$} ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(width: usize) -> Style {
        Style { width, ..Style::default() }
    }

    #[test]
    fn a_long_property_hangs_under_its_beginning() {
        let mut out = String::new();
        let rows = [vec!["map".to_owned(), "a ".repeat(30)], vec!["shape".to_owned(), "[3]".to_owned()]];
        properties(&mut out, &rows, narrow(40));
        assert!(out.lines().all(|line| line.len() <= 40), "{out}");
        assert!(out.lines().nth(1).is_some_and(|line| line.starts_with("         a")), "{out}");
    }

    #[test]
    fn a_long_line_hangs_under_its_indent_and_colours_take_no_room() {
        let mut out = String::new();
        line(&mut out, "  one two \u{1b}[32mthree\u{1b}[0m four", narrow(18));
        assert_eq!(out, "  one two \u{1b}[32mthree\u{1b}[0m\n    four\n");
    }

    #[test]
    fn a_table_that_is_too_wide_is_a_list_on_a_terminal_and_stays_one_elsewhere() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["pool", "a long head", ""]), row(["0", "x ".repeat(20).as_str(), ""])];
        let mut out = String::new();
        table(&mut out, &rows, narrow(40));
        assert!(out.starts_with("  pool 0\n    a long head  x x") && out.lines().all(|line| line.len() <= 40), "{out}");
        let wide = [row(["pool", "", ""]), row(["0", "x".repeat(120).as_str(), ""])];
        assert_eq!(table_rows(&wide, Style::default()).len(), 2);
    }

    #[test]
    fn the_middle_of_a_long_name_is_left_out() {
        assert_eq!(shortened("a_really_long_name_1", 12), "a_re...ame_1");
        assert_eq!(shortened("short", 12), "short");
    }
}
