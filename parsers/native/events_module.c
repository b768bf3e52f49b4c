/* traceviz.parsers._kineto: the list of events of a Chrome-format trace as columns. See _kineto.pyi. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "events.h"

typedef struct {
    PyObject_HEAD
    Scanner scanner;
    bool busy;  /* in a call without the interpreter's lock */
    bool taken; /* some of its findings were given away */
} Object;

enum { MOST_KEYS = 255 };

/* Making one --------------------------------------------------------------------------------------------------------*/

static bool set_phases(Scanner *scanner, const char *phases, Py_ssize_t length)
{
    if (length > UINT8_MAX - 1) {
        PyErr_SetString(PyExc_ValueError, "too many phases");
        return false;
    }
    for (Py_ssize_t place = 0; place < length; place++)
        scanner->place_of_phase[(uint8_t)phases[place]] = (uint8_t)(place + 1);
    return true;
}

static bool set_keys(Scanner *scanner, PyObject *keys)
{
    size_t count = (size_t)PyTuple_Size(keys);
    if (count > MOST_KEYS) {
        PyErr_SetString(PyExc_ValueError, "too many keys");
        return false;
    }
    scanner->keys = calloc(count + 1, sizeof *scanner->keys);
    scanner->arguments = calloc(count + 1, sizeof *scanner->arguments);
    scanner->touched = calloc(count + 1, sizeof *scanner->touched);
    bool done = scanner->keys != NULL && scanner->arguments != NULL && scanner->touched != NULL;
    if (!done)
        PyErr_NoMemory();
    for (size_t number = 0; done && number < count; number++) {
        const char *text;
        Py_ssize_t length;
        int column, before;
        PyObject *key = PyTuple_GetItem(keys, (Py_ssize_t)number);
        if (!PyArg_ParseTuple(key, "y#ii;a key is (text, column, before)", &text, &length, &column, &before))
            return false;
        if (column < 0 || (size_t)column >= scanner->column_count || before < -1 || before >= (int)number) {
            PyErr_SetString(PyExc_ValueError, "a key of no column, or after no key");
            return false;
        }
        scanner->key_count = number + 1;
        done = add_key(scanner, number, (const uint8_t *)text, (size_t)length, column, before);
        if (!done)
            PyErr_NoMemory();
    }
    return done;
}

static bool set_columns(Scanner *scanner, const char *integers, Py_ssize_t length)
{
    scanner->columns = calloc((size_t)length + 1, sizeof *scanner->columns);
    if (scanner->columns == NULL) {
        PyErr_NoMemory();
        return false;
    }
    scanner->column_count = (size_t)length;
    for (Py_ssize_t column = 0; column < length; column++)
        scanner->columns[column].integer = integers[column] != 0;
    return true;
}

