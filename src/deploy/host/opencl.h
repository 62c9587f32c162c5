/* OpenCL's headers where they are installed, otherwise declarations of the functions that host.c calls (OpenCL 1.2).
 * Written by Tilewright. */
#ifndef TW_OPENCL_H
#define TW_OPENCL_H
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#ifdef __has_include
#if __has_include(<CL/cl.h>)
#define TW_HAS_CL_H
#endif
#endif

#ifdef TW_HAS_CL_H
#include <CL/cl.h>
#else
#include <stddef.h>
#include <stdint.h>
#if defined(_WIN32)
#define TW_CALL __stdcall
#else
#define TW_CALL
#endif

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong, cl_bitfield;
typedef struct tw_platform *cl_platform_id;
typedef struct tw_device *cl_device_id;
typedef struct tw_context *cl_context;
typedef struct tw_queue *cl_command_queue;
typedef struct tw_mem *cl_mem;
typedef struct tw_program *cl_program;
typedef struct tw_kernel *cl_kernel;
typedef struct tw_event *cl_event;
typedef intptr_t cl_context_properties;
typedef struct { cl_uint image_channel_order, image_channel_data_type; } cl_image_format;
typedef struct {
    cl_uint image_type;
    size_t image_width, image_height, image_depth, image_array_size, image_row_pitch, image_slice_pitch;
    cl_uint num_mip_levels, num_samples;
    cl_mem buffer;
} cl_image_desc;

#define CL_SUCCESS 0
#define CL_TRUE 1
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFu
#define CL_DEVICE_MAX_MEM_ALLOC_SIZE 0x1010
#define CL_DEVICE_IMAGE2D_MAX_WIDTH 0x1011
#define CL_DEVICE_IMAGE2D_MAX_HEIGHT 0x1012
#define CL_DEVICE_IMAGE_SUPPORT 0x1016
#define CL_DEVICE_NAME 0x102B
#define CL_DEVICE_EXTENSIONS 0x1030
#define CL_QUEUE_PROFILING_ENABLE 2
#define CL_MEM_READ_WRITE 1
#define CL_MEM_OBJECT_IMAGE2D 0x10F1
#define CL_R 0x10B0
#define CL_RG 0x10B2
#define CL_RGBA 0x10B5
#define CL_PROGRAM_BUILD_LOG 0x1183
#define CL_KERNEL_NUM_ARGS 0x1191
#define CL_KERNEL_ARG_ADDRESS_QUALIFIER 0x1196
#define CL_KERNEL_ARG_TYPE_NAME 0x1198
#define CL_KERNEL_ARG_ADDRESS_LOCAL 0x119C
#define CL_KERNEL_ARG_ADDRESS_PRIVATE 0x119E
#define CL_KERNEL_WORK_GROUP_SIZE 0x11B0
#define CL_PROFILING_COMMAND_START 0x1282
#define CL_PROFILING_COMMAND_END 0x1283

cl_int TW_CALL clGetPlatformIDs(cl_uint, cl_platform_id *, cl_uint *);
cl_int TW_CALL clGetDeviceIDs(cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *);
cl_int TW_CALL clGetDeviceInfo(cl_device_id, cl_uint, size_t, void *, size_t *);
cl_context TW_CALL clCreateContext(const cl_context_properties *, cl_uint, const cl_device_id *,
                                   void(TW_CALL *)(const char *, const void *, size_t, void *), void *, cl_int *);
cl_command_queue TW_CALL clCreateCommandQueue(cl_context, cl_device_id, cl_bitfield, cl_int *);
cl_mem TW_CALL clCreateBuffer(cl_context, cl_bitfield, size_t, void *, cl_int *);
cl_mem TW_CALL clCreateImage(cl_context, cl_bitfield, const cl_image_format *, const cl_image_desc *, void *, cl_int *);
cl_program TW_CALL clCreateProgramWithSource(cl_context, cl_uint, const char **, const size_t *, cl_int *);
cl_int TW_CALL clBuildProgram(cl_program, cl_uint, const cl_device_id *, const char *,
                              void(TW_CALL *)(cl_program, void *), void *);
cl_int TW_CALL clGetProgramBuildInfo(cl_program, cl_device_id, cl_uint, size_t, void *, size_t *);
cl_kernel TW_CALL clCreateKernel(cl_program, const char *, cl_int *);
cl_int TW_CALL clSetKernelArg(cl_kernel, cl_uint, size_t, const void *);
cl_int TW_CALL clGetKernelInfo(cl_kernel, cl_uint, size_t, void *, size_t *);
cl_int TW_CALL clGetKernelArgInfo(cl_kernel, cl_uint, cl_uint, size_t, void *, size_t *);
cl_int TW_CALL clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *);
cl_int TW_CALL clReleaseKernel(cl_kernel);
cl_int TW_CALL clReleaseEvent(cl_event);
cl_int TW_CALL clWaitForEvents(cl_uint, const cl_event *);
cl_int TW_CALL clGetEventProfilingInfo(cl_event, cl_uint, size_t, void *, size_t *);
cl_int TW_CALL clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                                      const size_t *, cl_uint, const cl_event *, cl_event *);
cl_int TW_CALL clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint,
                                   const cl_event *, cl_event *);
cl_int TW_CALL clEnqueueWriteBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint,
                                    const cl_event *, cl_event *);
cl_int TW_CALL clEnqueueReadImage(cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, size_t, size_t,
                                  void *, cl_uint, const cl_event *, cl_event *);
cl_int TW_CALL clEnqueueWriteImage(cl_command_queue, cl_mem, cl_bool, const size_t *, const size_t *, size_t, size_t,
                                   const void *, cl_uint, const cl_event *, cl_event *);
#endif
#endif
