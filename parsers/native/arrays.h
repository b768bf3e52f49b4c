/* Functions of the module on columns; see _xplane.pyi. */

#ifndef TRACEVIZ_ARRAYS_H
#define TRACEVIZ_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

PyObject *take(PyObject *module, PyObject *arguments);
PyObject *mark(PyObject *module, PyObject *arguments);
PyObject *invert(PyObject *module, PyObject *arguments);
PyObject *nanoseconds(PyObject *module, PyObject *arguments);
PyObject *order(PyObject *module, PyObject *arguments);
PyObject *sort(PyObject *module, PyObject *arguments);
PyObject *join(PyObject *module, PyObject *arguments);
PyObject *nest(PyObject *module, PyObject *arguments);
PyObject *depths(PyObject *module, PyObject *arguments);
PyObject *nearest(PyObject *module, PyObject *arguments);
PyObject *spread(PyObject *module, PyObject *arguments);

#endif
