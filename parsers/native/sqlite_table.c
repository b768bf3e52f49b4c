#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "sqlite_table.h"

#include <unistd.h>

#include "sqlite_take.h"

enum { LEAF = 13, LEAF_HEADER = 8, LEAST_CELL = 6, FLOAT = 7, ONE = 9, BLOB = 12 };
enum { BLOCK = 1 << 18, LONGEST_HEADER = 127, HEADERS = 64 };

static const uint8_t SIZES[BLOB] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};

/* End of the value of a wanted column in a row, counted from the row's header, and how to read it. */
typedef struct {
    uint64_t end;
    uint32_t length;
    uint8_t shift; /* shift of the eight bytes before `end`, to the left and back */
    bool missing;
    int64_t kept;     /* mask of the used bits: all, or none if the type is the value */
    int64_t constant; /* the value in that case */
} Place;

/* A header of rows: a table has few different ones, and they are cached. */
typedef struct {
    uint8_t bytes[LONGEST_HEADER];
    uint8_t length; /* 0: the slot is empty */
    uint64_t reach; /* the furthest end of a wanted value */
    uint64_t payload;
    Place *places;
} Header;

typedef struct {
    Header headers[HEADERS];
    Place *places;
    int32_t *column_of; /* position -> stored integer column, or -1 */
    int32_t *text_of;
} Headers;

typedef struct {
    const uint8_t *bytes;
    size_t size;
} Row;

static uint32_t two_bytes(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static uint64_t eight_bytes(const uint8_t *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) /* compilers turn this into one load */
        value = value << 8 | at[i];
    return value;
}

/* A number of up to nine bytes; NULL if it does not end before `end`. */
static const uint8_t *read_number(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (int i = 0; i < 9 && at < end; i++) {
        uint8_t byte = *at++;
        if (i == 8) {
            *value = sum << 8 | byte;
            return at;
        }
        sum = sum << 7 | (byte & 0x7f);
        if (byte < 0x80) {
            *value = sum;
            return at;
        }
    }
    return NULL;
}

/* Headers -----------------------------------------------------------------------------------------------------------*/

static bool place_integer(Place *place, uint64_t kind, uint64_t size, uint64_t end)
{
    if (kind > ONE || kind == FLOAT)
        return false;
    *place = (Place){.end = end, .missing = kind == 0, .constant = kind == ONE};
    if (size > 0) {
        place->shift = (uint8_t)(64 - 8 * size);
        place->kept = -1;
    }
    return true;
}

static bool place_text(Place *place, uint64_t kind, uint64_t size, uint64_t end)
{
    *place = (Place){.end = end, .length = (uint32_t)size, .missing = kind == 0};
    return (kind == 0 || kind >= BLOB) && size <= UINT32_MAX;
}

/* Parse a header; false if a row with it is not plain. */
static bool read_header(const Table *table, const Headers *known, const uint8_t *bytes, Header *header)
{
    const uint8_t *at = bytes + 1, *end = bytes + header->length;
    uint64_t place = header->length;
    header->reach = place;
    for (size_t position = 0; position < table->width; position++) {
        uint64_t kind;
        at = read_number(at, end, &kind);
        if (at == NULL || kind == 10 || kind == 11 || kind > UINT32_MAX)
            return false;
        uint64_t size = kind < BLOB ? SIZES[kind] : (kind - BLOB) / 2;
        place += size;
        int32_t column = known->column_of[position], text = known->text_of[position];
        if (column >= 0 && !place_integer(&header->places[column], kind, size, place))
            return false;
        if (text >= 0 && !place_text(&header->places[text], kind, size, place))
            return false;
        if (column >= 0 || text >= 0)
            header->reach = place;
    }
    header->payload = place;
    return at == end;
}

/* The parsed header at `bytes`, which holds `length` bytes; NULL if a row with it is not plain. */
static const Header *header_of(const Table *table, Headers *known, const uint8_t *bytes, size_t length)
{
    uint64_t hash = length, word = 0;
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        memcpy(&word, bytes + at, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, bytes + at, length - at);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    Header *header = &known->headers[hash >> 58];
    if (header->length == length && memcmp(header->bytes, bytes, length) == 0)
        return header;
    header->length = (uint8_t)length;
    if (!read_header(table, known, bytes, header)) {
        header->length = 0;
        return NULL;
    }
    memcpy(header->bytes, bytes, length);
    return header;
}

