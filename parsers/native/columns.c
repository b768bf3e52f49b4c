#include "columns.h"

#include <stdlib.h>
#include <string.h>

#include "list.h"

enum { NONE = -1 };

/* Picking --------------------------------------------------------------------------------------------------------- */

#define TAKE(type)                                                                                                     \
    do {                                                                                                               \
        const type *from = values;                                                                                     \
        type *to = result;                                                                                             \
        for (size_t i = 0; i < rows; i++) {                                                                            \
            if (index[i] >= 0 && (size_t)index[i] >= size)                                                             \
                return false;                                                                                          \
            to[i] = index[i] < 0 ? (type)missing : from[index[i]];                                                     \
        }                                                                                                              \
        return true;                                                                                                   \
    } while (0)

bool take_values(const void *values, size_t size, size_t width, const int32_t *index, size_t rows, int64_t missing,
                 void *result)
{
    switch (width) {
    case 1:
        TAKE(int8_t);
    case 4:
        TAKE(int32_t);
    case 8:
        TAKE(int64_t);
    default:
        return false;
    }
}

bool mark_codes(const int32_t *codes, size_t rows, uint8_t *used, size_t size)
{
    for (size_t i = 0; i < rows; i++) {
        if (codes[i] < 0)
            continue;
        if ((size_t)codes[i] >= size)
            return false;
        used[codes[i]] = 1;
    }
    return true;
}

bool invert_index(const int32_t *index, size_t rows, int32_t *place, size_t size)
{
    memset(place, 0xff, size * sizeof *place); /* NONE */
    for (size_t i = 0; i < rows; i++) {
        if (index[i] < 0 || (size_t)index[i] >= size)
            return false;
        place[index[i]] = (int32_t)i;
    }
    return true;
}

/* Times ----------------------------------------------------------------------------------------------------------- */

/* Sums wrap around as in NumPy: in damaged files times exceed 64 bits. */
static int64_t sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static int64_t floor_of_thousandth(int64_t number) { return number / 1000 - (number % 1000 < 0); }

bool to_nanoseconds(const int64_t *start_ps, const int64_t *dur_ps, const int32_t *line, size_t rows,
                    const int64_t *base_ns, size_t lines, int64_t *start_ns, int64_t *dur_ns)
{
    for (size_t i = 0; i < rows; i++) {
        if (line[i] < 0 || (size_t)line[i] >= lines)
            return false;
        int64_t start = floor_of_thousandth(start_ps[i]);
        int64_t end = floor_of_thousandth(sum(start_ps[i], dur_ps[i] > 0 ? dur_ps[i] : 0));
        start_ns[i] = sum(start, base_ns[line[i]]);
        dur_ns[i] = sum(end, -start);
    }
    return true;
}

/* Sorting --------------------------------------------------------------------------------------------------------- */

bool sort_by_key(const int32_t *key, size_t rows, size_t keys, int64_t *first, int32_t *order)
{
    memset(first, 0, (keys + 1) * sizeof *first);
    for (size_t i = 0; i < rows; i++) {
        if (key[i] < 0 || (size_t)key[i] >= keys)
            return false;
        first[key[i]]++;
    }
    int64_t total = 0;
    for (size_t k = 0; k <= keys; k++) {
        int64_t count = first[k];
        first[k] = total;
        total += count;
    }
    for (size_t i = 0; i < rows; i++)
        order[first[key[i]]++] = (int32_t)i;
    /* Each place has advanced to the start of the next key. */
    memmove(first + 1, first, keys * sizeof *first);
    first[0] = 0;
    return true;
}

/* A range of sorted rows: those of one line, or fewer. */
typedef struct {
    size_t at;
    size_t end;
} Stretch;

typedef struct {
    const int64_t *start;
    const int32_t *rows; /* NULL if every row takes part */
    struct {
        Stretch *items;
        size_t size;
        size_t room;
    } stretches; /* a heap: none starts before the one at half its place */
} Merge;

static int32_t row_at(const Merge *merge, size_t place)
{
    return merge->rows == NULL ? (int32_t)place : merge->rows[place];
}

/* Return whether the row at place `a` comes before that at `b`. */
static bool comes_before(const Merge *merge, size_t a, size_t b)
{
    int64_t first = merge->start[row_at(merge, a)], second = merge->start[row_at(merge, b)];
    return first < second || (first == second && a < b);
}

static void sift_down(Merge *merge, size_t at)
{
    Stretch *heap = merge->stretches.items, moving = heap[at];
    for (size_t child; (child = at * 2 + 1) < merge->stretches.size; at = child) {
        if (child + 1 < merge->stretches.size && comes_before(merge, heap[child + 1].at, heap[child].at))
            child++;
        if (comes_before(merge, moving.at, heap[child].at))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

static bool find_stretches(Merge *merge, size_t count)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && merge->start[row_at(merge, end - 1)] <= merge->start[row_at(merge, end)];)
            end++;
        Stretch *stretch = PUSH(merge->stretches);
        if (stretch == NULL)
            return false;
        *stretch = (Stretch){begin, end};
    }
    return true;
}

