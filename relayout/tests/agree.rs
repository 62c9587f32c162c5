//! The executor moves every element to the place that the maps say, and fills the rest.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod placements;

use placements::{blocked, map, paired, permuted, tiled};
use tilewright_ir::{Bindings, Expr};
use tilewright_relayout::{Fill, Placement, Relayout, RelayoutError, Strategy, Tile, relayout};

/// The memory of B, element by element as the maps say.
fn expected(relayout: &Relayout, src: &[u8], bytes: usize, fill: &[u8]) -> Vec<u8> {
    let slots = relayout.to.slots().unwrap() as usize;
    let mut dst: Vec<u8> = std::iter::repeat_n(fill, slots).flatten().copied().collect();
    let count: u64 = relayout.extents.iter().product();
    for number in 0..count {
        let mut rest = number;
        let mut index = vec![0i128; relayout.extents.len()];
        for (axis, &extent) in relayout.extents.iter().enumerate().rev() {
            index[axis] = i128::from(rest % extent);
            rest /= extent;
        }
        let place = |placement: &Placement| {
            let place = placement.map.eval(&index, &Bindings::new()).unwrap();
            place.iter().zip(&placement.shape).fold(0, |sum, (at, &extent)| sum * extent as usize + *at as usize)
        };
        let (from, to) = (place(&relayout.from), place(&relayout.to));
        dst[to * bytes..][..bytes].copy_from_slice(&src[from * bytes..][..bytes]);
    }
    dst
}

#[test]
fn maps_without_digits_move_each_element() {
    let extents = [16, 24];
    let from = permuted(&extents, &[1, 0]);
    let of = |outputs: fn(&[Expr]) -> Vec<Expr>| Placement { shape: vec![16, 25], map: map(&extents, outputs) };
    let rotated = of(|index| vec![(index[0].clone() + index[1].clone()).floor_mod(Expr::int(16)), index[1].clone()]);
    let reversed = of(|index| vec![Expr::int(15) - index[0].clone(), index[1].clone() + Expr::int(1)]);
    for to in [rotated, reversed] {
        let relayout = Relayout { extents: extents.to_vec(), from: from.clone(), to };
        assert!(Strategy::choose(&relayout, 3).is_err());
        let src: Vec<u8> = (0..16 * 24 * 3).map(|at| (at * 131 + at / 253) as u8).collect();
        let mut dst = vec![0x55; 16 * 25 * 3];
        relayout.run_each(&src, &mut dst, &[7, 8, 9]).unwrap();
        assert!(dst == expected(&relayout, &src, 3, &[7, 8, 9]));
        assert!(relayout.run_each(&src[1..], &mut dst, &[7, 8, 9]).is_err());
    }
}

/// Moves random bytes both ways and compares.
fn check(extents: &[u64], a: &Placement, b: &Placement, sizes: &[usize]) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for (from, to) in [(a, b), (b, a)] {
        let relayout = Relayout { extents: extents.to_vec(), from: from.clone(), to: to.clone() };
        for &bytes in sizes {
            let strategy = Strategy::choose(&relayout, bytes as u64).unwrap();
            let length = |placement: &Placement| placement.slots().unwrap() as usize * bytes;
            let src: Vec<u8> = (0..length(from)).map(|at| (at * 131 + at / 253) as u8).collect();
            let fill: Vec<u8> = (0..bytes).map(|at| 0xA1 + at as u8).collect();
            let mut dst = vec![0x55; length(to)];
            strategy.run_bytes(&src, &mut dst, &fill).unwrap();
            assert!(dst == expected(&relayout, &src, bytes, &fill), "{extents:?} of {bytes} bytes: {strategy:?}");
            // Memory that is not aligned for words is moved in bytes.
            let (mut odd, mut target) = (vec![0], vec![0x55; length(to) + 1]);
            odd.extend(&src);
            strategy.run_bytes(&odd[1..], &mut target[1..], &fill).unwrap();
            assert!(target[1..] == dst, "{extents:?} of {bytes} bytes, not aligned");
            tiles.push(strategy.tile);
        }
    }
    tiles
}

