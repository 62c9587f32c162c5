//! Buffers, their storage scopes and their axis separators.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use crate::diag::Span;
use crate::dtype::DataType;
use crate::eval::Bindings;
use crate::expr::Expr;
use crate::var::{Var, fresh_id};

/// The kind of memory that holds a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// Device memory that all threads share. The parameters of a function are in this scope.
    #[default]
    Global,
    /// Memory that the threads of one work-group share.
    Shared,
    /// Memory of one thread.
    Local,
    /// A 2-d texture for activations: all axes but the last two are rows (texture RFC, convention C0).
    Texture,
    /// A 2-d texture for weights: the first axis is the row (texture RFC, convention C1).
    TextureWeight,
    /// A 2-d texture whose rows are the first two axes.
    TextureNhwc,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] =
        [Self::Global, Self::Shared, Self::Local, Self::Texture, Self::TextureWeight, Self::TextureNhwc];

    /// Returns the name for printing.
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

    /// Returns whether buffers in this scope are 2-d textures.
    pub fn is_texture(self) -> bool {
        match self {
            Self::Texture | Self::TextureWeight | Self::TextureNhwc => true,
            Self::Global | Self::Shared | Self::Local => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for text that does not name a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a storage scope: expected global, shared, local, texture, texture:weight or texture:nhwc")]
pub struct ScopeError(pub String);

impl FromStr for Scope {
    type Err = ScopeError;

    /// Reads the names of [`Scope::name`] and TVM's spellings, such as `global.texture-weight`. Empty text is
    /// `global`.
    ///
    /// # Errors
    /// The scope is unknown.
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let name = text.strip_prefix("global.").unwrap_or(text).replace('-', ":");
        if text.is_empty() {
            return Ok(Self::Global);
        }
        Self::ALL.into_iter().find(|scope| scope.name() == name).ok_or_else(|| ScopeError(text.to_owned()))
    }
}

/// The positions that divide the axes of a layout into groups. Flattening linearizes each group into one physical axis.
///
/// A position is the number of axes before the separator. Positions increase strictly and range from 1 to `rank - 1`.
/// Every TVM release stores them like this; the text of RFC 39 gives the last axis of the group instead, which is one
/// less.
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

/// The error for positions that are not axis separators of a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "axis separators {positions:?} do not fit a layout of rank {rank}: they must increase strictly, from 1 to rank - 1"
)]
pub struct SeparatorError {
    /// The positions given.
    pub positions: Vec<usize>,
    /// The rank of the layout.
    pub rank: usize,
}

impl AxisSeparators {
    /// Creates the separators of a layout of rank `rank`.
    ///
    /// # Errors
    /// The positions do not increase strictly, or one of them is outside `1..rank`.
    pub fn new(positions: Vec<usize>, rank: usize) -> Result<Self, SeparatorError> {
        let inside = positions.iter().all(|&position| (1..rank).contains(&position));
        let increasing = positions.windows(2).all(|pair| pair[0] < pair[1]);
        if inside && increasing { Ok(Self { positions, rank }) } else { Err(SeparatorError { positions, rank }) }
    }

    /// Creates an empty list of separators: a layout of rank `rank` that flattens to one axis.
    pub fn none(rank: usize) -> Self {
        Self { positions: Vec::new(), rank }
    }

