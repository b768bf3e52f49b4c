#include "nested.h"

#include <stdlib.h>

enum { NONE = -1 };

static bool is_before(const Calls *calls, size_t i)
{
    size_t j = i - 1;
    if (calls->group[i] != calls->group[j])
        return calls->group[j] < calls->group[i];
    if (calls->start[i] != calls->start[j])
        return calls->start[j] < calls->start[i];
    return calls->end[i] <= calls->end[j];
}

static int64_t lasting_end(const Calls *calls, size_t i)
{
    return calls->end[i] > calls->start[i] ? calls->end[i] : calls->start[i] + 1;
}

bool nest_calls(Calls calls, int32_t *depth, int32_t *parent)
{
    for (size_t i = 0; i < calls.size; i++) {
        if (calls.start[i] == INT64_MAX || calls.end[i] == INT64_MIN || (i > 0 && !is_before(&calls, i)))
            return false;
        int32_t above = i > 0 && calls.group[i - 1] == calls.group[i] ? (int32_t)i - 1 : NONE;
        while (above != NONE && lasting_end(&calls, (size_t)above) <= calls.start[i])
            above = parent[above];
        if (above != NONE && lasting_end(&calls, (size_t)above) < lasting_end(&calls, i))
            return false;
        parent[i] = above;
        depth[i] = above == NONE ? 0 : depth[above] + 1;
    }
    return true;
}

bool find_wanted(size_t size, const int32_t *parent, const uint8_t *wanted, int32_t *found)
{
    for (size_t i = 0; i < size; i++) {
        if (parent[i] >= (int64_t)i || parent[i] < NONE)
            return false;
        found[i] = wanted[i] ? (int32_t)i : parent[i] == NONE ? NONE : found[parent[i]];
    }
    return true;
}

/* How far the calls of one code reach so far, and in which run of rows of one group: 0 before the first. */
typedef struct {
    int64_t until;
    size_t run;
} Reach;

int find_outer(Calls calls, const int32_t *code, size_t codes, uint8_t *outer)
{
    Reach *reaches = calloc(codes + 1, sizeof *reaches);
    size_t run = 0;
    if (reaches == NULL)
        return NONE;
    for (size_t i = 0; i < calls.size; i++) {
        if (code[i] < 0 || (size_t)code[i] >= codes) {
            free(reaches);
            return 0;
        }
        run += i == 0 || calls.group[i] != calls.group[i - 1];
        Reach *reach = &reaches[code[i]];
        outer[i] = reach->run != run || calls.end[i] > reach->until;
        if (outer[i])
            *reach = (Reach){calls.end[i], run};
    }
    free(reaches);
    return 1;
}

/* The stretches of a thread so far: what is innermost since when. */
typedef struct {
    Stretches to;
    const uint8_t *wanted;
    int64_t size;
    int64_t owner;
    int64_t since;
} Sweep;

static void advance(Sweep *sweep, int64_t until)
{
    if (sweep->owner != NONE && until > sweep->since && (sweep->wanted == NULL || sweep->wanted[sweep->owner])) {
        sweep->to.start[sweep->size] = sweep->since;
        sweep->to.end[sweep->size] = until;
        sweep->to.owner[sweep->size++] = (int32_t)sweep->owner;
    }
    sweep->since = until;
}

/* Calls that have ended by `moment` give their time back to those around them. */
static void end_calls(Sweep *sweep, const Calls *calls, const int32_t *parent, int64_t moment)
{
    while (sweep->owner != NONE && calls->end[sweep->owner] <= moment) {
        advance(sweep, calls->end[sweep->owner]);
        sweep->owner = parent[sweep->owner];
    }
}

int64_t find_stretches(Calls calls, const int32_t *parent, const uint8_t *wanted, Stretches stretches)
{
    Sweep sweep = {stretches, wanted, 0, NONE, 0};
    for (size_t i = 0; i < calls.size; i++) {
        if (i > 0 && !is_before(&calls, i))
            return NONE;
        if (calls.end[i] <= calls.start[i])
            continue; /* lasts no time */
        if (sweep.owner != NONE && calls.group[sweep.owner] != calls.group[i])
            end_calls(&sweep, &calls, parent, INT64_MAX);
        end_calls(&sweep, &calls, parent, calls.start[i]);
        if (sweep.owner != parent[i] || (sweep.owner != NONE && calls.end[sweep.owner] < calls.end[i]))
            return NONE;
        advance(&sweep, calls.start[i]);
        sweep.owner = (int64_t)i;
    }
    end_calls(&sweep, &calls, parent, INT64_MAX);
    return sweep.size;
}