/* Cells -------------------------------------------------------------------------------------------------------------*/

/* Bytes of a row in its cell: all, or as many as leave whole pages for the rest. */
static uint64_t local_size(const Table *table, uint64_t payload)
{
    uint64_t most = table->usable - 35;
    if (payload <= most)
        return payload;
    uint64_t least = (table->usable - 12) * 32 / 255 - 23;
    uint64_t local = least + (payload - least) % (table->usable - 4);
    return local <= most ? local : least;
}

static Status read_cell(Table *table, Headers *known, const uint8_t *block, const uint8_t *cell, const uint8_t *end,
                        size_t row)
{
    uint64_t payload, number;
    const uint8_t *at = read_number(cell, end, &payload);
    if (at == NULL || payload > INT32_MAX)
        return NOT_PLAIN;
    at = read_number(at, end, &number);
    if (at == NULL)
        return NOT_PLAIN;
    uint64_t local = local_size(table, payload), there = (uint64_t)(end - at);
    if (local + (local < payload ? 4 : 0) > there || local < 1)
        return NOT_PLAIN;
    size_t length = at[0];
    if (length > LONGEST_HEADER || length > local || length < 1)
        return NOT_PLAIN;
    const Header *header = header_of(table, known, at, length);
    if (header == NULL || header->payload != payload || header->reach > local)
        return NOT_PLAIN;
    for (size_t column = 0; column < table->stored_count; column++) {
        const Place *place = &header->places[column];
        Stored *stored = &table->stored[column];
        const uint8_t *behind = at + place->end;
        if (stored->is_text) {
            stored->values[row] = (int64_t)(behind - block) - place->length;
            stored->lengths[row] = place->length;
        } else {
            int64_t value = (int64_t)(eight_bytes(behind - 8) << place->shift) >> place->shift;
            stored->values[row] = (value & place->kept) | place->constant;
        }
        stored->missing[row] = place->missing;
        stored->has_missing |= place->missing;
    }
    return DECODED;
}

/* Read all rows of a page into the stored columns; `rows` receives their number. */
static Status read_page(Table *table, Headers *known, const uint8_t *block, const uint8_t *page, size_t *rows)
{
    size_t count = two_bytes(page + 3);
    if (page[0] != LEAF || count > (table->usable - LEAF_HEADER) / LEAST_CELL || (count == 0 && !table->alone))
        return NOT_PLAIN;
    for (size_t column = 0; column < table->stored_count; column++)
        table->stored[column].has_missing = false;
    for (size_t row = 0; row < count; row++) {
        size_t pointer = two_bytes(page + LEAF_HEADER + 2 * row);
        if (pointer < LEAF_HEADER || pointer + 4 > table->usable)
            return NOT_PLAIN;
        Status status = read_cell(table, known, block, page + pointer, page + table->usable, row);
        if (status != DECODED)
            return status;
    }
    *rows = count;
    return DECODED;
}

static bool is_among(const Filter *filter, int64_t value)
{
    for (size_t place = 0; place < filter->count; place++)
        if (filter->values[place] == value)
            return true;
    return false;
}

/* Move the rows of a page that count to the front. */
static size_t filter_rows(Table *table, size_t rows)
{
    size_t kept = 0;
    for (size_t row = 0; row < rows; row++) {
        bool counts = true;
        for (size_t number = 0; number < table->filter_count; number++) {
            const Filter *filter = &table->filters[number];
            const Stored *stored = &table->stored[filter->stored];
            bool inside = !stored->missing[row] && is_among(filter, stored->values[row]);
            counts = counts && inside != filter->inverted;
        }
        if (!counts)
            continue;
        for (size_t column = 0; kept != row && column < table->stored_count; column++) {
            Stored *stored = &table->stored[column];
            stored->values[kept] = stored->values[row];
            stored->missing[kept] = stored->missing[row];
            if (stored->is_text)
                stored->lengths[kept] = stored->lengths[row];
        }
        kept++;
    }
    return kept;
}

