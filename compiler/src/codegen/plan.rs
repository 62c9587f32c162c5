//! From metadata and arguments to a launch plan for the OpenCL host of `tilewright-device`: which memory to allocate and
//! fill, which kernels to launch, in which order and with which arguments.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tilewright_device::{Arg, BufferSpec, Launch, LaunchPlan, Scalar as DeviceScalar};
use tilewright_ir::{Bindings, Diagnostic, Scalar, ScalarType, TextureLimits, Var};

use super::checked::REPORT_BYTES;
use super::metadata::{ArgInfo, BufferInfo, ImageInfo, KernelInfo, Size};
use super::{Generated, OutsideTexture};

/// Most launches of a run.
const MOST_LAUNCHES: usize = 1 << 16;

/// The arguments of a run.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Values of symbolic extents.
    pub symbols: Bindings,
    /// Values of scalar parameters.
    pub scalars: BTreeMap<Var, Scalar>,
    /// Contents of buffers by data variable; a buffer without contents is filled with a poison pattern.
    pub contents: BTreeMap<Var, Arc<Vec<u8>>>,
}

/// Where a buffer of the program lies in memory that the caller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The place of the memory in [`LaunchPlan::buffers`].
    pub memory: usize,
    /// Where the buffer begins in it.
    pub origin: Origin,
}

/// Where a buffer begins in its memory. It is not checked that the buffer fits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// At the beginning.
    Start,
    /// At a byte of a buffer, a multiple of the alignment of its elements.
    Byte(u64),
    /// At a texel of an image.
    Texel {
        /// Column.
        x: u64,
        /// Row.
        y: u64,
    },
}

/// An error of the arguments or the placement.
fn fault(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("opencl-arguments", None, message)
}

impl Generated {
    /// Returns the memory and launches for given arguments, each buffer in memory of its own. Parameters that kernels write
    /// are read back. The report, if there is one, is the last memory ([`Generated::report_place`]).
    ///
    /// # Errors
    /// A missing value, contents of the wrong size, a buffer of symbolic shape with more elements than the proofs
    /// cover, a texture above the limits that the program is lowered for, or an `assert` of the program that does not
    /// hold.
    pub fn plan(&self, arguments: &Arguments) -> Result<LaunchPlan, Diagnostic> {
        let mut buffers = self.specs(arguments)?;
        let own = |memory| Placement { memory, origin: Origin::Start };
        let placements: Vec<_> = (0..buffers.len()).map(own).collect();
        let launches = self.launches(arguments, &placements, self.report_place())?;
        if self.report_place().is_some() {
            buffers.push(BufferSpec::new("the report of what is checked", REPORT_BYTES).filled(0).read_back());
        }
        Ok(LaunchPlan { buffers, launches })
    }

    /// Returns the position of the report in the memory of [`Generated::plan`]; `None` if no kernel has a report.
    pub fn report_place(&self) -> Option<usize> {
        let reports = self.metadata.kernels.iter().any(|kernel| kernel.args.contains(&ArgInfo::Report));
        reports.then_some(self.metadata.buffers.len())
    }

    /// Decodes the report after the launches of [`Generated::plan`]; `None` if every access to a texture was inside.
    pub fn outside_texture(&self, contents: &[Option<Vec<u8>>], symbols: &Bindings) -> Option<OutsideTexture> {
        let report = contents.get(self.report_place()?)?.as_ref()?;
        self.metadata.outside_texture(report, symbols)
    }

    /// Returns the memory of each buffer of the program, in the order of the metadata.
    ///
    /// # Errors
    /// As for [`Generated::plan`].
    pub fn specs(&self, arguments: &Arguments) -> Result<Vec<BufferSpec>, Diagnostic> {
        let bindings = bindings(arguments);
        let limits = self.metadata.texture_limits;
        self.metadata.buffers.iter().map(|info| spec(info, &bindings, arguments, limits)).collect()
    }

