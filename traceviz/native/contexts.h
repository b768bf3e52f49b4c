/* What is around calls that nest: plain arrays in, plain arrays out. Calls come after those around them. */

#ifndef TRACEVIZ_CONTEXTS_H
#define TRACEVIZ_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write the outermost `wanted` call that is each call or is around it, -1 for none. False if a parent comes after. */
bool find_topmost(size_t size, const int64_t *parent, const uint8_t *wanted, int64_t *found);

/* Number calls by the codes of what is around them and their own, as they first come, and write the first call of each
 * number: `first` has room for all. Returns how many numbers there are, -1 where memory does not suffice, -2 if a parent
 * comes after. */
int64_t number_contexts(size_t size, const int64_t *parent, const int32_t *code, int32_t *context, int32_t *first);

#endif
