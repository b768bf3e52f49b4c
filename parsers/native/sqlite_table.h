/* Leaf pages of a table of an SQLite database as columns.
 *
 *     leaf page   | header | cell pointers ... |   free   | cell | cell | cell |
 *     cell        | payload size | row number | header size, one type per column | value | value | ... | rest elsewhere |
 *
 * Pages are read and not mapped: a file that shrinks during the read is rejected. Every offset is checked against its
 * page before it is used. Tables that are not plain are also rejected, for SQLite to decode: with a wanted value
 * beyond its page or of another kind than requested, or with a row that lacks columns.
 *
 * Pure C: no Python object is touched, so it runs without the interpreter's lock.
 */

#ifndef TRACEVIZ_SQLITE_TABLE_H
#define TRACEVIZ_SQLITE_TABLE_H

#include "texts.h"

typedef enum { DECODED, NOT_PLAIN, SHORTER, NO_MEMORY, NO_ROOM } Status;

/* A column as stored, one page of it at a time. For texts, `values` holds their starts in the pages. */
typedef struct {
    uint32_t position;
    bool is_text;
    int64_t *values;
    uint32_t *lengths;
    uint8_t *missing;
    bool has_missing; /* on this page */
} Stored;

/* Rows that count: those with one of `values` in a stored column, or those without. */
typedef struct {
    size_t stored;
    const int64_t *values;
    size_t count;
    bool inverted;
} Filter;

typedef enum {
    INTEGER, /* the value less `less`, missing if it is `unset` or does not fit `width` */
    LASTING, /* the first stored column less the second, missing if negative */
    CODE,    /* a number for each distinct combination of stored columns */
    TEXT     /* a number for each distinct text, or if that is missing, for each distinct integer */
} Operation;

enum { MOST_PARTS = 6, MOST_COLUMNS = 250 };

/* A cached combination of up to two integers, and its number + 1; 0 is free. */
typedef struct {
    int64_t key[3];
    int32_t number;
} Recent;

enum { RECENT = 256, RECENT_SHIFT = 56 };

/* A requested column. */
typedef struct {
    Operation operation;
    size_t parts[MOST_PARTS]; /* stored columns */
    size_t part_count;
    uint8_t *out; /* NULL if only the fields below are requested */
    size_t width; /* bytes of a value of INTEGER: 2, 4 or 8; LASTING has 8, the others 4 */
    int64_t less;
    int64_t unset;
    bool has_unset;

    int64_t least, most; /* of INTEGER, as stored; least > most if there is none */
    size_t missing;      /* rows without a value */
    size_t beyond;       /* those of them whose value does not fit; of LASTING, negative ones */
    uint8_t *mask;       /* 1 for rows without a value, NULL if all have one */
    size_t mask_room;
    Texts keys; /* of CODE: the integers and a word whose bits mark the missing ones; of TEXT: see `text_key` */
    LIST(uint64_t) counts;
    int32_t last;   /* of TEXT: the key of the previous row: most are equal */
    Recent *recent; /* of CODE: by a hash of the key, the last one; most tables have few */
} Wanted;

typedef struct {
    int file;
    size_t page_size;
    size_t usable;
    int64_t page_count;
    size_t width; /* columns of the table */
    bool alone;   /* an empty table has one empty page; no other page may be empty */
    Stored *stored;
    size_t stored_count;
    Filter *filters;
    size_t filter_count;
    Wanted *wanted;
    size_t wanted_count;
    size_t room; /* rows that `out` of all columns has room for */
    size_t rows; /* rows so far */
} Table;

/* Decode the leaf pages with these numbers, one after the other. */
Status decode_pages(Table *table, const int64_t *pages, size_t count);

#endif
