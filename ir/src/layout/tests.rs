//! Layouts compared with an independent implementation: pad, reshape and transpose on arrays of labels.

use proptest::prelude::*;

use super::*;
use crate::dtype::ScalarType;
use crate::eval::Bindings;
use crate::expr::Expr;
use crate::var::Var;

/// An array whose elements carry labels. Padding has none.
#[derive(Clone, Debug)]
struct Cells {
    extents: Vec<usize>,
    labels: Vec<Option<usize>>,
}

fn unravel(mut position: usize, extents: &[usize]) -> Vec<usize> {
    let mut index = vec![0; extents.len()];
    for axis in (0..extents.len()).rev() {
        index[axis] = position % extents[axis];
        position /= extents[axis];
    }
    index
}

fn ravel(index: &[usize], extents: &[usize]) -> usize {
    index.iter().zip(extents).fold(0, |high, (at, extent)| high * extent + at)
}

impl Cells {
    fn numbered(extents: &[usize]) -> Self {
        let count = extents.iter().product();
        Self { extents: extents.to_vec(), labels: (0..count).map(Some).collect() }
    }

    fn transpose(&self, order: &[usize]) -> Self {
        let extents: Vec<usize> = order.iter().map(|&axis| self.extents[axis]).collect();
        let mut labels = vec![None; self.labels.len()];
        for (position, label) in self.labels.iter().enumerate() {
            let from = unravel(position, &self.extents);
            let to: Vec<usize> = order.iter().map(|&axis| from[axis]).collect();
            labels[ravel(&to, &extents)] = *label;
        }
        Self { extents, labels }
    }

    fn pad(&self, extents: Vec<usize>) -> Self {
        let mut labels = vec![None; extents.iter().product()];
        for (position, label) in self.labels.iter().enumerate() {
            labels[ravel(&unravel(position, &self.extents), &extents)] = *label;
        }
        Self { extents, labels }
    }

    fn reshape(&self, extents: Vec<usize>) -> Self {
        assert_eq!(extents.iter().product::<usize>(), self.labels.len());
        Self { extents, labels: self.labels.clone() }
    }

    /// Applies one tile as XLA's page describes it: combine, pad, reshape, transpose. A size of -1 combines.
    fn tile(&self, tile: &[i64]) -> Self {
        let mut extents = self.extents.clone();
        while extents.len() < tile.len() {
            extents.insert(0, 1);
        }
        let mut tile = tile.to_vec();
        while let Some(at) = tile.iter().position(|&size| size == -1) {
            let axis = extents.len() - tile.len() + at;
            let folded = extents.remove(axis);
            extents[axis] *= folded;
            tile.remove(at);
        }
        let leading = extents.len() - tile.len();
        let sizes: Vec<usize> =
            std::iter::repeat_n(1, leading).chain(tile.iter().map(|&size| usize::try_from(size).unwrap())).collect();
        let folded = self.reshape(extents.clone());
        let padded =
            folded.pad(extents.iter().zip(&sizes).map(|(extent, size)| extent.div_ceil(*size) * size).collect());
        let apart = padded.extents.iter().zip(&sizes).flat_map(|(extent, &size)| [extent / size, size]).collect();
        let order: Vec<usize> =
            (0..sizes.len()).map(|axis| 2 * axis).chain((leading..sizes.len()).map(|axis| 2 * axis + 1)).collect();
        let counts_and_ones = padded.reshape(apart);
        // The leading dimensions have in-tile extents of 1, which the last reshape drops.
        let mut full = order;
        full.splice(0..0, (0..leading).map(|axis| 2 * axis + 1));
        let moved = counts_and_ones.transpose(&full);
        let extents = moved.extents[leading..].to_vec();
        moved.reshape(extents)
    }
}

fn array(extents: &[u64], order: Vec<usize>, tiles: &[&[i64]]) -> ArrayShape {
    let tiles = tiles.iter().map(|tile| Tile::from_vector(tile).unwrap()).collect();
    let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
    ArrayShape::new(ElementType::F32, dimensions, Some(Layout::new(order).with_tiles(tiles))).unwrap()
}

