/* Runs a network in a folder that `tilewright compile MODEL -o DIR` wrote. Plain OpenCL 1.2 and C99; written by Tilewright.
 *
 *     cc -std=c99 -O2 DIR/host.c -o host -lOpenCL            (or -l:libOpenCL.so.1, where only the loader is installed)
 *     ./host [-d DEVICE] [-t] DIR image=image.npy probabilities=out.npy
 *
 * Inputs and outputs are NumPy's .npy, or the bare elements in any other file. -d picks a device by number, -t prints the time of each
 * launch. Exit codes: 0 done; 1 a kernel left its texture (checked kernels only); 2 wrong folder, file or arguments; 3 no device, or one
 * that cannot run this network.
 *
 * plan.h reads and checks plan.txt, exchange.h reads and writes tensors. What follows is the way from a plan to OpenCL: memory,
 * programs, constants, inputs, launches in their order, outputs. */
#include "exchange.h"
#include "opencl.h"
#include "plan.h"

static const char *folder;
static struct plan plan;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_mem *memory;
static cl_program *programs;

static void ok(cl_int status, const char *what) {
    if (status != CL_SUCCESS) die(BAD_DEVICE, "%s: OpenCL error %d", what, (int)status);
}

/* A number that the device tells about itself. */
static size_t limit(cl_uint which) {
    unsigned char value[16] = {0};
    size_t bytes = 0, number = 0;
    ok(clGetDeviceInfo(device, which, sizeof value, value, &bytes), "asking the device for its limits");
    memcpy(&number, value, bytes < sizeof number ? bytes : sizeof number);
    return number;
}

/* Opens the device with a number, counted over all platforms, and checks that it has the extensions of the plan. */
static void open_device(int wanted) {
    cl_platform_id platforms[32];
    cl_device_id found[32];
    cl_uint n_platforms = 0, n = 0, seen = 0;
    cl_int status = clGetPlatformIDs(32, platforms, &n_platforms);
    if (status != CL_SUCCESS) n_platforms = 0;
    for (cl_uint i = 0; i < n_platforms && i < 32 && !device; i++) {
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 32, found, &n) != CL_SUCCESS) continue;
        for (cl_uint j = 0; j < n && j < 32; j++)
            if ((int)seen++ == wanted) device = found[j];
    }
    if (!device) die(BAD_DEVICE, "there is no OpenCL device %d: %u were found", wanted, seen);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    ok(status, "creating a context");
    queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &status);
    ok(status, "creating a queue");
    char *all = reserve(1 << 16);
    ok(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 1 << 16, all, NULL), "asking the device for its extensions");
    for (size_t i = 0; i < plan.n_extensions; i++) {
        const char *name = plan.extensions[i], *at = all;
        size_t length = strlen(name);
        while (at && (strncmp(at, name, length) != 0 || !strchr(" ", at[length]))) at = (at = strchr(at, ' ')) ? at + 1 : NULL;
        if (!at) die(BAD_DEVICE, "the device lacks the extension %s", name);
    }
    free(all);
}

static cl_mem make_image(size_t number, const struct object *o) {
    size_t width = limit(CL_DEVICE_IMAGE2D_MAX_WIDTH), height = limit(CL_DEVICE_IMAGE2D_MAX_HEIGHT);
    cl_image_format format = {o->order, o->channel};
    cl_image_desc shape;
    cl_int status;
    memset(&shape, 0, sizeof shape);
    shape.image_type = CL_MEM_OBJECT_IMAGE2D;
    shape.image_width = o->width;
    shape.image_height = o->height;
    if (!(limit(CL_DEVICE_IMAGE_SUPPORT) & 1)) die(BAD_DEVICE, "the device has no images");
    if (o->width > width || o->height > height)
        die(BAD_DEVICE, "texture %zu has %zux%zu texels, and the device allows %zux%zu", number, o->width, o->height, width, height);
    cl_mem made = clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &status);
    ok(status, "allocating a texture");
    return made;
}

