/* Inputs and outputs of the host: files that the command line names, and the packed elements of tensors. Written by Tilewright. */
#ifndef TW_EXCHANGE_H
#define TW_EXCHANGE_H
#include "plan.h"

/* The file of the argument `NAME=FILE`; a name may contain `=`. The argument is set to NULL, so that those that are left are wrong. */
static const char *file_of(const char *name, char **arguments, int n_arguments) {
    for (int i = 0; i < n_arguments; i++) {
        char *equals = arguments[i] ? strrchr(arguments[i], '=') : NULL;
        size_t length = equals ? (size_t)(equals - arguments[i]) : 0;
        if (!equals || length != strlen(name) || strncmp(arguments[i], name, length) != 0) continue;
        arguments[i] = NULL;
        return equals + 1;
    }
    return NULL;
}

/* Reads an input and packs it as its region has it. The result is to be freed. */
static void *packed_input(const struct tensor *t, const char *path) {
    size_t length;
    unsigned char *contents = load(path, &length), *packed = reserve(t->region.bytes);
    const unsigned char *logical = npy_elements(contents, length, t->count * t->size, t->type, t->shape, t->rank, path);
    if (!tw_pack(t->place, t->shape, t->count, t->size, logical, packed, t->region.bytes))
        die(BAD_INPUT, "plan.txt: `%s` does not fit into its memory", t->name);
    free(contents);
    return packed;
}

/* Unpacks the contents of a region and writes them: as .npy if the path ends so, otherwise the bare elements. */
static void save_output(const struct tensor *t, const void *packed, const char *path) {
    char head[NPY_HEADER_BYTES];
    unsigned char *logical = reserve(t->count * t->size);
    size_t end = strlen(path), is_npy = end > 4 && strcmp(path + end - 4, ".npy") == 0;
    if (!tw_unpack(t->place, t->shape, t->count, t->size, logical, packed, t->region.bytes))
        die(BAD_INPUT, "plan.txt: `%s` does not fit into its memory", t->name);
    save(path, head, is_npy ? npy_header(head, t->type, t->shape, t->rank) : 0, logical, t->count * t->size);
    free(logical);
}
#endif
