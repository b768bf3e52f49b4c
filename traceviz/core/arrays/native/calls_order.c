#include "calls_order.h"

#include <stdbool.h>
#include <stdlib.h>

enum { MOST_GROUPS = 1 << 16, MOST_MOVES = 64 };

/* Write the rows by group; rows of one group keep their order. */
static int put_together(const Unordered *calls, int32_t *order)
{
    int64_t low = calls->group[0], high = low;
    for (size_t i = 1; i < calls->size; i++) {
        low = calls->group[i] < low ? calls->group[i] : low;
        high = calls->group[i] > high ? calls->group[i] : high;
    }
    uint64_t span = (uint64_t)high - (uint64_t)low;
    if (span >= MOST_GROUPS)
        return DECLINED;
    size_t *next = calloc((size_t)span + 2, sizeof *next);
    if (next == NULL)
        return NO_MEMORY;
    for (size_t i = 0; i < calls->size; i++)
        next[calls->group[i] - low + 1]++;
    for (size_t group = 0; group < span; group++)
        next[group + 1] += next[group];
    for (size_t i = 0; i < calls->size; i++)
        order[next[calls->group[i] - low]++] = (int32_t)i;
    free(next);
    return ORDERED;
}

/* Return whether a row comes before another one that starts at the same time; false for equal rows. */
static bool is_before(const Unordered *calls, int32_t one, int32_t other)
{
    if (calls->end[one] != calls->end[other])
        return calls->end[one] > calls->end[other];
    return calls->tie[one] < calls->tie[other];
}

int order_calls(Unordered calls, int32_t *order)
{
    if (calls.size == 0)
        return IN_ORDER;
    int answer = put_together(&calls, order);
    if (answer != ORDERED)
        return answer;
    bool moved = false;
    for (size_t i = 1; i < calls.size; i++) {
        int32_t row = order[i];
        size_t at = i, first = i > MOST_MOVES ? i - MOST_MOVES : 0;
        moved = moved || row < order[i - 1];
        if (calls.group[row] != calls.group[order[i - 1]])
            continue;
        if (calls.start[row] < calls.start[order[i - 1]])
            return DECLINED;
        while (at > 0 && calls.group[order[at - 1]] == calls.group[row] && calls.start[order[at - 1]] == calls.start[row] &&
               is_before(&calls, row, order[at - 1])) {
            if (at == first)
                return DECLINED;
            order[at] = order[at - 1];
            at--;
        }
        order[at] = row;
        moved = moved || at < i;
    }
    return moved ? ORDERED : IN_ORDER;
}