static cl_mem make_memory(size_t number) {
    const struct object *o = plan.objects + number;
    size_t most = limit(CL_DEVICE_MAX_MEM_ALLOC_SIZE), bytes = times(times(o->width, o->height), o->texel);
    cl_int status;
    if (bytes > most) die(BAD_DEVICE, "memory %zu has %zu bytes, and the device allows %zu", number, bytes, most);
    if (o->kind == IMAGE) return make_image(number, o);
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &status);
    ok(status, "allocating a buffer");
    return made;
}

/* Copies a region from or to the host. */
static void transfer(struct region r, void *host, int is_write) {
    size_t from[3] = {r.x, r.y, 0}, extents[3] = {r.width, r.height, 1};
    cl_mem m = memory[r.object];
    if (r.bytes == 0) return;
    if (plan.objects[r.object].kind == IMAGE && is_write)
        ok(clEnqueueWriteImage(queue, m, CL_TRUE, from, extents, 0, 0, host, 0, NULL, NULL), "writing a texture");
    else if (plan.objects[r.object].kind == IMAGE)
        ok(clEnqueueReadImage(queue, m, CL_TRUE, from, extents, 0, 0, host, 0, NULL, NULL), "reading a texture");
    else if (is_write)
        ok(clEnqueueWriteBuffer(queue, m, CL_TRUE, r.x, r.bytes, host, 0, NULL, NULL), "writing a buffer");
    else
        ok(clEnqueueReadBuffer(queue, m, CL_TRUE, r.x, r.bytes, host, 0, NULL, NULL), "reading a buffer");
}

/* Checked kernels report the first access outside of a texture. Before the first launch, reports are set to zeros. */
static void exchange_reports(int is_write) {
    for (size_t i = 0; i < plan.n_objects; i++) {
        cl_int report[REPORT_BYTES / sizeof(cl_int)] = {0};
        struct region whole = {i, 0, 0, sizeof report, 1, sizeof report};
        if (plan.objects[i].kind != REPORT) continue;
        transfer(whole, report, is_write);
        if (report[0])
            die(WRONG_RESULT, "access %d of the kernels with report %zu is outside of its texture: row %d, column %d",
                (int)report[0], i, (int)report[1], (int)report[2]);
    }
}

static cl_program build(const struct program *p) {
    static const char described[] = " -cl-kernel-arg-info";
    size_t bytes;
    cl_int status;
    const char *source = load_checked(folder, p->file, p->hash, &bytes);
    char *options = reserve(strlen(p->options) + sizeof described);
    strcat(strcpy(options, p->options), described);
    cl_program program = clCreateProgramWithSource(context, 1, &source, &bytes, &status);
    ok(status, p->file);
    status = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (status != CL_SUCCESS) {
        char *log = reserve(1 << 16);
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 1 << 16, log, NULL);
        die(BAD_DEVICE, "%s: OpenCL error %d\n%s", p->file, (int)status, log);
    }
    free(options);
    free((void *)source);
    return program;
}

/* Sets an argument. What the kernel declares is compared where the driver can tell: some do not notice a buffer for a texture. */
static void set_argument(cl_kernel kernel, cl_uint index, const struct argument *a, const char *name) {
    char type[64] = "", wanted = 'm';
    cl_uint space = 0;
    int is_known = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof type - 1, type, NULL) == CL_SUCCESS &&
        clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL) == CL_SUCCESS;
    int is_image = strstr(type, "image2d_t") != NULL;
    if (!is_image && space == CL_KERNEL_ARG_ADDRESS_LOCAL) wanted = 'l';
    if (!is_image && space == CL_KERNEL_ARG_ADDRESS_PRIVATE) wanted = 'v';
    if (is_known && (a->kind != wanted || (wanted == 'm' && is_image != (plan.objects[a->number].kind == IMAGE))))
        die(BAD_INPUT, "plan.txt: `%s` is no argument %u of %s, which is %s", a->line, index, name, type);
    if (a->kind == 'm') ok(clSetKernelArg(kernel, index, sizeof(cl_mem), memory + a->number), name);
    else ok(clSetKernelArg(kernel, index, a->number, a->kind == 'v' ? a->bytes : NULL), name);
}

