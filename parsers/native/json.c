#include "json.h"

#include <stdlib.h>
#include <string.h>

/* Letters, digits and signs: the characters of numbers and of words such as NaN. */
static const bool in_word[256] = {
    ['+'] = 1, ['-'] = 1, ['.'] = 1, ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1,
    ['7'] = 1, ['8'] = 1, ['9'] = 1, ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1, ['F'] = 1, ['G'] = 1,
    ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1,
    ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1, ['Z'] = 1, ['a'] = 1,
    ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1,
    ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1,
    ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1,
};

/* A backslash goes with the byte after it, so a quote ends the text if an even number of backslashes precedes it. */
static bool is_escaped(const uint8_t *quote, const uint8_t *begin)
{
    const uint8_t *at = quote;
    while (at > begin && at[-1] == '\\')
        at--;
    return (quote - at) % 2 == 1;
}

Outcome skip_text(Reader *reader)
{
    const uint8_t *begin = reader->at + 1;
    const uint8_t *from = begin;
    for (;;) {
        const uint8_t *quote = from < reader->end ? memchr(from, '"', (size_t)(reader->end - from)) : NULL;
        if (quote == NULL)
            return CUT;
        from = quote + 1;
        if (!is_escaped(quote, begin)) {
            reader->at = from;
            return WHOLE;
        }
    }
}

static Outcome skip_flat(Reader *reader)
{
    if (*reader->at == '"')
        return skip_text(reader);
    const uint8_t *at = reader->at;
    while (at < reader->end && in_word[*at])
        at++;
    if (at == reader->end)
        return CUT; /* the word may continue */
    if (at == reader->at)
        return BROKEN;
    reader->at = at;
    return WHOLE;
}

static Outcome expect(Reader *reader, uint8_t wanted)
{
    if (!skip_blanks(reader))
        return CUT;
    return *reader->at == wanted ? WHOLE : BROKEN;
}

Outcome skip_key(Reader *reader, const uint8_t **key, const uint8_t **key_end)
{
    Outcome outcome = expect(reader, '"');
    if (outcome != WHOLE)
        return outcome;
    *key = reader->at + 1;
    if ((outcome = skip_text(reader)) != WHOLE)
        return outcome;
    *key_end = reader->at - 1;
    if ((outcome = expect(reader, ':')) != WHOLE)
        return outcome;
    reader->at++;
    return skip_blanks(reader) ? WHOLE : CUT;
}

static bool open_one(Reader *reader, size_t depth, uint8_t closer)
{
    if (depth == reader->nested_room) {
        size_t room = depth == 0 ? 64 : 2 * depth;
        uint8_t *moved = realloc(reader->nested, room);
        if (moved == NULL)
            return false;
        reader->nested = moved;
        reader->nested_room = room;
    }
    reader->nested[depth] = closer;
    return true;
}

/* Move to the next value of the container that `closer` closes; in an object, past its key. */
static Outcome next_value(Reader *reader, uint8_t closer)
{
    const uint8_t *key, *key_end;
    if (closer == '}')
        return skip_key(reader, &key, &key_end);
    return skip_blanks(reader) ? WHOLE : CUT;
}

/* Move past the brackets after a value, and the comma before the next value, if there is one. */
static Outcome close_all(Reader *reader, size_t *depth)
{
    while (*depth > 0) {
        if (!skip_blanks(reader))
            return CUT;
        if (*reader->at == ',') {
            reader->at++;
            return next_value(reader, reader->nested[*depth - 1]);
        }
        if (*reader->at != reader->nested[*depth - 1])
            return BROKEN;
        reader->at++;
        --*depth;
    }
    return WHOLE;
}

/* No recursion: texts may be nested deeper than any stack. */
Outcome skip_value(Reader *reader)
{
    size_t depth = 0;
    Outcome outcome;
    do {
        uint8_t byte = *reader->at;
        if (byte == '{' || byte == '[') {
            uint8_t closer = byte == '{' ? '}' : ']';
            if (!open_one(reader, depth, closer))
                return NO_MEMORY;
            depth++;
            reader->at++;
            if (!skip_blanks(reader))
                return CUT;
            if (*reader->at != closer) {
                if ((outcome = next_value(reader, closer)) != WHOLE)
                    return outcome;
                continue;
            }
        } else if ((outcome = skip_flat(reader)) != WHOLE) {
            return outcome;
        }
        if ((outcome = close_all(reader, &depth)) != WHOLE)
            return outcome;
    } while (depth > 0);
    return WHOLE;
}
