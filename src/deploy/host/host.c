/* Runs a network in a folder that `tilewright compile MODEL -o DIR` wrote. Plain OpenCL 1.2 and C99; written by Tilewright.
 *
 *     cc -std=c99 -O2 DIR/host.c -o host -lOpenCL            (or -l:libOpenCL.so.1, where only the loader is installed)
 *     ./host [-d DEVICE] [-t] DIR image=image.npy probabilities=out.npy
 *
 * Inputs and outputs are NumPy's .npy, or the bare elements in any other file. -d picks a device by number, -t prints the
 * time of each launch. Exit codes: 0 done; 1 a kernel left its texture (checked kernels only); 2 wrong folder, file or
 * arguments; 3 no device, or one that cannot run this network.
 *
 * The lines of plan.txt are executed in their order; docs/schemas.md of Tilewright describes each of them. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opencl.h"
#include "pack.h"

enum { WRONG_RESULT = 1, BAD_INPUT = 2, BAD_DEVICE = 3, MAX_RANK = 16 };

/* A buffer of `width` bytes (texel 1, height 1), or an image. */
struct object { cl_mem memory; size_t width, height, texel; int is_image, is_report; };
/* A part of an object: bytes or texels. */
struct region { size_t object, x, y, width, height; };

static const char *folder;
static int arguments_count;
static char **arguments;
static char *is_used;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static struct object *objects;
static cl_program *programs;
static size_t objects_count, objects_made, programs_count, programs_made, weights_bytes;
static unsigned char *weights;

static void die(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    exit(code);
}

static void *reserve(size_t bytes) {
    void *memory = bytes < SIZE_MAX ? calloc(bytes + 1, 1) : NULL;
    if (!memory) die(BAD_DEVICE, "no memory for %zu bytes", bytes);
    return memory;
}

static void ok(cl_int status, const char *what) {
    if (status != CL_SUCCESS) die(BAD_DEVICE, "%s: OpenCL error %d", what, (int)status);
}

/* The product of two sizes; a size that no memory has if it is too large. */
static size_t times(size_t a, size_t b) { return b != 0 && a > SIZE_MAX / 4 / b ? SIZE_MAX / 4 : a * b; }

/* FNV-1a with 64 bits: shows a file that was damaged on its way. */
static unsigned long long hash_of(const void *contents, size_t bytes) {
    unsigned long long hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)contents)[i]) * 0x100000001b3ull;
    return hash;
}

/* The whole contents of a file, with a 0 behind it. */
static unsigned char *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    long end = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    if (end < 0) die(BAD_INPUT, "cannot read %s", path);
    unsigned char *contents = reserve((size_t)end);
    rewind(file);
    *bytes = fread(contents, 1, (size_t)end, file);
    if (*bytes != (size_t)end) die(BAD_INPUT, "cannot read all of %s", path);
    fclose(file);
    return contents;
}

static unsigned char *load_from_folder(const char *name, size_t *bytes) {
    if (strpbrk(name, "/\\")) die(BAD_INPUT, "plan.txt names the file %s, which is not in its folder", name);
    char *path = reserve(strlen(folder) + strlen(name) + 1);
    sprintf(path, "%s/%s", folder, name);
    unsigned char *contents = load(path, bytes);
    free(path);
    return contents;
}

static size_t limit(cl_uint which) {
    unsigned char value[16] = {0};
    size_t size = 0, number = 0;
    ok(clGetDeviceInfo(device, which, sizeof value, value, &size), "asking the device for its limits");
    memcpy(&number, value, size < sizeof number ? size : sizeof number);
    return number;
}

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
}

