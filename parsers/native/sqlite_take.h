/* From the stored columns of a page to the requested ones of a table. */

#ifndef TRACEVIZ_SQLITE_TAKE_H
#define TRACEVIZ_SQLITE_TAKE_H

#include "sqlite_table.h"

/* Take the first `rows` rows of the stored columns; their texts are in `block`. */
Status take_column(const Table *table, Wanted *wanted, const uint8_t *block, size_t rows);

#endif
