/* traceviz.parsers._sqlite: the rows of a table of an SQLite database as columns. See _sqlite.pyi. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "sqlite_table.h"

enum { MOST_WIDTH = 2000 }; /* columns of a table, SQLite's own limit */

/* Arguments of a call, and its memory. */
typedef struct {
    Table table;
    Py_buffer pages;
    Py_buffer kept[MOST_COLUMNS];
    size_t kept_count;
    Stored stored[MOST_COLUMNS];
    Filter filters[MOST_COLUMNS];
    Wanted wanted[MOST_COLUMNS];
} Call;

static PyObject *not_plain; /* the error that sends callers to SQLite itself */

static bool misfit(const char *what)
{
    PyErr_SetString(PyExc_ValueError, what);
    return false;
}

/* Requests ------------------------------------------------------------------------------------------------------------*/

static bool is_array(const Py_buffer *buffer, size_t width)
{
    return (buffer->len == 0 || (uintptr_t)buffer->buf % width == 0) && (size_t)buffer->len % width == 0;
}

/* The stored column at `position`, which is added if it is new. */
static bool add_stored(Call *call, Py_ssize_t position, bool is_text, size_t *place)
{
    Table *table = &call->table;
    if (position < 0 || (size_t)position >= table->width)
        return misfit("a column that the table does not have");
    for (*place = 0; *place < table->stored_count; ++*place)
        if (call->stored[*place].position == (uint32_t)position && call->stored[*place].is_text == is_text)
            return true;
    if (table->stored_count == MOST_COLUMNS)
        return misfit("too many columns");
    call->stored[table->stored_count++] = (Stored){.position = (uint32_t)position, .is_text = is_text};
    return true;
}

static bool keep_buffer(Call *call, PyObject *object, int flags, Py_buffer **buffer)
{
    if (call->kept_count == MOST_COLUMNS)
        return misfit("too many columns");
    *buffer = &call->kept[call->kept_count];
    if (PyObject_GetBuffer(object, *buffer, flags) != 0)
        return false;
    call->kept_count++;
    return true;
}

static bool add_filters(Call *call, PyObject *filters)
{
    Py_ssize_t count = PyTuple_Size(filters);
    if (count > MOST_COLUMNS)
        return misfit("too many filters");
    for (Py_ssize_t number = 0; number < count; number++) {
        Py_ssize_t position;
        PyObject *values;
        int inverted;
        Py_buffer *buffer;
        Filter *filter = &call->filters[number];
        if (!PyArg_ParseTuple(PyTuple_GetItem(filters, number), "nOp;a filter is (column, values, inverted)", &position,
                              &values, &inverted) ||
            !add_stored(call, position, false, &filter->stored) || !keep_buffer(call, values, PyBUF_SIMPLE, &buffer))
            return false;
        if (!is_array(buffer, sizeof(int64_t)))
            return misfit("values of a filter are 64-bit integers");
        filter->values = buffer->buf;
        filter->count = (size_t)buffer->len / sizeof(int64_t);
        filter->inverted = inverted;
        call->table.filter_count++;
    }
    return true;
}

static bool add_parts(Call *call, Wanted *wanted, PyObject *positions)
{
    Py_ssize_t count = PyTuple_Size(positions);
    static const Py_ssize_t least[] = {1, 2, 1, 1}, most[] = {1, 2, MOST_PARTS, 2};
    if (count < least[wanted->operation] || count > most[wanted->operation])
        return misfit("a wrong number of columns for what is made of them");
    for (Py_ssize_t part = 0; part < count; part++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(positions, part));
        bool is_text = wanted->operation == TEXT && part == 0;
        if ((position == -1 && PyErr_Occurred()) || !add_stored(call, position, is_text, &wanted->parts[part]))
            return false;
    }
    wanted->part_count = (size_t)count;
    return true;
}

static bool set_out(Call *call, Wanted *wanted, PyObject *out)
{
    Py_buffer *buffer;
    if (out == Py_None)
        return wanted->operation != LASTING || misfit("durations that go nowhere");
    if (!keep_buffer(call, out, PyBUF_WRITABLE, &buffer))
        return false;
    if (!is_array(buffer, wanted->width) || (size_t)buffer->len / wanted->width != call->table.room)
        return misfit("a column that has not one place for each row");
    wanted->out = buffer->buf;
    return true;
}

