//! Building kernels.

use std::borrow::Cow;
use std::ffi::CString;

use super::cl;
use super::listing;
use super::quirks::{self, InTurn};
use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::program::BuildOptions;

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

/// Compiled kernels of one device, with the names, the log and the rounding that [`crate::Program`] reports.
#[derive(Debug)]
pub(crate) struct Program {
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
    pub(crate) fn correctly_rounded(&self) -> bool {
        self.correctly_rounded
    }

    /// Names of the kernels.
    pub(crate) fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// What the compiler wrote: warnings, or nothing.
    pub(crate) fn log(&self) -> &str {
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
        let refuse = |reason| DeviceError::Flag { flag: flag.clone(), reason: Cow::Borrowed(reason) };
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
