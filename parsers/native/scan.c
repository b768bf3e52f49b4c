#include "scan.h"

/* Fields of the messages, by number (xplane.proto of the TSL profiler). */
enum { PLANE_ID = 1, PLANE_NAME, PLANE_LINES, PLANE_EVENT_NAMES, PLANE_STAT_NAMES, PLANE_STATS };
enum { LINE_ID = 1, LINE_NAME, LINE_TIMESTAMP, LINE_EVENTS, LINE_DISPLAY_NAME = 11 };
enum { EVENT_NAME = 1, EVENT_OFFSET, EVENT_DURATION, EVENT_STATS, EVENT_OCCURRENCES };
enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { NAME_ID = 1, NAME_NAME, NAME_DISPLAY_NAME = 4, NAME_STATS };
enum { STAT_KEY = 1 };

typedef struct {
    int64_t name;
    int64_t offset_ps;
    int64_t duration_ps;
    bool aggregated;
} Event;

/* Messages: each reader returns whether the message keeps to the format -------------------------------------------- */

static bool read_stat(Span rest, Stat *stat)
{
    Field field;
    Outcome outcome;
    *stat = (Stat){0};
    while ((outcome = next_field(&rest, &field)) == FIELD) {
        uint32_t wire = field.wire;
        switch (field.number) {
        case STAT_KEY:
            if (wire != VARINT)
                return false;
            stat->key = (int64_t)field.value;
            continue;
        case REAL:
            if (wire != FIXED64)
                return false;
            break;
        case UNSIGNED:
        case SIGNED:
        case REFERENCE:
            if (wire != VARINT)
                return false;
            break;
        case TEXT:
        case BLOB:
            if (wire != BYTES)
                return false;
            break;
        default:
            continue;
        }
        stat->kind = (uint8_t)field.number; /* one of several: the last counts */
        stat->value = field.value;
        stat->bytes = field.bytes;
    }
    return outcome == END;
}

/* Read an event; its stats with a value are then in plane->scratch. */
static bool read_event(Plane *plane, Span rest, Event *event, Status *status)
{
    Field field;
    Outcome outcome;
    *event = (Event){0};
    plane->scratch.size = 0;
    while ((outcome = next_field(&rest, &field)) == FIELD) {
        if (field.number < EVENT_NAME || field.number > EVENT_OCCURRENCES)
            continue;
        if (field.wire != (field.number == EVENT_STATS ? BYTES : VARINT))
            return false;
        switch (field.number) {
        case EVENT_NAME:
            event->name = (int64_t)field.value;
            break;
        case EVENT_OFFSET:
            event->offset_ps = (int64_t)field.value;
            break;
        case EVENT_DURATION:
            event->duration_ps = (int64_t)field.value;
            break;
        case EVENT_OCCURRENCES:
            event->aggregated = true;
            break;
        default: {
            Stat *stat = PUSH(plane->scratch);
            if (stat == NULL) {
                *status = NO_MEMORY;
                return false;
            }
            if (!read_stat(field.bytes, stat))
                return false;
            plane->scratch.size -= stat->kind == NO_VALUE;
        }
        }
    }
    return outcome == END;
}

static void note_end(Damage *damage, Outcome outcome, const Field *field, Span rest)
{
    if (outcome == CUT_SHORT)
        damage->missing = field->value - (uint64_t)length_of(field->bytes);
    else if (outcome == UNREADABLE)
        damage->unread = length_of(rest);
}

/* First pass: lines ----------------------------------------------------------------------------------------------- */

/* Upper limit of the stats of an event; those that break the format are left out later. */
static int64_t count_stats(Span rest)
{
    Field field;
    int64_t count = 0;
    while (next_field(&rest, &field) == FIELD)
        count += field.number == EVENT_STATS;
    return count;
}

