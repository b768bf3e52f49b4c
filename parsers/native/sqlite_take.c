#include "sqlite_take.h"

enum { MISSING_KEY = 'n', TEXT_KEY = 't', INTEGER_KEY = 'i' };

/* Mark the rows without a value among `rows` rows from row `first` of the table on, by `flags`. */
static bool set_missing(const Table *table, Wanted *wanted, size_t first, const uint8_t *flags, size_t rows)
{
    size_t count = 0;
    for (size_t row = 0; row < rows; row++)
        count += flags[row];
    if (count == 0)
        return true;
    wanted->missing += count;
    if (wanted->out == NULL)
        return true;
    if (wanted->mask == NULL)
        wanted->mask = calloc(table->room + 1, 1);
    if (wanted->mask == NULL)
        return false;
    memcpy(wanted->mask + first, flags, rows);
    return true;
}

/* Integers ----------------------------------------------------------------------------------------------------------*/

static void bound(Wanted *wanted, const int64_t *values, size_t rows)
{
    int64_t least = wanted->least, most = wanted->most;
    for (size_t row = 0; row < rows; row++) {
        least = values[row] < least ? values[row] : least;
        most = values[row] > most ? values[row] : most;
    }
    wanted->least = least;
    wanted->most = most;
}

static void bound_some(Wanted *wanted, const int64_t *values, const uint8_t *missing, size_t rows)
{
    for (size_t row = 0; row < rows; row++) {
        if (missing[row])
            continue;
        wanted->least = values[row] < wanted->least ? values[row] : wanted->least;
        wanted->most = values[row] > wanted->most ? values[row] : wanted->most;
    }
}

static bool fits(int64_t value, size_t width)
{
    return width == 8 || (width == 4 ? value == (int32_t)value : value == (int16_t)value);
}

static bool are_all(int64_t value, const int64_t *values, size_t rows)
{
    size_t row = 0;
    while (row < rows && values[row] == value)
        row++;
    return row == rows;
}

/* Memory is zero already: columns of zeros are never touched. */
static void store(Wanted *wanted, size_t first, const int64_t *values, size_t rows)
{
    uint64_t less = (uint64_t)wanted->less;
    if (are_all(wanted->less, values, rows))
        return;
    if (wanted->width == 8) {
        int64_t *out = (int64_t *)wanted->out + first;
        for (size_t row = 0; row < rows; row++)
            out[row] = (int64_t)((uint64_t)values[row] - less);
    } else if (wanted->width == 4) {
        int32_t *out = (int32_t *)wanted->out + first;
        for (size_t row = 0; row < rows; row++)
            out[row] = (int32_t)((uint64_t)values[row] - less);
    } else {
        int16_t *out = (int16_t *)wanted->out + first;
        for (size_t row = 0; row < rows; row++)
            out[row] = (int16_t)((uint64_t)values[row] - less);
    }
}

/* Mark values that are missing, unset or too large. Several columns may use one stored column: its flags stay. */
static bool take_missing(const Table *table, Wanted *wanted, const Stored *stored, size_t rows)
{
    uint8_t flags[512];
    for (size_t first = 0; first < rows; first += sizeof flags) {
        size_t count = rows - first < sizeof flags ? rows - first : sizeof flags;
        for (size_t row = 0; row < count; row++) {
            int64_t value = stored->values[first + row];
            bool is_none = stored->missing[first + row] || (wanted->has_unset && value == wanted->unset);
            bool is_beyond = !is_none && !fits(value, wanted->width);
            flags[row] = is_none || is_beyond;
            wanted->beyond += is_beyond;
        }
        if (!set_missing(table, wanted, table->rows + first, flags, count))
            return false;
    }
    return true;
}

static Status take_integers(const Table *table, Wanted *wanted, size_t rows)
{
    const Stored *stored = &table->stored[wanted->parts[0]];
    if (stored->has_missing)
        bound_some(wanted, stored->values, stored->missing, rows);
    else
        bound(wanted, stored->values, rows);
    bool any = wanted->least <= wanted->most;
    bool unset = any && wanted->has_unset && wanted->least <= wanted->unset && wanted->unset <= wanted->most;
    bool beyond = any && !(fits(wanted->least, wanted->width) && fits(wanted->most, wanted->width));
    if ((stored->has_missing || unset || beyond) && !take_missing(table, wanted, stored, rows))
        return NO_MEMORY;
    if (wanted->out != NULL)
        store(wanted, table->rows, stored->values, rows);
    return DECODED;
}

