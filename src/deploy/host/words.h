/* Words and numbers of the lines of plan.txt, and errors that name the line. Written by Tilewright. */
#ifndef TW_WORDS_H
#define TW_WORDS_H
#include "files.h"

static size_t plan_line; /* the line that is read, counted from 1 */

/* Ends the program with an error about a part of the line that is read. */
static void wrong(const char *text, const char *what) { die(BAD_INPUT, "plan.txt:%zu: `%s` %s", plan_line, text, what); }

/* Cuts the next word off a line; it is empty at the end. */
static char *next_word(char **line) {
    char *start = *line, *end = start + strcspn(start, " ");
    *line = *end ? end + 1 : end;
    *end = 0;
    return start;
}

/* The next word as a number of a base. */
static unsigned long long next_digits(char **line, int base) {
    char *text = next_word(line), *end;
    unsigned long long value = strtoull(text, &end, base);
    if (!*text || *end || strspn(text, "0123456789abcdef") != strlen(text)) wrong(text, "is no number");
    return value;
}

/* The next word as a size. */
static size_t next_size(char **line) {
    unsigned long long value = next_digits(line, 10);
    return value > TOO_LARGE ? TOO_LARGE : (size_t)value;
}
#endif