static Status survey_line(Plane *plane, Span body)
{
    Line *line = plane->lines.size < INT32_MAX ? PUSH(plane->lines) : NULL;
    if (line == NULL)
        return NO_MEMORY;
    *line = (Line){.body = body};
    Field field;
    Outcome outcome;
    Span rest = body;
    while ((outcome = next_field(&rest, &field)) == FIELD) {
        bool text = field.number == LINE_NAME || field.number == LINE_DISPLAY_NAME || field.number == LINE_EVENTS;
        bool known = text || field.number == LINE_ID || field.number == LINE_TIMESTAMP;
        if (!known)
            continue;
        if (field.wire != (text ? BYTES : VARINT)) {
            line->damage.mistyped++;
            continue;
        }
        switch (field.number) {
        case LINE_ID:
            line->id = (int64_t)field.value;
            break;
        case LINE_TIMESTAMP:
            line->timestamp_ns = (int64_t)field.value;
            break;
        case LINE_NAME:
            line->name = field.bytes;
            break;
        case LINE_DISPLAY_NAME:
            line->display_name = field.bytes;
            break;
        default:
            plane->event_room++;
            plane->stat_room += count_stats(field.bytes);
        }
    }
    note_end(&line->damage, outcome, &field, rest);
    return plane->event_room > INT32_MAX ? TOO_MANY : SCANNED;
}

/* First pass: names ------------------------------------------------------------------------------------------------ */

/* Read the name of an entry; its stats go to plane->scratch. */
static bool read_name(Plane *plane, Span rest, Name *name, bool of_events, Status *status)
{
    Field field;
    Outcome outcome;
    while ((outcome = next_field(&rest, &field)) == FIELD) {
        bool known = field.number == NAME_ID || field.number == NAME_NAME;
        if (!known && !(of_events && (field.number == NAME_DISPLAY_NAME || field.number == NAME_STATS)))
            continue;
        if (field.wire != (field.number == NAME_ID ? VARINT : BYTES))
            return false;
        if (field.number == NAME_NAME)
            name->text = field.bytes;
        else if (field.number == NAME_DISPLAY_NAME)
            name->display_name = field.bytes;
        else if (field.number == NAME_STATS) {
            Stat *stat = PUSH(plane->scratch);
            if (stat == NULL)
                *status = NO_MEMORY;
            if (stat == NULL || !read_stat(field.bytes, stat))
                return false;
        }
    }
    return outcome == END;
}

/* The key of an entry is that of the map; the id inside its value repeats it. */
static bool read_entry(Plane *plane, Span rest, Name *name, bool of_events, Status *status)
{
    Field field = {0};
    Outcome outcome;
    *name = (Name){0};
    plane->scratch.size = 0;
    while ((outcome = next_field(&rest, &field)) == FIELD) {
        if (field.number != ENTRY_KEY && field.number != ENTRY_VALUE)
            continue;
        if (field.wire != (field.number == ENTRY_KEY ? VARINT : BYTES))
            return false;
        if (field.number == ENTRY_KEY)
            name->id = (int64_t)field.value;
        else if (!read_name(plane, field.bytes, name, of_events, status))
            return false;
    }
    return outcome == END;
}

static Status survey_entry(Plane *plane, Span body, bool of_events)
{
    Name name;
    Status status = SCANNED;
    if (!read_entry(plane, body, &name, of_events, &status)) {
        plane->damage.names += status == SCANNED;
        return status;
    }
    Names *names = of_events ? &plane->names : &plane->texts;
    if (!add_name(of_events ? &plane->name_by_id : &plane->text_by_id, names, &name))
        return NO_MEMORY;
    for (size_t i = 0; i < plane->scratch.size; i++) {
        Constant *constant = PUSH(plane->name_stats);
        if (constant == NULL)
            return NO_MEMORY;
        *constant = (Constant){(int64_t)names->size - 1, plane->scratch.items[i]};
    }
    return SCANNED;
}

static Status survey_property(Plane *plane, Span body)
{
    Stat stat;
    if (!read_stat(body, &stat)) {
        plane->damage.properties++;
        return SCANNED;
    }
    Constant *constant = PUSH(plane->properties);
    if (constant == NULL)
        return NO_MEMORY;
    *constant = (Constant){0, stat};
    return SCANNED;
}

/* The plane -------------------------------------------------------------------------------------------------------- */

static Status survey_field(Plane *plane, const Field *field)
{
    switch (field->number) {
    case PLANE_ID:
        plane->id = (int64_t)field->value;
        return SCANNED;
    case PLANE_NAME:
        plane->name = field->bytes;
        return SCANNED;
    case PLANE_LINES:
        return survey_line(plane, field->bytes);
    case PLANE_EVENT_NAMES:
    case PLANE_STAT_NAMES:
        return survey_entry(plane, field->bytes, field->number == PLANE_EVENT_NAMES);
    case PLANE_STATS:
        return survey_property(plane, field->bytes);
    default:
        return SCANNED;
    }
}

