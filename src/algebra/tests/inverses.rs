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
        Err(fault) => return fault.to_string(),
    };
    let extents: Vec<_> = physical.extents.iter().map(ToString::to_string).collect();
    match inverse(&map, &physical.extents, &assumptions) {
        Ok(claim) => format!("{}: {}, {}", extents.join(", "), claim.lambda(), claim.padding_lambda()),
        Err(fault) => format!("{}: {fault}", extents.join(", ")),
    }
}

#[test]
fn show() {
    for line in std::fs::read_to_string("/tmp/alg/maps.txt").unwrap().lines() {
        let parts: Vec<_> = line.split('|').map(str::trim).collect();
        println!("{} | {}\n    {}", parts[0], parts[1], told(parts[0], parts[1], parts.get(2).unwrap_or(&"")));
    }
}
