/* Bindings of columns.h and graph.h. All columns, also results, are buffers of the caller, who allocates them cheaply.
 * They are checked before use, and the functions run without the interpreter's lock. */

#include "arrays.h"

#include "columns.h"
#include "graph.h"

static PyObject *misfit(void)
{
    PyErr_SetString(PyExc_ValueError, "the columns do not fit each other");
    return NULL;
}

static void release(Py_buffer *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++)
        PyBuffer_Release(&arrays[i]);
}

static size_t elements(const Py_buffer *array, size_t width) { return (size_t)array->len / width; }

/* Return whether `array` holds `count` elements of `width` bytes, aligned for the machine; empty ones always do. */
static bool holds(const Py_buffer *array, size_t count, size_t width)
{
    bool is_aligned = array->len == 0 || (uintptr_t)array->buf % width == 0;
    return is_aligned && (size_t)array->len % width == 0 && elements(array, width) == count;
}

/* Rows are numbered by int32. */
static bool is_column(const Py_buffer *array, size_t width)
{
    return holds(array, elements(array, width), width) && elements(array, width) <= INT32_MAX;
}

PyObject *take(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { VALUES, INDEX, RESULT, ARRAYS };
    Py_buffer arrays[ARRAYS];
    int width;
    long long missing;
    if (!PyArg_ParseTuple(arguments, "y*iy*Lw*", &arrays[VALUES], &width, &arrays[INDEX], &missing, &arrays[RESULT]))
        return NULL;
    size_t rows = elements(&arrays[INDEX], 4), bytes = width == 1 || width == 4 || width == 8 ? (size_t)width : 0;
    bool fits = bytes > 0 && is_column(&arrays[INDEX], 4) && is_column(&arrays[VALUES], bytes) &&
                holds(&arrays[RESULT], rows, bytes);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = take_values(arrays[VALUES].buf, elements(&arrays[VALUES], bytes), bytes, arrays[INDEX].buf, rows,
                           (int64_t)missing, arrays[RESULT].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

PyObject *mark(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { CODES, USED, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*w*", &arrays[CODES], &arrays[USED]))
        return NULL;
    bool fits = is_column(&arrays[CODES], 4);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = mark_codes(arrays[CODES].buf, elements(&arrays[CODES], 4), arrays[USED].buf, elements(&arrays[USED], 1));
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

PyObject *invert(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { INDEX, PLACE, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*w*", &arrays[INDEX], &arrays[PLACE]))
        return NULL;
    bool fits = is_column(&arrays[INDEX], 4) && is_column(&arrays[PLACE], 4);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = invert_index(arrays[INDEX].buf, elements(&arrays[INDEX], 4), arrays[PLACE].buf,
                            elements(&arrays[PLACE], 4));
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

PyObject *nanoseconds(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { START_PS, DUR_PS, LINE, BASE, START_NS, DUR_NS, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*w*w*", &arrays[START_PS], &arrays[DUR_PS], &arrays[LINE], &arrays[BASE],
                          &arrays[START_NS], &arrays[DUR_NS]))
        return NULL;
    size_t rows = elements(&arrays[LINE], 4);
    bool fits = is_column(&arrays[LINE], 4) && is_column(&arrays[BASE], 8) && holds(&arrays[START_PS], rows, 8) &&
                holds(&arrays[DUR_PS], rows, 8) && holds(&arrays[START_NS], rows, 8) && holds(&arrays[DUR_NS], rows, 8);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = to_nanoseconds(arrays[START_PS].buf, arrays[DUR_PS].buf, arrays[LINE].buf, rows, arrays[BASE].buf,
                              elements(&arrays[BASE], 8), arrays[START_NS].buf, arrays[DUR_NS].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

static size_t count_kept(const uint8_t *kept, size_t rows)
{
    size_t count = 0;
    for (size_t i = 0; i < rows; i++)
        count += kept[i] != 0;
    return count;
}

PyObject *order(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { START, KEPT, RESULT, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*w*", &arrays[START], &arrays[KEPT], &arrays[RESULT]))
        return NULL;
    size_t rows = elements(&arrays[START], 8), count = rows;
    const uint8_t *kept = arrays[KEPT].buf;
    bool fits = is_column(&arrays[START], 8) && holds(&arrays[KEPT], rows, 1), done = false;
    if (fits)
        count = count_kept(kept, rows);
    fits = fits && holds(&arrays[RESULT], count, 4);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        done = order_rows(arrays[START].buf, count == rows ? NULL : kept, rows, count, arrays[RESULT].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return done ? Py_NewRef(Py_None) : fits ? PyErr_NoMemory() : misfit();
}

PyObject *sort(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { KEY, FIRST, ORDER, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*w*w*", &arrays[KEY], &arrays[FIRST], &arrays[ORDER]))
        return NULL;
    size_t rows = elements(&arrays[KEY], 4), firsts = elements(&arrays[FIRST], 8);
    bool fits = is_column(&arrays[KEY], 4) && holds(&arrays[FIRST], firsts, 8) && firsts > 0 &&
                holds(&arrays[ORDER], rows, 4);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = sort_by_key(arrays[KEY].buf, rows, firsts - 1, arrays[FIRST].buf, arrays[ORDER].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

/* The pairs of a prepared join as two columns of int32. */
static PyObject *pairs_of(const Join *prepared)
{
    PyObject *columns[2] = {NULL, NULL};
    for (int side = 0; side < 2; side++)
        columns[side] = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(prepared->pairs * sizeof(int32_t)));
    PyObject *pair = NULL;
    if (columns[0] != NULL && columns[1] != NULL) {
        write_pairs(prepared, (void *)PyByteArray_AsString(columns[0]), (void *)PyByteArray_AsString(columns[1]));
        pair = PyTuple_Pack(2, columns[0], columns[1]);
    }
    Py_XDECREF(columns[0]);
    Py_XDECREF(columns[1]);
    return pair;
}

PyObject *join(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { LEFT, RIGHT, ARRAYS };
    Py_buffer arrays[ARRAYS];
    int most;
    if (!PyArg_ParseTuple(arguments, "y*y*i", &arrays[LEFT], &arrays[RIGHT], &most))
        return NULL;
    Join prepared = {.left = arrays[LEFT].buf, .right = arrays[RIGHT].buf, .most = most};
    prepared.lefts = elements(&arrays[LEFT], 8);
    prepared.rights = elements(&arrays[RIGHT], 8);
    PyObject *result = NULL;
    /* Slots of the table, up to four times as many as rows, are also numbered by int32. */
    if (!is_column(&arrays[LEFT], 8) || !is_column(&arrays[RIGHT], 8) || prepared.rights > INT32_MAX / 4) {
        misfit();
    } else {
        bool done;
        Py_BEGIN_ALLOW_THREADS;
        done = prepare_join(&prepared);
        Py_END_ALLOW_THREADS;
        result = done && prepared.pairs <= INT32_MAX ? pairs_of(&prepared) : PyErr_NoMemory();
        free_join(&prepared);
    }
    release(arrays, ARRAYS);
    return result;
}

/* Nesting and groups ---------------------------------------------------------------------------------------------- */

static bool are_spans(const Py_buffer *line, const Py_buffer *start, const Py_buffer *duration, const Py_buffer *parent)
{
    size_t size = elements(line, 4);
    return is_column(line, 4) && holds(start, size, 8) && holds(duration, size, 8) && holds(parent, size, 4);
}

PyObject *nest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { LINE, START, DURATION, PARENT, REGION_LINE, REGION_START, REGION_DURATION, REGION_PARENT, OWN, ARRAYS };
    Py_buffer at[ARRAYS];
    int base, region_base;
    bool sorted = false;
    if (!PyArg_ParseTuple(arguments, "(y*y*y*iw*)(y*y*y*iw*)y*", &at[LINE], &at[START], &at[DURATION], &base,
                          &at[PARENT], &at[REGION_LINE], &at[REGION_START], &at[REGION_DURATION], &region_base,
                          &at[REGION_PARENT], &at[OWN]))
        return NULL;
    Spans events = {at[LINE].buf, at[START].buf, at[DURATION].buf, elements(&at[LINE], 4), base, at[PARENT].buf};
    Spans regions = {at[REGION_LINE].buf,          at[REGION_START].buf, at[REGION_DURATION].buf,
                     elements(&at[REGION_LINE], 4), region_base,          at[REGION_PARENT].buf};
    bool fits = are_spans(&at[LINE], &at[START], &at[DURATION], &at[PARENT]) &&
                are_spans(&at[REGION_LINE], &at[REGION_START], &at[REGION_DURATION], &at[REGION_PARENT]) &&
                (at[OWN].len == 0 || holds(&at[OWN], events.size, 1)) && base >= 0 && base <= region_base &&
                events.size <= (size_t)(region_base - base) && regions.size <= (size_t)(INT32_MAX - region_base);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        sorted = nest_spans(&events, at[OWN].len == 0 ? NULL : at[OWN].buf, &regions);
        Py_END_ALLOW_THREADS;
    }
    release(at, ARRAYS);
    return fits ? PyBool_FromLong(sorted) : misfit();
}

PyObject *depths(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { PARENT, DEPTH, ARRAYS };
    Py_buffer arrays[ARRAYS];
    bool done = false;
    if (!PyArg_ParseTuple(arguments, "y*w*", &arrays[PARENT], &arrays[DEPTH]))
        return NULL;
    size_t rows = elements(&arrays[PARENT], 4);
    bool fits = is_column(&arrays[PARENT], 4) && holds(&arrays[DEPTH], rows, 4);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        done = count_depths(rows, arrays[PARENT].buf, arrays[DEPTH].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? PyBool_FromLong(done) : misfit();
}

PyObject *nearest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { PARENT, WANTED, FOUND, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*w*", &arrays[PARENT], &arrays[WANTED], &arrays[FOUND]))
        return NULL;
    size_t nodes = elements(&arrays[PARENT], 4);
    bool fits = is_column(&arrays[PARENT], 4) && holds(&arrays[WANTED], nodes, 1) && holds(&arrays[FOUND], nodes, 4);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = find_nearest(nodes, arrays[PARENT].buf, arrays[WANTED].buf, arrays[FOUND].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

static bool is_root_list(Roots roots, size_t nodes)
{
    for (size_t i = 0; i < roots.count; i++)
        if (roots.nodes[i] < 0 || (size_t)roots.nodes[i] >= nodes)
            return false;
    return true;
}

PyObject *spread(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { CHILD_FIRST, CHILD, PARENT_FIRST, PARENT, ROOTS, LEVELS, OWNER, ARRAYS };
    Py_buffer at[ARRAYS];
    int every;
    bool done = false;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*pw*", &at[CHILD_FIRST], &at[CHILD], &at[PARENT_FIRST], &at[PARENT],
                          &at[ROOTS], &at[LEVELS], &every, &at[OWNER]))
        return NULL;
    Links children = {at[CHILD_FIRST].buf, at[CHILD].buf}, parents = {at[PARENT_FIRST].buf, at[PARENT].buf};
    Roots roots = {at[ROOTS].buf, at[LEVELS].buf, elements(&at[ROOTS], 4)};
    size_t nodes = elements(&at[OWNER], 4);
    bool fits = is_column(&at[OWNER], 4) && holds(&at[CHILD_FIRST], nodes + 1, 8) &&
                holds(&at[PARENT_FIRST], nodes + 1, 8) && is_column(&at[CHILD], 4) && is_column(&at[PARENT], 4) &&
                is_column(&at[ROOTS], 4) && holds(&at[LEVELS], roots.count, 4) &&
                are_links(nodes, elements(&at[CHILD], 4), children) &&
                are_links(nodes, elements(&at[PARENT], 4), parents) && is_root_list(roots, nodes);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        done = spread_roots(nodes, children, parents, roots, every != 0, at[OWNER].buf);
        Py_END_ALLOW_THREADS;
    }
    release(at, ARRAYS);
    return done ? Py_NewRef(Py_None) : fits ? PyErr_NoMemory() : misfit();
}
