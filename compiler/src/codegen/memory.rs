//! The memory of a program as its kernels see it: buffers and images of the host, and the parameters that they are.
//!
//! | in the program | in a kernel |
//! |---|---|
//! | parameter or allocation at the root | pointer to global memory, one for each allocation: aliases share it |
//! | the same, with a texel buffer as alias | image of as many channels |
//! | allocation inside of a nest | array of the work-item or of its group ([`super::arrays`]) |

use tilewright_ir::{
    Buffer, DataType, Diagnostic, Expr, MAX_SYMBOLIC_ELEMENTS, ScalarType, Scope, SharedExpr, StmtKind, checked_size,
};

use super::image::texel_format;
use super::kernel::SourceBuilder;
use super::metadata::{ArgInfo, BufferInfo, ImageInfo, Size};
use super::range::constant;
use super::target::{Images, Refusal, Space};
use super::writer::{Allocation, Use, Writer};

impl SourceBuilder<'_> {
    /// Declares memory that the host provides, for a parameter (`param` is its position) or for an allocation around all
    /// nests.
    pub(crate) fn device_buffer(&mut self, buffer: &Buffer, param: Option<usize>) {
        if self.base.allocations.contains_key(&buffer.data) {
            return;
        }
        let name = self.base.namer.fresh(&buffer.name);
        // The parameter may be declared in its logical shape; the alias in the body has the physical axes.
        let physical = self.physical(buffer);
        let elements = elements(buffer);
        let scalars = constant(&elements).and_then(|count| checked_size(&[count, buffer.dtype.lanes.into()]).ok());
        let bytes = times(elements, buffer.dtype.bytes());
        let image = self.target.images.and_then(|images| image_of(images, &physical));
        let row_pitch = (physical.rank() > 1 && image.is_none())
            .then(|| physical.shape.last().map(|extent| Size(times(extent.clone(), physical.dtype.bytes()))))
            .flatten();
        if buffer.scope.is_texture() && image.is_none() {
            let code = self.target.dialect.code(Refusal::Texture);
            self.errors.push(if self.target.images.is_some() {
                let message =
                    format!("`{buffer}` is in scope `{}` but has no texels, [height, width, channels]", buffer.scope);
                Diagnostic::error(code, buffer.span, message)
                    .with_help("run the pass lower_texture first; elsewhere a texture has no meaning for a kernel")
            } else {
                let message = format!("`{buffer}` is a texture, but kernels in {} have none", self.target.language);
                Diagnostic::error(code, buffer.span, message)
            });
        } else if buffer.scope != Scope::Global && image.is_none() {
            let scope = buffer.scope;
            let note = format!("`{name}` is in scope `{scope}` and is held in ordinary global memory");
            self.metadata.notes.push(note);
        }
        self.allocate(buffer, &name, scalars, image.is_some().then(|| physical.clone()));
        self.metadata.buffers.push(BufferInfo {
            name,
            data: buffer.data.clone(),
            param,
            dtype: buffer.dtype,
            physical_shape: physical.shape.iter().cloned().map(Size).collect(),
            max_elements: buffer.const_shape().is_none().then_some(MAX_SYMBOLIC_ELEMENTS),
            bytes: Size(bytes),
            row_pitch,
            image,
            scope: buffer.scope,
            read: false,
            written: false,
        });
    }

    /// Records how kernels address a buffer, and reserves the names of the kernel parameters for its memory and its offset.
    fn allocate(&mut self, buffer: &Buffer, name: &str, scalars: Option<u64>, texels: Option<Buffer>) {
        let (mut origin, mut pool) = (String::new(), name.to_owned());
        if self.base.options.placed {
            let tail = if texels.is_some() { "origin" } else { "offset" };
            origin = self.base.namer.fresh(&format!("{name}_{tail}"));
            if texels.is_none() {
                pool = self.base.namer.fresh(&format!("{name}_pool"));
            }
        }
        let small = scalars.is_some_and(|count| count <= u64::from(i32::MAX.unsigned_abs()));
        let space = if texels.is_some() { Space::Image } else { Space::Global };
        let name = name.to_owned();
        let allocation = Allocation { name, space, scalar: buffer.dtype.scalar, small, texels, origin, pool };
        self.base.allocations.insert(buffer.data.clone(), allocation);
    }

    /// Returns the buffer with physical axes: `buffer` itself, or its first alias that has them.
    ///
    /// A program may declare a parameter in its logical shape and access it through a flattened alias.
    fn physical(&self, buffer: &Buffer) -> Buffer {
        let fits = |buffer: &Buffer| {
            if buffer.scope.is_texture() {
                buffer.is_texel_buffer()
            } else {
                buffer.rank() < 2 || buffer.axis_separators.is_flat()
            }
        };
        let mut found = fits(buffer).then(|| buffer.clone());
        self.func.body.walk(&mut |stmt| {
            if let StmtKind::DeclBuffer { buffer: alias, .. } = &stmt.kind
                && alias.aliases(buffer)
                && fits(alias)
            {
                found.get_or_insert_with(|| alias.clone());
            }
        });
        found.unwrap_or_else(|| buffer.clone())
    }

    /// Returns the parameters of a kernel in C and in the metadata, in the same order, and the lines that its body begins
    /// with.
    ///
    /// Memory comes first, then scalars, then the report. Only memory that the kernel uses is passed: `restrict` promises
    /// that pointers do not alias, unless they do, and a device has few arguments for images.
    pub(crate) fn signature(&mut self, writer: &Writer) -> (Vec<String>, Vec<ArgInfo>, String) {
        let (mut params, mut args, mut begins) = (Vec::new(), Vec::new(), String::new());
        let mut images = [0, 0];
        let dialect = self.target.dialect;
        let (global, restrict) = (self.target.words.global, self.target.words.restrict);
        for (number, info) in self.metadata.buffers.iter_mut().enumerate() {
            let (Some(&Use { read, written }), Some(allocation)) =
                (writer.uses.get(&info.data), self.base.allocations.get(&info.data))
            else {
                continue;
            };
            info.read |= read;
            info.written |= written;
            let constness = if written { "" } else { "const " };
            let element = dialect.storage_name(info.dtype.scalar);
            let Allocation { name, origin, pool, texels, .. } = allocation;
            let image = self.target.images.filter(|_| texels.is_some());
            if let Some(access) = image {
                images[usize::from(written)] += 1;
                params.push(access.param(written, name));
            } else {
                let promise = if writer.options.aliased { String::new() } else { format!("{restrict} ") };
                params.push(format!("{global}{constness}{element} *{promise}{pool}"));
            }
            args.push(ArgInfo::Buffer(number));
            if writer.options.placed {
                let ty = image.map_or_else(|| dialect.scalar_name(ScalarType::Int64), |access| access.origin().ty);
                params.push(format!("const {ty} {origin}"));
                args.push(ArgInfo::Origin(number));
                // The origin of a buffer is in bytes, so it is added before the pointer gets its element type. An image has
                // a column and row, which each access adds.
                if texels.is_none() {
                    let line = format!(
                        "    {global}{constness}{element} *{name} = \
                         ({global}{constness}{element} *)(({global}{constness}char *){pool} + {origin});\n"
                    );
                    begins.push_str(&line);
                }
            }
        }
        let limits = &self.target.limits;
        let least = [(limits.read_images, "reads"), (limits.written_images, "writes")];
        for (count, (least, verb)) in images.into_iter().zip(least).filter(|(count, (least, _))| count > least) {
            let api = self.target.api;
            let note = format!("a kernel {verb} {count} textures; {api} promises {least} of every device");
            self.metadata.notes.push(note);
        }
        for (number, info) in self.metadata.scalars.iter().enumerate() {
            if writer.scalars.contains(&info.var)
                && let Some(name) = self.base.vars.get(&info.var)
            {
                params.push(format!("const {} {name}", dialect.value_name(info.var.dtype())));
                args.push(ArgInfo::Scalar(number));
            }
        }
        for (number, host) in self.metadata.loops.iter().enumerate() {
            // A loop that is still without kernels is around this one; the same variable may belong to others.
            if host.kernels.is_empty()
                && writer.scalars.contains(&host.var)
                && let Some(name) = self.base.vars.get(&host.var)
            {
                params.push(format!("const {} {name}", dialect.value_name(host.var.dtype())));
                args.push(ArgInfo::Iteration(number));
            }
        }
        if !writer.sites.is_empty() {
            params.push(format!("{global}{} *tw_report", dialect.scalar_name(ScalarType::Int32)));
            args.push(ArgInfo::Report);
        }
        (params, args, begins)
    }
}