static void make_object(struct object object, unsigned order, unsigned channel) {
    cl_int status = CL_SUCCESS;
    size_t most = limit(CL_DEVICE_MAX_MEM_ALLOC_SIZE), bytes = times(times(object.width, object.height), object.texel);
    if (objects_made == objects_count) die(BAD_INPUT, "plan.txt has more memory than it says");
    if (bytes > most) die(BAD_DEVICE, "memory %zu has %zu bytes, and the device allows %zu", objects_made, bytes, most);
    if (object.is_image) {
        size_t width = limit(CL_DEVICE_IMAGE2D_MAX_WIDTH), height = limit(CL_DEVICE_IMAGE2D_MAX_HEIGHT);
        cl_image_format format = {order, channel};
        /* Bytes of a channel: signed and unsigned integers of 8, 16 and 32 bits, halves, floats. */
        static const unsigned char channel_bytes[] = {1, 2, 4, 1, 2, 4, 2, 4};
        size_t channels = order == CL_R ? 1 : order == CL_RG ? 2 : order == CL_RGBA ? 4 : 0;
        if (channels == 0 || channel < 0x10D7 || channel > 0x10DE || object.texel != channels * channel_bytes[channel - 0x10D7] ||
            bytes == 0)
            die(BAD_INPUT, "plan.txt: memory %zu is no texture: %zux%zu texels of %zu bytes, channels %u of type %u",
                objects_made, object.width, object.height, object.texel, order, channel);
        cl_image_desc shape;
        memset(&shape, 0, sizeof shape);
        shape.image_type = CL_MEM_OBJECT_IMAGE2D;
        shape.image_width = object.width;
        shape.image_height = object.height;
        if (!(limit(CL_DEVICE_IMAGE_SUPPORT) & 1)) die(BAD_DEVICE, "the device has no images");
        if (object.width > width || object.height > height)
            die(BAD_DEVICE, "texture %zu has %zux%zu texels, and the device allows %zux%zu", objects_made, object.width,
                object.height, width, height);
        object.memory = clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &status);
    } else {
        object.memory = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &status);
    }
    ok(status, "allocating memory");
    objects[objects_made++] = object;
}

/* Checks that a region lies in its object and has so many bytes. */
static struct object *object_of(struct region r, size_t bytes) {
    struct object *o = r.object < objects_made ? objects + r.object : NULL;
    if (!o || r.x > o->width || r.width > o->width - r.x || r.y > o->height || r.height > o->height - r.y ||
        bytes != times(times(r.width, r.height), o->texel))
        die(BAD_INPUT, "plan.txt names a place that memory %zu does not have", r.object);
    return o;
}

/* Copies a part of an object from or to the host; `bytes` has to be its size. */
static void transfer(struct region r, void *host, size_t bytes, int is_write) {
    struct object *o = object_of(r, bytes);
    size_t from[3] = {r.x, r.y, 0}, size[3] = {r.width, r.height, 1};
    if (bytes == 0) return;
    if (o->is_image && is_write)
        ok(clEnqueueWriteImage(queue, o->memory, CL_TRUE, from, size, 0, 0, host, 0, NULL, NULL), "writing a texture");
    else if (o->is_image)
        ok(clEnqueueReadImage(queue, o->memory, CL_TRUE, from, size, 0, 0, host, 0, NULL, NULL), "reading a texture");
    else if (is_write)
        ok(clEnqueueWriteBuffer(queue, o->memory, CL_TRUE, r.x, bytes, host, 0, NULL, NULL), "writing a buffer");
    else
        ok(clEnqueueReadBuffer(queue, o->memory, CL_TRUE, r.x, bytes, host, 0, NULL, NULL), "reading a buffer");
}

/* `HASH FILE OPTIONS` */
static void make_program(char *line) {
    static const char described[] = " -cl-kernel-arg-info";
    unsigned long long expected;
    int at = 0;
    size_t bytes;
    if (sscanf(line, "%llx %n", &expected, &at) != 1 || !at) die(BAD_INPUT, "plan.txt: `program %s` is cut off", line);
    line += at;
    char *options = strchr(line, ' '), *all;
    if (options) *options++ = 0;
    else options = line + strlen(line);
    if (programs_made == programs_count) die(BAD_INPUT, "plan.txt has more programs than it says");
    const char *source = (const char *)load_from_folder(line, &bytes);
    if (hash_of(source, bytes) != expected) die(BAD_INPUT, "%s is not the file that belongs to plan.txt", line);
    all = reserve(strlen(options) + sizeof described);
    strcat(strcpy(all, options), described);
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, &bytes, &status);
    ok(status, line);
    status = clBuildProgram(program, 1, &device, all, NULL, NULL);
    free(all);
    if (status != CL_SUCCESS) {
        char *log = reserve(1 << 16);
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 1 << 16, log, NULL);
        die(BAD_DEVICE, "%s: OpenCL error %d\n%s", line, (int)status, log);
    }
    programs[programs_made++] = program;
    free((void *)source);
}

/* Sets argument `index` from a line: `memory PLACE`, `value BYTES HEX` or `local BYTES`. What the kernel declares is compared, where the
 * driver can tell: some do not notice a buffer for a texture. */
