/* Where JSON values end. The grammar is that of kineto_decode_grammar.py, which says why it is a little wider than the
 * standard's: both must stop at the same byte. */

#ifndef TRACEVIZ_JSON_H
#define TRACEVIZ_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

typedef enum {
    WHOLE,
    CUT,    /* the text ends inside the value */
    BROKEN, /* a byte cannot stand where it does */
    NO_MEMORY
} Outcome;

/* A text, and how far it is read: `at` is where a whole value ended, or the byte that cannot stand there. */
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    uint8_t *nested; /* for skip_value: a stack of the brackets that close what is open */
    size_t nested_room;
} Reader;

static inline bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

/* To the next byte that is no blank; false where the text ends before it. */
static inline bool skip_blanks(Reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at))
        reader->at++;
    return reader->at < reader->end;
}

/* Past the text value whose quote is at `at`. */
Outcome skip_text(Reader *reader);

/* Past the value that begins at `at`. */
Outcome skip_value(Reader *reader);

/* Past a key, whose quote must be at `at`, and its colon, to the value; `key` and `key_end` are what the quotes hold. */
Outcome skip_key(Reader *reader, const uint8_t **key, const uint8_t **key_end);

#endif
