//! Where the elements of a tiled array lie, as expressions: for extents that are known only when the program runs.
//!
//! It is the formula of [`super::tiling`] with expressions in the place of numbers:
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

use super::step::{Coordinate, Extent, Step};
use super::tiling::{Tiling, too_large};
use super::{ArrayShape, Dimension, ElementType, Layout, LayoutError, Place, Tile};
use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::index_map::IndexMap;
use crate::sabotage;
use crate::var::Var;

/// Most parts of all indices of a layout together.
const MAX_PARTS: usize = 4096;

/// Where each element of an array lies, in elements from its start; extents are expressions, each at least 1.
#[derive(Clone, Debug)]
pub struct SymbolicTiling {
    ty: ScalarType,
    vars: Vec<Var>,
    domain: Vec<Expr>,
    /// The physical index.
    index: Vec<Expr>,
    /// Its extents.
    physical: Vec<Size>,
    shape: Vec<Expr>,
    elements: Expr,
    allocated: Size,
    physical_elements: Expr,
}

/// A positive constant times expressions.
#[derive(Clone, Debug, PartialEq)]
struct Size {
    coefficient: u64,
    factors: Vec<Expr>,
}

impl Size {
    fn of(extent: &Expr) -> Option<Self> {
        match extent.as_const_int() {
            Some(value) => Some(Self::known(u64::try_from(value).ok()?)),
            None => Some(Self { coefficient: 1, factors: vec![extent.clone()] }),
        }
    }

    fn known_value(&self) -> Option<u64> {
        self.factors.is_empty().then_some(self.coefficient)
    }

    fn times(&self, factor: u64) -> Option<Self> {
        let coefficient = u64::product(&[self.coefficient, factor])?;
        Some(Self { coefficient, factors: self.factors.clone() })
    }

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

/// An index; every constant of it has this type.
#[derive(Clone, Debug)]
struct Index(Expr, ScalarType);

fn constant(value: u64, ty: ScalarType) -> Expr {
    Expr::Int { value: value.into(), ty }
}

impl Coordinate<Size> for Index {
    fn fold(self, extent: &Size, low: Self) -> Self {
        if self.0.as_const_int() == Some(0) {
            return low;
        }
        let high = if extent.known_value() == Some(1) { self.0 } else { self.0 * extent.expr(self.1) };
        Self(if low.0.as_const_int() == Some(0) { high } else { high + low.0 }, self.1)
    }

    fn split(self, extent: &Size, tile: u64) -> (Self, Self) {
        let zero = Self(constant(0, self.1), self.1);
        if tile == 1 || self.0.as_const_int() == Some(0) {
            return (self, zero);
        }
        let one = if sabotage::on("tile-skips-split") { 2 * tile - 1 } else { tile };
        if extent.known_value().is_some_and(|extent| extent <= one) {
            return (zero, self);
        }
        let tile = constant(tile, self.1);
        let quotient = self.0.clone().floor_div(tile.clone());
        (Self(quotient, self.1), Self(self.0.floor_mod(tile), self.1))
    }
}

impl SymbolicTiling {
    /// Where the elements of an array of these extents lie. Extents are `int32` or `int64`, as are the indices: constants
    /// take the type of the others; if all are constants, `int32` does where every size fits.
    ///
    /// # Errors
    /// A layout that does not fit the extents, a sparse one, extents of other or of different types, and a padded size
    /// that is too large even where every symbolic extent is 1.
    pub fn new(layout: &Layout, extents: &[Expr]) -> Result<Self, LayoutError> {
        match extents.iter().find(|extent| extent.as_const_int().is_none()).map(Expr::dtype) {
            Some(ty) if ty.is_scalar() => Self::typed(layout, extents, ty.scalar),
            Some(ty) => Err(wrong_extent(format!("extents are int32 or int64, not {ty}"))),
            None => smallest(layout, extents)?.to_symbolic(),
        }
    }

    /// The same with indices of the type `ty`, which all extents that are no constants have.
    ///
    /// # Errors
    /// As [`SymbolicTiling::new`].
    pub fn typed(layout: &Layout, extents: &[Expr], ty: ScalarType) -> Result<Self, LayoutError> {
        let tiling = smallest(layout, extents)?;
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
        let sizes: Option<Vec<Size>> = extents.iter().map(Size::of).collect();
        Self::build(ty, &sizes.ok_or_else(elements_too_large)?, layout)
    }

    /// The tiling of an array in which every dimension without a bound, number `k`, has the extent `d<k>`, an `int64`.
    pub(super) fn of(array: &ArrayShape) -> Result<Self, LayoutError> {
        let extent = |(position, dimension): (usize, &Dimension)| match dimension.bound() {
            Some(bound) => constant(bound, ScalarType::Int64),
            None => Expr::from(Var::new(format!("d{position}"), ScalarType::Int64)),
        };
        let extents: Vec<Expr> = array.dimensions().iter().enumerate().map(extent).collect();
        Self::new(&array.layout_or_default(), &extents)
    }

    /// With known extents, whose sizes fit.
    pub(super) fn known(ty: ScalarType, shape: &[u64], order: &Layout) -> Result<Self, LayoutError> {
        let sizes: Vec<Size> = shape.iter().map(|&extent| Size::known(extent)).collect();
        Self::build(ty, &sizes, order)
    }

