/* Distinct texts, numbered in order of their first occurrence. */

#ifndef TRACEVIZ_TEXTS_H
#define TRACEVIZ_TEXTS_H

#include "list.h"

typedef struct {
    uint64_t begin; /* its place in `bytes`; it ends at the start of the next one */
    uint64_t hash;
} Text;

typedef struct {
    LIST(uint8_t) bytes;
    LIST(Text) items;
    uint32_t *slots; /* open addressing: the number of a text + 1; 0 is free */
    size_t mask;
    uint64_t seed; /* of the hashes: differs from run to run, so that no file can be made to fill one chain */
} Texts;

enum { TEXTS_FULL = -2, TEXTS_NO_MEMORY = -3 };

/* The number of a text, which is added if it is new; below 0 on failure. */
int32_t number_of_text(Texts *texts, const uint8_t *text, size_t length);

/* Return whether the text with this number is this one. */
bool is_text(const Texts *texts, int32_t number, const uint8_t *text, size_t length);

void free_texts(Texts *texts);

#endif