    /// Returns the launches for given arguments on memory of the caller: one placement for each buffer of the metadata, and
    /// the position of a report of [`REPORT_BYTES`] zeros if kernels have one.
    ///
    /// # Errors
    /// A missing value, an `assert` of the program that does not hold, an origin of the wrong kind, or an origin other than
    /// the start for kernels that are not placed.
    pub fn launches(
        &self,
        arguments: &Arguments,
        placements: &[Placement],
        report: Option<usize>,
    ) -> Result<Vec<Launch>, Diagnostic> {
        if placements.len() != self.metadata.buffers.len() {
            let (given, wanted) = (placements.len(), self.metadata.buffers.len());
            return Err(fault(format!("{given} places are given for {wanted} buffers")));
        }
        let bindings = bindings(arguments);
        for check in &self.metadata.asserts {
            let holds = check.cond.eval_index(&bindings).map_err(|error| fault(error.to_string()))?;
            if holds == 0 {
                return Err(fault(format!("assertion `{}` fails: {}", check.cond, check.message)));
            }
        }
        self.check_origins(placements)?;
        let memory = Memory { placements, report };
        let (mut launches, mut at) = (Vec::new(), Call { arguments, memory: &memory, bindings });
        self.run(0..self.metadata.kernels.len(), 0, &mut at, &mut launches)?;
        Ok(launches)
    }

    /// Adds the launches of some kernels: those in loops of the host, of which the first `outer` are around all of them, once for
    /// each iteration.
    fn run(
        &self,
        kernels: Range<usize>,
        outer: usize,
        call: &mut Call<'_>,
        launches: &mut Vec<Launch>,
    ) -> Result<(), Diagnostic> {
        let mut place = kernels.start;
        while place < kernels.end {
            let rest = self.metadata.loops.iter().enumerate().skip(outer);
            let mut begins = rest.filter(|(_, host)| host.kernels.start == place && !host.kernels.is_empty());
            let Some((number, host)) = begins.next() else {
                let info = &self.metadata.kernels[place];
                launches.push(self.launch(info, &call.bindings, call.arguments, call.memory)?);
                place += 1;
                continue;
            };
            let first = host.min.eval_index(&call.bindings).map_err(|error| fault(error.to_string()))?;
            let count = host.extent.eval(&call.bindings)?;
            for iteration in 0..count {
                if launches.len() >= MOST_LAUNCHES {
                    let text = format!("the loops of the host launch more than {MOST_LAUNCHES} kernels");
                    return Err(fault(text).with_help("a program with fewer iterations, or another one that calls it"));
                }
                call.bindings.insert(host.var.clone(), first + i128::from(iteration));
                self.run(host.kernels.clone(), number + 1, call, launches)?;
            }
            call.bindings.remove(&host.var);
            place = host.kernels.end;
        }
        Ok(())
    }

    /// Checks that origins other than the start are given only to placed kernels.
    fn check_origins(&self, placements: &[Placement]) -> Result<(), Diagnostic> {
        for ((number, info), placement) in self.metadata.buffers.iter().enumerate().zip(placements) {
            let fits =
                |args: &[ArgInfo]| args.contains(&ArgInfo::Origin(number)) || !args.contains(&ArgInfo::Buffer(number));
            let is_placed = self.metadata.kernels.iter().all(|kernel| fits(&kernel.args));
            if placement.origin != Origin::Start && !is_placed {
                let text =
                    format!("`{}` has to begin at the start of its memory: the kernels are not placed", info.name);
                return Err(fault(text));
            }
        }
        Ok(())
    }

