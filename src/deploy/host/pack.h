/* How logical tensors are arranged in memory, and the functions that pack and unpack them. Written by Tilewright.
 *
 * A place function returns the position in memory of a logical element, both row-major and counted in elements.
 * What no element reaches is padding; tw_pack writes 0 there. */
#ifndef TW_PACK_H
#define TW_PACK_H
#include <stddef.h>
#include <string.h>

typedef size_t tw_place(const size_t *shape, size_t element);

/* lambda *i: [*i] */
static size_t tw_place_row_major(const size_t *shape, size_t element) {
    (void)shape;
    return element;
}

/* lambda n, c, h, w: [n, c // 4, h, w, c % 4] */
static size_t tw_place_nchw4c(const size_t *shape, size_t element) {
    size_t plane = shape[2] * shape[3], c = element / plane % shape[1], n = element / plane / shape[1];
    return ((n * ((shape[1] + 3) / 4) + c / 4) * plane + element % plane) * 4 + c % 4;
}

/* lambda o, i, h, w: [o // 4, i, h, w, o % 4] */
static size_t tw_place_oihw4o(const size_t *shape, size_t element) {
    size_t filter = shape[1] * shape[2] * shape[3], o = element / filter;
    return (o / 4 * filter + element % filter) * 4 + o % 4;
}

/* lambda c: [c // 4, c % 4] */
static size_t tw_place_c4(const size_t *shape, size_t element) {
    (void)shape;
    return element;
}

/* The place function of an arrangement and the number of axes that it needs, 0 for any; NULL if there is none. */
static tw_place *tw_arrangement(const char *name, int *rank) {
    *rank = strcmp(name, "c4") == 0 ? 1 : strcmp(name, "row_major") == 0 ? 0 : 4;
    if (strcmp(name, "row_major") == 0) return tw_place_row_major;
    if (strcmp(name, "nchw4c") == 0) return tw_place_nchw4c;
    if (strcmp(name, "oihw4o") == 0) return tw_place_oihw4o;
    return strcmp(name, "c4") == 0 ? tw_place_c4 : NULL;
}

/* Packs `count` logical elements of `size` bytes into memory of `bytes` bytes. Returns 0 if one does not fit. */
static int tw_pack(tw_place *place, const size_t *shape, size_t count, size_t size, const void *logical, void *memory,
                   size_t bytes) {
    memset(memory, 0, bytes);
    for (size_t element = 0; element < count; element++) {
        size_t at = place(shape, element) * size;
        if (at + size > bytes) return 0;
        memcpy((char *)memory + at, (const char *)logical + element * size, size);
    }
    return 1;
}

/* The other direction. */
static int tw_unpack(tw_place *place, const size_t *shape, size_t count, size_t size, void *logical, const void *memory,
                     size_t bytes) {
    for (size_t element = 0; element < count; element++) {
        size_t at = place(shape, element) * size;
        if (at + size > bytes) return 0;
        memcpy((char *)logical + element * size, (const char *)memory + at, size);
    }
    return 1;
}
#endif
