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

/* Latest end so far of the calls of one code, and the run of rows of one group in which it is; 0 before the first. */
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

/* Intervals of a thread so far: the innermost call and its start. */
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

/* End the calls that have ended by `moment`: the calls around them become innermost. */
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

/* Running calls, ordered by end: of those that end together, inner ones come first, and of these the first row. */
typedef struct {
    const Calls *calls;
    const int32_t *depth;
    int32_t *rows;
    size_t size;
} Heap;

static bool make_heap(Heap *heap, const Calls *calls, const int32_t *depth)
{
    *heap = (Heap){calls, depth, malloc((calls->size + 1) * sizeof *heap->rows), 0};
    return heap->rows != NULL && calls->size < INT32_MAX;
}

static bool ends_before(const Heap *heap, int32_t a, int32_t b)
{
    int64_t left = lasting_end(heap->calls, (size_t)a), right = lasting_end(heap->calls, (size_t)b);
    if (left != right)
        return left < right;
    return heap->depth[a] != heap->depth[b] ? heap->depth[a] > heap->depth[b] : a < b;
}

static void push_call(Heap *heap, int32_t row)
{
    size_t at = heap->size++;
    for (; at > 0 && ends_before(heap, row, heap->rows[(at - 1) / 2]); at = (at - 1) / 2)
        heap->rows[at] = heap->rows[(at - 1) / 2];
    heap->rows[at] = row;
}

static int32_t pop_call(Heap *heap)
{
    int32_t top = heap->rows[0], last = heap->rows[--heap->size];
    size_t at = 0;
    for (size_t child = 1; child < heap->size; child = 2 * at + 1) {
        child += child + 1 < heap->size && ends_before(heap, heap->rows[child + 1], heap->rows[child]);
        if (!ends_before(heap, heap->rows[child], last))
            break;
        heap->rows[at] = heap->rows[child];
        at = child;
    }
    heap->rows[at] = last;
    return top;
}

static bool is_over(const Heap *heap, int64_t moment)
{
    return heap->size > 0 && lasting_end(heap->calls, (size_t)heap->rows[0]) <= moment;
}

int nest_crossing(Calls calls, int32_t *depth, int32_t *parent)
{
    Heap heap;
    int32_t *latest = malloc((calls.size + 1) * sizeof *latest); /* last call of each depth in this group */
    int ordered = make_heap(&heap, &calls, depth) && latest != NULL ? 1 : NONE;
    for (size_t i = 0; ordered > 0 && i < calls.size; i++) {
        if (calls.start[i] == INT64_MAX || calls.end[i] == INT64_MIN || (i > 0 && !is_before(&calls, i))) {
            ordered = 0;
            break;
        }
        if (i > 0 && calls.group[i] != calls.group[i - 1])
            heap.size = 0;
        while (is_over(&heap, calls.start[i]))
            pop_call(&heap);
        depth[i] = (int32_t)heap.size;
        parent[i] = heap.size > 0 ? latest[heap.size - 1] : NONE;
        latest[heap.size] = (int32_t)i;
        push_call(&heap, (int32_t)i);
    }
    free(heap.rows);
    free(latest);
    return ordered;
}

/* Sweep over a thread whose calls cross: the call that started last, or the parent of the one that ended last. */
typedef struct {
    Sweep sweep;
    const Calls *calls;
    const int32_t *parent;
    size_t begun; /* the last call that started by `sweep.since` */
} Crossing;

static void advance_crossing(Crossing *crossing, int64_t until)
{
    Sweep *sweep = &crossing->sweep;
    const Calls *calls = crossing->calls;
    int64_t owner = sweep->owner;
    if (until > sweep->since) {
        if (owner == NONE || calls->start[owner] > sweep->since || calls->end[owner] < until) {
            size_t next = crossing->begun + 1;
            for (; next < calls->size && calls->group[next] == calls->group[next - 1] &&
                   calls->start[next] <= sweep->since; next++)
                crossing->begun = next;
            owner = (int64_t)crossing->begun;
            while (owner != NONE && calls->end[owner] <= sweep->since)
                owner = crossing->parent[owner];
            sweep->owner = owner;
        }
        advance(sweep, until);
    }
}

/* End calls up to `moment`, in order of their ends. */
static void end_crossing(Crossing *crossing, Heap *heap, int64_t moment)
{
    while (is_over(heap, moment)) {
        advance_crossing(crossing, crossing->calls->end[heap->rows[0]]);
        crossing->sweep.owner = crossing->parent[pop_call(heap)];
    }
}

int64_t find_crossing(Calls calls, const int32_t *depth, const int32_t *parent, const uint8_t *wanted,
                      Stretches stretches)
{
    Heap heap;
    Crossing crossing = {{stretches, wanted, 0, NONE, 0}, &calls, parent, 0};
    int64_t found = make_heap(&heap, &calls, depth) ? 0 : NONE - 1;
    for (size_t i = 0; found == 0 && i < calls.size; i++) {
        if (i > 0 && !is_before(&calls, i)) {
            found = NONE;
            break;
        }
        if (i == 0 || calls.group[i] != calls.group[i - 1]) {
            end_crossing(&crossing, &heap, INT64_MAX);
            crossing.begun = i;
            crossing.sweep.since = INT64_MAX;
        }
        if (calls.end[i] <= calls.start[i])
            continue; /* lasts no time */
        end_crossing(&crossing, &heap, calls.start[i]);
        advance_crossing(&crossing, calls.start[i]);
        crossing.sweep.since = calls.start[i];
        crossing.sweep.owner = (int64_t)i;
        push_call(&heap, (int32_t)i);
    }
    end_crossing(&crossing, &heap, INT64_MAX);
    free(heap.rows);
    return found < 0 ? found : crossing.sweep.size;
}

