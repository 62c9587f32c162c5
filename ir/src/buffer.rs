//! Buffers: what a block of memory holds and how it is indexed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use crate::diag::Span;
use crate::dtype::DataType;
use crate::expr::Expr;
use crate::var::{Var, fresh_id};

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// Device memory that every thread sees; the parameters of a function.
    #[default]
    Global,
    /// Memory of one work-group.
    Shared,
    /// Memory of one thread.
    Local,
    /// 2-d texture, activations: all axes but the last two are rows (texture RFC, convention C0).
    Texture,
    /// 2-d texture, weights: the first axis is the row (texture RFC, convention C1).
    TextureWeight,
    /// 2-d texture: the first two axes are rows.
    TextureNhwc,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Global, Self::Shared, Self::Local, Self::Texture, Self::TextureWeight, Self::TextureNhwc];

    /// The name printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Texture => "texture",
            Self::TextureWeight => "texture:weight",
            Self::TextureNhwc => "texture:nhwc",
        }
    }

    /// One of the texture scopes.
    pub fn is_texture(self) -> bool {
        matches!(self, Self::Texture | Self::TextureWeight | Self::TextureNhwc)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that names no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no storage scope: expected global, shared, local, texture, texture:weight or texture:nhwc")]
pub struct ScopeError(pub String);

impl FromStr for Scope {
    type Err = ScopeError;

    /// Reads the names of [`Scope::name`] and TVM's spellings (`global.texture-weight`); empty is `global`.
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let plain = text.strip_prefix("global.").unwrap_or(text).replace('-', ":");
        if text.is_empty() {
            return Ok(Self::Global);
        }
        Self::ALL.into_iter().find(|scope| scope.name() == plain).ok_or_else(|| ScopeError(text.to_owned()))
    }
}

/// Where the axes of a layout are cut into groups, each of which becomes one physical axis.
///
/// A position is the number of axes before the separator (as every TVM release stores it; the text of RFC 39 counts
/// from the last axis of the group, one less): strictly increasing, from 1 to `rank - 1`.
///
/// ```
/// use tilewright_ir::AxisSeparators;
/// let separators = AxisSeparators::new(vec![3], 5)?;
/// assert_eq!(separators.groups(), [0..3, 3..5]);
/// assert_eq!(separators.flattened().positions(), [1]);
/// assert!(AxisSeparators::new(vec![0], 5).is_err());
/// assert!(AxisSeparators::new(vec![5], 5).is_err());
/// assert!(AxisSeparators::new(vec![2, 2], 5).is_err());
/// # Ok::<(), tilewright_ir::SeparatorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisSeparators {
    positions: Vec<usize>,
    rank: usize,
}

/// Positions that are no axis separators of a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "axis separators {positions:?} do not fit a layout of rank {rank}: they must increase strictly, from 1 to rank - 1"
)]
pub struct SeparatorError {
    /// What was given.
    pub positions: Vec<usize>,
    /// Rank of the layout.
    pub rank: usize,
}

impl AxisSeparators {
    /// Separators of a layout of rank `rank`.
    pub fn new(positions: Vec<usize>, rank: usize) -> Result<Self, SeparatorError> {
        let inside = positions.iter().all(|&position| (1..rank).contains(&position));
        let increasing = positions.windows(2).all(|pair| pair[0] < pair[1]);
        if inside && increasing { Ok(Self { positions, rank }) } else { Err(SeparatorError { positions, rank }) }
    }

    /// No separators: a layout of rank `rank` that flattens to one axis.
    pub fn none(rank: usize) -> Self {
        Self { positions: Vec::new(), rank }
    }

    /// The positions, increasing.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Rank of the layout that they separate.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// No separator at all.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The groups of axes, in order; one more than there are separators, each not empty unless the rank is 0.
    pub fn groups(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.positions.iter().copied());
        let ends = self.positions.iter().copied().chain(std::iter::once(self.rank));
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// The separators of the flattened layout: between all its axes (RFC 39: `range(N-1)`, counted its way).
    #[must_use]
    pub fn flattened(&self) -> Self {
        let rank = self.positions.len() + 1;
        Self { positions: (1..rank).collect(), rank }
    }

    /// Whether flattening changes nothing, because every group is one axis already.
    pub fn is_flat(&self) -> bool {
        self.rank == self.positions.len() + 1
    }
}

/// Everything a buffer consists of; [`Buffer::new`] makes one of it.
#[derive(Clone, Debug)]
pub struct BufferInfo {
    /// The name to print; not necessarily unique.
    pub name: String,
    /// Type of an element, vector types included: `A[i]` has it.
    pub dtype: DataType,
    /// Extents in elements, one an axis; empty for a single element.
    pub shape: Vec<Expr>,
    /// Distance in elements between neighbours along each axis; none means row-major and compact.
    pub strides: Option<Vec<Expr>>,
    /// Position of the first element in the allocation, in elements.
    pub elem_offset: Expr,
    /// Groups of axes for flattening. Until a function's `layout_transform_map` is applied they belong to the layout
    /// that it leads to, whose rank may differ from the shape's (RFC 39, "Examples").
    pub axis_separators: AxisSeparators,
    /// Where it lives.
    pub scope: Scope,
    /// The allocation, shared by all aliases.
    pub data: Var,
    /// Where it was written.
    pub span: Option<Span>,
}