fn row_major(extents: &[u64], tiles: &[&[i64]]) -> Tiling {
    array(extents, (0..extents.len()).rev().collect(), tiles).tiling().unwrap()
}

fn reference(extents: &[u64], order: &[usize], tiles: &[&[i64]]) -> Cells {
    let extents: Vec<usize> = extents.iter().map(|&extent| usize::try_from(extent).unwrap()).collect();
    let major_to_minor: Vec<usize> = order.iter().rev().copied().collect();
    tiles.iter().fold(Cells::numbered(&extents).transpose(&major_to_minor), |cells, tile| cells.tile(tile))
}

/// Compares all functions of a tiling with the reference.
fn assert_agrees_with_reference(extents: &[u64], order: &[usize], tiles: &[&[i64]]) {
    let tiling = array(extents, order.to_vec(), tiles).tiling().unwrap();
    let cells = reference(extents, order, tiles);
    let physical: Vec<usize> = tiling.physical_shape().iter().map(|&extent| usize::try_from(extent).unwrap()).collect();
    assert_eq!(physical, cells.extents);
    assert_eq!(tiling.physical_elements(), cells.labels.len() as u64);
    let table = tiling.offsets().unwrap();
    assert_eq!(table.len() as u64, tiling.elements());
    let shape: Vec<usize> = extents.iter().map(|&extent| usize::try_from(extent).unwrap()).collect();
    let (flat, tiled) = (tiling.to_flat_map().unwrap(), tiling.to_tiled_map().unwrap());
    for (position, label) in cells.labels.iter().enumerate() {
        let element = tiling.element_at(position as u64);
        let expected = label.map(|label| unravel(label, &shape).into_iter().map(|at| at as u64).collect::<Vec<_>>());
        assert_eq!(element, expected, "position {position}");
        let (Some(label), Some(index)) = (label, element) else { continue };
        assert_eq!(tiling.linear_index(&index), Some(position as u64));
        assert_eq!(table[*label], position as u64);
        let logical: Vec<i128> = index.iter().map(|&at| at.into()).collect();
        assert_eq!(flat.eval(&logical, &Bindings::new()), Ok(vec![position as i128]));
        let apart = unravel(position, &cells.extents).into_iter().map(|at| at as i128).collect::<Vec<_>>();
        assert_eq!(tiled.eval(&logical, &Bindings::new()), Ok(apart));
    }
    assert_eq!(tiling.element_at(cells.labels.len() as u64), None);
    let held = cells.labels.iter().flatten().count() as u64;
    assert_eq!(tiling.padding_elements(), tiling.physical_elements() - held);
}

#[test]
fn the_element_in_the_example_of_the_page_is_at_position_17() {
    let tiling = row_major(&[3, 5], &[&[2, 2]]);
    assert_eq!(tiling.linear_index(&[2, 3]), Some(17));
    assert_eq!(tiling.physical_index(&[2, 3]), Some(vec![1, 1, 0, 1]));
    assert_eq!((tiling.elements(), tiling.physical_elements(), tiling.padding_elements()), (15, 24, 9));
    assert_eq!(tiling.bytes(), 96);
    assert_eq!(tiling.linear_index(&[3, 0]), None);
    assert_eq!(tiling.linear_index(&[2]), None);
}

#[test]
fn the_positions_are_those_of_figure_2_of_the_page() {
    let tiling = row_major(&[4, 8], &[&[2, 4], &[2, 1]]);
    let cells = reference(&[4, 8], &[1, 0], &[&[2, 4], &[2, 1]]);
    assert_eq!(tiling.physical_elements(), 32);
    for (position, label) in cells.labels.iter().enumerate() {
        let label = label.unwrap() as u64;
        assert_eq!(tiling.linear_index(&[label / 8, label % 8]), Some(position as u64));
    }
    // The figure's first row: columns of two, tiles of eight.
    let first: Vec<_> = (0..8).map(|column| tiling.linear_index(&[0, column]).unwrap()).collect();
    assert_eq!(first, [0, 2, 4, 6, 8, 10, 12, 14]);
    let second: Vec<_> = (0..8).map(|column| tiling.linear_index(&[1, column]).unwrap()).collect();
    assert_eq!(second, [1, 3, 5, 7, 9, 11, 13, 15]);
}

