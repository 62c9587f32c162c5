//! XLA's shapes with tiled layouts as cases, and their meaning computed by definition: pad, reshape
//! and transpose an array of labels.
//!
//! `f32[3,5]{1,0:T(2,2)}` in memory: the labels are row-major numbers, `.` is padding.
//!
//! ```text
//!  0  1  2  3  4           0  1 |  2  3 |  4  .
//!  5  6  7  8  9           5  6 |  7  8 |  9  .          0 1 5 6  2 3 7 8  4 . 9 .
//! 10 11 12 13 14    ──>   ------+-------+------   ──>    10 11 . .  12 13 . .  14 . . .
//!                         10 11 | 12 13 | 14  .
//!                          .  . |  .  . |  .  .
//! ```

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::XlaShape;
use tilewright_ir::layout::{ArrayShape, Dimension, ElementType, Layout, Tile};
use tilewright_script::{print_xla_shape, read_xla_shape};

use super::case::{Case, smaller, without_one};
use super::config::Config;
use super::extents;

/// An array shape with a layout, as a recipe or as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutCase {
    /// As generated.
    Recipe(LayoutRecipe),
    /// In XLA's notation: `f32[3,5]{1,0:T(2,2)}`.
    Text(String),
}

/// The parameters of a generated layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutRecipe {
    /// Index of the element type, modulo the number of types.
    pub element: u8,
    /// Extents in logical order.
    pub extents: Vec<i64>,
    /// The order of the dimensions in memory, as the number of a permutation in the factorial
    /// number system.
    pub order: u32,
    /// The tiles, applied from first to last; -1 combines a dimension with the next one.
    pub tiles: Vec<Vec<i64>>,
    /// The size is rounded up to a multiple of this number of elements (`L(n)`).
    pub tail: u64,
    /// Size of an element in bits (`E(n)`), 0 for the default of its type.
    pub bits: u64,
}

/// Limit on the number of slots of an array whose meaning is computed.
const MAX_SLOTS: usize = 1 << 16;

impl LayoutRecipe {
    /// Draws a recipe: a shape of [`extents::shape`]; up to three tiles of one to three dimensions
    /// with sizes up to 8, rarely of a rank above the array's, rarely with combined dimensions; a
    /// tail alignment of 1, 2, 5 or 16; an element size of 4, 16 or 32 bits, or the default.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let extents = extents::shape(u, config)?;
        let mut tiles = Vec::new();
        for count in 0..u.int_in_range(0..=3usize)? {
            // `(2,1)` after a tile packs neighbouring rows, as XLA does for elements of fewer than
            // 32 bits.
            tiles.push(if count > 0 && u.ratio(1, 3)? {
                vec![*u.choose(&[2, 4])?, 1]
            } else {
                let higher = usize::from(u.ratio(1, 8)?);
                let rank = u.int_in_range(1..=extents.len().min(3) + higher)?;
                let mut tile = Vec::new();
                for position in 0..rank {
                    let folds = position + 1 < rank && u.ratio(1, 8)?;
                    tile.push(if folds { -1 } else { extents::block(u, config)?.min(8) - u.int_in_range(0..=1)? });
                }
                tile
            });
        }
        let tail = *u.choose(&[1, 1, 1, 2, 5, 16])?;
        let bits = *u.choose(&[0, 0, 0, 4, 16, 32])?;
        Ok(Self { element: u.arbitrary()?, extents, order: u.int_in_range(0..=719)?, tiles, tail, bits })
    }

    /// The dimensions from minor to major.
    pub fn minor_to_major(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.extents.len()).rev().collect();
        let (mut number, mut order) = (usize::try_from(self.order).unwrap_or(0), Vec::new());
        while !left.is_empty() {
            let at = number % left.len();
            number /= left.len();
            order.push(left.remove(at));
        }
        order
    }

    /// The array shape.
    fn build(&self) -> Result<ArrayShape, String> {
        let tiles = self.tiles.iter().map(|tile| Tile::from_vector(tile)).collect::<Result<_, _>>();
        let layout = Layout {
            tail_alignment: self.tail,
            element_bits: self.bits,
            ..Layout::new(self.minor_to_major()).with_tiles(tiles.map_err(|error| error.to_string())?)
        };
        let element = ElementType::ALL[usize::from(self.element) % ElementType::ALL.len()];
        let static_dim =
            |extent: &i64| u64::try_from(*extent).map(Dimension::Static).map_err(|error| error.to_string());
        let dimensions = self.extents.iter().map(static_dim).collect::<Result<_, _>>()?;
        ArrayShape::new(element, dimensions, Some(layout)).map_err(|error| error.to_string())
    }

    /// Fewer tiles, fewer axes, default attributes, smaller extents, smaller tiles.
    fn simpler(&self) -> Vec<Self> {
        let fewer = without_one(&self.tiles).into_iter().map(|tiles| Self { tiles, ..self.clone() });
        // `order` may stay as it is: every number denotes a permutation of any number of axes.
        let axes = without_one(&self.extents).into_iter().filter(|extents| !extents.is_empty());
        let axes = axes.map(|extents| Self { extents, ..self.clone() });
        let mut default_attributes = Vec::new();
        if self.tail > 1 {
            default_attributes.push(Self { tail: 1, ..self.clone() });
        }
        if self.bits > 0 {
            default_attributes.push(Self { bits: 0, ..self.clone() });
        }
        if self.order > 0 {
            default_attributes.extend([0, self.order / 2].map(|order| Self { order, ..self.clone() }));
        }
        if self.element > 0 {
            default_attributes.push(Self { element: 0, ..self.clone() });
        }
        let extents = self.extents.iter().enumerate().flat_map(|(axis, &extent)| {
            smaller(extent).into_iter().map(move |less| {
                let mut extents = self.extents.clone();
                extents[axis] = less;
                Self { extents, ..self.clone() }
            })
        });
        let mut sizes = Vec::new();
        for (at, tile) in self.tiles.iter().enumerate() {
            let mut changed: Vec<Vec<i64>> = without_one(tile).into_iter().filter(|tile| !tile.is_empty()).collect();
            for (position, &size) in tile.iter().enumerate() {
                for less in smaller(size) {
                    let mut tile = tile.clone();
                    tile[position] = less;
                    changed.push(tile);
                }
            }
            for tile in changed {
                let mut tiles = self.tiles.clone();
                tiles[at] = tile;
                sizes.push(Self { tiles, ..self.clone() });
            }
        }
        fewer.chain(axes).chain(default_attributes).chain(extents).chain(sizes).collect()
    }
}