static void set_argument(cl_kernel kernel, cl_uint index, const char *line, const char *name) {
    size_t number = 0;
    int at = 0;
    unsigned char bytes[128];
    char type[64] = "";
    cl_uint space = 0;
    cl_int status = -1;
    int is_known =
        clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof type - 1, type, NULL) == CL_SUCCESS &&
        clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL) == CL_SUCCESS;
    int is_image = strstr(type, "image2d_t") != NULL;
    const char *wanted = "memory ";
    if (!is_image && space == CL_KERNEL_ARG_ADDRESS_LOCAL) wanted = "local ";
    if (!is_image && space == CL_KERNEL_ARG_ADDRESS_PRIVATE) wanted = "value ";
    if (is_known && strncmp(line, wanted, strlen(wanted)) != 0)
        die(BAD_INPUT, "plan.txt: `%s` is no argument of %s, which has a `%s`there", line, name, wanted);
    if (sscanf(line, "memory %zu", &number) == 1 && number < objects_made) {
        if (is_known && is_image != objects[number].is_image)
            die(BAD_INPUT, "plan.txt: memory %zu is no argument %u of %s, which is %s", number, index, name, type);
        status = clSetKernelArg(kernel, index, sizeof(cl_mem), &objects[number].memory);
    } else if (sscanf(line, "value %zu %n", &number, &at) == 1 && at && number <= sizeof bytes &&
               strlen(line + at) == 2 * number) {
        for (size_t i = 0; i < number; i++) {
            unsigned byte;
            if (sscanf(line + at + 2 * i, "%2x", &byte) != 1) die(BAD_INPUT, "plan.txt: `%s` is cut off", line);
            bytes[i] = (unsigned char)byte;
        }
        status = clSetKernelArg(kernel, index, number, bytes);
    } else if (sscanf(line, "local %zu", &number) == 1) {
        status = clSetKernelArg(kernel, index, number, NULL);
    } else {
        die(BAD_INPUT, "plan.txt: `%s` is no argument of %s", line, name);
    }
    ok(status, name);
}

/* Runs a kernel: `PROGRAM ARGUMENTS GX GY GZ LX LY LZ KERNEL`, then one line for each argument. */
static void launch(const char *line, char **rest, int is_timed) {
    size_t program, n, global[3], local[3], most = 0;
    cl_uint declared = 0;
    int at = 0;
    if (sscanf(line, "%zu %zu %zu %zu %zu %zu %zu %zu %n", &program, &n, global, global + 1, global + 2, local,
               local + 1, local + 2, &at) != 8 || program >= programs_made)
        die(BAD_INPUT, "plan.txt: `launch %s` is no launch", line);
    cl_int status;
    cl_kernel kernel = clCreateKernel(programs[program], line + at, &status);
    ok(status, line + at);
    ok(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof declared, &declared, NULL), line + at);
    if (n != declared) die(BAD_INPUT, "plan.txt: %s has %u arguments, not %zu", line + at, declared, n);
    for (size_t i = 0; i < n; i++) {
        char *argument = *rest, *end = argument ? strchr(argument, '\n') : NULL;
        if (!end) die(BAD_INPUT, "plan.txt is cut off");
        *end = 0;
        *rest = end + 1;
        set_argument(kernel, (cl_uint)i, argument, line + at);
    }
    ok(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL), line + at);
    size_t group = times(times(local[0], local[1]), local[2]);
    if (group > most)
        die(BAD_DEVICE, "%s has groups of %zu work-items, and the device allows %zu", line + at, group, most);
    if (local[0] && (!local[1] || !local[2])) die(BAD_INPUT, "plan.txt: `launch %s` has an empty group", line);
    cl_event event;
    if (global[0] && global[1] && global[2]) {
        ok(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local[0] ? local : NULL, 0, NULL, &event), line + at);
        if (is_timed) {
            cl_ulong start = 0, end = 0;
            ok(clWaitForEvents(1, &event), line + at);
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
            printf("%s: %.3f ms\n", line + at, (double)(end - start) / 1e6);
        }
        clReleaseEvent(event);
    }
    clReleaseKernel(kernel);
}

/* The file of the argument `NAME=FILE`; a name may contain `=`. */
static const char *file_of(const char *name) {
    for (int i = 0; i < arguments_count; i++) {
        char *equals = strrchr(arguments[i], '=');
        size_t length = equals ? (size_t)(equals - arguments[i]) : 0;
        if (length == strlen(name) && strncmp(arguments[i], name, length) == 0) {
            is_used[i] = 1;
            return equals + 1;
        }
    }
    return NULL;
}

