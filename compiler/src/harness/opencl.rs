//! OpenCL devices as an engine: generates kernels, builds them, runs them, and reads the outputs back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_device::{BuildOptions, DeviceError, DeviceHost, POISON, Program as BuiltProgram, RunOptions, Session};
use tilewright_interp::Tensor;
use tilewright_interp::{Argument, Arguments};
use tilewright_ir::{Bindings, Buffer, Diagnostic, PrimFunc};

use super::compare::{self, Tolerance};
use super::engine::{Engine, EngineFault, Ran, StageProgram};
use super::layout::shape;
use super::places::AxisTables;
use crate::codegen::{self, Generated, Kernels};

/// The flag of OpenCL compilers that turns their optimiser off (OpenCL 1.2, section 5.6.4.4).
pub const NOT_OPTIMISED: &str = "-cl-opt-disable";

/// An open device; clones share it.
#[derive(Clone, Debug)]
pub struct OpenCl {
    session: Arc<Session>,
    options: RunOptions,
    /// Flags for each program, besides its own.
    flags: Vec<String>,
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
    /// Those of [`OpenCl::open`]. A driver that crashes its own process is an [`EngineFault::Lost`].
    pub fn open_on(host: &DeviceHost, wanted: Option<&str>) -> Result<Self, EngineFault> {
        let fault = |error: DeviceError| match fault(&error) {
            EngineFault::Skipped(why) => EngineFault::Absent(why),
            other => other,
        };
        let survey = host.survey();
        let session = survey.select(wanted).and_then(|info| host.open(info)).map_err(fault)?;
        Ok(Self { session: Arc::new(session), options: RunOptions::default(), flags: Vec::new() })
    }

    /// The device with a compiler that does not optimise, opened once more: the process of a driver may be lost. `None` if it does not
    /// open.
    pub fn without_optimiser(&self) -> Option<Self> {
        let session = Arc::new(self.session.reopened().ok()?);
        Some(Self { session, flags: vec![NOT_OPTIMISED.to_owned()], ..self.clone() })
    }

    /// Opens the same device again, with its driver in the process that `host` chooses.
    ///
    /// # Errors
    /// [`EngineFault::Lost`] if the process cannot be started, [`EngineFault::Error`] if the device does not open.
    pub fn on(&self, host: &DeviceHost) -> Result<Self, EngineFault> {
        let session = host.open(self.session.info()).map_err(|error| fault(&error))?;
        Ok(Self { session: Arc::new(session), ..self.clone() })
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

    /// Compiles OpenCL C source: that of one program, or of several ([`codegen::join`]).
    ///
    /// # Errors
    /// The compiler rejects the source, or fails.
    pub fn build(&self, source: &str, mut flags: Vec<String>) -> Result<BuiltProgram, DeviceError> {
        flags.extend(self.flags.iter().cloned());
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

    /// Builds and runs the kernels of a function as `compile` writes them. If they access textures, the form that tests each
    /// place runs before: it reports an access outside of a texture, and its outputs must be the same.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub fn run_kernels(
        &self,
        func: &PrimFunc,
        kernels: &Kernels,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        let Some(checked) = kernels.checked() else {
            return self.build_and_launch(func, kernels.plain(), symbols, arguments);
        };
        let mut tested = arguments.clone();
        let tests = self.build_and_launch(func, checked, symbols, &mut tested)?;
        let mut ran = self.build_and_launch(func, kernels.plain(), symbols, arguments)?;
        if let Some(name) = difference(func, &tested, arguments) {
            let text =
                format!("the kernels that test each place in a texture give another `{name}` than those without");
            return Err(EngineFault::Error(text));
        }
        ran.sources.splice(0..0, tests.sources);
        ran.detail.push_str(", run with every place in a texture checked and as compiled");
        Ok(ran)
    }

    /// Builds kernels and launches them.
    fn build_and_launch(
        &self,
        func: &PrimFunc,
        generated: &Generated,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        if let Some(what) = self.lacks(generated) {
            return Err(EngineFault::Skipped(what));
        }
        let flags = generated.metadata.build_options.clone();
        let program = self.build(&generated.source, flags).map_err(|error| fault(&error))?;
        self.launch(func, generated, &program, symbols, arguments)
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
        let mut results: BTreeMap<_, _> = data.zip(output.buffers).collect();
        for (place, param) in func.params.iter().enumerate() {
            let Some(buffer) = func.param_buffer(param) else { continue };
            if let Some(Some(bytes)) = results.remove(&buffer.data) {
                arguments.params[place] =
                    Argument::Tensor(from_memory(buffer, bytes, symbols).map_err(EngineFault::Error)?);
            }
        }
        let nanoseconds: u64 = output.launch_nanoseconds.iter().flatten().sum();
        let n_kernels = generated.metadata.kernels.len();
        let kernels = if n_kernels == 1 { "1 kernel".to_owned() } else { format!("{n_kernels} kernels") };
        let mut detail = format!("{kernels}, {}.{:03} ms", nanoseconds / 1_000_000, nanoseconds / 1000 % 1000);
        if !program.correctly_rounded() {
            detail.push_str(", division is not correctly rounded on this device");
        }
        let (notes, sources) = (generated.metadata.notes.clone(), vec![generated.source.clone()]);
        Ok(Ran { detail, notes, sources, ..Ran::default() })
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
            StageProgram::Func(func) => {
                let kernels = Kernels::of(func).map_err(|found| refused(&found))?;
                self.run_kernels(func, &kernels, symbols, arguments)
            }
            StageProgram::Definition(_) => {
                Err(EngineFault::Skipped("a definition has no kernels before it is lowered".into()))
            }
        }
    }

