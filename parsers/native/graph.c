#include "graph.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* End of a span; sums wrap around as in NumPy. */
static int64_t end_of(const Spans *spans, size_t i)
{
    return (int64_t)((uint64_t)spans->start[i] + (uint64_t)spans->duration[i]);
}

/* Return whether span `i` of `a` comes after span `j` of `b`, or is no earlier and no longer than it. */
static bool follows(const Spans *a, size_t i, const Spans *b, size_t j)
{
    if (a->line[i] != b->line[j])
        return a->line[i] > b->line[j];
    return a->start[i] > b->start[j] || (a->start[i] == b->start[j] && end_of(a, i) <= end_of(b, j));
}

typedef struct {
    const Spans *of; /* the events, or the regions */
    size_t at;
} Place;

static int32_t node_at(Place place) { return place.of->base + (int32_t)place.at; }

static Place place_of(const Spans *events, const Spans *regions, int32_t node)
{
    bool is_region = node >= regions->base;
    return is_region ? (Place){regions, (size_t)(node - regions->base)}
                     : (Place){events, (size_t)(node - events->base)};
}

/* The chain of parents of the previous span is the stack: skipped spans are shorter than that span, hence than this
 * one. */
bool nest_spans(const Spans *events, const uint8_t *own, const Spans *regions)
{
    Place last = {NULL, 0};
    size_t event = 0, region = 0;
    for (;;) {
        for (; event < events->size && own != NULL && !own[event]; event++)
            events->parent[event] = NONE;
        if (event == events->size && region == regions->size)
            return true;
        bool takes_event =
            region == regions->size || (event < events->size && follows(regions, region, events, event));
        Place next = takes_event ? (Place){events, event++} : (Place){regions, region++};
        if (last.of != NULL && !follows(next.of, next.at, last.of, last.at))
            return false;
        int32_t above = NONE;
        if (last.of != NULL && last.of->line[last.at] == next.of->line[next.at])
            above = node_at(last);
        int64_t end = end_of(next.of, next.at);
        while (above != NONE) {
            Place place = place_of(events, regions, above);
            if (end_of(place.of, place.at) >= end)
                break;
            above = place.of->parent[place.at];
        }
        next.of->parent[next.at] = above;
        last = next;
    }
}

bool count_depths(size_t events, const int32_t *parent, int32_t *depth)
{
    for (size_t i = 0; i < events; i++) {
        if (parent[i] >= 0 && (size_t)parent[i] >= i)
            return false;
        depth[i] = parent[i] >= 0 ? depth[parent[i]] + 1 : 0;
    }
    return true;
}

enum { UNKNOWN = -2, CLIMBING = -3 };

bool find_nearest(size_t nodes, const int32_t *parent, const uint8_t *wanted, int32_t *found)
{
    int32_t count = 0;
    for (size_t i = 0; i < nodes; i++) {
        if (parent[i] >= 0 && (size_t)parent[i] >= nodes)
            return false;
        found[i] = wanted[i] ? count++ : parent[i] < 0 ? NONE : UNKNOWN;
    }
    for (size_t i = 0; i < nodes; i++) {
        size_t at = i;
        for (; found[at] == UNKNOWN; at = (size_t)parent[at])
            found[at] = CLIMBING;
        int32_t answer = found[at] == CLIMBING ? NONE : found[at]; /* nodes in a cycle have no wanted ancestor */
        for (at = i; found[at] == CLIMBING; at = (size_t)parent[at])
            found[at] = answer;
    }
    return true;
}

bool are_links(size_t nodes, size_t links, Links candidate)
{
    if (candidate.first[0] != 0 || candidate.first[nodes] != (int64_t)links)
        return false;
    for (size_t node = 0; node < nodes; node++)
        if (candidate.first[node] > candidate.first[node + 1])
            return false;
    for (size_t link = 0; link < links; link++)
        if (candidate.other[link] < 0 || (size_t)candidate.other[link] >= nodes)
            return false;
    return true;
}

typedef struct {
    int32_t *waiting; /* every node waits at most once per walk */
    int32_t *seen_by; /* the last root that counted this node among its ancestors */
    int32_t *root_at; /* position in roots of a node that is a root */
} Walk;

static bool has_root_above(const Walk *walk, Links parents, Roots roots, int32_t claim)
{
    size_t size = 0;
    walk->waiting[size++] = roots.nodes[claim];
    walk->seen_by[roots.nodes[claim]] = claim;
    while (size > 0) {
        int32_t node = walk->waiting[--size];
        for (int64_t link = parents.first[node]; link < parents.first[node + 1]; link++) {
            int32_t above = parents.other[link];
            if (walk->seen_by[above] == claim)
                continue;
            int32_t root = walk->root_at[above];
            if (root != NONE && roots.levels[root] == roots.levels[walk->root_at[roots.nodes[claim]]])
                return true;
            walk->seen_by[above] = claim;
            walk->waiting[size++] = above;
        }
    }
    return false;
}

static void claim_below(const Walk *walk, Links children, int32_t root, int32_t claim, int32_t *owner)
{
    size_t size = 0;
    walk->waiting[size++] = root;
    owner[root] = claim;
    while (size > 0) {
        int32_t node = walk->waiting[--size];
        for (int64_t link = children.first[node]; link < children.first[node + 1]; link++) {
            int32_t below = children.other[link];
            if (owner[below] != NONE)
                continue;
            owner[below] = claim;
            walk->waiting[size++] = below;
        }
    }
}

bool spread_roots(size_t nodes, Links children, Links parents, Roots roots, bool every, int32_t *owner)
{
    int32_t *memory = malloc((nodes * 3 + 1) * sizeof *memory);
    if (memory == NULL)
        return false;
    Walk walk = {memory, memory + nodes, memory + nodes * 2};
    for (size_t node = 0; node < nodes; node++)
        walk.seen_by[node] = walk.root_at[node] = owner[node] = NONE;
    for (size_t claim = 0; claim < roots.count; claim++)
        walk.root_at[roots.nodes[claim]] = (int32_t)claim;
    for (size_t claim = 0; claim < roots.count; claim++)
        if (owner[roots.nodes[claim]] == NONE && (every || !has_root_above(&walk, parents, roots, (int32_t)claim)))
            claim_below(&walk, children, roots.nodes[claim], (int32_t)claim, owner);
    free(memory);
    return true;
}