/* The header of a .npy file; its length is a multiple of 64. */
static size_t header(char *text, const char *type, const size_t *shape, int rank) {
    int n = sprintf(text + 10, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < rank; i++) n += sprintf(text + 10 + n, i + 1 < rank || rank == 1 ? "%zu, " : "%zu", shape[i]);
    if (rank == 1) n--;
    n += sprintf(text + 10 + n, "), }");
    size_t length = ((size_t)n + 11 + 63) / 64 * 64 - 10;
    memset(text + 10 + n, ' ', length - (size_t)n);
    text[10 + length - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)(length & 255);
    text[9] = (char)(length >> 8);
    return 10 + length;
}

/* The value of a key in the header of a .npy file, which is a dictionary as Python writes it; NULL if there is none. */
static const char *value_of(const char *head, const char *key) {
    size_t length = strlen(key);
    for (const char *at = head; (at = strstr(at, key)) != NULL; at += length) {
        char quote = at > head ? at[-1] : 0;
        if ((quote != '\'' && quote != '"') || at[length] != quote) continue;
        for (at += length + 1; *at == ' ';) at++;
        if (*at != ':') return NULL;
        for (at++; *at == ' ';) at++;
        return at;
    }
    return NULL;
}

/* The elements in a file that holds exactly this tensor. */
static unsigned char *elements(unsigned char *contents, size_t length, size_t bytes, const char *type, const size_t *shape,
                               int rank, const char *path) {
    char wanted[1024];
    if (length < 10 || memcmp(contents, "\x93NUMPY", 6) != 0) {
        if (length != bytes) die(BAD_INPUT, "%s has %zu bytes, and the tensor %zu", path, length, bytes);
        return contents;
    }
    size_t skip = contents[6] == 1 ? 10 : 12, n = contents[8] + 256u * contents[9];
    if (skip == 12 && length >= 12) n += ((size_t)contents[10] << 16) + ((size_t)contents[11] << 24);
    if (length < skip || n > length - skip) die(BAD_INPUT, "%s is cut off", path);
    unsigned char first = contents[skip + n];
    contents[skip + n] = 0;
    const char *head = (const char *)contents + skip, *found = value_of(head, "descr"), *at = value_of(head, "shape");
    const char *order = value_of(head, "fortran_order");
    size_t letters = strlen(type);
    int is_same = found && order && at && *at == '(' && (*found == '\'' || *found == '"') &&
                  strncmp(found + 1, type, letters) == 0 && found[1 + letters] == *found && strncmp(order, "False", 5) == 0;
    if (is_same) at++;
    for (int i = 0; i < rank && is_same; i++) {
        char *next;
        is_same = *at >= '0' && *at <= '9' && strtoull(at, &next, 10) == shape[i];
        if (is_same)
            for (at = next; *at == ',' || *at == ' '; at++) {}
    }
    if (!is_same || *at != ')') {
        header(wanted, type, shape, rank);
        die(BAD_INPUT, "%s holds %.*s, and the tensor is %.*s", path, (int)strcspn(head, "}") + 1, head,
            (int)strcspn(wanted + 10, "}") + 1, wanted + 10);
    }
    contents[skip + n] = first;
    if (length - skip - n != bytes) die(BAD_INPUT, "%s has %zu bytes of elements, and the tensor %zu", path, length - skip - n, bytes);
    return contents + skip + n;
}

