/* In-place sorting of rows that nearly come by time, as profilers write them. */

#ifndef TRACEVIZ_SORTING_H
#define TRACEVIZ_SORTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NOT_NEARLY = -1, NO_ROOM = -2 };

/* Write the rows in order of time; equal rows keep their order. Returns the largest distance of a row from its place;
 * NOT_NEARLY if so many are out of order that other ways are faster, NO_ROOM if memory does not suffice. */
int64_t order_nearly(const int64_t *time, size_t size, int32_t *order);

/* Put the rows of a column, each `width` bytes (1, 2, 4 or 8) wide, into this order. No row is further from its place
 * than `distance`. False if memory does not suffice, or if a row is further away; nothing is moved then. */
bool move_rows(void *column, size_t width, const int32_t *order, size_t size, size_t distance);

#endif
