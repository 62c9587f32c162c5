//! How kernels are compiled, and programs that were.

use serde::{Deserialize, Serialize};

use crate::{opencl, remote};

/// How kernels are compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct Program(Place);

/// Where the program is.
#[derive(Debug)]
pub(crate) enum Place {
    Here(opencl::Program),
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

    /// Whether single-precision divide and square root round correctly in these kernels; if not, the standard allows
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

    /// What the compiler wrote: warnings, or nothing.
    pub fn log(&self) -> &str {
        match &self.0 {
            Place::Here(program) => program.log(),
            Place::Elsewhere(program) => &program.log,
        }
    }
}