    fn build(ty: ScalarType, extents: &[Size], layout: &Layout) -> Result<Self, LayoutError> {
        let vars: Vec<Var> = (0..extents.len()).map(|axis| Var::new(format!("i{axis}"), ty)).collect();
        let major_to_minor = || layout.minor_to_major.iter().rev().copied();
        let mut physical: Vec<Size> = major_to_minor().map(|dimension| extents[dimension].clone()).collect();
        let mut index: Vec<Index> = major_to_minor().map(|axis| Index(Expr::from(&vars[axis]), ty)).collect();
        for (position, tile) in layout.tiles.iter().enumerate() {
            (index, physical) = Self::step(tile, index, &physical, ty).ok_or_else(elements_too_large)?;
            let mut parts = 0usize;
            for Index(index, _) in &index {
                index.walk(&mut |_| parts += 1);
            }
            if parts > MAX_PARTS {
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

    fn step(tile: &Tile, index: Vec<Index>, before: &[Size], ty: ScalarType) -> Option<(Vec<Index>, Vec<Size>)> {
        let (step, after) = Step::new(tile, before)?;
        Some((step.apply(index, &Index(constant(0, ty), ty)), after))
    }

    /// The type of the indices.
    pub fn index_type(&self) -> ScalarType {
        self.ty
    }

    /// The logical extents.
    pub fn domain(&self) -> &[Expr] {
        &self.domain
    }

    /// The extents after the last tile, from major to minor.
    pub fn physical_shape(&self) -> &[Expr] {
        &self.shape
    }

    /// Logical elements.
    pub fn elements(&self) -> &Expr {
        &self.elements
    }

    /// Elements that memory is allocated for: the product of [`SymbolicTiling::physical_shape`], rounded up to the tail
    /// alignment.
    pub fn physical_elements(&self) -> &Expr {
        &self.physical_elements
    }

    /// Allocated bytes where elements are `element_bits` apart, without a metadata prefix.
    pub fn bytes(&self, element_bits: u64) -> Expr {
        let bits = self.allocated.times(element_bits).and_then(|bits| bits.tiles(8)).map(|bytes| bytes.expr(self.ty));
        bits.unwrap_or_else(|| {
            let bits = self.physical_elements.clone() * constant(element_bits, self.ty);
            (bits + constant(7, self.ty)).floor_div(constant(8, self.ty))
        })
    }

    /// The map from the logical index to the physical one, an output for each of [`SymbolicTiling::physical_shape`].
    ///
    /// # Errors
    /// None that a tiling can have.
    pub fn to_tiled_map(&self) -> Result<IndexMap, LayoutError> {
        map(self.vars.clone(), self.domain.clone(), self.index.clone())
    }

    /// The map from the logical index to the position in memory, its only output.
    ///
    /// # Errors
    /// As [`SymbolicTiling::to_tiled_map`].
    pub fn to_flat_map(&self) -> Result<IndexMap, LayoutError> {
        let term = |(axis, index): (usize, &Expr)| {
            let stride = Size::product(&self.physical[axis + 1..]).filter(|_| index.as_const_int() != Some(0))?;
            Some(match stride.known_value() {
                Some(1) => index.clone(),
                _ => index.clone() * stride.expr(self.ty),
            })
        };
        let sum = self.index.iter().enumerate().filter_map(term).reduce(|sum, term| sum + term);
        let sum = sum.unwrap_or_else(|| constant(0, self.ty));
        map(self.vars.clone(), self.domain.clone(), vec![sum])
    }
}

fn elements_too_large() -> LayoutError {
    too_large(Place::Whole, "the number of elements")
}

/// Tiles with `*` can double the indices again and again.
fn too_long(tile: usize) -> LayoutError {
    let message = "the indices of this layout are too long: its tiles combine dimensions again and again".to_owned();
    LayoutError { place: Place::Tile(tile, None), code: "layout", message, help: "use fewer tiles with `*`" }
}

/// The tiling where every symbolic extent is 1, which has to be possible.
fn smallest(layout: &Layout, extents: &[Expr]) -> Result<Tiling, LayoutError> {
    let smallest = |extent: &Expr| match extent.as_const_int() {
        Some(value) => u64::try_from(value).map_err(|_| wrong_extent(format!("extent {value} is negative"))),
        None => Ok(1),
    };
    let dimensions = extents.iter().map(|extent| smallest(extent).map(Dimension::Static));
    let dimensions = dimensions.collect::<Result<Vec<_>, _>>()?;
    // Neither decides where an element lies.
    let layout = Layout { split_configs: Vec::new(), element_bits: 0, ..layout.clone() };
    ArrayShape::new(ElementType::U8, dimensions, Some(layout))?.tiling()
}

fn map(vars: Vec<Var>, domain: Vec<Expr>, outputs: Vec<Expr>) -> Result<IndexMap, LayoutError> {
    let fault = |error: crate::index_map::IndexMapError| LayoutError {
        place: Place::Whole,
        code: "index-map",
        message: error.to_string(),
        help: "this is a fault of Tilewright",
    };
    IndexMap::new(vars, domain, outputs, Vec::new()).map_err(fault)
}

fn wrong_extent(message: String) -> LayoutError {
    let help = "extents are positive integers of one type";
    LayoutError { place: Place::Dimensions, code: "extent", message, help }
}