/* `PLACE X Y WIDTH HEIGHT BYTES TYPE SIZE ARRANGEMENT RANK EXTENTS NAME`: reads an input or writes an output. */
static void exchange(const char *line, int is_input) {
    struct region r;
    size_t bytes, size, count = 1, shape[MAX_RANK], length;
    int rank, at = 0, step = 0, needed = 0;
    char type[16], arrangement[16], head[1024];
    if (sscanf(line, "%zu %zu %zu %zu %zu %zu %15s %zu %15s %d%n", &r.object, &r.x, &r.y, &r.width, &r.height, &bytes,
               type, &size, arrangement, &rank, &at) != 10 || rank < 0 || rank > MAX_RANK || strlen(type) != 3 ||
        !strchr("<|", type[0]) || !strchr("biuf", type[1]) || !strchr("1248", type[2]) || size != (size_t)(type[2] - '0'))
        die(BAD_INPUT, "plan.txt: `%s` is no input or output", line);
    for (int i = 0; i < rank; i++, at += step) {
        if (sscanf(line + at, "%zu%n", shape + i, &step) != 1) die(BAD_INPUT, "plan.txt: `%s` is cut off", line);
        count = times(count, shape[i]);
    }
    object_of(r, bytes);
    /* No arrangement places elements above 4 times their number, nor in more memory than there is. */
    if (times(count, size) > bytes) die(BAD_INPUT, "plan.txt: `%s` has more elements than memory", line);
    const char *name = line + at + (line[at] == ' '), *path = file_of(name);
    tw_place *place = tw_arrangement(arrangement, &needed);
    if (!place || (needed && needed != rank)) die(BAD_INPUT, "plan.txt: `%s` is no arrangement", arrangement);
    if (!path && is_input) die(BAD_INPUT, "input `%s` is not given; write %s=FILE", name, name);
    unsigned char *packed = reserve(bytes);
    if (is_input) {
        unsigned char *contents = load(path, &length);
        unsigned char *logical = elements(contents, length, count * size, type, shape, rank, path);
        if (!tw_pack(place, shape, count, size, logical, packed, bytes)) die(BAD_INPUT, "plan.txt: `%s` does not fit", name);
        transfer(r, packed, bytes, 1);
        free(contents);
    } else if (path) {
        unsigned char *logical = reserve(count * size);
        transfer(r, packed, bytes, 0);
        if (!tw_unpack(place, shape, count, size, logical, packed, bytes)) die(BAD_INPUT, "plan.txt: `%s` does not fit", name);
        FILE *file = fopen(path, "wb");
        size_t end = strlen(path), head_bytes = header(head, type, shape, rank), done = 1;
        if (file && end > 4 && strcmp(path + end - 4, ".npy") == 0) done = fwrite(head, head_bytes, 1, file);
        if (!file || !done || fwrite(logical, 1, count * size, file) != count * size || fclose(file) != 0)
            die(BAD_INPUT, "cannot write %s", path);
        free(logical);
    } else {
        printf("output `%s` is not written; %s=FILE.npy would\n", name, name);
    }
    free(packed);
}

/* Loads the packed constants. Their hash (FNV-1a, 64 bits) shows a file that was damaged on its way. */
static void load_weights(const char *line) {
    unsigned long long bytes, expected;
    if (sscanf(line, "%llu %llx", &bytes, &expected) != 2) die(BAD_INPUT, "plan.txt: `weights %s` is cut off", line);
    weights = load_from_folder("weights.bin", &weights_bytes);
    if (weights_bytes != bytes) die(BAD_INPUT, "weights.bin has %zu bytes instead of %llu", weights_bytes, bytes);
    if (hash_of(weights, weights_bytes) != expected) die(BAD_INPUT, "weights.bin is not the file that belongs to plan.txt");
}

static void constant(const char *line) {
    struct region r;
    size_t offset, bytes;
    if (sscanf(line, "%zu %zu %zu %zu %zu %zu %zu", &r.object, &r.x, &r.y, &r.width, &r.height, &bytes, &offset) != 7 ||
        offset > weights_bytes || bytes > weights_bytes - offset)
        die(BAD_INPUT, "plan.txt: `constant %s` is not in weights.bin", line);
    transfer(r, weights + offset, bytes, 1);
}

static void extension(const char *name) {
    char *all = reserve(1 << 16);
    ok(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 1 << 16, all, NULL), "asking the device for its extensions");
    int is_there = 0;
    for (char *word = strtok(all, " "); word; word = strtok(NULL, " ")) is_there |= strcmp(word, name) == 0;
    if (!is_there) die(BAD_DEVICE, "the device lacks the extension %s", name);
    free(all);
}

/* Checked kernels report the first access outside of a texture. */
static void check_reports(void) {
    for (size_t i = 0; i < objects_made; i++) {
        cl_int report[4] = {0};
        struct region whole = {i, 0, 0, sizeof report, 1};
        if (!objects[i].is_report) continue;
        transfer(whole, report, sizeof report, 0);
        if (report[0])
            die(WRONG_RESULT, "access %d of the kernels with report %zu is outside of its texture: row %d, column %d",
                (int)report[0], i, (int)report[1], (int)report[2]);
    }
}