static bool add_wanted(Call *call, PyObject *columns, uint64_t seed)
{
    Py_ssize_t count = PyTuple_Size(columns);
    if (count > MOST_COLUMNS)
        return misfit("too many columns");
    for (Py_ssize_t number = 0; number < count; number++) {
        PyObject *positions, *out;
        int operation, width, has_unset;
        long long less, unset;
        if (!PyArg_ParseTuple(PyTuple_GetItem(columns, number),
                              "iO!OiLpL;a column is (operation, columns, out, width, less, has unset, unset)",
                              &operation, &PyTuple_Type, &positions, &out, &width, &less, &has_unset, &unset))
            return false;
        if (operation < INTEGER || operation > TEXT)
            return misfit("no such operation");
        if (operation == INTEGER ? width != 2 && width != 4 && width != 8 : width != (operation == LASTING ? 8 : 4))
            return misfit("a width that this operation does not have");
        Wanted *wanted = &call->wanted[call->table.wanted_count++];
        *wanted = (Wanted){.operation = (Operation)operation, .width = (size_t)width, .less = less, .unset = unset};
        wanted->has_unset = has_unset;
        wanted->least = INT64_MAX;
        wanted->most = INT64_MIN;
        wanted->keys.seed = seed;
        wanted->last = -1;
        if (!add_parts(call, wanted, positions) || !set_out(call, wanted, out))
            return false;
    }
    return true;
}

static bool is_file_format(const Table *table)
{
    size_t page = table->page_size;
    return page >= 512 && page <= 65536 && (page & (page - 1)) == 0 && table->usable <= page && table->usable >= 480;
}

static bool set_up(Call *call, PyObject *arguments)
{
    Table *table = &call->table;
    PyObject *pages, *filters, *columns;
    Py_ssize_t page_size, usable, width, room;
    long long page_count;
    int alone;
    if (!PyArg_ParseTuple(arguments, "innLOnpnO!O!", &table->file, &page_size, &usable, &page_count, &pages, &width,
                          &alone, &room, &PyTuple_Type, &filters, &PyTuple_Type, &columns) ||
        PyObject_GetBuffer(pages, &call->pages, PyBUF_SIMPLE) != 0)
        return false;
    if (page_size < 0 || usable < 0 || room < 0 || width < 0 || width > MOST_WIDTH || page_count > UINT32_MAX)
        return misfit("a size that no database has");
    table->page_size = (size_t)page_size;
    table->usable = (size_t)usable;
    table->page_count = page_count;
    table->width = (size_t)width;
    table->alone = alone;
    table->room = (size_t)room;
    table->stored = call->stored;
    table->filters = call->filters;
    table->wanted = call->wanted;
    if (!is_file_format(table) || !is_array(&call->pages, sizeof(int64_t)))
        return misfit("a size that no database has");
    PyObject *word = PyUnicode_FromString("seed"); /* hashes of texts differ from run to run */
    Py_hash_t seed = word == NULL ? -1 : PyObject_Hash(word);
    Py_XDECREF(word);
    return seed != -1 && add_filters(call, filters) &&
           add_wanted(call, columns, (uint64_t)seed * 0x9e3779b97f4a7c15u);
}

/* Results -------------------------------------------------------------------------------------------------------------*/

static PyObject *bytes_of(const void *memory, size_t size)
{
    return PyBytes_FromStringAndSize(memory == NULL ? "" : memory, (Py_ssize_t)size);
}

static PyObject *mask_of(const Wanted *wanted, size_t rows)
{
    return wanted->mask == NULL ? Py_NewRef(Py_None) : bytes_of(wanted->mask, rows);
}

/* (least or None, most or None, missing, beyond, mask or None) */
static PyObject *integers_of(const Wanted *wanted, size_t rows)
{
    PyObject *mask = mask_of(wanted, rows);
    if (mask == NULL)
        return NULL;
    if (wanted->least > wanted->most)
        return Py_BuildValue("(OOnnN)", Py_None, Py_None, (Py_ssize_t)wanted->missing, (Py_ssize_t)wanted->beyond, mask);
    return Py_BuildValue("(LLnnN)", (long long)wanted->least, (long long)wanted->most, (Py_ssize_t)wanted->missing,
                         (Py_ssize_t)wanted->beyond, mask);
}

/* (all bytes of the keys, start of each, rows with each) */
static PyObject *keys_of(const Wanted *wanted)
{
    const Texts *keys = &wanted->keys;
    PyObject *begins = bytes_of(NULL, 0);
    if (keys->items.size > 0) {
        Py_XDECREF(begins);
        begins = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(keys->items.size * sizeof(uint64_t)));
    }
    char *memory = begins == NULL ? NULL : PyBytes_AsString(begins);
    if (memory == NULL) {
        Py_XDECREF(begins);
        return NULL;
    }
    for (size_t number = 0; number < keys->items.size; number++)
        memcpy(memory + number * sizeof(uint64_t), &keys->items.items[number].begin, sizeof(uint64_t));
    return Py_BuildValue("(NNN)", bytes_of(keys->bytes.items, keys->bytes.size), begins,
                         bytes_of(wanted->counts.items, wanted->counts.size * sizeof(uint64_t)));
}

