//! Targets: what a device can do, as far as storage and schedules depend on it.
//!
//! | target | textures | largest texture | work-items of a group | source |
//! |---|---|---|---|---|
//! | `opencl` | not used | 8192x8192 | 256 | OpenCL 1.2, table 4.3: `CL_DEVICE_IMAGE2D_MAX_WIDTH` and `_HEIGHT` are at least 8192 in the full profile; 256 is `max_num_threads` of TVM's target `opencl` |
//! | `opencl --device=adreno` | used | 16384x16384 | 256 | TVM's target `opencl --device=adreno`: `texture_spatial_limit` 16384, `max_num_threads` 256 |
//! | `opencl --device=mali` | used | 8192x8192 | 256 | limits as `opencl`, nothing better is promised for all of them; Arm's OpenCL developer guide for Bifrost and Valhall (101574), section 9.2, recommends groups of 128 or 256 |
//!
//! A target without textures keeps every tensor in scope `global`, which is what the texture RFC prescribes for a target without a
//! rule of its own (L1.1).
//!
//! | option | meaning |
//! |---|---|
//! | `--pitch=N` | the width of each texture is a multiple of N texels. `clCreateImage` makes images of any width, so that the default is 1; an image over a buffer needs the device's `CL_DEVICE_IMAGE_PITCH_ALIGNMENT` (OpenCL 2.0, section 4.2) |
//! | `--half` | textures hold float16 (`CL_HALF_FLOAT`, which every device with images has in the full profile of OpenCL 1.2); kernels read them as float32, accumulate in float32, and round what they store |
//! | `--group=N` | at most N work-items in a group, for a device whose `CL_DEVICE_MAX_WORK_GROUP_SIZE` is smaller |

use std::borrow::Cow;
use std::str::FromStr;

use tilewright_ir::{PoolRules, ScalarType, TextureLimits};

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name, as it is written on the command line; the name of the device, if the target was read from one.
    pub name: Cow<'static, str>,
    /// Whether tensors are kept in textures.
    pub textures: bool,
    /// The largest texture.
    pub limits: TextureLimits,
    /// The width of a texture pool is a multiple of this number of texels.
    pub pitch: u64,
    /// The most work-items of a group that kernels use.
    pub group: u64,
    /// Whether textures hold float16 instead of float32.
    pub half: bool,
}

/// The known targets.
pub static PROFILES: [Profile; 3] = [
    profile("opencl", false, TextureLimits::PROMISED),
    profile("opencl --device=adreno", true, TextureLimits { width: 16384, height: 16384 }),
    profile("opencl --device=mali", true, TextureLimits::PROMISED),
];

/// A target without options.
const fn profile(name: &'static str, textures: bool, limits: TextureLimits) -> Profile {
    Profile { name: Cow::Borrowed(name), textures, limits, pitch: 1, group: GROUP, half: false }
}

/// The most work-items of a group, where nothing smaller is known.
pub const GROUP: u64 = 256;

/// Options that a target may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetOptions {
    /// `--pitch=N`
    pub pitch: Option<u64>,
    /// `--group=N`
    pub group: Option<u64>,
    /// `--half`
    pub half: bool,
}

impl TargetOptions {
    /// Reads one option; `Ok(false)` if it is none of these.
    ///
    /// # Errors
    /// It is given twice, or its value is not possible.
    pub fn read(&mut self, option: &str) -> Result<bool, String> {
        let is_second = match option.split_once('=') {
            Some(("--pitch", value)) => self.pitch.replace(size(option, value)?).is_some(),
            Some(("--group", value)) => self.group.replace(size(option, value)?).is_some(),
            None if option == "--half" => std::mem::replace(&mut self.half, true),
            Some(_) | None => return Ok(false),
        };
        if is_second { Err(repeated(option)) } else { Ok(true) }
    }

    /// The target with these options.
    #[must_use]
    pub fn applied(self, profile: Profile) -> Profile {
        Profile {
            pitch: self.pitch.unwrap_or(profile.pitch),
            group: self.group.unwrap_or(profile.group),
            half: self.half || profile.half,
            ..profile
        }
    }
}

fn repeated(option: &str) -> String {
    format!("`{option}` repeats an option of the target")
}

impl Profile {
    /// The name and what differs from it in the values of tensors.
    pub fn label(&self) -> String {
        format!("{}{}", self.name, if self.half { " --half" } else { "" })
    }

    /// The element type of textures.
    pub fn texture_type(&self) -> ScalarType {
        if self.half { ScalarType::Float16 } else { ScalarType::Float32 }
    }

    /// What the device demands of texture pools.
    pub fn pool_rules(&self) -> PoolRules {
        PoolRules { limits: self.limits, pitch: self.pitch }
    }
}

/// Largest number that an option of a target may have.
const MAX_OPTION: u64 = 1 << 14;

impl FromStr for Profile {
    type Err = String;

    /// Reads a target: its kind, and options in any order, with any number of spaces between them.
    ///
    /// # Errors
    /// The kind or an option is not known, an option is given twice, or its value is not possible.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        if words.next() != Some("opencl") {
            return Err(format!("`{text}` is no target; the targets are {}", known()));
        }
        let (mut name, mut options) = ("opencl".to_owned(), TargetOptions::default());
        for option in words {
            if options.read(option)? {
                continue;
            }
            if !option.starts_with("--device=") {
                return Err(format!(
                    "`{option}` is no option of the target `opencl`; the targets are {}, each with {OPTIONS}",
                    known()
                ));
            }
            if name.contains("--device=") {
                return Err(repeated(option));
            }
            name = format!("{name} {option}");
        }
        let found = PROFILES.iter().find(|profile| profile.name == name).cloned();
        let profile =
            found.ok_or_else(|| format!("there is no device of this name in `{name}`; the targets are {}", known()))?;
        Ok(options.applied(profile))
    }
}

/// The options of [`TargetOptions`], as part of a message.
pub const OPTIONS: &str = "`--pitch=N`, `--group=N` and `--half`";

/// The targets, as part of a message.
pub fn known() -> String {
    PROFILES.iter().map(|profile| format!("`{}`", profile.name)).collect::<Vec<_>>().join(", ")
}

/// The value of an option.
fn size(option: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (1..=MAX_OPTION).contains(number));
    number.ok_or_else(|| format!("`{option}` has no whole number from 1 to {MAX_OPTION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_with_its_options() {
        let adreno: Result<Profile, _> = " opencl   --device=adreno ".parse();
        assert_eq!(adreno, Ok(PROFILES[1].clone()));
        assert_eq!("opencl".parse(), Ok(PROFILES[0].clone()));
        let narrow: Profile = "opencl --pitch=64 --device=mali --group=32".parse().unwrap_or(PROFILES[0].clone());
        assert_eq!((&*narrow.name, narrow.pitch, narrow.group, narrow.half), ("opencl --device=mali", 64, 32, false));
        let half: Profile = "opencl --half --device=adreno".parse().unwrap_or(PROFILES[0].clone());
        assert_eq!((&*half.name, half.texture_type()), ("opencl --device=adreno", ScalarType::Float16));
        for wrong in [
            "",
            "cuda",
            "opencl --device=toaster",
            "opencl -x",
            "opencl --device=mali --device=adreno",
            "opencl --pitch",
            "opencl --pitch=0",
            "opencl --group=half",
            "opencl --pitch=8 --pitch=8",
            "opencl --half=1",
            "opencl --half --half",
        ] {
            assert!(wrong.parse::<Profile>().is_err(), "{wrong}");
        }
    }
}