static void run(const struct launch *l, int is_timed) {
    size_t most = 0, group = times(times(l->local[0], l->local[1]), l->local[2]);
    cl_uint declared = 0;
    cl_int status;
    cl_event event;
    cl_ulong start = 0, end = 0;
    cl_kernel kernel = clCreateKernel(programs[l->program], l->kernel, &status);
    ok(status, l->kernel);
    ok(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof declared, &declared, NULL), l->kernel);
    if (l->n_arguments != declared) die(BAD_INPUT, "plan.txt: %s has %u arguments, not %zu", l->kernel, declared, l->n_arguments);
    for (cl_uint i = 0; i < declared; i++) set_argument(kernel, i, plan.arguments + l->first + i, l->kernel);
    ok(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL), l->kernel);
    if (group > most) die(BAD_DEVICE, "%s has groups of %zu work-items, and the device allows %zu", l->kernel, group, most);
    if (l->global[0] && l->global[1] && l->global[2]) {
        ok(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, l->global, group ? l->local : NULL, 0, NULL, &event), l->kernel);
        if (is_timed) {
            ok(clWaitForEvents(1, &event), l->kernel);
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
            printf("%s: %.3f ms\n", l->kernel, (double)(end - start) / 1e6);
        }
        clReleaseEvent(event);
    }
    clReleaseKernel(kernel);
}

int main(int argc, char **argv) {
    int wanted = 0, is_timed = 0, at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-t") == 0) is_timed = 1;
        else if (strcmp(argv[at], "-d") == 0 && at + 1 < argc) wanted = atoi(argv[++at]);
        else die(BAD_INPUT, "unknown option %s", argv[at]);
    }
    if (at >= argc) die(BAD_INPUT, "usage: host [-d DEVICE] [-t] DIR INPUT=FILE... OUTPUT=FILE...");
    folder = argv[at++];
    plan = plan_read(folder);
    const char **inputs = reserve(times(plan.n_inputs, sizeof *inputs)), **outputs = reserve(times(plan.n_outputs, sizeof *outputs));
    for (size_t i = 0; i < plan.n_inputs; i++) {
        inputs[i] = file_of(plan.inputs[i].name, argv + at, argc - at);
        if (!inputs[i]) die(BAD_INPUT, "input `%s` is not given; write %s=FILE", plan.inputs[i].name, plan.inputs[i].name);
    }
    for (size_t i = 0; i < plan.n_outputs; i++) outputs[i] = file_of(plan.outputs[i].name, argv + at, argc - at);
    for (int i = at; i < argc; i++)
        if (argv[i]) die(BAD_INPUT, "`%s` names no input or output of the network", argv[i]);

    open_device(wanted);
    memory = reserve(times(plan.n_objects, sizeof *memory));
    programs = reserve(times(plan.n_programs, sizeof *programs));
    for (size_t i = 0; i < plan.n_objects; i++) memory[i] = make_memory(i);
    for (size_t i = 0; i < plan.n_programs; i++) programs[i] = build(plan.programs + i);
    size_t weights_bytes;
    unsigned char *weights = load_checked(folder, "weights.bin", plan.weights_hash, &weights_bytes);
    if (weights_bytes != plan.weights_bytes) die(BAD_INPUT, "weights.bin has %zu bytes instead of %zu", weights_bytes, plan.weights_bytes);
    for (size_t i = 0; i < plan.n_constants; i++) transfer(plan.constants[i].region, weights + plan.constants[i].offset, 1);
    free(weights);
    for (size_t i = 0; i < plan.n_inputs; i++) {
        void *packed = packed_input(plan.inputs + i, inputs[i]);
        transfer(plan.inputs[i].region, packed, 1);
        free(packed);
    }
    exchange_reports(1);
    for (size_t i = 0; i < plan.n_launches; i++) run(plan.launches + i, is_timed);
    exchange_reports(0);
    for (size_t i = 0; i < plan.n_outputs; i++) {
        void *packed = reserve(plan.outputs[i].region.bytes);
        transfer(plan.outputs[i].region, packed, 0);
        if (outputs[i]) save_output(plan.outputs + i, packed, outputs[i]);
        else printf("output `%s` is not written; %s=FILE.npy would\n", plan.outputs[i].name, plan.outputs[i].name);
        free(packed);
    }
    return 0;
}
