//! The position of each element of a tiled array as an expression, for extents that are known only at run time.
//!
//! This is the formula of [`super::tiling`] on expressions instead of numbers:
//!
//! ```
//! use tilewright_ir::layout::{Layout, SymbolicTiling, Tile};
//! use tilewright_ir::{Expr, Var};
//! let layout = Layout::row_major(2).with_tiles(vec![Tile::from_vector(&[8, 128])?]);
//! let tiling = SymbolicTiling::new(&layout, &[Expr::from(Var::index("n")), Expr::int(300)])?;
//! let shown = |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>();
//! assert_eq!(shown(tiling.physical_shape()), ["(n + 7) // 8", "3", "8", "128"]);
//! assert_eq!(tiling.physical_elements().to_string(), "(n + 7) // 8 * 3072");
//! let map = tiling.to_tiled_map()?;
//! assert_eq!(map.to_string(), "lambda i0, i1: [i0 // 8, i1 // 128, i0 % 8, i1 % 128]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::step::{Coordinate, Extent, TileStep};
use super::tiling::{Tiling, too_large};
use super::{ArrayShape, Dimension, ElementType, Layout, LayoutError, LayoutPart, Tile};
use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::index_map::IndexMap;
use crate::sabotage;
use crate::var::Var;

/// The largest number of expression nodes in all indices of a layout together.
///
/// A tile with `*` refers to an index several times. Repeated, such tiles would make the expressions grow exponentially.
const MAX_EXPR_NODES: usize = 4096;

/// The position of each element of an array, in elements from its start. Extents are expressions, each at least 1.
#[derive(Clone, Debug)]
pub struct SymbolicTiling {
    /// The type of all indices and extents.
    ty: ScalarType,
    /// The logical indices.
    vars: Vec<Var>,
    /// The logical extents.
    domain: Vec<Expr>,
    /// The physical index in terms of `vars`.
    index: Vec<Expr>,
    /// The physical extents, in factored form.
    physical: Vec<Size>,
    /// The physical extents, as expressions.
    shape: Vec<Expr>,
    /// The number of logical elements.
    elements: Expr,
    /// The number of allocated elements, in factored form.
    allocated: Size,
    /// The number of allocated elements, as an expression.
    physical_elements: Expr,
}

/// A constant times a product of expressions. The constant is kept apart so that products and divisions of constants
/// are computed instead of written out.
#[derive(Clone, Debug, PartialEq)]
struct Size {
    coefficient: u64,
    factors: Vec<Expr>,
}

impl Size {
    /// Returns the size for a logical extent. `None` for a negative constant.
    fn from_extent(extent: &Expr) -> Option<Self> {
        match extent.as_const_int() {
            Some(value) => Some(Self::known(u64::try_from(value).ok()?)),
            None => Some(Self { coefficient: 1, factors: vec![extent.clone()] }),
        }
    }

    /// Returns the value of a constant size.
    fn as_constant(&self) -> Option<u64> {
        self.factors.is_empty().then_some(self.coefficient)
    }

    /// Returns the product with a constant. `None` if the coefficient exceeds 2^63 - 1.
    fn times(&self, factor: u64) -> Option<Self> {
        let coefficient = u64::product(&[self.coefficient, factor])?;
        Some(Self { coefficient, factors: self.factors.clone() })
    }

    /// Returns the size as an expression of type `ty`.
    fn expr(&self, ty: ScalarType) -> Expr {
        match self.factors.iter().cloned().reduce(|product, factor| product * factor) {
            _ if self.coefficient == 0 => constant(0, ty),
            None => constant(self.coefficient, ty),
            Some(product) if self.coefficient == 1 => product,
            Some(product) => product * constant(self.coefficient, ty),
        }
    }
}

impl Extent for Size {
    fn known(extent: u64) -> Self {
        Self { coefficient: extent, factors: Vec::new() }
    }

    fn product(extents: &[Self]) -> Option<Self> {
        let coefficients: Vec<u64> = extents.iter().map(|extent| extent.coefficient).collect();
        let factors = extents.iter().flat_map(|extent| extent.factors.clone()).collect();
        Some(Self { coefficient: u64::product(&coefficients)?, factors })
    }

