//! Descriptions of devices, and the selection of one of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::DeviceError;
use crate::opencl;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeviceType {
    /// A host processor, as with PoCL, Oclgrind and the vendors' CPU drivers.
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

/// The properties that a device reports. Plain data; [`Session::open`](crate::Session::open) opens the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // a table of features, each of them there or not
pub struct DeviceInfo {
    /// Position in the list of [`devices`], by which the device can be selected.
    pub index: usize,
    /// Name of the platform, such as `Portable Computing Language`.
    pub platform: String,
    /// Name of the device.
    pub name: String,
    /// Name of the vendor.
    pub vendor: String,
    /// The driver's version, in the vendor's own notation.
    pub driver_version: String,
    /// OpenCL version with the vendor's suffix, such as `OpenCL 3.0 PoCL HSTR: ...`.
    pub opencl_version: String,
    /// OpenCL C version, such as `OpenCL C 1.2 PoCL`.
    pub opencl_c_version: String,
    /// Kind of device.
    pub device_type: DeviceType,
    /// Whether the driver reports that the device can be used and has a compiler.
    pub available: bool,
    /// Number of compute units.
    pub compute_units: u64,
    /// Maximal number of work-items in a work-group.
    pub max_work_group_size: u64,
    /// Maximal number of work-items in a work-group along each of the first three dimensions.
    pub max_work_item_sizes: [u64; 3],
    /// Width of a device pointer and of `size_t` in kernels, in bits.
    pub address_bits: u64,
    /// Global memory in bytes.
    pub global_memory_bytes: u64,
    /// Maximal size of one buffer in bytes.
    pub max_alloc_bytes: u64,
    /// Local memory of a work-group in bytes.
    pub local_memory_bytes: u64,
    /// Whether kernels can use images.
    pub images: bool,
    /// Maximal width of a 2-d image in texels; 0 without images.
    pub image2d_max_width: u64,
    /// Maximal height of a 2-d image in texels; 0 without images.
    pub image2d_max_height: u64,
    /// What the row pitch of an image over a buffer is a multiple of, in texels (`CL_DEVICE_IMAGE_PITCH_ALIGNMENT` of OpenCL 2.0); 0 if the
    /// device does not say.
    pub image_pitch_alignment: u64,
    /// Whether the driver lists 2-d images of four half floats (`CL_RGBA`, `CL_HALF_FLOAT`) that kernels may read and write.
    pub half_images: bool,
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

    /// Whether `other` describes the same device. Sizes are not compared, because a driver may report another memory size at
    /// another time.
    #[cfg(feature = "opencl")]
    pub(crate) fn is_same_device(&self, other: &Self) -> bool {
        (self.index, &self.platform, &self.name) == (other.index, &other.platform, &other.name)
    }

    /// OpenCL version as a pair such as `(1, 2)`; `(0, 0)` if the driver's text does not follow the standard.
    pub fn opencl_version_pair(&self) -> (u32, u32) {
        let version = || {
            let number = self.opencl_version.strip_prefix("OpenCL ")?.split(' ').next()?;
            let (major, minor) = number.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        version().unwrap_or((0, 0))
    }
}

/// The library through which OpenCL is called. It finds the installed drivers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loader {
    /// This program was built without OpenCL.
    #[default]
    NotBuilt,
    /// No loader can be opened on this machine, for this reason, which the system reports.
    Missing(String),
    /// The loader with this path was opened.
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

/// The result of listing all devices, with the failures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The loader, or the reason why there is none.
    pub loader: Loader,
    /// The devices that answered.
    pub devices: Vec<DeviceInfo>,
    /// The errors of the platforms and devices that did not answer.
    pub faults: Vec<DeviceError>,
    /// Names of the installed platforms without a device, such as a GPU driver without its GPU, or PoCL without write
    /// access to the folder of its cache.
    pub empty_platforms: Vec<String>,
}

impl Survey {
    /// The devices that answered. Failures are an error only if no device answered; then the last one is returned.
    pub(crate) fn into_devices(mut self) -> Result<Vec<DeviceInfo>, DeviceError> {
        match self.faults.pop() {
            Some(fault) if self.devices.is_empty() => Err(fault),
            _ => Ok(self.devices),
        }
    }

    /// Selects a device, as [`select`] does. If there is no device at all, the error gives the cause: the failure of a
    /// driver, no OpenCL, or no device.
    ///
    /// # Errors
    /// Those of [`select`]. If no device answered, the first of [`Survey::faults`], or [`DeviceError::NoLoader`].
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

/// Opens the loader and returns its path, or the reason why there is none. Starts no driver.
pub fn loader() -> Loader {
    opencl::loader()
}

/// Lists the devices of all platforms, sorted by name and version of the platform, then in the driver's order. The drivers
/// run in this process.
///
/// The order, and with it each device's index, is the same in every process with the same installed platforms; the loader's
/// own order is that of a directory. Without platforms or devices the list is empty.
///
/// # Errors
/// No device answered, and a driver failed: the last such failure. [`survey`] lists all failures.
pub fn devices() -> Result<Vec<DeviceInfo>, DeviceError> {
    survey().into_devices()
}

/// Lists the devices, as [`devices`] does, together with the platforms and devices that failed.
pub fn survey() -> Survey {
    opencl::survey()
}

/// Selects the device that `wanted` denotes: an index in decimal digits, or, regardless of case, a part of the name of the
/// device or platform or of the OpenCL version. Some drivers, such as PoCL, have their name only in the vendor's suffix of
/// the version.
///
/// `None` selects the first device. Digits are always an index and never a part of a name, so that a selector does not
/// select another device on a machine where a name contains the number.
///
/// # Errors
/// [`DeviceError::NoOpenCl`] if the list is empty, [`DeviceError::NoDevice`] if nothing matches or the text is empty,
/// [`DeviceError::Ambiguous`] if several devices match.
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
        // A bare version number such as `3.0` would match the OpenCL version of every device.
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