/// Returns the image that holds a texel buffer; `None` for another buffer, or if images have no channels of its type.
fn image_of(images: &dyn Images, texels: &Buffer) -> Option<ImageInfo> {
    let format = texel_format(texels)?;
    let (width, height) = (Size(texels.shape[1].clone()), Size(texels.shape[0].clone()));
    Some(ImageInfo { width, height, format, channel_name: images.channel_name(format.ty) })
}

/// Returns the number of elements of an allocation: one more than the last position that an index inside the shape reaches.
fn elements(buffer: &Buffer) -> Expr {
    let one = |extent: &Expr| long(extent.clone());
    let Some(strides) = &buffer.strides else {
        let all = buffer.shape.iter().map(one).reduce(|a, b| a * b).unwrap_or_else(|| long(Expr::int(1)));
        return if constant(&buffer.elem_offset) == Some(0) { all } else { all + long(buffer.elem_offset.clone()) };
    };
    let last =
        buffer.shape.iter().zip(strides).map(|(extent, stride)| (one(extent) - long(Expr::int(1))) * one(stride));
    last.fold(long(buffer.elem_offset.clone()) + long(Expr::int(1)), |sum, term| sum + term)
}

/// Converts an extent to `int64`, the type in which sizes are computed.
pub(crate) fn long(expr: Expr) -> Expr {
    match constant(&expr) {
        Some(value) => Expr::Int { value, ty: ScalarType::Int64 },
        None if expr.dtype() == DataType::scalar(ScalarType::Int64) => expr,
        None => Expr::Cast(DataType::scalar(ScalarType::Int64), SharedExpr::new(expr)),
    }
}

/// Returns the size in bytes of `elements` elements of `bytes` bytes each.
fn times(elements: Expr, bytes: u64) -> Expr {
    if bytes == 1 { elements } else { long(elements) * long(Expr::int(i64::try_from(bytes).unwrap_or(i64::MAX))) }
}
