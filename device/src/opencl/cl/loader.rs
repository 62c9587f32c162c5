//! OpenCL's functions, looked up at the first call of one of them. Programs are not linked with an OpenCL library, so that
//! they start on a machine without one.
//!
//! `ocl::ffi` declares the same functions for the linker. Only its types and constants are used, and the compiler checks the
//! table below against its declarations. A loader that was preloaded into the process, as by `oclgrind PROGRAM`, takes
//! precedence.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use libloading::Library;
use ocl::ffi::{
    cl_bool, cl_command_queue, cl_command_queue_properties, cl_context, cl_context_properties, cl_device_id,
    cl_device_info, cl_device_type, cl_event, cl_event_info, cl_image_desc, cl_image_format, cl_int, cl_kernel,
    cl_kernel_arg_info, cl_kernel_info, cl_kernel_work_group_info, cl_mem, cl_mem_flags, cl_mem_object_type,
    cl_platform_id, cl_platform_info, cl_profiling_info, cl_program, cl_program_build_info, cl_program_info, cl_uint,
};

use crate::info::Loader;

/// The possible names of the loader, in the order in which they are tried.
const LIBRARIES: &[&str] = if cfg!(target_os = "macos") {
    &["/System/Library/Frameworks/OpenCL.framework/OpenCL"]
} else if cfg!(windows) {
    &["OpenCL.dll"]
} else {
    &["libOpenCL.so.1", "libOpenCL.so"]
};

/// The return value of a function if there is no loader.
trait Absent {
    fn absent() -> Self;
}

impl Absent for cl_int {
    fn absent() -> Self {
        ocl::ffi::CL_PLATFORM_NOT_FOUND_KHR
    }
}

impl Absent for *mut c_void {
    fn absent() -> Self {
        std::ptr::null_mut()
    }
}

/// Defines a table of pointers to OpenCL's functions, and for each a function that calls through it.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        #[derive(Debug)]
        struct Functions {
            $($name: unsafe extern "system" fn($($ty),*) -> $result,)*
        }

        impl Functions {
            /// Looks up every function in `library`, which must never be unloaded.
            fn find(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the symbol is OpenCL's function of that name, and the assertion below compares its type.
                    $($name: unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes())? },)*
                })
            }
        }

        $(
            /// OpenCL's function of this name; without a loader it returns [`Absent::absent`].
            ///
            /// # Safety
            /// The arguments must be valid according to the OpenCL standard.
            #[allow(clippy::too_many_arguments, reason = "OpenCL has these parameters")]
            pub(super) unsafe fn $name($($argument: $ty),*) -> $result {
                match loaded() {
                    // SAFETY: the caller guarantees that the arguments are valid.
                    Ok(loaded) => unsafe { (loaded.functions.$name)($($argument),*) },
                    Err(_) => <$result as Absent>::absent(),
                }
            }

            // The declaration in `ocl::ffi` has the same type. Never called, so that the symbol is not linked.
            const _: fn() = || {
                let _: unsafe extern "system" fn($($ty),*) -> $result = ocl::ffi::$name;
            };
        )*
    };
}

