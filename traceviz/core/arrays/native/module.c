/* traceviz.core.arrays._compiled: operations on columns that are slow in NumPy. See _compiled.pyi for the functions.
 * Columns are buffers of the caller. All are checked before use, and the interpreter's lock is released during use. */

#include "intervals.h"

#include "calls_order.h"
#include "contexts.h"
#include "matching.h"
#include "nested.h"
#include "sorting.h"

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

/* Return whether all `arrays` hold `rows` aligned int64; empty ones may have any address. */
static bool are_wide(const Py_buffer *arrays, size_t count, size_t rows)
{
    for (size_t i = 0; i < count; i++)
        if ((size_t)arrays[i].len != rows * 8 || (rows > 0 && (uintptr_t)arrays[i].buf % 8 != 0))
            return false;
    return true;
}

static bool are_narrow(const Py_buffer *array, size_t rows)
{
    return (size_t)array->len == rows * 4 && (rows == 0 || (uintptr_t)array->buf % 4 == 0);
}

static size_t rows_of(const Py_buffer *array) { return (size_t)array->len / 8; }

/* Pairs in three buffers: owners, ids, and a mask of rows with an id, which is empty if all have one. */
static bool as_pairs(const Py_buffer *arrays, Pairs *pairs)
{
    size_t rows = rows_of(&arrays[1]);
    bool are_all = arrays[2].len == 0;
    *pairs = (Pairs){rows, arrays[0].buf, arrays[1].buf, are_all ? NULL : arrays[2].buf};
    return rows <= INT32_MAX && are_narrow(&arrays[0], rows) && are_wide(&arrays[1], 1, rows) &&
           (are_all || (size_t)arrays[2].len == rows);
}