const ALL: [usize; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

#[test]
fn tiles_of_rows_are_copied_as_runs() {
    let extents = [37, 155];
    let tiles = check(&extents, &permuted(&extents, &[0, 1]), &tiled(&extents, (8, 128)), &ALL);
    assert!(tiles.iter().all(|tile| *tile == Tile::Run), "{tiles:?}");
}

#[test]
fn transposes_have_ragged_edges() {
    for extents in [[67, 131], [1, 9], [513, 5], [33, 529]] {
        let tiles = check(&extents, &permuted(&extents, &[0, 1]), &permuted(&extents, &[1, 0]), &[1, 2, 4, 8, 12, 16]);
        assert!(extents[0] == 1 || tiles.iter().all(|tile| *tile == Tile::Transpose), "{tiles:?}");
    }
}

#[test]
fn long_transposes_are_cut_into_blocks() {
    let extents = [70, 777];
    let relayout =
        Relayout { extents: extents.to_vec(), from: permuted(&extents, &[0, 1]), to: permuted(&extents, &[1, 0]) };
    let strategy = Strategy::choose(&relayout, 4).unwrap();
    assert_eq!(strategy.loops.len(), 3, "{strategy:?}");
    assert_eq!(strategy.bounds.len(), 1, "{strategy:?}");
    check(&extents, &relayout.from, &relayout.to, &[1, 2, 4, 8, 16]);
}

#[test]
fn columns_become_tiles() {
    let extents = [45, 300];
    check(&extents, &permuted(&extents, &[1, 0]), &tiled(&extents, (8, 128)), &ALL);
    let extents = [400, 260];
    check(&extents, &permuted(&extents, &[1, 0]), &tiled(&extents, (8, 128)), &[1, 2, 4]);
}

#[test]
fn small_tiles_are_interleaved() {
    for extents in [[12, 20], [13, 23], [7, 5]] {
        check(&extents, &permuted(&extents, &[0, 1]), &tiled(&extents, (2, 2)), &ALL);
        check(&extents, &permuted(&extents, &[0, 1]), &tiled(&extents, (3, 4)), &[1, 4, 12]);
        check(&extents, &permuted(&extents, &[1, 0]), &tiled(&extents, (2, 4)), &[2, 4]);
    }
    let extents = [29, 259];
    check(&extents, &permuted(&extents, &[0, 1]), &paired(&extents), &ALL);
}

#[test]
fn tiles_become_other_tiles() {
    for extents in [[64, 256], [37, 155]] {
        check(&extents, &tiled(&extents, (8, 128)), &tiled(&extents, (2, 4)), &[1, 4, 8]);
        check(&extents, &tiled(&extents, (8, 128)), &paired(&extents), &[2, 4]);
    }
}

#[test]
fn images_change_between_nhwc_and_nchw() {
    for extents in [[2, 16, 7, 9], [3, 10, 5, 11], [1, 3, 33, 17]] {
        let nchw = permuted(&extents, &[0, 1, 2, 3]);
        check(&extents, &nchw, &permuted(&extents, &[0, 2, 3, 1]), &ALL);
        check(&extents, &nchw, &blocked(&extents, 4), &ALL);
        check(&extents, &permuted(&extents, &[0, 2, 3, 1]), &blocked(&extents, 4), &[1, 2, 4, 8, 16]);
        check(&extents, &blocked(&extents, 8), &blocked(&extents, 4), &[1, 4, 16]);
    }
}

#[test]
fn gaps_and_offsets_of_a_map_are_filled() {
    let extents = [5, 9];
    let from = permuted(&extents, &[0, 1]);
    let outputs = |index: &[Expr]| vec![index[1].clone() + Expr::int(1), index[0].clone() * Expr::int(2)];
    let to = Placement { shape: vec![12, 9], map: map(&extents, outputs) };
    check(&extents, &from, &to, &ALL);
    let relayout = Relayout { extents: extents.to_vec(), from, to };
    assert_eq!(Strategy::choose(&relayout, 4).unwrap().fill, Fill::Whole);
}

#[test]
fn moves_of_many_chunks_are_shared_by_threads() {
    let extents = [203, 1111];
    check(&extents, &permuted(&extents, &[0, 1]), &tiled(&extents, (8, 128)), &[4]);
    check(&extents, &permuted(&extents, &[1, 0]), &tiled(&extents, (8, 128)), &[4]);
    let extents = [3, 70, 40, 41];
    check(&extents, &permuted(&extents, &[0, 1, 2, 3]), &permuted(&extents, &[0, 2, 3, 1]), &[4]);
}

#[test]
fn typed_slices_are_moved_and_wrong_lengths_refused() {
    let extents = [3, 5];
    let relayout_of =
        Relayout { extents: extents.to_vec(), from: permuted(&extents, &[0, 1]), to: tiled(&extents, (2, 2)) };
    let strategy = Strategy::choose(&relayout_of, 4).unwrap();
    let src: Vec<f32> = (0..15u8).map(f32::from).collect();
    let mut dst = vec![9.0; 24];
    relayout(&strategy, &src, &mut dst, -1.0).unwrap();
    assert_eq!(dst[..12], [0.0, 1.0, 5.0, 6.0, 2.0, 3.0, 7.0, 8.0, 4.0, -1.0, 9.0, -1.0]);
    let short = relayout(&strategy, &src[1..], &mut dst, 0.0);
    assert_eq!(short, Err(RelayoutError::Length { side: "the source", needed: 60, given: 56 }));
    assert_eq!(Strategy::choose(&relayout_of, 17), Err(RelayoutError::ElementSize(17)));
}

#[test]
fn large_blocks_are_staged() {
    for extents in [[150, 290], [128, 256]] {
        check(&extents, &permuted(&extents, &[0, 1]), &permuted(&extents, &[1, 0]), &[1, 2, 4, 8, 16]);
        check(&extents, &permuted(&extents, &[1, 0]), &tiled(&extents, (8, 128)), &[1, 4, 16]);
    }
    let extents = [70, 96];
    check(&extents, &permuted(&extents, &[1, 0]), &tiled(&extents, (2, 4)), &[1, 2, 4]);
    let extents = [2, 64, 5, 31];
    check(&extents, &permuted(&extents, &[0, 1, 2, 3]), &permuted(&extents, &[0, 2, 3, 1]), &[1, 2, 4, 8, 16]);
}

#[test]
fn few_channels_are_interleaved() {
    for channels in [2, 3, 4, 5, 8, 16, 32] {
        let extents = [2, channels, 9, 37];
        check(&extents, &permuted(&extents, &[0, 1, 2, 3]), &permuted(&extents, &[0, 2, 3, 1]), &[1, 2, 4, 8, 16]);
        check(&extents, &permuted(&extents, &[0, 1, 2, 3]), &blocked(&extents, 8), &[1, 2, 4, 8]);
    }
}

#[test]
fn elements_of_4_bits_are_moved_in_pairs() {
    for extents in [[5, 7], [16, 256], [37, 155]] {
        let (from, to) = (permuted(&extents, &[1, 0]), tiled(&extents, (2, 4)));
        let relayout = Relayout { extents: extents.to_vec(), from, to };
        let strategy = Strategy::choose(&relayout, 1).unwrap();
        let (slots, out) = (relayout.from.slots().unwrap() as usize, relayout.to.slots().unwrap() as usize);
        let wide: Vec<u8> = (0..slots).map(|at| (at * 7 + at / 13) as u8 & 0xF).collect();
        let pack = |wide: &[u8]| -> Vec<u8> {
            wide.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 4)).collect()
        };
        let mut dst = vec![0x55; out.div_ceil(2)];
        strategy.run_nibbles(&pack(&wide), &mut dst, 0xF9).unwrap();
        assert!(dst == pack(&expected(&relayout, &wide, 1, &[9])), "{extents:?}");
        assert!(strategy.run_nibbles(&wide, &mut dst, 0).is_err(), "twice as many bytes");
        assert!(Strategy::choose(&relayout, 2).unwrap().run_nibbles(&pack(&wide), &mut dst, 0).is_err());
    }
}