    /// Returns the positions, in increasing order.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Returns the rank of the layout.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns whether there is no separator.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the groups of axes in order, one more than there are separators. No group is empty unless the rank is
    /// 0.
    pub fn groups(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.positions.iter().copied());
        let ends = self.positions.iter().copied().chain(std::iter::once(self.rank));
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Returns the separators of the flattened layout, one between each two axes (RFC 39: `range(N-1)` in its way of
    /// counting).
    #[must_use]
    pub fn flattened(&self) -> Self {
        let rank = self.positions.len() + 1;
        Self { positions: (1..rank).collect(), rank }
    }

    /// Returns whether flattening has no effect because every group has one axis already.
    pub fn is_flat(&self) -> bool {
        self.rank == self.positions.len() + 1
    }
}

/// The properties of a buffer; [`Buffer::new`] creates a buffer from them.
#[derive(Clone, Debug)]
pub struct BufferInfo {
    /// The name for printing. Another buffer may have the same name.
    pub name: String,
    /// The type of `A[i]`, which may be a vector type.
    pub dtype: DataType,
    /// The extents in elements, one per axis. Empty for a single element.
    pub shape: Vec<Expr>,
    /// The distance in elements between neighbours along each axis. `None` means row-major and compact.
    pub strides: Option<Vec<Expr>>,
    /// The position of the first element in the allocation, in elements.
    pub elem_offset: Expr,
    /// The groups of axes for flattening. They refer to the layout after all transformations in the function's
    /// `layout_transform_map`, whose rank may differ from that of the shape (RFC 39, "Examples").
    pub axis_separators: AxisSeparators,
    /// The kind of memory.
    pub scope: Scope,
    /// The data variable of the allocation, shared by all aliases.
    pub data: Var,
    /// The source location of the declaration.
    pub span: Option<Span>,
}

/// A typed view of an allocation, with a shape (RFC 63, "What's a buffer?").
///
/// Two buffers are equal only if one is a clone of the other. Buffers with the same `data` are aliases.
#[derive(Clone)]
pub struct Buffer(Arc<(u64, BufferInfo)>);

impl Buffer {
    /// Creates a buffer that differs from every other one.
    pub fn new(info: BufferInfo) -> Self {
        Self(Arc::new((fresh_id(), info)))
    }

    /// Creates a compact buffer in global memory with its own data variable and without separators.
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

    /// Returns a new buffer with the properties of this one after `change` has modified them.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut BufferInfo)) -> Self {
        let mut info = self.info().clone();
        change(&mut info);
        Self::new(info)
    }

    /// Returns all properties.
    pub fn info(&self) -> &BufferInfo {
        &self.0.1
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the extents if all of them are constants, or made of constants alone (`56 + 2`).
    pub fn const_shape(&self) -> Option<Vec<i128>> {
        self.shape.iter().map(|extent| extent.eval_index(&Bindings::default()).ok()).collect()
    }

    /// Returns whether both buffers are views of the same allocation.
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

/// The largest number of elements of a buffer with a symbolic shape in a launched program.
///
/// Index arithmetic uses `int32`. The 2^16 values below its maximum are reserved for rounding an extent up to a tile,
/// as in `(c + 3) // 4`. The launcher checks this bound, so the judge may assume it.
pub const MAX_SYMBOLIC_ELEMENTS: u64 = (1 << 31) - 1 - (1 << 16);

/// Returns the product of extents, in elements. An extent of 0 makes it 0 even if the product of the others
/// overflows.
///
/// # Errors
/// An extent is negative, or the product exceeds 2^63 - 1.
pub fn checked_size(extents: &[i128]) -> Result<u64, SizeError> {
    let mut size: i128 = 1;
    for &extent in extents {
        if extent < 0 {
            return Err(SizeError::Negative(extent));
        }
        // With a zero extent the product is 0 from the start, so the other extents cannot overflow it.
        size = if extents.contains(&0) { 0 } else { size.checked_mul(extent).ok_or(SizeError::Overflow)? };
        if size > i128::from(i64::MAX) {
            return Err(SizeError::Overflow);
        }
    }
    u64::try_from(size).map_err(|_| SizeError::Overflow)
}

/// The error for extents whose product is not a valid size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// An extent is negative.
    #[error("extent {0} is negative")]
    Negative(i128),
    /// The product exceeds 2^63 - 1 elements.
    #[error("the number of elements is above 2^63 - 1")]
    Overflow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_scope_are_read() {
        assert_eq!("global.texture-weight".parse(), Ok(Scope::TextureWeight));
        assert_eq!("texture:nhwc".parse(), Ok(Scope::TextureNhwc));
        assert_eq!("global".parse(), Ok(Scope::Global));
        assert!("vtcm".parse::<Scope>().is_err());
    }

    #[test]
    fn negative_and_overflowing_sizes_are_errors() {
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