    fn tiles(&self, tile: u64) -> Option<Self> {
        let floors = sabotage::on("tile-count-floors") && self.coefficient > tile;
        let known = if floors { self.coefficient / tile } else { self.coefficient.div_ceil(tile) };
        let Some(first) = self.factors.first() else { return Some(Self::known(known)) };
        if self.coefficient.is_multiple_of(tile) {
            return Some(Self { coefficient: self.coefficient / tile, factors: self.factors.clone() });
        }
        let ty = first.dtype().scalar;
        let rounded = (self.expr(ty) + constant(tile - 1, ty)).floor_div(constant(tile, ty));
        Some(Self { coefficient: 1, factors: vec![rounded] })
    }
}

/// An index expression, and the type of the constants in it.
#[derive(Clone, Debug)]
struct TypedIndex(Expr, ScalarType);

/// Creates an integer constant.
fn constant(value: u64, ty: ScalarType) -> Expr {
    Expr::Int { value: value.into(), ty }
}

impl Coordinate<Size> for TypedIndex {
    fn fold(self, extent: &Size, low: Self) -> Self {
        if self.0.as_const_int() == Some(0) {
            return low;
        }
        let high = if extent.as_constant() == Some(1) { self.0 } else { self.0 * extent.expr(self.1) };
        Self(if low.0.as_const_int() == Some(0) { high } else { high + low.0 }, self.1)
    }

    fn split(self, extent: &Size, tile: u64) -> (Self, Self) {
        let zero = Self(constant(0, self.1), self.1);
        if tile == 1 || self.0.as_const_int() == Some(0) {
            return (self, zero);
        }
        let one = if sabotage::on("tile-skips-split") { 2 * tile - 1 } else { tile };
        if extent.as_constant().is_some_and(|extent| extent <= one) {
            return (zero, self);
        }
        let tile = constant(tile, self.1);
        let quotient = self.0.clone().floor_div(tile.clone());
        (Self(quotient, self.1), Self(self.0.floor_mod(tile), self.1))
    }
}

impl SymbolicTiling {
    /// Computes the positions for an array of the given extents.
    ///
    /// The extents are `int32` or `int64`, and so are the indices. Constants take the type of the symbolic extents;
    /// if all extents are constants, the type is `int32` if every size fits.
    ///
    /// # Errors
    /// The layout does not fit the extents or is sparse, an extent is not of type `int32` or `int64`, two symbolic
    /// extents have different types, or the padded size is too large even if every symbolic extent is 1.
    pub fn new(layout: &Layout, extents: &[Expr]) -> Result<Self, LayoutError> {
        match extents.iter().find(|extent| extent.as_const_int().is_none()).map(Expr::dtype) {
            Some(ty) if ty.is_scalar() => Self::with_index_type(layout, extents, ty.scalar),
            Some(ty) => Err(wrong_extent(format!("extents are int32 or int64, not {ty}"))),
            None => least_tiling(layout, extents)?.to_symbolic(),
        }
    }

    /// Computes the positions with indices of type `ty`, the type of all extents that are not constants.
    ///
    /// # Errors
    /// As for [`SymbolicTiling::new`].
    pub fn with_index_type(layout: &Layout, extents: &[Expr], ty: ScalarType) -> Result<Self, LayoutError> {
        let tiling = least_tiling(layout, extents)?;
        if !matches!(ty, ScalarType::Int32 | ScalarType::Int64) {
            return Err(wrong_extent(format!("extents are int32 or int64, not {ty}")));
        }
        let symbolic = |extent: &&Expr| extent.as_const_int().is_none();
        if extents.iter().filter(symbolic).any(|extent| extent.dtype() != crate::dtype::DataType::scalar(ty)) {
            return Err(wrong_extent("the extents differ in their types".to_owned()));
        }
        if ty == ScalarType::Int32 && i32::try_from(tiling.physical_elements()).is_err() {
            return Err(wrong_extent("the number of elements with padding is above what int32 counts to".to_owned()));
        }
        let sizes: Option<Vec<Size>> = extents.iter().map(Size::from_extent).collect();
        Self::build(ty, &sizes.ok_or_else(elements_too_large)?, layout)
    }

