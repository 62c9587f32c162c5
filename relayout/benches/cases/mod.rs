//! The moves that are measured: 16 MiB each, the last one 64 MiB.

use tilewright_ir::Expr;
use tilewright_relayout::Placement;

use crate::placements::{map, over, paired, permuted, tiled};

/// A name, the logical shape, both layouts, and the bytes of an element.
pub(crate) type Case = (&'static str, Vec<u64>, Placement, Placement, u64);

/// Returns all moves.
pub(crate) fn cases() -> Vec<Case> {
    // Channels are axis 3 here.
    let image = [16, 64, 64, 64];
    let (nhwc, nchw) = (permuted(&image, &[0, 1, 2, 3]), permuted(&image, &[0, 3, 1, 2]));
    let blocks = |index: &[Expr]| {
        let [q, r] = over(&index[3], 4);
        vec![index[0].clone(), q, index[1].clone(), index[2].clone(), r]
    };
    let nchw4c = Placement { shape: vec![16, 16, 64, 64, 4], map: map(&image, blocks) };
    let (square, half, odd, wide) = ([2048, 2048], [4096, 2048], [4001, 4003], [4096, 1024]);
    let (rows, columns) = (permuted(&square, &[0, 1]), permuted(&square, &[1, 0]));
    vec![
        ("NHWC to NCHW", image.to_vec(), nhwc.clone(), nchw.clone(), 4),
        ("NCHW to NHWC", image.to_vec(), nchw.clone(), nhwc, 4),
        ("NCHW to NCHW4c", image.to_vec(), nchw, nchw4c, 4),
        ("T(8,128)", square.to_vec(), rows.clone(), tiled(&square, (8, 128)), 4),
        ("T(2,2)", square.to_vec(), rows.clone(), tiled(&square, (2, 2)), 4),
        ("T(8,128)(2,1) of 16 bits", half.to_vec(), permuted(&half, &[0, 1]), paired(&half), 2),
        ("transpose 2048x2048", square.to_vec(), rows, columns.clone(), 4),
        ("transpose 4096x1024", wide.to_vec(), permuted(&wide, &[0, 1]), permuted(&wide, &[1, 0]), 4),
        ("columns to T(8,128)", square.to_vec(), columns, tiled(&square, (8, 128)), 4),
        ("ragged T(8,128)", odd.to_vec(), permuted(&odd, &[0, 1]), tiled(&odd, (8, 128)), 4),
    ]
}