impl LayoutCase {
    /// The array shape.
    ///
    /// # Errors
    /// The parts do not fit together, or the text cannot be read; as a sentence.
    pub fn build(&self) -> Result<ArrayShape, String> {
        match self {
            Self::Recipe(recipe) => recipe.build(),
            Self::Text(text) => match read_xla_shape(text) {
                Ok(XlaShape::Array(array)) => Ok(array),
                Ok(_) => Err("the text is no single array".to_owned()),
                Err(found) => Err(found.first().map_or_else(|| "no shape".to_owned(), ToString::to_string)),
            },
        }
    }

    /// The same array as text, if it can be built.
    #[must_use]
    pub fn pinned(&self) -> Option<Self> {
        self.build().ok().map(|array| Self::Text(print_xla_shape(&XlaShape::Array(array))))
    }
}

impl Case for LayoutCase {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        LayoutRecipe::draw(u, config).map(Self::Recipe)
    }

    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Recipe(recipe) => recipe.simpler().into_iter().map(Self::Recipe).collect(),
            Self::Text(_) => Vec::new(),
        }
    }

    fn features(&self) -> Vec<String> {
        let Self::Recipe(recipe) = self else { return vec!["text".to_owned()] };
        let mut found = vec![format!("rank:{}", recipe.extents.len()), format!("tiles:{}", recipe.tiles.len())];
        let mut put = |is: bool, feature: &str| {
            if is {
                found.push(format!("layout:{feature}"));
            }
        };
        put(recipe.tail > 1, "tail");
        put(recipe.bits > 0, "bits");
        put(recipe.tiles.iter().flatten().any(|size| *size == -1), "combined");
        put(recipe.tiles.iter().any(|tile| tile.len() > recipe.extents.len()), "tile of higher rank");
        put(!recipe.minor_to_major().is_sorted_by(|a, b| a > b), "order");
        found
    }

    fn text(&self) -> String {
        match self.build() {
            Ok(array) => print_xla_shape(&XlaShape::Array(array)),
            Err(why) => format!("{self:?}: {why}"),
        }
    }
}

/// An array of labels in memory: each slot holds the row-major number of its element, or nothing if
/// it is padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The extents after the last tile.
    pub extents: Vec<usize>,
    /// The contents of the slots, including the tail.
    pub labels: Vec<Option<usize>>,
}

impl Cells {
    /// The meaning of a layout by the definition on XLA's page on tiled layouts. `None` if the
    /// array is larger than the limit, or the layout has a part other than order, tiles and tail.
    pub fn of(array: &ArrayShape) -> Option<Self> {
        let layout = array.layout_or_default();
        let extents: Vec<usize> = array
            .dimensions()
            .iter()
            .map(|dim| dim.bound().and_then(|extent| usize::try_from(extent).ok()))
            .collect::<Option<_>>()?;
        let size = super::map::table::n_points(&numbers(&extents)?, MAX_SLOTS)?;
        let order: Vec<usize> = layout.minor_to_major.iter().rev().copied().collect();
        let mut cells = Self { extents, labels: (0..size).map(Some).collect() }.transpose(&order);
        for tile in &layout.tiles {
            let sizes = tile.0.iter().map(|dim| match dim {
                tilewright_ir::layout::TileDim::Size(size) => usize::try_from(*size).ok().map(Some),
                tilewright_ir::layout::TileDim::Combine => Some(None),
            });
            cells = cells.tile(&sizes.collect::<Option<Vec<_>>>()?)?;
        }
        let tail = usize::try_from(layout.tail_alignment).ok()?.max(1);
        let rounded = cells.labels.len().div_ceil(tail).checked_mul(tail).filter(|size| *size <= MAX_SLOTS)?;
        cells.labels.resize(rounded, None);
        Some(cells)
    }

