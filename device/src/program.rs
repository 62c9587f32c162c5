//! Building kernels.

use std::ffi::CString;

use crate::cl;
use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::listing;
use crate::quirks::{self, InTurn};

/// Flags that change what floating-point arithmetic means, and so would make a comparison meaningless.
const UNSAFE_MATH: [&str; 7] = [
    "-cl-fast-relaxed-math",
    "-cl-unsafe-math-optimizations",
    "-cl-finite-math-only",
    "-cl-no-signed-zeros",
    "-cl-mad-enable",
    "-cl-denorms-are-zero",
    "-cl-single-precision-constant",
];

/// How kernels are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildOptions {
    /// Whether single-precision divide and square root are to round correctly, on a device that can do it.
    ///
    /// [`Program::correctly_rounded`] tells whether they do.
    pub correctly_rounded: bool,
    /// Further flags, one each, as `-D N=4`. Flags that relax arithmetic are refused.
    pub flags: Vec<String>,
    /// Whether the flags are added without which a driver is known to compute something else: Oclgrind without its optimiser.
    /// Only who measures a driver as it comes leaves them away.
    pub workarounds: bool,
}

impl Default for BuildOptions {
    /// Correct rounding, workarounds and no further flags.
    fn default() -> Self {
        Self { correctly_rounded: true, flags: Vec::new(), workarounds: true }
    }
}

/// Compiled kernels of one device, made by [`Session::build`](crate::Session::build).
#[derive(Debug)]
pub struct Program {
    inner: InTurn<cl::Program>,
    correctly_rounded: bool,
    kernels: Vec<String>,
    log: String,
}

impl Program {
    pub(crate) fn build(
        context: &cl::Context,
        device: cl::Device,
        info: &DeviceInfo,
        source: &str,
        options: &BuildOptions,
    ) -> Result<Self, DeviceError> {
        let correctly_rounded = options.correctly_rounded && info.correctly_rounded_divide_sqrt;
        let quirks = if options.workarounds { quirks::flags(info) } else { &[] };
        let flags = command_line(options, correctly_rounded, quirks)?;
        let inner = cl::Program::build(context, device, source, &flags)
            .map_err(|failure| build_error(failure, info, source, &flags))?;
        let fault = |failure: cl::Failure| failure.during(info.label());
        let kernels = inner.kernel_names().map_err(fault)?;
        let log = inner.log().map_err(fault)?;
        Ok(Self { inner: InTurn::new(inner, info), correctly_rounded, kernels, log })
    }

    /// Whether single-precision divide and square root round correctly in these kernels; if not, the standard allows
    /// errors of 2.5 and 3 units in the last place.
    pub fn correctly_rounded(&self) -> bool {
        self.correctly_rounded
    }

    /// Names of the kernels.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// What the compiler wrote: warnings, or nothing.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The kernel called `name` or an error that lists those there are.
    pub(crate) fn kernel(&self, name: &str) -> Result<cl::Kernel, DeviceError> {
        let c_name = CString::new(name).ok().filter(|_| self.kernels.iter().any(|k| k == name));
        let Some(c_name) = c_name else {
            let there = self.kernels.join("`, `");
            return Err(DeviceError::Plan(format!("no kernel `{name}` among `{there}`")));
        };
        self.inner.kernel(&c_name).map_err(|failure| failure.during(format!("kernel `{name}`")))
    }
}

/// The flags in one string, as the compiler takes them.
fn command_line(options: &BuildOptions, correctly_rounded: bool, quirks: &[&str]) -> Result<CString, DeviceError> {
    // Keeps the parameters' types, against which arguments are checked.
    let mut line = String::from("-cl-kernel-arg-info");
    if correctly_rounded {
        line.push_str(" -cl-fp32-correctly-rounded-divide-sqrt");
    }
    for quirk in quirks.iter().filter(|quirk| !options.flags.iter().any(|flag| flag == *quirk)) {
        line.push(' ');
        line.push_str(quirk);
    }
    for flag in &options.flags {
        let refuse = |reason| DeviceError::Flag { flag: flag.clone(), reason };
        if flag.split_whitespace().any(|word| UNSAFE_MATH.contains(&word)) {
            return Err(refuse("it relaxes floating-point arithmetic"));
        }
        if flag.contains('\0') {
            return Err(refuse("it contains a NUL character"));
        }
        line.push(' ');
        line.push_str(flag);
    }
    CString::new(line).map_err(|_| DeviceError::Plan("compiler flags contain a NUL".into()))
}

/// A refusal of the source comes with log and listing; any other failure of the call is the driver's.
fn build_error(build: cl::BuildFailure, info: &DeviceInfo, source: &str, flags: &CString) -> DeviceError {
    if build.failure.code != ocl::ffi::CL_BUILD_PROGRAM_FAILURE && build.log.is_empty() {
        return build.failure.during(format!("{}, flags {flags:?}", info.label()));
    }
    DeviceError::Build { device: info.label(), source_listing: listing::list(source, &build.log), log: build.log }
}
