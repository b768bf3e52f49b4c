/* traceviz.parsers._xplane: what is slow in Python about XPlane files. See _xplane.pyi for the functions. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "graph.h"
#include "scan.h"

static PyObject *text_of(Span span)
{
    return PyUnicode_DecodeUTF8(span.at == NULL ? "" : (const char *)span.at, (Py_ssize_t)length_of(span), "replace");
}

static PyObject *blob_of(Span span)
{
    return PyBytes_FromStringAndSize(span.at == NULL ? "" : (const char *)span.at, (Py_ssize_t)length_of(span));
}

/* Store `value` (stolen) under `key`; false when either fails. */
static bool put(PyObject *dict, const char *key, PyObject *value)
{
    bool stored = value != NULL && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return stored;
}

static PyObject *raised(Status status)
{
    if (status == TOO_MANY)
        PyErr_SetString(PyExc_OverflowError, "a plane holds more than 2147483647 events");
    else if (status == CHANGED)
        PyErr_SetString(PyExc_RuntimeError, "the file was changed while it was read");
    else
        PyErr_NoMemory();
    return NULL;
}

/* Lists ----------------------------------------------------------------------------------------------------------- */

static PyObject *name_text(const Name *name, const char *made_up)
{
    return name->made_up ? PyUnicode_FromFormat(made_up, (long long)name->id) : text_of(name->text);
}

