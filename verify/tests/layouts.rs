//! Layouts are compared with pad, reshape, transpose; claims with one mistake are refuted.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::judge;
use common::map::Mapped;
use tilewright_ir::layout::{ArrayShape, Dimension, ElementType, Layout, SymbolicTiling, Tile};
use tilewright_ir::{BinaryOp, Expr, IndexMap, InverseClaim, ScalarType, Var};
use tilewright_verify::{LayoutClaim, PairClaim, RelayoutClaim, Report, Verdict};

fn tiles(tiles: &[&[i64]]) -> Vec<Tile> {
    tiles.iter().map(|tile| Tile::from_vector(tile).unwrap()).collect()
}

fn layout(order: &[usize], sizes: &[&[i64]]) -> Layout {
    Layout::new(order.to_vec()).with_tiles(tiles(sizes))
}

fn symbol(name: &str) -> Expr {
    Expr::from(Var::new(name, ScalarType::Int64))
}

fn known(extents: &[i64]) -> Vec<Expr> {
    extents.iter().map(|&extent| Expr::int(extent)).collect()
}

/// The parts of a right claim, each of which a test may spoil.
struct Parts {
    layout: Layout,
    tiled: IndexMap,
    shape: Vec<Expr>,
    flat: IndexMap,
    slots: Expr,
}

impl Parts {
    fn new(layout: &Layout, extents: &[Expr]) -> Self {
        let formula = SymbolicTiling::new(layout, extents).unwrap();
        Self {
            layout: layout.clone(),
            tiled: formula.to_tiled_map().unwrap(),
            shape: formula.physical_shape().to_vec(),
            flat: formula.to_flat_map().unwrap(),
            slots: formula.physical_elements().clone(),
        }
    }

    fn claim(&self) -> LayoutClaim<'_> {
        LayoutClaim::new(&self.layout, &self.tiled, &self.shape, &self.flat, &self.slots)
    }

    fn verdict(&self, obligation: &str) -> Verdict {
        verdict(&judge().check_layout(&self.claim()), obligation)
    }
}

fn verdict(reports: &[Report], obligation: &str) -> Verdict {
    reports.iter().find(|report| report.obligation.id() == obligation).unwrap().verdict.clone()
}

