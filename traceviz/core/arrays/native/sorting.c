#include "sorting.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORK = 8, LEAST_BLOCK = 1 << 13 };

/* Return the first of `count` ordered rows later than `moment`; the last one is later. It is mostly near the end. */
static size_t first_later(const int64_t *time, const int32_t *order, size_t count, int64_t moment)
{
    size_t high = count - 1, step = 1;
    while (high >= step && time[order[high - step]] > moment) {
        high -= step;
        step *= 2;
    }
    size_t low = high >= step ? high - step + 1 : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (time[order[middle]] > moment)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Merge the rows from `next` to `end`, which are in order, into those before. `count` of those before are `later`. */
static void merge_run(const int64_t *time, int32_t *order, const int32_t *later, size_t count, size_t next, size_t end)
{
    size_t at = 0, place = next - count;
    while (at < count && next < end)
        order[place++] = time[next] < time[later[at]] ? (int32_t)next++ : later[at++];
    while (at < count)
        order[place++] = later[at++];
    while (next < end)
        order[place++] = (int32_t)next++;
}

static bool make_room(int32_t **rows, size_t *room, size_t count)
{
    if (count <= *room)
        return true;
    int32_t *more = realloc(*rows, 2 * count * sizeof *more);
    if (more == NULL)
        return false;
    *rows = more;
    *room = 2 * count;
    return true;
}

static int64_t furthest(const int32_t *order, size_t size)
{
    int64_t most = 0;
    for (size_t row = 0; row < size; row++) {
        int64_t off = (int64_t)order[row] - (int64_t)row;
        off = off < 0 ? -off : off;
        most = off > most ? off : most;
    }
    return most;
}

int64_t order_nearly(const int64_t *time, size_t size, int32_t *order)
{
    int32_t *later = NULL;
    size_t room = 0, work = 0;
    int64_t found = 0;
    for (size_t row = 0; row < size && found == 0;) {
        if (row == 0 || time[row] >= time[order[row - 1]]) {
            order[row] = (int32_t)row;
            row++;
            continue;
        }
        size_t end = row + 1;
        while (end < size && time[end] >= time[end - 1])
            end++;
        size_t count = row - first_later(time, order, row, time[row]);
        work += count;
        if (work / MOST_WORK > size)
            found = NOT_NEARLY;
        else if (!make_room(&later, &room, count))
            found = NO_ROOM;
        else {
            memcpy(later, order + row - count, count * sizeof *later);
            merge_run(time, order, later, count, row, end);
        }
        row = end;
    }
    free(later);
    return found < 0 ? found : furthest(order, size);
}

#define TAKE(type)                                                                                                     \
    for (size_t row = begin; row < end; row++)                                                                         \
    ((type *)column)[row] = ((const type *)held)[(size_t)order[row] - from]

/* Put rows from `begin` to `end` into their places; `held` has all that belong there, starting at row `from`. */
static void take_rows(void *column, size_t width, const int32_t *order, size_t begin, size_t end, const void *held,
                      size_t from)
{
    if (width == 8)
        TAKE(uint64_t);
    else if (width == 4)
        TAKE(uint32_t);
    else if (width == 2)
        TAKE(uint16_t);
    else
        TAKE(uint8_t);
}

static bool is_near(const int32_t *order, size_t size, size_t distance)
{
    for (size_t row = 0; row < size; row++)
        if (order[row] < 0 || (size_t)order[row] >= size)
            return false;
    return furthest(order, size) <= (int64_t)distance;
}

bool move_rows(void *column, size_t width, const int32_t *order, size_t size, size_t distance)
{
    if (distance >= size || !is_near(order, size, distance))
        return size == 0;
    size_t block = distance > LEAST_BLOCK ? distance : LEAST_BLOCK, from = 0, to = 0;
    uint8_t *held = malloc((block + 2 * distance) * width), *bytes = column;
    if (held == NULL)
        return false;
    for (size_t begin = 0; begin < size; begin += block) {
        size_t end = size - begin > block ? begin + block : size, until = size - end > distance ? end + distance : size;
        size_t first = begin > distance ? begin - distance : 0;
        memmove(held, held + (first - from) * width, (to - first) * width);
        memcpy(held + (to - first) * width, bytes + to * width, (until - to) * width);
        from = first;
        to = until;
        take_rows(column, width, order, begin, end, held, from);
    }
    free(held);
    return true;
}
