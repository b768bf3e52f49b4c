#include "matching.h"

enum { NONE = -1 };

bool are_places(const Places *places, size_t count)
{
    if (places->width == 0 || (uint64_t)INT64_MAX - (uint64_t)places->least < places->width - 1)
        return false;
    return places->owners <= SIZE_MAX / places->width && places->owners * places->width == count;
}

/* Return the number of an owner, `owners` if it is unknown. Rows of one owner mostly come together. */
static size_t number_of(const Places *places, int32_t owner, size_t near)
{
    if (near < places->owners && places->owner[near] == owner)
        return near;
    size_t low = 0, high = places->owners;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places->owner[middle] < owner)
            low = middle + 1;
        else
            high = middle;
    }
    return low < places->owners && places->owner[low] == owner ? low : places->owners;
}

/* Return the place of a pair, NULL if it has none. As unsigned numbers, ids below the least are far above it. */
static int32_t *place_of(const Pairs *pairs, size_t row, const Places *places, size_t *near)
{
    uint64_t above = (uint64_t)pairs->id[row] - (uint64_t)places->least;
    if (above >= places->width || (pairs->known != NULL && !pairs->known[row]))
        return NULL;
    size_t number = number_of(places, pairs->owner[row], *near);
    if (number == places->owners)
        return NULL;
    *near = number;
    return places->row + number * places->width + above;
}

void place_rows(const Pairs *among, const Places *places)
{
    size_t near = 0;
    for (size_t place = 0; place < places->owners * places->width; place++)
        places->row[place] = NONE;
    for (size_t row = among->size; row-- > 0;) { /* of equal pairs the last write stays: the first row */
        int32_t *place = place_of(among, row, places, &near);
        if (place != NULL)
            *place = (int32_t)row;
    }
}

void find_rows(const Pairs *sought, const Places *places, int32_t *rows)
{
    size_t near = 0;
    for (size_t row = 0; row < sought->size; row++) {
        const int32_t *place = place_of(sought, row, places, &near);
        rows[row] = place != NULL ? *place : NONE;
    }
}
