//! Random constant maps, and what is true of them by enumeration.

use std::collections::HashSet;

use crate::cases::Case;
use tilewright_ir::{Bindings, Expr};

struct Source(u64);

impl Source {
    fn below(&mut self, end: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % end).unwrap()
    }
}

/// A map of two indices whose outputs are splits, fusions, strides, offsets and reversals of them.
pub(crate) fn case(seed: u64) -> Case {
    let mut source = Source(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let extents = [source.below(13) + 2, source.below(9) + 1];
    let mut outputs = Vec::new();
    for _ in 0..=source.below(3) {
        let var = ["i", "j"][source.below(2)];
        let other = if var == "i" { "j" } else { "i" };
        let (a, b) = ([2, 3, 4, 8][source.below(4)], [2, 4, 6, 12][source.below(4)]);
        outputs.push(match source.below(11) {
            0 => var.to_owned(),
            1 => format!("{var}//{a}"),
            2 => format!("{var}%{a}"),
            3 => format!("{var}//{a}%{b}"),
            4 => format!("{var}*{} + {other}", source.below(12) + 1),
            5 => format!("({var}*{} + {other})//{a}", extents[usize::from(other == "j")]),
            6 => format!("({var}*{} + {other})%{b}", extents[usize::from(other == "j")]),
            7 => format!("({} - {var})//{a}", extents[usize::from(var == "j")] - 1),
            // Two digits of one index with the other one between them.
            8 | 9 => {
                let inside = extents[usize::from(other == "j")];
                format!("({var}//{a}*{} + {other})*{a} + {var}%{a}", inside + source.below(2))
            }
            _ => format!("{var}//{a}*{} + {other}%{b}", source.below(14) + 1),
        });
    }
    let map = format!("lambda i, j: [{}]", outputs.join(", "));
    let logical = format!("{},{}", extents[0], extents[1]);
    let any = vec!["1"; outputs.len()].join(",");
    let mut case = Case::read(&map, &logical, &any);
    // The smallest shape, or one that is a little off.
    case.shape = (0..outputs.len())
        .map(|output| {
            let largest = images(&case).iter().map(|(_, image)| image[output]).max().unwrap_or(0);
            let off = [0, 0, 0, 0, 1, -1][source.below(6)];
            Expr::int(i64::try_from(largest + 1 + off).unwrap().max(1))
        })
        .collect();
    case.text = format!("{:?}", case.shape.iter().map(ToString::to_string).collect::<Vec<_>>());
    case
}

fn images(case: &Case) -> Vec<(Vec<i128>, Vec<i128>)> {
    let extents: Vec<i128> = case.map.domain().iter().map(|extent| extent.as_const_int().unwrap()).collect();
    let mut found = Vec::new();
    for i in 0..extents[0] {
        for j in 0..extents[1] {
            found.push((vec![i, j], case.map.eval(&[i, j], &Bindings::new()).unwrap()));
        }
    }
    found
}

/// Which obligations hold.
pub(crate) fn truth(case: &Case) -> [(&'static str, bool); 3] {
    let shape: Vec<i128> = case.shape.iter().map(|extent| extent.as_const_int().unwrap()).collect();
    let images = images(case);
    let distinct: HashSet<_> = images.iter().map(|(_, image)| image.clone()).collect();
    let inside = |image: &[i128]| image.iter().zip(&shape).all(|(index, extent)| (0..*extent).contains(index));
    let reached = |axis: usize| images.iter().any(|(_, image)| image[axis] + 1 == shape[axis]);
    [
        ("bounds", images.iter().all(|(_, image)| inside(image))),
        ("injective", distinct.len() == images.len()),
        ("tight", (0..shape.len()).all(reached)),
    ]
}
