/* Calls that nest on their threads, and equal rows: plain arrays in, plain arrays out. */

#ifndef TRACEVIZ_NESTED_H
#define TRACEVIZ_NESTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls in order of group and start, the longer before the shorter. */
typedef struct {
    size_t size;
    const int64_t *group;
    const int64_t *start;
    const int64_t *end;
} Calls;

/* Write the number of calls around each one, and the innermost of them, -1 at the top. An instant counts as one
 * nanosecond. False if the calls are in another order, or some cross: the results are then undefined. */
bool nest_calls(Calls calls, int32_t *depth, int32_t *parent);

/* Do the same if some cross: the calls around one are those that run when it starts. The innermost of them is the last
 * before it that has one less around it. Returns 1, 0 if calls are in another order, -1 if memory does not suffice. */
int nest_crossing(Calls calls, int32_t *depth, int32_t *parent);

/* Write the innermost `wanted` call that is each call or is around it, -1 for none. False if a parent comes after. */
bool find_wanted(size_t size, const int32_t *parent, const uint8_t *wanted, int32_t *found);

/* Mark the calls that end after all earlier ones of their group that have the same code, 0 to `codes`. Returns 1, 0 if
 * a code is none of these, -1 if memory does not suffice. */
int find_outer(Calls calls, const int32_t *code, size_t codes, uint8_t *outer);

typedef struct {
    int64_t *start;
    int64_t *end;
    int32_t *owner;
} Stretches;

/* Write the intervals in which each of the `wanted` calls (NULL: all) is innermost, up to two for each call. Returns
 * their number; -1 if calls cross, or are not those of nest_calls. */
int64_t find_stretches(Calls calls, const int32_t *parent, const uint8_t *wanted, Stretches stretches);

/* Do the same for calls that cross, with these `depth` and `parent`. An interval belongs to the call that started last,
 * or to the parent of the call that ended last, if that runs throughout. Otherwise it belongs to the last call before,
 * or to the innermost running call around that. -1 if calls are in another order, -2 if memory does not suffice. */
int64_t find_crossing(Calls calls, const int32_t *depth, const int32_t *parent, const uint8_t *wanted,
                      Stretches stretches);

/* Write the innermost call that runs in each group of `key` at each moment, -1 for none: the last that started by then,
 * or the innermost running call around it. Calls are in order of group and start. False if a parent is not before its
 * call. */
bool find_running(Calls calls, const int32_t *parent, size_t size, const int64_t *key, const int64_t *moment,
                  int32_t *found);

/* Number groups of rows that are equal in all `columns`: `first` has room for all rows. Returns the number of groups,
 * -1 if memory does not suffice. */
int64_t group_rows(size_t size, size_t columns, const int32_t *const *values, int32_t *group, int32_t *first);

/* The members of a set, which are sorted and disjoint. `done` is the time of all members before each one. */
typedef struct {
    size_t size;
    const int64_t *start;
    const int64_t *end;
    const int64_t *done;
} Members;

/* Add the time of a set within each span to the total of its owner; negative owners have none. False if there is no such
 * total. */
bool add_time(Members members, size_t size, const int64_t *start, const int64_t *end, const int32_t *owner,
              size_t owners, int64_t *total);

#endif
