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
//! | `--group=N` | at most N work-items in a group, for a device whose `CL_DEVICE_MAX_WORK_GROUP_SIZE` is smaller |

use std::str::FromStr;

use tilewright_ir::{PoolRules, TextureLimits};

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name, as it is written on the command line.
    pub name: &'static str,
    /// Whether tensors are kept in textures.
    pub textures: bool,
    /// The largest texture.
    pub limits: TextureLimits,
    /// The width of a texture pool is a multiple of this number of texels.
    pub pitch: u64,
    /// The most work-items of a group that kernels use.
    pub group: u64,
}

/// The known targets.
pub static PROFILES: [Profile; 3] = [
    Profile { name: "opencl", textures: false, limits: TextureLimits::PROMISED, pitch: 1, group: 256 },
    Profile {
        name: "opencl --device=adreno",
        textures: true,
        limits: TextureLimits { width: 16384, height: 16384 },
        pitch: 1,
        group: 256,
    },
    Profile { name: "opencl --device=mali", textures: true, limits: TextureLimits::PROMISED, pitch: 1, group: 256 },
];

impl Profile {
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
        let (mut name, mut pitch, mut group) = ("opencl".to_owned(), None, None);
        for option in words {
            let is_second = match option.split_once('=') {
                Some(("--device", _)) => {
                    let is_second = name.contains("--device=");
                    name = format!("{name} {option}");
                    is_second
                }
                Some(("--pitch", value)) => pitch.replace(size(option, value)?).is_some(),
                Some(("--group", value)) => group.replace(size(option, value)?).is_some(),
                Some(_) | None => {
                    return Err(format!(
                        "`{option}` is no option of the target `opencl`; the targets are {}, each with `--pitch=N` and `--group=N`",
                        known()
                    ));
                }
            };
            if is_second {
                return Err(format!("`{option}` repeats an option of the target"));
            }
        }
        let found = PROFILES.iter().find(|profile| profile.name == name).cloned();
        let mut profile =
            found.ok_or_else(|| format!("there is no device of this name in `{name}`; the targets are {}", known()))?;
        profile.pitch = pitch.unwrap_or(profile.pitch);
        profile.group = group.unwrap_or(profile.group);
        Ok(profile)
    }
}

/// The targets, as part of a message.
fn known() -> String {
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
        assert_eq!((narrow.name, narrow.pitch, narrow.group), ("opencl --device=mali", 64, 32));
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
        ] {
            assert!(wrong.parse::<Profile>().is_err(), "{wrong}");
        }
    }
}
