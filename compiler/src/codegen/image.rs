//! Textures as images: texel buffers are `image2d_t`, read through one sampler and written a whole texel at a time.

use tilewright_device::ChannelType;
use tilewright_ir::sabotage;
use tilewright_ir::texture::is_whole_texel;
use tilewright_ir::{Buffer, CHANNELS, DataType, Diagnostic, Expr, ScalarType};

use super::checked::Access;
use super::expr::{Code, lane_of};
use super::range::{Mode, constant};
use super::types::{scalar_name, value_name};
use super::writer::{Place, Writer};

/// The channels of an image that holds a type; none for a type that no channel has.
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

/// Which of the builtins accesses channels of a type: `f`, `i` or `ui`, and the type of a channel there.
pub(crate) fn builtin(ty: ScalarType) -> (&'static str, ScalarType) {
    if ty.is_float() {
        ("f", ScalarType::Float32)
    } else if ty.integer_range().is_some_and(|(low, _)| low < 0) {
        ("i", ScalarType::Int32)
    } else {
        ("ui", ScalarType::UInt32)
    }
}

/// Where a texel is: its row and column in the buffer, and the image that holds it.
struct Texel {
    image: String,
    /// Where the texture begins in its image, if it is placed.
    origin: String,
    row: Code,
    column: Code,
    /// The builtin's suffix and its type of a channel.
    kind: (&'static str, ScalarType),
}

impl Writer {
    /// The image that holds a buffer, if one does.
    pub(crate) fn image(&self, buffer: &Buffer) -> Option<&Place> {
        self.places.get(&buffer.data).filter(|place| place.texels.is_some())
    }

    /// Notes an access to an image and gives its place.
    fn texel(&mut self, buffer: &Buffer, indices: &[Expr], write: bool) -> Result<Texel, Diagnostic> {
        let Some(Place { name, origin, texels: Some(texels), .. }) = self.image(buffer).cloned() else {
            return Err(self.error("opencl-memory", format!("buffer `{buffer}` has no image in the kernel")));
        };
        let [row, column, _] = indices else {
            return Err(self.no_texels(buffer));
        };
        let fits = buffer.is_texel_buffer() && buffer.shape == texels.shape && buffer.dtype == texels.dtype;
        if !fits {
            return Err(self.no_texels(buffer));
        }
        let used = self.uses.entry(buffer.data.clone()).or_default();
        used.read |= !write;
        used.written |= write;
        if used.read && used.written {
            let message =
                format!("one kernel reads and writes texture `{buffer}`, which no image of OpenCL 1.2 allows");
            let help = "put the statements that write it and those that read it into nests of their own, \
                        or read a copy of it";
            return Err(self.error("opencl-image-access", message).with_help(help));
        }
        let (row, column) = (self.coordinate(row)?, self.coordinate(column)?);
        Ok(Texel { image: name, origin, row, column, kind: builtin(buffer.dtype.scalar) })
    }

    fn no_texels(&self, buffer: &Buffer) -> Diagnostic {
        let message = format!("`{buffer}` reaches a texture but is not its texels, [height, width, {CHANNELS}]");
        self.error("opencl-texture", message).with_help("run the pass lower_texture first")
    }

    /// A row or column, as an `int` or for a check.
    fn coordinate(&mut self, index: &Expr) -> Result<Code, Diagnostic> {
        let code = self.index(index)?;
        let plain = index.dtype().scalar == ScalarType::Int32 || self.options.checked;
        Ok(if plain || constant(index).is_some() { code } else { Code::cast("int", &code) })
    }