    /// Computes the positions for an array in which each dimension without a bound, number `k`, has the extent `d<k>`
    /// of type `int64`.
    pub(super) fn for_array(array: &ArrayShape) -> Result<Self, LayoutError> {
        let extent = |(position, dimension): (usize, &Dimension)| match dimension.bound() {
            Some(bound) => constant(bound, ScalarType::Int64),
            None => Expr::from(Var::new(format!("d{position}"), ScalarType::Int64)),
        };
        let extents: Vec<Expr> = array.dimensions().iter().enumerate().map(extent).collect();
        Self::new(&array.layout_or_default(), &extents)
    }

    /// Computes the positions for constant extents whose sizes fit into `ty`.
    pub(super) fn for_constant_shape(ty: ScalarType, shape: &[u64], order: &Layout) -> Result<Self, LayoutError> {
        let sizes: Vec<Size> = shape.iter().map(|&extent| Size::known(extent)).collect();
        Self::build(ty, &sizes, order)
    }

    /// Applies the tiles to the logical indices and extents.
    fn build(ty: ScalarType, extents: &[Size], layout: &Layout) -> Result<Self, LayoutError> {
        let vars: Vec<Var> = (0..extents.len()).map(|axis| Var::new(format!("i{axis}"), ty)).collect();
        let major_to_minor = || layout.minor_to_major.iter().rev().copied();
        let mut physical: Vec<Size> = major_to_minor().map(|dimension| extents[dimension].clone()).collect();
        let mut index: Vec<TypedIndex> = major_to_minor().map(|axis| TypedIndex(Expr::from(&vars[axis]), ty)).collect();
        for (position, tile) in layout.tiles.iter().enumerate() {
            (index, physical) = Self::apply_tile(tile, index, &physical, ty).ok_or_else(elements_too_large)?;
            // After each tile, because the next one may multiply the length again, and so that the error names the tile.
            let mut parts = 0usize;
            for TypedIndex(index, _) in &index {
                index.walk(&mut |_| parts += 1);
            }
            if parts > MAX_EXPR_NODES {
                return Err(too_long(position));
            }
        }
        let tail = layout.tail_alignment;
        let allocated = Size::product(&physical).and_then(|slots| slots.tiles(tail)?.times(tail));
        let allocated = allocated.ok_or_else(elements_too_large)?;
        Ok(Self {
            ty,
            vars,
            domain: extents.iter().map(|extent| extent.expr(ty)).collect(),
            index: index.into_iter().map(|index| index.0).collect(),
            shape: physical.iter().map(|extent| extent.expr(ty)).collect(),
            elements: Size::product(extents).ok_or_else(elements_too_large)?.expr(ty),
            physical_elements: allocated.expr(ty),
            allocated,
            physical,
        })
    }

    /// Returns the indices and extents after one tile.
    fn apply_tile(
        tile: &Tile,
        index: Vec<TypedIndex>,
        before: &[Size],
        ty: ScalarType,
    ) -> Option<(Vec<TypedIndex>, Vec<Size>)> {
        let (step, after) = TileStep::new(tile, before)?;
        Some((step.apply(index, &TypedIndex(constant(0, ty), ty)), after))
    }

    /// Returns the type of the indices.
    pub fn index_type(&self) -> ScalarType {
        self.ty
    }

    /// Returns the logical extents.
    pub fn domain(&self) -> &[Expr] {
        &self.domain
    }

    /// Returns the extents after the last tile, from major to minor.
    pub fn physical_shape(&self) -> &[Expr] {
        &self.shape
    }

    /// Returns the number of logical elements.
    pub fn elements(&self) -> &Expr {
        &self.elements
    }

    /// Returns the number of allocated elements: the product of [`SymbolicTiling::physical_shape`], rounded up to the
    /// tail alignment.
    pub fn physical_elements(&self) -> &Expr {
        &self.physical_elements
    }

