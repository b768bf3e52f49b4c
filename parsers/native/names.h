/* Names of a plane, found by their id or by their content. */

#ifndef TRACEVIZ_NAMES_H
#define TRACEVIZ_NAMES_H

#include "list.h"
#include "wire.h"

/* A name of events, or a text. If `made_up`, the file has no entry for `id`. */
typedef struct {
    Span text;
    Span display_name;
    int64_t id;
    bool made_up;
} Name;

typedef LIST(Name) Names;

/* Open addressing over positions in a list, so that an entry costs four bytes. */
typedef struct {
    uint32_t *slots; /* position + 1 of an element; 0 is free */
    size_t mask;
    size_t used;
    uint32_t *found; /* the same by id, for small ids that were searched: files number their names from 1 on */
} Index;

/* Position of the name with this id, -1 if there is none. */
int64_t find_name(const Index *by_id, const Names *names, int64_t id);

/* Append a name of the file; the last of equal ids counts. False without memory. */
bool add_name(Index *by_id, Names *names, const Name *name);

/* Position of the name with this id, once the file's names are added; a missing name is added. -1 without memory. */
int64_t place_of_id(Index *by_id, Names *names, int64_t id);

/* Position of a text without an id: each is stored once. -1 without memory. */
int64_t place_of_text(Index *by_content, Names *names, Span text);

void free_index(Index *index);

#endif
