//! Checks of plans before a driver sees them: drivers answer a wrong size with a bare code, and some with a crash.

use super::cl::{AddressSpace, Argument};
use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::plan::{Arg, BufferSpec, Initial, Launch, LaunchPlan, MemoryKind, POISON, RunOptions, Scalar, Snapshot};

/// Checks a plan against itself and against the limits of the device. The limits of the kernels are checked when the
/// kernels are prepared.
pub(crate) fn check_plan(plan: &LaunchPlan, info: &DeviceInfo, options: &RunOptions) -> Result<(), DeviceError> {
    let mut total = 0_u64;
    for spec in &plan.buffers {
        check_shape(spec)?;
        check_extents(spec, info)?;
        let bytes = allocated_bytes(spec, options);
        at_most(format!("bytes of `{}`", spec.name), bytes, info.max_alloc_bytes)?;
        total = total.saturating_add(bytes);
    }
    at_most("bytes of all buffers together".into(), total, info.global_memory_bytes)?;
    options.snapshots.iter().try_for_each(|snapshot| check_snapshot(*snapshot, plan))?;
    plan.launches.iter().try_for_each(|launch| check_launch(launch, plan, info))
}

/// The number of bytes to allocate for `spec`, including the guard band of a buffer; at least one byte, or one texel of an
/// image, because OpenCL has no empty memory objects.
pub(crate) fn allocated_bytes(spec: &BufferSpec, options: &RunOptions) -> u64 {
    match spec.kind {
        MemoryKind::Buffer => spec.bytes.saturating_add(options.guard_bytes).max(1),
        MemoryKind::Image2d { format, .. } => spec.bytes.max(format.texel_bytes()),
    }
}

/// Checks that `asked` is at most `limit`; otherwise the error names `what`, a quantity with its unit.
pub(crate) fn at_most(what: String, asked: u64, limit: u64) -> Result<(), DeviceError> {
    if asked <= limit { Ok(()) } else { Err(DeviceError::Limit { what, asked, limit }) }
}

/// Checks that the data of a buffer has its size, that the size of an image is that of its texels, and that scratch memory
/// is an image without contents that is not read back.
fn check_shape(spec: &BufferSpec) -> Result<(), DeviceError> {
    let name = &spec.name;
    if let Initial::Data(data) = &spec.initial
        && u64::try_from(data.len()) != Ok(spec.bytes)
    {
        let (bytes, len) = (spec.bytes, data.len());
        return Err(DeviceError::Plan(format!("`{name}` has {bytes} bytes, its data {len}")));
    }
    // A texture of the pool holds what its last user left and may be larger than asked for, so it can be neither
    // initialised nor read back as a whole.
    let lends =
        matches!(spec.kind, MemoryKind::Image2d { .. }) && spec.initial == Initial::Fill(POISON) && !spec.read_back;
    if spec.scratch && !lends {
        return Err(DeviceError::Plan(format!(
            "`{name}` is to come from the pool of textures: only an image without contents that is not read back can"
        )));
    }
    if let MemoryKind::Image2d { width, height, format } = spec.kind {
        let texels = width.saturating_mul(height);
        let bytes = texels.saturating_mul(format.texel_bytes());
        if bytes != spec.bytes {
            return Err(DeviceError::Plan(format!(
                "image `{name}` of {width} by {height} texels has {bytes} bytes, the plan says {}",
                spec.bytes
            )));
        }
    }
    Ok(())
}

/// Checks that the launch and the memory of a snapshot exist.
fn check_snapshot(Snapshot { after, memory }: Snapshot, plan: &LaunchPlan) -> Result<(), DeviceError> {
    if after >= plan.launches.len() {
        let count = plan.launches.len();
        return Err(DeviceError::Plan(format!("a snapshot is taken after launch {after} of {count}")));
    }
    if memory >= plan.buffers.len() {
        let count = plan.buffers.len();
        return Err(DeviceError::Plan(format!("a snapshot is taken of buffer {memory} of {count}")));
    }
    Ok(())
}

/// Checks that the device has images, and that the extents of an image are within its limits.
fn check_extents(spec: &BufferSpec, info: &DeviceInfo) -> Result<(), DeviceError> {
    let MemoryKind::Image2d { width, height, .. } = spec.kind else {
        return Ok(());
    };
    if !info.images {
        return Err(DeviceError::Unsupported {
            device: info.label(),
            feature: format!("images, which `{}` needs", spec.name),
        });
    }
    let what = |axis| format!("{axis} in texels of image `{}`", spec.name);
    at_most(what("width"), width, info.image2d_max_width)?;
    at_most(what("height"), height, info.image2d_max_height)
}

