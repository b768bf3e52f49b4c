/* Rows that nearly come by time, as profilers write them: put in order where they are. */

#ifndef TRACEVIZ_SORTING_H
#define TRACEVIZ_SORTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NOT_NEARLY = -1, NO_ROOM = -2 };

/* Write the rows in order of time, equal ones as they come, and return how far from its place the furthest of them is;
 * NOT_NEARLY where so many are out of order that other ways are faster, NO_ROOM where memory does not suffice. */
int64_t order_nearly(const int64_t *time, size_t size, int32_t *order);

/* Put the rows of a column, each `width` bytes (1, 2, 4 or 8) wide, into this order: none is further from its place than
 * `distance`. False where memory does not suffice, or the order is not so; nothing is moved then. */
bool move_rows(void *column, size_t width, const int32_t *order, size_t size, size_t distance);

#endif
