//! Every kind of map that can be inverted, with its shape, inverse and padding as they are printed.

use tilewright_ir::{Expr, IndexMap};
use tilewright_script::{Symbols, read_index_map, read_shape};

use super::super::{inverse, physical_shape};
/// A map, its shape, and assumptions separated by `;`, as text.
pub(super) fn read(map: &str, shape: &str, assumptions: &str) -> (IndexMap, Vec<Expr>) {
    let mut symbols = Symbols::default();
    let shape = read_shape(shape, &mut symbols).unwrap();
    let map = read_index_map(map, Some(&shape), &mut symbols).unwrap();
    let truth = |text: &str| {
        // The reader has no entry for conditions, so the condition is read inside an `if_then_else`.
        let text = format!("lambda: [T.if_then_else({text}, 1, 0)]");
        let read = read_index_map(&text, Some(&[]), &mut symbols).unwrap();
        match &read.outputs()[0] {
            Expr::IfThenElse(condition, ..) | Expr::Select(condition, ..) => (**condition).clone(),
            other => panic!("{other}"),
        }
    };
    let assumptions = assumptions.split(';').filter(|text| !text.is_empty()).map(truth).collect();
    (map, assumptions)
}

/// Returns physical shape, inverse and padding as text, or the error message.
pub(super) fn shape_and_inverse(map: &str, shape: &str, assumptions: &str) -> String {
    let (map, assumptions) = read(map, shape, assumptions);
    let physical = match physical_shape(&map, &assumptions) {
        Ok(physical) => physical,
        Err(fault) => return fault.message,
    };
    let extents: Vec<_> = physical.extents.iter().map(ToString::to_string).collect();
    match inverse(&map, &physical.extents, &assumptions) {
        Ok(claim) => format!("{}: {}, {}", extents.join(", "), claim.lambda(), claim.padding_lambda()),
        Err(fault) => format!("{}: {}", extents.join(", "), fault.message),
    }
}

#[test]
fn inverses_are_printed_as_expected() {
    let mut n_maps = 0;
    for block in include_str!("inverses.txt").split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let [map, over, gives] = <[&str; 3]>::try_from(block.lines().collect::<Vec<_>>()).unwrap();
        let over = over.strip_prefix("over ").unwrap();
        let (shape, assumptions) = over.split_once(" assuming ").unwrap_or((over, ""));
        assert_eq!(shape_and_inverse(map, shape, assumptions), gives.strip_prefix("gives ").unwrap(), "{map}");
        n_maps += 1;
    }
    assert!(n_maps > 70, "{n_maps}");
}
