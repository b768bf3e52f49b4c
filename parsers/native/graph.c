#include "graph.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* The chain of parents of the event before is the stack: what it skips is shorter than that event, hence than this. */
bool nest_events(size_t events, const int32_t *line, const int64_t *start, const int64_t *end, int32_t *parent)
{
    for (size_t i = 0; i < events; i++) {
        bool goes_on = i > 0 && line[i - 1] == line[i];
        if (goes_on ? start[i] < start[i - 1] || (start[i] == start[i - 1] && end[i] > end[i - 1])
                    : i > 0 && line[i] < line[i - 1])
            return false;
        int32_t above = goes_on ? (int32_t)(i - 1) : NONE;
        while (above != NONE && end[above] < end[i])
            above = parent[above];
        parent[i] = above;
    }
    return true;
}

void count_depths(size_t events, const int32_t *parent, int32_t *depth)
{
    for (size_t i = 0; i < events; i++)
        depth[i] = parent[i] >= 0 && (size_t)parent[i] < i ? depth[parent[i]] + 1 : 0;
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
    int32_t *seen_by; /* the last root whose ancestors this node was counted among */
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
