//! A session is an opened device. It builds programs and runs plans, in this process or in a worker.

use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::plan::{LaunchPlan, RunOptions, RunOutput};
use crate::pool::ScratchStats;
use crate::program::{self, BuildOptions, Program};
use crate::{opencl, remote};

/// A device with a context and an in-order queue of its own.
///
/// A session may be shared between threads; its plans then run one after another, so that their times are measured
/// separately. Plans of several sessions may overlap on the device.
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
    /// Opens the device that `info` describes in this process. [`DeviceHost::open`](crate::DeviceHost::open) can open it in
    /// a worker.
    ///
    /// # Errors
    /// [`DeviceError::NoDevice`] if the device no longer exists, [`DeviceError::Unsupported`] if it has no compiler or
    /// supports only a version before OpenCL 1.2, [`DeviceError::Driver`] if the driver fails.
    pub fn open(info: &DeviceInfo) -> Result<Self, DeviceError> {
        let (session, info) = opencl::Session::open(info)?;
        Ok(Self { info, place: Place::Here(Box::new(session)) })
    }

    /// Opens the same device once more: where this session is in a worker, in another worker if this one is lost or damaged.
    ///
    /// # Errors
    /// Those of [`Session::open`], and [`DeviceError::Process`] if a worker cannot be started.
    pub fn reopened(&self) -> Result<Self, DeviceError> {
        match &self.place {
            Place::Here(_) => Self::open(&self.info),
            Place::Elsewhere(session) => session.reopened(&self.info),
        }
    }

    pub(crate) fn remote(session: remote::Session, info: DeviceInfo) -> Self {
        Self { info, place: Place::Elsewhere(session) }
    }

    /// The properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The statistics of the pool of textures, from which the scratch images of plans come.
    pub fn scratch_stats(&self) -> ScratchStats {
        match &self.place {
            Place::Here(session) => session.scratch_stats(),
            Place::Elsewhere(session) => session.scratch_stats(),
        }
    }

    /// Releases the idle textures of the pool.
    pub fn trim_scratch(&self) {
        match &self.place {
            Place::Here(session) => session.trim_scratch(),
            Place::Elsewhere(session) => session.trim_scratch(),
        }
    }

    /// Compiles OpenCL C.
    ///
    /// # Errors
    /// [`DeviceError::Build`] if the compiler refuses the source, [`DeviceError::Flag`] for a flag that relaxes arithmetic,
    /// [`DeviceError::Driver`] if the driver fails otherwise, [`DeviceError::Process`] if its process is lost.
    pub fn build(&self, source: &str, options: &BuildOptions) -> Result<Program, DeviceError> {
        match &self.place {
            Place::Here(session) => session.build(source, options).map(program::Place::Here),
            Place::Elsewhere(session) => session.build(source, options).map(program::Place::Elsewhere),
        }
        .map(Program::new)
    }

    /// Allocates and fills the plan's memory, runs its launches in order, and reads back the requested contents.
    ///
    /// Every size is checked before the driver is called. Kernels are not checked: on a processor device a kernel runs in
    /// the driver's process, and a store far out of bounds can crash it. Guard bands detect stores close to a buffer's end.
    ///
    /// # Errors
    /// [`DeviceError::Plan`] for a plan that contradicts itself or the parameters of the kernels, [`DeviceError::Limit`] and
    /// [`DeviceError::Unsupported`] for a plan that exceeds the abilities of the device, [`DeviceError::GuardTouched`] for
    /// stores past the end, [`DeviceError::Driver`] if the driver fails, [`DeviceError::Process`] if its process is lost.
    pub fn run(&self, program: &Program, plan: &LaunchPlan, options: &RunOptions) -> Result<RunOutput, DeviceError> {
        self.run_programs(&vec![program; plan.launches.len()], plan, options)
    }

    /// Runs a plan, as [`Session::run`] does, with the kernels of several programs: one program for each launch, in order.
    ///
    /// # Errors
    /// Those of [`Session::run`], and [`DeviceError::Plan`] for a program that was built in another process.
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

    /// Measures the time in nanoseconds that the device needs to copy `bytes` bytes from one buffer to another, as a
    /// reference for kernels that only move data. Both buffers are written before, because drivers may allocate memory at
    /// its first use.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] if the buffers are too large for the device, [`DeviceError::Driver`] if the driver fails,
    /// [`DeviceError::Process`] if its process is lost.
    pub fn copy_nanoseconds(&self, bytes: u64) -> Result<u64, DeviceError> {
        match &self.place {
            Place::Here(session) => session.copy_nanoseconds(bytes),
            Place::Elsewhere(session) => session.copy_nanoseconds(bytes),
        }
    }
}
