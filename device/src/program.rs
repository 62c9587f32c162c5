//! Options of the compiler, and compiled programs.

use serde::{Deserialize, Serialize};

use crate::{opencl, remote};

/// Options of the compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildOptions {
    /// Whether single-precision division and square root should be correctly rounded, if the device supports it.
    ///
    /// [`Program::correctly_rounded`] returns whether they are.
    pub correctly_rounded: bool,
    /// Further flags, such as `-D N=4`, one in each element. Flags that relax arithmetic are refused.
    pub flags: Vec<String>,
    /// Whether to add flags that work around known bugs of a driver, such as wrong results of Oclgrind's optimiser. False
    /// only for measurements of the driver as it is.
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
pub struct Program(Place);

/// The process that holds the program.
#[derive(Debug)]
pub(crate) enum Place {
    /// This process.
    Here(opencl::Program),
    /// A worker.
    Elsewhere(remote::Program),
}

impl Program {
    pub(crate) fn new(place: Place) -> Self {
        Self(place)
    }

    /// The program, if it is in this process.
    pub(crate) fn here(&self) -> Option<&opencl::Program> {
        match &self.0 {
            Place::Here(program) => Some(program),
            Place::Elsewhere(_) => None,
        }
    }

    /// The program, if it is in a worker.
    pub(crate) fn elsewhere(&self) -> Option<&remote::Program> {
        match &self.0 {
            Place::Here(_) => None,
            Place::Elsewhere(program) => Some(program),
        }
    }

    /// Whether single-precision division and square root are correctly rounded in these kernels. If not, the standard allows
    /// errors of 2.5 and 3 units in the last place.
    pub fn correctly_rounded(&self) -> bool {
        match &self.0 {
            Place::Here(program) => program.correctly_rounded(),
            Place::Elsewhere(program) => program.correctly_rounded,
        }
    }

    /// Names of the kernels.
    pub fn kernels(&self) -> &[String] {
        match &self.0 {
            Place::Here(program) => program.kernels(),
            Place::Elsewhere(program) => &program.kernels,
        }
    }

    /// The output of the compiler: warnings, or nothing.
    pub fn log(&self) -> &str {
        match &self.0 {
            Place::Here(program) => program.log(),
            Place::Elsewhere(program) => &program.log,
        }
    }
}
