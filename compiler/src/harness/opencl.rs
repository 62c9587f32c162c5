//! OpenCL devices as an engine: generates kernels, builds them, runs them, and reads the outputs back.

use std::collections::BTreeMap;

use tilewright_device::{BuildOptions, DeviceError, DeviceHost, POISON, Program as BuiltProgram, RunOptions, Session};
use tilewright_interp::Tensor;
use tilewright_interp::{Argument, Arguments};
use tilewright_ir::{Bindings, Buffer, Diagnostic, PrimFunc, validate};

use super::engine::{Engine, EngineFault, Ran, StageProgram};
use super::layout::shape;
use crate::codegen::{self, Generated, Options, generate_with};

/// An open device.
#[derive(Debug)]
pub struct OpenCl {
    session: Session,
    options: RunOptions,
}

impl OpenCl {
    /// Opens the device that `wanted` selects by index or by a part of its name, or the first one. The driver runs in
    /// this process.
    ///
    /// # Errors
    /// [`EngineFault::Absent`] if there is no such device, [`EngineFault::Error`] if it fails.
    pub fn open(wanted: Option<&str>) -> Result<Self, EngineFault> {
        Self::open_on(&DeviceHost::default(), wanted)
    }

    /// Opens a device as [`OpenCl::open`] does, with its driver in the process that `host` says.
    ///
    /// # Errors
    /// Those of [`OpenCl::open`]. A driver that crashes its own process is an [`EngineFault::Error`].
    pub fn open_on(host: &DeviceHost, wanted: Option<&str>) -> Result<Self, EngineFault> {
        let fault = |error: DeviceError| match fault(&error) {
            EngineFault::Skipped(why) => EngineFault::Absent(why),
            other => other,
        };
        let survey = host.survey();
        let session = survey.select(wanted).and_then(|info| host.open(info)).map_err(fault)?;
        Ok(Self { session, options: RunOptions::default() })
    }

    /// The session on the device.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sets the number of guard bytes after each buffer; 0 for a driver that checks bounds itself.
    #[must_use]
    pub fn guarded_by(mut self, bytes: u64) -> Self {
        self.options.guard_bytes = bytes;
        self
    }

    /// Generates the kernels of a function in the form in which they are run here: with checks of texture accesses.
    ///
    /// # Errors
    /// Those of [`generate_with`].
    pub fn generate(func: &PrimFunc) -> Result<Generated, Vec<Diagnostic>> {
        // Devices do not trap accesses outside of a texture, so the kernels check them. Kernels without textures are not
        // affected.
        generate_with(validate(func)?, &Options { checked: true, placed: false })
    }

    /// Compiles OpenCL C source: that of one program, or of several ([`codegen::join`]).
    ///
    /// # Errors
    /// The compiler rejects the source, or fails.
    pub fn build(&self, source: &str, flags: Vec<String>) -> Result<BuiltProgram, DeviceError> {
        self.session.build(source, &BuildOptions { flags, ..BuildOptions::default() })
    }

    /// Returns what the device lacks for a program, as a sentence; `None` if it lacks nothing.
    pub fn lacks(&self, generated: &Generated) -> Option<String> {
        let info = self.session.info();
        if let Some(buffer) = generated.metadata.buffers.iter().find(|buffer| buffer.image.is_some())
            && !info.images
        {
            return Some(format!("{} has no images, which texture `{}` needs", info.label(), buffer.name));
        }
        let missing = generated.metadata.required_extensions.iter().find(|name| {
            // Devices of OpenCL 1.2 and later may have the type without naming the extension.
            let is_fp64 = generated.target.fp64_extension == Some(name.as_str());
            if is_fp64 { !info.fp64 } else { !info.extensions.contains(name) }
        })?;
        Some(format!("{} lacks {missing}", info.label()))
    }