    /// The launch of one kernel: its geometry for given extents, and its arguments in order.
    fn launch(
        &self,
        info: &KernelInfo,
        bindings: &Bindings,
        arguments: &Arguments,
        memory: &Memory<'_>,
    ) -> Result<Launch, Diagnostic> {
        let sizes = |sizes: &[Size; 3]| -> Result<[u64; 3], Diagnostic> {
            Ok([sizes[0].eval(bindings)?, sizes[1].eval(bindings)?, sizes[2].eval(bindings)?])
        };
        let global = sizes(&info.global)?;
        // A launch without work-items is not run, and a group size of 0 would be an error of the driver.
        let local = info.local.as_ref().map(sizes).transpose()?.filter(|_| !global.contains(&0));
        let args = info.args.iter().map(|arg| match arg {
            ArgInfo::Buffer(place) => Ok(Arg::Memory(memory.placements[*place].memory)),
            ArgInfo::Origin(place) => {
                origin(&self.metadata.buffers[*place], memory.placements[*place].origin).map(Arg::Scalar)
            }
            ArgInfo::Report => memory.report.map(Arg::Memory).ok_or_else(|| fault("the kernels need a report buffer")),
            ArgInfo::Scalar(place) => passed(&self.metadata.scalars[*place].var, bindings, arguments),
            ArgInfo::Iteration(place) => passed(&self.metadata.loops[*place].var, bindings, arguments),
        });
        Ok(Launch { kernel: info.name.clone(), global, local, args: args.collect::<Result<_, _>>()? })
    }
}

/// The arguments, the memory and the values of integers with which kernels are launched.
struct Call<'a> {
    arguments: &'a Arguments,
    memory: &'a Memory<'a>,
    /// The values of extents, integer parameters and the loops of the host around a launch.
    bindings: Bindings,
}

/// The value of an extent, a scalar parameter or a loop of the host.
fn passed(var: &Var, bindings: &Bindings, arguments: &Arguments) -> Result<Arg, Diagnostic> {
    let value = arguments.scalars.get(var).copied();
    let value = value.or_else(|| bindings.get(var).map(|&value| Scalar::Int(value)));
    let value = value.ok_or_else(|| fault(format!("`{var}` has no value")))?;
    scalar(var.dtype().scalar, value).map(Arg::Scalar).ok_or_else(|| fault(format!("bad value for `{var}`")))
}

/// The memory that launches use: where each buffer of the metadata lies, and the report.
struct Memory<'a> {
    placements: &'a [Placement],
    report: Option<usize>,
}

/// Values of symbolic extents and of integer parameters.
fn bindings(arguments: &Arguments) -> Bindings {
    let mut bindings = arguments.symbols.clone();
    for (var, value) in &arguments.scalars {
        if let Scalar::Int(value) = value {
            bindings.insert(var.clone(), *value);
        }
    }
    bindings
}

/// Converts the origin of a buffer to the value of its kernel parameter: bytes as a `long`, or column and row as an `int2`.
fn origin(info: &BufferInfo, origin: Origin) -> Result<DeviceScalar, Diagnostic> {
    let too_far = || fault(format!("`{}` begins too far into its memory", info.name));
    let int = |at: u64| i32::try_from(at).map_err(|_| too_far());
    let (x, y) = match (&info.image, origin) {
        (None, Origin::Start) => return Ok(DeviceScalar::I64(0)),
        (None, Origin::Byte(at)) => return i64::try_from(at).map(DeviceScalar::I64).map_err(|_| too_far()),
        (Some(_), Origin::Start) => (0, 0),
        (Some(_), Origin::Texel { x, y }) => (int(x)?, int(y)?),
        (None, Origin::Texel { .. }) => return Err(fault(format!("`{}` begins at a byte, not a texel", info.name))),
        (Some(_), Origin::Byte(_)) => return Err(fault(format!("`{}` begins at a texel, not a byte", info.name))),
    };
    Ok(DeviceScalar::Bytes([x.to_ne_bytes(), y.to_ne_bytes()].concat()))
}

/// The image that holds a texture, within the limits that the program is lowered for.
fn image(
    info: &BufferInfo,
    image: &ImageInfo,
    bindings: &Bindings,
    limits: Option<TextureLimits>,
) -> Result<BufferSpec, Diagnostic> {
    let (width, height) = (image.width.eval(bindings)?, image.height.eval(bindings)?);
    if let Some(most) = limits
        && (width > most.width || height > most.height)
    {
        let message = format!("texture `{}` has {width}x{height} texels (width x height)", info.name);
        return Err(Diagnostic::error(
            "opencl-texture-limits",
            None,
            format!("{message}, at most {most} are possible"),
        )
        .with_help("lower the program with larger limits, if the device has them, or cut the texture"));
    }
    Ok(BufferSpec::image2d(&info.name, width, height, image.format))
}

