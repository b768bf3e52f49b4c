/* What is around calls that nest: plain arrays in, plain arrays out. Calls come after those around them. */

#ifndef TRACEVIZ_CONTEXTS_H
#define TRACEVIZ_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write the outermost `wanted` call that is each call or is around it, -1 for none. False if a parent comes after. */
bool find_topmost(size_t size, const int32_t *parent, const uint8_t *wanted, int32_t *found);

/* Number calls by the codes of what is around them and their own, as they first come, and write the first call of each
 * number: `first` has room for all. Returns how many numbers there are, -1 where memory does not suffice, -2 if a parent
 * comes after. */
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

/* Add to the total of its owner the time of each counted call without that of the calls directly in it, and to `sum` all
 * of that. False if a parent or an owner is none: what was added then means nothing. */
bool add_own_time(Timed calls, int64_t *total, size_t totals, int64_t *sum);

#endif
