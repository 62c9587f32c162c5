//! A session is an opened device in this process. It builds programs and runs plans.

use std::sync::{Mutex, PoisonError};

use super::check::{at_most, check_argument, check_plan};
use super::cl::{self, Failure};
use super::groups::fitting;
use super::memory::{self, Held, Images, host_size};
use super::program::Program;
use super::quirks::{self, InTurn};
use super::survey::enumerate;
use crate::error::DeviceError;
use crate::info::{DeviceInfo, Survey};
use crate::plan::{Arg, BufferSpec, Launch, LaunchPlan, RunOptions, RunOutput, Snapshot};
use crate::pool::{ScratchPool, ScratchStats};
use crate::program::BuildOptions;

/// A device with a context and an in-order queue of its own.
///
/// A session may be shared between threads; its plans then run one after another, so that their times are measured
/// separately.
#[derive(Debug)]
pub(crate) struct Session {
    info: DeviceInfo,
    device: cl::Device,
    driver: InTurn<Driver>,
}

#[derive(Debug)]
struct Driver {
    context: cl::Context,
    queue: Mutex<cl::Queue>,
    scratch: ScratchPool<cl::Memory>,
}

impl Session {
    /// Opens the device that `info` describes; returns the session and the present properties of the device.
    pub(crate) fn open(info: &DeviceInfo) -> Result<(Self, DeviceInfo), DeviceError> {
        let present = enumerate(&mut Survey::default());
        let Some((device, info)) = present.iter().find(|(_, other)| other.is_same_device(info)) else {
            return Err(DeviceError::NoDevice {
                wanted: info.label(),
                available: present.iter().map(|(_, info)| info.label()).collect(),
            });
        };
        let unsupported =
            |feature: &str| DeviceError::Unsupported { device: info.label(), feature: feature.to_owned() };
        if !info.available {
            return Err(unsupported("a working driver with a compiler"));
        }
        if info.opencl_version_pair() < (1, 2) {
            return Err(unsupported("OpenCL 1.2"));
        }
        let fault = |failure: Failure| failure.during(info.label());
        let _turn = quirks::turn(info);
        let context = cl::Context::new(*device).map_err(fault)?;
        let queue = Mutex::new(cl::Queue::new(&context, *device).map_err(fault)?);
        let scratch = ScratchPool::new(memory::scratch_limits(info));
        let driver = InTurn::new(Driver { context, queue, scratch }, info);
        Ok((Self { info: info.clone(), device: *device, driver }, info.clone()))
    }

    /// The statistics of the pool of textures.
    pub(crate) fn scratch_stats(&self) -> ScratchStats {
        self.driver.scratch.stats()
    }

    /// Releases the idle textures of the pool.
    pub(crate) fn trim_scratch(&self) {
        let _turn = quirks::turn(&self.info);
        self.driver.scratch.trim();
    }

    /// Compiles OpenCL C; see [`crate::Session::build`].
    pub(crate) fn build(&self, source: &str, options: &BuildOptions) -> Result<Program, DeviceError> {
        let _turn = quirks::turn(&self.info);
        Program::build(&self.driver.context, self.device, &self.info, source, options)
    }

