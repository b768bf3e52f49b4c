/* One plane of an XPlane file as columns, in two passes.
 *
 *     survey_plane   finds lines and names, and counts the possible events and stats
 *     fill_plane     checks every event, and writes those that keep to the format into columns with room for all
 *
 * Pure C: no Python object is touched here, so both passes run without the interpreter's lock. The bytes belong to the
 * caller and must stay until free_plane.
 */

#ifndef TRACEVIZ_SCAN_H
#define TRACEVIZ_SCAN_H

#include "names.h"

/* Kind of the value of a stat: the numbers of the fields of XStat. */
enum { NO_VALUE = 0, REAL = 2, UNSIGNED = 3, SIGNED = 4, TEXT = 5, BLOB = 6, REFERENCE = 7 };

typedef struct {
    int64_t key;
    uint64_t value;
    Span bytes;
    uint8_t kind;
} Stat;

/* Damage to one message: the end of its reading, and the number of parts left out. */
typedef struct {
    uint64_t missing;   /* bytes that its last value lacks */
    int64_t unread;     /* bytes that are not fields */
    int64_t mistyped;   /* fields of a wrong wire type */
    int64_t events;     /* events, names and properties that break the format */
    int64_t names;
    int64_t properties;
} Damage;

typedef struct {
    Span body;
    Span name;
    Span display_name;
    int64_t id;
    int64_t timestamp_ns;
    int64_t events;
    Damage damage;
} Line;

/* A stat of all events of a name, or of the plane. */
typedef struct {
    int64_t place;
    Stat stat;
} Constant;

typedef LIST(Constant) Constants;

typedef struct {
    int64_t id;
    Span name;
    LIST(Line) lines;
    Names names;
    Names texts;
    LIST(Span) blobs;
    Constants name_stats;
    Constants properties;
    LIST(Stat) scratch; /* stats of the event being read */
    Index name_by_id;
    Index text_by_id;
    Index text_by_content;
    int64_t event_room;
    int64_t stat_room;
    int64_t events;
    int64_t stats;
    int64_t aggregated;
    Damage damage;
} Plane;

typedef struct {
    int32_t *event_line;
    int32_t *event_name;
    int64_t *event_offset;
    int64_t *event_duration;
    int32_t *stat_event;
    int32_t *stat_key;
    uint8_t *stat_kind;
    int64_t *stat_value;
} Columns;

typedef enum { SCANNED, NO_MEMORY, TOO_MANY, CHANGED } Status;

/* First pass over the plane encoded in `body`; `plane` must be zeroed. */
Status survey_plane(Plane *plane, Span body);

/* Second pass. Columns have room for plane->event_room and plane->stat_room elements; the first plane->events and
 * plane->stats of them are written. */
Status fill_plane(Plane *plane, const Columns *columns);

/* Position of the text with this id, -1 if the file has none. */
int64_t find_text(const Plane *plane, int64_t id);

void free_plane(Plane *plane);

#endif