typedef struct {
    size_t columns;
    const int32_t *const *values;
} Table;

static uint64_t hash_of(const Table *table, size_t row)
{
    uint64_t hash = 0;
    for (size_t column = 0; column < table->columns; column++) {
        hash = (hash ^ (uint32_t)table->values[column][row]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool are_alike(const Table *table, size_t a, size_t b)
{
    for (size_t column = 0; column < table->columns; column++)
        if (table->values[column][a] != table->values[column][b])
            return false;
    return true;
}

/* Groups by open addressing: a place holds the number of a group, or NONE. */
typedef struct {
    int32_t *places;
    size_t mask;
} Index;

static bool make_index(Index *index, size_t room)
{
    index->places = malloc(room * sizeof *index->places);
    index->mask = room - 1;
    for (size_t i = 0; index->places != NULL && i < room; i++)
        index->places[i] = NONE;
    return index->places != NULL;
}

static size_t place_of(const Index *index, const Table *table, const int32_t *first, size_t row)
{
    size_t at = (size_t)hash_of(table, row) & index->mask;
    while (index->places[at] != NONE && !are_alike(table, row, (size_t)first[index->places[at]]))
        at = (at + 1) & index->mask;
    return at;
}

static bool grow(Index *index, const Table *table, const int32_t *first, int32_t groups)
{
    Index larger;
    if (!make_index(&larger, (index->mask + 1) * 4))
        return false;
    for (int32_t group = 0; group < groups; group++)
        larger.places[place_of(&larger, table, first, (size_t)first[group])] = group;
    free(index->places);
    *index = larger;
    return true;
}

int64_t group_rows(size_t size, size_t columns, const int32_t *const *values, int32_t *group, int32_t *first)
{
    Table table = {columns, values};
    Index index;
    int32_t groups = 0;
    if (!make_index(&index, 1024))
        return NONE;
    for (size_t row = 0; row < size; row++) {
        size_t at = place_of(&index, &table, first, row);
        if (index.places[at] == NONE) {
            if ((size_t)groups * 2 > index.mask) {
                if (!grow(&index, &table, first, groups)) {
                    free(index.places);
                    return NONE;
                }
                at = place_of(&index, &table, first, row);
            }
            first[groups] = (int32_t)row;
            index.places[at] = groups++;
        }
        group[row] = index.places[at];
    }
    free(index.places);
    return groups;
}

/* How many of the members end by `moment`; the search begins at the answer before, which is near in sorted spans. */
static size_t ended_by(const Members *members, int64_t moment, size_t near)
{
    enum { STEPS = 8 };
    size_t low = near, high = members->size;
    if (near > 0 && members->end[near - 1] > moment) {
        low = 0;
        high = near - 1;
    } else {
        for (int step = 0; step < STEPS; step++, low++)
            if (low == members->size || members->end[low] > moment)
                return low;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (members->end[middle] <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sums and differences wrap around as those of NumPy do. */
static uint64_t time_before(const Members *members, int64_t moment, size_t at)
{
    bool is_inside = at < members->size && moment > members->start[at];
    return (uint64_t)members->done[at] + (is_inside ? (uint64_t)moment - (uint64_t)members->start[at] : 0);
}

/* Where the search for the next span begins. */
typedef struct {
    size_t first;
    size_t last;
} Near;

static uint64_t time_within(const Members *members, int64_t start, int64_t end, Near *near)
{
    enum { FAR = 64 };
    int64_t until = end > start ? end : start;
    near->first = ended_by(members, start, near->first);
    near->last = ended_by(members, until, near->last < near->first + FAR ? near->last : near->first);
    return time_before(members, until, near->last) - time_before(members, start, near->first);
}

bool add_time(Members members, size_t size, const int64_t *start, const int64_t *end, const int32_t *owner,
              size_t owners, int64_t *total)
{
    Near near = {0, 0};
    for (size_t i = 0; i < size; i++) {
        if (owner[i] < 0)
            continue;
        if ((size_t)owner[i] >= owners)
            return false;
        total[owner[i]] = (int64_t)((uint64_t)total[owner[i]] + time_within(&members, start[i], end[i], &near));
    }
    return true;
}