/// Checks that the memory of a launch exists, and that its sizes are within the limits of the device.
fn check_launch(launch: &Launch, plan: &LaunchPlan, info: &DeviceInfo) -> Result<(), DeviceError> {
    let kernel = &launch.kernel;
    let mut local_bytes = 0_u64;
    for arg in &launch.args {
        match arg {
            Arg::Memory(index) if *index >= plan.buffers.len() => {
                let count = plan.buffers.len();
                return Err(DeviceError::Plan(format!("kernel `{kernel}` is given buffer {index} of {count}")));
            }
            Arg::Local(bytes) => local_bytes = local_bytes.saturating_add(*bytes),
            Arg::Memory(_) | Arg::Scalar(_) => {}
        }
    }
    let what = format!("local memory in bytes of kernel `{kernel}`");
    at_most(what, local_bytes, info.local_memory_bytes)?;
    let largest = if info.address_bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
    for (axis, &global) in launch.global.iter().enumerate() {
        at_most(format!("global size along axis {axis} of kernel `{kernel}`"), global, largest)?;
    }
    launch.local.map_or(Ok(()), |local| check_group(launch, local, info))
}

/// Checks that the work-group divides the global size and is within the limits of the device.
fn check_group(launch: &Launch, local: [u64; 3], info: &DeviceInfo) -> Result<(), DeviceError> {
    let kernel = &launch.kernel;
    for axis in 0..3 {
        let (global, local, limit) = (launch.global[axis], local[axis], info.max_work_item_sizes[axis]);
        // OpenCL before 2.0 allows no remainder, and later versions only for kernels compiled so.
        if local == 0 || global % local != 0 {
            return Err(DeviceError::Plan(format!(
                "kernel `{kernel}`: local size {local} does not divide global size {global} along axis {axis}"
            )));
        }
        at_most(format!("local size along axis {axis} of kernel `{kernel}`"), local, limit)?;
    }
    let size = local.iter().fold(1_u64, |size, &extent| size.saturating_mul(extent));
    at_most(format!("work-group size of kernel `{kernel}`"), size, info.max_work_group_size)
}

/// Checks an argument against the declaration of its parameter, because drivers silently accept a number for a pointer.
///
/// `index` is the position of the argument, and `parameter` the declaration that the driver reports.
pub(crate) fn check_argument(
    kernel: &str,
    index: usize,
    arg: &Arg,
    parameter: &Argument,
    plan: &LaunchPlan,
) -> Result<(), DeviceError> {
    let type_name = &parameter.type_name;
    let is_image = type_name.starts_with("image");
    let (fits, given) = match arg {
        Arg::Memory(place) => {
            let is_given_image =
                matches!(plan.buffers.get(*place).map(|spec| spec.kind), Some(MemoryKind::Image2d { .. }));
            let fits = if is_image {
                // Plans have images of two dimensions only, so a kernel for another kind cannot be launched.
                is_given_image && type_name.starts_with("image2d_t")
            } else {
                !is_given_image && parameter.space == AddressSpace::Memory
            };
            (fits, if is_given_image { "an image" } else { "a buffer" }.to_owned())
        }
        Arg::Local(bytes) => (parameter.space == AddressSpace::Local, format!("{bytes} bytes of local memory")),
        Arg::Scalar(scalar) => {
            let len = scalar.to_bytes().len();
            // The size of a structure is known to the driver only.
            let is_size = value_bytes(type_name).is_none_or(|bytes| bytes == len);
            let is_private = parameter.space == AddressSpace::Private && !is_image;
            (is_private && is_size, format!("{} of {len} bytes", describe(scalar)))
        }
    };
    if fits {
        return Ok(());
    }
    Err(DeviceError::Plan(format!("kernel `{kernel}`: argument {index} is declared `{type_name}` and given {given}")))
}

/// The words for a scalar in a message.
fn describe(scalar: &Scalar) -> &'static str {
    if matches!(scalar, Scalar::Bytes(_)) { "raw bytes" } else { "a value" }
}

/// The size in bytes of a scalar or vector of the OpenCL C type `name`; `None` for a type that is not built in. A vector of
/// three lanes has the size of one of four.
fn value_bytes(name: &str) -> Option<usize> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let (base, lanes) = match digits {
        "" => (name, 1),
        "2" | "4" | "8" | "16" => (&name[..name.len() - digits.len()], digits.parse().ok()?),
        "3" => (&name[..name.len() - 1], 4),
        _ => return None,
    };
    let bytes = match base {
        "char" | "uchar" | "unsigned char" => 1,
        "short" | "ushort" | "unsigned short" | "half" => 2,
        "int" | "uint" | "unsigned int" | "float" => 4,
        "long" | "ulong" | "unsigned long" | "double" => 8,
        _ => return None,
    };
    Some(bytes * lanes)
}

#[cfg(test)]
mod tests {
    use super::value_bytes;

    #[test]
    fn sizes_of_types_are_those_of_opencl_c() {
        let cases = [
            ("int", Some(4)),
            ("half", Some(2)),
            ("float3", Some(16)),
            ("uchar16", Some(16)),
            ("double2", Some(16)),
            ("float5", None),
            ("image2d_t", None),
            ("struct shape", None),
            ("", None),
        ];
        for (name, bytes) in cases {
            assert_eq!(value_bytes(name), bytes, "{name}");
        }
    }
}
