//! A session: one device, opened. Builds programs and runs plans, in this process or in a worker.

use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::plan::{LaunchPlan, RunOptions, RunOutput};
use crate::pool::ScratchStats;
use crate::program::{self, BuildOptions, Program};
use crate::{opencl, remote};

/// A device with a context and an in-order queue of its own.
///
/// A session may be shared between threads; its plans then run one after another, so that their times do not mix. Open
/// several to let a device interleave them.
#[derive(Debug)]
pub struct Session {
    info: DeviceInfo,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Here(Box<opencl::Session>),
    Elsewhere(remote::Session),
}

impl Session {
    /// Opens the device that `info` describes in this process; [`DeviceHost::open`](crate::DeviceHost::open) opens it where
    /// the host runs its drivers.
    ///
    /// Errors: [`DeviceError::NoDevice`] when it is there no more, [`DeviceError::Unsupported`] when it has no compiler
    /// or is older than OpenCL 1.2, [`DeviceError::Driver`] when the driver fails.
    pub fn open(info: &DeviceInfo) -> Result<Self, DeviceError> {
        let (session, info) = opencl::Session::open(info)?;
        Ok(Self { info, place: Place::Here(Box::new(session)) })
    }

    pub(crate) fn remote(session: remote::Session, info: DeviceInfo) -> Self {
        Self { info, place: Place::Elsewhere(session) }
    }

    /// What the device says of itself.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// What the pool of textures has done and holds: where images of plans that are scratch come from.
    pub fn scratch_stats(&self) -> ScratchStats {
        match &self.place {
            Place::Here(session) => session.scratch_stats(),
            Place::Elsewhere(session) => session.scratch_stats(),
        }
    }

    /// Releases the textures that no run uses.
    pub fn trim_scratch(&self) {
        match &self.place {
            Place::Here(session) => session.trim_scratch(),
            Place::Elsewhere(session) => session.trim_scratch(),
        }
    }

    /// Compiles OpenCL C.
    ///
    /// Errors: [`DeviceError::Build`] when the compiler refuses the source, [`DeviceError::Flag`] for a flag that
    /// relaxes arithmetic, [`DeviceError::Driver`] when the driver fails otherwise, [`DeviceError::Process`] when its process
    /// is lost.
    pub fn build(&self, source: &str, options: &BuildOptions) -> Result<Program, DeviceError> {
        match &self.place {
            Place::Here(session) => session.build(source, options).map(program::Place::Here),
            Place::Elsewhere(session) => session.build(source, options).map(program::Place::Elsewhere),
        }
        .map(Program::new)
    }

    /// Allocates and fills the plan's memory, runs its launches in order, and reads back what is asked for.
    ///
    /// Nothing reaches the driver before every size is checked. Kernels themselves are trusted as far as the device
    /// protects the host from them: on a processor device a kernel runs inside the driver's process, and a store far enough
    /// out of bounds can crash it. Guard bands catch the near ones.
    ///
    /// Errors: [`DeviceError::Plan`] for a plan that contradicts itself or the kernels' parameters,
    /// [`DeviceError::Limit`] and [`DeviceError::Unsupported`] for what the device does not have,
    /// [`DeviceError::GuardTouched`] for stores past the end, [`DeviceError::Driver`] when the driver fails,
    /// [`DeviceError::Process`] when its process is lost.
    pub fn run(&self, program: &Program, plan: &LaunchPlan, options: &RunOptions) -> Result<RunOutput, DeviceError> {
        self.run_programs(&vec![program; plan.launches.len()], plan, options)
    }

    /// The same with the kernels of several programs: one program for each launch, in their order.
    ///
    /// Errors: as [`Session::run`], and [`DeviceError::Plan`] for programs of a session in another process.
    pub fn run_programs(
        &self,
        programs: &[&Program],
        plan: &LaunchPlan,
        options: &RunOptions,
    ) -> Result<RunOutput, DeviceError> {
        let elsewhere = || DeviceError::Plan("a program was built in another process".into());
        match &self.place {
            Place::Here(session) => {
                let programs: Option<Vec<_>> = programs.iter().map(|program| program.here()).collect();
                session.run_programs(&programs.ok_or_else(elsewhere)?, plan, options)
            }
            Place::Elsewhere(session) => {
                let programs: Option<Vec<_>> = programs.iter().map(|program| program.elsewhere()).collect();
                session.run_programs(&programs.ok_or_else(elsewhere)?, plan, options)
            }
        }
    }

    /// How long the device needs to copy so many bytes from one buffer to another, in nanoseconds: the yardstick of a kernel
    /// that only moves data. Both buffers are written before, so that their memory is really there.
    ///
    /// Errors: [`DeviceError::Limit`] for more than the device has, [`DeviceError::Driver`] when the driver fails,
    /// [`DeviceError::Process`] when its process is lost.
    pub fn copy_nanoseconds(&self, bytes: u64) -> Result<u64, DeviceError> {
        match &self.place {
            Place::Here(session) => session.copy_nanoseconds(bytes),
            Place::Elsewhere(session) => session.copy_nanoseconds(bytes),
        }
    }
}