static PyObject *new_scanner(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    const char *phases, *integers;
    Py_ssize_t phase_count, column_count;
    PyObject *keys;
    if (!PyArg_ParseTuple(arguments, "y#y#O!", &phases, &phase_count, &integers, &column_count, &PyTuple_Type, &keys))
        return NULL;
    Py_hash_t seed = PyObject_Hash(PyTuple_GetItem(arguments, 0));
    if (seed == -1 && PyErr_Occurred())
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Object *self = (Object *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    self->scanner.texts.seed = (uint64_t)seed * 0x9e3779b97f4a7c15u;
    for (int member = 0; member < MEMBERS; member++)
        self->scanner.last[member] = ABSENT;
    if (!set_phases(&self->scanner, phases, phase_count) || !set_columns(&self->scanner, integers, column_count) ||
        !set_keys(&self->scanner, keys)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void free_object(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    free_scanner(&((Object *)object)->scanner);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* Reading -----------------------------------------------------------------------------------------------------------*/

static bool claim(Object *self)
{
    if (self->busy)
        PyErr_SetString(PyExc_RuntimeError, "the scanner is reading in another thread");
    return !self->busy;
}

static PyObject *failed(Stop stop)
{
    if (stop == OUT_OF_MEMORY)
        return PyErr_NoMemory();
    PyErr_SetString(PyExc_OverflowError, "more than 2147483647 events or texts");
    return NULL;
}

static PyObject *feed(PyObject *object, PyObject *arguments)
{
    Object *self = (Object *)object;
    Py_buffer text;
    Py_ssize_t place;
    if (!claim(self) || !PyArg_ParseTuple(arguments, "y*n", &text, &place))
        return NULL;
    if (place < 0 || place > text.len) {
        PyBuffer_Release(&text);
        PyErr_SetString(PyExc_ValueError, "the place lies outside the text");
        return NULL;
    }
    Stop stop;
    size_t stopped, broken;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS;
    stop = scan_events(&self->scanner, text.buf, (size_t)text.len, (size_t)place, &stopped, &broken);
    Py_END_ALLOW_THREADS;
    self->busy = false;
    PyBuffer_Release(&text);
    if (stop == OUT_OF_MEMORY || stop == TOO_MANY)
        return failed(stop);
    return Py_BuildValue("(inn)", (int)stop, (Py_ssize_t)stopped, (Py_ssize_t)broken);
}

static PyObject *join(PyObject *object, PyObject *arguments)
{
    Object *self = (Object *)object, *other;
    if (!PyArg_ParseTuple(arguments, "O!", Py_TYPE(object), &other))
        return NULL;
    if (!claim(self) || !claim(other))
        return NULL;
    if (self == other || self->taken || other->taken || !look_alike(&self->scanner, &other->scanner)) {
        PyErr_SetString(PyExc_ValueError, "the scanners do not fit each other");
        return NULL;
    }
    Stop stop;
    self->busy = other->busy = other->taken = true;
    Py_BEGIN_ALLOW_THREADS;
    stop = join_scanners(&self->scanner, &other->scanner);
    Py_END_ALLOW_THREADS;
    self->busy = other->busy = false;
    return stop == TEXT_ENDS ? Py_NewRef(Py_None) : failed(stop);
}

/* Output of the results as bytes, which are then freed --------------------------------------------------------------*/

static bool claim_all(Object *self)
{
    bool claimed = claim(self);
    self->taken |= claimed;
    return claimed;
}

#define TAKE(list) take_list(&(list).items, &(list).size, &(list).room, sizeof *(list).items)

static PyObject *take_list(void *items, size_t *size, size_t *room, size_t width)
{
    void *memory;
    memcpy(&memory, items, sizeof memory);
    PyObject *taken = PyBytes_FromStringAndSize(memory == NULL ? "" : memory, (Py_ssize_t)(*size * width));
    free(memory);
    memory = NULL;
    memcpy(items, &memory, sizeof memory);
    *size = *room = 0;
    return taken;
}

static PyObject *take_phases(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    return claim_all((Object *)object) ? TAKE(((Object *)object)->scanner.phases) : NULL;
}

static PyObject *take_member(PyObject *object, PyObject *arguments)
{
    int member;
    if (!claim_all((Object *)object) || !PyArg_ParseTuple(arguments, "i", &member))
        return NULL;
    if (member < NAME || member > TID) {
        PyErr_SetString(PyExc_ValueError, "no such member");
        return NULL;
    }
    return TAKE(((Object *)object)->scanner.members[member]);
}

static PyObject *take_times(PyObject *object, PyObject *arguments)
{
    int which;
    if (!claim_all((Object *)object) || !PyArg_ParseTuple(arguments, "i", &which))
        return NULL;
    if (which < 0 || which > 1) {
        PyErr_SetString(PyExc_ValueError, "no such time");
        return NULL;
    }
    Scanner *scanner = &((Object *)object)->scanner;
    return Py_BuildValue("(NNN)", TAKE(scanner->times[which]), TAKE(scanner->odd_times[which].rows),
                         TAKE(scanner->odd_times[which].codes));
}

static PyObject *take_column(PyObject *object, PyObject *arguments)
{
    Py_ssize_t place;
    if (!claim_all((Object *)object) || !PyArg_ParseTuple(arguments, "n", &place))
        return NULL;
    Scanner *scanner = &((Object *)object)->scanner;
    if (place < 0 || (size_t)place >= scanner->column_count) {
        PyErr_SetString(PyExc_ValueError, "no such column");
        return NULL;
    }
    Column *column = &scanner->columns[place];
    PyObject *values = column->integer ? TAKE(column->plain.integers) : TAKE(column->plain.codes);
    return Py_BuildValue("(NNNN)", TAKE(column->plain.rows), values, TAKE(column->odd.rows), TAKE(column->odd.codes));
}

/* (all bytes, start of each text); frees the texts. */
static PyObject *take_texts(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Object *self = (Object *)object;
    if (!claim_all(self))
        return NULL;
    Texts *texts = &self->scanner.texts;
    PyObject *begins = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(texts->items.size * sizeof(uint64_t)));
    char *memory = begins == NULL ? NULL : PyBytes_AsString(begins);
    if (memory == NULL) {
        Py_XDECREF(begins);
        return NULL;
    }
    for (size_t number = 0; number < texts->items.size; number++)
        memcpy(memory + number * sizeof(uint64_t), &texts->items.items[number].begin, sizeof(uint64_t));
    PyObject *bytes = TAKE(texts->bytes);
    free_texts(texts);
    memset(texts, 0, sizeof *texts);
    for (int member = 0; member < MEMBERS; member++)
        self->scanner.last[member] = ABSENT;
    return Py_BuildValue("(NN)", bytes, begins);
}

static PyObject *take_counts(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    if (!claim_all((Object *)object))
        return NULL;
    Scanner *scanner = &((Object *)object)->scanner;
    return Py_BuildValue("(nnN)", (Py_ssize_t)scanner->events, (Py_ssize_t)scanner->strays,
                         TAKE(scanner->passed_over));
}

static PyMethodDef methods[] = {
    {"feed", feed, METH_VARARGS, "feed(text, place): takes whole elements; (why it stopped, where, the broken byte)."},
    {"join", join, METH_VARARGS, "join(other): takes what the other found, as if it had read on itself."},
    {"phases", take_phases, METH_NOARGS, "phases(): the place of each event's phase."},
    {"member", take_member, METH_VARARGS, "member(number): the text of each event's member."},
    {"times", take_times, METH_VARARGS, "times(which): (nanoseconds, odd rows, odd texts)."},
    {"column", take_column, METH_VARARGS, "column(number): (rows, values, odd rows, odd texts)."},
    {"texts", take_texts, METH_NOARGS, "texts(): (all bytes, where each text begins)."},
    {"counts", take_counts, METH_NOARGS, "counts(): (events, elements that are no objects, others by phase)."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Scanner(phases, integers, keys): collects the events of one list."},
    {Py_tp_new, new_scanner},
    {Py_tp_dealloc, free_object},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec specification = {.name = "traceviz.parsers._kineto.Scanner",
                                    .basicsize = sizeof(Object),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = slots};

static int execute(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&specification);
    int added = type == NULL ? -1 : PyModule_AddObjectRef(module, "Scanner", type);
    Py_XDECREF(type);
    return added;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_kineto", .m_doc = "Chrome-format traces as columns.", .m_slots = module_slots};

PyMODINIT_FUNC PyInit__kineto(void) { return PyModuleDef_Init(&definition); }