/* Blocks ------------------------------------------------------------------------------------------------------------*/

static Status take_page(Table *table, Headers *known, const uint8_t *block, const uint8_t *page)
{
    size_t rows;
    Status status = read_page(table, known, block, page, &rows);
    if (status != DECODED)
        return status;
    if (table->filter_count > 0)
        rows = filter_rows(table, rows);
    if (rows > table->room - table->rows)
        return NO_ROOM;
    for (size_t column = 0; status == DECODED && column < table->wanted_count; column++)
        status = take_column(table, &table->wanted[column], block, rows);
    table->rows += rows;
    return status;
}

static Status read_block(const Table *table, const int64_t *pages, size_t count, uint8_t *block)
{
    for (size_t first = 0; first < count;) {
        size_t last = first + 1;
        while (last < count && pages[last] == pages[last - 1] + 1)
            last++;
        if (pages[first] < 2 || pages[last - 1] > table->page_count) /* page 1 starts with the file's header */
            return NOT_PLAIN;
        size_t size = (last - first) * table->page_size, done = 0;
        off_t offset = (off_t)(pages[first] - 1) * (off_t)table->page_size;
        while (done < size) {
            ssize_t got = pread(table->file, block + first * table->page_size + done, size - done, offset + (off_t)done);
            if (got <= 0)
                return SHORTER;
            done += (size_t)got;
        }
        first = last;
    }
    return DECODED;
}

static bool set_headers(const Table *table, Headers *known)
{
    known->places = calloc(HEADERS * (table->stored_count + 1), sizeof *known->places);
    known->column_of = malloc((table->width + 1) * sizeof *known->column_of);
    known->text_of = malloc((table->width + 1) * sizeof *known->text_of);
    if (known->places == NULL || known->column_of == NULL || known->text_of == NULL)
        return false;
    for (size_t position = 0; position < table->width; position++)
        known->column_of[position] = known->text_of[position] = -1;
    for (size_t column = 0; column < table->stored_count; column++) {
        const Stored *stored = &table->stored[column];
        (stored->is_text ? known->text_of : known->column_of)[stored->position] = (int32_t)column;
    }
    for (size_t number = 0; number < HEADERS; number++) {
        known->headers[number].length = 0;
        known->headers[number].places = known->places + number * table->stored_count;
    }
    return true;
}

static bool set_stored(Table *table)
{
    size_t most = (table->usable - LEAF_HEADER) / LEAST_CELL;
    for (size_t column = 0; column < table->stored_count; column++) {
        Stored *stored = &table->stored[column];
        stored->values = malloc(most * sizeof *stored->values);
        stored->missing = malloc(most);
        stored->lengths = stored->is_text ? malloc(most * sizeof *stored->lengths) : NULL;
        if (stored->values == NULL || stored->missing == NULL || (stored->is_text && stored->lengths == NULL))
            return false;
    }
    return true;
}

Status decode_pages(Table *table, const int64_t *pages, size_t count)
{
    size_t at_once = BLOCK / table->page_size;
    Headers *known = calloc(1, sizeof *known);
    uint8_t *block = malloc(at_once * table->page_size);
    bool ready = known != NULL && block != NULL && set_headers(table, known) && set_stored(table);
    Status status = ready ? DECODED : NO_MEMORY;
    for (size_t first = 0; status == DECODED && first < count; first += at_once) {
        size_t some = count - first < at_once ? count - first : at_once;
        status = read_block(table, pages + first, some, block);
        for (size_t page = 0; status == DECODED && page < some; page++)
            status = take_page(table, known, block, block + page * table->page_size);
    }
    for (size_t column = 0; column < table->stored_count; column++) {
        free(table->stored[column].values);
        free(table->stored[column].missing);
        free(table->stored[column].lengths);
    }
    if (known != NULL) {
        free(known->places);
        free(known->column_of);
        free(known->text_of);
    }
    free(known);
    free(block);
    return status;
}
