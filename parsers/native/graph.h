/* Nesting of events, and how far the groups of root events reach. xplane_nesting.py says what they mean. */

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

/* parent[i]: the innermost event of the same line that encloses event i, or -1. False where the events are not sorted
 * by line, start, and descending end. */
bool nest_events(size_t events, const int32_t *line, const int64_t *start, const int64_t *end, int32_t *parent);

/* depth[i]: how many events enclose event i; every parent comes before its children. */
void count_depths(size_t events, const int32_t *parent, int32_t *depth);

/* Whether the links of `nodes` nodes stay within `links` links and lead to nodes. */
bool are_links(size_t nodes, size_t links, Links candidate);

/* owner[n]: position of the root that claims node n, or -1. False without memory. */
bool spread_roots(size_t nodes, Links children, Links parents, Roots roots, bool every, int32_t *owner);

#endif
