/* NumPy's .npy: the header that is written in front of an output, and the elements of an input. Written by Tilewright.
 *
 * A tensor has an element type as NumPy writes it (`<f4`), and a shape of `rank` extents. */
#ifndef TW_NPY_H
#define TW_NPY_H
#include "files.h"

/* The most axes of a tensor, and bytes that the header of such a tensor fits into. */
enum { MAX_RANK = 16, NPY_HEADER_BYTES = 1024 };

/* Writes the header of a .npy file (version 1.0) to `text` and returns its length, which is a multiple of 64. */
static size_t npy_header(char *text, const char *type, const size_t *shape, int rank) {
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

/* The value of a key in a header, which is a dictionary as Python writes it; NULL if there is none. */
static const char *npy_value(const char *head, const char *key) {
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

/* Whether a header is that of a tensor: its type, row-major order, and its shape. */
static int npy_is(const char *head, const char *type, const size_t *shape, int rank) {
    const char *descr = npy_value(head, "descr"), *order = npy_value(head, "fortran_order"), *at = npy_value(head, "shape");
    size_t letters = strlen(type);
    if (!descr || !order || !at || *at++ != '(' || (*descr != '\'' && *descr != '"')) return 0;
    if (strncmp(descr + 1, type, letters) != 0 || descr[1 + letters] != *descr || strncmp(order, "False", 5) != 0) return 0;
    for (int i = 0; i < rank; i++) {
        char *next;
        if (*at < '0' || *at > '9' || strtoull(at, &next, 10) != shape[i]) return 0;
        for (at = next; *at == ',' || *at == ' ';) at++;
    }
    return *at == ')';
}

/* The elements in the contents of a file: those of a .npy file of this tensor, or all bytes of any other file. `bytes` is the size of
 * the tensor; a file with another tensor is an error. `contents` has a 0 behind its `length` bytes. */
static const unsigned char *npy_elements(unsigned char *contents, size_t length, size_t bytes, const char *type,
                                         const size_t *shape, int rank, const char *path) {
    if (length < 10 || memcmp(contents, "\x93NUMPY", 6) != 0) {
        if (length != bytes) die(BAD_INPUT, "%s has %zu bytes, and the tensor %zu", path, length, bytes);
        return contents;
    }
    size_t skip = contents[6] == 1 ? 10 : 12, n = contents[8] + 256u * contents[9];
    if (skip == 12 && length >= 12) n += ((size_t)contents[10] << 16) + ((size_t)contents[11] << 24);
    if (length < skip || n > length - skip) die(BAD_INPUT, "%s is cut off", path);
    unsigned char first = contents[skip + n];
    contents[skip + n] = 0;
    const char *head = (const char *)contents + skip;
    if (!npy_is(head, type, shape, rank)) {
        char wanted[NPY_HEADER_BYTES];
        npy_header(wanted, type, shape, rank);
        die(BAD_INPUT, "%s holds %.*s, and the tensor is %.*s", path, (int)strcspn(head, "}") + 1, head,
            (int)strcspn(wanted + 10, "}") + 1, wanted + 10);
    }
    contents[skip + n] = first;
    length -= skip + n;
    if (length != bytes) die(BAD_INPUT, "%s has %zu bytes of elements, and the tensor %zu", path, length, bytes);
    return contents + skip + n;
}
#endif
