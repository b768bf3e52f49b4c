/* Columns of many rows: pick, count, sort, join. shared/arrays/operations.py has the same functions in NumPy. */

#ifndef TRACEVIZ_COLUMNS_H
#define TRACEVIZ_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* result[i] = values[index[i]], or `missing` where index[i] is negative. Elements are `width` (1, 4 or 8) bytes. False
 * if an index is out of bounds. */
bool take_values(const void *values, size_t size, size_t width, const int32_t *index, size_t rows, int64_t missing,
                 void *result);

/* used[codes[i]] = 1 for all codes that are not negative. False if one is out of bounds. */
bool mark_codes(const int32_t *codes, size_t rows, uint8_t *used, size_t size);

/* place[index[i]] = i; -1 for places that are not in `index`. False if an index is out of bounds. */
bool invert_index(const int32_t *index, size_t rows, int32_t *place, size_t size);

/* Positions of the `kept` rows (all if NULL; `count` of them) in order of `start`; the sort is stable. False without
 * memory. */
bool order_rows(const int64_t *start, const uint8_t *kept, size_t rows, size_t count, int32_t *order);

/* Rows by key: those of key k are order[first[k]] .. order[first[k + 1] - 1]; the sort is stable. `first` has keys + 1
 * elements. False if a key is out of bounds. */
bool sort_by_key(const int32_t *key, size_t rows, size_t keys, int64_t *first, int32_t *order);

/* Whole nanoseconds of spans in picoseconds, truncated at both ends; negative durations count as zero. The base of its
 * line is added to each start. False if a line is out of bounds. */
bool to_nanoseconds(const int64_t *start_ps, const int64_t *dur_ps, const int32_t *line, size_t rows,
                    const int64_t *base_ns, size_t lines, int64_t *start_ns, int64_t *dur_ns);

typedef struct {
    const int64_t *left;
    const int64_t *right;
    size_t lefts;
    size_t rights;
    int64_t most; /* a key that both sides share at least this often joins nothing */
    int32_t *head;
    int32_t *next;
    int32_t *right_count;
    int32_t *left_count;
    int32_t *slot_of_left;
    size_t mask;
    size_t pairs;
} Join;

/* Pair every left row with every right row of the same key: `pairs` in total. False without memory; always call
 * free_join. */
bool prepare_join(Join *join);

/* Write the pairs by ascending left, then right row. */
void write_pairs(const Join *join, int32_t *left_row, int32_t *right_row);

void free_join(Join *join);

#endif
