//! Generated kernels on an OpenCL device, as an engine.

use std::collections::BTreeMap;

use tilewright_device::{BuildOptions, DeviceError, DeviceHost, POISON, Program as Built, RunOptions, Session};
use tilewright_interp::Tensor;
use tilewright_interp::{Argument, Arguments};
use tilewright_ir::{Bindings, Buffer, Diagnostic, PrimFunc, validate};

use super::engine::{Engine, Fault, Program, Ran};
use super::layout::shape;
use crate::codegen::{self, Generated, Options, generate_with};

/// A device, opened.
#[derive(Debug)]
pub struct OpenCl {
    session: Session,
    options: RunOptions,
}

impl OpenCl {
    /// The device for `wanted` (an index or part of a name), or the first one, in this process.
    ///
    /// # Errors
    /// [`Fault::Absent`] where there is no device, [`Fault::Error`] where there is one that fails.
    pub fn open(wanted: Option<&str>) -> Result<Self, Fault> {
        Self::open_on(&DeviceHost::default(), wanted)
    }

    /// Opens the device as [`OpenCl::open`] does, with its driver running where `host` says.
    ///
    /// # Errors
    /// As [`OpenCl::open`]; a driver that takes its own process down is [`Fault::Error`].
    pub fn open_on(host: &DeviceHost, wanted: Option<&str>) -> Result<Self, Fault> {
        let fault = |error: DeviceError| match fault(&error) {
            Fault::Skipped(why) => Fault::Absent(why),
            other => other,
        };
        let survey = host.survey();
        let session = survey.select(wanted).and_then(|info| host.open(info)).map_err(fault)?;
        Ok(Self { session, options: RunOptions::default() })
    }

    /// The device, opened.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The same device with this many guard bytes after each buffer: none for a driver that looks at bounds itself.
    #[must_use]
    pub fn guarded_by(mut self, bytes: u64) -> Self {
        self.options.guard_bytes = bytes;
        self
    }

    /// The kernels of a function, as they are run here.
    ///
    /// # Errors
    /// See [`generate_with`].
    pub fn generate(func: &PrimFunc) -> Result<Generated, Vec<Diagnostic>> {
        // Devices do not trap what is outside of a texture; kernels that access none are the same either way.
        generate_with(validate(func)?, &Options { checked: true, placed: false })
    }

    /// Compiles a source: that of one program, or of several ([`codegen::join`]).
    ///
    /// # Errors
    /// The compiler refuses it, or fails.
    pub fn build(&self, source: &str, flags: Vec<String>) -> Result<Built, DeviceError> {
        self.session.build(source, &BuildOptions { flags, ..BuildOptions::default() })
    }

    /// What the device lacks for a program; none if it has all.
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

