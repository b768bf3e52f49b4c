/* Nesting of events, and the nodes of each root event. shared/arrays/nesting.py has the same functions in NumPy. */

#ifndef TRACEVIZ_GRAPH_H
#define TRACEVIZ_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Links of node n are other[first[n]] .. other[first[n + 1] - 1]. */
typedef struct {
    const int64_t *first;
    const int32_t *other;
} Links;

typedef struct {
    const int32_t *nodes; /* in the order in which they claim */
    const int32_t *levels;
    size_t count;
} Roots;

/* Events of a plane, or regions in them; those of a line are contiguous. */
typedef struct {
    const int32_t *line;
    const int64_t *start; /* counted from any one moment per line */
    const int64_t *duration;
    size_t size;
    int32_t base;    /* node of the first one; those of regions come after those of all events */
    int32_t *parent; /* output: node of the innermost span of the same line that encloses each, or -1 */
} Spans;

/* Nest the `own` events (all if NULL) and the regions together. Of equal spans the first is the parent, and events
 * come before regions. The other events have no parent. False if events or regions are not sorted by line, start, and
 * descending end. */
bool nest_spans(const Spans *events, const uint8_t *own, const Spans *regions);

/* depth[i]: number of events that enclose event i. False if one does not come after its parent. */
bool count_depths(size_t events, const int32_t *parent, int32_t *depth);

/* found[i]: position, among the wanted nodes, of node i or else of its nearest wanted ancestor, or -1. False if a
 * parent is out of bounds. */
bool find_nearest(size_t nodes, const int32_t *parent, const uint8_t *wanted, int32_t *found);

/* Return whether the links of `nodes` nodes stay within `links` links and lead to nodes. */
bool are_links(size_t nodes, size_t links, Links candidate);

/* owner[n]: position of the root that claims node n, or -1. False without memory. */
bool spread_roots(size_t nodes, Links children, Links parents, Roots roots, bool every, int32_t *owner);

#endif