static bool has_begun(const Calls *calls, size_t row, int64_t key, int64_t moment)
{
    return calls->group[row] < key || (calls->group[row] == key && calls->start[row] <= moment);
}

/* Return the number of calls that start by a moment of a group; the search starts at the previous answer, because
 * moments mostly come in order. */
static size_t begun_by(const Calls *calls, int64_t key, int64_t moment, size_t near)
{
    enum { STEPS = 8 };
    size_t low = near, high = calls->size;
    if (near > 0 && !has_begun(calls, near - 1, key, moment)) {
        low = 0;
        high = near - 1;
    } else {
        for (int step = 0; step < STEPS; step++, low++)
            if (low == high || !has_begun(calls, low, key, moment))
                return low;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (has_begun(calls, middle, key, moment))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool find_running(Calls calls, const int32_t *parent, size_t size, const int64_t *key, const int64_t *moment,
                  int32_t *found)
{
    size_t begun = 0;
    for (size_t i = 0; i < size; i++) {
        begun = begun_by(&calls, key[i], moment[i], begun);
        int64_t row = (int64_t)begun - 1;
        if (row >= 0 && calls.group[row] != key[i])
            row = NONE;
        while (row >= 0 && calls.end[row] <= moment[i]) {
            if (parent[row] >= row || parent[row] < NONE)
                return false;
            row = parent[row];
        }
        found[i] = (int32_t)row;
    }
    return true;
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

static int64_t group_by_hash(const Table *table, size_t size, int32_t *group, int32_t *first)
{
    Index index;
    int32_t groups = 0;
    if (!make_index(&index, 1024))
        return NONE;
    for (size_t row = 0; row < size; row++) {
        size_t at = place_of(&index, table, first, row);
        if (index.places[at] == NONE) {
            if ((size_t)groups * 2 > index.mask) {
                if (!grow(&index, table, first, groups)) {
                    free(index.places);
                    return NONE;
                }
                at = place_of(&index, table, first, row);
            }
            first[groups] = (int32_t)row;
            index.places[at] = groups++;
        }
        group[row] = index.places[at];
    }
    free(index.places);
    return groups;
}

/* The least value of each column, and the range of its values. */
enum { MOST_COLUMNS = 4, FEW_PLACES = 1024 };
typedef struct {
    int64_t least[MOST_COLUMNS];
    uint64_t width[MOST_COLUMNS];
} Bounds;

/* Return the number of possible combinations of values; 0 if these are many more than rows. */
static size_t combinations(const Table *table, size_t size, Bounds *bounds)
{
    uint64_t places = 1, most = size < FEW_PLACES ? FEW_PLACES : size;
    if (table->columns > MOST_COLUMNS)
        return 0;
    for (size_t column = 0; column < table->columns; column++) {
        const int32_t *values = table->values[column];
        int32_t least = size > 0 ? values[0] : 0, greatest = least;
        for (size_t row = 0; row < size; row++) {
            least = values[row] < least ? values[row] : least;
            greatest = values[row] > greatest ? values[row] : greatest;
        }
        bounds->least[column] = least;
        bounds->width[column] = (uint64_t)((int64_t)greatest - least + 1);
        places *= bounds->width[column]; /* both are below 2**33 */
        if (places > most)
            return 0;
    }
    return (size_t)places;
}

/* Do the same as by hashes, with a place for each combination of values. */
static int64_t group_by_place(const Table *table, size_t size, const Bounds *bounds, Index index, int32_t *group,
                              int32_t *first)
{
    int32_t groups = 0;
    for (size_t row = 0; row < size; row++) {
        uint64_t at = 0;
        for (size_t column = 0; column < table->columns; column++)
            at = at * bounds->width[column] + (uint64_t)(table->values[column][row] - bounds->least[column]);
        if (index.places[at] == NONE) {
            first[groups] = (int32_t)row;
            index.places[at] = groups++;
        }
        group[row] = index.places[at];
    }
    free(index.places);
    return groups;
}

int64_t group_rows(size_t size, size_t columns, const int32_t *const *values, int32_t *group, int32_t *first)
{
    Table table = {columns, values};
    Bounds bounds;
    Index index;
    size_t places = combinations(&table, size, &bounds);
    if (places == 0)
        return group_by_hash(&table, size, group, first);
    return make_index(&index, places) ? group_by_place(&table, size, &bounds, index, group, first) : NONE;
}

/* Count the members that end by `moment`; the search starts at the previous answer, which is near in sorted spans. */
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

/* Sums and differences wrap around as in NumPy. */
static uint64_t time_before(const Members *members, int64_t moment, size_t at)
{
    bool is_inside = at < members->size && moment > members->start[at];
    return (uint64_t)members->done[at] + (is_inside ? (uint64_t)moment - (uint64_t)members->start[at] : 0);
}

/* Position at which the search for the next span starts. */
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
