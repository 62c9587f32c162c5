//! Levels of tiles: expressions that distinguish the tiles of a layout, or of a map that divides its indices.
//!
//! A level has a name, such as `(8,128)` for a tile of a layout or `(h//4, w//4)` for quotients of a map, and
//! expressions over the logical indices. Two elements are in the same tile if all expressions have the same values.

use tilewright_ir::layout::{ArrayShape, Layout, LayoutError, TileDim};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

/// Most levels that are drawn.
const MAX_LEVELS: usize = 3;

/// One level for each tile of a layout, at most `MAX_LEVELS`. The expressions are the outputs of the tiled map that
/// number the tiles, without those inside of a tile.
pub(super) fn of_layout(array: &ArrayShape, map: &IndexMap) -> Result<Vec<(String, Vec<Expr>)>, LayoutError> {
    let layout = array.layout_or_default();
    let mut levels = Vec::new();
    for (position, tile) in layout.tiles.iter().enumerate().take(MAX_LEVELS) {
        let tiles = layout.tiles[..=position].to_vec();
        let until = Layout::new(layout.minor_to_major.clone()).with_tiles(tiles);
        let part = ArrayShape::new(array.element_type(), array.dimensions().to_vec(), Some(until))?;
        let Ok(part) = part.tiling()?.to_tiled_map() else { continue };
        let inside = tile.0.iter().filter(|dim| matches!(dim, TileDim::Size(_))).count();
        let outside = part.outputs().len().saturating_sub(inside);
        let renaming = Substitution::new(part.vars(), map.vars().iter().map(Expr::from));
        let ids = part.outputs()[..outside].iter().map(|output| renaming.apply(output)).collect();
        let size = |dim: &TileDim| match dim {
            TileDim::Size(size) => size.to_string(),
            TileDim::Combine => "*".to_owned(),
        };
        let name: Vec<_> = tile.0.iter().map(size).collect();
        levels.push((format!("({})", name.join(",")), ids));
    }
    Ok(levels)
}

/// The quotients of one index, or of one sum of indices. Each comes with its width: how many neighbouring values of the
/// index share a quotient.
struct Divided {
    vars: Vec<Var>,
    quotients: Vec<(i128, Expr)>,
}

/// The levels of a map: its divisions by constants above 1, grouped by the indices they divide, the coarsest of each
/// group first. A remainder counts as the division by the same number.
pub(super) fn of_map(map: &IndexMap) -> Vec<(String, Vec<Expr>)> {
    let mut found: Vec<Divided> = Vec::new();
    for output in map.outputs() {
        output.walk(&mut |expr| {
            if let Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, inner, by) = expr
                && let Some(by) = by.as_const_int().filter(|by| *by > 1)
                && let Some(width) = width(inner).checked_mul(by)
            {
                let quotient = inner.as_ref().clone().floor_div(Expr::int(i64::try_from(by).unwrap_or(i64::MAX)));
                let mut vars: Vec<Var> = inner.vars().into_iter().filter(|var| map.vars().contains(var)).collect();
                vars.sort_unstable();
                // Divisions of the same indices, such as `i // 32` and `i % 32 // 4`, are levels of one hierarchy, not
                // two independent tilings.
                match found.iter_mut().find(|divided| divided.vars == vars) {
                    _ if vars.is_empty() => {}
                    Some(divided) => divided.quotients.push((width, quotient)),
                    None => found.push(Divided { vars, quotients: vec![(width, quotient)] }),
                }
            }
        });
    }
    for divided in &mut found {
        divided.quotients.sort_by_key(|(width, _)| std::cmp::Reverse(*width));
        divided.quotients.dedup_by_key(|(width, _)| *width);
    }
    let count = found.iter().map(|divided| divided.quotients.len()).max().unwrap_or(0).min(MAX_LEVELS);
    let level = |level: usize| {
        let own: Vec<String> =
            found.iter().filter_map(|divided| Some(divided.quotients.get(level)?.1.to_string())).collect();
        let ids = found.iter().flat_map(|divided| divided.quotients.iter().take(level + 1).map(|(_, id)| id.clone()));
        (format!("({})", own.join(", ")), ids.collect())
    };
    (0..count).map(level).collect()
}

/// How many neighbouring values of the index share one value of a quotient: 4 for `i // 4` and for `i // 4 % 8`, 1 for
/// the index itself.
fn width(expr: &Expr) -> i128 {
    match expr {
        Expr::Binary(BinaryOp::FloorDiv, inner, by) => {
            by.as_const_int().filter(|by| *by > 0).and_then(|by| width(inner).checked_mul(by)).unwrap_or(1)
        }
        Expr::Binary(BinaryOp::FloorMod, inner, _) => width(inner),
        _ => 1,
    }
}