functions! {
    fn clGetPlatformIDs(num_entries: cl_uint, platforms: *mut cl_platform_id, num_platforms: *mut cl_uint) -> cl_int;
    fn clGetPlatformInfo(
        platform: cl_platform_id,
        param_name: cl_platform_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clGetDeviceIDs(
        platform: cl_platform_id,
        device_type: cl_device_type,
        num_entries: cl_uint,
        devices: *mut cl_device_id,
        num_devices: *mut cl_uint,
    ) -> cl_int;
    fn clGetDeviceInfo(
        device: cl_device_id,
        param_name: cl_device_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clCreateContext(
        properties: *const cl_context_properties,
        num_devices: cl_uint,
        devices: *const cl_device_id,
        pfn_notify: Option<extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>,
        user_data: *mut c_void,
        errcode_ret: *mut cl_int,
    ) -> cl_context;
    fn clReleaseContext(context: cl_context) -> cl_int;
    fn clCreateCommandQueue(
        context: cl_context,
        device: cl_device_id,
        properties: cl_command_queue_properties,
        errcode_ret: *mut cl_int,
    ) -> cl_command_queue;
    fn clReleaseCommandQueue(command_queue: cl_command_queue) -> cl_int;
    fn clCreateBuffer(
        context: cl_context,
        flags: cl_mem_flags,
        size: usize,
        host_ptr: *mut c_void,
        errcode_ret: *mut cl_int,
    ) -> cl_mem;
    fn clCreateImage(
        context: cl_context,
        flags: cl_mem_flags,
        image_format: *const cl_image_format,
        image_desc: *const cl_image_desc,
        host_ptr: *mut c_void,
        errcode_ret: *mut cl_int,
    ) -> cl_mem;
    fn clGetSupportedImageFormats(
        context: cl_context,
        flags: cl_mem_flags,
        image_type: cl_mem_object_type,
        num_entries: cl_uint,
        image_formats: *mut cl_image_format,
        num_image_formats: *mut cl_uint,
    ) -> cl_int;
    fn clReleaseMemObject(memobj: cl_mem) -> cl_int;
    fn clCreateProgramWithSource(
        context: cl_context,
        count: cl_uint,
        strings: *const *const c_char,
        lengths: *const usize,
        errcode_ret: *mut cl_int,
    ) -> cl_program;
    fn clBuildProgram(
        program: cl_program,
        num_devices: cl_uint,
        device_list: *const cl_device_id,
        options: *const c_char,
        pfn_notify: Option<extern "C" fn(cl_program, *mut c_void)>,
        user_data: *mut c_void,
    ) -> cl_int;
    fn clGetProgramBuildInfo(
        program: cl_program,
        device: cl_device_id,
        param_name: cl_program_build_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clGetProgramInfo(
        program: cl_program,
        param_name: cl_program_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clReleaseProgram(program: cl_program) -> cl_int;
    fn clCreateKernel(program: cl_program, kernel_name: *const c_char, errcode_ret: *mut cl_int) -> cl_kernel;
    fn clReleaseKernel(kernel: cl_kernel) -> cl_int;
    fn clGetKernelInfo(
        kernel: cl_kernel,
        param_name: cl_kernel_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clGetKernelArgInfo(
        kernel: cl_kernel,
        arg_indx: cl_uint,
        param_name: cl_kernel_arg_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clGetKernelWorkGroupInfo(
        kernel: cl_kernel,
        device: cl_device_id,
        param_name: cl_kernel_work_group_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clSetKernelArg(kernel: cl_kernel, arg_index: cl_uint, arg_size: usize, arg_value: *const c_void) -> cl_int;
    fn clEnqueueWriteBuffer(
        command_queue: cl_command_queue,
        buffer: cl_mem,
        blocking_write: cl_bool,
        offset: usize,
        cb: usize,
        ptr: *const c_void,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clEnqueueReadBuffer(
        command_queue: cl_command_queue,
        buffer: cl_mem,
        blocking_read: cl_bool,
        offset: usize,
        cb: usize,
        ptr: *mut c_void,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clEnqueueFillBuffer(
        command_queue: cl_command_queue,
        buffer: cl_mem,
        pattern: *const c_void,
        pattern_size: usize,
        offset: usize,
        size: usize,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clEnqueueCopyBuffer(
        command_queue: cl_command_queue,
        src_buffer: cl_mem,
        dst_buffer: cl_mem,
        src_offset: usize,
        dst_offset: usize,
        cb: usize,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clEnqueueWriteImage(
        command_queue: cl_command_queue,
        image: cl_mem,
        blocking_write: cl_bool,
        origin: *const usize,
        region: *const usize,
        input_row_pitch: usize,
        input_slc_pitch: usize,
        ptr: *const c_void,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clEnqueueReadImage(
        command_queue: cl_command_queue,
        image: cl_mem,
        blocking_read: cl_bool,
        origin: *const usize,
        region: *const usize,
        row_pitch: usize,
        slc_pitch: usize,
        ptr: *mut c_void,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clEnqueueNDRangeKernel(
        command_queue: cl_command_queue,
        kernel: cl_kernel,
        work_dim: cl_uint,
        global_work_offset: *const usize,
        global_work_dims: *const usize,
        local_work_dims: *const usize,
        num_events_in_wait_list: cl_uint,
        event_wait_list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int;
    fn clFinish(command_queue: cl_command_queue) -> cl_int;
    fn clGetEventInfo(
        event: cl_event,
        param_name: cl_event_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clGetEventProfilingInfo(
        event: cl_event,
        param_name: cl_profiling_info,
        param_value_size: usize,
        param_value: *mut c_void,
        param_value_size_ret: *mut usize,
    ) -> cl_int;
    fn clReleaseEvent(event: cl_event) -> cl_int;
}

/// A loader with its functions. It is never unloaded, because drivers leave threads behind that run its code.
#[derive(Debug)]
struct Loaded {
    functions: Functions,
    name: String,
    _library: Library,
}

/// The loader, opened by the first call.
fn loaded() -> Result<&'static Loaded, &'static str> {
    static LOADED: OnceLock<Result<Loaded, String>> = OnceLock::new();
    LOADED.get_or_init(open).as_ref().map_err(String::as_str)
}

/// Opens the first of [`LIBRARIES`] that can be used; otherwise returns the error of the first attempt.
fn open() -> Result<Loaded, String> {
    #[cfg(unix)]
    if let Some(preloaded) = preloaded() {
        return Ok(preloaded);
    }
    let mut first = None;
    for name in LIBRARIES {
        // SAFETY: loading runs the library's initialisers; an OpenCL loader's do nothing but set up its own data.
        let found = unsafe { Library::new(*name) };
        let found = found.and_then(|library| Functions::find(&library).map(|functions| (library, functions)));
        match found {
            Ok((library, functions)) => {
                return Ok(Loaded { functions, name: path_of(name), _library: library });
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.map_or_else(String::new, |error| error.to_string()))
}

/// The loader that is in the process already, because `LD_PRELOAD` names it.
#[cfg(unix)]
fn preloaded() -> Option<Loaded> {
    let process = Library::from(libloading::os::unix::Library::this());
    let functions = Functions::find(&process).ok()?;
    Some(Loaded { functions, name: "preloaded into the process".to_owned(), _library: process })
}

/// The path of the library that was loaded as `name`, if the system reports it; otherwise the name.
fn path_of(name: &str) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    let of_loader = |path: &&str| path.rsplit('/').next().is_some_and(|file| file.starts_with(name));
    paths.into_iter().find(of_loader).unwrap_or(name).to_owned()
}

/// Opens the loader and returns its path, or the reason why there is none.
pub(crate) fn loader() -> Loader {
    match loaded() {
        Ok(loaded) => Loader::Opened(loaded.name.clone()),
        Err(why) => Loader::Missing(why.to_owned()),
    }
}
