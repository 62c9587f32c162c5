//! The readers of XLA's notation, index maps, shapes, conditions, named formats, and types.

use tilewright_ir::{DataType, Diagnostic, Expr, IndexMap, Scope, TextureLimits, XlaShape};
use tilewright_script::{
    Symbols, print_xla_layout, print_xla_shape, read_condition, read_index_map, read_predicate, read_shape,
    read_xla_layout, read_xla_shape,
};

use super::{CheckResult, read, same};
use crate::oracle::Tally;
use tilewright_compiler::formats;

/// The ranks with which layouts and formats are read.
const RANKS: [usize; 4] = [1, 2, 3, 4];

/// Applies all readers of layouts to a text.
pub(super) fn check_text(text: &str, tally: &mut Tally) -> CheckResult {
    xla(text, tally)?;
    maps(text, tally)?;
    words(text)
}

/// Shapes and layouts in XLA's notation.
fn xla(text: &str, tally: &mut Tally) -> CheckResult {
    if let Some(shape) = read("XLA shape", text, read_xla_shape(text), tally)? {
        let printed = print_xla_shape(&shape);
        let back = read_xla_shape(&printed);
        same("XLA shape", &printed, back.map(|back| back == shape && print_xla_shape(&back) == printed))?;
        if let XlaShape::Array(array) = &shape {
            // Either conversion may be refused; neither may panic.
            let _ = (array.tiling(), array.symbolic_tiling());
        }
    }
    for rank in RANKS {
        if let Some(layout) = read("XLA layout", text, read_xla_layout(text, rank), tally)? {
            let printed = print_xla_layout(&layout);
            let back = read_xla_layout(&printed, rank);
            same("XLA layout", &printed, back.map(|back| back == layout))?;
            let shape: Vec<Expr> = [7, 5, 3, 11].iter().take(rank).map(|&extent| Expr::int(extent)).collect();
            read(
                "tiles",
                text,
                formats::tiled(&layout, &shape).map_err(|fault| vec![Diagnostic { labels: Vec::new(), ..fault }]),
                tally,
            )?;
        }
    }
    Ok(())
}

/// Index maps, shapes, conditions, padding predicates and named formats.
fn maps(text: &str, tally: &mut Tally) -> CheckResult {
    let mut symbols = Symbols::default();
    if let Some(map) = read("index map", text, read_index_map(text, None, &mut symbols), tally)? {
        let printed = map.to_string();
        let back = read_index_map(&printed, None, &mut Symbols::default());
        same("index map", &printed, back.map(|back| same_map(&back, &map)))?;
    }
    if let Some(shape) = read("shape", text, read_shape(text, &mut Symbols::default()), tally)? {
        let printed = shape.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ");
        let back = read_shape(&format!("[{printed}]"), &mut Symbols::default());
        let text_of = |shape: &[Expr]| shape.iter().map(Expr::to_string).collect::<Vec<_>>();
        same("shape", &printed, back.map(|back| text_of(&back) == text_of(&shape)))?;
    }
    if let Some(condition) = read("condition", text, read_condition(text, &mut Symbols::default()), tally)? {
        let printed = condition.to_string();
        let back = read_condition(&printed, &mut Symbols::default());
        same("condition", &printed, back.map(|back| back.to_string() == printed))?;
    }
    // Different primes, so that exchanged axes and wrong divisors give other results.
    let extents = [7, 5, 3, 11].map(Expr::int);
    for rank in RANKS {
        read("predicate", text, read_predicate(text, &extents[..rank], &mut Symbols::default()), tally)?;
        if let Some(named) = formats::read(text, &extents[..rank]) {
            read("format", text, named, tally)?;
        }
    }
    Ok(())
}

/// Whether two maps are the same up to the identity of their variables.
fn same_map(a: &IndexMap, b: &IndexMap) -> bool {
    a.to_string() == b.to_string() && a.vars().len() == b.vars().len() && a.axis_separators() == b.axis_separators()
}

/// Types, scopes and limits: the printed form reads back as the same value.
fn words(text: &str) -> CheckResult {
    fn word<T: std::str::FromStr + std::fmt::Display + PartialEq>(what: &str, text: &str) -> CheckResult {
        let Ok(value) = text.parse::<T>() else { return Ok(()) };
        let printed = value.to_string();
        same(what, &printed, Ok(printed.parse::<T>().is_ok_and(|back| back == value)))
    }
    word::<DataType>("element type", text)?;
    word::<Scope>("scope", text)?;
    word::<TextureLimits>("texture limits", text)
}
