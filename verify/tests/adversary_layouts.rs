//! Random layouts of random arrays: the verdicts on bitcasts against the two arrays laid out slot by slot, and layouts
//! with one number changed. The seeds are fixed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright_ir::layout::{ArrayShape, Dimension, ElementType, Layout, Tile, Tiling};
use tilewright_ir::{Expr, IndexMap, Var};
use tilewright_verify::{Config, Judge, LayoutClaim, PairClaim, Verdict};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound.max(1) as u64).unwrap()
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

fn layout(random: &mut Random, rank: usize) -> Layout {
    let mut minor_to_major: Vec<usize> = (0..rank).collect();
    for at in (1..rank).rev() {
        minor_to_major.swap(at, random.below(at + 1));
    }
    let tile = |random: &mut Random| {
        let length = 1 + random.below(rank + 1);
        let mut sizes: Vec<i64> = (0..length).map(|_| random.pick(&[1, 1, 2, 2, 3, 4, -1])).collect();
        sizes[length - 1] = sizes[length - 1].abs();
        Tile::from_vector(&sizes).unwrap()
    };
    let tiles = (0..random.below(3)).map(|_| tile(random)).collect();
    Layout {
        minor_to_major,
        tail_alignment: random.pick(&[1, 1, 1, 4, 6]),
        ..Layout::row_major(rank).with_tiles(tiles)
    }
}

fn array(extents: &[u64], layout: Layout) -> ArrayShape {
    let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
    ArrayShape::new(ElementType::F32, dimensions, Some(layout)).unwrap()
}

fn int(value: u64) -> Expr {
    Expr::int(value.try_into().unwrap())
}

/// From the index in A to that of the element with the same row-major number in B.
fn reshape(from: &[u64], to: &[u64]) -> IndexMap {
    let vars: Vec<Var> = (0..from.len()).map(|axis| Var::index(format!("i{axis}"))).collect();
    let number = vars.iter().zip(from).fold(int(0), |number, (var, extent)| number * int(*extent) + Expr::from(var));
    let mut stride = 1;
    let mut outputs: Vec<Expr> = to
        .iter()
        .rev()
        .map(|extent| {
            let output = number.clone().floor_div(int(stride)).floor_mod(int(*extent));
            stride *= extent;
            output
        })
        .collect();
    outputs.reverse();
    IndexMap::new(vars, from.iter().copied().map(int).collect(), outputs, Vec::new()).unwrap()
}

/// The row-major number of the element in each slot; none in padding.
fn slots(tiling: &Tiling, extents: &[u64]) -> Vec<Option<u64>> {
    let number = |index: Vec<u64>| index.iter().zip(extents).fold(0, |number, (at, extent)| number * extent + at);
    let mut held = vec![None; usize::try_from(tiling.physical_elements()).unwrap()];
    let count: u64 = extents.iter().product();
    for element in 0..count {
        let mut rest = element;
        let mut index: Vec<u64> = extents
            .iter()
            .rev()
            .map(|extent| {
                let at = rest % extent;
                rest /= extent;
                at
            })
            .collect();
        index.reverse();
        let slot = usize::try_from(tiling.linear_index(&index).unwrap()).unwrap();
        assert_eq!(held[slot], None, "two elements in slot {slot}");
        held[slot] = Some(element);
        assert_eq!(tiling.element_at(slot as u64).map(number), Some(element));
    }
    held
}