fn proved(reports: &[Report]) {
    for report in reports {
        assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
}

fn refuted(verdict: &Verdict) -> String {
    let Verdict::Refuted(found) = verdict else { panic!("{verdict}") };
    found.to_string()
}

#[test]
fn layouts_of_known_extents_are_pad_reshape_transpose() {
    for (extents, layout) in [
        (vec![3, 5], layout(&[1, 0], &[&[2, 2]])),
        (vec![4, 8], layout(&[1, 0], &[&[2, 4], &[2, 1]])),
        (vec![2, 7, 8, 11, 10], layout(&[4, 3, 2, 1, 0], &[&[-1, -1, 2, -1, 3]])),
        (vec![7, 131, 5], layout(&[0, 2, 1], &[&[8, 128], &[4, 1]])),
        (vec![3, 5], layout(&[1, 0], &[&[2, 3], &[2]])),
        (vec![5, 7], layout(&[1, 0], &[&[2, 3], &[3, 2, 2]])),
        (vec![5], layout(&[0], &[&[2, 3]])),
        (vec![1_000_003, 70_001], layout(&[1, 0], &[&[8, 128], &[2, 1]])),
        (vec![17, 9], Layout { tail_alignment: 10, ..layout(&[0, 1], &[]) }),
    ] {
        let extents = known(&extents);
        let parts = Parts::new(&layout, &extents);
        proved(&judge().check_layout(&parts.claim()));
    }
}

/// `(8,128)(2,1)` undone by hand.
fn tpu_inverse(rows: &Expr, columns: &Expr) -> InverseClaim {
    let int = |value: i64| Expr::int_of(value.into(), ScalarType::Int64).unwrap();
    let slot = Var::new("p", ScalarType::Int64);
    let p = || Expr::from(&slot);
    let blocks = (columns.clone() + int(127)).floor_div(int(128));
    let row = p().floor_div(int(1024)).floor_div(blocks.clone()) * int(8)
        + p().floor_div(int(256)).floor_mod(int(4)) * int(2)
        + p().floor_mod(int(2));
    let column = p().floor_div(int(1024)).floor_mod(blocks) * int(128) + p().floor_div(int(2)).floor_mod(int(128));
    let below = Expr::binary(BinaryOp::Le, rows.clone(), row.clone());
    let beside = Expr::binary(BinaryOp::Le, columns.clone(), column.clone());
    InverseClaim { vars: vec![slot], outputs: vec![row, column], padding: Expr::binary(BinaryOp::Or, below, beside) }
}

#[test]
fn tpu_tiles_of_symbolic_rows_and_columns_are_proved() {
    let (rows, columns) = (symbol("r"), symbol("c"));
    let parts = Parts::new(&layout(&[1, 0], &[&[8, 128], &[2, 1]]), &[rows.clone(), columns.clone()]);
    let inverse = tpu_inverse(&rows, &columns);
    let reports = judge().check_layout(&parts.claim().inverse(&inverse));
    for report in &reports {
        eprintln!("{:10} {:8.1} ms {} {}", report.obligation, report.ms, report.verdict, report.method);
    }
    proved(&reports);
    assert_eq!(reports.len(), 7);
}

#[test]
fn symbolic_layouts_are_proved_with_folds_tails_and_later_padding() {
    let mut unknown = Vec::new();
    for (extents, layout) in [
        (vec![symbol("a"), symbol("b")], layout(&[1, 0], &[&[2, 3]])),
        (vec![symbol("a"), symbol("b")], layout(&[0, 1], &[&[8, 128], &[4, 1]])),
        (vec![symbol("a"), Expr::int(300)], layout(&[1, 0], &[&[8, 128], &[2, 1]])),
        (vec![Expr::int(5), symbol("b")], layout(&[1, 0], &[&[8, 128]])),
        (vec![symbol("a"), symbol("b"), symbol("c")], layout(&[2, 1, 0], &[&[-1, 2, 3]])),
        (vec![symbol("a"), symbol("b")], layout(&[1, 0], &[&[2, 3], &[2]])),
        (vec![symbol("a"), symbol("b")], Layout { tail_alignment: 24, ..layout(&[1, 0], &[&[2, 5]]) }),
        (vec![symbol("a"), Expr::int(7)], Layout { tail_alignment: 10, ..layout(&[1, 0], &[]) }),
    ] {
        let parts = Parts::new(&layout, &extents);
        for report in judge().check_layout(&parts.claim()) {
            eprintln!(
                "{:10} {:8.1} ms {} {} {}",
                report.obligation, report.ms, report.verdict, report.method, report.subject
            );
            if !report.verdict.is_proved() {
                unknown.push(format!("{} of {}: {}", report.obligation, report.subject, report.verdict));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn an_allocation_by_the_first_tile_only_is_too_small() {
    // XLA's own size computation rounds up to the first tile and stops there.
    let mut parts = Parts::new(&layout(&[1, 0], &[&[2, 3], &[2]]), &known(&[3, 5]));
    assert_eq!(parts.slots.as_const_int(), Some(32));
    parts.slots = Expr::int(24);
    let text = refuted(&parts.verdict("tight"));
    assert!(text.contains("has 24 slots") && text.contains("takes 32"), "{text}");
    assert!(refuted(&parts.verdict("bounds")).contains("outside"));
    let (a, b) = (symbol("a"), symbol("b"));
    let mut parts = Parts::new(&layout(&[1, 0], &[&[2, 3], &[2]]), &[a.clone(), b.clone()]);
    let ceil = |extent: Expr, tile: i64| {
        let int = |value: i64| Expr::int_of(value.into(), ScalarType::Int64).unwrap();
        (extent + int(tile - 1)).floor_div(int(tile)) * int(tile)
    };
    parts.slots = ceil(a, 2) * ceil(b, 3);
    assert!(refuted(&parts.verdict("tight")).contains("slots"));
    assert!(refuted(&parts.verdict("bounds")).contains("outside"));
}

#[test]
fn an_order_with_a_repeated_dimension_is_not_a_layout() {
    let right = Parts::new(&layout(&[1, 0], &[]), &known(&[3, 5]));
    let parts = Parts { layout: layout(&[1, 1], &[]), ..right };
    assert!(matches!(parts.verdict("tiling"), Verdict::Unknown(_)));
}

#[test]
fn every_slot_that_is_not_padding_is_reached() {
    // 35 elements in 40 slots: the tail is padding, and has to be called so.
    let extents = known(&[5, 7]);
    let parts = Parts::new(&Layout { tail_alignment: 10, ..layout(&[1, 0], &[]) }, &extents);
    let slot = Var::index("p");
    let p = || Expr::from(&slot);
    let outputs = vec![p().floor_div(Expr::int(7)), p().floor_mod(Expr::int(7))];
    let padding = Expr::binary(BinaryOp::Ge, p(), Expr::int(35));
    let right = InverseClaim { vars: vec![slot.clone()], outputs: outputs.clone(), padding };
    proved(&judge().check_layout(&parts.claim().inverse(&right)));
    let wrong = InverseClaim { padding: Expr::bool(false), ..right };
    let reports = judge().check_layout(&parts.claim().inverse(&wrong));
    refuted(&verdict(&reports, "padding"));
    refuted(&verdict(&reports, "inverse"));
    // Two slots more than the tail alignment asks for are reached by nothing either.
    let mut parts = Parts::new(&Layout { tail_alignment: 5, ..layout(&[1, 0], &[]) }, &extents);
    parts.slots = Expr::int(37);
    let reports = judge().check_layout(&parts.claim().inverse(&wrong));
    refuted(&verdict(&reports, "padding"));
    refuted(&verdict(&reports, "tight"));
}

fn replaced(map: &IndexMap, outputs: Vec<Expr>) -> IndexMap {
    IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs, Vec::new()).unwrap()
}

#[test]
fn a_formula_wrong_in_one_place_is_refuted() {
    let extents = [symbol("a"), symbol("b")];
    let right = || Parts::new(&layout(&[1, 0], &[&[4, 6], &[2, 1]]), &extents);
    assert!(right().verdict("tiling").is_proved());
    // The in-tile dimensions in the wrong order.
    let mut parts = right();
    let mut outputs = parts.tiled.outputs().to_vec();
    outputs.swap(2, 3);
    parts.tiled = replaced(&parts.tiled, outputs);
    refuted(&parts.verdict("tiling"));
    // Floor for ceiling in the number of tiles.
    let mut parts = right();
    parts.shape[1] = extents[1].clone().floor_div(Expr::int_of(6, ScalarType::Int64).unwrap());
    refuted(&parts.verdict("tiling"));
    // A position that is no numeral of the index.
    let mut parts = right();
    let position = parts.flat.outputs()[0].clone() + Expr::int_of(1, ScalarType::Int64).unwrap();
    parts.flat = replaced(&parts.flat, vec![position]);
    refuted(&parts.verdict("tiling"));
    // The tiles of another layout: swapped dimensions, another second tile, one tile fewer.
    for other in [
        layout(&[0, 1], &[&[4, 6], &[2, 1]]),
        layout(&[1, 0], &[&[4, 6], &[1, 2]]),
        layout(&[1, 0], &[&[4, 6]]),
        layout(&[1, 0], &[&[6, 4], &[2, 1]]),
    ] {
        let parts = Parts { layout: other, ..right() };
        refuted(&parts.verdict("tiling"));
    }
}

#[test]
fn a_wrong_inverse_and_a_wrong_padding_are_refuted() {
    let (rows, columns) = (symbol("r"), symbol("c"));
    let parts = Parts::new(&layout(&[1, 0], &[&[8, 128], &[2, 1]]), &[rows.clone(), columns.clone()]);
    let mut swapped = tpu_inverse(&rows, &columns);
    swapped.outputs.swap(0, 1);
    let reports = judge().check_layout(&parts.claim().inverse(&swapped));
    refuted(&verdict(&reports, "inverse"));
    let all = InverseClaim { padding: Expr::bool(false), ..tpu_inverse(&rows, &columns) };
    let reports = judge().check_layout(&parts.claim().inverse(&all));
    refuted(&verdict(&reports, "padding"));
}

fn array(extents: &[u64], layout: Layout) -> ArrayShape {
    let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
    ArrayShape::new(ElementType::F32, dimensions, Some(layout)).unwrap()
}

fn bitcast(from: &ArrayShape, to: &ArrayShape, reindex: &IndexMap, permutation: Option<&[usize]>) -> Verdict {
    let extent = |dimension: &Dimension| Expr::int(i64::try_from(dimension.bound().unwrap()).unwrap());
    let to_extents: Vec<Expr> = to.dimensions().iter().map(extent).collect();
    judge().check_bitcast(&PairClaim { from, to, to_extents: &to_extents, reindex, permutation }).verdict
}

#[test]
fn combined_dimensions_are_a_bitcast_of_the_combined_array() {
    let five = array(&[2, 7, 8, 11, 10], layout(&[4, 3, 2, 1, 0], &[&[-1, -1, 2, -1, 3]]));
    let two = array(&[112, 110], layout(&[1, 0], &[&[2, 3]]));
    let reindex = "lambda a, b, c, d, e: [(a * 7 + b) * 8 + c, d * 10 + e]";
    let reindex = Mapped::new(reindex, "2, 7, 8, 11, 10", "112, 110").map;
    assert!(bitcast(&five, &two, &reindex, None).is_proved());
    let other = array(&[112, 110], layout(&[1, 0], &[&[3, 2]]));
    let text = refuted(&bitcast(&five, &other, &reindex, None));
    assert!(text.contains("slot "), "{text}");
}

#[test]
fn a_bitcast_is_refuted_with_the_first_slot_that_differs() {
    let plain = |order: &[usize]| array(&[3, 5], layout(order, &[]));
    let same = IndexMap::identity(known(&[3, 5]));
    assert!(bitcast(&plain(&[1, 0]), &plain(&[1, 0]), &same, None).is_proved());
    let text = refuted(&bitcast(&plain(&[1, 0]), &plain(&[0, 1]), &same, None));
    assert!(text.starts_with("slot 1 holds (0, 1) in A and (1, 0) in B"), "{text}");
    // The same sizes, different padding: tiles of 2x3 and of 3x2 make 4x6 slots of both.
    let text = refuted(&bitcast(
        &array(&[3, 5], layout(&[1, 0], &[&[2, 3]])),
        &array(&[3, 5], layout(&[0, 1], &[&[3, 2]])),
        &same,
        None,
    ));
    assert!(text.starts_with("slot 1 "), "{text}");
    let text = refuted(&bitcast(&plain(&[1, 0]), &array(&[3, 5], layout(&[1, 0], &[&[2, 2]])), &same, None));
    assert!(text.contains("A has 15 slots, B 24; slot 2 holds (0, 2) in A and (1, 0) in B"), "{text}");
    // A transpose is a bitcast where the orders say so.
    let moved = Mapped::new("lambda i, j: [j, i]", "3, 5", "5, 3").map;
    let turned = array(&[5, 3], layout(&[0, 1], &[]));
    assert!(bitcast(&plain(&[1, 0]), &turned, &moved, Some(&[1, 0])).is_proved());
    refuted(&bitcast(&plain(&[0, 1]), &turned, &moved, Some(&[1, 0])));
    let small = ArrayShape::new(ElementType::S8, vec![Dimension::Static(3), Dimension::Static(5)], None).unwrap();
    assert!(refuted(&bitcast(&plain(&[1, 0]), &small, &same, None)).contains("32 bits in A and 8 in B"));
}

#[test]
fn a_relayout_is_proved_and_a_wrong_one_refuted() {
    let (rows, columns) = (symbol("r"), symbol("c"));
    let dimensions = vec![Dimension::Unbounded; 2];
    let array = |layout| ArrayShape::new(ElementType::F32, dimensions.clone(), Some(layout)).unwrap();
    let (from, to) = (array(layout(&[1, 0], &[&[8, 128], &[2, 1]])), array(layout(&[1, 0], &[])));
    let vars: Vec<Var> = ["i0", "i1"].map(|name| Var::new(name, ScalarType::Int64)).to_vec();
    let extents = vec![rows.clone(), columns.clone()];
    let reindex = IndexMap::new(vars.clone(), extents.clone(), vars.iter().map(Expr::from).collect(), vec![]).unwrap();
    let inverse = tpu_inverse(&rows, &columns);
    let tiling = SymbolicTiling::new(from.layout().unwrap(), &extents).unwrap();
    let target = inverse.outputs[0].clone() * columns.clone() + inverse.outputs[1].clone();
    let relayout = |target: Expr| {
        let slots = vec![tiling.physical_elements().clone()];
        let map = IndexMap::new(inverse.vars.clone(), slots, vec![target], Vec::new()).unwrap();
        let pair = PairClaim { from: &from, to: &to, to_extents: &extents, reindex: &reindex, permutation: None };
        judge().check_relayout(&RelayoutClaim { pair, inverse: &inverse, map: &map })
    };
    proved(&relayout(target));
    let wrong = inverse.outputs[0].clone() * columns.clone() + inverse.outputs[0].clone();
    refuted(&verdict(&relayout(wrong), "specification"));
}