static PyObject *results_of(const Table *table)
{
    PyObject *results = PyTuple_New((Py_ssize_t)table->wanted_count);
    for (size_t number = 0; results != NULL && number < table->wanted_count; number++) {
        const Wanted *wanted = &table->wanted[number];
        bool is_number = wanted->operation == INTEGER || wanted->operation == LASTING;
        PyObject *result = is_number ? integers_of(wanted, table->rows) : keys_of(wanted);
        if (result == NULL || PyTuple_SetItem(results, (Py_ssize_t)number, result) != 0)
            Py_CLEAR(results);
    }
    return results == NULL ? NULL : Py_BuildValue("(nN)", (Py_ssize_t)table->rows, results);
}

static PyObject *raised(Status status)
{
    static const char *const reasons[] = {
        [NOT_PLAIN] = "pages that only SQLite itself should read",
        [SHORTER] = "a file that became shorter",
        [NO_ROOM] = "more rows than were counted",
    };
    if (status == NO_MEMORY)
        return PyErr_NoMemory();
    PyErr_SetString(not_plain, reasons[status]);
    return NULL;
}

static void tear_down(Call *call)
{
    for (size_t number = 0; number < call->table.wanted_count; number++) {
        free_texts(&call->wanted[number].keys);
        free(call->wanted[number].counts.items);
        free(call->wanted[number].mask);
        free(call->wanted[number].recent);
    }
    for (size_t number = 0; number < call->kept_count; number++)
        PyBuffer_Release(&call->kept[number]);
    if (call->pages.obj != NULL)
        PyBuffer_Release(&call->pages);
    free(call);
}

static PyObject *decode(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return PyErr_NoMemory();
    PyObject *result = NULL;
    if (set_up(call, arguments)) {
        Status status;
        Py_BEGIN_ALLOW_THREADS;
        status = decode_pages(&call->table, call->pages.buf, (size_t)call->pages.len / sizeof(int64_t));
        Py_END_ALLOW_THREADS;
        result = status == DECODED ? results_of(&call->table) : raised(status);
    }
    tear_down(call);
    return result;
}

/* Codes ---------------------------------------------------------------------------------------------------------------*/

#define RECODE(type)                                                                                                   \
    for (size_t row = 0; row < rows; row++) {                                                                          \
        uint32_t code = (uint32_t)codes[row];                                                                          \
        if (code >= count)                                                                                             \
            return false;                                                                                              \
        ((type *)out)[row] = ((const type *)values)[code];                                                             \
    }                                                                                                                  \
    return true

static bool recode_rows(const int32_t *codes, size_t rows, const void *values, size_t count, size_t width, void *out)
{
    switch (width) {
    case 1:
        RECODE(uint8_t);
    case 2:
        RECODE(uint16_t);
    case 4:
        RECODE(uint32_t);
    default:
        RECODE(uint64_t);
    }
}

static PyObject *recode(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer codes, values, out;
    int width;
    if (!PyArg_ParseTuple(arguments, "y*y*iw*", &codes, &values, &width, &out))
        return NULL;
    bool fits = width == 1 || width == 2 || width == 4 || width == 8;
    fits = fits && is_array(&codes, 4) && is_array(&values, (size_t)width) && is_array(&out, (size_t)width);
    size_t rows = (size_t)codes.len / 4;
    if (fits && (size_t)out.len / (size_t)width == rows && (out.buf != codes.buf || width == 4)) {
        Py_BEGIN_ALLOW_THREADS;
        fits = recode_rows(codes.buf, rows, values.buf, (size_t)values.len / (size_t)width, (size_t)width, out.buf);
        Py_END_ALLOW_THREADS;
    } else {
        fits = false;
    }
    PyBuffer_Release(&codes);
    PyBuffer_Release(&values);
    PyBuffer_Release(&out);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the columns do not fit each other");
    return fits ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef methods[] = {
    {"decode", decode, METH_VARARGS, "decode(file, page_size, usable, page_count, pages, width, alone, room, filters, "
                                     "columns): (rows, results by column)."},
    {"recode", recode, METH_VARARGS, "recode(codes, values, width, out): writes the values with these codes."},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    not_plain = PyErr_NewException("traceviz.parsers._sqlite.NotPlainError", NULL, NULL);
    return not_plain == NULL ? -1 : PyModule_AddObjectRef(module, "NotPlainError", not_plain);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_sqlite", .m_doc = "SQLite tables as columns.", .m_methods = methods,
    .m_slots = module_slots};

PyMODINIT_FUNC PyInit__sqlite(void) { return PyModuleDef_Init(&definition); }