#[test]
fn combining_dimensions_in_a_tile_equals_combining_them_in_the_array() {
    let five = row_major(&[2, 7, 8, 11, 10], &[&[-1, -1, 2, -1, 3]]);
    let two = row_major(&[112, 110], &[&[2, 3]]);
    assert_eq!(five.physical_shape(), two.physical_shape());
    assert_eq!(five.offsets().unwrap(), two.offsets().unwrap());
    assert_eq!(five.physical_elements(), 56 * 37 * 6);
}

#[test]
fn tpu_tiles_agree_with_the_reference_on_ragged_shapes() {
    for extents in [[1, 1], [9, 129], [17, 300], [8, 128], [7, 131]] {
        assert_agrees_with_reference(&extents, &[1, 0], &[&[8, 128], &[2, 1]]);
        assert_agrees_with_reference(&extents, &[0, 1], &[&[8, 128], &[4, 1]]);
    }
}

#[test]
fn later_tiles_pad_and_apply_to_tile_counts() {
    // 3x5 in tiles of 2x3: 2x2 tiles; then the 3 of each row in pieces of 2.
    let tiling = row_major(&[3, 5], &[&[2, 3], &[2]]);
    assert_eq!(tiling.physical_shape(), [2, 2, 2, 2, 2]);
    assert_eq!(tiling.physical_elements(), 32);
    assert_agrees_with_reference(&[3, 5], &[1, 0], &[&[2, 3], &[2]]);
    // The second tile reaches into the counts of the first.
    assert_agrees_with_reference(&[5, 7], &[1, 0], &[&[2, 3], &[3, 2, 2]]);
}

#[test]
fn a_tile_of_higher_rank_prepends_extents_of_1() {
    assert_agrees_with_reference(&[5], &[0], &[&[2, 3]]);
    assert_agrees_with_reference(&[5], &[0], &[&[-1, 3]]);
    let scalar = row_major(&[], &[&[256]]);
    assert_eq!((scalar.physical_shape(), scalar.linear_index(&[])), (&[1, 256][..], Some(0)));
    assert_eq!((scalar.offsets(), scalar.padding_elements()), (Ok(vec![0]), 255));
    assert_agrees_with_reference(&[], &[], &[&[2, 3]]);
}

#[test]
fn tail_alignment_rounds_up_with_and_without_tiles() {
    for (tiles, expected) in [(vec![], 20), (vec![Tile::from_vector(&[2, 2]).unwrap()], 30)] {
        let layout = Layout { tail_alignment: 10, ..Layout::row_major(2).with_tiles(tiles) };
        let dimensions = vec![Dimension::Static(3), Dimension::Bounded(5)];
        let tiling = ArrayShape::new(ElementType::F32, dimensions, Some(layout)).unwrap().tiling().unwrap();
        assert_eq!(tiling.physical_elements(), expected);
        assert_eq!(tiling.element_at(expected - 1), None);
    }
}

#[test]
fn element_bits_state_the_distance_of_packed_elements() {
    let layout = Layout { element_bits: 4, ..Layout::row_major(1) };
    let shape = |layout| ArrayShape::new(ElementType::S4, vec![Dimension::Static(7)], layout).unwrap();
    let packed = shape(Some(layout)).tiling().unwrap();
    assert_eq!((packed.bytes(), packed.bit_offset(5)), (4, (2, 4)));
    assert_eq!(shape(None).tiling().unwrap().bytes(), 7);
}

#[test]
fn an_empty_array_has_no_elements() {
    let tiling = row_major(&[0, 5], &[&[2, 2]]);
    assert_eq!((tiling.elements(), tiling.physical_elements(), tiling.bytes()), (0, 0, 0));
    assert_eq!((tiling.offsets(), tiling.element_at(0)), (Ok(vec![]), None));
}

