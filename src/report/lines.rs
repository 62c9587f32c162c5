//! Lines of text within the width of the terminal: long texts continue on the next line, indented to where they began.

use std::fmt::Write as _;

use super::text::Style;

/// Fewest columns for words beside an indent. A narrower terminal breaks the lines itself.
const MIN_COLUMNS: usize = 20;

/// Appends a line without blanks at its end.
pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Appends `text` behind `head`. Words that go beyond the width go to lines below, `indent` columns from the left.
pub(super) fn hanging(out: &mut String, head: &str, text: &str, indent: usize, style: Style) {
    let used = head.chars().count();
    let mut lines = wrapped(text, used.max(indent), style.width).into_iter();
    line(out, &format!("{head}{}", lines.next().unwrap_or_default()));
    for more in lines {
        line(out, &format!("{:indent$}{more}", ""));
    }
}

/// Breaks a text into lines that fit between the columns `indent` and `width`. A longer word has a line of its own.
pub(super) fn wrapped(text: &str, indent: usize, width: usize) -> Vec<String> {
    let columns = width.saturating_sub(indent).max(MIN_COLUMNS);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= columns => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Columns as wide as their widest entry, two blanks apart.
pub(super) fn table(out: &mut String, rows: &[Vec<String>]) {
    let widths = widths(rows);
    for row in rows {
        line(out, &cells(row, &widths));
    }
}

/// A name on the left and a text beside it, whose words stay within the width.
pub(super) fn properties(out: &mut String, rows: &[Vec<String>], style: Style) {
    let indent = widths(rows).first().map_or(0, |width| width + 4);
    for row in rows {
        let [name, text] = row.as_slice() else { continue };
        hanging(out, &format!("  {name:<width$}  ", width = indent - 4), text, indent, style);
    }
}

/// The width of each column: that of its widest cell.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    (0..n_columns).map(|column| width(column).unwrap_or(0)).collect()
}

/// One line of a table.
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

    #[test]
    fn words_go_to_the_next_line_and_none_is_lost() {
        let text = "bounds 7, flatten 3, injective 3, iteration 8, overflow 5, simulation 6, tight 3";
        let lines = wrapped(text, 49, 100);
        assert!(lines.iter().all(|line| 49 + line.len() <= 100));
        assert_eq!(lines.join(" "), text);
        assert_eq!(lines.len(), 2);
        assert_eq!(wrapped(text, 49, 200).len(), 1);
        assert_eq!(wrapped(text, 90, 60).join(" "), text);
    }

    #[test]
    fn a_long_property_hangs_under_its_beginning() {
        let mut out = String::new();
        let rows = [vec!["map".to_owned(), "a ".repeat(30)], vec!["shape".to_owned(), "[3]".to_owned()]];
        properties(&mut out, &rows, Style { width: 40, ..Style::default() });
        assert!(out.lines().all(|line| line.len() <= 40), "{out}");
        assert!(out.lines().nth(1).is_some_and(|line| line.starts_with("         a")), "{out}");
    }
}