static PyObject *name_list(const Names *names, const char *made_up)
{
    PyObject *list = PyList_New((Py_ssize_t)names->size);
    for (size_t i = 0; list != NULL && i < names->size; i++) {
        PyObject *text = name_text(&names->items[i], made_up);
        if (text == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *display_name_list(const Names *names)
{
    PyObject *list = PyList_New((Py_ssize_t)names->size);
    for (size_t i = 0; list != NULL && i < names->size; i++) {
        PyObject *text = text_of(names->items[i].display_name);
        if (text == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *blob_list(const Plane *plane)
{
    PyObject *list = PyList_New((Py_ssize_t)plane->blobs.size);
    for (size_t i = 0; list != NULL && i < plane->blobs.size; i++) {
        PyObject *blob = blob_of(plane->blobs.items[i]);
        if (blob == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, blob);
    }
    return list;
}

static PyObject *line_list(const Plane *plane)
{
    PyObject *list = PyList_New((Py_ssize_t)plane->lines.size);
    for (size_t i = 0; list != NULL && i < plane->lines.size; i++) {
        const Line *line = &plane->lines.items[i];
        Span name = length_of(line->display_name) > 0 ? line->display_name : line->name;
        PyObject *row = Py_BuildValue("(LNLL)", (long long)line->id, text_of(name), (long long)line->timestamp_ns,
                                      (long long)line->events);
        if (row == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, row);
    }
    return list;
}

/* Stats that hold for a name or for the plane ---------------------------------------------------------------------- */

static PyObject *text_by_id(const Plane *plane, int64_t id)
{
    int64_t place = find_text(plane, id);
    return place < 0 ? PyUnicode_FromFormat("stat %lld", (long long)id)
                     : name_text(&plane->texts.items[place], "stat %lld");
}

static PyObject *constant_value(const Plane *plane, const Stat *stat)
{
    double real;
    switch (stat->kind) {
    case REAL:
        memcpy(&real, &stat->value, sizeof real);
        return PyFloat_FromDouble(real);
    case UNSIGNED:
        return PyLong_FromUnsignedLongLong(stat->value);
    case SIGNED:
        return PyLong_FromLongLong((long long)stat->value);
    case TEXT:
        return text_of(stat->bytes);
    case REFERENCE:
        return text_by_id(plane, (int64_t)stat->value);
    default:
        return blob_of(stat->bytes);
    }
}

static bool put_constant(PyObject *dict, const Plane *plane, const Stat *stat)
{
    if (stat->kind == NO_VALUE)
        return true;
    PyObject *key = text_by_id(plane, stat->key);
    PyObject *value = constant_value(plane, stat);
    bool stored = key != NULL && value != NULL && PyDict_SetItem(dict, key, value) == 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return stored;
}

static PyObject *property_dict(const Plane *plane)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < plane->properties.size; i++)
        if (!put_constant(dict, plane, &plane->properties.items[i].stat))
            Py_CLEAR(dict);
    return dict;
}

/* {position of the name: its stats}; the stats of one name lie together. */
static PyObject *name_stat_dict(const Plane *plane)
{
    const Constants *stats = &plane->name_stats;
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < stats->size;) {
        int64_t place = stats->items[i].place;
        PyObject *key = PyLong_FromLongLong((long long)place);
        PyObject *of_name = PyDict_New();
        bool stored = key != NULL && of_name != NULL && PyDict_SetItem(dict, key, of_name) == 0;
        for (; stored && i < stats->size && stats->items[i].place == place; i++)
            stored = put_constant(of_name, plane, &stats->items[i].stat);
        Py_XDECREF(key);
        Py_XDECREF(of_name);
        if (!stored)
            Py_CLEAR(dict);
    }
    return dict;
}

/* Damage: (line or -1, missing, unread, mistyped, events, names, properties) ---------------------------------------- */

static bool add_damage(PyObject *list, long long line, const Damage *damage)
{
    static const Damage none;
    if (memcmp(damage, &none, sizeof none) == 0)
        return true;
    PyObject *row = Py_BuildValue("(LKLLLLL)", line, (unsigned long long)damage->missing, (long long)damage->unread,
                                  (long long)damage->mistyped, (long long)damage->events, (long long)damage->names,
                                  (long long)damage->properties);
    bool added = row != NULL && PyList_Append(list, row) == 0;
    Py_XDECREF(row);
    return added;
}

static PyObject *damage_list(const Plane *plane)
{
    PyObject *list = PyList_New(0);
    if (list != NULL && !add_damage(list, -1, &plane->damage))
        Py_CLEAR(list);
    for (size_t i = 0; list != NULL && i < plane->lines.size; i++)
        if (!add_damage(list, (long long)i, &plane->lines.items[i].damage))
            Py_CLEAR(list);
    return list;
}

/* The plane ------------------------------------------------------------------------------------------------------- */

static bool put_facts(PyObject *dict, const Plane *plane)
{
    return put(dict, "id", PyLong_FromLongLong((long long)plane->id)) && put(dict, "name", text_of(plane->name)) &&
           put(dict, "lines", line_list(plane)) && put(dict, "names", name_list(&plane->names, "event %lld")) &&
           put(dict, "display_names", display_name_list(&plane->names)) &&
           put(dict, "name_stats", name_stat_dict(plane)) && put(dict, "texts", name_list(&plane->texts, "stat %lld")) &&
           put(dict, "blobs", blob_list(plane)) && put(dict, "properties", property_dict(plane)) &&
           put(dict, "aggregated", PyLong_FromLongLong((long long)plane->aggregated)) &&
           put(dict, "damage", damage_list(plane));
}

/* A column of `size` elements of `width` bytes, kept in `dict`, and its memory; NULL when that fails. */
static void *new_column(PyObject *dict, const char *key, int64_t size, size_t width)
{
    PyObject *column = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size * (Py_ssize_t)width);
    void *memory = column == NULL ? NULL : PyByteArray_AsString(column);
    return put(dict, key, column) ? memory : NULL;
}

static bool new_columns(PyObject *dict, const Plane *plane, Columns *columns)
{
    return (columns->event_line = new_column(dict, "event_line", plane->events, 4)) &&
           (columns->event_name = new_column(dict, "event_name", plane->events, 4)) &&
           (columns->event_offset = new_column(dict, "event_offset", plane->events, 8)) &&
           (columns->event_duration = new_column(dict, "event_duration", plane->events, 8)) &&
           (columns->stat_event = new_column(dict, "stat_event", plane->stats, 4)) &&
           (columns->stat_key = new_column(dict, "stat_key", plane->stats, 4)) &&
           (columns->stat_kind = new_column(dict, "stat_kind", plane->stats, 1)) &&
           (columns->stat_value = new_column(dict, "stat_value", plane->stats, 8));
}

static PyObject *scanned(Plane *plane, Span body)
{
    Status status;
    Columns columns;
    Py_BEGIN_ALLOW_THREADS;
    status = survey_plane(plane, body);
    Py_END_ALLOW_THREADS;
    if (status != SCANNED)
        return raised(status);
    PyObject *dict = PyDict_New();
    if (dict == NULL || !new_columns(dict, plane, &columns)) {
        Py_XDECREF(dict);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = fill_plane(plane, &columns);
    Py_END_ALLOW_THREADS;
    if (status != SCANNED || !put_facts(dict, plane)) {
        Py_DECREF(dict);
        return status == SCANNED ? NULL : raised(status);
    }
    return dict;
}

static PyObject *scan_plane(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    Py_ssize_t begin, end;
    if (!PyArg_ParseTuple(arguments, "y*nn", &data, &begin, &end))
        return NULL;
    PyObject *result = NULL;
    if (begin < 0 || begin > end || end > data.len) {
        PyErr_SetString(PyExc_ValueError, "the plane lies outside the data");
    } else {
        Plane plane = {0};
        const uint8_t *bytes = data.buf;
        result = scanned(&plane, (Span){bytes + begin, bytes + end});
        free_plane(&plane);
    }
    PyBuffer_Release(&data);
    return result;
}

/* Nesting and groups ---------------------------------------------------------------------------------------------- */

static size_t elements(const Py_buffer *array, size_t width) { return (size_t)array->len / width; }

/* A column for one int32 per node or event, at most 2147483647. */
static PyObject *new_positions(size_t count, int32_t **memory)
{
    if (count > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "more than 2147483647 events");
        return NULL;
    }
    PyObject *column = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof **memory));
    if (column != NULL)
        *memory = (void *)PyByteArray_AsString(column);
    return column;
}

