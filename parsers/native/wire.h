/* Reading the fields of a protobuf message, one after the other, never beyond its end. */

#ifndef TRACEVIZ_WIRE_H
#define TRACEVIZ_WIRE_H

#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} Span;

typedef enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 } Wire;

typedef enum {
    FIELD,      /* a field was read */
    END,        /* the message is over */
    UNREADABLE, /* a number that does not end, a tag that no field can have */
    CUT_SHORT   /* a value reaches beyond the end of the message */
} Outcome;

/* Number and wire are separate: compilers compare adjacent ones as one word, which waits for both to be stored. */
typedef struct {
    uint32_t number;
    uint64_t value; /* of numbers; of BYTES the length */
    Span bytes;     /* of BYTES; of a value that is cut short, the part that exists */
    uint32_t wire;
} Field;

static inline int64_t length_of(Span span) { return (int64_t)(span.end - span.at); }

/* A varint is at most ten bytes; bits of the tenth beyond 64 are dropped, as protobuf does. */
static inline const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;
    if (at < end && *at < 0x80) { /* tags, lengths and most ids */
        *value = *at;
        return at + 1;
    }
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t byte = *at++;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = sum;
            return at;
        }
    }
    return NULL;
}

static inline Outcome read_sized(Span *rest, const uint8_t *at, uint64_t size, Field *field)
{
    uint64_t there = (uint64_t)(rest->end - at);
    field->bytes.at = at;
    field->bytes.end = size <= there ? at + size : rest->end;
    field->value = size;
    if (size > there)
        return CUT_SHORT;
    rest->at = field->bytes.end;
    return FIELD;
}

/* Read the next field of `rest` and advance; if none can be read, `rest` stays at its first byte. */
static inline Outcome next_field(Span *rest, Field *field)
{
    uint64_t tag, size;
    if (rest->at >= rest->end)
        return END;
    const uint8_t *at = read_varint(rest->at, rest->end, &tag);
    if (at == NULL || tag > UINT32_MAX || tag >> 3 == 0)
        return UNREADABLE;
    field->number = (uint32_t)(tag >> 3);
    field->wire = (uint32_t)(tag & 7);
    switch (field->wire) {
    case VARINT:
        at = read_varint(at, rest->end, &field->value);
        if (at == NULL)
            return UNREADABLE;
        rest->at = at;
        return FIELD;
    case BYTES:
        at = read_varint(at, rest->end, &size);
        return at == NULL ? UNREADABLE : read_sized(rest, at, size, field);
    case FIXED64: {
        Outcome outcome = read_sized(rest, at, 8, field);
        if (outcome == FIELD) { /* little-endian on every machine */
            field->value = 0;
            for (int i = 7; i >= 0; i--)
                field->value = field->value << 8 | at[i];
        }
        return outcome;
    }
    case FIXED32:
        return read_sized(rest, at, 4, field);
    default: /* groups, and wire types that do not exist */
        return UNREADABLE;
    }
}

#endif
