/* Growing arrays. */

#ifndef TRACEVIZ_LIST_H
#define TRACEVIZ_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `items` has room for `room` elements, `size` are in use. */
#define LIST(type)                                                                                                     \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        size_t size;                                                                                                   \
        size_t room;                                                                                                   \
    }

/* `items` is the address of a pointer of any type, hence the copies instead of a cast. */
static inline bool grow(void *items, size_t *room, size_t size, size_t width)
{
    void *old;
    if (size < *room)
        return true;
    size_t wanted = *room ? *room * 2 : 16;
    memcpy(&old, items, sizeof old);
    void *moved = wanted > SIZE_MAX / width ? NULL : realloc(old, wanted * width);
    if (moved == NULL)
        return false;
    memcpy(items, &moved, sizeof moved);
    *room = wanted;
    return true;
}

/* The new last element of a list, or NULL without memory; its content is undefined. */
#define PUSH(list)                                                                                                     \
    (grow(&(list).items, &(list).room, (list).size, sizeof *(list).items) ? &(list).items[(list).size++] : NULL)

/* Append `count` elements; false without memory. `items` is the address of a pointer of any type. */
static inline bool extend(void *items, size_t *size, size_t *room, const void *more, size_t count, size_t width)
{
    void *old;
    if (count == 0)
        return true;
    memcpy(&old, items, sizeof old);
    if (count > *room - *size) {
        void *moved = count > SIZE_MAX / width - *size ? NULL : realloc(old, (*size + count) * width);
        if (moved == NULL)
            return false;
        memcpy(items, &moved, sizeof moved);
        old = moved;
        *room = *size + count;
    }
    memcpy((uint8_t *)old + *size * width, more, count * width);
    *size += count;
    return true;
}

/* Move the elements of `other` to the end of `list`, and free its memory; false without memory. */
#define MOVE_TO_END(list, other)                                                                                       \
    (extend(&(list).items, &(list).size, &(list).room, (other).items, (other).size, sizeof *(list).items) &&           \
     (free((other).items), (other).items = NULL, (other).size = (other).room = 0, true))

#endif
