//! Textures: which axes of a buffer are the rows, the columns and the four channels of a 2-d image.
//!
//! A buffer in a texture scope is `[.., 4]`; its last axis is the channel of a texel. The axes before are cut into rows
//! and columns, and each group is the row-major numeral of its axes: axis separators in front of the column and of the
//! channel (RFC 39). The scopes are short for separators (texture RFC, "Texture Layout"):
//!
//! | scope | rows | columns | separators of rank `r` |
//! |---|---|---|---|
//! | `texture` (C0) | all but the last two | the last but one | `[r - 2, r - 1]` |
//! | `texture:weight` (C1) | the first | the others | `[1, r - 1]` |
//! | `texture:nhwc` | the first two | the others | `[2, r - 1]` |
//!
//! A *texel buffer* is one that has exactly these three axes, `[height, width, 4]`. Its accesses are the builtins of the
//! RFC: a load at `[row, column, ramp(0, 1, 4)]` is `texture2d_load`, one at `[row, column, lane]` picks a channel of
//! it, and a store at `[row, column, ramp(0, 1, 4)]` is `texture2d_store`.

use std::fmt;
use std::str::FromStr;

use crate::buffer::{AxisSeparators, Buffer, Scope};
use crate::diag::Diagnostic;
use crate::dtype::ScalarType;
use crate::expr::Expr;

/// Channels of a texel: red, green, blue, alpha.
pub const CHANNELS: u16 = 4;

/// The largest texture that a device has, in texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureLimits {
    /// Texels in a row, at most.
    pub width: u64,
    /// Rows, at most.
    pub height: u64,
}

impl TextureLimits {
    /// What OpenCL 1.2 promises of every device with images (`CL_DEVICE_IMAGE2D_MAX_WIDTH`, full profile).
    pub const PROMISED: Self = Self { width: 8192, height: 8192 };
}

