//! A lowering of a program to textures, written by hand, so that the judge is tested without any of the passes that it
//! judges. Extents are ragged and pairwise distinct: 6 rows, 7 columns, 18 channels in 5 blocks of 4.

#![allow(unreachable_pub, dead_code, reason = "a test uses a part of this")]

use tilewright_ir::BufferChange;

use crate::common::pair::{Pair, with_words};

/// The lowering of activations: block and row are the row of a texel.
pub fn right() -> Pair {
    lowering("texture", "30, 7", "b * 6 + y, x")
}

/// The lowering of weights: row and column are the column of a texel.
pub fn right_c1() -> Pair {
    lowering("texture:weight", "5, 42", "b, y * 7 + x")
}

/// Before, the texture has the axes block, row, column and channel. After, it consists of texels, so many as `extents` says,
/// where `texel` is row and column of block `b`, row `y` and column `x`.
pub fn lowering(scope: &str, extents: &str, texel: &str) -> Pair {
    let before = format!(
        r#"def main(X: T.Buffer((6, 7, 18), "float32"), Y: T.Buffer((6, 7, 18), "float32")):
    Xt = T.alloc_buffer((5, 6, 7, 4), "float32", scope="{scope}")
    for b in T.thread_binding(5, thread="blockIdx.y"):
        for y in T.thread_binding(6, thread="blockIdx.x"):
            for x in T.thread_binding(7, thread="threadIdx.x"):
                for l in T.vectorized(4):
                    if b * 4 + l < 18:
                        Xt[b, y, x, l] = X[y, x, b * 4 + l]
    for y in T.thread_binding(6, thread="blockIdx.y"):
        for x in T.thread_binding(7, thread="blockIdx.x"):
            for k in T.thread_binding(18, thread="threadIdx.x"):
                if k < 18:
                    Y[y, x, k] = Xt[k // 4, y, x, k % 4] * 2
"#
    );
    let read = with_words(texel, &[("b", "k // 4")]);
    let after = format!(
        r#"def main(X: T.Buffer((6, 7, 18), "float32"), Y: T.Buffer((6, 7, 18), "float32")):
    Xt = T.alloc_buffer(({extents}, 4), "float32", scope="{scope}", axis_separators=[1, 2])
    for b in T.thread_binding(5, thread="blockIdx.y"):
        for y in T.thread_binding(6, thread="blockIdx.x"):
            for x in T.thread_binding(7, thread="threadIdx.x"):
                Xt[{texel}, 0:4] = T.if_then_else(
                    T.Ramp(b * 4, 1, 4) < 18, X[y, x, T.Ramp(b * 4, 1, 4)], T.Broadcast(T.float32(0), 4))
    for y in T.thread_binding(6, thread="blockIdx.y"):
        for x in T.thread_binding(7, thread="blockIdx.x"):
            for k in T.thread_binding(18, thread="threadIdx.x"):
                if k < 18:
                    Y[y, x, k] = Xt[{read}, k % 4] * 2
"#
    );
    let map = format!("lambda b, y, x, l: [{texel}, l]");
    Pair::new(&before, &after).claim(BufferChange::Texture, "Xt -> Xt", &map)
}

/// The lowering of all shapes: `h` rows, `w` columns, `c` channels.
pub fn for_all_shapes(lowering: &Pair) -> Pair {
    let extents = "    h = T.int32(); w = T.int32(); c = T.int32()\n    Xt =";
    let words =
        [("5", "(c + 3) // 4"), ("6", "h"), ("7", "w"), ("18", "c"), ("30", "(c + 3) // 4 * h"), ("42", "h * w")];
    lowering.with_words(&words).twins("    Xt =", extents)
}

/// The lowering of 3 rows, 5 columns and 6 channels in 2 blocks.
pub fn small(lowering: &Pair) -> Pair {
    lowering.with_words(&[("5", "2"), ("6", "3"), ("7", "5"), ("18", "6"), ("30", "6"), ("42", "15")])
}

/// The lowering under limits such as `16384x8192`.
pub fn with_limits(lowering: &Pair, limits: &str) -> Pair {
    let attr = format!("    T.func_attr({{\"texture_limits\": \"{limits}\"}})\n    Xt =");
    lowering.twins("    Xt =", &attr)
}

/// With axis separators of the texture before.
pub fn with_separators(lowering: &Pair, separators: &str) -> Pair {
    let stated = format!("(5, 6, 7, 4), axis_separators={separators}, dtype=");
    lowering.twin_before("(5, 6, 7, 4), ", &stated)
}

/// The lowering of weights, which axis separators ask for in the scope of activations.
pub fn separated_c1() -> Pair {
    with_separators(&right_c1().twins("texture:weight", "texture"), "[1]")
}

/// All of a lowering is proved.
#[track_caller]
pub fn is_proved(lowering: &Pair) {
    lowering.is_proved_by(13);
}