    fn unoptimised(&self) -> Option<Box<dyn Engine + '_>> {
        Some(Box::new(self.without_optimiser()?))
    }
}

/// The fault of a program that the code generator refuses.
pub(crate) fn refused(found: &[Diagnostic]) -> EngineFault {
    EngineFault::Error(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Returns the first output that differs between two runs of one program, by name. NaNs are equal, as between engines.
fn difference(func: &PrimFunc, one: &Arguments, other: &Arguments) -> Option<String> {
    let pairs = func.params.iter().zip(one.params.iter().zip(&other.params));
    pairs.into_iter().find_map(|(param, pair)| {
        let (Argument::Tensor(one), Argument::Tensor(other)) = pair else { return None };
        let name = param.name();
        // A driver may vectorise the two forms differently, so functions such as `exp` may be rounded differently.
        let same = compare::tensors(name, one, other, Tolerance::of_func(func));
        same.map_or(true, |found| found.mismatches > 0).then(|| name.to_owned())
    })
}

/// Classifies a device error: no device, or one without a needed feature, is a reason to skip; a kernel that writes out of its
/// buffers is wrong; a device that fails, or a driver whose process ends, is an error.
pub fn fault(error: &DeviceError) -> EngineFault {
    let message = error.to_string();
    match error {
        DeviceError::GuardTouched(_) => EngineFault::Trap { message, is_undefined_read: false },
        DeviceError::Process { .. } => EngineFault::Lost(message),
        // A device may lack images of some format.
        DeviceError::Unsupported { .. } => EngineFault::Skipped(message),
        error if error.is_absent() => EngineFault::Skipped(message),
        _ => EngineFault::Error(message),
    }
}

/// Returns the arguments as bytes. Undefined elements are filled with a poison value, so that a kernel that reads them
/// shows in the comparison.
pub(super) fn kernel_arguments(
    func: &PrimFunc,
    symbols: &Bindings,
    arguments: &Arguments,
) -> Result<codegen::Arguments, String> {
    let mut given = codegen::Arguments { symbols: symbols.clone(), ..codegen::Arguments::default() };
    if func.params.len() != arguments.params.len() {
        return Err(format!("{} arguments for {} parameters", arguments.params.len(), func.params.len()));
    }
    let mut seen = BTreeSet::new();
    for (param, argument) in func.params.iter().zip(&arguments.params) {
        match (argument, func.param_buffer(param)) {
            (Argument::Tensor(tensor), Some(buffer)) => {
                if !seen.insert(buffer.data.clone()) {
                    return Err(format!("two parameters share the memory of `{buffer}`"));
                }
                // The device fills memory without contents by itself.
                if !tensor.is_none_defined() {
                    given.contents.insert(buffer.data.clone(), to_memory(buffer, tensor, symbols)?);
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
fn element_positions(buffer: &Buffer, symbols: &Bindings) -> Result<Option<(AxisTables, usize)>, String> {
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
    let too_large = || format!("the memory of `{buffer}` exceeds that of the host");
    let tables = AxisTables::strided(&extents, &strides, start).ok_or_else(too_large)?;
    let size = tables.size().ok_or_else(too_large)?;
    Ok(Some((tables, size)))
}

/// Returns the bytes of a tensor in the memory of a buffer, with its strides and offset.
fn to_memory(buffer: &Buffer, tensor: &Tensor, symbols: &Bindings) -> Result<Arc<Vec<u8>>, String> {
    let mut bytes = tensor.shared_bytes();
    let lane = bytes.len() / tensor.lane_count().max(1);
    if !tensor.is_all_defined() {
        let bytes = Arc::make_mut(&mut bytes);
        for (place, _) in tensor.defined().iter().enumerate().filter(|(_, defined)| !**defined) {
            bytes[place * lane..(place + 1) * lane].fill(POISON);
        }
    }
    let Some((places, size)) = element_positions(buffer, symbols)? else {
        return Ok(bytes);
    };
    let element = lane * usize::from(tensor.dtype().lanes);
    let mut spread = vec![POISON; size * element];
    places.each(|from, to| {
        spread[to * element..(to + 1) * element].copy_from_slice(&bytes[from * element..(from + 1) * element]);
    });
    Ok(Arc::new(spread))
}

/// Returns the tensor in the memory of a buffer.
fn from_memory(buffer: &Buffer, bytes: Vec<u8>, symbols: &Bindings) -> Result<Tensor, String> {
    let extents = shape(&buffer.shape, symbols)?;
    let packed = match element_positions(buffer, symbols)? {
        None => bytes,
        Some((places, size)) => {
            let element = bytes.len() / size.max(1);
            let mut packed = Vec::new();
            places.each(|_, from| packed.extend_from_slice(&bytes[from * element..(from + 1) * element]));
            packed
        }
    };
    Tensor::from_bytes(buffer.dtype, &extents, packed).map_err(|error| error.to_string())
}