/// A typed, shaped view of an allocation (RFC 63, "What's a buffer?").
///
/// Two buffers are the same only if they are clones of each other. Buffers with the same `data` are aliases.
#[derive(Clone)]
pub struct Buffer(Arc<(u64, BufferInfo)>);

impl Buffer {
    /// A new buffer, different from every other.
    pub fn new(info: BufferInfo) -> Self {
        Self(Arc::new((fresh_id(), info)))
    }

    /// A new global, compact buffer with a data variable of its own, and no separators.
    pub fn compact(name: impl Into<String>, dtype: impl Into<DataType>, shape: Vec<Expr>) -> Self {
        let name = name.into();
        let data = Var::new(name.clone(), DataType::HANDLE);
        Self::new(BufferInfo {
            name,
            dtype: dtype.into(),
            axis_separators: AxisSeparators::none(shape.len()),
            shape,
            strides: None,
            elem_offset: Expr::int(0),
            scope: Scope::Global,
            data,
            span: None,
        })
    }

    /// A new buffer that differs from this one in what `change` does.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut BufferInfo)) -> Self {
        let mut info = self.info().clone();
        change(&mut info);
        Self::new(info)
    }

    /// All its parts.
    pub fn info(&self) -> &BufferInfo {
        &self.0.1
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The extents, if all are constants.
    pub fn const_shape(&self) -> Option<Vec<i128>> {
        self.shape.iter().map(Expr::as_const_int).collect()
    }

    /// Whether both view the same allocation.
    pub fn aliases(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl std::ops::Deref for Buffer {
    type Target = BufferInfo;

    fn deref(&self) -> &BufferInfo {
        self.info()
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl Eq for Buffer {}

impl Hash for Buffer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.hash(state);
    }
}

impl PartialOrd for Buffer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Buffer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.0.cmp(&other.0.0)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.0.0)
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The most elements that a buffer of a symbolic shape may have when a program is launched.
///
/// Index arithmetic is in `int32`; the 2^16 below its end are room for rounding an extent up to a tile, `(c + 3) // 4`.
/// Whoever launches a program checks it; the judge may assume it.
pub const MAX_SYMBOLIC_ELEMENTS: u64 = (1 << 31) - 1 - (1 << 16);

/// Product of extents, in elements.
///
/// # Errors
/// An extent is negative, or the product is above 2^63 - 1.
pub fn checked_size(extents: &[i128]) -> Result<u64, SizeError> {
    let mut size: i128 = 1;
    for &extent in extents {
        if extent < 0 {
            return Err(SizeError::Negative(extent));
        }
        // A zero extent makes the product zero, whatever overflows beside it.
        size = if extents.contains(&0) { 0 } else { size.checked_mul(extent).ok_or(SizeError::Overflow)? };
        if size > i128::from(i64::MAX) {
            return Err(SizeError::Overflow);
        }
    }
    u64::try_from(size).map_err(|_| SizeError::Overflow)
}

/// Extents that are no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// An extent is below 0.
    #[error("extent {0} is negative")]
    Negative(i128),
    /// More than 2^63 - 1 elements.
    #[error("the number of elements is above 2^63 - 1")]
    Overflow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_in_both_spellings() {
        assert_eq!("global.texture-weight".parse(), Ok(Scope::TextureWeight));
        assert_eq!("texture:nhwc".parse(), Ok(Scope::TextureNhwc));
        assert_eq!("global".parse(), Ok(Scope::Global));
        assert!("vtcm".parse::<Scope>().is_err());
    }

    #[test]
    fn hostile_sizes_are_errors() {
        assert_eq!(checked_size(&[3, 5]), Ok(15));
        assert_eq!(checked_size(&[]), Ok(1));
        assert_eq!(checked_size(&[i128::from(i64::MAX), 2]), Err(SizeError::Overflow));
        assert_eq!(checked_size(&[1 << 100, 0]), Ok(0));
        assert_eq!(checked_size(&[3, -1]), Err(SizeError::Negative(-1)));
    }

    #[test]
    fn separators_of_rank_zero_and_one_are_empty() {
        assert_eq!(AxisSeparators::none(0).groups(), std::iter::once(0..0).collect::<Vec<_>>());
        assert!(AxisSeparators::none(1).is_flat());
        assert!(AxisSeparators::new(vec![1], 1).is_err());
    }
}
