//! How large a texture may be, and who says so: the function, the command line, the device, or what OpenCL promises.

use tilewright_device::{DeviceHost, DeviceInfo};
use tilewright_ir::{Expr, PrimFunc, TextureLimits};

use super::{CheckFault, DeviceChoice, Program};

/// The limits that a function is lowered and proved against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenLimits {
    /// The largest texture.
    pub limits: TextureLimits,
    /// The source of the limits: the function, the command line, a device or the standard.
    pub from: String,
    /// The textures with a symbolic extent, which is checked when the kernels are launched.
    pub checked_at_launch: Vec<String>,
}

/// Adds the source of the limits to the diagnostics of a pass, which does not know it.
pub fn explained(limits: Option<&ChosenLimits>, mut fault: CheckFault) -> CheckFault {
    if let CheckFault::Input(found) = &mut fault {
        for diagnostic in found.iter_mut().filter(|diagnostic| diagnostic.code == "texture-limits") {
            diagnostic.help = limits.map(|chosen| format!("the limits {} are those of {}", chosen.limits, chosen.from));
        }
    }
    fault
}

/// Sets the limits of a function that has textures, and returns them; `None` for a function without textures.
///
/// The first of these that exists decides: the limits of the function itself, those `stated`, those of the chosen devices,
/// the least that OpenCL promises.
pub fn set(
    program: &mut Program,
    stated: Option<TextureLimits>,
    device: &DeviceChoice,
    host: &DeviceHost,
) -> Option<ChosenLimits> {
    let textures = || program.func.buffers().into_iter().filter(|buffer| buffer.scope.is_texture());
    textures().next()?;
    let (limits, from) = choose(&program.func, stated, device, host);
    let symbolic = |shape: &[Expr]| shape.iter().any(|extent| !extent.vars().is_empty());
    let checked_at_launch =
        textures().filter(|buffer| symbolic(&buffer.shape)).map(|buffer| buffer.name.clone()).collect();
    program.func.attrs.texture_limits = Some(limits);
    Some(ChosenLimits { limits, from, checked_at_launch })
}

/// Returns the limits and where they come from.
fn choose(
    func: &PrimFunc,
    stated: Option<TextureLimits>,
    device: &DeviceChoice,
    host: &DeviceHost,
) -> (TextureLimits, String) {
    if let Some(own) = func.attrs.texture_limits {
        return (own, "the function (texture_limits)".to_owned());
    }
    if let Some(stated) = stated {
        return (stated, "--limits".to_owned());
    }
    let promised = || (TextureLimits::PROMISED, "every device with images (OpenCL 1.2)".to_owned());
    of_devices(device, host).unwrap_or_else(promised)
}

/// Returns the largest texture that all chosen devices with images support; `None` if no chosen device has images.
fn of_devices(choice: &DeviceChoice, host: &DeviceHost) -> Option<(TextureLimits, String)> {
    if *choice == DeviceChoice::None {
        return None;
    }
    let all = host.devices().unwrap_or_default();
    let chosen: Vec<&DeviceInfo> = match choice {
        DeviceChoice::None => Vec::new(),
        DeviceChoice::First => tilewright_device::select(&all, None).into_iter().collect(),
        DeviceChoice::Named(name) => tilewright_device::select(&all, Some(name)).into_iter().collect(),
        DeviceChoice::All => all.iter().collect(),
    };
    let with_images = chosen.into_iter().filter(|info| info.image2d_max_width > 0 && info.image2d_max_height > 0);
    with_images
        .map(|info| {
            let limits = TextureLimits { width: info.image2d_max_width, height: info.image2d_max_height };
            (limits, format!("device {}", info.label()))
        })
        .reduce(|(a, from), (b, other)| {
            let least = TextureLimits { width: a.width.min(b.width), height: a.height.min(b.height) };
            (least, format!("{from} and {other}"))
        })
}
