/* Rows that match by a pair of integers: plain arrays in, plain arrays out. */

#ifndef TRACEVIZ_MATCHING_H
#define TRACEVIZ_MATCHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pairs of an owner and an id; `known` is NULL if all rows have an id. */
typedef struct {
    size_t size;
    const int32_t *owner;
    const int64_t *id;
    const uint8_t *known;
} Pairs;

/* A place for each id from `least` on of each owner: `width` places for the first owner, then those of the next. Owners
 * are in order, each once. `row` holds the row of each place. */
typedef struct {
    size_t owners;
    const int32_t *owner;
    int64_t least;
    uint64_t width;
    int32_t *row;
} Places;

/* Return whether the last id of an owner fits into 64 bits, and there are `count` places. */
bool are_places(const Places *places, size_t count);

/* Write the first row of `among` with each pair, -1 if there is none. */
void place_rows(const Pairs *among, const Places *places);

/* Write the row at the place of each of `sought`, -1 if it has none. */
void find_rows(const Pairs *sought, const Places *places, int32_t *rows);

#endif
