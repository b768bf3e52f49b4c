/* The list of events of a Chrome-format trace as columns, block after block of its text.
 *
 *     {"ph": "X", "name": "aten::add", "ts": 12.5, "args": {"correlation": 7, "grid": [1, 2, 3]}}
 *        phase       text 4              12500 ns              7                     text 9
 *
 * Whole numbers and times in plain notation become integers at once. All other values become numbers of distinct
 * texts, which Python interprets, once per text.
 *
 * Pure C: no Python object is touched, so it runs without the interpreter's lock.
 */

#ifndef TRACEVIZ_EVENTS_H
#define TRACEVIZ_EVENTS_H

#include "json.h"
#include "texts.h"

enum { PHASE, NAME, CATEGORY, PID, TID, START, DURATION, MEMBERS };

enum { ABSENT = -1 };

#define NO_TIME INT64_MIN

/* Values, for the events that have them. */
typedef struct {
    LIST(int32_t) rows;
    LIST(int32_t) codes;
    LIST(int64_t) integers;
} Values;

/* A column of arguments. */
typedef struct {
    bool integer; /* its plain values are in `plain.integers`, the others in `odd.codes`; else all in `plain.codes` */
    Values plain;
    Values odd;
} Column;

/* A key of arguments. */
typedef struct {
    uint8_t *text;
    size_t length;
    int32_t column;
    int32_t before; /* the key of the same column that takes precedence; -1 for none */
} Key;

/* The text of a value in the block that is being read. */
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} Slice;

typedef struct {
    size_t events; /* events kept */
    size_t strays; /* elements of the list that are not objects */
    Texts texts;
    LIST(uint8_t) phases;
    LIST(int32_t) members[TID + 1];       /* codes of NAME to TID */
    LIST(int64_t) times[2];                 /* START, DURATION */
    Values odd_times[2];
    Column *columns;
    size_t column_count;
    LIST(int64_t) passed_over; /* number of events, by number of the phase's text + 1 */

    uint8_t place_of_phase[256]; /* + 1; 0 for phases that are skipped */
    Key *keys;
    size_t key_count;
    int16_t key_slots[512]; /* open addressing: the number of a key + 1 */

    /* The event that is being read. */
    Slice found[MEMBERS];
    Slice *arguments;  /* by key */
    int32_t *touched;  /* the keys that it has */
    size_t touched_count;
    int32_t last[MEMBERS]; /* codes of the previous event: most values are the same */
    uint8_t *nested;
    size_t nested_room;
} Scanner;

typedef enum { TEXT_ENDS, LIST_ENDS, LIST_BREAKS, TOO_MANY, OUT_OF_MEMORY } Stop;

/* Take complete elements from `place` on. `stopped` is before the incomplete element or after the end of the list,
 * `broken` the byte that is not allowed at its place. */
Stop scan_events(Scanner *scanner, const uint8_t *text, size_t length, size_t place, size_t *stopped, size_t *broken);

/* Move the findings of `other`, which must look for the same, to the end of those of `scanner`, as if one scanner had
 * read both texts, one after the other. Unless this returns TEXT_ENDS, neither can be used after it. */
Stop join_scanners(Scanner *scanner, Scanner *other);

/* Return whether two scanners look for the same phases, and for columns of the same kinds under the same keys. */
bool look_alike(const Scanner *scanner, const Scanner *other);

/* Add a known `key`; false without memory. Keys are given once, those of a column in order of precedence. */
bool add_key(Scanner *scanner, size_t number, const uint8_t *text, size_t length, int32_t column, int32_t before);

void free_scanner(Scanner *scanner);

#endif
