//! Every kind of map that has an inverse here, with the inverse as it is printed.

use tilewright_ir::{Expr, IndexMap};
use tilewright_script::{Symbols, read_index_map, read_shape};

use super::super::{inverse, physical_shape};
/// A map, its shape, and assumptions separated by `;`, as text.
pub(super) fn read(map: &str, shape: &str, assumptions: &str) -> (IndexMap, Vec<Expr>) {
    let mut symbols = Symbols::default();
    let shape = read_shape(shape, &mut symbols).unwrap();
    let map = read_index_map(map, Some(&shape), &mut symbols).unwrap();
    let truth = |text: &str| {
        // A condition is read as that of a choice.
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

/// Physical shape, inverse and padding as text.
pub(super) fn told(map: &str, shape: &str, assumptions: &str) -> String {
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
fn every_kind_of_map_has_the_inverse_that_a_person_would_write() {
    let mut n_maps = 0;
    for block in include_str!("inverses.txt").split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let [map, over, gives] = <[&str; 3]>::try_from(block.lines().collect::<Vec<_>>()).unwrap();
        let over = over.strip_prefix("over ").unwrap();
        let (shape, assumptions) = over.split_once(" assuming ").unwrap_or((over, ""));
        assert_eq!(told(map, shape, assumptions), gives.strip_prefix("gives ").unwrap(), "{map}");
        n_maps += 1;
    }
    assert!(n_maps > 70, "{n_maps}");
}
