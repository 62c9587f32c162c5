//! Textures as images: texel buffers are images of one, two or four channels, read by texels or channels and written by whole texels.

use tilewright_device::{ChannelType, Channels, TexelFormat};
use tilewright_ir::sabotage;
use tilewright_ir::texture::is_whole_texel;
use tilewright_ir::{Buffer, CHANNELS, DataType, Diagnostic, Expr, ScalarType};

use super::checked::Access;
use super::code::Code;
use super::expr::lane_of;
use super::range::{Mode, constant};
use super::target::{ChannelKind, Dialect, Images, Refusal};
use super::writer::{Allocation, Writer};

/// Returns the channel type of an image that holds elements of a type; `None` if images have no such channels.
pub fn channel_type(ty: ScalarType) -> Option<ChannelType> {
    Some(match ty {
        ScalarType::Float32 => ChannelType::F32,
        ScalarType::Float16 => ChannelType::F16,
        ScalarType::Int8 => ChannelType::I8,
        ScalarType::Int16 => ChannelType::I16,
        ScalarType::Int32 => ChannelType::I32,
        ScalarType::UInt8 => ChannelType::U8,
        ScalarType::UInt16 => ChannelType::U16,
        ScalarType::UInt32 => ChannelType::U32,
        ScalarType::Bool
        | ScalarType::Int64
        | ScalarType::UInt64
        | ScalarType::BFloat16
        | ScalarType::Float64
        | ScalarType::Handle => return None,
    })
}

/// Returns the format of the image that holds a texel buffer; `None` for another buffer.
pub(super) fn texel_format(texels: &Buffer) -> Option<TexelFormat> {
    let channels = texels.channels().filter(|_| texels.is_texel_buffer()).and_then(Channels::from_count)?;
    Some(TexelFormat { channels, ty: channel_type(texels.dtype.scalar)? })
}

/// The position of a texel: its row and column in the buffer, and the image that holds it.
struct Texel {
    image: String,
    /// Where the texture begins in its image, if it is placed.
    origin: String,
    row: Code,
    column: Code,
    kind: ChannelKind,
    /// How the target accesses it.
    images: &'static dyn Images,
}

impl Writer {
    /// The image that holds a buffer, if one does.
    pub(crate) fn image(&self, buffer: &Buffer) -> Option<&Allocation> {
        self.allocations.get(&buffer.data).filter(|allocation| allocation.texels.is_some())
    }

    /// Notes an access to an image, which its parameter and the metadata need, and returns the position of the texel.
    ///
    /// # Errors
    /// Refuses a buffer that is not the texels of its image, and a kernel that both reads and writes one image.
    fn texel(&mut self, buffer: &Buffer, indices: &[Expr], write: bool) -> Result<Texel, Diagnostic> {
        let (Some(Allocation { name, origin, texels: Some(texels), .. }), Some(images)) =
            (self.image(buffer).cloned(), self.target.images)
        else {
            return Err(self.error(Refusal::Memory, format!("buffer `{buffer}` has no image in the kernel")));
        };
        let [row, column, _] = indices else {
            return Err(self.no_texels(buffer));
        };
        // An alias of another shape would mean another row and column: images have no common linear address.
        let fits = buffer.is_texel_buffer() && buffer.shape == texels.shape && buffer.dtype == texels.dtype;
        if !fits {
            return Err(self.no_texels(buffer));
        }
        let used = self.uses.entry(buffer.data.clone()).or_default();
        used.read |= !write;
        used.written |= write;
        // An image parameter is either `read_only` or `write_only` for the whole kernel.
        if used.read && used.written {
            let message = format!(
                "one kernel reads and writes texture `{buffer}`, which no image of {} allows",
                self.target.version
            );
            let help = "put the statements that write it and those that read it into nests of their own, \
                        or read a copy of it";
            return Err(self.error(Refusal::ImageAccess, message).with_help(help));
        }
        let (row, column) = (self.coordinate(row)?, self.coordinate(column)?);
        let kind = images.kind(buffer.dtype.scalar, buffer.channels().unwrap_or(CHANNELS));
        Ok(Texel { image: name, origin, row, column, kind, images })
    }

