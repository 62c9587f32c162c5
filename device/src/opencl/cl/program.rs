//! Programs and kernels.

use std::ffi::CStr;

use ocl::ffi;

use super::handle::{Context, KernelHandle, Memory, ProgramHandle};
use super::loader as api;
use super::query::Device;
use super::{Failure, check, number, read_info, text};

/// A built program and the device it was built for.
#[derive(Debug)]
pub(crate) struct Program {
    handle: ProgramHandle,
    device: Device,
}

/// A kernel of a program; its arguments are set on it.
#[derive(Debug)]
pub(crate) struct Kernel {
    handle: KernelHandle,
    device: Device,
}

/// The failure of a build, with the output of the compiler.
#[derive(Debug)]
pub(crate) struct BuildFailure {
    pub(crate) failure: Failure,
    pub(crate) log: String,
}

/// The address space of a kernel's parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    /// `global` or `constant`: takes a buffer; images are reported here too.
    Memory,
    /// `local`: takes a size.
    Local,
    /// `private`: takes a value.
    Private,
}

/// The declaration of a kernel's parameter, as the driver reports it.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub(crate) space: AddressSpace,
    /// As declared, without qualifiers: `float*`, `int`, `image2d_t`.
    pub(crate) type_name: String,
}

impl Program {
    /// Compiles `source` with `flags` for `device`.
    pub(crate) fn build(context: &Context, device: Device, source: &str, flags: &CStr) -> Result<Self, BuildFailure> {
        let without_log = |failure| BuildFailure { failure, log: String::new() };
        let handle = Self::create(context, source).map_err(without_log)?;
        let program = Self { handle, device };
        let devices = [device.raw()];
        // SAFETY: program and device are valid, `flags` ends in NUL, and without a callback the call waits for the
        // build.
        let code = unsafe {
            api::clBuildProgram(program.handle.raw(), 1, devices.as_ptr(), flags.as_ptr(), None, std::ptr::null_mut())
        };
        match check("clBuildProgram", code) {
            Ok(()) => Ok(program),
            Err(failure) => Err(BuildFailure { failure, log: program.log().unwrap_or_default() }),
        }
    }

    fn create(context: &Context, source: &str) -> Result<ProgramHandle, Failure> {
        let strings = [source.as_ptr().cast()];
        let lengths = [source.len()];
        let mut code = 0;
        // SAFETY: one string with its length, so it needs no NUL; OpenCL copies the source before it returns.
        let raw = unsafe {
            api::clCreateProgramWithSource(context.raw(), 1, strings.as_ptr(), lengths.as_ptr(), &raw mut code)
        };
        ProgramHandle::adopt("clCreateProgramWithSource", raw, code)
    }

    /// The output of the compiler: warnings, if the build succeeded.
    pub(crate) fn log(&self) -> Result<String, Failure> {
        let (program, device) = (self.handle.raw(), self.device.raw());
        let property = ffi::CL_PROGRAM_BUILD_LOG;
        let bytes = read_info("clGetProgramBuildInfo", |size, value, size_ret| {
            // SAFETY: program and device are valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetProgramBuildInfo(program, device, property, size, value, size_ret) }
        })?;
        Ok(text(&bytes))
    }

