/* Ends of JSON values. The grammar is that of shared/json/grammar.py, which explains why it is a little wider than the
 * standard's: both must stop at the same byte. */

#ifndef TRACEVIZ_JSON_H
#define TRACEVIZ_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

typedef enum {
    WHOLE,
    CUT,    /* the text ends inside the value */
    BROKEN, /* a byte is not allowed at its place */
    NO_MEMORY
} Outcome;

/* A text, and the reader's place: `at` is the end of a complete value, or the byte that is not allowed there. */
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    uint8_t *nested; /* for skip_value: a stack of the brackets that close the open containers */
    size_t nested_room;
} Reader;

static inline bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

/* Move to the next byte that is not blank; false if the text ends before it. */
static inline bool skip_blanks(Reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at))
        reader->at++;
    return reader->at < reader->end;
}

/* Move past the text value whose quote is at `at`. */
Outcome skip_text(Reader *reader);

/* Move past the value that starts at `at`. */
Outcome skip_value(Reader *reader);

/* Move past a key, whose quote must be at `at`, and its colon, to the value; `key` to `key_end` is the quoted text. */
Outcome skip_key(Reader *reader, const uint8_t **key, const uint8_t **key_end);

#endif