/// The memory of one buffer, with its contents if there are any.
fn spec(
    info: &BufferInfo,
    bindings: &Bindings,
    arguments: &Arguments,
    limits: Option<TextureLimits>,
) -> Result<BufferSpec, Diagnostic> {
    let bytes = info.bytes.eval(bindings)?;
    if let Some(most) = info.max_elements {
        let elements = bytes / info.dtype.bytes().max(1);
        if elements > most {
            let text = format!("`{}` has {elements} elements; what is proved holds up to {most}", info.name);
            return Err(fault(text));
        }
    }
    let mut spec = match &info.image {
        Some(texels) => image(info, texels, bindings, limits)?,
        None => BufferSpec::new(&info.name, bytes),
    };
    if spec.bytes != bytes {
        let text = format!("`{}` has {bytes} bytes, its texels have {}", info.name, spec.bytes);
        return Err(fault(text));
    }
    if let Some(data) = arguments.contents.get(&info.data) {
        if u64::try_from(data.len()) != Ok(bytes) {
            return Err(fault(format!("`{}` takes {bytes} bytes, {} are given", info.name, data.len())));
        }
        spec = spec.with_data(Arc::clone(data));
    }
    // A texture made by `texture2d_alloca` lives for one run only, so the session can lend an image for it.
    let is_scratch = info.param.is_none() && info.image.is_some() && !arguments.contents.contains_key(&info.data);
    Ok(match info.param {
        Some(_) if info.written => spec.read_back(),
        None if is_scratch => spec.scratch(),
        _ => spec,
    })
}

/// Converts a scalar argument to the type of its kernel parameter; `None` if the value is not one of the type `ty`.
fn scalar(ty: ScalarType, value: Scalar) -> Option<DeviceScalar> {
    // The width must be that of the parameter in C: OpenCL passes no `bool` and no `half`, so kernels take `int` and
    // `float`.
    match (ty, value) {
        (ScalarType::Bool | ScalarType::Int32, Scalar::Int(x)) => i32::try_from(x).ok().map(DeviceScalar::I32),
        (ScalarType::Int8, Scalar::Int(x)) => i8::try_from(x).ok().map(DeviceScalar::I8),
        (ScalarType::Int16, Scalar::Int(x)) => i16::try_from(x).ok().map(DeviceScalar::I16),
        (ScalarType::Int64, Scalar::Int(x)) => i64::try_from(x).ok().map(DeviceScalar::I64),
        (ScalarType::UInt8, Scalar::Int(x)) => u8::try_from(x).ok().map(DeviceScalar::U8),
        (ScalarType::UInt16, Scalar::Int(x)) => u16::try_from(x).ok().map(DeviceScalar::U16),
        (ScalarType::UInt32, Scalar::Int(x)) => u32::try_from(x).ok().map(DeviceScalar::U32),
        (ScalarType::UInt64, Scalar::Int(x)) => u64::try_from(x).ok().map(DeviceScalar::U64),
        #[expect(clippy::cast_possible_truncation, reason = "a value of these types is representable in float32")]
        (ScalarType::Float16 | ScalarType::BFloat16 | ScalarType::Float32, Scalar::Float(x)) => {
            Some(DeviceScalar::F32(x as f32))
        }
        (ScalarType::Float64, Scalar::Float(x)) => Some(DeviceScalar::F64(x)),
        (
            ScalarType::Bool
            | ScalarType::Int8
            | ScalarType::Int16
            | ScalarType::Int32
            | ScalarType::Int64
            | ScalarType::UInt8
            | ScalarType::UInt16
            | ScalarType::UInt32
            | ScalarType::UInt64
            | ScalarType::Handle,
            Scalar::Float(_),
        )
        | (
            ScalarType::Float16 | ScalarType::BFloat16 | ScalarType::Float32 | ScalarType::Float64 | ScalarType::Handle,
            Scalar::Int(_),
        ) => None,
    }
}