    /// Runs a plan with one program for each launch, in their order; see [`crate::Session::run`].
    pub(crate) fn run_programs(
        &self,
        programs: &[&Program],
        plan: &LaunchPlan,
        options: &RunOptions,
    ) -> Result<RunOutput, DeviceError> {
        check_plan(plan, &self.info, options)?;
        if programs.len() != plan.launches.len() {
            let (given, wanted) = (programs.len(), plan.launches.len());
            return Err(DeviceError::Plan(format!("{given} programs are given for {wanted} launches")));
        }
        let _turn = quirks::turn(&self.info);
        let queue = self.driver.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let room = |spec: &BufferSpec| {
            let images = Images { context: &self.driver.context, info: &self.info, name: &spec.name };
            memory::allocate(images, &queue, &self.driver.scratch, spec, options)
        };
        // Declared after `_turn`, so memory is released or returned to the pool before the turn ends, even after an error.
        let memories = plan.buffers.iter().map(room).collect::<Result<Vec<_>, _>>()?;
        let ready = |(launch, program)| self.prepare(program, launch, plan, &memories);
        let kernels = plan.launches.iter().zip(programs.iter().copied()).map(ready).collect::<Result<Vec<_>, _>>()?;
        let (launch_nanoseconds, snapshots) =
            launch_all(&queue, plan, &kernels, &memories, &options.snapshots, &self.info)?;
        let mut touched = Vec::new();
        let mut buffers = Vec::new();
        for (spec, memory) in plan.buffers.iter().zip(&memories) {
            let (contents, guard) = memory::collect(&queue, spec, memory.memory(), options)
                .map_err(|failure| failure.during(format!("reading `{}`", spec.name)))?;
            touched.extend(guard);
            buffers.push(contents);
        }
        if touched.is_empty() {
            Ok(RunOutput { buffers, launch_nanoseconds, snapshots })
        } else {
            Err(DeviceError::GuardTouched(touched))
        }
    }

    /// Measures the time of a copy between two buffers in nanoseconds; see [`crate::Session::copy_nanoseconds`].
    pub(crate) fn copy_nanoseconds(&self, bytes: u64) -> Result<u64, DeviceError> {
        let fault = |failure: Failure| failure.during("copying a buffer");
        at_most("bytes of a copy".to_owned(), bytes, self.info.max_alloc_bytes)?;
        let bytes = host_size(bytes.max(1))?;
        let _turn = quirks::turn(&self.info);
        let queue = self.driver.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = || self.driver.context.create_buffer(bytes).map_err(fault);
        let (from, to) = (buffer()?, buffer()?);
        queue.fill(&from, 1, bytes).and_then(|()| queue.fill(&to, 0, bytes)).map_err(fault)?;
        let event = queue.copy(&from, &to, bytes).map_err(fault)?;
        queue.finish().map_err(fault)?;
        event.outcome().and_then(|()| event.nanoseconds()).map_err(fault)
    }