fn code(extents: &[u64], layout: Layout) -> &'static str {
    let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
    ArrayShape::new(ElementType::F32, dimensions, Some(layout)).unwrap_err().code
}

#[test]
fn parts_that_do_not_fit_are_errors() {
    let tiled = |sizes: Vec<TileDim>| Layout::row_major(2).with_tiles(vec![Tile(sizes)]);
    let (size, combine) = (TileDim::Size, TileDim::Combine);
    assert_eq!(code(&[3, 5], Layout::new(vec![1])), "layout-rank");
    assert_eq!(code(&[3, 5], Layout::new(vec![1, 1])), "duplicate-dimension");
    assert_eq!(code(&[3, 5], Layout::new(vec![1, 2])), "dimension-range");
    assert_eq!(code(&[3, 5], tiled(vec![])), "empty-tile");
    assert_eq!(code(&[3, 5], tiled(vec![size(2), size(0)])), "tile-size");
    assert_eq!(code(&[3, 5], tiled(vec![size(2), combine])), "combine-last");
    assert_eq!(code(&[3, 5], Layout { tail_alignment: 0, ..Layout::row_major(2) }), "tail-alignment");
    let split =
        |dimension, indices| Layout { split_configs: vec![SplitConfig { dimension, indices }], ..Layout::row_major(2) };
    assert_eq!(code(&[3, 5], split(2, vec![1])), "split-dimension");
    assert_eq!(code(&[3, 5], split(1, vec![5])), "split-range");
    assert_eq!(code(&[3, 5], split(1, vec![3, 3])), "split-order");
    assert_eq!(code(&[3, 5], split(1, vec![])), "split-indices");
    assert!(Tile::from_vector(&[-1, 2]).is_ok());
    assert_eq!(Tile::from_vector(&[-2, 2]).unwrap_err().code, "tile-size");
}

#[test]
fn sizes_that_are_too_large_with_padding_are_errors() {
    let tiles = |sizes: &[i64]| Layout::row_major(2).with_tiles(vec![Tile::from_vector(sizes).unwrap()]);
    assert_eq!(code(&[3, 5], tiles(&[1 << 40, 1 << 40])), "size");
    assert_eq!(code(&[1 << 40, 1 << 40], Layout::row_major(2)), "size");
    assert_eq!(code(&[1 << 31, 1 << 31], Layout::row_major(2)), "size", "in bytes");
    assert_eq!(code(&[3, 5], Layout { tail_alignment: 1 << 63, ..Layout::row_major(2) }), "size");
    assert_eq!(code(&[3, 5], Layout { element_bits: u64::MAX, ..Layout::row_major(2) }), "size");
    assert_eq!(row_major(&[1 << 30, 1 << 20], &[]).offsets().unwrap_err().code, "table-size");
}

#[test]
fn sparse_and_unbounded_arrays_have_no_tiling() {
    let attribute = |level| DimAttribute { level, unique: true, ordered: true };
    let sparse = Layout { dim_attributes: vec![attribute(DimLevel::Compressed)], ..Layout::row_major(1) };
    let sparse = ArrayShape::new(ElementType::F32, vec![Dimension::Static(3)], Some(sparse)).unwrap();
    assert_eq!(sparse.tiling().unwrap_err().code, "sparse");
    let unbounded = ArrayShape::new(ElementType::F32, vec![Dimension::Unbounded], None).unwrap();
    assert_eq!(unbounded.tiling().unwrap_err().code, "unbounded");
    let dense = Layout { dim_attributes: vec![attribute(DimLevel::Dense)], ..Layout::row_major(1) };
    let dense = ArrayShape::new(ElementType::F32, vec![Dimension::Static(3)], Some(dense)).unwrap();
    assert_eq!(dense.layout(), Some(&Layout::row_major(1)), "dense attributes are the default");
}