    /// Names of the program's kernels.
    pub(crate) fn kernel_names(&self) -> Result<Vec<String>, Failure> {
        let property = ffi::CL_PROGRAM_KERNEL_NAMES;
        let bytes = read_info("clGetProgramInfo", |size, value, size_ret| {
            // SAFETY: the program is valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetProgramInfo(self.handle.raw(), property, size, value, size_ret) }
        })?;
        let names = text(&bytes);
        Ok(names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The kernel called `name`, with no argument set yet.
    pub(crate) fn kernel(&self, name: &CStr) -> Result<Kernel, Failure> {
        let mut code = 0;
        // SAFETY: the program is valid, and `name` ends in NUL.
        let raw = unsafe { api::clCreateKernel(self.handle.raw(), name.as_ptr(), &raw mut code) };
        Ok(Kernel { handle: KernelHandle::adopt("clCreateKernel", raw, code)?, device: self.device })
    }
}

impl Kernel {
    pub(super) fn raw(&self) -> *mut std::ffi::c_void {
        self.handle.raw()
    }

    /// Number of parameters.
    pub(crate) fn n_arguments(&self) -> Result<u64, Failure> {
        let bytes = read_info("clGetKernelInfo", |size, value, size_ret| {
            // SAFETY: the kernel is valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetKernelInfo(self.raw(), ffi::CL_KERNEL_NUM_ARGS, size, value, size_ret) }
        })?;
        Ok(number(&bytes))
    }

    /// The declaration of parameter `index`; `None` if the driver does not report it.
    pub(crate) fn argument(&self, index: u32) -> Option<Argument> {
        let read = |property| {
            read_info("clGetKernelArgInfo", |size, value, size_ret| {
                // SAFETY: the kernel is valid, and `read_info` passes room for `size` bytes.
                unsafe { api::clGetKernelArgInfo(self.raw(), index, property, size, value, size_ret) }
            })
        };
        let space = number(&read(ffi::CL_KERNEL_ARG_ADDRESS_QUALIFIER).ok()?);
        let space = match u32::try_from(space).ok()? {
            ffi::CL_KERNEL_ARG_ADDRESS_GLOBAL | ffi::CL_KERNEL_ARG_ADDRESS_CONSTANT => AddressSpace::Memory,
            ffi::CL_KERNEL_ARG_ADDRESS_LOCAL => AddressSpace::Local,
            ffi::CL_KERNEL_ARG_ADDRESS_PRIVATE => AddressSpace::Private,
            _ => return None,
        };
        let type_name = text(&read(ffi::CL_KERNEL_ARG_TYPE_NAME).ok()?);
        Some(Argument { space, type_name })
    }

    fn work_group_info(&self, property: u32) -> Result<Vec<u8>, Failure> {
        let device = self.device.raw();
        read_info("clGetKernelWorkGroupInfo", |size, value, size_ret| {
            // SAFETY: kernel and device are valid, and `read_info` passes room for `size` bytes.
            unsafe { api::clGetKernelWorkGroupInfo(self.raw(), device, property, size, value, size_ret) }
        })
    }

    /// The largest work-group, in work-items, that the device runs this kernel with.
    pub(crate) fn max_work_group_size(&self) -> Result<u64, Failure> {
        Ok(number(&self.work_group_info(ffi::CL_KERNEL_WORK_GROUP_SIZE)?))
    }

    /// Local memory in bytes that the kernel uses, its own variables and the `local` arguments set so far.
    pub(crate) fn local_memory(&self) -> Result<u64, Failure> {
        Ok(number(&self.work_group_info(ffi::CL_KERNEL_LOCAL_MEM_SIZE)?))
    }

    /// The work-group size that the source demands (`reqd_work_group_size`), if it does.
    pub(crate) fn required_work_group(&self) -> Result<Option<[u64; 3]>, Failure> {
        let bytes = self.work_group_info(ffi::CL_KERNEL_COMPILE_WORK_GROUP_SIZE)?;
        let sizes: Vec<u64> = bytes.chunks_exact(size_of::<usize>()).map(number).collect();
        Ok(<[u64; 3]>::try_from(sizes).ok().filter(|sizes| *sizes != [0; 3]))
    }

    /// Sets parameter `index` to a value.
    pub(crate) fn set_value(&mut self, index: u32, value: &[u8]) -> Result<(), Failure> {
        // SAFETY: the kernel is valid and borrowed alone; OpenCL copies the value's bytes.
        let code = unsafe { api::clSetKernelArg(self.raw(), index, value.len(), value.as_ptr().cast()) };
        check("clSetKernelArg", code)
    }

    /// Sets parameter `index` to a buffer or image, which has to outlive the launch.
    pub(crate) fn set_memory(&mut self, index: u32, memory: &Memory) -> Result<(), Failure> {
        let raw = memory.raw();
        // SAFETY: the kernel is valid and borrowed alone; the value of a memory argument is the handle, which is
        // copied.
        let code = unsafe { api::clSetKernelArg(self.raw(), index, size_of_val(&raw), (&raw const raw).cast()) };
        check("clSetKernelArg", code)
    }

    /// Gives parameter `index` local memory of `bytes` bytes.
    pub(crate) fn set_local(&mut self, index: u32, bytes: usize) -> Result<(), Failure> {
        // SAFETY: the kernel is valid and borrowed alone; a local argument has a size and no value.
        let code = unsafe { api::clSetKernelArg(self.raw(), index, bytes, std::ptr::null()) };
        check("clSetKernelArg", code)
    }
}