static Status take_durations(const Table *table, Wanted *wanted, size_t rows)
{
    const Stored *ends = &table->stored[wanted->parts[0]], *starts = &table->stored[wanted->parts[1]];
    int64_t negative = 0, *out = (int64_t *)wanted->out + table->rows;
    for (size_t row = 0; row < rows; row++) {
        out[row] = (int64_t)((uint64_t)ends->values[row] - (uint64_t)starts->values[row]);
        negative |= out[row];
    }
    if (!ends->has_missing && !starts->has_missing && negative >= 0)
        return DECODED;
    for (size_t row = 0; row < rows; row++) {
        bool is_missing = ends->missing[row] || starts->missing[row];
        uint8_t flag = is_missing || out[row] < 0;
        wanted->beyond += flag && !is_missing;
        if (flag && !set_missing(table, wanted, table->rows + row, &flag, 1))
            return NO_MEMORY;
    }
    return DECODED;
}

/* Keys --------------------------------------------------------------------------------------------------------------*/

/* The number of a key, whose rows are counted from now on; below 0 without memory. */
static int32_t number_of_key(Wanted *wanted, const uint8_t *key, size_t length)
{
    int32_t number = number_of_text(&wanted->keys, key, length);
    if (number >= 0 && (size_t)number == wanted->counts.size) {
        uint64_t *count = PUSH(wanted->counts);
        if (count == NULL)
            return -1;
        *count = 0;
    }
    return number;
}

static int32_t number_of_few(Wanted *wanted, const int64_t key[3], size_t parts)
{
    uint64_t hash = ((uint64_t)key[0] ^ (uint64_t)key[1] << 7 ^ (uint64_t)key[2]) * 0x9e3779b97f4a7c15u;
    Recent *recent = &wanted->recent[hash >> RECENT_SHIFT];
    if (recent->number > 0 && recent->key[0] == key[0] && recent->key[1] == key[1] && recent->key[2] == key[2])
        return recent->number - 1;
    int32_t number = number_of_key(wanted, (const uint8_t *)key, (parts + 1) * sizeof *key);
    if (number >= 0) {
        memcpy(recent->key, key, sizeof recent->key);
        recent->number = number + 1;
    }
    return number;
}

static Status take_codes(const Table *table, Wanted *wanted, size_t rows)
{
    int64_t key[MOST_PARTS + 1] = {0};
    size_t parts = wanted->part_count;
    if (wanted->recent == NULL && (wanted->recent = calloc(RECENT, sizeof *wanted->recent)) == NULL)
        return NO_MEMORY;
    for (size_t row = 0; row < rows; row++) {
        int64_t missing = 0;
        for (size_t part = 0; part < parts; part++) {
            const Stored *stored = &table->stored[wanted->parts[part]];
            key[part] = stored->missing[row] ? 0 : stored->values[row];
            missing |= (int64_t)stored->missing[row] << part;
        }
        key[parts] = missing;
        int32_t number = parts < 3 ? number_of_few(wanted, key, parts)
                                   : number_of_key(wanted, (const uint8_t *)key, (parts + 1) * sizeof *key);
        if (number < 0)
            return NO_MEMORY;
        wanted->counts.items[number]++;
        if (wanted->out != NULL && number > 0) /* memory is zero already */
            ((int32_t *)wanted->out)[table->rows + row] = number;
    }
    return DECODED;
}

static Status take_texts(const Table *table, Wanted *wanted, const uint8_t *block, size_t rows)
{
    const Stored *texts = &table->stored[wanted->parts[0]];
    const Stored *integers = wanted->part_count > 1 ? &table->stored[wanted->parts[1]] : NULL;
    uint8_t key[65537];
    for (size_t row = 0; row < rows; row++) {
        size_t length = 1;
        if (!texts->missing[row]) {
            key[0] = TEXT_KEY;
            memcpy(key + 1, block + texts->values[row], texts->lengths[row]); /* shorter than a page */
            length += texts->lengths[row];
        } else if (integers != NULL && !integers->missing[row]) {
            key[0] = INTEGER_KEY;
            memcpy(key + 1, &integers->values[row], sizeof integers->values[row]);
            length += sizeof integers->values[row];
        } else {
            key[0] = MISSING_KEY;
        }
        int32_t number = wanted->last;
        if (number < 0 || !is_text(&wanted->keys, number, key, length))
            number = number_of_key(wanted, key, length);
        if (number < 0)
            return NO_MEMORY;
        wanted->counts.items[number]++;
        wanted->last = number;
        if (wanted->out != NULL && number > 0) /* memory is zero already */
            ((int32_t *)wanted->out)[table->rows + row] = number;
    }
    return DECODED;
}

Status take_column(const Table *table, Wanted *wanted, const uint8_t *block, size_t rows)
{
    switch (wanted->operation) {
    case INTEGER:
        return take_integers(table, wanted, rows);
    case LASTING:
        return take_durations(table, wanted, rows);
    case CODE:
        return take_codes(table, wanted, rows);
    default:
        return take_texts(table, wanted, block, rows);
    }
}