    /// The error for a buffer that shares the memory of a texture but has another shape than its texels.
    fn no_texels(&self, buffer: &Buffer) -> Diagnostic {
        let message = format!("`{buffer}` reaches a texture but is not its texels, [height, width, channels]");
        self.error(Refusal::Texture, message).with_help("run the pass lower_texture first")
    }

    /// A row or column, as an `int` or for a check.
    fn coordinate(&mut self, index: &Expr) -> Result<Code, Diagnostic> {
        let code = self.index(index)?;
        // A check takes 64 bits; the builtins of images take `int32`.
        let as_it_is = index.dtype().scalar == ScalarType::Int32 || self.options.checked || constant(index).is_some();
        Ok(if as_it_is { code } else { Code::cast(self.dialect().scalar_name(ScalarType::Int32), &code) })
    }

    /// The place of a texel, moved to where the texture begins in its image.
    fn coordinates(&self, texel: &Texel) -> String {
        let origin = texel.images.origin();
        let moved = |at: &Code, axis: &str| {
            if self.options.placed {
                Self::sum(at, &Code::atom(format!("{}.{axis}", texel.origin))).text
            } else {
                at.text.clone()
            }
        };
        if sabotage::on("kernel-image-transposed") {
            return texel.images.coordinates(&moved(&texel.row, origin.row), &moved(&texel.column, origin.column));
        }
        texel.images.coordinates(&moved(&texel.column, origin.column), &moved(&texel.row, origin.row))
    }

    /// The arguments of a checked access, up to the origin: image, report, site, row, column, lane, height, width.
    fn checked(&mut self, buffer: &Buffer, texel: &Texel, lane: &Code, access: Access) -> Result<String, Diagnostic> {
        let (height, width) = (self.index(&buffer.shape[0])?, self.index(&buffer.shape[1])?);
        let site = self.site(buffer, access);
        let parts = [&texel.row, &texel.column, lane, &height, &width].map(|code| code.text.as_str()).join(", ");
        let origin = if self.options.placed { format!(", {}", texel.origin) } else { String::new() };
        Ok(format!("{}, tw_report, {site}, {parts}{origin}", texel.image))
    }

    /// A load from a texture: `texture2d_load`, or channels of it.
    pub(crate) fn image_load(&mut self, buffer: &Buffer, indices: &[Expr], mode: Mode) -> Result<Code, Diagnostic> {
        let Some(channel) = indices.last() else {
            return Err(self.no_texels(buffer));
        };
        let (ty, lanes) = (buffer.dtype.scalar, channel.dtype().lanes);
        let channels = buffer.channels().unwrap_or(CHANNELS);
        if channels > 1 && is_whole_texel(channel, channels) {
            let texel = self.texel(buffer, indices, false)?;
            let all = self.read_texel(buffer, &texel)?;
            let code = if channels == CHANNELS { all } else { Code::atom(texel.images.first(&all.text, channels)) };
            return Ok(narrowed(self.dialect(), channels_of(ty, channels), texel.kind.ty, code));
        }
        if lanes > 1 {
            let whole = Expr::load(buffer, indices.to_vec());
            let parts: Option<Vec<_>> = (0..lanes).map(|k| lane_of(&whole, k)).collect();
            let Some(parts) = parts else {
                let message = format!("the lanes of the index in `{whole}` are not known");
                return Err(self.error(Refusal::VectorIndex, message));
            };
            return self.vector_of(whole.dtype(), &parts, mode);
        }
        let texel = self.texel(buffer, indices, false)?;
        let held = self.held(buffer, indices);
        let code = match constant(channel) {
            _ if let Some(held) = &held => self.channel_of(held, texel.images, texel.kind, channel)?,
            Some(lane) if lane >= 0 && lane < texel.kind.channels.into() => {
                let all = self.read_texel(buffer, &texel)?;
                Code::atom(self.dialect().lane(&all.text, u16::try_from(lane).unwrap_or(0)))
            }
            // Also a constant that is not a channel: the helper of a checked kernel reports it.
            _ => self.read_channel(buffer, &texel, channel)?,
        };
        Ok(narrowed(self.dialect(), ty.into(), texel.kind.ty, code))
    }