/// A tile of sizes and -1; the last one is a size.
fn tile() -> impl Strategy<Value = Vec<i64>> {
    let head = prop::collection::vec(prop_oneof![Just(-1i64), 1i64..5], 0..3);
    (head, 1i64..5).prop_map(|(mut head, last)| {
        head.push(last);
        head
    })
}

/// Checks that a symbolic tiling, evaluated at `extents`, is the tiling for constant extents.
fn assert_symbolic_agrees_with_constant(extents: &[u64], symbolic: &[bool], layout: &Layout, bits: u64) {
    let symbols: Vec<Var> = (0..extents.len()).map(|axis| Var::new(format!("d{axis}"), ScalarType::Int64)).collect();
    let dims = extents.iter().zip(&symbols).zip(symbolic);
    let given: Vec<Expr> = dims
        .map(
            |((&extent, symbol), &symbolic)| {
                if symbolic { symbol.into() } else { Expr::int(extent.try_into().unwrap()) }
            },
        )
        .collect();
    let bindings: Bindings = symbols.iter().cloned().zip(extents.iter().map(|&extent| extent.into())).collect();
    let value = |expr: &Expr| u64::try_from(expr.eval_index(&bindings).unwrap()).unwrap();
    let formula = SymbolicTiling::new(layout, &given).unwrap();
    let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
    let stated = Layout { element_bits: bits, ..layout.clone() };
    let tiling = ArrayShape::new(ElementType::F32, dimensions, Some(stated)).unwrap().tiling().unwrap();
    let physical: Vec<u64> = formula.physical_shape().iter().map(value).collect();
    assert_eq!(physical, tiling.physical_shape());
    assert_eq!(value(formula.elements()), tiling.elements());
    assert_eq!(value(formula.physical_elements()), tiling.physical_elements());
    assert_eq!(value(&formula.bytes(bits)), tiling.bytes());
    let (tiled, flat) = (formula.to_tiled_map().unwrap(), formula.to_flat_map().unwrap());
    for position in 0..tiling.physical_elements() {
        let Some(index) = tiling.element_at(position) else { continue };
        let logical: Vec<i128> = index.iter().map(|&at| at.into()).collect();
        assert_eq!(flat.eval(&logical, &bindings), Ok(vec![position.into()]));
        let apart = tiling.physical_index(&index).unwrap().into_iter().map(i128::from).collect();
        assert_eq!(tiled.eval(&logical, &bindings), Ok(apart));
    }
}

fn shown(exprs: &[Expr]) -> Vec<String> {
    exprs.iter().map(ToString::to_string).collect()
}

#[test]
fn unbounded_dimensions_have_symbolic_extents() {
    let layout = Layout::row_major(2)
        .with_tiles(vec![Tile::from_vector(&[8, 128]).unwrap(), Tile::from_vector(&[2, 1]).unwrap()]);
    let array = ArrayShape::new(ElementType::Bf16, vec![Dimension::Unbounded; 2], Some(layout)).unwrap();
    let tiling = array.symbolic_tiling().unwrap();
    assert_eq!(shown(tiling.domain()), ["d0", "d1"]);
    assert_eq!(shown(tiling.physical_shape()), ["(d0 + 7) // 8", "(d1 + 127) // 128", "4", "128", "2", "1"]);
    assert_eq!(tiling.elements().to_string(), "d0 * d1");
    assert_eq!(tiling.physical_elements().to_string(), "(d0 + 7) // 8 * ((d1 + 127) // 128) * 1024");
    assert_eq!(tiling.bytes(16).to_string(), "(d0 + 7) // 8 * ((d1 + 127) // 128) * 2048");
    let map = tiling.to_tiled_map().unwrap();
    assert_eq!(shown(map.outputs()), ["i0 // 8", "i1 // 128", "i0 % 8 // 2", "i1 % 128", "i0 % 8 % 2", "0"]);
    assert!(map.axis_separators().positions().is_empty());
}

