//! Which devices there are, and what they can do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::DeviceError;
use crate::opencl;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[cfg(feature = "opencl")]
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

/// The library through which OpenCL is called: it finds the drivers that are installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loader {
    /// This program was built without OpenCL.
    #[default]
    NotBuilt,
    /// There is none on this machine, or it cannot be used: the reason, as the system gives it.
    Missing(String),
    /// It was opened: its path.
    Opened(String),
}

impl fmt::Display for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str("no OpenCL: this program was built without it"),
            Self::Missing(why) => write!(f, "no OpenCL: {why}"),
            Self::Opened(path) => f.write_str(path),
        }
    }
}

/// What there is, and what could not be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Whether there is an OpenCL at all.
    pub loader: Loader,
    /// Every device that answered.
    pub devices: Vec<DeviceInfo>,
    /// The platforms and devices that did not answer.
    pub faults: Vec<DeviceError>,
    /// Names of the platforms that are installed and have no device: a GPU driver without its GPU, PoCL without a
    /// folder to write its cache to.
    pub empty_platforms: Vec<String>,
}

impl Survey {
    /// Every device that answered; a platform that failed is an error only when nothing else is left.
    pub(crate) fn into_devices(mut self) -> Result<Vec<DeviceInfo>, DeviceError> {
        match self.faults.pop() {
            Some(fault) if self.devices.is_empty() => Err(fault),
            _ => Ok(self.devices),
        }
    }

    /// The device for `wanted`, as [`select`] finds it. Where there is none at all, the error says whether that is for want
    /// of a device or of OpenCL, or the failure of the driver that should have had one.
    ///
    /// Errors: as [`select`]; [`DeviceError::NoLoader`]; the first of [`Survey::faults`] if no device answered.
    pub fn select(&self, wanted: Option<&str>) -> Result<&DeviceInfo, DeviceError> {
        if let (true, Some(fault)) = (self.devices.is_empty(), self.faults.first()) {
            return Err(fault.clone());
        }
        match (&self.loader, self.devices.is_empty()) {
            (Loader::NotBuilt | Loader::Missing(_), true) => Err(DeviceError::NoLoader(self.loader.clone())),
            _ => select(&self.devices, wanted),
        }
    }
}

/// Which loader there is; opens it, and starts no driver.
pub fn loader() -> Loader {
    opencl::loader()
}

/// Every device of every platform, by platform name and version, then in the driver's order, asked in this process.
///
/// The order, and with it each device's index, is the same in every process that has the same platforms installed; the
/// loader's own order is that of a directory. No platform or no device is an empty list. A platform that fails does not
/// hide the others; it is an error only when nothing else is left ([`survey`] lists the failures).
pub fn devices() -> Result<Vec<DeviceInfo>, DeviceError> {
    survey().into_devices()
}

/// As [`devices`], with the platforms and devices that failed beside those that answered.
pub fn survey() -> Survey {
    opencl::survey()
}

/// The device for `wanted`: an index, which is written in digits, or a part of a device's or platform's name in upper or
/// lower case, or of the OpenCL version with what the vendor adds to it: some drivers, such as PoCL, have their name only
/// there.
///
/// `None` takes the first one. Digits are an index and never a part of a name: a selector that finds a device today must not
/// find another one where a name happens to hold the number. Errors: [`DeviceError::NoOpenCl`] on an empty list,
/// [`DeviceError::NoDevice`] when nothing matches, and for an empty text, [`DeviceError::Ambiguous`] when several match.
pub fn select<'a>(devices: &'a [DeviceInfo], wanted: Option<&str>) -> Result<&'a DeviceInfo, DeviceError> {
    let first = devices.first().ok_or(DeviceError::NoOpenCl)?;
    let Some(wanted) = wanted else {
        return Ok(first);
    };
    let part = wanted.trim().to_lowercase();
    let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let names = |info: &DeviceInfo| [&info.name, &info.platform, &info.opencl_version].map(|name| name.to_lowercase());
    let is_meant = |info: &&DeviceInfo| match is_index {
        true => part.parse() == Ok(info.index),
        // `3.0` is no name of a version either: it would be OpenCL 3.0 of every device.
        false if part.is_empty() || part.parse::<f64>().is_ok() => false,
        false => names(info).iter().any(|name| name.contains(&part)),
    };
    let matches: Vec<&DeviceInfo> = devices.iter().filter(is_meant).collect();
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
