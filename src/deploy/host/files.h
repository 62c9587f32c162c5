/* Errors, memory and files of the host. Written by Tilewright.
 *
 * An error is one line on standard error and ends the program with one of the exit codes below. */
#ifndef TW_FILES_H
#define TW_FILES_H
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit codes: a checked kernel left its texture; the folder, a file or an argument is wrong; the device cannot run the network. */
enum { WRONG_RESULT = 1, BAD_INPUT = 2, BAD_DEVICE = 3 };

/* Prints an error and ends the program. */
static void die(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    exit(code);
}

/* Memory filled with zeros, and one more byte behind it. */
static void *reserve(size_t bytes) {
    void *memory = bytes < SIZE_MAX ? calloc(bytes + 1, 1) : NULL;
    if (!memory) die(BAD_DEVICE, "no memory for %zu bytes", bytes);
    return memory;
}

/* The largest size that is computed with: more than any memory has. */
static const size_t TOO_LARGE = SIZE_MAX / 4;

/* The product of two sizes, at most TOO_LARGE. */
static size_t times(size_t a, size_t b) { return b != 0 && a > TOO_LARGE / b ? TOO_LARGE : a * b; }

/* FNV-1a with 64 bits: shows a file that was damaged on its way. */
static unsigned long long hash_of(const void *contents, size_t bytes) {
    unsigned long long hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)contents)[i]) * 0x100000001b3ull;
    return hash;
}

/* The whole contents of a file, with a 0 behind it, and their number of bytes. */
static void *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    long end = -1;
    if (file && fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    if (end < 0 || end == LONG_MAX) die(BAD_INPUT, "cannot read %s", path);
    void *contents = reserve((size_t)end);
    rewind(file);
    *bytes = fread(contents, 1, (size_t)end, file);
    if (*bytes != (size_t)end) die(BAD_INPUT, "cannot read all of %s", path);
    fclose(file);
    return contents;
}

/* As load, for a file of the folder. The name comes from plan.txt, so it must not lead out of the folder. */
static void *load_from(const char *folder, const char *name, size_t *bytes) {
    if (!*name || strpbrk(name, "/\\")) die(BAD_INPUT, "plan.txt names the file `%s`, which is not in its folder", name);
    char *path = reserve(strlen(folder) + strlen(name) + 1);
    sprintf(path, "%s/%s", folder, name);
    void *contents = load(path, bytes);
    free(path);
    return contents;
}

/* As load_from, for a file whose hash plan.txt has. */
static void *load_checked(const char *folder, const char *name, unsigned long long hash, size_t *bytes) {
    void *contents = load_from(folder, name, bytes);
    if (hash_of(contents, *bytes) != hash) die(BAD_INPUT, "%s is not the file that belongs to plan.txt", name);
    return contents;
}

/* Writes a file: the bytes of `head`, then those of `contents`. */
static void save(const char *path, const void *head, size_t head_bytes, const void *contents, size_t bytes) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, 1, head_bytes, file) != head_bytes || fwrite(contents, 1, bytes, file) != bytes ||
        fclose(file) != 0)
        die(BAD_INPUT, "cannot write %s", path);
}
#endif
