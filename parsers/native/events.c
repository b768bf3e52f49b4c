#include "events.h"

enum { MOST_KEY = 64 };

/* Keys --------------------------------------------------------------------------------------------------------------*/

static size_t key_slot(const Scanner *scanner, const uint8_t *text, size_t length)
{
    size_t mask = sizeof scanner->key_slots / sizeof *scanner->key_slots - 1;
    uint64_t head = 0;
    memcpy(&head, text, length < 8 ? length : 8);
    head = (head ^ length ^ (uint64_t)(length ? text[length - 1] : 0) << 8) * 0x9e3779b97f4a7c15u;
    size_t slot = (size_t)(head >> 40) & mask;
    for (; scanner->key_slots[slot] != 0; slot = (slot + 1) & mask) {
        const Key *key = &scanner->keys[scanner->key_slots[slot] - 1];
        if (key->length == length && memcmp(key->text, text, length) == 0)
            break;
    }
    return slot;
}

bool add_key(Scanner *scanner, size_t number, const uint8_t *text, size_t length, int32_t column, int32_t before)
{
    uint8_t *copy = malloc(length + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text, length);
    scanner->keys[number] = (Key){copy, length, column, before};
    scanner->key_slots[key_slot(scanner, text, length)] = (int16_t)(number + 1);
    return true;
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The character of \uXXXX, whose u is at `at`; 0 for characters that no key has. */
static uint8_t ascii_of_escape(const uint8_t *at, const uint8_t *end)
{
    int value = 0;
    if (end - at < 5)
        return 0;
    for (int digit = 1; digit <= 4; digit++) {
        int one = hex_digit(at[digit]);
        if (one < 0)
            return 0;
        value = value * 16 + one;
    }
    return value < 128 ? (uint8_t)value : 0;
}

/* A key without its escapes, in `plain`; false if it cannot be a known key. */
static bool unescape_key(Slice *key, uint8_t *plain)
{
    size_t length = 0;
    for (const uint8_t *at = key->at; at < key->end; at++) {
        uint8_t byte = *at;
        if (byte == '\\') {
            at++; /* a backslash never ends a key: it goes with the byte after it */
            byte = *at == 'u' ? ascii_of_escape(at, key->end) : *at == '/' ? '/' : 0;
            at += *at == 'u' ? 4 : 0;
        }
        if (byte == 0 || length == MOST_KEY)
            return false;
        plain[length++] = byte;
    }
    *key = (Slice){plain, plain + length};
    return true;
}

/* Return whether a key has escapes, and may be a known one without them. It is then in `plain`, which has room for
 * MOST_KEY bytes. Called for keys that are unknown as written. */
static bool is_escaped_key(Slice *key, uint8_t *plain)
{
    size_t length = (size_t)(key->end - key->at);
    return length > 0 && memchr(key->at, '\\', length) != NULL && unescape_key(key, plain);
}

static bool is_word(Slice text, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(text.end - text.at) == length && memcmp(text.at, word, length) == 0;
}

enum { ARGUMENTS = MEMBERS, UNKNOWN };

static int member_of(Slice key)
{
    switch (key.end - key.at) {
    case 2:
        return is_word(key, "ph") ? PHASE : is_word(key, "ts") ? START : UNKNOWN;
    case 3:
        return is_word(key, "cat")   ? CATEGORY
               : is_word(key, "pid") ? PID
               : is_word(key, "tid") ? TID
               : is_word(key, "dur") ? DURATION
                                     : UNKNOWN;
    case 4:
        return is_word(key, "name") ? NAME : is_word(key, "args") ? ARGUMENTS : UNKNOWN;
    default:
        return UNKNOWN;
    }
}

/* One event ---------------------------------------------------------------------------------------------------------*/

/* After a member: move past a comma to the next one, or past the brace that closes the object. */
static Outcome next_member(Reader *reader, bool *more)
{
    if (!skip_blanks(reader))
        return CUT;
    *more = *reader->at == ',';
    if (!*more && *reader->at != '}')
        return BROKEN;
    reader->at++;
    return WHOLE;
}

/* Move past the opening brace; return whether the object has members. */
static Outcome first_member(Reader *reader, bool *more)
{
    reader->at++;
    if (!skip_blanks(reader))
        return CUT;
    *more = *reader->at != '}';
    if (!*more)
        reader->at++;
    return WHOLE;
}

static void forget_arguments(Scanner *scanner)
{
    for (size_t i = 0; i < scanner->touched_count; i++)
        scanner->arguments[scanner->touched[i]].at = NULL;
    scanner->touched_count = 0;
}

static void keep_argument(Scanner *scanner, Slice key, Slice value)
{
    uint8_t plain[MOST_KEY];
    int16_t number = scanner->key_slots[key_slot(scanner, key.at, (size_t)(key.end - key.at))];
    if (number == 0 && is_escaped_key(&key, plain))
        number = scanner->key_slots[key_slot(scanner, key.at, (size_t)(key.end - key.at))];
    if (number == 0)
        return;
    if (scanner->arguments[number - 1].at == NULL)
        scanner->touched[scanner->touched_count++] = number - 1;
    scanner->arguments[number - 1] = value;
}

static Outcome read_arguments(Scanner *scanner, Reader *reader)
{
    bool more;
    Outcome outcome = first_member(reader, &more);
    while (outcome == WHOLE && more) {
        Slice key, value;
        if ((outcome = skip_key(reader, &key.at, &key.end)) != WHOLE)
            break;
        value.at = reader->at;
        if ((outcome = skip_value(reader)) != WHOLE)
            break;
        value.end = reader->at;
        keep_argument(scanner, key, value);
        outcome = next_member(reader, &more);
    }
    return outcome;
}

static Outcome read_member(Scanner *scanner, Reader *reader)
{
    uint8_t plain[MOST_KEY];
    Slice key;
    Outcome outcome = skip_key(reader, &key.at, &key.end);
    if (outcome != WHOLE)
        return outcome;
    int member = member_of(key);
    if (member == UNKNOWN && is_escaped_key(&key, plain))
        member = member_of(key);
    if (member == ARGUMENTS) {
        forget_arguments(scanner); /* the last of equal keys counts */
        if (*reader->at == '{')
            return read_arguments(scanner, reader);
    }
    const uint8_t *begin = reader->at;
    if ((outcome = skip_value(reader)) == WHOLE && member < MEMBERS)
        scanner->found[member] = (Slice){begin, reader->at};
    return outcome;
}

static Outcome read_event(Scanner *scanner, Reader *reader)
{
    bool more;
    memset(scanner->found, 0, sizeof scanner->found);
    forget_arguments(scanner);
    Outcome outcome = first_member(reader, &more);
    while (outcome == WHOLE && more)
        if ((outcome = read_member(scanner, reader)) == WHOLE)
            outcome = next_member(reader, &more);
    return outcome;
}

/* Plain numbers -----------------------------------------------------------------------------------------------------*/

/* Digits of `text` up to the first byte that is not one; return its place. */
static const uint8_t *digits(Slice text, int64_t *value)
{
    int64_t number = 0;
    const uint8_t *at = text.at;
    for (; at < text.end && (uint8_t)(*at - '0') < 10; at++)
        number = number * 10 + (*at - '0');
    *value = number;
    return at;
}

static bool plain_integer(Slice text, int64_t *value)
{
    bool negative = text.at < text.end && *text.at == '-';
    text.at += negative;
    if (text.end - text.at < 1 || text.end - text.at > 18 || digits(text, value) != text.end)
        return false;
    *value = negative ? -*value : *value;
    return true;
}

/* Microseconds with decimals, quoted or not, to nanoseconds; digits after the third decimal are cut. */
static bool plain_time(Slice text, int64_t *value)
{
    static const int64_t scale[] = {1000, 100, 10, 1};
    if (text.end - text.at >= 2 && *text.at == '"')
        text = (Slice){text.at + 1, text.end - 1};
    bool negative = text.at < text.end && *text.at == '-';
    text.at += negative;
    /* Digits are counted before they are read: more of them might overflow. */
    const uint8_t *point = text.at;
    while (point < text.end && (uint8_t)(*point - '0') < 10)
        point++;
    if (point == text.at || point - text.at > 16)
        return false;
    int64_t whole, decimals = 0;
    digits((Slice){text.at, point}, &whole);
    if (whole >= INT64_MAX / 1000)
        return false;
    if (point < text.end) {
        if (*point != '.' || text.end - point < 2)
            return false;
        const uint8_t *from = point + 1, *to = text.end - from > 3 ? from + 3 : text.end;
        if (digits((Slice){from, to}, &decimals) != to)
            return false;
        for (const uint8_t *at = to; at < text.end; at++)
            if ((uint8_t)(*at - '0') >= 10)
                return false;
        decimals *= scale[to - from];
    }
    *value = negative ? -(whole * 1000 + decimals) : whole * 1000 + decimals;
    return true;
}

/* Into columns ------------------------------------------------------------------------------------------------------*/

static Stop stop_of(int32_t code) { return code == TEXTS_FULL ? TOO_MANY : OUT_OF_MEMORY; }

/* The number of a text; below ABSENT on failure. */
static int32_t code_of(Scanner *scanner, Slice text)
{
    return text.at == NULL ? ABSENT : number_of_text(&scanner->texts, text.at, (size_t)(text.end - text.at));
}

/* The same, fast if the previous event has the same text. */
static int32_t member_code(Scanner *scanner, int member)
{
    Slice text = scanner->found[member];
    int32_t last = scanner->last[member];
    if (text.at != NULL && last >= 0 && is_text(&scanner->texts, last, text.at, (size_t)(text.end - text.at)))
        return last;
    return scanner->last[member] = code_of(scanner, text);
}

#define KEEP(list, value)                                                                                              \
    do {                                                                                                               \
        if (PUSH(list) == NULL)                                                                                        \
            return OUT_OF_MEMORY;                                                                                      \
        (list).items[(list).size - 1] = (value);                                                                       \
    } while (0)

static Stop keep_code(Values *values, int32_t row, int32_t code)
{
    if (code < ABSENT)
        return stop_of(code);
    KEEP(values->rows, row);
    KEEP(values->codes, code);
    return TEXT_ENDS;
}

static Stop keep_time(Scanner *scanner, int32_t row, int which)
{
    Slice text = scanner->found[START + which];
    int64_t value = NO_TIME;
    bool plain = text.at != NULL && plain_time(text, &value);
    KEEP(scanner->times[which], plain ? value : NO_TIME);
    if (plain || (text.at == NULL && which == DURATION - START))
        return TEXT_ENDS;
    return keep_code(&scanner->odd_times[which], row, code_of(scanner, text));
}

static Stop keep_value(Scanner *scanner, int32_t row, Column *column, Slice text)
{
    int64_t value;
    if (!column->integer)
        return keep_code(&column->plain, row, code_of(scanner, text));
    if (!plain_integer(text, &value))
        return keep_code(&column->odd, row, code_of(scanner, text));
    KEEP(column->plain.rows, row);
    KEEP(column->plain.integers, value);
    return TEXT_ENDS;
}

/* Return whether another spelling of the same argument takes precedence. */
static bool is_hidden(const Scanner *scanner, int32_t key)
{
    for (int32_t before = scanner->keys[key].before; before >= 0; before = scanner->keys[before].before)
        if (scanner->arguments[before].at != NULL)
            return true;
    return false;
}

static Stop pass_over(Scanner *scanner)
{
    bool empty = true;
    for (int member = 0; member < MEMBERS; member++)
        empty &= scanner->found[member].at == NULL;
    if (empty)
        return TEXT_ENDS; /* the oldest writers end the list with {}, so that every event can end with a comma */
    int32_t code = member_code(scanner, PHASE);
    if (code < ABSENT)
        return stop_of(code);
    while (scanner->passed_over.size <= (size_t)(code + 1))
        KEEP(scanner->passed_over, 0);
    scanner->passed_over.items[code + 1]++;
    return TEXT_ENDS;
}

static Stop keep_event(Scanner *scanner)
{
    Slice phase = scanner->found[PHASE];
    uint8_t place = phase.at != NULL && phase.end - phase.at == 3 && *phase.at == '"'
                        ? scanner->place_of_phase[phase.at[1]] : 0;
    if (place == 0)
        return pass_over(scanner);
    if (scanner->events == INT32_MAX)
        return TOO_MANY;
    Stop stop = TEXT_ENDS;
    int32_t row = (int32_t)scanner->events++;
    KEEP(scanner->phases, (uint8_t)(place - 1));
    for (int member = NAME; member <= TID; member++) {
        int32_t code = member_code(scanner, member);
        if (code < ABSENT)
            return stop_of(code);
        KEEP(scanner->members[member], code);
    }
    for (int which = 0; which < 2 && stop == TEXT_ENDS; which++)
        stop = keep_time(scanner, row, which);
    for (size_t i = 0; i < scanner->touched_count && stop == TEXT_ENDS; i++) {
        int32_t key = scanner->touched[i];
        if (!is_hidden(scanner, key))
            stop = keep_value(scanner, row, &scanner->columns[scanner->keys[key].column], scanner->arguments[key]);
    }
    return stop;
}

/* The list ----------------------------------------------------------------------------------------------------------*/

static bool skip_between(Reader *reader)
{
    while (reader->at < reader->end && (is_blank(*reader->at) || *reader->at == ','))
        reader->at++;
    return reader->at < reader->end;
}

static Stop scan_list(Scanner *scanner, Reader *reader, const uint8_t **stopped)
{
    for (;;) {
        bool more = skip_between(reader);
        *stopped = reader->at;
        if (!more)
            return TEXT_ENDS;
        if (*reader->at == ']') {
            *stopped = ++reader->at;
            return LIST_ENDS;
        }
        bool object = *reader->at == '{';
        Outcome outcome = object ? read_event(scanner, reader) : skip_value(reader);
        if (outcome != WHOLE)
            return outcome == CUT ? TEXT_ENDS : outcome == BROKEN ? LIST_BREAKS : OUT_OF_MEMORY;
        Stop stop = TEXT_ENDS;
        if (object)
            stop = keep_event(scanner);
        else
            scanner->strays++;
        if (stop != TEXT_ENDS)
            return stop;
    }
}

Stop scan_events(Scanner *scanner, const uint8_t *text, size_t length, size_t place, size_t *stopped, size_t *broken)
{
    const uint8_t *stopped_at;
    Reader reader = {text + place, text + length, scanner->nested, scanner->nested_room};
    Stop stop = scan_list(scanner, &reader, &stopped_at);
    *stopped = (size_t)(stopped_at - text);
    *broken = stop == LIST_BREAKS ? (size_t)(reader.at - text) : *stopped;
    scanner->nested = reader.nested;
    scanner->nested_room = reader.nested_room;
    forget_arguments(scanner); /* they point into the text, which is freed */
    memset(scanner->found, 0, sizeof scanner->found);
    return stop;
}

/* Two halves of a list ----------------------------------------------------------------------------------------------*/

bool look_alike(const Scanner *scanner, const Scanner *other)
{
    bool alike = scanner->column_count == other->column_count && scanner->key_count == other->key_count &&
                 memcmp(scanner->place_of_phase, other->place_of_phase, sizeof scanner->place_of_phase) == 0;
    for (size_t i = 0; alike && i < scanner->column_count; i++)
        alike = scanner->columns[i].integer == other->columns[i].integer;
    for (size_t i = 0; alike && i < scanner->key_count; i++) {
        const Key *key = &scanner->keys[i], *same = &other->keys[i];
        alike = key->column == same->column && key->before == same->before && key->length == same->length &&
                memcmp(key->text, same->text, key->length) == 0;
    }
    return alike;
}

/* The numbers here of the texts of `other`; NULL on failure. */
static int32_t *numbers_of_texts(Scanner *scanner, const Texts *other, Stop *stop)
{
    int32_t *numbers = malloc((other->items.size + 1) * sizeof *numbers);
    *stop = numbers == NULL ? OUT_OF_MEMORY : TEXT_ENDS;
    for (size_t i = 0; *stop == TEXT_ENDS && i < other->items.size; i++) {
        size_t begin = (size_t)other->items.items[i].begin;
        size_t end = i + 1 < other->items.size ? (size_t)other->items.items[i + 1].begin : other->bytes.size;
        numbers[i] = end > begin ? number_of_text(&scanner->texts, other->bytes.items + begin, end - begin) : ABSENT;
        if (numbers[i] < ABSENT)
            *stop = stop_of(numbers[i]);
    }
    if (*stop != TEXT_ENDS) {
        free(numbers);
        return NULL;
    }
    return numbers;
}

static void renumber(int32_t *codes, size_t size, const int32_t *numbers)
{
    for (size_t i = 0; i < size; i++)
        codes[i] = codes[i] < 0 ? ABSENT : numbers[codes[i]];
}

static bool join_values(Values *values, Values *other, int32_t row, const int32_t *numbers)
{
    for (size_t i = 0; i < other->rows.size; i++)
        other->rows.items[i] += row;
    renumber(other->codes.items, other->codes.size, numbers);
    return MOVE_TO_END(values->rows, other->rows) && MOVE_TO_END(values->codes, other->codes) &&
           MOVE_TO_END(values->integers, other->integers);
}

static bool join_passed_over(Scanner *scanner, const Scanner *other, const int32_t *numbers)
{
    for (size_t i = 0; i < other->passed_over.size; i++) {
        size_t place = i == 0 ? 0 : (size_t)(numbers[i - 1] + 1);
        while (scanner->passed_over.size <= place) {
            if (PUSH(scanner->passed_over) == NULL)
                return false;
            scanner->passed_over.items[scanner->passed_over.size - 1] = 0;
        }
        scanner->passed_over.items[place] += other->passed_over.items[i];
    }
    return true;
}

static bool join_lists(Scanner *scanner, Scanner *other, const int32_t *numbers)
{
    int32_t row = (int32_t)scanner->events;
    bool done = MOVE_TO_END(scanner->phases, other->phases) && join_passed_over(scanner, other, numbers);
    for (int member = NAME; done && member <= TID; member++) {
        renumber(other->members[member].items, other->members[member].size, numbers);
        done = MOVE_TO_END(scanner->members[member], other->members[member]);
    }
    for (int which = 0; done && which < 2; which++)
        done = MOVE_TO_END(scanner->times[which], other->times[which]) &&
               join_values(&scanner->odd_times[which], &other->odd_times[which], row, numbers);
    for (size_t i = 0; done && i < scanner->column_count; i++) {
        Column *column = &scanner->columns[i], *more = &other->columns[i];
        done = join_values(&column->plain, &more->plain, row, numbers) &&
               join_values(&column->odd, &more->odd, row, numbers);
    }
    return done;
}

Stop join_scanners(Scanner *scanner, Scanner *other)
{
    Stop stop;
    if (other->events > INT32_MAX - scanner->events)
        return TOO_MANY;
    int32_t *numbers = numbers_of_texts(scanner, &other->texts, &stop);
    if (numbers == NULL)
        return stop;
    bool done = join_lists(scanner, other, numbers);
    free(numbers);
    scanner->events += other->events;
    scanner->strays += other->strays;
    other->events = other->strays = other->passed_over.size = 0;
    return done ? TEXT_ENDS : OUT_OF_MEMORY;
}

static void free_values(Values *values)
{
    free(values->rows.items);
    free(values->codes.items);
    free(values->integers.items);
}

void free_scanner(Scanner *scanner)
{
    free_texts(&scanner->texts);
    free(scanner->phases.items);
    for (int member = 0; member <= TID; member++)
        free(scanner->members[member].items);
    for (int which = 0; which < 2; which++) {
        free(scanner->times[which].items);
        free_values(&scanner->odd_times[which]);
    }
    for (size_t i = 0; scanner->columns != NULL && i < scanner->column_count; i++) {
        free_values(&scanner->columns[i].plain);
        free_values(&scanner->columns[i].odd);
    }
    for (size_t i = 0; scanner->keys != NULL && i < scanner->key_count; i++)
        free(scanner->keys[i].text);
    free(scanner->columns);
    free(scanner->keys);
    free(scanner->passed_over.items);
    free(scanner->arguments);
    free(scanner->touched);
    free(scanner->nested);
}