    fn run_func(&self, func: &PrimFunc, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, Fault> {
        let generated = Self::generate(func)
            .map_err(|found| Fault::Error(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        if let Some(what) = self.lacks(&generated) {
            return Err(Fault::Skipped(what));
        }
        let flags = generated.metadata.build_options.clone();
        let program = self.build(&generated.source, flags).map_err(|error| fault(&error))?;
        self.launch(func, &generated, &program, symbols, arguments)
    }

    /// Runs the kernels of a function in a program that holds them.
    ///
    /// # Errors
    /// As for [`Engine::run`].
    pub fn launch(
        &self,
        func: &PrimFunc,
        generated: &Generated,
        program: &Built,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, Fault> {
        let given = given(func, symbols, arguments).map_err(Fault::Error)?;
        let plan = generated.plan(&given).map_err(|error| Fault::Error(error.to_string()))?;
        let output = self.session.run(program, &plan, &self.options).map_err(|error| fault(&error))?;
        if let Some(outside) = generated.outside_texture(&output.buffers, symbols) {
            return Err(Fault::Trap { message: outside.to_string(), is_undefined_read: false });
        }
        let data = generated.metadata.buffers.iter().map(|info| &info.data);
        let results: BTreeMap<_, _> = data.zip(output.buffers).collect();
        for (place, param) in func.params.iter().enumerate() {
            let Some(buffer) = func.param_buffer(param) else { continue };
            if let Some(Some(bytes)) = results.get(&buffer.data) {
                arguments.params[place] = Argument::Tensor(read(buffer, bytes, symbols).map_err(Fault::Error)?);
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

    fn run(&self, program: &Program<'_>, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, Fault> {
        match program {
            Program::Func(func) => self.run_func(func, symbols, arguments),
            Program::Definition(_) => Err(Fault::Skipped("a definition has no kernels before it is lowered".into())),
        }
    }
}

/// No device is a reason to skip; a device that fails is not.
fn fault(error: &DeviceError) -> Fault {
    // A device without images of some type is not at fault either.
    let is_lacking = error.is_absent() || matches!(error, DeviceError::Unsupported { .. });
    if is_lacking { Fault::Skipped(error.to_string()) } else { Fault::Error(error.to_string()) }
}

/// The arguments as bytes. What is not defined is poisoned, so that a kernel that reads it shows.
fn given(func: &PrimFunc, symbols: &Bindings, arguments: &Arguments) -> Result<codegen::Arguments, String> {
    let mut given = codegen::Arguments { symbols: symbols.clone(), ..codegen::Arguments::default() };
    if func.params.len() != arguments.params.len() {
        return Err(format!("{} arguments for {} parameters", arguments.params.len(), func.params.len()));
    }
    for (param, argument) in func.params.iter().zip(&arguments.params) {
        match (argument, func.param_buffer(param)) {
            (Argument::Tensor(tensor), Some(buffer)) => {
                let bytes = memory(buffer, tensor, symbols)?;
                if given.contents.insert(buffer.data.clone(), bytes).is_some() {
                    return Err(format!("two parameters share the memory of `{buffer}`"));
                }
            }
            (Argument::Scalar(value), None) => drop(given.scalars.insert(param.clone(), *value)),
            _ => return Err(format!("the argument for `{param}` is of the wrong kind")),
        }
    }
    Ok(given)
}

/// The place of each element in memory, in elements, and the number of elements there are; none if they lie in order.
fn places(buffer: &Buffer, symbols: &Bindings) -> Result<Option<(Vec<usize>, usize)>, String> {
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

/// A tensor as it lies in a buffer's memory.
fn memory(buffer: &Buffer, tensor: &Tensor, symbols: &Bindings) -> Result<Vec<u8>, String> {
    let mut bytes = tensor.bytes().to_vec();
    let lane = bytes.len() / tensor.lane_count().max(1);
    for (place, _) in tensor.defined().iter().enumerate().filter(|(_, defined)| !**defined) {
        bytes[place * lane..(place + 1) * lane].fill(POISON);
    }
    let Some((places, size)) = places(buffer, symbols)? else {
        return Ok(bytes);
    };
    let element = lane * usize::from(tensor.dtype().lanes);
    let mut spread = vec![POISON; size * element];
    for (from, to) in places.iter().enumerate() {
        spread[to * element..(to + 1) * element].copy_from_slice(&bytes[from * element..(from + 1) * element]);
    }
    Ok(spread)
}

/// The tensor in a buffer's memory.
fn read(buffer: &Buffer, bytes: &[u8], symbols: &Bindings) -> Result<Tensor, String> {
    let extents = shape(&buffer.shape, symbols)?;
    let packed = match places(buffer, symbols)? {
        None => bytes.to_vec(),
        Some((places, size)) => {
            let element = bytes.len() / size.max(1);
            places.iter().flat_map(|&from| bytes[from * element..(from + 1) * element].iter().copied()).collect()
        }
    };
    Tensor::from_bytes(buffer.dtype, &extents, packed).map_err(|error| error.to_string())
}
