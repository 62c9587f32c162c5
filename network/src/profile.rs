//! Targets: what a device can do, as far as storage and schedules depend on it.
//!
//! | target | textures | largest texture | work-items of a group | source |
//! |---|---|---|---|---|
//! | `opencl` | not used | 8192x8192 | 256 | OpenCL 1.2, table 4.3: `CL_DEVICE_IMAGE2D_MAX_WIDTH` and `_HEIGHT` are at least 8192 in the full profile; 256 is `max_num_threads` of TVM's target `opencl` |
//! | `opencl --device=adreno` | used | 16384x16384 | 256 | TVM's target `opencl --device=adreno`: `texture_spatial_limit` 16384, `max_num_threads` 256 |
//! | `opencl --device=mali` | used | 8192x8192 | 256 | as `opencl`; nothing better is promised for all of them |
//!
//! A target without textures keeps every tensor in scope `global`, which is what the texture RFC prescribes for a target without a
//! rule of its own (L1.1).

use std::str::FromStr;

use tilewright_ir::TextureLimits;

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name, as it is written on the command line.
    pub name: &'static str,
    /// Whether tensors are kept in textures.
    pub textures: bool,
    /// The largest texture.
    pub limits: TextureLimits,
    /// The most work-items of a group that kernels use.
    pub group: u64,
}

/// The known targets.
pub static PROFILES: [Profile; 3] = [
    Profile { name: "opencl", textures: false, limits: TextureLimits::PROMISED, group: 256 },
    Profile {
        name: "opencl --device=adreno",
        textures: true,
        limits: TextureLimits { width: 16384, height: 16384 },
        group: 256,
    },
    Profile { name: "opencl --device=mali", textures: true, limits: TextureLimits::PROMISED, group: 256 },
];

impl FromStr for Profile {
    type Err = String;

    /// Reads a target: its kind, and options in any number of spaces.
    ///
    /// # Errors
    /// The kind or an option is not known.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let known = || PROFILES.iter().map(|profile| format!("`{}`", profile.name)).collect::<Vec<_>>().join(", ");
        if words.next() != Some("opencl") {
            return Err(format!("`{text}` is no target; the targets are {}", known()));
        }
        let mut name = "opencl".to_owned();
        for option in words {
            if !option.starts_with("--device=") || name.contains("--device=") {
                return Err(format!("`{option}` is no option of the target `opencl`; the targets are {}", known()));
            }
            name = format!("{name} {option}");
        }
        let found = PROFILES.iter().find(|profile| profile.name == name);
        found
            .cloned()
            .ok_or_else(|| format!("there is no device of this name in `{name}`; the targets are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_with_its_options() {
        let adreno: Result<Profile, _> = " opencl   --device=adreno ".parse();
        assert_eq!(adreno, Ok(PROFILES[1].clone()));
        assert_eq!("opencl".parse(), Ok(PROFILES[0].clone()));
        for wrong in ["", "cuda", "opencl --device=toaster", "opencl -x", "opencl --device=mali --device=adreno"] {
            assert!(wrong.parse::<Profile>().is_err(), "{wrong}");
        }
    }
}