#[test]
fn verdicts_on_random_bitcasts_agree_with_moving_the_array() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let shapes: [&[&[u64]]; 4] = [
        &[&[6], &[2, 3], &[3, 2], &[1, 6], &[2, 1, 3]],
        &[&[12], &[3, 4], &[2, 6], &[2, 3, 2]],
        &[&[15], &[3, 5], &[5, 3]],
        &[&[8], &[2, 4], &[2, 2, 2], &[8, 1]],
    ];
    let (mut legal, mut illegal) = (0, 0);
    for seed in 0..1200 {
        let mut random = Random(seed);
        let family = random.pick(&shapes);
        let from = random.pick(family);
        let (to, same) = if random.below(2) == 0 { (from, true) } else { (random.pick(family), false) };
        let a = layout(&mut random, from.len());
        let b = if same && random.below(2) == 0 { a.clone() } else { layout(&mut random, to.len()) };
        // A tile of ones, or one that is repeated, moves nothing.
        let b = if random.below(3) == 0 && b.tiles.is_empty() {
            let rank = to.len();
            Layout { tiles: vec![Tile::from_vector(&vec![1; rank]).unwrap()], ..b }
        } else {
            b
        };
        let (a, b) = (array(from, a), array(to, b));
        let held = [(&a, from), (&b, to)].map(|(array, extents)| slots(&array.tiling().unwrap(), extents));
        let truth = held[0] == held[1];
        let to_extents: Vec<Expr> = to.iter().copied().map(int).collect();
        let reindex = reshape(from, to);
        let claim = PairClaim { from: &a, to: &b, to_extents: &to_extents, reindex: &reindex, permutation: None };
        let report = judge.check_bitcast(&claim);
        let text = format!("seed {seed}: {a:?} and {b:?}: {} [{}]", report.verdict, report.method);
        match &report.verdict {
            Verdict::Proved(_) => assert!(truth, "{text}"),
            Verdict::Refuted(found) => {
                assert!(!truth, "{text}");
                let first = (0..held[0].len().max(held[1].len()))
                    .find(|&slot| held[0].get(slot) != held[1].get(slot))
                    .map(|slot| format!("slot {slot} "));
                assert!(first.is_none_or(|first| found.text.contains(&first)), "{text}");
            }
            _ => panic!("{text}"),
        }
        legal += usize::from(truth);
        illegal += usize::from(!truth);
    }
    assert!(legal > 200 && illegal > 200, "{legal} legal, {illegal} not");
}

#[test]
fn random_layouts_are_proved_only_with_the_right_number_of_slots() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for seed in 0..150 {
        let mut random = Random(seed + 5000);
        let extents: &[u64] = random.pick(&[&[7][..], &[3, 5], &[2, 7, 3], &[1, 9], &[4, 1, 5]]);
        let layout = layout(&mut random, extents.len());
        let tiling = array(extents, layout.clone()).tiling().unwrap();
        let formula = tiling.to_symbolic().unwrap();
        let (tiled, flat) = (formula.to_tiled_map().unwrap(), formula.to_flat_map().unwrap());
        let claim = LayoutClaim::new(&layout, &tiled, formula.physical_shape(), &flat, formula.physical_elements());
        let text = || format!("seed {seed}: {extents:?} in {layout:?}");
        for report in judge.check_layout(&claim) {
            assert!(report.verdict.is_proved(), "{}: {} {}", text(), report.obligation, report.verdict);
        }
        let more = Expr::Int {
            value: (tiling.physical_elements() + 1).into(),
            ty: formula.physical_elements().dtype().scalar,
        };
        let reports = judge.check_layout(&LayoutClaim { slots: &more, ..claim });
        let tight = reports.iter().find(|report| report.obligation.id() == "tight").unwrap();
        assert!(matches!(tight.verdict, Verdict::Refuted(_)), "{}: {}", text(), tight.verdict);
        // In the layout with its last tile taken away, or its order turned, the formula is another one, or the same map.
        let mut other = layout.clone();
        if other.tiles.pop().is_none() {
            other.minor_to_major.reverse();
        }
        let same = slots(&tiling, extents) == slots(&array(extents, other.clone()).tiling().unwrap(), extents);
        let reports = judge.check_layout(&LayoutClaim { layout: &other, ..claim });
        let proved = reports.iter().all(|report| report.verdict.is_proved());
        assert!(!proved || same, "{} is proved of {other:?}", text());
    }
}
