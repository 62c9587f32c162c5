//! Replaces the module `opencl` in a build without the feature of that name: no loader, no devices, and types of sessions
//! and programs without values.

use crate::error::DeviceError;
use crate::info::{DeviceInfo, Loader, Survey};
use crate::plan::{LaunchPlan, RunOptions, RunOutput};
use crate::pool::ScratchStats;
use crate::program::BuildOptions;

/// The loader, which is not built into this program.
pub(crate) fn loader() -> Loader {
    Loader::NotBuilt
}

/// A survey without devices.
pub(crate) fn survey() -> Survey {
    Survey::default()
}

/// A session; the type has no values.
#[derive(Debug)]
pub(crate) enum Session {}

/// A program; the type has no values.
#[derive(Debug)]
pub(crate) enum Program {}

impl Session {
    pub(crate) fn open(_: &DeviceInfo) -> Result<(Self, DeviceInfo), DeviceError> {
        Err(DeviceError::NoLoader(Loader::NotBuilt))
    }

    pub(crate) fn scratch_stats(&self) -> ScratchStats {
        match *self {}
    }

    pub(crate) fn trim_scratch(&self) {
        match *self {}
    }

    pub(crate) fn build(&self, _: &str, _: &BuildOptions) -> Result<Program, DeviceError> {
        match *self {}
    }

    pub(crate) fn run_programs(
        &self,
        _: &[&Program],
        _: &LaunchPlan,
        _: &RunOptions,
    ) -> Result<RunOutput, DeviceError> {
        match *self {}
    }

    pub(crate) fn copy_nanoseconds(&self, _: u64) -> Result<u64, DeviceError> {
        match *self {}
    }
}

impl Program {
    pub(crate) fn correctly_rounded(&self) -> bool {
        match *self {}
    }

    pub(crate) fn kernels(&self) -> &[String] {
        match *self {}
    }

    pub(crate) fn log(&self) -> &str {
        match *self {}
    }
}
