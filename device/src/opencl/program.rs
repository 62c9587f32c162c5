//! Builds programs from OpenCL C.

use std::borrow::Cow;
use std::ffi::CString;

use super::cl;
use super::listing;
use super::quirks::{self, InTurn};
use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::program::BuildOptions;

/// Flags that relax floating-point arithmetic. Results could then no longer be compared with those of the interpreter.
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

    /// Whether single-precision division and square root are correctly rounded; see [`crate::Program::correctly_rounded`].
    pub(crate) fn correctly_rounded(&self) -> bool {
        self.correctly_rounded
    }

    /// Names of the kernels.
    pub(crate) fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// The output of the compiler: warnings, or nothing.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    /// A new kernel object of this name; if there is none, the error lists the names of the kernels.
    pub(crate) fn kernel(&self, name: &str) -> Result<cl::Kernel, DeviceError> {
        let c_name = CString::new(name).ok().filter(|_| self.kernels.iter().any(|k| k == name));
        let Some(c_name) = c_name else {
            let there = self.kernels.join("`, `");
            return Err(DeviceError::Plan(format!("no kernel `{name}` among `{there}`")));
        };
        self.inner.kernel(&c_name).map_err(|failure| failure.during(format!("kernel `{name}`")))
    }
}

/// Joins the flags of the options, the workarounds and this crate into the string for the compiler. A workaround that the
/// options contain already is not repeated.
fn command_line(options: &BuildOptions, correctly_rounded: bool, quirks: &[&str]) -> Result<CString, DeviceError> {
    // Makes the driver keep the types of parameters, with which `check_argument` compares arguments.
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

/// The error for a failed build: the log and the source if the compiler refused the source, which a log shows even with
/// another error code; otherwise a failure of the driver.
fn build_error(build: cl::BuildFailure, info: &DeviceInfo, source: &str, flags: &CString) -> DeviceError {
    if build.failure.code != ocl::ffi::CL_BUILD_PROGRAM_FAILURE && build.log.is_empty() {
        return build.failure.during(format!("{}, flags {flags:?}", info.label()));
    }
    DeviceError::Build { device: info.label(), source_listing: listing::list(source, &build.log), log: build.log }
}