impl fmt::Display for TextureLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Text that states no limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` are no texture limits: expected WIDTHxHEIGHT in texels, each from 1 to 2147483647, such as 16384x16384")]
pub struct TextureLimitsError(pub String);

impl FromStr for TextureLimits {
    type Err = TextureLimitsError;

    /// Reads `WIDTHxHEIGHT`.
    fn from_str(text: &str) -> Result<Self, TextureLimitsError> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|extent| digits && (1..=u64::from(i32::MAX.unsigned_abs())).contains(extent))
        };
        let extents = text.split_once('x').and_then(|(width, height)| Some((number(width)?, number(height)?)));
        extents.map(|(width, height)| Self { width, height }).ok_or_else(|| TextureLimitsError(text.to_owned()))
    }
}

/// Whether texels can have four channels of a type: floats of 16 and 32 bits, integers of 8, 16 and 32 bits.
pub fn is_channel_type(ty: ScalarType) -> bool {
    matches!(
        ty,
        ScalarType::Float16
            | ScalarType::Float32
            | ScalarType::Int8
            | ScalarType::Int16
            | ScalarType::Int32
            | ScalarType::UInt8
            | ScalarType::UInt16
            | ScalarType::UInt32
    )
}

impl Buffer {
    /// Whether it is `[height, width, 4]` in a texture scope, with a separator between all axes.
    pub fn is_texel_buffer(&self) -> bool {
        self.scope.is_texture()
            && self.rank() == 3
            && self.axis_separators.is_flat()
            && self.shape[2].as_const_int() == Some(CHANNELS.into())
            && self.strides.is_none()
            && self.elem_offset.as_const_int() == Some(0)
            && self.dtype.is_scalar()
            && is_channel_type(self.dtype.scalar)
    }

    /// The separators that cut a buffer in a texture scope into rows, columns and channels: its own, or those of its scope.
    ///
    /// # Errors
    /// It is no texture: `texture-scope`, `texture-rank`, `texture-channels`, `texture-type`, `texture-strides`,
    /// `texture-separators`.
    pub fn texture_separators(&self) -> Result<AxisSeparators, Diagnostic> {
        self.texture_fault().map_or(Ok(()), Err)?;
        let rank = self.rank();
        let own = self.axis_separators.positions();
        let columns = match (self.scope, own) {
            (Scope::Texture, []) => rank - 2,
            (Scope::Texture, [columns]) if *columns < rank - 1 => *columns,
            (Scope::Texture, [columns, channel]) if *channel == rank - 1 => *columns,
            (Scope::TextureWeight, _) => 1,
            (Scope::TextureNhwc, _) => 2,
            _ => {
                return Err(
                    self.separators_fault("one separator stands before the columns, and may stand before the channel")
                );
            }
        };
        if !(own.is_empty() || own == [columns] || own == [columns, rank - 1]) {
            let help =
                format!("scope `{}` has its columns after axis {columns}; scope `texture` takes any", self.scope);
            return Err(self.separators_fault(&help));
        }
        AxisSeparators::new(vec![columns, rank - 1], rank).map_err(|error| self.separators_fault(&error.to_string()))
    }

    fn separators_fault(&self, help: &str) -> Diagnostic {
        let positions = self.axis_separators.positions();
        let message = format!("axis separators {positions:?} of texture `{self}` do not cut it into rows and columns");
        Diagnostic::error("texture-separators", self.span, message).with_help(help)
    }

    /// Why it cannot be a texture, separators apart.
    fn texture_fault(&self) -> Option<Diagnostic> {
        let fault =
            |code, message: String, help: &str| Some(Diagnostic::error(code, self.span, message).with_help(help));
        let (scope, rank) = (self.scope, self.rank());
        let least = if scope == Scope::TextureNhwc { 4 } else { 3 };
        if !scope.is_texture() {
            return fault(
                "texture-scope",
                format!("`{self}` is in scope `{scope}`"),
                "textures are in scope `texture`",
            );
        }
        if rank < least {
            let message = format!("`{self}` in scope `{scope}` has {rank} axes, a texture there has at least {least}");
            return fault("texture-rank", message, "rows, columns and a last axis of 4 channels");
        }
        if !self.dtype.is_scalar() || !is_channel_type(self.dtype.scalar) {
            let message = format!("texture `{self}` holds {}, which no channel of an image does", self.dtype);
            let help = "float16, float32 and signed or unsigned integers of 8, 16 or 32 bits are possible";
            return fault("texture-type", message, help);
        }
        let channels = &self.shape[rank - 1];
        if channels.as_const_int() != Some(CHANNELS.into()) {
            let message =
                format!("the last axis of texture `{self}` has the extent {channels}; a texel has 4 channels");
            return fault(
                "texture-channels",
                message,
                "pack it first, for example with lambda n, h, w, c: [n, c//4, h, w, c%4]",
            );
        }
        if self.strides.is_some() || self.elem_offset.as_const_int() != Some(0) {
            let message = format!("texture `{self}` has strides or an element offset");
            return fault("texture-strides", message, "texels have no address: leave strides and elem_offset out");
        }
        None
    }
}

/// Whether an index picks all channels of a texel: the ramp from 0 in steps of 1.
pub fn is_whole_texel(index: &Expr) -> bool {
    let is = |expr: &Expr, value| expr.as_const_int() == Some(value);
    matches!(index, Expr::Ramp { base, stride, lanes } if is(base, 0) && is(stride, 1) && *lanes == CHANNELS)
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

    fn cut(scope: Scope, extents: &[i64], separators: &[usize]) -> Result<Vec<usize>, &'static str> {
        let found = texture(scope, extents, separators).texture_separators();
        found.map(|separators| separators.positions().to_vec()).map_err(|fault| fault.code)
    }

    #[test]
    fn scopes_are_short_for_separators() {
        let shape = [2, 3, 5, 7, 4];
        assert_eq!(cut(Scope::Texture, &shape, &[]), Ok(vec![3, 4]));
        assert_eq!(cut(Scope::TextureWeight, &shape, &[]), Ok(vec![1, 4]));
        assert_eq!(cut(Scope::TextureNhwc, &shape, &[]), Ok(vec![2, 4]));
        assert_eq!(cut(Scope::Texture, &shape, &[2]), Ok(vec![2, 4]));
        assert_eq!(cut(Scope::Texture, &shape, &[1, 4]), Ok(vec![1, 4]));
        assert_eq!(cut(Scope::TextureWeight, &shape, &[1]), Ok(vec![1, 4]));
        assert_eq!(cut(Scope::Texture, &[6, 7, 4], &[]), Ok(vec![1, 2]));
    }

    #[test]
    fn what_is_no_texture_is_an_error() {
        assert_eq!(cut(Scope::Global, &[2, 3, 4], &[]), Err("texture-scope"));
        assert_eq!(cut(Scope::Texture, &[3, 4], &[]), Err("texture-rank"));
        assert_eq!(cut(Scope::TextureNhwc, &[2, 3, 4], &[]), Err("texture-rank"));
        assert_eq!(cut(Scope::Texture, &[2, 3, 5], &[]), Err("texture-channels"));
        assert_eq!(cut(Scope::Texture, &[2, 3, 5, 4], &[3]), Err("texture-separators"));
        assert_eq!(cut(Scope::Texture, &[2, 3, 5, 4], &[1, 2]), Err("texture-separators"));
        assert_eq!(cut(Scope::TextureWeight, &[2, 3, 5, 4], &[2]), Err("texture-separators"));
        let wide = texture(Scope::Texture, &[2, 3, 4], &[]).with(|info| info.dtype = ScalarType::Float64.into());
        assert_eq!(wide.texture_separators().map_err(|fault| fault.code), Err("texture-type"));
        let moved = texture(Scope::Texture, &[2, 3, 4], &[]).with(|info| info.elem_offset = Expr::int(4));
        assert_eq!(moved.texture_separators().map_err(|fault| fault.code), Err("texture-strides"));
    }

    #[test]
    fn limits_are_read_strictly() {
        assert_eq!("16384x8192".parse(), Ok(TextureLimits { width: 16384, height: 8192 }));
        for wrong in ["", "16384", "0x4", "4x-1", "+4x4", "4x4x4", "4 x 4", "99999999999999999999x1"] {
            assert!(wrong.parse::<TextureLimits>().is_err(), "{wrong}");
        }
    }
}
