//! The maps that are measured: 28 of constant extents, and 13 for all shapes.
//!
//! What they are: splits with and without a ragged end, flattened and not; tiles; exclusive ors; rotations, reversals, offsets;
//! rows with padding; cases; and one that is not injective.

#![allow(dead_code, reason = "not every benchmark uses all of it")]

use tilewright::algebra;
use tilewright_ir::{Expr, IndexMap, InverseClaim};
use tilewright_script::{Symbols, read_index_map, read_shape};

const FLAT_17: &str = "lambda n, h, w, c: [(((n * 5 + c // 4) * 7 + h) * 9 + w) * 4 + c % 4]";
const FLAT_64: &str = "lambda n, h, w, c: [(((n * 16 + c // 4) * 224 + h) * 224 + w) * 4 + c % 4]";
const FLAT_25: &str = "lambda n, h, w, c: [(((n * 7 + c // 4) * 1023 + h) * 1021 + w) * 4 + c % 4]";
const NCHW4C: &str = "lambda n, h, w, c: [n, c // 4, h, w, c % 4]";
const TILE: &str = "lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2]";

/// Name, map, shape.
pub(crate) const CONSTANT: [[&str; 3]; 28] = [
    ["nchw4c", NCHW4C, "2,7,9,17"],
    ["nchw4c flat", FLAT_17, "2,7,9,17"],
    ["nchw4c large", NCHW4C, "32,224,224,64"],
    ["nchw4c large flat", FLAT_64, "32,224,224,64"],
    ["nchw4c ragged", NCHW4C, "64,1023,1021,255"],
    ["nchw4c ragged flat", FLAT_25, "17,1023,1021,25"],
    ["tile", TILE, "1000,1000"],
    [
        "tile flat",
        "lambda i, j: [(((i // 8 * 8 + j // 128) * 4 + i % 8 // 2) * 128 + j % 128) * 2 + i % 2]",
        "1000,1000",
    ],
    ["tile large", TILE, "100003,70001"],
    [
        "tile large flat",
        "lambda i, j: [(((i // 8 * 55 + j // 128) * 4 + i % 8 // 2) * 128 + j % 128) * 2 + i % 2]",
        "10003,7001",
    ],
    ["xor", "lambda i, j: [i, j ^ (i % 8)]", "61,8"],
    ["xor flat", "lambda i, j: [i * 32 + (j ^ (i % 32))]", "129,32"],
    ["xor of chunks", "lambda i, j: [i, (j // 8 ^ (i % 8)) * 8 + j % 8]", "57,64"],
    ["rotation", "lambda i: [(i + 3) % 8]", "8"],
    ["rotation of rows", "lambda i, j: [i, (j + i) % 1021]", "1023,1021"],
    ["reversal", "lambda i: [7 - i]", "8"],
    ["reversal split", "lambda i: [(999 - i) // 4, (999 - i) % 4]", "1000"],
    ["offset", "lambda i: [(i + 3) // 4, (i + 3) % 4]", "17"],
    ["row padding", "lambda i, j: [i * 17 + j]", "11,15"],
    ["row padding large", "lambda i, j: [i * 1056 + j]", "20011,1021"],
    ["two-level split", "lambda i: [i // 64, i // 4 % 16, i % 4]", "1000"],
    ["two-level split large", "lambda i: [i // 4096, i // 64 % 64, i % 64]", "1000003"],
    ["texture", "lambda n, c, h, w: [(n * 5 + c // 4) * 7 + h, w, c % 4]", "2,17,7,9"],
    ["texture large", "lambda n, c, h, w: [(n * 64 + c // 4) * 113 + h, w, c % 4]", "3,255,113,227"],
    ["cases", "lambda i: [i if i < 5 else i + 3]", "11"],
    ["cases large", "lambda i, j: [i, j if i % 2 == 0 else 1020 - j]", "1023,1021"],
    ["redundant", "lambda i, j: [i, i % 4, j]", "17,9"],
    ["collision", "lambda i, j: [i * 1020 + j]", "1023,1021"],
];

/// The same for all shapes.
pub(crate) const SYMBOLIC: [[&str; 3]; 13] = [
    ["nchw4c, symbolic", NCHW4C, "n,h,w,c"],
    [
        "nchw4c flat, symbolic",
        "lambda n, h, w, c: [(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]",
        "N,H,W,C",
    ],
    ["tile, symbolic", TILE, "r,c"],
    [
        "tile flat, symbolic",
        "lambda i, j: [(((i // 8 * ((C + 127) // 128) + j // 128) * 4 + i % 8 // 2) * 128 + j % 128) * 2 + i % 2]",
        "R,C",
    ],
    ["texture, symbolic", "lambda n, c, h, w: [(n * ((C + 3) // 4) + c // 4) * H + h, w, c % 4]", "N,C,H,W"],
    ["row-major, symbolic", "lambda i, j, k: [(i * J + j) * K + k]", "I,J,K"],
    ["two-level split, symbolic", "lambda i: [i // 64, i // 4 % 16, i % 4]", "n"],
    ["split by symbols", "lambda i: [i // (b * c), i // c % b, i % c]", "a * b * c"],
    ["reversal, symbolic", "lambda i, j: [n - 1 - i, j]", "n,m"],
    ["rotation of rows, symbolic", "lambda i, j: [i, (i + j) % m]", "n,m"],
    ["row pitch, symbolic", "lambda i, j: [i * ((w + 63) // 64 * 64) + j]", "h,w"],
    ["xor, symbolic", "lambda i, j: [i, j ^ (i % 8)]", "n,8"],
    ["xor of chunks, symbolic", "lambda i, j: [i, (j // 8 ^ (i % 8)) * 8 + j % 8]", "n,64"],
];

/// A map and all that is claimed of it.
pub(crate) struct Claimed {
    pub(crate) name: &'static str,
    pub(crate) map: IndexMap,
    pub(crate) shape: Vec<Expr>,
    pub(crate) padded: Vec<usize>,
    pub(crate) inverse: Option<InverseClaim>,
}

/// The text as a map.
pub(crate) fn read_map([_, text, shape]: [&str; 3]) -> IndexMap {
    let mut symbols = Symbols::default();
    let shape = read_shape(shape, &mut symbols).unwrap();
    read_index_map(text, Some(&shape), &mut symbols).unwrap()
}

/// Its claims, as the algebra finds them.
pub(crate) fn claimed([name, text, shape]: [&'static str; 3]) -> Claimed {
    let map = read_map([name, text, shape]);
    let algebra::PhysicalShape { extents, padded_axes } = algebra::physical_shape(&map, &[]).unwrap();
    let inverse = algebra::inverse(&map, &extents, &[]).ok();
    Claimed { name, map, shape: extents, padded: padded_axes, inverse }
}
