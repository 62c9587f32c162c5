//! Textures: buffers whose axes are the rows, the columns and the channels of a 2-d image.
//!
//! A buffer in a texture scope has the shape `[.., 4]`, or `[.., 2]` or `[.., 1]` for images of fewer channels, which not every
//! device has; its last axis is the channel of a texel. Axis separators in front
//! of the columns and of the channel divide the axes into groups (RFC 39), and each group is linearized in row-major
//! order. A scope implies separators (texture RFC, "Texture Layout"):
//!
//! | scope | rows | columns | separators of rank `r` |
//! |---|---|---|---|
//! | `texture` (C0) | all but the last two | the last but one | `[r - 2, r - 1]` |
//! | `texture:weight` (C1) | the first | the others | `[1, r - 1]` |
//! | `texture:nhwc` | the first two | the others | `[2, r - 1]` |
//!
//! A *texel buffer* has exactly the three axes `[height, width, 4]`, or 2 or 1 channels. Its accesses are the builtins of the
//! RFC: a load at `[row, column, ramp(0, 1, 4)]` is `texture2d_load`, a load at `[row, column, lane]` extracts one channel of it,
//! and a store at `[row, column, ramp(0, 1, 4)]` is `texture2d_store`. The index of a whole texel has as many lanes as there
//! are channels; of a single channel it is the constant 0.

use std::fmt;
use std::str::FromStr;

use crate::buffer::{AxisSeparators, Buffer, Scope};
use crate::diag::Diagnostic;
use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::shared::SharedExpr;

/// The number of channels of a texel that every device with images has: red, green, blue and alpha.
pub const CHANNELS: u16 = 4;

/// Returns the number of channels that a last axis of a constant extent stands for: 1, 2 or 4; `None` for others, which no
/// format of images has.
pub fn channel_count(extent: &Expr) -> Option<u16> {
    match extent.as_const_int() {
        Some(1) => Some(1),
        Some(2) => Some(2),
        Some(4) => Some(CHANNELS),
        Some(_) | None => None,
    }
}

/// The largest texture that a device supports, in texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureLimits {
    /// The maximum number of texels per row.
    pub width: u64,
    /// The maximum number of rows.
    pub height: u64,
}

impl TextureLimits {
    /// The limits that OpenCL 1.2 guarantees for every device with images (`CL_DEVICE_IMAGE2D_MAX_WIDTH`, full
    /// profile).
    pub const PROMISED: Self = Self { width: 8192, height: 8192 };
}

impl fmt::Display for TextureLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The error for text that does not state texture limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a texture size: expected WIDTHxHEIGHT in texels, each from 1 to 2147483647, such as 16384x16384")]
pub struct TextureLimitsError(pub String);

impl FromStr for TextureLimits {
    type Err = TextureLimitsError;

    /// Reads `WIDTHxHEIGHT`, both decimal numbers from 1 to 2^31 - 1.
    ///
    /// # Errors
    /// The text has another form, or a number is out of range.
    fn from_str(text: &str) -> Result<Self, TextureLimitsError> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|extent| digits && (1..=u64::from(i32::MAX.unsigned_abs())).contains(extent))
        };
        let extents = text.split_once('x').and_then(|(width, height)| Some((number(width)?, number(height)?)));
        extents.map(|(width, height)| Self { width, height }).ok_or_else(|| TextureLimitsError(text.to_owned()))
    }
}

/// Returns whether a texel can have channels of a type. The OpenCL image formats store floats of 16 and 32 bits
/// and integers of 8, 16 and 32 bits.
pub fn is_channel_type(ty: ScalarType) -> bool {
    match ty {
        ScalarType::Float16
        | ScalarType::Float32
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32 => true,
        ScalarType::Bool
        | ScalarType::Int64
        | ScalarType::UInt64
        | ScalarType::Float64
        | ScalarType::BFloat16
        | ScalarType::Handle => false,
    }
}

impl Buffer {
    /// Returns whether the buffer is `[height, width, channels]` in a texture scope, with 1, 2 or 4 channels, a separator
    /// between all axes, a channel type as its element type, and neither strides nor an element offset.
    pub fn is_texel_buffer(&self) -> bool {
        self.scope.is_texture()
            && self.rank() == 3
            && self.axis_separators.is_flat()
            && channel_count(&self.shape[2]).is_some()
            && self.strides.is_none()
            && self.elem_offset.as_const_int() == Some(0)
            && self.dtype.is_scalar()
            && is_channel_type(self.dtype.scalar)
    }