/* The first range continues until another one starts earlier, so long ranges cost little more than a copy. */
static void merge_stretches(Merge *merge, int32_t *order)
{
    Stretch *heap = merge->stretches.items;
    for (size_t i = merge->stretches.size / 2; i-- > 0;)
        sift_down(merge, i);
    while (merge->stretches.size > 0) {
        size_t next = 1, size = merge->stretches.size;
        if (size > 2 && comes_before(merge, heap[2].at, heap[1].at))
            next = 2;
        do
            *order++ = row_at(merge, heap[0].at++);
        while (heap[0].at < heap[0].end && (size == 1 || comes_before(merge, heap[0].at, heap[next].at)));
        if (heap[0].at == heap[0].end)
            heap[0] = heap[--merge->stretches.size];
        if (merge->stretches.size > 0)
            sift_down(merge, 0);
    }
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, MANY_STRETCHES = 64 };

/* One pass of a sort by digits: `from` in order of one digit of the time after `least`; the sort is stable. */
static void sort_by_digit(const Merge *merge, uint64_t least, int shift, const int32_t *from, int32_t *to, size_t count)
{
    size_t first[DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++)
        first[(((uint64_t)merge->start[from[i]] - least) >> shift & (DIGITS - 1)) + 1]++;
    for (size_t digit = 0; digit < DIGITS; digit++)
        first[digit + 1] += first[digit];
    for (size_t i = 0; i < count; i++)
        to[first[((uint64_t)merge->start[from[i]] - least) >> shift & (DIGITS - 1)]++] = from[i];
}

/* For rows that are mostly unordered: merging many short ranges takes longer than a sort by digits. */
static bool sort_by_digits(const Merge *merge, int32_t *order, size_t count)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    int32_t *other = malloc((count + 1) * sizeof *other), *from = order, *to = other;
    if (other == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        order[i] = row_at(merge, i);
        int64_t start = merge->start[order[i]];
        least = start < least ? start : least;
        most = start > most ? start : most;
    }
    uint64_t width = (uint64_t)most - (uint64_t)least;
    for (int shift = 0; shift < 64 && width >> shift != 0; shift += DIGIT_BITS) {
        sort_by_digit(merge, (uint64_t)least, shift, from, to, count);
        int32_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != order)
        memcpy(order, from, count * sizeof *order);
    free(other);
    return true;
}

bool order_rows(const int64_t *start, const uint8_t *kept, size_t rows, size_t count, int32_t *order)
{
    int32_t *chosen = kept == NULL ? NULL : malloc((count + 1) * sizeof *chosen);
    if (kept != NULL && chosen == NULL)
        return false;
    for (size_t i = 0, place = 0; kept != NULL && i < rows && place < count; i++)
        if (kept[i])
            chosen[place++] = (int32_t)i;
    Merge merge = {start, chosen, {0}};
    bool found = find_stretches(&merge, count);
    if (found && merge.stretches.size > MANY_STRETCHES)
        found = sort_by_digits(&merge, order, count);
    else if (found)
        merge_stretches(&merge, order);
    free(merge.stretches.items);
    free(chosen);
    return found;
}

/* Joining --------------------------------------------------------------------------------------------------------- */

/* Return the slot of a key: that of the right rows with it, else a free one. There is always a free one. */
static size_t slot_of(const Join *join, int64_t key)
{
    uint64_t mixed = (uint64_t)key * 0x9E3779B97F4A7C15u;
    size_t slot = (size_t)(mixed ^ mixed >> 32) & join->mask;
    while (join->head[slot] != NONE && join->right[join->head[slot]] != key)
        slot = (slot + 1) & join->mask;
    return slot;
}

static bool allocate_join(Join *join)
{
    size_t slots = 16;
    while (slots < join->rights * 2)
        slots *= 2;
    join->mask = slots - 1;
    join->head = malloc(slots * sizeof *join->head);
    join->next = malloc((join->rights + 1) * sizeof *join->next);
    join->right_count = calloc(slots, sizeof *join->right_count);
    join->left_count = calloc(slots, sizeof *join->left_count);
    join->slot_of_left = malloc((join->lefts + 1) * sizeof *join->slot_of_left);
    return join->head && join->next && join->right_count && join->left_count && join->slot_of_left;
}

static bool joins(const Join *join, size_t slot)
{
    return join->left_count[slot] < join->most || join->right_count[slot] < join->most;
}

bool prepare_join(Join *join)
{
    if (!allocate_join(join))
        return false;
    for (size_t slot = 0; slot <= join->mask; slot++)
        join->head[slot] = NONE;
    for (size_t i = join->rights; i-- > 0;) { /* backwards, so that each list ascends */
        size_t slot = slot_of(join, join->right[i]);
        join->next[i] = join->head[slot];
        join->head[slot] = (int32_t)i;
        join->right_count[slot]++;
    }
    for (size_t i = 0; i < join->lefts; i++) {
        size_t slot = slot_of(join, join->left[i]);
        join->slot_of_left[i] = (int32_t)slot;
        join->left_count[slot]++;
    }
    for (size_t i = 0; i < join->lefts; i++)
        if (joins(join, (size_t)join->slot_of_left[i]))
            join->pairs += (size_t)join->right_count[join->slot_of_left[i]];
    return true;
}

void write_pairs(const Join *join, int32_t *left_row, int32_t *right_row)
{
    for (size_t i = 0, at = 0; i < join->lefts; i++) {
        size_t slot = (size_t)join->slot_of_left[i];
        if (!joins(join, slot))
            continue;
        for (int32_t row = join->head[slot]; row != NONE; row = join->next[row], at++) {
            left_row[at] = (int32_t)i;
            right_row[at] = row;
        }
    }
}

void free_join(Join *join)
{
    free(join->head);
    free(join->next);
    free(join->right_count);
    free(join->left_count);
    free(join->slot_of_left);
}
