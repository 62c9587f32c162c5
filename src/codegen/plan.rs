//! From metadata and arguments to a launch plan.

use std::collections::BTreeMap;

use tilewright_device::{Arg, BufferSpec, Launch, LaunchPlan, Scalar as DeviceScalar};
use tilewright_ir::{Bindings, Diagnostic, Scalar, ScalarType, Var};

use super::Generated;
use super::metadata::{ArgInfo, BufferInfo, KernelInfo, Size};

/// What a program is run on.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Values of symbolic extents.
    pub symbols: Bindings,
    /// Values of scalar parameters.
    pub scalars: BTreeMap<Var, Scalar>,
    /// Contents of buffers by data variable; a buffer that has none starts poisoned.
    pub contents: BTreeMap<Var, Vec<u8>>,
}

fn fault(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("opencl-arguments", None, message)
}

impl Generated {
    /// The memory and launches for given arguments; parameters that kernels write are read back.
    ///
    /// # Errors
    /// A missing value, contents of the wrong size, a buffer of symbolic shape with more elements than the proofs
    /// cover, or an `assert` of the program that does not hold.
    pub fn plan(&self, arguments: &Arguments) -> Result<LaunchPlan, Diagnostic> {
        let mut bindings = arguments.symbols.clone();
        for (var, value) in &arguments.scalars {
            if let Scalar::Int(value) = value {
                bindings.insert(var.clone(), *value);
            }
        }
        for check in &self.metadata.asserts {
            let holds = check.cond.eval_index(&bindings).map_err(|error| fault(error.to_string()))?;
            if holds == 0 {
                return Err(fault(format!("assertion `{}` fails: {}", check.cond, check.message)));
            }
        }
        let buffers = self.metadata.buffers.iter().map(|info| spec(info, &bindings, arguments));
        let launches = self.metadata.kernels.iter().map(|info| self.launch(info, &bindings, arguments));
        Ok(LaunchPlan { buffers: buffers.collect::<Result<_, _>>()?, launches: launches.collect::<Result<_, _>>()? })
    }

    fn launch(&self, info: &KernelInfo, bindings: &Bindings, arguments: &Arguments) -> Result<Launch, Diagnostic> {
        let sizes = |sizes: &[Size; 3]| -> Result<[u64; 3], Diagnostic> {
            Ok([sizes[0].eval(bindings)?, sizes[1].eval(bindings)?, sizes[2].eval(bindings)?])
        };
        let global = sizes(&info.global)?;
        // A launch of no work-items is left out; a group of none is no group.
        let local = info.local.as_ref().map(sizes).transpose()?.filter(|_| !global.contains(&0));
        let args = info.args.iter().map(|arg| match arg {
            ArgInfo::Buffer(place) => Ok(Arg::Memory(*place)),
            ArgInfo::Scalar(place) => {
                let var = &self.metadata.scalars[*place].var;
                let value = arguments.scalars.get(var).copied();
                let value = value.or_else(|| bindings.get(var).map(|&value| Scalar::Int(value)));
                let value = value.ok_or_else(|| fault(format!("`{var}` has no value")))?;
                scalar(var.dtype().scalar, value)
                    .map(Arg::Scalar)
                    .ok_or_else(|| fault(format!("bad value for `{var}`")))
            }
        });
        Ok(Launch { kernel: info.name.clone(), global, local, args: args.collect::<Result<_, _>>()? })
    }
}

fn spec(info: &BufferInfo, bindings: &Bindings, arguments: &Arguments) -> Result<BufferSpec, Diagnostic> {
    let bytes = info.bytes.eval(bindings)?;
    if let Some(most) = info.max_elements {
        let elements = bytes / info.dtype.bytes().max(1);
        if elements > most {
            let text = format!("`{}` has {elements} elements; what is proved holds up to {most}", info.name);
            return Err(fault(text));
        }
    }
    let mut spec = BufferSpec::new(&info.name, bytes);
    if let Some(data) = arguments.contents.get(&info.data) {
        if u64::try_from(data.len()) != Ok(bytes) {
            return Err(fault(format!("`{}` takes {bytes} bytes, {} are given", info.name, data.len())));
        }
        spec = spec.with_data(data.clone());
    }
    Ok(if info.param.is_some() && info.written { spec.read_back() } else { spec })
}

/// A value as the device takes it; none if it is not of the type.
fn scalar(ty: ScalarType, value: Scalar) -> Option<DeviceScalar> {
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
        _ => None,
    }
}
