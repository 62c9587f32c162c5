//! Lists the devices of all drivers.

use std::sync::{Mutex, PoisonError};

use ocl::ffi;

use super::cl;
use crate::error::DeviceError;
use crate::info::{DeviceInfo, DeviceType, Survey};

/// Lists the loader, the devices, and the platforms and devices that failed to answer.
pub(crate) fn survey() -> Survey {
    let mut survey = Survey { loader: cl::loader(), ..Survey::default() };
    for (_, info) in enumerate(&mut survey) {
        survey.devices.push(info);
    }
    survey
}

/// The devices with their handles, in the order of [`devices`](crate::devices). Failures and platforms without devices are
/// added to `survey`.
pub(crate) fn enumerate(survey: &mut Survey) -> Vec<(cl::Device, DeviceInfo)> {
    // The first query starts the drivers. A second thread must not ask meanwhile: some loaders would report that there is
    // no platform, and PoCL 3.1 returns a device without a name and crashes.
    static START: Mutex<()> = Mutex::new(());
    let _turn = START.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    for (platform, handles) in sorted_platforms(&mut survey.faults) {
        if handles.is_empty() {
            survey.empty_platforms.push(platform.clone());
        }
        for handle in handles {
            match describe(handle, &platform, found.len()) {
                Ok(info) => found.push((handle, info)),
                Err(failure) => survey.faults.push(failure.during(format!("a device of {platform}"))),
            }
        }
    }
    found
}

/// The name and the device handles of each platform, sorted by name and version. Platforms that fail to answer are added to
/// `faults`.
fn sorted_platforms(faults: &mut Vec<DeviceError>) -> Vec<(String, Vec<cl::Device>)> {
    let platforms = cl::platforms().unwrap_or_else(|failure| {
        faults.push(failure.during(""));
        Vec::new()
    });
    let mut sorted = Vec::new();
    for platform in platforms {
        let name = platform.text(ffi::CL_PLATFORM_NAME).unwrap_or_default();
        let version = platform.text(ffi::CL_PLATFORM_VERSION).unwrap_or_default();
        match platform.devices() {
            Ok(handles) => sorted.push((name, version, handles)),
            Err(failure) => faults.push(failure.during(format!("platform {name}"))),
        }
    }
    sorted.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    sorted.into_iter().map(|(name, _, handles)| (name, handles)).collect()
}

/// Queries all properties of a device. If the query of an optional property fails, the device counts as lacking it.
///
/// `index` becomes [`DeviceInfo::index`].
fn describe(device: cl::Device, platform: &str, index: usize) -> Result<DeviceInfo, cl::Failure> {
    let flag = |property| device.number(property).map(|value| value != 0);
    let optional = |property| device.number(property).unwrap_or(0);
    let float_config = device.number(ffi::CL_DEVICE_SINGLE_FP_CONFIG)?;
    let images = flag(ffi::CL_DEVICE_IMAGE_SUPPORT)?;
    let mut extensions: Vec<String> =
        device.text(ffi::CL_DEVICE_EXTENSIONS)?.split_whitespace().map(str::to_owned).collect();
    extensions.sort();
    let has = |name: &str| extensions.iter().any(|extension| extension == name);
    let sizes = device.sizes(ffi::CL_DEVICE_MAX_WORK_ITEM_SIZES)?;
    let size = |axis: usize| sizes.get(axis).copied().unwrap_or(1);
    let available = flag(ffi::CL_DEVICE_AVAILABLE)? && flag(ffi::CL_DEVICE_COMPILER_AVAILABLE)?;
    Ok(DeviceInfo {
        index,
        platform: platform.to_owned(),
        name: device.text(ffi::CL_DEVICE_NAME)?,
        vendor: device.text(ffi::CL_DEVICE_VENDOR)?,
        driver_version: device.text(ffi::CL_DRIVER_VERSION)?,
        opencl_version: device.text(ffi::CL_DEVICE_VERSION)?,
        opencl_c_version: device.text(ffi::CL_DEVICE_OPENCL_C_VERSION).unwrap_or_default(),
        device_type: device_type(device.number(ffi::CL_DEVICE_TYPE)?),
        available,
        compute_units: device.number(ffi::CL_DEVICE_MAX_COMPUTE_UNITS)?,
        max_work_group_size: device.number(ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE)?,
        max_work_item_sizes: [size(0), size(1), size(2)],
        address_bits: device.number(ffi::CL_DEVICE_ADDRESS_BITS)?,
        global_memory_bytes: device.number(ffi::CL_DEVICE_GLOBAL_MEM_SIZE)?,
        max_alloc_bytes: device.number(ffi::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        local_memory_bytes: device.number(ffi::CL_DEVICE_LOCAL_MEM_SIZE)?,
        images,
        image2d_max_width: if images { optional(ffi::CL_DEVICE_IMAGE2D_MAX_WIDTH) } else { 0 },
        image2d_max_height: if images { optional(ffi::CL_DEVICE_IMAGE2D_MAX_HEIGHT) } else { 0 },
        image_pitch_alignment: if images { optional(ffi::CL_DEVICE_IMAGE_PITCH_ALIGNMENT) } else { 0 },
        half_images: images && available && has_half_images(device).unwrap_or(false),
        // An extension before OpenCL 1.2, an optional part of the standard since; drivers report either.
        fp64: has("cl_khr_fp64") || optional(ffi::CL_DEVICE_DOUBLE_FP_CONFIG) != 0,
        fp16: has("cl_khr_fp16"),
        correctly_rounded_divide_sqrt: float_config & ffi::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        denormals: float_config & ffi::CL_FP_DENORM != 0,
        little_endian: flag(ffi::CL_DEVICE_ENDIAN_LITTLE)?,
        extensions,
    })
}

/// Whether a device lists images of half floats. Formats are listed for a context, which is made and dropped.
fn has_half_images(device: cl::Device) -> Result<bool, cl::Failure> {
    let half = cl::ImageFormat { order: ffi::CL_RGBA, channel_type: ffi::CL_HALF_FLOAT };
    cl::Context::new(device)?.supports_image2d(half)
}

/// The kind of a device from its bit field; the first one in this order if several bits are set.
fn device_type(bits: u64) -> DeviceType {
    let kinds = [
        (ffi::CL_DEVICE_TYPE_GPU, DeviceType::Gpu),
        (ffi::CL_DEVICE_TYPE_CPU, DeviceType::Cpu),
        (ffi::CL_DEVICE_TYPE_ACCELERATOR, DeviceType::Accelerator),
    ];
    let kind = kinds.iter().find(|(bit, _)| bits & bit != 0);
    kind.map_or(DeviceType::Other, |(_, kind)| *kind)
}