#[test]
fn maps_without_digits_are_refused() {
    let extents = [8, 8];
    let from = permuted(&extents, &[0, 1]);
    let to = |shape: [u64; 2], outputs: fn(&[Expr]) -> Vec<Expr>| {
        let to = Placement { shape: shape.to_vec(), map: map(&extents, outputs) };
        Strategy::choose(&Relayout { extents: extents.to_vec(), from: from.clone(), to }, 4)
    };
    let skewed = to([8, 15], |index| vec![index[0].clone(), index[0].clone() + index[1].clone()]);
    assert!(skewed.is_ok(), "a sum over axes is a sum of digits: {skewed:?}");
    let rotated =
        to([8, 8], |index| vec![index[0].clone(), (index[0].clone() + index[1].clone()).floor_mod(Expr::int(8))]);
    assert!(matches!(rotated, Err(RelayoutError::Mixed { .. })), "{rotated:?}");
    let reversed = to([8, 8], |index| vec![Expr::int(7) - index[0].clone(), index[1].clone()]);
    assert!(matches!(reversed, Err(RelayoutError::NotDigits { axis: 0, .. })), "{reversed:?}");
    let outside = to([8, 4], |index| vec![index[0].clone(), index[1].clone()]);
    assert!(matches!(outside, Err(RelayoutError::NoPlace { side: "B", .. })), "{outside:?}");
}