    /// Returns the size of the allocation in bytes, without a metadata prefix, if elements are `element_bits` bits
    /// apart.
    pub fn bytes(&self, element_bits: u64) -> Expr {
        let bits = self.allocated.times(element_bits).and_then(|bits| bits.tiles(8)).map(|bytes| bytes.expr(self.ty));
        bits.unwrap_or_else(|| {
            let bits = self.physical_elements.clone() * constant(element_bits, self.ty);
            (bits + constant(7, self.ty)).floor_div(constant(8, self.ty))
        })
    }

    /// Returns the map from the logical to the physical index, with one output for each of
    /// [`SymbolicTiling::physical_shape`].
    ///
    /// # Errors
    /// None for a tiling that was built; the signature is that of [`IndexMap::new`].
    pub fn to_tiled_map(&self) -> Result<IndexMap, LayoutError> {
        index_map(self.vars.clone(), self.domain.clone(), self.index.clone())
    }

    /// Returns the map from the logical index to the position in memory, its only output.
    ///
    /// # Errors
    /// As for [`SymbolicTiling::to_tiled_map`].
    pub fn to_flat_map(&self) -> Result<IndexMap, LayoutError> {
        let term = |(axis, index): (usize, &Expr)| {
            let stride = Size::product(&self.physical[axis + 1..]).filter(|_| index.as_const_int() != Some(0))?;
            Some(match stride.as_constant() {
                Some(1) => index.clone(),
                _ => index.clone() * stride.expr(self.ty),
            })
        };
        let sum = self.index.iter().enumerate().filter_map(term).reduce(|sum, term| sum + term);
        let sum = sum.unwrap_or_else(|| constant(0, self.ty));
        index_map(self.vars.clone(), self.domain.clone(), vec![sum])
    }
}

/// Creates the error that the number of elements exceeds 2^63 - 1.
fn elements_too_large() -> LayoutError {
    too_large(LayoutPart::Whole, "the number of elements")
}

/// Creates the error that the index expressions exceed [`MAX_EXPR_NODES`].
fn too_long(tile: usize) -> LayoutError {
    let message = "the indices of this layout are too long: its tiles combine dimensions again and again".to_owned();
    LayoutError { part: LayoutPart::Tile(tile, None), code: "layout", message, help: "use fewer tiles with `*`" }
}

/// Returns the tiling in which every symbolic extent is 1. If it does not exist, no symbolic tiling does.
fn least_tiling(layout: &Layout, extents: &[Expr]) -> Result<Tiling, LayoutError> {
    let smallest = |extent: &Expr| match extent.as_const_int() {
        Some(value) => u64::try_from(value).map_err(|_| wrong_extent(format!("extent {value} is negative"))),
        None => Ok(1),
    };
    let dimensions = extents.iter().map(|extent| smallest(extent).map(Dimension::Static));
    let dimensions = dimensions.collect::<Result<Vec<_>, _>>()?;
    // These two properties do not affect positions in elements.
    let layout = Layout { split_configs: Vec::new(), element_bits: 0, ..layout.clone() };
    ArrayShape::new(ElementType::U8, dimensions, Some(layout))?.tiling()
}

/// Creates an index map. It cannot fail for the parts of a tiling: the variables are distinct scalar integers.
fn index_map(vars: Vec<Var>, domain: Vec<Expr>, outputs: Vec<Expr>) -> Result<IndexMap, LayoutError> {
    let internal = |error: crate::index_map::IndexMapError| LayoutError {
        part: LayoutPart::Whole,
        code: "index-map",
        message: error.to_string(),
        help: "this is a fault of Tilewright",
    };
    IndexMap::new(vars, domain, outputs, Vec::new()).map_err(internal)
}

/// Creates the error for an extent that has the wrong type or value.
fn wrong_extent(message: String) -> LayoutError {
    let help = "extents are positive integers of one type";
    LayoutError { part: LayoutPart::Dimensions, code: "extent", message, help }
}
