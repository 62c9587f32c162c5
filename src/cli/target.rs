//! The option `--target` of networks: a target by name, or one that is read from a device.
//!
//! ```text
//! opencl --device=adreno --half     a row of the table in tilewright-network, with options
//! device                            the first OpenCL device: its largest images, the alignment of pitches, its groups
//! device:1 --pitch=8                another one, by its number or a part of its name, with options
//! ```

use std::str::FromStr;

use tilewright_device::{DeviceHost, DeviceInfo};
use tilewright_ir::TextureLimits;

use super::failure::Failure;
use crate::network::profile::{GROUP, OPTIONS, PROFILES, Profile, TargetOptions};

/// What a network is planned for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A target by name.
    Named(Profile),
    /// A device of this machine.
    Device {
        /// Its number or a part of its name; the first device if absent.
        id: Option<String>,
        /// Options that replace what the device says.
        options: TargetOptions,
    },
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let id = match first.split_once(':') {
            Some(("device", "")) => return Err("`device:` names no device".to_owned()),
            Some(("device", id)) => Some(id.to_owned()),
            None if first == "device" => None,
            Some(_) | None => {
                let named = text.parse().map(Self::Named);
                return named.map_err(|why| format!("{why}; or `device` or `device:ID`, to read it from a device"));
            }
        };
        let mut options = TargetOptions::default();
        for option in words {
            if !options.read(option)? {
                return Err(format!("`{option}` is no option of a device, which has {OPTIONS}"));
            }
        }
        Ok(Self::Device { id, options })
    }
}

impl Target {
    /// The target, read from the device if it is one; without a target, a device with textures.
    ///
    /// # Errors
    /// There is no such device, or it has no images of half floats and `--half` asks for them.
    pub(super) fn profile(target: Option<&Self>, host: &DeviceHost) -> Result<Profile, Failure> {
        let (id, options) = match target {
            None => return Ok(PROFILES[1].clone()),
            Some(Self::Named(profile)) => return Ok(profile.clone()),
            Some(Self::Device { id, options }) => (id.as_deref(), options),
        };
        let wrong = |what: String| {
            Failure::plain("<arguments>", "no-device", format!("--target reads a device, and {what}"))
                .with_help("`tilewright devices` lists them; or name a target, such as `opencl --device=adreno`")
        };
        let devices = host.devices().map_err(|error| wrong(error.to_string()))?;
        let info = tilewright_device::select(&devices, id).map_err(|error| wrong(error.to_string()))?;
        if options.half && !info.half_images {
            let message = format!("--half needs images of half floats, and {} lists none", info.label());
            return Err(Failure::plain("<arguments>", "no-half-images", message)
                .with_help("leave out --half, or name another device of `tilewright devices`"));
        }
        Ok(options.applied(of_device(info)))
    }
}

/// What a device says of itself. Without images, nothing is kept in textures.
fn of_device(info: &DeviceInfo) -> Profile {
    let limits = if info.images {
        TextureLimits { width: info.image2d_max_width, height: info.image2d_max_height }
    } else {
        TextureLimits::PROMISED
    };
    Profile {
        name: format!("device {}", info.label()).into(),
        textures: info.images,
        limits,
        pitch: info.image_pitch_alignment.max(1),
        // Larger groups are allowed by some devices, but not by all kernels on them.
        group: info.max_work_group_size.min(info.max_work_item_sizes[0]).clamp(1, GROUP),
        half: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_or_a_device() {
        assert_eq!("opencl".parse(), Ok(Target::Named(PROFILES[0].clone())));
        let first = Target::Device { id: None, options: TargetOptions::default() };
        assert_eq!("device".parse(), Ok(first));
        let options = TargetOptions { pitch: Some(8), group: None, half: true };
        assert_eq!("device:pocl --half --pitch=8".parse(), Ok(Target::Device { id: Some("pocl".to_owned()), options }));
        for wrong in ["device:", "device --device=mali", "device:0 1", "devices", "device --half --half"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }
}