    /// Creates the kernel of a launch, checks and sets its arguments, and checks the launch against its limits.
    fn prepare(
        &self,
        program: &Program,
        launch: &Launch,
        plan: &LaunchPlan,
        memories: &[Held<'_>],
    ) -> Result<cl::Kernel, DeviceError> {
        let name = &launch.kernel;
        let mut kernel = program.kernel(name)?;
        let fault = |failure: Failure| failure.during(format!("kernel `{name}`"));
        let wanted = kernel.n_arguments().map_err(fault)?;
        if u64::try_from(launch.args.len()) != Ok(wanted) {
            let given = launch.args.len();
            return Err(DeviceError::Plan(format!("kernel `{name}` takes {wanted} arguments, {given} are given")));
        }
        for ((index, place), arg) in (0_u32..).zip(0_usize..).zip(&launch.args) {
            if let Some(parameter) = kernel.argument(index) {
                check_argument(name, place, arg, &parameter, plan)?;
            }
            set_argument(&mut kernel, index, arg, memories)
                .map_err(|failure| failure.during(format!("kernel `{name}`, argument {index}")))?;
        }
        self.check_kernel(&kernel, launch)?;
        Ok(kernel)
    }

    /// Checks the work-group size and the local memory of a launch against the limits of the kernel on this device.
    fn check_kernel(&self, kernel: &cl::Kernel, launch: &Launch) -> Result<(), DeviceError> {
        let name = &launch.kernel;
        let fault = |failure: Failure| failure.during(format!("kernel `{name}`"));
        let local_memory = kernel.local_memory().map_err(fault)?;
        let what = format!("local memory in bytes of kernel `{name}`");
        at_most(what, local_memory, self.info.local_memory_bytes)?;
        let Some(local) = launch.local else {
            return Ok(());
        };
        let size = local.iter().fold(1_u64, |size, &extent| size.saturating_mul(extent));
        let limit = kernel.max_work_group_size().map_err(fault)?;
        at_most(format!("work-group size of kernel `{name}`"), size, limit)?;
        match kernel.required_work_group().map_err(fault)? {
            Some(required) if required != local => Err(DeviceError::Plan(format!(
                "kernel `{name}` demands work-groups of {required:?}, the plan says {local:?}"
            ))),
            _ => Ok(()),
        }
    }
}

/// The time of each launch, and the contents of each snapshot.
type Launched = (Vec<Option<u64>>, Vec<Vec<u8>>);

/// Enqueues the launches that have work-items, takes the snapshots, waits for the end, and reads the times.
fn launch_all(
    queue: &cl::Queue,
    plan: &LaunchPlan,
    kernels: &[cl::Kernel],
    memories: &[Held<'_>],
    wanted: &[Snapshot],
    info: &DeviceInfo,
) -> Result<Launched, DeviceError> {
    let mut events = Vec::new();
    let mut snapshots = vec![Vec::new(); wanted.len()];
    for (number, (launch, kernel)) in plan.launches.iter().zip(kernels).enumerate() {
        events.push(enqueue(queue, launch, kernel, info)?);
        for (snapshot, contents) in wanted.iter().zip(&mut snapshots).filter(|(snapshot, _)| snapshot.after == number) {
            let spec = &plan.buffers[snapshot.memory];
            *contents = memory::contents(queue, spec, memories[snapshot.memory].memory()).map_err(|failure| {
                failure.during(format!("reading `{}` after kernel `{}`", spec.name, launch.kernel))
            })?;
        }
    }
    let finished = queue.finish();
    let mut times = Vec::new();
    for (launch, event) in plan.launches.iter().zip(&events) {
        let fault = |failure: Failure| failure.during(format!("kernel `{}`", launch.kernel));
        if let Some(event) = event {
            // The error of the launch comes first, because it is more specific than that of the queue.
            event.outcome().map_err(fault)?;
            finished.map_err(fault)?;
            times.push(Some(event.nanoseconds().map_err(fault)?));
        } else {
            times.push(None);
        }
    }
    finished.map_err(|failure| failure.during("waiting for the launches"))?;
    Ok((times, snapshots))
}

/// Enqueues a launch; returns `None` if it has no work-items.
fn enqueue(
    queue: &cl::Queue,
    launch: &Launch,
    kernel: &cl::Kernel,
    info: &DeviceInfo,
) -> Result<Option<cl::Event>, DeviceError> {
    if launch.global.contains(&0) {
        return Ok(None);
    }
    let global = host_sizes(launch.global)?;
    let is_free = !matches!(kernel.required_work_group(), Ok(Some(_)));
    let chosen = || fitting(launch.global, kernel.max_work_group_size().unwrap_or(1), info.max_work_item_sizes);
    let local = launch.local.or_else(|| chosen().filter(|_| is_free)).map(host_sizes).transpose()?;
    let event = queue.launch(kernel, global, local);
    event.map(Some).map_err(|failure| failure.during(format!("kernel `{}`", launch.kernel)))
}

/// Sets one argument of a kernel. The position of memory was checked with the plan.
fn set_argument(kernel: &mut cl::Kernel, index: u32, arg: &Arg, memories: &[Held<'_>]) -> Result<(), Failure> {
    match arg {
        Arg::Memory(place) => kernel.set_memory(index, memories[*place].memory()),
        Arg::Scalar(scalar) => kernel.set_value(index, &scalar.to_bytes()),
        // OpenCL does not allow local memory of 0 bytes.
        Arg::Local(bytes) => kernel.set_local(index, usize::try_from(*bytes).unwrap_or(usize::MAX).max(1)),
    }
}

fn host_sizes(sizes: [u64; 3]) -> Result<[usize; 3], DeviceError> {
    Ok([host_size(sizes[0])?, host_size(sizes[1])?, host_size(sizes[2])?])
}
