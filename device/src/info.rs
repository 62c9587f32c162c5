//! Which devices there are, and what they can do.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use ocl::ffi;

use crate::cl;
use crate::error::DeviceError;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// A host processor: PoCL, Oclgrind, the vendors' CPU drivers.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Another accelerator.
    Accelerator,
    /// None of these.
    Other,
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
            Self::Other => "other",
        })
    }
}

/// What a device says of itself. Plain data: opening it ([`Session::open`](crate::Session::open)) is another step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // a table of features, each of them there or not
pub struct DeviceInfo {
    /// Place in the list of [`devices`], by which it is selected.
    pub index: usize,
    /// Name of the platform, as `Portable Computing Language`.
    pub platform: String,
    /// Name of the device.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// The driver's version, in the vendor's own notation.
    pub driver_version: String,
    /// OpenCL version and what the vendor adds to it, as `OpenCL 3.0 PoCL HSTR: ...`.
    pub opencl_version: String,
    /// OpenCL C version, as `OpenCL C 1.2 PoCL`.
    pub opencl_c_version: String,
    /// Kind of device.
    pub device_type: DeviceType,
    /// Whether the driver says that it can be used and has a compiler.
    pub available: bool,
    /// Number of compute units.
    pub compute_units: u64,
    /// Work-items in a work-group, at most.
    pub max_work_group_size: u64,
    /// Work-items in a work-group along each of the first three dimensions, at most.
    pub max_work_item_sizes: [u64; 3],
    /// Width of a device pointer and of `size_t` in kernels, in bits.
    pub address_bits: u64,
    /// Global memory in bytes.
    pub global_memory_bytes: u64,
    /// Bytes of one buffer, at most.
    pub max_alloc_bytes: u64,
    /// Local memory of a work-group in bytes.
    pub local_memory_bytes: u64,
    /// Whether kernels can use images.
    pub images: bool,
    /// Width of a 2-d image in texels, at most; 0 without images.
    pub image2d_max_width: u64,
    /// Height of a 2-d image in texels, at most; 0 without images.
    pub image2d_max_height: u64,
    /// Whether kernels can compute with `double`.
    pub fp64: bool,
    /// Whether kernels can compute with `half` (loading and storing it works everywhere).
    pub fp16: bool,
    /// Whether single-precision divide and square root round correctly when asked to at compile time
    /// (`CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT`).
    pub correctly_rounded_divide_sqrt: bool,
    /// Whether single-precision denormal numbers are kept (`CL_FP_DENORM`).
    pub denormals: bool,
    /// Whether the device is little-endian.
    pub little_endian: bool,
    /// Extensions, sorted.
    pub extensions: Vec<String>,
}

impl DeviceInfo {
    /// One line that names the device: `0: pthread-skylake (Portable Computing Language)`.
    pub fn label(&self) -> String {
        format!("{}: {} ({})", self.index, self.name, self.platform)
    }

    /// Whether `other` speaks of the same device; sizes are left out, for a driver may count its memory anew.
    pub(crate) fn is_same_device(&self, other: &Self) -> bool {
        (self.index, &self.platform, &self.name) == (other.index, &other.platform, &other.name)
    }

    /// OpenCL version as a pair, `(1, 2)`; `(0, 0)` where the driver's text does not follow the standard.
    pub fn opencl_version_pair(&self) -> (u32, u32) {
        let version = || {
            let number = self.opencl_version.strip_prefix("OpenCL ")?.split(' ').next()?;
            let (major, minor) = number.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        version().unwrap_or((0, 0))
    }
}

/// What there is, and what could not be asked.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Every device that answered.
    pub devices: Vec<DeviceInfo>,
    /// The platforms and devices that did not answer.
    pub faults: Vec<DeviceError>,
    /// Names of the platforms that are installed and have no device: a GPU driver without its GPU, PoCL without a
    /// folder to write its cache to.
    pub empty_platforms: Vec<String>,
}

/// Every device of every platform, by platform name and version, then in the driver's order.
///
/// The order, and with it each device's index, is the same in every process that has the same platforms installed; the
/// loader's own order is that of a directory. No platform or no device is an empty list. A platform that fails does not
/// hide the others; it is an error only when nothing else is left ([`survey`] lists the failures).
pub fn devices() -> Result<Vec<DeviceInfo>, DeviceError> {
    let mut survey = survey();
    if survey.devices.is_empty()
        && let Some(fault) = survey.faults.pop()
    {
        return Err(fault);
    }
    Ok(survey.devices)
}

