/* Contexts of calls that nest: plain arrays in, plain arrays out. Calls come after those around them. */

#ifndef TRACEVIZ_CONTEXTS_H
#define TRACEVIZ_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write the outermost `wanted` call that is each call or is around it, -1 for none. False if a parent comes after. */
bool find_topmost(size_t size, const int32_t *parent, const uint8_t *wanted, int32_t *found);

/* Number calls by their codes and the codes around them, in order of appearance, and write the first call of each
 * number: `first` has room for all. Returns the count of numbers, -1 if memory does not suffice, -2 if a parent comes
 * after its call. */
int64_t number_contexts(size_t size, const int32_t *parent, const int32_t *code, int32_t *context, int32_t *first);

/* Calls that lie together among others: `from` is the row of the first. */
typedef struct {
    size_t size;
    size_t from;
    const int32_t *parent;
    const int64_t *time;
    const uint8_t *counted;
    const int32_t *owner; /* NULL: each owns its own */
} Timed;

/* Add the time of each counted call, without the calls directly in it, to the total of its owner and to `sum`. False if
 * a parent or an owner does not exist: the totals are then undefined. */
bool add_own_time(Timed calls, int64_t *total, size_t totals, int64_t *sum);

#endif
