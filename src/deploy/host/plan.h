/* plan.txt as data: reads the file and checks it against itself. Written by Tilewright.
 *
 * The first line names the format, the last one has a hash of all lines before. Every line between is a word and its fields, with one
 * blank between two; a name is the rest of its line. Memory and programs are numbered from 0, in the order of their lines:
 *
 *     extension NAME                                          the device must have it
 *     buffer BYTES | image WIDTH HEIGHT ORDER CHANNEL | report
 *     program HASH FILE OPTIONS                               the source of kernels, and options of their compiler
 *     weights BYTES HASH                                      the file weights.bin
 *     constant REGION OFFSET NAME                             bytes of weights.bin
 *     input REGION TYPE ARRANGEMENT RANK EXTENTS NAME         and the same for `output`
 *     launch PROGRAM GX GY GZ LX LY LZ KERNEL                 then a line for each argument:
 *     memory NUMBER | value HEX | local BYTES
 *
 * A REGION is `MEMORY X Y WIDTH HEIGHT`, in bytes of a buffer (Y is 0, HEIGHT 1) or texels of an image. After plan_read, numbers name memory
 * and programs that exist, regions lie in their memory, constants in weights.bin, and tensors have no more elements than their regions. */
#ifndef TW_PLAN_H
#define TW_PLAN_H
#include "npy.h"
#include "opencl.h"
#include "pack.h"
#include "words.h"

/* A report is a buffer that checked kernels write to: four int32, zeros at first. */
enum kind { BUFFER, IMAGE, REPORT };
enum { REPORT_BYTES = 16 };

/* Memory: an image, or a buffer of `width` bytes (texel 1, height 1). */
struct object { enum kind kind; size_t width, height, texel; unsigned order, channel; };
struct region { size_t object, x, y, width, height, bytes; };
struct program { unsigned long long hash; const char *file, *options; };
struct constant { struct region region; size_t offset; };
/* An input or an output; `count` elements of `size` bytes. */
struct tensor { struct region region; const char *type, *name; tw_place *place; size_t size, count, shape[MAX_RANK]; int rank; };
/* `number` is that of a memory, or of bytes. */
struct argument { const char *line; char kind; size_t number; unsigned char bytes[16]; };
/* `local` is all 0 where the driver chooses. The arguments are those from `first` on. */
struct launch { size_t program, global[3], local[3], first, n_arguments; const char *kernel; };

struct plan {
    const char **extensions;
    struct object *objects;
    struct program *programs;
    struct constant *constants;
    struct tensor *inputs, *outputs;
    struct launch *launches;
    struct argument *arguments;
    size_t n_extensions, n_objects, n_programs, n_constants, n_inputs, n_outputs, n_launches, n_arguments;
    size_t weights_bytes;
    unsigned long long weights_hash;
};

static struct object read_image(char **line) {
    /* Bytes of a channel: signed and unsigned integers of 8, 16 and 32 bits, halves, floats. */
    static const unsigned char channel_bytes[] = {1, 2, 4, 1, 2, 4, 2, 4};
    struct object object = {IMAGE, next_size(line), 0, 0, 0, 0};
    object.height = next_size(line);
    size_t order = next_size(line), channel = next_size(line);
    size_t channels = order == CL_R ? 1 : order == CL_RG ? 2 : order == CL_RGBA ? 4 : 0;
    if (channels == 0 || channel < 0x10D7 || channel > 0x10DE) wrong("image", "has texels of an unknown format");
    if (object.width == 0 || object.height == 0) wrong("image", "has no texels");
    object.order = (unsigned)order;
    object.channel = (unsigned)channel;
    object.texel = channels * channel_bytes[channel - 0x10D7];
    return object;
}

static struct region read_region(const struct plan *plan, char **line) {
    struct region r = {next_size(line), 0, 0, 0, 0, 0};
    r.x = next_size(line), r.y = next_size(line), r.width = next_size(line), r.height = next_size(line);
    const struct object *o = r.object < plan->n_objects ? plan->objects + r.object : NULL;
    if (!o || r.x > o->width || r.width > o->width - r.x || r.y > o->height || r.height > o->height - r.y)
        die(BAD_INPUT, "plan.txt:%zu: memory %zu has no such place", plan_line, r.object);
    r.bytes = times(times(r.width, r.height), o->texel);
    return r;
}

static struct tensor read_tensor(const struct plan *plan, char *line) {
    struct tensor t;
    memset(&t, 0, sizeof t);
    t.region = read_region(plan, &line);
    t.type = next_word(&line);
    if (strlen(t.type) != 3 || !strchr("<|", t.type[0]) || !strchr("biuf", t.type[1]) || !strchr("1248", t.type[2]))
        wrong(t.type, "is no type of elements");
    const char *arrangement = next_word(&line);
    size_t rank = next_size(&line);
    int needed;
    t.place = tw_arrangement(arrangement, &needed);
    if (!t.place || rank > MAX_RANK || (needed && (size_t)needed != rank)) wrong(arrangement, "is no arrangement of so many axes");
    t.rank = (int)rank;
    t.size = (size_t)(t.type[2] - '0');
    t.count = 1;
    for (size_t i = 0; i < rank; i++) t.count = times(t.count, t.shape[i] = next_size(&line));
    t.name = line;
    /* An arrangement may add padding, so that a tensor may be smaller than its region. */
    if (times(t.count, t.size) > t.region.bytes) wrong(t.name, "has more elements than its memory");
    return t;
}