    /// The slot of each element, in the order of their row-major numbers.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<(usize, usize)> =
            self.labels.iter().enumerate().filter_map(|(slot, label)| label.map(|label| (label, slot))).collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    /// The array with its axes in another order: axis `k` of the result is axis `order[k]`.
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

    /// The array with larger extents; new positions are padding.
    fn pad(&self, extents: Vec<usize>) -> Option<Self> {
        let size = super::map::table::n_points(&numbers(&extents)?, MAX_SLOTS)?;
        let mut labels = vec![None; size];
        for (position, label) in self.labels.iter().enumerate() {
            labels[ravel(&unravel(position, &self.extents), &extents)] = *label;
        }
        Some(Self { extents, labels })
    }

    /// Applies one tile, major to minor: combine dimensions, pad to multiples of the tile, split
    /// each dimension in (count, position in tile), and move the positions behind all counts.
    /// `None` in `tile` combines a dimension with the next one.
    fn tile(&self, tile: &[Option<usize>]) -> Option<Self> {
        let mut extents = self.extents.clone();
        while extents.len() < tile.len() {
            extents.insert(0, 1);
        }
        let mut sizes = tile.to_vec();
        while let Some(at) = sizes.iter().position(Option::is_none) {
            let axis = extents.len() - sizes.len() + at;
            let folded = extents.remove(axis);
            *extents.get_mut(axis)? *= folded;
            sizes.remove(at);
        }
        let sizes: Vec<usize> = sizes.into_iter().flatten().collect();
        let leading = extents.len() - sizes.len();
        let sizes: Vec<usize> = std::iter::repeat_n(1, leading).chain(sizes).collect();
        let folded = Self { extents: extents.clone(), labels: self.labels.clone() };
        let padded =
            folded.pad(extents.iter().zip(&sizes).map(|(extent, size)| extent.div_ceil(*size) * size).collect())?;
        let apart: Vec<usize> =
            padded.extents.iter().zip(&sizes).flat_map(|(extent, &size)| [extent / size, size]).collect();
        let rank = sizes.len();
        // Axis 2k is the count of dimension k, axis 2k + 1 its position within a tile; untiled
        // dimensions have the count only.
        let order: Vec<usize> =
            (0..rank).map(|axis| 2 * axis).chain((leading..rank).map(|axis| 2 * axis + 1)).collect();
        let kept: Vec<usize> = (0..2 * rank).filter(|axis| axis % 2 == 0 || axis / 2 >= leading).collect();
        let apart_extents: Vec<usize> = kept.iter().map(|&axis| apart[axis]).collect();
        let reshaped = Self { extents: apart_extents, labels: padded.labels };
        let order: Option<Vec<usize>> = order.iter().map(|axis| kept.iter().position(|kept| kept == axis)).collect();
        Some(reshaped.transpose(&order?))
    }
}

/// The extents as signed numbers.
fn numbers(extents: &[usize]) -> Option<Vec<i64>> {
    extents.iter().map(|&extent| i64::try_from(extent).ok()).collect()
}

/// The index with the row-major number `position`.
fn unravel(mut position: usize, extents: &[usize]) -> Vec<usize> {
    let mut index = vec![0; extents.len()];
    for (at, extent) in index.iter_mut().zip(extents).rev() {
        *at = position % extent;
        position /= extent;
    }
    index
}

/// The row-major number of an index.
fn ravel(index: &[usize], extents: &[usize]) -> usize {
    index.iter().zip(extents).fold(0, |high, (at, extent)| high * extent + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    #[test]
    fn layouts_build_and_read_back() {
        for number in 0..500 {
            let bytes = bytes::of_case(3, "layout", number);
            let case = LayoutCase::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap();
            let array = case.build().unwrap_or_else(|why| panic!("{case:?}: {why}"));
            assert_eq!(case.pinned().unwrap().build().unwrap(), array, "{}", case.text());
        }
    }

    #[test]
    fn the_page_s_figure_one() {
        let array = LayoutCase::Text("f32[3,5]{1,0:T(2,2)}".into()).build().unwrap();
        let cells = Cells::of(&array).unwrap();
        assert_eq!((cells.labels.len(), cells.slots()[2 * 5 + 3]), (24, 17));
    }
}