    /// All four channels of the texel of an access, as wide as the builtin gives them, and their type.
    pub(super) fn whole_texel(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<(Code, DataType), Diagnostic> {
        let texel = self.texel(buffer, indices, false)?;
        Ok((self.read_texel(buffer, &texel)?, channels_of(texel.kind.ty, CHANNELS)))
    }

    /// The channel of a texel with a number that is computed at run time.
    fn channel_of(
        &mut self,
        texel: &str,
        images: &'static dyn Images,
        kind: ChannelKind,
        lane: &Expr,
    ) -> Result<Code, Diagnostic> {
        let lane = self.index(lane)?;
        let helper = images.channel(&mut self.helpers, kind);
        Ok(Code::atom(format!("{helper}({texel}, {})", lane.text)))
    }

    /// All four channels, as wide as the builtin gives them.
    fn read_texel(&mut self, buffer: &Buffer, texel: &Texel) -> Result<Code, Diagnostic> {
        if !self.options.checked {
            let place = self.coordinates(texel);
            return Ok(Code::atom(texel.images.read(&mut self.helpers, texel.kind, &texel.image, &place)));
        }
        let helper = texel.images.checked_read(&mut self.helpers, texel.kind, self.options.placed);
        let args = self.checked(buffer, texel, &Code::atom("0"), Access::Read)?;
        Ok(Code::atom(format!("{helper}({args})")))
    }

    /// Reads the channel with the number `lane`, which is computed at run time or is a constant outside of 0 to 3.
    fn read_channel(&mut self, buffer: &Buffer, texel: &Texel, lane: &Expr) -> Result<Code, Diagnostic> {
        if !self.options.checked {
            let all = self.read_texel(buffer, texel)?;
            return self.channel_of(&all.text, texel.images, texel.kind, lane);
        }
        let lane = self.index(lane)?;
        let helper = texel.images.checked_channel(&mut self.helpers, texel.kind, self.options.placed);
        let args = self.checked(buffer, texel, &lane, Access::Read)?;
        Ok(Code::atom(format!("{helper}({args})")))
    }

    /// A store of a whole texel: `texture2d_store`.
    pub(crate) fn image_store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<(), Diagnostic> {
        let channels = buffer.channels().unwrap_or(CHANNELS);
        if !indices.last().is_some_and(|channel| is_whole_texel(channel, channels)) {
            let message = format!("a store to some channels of texture `{buffer}` would lose the others");
            let help = "store all channels at once: the pass lower_texture gathers them where it can";
            return Err(self.error(Refusal::ChannelStore, message).with_help(help));
        }
        let value = self.expr(value, Mode::Value)?;
        let texel = self.texel(buffer, indices, true)?;
        let (stored, wide) = (channels_of(buffer.dtype.scalar, channels), channels_of(texel.kind.ty, channels));
        let same_type = self.dialect().value_name(stored) == self.dialect().value_name(wide);
        let value = match (same_type, wide.is_scalar()) {
            (true, _) => value,
            (false, true) => Code::cast(self.dialect().scalar_name(wide.scalar), &value),
            (false, false) => self.dialect().convert(wide, &value),
        };
        let value = if channels == CHANNELS { value.text } else { texel.images.filled_up(texel.kind, &value.text) };
        if self.options.checked {
            let helper = texel.images.checked_write(&mut self.helpers, texel.kind, self.options.placed);
            let args = self.checked(buffer, &texel, &Code::atom("0"), Access::Write)?;
            self.line(&format!("{helper}({args}, {value});"));
        } else {
            let place = self.coordinates(&texel);
            self.line(&texel.images.write(texel.kind, &texel.image, &place, &value));
        }
        Ok(())
    }
}

/// So many channels of a type.
fn channels_of(ty: ScalarType, channels: u16) -> DataType {
    DataType::scalar(ty).with_lanes(channels)
}

/// Converts a value from the type that the builtin returns to its own type. The conversion is exact, because the channel
/// holds values of that type only.
fn narrowed(dialect: &dyn Dialect, ty: DataType, wide: ScalarType, code: Code) -> Code {
    if dialect.value_name(ty) == dialect.value_name(DataType::scalar(wide).with_lanes(ty.lanes)) {
        code
    } else if ty.is_scalar() {
        Code::cast(dialect.scalar_name(ty.scalar), &code)
    } else {
        dialect.convert(ty, &code)
    }
}