    /// Generates, builds and launches the kernels of a function.
    fn run_func(&self, func: &PrimFunc, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, EngineFault> {
        let generated = Self::generate(func).map_err(|found| {
            EngineFault::Error(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        if let Some(what) = self.lacks(&generated) {
            return Err(EngineFault::Skipped(what));
        }
        let flags = generated.metadata.build_options.clone();
        let program = self.build(&generated.source, flags).map_err(|error| fault(&error))?;
        self.launch(func, &generated, &program, symbols, arguments)
    }

    /// Runs the kernels of a function that are part of a built program.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub fn launch(
        &self,
        func: &PrimFunc,
        generated: &Generated,
        program: &BuiltProgram,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        let given = kernel_arguments(func, symbols, arguments).map_err(EngineFault::Error)?;
        let plan = generated.plan(&given).map_err(|error| EngineFault::Error(error.to_string()))?;
        let output = self.session.run(program, &plan, &self.options).map_err(|error| fault(&error))?;
        // The kernels recorded the first access outside of a texture; a device would return a border color or nothing.
        if let Some(outside) = generated.outside_texture(&output.buffers, symbols) {
            return Err(EngineFault::Trap { message: outside.to_string(), is_undefined_read: false });
        }
        let data = generated.metadata.buffers.iter().map(|info| &info.data);
        let results: BTreeMap<_, _> = data.zip(output.buffers).collect();
        for (place, param) in func.params.iter().enumerate() {
            let Some(buffer) = func.param_buffer(param) else { continue };
            if let Some(Some(bytes)) = results.get(&buffer.data) {
                arguments.params[place] =
                    Argument::Tensor(from_memory(buffer, bytes, symbols).map_err(EngineFault::Error)?);
            }
        }
        let nanoseconds: u64 = output.launch_nanoseconds.iter().flatten().sum();
        let n_kernels = generated.metadata.kernels.len();
        let kernels = if n_kernels == 1 { "1 kernel".to_owned() } else { format!("{n_kernels} kernels") };
        let mut detail = format!("{kernels}, {}.{:03} ms", nanoseconds / 1_000_000, nanoseconds / 1000 % 1000);
        if generated.report_place().is_some() {
            detail.push_str(", every place in a texture checked");
        }
        if !program.correctly_rounded() {
            detail.push_str(", division is not correctly rounded on this device");
        }
        Ok(Ran { detail, notes: generated.metadata.notes.clone() })
    }
}

impl Engine for OpenCl {
    fn name(&self) -> &'static str {
        codegen::OPENCL.name
    }

    fn device(&self) -> Option<String> {
        Some(self.session.info().label())
    }

    fn run(
        &self,
        program: &StageProgram<'_>,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        match program {
            StageProgram::Func(func) => self.run_func(func, symbols, arguments),
            StageProgram::Definition(_) => {
                Err(EngineFault::Skipped("a definition has no kernels before it is lowered".into()))
            }
        }
    }
}

/// Classifies a device error: no device, or one without a needed feature, is a reason to skip; a device that fails is
/// an error.
fn fault(error: &DeviceError) -> EngineFault {
    // A device may lack images of some format.
    let is_lacking = error.is_absent() || matches!(error, DeviceError::Unsupported { .. });
    if is_lacking { EngineFault::Skipped(error.to_string()) } else { EngineFault::Error(error.to_string()) }
}

/// Returns the arguments as bytes. Undefined elements are filled with a poison value, so that a kernel that reads them
/// shows in the comparison.
fn kernel_arguments(func: &PrimFunc, symbols: &Bindings, arguments: &Arguments) -> Result<codegen::Arguments, String> {
    let mut given = codegen::Arguments { symbols: symbols.clone(), ..codegen::Arguments::default() };
    if func.params.len() != arguments.params.len() {
        return Err(format!("{} arguments for {} parameters", arguments.params.len(), func.params.len()));
    }
    for (param, argument) in func.params.iter().zip(&arguments.params) {
        match (argument, func.param_buffer(param)) {
            (Argument::Tensor(tensor), Some(buffer)) => {
                let bytes = to_memory(buffer, tensor, symbols)?;
                if given.contents.insert(buffer.data.clone(), bytes).is_some() {
                    return Err(format!("two parameters share the memory of `{buffer}`"));
                }
            }
            (Argument::Scalar(value), None) => drop(given.scalars.insert(param.clone(), *value)),
            (Argument::Tensor(_), None) | (Argument::Scalar(_), Some(_)) => {
                return Err(format!("the argument for `{param}` is of the wrong kind"));
            }
        }
    }
    Ok(given)
}

/// Returns the position in memory of each element, in elements, and the size of the memory; `None` if the elements lie
/// in order.
fn element_positions(buffer: &Buffer, symbols: &Bindings) -> Result<Option<(Vec<usize>, usize)>, String> {
    let compact = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
    if compact {
        return Ok(None);
    }
    let extents = shape(&buffer.shape, symbols)?;
    let strides = match &buffer.strides {
        Some(strides) => shape(strides, symbols)?,
        None => (0..extents.len()).map(|axis| extents[axis + 1..].iter().product()).collect(),
    };
    let start = shape(std::slice::from_ref(&buffer.elem_offset), symbols)?[0];
    let total: u64 = extents.iter().product();
    let mut places = Vec::new();
    for element in 0..total {
        let index = super::compare::index_of(usize::try_from(element).unwrap_or(usize::MAX), &extents);
        let place: u64 = index.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
        places.push(usize::try_from(place + start).map_err(|error| error.to_string())?);
    }
    let last: u64 = extents.iter().zip(&strides).map(|(extent, stride)| extent.saturating_sub(1) * stride).sum();
    let size = if buffer.strides.is_some() { last + 1 } else { total };
    Ok(Some((places, usize::try_from(start + size).map_err(|error| error.to_string())?)))
}

/// Returns the bytes of a tensor in the memory of a buffer, with its strides and offset.
fn to_memory(buffer: &Buffer, tensor: &Tensor, symbols: &Bindings) -> Result<Vec<u8>, String> {
    let mut bytes = tensor.bytes().to_vec();
    let lane = bytes.len() / tensor.lane_count().max(1);
    for (place, _) in tensor.defined().iter().enumerate().filter(|(_, defined)| !**defined) {
        bytes[place * lane..(place + 1) * lane].fill(POISON);
    }
    let Some((places, size)) = element_positions(buffer, symbols)? else {
        return Ok(bytes);
    };
    let element = lane * usize::from(tensor.dtype().lanes);
    let mut spread = vec![POISON; size * element];
    for (from, to) in places.iter().enumerate() {
        spread[to * element..(to + 1) * element].copy_from_slice(&bytes[from * element..(from + 1) * element]);
    }
    Ok(spread)
}

/// Returns the tensor in the memory of a buffer.
fn from_memory(buffer: &Buffer, bytes: &[u8], symbols: &Bindings) -> Result<Tensor, String> {
    let extents = shape(&buffer.shape, symbols)?;
    let packed = match element_positions(buffer, symbols)? {
        None => bytes.to_vec(),
        Some((places, size)) => {
            let element = bytes.len() / size.max(1);
            places.iter().flat_map(|&from| bytes[from * element..(from + 1) * element].iter().copied()).collect()
        }
    };
    Tensor::from_bytes(buffer.dtype, &extents, packed).map_err(|error| error.to_string())
}