static PyObject *nest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer line, start, end;
    PyObject *column = NULL;
    int32_t *parent;
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &line, &start, &end))
        return NULL;
    size_t events = elements(&line, 4);
    if (elements(&start, 8) != events || elements(&end, 8) != events) {
        PyErr_SetString(PyExc_ValueError, "lines are int32, times int64, one of each per event");
    } else if ((column = new_positions(events, &parent)) != NULL) {
        bool sorted;
        Py_BEGIN_ALLOW_THREADS;
        sorted = nest_events(events, line.buf, start.buf, end.buf, parent);
        Py_END_ALLOW_THREADS;
        if (!sorted) {
            Py_DECREF(column);
            column = Py_NewRef(Py_None);
        }
    }
    PyBuffer_Release(&line);
    PyBuffer_Release(&start);
    PyBuffer_Release(&end);
    return column;
}

static PyObject *depths(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer parent;
    int32_t *depth;
    if (!PyArg_ParseTuple(arguments, "y*", &parent))
        return NULL;
    PyObject *column = new_positions(elements(&parent, 4), &depth);
    if (column != NULL)
        count_depths(elements(&parent, 4), parent.buf, depth);
    PyBuffer_Release(&parent);
    return column;
}

/* Arguments of spread, in their order. */
enum { CHILD_FIRST, CHILD, PARENT_FIRST, PARENT, ROOTS, LEVELS, ARRAYS };

static bool is_root_list(Roots roots, size_t nodes)
{
    for (size_t i = 0; i < roots.count; i++)
        if (roots.nodes[i] < 0 || (size_t)roots.nodes[i] >= nodes)
            return false;
    return true;
}

static PyObject *spread_checked(const Py_buffer *arrays, bool every)
{
    Links children = {arrays[CHILD_FIRST].buf, arrays[CHILD].buf};
    Links parents = {arrays[PARENT_FIRST].buf, arrays[PARENT].buf};
    Roots roots = {arrays[ROOTS].buf, arrays[LEVELS].buf, elements(&arrays[ROOTS], 4)};
    size_t firsts = elements(&arrays[CHILD_FIRST], 8), nodes = firsts - 1;
    int32_t *owner;
    bool done;
    if (firsts == 0 || elements(&arrays[PARENT_FIRST], 8) != firsts || elements(&arrays[LEVELS], 4) != roots.count ||
        !are_links(nodes, elements(&arrays[CHILD], 4), children) ||
        !are_links(nodes, elements(&arrays[PARENT], 4), parents) || !is_root_list(roots, nodes)) {
        PyErr_SetString(PyExc_ValueError, "links and roots do not fit each other");
        return NULL;
    }
    PyObject *column = new_positions(nodes, &owner);
    if (column == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    done = spread_roots(nodes, children, parents, roots, every, owner);
    Py_END_ALLOW_THREADS;
    if (!done) {
        Py_DECREF(column);
        return PyErr_NoMemory();
    }
    return column;
}

static PyObject *spread(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer arrays[ARRAYS];
    int every;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*p", &arrays[CHILD_FIRST], &arrays[CHILD], &arrays[PARENT_FIRST],
                          &arrays[PARENT], &arrays[ROOTS], &arrays[LEVELS], &every))
        return NULL;
    PyObject *column = spread_checked(arrays, every != 0);
    for (int i = 0; i < ARRAYS; i++)
        PyBuffer_Release(&arrays[i]);
    return column;
}

static PyMethodDef methods[] = {
    {"scan_plane", scan_plane, METH_VARARGS, "scan_plane(data, begin, end): the plane in these bytes, as columns."},
    {"nest", nest, METH_VARARGS, "nest(line, start, end): position of the event that encloses each event, None where they are not sorted."},
    {"depths", depths, METH_VARARGS, "depths(parent): how many events enclose each event."},
    {"spread", spread, METH_VARARGS,
     "spread(child_first, child, parent_first, parent, roots, levels, every): the root that claims each node."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_xplane", .m_doc = "XPlane files as columns.", .m_methods = methods};

PyMODINIT_FUNC PyInit__xplane(void) { return PyModuleDef_Init(&definition); }