/// As [`devices`], with the platforms and devices that failed beside those that answered.
pub fn survey() -> Survey {
    let mut survey = Survey::default();
    for (_, info) in enumerate(&mut survey) {
        survey.devices.push(info);
    }
    survey
}

/// The device for `wanted`: an index, or a part of a device's or platform's name in upper or lower case, or of the
/// OpenCL version with what the vendor adds to it: some drivers, such as PoCL, have their name only there.
///
/// `None` takes the first one. A number that is no index is looked for in the names. Errors:
/// [`DeviceError::NoOpenCl`] on an empty list, [`DeviceError::NoDevice`] when nothing matches,
/// [`DeviceError::Ambiguous`] when several do.
pub fn select<'a>(devices: &'a [DeviceInfo], wanted: Option<&str>) -> Result<&'a DeviceInfo, DeviceError> {
    let first = devices.first().ok_or(DeviceError::NoOpenCl)?;
    let Some(wanted) = wanted else {
        return Ok(first);
    };
    let is_index = |info: &&DeviceInfo| wanted.parse() == Ok(info.index);
    if let Some(info) = devices.iter().find(is_index) {
        return Ok(info);
    }
    let part = wanted.to_lowercase();
    let names = |info: &DeviceInfo| [&info.name, &info.platform, &info.opencl_version].map(|name| name.to_lowercase());
    // A number is no name of a version: 3 is not OpenCL 3.0.
    let n_names = if wanted.parse::<f64>().is_ok() { 2 } else { 3 };
    let is_named = |info: &&DeviceInfo| names(info)[..n_names].iter().any(|name| name.contains(&part));
    let matches: Vec<&DeviceInfo> = devices.iter().filter(is_named).collect();
    let labels = |infos: &[&DeviceInfo]| infos.iter().map(|info| info.label()).collect();
    match matches[..] {
        [only] => Ok(only),
        [] => Err(DeviceError::NoDevice {
            wanted: wanted.to_owned(),
            available: labels(&devices.iter().collect::<Vec<_>>()),
        }),
        _ => Err(DeviceError::Ambiguous { wanted: wanted.to_owned(), matches: labels(&matches) }),
    }
}

/// The devices with their handles, in the order of [`devices`]; what is missing is noted in `survey`.
pub(crate) fn enumerate(survey: &mut Survey) -> Vec<(cl::Device, DeviceInfo)> {
    // The first question starts the drivers up, and a second thread meanwhile gets half an answer: some loaders tell it
    // that there is no platform, PoCL 3.1 hands it a device without a name and crashes.
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

/// Platform names and device handles, sorted by the platforms' names and versions.
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

/// Asks a device for everything. What a device without the feature may refuse to answer counts as absent.
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
    Ok(DeviceInfo {
        index,
        platform: platform.to_owned(),
        name: device.text(ffi::CL_DEVICE_NAME)?,
        vendor: device.text(ffi::CL_DEVICE_VENDOR)?,
        driver_version: device.text(ffi::CL_DRIVER_VERSION)?,
        opencl_version: device.text(ffi::CL_DEVICE_VERSION)?,
        opencl_c_version: device.text(ffi::CL_DEVICE_OPENCL_C_VERSION).unwrap_or_default(),
        device_type: device_type(device.number(ffi::CL_DEVICE_TYPE)?),
        available: flag(ffi::CL_DEVICE_AVAILABLE)? && flag(ffi::CL_DEVICE_COMPILER_AVAILABLE)?,
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
        fp64: has("cl_khr_fp64") || optional(ffi::CL_DEVICE_DOUBLE_FP_CONFIG) != 0,
        fp16: has("cl_khr_fp16"),
        correctly_rounded_divide_sqrt: float_config & ffi::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        denormals: float_config & ffi::CL_FP_DENORM != 0,
        little_endian: flag(ffi::CL_DEVICE_ENDIAN_LITTLE)?,
        extensions,
    })
}

fn device_type(bits: u64) -> DeviceType {
    let kinds = [
        (ffi::CL_DEVICE_TYPE_GPU, DeviceType::Gpu),
        (ffi::CL_DEVICE_TYPE_CPU, DeviceType::Cpu),
        (ffi::CL_DEVICE_TYPE_ACCELERATOR, DeviceType::Accelerator),
    ];
    let kind = kinds.iter().find(|(bit, _)| bits & bit != 0);
    kind.map_or(DeviceType::Other, |(_, kind)| *kind)
}