static struct argument read_argument(const struct plan *plan, char kind, char *line) {
    struct argument a = {line, kind, 0, {0}};
    if (kind != 'v') {
        a.number = next_size(&line);
        if (kind == 'm' && a.number >= plan->n_objects) wrong(a.line, "is no memory of the plan");
        return a;
    }
    a.number = strlen(line) / 2;
    if (a.number == 0 || a.number > sizeof a.bytes || strspn(line, "0123456789abcdef") != 2 * a.number) wrong(line, "is no value");
    for (size_t i = 0; i < a.number; i++) {
        char pair[3] = {line[2 * i], line[2 * i + 1], 0};
        a.bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return a;
}

static struct launch read_launch(const struct plan *plan, char *line) {
    struct launch l;
    l.program = next_size(&line);
    for (int i = 0; i < 3; i++) l.global[i] = next_size(&line);
    for (int i = 0; i < 3; i++) l.local[i] = next_size(&line);
    l.first = plan->n_arguments;
    l.n_arguments = 0;
    l.kernel = line;
    if (l.program >= plan->n_programs) wrong(l.kernel, "is of a program that the plan does not have");
    /* Kernels count work-items in int; some drivers end the program where there are more. */
    if (times(times(l.global[0], l.global[1]), l.global[2]) > INT32_MAX) wrong(l.kernel, "has too many work-items");
    if (!l.local[0] != !l.local[1] || !l.local[0] != !l.local[2]) wrong(l.kernel, "has groups without work-items");
    return l;
}

/* Reads one line. */
static void plan_add(struct plan *plan, char *line) {
    const char *kind = next_word(&line);
    if (strcmp(kind, "extension") == 0) plan->extensions[plan->n_extensions++] = line;
    else if (strcmp(kind, "buffer") == 0) plan->objects[plan->n_objects++] = (struct object){BUFFER, next_size(&line), 1, 1, 0, 0};
    else if (strcmp(kind, "report") == 0) plan->objects[plan->n_objects++] = (struct object){REPORT, REPORT_BYTES, 1, 1, 0, 0};
    else if (strcmp(kind, "image") == 0) plan->objects[plan->n_objects++] = read_image(&line);
    else if (strcmp(kind, "program") == 0) {
        struct program *program = plan->programs + plan->n_programs++;
        program->hash = next_digits(&line, 16);
        program->file = next_word(&line);
        program->options = line;
    } else if (strcmp(kind, "weights") == 0) {
        plan->weights_bytes = next_size(&line);
        plan->weights_hash = next_digits(&line, 16);
    } else if (strcmp(kind, "constant") == 0) {
        struct constant constant = {read_region(plan, &line), 0};
        constant.offset = next_size(&line);
        if (constant.offset > plan->weights_bytes || constant.region.bytes > plan->weights_bytes - constant.offset)
            wrong(line, "is not in weights.bin");
        plan->constants[plan->n_constants++] = constant;
    } else if (strcmp(kind, "input") == 0) plan->inputs[plan->n_inputs++] = read_tensor(plan, line);
    else if (strcmp(kind, "output") == 0) plan->outputs[plan->n_outputs++] = read_tensor(plan, line);
    else if (strcmp(kind, "launch") == 0) plan->launches[plan->n_launches++] = read_launch(plan, line);
    else if (plan->n_launches && (strcmp(kind, "memory") == 0 || strcmp(kind, "value") == 0 || strcmp(kind, "local") == 0)) {
        plan->launches[plan->n_launches - 1].n_arguments++;
        plan->arguments[plan->n_arguments++] = read_argument(plan, kind[0], line);
    } else wrong(kind, "means nothing to this host");
}

/* Reads the plan of a folder. */
static struct plan plan_read(const char *folder) {
    static const char first[] = "tilewright-network 2\n";
    struct plan plan;
    size_t bytes, lines = 0;
    char *text = load_from(folder, "plan.txt", &bytes), *last = text + bytes, expected[32], *next;
    if (strncmp(text, first, strlen(first)) != 0) die(BAD_INPUT, "%s/plan.txt is no plan that this host can run", folder);
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    if (bytes) last--;
    while (last > text && last[-1] != '\n') last--;
    sprintf(expected, "end %016llx\n", hash_of(text, (size_t)(last - text)));
    if (strncmp(last, "end ", 4) != 0 || text[bytes - 1] != '\n') die(BAD_INPUT, "plan.txt is cut off");
    if (strcmp(last, expected) != 0) die(BAD_INPUT, "plan.txt is damaged: it is not what Tilewright wrote");
    memset(&plan, 0, sizeof plan);
    /* No list has more entries than the file has lines. */
    plan.extensions = reserve(times(lines, sizeof *plan.extensions));
    plan.objects = reserve(times(lines, sizeof *plan.objects));
    plan.programs = reserve(times(lines, sizeof *plan.programs));
    plan.constants = reserve(times(lines, sizeof *plan.constants));
    plan.inputs = reserve(times(lines, sizeof *plan.inputs));
    plan.outputs = reserve(times(lines, sizeof *plan.outputs));
    plan.launches = reserve(times(lines, sizeof *plan.launches));
    plan.arguments = reserve(times(lines, sizeof *plan.arguments));
    plan_line = 1;
    for (char *line = text + strlen(first); line < last; line = next) {
        next = (char *)memchr(line, '\n', (size_t)(last - line)) + 1; /* there is one in front of `last` */
        next[-1] = 0;
        plan_line++;
        plan_add(&plan, line);
    }
    return plan;
}
#endif