    /// `(int2)(column, row)`, moved to where the texture begins in its image.
    fn coordinates(&self, texel: &Texel) -> String {
        let moved = |at: &Code, axis: &str| {
            if self.options.placed {
                Self::sum(at, &Code::atom(format!("{}.{axis}", texel.origin))).text
            } else {
                at.text.clone()
            }
        };
        if sabotage::on("kernel-image-transposed") {
            return format!("(int2)({}, {})", moved(&texel.row, "y"), moved(&texel.column, "x"));
        }
        format!("(int2)({}, {})", moved(&texel.column, "x"), moved(&texel.row, "y"))
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
        if is_whole_texel(channel) {
            let texel = self.texel(buffer, indices, false)?;
            let code = self.read_texel(buffer, &texel)?;
            return Ok(narrowed(texel_of(ty), texel.kind.1, code));
        }
        if lanes > 1 {
            let whole = Expr::load(buffer, indices.to_vec());
            let parts: Option<Vec<_>> = (0..lanes).map(|k| lane_of(&whole, k)).collect();
            let Some(parts) = parts else {
                let message = format!("the lanes of the index in `{whole}` are not known");
                return Err(self.error("opencl-vector-index", message));
            };
            return self.vector_of(whole.dtype(), &parts, mode);
        }
        let texel = self.texel(buffer, indices, false)?;
        let code = match constant(channel) {
            Some(lane @ 0..=3) => Code::atom(format!("{}.s{lane}", self.read_texel(buffer, &texel)?.text)),
            _ => self.read_channel(buffer, &texel, channel)?,
        };
        Ok(narrowed(ty.into(), texel.kind.1, code))
    }

    /// All four channels, as wide as the builtin gives them.
    fn read_texel(&mut self, buffer: &Buffer, texel: &Texel) -> Result<Code, Diagnostic> {
        let sampler = self.helpers.sampler();
        if !self.options.checked {
            let at = self.coordinates(texel);
            return Ok(Code::atom(format!("read_image{}({}, {sampler}, {at})", texel.kind.0, texel.image)));
        }
        let helper = self.helpers.checked_read(texel.kind, self.options.placed);
        let args = self.checked(buffer, texel, &Code::atom("0"), Access::Read)?;
        Ok(Code::atom(format!("{helper}({args})")))
    }

    /// One channel whose number is not known here, or is none.
    fn read_channel(&mut self, buffer: &Buffer, texel: &Texel, lane: &Expr) -> Result<Code, Diagnostic> {
        let lane = self.index(lane)?;
        if !self.options.checked {
            let all = self.read_texel(buffer, texel)?;
            let helper = self.helpers.channel(texel.kind);
            return Ok(Code::atom(format!("{helper}({}, {})", all.text, lane.text)));
        }
        self.helpers.sampler();
        let helper = self.helpers.checked_channel(texel.kind, self.options.placed);
        let args = self.checked(buffer, texel, &lane, Access::Read)?;
        Ok(Code::atom(format!("{helper}({args})")))
    }

    /// A store of a whole texel: `texture2d_store`.
    pub(crate) fn image_store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<(), Diagnostic> {
        if !indices.last().is_some_and(is_whole_texel) {
            let message = format!("a store to some channels of texture `{buffer}` would lose the others");
            let help = "store all four channels at once: the pass lower_texture gathers them where it can";
            return Err(self.error("opencl-channel-store", message).with_help(help));
        }
        let value = self.expr(value, Mode::Value)?;
        let texel = self.texel(buffer, indices, true)?;
        let (suffix, wide) = texel.kind;
        let (stored, wide) = (value_name(texel_of(buffer.dtype.scalar)), value_name(texel_of(wide)));
        let value = if stored == wide { value.text } else { format!("convert_{wide}({})", value.text) };
        if self.options.checked {
            let helper = self.helpers.checked_write(texel.kind, self.options.placed);
            let args = self.checked(buffer, &texel, &Code::atom("0"), Access::Write)?;
            self.line(&format!("{helper}({args}, {value});"));
        } else {
            let at = self.coordinates(&texel);
            self.line(&format!("write_image{suffix}({}, {at}, {value});", texel.image));
        }
        Ok(())
    }
}

/// Four channels of a type.
pub(crate) fn texel_of(ty: ScalarType) -> DataType {
    DataType::scalar(ty).with_lanes(CHANNELS)
}

/// A value as wide as the builtin gives it, in the type that it is of. Nothing is lost: no channel holds more.
fn narrowed(ty: DataType, wide: ScalarType, code: Code) -> Code {
    if value_name(ty) == value_name(DataType::scalar(wide).with_lanes(ty.lanes)) {
        code
    } else if ty.is_scalar() {
        Code::cast(scalar_name(ty.scalar), &code)
    } else {
        Code::call(&format!("convert_{}", value_name(ty)), &[&code])
    }
}