    /// Returns the number of channels of a texel, for a buffer whose last axis is the channel of a texture.
    pub fn channels(&self) -> Option<u16> {
        self.shape.last().filter(|_| self.scope.is_texture()).and_then(channel_count)
    }

    /// Returns the separators that divide a buffer in a texture scope into rows, columns and channels: its own, or
    /// those that the scope implies.
    ///
    /// # Errors
    /// The buffer is not a texture. The codes are `texture-scope`, `texture-rank`, `texture-channels`,
    /// `texture-type`, `texture-strides` and `texture-separators`.
    pub fn texture_separators(&self) -> Result<AxisSeparators, Diagnostic> {
        self.texture_error().map_or(Ok(()), Err)?;
        let rank = self.rank();
        let own = self.axis_separators.positions();
        let columns = match (self.scope, own) {
            (Scope::Texture, []) => rank - 2,
            (Scope::Texture, [columns]) if *columns < rank - 1 => *columns,
            (Scope::Texture, [columns, channel]) if *channel == rank - 1 => *columns,
            (Scope::TextureWeight, _) => 1,
            (Scope::TextureNhwc, _) => 2,
            (Scope::Texture | Scope::Global | Scope::Shared | Scope::Local, _) => {
                return Err(self.separators_error(
                    "write one separator before the columns, and optionally one before the channel",
                ));
            }
        };
        if !(own.is_empty() || own == [columns] || own == [columns, rank - 1]) {
            let help =
                format!("scope `{}` has its columns after axis {columns}; scope `texture` takes any", self.scope);
            return Err(self.separators_error(&help));
        }
        AxisSeparators::new(vec![columns, rank - 1], rank).map_err(|error| self.separators_error(&error.to_string()))
    }

    /// Creates the error for separators that contradict the scope.
    fn separators_error(&self, help: &str) -> Diagnostic {
        let positions = self.axis_separators.positions();
        let message = format!("axis separators {positions:?} of texture `{self}` do not cut it into rows and columns");
        Diagnostic::error("texture-separators", self.span, message).with_help(help)
    }

    /// Returns the reason why the buffer is not a texture, or `None`. The separators are not checked.
    fn texture_error(&self) -> Option<Diagnostic> {
        let error =
            |code, message: String, help: &str| Some(Diagnostic::error(code, self.span, message).with_help(help));
        let (scope, rank) = (self.scope, self.rank());
        // One axis each for rows, columns and channels; `texture:nhwc` has two axes of rows. The channels below need this
        // check.
        let least = if scope == Scope::TextureNhwc { 4 } else { 3 };
        if !scope.is_texture() {
            return error(
                "texture-scope",
                format!("`{self}` is in scope `{scope}`"),
                "textures are in scope `texture`",
            );
        }
        if rank < least {
            let message = format!("`{self}` in scope `{scope}` has {rank} axes, a texture there has at least {least}");
            return error("texture-rank", message, "rows, columns and a last axis of 1, 2 or 4 channels");
        }
        if !self.dtype.is_scalar() || !is_channel_type(self.dtype.scalar) {
            let message = format!("texture `{self}` holds {}, which no channel of an image does", self.dtype);
            let help = "float16, float32 and signed or unsigned integers of 8, 16 or 32 bits are possible";
            return error("texture-type", message, help);
        }
        let channels = &self.shape[rank - 1];
        if channel_count(channels).is_none() {
            let message =
                format!("the last axis of texture `{self}` has the extent {channels}; a texel has 1, 2 or 4 channels");
            return error(
                "texture-channels",
                message,
                "pack it first, for example with lambda n, h, w, c: [n, c//4, h, w, c%4]",
            );
        }
        if self.strides.is_some() || self.elem_offset.as_const_int() != Some(0) {
            let message = format!("texture `{self}` has strides or an element offset");
            return error("texture-strides", message, "texels have no address: leave strides and elem_offset out");
        }
        None
    }
}

/// Returns whether an index selects all channels of a texel that has so many: the ramp from 0 with stride 1 and a lane for each
/// channel, or the constant 0 for a single channel.
pub fn is_whole_texel(index: &Expr, channels: u16) -> bool {
    let is = |expr: &Expr, value| expr.as_const_int() == Some(value);
    if channels == 1 {
        return index.dtype().is_scalar() && is(index, 0);
    }
    matches!(index, Expr::Ramp { base, stride, lanes } if is(base, 0) && is(stride, 1) && *lanes == channels)
}