/* Executes one line; returns 0 at the end of the plan. */
static int execute(char *line, char **rest, int is_timed) {
    struct object object = {NULL, 0, 1, 1, 0, 0};
    unsigned order = 0, channel = 0;
    char *text = strchr(line, ' ');
    if (text) *text++ = 0;
    else text = line + strlen(line);
    if (strcmp(line, "end") == 0) {
        if (objects_made != objects_count || programs_made != programs_count) die(BAD_INPUT, "plan.txt has less than it says");
        return 0;
    }
    if (strcmp(line, "counts") == 0 && !objects && sscanf(text, "%zu %zu", &objects_count, &programs_count) == 2) {
        if (objects_count > 1u << 24 || programs_count > 1u << 24) die(BAD_INPUT, "plan.txt: `counts %s` is too much", text);
        objects = reserve(objects_count * sizeof *objects);
        programs = reserve(programs_count * sizeof *programs);
    } else if (strcmp(line, "buffer") == 0 && sscanf(text, "%zu", &object.width) == 1) {
        make_object(object, 0, 0);
    } else if (strcmp(line, "image") == 0 &&
               sscanf(text, "%zu %zu %zu %u %u", &object.width, &object.height, &object.texel, &order, &channel) == 5) {
        object.is_image = 1;
        make_object(object, order, channel);
    } else if (strcmp(line, "report") == 0) {
        unsigned char zeros[16] = {0};
        struct region whole = {objects_made, 0, 0, sizeof zeros, 1};
        object.width = sizeof zeros;
        object.is_report = 1;
        make_object(object, 0, 0);
        transfer(whole, zeros, sizeof zeros, 1);
    } else if (strcmp(line, "extension") == 0) extension(text);
    else if (strcmp(line, "program") == 0) make_program(text);
    else if (strcmp(line, "weights") == 0) load_weights(text);
    else if (strcmp(line, "constant") == 0) constant(text);
    else if (strcmp(line, "input") == 0) exchange(text, 1);
    else if (strcmp(line, "launch") == 0) launch(text, rest, is_timed);
    else if (strcmp(line, "check") == 0) check_reports();
    else if (strcmp(line, "output") == 0) exchange(text, 0);
    else die(BAD_INPUT, "plan.txt: `%s %s` means nothing to this host", line, text);
    return 1;
}

/* The last line of a plan is `end HASH`, with the hash of everything before it. */
static void check_whole(const char *plan, size_t bytes) {
    size_t last = bytes > 0 ? bytes - 1 : 0;
    unsigned long long expected;
    while (last > 0 && plan[last - 1] != '\n') last--;
    if (bytes == 0 || plan[bytes - 1] != '\n' || sscanf(plan + last, "end %llx", &expected) != 1)
        die(BAD_INPUT, "plan.txt is cut off");
    if (hash_of(plan, last) != expected) die(BAD_INPUT, "plan.txt is damaged: it is not what Tilewright wrote");
}

int main(int argc, char **argv) {
    int wanted = 0, is_timed = 0, at = 1;
    size_t bytes;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-t") == 0) is_timed = 1;
        else if (strcmp(argv[at], "-d") == 0 && at + 1 < argc) wanted = atoi(argv[++at]);
        else die(BAD_INPUT, "unknown option %s", argv[at]);
    }
    if (at >= argc) die(BAD_INPUT, "usage: host [-d DEVICE] [-t] DIR INPUT=FILE... OUTPUT=FILE...");
    folder = argv[at++];
    arguments = argv + at;
    arguments_count = argc - at;
    is_used = reserve((size_t)arguments_count);
    char *plan = (char *)load_from_folder("plan.txt", &bytes), *rest = plan, first[] = "tilewright-network 1\n";
    if (strncmp(plan, first, strlen(first)) != 0) die(BAD_INPUT, "%s/plan.txt is no plan that this host can run", folder);
    check_whole(plan, bytes);
    rest += strlen(first);
    open_device(wanted);
    for (;;) {
        char *line = rest, *end = strchr(line, '\n');
        if (!end) die(BAD_INPUT, "plan.txt is cut off");
        *end = 0;
        rest = end + 1;
        if (!execute(line, &rest, is_timed)) break;
    }
    for (int i = 0; i < arguments_count; i++)
        if (!is_used[i]) die(BAD_INPUT, "`%s` names no input or output of the network", arguments[i]);
    return 0;
}