#[test]
fn tail_alignment_rounds_a_symbolic_count_up() {
    let layout = Layout { tail_alignment: 10, ..Layout::row_major(2) };
    let dimensions = vec![Dimension::Unbounded, Dimension::Static(5)];
    let array = |layout| ArrayShape::new(ElementType::S8, dimensions.clone(), Some(layout)).unwrap();
    let tiling = array(layout.clone()).symbolic_tiling().unwrap();
    assert_eq!(tiling.physical_elements().to_string(), "(d0 * 5 + 9) // 10 * 10");
    assert_eq!(tiling.bytes(4).to_string(), "(d0 * 5 + 9) // 10 * 5");
    let even = array(Layout { tail_alignment: 5, ..layout }).symbolic_tiling().unwrap();
    assert_eq!(even.physical_elements().to_string(), "d0 * 5");
}

#[test]
fn symbolic_extents_have_one_type_that_represents_the_padded_size() {
    let (n, m) = (Expr::from(Var::index("n")), Expr::from(Var::new("m", ScalarType::Int64)));
    let code = |layout: &Layout, extents: &[Expr]| SymbolicTiling::new(layout, extents).unwrap_err().code;
    assert_eq!(code(&Layout::row_major(2), &[n.clone(), m]), "extent");
    assert_eq!(code(&Layout::row_major(1), &[Expr::bool(true).lt(n.clone())]), "extent");
    assert_eq!(code(&Layout::row_major(2), &[n.clone(), Expr::int(-3)]), "extent");
    assert_eq!(code(&Layout::row_major(2), std::slice::from_ref(&n)), "layout-rank");
    let wide = Layout::row_major(1).with_tiles(vec![Tile::from_vector(&[1 << 40]).unwrap()]);
    assert_eq!(code(&wide, &[n]), "extent");
    let huge = Layout::row_major(1).with_tiles(vec![Tile::from_vector(&[1 << 40, 1 << 40]).unwrap()]);
    assert_eq!(ArrayShape::new(ElementType::S8, vec![Dimension::Unbounded], Some(huge)).unwrap_err().code, "size");
}

proptest! {
    #[test]
    fn symbolic_layouts_agree_with_constant_ones(
        (extents, order) in prop::collection::vec(1u64..7, 0..5).prop_flat_map(|extents| {
            let order = Just((0..extents.len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(extents), order)
        }),
        symbolic in prop::collection::vec(any::<bool>(), 5),
        tiles in prop::collection::vec(tile(), 0..4),
        tail_alignment in 1u64..9,
        bits in 1u64..20,
    ) {
        let sizes: Vec<&[i64]> = tiles.iter().map(Vec::as_slice).collect();
        prop_assume!(reference(&extents, &order, &sizes).labels.len() < 3_000);
        let tiles = tiles.iter().map(|tile| Tile::from_vector(tile).unwrap()).collect();
        let layout = Layout { tail_alignment, ..Layout::new(order).with_tiles(tiles) };
        assert_symbolic_agrees_with_constant(&extents, &symbolic, &layout, bits);
    }

    #[test]
    fn every_layout_equals_pad_reshape_transpose(
        (extents, order) in prop::collection::vec(1u64..6, 0..5).prop_flat_map(|extents| {
            let order = Just((0..extents.len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(extents), order)
        }),
        tiles in prop::collection::vec(tile(), 0..4),
    ) {
        let tiles: Vec<&[i64]> = tiles.iter().map(Vec::as_slice).collect();
        let padded = reference(&extents, &order, &tiles).labels.len();
        prop_assume!(padded < 20_000);
        assert_agrees_with_reference(&extents, &order, &tiles);
    }
}

#[test]
fn tiles_that_combine_dimensions_repeatedly_are_an_error() {
    let fold = Tile(vec![TileDim::Combine, TileDim::Size(2)]);
    let tiling = |count: usize| {
        let layout = Layout::row_major(2).with_tiles(vec![fold.clone(); count]);
        SymbolicTiling::new(&layout, &[Expr::from(Var::index("n")), Expr::int(7)])
    };
    assert!(tiling(5).is_ok());
    assert_eq!(tiling(60).unwrap_err().code, "layout");
}