/// Returns the index of all channels of a texel that has so many.
pub fn whole_texel(channels: u16) -> Expr {
    if channels == 1 {
        return Expr::int(0);
    }
    Expr::Ramp { base: SharedExpr::new(Expr::int(0)), stride: SharedExpr::new(Expr::int(1)), lanes: channels }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texture(scope: Scope, extents: &[i64], separators: &[usize]) -> Buffer {
        Buffer::compact("T", ScalarType::Float16, extents.iter().copied().map(Expr::int).collect()).with(|info| {
            info.scope = scope;
            info.axis_separators = AxisSeparators::new(separators.to_vec(), extents.len()).unwrap();
        })
    }

    fn separators_or_code(scope: Scope, extents: &[i64], separators: &[usize]) -> Result<Vec<usize>, &'static str> {
        let found = texture(scope, extents, separators).texture_separators();
        found.map(|separators| separators.positions().to_vec()).map_err(|error| error.code)
    }

    #[test]
    fn a_texture_scope_implies_its_separators() {
        let shape = [2, 3, 5, 7, 4];
        assert_eq!(separators_or_code(Scope::Texture, &shape, &[]), Ok(vec![3, 4]));
        assert_eq!(separators_or_code(Scope::TextureWeight, &shape, &[]), Ok(vec![1, 4]));
        assert_eq!(separators_or_code(Scope::TextureNhwc, &shape, &[]), Ok(vec![2, 4]));
        assert_eq!(separators_or_code(Scope::Texture, &shape, &[2]), Ok(vec![2, 4]));
        assert_eq!(separators_or_code(Scope::Texture, &shape, &[1, 4]), Ok(vec![1, 4]));
        assert_eq!(separators_or_code(Scope::TextureWeight, &shape, &[1]), Ok(vec![1, 4]));
        assert_eq!(separators_or_code(Scope::Texture, &[6, 7, 4], &[]), Ok(vec![1, 2]));
    }

    #[test]
    fn a_texel_has_one_two_or_four_channels() {
        for channels in 1..=8 {
            let extents = [5, 7, channels];
            let expected = if [1, 2, 4].contains(&channels) { Ok(vec![1, 2]) } else { Err("texture-channels") };
            assert_eq!(separators_or_code(Scope::Texture, &extents, &[]), expected, "{channels}");
            assert_eq!(texture(Scope::Texture, &extents, &[1, 2]).is_texel_buffer(), expected.is_ok(), "{channels}");
        }
        for channels in [1, 2, CHANNELS] {
            for index in [1, 2, 3, CHANNELS] {
                assert_eq!(is_whole_texel(&whole_texel(index), channels), index == channels, "{index} of {channels}");
            }
        }
        assert!(!is_whole_texel(&Expr::int(1), 1));
    }

    #[test]
    fn a_buffer_that_does_not_fit_its_texture_scope_is_an_error() {
        assert_eq!(separators_or_code(Scope::Global, &[2, 3, 4], &[]), Err("texture-scope"));
        assert_eq!(separators_or_code(Scope::Texture, &[3, 4], &[]), Err("texture-rank"));
        assert_eq!(separators_or_code(Scope::TextureNhwc, &[2, 3, 4], &[]), Err("texture-rank"));
        assert_eq!(separators_or_code(Scope::Texture, &[2, 3, 5], &[]), Err("texture-channels"));
        assert_eq!(separators_or_code(Scope::Texture, &[2, 3, 5, 4], &[3]), Err("texture-separators"));
        assert_eq!(separators_or_code(Scope::Texture, &[2, 3, 5, 4], &[1, 2]), Err("texture-separators"));
        assert_eq!(separators_or_code(Scope::TextureWeight, &[2, 3, 5, 4], &[2]), Err("texture-separators"));
        let wide = texture(Scope::Texture, &[2, 3, 4], &[]).with(|info| info.dtype = ScalarType::Float64.into());
        assert_eq!(wide.texture_separators().map_err(|error| error.code), Err("texture-type"));
        let moved = texture(Scope::Texture, &[2, 3, 4], &[]).with(|info| info.elem_offset = Expr::int(4));
        assert_eq!(moved.texture_separators().map_err(|error| error.code), Err("texture-strides"));
    }

    #[test]
    fn malformed_limits_are_errors() {
        assert_eq!("16384x8192".parse(), Ok(TextureLimits { width: 16384, height: 8192 }));
        for wrong in ["", "16384", "0x4", "4x-1", "+4x4", "4x4x4", "4 x 4", "99999999999999999999x1"] {
            assert!(wrong.parse::<TextureLimits>().is_err(), "{wrong}");
        }
    }
}
