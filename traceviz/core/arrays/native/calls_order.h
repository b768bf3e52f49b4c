/* Order of calls that mostly come by start, as profilers write them: plain arrays in, plain arrays out. */

#ifndef TRACEVIZ_CALLS_ORDER_H
#define TRACEVIZ_CALLS_ORDER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t size;
    const int64_t *group;
    const int64_t *start;
    const int64_t *end;
    const int64_t *tie;
} Unordered;

enum { IN_ORDER = 0, ORDERED = 1, DECLINED = 2, NO_MEMORY = -1 };

/* Write the rows in order of group, start, falling end and tie; equal rows keep their order. IN_ORDER if they already
 * come in this order; the written rows are then undefined. DECLINED if rows of a group do not come by start, if many of
 * them start together in another order, or if groups lie far apart. */
int order_calls(Unordered calls, int32_t *order);

#endif