static PyObject *match(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { SOUGHT, AMONG = 3, OWNERS = 6, ROW, FOUND, ARRAYS };
    Py_buffer arrays[ARRAYS];
    long long least;
    unsigned long long width;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*y*LKw*w*", &arrays[SOUGHT], &arrays[SOUGHT + 1], &arrays[SOUGHT + 2],
                          &arrays[AMONG], &arrays[AMONG + 1], &arrays[AMONG + 2], &arrays[OWNERS], &least, &width,
                          &arrays[ROW], &arrays[FOUND]))
        return NULL;
    Pairs sought, among;
    Places places = {(size_t)arrays[OWNERS].len / 4, arrays[OWNERS].buf, least, width, arrays[ROW].buf};
    size_t count = (size_t)arrays[ROW].len / 4;
    bool fits = as_pairs(&arrays[SOUGHT], &sought) && as_pairs(&arrays[AMONG], &among) &&
                are_narrow(&arrays[OWNERS], places.owners) && are_narrow(&arrays[ROW], count) &&
                are_narrow(&arrays[FOUND], sought.size) && are_places(&places, count);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        place_rows(&among, &places);
        find_rows(&sought, &places, arrays[FOUND].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

static PyObject *nest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { GROUP, START, END, DEPTH, PARENT, ARRAYS };
    Py_buffer arrays[ARRAYS];
    int cross, done = 0;
    if (!PyArg_ParseTuple(arguments, "y*y*y*pw*w*", &arrays[GROUP], &arrays[START], &arrays[END], &cross,
                          &arrays[DEPTH], &arrays[PARENT]))
        return NULL;
    size_t rows = rows_of(&arrays[GROUP]);
    bool fits = rows <= INT32_MAX && are_wide(arrays, DEPTH, rows) && are_narrow(&arrays[DEPTH], rows) &&
                are_narrow(&arrays[PARENT], rows);
    if (fits) {
        Calls calls = {rows, arrays[GROUP].buf, arrays[START].buf, arrays[END].buf};
        int32_t *depth = arrays[DEPTH].buf, *parent = arrays[PARENT].buf;
        Py_BEGIN_ALLOW_THREADS;
        done = cross ? nest_crossing(calls, depth, parent) : nest_calls(calls, depth, parent);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return !fits ? misfit() : done < 0 ? PyErr_NoMemory() : PyBool_FromLong(done);
}

/* Common part of nearest and topmost: both search the calls around each one. */
static PyObject *around(PyObject *arguments, bool (*find)(size_t, const int32_t *, const uint8_t *, int32_t *))
{
    enum { PARENT, FOUND, WANTED, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*w*", &arrays[PARENT], &arrays[WANTED], &arrays[FOUND]))
        return NULL;
    size_t rows = (size_t)arrays[WANTED].len;
    bool fits = rows <= INT32_MAX && are_narrow(&arrays[PARENT], rows) && are_narrow(&arrays[FOUND], rows), done = false;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        done = find(rows, arrays[PARENT].buf, arrays[WANTED].buf, arrays[FOUND].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? PyBool_FromLong(done) : misfit();
}

static PyObject *nearest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    return around(arguments, find_wanted);
}

static PyObject *topmost(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    return around(arguments, find_topmost);
}

static PyObject *contexts(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { PARENT, CODE, CONTEXT, FIRST, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*w*w*", &arrays[PARENT], &arrays[CODE], &arrays[CONTEXT], &arrays[FIRST]))
        return NULL;
    size_t rows = (size_t)arrays[PARENT].len / 4;
    bool fits = rows < INT32_MAX;
    for (size_t i = PARENT; i < ARRAYS; i++)
        fits = fits && are_narrow(&arrays[i], rows);
    int64_t found = 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        found = number_contexts(rows, arrays[PARENT].buf, arrays[CODE].buf, arrays[CONTEXT].buf, arrays[FIRST].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    if (!fits || found < -1)
        return misfit();
    return found < 0 ? PyErr_NoMemory() : PyLong_FromLongLong(found);
}

static PyObject *add_own(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { TIME, PARENT, OWNER, TOTAL, COUNTED, ARRAYS };
    Py_buffer arrays[ARRAYS];
    Py_ssize_t from;
    if (!PyArg_ParseTuple(arguments, "ny*y*y*y*w*", &from, &arrays[PARENT], &arrays[TIME], &arrays[COUNTED],
                          &arrays[OWNER], &arrays[TOTAL]))
        return NULL;
    size_t rows = rows_of(&arrays[TIME]), totals = rows_of(&arrays[TOTAL]);
    bool owns = arrays[OWNER].len == 0;
    bool fits = from >= 0 && are_wide(arrays, 1, rows) && are_narrow(&arrays[PARENT], rows) &&
                (owns || are_narrow(&arrays[OWNER], rows)) && are_wide(&arrays[TOTAL], 1, totals) && (size_t)arrays[COUNTED].len == rows;
    int64_t sum = 0;
    if (fits) {
        Timed calls = {rows, (size_t)from, arrays[PARENT].buf, arrays[TIME].buf, arrays[COUNTED].buf,
                       owns ? NULL : arrays[OWNER].buf};
        Py_BEGIN_ALLOW_THREADS;
        fits = add_own_time(calls, arrays[TOTAL].buf, totals, &sum);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? PyLong_FromLongLong(sum) : misfit();
}

static PyObject *order(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { GROUP, START, END, TIE, ORDER, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*w*", &arrays[GROUP], &arrays[START], &arrays[END], &arrays[TIE],
                          &arrays[ORDER]))
        return NULL;
    size_t rows = rows_of(&arrays[GROUP]);
    bool fits = rows <= INT32_MAX && are_wide(arrays, ORDER, rows) && are_narrow(&arrays[ORDER], rows);
    int found = DECLINED;
    if (fits) {
        Unordered calls = {rows, arrays[GROUP].buf, arrays[START].buf, arrays[END].buf, arrays[TIE].buf};
        Py_BEGIN_ALLOW_THREADS;
        found = order_calls(calls, arrays[ORDER].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    if (!fits)
        return misfit();
    return found == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong(found);
}

static PyObject *outer(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { GROUP, END, CODE, OUTER, ARRAYS };
    Py_buffer arrays[ARRAYS];
    Py_ssize_t codes;
    if (!PyArg_ParseTuple(arguments, "y*y*y*nw*", &arrays[GROUP], &arrays[END], &arrays[CODE], &codes, &arrays[OUTER]))
        return NULL;
    size_t rows = rows_of(&arrays[GROUP]);
    int found = 0;
    if (codes >= 0 && codes <= INT32_MAX && are_wide(arrays, CODE, rows) && are_narrow(&arrays[CODE], rows) &&
        (size_t)arrays[OUTER].len == rows) {
        Calls calls = {rows, arrays[GROUP].buf, NULL, arrays[END].buf};
        Py_BEGIN_ALLOW_THREADS;
        found = find_outer(calls, arrays[CODE].buf, (size_t)codes, arrays[OUTER].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return found > 0 ? Py_NewRef(Py_None) : found < 0 ? PyErr_NoMemory() : misfit();
}

static PyObject *innermost(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { GROUP, START, END, FROM, TO, PARENT, OWNER, WANTED, DEPTH, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*w*w*w*", &arrays[GROUP], &arrays[START], &arrays[END], &arrays[DEPTH],
                          &arrays[PARENT], &arrays[WANTED], &arrays[FROM], &arrays[TO], &arrays[OWNER]))
        return NULL;
    size_t rows = rows_of(&arrays[GROUP]);
    int64_t found = -1;
    bool fits = rows <= INT32_MAX && are_wide(arrays, FROM, rows) && are_wide(arrays + FROM, PARENT - FROM, rows * 2) &&
                are_narrow(&arrays[PARENT], rows) && are_narrow(&arrays[OWNER], rows * 2);
    bool is_whole = arrays[WANTED].len == 0, nests = arrays[DEPTH].len == 0;
    fits = fits && (is_whole || (size_t)arrays[WANTED].len == rows) && (nests || are_narrow(&arrays[DEPTH], rows));
    const int32_t *parent = arrays[PARENT].buf;
    for (size_t i = 0; fits && i < rows; i++)
        fits = parent[i] >= -1 && (int64_t)parent[i] < (int64_t)i;
    if (fits) {
        Calls calls = {rows, arrays[GROUP].buf, arrays[START].buf, arrays[END].buf};
        Stretches stretches = {arrays[FROM].buf, arrays[TO].buf, arrays[OWNER].buf};
        const uint8_t *wanted = is_whole ? NULL : arrays[WANTED].buf;
        Py_BEGIN_ALLOW_THREADS;
        found = nests ? find_stretches(calls, parent, wanted, stretches)
                      : find_crossing(calls, arrays[DEPTH].buf, parent, wanted, stretches);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return !fits ? misfit() : found < -1 ? PyErr_NoMemory() : PyLong_FromLongLong(found);
}

static PyObject *running(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { GROUP, START, END, KEY, MOMENT, PARENT, FOUND, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*w*", &arrays[GROUP], &arrays[START], &arrays[END], &arrays[PARENT],
                          &arrays[KEY], &arrays[MOMENT], &arrays[FOUND]))
        return NULL;
    size_t rows = rows_of(&arrays[GROUP]), size = rows_of(&arrays[KEY]);
    bool fits = rows <= INT32_MAX && are_wide(arrays, KEY, rows) && are_wide(arrays + KEY, PARENT - KEY, size) &&
                are_narrow(&arrays[PARENT], rows) && are_narrow(&arrays[FOUND], size);
    if (fits) {
        Calls calls = {rows, arrays[GROUP].buf, arrays[START].buf, arrays[END].buf};
        Py_BEGIN_ALLOW_THREADS;
        fits = find_running(calls, arrays[PARENT].buf, size, arrays[KEY].buf, arrays[MOMENT].buf, arrays[FOUND].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

static PyObject *alike(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { GROUP, FIRST, RESULTS, MOST = 16 };
    Py_buffer results[RESULTS], arrays[MOST];
    const int32_t *values[MOST];
    PyObject *columns;
    if (!PyArg_ParseTuple(arguments, "O!w*w*", &PyTuple_Type, &columns, &results[GROUP], &results[FIRST]))
        return NULL;
    size_t rows = (size_t)results[GROUP].len / 4, count = (size_t)PyTuple_Size(columns), held = 0;
    bool fits = count <= MOST && rows <= INT32_MAX && (size_t)results[FIRST].len == rows * 4;
    for (; fits && held < count; held++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(columns, (Py_ssize_t)held), &arrays[held], PyBUF_SIMPLE) != 0)
            break;
        fits = are_narrow(&arrays[held], rows);
        values[held] = arrays[held].buf;
    }
    int64_t groups = -1;
    bool is_whole = fits && held == count;
    if (is_whole) {
        Py_BEGIN_ALLOW_THREADS;
        groups = group_rows(rows, count, values, results[GROUP].buf, results[FIRST].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, held);
    release(results, RESULTS);
    if (PyErr_Occurred() != NULL)
        return NULL;
    if (!is_whole)
        return misfit();
    return groups < 0 ? PyErr_NoMemory() : PyLong_FromLongLong(groups);
}

static PyObject *add(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { OPENS, CLOSES, DONE, START, END, OWNER, TOTAL, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*w*", &arrays[OPENS], &arrays[CLOSES], &arrays[DONE], &arrays[START],
                          &arrays[END], &arrays[OWNER], &arrays[TOTAL]))
        return NULL;
    size_t size = rows_of(&arrays[OPENS]), rows = rows_of(&arrays[START]), owners = rows_of(&arrays[TOTAL]);
    bool fits = are_wide(arrays, DONE, size) && are_wide(arrays + DONE, 1, size + 1) &&
                are_wide(arrays + START, OWNER - START, rows) && are_narrow(&arrays[OWNER], rows) &&
                are_wide(arrays + TOTAL, 1, owners);
    if (fits) {
        Members members = {size, arrays[OPENS].buf, arrays[CLOSES].buf, arrays[DONE].buf};
        Py_BEGIN_ALLOW_THREADS;
        fits = add_time(members, rows, arrays[START].buf, arrays[END].buf, arrays[OWNER].buf, owners,
                        arrays[TOTAL].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

static PyObject *order_times(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { TIME, ORDER, ARRAYS };
    Py_buffer arrays[ARRAYS];
    if (!PyArg_ParseTuple(arguments, "y*w*", &arrays[TIME], &arrays[ORDER]))
        return NULL;
    size_t rows = rows_of(&arrays[TIME]);
    bool fits = rows <= INT32_MAX && are_wide(arrays, ORDER, rows) && are_narrow(&arrays[ORDER], rows);
    int64_t found = 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        found = order_nearly(arrays[TIME].buf, rows, arrays[ORDER].buf);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return !fits ? misfit() : found == NO_ROOM ? PyErr_NoMemory() : PyLong_FromLongLong(found);
}

static PyObject *move(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { ORDER, COLUMN, ARRAYS };
    Py_buffer arrays[ARRAYS];
    int width;
    Py_ssize_t distance;
    if (!PyArg_ParseTuple(arguments, "y*inw*", &arrays[ORDER], &width, &distance, &arrays[COLUMN]))
        return NULL;
    size_t rows = (size_t)arrays[ORDER].len / 4;
    bool fits = (width == 1 || width == 2 || width == 4 || width == 8) && distance >= 0 && rows <= INT32_MAX &&
                are_narrow(&arrays[ORDER], rows) && (size_t)arrays[COLUMN].len == rows * (size_t)width &&
                (rows == 0 || (uintptr_t)arrays[COLUMN].buf % (uintptr_t)width == 0);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = move_rows(arrays[COLUMN].buf, (size_t)width, arrays[ORDER].buf, rows, (size_t)distance);
        Py_END_ALLOW_THREADS;
    }
    release(arrays, ARRAYS);
    return fits ? Py_NewRef(Py_None) : misfit();
}

static PyMethodDef functions[] = {
    {"match", match, METH_VARARGS, "match(sought, among, owners, least, width, row, found): rows with the same pair."},
    {"nest", nest, METH_VARARGS, "nest(group, start, end, cross, depth, parent): whether the calls nest, or cross, in this order."},
    {"nearest", nearest, METH_VARARGS, "nearest(parent, wanted, found): the innermost wanted call around each."},
    {"topmost", topmost, METH_VARARGS, "topmost(parent, wanted, found): the outermost wanted call around each."},
    {"contexts", contexts, METH_VARARGS,
     "contexts(parent, code, context, first): how many calls differ in what is around them."},
    {"add_own", add_own, METH_VARARGS,
     "add_own(from, parent, time, counted, owner, total): the sum of the time that counted calls have for themselves."},
    {"order", order, METH_VARARGS,
     "order(group, start, end, tie, order): 0 where they come in order, 1 where they do now, 2 where others have to."},
    {"outer", outer, METH_VARARGS, "outer(group, end, code, codes, outer): which calls lie in no other of their code."},
    {"innermost", innermost, METH_VARARGS,
     "innermost(group, start, end, depth, parent, wanted, from, to, owner): how many stretches there are, -1 where calls cross."},
    {"running", running, METH_VARARGS,
     "running(group, start, end, parent, key, moment, found): the innermost call that runs at each moment."},
    {"alike", alike, METH_VARARGS, "alike(columns, group, first): how many groups of equal rows there are."},
    {"order_times", order_times, METH_VARARGS,
     "order_times(time, order): how far rows are from their places at most, -1 where they do not nearly come in order."},
    {"move", move, METH_VARARGS, "move(order, width, distance, column): puts the rows of a column in order."},
    {"add", add, METH_VARARGS, "add(opens, closes, done, start, end, owner, total): the same, by owner."},
    {NULL, NULL, 0, NULL},
};

static int add_intervals(PyObject *module) { return PyModule_AddFunctions(module, interval_functions); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_intervals}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_compiled", .m_methods = functions, .m_slots = slots};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&definition); }
