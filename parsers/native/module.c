/* traceviz.parsers._xplane: functions on XPlane files that are slow in Python. See _xplane.pyi. */

#include "arrays.h"
#include "scan.h"

static PyObject *text_of(Span span)
{
    return PyUnicode_DecodeUTF8(span.at == NULL ? "" : (const char *)span.at, (Py_ssize_t)length_of(span), "replace");
}

static PyObject *blob_of(Span span)
{
    return PyBytes_FromStringAndSize(span.at == NULL ? "" : (const char *)span.at, (Py_ssize_t)length_of(span));
}

/* Store `value` (stolen) under `key`; false if either fails. */
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

/* Stats of a name or of the plane ---------------------------------------------------------------------------------- */

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

/* {position of the name: its stats}; the stats of one name are contiguous. */
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
           put(dict, "events", PyLong_FromLongLong((long long)plane->events)) &&
           put(dict, "stats", PyLong_FromLongLong((long long)plane->stats)) &&
           put(dict, "lines", line_list(plane)) && put(dict, "names", name_list(&plane->names, "event %lld")) &&
           put(dict, "display_names", display_name_list(&plane->names)) &&
           put(dict, "name_stats", name_stat_dict(plane)) && put(dict, "texts", name_list(&plane->texts, "stat %lld")) &&
           put(dict, "blobs", blob_list(plane)) && put(dict, "properties", property_dict(plane)) &&
           put(dict, "aggregated", PyLong_FromLongLong((long long)plane->aggregated)) &&
           put(dict, "damage", damage_list(plane));
}

/* A column of `size` elements of `width` bytes: the part of `block` from `*at` on, kept in `dict`. Return its memory;
 * NULL on failure. */
static void *new_column(PyObject *dict, PyObject *block, Py_ssize_t *at, const char *key, int64_t size, size_t width)
{
    Py_buffer view;
    Py_ssize_t begin = *at;
    *at += (Py_ssize_t)size * (Py_ssize_t)width;
    PyObject *column = PySequence_GetSlice(block, begin, *at);
    if (column == NULL || PyObject_GetBuffer(column, &view, PyBUF_WRITABLE) < 0) {
        Py_XDECREF(column);
        return NULL;
    }
    bool fits = view.len == *at - begin && (size == 0 || (uintptr_t)view.buf % width == 0);
    void *memory = fits ? view.buf : NULL;
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "a new column has not the size that was asked for");
    PyBuffer_Release(&view);
    return put(dict, key, column) ? memory : NULL;
}

/* Columns of events, and those of stats, are in one block each, from the caller's function `make`. Unlike bytearray,
 * that may use large pages, and a large block is returned to the system as a whole. The widest columns come first, so
 * that all are aligned. */
static bool new_columns(PyObject *dict, PyObject *make, const Plane *plane, Columns *columns)
{
    int64_t events = plane->event_room, stats = plane->stat_room;
    Py_ssize_t in_events = 0, in_stats = 0;
    PyObject *of_events = PyObject_CallFunction(make, "n", (Py_ssize_t)events * (8 + 8 + 4 + 4));
    PyObject *of_stats = of_events == NULL ? NULL : PyObject_CallFunction(make, "n", (Py_ssize_t)stats * (8 + 4 + 4 + 1));
    bool made = of_stats != NULL &&
                (columns->event_offset = new_column(dict, of_events, &in_events, "event_offset", events, 8)) &&
                (columns->event_duration = new_column(dict, of_events, &in_events, "event_duration", events, 8)) &&
                (columns->event_line = new_column(dict, of_events, &in_events, "event_line", events, 4)) &&
                (columns->event_name = new_column(dict, of_events, &in_events, "event_name", events, 4)) &&
                (columns->stat_value = new_column(dict, of_stats, &in_stats, "stat_value", stats, 8)) &&
                (columns->stat_event = new_column(dict, of_stats, &in_stats, "stat_event", stats, 4)) &&
                (columns->stat_key = new_column(dict, of_stats, &in_stats, "stat_key", stats, 4)) &&
                (columns->stat_kind = new_column(dict, of_stats, &in_stats, "stat_kind", stats, 1));
    Py_XDECREF(of_events);
    Py_XDECREF(of_stats);
    return made;
}

static PyObject *scanned(Plane *plane, Span body, PyObject *make)
{
    Status status;
    Columns columns;
    Py_BEGIN_ALLOW_THREADS;
    status = survey_plane(plane, body);
    Py_END_ALLOW_THREADS;
    if (status != SCANNED)
        return raised(status);
    PyObject *dict = PyDict_New();
    if (dict == NULL || !new_columns(dict, make, plane, &columns)) {
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
    PyObject *make;
    if (!PyArg_ParseTuple(arguments, "y*nnO", &data, &begin, &end, &make))
        return NULL;
    PyObject *result = NULL;
    if (begin < 0 || begin > end || end > data.len) {
        PyErr_SetString(PyExc_ValueError, "the plane lies outside the data");
    } else {
        Plane plane = {0};
        const uint8_t *bytes = data.buf;
        result = scanned(&plane, (Span){bytes + begin, bytes + end}, make);
        free_plane(&plane);
    }
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef methods[] = {
    {"scan_plane", scan_plane, METH_VARARGS, "scan_plane(data, begin, end, new): the plane in these bytes, as columns."},
    {"take", take, METH_VARARGS, "take(values, width, index, missing, result): the values at these places."},
    {"mark", mark, METH_VARARGS, "mark(codes, used): sets which codes occur."},
    {"invert", invert, METH_VARARGS, "invert(index, place): where each place is in the index."},
    {"nanoseconds", nanoseconds, METH_VARARGS, "nanoseconds(start_ps, dur_ps, line, base_ns, start_ns, dur_ns)"},
    {"order", order, METH_VARARGS, "order(start, kept, result): the kept rows by start."},
    {"sort", sort, METH_VARARGS, "sort(key, first, order): rows by key, and where those of each begin."},
    {"join", join, METH_VARARGS, "join(left, right, most): pairs of rows with equal keys."},
    {"nest", nest, METH_VARARGS, "nest(events, regions, own): writes parents; whether events and regions are sorted."},
    {"depths", depths, METH_VARARGS, "depths(parent, depth): writes depths; whether parents come first."},
    {"nearest", nearest, METH_VARARGS, "nearest(parent, wanted, found): number of the nearest wanted ancestor."},
    {"spread", spread, METH_VARARGS,
     "spread(child_first, child, parent_first, parent, roots, levels, every, owner): the root that claims each node."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_xplane", .m_doc = "XPlane files as columns.", .m_methods = methods};

PyMODINIT_FUNC PyInit__xplane(void) { return PyModuleDef_Init(&definition); }