Status survey_plane(Plane *plane, Span body)
{
    Field field;
    Outcome outcome = END;
    Status status = SCANNED;
    while (status == SCANNED && (outcome = next_field(&body, &field)) == FIELD) {
        bool known = field.number >= PLANE_ID && field.number <= PLANE_STATS;
        if (known && field.wire != (field.number == PLANE_ID ? VARINT : BYTES))
            plane->damage.mistyped++;
        else
            status = survey_field(plane, &field);
    }
    if (status != SCANNED)
        return status;
    note_end(&plane->damage, outcome, &field, body);
    bool cut_line = outcome == CUT_SHORT && field.number == PLANE_LINES && field.wire == BYTES;
    return cut_line ? survey_line(plane, field.bytes) : SCANNED; /* of a line that is cut short, the part that exists */
}

/* Second pass ------------------------------------------------------------------------------------------------------ */

static bool fill_stat(Plane *plane, const Columns *columns, const Stat *stat)
{
    int64_t key = place_of_id(&plane->text_by_id, &plane->texts, stat->key);
    int64_t value = (int64_t)stat->value;
    uint8_t kind = stat->kind;
    if (kind == REFERENCE) {
        kind = TEXT;
        value = place_of_id(&plane->text_by_id, &plane->texts, value);
    } else if (kind == TEXT) {
        value = place_of_text(&plane->text_by_content, &plane->texts, stat->bytes);
    } else if (kind == BLOB) {
        Span *blob = PUSH(plane->blobs);
        if (blob == NULL)
            return false;
        *blob = stat->bytes;
        value = (int64_t)plane->blobs.size - 1;
    }
    columns->stat_event[plane->stats] = (int32_t)plane->events;
    columns->stat_key[plane->stats] = (int32_t)key;
    columns->stat_kind[plane->stats] = kind;
    columns->stat_value[plane->stats] = value;
    return key >= 0 && (kind != TEXT || value >= 0);
}

static Status fill_event(Plane *plane, const Columns *columns, Line *line, Span body)
{
    Event event;
    Status status = SCANNED;
    if (!read_event(plane, body, &event, &status)) {
        line->damage.events += status == SCANNED;
        return status;
    }
    if (event.aggregated) {
        plane->aggregated++;
        return SCANNED;
    }
    /* Another process may write to a mapped file: never trust the counts of the first pass. */
    if (plane->events >= plane->event_room || plane->stats + (int64_t)plane->scratch.size > plane->stat_room)
        return CHANGED;
    int64_t name = place_of_id(&plane->name_by_id, &plane->names, event.name);
    if (name < 0)
        return NO_MEMORY;
    columns->event_line[plane->events] = (int32_t)(line - plane->lines.items);
    columns->event_name[plane->events] = (int32_t)name;
    columns->event_offset[plane->events] = event.offset_ps;
    columns->event_duration[plane->events] = event.duration_ps;
    for (size_t i = 0; i < plane->scratch.size; i++, plane->stats++)
        if (!fill_stat(plane, columns, &plane->scratch.items[i]))
            return NO_MEMORY;
    plane->events++;
    line->events++;
    return SCANNED;
}

Status fill_plane(Plane *plane, const Columns *columns)
{
    Field field;
    for (size_t i = 0; i < plane->lines.size; i++) {
        Line *line = &plane->lines.items[i];
        Span rest = line->body;
        while (next_field(&rest, &field) == FIELD) {
            if (field.number != LINE_EVENTS || field.wire != BYTES)
                continue;
            Status status = fill_event(plane, columns, line, field.bytes);
            if (status != SCANNED)
                return status;
        }
    }
    return SCANNED;
}

int64_t find_text(const Plane *plane, int64_t id) { return find_name(&plane->text_by_id, &plane->texts, id); }

void free_plane(Plane *plane)
{
    free(plane->lines.items);
    free(plane->names.items);
    free(plane->texts.items);
    free(plane->blobs.items);
    free(plane->name_stats.items);
    free(plane->properties.items);
    free(plane->scratch.items);
    free_index(&plane->name_by_id);
    free_index(&plane->text_by_id);
    free_index(&plane->text_by_content);
}
